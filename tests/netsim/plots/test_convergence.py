import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from algorithms.synthetic import low_rank
from netsim import Learning, Result, World, complete, mae, plots, rmse, simulate

mpl.use("Agg")

# What the horizontal axis shows, its label, and how it follows from the probe table.
AXES = [
    ("time", "Simulated time (s)", lambda table: table["time"]),
    ("messages", "Messages sent", lambda table: table["sent"]),
    ("bytes", "Data sent (B)", lambda table: table["bytes_sent"]),
    ("updates", "Profile updates", lambda table: table["user_updates"] + table["item_updates"]),
]


def made(**columns):
    """Result with a probe table of four rows, the probes' own columns as given."""
    table = pd.DataFrame(
        {
            "time": [0.0, 1.5, 3.0, 4.5],
            **columns,
            "user_updates": [0, 4, 9, 13],
            "item_updates": [0, 2, 5, 10],
            "users_online": [3, 3, 2, 3],
            "routers_online": [2, 2, 2, 2],
            "sent": [0, 7, 15, 31],
            "bytes_sent": [0, 700, 1500, 3100],
        }
    )
    empty = np.empty((0, 1))
    return Result(
        configuration={},
        seed=1,
        until=4.5,
        time=4.5,
        probes=table,
        accounts=pd.DataFrame(),
        user_profiles=empty,
        item_profiles=empty,
        users=pd.DataFrame(),
        routers=pd.DataFrame(),
        items=pd.DataFrame(),
        disclosed=np.empty(0, dtype=np.int64),
        stopped=None,
        wall_seconds=0.1,
        interrupted=False,
        engine="events",
        engine_reason="",
        versions={},
    )


TEST_RMSE = {"test_rmse": [1.6, 1.2, 1.1, 1.05]}
SEVERAL = TEST_RMSE | {"test_mae": [1.3, 1.0, 0.9, 0.8], "objective": [90.0, 80.0, 70.0, 60.0], "rmse": [1.5] * 4}


@pytest.fixture(autouse=True)
def _no_windows(monkeypatch):
    def show(*args, **kwargs):
        raise AssertionError("a plot must not call plt.show")

    monkeypatch.setattr(plt, "show", show)
    monkeypatch.setattr(plt.Figure, "show", show)
    yield
    plt.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def data(ax):
    return [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.lines]


@pytest.mark.parametrize(("against", "label", "expected"), AXES)
def test_draws_the_probe_table_against_each_axis(against, label, expected):
    result = made(**SEVERAL)
    ax = plots.convergence(result, against=against)
    x = expected(result.probes).tolist()
    assert data(ax) == [(x, SEVERAL[name]) for name in ("test_rmse", "test_mae", "rmse")]
    assert ax.get_xlabel() == label
    assert ax.get_xscale() == "linear"
    assert ax.get_yscale() == "linear"


@pytest.mark.parametrize(("against", "label", "expected"), AXES)
def test_a_logarithmic_axis_leaves_out_what_stands_at_zero(against, label, expected):
    result = made(**TEST_RMSE)
    ax = plots.convergence(result, against=against, log=True)
    assert ax.get_xscale() == "log"
    assert data(ax) == [(expected(result.probes).tolist()[1:], TEST_RMSE["test_rmse"][1:])]
    assert ax.get_xlabel() == label
    ax.figure.canvas.draw()  # no warning, which would be an error here


def test_a_real_run_is_drawn_point_by_point():
    synthetic = low_rank(8, 6, rank=2, missing=0.4, seed=1)
    world = World(synthetic.train, complete(3), learning=Learning(rank=2))
    result = simulate(
        world, until=30.0, seed=1, every=5.0, engine="events", probes=[rmse(synthetic.test), mae(synthetic.test)]
    )
    ax = plots.convergence(result, against="messages")
    table = result.probes
    assert len(table) == 7
    assert data(ax) == [(table["sent"].tolist(), table[name].tolist()) for name in ("test_rmse", "test_mae")]
    assert legend(ax) == ["Test RMSE", "Test MAE"]


def test_legend_names_the_errors_in_words():
    assert legend(plots.convergence(made(**SEVERAL))) == ["Test RMSE", "Test MAE", "RMSE"]


@pytest.mark.parametrize("metrics", [["test_rmse"], ["test_rmse", "test_mae"], ["test_mae", "rmse"]])
def test_the_vertical_axis_of_errors_names_their_unit(metrics):
    ax = plots.convergence(made(**SEVERAL), metrics=metrics)
    assert "rating points" in ax.get_ylabel()


