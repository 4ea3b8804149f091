"""Synthetic ratings with a known truth."""

from algorithms.synthetic.low_rank import LowRank, low_rank

__all__ = ["LowRank", "low_rank"]
