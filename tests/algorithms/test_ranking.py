import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.prediction import Predictor
from algorithms.ranking import Ranking, relevant_from
from algorithms.ratings import Ratings, Scale

USERS, ITEMS = ["a", "b", "c"], [10, 20, 30, 40]


def made(triples, users=USERS, items=ITEMS, scale=(1, 5)):
    who, what, value = zip(*triples, strict=True)
    return Ratings.from_arrays(list(who), list(what), list(value), scale=scale, user_ids=users, item_ids=items)


# Every item has a training rating, so all predictions are inner products.
TRAIN = made([("a", 10, 5), ("b", 20, 5), ("b", 30, 1), ("c", 40, 2)])
TEST = made([("a", 20, 5), ("a", 30, 4), ("a", 40, 3), ("b", 10, 4), ("c", 10, 3)])
ONE = np.ones((3, 1))


def oracle(train, test, n, relevant, U, V):
    """Slow and plain: full sorts, sets, and the formulas of the docstring."""
    predict = Predictor(train, clip=False)
    lists, recalls, ndcgs = [], [], []
    for i in range(train.n_users):
        rated = set(train.item[train.user == i].tolist())
        scores = {j: predict(U, V, np.array([i]), np.array([j]))[0] for j in range(train.n_items) if j not in rated}
        chosen = sorted(scores, key=lambda j: (-scores[j], j))[:n]
        mine = (test.user == i) & (test.value >= relevant)
        liked = set(test.item[mine].tolist()) - rated
        lists.append(chosen)
        if liked:
            gains = np.array([j in liked for j in chosen], dtype=float)
            discount = 1 / np.log2(2 + np.arange(n))
            recalls.append(gains.sum() / len(liked))
            ndcgs.append(gains @ discount[: len(gains)] / discount[: min(n, len(liked))].sum())
    return lists, np.mean(recalls), np.mean(ndcgs), len(set().union(*lists)) / train.n_items


def test_a_case_by_hand():
    # a ranks 20, 40, 30; b ranks 40, 10; c ranks 20, 30, 10.
    V = np.array([[1.0], [4.0], [2.0], [3.0]])
    ranking = Ranking(TRAIN, TEST, n=2)
    assert ranking.lists(ONE, V).tolist() == [[1, 3], [3, 0], [1, 2]]
    # a likes 20 (first in his list) and 30 (not in it), b likes 10 (second), c nothing: he is left out.
    second = 1 / np.log2(3)
    recall, ndcg, coverage = ranking(ONE, V)
    assert recall == (1 / 2 + 1 / 1) / 2
    assert ndcg == pytest.approx((1 / (1 + second) + second) / 2)
    assert coverage == 1.0


def test_coverage_counts_the_lists_of_users_without_a_relevant_item():
    # Lists of one: a takes 20, b takes 40, c takes 20 until he alone turns to 10.
    V = np.array([[1.0], [4.0], [2.0], [3.0]])
    assert Ranking(TRAIN, TEST, n=1)(ONE, V).coverage == 2 / 4
    assert Ranking(TRAIN, TEST, n=1)(np.array([[1.0], [1.0], [-1.0]]), V).coverage == 3 / 4


def test_equal_predictions_keep_the_order_of_the_items():
    assert Ranking(TRAIN, TEST, n=3).lists(ONE, np.ones((4, 1))).tolist() == [[1, 2, 3], [0, 3, -1], [0, 1, 2]]


def test_predictions_above_the_scale_do_not_tie():
    V = np.array([[6.0], [7.0], [8.0], [9.0]])
    assert Ranking(TRAIN, TEST, n=2).lists(ONE, V).tolist() == [[3, 2], [3, 0], [2, 1]]


def test_a_user_who_has_rated_all_has_an_empty_list():
    train = made([("a", item, 3) for item in ITEMS] + [("b", 10, 3)])
    ranking = Ranking(train, made([("b", 20, 5)]), n=2)
    assert ranking.lists(ONE, np.ones((4, 1))).tolist() == [[-1, -1], [1, 2], [0, 1]]
    assert ranking(ONE, np.ones((4, 1))) == (1.0, 1.0, 3 / 4)


def test_a_list_longer_than_all_candidates_finds_everything():
    recall, ndcg, coverage = Ranking(TRAIN, TEST, n=50)(ONE, np.array([[4.0], [3.0], [2.0], [1.0]]))
    assert (recall, ndcg, coverage) == (1.0, 1.0, 1.0)


