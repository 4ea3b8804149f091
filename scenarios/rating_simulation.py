"""The second seed paper's simulation: errors of matrix completion, and what fake profiles do to a target item.

300 users rate 200 items in 3, 5 or 10 categories; 70% of the ratings are missing, those of unpopular items more often
(mnar) or all alike (mcar). Without an attack: MAE over all missing ratings (Figure 2). With one: mean prediction shift
of the target (Figures 3 and 12), and the change of its hit rate in lists of ten. RDMC's three losses are compared in
five categories (Figures 10 and 11). Methods and attacks share data, held-out ratings and the target, and numbers of
categories the users' tastes and the mask, so they are pairs; lambda is chosen anew after each attack.

A replication takes about 5 minutes of CPU time, so the default is about 8 minutes on two cores.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.attacks import simulated_target
from algorithms.synthetic import (
    BREAKPOINTS,
    Recommender,
    missing_completely_at_random,
    missing_not_at_random,
    recommender,
)
from scenarios import attacks, boxes, study
from scenarios.attacks import ATTACKS, KINDS, NONE
from scenarios.completion import (
    LAMBDAS,
    METHOD_COLOURS,
    METHODS,
    Completed,
    add_lambdas,
    complete,
    fit_rows,
    held_out_cells,
    in_order,
    methods,
)
from scenarios.replications import Finding, Part, Replications, Row, counted, grid, parser, summarize

__all__ = ["LOSSES", "MAIN", "REFERENCE", "Settings", "Task", "golden", "main", "measure", "simulated", "tasks"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: Methods of Figures 2, 3 and 12, and the further ones of Figures 10 and 11.
MAIN = (
    "rdmc_pseudo_huber",
    "rdmc_pseudo_huber_liberal",
    "soft_impute",
    "soft_impute_discretized",
    "median",
    "discretized_median",
    "mode",
)
LOSSES = ("rdmc_absolute", "rdmc_truncated")
THREE_LOSSES = ("rdmc_pseudo_huber", *LOSSES)
RDMC, LIBERAL, SI, DISCRETIZED, MEDIAN, MODE = *MAIN[:5], MAIN[6]
MECHANISMS = ("mnar", "mcar")
#: Numbers of replications in the paper: all, and of Figures 10 and 11.
PAPER, PAPER_LOSSES = 100, 50
MNAR, MCAR = MECHANISMS

#: Mean MAE that the authors' own implementation, RMCLab 0.1.0, has in 8 to 10 replications of this design, measured for
#: this project: by number of categories and mechanism, of the methods `RDMC, LIBERAL, SI, DISCRETIZED, MEDIAN, MODE`.
REFERENCE: dict[tuple[int, str], tuple[float, ...]] = {
    (3, MNAR): (0.338, 0.322, 0.363, 0.280, 0.368, 0.370),
    (5, MNAR): (0.598, 0.583, 0.616, 0.571, 0.752, 0.806),
    (10, MNAR): (1.026, 1.030, 1.177, 1.153, 1.490, 1.685),
    (3, MCAR): (0.377, 0.367, 0.390, 0.313, 0.392, 0.397),
    (5, MCAR): (0.551, 0.548, 0.609, 0.566, 0.741, 0.789),
    (10, MCAR): (0.958, 0.943, 1.365, 1.346, 1.475, 1.681),
}
# What a file of golden values calls the methods.
GOLDEN_NAMES = dict(zip(("RDMC", "RDMC_lib", "SI", "SI_disc", "median", "median_disc", "mode"), MAIN, strict=True))
GOLDEN_FILE = "paper_sim_results.csv"

TITLES: dict[Any, str] = {
    **{name: method.title for name, method in METHODS.items()},
    **{k: f"{k} categories" for k in BREAKPOINTS},
    MNAR: "MNAR",
    MCAR: "MCAR",
    NONE: "no attack",
    **attacks.TITLES,
}

# Purposes of draws, each a stream of its own: [seed, replication, purpose].
DATA, MASK, HELD_OUT, DRAWS, PROFILES, HELD_OUT_OF_PROFILES = range(1, 7)


# -- one task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What all tasks have in common.

    Parameters
    ----------
    seed : int
    n_users, n_items : int
    n_splits : int
        Splits that choose lambda, each with a tenth of the observed ratings held out.
    lambdas : tuple of float
        What is chosen from, as fractions of the largest singular value.
    profiles_share : float
        Fake profiles, as a share of the ratings of the target.
    filler_share : float
        Fillers of a fake profile, as a share of the other items.
    n_selected, min_ratings : int
        Items that a bandwagon selects, and ratings that one needs for a reverse bandwagon.
    n_listed : int
        Length of a user's list, for the hit rate.
    """

    seed: int
    n_users: int = 300
    n_items: int = 200
    n_splits: int = 5
    lambdas: tuple[float, ...] = LAMBDAS
    profiles_share: float = 0.2
    filler_share: float = 0.1
    n_selected: int = 10
    min_ratings: int = 20
    n_listed: int = 10


