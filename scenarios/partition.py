"""What a cut through the network does, and how fast the network recovers when it is healed.

The underlay is cut in two halves of equal size along few links (Kernighan-Lin) for a third of the run: from the start,
or in the middle. Other faults hold for the middle third too: 30% of the links fail, so that messages take other paths
or find none; 30% of the routers are out; and a flash crowd, 30% of the users, who come when the first third is over.

Errors are compared to the run of the same seed without a fault, at each time. A run has recovered when its error stays
within 0.01 of that one. "Pairs across" are the missing ratings of users of one half on items hosted in the other.
"""

import argparse
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from netsim import Probe, Simulation, Underlay, flash_crowd, link_failure, partition, rmse, router_outage
from netsim.simulation import Script
from scenarios import study
from scenarios.arrivals import settled
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
    told,
)

__all__ = ["halves", "main", "recovery"]

# A run has recovered when its error is so near to that of the run without a fault, in rating points.
NEAR = 0.01

NONE = "no fault"
EARLY, MIDDLE = "cut from the start", "cut in the middle"
ERRORS = ("rmse_all", "rmse_half_a", "rmse_half_b", "rmse_across")


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("partition", __doc__, until=600.0)
    made.add_argument(
        "--share",
        type=one_share,
        default=0.3,
        metavar="SHARE",
        help="of the links that fail, of the routers that are out, and of the users who come as a crowd",
    )
    return study.main(made, run, argv)


@dataclass(frozen=True)
class Condition:
    """A fault.

    Attributes
    ----------
    label : str
    begin, end : float
        Simulated seconds from which and until which it holds.
    scripts : tuple of scripts
        As `simulate` takes them.
    """

    label: str
    begin: float
    end: float
    scripts: tuple[Script, ...]


def conditions(args: argparse.Namespace, common: Ground) -> list[Condition]:
    """All faults of a seed; the undisturbed run is not among them."""
    third = args.until / 3
    middle = {"at": third, "until": 2 * third}
    half = halves(common)[0]
    share = args.share
    return [
        Condition(EARLY, 0.0, third, (partition(half, at=0.0, until=third),)),
        Condition(MIDDLE, third, 2 * third, (partition(half, **middle),)),
        Condition(f"{share:.0%} of links fail", third, 2 * third, (link_failure(some_links(common, share), **middle),)),
        Condition(f"{share:.0%} of routers out", third, 2 * third, (router_outage(share, seed=common.seed, **middle),)),
        Condition(f"{share:.0%} of users come late", 0.0, third, (flash_crowd(share, at=third, seed=common.seed),)),
    ]


def halves(common: Ground) -> tuple[list[int], list[int]]:
    """Places of the two halves, of equal size and with few links between them."""
    graph: nx.Graph = nx.Graph(_underlay(common).to_graph())
    one, other = nx.algorithms.community.kernighan_lin_bisection(graph, weight="links", seed=common.seed)  # 1 for each
    return sorted(one), sorted(other)


def some_links(common: Ground, share: float) -> list[tuple[int, int]]:
    """A share of the links, at least one, drawn from the seed."""
    links = sorted(tuple(sorted(link)) for link in _underlay(common).to_graph().edges)
    rng = np.random.default_rng(common.seed)
    chosen = rng.choice(len(links), size=max(1, round(share * len(links))), replace=False)
    return [links[number] for number in sorted(chosen.tolist())]


def _underlay(common: Ground) -> Underlay:
    assert isinstance(common.world.topology, Underlay)
    return common.world.topology


