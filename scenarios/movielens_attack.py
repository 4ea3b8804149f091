"""The second seed paper's first case study: what fake profiles do to predictions for MovieLens 100K.

The 939 movies with 20 ratings or more (Figure 4); 80% of the ratings train, 20% test (Figure 5: MAE, CPU time). Fake
profiles are added to the training ratings to demote a popular movie. Measured are the mean shift of its predictions
over the users who have not rated it (Figure 6), and its hit rate in their lists of ten. Lambda is chosen anew after
each attack. By default few lambdas, two splits to choose them and one target: some minutes. --paper takes hours. RDMC
centres by medians, so it is protected as long as the fake profiles do not move the target's median: the report tells.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from algorithms.attacks import popular_targets
from algorithms.datasets.filters import with_at_least
from algorithms.ratings import Ratings
from scenarios import attacks, case_studies, comparison, movielens, study
from scenarios.attacks import ATTACKS, KINDS, NONE
from scenarios.case_studies import BASELINES, LIBERAL, RDMC, SI, SI_DISCRETIZED, Choices, Grids, Split
from scenarios.completion import LAMBDAS, METHODS, Completed, held_out_cells, in_order, method_style
from scenarios.replications import SECONDS, Finding, Part, Replications, Row, counted, grid, parser, spread, summarize

__all__ = ["DEFAULT", "REFERENCE", "Settings", "Task", "before", "errors", "main", "parts", "shifts", "tasks"]

FloatArray = NDArray[np.float64]

CATEGORIES = np.arange(1.0, 6.0)
#: Fewest ratings of a movie, in all the data.
FEWEST = 20
SHARES = (0.10, 0.15, 0.20)

#: Without --paper. The values of lambda are those of the paper's ten around which the test errors of its methods on
#: these data have their minimum; beyond the ends, they grow.
DEFAULT = Choices(n_splits=2, grids=Grids(LAMBDAS[2:6], LAMBDAS[4:8]))

#: Test MAE that the authors' own implementation, RMCLab 0.1.0, has on one split of the data with the lambda that is
#: best on the test set, measured for this project.
REFERENCE = {RDMC: 0.735, RDMC + LIBERAL: 0.726, SI: 0.729, SI_DISCRETIZED: 0.691, "median": 0.777, "mode": 0.814}

TITLES: dict[Any, str] = {
    **{name: method.title for name, method in METHODS.items()},
    **attacks.TITLES,
    "mae": "test MAE",
}

# Purposes of draws, each a stream of its own: [seed, replication, purpose], and the target where it matters.
SPLIT, HELD_OUT, DRAWS, PROFILES, HELD_OUT_OF_PROFILES = range(1, 6)


@dataclass(frozen=True)
class Settings:
    """What all tasks have in common.

    Parameters
    ----------
    seed : int
    data : str
        Digest of the ratings.
    n_splits : int
        Splits that choose lambda, each with a tenth of the training ratings held out.
    rdmc_lambdas, soft_impute_lambdas : tuple of float
        What is chosen from, as fractions of the largest singular value.
    filler_share : float
        Fillers of a fake profile, as a share of the other items.
    n_selected, min_ratings : int
        Items that a bandwagon selects, and training ratings that one needs for a reverse bandwagon.
    n_listed : int
        Length of a user's list, for the hit rate.
    popular : float
        Share of the items that are popular, so that one of them is a target.
    """

    seed: int
    data: str
    n_splits: int = DEFAULT.n_splits
    rdmc_lambdas: tuple[float, ...] = DEFAULT.grids.rdmc
    soft_impute_lambdas: tuple[float, ...] = DEFAULT.grids.soft_impute
    filler_share: float = 0.1
    n_selected: int = 10
    min_ratings: int = 20
    n_listed: int = 10
    popular: float = 0.1

    @property
    def grids(self) -> Grids:
        """Both grids."""
        return Grids(self.rdmc_lambdas, self.soft_impute_lambdas)


@dataclass(frozen=True)
class Task:
    """One attack on one movie; or none, to measure errors.

    Parameters
    ----------
    replication : int
        From 0: a split of its own.
    target : int
        Which of the popular movies with the highest means, from 1; 0 where there is no attack.
    attack : str
        Kind of `algorithms.attacks.Attack`, or "none".
    share : float
        Fake profiles, as a share of the training ratings of the target; 0 where there is no attack.
    methods : tuple of str
        Names of `scenarios.completion.METHODS`.
    """

    replication: int
    target: int
    attack: str
    share: float
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Before:
    """A split and what methods make of it without an attack.

    Attributes
    ----------
    data : Split
    held_out : list of (rows, columns)
        Training cells that choose lambda.
    draws : int
        Seed of the draws of baselines.
    done : dict of Completed by name
    """

    data: Split
    held_out: Any
    draws: int
    done: dict[str, Completed]


def before(data: Split, methods: Sequence[str], settings: Settings, replication: int) -> Before:
    """Complete a training matrix without an attack."""
    seed = [settings.seed, replication]
    held_out = held_out_cells(data.train, n_splits=settings.n_splits, seed=[*seed, HELD_OUT])
    draws = int(np.random.default_rng([*seed, DRAWS]).integers(2**31))
    done = case_studies.completed(
        data.train, methods, categories=CATEGORIES, grids=settings.grids, held_out=held_out, seed=draws
    )
    return Before(data, held_out, draws, done)


def errors(this: Before) -> Iterator[Row]:
    """Rows without an attack: of each method `mae` on the test ratings, and about its fit."""
    yield from case_studies.error_rows(this.done, this.data)


def shifts(this: Before, task: Task, settings: Settings) -> Iterator[Row]:
    """Rows of an attack: of each method `prediction_shift`, `hit_rate` and its change, and about its fit."""
    train = this.data.train
    target = int(popular_targets(train, task.target, share=settings.popular)[-1])
    seed = [settings.seed, task.replication]
    matrix, cells = attacks.attacked(
        train,
        target,
        task.attack,
        this.held_out,
        settings,
        share=task.share,
        categories=CATEGORIES,
        seeds=([*seed, PROFILES, task.target], [*seed, HELD_OUT_OF_PROFILES, task.target]),
    )
    after = case_studies.completed(
        matrix, task.methods, categories=CATEGORIES, grids=settings.grids, held_out=cells, seed=this.draws
    )
    for name, done in after.items():
        yield from attacks.shift_rows(this.done[name], done, train, target, n_listed=settings.n_listed)


@lru_cache(maxsize=1)
def _before(ratings: Ratings, methods: tuple[str, ...], settings: Settings, replication: int) -> Before:
    """The same for all attacks of a replication: made once in each process."""
    data = case_studies.split(ratings, seed=[settings.seed, replication, SPLIT])
    return before(data, methods, settings, replication)


def measure(task: Task, settings: Settings, *, ratings: Ratings) -> list[Row]:
    """Rows of a task: those of `errors` where it has no attack, and else of `shifts`."""
    this = _before(ratings, task.methods, settings, task.replication)
    return list(errors(this) if task.attack == NONE else shifts(this, task, settings))


# -- the scenario --------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    return study.main(_parser(), run, argv)


def _parser() -> argparse.ArgumentParser:
    made = parser("movielens_attack", __doc__, replications=1)
    movielens.add_data(made)
    case_studies.add_arguments(made, DEFAULT, paper="; takes hours")
    attack = made.add_argument_group("attacks")
    attack.add_argument(
        "--attacks",
        type=attacks.kinds,
        default=",".join(ATTACKS),
        metavar="KIND,...",
        help=f"of {', '.join(KINDS)}; or none",
    )
    attack.add_argument(
        "--shares",
        type=comparison.shares,
        default=",".join(f"{each:g}" for each in SHARES),
        metavar="SHARE,...",
        help="fake profiles, as a share of the target's training ratings",
    )
    attack.add_argument(
        "--targets",
        type=study.at_least(1),
        default=1,
        metavar="N",
        help="movies that are attacked, one at a time: those with the highest means among the tenth that has the most "
        "ratings; the paper has one, and does not say which",
    )
    attacks.add_arguments(attack)
    return made


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    ratings = with_at_least(movielens.load(args), item=FEWEST)
    chosen = case_studies.choices(args, DEFAULT)
    most = math.ceil(Settings.popular * ratings.n_items - 1e-9)
    if args.targets > most:
        raise ValueError(
            f"--targets {args.targets}: expected at most {most}, {Settings.popular:.0%} of the {ratings.n_items} movies"
        )
    settings = Settings(
        seed=args.seed,
        data=ratings.digest[:16],
        n_splits=chosen.n_splits,
        rdmc_lambdas=chosen.grids.rdmc,
        soft_impute_lambdas=chosen.grids.soft_impute,
        filler_share=args.fillers,
        n_selected=args.selected,
        min_ratings=args.min_ratings,
        n_listed=args.listed,
    )

    def report(rows: pd.DataFrame) -> list[Part]:
        return parts(rows, settings, ratings)

    this = Replications("movielens_attack", args, settings, partial(measure, ratings=ratings), report)
    return this.run(tasks(args, chosen.methods))


def tasks(args: argparse.Namespace, methods: tuple[str, ...]) -> list[Task]:
    """All tasks of the arguments, replication by replication and target by target."""
    found = []
    for replication in range(args.replications):
        found.append(Task(replication, 0, NONE, 0.0, methods))
        found += [
            Task(replication, target, attack, share, methods)
            for target in range(1, args.targets + 1)
            for attack in args.attacks
            for share in args.shares
        ]
    return found


# -- report --------------------------------------------------------------------------------------------------------


def parts(rows: pd.DataFrame, settings: Settings, ratings: Ratings) -> list[Part]:
    """The figures of the paper that rows of tasks are enough for.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of finished tasks, as `Replications.rows`.
    settings : Settings
    ratings : Ratings
        All that are split.
    """
    made = [_figure_4(ratings)]
    if rows.empty:
        return made
    rows = in_order(rows)
    without = rows[rows["attack"] == NONE]
    if len(without):
        made.append(_figure_5(without, case_studies.lambda_note(rows, settings.grids, settings.n_splits)))
    moved = rows[rows["metric"] == "prediction_shift"]
    if len(moved):
        made.append(_figure_6(moved))
        made.append(_hit_rates(rows[rows["metric"] == "hit_rate_change"], settings.n_listed))
    return made


def _figure_4(ratings: Ratings) -> Part:
    values = ratings.value
    shares = ", ".join(f"{each:g}: {(values == each).mean():.1%}" for each in CATEGORIES)
    observed = len(ratings) / (ratings.n_users * ratings.n_items)
    skew, high = case_studies.skewness(values), float((values >= 3).mean())
    return Part(
        "figure4",
        "Figure 4: distribution of the ratings",
        f"{ratings.n_users} users, {ratings.n_items} movies with {FEWEST} ratings or more, {len(ratings)} ratings "
        f"({observed:.1%} of all pairs). {shares}.",
        [
            Finding(
                "the distribution is left-skewed, with a majority of medium to high ratings",
                skew < 0 and high > 0.5,
                f"the skewness is {skew:.2f}, and {high:.0%} of the ratings are 3 or more",
            )
        ],
        case_studies.histogram({"MovieLens 100K": values}, CATEGORIES.tolist()),
    )


def _figure_5(rows: pd.DataFrame, note: str) -> Part:
    errors, times = (rows[rows["metric"] == metric] for metric in ("mae", SECONDS))
    reference = pd.DataFrame({"method": list(REFERENCE), "metric": "mae", "value": list(REFERENCE.values())})
    shown = grid(
        summarize(errors[["replication", "method", "metric", "value"]]),
        down="method",
        across="metric",
        titles=TITLES,
        reference=reference,
        referenced="theirs",
    )
    tuned = times[times["method"].isin(case_studies.TUNED)]
    taken = grid(
        summarize(tuned[["replication", "method", "metric", "value"]]),
        down="method",
        across="metric",
        titles={**TITLES, SECONDS: "CPU seconds"},
        places=1,
    )
    n = rows["replication"].nunique()
    title = f"Figure 5: MAE on the test ratings, and CPU time with the choice of lambda, {counted(n, 'split')}"
    about = (
        'Of "theirs": the authors\' implementation on another split, with the lambda that is best on its test ratings. '
        "SI and SI-discretized are one fit, with one time."
    )
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), sharey=False, layout="constrained")
    there = set(errors["method"])
    case_studies.dots(
        axes[0], errors, "MAE on the test ratings", marks={k: v for k, v in REFERENCE.items() if k in there}
    )
    stroke = Line2D([], [], color="black", marker="|", markersize=12, linestyle="none")
    figure.legend(
        [stroke],
        ["authors' implementation, another split"],
        loc="outside lower left",
        frameon=False,
        fontsize="small",
    )
    one_each = tuned[~tuned["method"].str.contains("discretized")]
    if len(one_each):
        case_studies.dots(axes[1], one_each, "CPU time, seconds", log=True)
    else:
        axes[1].set_axis_off()
    found = [*_error_findings(errors), *case_studies.seconds_findings(times, times=3)]
    text = "\n\n".join([shown, *([taken] if len(tuned) else []), f"{about} {note}"])
    return Part("figure5", title, text, found, figure)


def _averaged(rows: pd.DataFrame) -> str:
    """What a mean is over: targets of splits."""
    n, splits = rows.groupby(["replication", "target"]).ngroups, rows["replication"].nunique()
    over = f"{counted(n, 'attacked movie')} in {counted(splits, 'split')}"
    return f"mean over {over} (standard error)" if n > 1 else over


def _by_share(rows: pd.DataFrame) -> str:
    """A table for each attack."""
    shown = []
    for attack in dict.fromkeys(rows["attack"]):
        here = rows[rows["attack"] == attack].sort_values("share", kind="stable")
        here = in_order(here)[["replication", "method", "share", "value"]]
        table = grid(
            summarize(here),
            down="method",
            across="share",
            titles={**TITLES, **{share: f"{share:.0%} fake" for share in here["share"]}},
            signed=True,
        )
        shown.append(f"{TITLES[attack].capitalize()}\n{table}")
    return "\n\n".join(shown)


def _figure_6(rows: pd.DataFrame) -> Part:
    title = (
        "Figure 6: mean prediction shift of the target over the users who have not rated it, by number of fake "
        f"profiles as a share of its training ratings; {_averaged(rows)}"
    )
    figure = _against_share(rows, "Mean prediction shift, stars")
    text = "\n\n".join([_by_share(rows), *_median_note(rows)])
    return Part("figure6", title, text, list(_shift_findings(rows)), figure)


def _median_note(rows: pd.DataFrame) -> Iterator[str]:
    """What the mean over attacked movies hides: RDMC centres by medians, so it moves where the target's median does."""
    one_each = ["replication", "target", "attack", "share"]
    medians = rows[rows["method"] == "median"].set_index(one_each)["value"]
    if medians.empty:
        return
    moved = rows.set_index(one_each).index.map((medians != 0).to_dict())
    shown = []
    for name in dict.fromkeys(rows["method"]):
        if name.startswith("rdmc"):
            ours = rows["method"] == name
            where = [rows.loc[ours & (moved == each), "value"].mean() for each in (True, False)]
            shown.append(f"{TITLES[name]} " + " and ".join(spread(each, math.nan, signed=True) for each in where))
    n = int((medians != 0).sum())
    told = f"The median of the target's ratings moved in {n} of {len(medians)} attacks."
    yield told + (f" Mean shift where it did, and where it did not: {', '.join(shown)}." if shown and n else "")


