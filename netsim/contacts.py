"""Whom a node can send to: the overlay of contact lists."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import kernel
from algorithms.ratings import Ratings

__all__ = ["GivenContacts", "RandomRouters", "RatedRouters", "Raters", "RouterContacts", "UserContacts"]


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
    """

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int | np.integer) or self.count < 1:
            raise ValueError(f"RandomRouters: count must be an integer >= 1, got {self.count!r}")

    def lists(self, hosting: Hosting) -> list[np.ndarray]:
        """Routers in each user's list, int64, ascending."""
        if self.count > len(hosting.router_ids):
            raise ValueError(
                f"RandomRouters: count is {self.count}, but there are only {len(hosting.router_ids)} routers"
            )
        return [_smallest(key, hosting.router_keys, self.count, hosting.seed) for key in hosting.user_keys]


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


UserContacts = RatedRouters | RandomRouters | GivenContacts
RouterContacts = Raters | GivenContacts


def _smallest(key: np.uint64, others: np.ndarray, count: int, seed: np.uint64) -> np.ndarray:
    """Indices of the `count` others whose pair with `key` has the smallest draw, ascending."""
    words = np.empty(len(others), dtype=np.uint64)
    _pair_draws(key, others, seed, words)
    return np.sort(np.argsort(words, kind="stable")[:count])


@kernel
def _pair_draws(key, others, seed, words):
    for n in range(others.shape[0]):
        words[n] = draw(seed, purposes.CONTACTS, combine(key, others[n]), 0)


def _some(names: tuple) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