def measures(common: Ground) -> list[Probe]:
    """Errors on the missing ratings: of all users, of those in each half, and of pairs across the cut.

    Raises
    ------
    ValueError
        If there is no missing rating of one sort.
    """
    test = common.data.test
    users, routers = Simulation(common.world, seed=common.seed).nodes_at(halves(common)[0])
    user_in_a = _among(test.user_ids, users)[test.user]
    item_in_a = _among(test.item_ids, routers)[test.item]  # each item is hosted by the router of its name
    kept = (np.ones(len(test), dtype=bool), user_in_a, ~user_in_a, user_in_a != item_in_a)
    if not all(mask.any() for mask in kept):
        raise ValueError("--users and --items are too few: one half of the network has no missing rating; give more")
    return [rmse(test.select(mask), name=name) for name, mask in zip(ERRORS, kept, strict=True)]


def _among(ids: Sequence[Hashable], chosen: Sequence[Hashable]) -> np.ndarray:
    """Which of the ids are among the chosen; bool, shape (n_ids,)."""
    there = set(chosen)
    return np.array([each in there for each in ids])


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    this = Comparison("partition", args, report=report, n_conditions=6)
    for seed in args.seeds:
        common = ground(args, seed)
        probes = measures(common)
        this.measure(NONE, seed, common.world, probes)
        for each in conditions(args, common):
            this.measure(each.label, seed, common.world, probes, scripts=each.scripts)
    return this.finish()


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("worst", "worst rise (points)", 3, signed=True),
    Column("worst_across", "worst rise, pairs across", 3, signed=True),
    Column("at_end", "rise at its end", 3, signed=True),
    Column("recovery", f"s until within {NEAR}", 0),
    Column("final", "final rise (points)", 4, signed=True),
    Column("not_arrived", "not arrived (%)", 1),
)


def report(this: Comparison) -> Report:
    """Compare to the runs without a fault."""
    faults = conditions(this.args, ground(this.args, this.complete[0]))
    rows = [found(this, each, seed) for each in faults for seed in this.complete]
    measured = pd.DataFrame(rows)
    last = np.array([this.result(NONE, seed).final["rmse_all"] for seed in this.complete])
    heading = (
        f"Rise of the error on missing ratings above the run without a fault, whose last error is "
        f"{told(last, 4)}; mean ± standard deviation of {len(this.complete)} seeds.\n"
        f"Recovery: simulated seconds after the end of the fault until the rise stays within {NEAR}."
    )
    return Report(measured, COLUMNS, heading, answer(measured, this.args.period), draw(this, faults))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, float | int | str]:
    """What a fault did with one seed."""
    plain, probes = this.probes(NONE, seed), this.probes(each.label, seed)
    time = probes["time"].to_numpy(dtype=float)
    rise = {name: (probes[name] - plain[name]).to_numpy(dtype=float) for name in ERRORS}
    # Thirds of the run are times of probes, up to rounding.
    begun, ended = np.searchsorted(time, np.array([each.begin, each.end]) * (1 - 1e-9))
    during = slice(begun + 1, ended + 1)
    final = probes.iloc[-1]
    return {
        "condition": each.label,
        "seed": seed,
        "begin": each.begin,
        "end": each.end,
        "worst": float(rise["rmse_all"][during].max()),
        "worst_half_a": float(rise["rmse_half_a"][during].max()),
        "worst_half_b": float(rise["rmse_half_b"][during].max()),
        "worst_across": float(rise["rmse_across"][during].max()),
        "at_end": float(rise["rmse_all"][ended]),
        "recovery": recovery(time, rise["rmse_all"], each.end, NEAR),
        "final": float(rise["rmse_all"][-1]),
        "not_arrived": 100 * float(final["unreachable"] + final["lost_link"] + final["lost_offline"]) / final["sent"],
    }


def recovery(time: np.ndarray, rise: np.ndarray, end: float, near: float) -> float:
    """Seconds after the end of a fault until the rise stays within `near`; NaN where it does not.

    Parameters
    ----------
    time : float64, shape (n,)
        Times of the probes, in seconds.
    rise : float64, shape (n,)
        Error above that of the run without a fault.
    end : float
        When the fault ended, in seconds.
    near : float
    """
    return float(np.maximum(0.0, settled(time, rise, near) - end))  # NaN stays NaN


