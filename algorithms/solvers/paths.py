"""What the solvers of a grid of lambdas share: the solutions along it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from algorithms.solvers.base import Solver
from algorithms.solvers.convergence import ConvergenceWarning

__all__ = ["PathSolution", "PathSolver"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class PathSolution(ABC):
    """What a solver found at one lambda.

    Attributes
    ----------
    lam : float
        Lambda as it stands on the grid.
    penalty : float
        Lambda as it stands in the objective: `lam`, times the largest singular value where the grid is relative.
    objective : float
        What was minimized, at the end.
    history : ndarray of float64, shape (n_iter,)
        That after each iteration.
    n_iter : int
        Iterations made.
    change : float
        Relative change in the last of them, by which convergence is judged.
    converged : bool
    rank : int
        Rank of the matrix of low rank.
    """

    lam: float
    penalty: float
    objective: float
    history: FloatArray
    change: float
    converged: bool

    @property
    def n_iter(self) -> int:
        """Iterations made."""
        return len(self.history)

    @property
    @abstractmethod
    def rank(self) -> int:
        """Rank of the matrix of low rank."""

    def __repr__(self) -> str:
        end = "converged" if self.converged else "stopped"
        return f"{type(self).__name__}(lam={self.lam:.4g}, {end} after {self.n_iter} iterations, rank {self.rank})"


Solution = TypeVar("Solution", bound=PathSolution)


class PathSolver(Solver, Generic[Solution]):
    """A solver that fits the lambdas of a grid, each from the solution of the one before.

    Attributes
    ----------
    lambdas_ : float64, shape (n_lambdas,)
        The grid, in the order in which it is fitted.
    d_max_ : float
        Factor of a relative grid, the largest singular value of the centred matrix; 1 otherwise.
    path_ : tuple
        The solution of each lambda.
    objective_ : float64, shape (n_lambdas,)
    n_iter_ : int64, shape (n_lambdas,)
    converged_ : bool, shape (n_lambdas,)
    centres_ : float64, shape (n_columns,)
        What was taken off each column.
    """

    lambdas_: FloatArray
    d_max_: float
    path_: tuple[Solution, ...]
    objective_: FloatArray
    n_iter_: NDArray[np.int64]
    converged_: NDArray[np.bool_]
    centres_: FloatArray

    def _keep(self, path: Iterable[Solution]) -> None:
        self.path_ = tuple(path)
        self.objective_ = np.array([each.objective for each in self.path_])
        self.n_iter_ = np.array([each.n_iter for each in self.path_])
        self.converged_ = np.array([each.converged for each in self.path_])

    def _warn_unless_converged(self, changed: str, *, max_iter: int, tol: float) -> None:
        """Warn, from within `fit`, of lambdas that have not converged; `changed` says what `change` is a share of."""
        left = [solution for solution in self.path_ if not solution.converged]
        if left:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={max_iter} iterations at lambda "
                f"{', '.join(f'{each.lam:g}' for each in left)}, where an iteration still changed {changed} of up to "
                f"{max(each.change for each in left):.1e} (tol={tol:g}); raise max_iter or tol, or ask for less with "
                "stopping='liberal'",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fitted(self) -> tuple[Solution, ...]:
        if not hasattr(self, "path_"):
            raise ValueError("the solver has no solution yet; call fit(X) first")
        return self.path_

    def _solution(self, at: int | None) -> Solution:
        path = self._fitted()
        n = len(path)
        if at is None and n == 1:
            return path[0]
        if isinstance(at, bool) or not isinstance(at, int | np.integer) or not -n <= at < n:
            raise ValueError(
                f"at must be the position of one of {n} lambdas, from 0 to {n - 1}, got {at!r}; see lambdas_"
            )
        return path[at]
