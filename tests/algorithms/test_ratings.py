import copy
import os
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.ratings import Ratings, Scale

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ratings():
    return Ratings.from_arrays(
        ["eve", "bob", "eve", "bob"],
        [30, 10, 10, 20],
        [3.0, 1.0, 5.0, 4.0],
        timestamps=[4, 3, 2, 1],
        folds=[1, 2, 2, 1],
        scale=(1, 5),
    )


def every_array(ratings):
    rows = [ratings.by_user, ratings.by_item]
    return [
        *(ratings.user, ratings.item, ratings.value, ratings.timestamp, ratings.folds),
        *(array for each in rows for array in (each.start, each.index, each.value, each.position)),
        *ratings.by_user.row(0),
    ]


@st.composite
def columns(draw):
    pairs = draw(st.lists(st.tuples(st.integers(-5, 8), st.text("abc", max_size=2)), min_size=1, unique=True))
    values = draw(st.lists(st.integers(-3, 3), min_size=len(pairs), max_size=len(pairs)))
    return [user for user, _ in pairs], [item for _, item in pairs], values


def test_columns_stand_in_canonical_order(ratings):
    assert ratings.user_ids == ("bob", "eve")
    assert ratings.item_ids == (10, 20, 30)
    assert ratings.user.tolist() == [0, 0, 1, 1]
    assert ratings.item.tolist() == [0, 1, 0, 2]
    assert ratings.value.tolist() == [1, 4, 5, 3]
    assert ratings.timestamp.tolist() == [3, 1, 2, 4]
    assert ratings.folds.tolist() == [2, 1, 2, 1]
    assert ratings.scale == Scale(1, 5)
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings, len(ratings)) == (2, 3, 4, 4)
    assert ratings.mean == 3.25
    assert repr(ratings) == "Ratings(2 users, 3 items, 4 ratings, scale 1..5)"


def test_types(ratings):
    assert ratings.user.dtype == ratings.item.dtype == ratings.folds.dtype == np.int64
    assert ratings.value.dtype == ratings.timestamp.dtype == np.float64
    assert ratings.by_item.start.dtype == ratings.by_item.index.dtype == ratings.by_item.position.dtype == np.int64
    assert all(array.flags.aligned for array in every_array(ratings))


def test_without_optional_columns():
    plain = Ratings.from_arrays([2, 1], [1, 1], [0.5, 4])
    assert plain.timestamp is None
    assert plain.folds is None
    assert plain.scale == Scale(0.5, 4)


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ([10, 9, 10], (9, 10)),
        (np.array([10, 9, 10], dtype=np.uint16), (9, 10)),
        (np.array(["b", "a", "b"]), ("a", "b")),
        (pd.Series(["b", "a", "b"]), ("a", "b")),
        (pd.Series([10, 9, 10], dtype="Int64"), (9, 10)),
        ([(2, 1), (1, 2), (2, 1)], ((1, 2), (2, 1))),
        (["b", 1, "b"], ("b", 1)),
        (
            [frozenset("ab"), frozenset("a"), frozenset("c")],
            (frozenset("ab"), frozenset("a"), frozenset("c")),
        ),
        ([np.int64(10), np.int64(9), np.int64(10)], (9, 10)),
    ],
    ids=[
        "int",
        "uint16",
        "str-array",
        "series",
        "nullable",
        "tuple",
        "mixed",
        "partial-order",
        "numpy-scalars",
    ],
)
def test_ids_of_any_kind(users, expected):
    ratings = Ratings.from_arrays(users, [1, 2, 3], [1, 2, 3])
    assert ratings.user_ids == expected
    assert not any(isinstance(each, np.generic) for each in ratings.user_ids)
    assert [ratings.user_ids[u] for u in ratings.user[np.argsort(ratings.value)]] == [
        tuple(each) if isinstance(each, tuple) else each for each in users
    ]


