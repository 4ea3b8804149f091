"""Robust discrete matrix completion, section 2 of the second seed paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.losses import Loss, LossName
from algorithms.solvers.base import check_count
from algorithms.solvers.discrete import DiscreteProblem, DiscreteState
from algorithms.solvers.grids import path_grid
from algorithms.solvers.observed import as_observed
from algorithms.solvers.paths import PathSolution, PathSolver
from algorithms.solvers.scales import Centring, make_scales
from algorithms.solvers.svt import Method, ThresholdedSVD, Thresholder, largest_singular_value

__all__ = ["RDMC", "RDMCSolution"]

FloatArray = NDArray[np.float64]
Start = tuple[FloatArray, FloatArray]
KEEP_ABOVE = 1e-4  # a singular value counts when it exceeds the threshold by more than this
ACCURACY = 1e-8  # error of Z (Frobenius norm) above which the full SVD is taken
MAX_ITER = {"strict": 100, "liberal": 10}


@dataclass(frozen=True, eq=False, repr=False)
class RDMCSolution(PathSolution):
    """What RDMC found at one lambda.

    Attributes
    ----------
    lam, penalty, history, n_iter, converged
        As in `algorithms.solvers.paths.PathSolution`.
    objective : float
        The stopping objective after the last iteration.
    change : float
        Share by which that iteration changed it.
    choice : ndarray of int16, shape (n_rows, n_columns)
        Which of its column's categories, ascending from 0, each cell has.
    L : ndarray of float64, shape (n_rows, n_columns)
        Centred categories of all cells, observed ones included; it may differ from the rating that was observed.
    Theta : ndarray of float64, shape (n_rows, n_columns)
        The multiplier of L - Z.
    Z : ndarray of float64, shape (n_rows, n_columns)
        The matrix of low rank beside L.
    rank : int
        Rank of Z.
    exact_svd : bool
        Whether every SVD was a full one.
    svd : ThresholdedSVD
        Singular values and vectors of Z, without its empty columns.
    problem : DiscreteProblem
        The categories and observed cells that it is a solution for.
    """

    choice: NDArray[np.int16]
    Theta: FloatArray
    exact_svd: bool
    svd: ThresholdedSVD
    problem: DiscreteProblem

    @property
    def L(self) -> FloatArray:  # noqa: N802
        """Centred categories of all cells, float64, shape (n_rows, n_columns)."""
        centred = self.problem.scales.centred
        return centred[np.arange(len(centred)), self.choice]

    @property
    def Z(self) -> FloatArray:  # noqa: N802
        """The matrix of low rank beside L, float64, shape (n_rows, n_columns)."""
        return self.problem.whole(self.svd.matrix())

    @property
    def rank(self) -> int:
        """Rank of Z."""
        return self.svd.rank


class RDMC(PathSolver[RDMCSolution]):
    """Completes a matrix of ratings with categories of their scale, robust against bad ratings.

    It looks for a matrix L of categories, each column centred, near a matrix Z of low rank:

        min  sum over observed rho(L_ij - X_ij) + lambda ||Z||_* + <Theta, L - Z> + mu/2 ||L - Z||_F^2

    (equation 2 of the paper), by its algorithm 1. An iteration thresholds the singular values of L + Theta/mu by
    lambda/mu, which gives Z; takes the best category in each cell, which gives L; adds mu (L - Z) to Theta and
    multiplies mu by `delta`. It stops when the relative change of ``sum rho + lambda ||Z||_* + <Theta, L - Z> +
    mu/2 ||L - Z||_F`` (with the new Theta and mu; the norm is not squared) is below `tol`. L and Theta of one lambda
    start the next; mu starts anew.

    **Ties.** A category wins over a lower one only if z - theta/mu lies more than 1e-9 of the column's smallest step
    beyond the point where both cost the same. So a tie goes to the lower category, and rounding in the SVD, which
    depends on the machine, does not decide it.

    **Speed.** Z may come from an SVD that is not a full one (`algorithms.solvers.svt`), with a bound on its error.
    Errors add up in Theta and no further, since thresholding never moves two matrices apart. Each cell's distance from
    the point where its category would change is compared with the bound; where one is nearer, the lambda is solved once
    more with full SVDs. So L is what full SVDs give from the same start.

    **Special cases.** A column without an observed cell is no part of the problem; it gets the category nearest to the
    median of all observed ratings (centring "median") or to its midpoint, the lower one of two. A row without one is
    like any other, and gets about the columns' medians. Where all observed ratings equal their column's centre, so
    does the solution.

    Parameters
    ----------
    lambdas : float or array_like, optional
        Weights of the nuclear norm, > 0, fitted in ascending order. Default: ten from 0.01 to 1 in equal ratios.
    relative : bool
        Whether they are fractions of the largest singular value of the centred matrix, with 0 in missing cells.
    categories : array_like, or one array_like a column, optional
        The ratings that can be given. Default: those that occur.
    loss : {"pseudo_huber", "absolute", "truncated"}
        rho, see `algorithms.losses.Loss`.
    loss_constant : float, optional
        tau of the loss. Default, by column: the mean step of the categories for "pseudo_huber", half their range for
        "truncated".
    centring : {"median", "midpoint"}
        What is taken off a column: the median of its observed ratings, or the middle of its categories' range.
    empty_columns : {"predict", "error"}
        Whether to treat a column without an observed cell by the rule above, or to refuse it.
    max_rank : int, optional
        Largest rank of Z. Default: no limit.
    stopping : {"strict", "liberal"}
        At most 100 or 10 iterations a lambda; only the strict rule warns when they do not suffice.
    max_iter : int, optional
        Another number of iterations.
    tol : float
        Relative change of the objective below which a fit ends, from the second iteration on.
    mu, delta : float
        mu of the first iteration, > 0, and its factor in each iteration, >= 1.
    svd : {"auto", "full", "gram", "subspace"}
        How singular values are found, see `algorithms.solvers.svt.Thresholder`. Only "auto" solves anew with full
        SVDs.

    Attributes
    ----------
    lambdas_, d_max_, objective_, n_iter_, converged_, centres_
        As in `algorithms.solvers.paths.PathSolver`; the grid is ascending.
    path_ : tuple of RDMCSolution
        One for each lambda.
    categories_ : tuple of float64 arrays, one a column
        Ratings that each column can have, ascending.
    loss_constants_ : float64, shape (n_columns,)
        tau of each column.
    """

    categories_: tuple[FloatArray, ...]
    loss_constants_: FloatArray

    def __init__(
        self,
        lambdas: float | ArrayLike | None = None,
        *,
        relative: bool = True,
        categories: ArrayLike | Sequence[ArrayLike] | None = None,
        loss: LossName = "pseudo_huber",
        loss_constant: float | None = None,
        centring: Centring = "median",
        empty_columns: Literal["predict", "error"] = "predict",
        max_rank: int | None = None,
        stopping: Literal["strict", "liberal"] = "strict",
        max_iter: int | None = None,
        tol: float = 1e-4,
        mu: float = 0.1,
        delta: float = 1.05,
        svd: Method = "auto",
    ) -> None:
        self.lambdas = lambdas
        self.relative = relative
        self.categories = categories
        self.loss = loss
        self.loss_constant = loss_constant
        self.centring = centring
        self.empty_columns = empty_columns
        self.max_rank = max_rank
        self.stopping = stopping
        self.max_iter = max_iter
        self.tol = tol
        self.mu = mu
        self.delta = delta
        self.svd = svd

    def fit(self, X: Any, *, mask: Any = None, start: tuple[ArrayLike, ArrayLike] | None = None) -> Self:
        """Fit all lambdas; returns the solver.

        Parameters
        ----------
        X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
            The observed ratings, by the rules of `algorithms.solvers.as_observed`.
        mask : array_like or sparse of bool, optional
            True where a cell is observed.
        start : (L, Theta), optional
            Centred start values for the first lambda, each of shape (n_rows, n_columns). Default: the centred ratings
            with 0 in missing cells, and 0.

        Raises
        ------
        ValueError
            If an argument is out of range, a rating is none of its column's categories, or a column is empty where
            that is refused; the message names it.
        """
        self._check()
        observed = as_observed(X, mask=mask)
        scales = make_scales(
            observed,
            categories=self.categories,
            loss=self.loss,
            loss_constant=self.loss_constant,
            centring=self.centring,
            empty_columns=self.empty_columns,
        )
        problem = DiscreteProblem.of(observed, scales)
        self.lambdas_ = path_grid(self.lambdas)
        self.d_max_ = largest_singular_value(problem.projected()) if self.relative else 1.0
        self._observed, self._scales = observed, scales
        self.centres_, self.loss_constants_ = scales.centres, scales.loss_constants
        self.categories_ = tuple(scales.categories[j, :count] for j, count in enumerate(scales.counts))
        self._keep(self._solve_path(problem, _start(problem, start)))
        if self.stopping == "strict":
            self._warn_unless_converged("the objective by a share", max_iter=self._limit(), tol=self.tol)
        return self

    def complete(self, at: int | None = None) -> FloatArray:
        """The completed matrix on the scale of the ratings, float64, shape (n_rows, n_columns).

        Observed cells hold the rating that was observed.

        Parameters
        ----------
        at : int, optional
            Position in `lambdas_`. It may be left out where one lambda was fitted.

        Raises
        ------
        ValueError
            If the solver is not fitted, or `at` is missing or out of range.
        """
        choice = self._solution(at).choice
        filled = self._scales.categories[np.arange(choice.shape[1]), choice]
        filled[self._observed.row, self._observed.column] = self._observed.value
        return filled

    def predict(self, users: ArrayLike, items: ArrayLike, *, at: int | None = None) -> FloatArray:
        """Cells of the completed matrix, float64, shape (n,).

        Parameters
        ----------
        users, items : int, shape (n,)
            Row and column of each cell.
        at : int, optional
            Position in `lambdas_`. It may be left out where one lambda was fitted.

        Raises
        ------
        ValueError
            If the solver is not fitted, or an index is out of range.
        """
        choice = self._solution(at).choice
        row, column = self._observed.pairs(users, items)
        known = self._observed.values_at(row, column)
        return np.where(np.isnan(known), self._scales.categories[column, choice[row, column]], known)

    def loss_of(self, errors: ArrayLike, items: ArrayLike) -> FloatArray:
        """Loss rho of errors of predictions, float64, shape (n,), each by the constant of its item's column."""
        self._fitted()
        return Loss(self.loss, self.loss_constants_[np.asarray(items)])(errors)

    def _check(self) -> None:
        for name, low in (("mu", 0.0), ("delta", 1.0), ("tol", 0.0)):
            given = getattr(self, name)
            enough = _is_number(given) and (given >= low if name != "mu" else given > low)
            if not enough:
                raise ValueError(f"{name} must be a number {'>' if name == 'mu' else '>='} {low:g}, got {given!r}")
        if self.stopping not in MAX_ITER:
            raise ValueError(f"stopping must be 'strict' or 'liberal', got {self.stopping!r}")
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter, expected="an integer >= 1 or None")
        Thresholder(method=self.svd, max_rank=self.max_rank)  # checks both

    def _limit(self) -> int:
        """Largest number of iterations."""
        return MAX_ITER[self.stopping] if self.max_iter is None else self.max_iter

    def _solve_path(self, problem: DiscreteProblem, start: Start) -> list[RDMCSolution]:
        path = []
        for lam in self.lambdas_.tolist():
            path.append(self._solve(problem, lam, start))
            start = path[-1].L[:, problem.columns], path[-1].Theta[:, problem.columns]
        return path

    def _solve(self, problem: DiscreteProblem, lam: float, start: Start) -> RDMCSolution:
        """Solve for one lambda; once more with full SVDs where a bound did not rule out that they give another L."""
        solution, doubtful = self._descend(problem, lam, start, self.svd)
        if doubtful and self.svd == "auto" and not solution.exact_svd:
            solution, _ = self._descend(problem, lam, start, "full")
        return solution

    def _descend(self, problem: DiscreteProblem, lam: float, start: Start, svd: Method) -> tuple[RDMCSolution, bool]:
        """Iterate from start values; also tells whether the errors of the SVDs may have changed a category."""
        thresholded = Thresholder(method=svd, keep_above=KEEP_ABOVE, max_rank=self.max_rank, accuracy=ACCURACY)
        state = DiscreteState(problem, *start, self.mu)
        penalty, mu, drift = lam * self.d_max_, self.mu, 0.0  # `drift` bounds the error of Theta
        exact, doubtful, change = True, False, np.inf
        history: list[float] = []
        while not change < self.tol and len(history) < self._limit():
            low_rank = thresholded(state.target, penalty / mu)
            low_rank.matrix(out=state.Z)
            sums = state.update(problem, mu, mu * self.delta)
            exact = exact and low_rank.method == "full"
            doubtful = doubtful or low_rank.close or sums.margin <= drift / mu + low_rank.error
            drift += mu * low_rank.error
            mu *= self.delta
            distance = mu / 2 * float(np.sqrt(sums.squares))  # the norm is not squared here
            history.append(sums.loss + penalty * low_rank.nuclear_norm + sums.product + distance)
            change = _relative_change(history)
        solution = RDMCSolution(
            lam=lam,
            penalty=penalty,
            objective=history[-1],
            history=np.array(history),
            change=change,
            converged=change < self.tol,
            choice=problem.choice(state.L),
            Theta=problem.whole(state.Theta),
            exact_svd=exact,
            svd=low_rank,
            problem=problem,
        )
        return solution, doubtful


def _start(problem: DiscreteProblem, given: tuple[ArrayLike, ArrayLike] | None) -> Start:
    if given is None:
        L = problem.projected()
        return L, np.zeros(L.shape)
    shape = problem.shape[0], len(problem.scales.empty)
    matrices = []
    if len(given) != 2:
        raise ValueError(f"start must be (L, Theta), got {len(given)} entries")
    for name, matrix in zip(("L", "Theta"), given, strict=True):
        numbers = np.asarray(matrix, dtype=np.float64)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            raise ValueError(f"{name} of start must be finite of shape {shape}, got shape {numbers.shape}")
        matrices.append(numbers[:, problem.columns])
    return matrices[0], matrices[1]


def _relative_change(history: Sequence[float]) -> float:
    """Share by which the last iteration changed the objective; 0 where it did not, even at 0."""
    if len(history) < 2:
        return float("inf")
    change = abs(history[-1] - history[-2])
    if change == 0:
        return 0.0
    return change / abs(history[-2]) if history[-2] else float("inf")


def _is_number(given: object) -> bool:
    return isinstance(given, int | float | np.number) and not isinstance(given, bool) and bool(np.isfinite(given))
