import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from algorithms import purposes
from algorithms.chance import draw, standard_normal, uniform
from algorithms.distributions import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
    as_distribution,
    compile_distributions,
    describe_distribution,
    sample,
    sample_covering,
    sample_each,
)

unhurried = settings(deadline=None)  # the first example may compile
WORDS = st.integers(0, 2**64 - 1)
ENDS = [0, 2**64 - 1]
EVERY = [
    Constant(2.5),
    Uniform(-1, 3),
    Normal(1, 2),
    LogNormal(0.07, 0.8),
    Exponential(5),
    Gamma(0.5, 2),
    Empirical([4, 1, 1]),
    Weibull(3, 0.67),
    Pareto(2, 1.5),
]
COVERABLE = [each for each in EVERY if each.lowest() >= 0]


def number(distribution, word):
    rows, pool = compile_distributions([distribution])
    return sample(rows, pool, 0, np.uint64(word))


def covering(distribution, word):
    rows, pool = compile_distributions([distribution])
    return sample_covering(rows, pool, 0, np.uint64(word))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(math.nan), "Constant: value must be a finite number, got nan"),
        (lambda: Constant("many"), "Constant: value must be a finite number, got 'many'"),
        (lambda: Uniform(math.inf, 1), "Uniform: low must be a finite number, got inf"),
        (lambda: Uniform(2, 1), "Uniform: high must be a finite number >= 2, got 1"),
        (lambda: Normal(None, 1), "Normal: mean must be a finite number, got None"),
        (lambda: Normal(0, -1), "Normal: standard_deviation must be a finite number >= 0, got -1"),
        (lambda: LogNormal(0, 1), "LogNormal: median must be a finite number > 0, got 0"),
        (lambda: LogNormal(1, -0.5), "LogNormal: sigma must be a finite number >= 0, got -0.5"),
        (lambda: Exponential(0), "Exponential: mean must be a finite number > 0, got 0"),
        (lambda: Exponential(-2), "Exponential: mean must be a finite number > 0, got -2"),
        (lambda: Gamma(0, 1), "Gamma: shape must be a finite number > 0, got 0"),
        (lambda: Gamma(1, math.inf), "Gamma: scale must be a finite number > 0, got inf"),
        (lambda: Weibull(0, 1), "Weibull: scale must be a finite number > 0, got 0"),
        (lambda: Weibull(1, -0.5), "Weibull: shape must be a finite number > 0, got -0.5"),
        (lambda: Weibull(1, 0.005), "Weibull: shape must be large enough for finite numbers, got 0.005; pass"),
        (lambda: Weibull(1, 1e-320), "Weibull: shape must be large enough for finite numbers"),
        (lambda: Pareto(0, 1), "Pareto: minimum must be a finite number > 0, got 0"),
        (lambda: Pareto(1, math.nan), "Pareto: shape must be a finite number > 0, got nan"),
        (lambda: Pareto(1, 0.05), "Pareto: shape must be large enough for finite numbers, got 0.05; pass"),
        (
            lambda: Empirical([]),
            "Empirical: sample must be a flat, non-empty list of numbers, got shape (0,)",
        ),
        (lambda: Empirical([[1, 2], [3, 4]]), "Empirical: sample must be a flat, non-empty list of numbers"),
        (lambda: Empirical([1, math.nan]), "Empirical: sample must hold finite numbers, got nan"),
    ],
)
def test_errors_name_class_field_and_value(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("distribution", "lowest"),
    [
        (Constant(-2), -2),
        (Uniform(-1, 3), -1),
        (Normal(1, 2), -math.inf),
        (Normal(1, 0), 1),
        (LogNormal(1, 1), 0),
        (Exponential(1), 0),
        (Gamma(1, 1), 0),
        (Empirical([3, -4, 5]), -4),
        (Weibull(2, 0.5), 0),
        (Pareto(2, 0.5), 2),
    ],
)
def test_lowest_is_the_lower_end_of_the_support(distribution, lowest):
    assert distribution.lowest() == lowest
    assert all(number(distribution, word) >= lowest for word in [*ENDS, 1 << 40, 1 << 63])


def test_distributions_are_data():
    assert Uniform(0, 1) == Uniform(0.0, 1.0) != Uniform(0, 2)
    assert Empirical([2, 1]) == Empirical(np.array([1.0, 2.0]))
    assert len({LogNormal(1, 1), LogNormal(1, 1), Gamma(1, 1)}) == 2
    with pytest.raises(AttributeError):
        Uniform(0, 1).low = 2
    assert describe_distribution(Uniform(0, 2)) == {"distribution": "Uniform", "low": 0.0, "high": 2.0}
    assert describe_distribution(Empirical([2, 1])) == {"distribution": "Empirical", "sample": [1.0, 2.0]}


def test_a_number_is_taken_as_constant():
    assert as_distribution(2, name="delay") == as_distribution(np.float32(2), name="delay") == Constant(2)
    assert as_distribution(Uniform(0, 1), name="delay", least=0) == Uniform(0, 1)


