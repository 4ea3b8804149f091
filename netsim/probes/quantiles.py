"""Quantiles that probes measure: their check, the names of their columns, their values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["check_quantiles", "quantile_columns", "quantile_values"]


def check_quantiles(probe: str, quantiles: Any, *, least: int = 1) -> tuple[float, ...]:
    """The quantiles that a probe was given, as numbers.

    Parameters
    ----------
    probe : str
        Name of the probe, which begins the message of an error.
    quantiles : sequence of float
        In [0, 1].
    least : int
        How many there must be.

    Raises
    ------
    ValueError
        If they are not numbers in [0, 1], are too few, or two would name one column.
    """
    if isinstance(quantiles, str) or np.ndim(quantiles) != 1:
        raise ValueError(
            f"{probe}: quantiles must be a sequence of numbers in [0, 1], got {quantiles!r}; pass (0.5,) for one"
        )
    given: Sequence[Any] = tuple(quantiles)
    for q in given:
        if not isinstance(q, int | float | np.number) or isinstance(q, bool) or not 0 <= q <= 1:
            raise ValueError(f"{probe}: quantiles must be numbers in [0, 1], got {q!r}")
    if len(given) < least:
        raise ValueError(f"{probe}: quantiles must hold a number in [0, 1], got none; pass (0.5,) for the median")
    if len({_label(q) for q in given}) < len(given):
        raise ValueError(f"{probe}: quantiles must differ in their first six digits, got {quantiles!r}; leave one out")
    return tuple(float(q) for q in given)


def quantile_columns(prefix: str, quantiles: tuple[float, ...]) -> tuple[str, ...]:
    """Names of columns, such as `prefix_q50` for 0.5 and `prefix_q2_5` for 0.025."""
    return tuple(f"{prefix}_q{_label(q)}" for q in quantiles)


def quantile_values(prefix: str, quantiles: tuple[float, ...], values: np.ndarray) -> Mapping[str, float]:
    """Quantiles of values by the names of their columns, linear between two values; NaN where there are none."""
    found = np.quantile(values, quantiles) if len(values) else np.full(len(quantiles), np.nan)
    return dict(zip(quantile_columns(prefix, quantiles), found.tolist(), strict=True))


def _label(quantile: float) -> str:
    return f"{100 * quantile:g}".replace(".", "_")
