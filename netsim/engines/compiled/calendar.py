"""A calendar queue: pending events in buckets of time, of which only the current one is kept in order.

An event is put into the bucket of its *day*, `floor(time / width)`, in constant time. Days come round: bucket `day mod
n` also holds events of later rounds, which are left there. When a day begins, its events are taken out and sorted by
the full key; what is added to the day while it goes on is inserted in order. So the order is that of the key alone,
for any width and any delays, zero included; the width decides only the speed.

A bucket is a list of small chunks of events, so that one look at memory brings several. What the events of the next
day will touch is asked for ahead of time.
"""

from functools import partial

import numpy as np

from algorithms.compilation import kernel
from netsim.engines.compiled.prefetch import prefetch
from netsim.messages import REQUEST, TICK, TOGGLE

__all__ = ["BATCH", "CALENDAR", "CHUNK", "EVENT", "NONE", "PER_CHUNK", "gather", "part_of", "peek", "push", "rebuild"]

# A pending event: a message on its way over an edge, or a node's tick or toggle.
EVENT = np.dtype(
    [
        ("time", "f8"),
        ("place", "i4"),  # edge of a message, else the node
        ("batch", "i4"),  # row of what the message carries, else TICK_EVENT or TOGGLE_EVENT
        ("number", "i4"),  # of a tick; of a session, times 2, plus whether it is online; a message's receiver
        ("slot", "i4"),  # a message's slot: its item's on the edge, or the first
    ],
    align=True,
)
TICK_EVENT, TOGGLE_EVENT = -1, -2
NONE = -1

# Chunk c holds stored[PER_CHUNK * c : PER_CHUNK * c + count].
PER_CHUNK = 6
CHUNK = np.dtype([("next", "i4"), ("count", "i4")], align=True)

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


@kernel
def part_of(time, per_second):
    """Number of the day, or window, of a time; what lies too far ahead for an integer is in the last one."""
    return np.int64(min(time * per_second, 4e18))


@kernel
def before(current, batches, edges, a, b):
    """Whether event `a` comes before event `b`: by time, kind, sender and receiver (or node), stamp, profile."""
    x, y = current[a], current[b]
    if x.time != y.time:
        return x.time < y.time
    return _before_at_one_time(current, batches, edges, a, b)


@partial(kernel, inline=False)
def _before_at_one_time(current, batches, edges, a, b):
    x, y = current[a], current[b]
    kind_x, kind_y = _kind(batches, x.batch), _kind(batches, y.batch)
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
def push(calendar, heads, chunks, stored, current, order, batches, edges, time, place, batch, number, slot):
    """Add an event; there must be a free chunk."""
    c = calendar[0]
    c.pending += 1
    day = part_of(time, c.per_second)
    if day <= c.day:
        _insert(calendar, current, order, batches, edges, time, place, batch, number, slot)
    else:
        bucket = day & (heads.shape[0] - 1)
        chunk = heads[bucket]
        if chunk == NONE or chunks[chunk].count == PER_CHUNK:
            fresh = c.free_chunk
            c.free_chunk = chunks[fresh].next
            c.unused_chunks -= 1
            chunks[fresh].next = chunk
            chunks[fresh].count = 0
            heads[bucket] = fresh
            chunk = fresh
        event = stored[PER_CHUNK * chunk + chunks[chunk].count]
        chunks[chunk].count += 1
        event.time = time
        event.place = place
        event.batch = batch
        event.number = number
        event.slot = slot


@kernel
def _insert(calendar, current, order, batches, edges, time, place, batch, number, slot):
    """Insert an event into the current day, in order; `current` and `order` have room for every pending event."""
    c = calendar[0]
    if c.position == c.filled:
        c.position, c.filled, c.used = 0, 0, 0
    elif c.used == current.shape[0]:
        _compact(calendar, current, order)
    row = c.used
    c.used += 1
    event = current[row]
    event.time = time
    event.place = place
    event.batch = batch
    event.number = number
    event.slot = slot
    low, high = c.position, c.filled
    while low < high:
        middle = (low + high) // 2
        if before(current, batches, edges, row, order[middle]):
            high = middle
        else:
            low = middle + 1
    # The shorter side moves; what is done already leaves room on the left.
    full = c.filled == order.shape[0]
    if c.position > 0 and (full or low - c.position < c.filled - low):
        for n in range(c.position, low):
            order[n - 1] = order[n]
        c.position -= 1
        order[low - 1] = row
    else:
        for n in range(c.filled, low, -1):
            order[n] = order[n - 1]
        c.filled += 1
        order[low] = row


@partial(kernel, inline=False)
def _compact(calendar, current, order):
    """Drop the rows of `current` that are done: those still to come move to the front, in order."""
    c = calendar[0]
    remaining = c.filled - c.position
    for n in range(remaining):
        order[n] = order[c.position + n]
    # Rows still to come are marked by a place among them; each is swapped to where its order says.
    for n in range(remaining):
        row = order[n]
        while row < n:  # it was swapped away from there before
            row = order[row]
        _swap(current, n, row)
        order[n] = row
    for n in range(remaining):
        order[n] = n
    c.position, c.filled, c.used = 0, remaining, remaining


@kernel
def _swap(current, a, b):
    x, y = current[a], current[b]
    x.time, y.time = y.time, x.time
    x.place, y.place = y.place, x.place
    x.batch, y.batch = y.batch, x.batch
    x.number, y.number = y.number, x.number
    x.slot, y.slot = y.slot, x.slot


