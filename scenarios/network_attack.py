"""What fake users do to the network, beside what they do to solvers that have all ratings on one machine.

Fake users rate a popular item lowest, and others as most users do (average attack), lowest too (reverse bandwagon) or
highest (love/hate). They take part as everybody does: they send profiles, and tell routers
their ratings. Ratings are those of the second seed paper's simulation, in 5 categories, missing not at random; the
target is by its rule.

Measured is the mean prediction shift: of the genuine users who have not rated the target, the mean prediction at the
end less that of the same seed's network without fake users. It is compared with the shift of ALS on the same objective,
which tells what decentralization adds, and of Soft-Impute and RDMC; all predictions are clipped to the rating scale.
Beside it: fake users who join halfway, when the network has learned; and routers that weigh large errors less, by the
gradient of RDMC's pseudo-Huber loss.
"""

import argparse
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import matplotlib.pyplot as plt
import numba
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.attacks import Attack, attacked, hit_rate, mean_prediction_shift, simulated_target
from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings, Scale
from algorithms.solvers import AlternatingLeastSquares
from algorithms.synthetic import missing_not_at_random, recommender
from netsim import Arrivals, Result, View, World, rmse
from scenarios import attacks, comparison, study
from scenarios.attacks import TITLES
from scenarios.churn import interval
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    band,
    labelled,
    legend,
    numbers,
    parser,
    pivot,
    points,
    shares,
    told,
)
from scenarios.completion import METHOD_COLOURS, complete, held_out_also, held_out_cells

__all__ = ["Condition", "Stage", "conditions", "main", "make_stage"]

FloatArray = NDArray[np.float64]

N_CATEGORIES = 5
CATEGORIES = np.arange(1.0, N_CATEGORIES + 1.0)
N_SPLITS = 2  # that choose lambda
NONE, ROBUST_NONE = "no attack", "robust routers, no attack"
START, LATE, ROBUST = "from the start", "halfway", "robust routers"
#: Solvers beside the network, and how they are called. Those but ALS are of `scenarios.completion`.
SOLVERS = {"als": "ALS", "soft_impute": "Soft-Impute", "rdmc_pseudo_huber": "RDMC"}
TUNED = ("soft_impute", "rdmc_pseudo_huber")
# Of rank 4, 8 and lambda 0.05 to 0.3, ALS has the lowest error on missing ratings with these, without fake users.
DEFAULTS = Learning(rank=8, lam=0.1, rate=0.05, schedule=Schedule("exponential", 20))
# Purposes of draws, each a stream of its own: [seed, purpose].
DATA, MASK, PROFILES, HELD_OUT, HELD_OUT_OF_PROFILES = range(1, 6)


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    # A ninetieth of the time is a period then: what is measured swings within one, as senders come in turns.
    made = parser("network_attack", __doc__, until=900.0, size=120, learning=DEFAULTS)
    made.set_defaults(users=200)
    made.add_argument(
        "--kinds",
        type=lambda text: study.names(text, attacks.KINDS),
        default=",".join(attacks.ATTACKS),
        metavar="KIND,...",
        help=f"attacks, of {', '.join(attacks.KINDS)}",
    )
    made.add_argument(
        "--profiles",
        type=shares,
        default="0.1,0.2,0.4",
        metavar="SHARE,...",
        help="fake users, as shares of the target's ratings; the one in the middle, of two the larger, also halfway "
        "and at robust routers",
    )
    made.add_argument(
        "--lambdas",
        type=numbers,
        default="0.05,0.1,0.2,0.4",
        metavar="L,...",
        help="of Soft-Impute and RDMC, as fractions of the largest singular value; chosen on held-out ratings",
    )
    made.add_argument(
        "--tau",
        type=study.positive,
        default=0.5,
        metavar="POINTS",
        help="errors from which robust routers weigh less, in rating points",
    )
    attacks.add_arguments(made.add_argument_group("fake users"))
    return study.main(made, run, argv)


