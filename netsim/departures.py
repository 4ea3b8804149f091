"""Nodes that quit for good, and what becomes of the items that a router hosted."""

from collections.abc import Iterator

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.distributions import sample_each
from netsim import sessions
from netsim.crossing import send
from netsim.engines import Engine
from netsim.messages import HANDOVER, LOST_QUEUE, message_size
from netsim.placement import highest_weight
from netsim.state import UNBORN
from netsim.tables import Tables
from netsim.world import World

__all__ = ["depart", "departures"]


def departures(world: World, tables: Tables) -> Iterator[tuple[float, int]]:
    """When each node quits, in seconds, with its number; only those that ever do."""
    n_users, keys = tables.n_users, tables.nodes["key"]
    seed = tables.settings["seed"][0]
    for first, part, lifetime in (
        (0, keys[:n_users], world.user_lifetime),
        (n_users, keys[n_users:], world.router_lifetime),
    ):
        if lifetime is not None:
            times = sample_each(lifetime, seed, purposes.LIFETIME, part)  # type: ignore[arg-type]
            for number, time in enumerate(times.tolist()):
                yield time, first + number


def depart(world: World, tables: Tables, engine: Engine, node: int, now: float) -> None:
    """Let a node quit for good at `now`.

    It goes offline, broadcasts no more, and what arrives is lost. Those who have it in their contact list do not
    learn of it, unless its items move to other routers.
    """
    life = tables.life[node]
    if life["departed"]:
        return
    was_online = bool(tables.nodes["online"][node])
    life["departed"] = True
    sessions.settle(tables.state, node)
    if node >= tables.n_users and len(tables.finds):
        tables.replace_directory(node)
        engine.contacts_changed()
    if node >= tables.n_users and world.rehosting is not None:
        _rehost(tables, engine, node, now, with_profiles=was_online and world.rehosting == "handover")


def _rehost(tables: Tables, engine: Engine, quitter: int, now: float, *, with_profiles: bool) -> None:
    n_users = tables.n_users
    row = tables.nodes[quitter]
    profiles = tables.owned[row["owned_start"] : row["owned_start"] + row["owned_count"]].copy()
    staying = n_users + np.flatnonzero(~tables.life["departed"][n_users:] & tables.life["present"][n_users:])
    online = staying[tables.nodes["online"][staying]]
    candidates = online if len(online) else staying
    if len(candidates) == 0 or len(profiles) == 0:
        return
    seed = tables.settings["seed"][0]
    chosen = np.empty(len(profiles), dtype=np.int64)
    highest_weight(tables.profiles["key"][profiles], tables.nodes["key"][candidates], seed, purposes.HOSTING, chosen)
    heir_of = candidates[chosen]
    heirs = np.unique(heir_of)
    if with_profiles:
        for profile, heir in zip(profiles.tolist(), heir_of.tolist(), strict=True):
            if tables.profiles["incarnation"][profile] == UNBORN:
                continue
            _hand_over(tables, engine, quitter, heir, profile, now)
    for heir in heirs.tolist():
        engine.slots_moved(tables.move_items(heir, profiles[heir_of == heir] - n_users))
    row["owned_count"] = 0
    if tables.settings["heard_users"][0]:
        own = tables.base.own
        raters = np.repeat(np.arange(n_users), np.diff(own.start))
        for heir in heirs.tolist():
            moved = profiles[heir_of == heir] - n_users
            tables.foresee_raters(heir, np.unique(raters[np.isin(own.item, moved)]))
    _pass_on_contacts(tables, quitter, profiles - n_users, heir_of)
    _pass_on_knowledge(tables, quitter, profiles, heir_of)
    engine.contacts_changed()


def _hand_over(tables: Tables, engine: Engine, quitter: int, heir: int, profile: int, now: float) -> None:
    """Send the last profile of an item from the router that quits to the one that will host it."""
    edge = tables.edge_between(quitter, heir)
    if edge is None:
        edge = len(tables.edges)
        tables.add_edges(np.array([quitter]), np.array([heir]))
        engine.contacts_changed()
    state, own = tables.state, tables.profiles[profile]
    own["stamp"] += 1
    size = int(message_size(HANDOVER, int(state.settings[0]["rank"]), 0))
    seed, stamp = state.settings["seed"][0], own["stamp"]
    pair = np.uint64(combine(own["key"], state.nodes["key"][heir]))
    loss_word = np.uint64(draw(seed, purposes.HANDOVER_LOSS, pair, stamp))
    delay_word = np.uint64(draw(seed, purposes.HANDOVER_DELAY, pair, stamp))
    fate, arrival, copy_arrival = send(state, HANDOVER, edge, False, size, loss_word, delay_word, now)
    for time in (arrival, copy_arrival)[: 1 + (copy_arrival < np.inf)]:
        engine.post_handover(edge, profile, size, fate, time)
    if fate != LOST_QUEUE:
        state.nodes["profiles_sent"][quitter] += 1


def _pass_on_contacts(tables: Tables, quitter: int, items: np.ndarray, heir_of: np.ndarray) -> None:
    """Give those who had the quitter, or whom it had, the heirs of the items that they rated; all heirs if of none."""
    n_users, heirs = tables.n_users, np.unique(heir_of)
    edges, contacts = tables.edges, tables.contacts
    nodes = tables.nodes[:n_users]
    to_quitter = np.flatnonzero((edges["receiver"] == quitter) & (edges["sender"] < n_users))
    listed = np.isin(contacts, to_quitter)
    owner = np.full(len(contacts), -1)
    for user in np.unique(edges["sender"][contacts[listed]]).tolist():
        start = nodes[user]["contact_start"]
        owner[start : start + nodes[user]["contact_count"]] = user
    had = np.unique(owner[listed & (owner >= 0)])

    def heirs_for(user: int) -> np.ndarray:
        known, _ = tables.base.own.lookup(np.full(len(items), user), items)
        return np.unique(heir_of[known]) if known.any() else heirs

    new_contacts: dict[int, list[int]] = {heir: [] for heir in heirs.tolist()}
    for user in tables.contacts_of(quitter).tolist():
        for heir in heirs_for(user).tolist():
            new_contacts[heir].append(user)
    for user in had.tolist() if not len(tables.finds) else []:  # who looks for routers finds the heirs by himself
        kept = tables.contacts_of(user)
        tables.set_contacts(user, np.union1d(kept[kept != quitter], heirs_for(user)))
    for heir, users in new_contacts.items():
        tables.set_contacts(heir, np.union1d(tables.contacts_of(heir), np.array(users, dtype=np.int64)))


def _pass_on_knowledge(tables: Tables, quitter: int, profiles: np.ndarray, heir_of: np.ndarray) -> None:
    """Let users keep the stamps that they have taken of items that move; late profiles of the quitter meet them there.

    The profiles are in the order in which the quitter hosted them.
    """
    state = tables.state
    for old in np.flatnonzero((state.edges["sender"] == quitter) & (state.edges["receiver"] < tables.n_users)).tolist():
        user = int(state.edges["receiver"][old])
        for offset, (profile, heir) in enumerate(zip(profiles.tolist(), heir_of.tolist(), strict=True)):
            new = tables.edge_between(heir, user)
            if new is not None:
                here = int(state.edges["slot"][old]) + offset
                there = int(state.edges["slot"][new] + state.profiles["offset"][profile])
                tables.forward_slot(here, there)
