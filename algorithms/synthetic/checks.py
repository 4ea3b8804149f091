"""Refusals of numbers that are out of range; the message names the argument and the mend."""

from typing import Any

import numpy as np

__all__ = ["check_integer", "check_share"]


def check_integer(name: str, value: Any, *, low: int, high: int | None = None, mend: str) -> None:
    """Refuse what is no integer, or out of range.

    Parameters
    ----------
    name : str
        The argument, as the message says it.
    value : object
        What was given.
    low, high : int
        Bounds that belong to the range; no upper one by default.
    mend : str
        What to do about it.

    Raises
    ------
    ValueError
        If it is not an integer in the range.
    """
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or value < low or (high is not None and value > high):
        wanted = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise ValueError(f"{name} must be {wanted}, got {value!r}; {mend}")


def check_share(name: str, value: Any, *, low: float = 0.0, high: float = 1.0, open_ends: str = "") -> None:
    """Refuse what is no share.

    Parameters
    ----------
    name : str
        The argument, as the message says it.
    value : object
        What was given.
    low, high : float
        Bounds of the range.
    open_ends : str
        "low", "high" or "both": bounds that do not belong to it.

    Raises
    ------
    ValueError
        If it is not a number in the range.
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    open_low, open_high = open_ends in ("low", "both"), open_ends in ("high", "both")
    # Written so that NaN is refused.
    inside = number and (value > low if open_low else value >= low) and (value < high if open_high else value <= high)
    if not inside:
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise ValueError(f"{name} must be in {interval}, got {value!r}; pass a fraction, not a percentage")
