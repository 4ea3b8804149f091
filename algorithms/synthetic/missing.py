"""Which ratings are missing: at random, or the more the less popular an item is.

Section 3.2 of the second seed paper. A mask is True where a rating is missing.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.synthetic.checks import check_integer, check_share

__all__ = ["missing_completely_at_random", "missing_not_at_random", "missing_shares"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
ROUNDING = 1e-9  # shares such as 0.29 are not exact: 100 * 0.29 is a little below 29 and must count as 29


def missing_not_at_random(
    shifts: ArrayLike, n_users: int, *, seed: Any, low: float = 0.4, high: float = 0.99
) -> BoolArray:
    """Delete ratings of unpopular items more often.

    Of each item, floor(share * n_users) ratings are missing, with the shares of `missing_shares`; within an item, each
    user's is as likely as any other's.

    Parameters
    ----------
    shifts : array_like of float, shape (n_items,)
        Mean shift of each item; not all the same.
    n_users : int
    seed : int or anything `numpy.random.default_rng` takes
    low, high : float
        Share missing of the item with the largest shift, and of the one with the smallest; 0 <= low <= high < 1.

    Returns
    -------
    bool, shape (n_users, n_items)
        True where a rating is missing.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    check_integer("n_users", n_users, low=1, mend="pass the number of rows of the mask")
    shares = missing_shares(shifts, low=low, high=high)
    counts = np.floor(shares * n_users + ROUNDING)
    keys = np.random.default_rng(seed).random((n_users, len(shares)))
    orders = keys.argsort(axis=0, kind="stable")  # of each item, a random order of 0, 1, ..., n_users - 1
    return orders < counts


def missing_shares(shifts: ArrayLike, *, low: float = 0.4, high: float = 0.99) -> FloatArray:
    """Map negated mean shifts onto [low, high].

    The paper does not say from where. As in its authors' code, it is from the range of the shifts that were drawn: the
    most popular item has `low` and the least popular one `high`, exactly.

    Parameters
    ----------
    shifts : array_like of float, shape (n_items,)
    low, high : float
        0 <= low <= high < 1.

    Returns
    -------
    float64, shape (n_items,)
        Share of each item's ratings that is missing.

    Raises
    ------
    ValueError
        If an argument is out of range, or all shifts are the same.
    """
    check_share("low", low, open_ends="high")
    check_share("high", high, low=low, open_ends="high")
    unpopular = -np.asarray(shifts, dtype=np.float64)
    if unpopular.ndim != 1 or not np.isfinite(unpopular).all():
        raise ValueError(
            f"shifts must be finite numbers of shape (n_items,), got shape {unpopular.shape}; pass one each"
        )
    if unpopular.size == 0 or unpopular.min() == unpopular.max():
        raise ValueError(
            f"shifts must differ between items, got {unpopular.size} of one value; their range is mapped onto "
            "[low, high]; use missing_completely_at_random where all items are alike"
        )
    position = (unpopular - unpopular.min()) / (unpopular.max() - unpopular.min())
    # A weighted mean is exact at both ends, low + (high - low) * position is not.
    shares: FloatArray = low * (1 - position) + high * position
    return shares


def missing_completely_at_random(shape: tuple[int, int], *, seed: Any, share: float = 0.7) -> BoolArray:
    """Delete ratings at random, each as likely as any other: floor(share * n_users * n_items) of them.

    Parameters
    ----------
    shape : (int, int)
        n_users and n_items.
    seed : int or anything `numpy.random.default_rng` takes
    share : float
        Of all ratings, in [0, 1).

    Returns
    -------
    bool, shape (n_users, n_items)
        True where a rating is missing.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    check_share("share", share, open_ends="high")
    n_users, n_items = _sizes(shape)
    missing = np.zeros(n_users * n_items, dtype=bool)
    count = math.floor(share * missing.size + ROUNDING)
    missing[np.random.default_rng(seed).permutation(missing.size)[:count]] = True
    return missing.reshape(n_users, n_items)


def _sizes(shape: tuple[int, int]) -> tuple[int, int]:
    if len(shape) != 2:
        raise ValueError(f"shape must be (n_users, n_items), got {shape!r}; pass the shape of the matrix")
    for side in shape:
        check_integer("shape", side, low=1, mend="pass (n_users, n_items), the shape of the matrix")
    return shape
