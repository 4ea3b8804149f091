"""How often profiles were updated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netsim.probes.quantiles import check_quantiles, quantile_columns, quantile_values
from netsim.probes.view import Probe, View

__all__ = ["updates_per_node"]


@dataclass(frozen=True)
class _UpdatesProbe:
    quantiles: tuple[float, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (*quantile_columns("user_updates", self.quantiles), *quantile_columns("item_updates", self.quantiles))

    def __call__(self, view: View) -> Mapping[str, float]:
        return {
            **quantile_values("user_updates", self.quantiles, view.user_updates),
            **quantile_values("item_updates", self.quantiles, view.item_updates),
        }


def updates_per_node(quantiles: Sequence[float] = (0.0, 0.5, 1.0)) -> Probe:
    """Probe of updates made to a profile, at quantiles over all users and over all items.

    Columns: `user_updates_q50`, `item_updates_q50` and so on. What is counted is what the profile of this moment has
    had: the count starts again from 0 when a node loses what it has learned, goes back with a checkpoint, and comes
    with a profile that is handed over. The columns `user_updates` and `item_updates` that every run has are other
    counts: of all updates since time 0. Nodes that are offline or have departed count too.

    Parameters
    ----------
    quantiles : sequence of float
        In [0, 1].

    Raises
    ------
    ValueError
        If a quantile is out of range.
    """
    return _UpdatesProbe(check_quantiles("updates_per_node", quantiles))