@pytest.mark.parametrize("as_given", [list, np.array])
def test_declared_ids_keep_their_order(as_given):
    ratings = Ratings.from_arrays([7, 5], [1, 2], [3, 4], user_ids=as_given([7, 9, 5]), item_ids=[2, 3, 1])
    assert ratings.user_ids == (7, 9, 5)
    assert ratings.item_ids == (2, 3, 1)
    assert ratings.user.tolist() == [0, 2]
    assert ratings.item.tolist() == [2, 0]
    assert ratings.by_user.start.tolist() == [0, 1, 1, 2]
    assert len(ratings.by_user.row(1)[0]) == 0


@given(columns())
def test_views_hold_the_same_ratings(given_columns):
    ratings = Ratings.from_arrays(*given_columns)
    assert set(zip(*given_columns, strict=True)) == {
        (ratings.user_ids[u], ratings.item_ids[i], v)
        for u, i, v in zip(ratings.user, ratings.item, ratings.value, strict=True)
    }
    sides = [
        (ratings.by_user, ratings.user, ratings.item, ratings.n_users),
        (ratings.by_item, ratings.item, ratings.user, ratings.n_items),
    ]
    for rows, own, other, n_rows in sides:
        assert len(rows) == n_rows
        assert (rows.start[0], rows.start[-1]) == (0, len(ratings))
        assert np.array_equal(rows.index, other[rows.position])
        assert np.array_equal(rows.value, ratings.value[rows.position])
        for i in range(n_rows):
            index, value = rows.row(i)
            assert np.array_equal(index, np.sort(other[own == i]))
            assert np.array_equal(value, ratings.value[own == i])
            assert (own[rows.position[rows.start[i] : rows.start[i + 1]]] == i).all()


@given(columns(), st.randoms(use_true_random=False))
def test_input_order_does_not_matter(given_columns, random):
    ratings = Ratings.from_arrays(*given_columns)
    rows = list(zip(*given_columns, strict=True))
    random.shuffle(rows)
    shuffled = Ratings.from_arrays(*zip(*rows, strict=True))
    assert shuffled == ratings
    assert shuffled.digest == ratings.digest
    assert hash(shuffled) == hash(ratings)


@given(columns())
def test_pickle_brings_back_an_equal_object(given_columns):
    ratings = Ratings.from_arrays(*given_columns)
    back = pickle.loads(pickle.dumps(ratings))
    assert back == ratings
    assert (back.digest, hash(back)) == (ratings.digest, hash(ratings))
    assert not back.value.flags.writeable


