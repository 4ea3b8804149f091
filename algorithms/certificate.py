"""How far any factorization is from the optimum, without solving for the optimum."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.solvers.low_rank import entries, spectral_norm
from algorithms.solvers.observed import as_observed

__all__ = ["Certificate", "certificate"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """A bound on the distance of a factorization from the optimum of Soft-Impute's problem.

    Attributes
    ----------
    objective : float
        What the factorization reaches, 1/2 ||P(U V' - X)||^2 + lambda/2 (||U||^2 + ||V||^2). No optimum is above it.
    lower_bound : float
        No matrix has a lower objective than this.
    spectral_norm : float
        ||G||_2 of the residual G = P(X - U V'). It is lambda at an optimum other than 0.
    """

    objective: float
    lower_bound: float
    spectral_norm: float

    @property
    def gap(self) -> float:
        """Objective less lower bound: the objective is at most so far above the optimum."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the lower bound: the objective is at most by this share above the optimum."""
        if self.gap <= 0:
            return 0.0
        return self.gap / self.lower_bound if self.lower_bound > 0 else float("inf")


def certificate(user_profiles: FloatArray, item_profiles: FloatArray, X: Any, *, lam: float) -> Certificate:
    """Bound how far profiles are from the optimum of `min over M 1/2 ||P(M - X)||^2 + lam ||M||_*`.

    The dual of that problem is `max <X, Y> - 1/2 ||Y||^2` over matrices Y that are 0 where X is not observed and have
    no singular value above `lam`. For any profiles, the residual G = P(X - U V'), shrunk to
    Y = G min(1, lam / ||G||_2), is one of them. So its dual value is a lower bound; at the optimum Y = G, and the bound
    is the optimum itself. Of all profiles with one product M, the least lam/2 (||U||^2 + ||V||^2) is lam ||M||_*. So
    objective (1) of the first seed paper, halved, has the same optimum where the rank is large enough; else the bound
    still holds.

    Nothing dense of the size of X is formed. ||G||_2 comes from `algorithms.solvers.low_rank.spectral_norm`; its error
    is added to it, which makes the bound a little lower.

    Parameters
    ----------
    user_profiles, item_profiles : float64, shape (n_users, rank) and (n_items, rank)
        U and V, one profile a row.
    X : Ratings, matrix with NaN, scipy sparse matrix, DataFrame or Observed
        What was fitted; for `SoftImpute` that is its `centred_`.
    lam : float
        Weight of the nuclear norm, > 0: lambda of objective (1), `penalty` of a `SoftImputeSolution`.

    Raises
    ------
    ValueError
        If the shapes do not fit, a profile is not finite, or `lam` is not > 0.
    """
    observed = as_observed(X)
    U, V = np.asarray(user_profiles, dtype=np.float64), np.asarray(item_profiles, dtype=np.float64)
    _check(U, V, observed.shape, lam)
    residual = observed.value - entries(U, V, observed)
    norm, error = spectral_norm(observed.csr(residual))
    dual = residual * min(1.0, lam / (norm + error)) if norm > 0 else residual
    penalty = lam / 2 * (float(np.vdot(U, U)) + float(np.vdot(V, V)))
    return Certificate(
        objective=float(np.vdot(residual, residual)) / 2 + penalty,
        lower_bound=float(np.vdot(observed.value, dual)) - float(np.vdot(dual, dual)) / 2,
        spectral_norm=norm,
    )


def _check(U: FloatArray, V: FloatArray, shape: tuple[int, int], lam: float) -> None:
    if U.ndim != 2 or V.ndim != 2 or (len(U), len(V)) != shape or U.shape[1] != V.shape[1]:
        raise ValueError(
            f"user_profiles and item_profiles must have shapes ({shape[0]}, rank) and ({shape[1]}, rank), "
            f"got {U.shape} and {V.shape}; pass one profile a row"
        )
    for name, profiles in (("user_profiles", U), ("item_profiles", V)):
        if not np.isfinite(profiles).all():
            raise ValueError(f"{name} must be finite, got {profiles[~np.isfinite(profiles)][0]}")
    if not (np.isfinite(lam) and lam > 0):
        raise ValueError(f"lam must be finite and > 0, got {lam!r}")
