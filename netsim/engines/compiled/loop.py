"""The loop that takes one event after another and lets the node behave.

A *lane* is a share of the nodes with a calendar of its own. One lane with all nodes is the whole engine on one thread;
several lanes run side by side, each on its thread, and exchange messages between windows of time (`team`). What a node
does is `netsim.behaviour`; here is only where messages wait.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from algorithms.compilation import inner_kernel, kernel
from netsim.behaviour import (
    admit,
    broadcast,
    router_takes_handover,
    router_takes_profile,
    router_takes_reply,
    user_takes_profile,
    user_takes_request,
)
from netsim.book import Book
from netsim.engines.compiled.calendar import (
    CHECKPOINT_EVENT,
    EXPIRY_EVENT,
    NONE,
    PER_CHUNK,
    TICK_EVENT,
    TOGGLE_EVENT,
    WAITED,
    WISH_EVENT,
    part_of,
    peek,
    push,
)
from netsim.entering import arrive
from netsim.finding import look_up, next_unknown, router_takes_lookup, tidy, user_takes_found
from netsim.messages import (
    ANSWER,
    CONTROL,
    FOUND,
    HANDOVER,
    IN_FLIGHT,
    LOOKUP,
    PROFILE,
    QUERY,
    REPLY,
    REQUEST,
    message_size,
)
from netsim.prefetch import prefetch
from netsim.queueing import processes
from netsim.serving import ask, begin_wish, expire, next_wish, router_takes_query, user_takes_answer
from netsim.sessions import checkpoint, checkpoint_time, has_sessions, session_end, toggle
from netsim.state import OPEN, REFUSED, TIMED_OUT, UNBORN
from netsim.timers import first_tick, next_tick

__all__ = [
    "BOX_MESSAGE",
    "LANE",
    "Boxes",
    "Memory",
    "advance",
    "count_in_flight",
    "inject",
    "inject_query",
    "receive_box",
    "start",
]

# Why `advance` returned.
DONE, GROW, BUDGET, TOO_EARLY, BY_HAND = range(5)

# How many windows ahead a lane looks for its next event, so that quiet times are skipped.
LOOK_AHEAD = 256

LANE = np.dtype(
    [
        ("number", "i8"),
        ("answers_top", "i8"),  # rows of `answers` below it were in use at some time
        ("need_events", "i8"),  # with GROW: how many free rows there must be
        ("need_batches", "i8"),
        ("need_answers", "i8"),
        ("log_top", "i8"),  # rows of `log` in use
        ("done", "i8"),  # events taken so far
        ("now", "f8"),  # seconds; time of the last event before the loop paused
        ("located", "i8"),  # number of the arrival in the first row of `coming`
        ("arrived", "i8"),  # number of the next arrival
        # Of a lane in a team:
        ("window", "i8"),  # the one it is in
        ("next_window", "i8"),  # no event of this lane lies before it
        ("round", "i8"),  # windows done
        ("received", "i8"),  # round up to which it has emptied the boxes of the others
        ("meeting", "i8"),  # of the barrier
    ],
    align=True,
)
# A message on its way to another lane; its batch is a row of the same box.
BOX_MESSAGE = np.dtype(
    [("time", "f8"), ("place", "i4"), ("batch", "i4"), ("receiver", "i4"), ("slot", "i4")], align=True
)


class Memory(NamedTuple):
    """The arrays of a lane beside its queue.

    Attributes
    ----------
    lane : LANE, shape (1,)
    log : WISH_ROW
        How wishes ended, in the order in which they did.
    coming : ARRIVAL
        Ratings that come before the time to stop at; the next stands in row `arrived` - `located`.
    rooms, book
        As `netsim.entering.arrive` takes them.
    answers : ANSWER_ROW
        Items named and answered that messages carry, in blocks of 2**k rows.
    blocks : int64
        First free block of each size, or NONE; the next one stands in its first row's `offset`.
    named : ANSWER_ROW, shape (most items at a router,)
    words, sent, fates, sizes, arrivals : arrays, shape (twice the longest contact list,)
        Scratch, as `behaviour.broadcast` fills it.
    batch_of : int64, shape (lanes,)
        Scratch: what messages of one broadcast to each lane carry.
    lane_of : int32, shape (nodes,)
        Lane of each node.
    """

    lane: np.ndarray
    log: np.ndarray
    coming: np.ndarray
    rooms: np.ndarray
    book: Book
    answers: np.ndarray
    blocks: np.ndarray
    named: np.ndarray
    words: np.ndarray
    sent: np.ndarray
    fates: np.ndarray
    sizes: np.ndarray
    arrivals: np.ndarray
    batch_of: np.ndarray
    lane_of: np.ndarray


class Boxes(NamedTuple):
    """Messages that wait for other lanes; the first axis of each array is the receiving lane.

    A team holds them with two axes before it: parity of the round, and sending lane.

    Attributes
    ----------
    counts : int64, shape (lanes, 3)
        Messages, batches and answers that wait.
    messages : BOX_MESSAGE, shape (lanes, n)
    batches : BATCH, shape (lanes, m)
    payloads : float64, shape (lanes, m, rank)
    answers : ANSWER_ROW, shape (lanes, k)
    """

    counts: np.ndarray
    messages: np.ndarray
    batches: np.ndarray
    payloads: np.ndarray
    answers: np.ndarray


@partial(kernel, inline=False)
def advance(state, queue, memory, boxes, stop, window, windows_per_second, budget):
    """Take the events of a lane in order, before the time `stop` and up to the end of a window.

    Parameters
    ----------
    state : State
        Accounts and updates are the lane's own.
    queue : Queue
    memory : Memory
    boxes : Boxes
    stop : float64
        Seconds.
    window : int
        Number of the window, where there is more than one lane.
    windows_per_second : float64
        0 where there is one lane only.
    budget : int
        Return after this many events, so that a person can interrupt.

    Returns
    -------
    int
        DONE, GROW, BUDGET, TOO_EARLY where a message would arrive within the window it was sent in, or BY_HAND where
        the next arrival needs edges or lists to be made.
    """
    c, me = queue.calendar[0], memory.lane[0]
    windows = windows_per_second > 0.0
    last_stop, stop = stop, min(stop, _next_arrival(me, memory.coming))
    last_day = part_of(stop, c.per_second)
    if windows:
        last_day = min(last_day, part_of((window + LOOK_AHEAD) / windows_per_second, c.per_second) + 1)
    now = me.now
    for _ in range(budget):
        row = peek(queue, state, last_day)
        if (row == NONE or queue.current[row].time >= stop) and me.arrived - me.located < memory.coming.shape[0]:
            if not arrive(state, memory.rooms, memory.book, memory.coming[me.arrived - me.located]):
                return BY_HAND
            me.now = stop
            me.arrived += 1
            stop = min(last_stop, _next_arrival(me, memory.coming))
            last_day = part_of(stop, c.per_second)
            continue
        if row == NONE:
            if windows:
                me.next_window = window + LOOK_AHEAD - 1 if c.pending > 0 else np.int64(1) << 62
            return DONE
        event = queue.current[row]
        now = event.time
        if windows:
            own_window = part_of(now, windows_per_second)
            if own_window > window or now >= stop:
                me.next_window = own_window
                return DONE
        elif now >= stop:
            return DONE
        if not _has_room(state, queue, memory, boxes, event.place, event.batch, windows):
            return GROW

        c.position += 1
        c.pending -= 1
        me.done += 1
        place, batch, number, slot = event.place, event.batch, event.number, np.int64(event.slot)
        if batch == TICK_EVENT:
            status = _tick(state, queue, memory, boxes, place, number, now, window, windows_per_second)
        elif batch == TOGGLE_EVENT:
            _toggle(state, queue, place, number, now)
            status = DONE
        elif batch == CHECKPOINT_EVENT:
            _checkpoint(state, queue, place, number)
            status = DONE
        elif batch == WISH_EVENT:
            status = _wish(state, queue, memory, boxes, place, number, now, window, windows_per_second)
        elif batch == EXPIRY_EVENT:
            status = _expiry(state, queue, memory, boxes, place, number, slot, now, window, windows_per_second)
        elif number < WAITED and processes(state, number):
            _wait(state, queue, memory, place, batch, number, slot, now)
            status = DONE
        else:
            status = _arrival(
                state, queue, memory, boxes, place, batch, number & (WAITED - 1), slot, now, window, windows_per_second
            )
        me.now = now
        if status != DONE:
            return status
    return BUDGET


@inner_kernel
def _next_arrival(me, coming):
    """Time in seconds of the next rating to come, inf where none comes before the time to stop at."""
    n = me.arrived - me.located
    return coming[n].time if n < coming.shape[0] else math.inf


@partial(inner_kernel, inline=False)
def _toggle(state, queue, node, session, now):
    """Begin a session of a node, and plan the next."""
    if not state.life[node].departed:
        end = toggle(state, node, session, now)
        if end < math.inf:
            push(queue, state.edges, end, node, TOGGLE_EVENT, session + 1, 0)


@partial(inner_kernel, inline=False)
def _checkpoint(state, queue, node, number):
    """Let a node write a checkpoint, and plan the next."""
    if not state.life[node].departed:
        checkpoint(state, node)
        push(queue, state.edges, checkpoint_time(state, node, number + 1), node, CHECKPOINT_EVENT, number + 1, 0)


@partial(inner_kernel, inline=False)
def _wish(state, queue, memory, boxes, user, number, now, window, windows_per_second):
    """Let a user wish for an item, and plan his next wish."""
    if state.life[user].departed:
        return DONE
    me, status = memory.lane[0], np.int64(DONE)
    what = begin_wish(state, user, number, now, memory.log[me.log_top : me.log_top + 1])
    if what == OPEN:
        status = _query(state, queue, memory, boxes, user, number, 0, now, window, windows_per_second)
    elif what == REFUSED:
        me.log_top += 1
    push(queue, state.edges, next_wish(state, user, number + 1, now), user, WISH_EVENT, number + 1, 0)
    return status


@partial(inner_kernel, inline=False)
def _expiry(state, queue, memory, boxes, user, number, attempt, now, window, windows_per_second):
    """Let a user ask again, or give up."""
    me = memory.lane[0]
    what = expire(state, user, number, attempt, now, memory.log[me.log_top : me.log_top + 1])
    if what == OPEN:
        return _query(state, queue, memory, boxes, user, number, attempt + 1, now, window, windows_per_second)
    if what == TIMED_OUT:
        me.log_top += 1
    return np.int64(DONE)


@partial(inner_kernel, inline=False)
def _post_both(
    state, queue, memory, boxes, to, arrival, copy_arrival, edge, receiver, batch, window, windows_per_second
):
    """Put a message, and the second copy that the network may have made, onto their way."""
    me, status, slot = memory.lane[0], np.int64(DONE), state.edges[edge].slot
    for n in range(2):
        time = arrival if n == 0 else copy_arrival
        if time != math.inf:
            posted = _post(
                me, queue, boxes, state.edges, to, time, edge, receiver, slot, batch, window, windows_per_second
            )
            status = max(status, posted)
    return status


@partial(inner_kernel, inline=False)
def _query(state, queue, memory, boxes, user, number, attempt, now, window, windows_per_second):
    """Send a query, and plan the end of its time-out."""
    me, status = memory.lane[0], np.int64(DONE)
    edge, profile, stamp, size, fate, arrival, copy_arrival = ask(state, user, number, now)
    if fate == IN_FLIGHT:
        router = state.edges[edge].receiver
        to = memory.lane_of[router]
        batch = _new_batch(me, queue, boxes, to, QUERY, profile, stamp, now, size, 0, 0)
        status = _post_both(
            state, queue, memory, boxes, to, arrival, math.inf, edge, router, batch, window, windows_per_second
        )
        if copy_arrival != math.inf:
            copy = _new_batch(me, queue, boxes, to, QUERY, profile, stamp, now, size, 1, 0)
            posted = _post_both(
                state, queue, memory, boxes, to, copy_arrival, math.inf, edge, router, copy, window, windows_per_second
            )
            status = max(status, posted)
    push(queue, state.edges, now + state.settings[0].wish_timeout, user, EXPIRY_EVENT, number, attempt)
    return status


@partial(inner_kernel, inline=False)
def _answer(state, queue, memory, boxes, edge, batch, router, now, window, windows_per_second):
    """Let a router take a query, and send the profile that is asked for."""
    me, b, status = memory.lane[0], queue.batches[batch], np.int64(DONE)
    profile, stamp = np.int64(b.profile), b.stamp
    _, answers, size, fate, arrival, copy_arrival = router_takes_query(
        state, edge, router, profile, stamp, b.count, b.size, now
    )
    if answers and fate == IN_FLIGHT:
        user = state.edges[edge].sender
        to = memory.lane_of[user]
        answer = _new_batch(me, queue, boxes, to, ANSWER, profile, stamp, now, size, 0, 0)
        _fill_payload(me, queue, boxes, to, answer, state.values, profile)
        status = _post_both(
            state, queue, memory, boxes, to, arrival, copy_arrival, edge, user, answer, window, windows_per_second
        )
    return status


@partial(inner_kernel, inline=False)
def _served(state, queue, memory, edge, batch, user, now):
    """Let a user take the profile that he asked for."""
    me, b = memory.lane[0], queue.batches[batch]
    row = memory.log[me.log_top : me.log_top + 1]
    if user_takes_answer(state, edge, user, b.stamp, queue.payloads[batch], b.size, now, row) == CONTROL:
        me.log_top += 1


@partial(inner_kernel, inline=False)
def _tidy(state, node, tick, now):
    """Let a node drop contacts that it has not heard of."""
    s = state.settings[0]
    patience = s.user_patience if node < state.own_count.shape[0] else s.router_patience
    if patience < math.inf:
        tidy(state, node, tick, patience, now)


@partial(inner_kernel, inline=False)
def _look_up(state, queue, memory, boxes, user, tick, now, window, windows_per_second):
    """Let a user look for the routers of items that he does not know yet."""
    me, status = memory.lane[0], np.int64(DONE)
    for _ in range(state.settings[0].lookups):
        own = next_unknown(state, user, now)
        if own < 0:
            break
        edge, profile, size, fate, arrival, copy_arrival = look_up(state, user, own, tick, now)
        if fate == IN_FLIGHT:
            router = state.edges[edge].receiver
            to = memory.lane_of[router]
            batch = _new_batch(me, queue, boxes, to, LOOKUP, profile, tick, now, size, 0, 0)
            posted = _post_both(
                state, queue, memory, boxes, to, arrival, math.inf, edge, router, batch, window, windows_per_second
            )
            status = max(status, posted)
            if copy_arrival != math.inf:
                copy = _new_batch(me, queue, boxes, to, LOOKUP, profile, tick, now, size, 1, 0)
                posted = _post_both(
                    state,
                    queue,
                    memory,
                    boxes,
                    to,
                    copy_arrival,
                    math.inf,
                    edge,
                    router,
                    copy,
                    window,
                    windows_per_second,
                )
                status = max(status, posted)
    return status


@partial(inner_kernel, inline=False)
def _found(state, queue, memory, boxes, edge, batch, router, now, window, windows_per_second):
    """Let a directory take a look-up, and answer it."""
    me, b, status = memory.lane[0], queue.batches[batch], np.int64(DONE)
    profile, stamp = np.int64(b.profile), b.stamp
    taken, host, size, fate, arrival, copy_arrival = router_takes_lookup(
        state, edge, router, profile, stamp, b.count, b.size, now
    )
    if taken == CONTROL and fate == IN_FLIGHT:
        user = state.edges[edge].sender
        to = memory.lane_of[user]
        found = _new_batch(me, queue, boxes, to, FOUND, profile, stamp, now, size, host, 0)
        status = _post_both(
            state, queue, memory, boxes, to, arrival, copy_arrival, edge, user, found, window, windows_per_second
        )
    return status


@inner_kernel
def _tick(state, queue, memory, boxes, node, tick, now, window, windows_per_second):
    """Let a node broadcast its profiles, and plan its next tick."""
    me, row = memory.lane[0], state.nodes[node]
    status = DONE
    if row.online:
        if state.heard.shape[0] > 0:
            _tidy(state, node, tick, now)
        if state.finds.shape[0] > 0 and node < state.own_count.shape[0]:
            status = _look_up(state, queue, memory, boxes, node, tick, now, window, windows_per_second)
        for n in range(row.contact_count):
            prefetch(state.edges, state.contacts[row.contact_start + n])
        count = _rating_count(state, node)
        for n in range(row.owned_count):
            profile = state.owned[row.owned_start + n]
            if state.profiles[profile].incarnation == UNBORN:
                continue
            n_sent = broadcast(
                state,
                profile,
                tick,
                now,
                memory.words,
                memory.sent,
                memory.fates,
                memory.sizes,
                memory.arrivals,
            )
            stamp, offset = state.profiles[profile].stamp, state.profiles[profile].offset
            for lane in range(memory.batch_of.shape[0]):
                memory.batch_of[lane] = NONE
            for m in range(n_sent):
                if memory.fates[m] != IN_FLIGHT:
                    continue
                edge = memory.sent[m]
                receiver = state.edges[edge].receiver
                to = memory.lane_of[receiver]
                if memory.batch_of[to] == NONE or state.settings[0].attach_ratings:
                    memory.batch_of[to] = _new_batch(
                        me, queue, boxes, to, PROFILE, profile, stamp, now, memory.sizes[m], count, 0
                    )
                    _fill_payload(me, queue, boxes, to, memory.batch_of[to], state.values, profile)
                posted = _post(
                    me,
                    queue,
                    boxes,
                    state.edges,
                    to,
                    memory.arrivals[m],
                    edge,
                    receiver,
                    state.edges[edge].slot + offset,
                    memory.batch_of[to],
                    window,
                    windows_per_second,
                )
                status = max(status, posted)
    elif state.life[node].departed:
        return status
    following = next_tick(state.settings[0].seed, row.key, row.poisson, row.period, row.phase, tick + 1, now)
    push(queue, state.edges, following, node, TICK_EVENT, tick + 1, 0)
    return status


@inner_kernel
def _wait(state, queue, memory, edge, batch, receiver, slot, now):
    """Let a message wait at its receiver until it is processed."""
    b = queue.batches[batch]
    fate, processed = admit(state, b.kind, edge, receiver, b.profile, b.stamp, b.size, now)
    if fate == IN_FLIGHT:
        push(queue, state.edges, processed, edge, batch, WAITED + receiver, slot)
        return
    b.references -= 1
    if b.references == 0:
        _free_batch(queue, memory, batch)


@inner_kernel
def _arrival(state, queue, memory, boxes, edge, batch, receiver, slot, now, window, windows_per_second):
    """Let a node take a message, and send what it causes."""
    me, b = memory.lane[0], queue.batches[batch]
    status = DONE
    n_named, fate, arrival, copy_arrival = np.int64(0), np.int64(IN_FLIGHT), math.inf, math.inf
    if b.kind == PROFILE:
        if receiver < state.own_start.shape[0] - 1:
            user_takes_profile(state, edge, receiver, slot, b.stamp, b.emitted, queue.payloads[batch], b.size, now)
        else:
            _, n_named, fate, arrival, copy_arrival = router_takes_profile(
                state,
                edge,
                receiver,
                slot,
                b.stamp,
                b.count,
                b.emitted,
                queue.payloads[batch],
                b.size,
                now,
                memory.named,
            )
    elif b.kind == REPLY:
        _, n_named, fate, arrival, copy_arrival = router_takes_reply(
            state,
            edge,
            receiver,
            slot,
            b.attempt,
            b.stamp,
            b.count,
            b.emitted,
            queue.payloads[batch],
            memory.answers[b.answers : b.answers + b.n_answers],
            b.size,
            now,
            memory.named,
        )
    elif b.kind == REQUEST:
        asked = memory.answers[b.answers : b.answers + b.n_answers]
        taken, stamp, reply_fate, reply_arrival, reply_copy = user_takes_request(
            state, edge, b.attempt, b.count, asked, b.size, now
        )
        if taken == CONTROL and reply_fate == IN_FLIGHT:
            router = state.edges[edge].receiver
            to = memory.lane_of[router]
            count = _rating_count(state, receiver)
            size = message_size(REPLY, state.settings[0].rank, b.n_answers)
            reply = _new_batch(me, queue, boxes, to, REPLY, receiver, stamp, now, size, count, b.attempt)
            _fill_payload(me, queue, boxes, to, reply, state.values, receiver)
            _attach(queue, memory, boxes, to, reply, asked)
            status = _post_both(
                state,
                queue,
                memory,
                boxes,
                to,
                reply_arrival,
                reply_copy,
                edge,
                router,
                reply,
                window,
                windows_per_second,
            )
    elif b.kind == HANDOVER:
        router_takes_handover(state, receiver, b.profile, b.attempt, b.count, queue.payloads[batch], b.size)
    elif b.kind == QUERY:
        status = _answer(state, queue, memory, boxes, edge, batch, receiver, now, window, windows_per_second)
    elif b.kind == LOOKUP:
        status = _found(state, queue, memory, boxes, edge, batch, receiver, now, window, windows_per_second)
    elif b.kind == FOUND:
        user_takes_found(state, edge, receiver, np.int64(b.profile), np.int64(b.count), b.size, now)
    elif b.kind == ANSWER:
        _served(state, queue, memory, edge, batch, receiver, now)
    if n_named > 0 and fate == IN_FLIGHT:
        user = state.edges[edge].sender
        to = memory.lane_of[user]
        attempt = state.slots[slot].attempt
        size = message_size(REQUEST, state.settings[0].rank, n_named)
        request = _new_batch(me, queue, boxes, to, REQUEST, NONE, attempt, now, size, 0, attempt)
        _attach(queue, memory, boxes, to, request, memory.named[:n_named])
        status = _post(
            me, queue, boxes, state.edges, to, arrival, edge, user, slot, request, window, windows_per_second
        )
        if copy_arrival != math.inf:
            copy = _new_batch(me, queue, boxes, to, REQUEST, NONE, attempt, now, size, 1, attempt)
            _attach(queue, memory, boxes, to, copy, memory.named[:n_named])
            posted = _post(
                me, queue, boxes, state.edges, to, copy_arrival, edge, user, slot, copy, window, windows_per_second
            )
            status = max(status, posted)
    b.references -= 1
    if b.references == 0:
        _free_batch(queue, memory, batch)
    return status


@inner_kernel
def _rating_count(state, node):
    """The count that a user's profiles carry; 0 for a router."""
    return state.own_count[node] if node < state.own_count.shape[0] else np.int64(0)