def test_the_vertical_axis_of_one_error_names_it():
    assert "Test RMSE" in plots.convergence(made(**TEST_RMSE)).get_ylabel()


@pytest.mark.parametrize(
    "metrics", [["objective"], ["sent"], ["objective", "sent"], ["users_online", "routers_online"]]
)
def test_the_vertical_axis_of_other_columns_does_not_speak_of_errors(metrics):
    label = plots.convergence(made(**SEVERAL), metrics=metrics).get_ylabel()
    assert "Error" not in label
    assert "rating points" not in label


def test_metrics_chooses_columns_and_their_order():
    ax = plots.convergence(made(**SEVERAL), metrics=["objective", "test_rmse"])
    assert [y for _, y in data(ax)] == [SEVERAL["objective"], SEVERAL["test_rmse"]]
    assert legend(ax) == ["Objective", "Test RMSE"]


def test_a_mapping_draws_every_run_under_its_label():
    slow = {"test_rmse": [1.7, 1.6, 1.5, 1.4]}
    ax = plots.convergence({"fast": made(**TEST_RMSE), "slow": made(**slow)})
    assert [y for _, y in data(ax)] == [TEST_RMSE["test_rmse"], slow["test_rmse"]]
    assert legend(ax) == ["fast", "slow"]  # the vertical axis names the error
    assert "Test RMSE" in ax.get_ylabel()


def test_runs_with_several_errors_are_told_apart_by_both():
    two = TEST_RMSE | {"test_mae": [1.3, 1.0, 0.9, 0.8]}
    ax = plots.convergence({"a": made(**two), "b": made(**two)})
    assert legend(ax) == ["a: Test RMSE", "a: Test MAE", "b: Test RMSE", "b: Test MAE"]


def test_references_are_level_lines_in_the_legend():
    ax = plots.convergence(made(**TEST_RMSE), references={"item means": 1.02, "published": 0.94})
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [1.02, 0.94]
    assert all(line.get_ydata()[0] == line.get_ydata()[-1] for line in ax.lines[1:])
    assert legend(ax) == ["Test RMSE", "item means: 1.02", "published: 0.94"]


def test_runs_of_a_mapping_may_measure_different_errors():
    ax = plots.convergence({"a": made(**TEST_RMSE), "b": made(test_mae=[1.0] * 4)})
    assert legend(ax) == ["a: Test RMSE", "b: Test MAE"]


def test_every_line_has_a_colour_of_its_own():
    ax = plots.convergence({"a": made(**SEVERAL), "b": made(**SEVERAL)})
    assert len({to_rgb(line.get_color()) for line in ax.lines}) == 6


def test_draws_on_the_given_axes_and_returns_them():
    figure, (left, right) = plt.subplots(1, 2)
    open_figures = plt.get_fignums()
    right.plot([1, 2], [3, 4], label="mine")
    assert plots.convergence(made(**TEST_RMSE), ax=right) is right
    assert legend(right) == ["mine", "Test RMSE"]
    assert not left.lines
    assert figure.axes == [left, right]
    assert plt.get_fignums() == open_figures


def test_makes_a_figure_of_its_own_where_no_axes_are_given():
    plots.convergence(made(**TEST_RMSE))
    plots.convergence(made(**TEST_RMSE))
    assert [len(plt.figure(number).axes[0].lines) for number in plt.get_fignums()] == [1, 1]


def test_the_result_stays_as_it_was():
    result = made(**SEVERAL)
    before = result.probes.copy(deep=True)
    plots.convergence(result, against="updates", log=True)
    pd.testing.assert_frame_equal(result.probes, before)


def test_saves_to_a_file(tmp_path):
    plots.convergence(made(**SEVERAL), against="bytes").figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_an_unknown_metric_lists_what_was_measured():
    with pytest.raises(ValueError, match=r"'test_rsme'.*test_rmse, test_mae, objective, rmse, user_updates"):
        plots.convergence(made(**SEVERAL), metrics=["test_rsme"])


def test_an_unknown_axis_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"against must be one of time, messages, bytes, updates, got 'epochs'"):
        plots.convergence(made(**TEST_RMSE), against="epochs")


