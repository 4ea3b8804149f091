"""Where users and routers sit on the underlay."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np

from algorithms import purposes
from algorithms.chance import PLACE, combine, draw, entity_keys
from algorithms.compilation import kernel
from netsim.topology import Underlay

__all__ = ["GivenPlacement", "Placement", "RandomPlacement"]


@dataclass(frozen=True)
class RandomPlacement:
    """Each node sits at a place drawn uniformly.

    The draw is by highest random weight (rendezvous hashing): a place that is added attracts its share of nodes and
    moves no other.
    """

    def places(
        self, underlay: Underlay, node_keys: np.ndarray, user_ids: tuple, router_ids: tuple, seed: np.uint64
    ) -> np.ndarray:
        """Place of each node (users, then routers) as an index into `underlay.places`; int64, shape (n_nodes,)."""
        places = np.empty(len(node_keys), dtype=np.int64)
        highest_weight(node_keys, entity_keys(PLACE, underlay.places), seed, purposes.PLACEMENT, places)
        return places


@dataclass(frozen=True, init=False)
class GivenPlacement:
    """Each node sits at the place given for it.

    Parameters
    ----------
    users, routers : mapping of id to place
    """

    users: tuple[tuple[Hashable, Hashable], ...] = field(repr=False)
    routers: tuple[tuple[Hashable, Hashable], ...] = field(repr=False)

    def __init__(self, users: Mapping[Hashable, Hashable], routers: Mapping[Hashable, Hashable]) -> None:
        object.__setattr__(self, "users", tuple(sorted(users.items(), key=repr)))
        object.__setattr__(self, "routers", tuple(sorted(routers.items(), key=repr)))

    def places(
        self, underlay: Underlay, node_keys: np.ndarray, user_ids: tuple, router_ids: tuple, seed: np.uint64
    ) -> np.ndarray:
        """Place of each node (users, then routers) as an index into `underlay.places`; int64, shape (n_nodes,)."""
        index = {place: number for number, place in enumerate(underlay.places)}
        places = np.empty(len(node_keys), dtype=np.int64)
        position = 0
        for role, given, ids in (
            ("user", dict(self.users), user_ids),
            ("router", dict(self.routers), router_ids),
        ):
            for name in given.keys() - set(ids):
                raise ValueError(f"GivenPlacement: {name!r} in {role}s={{...}} is not a {role}")
            for name in ids:
                if name not in given:
                    raise ValueError(f"GivenPlacement: {role} {name!r} has no place; give one in {role}s={{...}}")
                if given[name] not in index:
                    raise ValueError(
                        f"GivenPlacement: {role} {name!r} is placed at {given[name]!r}, which is not a place of "
                        f"{underlay!r}"
                    )
                places[position] = index[given[name]]
                position += 1
        return places


Placement = RandomPlacement | GivenPlacement


@kernel
def highest_weight(keys, choices, seed, purpose, chosen):
    """For each key, the index of the choice with the highest random weight of the pair (rendezvous hashing)."""
    for n in range(keys.shape[0]):
        best = np.uint64(0)
        chosen[n] = 0
        for c in range(choices.shape[0]):
            weight = draw(seed, purpose, combine(keys[n], choices[c]), 0)
            if weight > best:
                best = weight
                chosen[n] = c