@dataclass(frozen=True)
class Task:
    """One simulated matrix, completed by some methods without an attack and after some.

    Parameters
    ----------
    replication : int
        From 0.
    n_categories : {3, 5, 10}
    mechanism : {"mnar", "mcar"}
    methods : tuple of str
        Names of `scenarios.completion.METHODS`.
    attacks : tuple of str
        Kinds of `algorithms.attacks.Attack`.
    """

    replication: int
    n_categories: int
    mechanism: str
    methods: tuple[str, ...]
    attacks: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Simulated:
    """A simulated matrix.

    Attributes
    ----------
    world : Recommender
    observed : float64, shape (n_users, n_items)
        NaN where a rating is missing.
    missing : bool, shape (n_users, n_items)
    """

    world: Recommender
    observed: FloatArray
    missing: BoolArray


def simulated(task: Task, settings: Settings) -> Simulated:
    """The matrix of a task: the same for all methods and attacks, and the same users' tastes for all categories."""
    seed = [settings.seed, task.replication]
    world = recommender(settings.n_users, settings.n_items, seed=[*seed, DATA], n_categories=task.n_categories)
    if task.mechanism == MNAR:
        missing = missing_not_at_random(world.shifts, settings.n_users, seed=[*seed, MASK])
    else:
        missing = missing_completely_at_random(world.complete.shape, seed=[*seed, MASK])
    return Simulated(world, np.where(missing, np.nan, world.complete), missing)


def measure(task: Task, settings: Settings) -> list[Row]:
    """Rows of a task.

    Without an attack, of each method: `mae` over the missing ratings. After an attack: `prediction_shift` of the
    target, its `hit_rate` and `hit_rate_change`. Of fits: `lam` and `n_iter` of the last one, and CPU seconds with the
    choice of lambda.
    """
    data = simulated(task, settings)
    seed = [settings.seed, task.replication]
    held_out = held_out_cells(data.observed, n_splits=settings.n_splits, seed=[*seed, HELD_OUT])
    draws = int(np.random.default_rng([*seed, DRAWS]).integers(2**31))

    def completed(matrix: FloatArray, cells: Any) -> dict[str, Completed]:
        return complete(
            matrix,
            task.methods,
            categories=data.world.categories,
            held_out=cells,
            lambdas=settings.lambdas,
            seed=draws,
        )

    before = completed(data.observed, held_out)
    rows = [row for done in before.values() for row in _of_errors(done, data)]
    if not task.attacks:
        return rows
    target = simulated_target(data.observed, data.world.shifts, data.world.largest_shift)
    for kind in task.attacks:
        matrix, cells = attacks.attacked(
            data.observed,
            target,
            kind,
            held_out,
            settings,
            share=settings.profiles_share,
            categories=data.world.categories,
            seeds=([*seed, PROFILES], [*seed, HELD_OUT_OF_PROFILES]),
        )
        for name, done in completed(matrix, cells).items():
            rows += attacks.shift_rows(
                before[name], done, data.observed, target, n_listed=settings.n_listed, attack=kind
            )
    return rows


