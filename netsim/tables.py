"""The state of a world at time 0, and what changes of it replace arrays."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys, seed_word
from algorithms.distributions import Constant, Distribution, Uniform, compile_distributions, sample_each
from algorithms.learning import initial_profiles
from algorithms.ratings import Ratings
from netsim import sessions
from netsim.churn import Checkpoint
from netsim.contacts import GivenContacts, HeardUsers, Hosting, LearnedRouters, RatedRouters, Raters
from netsim.edges import Base, group_incoming, link_incoming, unseen_channels
from netsim.finding import enlist_kept
from netsim.life import build_life, return_policy, session_lengths
from netsim.loss import GilbertElliott
from netsim.messages import FATES, MESSAGE_KINDS, NUMBER, PROFILE, message_size
from netsim.own import OwnRatings
from netsim.placement import highest_weight
from netsim.recommendations import Recommendations
from netsim.rules import DELAY, LOSS, UPDATE, rule_address
from netsim.state import (
    CHANGE,
    DISCLOSURE,
    FIND,
    HELD_BACK,
    INITIAL,
    JITTER,
    NO_LAW,
    NODE,
    PATH,
    PROFILE_ROW,
    QUEUE,
    ROUTER_OFFLINE,
    ROUTER_ONLINE,
    ROUTER_SERVICE,
    SAVED,
    SETTINGS,
    SLOT,
    TARGET,
    UNBORN,
    USER_OFFLINE,
    USER_ONLINE,
    USER_SERVICE,
    WISH_STATE,
    WISHES,
    State,
)
from netsim.timers import Periodic, Timer
from netsim.topology import Underlay
from netsim.world import World

__all__ = ["Tables", "build_tables"]


LINE = 64  # bytes of a cache line


def on_lines(rows: np.ndarray) -> np.ndarray:
    """The same rows from the start of a cache line on, so that none of 32 or 64 bytes lies on two."""
    room = np.empty(rows.nbytes + LINE, dtype=np.uint8)
    first = -room.ctypes.data % LINE
    placed = room[first : first + rows.nbytes].view(rows.dtype)
    placed[:] = rows
    return placed


class Tables:
    """All state of a running network, and what edges are made from. The arrays are also attributes by their names.

    A change of contacts, paths or hosting replaces some of the arrays.

    Attributes
    ----------
    state : State
        The arrays of this moment.
    base : Base
    distributions : list of Distribution
        Those of the rows of `laws`.
    rooms : int64, shape (n_nodes,)
        Length that the contact list of each node can grow to in its place; what stands there waits to be listed.
    longest_list : int
        Upper bound of the length of all contact lists, those included that may still grow.
    """

    def __init__(self, state: State, base: "Base", distributions: list[Distribution]) -> None:
        self.state = state
        self.base = base
        self.distributions = distributions
        # Arrays beside edges and slots that are kept, and so grow with them, be there edges yet or not.
        self._kept: set[str] = set()
        self._edge_of: dict[tuple[int, int], int] | None = None
        self.rooms = state.nodes["contact_count"].copy()
        self.longest_list = int(self.rooms.max(initial=1))
        self.hosting: Hosting | None = None
        self.target_user = np.zeros(0, dtype=np.int64)  # who may ask for each target
        self.now: Callable[[], float] = lambda: 0.0

    def __getattr__(self, name: str) -> Any:
        if name in State._fields:
            return getattr(self.state, name)
        raise AttributeError(f"Tables has no attribute {name!r}")

    def put(self, **arrays: np.ndarray) -> None:
        """Put other arrays into the place of some."""
        self.state = self.state._replace(**arrays)

    def keep(self, name: str, array: np.ndarray) -> None:
        """Put an array that stands beside edges or slots into its place, and let it grow with them from now on."""
        self._kept.add(name)
        self.put(**{name: array})

    @property
    def n_users(self) -> int:
        """Number of users; node and profile numbers below it are users'."""
        return len(self.state.own_start) - 1

    def profile_bytes(self) -> np.ndarray:
        """Bytes of profile that each node sent so far, headers aside; int64, shape (n_nodes,)."""
        return self.state.nodes["profiles_sent"] * (NUMBER * int(self.state.settings[0]["rank"]))

    def edge_between(self, sender: int, receiver: int) -> int | None:
        """The edge between two nodes, if there ever was one."""
        if self._edge_of is None:
            ends = zip(self.state.edges["sender"].tolist(), self.state.edges["receiver"].tolist(), strict=True)
            self._edge_of = {pair: edge for edge, pair in enumerate(ends)}
        return self._edge_of.get((sender, receiver))

    def contacts_of(self, node: int) -> np.ndarray:
        """Nodes in the contact list of a node, ascending."""
        row = self.state.nodes[node]
        chosen = self.state.contacts[row["contact_start"] : row["contact_start"] + row["contact_count"]]
        receivers: np.ndarray = self.state.edges["receiver"][chosen].astype(np.int64)
        return receivers

    def set_contacts(self, node: int, receivers: np.ndarray) -> None:
        """Give a node another contact list; edges that it had before keep their state.

        Parameters
        ----------
        node : int
        receivers : int64, shape (n,)
            Nodes of the other role.
        """
        receivers = np.unique(receivers)
        before = self._list_of(node)
        existing = {r: self.edge_between(node, r) for r in receivers.tolist()}
        fresh = np.array([r for r, edge in existing.items() if edge is None], dtype=np.int64)
        existing |= {r: len(self.edges) + n for n, r in enumerate(fresh.tolist())}
        self.add_edges(np.full(len(fresh), node), fresh)
        row = self.state.nodes[node]
        row["contact_start"], row["contact_count"] = len(self.contacts), len(receivers)
        listed = np.array([existing[r] for r in receivers.tolist()], dtype=np.int64)
        self.put(contacts=np.concatenate([self.contacts, listed]))
        self.rooms[node] = len(receivers)
        self._listed_now(node, before, listed)
        if self._learns(node):  # it may list whomever it has an edge to
            self.make_room(node, int((self.state.edges["sender"] == node).sum()))
        self.longest_list = max(self.longest_list, len(receivers))

    def _list_of(self, node: int) -> np.ndarray:
        """Edges in the contact list of a node."""
        row = self.state.nodes[node]
        edges: np.ndarray = self.state.contacts[
            row["contact_start"] : row["contact_start"] + row["contact_count"]
        ].copy()
        return edges

    def _listed_now(self, node: int, before: np.ndarray, listed: np.ndarray) -> None:
        """Give contacts that are new in a list the whole time to be heard of; note what need not be looked for."""
        if "heard" in self._kept:
            self.state.heard[np.setdiff1d(listed, before)] = self.now()
        if node < self.n_users and len(self.state.finds):
            own = slice(int(self.state.own_start[node]), int(self.state.own_start[node + 1]))
            finds = self.state.finds[own]
            there = np.isin(finds["edge"], listed)
            finds["asked"][~there & (finds["listed"] >= 0)] = -np.inf
            finds["listed"] = np.where(there, finds["edge"], -1)

    def enlist(self, node: int, other: int) -> bool:
        """Put a node into the contact list of another; returns whether that took more than the room kept for it."""
        edge = self.edge_between(node, other)
        if edge is not None and enlist_kept(self.state, node, edge, self.rooms[node], self.now()):
            return False
        self.set_contacts(node, np.append(self.contacts_of(node), other))
        return True

    def add_edges(self, sender: np.ndarray, receiver: np.ndarray) -> None:
        """Add edges between the given nodes, with all that stands beside them."""
        if len(sender) == 0:
            return
        state = self.state
        edges, slots = self.base.make_edges(sender, receiver, len(state.slots))
        following = np.concatenate([state.next_incoming, np.full(len(edges), -1)])
        link_incoming(state.life, edges["receiver"], len(state.edges), following)
        if self._edge_of is not None:
            ends = zip(edges["sender"].tolist(), edges["receiver"].tolist(), strict=True)
            self._edge_of |= {pair: len(state.edges) + n for n, pair in enumerate(ends)}
        self.put(edges=np.concatenate([state.edges, edges]), next_incoming=following)
        self._add_slots(slots)
        if "heard" in self._kept:
            self._add_heard(edges)
        if "channels" in self._kept:
            self.put(channels=np.concatenate([state.channels, unseen_channels(len(edges))]))
        if "paths" in self._kept:
            self.put(paths=np.concatenate([state.paths, self.base.paths_of(edges["sender"], edges["receiver"])]))

    def _add_heard(self, edges: np.ndarray) -> None:
        """Find the way back of edges that were just added."""
        state, first = self.state, len(self.state.edges) - len(edges)
        heard = np.concatenate([state.heard, np.zeros(len(edges))])
        reverse = np.concatenate([state.reverse, np.full(len(edges), -1)])
        ends = zip(edges["sender"].tolist(), edges["receiver"].tolist(), strict=True)
        for number, (sender, receiver) in enumerate(ends, start=first):
            back = self.edge_between(receiver, sender)
            if back is not None:
                reverse[number], reverse[back] = back, number
        self.put(heard=heard, reverse=reverse)

    def follow_contacts(self) -> None:
        """Note whom nodes hear of, and the way back of each edge."""
        self.keep("heard", np.zeros(0))
        self.put(reverse=np.zeros(0, dtype=np.int64))
        self._add_heard(self.state.edges)

    def find_routers(self, directories: np.ndarray) -> None:
        """Let users look for the routers of the items that they rate.

        Parameters
        ----------
        directories : int64, shape (n_items,)
            Node of the directory of each item.
        """
        own = self.base.own
        finds = np.zeros(len(own.item), dtype=FIND)
        finds["asked"], finds["listed"] = -np.inf, -1
        self.directories: np.ndarray = directories
        self.put(finds=finds)
        self.lead(np.arange(len(finds)))

    def replace_directory(self, quitter: int) -> None:
        """Let other routers be the directories of the items that a router which quits was asked for."""
        items = np.flatnonzero(self.directories == quitter)
        staying = self.n_users + np.flatnonzero(~self.state.life["departed"][self.n_users :])
        if len(items) == 0 or len(staying) == 0:
            return
        chosen = np.empty(len(items), dtype=np.int64)
        keys = self.state.profiles["key"][self.n_users + items]
        highest_weight(keys, self.state.nodes["key"][staying], self.base.seed, purposes.DIRECTORY, chosen)
        self.directories[items] = staying[chosen]
        self.lead(np.flatnonzero(np.isin(self.base.own.item, items)))

    def foresee_raters(self, router: int, users: np.ndarray) -> None:
        """Let a router that lists whom it hears of be able to list these users."""
        missing = np.array([user for user in users.tolist() if self.edge_between(router, user) is None], dtype=np.int64)
        self.add_edges(np.full(len(missing), router), missing)
        self.make_room(router, int((self.state.edges["sender"] == router).sum()))

    def lead(self, which: np.ndarray) -> None:
        """Let users find, for some of the own ratings, the routers that host the items now."""
        own, finds = self.base.own, self.state.finds
        user = np.repeat(np.arange(self.n_users), np.diff(own.start))[which]
        for column, router in (
            ("edge", self.state.profiles["node"][self.n_users + own.item[which]]),
            ("directory", self.directories[own.item[which]]),
        ):
            pairs = list(zip(user.tolist(), router.tolist(), strict=True))
            missing = sorted({pair for pair in pairs if self.edge_between(*pair) is None})
            if missing:
                ends = np.array(missing, dtype=np.int64)
                self.add_edges(ends[:, 0], ends[:, 1])
            finds[column][which] = [self.edge_between(*pair) for pair in pairs]
        for node in np.unique(user).tolist():
            part = finds["edge"][own.start[node] : own.start[node + 1]]
            self.make_room(node, len(np.unique(part)) + int(self.state.nodes["contact_count"][node]))

    def _learns(self, node: int) -> bool:
        """Whether a node puts others into its contact list by itself."""
        if node < self.n_users:
            return len(self.state.finds) > 0
        return bool(self.state.settings["heard_users"][0])

    def make_room(self, node: int, length: int) -> None:
        """Let a contact list grow to a length in its place; it moves where there is not enough room."""
        if length <= int(self.rooms[node]):
            return
        row, contacts = self.state.nodes[node], self.state.contacts
        start, count = int(row["contact_start"]), int(row["contact_count"])
        moved = np.concatenate([contacts[start : start + count], np.full(length - count, -1)])
        row["contact_start"] = len(contacts)
        self.put(contacts=np.concatenate([contacts, moved]))
        self.rooms[node] = length
        self.longest_list = max(self.longest_list, length)

    def set_many(self, lists: list[tuple[int, np.ndarray]]) -> None:
        """Give many nodes other contact lists at once: pairs of a node, and the nodes in its list, ascending."""
        pairs = [(node, other) for node, others in lists for other in others.tolist()]
        missing = sorted({pair for pair in pairs if self.edge_between(*pair) is None})
        if missing:
            ends = np.array(missing, dtype=np.int64)
            self.add_edges(ends[:, 0], ends[:, 1])
        place, parts = len(self.state.contacts), []
        for node, others in lists:
            listed = np.array([self.edge_between(node, other) for other in others.tolist()], dtype=np.int64)
            if "heard" in self._kept:
                self.state.heard[np.setdiff1d(listed, self._list_of(node))] = self.now()
            room = slice(int(self.state.nodes["contact_start"][node]), None)
            if len(listed) <= int(self.rooms[node]):
                self.state.contacts[room.start : room.start + len(listed)] = listed
            else:
                self.state.nodes["contact_start"][node] = place
                self.rooms[node] = len(listed)
                place += len(listed)
                parts.append(listed)
            self.state.nodes["contact_count"][node] = len(listed)
        if parts:
            self.put(contacts=np.concatenate([self.state.contacts, *parts]))
        self.longest_list = max(self.longest_list, int(self.rooms.max(initial=1)))

    def _add_slots(self, slots: np.ndarray) -> None:
        state = self.state
        self.put(slots=on_lines(np.concatenate([state.slots, slots])))
        if "emitted" in self._kept:
            self.put(emitted=np.concatenate([state.emitted, np.full(len(slots), np.nan)]))
        if len(state.saved_values):
            self.put(saved_slots=np.concatenate([state.saved_slots, slots]))

    def set_targets(self, wanted: Recommendations) -> None:
        """Let users ask for items: edges to their routers are made where there are none."""
        targets, n_users = wanted.targets, self.n_users
        settings = self.state.settings
        settings["wish_gap"], settings["wish_timeout"] = wanted.mean_gap, wanted.timeout
        settings["retries"] = wanted.retries
        rows = np.zeros(len(targets), dtype=TARGET)
        rows["item"], rows["rating"] = targets.by_user.index, targets.by_user.value
        self.put(
            target_start=np.array(targets.by_user.start),
            targets=rows,
            wishes=np.zeros(WISHES * n_users, dtype=WISH_STATE),
        )
        self.target_user = np.repeat(np.arange(n_users), np.diff(targets.by_user.start))
        self.aim(np.arange(len(rows)))

    def add_target(self, user: int, item: int, rating: float) -> int:
        """Let a user ask for an item that is not among those he draws from; returns the number of the target."""
        row = np.zeros(1, dtype=TARGET)
        row["item"], row["rating"] = item, rating
        self.put(targets=np.concatenate([self.state.targets, row]))
        self.target_user = np.append(self.target_user, user)
        number = len(self.state.targets) - 1
        self.aim(np.array([number]))
        return number

    def aim(self, which: np.ndarray) -> None:
        """Let targets be asked for over the edges to the routers that host them now."""
        rows = self.state.targets
        user = self.target_user[which]
        router = self.state.profiles["node"][self.n_users + rows["item"][which]]
        pairs = np.unique(np.stack([user, router], axis=1), axis=0) if len(which) else np.zeros((0, 2), dtype=np.int64)
        missing = [pair for pair in pairs.tolist() if self.edge_between(*pair) is None]
        if missing:
            ends = np.array(missing, dtype=np.int64)
            self.add_edges(ends[:, 0], ends[:, 1])
        ways = zip(user.tolist(), router.tolist(), strict=True)
        rows["edge"][which] = [self.edge_between(*pair) for pair in ways]

    def hold_own(self) -> None:
        """Take over the arrays of `base.own`, which has grown."""
        own = self.base.own
        self.put(own_start=own.start, own_item=own.item, own_value=own.value, own_known=own.known)
        self.put(own_revision=own.revision)

    def set_law(self, which: int, distribution: Distribution) -> None:
        """Put another distribution into a row of `laws`."""
        self.distributions[which] = distribution
        laws, pool = compile_distributions(self.distributions)
        self.put(laws=laws, pool=pool)

    def set_loss(self, loss: "float | GilbertElliott") -> None:
        """Change how messages are lost."""
        _set_loss(self.state.settings, loss)
        if isinstance(loss, GilbertElliott):
            # A chain is a function of the pair and the time: it is followed anew from time 0, under the new means.
            self.keep("channels", unseen_channels(len(self.state.edges)))

    def measure_ages(self) -> None:
        """Keep when what was taken was sent, for probes."""
        if "emitted" not in self._kept:
            self.keep("emitted", np.full(len(self.state.slots), np.nan))

    def change_paths(self, underlay: Underlay) -> None:
        """Let messages that are sent from now on take the paths of another underlay with the same places."""
        self.base = self.base.over(underlay)
        edges = self.state.edges.copy()
        edges["base"], edges["back"] = self.base.delays(edges["sender"], edges["receiver"])
        self.put(edges=edges)
        if "paths" in self._kept:
            self.put(paths=self.base.paths_of(edges["sender"], edges["receiver"]))

    def move_items(self, router: int, items: np.ndarray) -> np.ndarray:
        """Let a router host further items, from now on, with profiles made anew.

        Parameters
        ----------
        router : int
            Its node.
        items : int64, shape (n,)
            They come after those that it hosts, in this order.

        Returns
        -------
        int64, shape (n_edges,)
            By how much the slots of each edge have moved.
        """
        state, n_users = self.state, self.n_users
        row, profiles = state.nodes[router], n_users + items
        start, before = int(row["owned_start"]), int(row["owned_count"])
        owned = np.concatenate([state.owned, state.owned[start : start + before], profiles])
        row["owned_start"], row["owned_count"] = len(state.owned), before + len(items)
        state.profiles["node"][profiles] = router
        state.profiles["offset"][profiles] = before + np.arange(len(items))
        state.profiles["known"][profiles] = 0
        self.put(owned=owned)
        self.base = self.base.hosting_at(router - n_users, owned[len(state.owned) :] - n_users)
        for profile in profiles.tolist():
            sessions.incarnate(self.state, profile)
        if len(state.saved_values):
            state.saved_values[profiles] = state.values[profiles]
            state.saved_profiles[profiles] = 0
        self.aim(np.flatnonzero(np.isin(self.state.targets["item"], items)))
        if len(self.state.finds):
            self.lead(np.flatnonzero(np.isin(self.base.own.item, items)))
        state = self.state
        shift = np.zeros(len(state.edges), dtype=np.int64)
        ends = (state.edges["sender"] == router) | (state.edges["receiver"] == router)
        between = (state.edges["sender"] >= n_users) & (state.edges["receiver"] >= n_users)
        moved = np.flatnonzero(ends & ~between)
        shift[moved] = self._move_slots(moved, before)
        return shift

    def forward_slot(self, here: int, there: int) -> None:
        """Let what a user knows in one slot move to another."""
        arrays = [self.state.slots] + ([self.state.saved_slots] if len(self.state.saved_values) else [])
        for slots in arrays:
            slots["taken"][there] = max(slots["taken"][there], slots["taken"][here])
        self.state.slots["count"][here] = there + 1
        if "emitted" in self._kept:
            self.state.emitted[there] = self.state.emitted[here]

    def _move_slots(self, which: np.ndarray, kept: int) -> np.ndarray:
        """Give edges longer room for their slots, of which the first `kept` stay as they are; returns how far.

        Parameters
        ----------
        which : int64, shape (n,)
            Edges of one router.
        kept : int
            Slots of items that it hosted before.
        """
        state = self.state
        links, n_slots, here = state.edges[which], max(1, kept), len(state.slots)
        made, slots = self.base.make_edges(links["sender"].astype(np.int64), links["receiver"].astype(np.int64), here)
        old = (links["slot"][:, None] + np.arange(n_slots)).ravel()
        new = (made["slot"][:, None] + np.arange(n_slots)).ravel()
        # Where nothing was hosted, the one slot held what is known of the other node as a whole, and now an item too.
        fresh = slots[new - here].copy()
        self._add_slots(slots)
        arrays = [self.state.slots] + ([self.state.saved_slots] if len(state.saved_values) else [])
        for array in arrays:
            array[new] = array[old]
            for name in ("state", "value") if kept == 0 else ():
                array[name][new] = fresh[name]
        if "emitted" in self._kept:
            self.state.emitted[new] = self.state.emitted[old]
        to_users = np.repeat(links["receiver"] < self.n_users, n_slots)
        self.state.slots["count"][old[to_users]] = new[to_users] + 1  # for who was forwarded there
        state.edges["slot"][which], state.edges["attached"][which] = made["slot"], made["attached"]
        shift: np.ndarray = made["slot"] - links["slot"]
        return shift


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

    distributions = _distributions(world)
    laws, pool = compile_distributions(distributions)
    host = _hosts(world, item_keys, router_keys, word)
    hosted = np.argsort(host, kind="stable")
    hosted_start = np.searchsorted(host[hosted], np.arange(n_routers + 1))

    known = np.ones(len(ratings), dtype=bool) if world.arrivals is None else world.arrivals.times <= 0
    own = OwnRatings(ratings, known)
    base = Base(
        ratings=ratings,
        own=own,
        underlay=world.topology,  # type: ignore[arg-type]
        hosted=tuple(np.split(hosted, hosted_start[1:-1])),
        places=world.placement.places(world.topology, node_keys, ratings.user_ids, router_ids, word),  # type: ignore[arg-type]
        access=sample_each(world.access, word, purposes.ACCESS_DELAY, node_keys),  # type: ignore[arg-type]
        node_keys=node_keys,
        pair_delay=world.pair_delay,  # type: ignore[arg-type]
        seed=word,
    )

    hosting = Hosting(ratings, host, ratings.user_ids, router_ids, user_keys, router_keys, word)
    lists = _contact_lists(world, hosting)
    if getattr(world.router_contacts, "cap", None) is not None and not known.all():
        # The choice of a capped list is made among those who have rated by now.
        given = ratings.select(known) if known.any() else None
        listed = [np.zeros(0, dtype=np.int64)] * n_routers
        if given is not None:
            now = replace(hosting, ratings=given)
            listed = world.router_contacts.lists(now)  # type: ignore[union-attr]
        lists = lists[:n_users] + listed
    counts = np.array([len(contacts) for contacts in lists], dtype=np.int64)
    sender = np.repeat(np.arange(n_users + n_routers), counts)
    receiver = np.concatenate(lists).astype(np.int64)
    edges, slots = base.make_edges(sender, receiver, 0)

    nodes = np.zeros(n_users + n_routers, dtype=NODE)
    nodes["key"] = node_keys
    nodes["contact_count"] = counts
    nodes["contact_start"] = np.cumsum(counts) - counts
    contacts = np.arange(len(edges))
    follow = [isinstance(world.user_contacts, RatedRouters), isinstance(world.router_contacts, Raters)]
    if not known.all():
        _list_known(nodes, contacts, edges, own, base, follow)
    for part, lists_of, learned in (
        (nodes[:n_users], world.user_contacts, LearnedRouters),
        (nodes[n_users:], world.router_contacts, HeardUsers),
    ):
        if isinstance(lists_of, learned):  # what they may find waits
            part["contact_count"] = 0
    nodes["owned_count"][:n_users] = 1
    nodes["owned_count"][n_users:] = np.diff(hosted_start)
    nodes["owned_start"] = np.cumsum(nodes["owned_count"]) - nodes["owned_count"]
    users, routers = nodes[:n_users], nodes[n_users:]
    users["fan_out"], routers["fan_out"] = world.user_fan_out or 0, world.router_fan_out or 0
    _set_timer(users, world.user_broadcast, word)  # type: ignore[arg-type]
    _set_timer(routers, world.router_broadcast, word)  # type: ignore[arg-type]
    life, trace = build_life(world, nodes, n_users, word)

    profiles = np.zeros(n_users + n_items, dtype=PROFILE_ROW)
    profiles["key"] = np.concatenate([user_keys, item_keys])
    profiles["node"] = np.concatenate([np.arange(n_users), n_users + host])
    profiles["offset"][n_users + hosted] = np.arange(n_items) - hosted_start[host[hosted]]
    own_count = np.bincount(ratings.user[known], minlength=n_users)
    _check_counts(own_count, ratings.user_ids)
    profiles["known"][:n_users] = own_count
    profiles["rate"] = sample_each(learning.rate, word, purposes.LEARNING_RATE, node_keys)[profiles["node"]]  # type: ignore[arg-type]

    if world.arrivals is not None and world.arrivals.join == "first_rating":
        _leave_out(life, nodes, profiles, host, known, ratings)

    settings = np.zeros(1, dtype=SETTINGS)
    settings["seed"] = word
    settings["rank"] = learning.rank
    for name, value in learning.codes().items():
        settings[name] = value
    settings["discard_stale"] = world.discard_stale
    settings["attach_ratings"] = world.rating_exchange == "attach"
    settings["request_timeout"] = world.request_timeout
    settings["minimum_delay"] = world.minimum_delay
    if not callable(world.loss):
        _set_loss(settings, world.loss)
    settings["duplication"] = world.duplication
    settings["reordering"] = 0.0 if world.reordering is None else world.reordering.probability
    settings["stretch"] = 1.0
    settings["user_return"] = return_policy(world.user_return)
    settings["router_return"] = return_policy(world.router_return)
    for name, rule, kind in (
        ("user_rule", world.update_user, UPDATE),
        ("item_rule", world.update_item, UPDATE),
        ("delay_rule", world.delay if callable(world.delay) else None, DELAY),
        ("loss_rule", world.loss if callable(world.loss) else None, LOSS),
    ):
        settings[name] = 0 if rule is None else rule_address(rule, kind)
    settings["profile_size"] = message_size(PROFILE, learning.rank, 0)

    values = initial_profiles(profiles["key"], learning, (ratings.scale.low, ratings.scale.high), seed=word)
    has_paths = base.underlay.has_loss or base.underlay.has_bandwidth
    checkpoints = isinstance(world.user_return, Checkpoint) or isinstance(world.router_return, Checkpoint)
    state = State(
        settings=settings,
        laws=laws,
        pool=pool,
        values=values,
        profiles=on_lines(profiles),
        nodes=nodes,
        owned=np.concatenate([np.arange(n_users), n_users + hosted]),
        contacts=contacts,
        edges=edges,
        slots=on_lines(slots),
        own_start=own.start,
        own_item=own.item,
        own_value=own.value,
        own_known=own.known,
        own_revision=own.revision,
        own_count=own_count,
        disclosures=_undisclosed(len(ratings)),
        accounts=np.zeros((len(MESSAGE_KINDS), len(FATES), 2), dtype=np.int64),
        updates=np.zeros(2, dtype=np.int64),
        life=life,
        trace=trace,
        incoming=np.zeros(0, dtype=np.int64),
        next_incoming=np.full(len(edges), -1),
        paths=np.zeros(0, dtype=PATH),
        channels=unseen_channels(0),
        queues=_queues(world, nodes, n_users, word),
        leaving=np.zeros((len(nodes) if world.has_queues else 0, world.queue_limit or 0)),
        finishing=np.zeros((len(nodes) if world.has_queues else 0, world.queue_limit or 0)),
        target_start=np.zeros(n_users + 1, dtype=np.int64),
        targets=np.zeros(0, dtype=TARGET),
        finds=np.zeros(0, dtype=FIND),
        heard=np.zeros(0),
        reverse=np.zeros(0, dtype=np.int64),
        wishes=np.zeros(0, dtype=WISH_STATE),
        emitted=np.zeros(0),
        saved_values=values.copy() if checkpoints else np.zeros((0, learning.rank)),
        saved_profiles=np.zeros(len(profiles) if checkpoints else 0, dtype=SAVED),
        saved_slots=slots.copy() if checkpoints else np.zeros(0, dtype=SLOT),
    )
    tables = Tables(state, base, distributions)
    settings = tables.state.settings
    settings["users_follow"], settings["routers_follow"] = follow
    cap = getattr(world.router_contacts, "cap", None)
    settings["router_cap"] = -1 if cap is None else cap
    tables.rooms[:] = counts
    tables.hosting = hosting
    tables.longest_list = int(counts.max(initial=1))
    if has_paths:
        tables.keep("paths", base.paths_of(sender, receiver))
    if isinstance(world.loss, GilbertElliott):
        tables.keep("channels", unseen_channels(len(edges)))
    if isinstance(world.user_contacts, LearnedRouters):
        settings["lookup_timeout"], settings["lookups"] = world.user_contacts.timeout, world.user_contacts.at_once
        directory = np.empty(n_items, dtype=np.int64)
        highest_weight(item_keys, router_keys, word, purposes.DIRECTORY, directory)
        tables.find_routers(n_users + directory)
    settings["heard_users"] = isinstance(world.router_contacts, HeardUsers)
    settings["user_patience"] = np.inf if world.user_patience is None else world.user_patience
    settings["router_patience"] = np.inf if world.router_patience is None else world.router_patience
    if world.user_patience or world.router_patience or settings["heard_users"][0]:
        tables.follow_contacts()
    if world.recommendations is not None:
        tables.set_targets(world.recommendations)
    made = tables.state.edges["receiver"]
    tables.put(incoming=group_incoming(tables.state.life, made), next_incoming=np.full(len(made), -1))
    return tables


