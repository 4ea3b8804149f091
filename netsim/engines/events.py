"""The readable engine: users and routers are SimPy processes, and each message in flight is one SimPy event.

It is the definition of what a run means. What a node does at an event is `netsim.behaviour`; here is only who is
woken when.
"""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy

from netsim import behaviour, finding, serving, sessions
from netsim.clock import Clock
from netsim.coming import Coming
from netsim.messages import (
    ANSWER,
    CHECKPOINT,
    CONTROL,
    EXPIRY,
    FOUND,
    HANDOVER,
    IN_FLIGHT,
    LOOKUP,
    MESSAGE_KINDS,
    PROFILE,
    QUERY,
    REPLY,
    REQUEST,
    TICK,
    TOGGLE,
    WISH,
    message_size,
)
from netsim.prequential import Prequential
from netsim.queueing import processes
from netsim.state import ANSWER_ROW, OPEN, REFUSED, TIMED_OUT, UNBORN, WISH_ROW, State
from netsim.tables import Tables
from netsim.timers import first_tick, next_tick
from netsim.trace import MessageTrace

__all__ = ["EventsEngine", "Message", "Router", "User"]


class Message(simpy.Event):
    """A message in flight; as an event, its arrival. What it carries never changes.

    Attributes
    ----------
    kind : int
        REQUEST, REPLY, PROFILE or HANDOVER.
    edge : int
        The edge it travels over. A request travels over the edge from the user to the router, backwards.
    profile : int
        Whose profile it carries.
    offset : int
        Place of the profile among those of its sender when it was sent.
    stamp : int
        Stamp of that profile; of a request, the attempt.
    emitted : float
        Time of sending in seconds.
    payload : float64, shape (rank,), read-only
    count : int
        The user's count, where it carries a user's profile; of a handover, the updates made; of a request, 1 for the
        second copy; of what was found, the node of the router.
    answers : ANSWER_ROW array or None
        Items named, or ratings answered.
    attempt : int
        Number of the request that it is or answers; of a handover, the incarnation that it takes the place of.
    size : int
        Bytes.
    """

    # One of these is made for each message, so its fields are set by the sender and not through arguments.
    kind: int
    edge: int
    profile: int
    offset: int
    stamp: int
    emitted: float
    payload: np.ndarray
    count: int
    answers: np.ndarray | None
    attempt: int
    size: int
    row: int  # of the trace

    def __init__(self, clock: Clock, receive: Any) -> None:
        self.env = clock
        self.callbacks = [receive]
        self._ok = True
        self._value = None


