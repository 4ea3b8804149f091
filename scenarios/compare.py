"""What decentralization costs: the network beside centralized solvers that see all ratings, on one split.

The network and each solver of --methods learn the same training ratings and are tested on the same others. `als` and
`sgd` have the network's model and objective, so what they are better by is the cost of being decentralized; the other
solvers have other models. Soft-Impute and RDMC get the lambda with the least error on held-out training ratings.

By default the ratings are synthetic: no download, about 15 seconds on one core. With --movielens or --data they are a
fold of MovieLens 100K, with the settings of `scenarios.movielens`, in about two minutes, most of it RDMC.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from algorithms.learning import Learning
from algorithms.metrics import mae as mae_of
from algorithms.metrics import rmse as rmse_of
from algorithms.ranking import Ranking, relevant_from
from algorithms.ratings import Ratings
from algorithms.solvers import (
    RDMC,
    AlternatingLeastSquares,
    Baseline,
    ConvergenceWarning,
    LambdaSelection,
    RepeatedHoldout,
    SoftImpute,
    StochasticGradientDescent,
)
from algorithms.solvers.base import Solver
from algorithms.synthetic import low_rank
from netsim import LogNormal, Result, World, mae, plots, rmse, simulate
from scenarios import comparison, movielens, study

__all__ = ["METHODS", "NETWORK", "Beside", "Method", "Row", "main", "measure", "methods", "references"]

#: What the row of the network is called.
NETWORK = "network"

# Longest profile of Soft-Impute by ALS, which has to be told one.
MAX_RANK = 50

# Fractions of the largest singular value that Soft-Impute and RDMC choose from: those of the paper's grid, thinned.
LAMBDAS = {"synthetic": "0.02,0.05,0.1,0.2,0.4", "movielens": "0.05,0.1,0.2,0.4"}

# A fit by SGD ends with the first epoch that does not lower the objective: at a high rate, noise does that too early.
# Of the rates 0.01, 0.02 and 0.05 with the network's schedule, these end with the lowest objective on training ratings.
SGD_RATES = {"synthetic": 0.01, "movielens": 0.05}

DELAY = LogNormal(median=0.07, sigma=0.8)

Profiles = tuple[np.ndarray, np.ndarray]


# -- methods -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A solver as this scenario runs it.

    Parameters
    ----------
    title : str
        As the figure calls it.
    make : function of the parsed arguments
        A solver that is not fitted.
    profiles : function, optional
        Profiles whose products are the fitted solver's predictions, for ranking. None where predictions are
        categories or the same for all items: ties, and not the method, would decide the lists.
    """

    title: str
    make: Callable[[argparse.Namespace], Solver]
    profiles: Callable[[Any], Profiles] | None = None


def _als(args: argparse.Namespace) -> Solver:
    return AlternatingLeastSquares(args.rank, lam=args.lam, regularization=args.regularization, seed=args.seed)


def _sgd(args: argparse.Namespace) -> Solver:
    learning = study.learning(args)
    return StochasticGradientDescent(
        args.rank,
        lam=args.lam,
        regularization=args.regularization,
        rate=args.sgd_rate,
        schedule=learning.schedule,
        seed=args.seed,
    )


def _selected(solver: Solver, args: argparse.Namespace) -> Solver:
    """The solver with its lambda chosen, or as it is where there is one only."""
    if len(args.lambdas) == 1:
        return solver
    return LambdaSelection(solver, splits=RepeatedHoldout(args.replications), seed=args.seed)


def _factorized(solver: Any) -> Profiles:
    return solver.user_profiles_, solver.item_profiles_


def _low_rank(solver: Any) -> Profiles:
    """Profiles of Soft-Impute with an entry more, which adds the column's mean."""
    users, items = solver.path_[0].profiles
    return np.column_stack([users, np.ones(len(users))]), np.column_stack([items, solver.centres_])


def _biased(solver: Any) -> Profiles:
    users, items = solver.mean_ + solver.user_bias_, solver.item_bias_
    return np.column_stack([users, np.ones(len(users))]), np.column_stack([np.ones(len(items)), items])