def _of_errors(done: Completed, data: Simulated) -> Iterator[Row]:
    error = float(np.abs(done.matrix - data.world.complete)[data.missing].mean())
    yield {"attack": NONE, "method": done.method, "metric": "mae", "value": error}
    yield from fit_rows(done, attack=NONE)


# -- the scenario --------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    return study.main(_parser(), run, argv)


def _parser() -> argparse.ArgumentParser:
    made = parser("rating_simulation", __doc__, replications=3, paper=PAPER)
    made.add_argument("--users", type=study.at_least(4), default=300, metavar="N", help="users")
    made.add_argument("--items", type=study.at_least(4), default=200, metavar="P", help="items")
    made.add_argument("--categories", type=_categories, default="3,5,10", metavar="K,...", help="of 3, 5 and 10")
    made.add_argument("--mechanisms", type=_mechanisms, default="mnar,mcar", metavar="NAME,...", help="mnar, mcar")
    made.add_argument(
        "--attacks",
        type=attacks.kinds,
        default=",".join(ATTACKS),
        metavar="KIND,...",
        help=f"of {', '.join(KINDS)}; or none",
    )
    made.add_argument(
        "--methods", type=methods, default=",".join(MAIN), metavar="NAME,...", help=f"of {', '.join(METHODS)}"
    )
    made.add_argument(
        "--losses",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=f"Figures 10 and 11: RDMC's other losses, 5 categories, in the first {PAPER_LOSSES} replications",
    )
    add_lambdas(made)
    attack = made.add_argument_group("attacks")
    attack.add_argument(
        "--profiles",
        type=study.positive,
        default=0.2,
        metavar="SHARE",
        help="fake profiles, as a share of the target's ratings",
    )
    attacks.add_arguments(attack)
    made.add_argument(
        "--golden",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="FILE",
        help=f"results of the authors' implementation to show beside, a {GOLDEN_FILE} (default: that of the folder "
        "GOLDEN_DATA in the environment, or else their mean MAE as this module has it)",
    )
    return made


def _categories(text: str) -> list[int]:
    """Argument type: distinct numbers of categories."""
    chosen = study.listed(text)
    if not chosen or not set(chosen) <= set(BREAKPOINTS):
        raise argparse.ArgumentTypeError(f"expected distinct numbers of 3, 5 and 10, got {text!r}")
    return sorted(chosen)


def _mechanisms(text: str) -> list[str]:
    return study.names(text, MECHANISMS)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    settings = Settings(
        seed=args.seed,
        n_users=args.users,
        n_items=args.items,
        n_splits=args.splits,
        lambdas=tuple(getattr(args, "lambdas", LAMBDAS)),
        profiles_share=args.profiles,
        filler_share=args.fillers,
        n_selected=args.selected,
        min_ratings=args.min_ratings,
        n_listed=args.listed,
    )
    reference = golden(getattr(args, "golden", None))

    def report(rows: pd.DataFrame) -> list[Part]:
        return parts(rows, reference, shown=args.methods)

    this = Replications("rating_simulation", args, settings, measure, report)
    return this.run(tasks(args), weight=_weight)


def tasks(args: argparse.Namespace) -> list[Task]:
    """All tasks of the arguments, replication by replication, so that a stopped run has whole ones."""
    found = []
    for replication in range(args.replications):
        for mechanism in args.mechanisms:
            found += [
                Task(replication, k, mechanism, tuple(args.methods), tuple(args.attacks)) for k in args.categories
            ]
        if args.losses and replication < PAPER_LOSSES:
            there = args.methods if 5 in args.categories and MNAR in args.mechanisms else []
            further = tuple(name for name in THREE_LOSSES if name not in there)
            if further:
                found.append(Task(replication, 5, MNAR, further, tuple(args.attacks)))
    return found


