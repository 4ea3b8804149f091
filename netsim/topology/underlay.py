"""The underlay: places, the links between them, and the shortest-path latency from place to place."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from netsim.topology._checks import as_seconds, iterate_edges, missing_latency
from netsim.topology.positions import read_positions

__all__ = ["Underlay"]

_CHUNK_CELLS = 2**22  # distances held at once by path_latency beside its answer: 32 MiB


@dataclass(frozen=True, eq=False, repr=False)
class Underlay:
    """Immutable description of the places of a network and the links between them.

    Usually made by `Underlay.from_graph`. Two underlays are equal where their places (in order), links and
    latencies are equal; the description does not count.

    Parameters
    ----------
    places : tuple of hashable, length n
        Names of the places, in the order of the graph. Everything else speaks of a place by its index here.
    tail, head : int64, shape (e,)
        Directed edges from place `tail[i]` to place `head[i]`, sorted by (tail, head), no self-loops, no
        duplicates. A link that serves both directions stands here twice. Read-only.
    latency : float64, shape (e,)
        One-way latency of each directed edge in seconds, finite and >= 0. Read-only.
    description : str
        One line that says what the graph is, for people.
    positions : float64, shape (n, 2), optional
        Where each place is drawn, NaN where unknown. Read-only.

    Raises
    ------
    ValueError
        If a field breaks a rule above.
    """

    places: tuple[Hashable, ...]
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    latency: NDArray[np.float64]
    description: str = ""
    positions: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", tuple(self.places))
        object.__setattr__(self, "tail", _frozen(self.tail, np.int64))
        object.__setattr__(self, "head", _frozen(self.head, np.int64))
        object.__setattr__(self, "latency", _frozen(self.latency, np.float64))
        _check_places(self.places)
        if self.positions is not None:
            object.__setattr__(self, "positions", _frozen(self.positions, np.float64))
            _check_positions(self.positions, len(self.places))
        _check_edges(self.tail, self.head, self.latency, len(self.places))

    @classmethod
    def from_graph(cls, graph: nx.Graph, *, latency: str = "latency", default_latency: float | None = None) -> Underlay:
        """Describe a networkx graph.

        Of parallel edges the fastest counts. Self-loops are ignored, whatever their attributes. An undirected
        edge serves both directions with the same latency. The graph may be disconnected. It is never mutated,
        and mutating it later changes nothing here.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            Nodes are the places, by any hashable names. `graph.graph["description"]`, if there, describes it. Node
            attributes `pos`, or `latitude` and `longitude`, if there, say where places are drawn.
        latency : str
            Name of the edge attribute that holds the one-way latency in seconds.
        default_latency : float, optional
            Seconds, for edges without that attribute. Without it such an edge is an error.

        Returns
        -------
        Underlay

        Raises
        ------
        TypeError
            If `graph` is not a networkx graph.
        ValueError
            If the graph has no nodes, or a latency is missing, not a number, NaN, infinite or negative.
        """
        if not isinstance(graph, nx.Graph):
            raise TypeError(
                f"graph must be a networkx graph, got {type(graph).__name__}; build one with "
                "networkx.from_scipy_sparse_array, networkx.from_numpy_array or networkx.from_edgelist"
            )
        default = None if default_latency is None else as_seconds(default_latency, name="default_latency")
        places = tuple(graph.nodes)
        index = {place: i for i, place in enumerate(places)}
        edges = [(index[u], index[v], seconds) for u, v, seconds in _read_links(graph, latency, default)]
        tail, head, values = _fastest_edges(edges, both_ways=not graph.is_directed())
        description = graph.graph.get("description")
        if not description:
            n_links = _count_links(tail, head, values)
            description = f"{type(graph).__name__} with {len(places)} places, {n_links} links"
        return cls(places, tail, head, values, str(description), read_positions(graph))

    @property
    def n_places(self) -> int:
        """Number of places."""
        return len(self.places)

    @property
    def n_links(self) -> int:
        """Number of links: a two-way link counts once where all are two-way, else directed edges count."""
        return _count_links(self.tail, self.head, self.latency)

    @property
    def is_symmetric(self) -> bool:
        """Whether every link serves both directions with the same latency."""
        return _is_symmetric(self.tail, self.head, self.latency)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content in hexadecimal: places by their `repr`, edges by their bits."""
        content = hashlib.sha256()
        for place in self.places:
            text = repr(place.item() if isinstance(place, np.generic) else place).encode()
            content.update(len(text).to_bytes(8, "little") + text)
        content.update(b"edges")
        for array, dtype in ((self.tail, "<i8"), (self.head, "<i8"), (self.latency, "<f8")):
            content.update(array.astype(dtype).tobytes())
        return content.hexdigest()

    def path_latency(self, sources: ArrayLike | None = None, targets: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the shortest-path latency from every source to every target.

        A path's latency is summed from its source on, edge by edge, in float64. Rounded addition keeps order,
        so the least sum is one definite number, whichever of several equal paths the search meets first: the
        answer is the same to the bit on every machine. On a symmetric underlay the way back can differ from
        the way out in the last bit, as its sum runs the other way.

        Nothing is kept between calls. Beside the answer about 32 MiB are in use.

        Parameters
        ----------
        sources, targets : int array, shape (s,) and (t,), optional
            Indices into `places`, repeats allowed. All places where not given.

        Returns
        -------
        float64, shape (s, t)
            Seconds; inf where no path joins the two, 0 from a place to itself.

        Raises
        ------
        ValueError
            If an index is not an integer in [0, n_places).
        """
        rows = self._as_indices("sources", sources)
        columns = self._as_indices("targets", targets)
        answer = np.empty((rows.size, columns.size))
        distinct, inverse = np.unique(rows, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        graph = self._as_csr()
        step = max(1, _CHUNK_CELLS // self.n_places)
        for start in range(0, distinct.size, step):
            distances = dijkstra(graph, indices=distinct[start : start + step])
            first, last = np.searchsorted(inverse, [start, start + step], sorter=order)
            for row in order[first:last]:
                answer[row] = distances[inverse[row] - start][columns]
        return answer

    def to_graph(self, *, latency: str = "latency") -> nx.Graph:
        """Return a new networkx graph with the same places and links.

        Parameters
        ----------
        latency : str
            Name of the edge attribute that receives the latency in seconds.

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            A Graph where every link serves both directions with the same latency, else a DiGraph.
        """
        graph: nx.Graph = nx.Graph() if self.is_symmetric else nx.DiGraph()
        graph.graph["description"] = self.description
        graph.add_nodes_from(self.places)
        if self.positions is not None:
            located = zip(self.places, self.positions.tolist(), strict=True)
            nx.set_node_attributes(graph, {place: (x, y) for place, (x, y) in located if not math.isnan(x)}, "pos")
        for tail, head, seconds in zip(self.tail.tolist(), self.head.tolist(), self.latency.tolist(), strict=True):
            graph.add_edge(self.places[tail], self.places[head], **{latency: seconds})
        return graph

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Underlay):
            return NotImplemented
        return self.places == other.places and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("tail", "head", "latency")
        )

    def __hash__(self) -> int:
        return hash((self.places, self.head.tobytes(), self.latency.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: numpy forgets the read-only flag when it pickles an array.
        return type(self), (self.places, self.tail, self.head, self.latency, self.description, self.positions)

    def __repr__(self) -> str:
        return f"<Underlay: {self.n_places} places, {self.n_links} links, {self.description!r}>"

    def _as_csr(self) -> csr_array:
        """Return the links as a CSR matrix; a zero latency is stored, and scipy's dijkstra follows it."""
        indptr = np.searchsorted(self.tail, np.arange(self.n_places + 1)).astype(np.int32)
        shape = (self.n_places, self.n_places)
        return csr_array((self.latency, self.head.astype(np.int32), indptr), shape=shape)

    def _as_indices(self, name: str, indices: ArrayLike | None) -> NDArray[np.int64]:
        """Return checked place indices, all places for None."""
        if indices is None:
            return np.arange(self.n_places)
        array = np.asarray(indices)
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise ValueError(
                f"{name} must be a 1-d array of integer place indices, got dtype {array.dtype}, shape "
                f"{array.shape}; the index of a place is underlay.places.index(place)"
            )
        outside = np.flatnonzero((array < 0) | (array >= self.n_places)) if array.size else array
        if outside.size:
            raise ValueError(
                f"{name} must be in [0, {self.n_places}), got {array[outside[0]]} at position {outside[0]}; "
                "the index of a place is underlay.places.index(place)"
            )
        return array.astype(np.int64)


def _frozen(values: ArrayLike, dtype: type) -> NDArray[Any]:
    """Return a read-only copy, with 0.0 for -0.0."""
    array: NDArray[Any] = np.array(values, dtype=dtype) + dtype(0)
    array.flags.writeable = False
    return array


def _check_places(places: tuple[Hashable, ...]) -> None:
    if not places:
        raise ValueError("an underlay needs at least one place, got a graph without nodes; add nodes to it")
    if len(set(places)) != len(places):
        raise ValueError("places must differ from each other, got a name twice; give each place its own name")


def _check_positions(positions: NDArray[np.float64], n_places: int) -> None:
    if positions.shape != (n_places, 2) or np.isinf(positions).any():
        raise ValueError(
            f"positions must be finite or NaN, of shape ({n_places}, 2), got shape {positions.shape} and "
            f"{np.isinf(positions).sum()} infinite values; give x and y of each place"
        )


def _check_edges(tail: NDArray[np.int64], head: NDArray[np.int64], latency: NDArray[np.float64], n_places: int) -> None:
    if tail.ndim != 1 or not tail.shape == head.shape == latency.shape:
        raise ValueError(
            "tail, head and latency must be 1-d and of one length, got shapes "
            f"{tail.shape}, {head.shape} and {latency.shape}; give one entry an edge in each"
        )
    outside = (np.minimum(tail, head) < 0) | (np.maximum(tail, head) >= n_places)
    bad = outside | (tail == head) | ~np.isfinite(latency) | (latency < 0)
    bad[1:] |= (tail[1:] < tail[:-1]) | ((tail[1:] == tail[:-1]) & (head[1:] <= head[:-1]))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"edges must be sorted by (tail, head), without repeats and self-loops, between places in "
            f"[0, {n_places}), with a finite latency >= 0, got {tail[i]} -> {head[i]} with {latency[i]} s at "
            f"position {i}; let Underlay.from_graph build them"
        )


