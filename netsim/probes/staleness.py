"""How old the information is that nodes use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from netsim.probes.quantiles import check_quantiles, quantile_columns, quantile_values
from netsim.probes.view import Probe, View

__all__ = ["staleness"]


@dataclass(frozen=True)
class _StalenessProbe:
    quantiles: tuple[float, ...]
    needs_ages: ClassVar[bool] = True  # the run keeps when what was taken was sent

    @property
    def columns(self) -> tuple[str, ...]:
        users = quantile_columns("user_staleness", self.quantiles)
        return (*users, *quantile_columns("router_staleness", self.quantiles))

    def __call__(self, view: View) -> Mapping[str, float]:
        return {
            **quantile_values("user_staleness", self.quantiles, view.user_ages),
            **quantile_values("router_staleness", self.quantiles, view.router_ages),
        }


def staleness(quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> Probe:
    """Probe of the age of the information used: seconds since the profiles that nodes took last were sent.

    Columns: `user_staleness_q50` and so on, at quantiles over pairs of a user and an item that he rated (ages of item
    profiles), and `router_staleness_q50` and so on, over pairs of a router and a user of whom it knows a rating (ages
    of user profiles). A pair counts once the receiver has taken a profile and knows the rating; NaN where there is no
    such pair yet. A profile that is discarded for its stamp is not taken, and makes nothing younger.

    A receiver that is offline counts, and what it has grows older; one that has departed does not count. A profile
    counts also where its owner is offline or has departed. Where an item has moved to another router, the profile sent
    last counts, whichever router it came from. Where a node has lost what it had learned, pairs count again from the
    next profile that is taken, and also where it went back to a checkpoint older than the last one taken.

    Parameters
    ----------
    quantiles : sequence of float
        In [0, 1].

    Raises
    ------
    ValueError
        If a quantile is out of range.
    """
    return _StalenessProbe(check_quantiles("staleness", quantiles))
