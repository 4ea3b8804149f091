"""The simulated clock: a SimPy environment whose order at equal times is explicit.

At one time, in this order: probes, the end of a run, everything scripted in SimPy with whatever it causes, and then
the model's own events by their key (kind, node or sender and receiver, stamp, profile). A key is total, so the order
in which events were put onto the heap never decides.
"""

from collections.abc import Callable
from heapq import heappush
from typing import Any, Protocol

import simpy
from simpy.events import NORMAL, EventPriority

__all__ = ["Clock"]

# First component of the key; the model's own events have their kind (>= 0) there.
PROBE, END, SCRIPTED = -3, -2, -1
#: The key of ratings that come, the first of what is scripted at one time.
COMING = (SCRIPTED, 0, -1)


class Ahead(Protocol):
    """Lets an engine go ahead up to a time in seconds."""

    def __call__(self, stop: float, *, inclusive: bool) -> None: ...


class Clock(simpy.Environment):
    """SimPy environment that takes events at absolute times with an order key.

    `simpy.Environment` schedules by delay, and `now + (time - now)` is not always `time`; so absolute times go onto
    its heap directly. This is the one place that touches the private heap (hence the pinned version of SimPy).
    """

    #: Called before each event of the heap with its time, to let an engine go ahead up to it; `inclusive` where what
    #: has the key `COMING` at that time comes before it.
    ahead: Ahead | None = None

    def step(self) -> None:
        """Go to the next event of the heap."""
        if self.ahead is not None and self._queue:
            time, key = self._queue[0][:2]
            self.ahead(time, inclusive=key > COMING)  # type: ignore[operator]
        super().step()

    def go_to(self, time: float) -> None:
        """Set the clock to a time before the next event of the heap."""
        self._now = time

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event of SimPy's own: a script's time-out, a process that starts, a triggered event."""
        heappush(self._queue, (self._now + delay, (SCRIPTED, priority), next(self._eid), event))  # type: ignore[misc]

    def put(self, event: simpy.Event, time: float, key: tuple[int, ...]) -> None:
        """Put an event that is already triggered onto the heap at an absolute time."""
        heappush(self._queue, (time, key, next(self._eid), event))  # type: ignore[misc]

    def at(
        self, time: float, key: tuple[int, ...], callback: Callable[[simpy.Event], Any] | None = None
    ) -> simpy.Event:
        """Event that happens at an absolute time; a process can yield it, or it calls `callback`."""
        event = simpy.Event(self)
        event._ok = True
        event._value = None
        if callback is not None:
            event.callbacks.append(callback)
        self.put(event, time, key)
        return event

    def pending(self, kind: type) -> list[Any]:
        """Events of one class that are on the heap now, in no order."""
        return [entry[3] for entry in self._queue if isinstance(entry[3], kind)]
