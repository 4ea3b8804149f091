"""Fake profiles in the second seed paper's experiments: their arguments, one attack on a matrix, and what it moves."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from algorithms.attacks import Attack, hit_rate, inject, mean_prediction_shift, number_of_profiles
from algorithms.attacks.profiles import Kind
from scenarios import study
from scenarios.completion import Cells, Completed, fit_rows, held_out_also
from scenarios.replications import Row

__all__ = ["ATTACKS", "KINDS", "NONE", "TITLES", "add_arguments", "attacked", "kinds", "shift_rows"]

FloatArray = NDArray[np.float64]

#: All kinds of `algorithms.attacks.Attack`, and those of the paper.
KINDS: tuple[str, ...] = get_args(Kind)
ATTACKS = ("average", "reverse_bandwagon", "love_hate")
NONE = "none"

TITLES = {
    "average": "average attack",
    "reverse_bandwagon": "reverse bandwagon",
    "love_hate": "love/hate",
    "bandwagon": "bandwagon",
    "random": "random",
}


class Settings(Protocol):
    """Settings of an experiment that attacks depend on."""

    @property
    def filler_share(self) -> float:
        """Fillers of a fake profile, as a share of the other items."""

    @property
    def n_selected(self) -> int:
        """Items that a bandwagon selects."""

    @property
    def min_ratings(self) -> int:
        """Ratings that an item needs for a reverse bandwagon."""


def kinds(text: str) -> list[str]:
    """Argument type: distinct kinds of attack, or none."""
    return [] if text == NONE else study.names(text, KINDS)


def add_arguments(to: argparse._ArgumentGroup) -> None:
    """Add the arguments of fake profiles, and of the lists that a hit rate is of."""
    to.add_argument(
        "--fillers", type=study.share, default=0.1, metavar="SHARE", help="of the other items that a fake profile rates"
    )
    to.add_argument(
        "--selected", type=study.at_least(1), default=10, metavar="N", help="items that a bandwagon selects"
    )
    to.add_argument(
        "--min-ratings", type=study.at_least(1), default=20, metavar="N", help="that a reverse bandwagon's items have"
    )
    to.add_argument(
        "--listed", type=study.at_least(1), default=10, metavar="N", help="length of a list, for the hit rate"
    )


def attacked(
    observed: FloatArray,
    target: int,
    kind: Any,
    held_out: Sequence[Cells],
    settings: Settings,
    *,
    share: float,
    categories: FloatArray,
    seeds: tuple[Any, Any],
) -> tuple[FloatArray, list[Cells]]:
    """A matrix with fake profiles below the genuine ones, and the cells that choose lambda there.

    Parameters
    ----------
    observed : float64, shape (n_users, n_items)
        NaN where a rating is missing.
    target : int
        The item that is attacked.
    kind : str
        One of `KINDS`.
    held_out : list of (rows, columns)
        What was held out before the attack.
    settings : Settings
    share : float
        Fake profiles, as a share of the ratings of the target.
    categories : float64, shape (n_categories,)
    seeds : pair of what `numpy.random.default_rng` takes
        Of the fake profiles, and of the ratings in them that are held out.
    """
    attack = Attack(
        kind,
        filler_share=settings.filler_share,
        n_selected=settings.n_selected,
        min_ratings=settings.min_ratings,
    )
    n_profiles = number_of_profiles(observed, target, share)
    profiles = attack.profiles(observed, target, n_profiles=n_profiles, seed=seeds[0], categories=categories)
    matrix = inject(observed, profiles)
    return matrix, held_out_also(held_out, matrix, n_before=len(observed), seed=seeds[1])


def shift_rows(
    before: Completed, after: Completed, observed: FloatArray, target: int, *, n_listed: int, **condition: Any
) -> Iterator[Row]:
    """Rows of an attack: `prediction_shift` of the target, its `hit_rate` and `hit_rate_change`, and about the fit."""
    rated, genuine = ~np.isnan(observed), after.matrix[: len(observed)]
    shift = mean_prediction_shift(before.matrix[:, target], genuine[:, target], ~rated[:, target])
    rates = [hit_rate(each, rated, target, n=n_listed) for each in (before.matrix, genuine)]
    found = {"prediction_shift": shift, "hit_rate": rates[1], "hit_rate_change": rates[1] - rates[0]}
    for metric, value in found.items():
        yield {**condition, "method": after.method, "metric": metric, "value": value}
    yield from fit_rows(after, **condition)
