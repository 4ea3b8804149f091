"""Ratings, users and items that come while a network runs."""

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from algorithms.chance import seed_word
from algorithms.ratings import Ratings

__all__ = ["Arrivals"]

Join = Literal["first_rating", "start"]


@dataclass(frozen=True, eq=False, repr=False)
class Arrivals:
    """When each rating of a world is given.

    Usually made by `replay`, `drawn` or `of_users`. A user with no rating from the start joins the network with his
    first one, and so does an item.

    Parameters
    ----------
    times : float64, shape (n_ratings,)
        Simulated seconds at which each rating of the world's `ratings` is given, in their order. Those at 0 or before
        are there from the start; those at infinity come only if a script adds them.
    changes : sequence of (time, rating, value)
        Ratings that are changed: seconds > 0, its number in the order of the world's ratings, and its new value.
    join : {"first_rating", "start"}
        When users and items without a rating join: with their first one, or at the start.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """

    times: np.ndarray
    changes: tuple[tuple[float, int, float], ...] = ()
    join: Join = "first_rating"

    def __post_init__(self) -> None:
        times = np.array(self.times, dtype=np.float64)
        if times.ndim != 1 or len(times) == 0 or np.isnan(times).any():
            raise ValueError(
                f"Arrivals: times must be a 1-d array of seconds, one for each rating, got shape {times.shape}"
                + (" with NaN in it" if np.isnan(times).any() else "")
            )
        times.flags.writeable = False
        object.__setattr__(self, "times", times)
        if self.join not in ("first_rating", "start"):
            raise ValueError(f"Arrivals: join must be 'first_rating' or 'start', got {self.join!r}")
        for change in self.changes:
            if not isinstance(change, tuple | list) or len(change) != 3:
                raise ValueError(
                    f"Arrivals: changes must hold triples (seconds, number of a rating, value), got {change!r}"
                )
        changes = tuple((float(time), int(which), float(value)) for time, which, value in self.changes)
        for time, which, value in changes:
            if not (0 < time < math.inf and 0 <= which < len(times) and math.isfinite(value)):
                raise ValueError(
                    f"Arrivals: changes must hold (seconds > 0, number of a rating below {len(times)}, value), got "
                    f"{(time, which, value)!r}"
                )
        object.__setattr__(self, "changes", tuple(sorted(changes)))

    @classmethod
    def replay(cls, ratings: Ratings, *, span: float, known: float = 0.0, join: Join = "first_rating") -> "Arrivals":
        """Replay ratings in the order of their own timestamps, compressed to a simulated span.

        Parameters
        ----------
        ratings : Ratings
            Those of the world, with timestamps.
        span : float
            Simulated seconds from the first arrival, just after time 0, to the last. A run until then leaves out what
            happens at its end: run a little longer.
        known : float
            Share of the ratings, the earliest, that is there from the start, in [0, 1).
        join : {"first_rating", "start"}

        Raises
        ------
        ValueError
            If the ratings have no timestamps, or a number is out of range.
        """
        if ratings.timestamp is None:
            raise ValueError(
                "replay needs ratings with timestamps, got some without; pass timestamps= to Ratings.from_arrays"
            )
        _check_span("replay", span)
        n_known = _number_known("replay", known, len(ratings))
        stamps = ratings.timestamp
        order = np.argsort(stamps, kind="stable")
        late = order[n_known:]
        if len(late) == 0:
            return cls(np.zeros(len(ratings)), join=join)
        first, last = stamps[late[0]], stamps[late[-1]]
        times = np.zeros(len(ratings))
        # A little after 0, where 0 means "from the start".
        share = (stamps[late] - first) / (last - first) if last > first else np.ones(len(late))
        times[late] = np.maximum(share * span, span * 1e-9)
        return cls(times, join=join)

    @classmethod
    def drawn(
        cls, ratings: Ratings, *, span: float, seed: Any, known: float = 0.0, join: Join = "first_rating"
    ) -> "Arrivals":
        """Ratings in random order at uniformly random times: a Poisson process, given how many come.

        Parameters
        ----------
        ratings : Ratings
        span : float
            Simulated seconds within which they come.
        seed : int or anything `numpy.random.default_rng` takes
        known : float
            Share of the ratings that is there from the start, in [0, 1).
        join : {"first_rating", "start"}
        """
        _check_span("drawn", span)
        rng = np.random.default_rng(seed_word(seed))
        times = span * (1.0 - rng.random(len(ratings)))
        times[rng.permutation(len(ratings))[: _number_known("drawn", known, len(ratings))]] = 0.0
        return cls(times, join=join)

    @classmethod
    def of_users(cls, ratings: Ratings, users: Any, *, at: float) -> "Arrivals":
        """Let some users join with all their ratings at one time; the others are there from the start.

        Parameters
        ----------
        ratings : Ratings
        users : iterable of user ids
        at : float
            Simulated seconds, > 0.
        """
        _check_span("of_users", at, "at")
        index = {name: number for number, name in enumerate(ratings.user_ids)}
        if isinstance(users, str):
            raise ValueError(f"of_users: users must be a list of ids, got the text {users!r}; pass [{users!r}]")
        chosen = list(users)
        for name in chosen:
            if name not in index:
                raise ValueError(f"of_users: users names {name!r}, which is not a user of these ratings")
        late = np.isin(ratings.user, [index[name] for name in chosen])
        return cls(np.where(late, float(at), 0.0))

    def with_changes(self, ratings: Ratings, *, share: float, span: float, seed: Any) -> "Arrivals":
        """Let a share of the ratings be changed once, each to another value of the data.

        A change comes at a uniformly random time between the arrival of the rating and the end of the span.

        Parameters
        ----------
        ratings : Ratings
        share : float
            In [0, 1].
        span : float
            Simulated seconds.
        seed : int or anything `numpy.random.default_rng` takes
        """
        _check_span("with_changes", span)
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 1:
            raise ValueError(f"with_changes: share must be in [0, 1], got {share!r}; pass a fraction, not a percentage")
        if len(ratings) != len(self.times):
            raise ValueError(
                f"with_changes: ratings must be the {len(self.times)} that these arrivals were made from, got "
                f"{len(ratings)}"
            )
        rng = np.random.default_rng(seed_word(seed))
        values = np.unique(ratings.value)
        candidates = np.flatnonzero(self.times < span)
        chosen = np.sort(rng.permutation(candidates)[: round(share * len(candidates))])
        changes = []
        for which in chosen.tolist():
            begun = max(0.0, float(self.times[which]))
            others = values[values != ratings.value[which]]
            if len(others):
                time = begun + (span - begun) * (1.0 - rng.random())
                changes.append((time, which, float(rng.choice(others))))
        return Arrivals(self.times, self.changes + tuple(changes), self.join)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content in hexadecimal."""
        content = hashlib.sha256(self.times.astype("<f8").tobytes())
        content.update(repr((self.changes, self.join)).encode())
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrivals) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        late = self.times[(self.times > 0) & np.isfinite(self.times)]
        told = f" from {late.min():g} s to {late.max():g} s" if len(late) else ""
        return f"Arrivals({len(late)} of {len(self.times)} ratings{told}, {len(self.changes)} changes)"


def _check_span(name: str, value: Any, argument: str = "span") -> None:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name}: {argument} must be a finite number of seconds > 0, got {value!r}")


def _number_known(name: str, known: Any, n_ratings: int) -> int:
    if not isinstance(known, int | float) or isinstance(known, bool) or not 0 <= known < 1:
        raise ValueError(f"{name}: known must be in [0, 1), got {known!r}; pass a fraction, not a percentage")
    return round(known * n_ratings)