class Node:
    """A machine in the network: it broadcasts at its ticks, and goes on and off."""

    def __init__(self, engine: "EventsEngine", number: int) -> None:
        self.engine = engine
        self.number = number
        clock = engine.clock
        clock.process(self.broadcasts())
        if sessions.has_sessions(engine.state, number):
            clock.process(self.sessions())
        if np.isfinite(engine.tables.life["checkpoint_period"][number]):
            clock.process(self.checkpoints())

    def broadcasts(self) -> Generator[simpy.Event, Any, None]:
        """Broadcast every own profile at each tick; ticks go on while the node is offline, and send nothing."""
        engine, number = self.engine, self.number
        row = engine.tables.nodes[number]
        timer = (engine.tables.settings[0]["seed"], row["key"], row["poisson"], row["period"], row["phase"])
        tick, time = 0, first_tick(*timer)
        while True:
            yield engine.clock.at(time, (TICK, number))
            if engine.tables.life["departed"][number]:
                return
            if row["online"]:
                self.keep_contacts(tick, time)
                first = int(row["owned_start"])
                for profile in engine.tables.owned[first : first + int(row["owned_count"])].tolist():
                    if engine.tables.profiles["incarnation"][profile] != UNBORN:
                        self.broadcast(profile, tick)
            tick += 1
            time = next_tick(*timer, tick, time)

    def keep_contacts(self, tick: int, now: float) -> None:
        """Drop contacts that have not been heard of, before a broadcast."""
        state = self.engine.state
        role = "user" if self.number < self.engine.tables.n_users else "router"
        patience = float(state.settings[f"{role}_patience"][0])
        if patience < np.inf and len(state.heard):
            finding.tidy(state, self.number, tick, patience, now)

    def sessions(self) -> Generator[simpy.Event, Any, None]:
        """Alternate between sessions online and offline."""
        engine, number = self.engine, self.number
        session, time = 1, sessions.session_end(engine.state, number, 1, 0.0)
        while time < np.inf:
            yield engine.clock.at(time, (TOGGLE, number))
            if engine.tables.life["departed"][number]:
                return
            session += 1
            time = sessions.toggle(engine.state, number, session, time)

    def checkpoints(self) -> Generator[simpy.Event, Any, None]:
        """Write a checkpoint every so many seconds, while online."""
        engine, number = self.engine, self.number
        written = 0
        while True:
            yield engine.clock.at(sessions.checkpoint_time(engine.state, number, written), (CHECKPOINT, number))
            if engine.tables.life["departed"][number]:
                return
            sessions.checkpoint(engine.state, number)
            written += 1

    def broadcast(self, profile: int, tick: int) -> None:
        """Send a snapshot of an own profile to the contacts."""
        engine, tables, clock = self.engine, self.engine.tables, self.engine.clock
        words, sent, fates, sizes, arrivals = engine.outbox(2 * int(tables.nodes[self.number]["contact_count"]))
        n = behaviour.broadcast(
            engine.state,
            profile,
            tick,
            clock.now,
            words,
            sent,
            fates,
            sizes,
            arrivals,
        )
        payload = engine.snapshot(profile)
        stamp, offset = int(tables.profiles[profile]["stamp"]), int(tables.profiles[profile]["offset"])
        count = self.rating_count()
        receivers = tables.edges["receiver"][sent[:n]].tolist()
        rows = zip(
            sent[:n].tolist(),
            receivers,
            fates[:n].tolist(),
            sizes[:n].tolist(),
            arrivals[:n].tolist(),
            strict=True,
        )
        for edge, receiver, fate, size, arrival in rows:
            message = Message(clock, engine.nodes[receiver].take_profile)
            message.kind = PROFILE
            message.edge = edge
            message.profile = profile
            message.offset = offset
            message.stamp = stamp
            message.emitted = clock.now
            message.payload = payload
            message.count = count
            message.size = size
            engine.send(message, self.number, receiver, fate, arrival)

    def rating_count(self) -> int:
        """The count that the profiles of a user carry."""
        return 0

    def take_profile(self, message: Any) -> None:
        """Receive a profile."""
        raise TypeError("Node is abstract; a node is a User or a Router")

    def take_request(self, message: Any) -> None:
        """Receive a request for ratings; only users do."""
        raise TypeError("only a User is asked for ratings")

    def take_reply(self, message: Any) -> None:
        """Receive the reply to a request; only routers do."""
        raise TypeError("only a Router is replied to")

    def take_handover(self, message: Any) -> None:
        """Receive the profile of an item from the router that hosted it before; only routers do."""
        raise TypeError("items are handed over to a Router only")

    def take_query(self, message: Any) -> None:
        """Receive a query for the profile of an item; only routers do."""
        raise TypeError("only a Router is asked for profiles")

    def take_answer(self, message: Any) -> None:
        """Receive the profile that was asked for; only users do."""
        raise TypeError("only a User asks for profiles")

    def take_lookup(self, message: Any) -> None:
        """Receive the question which router hosts an item; only routers do."""
        raise TypeError("only a Router is a directory")

    def take_found(self, message: Any) -> None:
        """Receive the name of the router that hosts an item; only users do."""
        raise TypeError("only a User looks for routers")


