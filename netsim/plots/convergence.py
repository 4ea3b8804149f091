"""Error against simulated time, messages, bytes or updates."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, ScalarFormatter
from matplotlib.transforms import Bbox, offset_copy

from netsim.plots.labels import labels
from netsim.result import Result

__all__ = ["convergence"]

_AXES = {
    "time": ("time", "Simulated time (s)"),
    "messages": ("sent", "Messages sent"),
    "bytes": ("bytes_sent", "Data sent (B)"),
    "updates": (None, "Profile updates"),
}
_COLORS = 10  # of matplotlib's cycle; further lines are broken
_STYLES = ("-", "--", "-.", ":")
_WIDTH = 66  # letters in a row of the legend below the axes
_BELOW_AXES = 36  # points, past the numbers and the name of the axis
# Columns that every run has; what is left are the probes' own.
_ACCOUNTS = ("user_updates", "item_updates", "users_online", "routers_online", "sent")


def convergence(
    result: Result | Sequence[Result] | Mapping[str, Result],
    *,
    metrics: Sequence[str] | None = None,
    against: Literal["time", "messages", "bytes", "updates"] = "time",
    log: bool = False,
    references: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the error falls as a run goes on.

    Parameters
    ----------
    result : Result, sequence of Result, or mapping of label to Result
        Runs of a sequence are called by what tells their worlds and seeds apart, or else numbered.
    metrics : sequence of str, optional
        Columns of the probe table to draw. Default: all columns of errors (RMSE, MAE) that the runs measured.
    against : {"time", "messages", "bytes", "updates"}
        What the horizontal axis shows.
    log : bool
        Whether the horizontal axis is logarithmic; the measurement at 0 is then left out.
    references : mapping of label to float, optional
        Errors to draw as horizontal lines, such as those of other methods.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure. Where the legend would cover a line and the figure has a layout engine
        that makes room for it (`layout="constrained"`), it stands below the axes.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is no run, or a metric or `against` is not there; the message lists what is.
    """
    if isinstance(metrics, str):
        raise ValueError(f"metrics must be a sequence of column names, got {metrics!r}; write [{metrics!r}]")
    results = _by_label(result)
    if against not in _AXES:
        raise ValueError(f"against must be one of {', '.join(_AXES)}, got {against!r}")
    chosen = {label: _chosen(each.probes, metrics) for label, each in results.items()}
    drawn = {_readable(metric) for metrics_of_run in chosen.values() for metric in metrics_of_run}
    own = ax is None
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for label, each in results.items():
        table = each.probes
        x = _horizontal(table, against)
        keep = x > 0 if log else x >= 0
        for metric in chosen[label]:
            name = _readable(metric)
            told = name if not label else label if len(drawn) == 1 else f"{label}: {name}"
            style = _STYLES[len(ax.lines) // _COLORS % len(_STYLES)]
            ax.plot(x[keep], table[metric][keep], label=_wrapped(told), linewidth=1.6, linestyle=style)
    for n, (label, value) in enumerate((references or {}).items()):
        told = _wrapped(f"{label}: {value:g}")
        ax.axhline(value, color="0.35", linestyle=("--", ":", "-.")[n % 3], linewidth=1.2, label=told)
    ax.set_xlabel(_AXES[against][1])
    errors = all(_is_error(metric) for metrics_of_run in chosen.values() for metric in metrics_of_run)
    ranks = all("_at_" in metric for metrics_of_run in chosen.values() for metric in metrics_of_run)
    named = next(iter(drawn)) if len(drawn) == 1 else "Error" if errors else "Ranking metric" if ranks else "Measured"
    ax.set_ylabel(f"{named} (rating points)" if errors else named)
    if log:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(ScalarFormatter() if against == "time" else EngFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
    elif against != "time":
        ax.xaxis.set_major_formatter(EngFormatter())
    ax.grid(alpha=0.3)
    _place_legend(ax, may_grow=own)
    return ax


def _by_label(result: Result | Sequence[Result] | Mapping[str, Result]) -> dict[str, Result]:
    """Runs by label; a single one has none."""
    if isinstance(result, Result):
        return {"": result}
    runs = list(result.values() if isinstance(result, Mapping) else result)
    if not runs:
        raise ValueError("result must hold at least one Result, got none")
    for run in runs:
        if not isinstance(run, Result):
            raise ValueError(f"result must hold Results, as simulate returns them, got {type(run).__name__}")
    if isinstance(result, Mapping):
        return dict(result)
    return dict(zip(labels(runs), runs, strict=True)) if len(runs) > 1 else {"": runs[0]}


def _wrapped(label: str) -> str:
    return textwrap.fill(label, 44)


def _place_legend(ax: Axes, *, may_grow: bool) -> None:
    """Put the legend where it covers least, or below the axes where it would still cover a line.

    A figure that may grow gets the height of the legend more; in another, more than half of it is too much.
    """
    inside = ax.legend(frameon=False)
    inside.set_in_layout(False)  # the axes need not make room for it
    figure = ax.figure.canvas.figure
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()  # only then is it known where the legend stands
    if not _covers(ax, inside.get_window_extent()):
        return
    widest = max(len(line) for text in inside.get_texts() for line in text.get_text().split("\n"))
    below = ax.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=offset_copy(ax.transAxes, figure, y=-_BELOW_AXES, units="points"),
        ncols=max(1, min(len(inside.get_texts()), _WIDTH // (widest + 6))),
        borderpad=0,
    )
    height = below.get_window_extent().height / figure.dpi
    if may_grow:
        figure.set_figheight(figure.get_figheight() + height)
    elif height > figure.get_figheight() / 2:
        ax.legend(frameon=False).set_in_layout(False)


def _covers(ax: Axes, legend: Bbox) -> bool:
    """Whether a legend covers a line of the axes, or is larger than they are."""
    room = ax.get_window_extent()
    if legend.width > room.width or legend.height > room.height:
        return True
    paths = [line.get_path().transformed(line.get_transform()) for line in ax.lines]
    return any(np.size(path.vertices) > 0 and path.intersects_bbox(legend, filled=False) for path in paths)


def _chosen(table: pd.DataFrame, metrics: Sequence[str] | None) -> list[str]:
    measured = [str(name) for name in table.columns[1:]]
    own = measured[: measured.index(_ACCOUNTS[0])] if _ACCOUNTS[0] in measured else measured
    if metrics is None:
        errors = [name for name in own if _is_error(name)]
        if not errors:
            raise ValueError(
                "the run measured no error; pass probes=[rmse(test)] to simulate, or name metrics=[...] among "
                + (", ".join(own + list(_ACCOUNTS)) if own else "the columns of its probe table")
            )
        return errors
    for metric in metrics:
        if metric not in measured:
            raise ValueError(f"metrics names {metric!r}, which the run did not measure; it has {', '.join(measured)}")
    return list(metrics)


def _is_error(metric: str) -> bool:
    return metric.endswith(("rmse", "mae"))


def _horizontal(table: pd.DataFrame, against: str) -> pd.Series:
    column = _AXES[against][0]
    if column is None:
        return table["user_updates"] + table["item_updates"]
    return table[column]


def _readable(metric: str) -> str:
    words = metric.replace("rmse", "RMSE").replace("mae", "MAE").replace("ndcg", "NDCG").split("_")
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])
