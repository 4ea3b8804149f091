"""Centralized solvers: what can be had from the same ratings by one machine that sees them all.

They follow scikit-learn: `__init__` stores, `fit` checks and returns the solver, fitted names end in `_`.
"""

from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.baselines import Baseline
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.factorization import StochasticGradientDescent
from algorithms.solvers.grids import fraction_grid, multiplicative_grid
from algorithms.solvers.observed import Observed, as_observed
from algorithms.solvers.rdmc import RDMC, RDMCSolution
from algorithms.solvers.selection import KFold, LambdaSelection, RepeatedHoldout
from algorithms.solvers.soft_impute import SoftImpute, SoftImputeSolution

__all__ = [
    "RDMC",
    "AlternatingLeastSquares",
    "Baseline",
    "ConvergenceWarning",
    "KFold",
    "LambdaSelection",
    "Observed",
    "RDMCSolution",
    "RepeatedHoldout",
    "SoftImpute",
    "SoftImputeSolution",
    "StochasticGradientDescent",
    "as_observed",
    "fraction_grid",
    "multiplicative_grid",
]
