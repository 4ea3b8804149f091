"""Soft-Impute: completion of a matrix by one of low rank, with a penalty on its nuclear norm."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.solvers.alternation import Alternation, Factors
from algorithms.solvers.base import check_count
from algorithms.solvers.grids import path_grid
from algorithms.solvers.low_rank import entries, spectral_norm
from algorithms.solvers.observed import Observed, as_observed
from algorithms.solvers.paths import PathSolution, PathSolver
from algorithms.solvers.products import inner
from algorithms.solvers.rounding import nearest_categories, rating_scales
from algorithms.solvers.scales import Scales
from algorithms.solvers.svt import Method, ThresholdedSVD, Thresholder, largest_singular_value

__all__ = ["SoftImpute", "SoftImputeSolution"]

FloatArray = NDArray[np.float64]
TOLERANCE = {"strict": 1e-4, "liberal": 1e-3}
# Share of the largest singular value by which a value must exceed the threshold to count: at lambda 1 of a relative
# grid the two are equal but for rounding.
KEEP_ABOVE = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class SoftImputeSolution(PathSolution):
    """What Soft-Impute found at one lambda.

    Attributes
    ----------
    lam, penalty, n_iter, converged, rank
        As in `algorithms.solvers.paths.PathSolution`.
    objective : float
        1/2 ||P(X - M)||^2 + penalty ||M||_*.
    history : ndarray of float64, shape (n_iter,)
        The objective after each iteration (by "als", before a last thresholded SVD).
    change : float
        Squared relative change of the matrix in the last iteration.
    factors : Factors
        The matrix of low rank, centred: its singular values and vectors.
    left, right : ndarray of float64, shape (n_rows, rank) and (n_columns, rank)
        The vectors, in columns.
    values : ndarray of float64, shape (rank,)
        The values, descending.
    profiles : tuple of ndarray
        Both sides' profiles, whose products are that matrix.
    """

    factors: Factors

    @property
    def left(self) -> FloatArray:
        """Left singular vectors, float64, shape (n_rows, rank)."""
        return self.factors.left

    @property
    def values(self) -> FloatArray:
        """Singular values, float64, shape (rank,)."""
        return self.factors.values

    @property
    def right(self) -> FloatArray:
        """Right singular vectors, float64, shape (n_columns, rank)."""
        return self.factors.right

    @property
    def profiles(self) -> tuple[FloatArray, FloatArray]:
        """Both sides' profiles, float64, shape (n_rows, rank) and (n_columns, rank)."""
        return self.factors.profiles

    @property
    def rank(self) -> int:
        """Rank of the matrix."""
        return self.factors.rank

    def matrix(self) -> FloatArray:
        """The centred matrix of low rank, float64, shape (n_rows, n_columns)."""
        return np.asarray((self.left * self.values) @ self.right.T)