def _hit_rates(rows: pd.DataFrame, n_listed: int) -> Part:
    title = (
        f"Beside it: change of the target's hit rate in lists of {n_listed} of the users who have not rated it, equal "
        f"predictions in random order; {_averaged(rows)}"
    )
    figure = _against_share(rows, "Change of hit rate")
    note = "It changes too where the target stays and other movies move, or where more of them tie with it."
    return Part("hit_rate", title, f"{_by_share(rows)}\n\n{note}", [], figure)


def _against_share(rows: pd.DataFrame, label: str) -> Figure:
    """A panel for each attack, a line for each method: means, and standard errors where there are several values."""
    kinds, names = list(dict.fromkeys(rows["attack"])), list(dict.fromkeys(rows["method"]))
    sizes = sorted(set(rows["share"]))
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(2.6 + 3.4 * len(kinds), 4.4), squeeze=False, sharey=True, layout="constrained"
    )
    for ax, kind in zip(axes[0], kinds, strict=True):
        ax.axhline(0, color="0.35", linewidth=0.9)
        for at, name in enumerate(names):
            here = rows[(rows["attack"] == kind) & (rows["method"] == name)]
            values = [here.loc[here["share"] == size, "value"] for size in sizes]
            aside = 0.36 * (at - (len(names) - 1) / 2) / len(names)  # so that lines on each other can be told apart
            ax.errorbar(
                np.arange(len(sizes)) + aside,
                [each.mean() for each in values],
                [each.sem() if len(each) > 1 else 0.0 for each in values],
                markersize=5,
                linewidth=1.0,
                capsize=2,
                **method_style(name),
            )
        ax.set_xticks(range(len(sizes)), [f"{size:.0%}" for size in sizes])
        ax.set_xlabel("Fake profiles per rating of the target")
        ax.set_title(TITLES[kind], fontsize="medium")
        ax.grid(axis="y", alpha=0.3)
    axes[0, 0].set_ylabel(label)
    case_studies.legend_of_methods(figure, names)
    return figure


