"""Contact lists that nodes keep by themselves: look-ups of routers, who is heard of, who is dropped.

A user who has rated an item asks the *directory* of that item which router hosts it. The directory of an item is a
router too, the one with the highest random weight for that purpose; the question and the answer travel as messages.
"""

import math
from functools import partial

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import inner_kernel, kernel
from netsim.accounting import account
from netsim.crossing import of_copy, send
from netsim.messages import (
    CONTROL,
    FOUND,
    LOOKUP,
    LOST_LINK,
    LOST_OFFLINE,
    STALE,
    message_size,
)

__all__ = [
    "enlist",
    "enlist_kept",
    "hear",
    "kept_place",
    "look_up",
    "next_unknown",
    "router_takes_lookup",
    "tidy",
    "user_takes_found",
]


@kernel
def hear(state, edge, back, now):
    """Note that something has arrived over an edge, or back over it: its receiver has heard of its sender."""
    if state.heard.shape[0] > 0:
        own = edge if back else state.reverse[edge]
        if own >= 0:
            state.heard[own] = now


@kernel
def enlist(state, node, edge, now):
    """Put an edge into the contact list of its sender, ascending by receiver; there is room for it."""
    row = state.nodes[node]
    receiver = state.edges[edge].receiver
    place = row.contact_start + row.contact_count
    while place > row.contact_start and state.edges[state.contacts[place - 1]].receiver > receiver:
        place -= 1
    if state.heard.shape[0] > 0:
        state.heard[edge] = now
    if place > row.contact_start and state.contacts[place - 1] == edge:
        return
    for n in range(row.contact_start + row.contact_count, place, -1):
        state.contacts[n] = state.contacts[n - 1]
    state.contacts[place] = edge
    row.contact_count += 1


@partial(kernel, inline=False)
def kept_place(state, node, edge, room):
    """Where an edge stands in the contact list of a node, or behind it where a place is kept; -1 where it does not."""
    row = state.nodes[node]
    for n in range(row.contact_start, row.contact_start + max(row.contact_count, room)):
        if edge >= 0 and state.contacts[n] == edge:
            return n
    return -1


@partial(kernel, inline=False)
def enlist_kept(state, node, edge, room, now):
    """Put an edge for which a place is kept into the contact list of its sender; returns whether there is such a place.

    `room` is the length that the list can grow to; edges that wait to be listed stand behind it.
    """
    end, row = kept_place(state, node, edge, room), state.nodes[node]
    if end < 0:
        return False
    if end >= row.contact_start + row.contact_count:
        place, first = row.contact_start + row.contact_count, row.contact_start
        while place > first and state.edges[state.contacts[place - 1]].receiver >= state.edges[edge].receiver:
            place -= 1
        for n in range(end, place, -1):
            state.contacts[n] = state.contacts[n - 1]
        state.contacts[place] = edge
        row.contact_count += 1
        if state.heard.shape[0] > 0:
            state.heard[edge] = now
    return True


@partial(kernel, inline=False)
def tidy(state, node, tick, patience, now):
    """Let an online node drop the contacts that it has not heard of for longer than its patience, in seconds.

    Time offline does not count: after it, every contact is given the whole time anew.
    """
    row, life = state.nodes[node], state.life[node]
    away = life.ticked != tick - 1
    life.ticked = tick
    kept = 0
    for n in range(row.contact_count):
        edge = state.contacts[row.contact_start + n]
        if away:
            state.heard[edge] = now
        if now - state.heard[edge] > patience:
            _forget(state, node, edge)
        else:
            state.contacts[row.contact_start + kept] = edge
            kept += 1
    row.contact_count = kept


@inner_kernel
def _forget(state, node, edge):
    """A user no longer knows the router of what he found there."""
    if node < state.own_count.shape[0] and state.finds.shape[0] > 0:
        for own in range(state.own_start[node], state.own_start[node + 1]):
            if state.finds[own].listed == edge:
                state.finds[own].listed = -1
                state.finds[own].asked = -math.inf


