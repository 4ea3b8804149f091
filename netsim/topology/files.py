"""Topologies from files: GraphML and edge lists, with latencies in seconds."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from netsim.topology._checks import as_number, as_seconds, iterate_edges, missing_latency

__all__ = ["read_edge_list", "read_graphml"]

# What networkx lets through on files that are not, or not quite, GraphML.
_UNREADABLE = (nx.NetworkXError, ParseError, OSError, ValueError, LookupError, AttributeError, TypeError)


def read_graphml(
    path: str | PathLike[str],
    *,
    latency: str = "latency",
    default_latency: float | None = None,
    scale: float = 1.0,
) -> nx.Graph:
    """Read a GraphML file, e.g. one of the Internet Topology Zoo.

    Parameters
    ----------
    path : path
        The file; ".gz" and ".bz2" are decompressed.
    latency : str
        Name of the edge attribute that holds the one-way latency, a number or its text. A `<default>` that
        the file declares for it is followed.
    default_latency : float, optional
        Seconds, for edges without that attribute; not scaled. Without it such an edge is an error.
    scale : float
        Seconds in the file's unit, e.g. 1e-3 where the file holds milliseconds.

    Returns
    -------
    networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        As the file has it, parallel edges and self-loops kept, nodes named by their GraphML id (str). Every
        edge has `latency` in seconds; other attributes stay. `graph.graph["description"]` is the file's name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not GraphML, holds no node, or a latency is missing or not a finite number >= 0.
    """
    file = _existing(path)
    default = _checked_default(default_latency)
    scale = _checked_scale(scale)
    graph = _parse_graphml(file)
    declared = graph.graph.get("edge_default", {})
    for label, attributes in iterate_edges(graph):
        value = attributes.get(latency, declared.get(latency))
        if value is not None:
            attributes["latency"] = _scaled(value, scale, latency, f" on edge {label} of {file}")
        elif default is not None:
            attributes["latency"] = default
        else:
            raise ValueError(f"{file}: {missing_latency(latency, label, attributes)}")
    graph.graph["description"] = file.name
    return graph


def read_edge_list(
    path: str | PathLike[str],
    *,
    latency_column: int | None = 2,
    default_latency: float | None = None,
    scale: float = 1.0,
    delimiter: str | None = None,
    comments: str | None = "#",
    directed: bool = False,
    skip_lines: int = 0,
    node_type: Callable[[str], Hashable] = str,
) -> nx.Graph:
    """Read a text file with one edge `u v [latency]` a line.

    Blank lines and comments are skipped. Where a pair of places stands on several lines, the fastest counts.
    Lines can have more columns, which are ignored, but all of them the same number (or two, for an edge
    without latency).

    Parameters
    ----------
    path : path
        The file, UTF-8, with any line ends.
    latency_column : int or None
        Column of the one-way latency, counted from 0, >= 2. None where the file holds no latencies; then
        `default_latency` must be given.
    default_latency : float, optional
        Seconds, for lines of two columns; not scaled. Without it such a line is an error.
    scale : float
        Seconds in the file's unit, e.g. 1e-3 where the file holds milliseconds.
    delimiter : str, optional
        What separates columns; any white space where not given.
    comments : str or None
        What starts a comment, which runs to the end of the line. None where the file has no comments.
    directed : bool
        Whether an edge leads from u to v only.
    skip_lines : int
        Lines to skip at the top, e.g. 1 for a header.
    node_type : callable
        Makes a place's name from its text, e.g. `int`.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Places in the order in which the file names them, self-loops kept, `latency` in seconds on every edge.
        `graph.graph["description"]` is the file's name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an argument is out of range, a line is malformed, or there is no edge.
    """
    file = _existing(path)
    layout = _Layout(
        file=file,
        latency_column=_checked_column(latency_column, default_latency),
        default=_checked_default(default_latency),
        scale=_checked_scale(scale),
        node_type=node_type,
    )
    graph: nx.Graph = nx.DiGraph() if directed else nx.Graph()
    width = 2
    for number, line in _lines(file, comments, skip_lines):
        columns = [column.strip() for column in line.split(delimiter)]
        width = max(width, len(columns)) if width == 2 else width
        u, v, seconds = layout.read_edge(number, line, columns, width)
        known = graph.get_edge_data(u, v, {"latency": math.inf})["latency"]
        graph.add_edge(u, v, latency=min(seconds, known))
    if not len(graph):
        raise ValueError(f"{file}: expected one edge 'u v [latency]' a line, got no edge; check the file")
    graph.graph["description"] = file.name
    return graph


@dataclass(frozen=True)
class _Layout:
    """What an edge list's lines mean."""

    file: Path
    latency_column: int | None
    default: float | None
    scale: float
    node_type: Callable[[str], Hashable]

    def read_edge(self, number: int, line: str, columns: list[str], width: int) -> tuple[Hashable, Hashable, float]:
        """Return (u, v, seconds) of a line split into columns; `width` is what long lines have."""
        where = f"{self.file}, line {number}"
        found = f"got {line.strip()!r} ({len(columns)} column{'s' * (len(columns) != 1)})"
        if len(columns) < 2 or not all(columns[:2]):
            raise ValueError(
                f"{where}: expected 'u v' or 'u v latency', {found}; correct the line, or pass "
                f"skip_lines={number} where the file starts with a header, or delimiter=..."
            )
        if len(columns) not in (2, width):
            raise ValueError(f"{where}: expected 2 or {width} columns as above, {found}; correct the line")
        return (*self._read_names(where, columns), self._read_latency(where, found, columns))

    def _read_names(self, where: str, columns: list[str]) -> tuple[Hashable, Hashable]:
        try:
            return self.node_type(columns[0]), self.node_type(columns[1])
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{where}: expected two places that node_type can read, got {columns[0]!r} and "
                f"{columns[1]!r} ({error}); correct the line or pass node_type=str"
            ) from error

    def _read_latency(self, where: str, found: str, columns: list[str]) -> float:
        column = self.latency_column
        if column is not None and len(columns) > column:
            return _scaled(columns[column], self.scale, "latency", f" at {where}")
        if self.default is not None and (column is None or len(columns) == 2):
            return self.default
        mend = "" if len(columns) > 2 else ", or pass default_latency=..."
        raise ValueError(
            f"{where}: expected a latency in column {column} (from 0), {found}; add it, or correct latency_column{mend}"
        )


