"""The ratings that users hold, those that are still to come included: looked up, given, changed."""

import numpy as np

from algorithms.ratings import Ratings

__all__ = ["OwnRatings"]


class OwnRatings:
    """Each user's own ratings, ascending by (user, item); grows where a script adds a pair that nobody foresaw.

    Parameters
    ----------
    ratings : Ratings
        All that the world foresees.
    known : bool, shape (n_ratings,)
        Which of them are there from the start.

    Attributes
    ----------
    start : int64, shape (n_users + 1,)
    item : int64, shape (n,)
    value : float64, shape (n,)
    known : bool, shape (n,)
    revision : int64, shape (n,)
        The user's count when the rating was given or changed last; 0 for those from the start.
    foreseen : bool, shape (n,)
        Which stand in the world's ratings, in the same order.
    """

    def __init__(self, ratings: Ratings, known: np.ndarray) -> None:
        self._n_items = ratings.n_items
        self.start = np.array(ratings.by_user.start)
        self.item = np.array(ratings.by_user.index)
        self.value = np.array(ratings.by_user.value)
        self.known = np.array(known, dtype=bool)
        self.revision = np.zeros(len(self.item), dtype=np.int64)
        self.foreseen = np.ones(len(self.item), dtype=bool)
        self._key_pairs()

    def _key_pairs(self) -> None:
        user = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        self._pairs = user * self._n_items + self.item

    def position(self, user: int, item: int) -> int | None:
        """Number of a pair, known or still to come; None where it is not there."""
        first, last = int(self.start[user]), int(self.start[user + 1])
        place = first + int(np.searchsorted(self.item[first:last], item))
        return place if place < last and self.item[place] == item else None

    def positions(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        """Numbers of pairs, known or still to come, int64; -1 where one is not there."""
        if len(self.item) == 0:
            return np.full(len(user), -1)
        wanted = user * self._n_items + item
        position = np.minimum(np.searchsorted(self._pairs, wanted), len(self._pairs) - 1)
        return np.where(self._pairs[position] == wanted, position, -1)

    def insert(self, user: int, item: int) -> int:
        """Make room for a pair that is not there; returns its number. All after it move up by one."""
        first, last = int(self.start[user]), int(self.start[user + 1])
        place = first + int(np.searchsorted(self.item[first:last], item))
        self.start[user + 1 :] += 1
        for name, value in (("item", item), ("value", 0.0), ("known", False), ("revision", 0), ("foreseen", False)):
            setattr(self, name, np.insert(getattr(self, name), place, value))
        self._key_pairs()
        return place

    def lookup(self, user: np.ndarray, item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user has rated each item, and the rating (0 where he has not)."""
        if len(self.item) == 0:
            return np.zeros(len(user), dtype=bool), np.zeros(len(user))
        position = self.positions(user, item)
        known = (position >= 0) & self.known[position]
        return known, np.where(known, self.value[position], 0.0)
