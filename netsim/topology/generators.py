"""Topologies by name: random and regular graphs whose links carry a latency.

Each generator returns a plain `networkx.Graph` with integer nodes 0..n-1 (`grid`: (row, column) pairs) in
sorted order, an edge attribute `latency` (one way, in seconds), and `graph.graph["description"]`, which says
how it was made.

`seed` takes anything that `numpy.random.default_rng` takes. The links come first: networkx gets a seed drawn
from it. Then the latencies are drawn, link by link in sorted order. So the same seed gives the same links
whatever the latencies.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import networkx as nx
import numpy as np

from netsim.topology._checks import as_number, as_seconds

__all__ = [
    "GENERATORS",
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "generate",
    "grid",
    "path",
    "random_geometric",
    "random_regular",
    "ring",
    "star",
    "watts_strogatz",
    "waxman",
]

Latency: TypeAlias = float | tuple[float, float]
Seed: TypeAlias = int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None

_TRIES = 100  # draws of a Watts-Strogatz graph before giving up on a connected one


def barabasi_albert(n: int, m: int, *, seed: Seed, latency: Latency = 0.01) -> nx.Graph:
    """Grow a scale-free graph by preferential attachment; it is connected, with m (n - m) links.

    Parameters
    ----------
    n : int
        Number of places.
    m : int
        Links of each new place, 1 <= m < n.
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    A.-L. Barabasi and R. Albert, "Emergence of scaling in random networks", Science 286, 1999.
    """
    n = _whole("n", n, low=2)
    m = _whole("m", m, low=1, high=n - 1)
    latency, rng = _latency(latency), _rng(seed)
    links = nx.barabasi_albert_graph(n, m, seed=_networkx_seed(rng))
    return _linked(links, latency, rng, _describe("barabasi_albert", n=n, m=m, seed=seed, latency=latency))


def erdos_renyi(n: int, p: float, *, seed: Seed, latency: Latency = 0.01) -> nx.Graph:
    """Link each pair of places with the same probability; the graph can be disconnected.

    Parameters
    ----------
    n : int
        Number of places.
    p : float
        Probability of a link, in [0, 1].
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    E. N. Gilbert, "Random graphs", Annals of Mathematical Statistics 30, 1959;
    V. Batagelj and U. Brandes, "Efficient generation of large random networks", Physical Review E 71, 2005.
    """
    n, p = _whole("n", n, low=1), _probability("p", p)
    latency, rng = _latency(latency), _rng(seed)
    links = nx.fast_gnp_random_graph(n, p, seed=_networkx_seed(rng))
    return _linked(links, latency, rng, _describe("erdos_renyi", n=n, p=p, seed=seed, latency=latency))


def watts_strogatz(n: int, k: int, p: float, *, seed: Seed, latency: Latency = 0.01) -> nx.Graph:
    """Rewire some links of a ring lattice: a small world. The draw is repeated until it is connected.

    Parameters
    ----------
    n : int
        Number of places.
    k : int
        Neighbours of each place in the ring before rewiring, even, 2 <= k < n.
    p : float
        Probability that a link is rewired, in [0, 1].
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.

    Returns
    -------
    networkx.Graph
        Connected.

    Raises
    ------
    ValueError
        If a parameter is out of range, or none of 100 draws is connected.

    References
    ----------
    D. J. Watts and S. H. Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998.
    """
    n = _whole("n", n, low=3)
    k, p = _whole("k", k, low=2, high=n - 1), _probability("p", p)
    if k % 2:
        raise ValueError(f"k must be even, got {k}; each place has k/2 neighbours on either side of the ring")
    latency, rng = _latency(latency), _rng(seed)
    try:
        links = nx.connected_watts_strogatz_graph(n, k, p, tries=_TRIES, seed=_networkx_seed(rng))
    except nx.NetworkXError as error:
        raise ValueError(
            f"p and k must leave the graph connected, got p={p}, k={k}, n={n}, where none of {_TRIES} draws "
            "was; raise k or lower p"
        ) from error
    return _linked(links, latency, rng, _describe("watts_strogatz", n=n, k=k, p=p, seed=seed, latency=latency))


def random_regular(n: int, d: int, *, seed: Seed, latency: Latency = 0.01) -> nx.Graph:
    """Draw a graph in which every place has d links; for d <= 2 it can be disconnected.

    Parameters
    ----------
    n : int
        Number of places.
    d : int
        Links of each place, 0 <= d < n, n * d even.
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range, or n * d is odd.

    References
    ----------
    A. Steger and N. Wormald, "Generating random regular graphs quickly", Combinatorics, Probability and
    Computing 8, 1999.
    """
    n = _whole("n", n, low=1)
    d = _whole("d", d, low=0, high=n - 1)
    if n * d % 2:
        raise ValueError(f"n * d must be even, got n={n}, d={d}; change n or d by one")
    latency, rng = _latency(latency), _rng(seed)
    links = nx.random_regular_graph(d, n, seed=_networkx_seed(rng))
    return _linked(links, latency, rng, _describe("random_regular", n=n, d=d, seed=seed, latency=latency))


def waxman(n: int, *, beta: float = 0.4, alpha: float = 0.1, seed: Seed, seconds_per_unit: float = 0.05) -> nx.Graph:
    """Place nodes uniformly in the unit square and link near pairs more often; it can be disconnected.

    A pair at distance d is linked with probability `beta * exp(-d / (alpha * L))`, L the largest distance
    between two nodes. The latency of a link is proportional to its length.

    Parameters
    ----------
    n : int
        Number of places.
    beta : float
        Density of links, in (0, 1].
    alpha : float
        Weight of long links, > 0.
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    seconds_per_unit : float
        Seconds one way that a link as long as the side of the square takes.

    Returns
    -------
    networkx.Graph
        With the node attribute `pos`, a pair of coordinates in [0, 1).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    B. M. Waxman, "Routing of multipoint connections", IEEE Journal on Selected Areas in Communications 6,
    1988.
    """
    n = _whole("n", n, low=1)
    beta, alpha = _positive("beta", beta), _positive("alpha", alpha)
    if beta > 1:
        raise ValueError(f"beta must be in (0, 1], got {beta}; it is a probability, at length zero")
    scale = as_seconds(seconds_per_unit, name="seconds_per_unit")
    links = nx.waxman_graph(n, beta, alpha, seed=_networkx_seed(_rng(seed))) if n > 1 else _lone_node()
    description = _describe("waxman", n=n, beta=beta, alpha=alpha, seed=seed, seconds_per_unit=scale)
    return _spread(links, scale, description)


def random_geometric(n: int, radius: float, *, seed: Seed, seconds_per_unit: float = 0.05) -> nx.Graph:
    """Place nodes uniformly in the unit square and link all pairs within `radius`; it can be disconnected.

    The latency of a link is proportional to its length.

    Parameters
    ----------
    n : int
        Number of places.
    radius : float
        Greatest length of a link, > 0; the square has side 1.
    seed : int, sequence of int, SeedSequence, BitGenerator, Generator or None
        Where chance comes from; None for fresh chance.
    seconds_per_unit : float
        Seconds one way that a link as long as the side of the square takes.

    Returns
    -------
    networkx.Graph
        With the node attribute `pos`, a pair of coordinates in [0, 1).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    M. Penrose, "Random Geometric Graphs", Oxford University Press, 2003.
    """
    n, radius = _whole("n", n, low=1), _positive("radius", radius)
    scale = as_seconds(seconds_per_unit, name="seconds_per_unit")
    links = nx.random_geometric_graph(n, radius, seed=_networkx_seed(_rng(seed)))
    description = _describe("random_geometric", n=n, radius=radius, seed=seed, seconds_per_unit=scale)
    return _spread(links, scale, description)


def ring(n: int, *, latency: Latency = 0.01, seed: Seed = None) -> nx.Graph:
    """Link each of n places to the next, and the last to the first.

    Parameters
    ----------
    n : int
        Number of places, >= 3.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Where chance comes from; needed where the latency is drawn.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range, or a latency is to be drawn without a seed.
    """
    n = _whole("n", n, low=3)
    return _regular("ring", nx.cycle_graph(n), latency, seed, n=n)


def star(n: int, *, latency: Latency = 0.01, seed: Seed = None) -> nx.Graph:
    """Link place 0, the centre, to each of the n - 1 others.

    Parameters
    ----------
    n : int
        Number of places, the centre included, >= 1 (networkx counts the leaves alone).
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Where chance comes from; needed where the latency is drawn.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range, or a latency is to be drawn without a seed.
    """
    n = _whole("n", n, low=1)
    return _regular("star", nx.star_graph(n - 1), latency, seed, n=n)


def grid(rows: int, columns: int, *, latency: Latency = 0.01, seed: Seed = None) -> nx.Graph:
    """Link each place (row, column) of a rectangle to its neighbours above, below, left and right.

    Parameters
    ----------
    rows, columns : int
        Size of the rectangle, each >= 1.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Where chance comes from; needed where the latency is drawn.

    Returns
    -------
    networkx.Graph
        Its nodes are pairs (row, column).

    Raises
    ------
    ValueError
        If a parameter is out of range, or a latency is to be drawn without a seed.
    """
    rows, columns = _whole("rows", rows, low=1), _whole("columns", columns, low=1)
    return _regular("grid", nx.grid_2d_graph(rows, columns), latency, seed, rows=rows, columns=columns)


def complete(n: int, *, latency: Latency = 0.01, seed: Seed = None) -> nx.Graph:
    """Link every pair of n places.

    Parameters
    ----------
    n : int
        Number of places, >= 1.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Where chance comes from; needed where the latency is drawn.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range, or a latency is to be drawn without a seed.
    """
    n = _whole("n", n, low=1)
    return _regular("complete", nx.complete_graph(n), latency, seed, n=n)


def path(n: int, *, latency: Latency = 0.01, seed: Seed = None) -> nx.Graph:
    """Link each of n places to the next.

    Parameters
    ----------
    n : int
        Number of places, >= 1.
    latency : float or (float, float)
        Seconds one way: of every link, or the range it is drawn from uniformly.
    seed : int, sequence of int, SeedSequence, BitGenerator or Generator, optional
        Where chance comes from; needed where the latency is drawn.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If a parameter is out of range, or a latency is to be drawn without a seed.
    """
    n = _whole("n", n, low=1)
    return _regular("path", nx.path_graph(n), latency, seed, n=n)


GENERATORS: Mapping[str, Callable[..., nx.Graph]] = MappingProxyType(
    {
        "barabasi_albert": barabasi_albert,
        "complete": complete,
        "erdos_renyi": erdos_renyi,
        "grid": grid,
        "path": path,
        "random_geometric": random_geometric,
        "random_regular": random_regular,
        "ring": ring,
        "star": star,
        "watts_strogatz": watts_strogatz,
        "waxman": waxman,
    }
)
"""Every generator by its name, read-only."""


def generate(name: str, /, **parameters: Any) -> nx.Graph:
    """Make a topology by the name of its generator.

    Parameters
    ----------
    name : str
        One of `GENERATORS`.
    **parameters
        What that generator takes.

    Returns
    -------
    networkx.Graph

    Raises
    ------
    ValueError
        If the name is unknown, or a parameter is missing, unknown or out of range.
    """
    if name not in GENERATORS:
        raise ValueError(f"name must be one of {', '.join(GENERATORS)}, got {name!r}; pick one of these")
    generator = GENERATORS[name]
    takes = inspect.signature(generator)
    try:
        takes.bind(**parameters)
    except TypeError as error:
        names = ", ".join(
            key if value.default is value.empty else f"{key}={value.default!r}"
            for key, value in takes.parameters.items()
        )
        raise ValueError(f"{name}: {error}; pass {name}({names})") from None
    return generator(**parameters)


def _regular(name: str, links: nx.Graph, latency: Latency, seed: Seed, **size: int) -> nx.Graph:
    """Finish a graph whose links need no chance."""
    latency = _latency(latency)
    drawn = isinstance(latency, tuple)
    if drawn and seed is None:
        raise ValueError(f"seed must be given to draw latency={latency}, got None; pass e.g. seed=1")
    chance = {} if seed is None else {"seed": seed}
    return _linked(links, latency, _rng(seed), _describe(name, **size, **chance, latency=latency))


def _linked(links: nx.Graph, latency: Latency, rng: np.random.Generator, description: str) -> nx.Graph:
    """Return the graph in sorted order, with a latency on each link, drawn where it is a range."""
    n_links = links.number_of_edges()
    seconds = rng.uniform(*latency, n_links).tolist() if isinstance(latency, tuple) else [latency] * n_links
    return _in_order(links, description, lambda _u, _v, position: seconds[position])


def _spread(links: nx.Graph, seconds_per_unit: float, description: str) -> nx.Graph:
    """Return the graph in sorted order, with a latency proportional to the length of each link."""
    positions: dict[int, Any] = nx.get_node_attributes(links, "pos")
    where = {node: tuple(position) for node, position in positions.items()}
    graph = _in_order(links, description, lambda u, v, _: seconds_per_unit * math.dist(where[u], where[v]))
    nx.set_node_attributes(graph, where, "pos")
    return graph


def _in_order(links: nx.Graph, description: str, latency_of: Callable[[Any, Any, int], float]) -> nx.Graph:
    graph: nx.Graph = nx.Graph(description=description)
    graph.add_nodes_from(sorted(links.nodes))
    for position, (u, v) in enumerate(sorted((min(edge), max(edge)) for edge in links.edges)):
        graph.add_edge(u, v, latency=latency_of(u, v, position))
    return graph


def _lone_node() -> nx.Graph:
    """Stand in for networkx's Waxman graph, which takes the largest of no distances where n is 1."""
    graph: nx.Graph = nx.Graph()
    graph.add_node(0, pos=(0.5, 0.5))
    return graph


