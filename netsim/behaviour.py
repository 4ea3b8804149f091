"""What a node does at each event: the rules of the network, in one place, called by every engine.

Each function takes the state (the arrays of `netsim.state.State`) and one event, changes the state, does the accounts
and says what follows: the fate of the message, and when the messages that it causes arrive. An engine keeps the clock
and the messages in flight, and decides nothing.

Section 3 of the first seed paper describes the protocol; equations (3) and (4) are `algorithms.updates`.
"""

import math
from functools import partial

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import inner_kernel, kernel
from algorithms.updates import learning_rate_at, regularization_at, update_item, update_user
from netsim.accounting import account
from netsim.crossing import cross, of_copy, send
from netsim.finding import enlist, hear
from netsim.messages import (
    CONTROL,
    HANDOVER,
    IN_FLIGHT,
    LOST_LINK,
    LOST_OFFLINE,
    LOST_QUEUE,
    PROFILE,
    RATING_ANSWER,
    REPLY,
    REQUEST,
    SENT,
    STALE,
    UNKNOWN,
    UNRATED,
    UPDATED,
    message_size,
)
from netsim.queueing import serve
from netsim.rules import call_update
from netsim.state import CHANGE, CONFIRM, NOT_RATED, RATED, UNASKED

__all__ = [
    "admit",
    "broadcast",
    "profile_message_size",
    "router_takes_handover",
    "router_takes_profile",
    "router_takes_reply",
    "user_takes_profile",
    "user_takes_request",
]


@kernel
def admit(state, kind, edge, receiver, profile, stamp, size, now):
    """A message arrives at a node that takes time to process each; it is judged now, and again when it is processed.

    Parameters
    ----------
    kind, edge, receiver, profile, stamp, size : int
        Of the message.
    now : float64

    Returns
    -------
    fate : int
        IN_FLIGHT, LOST_OFFLINE or LOST_QUEUE.
    processed : float64
        When it is taken, in seconds.
    """
    if not state.nodes[receiver].online:
        account(state, kind, LOST_OFFLINE, size)
        return LOST_OFFLINE, math.inf
    processed = serve(state, receiver, edge, kind, profile, stamp, now)
    if processed == math.inf:
        account(state, kind, LOST_QUEUE, size)
        return LOST_QUEUE, processed
    return IN_FLIGHT, processed


@kernel
def profile_message_size(state, edge):
    """Bytes of a profile message over an edge, with the ratings that may be attached to it."""
    if state.settings[0].attach_ratings:
        return state.settings[0].profile_size + RATING_ANSWER * np.int64(state.edges[edge].attached)
    return state.settings[0].profile_size


