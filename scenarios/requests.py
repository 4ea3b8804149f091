"""Recommendation requests while routers come and go: how many are served, how fast, and how good the predictions are.

As section 3 of the first seed paper has it, a user asks the router of an item for its profile and predicts his rating
as the inner product with his own. Users ask for items that they have not rated, at random times. An answer that does
not come is asked for again, or given up. Routers are down for a share of the time, in exponential sessions, and keep
their profiles; or they quit for good, and their items are lost, start anew on another router, or are handed over.

Requests of the second half of the run count. The error of the predictions served stands beside that of the profiles
when they were asked for, on all missing ratings: what the profiles would give to a user who could read them all.
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

from netsim import Recommendations, rmse
from netsim.state import WISHES
from scenarios import study
from scenarios.churn import FATES, add_cycle, add_quit, exponential, lifetimes
from scenarios.comparison import (
    COLOURS,
    Column,
    Comparison,
    Report,
    band,
    distinct,
    ground,
    labelled,
    legend,
    logarithmic,
    new_figure,
    parser,
    pivot,
    points,
    told,
)

__all__ = ["list_quality", "main", "window"]

SERVED, REFUSED = "served", "refused"
STAY = "stay"
# Length of the lists that are made of what was served.
LIST = 5


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    made = parser("requests", __doc__, until=600.0, size=100)
    group = made.add_argument_group("requests and churn")
    group.add_argument(
        "--available", type=availabilities, default="0.5,0.7,0.9,1", metavar="SHARE,...", help="of the time, routers"
    )
    add_cycle(group)
    add_quit(group, 0.3)
    group.add_argument(
        "--retries", type=some_retries, default="0,2", metavar="N,...", help="how often a user asks again, 0 to 15"
    )
    group.add_argument(
        "--timeout", type=study.positive, default=5.0, metavar="SECONDS", help="after which a user asks again"
    )
    group.add_argument(
        "--gap", type=study.positive, default=20.0, metavar="SECONDS", help="mean time between two requests of a user"
    )
    return study.main(made, run, argv)


def availabilities(text: str) -> list[float]:
    """Argument type: distinct shares > 0 and up to 1, separated by commas, in descending order."""
    return distinct(text, lambda each: 0 < each <= 1, "fractions above 0 and up to 1, such as 1 or 0.5,1")[::-1]


def some_retries(text: str) -> list[int]:
    """Argument type: distinct integers from 0 to 15, in ascending order."""
    chosen = sorted(study.listed(text))
    if not chosen or chosen[0] < 0 or chosen[-1] > 15:
        raise argparse.ArgumentTypeError(f"expected distinct integers from 0 to 15, such as 0,2, got {text!r}")
    return chosen


@dataclass(frozen=True)
class Condition:
    """How routers come and go, and how often users ask.

    Attributes
    ----------
    label : str
    available : float
        Share of the time that a router is online, until it quits.
    retries : int
    fate : str
        Of the items of a router that quits; STAY where none does.
    changes : dict
        Arguments of the world beside the requests.
    """

    label: str
    available: float
    retries: int
    fate: str
    changes: dict[str, Any]


def conditions(args: argparse.Namespace) -> list[Condition]:
    """All ways in which routers come and go, the most available first; the last are departures."""
    made = []
    for available in args.available:
        churn = None if available == 1 else exponential(args.cycle * args.period, 1 - available)
        for retries in args.retries:
            label = f"{available:.0%} available, {_retries(retries)}"
            made.append(Condition(label, available, retries, STAY, {"router_churn": churn}))
    lifetime, retries = lifetimes(args), args.retries[-1]
    for fate, rehosting in FATES.items():
        changes = {"router_lifetime": lifetime, "rehosting": rehosting}
        made.append(Condition(f"{args.quit:.0%} quit, items {fate}, {_retries(retries)}", 1.0, retries, fate, changes))
    return made


def _retries(number: int) -> str:
    return "no retry" if number == 0 else f"{number} retr{'y' if number == 1 else 'ies'}"


def window(args: argparse.Namespace) -> tuple[float, float]:
    """From when until when, in seconds, the requests that count are asked: all of them have ended by --until."""
    begin, end = args.until / 2, args.until - args.timeout * (1 + args.retries[-1])
    if end <= begin:
        raise ValueError(
            f"--until {args.until:g}: requests may take {args.until - end:g} s, so none of its second half has surely "
            "ended; give more, or a shorter --timeout"
        )
    return begin, end


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    compared = conditions(args)
    window(args)
    this = Comparison("requests", args, report=lambda done: report(done, compared), n_conditions=len(compared))
    for seed in args.seeds:
        common = ground(args, seed)
        probes = [rmse(common.data.test)]
        for each in compared:
            wanted = Recommendations(common.data.test, args.gap, timeout=args.timeout, retries=each.retries)
            result = this.measure(
                each.label, seed, common.world.replace(recommendations=wanted, **each.changes), probes
            )
            if counted(result.recommendations, args).empty:
                raise ValueError(f"--gap {args.gap:g}: nobody asked in the second half of the run; give less")
    return this.finish()


def counted(requests: pd.DataFrame, args: argparse.Namespace) -> pd.DataFrame:
    """The requests that count, of the table of a result."""
    begin, end = window(args)
    return requests[(requests["asked"] >= begin) & (requests["asked"] < end)]


# -- what was found ------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("success", "served (%)", 1),
    Column("refused", "refused (%)", 1),
    Column("attempts", "queries each", 2),
    Column("response_p50", "response p50 (s)", 2),
    Column("response_p95", "p95", 2),
    Column("served_rmse", "RMSE served", 4),
    Column("profile_rmse", "of the profiles", 4),
    Column("gap", "difference", 4, signed=True),
    Column("list_quality", f"list of {LIST} (%)", 1),
)


def report(this: Comparison, compared: Sequence[Condition]) -> Report:
    """Compare what users got."""
    args = this.args
    measured = pd.DataFrame([found(this, each, seed) for each in compared for seed in this.complete])
    heading = (
        f"Requests of the second half of {args.until:g} simulated seconds; a user asks every {args.gap:g} s on average "
        f"and waits {args.timeout:g} s each time. Mean ± standard deviation of {len(this.complete)} seeds.\n"
        f"Refused at once: one more where a user has {WISHES} open. "
        "Response: from asking to the prediction, of those served. Of the profiles: error on all missing ratings when "
        f"they were asked for.\nList of {LIST}: true ratings of the {LIST} best predictions that a user was served, in "
        "% of those of the best that he asked for."
    )
    return Report(measured, COLUMNS, heading, answer(measured, compared), draw(this, measured, compared))


def found(this: Comparison, each: Condition, seed: int) -> dict[str, Any]:
    """What users got with one seed."""
    requests = counted(this.result(each.label, seed).recommendations, this.args)
    served = requests[requests["outcome"] == SERVED]
    response = (served["finished"] - served["asked"]).to_numpy()
    probes = this.probes(each.label, seed)
    squared = np.interp(served["asked"], probes["time"], probes["test_rmse"] ** 2)
    some = len(served) > 0
    served_rmse = float(np.sqrt(((served["predicted"] - served["rating"]) ** 2).mean()))
    profile_rmse = float(np.sqrt(squared.mean())) if some else math.nan
    return {
        "condition": each.label,
        "seed": seed,
        "available": each.available,
        "retries": each.retries,
        "fate": each.fate,
        "requests": len(requests),
        "success": 100 * len(served) / len(requests),
        "refused": 100 * float((requests["outcome"] == REFUSED).mean()),
        "attempts": float(requests["attempts"].mean()),
        "response_p50": float(np.quantile(response, 0.5)) if some else math.nan,
        "response_p95": float(np.quantile(response, 0.95)) if some else math.nan,
        "served_rmse": served_rmse,
        "profile_rmse": profile_rmse,
        "gap": served_rmse - profile_rmse,
        "list_quality": list_quality(requests),
    }


def list_quality(requests: pd.DataFrame, n: int = LIST) -> float:
    """How good the lists of the best predictions served are, in % of the best lists that were possible.

    Parameters
    ----------
    requests : pandas.DataFrame
        As in `Result.recommendations`; of an item asked for several times the last answer counts.
    n : int
        Length of a list; a user who was served less has a shorter one.

    Returns
    -------
    float
        Sum of the true ratings of all lists over that of the highest ratings among the items asked for.
    """
    asked = requests.drop_duplicates(["user", "item"])
    best = asked.sort_values("rating", ascending=False, kind="stable").groupby("user").head(n)
    served = requests[requests["outcome"] == SERVED].drop_duplicates(["user", "item"], keep="last")
    lists = served.sort_values("predicted", ascending=False, kind="stable").groupby("user").head(n)
    return 100 * float(lists["rating"].sum() / best["rating"].sum())


def answer(measured: pd.DataFrame, compared: Sequence[Condition]) -> str:
    """The answer in words, from the numbers."""
    staying = [each for each in compared if each.fate == STAY]
    least, most = staying[0].retries, staying[-1].retries
    parts = []
    for retries in dict.fromkeys((least, most)):
        shown = [
            f"{told(pivot(measured, each.label, 'success'), 1)}% at {each.available:.0%}"
            for each in staying
            if each.retries == retries
        ]
        parts.append(f"Served by the availability of routers, with {_retries(retries)}: {', '.join(shown)}.")
    slow = pivot(measured, staying[-1].label, "response_p95")
    if len(slow):
        parts.append(
            f"At {staying[-1].available:.0%} with {_retries(most)}, 95% of those served have it within {told(slow, 2)} "
            "s."
        )
    gaps = {each.label: pivot(measured, each.label, "gap") for each in staying}
    means = {label: float(values.mean()) for label, values in gaps.items() if len(values)}
    if means:
        widest = max(means, key=lambda label: abs(means[label]))
        parts.append(
            f"Where routers stay, the error of what is served differs from that of the profiles by "
            f"{told(gaps[widest], 4, signed=True)} at most ({widest})."
        )
    parts += [_departed(measured, each) for each in compared if each.fate != STAY]
    return " ".join(parts)


def _departed(measured: pd.DataFrame, each: Condition) -> str:
    success, error = pivot(measured, each.label, "success"), pivot(measured, each.label, "served_rmse")
    with_error = f", with an error of {told(error, 4)}" if len(error) else ""
    return f"{each.label}: {told(success, 1)}% are served{with_error}."


# -- the figure ----------------------------------------------------------------------------------------------------

DEPARTED = {"lost": (1, "--"), "fresh": (6, "-."), "handed over": (2, ":")}
STYLES = ((5, "o", "-"), (4, "s", "--"), (3, "^", "-."), (6, "D", ":"))


def draw(this: Comparison, measured: pd.DataFrame, compared: Sequence[Condition]) -> Figure:
    """Share served against the availability, when answers come, and the errors of what is served."""
    figure, (left, middle, right) = new_figure(3)
    _draw_success(left, measured, compared)
    _draw_responses(middle, this, compared)
    _draw_errors(right, this, compared)
    logarithmic(right, y=bool(measured["served_rmse"].notna().any()))
    return figure


def _draw_success(ax: Axes, measured: pd.DataFrame, compared: Sequence[Condition]) -> None:
    staying = [each for each in compared if each.fate == STAY]
    tried = sorted({each.available for each in staying})
    ax.plot(tried, [100 * each for each in tried], color="0.6", linewidth=0.8, label="as available")
    for number, retries in enumerate(sorted({each.retries for each in staying})):
        here = [each for each in staying if each.retries == retries]
        colour, marker, line = STYLES[number % len(STYLES)]
        values = [pivot(measured, each.label, "success") for each in here]
        x = [each.available for each in here]
        points(ax, x, values, _retries(retries), color=COLOURS[colour], marker=marker, linestyle=line)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.yaxis.set_major_formatter(PercentFormatter(100.0, decimals=0))
    labelled(ax, "Time that a router is online", "Requests served", "Served; bars: one deviation over seeds")
    legend(ax)


def _shown(compared: Sequence[Condition]) -> list[tuple[Condition, str, str]]:
    """Conditions of the other panels, with colour and line: with most retries."""
    staying = [each for each in compared if each.fate == STAY and each.retries == compared[-1].retries]
    colours = (COLOURS[0], COLOURS[5], COLOURS[3], COLOURS[4])
    made = [(each, colours[k % len(colours)], "-") for k, each in enumerate(staying)]
    return made + [
        (each, COLOURS[DEPARTED[each.fate][0]], DEPARTED[each.fate][1]) for each in compared if each.fate != STAY
    ]


def _named(each: Condition) -> str:
    """Label without the retries, of which a panel shows only one kind."""
    return each.label.rpartition(", ")[0]


def _draw_responses(ax: Axes, this: Comparison, compared: Sequence[Condition]) -> None:
    args, retries = this.args, compared[-1].retries
    longest = args.timeout * (1 + retries)
    at = np.geomspace(longest / 200, longest, 200)
    for each, colour, line in _shown(compared):
        runs = []
        for seed in this.complete:
            requests = counted(this.result(each.label, seed).recommendations, args)
            times = np.where(requests["outcome"] == SERVED, requests["finished"] - requests["asked"], np.inf)
            runs.append(100 * np.searchsorted(np.sort(times), at, side="right") / len(times))
        band(ax, at, np.array(runs), _named(each), color=colour, linestyle=line)
    logarithmic(ax, x=True)
    ax.yaxis.set_major_formatter(PercentFormatter(100.0, decimals=0))
    title = f"When, with {_retries(retries)}; bands: one deviation"
    labelled(ax, "Seconds since asking", "Requests served by then", title)
    legend(ax)


def _draw_errors(ax: Axes, this: Comparison, compared: Sequence[Condition]) -> None:
    edges = np.linspace(0, this.args.until, 13)
    middle = (edges[1:] + edges[:-1]) / 2
    for each, colour, line in _shown(compared):
        runs = np.array([_errors(this.result(each.label, seed).recommendations, edges) for seed in this.complete])
        band(ax, middle, runs, _named(each), color=colour, linestyle=line)
    labelled(ax, "Simulated time (s)", "RMSE of predictions served (rating points)", "Error of what is served")
    legend(ax)


def _errors(requests: pd.DataFrame, edges: np.ndarray) -> np.ndarray:
    """Error of what was served, by the time of asking; NaN where nothing was."""
    served = requests[requests["outcome"] == SERVED]
    part = np.digitize(served["asked"], edges) - 1
    squared = ((served["predicted"] - served["rating"]) ** 2).to_numpy()
    n_parts = len(edges) - 1
    count = np.bincount(part, minlength=n_parts)[:n_parts]
    total = np.bincount(part, weights=squared, minlength=n_parts)[:n_parts]
    errors: np.ndarray = np.sqrt(np.where(count > 0, total, np.nan) / np.maximum(count, 1))
    return errors


if __name__ == "__main__":
    sys.exit(main())