@inner_kernel
def _has_room(state, queue, memory, boxes, place, batch, windows):
    """Whether there is room for all that an event can cause; what is needed is noted in the lane."""
    c, me = queue.calendar[0], memory.lane[0]
    if batch == TICK_EVENT:
        node = state.nodes[place]
        copies = 2 if state.settings[0].duplication > 0.0 else 1
        me.need_events = copies * node.owned_count * node.contact_count
        me.need_batches = me.need_events if state.settings[0].attach_ratings else node.owned_count
        if state.finds.shape[0] > 0:
            me.need_events += 2 * state.settings[0].lookups
            me.need_batches += 2 * state.settings[0].lookups
        me.need_answers = 0
    elif batch < 0:
        me.need_events, me.need_batches, me.need_answers = 3, 2, 0
    else:
        me.need_events, me.need_batches, me.need_answers = 2, 2, 4 * memory.named.shape[0] + 4
    if (
        c.unused_chunks < me.need_events + 1
        or queue.current.shape[0] < c.pending + me.need_events + 1
        or c.unused_batches < me.need_batches
        or memory.answers.shape[0] < me.answers_top + me.need_answers
        or memory.log.shape[0] <= me.log_top
    ):
        return False
    if windows:
        for to in range(boxes.counts.shape[0]):
            if (
                boxes.counts[to, 0] + me.need_events > boxes.messages.shape[1]
                or boxes.counts[to, 1] + me.need_batches > boxes.batches.shape[1]
                or boxes.counts[to, 2] + me.need_answers > boxes.answers.shape[1]
            ):
                return False
    return True


@inner_kernel
def _new_batch(me, queue, boxes, to, kind, profile, stamp, emitted, size, count, attempt):
    """Row for what messages to lane `to` carry: in the lane's own pool, or in the box for another."""
    if to == me.number:
        c = queue.calendar[0]
        batch = np.int64(c.free_batch)
        c.free_batch = queue.batches[batch].references
        c.unused_batches -= 1
        b = queue.batches[batch]
    else:
        batch = boxes.counts[to, 1]
        boxes.counts[to, 1] += 1
        b = boxes.batches[to, batch]
    b.kind = kind
    b.profile = profile
    b.stamp = stamp
    b.emitted = emitted
    b.size = size
    b.count = count
    b.attempt = attempt
    b.n_answers = 0
    b.references = 0
    return batch


@inner_kernel
def _fill_payload(me, queue, boxes, to, batch, values, profile):
    """Take the snapshot of a profile."""
    if to == me.number:
        for k in range(values.shape[1]):
            queue.payloads[batch, k] = values[profile, k]
    else:
        for k in range(values.shape[1]):
            boxes.payloads[to, batch, k] = values[profile, k]


@partial(inner_kernel, inline=False)
def _attach(queue, memory, boxes, to, batch, rows):
    """Let a request or reply carry a copy of the items named or answered."""
    if to == memory.lane[0].number:
        _keep_answers(queue, memory, batch, rows)
        return
    first = boxes.counts[to, 2]
    boxes.counts[to, 2] += rows.shape[0]
    boxes.batches[to, batch].answers = first
    boxes.batches[to, batch].n_answers = rows.shape[0]
    for n in range(rows.shape[0]):
        boxes.answers[to, first + n] = rows[n]


