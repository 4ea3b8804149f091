"""When a run has come far enough: a target met, or a plateau reached; also as rules that end a run."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

__all__ = ["Milestone", "Plateau", "StopRule", "Target"]


@dataclass(frozen=True)
class Milestone:
    """When a rule was first met, and what the network had spent by then.

    Attributes
    ----------
    rule : str
        The rule in words.
    reached : bool
    time : float
        Simulated seconds; NaN where it was not reached, as the others are.
    messages : float
        Messages sent.
    bytes : float
        Bytes sent.
    updates : float
        Updates of profiles.
    value : float
        The metric then; where the rule was not met, its best value.
    """

    rule: str
    reached: bool
    time: float
    messages: float
    bytes: float
    updates: float
    value: float

    def __str__(self) -> str:
        if not self.reached:
            return f"{self.rule}: not reached (best {self.value:.4g})"
        return (
            f"{self.rule}: after {self.time:g} s, {self.messages:,.0f} messages, {self.bytes:,.0f} bytes, "
            f"{self.updates:,.0f} updates ({self.value:.4g})"
        )


class StopRule(Protocol):
    """A rule over the probe table: `Target`, `Plateau`, or one's own."""

    def find(self, probes: pd.DataFrame) -> Milestone:
        """When the rule was first met."""
        ...


@dataclass(frozen=True)
class Target:
    """A metric is at or beyond a value.

    Parameters
    ----------
    metric : str
        Column of the probe table.
    at_most : float, optional
        The target of an error, where less is better.
    at_least : float, optional
        The target of a gain (recall, coverage), where more is better. One of the two is given.

    Raises
    ------
    ValueError
        If not one of the two is given, as a number.
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        _check_metric("Target", self.metric)
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(
                f"Target: give at_most or at_least, got at_most={self.at_most!r} and at_least={self.at_least!r}"
            )
        for name in ("at_most", "at_least"):
            value = getattr(self, name)
            if value is not None and not _is_finite(value):
                raise ValueError(f"Target: {name} must be a finite number, got {value!r}")

    def __str__(self) -> str:
        if self.at_most is not None:
            return f"{self.metric} <= {self.at_most:g}"
        return f"{self.metric} >= {self.at_least:g}"

    def find(self, probes: pd.DataFrame) -> Milestone:
        """When the metric first met the target, at a probe.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        values = _values(probes, self.metric)
        met = values <= self.at_most if self.at_most is not None else values >= self.at_least
        return _milestone(str(self), probes, values, met, lower=self.at_most is not None)


@dataclass(frozen=True)
class Plateau:
    """A metric no longer improves: over a window its best value got better by less than a tolerance.

    Parameters
    ----------
    metric : str
        Column of the probe table.
    window : float
        Simulated seconds, > 0.
    tolerance : float
        In the metric's unit, > 0.
    higher : bool
        Whether more is better, as for recall.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    metric: str
    window: float
    tolerance: float
    higher: bool = False

    def __post_init__(self) -> None:
        _check_metric("Plateau", self.metric)
        for name, unit in (("window", "seconds > 0"), ("tolerance", "the metric's unit > 0")):
            value = getattr(self, name)
            if not _is_finite(value) or value <= 0:
                raise ValueError(f"Plateau: {name} must be a finite number of {unit}, got {value!r}")

    def __str__(self) -> str:
        return f"{self.metric} improves by less than {self.tolerance:g} in {self.window:g} s"

    def find(self, probes: pd.DataFrame) -> Milestone:
        """When the metric first stood still, at a probe.

        At a probe at time t, the best value until t is compared with the best until the last probe at or before
        t - window; where there is no such probe yet, nothing is said.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        values = _values(probes, self.metric)
        time = probes["time"].to_numpy(dtype=float)
        gain = values if self.higher else -values
        best = np.fmax.accumulate(gain) if len(gain) else gain  # fmax passes over NaN
        before = np.searchsorted(time, time - self.window, side="right") - 1
        with np.errstate(invalid="ignore"):  # inf - inf: a metric that stays infinite stands nowhere
            met = (before >= 0) & (best - best[before] < self.tolerance)
        return _milestone(str(self), probes, values, met, lower=not self.higher)


def _values(probes: pd.DataFrame, metric: str) -> np.ndarray:
    if metric not in probes.columns:
        raise ValueError(
            f"metric must be a column of the probe table, got {metric!r}; it has "
            f"{', '.join(map(str, probes.columns)) or 'no columns, as nothing was measured'}"
        )
    return probes[metric].to_numpy(dtype=float)


def _milestone(rule: str, probes: pd.DataFrame, values: np.ndarray, met: np.ndarray, *, lower: bool) -> Milestone:
    if not met.any():
        known = values[~np.isnan(values)]
        best = math.nan if not len(known) else known.min() if lower else known.max()
        return Milestone(rule, False, math.nan, math.nan, math.nan, math.nan, float(best))
    first = int(met.argmax())
    row = probes.iloc[first]
    updates = row["user_updates"] + row["item_updates"]
    spent = (row["time"], row["sent"], row["bytes_sent"], updates)
    time, messages, size, updates = (float(each) for each in spent)
    return Milestone(rule, True, time, messages, size, updates, float(values[first]))


def _check_metric(rule: str, metric: object) -> None:
    if not isinstance(metric, str) or not metric:
        raise ValueError(f"{rule}: metric must name a column of the probe table, such as 'test_rmse', got {metric!r}")


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
