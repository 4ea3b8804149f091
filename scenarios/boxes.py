"""Box plots of what several methods measured over replications, a panel for each condition."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from scenarios.comparison import COLOURS

__all__ = ["boxes", "panels"]

# As many as the second paper compares methods, and some.
BOX_COLOURS = (*COLOURS[1:], "0.35", "0.6", "0.85")
LETTERS = 11  # of a title that fit into an inch
MARK: dict[str, Any] = {
    "marker": "D",
    "markersize": 5,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "linestyle": "none",
}


def boxes(
    values: Mapping[str, ArrayLike],
    *,
    marks: Mapping[str, float] | None = None,
    colours: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a box for each group of values: quartiles, whiskers to 1.5 of their distance, and what lies beyond.

    Parameters
    ----------
    values : mapping of label to float64, shape (n,)
        From left to right. A group without a value keeps its place, empty.
    marks : mapping of label to float, optional
        A value to compare with, drawn as a diamond.
    colours : mapping of label to colour, optional
        Default: one after another.
    ax : matplotlib.axes.Axes, optional
        Default: those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    for at, (label, given) in enumerate(values.items()):
        found = np.asarray(given, dtype=np.float64)
        found = found[~np.isnan(found)]
        colour = (colours or {}).get(label, BOX_COLOURS[at % len(BOX_COLOURS)])
        if len(found):
            ax.boxplot(
                [found],
                positions=[at],
                widths=0.65,
                patch_artist=True,
                boxprops={"facecolor": colour, "alpha": 0.6},
                medianprops={"color": "black"},
                flierprops={"marker": ".", "markersize": 4},
                manage_ticks=False,
            )
        mark = (marks or {}).get(label)
        if mark is not None and not np.isnan(mark):
            ax.plot([at], [mark], **MARK)
    ax.set_xticks(range(len(values)), list(values), rotation=45, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(values) - 0.4)
    ax.grid(axis="y", alpha=0.3)
    return ax


def panels(
    rows: pd.DataFrame,
    *,
    rows_by: str | None = None,
    columns_by: str | None = None,
    box: str = "method",
    titles: Mapping[Any, str] | None = None,
    colours: Mapping[Any, str] | None = None,
    marks: pd.DataFrame | None = None,
    marked: str = "reference",
    label: str = "",
    zero: bool = False,
    sharey: bool = True,
) -> Figure:
    """Draw a grid of panels of boxes.

    Parameters
    ----------
    rows : pandas.DataFrame
        Tidy: a column `value`, and those that are named here.
    rows_by, columns_by : str, optional
        Columns whose values are the rows and columns of panels, in the order of first appearance.
    box : str
        Column whose values are the boxes of a panel.
    titles : mapping, optional
        What values of these columns are called; a value that is not in it stands for itself.
    colours : mapping, optional
        Colours of boxes, by their values. Default: one after another.
    marks : pandas.DataFrame, optional
        Values to compare with: the same columns, and `value`.
    marked : str
        What these are, for the legend.
    label : str
        Of the vertical axes.
    zero : bool
        Whether to draw a line at 0.
    sharey : bool
        Whether the panels of a row have one vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
    """
    called = titles or {}
    down, across = _levels(rows, rows_by), _levels(rows, columns_by)
    names = list(dict.fromkeys(rows[box]))
    coloured = {called.get(name, str(name)): colour for name, colour in (colours or {}).items()}
    width = max(2.6, 0.42 * len(names) + 1.0)
    figure, grid = plt.subplots(
        len(down),
        len(across),
        figsize=(min(max(6.0, width * len(across)), 18.0), 1.2 + 2.7 * len(down)),
        squeeze=False,
        sharex=True,
        sharey="row" if sharey else False,
        layout="constrained",
    )
    any_mark = False
    for i, row in enumerate(down):
        for j, column in enumerate(across):
            ax = grid[i, j]
            here = _where(rows, {rows_by: row, columns_by: column})
            there = _where(marks, {rows_by: row, columns_by: column}) if marks is not None else None
            values = {called.get(name, str(name)): here.loc[here[box] == name, "value"] for name in names}
            points = {}
            if there is not None:
                points = {
                    called.get(name, str(name)): float(v) for name, v in zip(there[box], there["value"], strict=True)
                }
            any_mark = any_mark or any(name in values for name in points)
            boxes(values, marks=points, colours=coloured, ax=ax)
            if zero:
                ax.axhline(0, color="0.35", linewidth=0.9, linestyle="--")
            titled = [called.get(level, str(level)) for level in (column, row) if level is not None]
            wide = len(", ".join(titled)) > LETTERS * width
            ax.set_title((",\n" if wide else ", ").join(titled), fontsize="medium")
            if j == 0:
                ax.set_ylabel(label)
    if any_mark:
        handle = Line2D([], [], label=marked, **MARK)
        figure.legend(handles=[handle], loc="outside upper right", frameon=False, fontsize="small")
    return figure


def _levels(rows: pd.DataFrame, column: str | None) -> list[Any]:
    return [None] if column is None else list(dict.fromkeys(rows[column]))


def _where(rows: pd.DataFrame, levels: Mapping[str | None, Any]) -> pd.DataFrame:
    for column, level in levels.items():
        if column is not None:
            rows = rows[rows[column] == level]
    return rows
