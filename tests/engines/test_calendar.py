"""The calendar queue alone, against a plain list: it gives events in the order of the whole key, whatever its width."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.ratings import Ratings
from netsim import World
from netsim.engines.compiled.calendar import CHECKPOINT_EVENT, NONE, TICK_EVENT, TOGGLE_EVENT, peek, push
from netsim.engines.compiled.lane import Lane
from netsim.messages import CHECKPOINT, PROFILE, REPLY, REQUEST, TICK, TOGGLE
from netsim.tables import build_tables

FAR = 2**40
KINDS = (TOGGLE, TICK, CHECKPOINT, REQUEST, REPLY, PROFILE)
many = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def network():
    user, item = np.nonzero(np.ones((3, 3)))
    known = Ratings.from_arrays(user, item, np.full(9, 3.0), scale=(1, 5), user_ids=range(3), item_ids=range(3))
    return build_tables(World(known), 1)


TABLES = network()


class Queue:
    """The calendar and a plain list of keys side by side.

    Parameters
    ----------
    capacity : int
        Rows of the current day; the fewer, the more often it is compacted.
    buckets : int
        The fewer, the more often days come round.
    per_second : float
        Days per second.
    """

    def __init__(self, capacity, buckets, per_second):
        lane = self.lane = Lane(0, 1, TABLES, np.zeros(len(TABLES.nodes), dtype=np.int32))
        lane.current = lane.current[:capacity].copy()
        lane.order, lane.spare = np.zeros((2, capacity), dtype=np.int32)
        lane.heads = np.full(buckets, NONE, dtype=np.int32)
        lane.calendar["per_second"] = per_second
        self.capacity = capacity
        self.batches = np.zeros(0, dtype=lane.batches.dtype)
        self.waiting = {}  # number of the event: its key
        self.now = 0.0
        self.pushed = 0

    def key(self, time, kind, place, stamp, profile):
        if kind <= CHECKPOINT:
            return (time, kind, place)
        edge = TABLES.edges[place]
        ends = (int(edge["sender"]), int(edge["receiver"]))
        return (time, kind, *(ends[::-1] if kind == REQUEST else ends), stamp, profile)

    def push(self, time, kind, place, stamp, profile):
        lane, number = self.lane, self.pushed
        key = self.key(time, kind, place, stamp, profile)
        if len(self.waiting) + 1 >= self.capacity or key in self.waiting.values():
            return
        if kind <= CHECKPOINT:
            batch = {TICK: TICK_EVENT, TOGGLE: TOGGLE_EVENT, CHECKPOINT: CHECKPOINT_EVENT}[kind]
        else:
            batch = number
            if batch == len(lane.batches):
                lane.batches = np.concatenate([lane.batches, np.zeros_like(lane.batches)])
                lane.payloads = np.concatenate([lane.payloads, np.zeros_like(lane.payloads)])
            lane.batches[batch]["kind"] = kind
            lane.batches[batch]["stamp"] = stamp
            lane.batches[batch]["profile"] = profile
        push(lane.queue(), TABLES.edges, time, place, batch, number, 0)
        self.waiting[number] = key
        self.pushed += 1

    def peek(self, last_day):
        return peek(self.lane.queue(), TABLES.state, last_day)

    def pop(self, last_day=FAR):
        """Take the least event, and check that it is; None where none comes up to a day."""
        calendar = self.lane.calendar[0]
        row = self.peek(last_day)
        if row == NONE:
            per_second = calendar["per_second"]
            assert all(int(key[0] * per_second) > last_day for key in self.waiting.values())
            return None
        event = self.lane.current[row]
        key = self.waiting.pop(int(event["number"]))
        assert key[0] == event["time"]
        assert key == min([key, *self.waiting.values()])
        calendar["position"] += 1
        calendar["pending"] -= 1
        self.now = float(event["time"])
        return key

    def set_width(self, per_second):
        room = len(self.lane.current)
        self.lane.set_width(TABLES, per_second, self.now)
        assert len(self.lane.current) >= room
        assert self.lane.calendar["pending"][0] == len(self.waiting)


kinds = st.sampled_from([TOGGLE, TICK, CHECKPOINT, REQUEST, REPLY, PROFILE])
waits = st.one_of(
    st.integers(0, 8).map(lambda steps: steps / 4),
    st.floats(0, 3, allow_subnormal=False),
    st.sampled_from([0.0, 0.0, 20.0, 64.0]),
)
events = st.tuples(waits, kinds, st.integers(0, 5), st.integers(1, 3), st.integers(0, 2))
widths = st.sampled_from([0.1, 1.0, 4.0, 7.3, 100.0, 1000.0])
moves = st.lists(
    st.one_of(
        events,
        events,
        events,
        st.just("pop"),
        st.just("pop"),
        st.integers(0, 3),  # pop, but only up to so many days ahead
        widths,
    ),
    max_size=80,
)


@many
@given(moves, st.integers(3, 40), st.sampled_from([2, 8, 64]), widths)
def test_events_come_in_the_order_of_the_key(moves, capacity, buckets, per_second):
    queue = Queue(capacity, buckets, per_second)
    for move in moves:
        if isinstance(move, tuple):
            wait, *rest = move
            queue.push(queue.now + wait, *rest)
        elif move == "pop":
            queue.pop()
        elif isinstance(move, int):
            queue.pop(int(queue.lane.calendar["day"][0]) + move)
        else:
            queue.set_width(move)
    while queue.waiting:
        queue.pop()
    assert queue.pop() is None
    assert queue.lane.calendar["pending"][0] == 0


def test_hundreds_at_one_time_are_sorted_whether_they_wait_or_come_during_the_day():
    rng = np.random.default_rng(3)
    wanted = [(1.0, *numbers) for numbers in np.ndindex(11, 6, 8, 3) if numbers[0] in KINDS]
    for during in (False, True):
        queue = Queue(2000, 8, 1.0)
        if during:
            queue.push(0.5, TICK, 0, 0, 0)
            queue.push(1.9, TICK, 0, 0, 0)
            queue.pop(1)
        for n in rng.permutation(len(wanted)):
            queue.push(*wanted[n])
        n_waiting, keys = len(queue.waiting), []
        assert n_waiting > 400
        while queue.waiting:
            keys.append(queue.pop())
        assert keys == sorted(keys)


def test_the_current_day_is_compacted_when_its_rows_run_out():
    """Events come and go within one long day, many more than there are rows."""
    queue = Queue(6, 8, 0.001)
    queue.push(0.0, TICK, 0, 0, 0)
    for n in range(1, 100):
        queue.push(n + 0.5, TICK, n % 6, 0, 0)
        queue.push(n + 0.25 + (n % 3), PROFILE, n % 6, 1, 0)
        queue.pop()
        if n % 2:
            queue.pop()
    while queue.waiting:
        queue.pop()


def test_days_that_come_round_wait_for_their_own():
    queue = Queue(50, 2, 1.0)
    for n in range(20):
        queue.push(float(20 - n), TICK, 0, 0, 0)
        queue.push(float(3 * n) + 0.5, TOGGLE, 1, 0, 0)
    keys = []
    while queue.waiting:
        keys.append(queue.pop())
    assert keys == sorted(keys)
    assert len(keys) == 40
