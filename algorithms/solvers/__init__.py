"""Centralized solvers: what can be had from the same ratings by one machine that sees them all.

They follow scikit-learn: `__init__` stores, `fit` checks and returns the solver, fitted names end in `_`.
"""

from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.convergence import ConvergenceWarning

__all__ = ["AlternatingLeastSquares", "ConvergenceWarning"]
