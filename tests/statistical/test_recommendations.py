"""Requests for recommendations come as a Poisson process, for any of a user's targets alike."""

import numpy as np
import pytest
from scipy import stats

from algorithms.ratings import Ratings
from netsim import OnOff, Periodic, Recommendations, World, simulate

pytestmark = pytest.mark.statistical

ALPHA = 1e-4
NEVER = Periodic(1e9, phase=1e9)
N_USERS, N_TARGETS, GAP = 100, 7, 2.0


def requests(until, seed=1, **changes):
    pairs = [(user, item) for user in range(N_USERS) for item in range(N_TARGETS)]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [3.0] * len(pairs), scale=(1, 5))
    world = World(
        ratings,
        user_broadcast=NEVER,
        router_broadcast=NEVER,
        delay=1e-3,
        recommendations=Recommendations(ratings, mean_gap=GAP),
    )
    return simulate(world.replace(**changes), until=until, seed=seed, every=until).recommendations


def test_gaps_are_exponential():
    """The first 100 of each user, who have all come long before the end."""
    table = requests(600.0)
    times = [group["asked"].to_numpy()[:100] for _, group in table.groupby("user")]
    assert {len(each) for each in times} == {100}
    gaps = np.concatenate([np.diff(each, prepend=0.0) for each in times])
    assert stats.kstest(gaps, stats.expon(scale=GAP).cdf).pvalue > ALPHA


def test_counts_are_poisson():
    """In windows of 10 s of one user: the mean and the variance are 5."""
    table = requests(400.0, seed=2)
    windows = table["user"] * 40 + (table["asked"] // 10).astype(int)
    counts = np.bincount(windows, minlength=40 * N_USERS)
    expected = stats.poisson(10 / GAP)
    n = len(counts)
    assert abs(counts.mean() - 5) < 4.5 * np.sqrt(5 / n)
    assert abs(counts.var() - 5) < 4.5 * np.sqrt((expected.stats("k") + 2) * 25 / n)


def test_targets_are_drawn_alike_and_independently():
    table = requests(400.0, seed=3)
    counts = table.groupby(["user", "item"]).size().unstack(fill_value=0)
    assert stats.chisquare(counts.sum()).pvalue > ALPHA
    assert stats.chi2_contingency(counts).pvalue > ALPHA
    following = table.groupby("user")["item"].shift(-1)
    pairs = table.assign(following=following).dropna().groupby(["item", "following"]).size().unstack(fill_value=0)
    assert stats.chi2_contingency(pairs).pvalue > ALPHA


def test_who_is_away_half_of_the_time_asks_half_as_often():
    n_all, n_half = len(requests(400.0, seed=4)), len(requests(400.0, seed=4, user_churn=OnOff(3.0, 3.0)))
    # The share of time online of 100 users in 400 s, with sessions of 3 s, has deviation 0.5 sqrt(2 1.5 / 400) / 10.
    assert abs(n_half / n_all - 0.5) < 4.5 * (0.0044 + np.sqrt(0.25 / n_all))
