"""What an attack achieves: how far it moves the target's predictions, and its place in users' lists."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.attacks.checks import check_target
from algorithms.synthetic.checks import check_integer

__all__ = ["hit_rate", "hit_rate_shift", "mean_prediction_shift"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def mean_prediction_shift(before: ArrayLike, after: ArrayLike, missing_users: ArrayLike) -> float:
    """Mean of predicted rating after less before, over the users who have not rated the target (MPS).

    Section 3.5 of the second seed paper. Negative where an attack demotes the target.

    Parameters
    ----------
    before, after : array_like of float, shape (n_users,)
        Predicted ratings of the target by the genuine users, without and with the attack.
    missing_users : array_like of bool, shape (n_users,)
        True where a user's rating of the target is missing.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If shapes differ, no user is left, or a prediction that counts is not finite.
    """
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    missing = np.asarray(missing_users)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"before and after must have one shape (n_users,), got {first.shape} and {second.shape}; pass the target's "
            "column, and leave fake users out, as in after[:n_users]"
        )
    if missing.dtype != np.bool_ or missing.shape != first.shape:
        raise ValueError(
            f"missing_users must be boolean of shape {first.shape}, got {missing.dtype} of shape {missing.shape}; "
            "pass for instance np.isnan(matrix[:, target])"
        )
    if not missing.any():
        raise ValueError("missing_users must hold a user who has not rated the target, got none; choose another target")
    for name, predicted in (("before", first), ("after", second)):
        _check_finite(name, predicted[missing])
    return float((second - first)[missing].mean())


def hit_rate(predicted: ArrayLike, rated: ArrayLike, target: int, *, n: int = 10) -> float:
    """Share of the users who have not rated the target that have it in their top-N list.

    A user's list holds the n items with the highest predictions among those that he has not rated, the target included.
    **Ties** are split by expectation: where g candidates are predicted above the target, and e as high as it (itself
    included), it is in the list with probability (n - g) / e, within [0, 1], as if equals stood in random order. Where
    predictions are categories, most of them tie; any fixed order would decide the result.

    Parameters
    ----------
    predicted : array_like of float, shape (n_users, n_items)
        Predictions for the genuine users.
    rated : array_like of bool, shape (n_users, n_items)
        True where a user has rated an item; that of an observed matrix is ``~np.isnan(matrix)``.
    target : int
        Column, from 0.
    n : int
        Length of a list, >= 1.

    Returns
    -------
    float
        In [0, 1]: the hit ratio of Mobasher et al. (2007), in expectation over ties.

    Raises
    ------
    ValueError
        If an argument is out of range, every user has rated the target, or a candidate's prediction is not finite.
    """
    values, known = np.asarray(predicted, dtype=np.float64), np.asarray(rated)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"predicted must have shape (n_users, n_items), got {values.shape}; pass the completed matrix")
    if known.dtype != np.bool_ or known.shape != values.shape:
        raise ValueError(
            f"rated must be boolean of shape {values.shape}, got {known.dtype} of shape {known.shape}; pass for "
            "instance ~np.isnan(matrix), and leave fake users out of predicted, as in predicted[:n_users]"
        )
    check_target(target, values.shape[1])
    check_integer("n", n, low=1, mend="it is the length of a list")
    users = ~known[:, target]
    if not users.any():
        raise ValueError("rated must leave a user who has not rated the target, got none; choose another target")
    _check_finite("predicted", values[users][~known[users]])
    candidates = ~known[users]
    own = values[users, target][:, None]
    above = (candidates & (values[users] > own)).sum(axis=1)
    equal = (candidates & (values[users] == own)).sum(axis=1)
    return float(np.clip((n - above) / equal, 0.0, 1.0).mean())


def hit_rate_shift(before: ArrayLike, after: ArrayLike, rated: ArrayLike, target: int, *, n: int = 10) -> float:
    """Hit rate of the target after an attack less before it.

    Parameters
    ----------
    before, after : array_like of float, shape (n_users, n_items)
        Predictions for the genuine users, without and with the attack.
    rated : array_like of bool, shape (n_users, n_items)
        True where a user has rated an item.
    target : int
        Column, from 0.
    n : int
        Length of a list, >= 1.

    Returns
    -------
    float
        In [-1, 1]; negative where the attack demotes the target.

    Raises
    ------
    ValueError
        As `hit_rate` does.
    """
    return hit_rate(after, rated, target, n=n) - hit_rate(before, rated, target, n=n)


def _check_finite(name: str, values: FloatArray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} must hold a finite prediction for each unrated item, got NaN or infinity; complete it"
        )
