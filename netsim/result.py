"""What a run returns."""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

import numpy as np
import pandas as pd

from netsim.world import World

__all__ = ["Result", "package_versions"]


@dataclass(frozen=True, eq=False)
class Result:
    """What a run measured, what it ended with, and what it was made from.

    Attributes
    ----------
    world : World
    seed : int
        The 64-bit word that all chance of the run was drawn from; passing it as `seed` repeats the run.
    until : float
        Simulated seconds asked for.
    time : float
        Simulated seconds reached; less than `until` only where the run was interrupted.
    probes : pandas.DataFrame
        One row for each probe time: `time` in seconds, the columns of the probes given, updates made, nodes
        online, and the accounts: messages by fate, and bytes by fate.
    accounts : pandas.DataFrame
        Messages and bytes at the end, by kind and fate.
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
        The last profiles.
    user_updates, item_updates : int64, shape (n_users,) and (n_items,)
        Updates made to each profile.
    wall_seconds : float
        How long the run took on the machine, probes included.
    interrupted : bool
    engine : {"events", "compiled"}
    engine_reason : str
        Why that engine ran, and on how many threads.
    versions : dict
        Versions of Python and of the packages that decide the bits.
    """

    world: World
    seed: int
    until: float
    time: float
    probes: pd.DataFrame
    accounts: pd.DataFrame
    user_profiles: np.ndarray
    item_profiles: np.ndarray
    user_updates: np.ndarray
    item_updates: np.ndarray
    wall_seconds: float
    interrupted: bool
    engine: str
    engine_reason: str
    versions: dict[str, str]

    @property
    def final(self) -> dict[str, float]:
        """The last row of the probe table by column name; empty where nothing was measured."""
        if self.probes.empty:
            return {}
        return {str(name): value for name, value in self.probes.iloc[-1].items()}

    def __repr__(self) -> str:
        state = " (interrupted)" if self.interrupted else ""
        sent = f", {self.final['sent']:.0f} messages" if not self.probes.empty else ""
        told = f"seed {self.seed}, {self.engine} engine, {len(self.probes)} probes{sent}"
        return f"Result({self.time:g} s simulated{state}, {told})"


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that a run depends on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    versions = {"python": python_version()}
    for name in ("netsim-recommender", "simpy", "numpy", "scipy", "networkx", "numba"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions
