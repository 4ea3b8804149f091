"""What a probe is, and what it sees of a run."""

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from algorithms.ratings import Ratings
from netsim.probes.ages import profile_ages
from netsim.tables import Tables
from netsim.world import World

__all__ = ["Probe", "View"]


class View:
    """What a probe sees of a run at one moment; arrays are copies, so that history is never rewritten.

    All is copied when the view is made, since the run goes on: a view can be kept and read later. Ages, which cost a
    pass over all contact lists, are worked out only in a run that measures them.

    Attributes
    ----------
    world : World
    time : float
        Simulated seconds.
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
    user_updates : int64, shape (n_users,)
    item_updates : int64, shape (n_items,)
        Updates made to each profile since it was last made anew, as at a reset.
    users_online : bool, shape (n_users,)
    routers_online : bool, shape (n_routers,)
    users_departed : bool, shape (n_users,)
    routers_departed : bool, shape (n_routers,)
        Who has quit for good; they are offline too.
    known : bool, shape (n_ratings,)
        Which of the world's ratings have been given so far.
    disclosed : int64, shape (n_ratings,)
        To how many routers each rating of the world was sent, in the order of its ratings.
    user_profile_bytes : int64, shape (n_users,)
        Bytes of his profile that each user sent, headers aside.
    accounts : int64, shape (kinds of message, fates, 2)
        Messages and bytes since time 0; kinds and fates as in `netsim.messages`.
    waits : dict
        Mean wait in each kind of queue so far, in seconds, as `waiting` names them.
    in_flight : int64, shape (kinds of message, 2)
        Messages on their way, and their bytes.
    """

    def __init__(self, world: World, time: float, tables: Tables, in_flight: np.ndarray) -> None:
        n_users, updates = tables.n_users, tables.profiles["updates"]
        online, departed = tables.nodes["online"], tables.life["departed"]
        self.world = world
        self.time = time
        self.user_profiles = tables.values[:n_users].copy()
        self.item_profiles = tables.values[n_users:].copy()
        self.user_updates, self.item_updates = updates[:n_users].copy(), updates[n_users:].copy()
        self.users_online, self.routers_online = online[:n_users].copy(), online[n_users:].copy()
        self.users_departed, self.routers_departed = departed[:n_users].copy(), departed[n_users:].copy()
        own = tables.base.own
        self.known = own.known[own.foreseen]
        self._values = own.value[own.foreseen]
        self.disclosed = tables.disclosures["routers"][own.foreseen].astype(np.int64)
        self.user_profile_bytes = tables.profile_bytes()[:n_users]
        self.accounts = tables.accounts.copy()
        self.in_flight = np.array(in_flight, dtype=np.int64)
        self._pairs = _listed_pairs(tables)
        self.waits = _mean_waits(tables)
        self._ages = profile_ages(tables.state, time)

    @property
    def ratings(self) -> Ratings:
        """Those of the world's ratings that have been given so far, as they are now."""
        whole = self.world.ratings
        if not np.array_equal(self._values, whole.value):
            whole = whole.with_values(self._values)
        if self.known.all():
            return whole
        return whole.select(self.known) if self.known.any() else whole.none()

    @property
    def coverage(self) -> tuple[float, float]:
        """Shares of the ratings given so far whose router the user lists, and whose user the router lists."""
        up, down, wanted = self._pairs
        if len(wanted) == 0:
            return math.nan, math.nan
        return float(np.isin(wanted, up).mean()), float(np.isin(wanted, down).mean())

    @property
    def disclosed_by_user(self) -> np.ndarray:
        """How many of his ratings each user has sent to at least one router, int64, shape (n_users,)."""
        ratings = self.world.ratings
        return np.bincount(ratings.user[self.disclosed > 0], minlength=ratings.n_users)

    @property
    def user_ages(self) -> np.ndarray:
        """Seconds since the item profiles that users took last were sent, float64, shape (pairs of user and item,).

        Of each user and item that he rated, once he has taken its profile; users who have departed are left out.

        Raises
        ------
        RuntimeError
            If the run does not measure ages.
        """
        return self._measured_ages()[0]

    @property
    def router_ages(self) -> np.ndarray:
        """Seconds since the user profiles that routers took last were sent, float64, shape (pairs of router and user,).

        Of each router and user, once it has taken his profile and knows a rating of his; routers that have departed
        are left out.

        Raises
        ------
        RuntimeError
            If the run does not measure ages.
        """
        return self._measured_ages()[1]

    def _measured_ages(self) -> tuple[np.ndarray, np.ndarray]:
        if self._ages is None:
            raise RuntimeError(
                "the ages of profiles are not measured in this run; add staleness() to its probes, or give a probe of "
                "your own the attribute needs_ages = True"
            )
        return self._ages


class Probe(Protocol):
    """A measurement: any object with column names and a function of a `View`.

    One that reads `View.user_ages` or `View.router_ages` also has an attribute `needs_ages = True`.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it measures."""
        ...

    def __call__(self, view: View) -> Mapping[str, float]:
        """Measure: a value for each of `columns`."""
        ...


def _listed_pairs(tables: Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of a user and a router in his list, in its list, and of ratings given, as one number each."""
    n_users, nodes = tables.n_users, tables.nodes
    n_routers = len(nodes) - n_users
    counts = nodes["contact_count"]
    owner = np.repeat(np.arange(len(nodes)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    other = tables.edges["receiver"][tables.contacts[nodes["contact_start"][owner] + within]].astype(np.int64)
    of_user = owner < n_users
    up = owner[of_user] * n_routers + other[of_user] - n_users
    down = other[~of_user] * n_routers + owner[~of_user] - n_users
    own = tables.base.own
    user = np.repeat(np.arange(n_users), np.diff(own.start))[own.known]
    routers = tables.profiles["node"][n_users:] - n_users
    return np.sort(up), np.sort(down), user * n_routers + routers[own.item[own.known]]


def _mean_waits(tables: Tables) -> dict[str, float]:
    """Mean wait in the queues of users and routers, in seconds; NaN where nothing entered them."""
    found = {}
    for role, part in (("user", slice(0, tables.n_users)), ("router", slice(tables.n_users, None))):
        queues = tables.queues[part]
        for name, waited, entered in (("uplink", "uplink_waited", "left"), ("processing", "waited", "taken")):
            n = int(queues[entered].sum())
            found[f"{role}_{name}_wait"] = float(queues[waited].sum()) / n if n else math.nan
    return found
