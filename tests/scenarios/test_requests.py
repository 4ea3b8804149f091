"""The scenario of recommendation requests under churn."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios import requests
from tests.scenarios.comparing import TINY, check_repeats, check_written, mistake, study

SOME = [*TINY, "--available", "0.6,1", "--retries", "0,2", "--until", "240", "--gap", "10", "--quit", "0.5"]
ALL, SOMETIMES = "100% available", "60% available"
LOST, FRESH, HANDED = (f"50% quit, items {fate}, 2 retries" for fate in ("lost", "fresh", "handed over"))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("requests", tmp_path_factory.mktemp("requests"), SOME)


def folder(condition, seed):
    return f"{condition.replace('% ', '-').replace(', ', '-').replace(' ', '-')}-seed-{seed}"


def asked(done, condition, seed):
    """Requests of the second half of a run that have surely ended."""
    table = pd.read_csv(done.out / "runs" / folder(condition, seed) / "recommendations.csv")
    return table[(table["asked"] >= 120) & (table["asked"] < 240 - 3 * 5)]


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=7)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


@pytest.mark.parametrize("condition", [f"{ALL}, no retry", f"{SOMETIMES}, 2 retries", LOST])
def test_what_is_told_is_what_users_got(done, condition):
    table = asked(done, condition, 5)
    served = table[table["outcome"] == "served"]
    response = served["finished"] - served["asked"]
    error = np.sqrt(((served["predicted"] - served["rating"]) ** 2).mean())
    for column, expected in (
        ("requests", len(table)),
        ("success", 100 * len(served) / len(table)),
        ("refused", 100 * (table["outcome"] == "refused").mean()),
        ("attempts", table["attempts"].mean()),
        ("response_p50", response.quantile(0.5)),
        ("response_p95", response.quantile(0.95)),
        ("served_rmse", error),
    ):
        assert done.seeds(condition, column)[1] == pytest.approx(expected, rel=1e-9), column


def test_the_error_of_the_profiles_is_that_of_the_moment_of_asking(done):
    condition = f"{SOMETIMES}, 2 retries"
    table, probes = asked(done, condition, 3), done.probes(condition, 3)
    served = table[table["outcome"] == "served"]
    squared = np.interp(served["asked"], probes["time"], probes["test_rmse"] ** 2)
    assert done.seeds(condition, "profile_rmse")[0] == pytest.approx(math.sqrt(squared.mean()), rel=1e-9)
    assert np.ptp(probes["test_rmse"].tail(40)) > 0


def test_what_is_served_is_as_good_as_the_profiles(done):
    for condition in (f"{ALL}, no retry", f"{ALL}, 2 retries", HANDED):
        assert np.abs(done.seeds(condition, "gap")).max() < 0.08


def test_without_retries_as_much_is_served_as_routers_are_there(done):
    # Two messages, each lost with 0.2%; the drawn sessions of 12 routers vary.
    assert (done.seeds(f"{ALL}, no retry", "success") > 97).all()
    np.testing.assert_allclose(done.seeds(f"{SOMETIMES}, no retry", "success"), 60, atol=15)


def test_retries_serve_more_and_later(done):
    none, two = f"{SOMETIMES}, no retry", f"{SOMETIMES}, 2 retries"
    assert (done.seeds(two, "success") > done.seeds(none, "success")).all()
    assert (done.seeds(two, "response_p95") > 5).all()
    assert (done.seeds(none, "response_p95") < 5).all()
    assert (done.seeds(none, "attempts") <= 1).all()
    assert ((done.seeds(two, "attempts") > 1.2) & (done.seeds(two, "attempts") < 3)).all()


def test_items_that_are_hosted_anew_are_served_and_lost_ones_are_not(done):
    assert (done.seeds(LOST, "success") < 85).all()
    for condition in (FRESH, HANDED):
        assert (done.seeds(condition, "success") > 97).all()
        assert (done.seeds(condition, "list_quality") > done.seeds(LOST, "list_quality")).all()


def test_items_that_start_anew_are_predicted_worse_than_those_handed_over(done):
    assert done.seeds(FRESH, "served_rmse").mean() > done.seeds(HANDED, "served_rmse").mean()


def test_a_list_is_compared_to_the_best_that_was_asked_for():
    nan = math.nan
    table = pd.DataFrame(
        [
            (1, "a", "served", 4.0, 5.0),
            (1, "b", "served", 3.0, 2.0),
            (1, "c", "timed_out", nan, 4.0),
            (1, "b", "served", 4.5, 2.0),  # asked for again: this answer counts, and the item is one
            (2, "a", "refused", nan, 3.0),
        ],
        columns=["user", "item", "outcome", "predicted", "rating"],
    )
    assert requests.list_quality(table, 1) == pytest.approx(100 * 2 / (5 + 3))
    assert requests.list_quality(table, 2) == pytest.approx(100 * (2 + 5) / (5 + 4 + 3))
    assert requests.list_quality(table.head(1), 2) == 100


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--available", "70"], "argument --available: expected distinct fractions above 0 and up to 1"),
        (["--available", "0"], "argument --available: "),
        (["--retries", "16"], "argument --retries: expected distinct integers from 0 to 15"),
        (["--retries", "0,0"], "argument --retries: "),
        (["--quit", "2"], "argument --quit: expected distinct fractions between 0 and 1"),
        (["--timeout", "0"], "argument --timeout: expected a number > 0"),
        (["--timeout", "20"], "--until 60: requests may take 60 s"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("requests", argv, tmp_path, capsys)


def test_a_run_in_which_nobody_asks_is_refused(tmp_path, capsys):
    assert requests.main([*TINY, "--gap", "1e9", "--out", str(tmp_path)]) == 2
    assert "--gap 1e+09: nobody asked in the second half of the run" in capsys.readouterr().err


def test_where_nothing_is_served_that_is_told(tmp_path, capsys):
    # No answer comes back in a tenth of a millisecond.
    assert requests.main([*TINY, "--timeout", "1e-4", "--gap", "5", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "0.0 ± 0.0% at 100%" in printed
    assert "not reached" in printed


def test_the_answer_names_the_widest_difference_and_what_departures_do():
    compared = [
        requests.Condition("100% available, no retry", 1.0, 0, requests.STAY, {}),
        requests.Condition("50% available, no retry", 0.5, 0, requests.STAY, {}),
        requests.Condition("30% quit, items lost, no retry", 1.0, 0, "lost", {}),
    ]
    rows = [
        {
            "condition": each.label,
            "seed": seed,
            "success": 100 * each.available - 10 * (each.fate == "lost"),
            "response_p95": 1.5,
            "gap": -0.02 if each.available < 1 else 0.01,
            "served_rmse": 0.4,
        }
        for each in compared
        for seed in (1, 2)
    ]
    answer = requests.answer(pd.DataFrame(rows), compared)
    assert "with no retry: 100.0 ± 0.0% at 100%, 50.0 ± 0.0% at 50%." in answer
    assert "by -0.0200 ± 0.0000 at most (50% available, no retry)" in answer
    assert "30% quit, items lost, no retry: 90.0 ± 0.0% are served, with an error of 0.4000 ± 0.0000." in answer
