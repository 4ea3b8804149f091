"""The sequential form of section 4 of the first seed paper: one machine, one update at a time.

"It is equivalent to repeatedly sampling a rating x_ij and updating either u_i or v_j (only one of them, not both)."
It is what the network becomes when nothing is delayed, lost or reordered, and tells how much those cost.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, combine, draw, entity_keys, seed_word, uniform
from algorithms.compilation import kernel
from algorithms.distributions import sample_each
from algorithms.learning import Learning, initial_profiles
from algorithms.ratings import Ratings
from algorithms.updates import learning_rate_at, regularization_at, update_item, update_user

__all__ = ["Sequential", "random_order"]


@dataclass
class Sequential:
    """Profiles of all users and items on one machine, updated one at a time.

    Parameters
    ----------
    ratings : Ratings
        The known ratings.
    learning : Learning
    seed : int or anything `numpy.random.default_rng` takes
        Profiles start from the same draws as a network's with this seed.

    Attributes
    ----------
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
    user_updates, item_updates : int64, shape (n_users,) and (n_items,)
        Updates made to each profile so far.
    """

    ratings: Ratings
    learning: Learning
    seed: Any

    def __post_init__(self) -> None:
        ratings, learning = self.ratings, self.learning
        self._seed = seed_word(self.seed)
        user_keys, item_keys = entity_keys(USER, ratings.user_ids), entity_keys(ITEM, ratings.item_ids)
        router_keys = entity_keys(ROUTER, ratings.item_ids)  # each item on a router of its own, as in the paper
        self.user_profiles = initial_profiles(
            user_keys, learning, (ratings.scale.low, ratings.scale.high), seed=self._seed
        )
        self.item_profiles = initial_profiles(
            item_keys, learning, (ratings.scale.low, ratings.scale.high), seed=self._seed
        )
        self.user_updates = np.zeros(ratings.n_users, dtype=np.int64)
        self.item_updates = np.zeros(ratings.n_items, dtype=np.int64)
        self._user_rate = sample_each(learning.rate, self._seed, purposes.LEARNING_RATE, user_keys)  # type: ignore[arg-type]
        self._item_rate = sample_each(learning.rate, self._seed, purposes.LEARNING_RATE, router_keys)  # type: ignore[arg-type]
        self._user_known = np.diff(ratings.by_user.start)
        self._item_known = np.diff(ratings.by_item.start)
        self._done = 0

    def run(self, n_updates: int) -> "Sequential":
        """Make `n_updates` further updates, each of a rating and a side drawn uniformly; returns self."""
        rating, user_side = random_order(len(self.ratings), n_updates, seed=self._seed, first=self._done)
        self._done += n_updates
        return self.replay(rating, user_side)

    def replay(self, rating: np.ndarray, user_side: np.ndarray) -> "Sequential":
        """Make the given updates in the given order; returns self.

        Parameters
        ----------
        rating : int64, shape (n,)
            Positions in the ratings.
        user_side : bool, shape (n,)
            Whether the user's profile is updated, else the item's.
        """
        codes = self.learning.codes()
        _replay(
            rating,
            user_side,
            self.ratings.user,
            self.ratings.item,
            self.ratings.value,
            self.user_profiles,
            self.item_profiles,
            self.user_updates,
            self.item_updates,
            self._user_known,
            self._item_known,
            self._user_rate,
            self._item_rate,
            codes["regularization"],
            codes["lam"],
            codes["schedule"],
            codes["half_life"],
            codes["per_pass"],
        )
        return self


def random_order(n_ratings: int, n_updates: int, *, seed: Any, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ratings and sides drawn uniformly and independently.

    Parameters
    ----------
    n_ratings, n_updates : int
    seed : int or anything `numpy.random.default_rng` takes
    first : int
        Number of the first update that is drawn; the draw of each is its own.

    Returns
    -------
    rating : int64, shape (n_updates,)
    user_side : bool, shape (n_updates,)
    """
    rating = np.empty(n_updates, dtype=np.int64)
    user_side = np.empty(n_updates, dtype=np.bool_)
    _draw_order(seed_word(seed), n_ratings, first, rating, user_side)
    return rating, user_side


@kernel
def _draw_order(seed, n_ratings, first, rating, user_side):
    for n in range(rating.shape[0]):
        word = draw(seed, purposes.SEQUENTIAL, np.uint64(0), first + n)
        rating[n] = np.int64(uniform(word) * n_ratings)
        user_side[n] = combine(word, np.uint64(1)) >> np.uint64(63) == np.uint64(1)


@kernel
def _replay(
    rating,
    user_side,
    user,
    item,
    value,
    user_profiles,
    item_profiles,
    user_updates,
    item_updates,
    user_known,
    item_known,
    user_rate,
    item_rate,
    regularization,
    lam,
    schedule,
    half_life,
    per_pass,
):
    for n in range(rating.shape[0]):
        i, j, x = user[rating[n]], item[rating[n]], value[rating[n]]
        if user_side[n]:
            eta = learning_rate_at(schedule, user_rate[i], half_life, per_pass, user_updates[i], user_known[i])
            weight = regularization_at(regularization, lam, user_known[i])
            update_user(user_profiles[i], item_profiles[j], x, eta, weight)
            user_updates[i] += 1
        else:
            eta = learning_rate_at(schedule, item_rate[j], half_life, per_pass, item_updates[j], item_known[j])
            weight = regularization_at(regularization, lam, item_known[j])
            update_item(item_profiles[j], user_profiles[i], x, eta, weight)
            item_updates[j] += 1
