import matplotlib.pyplot as plt
import numpy as np
import pytest

from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.synthetic import low_rank
from netsim import Learning, OnOff, Plateau, Target, World, complete, plots, rmse, simulate
from netsim.probes import rmse_online, rmse_per_user
from tests.netsim.probes.small import at

DATA = low_rank(12, 20, rank=2, missing=0.5, seed=1)
WORLD = World(DATA.train, complete(3), learning=Learning(rank=2))
NOBODY = WORLD.replace(user_churn=OnOff(1e-9, 1e9))


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def errors_of(result, ratings):
    predict = Predictor(result.world.ratings)
    return predict(result.user_profiles, result.item_profiles, ratings.user, ratings.item) - ratings.value


def test_quantiles_over_the_errors_of_users(engine):
    probe = rmse_per_user(DATA.test, quantiles=(0.0, 0.5, 1.0))
    result = simulate(WORLD, until=30.0, seed=1, engine=engine, probes=[probe])
    errors = errors_of(result, DATA.test)
    of_user = [np.sqrt(np.mean(errors[DATA.test.user == user] ** 2)) for user in np.unique(DATA.test.user)]
    found = [result.final[f"test_rmse_per_user_q{q}"] for q in (0, 50, 100)]
    assert found == pytest.approx([min(of_user), np.median(of_user), max(of_user)], rel=1e-12)
    assert found[0] < found[1] < found[2]


def test_users_without_ratings_there_are_left_out(engine):
    """Of a user who predicts by constant rules alone the error is known."""
    train = Ratings.from_arrays(["a"], [0], [3.0], scale=(1, 5), user_ids="abc", item_ids=[0, 1])
    test = Ratings.from_arrays(
        ["a", "b", "b"], [1, 0, 1], [5.0, 4.0, 5.0], scale=(1, 5), user_ids="abc", item_ids=[0, 1]
    )
    probes = [rmse_per_user(test, quantiles=(0.0, 1.0)), rmse_online(test)]
    result = simulate(World(train), until=1.0, seed=1, engine=engine, probes=probes)
    # a is predicted 3 for 5; b the mean 3 of item 0 for 4, and the middle 3 for 5; c has no rating there
    assert result.final["test_rmse_per_user_q100"] == 2.0
    assert result.final["test_rmse_per_user_q0"] == np.sqrt(5 / 2)
    assert result.final["test_rmse_online"] == np.sqrt(9 / 3)


def test_the_error_of_those_online_is_that_of_their_ratings(engine):
    away = [at(5.0, "set_online", False, user=user) for user in DATA.train.user_ids[:7]]
    away.append(at(6.0, "depart", user=DATA.train.user_ids[7]))
    probes = [rmse(DATA.test), rmse_online(DATA.test)]
    result = simulate(WORLD, until=30.0, every=5.0, seed=1, engine=engine, scripts=away, probes=probes)
    errors, online = errors_of(result, DATA.test), np.isin(DATA.test.user, np.arange(8, 12))
    assert result.final["test_rmse_online"] == pytest.approx(np.sqrt(np.mean(errors[online] ** 2)), rel=1e-12)
    assert result.final["test_rmse_online"] != result.final["test_rmse"]
    everyone = result.probes["time"] <= 5.0
    assert everyone.sum() == 2
    assert (result.probes["test_rmse_online"] == result.probes["test_rmse"])[everyone].all()


def test_nan_where_nobody_is_online_and_rules_and_plots_pass_over_it(engine):
    everyone = [at(10.0, "hold_offline", user=user) for user in DATA.train.user_ids]
    back = [at(20.0, "release_offline", user=user) for user in DATA.train.user_ids]
    result = simulate(
        WORLD, until=30.0, every=5.0, seed=1, engine=engine, scripts=everyone + back, probes=[rmse_online(DATA.test)]
    )
    values = result.probes["test_rmse_online"]
    assert np.isnan(values).tolist() == [False, False, False, True, True, False, False]
    assert result.find(Target("test_rmse_online", at_most=float(values.min()))).reached
    assert result.find(Plateau("test_rmse_online", window=5.0, tolerance=100.0)).reached
    axes = plots.convergence(result, metrics=["test_rmse_online"])
    assert len(axes.lines) == 1
    plt.close(axes.figure)
    never = simulate(NOBODY, until=5.0, seed=1, engine=engine, probes=[rmse_online(DATA.test)])
    assert np.isnan(never.probes["test_rmse_online"]).all()
    assert not never.find(Target("test_rmse_online", at_most=1e9)).reached


def test_names_and_clipping():
    probes = [
        rmse_per_user(DATA.test),
        rmse_per_user(DATA.train, name="train_rmse_per_user", quantiles=(0.5,)),
        rmse_online(DATA.test),
        rmse_online(DATA.test, name="raw_online", clip=False),
    ]
    result = simulate(WORLD, until=2.0, every=1.0, seed=1, probes=probes)
    assert result.measured == [
        *(f"test_rmse_per_user_q{q}" for q in (10, 50, 90)),
        "train_rmse_per_user_q50",
        "test_rmse_online",
        "raw_online",
    ]
    assert result.final["raw_online"] > result.final["test_rmse_online"]
    with pytest.raises(ValueError, match="two probes measure a column 'test_rmse_online'; give one another name"):
        simulate(WORLD, until=1.0, seed=1, probes=[rmse_online(DATA.test), rmse_online(DATA.train)])


@pytest.mark.parametrize("probe", [rmse_per_user, rmse_online])
def test_what_is_wrong_is_said(probe):
    name = probe.__name__
    with pytest.raises(ValueError, match=f"^{name}: ratings must be a Ratings, got list"):
        probe([])
    with pytest.raises(ValueError, match=f"^{name}: name must be text, as it names columns, got ''"):
        probe(DATA.test, name="")
    with pytest.raises(ValueError, match=f"^{name}: clip must be True or False, got 'no'"):
        probe(DATA.test, clip="no")


@pytest.mark.parametrize("probe", [rmse_per_user, rmse_online])
@pytest.mark.parametrize("world", [WORLD, NOBODY])
def test_ratings_of_another_world_are_refused(probe, world):
    other = low_rank(12, 21, rank=2, missing=0.5, seed=1)
    with pytest.raises(ValueError, match=r"must have the users and items of the world's ratings \(12 and 20\)"):
        simulate(world, until=1.0, seed=1, probes=[probe(other.test)])


def test_one_probe_measures_several_worlds():
    probes = [rmse_per_user(DATA.test), rmse_online(DATA.test)]
    other = WORLD.replace(ratings=low_rank(12, 20, rank=2, missing=0.4, seed=1).train)
    first = simulate(WORLD, until=5.0, seed=1, probes=probes).final
    assert simulate(other, until=5.0, seed=1, probes=probes).final != first
    assert simulate(WORLD, until=5.0, seed=1, probes=probes).final == first
