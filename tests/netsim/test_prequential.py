"""Ratings that come are predicted before they are learned: rows by hand; what probes see; tables on disk."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    Constant,
    Learning,
    Periodic,
    Recommendations,
    Result,
    Simulation,
    World,
    objective,
    rmse,
    simulate,
)

NEVER = Periodic(1.0, phase=1e6)
RATINGS = Ratings.from_arrays(
    ["a", "a", "b", "b", "c"], ["p", "q", "p", "q", "p"], [2.0, 4.0, 5.0, 1.0, 4.0], scale=(1, 5)
)
AT = np.array([0.0, 1.0, 2.0, 3.0, 5.0])
COLUMNS = ["time", "user", "item", "rating", "predicted", "item_mean", "user_ratings", "item_ratings"]


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def silent(**changes):
    """Three users and two items; nobody sends; all but a's rating of p come later, and that is changed at 4."""
    plain = World(
        RATINGS,
        user_broadcast=NEVER,
        router_broadcast=NEVER,
        learning=Learning(rank=2),
        arrivals=Arrivals(AT, ((4.0, 0, 3.0),)),
    )
    return plain.replace(**changes)


def rows(result):
    return list(result.prequential[COLUMNS].itertuples(index=False, name=None))


# -- rows --------------------------------------------------------------------------------------------------------------


def test_rows_by_hand(engine):
    simulation = Simulation(silent(), seed=1, engine=engine)
    view = simulation.view()
    u, v = view.user_profiles, view.item_profiles
    assert rows(simulation.run(6.0)) == [
        (1.0, "a", "q", 4.0, 2.0, 2.0, 1, 0),  # the item has none: the user's mean; the mean of all
        (2.0, "b", "p", 5.0, 2.0, 2.0, 0, 1),  # the user has none: the item's mean
        (3.0, "b", "q", 1.0, pytest.approx(np.clip(u[1] @ v[1], 1, 5), rel=1e-14), 4.0, 1, 1),
        (4.0, "a", "p", 3.0, pytest.approx(np.clip(u[0] @ v[0], 1, 5), rel=1e-14), (2.0 + 5.0) / 2, 2, 2),
        (5.0, "c", "p", 4.0, (3.0 + 5.0) / 2, (3.0 + 5.0) / 2, 0, 2),  # by the changed value, counted once
    ]


def test_where_nothing_is_known_the_middle_is_predicted(engine):
    result = simulate(silent(arrivals=Arrivals([1.0, 2.0, 2.0, np.inf, np.inf])), until=3.0, seed=1, engine=engine)
    assert rows(result) == [
        (1.0, "a", "p", 2.0, 3.0, 3.0, 0, 0),
        (2.0, "a", "q", 4.0, 2.0, 2.0, 1, 0),  # at equal times in the order of the ratings
        (2.0, "b", "p", 5.0, 2.0, 2.0, 0, 1),
    ]


def test_a_user_and_an_item_without_ratings_are_predicted_the_middle_and_the_mean_of_all(engine):
    """The running mean of an item falls back on that of all ratings; the network knows no such mean."""
    result = simulate(silent(arrivals=Arrivals([0.0, np.inf, np.inf, 1.0, np.inf])), until=3.0, seed=1, engine=engine)
    assert rows(result) == [(1.0, "b", "q", 1.0, 3.0, 2.0, 0, 0)]


@pytest.mark.parametrize(("entry", "predicted"), [(10.0, 5.0), (0.01, 1.0)])
def test_predictions_are_clipped(engine, entry, predicted):
    world = silent(learning=Learning(rank=2, initial=Constant(entry)))
    assert rows(simulate(world, until=3.5, seed=1, engine=engine))[2][4] == predicted


def test_a_script_predicts_too_also_what_nobody_foresaw(engine):
    ratings = Ratings.from_arrays(["a"], ["p"], [2.0], user_ids="ab", item_ids="pq", scale=(1, 5))
    simulation = Simulation(silent(ratings=ratings, arrivals=None), seed=1, engine=engine)
    simulation.run(1.0)
    simulation.add_rating("b", "p", 4)
    simulation.add_rating("b", "p", 4)  # the same again is a change
    simulation.add_rating("b", "q", 3.0)
    view = simulation.view()
    predicted = float(np.clip(view.user_profiles[1] @ view.item_profiles[0], 1, 5))
    assert rows(simulation.run(2.0)) == [
        (1.0, "b", "p", 4.0, 2.0, 2.0, 0, 1),
        (1.0, "b", "p", 4.0, pytest.approx(predicted, rel=1e-14), 3.0, 1, 2),
        (1.0, "b", "q", 3.0, 4.0, 3.0, 1, 0),
    ]


