"""Synthetic ratings with a known truth, which of them are missing, and what their noise allows."""

from algorithms.synthetic.low_rank import LowRank, low_rank
from algorithms.synthetic.missing import missing_completely_at_random, missing_not_at_random
from algorithms.synthetic.noise import noise_weight, oracle_rate
from algorithms.synthetic.recommender import BREAKPOINTS, Recommender, recommender
from algorithms.synthetic.survey import Survey, abandoned, careless, survey

__all__ = [
    "BREAKPOINTS",
    "LowRank",
    "Recommender",
    "Survey",
    "abandoned",
    "careless",
    "low_rank",
    "missing_completely_at_random",
    "missing_not_at_random",
    "noise_weight",
    "oracle_rate",
    "recommender",
    "survey",
]
