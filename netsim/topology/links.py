"""Which edges of a graph count as links, and what they carry: parallel edges, self-loops, parts.

Of parallel edges the fastest counts, with its own loss and bandwidth; of equally fast ones that with the lower loss,
then that with the higher bandwidth. A self-loop is no link. A graph may fall into parts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from netsim.topology._checks import as_bandwidth, as_probability, as_seconds, iterate_edges, missing_latency

__all__ = ["Attributes", "Edges", "check_component", "count_links", "fastest_only", "is_symmetric", "largest_part"]


class Edges(NamedTuple):
    """Directed edges, each a one-dimensional array of the same length."""

    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    latency: NDArray[np.float64]
    loss: NDArray[np.float64]
    bandwidth: NDArray[np.float64]


class Attributes(NamedTuple):
    """Names of the edge attributes, and the latency in seconds where there is none."""

    latency: str
    loss: str
    bandwidth: str
    default: float | None

    def read_edges(self, graph: nx.Graph) -> Edges:
        """Return the links of a graph, sorted by (tail, head), by the rule of this module."""
        index = {place: i for i, place in enumerate(graph.nodes)}
        found = [(index[u], index[v], *carried) for u, v, carried in self._links(graph)]
        columns = np.array(found, dtype=np.float64).reshape(-1, 5).T
        edges = Edges(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], columns[3], columns[4])
        if not graph.is_directed():
            pairs: Any = zip(edges, _turned(edges), strict=True)
            edges = Edges(*(np.concatenate(pair) for pair in pairs))
        return _fastest(edges)

    def _links(self, graph: nx.Graph) -> Iterator[tuple[Hashable, Hashable, tuple[float, float, float]]]:
        """Yield (u, v, (latency, loss, bandwidth)) of every edge but self-loops."""
        for label, attributes in iterate_edges(graph):
            u, v = label[:2]
            if u != v:
                yield u, v, self._carried(label, attributes)

    def _carried(self, label: tuple[Any, ...], attributes: dict[str, Any]) -> tuple[float, float, float]:
        where = f" on edge {label}"
        if self.latency in attributes:
            seconds = as_seconds(attributes[self.latency], name=self.latency, where=where)
        elif self.default is not None:
            seconds = self.default
        else:
            raise ValueError(missing_latency(self.latency, label, attributes))
        loss = as_probability(attributes.get(self.loss, 0.0), name=self.loss, where=where)
        bandwidth = as_bandwidth(attributes.get(self.bandwidth, math.inf), name=self.bandwidth, where=where)
        return seconds, loss, bandwidth


def _turned(edges: Edges) -> Edges:
    return edges._replace(tail=edges.head, head=edges.tail)


def _fastest(edges: Edges) -> Edges:
    order = np.lexsort((-edges.bandwidth, edges.loss, edges.latency, edges.head, edges.tail))
    tail, head = edges.tail[order], edges.head[order]
    first = np.ones(tail.size, dtype=bool)
    first[1:] = (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])
    columns: Any = (column[order][first] for column in edges)
    return Edges(*columns)


def is_symmetric(edges: Edges) -> bool:
    """Whether every link serves both directions alike; the edges are sorted by (tail, head)."""
    order = np.lexsort((edges.tail, edges.head))
    return all(np.array_equal(back[order], there) for back, there in zip(_turned(edges), edges, strict=True))


def count_links(edges: Edges) -> int:
    """Count links: a two-way link once where all are two-way, else directed edges."""
    return edges.tail.size // 2 if is_symmetric(edges) else edges.tail.size


def fastest_only(graph: nx.Graph) -> nx.Graph:
    """Return a graph with one edge a pair, by the rule of this module, and no self-loop; its nodes all stay.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Every edge has `latency`, and may have `loss` and `bandwidth`, all checked.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
    """
    simple: nx.Graph = nx.DiGraph() if graph.is_directed() else nx.Graph()
    simple.graph.update(graph.graph)
    simple.add_nodes_from(graph.nodes(data=True))
    for (u, v, *_), attributes in iterate_edges(graph):
        known = simple.get_edge_data(u, v)
        if u != v and (known is None or _rank(attributes) < _rank(known)):
            simple.add_edge(u, v)
            simple.edges[u, v].clear()
            simple.edges[u, v].update(attributes)
    return simple


def _rank(attributes: dict[str, Any]) -> tuple[float, float, float]:
    return attributes["latency"], attributes.get("loss", 0.0), -attributes.get("bandwidth", math.inf)


def check_component(component: str) -> None:
    """Raise a ValueError where `component` is neither "all" nor "largest"."""
    if component not in ("all", "largest"):
        raise ValueError(
            f"component must be 'all' or 'largest', got {component!r}; 'largest' leaves out the places that have no "
            "path to the largest part"
        )


def largest_part(graph: nx.Graph) -> nx.Graph:
    """Return the largest connected part, directions aside; of equally large ones that with the first place."""
    # By way of an undirected view, which the type stubs know not to be a DiGraph.
    parts = nx.connected_components(graph.to_undirected(as_view=True))
    largest = max(parts, key=len)  # the first of the longest, and parts come in the order of their first places
    kept: nx.Graph = graph.copy()  # and not a subgraph, whose places can come in the order of their hashes
    kept.remove_nodes_from([place for place in graph if place not in largest])
    return kept
