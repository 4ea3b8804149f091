"""The scenario of slow networks."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios import latency
from tests.scenarios.comparing import TINY, check_repeats, check_written, mistake, study

DELAYS = [*TINY, "--delays", "0.01,1"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("latency", tmp_path_factory.mktemp("latency"), DELAYS)


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=10)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, DELAYS)


@pytest.mark.parametrize("seed", [3, 5])
def test_the_target_is_what_the_fastest_network_has_after_a_quarter_of_the_time(done, seed):
    fastest = done.probes("0.01 periods, constant", seed)
    measured = done.table("seeds.csv").set_index(["condition", "seed"])
    goal = np.interp(15, fastest["time"], fastest["test_rmse"])
    assert measured.loc[("1 period, jitter", seed), "target"] == pytest.approx(goal, abs=1e-12)
    for condition in ("1 period, constant", "1 period, per pair", "30% held back"):
        to_target = measured.loc[(condition, seed), "to_target"]
        run = done.probes(condition, seed)
        assert (run.loc[run["time"] < to_target, "test_rmse"] > goal).all()
        assert np.interp(to_target, run["time"], run["test_rmse"]) == pytest.approx(goal, abs=1e-9)


def test_what_is_used_is_as_old_as_the_delay_and_half_a_period(done):
    for delay, condition in ((0.01, "0.01 periods, constant"), (1, "1 period, constant")):
        for where in ("user_staleness", "router_staleness"):
            age = done.seeds(condition, where)
            np.testing.assert_allclose(age, delay + 0.5, atol=0.3)


def test_jitter_reorders_and_only_stamps_discard(done):
    assert (done.seeds("1 period, jitter", "discarded") > 5).all()
    assert (done.seeds("1 period, jitter, stamps off", "discarded") == 0).all()
    assert (done.seeds("30% held back", "discarded") > 3).all()
    assert (done.seeds("30% held back, stamps off", "discarded") == 0).all()
    # A delay that a pair keeps reorders nothing, and constant ones only replies against broadcasts.
    assert (done.seeds("1 period, per pair", "discarded") < 2).all()


def test_slow_is_slower_and_the_regions_are_fast(done):
    assert (done.seeds("1 period, constant", "slowdown") > 1.5).all()
    assert done.seeds("regions of the world", "slowdown").mean() < 1.2
    assert (done.seeds("0.01 periods, constant", "cost") == 0).all()
    world = done.json("configuration.json")["worlds"]["regions of the world, seed 3"]
    assert world["topology"]["n_places"] == 12


def test_a_target_can_be_given(tmp_path):
    argv = [*TINY, "--seeds", "3", "--delays", "0.01,0.5", "--target", "1.0"]
    given = study("latency", tmp_path, argv)
    assert set(given.table("seeds.csv")["target"]) == {1.0}


def test_a_target_that_nobody_reaches_is_told(tmp_path):
    argv = [*TINY, "--seeds", "3", "--delays", "1", "--until", "20", "--target", "0.001"]
    never = study("latency", tmp_path, argv)
    assert never.status == 0
    assert "not reached" in never.printed
    assert "did not come to the target" in never.json("summary.json")["answer"]
    assert never.table("seeds.csv")["to_target"].isna().all()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--delays", "0"], "argument --delays: expected distinct numbers > 0"),
        (["--delays", "1,1"], "argument --delays: "),
        (["--target", "0"], "argument --target: expected a number > 0"),
        (["--period", "-1"], "argument --period: "),
        (["--seeds", "x"], "argument --seeds: "),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("latency", argv, tmp_path, capsys)


@pytest.mark.parametrize(("goal", "expected"), [(3.0, 0.0), (1.5, 5.0), (1.0, 10.0), (0.75, 25.0), (0.4, math.nan)])
def test_a_crossing_lies_between_two_probes(goal, expected):
    probes = pd.DataFrame({"time": [0.0, 10.0, 20.0, 30.0], "test_rmse": [2.0, 1.0, 1.0, 0.5]})
    np.testing.assert_allclose(latency.crossing(probes, goal), expected)
