"""Predictions that any other solver must beat: medians, modes and means."""

from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.solvers.base import Solver
from algorithms.solvers.observed import Observed, as_observed
from algorithms.solvers.rounding import rating_scales
from algorithms.solvers.scales import Scales, column_medians

__all__ = ["Baseline", "Rule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Rule = Literal["median", "discretized_median", "mode", "global_mean", "user_mean", "item_mean", "biased_mean"]
NEEDS_SCALE = ("discretized_median", "mode")
SAME = 1e-9  # a median is a category when they differ by less than this many smallest steps of the scale


class Baseline(Solver):
    """Completes a matrix by one simple rule.

    - ``median``: the median of the item's ratings.
    - ``discretized_median``: that, or where it lies between two categories, one of the two, drawn for each cell.
    - ``mode``: the item's most frequent rating; where several are, one of them, drawn for each cell.
    - ``global_mean``, ``user_mean``, ``item_mean``: the mean of all ratings, of the user's, of the item's.
    - ``biased_mean``: mu + b_user + b_item, with mu the mean of all, b_item the mean of what the item's ratings exceed
      mu by, and b_user the mean of what the user's exceed mu + b_item by. Both are sums divided by the number of
      ratings plus `damping` (Koren, "Factor in the neighbors", ACM TKDD 4, 2010). It is clipped to the scale.

    **Special cases.** Without a rating of the item, ``median`` and ``discretized_median`` go by the median of all
    ratings, ``mode`` by the most frequent of all, ``item_mean`` by the mean of all; so does ``user_mean`` without a
    rating of the user; an unknown side adds no bias. A draw belongs to its cell and the seed, so `predict` and
    `complete` agree.

    Parameters
    ----------
    rule : {"median", "discretized_median", "mode", "global_mean", "user_mean", "item_mean", "biased_mean"}
    categories : array_like, or one array_like a column, optional
        The ratings that can be given, for the rules that need them and for clipping. Default: those that occur.
    damping : float
        Of ``biased_mean``, >= 0.
    seed : int or anything `numpy.random.SeedSequence` takes
        Of the draws.

    Attributes
    ----------
    mean_ : float
        Mean of all ratings.
    user_bias_ : float64, shape (n_rows,)
    item_bias_ : float64, shape (n_columns,)
        By "biased_mean", "user_mean" and "item_mean": what is added to `mean_`; else 0.
    options_ : float64, shape (n_columns, n_most)
        By "median", "discretized_median" and "mode": what a cell of the column may be predicted, NaN past the last.
    """

    mean_: float
    user_bias_: FloatArray
    item_bias_: FloatArray
    options_: FloatArray

    def __init__(self, rule: Rule = "median", *, categories: Any = None, damping: float = 0.0, seed: Any = 0) -> None:
        self.rule = rule
        self.categories = categories
        self.damping = damping
        self.seed = seed

    def fit(self, X: Any, *, mask: Any = None) -> Self:
        """Find medians, modes or means; returns the solver.

        Parameters
        ----------
        X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
            The observed ratings, by the rules of `algorithms.solvers.as_observed`.
        mask : array_like or sparse of bool, optional
            True where a cell is observed.

        Raises
        ------
        ValueError
            If an argument is out of range, or a rating is none of its column's categories.
        """
        if self.rule not in get_args(Rule):
            raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}, got {self.rule!r}")
        if not (isinstance(self.damping, int | float | np.number) and 0 <= self.damping < np.inf):
            raise ValueError(f"damping must be finite and >= 0, got {self.damping!r}")
        observed = as_observed(X, mask=mask)
        scaled = self.rule in NEEDS_SCALE or self.categories is not None
        self._observed = observed
        self._scales = rating_scales(observed, self.categories) if scaled else None
        self.mean_ = float(observed.value.mean())
        self.user_bias_, self.item_bias_ = self._biases(observed)
        self.options_ = self._options(observed)
        return self

    def complete(self) -> FloatArray:
        """The completed matrix, float64, shape (n_rows, n_columns); observed cells hold what was observed."""
        self._check_fitted()
        row, column = np.divmod(np.arange(np.prod(self._observed.shape)), self._observed.n_columns)
        filled = self._predicted(row, column).reshape(self._observed.shape)
        filled[self._observed.row, self._observed.column] = self._observed.value
        return filled

    def predict(self, users: ArrayLike, items: ArrayLike) -> FloatArray:
        """Cells of the completed matrix, float64, shape (n,).

        Parameters
        ----------
        users, items : int, shape (n,)
            Row and column of each cell.

        Raises
        ------
        ValueError
            If the solver is not fitted, or an index is out of range.
        """
        self._check_fitted()
        row, column = self._observed.pairs(users, items)
        known = self._observed.values_at(row, column)
        return np.where(np.isnan(known), self._predicted(row, column), known)

    def _check_fitted(self) -> None:
        if not hasattr(self, "options_"):
            raise ValueError("the baseline has nothing to predict yet; call fit(X) first")

    def _predicted(self, row: IntArray, column: IntArray) -> FloatArray:
        if self.rule in ("median", "discretized_median", "mode"):
            return self.options_[column, self._drawn(row, column)]
        predicted = self.mean_ + self.user_bias_[row] + self.item_bias_[column]
        if self.rule != "biased_mean":
            return predicted
        low, high = self._bounds()
        return np.clip(predicted, low[column], high[column])

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest rating of each column."""
        if self._scales is not None:
            return self._scales.categories[:, 0], self._scales.categories[:, -1]
        n, value = self._observed.n_columns, self._observed.value
        return np.full(n, value.min()), np.full(n, value.max())

    def _drawn(self, row: IntArray, column: IntArray) -> IntArray:
        """Which option each cell gets."""
        counts = (~np.isnan(self.options_)).sum(axis=1)
        chosen = np.zeros(len(row), dtype=np.int64)
        for j in np.unique(column[counts[column] > 1]).tolist():
            generator = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(j,)))
            uniform = generator.random(self._observed.n_rows)
            here = column == j
            chosen[here] = (uniform[row[here]] * counts[j]).astype(np.int64)
        return chosen

    def _biases(self, observed: Observed) -> tuple[FloatArray, FloatArray]:
        by_user, by_item = np.zeros(observed.n_rows), np.zeros(observed.n_columns)
        if self.rule == "user_mean":
            by_user = _damped_means(observed.row, observed.value - self.mean_, observed.n_rows, 0.0)
        elif self.rule == "item_mean":
            by_item = _damped_means(observed.column, observed.value - self.mean_, observed.n_columns, 0.0)
        elif self.rule == "biased_mean":
            by_item = _damped_means(observed.column, observed.value - self.mean_, observed.n_columns, self.damping)
            rest = observed.value - self.mean_ - by_item[observed.column]
            by_user = _damped_means(observed.row, rest, observed.n_rows, self.damping)
        return by_user, by_item

    def _options(self, observed: Observed) -> FloatArray:
        if self.rule == "mode":
            assert self._scales is not None
            return _modes(observed, self._scales)
        if self.rule not in ("median", "discretized_median"):
            return np.empty((observed.n_columns, 0))
        medians = column_medians(observed)
        medians = np.where(np.isnan(medians), np.median(observed.value), medians)
        if self.rule == "median":
            return medians[:, None]
        assert self._scales is not None
        return _neighbours(medians, self._scales)


def _damped_means(group: IntArray, value: FloatArray, n: int, damping: float) -> FloatArray:
    """Sum of each group over its number of values plus `damping`; 0 where it has none."""
    counts = np.bincount(group, minlength=n)
    return np.bincount(group, weights=value, minlength=n) / np.where(counts > 0, counts + damping, 1.0)


def _modes(observed: Observed, scales: Scales) -> FloatArray:
    """Most frequent categories of each column, NaN past the last."""
    n, most = scales.categories.shape
    times = np.bincount(observed.column * most + scales.code, minlength=n * most).reshape(n, most)
    values, of_all = np.unique(observed.value, return_counts=True)
    frequent = values[of_all == of_all.max()]
    options = [
        scales.categories[j][times[j] == times[j].max()] if times[j].any() else _of_scale(frequent, scales, j)
        for j in range(n)
    ]
    return _table(options)


def _of_scale(values: FloatArray, scales: Scales, j: int) -> FloatArray:
    """Categories of a column nearest to values, each once."""
    own = scales.categories[j, : scales.counts[j]]
    return np.unique(own[np.abs(own[:, None] - values).argmin(axis=0)])


def _neighbours(medians: FloatArray, scales: Scales) -> FloatArray:
    """The category that each median is, or the two it lies between."""
    options = []
    for j, median in enumerate(medians.tolist()):
        own, tolerance = scales.categories[j, : scales.counts[j]], SAME * scales.steps[j]
        below, above = own[own <= median + tolerance], own[own >= median - tolerance]
        options.append(np.unique(np.concatenate([below[-1:], above[:1]])))
    return _table(options)


def _table(options: list[FloatArray]) -> FloatArray:
    table = np.full((len(options), max(map(len, options))), np.nan)
    for row, own in zip(table, options, strict=True):
        row[: len(own)] = own
    return table
