"""How much of what a user rated he can reach."""

from collections.abc import Mapping
from dataclasses import dataclass

from netsim.probes.view import Probe, View

__all__ = ["coverage"]


@dataclass(frozen=True)
class _CoverageProbe:
    columns: tuple[str, ...] = ("users_coverage", "routers_coverage")

    def __call__(self, view: View) -> Mapping[str, float]:
        return dict(zip(self.columns, view.coverage, strict=True))


def coverage() -> Probe:
    """Probe of the share of known ratings whose router is in the user's list, and the other way round.

    Columns `users_coverage` and `routers_coverage`: shares of all ratings given so far, with those that scripts added;
    NaN while there is none.
    """
    return _CoverageProbe()
