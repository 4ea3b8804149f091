"""Topologies from edge lists: text with one link a line, latencies in seconds or in the file's unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import networkx as nx

from netsim.topology._files import checked_default, checked_scale, existing, lines, scaled
from netsim.topology.links import check_component, largest_part

__all__ = ["read_edge_list"]


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
    component: str = "all",
) -> nx.Graph:
    """Read a text file with one edge `u v [latency]` a line, e.g. one of the SNAP collection.

    Blank lines and comments are skipped. Where a pair of places stands on several lines, the fastest counts. Of a
    line `u u` the place stays and the self-loop is dropped. Lines can have more columns, which are ignored, but all
    of them the same number (or two, for an edge without latency).

    Parameters
    ----------
    path : path
        The file, UTF-8, with any line ends; gzip is known by its first bytes.
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
    component : {"all", "largest"}
        Whether to keep all parts of a disconnected graph or the largest alone.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Places in the order in which the file names them, `latency` in seconds on every edge.
        `graph.graph["description"]` is the file's name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an argument is out of range, a line is malformed, or there is no edge.
    """
    file = existing(path)
    check_component(component)
    layout = _Layout(
        file=file,
        latency_column=_checked_column(latency_column, default_latency),
        default=checked_default(default_latency),
        scale=checked_scale(scale),
        node_type=node_type,
    )
    graph: nx.Graph = nx.DiGraph() if directed else nx.Graph()
    width = 2
    for number, line in lines(file, comments, skip_lines):
        columns = [column.strip() for column in line.split(delimiter)]
        width = max(width, len(columns)) if width == 2 else width
        u, v, seconds = layout.read_edge(number, line, columns, width)
        graph.add_nodes_from((u, v))
        if u != v:
            known = graph.get_edge_data(u, v, {"latency": math.inf})["latency"]
            graph.add_edge(u, v, latency=min(seconds, known))
    if not len(graph):
        raise ValueError(f"{file}: expected one edge 'u v [latency]' a line, got no edge; check the file")
    graph.graph["description"] = file.name
    return largest_part(graph) if component == "largest" else graph


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
            return scaled(columns[column], self.scale, "latency", f" at {where}")
        if self.default is not None and (column is None or len(columns) == 2):
            return self.default
        mend = "" if len(columns) > 2 else ", or pass default_latency=..."
        raise ValueError(
            f"{where}: expected a latency in column {column} (from 0), {found}; add it, or correct latency_column{mend}"
        )


def _checked_column(latency_column: int | None, default_latency: float | None) -> int | None:
    if latency_column is None and default_latency is None:
        raise ValueError("default_latency must be given where latency_column is None, got None; pass seconds")
    if latency_column is not None and latency_column < 2:
        raise ValueError(
            f"latency_column must be >= 2 or None, got {latency_column!r}; columns 0 and 1 are the two places"
        )
    return latency_column
