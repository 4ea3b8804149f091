"""How much loss the network can take, and whether it matters that losses come in bursts.

Between 10% and 70% of all messages are lost: each on its own, or at the same mean loss in bursts of 1, 10 and 100
broadcast periods on average (Gilbert and Elliott's chain: each pair of nodes has a good and a bad state, and all is
lost in the bad one). In one row more the network doubles messages. 50% is the stress setting of the gossip-learning
framework of Ormandi and Hegedus.

Errors are compared to those of the run of the same seed without loss, twice: at equal time, after --until, and at equal
deliveries, when as many messages have arrived as there did. What loss costs beside the messages themselves shows in
the second.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from netsim import GilbertElliott, rmse
from scenarios import study
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    at_amount,
    ground,
    legend,
    new_figure,
    numbers,
    paired,
    parser,
    pivot,
    points,
    shares,
    told,
)

__all__ = ["main", "tolerated"]

NONE = "no loss"
# A cost that is small against the error itself, in rating points; the claim about churn is measured by it too.
SMALL = 0.02
INDEPENDENT = 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("loss", __doc__, until=400.0, size=120)
    made.add_argument(
        "--loss", type=shares, default="0.1,0.3,0.5,0.7", metavar="SHARE,...", help="messages dropped by the network"
    )
    made.add_argument(
        "--bursts",
        type=numbers,
        default="1,10,100",
        metavar="PERIODS,...",
        help="mean lengths of bursts, in broadcast periods",
    )
    made.add_argument(
        "--duplication", type=study.share, default=0.3, metavar="SHARE", help="messages doubled, in a row of its own"
    )
    return study.main(made, run, argv)


@dataclass(frozen=True)
class Condition:
    """One way in which messages are lost.

    Attributes
    ----------
    label : str
    loss : float
        Mean share of messages lost.
    burst : float
        Mean length of a burst in broadcast periods; 0 where each message is lost on its own.
    changes : dict
        Arguments of the world.
    """

    label: str
    loss: float
    burst: float
    changes: dict[str, Any]


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All ways in which messages are lost, the network without loss first."""
    made = [Condition(NONE, 0.0, INDEPENDENT, {"loss": 0.0})]
    for burst in (INDEPENDENT, *args.bursts):
        for loss in args.loss:
            how = GilbertElliott(loss, burst * args.period) if burst else loss
            made.append(Condition(f"{loss:.0%}, {_named(burst)}", loss, burst, {"loss": how}))
    doubled = {"loss": 0.0, "duplication": args.duplication}
    return [*made, Condition(f"no loss, {args.duplication:.0%} doubled", 0.0, math.nan, doubled)]


