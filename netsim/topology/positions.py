"""Where the places of a graph lie in the plane, as far as its attributes say."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from netsim.topology._checks import as_number

__all__ = ["read_positions"]

_LATITUDES, _LONGITUDES = ("latitude", "Latitude"), ("longitude", "Longitude")


def read_positions(graph: nx.Graph) -> NDArray[np.float64] | None:
    """Positions from the node attribute `pos`, or else from latitude and longitude.

    Degrees are projected so that lengths are right along the mean latitude and along all meridians (equirectangular
    projection). What is not two finite numbers counts as unknown: a position is only drawn, never computed with.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        `pos` is a pair; latitude and longitude are in degrees, also with capital letters as in the Topology Zoo.

    Returns
    -------
    float64, shape (n, 2), or None
        x and y of each place, NaN where unknown; None where all are.
    """
    attributes = [attributes for _, attributes in graph.nodes(data=True)]
    if any("pos" in each for each in attributes):
        positions = np.array([_pair(each.get("pos")) for each in attributes])
    else:
        positions = np.array([_pair((_first(each, _LONGITUDES), _first(each, _LATITUDES))) for each in attributes])
        if not np.isnan(positions).all():
            positions[:, 0] *= math.cos(math.radians(float(np.nanmean(positions[:, 1]))))
    return None if np.isnan(positions).all() else positions


def _first(attributes: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((attributes[name] for name in names if name in attributes), None)


def _pair(value: Any) -> tuple[float, float]:
    try:
        x, y = (as_number(each) for each in value)
    except (TypeError, ValueError):
        return math.nan, math.nan
    return (x, y) if math.isfinite(x) and math.isfinite(y) else (math.nan, math.nan)