# -- what the paper found, and whether this run did ----------------------------------------------------------------


def _error_findings(errors: pd.DataFrame) -> Iterator[Finding]:
    """Section 4.1 on Figure 5 (left)."""
    mean = errors.groupby("method")["value"].mean()
    losses = [name for name in mean.index if name.startswith("rdmc")]
    if not {RDMC, SI, SI_DISCRETIZED, *BASELINES} <= set(mean.index):
        return
    worst, simple = max(mean[name] for name in (*losses, SI)), min(mean[name] for name in BASELINES)
    yield Finding(
        "RDMC and SI clearly outperform median and mode, with a MAE of about 0.725",
        worst < simple - 0.02 and abs(worst - 0.725) < 0.02,
        f"{worst:.3f} at most, and {simple:.3f} for the best of median and mode; 0.02 counts as clear, and as about",
    )
    rounded = float(mean[SI_DISCRETIZED])
    yield Finding(
        "SI-discretized has a still smaller MAE, about 0.69",
        rounded < min(mean[name] for name in (*losses, SI)) - 0.01 and abs(rounded - 0.69) < 0.02,
        f"{rounded:.3f}",
    )
    pairs = [name for name in mean.index if name + LIBERAL in mean.index]
    if RDMC in pairs and SI in pairs:
        most = max(pairs, key=lambda name: abs(mean[name] - mean[name + LIBERAL]))
        yield Finding(
            "the liberal criterion hardly affects the MAE of RDMC and SI",
            abs(mean[most] - mean[most + LIBERAL]) < 0.015,
            f"the largest difference is {mean[most + LIBERAL] - mean[most]:+.3f}, of {TITLES[most]}; less than 0.015 "
            "counts as hardly",
        )