def test_a_run_without_errors_lists_what_there_is():
    with pytest.raises(ValueError, match=r"measured no error.*probes=\[rmse\(test\)\].*among objective, user_updates"):
        plots.convergence(made(objective=[1.0] * 4))
    with pytest.raises(ValueError, match=r"measured no error"):
        plots.convergence(made())


@pytest.mark.parametrize("nothing", [{}, [], ()])
def test_no_run_is_refused(nothing):
    with pytest.raises(ValueError, match="at least one Result"):
        plots.convergence(nothing)


def test_what_is_no_run_is_refused():
    with pytest.raises(ValueError, match="must hold Results, as simulate returns them, got DataFrame"):
        plots.convergence([made(**TEST_RMSE).probes])


def test_a_sequence_draws_every_run_and_tells_what_differs():
    synthetic = low_rank(8, 6, rank=2, missing=0.4, seed=1)
    world = World(synthetic.train, complete(3), learning=Learning(rank=2))
    runs = [
        simulate(world.replace(loss=loss), until=20.0, seed=1, engine="events", probes=[rmse(synthetic.test)])
        for loss in (0.0, 0.5)
    ]
    ax = plots.convergence(runs)
    assert legend(ax) == ["loss=0", "loss=0.5"]
    assert [y for _, y in data(ax)] == [run.probes["test_rmse"].tolist() for run in runs]
    assert legend(plots.convergence(runs[:1])) == ["Test RMSE"]


def test_ranking_metrics_are_named_without_a_unit():
    metrics = {"recall_at_10": [0.1, 0.2, 0.3, 0.4], "ndcg_at_10": [0.2, 0.3, 0.4, 0.5]}
    ax = plots.convergence(made(**TEST_RMSE, **metrics), metrics=list(metrics))
    assert legend(ax) == ["Recall at 10", "NDCG at 10"]
    assert ax.get_ylabel() == "Ranking metric"
    assert plots.convergence(made(**metrics), metrics=["ndcg_at_10"]).get_ylabel() == "NDCG at 10"


def test_more_lines_than_colours_are_told_apart_by_their_style():
    lines = plots.convergence({str(n): made(**TEST_RMSE) for n in range(25)}).lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 25


def covered(ax):
    """Whether the legend covers a line."""
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    paths = [line.get_path().transformed(line.get_transform()) for line in ax.lines]
    return any(path.intersects_bbox(box, filled=False) for path in paths)


def everywhere(n):
    """Runs whose lines leave no room for a legend between them."""
    return {f"run with a name {k}": made(test_rmse=[k / n, 1 - k / n, k / n, 1 - k / n]) for k in range(n)}


def test_a_legend_that_would_cover_lines_stands_below_the_axes():
    ax = plots.convergence(everywhere(12))
    assert not covered(ax)
    assert ax.get_legend().get_window_extent().y1 < ax.get_tightbbox().y1
    assert ax.get_legend().get_window_extent().y1 < ax.xaxis.label.get_window_extent().y0
    assert ax.get_legend().get_window_extent().y0 >= 0  # on the figure
    assert ax.get_window_extent().height > 250  # and the figure has grown, so that the axes have not shrunk


def test_a_legend_that_covers_nothing_stays_inside():
    ax = plots.convergence(made(**TEST_RMSE))
    assert not covered(ax)
    assert ax.get_legend().get_window_extent().y0 > ax.get_window_extent().y0


def test_without_a_layout_engine_the_legend_stays_inside():
    _, ax = plt.subplots()
    plots.convergence(everywhere(12), ax=ax)
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y0


def test_a_legend_that_has_no_room_below_given_axes_stays_inside():
    _, ax = plt.subplots(figsize=(4, 3), layout="constrained")
    runs = {"a name as long as a line can be, here and now" + label: run for label, run in everywhere(30).items()}
    plots.convergence(runs, ax=ax)
    ax.figure.canvas.draw()  # no warning of axes without room
    assert ax.get_window_extent().height > 150


def test_long_labels_are_broken():
    ax = plots.convergence({"a label that says everything there is to say about this run": made(**TEST_RMSE)})
    assert all(len(line) <= 44 for line in legend(ax)[0].splitlines())
    assert len(legend(ax)[0].splitlines()) == 2


@pytest.mark.parametrize("arguments", [{"metrics": ["nothing"]}, {"against": "epochs"}])
def test_an_error_leaves_no_figure_behind(arguments):
    with pytest.raises(ValueError, match=r"nothing|epochs"):
        plots.convergence(made(**TEST_RMSE), **arguments)
    assert plt.get_fignums() == []
