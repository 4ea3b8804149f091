"""What the second seed paper's two case studies have in common: split, methods, choice of lambda, and plots."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from algorithms.ratings import Ratings
from scenarios import comparison, study
from scenarios.completion import LAMBDAS, METHODS, Completed, complete, fit_rows, method_style, methods
from scenarios.replications import Finding, Row, counted

__all__ = [
    "BASELINES",
    "DEFAULT",
    "RDMC",
    "SI",
    "SI_DISCRETIZED",
    "TUNED",
    "Choices",
    "Grids",
    "Split",
    "add_arguments",
    "choices",
    "completed",
    "dots",
    "error_rows",
    "histogram",
    "lambda_note",
    "legend_of_methods",
    "seconds_findings",
    "skewness",
    "split",
    "strict",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Methods without --paper: all but RDMC's other two losses, which the paper finds to be much like the first.
DEFAULT = tuple(name for name in METHODS if not name.startswith(("rdmc_absolute", "rdmc_truncated")))
RDMC, SI, SI_DISCRETIZED = "rdmc_pseudo_huber", "soft_impute", "soft_impute_discretized"
TUNED = tuple(name for name, method in METHODS.items() if method.tuned)
BASELINES = tuple(name for name in METHODS if name not in TUNED)
# What a name ends with where a method stops early.
LIBERAL = "_liberal"
TEST_SHARE = 0.2
PAPER_SPLITS = 10


# -- arguments -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grids:
    """What lambda is chosen from, as fractions of the largest singular value."""

    rdmc: tuple[float, ...] = LAMBDAS
    soft_impute: tuple[float, ...] = LAMBDAS

    def of(self, method: str) -> tuple[float, ...]:
        """The grid of a method."""
        return self.rdmc if method.startswith("rdmc") else self.soft_impute

    def __str__(self) -> str:
        shown = [", ".join(f"{each:.3f}" for each in grid) for grid in (self.rdmc, self.soft_impute)]
        return shown[0] if self.rdmc == self.soft_impute else f"{shown[0]} for RDMC and {shown[1]} for SI"


@dataclass(frozen=True)
class Choices:
    """How a case study is run: methods, number of splits that choose lambda, and what it is chosen from."""

    methods: tuple[str, ...] = DEFAULT
    n_splits: int = 5
    grids: Grids = Grids()


PAPER = Choices(tuple(METHODS), PAPER_SPLITS)


def add_arguments(to: argparse.ArgumentParser, default: Choices, *, paper: str) -> None:
    """Add what case studies take beside the arguments of every experiment.

    Here --paper sets all that is not given as it is in the paper; it does not change the number of replications.

    Parameters
    ----------
    to : argparse.ArgumentParser
        As `scenarios.replications.parser` makes it.
    default : Choices
        Without --paper.
    paper : str
        What else --paper sets, and how long it takes: goes on from "all methods, ten splits and ten lambdas".
    """
    group = to.add_argument_group("methods")
    group.add_argument(
        "--paper",
        action="store_true",
        help=f"the paper's own counts where no other is given: all {len(METHODS)} methods, {PAPER_SPLITS} splits and "
        f"{len(LAMBDAS)} lambdas{paper}",
    )
    group.add_argument(
        "--methods",
        type=methods,
        default=argparse.SUPPRESS,
        metavar="NAME,...",
        help=f"of {', '.join(METHODS)} (default: without RDMC's absolute and truncated losses)",
    )
    group.add_argument(
        "--splits",
        type=study.at_least(1),
        default=argparse.SUPPRESS,
        metavar="N",
        help="splits that choose lambda, each with 10%% of the training ratings held out "
        f"(default: {default.n_splits})",
    )
    group.add_argument(
        "--lambdas",
        type=comparison.numbers,
        default=argparse.SUPPRESS,
        metavar="L,...",
        help=f"fractions of the largest singular value to choose from (default: {default.grids})",
    )


def choices(args: argparse.Namespace, default: Choices) -> Choices:
    """What the arguments of `add_arguments` ask for."""
    base = PAPER if args.paper else default
    grids = Grids(tuple(args.lambdas), tuple(args.lambdas)) if hasattr(args, "lambdas") else base.grids
    return Choices(tuple(getattr(args, "methods", base.methods)), getattr(args, "splits", base.n_splits), grids)


# -- fits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Training ratings and test ratings.

    Attributes
    ----------
    train : float64, shape (n_users, n_items)
        NaN where there is no training rating.
    row, column : int64, shape (n_test,)
        Cells of the test ratings.
    truth : float64, shape (n_test,)
        These ratings.
    """

    train: FloatArray
    row: IntArray
    column: IntArray
    truth: FloatArray


def split(ratings: Ratings, *, share: float = TEST_SHARE, seed: Any) -> Split:
    """Hold out a share of the ratings to test with, drawn at random; the rest are for training.

    An item that loses all its ratings leaves the training matrix and the test: no method can predict it.

    Parameters
    ----------
    ratings : Ratings
    share : float
        Of all ratings, rounded to a whole number of them.
    seed
        Anything `numpy.random.default_rng` takes.
    """
    test = np.zeros(len(ratings), dtype=bool)
    test[np.random.default_rng(seed).choice(len(ratings), round(share * len(ratings)), replace=False)] = True
    train = np.full((ratings.n_users, ratings.n_items), np.nan)
    train[ratings.user[~test], ratings.item[~test]] = ratings.value[~test]
    known = ~np.isnan(train).all(axis=0)
    test &= known[ratings.item]
    place = np.cumsum(known) - 1
    return Split(train[:, known], ratings.user[test], place[ratings.item[test]], ratings.value[test])


