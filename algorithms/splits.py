"""Splits of ratings into a part to learn from and a part to test on: random, k-fold, by time.

Both parts keep every id, so indices line up. The draws go by the canonical order of `Ratings`, so the order of the
input has no part in them. Official folds are `Ratings.split`.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from algorithms.ratings import Ratings

__all__ = ["holdout", "k_fold", "leave_last_out"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def holdout(
    ratings: Ratings,
    *,
    seed: Any,
    share: float = 0.1,
    by: Literal["rating", "user"] = "rating",
    keep_known: bool = False,
) -> tuple[Ratings, Ratings]:
    """Hold out a share of the ratings at random.

    Parameters
    ----------
    ratings : Ratings
        What to split.
    seed : int or anything `numpy.random.default_rng` takes
    share : float
        Share of the ratings to test on, in (0, 1); rounded to whole ratings, halves up.
    by : {"rating", "user"}
        "rating": the share is one of all ratings, each as likely as any other. "user": it is one of each user's own
        ratings, and each user keeps at least one to learn from.
    keep_known : bool
        Whether each user and each item with a rating keeps one to learn from, so that the test asks for nobody who
        is unknown. These are drawn first, and only the others can be test ratings; with `by` "user", a user who has
        too few others gives fewer.

    Returns
    -------
    train, test : Ratings

    Raises
    ------
    ValueError
        If an argument is out of range, or one of the parts would be empty; the message names it.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be in (0, 1), got {share!r}; pass a fraction, not a percentage")
    if by not in ("rating", "user"):
        raise ValueError(f"by must be 'rating' or 'user', got {by!r}")
    order = np.random.default_rng(seed).permutation(ratings.n_ratings)
    free = np.ones(ratings.n_ratings, dtype=bool)
    if keep_known:
        for side in (ratings.user, ratings.item):
            free[order[np.unique(side[order], return_index=True)[1]]] = False
    order = np.concatenate([order[free[order]], order[~free[order]]])
    counts = _counts(ratings)
    if by == "user":
        wanted = np.minimum(_rounded(share * counts), counts - 1)[ratings.user]
        held_out = free & (_ranks(ratings.user, order) < wanted)
    else:
        n_test = int(_rounded(share * ratings.n_ratings))
        held_out = _ranks(np.zeros_like(ratings.user), order) < n_test
        if keep_known and n_test > free.sum():
            raise ValueError(
                f"share={share} asks for {n_test} of {ratings.n_ratings} test ratings, but keep_known leaves only "
                f"{free.sum()}; pass a smaller share"
            )
    return _parts(ratings, held_out, f"share={share} of {ratings.n_ratings} ratings, by {by}")


def k_fold(ratings: Ratings, *, seed: Any, k: int = 5) -> Iterator[tuple[Ratings, Ratings]]:
    """Split k times, so that each rating is tested on once.

    Parameters
    ----------
    ratings : Ratings
        What to split.
    seed : int or anything `numpy.random.default_rng` takes
    k : int
        Number of folds, from 2 to the number of ratings. Their sizes differ by one at most.

    Yields
    ------
    train, test : Ratings
        All ratings outside a fold, and those in it.

    Raises
    ------
    ValueError
        If `k` is out of range; at the call, before the first pair is asked for.
    """
    if not _is_integer(k) or not 2 <= k <= ratings.n_ratings:
        raise ValueError(f"k must be an integer from 2 to the number of ratings, {ratings.n_ratings}, got {k!r}")
    fold = np.random.default_rng(seed).permutation(ratings.n_ratings) % k
    return ((ratings.select(fold != number), ratings.select(fold == number)) for number in range(k))


def leave_last_out(ratings: Ratings, *, n: int = 1) -> tuple[Ratings, Ratings]:
    """Hold out the last ratings of each user by time, as if the future were to be foretold.

    Parameters
    ----------
    ratings : Ratings
        What to split, with timestamps.
    n : int
        How many of each user. Users with `n` ratings or fewer keep all of theirs to learn from. Of ratings with the
        same timestamp, that of the item with the higher index counts as the later.

    Returns
    -------
    train, test : Ratings

    Raises
    ------
    ValueError
        If there are no timestamps, `n` is out of range, or no user has more than `n` ratings.
    """
    if ratings.timestamp is None:
        raise ValueError("ratings must have timestamps, got none; pass timestamps= to Ratings.from_arrays")
    if not _is_integer(n) or n < 1:
        raise ValueError(f"n must be an integer >= 1, got {n!r}")
    counts = _counts(ratings)
    if n >= counts.max():
        raise ValueError(f"n must be below {counts.max()}, the most ratings that a user has, got {n}")
    latest_first = np.lexsort((ratings.item, ratings.timestamp))[::-1]
    held_out = (_ranks(ratings.user, latest_first) < n) & (counts > n)[ratings.user]
    return ratings.select(~held_out), ratings.select(held_out)


def _parts(ratings: Ratings, held_out: BoolArray, asked: str) -> tuple[Ratings, Ratings]:
    if held_out.all() or not held_out.any():
        part = "training" if held_out.all() else "test"
        raise ValueError(f"both parts must hold ratings, got {asked}: no {part} rating is left")
    return ratings.select(~held_out), ratings.select(held_out)


def _counts(ratings: Ratings) -> IntArray:
    """Number of ratings of each user."""
    return np.bincount(ratings.user, minlength=ratings.n_users)


def _rounded(number: Any) -> IntArray:
    return np.floor(np.asarray(number) + 0.5).astype(np.int64)


def _ranks(groups: IntArray, order: IntArray) -> IntArray:
    """How many ratings of its own group stand before each one in an order."""
    by_group = order[np.argsort(groups[order], kind="stable")]
    counts = np.bincount(groups)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[by_group] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ranks


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
