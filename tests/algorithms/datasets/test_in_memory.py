import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from algorithms.datasets import DataError, ratings_from_dense, ratings_from_frame, ratings_from_sparse
from algorithms.ratings import Scale

FORMATS = ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"]


@pytest.fixture
def frame():
    return pd.DataFrame(
        {"userId": ["b", "a", "b"], "movieId": [7, 7, 9], "rating": [3, 4.5, 1], "timestamp": [10, 11, 12]},
        index=["x", "y", "z"],
    )


def test_frame_with_usual_names(frame):
    ratings = ratings_from_frame(frame.assign(comment="?"))
    assert ratings.user_ids == ("a", "b")
    assert ratings.item_ids == (7, 9)
    assert ratings.value.tolist() == [4.5, 3, 1]
    assert ratings.timestamp.tolist() == [11, 10, 12]
    assert ratings.scale == Scale(1, 4.5)
    assert ratings_from_frame(ratings.to_frame()) == ratings


def test_frame_with_named_columns(frame):
    other = frame.set_axis(["who", "what", "stars", ("when", 1)], axis="columns")
    named = ratings_from_frame(other, user="who", item="what", rating="stars", timestamp=("when", 1))
    assert named == ratings_from_frame(frame)
    assert ratings_from_frame(other, user="who", item="what", rating="stars").timestamp is None


@pytest.mark.parametrize("dtype", ["int8", "Int64", "float32", "Float64"])
def test_frame_of_any_number_type(frame, dtype):
    frame["rating"] = pd.array([3, 4, 1], dtype=dtype)
    assert ratings_from_frame(frame).value.tolist() == [4, 3, 1]


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_dates_become_seconds(frame, unit, zone):
    frame["timestamp"] = pd.to_datetime([10, 11, 12], unit="s", utc=True).tz_convert(zone).as_unit(unit)
    assert ratings_from_frame(frame).timestamp.tolist() == [11, 10, 12]


@pytest.mark.parametrize(("keep", "value"), [("first", 3), ("last", 5), ("mean", 4)])
def test_duplicate_rows_by_choice(frame, keep, value):
    double = pd.concat([frame, frame.iloc[:1].assign(rating=5, timestamp=99)])
    assert ratings_from_frame(double, keep=keep).value.tolist() == [4.5, value, 1]
    with pytest.raises(DataError, match=r"frame, row 'x': found user 'b', item 7 again, after frame, row 'x'"):
        ratings_from_frame(double)


def test_zero_in_a_frame_by_choice(frame):
    frame.loc["z", "rating"] = 0
    assert len(ratings_from_frame(frame)) == 3
    assert len(ratings_from_frame(frame, zero="missing", scale=(1, 5))) == 2


@pytest.mark.parametrize(
    ("column", "values", "error", "message"),
    [
        ("userId", ["b", None, "b"], DataError, "row 'y': found no user id in column 'userId'"),
        ("movieId", [7, np.nan, 9], DataError, "row 'y': found no item id"),
        ("rating", [3, np.nan, 1], DataError, "row 'y': found rating nan, expected a finite rating"),
        ("rating", [3, np.inf, 1], DataError, "row 'y': found rating inf"),
        ("rating", [3, 9, 1], DataError, "row 'y': found rating 9, expected a rating from 1 to 5"),
        ("rating", ["3", "4", "1"], ValueError, "column 'rating' must hold numbers as the rating, got dtype"),
        ("rating", [3j, 4, 1], ValueError, "column 'rating' must hold numbers"),
        ("timestamp", pd.to_datetime(["2020", None, "2021"], format="%Y"), DataError, "row 'y': found timestamp nan"),
        ("timestamp", ["now"] * 3, ValueError, "column 'timestamp' must hold numbers as the timestamp"),
        ("userId", [[1], [2], [3]], TypeError, "column 'userId' must hold hashable user ids"),
    ],
)  # fmt: skip
def test_malformed_frame(frame, column, values, error, message):
    frame[column] = values
    with pytest.raises(error, match=message):
        ratings_from_frame(frame, scale=(1, 5))


def test_frame_without_the_column(frame):
    with pytest.raises(ValueError, match=r"one column with a usual name for the rating, got columns .*; name it with"):
        ratings_from_frame(frame.rename(columns={"rating": "points"}))
    with pytest.raises(ValueError, match="one column 'who' for the user"):
        ratings_from_frame(frame, user="who")
    with pytest.raises(ValueError, match="one column 'rating' for the rating"):
        ratings_from_frame(pd.concat([frame, frame["rating"]], axis="columns"), rating="rating")
    with pytest.raises(TypeError, match="frame must be a pandas DataFrame, got list"):
        ratings_from_frame([1])
    with pytest.raises(DataError, match="frame: found no row"):
        ratings_from_frame(frame.iloc[:0])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
def test_sparse_of_any_format(form, make):
    dense = np.array([[0, 3, 0], [0, 0, 0], [4.5, 0, 1]])
    ratings = ratings_from_sparse(make(dense).asformat(form))
    found = np.zeros((3, 3))
    found[ratings.user, ratings.item] = ratings.value
    assert np.array_equal(found, dense)
    assert ratings.user_ids == ratings.item_ids == (0, 1, 2)


