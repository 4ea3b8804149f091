"""What happens at one moment when a rating is given or changed, or a user or an item joins."""

import math
from functools import partial

import numpy as np

from algorithms.compilation import kernel
from netsim import sessions
from netsim.finding import enlist_kept, kept_place
from netsim.prequential import note
from netsim.state import CHANGE, DISCLOSURE, FIND, RATED, UNBORN
from netsim.tables import Tables

__all__ = ["arrive", "give_rating", "join_item", "join_user"]

LARGEST_COUNT = 2**31  # what a slot can hold


def give_rating(tables: Tables, user: int, item: int, place: int | None, value: float) -> bool:
    """Let a user rate an item, or change his rating; both join if they have not yet.

    The routers learn of it by the protocol: his profiles carry a higher count. Where contact lists are those of the
    ratings, the item's router and the user enter each other's.

    Parameters
    ----------
    user, item : int
    place : int or None
        Number of the pair among the own ratings, where it is there.
    value : float

    Returns
    -------
    bool
        Whether the user's contact list or edges had to be made, which an engine must be told.
    """
    made = False
    if place is None:
        place, made = _foresee(tables, user, item), len(tables.state.finds) > 0
    state, profile = tables.state, tables.n_users + item
    if state.own_count[user] + CHANGE >= LARGEST_COUNT and state.own_known[place]:
        times = int(state.own_count[user]) // CHANGE
        raise ValueError(f"user number {user} cannot change his ratings more than {times} times; change fewer")
    router = int(state.profiles["node"][profile])
    up, down = tables.edge_between(user, router), tables.edge_between(router, user)
    changed = _enter(state, user, profile, place, value, -1 if up is None else up, -1 if down is None else down)
    if changed:
        return made
    if down is None and state.settings["heard_users"][0]:
        tables.foresee_raters(router, np.array([user]))
        made = True
    if state.settings["users_follow"][0]:
        made = tables.enlist(user, router) or made
    if _lists_more(tables.state, router):
        made = tables.enlist(router, user) or made
    return made


def _foresee(tables: Tables, user: int, item: int) -> int:
    """Make a place for a pair that nobody foresaw among the own ratings; returns its number."""
    place, state = tables.base.own.insert(user, item), tables.state
    nothing = np.zeros(1, dtype=DISCLOSURE)
    nothing["last"] = nothing["before_last"] = -1
    tables.put(disclosures=np.concatenate([state.disclosures[:place], nothing, state.disclosures[place:]]))
    tables.hold_own()
    if len(state.finds):
        fresh = np.zeros(1, dtype=FIND)
        fresh["asked"], fresh["listed"] = -np.inf, -1
        tables.put(finds=np.concatenate([state.finds[:place], fresh, state.finds[place:]]))
        tables.lead(np.array([place]))
    return place


@partial(kernel, inline=False)
def _enter(state, user, profile, place, value, up, down):
    """A user gives or changes a rating; he, the item and its router join, and the edges between the two know of it.

    `up` and `down` are the edges to the item's router and back, or -1. Returns whether he had given it before.
    """
    sessions.join(state, user)
    _join_item(state, profile)
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
def _lists_more(state, router):
    """Whether a router lists who rates its items, and has not listed as many as it may."""
    s = state.settings[0]
    return s.routers_follow and (s.router_cap < 0 or state.nodes[router].contact_count < s.router_cap)


@partial(kernel, inline=False)
def arrive(state, rooms, book, arrival):
    """A rating comes, or is changed, as `give_rating` does it; returns whether that was all.

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
    by_router = not known and _lists_more(state, router)
    if not known and (
        (s.heard_users and down < 0)
        or (by_user and kept_place(state, user, up, rooms[user]) < 0)
        or (by_router and kept_place(state, router, down, rooms[router]) < 0)
    ):
        return False
    note(book, state.values, arrival.time, user, profile, arrival.value, state.own_value[place] if known else math.nan)
    _enter(state, user, profile, place, arrival.value, up, down)
    if by_user:
        enlist_kept(state, user, up, rooms[user], arrival.time)
    if by_router:
        enlist_kept(state, router, down, rooms[router], arrival.time)
    return True


def join_user(tables: Tables, user: int) -> None:
    """Let a user join the network, unless he has."""
    sessions.join(tables.state, user)


def join_item(tables: Tables, item: int) -> None:
    """Let an item and, with its first one, its router join the network, unless they have."""
    _join_item(tables.state, tables.n_users + item)


@kernel
def _join_item(state, profile):
    if state.profiles[profile].incarnation == UNBORN:
        state.profiles[profile].incarnation = 0
        sessions.join(state, state.profiles[profile].node)
