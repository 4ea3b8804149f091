"""The second seed paper's survey: errors of imputed answers, with people who abandon it and careless respondents.

300 respondents answer 4 or 8 items on each of 10 constructs, in 5, 7 or 9 categories, half of the items reverse-keyed.
Some respondents stop at an item; some, the careless, answer lowest or highest at random. MAE over the missing answers
of the others (Appendix 7, Figures 13 to 18). Methods share data and held-out answers; numbers of categories share
sentiments and the rest; a larger share of people who abandon, or of careless ones, holds those of a smaller one.

A replication takes a bit over 2 minutes of CPU time, so the default is about 5 minutes on two cores.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.synthetic import Survey, abandoned, careless, survey
from scenarios import boxes, study
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
from scenarios.rating_simulation import REFERENCE
from scenarios.replications import Finding, Part, Replications, Row, counted, grid, parser, spread, summarize

__all__ = ["MAIN", "Settings", "Simulated", "Task", "findings", "main", "measure", "parts", "simulated", "tasks"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: Methods of the figures, as the appendix names them.
MAIN = (
    "rdmc_pseudo_huber",
    "rdmc_absolute",
    "rdmc_truncated",
    "soft_impute",
    "soft_impute_discretized",
    "median",
    "discretized_median",
    "mode",
)
LOSSES = MAIN[:3]
HUBER, TRUNCATED, SI, DISCRETIZED, MEDIAN, MODE = MAIN[0], MAIN[2], MAIN[3], MAIN[4], MAIN[5], MAIN[7]
#: The paper's numbers of items.
FEW_ITEMS, MANY_ITEMS = 40, 80
#: The paper's shares of respondents who abandon the survey; it looks at the first, and finds the others similar.
ABANDONMENT = (0.2, 0.4, 0.6)
#: Replications in the paper. Its appendix names no number of its own.
PAPER = 100
#: Numbers of the paper's figures, by items and share who abandon. Its text names the first two; the order of the
#: others is taken to be alike.
FIGURES = {(40, 0.2): 13, (80, 0.2): 14, (40, 0.4): 15, (80, 0.4): 16, (40, 0.6): 17, (80, 0.6): 18}

#: What "close" and "similar" mean below: a difference of less than this share of SI-discretized's MAE.
CLOSE = 0.05

# Purposes of draws, each a stream of its own: [seed, replication, purpose].
ANSWERS, ABANDONED, CARELESS, HELD_OUT, DRAWS = range(1, 6)


# -- one task ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What all tasks have in common.

    Parameters
    ----------
    seed : int
    n_respondents, n_constructs : int
    correlation : float
        Of two items of a construct.
    n_splits : int
        Splits that choose lambda, each with a tenth of the observed answers held out.
    lambdas : tuple of float
        What is chosen from, as fractions of the largest singular value.
    """

    seed: int
    n_respondents: int = 300
    n_constructs: int = 10
    correlation: float = 0.6
    n_splits: int = 5
    lambdas: tuple[float, ...] = LAMBDAS


@dataclass(frozen=True)
class Task:
    """One simulated survey, completed by some methods.

    Parameters
    ----------
    replication : int
        From 0.
    n_items : int
        Of the whole survey: a multiple of the number of constructs.
    n_categories : int
    abandonment, careless : float
        Shares of the respondents who stop at an item, and who answer at random.
    methods : tuple of str
        Names of `scenarios.completion.METHODS`.
    """

    replication: int
    n_items: int
    n_categories: int
    abandonment: float
    careless: float
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Simulated:
    """A simulated survey.

    Attributes
    ----------
    world : Survey
        Without careless respondents.
    observed : float64, shape (n_respondents, n_items)
        With them; NaN where an answer is missing.
    missing : bool, shape (n_respondents, n_items)
    careless : bool, shape (n_respondents,)
    """

    world: Survey
    observed: FloatArray
    missing: BoolArray
    careless: BoolArray

    @property
    def judged(self) -> BoolArray:
        """Cells that errors are taken over: the missing ones of respondents who are not careless."""
        return np.asarray(self.missing & ~self.careless[:, None])


def simulated(task: Task, settings: Settings) -> Simulated:
    """The survey of a task: the same for all methods."""
    seed = [settings.seed, task.replication]
    world = survey(
        settings.n_respondents,
        seed=[*seed, ANSWERS],
        n_constructs=settings.n_constructs,
        items_per_construct=task.n_items // settings.n_constructs,
        n_categories=task.n_categories,
        correlation=settings.correlation,
    )
    missing = abandoned(world.complete.shape, seed=[*seed, ABANDONED], share=task.abandonment)
    answers, rows = careless(
        world.complete, seed=[*seed, CARELESS], share=task.careless, n_categories=task.n_categories
    )
    return Simulated(world, np.where(missing, np.nan, answers), missing, rows)


