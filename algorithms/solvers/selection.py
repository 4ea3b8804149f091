"""Selection of lambda by the error on held-out cells, section 2.5 of the second seed paper."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from algorithms.ratings import Ratings
from algorithms.solvers.base import Solver
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.observed import Observed, as_observed
from algorithms.solvers.rdmc import RDMC

__all__ = ["CASE_STUDIES", "SIMULATIONS", "KFold", "LambdaSelection", "RepeatedHoldout", "Splits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Data = Ratings | Observed
SAME = 1e-12  # mean losses that differ by less than this share are tied


class Splits(Protocol):
    """A way to hold out cells, as `RepeatedHoldout` and `KFold` are."""

    def held_out(self, n_observed: int, *, seed: Any) -> list[IntArray]:
        """Positions of the cells that each split holds out."""


def _check_count(name: str, given: Any, least: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {given!r}")


@dataclass(frozen=True)
class RepeatedHoldout:
    """Hold out a share of the observed cells at random, several times, each time independently.

    Parameters
    ----------
    n_replications : int
        >= 1. The paper: 5 in its simulations, 10 in its case studies.
    share : float
        Of the observed cells, in (0, 1); rounded to whole cells, halves up.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    n_replications: int = 5
    share: float = 0.1

    def __post_init__(self) -> None:
        _check_count("n_replications", self.n_replications, 1)
        if not 0 < self.share < 1:
            raise ValueError(f"share must be in (0, 1), got {self.share!r}; pass a fraction, not a percentage")

    def held_out(self, n_observed: int, *, seed: Any) -> list[IntArray]:
        """Positions of the cells that each split holds out."""
        count = int(np.floor(self.share * n_observed + 0.5))
        if not 0 < count < n_observed:
            raise ValueError(
                f"share={self.share} of {n_observed} cells is {count}; some must be held out, and some left"
            )
        rng = np.random.default_rng(seed)
        return [np.sort(rng.choice(n_observed, count, replace=False)) for _ in range(self.n_replications)]


@dataclass(frozen=True)
class KFold:
    """Divide the observed cells at random, and hold out each part once. Their sizes differ by one at most.

    Parameters
    ----------
    n_folds : int
        >= 2.

    Raises
    ------
    ValueError
        If it is out of range.
    """

    n_folds: int = 5

    def __post_init__(self) -> None:
        _check_count("n_folds", self.n_folds, 2)

    def held_out(self, n_observed: int, *, seed: Any) -> list[IntArray]:
        """Positions of the cells that each split holds out."""
        if self.n_folds > n_observed:
            raise ValueError(f"n_folds must be at most the number of observed cells, {n_observed}, got {self.n_folds}")
        order = np.random.default_rng(seed).permutation(n_observed)
        return [np.sort(order[fold :: self.n_folds]) for fold in range(self.n_folds)]


SIMULATIONS = RepeatedHoldout(5)
CASE_STUDIES = RepeatedHoldout(10)


