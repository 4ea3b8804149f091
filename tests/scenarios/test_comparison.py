"""What scenarios that compare conditions share: arguments, paired runs, tables, and interruption."""

import argparse
import dataclasses
import json
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from netsim import Simulation
from scenarios import comparison, partition
from scenarios.comparison import Column
from tests.scenarios.comparing import TINY


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (comparison.seeds, "1-3,7", [1, 2, 3, 7]),
        (comparison.seeds, "0", [0]),
        (comparison.shares, "0.5,0.1", [0.1, 0.5]),
        (comparison.numbers, "10,0.01", [0.01, 10.0]),
        (comparison.one_share, "0.3", 0.3),
    ],
)
def test_lists_are_read(read, given, expected):
    assert read(given) == expected


@pytest.mark.parametrize(
    ("read", "given"),
    [
        *((comparison.seeds, each) for each in ("", "1,1", "-1", "x", "1.5", "3-1")),
        *((comparison.shares, each) for each in ("", "0", "1", "30", "0.1,0.1", "nan", "x")),
        *((comparison.numbers, each) for each in ("", "0", "-1", "inf", "nan", "1,1", "x")),
        *((comparison.one_share, each) for each in ("0.1,0.2", "0", "1")),
    ],
)
def test_other_lists_are_refused_with_an_example(read, given):
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected .*") as refused:
        read(given)
    assert repr(given) in str(refused.value)


def arguments(**changes):
    args = comparison.parser("any", "", until=50.0).parse_args([])
    args.users, args.items, args.places = 12, 10, 8
    return argparse.Namespace(**vars(args) | changes)


def test_the_ground_of_a_seed_is_the_same_each_time_and_of_another_is_another():
    one, again, other = (comparison.ground(arguments(), seed) for seed in (1, 1, 2))
    assert one.world == again.world
    assert one.data.test == again.data.test
    assert one.world.ratings != other.world.ratings
    assert one.world.topology != other.world.topology


PROBES = pd.DataFrame({"time": [0.0, 10.0, 20.0], "a": [0, 3, 5], "b": [0, 1, 5], "test_rmse": [2.0, 1.0, 0.5]})


@pytest.mark.parametrize(("amount", "expected"), [(0, 2.0), (2, 1.5), (4, 1.0), (7, 0.75), (10, 0.5)])
def test_a_value_at_an_amount_lies_on_the_line_between_two_probes(amount, expected):
    assert comparison.at_amount(PROBES, "test_rmse", ("a", "b"), amount) == pytest.approx(expected)


def test_there_is_no_value_at_an_amount_that_was_not_reached():
    assert math.isnan(comparison.at_amount(PROBES, "test_rmse", ("a", "b"), 10.5))


def test_a_run_goes_on_until_it_has_enough_or_its_patience_is_over(tmp_path):
    args = arguments(out=tmp_path, seeds=[1])
    this = comparison.Comparison("any", args, report=lambda _: None, n_conditions=3)
    world = comparison.ground(args, 1).world
    once = this.measure("once", 1, world, [])
    more = this.measure("more", 1, world, [], enough=lambda probes: probes["sent"].iloc[-1] > 2 * once.final["sent"])
    assert once.time == 50
    assert more.final["sent"] > 2 * once.final["sent"]
    assert (more.probes["sent"] > 2 * once.final["sent"]).sum() <= 1 + 0.1 * len(more.probes)  # soon after
    never = this.measure("never", 1, world, [], enough=lambda probes: False)
    assert 0.9 * comparison.PATIENCE * 50 < never.time <= comparison.PATIENCE * 50
    # It is the same run, only longer.
    pd.testing.assert_frame_equal(never.probes[: len(once.probes)], once.probes)
    this._bar.close()


MEASURED = pd.DataFrame(
    {
        "condition": ["x", "x", "y", "y", "z", "z"],
        "seed": [1, 2, 1, 2, 1, 2],
        "value": [1.0, 3.0, 2.0, math.nan, math.nan, math.nan],
    }
)


