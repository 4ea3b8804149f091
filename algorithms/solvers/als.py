"""Alternating least squares: objective (1) of the first seed paper, minimized by one machine that sees all ratings."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from algorithms.compilation import kernel
from algorithms.learning import Learning
from algorithms.ratings import Ratings, Rows
from algorithms.solvers.profiles import ProfileSolver, Sides
from algorithms.updates import inner

__all__ = ["AlternatingLeastSquares"]


class AlternatingLeastSquares(ProfileSolver):
    """Profiles that minimize the regularized squared error on the known ratings, one side at a time.

    It minimizes

        sum over known (i, j) of (u_i'v_j - x_ij)^2  +  sum_i w_i ||u_i||^2  +  sum_j w_j ||v_j||^2

    With `regularization="uniform"` all weights are `lam`, and this is objective (1) of the first seed paper. With
    `"per_message"`, w_i is `lam` times the number of ratings of user i (w_j: of item j), which is what equations (3)
    and (4) of the paper pull towards, and the ALS-WR of Zhou, Wilkinson, Schreiber and Pan, "Large-scale parallel
    collaborative filtering for the Netflix Prize" (AAIM 2008). So the network, the sequential form and this solver
    have the same stationary points, for the same arguments.

    For fixed v_j the best u_i solves the normal equations

        (sum_j v_j v_j' + w_i I) u_i = sum_j x_ij v_j

    A sweep solves them for all users, then those of the items. No step can raise the objective.

    Parameters
    ----------
    rank : int
        Length of a profile.
    lam : float
        Weight lambda of the regularization, > 0.
    regularization : {"uniform", "per_message"}
    tol : float
        A fit ends when a sweep lowers the objective by less than this share of it.
    max_sweeps : int
        A fit ends after so many sweeps, with a `ConvergenceWarning`.
    seed : int or anything `numpy.random.default_rng` takes
        Profiles start from the same draws as a network's with this seed.

    Attributes
    ----------
    user_profiles_, item_profiles_, objective_, n_iter_, converged_
        As in `algorithms.solvers.profiles.ProfileSolver`; a pass is a sweep. Profiles without a rating are zero.
    """

    _limit, _pass, _remedy = "max_sweeps", "a sweep", "max_sweeps or tol"

    def __init__(
        self,
        rank: int = 10,
        *,
        lam: float = 0.05,
        regularization: Literal["uniform", "per_message"] = "uniform",
        tol: float = 1e-6,
        max_sweeps: int = 1000,
        seed: Any = 0,
    ) -> None:
        self.rank = rank
        self.lam = lam
        self.regularization = regularization
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.seed = seed

    def __repr__(self) -> str:
        return f"AlternatingLeastSquares(rank={self.rank}, lam={self.lam:g}, regularization={self.regularization!r})"

    def _learning(self) -> Learning:
        learning = Learning(rank=self.rank, lam=self.lam, regularization=self.regularization)
        if not self.lam > 0:
            raise ValueError(
                f"lam must be > 0, got {self.lam!r}; "
                "without it a profile with fewer ratings than its length has no unique solution"
            )
        return learning

    def _passes(
        self, ratings: Ratings, profiles: Sides, weights: Sides, *, learning: Learning, seed: np.uint64
    ) -> Iterator[None]:
        users, items = profiles
        while True:
            _solve_side(ratings.by_user, items, weights[0], users)
            _solve_side(ratings.by_item, users, weights[1], items)
            yield


def _solve_side(rows: Rows, others: np.ndarray, weight: np.ndarray, own: np.ndarray) -> None:
    """Put into `own` the profiles that are best for the profiles `others` of the other side."""
    rank = own.shape[1]
    _solve(rows.start, rows.index, rows.value, others, weight, own, np.empty((rank, rank)))


@kernel
def _solve(start, index, value, others, weight, own, gram):
    """Solve the normal equations of each profile of one side; `gram` is room for their matrix."""
    rank = own.shape[1]
    for i in range(own.shape[0]):
        u = own[i]
        u[:] = 0.0
        if start[i] == start[i + 1]:
            continue
        gram[:, :] = 0.0
        for n in range(start[i], start[i + 1]):
            v = others[index[n]]
            for k in range(rank):
                u[k] += value[n] * v[k]
                for c in range(k + 1):
                    gram[k, c] += v[k] * v[c]
        for k in range(rank):
            gram[k, k] += weight[i]
        _cholesky_solve(gram, u)


@kernel
def _cholesky_solve(gram, b):
    """Solve gram x = b in place; `gram` is symmetric positive definite, and only its lower triangle is read."""
    rank = b.shape[0]
    for k in range(rank):
        for c in range(k):
            gram[k, c] = (gram[k, c] - inner(gram[k, :c], gram[c, :c])) / gram[c, c]
        gram[k, k] = math.sqrt(gram[k, k] - inner(gram[k, :k], gram[k, :k]))
        b[k] = (b[k] - inner(gram[k, :k], b[:k])) / gram[k, k]
    for k in range(rank - 1, -1, -1):
        for c in range(k + 1, rank):
            b[k] -= gram[c, k] * b[c]
        b[k] /= gram[k, k]
