"""The state of a world at time 0, and what changes of it replace arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys, seed_word
from algorithms.distributions import Constant, Uniform, compile_distributions, sample_each
from algorithms.learning import initial_profiles
from algorithms.ratings import Ratings
from netsim.churn import OnOff, first_online
from netsim.contacts import GivenContacts, Hosting
from netsim.messages import FATES, MESSAGE_KINDS, NUMBER, PROFILE, message_size
from netsim.placement import highest_weight
from netsim.rules import DELAY, LOSS, UPDATE, rule_address
from netsim.state import DISCLOSURE, EDGE, NODE, NOT_RATED, PROFILE_ROW, RATED, SETTINGS, SLOT, UNASKED, State
from netsim.timers import Periodic, Timer
from netsim.world import World

__all__ = ["Tables", "build_tables"]


@dataclass
class Tables:
    """All state of a running network: the arrays of `State`, and what edges are made from.

    A change of contacts or delays replaces some of the arrays; `state` gives those of the moment.
    """

    settings: np.ndarray
    laws: np.ndarray
    pool: np.ndarray
    values: np.ndarray
    profiles: np.ndarray
    nodes: np.ndarray
    owned: np.ndarray
    contacts: np.ndarray
    edges: np.ndarray
    slots: np.ndarray
    own_start: np.ndarray
    own_item: np.ndarray
    own_value: np.ndarray
    disclosures: np.ndarray
    accounts: np.ndarray
    updates: np.ndarray
    base: "Base"

    def state(self) -> State:
        """The arrays of this moment."""
        return State(**{name: getattr(self, name) for name in State._fields})

    @property
    def n_users(self) -> int:
        """Number of users; node and profile numbers below it are users'."""
        return len(self.own_start) - 1

    def profile_bytes(self) -> np.ndarray:
        """Bytes of profile that each node sent so far, headers aside; int64, shape (n_nodes,)."""
        return self.nodes["profiles_sent"] * (NUMBER * int(self.settings[0]["rank"]))

    def edge_between(self, sender: int, receiver: int) -> int | None:
        """The edge between two nodes, if there ever was one."""
        found = np.flatnonzero((self.edges["sender"] == sender) & (self.edges["receiver"] == receiver))
        return int(found[0]) if len(found) else None

    def set_contacts(self, node: int, receivers: np.ndarray) -> None:
        """Give a node another contact list; edges that it had before keep their state.

        Parameters
        ----------
        node : int
        receivers : int64, shape (n,)
            Nodes of the other role.
        """
        receivers = np.unique(receivers)
        existing = {r: self.edge_between(node, r) for r in receivers.tolist()}
        fresh = np.array([r for r, edge in existing.items() if edge is None], dtype=np.int64)
        edges, slots = self.base.make_edges(np.full(len(fresh), node), fresh, len(self.slots))
        existing |= {r: len(self.edges) + n for n, r in enumerate(fresh.tolist())}
        self.edges, self.slots = np.concatenate([self.edges, edges]), np.concatenate([self.slots, slots])
        row = self.nodes[node]
        row["contact_start"], row["contact_count"] = len(self.contacts), len(receivers)
        self.contacts = np.concatenate(
            [self.contacts, np.array([existing[r] for r in receivers.tolist()], dtype=np.int64)]
        )


