"""Ratings of items by users: the immutable container that every other part reads."""

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

__all__ = ["Ratings", "Rows", "Scale"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """The lowest and the highest rating that can be given.

    Parameters
    ----------
    low, high : float
        Both belong to the scale.

    Raises
    ------
    ValueError
        When a bound is not finite, or `low` is above `high`.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = float(self.low) + 0.0, float(self.high) + 0.0  # + 0.0 turns -0.0 into 0.0
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise ValueError(
                "scale must be two finite numbers with low <= high, "
                f"got low={self.low!r}, high={self.high!r}; pass for instance (1, 5)"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Ratings grouped by one side: row i holds all ratings of user i, or of item i.

    The layout is that of a CSR matrix. Every array is read-only.

    Attributes
    ----------
    start : ndarray of int64, shape (n_rows + 1,)
        Row i stands at ``start[i]:start[i + 1]`` of the other arrays.
    index : ndarray of int64, shape (n_ratings,)
        Index on the other side (the item in a user's row), ascending within a row.
    value : ndarray of float64, shape (n_ratings,)
        The ratings.
    position : ndarray of int64, shape (n_ratings,)
        Where each rating stands in the arrays of its `Ratings`.
    """

    start: IntArray
    index: IntArray
    value: FloatArray
    position: IntArray

    def __post_init__(self) -> None:
        for name in ("start", "index", "value", "position"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {len(self.index)} ratings)"

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.start, self.index, self.value, self.position)

    def row(self, i: int) -> tuple[IntArray, FloatArray]:
        """Give the ratings of one row.

        Parameters
        ----------
        i : int
            The user's or the item's index, from 0.

        Returns
        -------
        index : ndarray of int64, shape (n,)
            Indices on the other side, ascending.
        value : ndarray of float64, shape (n,)
            Their ratings.

        Raises
        ------
        IndexError
            When there is no row `i`.
        """
        if not 0 <= i < len(self):
            raise IndexError(f"i must be from 0 to {len(self) - 1}, got {i}; pass an index, not an id")
        part = slice(self.start[i], self.start[i + 1])
        return self.index[part], self.value[part]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ratings:
    """Known ratings of items by users. Immutable; made by `from_arrays`.

    Whatever the order of the input, the ratings stand in one canonical order: ascending by
    (user index, item index). Two objects made from the same ratings are equal and have the same
    `digest`. No array can be written to, and none is shared with the caller.

    Attributes
    ----------
    user, item : ndarray of int64, shape (n_ratings,)
        Indices of user and item, from 0.
    value : ndarray of float64, shape (n_ratings,)
        The ratings.
    timestamp : ndarray of float64, shape (n_ratings,), or None
        When each rating was given, in the unit of the source (MovieLens: seconds since 1970).
    user_ids, item_ids : tuple
        Original ids in index order: ``user_ids[user[k]]`` gave rating k.
    scale : Scale
        The lowest and the highest rating that can be given.
    folds : ndarray of int64, shape (n_ratings,), or None
        Number, from 1, of the official fold in which the rating is a test rating.
    """

    user: IntArray
    item: IntArray
    value: FloatArray
    timestamp: FloatArray | None
    user_ids: tuple[Hashable, ...]
    item_ids: tuple[Hashable, ...]
    scale: Scale
    folds: IntArray | None

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("Ratings cannot be called; use Ratings.from_arrays(users, items, values)")

    @classmethod
    def from_arrays(
        cls,
        users: Iterable[Hashable],
        items: Iterable[Hashable],
        values: ArrayLike,
        *,
        timestamps: ArrayLike | None = None,
        scale: Scale | tuple[float, float] | None = None,
        user_ids: Iterable[Hashable] | None = None,
        item_ids: Iterable[Hashable] | None = None,
        folds: ArrayLike | None = None,
    ) -> "Ratings":
        """Make ratings from one array a column, with original ids.

        Parameters
        ----------
        users, items : sequence of hashable, shape (n_ratings,)
            Original ids. They are numbered in sorted order where they can all be sorted together,
            else in order of first appearance.
        values : array_like of float, shape (n_ratings,)
            The ratings, finite.
        timestamps : array_like of float, shape (n_ratings,), optional
            When each rating was given.
        scale : Scale or (low, high), optional
            Lowest and highest rating that can be given; the least and the greatest value by default.
        user_ids, item_ids : sequence of hashable, optional
            All users (items), those without a rating included. Their order is kept.
        folds : array_like of int, shape (n_ratings,), optional
            Number, from 1, of the official fold in which each rating is a test rating.

        Returns
        -------
        Ratings
            In canonical order, sorted by (user index, item index).

        Raises
        ------
        ValueError
            When there is no rating, when lengths differ, when a number is not finite or outside
            `scale`, when an id is missing or not declared, or when a (user, item) pair stands twice.
        TypeError
            When an id is not hashable.
        """
        givers, objects = _id_column(users), _id_column(items)
        if len(givers) == 0:
            raise ValueError("users must hold at least one rating, got none; check what was read or selected")
        columns: dict[str, ArrayLike | None] = {"values": values, "timestamps": timestamps, "folds": folds}
        numbers = {name: _numbers(name, column) for name, column in columns.items() if column is not None}
        _check_lengths(users=givers, items=objects, **numbers)
        bounds = _scale(scale, numbers["values"])
        user, all_users = _indexed("users", givers, user_ids)
        item, all_items = _indexed("items", objects, item_ids)
        order = np.lexsort((item, user))
        _check_pairs(user, item, order, all_users, all_items)
        return cls._made(
            user=user[order],
            item=item[order],
            value=numbers["values"][order],
            timestamp=numbers["timestamps"][order] if "timestamps" in numbers else None,
            user_ids=all_users,
            item_ids=all_items,
            scale=bounds,
            folds=_fold_numbers(numbers["folds"])[order] if "folds" in numbers else None,
        )

    @classmethod
    def _made(cls, **fields: Any) -> "Ratings":
        ratings = object.__new__(cls)
        for name, content in fields.items():
            frozen = _frozen(content) if isinstance(content, np.ndarray) else content
            object.__setattr__(ratings, name, frozen)
        return ratings

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._fields(),)

    @property
    def n_users(self) -> int:
        """Number of users, those without a rating included."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items, those without a rating included."""
        return len(self.item_ids)

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return len(self.value)

    @property
    def mean(self) -> float:
        """Mean of all ratings."""
        return float(self.value.mean())

    @cached_property
    def by_user(self) -> Rows:
        """Ratings grouped by user: row i holds the items of user i."""
        return _rows(self.user, self.item, self.value, n_rows=self.n_users)

    @cached_property
    def by_item(self) -> Rows:
        """Ratings grouped by item: row j holds the users of item j."""
        return _rows(self.item, self.user, self.value, n_rows=self.n_items)

    def select(self, mask: ArrayLike) -> "Ratings":
        """Keep some of the ratings; ids, scale and so all indices stay.

        Parameters
        ----------
        mask : array_like of bool, shape (n_ratings,)
            True where a rating stays.

        Returns
        -------
        Ratings
            The ratings chosen, with their timestamps and folds.

        Raises
        ------
        ValueError
            When `mask` is not boolean, has another shape, or keeps nothing.
        """
        kept = np.asarray(mask)
        if kept.dtype != np.bool_ or kept.shape != (self.n_ratings,):
            raise ValueError(
                f"mask must be boolean of shape ({self.n_ratings},), got {kept.dtype} of shape {kept.shape}; "
                "compare an array of these ratings, as in ratings.value > 3"
            )
        if not kept.any():
            raise ValueError("mask must keep at least one rating, got all False; check its condition")
        return self._selected(kept)

    def _selected(self, kept: np.ndarray) -> "Ratings":
        return self._made(**{name: _chosen(content, kept) for name, content in self._fields().items()})

    def none(self) -> "Ratings":
        """Give the same users, items and scale without a rating, as a network has them before the first one comes."""
        return self._selected(np.zeros(self.n_ratings, dtype=bool))

    def with_values(self, values: ArrayLike) -> "Ratings":
        """Give the same pairs other values.

        Parameters
        ----------
        values : array_like of float, shape (n_ratings,)
            Within the scale, in the order of these ratings.

        Returns
        -------
        Ratings

        Raises
        ------
        ValueError
            When the shape differs, or a value is not finite or outside the scale.
        """
        new = np.asarray(values, dtype=np.float64)
        if new.shape != self.value.shape:
            raise ValueError(f"values must have shape {self.value.shape}, got {new.shape}; give one for each rating")
        if not ((new >= self.scale.low) & (new <= self.scale.high)).all():
            raise ValueError(
                f"values must be within the scale {self.scale.low:g} to {self.scale.high:g}, got one outside; "
                "correct it or make the ratings with another scale"
            )
        return self._made(**self._fields() | {"value": new})

    def split(self, fold: int) -> "tuple[Ratings, Ratings]":
        """Split by an official fold.

        Parameters
        ----------
        fold : int
            Number of the fold, from 1.

        Returns
        -------
        train, test : Ratings
            All ratings outside the fold, and those in it. Both keep every id, so indices line up.

        Raises
        ------
        ValueError
            When there are no folds, no such fold, or no rating outside it.
        """
        if self.folds is None:
            raise ValueError(
                f"split(fold={fold!r}) needs official folds, got ratings without; "
                "pass folds= to Ratings.from_arrays, or split with a function of algorithms.splits"
            )
        known = np.unique(self.folds).tolist()
        if fold not in known:
            listing = ", ".join(map(str, known))
            raise ValueError(f"fold must be one of {listing}, got {fold!r}; pass one of these")
        if len(known) == 1:
            raise ValueError(f"fold {fold} holds every rating, expected two folds or more; give other folds=")
        return self.select(self.folds != fold), self.select(self.folds == fold)

    def to_frame(self) -> pd.DataFrame:
        """Give a tidy table, one rating a row.

        Returns
        -------
        pandas.DataFrame
            Columns ``user`` and ``item`` (original ids), ``rating``, and ``timestamp`` where known.
        """
        columns: dict[str, Any] = {
            "user": pd.Series(list(self.user_ids)).iloc[self.user].array,
            "item": pd.Series(list(self.item_ids)).iloc[self.item].array,
            "rating": self.value.copy(),
        }
        if self.timestamp is not None:
            columns["timestamp"] = self.timestamp.copy()
        return pd.DataFrame(columns)

    @cached_property
    def _numbers_digest(self) -> bytes:
        layout = (self.n_users, self.n_items, self.n_ratings, self.scale.low, self.scale.high)
        digest = hashlib.sha256(f"Ratings 1 {layout}".encode())
        for name in ("user", "item", "value", "timestamp", "folds"):
            column = getattr(self, name)
            digest.update(name.encode() if column is not None else b"-")
            if column is not None:
                digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
        return digest.digest()

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of the whole content, for provenance.

        Original ids enter it by type and ``repr``: it is the same in every process when those are
        (numbers, strings, tuples of them), and it tells the id 1 from "1".
        """
        ids = [[(type(each).__qualname__, repr(each)) for each in side] for side in (self.user_ids, self.item_ids)]
        return hashlib.sha256(self._numbers_digest + repr(ids).encode()).hexdigest()

    def __len__(self) -> int:
        return self.n_ratings

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ratings):
            return NotImplemented
        # Ids are compared, not their digest: 1 == 1.0, and an id's repr may hold its address.
        return (
            self._numbers_digest == other._numbers_digest
            and self.user_ids == other.user_ids
            and self.item_ids == other.item_ids
        )

    def __hash__(self) -> int:
        return int.from_bytes(self._numbers_digest[:8], "little")

    def __repr__(self) -> str:
        size = f"{self.n_users} users, {self.n_items} items, {self.n_ratings} ratings"
        return f"Ratings({size}, scale {self.scale.low:g}..{self.scale.high:g})"


def _restored(fields: dict[str, Any]) -> Ratings:
    return Ratings._made(**fields)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Copy into memory that numpy itself refuses to make writeable again."""
    memory: Any = array.base
    if isinstance(memory, bytes):
        return array
    return np.frombuffer(array.tobytes(), dtype=array.dtype)