@kernel
def broadcast(state, profile, tick, now, words, sent, fates, sizes, arrivals):
    """The owner of a profile emits it at one of its ticks, to every contact or to a random fan-out of them.

    Draws are keyed by (profile, receiver, tick), so that they do not depend on what else is sent.

    Parameters
    ----------
    profile, tick : int
    now : float64
        Time of the tick in seconds.
    words : uint64, shape (>= contacts of the owner,)
        Scratch.
    sent : int64, shape (>= twice the contacts,)
    fates, sizes : int64, same shape
    arrivals : float64, same shape
        Filled, for each message: its edge, IN_FLIGHT or how it was lost, its bytes, its time of arrival.

    Returns
    -------
    int
        Number of messages, with the second copies that the network made.
    """
    row = state.profiles[profile]
    node = state.nodes[row.node]
    row.stamp += 1
    seed = state.settings[0].seed
    first, n_contacts = node.contact_start, node.contact_count

    threshold = np.uint64(0xFFFFFFFFFFFFFFFF)
    if 0 < node.fan_out < n_contacts:
        for n in range(n_contacts):
            pair = combine(row.key, state.edges[state.contacts[first + n]].receiver_key)
            words[n] = draw(seed, purposes.FAN_OUT, pair, tick)
        threshold = _kth_smallest(words, n_contacts, node.fan_out)

    n_sent, n_messages, n_bytes = 0, 0, 0
    for n in range(n_contacts):
        edge = state.contacts[first + n]
        pair = combine(row.key, state.edges[edge].receiver_key)
        if 0 < node.fan_out < n_contacts and draw(seed, purposes.FAN_OUT, pair, tick) > threshold:
            continue
        loss_word = draw(seed, purposes.BROADCAST_LOSS, pair, tick)
        delay_word = draw(seed, purposes.BROADCAST_DELAY, pair, tick)
        size = profile_message_size(state, edge)
        fate, arrival, copy_arrival = cross(state, edge, False, size, loss_word, delay_word, now)
        account(state, PROFILE, SENT, size)
        if fate != IN_FLIGHT:
            account(state, PROFILE, fate, size)
        if fate != LOST_QUEUE:  # what the queue of the own uplink drops never leaves the machine
            n_bytes += size
            n_sent += 1
            if state.settings[0].attach_ratings and state.edges[edge].disclosed < state.edges[edge].attached:
                _disclose_attached(state, edge)
        sent[n_messages] = edge
        fates[n_messages] = fate
        sizes[n_messages] = size
        arrivals[n_messages] = arrival
        n_messages += 1
        if copy_arrival != math.inf:
            account(state, PROFILE, SENT, size)
            sent[n_messages] = edge
            fates[n_messages] = IN_FLIGHT
            sizes[n_messages] = size
            arrivals[n_messages] = copy_arrival
            n_messages += 1
    node.profiles_sent += n_sent
    node.bytes_sent += n_bytes
    return n_messages


