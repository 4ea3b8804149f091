import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from algorithms.ratings import Ratings
from algorithms.solvers import as_observed

MATRIX = np.array([[1.0, np.nan, 0.0], [np.nan, np.nan, np.nan], [4.0, 5.0, np.nan], [np.nan, 2.0, np.nan]])
ROW, COLUMN, VALUE = [0, 0, 2, 2, 3], [0, 2, 0, 1, 1], [1.0, 0.0, 4.0, 5.0, 2.0]


def stored():
    """The cells of MATRIX, a stored zero among them, in no order."""
    order = [3, 0, 4, 1, 2]
    return scipy.sparse.coo_array(
        (np.array(VALUE)[order], (np.array(ROW)[order], np.array(COLUMN)[order])), shape=MATRIX.shape
    )


def ratings():
    return Ratings.from_arrays(ROW, COLUMN, VALUE, user_ids=range(4), item_ids=range(3))


@pytest.mark.parametrize(
    "X",
    [
        MATRIX,
        MATRIX.tolist(),
        np.asfortranarray(MATRIX),
        pd.DataFrame(MATRIX),
        pd.DataFrame(MATRIX).convert_dtypes(),
        stored(),
        stored().tocsr(),
        scipy.sparse.csc_matrix(stored()),
        ratings(),
        as_observed(MATRIX),
    ],
    ids=["dense", "list", "fortran", "frame", "nullable", "coo", "csr", "csc", "ratings", "observed"],
)
def test_the_same_cells_come_out_of_each_input(X):
    observed = as_observed(X)
    np.testing.assert_array_equal(observed.row, ROW)
    np.testing.assert_array_equal(observed.column, COLUMN)
    np.testing.assert_array_equal(observed.value, VALUE)
    assert observed.shape == (4, 3)
    assert observed.row_ids == (0, 1, 2, 3)
    assert len(observed) == 5
    assert (observed.row.dtype, observed.column.dtype, observed.value.dtype) == (np.int64, np.int64, np.float64)


def test_a_mask_takes_the_place_of_the_rule():
    mask = np.zeros(MATRIX.shape, dtype=bool)
    mask[0, 0] = mask[0, 1] = mask[3, 1] = True
    dense = as_observed(np.nan_to_num(MATRIX), mask=mask)
    for X in (stored(), stored().tocsc()):
        for given in (mask, scipy.sparse.csr_array(mask)):
            sparse = as_observed(X, mask=given)
            np.testing.assert_array_equal(sparse.dense(), dense.dense())
    np.testing.assert_array_equal(dense.value, [1, 0, 2])
    np.testing.assert_array_equal(as_observed(pd.DataFrame(np.nan_to_num(MATRIX)), mask=mask).dense(), dense.dense())


def test_labels_become_ids():
    observed = as_observed(pd.DataFrame(MATRIX[:, :2], index=list("abcd"), columns=["x", "y"]))
    assert observed.row_ids == ("a", "b", "c", "d")
    assert observed.column_ids == ("x", "y")


def test_views():
    observed = as_observed(MATRIX)
    assert observed.by_row.row(2)[0].tolist() == [0, 1]
    assert observed.by_column.row(0)[1].tolist() == [1, 4]
    assert len(observed.by_row) == 4
    assert len(observed.by_column) == 3
    for matrix in (observed.csr(), observed.csc()):
        assert matrix.nnz == 5  # the zero stays
        np.testing.assert_array_equal(matrix.toarray(), np.nan_to_num(MATRIX))
    other = np.arange(1.0, 6.0)
    np.testing.assert_array_equal(observed.csr(other).toarray(), observed.csc(other).toarray())
    np.testing.assert_array_equal(observed.csr(other).toarray(), observed.dense(other, fill=0.0))
    np.testing.assert_array_equal(observed.dense(), MATRIX)
    np.testing.assert_array_equal(observed.with_values(other).dense(fill=0.0), observed.dense(other, fill=0.0))


def test_views_do_not_share_memory_that_may_be_written():
    observed = as_observed(MATRIX)
    observed.csr().indices[:] = 0
    observed.csc().data[:] = 0
    observed.csr().data[:] = 0
    np.testing.assert_array_equal(observed.dense(), MATRIX)
    with pytest.raises(ValueError, match="read-only"):
        observed.value[0] = 3


def test_lookups():
    observed = as_observed(MATRIX)
    assert observed.positions([3, 0, 0, 3], [1, 0, 1, 2]).tolist() == [4, 0, -1, -1]
    np.testing.assert_array_equal(observed.values_at([3, 0, 0], [1, 2, 1]), [2, 0, np.nan])
    assert observed.values_at([], []).shape == (0,)
    with pytest.raises(ValueError, match="users must be indices from 0 to 3, got 4"):
        observed.values_at([4], [0])
    with pytest.raises(ValueError, match="items must be integers"):
        observed.values_at([0], [0.5])
    with pytest.raises(ValueError, match="of one length, got 2 and 1"):
        observed.values_at([0, 1], [0])


def test_select():
    observed = as_observed(MATRIX)
    kept = observed.select(observed.value > 1)
    assert kept.value.tolist() == [4, 5, 2]
    assert kept.shape == observed.shape
    with pytest.raises(ValueError, match="at least one cell"):
        observed.select(observed.value > 9)
    with pytest.raises(ValueError, match="mask must be boolean"):
        observed.select(observed.value)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((2, 2), np.nan), "at least one observed cell"),
        (scipy.sparse.csr_array((3, 2)), "at least one observed cell"),
        (np.array([[1.0, np.inf]]), r"finite numbers where it is observed, got inf at \(0, 1\)"),
        ([[1.0, 2.0], [3.0]], "rows of different lengths"),
        (np.ones(3), r"X must be a matrix .* got shape \(3,\)"),
        (np.ones((0, 3)), r"neither 0, got shape \(0, 3\)"),
        (np.array([["a", "b"]]), "X must hold real numbers"),
        (np.ones((1, 2), dtype=complex), "X must hold real numbers"),
        (scipy.sparse.csr_array(np.ones((1, 2), dtype=complex)), "X must hold real numbers"),
        (pd.DataFrame({"a": ["x"], "b": [1]}), "in column 'a'"),
        (scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)), r"two entries for \(0, 1\)"),
        (scipy.sparse.csr_array(np.array([[1.0, np.nan]])), r"got nan at \(0, 1\)"),
    ],
)
def test_errors(X, message):
    with pytest.raises(ValueError, match=message):
        as_observed(X)


def test_errors_of_masks_and_kinds():
    with pytest.raises(ValueError, match="mask must be boolean of the shape of X"):
        as_observed(MATRIX, mask=np.ones((4, 2), dtype=bool))
    with pytest.raises(ValueError, match="mask must be boolean of the shape of X"):
        as_observed(stored(), mask=scipy.sparse.csr_array(np.ones((4, 3))))
    with pytest.raises(ValueError, match="got nan at"):
        as_observed(MATRIX, mask=np.ones((4, 3), dtype=bool))
    with pytest.raises(ValueError, match="mask must be None for Ratings"):
        as_observed(ratings(), mask=np.ones((4, 3), dtype=bool))
    with pytest.raises(TypeError, match="got str"):
        as_observed("abc")
    with pytest.raises(TypeError, match="got set"):
        as_observed({1.0})
