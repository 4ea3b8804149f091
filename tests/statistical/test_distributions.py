"""Every distribution against scipy's, by Kolmogorov and Smirnov."""

import numpy as np
import pytest
from scipy import stats

from algorithms.chance import USER, draw, entity_keys
from algorithms.distributions import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
    compile_distributions,
    sample_covering,
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
    (Weibull(246, 0.67), stats.weibull_min(0.67, scale=246)),
    (Weibull(2, 3), stats.weibull_min(3, scale=2)),
    (Pareto(2, 9), stats.pareto(9, scale=2)),
    (Pareto(0.5, 30), stats.pareto(30, scale=0.5)),
]
HEAVY = [(Pareto(2, 0.8), stats.pareto(0.8, scale=2)), (Pareto(2, 1.5), stats.pareto(1.5, scale=2))]
# Densities proportional to x f(x), by hand where scipy has the family.
COVERING_LAWS = [
    (Uniform(0, 3), stats.powerlaw(2, scale=3)),
    (LogNormal(0.07, 0.8), stats.lognorm(0.8, scale=0.07 * np.exp(0.64))),
    (Exponential(3), stats.gamma(2, scale=3)),
    (Gamma(0.5, 2), stats.gamma(1.5, scale=2)),
    (Gamma(7.5, 3), stats.gamma(8.5, scale=3)),
    (Weibull(3, 1), stats.gamma(2, scale=3)),
    (Weibull(246, 0.67), stats.gengamma(1 + 1 / 0.67, 0.67, scale=246)),
    (Pareto(2, 2.5), stats.pareto(1.5, scale=2)),
]


def drawn(distribution, purpose=50):
    return sample_each(distribution, np.uint64(1), np.uint64(purpose), KEYS)


def covering(distribution):
    """Lengths of the intervals that cover a fixed time, one for each key."""
    rows, pool = compile_distributions([distribution])
    words = [draw(np.uint64(1), np.uint64(52), key, 0) for key in KEYS]
    return np.array([sample_covering(rows, pool, 0, np.uint64(word)) for word in words])


def covered(distribution, n, cycles):
    """Lengths of the intervals in which a time far from the start falls, by laying `cycles` of them end to end."""
    keys = entity_keys(USER, range(n * cycles))
    lengths = sample_each(distribution, np.uint64(3), np.uint64(53), keys).reshape(n, cycles)
    ends = lengths.cumsum(axis=1)
    time = 0.5 * cycles * distribution.expectation()
    assert (ends[:, -1] > time).all()
    return lengths[np.arange(n), (ends > time).argmax(axis=1)]


@pytest.mark.parametrize("purpose", [50, 51])
@pytest.mark.parametrize(("distribution", "law"), LAWS + HEAVY, ids=lambda value: repr(value)[:24])
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


@pytest.mark.parametrize(("distribution", "law"), COVERING_LAWS, ids=lambda value: repr(value)[:24])
def test_covering_lengths_follow_the_length_biased_law(distribution, law):
    assert stats.kstest(covering(distribution), law.cdf).pvalue > ALPHA


@pytest.mark.parametrize(
    "distribution",
    [Uniform(1, 3), LogNormal(1, 0.8), Exponential(3), Gamma(0.5, 2), Weibull(3, 0.67), Pareto(2, 3)],
    ids=repr,
)
def test_covering_lengths_are_those_of_the_intervals_around_a_late_time(distribution):
    seen = covered(distribution, 4000, 100)
    assert stats.ks_2samp(covering(distribution), seen).pvalue > ALPHA


@pytest.mark.parametrize("distribution", [Exponential(3), Gamma(0.5, 2), Weibull(2, 3), Uniform(1, 3)], ids=repr)
def test_the_mean_covering_length_is_the_second_moment_over_the_first(distribution):
    lengths, plain = covering(distribution), drawn(distribution)
    expected = (plain**2).mean() / distribution.expectation()
    error = np.hypot(lengths.std(), (plain**2).std() / distribution.expectation()) / np.sqrt(N)
    assert abs(lengths.mean() - expected) < stats.norm.isf(ALPHA / 2) * error


def test_an_empirical_value_covers_in_proportion_to_it():
    values, counts = np.unique(covering(Empirical([0, 1, 2, 2, 5, 10])), return_counts=True)
    assert values.tolist() == [1, 2, 5, 10]
    assert stats.chisquare(counts, np.array([1, 4, 5, 10]) * N / 20).pvalue > ALPHA
