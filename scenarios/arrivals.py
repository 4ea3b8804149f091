"""Users who join while the network runs, and MovieLens replayed by its own timestamps.

The first seed paper says of users and routers who join: "the learning process does not need to restart". Here a share
of the users joins with all their ratings after a third of the run. Each has a counterpart, another user with equally
many ratings who was there from the start. The error of the newcomers is compared to that of their counterparts, and to
their own in a run of the same seed in which all were there from the start. In a last run all profiles start anew when
they join: what a restart would cost.

With --replay, MovieLens 100K is given rating by rating in the order of its timestamps, compressed to --until seconds,
and nothing is known at the start. Each rating is predicted just before the network may learn from it (prequential
error). Beside it stand a running mean of the item, and the sequential form of section 4 of the paper (batch), which
learns from the first 80% with as many updates as the network made. All three are compared on the last 20%.
"""

import argparse
import math
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from algorithms.ratings import Ratings
from netsim import Arrivals, Probe, Simulation, World, rmse
from netsim.simulation import Script
from scenarios import replay, study
from scenarios.churn import interval, verdict
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Ground,
    Report,
    band,
    ground,
    in_seeds,
    labelled,
    legend,
    logarithmic,
    new_figure,
    one_share,
    parser,
    pivot,
    shares,
    told,
)

__all__ = ["main", "pairs", "settled"]

# Newcomers have caught up when their error stays so near, in rating points.
NEAR = 0.02

START = "all from the start"


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("arrivals", __doc__, until=600.0)
    made.add_argument(
        "--join", type=shares, default="0.1,0.3", metavar="SHARE,...", help="of the users who join later, up to a half"
    )
    made.add_argument(
        "--at",
        type=study.positive,
        default=argparse.SUPPRESS,
        metavar="SECONDS",
        help="when they join (default: a third of --until)",
    )
    made.add_argument(
        "--replay",
        type=Path,
        nargs="?",
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="replay MovieLens 100K instead; PATH is its folder, with u.data in it (default: environment variable "
        "MOVIELENS_100K, else the copy in the cache, which is downloaded from grouplens.org once); learning is then "
        "that of scenarios.movielens, unless it is given",
    )
    made.add_argument(
        "--test", type=one_share, default=0.2, metavar="SHARE", help="of the replayed ratings, the last, to compare on"
    )
    given = list(sys.argv[1:] if argv is None else argv)
    if hasattr(made.parse_known_args(given)[0], "replay"):
        made.set_defaults(**replay.learning_defaults())
    return study.main(made, run, given)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    return replay.run(args) if hasattr(args, "replay") else run_cold_start(args)


# -- cold start ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """How some users join.

    Attributes
    ----------
    label : str
    share : float
        Of the users who are newcomers.
    late : bool
        Whether they join later.
    restart : bool
        Whether all profiles start anew then.
    """

    label: str
    share: float
    late: bool = True
    restart: bool = False


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All ways in which users join, the run in which none does first."""
    most = args.join[-1]
    return [
        Condition(START, most, late=False),
        *(Condition(f"{share:.0%} join later", share) for share in args.join),
        Condition(f"{most:.0%} join later, all restart", most, restart=True),
    ]


def join_time(args: argparse.Namespace) -> float:
    """When the newcomers join, in seconds."""
    at = float(getattr(args, "at", args.until / 3))
    if at >= args.until:
        raise ValueError(f"--at {at:g}: users must join before the end of the run, --until {args.until:g}")
    return at


