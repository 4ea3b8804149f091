"""What is known of the ratings so far, and each that comes noted with its prediction: what kernels need of it."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from algorithms.compilation import kernel
from algorithms.updates import inner

__all__ = ["NOTED", "Book", "empty_book", "note"]

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
