"""Ratings from what is in memory already: a pandas table, a sparse or a dense matrix."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from algorithms.datasets.errors import DataError
from algorithms.datasets.headers import known_columns
from algorithms.datasets.tables import Ids, Keep, Policy, Table, Zero
from algorithms.ratings import Ratings, Scale

__all__ = ["ratings_from_dense", "ratings_from_frame", "ratings_from_sparse"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def ratings_from_frame(
    frame: pd.DataFrame,
    *,
    user: Hashable = None,
    item: Hashable = None,
    rating: Hashable = None,
    timestamp: Hashable = None,
    keep: Keep = "error",
    zero: Zero = "rating",
    scale: Scale | tuple[float, float] | None = None,
) -> Ratings:
    """Make ratings from a table with one rating a row.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns other than those named below are left out.
    user, item, rating, timestamp : hashable, optional
        Labels of the columns. By default the one column with a usual name (``userId``, ``item_id``,
        ``rating``, ``timestamp``, ...); without such a one there are no timestamps.
    keep : {"error", "first", "last", "mean"}, optional
        What to do where a pair of user and item stands more than once: refuse, keep one rating in
        the order of the rows, or keep their mean with the last timestamp.
    zero : {"rating", "missing"}, optional
        Whether 0 is a rating like others, or says that there is none.
    scale : Scale or (low, high), optional
        The lowest and the highest rating that can be given; any other is an error. The least and
        the greatest one in the table by default.

    Returns
    -------
    Ratings
        Ids as they stand in the table. Dates become seconds since 1970 (UTC).

    Raises
    ------
    ValueError
        When a column is missing or does not hold numbers, or an argument is not one of those listed.
    DataError
        When an id is missing, a number is not finite or off the scale, or a pair stands twice. Names
        the row by its label.
    TypeError
        When `frame` is no DataFrame, or an id is not hashable.
    """
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas DataFrame, got {type(frame).__name__}; pass pandas.DataFrame(...)")
    policy = Policy(keep=keep, zero=zero, scale=scale)
    labels = {
        role: _label(frame, role, given)
        for role, given in (("user", user), ("item", item), ("rating", rating), ("timestamp", timestamp))
    }
    if frame.empty:
        raise DataError.about("frame", found="no row", expected="at least one rating", mend="check how it was made")
    table = Table(
        name="frame",
        user=_frame_ids(frame, "user", labels["user"]),
        item=_frame_ids(frame, "item", labels["item"]),
        value=_frame_numbers(frame, "rating", labels["rating"]),
        timestamp=None if labels["timestamp"] is None else _frame_times(frame, labels["timestamp"]),
        place=np.arange(len(frame)),
        at=lambda row: _row_name(frame, row),
    )
    return table.ratings(policy)


def _row_name(frame: pd.DataFrame, row: int) -> str:
    label = frame.index[row]
    return f"frame, row {label.item() if isinstance(label, np.generic) else label!r}"


def _label(frame: pd.DataFrame, role: str, given: Hashable) -> Hashable:
    labels: list[Hashable] = list(frame.columns)
    if given is None:
        known = known_columns(labels)
        if role in known or role == "timestamp":
            return labels[known[role]] if role in known else None
    elif labels.count(given) == 1:
        return given
    wanted = "one column with a usual name" if given is None else f"one column {given!r}"
    raise ValueError(f"frame must have {wanted} for the {role}, got columns {labels}; name it with {role}=")


def _frame_ids(frame: pd.DataFrame, role: str, label: Hashable) -> Ids:
    try:
        code, distinct = pd.factorize(frame[label])
    except TypeError as error:
        raise TypeError(
            f"column {label!r} must hold hashable {role} ids, got other ({error}); pass numbers, strings or tuples"
        ) from None
    if (code < 0).any():
        raise DataError.about(
            _row_name(frame, int((code < 0).argmax())),
            found=f"no {role} id in column {label!r}",
            expected="an id for each rating",
            mend="drop the row or name its id",
        )
    return Ids(code.astype(np.int64), distinct.tolist())


def _frame_numbers(frame: pd.DataFrame, role: str, label: Hashable) -> FloatArray:
    column = frame[label]
    if not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
        raise ValueError(
            f"column {label!r} must hold numbers as the {role}, got dtype {column.dtype}; "
            f"convert it with pandas.to_numeric"
        )
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _frame_times(frame: pd.DataFrame, label: Hashable) -> FloatArray:
    column = frame[label]
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if pd.api.types.is_datetime64_dtype(column.dtype):
        return np.asarray((column - pd.Timestamp(0)) / pd.Timedelta(seconds=1), dtype=np.float64)
    return _frame_numbers(frame, "timestamp", label)


def ratings_from_sparse(
    matrix: Any,
    *,
    user_ids: Sequence[Hashable] | None = None,
    item_ids: Sequence[Hashable] | None = None,
    keep: Keep = "error",
    zero: Zero = "missing",
    scale: Scale | tuple[float, float] | None = None,
) -> Ratings:
    """Make ratings from a sparse matrix: what is not stored is missing.

    Parameters
    ----------
    matrix : scipy.sparse array or matrix, shape (n_users, n_items)
        In any format. It is not changed: entries stored twice are not added up.
    user_ids, item_ids : sequence of hashable, optional
        Ids of rows and columns; their numbers from 0 by default.
    keep : {"error", "first", "last", "mean"}, optional
        What to do where an entry is stored more than once: refuse, keep one in the order of
        storage, or keep their mean.
    zero : {"missing", "rating"}, optional
        Whether a stored 0 says nothing, as SciPy may store or drop it at any time, or is a rating.
    scale : Scale or (low, high), optional
        The lowest and the highest rating that can be given; any other is an error. The least and
        the greatest one by default.

    Returns
    -------
    Ratings
        With every row as a user and every column as an item, those without a rating included.

    Raises
    ------
    ValueError
        When the matrix is not real and two-dimensional, or ids do not fit its shape.
    DataError
        When there is no rating, one is not finite or off the scale, or an entry is stored twice.
    TypeError
        When `matrix` is not sparse.
    """
    policy = Policy(keep=keep, zero=zero, scale=scale)
    sparse: bool = scipy.sparse.issparse(matrix)  # a name of its own: the type it narrows to has no shape
    if not sparse:
        raise TypeError(
            f"matrix must be a scipy.sparse array or matrix, got {type(matrix).__name__}; "
            "pass a dense one to ratings_from_dense"
        )
    _check_matrix(matrix.shape, matrix.dtype)
    entries = matrix.tocoo()
    return _from_matrix(
        entries.row.astype(np.int64),
        entries.col.astype(np.int64),
        entries.data.astype(np.float64),
        policy=policy,
        user_ids=_side("user_ids", user_ids, matrix.shape[0]),
        item_ids=_side("item_ids", item_ids, matrix.shape[1]),
    )


def ratings_from_dense(
    matrix: ArrayLike | pd.DataFrame,
    *,
    user_ids: Sequence[Hashable] | None = None,
    item_ids: Sequence[Hashable] | None = None,
    zero: Zero = "rating",
    scale: Scale | tuple[float, float] | None = None,
) -> Ratings:
    """Make ratings from a dense matrix in which NaN is missing.

    Parameters
    ----------
    matrix : array_like or pandas.DataFrame, shape (n_users, n_items)
        Numbers. Masked entries of a masked array are missing too.
    user_ids, item_ids : sequence of hashable, optional
        Ids of rows and columns. By default the labels of a DataFrame, else numbers from 0.
    zero : {"rating", "missing"}, optional
        Whether 0 is a rating, or missing like NaN.
    scale : Scale or (low, high), optional
        The lowest and the highest rating that can be given; any other is an error. The least and
        the greatest one by default.

    Returns
    -------
    Ratings
        With every row as a user and every column as an item, those without a rating included.

    Raises
    ------
    ValueError
        When the matrix is not real and two-dimensional, or ids do not fit its shape.
    DataError
        When there is no rating, or one is infinite or off the scale.
    """
    policy = Policy(zero=zero, scale=scale)
    if isinstance(matrix, pd.DataFrame):
        user_ids = matrix.index.tolist() if user_ids is None else user_ids
        item_ids = matrix.columns.tolist() if item_ids is None else item_ids
    numbers = _dense_numbers(matrix)
    user, item = np.nonzero(~np.isnan(numbers))
    return _from_matrix(
        user,
        item,
        numbers[user, item],
        policy=policy,
        user_ids=_side("user_ids", user_ids, numbers.shape[0]),
        item_ids=_side("item_ids", item_ids, numbers.shape[1]),
    )


def _dense_numbers(matrix: Any) -> FloatArray:
    if isinstance(matrix, pd.DataFrame):
        numeric = all(pd.api.types.is_numeric_dtype(dtype) for dtype in matrix.dtypes)
        given: Any = matrix.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else matrix.to_numpy(dtype=object)
    else:
        try:
            given = np.ma.asarray(matrix) if isinstance(matrix, np.ma.MaskedArray) else np.asarray(matrix)
        except ValueError as error:
            raise ValueError(f"matrix must be rectangular, got {error}; pass rows of one length") from None
    _check_matrix(given.shape, given.dtype)
    numbers: FloatArray = np.ma.filled(given.astype(np.float64), np.nan)
    return numbers


def _check_matrix(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2:
        raise ValueError(f"matrix must have shape (n_users, n_items), got shape {shape}; pass one row a user")
    if dtype.kind not in "biuf":
        raise ValueError(f"matrix must hold real numbers, got dtype {dtype}; convert it with astype(float)")


def _side(name: str, given: Sequence[Hashable] | None, n: int) -> list[Hashable]:
    entries: Iterable[Any] = range(n) if given is None else given
    ids: list[Hashable] = [each.item() if isinstance(each, np.generic) else each for each in entries]
    if len(ids) != n:
        side = "row" if name == "user_ids" else "column"
        raise ValueError(f"{name} must hold {n} ids, one a {side}, got {len(ids)}; pass one id for each {side}")
    return ids


def _from_matrix(
    user: IntArray,
    item: IntArray,
    value: FloatArray,
    *,
    policy: Policy,
    user_ids: list[Hashable],
    item_ids: list[Hashable],
) -> Ratings:
    if len(value) == 0:
        raise DataError.about("matrix", found="no rating", expected="at least one", mend="check how it was made")
    table = Table(
        name="matrix",
        user=Ids(user, user_ids),
        item=Ids(item, item_ids),
        value=value,
        timestamp=None,
        place=np.arange(len(value)),
        at=lambda k: f"matrix, entry ({user[k]}, {item[k]})",
    )
    return table.ratings(policy, user_ids=user_ids, item_ids=item_ids)
