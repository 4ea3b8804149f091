"""The second seed paper's second case study: ratings that users chose to give, beside ratings of random items.

Where users choose what they rate, ratings are missing not at random (MNAR); where items are drawn for them, completely
at random (MCAR). The same users are in both parts. Shown are both distributions of ratings (Figure 7), and for each
mechanism the MAE on the 20% of its ratings that are held out (Figure 8) and the CPU time (Figure 9). The paper uses
Yahoo! Music R3; Coat Shopping is a smaller set of the same kind, in which users behave differently.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from algorithms.datasets import coat, yahoo_r3
from algorithms.datasets.filters import missingness_study
from algorithms.ratings import Ratings
from scenarios import case_studies, study
from scenarios.case_studies import RDMC, SI, SI_DISCRETIZED, Choices, Grids
from scenarios.completion import METHODS, held_out_cells, in_order
from scenarios.replications import SECONDS, Finding, Part, Replications, Row, counted, grid, parser, summarize

__all__ = ["DEFAULT", "SOURCES", "Settings", "Source", "Task", "main", "measure", "parts", "tasks"]

FloatArray = NDArray[np.float64]
Pair = tuple[Ratings, Ratings]

CATEGORIES = np.arange(1.0, 6.0)
#: Without --paper.
DEFAULT = Choices(n_splits=5)
MECHANISMS = MNAR, MCAR = ("mnar", "mcar")

# Purposes of draws, each a stream of its own: [seed, replication, purpose].
SPLIT, HELD_OUT, DRAWS = range(1, 4)


@dataclass(frozen=True)
class Source:
    """A data set with ratings of chosen and of random items, of which the user has a copy.

    Parameters
    ----------
    title : str
    read : function of a folder
        Gives both parts.
    variable : str
        Of the environment, that names the folder.
    holds : str
        Files of the folder.
    address : str
        Where to get it.
    """

    title: str
    read: Callable[[Path], Pair]
    variable: str
    holds: str
    address: str


SOURCES = {
    "coat": Source("Coat", coat, "COAT", "train.ascii and test.ascii", "https://www.cs.cornell.edu/~schnabts/mnar/"),
    "yahoo_r3": Source(
        "Yahoo! R3",
        yahoo_r3,
        "YAHOO_R3",
        "ydata-ymusic-rating-study-v1_0-train.txt and ...-test.txt",
        "https://webscope.sandbox.yahoo.com/catalog.php?datatype=r",
    ),
}

TITLES: dict[Any, str] = {
    **{name: method.title for name, method in METHODS.items()},
    **{name: source.title for name, source in SOURCES.items()},
    MNAR: "chosen items (MNAR)",
    MCAR: "random items (MCAR)",
}


# -- one task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What all tasks have in common.

    Parameters
    ----------
    seed : int
    data : tuple of str
        Names of data sets, each with the digests of its two parts.
    n_splits : int
        Splits that choose lambda, each with a tenth of the training ratings held out.
    rdmc_lambdas, soft_impute_lambdas : tuple of float
        What is chosen from, as fractions of the largest singular value.
    fewest : int
        Ratings of chosen items that users and items have.
    """

    seed: int
    data: tuple[str, ...]
    n_splits: int = DEFAULT.n_splits
    rdmc_lambdas: tuple[float, ...] = DEFAULT.grids.rdmc
    soft_impute_lambdas: tuple[float, ...] = DEFAULT.grids.soft_impute
    fewest: int = 20

    @property
    def grids(self) -> Grids:
        """Both grids."""
        return Grids(self.rdmc_lambdas, self.soft_impute_lambdas)


@dataclass(frozen=True)
class Task:
    """One split of the ratings of one mechanism.

    Parameters
    ----------
    replication : int
        From 0.
    data : str
        A name of `SOURCES`.
    mechanism : {"mnar", "mcar"}
        Ratings of chosen or of random items.
    methods : tuple of str
        Names of `scenarios.completion.METHODS`.
    """

    replication: int
    data: str
    mechanism: str
    methods: tuple[str, ...]