def _chosen(content: Any, kept: NDArray[np.bool_]) -> Any:
    return content[kept] if isinstance(content, np.ndarray) else content


def _rows(rows: IntArray, index: IntArray, value: FloatArray, *, n_rows: int) -> Rows:
    # A stable sort keeps the canonical order within a row, so that the other index ascends.
    position = np.argsort(rows, kind="stable")
    start = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=start[1:])
    return Rows(start, index[position], value[position], position)


def _id_column(given: Any) -> NDArray[np.integer] | list[Hashable]:
    """Integer arrays stay arrays (fast); all else becomes a list of Python objects."""
    if isinstance(given, pd.Series | pd.Index):
        given = given.to_numpy()
    if isinstance(given, np.ndarray):
        if given.ndim == 1 and given.dtype.kind in "iu":
            return given
        given = given.tolist()
    return [each.item() if isinstance(each, np.generic) else each for each in given]


def _numbers(name: str, given: ArrayLike) -> FloatArray:
    """Read a column as float64, -0.0 as 0.0, and refuse what is not a finite number."""
    column = np.asarray(given)
    if column.ndim != 1:
        raise ValueError(f"{name} must have shape (n_ratings,), got shape {column.shape}; pass a flat array")
    if column.dtype.kind not in "biuf":
        # Not from `column`: there numpy has already turned [1, "x"] into two strings.
        entries: list[Any] = column.tolist() if isinstance(given, np.ndarray) else list(given)  # type: ignore[arg-type]
        column = np.array([_number(name, each, position) for position, each in enumerate(entries)])
    numbers = column.astype(np.float64) + 0.0
    _refuse_where(
        ~np.isfinite(numbers), numbers, name=name, expected="finite numbers", mend="leave unknown ratings out"
    )
    return numbers


