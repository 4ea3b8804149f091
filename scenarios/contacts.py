"""How long a contact list must be, how often it must be refreshed, and what finding routers costs.

At one end every node knows whom it needs: a user lists the routers of the items that he rated, a router lists their
raters. Nobody gives real nodes such lists. Here they have random ones instead, of a share of all routers and of all
users, which are kept for good or drawn anew every --refresh periods; or they learn them: a user asks directories for
the routers of the items that he rated, by messages, and a router lists those of its raters whom it hears of.

Errors are compared to those of the run of the same seed with the lists that are given, twice: at equal time, after
--until, and at equal messages, when as many have been sent as there. The first counts what a node does not know, the
second also what it sends in vain.

Then --quit of the routers quit for good within --until, and hand their items over. Given lists follow the items by
themselves. Learned ones do not: a user drops a router that he has not heard of for --patience periods, and asks the
directory again; or he never drops one.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from netsim import HeardUsers, LearnedRouters, RandomRouters, RandomUsers, coverage, rmse, traffic
from scenarios import study
from scenarios.churn import add_quit, lifetimes
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    at_amount,
    band,
    deviation,
    ground,
    in_seeds,
    labelled,
    legend,
    logarithmic,
    new_figure,
    paired,
    parser,
    pivot,
    points,
    shares,
    told,
)

__all__ = ["main", "shortest"]

GIVEN = "given"
LEARNED = "learned"
# A cost that is small against the error itself, in rating points; the claim about churn is measured by it too.
SMALL = 0.02
FINDING = ("lookup_sent", "found_sent")
# A list is as good as complete once it covers so much of the ratings.
COMPLETE = 0.95


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("contacts", __doc__, until=400.0, size=100)
    group = made.add_argument_group("contact lists")
    group.add_argument(
        "--lengths",
        type=shares,
        default="0.05,0.2,0.5,0.8",
        metavar="SHARE,...",
        help="of all routers in the random list of a user, and of all users in that of a router; all of them are tried "
        "too",
    )
    group.add_argument(
        "--refresh",
        type=study.positive,
        default=10.0,
        metavar="PERIODS",
        help="between two draws of a random list, in broadcast periods",
    )
    group.add_argument(
        "--timeout", type=study.positive, default=3.0, metavar="PERIODS", help="until a look-up is made again"
    )
    group.add_argument(
        "--at-once", type=study.at_least(1), default=10, metavar="N", help="look-ups of a user in a period at most"
    )
    add_quit(group, 0.2)
    group.add_argument(
        "--patience",
        type=study.positive,
        default=3.0,
        metavar="PERIODS",
        help="after which a user drops a router that he has not heard of",
    )
    return study.main(made, run, argv)


@dataclass(frozen=True)
class Condition:
    """One way to have contacts.

    Attributes
    ----------
    label : str
    kind : str
        "given", "kept", "redrawn" or "learned"; with " quit" where routers quit.
    length : float
        Share of all nodes of the other role that a random list holds; NaN for other lists.
    changes : dict
        Arguments of the world.
    """

    label: str
    kind: str
    length: float
    changes: dict[str, Any]


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All ways to have contacts, the lists that are given first."""
    made = [Condition(GIVEN, "given", math.nan, {})]
    refresh = args.refresh * args.period
    for length in args.lengths:
        made.append(Condition(f"random {length:.0%}, kept", "kept", length, _random(args, length, None)))
        made.append(Condition(f"random {length:.0%}, redrawn", "redrawn", length, _random(args, length, refresh)))
    made.append(Condition("all", "kept", 1.0, _random(args, 1.0, None)))
    learned = {
        "user_contacts": LearnedRouters(args.timeout * args.period, args.at_once),
        "router_contacts": HeardUsers(),
    }
    made.append(Condition(LEARNED, "learned", math.nan, learned))
    quitting = {"router_lifetime": lifetimes(args), "rehosting": "handover"}
    patient = {"user_patience": args.patience * args.period}
    name = f"quit {args.quit:.0%}"
    return [
        *made,
        Condition(f"{name}, given", "given quit", math.nan, quitting),
        Condition(f"{name}, learned, kept", "learned quit", math.nan, learned | quitting),
        Condition(f"{name}, learned, dropped", "dropped quit", math.nan, learned | quitting | patient),
    ]


