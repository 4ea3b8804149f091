"""What a probe is, and what it sees of a run."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from netsim.tables import Tables
from netsim.world import World

__all__ = ["Probe", "View"]


class View:
    """What a probe sees of a run at one moment; arrays are copies, so that history is never rewritten.

    Attributes
    ----------
    world : World
    time : float
        Simulated seconds.
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
    users_online : bool, shape (n_users,)
    routers_online : bool, shape (n_routers,)
    disclosed : int64, shape (n_ratings,)
        To how many routers each rating of the world was sent, in the order of its ratings.
    user_profile_bytes : int64, shape (n_users,)
        Bytes of his profile that each user sent, headers aside.
    """

    def __init__(self, world: World, time: float, tables: Tables) -> None:
        n_users = tables.n_users
        self.world = world
        self.time = time
        self.user_profiles = tables.values[:n_users].copy()
        self.item_profiles = tables.values[n_users:].copy()
        self.users_online = tables.nodes["online"][:n_users].copy()
        self.routers_online = tables.nodes["online"][n_users:].copy()
        self.disclosed = tables.disclosures["routers"].astype(np.int64)
        self.user_profile_bytes = tables.profile_bytes()[:n_users]

    @property
    def disclosed_by_user(self) -> np.ndarray:
        """How many of his ratings each user has sent to at least one router, int64, shape (n_users,)."""
        ratings = self.world.ratings
        return np.bincount(ratings.user[self.disclosed > 0], minlength=ratings.n_users)


class Probe(Protocol):
    """A measurement: any object with column names and a function of a `View`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it measures."""
        ...

    def __call__(self, view: View) -> Mapping[str, float]:
        """Measure: a value for each of `columns`."""
        ...
