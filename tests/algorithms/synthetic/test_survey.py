"""Appendix 7.2 of the second seed paper."""

import numpy as np
import pytest
from scipy import stats

from algorithms.synthetic import abandoned, careless, survey
from algorithms.synthetic.recommender import categorized


def covariance(construct, correlation=0.6):
    """Sigma, entry by entry as the text has it."""
    sigma = np.empty((len(construct), len(construct)))
    for i, k in enumerate(construct):
        for j, l in enumerate(construct):  # noqa: E741
            sigma[i, j] = 1 if i == j else correlation ** (abs(int(k) - int(l)) + 1)
    return sigma


def unreversed(data):
    return np.where(data.reversed, data.n_categories + 1 - data.complete, data.complete)


@pytest.mark.parametrize(("items", "n_categories"), [(4, 5), (8, 7), (4, 9)])
def test_size_and_categories_are_those_of_the_paper(items, n_categories):
    data = survey(seed=1, items_per_construct=items, n_categories=n_categories)
    assert data.complete.shape == (300, 10 * items)
    assert np.unique(data.complete).tolist() == data.categories.tolist() == list(range(1, n_categories + 1))
    assert repr(data) == f"Survey(300 respondents, {10 * items} items of 10 constructs, {n_categories} categories)"


@pytest.mark.parametrize("correlation", [0.6, 0.3])
def test_sentiments_have_the_block_toeplitz_covariance(correlation):
    data = survey(60_000, seed=1, n_constructs=4, items_per_construct=3, correlation=correlation)
    # The standard error of an entry is at most sqrt(2 / 60,000) = 0.006.
    assert np.abs(np.cov(data.latent.T) - covariance(data.construct, correlation)).max() < 0.025
    assert np.abs(data.latent.mean(axis=0)).max() < 0.02


def test_sentiments_are_normal():
    data = survey(4000, seed=2, n_constructs=3, items_per_construct=2)
    assert min(stats.kstest(column, stats.norm.cdf).pvalue for column in data.latent.T) > 0.001


@pytest.mark.parametrize(
    ("n_categories", "breakpoints"),
    [
        (5, (-1.5, -0.5, 0.5, 1.5)),
        (7, (-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)),
        (9, (-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5)),
        (4, (-1, 0, 1)),
    ],
)
def test_breakpoints_are_equispaced(n_categories, breakpoints):
    data = survey(5, seed=1, n_categories=n_categories)
    assert data.breakpoints == breakpoints
    assert data.largest_shift == pytest.approx(breakpoints[-1] + stats.norm.ppf(0.4), abs=1e-12)


@pytest.mark.parametrize("n_categories", [5, 7, 9])
def test_largest_shift_puts_two_fifths_of_the_answers_into_the_top_category(n_categories):
    data = survey(20_000, seed=1, n_categories=n_categories)
    answers = categorized(data.latent + data.largest_shift, data.breakpoints)
    assert np.mean(answers == n_categories) == pytest.approx(0.4, abs=0.008)


def test_each_construct_has_one_shift_and_half_its_items_are_reversed():
    data = survey(50, seed=3, items_per_construct=8)
    assert data.shifts.shape == (10,)
    expected = categorized(data.latent + data.shifts[data.construct], data.breakpoints)
    assert np.array_equal(unreversed(data), expected)
    assert np.bincount(data.construct).tolist() == [8] * 10
    assert np.bincount(data.construct[data.reversed], minlength=10).tolist() == [4] * 10


def test_of_an_odd_number_of_items_the_half_is_rounded_down():
    data = survey(5, seed=3, n_constructs=2, items_per_construct=3)
    assert np.bincount(data.construct[data.reversed], minlength=2).tolist() == [1, 1]
    assert not survey(5, seed=3, items_per_construct=1).reversed.any()


def test_shifts_are_uniform_from_zero_to_the_largest():
    data = survey(2, seed=4, n_constructs=3000, items_per_construct=1)
    assert stats.kstest(data.shifts, stats.uniform(0, data.largest_shift).cdf).pvalue > 0.01


def test_items_are_skewed_to_both_sides():
    data = survey(2000, seed=5)
    shifted = data.shifts[data.construct] > 0.5
    skewness = stats.skew(data.complete, axis=0)
    assert (skewness[data.reversed & shifted] > 0).all()
    assert (skewness[~data.reversed & shifted] < 0).all()


def test_items_stand_in_a_random_order():
    orders = np.array([survey(2, seed=seed).construct for seed in range(400)])
    assert len(np.unique(orders, axis=0)) == 400
    # Each construct is as likely at each place: counts at the first place, 40 expected of each.
    assert stats.chisquare(np.bincount(orders[:, 0], minlength=10)).pvalue > 0.001
    first_reversed = np.mean([survey(2, seed=seed).reversed[0] for seed in range(400)])
    assert first_reversed == pytest.approx(0.5, abs=0.12)


