"""MovieLens 100K replayed by its own timestamps: the part of `scenarios.arrivals` behind --replay."""

import argparse
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from algorithms.datasets import movielens_100k
from algorithms.learning import Learning
from algorithms.metrics import rmse
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from netsim import Arrivals, Result
from scenarios import movielens, study
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    band,
    legend,
    new_figure,
    pivot,
    told,
    world,
)
from scenarios.synthetic import sequential

__all__ = ["ALL", "BEFORE", "NEW", "REPLAY", "Parts", "batch_errors", "cut", "learning_defaults", "run"]

REPLAY = "replay"


def learning_defaults() -> dict[str, Any]:
    """The learning of `scenarios.movielens`, as defaults of the arguments."""
    named = argparse.ArgumentParser()
    study.add_learning(named, movielens.DEFAULTS)
    return vars(named.parse_args([]))


def run(args: argparse.Namespace) -> int:
    """Replay MovieLens 100K with each seed; the data are the same, the network's chance differs."""
    ratings = movielens_100k(args.replay)
    # The last one comes just before the end, as what happens at the end itself is left to a further run.
    arrivals = Arrivals.replay(ratings, span=float(np.nextafter(args.until, 0.0)))
    this = Comparison("arrivals", args, report=lambda done: report(done, ratings), n_conditions=1)
    for seed in args.seeds:
        this.measure(REPLAY, seed, world(ratings, args, seed).replace(arrivals=arrivals), [])
    return this.finish()


@dataclass(frozen=True)
class Parts:
    """Ratings cut by time.

    Attributes
    ----------
    train, test : Ratings
    order : int64, shape (n_test,)
        Numbers of the test ratings in the order in which they come.
    """

    train: Ratings
    test: Ratings
    order: np.ndarray


def cut(ratings: Ratings, share: float) -> Parts:
    """Cut off the last ratings by time: a share of them to test on."""
    assert ratings.timestamp is not None
    order = np.argsort(ratings.timestamp, kind="stable")
    first = len(ratings) - max(1, round(share * len(ratings)))
    late = np.zeros(len(ratings), dtype=bool)
    late[order[first:]] = True
    return Parts(ratings.select(~late), ratings.select(late), order[first:])


def batch_errors(parts: Parts, learning: Learning, updates: int, seed: int) -> np.ndarray:
    """Errors of the sequential form on the test ratings, in the order in which they come; float64, shape (n_test,).

    Parameters
    ----------
    parts : Parts
    learning : Learning
    updates : int
        How many it makes on the training ratings.
    seed : int
    """
    made = sequential(parts.train, learning, updates, seed)
    test = parts.test
    errors = Predictor(parts.train)(made.user_profiles, made.item_profiles, test.user, test.item) - test.value
    # The test ratings stand in the order of all ratings.
    place = np.argsort(np.argsort(parts.order))
    in_order: np.ndarray = errors[place]
    return in_order


COLUMNS = (
    Column("network", "network, prequential", 4),
    Column("item_mean", "running item mean", 4),
    Column("batch", "batch sequential", 4),
    Column("share", "ratings (%)", 1),
)
ALL, BEFORE, NEW = "all", "users who had rated before them", "users new among them"


def report(this: Comparison, ratings: Ratings) -> Report:
    """Compare the three on the last ratings: of all users, of those who had rated before, and of new ones."""
    args, parts = this.args, cut(ratings, this.args.test)
    rows = [
        row for seed in this.complete for row in _rows(this.result(REPLAY, seed), parts, study.learning(args), seed)
    ]
    measured = pd.DataFrame(rows).sort_values("condition", key=lambda c: c.map([ALL, BEFORE, NEW].index), kind="stable")
    heading = (
        f"Root mean square error (rating points) on the last {args.test:.0%} of {len(ratings):,} ratings by time; "
        f"mean ± standard deviation of {len(this.complete)} seeds. Compressed to {args.until:g} simulated seconds.\n"
        "Network: each rating predicted just before it comes. Batch: the sequential form, from the first "
        f"{1 - args.test:.0%}; it gives users new to it the mean of the item."
    )
    results = [this.result(REPLAY, seed) for seed in this.complete]
    said = answer(measured, results, args)
    return Report(measured, COLUMNS, heading, said, draw(results, args))


