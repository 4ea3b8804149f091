"""How many nodes are online."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from netsim.probes.view import Probe, View

__all__ = ["availability"]


@dataclass(frozen=True)
class _AvailabilityProbe:
    columns: tuple[str, ...] = ("users_availability", "routers_availability")

    def __call__(self, view: View) -> Mapping[str, float]:
        shares = (_share(view.users_online), _share(view.routers_online))
        return dict(zip(self.columns, shares, strict=True))


def _share(online: np.ndarray) -> float:
    return float(online.mean()) if len(online) else float("nan")


def availability() -> Probe:
    """Probe of the shares of users and of routers that are online.

    Columns: `users_availability`, `routers_availability`. They are of the moment of the probe, not an average over
    time. Nodes that have quit for good count as offline.
    """
    return _AvailabilityProbe()
