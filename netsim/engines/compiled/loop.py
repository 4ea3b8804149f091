"""The loop that takes one event after another and lets the node behave.

A *lane* is a share of the nodes with a calendar of its own. One lane with all nodes is the whole engine on one thread;
several lanes run side by side, each on its thread, and exchange messages between windows of time (`team`). What a node
does is `netsim.behaviour`; here is only where messages wait.
"""

import math
from functools import partial

import numpy as np

from algorithms.compilation import kernel
from netsim.behaviour import (
    broadcast,
    profile_message_size,
    router_takes_profile,
    router_takes_reply,
    session_end,
    user_takes_profile,
    user_takes_request,
)
from netsim.engines.compiled.calendar import NONE, PER_CHUNK, TICK_EVENT, TOGGLE_EVENT, part_of, peek, push
from netsim.messages import CONTROL, IN_FLIGHT, PROFILE, REPLY, REQUEST, message_size
from netsim.timers import first_tick, next_tick

__all__ = ["BOX_MESSAGE", "LANE", "advance", "receive_box"]

# Why `advance` returned.
DONE, GROW, BUDGET, TOO_EARLY = range(4)

# How many windows ahead a lane looks for its next event, so that quiet times are skipped.
LOOK_AHEAD = 256

LANE = np.dtype(
    [
        ("number", "i8"),
        ("answers_top", "i8"),  # rows of `answers` below it were in use at some time
        ("need_events", "i8"),  # with GROW: how many free rows there must be
        ("need_batches", "i8"),
        ("need_answers", "i8"),
        ("done", "i8"),  # events taken so far
        ("now", "f8"),  # seconds; time of the last event before the loop paused
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


@partial(kernel, inline=False)
def advance(
    settings,
    laws,
    pool,
    values,
    profiles,
    nodes,
    owned,
    contacts,
    edges,
    slots,
    own_start,
    own_item,
    own_value,
    accounts,
    updates,
    lane,
    calendar,
    heads,
    chunks,
    stored,
    current,
    order,
    spare,
    batches,
    payloads,
    answers,
    blocks,
    named,
    words,
    sent,
    fates,
    sizes,
    arrivals,
    lane_of,
    batch_of,
    box_counts,
    box_messages,
    box_batches,
    box_payloads,
    box_answers,
    stop,
    window,
    windows_per_second,
    budget,
):
    """Take the events of a lane in order, before the time `stop` and up to the end of a window.

    Parameters
    ----------
    settings ... updates : arrays
        As in `netsim.tables.Tables`; accounts and updates are the lane's own.
    lane ... batch_of : arrays
        As in `Lane`.
    box_counts : int64, shape (lanes, 3)
        Messages, batches and answers that wait for each other lane.
    box_messages, box_batches, box_payloads, box_answers : arrays
        Those, by receiving lane.
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
        DONE, GROW, BUDGET, or TOO_EARLY where a message would arrive within the window it was sent in.
    """
    c = calendar[0]
    me = lane[0]
    n_users = own_start.shape[0] - 1
    windows = windows_per_second > 0.0
    most_hosted = named.shape[0]
    last_day = part_of(stop, c.per_second)
    if windows:
        last_day = min(last_day, part_of((window + LOOK_AHEAD) / windows_per_second, c.per_second) + 1)
    for _ in range(budget):
        event = peek(
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
        )
        if event == NONE:
            if windows:
                me.next_window = window + LOOK_AHEAD - 1 if c.pending > 0 else np.int64(1) << 62
            return DONE
        now = current[event].time
        if windows:
            own_window = part_of(now, windows_per_second)
            if own_window > window or now >= stop:
                me.next_window = own_window
                return DONE
        elif now >= stop:
            return DONE
        place, batch = current[event].place, current[event].batch
        number, slot = current[event].number, np.int64(current[event].slot)

        # Room for all that this event can cause.
        me.need_batches = 1
        if batch == TICK_EVENT:
            node = nodes[place]
            me.need_events = node.owned_count * node.contact_count
            me.need_batches = node.owned_count
            me.need_answers = 0
        elif batch == TOGGLE_EVENT:
            me.need_events, me.need_answers = 0, 0
        else:
            me.need_events = 1
            me.need_answers = 2 * most_hosted + 2
        if (
            c.unused_chunks < me.need_events + 1
            or current.shape[0] < c.pending + me.need_events + 1
            or c.unused_batches < me.need_batches
            or me.answers_top + me.need_answers > answers.shape[0]
        ):
            return GROW
        if windows and not _box_has_room(me, box_counts, box_messages, box_batches, box_answers):
            return GROW

        c.position += 1
        c.pending -= 1
        me.done += 1
        status = DONE
        if batch == TICK_EVENT:
            node = nodes[place]
            tick = number
            if node.online:
                for n in range(node.owned_count):
                    profile = owned[node.owned_start + n]
                    n_sent = broadcast(
                        settings,
                        laws,
                        pool,
                        profiles,
                        nodes,
                        contacts,
                        edges,
                        accounts,
                        profile,
                        tick,
                        now,
                        words,
                        sent,
                        fates,
                        sizes,
                        arrivals,
                    )
                    count = own_start[place + 1] - own_start[place] if place < n_users else 0
                    for d in range(batch_of.shape[0]):
                        batch_of[d] = NONE
                    for m in range(n_sent):
                        if fates[m] != IN_FLIGHT:
                            continue
                        edge = sent[m]
                        receiver = edges[edge].receiver
                        to = lane_of[receiver]
                        if batch_of[to] == NONE:
                            batch_of[to] = _new_batch(
                                me,
                                calendar,
                                batches,
                                box_counts,
                                box_batches,
                                to,
                                PROFILE,
                                profile,
                                profiles[profile].stamp,
                                count,
                                0,
                            )
                            _fill_payload(me, payloads, box_payloads, to, batch_of[to], values, profile)
                        status = max(
                            status,
                            _post(
                                me,
                                calendar,
                                heads,
                                chunks,
                                stored,
                                current,
                                order,
                                batches,
                                edges,
                                box_counts,
                                box_messages,
                                to,
                                arrivals[m],
                                edge,
                                receiver,
                                edges[edge].slot + profiles[profile].offset,
                                batch_of[to],
                                window,
                                windows_per_second,
                            ),
                        )
            following = next_tick(settings[0].seed, node.key, node.poisson, node.period, node.phase, tick + 1, now)
            push(calendar, heads, chunks, stored, current, order, batches, edges, following, place, batch, tick + 1, 0)
        elif batch == TOGGLE_EVENT:
            session, up = (number >> 1) + 1, number & 1 == 0
            nodes[place].online = up
            following = session_end(settings, nodes, place, session, up, now)
            push(
                calendar,
                heads,
                chunks,
                stored,
                current,
                order,
                batches,
                edges,
                following,
                place,
                batch,
                2 * session + np.int64(up),
                0,
            )
        else:
            b = batches[batch]
            kind = b.kind
            receiver = number
            n_named = np.int64(0)
            fate, arrival = np.int64(IN_FLIGHT), math.inf
            if kind == PROFILE:
                size = profile_message_size(settings, edges, place)
                if receiver < n_users:
                    user_takes_profile(
                        settings,
                        values,
                        profiles,
                        nodes,
                        slots,
                        accounts,
                        updates,
                        receiver,
                        slot,
                        b.stamp,
                        payloads[batch],
                        size,
                    )
                else:
                    _, n_named, fate, arrival = router_takes_profile(
                        settings,
                        laws,
                        pool,
                        values,
                        profiles,
                        nodes,
                        owned,
                        edges,
                        slots,
                        own_start,
                        own_item,
                        own_value,
                        accounts,
                        updates,
                        place,
                        receiver,
                        slot,
                        b.stamp,
                        b.count,
                        payloads[batch],
                        size,
                        now,
                        named,
                    )
            elif kind == REPLY:
                _, n_named, fate, arrival = router_takes_reply(
                    settings,
                    laws,
                    pool,
                    values,
                    profiles,
                    nodes,
                    owned,
                    edges,
                    slots,
                    accounts,
                    updates,
                    place,
                    receiver,
                    slot,
                    b.attempt,
                    b.stamp,
                    b.count,
                    payloads[batch],
                    answers[b.answers : b.answers + b.n_answers],
                    message_size(REPLY, settings[0].rank, b.n_answers),
                    now,
                    named,
                )
            elif kind == REQUEST:
                user = edges[place].sender
                asked = answers[b.answers : b.answers + b.n_answers]
                taken, stamp, reply_fate, reply_arrival = user_takes_request(
                    settings,
                    laws,
                    pool,
                    profiles,
                    nodes,
                    owned,
                    edges,
                    own_start,
                    own_item,
                    own_value,
                    accounts,
                    place,
                    b.attempt,
                    asked,
                    message_size(REQUEST, settings[0].rank, b.n_answers),
                    now,
                )
                if taken == CONTROL and reply_fate == IN_FLIGHT:
                    to = lane_of[edges[place].receiver]
                    count = own_start[user + 1] - own_start[user]
                    reply = _new_batch(
                        me,
                        calendar,
                        batches,
                        box_counts,
                        box_batches,
                        to,
                        REPLY,
                        user,
                        stamp,
                        count,
                        b.attempt,
                    )
                    _fill_payload(me, payloads, box_payloads, to, reply, values, user)
                    _attach(me, batches, answers, blocks, box_counts, box_batches, box_answers, to, reply, asked)
                    status = _post(
                        me,
                        calendar,
                        heads,
                        chunks,
                        stored,
                        current,
                        order,
                        batches,
                        edges,
                        box_counts,
                        box_messages,
                        to,
                        reply_arrival,
                        place,
                        edges[place].receiver,
                        edges[place].slot,
                        reply,
                        window,
                        windows_per_second,
                    )
            if n_named > 0 and fate == IN_FLIGHT:
                to = lane_of[edges[place].sender]
                request = _new_batch(
                    me,
                    calendar,
                    batches,
                    box_counts,
                    box_batches,
                    to,
                    REQUEST,
                    NONE,
                    slots[slot].attempt,
                    0,
                    slots[slot].attempt,
                )
                _attach(
                    me, batches, answers, blocks, box_counts, box_batches, box_answers, to, request, named[:n_named]
                )
                status = _post(
                    me,
                    calendar,
                    heads,
                    chunks,
                    stored,
                    current,
                    order,
                    batches,
                    edges,
                    box_counts,
                    box_messages,
                    to,
                    arrival,
                    place,
                    edges[place].sender,
                    slot,
                    request,
                    window,
                    windows_per_second,
                )
            b.references -= 1
            if b.references == 0:
                _free_batch(calendar, batches, answers, blocks, batch)
        me.now = now
        if status != DONE:
            return status
    return BUDGET


@partial(kernel, inline=False)
def start(settings, nodes, calendar, heads, chunks, stored, current, order, batches, edges, lane_of, lane):
    """Put the first tick, and the end of the first session, of every node of a lane onto its calendar."""
    for n in range(nodes.shape[0]):
        if lane_of[n] != lane:
            continue
        node = nodes[n]
        time = first_tick(settings[0].seed, node.key, node.poisson, node.period, node.phase)
        push(calendar, heads, chunks, stored, current, order, batches, edges, time, n, TICK_EVENT, 0, 0)
        if node.mean_online < math.inf:
            time = session_end(settings, nodes, n, 1, node.online, 0.0)
            number = 2 + np.int64(node.online)
            push(calendar, heads, chunks, stored, current, order, batches, edges, time, n, TOGGLE_EVENT, number, 0)


@partial(kernel, inline=False)
def count_in_flight(settings, calendar, heads, chunks, stored, current, order, batches, edges, counted):
    """Count the messages that wait in a calendar, and their bytes, by kind; one by one.

    `counted` is int64, shape (kinds of message, 2), and is added to.
    """
    c = calendar[0]
    for k in range(c.position, c.filled):
        event = current[order[k]]
        _count(settings, batches, edges, event.place, event.batch, counted)
    for bucket in range(heads.shape[0]):
        chunk = heads[bucket]
        while chunk != NONE:
            for k in range(chunks[chunk].count):
                event = stored[PER_CHUNK * chunk + k]
                _count(settings, batches, edges, event.place, event.batch, counted)
            chunk = chunks[chunk].next


@kernel
def _count(settings, batches, edges, place, batch, counted):
    if batch >= 0:
        kind = batches[batch].kind
        if kind == PROFILE:
            size = profile_message_size(settings, edges, place)
        else:
            size = message_size(kind, settings[0].rank, batches[batch].n_answers)
        counted[kind - REQUEST, 0] += 1
        counted[kind - REQUEST, 1] += size


@kernel
def receive_box(
    lane,
    calendar,
    heads,
    chunks,
    stored,
    current,
    order,
    batches,
    payloads,
    answers,
    blocks,
    edges,
    counts,
    messages,
    box_batches,
    box_payloads,
    box_answers,
):
    """Take over the messages that another lane has put into its box for this one.

    Nothing is taken where there is not room for all of it; returns DONE or GROW.
    """
    c, me = calendar[0], lane[0]
    n_messages, n_batches, n_answers = counts[0], counts[1], counts[2]
    me.need_events, me.need_batches, me.need_answers = n_messages, n_batches, 2 * n_answers
    if (
        c.unused_chunks < n_messages
        or current.shape[0] < c.pending + n_messages
        or c.unused_batches < n_batches
        or me.answers_top + me.need_answers > answers.shape[0]
    ):
        return GROW
    for n in range(n_batches):
        batch = c.free_batch
        c.free_batch = batches[batch].references
        c.unused_batches -= 1
        batches[batch] = box_batches[n]
        for k in range(payloads.shape[1]):
            payloads[batch, k] = box_payloads[n, k]
        if box_batches[n].n_answers > 0:
            first = box_batches[n].answers
            _keep_answers(me, batches, answers, blocks, batch, box_answers[first : first + box_batches[n].n_answers])
        batches[batch].references = 0
        box_batches[n].references = batch  # where its messages find it
    for n in range(n_messages):
        message = messages[n]
        batch = box_batches[message.batch].references
        batches[batch].references += 1
        push(
            calendar,
            heads,
            chunks,
            stored,
            current,
            order,
            batches,
            edges,
            message.time,
            message.place,
            batch,
            message.receiver,
            message.slot,
        )
    for n in range(3):
        counts[n] = 0
    return DONE


@kernel
def _box_has_room(me, box_counts, box_messages, box_batches, box_answers):
    for to in range(box_counts.shape[0]):
        if (
            box_counts[to, 0] + me.need_events > box_messages.shape[1]
            or box_counts[to, 1] + me.need_batches > box_batches.shape[1]
            or box_counts[to, 2] + me.need_answers > box_answers.shape[1]
        ):
            return False
    return True


@kernel
def _new_batch(
    me,
    calendar,
    batches,
    box_counts,
    box_batches,
    to,
    kind,
    profile,
    stamp,
    count,
    attempt,
):
    """Row for what messages to lane `to` carry: in the lane's own pool, or in the box for another."""
    if to == me.number:
        c = calendar[0]
        batch = np.int64(c.free_batch)
        c.free_batch = batches[batch].references
        c.unused_batches -= 1
        b = batches[batch]
    else:
        batch = box_counts[to, 1]
        box_counts[to, 1] += 1
        b = box_batches[to, batch]
    b.kind = kind
    b.profile = profile
    b.stamp = stamp
    b.count = count
    b.attempt = attempt
    b.n_answers = 0
    b.references = 0
    return batch


@kernel
def _fill_payload(me, payloads, box_payloads, to, batch, values, profile):
    """Take the snapshot of a profile."""
    if to == me.number:
        for k in range(values.shape[1]):
            payloads[batch, k] = values[profile, k]
    else:
        for k in range(values.shape[1]):
            box_payloads[to, batch, k] = values[profile, k]


@kernel
def _attach(me, batches, answers, blocks, box_counts, box_batches, box_answers, to, batch, rows):
    """Let a request or reply carry a copy of the items named or answered."""
    if to == me.number:
        _keep_answers(me, batches, answers, blocks, batch, rows)
        return
    first = box_counts[to, 2]
    box_counts[to, 2] += rows.shape[0]
    box_batches[to, batch].answers = first
    box_batches[to, batch].n_answers = rows.shape[0]
    for n in range(rows.shape[0]):
        box_answers[to, first + n] = rows[n]


@kernel
def _post(
    me,
    calendar,
    heads,
    chunks,
    stored,
    current,
    order,
    batches,
    edges,
    box_counts,
    box_messages,
    to,
    arrival,
    edge,
    receiver,
    slot,
    batch,
    window,
    windows_per_second,
):
    """Put a message into the lane's own calendar, or into the box for another lane."""
    if windows_per_second > 0.0 and part_of(arrival, windows_per_second) <= window:
        return TOO_EARLY
    if to == me.number:
        batches[batch].references += 1
        push(calendar, heads, chunks, stored, current, order, batches, edges, arrival, edge, batch, receiver, slot)
    else:
        message = box_messages[to, box_counts[to, 0]]
        box_counts[to, 0] += 1
        message.time = arrival
        message.place = edge
        message.receiver = receiver
        message.slot = slot
        message.batch = batch
    return DONE


@kernel
def _class_of(n):
    """Blocks of answers have 2**class rows."""
    size_class = 0
    while (1 << size_class) < n:
        size_class += 1
    return size_class


@kernel
def _keep_answers(me, batches, answers, blocks, batch, rows):
    """Copy the items named or answered into a block of the lane's own pool."""
    size_class = _class_of(rows.shape[0])
    first = blocks[size_class]
    if first == NONE:
        first = me.answers_top
        me.answers_top += 1 << size_class
    else:
        blocks[size_class] = answers[first].offset
    for n in range(rows.shape[0]):
        answers[first + n] = rows[n]
    batches[batch].answers = first
    batches[batch].n_answers = rows.shape[0]


@kernel
def _free_batch(calendar, batches, answers, blocks, batch):
    c, b = calendar[0], batches[batch]
    if b.n_answers > 0:
        size_class = _class_of(b.n_answers)
        answers[b.answers].offset = blocks[size_class]
        blocks[size_class] = b.answers
    b.references = c.free_batch
    c.free_batch = batch
    c.unused_batches += 1
