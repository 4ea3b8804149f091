"""Alternating least squares: objective (1) of the first seed paper, minimized by one machine that sees all ratings."""

import math
import warnings
from typing import Any, Literal

import numpy as np

from algorithms.chance import ITEM, USER, entity_keys, seed_word
from algorithms.compilation import kernel
from algorithms.learning import Learning, initial_profiles
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings, Rows
from algorithms.solvers.base import Solver
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.updates import inner

__all__ = ["AlternatingLeastSquares"]


class AlternatingLeastSquares(Solver):
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
    user_profiles_ : float64, shape (n_users, rank)
    item_profiles_ : float64, shape (n_items, rank)
        Those of users and items without a rating are zero.
    objective_ : float64, shape (n_iter_,)
        The objective after each sweep.
    n_iter_ : int
        Sweeps made.
    converged_ : bool
    """

    user_profiles_: np.ndarray
    item_profiles_: np.ndarray
    objective_: np.ndarray
    n_iter_: int
    converged_: bool

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

    def fit(self, ratings: Ratings) -> "AlternatingLeastSquares":
        """Fit the profiles; returns the solver.

        Parameters
        ----------
        ratings : Ratings
            The known ratings.

        Raises
        ------
        ValueError
            If an argument is out of range; the message names it.
        """
        self._check(ratings)
        by_user, by_item = ratings.by_user, ratings.by_item
        user_weight, item_weight = self._weights(by_user), self._weights(by_item)
        users, items = self._start(ratings)
        history: list[float] = []
        converged = False
        while not converged and len(history) < self.max_sweeps:
            _solve_side(by_user, items, user_weight, users)
            _solve_side(by_item, users, item_weight, items)
            history.append(_weighted_objective(users, items, ratings, user_weight, item_weight))
            converged = len(history) > 1 and history[-2] - history[-1] <= self.tol * history[-2]
        if not converged:
            warnings.warn(_not_converged(history, self.max_sweeps, self.tol), ConvergenceWarning, stacklevel=2)
        self.user_profiles_, self.item_profiles_ = users, items
        self.objective_, self.n_iter_, self.converged_ = np.array(history), len(history), converged
        self._predictor = {clip: Predictor(ratings, clip=clip) for clip in (True, False)}
        return self

    def predict(self, users: np.ndarray, items: np.ndarray, *, clip: bool = True) -> np.ndarray:
        """Predicted ratings of pairs, float64, shape (n,), by the rules of `algorithms.prediction.Predictor`.

        Parameters
        ----------
        users, items : int, shape (n,)
            Indices of the pairs, as in the ratings that were fitted.
        clip : bool
            Whether predictions are clipped to the rating scale.

        Raises
        ------
        ValueError
            If the solver is not fitted, or indices do not fit what it was fitted to.
        """
        if not hasattr(self, "user_profiles_"):
            raise ValueError("the solver has no profiles yet; call fit(ratings) first")
        user = _indices("users", users, len(self.user_profiles_))
        item = _indices("items", items, len(self.item_profiles_))
        if len(user) != len(item):
            raise ValueError(f"users and items must be of one length, got {len(user)} and {len(item)}")
        return self._predictor[bool(clip)](self.user_profiles_, self.item_profiles_, user, item)

    def __repr__(self) -> str:
        return f"AlternatingLeastSquares(rank={self.rank}, lam={self.lam:g}, regularization={self.regularization!r})"

    def _check(self, ratings: Ratings) -> None:
        if not isinstance(ratings, Ratings):
            raise ValueError(
                f"ratings must be a Ratings, got {type(ratings).__name__}; make one with Ratings.from_arrays"
            )
        self._learning()  # checks rank, lam and regularization
        if not self.lam > 0:
            raise ValueError(
                f"lam must be > 0, got {self.lam!r}; "
                "without it a profile with fewer ratings than its length has no unique solution"
            )
        if not 0 <= self.tol < 1:
            raise ValueError(f"tol must be in [0, 1), got {self.tol!r}")
        if not isinstance(self.max_sweeps, int | np.integer) or self.max_sweeps < 1:
            raise ValueError(f"max_sweeps must be an integer >= 1, got {self.max_sweeps!r}")

    def _learning(self) -> Learning:
        return Learning(rank=self.rank, lam=self.lam, regularization=self.regularization)

    def _weights(self, rows: Rows) -> np.ndarray:
        known = np.diff(rows.start)
        return self.lam * (known if self.regularization == "per_message" else np.ones(len(known)))

    def _start(self, ratings: Ratings) -> tuple[np.ndarray, np.ndarray]:
        scale, seed = (ratings.scale.low, ratings.scale.high), seed_word(self.seed)
        keys = entity_keys(USER, ratings.user_ids), entity_keys(ITEM, ratings.item_ids)
        users, items = (initial_profiles(side, self._learning(), scale, seed=seed) for side in keys)
        return users, items


def _weighted_objective(
    users: np.ndarray, items: np.ndarray, ratings: Ratings, user_weight: np.ndarray, item_weight: np.ndarray
) -> float:
    penalty = user_weight @ (users**2).sum(axis=1) + item_weight @ (items**2).sum(axis=1)
    return objective(users, items, ratings, 0.0) + float(penalty)


def _not_converged(history: list[float], max_sweeps: int, tol: float) -> str:
    last = (history[-2] - history[-1]) / history[-2] if len(history) > 1 else math.inf
    return (
        f"alternating least squares stopped after max_sweeps={max_sweeps}, where a sweep still lowered the objective "
        f"by a share of {last:.1e} (tol={tol:.1e}); raise max_sweeps or tol"
    )


def _indices(name: str, given: np.ndarray, n: int) -> np.ndarray:
    indices = np.asarray(given)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{name} must be integers of shape (n,), got {indices.dtype} of shape {indices.shape}")
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        outside = indices[(indices < 0) | (indices >= n)][0]
        raise ValueError(f"{name} must be indices from 0 to {n - 1}, got {outside}; pass indices, not ids")
    return indices.astype(np.int64)


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
