"""The scenario of fake users in the network."""

import argparse
import json

import numpy as np
import pytest

from algorithms.attacks import hit_rate
from algorithms.solvers import RDMC, AlternatingLeastSquares, SoftImpute
from netsim import Result
from scenarios import network_attack
from tests.scenarios.comparing import check_repeats, check_written, mistake, study

SIZE = ["--users", "60", "--items", "40", "--places", "10", "--until", "60", "--seeds", "3,5", "--lambdas", "0.1,0.3"]
SOME = [*SIZE, "--kinds", "average,love_hate", "--profiles", "0.2,0.5", "--every", "7"]
FAKES = argparse.Namespace(fillers=0.1, selected=10, min_ratings=20)
SHARES = (20, 50)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("network_attack", tmp_path_factory.mktemp("network_attack"), SOME)


@pytest.fixture(scope="module")
def stage():
    return network_attack.make_stage(60, 40, 3)


def run(done, condition, seed=3):
    folder = done.json("configuration.json")["runs"][f"{condition}, seed {seed}"]
    return Result.load(done.out / folder)


def shift(stage, before, after):
    users = stage.missing[:, stage.target]
    predicted = [np.clip(profiles[0][:60][users] @ profiles[1][stage.target], 1.0, 5.0) for profiles in (before, after)]
    return float((predicted[1] - predicted[0]).mean())


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=10)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["average attack", "love/hate"])
def test_the_shift_is_that_of_the_saved_runs(done, stage, kind, share):
    before, after = (run(done, each) for each in ("no attack", f"{kind}, {share}%"))
    found = shift(stage, (before.user_profiles, before.item_profiles), (after.user_profiles, after.item_profiles))
    assert done.seeds(f"{kind}, {share}%", "shift")[0] == pytest.approx(found, abs=1e-12)
    assert found < 0


def test_the_shift_of_als_is_that_of_its_own_profiles(done, stage):
    fits = [
        AlternatingLeastSquares(8, lam=0.1, regularization="per_message", seed=3).fit(ratings)
        for ratings in (stage.ratings, stage.with_fakes("love_hate", 0.5, FAKES))
    ]
    found = shift(stage, *((each.user_profiles_, each.item_profiles_) for each in fits))
    assert done.seeds("love/hate, 50%", "shift_als")[0] == pytest.approx(found, abs=1e-9)
    assert done.seeds("love/hate, 50%, halfway", "shift_als")[0] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("name", ["soft_impute", "rdmc_pseudo_huber"])
def test_the_shift_of_other_solvers_is_that_of_fits_with_the_lambdas_chosen(done, stage, name):
    column = []
    for condition, ratings in (
        ("no attack", stage.ratings),
        ("love/hate, 50%", stage.with_fakes("love_hate", 0.5, FAKES)),
    ):
        matrix = np.full((ratings.n_users, 40), np.nan)
        matrix[ratings.user, ratings.item] = ratings.value
        lam = float(done.seeds(condition, f"lam_{name}")[0])
        assert lam in (0.1, 0.3)
        categories = range(1, 6)
        solver = (
            SoftImpute(lam, tol=1e-4, max_iter=200, categories=categories)
            if name == "soft_impute"
            else RDMC(lam, categories=categories)
        )
        column.append(np.clip(solver.fit(matrix).complete()[:60, stage.target], 1, 5))
    users = stage.missing[:, stage.target]
    found = float((column[1] - column[0])[users].mean())
    # RDMC starts from what the splits found, so its fit ends elsewhere.
    within = 1e-6 if name == "soft_impute" else 0.2
    assert done.seeds("love/hate, 50%", f"shift_{name}")[0] == pytest.approx(found, abs=within)


def test_the_hit_rate_is_that_of_the_networks_predictions(done, stage):
    result = run(done, "love/hate, 50%")
    predicted = np.clip(result.user_profiles[:60] @ result.item_profiles.T, 1.0, 5.0)
    found = hit_rate(predicted, ~stage.missing, stage.target, n=10)
    assert done.seeds("love/hate, 50%", "hit_rate")[0] == pytest.approx(100 * found, abs=1e-9)