@inner_kernel
def _post(me, queue, boxes, edges, to, arrival, edge, receiver, slot, batch, window, windows_per_second):
    """Put a message into the lane's own calendar, or into the box for another lane."""
    if windows_per_second > 0.0 and part_of(arrival, windows_per_second) <= window:
        return TOO_EARLY
    if to == me.number:
        queue.batches[batch].references += 1
        push(queue, edges, arrival, edge, batch, receiver, slot)
    else:
        message = boxes.messages[to, boxes.counts[to, 0]]
        boxes.counts[to, 0] += 1
        message.time = arrival
        message.place = edge
        message.receiver = receiver
        message.slot = slot
        message.batch = batch
    return DONE


@inner_kernel
def _class_of(n):
    """Blocks of answers have 2**class rows."""
    size_class = 0
    while (1 << size_class) < n:
        size_class += 1
    return size_class


@inner_kernel
def _keep_answers(queue, memory, batch, rows):
    """Copy the items named or answered into a block of the lane's own pool."""
    me = memory.lane[0]
    size_class = _class_of(rows.shape[0])
    first = memory.blocks[size_class]
    if first == NONE:
        first = me.answers_top
        me.answers_top += 1 << size_class
    else:
        memory.blocks[size_class] = memory.answers[first].offset
    for n in range(rows.shape[0]):
        memory.answers[first + n] = rows[n]
    queue.batches[batch].answers = first
    queue.batches[batch].n_answers = rows.shape[0]


