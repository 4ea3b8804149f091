"""Fake profiles that demote or promote a target item.

Section 3.3 of the second seed paper, and the models of attack in B. Mobasher, R. Burke, R. Bhaumik and C. Williams,
"Toward trustworthy recommender systems: an analysis of attack models and algorithm robustness", ACM Transactions on
Internet Technology 7(4), 2007. Random and average attacks come from S. K. Lam and J. Riedl, "Shilling recommender
systems for fun and profit", WWW 2004.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.attacks.checks import category_array, check_target, rating_matrix
from algorithms.attacks.means import item_means
from algorithms.synthetic.checks import check_integer, check_share
from algorithms.synthetic.streams import streams

__all__ = ["Attack", "Intent", "Kind", "inject", "number_of_profiles"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Kind = Literal["average", "reverse_bandwagon", "love_hate", "random", "bandwagon"]
Intent = Literal["nuke", "push"]


@dataclass(frozen=True)
class Attack:
    """How an attacker fills fake profiles.

    Each profile rates the target, some *selected* items (the same in all profiles) and some *filler* items, drawn anew
    for each profile from the others. It rates nothing else. Lowest and highest are those of the scale.

    =================== ============================== ================================ ============== =============
    kind                selected items                 fillers                          target, nuke   target, push
    =================== ============================== ================================ ============== =============
    average             none                           mode of the item's ratings       lowest         highest
    reverse_bandwagon   lowest means, rated lowest     lowest                           lowest         (none)
    love_hate           none                           highest (push: lowest)           lowest         highest
    random              none                           normal, as all ratings together  lowest         highest
    bandwagon           most ratings, rated highest    normal, as all ratings together  lowest         highest
    =================== ============================== ================================ ============== =============

    - **The seed's** are the first three, with intent "nuke". It rates by the mode of an item rather than its mean, as
      the scale is discrete, and gives the fillers of ``reverse_bandwagon`` the lowest rating too.
    - **From the literature** are ``random`` and ``bandwagon``, and "push" [1]_ [2]_: fillers are drawn from a normal
      distribution with the mean and the standard deviation of all ratings, rounded to the nearest category; a bandwagon
      has frequently rated items selected, with the highest rating. A love/hate attack pushes with the two ends of the
      scale exchanged. What pushes as ``reverse_bandwagon`` nukes is the bandwagon, so there is no other.
    - **Details**, as the paper's table of them is not in our copy: there are round(filler_share * (n_items - 1))
      fillers, or all items that are left where those are fewer. An item with several modes gets one of them, drawn for
      each cell; one without a rating gets a mode of all ratings. Of items with the same mean, or the same number of
      ratings, the one with the lower index is selected. Rounding takes halves to the even number.

    Parameters
    ----------
    kind : {"average", "reverse_bandwagon", "love_hate", "random", "bandwagon"}
    filler_share : float
        Fillers, as a share of all items but the target, in [0, 1]; 1 means all that are left.
    n_selected : int
        Selected items of the two bandwagons, >= 1.
    min_ratings : int
        Ratings that an item selected by ``reverse_bandwagon`` must have, >= 1.
    intent : {"nuke", "push"}
        Whether to demote or to promote the target.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.

    References
    ----------
    .. [1] B. Mobasher, R. Burke, R. Bhaumik and C. Williams, "Toward trustworthy recommender systems: an analysis of
       attack models and algorithm robustness", ACM Transactions on Internet Technology 7(4), 2007.
    .. [2] S. K. Lam and J. Riedl, "Shilling recommender systems for fun and profit", WWW 2004.
    """

    kind: Kind
    _: KW_ONLY
    filler_share: float = 0.1
    n_selected: int = 10
    min_ratings: int = 20
    intent: Intent = "nuke"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {self.kind!r}; choose one")
        if self.intent not in get_args(Intent):
            raise ValueError(f"intent must be 'nuke' or 'push', got {self.intent!r}; choose one")
        if self.kind == "reverse_bandwagon" and self.intent == "push":
            raise ValueError(
                "kind must not be 'reverse_bandwagon' with intent='push'; use 'bandwagon', its mirror image"
            )
        check_share("filler_share", self.filler_share)
        check_integer("n_selected", self.n_selected, low=1, mend="use kind 'average' or 'random' to select none")
        check_integer("min_ratings", self.min_ratings, low=1, mend="an item without a rating has no mean")

    def profiles(
        self, matrix: ArrayLike, target: int, *, n_profiles: int, seed: Any, categories: ArrayLike
    ) -> FloatArray:
        """Make fake profiles.

        With one seed, more profiles leave the first ones as they are, and all kinds that select no items have the same
        fillers: such attacks are pairs.

        Parameters
        ----------
        matrix : array_like of float, shape (n_users, n_items)
            What the attacker knows: observed ratings, NaN where missing.
        target : int
            Column of the item attacked, from 0.
        n_profiles : int
            >= 1; `number_of_profiles` gives it as a share of the target's ratings.
        seed : int or anything `numpy.random.default_rng` takes
        categories : array_like of float, shape (n_categories,)
            The ratings that can be given.

        Returns
        -------
        float64, shape (n_profiles, n_items)
            NaN where a profile does not rate.

        Raises
        ------
        ValueError
            If an argument is out of range, or too few items can be selected; the message names it.
        """
        ratings = rating_matrix(matrix)
        check_target(target, ratings.shape[1])
        check_integer("n_profiles", n_profiles, low=1, mend="number_of_profiles gives a share of the target's ratings")
        scale = category_array(categories, ratings)
        lowest, highest = scale[0], scale[-1]
        choice, content = streams(seed, 2)
        selected = self._selected(ratings, target)
        others = np.setdiff1d(np.arange(ratings.shape[1]), [target, *selected])
        n_fillers = min(round(self.filler_share * (ratings.shape[1] - 1)), len(others))
        fillers = _drawn(choice, (n_profiles, ratings.shape[1]), others, n_fillers)
        fake = np.where(fillers, self._contents(ratings, scale, content, n_profiles), np.nan)
        fake[:, selected] = highest if self.kind == "bandwagon" else lowest
        fake[:, target] = highest if self.intent == "push" else lowest
        return fake

    def _selected(self, ratings: FloatArray, target: int) -> IntArray:
        """The items that all profiles rate beside the target: first by the kind's rule, then by index."""
        counts = (~np.isnan(ratings)).sum(axis=0)
        if self.kind == "bandwagon":
            order, least = np.argsort(-counts, kind="stable"), 1
        elif self.kind == "reverse_bandwagon":
            order, least = np.argsort(item_means(ratings), kind="stable"), self.min_ratings
        else:
            return np.empty(0, dtype=np.int64)
        eligible = order[(counts[order] >= least) & (order != target)]
        if len(eligible) < self.n_selected:
            raise ValueError(
                f"n_selected must be at most {len(eligible)}, the items but the target with {least} ratings or more, "
                f"got {self.n_selected}; lower n_selected" + (" or min_ratings" if least > 1 else "")
            )
        selected: IntArray = eligible[: self.n_selected]
        return selected

    def _contents(
        self, ratings: FloatArray, scale: FloatArray, rng: np.random.Generator, n_profiles: int
    ) -> FloatArray:
        """What each profile would rate each item as a filler, float64, shape (n_profiles, n_items)."""
        shape = (n_profiles, ratings.shape[1])
        if self.kind == "average":
            return _modes(ratings, scale, rng.random(shape))
        if self.kind in ("random", "bandwagon"):
            return _nearest(np.nanmean(ratings) + np.nanstd(ratings) * rng.standard_normal(shape), scale)
        loves = self.kind == "love_hate" and self.intent == "nuke"
        return np.full(shape, scale[-1] if loves else scale[0])