@inner_kernel
def _kth_smallest(words, n, k):
    """The k-th smallest (from 1) of words[:n], which are reordered: Hoare's selection."""
    low, high, wanted = 0, n - 1, k - 1
    while low < high:
        pivot = words[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while words[i] < pivot:
                i += 1
            while words[j] > pivot:
                j -= 1
            if i <= j:
                words[i], words[j] = words[j], words[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return words[wanted]


@kernel
def user_takes_profile(state, edge, user, slot, stamp, emitted, payload, size, now):
    """A user receives an item profile: equation (3) if he rated the item; returns the fate.

    Parameters
    ----------
    edge, user, slot : int
        The edge that the message came over, its receiver, and the slot of the item.
    stamp : int
    emitted : float64
        Time of sending in seconds.
    payload : float64, shape (rank,)
        The profile as it was sent.
    size : int
        Bytes of the message.
    now : float64
        Time of arrival in seconds.
    """
    while state.slots[slot].count > 0:  # the item has moved to another router
        slot = np.int64(state.slots[slot].count) - 1
    known = state.slots[slot]
    if state.nodes[user].online:
        hear(state, edge, False, now)
    if not state.nodes[user].online:
        fate = LOST_OFFLINE
    elif state.settings[0].discard_stale and stamp <= known.taken:
        fate = STALE
    else:
        known.taken = max(known.taken, stamp)
        if state.emitted.shape[0] > 0:
            state.emitted[slot] = emitted
        if known.state == RATED:
            own = state.profiles[user]
            eta, weight = _step(state, own)
            if state.settings[0].user_rule == 0:
                update_user(state.values[user], payload, known.value, eta, weight)
            else:
                call_update(state.settings[0].user_rule, state.values[user], payload, known.value, eta, weight)
            own.updates += 1
            state.updates[0] += 1
            fate = UPDATED
        else:
            fate = UNRATED
    account(state, PROFILE, fate, size)
    return fate


@kernel
def router_takes_profile(state, edge, router, slot, stamp, count, emitted, payload, size, now, named):
    """A router receives a user's profile over `edge`: equation (4) for each hosted item whose rating it knows.

    If it lacks a rating it needs, it asks the user, unless a request is outstanding.

    Parameters
    ----------
    edge, router, slot : int
        The edge, its receiver and its first slot.
    stamp : int
    count : int
        The user's rating count, as the message carries it.
    emitted : float64
        Time of sending in seconds.
    payload : float64, shape (rank,)
    size : int
        Bytes of the message.
    now : float64
        Time of arrival in seconds.
    named : ANSWER_ROW, shape (>= items hosted,)
        Filled with the items that the request names.

    Returns
    -------
    fate : int
    n_named : int
        Items named in the request that follows; 0 where none is sent.
    request_fate : int
    request_arrival, request_copy : float64
        As `cross` gives them.
    """
    request_fate, request_arrival, request_copy = LOST_LINK, math.inf, math.inf
    n_named = 0
    if state.nodes[router].online:
        hear(state, edge, False, now)
    if not state.nodes[router].online:
        fate = LOST_OFFLINE
    elif state.settings[0].discard_stale and stamp <= state.slots[slot].taken:
        fate = STALE
    else:
        _see_count(state, router, slot, count)
        if state.settings[0].attach_ratings:
            user = state.edges[edge].sender
            _learn_attached(state, user, router, slot, count)
        if state.settings[0].heard_users:
            _list_rater(state, edge, router, slot, now)
        fate, n_named = _apply_user_profile(state, router, slot, stamp, emitted, payload, now, named)
    account(state, PROFILE, fate, size)
    if n_named > 0:
        request_fate, request_arrival, request_copy = _send_request(state, edge, n_named, now)
    return fate, n_named, request_fate, request_arrival, request_copy


@partial(kernel, inline=False)
def user_takes_request(state, edge, attempt, copy, answers, size, now):
    """A user is asked for ratings and replies with them and with his profile of this moment.

    Parameters
    ----------
    edge : int
        The edge from the user to the router, over which the reply goes.
    attempt : int
    copy : int
        1 for the second copy that the network made of the request, else 0; its reply has draws of its own.
    answers : ANSWER_ROW, shape (n,)
        The items named; the user's answers are filled in.
    size : int
        Bytes of the request.
    now : float64

    Returns
    -------
    fate : int
        Of the request.
    stamp : int
        Of the reply.
    reply_fate : int
    reply_arrival, reply_copy : float64
        As `cross` gives them.
    """
    link = state.edges[edge]
    user = link.sender
    if not state.nodes[user].online:
        account(state, REQUEST, LOST_OFFLINE, size)
        return LOST_OFFLINE, 0, LOST_LINK, math.inf, math.inf
    account(state, REQUEST, CONTROL, size)
    hear(state, edge, True, now)
    first = state.nodes[link.receiver].owned_start
    n_users = state.own_start.shape[0] - 1
    for n in range(answers.shape[0]):
        own = _own_position(state, user, state.owned[first + answers[n].offset] - n_users)
        if own >= 0:
            answers[n].state, answers[n].value = RATED, state.own_value[own]
        else:
            answers[n].state, answers[n].value = NOT_RATED, 0.0
    state.profiles[user].stamp += 1
    pair = combine(link.receiver_key, state.nodes[user].key)
    reply_size = message_size(REPLY, state.settings[0].rank, answers.shape[0])
    reply_fate, reply_arrival, reply_copy = send(
        state,
        REPLY,
        edge,
        False,
        reply_size,
        of_copy(draw(state.settings[0].seed, purposes.REPLY_LOSS, pair, attempt), copy),
        of_copy(draw(state.settings[0].seed, purposes.REPLY_DELAY, pair, attempt), copy),
        now,
    )
    if reply_fate != LOST_QUEUE:
        state.nodes[user].profiles_sent += 1
        for n in range(answers.shape[0]):
            own = _own_position(state, user, state.owned[first + answers[n].offset] - n_users)
            if own >= 0:
                _disclose(state, own, link.receiver)
    return CONTROL, state.profiles[user].stamp, reply_fate, reply_arrival, reply_copy


@partial(kernel, inline=False)
def router_takes_reply(state, edge, router, slot, attempt, stamp, count, emitted, payload, answers, size, now, named):
    """A router receives ratings and a profile from a user: a fresh profile updates, a stale one is discarded.

    Parameters, and what is returned, as in `router_takes_profile`; `attempt` is the request's that is answered.
    """
    request_fate, request_arrival, request_copy = LOST_LINK, math.inf, math.inf
    n_named = 0
    if not state.nodes[router].online:
        fate = LOST_OFFLINE
    else:
        hear(state, edge, False, now)
        if attempt == state.slots[slot].attempt:
            state.slots[slot].deadline = -math.inf
        late = count < state.slots[slot].count
        _see_count(state, router, slot, count)
        first = state.nodes[router].owned_start
        for n in range(answers.shape[0]):
            offset = answers[n].offset
            if not late:
                _learn(state, state.owned[first + offset], slot + offset, answers[n].state, answers[n].value)
            elif answers[n].state == RATED and state.slots[slot + offset].state == UNASKED:
                # Better than nothing, until the newer answer comes that it will be asked for.
                _learn(state, state.owned[first + offset], slot + offset, RATED, answers[n].value)
                state.slots[slot + offset].state = CONFIRM
        if state.settings[0].heard_users:
            _list_rater(state, edge, router, slot, now)
        if state.settings[0].discard_stale and stamp <= state.slots[slot].taken:
            fate = STALE
        else:
            fate, n_named = _apply_user_profile(state, router, slot, stamp, emitted, payload, now, named)
    account(state, REPLY, fate, size)
    if n_named > 0:
        request_fate, request_arrival, request_copy = _send_request(state, edge, n_named, now)
    return fate, n_named, request_fate, request_arrival, request_copy


@partial(kernel, inline=False)
def router_takes_handover(state, router, profile, incarnation, updates, payload, size):
    """A router receives the last profile of an item from the router that hosted it before; returns the fate.

    Parameters
    ----------
    router, profile : int
    incarnation : int
        Of the profile that it is to take the place of; taken, it is the next one.
    updates : int
        That were made to the profile.
    payload : float64, shape (rank,)
    size : int
        Bytes of the message.
    """
    if not state.nodes[router].online:
        fate = LOST_OFFLINE
    elif state.profiles[profile].node != router or state.profiles[profile].incarnation != incarnation:
        fate = STALE
    else:
        for k in range(payload.shape[0]):
            state.values[profile, k] = payload[k]
        state.profiles[profile].updates = updates
        state.profiles[profile].incarnation += 1
        fate = UPDATED
    account(state, HANDOVER, fate, size)
    return fate


@kernel
def _step(state, profile):
    """Learning rate and regularization weight of a profile's next update."""
    s = state.settings[0]
    eta = learning_rate_at(s.schedule, profile.rate, s.half_life, s.per_pass, profile.updates, profile.known)
    return eta, regularization_at(s.regularization, s.lam, profile.known)


@inner_kernel
def _see_count(state, router, slot, count):
    """A router sees a user's count: if higher than before, it must ask again.

    With more ratings, for what he had not rated; with more changes, for what he had rated.
    """
    seen = state.slots[slot].count
    if count > seen:
        state.slots[slot].count = count
        more = count % CHANGE > seen % CHANGE
        changed = count // CHANGE > seen // CHANGE and seen > 0
        for offset in range(state.nodes[router].owned_count):
            known = state.slots[slot + offset]
            if known.state == NOT_RATED and more:
                known.state = UNASKED
            elif known.state == RATED and changed:
                known.state = CONFIRM


@inner_kernel
def _apply_user_profile(state, router, slot, stamp, emitted, payload, now, named):
    """Apply a fresh user profile to each hosted item, in item order, and name the unknown ratings to ask for."""
    head = state.slots[slot]
    head.taken = max(head.taken, stamp)
    if state.emitted.shape[0] > 0:
        state.emitted[slot] = emitted
    first = state.nodes[router].owned_start
    n_updated, n_unknown = 0, 0
    for offset in range(state.nodes[router].owned_count):
        known = state.slots[slot + offset]
        if known.state == RATED or known.state == CONFIRM:
            profile = state.owned[first + offset]
            own = state.profiles[profile]
            eta, weight = _step(state, own)
            if state.settings[0].item_rule == 0:
                update_item(state.values[profile], payload, known.value, eta, weight)
            else:
                call_update(state.settings[0].item_rule, state.values[profile], payload, known.value, eta, weight)
            own.updates += 1
            state.updates[1] += 1
            n_updated += 1
        if known.state == UNASKED or known.state == CONFIRM:
            named[n_unknown].offset = offset
            n_unknown += 1
    if n_updated > 0:
        fate = UPDATED
    elif n_unknown > 0:
        fate = UNKNOWN
    else:
        fate = UNRATED
    if now < head.deadline:
        n_unknown = 0  # a request is outstanding
    return fate, n_unknown


@partial(inner_kernel, inline=False)
def _list_rater(state, edge, router, slot, now):
    """A router lists the user at the other end of an edge if it knows a rating of his."""
    if state.reverse[edge] < 0:
        return
    for offset in range(state.nodes[router].owned_count):
        known = state.slots[slot + offset].state
        if known in (RATED, CONFIRM):
            enlist(state, router, state.reverse[edge], now)
            return


@partial(inner_kernel, inline=False)
def _send_request(state, edge, n_named, now):
    """Send a request back over `edge`; returns its fate and its times of arrival, as `cross` does."""
    link = state.edges[edge]
    head = state.slots[link.slot]
    head.attempt += 1
    head.deadline = now + state.settings[0].request_timeout
    pair = combine(link.receiver_key, state.nodes[link.sender].key)
    size = message_size(REQUEST, state.settings[0].rank, n_named)
    fate, arrival, copy_arrival = send(
        state,
        REQUEST,
        edge,
        True,
        size,
        draw(state.settings[0].seed, purposes.REQUEST_LOSS, pair, head.attempt),
        draw(state.settings[0].seed, purposes.REQUEST_DELAY, pair, head.attempt),
        now,
    )
    return fate, arrival, copy_arrival


@inner_kernel
def _learn(state, profile, slot, answer, value):
    """A router learns whether (RATED or NOT_RATED) and how a user rated an item."""
    if answer == RATED:
        if state.slots[slot].state != RATED and state.slots[slot].state != CONFIRM:
            state.profiles[profile].known += 1
        state.slots[slot].value = value
    state.slots[slot].state = answer


@partial(inner_kernel, inline=False)
def _learn_attached(state, user, router, slot, count):
    """A router learns from the ratings that a user attached to a profile which carries his count of that moment.

    What he has given or changed since was not attached.
    """
    first = state.nodes[router].owned_start
    n_users = state.own_start.shape[0] - 1
    for offset in range(state.nodes[router].owned_count):
        profile = state.owned[first + offset]
        own = _own_position(state, user, profile - n_users)
        if own >= 0 and state.own_revision[own] <= count:
            _learn(state, profile, slot + offset, RATED, state.own_value[own])
        elif own < 0:
            _learn(state, profile, slot + offset, NOT_RATED, 0.0)


@partial(inner_kernel, inline=False)
def _disclose_attached(state, edge):
    """Note that a user sends to a router, over `edge`, his ratings of all items hosted there."""
    link = state.edges[edge]
    first = state.nodes[link.receiver].owned_start
    n_users = state.own_start.shape[0] - 1
    for offset in range(state.nodes[link.receiver].owned_count):
        own = _own_position(state, link.sender, state.owned[first + offset] - n_users)
        if own >= 0:
            _disclose(state, own, link.receiver)
    link.disclosed = link.attached


@inner_kernel
def _disclose(state, own, router):
    """Note that own rating number `own` has been sent to a router."""
    row = state.disclosures[own]
    if row.last != router and row.before_last != router:
        row.before_last = row.last
        row.last = router
        row.routers += 1


@inner_kernel
def _own_position(state, user, item):
    """Number of a user's own rating of an item, by bisection; -1 where he has not rated it (yet)."""
    low, high = state.own_start[user], state.own_start[user + 1]
    while low < high:
        middle = (low + high) // 2
        if state.own_item[middle] < item:
            low = middle + 1
        else:
            high = middle
    if low < state.own_start[user + 1] and state.own_item[low] == item and state.own_known[low]:
        return low
    return -1