#: The solvers by the names that --methods takes.
METHODS: dict[str, Method] = {
    "als": Method("ALS, same objective", _als, _factorized),
    "sgd": Method("SGD, same objective", _sgd, _factorized),
    "soft_impute_svd": Method("Soft-Impute, SVD", lambda args: _selected(SoftImpute(args.lambdas), args), _low_rank),
    "soft_impute_als": Method(
        "Soft-Impute, ALS",
        lambda args: _selected(SoftImpute(args.lambdas, algorithm="als", max_rank=MAX_RANK), args),
        _low_rank,
    ),
    "rdmc": Method("RDMC", lambda args: _selected(RDMC(args.lambdas), args)),
    "biased_mean": Method("Biased mean", lambda _: Baseline("biased_mean"), _biased),
    "item_mean": Method("Item mean", lambda _: Baseline("item_mean"), _biased),
    "user_mean": Method("User mean", lambda _: Baseline("user_mean")),
    "global_mean": Method("Global mean", lambda _: Baseline("global_mean")),
    "median": Method("Item median", lambda _: Baseline("median")),
    "discretized_median": Method(
        "Item median, discretized", lambda args: Baseline("discretized_median", seed=args.seed)
    ),
    "mode": Method("Item mode", lambda args: Baseline("mode", seed=args.seed)),
}
BASELINES = ("biased_mean", "item_mean", "user_mean", "global_mean", "median", "discretized_median", "mode")
DEFAULT_METHODS = "als,sgd,soft_impute_svd,soft_impute_als,rdmc,biased_mean,item_mean,median"


@dataclass(frozen=True)
class Row:
    """What was measured of one method.

    Attributes
    ----------
    method : str
        `network`, or a name of `METHODS`.
    test_rmse, test_mae : float
        Of predictions clipped to the rating scale, in rating points.
    recall_at_10, ndcg_at_10 : float
        As `algorithms.ranking.Ranking` defines them; NaN where a method does not rank.
    wall_seconds : float
        Of the fit, the choice of lambda included; of the network, its run with its measurements.
    iterations : float
        Sweeps, epochs or iterations of the last fit; of the network, updates over twice the training ratings, so that
        one moves both sides of a rating once on average, as an epoch does. 0 where there is nothing to iterate.
    converged : bool
        Whether the last fit said that it had converged. True for the network, which does not end by itself.
    lam : float
        Lambda; NaN where there is none.
    messages, bytes : int
        Sent over the network. 0 for solvers, which need all ratings on one machine before they begin.
    """

    method: str
    test_rmse: float
    test_mae: float
    recall_at_10: float
    ndcg_at_10: float
    wall_seconds: float
    iterations: float
    converged: bool
    lam: float
    messages: int = 0
    bytes: int = 0


