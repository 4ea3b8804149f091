"""Uplinks and processing that take time: how much load the network bears, and whether to wait or to drop.

The copies of a broadcast leave a node one after another over its uplink; what arrives is processed one message after
another. Users have mobile lines and routers fixed ones: 11 and 45 Mb/s on average, as a public speed ranking had them
in 2020. The small worlds here would not fill a thousandth of that, so both rates are divided by one number, such that
the profiles that a user broadcasts take a given share of his uplink: the load. Processing takes exponential times, of a
mean such that the profiles that arrive keep a node busy for the load's share of the time. Queues have no limit, or hold
as much as a few broadcasts, and what finds them full is dropped.

The target is the error that the network without queues has after a quarter of --until. The wait is worked out by
Little's law: messages under way on average over those that arrive a second, above the same without queues; the
transmission and processing of the message itself is in it.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from algorithms.ratings import Ratings
from netsim import Exponential, rmse
from netsim.messages import PROFILE, message_size
from scenarios import study
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    at_amount,
    ground,
    labelled,
    legend,
    logarithmic,
    new_figure,
    numbers,
    parser,
    pivot,
    points,
    told,
)
from scenarios.latency import reached, target, to_target

__all__ = ["knee", "main", "time_under_way"]

NONE, PLAIN = "no queues", "network without queues"
# Mean uplinks in bytes a second: mobile lines, which users have, and fixed ones, which routers have.
MOBILE, FIXED = 11e6 / 8, 45e6 / 8
# A load is borne when the target takes at most so many times as long.
BORNE = 1.25
WHERE = ("uplinks", "processing")
# Nodes that send to fewer contacts at once keep their uplinks at this load.
EASED = "fewer copies"
EASED_LOAD = 0.8
# A run goes on until the target, up to so many times --until.
PATIENCE = 4.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("bandwidth", __doc__, until=400.0, size=80)
    made.add_argument(
        "--loads",
        type=numbers,
        default="0.25,0.5,0.8,1,1.25,2",
        metavar="LOAD,...",
        help="time that the profiles sent or taken in a period keep a node busy, in periods",
    )
    made.add_argument(
        "--limit",
        type=study.positive,
        default=1.5,
        metavar="BROADCASTS",
        help="what a limited queue holds, in broadcasts of the node with the most contacts",
    )
    return study.main(made, run, argv)


@dataclass(frozen=True)
class Condition:
    """Where messages queue.

    Attributes
    ----------
    label : str
    where : str
        One of `WHERE`, or EASED: uplinks again; empty where there are no queues.
    load : float
    limited : bool
        Whether a full queue drops.
    """

    label: str
    where: str = ""
    load: float = 0.0
    limited: bool = False

    def changes(self, args: argparse.Namespace, ratings: Ratings) -> dict[str, Any]:
        """Arguments of the world."""
        if not self.where:
            return {}
        of_user, of_router = (len(ratings) / n for n in (ratings.n_users, ratings.n_items))
        busy = self.load * args.period
        made: dict[str, Any] = {"queue_limit": math.ceil(args.limit * most_contacts(ratings))} if self.limited else {}
        if self.where == EASED:
            fan_out = {f"{role}_fan_out": self.fan_out(ratings) for role in ("user", "router")}
            return replace(self, where="uplinks").changes(args, ratings) | fan_out
        if self.where == "uplinks":
            rate = uplink(args, ratings) / self.load
            return made | {"user_uplink": rate, "router_uplink": rate * FIXED / MOBILE}
        return made | {
            "user_processing": Exponential(busy / of_user),
            "router_processing": Exponential(busy / of_router),
        }

    def fan_out(self, ratings: Ratings) -> int:
        """To how many contacts, drawn anew each time, a user sends so that his uplink stays at EASED_LOAD."""
        return max(1, math.floor(EASED_LOAD / self.load * len(ratings) / ratings.n_users))


def most_contacts(ratings: Ratings) -> int:
    """Contacts of the node that has most: as many as copies of a profile that it broadcasts."""
    return max(int(np.diff(rows.start).max()) for rows in (ratings.by_user, ratings.by_item))


def uplink(args: argparse.Namespace, ratings: Ratings) -> float:
    """Bytes a second of a user's uplink that his profiles alone fill: load 1."""
    size = int(message_size(PROFILE, args.rank, 0))
    return float(size * len(ratings) / ratings.n_users / args.period)


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All queues, the network without any first."""
    made = [Condition(NONE)]
    for where in WHERE:
        for limited in (False, True):
            for load in args.loads:
                label = f"{where}, load {load:g}, {'with a limit' if limited else 'no limit'}"
                made.append(Condition(label, where, load, limited))
    most = args.loads[-1]
    return [*made, Condition(f"uplinks, load {most:g}, {EASED}", EASED, most)]


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    this = Comparison("bandwidth", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = [rmse(common.data.test)]
        first = this.measure(NONE, seed, common.world, probes)
        if not first.final["delivered"]:
            raise ValueError(f"--until {args.until:g}: no message arrived in that time; give more")
        there, patience = reached(target(this, NONE, seed, PLAIN)), PATIENCE * args.until
        enough = _either(there, patience)
        for each in compared[1:]:
            world = common.world.replace(**each.changes(args, common.data.train))
            this.measure(each.label, seed, world, probes, enough=enough)
    return this.finish()


def _either(there: Callable[[pd.DataFrame], bool], patience: float) -> Callable[[pd.DataFrame], bool]:
    """What `Comparison.measure` calls enough: the target is reached, or so much time is over."""
    return lambda probes: there(probes) or float(probes["time"].iloc[-1]) >= patience


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("to_target", "to target (s)", 0),
    Column("slowdown", "(x no queues)", 2),
    Column("test_rmse", "RMSE at equal time", 4),
    Column("cost", "cost (points)", 4, signed=True),
    Column("wait", "wait (s)", 2),
    Column("dropped", "dropped (%)", 1),
    Column("arrived", "arrived (%)", 1),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare the time to the target, the errors after equal time, and waits."""
    args = this.args
    measured = pd.DataFrame([found(this, each, seed) for each in compared for seed in this.complete])
    goals = np.array([target(this, NONE, seed, PLAIN) for seed in this.complete])
    ratings = ground(args, this.complete[0]).data.train
    rate = uplink(args, ratings)
    heading = (
        f"Simulated time until the error on missing ratings is at the target, {told(goals)} points; mean ± standard "
        f"deviation of {len(this.complete)} seeds.\nAt equal time: after {args.until:g} s, cost above no queues, same "
        "seed. Wait: in queues, of what arrives in the second half of that time.\nLoad 1: a user's uplink has "
        f"{rate:,.0f} bytes/s, 1/{MOBILE / rate:,.0f} of {MOBILE * 8e-6:g} Mb/s, a router's "
        f"{FIXED / MOBILE:.1f} times that; or a message takes "
        f"{1e3 * args.period * ratings.n_users / len(ratings):.0f} ms to process. A limited queue holds "
        f"{most_waiting(args, ratings)} messages.\nFewer copies: to {compared[-1].fan_out(ratings)} contacts, drawn "
        f"anew each time, so that the load is {EASED_LOAD:g} at most; no limit."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared), draw(measured, compared))


