"""What scenarios share that compare conditions: paired runs over several seeds, tables with mean and spread."""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from tqdm import tqdm

from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings
from algorithms.synthetic import LowRank, low_rank
from netsim import LogNormal, Probe, Result, Simulation, World
from netsim.simulation import Script
from scenarios import study

__all__ = [
    "COLOURS",
    "DEFAULTS",
    "Column",
    "Comparison",
    "Ground",
    "Report",
    "along",
    "at_amount",
    "band",
    "deviation",
    "distinct",
    "ground",
    "in_seeds",
    "labelled",
    "legend",
    "logarithmic",
    "new_figure",
    "numbers",
    "one_share",
    "paired",
    "parser",
    "pivot",
    "points",
    "seeds",
    "shares",
    "spread",
    "summarize",
    "text",
    "told",
    "total",
    "world",
]

# Flat after about 30 periods on the matrices below, so that what is compared is the error learned and not its slope.
DEFAULTS = Learning(rank=4, lam=0.02, rate=0.05, schedule=Schedule("exponential", 20))

# Share of the ratings that are missing, and so tested on.
MISSING = 0.5

# One-way delay over the wide area: lognormal, median 140 ms, 20% and 80% at 70 and 280 ms (a reading of Saroiu's
# measurements, p2p-hackers list, 2006). Loss: the lowest bin of fixed lines in the reports of the FCC is below 0.4%;
# the value within it is a choice.
DELAY = LogNormal(median=0.14, sigma=0.82)
LOSS = 0.002

# Okabe and Ito's colours, which colour-blind readers tell apart: black, orange, sky blue, green, vermilion, blue,
# purple.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2", "#CC79A7")


# A run that goes on until it has enough does so by a tenth of its time at once, up to so many times --until.
STRETCH, PATIENCE = 1.1, 20.0


# -- arguments -----------------------------------------------------------------------------------------------------


def parser(
    name: str, description: str, *, until: float, size: int = 150, learning: Learning = DEFAULTS
) -> argparse.ArgumentParser:
    """Parser with the arguments that every comparison takes.

    Parameters
    ----------
    name : str
        The scenario's module name.
    description : str
        What the scenario shows.
    until : float
        Default length in simulated seconds.
    size : int
        Default number of users, and of items.
    learning : Learning
        Defaults of its arguments.
    """
    made = study.Parser(name, description)
    made.add_argument(
        "--seeds",
        type=seeds,
        default="1-5",
        metavar="N,...",
        help="seeds, such as 1 or 1,4 or 1-5; each draws ratings, topology and all chance, the same for all conditions",
    )
    made.add_argument(
        "--until", type=study.positive, default=until, metavar="SECONDS", help="simulated time of the run to compare to"
    )
    made.add_argument(
        "--every",
        type=study.positive,
        default=argparse.SUPPRESS,
        metavar="SECONDS",
        help="simulated time between two measurements (default: a ninetieth of --until)",
    )
    made.add_argument("--users", type=study.at_least(4), default=size, metavar="M", help="users")
    made.add_argument(
        "--items", type=study.at_least(4), default=size, metavar="N", help="items, each on a router of its own"
    )
    study.add_network(made, places=100)
    study.add_out(made, f"out/{name}")
    study.add_learning(made, learning)
    return made


def seeds(text: str) -> list[int]:
    """Argument type: distinct integers >= 0, as a list of numbers and ranges."""
    chosen = study.listed(text)
    if not chosen or min(chosen) < 0:
        raise argparse.ArgumentTypeError(f"expected distinct integers >= 0, such as 1 or 1,4 or 1-5, got {text!r}")
    return chosen


def shares(text: str) -> list[float]:
    """Argument type: distinct numbers > 0 and < 1, separated by commas, in ascending order."""
    return distinct(text, lambda each: 0 < each < 1, "fractions between 0 and 1, such as 0.3 or 0.1,0.5")


def one_share(value: str) -> float:
    """Argument type: one number > 0 and < 1."""
    chosen = shares(value)
    if len(chosen) > 1:
        raise argparse.ArgumentTypeError(f"expected one fraction between 0 and 1, got {value!r}")
    return chosen[0]


def numbers(value: str) -> list[float]:
    """Argument type: distinct finite numbers > 0, separated by commas, in ascending order."""
    return distinct(value, lambda each: 0 < each < math.inf, "numbers > 0, such as 1 or 0.1,10")


