import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.ratings import Ratings
from algorithms.splits import holdout, k_fold, leave_last_out

SEEDS = st.integers(0, 2**32)
SHARES = st.floats(0.15, 0.85)


@st.composite
def some_ratings(draw):
    """Random ratings with ties in time, users and items without a rating, and at least one user of three ratings."""
    n_users, n_items = draw(st.integers(1, 8)), draw(st.integers(3, 8))
    pairs = draw(st.sets(st.tuples(st.integers(0, n_users - 1), st.integers(0, n_items - 1)), min_size=1))
    user, item = np.array(sorted(pairs | {(0, 0), (0, 1), (0, 2)})).T
    time = draw(st.lists(st.integers(0, 3), min_size=len(user), max_size=len(user)))
    return Ratings.from_arrays(
        user,
        item,
        np.arange(len(user)),
        timestamps=time,
        user_ids=range(n_users + 1),
        item_ids=range(n_items + 1),
        scale=(0, 99),
    )


def grid(n_users, n_items):
    user, item = np.divmod(np.arange(n_users * n_items), n_items)
    return Ratings.from_arrays(user, item, np.ones(len(user)), timestamps=item)


def counts(ratings):
    return np.bincount(ratings.user, minlength=ratings.n_users)


def assert_shared_out(ratings, *parts):
    """Each rating stands in one part, as it was, and all parts have all ids."""
    for part in parts:
        assert (part.user_ids, part.item_ids, part.scale) == (ratings.user_ids, ratings.item_ids, ratings.scale)
    columns = [np.column_stack([part.user, part.item, part.value, part.timestamp]) for part in (ratings, *parts)]
    together = np.concatenate(columns[1:])
    assert np.array_equal(together[np.lexsort((together[:, 1], together[:, 0]))], columns[0])


@given(some_ratings(), SHARES, SEEDS)
def test_holdout_by_rating_takes_the_share_of_all(ratings, share, seed):
    n_test = int(share * len(ratings) + 0.5)
    if not 0 < n_test < len(ratings):
        return
    train, test = holdout(ratings, share=share, seed=seed)
    assert_shared_out(ratings, train, test)
    assert len(test) == n_test
    assert (train, test) == holdout(ratings, share=share, seed=seed)


@given(some_ratings(), st.floats(0.2, 0.85), SEEDS)
def test_holdout_by_user_takes_the_share_of_each_and_not_all(ratings, share, seed):
    train, test = holdout(ratings, share=share, by="user", seed=seed)
    assert_shared_out(ratings, train, test)
    for n, n_test in zip(counts(ratings).tolist(), counts(test).tolist(), strict=True):
        assert n_test == max(min(int(share * n + 0.5), n - 1), 0)


@given(some_ratings(), SHARES, SEEDS, st.sampled_from(["rating", "user"]))
def test_holdout_that_keeps_the_known_tests_nobody_unknown(ratings, share, seed, by):
    try:
        train, test = holdout(ratings, share=share, by=by, keep_known=True, seed=seed)
    except ValueError as error:
        if not re.search("leaves only|no test rating", str(error)):
            raise
        return
    assert_shared_out(ratings, train, test)
    assert set(test.user) <= set(train.user)
    assert set(test.item) <= set(train.item)
    if by == "rating":
        assert len(test) == int(share * len(ratings) + 0.5)
    else:
        assert (counts(test) <= counts(holdout(ratings, share=share, by="user", seed=seed)[1])).all()


def test_without_it_some_are_unknown():
    ratings = grid(30, 3)
    train, test = holdout(ratings, share=0.5, seed=1)
    assert not set(test.user) <= set(train.user)
    assert set(test.user) <= set(holdout(ratings, share=0.5, keep_known=True, seed=1)[0].user)


@pytest.mark.parametrize("options", [{}, {"by": "user"}, {"keep_known": True}, {"by": "user", "keep_known": True}])
def test_every_rating_is_held_out_about_as_often(options):
    ratings = grid(10, 10)
    times = np.zeros((10, 10))
    for seed in range(400):
        test = holdout(ratings, share=0.2, seed=seed, **options)[1]
        times[test.user, test.item] += 1
    # 80 expected of each, deviation 8: five deviations either way; four times 100 ratings are looked at.
    assert 40 < times.min() <= times.max() < 120
    assert times.sum() == 400 * 20


