"""Topologies from measured matrices: one row and one column a place, each entry the delay between two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from os import PathLike
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from netsim.topology._files import checked_scale, existing, lines, parse_number

__all__ = ["read_latency_matrix"]

_ABSENT = {"", "-", "na", "n/a", "nan"}
_RULES = ("error", "reverse", "unlinked")


def read_latency_matrix(
    path: str | PathLike[str],
    *,
    scale: float,
    round_trip: bool = True,
    missing: str = "error",
    routed: bool = False,
    names: Sequence[Hashable] | None = None,
    delimiter: str | None = None,
    comments: str | None = "#",
    skip_lines: int = 0,
) -> nx.Graph:
    """Read a square matrix of delays, e.g. the round-trip times between PlanetLab's machines.

    The entry in row i and column j is the delay from place i to place j. It is a measurement where it is a finite
    number > 0. An entry that is empty, `nan`, `na`, `-`, infinite, negative (often -1) or 0 is none: it is missing.
    What stands on the diagonal is not read.

    Parameters
    ----------
    path : path
        The file: one row a line, UTF-8; gzip is known by its first bytes.
    scale : float
        Seconds in the file's unit, e.g. 1e-3 where the file holds milliseconds.
    round_trip : bool
        Whether the file holds round trips. Then half of one is the latency of its link.
    missing : {"error", "reverse", "unlinked"}
        What a missing entry means: an error that names it; the delay of the opposite direction, and no link where that
        is missing too; or no link.
    routed : bool
        Whether messages may go through third places. Measured delays are those of the way that the network took, so by
        default they may not, and a detour that is shorter than the direct way is not taken. Written to
        `graph.graph["routed"]`, from which `Underlay.from_graph` takes it.
    names : sequence of hashable, optional
        Names of the places; 0, 1, ... where not given.
    delimiter : str, optional
        What separates entries. Where not given: tabs, where the first row has one, else any white space.
    comments : str or None
        What starts a comment, which runs to the end of the line. None where the file has no comments.
    skip_lines : int
        Lines to skip at the top, e.g. 1 for a header.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        A Graph where the matrix is symmetric, else a DiGraph; `latency` in seconds on every edge.
        `graph.graph["description"]` is the file's name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an argument is out of range, the matrix is not square, an entry is no number, or one is missing.

    References
    ----------
    R. Zhu, B. Liu, D. Niu, Z. Li and H. V. Zhao, "Network latency estimation for personal devices: a matrix completion
    approach", IEEE/ACM Transactions on Networking 25, 2017 (NetLatency-Data: PlanetLab, 490 places).
    """
    file = existing(path)
    unit = checked_scale(scale)
    for name, value in (("round_trip", round_trip), ("routed", routed)):
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be True or False, got {value!r}")
    if missing not in _RULES:
        raise ValueError(f"missing must be one of {', '.join(map(repr, _RULES))}, got {missing!r}")
    entries, numbers = _read_entries(file, delimiter, comments, skip_lines)
    places = _checked_names(names, len(entries), file)
    with np.errstate(over="ignore", under="ignore"):
        seconds = _fill(entries, missing, numbers, file) * unit / (2 if round_trip else 1)
    _check_finite(seconds, unit, file)
    graph = _as_graph(seconds, places)
    graph.graph.update(description=file.name, routed=routed)
    return graph


def _read_entries(
    file: Path, delimiter: str | None, comments: str | None, skip_lines: int
) -> tuple[NDArray[np.float64], list[int]]:
    """Return the matrix, NaN where an entry is missing or on the diagonal, and each row's line number."""
    rows: list[list[float]] = []
    numbers: list[int] = []
    for number, line in lines(file, comments, skip_lines):
        if delimiter is None and not rows and "\t" in line:
            delimiter = "\t"
        cells = [cell.strip() for cell in line.split(delimiter)]
        where = f"{file}, line {number}"
        if rows and len(cells) != len(rows[0]):
            raise ValueError(
                f"{where}: expected {len(rows[0])} entries as in the first row, got {len(cells)}; correct the line, or "
                "pass delimiter=..."
            )
        rows.append([_read_cell(cell, where, column) for column, cell in enumerate(cells)])
        numbers.append(number)
    if not rows or len(rows) != len(rows[0]):
        width = len(rows[0]) if rows else 0
        raise ValueError(
            f"{file}: expected a square matrix, got {len(rows)} rows of {width} entries; check that the file is "
            "complete, or pass delimiter=... or skip_lines=..."
        )
    entries = np.array(rows)
    np.fill_diagonal(entries, np.nan)
    return entries, numbers


def _read_cell(cell: str, where: str, column: int) -> float:
    """Return a delay in the file's unit, NaN where it is missing."""
    if cell.lower() in _ABSENT:
        return math.nan
    value = parse_number(cell)
    if math.isnan(value):
        raise ValueError(
            f"{where}, column {column + 1}: expected a number, got {cell!r}; correct it, or pass skip_lines=... where "
            "the file starts with a header"
        )
    return value if 0 < value < math.inf else math.nan


def _fill(entries: NDArray[np.float64], missing: str, numbers: list[int], file: Path) -> NDArray[np.float64]:
    """Apply the rule for missing entries."""
    if missing == "reverse":
        return np.where(np.isnan(entries), entries.T, entries)
    absent = np.isnan(entries) & ~np.eye(len(entries), dtype=bool)
    if missing == "error" and absent.any():
        row, column = np.argwhere(absent)[0]
        raise ValueError(
            f"{file}, line {numbers[row]}, column {column + 1}: expected a number > 0, got none ({absent.sum()} "
            "entries of the matrix are missing, zero or negative); pass missing='reverse' to take the opposite "
            "direction, or missing='unlinked' for no link"
        )
    return entries


def _check_finite(seconds: NDArray[np.float64], scale: float, file: Path) -> None:
    if not (np.isfinite(seconds) & (seconds > 0) | np.isnan(seconds)).all():
        raise ValueError(
            f"{file}: expected delays that scale={scale} turns into seconds, got 0 or infinity; correct it"
        )


def _checked_names(names: Sequence[Hashable] | None, n_places: int, file: Path) -> list[Hashable]:
    places: list[Hashable] = list(range(n_places)) if names is None else list(names)
    if len(places) != n_places or len(set(places)) != n_places:
        raise ValueError(
            f"names must be {n_places} different names, one a row of {file}, got {len(places)}, "
            f"{len(set(places))} of them different"
        )
    return places


def _as_graph(seconds: NDArray[np.float64], places: list[Hashable]) -> nx.Graph:
    """Return a graph with a link for each entry that is a number."""
    symmetric = np.array_equal(seconds, seconds.T, equal_nan=True)
    graph: nx.Graph = nx.Graph() if symmetric else nx.DiGraph()
    graph.add_nodes_from(places)
    linked = ~np.isnan(seconds)
    rows, columns = np.nonzero(np.triu(linked) if symmetric else linked)
    for row, column, latency in zip(rows.tolist(), columns.tolist(), seconds[rows, columns].tolist(), strict=True):
        graph.add_edge(places[row], places[column], latency=latency)
    return graph