def _distributions(world: World) -> list[Distribution]:
    """The world's distributions, in the order of the rows of `State.laws`."""
    scale = world.ratings.scale
    found: dict[int, Any] = {
        JITTER: Constant(0.0) if callable(world.delay) else world.delay,
        HELD_BACK: Constant(0.0) if world.reordering is None else world.reordering.extra,
        INITIAL: world.learning.initial_for(scale.low, scale.high),
    }
    found |= dict(zip((USER_ONLINE, USER_OFFLINE), session_lengths(world.user_churn), strict=True))
    found |= dict(zip((ROUTER_ONLINE, ROUTER_OFFLINE), session_lengths(world.router_churn), strict=True))
    found[USER_SERVICE] = world.user_processing or Constant(0.0)
    found[ROUTER_SERVICE] = world.router_processing or Constant(0.0)
    return [found[row] for row in range(len(found))]


def _queues(world: World, nodes: np.ndarray, n_users: int, seed: np.uint64) -> np.ndarray:
    """The queues of each node; QUEUE, shape (n_nodes,), or empty where nothing queues."""
    if not world.has_queues:
        return np.zeros(0, dtype=QUEUE)
    queues = np.zeros(len(nodes), dtype=QUEUE)
    queues["service"] = NO_LAW
    for role, part, service in (
        ("user", slice(0, n_users), USER_SERVICE),
        ("router", slice(n_users, None), ROUTER_SERVICE),
    ):
        uplink: Any = getattr(world, f"{role}_uplink")
        if uplink is not None:
            rates = sample_each(uplink, seed, purposes.UPLINK, nodes["key"][part])
            if (rates <= 0).any():
                raise ValueError(
                    f"{role}_uplink: the drawn rate of a node is {rates.min():g} bytes/s; {uplink!r} must stay above 0"
                )
            queues["seconds_per_byte"][part] = 1.0 / rates
        if getattr(world, f"{role}_processing") is not None:
            queues["service"][part] = service
    return queues