def test_recall_stays_below_one_where_a_list_is_shorter_than_what_is_liked():
    recall, ndcg, _ = Ranking(TRAIN, made([("a", 20, 5), ("a", 30, 5)]), n=1)(ONE, np.ones((4, 1)))
    assert (recall, ndcg) == (0.5, 1.0)


def test_a_test_rating_that_was_trained_on_is_not_asked_for():
    both = made([("a", 10, 5), ("a", 20, 5)])
    assert Ranking(TRAIN, both, n=1)(ONE, np.ones((4, 1))).recall == 1.0


def test_items_and_users_without_a_training_rating_are_ranked_by_means():
    train = made([("a", 10, 4), ("b", 20, 2)])
    lists = Ranking(train, made([("a", 20, 5)]), n=4).lists(ONE, np.array([[3.0], [5.0], [99.0], [99.0]]))
    # a: 20 at 5, then 30 and 40 at his mean of 4. b: 10 at 3, 30 and 40 at 2. c: the items' means, the middle.
    assert lists.tolist() == [[1, 2, 3, -1], [0, 2, 3, -1], [0, 2, 3, 1]]


@pytest.mark.parametrize(("scale", "expected"), [((1, 5), 4.0), ((0.5, 5), 3.875), ((-10, 10), 5.0)])
def test_without_a_threshold_three_quarters_up_the_scale_is_relevant(scale, expected):
    assert relevant_from(Scale(*scale)) == expected


def test_the_threshold_belongs_to_what_is_relevant():
    V = np.array([[1.0], [2.0], [3.0], [4.0]])
    strict, default, low = (Ranking(TRAIN, TEST, n=1, relevant=r)(ONE, V).recall for r in (5, None, 3))
    assert [strict, default, low] == [0.0, 0.0, (1 / 3 + 0 + 0) / 3]


def test_diverged_profiles_give_nan_and_no_error():
    V = np.array([[1.0], [2.0], [np.nan], [3.0]])
    assert all(np.isnan(Ranking(TRAIN, TEST, n=2)(ONE, V)))
    assert Ranking(TRAIN, TEST, n=2).lists(ONE, V).tolist() == [[3, 1], [3, 0], [1, 0]]
    infinite = np.array([[-np.inf], [-np.inf], [np.inf], [1.0]])
    assert Ranking(TRAIN, TEST, n=3).lists(ONE, infinite).tolist() == [[2, 3, 1], [3, 0, -1], [2, 0, 1]]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_random_cases_against_a_slow_oracle(seed, n, ties):
    rng = np.random.default_rng(seed)
    n_users, n_items, rank = rng.integers(1, 9), rng.integers(2, 12), rng.integers(1, 4)
    split = rng.choice(3, (n_users, n_items))  # unrated, train, test
    split[0, :2] = 1, 2
    everything = Ratings.from_arrays(
        *np.divmod(np.arange(split.size), n_items),
        rng.integers(1, 6, split.size),
        scale=(1, 5),
        user_ids=range(n_users),
        item_ids=range(n_items),
    )
    train, test = everything.select(split.ravel() == 1), everything.select(split.ravel() == 2)
    relevant = float(rng.integers(1, 6))
    U, V = rng.normal(size=(n_users, rank)), rng.normal(size=(n_items, rank))
    if ties:
        U, V = np.rint(U), np.rint(V)
    if not (test.value >= relevant).any():
        with pytest.raises(ValueError, match="relevant is"):
            Ranking(train, test, n=n, relevant=relevant)
        return
    ranking = Ranking(train, test, n=n, relevant=relevant)
    lists, *expected = oracle(train, test, n, relevant, U, V)
    assert [[item for item in row if item >= 0] for row in ranking.lists(U, V).tolist()] == lists
    assert list(ranking(U, V)) == pytest.approx(expected, rel=1e-12)
    assert ranking(U, V) == ranking(U, V)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "10"])
def test_a_length_that_is_none_is_refused(n):
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        Ranking(TRAIN, TEST, n=n)


@pytest.mark.parametrize("relevant", [np.nan, np.inf, "4", True])
def test_a_threshold_that_is_no_rating_is_refused(relevant):
    with pytest.raises(ValueError, match="relevant must be a finite rating"):
        Ranking(TRAIN, TEST, relevant=relevant)


def test_a_test_set_without_a_relevant_item_is_refused():
    with pytest.raises(ValueError, match=r"relevant is 4, but .* the highest test rating is 3"):
        Ranking(TRAIN, made([("a", 20, 3)]))


def test_other_users_or_items_are_refused():
    other = made([("a", 20, 5)], items=[10, 20, 30])
    with pytest.raises(ValueError, match=r"users and items of train \(3 and 4\), got 3 and 3"):
        Ranking(TRAIN, other)