@pytest.mark.parametrize("time", [2.75, 3.0])
def test_it_is_predicted_from_the_profiles_just_before(engine, time):
    """2.75 is a time at which messages arrive, 3 one at which nodes tick: what happens then comes after."""
    every = {"user_broadcast": Periodic(1.0, phase=0.0), "router_broadcast": Periodic(1.0, phase=0.5)}
    world = silent(delay=0.25, minimum_delay=0.0, arrivals=Arrivals([0, 0, 0, time, 0]), **every)
    simulation = Simulation(world, seed=1, engine=engine)
    first = simulation.run(time)
    assert first.prequential.empty
    predicted = float(np.clip(first.user_profiles[1] @ first.item_profiles[1], 1, 5))
    after = simulation.run(time + 0.5)
    assert rows(after)[0][4] == pytest.approx(predicted, rel=1e-14)
    moved = after.user_updates.sum() + after.item_updates.sum() - first.user_updates.sum() - first.item_updates.sum()
    assert moved > 0


def test_its_error():
    result = simulate(silent(arrivals=Arrivals([0.0, 1.0, 2.0, np.inf, np.inf])), until=3.0, seed=1)
    assert result.prequential_rmse() == pytest.approx(math.sqrt((2**2 + 3**2) / 2))
    assert result.prequential_rmse("item_mean", after=1.0) == pytest.approx(3.0)  # 1 itself is left out
    assert math.isnan(result.prequential_rmse(after=2.0))
    assert math.isnan(simulate(silent(arrivals=None), until=1.0, seed=1).prequential_rmse())
    with pytest.raises(ValueError, match="column must be 'predicted' or 'item_mean', got 'rating'"):
        result.prequential_rmse("rating")


# -- what probes see ---------------------------------------------------------------------------------------------------


def test_a_view_sees_what_has_been_given(engine):
    simulation = Simulation(silent(), seed=1, engine=engine)
    kept = []
    for until in (0.5, 1.5, 3.5, 4.5, 5.5):
        simulation.run(until)
        kept.append(simulation.view())
    assert [view.known.sum() for view in kept] == [1, 2, 4, 4, 5]
    assert kept[1].known.tolist() == [True, True, False, False, False]
    assert kept[1].ratings == RATINGS.select(kept[1].known)
    assert kept[2].ratings.value.tolist() == [2.0, 4.0, 5.0, 1.0]
    assert kept[3].ratings.value.tolist() == [3.0, 4.0, 5.0, 1.0]
    assert kept[4].ratings == RATINGS.with_values([3.0, 4.0, 5.0, 1.0, 4.0])
    assert simulation.world.ratings.value.tolist() == [2.0, 4.0, 5.0, 1.0, 4.0]


def test_a_view_at_the_time_of_an_arrival_does_not_see_it(engine):
    result = simulate(silent(), until=2.0, seed=1, engine=engine, every=1.0, probes=[Known()])
    assert result.probes["known"].tolist() == [1, 1, 2]


class Known:
    columns = ("known",)

    def __call__(self, view):
        return {"known": int(view.known.sum())}


def test_a_view_without_changes_has_the_ratings_of_the_world():
    simulation = Simulation(silent(arrivals=None), seed=1)
    assert simulation.view().ratings is RATINGS
    assert simulation.view().known.all()


def test_probes_predict_by_what_has_been_given(engine):
    """The rating of b and q: the middle, then q's mean, then by the profiles."""
    test = RATINGS.select([False, False, False, True, False])
    world = silent(arrivals=Arrivals([0.0, 1.0, 2.0, np.inf, 3.0]))
    simulation = Simulation(world, seed=1, engine=engine, probes=[rmse(test), objective()])
    result = simulation.run(4.0, at=[0.5, 1.5, 2.5])
    view = simulation.view()
    error = abs(np.clip(view.user_profiles[1] @ view.item_profiles[1], 1, 5) - 1.0)
    assert result.probes["test_rmse"].tolist() == pytest.approx([2.0, 2.0, 3.0, error, error], rel=1e-12)
    assert result.probes["objective"].nunique() == 4  # over the ratings given