@pytest.mark.parametrize("value", ["2", None, True, math.nan, math.inf, [1]])
def test_what_is_no_distribution_is_refused(value):
    with pytest.raises(ValueError, match=f"delay must be .*got {re.escape(repr(value))}"):
        as_distribution(value, name="delay")


@pytest.mark.parametrize("value", [-1, Uniform(-0.5, 2), Normal(5, 1), Empirical([1, -3])])
def test_values_below_the_least_are_refused(value):
    with pytest.raises(ValueError, match="delay must not give values below 0, got"):
        as_distribution(value, name="delay", least=0)


def test_the_base_class_cannot_be_sampled():
    with pytest.raises(TypeError, match="abstract"):
        Distribution().parameters()
    with pytest.raises(TypeError, match="Distribution must define expectation"):
        Distribution().expectation()


@unhurried
@given(WORDS)
def test_inversion_agrees_with_scipy(word):
    p = uniform(np.uint64(word))
    assert number(Constant(2.5), word) == 2.5
    assert number(Uniform(-1, 3), word) == pytest.approx(-1 + 4 * p)
    assert number(Normal(1, 2), word) == pytest.approx(stats.norm.ppf(p, 1, 2), rel=1e-12, abs=1e-12)
    assert number(LogNormal(0.07, 0.8), word) == pytest.approx(stats.lognorm.ppf(p, 0.8, scale=0.07), rel=1e-12)
    assert number(Exponential(5), word) == pytest.approx(stats.expon.isf(p, scale=5), rel=1e-12)
    assert number(Weibull(3, 0.67), word) == pytest.approx(stats.weibull_min.ppf(p, 0.67, scale=3), rel=1e-12)
    assert number(Pareto(2, 1.5), word) == pytest.approx(stats.pareto.ppf(p, 1.5, scale=2), rel=1e-12)


@unhurried
@given(WORDS, WORDS)
def test_numbers_move_together_with_the_word(one, other):
    low, high = sorted([one, other])
    for rising in EVERY:
        if not rising.is_inversion or isinstance(rising, Exponential):
            continue
        assert number(rising, low) <= number(rising, high)
    assert number(Exponential(5), low) >= number(Exponential(5), high)


@unhurried
@given(WORDS, st.integers(0, 2**12 - 1))
def test_the_uniform_number_alone_decides_where_sampling_is_by_inversion(word, low_bits):
    other = word - word % 2**12 + low_bits  # `uniform` reads the 52 bits above these
    for distribution in EVERY:
        if distribution.is_inversion:
            assert number(distribution, word) == number(distribution, other)


def test_only_gamma_is_not_sampled_by_inversion():
    assert [type(each) for each in EVERY if not each.is_inversion] == [Gamma]
    numbers = [number(Gamma(2, 1), word << 55) for word in range(1, 500)]
    steps = np.sign(np.diff(numbers))
    assert {-1, 1} <= set(steps)


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (Constant(2.5), "0x1.4p+1"),
        (Uniform(-1, 3), "-0x1.f6e5d4c3b2a1cp-1"),
        (Normal(1, 2), "-0x1.0ee2dc0a9e007p+2"),
        (LogNormal(0.07, 0.8), "0x1.1ad90c799b8bdp-7"),
        (Exponential(5), "0x1.b149bc7a09a41p+4"),
        (Gamma(0.5, 2), "0x1.a7db09f1011bdp-14"),
        (Gamma(7.5, 3), "0x1.e42f2aec740e2p+4"),
        (Empirical(range(1000)), "0x1.0p+2"),
    ],
    ids=repr,
)
def test_numbers_are_those_of_version_0_1_0(distribution, expected):
    # The last bit of log and exp is the platform's.
    assert number(distribution, 0x0123456789ABCDEF) == pytest.approx(float.fromhex(expected), rel=1e-14)


@unhurried
@given(WORDS)
def test_common_random_numbers_scale_with_the_parameter(word):
    assert number(Exponential(10), word) == pytest.approx(10 * number(Exponential(1), word))
    assert number(Gamma(0.7, 10), word) == pytest.approx(10 * number(Gamma(0.7, 1), word))
    assert number(Exponential(2), word) > number(Exponential(1), word)
    assert number(Weibull(10, 0.5), word) == pytest.approx(10 * number(Weibull(1, 0.5), word))
    assert number(Pareto(10, 1.5), word) == pytest.approx(10 * number(Pareto(1, 1.5), word))
    assert number(Weibull(4, 1), word) == pytest.approx(stats.expon.ppf(uniform(np.uint64(word)), scale=4))


@unhurried
@given(WORDS, st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_empirical_gives_only_its_values(word, values):
    assert number(Empirical(values), word) in values


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000, 4097])
def test_empirical_reaches_both_ends_and_stays_inside(size):
    assert [number(Empirical(range(size)), word) for word in ENDS] == [0, size - 1]


