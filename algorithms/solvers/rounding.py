"""Continuous predictions rounded to the categories of a rating scale."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.solvers.observed import Observed
from algorithms.solvers.scales import Scales, make_scales

__all__ = ["nearest_categories", "rating_scales"]

FloatArray = NDArray[np.float64]
TIE = 1e-9  # in smallest steps of the column: how far past the middle of two categories the higher one begins


def rating_scales(observed: Observed, categories: Any) -> Scales:
    """The categories of each column; those that occur where `categories` is None.

    Parameters
    ----------
    observed : Observed
    categories : array_like, or one array_like a column, or None

    Raises
    ------
    ValueError
        If an observed value is none of its column's categories, or `categories` is no scale.
    """
    return make_scales(
        observed,
        categories=categories,
        loss="absolute",
        loss_constant=None,
        centring="midpoint",
        empty_columns="predict",
    )


def nearest_categories(values: FloatArray, scales: Scales, columns: NDArray[np.int64]) -> FloatArray:
    """The category of its column that is nearest to each value, the lower one in a tie.

    Parameters
    ----------
    values : float64, shape (n,)
    scales : Scales
    columns : int64, shape (n,)
        Column of each value.

    Returns
    -------
    float64, shape (n,)
    """
    table = scales.categories
    rounded: FloatArray = table[columns, 0]
    for k in range(1, table.shape[1]):
        middle = (table[:, k] + table[:, k - 1]) / 2 + TIE * scales.steps
        rounded = np.where(values > middle[columns], table[columns, k], rounded)
    return rounded