def most_waiting(args: argparse.Namespace, ratings: Ratings) -> int:
    """How many messages a limited queue holds."""
    return int(Condition("", WHERE[0], 1.0, limited=True).changes(args, ratings)["queue_limit"])


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What a queue did with one seed."""
    until, probes = this.args.until, this.probes(each.label, seed)
    path = time_under_way(this.probes(NONE, seed), until / 2, until)
    # What is dropped on arrival was under way for as long as without queues; at an uplink it never sets out.
    on_arrival = path if each.where == "processing" else 0.0
    sent, dropped, arrived = (at_amount(probes, name, ("time",), until) for name in ("sent", "lost_queue", "delivered"))
    return {
        "condition": each.label,
        "seed": seed,
        "where": each.where,
        "load": each.load,
        "limited": each.limited,
        **to_target(this, NONE, each.label, seed, target(this, NONE, seed, PLAIN)),
        "wait": max(0.0, time_under_way(probes, until / 2, until, dropped_after=on_arrival) - path),
        "dropped": 100 * dropped / sent,
        "arrived": 100 * arrived / sent,
    }


def time_under_way(probes: pd.DataFrame, begin: float, end: float, *, dropped_after: float = 0.0) -> float:
    """Mean seconds from sending to the end of processing, of messages that arrive, by Little's law.

    Where a queue grows without end, it is the time that what is sent then will take.

    Parameters
    ----------
    probes : pandas.DataFrame
        With columns `time`, `in_flight`, `delivered` and `lost_queue`.
    begin, end : float
        Simulated seconds between which it is taken.
    dropped_after : float
        Seconds that messages which are dropped had been under way.
    """
    inside = probes[(probes["time"] > begin) & (probes["time"] <= end * (1 + 1e-9))]
    delivered, dropped = (
        at_amount(probes, name, ("time",), end) - at_amount(probes, name, ("time",), begin)
        for name in ("delivered", "lost_queue")
    )
    if not delivered > 0:
        return math.nan
    under_way = float(inside["in_flight"].mean()) * (end - begin)
    return (under_way - dropped * dropped_after) / delivered


def knee(measured: pd.DataFrame, where: str, *, limited: bool = False) -> tuple[float, float]:
    """The highest load that is borne, and the lowest that is not; NaN where there is none.

    Parameters
    ----------
    measured : pandas.DataFrame
        As `report` gives it.
    where : str
        One of `WHERE`.
    limited : bool
    """
    here = measured[(measured["where"] == where) & (measured["limited"] == limited)]
    most = math.nan
    for load, slowdowns in here.groupby("load")["slowdown"]:
        if not (slowdowns.notna().all() and slowdowns.mean() <= BORNE):
            return most, float(load)  # type: ignore[arg-type]
        most = float(load)  # type: ignore[arg-type]
    return most, math.nan


def answer(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """The answer in words, from the numbers."""
    parts = []
    for where in WHERE:
        borne, not_borne = knee(measured, where)
        parts.append(f"{where.capitalize()}: {_knee(borne, not_borne)}{_waited(measured, compared, where, borne)}.")
    for where in WHERE:
        loads = [each.load for each in compared if each.where == where]
        label = {each.limited: each.label for each in compared if each.where == where and each.load == max(loads)}
        slow = {limited: pivot(measured, name, "slowdown") for limited, name in label.items()}
        waits, dropped = pivot(measured, label[False], "wait"), pivot(measured, label[True], "dropped")
        parts.append(
            f"At load {max(loads):g} of {where} without a limit messages wait {told(waits, 0)} s and the target takes "
            f"{_times(slow[False])}; with a limit {told(dropped, 0)}% are dropped and it takes {_times(slow[True])}."
        )
    eased = [pivot(measured, compared[-1].label, name) for name in ("slowdown", "wait")]
    parts.append(
        f"With {EASED} instead, it takes {_times(eased[0])}, and messages wait {told(eased[1], 1)} s. What is dropped "
        "at an uplink is always the end of a broadcast, so the same contacts go without."
    )
    return " ".join(parts)


def _knee(borne: float, not_borne: float) -> str:
    if math.isnan(borne):
        return f"already load {not_borne:g} takes more than {BORNE} times as long to the target"
    if math.isnan(not_borne):
        return f"all loads up to {borne:g} take at most {BORNE} times as long to the target"
    return (
        f"up to load {borne:g} the target takes at most {BORNE} times as long, from {not_borne:g} on more: the knee is "
        "between"
    )


def _waited(measured: pd.DataFrame, compared: Sequence[Condition], where: str, load: float) -> str:
    label = [each.label for each in compared if each.where == where and each.load == load and not each.limited]
    if not label:
        return ""
    return f"; at load {load:g} messages wait {told(pivot(measured, label[0], 'wait'), 2)} s"


def _times(slowdowns: np.ndarray) -> str:
    return f"{told(slowdowns, 2)} times as long" if len(slowdowns) else "longer than was waited for"


# -- the figure ----------------------------------------------------------------------------------------------------

EASED_STYLE = {"color": COLOURS[3], "marker": "D", "linestyle": ""}
CURVES = {
    ("uplinks", False): (5, "o", "-"),
    ("uplinks", True): (2, "s", "--"),
    ("processing", False): (4, "^", "-"),
    ("processing", True): (1, "v", "--"),
}


def draw(measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Time to the target, waits and drops against the load."""
    figure, panels = new_figure(3)
    for ax, column, label, title in zip(
        panels,
        ("slowdown", "wait", "dropped"),
        ("Time to the target (times no queues)", "Mean wait (s)", "Messages dropped (%)"),
        ("Time to the target; missing: not reached", "Wait and service; bars: one deviation", "Dropped by full queues"),
        strict=True,
    ):
        _draw_against_load(ax, measured, compared, column)
        logarithmic(ax, x=True, y=column == "slowdown" and bool(measured["slowdown"].notna().any()))
        labelled(ax, "Load (busy time per period)", label, title)
    panels[1].set_yscale("symlog", linthresh=0.1)
    panels[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[1].set_ylim(0, max(1.0, 2 * float(measured["wait"].max())))
    legend(panels[0], loc="upper left")
    return figure


def _draw_against_load(ax: Axes, measured: pd.DataFrame, compared: Sequence[Condition], column: str) -> None:
    ax.axvline(1.0, color="0.6", linewidth=0.8)
    for number, ((where, limited), (colour, marker, line)) in enumerate(CURVES.items()):
        here = [each for each in compared if (each.where, each.limited) == (where, limited)]
        aside = 1.0 + 0.02 * (number - 1.5)  # beside each other, so that no bar covers another
        points(
            ax,
            [each.load * aside for each in here],
            [pivot(measured, each.label, column) for each in here],
            f"{where}, {'with a limit' if limited else 'no limit'}",
            color=COLOURS[colour],
            marker=marker,
            linestyle=line,
        )
    last = compared[-1]
    points(ax, [last.load * 1.06], [pivot(measured, last.label, column)], f"uplinks, {EASED}", **EASED_STYLE)


if __name__ == "__main__":
    sys.exit(main())
