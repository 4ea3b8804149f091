"""Users who ask for recommendations while the network runs."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.ratings import Ratings
from netsim.state import ATTEMPTS

__all__ = ["Recommendations"]


@dataclass(frozen=True)
class Recommendations:
    """Each user asks for the profile of an item now and then, and predicts his rating of it (seed paper, section 3).

    Parameters
    ----------
    targets : Ratings
        The pairs that may be asked for, such as a test set; each request takes one of the user's own, drawn anew. The
        values serve to tell the error of what is predicted. Users without a target ask for nothing.
    mean_gap : float
        Mean seconds between two requests of a user: Poisson. Infinite: only scripts ask (`Simulation.request`).
    timeout : float
        Seconds after which a user asks again.
    retries : int
        How often he asks again, 0 to 15.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """

    targets: Ratings = field(repr=False)
    mean_gap: float
    timeout: float = 5.0
    retries: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.targets, Ratings):
            raise ValueError(f"Recommendations: targets must be a Ratings, got {type(self.targets).__name__}")
        for name in ("mean_gap", "timeout"):
            value: Any = getattr(self, name)
            if name == "mean_gap" and value == math.inf:
                continue
            if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 < value < math.inf:
                raise ValueError(f"Recommendations: {name} must be a finite number of seconds > 0, got {value!r}")
            object.__setattr__(self, name, float(value))
        retries: Any = self.retries
        if not isinstance(retries, int | np.integer) or isinstance(retries, bool) or not 0 <= retries < ATTEMPTS:
            raise ValueError(f"Recommendations: retries must be an integer from 0 to {ATTEMPTS - 1}, got {retries!r}")