def test_probes_agree_with_the_predictions_of_ratings_that_come(engine):
    """A view just before each arrival predicts what the prequential table has."""
    every = {"user_broadcast": 0.7, "router_broadcast": 0.7}
    simulation = Simulation(silent(delay=0.25, **every), seed=1, engine=engine)
    for time in (1.0, 2.0, 3.0, 4.0, 5.0):
        simulation.run(time)
        view = simulation.view()
        row = simulation.run(time + 0.01).prequential.iloc[-1]
        predict = Predictor(view.ratings)
        user, item = [["a", "b", "c"].index(row["user"])], [["p", "q"].index(row["item"])]
        (predicted,) = predict(view.user_profiles, view.item_profiles, np.array(user), np.array(item))
        assert row["predicted"] == pytest.approx(predicted, rel=1e-14)


def test_probes_do_not_look_ahead_where_nothing_has_been_given():
    """The prequential table predicts 3, the middle, at the time of the first rating."""
    world = silent(arrivals=Arrivals([1.0, 1.0, 1.0, 1.0, 1.0]))
    result = simulate(world, until=1.0, seed=1, probes=[rmse(RATINGS)])
    expected = math.sqrt(np.mean((RATINGS.value - 3.0) ** 2))
    assert result.probes["test_rmse"].tolist()[0] == pytest.approx(expected)


# -- on disk -----------------------------------------------------------------------------------------------------------


def living(**changes):
    """Ratings come, and users ask for items; some requests are served, some are not."""
    asked = Recommendations(RATINGS, mean_gap=0.5, timeout=0.3, retries=1)
    return silent(delay=0.1, loss=0.3, recommendations=asked, user_broadcast=1.0, router_broadcast=1.0).replace(
        **changes
    )


def test_both_tables_come_back_the_same(tmp_path, engine):
    result = simulate(living(), until=9.0, seed=1, engine=engine)
    assert {"served", "timed_out"} <= set(result.recommendations["outcome"])
    assert result.recommendations["predicted"].isna().any()
    loaded = Result.load(result.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(result.prequential, loaded.prequential, check_exact=True)
    pd.testing.assert_frame_equal(result.recommendations, loaded.recommendations, check_exact=True, check_dtype=False)
    assert loaded.prequential_rmse() == result.prequential_rmse()


def test_the_outcome_comes_back_with_its_type(tmp_path):
    result = simulate(living(), until=9.0, seed=1)
    loaded = Result.load(result.save(tmp_path / "run"))
    assert loaded.recommendations["outcome"].dtype == result.recommendations["outcome"].dtype


def test_empty_tables_come_back_empty(tmp_path):
    result = simulate(silent(arrivals=None), until=1.0, seed=1)
    loaded = Result.load(result.save(tmp_path / "run"))
    for name in ("prequential", "recommendations"):
        assert getattr(result, name).empty
        pd.testing.assert_frame_equal(getattr(result, name), getattr(loaded, name), check_exact=True)


def test_an_empty_table_has_the_types_of_a_full_one():
    full, empty = simulate(silent(), until=6.0, seed=1), simulate(silent(arrivals=None), until=1.0, seed=1)
    numbers = [name for name in COLUMNS if name not in ("user", "item")]
    assert empty.prequential[numbers].dtypes.tolist() == full.prequential[numbers].dtypes.tolist()


def test_a_result_of_an_earlier_version_lacks_both(tmp_path):
    result = simulate(silent(), until=6.0, seed=1)
    folder = result.save(tmp_path / "run")
    head = json.loads((folder / "result.json").read_text())
    for name in ("prequential", "recommendations"):
        (folder / f"{name}.csv").unlink()
        del head["columns"][name], head["rows"][name]
    (folder / "result.json").write_text(json.dumps(head))
    loaded = Result.load(folder)
    assert loaded.prequential.empty
    assert loaded.recommendations.empty
    assert math.isnan(loaded.prequential_rmse())
    assert loaded.user_profiles.tobytes() == result.user_profiles.tobytes()
    Result.load(loaded.save(tmp_path / "again"))
    result.save(folder)  # takes its place
    assert len(Result.load(folder).prequential) == 5


@pytest.mark.parametrize("name", ["prequential", "recommendations"])
def test_a_table_that_is_missing_or_short_is_seen(tmp_path, name):
    folder = simulate(living(), until=9.0, seed=1).save(tmp_path / "run")
    lines = (folder / f"{name}.csv").read_text().splitlines(keepends=True)
    (folder / f"{name}.csv").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match=rf"{name}\.csv: found \d+ rows, expected \d+"):
        Result.load(folder)
    (folder / f"{name}.csv").unlink()
    with pytest.raises(ValueError, match=rf"{name}\.csv: missing"):
        Result.load(folder)
