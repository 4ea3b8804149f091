"""Centralized solvers: what can be had from the same ratings by one machine that sees them all.

They follow scikit-learn: `__init__` stores, `fit` checks and returns the solver, fitted names end in `_`.
"""

from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.observed import Observed, as_observed
from algorithms.solvers.rdmc import RDMC, RDMCSolution

__all__ = ["RDMC", "AlternatingLeastSquares", "ConvergenceWarning", "Observed", "RDMCSolution", "as_observed"]
