"""Grids of lambda."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fraction_grid", "multiplicative_grid"]

FloatArray = NDArray[np.float64]


def fraction_grid(n: int = 10, *, low: float = 0.01, high: float = 1.0, log: bool = True) -> FloatArray:
    """Fractions of the largest singular value: the second seed paper's grid.

    Parameters
    ----------
    n : int
        Number of them, >= 1; one is `high`.
    low, high : float
        The first and the last, 0 < low <= high.
    log : bool
        Whether they stand in equal ratios, else in equal steps.

    Returns
    -------
    float64, shape (n,), ascending

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    _check_count(n)
    if not 0 < low <= high < np.inf:
        raise ValueError(f"low and high must be finite with 0 < low <= high, got low={low!r}, high={high!r}")
    if n == 1:
        return np.array([float(high)])
    return np.geomspace(low, high, n) if log else np.linspace(low, high, n)


def multiplicative_grid(n: int = 10, *, low: float = 0.05, factor: float = 1.5) -> FloatArray:
    """Each lambda the one before times a factor: low, low factor, low factor^2, ...

    Parameters
    ----------
    n : int
        Number of them, >= 1.
    low : float
        The first, > 0.
    factor : float
        > 1.

    Returns
    -------
    float64, shape (n,), ascending

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    _check_count(n)
    if not 0 < low < np.inf:
        raise ValueError(f"low must be finite and > 0, got {low!r}")
    if not 1 < factor < np.inf:
        raise ValueError(f"factor must be finite and > 1, got {factor!r}")
    return np.asarray(low * float(factor) ** np.arange(n), dtype=np.float64)


def _check_count(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be an integer >= 1, got {n!r}")
