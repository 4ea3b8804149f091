"""Grids of lambda."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.solvers.base import check_count

__all__ = ["fraction_grid", "multiplicative_grid", "path_grid"]

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
    check_count("n", n)
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
    check_count("n", n)
    if not 0 < low < np.inf:
        raise ValueError(f"low must be finite and > 0, got {low!r}")
    if not 1 < factor < np.inf:
        raise ValueError(f"factor must be finite and > 1, got {factor!r}")
    return np.asarray(low * float(factor) ** np.arange(n), dtype=np.float64)


def path_grid(lambdas: float | ArrayLike | None, *, descending: bool = False) -> FloatArray:
    """The lambdas that a solver was given, each once and in the order in which it fits them.

    Parameters
    ----------
    lambdas : float, array_like or None
        > 0; None is ten from 0.01 to 1 in equal ratios.
    descending : bool

    Returns
    -------
    float64, shape (n_lambdas,)

    Raises
    ------
    ValueError
        If they are no numbers, none, or one is out of range.
    """
    if lambdas is None:
        return np.geomspace(1.0, 0.01, 10) if descending else fraction_grid()  # reversed, their last bits would differ
    try:
        grid = np.unique(np.atleast_1d(np.asarray(lambdas, dtype=np.float64)))
    except (TypeError, ValueError):
        raise ValueError(f"lambdas must hold numbers, got {lambdas!r}") from None
    if not grid.size or not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError(f"lambdas must be finite and > 0, at least one, got {lambdas!r}")
    return grid[::-1] if descending else grid
