"""Faults and events that a person plans for a run, one line each: `simulate(world, ..., scripts=[partition(...)])`.

Each is a frozen description, and a script as `simulate` takes it: a SimPy process that acts through the methods of the
running `Simulation`. It stands beside any process of one's own. Times are simulated seconds.
"""

import math
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from algorithms import purposes
from algorithms.chance import ROUTER, USER, draw, entity_keys, seed_word
from netsim.simulation import Simulation

__all__ = [
    "flash_crowd",
    "latency_shift",
    "link_failure",
    "partition",
    "region_outage",
    "router_outage",
]

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class _Intervention:
    """Something that holds from one time to another."""

    at: float
    until: float | None

    def __call__(self, simulation: Simulation) -> Steps:
        _check_ahead(self, simulation)
        yield simulation.env.at(self.at, (-1, 1))
        undo = self._begin(simulation)
        if self.until is not None:
            yield simulation.env.at(self.until, (-1, 1))
            undo()

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        """Act; returns what undoes it."""
        raise TypeError("an intervention must say what it does")


def _check_ahead(intervention: Any, simulation: Simulation) -> None:
    if simulation.env.now > intervention.at:
        name = type(intervention).__name__.lstrip("_")
        raise ValueError(f"{name}: at={intervention.at:g} is over: the run is at {simulation.env.now:g} s already")


def _times(name: str, at: Any, until: Any) -> tuple[float, float | None]:
    """Checked times of an intervention."""
    if not _is_number(at) or not 0 <= at < math.inf:
        raise ValueError(f"{name}: at must be a finite number of seconds >= 0, got {at!r}")
    if until is not None and (not _is_number(until) or not at < until < math.inf):
        raise ValueError(f"{name}: until must be a finite number of seconds > at={at:g}, or None, got {until!r}")
    return float(at), None if until is None else float(until)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Partition(_Intervention):
    places: tuple[Hashable, ...]

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        simulation.partition(self.places)
        return lambda: _mend(simulation.heal, self.places)


def partition(places: Iterable[Hashable], *, at: float, until: float | None = None) -> _Partition:
    """Cut all links of the topology between some places and the others, and heal them later.

    Parameters
    ----------
    places : iterable of places
        One side of the cut.
    at : float
        When it begins, in seconds.
    until : float, optional
        When it is healed. Default: never.

    Raises
    ------
    ValueError
        If a time is out of range; when the run comes to it, if a place is unknown.
    """
    return _Partition(*_times("partition", at, until), _several("partition", "places", places))


@dataclass(frozen=True)
class _LinkFailure(_Intervention):
    links: tuple[tuple[Hashable, Hashable], ...]

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        simulation.fail_links(self.links)
        return lambda: _each_mended(simulation.repair_links, self.links)


def link_failure(links: Iterable[tuple[Hashable, Hashable]], *, at: float, until: float | None = None) -> _LinkFailure:
    """Take links down, in both directions, and up again; what is sent meanwhile takes the shortest path left.

    Parameters
    ----------
    links : iterable of (place, place)
    at, until
        As for `partition`.
    """
    pairs = _several("link_failure", "links", links)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"link_failure: links must hold pairs of places, got {pair!r}")
    return _LinkFailure(*_times("link_failure", at, until), tuple((u, v) for u, v in pairs))


@dataclass(frozen=True)
class _RouterOutage(_Intervention):
    routers: tuple[Hashable, ...] | float
    seed: int

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        routers = _choose(self.routers, simulation.world.router_ids, ROUTER, self.seed)
        for router in routers:
            simulation.hold_offline(router=router)
        return lambda: _each(simulation.release_offline, routers, "router")


def router_outage(
    routers: Iterable[Hashable] | float, *, at: float, until: float | None = None, seed: int = 0
) -> _RouterOutage:
    """Take routers offline, whatever their sessions say.

    Parameters
    ----------
    routers : iterable of router ids, or float
        Which ones; or a share in (0, 1] of all, drawn from `seed`.
    at, until
        As for `partition`.
    seed : int
        Of the draw of a share; not the run's, so that runs with other seeds lose the same routers.
    """
    return _RouterOutage(
        *_times("router_outage", at, until), _chosen("router_outage", "routers", routers), _whole("router_outage", seed)
    )


@dataclass(frozen=True)
class _RegionOutage(_Intervention):
    region: Hashable

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        places = simulation.world.topology.places_in(self.region)  # type: ignore[union-attr]
        users, routers = simulation.nodes_at(places)
        simulation.fail_places(places)
        _each(simulation.hold_offline, users, "user")
        _each(simulation.hold_offline, routers, "router")

        def undo() -> None:
            _each_mended(simulation.repair_places, places)
            _each(simulation.release_offline, users, "user")
            _each(simulation.release_offline, routers, "router")

        return undo