def measure(task: Task, settings: Settings) -> list[Row]:
    """Rows of a task: `mae` of each method, `lam` and `n_iter` of the last fit, CPU seconds with the choice of lambda.

    Raises
    ------
    ValueError
        If no answer is missing of a respondent who is not careless.
    """
    data = simulated(task, settings)
    if not data.judged.any():
        raise ValueError(
            "no answer is missing of a respondent who is not careless; take more respondents, a larger share who "
            "abandon the survey or a smaller one of careless respondents"
        )
    seed = [settings.seed, task.replication]
    done = complete(
        data.observed,
        task.methods,
        categories=data.world.categories,
        held_out=held_out_cells(data.observed, n_splits=settings.n_splits, seed=[*seed, HELD_OUT]),
        lambdas=settings.lambdas,
        seed=int(np.random.default_rng([*seed, DRAWS]).integers(2**31)),
    )
    return [row for each in done.values() for row in _rows(each, data)]


def _rows(done: Completed, data: Simulated) -> Iterator[Row]:
    error = float(np.abs(done.matrix - data.world.complete)[data.judged].mean())
    yield {"method": done.method, "metric": "mae", "value": error}
    yield from fit_rows(done)


# -- the scenario --------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    return study.main(_parser(), run, argv)


def _parser() -> argparse.ArgumentParser:
    made = parser("survey", __doc__, replications=4, paper=PAPER)
    made.add_argument("--respondents", type=study.at_least(2), default=300, metavar="N", help="respondents")
    made.add_argument("--constructs", type=study.at_least(1), default=10, metavar="Q", help="latent constructs")
    made.add_argument(
        "--items", type=_integers(1), default="40,80", metavar="P,...", help="items of the survey: multiples of Q"
    )
    made.add_argument(
        "--categories", type=_integers(2), default="5,7,9", metavar="K,...", help="answers to choose from"
    )
    made.add_argument(
        "--abandonment",
        type=_shares,
        default=argparse.SUPPRESS,
        metavar="SHARE,...",
        help=f"of respondents who stop at an item (default: {ABANDONMENT[0]}; with as many replications as in the "
        f"paper also its others, {', '.join(map(str, ABANDONMENT[1:]))})",
    )
    made.add_argument(
        "--careless", type=_shares, default="0,0.1,0.2", metavar="SHARE,...", help="of careless respondents"
    )
    made.add_argument(
        "--methods", type=methods, default=",".join(MAIN), metavar="NAME,...", help=f"of {', '.join(METHODS)}"
    )
    add_lambdas(made)
    return made


def _integers(low: int) -> Callable[[str], list[int]]:
    """Argument type: distinct integers >= low, such as 5,7,9 or 5-7, in ascending order."""

    def integers(text: str) -> list[int]:
        chosen = sorted(study.listed(text))
        if not chosen or chosen[0] < low:
            raise argparse.ArgumentTypeError(f"expected distinct integers >= {low}, such as 40,80, got {text!r}")
        return chosen

    return integers


def _shares(text: str) -> list[float]:
    """Argument type: distinct numbers in [0, 1], separated by commas, in ascending order."""
    chosen = sorted(study.share(part) for part in text.split(","))
    if len(set(chosen)) < len(chosen):
        raise argparse.ArgumentTypeError(f"expected distinct numbers in [0, 1], such as 0,0.1, got {text!r}")
    return chosen


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    settings = Settings(
        seed=args.seed,
        n_respondents=args.respondents,
        n_constructs=args.constructs,
        n_splits=args.splits,
        lambdas=tuple(getattr(args, "lambdas", LAMBDAS)),
    )
    asked = tasks(args)
    return Replications("survey", args, settings, measure, parts).run(asked, weight=_weight)


def tasks(args: argparse.Namespace) -> list[Task]:
    """All tasks of the arguments, replication by replication, so that a stopped run has whole ones.

    Raises
    ------
    ValueError
        If a number of items is not a multiple of the number of constructs.
    """
    for p in args.items:
        if p % args.constructs:
            raise ValueError(
                f"--items {p}: must be a multiple of --constructs {args.constructs}, so that each construct has as "
                "many items as any other"
            )
    few = args.replications < PAPER
    abandonment = getattr(args, "abandonment", ABANDONMENT[:1] if few else ABANDONMENT)
    return [
        Task(replication, p, k, left, share, tuple(args.methods))
        for replication in range(args.replications)
        for p in args.items
        for left in abandonment
        for share in args.careless
        for k in args.categories
    ]


