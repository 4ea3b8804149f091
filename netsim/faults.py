"""What has failed on the underlay at a moment: links, places, cuts between parts, and latency that has shifted.

Faults can overlap: what failed twice works again when it was repaired twice.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable

from netsim.topology import Underlay

__all__ = ["Faults"]

Place = Hashable
Link = tuple[Hashable, Hashable]


class Faults:
    """Faults that hold now.

    Parameters
    ----------
    underlay : Underlay
        As it is without any.
    """

    def __init__(self, underlay: Underlay) -> None:
        self._whole = underlay
        self._links: Counter[Link] = Counter()
        self._places: Counter[Place] = Counter()
        self._cuts: Counter[frozenset[Place]] = Counter()
        self._shifts: Counter[tuple[float, float]] = Counter()

    @property
    def underlay(self) -> Underlay:
        """What is left of the underlay."""
        left = self._whole
        if self._links or self._places:
            left = left.without(links=list(self._links), places=list(self._places))
        for part in self._cuts:
            left = left.split(part)
        return left

    @property
    def shift(self) -> tuple[float, float]:
        """Seconds added to every delay, and factor of path latencies."""
        active = sorted(self._shifts.elements())
        return math.fsum(seconds for seconds, _ in active), math.prod(factor for _, factor in active)

    def fail_links(self, links: Iterable[Link]) -> None:
        """Take links out of the underlay, in both directions."""
        named = self._named_links(links)
        self._whole.without(links=named)  # refuses unknown ones
        self._links.update(named)

    def repair_links(self, links: Iterable[Link]) -> None:
        """Put failed links back."""
        _take_off(self._links, self._named_links(links), "links", "fail_links")

    def fail_places(self, places: Iterable[Place]) -> None:
        """Take all links of places out of the underlay."""
        named = list(places)
        self._whole.without(places=named)
        self._places.update(named)

    def repair_places(self, places: Iterable[Place]) -> None:
        """Put failed places back."""
        _take_off(self._places, list(places), "places", "fail_places")

    def partition(self, places: Iterable[Place]) -> None:
        """Cut all links between these places and the others."""
        part = frozenset(places)
        if self._whole.n_places < 2:
            raise ValueError(
                "places cannot be cut apart: the topology of this world has one place; give the World a topology, "
                "such as barabasi_albert(100, 3, seed=1)"
            )
        self._whole.split(part)
        self._cuts[part] += 1

    def heal(self, places: Iterable[Place] | None = None) -> None:
        """Undo a partition, or all of them where none is named."""
        if places is None:
            self._cuts.clear()
        else:
            _take_off(self._cuts, [frozenset(places)], "places", "partition")

    def add_shift(self, seconds: float, factor: float) -> None:
        """Shift latencies further."""
        self._shifts[_checked_shift(seconds, factor)] += 1

    def remove_shift(self, seconds: float, factor: float) -> None:
        """Take back a shift."""
        _take_off(self._shifts, [_checked_shift(seconds, factor)], "(seconds, factor)", "shift_latency")

    def _named_links(self, links: Iterable[Link]) -> list[Link]:
        """Each link under one name, whichever end is named first."""
        index = {place: number for number, place in enumerate(self._whole.places)}
        named = []
        for link in links:
            if not isinstance(link, tuple | list) or len(link) != 2:
                raise ValueError(f"links must hold pairs of places, got {link!r}")
            u, v = link
            for place in (u, v):
                if place not in index:
                    raise ValueError(f"links names {place!r}, which is not a place of {self._whole!r}")
            named.append((u, v) if index[u] <= index[v] else (v, u))
        return named


def _take_off(held: Counter, named: list, argument: str, first: str) -> None:
    """Take each of these off once."""
    for each, times in Counter(named).items():
        if held[each] < times:
            shown = sorted(each, key=repr)[:5] if isinstance(each, frozenset) else each
            raise ValueError(f"{argument} names {shown!r}, which no {first} holds now")
    held.subtract(named)
    for each in named:
        if held[each] <= 0:
            del held[each]


def _checked_shift(seconds: float, factor: float) -> tuple[float, float]:
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be a finite number >= 0, got {seconds!r}")
    if not isinstance(factor, int | float) or not 0 < factor < math.inf:
        raise ValueError(f"factor must be a finite number > 0, got {factor!r}")
    return float(seconds), float(factor)
