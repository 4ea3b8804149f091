"""The scenario of uplinks and processing that take time."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios import bandwidth, comparison
from tests.scenarios.comparing import TINY, check_repeats, check_written, mistake, study

SOME = [*TINY, "--loads", "0.5,2"]
NONE, EASED = "no queues", "uplinks, load 2, fewer copies"
SIZE = 48 + 8 * comparison.DEFAULTS.rank  # bytes of a profile


def named(where, load, limit="no limit"):
    return f"{where}, load {load:g}, {limit}"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("bandwidth", tmp_path_factory.mktemp("bandwidth"), SOME)


def world(done, condition, seed=3):
    return done.json("configuration.json")["worlds"][f"{condition}, seed {seed}"]


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=10)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


@pytest.mark.parametrize("load", [0.5, 2])
def test_the_load_is_that_of_the_profiles_that_a_user_sends_or_takes(done, load):
    n_ratings = world(done, NONE)["ratings"]["n_ratings"]
    of_user, of_router = n_ratings / 16, n_ratings / 12  # messages in a period of 10 s
    rates = world(done, named("uplinks", load))
    assert of_user * SIZE / rates["user_uplink"]["value"] == pytest.approx(10 * load)
    assert rates["router_uplink"]["value"] / rates["user_uplink"]["value"] == pytest.approx(45 / 11)
    seconds = world(done, named("processing", load))
    assert of_user * seconds["user_processing"]["mean"] == pytest.approx(10 * load)
    assert of_router * seconds["router_processing"]["mean"] == pytest.approx(10 * load)


def test_only_limited_queues_drop(done):
    limited = world(done, named("uplinks", 2, "with a limit"))
    ratings = comparison.ground(_arguments(TINY), 3).data.train
    most = max(np.bincount(ratings.user).max(), np.bincount(ratings.item).max())
    assert limited["queue_limit"] == math.ceil(1.5 * most)
    for where in ("uplinks", "processing"):
        assert world(done, named(where, 2))["queue_limit"] is None
        assert (done.seeds(named(where, 2), "dropped") == 0).all()
        assert (done.seeds(named(where, 2, "with a limit"), "dropped") > 5).all()
        assert (done.seeds(named(where, 0.5, "with a limit"), "dropped") < 2).all()


def test_at_twice_the_load_half_is_dropped_or_left_waiting(done):
    np.testing.assert_allclose(done.seeds(named("processing", 2), "arrived"), 50, atol=15)
    np.testing.assert_allclose(done.seeds(named("processing", 2, "with a limit"), "arrived"), 50, atol=15)


def test_waits_of_copies_at_an_uplink_are_as_worked_out(tmp_path):
    # Copy number k of a broadcast leaves after k transmissions, of users and routers; jitter is the same without.
    argv = ["--users", "30", "--items", "30", "--places", "10", "--seeds", "3", "--until", "400", "--loads", "0.5"]
    done = study("bandwidth", tmp_path, argv)
    ratings = comparison.ground(_arguments(argv[:-2]), 3).data.train
    rates = world(done, named("uplinks", 0.5))
    seconds = copies = 0.0
    for role, rows in (("user", ratings.by_user), ("router", ratings.by_item)):
        contacts = np.diff(rows.start)
        seconds += (contacts * (contacts + 1) / 2).sum() * SIZE / rates[f"{role}_uplink"]["value"]
        copies += contacts.sum()
    assert done.seeds(named("uplinks", 0.5), "wait")[0] == pytest.approx(seconds / copies, rel=0.1)


def _arguments(argv):
    return comparison.parser("bandwidth", "", until=400.0).parse_args(argv)


def test_waits_grow_with_the_load_and_a_limit_bounds_them(done):
    for where in ("uplinks", "processing"):
        assert (done.seeds(named(where, 2), "wait") > 3 * done.seeds(named(where, 0.5), "wait")).all()
        assert (done.seeds(named(where, 2, "with a limit"), "wait") < done.seeds(named(where, 2), "wait")).all()
    assert (done.seeds(NONE, "wait") == 0).all()


def test_fewer_copies_keep_the_uplinks_below_their_load(done):
    described = world(done, EASED)
    assert described["user_fan_out"] == math.floor(0.4 * described["ratings"]["n_ratings"] / 16)
    assert described["user_uplink"] == world(done, named("uplinks", 2))["user_uplink"]
    assert (done.seeds(EASED, "wait") < 10).all()
    assert (done.seeds(EASED, "wait") < done.seeds(named("uplinks", 2), "wait")).all()


def test_errors_are_taken_at_equal_time(done):
    plain, run = done.probes(NONE, 5), done.probes(named("processing", 2), 5)
    at_time = np.interp(60.0, run["time"], run["test_rmse"])
    last = plain["test_rmse"].iloc[-1]
    assert done.seeds(named("processing", 2), "cost")[1] == pytest.approx(at_time - last, abs=1e-12)
    assert done.seeds(NONE, "slowdown")[1] == 1
    assert run["time"].iloc[-1] <= 60 * bandwidth.PATIENCE * 1.1 + 1e-6


def test_time_under_way_is_littles():
    # 5 messages a second arrive, 20 are under way: 4 s each. Of what is dropped after 2 s, 2 are under way.
    time = np.arange(0.0, 11.0)
    probes = pd.DataFrame({"time": time, "in_flight": 20.0, "delivered": 5 * time, "lost_queue": 0 * time})
    assert bandwidth.time_under_way(probes, 5.0, 10.0) == pytest.approx(4.0)
    dropping = probes.assign(in_flight=22.0, lost_queue=time)
    assert bandwidth.time_under_way(dropping, 5.0, 10.0, dropped_after=2.0) == pytest.approx(4.0)
    assert math.isnan(bandwidth.time_under_way(probes.assign(delivered=0.0), 5.0, 10.0))


@pytest.mark.parametrize(
    ("slowdowns", "expected"),
    [
        ([1.0, 1.2, 2.0], (1.0, 2.0)),
        ([1.3, 1.0, 1.0], (math.nan, 0.5)),  # what comes after a load that is too much does not count
        ([1.0, 1.0, 1.1], (2.0, math.nan)),
        ([1.0, math.nan, 1.0], (0.5, 1.0)),
    ],
)
def test_the_knee_is_between_what_is_borne_and_what_is_not(slowdowns, expected):
    rows = [
        {"where": "uplinks", "limited": False, "load": load, "slowdown": slowdown}
        for load, slowdown in zip((0.5, 1.0, 2.0), slowdowns, strict=True)
    ]
    rows += [{"where": "uplinks", "limited": True, "load": 0.5, "slowdown": 9.0}]
    assert bandwidth.knee(pd.DataFrame(rows), "uplinks") == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--loads", "0"], "argument --loads: expected distinct numbers > 0"),
        (["--loads", "1,1"], "argument --loads: "),
        (["--limit", "0"], "argument --limit: expected a number > 0"),
        (["--every", "0"], "argument --every: "),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("bandwidth", argv, tmp_path, capsys)


def test_a_run_in_which_nothing_arrives_is_refused(tmp_path, capsys):
    assert bandwidth.main([*TINY, "--until", "0.01", "--period", "1000", "--out", str(tmp_path)]) == 2
    assert "--until 0.01: no message arrived" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("knees", "told"),
    [
        ((1.0, 2.0), "Uplinks: up to load 1 the target takes at most 1.25 times as long, from 2 on more"),
        ((math.nan, 1.0), "Uplinks: already load 1 takes more than 1.25 times as long"),
        ((2.0, math.nan), "Uplinks: all loads up to 2 take at most 1.25 times as long"),
    ],
)
def test_the_answer_says_where_the_knee_is(knees, told):
    borne, _ = knees
    compared = [
        bandwidth.Condition(NONE),
        *(
            bandwidth.Condition(named(where, load, limit), where, load, limit != "no limit")
            for where in bandwidth.WHERE
            for limit in ("no limit", "with a limit")
            for load in (1, 2)
        ),
        bandwidth.Condition(EASED, bandwidth.EASED, 2),
    ]
    rows = [
        {
            "condition": each.label,
            "where": each.where,
            "load": each.load,
            "limited": each.limited,
            "slowdown": 1.0 if each.load <= borne else math.nan if each.limited else 3.0,
            "wait": each.load,
            "dropped": 10.0 * each.limited,
        }
        for each in compared
    ]
    answer = bandwidth.answer(pd.DataFrame(rows), compared)
    assert told in answer
    assert "At load 2 of processing without a limit messages wait 2 s and the target takes" in answer
    assert ("longer than was waited for" in answer) == (borne != 2.0)