def distinct(value: str, fits: Callable[[float], bool], expected: str) -> list[float]:
    """Distinct numbers that fit, separated by commas, in ascending order; an error of an argument type otherwise."""
    try:
        chosen = sorted(float(part) for part in value.split(","))
    except ValueError:
        chosen = []
    if not chosen or not all(map(fits, chosen)) or len(set(chosen)) < len(chosen):
        raise argparse.ArgumentTypeError(f"expected distinct {expected}, got {value!r}")
    return chosen


# -- worlds --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ground:
    """What all conditions of one seed have in common.

    Attributes
    ----------
    seed : int
    data : LowRank
        Ratings to learn from and to test on.
    world : World
        The world without what is studied.
    """

    seed: int
    data: LowRank
    world: World


def ground(args: argparse.Namespace, seed: int) -> Ground:
    """Ratings and the undisturbed world of a seed, as the arguments of `parser` say.

    Parameters
    ----------
    args : argparse.Namespace
    seed : int
        All chance comes from it: the same for every condition (common random numbers).
    """
    data = low_rank(args.users, args.items, rank=4, missing=MISSING, seed=seed)
    return Ground(seed, data, world(data.train, args, seed))


def world(ratings: Ratings, args: argparse.Namespace, seed: int) -> World:
    """The undisturbed world of some ratings, as the arguments of `parser` say."""
    return study.world(ratings, args, seed=seed, delay=DELAY, loss=LOSS, learning=study.learning(args))


def along(probes: pd.DataFrame, column: str, spent: Sequence[str], amounts: Sequence[float] | np.ndarray) -> np.ndarray:
    """Values of a column when other columns, added up, had come to some amounts; linear between two probes.

    Parameters
    ----------
    probes : pandas.DataFrame
        Probe table of a run.
    column : str
    spent : sequence of str
        Columns that grow, such as ("delivered",).
    amounts : float64, shape (n,)

    Returns
    -------
    float64, shape (n,)
        NaN where the run ended before.
    """
    values = probes[column].to_numpy(dtype=float)
    found: np.ndarray = np.interp(amounts, total(probes, spent), values, right=math.nan)
    return found


def at_amount(probes: pd.DataFrame, column: str, spent: Sequence[str], amount: float) -> float:
    """Value of a column when other columns, added up, had come to one amount; as `along`."""
    return float(along(probes, column, spent, [amount])[0])


