"""What rounding noise alone decides: the error any estimator can hope for, and a weight of the regularization."""

import math

import numpy as np

__all__ = ["ROUNDING", "noise_weight", "oracle_rate"]

ROUNDING = 1 / math.sqrt(12)
"""Standard deviation of the error of rounding to integers, which is close to uniform on (-1/2, 1/2)."""


def oracle_rate(n_users: int, n_items: int, *, rank: int, n_observed: int, sigma: float = ROUNDING) -> float:
    """RMS error that an estimator of a matrix of known rank can hope for: sigma sqrt(r (m + n - r) / |Omega|).

    It is the error of least squares over the r (m + n - r) degrees of freedom of a matrix of rank r, by an oracle that
    knows the space of matrices which share the rows or the columns of the truth (Candes and Plan, "Matrix completion
    with noise", Proceedings of the IEEE 98, 2010). It holds for noise that is independent of the truth. The error of
    rounding and clipping is a function of the truth; a part of it is itself of low rank, and no number of ratings
    averages that out.

    Parameters
    ----------
    n_users, n_items : int
        Size m and n of the matrix.
    rank : int
        Rank r of the truth, at most min(m, n).
    n_observed : int
        Number |Omega| of ratings observed.
    sigma : float
        Standard deviation of a rating's noise.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    _check(n_users, n_items, n_observed, sigma)
    _check_integer("rank", rank, 1, min(n_users, n_items))
    return sigma * math.sqrt(rank * (n_users + n_items - rank) / n_observed)


def noise_weight(
    n_users: int, n_items: int, *, n_observed: int, shrinkage: float = 1.0, sigma: float = ROUNDING
) -> float:
    """Weight lambda of objective (1) in proportion to the noise: shrinkage sigma sqrt(p) (sqrt m + sqrt n).

    With p = |Omega| / mn, sigma sqrt(p) (sqrt m + sqrt n) is about the largest singular value of the noise on the
    observed entries (the others taken as 0). Objective (1) with the weight lambda takes lambda off each singular value
    of what it fits, so that with shrinkage 1 hardly any noise passes, where the rank is not limited otherwise. A
    limited rank lets through little noise by itself; then less is better, as it biases less. The weight looks at sizes
    and at the rounding step, and not at any truth.

    Parameters
    ----------
    n_users, n_items : int
        Size m and n of the matrix.
    n_observed : int
        Number |Omega| of ratings observed.
    shrinkage : float
        Weight in units of the noise's largest singular value, > 0.
    sigma : float
        Standard deviation of a rating's noise.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    _check(n_users, n_items, n_observed, sigma)
    if not 0 < shrinkage < math.inf:
        raise ValueError(f"shrinkage must be a finite number > 0, got {shrinkage!r}")
    observed = n_observed / (n_users * n_items)
    return shrinkage * sigma * math.sqrt(observed) * (math.sqrt(n_users) + math.sqrt(n_items))


def _check(n_users: int, n_items: int, n_observed: int, sigma: float) -> None:
    _check_integer("n_users", n_users, 1)
    _check_integer("n_items", n_items, 1)
    _check_integer("n_observed", n_observed, 1, n_users * n_items)
    if not 0 < sigma < math.inf:
        raise ValueError(f"sigma must be a finite number > 0, got {sigma!r}")


def _check_integer(name: str, value: int, low: int, high: int | None = None) -> None:
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or value < low or (high is not None and value > high):
        wanted = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
