"""The scenario of lost and doubled messages."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios import loss
from tests.scenarios.comparing import TINY, arguments, check_repeats, check_written, mistake, study

SOME = [*TINY, "--loss", "0.3,0.7", "--bursts", "1,10"]
NONE = "no loss"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("loss", tmp_path_factory.mktemp("loss"), SOME)


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=8)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


@pytest.mark.parametrize("kind", ["independent", "bursts of 1 period", "bursts of 10 periods"])
@pytest.mark.parametrize("share", [30, 70])
def test_as_much_is_lost_as_was_asked_for(done, kind, share):
    np.testing.assert_allclose(done.seeds(f"{share}%, {kind}", "lost"), share, atol=9 if "10" in kind else 5)


def test_without_loss_nothing_is_lost(done):
    assert (done.seeds(NONE, "lost") == 0).all()
    assert (done.seeds(NONE, "cost_time") == 0).all()


@pytest.mark.parametrize("condition", ["70%, independent", "no loss, 30% doubled"])
def test_errors_are_taken_at_equal_time_and_at_equal_deliveries(done, condition):
    plain, run = done.probes(NONE, 3), done.probes(condition, 3)
    last = plain["test_rmse"].iloc[-1]
    at_time = np.interp(60.0, run["time"], run["test_rmse"])
    delivered = plain["delivered"].iloc[-1]
    assert run["delivered"].iloc[-1] >= delivered
    at_deliveries = np.interp(delivered, run["delivered"], run["test_rmse"])
    assert done.seeds(condition, "cost_time")[0] == pytest.approx(at_time - last, abs=1e-12)
    assert done.seeds(condition, "cost_delivered")[0] == pytest.approx(at_deliveries - last, abs=1e-12)


def test_doubling_brings_as_many_messages_sooner(done):
    # Copies count as sent, so as many arrive of as many sent.
    np.testing.assert_allclose(done.seeds("no loss, 30% doubled", "messages"), 1.0, atol=0.05)
    np.testing.assert_allclose(done.seeds("no loss, 30% doubled", "slowdown"), 1 / 1.3, atol=0.1)


def test_with_loss_routers_know_fewer_ratings(done):
    assert (done.seeds("70%, independent", "unknown") > done.seeds(NONE, "unknown")).all()
    assert (done.seeds("70%, independent", "slowdown") > 2).all()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--loss", "70"], "argument --loss: expected distinct fractions between 0 and 1"),
        (["--loss", "1"], "argument --loss: "),
        (["--bursts", "0"], "argument --bursts: expected distinct numbers > 0"),
        (["--duplication", "2"], "argument --duplication: expected a number in [0, 1]"),
        (["--every", "0"], "argument --every: "),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("loss", argv, tmp_path, capsys)


def test_a_run_in_which_nothing_arrives_is_refused(tmp_path, capsys):
    assert loss.main([*TINY, "--until", "0.01", "--period", "1000", "--out", str(tmp_path)]) == 2
    assert "--until 0.01: no message arrived" in capsys.readouterr().err


# -- the answer ----------------------------------------------------------------------------------------------------


SHARES = (0.1, 0.3, 0.5)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([0.0, 0.01, 0.05], 0.3),
        ([0.03, 0.01, 0.01], 0.0),  # what comes after a loss that is too much does not count
        ([0.01, 0.02, 0.02], 0.5),
        ([0.01, math.nan, 0.01], 0.1),
    ],
)
def test_what_is_tolerated_is_the_highest_loss_up_to_which_all_cost_little(costs, expected):
    rows = [{"loss": share, "burst_periods": 0.0, "cost_time": cost} for share, cost in zip(SHARES, costs, strict=True)]
    assert loss.tolerated(pd.DataFrame(rows), 0.0) == expected


def test_the_answer_names_what_bursts_add():
    compared = loss.conditions(arguments("loss"))
    rows = [
        {
            "condition": each.label,
            "seed": seed,
            "loss": each.loss,
            "burst_periods": each.burst,
            "cost_time": (0.01 if each.loss < 0.4 else 0.04) + (0.03 if each.burst == 100 else 0.0),
            "cost_delivered": 0.001,
        }
        for each in compared
        for seed in (1, 2)
    ]
    answer = loss.answer(pd.DataFrame(rows), compared)
    assert "independent: 30%; bursts of 1 period: 30%; bursts of 10 periods: 30%; bursts of 100 periods: 0%" in answer
    assert "+0.0300 ± 0.0000 for bursts of 100 periods" in answer
    assert "what is left of it is small" in answer