def pairs(ratings: Ratings, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Newcomers and their counterparts, who have equally many ratings.

    Those of a smaller share are among those of a larger one with the same seed.

    Parameters
    ----------
    ratings : Ratings
    share : float
        Of the users who are newcomers.
    seed : int

    Returns
    -------
    new, old : int64, shape (n_pairs,)
        Numbers of users.

    Raises
    ------
    ValueError
        If there are not so many pairs.
    """
    rng = np.random.default_rng(seed)
    counts = np.diff(ratings.by_user.start)
    found = []
    for count in np.unique(counts):
        alike = rng.permutation(np.flatnonzero(counts == count))
        found += [alike[k : k + 2] for k in range(0, len(alike) - 1, 2)]
    wanted = max(1, round(share * ratings.n_users))
    if len(found) < wanted:
        raise ValueError(
            f"--join {share:g}: {wanted} newcomers need as many pairs of users with equally many ratings, found "
            f"{len(found)} of {ratings.n_users} users; give a smaller share or more --users"
        )
    chosen = np.array([found[k] for k in rng.permutation(len(found))[:wanted].tolist()])
    return chosen[:, 0], chosen[:, 1]


def names(args: argparse.Namespace, share: float) -> tuple[str, str, str]:
    """Columns of the errors of newcomers, of their counterparts, and of all who are no newcomers."""
    number = args.join.index(share)
    return f"new_{number}", f"counterparts_{number}", f"others_{number}"


def measures(args: argparse.Namespace, common: Ground) -> list[Probe]:
    """Errors on the missing ratings of all groups of users.

    Raises
    ------
    ValueError
        If a group has no missing rating.
    """
    made: list[Probe] = []
    test = common.data.test
    for share in args.join:
        new, old = pairs(common.data.train, share, common.seed)
        for name, there in zip(
            names(args, share),
            (np.isin(test.user, new), np.isin(test.user, old), ~np.isin(test.user, new)),
            strict=True,
        ):
            if not there.any():
                raise ValueError(f"--join {share:g}: some group of users has no missing rating; give more --users")
            made.append(rmse(test.select(there), name=name))
    return made


def run_cold_start(args: argparse.Namespace) -> int:
    """Let users join, with each seed and in each way."""
    compared, at = conditions(args), join_time(args)
    this = Comparison("arrivals", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = measures(args, common)
        for each in compared:
            world = common.world
            if each.late:
                new, _ = pairs(common.data.train, each.share, seed)
                ids = [common.data.train.user_ids[number] for number in new.tolist()]
                world = world.replace(arrivals=Arrivals.of_users(common.data.train, ids, at=at))
            scripts: tuple[Script, ...] = (restart(world, at),) if each.restart else ()
            this.measure(each.label, seed, world, probes, scripts=scripts)
    return this.finish()


def restart(world: World, at: float) -> Script:
    """Script by which all nodes lose what they have learned, just after some users have joined."""

    def script(simulation: Simulation) -> Generator[simpy.Event, Any, Any]:
        yield simulation.env.timeout(at * (1 + 1e-9))
        for user in world.ratings.user_ids:
            simulation.reset(user=user)
        for router in world.router_ids:
            simulation.reset(router=router)

    return script


COLUMNS = (
    Column("new", "RMSE, newcomers", 4),
    Column("counterparts", "counterparts", 4),
    Column("difference", "difference", 4, signed=True),
    Column("cost", "above from the start", 4, signed=True),
    Column("caught_up", f"s until within {NEAR}", 0),
    Column("disturbed", "worst rise, others", 4, signed=True),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare newcomers to their counterparts, and to themselves from the start."""
    measured = pd.DataFrame([found(this, each, seed) for each in compared for seed in this.complete])
    at = join_time(this.args)
    heading = (
        f"Error on missing ratings (rating points) after {this.args.until:g} simulated seconds; newcomers join after "
        f"{at:g} s. Mean ± standard deviation of {len(this.complete)} seeds.\n"
        "Counterparts: users with equally many ratings, there from the start. Above from the start: the newcomers "
        f"against themselves, same seed, in the first row's run;\ns until within {NEAR}: simulated seconds after they "
        "join until that stays so near (first row: seconds from the start until near their own last error). "
        "Others: all who are no newcomers."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared, this.args.period), draw(this, compared))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What became of the newcomers with one seed."""
    args, at = this.args, join_time(this.args)
    plain, probes = this.probes(START, seed), this.probes(each.label, seed)
    new, counterparts, others = names(args, each.share)
    time = probes["time"].to_numpy(dtype=float)
    after = time > at * (1 + 1e-9)
    above = (probes[new] - plain[new]).to_numpy(dtype=float)
    rise = (probes[others] - plain[others]).to_numpy(dtype=float)[after]
    if each.late:
        caught_up = settled(time[after], above[after], NEAR) - at
    else:
        own = plain[new].to_numpy(dtype=float)
        caught_up = settled(time, own - own[-1], NEAR)
    last = probes.iloc[-1]
    return {
        "condition": each.label,
        "seed": seed,
        "share": each.share,
        "n_newcomers": len(pairs(ground(args, seed).data.train, each.share, seed)[0]),
        "new": float(last[new]),
        "counterparts": float(last[counterparts]),
        "difference": float(last[new] - last[counterparts]),
        "cost": float(above[-1]),
        "caught_up": caught_up,
        "disturbed": float(rise.max()),
    }


def settled(time: np.ndarray, above: np.ndarray, near: float) -> float:
    """When a difference is `near` or less and stays there, in seconds; NaN where it does not.

    Parameters
    ----------
    time : float64, shape (n,)
        Times of the probes, in seconds.
    above : float64, shape (n,)
    near : float
    """
    far = np.flatnonzero(~(above <= near))
    first = int(far[-1]) + 1 if len(far) else 0
    return float(time[first]) if first < len(time) else math.nan


def answer(measured: pd.DataFrame, compared: Sequence[Condition], period: float) -> str:
    """The answer in words, from the numbers."""
    late, again = compared[-2].label, compared[-1].label
    difference, cost = pivot(measured, late, "difference"), pivot(measured, late, "cost")
    if len(difference) == 0 or len(pivot(measured, START, "difference")) == 0:
        return "The errors of some run are not numbers; try a smaller --rate."
    low, high = interval(difference)
    parts = [
        f"That newcomers reach the error of old users with equally many ratings without a restart {verdict(difference)}"
        f": where {late}, they differ by {told(difference, 4, signed=True)} at the end (95% interval of the mean "
        f"{low:+.4f} to {high:+.4f}; asked: within {NEAR}), the same two groups from the start by "
        f"{told(pivot(measured, START, 'difference'), 4, signed=True)}. Against themselves from the start the "
        f"newcomers differ by {told(cost, 4, signed=True)}."
    ]
    for each in compared[1:-1]:
        times = pivot(measured, each.label, "caught_up")
        parts.append(
            f"Where {each.label}, they are within {NEAR} of that {told(times, 0)} s ({times.mean() / period:.1f} "
            f"periods) after they join{in_seeds(len(times), len(cost))}."
            if len(times)
            else f"Where {each.label}, they never stay within {NEAR} of that."
        )
    fresh = pivot(measured, START, "caught_up")
    parts.append(
        f"From the start they needed {told(fresh, 0)} s to come as near to their last error."
        if len(fresh)
        else "From the start they never stayed so near to their last error."
    )
    disturbed = pivot(measured, late, "disturbed")
    restarted = pivot(measured, again, "disturbed")
    parts.append(
        f"The error of the others rises by {told(disturbed, 3, signed=True)} at most, and with a restart by "
        f"{told(restarted, 3, signed=True)}."
    )
    return " ".join(parts)


def draw(this: Comparison, compared: Sequence[Condition]) -> Figure:
    """Errors of newcomers and their counterparts against time, and how the newcomers catch up."""
    figure, (left, right) = new_figure(2)
    time = this.probes(START, this.complete[0])["time"].to_numpy(dtype=float)[1:]
    after = time[time > join_time(this.args) * (1 + 1e-9)]
    _draw_errors(left, this, compared, time, after)
    _draw_catching_up(right, this, compared, after)
    return figure


def _draw_errors(
    ax: Axes, this: Comparison, compared: Sequence[Condition], time: np.ndarray, after: np.ndarray
) -> None:
    late, again = compared[-2], compared[-1]
    new, counterparts, _ = names(this.args, late.share)
    ax.axvline(join_time(this.args), color="0.6", linewidth=0.8)
    for label, condition, column, at, number, line in (
        ("the newcomers, all from the start", START, new, time, 0, "--"),
        ("their counterparts", late.label, counterparts, time, 5, "-"),
        ("the newcomers", late.label, new, after, 4, "-"),
        ("the newcomers, all restart", again.label, new, after, 1, ":"),
    ):
        band(ax, at, this.curves(condition, column, at), label, color=COLOURS[number], linestyle=line)
    logarithmic(ax, y=True)
    title = f"{late.label.capitalize()}; bands: one deviation over seeds"
    labelled(ax, "Simulated time (s)", "RMSE on missing ratings (rating points)", title)
    legend(ax)


def _draw_catching_up(ax: Axes, this: Comparison, compared: Sequence[Condition], after: np.ndarray) -> None:
    ax.axhspan(-NEAR, NEAR, color="0.9", lw=0, label=f"within {NEAR} of from the start")
    since = (after - join_time(this.args)) / this.args.period
    fewer = len(compared) - 3
    styles = [*((5, 3, 6, 2)[k % 4] for k in range(fewer)), 4, 1]
    lines = [*(("--", "-.")[k % 2] for k in range(fewer)), "-", ":"]
    for each, number, line in zip(compared[1:], styles, lines, strict=True):
        new = names(this.args, each.share)[0]
        above = this.curves(each.label, new, after) - this.curves(START, new, after)
        band(ax, since, above, each.label, color=COLOURS[number], linestyle=line)
    ax.set_yscale("symlog", linthresh=NEAR, subs=(2, 5))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    x, y = "Broadcast periods since they joined", "RMSE above from the start (points)"
    labelled(ax, x, y, "The newcomers against themselves")
    legend(ax)


if __name__ == "__main__":
    sys.exit(main())
