"""Section 3.2 of the second seed paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.synthetic import missing_completely_at_random, missing_not_at_random, recommender
from algorithms.synthetic.missing import missing_shares


def test_negated_shifts_are_mapped_onto_the_interval():
    shares = missing_shares([1.0, 0.0, -1.0, 0.5])
    np.testing.assert_allclose(shares, [0.4, 0.695, 0.99, 0.5475], rtol=1e-15)
    np.testing.assert_allclose(missing_shares([3.0, 2.0, 1.0]), [0.4, 0.695, 0.99], rtol=1e-14)  # from their own range
    assert missing_shares([-7.0, 5.0], low=0.1, high=0.2).tolist() == [0.2, 0.1]


def test_counts_of_an_item_are_floored():
    missing = missing_not_at_random([1.0, 0.0, -1.0], 300, seed=1)
    assert missing.dtype == np.bool_
    assert missing.shape == (300, 3)
    assert missing.sum(axis=0).tolist() == [120, 208, 297]  # 0.695 * 300 = 208.5


def test_a_share_that_floating_point_cannot_hold_does_not_lose_a_rating():
    assert 0.29 * 100 < 29
    assert missing_not_at_random([1.0, 0.0], 100, seed=1, low=0.29, high=0.58).sum(axis=0).tolist() == [29, 58]
    assert missing_completely_at_random((10, 10), seed=1, share=0.29).sum() == 29


@given(
    shifts=st.lists(st.integers(-50, 50), min_size=2, max_size=8).filter(lambda each: len(set(each)) > 1),
    n_users=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    ends=st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted),
)
def test_shares_missing_follow_popularity_exactly(shifts, n_users, seed, ends):
    low, high = ends  # percent
    missing = missing_not_at_random(np.array(shifts) / 8, n_users, seed=seed, low=low / 100, high=high / 100)
    span = max(shifts) - min(shifts)
    # In whole numbers: floor of (low + (high - low) * position) / 100 * n_users.
    counts = [(low * span + (high - low) * (max(shifts) - shift)) * n_users // (100 * span) for shift in shifts]
    assert missing.sum(axis=0).tolist() == counts
    assert not missing.all(axis=0).any()  # an item keeps a rating


def test_in_the_design_of_the_paper_shares_reach_from_the_lowest_to_the_highest():
    for seed in range(5):
        data = recommender(seed=seed)
        shares = missing_not_at_random(data.shifts, 300, seed=seed).mean(axis=0)
        assert (shares.min(), shares.max()) == (0.4, 0.99)
        assert (shares[data.shifts.argmax()], shares[data.shifts.argmin()]) == (0.4, 0.99)
        order = data.shifts.argsort()
        assert (np.diff(shares[order]) <= 0).all()  # the more popular, the fewer are missing


def test_overall_share_missing_is_about_that_of_the_random_setting():
    shares = [missing_not_at_random(recommender(2, 200, seed=s, rank=1).shifts, 300, seed=s).mean() for s in range(200)]
    assert np.mean(shares) == pytest.approx(0.695, abs=0.005)  # the middle of the interval, less half a rating an item


def test_masks_are_the_same_for_every_number_of_categories():
    masks = [missing_not_at_random(recommender(seed=5, n_categories=n).shifts, 300, seed=6) for n in (3, 5, 10)]
    assert np.array_equal(masks[0], masks[1])
    assert np.array_equal(masks[1], masks[2])


def test_each_user_is_as_likely_as_any_other_and_items_are_independent():
    masks = np.array([missing_not_at_random([1.0, 0.5, 0.0], 20, seed=s, low=0.5, high=0.5) for s in range(2000)])
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)
    together = (masks[:, :, 0] & masks[:, :, 1]).mean()
    assert together == pytest.approx(0.25, abs=0.01)


def test_at_random_the_share_of_all_cells_is_missing():
    missing = missing_completely_at_random((300, 200), seed=1)
    assert missing.sum() == 42_000
    assert missing.shape == (300, 200)
    assert missing_completely_at_random((7, 3), seed=1, share=0.5).sum() == 10
    assert missing_completely_at_random((7, 3), seed=1, share=0).sum() == 0
    masks = np.array([missing_completely_at_random((6, 4), seed=s, share=0.5) for s in range(2000)])
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)


def test_a_seed_gives_one_mask():
    for made in (
        lambda s: missing_not_at_random([1, 0, -1], 30, seed=s),
        lambda s: missing_completely_at_random((9, 9), seed=s),
    ):
        assert np.array_equal(made(1), made(1))
        assert not np.array_equal(made(1), made(2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"shifts": [1.0, 1.0]},
            r"^shifts must differ between items, got 2 of one value; .* missing_completely_at_random",
        ),
        ({"shifts": []}, r"^shifts must differ between items, got 0"),
        ({"shifts": [[1.0, 2.0]]}, r"^shifts must be finite numbers of shape \(n_items,\), got shape \(1, 2\)"),
        ({"shifts": [1.0, np.nan]}, r"^shifts must be finite"),
        ({"n_users": 0}, r"^n_users must be an integer >= 1, got 0; pass the number of rows"),
        ({"low": 1.0}, r"^low must be in \[0, 1\), got 1\.0; pass a fraction, not a percentage$"),
        ({"low": np.nan}, r"^low must be in"),
        ({"high": 99}, r"^high must be in \[0\.4, 1\), got 99; pass a fraction"),
        ({"high": 0.3}, r"^high must be in \[0\.4, 1\), got 0\.3"),
    ],
)
def test_errors_of_not_at_random_name_the_argument_and_the_mend(arguments, message):
    given = {"shifts": [1.0, 0.0], "n_users": 10} | arguments
    with pytest.raises(ValueError, match=message):
        missing_not_at_random(given.pop("shifts"), given.pop("n_users"), seed=1, **given)


@pytest.mark.parametrize(
    ("shape", "share", "message"),
    [
        ((3, 4), 70, r"^share must be in \[0, 1\), got 70; pass a fraction"),
        ((3, 4), 1, r"^share must be in \[0, 1\), got 1;"),
        ((3,), 0.5, r"^shape must be \(n_users, n_items\), got \(3,\); pass the shape"),
        ((3, 0), 0.5, r"^shape must be an integer >= 1, got 0; pass \(n_users, n_items\)"),
    ],
)
def test_errors_of_at_random_name_the_argument_and_the_mend(shape, share, message):
    with pytest.raises(ValueError, match=message):
        missing_completely_at_random(shape, seed=1, share=share)
