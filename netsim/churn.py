"""Nodes that come and go: alternating sessions online and offline."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from algorithms.distributions import Distribution, as_distribution
from netsim.topology._checks import as_number

__all__ = ["Checkpoint", "Diurnal", "OnOff", "Sessions"]

STARTS = ("stationary", "online", "offline")


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


@dataclass(frozen=True)
class Diurnal:
    """A rhythm of the day: around the peak sessions online last longer and sessions offline end sooner.

    At time t let c = cos(2 pi (t - peak) / day). The rate at which an offline session ends, which its distribution
    gives, is multiplied by 1 + amplitude * c; the rate at which an online one ends by 1 - amplitude * c.

    Parameters
    ----------
    amplitude : float
        0 <= amplitude < 1; 0 is no rhythm.
    peak : float
        Second of the day at which nodes are most present, 0 <= peak < day. Time 0 of the run is second 0 of a day.
    day : float
        Seconds in a day, > 0.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    amplitude: float
    peak: float
    day: float = 86400.0

    def __post_init__(self) -> None:
        amplitude, peak, day = map(as_number, (self.amplitude, self.peak, self.day))
        if not 0 <= amplitude < 1:
            raise ValueError(
                f"Diurnal: amplitude must be in [0, 1), got {self.amplitude!r}; pass a fraction, for instance 0.5"
            )
        if not 0 < day < math.inf:
            raise ValueError(
                f"Diurnal: day must be a finite number of seconds > 0, got {self.day!r}; pass for instance 86400"
            )
        if not 0 <= peak < day:
            raise ValueError(
                f"Diurnal: peak must be a second of the day, in [0, {day:g}), got {self.peak!r}; "
                "pass for instance 72000 for 20:00 of a day of 86400 s"
            )
        for name, value in (("amplitude", amplitude), ("peak", peak), ("day", day)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Sessions:
    """Sessions online and offline, in turn, whose lengths are drawn; a node keeps its profile while it is away.

    Parameters
    ----------
    online, offline : Distribution or float
        Lengths of the sessions in seconds; a number is a fixed length. Never negative, and not always 0.
    correlation : float
        Of consecutive sessions of the same kind, an online one with the online one before it, in [0, 1). It is the
        correlation of the normal numbers of a first-order autoregression (a Gaussian copula) from which the lengths
        are made; so lengths keep their distribution, and their rank correlation is (6 / pi) asin(correlation / 2).
        Measured peers do have it: who stayed long tends to stay long again (Stutzbach and Rejaie, IMC 2006).
    diurnal : Diurnal, optional
        A rhythm of the day.
    start : {"stationary", "online", "offline"}
        State at time 0. "stationary": as if the node had come and gone forever; it is online with probability
        `availability`, and in the middle of a session. "online", "offline": a session of that kind begins.

    Raises
    ------
    ValueError
        If an argument is out of range, the lengths can be negative or are always 0, lengths that are not sampled by
        inversion (`Gamma`) are to be correlated, or the start is to be stationary where a mean is infinite.
    """

    online: Distribution | float
    offline: Distribution | float
    _: KW_ONLY
    correlation: float = 0.0
    diurnal: Diurnal | None = None
    start: Literal["stationary", "online", "offline"] = "stationary"

    def __post_init__(self) -> None:
        for name in ("online", "offline"):
            object.__setattr__(self, name, _as_lengths(getattr(self, name), f"Sessions: {name}"))
        correlation = as_number(self.correlation)
        if not 0 <= correlation < 1:
            raise ValueError(
                f"Sessions: correlation must be in [0, 1), got {self.correlation!r}; pass for instance 0.5, or 0 for "
                "independent sessions"
            )
        object.__setattr__(self, "correlation", correlation)
        if not isinstance(self.diurnal, Diurnal | None):
            raise ValueError(
                f"Sessions: diurnal must be Diurnal or None, got {self.diurnal!r}; pass for instance "
                "Diurnal(amplitude=0.5, peak=72000)"
            )
        if self.start not in STARTS:
            raise ValueError(f"Sessions: start must be one of {', '.join(map(repr, STARTS))}, got {self.start!r}")
        self._check_lengths()

    def _check_lengths(self) -> None:
        for name in ("online", "offline"):
            lengths = getattr(self, name)
            if self.correlation > 0 and not lengths.is_inversion:
                raise ValueError(
                    f"Sessions: {name} must be sampled by inversion where correlation > 0, got {lengths!r}; use "
                    "Weibull, LogNormal or Empirical, or pass correlation=0"
                )
            if self.start == "stationary" and math.isinf(lengths.expectation()):
                raise ValueError(
                    f"Sessions: {name} must have a finite mean for start='stationary', got {lengths!r}; use another "
                    "distribution (Pareto with shape > 1), or pass start='online' or start='offline'"
                )

    @property
    def availability(self) -> float:
        """Share of time online in the long run, without the rhythm; NaN where both means are infinite."""
        online, offline = (as_distribution(each, name="").expectation() for each in (self.online, self.offline))
        if math.isinf(online):
            return math.nan if math.isinf(offline) else 1.0
        return 0.0 if math.isinf(offline) else 1 / (1 + offline / online)


def _as_lengths(value: Distribution | float, name: str) -> Distribution:
    """Take a distribution of lengths of sessions, or a number of seconds as a fixed one."""
    lengths = as_distribution(value, name=name)
    if lengths.lowest() < 0:
        raise ValueError(
            f"{name} must not give negative lengths, got {value!r}, which reaches {lengths.lowest():g}; use for "
            "instance LogNormal or Weibull"
        )
    if lengths.expectation() == 0:
        raise ValueError(f"{name} must give lengths > 0 seconds, got {value!r}, which is always 0; pass longer ones")
    return lengths


@dataclass(frozen=True)
class Checkpoint:
    """A node that returns has what its last checkpoint holds; what it learned since then is gone.

    Parameters
    ----------
    interval : float
        Seconds between two checkpoints of a node, > 0.

    Raises
    ------
    ValueError
        If the interval is out of range.
    """

    interval: float

    def __post_init__(self) -> None:
        interval = as_number(self.interval)
        if not 0 < interval < math.inf:
            raise ValueError(
                f"Checkpoint: interval must be a finite number of seconds > 0, got {self.interval!r}; pass for "
                "instance 600"
            )
        object.__setattr__(self, "interval", interval)