def test_sparse_with_ids_keeps_those_without_ratings():
    ratings = ratings_from_sparse(
        scipy.sparse.csr_array(np.array([[0, 3], [0, 0]])), user_ids=["z", "a"], item_ids=np.array([5, 4])
    )
    assert ratings.user_ids == ("z", "a")
    assert ratings.item_ids == (5, 4)
    assert (ratings.user.tolist(), ratings.item.tolist()) == ([0], [1])


def test_stored_zeros_by_choice():
    matrix = scipy.sparse.coo_array(([0, 3], ([0, 1], [0, 1])), shape=(2, 2))
    assert ratings_from_sparse(matrix).value.tolist() == [3]
    assert ratings_from_sparse(matrix, zero="rating").value.tolist() == [0, 3]


@pytest.mark.parametrize(("keep", "value"), [("first", 2), ("last", 5), ("mean", 3.5)])
def test_entries_stored_twice_by_choice(keep, value):
    matrix = scipy.sparse.coo_array(([2, 4, 5], ([0, 1, 0], [1, 1, 1])), shape=(2, 2))
    assert ratings_from_sparse(matrix, keep=keep).value.tolist() == [value, 4]
    with pytest.raises(DataError, match=r"matrix, entry \(0, 1\): found user 0, item 1 again"):
        ratings_from_sparse(matrix)
    assert matrix.nnz == 3


def test_malformed_sparse():
    matrix = scipy.sparse.coo_array(([2.0, np.nan], ([0, 1], [0, 1])), shape=(2, 2))
    with pytest.raises(DataError, match=r"matrix, entry \(1, 1\): found rating nan"):
        ratings_from_sparse(matrix)
    with pytest.raises(DataError, match="matrix: found no rating"):
        ratings_from_sparse(scipy.sparse.csr_array((2, 2)))
    with pytest.raises(ValueError, match="user_ids must hold 2 ids, one a row, got 3"):
        ratings_from_sparse(matrix, user_ids="abc")
    with pytest.raises(ValueError, match="matrix must hold real numbers, got dtype complex128"):
        ratings_from_sparse(matrix.astype(complex))
    with pytest.raises(ValueError, match=r"matrix must have shape \(n_users, n_items\), got shape \(3,\)"):
        ratings_from_sparse(scipy.sparse.coo_array([1, 2, 3]))
    with pytest.raises(TypeError, match=r"must be a scipy\.sparse array or matrix, got ndarray; pass a dense one"):
        ratings_from_sparse(np.eye(2))


NAN = float("nan")


@pytest.mark.parametrize(
    "matrix",
    [
        [[NAN, 3], [0, NAN]],
        np.array([[NAN, 3], [0, NAN]], dtype=np.float32),
        np.ma.array([[9, 3], [0, 9]], mask=[[True, False], [False, True]]),
        pd.DataFrame([[NAN, 3], [0, NAN]]),
        pd.DataFrame([[None, 3], [0, None]], dtype="Int64"),
    ],
    ids=["lists", "float32", "masked", "frame", "nullable"],
)
def test_dense_with_missing_entries(matrix):
    ratings = ratings_from_dense(matrix)
    assert (ratings.user.tolist(), ratings.item.tolist(), ratings.value.tolist()) == ([0, 1], [1, 0], [3, 0])
    assert ratings_from_dense(matrix, zero="missing").value.tolist() == [3]
    assert ratings_from_dense(matrix, zero="missing").n_users == 2


def test_labels_of_a_pivot_table_are_ids(frame):
    table = frame.pivot_table(index="userId", columns="movieId", values="rating")
    ratings = ratings_from_dense(table)
    assert ratings.user_ids == ("a", "b")
    assert ratings.item_ids == (7, 9)
    assert ratings.value.tolist() == [4.5, 3, 1]
    assert ratings_from_dense(table, user_ids=["p", "q"]).user_ids == ("p", "q")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 2], [3]], "matrix must be rectangular"),
        ([1, 2], r"matrix must have shape \(n_users, n_items\), got shape \(2,\)"),
        ([["1", "2"]], "matrix must hold real numbers, got dtype <U1"),
        ([[None, 2]], "matrix must hold real numbers, got dtype object"),
        (pd.DataFrame([["1", 2]]), "matrix must hold real numbers, got dtype object"),
        ([[NAN]], "matrix: found no rating"),
        (np.empty((0, 3)), "matrix: found no rating"),
        ([[1, float("inf")]], r"matrix, entry \(0, 1\): found rating inf"),
        ([[1, 6]], r"matrix, entry \(0, 1\): found rating 6, expected a rating from 0 to 5"),
    ],
)
def test_malformed_dense(matrix, message):
    with pytest.raises(ValueError, match=message):
        ratings_from_dense(matrix, scale=(0, 5))


def test_nothing_is_shared_with_the_caller():
    matrix = np.array([[1.0, 2.0]])
    ratings = ratings_from_dense(matrix)
    matrix[:] = 9
    assert ratings.value.tolist() == [1, 2]
