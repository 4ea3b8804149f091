"""Where places are drawn: by their own positions, or so that linked places lie near each other."""

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from netsim.topology import Underlay

__all__ = ["layout"]

_KAMADA_KAWAI = 100  # most places for the best layout, whose time grows with their cube
_SPRINGS = 499  # most places for networkx's quick springs; from 500 on they take 20 s and more
_PIVOTS = 50
_SEED = 0  # the picture of a graph is always the same


def layout(underlay: Underlay) -> np.ndarray:
    """Position of each place in the plane; the same graph always gets the same one.

    Positions that the underlay knows are kept. Without any, the layout is that of Kamada and Kawai for a connected
    graph of up to 100 places; for others pivot multidimensional scaling [1]_, followed by springs (Fruchterman and
    Reingold) up to 499 places. Springs also find the positions that are missing among known ones.

    Parameters
    ----------
    underlay : Underlay

    Returns
    -------
    float64, shape (n_places, 2)
        Centred at 0; the longer side of the box around all places is 1, or they lie all at 0.

    References
    ----------
    .. [1] U. Brandes and C. Pich, "Eigensolver methods for progressive multidimensional scaling of large data",
       Graph Drawing 2006.
    """
    known = underlay.positions
    if known is None:
        positions = _drawn(underlay)
    elif np.isnan(known).any():
        positions = _completed(underlay, known)
    else:
        positions = known
    low, high = positions.min(axis=0), positions.max(axis=0)
    side = float((high - low).max())
    centred: np.ndarray = positions - (low + high) / 2
    return centred / side if side > 0 else centred


def _drawn(underlay: Underlay) -> np.ndarray:
    graph = _links(underlay)
    if underlay.n_places <= _KAMADA_KAWAI and nx.is_connected(graph):
        return _in_order(nx.kamada_kawai_layout(graph))
    start = _pivot_scaling(graph)
    if underlay.n_places > _SPRINGS:
        return start
    return _in_order(nx.spring_layout(graph, pos=dict(enumerate(start)), seed=_SEED))


def _pivot_scaling(graph: nx.Graph) -> np.ndarray:
    """Positions whose distances resemble the numbers of links between places, seen from some pivots."""
    n = len(graph)
    links = csr_array(nx.to_scipy_sparse_array(graph))
    hops = np.empty((n, min(n, _PIVOTS)))
    nearest = np.full(n, np.inf)
    pivot = 0
    for column in range(hops.shape[1]):
        hops[:, column] = dijkstra(links, indices=np.array([pivot]), unweighted=True)[0]
        nearest = np.minimum(nearest, hops[:, column])
        pivot = int(np.argmax(nearest))  # the place farthest from all pivots so far
    hops[np.isinf(hops)] = 1.5 * hops[np.isfinite(hops)].max() + 1.0
    squares = hops**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    found, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    positions = np.zeros((n, 2))
    positions[:, : sizes.size] = (found * np.sqrt(sizes))[:, :2]
    positions /= float(np.abs(positions).max()) or 1.0
    # Places that no pivot tells apart would lie on each other.
    positions += np.random.default_rng(_SEED).normal(scale=1e-2, size=positions.shape)
    return positions


def _completed(underlay: Underlay, known: np.ndarray) -> np.ndarray:
    here = np.flatnonzero(~np.isnan(known[:, 0]))
    middle = known[here].mean(axis=0)
    size = float(np.ptp(known[here], axis=0).max()) or 1.0
    start = {n: (known[n] - middle) / size for n in here.tolist()}
    found = nx.spring_layout(_links(underlay), pos=start, fixed=list(start), seed=_SEED)
    positions: np.ndarray = _in_order(found) * size + middle
    positions[here] = known[here]
    return positions


def _in_order(found: dict[int, np.ndarray]) -> np.ndarray:
    return np.array([found[n] for n in range(len(found))])


def _links(underlay: Underlay) -> nx.Graph:
    graph: nx.Graph = nx.empty_graph(underlay.n_places)
    graph.add_edges_from(zip(underlay.tail.tolist(), underlay.head.tolist(), strict=True))
    return graph
