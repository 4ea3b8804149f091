"""How slow the network may be.

The mean one-way delay goes from a hundredth of the broadcast period to ten periods (the gossip-learning framework of
Ormandi and Hegedus stresses its protocols with one to five). It is the same for all messages, or drawn for each message
(jitter, lognormal with sigma 0.82: a reading of Saroiu's measurements, p2p-hackers list, 2006), or drawn with the same
law once for each pair of nodes. Jitter reorders, and stamps discard what was overtaken; rows with stamps off use it.
Further rows hold back 30% of the messages for three periods on average, and set the nodes into the twelve regions of a
cloud provider's published table, at their measured delays.

The target is the error that the fastest network has after a quarter of --until. Staleness is the age of the profiles
that nodes took last: half a period where the network is fast.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from netsim import Exponential, LogNormal, Reordering, Underlay, World, region_topology, rmse
from netsim.probes import staleness
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
    paired,
    parser,
    pivot,
    points,
    told,
)

__all__ = ["crossing", "main", "reached", "target", "to_target"]

FASTEST = "fastest network"
SIGMA = 0.82
HELD_BACK, HELD_PERIODS = 0.3, 3.0
STALENESS = ("user_staleness_q50", "router_staleness_q50")


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("latency", __doc__, until=400.0, size=120)
    made.add_argument(
        "--delays", type=numbers, default="0.01,0.1,1,3,10", metavar="PERIODS,...", help="mean one-way delays"
    )
    made.add_argument(
        "--target",
        type=study.positive,
        default=argparse.SUPPRESS,
        metavar="RMSE",
        help="error to reach (default: that of the fastest network after a quarter of --until, for each seed)",
    )
    return study.main(made, run, argv)


@dataclass(frozen=True)
class Condition:
    """A network of some slowness.

    Attributes
    ----------
    label : str
    kind : str
        What the delay is the same for.
    periods : float
        Mean one-way delay in broadcast periods.
    changes : dict
        Arguments of the world.
    """

    label: str
    kind: str
    periods: float
    changes: dict[str, Any]


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All networks, the fastest with a constant delay first."""
    made = [
        Condition(_named(delay, kind), kind, delay, _delays(kind, delay * args.period))
        for kind in ("constant", "jitter", "per pair")
        for delay in args.delays
    ]
    for delay in (each for each in args.delays if each >= 1):
        changes = _delays("jitter", delay * args.period) | {"discard_stale": False}
        made.append(Condition(f"{_named(delay, 'jitter')}, stamps off", "jitter, stamps off", delay, changes))
    held = Reordering(HELD_BACK, Exponential(HELD_PERIODS * args.period))
    fast = args.delays[0]
    for stamps, keep in (("", True), (", stamps off", False)):
        changes = _delays("constant", fast * args.period) | {"reordering": held, "discard_stale": keep}
        mean = fast + HELD_BACK * HELD_PERIODS
        made.append(Condition(f"{HELD_BACK:.0%} held back{stamps}", f"held back{stamps}", mean, changes))
    world = Underlay.from_graph(region_topology())
    mean = float(world.path_latency().mean()) / args.period
    made.append(Condition("regions of the world", "regions", mean, {"topology": world}))
    return made


def _named(delay: float, kind: str) -> str:
    return f"{delay:g} period{'' if delay == 1 else 's'}, {kind}"