@inner_kernel
def _free_batch(queue, memory, batch):
    c, b = queue.calendar[0], queue.batches[batch]
    if b.n_answers > 0:
        size_class = _class_of(b.n_answers)
        memory.answers[b.answers].offset = memory.blocks[size_class]
        memory.blocks[size_class] = b.answers
    b.references = c.free_batch
    c.free_batch = batch
    c.unused_batches += 1


@partial(kernel, inline=False)
def receive_box(queue, memory, edges, counts, messages, batches, payloads, answers):
    """Take over the messages that another lane has put into its box for this one.

    `counts` to `answers` are the box's part of the arrays of `Boxes`. Nothing is taken where there is not room for all
    of it; returns DONE or GROW.
    """
    c, me = queue.calendar[0], memory.lane[0]
    n_messages, n_batches, n_answers = counts[0], counts[1], counts[2]
    me.need_events, me.need_batches, me.need_answers = n_messages, n_batches, 2 * n_answers
    if (
        c.unused_chunks < n_messages
        or queue.current.shape[0] < c.pending + n_messages
        or c.unused_batches < n_batches
        or memory.answers.shape[0] < me.answers_top + me.need_answers
    ):
        return GROW
    for n in range(n_batches):
        batch = c.free_batch
        c.free_batch = queue.batches[batch].references
        c.unused_batches -= 1
        queue.batches[batch] = batches[n]
        for k in range(payloads.shape[1]):
            queue.payloads[batch, k] = payloads[n, k]
        if batches[n].n_answers > 0:
            first = batches[n].answers
            _keep_answers(queue, memory, batch, answers[first : first + batches[n].n_answers])
        queue.batches[batch].references = 0
        batches[n].references = batch  # where its messages find it
    for n in range(n_messages):
        message = messages[n]
        batch = batches[message.batch].references
        queue.batches[batch].references += 1
        push(queue, edges, message.time, message.place, batch, message.receiver, message.slot)
    for n in range(3):
        counts[n] = 0
    return DONE


