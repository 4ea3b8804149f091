import numpy as np
import pytest

from algorithms.prediction import Predictor
from algorithms.ratings import Ratings

# Users: a rates two items, b one, c none. Items: 10 and 20 are rated, 30 is not.
RATINGS = Ratings.from_arrays(
    ["a", "a", "b"], [10, 20, 10], [2, 5, 4], scale=(1, 6), user_ids=["a", "b", "c"], item_ids=[10, 20, 30]
)
A, B, C = 0, 1, 2


def predict(pairs, user_profiles=((1.0, 1.0),) * 3, item_profiles=((1.5, 1.0),) * 3, *, clip=True):
    user, item = np.array(pairs).T
    return Predictor(RATINGS, clip=clip)(np.array(user_profiles), np.array(item_profiles), user, item).tolist()


def test_known_pairs_are_predicted_by_the_inner_product():
    U, V = [[1.0, 2.0], [0.5, 1.0], [9.0, 9.0]], [[1.0, 1.0], [2.0, 0.5], [9.0, 9.0]]
    assert predict([(A, 0), (A, 1), (B, 1)], U, V) == [3.0, 3.0, 1.5]


def test_an_unrated_item_is_predicted_by_the_users_mean():
    assert predict([(A, 2), (B, 2)]) == [3.5, 4.0]


def test_a_user_without_ratings_is_predicted_the_items_mean():
    assert predict([(C, 0), (C, 1)]) == [3.0, 5.0]


def test_where_both_have_none_the_middle_of_the_scale_is_predicted():
    assert predict([(C, 2)]) == [3.5]


def test_predictions_are_clipped_to_the_scale():
    U, V = [[10.0], [-10.0], [0.0]], [[1.0], [1.0], [1.0]]
    assert predict([(A, 0), (B, 0)], U, V) == [6.0, 1.0]
    assert predict([(A, 0), (B, 0)], U, V, clip=False) == [10.0, -10.0]


@pytest.mark.parametrize("clip", [True, False])
def test_clipping_does_not_hide_a_diverged_profile(clip):
    assert np.isnan(predict([(A, 0)], [[np.nan]] * 3, [[1.0]] * 3, clip=clip)).all()


def test_predictions_of_many_pairs_against_numpy():
    rng = np.random.default_rng(1)
    full = Ratings.from_arrays(np.repeat(range(8), 5), np.tile(range(5), 8), rng.integers(1, 6, 40), scale=(1, 5))
    U, V = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    predicted = Predictor(full)(U, V, full.user, full.item)
    assert predicted == pytest.approx(np.clip(U @ V.T, 1, 5)[full.user, full.item])
