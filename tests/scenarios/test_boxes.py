import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import PathPatch

from scenarios.boxes import boxes, panels


def drawn(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def labels(ax):
    return [each.get_text() for each in ax.get_xticklabels()]


def rows():
    made = [
        {"replication": r, "k": k, "attack": a, "method": m, "value": float(r + k)}
        for r in range(4)
        for k in (3, 5)
        for a in ("x", "y")
        for m in ("one", "two", "three")
    ]
    return pd.DataFrame(made)


def test_a_box_has_the_quartiles_of_its_values():
    ax = boxes({"a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": [2.0, np.nan, 2.0]})
    assert labels(ax) == ["a", "b"]
    first, second = drawn(ax)
    assert first.get_path().get_extents().intervaly.tolist() == [2.0, 4.0]
    assert second.get_path().get_extents().intervaly.tolist() == [2.0, 2.0]


def test_a_group_without_a_value_keeps_its_place():
    ax = boxes({"a": [1.0, 2.0], "b": [], "c": [1.0, 3.0]})
    assert labels(ax) == ["a", "b", "c"]
    assert [round(box.get_path().get_extents().intervalx.mean()) for box in drawn(ax)] == [0, 2]


def test_marks_stand_on_their_boxes():
    ax = boxes({"a": [1.0, 2.0], "b": [1.0]}, marks={"b": 7.0, "a": float("nan"), "c": 1.0})
    (mark,) = [line for line in ax.lines if line.get_marker() == "D"]
    assert mark.get_xydata().tolist() == [[1.0, 7.0]]


def test_colours_can_be_given_and_axes_are_used():
    _, ax = plt.subplots()
    assert boxes({"a": [1.0, 2.0]}, colours={"a": "#ff0000"}, ax=ax) is ax
    assert drawn(ax)[0].get_facecolor()[:3] == (1.0, 0.0, 0.0)


def test_a_value_has_its_colour_in_all_panels_under_whatever_name():
    figure = panels(rows(), columns_by="k", titles={"one": "First"}, colours={"one": "#ff0000", "three": "#0000ff"})
    for ax in figure.axes:
        first, _, third = drawn(ax)
        assert first.get_facecolor()[:3] == (1.0, 0.0, 0.0)
        assert third.get_facecolor()[:3] == (0.0, 0.0, 1.0)


def test_panels_are_conditions():
    figure = panels(rows(), rows_by="attack", columns_by="k", titles={"x": "X", "one": "First", 3: "three"}, label="y")
    assert [ax.get_title() for ax in figure.axes] == ["three, X", "5, X", "three, y", "5, y"]
    assert all(len(drawn(ax)) == 3 for ax in figure.axes)
    assert labels(figure.axes[2]) == ["First", "two", "three"]
    assert [ax.get_ylabel() for ax in figure.axes] == ["y", "", "y", ""]
    box = drawn(figure.axes[1])[0].get_path().get_extents().intervaly
    assert box.tolist() == np.percentile([5.0, 6.0, 7.0, 8.0], [25, 75]).tolist()


def test_one_panel_without_conditions():
    figure = panels(rows(), zero=True)
    (ax,) = figure.axes
    assert any(line.get_linestyle() == "--" and set(line.get_ydata()) == {0} for line in ax.lines)


def test_marks_of_a_condition_stand_in_its_panel():
    marks = pd.DataFrame({"k": [5], "method": ["two"], "value": [9.0]})
    figure = panels(rows(), columns_by="k", marks=marks, marked="known")
    found = [[line for line in ax.lines if line.get_marker() == "D"] for ax in figure.axes]
    assert [len(each) for each in found] == [0, 1]
    assert found[1][0].get_xydata().tolist() == [[1.0, 9.0]]
    assert [each.get_text() for each in figure.legends[0].get_texts()] == ["known"]


def test_no_legend_where_no_mark_is_drawn():
    marks = pd.DataFrame({"k": [10], "method": ["two"], "value": [9.0]})
    assert not panels(rows(), columns_by="k", marks=marks).legends