def _shift_findings(rows: pd.DataFrame) -> Iterator[Finding]:
    """Section 4.1 on Figure 6."""
    mean = rows.groupby(["attack", "share", "method"])["value"].mean()
    cells = list(dict.fromkeys(zip(rows["attack"], rows["share"], strict=True)))
    names = list(dict.fromkeys(rows["method"]))
    losses, both = ([name for name in names if name.startswith(start)] for start in ("rdmc", "soft_impute"))
    if not losses or not {SI, SI_DISCRETIZED} <= set(names):
        return
    size = {(*cell, name): abs(float(mean[(*cell, name)])) for cell in cells for name in names}
    against = [(size[(*cell, name)], min(size[(*cell, other)] for other in both)) for cell in cells for name in losses]
    below = sum(rdmc < si for rdmc, si in against)
    ours, theirs = (float(np.mean(each)) for each in zip(*against, strict=True))
    yield Finding(
        "all RDMC are closer to 0 than all SI, by a considerable margin, under all attacks",
        below == len(against) and ours < 0.5 * theirs,
        f"in {below} of {len(against)} comparisons of a mean shift with the least of SI; on average they are "
        f"{ours:.3f} and {theirs:.3f} away",
    )
    near = sum(rdmc < 0.1 for rdmc, _ in against)
    yield Finding(
        "RDMC's shift is close to 0 in almost all cases",
        near >= 0.8 * len(against),
        f"the mean is less than 0.1 away in {near} of {len(against)}; four of five count as almost all",
    )
    love = [cell for cell in cells if cell[0] == "love_hate"]
    pairs = [(name, cell) for name in losses if name + LIBERAL in losses for cell in love]
    if pairs:
        stricter = sum(size[(*cell, name)] < size[(*cell, name + LIBERAL)] for name, cell in pairs)
        yield Finding(
            "under the love/hate attack RDMC needs the strict criterion for its best",
            stricter == len(pairs),
            f"the strict one is closer to 0 in {stricter} of {len(pairs)} comparisons",
        )
    yield from _size_findings(mean, cells, both)