def total(probes: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Columns of a probe table added up, float64, shape (n_probes,)."""
    added: np.ndarray = probes[list(columns)].to_numpy(dtype=float).sum(axis=1)
    return added


class Changed(Protocol):
    """A condition that differs from the world in some of its arguments."""

    @property
    def label(self) -> str:
        """What it is called."""

    @property
    def changes(self) -> dict[str, Any]:
        """Arguments of `World.replace`."""


def has_spent(columns: Sequence[str], amount: float) -> Callable[[pd.DataFrame], bool]:
    """What `Comparison.measure` calls enough: columns, added up, have come to an amount."""
    return lambda probes: bool(total(probes, columns)[-1] >= amount)


# -- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A measured column, as the printed table shows it.

    Parameters
    ----------
    name : str
        In the table of a row for each condition and seed.
    title : str
        With its unit.
    places : int
        Digits behind the point.
    signed : bool
        Whether a plus stands before what is not negative: a difference.
    """

    name: str
    title: str
    places: int = 3
    signed: bool = False


def summarize(measured: pd.DataFrame, columns: Sequence[Column]) -> pd.DataFrame:
    """One row for each condition: mean and standard deviation over the seeds.

    Parameters
    ----------
    measured : pandas.DataFrame
        A row for each condition and seed, with columns `condition`, `seed` and those named.
    columns : sequence of Column

    Returns
    -------
    pandas.DataFrame
        `condition`, `n_seeds`, and for each column `NAME_mean`, `NAME_sd` and `NAME_n`, how many seeds have a value:
        what was not reached is NaN, and left out of mean and deviation. A deviation of a single value is NaN.
    """
    rows = []
    for condition, group in measured.groupby("condition", sort=False):
        row: dict[str, Any] = {"condition": condition, "n_seeds": len(group)}
        for column in columns:
            found = group[column.name].dropna()
            row |= {
                f"{column.name}_mean": float(found.mean()),
                f"{column.name}_sd": float(found.std()),
                f"{column.name}_n": len(found),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def text(table: pd.DataFrame, columns: Sequence[Column]) -> str:
    """The table of `summarize` as it is printed: mean and standard deviation."""
    shown = [["condition", *(column.title for column in columns)]]
    for _, row in table.iterrows():
        shown.append([str(row["condition"]), *(_cell(row, column) for column in columns)])
    return study.aligned(shown)


def _cell(row: pd.Series, column: Column) -> str:
    mean, aside, found = (row[f"{column.name}_{what}"] for what in ("mean", "sd", "n"))
    if found == 0:
        return "not reached"
    shown = spread(mean, aside, column.places, signed=column.signed)
    return shown if found == row["n_seeds"] else f"{shown} ({found} of {row['n_seeds']})"


def deviation(values: np.ndarray) -> float:
    """Standard deviation over seeds, or NaN where there is no second one."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def spread(mean: float, aside: float, places: int = 3, *, signed: bool = False) -> str:
    """Mean and deviation as text; a mean alone where the deviation is not a number."""
    sign = "+" if signed else ""
    shown = f"{round(mean, places) + 0.0:{sign},.{places}f}"  # + 0.0: no -0.000
    return shown if math.isnan(aside) else f"{shown} ± {aside:,.{places}f}"


def told(values: np.ndarray, places: int = 3, *, signed: bool = False) -> str:
    """Mean and deviation of the values of all seeds, as text."""
    return spread(float(values.mean()), deviation(values), places, signed=signed)


def pivot(measured: pd.DataFrame, condition: str, column: str) -> np.ndarray:
    """Values of a column under a condition, one for each seed, without those that are NaN."""
    found = measured.loc[measured["condition"] == condition, column].dropna()
    return found.to_numpy(dtype=float)


def paired(measured: pd.DataFrame, condition: str, other: str, column: str) -> "pd.Series[float]":
    """Differences of a column between two conditions, in pairs of one seed; NaN where one of a pair has no value."""
    values, others = (measured[measured["condition"] == each].set_index("seed")[column] for each in (condition, other))
    return values - others


def in_seeds(found: int, n_seeds: int) -> str:
    """In how many of the seeds, in words; empty where in all."""
    return "" if found == n_seeds else f" in {found} of {n_seeds} seeds"


@dataclass(frozen=True)
class Report:
    """What a comparison found.

    Attributes
    ----------
    measured : pandas.DataFrame
        A row for each condition and seed: `condition`, `seed`, and what was measured.
    columns : sequence of Column
        What the printed table shows.
    heading : str
        What stands above it.
    answer : str
        The scenario's answer, worked out from the numbers.
    figure : matplotlib Figure
    """

    measured: pd.DataFrame
    columns: Sequence[Column]
    heading: str
    answer: str
    figure: Figure


# -- figures -------------------------------------------------------------------------------------------------------


def band(
    ax: Axes, x: Sequence[float] | np.ndarray, runs: np.ndarray, label: str, *, shaded: bool = True, **style: Any
) -> None:
    """Draw the mean over seeds as a line, and one standard deviation around it as a band.

    Parameters
    ----------
    ax : matplotlib Axes
    x : float64, shape (n,)
    runs : float64, shape (n_seeds, n)
    label : str
    shaded : bool
        Whether the band is drawn.
    **style
        Of the line: color, linestyle.
    """
    mean = runs.mean(axis=0)
    ax.plot(x, mean, label=label, linewidth=1.6, **style)
    if shaded and len(runs) > 1:
        aside = runs.std(axis=0, ddof=1)
        ax.fill_between(np.asarray(x, dtype=float), mean - aside, mean + aside, color=style["color"], alpha=0.2, lw=0)


def points(ax: Axes, x: Sequence[float] | np.ndarray, values: Iterable[np.ndarray], label: str, **style: Any) -> None:
    """Draw the mean over seeds at each x, with one standard deviation as a bar; nothing where no seed has a value.

    Parameters
    ----------
    ax : matplotlib Axes
    x : float64, shape (n,)
    values : iterable of n arrays
        Of each x, the values over seeds.
    label : str
    **style
        Of the line: color, marker, linestyle.
    """
    listed = list(values)
    mean = [float(each.mean()) if len(each) else math.nan for each in listed]
    aside = [float(each.std(ddof=1)) if len(each) > 1 else 0.0 for each in listed]
    ax.errorbar(x, mean, aside, label=label, capsize=2.5, markersize=5, linewidth=1.4, **style)


def logarithmic(ax: Axes, *, x: bool = False, y: bool = False) -> None:
    """Make axes logarithmic, with plain numbers at 1, 2 and 5 of each power of ten."""
    for axis, wanted, scale in ((ax.xaxis, x, ax.set_xscale), (ax.yaxis, y, ax.set_yscale)):
        if wanted:
            scale("log")
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def labelled(ax: Axes, x: str, y: str, title: str) -> None:
    """Say what the axes are, and what a panel shows."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(title, loc="left", fontsize="medium")


def legend(ax: Axes, **where: Any) -> None:
    """A small legend on a white ground, so that lines behind it do not disturb."""
    ax.legend(fontsize="small", edgecolor="none", facecolor="white", framealpha=0.8, **where)


def new_figure(n_panels: int) -> tuple[Figure, np.ndarray]:
    """A figure of panels beside each other, and their axes, shape (n_panels,)."""
    figure, axes = plt.subplots(1, n_panels, figsize=(4.9 * n_panels, 4.2), squeeze=False, layout="constrained")
    for ax in axes[0]:
        ax.grid(alpha=0.3)
    return figure, axes[0]


# -- the comparison ------------------------------------------------------------------------------------------------


@dataclass
class Comparison(study.Study):
    """Runs each condition with each seed, and writes tables, a figure and an answer.

    Parameters
    ----------
    name, args
        As for `Study`.
    report : function of this comparison
        Makes the `Report`; it may rely on all conditions of all `complete` seeds.
    n_conditions : int
        How many conditions each seed has.
    """

    report: Callable[["Comparison"], Report] = field(kw_only=True)
    n_conditions: int = field(kw_only=True)
    pairs: dict[tuple[str, int], str] = field(default_factory=dict)  # label of the run by condition and seed

    def __post_init__(self) -> None:
        super().__post_init__()
        self._bar = tqdm(
            total=self.n_conditions * len(self.args.seeds),
            disable=None,
            leave=False,
            bar_format="{desc}{percentage:3.0f}%|{bar}| {n}/{total} runs [{elapsed}<{remaining}]",
        )

    @property
    def every(self) -> float:
        """Simulated seconds between two measurements."""
        return float(getattr(self.args, "every", self.args.until / 90))

    @property
    def complete(self) -> list[int]:
        """Seeds of which all conditions were run, in the order given."""
        counted = [seed for _, seed in self.pairs]
        return [seed for seed in self.args.seeds if counted.count(seed) == self.n_conditions]

    @property
    def conditions(self) -> list[str]:
        """Conditions in the order of the first seed's runs."""
        return list(dict.fromkeys(condition for condition, _ in self.pairs))

    def measure_beside(
        self,
        seed: int,
        world: World,
        probes: Sequence[Probe],
        compared: Sequence[Changed],
        *,
        spent: Sequence[str],
        lacking: str,
    ) -> None:
        """Run the first condition for the time of the arguments, and each other one until it has spent as much too.

        Parameters
        ----------
        seed : int
        world, probes
            As for `simulate`; the world without the conditions' changes.
        compared : sequence of conditions
        spent : sequence of str
            Columns of the probe table whose sum is what is spent.
        lacking : str
            What the error says where the first one has spent nothing.

        Raises
        ------
        ValueError
            If it has not.
        """
        first, *others = compared
        result = self.measure(first.label, seed, world.replace(**first.changes), probes)
        amount = float(total(result.probes, spent)[-1])
        if not amount:
            raise ValueError(f"--until {self.args.until:g}: {lacking} in that time; give more")
        for each in others:
            changed = world.replace(**each.changes)
            self.measure(each.label, seed, changed, probes, enough=has_spent(spent, amount))

    def measure(
        self,
        condition: str,
        seed: int,
        world: World,
        probes: Sequence[Probe],
        *,
        enough: Callable[[pd.DataFrame], bool] | None = None,
        scripts: Sequence[Script] = (),
    ) -> Result:
        """Run one condition with one seed for the time of the arguments, and keep its result.

        Parameters
        ----------
        condition : str
        seed : int
        world, probes, scripts
            As for `simulate`.
        enough : function of the probe table, optional
            The run goes on until this holds, or its patience is over.

        Raises
        ------
        KeyboardInterrupt
            If a person stopped it; this run is not kept.
        """
        label = f"{condition}, seed {seed}"
        self._bar.set_description_str(f"{label}: ", refresh=False)
        self._check_free(self._run_folder(label))
        simulation = Simulation(world, seed=seed, probes=probes)
        for script in scripts:
            simulation.env.process(script(simulation))
        until = self.args.until
        result = simulation.run(until, every=self.every)
        while enough is not None and not result.interrupted and not enough(result.probes):
            until *= STRETCH
            if until > PATIENCE * self.args.until:
                break
            result = simulation.run(until, every=self.every)
        if result.interrupted:
            raise KeyboardInterrupt
        self.results[label] = result
        self._save(label)
        self.pairs[condition, seed] = label
        self._bar.update()
        return result

    def costs_beside(self, first: str, condition: str, seed: int, spent: str) -> dict[str, float]:
        """What a condition of `measure_beside` costs above the first: at equal time, and when it had spent as much.

        Returns
        -------
        dict
            `test_rmse` and `cost_time` at equal time; `cost_SPENT`, and `slowdown`: the time until then, in times of
            that of the first.
        """
        plain, probes = self.result(first, seed).final, self.probes(condition, seed)
        error = at_amount(probes, "test_rmse", ("time",), plain["time"])
        later, time = (at_amount(probes, name, (spent,), plain[spent]) for name in ("test_rmse", "time"))
        return {
            "test_rmse": error,
            "cost_time": error - plain["test_rmse"],
            f"cost_{spent}": later - plain["test_rmse"],
            "slowdown": time / plain["time"],
        }

    def result(self, condition: str, seed: int) -> Result:
        """The result of a condition with a seed."""
        return self.results[self.pairs[condition, seed]]

    def probes(self, condition: str, seed: int) -> pd.DataFrame:
        """The probe table of a condition with a seed."""
        return self.result(condition, seed).probes

    def curves(self, condition: str, column: str, at: np.ndarray, spent: Sequence[str] = ("time",)) -> np.ndarray:
        """A column of all complete seeds against time, or against what was spent; shape (n_seeds, n)."""
        return np.array([along(self.probes(condition, seed), column, spent, at) for seed in self.complete])

    def finish(self) -> int:
        """Print table and answer, and write everything to the folder; returns the exit status."""
        self.writing = True
        self._bar.close()
        out: Path = self.args.out
        made = self.report(self) if self.complete else None
        figure = f"{self.name}.png"
        files: dict[str, str | bytes] = {}
        if made is not None:
            table = summarize(made.measured, made.columns)
            files["table.csv"] = table.to_csv(index=False)
            files["seeds.csv"] = made.measured.to_csv(index=False)
            summary = {**self._head(), "answer": made.answer, "rows": table.to_dict("records")}
            files["summary.json"] = study.json_text(summary)
            files[figure] = study.rendered(made.figure)
        files["probes.csv"] = self._probe_table().to_csv(index=False)
        files["configuration.json"] = study.json_text(self._configuration())
        study.write(out, files)
        self._remove_earlier_runs()
        if made is None:
            for name in ("table.csv", "seeds.csv", "summary.json", figure):  # those of an earlier comparison
                (out / name).unlink(missing_ok=True)
            print("No seed has run under all conditions, so there is nothing to compare.")  # noqa: T201
        else:
            print(f"{made.heading}\n\n{text(table, made.columns)}\n\n{made.answer}\n")  # noqa: T201
        print(f"Written to {out}: {', '.join(files)}, {study.RUNS}/")  # noqa: T201
        self._tell_diverged()
        if self._stopped:
            print("Interrupted: the runs that were finished are kept; the table has the seeds that were complete.")  # noqa: T201
        return 130 if self._stopped else 0

    def _head(self) -> dict[str, Any]:
        wall = sum(result.wall_seconds for result in self.results.values())
        return {"seeds": self.complete, "interrupted": self._stopped, "wall_seconds": round(wall, 1)}

    def _configuration(self) -> dict[str, Any]:
        made = super()._configuration()
        del made["seed"]  # each run has its own
        return made | {"seeds": self.args.seeds}

    def _probe_table(self) -> pd.DataFrame:
        tables = []
        for (condition, seed), label in self.pairs.items():
            table = self.results[label].probes.copy()
            table.insert(0, "condition", condition)
            table.insert(1, "seed", seed)
            tables.append(table)
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def _tell_diverged(self) -> None:
        for label, result in self.results.items():
            bad = [name for name in result.measured if name.endswith("rmse") and not np.isfinite(result.final[name])]
            if bad:
                print(f"{label} diverged: {', '.join(bad)} is not a number any more; try a smaller --rate.")  # noqa: T201
