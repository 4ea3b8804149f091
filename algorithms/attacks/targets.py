"""Which item is attacked: a popular one that is rated highly."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.attacks.checks import rating_matrix
from algorithms.attacks.means import item_means
from algorithms.synthetic.checks import check_integer, check_share

__all__ = ["popular_target", "popular_targets", "simulated_target"]

ROUNDING = 1e-9  # 0.07 * 100 is a little above 7 and must count as 7


def simulated_target(matrix: ArrayLike, shifts: ArrayLike, largest_shift: float, *, threshold: float = 0.9) -> int:
    """Target of a simulated recommender, section 3.3 of the second seed paper.

    Of the items whose mean shift is above `threshold` * `largest_shift`, the one with the highest mean of observed
    ratings. Where no item with a rating has such a shift, which the paper leaves open, the one with the largest shift.
    Of equals, the one with the lower index.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
        Observed ratings, NaN where missing.
    shifts : array_like of float, shape (n_items,)
        Mean shifts of the items, and s_max, the largest one possible.
    largest_shift : float
        > 0.
    threshold : float
        In [0, 1].

    Returns
    -------
    int
        Column of the target, from 0.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    ratings = rating_matrix(matrix)
    moved = np.asarray(shifts, dtype=np.float64)
    if moved.shape != (ratings.shape[1],) or not np.isfinite(moved).all():
        raise ValueError(
            f"shifts must be {ratings.shape[1]} finite numbers, one for each item, got shape {moved.shape}; "
            "pass those of the simulation"
        )
    check_share("largest_shift", largest_shift, high=math.inf, open_ends="both")
    check_share("threshold", threshold)
    means = item_means(ratings)
    known = ~np.isnan(means)
    candidates = known & (moved > threshold * largest_shift)
    if not candidates.any():
        return int(np.where(known, moved, -np.inf).argmax())
    return int(np.where(candidates, means, -np.inf).argmax())


def popular_target(matrix: ArrayLike, *, share: float = 0.1) -> int:
    """Target in real ratings: the popular item with the highest mean; the first of `popular_targets`.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
        Observed ratings, NaN where missing.
    share : float
        Share of the items that are popular, in (0, 1].

    Returns
    -------
    int
        Column of the target, from 0.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    return int(popular_targets(matrix, 1, share=share)[0])


def popular_targets(matrix: ArrayLike, n: int, *, share: float = 0.1) -> NDArray[np.int64]:
    """Popular items with the highest means, to average an attack over targets.

    An item is popular that has as many ratings as the ceil(share * n_items)-th most rated one, or more. The paper does
    not say which movie it attacks, nor what is popular where no shifts are known. Without such a bound, the highest
    mean would belong to an item with few ratings.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
        Observed ratings, NaN where missing.
    n : int
        Number of targets, at most that of popular items.
    share : float
        Share of the items that are popular, in (0, 1].

    Returns
    -------
    int64, shape (n,)
        Columns, from the highest mean down; of equals, the lower index first.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    ratings = rating_matrix(matrix)
    check_share("share", share, open_ends="low")
    counts = (~np.isnan(ratings)).sum(axis=0)
    n_popular = max(1, math.ceil(share * len(counts) - ROUNDING))
    fewest = np.sort(counts)[-n_popular]
    popular = np.flatnonzero(counts >= max(fewest, 1))
    check_integer("n", n, low=1, high=len(popular), mend=f"share={share:g} of the items is popular")
    order = np.argsort(-item_means(ratings)[popular], kind="stable")
    return popular[order[:n]]