def test_as_many_fake_users_take_part_as_was_asked_for(done, stage):
    rated = int((~stage.missing[:, stage.target]).sum())
    for share in SHARES:
        assert run(done, f"average attack, {share}%").configuration["ratings"]["n_users"] == 60 + round(
            share / 100 * rated
        )


def test_without_an_attack_nothing_moves(done):
    for condition in ("no attack", "robust routers, no attack"):
        for column in ("shift", "shift_als", "shift_soft_impute", "shift_rdmc_pseudo_huber"):
            assert (done.seeds(condition, column) == 0).all()


def test_fake_users_who_join_halfway_change_nothing_before(done):
    plain, late = done.probes("no attack", 3), done.probes("love/hate, 50%, halfway", 3)
    assert list(plain["time"]) == list(late["time"])
    before = plain["time"] < 30
    assert before.sum() >= 2
    for column in ("target_prediction", "test_rmse"):
        # Sums over more users are rounded otherwise.
        np.testing.assert_allclose(plain.loc[before, column], late.loc[before, column], rtol=1e-12)
        assert plain[column].iloc[-1] != pytest.approx(late[column].iloc[-1], rel=1e-6)


def test_the_target_is_measured_over_those_who_have_not_rated_it(done, stage):
    result = run(done, "no attack")
    users = stage.missing[:, stage.target]
    predicted = np.clip(result.user_profiles[users] @ result.item_profiles[stage.target], 1.0, 5.0)
    assert done.probes("no attack", 3)["target_prediction"].iloc[-1] == pytest.approx(predicted.mean(), abs=1e-12)


def test_robust_routers_weigh_large_errors_less():
    own, other = np.array([0.5, -1.0]), np.array([2.0, 0.5])
    error = 4.0 - own @ other
    for tau in (1e9, 0.5):
        changed = own.copy()
        network_attack.robust_update(tau)(changed, other, 4.0, 0.1, 0.2)
        weighed = error / np.sqrt(1 + (error / tau) ** 2)
        np.testing.assert_allclose(changed, own + 0.1 * (weighed * other - 0.2 * own), rtol=1e-12)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (
            ["--kinds", "average,average"],
            "argument --kinds: expected distinct names of average, reverse_bandwagon, love_hate, random",
        ),
        (["--kinds", "segment"], "argument --kinds: "),
        (["--profiles", "20"], "argument --profiles: expected distinct fractions between 0 and 1"),
        (["--lambdas", "0"], "argument --lambdas: expected distinct numbers > 0"),
        (["--tau", "0"], "argument --tau: expected a number > 0"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("network_attack", argv, tmp_path, capsys)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--users", "20"], "--kinds reverse_bandwagon, seed 3: n_selected must be at most "),
        (["--items", "4"], "--items 4, seed 3: some user has no rating; give more"),
    ],
)
def test_too_small_a_world_is_refused_before_anything_is_run(argv, told, tmp_path, capsys):
    assert network_attack.main([*SIZE, *argv, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""
    assert not list(tmp_path.iterdir())


def test_one_seed_one_share_and_all_kinds_are_enough(tmp_path):
    kinds = "average,reverse_bandwagon,love_hate,random,bandwagon"
    argv = [*SIZE, "--seeds", "3", "--profiles", "0.2", "--kinds", kinds, "--selected", "3", "--min-ratings", "5"]
    assert network_attack.main([*argv, "--lambdas", "0.2", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "network_attack.png").stat().st_size > 10_000
    answer = json.loads((tmp_path / "summary.json").read_text())["answer"]
    assert all(name in answer for name in ("reverse bandwagon", "random", "Decentralization itself"))


def test_runs_that_diverge_are_told_and_nothing_is_lost(tmp_path, capsys):
    argv = [*SIZE, "--seeds", "3", "--kinds", "average", "--profiles", "0.2", "--lambdas", "0.2"]
    argv += ["--rate", "60", "--schedule", "constant", "--out", str(tmp_path)]
    assert network_attack.main(argv) == 0
    printed = capsys.readouterr().out
    assert "diverged" in printed
    assert {"probes.csv", "table.csv", "network_attack.png"} <= {each.name for each in tmp_path.iterdir()}
