"""Mean rating of each item, of which some may have none."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["item_means"]

FloatArray = NDArray[np.float64]


def item_means(ratings: FloatArray) -> FloatArray:
    """Mean of each item's ratings.

    Parameters
    ----------
    ratings : float64, shape (n_users, n_items)
        NaN where a rating is missing.

    Returns
    -------
    float64, shape (n_items,)
        NaN for an item without a rating.
    """
    known = ~np.isnan(ratings)
    counts = known.sum(axis=0)
    sums = np.where(known, ratings, 0.0).sum(axis=0)
    means: FloatArray = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return means
