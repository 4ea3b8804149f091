"""Paths over an underlay: the latency, loss and transmission time that a message meets from place to place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from algorithms.compilation import kernel

__all__ = ["Network", "PathProperties"]

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_CHUNK_CELLS = 2**22  # figures held at once beside the answer: 32 MiB


class PathProperties(NamedTuple):
    """What a message meets on its path, from each source (row) to each target (column).

    Attributes
    ----------
    latency : float64, shape (s, t)
        Seconds one way; inf where no path joins the two, 0 from a place to itself.
    loss : float64, shape (s, t)
        Probability that one of the links drops the message.
    seconds_per_byte : float64, shape (s, t)
        Transmission time on all links, for each byte of the message.
    """

    latency: Array
    loss: Array
    seconds_per_byte: Array


class Network(NamedTuple):
    """The links of an underlay, as the search for paths reads them; edges are sorted by (tail, head)."""

    n_places: int
    routed: bool
    tail: Indices
    head: Indices
    latency: Array
    loss: Array
    seconds_per_byte: Array

    def latencies(self, sources: Indices, targets: Indices) -> Array:
        """Latency of the path from each source to each target; float64, shape (s, t)."""
        answer = np.empty((sources.size, targets.size))
        self._measure(sources, targets, [answer], lambda chunk: [self._distances(chunk)])
        return answer

    def properties(self, sources: Indices, targets: Indices) -> PathProperties:
        """Latency, loss and transmission time of the path from each source to each target."""
        answer = PathProperties(*(np.empty((sources.size, targets.size)) for _ in range(3)))
        self._measure(sources, targets, answer, self._routes if self.routed else self._direct)
        return answer

    def _measure(
        self,
        sources: Indices,
        targets: Indices,
        answers: Sequence[Array],
        measure: Callable[[Indices], Sequence[Array]],
    ) -> None:
        """Fill each answer from the rows of all places that `measure` gives for a chunk of distinct sources."""
        distinct, inverse = np.unique(sources, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        step = max(1, _CHUNK_CELLS // (self.n_places * len(answers)))
        for start in range(0, distinct.size, step):
            found = measure(distinct[start : start + step])
            first, last = np.searchsorted(inverse, [start, start + step], sorter=order)
            for row in order[first:last]:
                for answer, values in zip(answers, found, strict=True):
                    answer[row] = values[inverse[row] - start][targets]

    def _distances(self, sources: Indices) -> Array:
        """Latency from each source to all places; float64, shape (k, n)."""
        return self._shortest(sources) if self.routed else self._direct(sources)[0]

    def _shortest(self, sources: Indices) -> Array:
        shape = (self.n_places, self.n_places)
        indices = self.head.astype(np.int32), self._starts().astype(np.int32)
        # A zero latency is stored, and scipy's dijkstra follows it.
        found: Array = dijkstra(csr_array((self.latency, *indices), shape=shape), indices=sources)
        return found

    def _direct(self, sources: Indices) -> tuple[Array, Array, Array]:
        """What the link from each source to all places carries; each float64, shape (k, n)."""
        starts = self._starts()
        latency = np.full((sources.size, self.n_places), np.inf)
        loss, seconds = np.zeros_like(latency), np.zeros_like(latency)
        for row, source in enumerate(sources):
            edges = slice(starts[source], starts[source + 1])
            heads = self.head[edges]
            latency[row, heads] = self.latency[edges]
            loss[row, heads] = self.loss[edges]
            seconds[row, heads] = self.seconds_per_byte[edges]
            latency[row, source] = 0.0
        return latency, loss, seconds

    def _routes(self, sources: Indices) -> tuple[Array, Array, Array]:
        """What the shortest path from each source to all places carries; each float64, shape (k, n)."""
        latency = self._shortest(sources)
        loss, seconds = np.zeros_like(latency), np.zeros_like(latency)
        queue, hops, via = np.empty((3, self.n_places), dtype=np.int64)
        _follow(
            sources,
            latency,
            self._starts(),
            self.tail,
            self.head,
            self.latency,
            self.loss,
            self.seconds_per_byte,
            queue,
            hops,
            via,
            loss,
            seconds,
        )
        return latency, loss, seconds

    def _starts(self) -> Indices:
        """Where the edges of each place begin; shape (n + 1,)."""
        return np.searchsorted(self.tail, np.arange(self.n_places + 1)).astype(np.int64)


@kernel
def _follow(
    sources: Indices,
    distance: Array,
    starts: Indices,
    tail: Indices,
    head: Indices,
    latency: Array,
    edge_loss: Array,
    edge_seconds: Array,
    queue: Indices,
    hops: Indices,
    via: Indices,
    loss: Array,
    seconds: Array,
) -> None:
    """Add up loss and transmission time along the shortest paths.

    An edge is on a shortest path where the distance before it and its latency are, added in float64, the distance
    after it. A search in breadth over these edges alone gives each place its last edge: on the path with the fewest
    links, from the least place of those. So zero latencies, and ones that rounding swallows, cannot lead in circles.

    `distance`, `loss` and `seconds` have a row for each source and a column for each place; `queue`, `hops` and `via`
    are scratch, one entry a place.
    """
    for row in range(sources.size):
        source = sources[row]
        hops[:] = -1
        hops[source] = 0
        queue[0] = source
        taken, size = 0, 1
        while taken < size:
            place = queue[taken]
            taken += 1
            for edge in range(starts[place], starts[place + 1]):
                other = head[edge]
                reached = distance[row, place] + latency[edge]
                if reached != distance[row, other] or reached == np.inf:
                    continue
                if hops[other] < 0:
                    hops[other] = hops[place] + 1
                    via[other] = edge
                    queue[size] = other
                    size += 1
                elif hops[other] == hops[place] + 1 and place < tail[via[other]]:
                    via[other] = edge
        for number in range(1, size):  # places in the order of their hops: the place before is done
            place = queue[number]
            edge = via[place]
            before = tail[edge]
            # 1 - (1 - a)(1 - b), written so that a single link's loss comes out as it stands.
            loss[row, place] = loss[row, before] + (1.0 - loss[row, before]) * edge_loss[edge]
            seconds[row, place] = seconds[row, before] + edge_seconds[edge]
