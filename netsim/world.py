"""The world: a frozen description of everything a run depends on beside its seed."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass, replace
from typing import Any, Literal

import networkx as nx
import numpy as np

from algorithms.distributions import Constant, Distribution, as_distribution, describe_distribution
from algorithms.learning import Learning
from algorithms.ratings import Ratings
from netsim.arrivals import Arrivals
from netsim.availability import AvailabilityTrace
from netsim.churn import Checkpoint, OnOff, Sessions
from netsim.contacts import (
    GivenContacts,
    HeardUsers,
    LearnedRouters,
    RandomRouters,
    RandomUsers,
    RatedRouters,
    Raters,
    RouterContacts,
    UserContacts,
)
from netsim.loss import GilbertElliott, Reordering
from netsim.placement import GivenPlacement, Placement, RandomPlacement
from netsim.recommendations import Recommendations
from netsim.rules import DELAY, LOSS, UPDATE, check_rule, is_compiled
from netsim.timers import Periodic, Timer, as_timer
from netsim.topology import Underlay

__all__ = ["World"]

Rule = Callable[..., Any]
Churn = OnOff | Sessions | AvailabilityTrace
Return = Literal["keep", "reset"] | Checkpoint

ONE_PLACE = Underlay.from_graph(nx.empty_graph(1))


@dataclass(frozen=True, repr=False)
class World:
    """Users and routers on a network, and how they behave. Data: it can be compared, described and varied.

    Parameters
    ----------
    ratings : Ratings
        The ratings that the users hold, or will give while it runs; what the network learns from.
    topology : networkx graph or Underlay
        The underlay; edges carry `latency` in seconds. Default: everyone at one place, without path latency.
    routers : int or sequence of ids, optional
        How many routers there are (with ids 0, 1, ...), or their ids. Default: one for each item, with the item's id.
    hosting : mapping of item id to router id, optional
        Which router hosts each item. Default: its own router, or one drawn by `routers`.
    placement : RandomPlacement or GivenPlacement
        Where nodes sit on the underlay.
    user_contacts : RatedRouters, RandomRouters, LearnedRouters or GivenContacts
        The routers in each user's contact list.
    router_contacts : Raters, RandomUsers, HeardUsers or GivenContacts
        The users in each router's contact list.
    user_patience, router_patience : float, optional
        Seconds online after which a node drops a contact that it has not heard of: nothing it sent has arrived since.
        Default: contacts stay.
    user_broadcast, router_broadcast : float, Periodic or Poisson
        When nodes broadcast; a number is a period in seconds, with a random phase.
    user_fan_out, router_fan_out : int, optional
        To how many contacts, drawn anew at each broadcast, a profile is sent. Default: to all.
    delay : float, Distribution or function
        The part of the one-way delay, in seconds, that is drawn for each message (jitter). A function `rule(word,
        base, now)` returns it from a 64-bit word of chance, the path latency with access delays, and the time of
        sending, both in seconds.
    pair_delay : float or Distribution
        A further part of the one-way delay in seconds, drawn once for each pair of a user and a router, which keep it
        for the run, in both directions.
    access : float or Distribution
        Access delay of a node in seconds, drawn once for each node; sender's and receiver's are both added.
    minimum_delay : float
        No message takes less, in seconds.
    loss : float, GilbertElliott or function
        Probability that a message is dropped on its way, beside what the links of the topology lose. Losses in bursts
        are a `GilbertElliott`. A function `rule(word, base, now)` returns whether a message is lost; arguments as for
        `delay`.
    user_uplink, router_uplink : float or Distribution, optional
        Bytes a second that a node can send, drawn once for each: messages leave one after another. Default: at once.
    user_processing, router_processing : float or Distribution, optional
        Seconds that a node takes for each message that arrives, drawn for each message: they are processed one after
        another. Default: at once.
    queue_limit : int, optional
        How many messages may be in one queue (an uplink's or that of arrivals), the one in service included; others
        are dropped. Default: any number.
    duplication : float
        Probability that the network makes a second copy of a message that it does not lose, with a delay of its own.
    reordering : Reordering, optional
        Some messages are held back by an extra delay, so that later ones overtake them, beyond what jitter does.
    discard_stale : bool
        Whether a receiver discards a message whose stamp is not newer than the last one taken from that emitter.
    rating_exchange : {"request", "attach"}
        Whether routers ask for ratings that they do not know, or users attach them to their broadcasts.
    request_timeout : float
        Seconds after which a router may ask again.
    user_churn, router_churn : OnOff, Sessions or AvailabilityTrace, optional
        How nodes come and go. Default: they stay online.
    user_return, router_return : {"keep", "reset"} or Checkpoint
        What a node has when it comes back: all that it had; nothing of what it had learned; or what its last
        checkpoint holds, and nothing where it had written none.
    user_lifetime, router_lifetime : float or Distribution, optional
        Seconds after which a node quits for good, drawn once for each. Default: they stay.
    rehosting : {"fresh", "handover"}, optional
        What happens to the items of a router that quits: another router that is online hosts them, with fresh
        profiles, or with the quitter's last ones, which come by a message each. Default: the items are lost.
    arrivals : Arrivals, optional
        When each of the ratings is given, and by that when users and items join. Default: all are there from the start.
    recommendations : Recommendations, optional
        Users ask routers for item profiles, to predict ratings. Default: they do not.
    learning : Learning
        Rank, regularization, learning rate, initial profiles.
    update_user, update_item : function, optional
        Instead of equations (3) and (4): `rule(own, other, rating, rate, lam)` changes the profile `own` in place by
        the profile `other` that arrived, both float64 of shape (rank,), with this update's learning rate and weight
        of the regularization. Functions compiled with `numba.njit` run on both engines at compiled speed
        (`netsim.rules`).

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it. Whether placement and contacts name nodes and places that
        are there is seen when a simulation is built.
    """

    ratings: Ratings
    topology: Underlay | nx.Graph = ONE_PLACE
    _: KW_ONLY
    routers: int | tuple[Hashable, ...] | None = None
    hosting: tuple[tuple[Hashable, Hashable], ...] | Mapping[Hashable, Hashable] | None = None
    placement: Placement = RandomPlacement()
    user_contacts: UserContacts = RatedRouters()
    router_contacts: RouterContacts = Raters()
    user_patience: float | None = None
    router_patience: float | None = None
    user_broadcast: Timer | float = Periodic(10.0)
    router_broadcast: Timer | float = Periodic(10.0)
    user_fan_out: int | None = None
    router_fan_out: int | None = None
    delay: Distribution | float | Rule = Constant(0.0)
    pair_delay: Distribution | float = Constant(0.0)
    access: Distribution | float = Constant(0.0)
    minimum_delay: float = 1e-3
    loss: float | GilbertElliott | Rule = 0.0
    user_uplink: Distribution | float | None = None
    router_uplink: Distribution | float | None = None
    user_processing: Distribution | float | None = None
    router_processing: Distribution | float | None = None
    queue_limit: int | None = None
    duplication: float = 0.0
    reordering: Reordering | None = None
    discard_stale: bool = True
    rating_exchange: Literal["request", "attach"] = "request"
    request_timeout: float = 60.0
    user_churn: Churn | None = None
    router_churn: Churn | None = None
    user_return: Return = "keep"
    router_return: Return = "keep"
    user_lifetime: Distribution | float | None = None
    router_lifetime: Distribution | float | None = None
    rehosting: Literal["fresh", "handover"] | None = None
    arrivals: Arrivals | None = None
    recommendations: Recommendations | None = None
    learning: Learning = Learning()
    update_user: Rule | None = None
    update_item: Rule | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.ratings, Ratings):
            raise ValueError(
                f"ratings must be a Ratings, got {type(self.ratings).__name__}; make one with Ratings.from_arrays"
            )
        if isinstance(self.topology, nx.Graph):
            self._set("topology", Underlay.from_graph(self.topology))
        self._check_type("topology", Underlay)
        self._check_routers()
        self._check_type("placement", RandomPlacement, GivenPlacement)
        self._check_type("user_contacts", RatedRouters, RandomRouters, LearnedRouters, GivenContacts)
        self._check_type("router_contacts", Raters, RandomUsers, HeardUsers, GivenContacts)
        for name in ("user_patience", "router_patience"):
            if getattr(self, name) is not None:
                self._check_number(name, "a finite number of seconds > 0, or None", lambda value: 0 < value < math.inf)
        for name in ("user_broadcast", "router_broadcast"):
            self._set(name, as_timer(getattr(self, name), name=name))
        for name in ("user_fan_out", "router_fan_out"):
            value = getattr(self, name)
            if value is not None and (not _is_integer(value) or value < 1):
                raise ValueError(f"{name} must be an integer >= 1, or None for all contacts, got {value!r}")
        for name in ("access", "pair_delay"):
            self._set(name, as_distribution(getattr(self, name), name=name, least=0.0))
        if callable(self.delay):
            check_rule(self.delay, name="delay", kind=DELAY)
        else:
            self._set("delay", as_distribution(self.delay, name="delay", least=0.0))
        self._check_number("minimum_delay", "a number of seconds >= 0", lambda value: 0 <= value < math.inf)
        self._check_number("request_timeout", "a number of seconds > 0", lambda value: value > 0)
        if callable(self.loss):
            check_rule(self.loss, name="loss", kind=LOSS)
        elif not isinstance(self.loss, GilbertElliott):
            self._check_share("loss", "in [0, 1], a GilbertElliott or a function")
        self._check_queues()
        self._check_share("duplication", "in [0, 1]")
        self._check_type("reordering", Reordering, type(None))
        for name in ("update_user", "update_item"):
            if getattr(self, name) is not None:
                check_rule(getattr(self, name), name=name, kind=UPDATE)
        self._check_type("discard_stale", bool)
        if self.rating_exchange not in ("request", "attach"):
            raise ValueError(f"rating_exchange must be 'request' or 'attach', got {self.rating_exchange!r}")
        self._check_coming_and_going()
        self._check_arrivals()
        self._check_recommendations()
        self._check_type("learning", Learning)

    def replace(self, **changes: Any) -> "World":
        """Another world that differs in the given arguments, checked like the first."""
        return replace(self, **changes)

    @property
    def router_ids(self) -> tuple[Hashable, ...]:
        """Original ids of the routers, in index order."""
        if self.routers is None:
            return self.ratings.item_ids
        if isinstance(self.routers, tuple):
            return self.routers
        return tuple(range(self.routers))

    @property
    def only_python(self) -> tuple[str, ...]:
        """Arguments that are plain Python functions, which the compiled engine cannot run."""
        rules = {name: getattr(self, name) for name in ("delay", "loss", "update_user", "update_item")}
        return tuple(
            f"{name}={_named(rule)}, which is not compiled with numba.njit"
            for name, rule in rules.items()
            if callable(rule) and not is_compiled(rule)
        )

    def describe(self) -> dict[str, Any]:
        """Plain description, for a JSON file: every argument, with ratings and topology by name and digest."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.init}
        ratings, topology = self.ratings, self.topology
        plain["ratings"] = {
            "n_users": ratings.n_users,
            "n_items": ratings.n_items,
            "n_ratings": len(ratings),
            "sha256": ratings.digest,
        }
        assert isinstance(topology, Underlay)
        plain["topology"] = {
            "description": topology.description,
            "n_places": topology.n_places,
            "n_links": topology.n_links,
            "sha256": topology.digest,
        }
        return plain

    def __repr__(self) -> str:
        return (
            f"World({self.ratings.n_users} users, {len(self.router_ids)} routers, {len(self.ratings)} ratings, "
            f"{self.topology!r}, delay={_named(self.delay)}, loss={_named(self.loss)})"
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_type(self, name: str, *types: type) -> None:
        value = getattr(self, name)
        if not isinstance(value, types):
            names = " or ".join("None" if t is type(None) else t.__name__ for t in types)
            raise ValueError(f"{name} must be {names}, got {value!r}")

    def _check_number(self, name: str, wanted: str, valid: Any, mend: str = "") -> None:
        value = getattr(self, name)
        if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not valid(value):
            raise ValueError(f"{name} must be {wanted}, got {value!r}{mend}")
        self._set(name, float(value))

    def _check_share(self, name: str, wanted: str) -> None:
        self._check_number(name, wanted, lambda value: 0 <= value <= 1, "; pass a fraction, not a percentage")

    def _check_coming_and_going(self) -> None:
        for role in ("user", "router"):
            self._check_type(f"{role}_churn", OnOff, Sessions, AvailabilityTrace, type(None))
            what = getattr(self, f"{role}_return")
            if not isinstance(what, Checkpoint) and what not in ("keep", "reset"):
                raise ValueError(f"{role}_return must be 'keep', 'reset' or a Checkpoint, got {what!r}")
            name = f"{role}_lifetime"
            if getattr(self, name) is not None:
                self._set(name, as_distribution(getattr(self, name), name=name, least=0.0))
        if self.rehosting not in (None, "fresh", "handover"):
            raise ValueError(f"rehosting must be 'fresh', 'handover' or None, got {self.rehosting!r}")
        if self.rehosting is not None and len(self.router_ids) == 1:
            raise ValueError(
                f"rehosting={self.rehosting!r} needs another router to host the items of one that quits, got 1 router; "
                "give more routers, or leave rehosting out"
            )

    def _check_recommendations(self) -> None:
        self._check_type("recommendations", Recommendations, type(None))
        if self.recommendations is not None:
            targets, ratings = self.recommendations.targets, self.ratings
            if (targets.user_ids, targets.item_ids) != (ratings.user_ids, ratings.item_ids):
                raise ValueError(
                    f"recommendations: targets must have the users and items of ratings ({ratings.n_users} and "
                    f"{ratings.n_items}), got {targets.n_users} and {targets.n_items}; make both with one split"
                )

    def _check_queues(self) -> None:
        for role in ("user", "router"):
            for name, unit in ((f"{role}_uplink", "bytes a second > 0"), (f"{role}_processing", "seconds >= 0")):
                value = getattr(self, name)
                if value is not None:
                    self._set(name, as_distribution(value, name=name, least=0.0))
                    if name.endswith("uplink") and getattr(self, name) == Constant(0.0):
                        raise ValueError(f"{name} must be {unit}, got {value!r}; None is an uplink without limit")
        limit = self.queue_limit
        if limit is not None and (not _is_integer(limit) or limit < 1):
            raise ValueError(f"queue_limit must be an integer >= 1, or None for no limit, got {limit!r}")
        if limit is not None and not self.has_queues:
            raise ValueError(
                f"queue_limit={limit!r} needs queues; give user_uplink, router_uplink, user_processing or "
                "router_processing, or leave it out"
            )

    @property
    def has_queues(self) -> bool:
        """Whether messages can wait at a node."""
        names = ("user_uplink", "router_uplink", "user_processing", "router_processing")
        return any(getattr(self, name) is not None for name in names)

    def _check_arrivals(self) -> None:
        self._check_type("arrivals", Arrivals, type(None))
        if self.arrivals is None:
            return
        if len(self.arrivals.times) != len(self.ratings):
            raise ValueError(
                f"arrivals must have a time for each of the {len(self.ratings)} ratings, got "
                f"{len(self.arrivals.times)}; make them from the same ratings"
            )
        low, high = self.ratings.scale.low, self.ratings.scale.high
        for time, which, value in self.arrivals.changes:
            if not low <= value <= high:
                raise ValueError(
                    f"arrivals: the change of rating {which} at {time:g} s is to {value!r}, outside the scale "
                    f"{low:g} to {high:g}"
                )
            if time <= self.arrivals.times[which]:
                raise ValueError(
                    f"arrivals: rating {which} is changed at {time:g} s, before it comes at "
                    f"{self.arrivals.times[which]:g} s"
                )

    def _check_routers(self) -> None:
        if _is_integer(self.routers):
            self._set("routers", int(self.routers))  # type: ignore[arg-type]
            if self.routers < 1:  # type: ignore[operator]
                raise ValueError(f"routers must be a number >= 1 or a sequence of ids, got {self.routers!r}")
        elif isinstance(self.routers, list | tuple | range):
            self._set("routers", tuple(self.routers))
            if len(set(self.routers)) != len(self.routers) or not self.routers:
                raise ValueError("routers must be a non-empty sequence of distinct ids; an id stands there twice")
        elif self.routers is not None:
            raise ValueError(f"routers must be a number >= 1 or a sequence of ids, got {self.routers!r}")
        if self.hosting is None:
            return
        given = dict(self.hosting)
        self._set("hosting", tuple(sorted(given.items(), key=repr)))
        known, items = set(self.router_ids), set(self.ratings.item_ids)
        for item in given:
            if item not in items:
                raise ValueError(f"hosting names {item!r}, which is not an item")
        for item in self.ratings.item_ids:
            if item not in given:
                raise ValueError(f"hosting must name a router for each item, got none for item {item!r}")
            if given[item] not in known:
                raise ValueError(f"hosting gives item {item!r} to {given[item]!r}, which is not a router")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _named(value: Any) -> str:
    """Text for a value; a function by its name."""
    return f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else repr(value)


def _plain(value: Any) -> Any:
    if callable(value):
        return _named(value)
    if isinstance(value, Distribution):
        return describe_distribution(value)
    if isinstance(value, Recommendations):
        plain = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "targets"}
        return {"type": "Recommendations", "targets": len(value.targets), "sha256": value.targets.digest} | plain
    if isinstance(value, Arrivals):
        late = int(((value.times > 0) & np.isfinite(value.times)).sum())
        return {"type": "Arrivals", "late": late, "changes": len(value.changes), "sha256": value.digest}
    if isinstance(value, AvailabilityTrace):
        return {"type": "AvailabilityTrace", "segments": len(value.segments), "sha256": value.digest} | {
            "after": value.after,
            "offset": value.offset,
        }
    if is_dataclass(value) and not isinstance(value, type | Ratings | Underlay):
        return {"type": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | type(None)) else repr(value)
