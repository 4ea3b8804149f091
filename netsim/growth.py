"""What happens at one moment when a rating is given or changed, or a user or an item joins."""

import numpy as np

from netsim import sessions
from netsim.state import CHANGE, DISCLOSURE, FIND, RATED, UNBORN
from netsim.tables import Tables

__all__ = ["give_rating", "join_item", "join_user"]

LARGEST_COUNT = 2**31  # what a slot can hold


def give_rating(tables: Tables, user: int, item: int, value: float) -> bool:
    """Let a user rate an item, or change his rating; both join if they have not yet.

    The routers learn of it by the protocol: his profiles carry a higher count. Where contact lists are those of the
    ratings, the item's router and the user enter each other's.

    Parameters
    ----------
    user, item : int
    value : float

    Returns
    -------
    bool
        Whether the user's contact list or edges had to be made, which an engine must be told.
    """
    join_user(tables, user)
    join_item(tables, item)
    state, own, profile, made = tables.state, tables.base.own, tables.n_users + item, False
    place = own.position(user, item)
    if place is None:
        place = own.insert(user, item)
        nothing = np.zeros(1, dtype=DISCLOSURE)
        nothing["last"] = nothing["before_last"] = -1
        disclosures = np.concatenate([state.disclosures[:place], nothing, state.disclosures[place:]])
        tables.put(disclosures=disclosures)
        tables.hold_own()
        if len(state.finds):
            fresh = np.zeros(1, dtype=FIND)
            fresh["asked"], fresh["listed"] = -np.inf, -1
            tables.put(finds=np.concatenate([state.finds[:place], fresh, state.finds[place:]]))
            tables.lead(np.array([place]))
            made = True
        state = tables.state
    known = bool(own.known[place])
    own.value[place] = value
    router = int(state.profiles["node"][profile])
    if known:
        if state.own_count[user] + CHANGE >= LARGEST_COUNT:
            times = int(state.own_count[user]) // CHANGE
            raise ValueError(f"user number {user} cannot change his ratings more than {times} times; change fewer")
        state.own_count[user] += CHANGE
    else:
        own.known[place] = True
        state.own_count[user] += 1
        state.profiles["known"][user] += 1
    own.revision[place] = state.own_count[user]
    down = tables.edge_between(router, user)
    if down is not None:
        slot = int(state.edges["slot"][down] + state.profiles["offset"][profile])
        state.slots["state"][slot], state.slots["value"][slot] = RATED, value
        if len(state.saved_slots):
            state.saved_slots["state"][slot], state.saved_slots["value"][slot] = RATED, value
    if known:
        return made
    if state.settings["heard_users"][0] and tables.edge_between(router, user) is None:
        tables.foresee_raters(router, np.array([user]))
        made = True
    up = tables.edge_between(user, router)
    if up is not None:
        state.edges["attached"][up] += 1
    if tables.users_follow:
        made = tables.enlist(user, router) or made
    if tables.routers_follow and _has_room(tables, router):
        made = tables.enlist(router, user) or made
    return made


def _has_room(tables: Tables, router: int) -> bool:
    return tables.router_cap is None or int(tables.nodes["contact_count"][router]) < tables.router_cap


def join_user(tables: Tables, user: int) -> None:
    """Let a user join the network, unless he has."""
    sessions.join(tables.state, user)


def join_item(tables: Tables, item: int) -> None:
    """Let an item and, with its first one, its router join the network, unless they have."""
    state, profile = tables.state, tables.n_users + item
    if state.profiles["incarnation"][profile] == UNBORN:
        state.profiles["incarnation"][profile] = 0
        sessions.join(state, int(state.profiles["node"][profile]))