def measure(task: Task, settings: Settings, *, data: Mapping[str, Pair]) -> list[Row]:
    """Rows of a task: of each method `mae` on the ratings held out, and about its fit."""
    ratings = data[task.data][MECHANISMS.index(task.mechanism)]
    seed = [settings.seed, task.replication]
    this = case_studies.split(ratings, seed=[*seed, SPLIT])
    held_out = held_out_cells(this.train, n_splits=settings.n_splits, seed=[*seed, HELD_OUT])
    draws = int(np.random.default_rng([*seed, DRAWS]).integers(2**31))
    done = case_studies.completed(
        this.train, task.methods, categories=CATEGORIES, grids=settings.grids, held_out=held_out, seed=draws
    )
    return list(case_studies.error_rows(done, this))


# -- the scenario --------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    return study.main(_parser(), run, argv)


def _parser() -> argparse.ArgumentParser:
    made = parser("missingness", __doc__, replications=5)
    data = made.add_argument_group("data, one or both")
    for name, source in SOURCES.items():
        data.add_argument(
            f"--{name.replace('_', '-')}",
            type=Path,
            default=argparse.SUPPRESS,
            metavar="FOLDER",
            help=f"folder of {source.title}, with {source.holds} in it (default: environment variable "
            f"{source.variable}); it is to be had at {source.address}",
        )
    case_studies.add_arguments(made, DEFAULT, paper="; with Yahoo! R3 it takes hours")
    made.add_argument(
        "--fewest",
        type=study.at_least(0),
        default=20,
        metavar="N",
        help="ratings of chosen items that a user and an item must have to stay",
    )
    return made


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    data = {name: missingness_study(*read, user=args.fewest, item=args.fewest) for name, read in _load(args).items()}
    chosen = case_studies.choices(args, DEFAULT)
    settings = Settings(
        seed=args.seed,
        data=tuple(f"{name} {one.digest[:16]} {two.digest[:16]}" for name, (one, two) in data.items()),
        n_splits=chosen.n_splits,
        rdmc_lambdas=chosen.grids.rdmc,
        soft_impute_lambdas=chosen.grids.soft_impute,
        fewest=args.fewest,
    )

    def report(rows: pd.DataFrame) -> list[Part]:
        return parts(rows, settings, data)

    this = Replications("missingness", args, settings, partial(measure, data=data), report)
    return this.run(tasks(args.replications, list(data), chosen.methods), weight=partial(_weight, data=data))


def _load(args: argparse.Namespace) -> dict[str, Pair]:
    """The data sets that the arguments or the environment name."""
    places = {
        name: getattr(args, name, None) or os.environ.get(source.variable) or None for name, source in SOURCES.items()
    }
    if not any(places.values()):
        raise ValueError(
            "expected a folder of "
            + " or of ".join(
                f"{source.title} (--{name.replace('_', '-')} or environment variable {source.variable}; to be had at "
                f"{source.address})"
                for name, source in SOURCES.items()
            )
            + ", got none"
        )
    return {name: SOURCES[name].read(Path(place)) for name, place in places.items() if place}


def tasks(replications: int, data: Sequence[str], methods: tuple[str, ...]) -> list[Task]:
    """All tasks, replication by replication."""
    return [
        Task(replication, name, mechanism, methods)
        for replication in range(replications)
        for name in data
        for mechanism in MECHANISMS
    ]


def _weight(task: Task, data: Mapping[str, Pair]) -> float:
    """About how long a task takes: what an iteration takes grows with the matrix."""
    ratings = data[task.data][MECHANISMS.index(task.mechanism)]
    return ratings.n_users * ratings.n_items * min(ratings.n_users, ratings.n_items) / 1e7


# -- report --------------------------------------------------------------------------------------------------------


def parts(rows: pd.DataFrame, settings: Settings, data: Mapping[str, Pair]) -> list[Part]:
    """The figures of the paper that rows of tasks are enough for.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of finished tasks, as `Replications.rows`.
    settings : Settings
    data : mapping of name to (ratings of chosen items, ratings of random items)
    """
    made: list[Part | None] = []
    for name, pair in data.items():
        made.append(_figure_7(name, pair))
        here = rows[rows["data"] == name] if len(rows) else rows
        if len(here):
            here = in_order(here)
            here = here.sort_values("mechanism", key=lambda one: one.map(MECHANISMS.index), kind="stable")
            made.append(_figure_8(name, here, case_studies.lambda_note(here, settings.grids, settings.n_splits)))
            made.append(_figure_9(name, here[here["metric"] == SECONDS]))
    return [part for part in made if part is not None]


