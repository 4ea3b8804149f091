"""A calendar queue: pending events in buckets of time, of which only the current one is kept in order.

An event is put into the bucket of its *day*, `floor(time / width)`, in constant time. Days come round: bucket `day mod
n` also holds events of later rounds, which are left there. When a day begins, its events are taken out and sorted by
the full key; what is added to the day while it goes on is inserted in order. So the order is that of the key alone,
for any width and any delays, zero included; the width decides only the speed.
"""

from functools import partial

import numpy as np

from algorithms.compilation import kernel
from netsim.engines.compiled.prefetch import prefetch
from netsim.messages import REQUEST, TICK, TOGGLE

__all__ = ["before", "insert", "peek", "push", "rebuild"]

# A pending event: a message on its way over an edge, or a node's tick or toggle.
EVENT = np.dtype(
    [
        ("time", "f8"),
        ("place", "i4"),  # edge of a message, else the node
        ("batch", "i4"),  # row of what the message carries, else TICK_EVENT or TOGGLE_EVENT
        ("next", "i4"),  # in the bucket, or in the list of free rows
        ("number", "i4"),  # of a tick; of a session, times 2, plus whether it is online; a message's receiver
        ("slot", "i4"),  # a message's slot: its item's on the edge, or the first
    ],
    align=True,
)
TICK_EVENT, TOGGLE_EVENT = -1, -2
NONE = -1

# What messages carry; all messages of one broadcast share one row.
BATCH = np.dtype(
    [
        ("stamp", "i8"),
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
        ("position", "i8"),  # current[position : filled] is still to come, in order
        ("filled", "i8"),
        ("per_second", "f8"),  # days per second
        ("pending", "i8"),  # events in the queue
        ("free_event", "i8"),  # first row of the list of free events
        ("free_batch", "i8"),
        ("unused_events", "i8"),  # free rows, in all
        ("unused_batches", "i8"),
        ("opened", "i8"),  # days begun, and
        ("taken", "i8"),  # events taken out of them, since the width was chosen
    ],
    align=True,
)


@kernel
def before(events, batches, edges, a, b):
    """Whether event `a` comes before event `b`: by time, kind, sender and receiver (or node), stamp, profile."""
    x, y = events[a], events[b]
    if x.time != y.time:
        return x.time < y.time
    kind_x = _kind(batches, x.batch)
    kind_y = _kind(batches, y.batch)
    if kind_x != kind_y:
        return kind_x < kind_y
    if kind_x <= TICK:
        return x.place < y.place
    edge_x, edge_y = edges[x.place], edges[y.place]
    if kind_x == REQUEST:  # travels backwards
        sender_x, receiver_x, sender_y, receiver_y = edge_x.receiver, edge_x.sender, edge_y.receiver, edge_y.sender
    else:
        sender_x, receiver_x, sender_y, receiver_y = edge_x.sender, edge_x.receiver, edge_y.sender, edge_y.receiver
    if sender_x != sender_y:
        return sender_x < sender_y
    if receiver_x != receiver_y:
        return receiver_x < receiver_y
    batch_x, batch_y = batches[x.batch], batches[y.batch]
    if batch_x.stamp != batch_y.stamp:
        return batch_x.stamp < batch_y.stamp
    return batch_x.profile < batch_y.profile


@kernel
def _kind(batches, batch):
    if batch == TOGGLE_EVENT:
        return TOGGLE
    if batch == TICK_EVENT:
        return TICK
    return np.int64(batches[batch].kind)


@kernel
def push(calendar, heads, current, events, batches, edges, event):
    """Add an event whose row is filled in."""
    c = calendar[0]
    c.pending += 1
    day = np.int64(events[event].time * c.per_second)
    if day <= c.day:
        insert(calendar, current, events, batches, edges, event)
    else:
        bucket = day & (heads.shape[0] - 1)
        events[event].next = heads[bucket]
        heads[bucket] = event


