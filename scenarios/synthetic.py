"""The synthetic table of the first seed paper: RMS error against the truth for m = n = 100, 200 and 500.

Side by side, on the same ratings: the network, with delays, loss and stamps; the sequential form of section 4, for as
many updates as the network made; centralized alternating least squares (ALS) on the same objective; and the oracle
rate. The error is ||U'V - Theta||_F / sqrt(mn) over all entries, of the last profiles, predictions not clipped.

One rule gives lambda at all sizes, from the size and the rounding step alone: a share (--shrinkage) of the largest
singular value that rounding noise has on the observed entries. The share was chosen on matrices of other seeds (101 to
103; at size 500, 101), both generators and all sizes together, by the error on the missing ratings (test_rmse in
errors.csv), which needs no truth. That error is least from 0.20 to 0.25.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from tqdm import tqdm

from algorithms.learning import Learning, Schedule
from algorithms.metrics import factorization_rmse, rmse
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential
from algorithms.solvers import AlternatingLeastSquares
from algorithms.synthetic import LowRank, low_rank, noise_weight, oracle_rate
from netsim import LogNormal, Result, World, simulate
from netsim.result import package_versions
from scenarios import study

__all__ = ["draw", "main", "sequential", "summarize"]

GENERATORS = ("uniform", "gaussian")
METHODS = {"network": "network", "sequential": "sequential", "als": "ALS", "oracle": "oracle rate"}

# Section 4 of the first seed paper: RMS error by m = n, with this rank and share of missing ratings.
PAPER = {100: 0.17, 200: 0.15, 500: 0.13}
PAPER_RANK, PAPER_MISSING = 10, 0.2

RULE = "lambda = {shrinkage:g} sigma sqrt(p) (sqrt m + sqrt n), sigma = 1 / sqrt(12), p the share of ratings observed"


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = study.Parser("synthetic", __doc__)
    parser.add_argument(
        "--sizes", type=numbers(2), default="100,200,500", metavar="N,...", help="numbers of users, and of items"
    )
    parser.add_argument(
        "--seeds", type=numbers(0), default="1-5", metavar="N,...", help="seeds, such as 1 or 1,4 or 1-5"
    )
    parser.add_argument(
        "--generator",
        choices=["both", *GENERATORS],
        default="both",
        help="how the truth is made (algorithms.synthetic)",
    )
    parser.add_argument("--rank", type=study.at_least(1), default=PAPER_RANK, metavar="R", help="of truth and profiles")
    parser.add_argument(
        "--missing", type=study.share, default=PAPER_MISSING, metavar="SHARE", help="ratings deleted at random"
    )
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--shrinkage", type=study.positive, default=0.25, metavar="C", help="lambda over the noise's singular value"
    )
    group.add_argument("--rate", type=study.positive, default=0.1, help="initial learning rate")
    group.add_argument(
        "--half-life", type=study.positive, default=12.0, metavar="PASSES", help="after which the rate is halved"
    )
    group = parser.add_argument_group("network")
    group.add_argument("--until", type=study.positive, default=800.0, metavar="SECONDS", help="simulated time")
    group.add_argument(
        "--period", type=study.positive, default=10.0, metavar="SECONDS", help="between two broadcasts of a node"
    )
    group.add_argument("--places", type=study.at_least(4), default=100, metavar="P", help="places of the underlay")
    group.add_argument(
        "--loss", type=study.share, default=0.01, metavar="SHARE", help="messages dropped by the network"
    )
    study.add_out(parser, "out/synthetic")
    return study.main(parser, run, argv)


def numbers(lowest: int) -> Callable[[str], list[int]]:
    """Argument type: distinct integers >= `lowest`, as a list of numbers and ranges."""

    def read(text: str) -> list[int]:
        chosen = study.listed(text)
        if not chosen or min(chosen) < lowest:
            raise argparse.ArgumentTypeError(
                f"expected distinct integers >= {lowest}, such as {lowest} or {lowest},{lowest + 3}, got {text!r}"
            )
        return chosen

    return read


@dataclass(frozen=True)
class Case:
    """One synthetic matrix, and how it is learned.

    Attributes
    ----------
    generator : str
    size, seed : int
    data : LowRank
    world : World
    """

    generator: str
    size: int
    seed: int
    data: LowRank
    world: World

    @property
    def oracle(self) -> float:
        """The oracle rate."""
        return oracle_rate(self.size, self.size, rank=self.world.learning.rank, n_observed=len(self.data.train))

    @property
    def label(self) -> str:
        """Short name, for progress and configuration."""
        return f"{self.generator}, {self.size}, seed {self.seed}"


def case(args: argparse.Namespace, generator: Any, size: int, seed: int) -> Case:
    """The case of one generator, size and seed; all its chance comes from the seed."""
    data = low_rank(size, size, rank=args.rank, missing=args.missing, generator=generator, seed=seed)
    learning = Learning(
        rank=args.rank,
        lam=noise_weight(size, size, n_observed=len(data.train), shrinkage=args.shrinkage),
        regularization="uniform",
        rate=args.rate,
        schedule=Schedule("exponential", args.half_life),
    )
    delay = LogNormal(median=0.07, sigma=0.8)
    world = study.world(data.train, args, seed=seed, delay=delay, loss=args.loss, learning=learning)
    return Case(generator, size, seed, data, world)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    generators = GENERATORS if args.generator == "both" else (args.generator,)
    combined = [(generator, size, seed) for generator in generators for size in args.sizes for seed in args.seeds]
    for generator in generators:  # a mistake in the arguments shows before anything is run
        _ = case(args, generator, min(args.sizes), args.seeds[0]).oracle
    this = Table(args)
    total = sum(size * size for _, size, _ in combined)
    with tqdm(total=total, disable=None, leave=False, bar_format="{desc}{percentage:3.0f}%|{bar}| {elapsed}") as bar:
        for one in combined:
            this.measure(case(args, *one), bar)
    return this.finish()


@dataclass
class Table:
    """Measures cases one after another, and writes those that are finished; `study.main` finds it when it is stopped.

    Parameters
    ----------
    args : argparse.Namespace
    """

    args: argparse.Namespace
    results: list[dict[str, Any]] = field(default_factory=list)
    worlds: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        study.make_folder(self.args.out)
        self.args.study = self
        self.writing = False
        self._stopped = False
        self._began = perf_counter()

    def measure(self, this: Case, bar: Any) -> None:
        """Run all methods on a case and keep their rows; the bar goes on by the case's number of entries."""
        bar.set_description_str(f"{this.label}: ")
        begun, learning = bar.n, this.world.learning
        result = network(this, self.args.until, lambda share: bar.update(begun + this.size**2 * share / 2 - bar.n))
        updates = int(result.user_updates.sum() + result.item_updates.sum())
        own = sequential(this.data.train, learning, updates, this.seed)
        als = AlternatingLeastSquares(
            learning.rank, lam=learning.lam, regularization=learning.regularization, seed=this.seed
        ).fit(this.data.train)
        rows = [
            {
                "method": "network",
                **errors(result.user_profiles, result.item_profiles, this.data),
                "profile_updates": updates,
                "messages_sent": int(result.final["sent"]),
            },
            {
                "method": "sequential",
                **errors(own.user_profiles, own.item_profiles, this.data),
                "profile_updates": updates,
            },
            {"method": "als", **errors(als.user_profiles_, als.item_profiles_, this.data)},
            {"method": "oracle", "truth_rmse": this.oracle},
        ]
        named = {"generator": this.generator, "size": this.size, "seed": this.seed, "lam": learning.lam}
        self.results += [named | row for row in rows]
        self.worlds[this.label] = this.world.describe()
        bar.update(begun + this.size**2 - bar.n)

    def stop(self) -> int:
        """Keep the finished rows after a person stopped the table; returns the exit status."""
        self._stopped = True
        return self.finish()

    def finish(self) -> int:
        """Print the table and write everything to the folder; returns the exit status."""
        self.writing = True
        args, out, seconds = self.args, self.args.out, perf_counter() - self._began
        measured = pd.DataFrame(self.results, columns=COLUMNS).astype(
            {"profile_updates": "Int64", "messages_sent": "Int64"}
        )
        table = summarize(measured, paper=PAPER if (args.rank, args.missing) == (PAPER_RANK, PAPER_MISSING) else {})
        rule = RULE.format(shrinkage=args.shrinkage)
        summary = {
            "rule": rule,
            "rows": table.to_dict("records"),
            "wall_seconds": round(seconds, 1),
            "interrupted": self._stopped,
        }
        files: dict[str, str | bytes] = {
            "errors.csv": measured.to_csv(index=False),
            "summary.json": study.json_text(summary),
            "configuration.json": study.json_text(self._configuration()),
            "errors.png": _figure(table),
        }
        study.write(out, files)
        print(_text(table))  # noqa: T201
        print(f"\n{rule}")  # noqa: T201
        print(f"Written to {out} after {seconds:.0f} s: {', '.join(files)}")  # noqa: T201
        diverged = measured[~np.isfinite(measured["truth_rmse"])]
        if len(diverged):
            print(f"{len(diverged)} of {len(measured)} rows diverged; try a smaller --rate.")  # noqa: T201
        if self._stopped:
            print("Interrupted: the cases that were finished are kept, and no others are in the table.")  # noqa: T201
        return 130 if self._stopped else 0

    def _configuration(self) -> dict[str, Any]:
        return {
            "scenario": "synthetic",
            **study.invocation("synthetic", self.args),
            "versions": package_versions(),
            "worlds": self.worlds,
        }


