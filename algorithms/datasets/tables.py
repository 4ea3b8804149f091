"""From rows as they were read to `Ratings`: what becomes of zeros, of values off the scale and of duplicates."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.datasets.errors import DataError
from algorithms.ratings import Ratings, Scale

__all__ = ["Ids", "Keep", "Policy", "Table", "Zero"]

Keep = Literal["error", "first", "last", "mean"]
Zero = Literal["rating", "missing"]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Policy:
    """What is allowed in a table of ratings, and what becomes of the rest.

    Parameters
    ----------
    keep : {"error", "first", "last", "mean"}, optional
        What to do where a pair of user and item stands more than once: refuse, keep one rating in
        the order of the source, or keep their mean with the last timestamp.
    zero : {"rating", "missing"}, optional
        Whether 0 is a rating like others, or says that there is none.
    scale : Scale or (low, high), optional
        The lowest and the highest rating that can be given; anything else is an error.
    step : float, optional
        Every rating is a multiple of it.

    Raises
    ------
    ValueError
        When an argument is none of these.
    """

    keep: Keep = "error"
    zero: Zero = "rating"
    scale: Scale | tuple[float, float] | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        _check_choice("keep", self.keep, ("error", "first", "last", "mean"))
        _check_choice("zero", self.zero, ("rating", "missing"))
        if self.scale is not None and not isinstance(self.scale, Scale):
            try:
                low, high = map(float, self.scale)
            except (TypeError, ValueError):
                raise ValueError(f"scale must be (low, high), got {self.scale!r}; pass for instance (1, 5)") from None
            object.__setattr__(self, "scale", Scale(low, high))


def _check_choice(name: str, given: object, choices: tuple[str, ...]) -> None:
    if given not in choices:
        listing = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listing}, got {given!r}; pass one of these")


@dataclass(frozen=True, eq=False)
class Ids:
    """One column of ids.

    Attributes
    ----------
    code : ndarray of int64, shape (n_rows,)
        Row k holds ``distinct[code[k]]``.
    distinct : sequence of hashable
        Ids, each once.
    """

    code: IntArray
    distinct: Sequence[Hashable]

    def column(self) -> IntArray | list[Hashable]:
        """Give the id of each row.

        Returns
        -------
        ndarray of int64 or list, shape (n_rows,)
            An array where all ids are integers that fit.
        """
        if all(type(each) is int and -(2**63) <= each < 2**63 for each in self.distinct):
            return np.array(self.distinct, dtype=np.int64)[self.code]
        return [self.distinct[k] for k in self.code.tolist()]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of ratings as they stand in a source, at least one.

    Attributes
    ----------
    name : str
        The source, as error messages call it.
    user, item : Ids
        Of each row.
    value : ndarray of float64, shape (n_rows,)
        The ratings.
    timestamp : ndarray of float64, shape (n_rows,), or None
        When each was given.
    place : ndarray of int64, shape (n_rows,)
        Where each row stands in the source.
    at : callable
        Says a place in words, for instance ``u.data, line 7``.
    """

    name: str
    user: Ids
    item: Ids
    value: FloatArray
    timestamp: FloatArray | None
    place: IntArray
    at: Callable[[int], str]

    def ratings(
        self,
        policy: Policy,
        *,
        user_ids: Sequence[Hashable] | None = None,
        item_ids: Sequence[Hashable] | None = None,
    ) -> Ratings:
        """Make ratings from the rows.

        Zeros that say "missing" go first, so that they are off no scale and duplicate nothing.

        Parameters
        ----------
        policy : Policy
            What is allowed.
        user_ids, item_ids : sequence of hashable, optional
            All users (items), as in `Ratings.from_arrays`.

        Returns
        -------
        Ratings
            With the scale of the policy, or the least and the greatest value.

        Raises
        ------
        DataError
            When a value is not finite, off the scale or between steps, when a pair stands twice
            against the policy, or when nothing is left.
        """
        rows = self._without_zeros() if policy.zero == "missing" else self
        rows._check_values(policy)
        rows = rows._without_duplicates(policy.keep)
        return Ratings.from_arrays(
            rows.user.column(),
            rows.item.column(),
            rows.value,
            timestamps=rows.timestamp,
            scale=policy.scale,
            user_ids=user_ids,
            item_ids=item_ids,
        )

    def _take(self, rows: NDArray[np.generic]) -> "Table":
        return replace(
            self,
            user=Ids(self.user.code[rows], self.user.distinct),
            item=Ids(self.item.code[rows], self.item.distinct),
            value=self.value[rows],
            timestamp=None if self.timestamp is None else self.timestamp[rows],
            place=self.place[rows],
        )

    def _without_zeros(self) -> "Table":
        given = self.value != 0
        if not given.any():
            raise DataError.about(
                self.name,
                found="no rating but 0",
                expected='others, as zero="missing" says that 0 is none',
                mend='pass zero="rating" if it is one',
            )
        return self if given.all() else self._take(given)

    def _check_values(self, policy: Policy) -> None:
        self._refuse_where(~np.isfinite(self.value), "a finite rating", "leave unknown ratings out")
        if self.timestamp is not None:
            bad = ~np.isfinite(self.timestamp)
            self._refuse_where(bad, "a finite timestamp", "leave the column of timestamps out", self.timestamp)
        if policy.scale is None:
            return
        scale = policy.scale if isinstance(policy.scale, Scale) else Scale(*policy.scale)
        expected = f"a rating from {scale.low:g} to {scale.high:g}"
        mend = "correct it, or pass the scale= that it belongs to"
        if policy.step is not None:
            expected += f" in steps of {policy.step:g}"
            mend = "get a fresh copy of the data, or call read_ratings if they are on another scale"
            between = self.value / policy.step % 1 != 0
        else:
            between = np.zeros(len(self.value), dtype=bool)
        self._refuse_where(between | (self.value < scale.low) | (self.value > scale.high), expected, mend)

    def _refuse_where(self, bad: NDArray[np.bool_], expected: str, mend: str, column: FloatArray | None = None) -> None:
        if bad.any():
            row = int(bad.argmax())
            found = f"rating {plain(self.value[row])}" if column is None else f"timestamp {plain(column[row])}"
            raise DataError.about(self.at(int(self.place[row])), found=found, expected=expected, mend=mend)

    def _without_duplicates(self, keep: Keep) -> "Table":
        pair = self.user.code * len(self.item.distinct) + self.item.code
        again = pd.Series(pair).duplicated().to_numpy()
        if not again.any():
            return self
        # A stable sort: within a pair, rows stay in the order of the source.
        order = np.argsort(pair, kind="stable")
        starts = np.flatnonzero(np.diff(pair[order], prepend=-1))
        last = order[np.append(starts[1:], len(pair)) - 1]
        if keep == "error":
            self._refuse_pair(int(again.argmax()), pair)
        if keep == "first":
            return self._take(np.sort(order[starts]))
        if keep == "last":
            return self._take(np.sort(last))
        return replace(self._take(last), value=_means(self.value[order], starts))

    def _refuse_pair(self, row: int, pair: IntArray) -> None:
        earlier = int((pair == pair[row]).argmax())
        user, item = (ids.distinct[ids.code[row]] for ids in (self.user, self.item))
        raise DataError.about(
            self.at(int(self.place[row])),
            found=f"user {user!r}, item {item!r} again, after {self.at(int(self.place[earlier]))}",
            expected="each pair of user and item once",
            mend='delete one of the two, or pass keep="first", "last" or "mean"',
        )


def _means(value: FloatArray, starts: IntArray) -> FloatArray:
    """Mean of each run of values that begins at one of `starts`, never outside their range."""
    count = np.diff(np.append(starts, len(value)))
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.add.reduceat(value, starts) / count
    for run in np.flatnonzero(~np.isfinite(means)):  # their sum is too large for a float, their mean is not
        part = value[starts[run] : starts[run] + count[run]]
        means[run] = math.fsum(part / len(part))
    return np.clip(means, np.minimum.reduceat(value, starts), np.maximum.reduceat(value, starts))


def plain(value: float) -> str:
    """Write a number as short as it can be told from others.

    Parameters
    ----------
    value : float
        Any.

    Returns
    -------
    str
        Whole numbers without a point.
    """
    return repr(float(value)).removesuffix(".0")
