"""What the solvers of the network's model share: its start, objective and predictions, and how a fit ends."""

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.chance import ITEM, USER, entity_keys, seed_word
from algorithms.learning import Learning, initial_profiles
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.solvers.base import Solver, check_count
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.observed import Observed, as_observed

__all__ = ["ProfileSolver", "Sides", "as_ratings"]

FloatArray = NDArray[np.float64]
Sides = tuple[FloatArray, FloatArray]  # of users, of items


class ProfileSolver(Solver, ABC):
    """A solver of the network's model: profiles of users and items, improved pass by pass from the network's start.

    A solver of this kind says what a pass does, and what its arguments of `algorithms.learning.Learning` are.

    Attributes
    ----------
    user_profiles_ : float64, shape (n_users, rank)
    item_profiles_ : float64, shape (n_items, rank)
    objective_ : float64, shape (n_iter_,)
        Squared error plus penalties after each pass.
    n_iter_ : int
        Passes made.
    converged_ : bool
    """

    user_profiles_: FloatArray
    item_profiles_: FloatArray
    objective_: FloatArray
    n_iter_: int
    converged_: bool

    rank: int
    lam: float
    regularization: Literal["uniform", "per_message"]
    tol: float
    seed: Any

    _limit: ClassVar[str]  # the argument that limits the passes
    _pass: ClassVar[str]  # what a pass is called
    _remedy: ClassVar[str]  # what to raise where the passes did not suffice

    def fit(self, X: Any, *, mask: Any = None) -> Self:
        """Fit the profiles; returns the solver.

        Parameters
        ----------
        X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
            The known ratings. Where they are no `Ratings`, their lowest and highest value are the scale.
        mask : array_like or sparse of bool, optional
            True where a cell is observed.

        Raises
        ------
        ValueError
            If an argument is out of range, or the profiles overflow; the message names it.
        TypeError
            If X is of another kind.
        """
        learning = self._learning()
        if not (isinstance(self.tol, int | float | np.number) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be in [0, 1), got {self.tol!r}")
        check_count(self._limit, getattr(self, self._limit))
        ratings = as_ratings(X, mask=mask)
        seed, scale = seed_word(self.seed), (ratings.scale.low, ratings.scale.high)
        keys = entity_keys(USER, ratings.user_ids), entity_keys(ITEM, ratings.item_ids)
        users, items = (initial_profiles(side, learning, scale, seed=seed) for side in keys)
        weights = self._weights(ratings.by_user.start), self._weights(ratings.by_item.start)
        history: list[float] = []
        passes = self._passes(ratings, (users, items), weights, learning=learning, seed=seed)
        for _ in itertools.islice(passes, getattr(self, self._limit)):
            penalties = (float(w @ (side**2).sum(axis=1)) for w, side in zip(weights, (users, items), strict=True))
            history.append(objective(users, items, ratings, 0.0) + sum(penalties))
            if self._ended(history):
                break
        shortfall = self._shortfall(history)
        if shortfall:
            warnings.warn(shortfall, ConvergenceWarning, stacklevel=2)
        self.user_profiles_, self.item_profiles_ = users, items
        self.objective_, self.n_iter_, self.converged_ = np.array(history), len(history), not shortfall
        self._observed = as_observed(ratings)
        self._predictor = {clip: Predictor(ratings, clip=clip) for clip in (True, False)}
        return self

    def predict(self, users: ArrayLike, items: ArrayLike, *, clip: bool = True) -> FloatArray:
        """Predicted ratings of pairs, float64, shape (n,), by the rules of `algorithms.prediction.Predictor`.

        Parameters
        ----------
        users, items : int, shape (n,)
            Indices of the pairs. What is known of a pair has no part in its prediction.
        clip : bool
            Whether predictions are clipped to the rating scale.

        Raises
        ------
        ValueError
            If the solver is not fitted, or an index is out of range.
        """
        user, item = self._fitted().pairs(users, items)
        return self._predictor[bool(clip)](self.user_profiles_, self.item_profiles_, user, item)

    def complete(self) -> FloatArray:
        """The completed matrix, float64, shape (n_users, n_items); known ratings stay, all else is predicted."""
        observed = self._fitted()
        user, item = np.divmod(np.arange(np.prod(observed.shape)), observed.n_columns)
        filled = self._predictor[True](self.user_profiles_, self.item_profiles_, user, item).reshape(observed.shape)
        filled[observed.row, observed.column] = observed.value
        return filled

    @abstractmethod
    def _learning(self) -> Learning:
        """Rank, lambda, regularization and what else the solver has of `Learning`, checked."""

    @abstractmethod
    def _passes(
        self, ratings: Ratings, profiles: Sides, weights: Sides, *, learning: Learning, seed: np.uint64
    ) -> Iterator[None]:
        """Improve the profiles in place, a pass at each step. `weights` are those of their penalties."""

    def _ended(self, history: list[float]) -> bool:
        return len(history) > 1 and history[-2] - history[-1] <= self.tol * history[-2]

    def _shortfall(self, history: list[float]) -> str:
        """What keeps the fit from having converged; empty where nothing does."""
        if self._ended(history):
            return ""
        last = (history[-2] - history[-1]) / history[-2] if len(history) > 1 else np.inf
        return (
            f"{type(self).__name__} stopped after {self._limit}={len(history)}, where {self._pass} still lowered the "
            f"objective by a share of {last:.1e} (tol={self.tol:.1e}); raise {self._remedy}"
        )

    def _weights(self, start: NDArray[np.int64]) -> FloatArray:
        """Weight of each profile's penalty, by the bounds of its ratings."""
        known = np.diff(start)
        return np.asarray(self.lam * (known if self.regularization == "per_message" else known > 0), dtype=np.float64)

    def _fitted(self) -> Observed:
        if not hasattr(self, "user_profiles_"):
            raise ValueError("the solver has no profiles yet; call fit(X) first")
        return self._observed


def as_ratings(X: Any, *, mask: Any = None) -> Ratings:
    """Give the observed cells as `Ratings`; ids are row and column indices where `X` is no `Ratings`.

    Parameters
    ----------
    X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
    mask : array_like or sparse of bool, optional
        True where a cell is observed.
    """
    observed = as_observed(X, mask=mask)
    if isinstance(X, Ratings):
        return X
    return Ratings.from_arrays(
        observed.row,
        observed.column,
        observed.value,
        user_ids=range(observed.n_rows),
        item_ids=range(observed.n_columns),
    )