def region_outage(region: str, *, at: float, until: float | None = None) -> _RegionOutage:
    """Take a region down: its places lose all links, and the nodes there go offline.

    Parameters
    ----------
    region : str
        As the topology names it; `region_topology` and node attributes `region` do.
    at, until
        As for `partition`.
    """
    return _RegionOutage(*_times("region_outage", at, until), region)


@dataclass(frozen=True)
class _LatencyShift(_Intervention):
    seconds: float
    factor: float

    def _begin(self, simulation: Simulation) -> Callable[[], None]:
        simulation.shift_latency(seconds=self.seconds, factor=self.factor)
        return lambda: _mend(simulation.unshift_latency, seconds=self.seconds, factor=self.factor)


def latency_shift(*, at: float, until: float | None = None, seconds: float = 0.0, factor: float = 1.0) -> _LatencyShift:
    """Lengthen what messages take: base delays times a factor, and seconds more. In flight nothing changes.

    Parameters
    ----------
    at, until
        As for `partition`.
    seconds : float
        >= 0.
    factor : float
        > 0.
    """
    for name, value, fine, wanted in (
        ("seconds", seconds, _is_number(seconds) and 0 <= seconds < math.inf, ">= 0"),
        ("factor", factor, _is_number(factor) and 0 < factor < math.inf, "> 0"),
    ):
        if not fine:
            raise ValueError(f"latency_shift: {name} must be a finite number {wanted}, got {value!r}")
    return _LatencyShift(*_times("latency_shift", at, until), float(seconds), float(factor))


@dataclass(frozen=True)
class _FlashCrowd:
    at: float
    until: float | None
    users: tuple[Hashable, ...] | float
    seed: int

    def __call__(self, simulation: Simulation) -> Steps:
        _check_ahead(self, simulation)
        users = _choose(self.users, simulation.world.ratings.user_ids, USER, self.seed)
        _each(simulation.hold_offline, users, "user")
        yield simulation.env.at(self.at, (-1, 1))
        _each(simulation.hold_online, users, "user")
        _each(simulation.release_offline, users, "user")
        if self.until is not None:
            yield simulation.env.at(self.until, (-1, 1))
            _each(simulation.release_online, users, "user")


def flash_crowd(
    users: Iterable[Hashable] | float, *, at: float, until: float | None = None, seed: int = 0
) -> _FlashCrowd:
    """Let users come all at once: they are offline until `at`, and online together from then on.

    Parameters
    ----------
    users : iterable of user ids, or float
        Which ones; or a share in (0, 1] of all, drawn from `seed`.
    at : float
        When they come, in seconds.
    until : float, optional
        When they do again what their sessions say. Default: they stay.
    seed : int
        Of the draw of a share.
    """
    return _FlashCrowd(
        *_times("flash_crowd", at, until), _chosen("flash_crowd", "users", users), _whole("flash_crowd", seed)
    )


def _whole(name: str, seed: Any) -> int:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"{name}: seed must be an integer >= 0, got {seed!r}")
    return int(seed)


def _chosen(name: str, argument: str, which: Any) -> tuple[Hashable, ...] | float:
    """Checked ids, or a share."""
    if _is_number(which) or isinstance(which, bool):
        if isinstance(which, bool) or not 0 < which <= 1:
            raise ValueError(f"{name}: {argument} must be ids or a share in (0, 1], got {which!r}")
        return float(which)
    return _several(name, argument, which, " or a share in (0, 1]")


def _several(name: str, argument: str, which: Any, otherwise: str = "") -> tuple[Any, ...]:
    """Checked names, at least one."""
    if isinstance(which, str) or not isinstance(which, Iterable):
        mend = f"; pass [{which!r}]" if isinstance(which, str) else ""
        raise ValueError(f"{name}: {argument} must be a list of them{otherwise}, got {which!r}{mend}")
    several = tuple(which)
    if not several:
        raise ValueError(f"{name}: {argument} must name at least one, got none")
    return several


def _choose(which: Any, ids: tuple[Hashable, ...], role: np.uint64, seed: int) -> list[Hashable]:
    """The ids meant by ids or a share: those with the smallest draws, at least one."""
    if isinstance(which, tuple):
        return list(which)
    words = [draw(seed_word(seed), purposes.CHOICE, key, 0) for key in entity_keys(role, ids)]
    order = sorted(range(len(ids)), key=words.__getitem__)
    return [ids[number] for number in sorted(order[: max(1, round(which * len(ids)))])]


def _each(act: Callable[..., None], ids: Iterable[Hashable], role: str) -> None:
    for name in ids:
        _mend(act, **{role: name}) if act.__name__.startswith("release") else act(**{role: name})


def _each_mended(mend: Callable[..., None], broken: Iterable[Any]) -> None:
    for each in broken:
        _mend(mend, [each])


def _mend(mend: Callable[..., None], *arguments: Any, **keywords: Any) -> None:
    """Undo what an intervention did; what a script has undone before it stays undone."""
    with suppress(ValueError):
        mend(*arguments, **keywords)
