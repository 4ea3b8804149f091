"""The ALS path of Soft-Impute: profiles of both sides in turns, never a dense matrix."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.solvers.low_rank import SparsePlusLowRank, entries, leading_triplets
from algorithms.solvers.observed import Observed
from algorithms.solvers.ridge import improve_side

__all__ = ["Alternation", "Factors", "filled_in", "squared_norm"]

FloatArray = NDArray[np.float64]
STEPS = 2  # of conjugate gradients in each half of a sweep
FAINT = 1e-3  # a fresh direction gets at least this share of its singular value, or it would take long to grow


@dataclass(frozen=True, eq=False, repr=False)
class Factors:
    """A matrix ``left * values @ right.T``.

    Attributes
    ----------
    left, right : ndarray of float64, shape (n_rows, rank) and (n_columns, rank)
        Singular vectors, orthonormal, in columns.
    values : ndarray of float64, shape (rank,)
        Descending, > 0.
    """

    left: FloatArray
    values: FloatArray
    right: FloatArray

    @property
    def rank(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def profiles(self) -> tuple[FloatArray, FloatArray]:
        """Both sides' profiles, float64, shape (n_rows, rank) and (n_columns, rank), whose products are the matrix.

        The sum of their squared norms is twice its nuclear norm.
        """
        root = np.sqrt(self.values)
        return self.left * root, self.right * root

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> "Factors":
        """The matrix of zeros."""
        return cls(np.empty((shape[0], 0)), np.empty(0), np.empty((shape[1], 0)))


class Alternation:
    """Minimizes 1/2 ||P(X - A B')||^2 + lambda/2 (||A||^2 + ||B||^2) over A and B of a given rank.

    Its minimum is Soft-Impute's where the rank is not below that of Soft-Impute's solution. A sweep improves A for
    given B and then B for given A (`algorithms.solvers.ridge`). Sweeps start from an extrapolation of the last two,
    with the weights of Nesterov's method; where that raised the objective, the momentum is dropped and the sweep made
    anew (Mitchell, Ye and De Sterck, "Nesterov acceleration of alternating least squares for canonical tensor
    decomposition", Numerical Linear Algebra with Applications 27, 2020). So the objective never rises.

    Parameters
    ----------
    observed : Observed
        X, centred.
    rank : int
        Columns of A and B.
    """

    def __init__(self, observed: Observed, rank: int) -> None:
        self.observed, self.rank = observed, rank

    def started(self, factors: Factors, penalty: float) -> tuple[FloatArray, FloatArray]:
        """Profiles of all columns: those of `factors`, and fresh ones from the residual of what they leave.

        Without fresh ones, directions that a larger lambda has set to 0 would never come back.
        """
        left, right = factors.profiles
        fresh = self.rank - factors.rank
        if fresh <= 0:
            return np.ascontiguousarray(left[:, : self.rank]), np.ascontiguousarray(right[:, : self.rank])
        residual = self.observed.csr(self.observed.value - entries(left, right, self.observed))
        beside = SparsePlusLowRank(residual, -factors.left, residual.T @ factors.left)
        u, d, v = leading_triplets(beside, fresh)
        root = np.sqrt(np.maximum(d - penalty, FAINT * d))
        return np.hstack([left, u * root]), np.hstack([right, v * root])

    def solve(self, start: Factors, penalty: float, *, tol: float, max_iter: int) -> tuple[Factors, list[float], float]:
        """Sweep until the squared relative change of A B' is below `tol`.

        Parameters
        ----------
        start : Factors
            Where to start, of any rank.
        penalty : float
            lambda, > 0.
        tol : float
        max_iter : int
            Largest number of sweeps.

        Returns
        -------
        factors : Factors
            After one more thresholded SVD, of the filled-in matrix in the span of B. So it has exact zeros.
        history : list of float
            The objective after each sweep.
        change : float
            The squared relative change of the last sweep.
        """
        left, right = self.started(start, penalty)
        ahead, age = (left.copy(), right.copy()), 0
        history: list[float] = []
        change = np.inf
        while len(history) < max_iter and change >= tol:
            new, value = self._sweep(ahead, penalty)
            if history and value > history[-1] and age:
                age = 0
                new, value = self._sweep((left.copy(), right.copy()), penalty)
            age += 1
            change = _change(new, (left, right))
            weight = age / (age + 3)
            ahead = new[0] + weight * (new[0] - left), new[1] + weight * (new[1] - right)
            left, right = new
            history.append(value)
        return self._thresholded(left, right, penalty), history, change

    def _sweep(
        self, profiles: tuple[FloatArray, FloatArray], penalty: float
    ) -> tuple[tuple[FloatArray, FloatArray], float]:
        """Improve both sides in place; also gives the objective."""
        left, right = profiles
        observed = self.observed
        improve_side(observed.by_row, observed.by_row.value, right, left, penalty=penalty, steps=STEPS)
        rest = improve_side(observed.by_column, observed.by_column.value, left, right, penalty=penalty, steps=STEPS)
        return (left, right), rest + penalty / 2 * float(np.vdot(left, left))

    def _thresholded(self, left: FloatArray, right: FloatArray, penalty: float) -> Factors:
        basis = np.linalg.qr(right)[0]
        image = filled_in(left, right, self.observed).matmat(basis)
        u, d, vt = np.linalg.svd(image, full_matrices=False)
        passed = d > penalty * (1 + 1e-13)
        return Factors(u[:, passed], d[passed] - penalty, basis @ vt[passed].T)


def filled_in(left: FloatArray, right: FloatArray, observed: Observed) -> SparsePlusLowRank:
    """The observed matrix, with ``left @ right.T`` in its missing cells, as an operator.

    Parameters
    ----------
    left, right : float64, shape (n_rows, rank) and (n_columns, rank)
    observed : Observed
    """
    residual = observed.csr(observed.value - entries(left, right, observed))
    return SparsePlusLowRank(residual, left, right)


def squared_norm(left: FloatArray, right: FloatArray) -> float:
    """Squared Frobenius norm of ``left @ right.T``.

    Parameters
    ----------
    left, right : float64, shape (n_rows, rank) and (n_columns, rank)
    """
    return float(np.vdot(left.T @ left, right.T @ right))


def _change(new: tuple[FloatArray, FloatArray], old: tuple[FloatArray, FloatArray]) -> float:
    """Squared change of A B' relative to what it was; good to about 1e-15."""
    before = squared_norm(*old)
    cross = float(np.vdot(new[0].T @ old[0], new[1].T @ old[1]))
    change = max(squared_norm(*new) + before - 2 * cross, 0.0)
    return change / before if before > 0 else (0.0 if change == 0 else np.inf)
