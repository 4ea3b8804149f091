"""When a node broadcasts: timers with a period and a phase, or Poisson."""

import math
from dataclasses import dataclass

import numpy as np

from algorithms import purposes
from algorithms.chance import draw, uniform
from algorithms.compilation import kernel
from algorithms.distributions import Distribution, as_distribution

__all__ = ["Periodic", "Poisson", "Timer", "as_timer", "first_tick", "next_tick"]


@dataclass(frozen=True)
class Periodic:
    """Ticks at phase, phase + period, phase + 2 period and so on.

    Parameters
    ----------
    period : float or Distribution
        Seconds between two ticks, > 0; a distribution draws one for each node.
    phase : float or Distribution, optional
        Time of the first tick in seconds, >= 0. Default: drawn uniformly from (0, period) for each node.
    """

    period: Distribution | float
    phase: Distribution | float | None = None

    def __post_init__(self) -> None:
        period = as_distribution(self.period, name="Periodic: period", least=0.0)
        if period.parameters() == (0.0, 0.0) and not period.values():
            raise ValueError("Periodic: period must be > 0 seconds, got 0")
        object.__setattr__(self, "period", period)
        if self.phase is not None:
            object.__setattr__(self, "phase", as_distribution(self.phase, name="Periodic: phase", least=0.0))


@dataclass(frozen=True)
class Poisson:
    """Ticks with independent exponential gaps.

    Parameters
    ----------
    mean_gap : float
        Mean seconds between two ticks, > 0.
    """

    mean_gap: float

    def __post_init__(self) -> None:
        if not (
            isinstance(self.mean_gap, int | float | np.number) and math.isfinite(self.mean_gap) and self.mean_gap > 0
        ):
            raise ValueError(f"Poisson: mean_gap must be a finite number of seconds > 0, got {self.mean_gap!r}")
        object.__setattr__(self, "mean_gap", float(self.mean_gap))


Timer = Periodic | Poisson


def as_timer(value: Timer | float, *, name: str) -> Timer:
    """Take a timer, or a number of seconds as the period of one."""
    if isinstance(value, Periodic | Poisson):
        return value
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and value > 0:
        return Periodic(float(value))
    raise ValueError(f"{name} must be a period in seconds > 0, Periodic or Poisson, got {value!r}")


@kernel
def first_tick(seed, key, poisson, period, phase):
    """Time of tick 0 in seconds: `phase` for a periodic timer, an exponential gap for a Poisson one."""
    if poisson:
        return -period * math.log(uniform(draw(seed, purposes.TIMER_GAP, key, 0)))
    return phase


@kernel
def next_tick(seed, key, poisson, period, phase, tick, previous):
    """Time in seconds of tick number `tick` >= 1, where the one before was at `previous`.

    A periodic tick is `phase + tick * period`, never an accumulated sum.
    """
    if poisson:
        return previous - period * math.log(uniform(draw(seed, purposes.TIMER_GAP, key, tick)))
    return phase + np.float64(tick) * period
