"""Stochastic gradient descent on both sides at once, by one machine that sees all ratings."""

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from algorithms import purposes
from algorithms.chance import ROUTER, USER, entity_keys
from algorithms.compilation import kernel
from algorithms.distributions import Distribution, sample_each
from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings
from algorithms.solvers.profiles import ProfileSolver, Sides
from algorithms.updates import inner, learning_rate_at, regularization_at

__all__ = ["StochasticGradientDescent"]


class StochasticGradientDescent(ProfileSolver):
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
        How a profile's rate falls with its own updates. Unlike the network's, it falls by default: at a constant rate
        the order of the ratings moves the objective up and down in the end, and the fit ends there.
    initial : Distribution, optional
        Distribution of the entries of a fresh profile; the network's default.
    tol : float
        A fit ends when an epoch lowers the objective by less than this share of it. It also ends when one raises it,
        but has not converged then: a `ConvergenceWarning` says that `rate` is too high.
    max_epochs : int
        A fit ends after so many epochs, with a `ConvergenceWarning`.
    seed : int or anything `numpy.random.default_rng` takes

    Attributes
    ----------
    user_profiles_, item_profiles_, objective_, n_iter_, converged_
        As in `algorithms.solvers.profiles.ProfileSolver`; a pass is an epoch. Profiles without a rating stay as they
        started.
    """

    _limit, _pass, _remedy = "max_epochs", "an epoch", "max_epochs, rate or tol"

    def __init__(
        self,
        rank: int = 10,
        *,
        lam: float = 0.05,
        regularization: Literal["uniform", "per_message"] = "uniform",
        rate: Distribution | float = 0.02,
        schedule: Schedule = Schedule("inverse", 50.0),  # noqa: B008  # it is frozen
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

    def _learning(self) -> Learning:
        return Learning(
            rank=self.rank,
            lam=self.lam,
            regularization=self.regularization,
            rate=self.rate,
            schedule=self.schedule,
            initial=self.initial,
        )

    def _passes(
        self, ratings: Ratings, profiles: Sides, weights: Sides, *, learning: Learning, seed: np.uint64
    ) -> Iterator[None]:
        # Each item on a router of its own, as in the sequential form.
        hosts = entity_keys(USER, ratings.user_ids), entity_keys(ROUTER, ratings.item_ids)
        rates = tuple(sample_each(learning.rate, seed, purposes.LEARNING_RATE, side) for side in hosts)  # type: ignore[arg-type]
        known = np.diff(ratings.by_user.start), np.diff(ratings.by_item.start)
        updates = np.zeros_like(known[0]), np.zeros_like(known[1])
        cells, rule = (ratings.user, ratings.item, ratings.value), _rule(learning.codes())
        for epoch in itertools.count():
            order = np.random.default_rng([int(seed), epoch]).permutation(len(ratings))
            _epoch(order, cells, profiles, updates, known, rates, *rule)
            yield

    def _ended(self, history: list[float]) -> bool:
        if not np.isfinite(history[-1]):
            raise ValueError(f"rate={self.rate!r} is too high: the profiles overflow in epoch {len(history)}")
        return super()._ended(history)

    def _shortfall(self, history: list[float]) -> str:
        if len(history) < 2 or history[-1] <= history[-2]:
            return super()._shortfall(history)
        return (
            f"{type(self).__name__} stopped after {len(history)} epochs, the last of which raised the objective by a "
            f"share of {history[-1] / history[-2] - 1:.1e}; lower rate, or let it fall with schedule"
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