def _other(name: str) -> str:
    """A reminder where the data are not those of the paper."""
    return "" if name == "yahoo_r3" else f" {TITLES[name]} is not the paper's Yahoo! R3: it need not show the same."


def _figure_7(name: str, pair: Pair) -> Part:
    lines = []
    for mechanism, ratings in zip(MECHANISMS, pair, strict=True):
        missing = 1 - len(ratings) / (ratings.n_users * ratings.n_items)
        shares = ", ".join(f"{each:g}: {(ratings.value == each).mean():.1%}" for each in CATEGORIES)
        lines.append(
            f"{TITLES[mechanism].capitalize().replace('mnar', 'MNAR').replace('mcar', 'MCAR')}: {ratings.n_users} "
            f"users, {ratings.n_items} items, {len(ratings)} ratings ({missing:.1%} missing). {shares}."
        )
    title = f"Figure 7, {TITLES[name]}: distributions of the ratings"
    panels = {
        f"{TITLES[name]}, {TITLES[mechanism]}": ratings.value
        for mechanism, ratings in zip(MECHANISMS, pair, strict=True)
    }
    figure = case_studies.histogram(panels, CATEGORIES.tolist())
    text = "\n".join(lines) + (f"\n{_other(name).strip()}" if _other(name) else "")
    return Part(f"figure7_{name}", title, text, list(_distribution_findings(*(each.value for each in pair))), figure)


def _count(rows: pd.DataFrame) -> str:
    n = rows["replication"].nunique()
    return counted(n, "split") + ("; mean (standard error)" if n > 1 else "")


def _figure_8(name: str, rows: pd.DataFrame, note: str) -> Part:
    errors = rows[rows["metric"] == "mae"]
    table = grid(summarize(errors), down="method", across="mechanism", titles=TITLES)
    title = f"Figure 8, {TITLES[name]}: MAE on the 20% of the ratings held out, {_count(errors)}"
    return Part(
        f"figure8_{name}",
        title,
        f"{table}\n\n{note}{_other(name)}",
        list(_error_findings(errors)),
        _panels(name, errors, "MAE on the ratings held out"),
    )


def _figure_9(name: str, rows: pd.DataFrame) -> Part | None:
    """CPU times of methods that have something to tune; SI and SI-discretized are one fit."""
    tuned = rows[rows["method"].isin([one for one in case_studies.TUNED if "discretized" not in one])]
    if tuned.empty:
        return None
    found = [
        Finding(f"{each.claim} ({mechanism.upper()})", each.holds, each.evidence)
        for mechanism in dict.fromkeys(tuned["mechanism"])
        for each in case_studies.seconds_findings(tuned[tuned["mechanism"] == mechanism], times=None)
    ]
    table = grid(summarize(tuned), down="method", across="mechanism", titles=TITLES, places=2)
    title = f"Figure 9, {TITLES[name]}: CPU time in seconds with the choice of lambda, {_count(tuned)}"
    text = f"{table}\n\nSI-discretized takes the time of SI, whose predictions it rounds."
    return Part(f"figure9_{name}", title, text, found, _panels(name, tuned, "CPU time, seconds", log=True))