# -- what is attacked ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Stage:
    """What all attacks of one seed have in common.

    Attributes
    ----------
    seed : int
    ratings : Ratings
        Of genuine users, what the attacker knows.
    complete : float64, shape (n_users, n_items)
        Ratings of genuine users, those that are missing too.
    missing : bool, shape (n_users, n_items)
    target : int
        The item attacked.
    """

    seed: int
    ratings: Ratings
    complete: FloatArray
    missing: NDArray[np.bool_]
    target: int

    @property
    def observed(self) -> FloatArray:
        """Ratings as a matrix, NaN where they are missing, float64, shape (n_users, n_items)."""
        return _matrix(self.ratings)

    def test(self, ratings: Ratings) -> Ratings:
        """Missing ratings of genuine users, with the users of some ratings."""
        return _ratings(self.complete, self.missing, ratings.user_ids)

    def with_fakes(self, kind: str, share: float, args: argparse.Namespace) -> Ratings:
        """The ratings with those of fake users, as a share of the target's ratings; or without, where it is 0.

        Raises
        ------
        ValueError
            If a bandwagon finds too few items that are rated often enough.
        """
        if not share:
            return self.ratings
        attack = Attack(
            kind,  # type: ignore[arg-type]
            filler_share=args.fillers,
            n_selected=args.selected,
            min_ratings=args.min_ratings,
        )
        try:
            return attacked(
                self.ratings,
                attack,
                target=self.target,
                share=share,
                seed=[self.seed, PROFILES],
                categories=CATEGORIES,
            )
        except ValueError as error:
            raise ValueError(f"--kinds {kind}, seed {self.seed}: {error}; or give more --users and --items") from error

    def shift(self, before: FloatArray, after: FloatArray) -> float:
        """Mean prediction shift of the target, in rating points; NaN where a prediction is not finite.

        Parameters
        ----------
        before, after : float64, shape (at least n_users, n_items)
            Predictions; genuine users come first.
        """
        users = self.missing[:, self.target]
        pair = before[: len(users), self.target], after[: len(users), self.target]
        return mean_prediction_shift(*pair, users) if np.isfinite(pair).all() else math.nan

    def hit_rate(self, predicted: FloatArray, n: int) -> float:
        """Share of the genuine users who have not rated the target that have it among the n best; NaN as above."""
        genuine = predicted[: len(self.missing)]
        return hit_rate(genuine, ~self.missing, self.target, n=n) if np.isfinite(genuine).all() else math.nan


def make_stage(n_users: int, n_items: int, seed: int) -> Stage:
    """Ratings of a seed, and the item that is attacked.

    Raises
    ------
    ValueError
        If some user has no rating, or all have rated the target.
    """
    world = recommender(n_users, n_items, seed=[seed, DATA], n_categories=N_CATEGORIES)
    missing = missing_not_at_random(world.shifts, n_users, seed=[seed, MASK])
    observed = np.where(missing, np.nan, world.complete)
    if missing.all(axis=1).any():
        raise ValueError(f"--items {n_items}, seed {seed}: some user has no rating; give more")
    target = simulated_target(observed, world.shifts, world.largest_shift)
    if not missing[:, target].any():
        raise ValueError(f"--users {n_users}, seed {seed}: all of them have rated the target; give more")
    return Stage(seed, _ratings(world.complete, ~missing, tuple(range(n_users))), world.complete, missing, target)


def _ratings(matrix: FloatArray, cells: NDArray[np.bool_], users: tuple[Hashable, ...]) -> Ratings:
    user, item = np.nonzero(cells)
    return Ratings.from_arrays(
        [users[index] for index in user.tolist()],
        item.tolist(),
        matrix[user, item],
        scale=Scale(1.0, float(N_CATEGORIES)),
        user_ids=users,
        item_ids=tuple(range(matrix.shape[1])),
    )


def _matrix(ratings: Ratings) -> FloatArray:
    matrix = np.full((ratings.n_users, ratings.n_items), np.nan)
    matrix[ratings.user, ratings.item] = ratings.value
    return matrix


# -- conditions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """One attack on the network, or none.

    Attributes
    ----------
    label : str
    kind : str
        Of `scenarios.attacks.KINDS`, or empty.
    share : float
        Fake users, as a share of the target's ratings.
    how : str
        START, LATE or ROBUST.
    """

    label: str
    kind: str
    share: float
    how: str


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All attacks, after the two networks without one."""
    made = [Condition(NONE, "", 0.0, START), Condition(ROBUST_NONE, "", 0.0, ROBUST)]
    for kind in args.kinds:
        made += [Condition(f"{TITLES[kind]}, {percent(share)}", kind, share, START) for share in args.profiles]
        share = middle(args)
        made += [Condition(f"{TITLES[kind]}, {percent(share)}, {how}", kind, share, how) for how in (LATE, ROBUST)]
    return made