def _weight(task: Task) -> float:
    """About how long a task takes: a strict RDMC at 10 categories takes twice as long as at 3, others much less."""
    each = sum(1.0 if name in THREE_LOSSES else 0.3 if METHODS[name].tuned else 0.01 for name in task.methods)
    return each * (1 + len(task.attacks)) * (0.5 + 0.05 * task.n_categories)


# -- golden values -------------------------------------------------------------------------------------------------


def golden(file: Path | None = None) -> pd.DataFrame:
    """Results of the authors' implementation, to show beside ours.

    Parameters
    ----------
    file : pathlib.Path, optional
        A table with columns `K`, `mech`, `attack`, `filler`, `method` and `value`. Default: `paper_sim_results.csv` in
        the folder that GOLDEN_DATA names in the environment; where there is none, the means of `REFERENCE`.

    Returns
    -------
    pandas.DataFrame
        `n_categories`, `mechanism`, `attack`, `method`, `metric` and `value`: a row for each replication, or the means.

    Raises
    ------
    ValueError
        If a file is named that cannot be read, or has not these columns.
    """
    folder = os.environ.get("GOLDEN_DATA")
    if file is None and folder and Path(folder, GOLDEN_FILE).is_file():
        file = Path(folder, GOLDEN_FILE)
    if file is None:
        names = (RDMC, LIBERAL, SI, DISCRETIZED, MEDIAN, MODE)
        return pd.DataFrame(
            [
                {"n_categories": k, "mechanism": where, "attack": NONE, "method": name, "metric": "mae", "value": value}
                for (k, where), values in REFERENCE.items()
                for name, value in zip(names, values, strict=True)
            ]
        )
    return _read_golden(file)


def _read_golden(file: Path) -> pd.DataFrame:
    needed = ["K", "mech", "attack", "filler", "method", "value"]
    try:
        table = pd.read_csv(file, keep_default_na=False, na_values={"filler": ["NA"], "value": ["NA"]})
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"--golden {file}: cannot be read ({error}); name a {GOLDEN_FILE}") from error
    absent = [name for name in needed if name not in table.columns]
    if absent:
        raise ValueError(f"--golden {file}: has no column {absent[0]}; name a {GOLDEN_FILE}")
    table = table[table["method"].isin(GOLDEN_NAMES) & (table["filler"].isna() | (table["filler"] == 0.1))]
    return pd.DataFrame(
        {
            "n_categories": table["K"].astype(int),
            "mechanism": table["mech"].str.lower(),
            "attack": table["attack"],
            "method": table["method"].map(GOLDEN_NAMES),
            "metric": np.where(table["attack"] == NONE, "mae", "prediction_shift"),
            "value": table["value"].astype(float),
        }
    ).reset_index(drop=True)


# -- report --------------------------------------------------------------------------------------------------------


def parts(rows: pd.DataFrame, reference: pd.DataFrame, *, shown: Sequence[str] = MAIN) -> list[Part]:
    """The figures of the paper that rows of tasks are enough for.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of finished tasks, as `Replications.rows`.
    reference : pandas.DataFrame
        As `golden` gives it.
    shown : sequence of str
        Methods of all figures but those of the three losses.
    """
    made = []
    main = rows[rows["method"].isin(shown)]
    errors = _metric(main, "mae")
    if len(errors):
        made.append(_figure_2(errors, _metric(reference, "mae")))
    for number, mechanism in ((3, MNAR), (12, MCAR)):
        shifts = _metric(main, "prediction_shift").query("mechanism == @mechanism")
        if len(shifts):
            there = _metric(reference, "prediction_shift").query("mechanism == @mechanism")
            everything = _metric(main, "prediction_shift")
            made.append(_of_shifts(number, mechanism, shifts, there, everything))
            changes = _metric(main, "hit_rate_change").query("mechanism == @mechanism")
            made.append(_of_hits(mechanism, changes))
    five = rows[(rows["n_categories"] == 5) & (rows["mechanism"] == MNAR) & rows["method"].isin(THREE_LOSSES)]
    if set(THREE_LOSSES) <= set(five["method"]):
        made += _of_losses(five)
    return made