@partial(kernel, inline=False)
def start(state, queue, memory):
    """Put the first tick, session's end and checkpoint of every node of a lane onto its calendar."""
    for n in range(state.nodes.shape[0]):
        if memory.lane_of[n] != memory.lane[0].number:
            continue
        node = state.nodes[n]
        time = first_tick(state.settings[0].seed, node.key, node.poisson, node.period, node.phase)
        push(queue, state.edges, time, n, TICK_EVENT, 0, 0)
        if has_sessions(state, n):
            time = session_end(state, n, 1, 0.0)
            if time < math.inf:
                push(queue, state.edges, time, n, TOGGLE_EVENT, 2, 0)
        if n < state.target_start.shape[0] - 1 and state.target_start[n + 1] > state.target_start[n]:
            time = next_wish(state, n, 0, 0.0)
            if time < math.inf:
                push(queue, state.edges, time, n, WISH_EVENT, 0, 0)
        if state.life[n].checkpoint_period < math.inf:
            push(queue, state.edges, checkpoint_time(state, n, 0), n, CHECKPOINT_EVENT, 0, 0)


@partial(kernel, inline=False)
def inject(state, queue, memory, boxes, kind, edge, profile, size, arrival):
    """Put a snapshot of a profile onto its way over an edge; the lane, its receiver's, must have room for it."""
    me, own = memory.lane[0], state.profiles[profile]
    batch = _new_batch(
        me, queue, boxes, me.number, kind, profile, own.stamp, 0.0, size, own.updates, own.incarnation + 1
    )
    _fill_payload(me, queue, boxes, me.number, batch, state.values, profile)
    queue.batches[batch].references = 1
    link = state.edges[edge]
    push(queue, state.edges, arrival, edge, batch, link.receiver, link.slot)