def percent(share: float) -> str:
    """A share as a percentage, with its digits."""
    return f"{100 * share:.12g}%"


def middle(args: argparse.Namespace) -> float:
    """The share of fake users that is looked at in all ways."""
    return float(args.profiles[len(args.profiles) // 2])


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    stages = {seed: make_stage(args.users, args.items, seed) for seed in args.seeds}
    # All of them before the first run, so that one that cannot be made is told before there is anything to lose.
    ratings = {
        (seed, each.kind, each.share): stages[seed].with_fakes(each.kind, each.share, args)
        for seed in args.seeds
        for each in compared
    }
    solved: dict[tuple[int, str, float], Solved] = {}

    def finished(this: Comparison) -> Report:
        return report(this, compared, stages, solved)

    this = Comparison("network_attack", args, report=finished, n_conditions=len(compared))
    for seed in args.seeds:
        for each in compared:
            key = seed, each.kind, each.share
            if key not in solved:
                solved[key] = solve(args, stages[seed], ratings[key])
            probes = [rmse(stages[seed].test(ratings[key])), MeanPrediction(stages[seed])]
            this.measure(each.label, seed, world(args, each, ratings[key], stages[seed]), probes)
    return this.finish()


def world(args: argparse.Namespace, each: Condition, ratings: Ratings, stage: Stage) -> World:
    """The network under a condition; all chance of genuine nodes is the same under all."""
    made = comparison.world(ratings, args, stage.seed)
    if each.how == ROBUST:
        return made.replace(update_item=robust_update(args.tau))
    if each.how == LATE:
        fakes = ratings.user_ids[stage.ratings.n_users :]
        return made.replace(arrivals=Arrivals.of_users(ratings, fakes, at=args.until / 2))
    return made


@lru_cache
def robust_update(tau: float) -> Any:
    """Equation (4) with the gradient of the pseudo-Huber loss: errors beyond `tau` rating points weigh less."""

    @numba.njit
    def update(own, other, rating, rate, lam):  # type: ignore[no-untyped-def]
        error = rating
        for k in range(own.shape[0]):
            error -= own[k] * other[k]
        error /= math.sqrt(1.0 + (error / tau) ** 2)
        for k in range(own.shape[0]):
            own[k] += rate * (error * other[k] - lam * own[k])

    return update


@dataclass(frozen=True, eq=False, repr=False)
class MeanPrediction:
    """Probe of the mean prediction for the target, over the genuine users who have not rated it, in rating points."""

    stage: Stage

    @property
    def columns(self) -> tuple[str, ...]:
        """One."""
        return ("target_prediction",)

    def __call__(self, view: View) -> Mapping[str, float]:
        """Measure it."""
        predicted = _clipped(view.user_profiles, view.item_profiles)[: len(self.stage.missing), self.stage.target]
        return {"target_prediction": float(predicted[self.stage.missing[:, self.stage.target]].mean())}


def _clipped(users: FloatArray, items: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):  # where a run has diverged
        return np.clip(users @ items.T, CATEGORIES[0], CATEGORIES[-1])


@dataclass(frozen=True, eq=False, repr=False)
class Solved:
    """What the solvers made of some ratings.

    Attributes
    ----------
    predicted : dict of float64, shape (n_users, n_items)
        Predictions by the name of the solver, fake users last.
    lambdas : dict of float
        The lambda that was chosen, of those that choose one.
    """

    predicted: dict[str, FloatArray]
    lambdas: dict[str, float]


def solve(args: argparse.Namespace, stage: Stage, ratings: Ratings) -> Solved:
    """Fit all solvers to ratings, which may have fake users."""
    als = AlternatingLeastSquares(args.rank, lam=args.lam, regularization=args.regularization, seed=stage.seed)
    als.fit(ratings)
    n_users, matrix = stage.ratings.n_users, _matrix(ratings)
    cells = held_out_cells(stage.observed, n_splits=N_SPLITS, seed=[stage.seed, HELD_OUT])
    if len(matrix) > n_users:
        cells = held_out_also(cells, matrix, n_before=n_users, seed=[stage.seed, HELD_OUT_OF_PROFILES])
    done = complete(matrix, TUNED, categories=CATEGORIES, held_out=cells, lambdas=args.lambdas)
    predicted = {name: np.clip(each.matrix, CATEGORIES[0], CATEGORIES[-1]) for name, each in done.items()}
    predicted["als"] = _clipped(als.user_profiles_, als.item_profiles_)
    return Solved(predicted, {name: each.lam for name, each in done.items()})


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("test_rmse", "RMSE, network", 3),
    Column("shift", "shift, network", 3, signed=True),
    *(Column(f"shift_{name}", title, 3, signed=True) for name, title in SOLVERS.items()),
    Column("hit_rate", "listed (%)", 1),
)


def report(
    this: Comparison,
    compared: Sequence[Condition],
    stages: Mapping[int, Stage],
    solved: Mapping[tuple[int, str, float], Solved],
) -> Report:
    """Compare the network to itself without fake users, and to the solvers."""
    rows = [found(this, each, stages[seed], solved) for each in compared for seed in this.complete]
    measured = pd.DataFrame(rows)
    heading = (
        "Mean prediction shift of the target (rating points), same seed with and without fake users, whose number is "
        f"given as a share of the target's ratings; mean ± standard deviation of {len(this.complete)} seeds. Listed: "
        "genuine users who have not rated the target that the network would recommend it to, in a list of "
        f"{this.args.listed}."
    )
    return Report(measured, COLUMNS, heading, answer(this, measured), draw(this, measured))


def found(
    this: Comparison,
    each: Condition,
    stage: Stage,
    solved: Mapping[tuple[int, str, float], Solved],
) -> dict[str, Any]:
    """What a condition did with one seed."""
    seed = stage.seed
    result = this.result(each.label, seed)
    plain = this.result(ROBUST_NONE if each.how == ROBUST else NONE, seed)
    before, after = solved[seed, "", 0.0], solved[seed, each.kind, each.share]
    return {
        "condition": each.label,
        "seed": seed,
        "kind": each.kind,
        "share": each.share,
        "how": each.how,
        "test_rmse": float(result.final["test_rmse"]),
        "shift": stage.shift(_predicted(plain), _predicted(result)),
        **{f"shift_{name}": stage.shift(before.predicted[name], after.predicted[name]) for name in SOLVERS},
        "hit_rate": 100 * stage.hit_rate(_predicted(result), this.args.listed),
        **{f"lam_{name}": after.lambdas[name] for name in TUNED},
    }


def _predicted(result: Result) -> FloatArray:
    return _clipped(result.user_profiles, result.item_profiles)


def answer(this: Comparison, measured: pd.DataFrame) -> str:
    """The answer in words, from the numbers."""
    if measured["shift"].isna().any():
        return "Some runs diverged, so there is no answer."
    share, kinds = middle(this.args), list(this.args.kinds)
    at = {kind: f"{TITLES[kind]}, {percent(share)}" for kind in kinds}
    shown = "; ".join(
        f"{TITLES[kind]} {told(pivot(measured, at[kind], 'shift'), signed=True)} (ALS, on the same objective, "
        f"{_mean(measured, at[kind], 'shift_als'):+.3f}, Soft-Impute "
        f"{_mean(measured, at[kind], 'shift_soft_impute'):+.3f}, RDMC "
        f"{_mean(measured, at[kind], 'shift_rdmc_pseudo_huber'):+.3f})"
        for kind in kinds
    )
    apart = pd.concat([measured[measured["condition"] == label] for label in at.values()])
    added = (apart["shift"] - apart["shift_als"]).groupby(apart["seed"]).mean().to_numpy(dtype=float)
    low, high = interval(added)
    parts = [
        f"With fake users at {percent(share)} of the target's ratings, the network's predictions move by: {shown}.",
        f"Decentralization itself changes the shift by {added.mean():+.3f}, the mean of the attacks (95% interval of "
        f"the mean over seeds {low:+.3f} to {high:+.3f}).",
    ]
    for how, words in (
        (LATE, "Fake users who join halfway move it by"),
        (ROBUST, "With routers that weigh large errors less it moves by"),
    ):
        each = ", ".join(f"{_mean(measured, f'{at[kind]}, {how}', 'shift'):+.3f} ({TITLES[kind]})" for kind in kinds)
        parts.append(f"{words} {each}.")
    dearer = _mean(measured, ROBUST_NONE, "test_rmse") - _mean(measured, NONE, "test_rmse")
    parts.append(f"Without an attack such routers change the error by {dearer:+.3f}.")
    return " ".join(parts)


def _mean(measured: pd.DataFrame, condition: str, column: str) -> float:
    return float(pivot(measured, condition, column).mean())


# -- the figure ----------------------------------------------------------------------------------------------------

STYLES = {
    "shift": ("network", COLOURS[0], "o", "-"),
    "shift_als": ("ALS", COLOURS[6], "s", "--"),
    "shift_soft_impute": ("Soft-Impute", METHOD_COLOURS["soft_impute"], "^", "-."),
    "shift_rdmc_pseudo_huber": ("RDMC", METHOD_COLOURS["rdmc_pseudo_huber"], "D", ":"),
}
ALONE = {LATE: (COLOURS[3], "X"), ROBUST: (COLOURS[1], "P")}


def draw(this: Comparison, measured: pd.DataFrame) -> Figure:
    """Shift against the share of fake users, a panel for each attack; and what happens over time."""
    kinds = list(this.args.kinds)
    rows = math.ceil((len(kinds) + 1) / 2)
    figure, axes = plt.subplots(rows, 2, figsize=(9.8, 3.9 * rows), squeeze=False, layout="constrained")
    panels = list(axes.flat)
    for ax in panels[len(kinds) + 1 :]:
        ax.set_axis_off()
    for ax in panels[1 : len(kinds)]:
        ax.sharey(panels[0])
    for ax, kind in zip(panels, kinds, strict=False):
        _draw_shifts(ax, this.args, measured, kind)
    legend(panels[min(1, len(kinds) - 1)], loc="lower left")
    _draw_time(panels[len(kinds)], this, kinds[-1])
    return figure


def _draw_shifts(ax: Axes, args: argparse.Namespace, measured: pd.DataFrame, kind: str) -> None:
    ax.grid(alpha=0.3)
    ax.axhline(0.0, color="0.5", lw=0.8)
    width = 0.02 * max(args.profiles)
    for number, (column, (label, colour, marker, line)) in enumerate(STYLES.items()):
        found_ones = [pivot(measured, f"{TITLES[kind]}, {percent(share)}", column) for share in args.profiles]
        at = [share + width * (number - 1.5) for share in args.profiles]
        points(ax, at, found_ones, label, color=colour, marker=marker, linestyle=line)
    for number, (how, (colour, marker)) in enumerate(ALONE.items()):
        values = pivot(measured, f"{TITLES[kind]}, {percent(middle(args))}, {how}", "shift")
        at_one = [middle(args) + width * (number + 2.5)]
        points(ax, at_one, [values], f"network, {how}", color=colour, marker=marker, linestyle="")
    ax.set_xticks(args.profiles, [percent(share) for share in args.profiles])
    title = f"{TITLES[kind].capitalize()}; bars: one deviation over seeds"
    labelled(
        ax, "Fake users per rating of the target (points set apart)", "Mean prediction shift (rating points)", title
    )


def _draw_time(ax: Axes, this: Comparison, kind: str) -> None:
    ax.grid(alpha=0.3)
    share = percent(middle(this.args))
    at = np.union1d(np.arange(this.every, this.args.until, this.every), [this.args.until])
    for label, name, colour, line in (
        (NONE, "no attack", "0.5", "-"),
        (f"{TITLES[kind]}, {share}", "from the start", COLOURS[0], "--"),
        (f"{TITLES[kind]}, {share}, {LATE}", "halfway", ALONE[LATE][0], "-."),
    ):
        band(ax, at, this.curves(label, "target_prediction", at), name, color=colour, linestyle=line)
    ax.axvline(this.args.until / 2, color="0.5", lw=0.8)
    title = f"{TITLES[kind].capitalize()}, {share}, over time"
    labelled(ax, "Simulated time (s)", "Mean prediction for the target (rating points)", title)
    legend(ax, loc="lower right")


if __name__ == "__main__":
    sys.exit(main())