def _named(burst: float) -> str:
    if burst == INDEPENDENT:
        return "independent"
    return f"bursts of {burst:g} period{'' if burst == 1 else 's'}"


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    this = Comparison("loss", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = [rmse(common.data.test)]
        this.measure_beside(seed, common.world, probes, compared, spent=["delivered"], lacking="no message arrived")
    return this.finish()


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("test_rmse", "RMSE at equal time", 4),
    Column("cost_time", "cost (points)", 4, signed=True),
    Column("cost_delivered", "cost at equal deliveries", 4, signed=True),
    Column("slowdown", "time to those (x)", 2),
    Column("messages", "messages to those (x)", 2),
    Column("lost", "lost (%)", 1),
    Column("unknown", "rating unknown (%)", 1),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare at equal time and at equal deliveries."""
    measured = pd.DataFrame([found(this, each, seed) for each in compared for seed in this.complete])
    heading = (
        f"Error on missing ratings (rating points) after {this.args.until:g} simulated seconds, and its cost above no "
        f"loss, same seed; mean ± standard deviation of {len(this.complete)} seeds.\n"
        "Equal deliveries: when as many messages have arrived as without loss in that time. Rating unknown: share of "
        "those that arrived which were of no use, as the router did not know the rating yet."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared), draw(measured, compared))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What a condition cost with one seed."""
    plain, probes = this.result(NONE, seed).final, this.probes(each.label, seed)
    sent = at_amount(probes, "sent", ["delivered"], plain["delivered"])
    last = probes.iloc[-1]
    return {
        "condition": each.label,
        "seed": seed,
        "loss": each.loss,
        "burst_periods": each.burst,
        **this.costs_beside(NONE, each.label, seed, "delivered"),
        "messages": sent / plain["sent"],
        "lost": 100 * float(last["lost_link"] / last["sent"]),
        "unknown": 100 * float(last["unknown"] / last["delivered"]),
    }


def tolerated(measured: pd.DataFrame, burst: float) -> float:
    """The highest loss up to which the mean cost at equal time stays small; 0 where none does.

    Parameters
    ----------
    measured : pandas.DataFrame
        As `report` gives it.
    burst : float
        Mean length of a burst in periods; 0 where messages are lost each on its own.
    """
    here = measured[(measured["burst_periods"] == burst) & (measured["loss"] > 0)]
    most = 0.0
    for loss, cost in here.groupby("loss")["cost_time"].mean().items():
        if not cost <= SMALL:
            break
        most = float(loss)  # type: ignore[arg-type]
    return most


def answer(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """The answer in words, from the numbers."""
    highest = max(each.loss for each in compared)
    bursts = list(dict.fromkeys(each.burst for each in compared if each.loss > 0))
    limits = [f"{_named(burst)}: {tolerated(measured, burst):.0%}" for burst in bursts]
    parts = [
        f"The highest loss that costs {SMALL} or less after equal time, of those tried up to {highest:.0%}, is by "
        f"kind: {'; '.join(limits)}."
    ]
    parts.append(_burstiness(measured, compared, bursts, highest))
    worst = {each.label: pivot(measured, each.label, "cost_delivered") for each in compared[1:]}
    means = {label: float(values.mean()) for label, values in worst.items() if len(values)}
    if means:
        dearest = max(means, key=lambda label: means[label])
        parts.append(
            f"At equal deliveries the highest cost is {told(worst[dearest], 4, signed=True)} ({dearest}): what is "
            f"{'left of it is small' if means[dearest] <= SMALL else 'lost is more than the messages alone'}."
        )
    doubled = compared[-1].label
    parts.append(f"With {doubled.removeprefix('no loss, ')}, the error differs by {_cost(measured, doubled)}.")
    return " ".join(parts)


def _burstiness(measured: pd.DataFrame, compared: Sequence[Condition], bursts: Sequence[float], loss: float) -> str:
    """How much longer bursts cost beyond independent loss of the same mean, in pairs of one seed."""
    label = {each.burst: each.label for each in compared if each.loss == loss}
    parts = []
    for burst in bursts[1:]:
        more = paired(measured, label[burst], label[INDEPENDENT], "cost_time").dropna().to_numpy(dtype=float)
        parts.append(f"{told(more, 4, signed=True)} for {_named(burst)}")
    return f"At {loss:.0%} loss, burstiness alone adds {', '.join(parts)} at equal time."


def _cost(measured: pd.DataFrame, condition: str) -> str:
    return told(pivot(measured, condition, "cost_time"), 4, signed=True)


# -- the figure ----------------------------------------------------------------------------------------------------


def draw(measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Cost against the mean loss, at equal time and at equal deliveries."""
    figure, (left, right) = new_figure(2)
    for ax, column, title in (
        (left, "cost_time", "At equal time"),
        (right, "cost_delivered", "At equal deliveries"),
    ):
        _draw_costs(ax, measured, compared, column)
        ax.set_title(f"{title}; bars: one deviation over seeds", loc="left", fontsize="medium")
    low = min(left.get_ylim()[0], right.get_ylim()[0])
    high = max(left.get_ylim()[1], right.get_ylim()[1])
    left.set_ylim(low, high)
    right.set_ylim(low, high)
    return figure


def _draw_costs(ax: Axes, measured: pd.DataFrame, compared: Sequence[Condition], column: str) -> None:
    ax.axhspan(-SMALL, SMALL, color="0.9", lw=0, label=f"within {SMALL} of no loss")
    bursts = list(dict.fromkeys(each.burst for each in compared if each.loss > 0))
    for number, burst in enumerate(bursts):
        here = [each for each in compared if each.loss > 0 and each.burst == burst]
        aside = 0.008 * (number - (len(bursts) - 1) / 2)  # beside each other, so that no bar covers another
        points(
            ax,
            [each.loss + aside for each in here],
            [pivot(measured, each.label, column) for each in here],
            _named(burst),
            color=COLOURS[(5, 3, 1, 4, 6)[number % 5]],
            marker="os^Dv"[number % 5],
            linestyle=("-", "--", "-.", ":")[number % 4],
        )
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("Mean loss")
    ax.set_ylabel("RMSE above no loss (rating points)")
    legend(ax, loc="upper left")


if __name__ == "__main__":
    sys.exit(main())
