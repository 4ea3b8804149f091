"""What edges are made from: where nodes sit, the paths between them, and which items each router hosts."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import kernel
from algorithms.distributions import Constant, Distribution, compile_distributions, sample
from algorithms.ratings import Ratings
from netsim.own import OwnRatings
from netsim.state import CHANNEL, EDGE, NOT_RATED, PATH, RATED, SLOT, UNASKED, UNSEEN
from netsim.topology import PathProperties, Underlay

__all__ = ["Base", "group_incoming", "link_incoming", "unseen_channels"]


class _Way(NamedTuple):
    """Properties of paths from the places of some nodes to those of others, and the rows of the nodes' places."""

    properties: PathProperties
    row: np.ndarray
    column: np.ndarray

    def look_up(self, name: str, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """A property for pairs of nodes."""
        found: np.ndarray = getattr(self.properties, name)[self.row[start], self.column[end]]
        return found


@dataclass(frozen=True)
class Base:
    """Placement, paths and hosting: what the edges of any contact list are made from.

    Attributes
    ----------
    ratings : Ratings
    own : OwnRatings
        What users have rated so far; changes while the run goes on.
    underlay : Underlay
        Of this moment.
    hosted : tuple of int64 arrays
        Items of each router, in the order of its slots.
    places : int64, shape (n_nodes,)
        Place of each node.
    access : float64, shape (n_nodes,)
        Access delay of each node in seconds.
    node_keys : uint64, shape (n_nodes,)
    pair_delay : Distribution
        Seconds that each pair of a user and a router keeps.
    seed : uint64
    """

    ratings: Ratings
    own: OwnRatings
    underlay: Underlay
    hosted: tuple[np.ndarray, ...]
    places: np.ndarray
    access: np.ndarray
    node_keys: np.ndarray
    pair_delay: Distribution
    seed: np.uint64

    def over(self, underlay: Underlay) -> "Base":
        """The same over another underlay."""
        return replace(self, underlay=underlay)

    def hosting_at(self, router: int, items: np.ndarray) -> "Base":
        """The same, where a router hosts other items."""
        return replace(self, hosted=(*self.hosted[:router], items, *self.hosted[router + 1 :]))

    @cached_property
    def _ways(self) -> tuple["_Way", "_Way"]:
        """Paths from the places of users to those of routers, and back."""
        n_users = self.ratings.n_users
        users, user_row = np.unique(self.places[:n_users], return_inverse=True)
        routers, router_row = np.unique(self.places[n_users:], return_inverse=True)
        return (
            _Way(self.underlay.path_properties(users, routers), user_row, router_row),
            _Way(self.underlay.path_properties(routers, users), router_row, user_row),
        )

    def _there_and_back(self, sender: np.ndarray, receiver: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """A property of the paths of edges, and of the way back."""
        n_users = self.ratings.n_users
        upward = sender < n_users
        user, router = np.where(upward, sender, receiver), np.where(upward, receiver, sender) - n_users
        up, down = self._ways[0].look_up(name, user, router), self._ways[1].look_up(name, router, user)
        return np.where(upward, up, down), np.where(upward, down, up)

    def delays(self, sender: np.ndarray, receiver: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seconds that edges have as their base, there and back; inf where no path joins the places."""
        n_users = self.ratings.n_users
        constant = self.access[sender] + self.access[receiver]
        if self.pair_delay != Constant(0.0):
            upward = sender < n_users
            user, router = np.where(upward, sender, receiver), np.where(upward, receiver, sender)
            laws, pool = compile_distributions([self.pair_delay])
            drawn = np.empty(len(sender))
            _pair_delays(laws, pool, self.seed, self.node_keys[user], self.node_keys[router], drawn)
            constant = constant + drawn
        routers = (sender >= n_users) & (receiver >= n_users)
        base, back = np.empty(len(sender)), np.empty(len(sender))
        base[~routers], back[~routers] = self._there_and_back(sender[~routers], receiver[~routers], "latency")
        for edge in np.flatnonzero(routers).tolist():
            base[edge], back[edge] = self._between(int(sender[edge]), int(receiver[edge]), "latency")
        return base + constant, back + constant

    def paths_of(self, sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
        """What paths do beside delaying; PATH, shape (n,)."""
        paths = np.zeros(len(sender), dtype=PATH)
        n_users = self.ratings.n_users
        routers = (sender >= n_users) & (receiver >= n_users)
        for name, column in (("loss", "loss"), ("seconds_per_byte", "per_byte")):
            there, back = self._there_and_back(sender[~routers], receiver[~routers], name)
            paths[column][~routers], paths[column + "_back"][~routers] = there, back
            for edge in np.flatnonzero(routers).tolist():
                there_back = self._between(int(sender[edge]), int(receiver[edge]), name)
                paths[column][edge], paths[column + "_back"][edge] = there_back
        return paths

    def _between(self, sender: int, receiver: int, name: str) -> tuple[float, float]:
        """A property of the path between two routers, and of the way back."""
        a, b = self.places[[sender]], self.places[[receiver]]
        there, back = self.underlay.path_properties(a, b), self.underlay.path_properties(b, a)
        return float(getattr(there, name)[0, 0]), float(getattr(back, name)[0, 0])

    def make_edges(self, sender: np.ndarray, receiver: np.ndarray, first_slot: int) -> tuple[np.ndarray, np.ndarray]:
        """Edges and slots between the given nodes, as they are before anything was sent.

        Parameters
        ----------
        sender, receiver : int64, shape (n,)
            One of each pair is a user, the other a router; or both are routers, for a handover.
        first_slot : int
            Number of slots that exist already.
        """
        n_users = self.ratings.n_users
        routers = (sender >= n_users) & (receiver >= n_users)
        upward = (sender < n_users) & ~routers
        user = np.where(upward, sender, receiver)
        router = np.where(upward | routers, receiver, sender) - n_users

        edges = np.zeros(len(sender), dtype=EDGE)
        edges["sender"], edges["receiver"] = sender, receiver
        edges["base"], edges["back"] = self.delays(sender, receiver)
        edges["receiver_key"] = self.node_keys[receiver]
        n_items = np.where(routers, 0, self._n_hosted[router])
        n_slots = np.maximum(n_items, 1)
        ends = np.cumsum(n_slots)
        first = ends - n_slots
        edges["slot"] = first_slot + first

        slots = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=SLOT)
        slots["deadline"] = -np.inf
        edge_of = np.repeat(np.arange(len(sender)), n_items)
        offset = np.arange(len(edge_of)) - (np.cumsum(n_items) - n_items)[edge_of]
        item = self._all_hosted[self._hosted_start[router][edge_of] + offset]
        known, value = self.own.lookup(user[edge_of], item)
        # A user knows his own ratings; a router has asked for none.
        downward = ~upward[edge_of]
        slot = first[edge_of] + offset
        slots["state"][slot] = np.where(downward, np.where(known, RATED, NOT_RATED), UNASKED)
        slots["value"][slot] = np.where(downward & known, value, 0.0)
        edges["attached"] = np.bincount(edge_of[known & ~downward], minlength=len(sender))
        return edges, slots

    @cached_property
    def _n_hosted(self) -> np.ndarray:
        return np.array([len(items) for items in self.hosted], dtype=np.int64)

    @cached_property
    def _hosted_start(self) -> np.ndarray:
        starts: np.ndarray = np.cumsum(self._n_hosted) - self._n_hosted
        return starts

    @cached_property
    def _all_hosted(self) -> np.ndarray:
        return np.concatenate(self.hosted)


@kernel
def _pair_delays(laws, pool, seed, user_keys, router_keys, drawn):
    for n in range(drawn.shape[0]):
        word = draw(seed, purposes.PAIR_DELAY, combine(user_keys[n], router_keys[n]), 0)
        drawn[n] = sample(laws, pool, 0, word)


@kernel
def _link(first_incoming, receivers, first_edge, following):
    for n in range(receivers.shape[0]):
        following[first_edge + n] = first_incoming[receivers[n]]
        first_incoming[receivers[n]] = first_edge + n


def link_incoming(life: np.ndarray, receivers: np.ndarray, first_edge: int, following: np.ndarray) -> None:
    """Put edges made later, number `first_edge` and on, into the lists of such edges that lead to a node.

    Parameters
    ----------
    life : LIFE, shape (n_nodes,)
    receivers : int, shape (n,)
    first_edge : int
    following : int64, shape (>= first_edge + n,)
        `State.next_incoming`; changed.
    """
    first = life["incoming_later"].copy()
    _link(first, receivers.astype(np.int64), first_edge, following)
    life["incoming_later"] = first


def group_incoming(life: np.ndarray, receivers: np.ndarray) -> np.ndarray:
    """Edges grouped by the node that they lead to, for `State.incoming`; `life` says where those of each node stand.

    A node that goes through them touches memory in order, which following one to the next does not.
    """
    counts = np.bincount(receivers, minlength=len(life))
    life["incoming_start"], life["incoming_count"] = np.cumsum(counts) - counts, counts
    life["incoming_later"] = -1
    return np.argsort(receivers, kind="stable")


def unseen_channels(n_edges: int) -> np.ndarray:
    """Channels over which nothing was sent yet; CHANNEL, shape (2 n_edges,)."""
    channels = np.zeros(2 * n_edges, dtype=CHANNEL)
    channels["sojourn"] = UNSEEN
    return channels
