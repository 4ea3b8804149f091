"""Low-rank rating matrices with a known truth, as in section 4 of the first seed paper."""

import math
from dataclasses import dataclass
from typing import Any, Literal

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
    generator: Literal["uniform", "gaussian"] = "uniform",
) -> LowRank:
    """Draw a low-rank truth, round it to the rating scale and delete ratings completely at random.

    The paper does not say how it makes a low-rank matrix "with floating-point values close to 1, 2, 3, 4, 5". There
    are two generators:

    - `uniform`: Theta = high A'B / max(A'B), with the factors A and B uniform on (0, 1). Its largest entry is the top
      of the scale, and all are positive. Most of it is one positive direction; the others are weak.
    - `gaussian`: Theta = c + s A'B / sqrt(rank - 1), with c the middle of the scale, s a quarter of its length, and
      standard normal factors A and B of rank `rank` - 1; the constant is the last direction. On the scale 1 to 5,
      entries have mean 3 and standard deviation 1. About one in twenty lies outside the scale: the truth stays as it
      is, as it would have full rank if it were clipped.

    Ratings are the entries rounded to the closest integer within the scale.

    Parameters
    ----------
    n_users, n_items : int
        Size m and n of the matrix.
    seed : int or anything `numpy.random.default_rng` takes
    rank : int
        Rank r of the truth; >= 2 with `gaussian`.
    missing : float
        Share of the ratings that is deleted, in (0, 1).
    scale : (int, int)
        Lowest and highest rating; with `uniform`, the highest must be > 0.
    generator : {"uniform", "gaussian"}

    Returns
    -------
    LowRank

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    _check_arguments(n_users, n_items, rank, scale, generator)
    low, high = scale
    n_missing = round(missing * n_users * n_items) if 0 < missing < 1 else 0
    if not 0 < n_missing < n_users * n_items:
        raise ValueError(
            f"missing must be a share in (0, 1) that leaves ratings on both sides, got {missing!r} "
            f"with {n_users} x {n_items} ratings"
        )
    rng = np.random.default_rng(seed)
    truth = _TRUTHS[generator](rng, (n_users, n_items), rank, scale)
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


def _uniform_truth(rng: np.random.Generator, shape: tuple[int, int], rank: int, scale: tuple[int, int]) -> np.ndarray:
    product = _product(rng.random((rank, shape[0])), rng.random((rank, shape[1])))
    truth: np.ndarray = scale[1] * product / product.max()
    return truth


def _gaussian_truth(rng: np.random.Generator, shape: tuple[int, int], rank: int, scale: tuple[int, int]) -> np.ndarray:
    low, high = scale
    product = _product(rng.standard_normal((rank - 1, shape[0])), rng.standard_normal((rank - 1, shape[1])))
    return (low + high) / 2 + (high - low) / 4 * product / math.sqrt(rank - 1)


_TRUTHS = {"uniform": _uniform_truth, "gaussian": _gaussian_truth}


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A'B. einsum without optimization is a plain loop: the same truth on every BLAS build."""
    product: np.ndarray = np.einsum("ki,kj->ij", a, b, optimize=False)
    return product


def _check_arguments(n_users: int, n_items: int, rank: int, scale: tuple[int, int], generator: str) -> None:
    for name, value in (("n_users", n_users), ("n_items", n_items), ("rank", rank)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
    if generator not in _TRUTHS:
        raise ValueError(f"generator must be one of {', '.join(_TRUTHS)}, got {generator!r}")
    low, high = scale
    if generator == "gaussian":
        if not low < high:
            raise ValueError(f"scale must be (low, high) with low < high, got {scale!r}")
        if rank < 2:
            raise ValueError(
                f"rank must be >= 2 with generator='gaussian', whose centre is one direction, got {rank!r}"
            )
    elif not high > 0 or not low < high:
        raise ValueError(f"scale must be (low, high) with low < high and high > 0, got {scale!r}")
