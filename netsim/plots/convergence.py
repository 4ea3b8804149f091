"""Error against simulated time, messages, bytes or updates."""

from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter, ScalarFormatter

from netsim.result import Result

__all__ = ["convergence"]

_AXES = {
    "time": ("time", "Simulated time (s)"),
    "messages": ("sent", "Messages sent"),
    "bytes": ("bytes_sent", "Data sent (B)"),
    "updates": (None, "Profile updates"),
}
# Columns that every run has; what is left are the probes' own.
_ACCOUNTS = ("user_updates", "item_updates", "users_online", "routers_online", "sent")


def convergence(
    result: Result | Mapping[str, Result],
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
    result : Result, or mapping of label to Result
    metrics : sequence of str, optional
        Columns of the probe table to draw. Default: all columns of errors (RMSE, MAE) that the runs measured.
    against : {"time", "messages", "bytes", "updates"}
        What the horizontal axis shows.
    log : bool
        Whether the horizontal axis is logarithmic; the measurement at 0 is then left out.
    references : mapping of label to float, optional
        Errors to draw as horizontal lines, such as those of other methods.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If a metric or `against` is not there; the message lists what is.
    """
    if isinstance(metrics, str):
        raise ValueError(f"metrics must be a sequence of column names, got {metrics!r}; write [{metrics!r}]")
    results = {"": result} if isinstance(result, Result) else dict(result)
    if not results:
        raise ValueError("result must hold at least one Result, got an empty mapping")
    if against not in _AXES:
        raise ValueError(f"against must be one of {', '.join(_AXES)}, got {against!r}")
    chosen = {label: _chosen(each.probes, metrics) for label, each in results.items()}
    drawn = {_readable(metric) for metrics_of_run in chosen.values() for metric in metrics_of_run}
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for label, each in results.items():
        table = each.probes
        x = _horizontal(table, against)
        keep = x > 0 if log else x >= 0
        for metric in chosen[label]:
            name = _readable(metric)
            told = name if not label else label if len(drawn) == 1 else f"{label}: {name}"
            ax.plot(x[keep], table[metric][keep], label=told, linewidth=1.6)
    for n, (label, value) in enumerate((references or {}).items()):
        ax.axhline(value, color="0.35", linestyle=("--", ":", "-.")[n % 3], linewidth=1.2, label=f"{label}: {value:g}")
    ax.set_xlabel(_AXES[against][1])
    errors = all(_is_error(metric) for metrics_of_run in chosen.values() for metric in metrics_of_run)
    named = next(iter(drawn)) if len(drawn) == 1 else "Error" if errors else "Measured"
    ax.set_ylabel(f"{named} (rating points)" if errors else named)
    if log:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(ScalarFormatter() if against == "time" else EngFormatter())
        ax.xaxis.set_minor_formatter(NullFormatter())
    elif against != "time":
        ax.xaxis.set_major_formatter(EngFormatter())
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    return ax


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
    words = metric.replace("rmse", "RMSE").replace("mae", "MAE").split("_")
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])
