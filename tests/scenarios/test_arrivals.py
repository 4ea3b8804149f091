"""The scenario of users who join while the network runs, and of the replay."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from algorithms.learning import Learning
from algorithms.metrics import rmse
from algorithms.ratings import Ratings
from algorithms.synthetic import low_rank
from scenarios import arrivals, movielens, replay
from tests.scenarios.comparing import TINY, check_repeats, check_written, mistake, study

SOME = [*TINY, "--join", "0.1,0.25"]
START, LATE, AGAIN = "all from the start", "25% join later", "25% join later, all restart"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("arrivals", tmp_path_factory.mktemp("arrivals"), SOME)


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A run that is long and large enough to see whether newcomers catch up."""
    argv = ["--users", "100", "--items", "100", "--seeds", "1-4", "--join", "0.3", "--until", "450"]
    return study("arrivals", tmp_path_factory.mktemp("joined"), argv)


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=4)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


# -- cold start ----------------------------------------------------------------------------------------------------


def test_new_users_reach_the_error_of_old_ones_with_equally_many_ratings_without_a_restart(joined):
    late = "30% join later"
    before = joined.probes(late, 1).query("time <= 150")["new_0"]
    assert (before > joined.seeds(late, "counterparts")[0] + 0.1).all()  # not known yet, they are given item means
    # Both groups are drawn; how much they differ anyhow, the run in which all were there from the start says.
    beyond = joined.seeds(late, "difference") - joined.seeds(START, "difference")
    assert np.abs(beyond).max() < 0.02
    assert abs(joined.seeds(late, "difference").mean()) < 0.02
    assert np.abs(joined.seeds(late, "cost")).max() < 0.02


def test_new_users_learn_faster_than_a_network_does_from_the_start(joined):
    times = joined.seeds("30% join later", "caught_up")
    assert (times > 0).all()
    assert (times < joined.seeds(START, "caught_up")).all()


def test_a_restart_costs_new_and_old_users_more(joined):
    late, again = "30% join later", "30% join later, all restart"
    assert (joined.seeds(again, "disturbed") > joined.seeds(late, "disturbed") + 0.03).all()
    assert np.nanmean(joined.seeds(again, "caught_up")) > 1.2 * joined.seeds(late, "caught_up").mean()


def test_until_they_join_all_is_as_if_they_never_came(done):
    late, again = (done.probes(name, 3).query("time <= 20") for name in (LATE, AGAIN))
    pd.testing.assert_frame_equal(late.drop(columns="condition"), again.drop(columns="condition"))
    assert (done.probes(START, 3)["sent"] > done.probes(LATE, 3)["sent"])[1:].all()


def test_differences_are_taken_at_the_end_and_against_the_same_users(done):
    plain, run = done.probes(START, 5).iloc[-1], done.probes(LATE, 5).iloc[-1]
    assert done.seeds(LATE, "new")[1] == pytest.approx(run["new_1"], abs=1e-12)
    assert done.seeds(LATE, "difference")[1] == pytest.approx(run["new_1"] - run["counterparts_1"], abs=1e-12)
    assert done.seeds(LATE, "cost")[1] == pytest.approx(run["new_1"] - plain["new_1"], abs=1e-12)


def test_users_join_when_they_are_told_to(tmp_path):
    at = study("arrivals", tmp_path, [*SOME, "--at", "40"])
    plain, late = at.probes(START, 3), at.probes(LATE, 3)
    assert late.query("time <= 40")["new_1"].nunique() < 12 < plain.query("time <= 40")["new_1"].nunique()
    assert late.query("time > 40")["new_1"].iloc[-1] < late["new_1"].iloc[0]