def answer(measured: pd.DataFrame, period: float) -> str:
    """The answer in words, from the numbers."""
    parts = []
    for label in (EARLY, MIDDLE):
        worst, across, times = (pivot(measured, label, name) for name in ("worst", "worst_across", "recovery"))
        back = f"the network never comes back within {NEAR}"
        if len(times):
            back = (
                f"it takes {told(times, 0)} s ({times.mean() / period:.1f} periods) after it is healed until the "
                f"network is back within {NEAR}{in_seeds(len(times), len(worst))}"
            )
        parts.append(
            f"A {label} raises the error by {told(worst, 3)} at worst ({told(across, 3)} for pairs across it), and "
            f"{back}."
        )
    others = [label for label in measured["condition"].unique() if label not in (EARLY, MIDDLE)]
    rises = [f"{label}: {told(pivot(measured, label, 'worst'), 3)}" for label in others]
    parts.append(f"Worst rise under the other faults: {'; '.join(rises)}.")
    final = {label: float(pivot(measured, label, "final").mean()) for label in measured["condition"].unique()}
    left = [label for label, value in final.items() if abs(value) > NEAR]
    parts.append(
        f"At the end of the run {', '.join(left)} still differ by more than {NEAR} on average."
        if left
        else f"At the end of the run none differs by more than {NEAR} on average."
    )
    return " ".join(parts)


# -- the figure ----------------------------------------------------------------------------------------------------


def draw(this: Comparison, faults: Sequence[Condition]) -> Figure:
    """Errors against time under a cut in the middle, and how far each fault raises the error."""
    figure, (left, right) = new_figure(2)
    time = this.probes(NONE, this.complete[0])["time"].to_numpy(dtype=float)[1:]
    _draw_cut(left, this, time, next(each for each in faults if each.label == MIDDLE))
    _draw_rises(right, this, time, faults)
    return figure


def _draw_cut(ax: Axes, this: Comparison, time: np.ndarray, cut: Condition) -> None:
    ax.axvspan(cut.begin, cut.end, color="0.9", lw=0, label="cut")
    for condition, column, label, number, line in (
        (NONE, "rmse_all", "no fault, all", 0, "-"),
        (MIDDLE, "rmse_all", "cut, all", 5, "-"),
        (MIDDLE, "rmse_half_a", "cut, users of half A", 3, "--"),
        (MIDDLE, "rmse_half_b", "cut, users of half B", 1, "-."),
        (MIDDLE, "rmse_across", "cut, pairs across", 4, ":"),
    ):
        runs = this.curves(condition, column, time)
        band(ax, time, runs, label, shaded=column == "rmse_all", color=COLOURS[number], linestyle=line)
    logarithmic(ax, y=True)
    title = "A cut in the middle third; bands: one deviation over seeds"
    labelled(ax, "Simulated time (s)", "RMSE on missing ratings (rating points)", title)
    legend(ax)


def _draw_rises(ax: Axes, this: Comparison, time: np.ndarray, faults: Sequence[Condition]) -> None:
    third = this.args.until / 3
    ax.axhspan(-NEAR, NEAR, color="0.9", lw=0, label=f"within {NEAR} of no fault")
    for moment in (third, 2 * third):
        ax.axvline(moment, color="0.6", linewidth=0.8)
    plain = this.curves(NONE, "rmse_all", time)
    for each, number, line in zip(faults, (4, 5, 3, 1, 6), ("-", "-", "--", "-.", ":"), strict=True):
        rise = this.curves(each.label, "rmse_all", time) - plain
        band(ax, time, rise, each.label, color=COLOURS[number], linestyle=line)
    ax.set_yscale("symlog", linthresh=0.02, subs=(2, 5))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    title = "Rise under each fault; lines: thirds of the run"
    labelled(ax, "Simulated time (s)", "RMSE above no fault (rating points)", title)
    legend(ax)


if __name__ == "__main__":
    sys.exit(main())