def _random(args: argparse.Namespace, length: float, every: float | None) -> dict[str, Any]:
    return {
        "user_contacts": RandomRouters(max(1, round(length * args.items)), every),
        "router_contacts": RandomUsers(max(1, round(length * args.users)), every),
    }


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    this = Comparison("contacts", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = [rmse(common.data.test), coverage(), traffic(["lookup", "found"], ["sent"])]
        this.measure_beside(seed, common.world, probes, compared, spent=["sent"], lacking="no message was sent")
    return this.finish()


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("test_rmse", "RMSE at equal time", 4),
    Column("cost_time", "cost (points)", 4, signed=True),
    Column("cost_sent", "cost at equal messages", 4, signed=True),
    Column("slowdown", "time to those (x)", 2),
    Column("coverage", "coverage (%)", 1),
    Column("useless", "in vain (%)", 1),
    Column("lookups", "look-ups per user", 1),
    Column("finding", "of all messages (%)", 2),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare at equal time and at equal messages."""
    measured = pd.DataFrame([found(this, each, seed) for each in compared for seed in this.complete])
    heading = (
        f"Error on missing ratings (rating points) after {this.args.until:g} simulated seconds, and its cost above the "
        f"lists that are given, same seed; mean ± standard deviation of {len(this.complete)} seeds.\n"
        "Equal messages: when as many were sent as with those lists in that time. Coverage: share of the ratings whose "
        "router the user lists, at equal time.\n"
        "In vain: share of what arrived that was not rated by that user. Look-ups with their answers, until equal time."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared, this.args), draw(this, measured, compared))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What a condition cost with one seed."""
    plain, probes = this.result(GIVEN, seed).final, this.probes(each.label, seed)

    def then(column: str) -> float:
        return at_amount(probes, column, ("time",), plain["time"])

    lookups = sum(then(column) for column in FINDING)
    return {
        "condition": each.label,
        "seed": seed,
        "kind": each.kind,
        "length": each.length,
        **this.costs_beside(GIVEN, each.label, seed, "sent"),
        "coverage": 100 * then("users_coverage"),
        "routers_coverage": 100 * then("routers_coverage"),
        "useless": 100 * then("unrated") / then("delivered"),
        "lookups": lookups / this.args.users,
        "finding": 100 * lookups / then("sent"),
        "complete": _first_above(probes, COMPLETE) / this.args.period,
    }


def _first_above(probes: pd.DataFrame, share: float) -> float:
    """Simulated seconds until users' lists cover a share of the ratings for the first time; NaN where never."""
    reached = probes.loc[probes["users_coverage"] >= share, "time"]
    return float(reached.iloc[0]) if len(reached) else math.nan


def shortest(measured: pd.DataFrame, kind: str, column: str) -> float:
    """The shortest random list from which on the mean cost stays small; NaN where not even the longest is enough.

    Parameters
    ----------
    measured : pandas.DataFrame
        As `report` gives it.
    kind : str
        "kept" or "redrawn". Lists of all nodes are the same under both.
    column : str
        "cost_time" or "cost_sent".

    Returns
    -------
    float
        Share of all nodes of the other role.
    """
    here = measured[(measured["kind"] == kind) | (measured["length"] == 1.0)]
    least = math.nan
    for length in sorted(set(here["length"]), reverse=True):
        # NaN where a seed never sent as many messages.
        if not here.loc[here["length"] == length, column].to_numpy(dtype=float).mean() <= SMALL:
            break
        least = float(length)
    return least


def answer(measured: pd.DataFrame, compared: Sequence[Condition], args: argparse.Namespace) -> str:
    """The answer in words, from the numbers."""
    parts = [
        f"So long must a random list be for the error to be within {SMALL} of that of given lists: kept, "
        f"{_lengths(measured, 'kept')}; drawn anew every {args.refresh:g} periods, {_lengths(measured, 'redrawn')}.",
        _refreshing(measured, compared),
        _finding(measured),
        *_quitting(measured, compared, args),
    ]
    return " ".join(parts)


def _lengths(measured: pd.DataFrame, kind: str) -> str:
    needed = []
    for column, when in (("cost_time", "at equal time"), ("cost_sent", "at equal messages")):
        least = shortest(measured, kind, column)
        needed.append(f"{'not even all suffice' if math.isnan(least) else f'{least:.0%} of the nodes'} {when}")
    return " and ".join(needed)


def _refreshing(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """What refreshing gains at each length, in pairs of one seed."""
    label = {(each.kind, each.length): each.label for each in compared}
    parts = []
    for (kind, length), redrawn in label.items():
        if kind == "redrawn":
            gained = -_paired(measured, redrawn, label["kept", length], "cost_time")
            parts.append(f"{_cost(gained, 3)} at {length:.0%}")
    return f"Drawing anew lowers the error at equal time by {', '.join(parts)}."


def _finding(measured: pd.DataFrame) -> str:
    complete = measured.loc[measured["condition"] == LEARNED, "complete"].dropna().to_numpy(dtype=float)
    n_seeds = int((measured["condition"] == LEARNED).sum())
    when = f"never cover {COMPLETE:.0%} of the ratings"
    if len(complete):
        counted = in_seeds(len(complete), n_seeds)
        when = f"cover {COMPLETE:.0%} of the ratings after {told(complete, 1)} periods{counted}"
    costs = {name: pivot(measured, LEARNED, name) for name in ("lookups", "finding", "cost_time", "cost_sent")}
    return (
        f"Learned lists {when}. {told(costs['lookups'], 1)} messages are sent for each user's, "
        f"{told(costs['finding'], 2)}% of all; it costs {_cost(costs['cost_time'])} at equal time and "
        f"{_cost(costs['cost_sent'])} at equal messages."
    )


def _cost(values: np.ndarray, places: int = 4) -> str:
    return told(values, places, signed=True) if len(values) else "what cannot be told"


def _quitting(measured: pd.DataFrame, compared: Sequence[Condition], args: argparse.Namespace) -> list[str]:
    """What becomes of given and of learned lists while routers quit."""
    label = {each.kind: each.label for each in compared}
    kinds = {
        "given quit": "given",
        "learned quit": "learned and kept",
        "dropped quit": f"learned, and dropped after {args.patience:g} silent periods",
    }
    listed = []
    for kind, what in kinds.items():
        covered, cost = (pivot(measured, label[kind], column) for column in ("coverage", "cost_time"))
        listed.append(f"{what} {told(covered, 1)}% ({_cost(cost)})")
    found_again = _paired(measured, label["dropped quit"], label["learned quit"], "coverage")
    dearer = _paired(measured, label["dropped quit"], label["learned"], "cost_time")
    is_small = len(dearer) > 0 and float(dearer.mean()) <= SMALL
    return [
        f"While {args.quit:.0%} of the routers quit, users' lists cover at the end, and cost at equal time: "
        f"{', '.join(listed)}.",
        f"Dropping who is silent and asking again finds the routers of {told(found_again, 1)}% of the ratings; that "
        f"routers quit costs learned lists {_cost(dearer)} then, which is {'small' if is_small else 'not small'}.",
    ]


def _paired(measured: pd.DataFrame, condition: str, other: str, column: str) -> np.ndarray:
    return paired(measured, condition, other, column).dropna().to_numpy(dtype=float)


# -- the figure ----------------------------------------------------------------------------------------------------


def draw(this: Comparison, measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Cost against the length of a list, at equal time and at equal messages, and coverage against time."""
    figure, (left, middle, right) = new_figure(3)
    for ax, column, title in ((left, "cost_time", "At equal time"), (middle, "cost_sent", "At equal messages")):
        _draw_costs(ax, measured, compared, column)
        ax.set_title(f"{title}; bars: one deviation over seeds", loc="left", fontsize="medium")
    high = max(left.get_ylim()[1], middle.get_ylim()[1])
    for ax in (left, middle):
        ax.set_ylim(-high / 12, high)
    _draw_coverage(right, this, compared)
    return figure


def _draw_costs(ax: Axes, measured: pd.DataFrame, compared: Sequence[Condition], column: str) -> None:
    ax.axhspan(-SMALL, SMALL, color="0.9", lw=0, label=f"within {SMALL} of given lists")
    for kind, aside, colour, marker, line in (
        ("kept", 0.97, COLOURS[4], "o", "-"),
        ("redrawn", 1.03, COLOURS[5], "s", "--"),
    ):
        # A list of all is the same in both.
        here = [each for each in compared if each.kind == kind or each.length == 1.0]
        values = [pivot(measured, each.label, column) for each in here]
        x = [each.length * aside for each in here]  # beside each other, so that no bar covers another
        points(ax, x, values, f"random, {kind}", color=colour, marker=marker, linestyle=line)
    learned = pivot(measured, LEARNED, column)
    if len(learned):
        mean, around = float(learned.mean()), deviation(learned) if len(learned) > 1 else 0.0
        ax.axhline(mean, color=COLOURS[3], linestyle=":", linewidth=1.6, label="learned")
        ax.axhspan(mean - around, mean + around, color=COLOURS[3], alpha=0.2, lw=0)
    logarithmic(ax, x=True)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_xlabel("Length of a random list (of all nodes of the other role)")
    ax.set_ylabel("RMSE above given lists (rating points)")
    legend(ax, loc="upper right")


def _draw_coverage(ax: Axes, this: Comparison, compared: Sequence[Condition]) -> None:
    time = np.linspace(0.0, this.args.until, 181)
    period = this.args.period
    styles = {
        "given quit": ("given, routers quit", COLOURS[0], "-"),
        "learned": ("learned, nobody quits", COLOURS[3], ":"),
        "dropped quit": ("learned, routers quit, silent ones dropped", COLOURS[5], "--"),
        "learned quit": ("learned, routers quit, kept", COLOURS[4], "-."),
    }
    for kind, (name, colour, line) in styles.items():
        label = next(each.label for each in compared if each.kind == kind)
        band(ax, time / period, this.curves(label, "users_coverage", time), name, color=colour, linestyle=line)
    ax.set_ylim(0.0, 1.05)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    title = "Coverage; bands: one deviation over seeds"
    labelled(ax, "Simulated time (broadcast periods)", "Ratings whose router the user lists", title)
    legend(ax, loc="lower right")


if __name__ == "__main__":
    sys.exit(main())