def _number(name: str, given: Any, position: int) -> float:
    try:
        if isinstance(given, str | bytes):  # float("3") is 3.0, but then the column was not read as numbers
            raise TypeError
        return float(given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers, got {given!r} at position {position}; convert the column to float"
        ) from None


def _refuse_where(
    bad: NDArray[np.bool_], column: NDArray[Any] | list[Hashable], *, name: str, expected: str, mend: str
) -> None:
    """Raise for the first entry that is bad, if any is."""
    if bad.any():
        position = int(bad.argmax())
        found = column.tolist()[position] if isinstance(column, np.ndarray) else column[position]
        raise ValueError(f"{name} must hold {expected}, got {found!r} at position {position}; {mend}")


def _check_lengths(**columns: NDArray[Any] | list[Hashable]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(f"all columns must have one length, got {found}; pass one entry a rating in each")


def _scale(given: Scale | tuple[float, float] | None, values: FloatArray) -> Scale:
    if given is None:
        return Scale(float(values.min()), float(values.max()))
    try:
        scale = given if isinstance(given, Scale) else Scale(*given)
    except TypeError:
        raise ValueError(f"scale must be (low, high), got {given!r}; pass for instance (1, 5)") from None
    _refuse_where(
        (values < scale.low) | (values > scale.high),
        values,
        name="values",
        expected=f"ratings from {scale.low:g} to {scale.high:g}",
        mend="correct the value or pass the scale= it belongs to",
    )
    return scale


def _fold_numbers(numbers: FloatArray) -> IntArray:
    bad = (numbers < 1) | (numbers != np.floor(numbers))
    _refuse_where(bad, numbers, name="folds", expected="whole numbers from 1", mend="number the folds 1, 2, ...")
    return numbers.astype(np.int64)


def _indexed(
    name: str, given: NDArray[np.integer] | list[Hashable], declared: Iterable[Hashable] | None
) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Give the index of each entry of a column, and all ids in index order."""
    code, seen = _coded(name, given)
    side = f"{name[:-1]}_ids"
    ids = _in_order(seen) if declared is None else _declared(side, declared)
    number = {each: index for index, each in enumerate(ids)}
    index = np.array([number.get(each, -1) for each in seen], dtype=np.int64)[code]
    _refuse_where(
        index < 0,
        given,
        name=name,
        expected=f"ids that stand in {side}",
        mend=f"add it to {side} or leave its ratings out",
    )
    return index, ids


def _coded(name: str, given: NDArray[np.integer] | list[Hashable]) -> tuple[IntArray, list[Hashable]]:
    """Give each entry the number of its id in the list of distinct ids, and that list."""
    if isinstance(given, np.ndarray):
        distinct, inverse = np.unique(given, return_inverse=True)
        return inverse.astype(np.int64), distinct.tolist()
    number: dict[Hashable, int] = {}
    code = np.empty(len(given), dtype=np.int64)
    for position, each in enumerate(given):
        try:
            code[position] = number.setdefault(each, len(number))
        except TypeError:
            raise TypeError(
                f"{name} must hold hashable ids, got {each!r} at position {position}; pass numbers, strings or tuples"
            ) from None
    missing = np.array([_is_missing(each) for each in number], dtype=bool)[code]
    _refuse_where(missing, given, name=name, expected="an id for each rating", mend="drop the rating or name its id")
    return code, list(number)


def _declared(name: str, declared: Iterable[Hashable]) -> tuple[Hashable, ...]:
    given = _id_column(declared)
    code, distinct = _coded(name, given)
    again = np.ones(len(code), dtype=bool)
    again[np.unique(code, return_index=True)[1]] = False
    _refuse_where(again, given, name=name, expected="each id once", mend="drop the repetition")
    # Integer arrays come back sorted from _coded; `code` restores the order given.
    return tuple(distinct[k] for k in code.tolist())


def _is_missing(each: Hashable) -> bool:
    return each is None or each is pd.NA or bool(each != each)  # NaN is not equal to itself


def _in_order(ids: list[Hashable]) -> tuple[Hashable, ...]:
    """Sort where the ids have a total order (sets, for one, have only a partial one)."""
    try:
        ordered: list[Any] = sorted(ids)
        return tuple(ordered) if all(a < b for a, b in pairwise(ordered)) else tuple(ids)
    except TypeError:
        return tuple(ids)


def _check_pairs(
    user: IntArray,
    item: IntArray,
    order: IntArray,
    user_ids: tuple[Hashable, ...],
    item_ids: tuple[Hashable, ...],
) -> None:
    first, second = order[:-1], order[1:]
    twice = (user[first] == user[second]) & (item[first] == item[second])
    if twice.any():
        k = np.flatnonzero(twice)[second[twice].argmin()]
        pair = f"user {user_ids[user[first[k]]]!r}, item {item_ids[item[first[k]]]!r}"
        raise ValueError(
            f"users and items must hold each pair once, got {pair} at positions {first[k]} and {second[k]}; "
            "keep one of the two, or merge them"
        )