def _size_findings(
    mean: "pd.Series[float]", cells: Sequence[tuple[str, float]], both: Sequence[str]
) -> Iterator[Finding]:
    """What a larger attack does to SI."""
    kinds, sizes = list(dict.fromkeys(kind for kind, _ in cells)), sorted({share for _, share in cells})
    lines = [(kind, name) for kind in kinds for name in both if all((kind, share) in cells for share in sizes)]
    if len(sizes) > 1 and lines:
        worse = sum(mean[kind, sizes[-1], name] < mean[kind, sizes[0], name] for kind, name in lines)
        yield Finding(
            "SI's shift grows with the attack",
            worse == len(lines),
            f"it is further down at {sizes[-1]:.0%} than at {sizes[0]:.0%} in {worse} of {len(lines)} comparisons",
        )
    large = [(kind, share) for kind, share in cells if share > 0.15]
    small = [(kind, share) for kind, share in cells if share <= 0.15]
    if large and small:
        behind = [sum(mean[(*cell, SI_DISCRETIZED)] < mean[(*cell, SI)] for cell in group) for group in (large, small)]
        yield Finding(
            "SI-discretized falls behind SI when the attack exceeds 15%",
            behind[0] == len(large) and behind[1] < len(small),
            f"it is further down in {behind[0]} of {len(large)} attacks above 15%, and in {behind[1]} of {len(small)} "
            "up to there",
        )


if __name__ == "__main__":
    from scenarios import movielens_attack  # under its own name, by which worker processes find its functions

    sys.exit(movielens_attack.main())