def _rng(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"seed must be what numpy.random.default_rng takes, got {seed!r} ({error}); pass an integer >= 0"
        ) from error


def _networkx_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))


def _whole(name: str, value: int, *, low: int, high: int | None = None) -> int:
    """Return `value` as an int in [low, high]."""
    expected = f">= {low}" if high is None else f"in [{low}, {high}]"
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or number < low or (high is not None and number > high):
        raise ValueError(f"{name} must be an integer {expected}, got {value!r}; pass such a number")
    return number


def _probability(name: str, value: float) -> float:
    number = as_number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value!r}; pass a fraction, not a percentage")
    return number


def _positive(name: str, value: float) -> float:
    number = as_number(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}; pass such a number")
    return number


def _latency(latency: Latency) -> Latency:
    """Return a checked number of seconds, or a checked pair of them."""
    if not isinstance(latency, tuple | list | np.ndarray):
        return as_seconds(latency)
    if len(latency) != 2:
        raise ValueError(
            f"latency must be a number of seconds or a pair (low, high), got {latency!r}; pass the two ends "
            "of the range"
        )
    low, high = (as_seconds(end, where=f" in {latency!r}") for end in latency)
    if low > high:
        raise ValueError(f"latency must be a pair low <= high, got {(low, high)}; swap them")
    return low, high


def _describe(name: str, **parameters: Any) -> str:
    """Write a call of the generator, e.g. "ring(n=5, latency=0.01)"."""
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in parameters.items())})"


def _text(value: Any) -> str:
    if isinstance(value, np.random.SeedSequence):
        spawned = f", spawn_key={value.spawn_key}" if value.spawn_key else ""
        return f"SeedSequence({value.entropy}{spawned})"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    plain = value is None or isinstance(value, int | float | tuple | list)
    return repr(value) if plain else type(value).__name__  # a generator's repr holds its address
