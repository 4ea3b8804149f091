"""Whom a node can send to: the overlay of contact lists."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import kernel
from algorithms.ratings import Ratings

__all__ = [
    "GivenContacts",
    "HeardUsers",
    "LearnedRouters",
    "RandomRouters",
    "RandomUsers",
    "RatedRouters",
    "Raters",
    "RouterContacts",
    "UserContacts",
]


@dataclass(frozen=True)
class Hosting:
    """What a contact list is made from.

    Attributes
    ----------
    ratings : Ratings
    host : int64, shape (n_items,)
        Router of each item, as an index among the routers.
    user_ids, router_ids : tuple
    user_keys, router_keys : uint64, shape (n_users,) and (n_routers,)
    seed : uint64
    """

    ratings: Ratings
    host: np.ndarray
    user_ids: tuple[Hashable, ...]
    router_ids: tuple[Hashable, ...]
    user_keys: np.ndarray
    router_keys: np.ndarray
    seed: np.uint64


@dataclass(frozen=True)
class RatedRouters:
    """A user's list: the routers of the items he rated."""

    def lists(self, hosting: Hosting) -> list[np.ndarray]:
        """Routers in each user's list, int64, ascending."""
        view = hosting.ratings.by_user
        return [np.unique(hosting.host[view.row(user)[0]]) for user in range(hosting.ratings.n_users)]


@dataclass(frozen=True)
class RandomRouters:
    """A user's list: routers drawn without replacement, independently for each user.

    Parameters
    ----------
    count : int
        Length of each list.
    every : float, optional
        Seconds after which all lists are drawn anew, again and again. Default: never.
    """

    count: int
    every: float | None = None

    def __post_init__(self) -> None:
        _check_redrawn(self)

    def lists(self, hosting: Hosting, number: int = 0, staying: np.ndarray | None = None) -> list[np.ndarray]:
        """Routers in each user's list after `number` redraws, int64, ascending; of those that `staying` marks."""
        _check_enough(self, len(hosting.router_ids), "routers")
        return _drawn(hosting.user_keys, hosting.router_keys, self.count, hosting.seed, number, staying)


@dataclass(frozen=True)
class LearnedRouters:
    """A user's list: empty at first; he looks up the routers of the items that he rated, by messages.

    At each of his ticks a user asks the directories of items whose router he does not know. The directory of an item is
    a router, the same for everybody. The answer puts the item's router into his list; without one he asks again.

    Parameters
    ----------
    timeout : float
        Seconds after which a look-up without an answer is made again.
    at_once : int
        Look-ups at one tick at most.
    """

    timeout: float = 30.0
    at_once: int = 10

    def __post_init__(self) -> None:
        number = isinstance(self.timeout, int | float | np.number) and not isinstance(self.timeout, bool)
        if not number or not 0 < self.timeout < math.inf:
            raise ValueError(f"LearnedRouters: timeout must be a finite number of seconds > 0, got {self.timeout!r}")
        if not isinstance(self.at_once, int | np.integer) or isinstance(self.at_once, bool) or self.at_once < 1:
            raise ValueError(f"LearnedRouters: at_once must be an integer >= 1, got {self.at_once!r}")

    def lists(self, hosting: Hosting) -> list[np.ndarray]:
        """Routers that each user may find, int64, ascending."""
        return RatedRouters().lists(hosting)


@dataclass(frozen=True)
class HeardUsers:
    """A router's list: empty at first; it lists a user who rated a hosted item once it hears of him."""

    def lists(self, hosting: Hosting) -> list[np.ndarray]:
        """Users that each router may list, int64, ascending."""
        return Raters().lists(hosting)


@dataclass(frozen=True)
class RandomUsers:
    """A router's list: users drawn without replacement, independently for each router.

    Parameters
    ----------
    count : int
        Length of each list.
    every : float, optional
        Seconds after which all lists are drawn anew, again and again. Default: never.
    """

    count: int
    every: float | None = None

    def __post_init__(self) -> None:
        _check_redrawn(self)

    def lists(self, hosting: Hosting, number: int = 0, staying: np.ndarray | None = None) -> list[np.ndarray]:
        """Users in each router's list after `number` redraws, int64, ascending; of those that `staying` marks."""
        _check_enough(self, len(hosting.user_ids), "users")
        return _drawn(hosting.router_keys, hosting.user_keys, self.count, hosting.seed, number, staying)