@unhurried
@given(WORDS)
def test_distributions_share_a_pool(word):
    rows, pool = compile_distributions(EVERY + EVERY[::-1])
    for which, distribution in enumerate(EVERY + EVERY[::-1]):
        assert sample(rows, pool, which, np.uint64(word)) == number(distribution, word)


@pytest.mark.parametrize("shape", [0.01, 0.5, 1, 30])
def test_gamma_is_finite_and_not_negative_at_the_ends(shape):
    assert all(0 <= number(Gamma(shape, 1), word) < math.inf for word in ENDS)


def test_sample_each_takes_draw_0_of_each_entity():
    keys = np.array([5, 2**63, 5], dtype=np.uint64)
    drawn = sample_each(Uniform(0, 1), np.uint64(7), purposes.LEARNING_RATE, keys)
    words = [draw(np.uint64(7), purposes.LEARNING_RATE, key, 0) for key in keys]
    assert drawn.tolist() == [uniform(np.uint64(word)) for word in words]


@pytest.mark.parametrize(
    "distribution", [Weibull(1, 0.0055), Weibull(1e-3, 60), Pareto(1, 0.06), Pareto(3, 1e6)], ids=repr
)
def test_weibull_and_pareto_are_finite_at_the_ends(distribution):
    assert all(distribution.lowest() <= number(distribution, word) < math.inf for word in ENDS)


@pytest.mark.parametrize(
    ("distribution", "mean"),
    [
        (Constant(-2), -2),
        (Uniform(-1, 3), 1),
        (Uniform(1e308, 1.5e308), 1.25e308),
        (Normal(-1, 2), -1),
        (LogNormal(0.07, 0.8), stats.lognorm.mean(0.8, scale=0.07)),
        (LogNormal(1, 40), math.inf),
        (Exponential(5), 5),
        (Gamma(0.5, 3), 1.5),
        (Empirical([1, 2, 6]), 3),
        (Empirical([1.5e308, 1.7e308]), 1.6e308),
        (Weibull(246, 0.67), stats.weibull_min.mean(0.67, scale=246)),
        (Weibull(1, 0.0055), math.inf),
        (Pareto(2, 1.5), 6),
        (Pareto(2, 1), math.inf),
        (Pareto(2, 0.5), math.inf),
    ],
    ids=repr,
)
def test_expectation_is_the_mean(distribution, mean):
    assert distribution.expectation() == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    "distribution", [Uniform(1, 3), LogNormal(2, 0.4), Exponential(5), Weibull(3, 0.67), Pareto(2, 3)], ids=repr
)
def test_the_expectation_agrees_with_a_quadrature_of_the_numbers(distribution):
    n = 1 << 16
    rows, pool = compile_distributions([distribution])
    middles = [sample(rows, pool, 0, np.uint64((2 * k + 1) << 47)) for k in range(n)]
    assert np.mean(middles) == pytest.approx(distribution.expectation(), rel=2e-3)


@unhurried
@given(WORDS)
def test_covering_lengths_by_inversion_agree_with_scipy(word):
    p = uniform(np.uint64(word))
    assert covering(Constant(2.5), word) == 2.5
    assert covering(Normal(2.5, 0), word) == 2.5
    assert covering(Uniform(0, 3), word) == pytest.approx(3 * math.sqrt(p))
    assert covering(Uniform(1, 3), word) == pytest.approx(math.sqrt(1 + 8 * p))
    assert covering(Uniform(2, 2), word) == pytest.approx(2)
    assert covering(LogNormal(0.07, 0.8), word) == pytest.approx(
        0.07 * math.exp(0.64 + 0.8 * standard_normal(np.uint64(word)))
    )
    assert covering(Pareto(2, 2.5), word) == number(Pareto(2, 1.5), word)
    assert covering(Pareto(2, 1), word) == covering(Pareto(2, 0.5), word) == math.inf


@unhurried
@given(WORDS)
def test_covering_lengths_lie_in_the_support(word):
    rows, pool = compile_distributions(COVERABLE)
    for which, distribution in enumerate(COVERABLE):
        length = sample_covering(rows, pool, which, np.uint64(word))
        assert distribution.lowest() <= length
        assert 0 < length < math.inf
        assert length == covering(distribution, word)


@unhurried
@given(WORDS, st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any))
def test_the_covering_value_is_where_the_share_of_the_sum_falls(word, values):
    ordered = sorted(values)
    target = uniform(np.uint64(word)) * sum(ordered)
    reached = 0
    for value in ordered:
        reached += value
        if reached > target:
            break
    assert covering(Empirical(values), word) == value


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000, 4097])
def test_the_covering_value_reaches_both_ends_and_is_never_0(size):
    values = [0, *range(1, size + 1)]
    assert [covering(Empirical(values), word) for word in ENDS] == [1, size]
    assert {covering(Empirical([0, 0, 7]), word) for word in ENDS} == {7}
