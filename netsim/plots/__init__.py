"""Figures of runs. Each function takes `ax=None`, draws on it and returns it."""

from netsim.plots.convergence import convergence
from netsim.plots.topology import topology

__all__ = ["convergence", "topology"]
