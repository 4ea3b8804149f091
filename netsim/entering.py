"""What changes in the state when a rating comes or is changed, or an item joins; nothing here makes edges or lists."""

import math
from functools import partial

from algorithms.compilation import kernel
from netsim.book import note
from netsim.finding import enlist_kept, kept_place
from netsim.sessions import join
from netsim.state import CHANGE, RATED, UNBORN

__all__ = ["LARGEST_COUNT", "arrive", "enter", "join_item", "lists_more"]

LARGEST_COUNT = 2**31  # what a slot can hold


@partial(kernel, inline=False)
def arrive(state, rooms, book, arrival):
    """A rating comes, or is changed, as `netsim.growth.give_rating` does it; returns whether that was all.

    If edges or lists would have to be made, nothing is done, and the caller has `give_rating` do it. What has come
    already, or would come from a user who has quit, comes to nothing.

    Parameters
    ----------
    state : State
    rooms : int64, shape (n_nodes,)
        Length that each contact list can grow to in its place.
    book : Book
        With room for a further row.
    arrival : ARRIVAL
    """
    s, place, user, profile = state.settings[0], arrival.place, arrival.user, arrival.profile
    known = place >= 0 and state.own_known[place]
    if state.life[user].departed or (known and not arrival.change):
        return True
    if place < 0 or (known and state.own_count[user] + CHANGE >= LARGEST_COUNT):
        return False
    router, up, down = state.profiles[profile].node, arrival.up, arrival.down
    by_user = not known and s.users_follow
    by_router = not known and lists_more(state, router)
    if not known and (
        (s.heard_users and down < 0)
        or (by_user and kept_place(state, user, up, rooms[user]) < 0)
        or (by_router and kept_place(state, router, down, rooms[router]) < 0)
    ):
        return False
    note(book, state.values, arrival.time, user, profile, arrival.value, state.own_value[place] if known else math.nan)
    enter(state, user, profile, place, arrival.value, up, down)
    if by_user:
        enlist_kept(state, user, up, rooms[user], arrival.time)
    if by_router:
        enlist_kept(state, router, down, rooms[router], arrival.time)
    return True


@partial(kernel, inline=False)
def enter(state, user, profile, place, value, up, down):
    """A user gives or changes a rating; he, the item and its router join, and the edges between the two know of it.

    `up` and `down` are the edges to the item's router and back, or -1. Returns whether he had given it before.
    """
    join(state, user)
    join_item(state, profile)
    known = state.own_known[place]
    state.own_value[place] = value
    if known:
        state.own_count[user] += CHANGE
    else:
        state.own_known[place] = True
        state.own_count[user] += 1
        state.profiles[user].known += 1
        if up >= 0:
            state.edges[up].attached += 1
    state.own_revision[place] = state.own_count[user]
    if down >= 0:
        slot = state.edges[down].slot + state.profiles[profile].offset
        state.slots[slot].state, state.slots[slot].value = RATED, value
        if state.saved_slots.shape[0] > 0:
            state.saved_slots[slot].state, state.saved_slots[slot].value = RATED, value
    return known


@kernel
def lists_more(state, router):
    """Whether a router lists who rates its items, and has not listed as many as it may."""
    s = state.settings[0]
    return s.routers_follow and (s.router_cap < 0 or state.nodes[router].contact_count < s.router_cap)


@kernel
def join_item(state, profile):
    """Let an item and, with its first one, its router join the network, unless they have."""
    if state.profiles[profile].incarnation == UNBORN:
        state.profiles[profile].incarnation = 0
        join(state, state.profiles[profile].node)