def completed(
    matrix: FloatArray, names: Sequence[str], *, categories: FloatArray, grids: Grids, held_out: Any, seed: int
) -> dict[str, Completed]:
    """A matrix completed by several methods, each with lambda chosen from its grid; in the order of `names`."""
    done: dict[str, Completed] = {}
    for grid in dict.fromkeys(map(grids.of, names)):
        here = [name for name in names if grids.of(name) == grid]
        done |= complete(matrix, here, categories=categories, held_out=held_out, lambdas=grid, seed=seed)
    return {name: done[name] for name in names}


def error_rows(done: Mapping[str, Completed], data: Split) -> Iterator[Row]:
    """Rows of each method: `mae`, its mean absolute error on the test ratings, and about its fit."""
    for name, each in done.items():
        error = float(np.abs(each.matrix[data.row, data.column] - data.truth).mean())
        yield {"method": name, "metric": "mae", "value": error}
        yield from fit_rows(each)


# -- reports -------------------------------------------------------------------------------------------------------


def strict(name: str) -> str:
    """Name of the same method that does not stop early."""
    return name.removesuffix(LIBERAL)


def skewness(values: FloatArray) -> float:
    """Third standardized moment: negative where the long tail is to the left."""
    aside = values - values.mean()
    return float((aside**3).mean() / (aside**2).mean() ** 1.5)


def lambda_note(rows: pd.DataFrame, grids: Grids, n_splits: int) -> str:
    """How lambda was chosen, and how often at an end of a grid, beyond which a better one may lie."""
    chosen = rows[(rows["metric"] == "lam") & ~rows["method"].str.contains("discretized")]  # these share fits
    if chosen.empty:
        return ""
    at_end = [
        (len(grid := grids.of(name)) > 1) and bool(np.isclose(lam, [min(grid), max(grid)]).any())
        for name, lam in zip(chosen["method"], chosen["value"], strict=True)
    ]
    how = f"Lambda was chosen on {counted(n_splits, 'split')} from {grids}"
    if any(at_end):
        how += f"; in {sum(at_end)} of {len(at_end)} fits it is an end of these"
    if grids == Grids() and n_splits == PAPER_SPLITS:
        return f"{how}, as in the paper."
    return f"{how}. The paper: {PAPER_SPLITS} splits, {len(LAMBDAS)} values from 0.01 to 1 (--paper)."


def seconds_findings(rows: pd.DataFrame, *, times: float | None) -> Iterator[Finding]:
    """What the paper says of CPU times, of rows of one matrix; with `times`, also how much RDMC gains at least."""
    mean = rows.groupby("method")["value"].mean()
    if not {RDMC, RDMC + LIBERAL, SI} <= set(mean.index):
        return
    slow, fast, si = (float(mean[name]) for name in (RDMC, RDMC + LIBERAL, SI))
    if times is not None:
        yield Finding(
            f"the liberal criterion makes RDMC faster by more than a factor of {times:g}",
            slow > times * fast,
            f"a factor of {slow / fast:.1f}, {slow:.3g} s and {fast:.3g} s",
        )
    yield Finding(
        "RDMC with the liberal criterion takes about as long as SI",
        fast < 2 * si,
        f"{fast:.3g} s and {si:.3g} s; less than twice as long counts as about as long",
    )


# -- plots ---------------------------------------------------------------------------------------------------------


def legend_of_methods(figure: Figure, names: Sequence[str]) -> None:
    """A legend of methods at the right of a figure."""
    handles = [Line2D([], [], label=METHODS[name].title, **method_style(name)) for name in names]
    figure.legend(handles=handles, loc="outside right center", frameon=False, fontsize="small")


def histogram(panels: Mapping[str, FloatArray], categories: Sequence[float]) -> Figure:
    """Draw the distribution of ratings, a panel for each group of them."""
    figure, axes = plt.subplots(
        1, len(panels), figsize=(1.5 + 3.3 * len(panels), 3.4), squeeze=False, sharey=True, layout="constrained"
    )
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        shares = [float((values == each).mean()) for each in categories]
        bars = ax.bar(range(len(categories)), shares, color=comparison.COLOURS[5], alpha=0.8)
        ax.bar_label(bars, [f"{each:.1%}" for each in shares], fontsize="small", padding=2)
        ax.set_xticks(range(len(categories)), [f"{each:g}" for each in categories])
        ax.set_xlabel("Rating")
        ax.set_title(f"{title}, {len(values):,} ratings", fontsize="medium")
        ax.grid(axis="y", alpha=0.3)
        ax.set_axisbelow(True)
        ax.margins(y=0.12)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes[0, 0].set_ylabel("Share of the ratings")
    return figure


def dots(
    ax: Axes, rows: pd.DataFrame, label: str, *, marks: Mapping[str, float] | None = None, log: bool = False
) -> None:
    """Draw a line of points for each method, one a row; where there are several, their mean is the large one.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    rows : pandas.DataFrame
        With `method` and `value`.
    label : str
        Of the horizontal axis.
    marks : mapping of method to float, optional
        Values to compare with: a vertical stroke.
    log : bool
        Whether the axis is logarithmic.
    """
    names = [name for name in METHODS if name in set(rows["method"])]
    for at, name in enumerate(names):
        values = rows.loc[rows["method"] == name, "value"].to_numpy(dtype=float)
        look = method_style(name) | {"linestyle": "none"}
        if len(values) > 1:
            ax.plot(values, np.full(len(values), at), ".", color=look["color"], alpha=0.5, markersize=4)
        ax.plot([values.mean()], [at], markersize=8, zorder=3, **look)
        if name in (marks or {}):
            ax.plot([(marks or {})[name]], [at], "|", color="black", markersize=15, zorder=2)
    ax.set_yticks(range(len(names)), [METHODS[name].title for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(label)
    ax.grid(alpha=0.3)
    if log:
        comparison.logarithmic(ax, x=True)