def _existing(path: str | PathLike[str]) -> Path:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"path must name a topology file, got {str(file)!r}, which is no file (looked in {Path.cwd()}); correct it"
        )
    return file


def _parse_graphml(file: Path) -> nx.Graph:
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


def _lines(file: Path, comments: str | None, skip_lines: int) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of each line that is left without comments and blanks."""
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file}, line {number}: expected UTF-8 text, got {error}; convert the file") from error
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        kept = line.split(comments, 1)[0] if comments else line
        if number > skip_lines and kept.strip():
            yield number, kept.rstrip("\n")


def _scaled(value: Any, scale: float, name: str, where: str) -> float:
    """Return a value of the file in seconds."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = math.nan
    seconds = as_number(number) * scale
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(
            f"{name} must be a finite number >= 0, got {value!r}{where}; correct it in the file "
            f"(scale={scale} turns the file's unit into seconds)"
        )
    return seconds + 0.0


def _checked_default(default_latency: float | None) -> float | None:
    return None if default_latency is None else as_seconds(default_latency, name="default_latency")


def _checked_scale(scale: float) -> float:
    number = as_number(scale)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"scale must be a finite number > 0, got {scale!r}; pass the seconds in the file's unit, e.g. 1e-3 for ms"
        )
    return number


def _checked_column(latency_column: int | None, default_latency: float | None) -> int | None:
    if latency_column is None and default_latency is None:
        raise ValueError("default_latency must be given where latency_column is None, got None; pass seconds")
    if latency_column is not None and latency_column < 2:
        raise ValueError(
            f"latency_column must be >= 2 or None, got {latency_column!r}; columns 0 and 1 are the two places"
        )
    return latency_column
