"""The second seed paper's methods of matrix completion by name, with each lambda chosen on the same held-out cells."""

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from algorithms.losses import LossName
from algorithms.solvers import RDMC, Baseline, ConvergenceWarning, LambdaSelection, RepeatedHoldout, SoftImpute
from algorithms.solvers.base import Solver
from algorithms.solvers.observed import as_observed
from scenarios import comparison, study
from scenarios.replications import SECONDS, Row

__all__ = [
    "LAMBDAS",
    "MAX_ITER",
    "METHODS",
    "METHOD_COLOURS",
    "Cells",
    "Completed",
    "Method",
    "add_lambdas",
    "complete",
    "fit_rows",
    "held_out_also",
    "held_out_cells",
    "in_order",
    "method_style",
    "methods",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Cells = tuple[IntArray, IntArray]
Make = Callable[[FloatArray, Sequence[float], int], Solver]

#: The paper's grid, as fractions of the largest singular value of the centred training matrix.
LAMBDAS: tuple[float, ...] = tuple(np.geomspace(0.01, 1.0, 10).tolist())

#: Limits of iterations of a fit. Soft-Impute's is that of the authors' script; the strict one rarely needs half of it.
MAX_ITER: Mapping[str, int] = {"rdmc": 100, "rdmc_liberal": 10, "soft_impute": 200}
# Soft-Impute stops by the squared relative change of its matrix: section 3.4, and section 4 for the liberal rule.
TOLERANCE = {"strict": 1e-4, "liberal": 1e-3}


# -- methods -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A method as the paper names it.

    Parameters
    ----------
    title : str
        As the paper's figures call it.
    make : function of categories, lambdas and seed
        A solver that is not fitted. Methods with the same `make` share one fit.
    discretized : bool
        Whether the fit's predictions are rounded to the nearest category.
    tuned : bool
        Whether there is a lambda to choose.
    """

    title: str
    make: Make
    discretized: bool = False
    tuned: bool = True


def _rdmc(
    categories: FloatArray, lambdas: Sequence[float], _: int, *, loss: LossName, stopping: Literal["strict", "liberal"]
) -> Solver:
    limit = MAX_ITER["rdmc" if stopping == "strict" else "rdmc_liberal"]
    return RDMC(lambdas, categories=categories, loss=loss, stopping=stopping, max_iter=limit, tol=1e-4)


def _soft_impute(categories: FloatArray, lambdas: Sequence[float], _: int, *, stopping: str) -> Solver:
    return SoftImpute(
        lambdas, algorithm="svd", categories=categories, tol=TOLERANCE[stopping], max_iter=MAX_ITER["soft_impute"]
    )


def _baseline(
    categories: FloatArray, _: Sequence[float], seed: int, *, rule: Literal["median", "discretized_median", "mode"]
) -> Solver:
    return Baseline(rule, categories=categories, seed=seed)


_STRICT = partial(_soft_impute, stopping="strict")
_LIBERAL = partial(_soft_impute, stopping="liberal")

#: The methods by name. RDMC with the pseudo-Huber loss is the paper's recommendation, strict its default.
METHODS: dict[str, Method] = {
    "rdmc_pseudo_huber": Method("RDMC-pHuber", partial(_rdmc, loss="pseudo_huber", stopping="strict")),
    "rdmc_pseudo_huber_liberal": Method("RDMC-pHuber-liberal", partial(_rdmc, loss="pseudo_huber", stopping="liberal")),
    "rdmc_absolute": Method("RDMC-absolute", partial(_rdmc, loss="absolute", stopping="strict")),
    "rdmc_absolute_liberal": Method("RDMC-absolute-liberal", partial(_rdmc, loss="absolute", stopping="liberal")),
    "rdmc_truncated": Method("RDMC-truncated", partial(_rdmc, loss="truncated", stopping="strict")),
    "rdmc_truncated_liberal": Method("RDMC-truncated-liberal", partial(_rdmc, loss="truncated", stopping="liberal")),
    "soft_impute": Method("SI", _STRICT),
    "soft_impute_liberal": Method("SI-liberal", _LIBERAL),
    "soft_impute_discretized": Method("SI-discretized", _STRICT, discretized=True),
    "soft_impute_discretized_liberal": Method("SI-discretized-liberal", _LIBERAL, discretized=True),
    "median": Method("median", partial(_baseline, rule="median"), tuned=False),
    "discretized_median": Method("median-discretized", partial(_baseline, rule="discretized_median"), tuned=False),
    "mode": Method("mode", partial(_baseline, rule="mode"), tuned=False),
}


# Colour and marker of a method and of that which stops early.
_LOOKS = {
    "rdmc_pseudo_huber": (comparison.COLOURS[5], "o"),
    "rdmc_absolute": (comparison.COLOURS[2], "s"),
    "rdmc_truncated": (comparison.COLOURS[3], "^"),
    "soft_impute": (comparison.COLOURS[4], "D"),
    "soft_impute_discretized": (comparison.COLOURS[1], "v"),
    "median": ("0.25", "P"),
    "discretized_median": ("0.5", "X"),
    "mode": ("0.65", "*"),
}


def method_style(name: str) -> dict[str, Any]:
    """How lines and points of a method are drawn; hollow and with a dashed line where it stops early."""
    strict = name.removesuffix("_liberal")
    colour, marker = _LOOKS[strict]
    return {
        "color": colour,
        "marker": marker,
        "markerfacecolor": colour if name == strict else "white",
        "linestyle": "-" if name == strict else "--",
    }


#: Colour of each method, the same in all figures.
METHOD_COLOURS: dict[str, str] = {name: method_style(name)["color"] for name in METHODS}


def methods(text: str) -> list[str]:
    """Argument type: distinct names of `METHODS`, separated by commas, in the order of `METHODS`."""
    chosen = study.names(text, METHODS)
    return [name for name in METHODS if name in chosen]


def add_lambdas(to: argparse.ArgumentParser) -> None:
    """Add the arguments of how lambda is chosen; where `lambdas` is not given, it is from `LAMBDAS`."""
    to.add_argument(
        "--lambdas",
        type=comparison.numbers,
        default=argparse.SUPPRESS,
        metavar="L,...",
        help="fractions of the largest singular value to choose from (default: the paper's, ten from 0.01 to 1)",
    )
    to.add_argument(
        "--splits", type=study.at_least(1), default=5, metavar="N", help="splits that choose lambda, of 10%% each"
    )


# -- held-out cells ------------------------------------------------------------------------------------------------


def held_out_cells(matrix: ArrayLike, *, n_splits: int = 5, share: float = 0.1, seed: Any) -> list[Cells]:
    """Observed cells that are held out to choose lambda, drawn anew for each split.

    Parameters
    ----------
    matrix : float64, shape (n_rows, n_columns)
        NaN where a cell is missing.
    n_splits : int
        The paper: 5 in simulations, 10 in case studies.
    share : float
        Of the observed cells.
    seed
        Anything `numpy.random.default_rng` takes.

    Returns
    -------
    list of (rows, columns)
        A pair of int64 arrays for each split.
    """
    row, column = np.nonzero(~np.isnan(np.asarray(matrix, dtype=np.float64)))
    drawn = RepeatedHoldout(n_splits, share).held_out(len(row), seed=seed)
    return [(row[cells], column[cells]) for cells in drawn]


def held_out_also(
    held_out: Sequence[Cells], matrix: ArrayLike, *, n_before: int, share: float = 0.1, seed: Any
) -> list[Cells]:
    """The same cells as before, and a share of those in rows that were appended to the matrix since.

    So what an attack does to the choice of lambda is due to its fake profiles, and not to other genuine cells that
    chance holds out.

    Parameters
    ----------
    held_out : list of (rows, columns)
        What was held out before, as `held_out_cells` gives it.
    matrix : float64, shape (n_rows, n_columns)
        With the appended rows; NaN where a cell is missing.
    n_before : int
        Rows that were there before.
    share : float
        Of the observed cells in the other rows, rounded to whole cells, halves up; it may come to none.
    seed
        Anything `numpy.random.default_rng` takes.

    Returns
    -------
    list of (rows, columns)
        A pair of int64 arrays for each split.
    """
    row, column = np.nonzero(~np.isnan(np.asarray(matrix, dtype=np.float64)[n_before:]))
    rng, count = np.random.default_rng(seed), int(np.floor(share * len(row) + 0.5))
    extended = []
    for rows, columns in held_out:
        drawn = np.sort(rng.choice(len(row), count, replace=False))
        extended.append((np.concatenate([rows, n_before + row[drawn]]), np.concatenate([columns, column[drawn]])))
    return extended


# -- completion ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Completed:
    """What a method made of a matrix.

    Attributes
    ----------
    method : str
        A name of `METHODS`.
    matrix : float64, shape (n_rows, n_columns)
        Without missing cells; observed ones hold what was observed.
    lam : float
        The lambda that was chosen, as a fraction of the largest singular value; NaN where there is none.
    n_iter : int
        Iterations of the final fit; 0 where there is nothing to iterate.
    converged : bool
        Whether it ended before its limit of iterations.
    cpu_seconds : float
        Of the fit with its choice of lambda. Methods that share a fit have the same.
    """

    method: str
    matrix: FloatArray
    lam: float
    n_iter: int
    converged: bool
    cpu_seconds: float


def complete(
    matrix: ArrayLike,
    methods: Sequence[str],
    *,
    categories: ArrayLike,
    held_out: Sequence[Cells],
    lambdas: Sequence[float] = LAMBDAS,
    seed: int = 0,
) -> dict[str, Completed]:
    """Complete a matrix by several methods.

    Parameters
    ----------
    matrix : float64, shape (n_rows, n_columns)
        NaN where a cell is missing.
    methods : sequence of str
        Names of `METHODS`.
    categories : array_like
        The ratings that can be given.
    held_out : list of (rows, columns)
        Observed cells that each split holds out to choose lambda, the same for all methods. A method chooses by its
        own loss: RDMC by rho, Soft-Impute by the squared error.
    lambdas : sequence of float
        What lambda is chosen from. One alone is taken without a choice.
    seed : int
        Of the draws of the discretized median and the mode.

    Returns
    -------
    dict of Completed by name, in the order of `methods`

    Raises
    ------
    ValueError
        If a name is unknown, or a solver refuses the matrix, the categories or the cells held out.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise ValueError(f"methods must be names of {', '.join(METHODS)}, got {unknown[0]!r}")
    observed = as_observed(np.asarray(matrix, dtype=np.float64))
    scale = np.asarray(categories, dtype=np.float64)
    fits: dict[Make, tuple[Any, float]] = {}
    done = {}
    for name in methods:
        method = METHODS[name]
        if method.make not in fits:
            solver = method.make(scale, lambdas, seed)
            if method.tuned and len(lambdas) > 1:
                solver = LambdaSelection(solver, splits=held_out, progress=False)
            fits[method.make] = _timed(solver, observed)
        fitted, seconds = fits[method.make]
        done[name] = _completed(name, fitted, seconds)
    return done


def _timed(solver: Any, observed: Any) -> tuple[Any, float]:
    """The fitted solver, and the CPU seconds that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `Completed.converged` says it
        began = process_time()
        solver.fit(observed)
        return solver, process_time() - began


def _completed(name: str, fitted: Any, seconds: float) -> Completed:
    method, last = METHODS[name], getattr(fitted, "solver_", fitted)
    matrix = last.complete(discretized=True) if method.discretized else last.complete()
    if not method.tuned:
        return Completed(name, matrix, float("nan"), 0, True, seconds)
    return Completed(name, matrix, float(last.lambdas_[0]), int(last.n_iter_[0]), bool(last.converged_[0]), seconds)


# -- rows ----------------------------------------------------------------------------------------------------------


def fit_rows(done: Completed, **condition: Any) -> Iterator[Row]:
    """Rows about a fit: `lam` and `n_iter` where there are any, and CPU seconds with the choice of lambda."""
    if METHODS[done.method].tuned:
        yield {**condition, "method": done.method, "metric": "lam", "value": done.lam}
        yield {**condition, "method": done.method, "metric": "n_iter", "value": float(done.n_iter)}
    yield {**condition, "method": done.method, "metric": SECONDS, "value": done.cpu_seconds}


def in_order(rows: pd.DataFrame, *first: str) -> pd.DataFrame:
    """The same rows, by the columns `first` ascending, and with methods in the order of `METHODS`."""

    def place(column: "pd.Series[Any]") -> "pd.Series[Any]":
        return column.map(list(METHODS).index) if column.name == "method" else column

    return rows.sort_values([*first, "method"], key=place, kind="stable")
