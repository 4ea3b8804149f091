"""A topology of the world's regions: twelve of a cloud provider, with its published table of round trips."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from netsim.topology._checks import as_seconds

__all__ = ["region_topology", "regions", "round_trips"]

# Name, and latitude and longitude of its city or state, for drawing.
_REGIONS = {
    "West US": (37.8, -122.4),
    "East US": (37.4, -79.8),
    "Brazil South": (-23.6, -46.6),
    "North Europe": (53.3, -6.3),
    "West Europe": (52.4, 4.9),
    "South Africa North": (-25.7, 28.2),
    "UAE North": (25.3, 55.3),
    "Central India": (18.6, 73.9),
    "Southeast Asia": (1.3, 103.8),
    "East Asia": (22.3, 114.2),
    "Japan East": (35.7, 139.8),
    "Australia East": (-33.9, 151.2),
}

# Milliseconds from row to column, as published; see `round_trips`.
_ROUND_TRIPS = """
  0  74 178 140 153 278 253 230 171 159 108 140
 70   0 117  71  84 217 183 239 223 212 163 201
178 119   0 172 187 319 285 339 338 323 271 305
140  74 172   0  18 176 128 138 166 196 233 256
154  86 188  19   0 167 124 147 162 191 236 252
277 219 319 175 164   0 254 275 292 338 355 382
253 185 285 128 122 254   0  45  83 113 153 172
230 241 340 138 150 275  45   0  59  90 127 155
171 223 335 166 161 292  82  58   0  36  73  94
159 215 323 196 190 338 112  89  36   0  53 119
107 165 271 232 235 356 152 125  72  53   0 103
141 201 305 256 250 385 173 152  94 119 104   0
"""


def regions() -> tuple[str, ...]:
    """Names of the regions that `region_topology` knows, in the order of `round_trips`."""
    return tuple(_REGIONS)


def round_trips() -> NDArray[np.float64]:
    """Published round-trip times between the regions.

    Medians (P50) over the 30 days that ended on 29 June 2025, measured within the provider's network once a minute,
    published in whole milliseconds. The two directions were measured apart and differ by up to 4 ms; the diagonal is
    not published and 0 here.

    Returns
    -------
    float64, shape (12, 12)
        Seconds, from the region of the row to that of the column, in the order of `regions`.

    References
    ----------
    Microsoft, "Azure network round-trip latency statistics", data set of 30 June 2025,
    https://learn.microsoft.com/en-us/azure/networking/azure-network-latency (CC BY 4.0).
    """
    table = np.array([row.split() for row in _ROUND_TRIPS.strip().splitlines()], dtype=np.float64)
    return table / 1000


def region_topology(
    names: Iterable[str] | None = None, *, places_per_region: int = 1, within: float = 0.001
) -> nx.Graph:
    """Places in regions around the world, each pair with the delay that was measured between their regions.

    The one-way latency between two regions is half the mean of the published round trips of both directions
    (`round_trips`). Messages take the direct link (`graph.graph["routed"]` is False), as the measured delay is that of
    the way they took.

    Parameters
    ----------
    names : iterable of str, optional
        Regions to take, out of `regions()`; all where not given.
    places_per_region : int
        Places in each region, >= 1. All pairs of places are linked: n places have n (n - 1) / 2 links.
    within : float
        One-way latency in seconds between two places of one region. The default is half of 2 ms: the provider gave a
        round trip of "less than approximately 2 ms" between the availability zones of a region.

    Returns
    -------
    networkx.Graph
        Places are named as their region ("West US"), or where a region has several, with a number from 0 on
        ("West US 0"). Node attributes `region`, and `latitude` and `longitude` of the region, for drawing; edge
        attribute `latency` in seconds.

    Raises
    ------
    ValueError
        If a region is unknown or named twice, or an argument is out of range.

    References
    ----------
    See `round_trips`; for the latency within a region: Microsoft, "What are availability zones?", January 2025.
    """
    chosen = _checked_regions(names)
    count = _checked_count(places_per_region)
    inside = as_seconds(within, name="within")
    number = {region: i for i, region in enumerate(_REGIONS)}
    table = round_trips()
    graph: nx.Graph = nx.Graph(
        description=f"region_topology({len(chosen)} regions, places_per_region={count}, within={inside:g})",
        routed=False,
    )
    for region in chosen:
        latitude, longitude = _REGIONS[region]
        for place in [region] if count == 1 else [f"{region} {i}" for i in range(count)]:
            graph.add_node(place, region=region, latitude=latitude, longitude=longitude)
    for (u, one), (v, other) in itertools.combinations(list(graph.nodes(data="region")), 2):
        i, j = number[one], number[other]
        graph.add_edge(u, v, latency=inside if i == j else float(table[i, j] + table[j, i]) / 4)
    return graph


def _checked_regions(names: Iterable[str] | None) -> list[str]:
    if isinstance(names, str):
        raise ValueError(f"names must be a collection of regions, got {names!r}; pass names=[{names!r}]")
    chosen = list(_REGIONS) if names is None else list(names)
    for name in chosen:
        if name not in _REGIONS:
            raise ValueError(f"names must be regions out of {', '.join(map(repr, _REGIONS))}, got {name!r}")
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"names must be different regions, at least one, got {chosen}; name each once")
    return chosen


def _checked_count(value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1 or isinstance(value, bool):
        raise ValueError(f"places_per_region must be an integer >= 1, got {value!r}")
    return count
