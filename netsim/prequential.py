"""Each rating that comes is predicted just before the network may learn from it."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from algorithms.compilation import kernel
from algorithms.ratings import Ratings
from algorithms.updates import inner
from netsim.nodes import id_column
from netsim.own import OwnRatings

__all__ = ["Book", "Prequential", "empty_book", "note"]

# A rating that came. All numbers of 8 bytes, so that a table of them has one type a column on every platform.
NOTED = np.dtype(
    [
        ("time", "f8"),
        ("user", "i8"),
        ("profile", "i8"),  # of the item
        ("rating", "f8"),
        ("predicted", "f8"),
        ("item_mean", "f8"),
        ("user_ratings", "i8"),
        ("item_ratings", "i8"),
    ]
)


class Book(NamedTuple):
    """What is known of the ratings so far, and the rows noted.

    Attributes
    ----------
    scale : float64, shape (2,)
        Lowest and highest rating.
    sums : float64, shape (n_users + n_items,)
        Sum of the ratings of each user, and of each item.
    counts : int64, same shape
    total : float64, shape (1,)
        Sum of all.
    number : int64, shape (1,)
    rows : NOTED
        The first `n_rows[0]` are in use.
    n_rows : int64, shape (1,)
    """

    scale: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    total: np.ndarray
    number: np.ndarray
    rows: np.ndarray
    n_rows: np.ndarray


def empty_book() -> Book:
    """A book in which nothing stands."""
    no_sums, no_counts = np.zeros(0), np.zeros(0, dtype=np.int64)
    one_sum, one_count = np.zeros(1), np.zeros(1, dtype=np.int64)
    return Book(np.zeros(2), no_sums, no_counts, one_sum, one_count, np.zeros(0, dtype=NOTED), one_count.copy())


@partial(kernel, inline=False)
def note(book, values, time, user, profile, value, before):
    """Predict a rating of the item with this profile that comes at `time`, or is changed; there is room for the row."""
    n_user, n_item = book.counts[user], book.counts[profile]
    low, high = book.scale[0], book.scale[1]
    middle = (low + high) / 2
    of_all = book.total[0] / book.number[0] if book.number[0] > 0 else middle
    item_mean = book.sums[profile] / n_item if n_item > 0 else of_all
    if n_user > 0 and n_item > 0:
        predicted = inner(values[user], values[profile])
    elif n_user > 0:
        predicted = book.sums[user] / n_user
    elif n_item > 0:
        predicted = item_mean
    else:
        predicted = middle
    row = book.rows[book.n_rows[0]]
    book.n_rows[0] += 1
    if predicted < low:
        predicted = low
    elif predicted > high:
        predicted = high
    row.time, row.user, row.profile, row.rating = time, user, profile, value
    row.predicted, row.item_mean = predicted, item_mean
    row.user_ratings, row.item_ratings = n_user, n_item
    changed = not math.isnan(before)
    change = value - before if changed else value
    book.sums[user] += change
    book.sums[profile] += change
    book.total[0] += change
    if not changed:
        book.counts[user] += 1
        book.counts[profile] += 1
        book.number[0] += 1


class Prequential:
    """Predictions of ratings at the moment they come, and those of a running mean of the item beside them.

    The rule is that of `algorithms.prediction.Predictor`, by what has been given up to that moment: an item without a
    rating is predicted by the user's mean, a user without one is predicted the item's mean, and where both have none
    the middle of the scale is predicted. Clipped to the scale.

    Parameters
    ----------
    ratings : Ratings
        The world's.
    own : OwnRatings
        Those there from the start are known.
    """

    def __init__(self, ratings: Ratings, own: OwnRatings) -> None:
        self._ratings = ratings
        known = own.known
        user = np.repeat(np.arange(len(own.start) - 1), np.diff(own.start))[known]
        side = np.concatenate([user, ratings.n_users + own.item[known]])
        value = own.value[known]
        n_profiles = ratings.n_users + ratings.n_items
        self.book = empty_book()._replace(
            scale=np.array([ratings.scale.low, ratings.scale.high], dtype=np.float64),
            sums=np.bincount(side, weights=np.concatenate([value, value]), minlength=n_profiles),
            counts=np.bincount(side, minlength=n_profiles),
            total=np.array([value.sum()]),
            number=np.array([len(value)]),
        )

    def make_room(self, n: int) -> None:
        """Make room for `n` further rows."""
        needed = int(self.book.n_rows[0]) + n
        if needed > len(self.book.rows):
            rows = np.zeros(max(needed, 2 * len(self.book.rows)), dtype=NOTED)
            rows[: len(self.book.rows)] = self.book.rows
            self.book = self.book._replace(rows=rows)

    def note(self, values: np.ndarray, time: float, user: int, item: int, value: float, before: float) -> None:
        """Predict a rating that comes now, or is changed, and take it into the means.

        Parameters
        ----------
        values : float64, shape (n_profiles, rank)
            The profiles.
        time : float
            Seconds.
        user, item : int
        value, before : float
            The rating, and what it was before; NaN where there was none.
        """
        self.make_room(1)
        note(self.book, values, time, user, self._ratings.n_users + item, value, before)

    def frame(self) -> pd.DataFrame:
        """Tidy table, one rating a row, in the order of arrival.

        Columns: `time` in seconds; `user` and `item` (ids); `rating`; `predicted` by the network just before;
        `item_mean`, what a running mean of the item predicted (of all ratings, where the item had none);
        `user_ratings` and `item_ratings`, how many the two had then.
        """
        rows = self.book.rows[: int(self.book.n_rows[0])]
        table = pd.DataFrame({name: rows[name] for name in rows.dtype.names or ()})
        table = table.rename(columns={"profile": "item"})
        table["item"] -= self._ratings.n_users
        for name, ids in (("user", self._ratings.user_ids), ("item", self._ratings.item_ids)):
            table[name] = id_column([ids[number] for number in table[name].tolist()])
        return table
