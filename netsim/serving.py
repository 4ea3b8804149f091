"""Recommendation requests: a user asks the router of an item for its profile and predicts his rating of it.

Section 3 of the first seed paper: "he just need to request the profile parameter v_j from the router which hosts it".
A *wish* is numbered by its user; it is asked for with a time-out and retries, and ends served or not.
"""

import math
from functools import partial

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw, uniform
from algorithms.compilation import inner_kernel, kernel
from algorithms.updates import inner
from netsim.accounting import account
from netsim.crossing import of_copy, send
from netsim.finding import hear
from netsim.messages import (
    ANSWER,
    CONTROL,
    LOST_LINK,
    LOST_OFFLINE,
    LOST_QUEUE,
    QUERY,
    STALE,
    message_size,
)
from netsim.state import ATTEMPTS, NOTHING, OPEN, REFUSED, SERVED, TIMED_OUT, UNBORN, WISHES

__all__ = [
    "ask",
    "begin_wish",
    "expire",
    "fill_wish",
    "next_wish",
    "open_wish",
    "router_takes_query",
    "user_takes_answer",
]


@kernel
def next_wish(state, user, number, previous):
    """Time in seconds of wish number `number` (from 0) of a user, where the one before was at `previous`."""
    seed, key = state.settings[0].seed, state.nodes[user].key
    return previous - state.settings[0].wish_gap * math.log(uniform(draw(seed, purposes.WISH_GAP, key, number)))


@inner_kernel
def _place(state, user, number):
    """Row of an open wish by its number, or of one that is free for number -1; -1 where there is none."""
    for n in range(user * WISHES, (user + 1) * WISHES):
        if state.wishes[n].is_open:
            if state.wishes[n].number == number:
                return n
        elif number == -1:
            return n
    return -1


@partial(kernel, inline=False)
def begin_wish(state, user, number, now, row):
    """Let a user wish for the profile of an item; one who is offline wishes nothing.

    Parameters
    ----------
    user, number : int
    now : float64
    row : WISH_ROW, shape (1,)
        Filled where the wish is refused at once, as too many of this user are open.

    Returns
    -------
    int
        OPEN where he must ask now, REFUSED where the row is filled, NOTHING else.
    """
    if not state.nodes[user].online:
        return NOTHING
    first, last = state.target_start[user], state.target_start[user + 1]
    word = draw(state.settings[0].seed, purposes.WISH_TARGET, state.nodes[user].key, number)
    target = first + np.int64(uniform(word) * (last - first))
    if not open_wish(state, user, number, target, now):
        fill_wish(state, user, number, target, 0, now, now, math.nan, REFUSED, row)
        return REFUSED
    return OPEN


@kernel
def open_wish(state, user, number, target, now):
    """Open a wish for a target; returns whether there was a place for it."""
    place = _place(state, user, -1)
    if place < 0:
        return False
    wish = state.wishes[place]
    wish.number, wish.target, wish.asked, wish.attempt, wish.is_open = number, target, now, 0, True
    return True


@partial(kernel, inline=False)
def ask(state, user, number, now):
    """Send a query for an open wish.

    Returns
    -------
    edge, profile, stamp, size : int
        Of the query.
    fate : int
    arrival, copy_arrival : float64
        As `cross` gives them.
    """
    wish = state.wishes[_place(state, user, number)]
    target = state.targets[wish.target]
    edge, profile = np.int64(target.edge), state.own_start.shape[0] - 1 + np.int64(target.item)
    stamp = number * ATTEMPTS + wish.attempt
    size = message_size(QUERY, state.settings[0].rank, 1)
    pair = combine(state.nodes[user].key, state.edges[edge].receiver_key)
    fate, arrival, copy_arrival = send(
        state,
        QUERY,
        edge,
        False,
        size,
        draw(state.settings[0].seed, purposes.QUERY_LOSS, pair, stamp),
        draw(state.settings[0].seed, purposes.QUERY_DELAY, pair, stamp),
        now,
    )
    return edge, profile, stamp, size, fate, arrival, copy_arrival


@partial(kernel, inline=False)
def expire(state, user, number, attempt, now, row):
    """The time-out of an attempt is over.

    Returns
    -------
    int
        OPEN where the user must ask again now, TIMED_OUT where the row is filled, NOTHING else.
    """
    place = _place(state, user, number)
    if place < 0 or state.wishes[place].attempt != attempt:
        return NOTHING
    wish = state.wishes[place]
    if attempt < state.settings[0].retries and state.nodes[user].online:
        wish.attempt += 1
        return OPEN
    wish.is_open = False
    fill_wish(state, user, number, wish.target, attempt + 1, wish.asked, now, math.nan, TIMED_OUT, row)
    return TIMED_OUT


@partial(kernel, inline=False)
def router_takes_query(state, edge, router, profile, stamp, copy, size, now):
    """A router is asked for the profile of an item, and answers if it hosts it.

    `copy` is 1 for the second copy that the network made of the query, else 0; its answer has draws of its own.

    Returns
    -------
    fate : int
        Of the query.
    answers : bool
        Whether an answer is sent.
    answer_size, answer_fate : int
    arrival, copy_arrival : float64
    """
    if not state.nodes[router].online:
        account(state, QUERY, LOST_OFFLINE, size)
        return LOST_OFFLINE, False, 0, LOST_LINK, math.inf, math.inf
    account(state, QUERY, CONTROL, size)
    hear(state, edge, False, now)
    if state.profiles[profile].node != router or state.profiles[profile].incarnation == UNBORN:
        return CONTROL, False, 0, LOST_LINK, math.inf, math.inf
    link = state.edges[edge]
    answer_size = message_size(ANSWER, state.settings[0].rank, 0)
    pair = combine(link.receiver_key, state.nodes[link.sender].key)
    fate, arrival, copy_arrival = send(
        state,
        ANSWER,
        edge,
        True,
        answer_size,
        of_copy(draw(state.settings[0].seed, purposes.ANSWER_LOSS, pair, stamp), copy),
        of_copy(draw(state.settings[0].seed, purposes.ANSWER_DELAY, pair, stamp), copy),
        now,
    )
    if fate != LOST_QUEUE:
        state.nodes[router].profiles_sent += 1
    return CONTROL, True, answer_size, fate, arrival, copy_arrival


@partial(kernel, inline=False)
def user_takes_answer(state, edge, user, stamp, payload, size, now, row):
    """A user receives the profile that he asked for and predicts his rating; the first answer to a wish serves it.

    Returns
    -------
    fate : int
        CONTROL where it serves a wish, and the row is filled; STALE where it comes too late.
    """
    number = stamp // ATTEMPTS
    place = _place(state, user, number)
    if state.nodes[user].online:
        hear(state, edge, True, now)
    if not state.nodes[user].online:
        fate = LOST_OFFLINE
    elif place < 0:
        fate = STALE
    else:
        fate = CONTROL
        wish = state.wishes[place]
        wish.is_open = False
        predicted = inner(state.values[user], payload)
        fill_wish(state, user, number, wish.target, wish.attempt + 1, wish.asked, now, predicted, SERVED, row)
    account(state, ANSWER, fate, size)
    return fate


@kernel
def fill_wish(state, user, number, target, attempts, asked, finished, predicted, outcome, row):
    """Write down how a wish ended."""
    log = row[0]
    log.user = user
    log.number = number
    log.item = state.targets[target].item
    log.attempts = attempts
    log.asked = asked
    log.finished = finished
    log.predicted = predicted
    log.rating = state.targets[target].rating
    log.outcome = outcome
