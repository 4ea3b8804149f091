"""Every distribution against scipy's, by Kolmogorov and Smirnov."""

import numpy as np
import pytest
from scipy import stats

from algorithms.chance import USER, entity_keys
from algorithms.distributions import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Uniform,
    sample_each,
)
from algorithms.learning import Learning
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential, random_order

pytestmark = pytest.mark.statistical

ALPHA = 1e-4
N = 50_000
KEYS = entity_keys(USER, range(N))
LAWS = [
    (Uniform(-2, 3), stats.uniform(-2, 5)),
    (Normal(1, 2), stats.norm(1, 2)),
    (LogNormal(0.07, 0.8), stats.lognorm(0.8, scale=0.07)),
    (Exponential(3), stats.expon(scale=3)),
    (Gamma(0.05, 2), stats.gamma(0.05, scale=2)),
    (Gamma(0.5, 2), stats.gamma(0.5, scale=2)),
    (Gamma(1, 0.1), stats.gamma(1, scale=0.1)),
    (Gamma(7.5, 3), stats.gamma(7.5, scale=3)),
    (Gamma(200, 1), stats.gamma(200)),
]


def drawn(distribution, purpose=50):
    return sample_each(distribution, np.uint64(1), np.uint64(purpose), KEYS)


@pytest.mark.parametrize("purpose", [50, 51])
@pytest.mark.parametrize(("distribution", "law"), LAWS, ids=lambda value: repr(value)[:24])
def test_samples_follow_the_law(distribution, law, purpose):
    assert stats.kstest(drawn(distribution, purpose), law.cdf).pvalue > ALPHA


@pytest.mark.parametrize(("distribution", "law"), LAWS, ids=lambda value: repr(value)[:24])
def test_mean_and_variance(distribution, law):
    sample = drawn(distribution)
    mean, variance, kurtosis = (float(m) for m in law.stats("mvk"))
    bound = stats.norm.isf(ALPHA / 2)
    assert abs(sample.mean() - mean) < bound * np.sqrt(variance / N)
    assert abs(sample.var() - variance) < bound * variance * np.sqrt((kurtosis + 2) / N)


def test_the_tails_of_the_normal():
    sample = drawn(Normal(0, 1))
    for edge in (2, 3, 3.5):
        for count in ((sample > edge).sum(), (sample < -edge).sum()):
            assert stats.binomtest(int(count), N, stats.norm.sf(edge)).pvalue > ALPHA


def test_empirical_draws_each_value_equally():
    values, counts = np.unique(drawn(Empirical([*range(29), 3])), return_counts=True)
    assert values.tolist() == list(range(29))
    expected = np.where(values == 3, 2, 1) * N / 30
    assert stats.chisquare(counts, expected).pvalue > ALPHA


def test_a_constant_never_varies():
    assert (drawn(Constant(0.25)) == 0.25).all()


def test_a_fresh_network_predicts_the_middle_of_the_scale():
    ratings = Ratings.from_arrays([0], [0], [3.0], scale=(1, 5), user_ids=range(400), item_ids=range(400))
    fresh = Sequential(ratings, Learning(rank=10), seed=1)
    entries = np.concatenate([fresh.user_profiles.ravel(), fresh.item_profiles.ravel()])
    assert stats.kstest(entries, stats.uniform(0, 2 * np.sqrt(3 / 10)).cdf).pvalue > ALPHA
    # An inner product of rank 10 has variance 10 (E[x^2]^2 - E[x]^4) = 9 (16/9 - 1) / 10.
    means = (fresh.user_profiles * fresh.item_profiles).sum(axis=1)
    assert abs(means.mean() - 3) < stats.norm.isf(ALPHA / 2) * np.sqrt(0.7 / 400)


def test_the_sequential_order_is_uniform_over_ratings_and_sides():
    rating, user_side = random_order(37, N, seed=1)
    cells = np.bincount(2 * rating + user_side, minlength=74)
    assert stats.chisquare(cells).pvalue > ALPHA
    successive = np.bincount(37 * rating[:-1] + rating[1:], minlength=37 * 37)
    assert stats.chisquare(successive).pvalue > ALPHA
    sides = np.bincount(2 * user_side[:-1] + user_side[1:], minlength=4)
    assert stats.chisquare(sides).pvalue > ALPHA
