"""Sections 4.1 and 4.2 of the second seed paper: which users and items are studied."""

import os
from pathlib import Path

import numpy as np
import pytest

from algorithms.datasets import coat, movielens_100k
from algorithms.datasets.filters import missingness_study, with_at_least
from algorithms.ratings import Ratings, Scale

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
MOVIELENS = [Path(os.environ.get("MOVIELENS_100K") or "nowhere").expanduser(), SHARED / "ml-100k"]

USERS, ITEMS, VALUES = list("aaabbc"), [1, 2, 3, 1, 2, 1], [5, 4, 3, 2, 1, 5]


def made(**columns):
    return Ratings.from_arrays(USERS, ITEMS, VALUES, **{"scale": (1, 5)} | columns)


def pairs(ratings):
    return [
        (ratings.user_ids[user], ratings.item_ids[item], value)
        for user, item, value in zip(ratings.user, ratings.item, ratings.value, strict=True)
    ]


def test_items_with_few_ratings_leave():
    left = with_at_least(made(), item=2)
    assert left.user_ids == ("a", "b", "c")
    assert left.item_ids == (1, 2)
    assert pairs(left) == [("a", 1, 5), ("a", 2, 4), ("b", 1, 2), ("b", 2, 1), ("c", 1, 5)]


def test_users_with_few_ratings_leave():
    left = with_at_least(made(), user=2)
    assert left.user_ids == ("a", "b")
    assert left.item_ids == (1, 2, 3)
    assert len(left) == 5


def test_both_sides_are_counted_in_what_is_given():
    # User b has two ratings and stays, though one of them leaves with item 2; item 3 leaves by its own count.
    left = with_at_least(made(), user=2, item=3)
    assert left.user_ids == ("a", "b")
    assert left.item_ids == (1,)
    assert pairs(left) == [("a", 1, 5), ("b", 1, 2)]


def test_who_has_no_rating_stays_with_a_bound_of_zero():
    ratings = made(user_ids="abcd", item_ids=[1, 2, 3, 4])
    assert with_at_least(ratings) == ratings
    assert with_at_least(ratings, user=1).user_ids == ("a", "b", "c")
    assert with_at_least(ratings, item=1).item_ids == (1, 2, 3)
    assert with_at_least(ratings, item=3).user_ids == ("a", "b", "c", "d")


def test_timestamps_folds_and_scale_are_kept():
    ratings = made(scale=(0, 7), timestamps=[1, 2, 3, 4, 5, 6], folds=[1, 1, 2, 2, 3, 3])
    left = with_at_least(ratings, user=2, item=2)
    assert left.scale == Scale(0, 7)
    assert left.timestamp.tolist() == [1, 2, 4, 5]
    assert left.folds.tolist() == [1, 1, 2, 3]


def test_study_keeps_users_of_both_parts():
    chosen = made(user_ids="abcd")
    random = Ratings.from_arrays(
        list("abd"), [3, 1, 2], [1, 2, 3], scale=(1, 5), user_ids="abcd", item_ids=[1, 2, 3, 4]
    )
    first, second = missingness_study(chosen, random, user=2, item=2)
    # c has no random rating and too few chosen ones, d no chosen rating.
    assert first.user_ids == second.user_ids == ("a", "b")
    assert first.item_ids == (1, 2)  # item 3 has one rating
    assert second.item_ids == (1, 2, 3, 4)
    assert pairs(first) == [("a", 1, 5), ("a", 2, 4), ("b", 1, 2), ("b", 2, 1)]
    assert pairs(second) == [("a", 3, 1), ("b", 1, 2)]


def test_songs_of_a_study_are_counted_among_the_users_who_stay():
    chosen = made()
    random = Ratings.from_arrays(list("abc"), [1, 1, 1], [1, 2, 3], scale=(1, 5))
    assert missingness_study(chosen, random, user=1, item=3)[0].item_ids == (1,)
    assert missingness_study(chosen, random, user=2, item=2)[0].item_ids == (1, 2)
    with pytest.raises(ValueError, match=r"^user=2 and item=3 must leave a rating, got none of 6; lower them$"):
        missingness_study(chosen, random, user=2, item=3)  # without c, item 1 has two ratings


def test_a_user_without_a_chosen_rating_is_never_in_a_study():
    random = Ratings.from_arrays(list("abd"), [3, 1, 2], [1, 2, 3], scale=(1, 5), user_ids="abcd")
    first, _ = missingness_study(made(user_ids="abcd"), random, user=0, item=0)
    assert first.user_ids == ("a", "b")
    assert first.item_ids == (1, 2, 3)


def test_movielens_has_the_size_of_the_paper():
    for place in MOVIELENS:
        if (place / "u.data").is_file():
            break
    else:
        pytest.skip(f"needs MovieLens 100K in {MOVIELENS[1]} or MOVIELENS_100K, which may not be passed on")
    left = with_at_least(movielens_100k(place), item=20)
    assert (left.n_users, left.n_items, len(left)) == (943, 939, 94_968)
    assert np.bincount(left.item).min() == 20


def test_study_of_coat():
    if not (SHARED / "coat").is_dir():
        pytest.skip(f"needs Coat in {SHARED / 'coat'}, which may not be passed on with the project")
    chosen, random = coat(SHARED / "coat")
    first, second = missingness_study(chosen, random)
    assert first.n_users == second.n_users == 290  # each has 24 chosen ratings and 16 random ones
    assert second == random
    often = np.flatnonzero(np.bincount(chosen.item, minlength=300) >= 20)
    assert first.item_ids == tuple(often.tolist())
    assert len(first) == np.bincount(chosen.item, minlength=300)[often].sum()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"user": -1}, r"^user must be an integer >= 0, got -1; pass the fewest ratings"),
        ({"item": 0.2}, r"^item must be an integer >= 0, got 0\.2; pass the fewest ratings"),
        ({"user": 4}, r"^user=4 and item=0 must leave a rating, got none of 6; lower them$"),
    ],
)
def test_errors_of_the_filter_name_the_argument_and_the_mend(bounds, message):
    with pytest.raises(ValueError, match=message):
        with_at_least(made(), **bounds)


@pytest.mark.parametrize(
    ("random", "bounds", "message"),
    [
        (
            made(user_ids="abcd"),
            {},
            r"^random must have the users of chosen \(3\), got 4, or others; pass both parts as one",
        ),
        (made(), {"item": True}, r"^item must be an integer >= 0, got True"),
    ],
)
def test_errors_of_a_study_name_the_argument_and_the_mend(random, bounds, message):
    with pytest.raises(ValueError, match=message):
        missingness_study(made(), random, **bounds)