def test_nothing_can_be_written(ratings):
    copies = [ratings, pickle.loads(pickle.dumps(ratings)), copy.deepcopy(ratings), *ratings.split(fold=1)]
    for array in (array for each in copies for array in every_array(each)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    with pytest.raises(FrozenInstanceError):
        ratings.value = np.ones(4)
    with pytest.raises(FrozenInstanceError):
        ratings.by_user.index = np.ones(4)
    with pytest.raises(FrozenInstanceError):
        ratings.scale.low = 0
    with pytest.raises(FrozenInstanceError):
        del ratings.scale


def test_pickled_rows_stay_frozen(ratings):
    rows = pickle.loads(pickle.dumps(ratings.by_item))
    assert np.array_equal(rows.index, ratings.by_item.index)
    assert not rows.index.flags.writeable


def test_made_only_by_from_arrays(ratings):
    with pytest.raises(TypeError, match="from_arrays"):
        Ratings([1], [1], [1])
    with pytest.raises(TypeError, match="from_arrays"):
        replace(ratings, value=ratings.value)


def test_no_array_is_shared_with_the_caller():
    users, items, values, times, folds = (np.array([1, 2]) for _ in range(5))
    values = values.astype(float)
    times = times.astype(float)
    ratings = Ratings.from_arrays(users, items, values, timestamps=times, folds=folds)
    digest = ratings.digest
    for array in (users, items, values, times, folds):
        array[:] = 9
    frame = ratings.to_frame()
    frame.loc[:, "rating"] = 7.0
    assert ratings.value.tolist() == ratings.timestamp.tolist() == ratings.folds.tolist() == [1, 2]
    assert Ratings.from_arrays([1, 2], [1, 2], [1, 2], timestamps=[1, 2], folds=[1, 2]).digest == digest


def test_views_are_made_once(ratings):
    assert ratings.by_user is ratings.by_user
    assert ratings.digest is ratings.digest


BASE = {"users": [1, 2], "items": [1, 2], "values": [1.0, 2.0]}


@pytest.mark.parametrize(
    "change",
    [
        {"users": [1, 3]},
        {"users": [1, "2"]},
        {"items": [1, 3]},
        {"values": [1.0, 3.0]},
        {"timestamps": [0, 0]},
        {"timestamps": [1, 2], "folds": None},
        {"folds": [1, 2]},
        {"scale": (1, 3)},
        {"user_ids": [1, 2, 3]},
        {"item_ids": [2, 1]},
    ],
    ids=lambda change: "-".join(change),
)
def test_another_content_is_not_equal(change):
    ratings, other = (Ratings.from_arrays(**each) for each in (BASE, BASE | change))
    assert ratings != other
    assert ratings.digest != other.digest


def test_timestamps_and_folds_are_told_apart():
    assert Ratings.from_arrays(**BASE, timestamps=[1, 2]) != Ratings.from_arrays(**BASE, folds=[1, 2])


def test_equality_agrees_with_hash():
    whole, real = (Ratings.from_arrays([kind(1), kind(2)], [1, 2], [0.0, 2]) for kind in (int, float))
    assert whole == real
    assert hash(whole) == hash(real)
    assert Ratings.from_arrays([1, 2], [1, 2], [-0.0, 2]).digest == whole.digest
    assert whole != "ratings"


def test_digest_is_the_same_in_another_process(ratings):
    code = (
        "from algorithms.ratings import Ratings; print(Ratings.from_arrays(['eve', 'bob', 'eve', 'bob'], "
        "[30, 10, 10, 20], [3, 1, 5, 4], timestamps=[4, 3, 2, 1], folds=[1, 2, 2, 1], scale=(1, 5)).digest)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == ratings.digest
    assert len(ratings.digest) == 64


def test_split_keeps_ids_scale_and_columns(ratings):
    train, test = ratings.split(fold=1)
    assert train.value.tolist() == [1, 5]
    assert train.timestamp.tolist() == [3, 2]
    assert train.folds.tolist() == [2, 2]
    assert test.value.tolist() == [4, 3]
    for part in (train, test):
        assert (part.user_ids, part.item_ids) == (ratings.user_ids, ratings.item_ids)
        assert part.scale == Scale(1, 5)
    assert train.by_item.start.tolist() == [0, 2, 2, 2]


def test_split_errors(ratings):
    with pytest.raises(ValueError, match=r"fold must be one of 1, 2, got 3"):
        ratings.split(fold=3)
    with pytest.raises(ValueError, match=r"needs official folds"):
        Ratings.from_arrays([1], [1], [1]).split(fold=1)
    with pytest.raises(ValueError, match=r"fold 2 holds every rating"):
        ratings.split(fold=1)[0].split(fold=2)


def test_select(ratings):
    high = ratings.select(ratings.value > 3)
    assert high.value.tolist() == [4, 5]
    assert high.user_ids == ratings.user_ids
    assert ratings.select([True] * 4) == ratings


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([0, 1, 2, 3], r"mask must be boolean of shape \(4,\), got int64 of shape \(4,\)"),
        ([True, False], r"got bool of shape \(2,\)"),
        ([False] * 4, "keep at least one rating"),
    ],
)
def test_select_errors(ratings, mask, message):
    with pytest.raises(ValueError, match=message):
        ratings.select(mask)


