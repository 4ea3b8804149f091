"""What a probe is, and what it sees of a run."""

from collections.abc import Mapping
from typing import Protocol

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
    """

    def __init__(self, world: World, time: float, tables: Tables) -> None:
        n_users = tables.n_users
        self.world = world
        self.time = time
        self.user_profiles = tables.values[:n_users].copy()
        self.item_profiles = tables.values[n_users:].copy()
        self.users_online = tables.nodes["online"][:n_users].copy()
        self.routers_online = tables.nodes["online"][n_users:].copy()


class Probe(Protocol):
    """A measurement: any object with column names and a function of a `View`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it measures."""
        ...

    def __call__(self, view: View) -> Mapping[str, float]:
        """Measure: a value for each of `columns`."""
        ...