class LambdaSelection(Solver):
    """Chooses lambda by the loss on held-out cells, and fits all cells with it.

    For each split, the solver is fitted to the cells that are not held out, for all lambdas. A solver that measures
    lambda relative to the largest singular value does so anew in each split, and what is chosen is the fraction. The
    losses of all splits' held-out cells are averaged together; of lambdas with the same mean loss the largest is
    chosen. Then the solver is fitted to all cells with that lambda alone. For `RDMC`, the final fit starts from the
    elementwise median of the splits' L and the elementwise mean of their Theta at that lambda; other solvers start as
    they always do.

    Parameters
    ----------
    solver : Solver
        With a parameter ``lambdas`` (`RDMC`, `SoftImpute`), whose grid it is, or ``lam``.
    lambdas : array_like, optional
        Another grid than the solver's own; needed where the solver takes ``lam``.
    splits : RepeatedHoldout, KFold or a sequence
        How cells are held out. A sequence gives each split's held-out cells: `Ratings`, `Observed` or a pair
        (users, items) of indices.
    loss : {"absolute", "squared"} or callable, optional
        Of errors, predicted less actual. A callable takes (errors, items), float64 and int64 of shape (n,), and gives
        a loss for each. Default: what the solver's ``loss_of`` says (rho for `RDMC`, else the squared error).
    n_jobs : int
        Splits that are fitted at the same time, each in a process of its own, as in joblib; -1: one for each core.
        The result does not depend on it.
    progress : bool, optional
        Whether to show a bar of the splits. Default: on a terminal.
    seed : int or anything `numpy.random.default_rng` takes
        Of the splits.

    Attributes
    ----------
    lambda_ : float
        What was chosen.
    lambdas_ : float64, shape (n_lambdas,)
        In the order in which the solver fits them.
    losses_ : float64, shape (n_lambdas,)
        Mean loss of each.
    split_losses_ : float64, shape (n_splits, n_lambdas)
        Mean loss on each split's cells.
    n_held_out_ : int64, shape (n_splits,)
        Number of those.
    solver_ : Solver
        The final fit.
    """

    lambda_: float
    lambdas_: FloatArray
    losses_: FloatArray
    split_losses_: FloatArray
    n_held_out_: IntArray
    solver_: Any

    def __init__(
        self,
        solver: Solver,
        *,
        lambdas: ArrayLike | None = None,
        splits: Splits | Sequence[Any] = SIMULATIONS,
        loss: Literal["absolute", "squared"] | Callable[[FloatArray, IntArray], FloatArray] | None = None,
        n_jobs: int = 1,
        progress: bool | None = None,
        seed: Any = 0,
    ) -> None:
        self.solver = solver
        self.lambdas = lambdas
        self.splits = splits
        self.loss = loss
        self.n_jobs = n_jobs
        self.progress = progress
        self.seed = seed

    def fit(self, X: Any, *, mask: Any = None) -> Self:
        """Choose lambda and make the final fit; returns itself.

        Parameters
        ----------
        X : Ratings, matrix with NaN, scipy sparse matrix or DataFrame
            The observed ratings.
        mask : array_like or sparse of bool, optional
            True where a cell is observed.

        Raises
        ------
        ValueError
            If an argument is out of range, or a split holds out a cell that is not observed, or all or none.
        """
        if self.loss not in (None, "absolute", "squared") and not callable(self.loss):
            raise ValueError(f"loss must be 'absolute', 'squared', a function or None, got {self.loss!r}")
        name = _lambda_parameter(self.solver)
        if name == "lam" and self.lambdas is None:
            raise ValueError(f"lambdas must be given for {type(self.solver).__name__}, which fits one lam at a time")
        data = X if isinstance(X, Ratings) and mask is None else as_observed(X, mask=mask)
        held_out = self._held_out(as_observed(data))
        gathered = _Gathered()
        for outcome in self._outcomes(data, held_out):
            gathered.add(outcome)
        self.lambdas_ = gathered.lambdas
        self.split_losses_ = np.array(gathered.totals) / np.array(gathered.counts)[:, None]
        self.n_held_out_ = np.array(gathered.counts)
        self.losses_ = np.sum(gathered.totals, axis=0) / self.n_held_out_.sum()
        best = _chosen(self.losses_, self.lambdas_)
        self.lambda_ = float(self.lambdas_[best])
        if gathered.shortfalls:
            warnings.warn(gathered.warning(), ConvergenceWarning, stacklevel=2)
        final: Any = _with(self.solver, name, self.lambda_)
        start = gathered.start(best)
        self.solver_ = final.fit(data) if start is None else final.fit(data, start=start)
        return self

    def predict(self, users: ArrayLike, items: ArrayLike, **options: Any) -> FloatArray:
        """Predictions of the final fit, float64, shape (n,); `options` are those of the solver."""
        return np.asarray(self._fitted().predict(users, items, **options))

    def complete(self, **options: Any) -> FloatArray:
        """The final fit's completed matrix, float64, shape (n_rows, n_columns); `options` are those of the solver."""
        return np.asarray(self._fitted().complete(**options))

    def _fitted(self) -> Any:
        if not hasattr(self, "solver_"):
            raise ValueError("no lambda has been selected yet; call fit(X) first")
        return self.solver_

    def _held_out(self, observed: Observed) -> list[IntArray]:
        if hasattr(self.splits, "held_out"):
            return self.splits.held_out(len(observed), seed=self.seed)
        given = [_positions(each, observed, number) for number, each in enumerate(self.splits)]
        if not given:
            raise ValueError("splits must hold one split at least, got none")
        return given

    def _outcomes(self, data: Data, held_out: Iterable[IntArray]) -> Iterator["_Outcome"]:
        """Outcomes of the splits, in their order."""
        splits = list(held_out)
        jobs = (delayed(_validate)(self.solver, self.lambdas, self.loss, data, cells) for cells in splits)
        disable = None if self.progress is None else not self.progress
        outcomes = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        yield from tqdm(outcomes, total=len(splits), desc="splits", unit="split", disable=disable, leave=False)


@dataclass(frozen=True, eq=False, repr=False)
class _Outcome:
    """What came of one split: total losses by lambda, and at each lambda what a final fit may start from."""

    lambdas: FloatArray
    totals: FloatArray
    count: int
    shortfalls: list[str]  # why fits have not converged
    states: list["_State"]


@dataclass(frozen=True, eq=False, repr=False)
class _State:
    """L of RDMC as categories, which take a quarter of its room, and Theta."""

    choice: NDArray[np.int16]
    centred: FloatArray
    Theta: FloatArray

    @property
    def L(self) -> FloatArray:  # noqa: N802
        """L itself."""
        return self.centred[np.arange(len(self.centred)), self.choice]