def _panels(name: str, rows: pd.DataFrame, label: str, *, log: bool = False) -> Figure:
    """A panel for each mechanism."""
    there = list(dict.fromkeys(rows["mechanism"]))
    height = 1.4 + 0.27 * rows["method"].nunique()
    figure, axes = plt.subplots(
        1,
        len(there),
        figsize=(2.0 + 3.8 * len(there), height),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for ax, mechanism in zip(axes[0], there, strict=True):
        case_studies.dots(ax, rows[rows["mechanism"] == mechanism], label, log=log)
        ax.set_title(f"{TITLES[name]}, {TITLES[mechanism]}", fontsize="medium")
    return figure


# -- what the paper found, and whether this run did ----------------------------------------------------------------


def _distribution_findings(chosen: FloatArray, random: FloatArray) -> Iterator[Finding]:
    """Section 4.2 on Figure 7."""
    by_size = CATEGORIES[np.argsort([-(chosen == each).mean() for each in CATEGORIES], kind="stable")]
    yield Finding(
        "of chosen items the lowest rating is the most frequent, followed by the highest",
        list(by_size[:2]) == [CATEGORIES[0], CATEGORIES[-1]],
        f"the most frequent one is {by_size[0]:g}, followed by {by_size[1]:g}",
    )
    shares = np.array([(random == each).mean() for each in CATEGORIES])
    yield Finding(
        "of random items ratings are the rarer the higher they are, and very few are high",
        bool((np.diff(shares) < 0).all() and shares[-1] < 0.1),
        f"from low to high {', '.join(f'{each:.0%}' for each in shares)}; less than 10% counts as very few",
    )


def _error_findings(errors: pd.DataFrame) -> Iterator[Finding]:
    """Section 4.2 on Figure 8."""
    mean = errors.groupby(["mechanism", "method"])["value"].mean()
    names = list(dict.fromkeys(errors["method"]))
    losses = [name for name in names if name.startswith("rdmc")]
    if set(errors["mechanism"]) != set(MECHANISMS) or len(mean) < 2 * len(names):
        return
    lower = sum(mean[MCAR, name] < mean[MNAR, name] for name in names)
    yield Finding(
        "all methods have a lower MAE under MCAR than under MNAR",
        lower == len(names),
        f"{lower} of {len(names)} have",
    )
    if not {RDMC, SI, SI_DISCRETIZED} <= set(names):
        return
    for mechanism in MECHANISMS:
        least, rdmc = min(mean[mechanism, name] for name in (SI, SI_DISCRETIZED)), mean[mechanism, RDMC]
        yield Finding(
            f"RDMC outperforms both SIs ({mechanism.upper()})",
            rdmc < least,
            f"{rdmc:.3f}, and {least:.3f} for the better of these",
        )
    if len(losses) > 1:
        yield from _loss_findings(mean, losses)
    gains = {mechanism: float(mean[mechanism, SI] - mean[mechanism, SI_DISCRETIZED]) for mechanism in MECHANISMS}
    yield Finding(
        "SI-discretized is minimally better than SI",
        all(0 < gain < 0.02 for gain in gains.values()),
        f"by {gains[MNAR]:.3f} (MNAR) and {gains[MCAR]:.3f} (MCAR); from 0 to 0.02 counts as minimal",
    )
    if f"{SI}_liberal" in names:
        worse, other = (float(mean[where, f"{SI}_liberal"] - mean[where, SI]) for where in MECHANISMS)
        yield Finding(
            "SI needs the strict criterion under MNAR to be as good as RDMC",
            worse > 0.02,
            f"the liberal one changes its MAE by {worse:+.3f} (MNAR) and {other:+.3f} (MCAR); more than 0.02 counts",
        )


def _loss_findings(mean: "pd.Series[float]", losses: Sequence[str]) -> Iterator[Finding]:
    """What RDMC's loss and number of iterations do."""
    wide, narrow = (
        float(max(mean[where, name] for name in losses) - min(mean[where, name] for name in losses))
        for where in MECHANISMS
    )
    yield Finding(
        "RDMC's loss and number of iterations matter under MNAR only",
        wide > 0.005 > narrow,
        f"between the highest and the lowest MAE of RDMC lie {wide:.3f} (MNAR) and {narrow:.3f} (MCAR); more than "
        "0.005 counts",
    )
    strict = {name: float(mean[MNAR, name]) for name in losses if case_studies.strict(name) == name}
    if "rdmc_absolute" in strict and len(strict) > 1:
        others = min(value for name, value in strict.items() if name != "rdmc_absolute")
        yield Finding(
            "the absolute loss has a small advantage under MNAR",
            0 < others - strict["rdmc_absolute"] < 0.05,
            f"{strict['rdmc_absolute']:.3f}, and {others:.3f} for the best other loss",
        )


if __name__ == "__main__":
    from scenarios import missingness  # under its own name, by which worker processes find its functions

    sys.exit(missingness.main())