@given(some_ratings(), SEEDS, st.data())
def test_k_fold_tests_on_each_rating_once(ratings, seed, data):
    k = data.draw(st.integers(2, len(ratings)))
    pairs = list(k_fold(ratings, k=k, seed=seed))
    assert len(pairs) == k
    for train, test in pairs:
        assert_shared_out(ratings, train, test)
    assert_shared_out(ratings, *(test for _, test in pairs))
    sizes = [len(test) for _, test in pairs]
    assert max(sizes) - min(sizes) <= 1
    assert pairs == list(k_fold(ratings, k=k, seed=seed))


@given(some_ratings(), st.integers(1, 2))
def test_leave_last_out_takes_the_last_of_each_user(ratings, n):
    train, test = leave_last_out(ratings, n=n)
    assert_shared_out(ratings, train, test)
    for user in range(ratings.n_users):
        kept, left_out = (
            sorted(zip(part.timestamp[part.user == user], part.item[part.user == user], strict=True))
            for part in (train, test)
        )
        if len(kept) + len(left_out) <= n:
            assert not left_out
        else:
            assert len(left_out) == n
            assert kept[-1] < left_out[0]


def test_leave_last_out_by_hand():
    ratings = Ratings.from_arrays(
        ["a", "a", "a", "b", "c", "c"], [1, 2, 3, 1, 1, 2], [1, 2, 3, 4, 5, 1], timestamps=[9, 7, 9, 1, 2, 1]
    )
    train, test = leave_last_out(ratings)
    assert test.to_frame()[["user", "item"]].values.tolist() == [["a", 3], ["c", 1]]
    assert train.to_frame()[["user", "item"]].values.tolist() == [["a", 1], ["a", 2], ["b", 1], ["c", 2]]


SPLITS = [
    lambda ratings, seed: holdout(ratings, seed=seed),
    lambda ratings, seed: holdout(ratings, by="user", seed=seed),
    lambda ratings, seed: next(k_fold(ratings, seed=seed)),
]


@pytest.mark.parametrize("split", SPLITS, ids=["rating", "user", "k_fold"])
def test_the_seed_decides_and_the_order_of_the_input_does_not(split):
    ratings = grid(20, 20)
    shuffled = np.random.default_rng(5).permutation(len(ratings))
    again = Ratings.from_arrays(
        ratings.user[shuffled],
        ratings.item[shuffled],
        ratings.value[shuffled],
        timestamps=ratings.timestamp[shuffled],
    )
    assert split(ratings, 1) == split(again, 1) == split(ratings, np.random.default_rng(1))
    assert split(ratings, 1) != split(ratings, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: holdout(r, share=0, seed=1), r"share must be in \(0, 1\), got 0;"),
        (lambda r: holdout(r, share=1.0, seed=1), r"share must be in \(0, 1\), got 1.0"),
        (lambda r: holdout(r, share=10, seed=1), "got 10; pass a fraction, not a percentage"),
        (lambda r: holdout(r, share=float("nan"), seed=1), "share must be .* got nan"),
        (lambda r: holdout(r, share=0.01, seed=1), "got share=0.01 of 12 ratings, by rating: no test rating"),
        (lambda r: holdout(r, share=0.99, seed=1), "got share=0.99 of 12 ratings, by rating: no training rating"),
        (lambda r: holdout(r, share=0.1, by="user", seed=1), "by user: no test rating is left"),
        (lambda r: holdout(r, by="item", seed=1), "by must be 'rating' or 'user', got 'item'"),
        (
            lambda r: holdout(r, share=0.9, keep_known=True, seed=1),
            "asks for 11 of 12 .* keep_known leaves only [678];",
        ),
        (lambda r: k_fold(r, k=1, seed=1), "k must be an integer from 2 to the number of ratings, 12, got 1"),
        (lambda r: k_fold(r, k=13, seed=1), "k must be .* 12, got 13"),
        (lambda r: k_fold(r, k=2.0, seed=1), "k must be an integer"),
        (lambda r: k_fold(r, k=True, seed=1), "k must be an integer"),
        (lambda r: leave_last_out(r, n=0), "n must be an integer >= 1, got 0"),
        (lambda r: leave_last_out(r, n=0.1), "n must be an integer >= 1, got 0.1"),
        (lambda r: leave_last_out(r, n=4), "n must be below 4, the most ratings that a user has, got 4"),
        (
            lambda r: leave_last_out(Ratings.from_arrays(r.user, r.item, r.value)),
            "ratings must have timestamps, got none",
        ),
    ],
)
def test_an_argument_out_of_range_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(grid(3, 4))