@partial(kernel, inline=False)
def inject_query(state, queue, memory, boxes, edge, profile, stamp, size, copy, arrival):
    """Put a query onto its way over an edge; the lane, its receiver's, must have room for it."""
    me, link = memory.lane[0], state.edges[edge]
    batch = _new_batch(me, queue, boxes, me.number, QUERY, profile, stamp, 0.0, size, copy, 0)
    queue.batches[batch].references = 1
    push(queue, state.edges, arrival, edge, batch, link.receiver, link.slot)


@partial(kernel, inline=False)
def count_in_flight(queue, counted):
    """Count the messages that wait in a calendar, and their bytes, by kind; one by one.

    `counted` is int64, shape (kinds of message, 2), and is added to.
    """
    c = queue.calendar[0]
    for k in range(c.position, c.filled):
        event = queue.current[queue.order[k]]
        _count(queue, event.batch, counted)
    for bucket in range(queue.heads.shape[0]):
        chunk = queue.heads[bucket]
        while chunk != NONE:
            for k in range(queue.chunks[chunk].count):
                event = queue.stored[PER_CHUNK * chunk + k]
                _count(queue, event.batch, counted)
            chunk = queue.chunks[chunk].next


@inner_kernel
def _count(queue, batch, counted):
    if batch >= 0:
        kind = queue.batches[batch].kind
        counted[kind - REQUEST, 0] += 1
        counted[kind - REQUEST, 1] += queue.batches[batch].size
