"""Figures of runs. Each function takes `ax=None`, draws on it and returns it."""

from netsim.plots.convergence import convergence

__all__ = ["convergence"]
