"""Section 3.1 of the second seed paper."""

import numpy as np
import pytest
from scipy import stats

from algorithms.synthetic import BREAKPOINTS, recommender
from algorithms.synthetic.recommender import categorized, largest_mean_shift

QUANTILE = -0.2533471031357997  # of the standard normal distribution, at 0.4


@pytest.mark.parametrize("n_categories", [3, 5, 10])
def test_size_categories_and_defaults_are_those_of_the_paper(n_categories):
    data = recommender(seed=1, n_categories=n_categories)
    assert data.complete.shape == data.latent.shape == (300, 200)
    assert data.complete.dtype == np.float64
    assert np.unique(data.complete).tolist() == data.categories.tolist() == list(range(1, n_categories + 1))
    assert data.shifts.shape == (200,)
    assert repr(data) == f"Recommender(300 users, 200 items, {n_categories} categories)"


def test_breakpoints_are_those_of_the_paper():
    assert BREAKPOINTS == {
        3: (0, 1.5),
        5: (-1.5, -0.5, 0.5, 1.5),
        10: (-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2),
    }


@pytest.mark.parametrize(("n_categories", "top"), [(3, 1.5), (5, 1.5), (10, 2)])
def test_largest_shift_puts_two_fifths_of_the_ratings_into_the_top_category(n_categories, top):
    data = recommender(2000, 400, seed=1, n_categories=n_categories)
    assert data.largest_shift == pytest.approx(top + QUANTILE, abs=1e-12)
    assert stats.norm.sf(top - data.largest_shift) == pytest.approx(0.4, abs=1e-12)
    ratings = categorized(data.latent + data.largest_shift, data.breakpoints)
    # 400 items whose variances differ: the standard error is about 0.002.
    assert np.mean(ratings == n_categories) == pytest.approx(0.4, abs=0.008)


def test_values_are_cut_at_the_breakpoints():
    values = np.array([[-9.0, -1.5001, -1.5, -0.6], [-0.5, 0.49, 0.5, 1.5]])
    assert categorized(values, BREAKPOINTS[5]).tolist() == [[1, 1, 2, 2], [3, 3, 4, 5]]
    assert categorized(np.array([-0.1, 0.0, 1.4, 1.5]), BREAKPOINTS[3]).tolist() == [1, 2, 2, 3]
    assert categorized(np.array([-2.1, -0.1, 0.1, 1.9, 2.1]), BREAKPOINTS[10]).tolist() == [1, 5, 6, 9, 10]


def test_ratings_are_shifted_latent_values():
    data = recommender(30, 20, seed=2)
    assert np.array_equal(data.complete, categorized(data.latent + data.shifts, data.breakpoints))
    means = data.complete.mean(axis=0)
    assert stats.spearmanr(means, data.shifts).statistic > 0.9


def test_latent_values_have_variance_1_and_the_rank_asked_for():
    data = recommender(seed=3)
    variances = [recommender(seed=seed).latent.var() for seed in range(30)]
    assert np.mean(variances) == pytest.approx(1, abs=0.02)
    singular = np.linalg.svd(data.latent, compute_uv=False)
    assert singular[19] > 2 * singular[20]  # signal of rank 20, then noise
    singular = np.linalg.svd(recommender(seed=3, rank=4).latent, compute_uv=False)
    assert singular[3] > 2 * singular[4]


def test_shifts_are_uniform_between_the_largest_and_its_negative():
    data = recommender(2, 5000, seed=4, rank=1)
    spread = stats.uniform(-data.largest_shift, 2 * data.largest_shift)
    assert stats.kstest(data.shifts, spread.cdf).pvalue > 0.01
    assert np.abs(data.shifts).max() < data.largest_shift


def test_worlds_with_another_number_of_categories_are_pairs():
    three, five, ten = (recommender(seed=5, n_categories=n) for n in (3, 5, 10))
    assert np.array_equal(three.latent, five.latent)
    assert np.array_equal(five.latent, ten.latent)
    np.testing.assert_allclose(five.shifts / five.largest_shift, ten.shifts / ten.largest_shift, rtol=1e-14)
    # 3 and 5 categories share the top breakpoint, and so shifts and top ratings.
    assert np.array_equal(three.complete == 3, five.complete == 5)


def test_a_seed_gives_one_world():
    first, again, other = (recommender(20, 10, seed=seed) for seed in (6, 6, 7))
    assert np.array_equal(first.complete, again.complete)
    assert np.array_equal(first.shifts, again.shifts)
    assert not np.array_equal(first.latent, other.latent)
    assert not np.array_equal(first.shifts, other.shifts)


def test_top_share_is_an_argument_of_the_shift():
    assert largest_mean_shift((0.0, 2.0), top_share=0.5) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_users": 0}, r"^n_users must be an integer >= 1, got 0; pass"),
        ({"n_items": 2.5}, r"^n_items must be an integer >= 1, got 2\.5; pass"),
        ({"rank": True}, r"^rank must be an integer >= 1, got True; the seed has 20"),
        ({"n_categories": 4}, r"^n_categories must have breakpoints, got 4; choose one of 3, 5, 10$"),
        ({"n_categories": "5"}, r"^n_categories must be an integer >= 2, got '5'; choose one of 3, 5, 10$"),
    ],
)
def test_errors_name_the_argument_and_the_mend(arguments, message):
    with pytest.raises(ValueError, match=message):
        recommender(seed=1, **arguments)
