"""What happens at one moment when a rating is given or changed, or a user or an item joins."""

import numpy as np

from netsim import entering, sessions
from netsim.entering import LARGEST_COUNT
from netsim.state import CHANGE, DISCLOSURE, FIND
from netsim.tables import Tables

__all__ = ["give_rating", "join_item", "join_user"]


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
    changed = entering.enter(state, user, profile, place, value, -1 if up is None else up, -1 if down is None else down)
    if changed:
        return made
    if down is None and state.settings["heard_users"][0]:
        tables.foresee_raters(router, np.array([user]))
        made = True
    if state.settings["users_follow"][0]:
        made = tables.enlist(user, router) or made
    if entering.lists_more(tables.state, router):
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


def join_user(tables: Tables, user: int) -> None:
    """Let a user join the network, unless he has."""
    sessions.join(tables.state, user)


def join_item(tables: Tables, item: int) -> None:
    """Let an item and, with its first one, its router join the network, unless they have."""
    entering.join_item(tables.state, tables.n_users + item)
