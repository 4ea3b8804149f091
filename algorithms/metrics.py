"""Errors of predictions against ratings."""

import numpy as np

from algorithms.compilation import kernel
from algorithms.updates import inner

__all__ = ["factorization_rmse", "mae", "rmse"]

# Sums run in index order over blocks of this size.
BLOCK = 4096


def rmse(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Root mean square error.

    Parameters
    ----------
    predicted, actual : float64, shape (n,)

    Raises
    ------
    ValueError
        If they are empty or differ in shape.
    """
    _check(predicted, actual)
    return float(np.sqrt(_sum_of_squares(predicted, actual) / len(actual)))


def mae(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Mean absolute error.

    Parameters
    ----------
    predicted, actual : float64, shape (n,)

    Raises
    ------
    ValueError
        If they are empty or differ in shape.
    """
    _check(predicted, actual)
    return float(_sum_of_absolutes(predicted, actual) / len(actual))


def factorization_rmse(user_profiles: np.ndarray, item_profiles: np.ndarray, truth: np.ndarray) -> float:
    """RMS error of a factorization on the whole matrix, ||U'V - Theta||_F / sqrt(mn), section 4 of the first paper.

    Parameters
    ----------
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
    truth : float64, shape (n_users, n_items)

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    if truth.shape != (len(user_profiles), len(item_profiles)):
        raise ValueError(
            f"truth must have shape (n_users, n_items) = {(len(user_profiles), len(item_profiles))}, got {truth.shape}"
        )
    return float(np.sqrt(_factorization_error(user_profiles, item_profiles, truth) / truth.size))


@kernel
def _factorization_error(user_profiles, item_profiles, truth):
    """Sum of squared errors: each row in index order, then the rows in index order."""
    total = 0.0
    for i in range(truth.shape[0]):
        partial = 0.0
        for j in range(truth.shape[1]):
            partial += (inner(user_profiles[i], item_profiles[j]) - truth[i, j]) ** 2
        total += partial
    return total


def _check(predicted: np.ndarray, actual: np.ndarray) -> None:
    if predicted.shape != actual.shape or predicted.ndim != 1 or len(actual) == 0:
        raise ValueError(
            "predicted and actual must be non-empty arrays of one shape (n,), "
            f"got shapes {predicted.shape} and {actual.shape}"
        )


@kernel
def _sum_of_squares(predicted, actual):
    total = 0.0
    for first in range(0, actual.shape[0], BLOCK):
        partial = 0.0
        for n in range(first, min(first + BLOCK, actual.shape[0])):
            partial += (predicted[n] - actual[n]) ** 2
        total += partial
    return total


@kernel
def _sum_of_absolutes(predicted, actual):
    total = 0.0
    for first in range(0, actual.shape[0], BLOCK):
        partial = 0.0
        for n in range(first, min(first + BLOCK, actual.shape[0])):
            partial += abs(predicted[n] - actual[n])
        total += partial
    return total