def _weight(task: Task) -> float:
    """About how long a task takes: RDMC most, and a survey of twice as many items two to three times as long."""
    each = sum(1.0 if name.startswith("rdmc") else 0.1 if METHODS[name].tuned else 0.01 for name in task.methods)
    return each * float(task.n_items**1.3)


# -- report --------------------------------------------------------------------------------------------------------


def parts(rows: pd.DataFrame) -> list[Part]:
    """The figures of the paper that rows of tasks are enough for, one for each number of items and abandonment.

    Parameters
    ----------
    rows : pandas.DataFrame
        Of finished tasks, as `Replications.rows`.
    """
    errors = rows[rows["metric"] == "mae"]
    if errors.empty:
        return []
    keys = sorted(set(zip(errors["abandonment"], errors["n_items"], strict=True)))
    return [_figure(errors, int(p), float(left)) for left, p in keys]


def _figure(errors: pd.DataFrame, n_items: int, abandonment: float) -> Part:
    here = in_order(_of(errors, n_items, abandonment), "careless", "n_categories")
    titles = _titles(here)
    tables = [
        f"{titles[share].capitalize()}\n" + grid(summarize(each), down="method", across="n_categories", titles=titles)
        for share, each in here.groupby("careless", sort=True)
    ]
    figure = boxes.panels(
        here,
        rows_by="careless",
        columns_by="n_categories",
        titles=titles,
        colours=METHOD_COLOURS,
        label="MAE, categories",
    )
    number = FIGURES.get((n_items, abandonment))
    n = counted(here["replication"].nunique(), "replication")
    title = (
        f"{f'Figure {number}' if number else 'Beside the figures'}: {n_items} items, {abandonment:.0%} abandon the "
        f"survey; MAE over missing answers of who is not careless, {n}; mean (standard error)"
    )
    name = f"figure{number}" if number else f"survey_{n_items}_items_{abandonment:g}".replace(".", "-")
    return Part(name, title, "\n\n".join(tables), list(findings(errors, n_items, abandonment)), figure)


def _of(errors: pd.DataFrame, n_items: int, abandonment: float) -> pd.DataFrame:
    return errors[(errors["n_items"] == n_items) & (errors["abandonment"] == abandonment)]


def _titles(rows: pd.DataFrame) -> dict[Any, str]:
    return {
        **{name: method.title for name, method in METHODS.items()},
        **{k: f"{k} categories" for k in set(rows["n_categories"])},
        **{share: f"{share:.0%} careless" if share else "none careless" for share in set(rows["careless"])},
    }


# -- what the paper found, and whether this run did ----------------------------------------------------------------


class _Errors:
    """Errors of one figure: means, and mean differences of two methods on the same surveys.

    Attributes
    ----------
    numbers : list of int
        Numbers of categories.
    shares : list of float
        Shares of careless respondents.
    names : list of str
        Methods.
    """

    def __init__(self, errors: pd.DataFrame) -> None:
        by = ["n_categories", "careless", "method"]
        self._values: dict[Any, Any] = {key: each.set_index("replication")["value"] for key, each in errors.groupby(by)}
        self.numbers: list[int] = sorted(set(errors["n_categories"]))
        self.shares: list[float] = sorted(set(errors["careless"]))
        self.names = [name for name in METHODS if name in set(errors["method"])]

    def has(self, *names: str) -> bool:
        """Whether each condition has these methods."""
        return all((k, share, name) in self._values for k in self.numbers for share in self.shares for name in names)

    def mean(self, k: int, share: float, name: str) -> float:
        return float(self._values[k, share, name].mean())

    def difference(self, k: int, share: float, one: str, other: str) -> str:
        """What the first has more than the second on average, and the standard error."""
        more = self._values[k, share, one] - self._values[k, share, other]
        return spread(float(more.mean()), float(more.sem()), signed=True)

    def width(self, k: int, share: float, names: Sequence[str]) -> float:
        """The largest mean of some methods, less the smallest."""
        return float(np.ptp([self.mean(k, share, name) for name in names]))