def test_means_leave_out_what_was_not_reached():
    table = comparison.summarize(MEASURED, [Column("value", "value (s)")]).set_index("condition")
    assert table["n_seeds"].tolist() == [2, 2, 2]
    assert table["value_n"].tolist() == [2, 1, 0]
    np.testing.assert_allclose(table["value_mean"], [2.0, 2.0, math.nan])
    np.testing.assert_allclose(table["value_sd"], [math.sqrt(2), math.nan, math.nan])


def test_the_printed_table_says_how_many_seeds_reached_it():
    columns = [Column("value", "value (s)", 2, signed=True)]
    lines = comparison.text(comparison.summarize(MEASURED, columns), columns).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        ["condition", "value (s)"],
        ["x", "+2.00 ± 1.41"],
        ["y", "+2.00 (1 of 2)"],
        ["z", "not reached"],
    ]


@pytest.mark.parametrize(
    ("mean", "signed", "expected"), [(-0.0004, True, "+0.000"), (-0.0004, False, "0.000"), (-0.01, False, "-0.010")]
)
def test_a_zero_has_no_minus(mean, signed, expected):
    assert comparison.spread(mean, math.nan, 3, signed=signed) == expected


def test_a_band_is_one_deviation_around_the_mean():
    _, ax = plt.subplots()
    comparison.band(ax, [1.0, 2.0], np.array([[1.0, 2.0], [3.0, 2.0]]), "mean", color="C0")
    (line,), (area,) = ax.lines, ax.collections
    np.testing.assert_allclose(line.get_ydata(), [2.0, 2.0])
    corners = area.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(2 - math.sqrt(2))
    assert corners[:, 1].max() == pytest.approx(2 + math.sqrt(2))
    comparison.band(ax, [1.0, 2.0], np.array([[1.0, 2.0]]), "one seed", color="C1")
    assert len(ax.collections) == 1
    plt.close()


def test_points_without_a_value_are_not_drawn():
    _, ax = plt.subplots()
    comparison.points(ax, [1.0, 2.0], [np.array([1.0, 3.0]), np.array([])], "some", color="C0", marker="o")
    np.testing.assert_allclose(np.array(ax.lines[0].get_ydata(), dtype=float), [2.0, math.nan])
    plt.close()


# -- interruption --------------------------------------------------------------------------------------------------


def interrupted_after(n_runs, monkeypatch):
    """Let a person stop the run that follows so many."""
    count = 0

    def counted(simulation, *args, **kwargs):
        nonlocal count
        count += 1
        result = run(simulation, *args, **kwargs)
        return dataclasses.replace(result, interrupted=True) if count > n_runs else result

    run = Simulation.run
    monkeypatch.setattr(Simulation, "run", counted)


def test_a_comparison_that_is_stopped_has_the_seeds_that_were_complete(tmp_path, monkeypatch, capsys):
    interrupted_after(8, monkeypatch)  # of 6 for each seed
    assert partition.main([*TINY, "--out", str(tmp_path)]) == 130
    assert "Interrupted" in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["seeds"] == [3]
    assert summary["interrupted"] is True
    assert set(pd.read_csv(tmp_path / "seeds.csv")["seed"]) == {3}
    assert set(pd.read_csv(tmp_path / "probes.csv")["seed"]) == {3, 5}
    assert len(list((tmp_path / "runs").iterdir())) == 8


def test_a_comparison_stopped_within_its_first_seed_keeps_its_runs_and_compares_nothing(tmp_path, monkeypatch, capsys):
    for name in ("table.csv", "partition.png"):
        (tmp_path / name).write_text("of an earlier comparison")
    interrupted_after(2, monkeypatch)
    assert partition.main([*TINY, "--out", str(tmp_path)]) == 130
    assert "nothing to compare" in capsys.readouterr().out
    assert {each.name for each in tmp_path.iterdir()} == {"probes.csv", "configuration.json", "runs"}
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_comparison_stopped_in_its_first_run_writes_nothing(tmp_path, monkeypatch, capsys):
    interrupted_after(0, monkeypatch)
    assert partition.main([*TINY, "--out", str(tmp_path)]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