COLUMNS = ["generator", "size", "seed", "method", "lam", "truth_rmse", "test_rmse", "profile_updates", "messages_sent"]


def network(this: Case, until: float, progress: Callable[[float], None]) -> Result:
    """Learn over the network; `progress` is told the share that is done.

    Raises
    ------
    KeyboardInterrupt
        If a person stopped it.
    """
    result = simulate(
        this.world, until=until, every=until, seed=this.seed, progress=lambda time, _: progress(time / until)
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def sequential(ratings: Ratings, learning: Learning, updates: int, seed: int) -> Sequential:
    """Learn without a network, with so many updates, from the first profiles that a network of this seed has.

    In pieces: each draw is its own, so the bits are those of one long run, and no array is as long as the run.
    """
    made = Sequential(ratings, learning, seed)
    for first in range(0, updates, PIECE):
        made.run(min(PIECE, updates - first))
    return made


PIECE = 1_000_000


def errors(user_profiles: np.ndarray, item_profiles: np.ndarray, data: LowRank) -> dict[str, float]:
    """Error against the truth, not clipped, and on the missing ratings, clipped to the scale."""
    predicted = Predictor(data.train)(user_profiles, item_profiles, data.test.user, data.test.item)
    return {
        "truth_rmse": factorization_rmse(user_profiles, item_profiles, data.truth),
        "test_rmse": rmse(predicted, data.test.value),
    }


def summarize(measured: pd.DataFrame, *, paper: dict[int, float] = PAPER) -> pd.DataFrame:
    """One row for each generator and size: mean and standard deviation over the seeds, for each method.

    Parameters
    ----------
    measured : pandas.DataFrame
        The table of errors.csv: a row for each generator, size, seed and method.
    paper : dict
        The paper's error by size; NaN stands for other sizes.

    Returns
    -------
    pandas.DataFrame
        `generator`, `size`, `n_seeds`, `lam`, `paper`, for each method its mean error and `METHOD_sd`, and
        `messages_sent` of a network on average. A deviation of a single seed is NaN.
    """
    rows = []
    for (generator, size), group in measured.groupby(["generator", "size"], sort=False):
        row: dict[str, Any] = {"generator": generator, "size": size, "n_seeds": int(group["seed"].nunique())}
        row |= {"lam": float(group["lam"].mean()), "paper": paper.get(size, np.nan)}  # type: ignore[call-overload]
        for method in METHODS:
            found = group.loc[group["method"] == method, "truth_rmse"]
            row |= {method: float(found.mean(skipna=False)), f"{method}_sd": float(found.std(skipna=False))}
        rows.append(row | {"messages_sent": round(float(group["messages_sent"].mean()))})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw the error of each method against the size, for one generator; bars are one standard deviation.

    Methods stand a little beside each other, so that none covers another.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of one generator, as `summarize` gives them.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    table = table.sort_values("size")
    for (method, style), aside in zip(STYLES.items(), (0.98, 1.0, 1.02, 1.0), strict=True):
        deviation = None if method == "oracle" or table[f"{method}_sd"].isna().any() else table[f"{method}_sd"]
        ax.errorbar(table["size"] * aside, table[method], deviation, label=METHODS[method], capsize=3, **style)
    if table["paper"].notna().any():
        ax.plot(table["size"], table["paper"], "k*", markersize=11, label="seed paper", zorder=3)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator([float(size) for size in table["size"]]))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(table["size"].min() / 1.2, table["size"].max() * 1.2)
    ax.set_xlabel("Users, and items (m = n)")
    ax.set_ylabel("RMS error against the truth (rating points)")
    ax.set_title(f"{table['generator'].iloc[0]} factors".capitalize(), loc="left", fontsize="medium")
    ax.grid(alpha=0.3)
    return ax