@partial(kernel, inline=False)
def next_unknown(state, user, now):
    """Number of the user's rating whose router he should ask for next; -1 where there is none to ask for now.

    The one that he has not asked for longest, and the first of several.
    """
    found = np.int64(-1)
    for n in range(state.own_start[user], state.own_start[user + 1]):
        find = state.finds[n]
        due = now - find.asked >= state.settings[0].lookup_timeout
        if state.own_known[n] and find.listed < 0 and due and (found < 0 or find.asked < state.finds[found].asked):
            found = np.int64(n)
    return found


@partial(kernel, inline=False)
def look_up(state, user, own, tick, now):
    """Let a user ask the directory for the router of an item that he rated.

    Returns
    -------
    edge, profile, size, fate : int
    arrival, copy_arrival : float64
        As `cross` gives them.
    """
    find = state.finds[own]
    find.asked = now
    edge = np.int64(find.directory)
    profile = state.own_start.shape[0] - 1 + np.int64(state.own_item[own])
    size = message_size(LOOKUP, state.settings[0].rank, 1)
    pair = combine(state.profiles[profile].key, state.nodes[user].key)
    seed = state.settings[0].seed
    fate, arrival, copy_arrival = send(
        state,
        LOOKUP,
        edge,
        False,
        size,
        draw(seed, purposes.LOOKUP_LOSS, pair, tick),
        draw(seed, purposes.LOOKUP_DELAY, pair, tick),
        now,
    )
    return edge, profile, size, fate, arrival, copy_arrival


@partial(kernel, inline=False)
def router_takes_lookup(state, edge, router, profile, stamp, copy, size, now):
    """A directory is asked which router hosts an item, and answers.

    `copy` is 1 for the second copy that the network made of the look-up, else 0; its answer has draws of its own.

    Returns
    -------
    fate : int
        Of the look-up.
    host : int
        Node of the router that hosts the item now.
    found_size, found_fate : int
    arrival, copy_arrival : float64
    """
    if not state.nodes[router].online:
        account(state, LOOKUP, LOST_OFFLINE, size)
        return LOST_OFFLINE, 0, 0, LOST_LINK, math.inf, math.inf
    account(state, LOOKUP, CONTROL, size)
    hear(state, edge, False, now)
    host = state.profiles[profile].node
    link = state.edges[edge]
    found_size = message_size(FOUND, state.settings[0].rank, 2)
    pair = combine(state.profiles[profile].key, state.nodes[link.sender].key)
    seed = state.settings[0].seed
    fate, arrival, copy_arrival = send(
        state,
        FOUND,
        edge,
        True,
        found_size,
        of_copy(draw(seed, purposes.FOUND_LOSS, pair, stamp), copy),
        of_copy(draw(seed, purposes.FOUND_DELAY, pair, stamp), copy),
        now,
    )
    return CONTROL, host, found_size, fate, arrival, copy_arrival


@partial(kernel, inline=False)
def user_takes_found(state, way, user, profile, host, size, now):
    """A user learns, over the edge `way` back from the directory, which router hosts an item, and lists it.

    Returns
    -------
    fate : int
        STALE where the item has moved on since.
    """
    item = profile - (state.own_start.shape[0] - 1)
    fate = CONTROL
    if not state.nodes[user].online:
        fate = LOST_OFFLINE
    else:
        hear(state, way, True, now)
        edge = np.int64(-1)
        for own in range(state.own_start[user], state.own_start[user + 1]):
            if state.own_item[own] == item:
                edge = np.int64(state.finds[own].edge)
        if edge < 0 or state.edges[edge].receiver != host:
            fate = STALE
        else:
            enlist(state, user, edge, now)
            # The router may host more of what he rated.
            for own in range(state.own_start[user], state.own_start[user + 1]):
                if state.finds[own].edge == edge:
                    state.finds[own].listed = edge
    account(state, FOUND, fate, size)
    return fate
