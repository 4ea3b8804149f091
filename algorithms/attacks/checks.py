"""What attacks take: a rating matrix with NaN where a rating is missing, a target, categories."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["category_array", "check_target", "rating_matrix"]

FloatArray = NDArray[np.float64]


def rating_matrix(matrix: ArrayLike, *, name: str = "matrix") -> FloatArray:
    """Read a matrix of ratings.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
        NaN where a rating is missing.
    name : str
        The argument, as messages say it.

    Returns
    -------
    float64, shape (n_users, n_items)

    Raises
    ------
    ValueError
        If it is no such matrix, holds an infinite number or no rating at all.
    """
    ratings = np.asarray(matrix, dtype=np.float64)
    if ratings.ndim != 2 or 0 in ratings.shape:
        raise ValueError(
            f"{name} must have shape (n_users, n_items), got {ratings.shape}; pass ratings, users by items"
        )
    if np.isinf(ratings).any():
        row, column = np.argwhere(np.isinf(ratings))[0].tolist()
        raise ValueError(
            f"{name} must hold finite ratings, got {ratings[row, column]} in row {row}, column {column}; "
            "a missing rating is NaN"
        )
    if np.isnan(ratings).all():
        raise ValueError(f"{name} must hold at least one rating, got NaN everywhere; check what is observed")
    return ratings


def check_target(target: Any, n_items: int) -> None:
    """Refuse what is no item.

    Parameters
    ----------
    target : int
        Column of the matrix, from 0.
    n_items : int

    Raises
    ------
    ValueError
        If it is not an integer from 0 to n_items - 1.
    """
    integer = isinstance(target, int | np.integer) and not isinstance(target, bool)
    if not integer or not 0 <= target < n_items:
        raise ValueError(f"target must be a column from 0 to {n_items - 1}, got {target!r}; pass an index, not an id")


def category_array(categories: ArrayLike, ratings: FloatArray) -> FloatArray:
    """Read the ratings that can be given.

    Parameters
    ----------
    categories : array_like of float, shape (n_categories,)
        At least two different ones.
    ratings : float64, shape (n_users, n_items)
        Observed ones must be among them.

    Returns
    -------
    float64, shape (n_categories,)
        Ascending.

    Raises
    ------
    ValueError
        If they are no scale, or a rating is none of them.
    """
    given = np.asarray(categories, dtype=np.float64)
    scale = np.unique(given)
    if given.ndim != 1 or len(scale) < 2 or len(scale) < len(given) or not np.isfinite(scale).all():
        raise ValueError(
            f"categories must be two or more different finite numbers, got {categories!r}; pass range(1, 6)"
        )
    strange = ~np.isnan(ratings) & ~np.isin(ratings, scale)
    if strange.any():
        row, column = np.argwhere(strange)[0].tolist()
        raise ValueError(
            f"matrix must hold categories {', '.join(f'{each:g}' for each in scale)}, got {ratings[row, column]:g} in "
            f"row {row}, column {column}; correct the rating or pass categories= with it"
        )
    return scale
