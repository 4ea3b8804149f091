"""The rating scale of each column: its categories, its centre, what an error on it costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.losses import Loss, LossName, default_constant
from algorithms.solvers.observed import Observed

__all__ = ["Centring", "Scales", "column_medians", "make_scales"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Centring = Literal["median", "midpoint"]
SAME = 1e-9  # a rating is a category when they differ by less than this share of the larger of 1 and its size


@dataclass(frozen=True, eq=False, repr=False)
class Scales:
    """The rating scales of all columns. Made by `make_scales`.

    Attributes
    ----------
    categories : ndarray of float64, shape (n_columns, n_most)
        Categories of each column, ascending; rows of fewer than `n_most` end in copies of their last.
    counts : ndarray of int64, shape (n_columns,)
        Categories of each column.
    centres : ndarray of float64, shape (n_columns,)
        What is taken off each column.
    loss_constants : ndarray of float64, shape (n_columns,)
        The constant tau of each column's loss.
    loss : {"pseudo_huber", "absolute", "truncated"}
    code : ndarray of int16, shape (n_observed,)
        Which of its column's categories each observed rating is.
    empty : ndarray of bool, shape (n_columns,)
        Columns without an observed cell.
    """

    categories: FloatArray
    counts: IntArray
    centres: FloatArray
    loss_constants: FloatArray
    loss: LossName
    code: NDArray[np.int16]
    empty: NDArray[np.bool_]

    @cached_property
    def centred(self) -> FloatArray:
        """Categories less the centre of their column, float64, shape (n_columns, n_most)."""
        return self.categories - self.centres[:, None]

    @cached_property
    def steps(self) -> FloatArray:
        """Smallest step between categories of each column; 1 where there is one category. Shape (n_columns,)."""
        gaps = np.diff(self.categories, axis=1)
        return np.where(self.counts > 1, np.min(gaps, axis=1, initial=np.inf, where=gaps > 0), 1.0)

    @cached_property
    def penalty(self) -> FloatArray:
        """What category b costs where a was observed: [j, a, b], float64, shape (n_columns, n_most, n_most)."""
        errors = self.categories[:, None, :] - self.categories[:, :, None]
        return Loss(self.loss, self.loss_constants[:, None, None])(errors)

    @cached_property
    def nearest_to_centre(self) -> NDArray[np.int16]:
        """Category nearest to the centre of each column, the lower one of two. Shape (n_columns,)."""
        return np.asarray(np.abs(self.centred).argmin(axis=1), dtype=np.int16)


def make_scales(
    observed: Observed,
    *,
    categories: ArrayLike | Sequence[ArrayLike] | None,
    loss: LossName,
    loss_constant: float | None,
    centring: Centring,
    empty_columns: Literal["predict", "error"],
) -> Scales:
    """Find the scale of each column.

    Parameters
    ----------
    observed : Observed
        The observed ratings.
    categories, loss, loss_constant, centring, empty_columns
        As `algorithms.solvers.RDMC` takes them.

    Raises
    ------
    ValueError
        If an argument is out of range, a rating is none of its column's categories, or a column is empty where that
        is refused.
    """
    Loss(loss, 1.0 if loss_constant is None else loss_constant)  # checks both
    if loss_constant is not None and np.ndim(loss_constant) != 0:
        raise ValueError(f"loss_constant must be one number, got {loss_constant!r}")
    if centring not in ("median", "midpoint"):
        raise ValueError(f"centring must be 'median' or 'midpoint', got {centring!r}")
    if empty_columns not in ("predict", "error"):
        raise ValueError(f"empty_columns must be 'predict' or 'error', got {empty_columns!r}")
    empty = np.bincount(observed.column, minlength=observed.n_columns) == 0
    if empty_columns == "error" and empty.any():
        name = observed.column_ids[int(empty.argmax())]
        raise ValueError(
            f"X must have an observed cell in each column, got none in column {name!r} (of {int(empty.sum())} such); "
            "leave it out or pass empty_columns='predict'"
        )
    each = _column_categories(observed, categories)
    table, counts = _table(each)
    return Scales(
        categories=table,
        counts=counts,
        centres=_centres(observed, table, counts, centring, empty),
        loss_constants=np.array(
            [default_constant(loss, own) if loss_constant is None else loss_constant for own in each]
        ),
        loss=loss,
        code=_codes(observed, table, counts),
        empty=empty,
    )


def column_medians(observed: Observed) -> FloatArray:
    """Median of the observed values of each column, float64, shape (n_columns,); NaN where there is none.

    Parameters
    ----------
    observed : Observed
    """
    order = np.lexsort((observed.value, observed.column))
    counts = np.bincount(observed.column, minlength=observed.n_columns)
    first = np.cumsum(counts) - counts
    sorted_values = np.append(observed.value[order], np.nan)
    lower, upper = first + (counts - 1) // 2, first + counts // 2
    medians = (sorted_values[lower] + sorted_values[upper]) / 2
    return np.where(counts > 0, medians, np.nan)


def _column_categories(observed: Observed, given: Any) -> list[FloatArray]:
    """Categories of each column, ascending."""
    if given is None:
        return [np.unique(observed.value)] * observed.n_columns
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "biuf":
        return [_scale(given, "categories")] * observed.n_columns
    entries = list(given)
    if all(np.ndim(entry) == 0 for entry in entries):
        return [_scale(entries, "categories")] * observed.n_columns
    if len(entries) != observed.n_columns:
        raise ValueError(
            f"categories must be one list of numbers, or one list for each of {observed.n_columns} columns, "
            f"got {len(entries)} entries"
        )
    return [_scale(entry, f"categories[{j}]") for j, entry in enumerate(entries)]


def _scale(given: Any, name: str) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {given!r}") from None
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of finite numbers, at least one, got {given!r}")
    distinct = np.unique(values)
    if len(distinct) != len(values):
        raise ValueError(f"{name} must hold each category once, got {given!r}")
    if len(distinct) > np.iinfo(np.int16).max:
        raise ValueError(f"{name} must hold at most {np.iinfo(np.int16).max} categories, got {len(distinct)}")
    return distinct


def _table(each: list[FloatArray]) -> tuple[FloatArray, IntArray]:
    counts = np.array([len(own) for own in each], dtype=np.int64)
    table = np.empty((len(each), counts.max()))
    for row, own in zip(table, each, strict=True):
        row[: len(own)] = own
        row[len(own) :] = own[-1]
    return table, counts


def _centres(
    observed: Observed, table: FloatArray, counts: IntArray, centring: Centring, empty: NDArray[np.bool_]
) -> FloatArray:
    if centring == "midpoint":
        return (table[:, 0] + table[np.arange(len(table)), counts - 1]) / 2
    return np.where(empty, np.median(observed.value), column_medians(observed))


def _codes(observed: Observed, table: FloatArray, counts: IntArray) -> NDArray[np.int16]:
    code = np.empty(len(observed), dtype=np.int16)
    for j, cells in enumerate(np.split(observed.by_column.position, observed.by_column.start[1:-1])):
        own, values = table[j, : counts[j]], observed.value[cells]
        place = np.clip(np.searchsorted(own, values), 1, max(len(own) - 1, 1))
        lower = np.abs(values - own[place - 1])
        upper = np.abs(values - own[np.minimum(place, len(own) - 1)])
        nearest = np.where(lower <= upper, place - 1, place)
        off = np.flatnonzero(np.minimum(lower, upper) > SAME * np.maximum(1.0, np.abs(values)))
        if off.size:
            cell = cells[off[0]]
            row = observed.row_ids[observed.row[cell]]
            raise ValueError(
                f"X must hold categories, got {observed.value[cell]:g} in row {row!r}, "
                f"column {observed.column_ids[j]!r}, where they are {', '.join(f'{each:g}' for each in own)}; "
                "correct the rating or pass categories= with it"
            )
        code[cells] = nearest
    return code