def _set_loss(settings: np.ndarray, loss: Any) -> None:
    """Write down how messages are lost, which a rule of one's own no longer says."""
    settings["loss_rule"] = 0
    settings["bursts"] = isinstance(loss, GilbertElliott)
    if isinstance(loss, GilbertElliott):
        settings["mean_good"], settings["mean_bad"] = loss.mean_gap, loss.burst_length
        settings["loss_good"], settings["loss_bad"] = loss.loss_good, loss.loss_bad
    else:
        settings["loss"] = loss


def _list_known(
    nodes: np.ndarray, contacts: np.ndarray, edges: np.ndarray, own: OwnRatings, base: Base, follow: list[bool]
) -> None:
    """Leave in the lists that follow ratings those that known ratings give; the others wait behind them."""
    n_users = base.ratings.n_users
    upward = edges["sender"] < n_users
    user = np.where(upward, edges["sender"], edges["receiver"]).astype(np.int64)
    router = np.where(upward, edges["receiver"], edges["sender"]).astype(np.int64) - n_users
    host = np.empty(base.ratings.n_items, dtype=np.int64)
    for number, items in enumerate(base.hosted):
        host[items] = number
    n_routers = len(base.hosted)
    givers = np.repeat(np.arange(n_users), np.diff(own.start))[own.known]
    pairs = np.unique(givers * n_routers + host[own.item[own.known]])
    listed = np.isin(user * n_routers + router, pairs) | ~np.where(upward, follow[0], follow[1])
    for row in nodes:
        part = slice(int(row["contact_start"]), int(row["contact_start"] + row["contact_count"]))
        chosen = listed[part]
        contacts[part] = np.concatenate([contacts[part][chosen], contacts[part][~chosen]])
        row["contact_count"] = chosen.sum()