@kernel
def peek(
    calendar,
    heads,
    chunks,
    stored,
    current,
    order,
    spare,
    batches,
    edges,
    payloads,
    slots,
    nodes,
    profiles,
    values,
    last_day,
):
    """Row in `current` of the next event, or NONE where there is none up to `last_day`; begins new days as needed."""
    c = calendar[0]
    mask = heads.shape[0] - 1
    empty = 0
    while c.position == c.filled:
        if c.pending == 0 or c.day >= last_day:
            return NONE
        if empty > mask:  # a whole round without an event: go to the day of the next one
            c.day = min(_first_day(calendar, heads, chunks, stored) - 1, last_day - 1)
            empty = 0
        c.day += 1
        c.opened += 1
        empty += 1
        after = heads[(c.day + 2) & mask]
        if after != NONE:
            prefetch(stored, PER_CHUNK * after)
            prefetch(stored, PER_CHUNK * after + PER_CHUNK - 1)
        tomorrow = heads[(c.day + 1) & mask]
        if tomorrow != NONE:
            for n in range(chunks[tomorrow].count):
                event = stored[PER_CHUNK * tomorrow + n]
                if event.batch >= 0:
                    prefetch(slots, event.slot)
                    prefetch(batches, event.batch)
                    prefetch(payloads, event.batch)
                    prefetch(nodes, event.number)
                    prefetch(profiles, event.number)
                    prefetch(values, event.number)
        bucket = c.day & mask
        if heads[bucket] != NONE:
            _open(calendar, heads, chunks, stored, current, order, spare, batches, edges, bucket)
    return order[c.position]


@partial(kernel, inline=False)
def _first_day(calendar, heads, chunks, stored):
    """Day of the earliest event in the buckets."""
    c = calendar[0]
    first = np.int64(1) << 62
    for bucket in range(heads.shape[0]):
        chunk = heads[bucket]
        while chunk != NONE:
            for n in range(chunks[chunk].count):
                first = min(first, part_of(stored[PER_CHUNK * chunk + n].time, c.per_second))
            chunk = chunks[chunk].next
    return first


@kernel
def _open(calendar, heads, chunks, stored, current, order, spare, batches, edges, bucket):
    """Take the events of the current day out of their bucket, and sort them."""
    c = calendar[0]
    chunk = heads[bucket]
    heads[bucket] = NONE
    filled = 0
    while chunk != NONE:
        following = chunks[chunk].next
        kept = 0
        first = PER_CHUNK * chunk
        for n in range(chunks[chunk].count):
            if part_of(stored[first + n].time, c.per_second) == c.day:
                current[filled] = stored[first + n]
                order[filled] = filled
                filled += 1
            else:
                stored[first + kept] = stored[first + n]
                kept += 1
        if kept > 0:
            chunks[chunk].count = kept
            chunks[chunk].next = heads[bucket]
            heads[bucket] = chunk
        else:
            chunks[chunk].next = c.free_chunk
            c.free_chunk = chunk
            c.unused_chunks += 1
        chunk = following
    c.position, c.filled, c.used = 0, filled, filled
    c.taken += filled
    if filled <= 16:
        for m in range(1, filled):
            row = order[m]
            k = m
            while k > 0 and before(current, batches, edges, row, order[k - 1]):
                order[k] = order[k - 1]
                k -= 1
            order[k] = row
    else:
        _merge_sort(current, order, spare, batches, edges, filled)


@partial(kernel, inline=False)
def _merge_sort(current, order, spare, batches, edges, n):
    """Sort order[:n] by the key of the rows of `current`: insertion in runs of 16, then merging."""
    run = 16
    for first in range(0, n, run):
        for m in range(first + 1, min(first + run, n)):
            row = order[m]
            k = m
            while k > first and before(current, batches, edges, row, order[k - 1]):
                order[k] = order[k - 1]
                k -= 1
            order[k] = row
    while run < n:
        for first in range(0, n, 2 * run):
            middle, last = min(first + run, n), min(first + 2 * run, n)
            a, b, k = first, middle, first
            while a < middle and b < last:
                if before(current, batches, edges, order[b], order[a]):
                    spare[k] = order[b]
                    b += 1
                else:
                    spare[k] = order[a]
                    a += 1
                k += 1
            while a < middle:
                spare[k] = order[a]
                a += 1
                k += 1
            while b < last:
                spare[k] = order[b]
                b += 1
                k += 1
        for k in range(n):
            order[k] = spare[k]
        run *= 2


@partial(kernel, inline=False)
def gather(calendar, heads, chunks, stored, current, order, gathered):
    """Write all pending events to `gathered`, in no order, and empty the calendar; returns how many."""
    c = calendar[0]
    n = 0
    for k in range(c.position, c.filled):
        gathered[n] = current[order[k]]
        n += 1
    for bucket in range(heads.shape[0]):
        chunk = heads[bucket]
        while chunk != NONE:
            for k in range(chunks[chunk].count):
                gathered[n] = stored[PER_CHUNK * chunk + k]
                n += 1
            following = chunks[chunk].next
            chunks[chunk].next = c.free_chunk
            c.free_chunk = chunk
            c.unused_chunks += 1
            chunk = following
        heads[bucket] = NONE
    c.position, c.filled, c.used, c.pending = 0, 0, 0, 0
    return n


@partial(kernel, inline=False)
def rebuild(calendar, heads, chunks, stored, current, order, batches, edges, gathered, n, per_second, now):
    """Choose another width, and put the first `n` gathered events into buckets of it."""
    c = calendar[0]
    c.per_second = per_second
    c.day = part_of(now, per_second) - 1
    c.opened, c.taken = 0, 0
    for k in range(n):
        event = gathered[k]
        push(
            calendar,
            heads,
            chunks,
            stored,
            current,
            order,
            batches,
            edges,
            event.time,
            event.place,
            event.batch,
            event.number,
            event.slot,
        )
