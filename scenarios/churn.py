"""What nodes that come and go cost, at equal updates per node.

Routers are down for a share of the time, in sessions of two kinds: exponential ones, and heavy-tailed ones that
correlate (Weibull with shape 0.67, as for BitTorrent in the report PDS-2010-003 of the Delft P2P Trace Archive, table
14; who stayed long tends to stay long again, as Stutzbach and Rejaie measured, IMC 2006; how much is a choice). A
router that returns keeps its profile, has lost it, or has that of its last checkpoint. Others quit for good, and their
items are lost, start anew on another router, or are handed over. With --trace, routers also follow measured phones.

Every run goes on until its profiles have had as many updates, per node on average, as without churn after --until; the
errors are compared there. The first seed paper claims, in section 3: "Each user/router can freely join in or quit the
learning process at any time. Therefore, the algorithm is robust against the breakdown of individual nodes." The answer
tells whether, with 30% of the routers down at any time (or the share of --down nearest to it), the error is on average
within 0.02 of that without churn.

Errors are those of all profiles, also of nodes that are away or have quit: a lost item is rated by its last profile.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.stats import t as student

from netsim import Checkpoint, OnOff, Sessions, Uniform, Weibull, read_availability_trace, rmse, truth_rmse
from scenarios import study
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    along,
    at_amount,
    band,
    deviation,
    ground,
    labelled,
    legend,
    logarithmic,
    new_figure,
    one_share,
    parser,
    pivot,
    points,
    shares,
    told,
    total,
)

__all__ = ["CLAIM", "add_cycle", "add_quit", "interval", "lifetimes", "main", "robustness", "verdict"]

# Most that the error may differ by with 30% of the routers down, for the paper's claim to hold.
CLAIM = 0.02
CLAIMED_DOWN = 0.3

SHAPE = 0.67
CORRELATION = 0.5

NONE = "no churn"
UPDATES = ("user_updates", "item_updates")
RETURNS = ("keep", "reset", "checkpoint")
FATES = {"lost": None, "fresh": "fresh", "handed over": "handover"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("churn", __doc__, until=400.0, size=100)
    group = made.add_argument_group("churn")
    group.add_argument(
        "--down", type=shares, default="0.1,0.3,0.5", metavar="SHARE,...", help="of the time that a router is down"
    )
    add_cycle(group)
    group.add_argument(
        "--checkpoint", type=study.positive, default=3.0, metavar="PERIODS", help="between two checkpoints of a router"
    )
    add_quit(group, 0.2)
    group.add_argument(
        "--trace",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="file of measured sessions (docs/availability-traces.md), such as that of STUNner, which routers follow "
        "too (default: none)",
    )
    return study.main(made, run, argv)


def add_cycle(to: argparse._ArgumentGroup) -> None:
    """Add the argument that says how long sessions are."""
    to.add_argument(
        "--cycle",
        type=study.positive,
        default=10.0,
        metavar="PERIODS",
        help="mean time of a session online and one offline together, in broadcast periods",
    )


def add_quit(to: argparse._ArgumentGroup, default: float) -> None:
    """Add the argument that says how many routers quit; `lifetimes(args)` reads it back."""
    to.add_argument(
        "--quit",
        type=one_share,
        default=default,
        metavar="SHARE",
        help="of the routers that quit for good within --until",
    )


def lifetimes(args: argparse.Namespace) -> Uniform:
    """Lifetimes of which a share of `--quit` ends within `--until`."""
    return Uniform(0.0, args.until / args.quit)


@dataclass(frozen=True)
class Condition:
    """One way in which routers come and go.

    Attributes
    ----------
    label : str
    kind : str
        Of the sessions.
    down : float
        Share of the time that a router is meant to be down.
    what : str
        What it has when it returns, or what becomes of its items.
    changes : dict
        Arguments of the world.
    """

    label: str
    kind: str
    down: float
    what: str
    changes: dict[str, Any]


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All ways in which routers come and go, the undisturbed one first."""
    made = [Condition(NONE, "none", 0.0, "keep", {})]
    policies = dict(zip(RETURNS, ("keep", "reset", Checkpoint(args.checkpoint * args.period)), strict=True))
    for down in args.down:
        sessions = exponential(args.cycle * args.period, down)
        made += [
            Condition(
                f"down {down:.0%}, {what}", "exponential", down, what, {"router_churn": sessions, "router_return": each}
            )
            for what, each in policies.items()
        ]
    for down in args.down:
        sessions = exponential(args.cycle * args.period, down)
        label = f"down {down:.0%}, keep, users too"
        made.append(Condition(label, "users too", down, "keep", {"router_churn": sessions, "user_churn": sessions}))
    for down in args.down:
        heavy = heavy_tailed(args.cycle * args.period, down)
        label = f"down {down:.0%}, keep, heavy-tailed"
        made.append(Condition(label, "heavy-tailed", down, "keep", {"router_churn": heavy}))
    for what, rehosting in FATES.items():
        departures = {"router_lifetime": lifetimes(args), "rehosting": rehosting}
        made.append(Condition(f"quit {args.quit:.0%}, items {what}", "departures", args.quit, what, departures))
    if hasattr(args, "trace"):
        trace = read_availability_trace(args.trace)
        down = 1 - trace.availability
        made.append(Condition(f"down {down:.0%}, keep, trace", "trace", down, "keep", {"router_churn": trace}))
    return made