@dataclass
class Base:
    """Placement, paths and hosting: what the edges of any contact list are made from.

    Attributes
    ----------
    ratings : Ratings
    hosted : int64, shape (n_items,)
        Items grouped by router.
    hosted_start : int64, shape (n_routers + 1,)
    user_row, router_row : int64
        Row of each user's place in `up`, and of each router's in `down`.
    up : float64, shape (places of users, places of routers)
    down : float64, shape (places of routers, places of users)
        Path latencies in seconds.
    access : float64, shape (n_nodes,)
        Access delay of each node in seconds.
    node_keys : uint64, shape (n_nodes,)
    """

    ratings: Ratings
    hosted: np.ndarray
    hosted_start: np.ndarray
    user_row: np.ndarray
    router_row: np.ndarray
    up: np.ndarray
    down: np.ndarray
    access: np.ndarray
    node_keys: np.ndarray

    def make_edges(self, sender: np.ndarray, receiver: np.ndarray, first_slot: int) -> tuple[np.ndarray, np.ndarray]:
        """Edges and slots between the given nodes, as they are before anything was sent.

        Parameters
        ----------
        sender, receiver : int64, shape (n,)
            One of each pair is a user, the other a router.
        first_slot : int
            Number of slots that exist already.
        """
        n_users = self.ratings.n_users
        upward = sender < n_users
        user = np.where(upward, sender, receiver)
        router = np.where(upward, receiver, sender) - n_users
        access = self.access[sender] + self.access[receiver]
        up = self.up[self.user_row[user], self.router_row[router]] + access
        down = self.down[self.router_row[router], self.user_row[user]] + access

        edges = np.zeros(len(sender), dtype=EDGE)
        edges["sender"], edges["receiver"] = sender, receiver
        edges["base"], edges["back"] = np.where(upward, up, down), np.where(upward, down, up)
        edges["receiver_key"] = self.node_keys[receiver]
        n_items = np.diff(self.hosted_start)[router]
        n_slots = np.maximum(n_items, 1)
        ends = np.cumsum(n_slots)
        first = ends - n_slots
        edges["slot"] = first_slot + first

        slots = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=SLOT)
        slots["deadline"] = -np.inf
        edge_of = np.repeat(np.arange(len(sender)), n_items)
        offset = np.arange(len(edge_of)) - (np.cumsum(n_items) - n_items)[edge_of]
        item = self.hosted[self.hosted_start[router][edge_of] + offset]
        known, value = self.lookup(user[edge_of], item)
        # A user knows his own ratings; a router has asked for none.
        downward = ~upward[edge_of]
        slot = first[edge_of] + offset
        slots["state"][slot] = np.where(downward, np.where(known, RATED, NOT_RATED), UNASKED)
        slots["value"][slot] = np.where(downward & known, value, 0.0)
        edges["attached"] = np.bincount(edge_of[known & ~downward], minlength=len(sender))
        return edges, slots

    def lookup(self, user: np.ndarray, item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user rated each item, and the rating (0 where he did not)."""
        ratings = self.ratings
        if len(ratings) == 0:
            return np.zeros(len(user), dtype=bool), np.zeros(len(user))
        order = ratings.user * ratings.n_items + ratings.item
        wanted = user * ratings.n_items + item
        position = np.minimum(np.searchsorted(order, wanted), len(order) - 1)
        known = order[position] == wanted
        return known, np.where(known, ratings.value[position], 0.0)


def build_tables(world: World, seed: Any) -> Tables:
    """Build the state of a world at time 0.

    Parameters
    ----------
    world : World
    seed : int or anything `numpy.random.default_rng` takes

    Raises
    ------
    ValueError
        If placement, hosting or contacts name a node or place that is not there.
    """
    word = seed_word(seed)
    ratings, learning = world.ratings, world.learning
    router_ids = world.router_ids
    n_users, n_items, n_routers = ratings.n_users, ratings.n_items, len(router_ids)
    user_keys = entity_keys(USER, ratings.user_ids)
    item_keys = entity_keys(ITEM, ratings.item_ids)
    router_keys = entity_keys(ROUTER, router_ids)
    node_keys = np.concatenate([user_keys, router_keys])

    laws, pool = compile_distributions([Constant(0.0) if callable(world.delay) else world.delay])  # type: ignore[list-item]
    host = _hosts(world, item_keys, router_keys, word)
    hosted = np.argsort(host, kind="stable")
    hosted_start = np.searchsorted(host[hosted], np.arange(n_routers + 1))

    places = world.placement.places(world.topology, node_keys, ratings.user_ids, router_ids, word)  # type: ignore[arg-type]
    user_places, user_row = np.unique(places[:n_users], return_inverse=True)
    router_places, router_row = np.unique(places[n_users:], return_inverse=True)
    base = Base(
        ratings=ratings,
        hosted=hosted,
        hosted_start=hosted_start,
        user_row=user_row,
        router_row=router_row,
        up=world.topology.path_latency(user_places, router_places),  # type: ignore[union-attr]
        down=world.topology.path_latency(router_places, user_places),  # type: ignore[union-attr]
        access=sample_each(world.access, word, purposes.ACCESS_DELAY, node_keys),  # type: ignore[arg-type]
        node_keys=node_keys,
    )

    lists = _contact_lists(world, Hosting(ratings, host, ratings.user_ids, router_ids, user_keys, router_keys, word))
    counts = np.array([len(contacts) for contacts in lists], dtype=np.int64)
    sender = np.repeat(np.arange(n_users + n_routers), counts)
    receiver = np.concatenate(lists).astype(np.int64)
    edges, slots = base.make_edges(sender, receiver, 0)

    nodes = np.zeros(n_users + n_routers, dtype=NODE)
    nodes["key"] = node_keys
    nodes["contact_count"] = counts
    nodes["contact_start"] = np.cumsum(counts) - counts
    nodes["owned_count"][:n_users] = 1
    nodes["owned_count"][n_users:] = np.diff(hosted_start)
    nodes["owned_start"] = np.cumsum(nodes["owned_count"]) - nodes["owned_count"]
    users, routers = nodes[:n_users], nodes[n_users:]
    users["fan_out"], routers["fan_out"] = world.user_fan_out or 0, world.router_fan_out or 0
    _set_timer(users, world.user_broadcast, word)  # type: ignore[arg-type]
    _set_timer(routers, world.router_broadcast, word)  # type: ignore[arg-type]
    _set_churn(users, world.user_churn, word)
    _set_churn(routers, world.router_churn, word)

    profiles = np.zeros(n_users + n_items, dtype=PROFILE_ROW)
    profiles["key"] = np.concatenate([user_keys, item_keys])
    profiles["node"] = np.concatenate([np.arange(n_users), n_users + host])
    profiles["offset"][n_users + hosted] = np.arange(n_items) - hosted_start[host[hosted]]
    profiles["known"][:n_users] = np.diff(ratings.by_user.start)
    profiles["rate"] = sample_each(learning.rate, word, purposes.LEARNING_RATE, node_keys)[profiles["node"]]  # type: ignore[arg-type]

    settings = np.zeros(1, dtype=SETTINGS)
    settings["seed"] = word
    settings["rank"] = learning.rank
    for name, value in learning.codes().items():
        settings[name] = value
    settings["discard_stale"] = world.discard_stale
    settings["attach_ratings"] = world.rating_exchange == "attach"
    settings["request_timeout"] = world.request_timeout
    settings["minimum_delay"] = world.minimum_delay
    settings["loss"] = 0.0 if callable(world.loss) else world.loss
    for name, rule, kind in (
        ("user_rule", world.update_user, UPDATE),
        ("item_rule", world.update_item, UPDATE),
        ("delay_rule", world.delay if callable(world.delay) else None, DELAY),
        ("loss_rule", world.loss if callable(world.loss) else None, LOSS),
    ):
        settings[name] = 0 if rule is None else rule_address(rule, kind)
    settings["profile_size"] = message_size(PROFILE, learning.rank, 0)

    return Tables(
        settings=settings,
        laws=laws,
        pool=pool,
        values=initial_profiles(profiles["key"], learning, (ratings.scale.low, ratings.scale.high), seed=word),
        profiles=profiles,
        nodes=nodes,
        owned=np.concatenate([np.arange(n_users), n_users + hosted]),
        contacts=np.arange(len(edges)),
        edges=edges,
        slots=slots,
        own_start=np.array(ratings.by_user.start),
        own_item=np.array(ratings.by_user.index),
        own_value=np.array(ratings.by_user.value),
        disclosures=_undisclosed(len(ratings)),
        accounts=np.zeros((len(MESSAGE_KINDS), len(FATES), 2), dtype=np.int64),
        updates=np.zeros(2, dtype=np.int64),
        base=base,
    )


def _undisclosed(n_ratings: int) -> np.ndarray:
    disclosures = np.zeros(n_ratings, dtype=DISCLOSURE)
    disclosures["last"] = -1
    return disclosures


def _hosts(world: World, item_keys: np.ndarray, router_keys: np.ndarray, seed: np.uint64) -> np.ndarray:
    """Router of each item, int64, shape (n_items,)."""
    if world.hosting is not None:
        given = dict(world.hosting)
        index = {name: number for number, name in enumerate(world.router_ids)}
        return np.array([index[given[item]] for item in world.ratings.item_ids], dtype=np.int64)
    if world.routers is None:
        return np.arange(len(item_keys))
    host = np.empty(len(item_keys), dtype=np.int64)
    highest_weight(item_keys, router_keys, seed, purposes.HOSTING, host)
    return host


def _contact_lists(world: World, hosting: Hosting) -> list[np.ndarray]:
    """Contacts of each node as node numbers: users, then routers."""
    users, routers = hosting.user_ids, hosting.router_ids
    if isinstance(world.user_contacts, GivenContacts):
        of_users = world.user_contacts.between(users, routers, "user", "router")
    else:
        of_users = world.user_contacts.lists(hosting)
    if isinstance(world.router_contacts, GivenContacts):
        of_routers = world.router_contacts.between(routers, users, "router", "user")
    else:
        of_routers = world.router_contacts.lists(hosting)
    return [contacts + len(users) for contacts in of_users] + of_routers


def _set_timer(nodes: np.ndarray, timer: Timer, seed: np.uint64) -> None:
    if not isinstance(timer, Periodic):
        nodes["poisson"], nodes["period"] = True, timer.mean_gap
        return
    nodes["period"] = sample_each(timer.period, seed, purposes.TIMER_PERIOD, nodes["key"])  # type: ignore[arg-type]
    if (nodes["period"] <= 0).any():
        raise ValueError(
            f"the drawn period of a node is {nodes['period'].min():g} s; {timer.period!r} must stay above 0"
        )
    phase = Uniform(0.0, 1.0) if timer.phase is None else timer.phase
    drawn = sample_each(phase, seed, purposes.TIMER_PHASE, nodes["key"])  # type: ignore[arg-type]
    nodes["phase"] = drawn * nodes["period"] if timer.phase is None else drawn


def _set_churn(nodes: np.ndarray, churn: OnOff | None, seed: np.uint64) -> None:
    nodes["online"] = True
    nodes["mean_online"] = np.inf
    if churn is not None:
        nodes["mean_online"], nodes["mean_offline"] = churn.mean_online, churn.mean_offline
        nodes["online"] = [first_online(seed, key, churn.mean_online, churn.mean_offline) for key in nodes["key"]]
