"""Chance as a function: draws are uniform, and those of neighbours along any argument are independent."""

import numpy as np
import pytest
from scipy import stats

from algorithms.chance import ROUTER, USER, combine, draw, entity_keys, further, uniform

pytestmark = pytest.mark.statistical

ALPHA = 1e-4  # of each test; the draws are fixed, so a test passes always or never
N = 40_000
ARGUMENTS = ("seed", "purpose", "entity", "counter")


def words(varied, first=0, **fixed):
    """Words of N draws with successive values of one argument."""
    arguments = {"seed": 1, "purpose": 2, "entity": 3, "counter": 4} | fixed
    columns = [np.full(N, arguments[name], dtype=np.uint64) for name in ARGUMENTS]
    columns[ARGUMENTS.index(varied)] = np.arange(first, first + N, dtype=np.uint64)
    return np.array([draw(*row) for row in zip(*columns, strict=True)], dtype=np.uint64)


def fractions(some_words):
    return np.array([uniform(word) for word in some_words])


def assert_independent(a, b):
    """Chi-square of pairs on 16 by 16 cells, and their correlation."""
    counts, _, _ = np.histogram2d(a, b, bins=16, range=[[0, 1], [0, 1]])
    assert stats.chisquare(counts.ravel()).pvalue > ALPHA
    assert stats.pearsonr(a, b).pvalue > ALPHA


@pytest.mark.parametrize("varied", ARGUMENTS)
@pytest.mark.parametrize("first", [0, 2**40])
def test_draws_are_uniform_along_each_argument(varied, first):
    assert stats.kstest(fractions(words(varied, first)), "uniform").pvalue > ALPHA


@pytest.mark.parametrize("varied", ARGUMENTS)
def test_every_bit_is_fair_along_each_argument(varied):
    drawn = words(varied)
    ones = np.array([np.sum(drawn >> np.uint64(bit) & np.uint64(1)) for bit in range(64)], dtype=float)
    z = (ones - N / 2) / np.sqrt(N / 4)
    assert stats.chi2.sf(np.sum(z**2), 64) > ALPHA
    assert np.abs(z).max() < stats.norm.isf(ALPHA / 128)


@pytest.mark.parametrize("varied", ARGUMENTS)
@pytest.mark.parametrize("lag", [1, 2, 64])
def test_successive_draws_are_independent(varied, lag):
    numbers = fractions(words(varied))
    assert_independent(numbers[:-lag], numbers[lag:])


@pytest.mark.parametrize("other", ["seed", "purpose", "entity"])
def test_sequences_of_neighbours_are_independent(other):
    assert_independent(fractions(words("counter", **{other: 6})), fractions(words("counter", **{other: 7})))


@pytest.mark.parametrize("argument", range(4))
def test_each_input_bit_flips_half_of_the_output_bits(argument):
    rng = np.random.default_rng(argument)
    flips = []
    for row in rng.integers(2**63, size=(100, 4), dtype=np.uint64):
        word = draw(*row)
        for bit in range(64):
            changed = row.copy()
            changed[argument] ^= np.uint64(1) << np.uint64(bit)
            flips.append((int(word) ^ int(draw(*changed))).bit_count())
    observed = np.bincount(np.clip(flips, 20, 44), minlength=45)[20:]
    law = stats.binom(64, 0.5)
    expected = np.array([law.cdf(20), *law.pmf(range(21, 44)), law.sf(43)]) * len(flips)
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_further_words_are_independent_of_their_word_and_each_other():
    word = words("counter")
    expanded = [word, *(np.array([further(w, number) for w in word], dtype=np.uint64) for number in (1, 2))]
    numbers = [fractions(some) for some in expanded]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert_independent(numbers[a], numbers[b])


def test_pairs_of_entities_have_keys_of_their_own_that_make_independent_draws():
    users, routers = entity_keys(USER, range(200)), entity_keys(ROUTER, range(200))
    pairs = np.array([combine(user, router) for user in users for router in routers], dtype=np.uint64)
    assert len(np.unique(pairs)) == 40_000
    numbers = fractions(np.array([draw(1, 2, pair, 0) for pair in pairs], dtype=np.uint64))
    assert stats.kstest(numbers, "uniform").pvalue > ALPHA
    assert_independent(numbers[:-1], numbers[1:])  # neighbours share the user
    assert_independent(numbers[:-200], numbers[200:])  # neighbours share the router