class _Gathered:
    """What all splits gave. Of each Theta only the sum is kept."""

    def __init__(self) -> None:
        self.totals: list[FloatArray] = []
        self.counts: list[int] = []
        self.shortfalls: list[str] = []
        self._choices: list[list[tuple[NDArray[np.int16], FloatArray]]] = []
        self._sums: list[FloatArray] = []

    def add(self, outcome: _Outcome) -> None:
        self.lambdas = outcome.lambdas
        self.totals.append(outcome.totals)
        self.counts.append(outcome.count)
        self.shortfalls += outcome.shortfalls[:1]
        self._choices.append([(state.choice, state.centred) for state in outcome.states])
        if not self._sums:
            self._sums = [state.Theta.copy() for state in outcome.states]
        else:
            for total, state in zip(self._sums, outcome.states, strict=True):
                total += state.Theta

    def start(self, at: int) -> tuple[FloatArray, FloatArray] | None:
        """Start of the final fit by the rule of the paper; None where the solver's own is taken."""
        if not self._sums:
            return None
        each = [_State(*states[at], self._sums[at]).L for states in self._choices]
        return np.median(each, axis=0), self._sums[at] / len(each)

    def warning(self) -> str:
        return (
            f"in {len(self.shortfalls)} of {len(self.counts)} splits a fit stopped before it had converged, such as: "
            f"{self.shortfalls[0]}"
        )


def _validate(solver: Solver, lambdas: Any, loss: Any, data: Data, held_out: IntArray) -> _Outcome:
    """Fit what a split leaves, and add up the losses of what it holds out."""
    kept = np.ones(len(data), dtype=bool)
    kept[held_out] = False
    observed = as_observed(data)
    row, column, actual = observed.row[held_out], observed.column[held_out], observed.value[held_out]
    totals, grid, states = [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        for fitted, lam, options in _fits(solver, lambdas, data.select(kept)):
            errors = fitted.predict(row, column, **options) - actual
            totals.append(float(np.sum(_losses(loss, fitted, errors, column))))
            grid.append(lam)
            if isinstance(fitted, RDMC):
                solution = fitted.path_[options["at"]]
                states.append(_State(solution.choice, solution.problem.scales.centred, solution.Theta))
    shortfalls = [str(each.message) for each in caught if issubclass(each.category, ConvergenceWarning)]
    for each in caught:
        if not issubclass(each.category, ConvergenceWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return _Outcome(np.array(grid), np.array(totals), len(held_out), shortfalls, states)


def _fits(solver: Solver, lambdas: Any, data: Data) -> Iterator[tuple[Any, float, dict[str, Any]]]:
    """Fitted solvers of all lambdas: one solver of the whole grid where it takes one."""
    name = _lambda_parameter(solver)
    if name == "lam":
        for lam in np.asarray(lambdas, dtype=np.float64).tolist():
            single: Any = _with(solver, name, lam)
            yield single.fit(data), lam, {}
        return
    of_grid: Any = _with(solver, name, solver.get_params()[name] if lambdas is None else lambdas)
    of_grid.fit(data)
    for at, lam in enumerate(of_grid.lambdas_.tolist()):
        yield of_grid, lam, {"at": at}


def _losses(loss: Any, fitted: Any, errors: FloatArray, items: IntArray) -> FloatArray:
    if callable(loss):
        return np.asarray(loss(errors, items))
    if loss == "absolute":
        return np.abs(errors)
    if loss == "squared" or not hasattr(fitted, "loss_of"):
        return errors**2
    return np.asarray(fitted.loss_of(errors, items))


def _chosen(losses: FloatArray, lambdas: FloatArray) -> int:
    """Position of the lowest loss; of the largest lambda where several are tied."""
    tied = np.flatnonzero(losses <= losses.min() + SAME * abs(losses.min()))
    return int(tied[np.argmax(lambdas[tied])])


def _lambda_parameter(solver: Solver) -> str:
    if not hasattr(solver, "get_params"):
        raise ValueError(f"solver must have get_params, got {type(solver).__name__}; pass RDMC() or SoftImpute()")
    names = solver.get_params(deep=False)
    for name in ("lambdas", "lam"):
        if name in names:
            return name
    raise ValueError(f"solver must have a parameter lambdas or lam, got {type(solver).__name__} without")


def _with(solver: Solver, name: str, value: Any) -> Solver:
    """A solver that is not fitted, with one argument changed."""
    return type(solver)(**(solver.get_params(deep=False) | {name: value}))


def _positions(given: Any, observed: Observed, number: int) -> IntArray:
    """Positions of the cells that a given split holds out, checked."""
    if isinstance(given, Ratings | Observed):
        given = as_observed(given).row, as_observed(given).column
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"splits[{number}] must be Ratings, Observed or a pair (users, items), got {given!r}")
    place = observed.positions(*given)
    missing = np.flatnonzero(place < 0)
    if missing.size:
        cell = int(np.asarray(given[0])[missing[0]]), int(np.asarray(given[1])[missing[0]])
        raise ValueError(f"splits[{number}] must hold out observed cells, got {cell}, which is missing")
    distinct = np.unique(place)
    if len(distinct) != len(place) or not 0 < len(place) < len(observed):
        raise ValueError(
            f"splits[{number}] must hold out each cell once, some and not all, got {len(place)} cells, "
            f"{len(distinct)} of them distinct, of {len(observed)}"
        )
    return distinct
