"""Objective (1) of the first seed paper: what the network minimizes without anyone computing it."""

import numpy as np

from algorithms.compilation import kernel
from algorithms.ratings import Ratings
from algorithms.updates import inner

__all__ = ["objective"]


def objective(user_profiles: np.ndarray, item_profiles: np.ndarray, ratings: Ratings, lam: float) -> float:
    """Squared error on the known ratings plus `lam` times the squared norms of all profiles, objective (1).

    Parameters
    ----------
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
        The paper's U and V, transposed: one profile a row.
    ratings : Ratings
    lam : float

    Returns
    -------
    float
    """
    fit = _squared_error(user_profiles, item_profiles, ratings.user, ratings.item, ratings.value)
    return float(fit + lam * (_squared_norm(user_profiles) + _squared_norm(item_profiles)))


# Sums run in index order over blocks of this size, so that a block's sum may be computed by anyone at any time.
BLOCK = 4096


@kernel
def _squared_error(user_profiles, item_profiles, user, item, value):
    total = 0.0
    for first in range(0, value.shape[0], BLOCK):
        partial = 0.0
        for n in range(first, min(first + BLOCK, value.shape[0])):
            error = inner(user_profiles[user[n]], item_profiles[item[n]]) - value[n]
            partial += error * error
        total += partial
    return total


@kernel
def _squared_norm(profiles):
    total = 0.0
    for n in range(profiles.shape[0]):
        total += inner(profiles[n], profiles[n])
    return total
