"""The state of a world at time 0, and what changes of it replace arrays."""

from typing import Any

import numpy as np

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys, seed_word
from algorithms.distributions import Constant, Distribution, Uniform, compile_distributions, sample_each
from algorithms.learning import initial_profiles
from netsim import sessions
from netsim.churn import Checkpoint
from netsim.contacts import GivenContacts, Hosting
from netsim.edges import Base, link_incoming, unseen_channels
from netsim.life import build_life, return_policy, session_lengths
from netsim.loss import GilbertElliott
from netsim.messages import FATES, MESSAGE_KINDS, NUMBER, PROFILE, message_size
from netsim.placement import highest_weight
from netsim.rules import DELAY, LOSS, UPDATE, rule_address
from netsim.state import (
    DISCLOSURE,
    HELD_BACK,
    INITIAL,
    JITTER,
    NODE,
    PATH,
    PROFILE_ROW,
    ROUTER_OFFLINE,
    ROUTER_ONLINE,
    SAVED,
    SETTINGS,
    SLOT,
    USER_OFFLINE,
    USER_ONLINE,
    State,
)
from netsim.timers import Periodic, Timer
from netsim.topology import Underlay
from netsim.world import World

__all__ = ["Tables", "build_tables"]


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
    """

    def __init__(self, state: State, base: "Base", distributions: list[Distribution]) -> None:
        self.state = state
        self.base = base
        self.distributions = distributions
        # Arrays beside edges and slots that are kept, and so grow with them, be there edges yet or not.
        self._kept: set[str] = set()
        self._edge_of: dict[tuple[int, int], int] | None = None

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
        existing = {r: self.edge_between(node, r) for r in receivers.tolist()}
        fresh = np.array([r for r, edge in existing.items() if edge is None], dtype=np.int64)
        existing |= {r: len(self.edges) + n for n, r in enumerate(fresh.tolist())}
        self.add_edges(np.full(len(fresh), node), fresh)
        row = self.state.nodes[node]
        row["contact_start"], row["contact_count"] = len(self.contacts), len(receivers)
        listed = np.array([existing[r] for r in receivers.tolist()], dtype=np.int64)
        self.put(contacts=np.concatenate([self.contacts, listed]))

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
        if "channels" in self._kept:
            self.put(channels=np.concatenate([state.channels, unseen_channels(len(edges))]))
        if "paths" in self._kept:
            self.put(paths=np.concatenate([state.paths, self.base.paths_of(edges["sender"], edges["receiver"])]))

    def _add_slots(self, slots: np.ndarray) -> None:
        state = self.state
        self.put(slots=np.concatenate([state.slots, slots]))
        if "emitted" in self._kept:
            self.put(emitted=np.concatenate([state.emitted, np.full(len(slots), np.nan)]))
        if len(state.saved_values):
            self.put(saved_slots=np.concatenate([state.saved_slots, slots]))

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

    base = Base(
        ratings=ratings,
        underlay=world.topology,  # type: ignore[arg-type]
        hosted=tuple(np.split(hosted, hosted_start[1:-1])),
        places=world.placement.places(world.topology, node_keys, ratings.user_ids, router_ids, word),  # type: ignore[arg-type]
        access=sample_each(world.access, word, purposes.ACCESS_DELAY, node_keys),  # type: ignore[arg-type]
        node_keys=node_keys,
        pair_delay=world.pair_delay,  # type: ignore[arg-type]
        seed=word,
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
    life, trace = build_life(world, nodes, n_users, word)
    following = np.full(len(edges), -1)
    link_incoming(life, receiver, 0, following)

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
        life=life,
        trace=trace,
        next_incoming=following,
        paths=np.zeros(0, dtype=PATH),
        channels=unseen_channels(0),
        emitted=np.zeros(0),
        saved_values=values.copy() if checkpoints else np.zeros((0, learning.rank)),
        saved_profiles=np.zeros(len(profiles) if checkpoints else 0, dtype=SAVED),
        saved_slots=slots.copy() if checkpoints else np.zeros(0, dtype=SLOT),
    )
    tables = Tables(state, base, distributions)
    if has_paths:
        tables.keep("paths", base.paths_of(sender, receiver))
    if isinstance(world.loss, GilbertElliott):
        tables.keep("channels", unseen_channels(len(edges)))
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
    return [found[row] for row in range(len(found))]


def _set_loss(settings: np.ndarray, loss: Any) -> None:
    """Write down how messages are lost, which a rule of one's own no longer says."""
    settings["loss_rule"] = 0
    settings["bursts"] = isinstance(loss, GilbertElliott)
    if isinstance(loss, GilbertElliott):
        settings["mean_good"], settings["mean_bad"] = loss.mean_gap, loss.burst_length
        settings["loss_good"], settings["loss_bad"] = loss.loss_good, loss.loss_bad
    else:
        settings["loss"] = loss


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
