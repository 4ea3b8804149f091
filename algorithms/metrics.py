"""Errors of predictions against ratings."""

import numpy as np

from algorithms.compilation import kernel

__all__ = ["mae", "rmse"]

# Sums run in index order over blocks of this size.
BLOCK = 4096


def rmse(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Root mean square error of two float64 arrays of one shape (n,).

    Raises
    ------
    ValueError
        If they are empty or differ in shape.
    """
    _check(predicted, actual)
    return float(np.sqrt(_sum_of_squares(predicted, actual) / len(actual)))


def mae(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Mean absolute error of two float64 arrays of one shape (n,).

    Raises
    ------
    ValueError
        If they are empty or differ in shape.
    """
    _check(predicted, actual)
    return float(_sum_of_absolutes(predicted, actual) / len(actual))


def _check(predicted: np.ndarray, actual: np.ndarray) -> None:
    if predicted.shape != actual.shape or predicted.ndim != 1 or len(actual) == 0:
        raise ValueError(
            "predicted and actual must be non-empty arrays of one shape (n,), "
            f"got shapes {predicted.shape} and {actual.shape}"
        )


@kernel
def _sum_of_squares(predicted, actual):  # type: ignore[no-untyped-def]
    total = 0.0
    for first in range(0, actual.shape[0], BLOCK):
        partial = 0.0
        for n in range(first, min(first + BLOCK, actual.shape[0])):
            partial += (predicted[n] - actual[n]) ** 2
        total += partial
    return total


@kernel
def _sum_of_absolutes(predicted, actual):  # type: ignore[no-untyped-def]
    total = 0.0
    for first in range(0, actual.shape[0], BLOCK):
        partial = 0.0
        for n in range(first, min(first + BLOCK, actual.shape[0])):
            partial += abs(predicted[n] - actual[n])
        total += partial
    return total