def test_to_frame(ratings):
    frame = ratings.to_frame()
    assert list(frame.columns) == ["user", "item", "rating", "timestamp"]
    assert frame["user"].tolist() == ["bob", "bob", "eve", "eve"]
    assert frame["item"].tolist() == [10, 20, 10, 30]
    assert frame["rating"].tolist() == [1, 4, 5, 3]
    assert frame["timestamp"].tolist() == [3, 1, 2, 4]
    assert frame.index.tolist() == [0, 1, 2, 3]
    assert "timestamp" not in Ratings.from_arrays([1], [1], [1]).to_frame()


def test_frame_holds_tuples_as_ids():
    frame = Ratings.from_arrays([(1, 2), (3, 4)], [1, 1], [1, 2]).to_frame()
    assert frame["user"].tolist() == [(1, 2), (3, 4)]


@pytest.mark.parametrize("i", [-1, 2])
def test_row_out_of_range(ratings, i):
    with pytest.raises(IndexError, match=f"i must be from 0 to 1, got {i}"):
        ratings.by_user.row(i)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": [1]}, "one length, got 1 users, 2 items, 2 values"),
        ({"timestamps": [1]}, "2 values, 1 timestamps"),
        ({"folds": [1, 1, 1]}, "2 values, 3 folds"),
        ({"users": [], "items": [], "values": []}, "users must hold at least one rating, got none"),
        ({"values": [1, float("nan")]}, "values must hold finite numbers, got nan at position 1"),
        ({"values": [float("inf"), 1]}, "values must hold finite numbers, got inf at position 0"),
        ({"values": [1, "4"]}, "values must hold numbers, got '4' at position 1"),
        ({"values": [1, None]}, "values must hold numbers, got None at position 1"),
        ({"values": [[1], [2]]}, r"values must have shape \(n_ratings,\), got shape \(2, 1\)"),
        ({"timestamps": [float("nan"), 1]}, "timestamps must hold finite numbers, got nan at position 0"),
        ({"scale": (1, 1.5)}, "values must hold ratings from 1 to 1.5, got 2.0 at position 1"),
        ({"scale": (1.5, 5)}, "values must hold ratings from 1.5 to 5, got 1.0 at position 0"),
        ({"scale": (5, 1)}, "low <= high, got low=5, high=1"),
        ({"scale": (1, float("inf"))}, "two finite numbers"),
        ({"scale": 5}, r"scale must be \(low, high\), got 5"),
        ({"folds": [1, 0]}, "folds must hold whole numbers from 1, got 0.0 at position 1"),
        ({"folds": [1.5, 1]}, "folds must hold whole numbers from 1, got 1.5 at position 0"),
        ({"users": [1, float("nan")]}, "users must hold an id for each rating, got nan at position 1"),
        ({"items": ["a", None]}, "items must hold an id for each rating, got None at position 1"),
        (
            {"users": pd.Series([1, None], dtype="Int64")},
            "an id for each rating, got (nan|<NA>) at position 1",
        ),
        ({"user_ids": [1, 3]}, "users must hold ids that stand in user_ids, got 2 at position 1"),
        ({"item_ids": [2]}, "items must hold ids that stand in item_ids, got 1 at position 0"),
        ({"user_ids": [1, 2, 1]}, "user_ids must hold each id once, got 1 at position 2"),
        ({"user_ids": np.array([2, 1, 2])}, "user_ids must hold each id once, got 2 at position 2"),
    ],
)
def test_refused_input(change, message):
    with pytest.raises(ValueError, match=message):
        Ratings.from_arrays(**(BASE | change))


def test_duplicate_pair_names_ids_and_positions():
    with pytest.raises(ValueError, match=r"got user 'b', item 8 at positions 1 and 3"):
        Ratings.from_arrays(["a", "b", "b", "b", "a"], [7, 8, 7, 8, 7], [1, 2, 3, 4, 5])


def test_unhashable_id():
    with pytest.raises(TypeError, match=r"items must hold hashable ids, got \[2\] at position 1"):
        Ratings.from_arrays([1, 2], [1, [2]], [1, 2])
