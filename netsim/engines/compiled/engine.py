"""The compiled engine: SimPy keeps the clock and all that is scripted, and numba code runs everything in between."""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from netsim import serving
from netsim.clock import Clock
from netsim.coming import Coming
from netsim.engines.compiled.calendar import BATCH, EXPIRY_EVENT, move_slots, push
from netsim.engines.compiled.lane import Lane
from netsim.engines.compiled.loop import (
    BOX_MESSAGE,
    BY_HAND,
    DONE,
    GROW,
    TOO_EARLY,
    Boxes,
    advance,
    count_in_flight,
    inject,
    inject_query,
    receive_box,
    start,
)
from netsim.engines.compiled.team import REPORT, run_lane
from netsim.messages import HANDOVER, IN_FLIGHT, MESSAGE_KINDS
from netsim.prequential import Prequential
from netsim.state import ANSWER_ROW
from netsim.tables import Tables

__all__ = ["CompiledEngine"]

# Events between two looks at the keyboard: a fraction of a second.
BUDGET_EVENTS = 500_000
# Ratings that are located together before they come.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 256
# A second thread pays where a window holds at least so many messages, on average.
MESSAGES_PER_WINDOW = 100


class CompiledEngine:
    """Runs the nodes of a world in compiled loops between the SimPy events of a clock.

    Parameters
    ----------
    tables : Tables
        The state, changed as the run goes on.
    clock : Clock
        Before each of its events it asks this engine to go ahead up to it.
    lowest_jitter : float
        The drawn part of a delay is at least this long, in seconds.
    threads : int, optional
        Default: as many as pay.

    Attributes
    ----------
    lanes : list of Lane
        One for each thread.
    reason : str
        Why there are so many threads.
    time : float
        Simulated seconds up to which model events have been taken.
    """

    name = "compiled"

    def __init__(self, tables: Tables, clock: Clock, *, lowest_jitter: float = 0.0, threads: int | None = None) -> None:
        if len(tables.slots) >= 2**31:
            raise ValueError(
                f"the compiled engine holds fewer than 2**31 ratings on contact lists, got {len(tables.slots):,}; "
                "shorten the lists, for example with Raters(cap=...)"
            )
        self.tables = tables
        self._clock = clock
        self._lowest_jitter = lowest_jitter
        n_lanes, self.reason = _threads(tables, self._shortest_delay(), threads)
        self._lane_of = lane_of = _share(tables, n_lanes)
        self.lanes = [Lane(number, n_lanes, tables, lane_of) for number in range(n_lanes)]
        self.time = 0.0
        self._coming: Coming | None = None  # what it lets come by itself
        self._prequential: Prequential
        self._give: Callable[[int], None]
        self._arrived = np.zeros(8, dtype=np.int64)
        self._reports = np.zeros((2, n_lanes), dtype=REPORT)
        self._pool = ThreadPoolExecutor(n_lanes - 1) if n_lanes > 1 else None
        self._make_boxes((0, 0, 0) if n_lanes == 1 else (4096, 1024, 1024))
        self.contacts_changed()
        for lane in self.lanes:
            lane.grow(4 * len(tables.nodes), 0, 0)
            start(tables.state, lane.queue(), lane.memory())
        clock.ahead = self.advance

    @property
    def in_flight(self) -> np.ndarray:
        """Messages in flight and their bytes, by kind; int64, shape (kinds of message, 2). Counted one by one."""
        counted = np.zeros((len(MESSAGE_KINDS), 2), dtype=np.int64)
        for lane in self.lanes:
            count_in_flight(lane.queue(), counted)
        return counted

    @property
    def wishes(self) -> np.ndarray:
        """How wishes ended so far; WISH_ROW, in no order."""
        return np.concatenate([lane.log[: int(lane.lane["log_top"][0])] for lane in self.lanes])

    def follow(self, coming: Coming, prequential: Prequential, give: Callable[[int], None]) -> bool:
        """Let ratings come by itself from now on, if it can: on one thread.

        Parameters
        ----------
        coming : Coming
        prequential : Prequential
            Is told of each just before.
        give : function of the number of an arrival
            Lets one come that needs edges or contact lists to be made, at its time.
        """
        if len(self.lanes) > 1:
            return False
        self._coming, self._prequential, self._give = coming, prequential, give
        return True

    def advance(self, stop: float, *, inclusive: bool = False) -> None:
        """Take all model events before a time in seconds, and all ratings that come before it, or at it too."""
        due = self._due(stop, inclusive=inclusive)
        if stop <= self.time and due == 0:
            return
        try:
            if len(self.lanes) == 1:
                self._advance_alone(stop, due)
            else:
                self._advance_team(stop)
            self.time = stop
        finally:  # also where a person interrupts
            if len(self.lanes) > 1:
                self._exchange()
                self._add_up()
            for lane in self.lanes:
                self.time = max(self.time, float(lane.lane["now"][0]))
        for lane in self.lanes:
            lane.fit_width(self.tables, stop)

    def _add_up(self) -> None:
        """Take what several lanes have counted into the accounts."""
        for lane in self.lanes:
            self.tables.accounts[...] += lane.accounts
            self.tables.updates[...] += lane.updates
            lane.accounts[:] = 0
            lane.updates[:] = 0

    def delays_changed(self, lowest: float) -> None:
        """Take note that the drawn part of a delay is now at least `lowest` seconds."""
        self._lowest_jitter = lowest
        self._fit_windows()

    def slots_moved(self, shift: np.ndarray) -> None:
        """Take note that the slots of each edge have moved by so much; int64, shape (edges,)."""
        for lane in self.lanes:
            move_slots(lane.queue(), shift)

    def ask(self, user: int, number: int) -> None:
        """Let a user send the first query for an open wish, now."""
        state, now = self.tables.state, float(self._clock.now)
        edge, profile, stamp, size, fate, *arrivals = serving.ask(state, user, number, now)
        receiver = self.lanes[self._lane_of[state.edges["receiver"][edge]]]
        for copy, arrival in enumerate(arrivals):
            if fate == IN_FLIGHT and arrival < math.inf:
                receiver.grow(1, 1, 0)
                views = receiver.views(self.tables)
                inject_query(*views, self._no_boxes, edge, profile, stamp, size, copy, arrival)
        own = self.lanes[self._lane_of[user]]
        own.grow(1, 0, 0)
        expiry = now + float(state.settings["wish_timeout"][0])
        push(own.queue(), state.edges, expiry, user, EXPIRY_EVENT, number, 0)

    def post_handover(self, edge: int, profile: int, size: int, fate: int, arrival: float) -> None:
        """Put a snapshot of a profile onto its way over an edge between two routers, unless it is lost already."""
        if fate != IN_FLIGHT:
            return
        lane = self.lanes[self._lane_of[self.tables.edges["receiver"][edge]]]
        lane.grow(1, 1, 0)
        inject(*lane.views(self.tables), self._no_boxes, HANDOVER, edge, profile, size, arrival)

    def contacts_changed(self) -> None:
        """Take note that edges, paths or contact lists have changed."""
        for lane in self.lanes:
            lane.fit_scratch(self.tables)
        self._fit_windows()

    def _fit_windows(self) -> None:
        """Make windows a little shorter than the shortest delay, so that rounding puts no arrival into its own."""
        seconds = self._shortest_delay()
        self._windows_per_second = 1.0 / (min(seconds, 1e9) * (1.0 - 1e-6)) if seconds > 0 else 0.0

    def _shortest_delay(self) -> float:
        """No message that is sent from now on takes less, in seconds."""
        edges, settings = self.tables.edges, self.tables.settings[0]
        paths = min((float(edges[way].min()) for way in ("base", "back") if len(edges)), default=math.inf)
        least = (paths * float(settings["stretch"]) + float(settings["shift"])) + self._lowest_jitter
        return max(float(settings["minimum_delay"]), least)

    def _due(self, stop: float, *, inclusive: bool) -> int:
        """How many ratings are still to come before a time in seconds, or at it too."""
        if self._coming is None:
            return 0
        arrived = int(self.lanes[0].lane["arrived"][0])
        return self._coming.due(arrived, stop, inclusive=inclusive) - arrived

    def _advance_alone(self, stop: float, due: int) -> None:
        """Take all events before a time, and let so many ratings come."""
        size = LARGEST_BLOCK
        while due > 0 and self._coming is not None:
            first = int(self.lanes[0].lane["arrived"][0])
            last = first + min(size, due)
            by_hand = self._let_come(first, last, stop if last == first + due else float(self._coming.time[last]))
            size = SMALLEST_BLOCK if by_hand else min(2 * size, LARGEST_BLOCK)
            due -= int(self.lanes[0].lane["arrived"][0]) - first
        self._run_alone(stop)

    def _let_come(self, first: int, last: int, stop: float) -> bool:
        """Let ratings come, up to one that is given by hand, or all of them; returns whether one was."""
        assert self._coming is not None
        lane = self.lanes[0]
        self._prequential.make_room(last - first)
        lane.expect(first, self._coming.located(self.tables, first, last), self._prequential.book)
        try:
            by_hand = self._run_alone(stop) == BY_HAND
        finally:  # what was located may not be so when it goes on
            lane.expect(0, lane.coming[:0], self._prequential.book)
        if by_hand:
            number = int(lane.lane["arrived"][0])
            lane.lane["arrived"] += 1
            self._give(number)
        return by_hand

    def _run_alone(self, stop: float) -> int:
        lane = self.lanes[0]
        status = GROW
        while status not in (DONE, BY_HAND):
            status = advance(*lane.views(self.tables), self._no_boxes, stop, 0, 0.0, BUDGET_EVENTS)
            if status == GROW:
                self._grow(lane)
        return int(status)

    def _advance_team(self, stop: float) -> None:
        assert self._pool is not None
        for lane in self.lanes:
            lane.lane["window"] = math.floor(self.time * self._windows_per_second)
        status = GROW
        while status != DONE:
            common = (self._boxes, self._arrived, self._reports, stop, self._windows_per_second, BUDGET_EVENTS)
            calls = [(*lane.views(self.tables), *common) for lane in self.lanes]
            others = []
            try:
                others = [self._pool.submit(run_lane, *call) for call in calls[1:]]
                status = run_lane(*calls[0])
            except BaseException:  # a person interrupts before all lanes have begun
                self._arrived[1] = 1
                raise
            finally:
                wait(others)
                self._arrived[:] = 0
                for lane in self.lanes:
                    lane.lane["meeting"] = 0
            for other in others:
                other.result()
            parity = int(self.lanes[0].lane["round"][0]) & 1
            for lane in self.lanes:
                reported = self._reports[parity, lane.number]["status"]
                if status != DONE and reported == GROW:
                    self._grow(lane)
                elif status != DONE and reported == TOO_EARLY:
                    raise RuntimeError(
                        "a message would arrive within the window of time it was sent in; "
                        "please report this with the world and the seed"
                    )

    def _exchange(self) -> None:
        """Hand over what waits in the boxes, so that every message in flight is in a calendar."""
        for receiver in self.lanes:
            for sender in range(len(self.lanes)):
                for parity in range(2):
                    at = (parity, sender, receiver.number)
                    status = GROW
                    while status == GROW:
                        box = (each[at] for each in self._boxes)
                        status = receive_box(receiver.queue(), receiver.memory(), self.tables.edges, *box)
                        if status == GROW:
                            self._grow(receiver)
            receiver.lane["received"] = receiver.lane["round"]

    def _grow(self, lane: Lane) -> None:
        """Make the room that a lane needs, in its own pools and in the boxes."""
        row = lane.lane[0]
        need = (int(row["need_events"]), int(row["need_batches"]), int(row["need_answers"]))
        lane.grow(*need)
        if len(self.lanes) > 1:
            room = [box.shape[3] for box in (self._boxes.messages, self._boxes.batches, self._boxes.answers)]
            fullest = self._boxes.counts.max(axis=(0, 1, 2))
            wanted = [
                max(size, size + size // 2 if full + more > size else size, int(full) + more)
                for size, full, more in zip(room, fullest, need, strict=True)
            ]
            if wanted != room:
                self._make_boxes((wanted[0], wanted[1], wanted[2]))

    def _make_boxes(self, room: tuple[int, int, int]) -> None:
        """Make the boxes through which lanes exchange messages, with what the old ones hold."""
        n_messages, n_batches, n_answers = room
        shape = (2, len(self.lanes), len(self.lanes))
        boxes = Boxes(
            counts=np.zeros((*shape, 3), dtype=np.int64),
            messages=np.zeros((*shape, n_messages), dtype=BOX_MESSAGE),
            batches=np.zeros((*shape, n_batches), dtype=BATCH),
            payloads=np.zeros((*shape, n_batches, self.tables.values.shape[1])),
            answers=np.zeros((*shape, n_answers), dtype=ANSWER_ROW),
        )
        for box, old in zip(boxes, getattr(self, "_boxes", ()), strict=False):
            box[:, :, :, : old.shape[3]] = old
        self._boxes = boxes
        self._no_boxes = Boxes(*(box[0, 0] for box in boxes))  # what nothing is put into, where no lane is left


def _threads(tables: Tables, shortest_delay: float, threads: int | None) -> tuple[int, str]:
    """Number of lanes, and why."""
    if threads == 1:
        return 1, "one thread was asked for"
    if tables.settings["minimum_delay"][0] <= 0:
        return 1, "one thread, since minimum_delay is 0"
    if math.isinf(shortest_delay):
        return 1, "one thread, since no message can arrive"
    nodes = tables.nodes
    per_second = float((nodes["contact_count"] * nodes["owned_count"] / nodes["period"]).sum())
    per_window = per_second * shortest_delay
    told = f"the shortest delay, {shortest_delay:g} s, holds about {per_window:.0f} messages"
    if threads is not None:
        return threads, f"{threads} threads were asked for; {told}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if per_window < MESSAGES_PER_WINDOW or cores == 1:
        return 1, f"one thread, since {told}" if cores > 1 else "one thread, since there is one core"
    n = min(cores, 8, int(per_window // (MESSAGES_PER_WINDOW // 2)))
    return n, f"{n} threads, since {told}"


def _share(tables: Tables, n_lanes: int) -> np.ndarray:
    """Lane of each node, int32: users and routers apart, each lane with about the same share of the messages."""
    received = np.bincount(tables.edges["receiver"], minlength=len(tables.nodes))
    work = received + tables.nodes["contact_count"] * tables.nodes["owned_count"] + 1
    lane_of = np.empty(len(work), dtype=np.int32)
    n_users = tables.n_users
    for part in (slice(0, n_users), slice(n_users, len(work))):
        done = np.cumsum(work[part]) - work[part]
        lane_of[part] = done * n_lanes // max(1, int(work[part].sum()))
    return lane_of