class User(Node):
    """A user: holds ratings and one profile, takes item profiles, answers requests, asks for recommendations."""

    def __init__(self, engine: "EventsEngine", number: int) -> None:
        super().__init__(engine, number)
        start = engine.tables.target_start
        if len(start) and start[number + 1] > start[number]:
            engine.clock.process(self.wishes())

    def keep_contacts(self, tick: int, now: float) -> None:
        """Drop contacts that have not been heard of, then look for the routers of items that are not known yet."""
        super().keep_contacts(tick, now)
        engine, user = self.engine, self.number
        if not len(engine.tables.finds):
            return
        for _ in range(int(engine.tables.settings["lookups"][0])):
            own = finding.next_unknown(engine.state, user, now)
            if own < 0:
                return
            edge, profile, size, fate, *arrivals = finding.look_up(engine.state, user, own, tick, now)
            router = int(engine.tables.edges[edge]["receiver"])
            for copy, arrival in enumerate(_copies(arrivals)):
                message = Message(engine.clock, engine.nodes[router].take_lookup)
                message.count = copy
                message.kind = LOOKUP
                message.edge = int(edge)
                message.profile = int(profile)
                message.stamp = tick
                message.size = int(size)
                engine.send(message, user, router, fate, arrival)

    def take_found(self, message: Message) -> None:
        """Receive the name of the router that hosts an item."""
        engine = self.engine
        fate = finding.user_takes_found(
            engine.state,
            message.edge,
            self.number,
            message.profile,
            message.count,
            message.size,
            engine.clock.now,
        )
        engine.landed(message, fate)

    def wishes(self) -> Generator[simpy.Event, Any, None]:
        """Wish for the profile of an item at each time of a Poisson process."""
        engine, user = self.engine, self.number
        number, time = 0, serving.next_wish(engine.state, user, 0, 0.0)
        while time < np.inf:
            yield engine.clock.at(time, (WISH, user, number, 0))
            if engine.tables.life["departed"][user]:
                return
            row = np.zeros(1, dtype=WISH_ROW)
            what = serving.begin_wish(engine.state, user, number, time, row)
            if what == OPEN:
                self.ask(number, 0)
            elif what == REFUSED:
                engine.log.append(row)
            number += 1
            time = serving.next_wish(engine.state, user, number, time)

    def ask(self, number: int, attempt: int) -> None:
        """Send a query for a wish, and wait for the end of its time-out."""
        engine, clock = self.engine, self.engine.clock
        edge, profile, stamp, size, fate, *arrivals = serving.ask(engine.state, self.number, number, clock.now)
        router = int(engine.tables.edges[edge]["receiver"])
        for copy, arrival in enumerate(_copies(arrivals)):
            query = Message(clock, engine.nodes[router].take_query)
            query.kind = QUERY
            query.edge = int(edge)
            query.profile = int(profile)
            query.stamp = int(stamp)
            query.count = copy
            query.size = int(size)
            engine.send(query, self.number, router, fate, arrival)
        timeout = float(engine.tables.settings["wish_timeout"][0])
        clock.at(clock.now + timeout, (EXPIRY, self.number, number, attempt), lambda _: self.expire(number, attempt))

    def expire(self, number: int, attempt: int) -> None:
        """Ask again, or give up."""
        row = np.zeros(1, dtype=WISH_ROW)
        what = serving.expire(self.engine.state, self.number, number, attempt, self.engine.clock.now, row)
        if what == OPEN:
            self.ask(number, attempt + 1)
        elif what == TIMED_OUT:
            self.engine.log.append(row)

    def take_answer(self, message: Message) -> None:
        """Receive the profile that was asked for, and predict the rating."""
        engine = self.engine
        row = np.zeros(1, dtype=WISH_ROW)
        fate = serving.user_takes_answer(
            engine.state,
            message.edge,
            self.number,
            message.stamp,
            message.payload,
            message.size,
            engine.clock.now,
            row,
        )
        if fate == CONTROL:
            engine.log.append(row)
        engine.landed(message, fate)

    def rating_count(self) -> int:
        """His ratings, and how often he has changed one."""
        return int(self.engine.tables.own_count[self.number])

    def take_profile(self, message: Message) -> None:
        """Receive an item profile: equation (3)."""
        engine, tables = self.engine, self.engine.tables
        fate = behaviour.user_takes_profile(
            engine.state,
            message.edge,
            self.number,
            int(tables.edges[message.edge]["slot"]) + message.offset,
            message.stamp,
            message.emitted,
            message.payload,
            message.size,
            engine.clock.now,
        )
        engine.landed(message, fate)

    def take_request(self, message: Message) -> None:
        """Receive a request for ratings and reply with them and the own profile of this moment."""
        engine, tables = self.engine, self.engine.tables
        assert message.answers is not None
        answers = message.answers.copy()
        fate, stamp, reply_fate, *arrivals = behaviour.user_takes_request(
            engine.state,
            message.edge,
            message.attempt,
            message.count,
            answers,
            message.size,
            engine.clock.now,
        )
        engine.landed(message, fate)
        if fate != CONTROL:
            return
        router = int(tables.edges[message.edge]["receiver"])
        payload = engine.snapshot(self.number)
        answers.flags.writeable = False
        for arrival in _copies(arrivals):
            reply = Message(engine.clock, engine.nodes[router].take_reply)
            reply.kind = REPLY
            reply.edge = message.edge
            reply.profile = self.number
            reply.stamp = int(stamp)
            reply.emitted = engine.clock.now
            reply.payload = payload
            reply.count = self.rating_count()
            reply.answers = answers
            reply.attempt = message.attempt
            reply.size = message_size(REPLY, len(payload), len(answers))
            engine.send(reply, self.number, router, reply_fate, arrival)


