"""Topologies from GraphML files, with latencies from an attribute or from the places' coordinates."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree.ElementTree import ParseError

import networkx as nx

from netsim.topology._checks import as_bandwidth, as_probability, iterate_edges
from netsim.topology._files import checked_default, checked_scale, existing, parse_number, scaled
from netsim.topology.geography import checked_stretch, fibre_latency, mean_location
from netsim.topology.links import check_component, fastest_only, largest_part

__all__ = ["read_graphml"]

Point: TypeAlias = tuple[float, float]

# What networkx lets through on files that are not, or not quite, GraphML.
_UNREADABLE = (nx.NetworkXError, ParseError, OSError, ValueError, LookupError, AttributeError, TypeError)


def read_graphml(
    path: str | PathLike[str],
    *,
    latency: str = "latency",
    default_latency: float | None = None,
    scale: float = 1.0,
    coordinates: tuple[str, str] | None = ("Latitude", "Longitude"),
    locate: bool = False,
    stretch: float = 1.0,
    speed: str | None = "LinkSpeedRaw",
    component: str = "all",
) -> nx.Graph:
    """Read a GraphML file, e.g. one of the Internet Topology Zoo.

    Each edge's latency is the first of these that there is:

    1. the attribute `latency`, times `scale`;
    2. the great circle between its two places, times `stretch`, over the speed of light in fibre;
    3. `default_latency`;
    4. else it is an error that names the edge.

    Of parallel edges the fastest stays; of equally fast ones that with the lower loss, then that with the higher
    bandwidth. Self-loops are dropped. Places without a link stay.

    Parameters
    ----------
    path : path
        The file; ".gz" and ".bz2" are decompressed.
    latency : str
        Name of the edge attribute that holds the one-way latency, a number or its text. A `<default>` that
        the file declares for it is followed.
    default_latency : float, optional
        Seconds, for edges that have no latency otherwise; not scaled.
    scale : float
        Seconds in the file's unit, e.g. 1e-3 where the file holds milliseconds.
    coordinates : (str, str) or None
        Names of the node attributes that hold latitude and longitude in degrees; also known in small letters. None:
        distances are not used.
    locate : bool
        Whether to put a place without coordinates into the middle of its neighbours that have some, in rounds, until
        no more can be located. It gets the attributes, and `located` = "neighbours".
    stretch : float
        Length of a fibre over that of the great circle, >= 1.
    speed : str or None
        Name of the edge attribute that holds the link's speed in bits per second. It becomes `bandwidth`, unless the
        edge has that already; an edge without either has no limit. None: not used.
    component : {"all", "largest"}
        Whether to keep all parts of a disconnected graph or the largest alone.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Nodes named by their GraphML id (str). Every edge has `latency` in seconds and may have `bandwidth` in bytes/s
        and `loss`, a probability; other attributes stay. `graph.graph["description"]` is the file's name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not GraphML, holds no node, an argument or an attribute is out of range, or a latency is missing.

    References
    ----------
    S. Knight et al., "The Internet Topology Zoo", IEEE Journal on Selected Areas in Communications 29, 2011.
    """
    reader = _Reader(
        file=existing(path),
        latency=latency,
        default=checked_default(default_latency),
        scale=checked_scale(scale),
        coordinates=_checked_coordinates(coordinates),
        locate=_checked_locate(locate),
        stretch=checked_stretch(stretch),
        speed=speed,
    )
    check_component(component)
    graph = fastest_only(reader.read())
    return largest_part(graph) if component == "largest" else graph


@dataclass(frozen=True)
class _Reader:
    """A file, and what its attributes mean."""

    file: Path
    latency: str
    default: float | None
    scale: float
    coordinates: tuple[str, str] | None
    locate: bool
    stretch: float
    speed: str | None

    def read(self) -> nx.Graph:
        """Return the graph as the file has it, every link with its latency."""
        graph = _parse(self.file)
        points = self._locate(graph, self._read_points(graph)) if self.locate else self._read_points(graph)
        declared = graph.graph.get("edge_default", {})
        for label, attributes in iterate_edges(graph):
            if label[0] != label[1]:
                attributes |= self._read_edge(label, declared | attributes, points)
        graph.graph["description"] = self.file.name
        return graph

    def _read_edge(
        self, label: tuple[Any, ...], attributes: dict[str, Any], points: dict[Hashable, Point]
    ) -> dict[str, float]:
        """Return latency, and loss and bandwidth where known."""
        where = f" on edge {label} of {self.file}"
        carried = {"latency": self._read_latency(label, attributes, points, where)}
        if "loss" in attributes:
            carried["loss"] = as_probability(_unquoted(attributes["loss"]), where=where)
        if "bandwidth" in attributes:
            carried["bandwidth"] = as_bandwidth(_unquoted(attributes["bandwidth"]), where=where)
        elif self.speed is not None and self.speed in attributes:
            carried["bandwidth"] = self._read_speed(attributes[self.speed], where)
        return carried

    def _read_latency(
        self, label: tuple[Any, ...], attributes: dict[str, Any], points: dict[Hashable, Point], where: str
    ) -> float:
        ends = label[:2]
        if attributes.get(self.latency) is not None:
            return scaled(attributes[self.latency], self.scale, self.latency, where)
        if all(end in points for end in ends):
            return fibre_latency(*points[ends[0]], *points[ends[1]], stretch=self.stretch)
        if self.default is not None:
            return self.default
        raise ValueError(self._missing(label, attributes, points))

    def _missing(self, label: tuple[Any, ...], attributes: dict[str, Any], points: dict[Hashable, Point]) -> str:
        found = ", ".join(sorted(repr(name) for name in attributes)) or "none"
        message = f"{self.file}: edge {label} has no attribute {self.latency!r} (its attributes: {found})"
        mend = "name another attribute with latency=..., or pass default_latency=..."
        if self.coordinates is not None:
            lost = ", ".join(repr(end) for end in label[:2] if end not in points)
            message += f" and no coordinates {self.coordinates} of {lost}"
            mend += "" if self.locate else ", or locate=True to put such places between their neighbours"
        return f"{message}; {mend}"

    def _read_speed(self, value: Any, where: str) -> float:
        bits = parse_number(value)
        if not (math.isfinite(bits) and bits > 0):
            raise ValueError(
                f"{self.speed} must be a finite number of bits/s > 0, got {value!r}{where}; correct it in the file, or "
                "pass speed=None to leave speeds out"
            )
        return as_bandwidth(bits / 8, where=where)

    def _read_points(self, graph: nx.Graph) -> dict[Hashable, Point]:
        """Return (latitude, longitude) of each place that has both."""
        if self.coordinates is None:
            return {}
        points = {}
        for place, attributes in graph.nodes(data=True):
            given = [attributes.get(name, attributes.get(name.lower())) for name in self.coordinates]
            if None not in given:
                points[place] = self._as_point(place, given)
        return points

    def _as_point(self, place: Hashable, given: list[Any]) -> Point:
        latitude, longitude = (parse_number(value) for value in given)
        if not (abs(latitude) <= 90 and abs(longitude) <= 360):
            raise ValueError(
                f"{self.file}: {' and '.join(self.coordinates or ())} of place {place!r} must be degrees in [-90, 90] "
                f"and [-360, 360], got {given[0]!r} and {given[1]!r}; correct them, or pass coordinates=None"
            )
        return latitude, longitude

    def _locate(self, graph: nx.Graph, points: dict[Hashable, Point]) -> dict[Hashable, Point]:
        """Return the points of all places that have a way to one with coordinates, and write them to the graph."""
        points = dict(points)
        around: nx.Graph = nx.Graph(graph.to_undirected())
        latitude, longitude = self.coordinates or ("", "")
        while found := {
            place: point
            for place in graph
            if place not in points
            and (point := mean_location(points[each] for each in around[place] if each in points)) is not None
        }:
            points |= found
            for place, point in found.items():
                graph.nodes[place].update({latitude: point[0], longitude: point[1], "located": "neighbours"})
        return points


def _unquoted(value: Any) -> Any:
    """Return the number where a value is text of one."""
    number = parse_number(value)
    return value if math.isnan(number) else number


def _parse(file: Path) -> nx.Graph:
    try:
        graph = nx.read_graphml(file)
    except _UNREADABLE as error:
        raise ValueError(
            f"{file}: expected a GraphML file with one graph, got {type(error).__name__}: {error}; check "
            "that it is complete and of this format"
        ) from error
    if not len(graph):
        raise ValueError(f"{file}: expected a graph with nodes, got none; check that the file is complete")
    return graph


def _checked_coordinates(coordinates: Any) -> tuple[str, str] | None:
    if coordinates is None:
        return None
    if isinstance(coordinates, str) or [type(name) for name in coordinates] != [str, str]:
        raise ValueError(
            f"coordinates must be the names of two node attributes or None, got {coordinates!r}; pass e.g. "
            "coordinates=('lat', 'lon')"
        )
    latitude, longitude = coordinates
    return latitude, longitude


def _checked_locate(locate: object) -> bool:
    if not isinstance(locate, bool):
        raise ValueError(f"locate must be True or False, got {locate!r}")
    return locate