def _delays(kind: str, mean: float) -> dict[str, Any]:
    """Arguments of the world for a mean one-way delay in seconds."""
    if kind == "constant":
        return {"delay": mean}
    return {"delay" if kind == "jitter" else "pair_delay": LogNormal(mean / math.exp(SIGMA**2 / 2), SIGMA)}


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    this = Comparison("latency", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        # Nothing but the delay that is studied: all at one place, and nothing is lost.
        plain = World(
            common.data.train,
            user_broadcast=args.period,
            router_broadcast=args.period,
            learning=common.world.learning,
        )
        probes = [rmse(common.data.test), staleness((0.5,))]
        this.measure(compared[0].label, seed, plain.replace(**compared[0].changes), probes)
        enough = reached(target(this, compared[0].label, seed, FASTEST))
        for each in compared[1:]:
            this.measure(each.label, seed, plain.replace(**each.changes), probes, enough=enough)
    return this.finish()


def reached(goal: float) -> Callable[[pd.DataFrame], bool]:
    """What `Comparison.measure` calls enough: the error has been at a goal."""
    return lambda probes: bool(probes["test_rmse"].min() <= goal)


def target(this: Comparison, first: str, seed: int, named: str) -> float:
    """The error to reach with a seed, in rating points: as given, or that of the first condition after a quarter.

    Raises
    ------
    ValueError
        If its error, called as `named`, is not a number then.
    """
    given: float | None = getattr(this.args, "target", None)
    if given is not None:
        return given
    goal = at_amount(this.probes(first, seed), "test_rmse", ("time",), this.args.until / 4)
    if not math.isfinite(goal):
        raise ValueError(f"the error of the {named} diverged with seed {seed}; try a smaller --rate")
    return goal


def to_target(this: Comparison, first: str, condition: str, seed: int, goal: float) -> dict[str, float]:
    """When a condition was at the target, and what its error costs above that of the first after equal time."""
    plain, probes = this.probes(first, seed), this.probes(condition, seed)
    error, plain_error = (at_amount(table, "test_rmse", ("time",), this.args.until) for table in (probes, plain))
    return {
        "target": goal,
        "to_target": crossing(probes, goal),
        "slowdown": crossing(probes, goal) / crossing(plain, goal),
        "test_rmse": error,
        "cost": error - plain_error,
    }


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("to_target", "to target (s)", 0),
    Column("slowdown", "(x fastest)", 2),
    Column("test_rmse", "RMSE at equal time", 4),
    Column("cost", "cost (points)", 4, signed=True),
    Column("user_staleness", "age at users (periods)", 2),
    Column("router_staleness", "at routers", 2),
    Column("discarded", "discarded (%)", 1),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare the time to the target, and the errors after equal time."""
    first = compared[0].label
    measured = pd.DataFrame([found(this, first, each, seed) for each in compared for seed in this.complete])
    goals = np.array([target(this, first, seed, FASTEST) for seed in this.complete])
    heading = (
        f"Simulated time until the error on missing ratings is at the target, {told(goals)} points; mean ± standard "
        f"deviation of {len(this.complete)} seeds.\nAt equal time: after {this.args.until:g} s, cost above the first "
        f"row, same seed. Age: median since the profiles taken last were sent; a period is {this.args.period:g} s."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared), draw(measured, compared))


def found(this: Comparison, fastest: str, each: Condition, seed: int) -> dict[str, Any]:
    """What a network did with one seed."""
    probes = this.probes(each.label, seed)
    ages = [at_amount(probes, name, ("time",), this.args.until) / this.args.period for name in STALENESS]
    last = probes.iloc[-1]
    return {
        "condition": each.label,
        "seed": seed,
        "kind": each.kind,
        "mean_delay_periods": each.periods,
        **to_target(this, fastest, each.label, seed, target(this, fastest, seed, FASTEST)),
        "user_staleness": ages[0],
        "router_staleness": ages[1],
        "discarded": 100 * float(last["stale"] / last["delivered"]),
    }


def crossing(probes: pd.DataFrame, goal: float) -> float:
    """Seconds until the error first was at a goal, linear between two probes; NaN where it never was.

    Parameters
    ----------
    probes : pandas.DataFrame
        With columns `time` and `test_rmse`.
    goal : float
    """
    time, error = (probes[name].to_numpy(dtype=float) for name in ("time", "test_rmse"))
    met = np.flatnonzero(error <= goal)
    if len(met) == 0:
        return math.nan
    first = int(met[0])
    if first == 0:
        return float(time[0])
    before, after = error[first - 1], error[first]
    return float(time[first - 1] + (time[first] - time[first - 1]) * (before - goal) / (before - after))


def answer(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """The answer in words, from the numbers."""
    slowdowns = {each.periods: pivot(measured, each.label, "slowdown") for each in compared if each.kind == "constant"}
    fine = [periods for periods, values in slowdowns.items() if len(values) and values.mean() <= 1.1]
    if not fine:
        return "The fastest network did not come to the target; give another --target, or a longer --until."
    slowest = max(slowdowns)
    longer = slowdowns[slowest]
    parts = [
        f"A constant delay of up to {max(fine):g} periods costs at most a tenth of the time to the target; one of "
        f"{slowest:g} takes " + (f"{told(longer, 1)} times as long." if len(longer) else "longer than was waited for.")
    ]
    parts += [_against_constant(measured, compared, kind) for kind in ("jitter", "per pair")]
    for kind, off in (("jitter", "jitter, stamps off"), ("held back", "held back, stamps off")):
        label = {each.periods: each.label for each in compared if each.kind == kind}
        last = [each for each in compared if each.kind == off]
        if last:
            more = _difference(measured, last[-1].label, label[last[-1].periods])
            name = (
                f"jitter of {last[-1].periods:g} periods"
                if kind == "jitter"
                else f"{HELD_BACK:.0%} of the messages held back"
            )
            parts.append(f"With {name}, to do without stamps changes it by {told(more, 4, signed=True)}.")
    regions = pivot(measured, compared[-1].label, "slowdown")
    if len(regions):
        parts.append(
            f"At the delays between the world's regions the time to the target is {told(regions, 2)} times the fastest."
        )
    return " ".join(parts)


def _against_constant(measured: pd.DataFrame, compared: Sequence[Condition], kind: str) -> str:
    """What a kind of delay changes against a constant one of the same mean, where delays are longest."""
    longest = max(each.periods for each in compared if each.kind == "constant")
    label = {each.kind: each.label for each in compared if each.periods == longest}
    more = _difference(measured, label[kind], label["constant"])
    what = "Jitter" if kind == "jitter" else "A delay of its own for each pair"
    return (
        f"{what} with a mean of {longest:g} periods changes the error after equal time by {told(more, 4, signed=True)}."
    )


def _difference(measured: pd.DataFrame, one: str, other: str) -> np.ndarray:
    """Error of one condition above another after equal time, in pairs of one seed."""
    return paired(measured, one, other, "test_rmse").to_numpy(dtype=float)


# -- the figure ----------------------------------------------------------------------------------------------------

KINDS = {
    "constant": ("constant", 5, "o", "-"),
    "jitter": ("jitter", 4, "^", "--"),
    "per pair": ("per pair", 3, "s", "-."),
    "jitter, stamps off": ("jitter, stamps off", 1, "v", ":"),
    "held back": ("30% held back", 6, "D", ""),
    "held back, stamps off": ("30% held back, stamps off", 2, "D", ""),
    "regions": ("regions of the world", 0, "*", ""),
}


def draw(measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Time to the target against the delay, and the cost after equal time against the age of what is used."""
    figure, (left, right) = new_figure(2)
    for kind, (label, number, marker, line) in KINDS.items():
        here = [each for each in compared if each.kind == kind]
        if not here:
            continue
        style = {"color": COLOURS[number], "marker": marker, "linestyle": line}
        delays = [each.periods for each in here]
        points(left, delays, [pivot(measured, each.label, "to_target") for each in here], label, **style)
        ages = [float(pivot(measured, each.label, "user_staleness").mean()) for each in here]
        points(right, ages, [pivot(measured, each.label, "cost") for each in here], label, **style)
    logarithmic(left, x=True, y=bool(measured["to_target"].notna().any()))
    logarithmic(right, x=True)
    title = "Time to the target; bars: one deviation over seeds"
    labelled(left, "Mean one-way delay (broadcast periods)", "Simulated time to the target (s)", title)
    x = "Median age of item profiles at users (periods)"
    labelled(right, x, "RMSE above the fastest (rating points)", "After equal time")
    legend(left, loc="upper left")
    return figure


if __name__ == "__main__":
    sys.exit(main())