def number_of_profiles(matrix: ArrayLike, target: int, share: float) -> int:
    """Number of fake profiles, as a share of the ratings of the target: round(share * ratings), at least 1.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
        NaN where a rating is missing.
    target : int
        Column, from 0.
    share : float
        > 0; the seed has 0.2, and 0.10, 0.15 and 0.20 for MovieLens. It may be above 1.

    Returns
    -------
    int
        Halves are rounded to the even number.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    ratings = rating_matrix(matrix)
    check_target(target, ratings.shape[1])
    check_share("share", share, high=np.inf, open_ends="both")
    return max(1, round(share * int((~np.isnan(ratings[:, target])).sum())))


def inject(matrix: ArrayLike, profiles: ArrayLike) -> FloatArray:
    """Append fake profiles to the ratings. Genuine users stay the rows from 0 on.

    Parameters
    ----------
    matrix : array_like of float, shape (n_users, n_items)
    profiles : array_like of float, shape (n_profiles, n_items)

    Returns
    -------
    float64, shape (n_users + n_profiles, n_items)

    Raises
    ------
    ValueError
        If the numbers of items differ.
    """
    ratings, fake = rating_matrix(matrix), rating_matrix(profiles, name="profiles")
    if ratings.shape[1] != fake.shape[1]:
        raise ValueError(
            f"profiles must have the {ratings.shape[1]} items of the matrix, got {fake.shape[1]}; make them from it"
        )
    return np.vstack([ratings, fake])


def _drawn(rng: np.random.Generator, shape: tuple[int, int], among: IntArray, n: int) -> BoolArray:
    """Mark n of some columns in each row: those with the least keys. Keys are drawn for all columns, in row order."""
    keys = np.full(shape, np.inf)
    keys[:, among] = rng.random(shape)[:, among]
    chosen = np.zeros(shape, dtype=bool)
    np.put_along_axis(chosen, keys.argsort(axis=1, kind="stable")[:, :n], True, axis=1)
    return chosen


def _modes(ratings: FloatArray, scale: FloatArray, uniform: FloatArray) -> FloatArray:
    """Most frequent rating of each item, one of several by a draw from [0, 1), shape of `uniform`."""
    counts = (ratings[:, :, None] == scale).sum(axis=0)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    is_mode = counts == counts.max(axis=1, keepdims=True)
    number = np.floor(uniform * is_mode.sum(axis=1)).astype(np.int64)  # which of the modes, from 0
    order = np.argsort(~is_mode, axis=1, kind="stable")  # modes first, ascending
    modes: FloatArray = scale[order[np.arange(ratings.shape[1]), number]]
    return modes


def _nearest(values: FloatArray, scale: FloatArray) -> FloatArray:
    """The category nearest to each value, the lower one in a tie."""
    return scale[np.searchsorted((scale[1:] + scale[:-1]) / 2, values, side="left")]