class SoftImpute(PathSolver[SoftImputeSolution]):
    """Completes a matrix by one of low rank that is near it where it is observed.

    With X the ratings, each column less its mean, it minimizes

        1/2 ||P(X - M)||_F^2 + lambda ||M||_*

    over M: equation 1 of the second seed paper; Mazumder, Hastie and Tibshirani, "Spectral regularization algorithms
    for learning large incomplete matrices" (JMLR 11, 2010). Predictions are M plus the columns' means. There are two
    ways to it:

    - ``svd``: X with its missing cells filled in by M gets its singular values thresholded by lambda, which gives the
      next M, until that changes by little. It is the paper's choice, for it converges to the minimum. It holds a few
      dense matrices.
    - ``als``: profiles of both sides in turns (`algorithms.solvers.alternation`), with at most `max_rank` entries each.
      It never forms a dense matrix, and is for large sparse data.

    A fit ends when the squared relative change ||M_new - M||^2 / ||M||^2 is below a tolerance. Lambdas are fitted in
    descending order, each from the solution of the one before.

    **Special cases.** A column without an observed cell is predicted by the mean of all observed values, or refused;
    a row without one by the columns' means. Where all observed values equal their column's mean, so do all
    predictions. Discretized predictions are the nearest category of their column, the lower one where a value lies no
    more than 1e-9 steps of the scale past the middle of two.

    Parameters
    ----------
    lambdas : float or array_like, optional
        Weights of the nuclear norm, > 0, fitted in descending order. Default: ten from 1 to 0.01 in equal ratios.
    relative : bool
        Whether they are fractions of the largest singular value of the centred matrix, with 0 in missing cells.
    algorithm : {"svd", "als"}
    max_rank : int, optional
        Largest rank of M. Default: one less than the shorter side.
    centring : {"mean", "none"}
        What is taken off a column: the mean of its observed values, or nothing.
    categories : array_like, or one array_like a column, optional
        The ratings that can be given, for discretized predictions. Default: those that occur.
    empty_columns : {"predict", "error"}
        Whether to treat a column without an observed cell by the rule above, or to refuse it.
    stopping : {"strict", "liberal"}
        Tolerance 1e-4 or 1e-3.
    tol : float, optional
        Another tolerance.
    max_iter : int
        A lambda's fit ends after so many iterations, with a `ConvergenceWarning`.
    svd : {"auto", "full", "gram", "subspace"}
        How ``svd`` finds singular values, see `algorithms.solvers.svt.Thresholder`.

    Attributes
    ----------
    lambdas_, d_max_, objective_, n_iter_, converged_, centres_
        As in `algorithms.solvers.paths.PathSolver`; the grid is descending.
    path_ : tuple of SoftImputeSolution
        One for each lambda.
    centred_ : Observed
        The ratings that were fitted, centred.
    """

    centred_: Observed

    def __init__(
        self,
        lambdas: float | ArrayLike | None = None,
        *,
        relative: bool = True,
        algorithm: Literal["svd", "als"] = "svd",
        max_rank: int | None = None,
        centring: Literal["mean", "none"] = "mean",
        categories: Any = None,
        empty_columns: Literal["predict", "error"] = "predict",
        stopping: Literal["strict", "liberal"] = "strict",
        tol: float | None = None,
        max_iter: int = 100,
        svd: Method = "auto",
    ) -> None:
        self.lambdas = lambdas
        self.relative = relative
        self.algorithm = algorithm
        self.max_rank = max_rank
        self.centring = centring
        self.categories = categories
        self.empty_columns = empty_columns
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.svd = svd

    def fit(self, X: Any, *, mask: Any = None) -> Self:
        """Fit all lambdas; returns the solver.

        Parameters
        ----------
        X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
            The observed values, by the rules of `algorithms.solvers.as_observed`.
        mask : array_like or sparse of bool, optional
            True where a cell is observed.

        Raises
        ------
        ValueError
            If an argument is out of range, or a column is empty where that is refused; the message names it.
        """
        self._check()
        observed = as_observed(X, mask=mask)
        self.lambdas_ = path_grid(self.lambdas, descending=True)
        self.centres_ = self._centres(observed)
        self._observed = observed
        self._scales: Scales | None = None
        self.centred_ = observed.with_values(observed.value - self.centres_[observed.column])
        solve = self._path_by_svd if self.algorithm == "svd" else self._path_by_als
        self._keep(solve(self.centred_))
        self._warn_unless_converged("the matrix by a squared share", max_iter=self.max_iter, tol=self._tolerance())
        return self

    def complete(self, at: int | None = None, *, discretized: bool = False) -> FloatArray:
        """The completed matrix, float64, shape (n_rows, n_columns); observed cells hold what was observed.

        Parameters
        ----------
        at : int, optional
            Position in `lambdas_`. It may be left out where one lambda was fitted.
        discretized : bool
            Whether predictions are rounded to the nearest category of the scale.

        Raises
        ------
        ValueError
            If the solver is not fitted, `at` is missing or out of range, or an observed value is no category.
        """
        filled = self._solution(at).matrix() + self.centres_
        if discretized:
            columns = np.broadcast_to(np.arange(filled.shape[1]), filled.shape).ravel()
            filled = self._discretized(filled.ravel(), columns).reshape(filled.shape)
        filled[self._observed.row, self._observed.column] = self._observed.value
        return filled

    def predict(
        self, users: ArrayLike, items: ArrayLike, *, at: int | None = None, discretized: bool = False
    ) -> FloatArray:
        """Cells of the completed matrix, float64, shape (n,).

        Parameters
        ----------
        users, items : int, shape (n,)
            Row and column of each cell.
        at : int, optional
            Position in `lambdas_`. It may be left out where one lambda was fitted.
        discretized : bool
            Whether predictions are rounded to the nearest category of the scale.

        Raises
        ------
        ValueError
            If the solver is not fitted, an index is out of range, or an observed value is no category.
        """
        solution = self._solution(at)
        row, column = self._observed.pairs(users, items)
        weighted = solution.left * solution.values
        predicted = self.centres_[column] + np.einsum("ij,ij->i", weighted[row], solution.right[column])
        if discretized:
            predicted = self._discretized(predicted, column)
        known = self._observed.values_at(row, column)
        return np.where(np.isnan(known), predicted, known)

    def loss_of(self, errors: ArrayLike, items: ArrayLike) -> FloatArray:
        """Squared errors of predictions, float64, shape (n,): what the selection of lambda adds up."""
        return np.asarray(errors, dtype=np.float64) ** 2

    def _discretized(self, values: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
        if self._scales is None:
            self._scales = rating_scales(self._observed, self.categories)
        return nearest_categories(values, self._scales, columns)

    def _check(self) -> None:
        for name, choices in (
            ("algorithm", ("svd", "als")),
            ("centring", ("mean", "none")),
            ("empty_columns", ("predict", "error")),
            ("stopping", ("strict", "liberal")),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be {choices[0]!r} or {choices[1]!r}, got {getattr(self, name)!r}")
        if self.tol is not None and not (isinstance(self.tol, int | float | np.number) and self.tol >= 0):
            raise ValueError(f"tol must be a number >= 0 or None, got {self.tol!r}")
        check_count("max_iter", self.max_iter)
        Thresholder(method=self.svd, max_rank=self.max_rank)  # checks both

    def _centres(self, observed: Observed) -> FloatArray:
        counts = np.bincount(observed.column, minlength=observed.n_columns)
        empty = counts == 0
        if self.empty_columns == "error" and empty.any():
            name = observed.column_ids[int(empty.argmax())]
            raise ValueError(
                f"X must have an observed cell in each column, got none in column {name!r} (of {int(empty.sum())} "
                "such); leave it out or pass empty_columns='predict'"
            )
        mean = float(observed.value.mean())
        if self.centring == "none":
            return np.where(empty, mean, 0.0)
        # About a value of the column, so that a constant column keeps its constant to the bit.
        view = observed.by_column
        about = np.where(empty, 0.0, np.append(view.value, 0.0)[view.start[:-1]])
        sums = np.bincount(observed.column, weights=observed.value - about[observed.column], minlength=len(counts))
        return np.where(empty, mean, about + sums / np.maximum(counts, 1))

    def _tolerance(self) -> float:
        return TOLERANCE[self.stopping] if self.tol is None else float(self.tol)

    def _most(self, shape: tuple[int, int]) -> int:
        """Largest rank."""
        return max(min(shape) - 1, 1) if self.max_rank is None else min(self.max_rank, min(shape))

    def _path_by_svd(self, centred: Observed) -> list[SoftImputeSolution]:
        filled = centred.dense(fill=0.0)
        norm = largest_singular_value(filled)
        self.d_max_ = norm if self.relative else 1.0
        iteration = _Iteration(centred, filled, self._thresholder(norm), self._most(centred.shape))
        path = []
        for lam in self.lambdas_.tolist():
            penalty = lam * self.d_max_
            history, change = iteration.run(penalty, tol=self._tolerance(), max_iter=self.max_iter)
            path.append(self._solved(lam, iteration.factors, history, change, objective=history[-1]))
        return path

    def _thresholder(self, norm: float) -> Thresholder:
        return Thresholder(method=self.svd, keep_above=KEEP_ABOVE * norm, max_rank=self.max_rank)

    def _path_by_als(self, centred: Observed) -> list[SoftImputeSolution]:
        norm = spectral_norm(centred.csr())[0]
        self.d_max_ = norm if self.relative else 1.0
        alternation = Alternation(centred, self._most(centred.shape))
        factors = Factors.nothing(centred.shape)
        path = []
        for lam in self.lambdas_.tolist():
            penalty = lam * self.d_max_
            if factors.rank == 0 and penalty >= norm * (1 - KEEP_ABOVE):
                # No singular value passes: the zero matrix is the minimum.
                history, change = [float(np.vdot(centred.value, centred.value)) / 2], 0.0
            else:
                factors, history, change = alternation.solve(
                    factors, penalty, tol=self._tolerance(), max_iter=self.max_iter
                )
            path.append(self._solved(lam, factors, history, change, objective=_objective(factors, centred, penalty)))
        return path

    def _solved(
        self, lam: float, factors: Factors, history: list[float], change: float, *, objective: float
    ) -> SoftImputeSolution:
        return SoftImputeSolution(
            lam=lam,
            penalty=lam * self.d_max_,
            factors=factors,
            objective=objective,
            history=np.array(history),
            change=change,
            converged=change < self._tolerance() or change == 0,
        )


class _Iteration:
    """The iteration of thresholded SVDs; it goes on from lambda to lambda."""

    def __init__(self, centred: Observed, filled: FloatArray, thresholded: Thresholder, most: int) -> None:
        self._centred, self._filled, self._thresholded, self._most = centred, filled, thresholded, most
        self._cells = centred.row * centred.n_columns + centred.column
        self._matrix, self._spare = np.empty_like(filled), np.empty_like(filled)
        self._found: ThresholdedSVD

    @property
    def factors(self) -> Factors:
        """The last matrix of low rank."""
        return Factors(self._found.left, self._found.weights, self._found.right)

    def run(self, penalty: float, *, tol: float, max_iter: int) -> tuple[list[float], float]:
        """Iterate at one lambda; gives the objective after each iteration, and the last squared relative change."""
        self._threshold(penalty, self._matrix)
        history: list[float] = []
        change = np.inf
        while len(history) < max_iter and change >= tol and change > 0:
            self._fill()
            self._threshold(penalty, self._spare)
            change = _relative_change(self._spare, self._matrix, scratch=self._filled)
            self._matrix, self._spare = self._spare, self._matrix
            errors = self._centred.value - self._matrix.reshape(-1)[self._cells]
            history.append(inner(errors, errors) / 2 + penalty * self._found.nuclear_norm)
        self._fill()
        return history, change

    def _threshold(self, penalty: float, out: FloatArray) -> None:
        self._found = _limited(self._thresholded(self._filled, penalty), self._most)
        self._found.matrix(out=out)

    def _fill(self) -> None:
        self._filled[...] = self._matrix
        self._filled.reshape(-1)[self._cells] = self._centred.value


def _limited(found: ThresholdedSVD, most: int) -> ThresholdedSVD:
    """A thresholded SVD with its `most` largest values."""
    if found.rank <= most:
        return found
    return replace(found, left=found.left[:, :most], right=found.right[:, :most], values=found.values[:most])


def _relative_change(new: FloatArray, old: FloatArray, *, scratch: FloatArray) -> float:
    """Squared change relative to what there was; 0 where nothing changed, even from nothing."""
    np.subtract(new, old, out=scratch)
    change, before = inner(scratch, scratch), inner(old, old)
    return change / before if before > 0 else (0.0 if change == 0 else np.inf)


def _objective(factors: Factors, centred: Observed, penalty: float) -> float:
    errors = centred.value - entries(factors.left * factors.values, factors.right, centred)
    return float(np.vdot(errors, errors)) / 2 + penalty * float(factors.values.sum())