def test_worlds_with_another_number_of_categories_are_pairs():
    five, nine = survey(40, seed=6, n_categories=5), survey(40, seed=6, n_categories=9)
    assert np.array_equal(five.latent, nine.latent)
    assert np.array_equal(five.construct, nine.construct)
    assert np.array_equal(five.reversed, nine.reversed)
    np.testing.assert_allclose(five.shifts / five.largest_shift, nine.shifts / nine.largest_shift, rtol=1e-14)
    assert np.array_equal(survey(40, seed=6).complete, five.complete)
    assert not np.array_equal(survey(40, seed=7).latent, five.latent)


@pytest.mark.parametrize(("share", "rows"), [(0.2, 60), (0.4, 120), (0.6, 180), (0, 0), (1, 300)])
def test_the_share_of_respondents_abandons_the_survey(share, rows):
    missing = abandoned((300, 40), seed=1, share=share)
    assert missing.shape == (300, 40)
    assert missing.any(axis=1).sum() == rows
    assert (np.diff(missing.astype(int), axis=1) >= 0).all()  # from an item on, to the end


def test_who_abandons_and_where_is_uniform():
    missing = abandoned((40_000, 8), seed=2, share=0.5)
    leaving = missing.any(axis=1)
    stop = missing[leaving].argmax(axis=1)
    assert stats.chisquare(np.bincount(stop, minlength=8)).pvalue > 0.001  # the first item is one of them
    assert leaving[:20_000].mean() == pytest.approx(0.5, abs=0.02)


def test_a_larger_share_keeps_who_abandoned():
    fewer, more = (abandoned((50, 10), seed=3, share=share) for share in (0.2, 0.6))
    rows = fewer.any(axis=1)
    assert np.array_equal(fewer[rows], more[rows])
    assert more.any(axis=1).sum() == 30
    assert not np.array_equal(abandoned((50, 10), seed=4, share=0.2), fewer)


def test_careless_rows_hold_the_extremes_and_others_stay():
    data = survey(seed=1, n_categories=7)
    before = data.complete.copy()
    answers, rows = careless(data.complete, seed=2, share=0.1, n_categories=7)
    assert rows.sum() == 30
    assert set(np.unique(answers[rows])) == {1, 7}
    assert np.mean(answers[rows] == 7) == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(answers[~rows], before[~rows])
    assert np.array_equal(data.complete, before)
    assert not np.shares_memory(answers, data.complete)


def test_a_larger_share_keeps_the_careless_rows():
    complete = survey(50, seed=1).complete
    none, some, more = (careless(complete, seed=2, share=share, n_categories=5) for share in (0, 0.1, 0.2))
    assert not none[1].any()
    assert np.array_equal(none[0], complete)
    assert (some[1] <= more[1]).all()
    assert np.array_equal(some[0][some[1]], more[0][some[1]])


def test_carelessness_and_abandonment_with_one_seed_are_different_draws():
    rows = careless(survey(200, seed=1).complete, seed=2, share=0.5, n_categories=5)[1]
    leaving = abandoned((200, 40), seed=3, share=0.5).any(axis=1)
    assert 30 < (rows & leaving).sum() < 70


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_respondents": 0}, r"^n_respondents must be an integer >= 1, got 0; the seed has 300"),
        ({"n_constructs": 1.5}, r"^n_constructs must be an integer >= 1, got 1\.5; the seed has 10"),
        ({"items_per_construct": 0}, r"^items_per_construct must be an integer >= 1, got 0; the seed has 4 and 8"),
        ({"n_categories": 1}, r"^n_categories must be an integer >= 2, got 1; the seed has 5, 7 and 9"),
        ({"correlation": 1.0}, r"^correlation must be in \[0, 1\), got 1\.0; pass a fraction"),
    ],
)
def test_errors_of_the_survey_name_the_argument_and_the_mend(arguments, message):
    with pytest.raises(ValueError, match=message):
        survey(seed=1, **arguments)


@pytest.mark.parametrize(
    ("shape", "share", "message"),
    [
        ((3, 4), 20, r"^share must be in \[0, 1\], got 20; pass a fraction"),
        ((3, 4, 5), 0.2, r"^shape must be \(n_respondents, n_items\), got \(3, 4, 5\); pass the shape"),
        ((0, 4), 0.2, r"^shape must be an integer >= 1, got 0; pass \(n_respondents, n_items\)"),
    ],
)
def test_errors_of_abandonment_name_the_argument_and_the_mend(shape, share, message):
    with pytest.raises(ValueError, match=message):
        abandoned(shape, seed=1, share=share)


@pytest.mark.parametrize(
    ("complete", "arguments", "message"),
    [
        ([[1, 2]], {"share": -0.1}, r"^share must be in \[0, 1\], got -0\.1"),
        ([[1, 2]], {"n_categories": 1}, r"^n_categories must be an integer >= 2, got 1; pass that of the survey"),
        ([[1, 6]], {}, r"^complete must hold answers from 1 to n_categories=5, got others; pass the complete matrix"),
        ([[1, np.nan]], {}, r"^complete must hold answers"),
        ([1, 2], {}, r"^complete must have shape \(n_respondents, n_items\), got \(2,\); pass the matrix"),
    ],
)
def test_errors_of_carelessness_name_the_argument_and_the_mend(complete, arguments, message):
    with pytest.raises(ValueError, match=message):
        careless(complete, seed=1, **{"share": 0.5, "n_categories": 5} | arguments)
