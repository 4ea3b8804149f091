"""Attacks by fake profiles: who is attacked, what the profiles hold, and what the attack achieves."""

from algorithms.attacks.injection import attacked
from algorithms.attacks.measures import hit_rate, hit_rate_shift, mean_prediction_shift
from algorithms.attacks.profiles import Attack, inject, number_of_profiles
from algorithms.attacks.targets import popular_target, popular_targets, simulated_target

__all__ = [
    "Attack",
    "attacked",
    "hit_rate",
    "hit_rate_shift",
    "inject",
    "mean_prediction_shift",
    "number_of_profiles",
    "popular_target",
    "popular_targets",
    "simulated_target",
]