def measure(name: str, train: Ratings, test: Ratings, args: argparse.Namespace) -> Row:
    """Fit a solver of `METHODS`, and measure it.

    Parameters
    ----------
    name : str
    train, test : Ratings
        With the same users and items.
    args : argparse.Namespace
        As the parser of this scenario gives them.
    """
    solver: Any = METHODS[name].make(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        began = perf_counter()
        solver.fit(train)
        seconds = perf_counter() - began
    last = getattr(solver, "solver_", solver)
    predicted = np.clip(solver.predict(test.user, test.item), train.scale.low, train.scale.high)
    profiles = METHODS[name].profiles
    recall, ndcg = (math.nan, math.nan) if profiles is None else _ranked(train, test, profiles(last))
    return Row(
        name,
        rmse_of(predicted, test.value),
        mae_of(predicted, test.value),
        recall,
        ndcg,
        seconds,
        float(np.sum(getattr(last, "n_iter_", 0))),
        bool(np.all(getattr(last, "converged_", True))),
        _lambda(last),
    )


def _lambda(solver: Any) -> float:
    if hasattr(solver, "lambdas_"):
        return float(solver.lambdas_[0])
    return float(getattr(solver, "lam", math.nan))


def _ranked(train: Ratings, test: Ratings, profiles: Profiles) -> tuple[float, float]:
    """Recall and NDCG of ten items; NaN where no test rating is high enough to be relevant."""
    if not np.any(test.value >= relevant_from(train.scale)):
        return math.nan, math.nan
    measured = Ranking(train, test)(*profiles)
    return measured.recall, measured.ndcg


def _of_network(result: Result, train: Ratings, test: Ratings) -> Row:
    final = result.final
    recall, ndcg = _ranked(train, test, (result.user_profiles, result.item_profiles))
    return Row(
        NETWORK,
        float(final["test_rmse"]),
        float(final["test_mae"]),
        recall,
        ndcg,
        result.wall_seconds,
        (final["user_updates"] + final["item_updates"]) / (2 * len(train)),
        True,
        float(result.configuration["learning"]["lam"]),
        int(final["sent"]),
        int(final["bytes_sent"]),
    )


def references(table: pd.DataFrame) -> dict[str, float]:
    """Lines of reference for a figure of convergence: label and test RMSE, three at most.

    They are ALS on the same objective, the best of the other solvers and the best baseline, of those that were run.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of `Row`, as in `table.csv`.
    """
    solved = table[table["method"] != NETWORK].sort_values("test_rmse", kind="stable")
    simple, same = solved["method"].isin(BASELINES), solved["method"] == "als"
    picked = [*solved[same]["method"], *solved[~simple & ~same]["method"][:1], *solved[simple]["method"][:1]]
    errors = solved.set_index("method")["test_rmse"]
    return {METHODS[name].title: round(float(errors[name]), 4) for name in picked}


# -- the scenario --------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    given = list(sys.argv[1:] if argv is None else argv)
    return study.main(_parser(real=_names_movielens(given)), run, given)


def _names_movielens(given: Sequence[str]) -> bool:
    """Whether the arguments ask for MovieLens 100K, which decides the defaults of the others."""
    return any(each == "--movielens" or each.split("=")[0] == "--data" for each in given)


def _parser(*, real: bool) -> argparse.ArgumentParser:
    made = study.parser("compare", __doc__, until=600.0, out="out/compare")
    made.add_argument(
        "--movielens", action="store_true", help="MovieLens 100K, as scenarios.movielens has it; other defaults"
    )
    movielens.add_data(made)
    made.add_argument("--fold", type=int, choices=range(1, 6), default=1, help="official fold of MovieLens 100K")
    made.add_argument("--users", type=study.at_least(4), default=200, metavar="M", help="users of synthetic ratings")
    made.add_argument("--items", type=study.at_least(4), default=200, metavar="N", help="items of synthetic ratings")
    made.add_argument(
        "--methods",
        type=methods,
        default=DEFAULT_METHODS,
        metavar="NAME,...",
        help=f"solvers beside the network, of {', '.join(METHODS)}",
    )
    made.add_argument(
        "--lambdas",
        type=comparison.numbers,
        default=LAMBDAS["movielens" if real else "synthetic"],
        metavar="L,...",
        help="of Soft-Impute and RDMC, as fractions of the largest singular value; of several, each method takes the "
        "one with the least error on held-out training ratings",
    )
    made.add_argument(
        "--replications", type=study.at_least(1), default=2, metavar="N", help="holdouts that choose it, of 10%% each"
    )
    made.add_argument(
        "--sgd-rate",
        type=study.positive,
        default=SGD_RATES["movielens" if real else "synthetic"],
        metavar="RATE",
        help="learning rate of sgd, which has the schedule of the network",
    )
    network = made.add_argument_group("network")
    study.add_network(network, places=400 if real else 100)
    network.add_argument(
        "--loss", type=study.share, default=0.01, metavar="SHARE", help="messages dropped by the network"
    )
    study.add_learning(made, movielens.DEFAULTS if real else comparison.DEFAULTS)
    return made


def methods(text: str) -> list[str]:
    """Argument type: distinct names of `METHODS`, separated by commas."""
    return study.names(text, METHODS)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    train, test, where = _ratings(args)
    this = Beside("compare", args, where=where)
    learning = study.learning(args)
    _compile(args, learning)
    world = _world(train, args, learning)
    result = this.run(NETWORK, world, [rmse(test), mae(test)])
    this.rows.append(_of_network(result, train, test))
    for name in args.methods:
        this.rows.append(measure(name, train, test, args))
    return this.finish()


def _ratings(args: argparse.Namespace) -> tuple[Ratings, Ratings, str]:
    """Training and test ratings, and what they are, in words."""
    if args.movielens or hasattr(args, "data"):
        return *movielens.load(args).split(fold=args.fold), f"MovieLens 100K, fold {args.fold}"
    data = low_rank(args.users, args.items, rank=4, missing=comparison.MISSING, seed=args.seed, generator="gaussian")
    size = f"{args.users} x {args.items}"
    return data.train, data.test, f"Synthetic ratings of rank 4, {size}, half of them missing, seed {args.seed}"


def _world(train: Ratings, args: argparse.Namespace, learning: Learning) -> World:
    return study.world(train, args, seed=args.seed, delay=DELAY, loss=args.loss, learning=learning)


def _compile(args: argparse.Namespace, learning: Learning) -> None:
    """Run everything once on a few ratings, so that no time below has compilation in it."""
    small = low_rank(12, 12, rank=2, missing=0.3, seed=0, generator="gaussian")
    simulate(_world(small.train, args, learning), until=args.period, seed=0, probes=[rmse(small.test), mae(small.test)])
    for name in args.methods:
        measure(name, small.train, small.test, args)


@dataclass
class Beside(study.Study):
    """Runs the network, keeps the rows of all methods, and writes table, figure and answer.

    Parameters
    ----------
    name, args
        As for `Study`.
    where : str
        What the ratings are.
    rows : list of Row
        The network's first.
    """

    where: str = field(kw_only=True)
    rows: list[Row] = field(default_factory=list)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each method that was measured."""
        return pd.DataFrame([asdict(row) for row in self.rows], columns=list(Row.__dataclass_fields__))

    def finish(self) -> int:
        """Print table and answer, and write everything to the folder; returns the exit status."""
        self.writing = True
        out: Path = self.args.out
        table = self.table
        answer = _answer(self.rows, len(next(iter(self.results.values())).disclosed)) if self.rows else None
        summary: dict[str, Any] = {"interrupted": self._stopped, "ratings": self.where, "answer": answer}
        summary["rows"] = table.to_dict("records")
        self.references = references(table) if len(table) > 1 else {}
        files: dict[str, str | bytes] = {
            "table.csv": table.to_csv(index=False),
            "summary.json": study.json_text(summary),
            "probes.csv": self._probe_table().to_csv(index=False),
            "configuration.json": study.json_text(self._configuration()),
        }
        if self.rows and len(self.results[NETWORK].probes) > 1:
            files["compare.png"] = self._figure()
        else:
            (out / "compare.png").unlink(missing_ok=True)  # that of an earlier run
        study.write(out, files)
        self._remove_earlier_runs()
        self._tell(answer, list(files))
        return 130 if self._stopped else 0

    def _tell(self, answer: str | None, files: Sequence[str]) -> None:
        if answer is not None:
            print(f"{self.where}\n\n{_text(self.rows)}\n\n{answer}\n")  # noqa: T201
        print(f"Written to {self.args.out}: {', '.join(files)}, {study.RUNS}/")  # noqa: T201
        if self.rows and not math.isfinite(self.rows[0].test_rmse):
            print("The network diverged: its errors are not numbers any more; try a smaller --rate.")  # noqa: T201
        if self._stopped:
            print(f"Interrupted: {len(self.rows)} of {1 + len(self.args.methods)} methods were measured.")  # noqa: T201

    def _figure(self) -> bytes:
        figure, (left, right) = comparison.new_figure(2)
        plots.convergence(self.results[NETWORK], metrics=["test_rmse"], references=self.references, log=True, ax=left)
        left.set_title(self.where.split(",")[0], loc="left", fontsize="medium")
        _draw_errors(right, self.rows)
        return study.rendered(figure)


# -- table, answer, figure -----------------------------------------------------------------------------------------


def _text(rows: Sequence[Row]) -> str:
    """The table as it is printed, with a star where a fit stopped before it had converged."""
    titles = ("method", "RMSE", "MAE", "recall@10", "NDCG@10", "lambda", "wall s", "iterations", "messages", "bytes")
    shown = [list(titles)]
    for row in rows:
        errors = [_number(value, 4) for value in (row.test_rmse, row.test_mae, row.recall_at_10, row.ndcg_at_10)]
        iterations = f"{row.iterations:,.0f}" + ("" if row.converged else "*") if row.iterations else "-"
        times = ["-" if math.isnan(row.lam) else f"{row.lam:g}", f"{row.wall_seconds:.2f}", iterations]
        shown.append([row.method, *errors, *times, f"{row.messages:,}", f"{row.bytes:,}"])
    note = "" if all(row.converged for row in rows) else "\n* stopped before it had converged"
    return study.aligned(shown) + note


def _number(value: float, places: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{places}f}"


def _answer(rows: Sequence[Row], n_ratings: int) -> str:
    """The scenario's answer, worked out from the numbers."""
    by_name = {row.method: row for row in rows}
    network = by_name.pop(NETWORK)
    told = [
        f"The network ends with a test RMSE of {network.test_rmse:.4f} after {network.messages:,} messages, "
        f"{network.messages / n_ratings:,.0f} for each training rating, and {network.bytes / 1e6:,.1f} MB."
    ]
    same = by_name.get("als")
    if same is not None:
        told.append(
            f"ALS, which minimizes the same objective on one machine, has {same.test_rmse:.4f}; the network's error "
            f"is {_gap(network, same)}, which is what decentralization costs here."
        )
    others = [row for row in by_name.values() if row.method not in ("als", *BASELINES)]
    simple = [row for row in by_name.values() if row.method in BASELINES]
    for kind, found in (("of the other solvers", others), ("baseline", simple)):
        if found:
            best = min(found, key=lambda row: row.test_rmse)
            told.append(f"The best {kind}, {best.method}, has {best.test_rmse:.4f}, {_gap(best, network)}.")
    told.append("The solvers send nothing, but first need all ratings in one place.")
    return " ".join(told)


def _gap(row: Row, other: Row) -> str:
    """By how much a row's error is above or below another one's."""
    gap = row.test_rmse - other.test_rmse
    return f"{abs(gap):.4f} ({100 * abs(gap) / other.test_rmse:.1f}%) {'higher' if gap >= 0 else 'lower'}"


def _draw_errors(ax: Axes, rows: Sequence[Row]) -> None:
    """Draw RMSE and MAE of each method as points, the lowest RMSE on top; a line through the network's."""
    ordered = sorted(rows, key=lambda row: row.test_rmse, reverse=True)
    at = np.arange(len(ordered))
    for column, marker, colour in (("test_rmse", "o", comparison.COLOURS[5]), ("test_mae", "s", comparison.COLOURS[1])):
        values = [getattr(row, column) for row in ordered]
        name = column.removeprefix("test_").upper()
        ax.plot(values, at, marker, color=colour, markersize=6, label=name, linestyle="none")
    ax.axvline(rows[0].test_rmse, color="0.35", linestyle="--", linewidth=1.0)
    titles = {NETWORK: "The network"} | {name: method.title for name, method in METHODS.items()}
    ax.set_yticks(at, [titles[row.method] for row in ordered])
    ax.set_xlabel("Test error (rating points)")
    comparison.legend(ax)


if __name__ == "__main__":
    sys.exit(main())