class Router(Node):
    """A router: hosts item profiles, takes user profiles, asks for ratings that it does not know."""

    def take_profile(self, message: Message) -> None:
        """Receive a user's profile: equation (4) for each hosted item that he rated."""
        engine, tables = self.engine, self.engine.tables
        named = np.zeros(tables.nodes[self.number]["owned_count"], dtype=ANSWER_ROW)
        fate, n_named, request_fate, *arrivals = behaviour.router_takes_profile(
            engine.state,
            message.edge,
            self.number,
            int(tables.edges[message.edge]["slot"]),
            message.stamp,
            message.count,
            message.emitted,
            message.payload,
            message.size,
            engine.clock.now,
            named,
        )
        engine.landed(message, fate)
        if n_named:
            self.ask(message.edge, named[:n_named], request_fate, arrivals)

    def take_reply(self, message: Message) -> None:
        """Receive ratings with the user's profile."""
        engine, tables = self.engine, self.engine.tables
        named = np.zeros(tables.nodes[self.number]["owned_count"], dtype=ANSWER_ROW)
        fate, n_named, request_fate, *arrivals = behaviour.router_takes_reply(
            engine.state,
            message.edge,
            self.number,
            int(tables.edges[message.edge]["slot"]),
            message.attempt,
            message.stamp,
            message.count,
            message.emitted,
            message.payload,
            message.answers,
            message.size,
            engine.clock.now,
            named,
        )
        engine.landed(message, fate)
        if n_named:
            self.ask(message.edge, named[:n_named], request_fate, arrivals)

    def take_lookup(self, message: Message) -> None:
        """Receive the question which router hosts an item, and answer it."""
        engine, clock = self.engine, self.engine.clock
        fate, host, size, found_fate, *arrivals = finding.router_takes_lookup(
            engine.state,
            message.edge,
            self.number,
            message.profile,
            message.stamp,
            message.count,
            message.size,
            clock.now,
        )
        engine.landed(message, fate)
        if fate != CONTROL:
            return
        user = int(engine.tables.edges[message.edge]["sender"])
        for arrival in _copies(arrivals):
            found = Message(clock, engine.nodes[user].take_found)
            found.kind = FOUND
            found.edge = message.edge
            found.profile = message.profile
            found.stamp = message.stamp
            found.count = int(host)
            found.size = int(size)
            engine.send(found, self.number, user, found_fate, arrival)

    def take_query(self, message: Message) -> None:
        """Receive a query for the profile of an item, and answer it."""
        engine, clock = self.engine, self.engine.clock
        fate, answers, size, answer_fate, *arrivals = serving.router_takes_query(
            engine.state,
            message.edge,
            self.number,
            message.profile,
            message.stamp,
            message.count,
            message.size,
            clock.now,
        )
        engine.landed(message, fate)
        if not answers:
            return
        user = int(engine.tables.edges[message.edge]["sender"])
        payload = engine.snapshot(message.profile)
        for arrival in _copies(arrivals):
            answer = Message(clock, engine.nodes[user].take_answer)
            answer.kind = ANSWER
            answer.edge = message.edge
            answer.profile = message.profile
            answer.stamp = message.stamp
            answer.payload = payload
            answer.size = int(size)
            engine.send(answer, self.number, user, answer_fate, arrival)

    def take_handover(self, message: Message) -> None:
        """Receive the profile of an item from the router that hosted it before."""
        engine = self.engine
        fate = behaviour.router_takes_handover(
            engine.state, self.number, message.profile, message.attempt, message.count, message.payload, message.size
        )
        engine.landed(message, fate)

    def ask(self, edge: int, named: np.ndarray, fate: int, arrivals: list[float]) -> None:
        """Put a request for the named ratings onto its way."""
        engine, tables = self.engine, self.engine.tables
        user = int(tables.edges[edge]["sender"])
        attempt = int(tables.slots[tables.edges[edge]["slot"]]["attempt"])
        named.flags.writeable = False
        for copy, arrival in enumerate(_copies(arrivals)):
            request = Message(engine.clock, engine.nodes[user].take_request)
            request.kind = REQUEST
            request.edge = edge
            request.profile = -1
            request.stamp = request.attempt = attempt
            request.count = copy
            request.answers = named
            request.size = message_size(REQUEST, 0, len(named))
            engine.send(request, self.number, user, fate, arrival)


