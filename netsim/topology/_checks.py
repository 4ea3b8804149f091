"""Checks that the topology modules share: what a latency, a loss and a bandwidth are, how an edge is named."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import networkx as nx

__all__ = ["SLOWEST", "as_bandwidth", "as_number", "as_probability", "as_seconds", "iterate_edges", "missing_latency"]

SLOWEST = 1e-300  # bytes/s; its reciprocal is finite


def as_number(value: object) -> float:
    """Return `value` as a float, NaN where it is not a number (text and booleans are not)."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_seconds(value: object, *, name: str = "latency", where: str = "") -> float:
    """Return `value` as a finite, non-negative number of seconds.

    Parameters
    ----------
    value : object
        What the caller gave.
    name : str
        What the value is called in the error.
    where : str
        Where it was found, e.g. " on edge (4, 7)".

    Returns
    -------
    float
        The value; -0.0 becomes 0.0.

    Raises
    ------
    ValueError
        If it is not a number, NaN, infinite or negative.
    """
    seconds = as_number(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        mend = "store a number, not text" if isinstance(value, str) else "give the one-way latency in seconds"
        raise ValueError(
            f"{name} must be a finite number of seconds >= 0, got {value!r}{where}; {mend}, e.g. 0.012 for 12 ms"
        )
    return seconds + 0.0  # -0.0 + 0.0 is 0.0: equal latencies have equal bits


def as_probability(value: object, *, name: str = "loss", where: str = "") -> float:
    """Return `value` as a probability in [0, 1]; arguments and error as in `as_seconds`."""
    probability = as_number(value)
    if not 0 <= probability <= 1:
        raise ValueError(
            f"{name} must be in [0, 1], got {value!r}{where}; store the probability that the link drops a message, "
            "a fraction and not a percentage"
        )
    return probability + 0.0


def as_bandwidth(value: object, *, name: str = "bandwidth", where: str = "") -> float:
    """Return `value` as a number of bytes per second > 0, inf for no limit; arguments and error as in `as_seconds`."""
    bandwidth = as_number(value)
    if not bandwidth >= SLOWEST:
        raise ValueError(
            f"{name} must be a number of bytes/s > 0, got {value!r}{where}; store bits/s divided by 8, or leave it "
            "away where the link has no limit"
        )
    return bandwidth


def iterate_edges(graph: nx.Graph) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield every edge as (label, attributes); the label is (u, v), or (u, v, key) in a multigraph."""
    # The type stubs know no `keys`.
    view: Any = graph.edges
    edges = view(keys=True, data=True) if graph.is_multigraph() else view(data=True)
    for *label, attributes in edges:
        yield tuple(label), attributes


def missing_latency(attribute: str, label: tuple[Any, ...], attributes: dict[str, Any]) -> str:
    """Say that an edge has no latency, which attributes it does have, and the mend."""
    found = ", ".join(sorted(repr(name) for name in attributes)) or "none"
    return (
        f"edge {label} has no attribute {attribute!r} (its attributes: {found}); set it to the one-way "
        "latency in seconds, name another attribute with latency=..., or pass default_latency=..."
    )
