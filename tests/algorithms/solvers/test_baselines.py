import numpy as np
import pytest

from algorithms.solvers.baselines import Baseline

NAN = np.nan
X = np.array(
    [
        [1.0, 2.0, 5.0, NAN],
        [2.0, 2.0, NAN, NAN],
        [4.0, NAN, 4.0, NAN],
        [NAN, 3.0, 4.0, NAN],
        [NAN, NAN, NAN, NAN],
    ]
)
MISSING = np.isnan(X)


def completed(rule, **arguments):
    return Baseline(rule, **arguments).fit(X).complete()


def test_observed_cells_stay():
    for rule in ("median", "discretized_median", "mode", "global_mean", "user_mean", "item_mean", "biased_mean"):
        filled = completed(rule)
        np.testing.assert_array_equal(filled[~MISSING], X[~MISSING])
        assert np.isfinite(filled).all()


def test_medians():
    np.testing.assert_array_equal(completed("median")[4], [2.0, 2.0, 4.0, 3.0])  # the last: of all ratings


def test_means():
    mean = np.nanmean(X)
    np.testing.assert_allclose(completed("global_mean")[MISSING], mean)
    np.testing.assert_allclose(completed("item_mean")[4], [7 / 3, 7 / 3, 13 / 3, mean])
    np.testing.assert_allclose(completed("user_mean")[:, 3], [8 / 3, 2.0, 4.0, 3.5, mean])


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_biased_means(damping):
    mean = np.nanmean(X)
    counts = (~MISSING).sum(axis=0) + damping
    items = np.where(MISSING.all(axis=0), 0.0, np.nansum(X - mean, axis=0) / np.maximum(counts, 1))
    rows = (~MISSING).sum(axis=1) + damping
    users = np.where(MISSING.all(axis=1), 0.0, np.nansum(X - mean - items, axis=1) / np.maximum(rows, 1))
    expected = np.clip(mean + users[:, None] + items, 1, 5)
    np.testing.assert_allclose(completed("biased_mean", damping=damping)[MISSING], expected[MISSING])
    assert completed("biased_mean", damping=damping)[4, 3] == pytest.approx(mean)


def test_biased_means_stay_on_the_scale():
    steep = np.array([[5.0, 5.0, NAN], [1.0, NAN, 5.0], [1.0, 1.0, NAN]])
    unclipped = Baseline("biased_mean").fit(steep)
    assert unclipped.mean_ + unclipped.user_bias_[0] + unclipped.item_bias_[2] > 5
    assert unclipped.complete().max() == 5
    assert Baseline("biased_mean", categories=range(1, 8)).fit(steep).complete()[0, 2] > 5


def test_a_median_between_categories_is_drawn_from_the_two_about_evenly():
    ratings = np.full((4000, 2), NAN)
    ratings[:4, 0], ratings[:2, 1] = [1, 2, 5, 5], [1, 5]  # medians 3.5 and 3, between 2 and 5
    solver = Baseline("discretized_median", categories=[1, 2, 5]).fit(ratings)
    drawn = solver.complete()[4:]
    assert set(np.unique(drawn)) == {2.0, 5.0}
    assert np.all(np.abs((drawn == 2).mean(axis=0) - 0.5) < 0.04)
    assert 0.4 < (drawn[:, 0] == drawn[:, 1]).mean() < 0.6  # cells of a row are drawn on their own


def test_several_modes_are_drawn_from_about_evenly():
    ratings = np.full((3000, 1), NAN)
    ratings[:7, 0] = [1, 1, 2, 3, 3, 5, 5]
    drawn = Baseline("mode").fit(ratings).complete()[7:]
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, [1, 3, 5])
    assert np.all(np.abs(counts / counts.sum() - 1 / 3) < 0.04)


def test_an_item_without_a_rating_has_the_mode_of_all():
    np.testing.assert_array_equal(Baseline("mode").fit(X).options_[3][:2], [2.0, 4.0])  # each three times
    own = Baseline("mode", categories=[range(1, 6)] * 3 + [[0, 10]]).fit(X)
    np.testing.assert_array_equal(own.options_[3][:1], [0.0])


def test_draws_belong_to_their_cells_and_the_seed():
    ratings = np.full((50, 3), NAN)
    ratings[:2] = [[1, 1, 1], [2, 2, 2]]
    rows, columns = np.indices(ratings.shape).reshape(2, -1)
    one, other = (Baseline("mode", seed=seed).fit(ratings) for seed in (1, 2))
    np.testing.assert_array_equal(one.predict(rows, columns), one.complete().ravel())
    np.testing.assert_array_equal(one.predict(rows[::-1], columns[::-1]), one.complete().ravel()[::-1])
    np.testing.assert_array_equal(Baseline("mode", seed=1).fit(ratings).complete(), one.complete())
    assert np.any(one.complete() != other.complete())


def test_one_category_is_always_predicted():
    ratings = np.array([[3.0, NAN], [NAN, 3.0]])
    for rule in ("median", "discretized_median", "mode", "global_mean", "user_mean", "item_mean", "biased_mean"):
        np.testing.assert_array_equal(Baseline(rule).fit(ratings).complete(), 3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "mean"}, "rule must be one of median, .*got 'mean'"),
        ({"damping": -1.0}, "damping must be finite and >= 0"),
        ({"rule": "mode", "categories": [1, 2]}, "X must hold categories, got"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Baseline(**arguments).fit(X)


def test_fit_is_asked_for_and_parameters_are_kept():
    with pytest.raises(ValueError, match=r"call fit\(X\) first"):
        Baseline().predict([0], [0])
    solver = Baseline("mode", seed=3)
    assert type(solver)(**solver.get_params()).get_params() == solver.get_params()
    assert solver.fit(X) is solver
