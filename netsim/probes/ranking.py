"""How well the network ranks items that a user has not rated."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from algorithms.ranking import Ranking, check_list
from algorithms.ratings import Ratings
from netsim.probes.view import Probe, View

__all__ = ["ranking"]


@dataclass(frozen=True)
class _RankingProbe:
    """Recall, NDCG and coverage of top-N lists."""

    ratings: Ratings
    n: int
    relevant: float | None
    name: str | None
    _rankings: dict[str, Ranking] = field(default_factory=dict, repr=False, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        prefix = "" if self.name is None else f"{self.name}_"
        return tuple(f"{prefix}{metric}_at_{self.n}" for metric in ("recall", "ndcg", "coverage"))

    def __call__(self, view: View) -> Mapping[str, float]:
        train = view.ratings
        if train is not view.world.ratings:  # it differs from probe to probe
            self._rankings.clear()
        if train.digest not in self._rankings:
            self._rankings[train.digest] = Ranking(train, self.ratings, n=self.n, relevant=self.relevant)
        measured = self._rankings[train.digest](view.user_profiles, view.item_profiles)
        return dict(zip(self.columns, measured, strict=True))


def ranking(test: Ratings, *, n: int = 10, relevant: float | None = None, name: str | None = None) -> Probe:
    """Probe of top-N lists of items unrated in training; columns `recall_at_10`, `ndcg_at_10`, `coverage_at_10`.

    What they are, and how ties, short lists and users without a relevant item are treated, `algorithms.ranking.Ranking`
    says. All items are ranked for all users, which takes longer than an error does: measure less often on large worlds.

    Parameters
    ----------
    test : Ratings
        With the users and items of the world's ratings, as a split gives them.
    n : int
        Length of a list; it ends the names of the columns.
    relevant : float, optional
        Lowest rating of a relevant item. Default: three quarters up the rating scale, 4 on 1 to 5.
    name : str, optional
        Begins the names of the columns, as in `validation_recall_at_10`.

    Raises
    ------
    ValueError
        If `n` is not an integer >= 1 or `relevant` is not a number. At the first measurement: if users or items are
        not the world's, or no user has a relevant item.
    """
    check_list(n, relevant)
    return _RankingProbe(test, n, relevant, name)
