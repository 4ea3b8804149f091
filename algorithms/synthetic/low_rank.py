"""Low-rank rating matrices with a known truth, as in section 4 of the first seed paper."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.ratings import Ratings, Scale

__all__ = ["LowRank", "low_rank"]


@dataclass(frozen=True, eq=False)
class LowRank:
    """Synthetic ratings and the truth they were made from.

    Attributes
    ----------
    train : Ratings
        The observed ratings: truth, rounded, without the missing ones.
    test : Ratings
        The missing ones, with the same users and items.
    truth : float64, shape (n_users, n_items)
        The low-rank matrix Theta.
    """

    train: Ratings
    test: Ratings
    truth: np.ndarray


def low_rank(
    n_users: int,
    n_items: int,
    *,
    seed: Any,
    rank: int = 10,
    missing: float = 0.2,
    scale: tuple[int, int] = (1, 5),
) -> LowRank:
    """Draw a low-rank truth, round it to the rating scale and delete ratings completely at random.

    The truth is A'B, scaled so that its largest entry is the top of the scale, with A and B uniform on (0, 1). Ratings
    are its entries rounded to the closest integer within the scale.

    Parameters
    ----------
    n_users, n_items : int
        Size m and n of the matrix.
    seed : int or anything `numpy.random.default_rng` takes
    rank : int
        Rank r of the truth.
    missing : float
        Share of the ratings that is deleted, in (0, 1).
    scale : (int, int)
        Lowest and highest rating; the highest must be > 0.

    Returns
    -------
    LowRank

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    for name, value in (("n_users", n_users), ("n_items", n_items), ("rank", rank)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    low, high = scale
    if not high > 0 or not low < high:
        raise ValueError(f"scale must be (low, high) with low < high and high > 0, got {scale!r}")
    n_missing = round(missing * n_users * n_items) if 0 < missing < 1 else 0
    if not 0 < n_missing < n_users * n_items:
        raise ValueError(
            f"missing must be a share in (0, 1) that leaves ratings on both sides, got {missing!r} "
            f"with {n_users} x {n_items} ratings"
        )
    rng = np.random.default_rng(seed)
    # einsum without optimization is a plain loop: the same truth on every BLAS build.
    product = np.einsum("ki,kj->ij", rng.random((rank, n_users)), rng.random((rank, n_items)), optimize=False)
    truth = high * product / product.max()
    rated = np.clip(np.rint(truth), low, high)
    deleted = np.zeros(n_users * n_items, dtype=bool)
    deleted[rng.choice(n_users * n_items, n_missing, replace=False)] = True
    user, item = np.divmod(np.arange(n_users * n_items), n_items)
    everything = Ratings.from_arrays(
        user,
        item,
        rated.ravel(),
        scale=Scale(low, high),
        user_ids=range(n_users),
        item_ids=range(n_items),
    )
    return LowRank(everything.select(~deleted), everything.select(deleted), truth)
