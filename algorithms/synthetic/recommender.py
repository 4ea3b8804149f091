"""A simulated recommender: latent tastes of low rank, popular and unpopular items, ordinal ratings.

Section 3.1 of the second seed paper (robust discrete matrix completion).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.synthetic.checks import check_integer
from algorithms.synthetic.streams import streams

__all__ = ["BREAKPOINTS", "TOP_SHARE", "Recommender", "categorized", "largest_mean_shift", "recommender"]

FloatArray = NDArray[np.float64]

BREAKPOINTS: dict[int, tuple[float, ...]] = {
    3: (0.0, 1.5),
    5: (-1.5, -0.5, 0.5, 1.5),
    10: (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
}
"""Where one category ends and the next begins, by the number of categories."""

TOP_SHARE = 0.4
"""Share of the ratings expected in the top category of an item that has the largest mean shift."""


@dataclass(frozen=True, eq=False, repr=False)
class Recommender:
    """Complete ratings of a simulated recommender, and what they were made from.

    Attributes
    ----------
    complete : float64, shape (n_users, n_items)
        The ratings R, whole numbers from 1 to `n_categories`; none is missing.
    latent : float64, shape (n_users, n_items)
        Z* before the mean shifts; each entry has mean 0 and variance 1. It does not depend on the number of
        categories.
    shifts : float64, shape (n_items,)
        Mean shift s of each item, in [-`largest_shift`, `largest_shift`].
    largest_shift : float
        s_max.
    breakpoints : tuple of float, length n_categories - 1
        Where latent values become the next category.
    n_categories : int
    """

    complete: FloatArray
    latent: FloatArray
    shifts: FloatArray
    largest_shift: float
    breakpoints: tuple[float, ...]
    n_categories: int

    @property
    def categories(self) -> FloatArray:
        """The ratings that can be given, ascending, float64, shape (n_categories,)."""
        return np.arange(1.0, self.n_categories + 1.0)

    def __repr__(self) -> str:
        n_users, n_items = self.complete.shape
        return f"Recommender({n_users} users, {n_items} items, {self.n_categories} categories)"


def recommender(
    n_users: int = 300, n_items: int = 200, *, seed: Any, n_categories: int = 5, rank: int = 20
) -> Recommender:
    """Draw complete ratings of a recommender with popular and unpopular items.

    Z = A B' + E with independent standard normal A, B and E is divided by sqrt(rank + 1), so that its entries have
    variance 1. Each item gets a mean shift s ~ U(-1, 1) s_max, and the sum is cut at `BREAKPOINTS` into categories;
    a value at a breakpoint is in the upper one. s_max is such that the top category holds 40% of the ratings that are
    expected of an item with this shift: the top breakpoint plus the 40% quantile of the standard normal distribution.

    Latent values and the draws behind the shifts are each a stream of their own. So with one seed they are the same
    for every number of categories: those worlds are pairs.

    Parameters
    ----------
    n_users, n_items : int
        Size n and p of the matrix.
    seed : int or anything `numpy.random.default_rng` takes
    n_categories : {3, 5, 10}
        Number K of rating categories.
    rank : int
        Number q of columns of A and B.

    Returns
    -------
    Recommender

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    for name, size in (("n_users", n_users), ("n_items", n_items), ("rank", rank)):
        check_integer(name, size, low=1, mend="pass a size of the matrix" if name != "rank" else "the seed has 20")
    check_integer("n_categories", n_categories, low=2, mend=_choices())
    if n_categories not in BREAKPOINTS:
        raise ValueError(f"n_categories must have breakpoints, got {n_categories!r}; {_choices()}")
    users, items, noise, popularity = streams(seed, 4)
    latent = _latent((n_users, n_items), rank, users=users, items=items, noise=noise)
    breakpoints = BREAKPOINTS[int(n_categories)]
    largest = largest_mean_shift(breakpoints)
    shifts = largest * popularity.uniform(-1.0, 1.0, n_items)
    return Recommender(
        complete=categorized(latent + shifts, breakpoints),
        latent=latent,
        shifts=shifts,
        largest_shift=largest,
        breakpoints=breakpoints,
        n_categories=int(n_categories),
    )


def largest_mean_shift(breakpoints: tuple[float, ...], *, top_share: float = TOP_SHARE) -> float:
    """Mean shift with which a standard normal value is in the top category with a given probability.

    Parameters
    ----------
    breakpoints : tuple of float
        Ascending; the last one begins the top category.
    top_share : float
        That probability, in (0, 1).

    Returns
    -------
    float
        s_max.
    """
    return breakpoints[-1] + NormalDist().inv_cdf(top_share)


def categorized(values: FloatArray, breakpoints: tuple[float, ...]) -> FloatArray:
    """Cut continuous values into the categories 1, 2, ...; a value at a breakpoint is in the upper one.

    Parameters
    ----------
    values : float64, any shape
    breakpoints : tuple of float
        Ascending.

    Returns
    -------
    float64, shape of `values`
    """
    return (np.searchsorted(np.array(breakpoints), values, side="right") + 1).astype(np.float64)


def _latent(
    shape: tuple[int, int],
    rank: int,
    *,
    users: np.random.Generator,
    items: np.random.Generator,
    noise: np.random.Generator,
) -> FloatArray:
    """(A B' + E) / sqrt(rank + 1). einsum without optimization is a plain loop: the same on every BLAS build."""
    n_users, n_items = shape
    a, b = users.standard_normal((n_users, rank)), items.standard_normal((n_items, rank))
    product: FloatArray = np.einsum("iq,jq->ij", a, b, optimize=False)
    latent: FloatArray = (product + noise.standard_normal(shape)) / math.sqrt(rank + 1)
    return latent


def _choices() -> str:
    return f"choose one of {', '.join(map(str, BREAKPOINTS))}"