def _read_links(graph: nx.Graph, attribute: str, default: float | None) -> Iterator[tuple[Hashable, Hashable, float]]:
    """Yield (u, v, seconds) for every edge but self-loops."""
    for label, attributes in iterate_edges(graph):
        u, v = label[:2]
        if u == v:
            continue
        if attribute in attributes:
            seconds = as_seconds(attributes[attribute], name=attribute, where=f" on edge {label}")
        elif default is not None:
            seconds = default
        else:
            raise ValueError(missing_latency(attribute, label, attributes))
        yield u, v, seconds


def _fastest_edges(
    edges: list[tuple[int, int, float]], *, both_ways: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return (tail, head, latency) sorted by (tail, head), of parallel edges the fastest."""
    tail = np.array([u for u, _, _ in edges], dtype=np.int64)
    head = np.array([v for _, v, _ in edges], dtype=np.int64)
    latency = np.array([seconds for _, _, seconds in edges], dtype=np.float64)
    if both_ways:
        tail, head = np.concatenate([tail, head]), np.concatenate([head, tail])
        latency = np.concatenate([latency, latency])
    order = np.lexsort((latency, head, tail))
    tail, head, latency = tail[order], head[order], latency[order]
    first = np.ones(tail.size, dtype=bool)
    first[1:] = (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])
    return tail[first], head[first], latency[first]


def _is_symmetric(tail: NDArray[np.int64], head: NDArray[np.int64], latency: NDArray[np.float64]) -> bool:
    order = np.lexsort((tail, head))
    return bool(
        np.array_equal(head[order], tail)
        and np.array_equal(tail[order], head)
        and np.array_equal(latency[order], latency)
    )


def _count_links(tail: NDArray[np.int64], head: NDArray[np.int64], latency: NDArray[np.float64]) -> int:
    return tail.size // 2 if _is_symmetric(tail, head, latency) else tail.size