@dataclass(frozen=True)
class Raters:
    """A router's list: the users who rated an item that it hosts.

    Parameters
    ----------
    cap : int, optional
        Longest list; a router with more raters keeps a random choice of this many.
    """

    cap: int | None = None

    def __post_init__(self) -> None:
        if self.cap is not None and (not isinstance(self.cap, int | np.integer) or self.cap < 1):
            raise ValueError(f"Raters: cap must be an integer >= 1 or None, got {self.cap!r}")

    def lists(self, hosting: Hosting) -> list[np.ndarray]:
        """Users in each router's list, int64, ascending."""
        ratings = hosting.ratings
        routers, users = np.divmod(
            np.unique(hosting.host[ratings.item] * ratings.n_users + ratings.user), ratings.n_users
        )
        bounds = np.searchsorted(routers, np.arange(len(hosting.router_ids) + 1))
        lists = [users[bounds[r] : bounds[r + 1]] for r in range(len(hosting.router_ids))]
        if self.cap is None:
            return lists
        return [
            users
            if len(users) <= self.cap
            else users[_smallest(hosting.router_keys[router], hosting.user_keys[users], self.cap, hosting.seed)]
            for router, users in enumerate(lists)
        ]


@dataclass(frozen=True, init=False)
class GivenContacts:
    """Lists as given, for users (naming routers) or for routers (naming users).

    Parameters
    ----------
    lists : mapping of id to an iterable of ids
        A node that is not named has an empty list.
    """

    given: tuple[tuple[Hashable, tuple[Hashable, ...]], ...] = field(repr=False)

    def __init__(self, lists: Mapping[Hashable, Iterable[Hashable]]) -> None:
        object.__setattr__(
            self, "given", tuple(sorted(((name, tuple(contacts)) for name, contacts in lists.items()), key=repr))
        )

    def between(self, owners: tuple, contacts: tuple, role: str, other: str) -> list[np.ndarray]:
        """Contacts of each owner, int64, ascending, as indices into `contacts`."""
        owner_index = {name: number for number, name in enumerate(owners)}
        contact_index = {name: number for number, name in enumerate(contacts)}
        lists = [np.empty(0, dtype=np.int64)] * len(owners)
        for name, chosen in self.given:
            if name not in owner_index:
                raise ValueError(f"GivenContacts: {name!r} is not a {role}; the {role}s are {_some(owners)}")
            for contact in chosen:
                if contact not in contact_index:
                    raise ValueError(
                        f"GivenContacts: {contact!r} in the list of {role} {name!r} is not a {other}; "
                        f"the {other}s are {_some(contacts)}"
                    )
            lists[owner_index[name]] = np.unique(np.array([contact_index[c] for c in chosen], dtype=np.int64))
        return lists


UserContacts = RatedRouters | RandomRouters | LearnedRouters | GivenContacts
RouterContacts = Raters | RandomUsers | HeardUsers | GivenContacts


def _check_redrawn(contacts: "RandomRouters | RandomUsers") -> None:
    name, every = type(contacts).__name__, contacts.every
    if not isinstance(contacts.count, int | np.integer) or isinstance(contacts.count, bool) or contacts.count < 1:
        raise ValueError(f"{name}: count must be an integer >= 1, got {contacts.count!r}")
    if every is not None and (
        not isinstance(every, int | float | np.number) or isinstance(every, bool) or not 0 < every < math.inf
    ):
        raise ValueError(f"{name}: every must be a finite number of seconds > 0, or None for never, got {every!r}")


def _check_enough(contacts: "RandomRouters | RandomUsers", n_others: int, others: str) -> None:
    if contacts.count > n_others:
        name = type(contacts).__name__
        raise ValueError(f"{name}: count is {contacts.count}, but there are only {n_others} {others}")


def _drawn(
    owners: np.ndarray, others: np.ndarray, count: int, seed: np.uint64, number: int, staying: np.ndarray | None
) -> list[np.ndarray]:
    """For each owner, the indices of `count` others with the smallest draws, ascending."""
    there = np.arange(len(others)) if staying is None else np.flatnonzero(staying)
    return [there[_smallest(key, others[there], count, seed, number)] for key in owners]


def _smallest(key: np.uint64, others: np.ndarray, count: int, seed: np.uint64, number: int = 0) -> np.ndarray:
    """Indices of the `count` others whose pair with `key` has the smallest draw, ascending."""
    words = np.empty(len(others), dtype=np.uint64)
    _pair_draws(key, others, seed, number, words)
    return np.sort(np.argsort(words, kind="stable")[:count])


@kernel
def _pair_draws(key, others, seed, number, words):
    for n in range(others.shape[0]):
        words[n] = draw(seed, purposes.CONTACTS, combine(key, others[n]), number)


def _some(names: tuple) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
