"""What a profile is and how it learns: rank, regularization, learning rate, initial values."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from algorithms import purposes, updates
from algorithms.chance import draw
from algorithms.compilation import kernel
from algorithms.distributions import Distribution, Uniform, as_distribution, compile_distributions, sample

__all__ = ["Learning", "Schedule", "initial_profiles"]


@dataclass(frozen=True)
class Schedule:
    """How a profile's learning rate falls with its own age; no node knows a global epoch.

    Parameters
    ----------
    form : {"constant", "inverse", "exponential"}
        rate, rate / (1 + age / half_life) or rate * 2**(-age / half_life).
    half_life : float
        Age at which the rate is half the initial one.
    age : {"updates", "passes"}
        The profile's own updates, or those divided by the number of ratings known for it (its local passes).
    """

    form: Literal["constant", "inverse", "exponential"] = "constant"
    half_life: float = math.inf
    age: Literal["updates", "passes"] = "passes"

    def __post_init__(self) -> None:
        if self.form not in _FORMS:
            raise ValueError(f"Schedule: form must be one of {', '.join(_FORMS)}, got {self.form!r}")
        if self.age not in ("updates", "passes"):
            raise ValueError(f"Schedule: age must be 'updates' or 'passes', got {self.age!r}")
        if not self.half_life > 0:
            raise ValueError(f"Schedule: half_life must be > 0 {self.age}, got {self.half_life!r}")
        if self.form != "constant" and math.isinf(self.half_life):
            raise ValueError(
                f"Schedule: half_life must be finite with form={self.form!r}; give it, or use form='constant'"
            )


_FORMS = {"constant": updates.CONSTANT, "inverse": updates.INVERSE, "exponential": updates.EXPONENTIAL}
_RULES = {"per_message": updates.PER_MESSAGE, "uniform": updates.UNIFORM}


@dataclass(frozen=True)
class Learning:
    """How profiles start and learn; shared by the network and by the sequential form.

    Parameters
    ----------
    rank : int
        Length of a profile.
    lam : float
        Weight lambda of the regularization, >= 0.
    regularization : {"per_message", "uniform"}
        `per_message` is the literal equations (3) and (4) of the paper; `uniform` divides `lam` by the number of
        ratings known for the profile, which makes the stationary point that of objective (1).
    rate : float or Distribution
        Initial learning rate; a distribution draws one for each node.
    schedule : Schedule
        How the rate falls with the node's own updates.
    initial : Distribution, optional
        Distribution of the entries of a fresh profile. Default: uniform on (0, 2 sqrt(c / rank)) with c the
        middle of the rating scale, so that a fresh prediction is c on average; where c <= 0, uniform on (-w, w)
        with w = sqrt((high - low) / rank) / 2.
    """

    rank: int = 10
    lam: float = 0.05
    regularization: Literal["per_message", "uniform"] = "per_message"
    rate: Distribution | float = 0.02
    schedule: Schedule = Schedule()
    initial: Distribution | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.rank, int | np.integer) or isinstance(self.rank, bool) or self.rank < 1:
            raise ValueError(f"rank must be an integer >= 1, got {self.rank!r}")
        if not (isinstance(self.lam, int | float | np.number) and math.isfinite(self.lam) and self.lam >= 0):
            raise ValueError(f"lam must be a finite number >= 0, got {self.lam!r}")
        if self.regularization not in _RULES:
            raise ValueError(f"regularization must be 'per_message' or 'uniform', got {self.regularization!r}")
        if not isinstance(self.schedule, Schedule):
            raise ValueError(f"schedule must be a Schedule, got {self.schedule!r}; for example Schedule('inverse', 20)")
        object.__setattr__(self, "rank", int(self.rank))
        object.__setattr__(self, "lam", float(self.lam))
        object.__setattr__(self, "rate", as_distribution(self.rate, name="rate", least=0.0))
        if self.initial is not None:
            object.__setattr__(self, "initial", as_distribution(self.initial, name="initial"))

    def initial_for(self, low: float, high: float) -> Distribution:
        """Distribution of a fresh profile's entries for ratings on the scale from `low` to `high`."""
        if self.initial is not None:
            return self.initial
        middle = (low + high) / 2
        if middle > 0:
            return Uniform(0.0, 2.0 * math.sqrt(middle / self.rank))
        width = math.sqrt((high - low) / self.rank) / 2
        return Uniform(-width, width)

    def codes(self) -> dict[str, Any]:
        """The rule and the schedule as the kernels read them."""
        return {
            "lam": self.lam,
            "regularization": _RULES[self.regularization],
            "schedule": _FORMS[self.schedule.form],
            "half_life": self.schedule.half_life,
            "per_pass": self.schedule.age == "passes",
        }


def initial_profiles(
    keys: np.ndarray, learning: Learning, scale: tuple[float, float], *, seed: np.uint64
) -> np.ndarray:
    """Fresh profiles, float64, shape (n, rank), one per key: the draws of each profile's first incarnation.

    Parameters
    ----------
    keys : uint64, shape (n,)
        Keys of the profiles, from `chance.entity_keys`.
    learning : Learning
    scale : (float, float)
        Lowest and highest rating.
    seed : uint64
        Word of the run's seed, from `chance.seed_word`.
    """
    rows, pool = compile_distributions([learning.initial_for(*scale)])
    profiles = np.empty((len(keys), learning.rank))
    for profile, key in zip(profiles, keys, strict=True):
        fill_profile(profile, rows, pool, 0, seed, key, 0)
    return profiles


@kernel
def fill_profile(profile, rows, pool, which, seed, key, incarnation):
    """Fill one profile with the draws of its incarnation number (0 first, +1 at each reset)."""
    rank = profile.shape[0]
    for k in range(rank):
        word = draw(seed, purposes.INITIAL_PROFILE, key, np.uint64(incarnation) * np.uint64(1 << 32) + np.uint64(k))
        profile[k] = sample(rows, pool, which, word)
