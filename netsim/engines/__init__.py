"""Engines: they keep the clock and the messages in flight, and call `netsim.behaviour` for everything else.

`events` is the readable one and defines what a run means; `compiled` gives the same bits, many times faster.
"""

import logging
import math
from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np

from algorithms.compilation import compiled_before
from algorithms.distributions import Distribution
from netsim.clock import Clock
from netsim.coming import Coming
from netsim.engines.compiled import CompiledEngine
from netsim.engines.events import EventsEngine
from netsim.prequential import Prequential
from netsim.tables import Tables
from netsim.trace import MessageTrace
from netsim.world import World

__all__ = ["Choice", "Engine", "start_engine"]

_logger = logging.getLogger(__name__)

Choice = Literal["auto", "events", "compiled"]


class Engine(Protocol):
    """What a simulation asks of its engine."""

    name: str
    reason: str

    @property
    def time(self) -> float:
        """Simulated seconds up to which model events have been taken."""
        ...

    @property
    def in_flight(self) -> np.ndarray:
        """Messages in flight and their bytes, by kind; int64, shape (kinds of message, 2)."""
        ...

    @property
    def wishes(self) -> np.ndarray:
        """How users' requests for recommendations ended so far; WISH_ROW, in no order."""
        ...

    def follow(self, coming: Coming, prequential: Prequential, give: Callable[[int], None]) -> bool:
        """Let ratings come from now on, if it can do so without being told of each by the clock."""
        ...

    def delays_changed(self, lowest: float) -> None:
        """Take note that the drawn part of a delay is now at least `lowest` seconds."""
        ...

    def contacts_changed(self) -> None:
        """Take note that edges, paths or contact lists have changed."""
        ...

    def ask(self, user: int, number: int) -> None:
        """Let a user send the first query for an open wish, now."""
        ...

    def slots_moved(self, shift: np.ndarray) -> None:
        """Take note that the slots of each edge have moved by so much; int64, shape (edges,)."""
        ...

    def post_handover(self, edge: int, profile: int, size: int, fate: int, arrival: float) -> None:
        """Put a snapshot of a profile onto its way over an edge between two routers, unless it is lost already."""
        ...


def start_engine(
    choice: Choice,
    world: World,
    tables: Tables,
    clock: Clock,
    *,
    threads: int | None = None,
    trace: MessageTrace | None = None,
) -> Engine:
    """Start the engine that a person chose, or the fastest that can do all that is asked.

    Raises
    ------
    ValueError
        If the choice is not known, or the compiled engine is to do what only Python can.
    """
    if choice not in ("auto", "events", "compiled"):
        raise ValueError(f"engine must be 'auto', 'events' or 'compiled', got {choice!r}")
    if threads is not None and (not isinstance(threads, int | np.integer) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"threads must be an integer >= 1, or None for as many as pay, got {threads!r}")
    only_python = list(world.only_python)
    if trace is not None:
        only_python.append("trace, a Python object that is told of every message")
    if choice == "compiled" and only_python:
        raise ValueError(
            f"engine='compiled' cannot run {'; '.join(only_python)}; leave it out, or use engine='events' or 'auto'"
        )
    if choice == "events":
        return EventsEngine(tables, clock, trace, reason="it was asked for")
    if only_python:
        return EventsEngine(tables, clock, trace, reason=f"only Python can run {'; '.join(only_python)}")
    if not compiled_before("netsim.engines.compiled.loop.advance"):
        # Told as a warning so that it is seen: so long without a word looks like a hang.
        _logger.warning("Compiling the simulation for the first time on this machine; this takes about 40 seconds.")
    return CompiledEngine(tables, clock, lowest_jitter=lowest(world.delay), threads=threads)


def lowest(delay: Any) -> float:
    """The least that the drawn part of a delay can be, in seconds; unknown, so nothing, where it is a function."""
    return delay.lowest() if isinstance(delay, Distribution) else -math.inf
