import numpy as np
import pytest

from algorithms.attacks import Attack, attacked
from algorithms.ratings import Ratings, Scale

USERS, ITEMS, VALUES = list("aabbcc"), [7, 9, 7, 9, 7, 8], [4, 2, 4, 2, 5, 3]


def made(**columns):
    return Ratings.from_arrays(USERS, ITEMS, VALUES, **{"scale": (1, 5)} | columns)


def test_fake_users_follow_the_genuine_ones():
    ratings = made()
    result = attacked(ratings, Attack("average", filler_share=1), target=7, share=0.7, seed=1)
    assert result.user_ids == ("a", "b", "c", "fake-1", "fake-2")  # 0.7 * 3 ratings
    assert result.item_ids == ratings.item_ids == (7, 8, 9)
    assert result.scale == Scale(1, 5)
    assert result.select(result.user < 3).to_frame().equals(ratings.to_frame())
    fake = result.select(result.user >= 3)
    assert fake.item.tolist() == [0, 1, 2, 0, 1, 2]
    assert fake.value.tolist() == [1, 3, 2, 1, 3, 2]


def test_profiles_are_those_of_the_matrix():
    ratings = made()
    matrix = np.array([[4, np.nan, 2], [4, np.nan, 2], [5, 3, np.nan]])
    attack = Attack("random", filler_share=0.5)
    result = attacked(ratings, attack, target=9, share=4, seed=3, categories=range(1, 6))
    fake = attack.profiles(matrix, 2, n_profiles=8, seed=3, categories=range(1, 6))
    found = np.full((8, 3), np.nan)
    rows = result.user >= 3
    found[result.user[rows] - 3, result.item[rows]] = result.value[rows]
    np.testing.assert_array_equal(found, fake)


def test_categories_are_by_default_what_occurs_and_the_ends_of_the_scale():
    result = attacked(made(scale=(0, 10)), Attack("random", filler_share=1), target=7, share=50, seed=1)
    fillers = result.value[(result.user >= 3) & (result.item > 0)]
    assert set(fillers) <= {0, 2, 3, 4, 5, 10}
    assert {2, 3, 4, 5} <= set(fillers)
    assert set(result.value[(result.user >= 3) & (result.item == 0)]) == {0}


def test_ids_that_are_taken_are_left_out():
    ratings = Ratings.from_arrays(["fake-1", "fake-3", "a"], [7, 7, 8], [4, 5, 3], scale=(1, 5))
    result = attacked(ratings, Attack("love_hate"), target=7, share=1.5, seed=1)
    assert result.user_ids == (*ratings.user_ids, "fake-2", "fake-4", "fake-5")


def test_ids_of_any_kind_keep_their_order():
    ratings = Ratings.from_arrays([3, 1, 2], [7, 7, 8], [4, 5, 3], user_ids=[2, 3, 1, 9])
    result = attacked(ratings, Attack("love_hate"), target=8, share=1, seed=1)
    assert result.user_ids == (2, 3, 1, 9, "fake-1")
    assert result.user.tolist()[:3] == ratings.user.tolist()


def test_fake_ratings_are_the_latest_and_in_no_official_fold():
    ratings = made(timestamps=[1, 2, 3, 4, 5, 6], folds=[1, 2, 1, 2, 1, 2])
    result = attacked(ratings, Attack("love_hate", filler_share=1), target=7, share=0.3, seed=1)
    assert result.timestamp.tolist() == [1, 2, 3, 4, 5, 6, 6, 6, 6]
    assert result.folds.tolist() == [1, 2, 1, 2, 1, 2, 3, 3, 3]
    train, test = result.split(fold=1)
    assert (train.user == 3).sum() == 3
    assert test.n_users == 4
    assert not (test.user == 3).any()
    plain = attacked(made(), Attack("love_hate"), target=7, share=0.3, seed=1)
    assert plain.timestamp is None
    assert plain.folds is None


def test_a_seed_gives_one_attack():
    attack = Attack("random", filler_share=0.5)
    first, again, other = (attacked(made(), attack, target=7, share=5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_target_that_is_no_item_is_refused():
    with pytest.raises(ValueError, match=r"^target must be the id of an item, got 'Alien'; see ratings\.item_ids$"):
        attacked(made(), Attack("average"), target="Alien", share=0.2, seed=1)
    with pytest.raises(ValueError, match=r"^share must be in \(0, inf\), got -1"):
        attacked(made(), Attack("average"), target=7, share=-1, seed=1)
