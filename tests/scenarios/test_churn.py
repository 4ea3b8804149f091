"""The scenario of nodes that come and go; and the first seed paper's claim that they do not hurt."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from netsim import OnOff
from scenarios import churn
from tests.scenarios.comparing import TINY, arguments, check_repeats, check_written, mistake, study

SOME = [*TINY, "--down", "0.3"]
NONE = "no churn"
UPDATES = ["user_updates", "item_updates"]
STUNNER = Path(__file__).resolve().parents[3] / "shared" / "data" / "churn" / "stunner-anon-100.txt.gz"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("churn", tmp_path_factory.mktemp("churn"), SOME)


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=9)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


def test_every_run_goes_on_until_it_has_the_updates_of_the_run_without_churn(done):
    probes = done.table("probes.csv")
    for (condition, seed), run in probes.groupby(["condition", "seed"]):
        wanted = done.probes(NONE, seed)[UPDATES].iloc[-1].sum()
        total = run[UPDATES].sum(axis=1).to_numpy()
        assert total[-1] >= wanted, condition
        time = np.interp(wanted, total, run["time"])
        assert run["time"].iloc[-1] <= max(60, 1.1 * time + 1e-6), condition  # and not much longer


def test_errors_are_taken_at_equal_updates(done):
    (plain,) = done.seeds(NONE, "test_rmse")[:1]
    run = done.probes("down 30%, reset", 3)
    wanted = done.probes(NONE, 3)[UPDATES].iloc[-1].sum()
    total = run[UPDATES].sum(axis=1)
    expected = np.interp(wanted, total, run["test_rmse"])
    assert done.seeds("down 30%, reset", "test_rmse")[0] == pytest.approx(expected, abs=1e-12)
    assert done.seeds("down 30%, reset", "cost")[0] == pytest.approx(expected - plain, abs=1e-12)
    assert (done.seeds(NONE, "cost") == 0).all()


def test_routers_are_down_for_the_share_given(tmp_path):
    argv = ["--users", "40", "--items", "40", "--places", "10", "--until", "300", "--seeds", "1", "--down", "0.3,0.5"]
    wide = study("churn", tmp_path, [*argv, "--quit", "0.1"])
    for down in (30, 50):
        for kind in ("keep", "reset", "checkpoint", "keep, users too", "keep, heavy-tailed"):
            (online,) = wide.seeds(f"down {down}%, {kind}", "online")
            assert online == pytest.approx(100 - down, abs=8), kind
    assert wide.seeds("quit 10%, items lost", "online")[0] < 100
    # Twice as much time for twice as little of it online.
    assert wide.seeds("down 50%, keep", "slowdown")[0] == pytest.approx(2.0, abs=0.3)


def test_a_trace_is_followed_too(tmp_path):
    file = tmp_path / "phones.txt"
    file.write_text("a 1 0 0 15000 5000 15000 5000\nb 0 0 0 4000 12000 4000 12000\n")
    argv = [*TINY, "--seeds", "3", "--down", "0.3", "--trace", str(file)]
    followed = study("churn", tmp_path / "out", argv)
    assert followed.status == 0
    assert "down 25%, keep, trace" in set(followed.table("table.csv")["condition"])
    world = followed.json("configuration.json")["worlds"]["down 25%, keep, trace, seed 3"]
    assert world["router_churn"]["type"] == "AvailabilityTrace"


@pytest.mark.skipif(not STUNNER.is_file(), reason="the phones' trace is not beside the checkout")
def test_measured_phones_can_be_followed(tmp_path):
    argv = [*TINY, "--seeds", "3", "--down", "0.3", "--trace", str(STUNNER)]
    followed = study("churn", tmp_path / "out", argv)
    assert followed.status == 0
    (condition,) = [each for each in followed.table("table.csv")["condition"] if "trace" in each]
    assert followed.seeds(condition, "online")[0] < 60


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--down", "30"], "argument --down: expected distinct fractions between 0 and 1"),
        (["--down", "0"], "argument --down: "),
        (["--quit", "0.1,0.2"], "argument --quit: expected one fraction"),
        (["--cycle", "0"], "argument --cycle: expected a number > 0"),
        (["--checkpoint", "-1"], "argument --checkpoint: "),
        (["--seeds", "1,1"], "argument --seeds: "),
        (["--users", "3"], "argument --users: expected an integer >= 4"),
        (["--trace", "no/such/file"], "no/such/file"),
        (["--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("churn", argv, tmp_path, capsys)


def test_a_run_without_an_update_is_refused(tmp_path, capsys):
    assert churn.main([*TINY, "--until", "0.1", "--period", "1000", "--out", str(tmp_path)]) == 2
    assert "--until 0.1: no profile was updated" in capsys.readouterr().err


def test_runs_that_diverge_are_told(tmp_path):
    argv = [*TINY, "--seeds", "3", "--down", "0.3", "--rate", "50"]
    with np.errstate(all="ignore"):
        diverged = study("churn", tmp_path, argv)
    assert "diverged" in diverged.printed
    assert "try a smaller --rate" in diverged.printed
    diverged.json("summary.json")  # is JSON all the same


# -- the answer ----------------------------------------------------------------------------------------------------


def told(cost):
    """The answer for made-up costs of routers that keep their profiles, 30% of them down."""
    compared = churn.conditions(arguments("churn"))
    rows = [
        {
            "condition": each.label,
            "seed": seed,
            "kind": each.kind,
            "down": each.down,
            "what": each.what,
            "cost": cost[seed] if each.label == "down 30%, keep" else 0.0,
            "slowdown": 2.0,
        }
        for each in compared
        for seed in range(len(cost))
    ]
    return churn.answer(pd.DataFrame(rows), compared)


def test_the_claim_holds_where_the_mean_is_surely_near():
    answer = told([0.01, 0.012, 0.008])
    assert "robustness holds: with 30% of the routers down" in answer
    # Student's t of two degrees of freedom: 4.303.
    assert "by +0.0100 ± 0.0020" in answer
    assert "95% interval of the mean +0.0050 to +0.0150; 3 of 3 seeds within 0.02" in answer
    assert "None costs more than 0.02 on average." in answer


@pytest.mark.parametrize(
    ("cost", "verdict"),
    [
        ([0.01], "holds"),
        ([0.021], "does not hold"),
        ([0.03, 0.031, 0.032], "does not hold"),
        ([-0.03, -0.031, -0.032], "does not hold"),
        ([0.01, 0.01, math.nan], "does not hold"),  # a seed that never came to as many updates
        ([0.0, 0.03], "is not decided by so few seeds"),
        ([0.001, 0.002, 0.001, 0.06], "is not decided by so few seeds"),
    ],
)
def test_the_claim_is_judged_by_the_mean_and_how_well_it_is_known(cost, verdict):
    assert f"robustness {verdict}:" in told(cost)


def test_what_costs_more_is_named():
    assert "Above 0.02 on average: down 30%, keep (+0.050)." in told([0.04, 0.06])


def test_heavy_tailed_sessions_have_the_means_of_the_exponential_ones():
    even, heavy = churn.exponential(100.0, 0.3), churn.heavy_tailed(100.0, 0.3)
    assert even == OnOff(70.0, 30.0)
    assert heavy.online.expectation() == pytest.approx(70.0)
    assert heavy.offline.expectation() == pytest.approx(30.0)
    assert heavy.correlation > 0


# -- the paper's claim, section 3: "robust against the breakdown of individual nodes" ------------------------------


def test_with_30_percent_of_the_routers_down_the_error_is_within_0_02_at_equal_updates_per_node(tmp_path):
    argv = ["--users", "100", "--items", "100", "--seeds", "1-5", "--down", "0.3", "--quit", "0.01"]
    run = study("churn", tmp_path, argv)
    cost = run.seeds("down 30%, keep", "cost")
    assert len(cost) == 5
    assert abs(cost.mean()) <= 0.02
    low, high = churn.interval(cost)
    assert -0.02 <= low <= high <= 0.02  # and not by luck
    assert np.sum(np.abs(cost) <= 0.02) >= 4
    online = run.seeds("down 30%, keep", "online")
    np.testing.assert_allclose(online, 70, atol=4)  # they were down
    # The measure sees harm where there is some: routers that forget, and the same routers early in the run.
    assert (run.seeds("down 30%, reset", "cost") > 0.02).all()
    assert run.seeds("down 30%, keep", "worst_cost").mean() > 0.02
    # It is not that there was nothing to learn.
    assert (run.seeds(NONE, "test_rmse") < 0.25 * run.probes(NONE, 1)["test_rmse"].iloc[0]).all()
    assert "robustness holds" in run.json("summary.json")["answer"]