def _leave_out(
    life: np.ndarray, nodes: np.ndarray, profiles: np.ndarray, host: np.ndarray, known: np.ndarray, ratings: Ratings
) -> None:
    """Let users and items without a rating from the start wait for one, and so routers with no other items."""
    n_users = ratings.n_users
    users = np.bincount(ratings.user[known], minlength=n_users) > 0
    to_come = np.bincount(ratings.user, minlength=n_users) > 0
    items = np.bincount(ratings.item[known], minlength=ratings.n_items) > 0
    items |= np.bincount(ratings.item, minlength=ratings.n_items) == 0
    profiles["incarnation"][n_users:][~items] = UNBORN
    n_routers = len(nodes) - n_users
    hosts_some = np.bincount(host[items], minlength=n_routers) > 0
    hosts_none = np.bincount(host, minlength=n_routers) == 0
    life["present"] = np.concatenate([users | ~to_come, hosts_some | hosts_none])
    nodes["online"] &= life["present"]
    life["was_online"] = nodes["online"]


def _check_counts(counts: np.ndarray, user_ids: tuple) -> None:
    if (counts >= CHANGE).any():
        raise ValueError(
            f"ratings: user {user_ids[int(counts.argmax())]!r} has {counts.max()} ratings; the count in a message has "
            f"2 bytes, so that a user may have {CHANGE - 1} at most"
        )


def _undisclosed(n_ratings: int) -> np.ndarray:
    disclosures = np.zeros(n_ratings, dtype=DISCLOSURE)
    disclosures["last"] = disclosures["before_last"] = -1
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