def _rows(result: Result, parts: Parts, learning: Learning, seed: int) -> list[dict[str, Any]]:
    """A row for each group of the last ratings, with one seed."""
    last = result.prequential.iloc[-len(parts.test) :]
    updates = int(result.user_updates.sum() + result.item_updates.sum())
    batch = batch_errors(parts, learning, updates, seed)
    before = np.diff(parts.train.by_user.start)[_users(parts, last)] > 0
    rows = []
    for name, there in ((ALL, np.ones(len(last), dtype=bool)), (BEFORE, before), (NEW, ~before)):
        if there.any():
            group = last[there]
            rows.append(
                {
                    "condition": name,
                    "seed": seed,
                    "network": rmse(group["predicted"].to_numpy(), group["rating"].to_numpy()),
                    "item_mean": rmse(group["item_mean"].to_numpy(), group["rating"].to_numpy()),
                    "batch": float(np.sqrt((batch[there] ** 2).mean())),
                    "share": 100 * float(there.mean()),
                    "updates": updates,
                }
            )
    return rows


def _users(parts: Parts, table: pd.DataFrame) -> np.ndarray:
    """Numbers of the users of a prequential table."""
    number: dict[Hashable, int] = {name: k for k, name in enumerate(parts.train.user_ids)}
    return np.array([number[name] for name in table["user"]])


def answer(measured: pd.DataFrame, results: Sequence[Result], args: argparse.Namespace) -> str:
    """The answer in words, from the numbers."""
    network, item_mean = (
        np.array([result.prequential_rmse(column) for result in results]) for column in ("predicted", "item_mean")
    )
    parts = [
        f"Over all {len(results[0].prequential):,} ratings that came, the network's prequential error is "
        f"{told(network, 4)}, that of the running item mean {told(item_mean, 4)}."
    ]
    for name in (each for each in (BEFORE, NEW) if each in set(measured["condition"])):
        of = {column: pivot(measured, name, column) for column in ("network", "item_mean", "batch")}
        parts.append(
            f"On the last {args.test:.0%}, for {name}, the network is {_against(of['network'], of['item_mean'])} the "
            f"item mean and {_against(of['network'], of['batch'])} the batch form."
        )
    times = results[0].prequential.groupby("user")["time"]
    spans = (times.max() - times.min()) / args.period
    parts.append(
        f"So compressed, half of the users give all their ratings within {spans.median():.2g} broadcast periods, in "
        "which the network cannot learn from them; the time that a user has been there is what counts (figure)."
    )
    return " ".join(parts)


def _against(one: np.ndarray, other: np.ndarray) -> str:
    more = one - other
    return f"{told(np.abs(more), 4)} {'above' if more.mean() > 0 else 'below'}"


def draw(results: Sequence[Result], args: argparse.Namespace) -> Figure:
    """Prequential error as ratings come, and by the time since a user's first rating."""
    figure, (left, right) = new_figure(2)
    for column, label, number, line in (
        ("predicted", "network", 5, "-"),
        ("item_mean", "running item mean", 1, "--"),
    ):
        at, runs = zip(*(_as_they_come(result.prequential, column) for result in results), strict=True)
        band(left, at[0], np.array(runs), label, color=COLOURS[number], linestyle=line)
        periods, by_age = zip(*(_by_age(result.prequential, column, args.period) for result in results), strict=True)
        band(right, periods[0], np.array(by_age), label, color=COLOURS[number], linestyle=line)
    left.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    left.set_xlabel("Ratings that have come")
    left.set_title("Each rating predicted just before it comes", loc="left", fontsize="medium")
    right.set_xscale("log")
    right.set_xlabel("Broadcast periods since the user's first rating")
    right.set_title("The same by the time a user has been there", loc="left", fontsize="medium")
    for ax in (left, right):
        ax.set_ylabel("RMSE (rating points)")
        legend(ax)
    return figure


BINS = 25
#: Edges of the parts by time, in broadcast periods; a part with fewer ratings than the last number is not drawn.
EDGES, FEW = 10.0 ** np.arange(-4.0, 4.1, 0.5), 200


def _as_they_come(table: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Error in parts of equally many ratings; share of the ratings in the middle of each."""
    squared = (table[column] - table["rating"]).to_numpy() ** 2
    pieces = np.array_split(squared, min(BINS, len(squared)))
    return (np.arange(len(pieces)) + 0.5) / len(pieces), np.sqrt([piece.mean() for piece in pieces])


def _by_age(table: pd.DataFrame, column: str, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Error by the time since the user's first rating, in half decades of broadcast periods; middle of each."""
    age = (table["time"] - table.groupby("user")["time"].transform("min")).to_numpy() / period
    part = np.digitize(age, EDGES) - 1
    squared = (table[column] - table["rating"]).to_numpy() ** 2
    shown = [k for k in range(len(EDGES) - 1) if np.sum(part == k) >= min(FEW, len(table) / BINS)]
    middle = np.sqrt(EDGES[:-1] * EDGES[1:])
    return middle[shown], np.sqrt([squared[part == k].mean() for k in shown])