def _metric(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == metric]


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means to mark in a figure: a row for each condition and method."""
    return summarize(rows).rename(columns={"mean": "value"})


def _number(rows: pd.DataFrame) -> str:
    return counted(rows["replication"].nunique(), "replication")


def _figure_2(errors: pd.DataFrame, reference: pd.DataFrame) -> Part:
    errors = in_order(errors, "n_categories")
    figure = boxes.panels(
        errors,
        rows_by="mechanism",
        columns_by="n_categories",
        titles=TITLES,
        colours=METHOD_COLOURS,
        marks=_means(reference),
        marked="mean of the authors' implementation",
        label="MAE, categories",
        sharey=False,
    )
    title = f"Figure 2: MAE over all missing ratings without an attack, {_number(errors)}; mean (standard error)"
    text = _tables(errors, reference, "mechanism")
    return Part("figure2", title, text, list(_error_findings(errors)), figure)


def _tables(rows: pd.DataFrame, reference: pd.DataFrame, by: str, *, signed: bool = False) -> str:
    """A table for each value of a column."""
    shown = []
    for level in dict.fromkeys(rows[by]):
        here, there = (each[each[by] == level] for each in (rows, reference))
        title = TITLES[level][0].upper() + TITLES[level][1:]
        shown.append(f"{title}\n" + _table(here, there, across="n_categories", signed=signed))
    return "\n\n".join(shown)


def _table(here: pd.DataFrame, there: pd.DataFrame, *, across: str, places: int = 3, signed: bool = False) -> str:
    return grid(
        summarize(here),
        down="method",
        across=across,
        titles=TITLES,
        places=places,
        signed=signed,
        reference=_means(there),
        referenced="theirs",
    )


def _of_shifts(
    number: int, mechanism: str, shifts: pd.DataFrame, reference: pd.DataFrame, everything: pd.DataFrame
) -> Part:
    shifts = in_order(shifts, "n_categories")
    figure = boxes.panels(
        shifts,
        rows_by="attack",
        columns_by="n_categories",
        titles=TITLES,
        colours=METHOD_COLOURS,
        marks=_means(reference),
        marked="mean of the authors' implementation",
        label="Mean prediction shift, categories",
        zero=True,
    )
    title = (
        f"Figure {number}: mean prediction shift of the target, {TITLES[mechanism]}, {_number(shifts)}; "
        "mean (standard error)"
    )
    found = _shift_findings(shifts) if mechanism == MNAR else _mcar_findings(everything)
    return Part(f"figure{number}", title, _tables(shifts, reference, "attack", signed=True), list(found), figure)


def _of_hits(mechanism: str, changes: pd.DataFrame) -> Part:
    changes = in_order(changes, "n_categories")
    figure = boxes.panels(
        changes,
        rows_by="attack",
        columns_by="n_categories",
        titles=TITLES,
        colours=METHOD_COLOURS,
        label="Change of hit rate",
        zero=True,
    )
    title = (
        f"Beside it: change of the target's hit rate in lists of the users who have not rated it, {TITLES[mechanism]}, "
        f"{_number(changes)}; mean (standard error)"
    )
    text = _tables(changes, changes[:0], "attack", signed=True)
    return Part(f"hit_rate_{mechanism}", title, text, list(_hit_findings(changes)), figure)


def _of_losses(rows: pd.DataFrame) -> list[Part]:
    """Figures 10 and 11."""
    measured = pd.concat([_metric(rows, "mae"), _metric(rows, "prediction_shift")])
    # Only replications that have all losses.
    has = measured.groupby("replication")["method"].nunique()
    complete_ones = has.index[has == len(THREE_LOSSES)]
    measured = in_order(measured[measured["replication"].isin(complete_ones)], "n_categories")
    iterations = in_order(_metric(rows, "n_iter"), "n_categories")
    iterations = iterations[iterations["replication"].isin(complete_ones)]
    if measured.empty:
        return []
    ten = Part(
        "figure10",
        f"Figure 10: RDMC's losses in 5 categories, MNAR, {_number(measured)}: MAE without an attack, mean prediction "
        "shift with one; mean (standard error)",
        _table(measured, measured[:0], across="attack", signed=True),
        list(_loss_findings(measured)),
        boxes.panels(
            measured,
            columns_by="attack",
            titles=TITLES,
            colours=METHOD_COLOURS,
            label="MAE or mean prediction shift, categories",
            sharey=False,
        ),
    )
    eleven = Part(
        "figure11",
        f"Figure 11: iterations of the last fit, {_number(iterations)}; mean (standard error)",
        _table(iterations, iterations[:0], across="attack", places=1),
        list(_iteration_findings(iterations)),
        boxes.panels(iterations, columns_by="attack", titles=TITLES, colours=METHOD_COLOURS, label="Iterations"),
    )
    return [ten, eleven]


# -- what the paper found, and whether this run did ----------------------------------------------------------------


class _Means:
    """Means by condition and method."""

    def __init__(self, rows: pd.DataFrame, *by: str) -> None:
        self._means = rows.groupby([*by, "method"])["value"].mean().to_dict()
        self.spreads = rows.groupby([*by, "method"])["value"].std().to_dict()

    def has(self, *keys: tuple[Any, ...]) -> bool:
        return all(key in self._means for key in keys)

    def __getitem__(self, key: tuple[Any, ...]) -> float:
        return float(self._means[key])


def _error_findings(errors: pd.DataFrame) -> Iterator[Finding]:
    """Section 3.6 on Figure 2."""
    mean = _Means(errors, "n_categories", "mechanism")
    mechanisms = [each for each in MECHANISMS if each in set(errors["mechanism"])]
    numbers = set(errors["n_categories"])
    if not mean.has(*((k, where, name) for k in numbers for where in mechanisms for name in (*MAIN[:5], MODE))):
        return
    for where in mechanisms:
        if 3 in numbers:
            yield from _three_categories(mean, where)
        if 5 in numbers:
            yield from _five_categories(mean, where)
        if 10 in numbers:
            rdmc, best = mean[10, where, RDMC], min(mean[10, where, name] for name in (SI, DISCRETIZED, MEDIAN, MODE))
            yield Finding(
                f"with 10 categories RDMC has the lowest MAE ({TITLES[where]})",
                rdmc < best,
                f"{rdmc:.3f}, and {best:.3f} for the best other method",
            )
    if 10 in numbers and MCAR in mechanisms and errors["replication"].nunique() > 1:
        wide, narrow = (mean.spreads[10, MCAR, name] for name in (SI, RDMC))
        yield Finding(
            "with 10 categories SI varies much under MCAR",
            wide > 3 * narrow,
            f"its standard deviation is {wide:.3f}, that of RDMC {narrow:.3f}",
        )
    pairs = errors[errors["method"].isin([RDMC, LIBERAL])].pivot_table(
        index=["replication", "n_categories", "mechanism"], columns="method", values="value"
    )
    better = int((pairs[LIBERAL] < pairs[RDMC]).sum())
    yield Finding(
        "with at most 10 iterations RDMC's MAE is often lower than at convergence",
        better > len(pairs) / 2,
        f"in {better} of {len(pairs)} matrices",
    )


def _three_categories(mean: _Means, where: str) -> Iterator[Finding]:
    rdmc, si, rounded = (mean[3, where, name] for name in (RDMC, SI, DISCRETIZED))
    simple = min(mean[3, where, MEDIAN], mean[3, where, MODE])
    yield Finding(
        f"with 3 categories SI is not better than median and mode ({TITLES[where]})",
        si > 0.95 * simple,
        f"{si:.3f} and {simple:.3f}; within 5% counts as not better",
    )
    yield Finding(
        f"with 3 categories SI-discretized is clearly better, and RDMC between ({TITLES[where]})",
        rounded < 0.9 * simple and rounded < rdmc < simple,
        f"{rounded:.3f}, RDMC {rdmc:.3f}, median or mode {simple:.3f}",
    )


def _five_categories(mean: _Means, where: str) -> Iterator[Finding]:
    rdmc, si, rounded = (mean[5, where, name] for name in (RDMC, SI, DISCRETIZED))
    simple = min(mean[5, where, MEDIAN], mean[5, where, MODE])
    yield Finding(
        f"with 5 categories SI and RDMC are far better than median and mode ({TITLES[where]})",
        max(rdmc, si, rounded) < 0.9 * simple,
        f"{max(rdmc, si, rounded):.3f} at most, median or mode {simple:.3f}",
    )
    if where == MNAR:
        yield Finding(
            "with 5 categories RDMC lies between SI-discretized and SI (MNAR)",
            rounded < rdmc < si,
            f"{rounded:.3f}, {rdmc:.3f}, {si:.3f}",
        )
    else:
        yield Finding(
            "with 5 categories RDMC is as good as SI-discretized (MCAR)",
            abs(rdmc - rounded) < 0.02,
            f"{rdmc:.3f} and {rounded:.3f}; within 0.02 counts as equal",
        )


def _magnitudes(shifts: pd.DataFrame) -> pd.DataFrame:
    return shifts.assign(value=shifts["value"].abs())


def _shift_findings(shifts: pd.DataFrame) -> Iterator[Finding]:
    """Section 3.6 on Figure 3."""
    size = _Means(_magnitudes(shifts), "n_categories", "attack")
    mean = _Means(shifts, "n_categories", "attack")
    numbers, kinds = sorted(set(shifts["n_categories"])), list(dict.fromkeys(shifts["attack"]))
    if not mean.has(*((k, kind, name) for k in numbers for kind in kinds for name in (RDMC, SI, DISCRETIZED, MEDIAN))):
        return
    if len(kinds) > 1 and "average" in kinds:
        both = [(k, name) for k in numbers for name in (SI, DISCRETIZED)]
        times = sum(size[k, "average", name] == max(size[k, kind, name] for kind in kinds) for k, name in both)
        yield Finding(
            "both SIs are strongly influenced, most by the average attack",
            times == len(both),
            f"it has the largest mean absolute shift in {times} of {len(both)} comparisons",
        )
    if 10 in numbers:
        found = float(np.mean([mean[10, kind, name] for kind in kinds for name in (SI, DISCRETIZED)]))
        yield Finding(
            "with 10 categories SI's predictions drop by at least one category on average",
            found <= -1,
            f"the mean shift over attacks and both SIs is {found:+.2f}",
        )
    yield _below(size, numbers, kinds)
    instances = shifts[shifts["method"] == MEDIAN]
    few, many = instances[instances["n_categories"] < 10], instances[instances["n_categories"] == 10]
    if len(few) and len(many):
        still, dropped = float((few["value"] == 0).mean()), float((many["value"] <= -1).mean())
        yield Finding(
            "the median is stable with 3 and 5 categories and shifts by -1 in most instances with 10",
            still > 0.9 and dropped > 0.5,
            f"it does not move in {still:.0%} of the former and moves by -1 or more in {dropped:.0%} of the latter",
        )
    if 3 in numbers and size.has(*((3, kind, LIBERAL) for kind in kinds)):
        strict, liberal = (float(np.mean([size[3, kind, name] for kind in kinds])) for name in (RDMC, LIBERAL))
        yield Finding(
            "with 3 categories RDMC's absolute shift is slightly larger with at most 10 iterations",
            liberal > strict,
            f"{liberal:.3f}, and {strict:.3f} at convergence",
        )


def _below(size: _Means, numbers: Sequence[int], kinds: Sequence[str]) -> Finding:
    settings = [(k, kind) for k in numbers for kind in kinds]
    below = [size[*each, RDMC] < min(size[*each, SI], size[*each, DISCRETIZED]) for each in settings]
    rdmc, si = (float(np.mean([size[*each, name] for each in settings])) for name in (RDMC, SI))
    return Finding(
        "RDMC is far more stable, with shifts much closer to 0 in all settings",
        all(below),
        f"its mean absolute shift is below both SIs' in {sum(below)} of {len(settings)} settings, {rdmc:.3f} beside "
        f"SI's {si:.3f} over all",
    )


def _mcar_findings(shifts: pd.DataFrame) -> Iterator[Finding]:
    """Appendix 6 on Figure 12."""
    here = shifts[shifts["mechanism"] == MCAR]
    size = _Means(_magnitudes(here), "n_categories", "attack")
    numbers, kinds = sorted(set(here["n_categories"])), list(dict.fromkeys(here["attack"]))
    if not size.has(*((k, kind, name) for k in numbers for kind in kinds for name in (RDMC, SI, DISCRETIZED))):
        return
    yield _below(size, numbers, kinds)
    rdmc = shifts[shifts["method"] == RDMC]
    large = {each: float((rdmc[rdmc["mechanism"] == each]["value"] <= -0.5).mean()) for each in MECHANISMS}
    yield Finding(
        "there are a few instances where RDMC has a large negative shift, which MNAR has not",
        0 < large[MCAR] < 0.25 and not large[MNAR] > 0,
        f"shifts of -0.5 or more in {large[MCAR]:.1%} of the instances under MCAR, "
        + ("MNAR was not run" if np.isnan(large[MNAR]) else f"{large[MNAR]:.1%} under MNAR"),
    )


def _hit_findings(changes: pd.DataFrame) -> Iterator[Finding]:
    """What section 3.6 says without numbers: the target would be recommended to far fewer users."""
    mean = changes.groupby("method")["value"].mean()
    if not {RDMC, SI, DISCRETIZED} <= set(mean.index):
        return
    lost = min(-mean[SI], -mean[DISCRETIZED])
    yield Finding(
        "after an attack SI would recommend the target to far fewer users",
        lost > 0.1 and abs(mean[RDMC]) < lost,
        f"the hit rate changes by {mean[SI]:+.3f} with SI, {mean[DISCRETIZED]:+.3f} with SI-discretized and "
        f"{mean[RDMC]:+.3f} with RDMC on average",
    )


def _loss_findings(rows: pd.DataFrame) -> Iterator[Finding]:
    """Appendix 6 on Figure 10."""
    mean = _Means(rows, "attack")
    errors = [mean[NONE, name] for name in THREE_LOSSES]
    yield Finding(
        "the three losses have similar errors",
        max(errors) - min(errors) < 0.03,
        f"their mean MAE lies between {min(errors):.3f} and {max(errors):.3f}",
    )
    kinds = [kind for kind in dict.fromkeys(rows["attack"]) if kind != NONE]
    if kinds:
        found = [mean[kind, name] for kind in kinds for name in THREE_LOSSES]
        yield Finding(
            "and similar shifts under attack",
            max(map(abs, found)) < 0.2,
            f"their mean shifts lie between {min(found):+.3f} and {max(found):+.3f}",
        )


def _iteration_findings(rows: pd.DataFrame) -> Iterator[Finding]:
    """Appendix 6 on Figure 11."""
    mean = rows.groupby("method")["value"].mean()
    shown = ", ".join(f"{METHODS[name].title.removeprefix('RDMC-')} {mean[name]:.1f}" for name in THREE_LOSSES)
    yield Finding(
        "the pseudo-Huber loss needs fewer iterations",
        mean[THREE_LOSSES[0]] < min(mean[name] for name in LOSSES),
        f"on average {shown}",
    )


if __name__ == "__main__":
    sys.exit(main())