def findings(errors: pd.DataFrame, n_items: int, abandonment: float) -> Iterator[Finding]:
    """What Appendix 7.2.4 says of 40 or of 80 items; and of all shares of respondents who abandon the survey.

    Parameters
    ----------
    errors : pandas.DataFrame
        Rows of `mae`, as `measure` gives them with the fields of the tasks. Rows of other conditions than that asked
        for are what it is compared with, where they are there.
    n_items : int
        Of other numbers than 40 and 80 the paper says nothing.
    abandonment : float

    Yields
    ------
    Finding
        None where RDMC's losses and both SIs are not there for all numbers of categories and careless shares.
    """
    found = _Errors(_of(errors, n_items, abandonment))
    if n_items not in (FEW_ITEMS, MANY_ITEMS) or not found.has(*LOSSES, SI, DISCRETIZED):
        return
    if n_items == FEW_ITEMS:
        yield from _of_40_items(found)
    else:
        yield from _of_80_items(found)
    yield from _of_losses(found)
    if n_items == MANY_ITEMS:
        yield from _of_more_items(_Errors(_of(errors, FEW_ITEMS, abandonment)), found)
    if abandonment != ABANDONMENT[0]:
        yield from _of_abandonment(_Errors(_of(errors, n_items, ABANDONMENT[0])), found)
    yield from _of_few_iterations(found)


def _of_40_items(found: _Errors) -> Iterator[Finding]:
    if 5 in found.numbers and 0 in found.shares and found.has(HUBER, SI, DISCRETIZED, MEDIAN, MODE):
        names = (HUBER, SI, DISCRETIZED, MEDIAN, MODE)
        mine = [found.mean(5, 0, name) for name in names]
        ratio = max(mine) / min(mine)
        theirs = REFERENCE[5, "mnar"]
        there = max(theirs) / min(theirs)
        yield Finding(
            "differences between methods are smaller than in the simulation of a recommender system",
            ratio < there,
            f"with 5 categories and none careless the largest MAE is {ratio:.2f} times the smallest, and {there:.2f} "
            "times there under MNAR",
        )
    if 0.1 not in found.shares:
        return
    few, many = [k for k in found.numbers if k == 5], [k for k in found.numbers if k > 5]
    for k in few:
        each_away = [found.mean(k, 0.1, name) / found.mean(k, 0.1, DISCRETIZED) - 1 for name in LOSSES]
        yield Finding(
            "with 10% careless and 5 categories RDMC and SI-discretized are similar",
            all(abs(each) < CLOSE for each in each_away),
            f"the three losses differ from it by {_listed(f'{each:+.1%}' for each in each_away)} "
            f"(less than {CLOSE:.0%} counts as similar)",
        )
    if many:
        yield Finding(
            "with 10% careless and 7 or 9 categories RDMC is better than SI-discretized with all three losses",
            all(found.mean(k, 0.1, name) < found.mean(k, 0.1, DISCRETIZED) for k in many for name in LOSSES),
            "the differences are " + _by_number(found, many, 0.1, LOSSES, DISCRETIZED),
        )
    if few and many:
        away = [
            float(np.mean([found.mean(k, 0.1, name) for name in LOSSES])) / found.mean(k, 0.1, DISCRETIZED) - 1
            for k in found.numbers
        ]
        yield Finding(
            "with more categories RDMC's robustness tells more",
            all(more > less for more, less in pairwise(away)),
            f"with 10% careless and {_listed(map(str, found.numbers))} categories its MAE, the mean of the losses, "
            f"differs from that of SI-discretized by {_listed(f'{each:+.1%}' for each in away)}",
        )


def _of_80_items(found: _Errors) -> Iterator[Finding]:
    if 0 in found.shares:
        inside = [
            (k, name)
            for k in found.numbers
            for name in LOSSES
            if found.mean(k, 0, DISCRETIZED) < found.mean(k, 0, name) < found.mean(k, 0, SI)
        ]
        yield Finding(
            "without careless respondents RDMC is between SI-discretized and SI",
            len(inside) == len(found.numbers) * len(LOSSES),
            f"in {len(inside)} of {len(found.numbers) * len(LOSSES)} comparisons; from SI it differs by "
            + _by_number(found, found.numbers, 0, LOSSES, SI),
        )
    some = [share for share in found.shares if share > 0]
    if some:
        all_of_them = [(k, share, name) for share in some for k in found.numbers for name in LOSSES]
        below = [
            (k, share, name)
            for k, share, name in all_of_them
            if found.mean(k, share, name) < min(found.mean(k, share, SI), found.mean(k, share, DISCRETIZED))
        ]
        worse = [each for each in all_of_them if each not in below]
        where = "; not with " + _listed(f"{k} categories, {share:.0%}, {_short(name)}" for k, share, name in worse)
        yield Finding(
            "with careless respondents RDMC is better than both SIs",
            not worse,
            f"in {len(below)} of {len(all_of_them)} comparisons" + (where if worse else ""),
        )


