"""The underlay: places, the links between them, and what a message meets from place to place."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from netsim.topology._checks import SLOWEST, as_bandwidth, as_probability, as_seconds
from netsim.topology.links import Attributes, Edges, count_links, is_symmetric
from netsim.topology.paths import Network, PathProperties
from netsim.topology.positions import read_positions

__all__ = ["Underlay"]

_SHOWN = 10  # names that an error lists


@dataclass(frozen=True, eq=False, repr=False)
class Underlay:
    """Immutable description of the places of a network and the links between them.

    Usually made by `Underlay.from_graph`. Two underlays are equal where their places (in order), their regions, their
    links with all they carry, and `routed` are equal; description and positions do not count.

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
    loss : float64, shape (e,), optional
        Probability in [0, 1] that the edge drops a message; 0 where not given. Read-only.
    bandwidth : float64, shape (e,), optional
        Bytes per second > 0, inf for no limit; inf where not given. Read-only.
    routed : bool
        True: a message takes the path of the least latency. False: it takes the direct link and nothing else, as
        between places whose delays were measured pair by pair; without a link there is no way.
    regions : tuple, length n, optional
        Region of each place, any hashable; None for a place without one.

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
    # None is for the caller only: an underlay always has both.
    loss: NDArray[np.float64] = None  # type: ignore[assignment]
    bandwidth: NDArray[np.float64] = None  # type: ignore[assignment]
    routed: bool = True
    regions: tuple[Hashable | None, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", tuple(self.places))
        object.__setattr__(self, "tail", _frozen(self.tail, np.int64))
        object.__setattr__(self, "head", _frozen(self.head, np.int64))
        for name, absent in (("latency", math.nan), ("loss", 0.0), ("bandwidth", math.inf)):
            given = getattr(self, name)
            values = np.full(self.tail.shape, absent) if given is None else given
            object.__setattr__(self, name, _frozen(values, np.float64))
        _check_places(self.places)
        if self.positions is not None:
            object.__setattr__(self, "positions", _frozen(self.positions, np.float64))
            _check_positions(self.positions, len(self.places))
        if self.regions is not None:
            object.__setattr__(self, "regions", _as_regions(self.regions, len(self.places)))
        _check_routed(self.routed)
        _check_edges(self._edges, len(self.places))

    @classmethod
    def from_graph(
        cls,
        graph: nx.Graph,
        *,
        latency: str = "latency",
        default_latency: float | None = None,
        loss: str = "loss",
        bandwidth: str = "bandwidth",
        region: str = "region",
        routed: bool | None = None,
    ) -> Underlay:
        """Describe a networkx graph.

        Of parallel edges the fastest counts, with its own loss and bandwidth; of equally fast ones that with the
        lower loss, then that with the higher bandwidth. Self-loops are ignored, whatever their attributes. An
        undirected edge serves both directions alike. The graph may be disconnected. It is never mutated, and
        mutating it later changes nothing here.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            Nodes are the places, by any hashable names. `graph.graph["description"]`, if there, describes it. Node
            attributes `pos`, or `latitude` and `longitude`, if there, say where places are drawn.
        latency : str
            Name of the edge attribute that holds the one-way latency in seconds.
        default_latency : float, optional
            Seconds, for edges without that attribute. Without it such an edge is an error.
        loss : str
            Name of the edge attribute that holds the probability that the edge drops a message; 0 where missing.
        bandwidth : str
            Name of the edge attribute that holds bytes per second; no limit where missing.
        region : str
            Name of the node attribute that holds a place's region, any hashable; may be missing.
        routed : bool, optional
            Whether messages take paths of several links (see `Underlay`). Where not given,
            `graph.graph["routed"]`, or True where that is missing.

        Returns
        -------
        Underlay

        Raises
        ------
        TypeError
            If `graph` is not a networkx graph.
        ValueError
            If the graph has no nodes, or a latency is missing, or a latency, loss or bandwidth is out of range.
        """
        if not isinstance(graph, nx.Graph):
            raise TypeError(
                f"graph must be a networkx graph, got {type(graph).__name__}; build one with "
                "networkx.from_scipy_sparse_array, networkx.from_numpy_array or networkx.from_edgelist"
            )
        default = None if default_latency is None else as_seconds(default_latency, name="default_latency")
        edges = Attributes(latency, loss, bandwidth, default).read_edges(graph)
        regions = tuple(attributes.get(region) for _, attributes in graph.nodes(data=True))
        description = graph.graph.get("description")
        if not description:
            description = f"{type(graph).__name__} with {len(graph)} places, {count_links(edges)} links"
        return cls(
            tuple(graph.nodes),
            edges.tail,
            edges.head,
            edges.latency,
            str(description),
            read_positions(graph),
            edges.loss,
            edges.bandwidth,
            graph.graph.get("routed", True) if routed is None else routed,
            regions if any(each is not None for each in regions) else None,
        )

    @property
    def n_places(self) -> int:
        """Number of places."""
        return len(self.places)

    @property
    def n_links(self) -> int:
        """Number of links: a two-way link counts once where all are two-way, else directed edges count."""
        return count_links(self._edges)

    @property
    def is_symmetric(self) -> bool:
        """Whether every link serves both directions with the same latency, loss and bandwidth."""
        return is_symmetric(self._edges)

    @property
    def has_loss(self) -> bool:
        """Whether any link drops messages."""
        return bool(self.loss.any())

    @property
    def has_bandwidth(self) -> bool:
        """Whether any link has a finite bandwidth."""
        return bool(np.isfinite(self.bandwidth).any())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content in hexadecimal: places and regions by their `repr`, edges by their bits.

        Loss, bandwidth, regions and `routed=False` enter only where there are any.
        """
        content = hashlib.sha256()
        _add_names(content, self.places)
        content.update(b"edges")
        for array, dtype in ((self.tail, "<i8"), (self.head, "<i8"), (self.latency, "<f8")):
            content.update(array.astype(dtype).tobytes())
        if self.has_loss:
            content.update(b"loss" + self.loss.astype("<f8").tobytes())
        if self.has_bandwidth:
            content.update(b"bandwidth" + self.bandwidth.astype("<f8").tobytes())
        if not self.routed:
            content.update(b"direct links only")
        if self.regions is not None:
            content.update(b"regions")
            _add_names(content, self.regions)
        return content.hexdigest()

    def path_latency(self, sources: ArrayLike | None = None, targets: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the latency of the path from every source to every target.

        That is the shortest path, or where the underlay is not `routed` the direct link. A path's latency is summed
        from its source on, edge by edge, in float64. Rounded addition keeps order, so the least sum is one definite
        number, whichever of several equal paths the search meets first: the answer is the same to the bit on every
        machine. On a symmetric underlay the way back can differ from the way out in the last bit, as its sum runs the
        other way.

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
        return self._network.latencies(self._as_indices("sources", sources), self._as_indices("targets", targets))

    def path_properties(self, sources: ArrayLike | None = None, targets: ArrayLike | None = None) -> PathProperties:
        """Return latency, loss and transmission time of the path from every source to every target.

        The path is that of `path_latency`: latency alone decides, not loss, not bandwidth. Of several paths of the
        least latency, to the bit and all the way along, it is the one with the fewest links; of these the one whose
        last link comes from the place of the least index, and so on backwards. So it is the same on every machine.
        The way back can be another of the equally fast paths.

        Loss is 1 - prod(1 - loss_e) over the links e of the path. Transmission takes 1 / bandwidth_e seconds a byte
        on each link, one after the other (store and forward). Messages do not queue for a link.

        Parameters
        ----------
        sources, targets : int array, shape (s,) and (t,), optional
            Indices into `places`, repeats allowed. All places where not given.

        Returns
        -------
        PathProperties
            `latency` as from `path_latency`, `loss`, `seconds_per_byte`; each float64, shape (s, t). Loss and
            seconds per byte are 0 from a place to itself and where there is no path.

        Raises
        ------
        ValueError
            If an index is not an integer in [0, n_places).
        """
        rows, columns = self._as_indices("sources", sources), self._as_indices("targets", targets)
        if self.has_loss or self.has_bandwidth:
            return self._network.properties(rows, columns)
        latency = self._network.latencies(rows, columns)
        return PathProperties(latency, np.zeros_like(latency), np.zeros_like(latency))

    def without(self, *, links: Iterable[tuple[Hashable, Hashable]] = (), places: Iterable[Hashable] = ()) -> Underlay:
        """Return this underlay after failures: the same places, fewer links.

        Parameters
        ----------
        links : iterable of pairs of places
            Links that fail, each by the names of its ends in any order; both directions fail.
        places : iterable of places
            Places that fail. They keep their index and lose all their links.

        Returns
        -------
        Underlay

        Raises
        ------
        ValueError
            If there is no such place, or no link between the two.
        """
        down = self._chosen("places", places)
        failed = [self._edge_keys(pair) for pair in _as_collection("links", links)]
        keep = ~(down[self.tail] | down[self.head])
        keep &= ~np.isin(self._keys, np.array(failed, dtype=np.int64))
        return self._with_edges(keep)

    def split(self, places: Iterable[Hashable]) -> Underlay:
        """Return this underlay without the links between some places and the rest: a partition of the network.

        Parameters
        ----------
        places : iterable of places
            One side, by name, e.g. `underlay.places_in("West Europe")`. Neither side may be empty. Links within each
            side stay.

        Returns
        -------
        Underlay

        Raises
        ------
        ValueError
            If there is no such place, or a side is empty.
        """
        side = self._chosen("places", places)
        if side.all() or not side.any():
            raise ValueError(
                f"places must leave places on both sides of the partition, got {side.sum()} of {self.n_places}; "
                "name some, not all"
            )
        return self._with_edges(side[self.tail] == side[self.head])

    def region_of(self, place: Hashable) -> Hashable | None:
        """Return the region of a place, None where it has none; ValueError where there is no such place."""
        index = self._index_of("place", place)
        return None if self.regions is None else self.regions[index]

    def places_in(self, region: Hashable) -> tuple[Hashable, ...]:
        """Return the places of a region, in the order of `places`.

        Raises
        ------
        ValueError
            If no place is in that region; the error lists the regions there are.
        """
        regions = self.regions or (None,) * self.n_places
        found = tuple(place for place, each in zip(self.places, regions, strict=True) if each == region)
        if found and region is not None:
            return found
        known = list(dict.fromkeys(repr(each) for each in regions if each is not None))
        mend = "give nodes the attribute 'region'" if not known else "its regions are " + ", ".join(known)
        raise ValueError(f"region must be one of the underlay's {len(known)} regions, got {region!r}; {mend}")

    def to_graph(self, *, latency: str = "latency", loss: str = "loss", bandwidth: str = "bandwidth") -> nx.Graph:
        """Return a new networkx graph with the same places and links, from which `from_graph` makes an equal underlay.

        Parameters
        ----------
        latency : str
            Name of the edge attribute that receives the latency in seconds.
        loss, bandwidth : str
            Names of the edge attributes that receive the loss, where it is not 0, and the bandwidth in bytes/s, where
            it is finite.

        Returns
        -------
        networkx.Graph or networkx.DiGraph
            A Graph where every link serves both directions alike, else a DiGraph. Node attributes `pos` and
            `region` where known; `graph.graph["routed"]` where it is False.
        """
        graph: nx.Graph = nx.Graph() if self.is_symmetric else nx.DiGraph()
        graph.graph["description"] = self.description
        if not self.routed:
            graph.graph["routed"] = False
        graph.add_nodes_from(self.places)
        if self.positions is not None:
            located = zip(self.places, self.positions.tolist(), strict=True)
            nx.set_node_attributes(graph, {place: (x, y) for place, (x, y) in located if not math.isnan(x)}, "pos")
        if self.regions is not None:
            known = zip(self.places, self.regions, strict=True)
            nx.set_node_attributes(graph, {place: each for place, each in known if each is not None}, "region")
        for tail, head, *carried in zip(*(column.tolist() for column in self._edges), strict=True):
            values = dict(zip((latency, loss, bandwidth), carried, strict=True))
            if values[loss] == 0:
                del values[loss]
            if math.isinf(values[bandwidth]):
                del values[bandwidth]
            graph.add_edge(self.places[tail], self.places[head], **values)
        return graph

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Underlay):
            return NotImplemented
        return (self.places, self.routed, self.regions) == (other.places, other.routed, other.regions) and all(
            np.array_equal(mine, theirs) for mine, theirs in zip(self._edges, other._edges, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.places, self.routed, self.regions, *(column.tobytes() for column in self._edges)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: numpy forgets the read-only flag when it pickles an array.
        return type(self), tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __repr__(self) -> str:
        return f"<Underlay: {self.n_places} places, {self.n_links} links, {self.description!r}>"

    @property
    def _edges(self) -> Edges:
        return Edges(self.tail, self.head, self.latency, self.loss, self.bandwidth)

    @property
    def _network(self) -> Network:
        seconds_per_byte = 1.0 / self.bandwidth
        return Network(self.n_places, self.routed, self.tail, self.head, self.latency, self.loss, seconds_per_byte)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {place: number for number, place in enumerate(self.places)}

    @property
    def _keys(self) -> NDArray[np.int64]:
        """One number for each directed edge, ascending."""
        return self.tail * self.n_places + self.head

    def _with_edges(self, keep: NDArray[np.bool_]) -> Underlay:
        return replace(self, **{name: column[keep] for name, column in self._edges._asdict().items()})

    def _index_of(self, argument: str, place: Hashable) -> int:
        try:
            return self._index[place]
        except (KeyError, TypeError):  # a list, say, is no name
            shown = ", ".join(repr(each) for each in self.places[:_SHOWN])
            more = f" and {self.n_places - _SHOWN} more" if self.n_places > _SHOWN else ""
            raise ValueError(
                f"{argument} must name places of the underlay, got {place!r}; its places are {shown}{more}"
            ) from None

    def _chosen(self, argument: str, places: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Whether each place is among the named ones; bool, shape (n,)."""
        chosen = np.zeros(self.n_places, dtype=bool)
        chosen[[self._index_of(argument, place) for place in _as_collection(argument, places)]] = True
        return chosen

    def _edge_keys(self, pair: tuple[Hashable, Hashable]) -> tuple[int, int]:
        """Keys of both directions of a link, of which at least one is there."""
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(ends := tuple(pair)) != 2:
            raise ValueError(f"links must be pairs of places, got {pair!r}; pass e.g. links=[('a', 'b')]")
        there, back = (self._index_of("links", end) for end in ends)
        keys = there * self.n_places + back, back * self.n_places + there
        if not np.isin(keys, self._keys).any():
            neighbours = sorted({*self.head[self.tail == there].tolist(), *self.tail[self.head == there].tolist()})
            shown = ", ".join(repr(self.places[each]) for each in neighbours[:_SHOWN]) or "none"
            raise ValueError(
                f"links must be links of the underlay, got {ends!r}, between which there is none; {ends[0]!r} has "
                f"links with {shown}{', ...' * (len(neighbours) > _SHOWN)}"
            )
        return keys

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
    array: NDArray[Any] = np.asarray(np.array(values, dtype=dtype) + dtype(0))
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


def _check_edges(edges: Edges, n_places: int) -> None:
    tail, head, *carried = edges
    if tail.ndim != 1 or not all(tail.shape == each.shape for each in (head, *carried)):
        shapes = ", ".join(f"{name} {column.shape}" for name, column in edges._asdict().items())
        raise ValueError(f"tail, head, latency, loss and bandwidth must be 1-d and of one length, got shapes {shapes}")
    latency, loss, bandwidth = carried
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
    for i in np.flatnonzero(~((loss >= 0) & (loss <= 1) & (bandwidth >= SLOWEST)))[:1]:
        where = f" at position {i}, edge {tail[i]} -> {head[i]}"
        as_probability(loss[i].item(), where=where)
        as_bandwidth(bandwidth[i].item(), where=where)


def _check_routed(routed: object) -> None:
    if not isinstance(routed, bool):
        raise ValueError(
            f"routed must be True or False, got {routed!r}; pass False where messages take the direct link only"
        )


def _as_regions(regions: Iterable[Hashable | None], n_places: int) -> tuple[Hashable | None, ...]:
    """Return checked regions."""
    named = tuple(regions)
    if len(named) != n_places:
        raise ValueError(f"regions must be one a place, {n_places}, got {len(named)}; give None where there is none")
    for number, region in enumerate(named):
        try:
            hash(region)
        except TypeError:
            raise ValueError(
                f"regions must be hashable, got {region!r} at position {number}; give a name, e.g. text"
            ) from None
    return named


def _as_collection(argument: str, values: Iterable[Any]) -> Iterable[Any]:
    """Return what was given, unless it is one name, or no collection at all."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{argument} must be a collection, got {values!r}; pass a list, e.g. {argument}=[{values!r}]")
    return values


def _add_names(content: Any, names: Iterable[Hashable]) -> None:
    """Add the `repr` of each name to a digest."""
    for name in names:
        text = repr(name.item() if isinstance(name, np.generic) else name).encode()
        content.update(len(text).to_bytes(8, "little") + text)
