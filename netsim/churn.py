"""Nodes that come and go: alternating sessions online and offline."""

import math
from dataclasses import dataclass

import numpy as np

from algorithms import purposes
from algorithms.chance import draw, further, uniform
from algorithms.compilation import kernel

__all__ = ["OnOff", "first_online", "session_length"]


@dataclass(frozen=True)
class OnOff:
    """Exponential sessions; a node starts in its stationary state and keeps its profile while it is away.

    Parameters
    ----------
    mean_online, mean_offline : float
        Mean lengths of a session online and of one offline, in seconds, > 0. The share of time online is
        mean_online / (mean_online + mean_offline).
    """

    mean_online: float
    mean_offline: float

    def __post_init__(self) -> None:
        for name in ("mean_online", "mean_offline"):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > 0):
                raise ValueError(f"OnOff: {name} must be a finite number of seconds > 0, got {value!r}")
            object.__setattr__(self, name, float(value))

    @property
    def availability(self) -> float:
        """Stationary share of time online."""
        return self.mean_online / (self.mean_online + self.mean_offline)


@kernel
def first_online(seed, key, mean_online, mean_offline):
    """Whether a node starts online: the stationary state, drawn with session 0."""
    word = further(draw(seed, purposes.SESSION, key, 0), 1)
    return uniform(word) * (mean_online + mean_offline) < mean_online


@kernel
def session_length(seed, key, session, mean):
    """Length of session number `session` of a node, in seconds, exponential with the given mean."""
    return -mean * math.log(uniform(draw(seed, purposes.SESSION, key, session)))