def _of_losses(found: _Errors) -> Iterator[Finding]:
    """Which loss is best, without and with many careless respondents."""
    if 0 in found.shares:
        away = [found.mean(k, 0, HUBER) / found.mean(k, 0, DISCRETIZED) - 1 for k in found.numbers]
        yield Finding(
            "without careless respondents the pseudo-Huber loss is close to SI-discretized",
            all(abs(each) < CLOSE for each in away),
            f"it differs by {_listed(f'{each:+.1%}' for each in away)} (less than {CLOSE:.0%} counts as close)",
        )
        yield Finding(
            "and it is the best of the three losses",
            all(found.mean(k, 0, HUBER) <= min(found.mean(k, 0, name) for name in LOSSES) for k in found.numbers),
            "from it the others differ by " + _by_number(found, found.numbers, 0, LOSSES[1:], HUBER),
        )
    if 0.2 in found.shares:
        strict = [name for name in found.names if name != TRUNCATED and not name.endswith("_liberal")]
        best = {k: min(strict, key=lambda name, k=k: found.mean(k, 0.2, name)) for k in found.numbers}  # type: ignore[misc]
        yield Finding(
            "with 20% careless the truncated loss is the best of all methods",
            all(found.mean(k, 0.2, TRUNCATED) < found.mean(k, 0.2, best[k]) for k in found.numbers),
            "from the best other it differs by "
            + _listed(
                f"{found.difference(k, 0.2, TRUNCATED, best[k])} with {k} categories ({METHODS[best[k]].title})"
                for k in found.numbers
            ),
        )


def _of_more_items(few: _Errors, many: _Errors) -> Iterator[Finding]:
    names = (*LOSSES, SI, DISCRETIZED)
    if few.numbers != many.numbers or few.shares != many.shares or not few.has(*names):
        return
    wide = [
        float(np.mean([each.width(k, share, names) for share in each.shares for k in each.numbers]))
        for each in (few, many)
    ]
    yield Finding(
        "differences between the methods are larger than with 40 items",
        wide[1] > wide[0],
        f"the largest MAE of RDMC and both SIs is {wide[1]:.3f} above the smallest on average, and {wide[0]:.3f} with "
        "40 items",
    )


def _of_abandonment(first: _Errors, found: _Errors) -> Iterator[Finding]:
    names = (*LOSSES, SI, DISCRETIZED)
    if first.numbers != found.numbers or first.shares != found.shares or not first.has(*names):
        return
    alike = [
        (first.mean(k, share, one) < first.mean(k, share, other))
        == (found.mean(k, share, one) < found.mean(k, share, other))
        for share in found.shares
        for k in found.numbers
        for one, other in combinations(names, 2)
    ]
    yield Finding(
        f"results are similar to those with {ABANDONMENT[0]:.0%} who abandon the survey",
        float(np.mean(alike)) > 0.8,
        f"of pairs of RDMC's losses and SIs, {np.mean(alike):.0%} are in the same order (more than 80% counts as "
        "similar)",
    )


def _of_few_iterations(found: _Errors) -> Iterator[Finding]:
    liberal = [f"{name}_liberal" for name in LOSSES]
    if not found.has(*liberal):
        return
    change = np.array(
        [
            found.mean(k, share, f"{name}_liberal") / found.mean(k, share, name) - 1
            for share in found.shares
            for k in found.numbers
            for name in LOSSES
        ]
    )
    yield Finding(
        "with at most 10 iterations RDMC's MAE is at best similar, and mostly slightly higher",
        (change > 0).mean() > 0.5 and change.min() > -0.01,
        f"it is higher in {(change > 0).sum()} of {len(change)} comparisons, from {change.min():+.1%} to "
        f"{change.max():+.1%}",
    )


def _by_number(found: _Errors, numbers: Sequence[int], share: float, names: Sequence[str], other: str) -> str:
    """How much methods differ from another: "+0.012 (0.003) absolute, ... with 5 categories; ..."."""
    return "; ".join(
        ", ".join(f"{found.difference(k, share, name, other)} {_short(name)}" for name in names)
        + f" with {k} categories"
        for k in numbers
    )


def _short(name: str) -> str:
    return METHODS[name].title.removeprefix("RDMC-")


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)


if __name__ == "__main__":
    sys.exit(main())