STYLES: dict[str, dict[str, Any]] = {
    "network": {"color": "C0", "marker": "o"},
    "sequential": {"color": "C1", "marker": "s", "linestyle": "--"},
    "als": {"color": "C2", "marker": "^", "linestyle": "-."},
    "oracle": {"color": "0.5", "marker": "_", "markersize": 12, "linestyle": ":"},
}


def _figure(table: pd.DataFrame) -> bytes:
    """The figure as a PNG file's content: a panel for each generator."""
    parts = [part for _, part in table.groupby("generator", sort=False)]
    figure, axes = plt.subplots(
        1, len(parts), figsize=(2.6 + 3.4 * len(parts), 4.4), sharey=True, squeeze=False, layout="constrained"
    )
    for part, ax in zip(parts, axes[0], strict=True):
        draw(part, ax=ax)
    for ax in axes[0][1:]:
        ax.set_ylabel("")
    axes[0][0].set_ylim(bottom=0)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if len(parts) == 1 else 5, frameon=False)
    return study.rendered(figure)


def _text(table: pd.DataFrame) -> str:
    """The table as it is printed: mean (standard deviation) of the seeds."""
    lines = [f"RMS error against the truth, all entries: mean and (standard deviation) of {_counted(table)}"]
    for generator, part in table.groupby("generator", sort=False):
        shown = pd.DataFrame({"m = n": part["size"], "paper": part["paper"].map(lambda value: _number(value, 2))})
        for method, name in METHODS.items():
            spread = [""] * len(part) if method == "oracle" else [_spread(value) for value in part[f"{method}_sd"]]
            shown[name] = [_number(mean, 3) + more for mean, more in zip(part[method], spread, strict=True)]
        shown["lambda"] = part["lam"].map(lambda value: f"{value:.3f}")
        shown["messages"] = part["messages_sent"].map(lambda value: f"{value:,}")
        lines += ["", f"generator {generator}", shown.to_string(index=False)]
    return "\n".join(lines)


def _counted(table: pd.DataFrame) -> str:
    counts = sorted(set(table["n_seeds"]))
    return " or ".join(map(str, counts)) + (" seed" if counts == [1] else " seeds")


def _number(value: float, places: int) -> str:
    return f"{value:.{places}f}" if np.isfinite(value) else "-"


def _spread(value: float) -> str:
    return f" ({value:.3f})" if np.isfinite(value) else ""


if __name__ == "__main__":
    sys.exit(main())