@kernel
def insert(calendar, current, events, batches, edges, event):
    """Insert an event into the current day, in order; `current` has room for every event there can be."""
    c = calendar[0]
    if c.position == c.filled:
        c.position, c.filled = 0, 0
    low, high = c.position, c.filled
    while low < high:
        middle = (low + high) // 2
        if before(events, batches, edges, event, current[middle]):
            high = middle
        else:
            low = middle + 1
    # The shorter side moves; what is done already leaves room on the left.
    full = c.filled == current.shape[0]
    if c.position > 0 and (full or low - c.position < c.filled - low):
        for n in range(c.position, low):
            current[n - 1] = current[n]
        c.position -= 1
        current[low - 1] = event
    else:
        for n in range(c.filled, low, -1):
            current[n] = current[n - 1]
        c.filled += 1
        current[low] = event


@kernel
def peek(calendar, heads, current, spare, events, batches, payloads, edges, slots, last_day):
    """The next event, or NONE where there is none up to `last_day`; begins new days as needed."""
    c = calendar[0]
    while c.position == c.filled:
        if c.pending == 0 or c.day >= last_day:
            return NONE
        c.day += 1
        c.opened += 1
        bucket = c.day & (heads.shape[0] - 1)
        event = heads[bucket]
        if event == NONE:
            continue
        kept = NONE
        filled = 0
        while event != NONE:
            following = events[event].next
            if np.int64(events[event].time * c.per_second) == c.day:
                current[filled] = event
                filled += 1
                if events[event].batch >= 0:
                    prefetch(slots, events[event].slot)
                    prefetch(payloads, events[event].batch)
            else:
                events[event].next = kept
                kept = event
            event = following
        heads[bucket] = kept
        c.position, c.filled = 0, filled
        c.taken += filled
        _sort(current, spare, events, batches, edges, filled)
    return current[c.position]


@partial(kernel, inline=False)
def _sort(current, spare, events, batches, edges, n):
    """Sort current[:n] by the key: insertion in runs of 16, then merging."""
    run = 16
    for first in range(0, n, run):
        for m in range(first + 1, min(first + run, n)):
            event = current[m]
            k = m
            while k > first and before(events, batches, edges, event, current[k - 1]):
                current[k] = current[k - 1]
                k -= 1
            current[k] = event
    while run < n:
        for first in range(0, n, 2 * run):
            middle, last = min(first + run, n), min(first + 2 * run, n)
            a, b, k = first, middle, first
            while a < middle and b < last:
                if before(events, batches, edges, current[b], current[a]):
                    spare[k] = current[b]
                    b += 1
                else:
                    spare[k] = current[a]
                    a += 1
                k += 1
            while a < middle:
                spare[k] = current[a]
                a += 1
                k += 1
            while b < last:
                spare[k] = current[b]
                b += 1
                k += 1
        for k in range(n):
            current[k] = spare[k]
        run *= 2


@kernel
def rebuild(calendar, heads, current, spare, events, batches, edges, per_second, now):
    """Choose another width: put all pending events, which `gather` wrote to current[:pending], into new buckets."""
    c = calendar[0]
    n = c.pending
    for k in range(n):
        spare[k] = current[k]
    c.per_second = per_second
    c.day = np.int64(now * per_second) - 1
    c.position, c.filled, c.pending, c.opened, c.taken = 0, 0, 0, 0, 0
    for k in range(n):
        push(calendar, heads, current, events, batches, edges, spare[k])


@kernel
def gather(calendar, heads, current, events):
    """Write all pending events to current[:pending], in no order, and empty the buckets."""
    c = calendar[0]
    n = 0
    for k in range(c.position, c.filled):
        current[n] = current[k]
        n += 1
    for bucket in range(heads.shape[0]):
        event = heads[bucket]
        while event != NONE:
            current[n] = event
            n += 1
            event = events[event].next
        heads[bucket] = NONE
    return n
