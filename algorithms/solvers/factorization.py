"""Stochastic gradient descent on both sides at once, by one machine that sees all ratings."""

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys, seed_word
from algorithms.compilation import kernel
from algorithms.distributions import Distribution, sample_each
from algorithms.learning import Learning, Schedule, initial_profiles
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.solvers.base import Solver
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.observed import Observed, as_observed
from algorithms.updates import inner, learning_rate_at, regularization_at

__all__ = ["StochasticGradientDescent", "as_ratings"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class StochasticGradientDescent(Solver):
    """Profiles by the network's own updates, but with both sides of a rating moved at once, and nothing in between.

    An epoch goes through all ratings in random order. A rating moves both profiles, each by what the other one was
    before, by equations (3) and (4) of the first seed paper:

        e = u_i'v_j - x_ij
        u_i <- u_i - eta_i (e v_j + lambda_i u_i)
        v_j <- v_j - eta_j (e u_i + lambda_j v_j)

    It is the usual centralized factorization (Koren, Bell and Volinsky, IEEE Computer 42, 2009), and has the same
    start, learning rates, schedules and regularization as a network with these arguments and this seed.

    Parameters
    ----------
    rank : int
        Length of a profile.
    lam : float
        Weight lambda of the regularization, >= 0.
    regularization : {"uniform", "per_message"}
        As in `algorithms.learning.Learning`. With "uniform" it descends objective (1) of that paper.
    rate : float or Distribution
        Initial learning rate; a distribution draws one for each profile.
    schedule : Schedule
        How a profile's rate falls with its own updates.
    initial : Distribution, optional
        Distribution of the entries of a fresh profile; the network's default.
    tol : float
        A fit ends when an epoch lowers the objective by less than this share of it.
    max_epochs : int
        A fit ends after so many epochs, with a `ConvergenceWarning`.
    seed : int or anything `numpy.random.default_rng` takes

    Attributes
    ----------
    user_profiles_ : float64, shape (n_users, rank)
    item_profiles_ : float64, shape (n_items, rank)
        Those of users and items without a rating are as they started.
    objective_ : float64, shape (n_iter_,)
        Squared error plus penalties after each epoch, as in `AlternatingLeastSquares`.
    n_iter_ : int
        Epochs made.
    converged_ : bool
    """

    user_profiles_: FloatArray
    item_profiles_: FloatArray
    objective_: FloatArray
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        rank: int = 10,
        *,
        lam: float = 0.05,
        regularization: Literal["uniform", "per_message"] = "uniform",
        rate: Distribution | float = 0.02,
        schedule: Schedule = Schedule(),  # noqa: B008  # it is frozen
        initial: Distribution | None = None,
        tol: float = 1e-4,
        max_epochs: int = 500,
        seed: Any = 0,
    ) -> None:
        self.rank = rank
        self.lam = lam
        self.regularization = regularization
        self.rate = rate
        self.schedule = schedule
        self.initial = initial
        self.tol = tol
        self.max_epochs = max_epochs
        self.seed = seed

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
            If an argument is out of range, or the rate is so high that the profiles overflow.
        """
        learning = self._checked()
        ratings = as_ratings(X, mask=mask)
        seed = seed_word(self.seed)
        keys = entity_keys(USER, ratings.user_ids), entity_keys(ITEM, ratings.item_ids)
        scale = ratings.scale.low, ratings.scale.high
        profiles = tuple(initial_profiles(side, learning, scale, seed=seed) for side in keys)
        # Each item on a router of its own, as in the sequential form.
        hosts = keys[0], entity_keys(ROUTER, ratings.item_ids)
        rates = tuple(sample_each(learning.rate, seed, purposes.LEARNING_RATE, side) for side in hosts)  # type: ignore[arg-type]
        known = np.diff(ratings.by_user.start), np.diff(ratings.by_item.start)
        updates = np.zeros_like(known[0]), np.zeros_like(known[1])
        codes = learning.codes()
        history: list[float] = []
        converged = False
        while not converged and len(history) < self.max_epochs:
            order = np.random.default_rng([int(seed), len(history)]).permutation(len(ratings))
            cells = ratings.user, ratings.item, ratings.value
            _epoch(order, cells, profiles, updates, known, rates, *_rule(codes))
            history.append(self._objective(profiles, ratings, known))
            if not np.isfinite(history[-1]):
                raise ValueError(f"rate={self.rate!r} is too high: the profiles overflow in epoch {len(history)}")
            converged = len(history) > 1 and history[-2] - history[-1] <= self.tol * history[-2]
        if not converged:
            warnings.warn(self._not_converged(history), ConvergenceWarning, stacklevel=2)
        self.user_profiles_, self.item_profiles_ = profiles
        self.objective_, self.n_iter_, self.converged_ = np.array(history), len(history), converged
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

    def _fitted(self) -> Observed:
        if not hasattr(self, "user_profiles_"):
            raise ValueError("the solver has no profiles yet; call fit(X) first")
        return self._observed

    def _checked(self) -> Learning:
        if not (isinstance(self.tol, int | float | np.number) and 0 <= self.tol < 1):
            raise ValueError(f"tol must be in [0, 1), got {self.tol!r}")
        whole = isinstance(self.max_epochs, int | np.integer) and not isinstance(self.max_epochs, bool)
        if not (whole and self.max_epochs >= 1):
            raise ValueError(f"max_epochs must be an integer >= 1, got {self.max_epochs!r}")
        return Learning(
            rank=self.rank,
            lam=self.lam,
            regularization=self.regularization,
            rate=self.rate,
            schedule=self.schedule,
            initial=self.initial,
        )

    def _objective(self, profiles: tuple[FloatArray, ...], ratings: Ratings, known: tuple[IntArray, IntArray]) -> float:
        weights = [self.lam * (count if self.regularization == "per_message" else count > 0) for count in known]
        penalty = sum(float(weight @ (side**2).sum(axis=1)) for weight, side in zip(weights, profiles, strict=True))
        return objective(profiles[0], profiles[1], ratings, 0.0) + penalty

    def _not_converged(self, history: list[float]) -> str:
        last = (history[-2] - history[-1]) / history[-2] if len(history) > 1 else float("inf")
        return (
            f"stochastic gradient descent stopped after max_epochs={self.max_epochs}, where an epoch still lowered the "
            f"objective by a share of {last:.1e} (tol={self.tol:.1e}); raise max_epochs, rate or tol"
        )


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


def _rule(codes: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(codes[name] for name in ("regularization", "lam", "schedule", "half_life", "per_pass"))


@kernel
def _epoch(order, cells, profiles, updates, known, rates, regularization, lam, schedule, half_life, per_pass):
    """Move both profiles of each rating, in the given order."""
    user, item, value = cells
    user_profiles, item_profiles = profiles
    user_updates, item_updates = updates
    user_known, item_known = known
    user_rate, item_rate = rates
    for n in order:
        i, j = user[n], item[n]
        u, v = user_profiles[i], item_profiles[j]
        user_eta = learning_rate_at(schedule, user_rate[i], half_life, per_pass, user_updates[i], user_known[i])
        item_eta = learning_rate_at(schedule, item_rate[j], half_life, per_pass, item_updates[j], item_known[j])
        user_lam = regularization_at(regularization, lam, user_known[i])
        item_lam = regularization_at(regularization, lam, item_known[j])
        error = inner(u, v) - value[n]
        for k in range(u.shape[0]):
            before = u[k]
            u[k] = before - user_eta * (error * v[k] + user_lam * before)
            v[k] = v[k] - item_eta * (error * before + item_lam * v[k])
        user_updates[i] += 1
        item_updates[j] += 1