def exponential(cycle: float, down: float) -> OnOff:
    """Exponential sessions; an online and an offline one take `cycle` seconds on average."""
    return OnOff(mean_online=cycle * (1 - down), mean_offline=cycle * down)


def heavy_tailed(cycle: float, down: float) -> Sessions:
    """Weibull sessions of the same means, each correlated with the one before."""
    scale = cycle / math.gamma(1 + 1 / SHAPE)
    return Sessions(Weibull(scale * (1 - down), SHAPE), Weibull(scale * down, SHAPE), correlation=CORRELATION)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    this = Comparison("churn", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = [rmse(common.data.test), truth_rmse(common.data.truth)]
        this.measure_beside(seed, common.world, probes, compared, spent=UPDATES, lacking="no profile was updated")
    return this.finish()


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("test_rmse", "RMSE (points)", 4),
    Column("cost", "cost (points)", 4, signed=True),
    Column("worst_cost", "worst until then", 3, signed=True),
    Column("slowdown", "time (x)", 2),
    Column("messages", "messages (x)", 2),
    Column("online", "routers online (%)", 0),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare at equal updates."""
    rows = [found(this, each, seed) for each in compared for seed in this.complete]
    measured = pd.DataFrame(rows)
    updates = measured.loc[measured["condition"] == NONE, "updates_per_node"].mean()
    heading = (
        f"Error on missing ratings after {updates:,.0f} updates per node, mean ± standard deviation of "
        f"{len(this.complete)} seeds. Cost: above no churn, same seed; worst: at equal updates after the first tenth."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared), draw(this, measured, compared))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What a condition cost with one seed, at the updates that the undisturbed run made."""
    plain, probes = this.probes(NONE, seed), this.probes(each.label, seed)
    made = total(plain, UPDATES)
    amount = float(made[-1])
    n_nodes = this.args.users + this.args.items
    error, truth, time, sent = (
        at_amount(probes, name, UPDATES, amount) for name in ("test_rmse", "truth_rmse", "time", "sent")
    )
    later = made >= amount / 10
    costs = along(probes, "test_rmse", UPDATES, made[later]) - plain["test_rmse"].to_numpy(dtype=float)[later]
    until_then = probes[probes["time"] <= time] if math.isfinite(time) else probes
    return {
        "condition": each.label,
        "seed": seed,
        "kind": each.kind,
        "down": each.down,
        "what": each.what,
        "updates_per_node": amount / n_nodes,
        "test_rmse": error,
        "cost": error - float(plain["test_rmse"].iloc[-1]),
        "worst_cost": float(costs.max()) if math.isfinite(error) else math.nan,
        "truth_cost": truth - float(plain["truth_rmse"].iloc[-1]),
        "time": time,
        "slowdown": time / float(plain["time"].iloc[-1]),
        "messages": sent / float(plain["sent"].iloc[-1]),
        "online": 100 * float(until_then["routers_online"].mean()) / this.args.items,
    }


def robustness(measured: pd.DataFrame) -> tuple[float, np.ndarray]:
    """The share of routers down that is nearest to 30%, and what it cost with each seed.

    Parameters
    ----------
    measured : pandas.DataFrame
        As `report` gives it: exponential sessions after which a router keeps its profile are looked at.

    Returns
    -------
    down : float
    cost : float64, shape (n_seeds,)
        Root mean square error above that without churn, at equal updates per node.
    """
    kept = measured[(measured["kind"] == "exponential") & (measured["what"] == "keep")]
    down = min(sorted(set(kept["down"])), key=lambda each: abs(each - CLAIMED_DOWN))
    return float(down), kept.loc[kept["down"] == down, "cost"].to_numpy(dtype=float)


def interval(values: np.ndarray) -> tuple[float, float]:
    """95% confidence interval of the mean over seeds (Student's t); the value itself where there is one seed."""
    mean, n = float(values.mean()), len(values)
    aside = float(student.ppf(0.975, n - 1)) * deviation(values) / math.sqrt(n) if n > 1 else 0.0
    return mean - aside, mean + aside


def verdict(cost: np.ndarray) -> str:
    """Whether the mean cost is within the claim; also no where a seed never came to as many updates (NaN)."""
    if np.isnan(cost).any():
        return "does not hold"
    low, high = interval(cost)
    if low >= -CLAIM and high <= CLAIM:
        return "holds"
    return "does not hold" if low > CLAIM or high < -CLAIM else "is not decided by so few seeds"


def answer(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """The answer in words, from the numbers."""
    down, cost = robustness(measured)
    reached = cost[~np.isnan(cost)]
    parts = []
    if len(reached):
        low, high = interval(reached)
        parts.append(
            f"The paper's robustness {verdict(cost)}: with {down:.0%} of the routers down at any time, which keep "
            f"their profiles, the error differs from that without churn by {told(reached, 4, signed=True)} at equal "
            f"updates per node (95% interval of the mean {low:+.4f} to {high:+.4f}; "
            f"{np.sum(np.abs(reached) <= CLAIM)} of {len(cost)} seeds within {CLAIM})."
        )
    means = {each.label: pivot(measured, each.label, "cost").mean() for each in compared[1:] if _found(measured, each)}
    if not means:
        return "No run came to as many updates as the one without churn, or all diverged; nothing can be compared."
    dear = [f"{label} ({mean:+.3f})" for label, mean in means.items() if mean > CLAIM]
    parts.append(
        f"Above {CLAIM} on average: {'; '.join(dear)}." if dear else f"None costs more than {CLAIM} on average."
    )
    reached_by = [each.label for each in compared[1:] if _found(measured, each)]
    slow = {label: float(pivot(measured, label, "slowdown").mean()) for label in reached_by}
    if slow:
        slowest = max(slow, key=lambda label: slow[label])
        parts.append(f"The price is time: the same updates take up to {slow[slowest]:.2f} times as long ({slowest}).")
    return " ".join(parts)


def _found(measured: pd.DataFrame, each: Condition) -> bool:
    return len(pivot(measured, each.label, "cost")) > 0


# -- the figure ----------------------------------------------------------------------------------------------------

# Label, colour, marker and line of what the left panel shows.
LINES = {
    ("exponential", "keep"): ("profile kept", COLOURS[5], "o", "-"),
    ("exponential", "checkpoint"): ("back to a checkpoint", COLOURS[3], "s", "-"),
    ("exponential", "reset"): ("profile lost", COLOURS[4], "^", "-"),
    ("users too", "keep"): ("kept, users too", COLOURS[2], "D", "--"),
    ("heavy-tailed", "keep"): ("kept, heavy-tailed", COLOURS[6], "v", ":"),
}
DEPARTED = {"lost": COLOURS[1], "fresh": COLOURS[6]}


def draw(this: Comparison, measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Cost against the share of routers down, and how the error falls with updates."""
    figure, (left, right) = new_figure(2)
    _draw_costs(left, measured, compared)
    _draw_curves(right, this, compared)
    return figure


def _draw_costs(ax: Axes, measured: pd.DataFrame, compared: Sequence[Condition]) -> None:
    ax.axhspan(-CLAIM, CLAIM, color="0.9", lw=0, label=f"within {CLAIM} of no churn")
    width = min((each.down for each in compared[1:]), default=0.1)
    for number, ((kind, what), (label, colour, marker, line)) in enumerate(LINES.items()):
        here = [each for each in compared if (each.kind, each.what) == (kind, what)]
        aside = (number - 2) * 0.06 * width  # beside each other, so that no bar covers another
        x = [each.down + aside for each in here]
        values = [pivot(measured, each.label, "cost") for each in here]
        points(ax, x, values, label, color=colour, marker=marker, linestyle=line)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    title = "At equal updates per node; bars: one deviation over seeds"
    labelled(ax, "Time that a router is down", "RMSE above no churn (rating points)", title)
    legend(ax)


def _draw_curves(ax: Axes, this: Comparison, compared: Sequence[Condition]) -> None:
    first = this.complete[0]
    made = total(this.probes(NONE, first), UPDATES)
    least = min(float(total(this.probes(NONE, seed), UPDATES)[-1]) for seed in this.complete)
    at = np.linspace(min(made[1], least) / 2, least, 160)
    n_nodes = this.args.users + this.args.items
    down = min(this.args.down, key=lambda each: abs(each - CLAIMED_DOWN))
    shown = [(NONE, COLOURS[0], "-")]
    for each in compared:
        if each.kind == "exponential" and each.down == down:
            shown.append((each.label, LINES[each.kind, each.what][1], "-"))
        if each.kind == "departures" and each.what in DEPARTED:
            shown.append((each.label, DEPARTED[each.what], "--"))
    for label, colour, line in shown:
        band(ax, at / n_nodes, this.curves(label, "test_rmse", at, UPDATES), label, color=colour, linestyle=line)
    logarithmic(ax, x=True, y=True)
    title = "As updates are made; bands: one deviation over seeds"
    labelled(ax, "Updates per node", "RMSE on missing ratings (rating points)", title)
    legend(ax)


if __name__ == "__main__":
    sys.exit(main())