def test_counterparts_have_equally_many_ratings():
    ratings = low_rank(60, 30, rank=3, missing=0.5, seed=2).train
    new, old = arrivals.pairs(ratings, 0.3, 7)
    counts = np.diff(ratings.by_user.start)
    assert len(new) == 18
    np.testing.assert_array_equal(counts[new], counts[old])
    assert len({*new.tolist(), *old.tolist()}) == 36
    fewer, _ = arrivals.pairs(ratings, 0.1, 7)
    np.testing.assert_array_equal(fewer, new[:6])
    assert set(arrivals.pairs(ratings, 0.3, 8)[0].tolist()) != set(new.tolist())


def test_too_few_pairs_are_refused():
    user = [0, 1, 1, 2, 2, 2]
    ratings = Ratings.from_arrays(user, [0, 0, 1, 0, 1, 2], [1.0, 2.0, 3.0, 4.0, 5.0, 1.0])
    with pytest.raises(ValueError, match=r"--join 0\.4: 1 newcomers need as many pairs .* found 0 of 3 users"):
        arrivals.pairs(ratings, 0.4, 1)


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ([0.5, 0.1, 0.01, 0.0], 20.0),
        ([0.5, 0.01, 0.03, 0.0], 30.0),  # it must stay there
        ([0.0, -1.0, 0.0, 0.0], 0.0),  # below is near
        ([0.5, 0.1, 0.01, 0.03], math.nan),
        ([0.5, math.nan, 0.0, 0.0], 20.0),
    ],
)
def test_a_difference_has_settled_when_it_stays_small(above, expected):
    found = arrivals.settled(np.array([0.0, 10.0, 20.0, 30.0]), np.array(above), 0.02)
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--join", "30"], "argument --join: expected distinct fractions between 0 and 1"),
        (["--join", "0.9"], "--join 0.9: 14 newcomers need as many pairs"),
        (["--at", "60"], "--at 60: users must join before the end of the run, --until 60"),
        (["--at", "0"], "argument --at: expected a number > 0"),
        (["--test", "1"], "argument --test: "),
        (["--replay", "nowhere"], "path must name u.data or the folder that holds it, got nowhere"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("arrivals", argv, tmp_path, capsys)


def rows_of(compared, differences):
    return pd.DataFrame(
        {"condition": each.label, "seed": seed, "difference": more, "cost": 0.001, "caught_up": 40.0, "disturbed": 0.01}
        for each in compared
        for seed, more in enumerate(differences)
    )


@pytest.mark.parametrize(
    ("differences", "told"),
    [
        ([0.001, 0.002, 0.0], "without a restart holds: where 30% join later, they differ by +0.0010"),
        ([0.05, 0.06, 0.055], "without a restart does not hold"),
        ([-0.03, 0.04, 0.01], "without a restart is not decided by so few seeds"),
        ([math.nan, math.nan, math.nan], "try a smaller --rate"),
    ],
)
def test_the_answer_says_whether_new_users_reach_old_ones(differences, told):
    compared = [
        arrivals.Condition(START, 0.3, late=False),
        arrivals.Condition("30% join later", 0.3),
        arrivals.Condition("30% join later, all restart", 0.3, restart=True),
    ]
    assert told in arrivals.answer(rows_of(compared, differences), compared, 10.0)


# -- replay --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder like that of MovieLens 100K: 40 users rate 30 items, in random order; 4 users come late."""
    ratings = low_rank(40, 30, rank=3, missing=0.4, seed=4).train
    rng = np.random.default_rng(4)
    late = ratings.user >= 36
    stamps = np.where(late, 9e8 + 900 + 100 * rng.random(len(ratings)), 9e8 + 1000 * rng.random(len(ratings)))
    folder = tmp_path_factory.mktemp("data")
    lines = [
        f"{user + 1}\t{item + 1}\t{value:.0f}\t{stamp:.0f}\n"
        for user, item, value, stamp in zip(ratings.user, ratings.item, ratings.value, stamps, strict=True)
    ]
    (folder / "u.data").write_text("".join(lines))
    return folder


LEARN = ["--rank", "3", "--lam", "0.02", "--rate", "0.05", "--schedule", "constant"]
REPLAY = ["--seeds", "3,5", "--until", "600", "--places", "10", *LEARN]


@pytest.fixture(scope="module")
def replayed(data, tmp_path_factory):
    return study("arrivals", tmp_path_factory.mktemp("replayed"), [*REPLAY, "--replay", str(data)])


def test_a_replay_writes_tables_figure_and_answer(replayed):
    check_written(replayed, conditions=1)
    assert list(replayed.table("table.csv")["condition"]) == [replay.ALL, replay.BEFORE, replay.NEW]


def test_a_replay_repeats(replayed, data, tmp_path):
    check_repeats(replayed, tmp_path, [*REPLAY, "--replay", str(data)])


def test_errors_of_a_replay_are_those_of_its_last_ratings(replayed, data):
    table = pd.read_csv(replayed.out / "runs" / "replay-seed-3" / "prequential.csv")
    lines = pd.read_csv(data / "u.data", sep="\t", names=["user", "item", "rating", "stamp"])
    assert len(table) == len(lines)
    last = table.tail(round(0.2 * len(lines)))
    stamps = table.merge(lines, on=["user", "item"], how="left", validate="1:1")["stamp"]
    assert stamps.is_monotonic_increasing
    for column, source in (("network", "predicted"), ("item_mean", "item_mean")):
        expected = rmse(last[source].to_numpy(), last["rating"].to_numpy())
        assert replayed.seeds(replay.ALL, column)[0] == pytest.approx(expected, rel=1e-12)
    new = ~last["user"].isin(set(table.head(len(table) - len(last))["user"]))
    assert replayed.seeds(replay.NEW, "share")[0] == pytest.approx(100 * new.mean())


def test_a_network_that_has_time_predicts_better_than_the_item_mean_and_near_the_batch_form(replayed):
    network, mean, batch = (replayed.seeds(replay.BEFORE, name) for name in ("network", "item_mean", "batch"))
    assert (network < mean - 0.05).all()
    np.testing.assert_allclose(network, batch, atol=0.1)


def test_the_batch_form_knows_only_the_first_ratings(data):
    ratings = movielens.movielens_100k(data)
    parts = replay.cut(ratings, 0.2)
    assert len(parts.test) == len(parts.order) == round(0.2 * len(ratings))
    assert parts.train.timestamp.max() <= parts.test.timestamp.min()
    assert (np.diff(ratings.timestamp[parts.order]) >= 0).all()
    errors = replay.batch_errors(parts, Learning(rank=3), 2000, 1)
    means = np.array([parts.train.value[parts.train.item == item].mean() for item in range(ratings.n_items)])
    new = ~np.isin(ratings.user[parts.order], parts.train.user)
    assert 0 < new.sum() < len(new)
    expected = means[ratings.item[parts.order]] - ratings.value[parts.order]
    np.testing.assert_allclose(errors[new], expected[new], atol=1e-12)


def test_a_replay_learns_as_the_movielens_scenario_unless_told(data, tmp_path):
    argv = ["--seeds", "3", "--until", "5", "--places", "10", "--rate", "0.01", "--replay", str(data)]
    configuration = study("arrivals", tmp_path, argv).json("configuration.json")
    learning = configuration["worlds"]["replay, seed 3"]["learning"]
    assert (learning["rank"], learning["lam"]) == (movielens.DEFAULTS.rank, movielens.DEFAULTS.lam)
    assert json.dumps(learning["rate"]).count("0.01") == 1


def test_without_a_path_a_replay_finds_the_data_as_the_movielens_scenario(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MOVIELENS_100K", str(data))
    done = study("arrivals", tmp_path, ["--until", "5", "--places", "10", "--seeds", "3", "--replay"])
    assert done.status == 0
    assert "the network's prequential error is" in done.json("summary.json")["answer"]