def _copies(arrivals: list[float]) -> list[float]:
    """Times of arrival of a message and, if the network made one, of its second copy."""
    return arrivals[: 1 + (arrivals[1] < np.inf)]


class EventsEngine:
    """Runs the nodes of a world as SimPy processes on a clock.

    Parameters
    ----------
    tables : Tables
        The state, changed as the run goes on.
    clock : Clock
    trace : MessageTrace, optional
        Records every message.
    reason : str
        Why this engine runs.

    Attributes
    ----------
    in_flight : int64, shape (kinds of message, 2)
        Messages on the heap and their bytes, by kind.
    """

    name = "events"

    def __init__(
        self, tables: Tables, clock: Clock, trace: MessageTrace | None = None, reason: str = "it was asked for"
    ) -> None:
        self.reason = reason
        self.tables = tables
        self.clock = clock
        self.trace = trace
        self._in_flight = [[0, 0] for _ in MESSAGE_KINDS]
        self._scratch = _outbox(64)
        self.log: list[np.ndarray] = []
        n_users = tables.n_users
        self.nodes: list[Node] = [User(self, n) if n < n_users else Router(self, n) for n in range(len(tables.nodes))]

    @property
    def time(self) -> float:
        """Simulated seconds up to which model events have been taken."""
        return float(self.clock.now)

    @property
    def in_flight(self) -> np.ndarray:
        """Messages in flight and their bytes, by kind; int64, shape (kinds of message, 2)."""
        return np.array(self._in_flight, dtype=np.int64)

    @property
    def state(self) -> State:
        """The arrays of the tables, as node behaviour takes them."""
        return self.tables.state

    @property
    def wishes(self) -> np.ndarray:
        """How wishes ended so far; WISH_ROW, in the order in which they did."""
        return np.concatenate([np.zeros(0, dtype=WISH_ROW), *self.log])

    def follow(self, coming: Coming, prequential: Prequential, give: Callable[[int], None]) -> bool:
        """Here the clock lets ratings come, one after another."""
        return False

    def delays_changed(self, lowest: float) -> None:
        """Do nothing: messages are sent under the settings of the moment."""

    def contacts_changed(self) -> None:
        """Do nothing: the state of the moment is used."""

    def slots_moved(self, shift: np.ndarray) -> None:
        """Do nothing: a message finds its slot when it arrives."""

    def ask(self, user: int, number: int) -> None:
        """Let a user send the first query for an open wish, now."""
        node = self.nodes[user]
        assert isinstance(node, User)
        node.ask(number, 0)

    def post_handover(self, edge: int, profile: int, size: int, fate: int, arrival: float) -> None:
        """Put a snapshot of a profile onto its way over an edge between two routers, unless it is lost already."""
        tables = self.tables
        sender, receiver = (int(tables.edges[edge][end]) for end in ("sender", "receiver"))
        message = Message(self.clock, self.nodes[receiver].take_handover)
        message.kind = HANDOVER
        message.edge = edge
        message.profile = profile
        message.stamp = int(tables.profiles[profile]["stamp"])
        message.payload = self.snapshot(profile)
        message.attempt = int(tables.profiles[profile]["incarnation"]) + 1
        message.count = int(tables.profiles[profile]["updates"])
        message.size = size
        self.send(message, sender, receiver, fate, arrival)

    def send(self, message: Message, sender: int, receiver: int, fate: int, arrival: float) -> None:
        """Put a message onto its way, unless the network has dropped it already."""
        if self.trace is not None:
            message.row = self.trace.sent(message, sender, receiver, self.clock.now, fate, arrival)
        if fate != IN_FLIGHT:
            return
        count = self._in_flight[message.kind - REQUEST]
        count[0] += 1
        count[1] += message.size
        # Second copies of what is asked are taken after the first: their answers have draws of their own.
        copy = message.count if message.kind in (REQUEST, QUERY, LOOKUP) else 0
        key = (message.kind, sender, receiver, message.stamp, message.profile, copy)
        if processes(self.state, receiver):
            (take,) = message.callbacks
            message.callbacks[0] = lambda _: self.admit(message, receiver, key, take)
        self.clock.put(message, arrival, key)

    def admit(self, message: Message, receiver: int, key: tuple[int, ...], take: Any) -> None:
        """Let a message wait at its receiver until it is processed."""
        fate, processed = behaviour.admit(
            self.state,
            message.kind,
            message.edge,
            receiver,
            message.profile,
            message.stamp,
            message.size,
            self.clock.now,
        )
        if fate != IN_FLIGHT:
            self.landed(message, fate)
            return
        message.callbacks = [take]
        self.clock.put(message, processed, key)

    def landed(self, message: Message, fate: int) -> None:
        """Note what became of a message that arrived."""
        count = self._in_flight[message.kind - REQUEST]
        count[0] -= 1
        count[1] -= message.size
        if self.trace is not None:
            self.trace.landed(message.row, fate)

    def snapshot(self, profile: int) -> np.ndarray:
        """Read-only copy of a profile, float64, shape (rank,)."""
        copy: np.ndarray = self.tables.values[profile].copy()
        copy.flags.writeable = False
        return copy

    def outbox(self, n: int) -> tuple[np.ndarray, ...]:
        """Scratch arrays for `n` messages: words of chance, edges, fates, sizes, arrivals."""
        if len(self._scratch[0]) < n:
            self._scratch = _outbox(n)
        return self._scratch


def _outbox(n: int) -> tuple[np.ndarray, ...]:
    return (np.empty(n, dtype=np.uint64), *(np.empty(n, dtype=np.int64) for _ in range(3)), np.empty(n))
