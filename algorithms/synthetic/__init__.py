"""Synthetic ratings with a known truth, and what their noise allows."""

from algorithms.synthetic.low_rank import LowRank, low_rank
from algorithms.synthetic.noise import noise_weight, oracle_rate

__all__ = ["LowRank", "low_rank", "noise_weight", "oracle_rate"]
