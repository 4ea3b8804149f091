"""What a solver gets: the observed cells of a matrix, whatever they came in."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from algorithms.ratings import Ratings, Rows

__all__ = ["Observed", "as_observed"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Observed:
    """The observed cells of an incomplete matrix, ascending by (row, column). Made by `as_observed`.

    No array can be written to.

    Attributes
    ----------
    row, column : ndarray of int64, shape (n_observed,)
        Indices of each observed cell, from 0.
    value : ndarray of float64, shape (n_observed,)
        What stands there, finite.
    n_rows, n_columns : int
        Size of the matrix, rows and columns without an observed cell included.
    row_ids, column_ids : tuple
        Ids in index order: those of the ratings, labels of the frame, else the indices themselves.
    """

    row: IntArray
    column: IntArray
    value: FloatArray
    n_rows: int
    n_columns: int
    row_ids: tuple[Hashable, ...]
    column_ids: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        for name, dtype in (("row", np.int64), ("column", np.int64), ("value", np.float64)):
            array = np.array(getattr(self, name), dtype=dtype)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Observed({self.n_rows} rows, {self.n_columns} columns, {len(self)} observed cells)"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return self.n_rows, self.n_columns

    @cached_property
    def by_row(self) -> Rows:
        """The cells grouped by row, as CSR: row i holds its columns, ascending."""
        return _grouped(self.row, self.column, self.value, self.n_rows)

    @cached_property
    def by_column(self) -> Rows:
        """The cells grouped by column, as CSC: row j of the view holds the rows of column j, ascending."""
        return _grouped(self.column, self.row, self.value, self.n_columns)

    def csr(self, values: FloatArray | None = None) -> scipy.sparse.csr_array:
        """The matrix, or `values` (shape (n_observed,)) in its cells, as CSR; cells that hold 0 stay stored."""
        content = self.value if values is None else values
        parts = np.array(content, dtype=np.float64), self.column.copy(), self.by_row.start.copy()
        return scipy.sparse.csr_array(parts, shape=self.shape)

    def csc(self, values: FloatArray | None = None) -> scipy.sparse.csc_array:
        """The matrix, or `values` (shape (n_observed,)) in its cells, as CSC; cells that hold 0 stay stored."""
        content = self.value if values is None else np.asarray(values, dtype=np.float64)
        view = self.by_column
        parts = content[view.position], view.index.copy(), view.start.copy()
        return scipy.sparse.csc_array(parts, shape=self.shape)

    def dense(self, values: FloatArray | None = None, *, fill: float = np.nan) -> FloatArray:
        """The matrix, or `values` in its cells, with `fill` elsewhere: float64, shape (n_rows, n_columns)."""
        matrix = np.full(self.shape, fill)
        matrix[self.row, self.column] = self.value if values is None else values
        return matrix

    def with_values(self, values: FloatArray) -> "Observed":
        """The same cells with other values, float64, shape (n_observed,)."""
        if np.shape(values) != self.value.shape:
            raise ValueError(f"values must have shape {self.value.shape}, one a cell, got {np.shape(values)}")
        return Observed(self.row, self.column, values, self.n_rows, self.n_columns, self.row_ids, self.column_ids)

    def select(self, mask: BoolArray) -> "Observed":
        """Some of the cells, those where `mask` (bool, shape (n_observed,)) is True; size and ids stay.

        Raises
        ------
        ValueError
            If `mask` is not boolean, has another shape, or keeps nothing.
        """
        kept = np.asarray(mask)
        if kept.dtype != np.bool_ or kept.shape != self.value.shape:
            raise ValueError(
                f"mask must be boolean of shape {self.value.shape}, one entry an observed cell, "
                f"got {kept.dtype} of shape {kept.shape}"
            )
        if not kept.any():
            raise ValueError("mask must keep at least one cell, got all False; check its condition")
        cells = self.row[kept], self.column[kept], self.value[kept]
        return Observed(*cells, self.n_rows, self.n_columns, self.row_ids, self.column_ids)

    def pairs(self, rows: Any, columns: Any) -> tuple[IntArray, IntArray]:
        """Check indices of cells, and give them as int64 of one shape (n,).

        Raises
        ------
        ValueError
            If they are no integers, differ in length, or lie outside the matrix.
        """
        row = _indices("users", rows, self.n_rows)
        column = _indices("items", columns, self.n_columns)
        if len(row) != len(column):
            raise ValueError(f"users and items must be of one length, got {len(row)} and {len(column)}")
        return row, column

    def positions(self, rows: Any, columns: Any) -> IntArray:
        """Where each cell stands in `value`; -1 where it is not observed. int64, shape (n,)."""
        row, column = self.pairs(rows, columns)
        wanted = row * self.n_columns + column
        known = self._cells
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, place, -1)

    def values_at(self, rows: Any, columns: Any) -> FloatArray:
        """What stands in each cell; NaN where it is not observed. float64, shape (n,)."""
        place = self.positions(rows, columns)
        return np.where(place >= 0, self.value[place], np.nan)

    @cached_property
    def _cells(self) -> IntArray:
        return self.row * self.n_columns + self.column


def as_observed(X: Any, *, mask: Any = None) -> Observed:
    """Read the observed cells out of whatever holds a matrix with missing cells.

    Parameters
    ----------
    X : Ratings, array_like, scipy sparse matrix or array, pandas.DataFrame, or Observed
        Ratings: users are rows, items columns. Dense array or frame of shape (n_rows, n_columns): NaN (or `pandas.NA`)
        is missing; labels of a frame become ids. Sparse: the entries that are stored are observed, stored zeros too;
        those that are not stored are missing. An entry stored twice is an error.
    mask : array_like or sparse of bool, shape (n_rows, n_columns), optional
        True where a cell is observed, in place of the rule above. In a sparse `X`, what is not stored then is 0.
        Not for ratings, which say themselves what is known.

    Returns
    -------
    Observed

    Raises
    ------
    ValueError
        If the shape is not that of a matrix, nothing is observed, or an observed cell is not a finite number.
    TypeError
        If `X` is of another kind.
    """
    if isinstance(X, Ratings | Observed):
        if mask is not None:
            raise ValueError(
                f"mask must be None for {type(X).__name__}, which say what is known; use their select(mask)"
            )
        return X if isinstance(X, Observed) else _from_ratings(X)
    if _is_sparse(X):
        return _from_sparse(X, mask)
    if isinstance(X, pd.DataFrame):
        return _from_dense(_frame_numbers(X), mask, tuple(X.index.tolist()), tuple(X.columns.tolist()))
    if isinstance(X, np.ndarray | list | tuple):
        return _from_dense(_numbers(X), mask)
    raise TypeError(
        f"X must be Ratings, a matrix with NaN, a scipy sparse matrix or a pandas DataFrame, got {type(X).__name__}"
    )


def _from_ratings(ratings: Ratings) -> Observed:
    return Observed(
        ratings.user,
        ratings.item,
        ratings.value,
        ratings.n_users,
        ratings.n_items,
        ratings.user_ids,
        ratings.item_ids,
    )


def _from_dense(
    matrix: FloatArray,
    mask: Any,
    row_ids: tuple[Hashable, ...] | None = None,
    column_ids: tuple[Hashable, ...] | None = None,
) -> Observed:
    known = ~np.isnan(matrix) if mask is None else _dense_mask(mask, matrix.shape)
    row, column = np.nonzero(known)
    return _made(row, column, matrix[row, column], matrix.shape, row_ids, column_ids)


def _from_sparse(X: Any, mask: Any) -> Observed:
    _check_shape(X.shape)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}")
    if mask is not None:
        row, column = _sparse_mask(mask, X.shape)
        value = np.asarray(scipy.sparse.csr_array(X, dtype=np.float64)[row, column], dtype=np.float64)
        return _made(row, column, value.reshape(-1), X.shape)
    entries = scipy.sparse.coo_array(X)
    row, column = (np.asarray(index, dtype=np.int64) for index in entries.coords)
    order = np.lexsort((column, row))
    row, column = row[order], column[order]
    twice = np.flatnonzero((np.diff(row) == 0) & (np.diff(column) == 0))
    if twice.size:
        cell = int(row[twice[0]]), int(column[twice[0]])
        raise ValueError(f"X must store each cell once, got two entries for {cell}; call its sum_duplicates() first")
    return _made(row, column, entries.data[order], X.shape)


def _made(
    row: IntArray,
    column: IntArray,
    value: NDArray[Any],
    shape: tuple[int, ...],
    row_ids: tuple[Hashable, ...] | None = None,
    column_ids: tuple[Hashable, ...] | None = None,
) -> Observed:
    numbers = value.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        cell = int(row[bad[0]]), int(column[bad[0]])
        raise ValueError(f"X must hold finite numbers where it is observed, got {numbers[bad[0]]} at {cell}")
    if not len(numbers):
        raise ValueError(f"X must have at least one observed cell, got none in shape {shape}; missing is NaN, not 0")
    n_rows, n_columns = shape
    return Observed(
        row,
        column,
        numbers,
        n_rows,
        n_columns,
        tuple(range(n_rows)) if row_ids is None else row_ids,
        tuple(range(n_columns)) if column_ids is None else column_ids,
    )


def _numbers(X: Any) -> FloatArray:
    try:
        matrix = np.asarray(X)
    except ValueError:
        raise ValueError("X must be a matrix, got rows of different lengths; missing is NaN") from None
    _check_shape(matrix.shape)
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers with NaN where a cell is missing, got dtype {matrix.dtype}")
    return matrix.astype(np.float64)


def _frame_numbers(frame: pd.DataFrame) -> FloatArray:
    _check_shape(frame.shape)
    for position, (label, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
            raise ValueError(
                f"X must hold real numbers, got dtype {dtype} in column {label!r} (position {position}); a table of "
                "one rating a row becomes Ratings with ratings_from_frame"
            )
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"X must be a matrix of shape (n_rows, n_columns), neither 0, got shape {shape}")


def _is_sparse(given: Any) -> bool:
    return bool(scipy.sparse.issparse(given))


def _dense_mask(mask: Any, shape: tuple[int, ...]) -> BoolArray:
    known = np.asarray(scipy.sparse.coo_array(mask).toarray() if _is_sparse(mask) else mask)
    _check_mask(known.dtype, known.shape, shape)
    return known


def _sparse_mask(mask: Any, shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Indices of the cells that are True, ascending by (row, column)."""
    if not _is_sparse(mask):
        row, column = np.nonzero(_dense_mask(mask, shape))
        return row, column
    _check_mask(mask.dtype, mask.shape, shape)
    true = scipy.sparse.csr_array(mask).nonzero()
    row, column = (index.astype(np.int64) for index in true)
    order = np.lexsort((column, row))
    return row[order], column[order]


def _check_mask(dtype: Any, found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if dtype != np.bool_ or found != shape:
        raise ValueError(
            f"mask must be boolean of the shape of X, {shape}, got {dtype} of shape {found}; True is observed"
        )


def _grouped(group: IntArray, index: IntArray, value: FloatArray, n_groups: int) -> Rows:
    position = np.argsort(group, kind="stable")
    start = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(group, minlength=n_groups), out=start[1:])
    return Rows(start, index[position], value[position], position)


def _indices(name: str, given: Any, n: int) -> IntArray:
    indices = np.asarray(given)
    if indices.ndim != 1 or (indices.size and not np.issubdtype(indices.dtype, np.integer)):
        raise ValueError(f"{name} must be integers of shape (n,), got {indices.dtype} of shape {indices.shape}")
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        outside = indices[(indices < 0) | (indices >= n)][0]
        raise ValueError(f"{name} must be indices from 0 to {n - 1}, got {outside}; pass indices, not ids")
    return indices.astype(np.int64)
