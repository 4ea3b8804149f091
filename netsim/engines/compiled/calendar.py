"""A calendar queue: pending events in buckets of time, of which only the current one is kept in order.

An event is put into the bucket of its *day*, `floor(time / width)`, in constant time. Days come round: bucket `day mod
n` also holds events of later rounds, which are left there. When a day begins, its events are taken out and sorted by
the full key; what is added to the day while it goes on is inserted in order. So the order is that of the key alone,
for any width and any delays, zero included; the width decides only the speed.

A bucket is a list of small chunks of events, so that one look at memory brings several. What the events of the next
day will touch is asked for ahead of time.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from algorithms.compilation import inner_kernel, kernel
from netsim.messages import CHECKPOINT, EXPIRY, TICK, TOGGLE, WISH, goes_back
from netsim.prefetch import prefetch

__all__ = [
    "BATCH",
    "CALENDAR",
    "CHUNK",
    "EVENT",
    "NONE",
    "PER_CHUNK",
    "Queue",
    "gather",
    "move_slots",
    "part_of",
    "peek",
    "push",
    "rebuild",
]

# A pending event: a message on its way over an edge, or a node's tick, toggle or checkpoint.
EVENT = np.dtype(
    [
        ("time", "f8"),
        ("place", "i4"),  # edge of a message, else the node
        ("batch", "i4"),  # row of what the message carries, else what event it is, such as TICK_EVENT
        ("number", "i4"),  # of a tick, checkpoint, wish, or the session that begins; a message's receiver, WAITED + it
        ("slot", "i4"),  # a message's slot: its item's on the edge, or the first; the attempt that expires
    ],
    align=True,
)
# A message that waited at its receiver, and is processed at the time of this event.
WAITED = 1 << 30
TICK_EVENT, TOGGLE_EVENT, CHECKPOINT_EVENT, WISH_EVENT, EXPIRY_EVENT = -1, -2, -3, -4, -5
NONE = -1

# Chunk c holds stored[PER_CHUNK * c : PER_CHUNK * c + count].
PER_CHUNK = 6
CHUNK = np.dtype([("next", "i4"), ("count", "i4")], align=True)

# What messages carry; all messages of one broadcast share one row, unless ratings are attached: sizes differ then.
BATCH = np.dtype(
    [
        ("stamp", "i8"),
        ("emitted", "f8"),  # seconds
        ("size", "i8"),  # bytes of each message
        ("answers", "i8"),  # first row of the items named or answered
        ("kind", "i4"),
        ("profile", "i4"),
        ("count", "i4"),
        ("attempt", "i4"),
        ("n_answers", "i4"),
        ("references", "i4"),  # messages still on their way; next free row once it is 0
    ],
    align=True,
)

CALENDAR = np.dtype(
    [
        ("day", "i8"),  # the current one
        ("position", "i8"),  # order[position : filled] is still to come
        ("filled", "i8"),
        ("used", "i8"),  # rows of `current` in use
        ("per_second", "f8"),  # days per second
        ("pending", "i8"),  # events in the queue
        ("free_chunk", "i8"),  # first of the list of free chunks
        ("unused_chunks", "i8"),  # free chunks, in all
        ("free_batch", "i8"),
        ("unused_batches", "i8"),
        ("opened", "i8"),  # days begun, and
        ("taken", "i8"),  # events taken out of them, since the width was chosen
    ],
    align=True,
)


class Queue(NamedTuple):
    """The arrays of a calendar queue.

    Attributes
    ----------
    calendar : CALENDAR, shape (1,)
    heads : int32, shape (buckets,), a power of 2
        First chunk of each bucket, or NONE.
    chunks : CHUNK, shape (n,)
    stored : EVENT, shape (PER_CHUNK * n,)
        Events in the buckets.
    current : EVENT
        Events of the current day, in no order; it has room for every pending event.
    order, spare : int32, same shape
        Rows of `current` in order; scratch.
    batches : BATCH
    payloads : float64, shape (batches, rank)
    """

    calendar: np.ndarray
    heads: np.ndarray
    chunks: np.ndarray
    stored: np.ndarray
    current: np.ndarray
    order: np.ndarray
    spare: np.ndarray
    batches: np.ndarray
    payloads: np.ndarray


@kernel
def part_of(time, per_second):
    """Number of the day, or window, of a time; what lies too far ahead for an integer is in the last one."""
    return np.int64(min(time * per_second, 4e18))


@kernel
def before(queue, edges, a, b):
    """Whether event `a` comes before event `b`: by time, kind, sender and receiver (or node), stamp, profile."""
    x, y = queue.current[a], queue.current[b]
    if x.time != y.time:
        return x.time < y.time
    return _before_at_one_time(queue, edges, a, b)


@partial(inner_kernel, inline=False)
def _before_at_one_time(queue, edges, a, b):
    x, y = queue.current[a], queue.current[b]
    kind_x, kind_y = _kind(queue, x.batch), _kind(queue, y.batch)
    if kind_x != kind_y:
        return kind_x < kind_y
    if kind_x <= EXPIRY:
        if x.place != y.place:
            return x.place < y.place
        return x.number < y.number or (x.number == y.number and x.slot < y.slot)
    edge_x, edge_y = edges[x.place], edges[y.place]
    if goes_back(kind_x):
        sender_x, receiver_x, sender_y, receiver_y = edge_x.receiver, edge_x.sender, edge_y.receiver, edge_y.sender
    else:
        sender_x, receiver_x, sender_y, receiver_y = edge_x.sender, edge_x.receiver, edge_y.sender, edge_y.receiver
    if sender_x != sender_y:
        return sender_x < sender_y
    if receiver_x != receiver_y:
        return receiver_x < receiver_y
    batch_x, batch_y = queue.batches[x.batch], queue.batches[y.batch]
    if batch_x.stamp != batch_y.stamp:
        return batch_x.stamp < batch_y.stamp
    if batch_x.profile != batch_y.profile:
        return batch_x.profile < batch_y.profile
    return batch_x.count < batch_y.count  # the second copy of what is asked comes after the first


@inner_kernel
def _kind(queue, batch):
    if batch == TOGGLE_EVENT:
        return TOGGLE
    if batch == TICK_EVENT:
        return TICK
    if batch == CHECKPOINT_EVENT:
        return CHECKPOINT
    if batch == WISH_EVENT:
        return WISH
    if batch == EXPIRY_EVENT:
        return EXPIRY
    return np.int64(queue.batches[batch].kind)


@kernel
def push(queue, edges, time, place, batch, number, slot):
    """Add an event; there must be a free chunk."""
    c = queue.calendar[0]
    c.pending += 1
    day = part_of(time, c.per_second)
    if day <= c.day:
        _insert(queue, edges, time, place, batch, number, slot)
    else:
        bucket = day & (queue.heads.shape[0] - 1)
        chunk = queue.heads[bucket]
        if chunk == NONE or queue.chunks[chunk].count == PER_CHUNK:
            fresh = c.free_chunk
            c.free_chunk = queue.chunks[fresh].next
            c.unused_chunks -= 1
            queue.chunks[fresh].next = chunk
            queue.chunks[fresh].count = 0
            queue.heads[bucket] = fresh
            chunk = fresh
        event = queue.stored[PER_CHUNK * chunk + queue.chunks[chunk].count]
        queue.chunks[chunk].count += 1
        event.time = time
        event.place = place
        event.batch = batch
        event.number = number
        event.slot = slot


@partial(inner_kernel, inline=False)
def _insert(queue, edges, time, place, batch, number, slot):
    """Insert an event into the current day, in order; `current` and `order` have room for every pending event."""
    c = queue.calendar[0]
    if c.position == c.filled:
        c.position, c.filled, c.used = 0, 0, 0
    elif c.used == queue.current.shape[0]:
        _compact(queue)
    row = c.used
    c.used += 1
    event = queue.current[row]
    event.time = time
    event.place = place
    event.batch = batch
    event.number = number
    event.slot = slot
    low, high = c.position, c.filled
    while low < high:
        middle = (low + high) // 2
        if before(queue, edges, row, queue.order[middle]):
            high = middle
        else:
            low = middle + 1
    # The shorter side moves; what is done already leaves room on the left.
    full = c.filled == queue.order.shape[0]
    if c.position > 0 and (full or low - c.position < c.filled - low):
        for n in range(c.position, low):
            queue.order[n - 1] = queue.order[n]
        c.position -= 1
        queue.order[low - 1] = row
    else:
        for n in range(c.filled, low, -1):
            queue.order[n] = queue.order[n - 1]
        c.filled += 1
        queue.order[low] = row


@partial(inner_kernel, inline=False)
def _compact(queue):
    """Drop the rows of `current` that are done: those still to come move to the front, in order."""
    c = queue.calendar[0]
    remaining = c.filled - c.position
    for n in range(remaining):
        queue.order[n] = queue.order[c.position + n]
    # Rows still to come are marked by a place among them; each is swapped to where its order says.
    for n in range(remaining):
        row = queue.order[n]
        while row < n:  # it was swapped away from there before
            row = queue.order[row]
        _swap(queue, n, row)
        queue.order[n] = row
    for n in range(remaining):
        queue.order[n] = n
    c.position, c.filled, c.used = 0, remaining, remaining


@inner_kernel
def _swap(queue, a, b):
    x, y = queue.current[a], queue.current[b]
    x.time, y.time = y.time, x.time
    x.place, y.place = y.place, x.place
    x.batch, y.batch = y.batch, x.batch
    x.number, y.number = y.number, x.number
    x.slot, y.slot = y.slot, x.slot


@kernel
def peek(queue, state, last_day):
    """Row in `current` of the next event, or NONE where there is none up to `last_day`; begins new days as needed."""
    c = queue.calendar[0]
    mask = queue.heads.shape[0] - 1
    empty = 0
    while c.position == c.filled:
        if c.pending == 0 or c.day >= last_day:
            return NONE
        if empty > mask:  # a whole round without an event: go to the day of the next one
            c.day = min(_first_day(queue) - 1, last_day - 1)
            empty = 0
        c.day += 1
        c.opened += 1
        empty += 1
        after = queue.heads[(c.day + 2) & mask]
        if after != NONE:
            prefetch(queue.stored, PER_CHUNK * after)
            prefetch(queue.stored, PER_CHUNK * after + PER_CHUNK - 1)
        tomorrow = queue.heads[(c.day + 1) & mask]
        if tomorrow != NONE:
            for n in range(queue.chunks[tomorrow].count):
                event = queue.stored[PER_CHUNK * tomorrow + n]
                if event.batch >= 0:
                    prefetch(state.slots, event.slot)
                    prefetch(queue.batches, event.batch)
                    prefetch(queue.payloads, event.batch)
                    receiver = event.number & (WAITED - 1)
                    prefetch(state.nodes, receiver)
                    prefetch(state.profiles, receiver)
                    prefetch(state.values, receiver)
                    if state.queues.shape[0] > 0:
                        prefetch(state.queues, receiver)
                        prefetch(state.edges, event.place)
                    if state.heard.shape[0] > 0:
                        prefetch(state.reverse, event.place)
        bucket = c.day & mask
        if queue.heads[bucket] != NONE:
            _open(queue, state.edges, bucket)
            if state.heard.shape[0] > 0:
                for n in range(c.filled):
                    if queue.current[n].batch >= 0:
                        prefetch(state.heard, max(0, state.reverse[queue.current[n].place]))
    return queue.order[c.position]


@partial(inner_kernel, inline=False)
def _first_day(queue):
    """Day of the earliest event in the buckets."""
    c = queue.calendar[0]
    first = np.int64(1) << 62
    for bucket in range(queue.heads.shape[0]):
        chunk = queue.heads[bucket]
        while chunk != NONE:
            for n in range(queue.chunks[chunk].count):
                first = min(first, part_of(queue.stored[PER_CHUNK * chunk + n].time, c.per_second))
            chunk = queue.chunks[chunk].next
    return first


@kernel
def _open(queue, edges, bucket):
    """Take the events of the current day out of their bucket, and sort them."""
    c = queue.calendar[0]
    chunk = queue.heads[bucket]
    queue.heads[bucket] = NONE
    filled = 0
    while chunk != NONE:
        following = queue.chunks[chunk].next
        kept = 0
        first = PER_CHUNK * chunk
        for n in range(queue.chunks[chunk].count):
            if part_of(queue.stored[first + n].time, c.per_second) == c.day:
                queue.current[filled] = queue.stored[first + n]
                queue.order[filled] = filled
                filled += 1
            else:
                queue.stored[first + kept] = queue.stored[first + n]
                kept += 1
        if kept > 0:
            queue.chunks[chunk].count = kept
            queue.chunks[chunk].next = queue.heads[bucket]
            queue.heads[bucket] = chunk
        else:
            queue.chunks[chunk].next = c.free_chunk
            c.free_chunk = chunk
            c.unused_chunks += 1
        chunk = following
    c.position, c.filled, c.used = 0, filled, filled
    c.taken += filled
    if filled <= 16:
        for m in range(1, filled):
            row = queue.order[m]
            k = m
            while k > 0 and before(queue, edges, row, queue.order[k - 1]):
                queue.order[k] = queue.order[k - 1]
                k -= 1
            queue.order[k] = row
    else:
        _merge_sort(queue, edges, filled)


@partial(inner_kernel, inline=False)
def _merge_sort(queue, edges, n):
    """Sort order[:n] by the key of the rows of `current`: insertion in runs of 16, then merging."""
    run = 16
    for first in range(0, n, run):
        for m in range(first + 1, min(first + run, n)):
            row = queue.order[m]
            k = m
            while k > first and before(queue, edges, row, queue.order[k - 1]):
                queue.order[k] = queue.order[k - 1]
                k -= 1
            queue.order[k] = row
    while run < n:
        for first in range(0, n, 2 * run):
            middle, last = min(first + run, n), min(first + 2 * run, n)
            a, b, k = first, middle, first
            while a < middle and b < last:
                if before(queue, edges, queue.order[b], queue.order[a]):
                    queue.spare[k] = queue.order[b]
                    b += 1
                else:
                    queue.spare[k] = queue.order[a]
                    a += 1
                k += 1
            while a < middle:
                queue.spare[k] = queue.order[a]
                a += 1
                k += 1
            while b < last:
                queue.spare[k] = queue.order[b]
                b += 1
                k += 1
        for k in range(n):
            queue.order[k] = queue.spare[k]
        run *= 2


@partial(kernel, inline=False)
def gather(queue, gathered):
    """Write all pending events to `gathered`, in no order, and empty the calendar; returns how many."""
    c = queue.calendar[0]
    n = 0
    for k in range(c.position, c.filled):
        gathered[n] = queue.current[queue.order[k]]
        n += 1
    for bucket in range(queue.heads.shape[0]):
        chunk = queue.heads[bucket]
        while chunk != NONE:
            for k in range(queue.chunks[chunk].count):
                gathered[n] = queue.stored[PER_CHUNK * chunk + k]
                n += 1
            following = queue.chunks[chunk].next
            queue.chunks[chunk].next = c.free_chunk
            c.free_chunk = chunk
            c.unused_chunks += 1
            chunk = following
        queue.heads[bucket] = NONE
    c.position, c.filled, c.used, c.pending = 0, 0, 0, 0
    return n


@partial(kernel, inline=False)
def rebuild(queue, edges, gathered, n, per_second, now):
    """Choose another width, and put the first `n` gathered events into buckets of it."""
    c = queue.calendar[0]
    c.per_second = per_second
    c.day = part_of(now, per_second) - 1
    c.opened, c.taken = 0, 0
    for k in range(n):
        event = gathered[k]
        push(queue, edges, event.time, event.place, event.batch, event.number, event.slot)


@partial(kernel, inline=False)
def move_slots(queue, shift):
    """Let the messages that wait find their slots, which have moved by `shift`, int64, shape (edges,)."""
    c = queue.calendar[0]
    for k in range(c.position, c.filled):
        event = queue.current[queue.order[k]]
        if event.batch >= 0:
            event.slot += shift[event.place]
    for bucket in range(queue.heads.shape[0]):
        chunk = queue.heads[bucket]
        while chunk != NONE:
            for k in range(queue.chunks[chunk].count):
                event = queue.stored[PER_CHUNK * chunk + k]
                if event.batch >= 0:
                    event.slot += shift[event.place]
            chunk = queue.chunks[chunk].next
