"""What has left the users' machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from netsim.probes.quantiles import check_quantiles
from netsim.probes.view import Probe, View

__all__ = ["disclosure"]


@dataclass(frozen=True)
class _DisclosureProbe:
    quantiles: tuple[float, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            "ratings_disclosed",
            "rating_disclosures",
            "user_profile_bytes",
            *(f"disclosed_share_{_percent(q)}" for q in self.quantiles),
            *(f"profile_bytes_{_percent(q)}" for q in self.quantiles),
        )

    def __call__(self, view: View) -> Mapping[str, float]:
        of_user = view.disclosed_by_user
        ratings = view.world.ratings
        held = np.bincount(ratings.user[view.known], minlength=ratings.n_users)
        share = of_user[held > 0] / held[held > 0]
        sent = view.user_profile_bytes
        measured: dict[str, float] = {
            "ratings_disclosed": int(of_user.sum()),
            "rating_disclosures": int(view.disclosed.sum()),
            "user_profile_bytes": int(sent.sum()),
        }
        for q in self.quantiles:
            measured[f"disclosed_share_{_percent(q)}"] = float(np.quantile(share, q)) if len(share) else float("nan")
            measured[f"profile_bytes_{_percent(q)}"] = float(np.quantile(sent, q))
        return measured


def _percent(quantile: float) -> str:
    return f"p{100 * quantile:g}".replace(".", "_")


def disclosure(quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> Probe:
    """Probe of what has left the users' machines so far.

    A rating is disclosed when it is sent to a router, whether or not it arrives. Columns: `ratings_disclosed` (ratings
    sent to at least one router), `rating_disclosures` (pairs of rating and router), `user_profile_bytes` (bytes of
    profile, headers aside, that users sent in all), and over users, at the quantiles, `disclosed_share_p50` (share of
    a user's own ratings that he disclosed; users without ratings are left out) and `profile_bytes_p50`.

    Parameters
    ----------
    quantiles : sequence of float
        In [0, 1].

    Raises
    ------
    ValueError
        If a quantile is out of range, or stands there twice.
    """
    return _DisclosureProbe(check_quantiles("disclosure", quantiles, least=0))
