"""Random small worlds, run lengths and scripts for property tests, the same for every engine.

A rule of order shows only where things happen at equal times, so nearly every time here lies on a grid:
phases, periods, latencies, delays, time-outs and the times of scripts are multiples of 0.25 s, which float64
adds exactly.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import strategies as st

from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    AvailabilityTrace,
    Checkpoint,
    Constant,
    Diurnal,
    Empirical,
    Exponential,
    Gamma,
    GilbertElliott,
    GivenContacts,
    GivenPlacement,
    HeardUsers,
    LearnedRouters,
    Learning,
    LogNormal,
    Normal,
    OnOff,
    Pareto,
    Periodic,
    Poisson,
    RandomPlacement,
    RandomRouters,
    RandomUsers,
    RatedRouters,
    Raters,
    Recommendations,
    Reordering,
    Result,
    Schedule,
    Segment,
    Sessions,
    Simulation,
    Underlay,
    Uniform,
    Weibull,
    World,
)
from netsim.sessions import has_sessions, session_end
from netsim.tables import build_tables

__all__ = [
    "ACTIONS",
    "Meddler",
    "Run",
    "Script",
    "assert_same_bits",
    "ratings",
    "runs",
    "scripts",
    "topologies",
    "worlds",
]

GRID = 0.25
SEEDS = st.integers(0, 2**64 - 1)
ACTIONS = (
    "set_online",
    "set_loss",
    "set_delay",
    "set_contacts",
    "depart",
    "reset",
    "hold",
    "set_duplication",
    "set_reordering",
    "shift_latency",
    "fault",
    "add_rating",
    "join",
    "request",
)


def on_grid(first: int, last: int) -> st.SearchStrategy[float]:
    """Multiples of 0.25 s, from `first` to `last` steps."""
    return st.integers(first, last).map(lambda steps: steps * GRID)


def constants() -> st.SearchStrategy[Constant]:
    return on_grid(0, 6).map(Constant)


def delays() -> st.SearchStrategy[Any]:
    """Mostly constant, 0 included, so that arrivals tie and profiles meet; else one of every family."""
    drawn = [
        Uniform(0.0, 1.0),
        LogNormal(0.3, 0.8),
        Exponential(0.3),
        Gamma(2.0, 0.2),
        Gamma(0.5, 0.5),
        Empirical([0.0, 0.25, 0.25, 1.5]),  # reorders, and still ties
        Empirical([0.25, 2.0]),
        Normal(0.25, 0.0),
    ]
    return st.one_of(constants(), reorderings(), st.sampled_from(drawn))


def reorderings() -> st.SearchStrategy[Empirical]:
    """Delays of which messages of different ticks, and of different items, overtake each other and meet."""
    return st.sampled_from([Empirical([0.25, 0.5, 0.75, 1.0]), Empirical([0.5, 1.0]), Empirical([0.25, 0.25, 1.25])])


@st.composite
def ratings(draw: Any) -> Ratings:
    """2 to 8 users and items, some of them without a rating."""
    n_users, n_items = draw(st.integers(2, 8)), draw(st.integers(2, 8))
    pairs = [(user, item) for user in range(n_users) for item in range(n_items)]
    least = min(draw(st.sampled_from([1, 8, 16])), len(pairs))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=least, max_size=24, unique=True))
    values = draw(st.lists(st.integers(2, 10), min_size=len(chosen), max_size=len(chosen)))
    users, items = [f"u{number}" for number in range(n_users)], list(range(n_items))
    return Ratings.from_arrays(
        [users[user] for user, _ in chosen],
        [items[item] for _, item in chosen],
        [value / 2 for value in values],
        scale=(1, 5),
        user_ids=users,
        item_ids=draw(st.permutations(items)),
    )


@st.composite
def topologies(draw: Any) -> Underlay:
    """1 to 5 places: directed or not, connected or not, latencies on the grid, 0 included."""
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    n = draw(st.integers(1, 5))
    graph.add_nodes_from(range(n))
    place = st.integers(0, n - 1)
    for u, v, latency in draw(st.lists(st.tuples(place, place, on_grid(0, 4)), max_size=12)):
        graph.add_edge(u, v, latency=latency)
    lossy, slow = draw(st.sampled_from([(False, False)] * 3 + [(True, False), (False, True), (True, True)]))
    for _, _, edge in graph.edges(data=True):
        if lossy:
            edge["loss"] = draw(st.sampled_from([0.0, 0.2]))
        if slow:
            edge["bandwidth"] = draw(st.sampled_from([400.0, 4000.0]))
    return Underlay.from_graph(graph, routed=draw(st.sampled_from([True] * 6 + [False])))


@st.composite
def close_topologies(draw: Any) -> Underlay:
    """1 to 3 places that are all linked, with latencies on the grid."""
    graph = nx.complete_graph(draw(st.integers(1, 3)))
    for _, _, edge in graph.edges(data=True):
        edge["latency"] = draw(on_grid(0, 1))
    if draw(st.booleans()):
        for _, _, edge in graph.edges(data=True):
            edge["loss"], edge["bandwidth"] = 0.1, 4000.0
    return Underlay.from_graph(graph)


def timers() -> st.SearchStrategy[Any]:
    """Mostly periodic with a given phase: nodes of one role tick together, often both roles.

    Periods of 0.1 or 0.3 s meet probes at times that a sum of periods misses by a rounding.
    """
    ties = st.builds(Periodic, on_grid(1, 6), phase=on_grid(0, 3))
    mixed = st.builds(
        Periodic,
        st.sampled_from([Constant(0.5), Empirical([0.25, 0.5, 1.0]), Uniform(0.3, 1.0)]),
        phase=st.sampled_from([None, Empirical([0.0, 0.25, 0.5]), Constant(0.0)]),
    )
    inexact = st.builds(Periodic, st.sampled_from([0.1, 0.3]), phase=st.sampled_from([0.0, 0.3]))
    return st.one_of(ties, ties, mixed, inexact, st.just(Poisson(0.6)))


def churns() -> st.SearchStrategy[Any]:
    lengths = st.sampled_from([0.1, 0.5, 2.0, 6.0])
    coming = st.one_of(sessions(), st.builds(OnOff, lengths, lengths), traces(), sessions())
    return st.sampled_from([True, False, False]).flatmap(lambda steady: st.none() if steady else coming)


@st.composite
def sessions(draw: Any) -> Sessions:
    """Sessions of every family, on the grid too; correlated, by the time of day, and begun in each way."""
    laws = [0.5, 1.25, Weibull(2.0, 0.6), Pareto(0.5, 1.5), LogNormal(1.0, 1.0), Gamma(0.7, 2.0), Uniform(0.25, 2.0)]
    laws += [Empirical([0.25, 0.5, 2.0]), Exponential(1.0)]
    online, offline = draw(st.sampled_from(laws)), draw(st.sampled_from(laws))
    correlation = 0.0 if isinstance(online, Gamma) or isinstance(offline, Gamma) else draw(st.sampled_from([0.0, 0.7]))
    diurnal = draw(st.sampled_from([None, Diurnal(0.8, 1.0, day=4.0)]))
    start = draw(st.sampled_from(["stationary", "online", "offline"]))
    return Sessions(online, offline, correlation=correlation, diurnal=diurnal, start=start)


@st.composite
def traces(draw: Any) -> AvailabilityTrace:
    """Segments of 1 to 4 sessions on the grid."""
    lengths = st.lists(st.sampled_from([250, 250, 500, 1500]), min_size=1, max_size=4).map(tuple)
    segment = st.builds(Segment, st.just("phone"), st.booleans(), lengths)
    segments = draw(st.lists(segment, min_size=1, max_size=3))
    after = draw(st.sampled_from(["repeat", "offline", "online"]))
    return AvailabilityTrace(tuple(segments), after=after, offset=draw(st.sampled_from(["random", "none"])))


def returns() -> st.SearchStrategy[Any]:
    """What a node has when it comes back."""
    return st.sampled_from(["keep", "keep", "reset", Checkpoint(0.5), Checkpoint(2.0)])


@st.composite
def arrivals(draw: Any, known: Ratings) -> Arrivals | None:
    """Ratings that come on the grid, at once, or never by themselves; some are changed."""
    if draw(st.integers(0, 2)) > 0:
        return None
    times = [draw(st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.25, 2.0, 3.1, np.inf])) for _ in range(len(known))]
    late = [which for which, time in enumerate(times) if time < np.inf]
    changed = draw(st.lists(st.sampled_from(late), max_size=3, unique=True)) if late else []
    values = st.integers(2, 10).map(lambda value: value / 2)
    changes = [(times[which] + draw(on_grid(1, 8)), which, draw(values)) for which in changed]
    return Arrivals(np.array(times), tuple(changes), draw(st.sampled_from(["first_rating", "start"])))


def recommendations(known: Ratings) -> st.SearchStrategy[Recommendations | None]:
    """Requests for what users have rated, with time-outs short and long."""
    asked = st.builds(
        Recommendations,
        st.just(known),
        mean_gap=st.sampled_from([0.2, 1.0]),
        timeout=st.sampled_from([0.25, 0.3, 2.0]),
        retries=st.sampled_from([0, 1, 3]),
    )
    return st.none() | asked


def queues() -> st.SearchStrategy[dict[str, Any]]:
    """Uplinks and processing whose times lie on the grid, and others; some with short queues."""
    uplinks = st.sampled_from([None, 1e3, 400.0, Uniform(200.0, 2000.0)])
    services = st.sampled_from([None, 0.25, 0.05, Exponential(0.1), Empirical([0.0, 0.25])])
    options = st.fixed_dictionaries(
        {
            "user_uplink": uplinks,
            "router_uplink": uplinks,
            "user_processing": services,
            "router_processing": services,
            "queue_limit": st.sampled_from([None, 1, 3]),
        }
    )
    with_queues = options.map(
        lambda found: found if any(value for name, value in found.items() if name != "queue_limit") else {}
    )
    return st.just({}) | with_queues


def losses() -> st.SearchStrategy[Any]:
    bursty = [GilbertElliott(0.3, 0.5), GilbertElliott(0.5, 4.0, loss_good=0.1, loss_bad=0.9)]
    return st.sampled_from([0.0, 0.0, 0.0, 0.0, *bursty, 0.0, 0.1, 0.5, 1.0, *bursty])


def learnings() -> st.SearchStrategy[Learning]:
    return st.builds(
        Learning,
        rank=st.integers(1, 3),
        lam=st.sampled_from([0.0, 0.05, 0.3]),
        regularization=st.sampled_from(["per_message", "uniform"]),
        rate=st.sampled_from([0.02, 0.05, Uniform(0.01, 0.1)]),
        schedule=st.sampled_from(
            [
                Schedule(),
                Schedule("inverse", 3.0),
                Schedule("exponential", 5.0, age="updates"),
                Schedule("inverse", 4.0, age="updates"),
            ]
        ),
    )


def subsets(names: tuple) -> st.SearchStrategy[list]:
    return st.lists(st.sampled_from(names), max_size=4, unique=True)


def placements(users: tuple, routers: tuple, places: tuple) -> st.SearchStrategy[Any]:
    place = st.sampled_from(places)
    users_at = st.fixed_dictionaries(dict.fromkeys(users, place))
    routers_at = st.fixed_dictionaries(dict.fromkeys(routers, place))
    return st.just(RandomPlacement()) | st.builds(GivenPlacement, users_at, routers_at)


def user_contacts(users: tuple, routers: tuple, *, lives: bool) -> st.SearchStrategy[Any]:
    given = st.dictionaries(st.sampled_from(users), subsets(routers)).map(GivenContacts)
    every = st.sampled_from([None, 0.5, 1.25] if lives else [None])
    drawn = st.builds(RandomRouters, st.integers(1, len(routers)), every)
    if not lives:
        return st.one_of(st.just(RatedRouters()), drawn, given)
    learned = st.builds(LearnedRouters, st.sampled_from([0.25, 0.6, 2.0]), st.integers(1, 3))
    return st.one_of(st.just(RatedRouters()), drawn, given, learned)


def router_contacts(users: tuple, routers: tuple, *, lives: bool) -> st.SearchStrategy[Any]:
    given = st.dictionaries(st.sampled_from(routers), subsets(users)).map(GivenContacts)
    if not lives:
        return st.one_of(st.just(Raters()), st.builds(Raters, st.integers(1, 3)), given)
    drawn = st.builds(RandomUsers, st.integers(1, len(users)), st.sampled_from([None, 0.75]))
    return st.one_of(st.just(Raters()), st.builds(Raters, st.integers(1, 3)), given, drawn, st.just(HeardUsers()))


@st.composite
def worlds(draw: Any, *, forgets: bool = True, doubles: bool = True, moves: bool = True, lives: bool = True) -> World:
    """A small world in which anything that a `World` can say may be said.

    In some, one router sends several items, and an old emission of one meets a new one of another. Without `forgets`
    no node loses what it has learned; without `doubles` the network makes no copies; without `moves` nobody quits;
    without `lives` no ratings come, nobody asks for recommendations, nothing queues and contact lists stay.
    """
    overtaking = draw(st.integers(0, 5)) == 0
    # In one of six, routers quit and nothing stands in the way of what they hand over.
    quitting = moves and not overtaking and draw(st.integers(0, 5)) == 3
    known = draw(ratings())
    # Two in three are busy: everyone can reach everyone, most are there, and what is sent mostly arrives.
    busy = quitting or draw(st.sampled_from([True, True, False]))
    underlay = draw(close_topologies() if busy else topologies())
    several = st.integers(2, 3) if quitting else st.none() | st.integers(1, 3)
    routers = 1 if overtaking else draw(several | st.just(("b", "a")))
    plain = World(known, routers=routers)
    users, router_ids = known.user_ids, plain.router_ids
    router = st.sampled_from(router_ids)
    hosting = st.none() | st.fixed_dictionaries(dict.fromkeys(known.item_ids, router))
    fan_outs = st.sampled_from([None, None, 1, 2])
    lifetimes = [None, Exponential(4.0), Empirical([0.5, 1.0, 2.5, 100.0])]
    if busy and len(router_ids) > 1:  # somebody is there to take over
        lifetimes = [Empirical([0.5, 1.0, 2.5])] if quitting else [*lifetimes, Exponential(2.0)]
    living: dict[str, Any] = {}
    if lives:
        living = {"arrivals": draw(arrivals(known)), "recommendations": draw(recommendations(known))}
        living["user_patience"] = draw(st.sampled_from([None, None, 0.3, 1.0]))
        living["router_patience"] = draw(st.sampled_from([None, None, 0.5, 2.0]))
        living |= draw(queues())
    return World(
        known,
        topology=underlay,
        routers=routers,
        hosting=draw(hosting),
        placement=draw(placements(users, router_ids, underlay.places)),
        user_contacts=draw(
            st.sampled_from([RatedRouters(), LearnedRouters(0.5, 3)] if lives else [RatedRouters()])
            if busy
            else user_contacts(users, router_ids, lives=lives)
        ),
        router_contacts=Raters() if overtaking else draw(router_contacts(users, router_ids, lives=lives)),
        user_broadcast=draw(timers()),
        router_broadcast=draw(st.builds(Periodic, on_grid(1, 3), phase=on_grid(0, 3)) if overtaking else timers()),
        user_fan_out=draw(fan_outs),
        router_fan_out=draw(fan_outs),
        delay=draw(reorderings() if overtaking else delays()),
        access=draw(st.sampled_from([0.0, 0.0, 0.125, Empirical([0.0, 0.25])])),
        minimum_delay=draw(st.sampled_from([0.0, 1e-3, 0.1, GRID])),
        pair_delay=draw(st.sampled_from([0.0, 0.0, 0.25, Empirical([0.0, 0.25, 0.5])])),
        loss=0.0 if quitting else draw(st.sampled_from([0.0, 0.1, GilbertElliott(0.3, 0.5)]) if busy else losses()),
        duplication=draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])) if doubles else 0.0,
        reordering=draw(st.sampled_from([None, None, Reordering(0.3, 0.5), Reordering(0.5, Uniform(0.0, 2.0))])),
        discard_stale=draw(st.booleans() | st.just(True)),
        rating_exchange="request" if quitting else draw(st.sampled_from(["request", "request", "attach"])),
        request_timeout=draw(st.sampled_from([0.1, GRID, 0.5, 2.0, 60.0])),
        user_churn=draw(churns()),
        router_churn=None if quitting else draw(churns()),
        user_return=draw(returns()) if forgets else "keep",
        router_return=draw(returns()) if forgets else "keep",
        user_lifetime=draw(st.sampled_from([None, None, None, Exponential(20.0), 2.5])) if moves else None,
        router_lifetime=draw(st.sampled_from(lifetimes)) if moves else None,
        rehosting=None
        if len(router_ids) == 1
        else draw(st.sampled_from(["handover"] if quitting else [None, "fresh", "handover", "handover"])),
        learning=draw(learnings()),
        **living,
    )


@dataclass(frozen=True)
class Script:
    """A SimPy process that acts at given times: `simulate(..., scripts=[script])`.

    Attributes
    ----------
    steps : tuple of (time, name of a method of `Simulation` or function of it, arguments, keywords)
        In the order of time.
    """

    steps: tuple[tuple[float, str, tuple, dict], ...]

    def __call__(self, simulation: Simulation) -> Any:
        for time, method, arguments, keywords in self.steps:
            if time > simulation.env.now:
                yield simulation.env.timeout(time - simulation.env.now)
            if callable(method):
                method(simulation, *arguments, **keywords)
            else:
                getattr(simulation, method)(*arguments, **keywords)
        yield simulation.env.timeout(0)


@dataclass(frozen=True)
class Meddler:
    """A SimPy process that a person might write: it looks at the run, and acts on what it sees.

    Attributes
    ----------
    every : float
        Seconds between two looks.
    """

    every: float

    def __call__(self, simulation: Simulation) -> Any:
        env, users = simulation.env, simulation.world.ratings.user_ids
        routers = simulation.world.router_ids
        while True:
            view = simulation.view()
            largest = view.user_profiles.max(axis=1)
            user = users[int(largest.argmax())]
            simulation.set_online(bool(view.time % 1.0 < 0.5), user=user)
            chosen = [router for router, row in zip(routers, view.item_profiles, strict=False) if row[0] > 0.5]
            simulation.set_contacts(chosen, user=users[int(largest.argmin())])
            yield env.timeout(self.every) | env.process(self.rest(simulation))
            if simulation.last and simulation.last["user_updates"] % 3 == 1:
                simulation.set_delay(GRID)
                simulation.set_loss(0.25)
            yield env.timeout(0)

    def rest(self, simulation: Simulation) -> Any:
        yield simulation.env.timeout(2 * self.every)


def act_on_node(simulation: Simulation, how: str, node: dict) -> None:
    """Hold or release a node; one that is not held stays as it is."""
    with suppress(ValueError):
        getattr(simulation, how)(**node)


def act_on_rating(simulation: Simulation, user: Any, item: Any, value: float) -> None:
    """Let a user rate an item, unless he has quit."""
    with suppress(ValueError):
        simulation.add_rating(user, item, value)


def act_on_request(simulation: Simulation, user: Any, item: Any) -> None:
    """Let a user ask for an item, if he can."""
    with suppress(ValueError):
        simulation.request(user, item, rating=3.0)


def act_on_latency(simulation: Simulation, shift: dict, back: bool) -> None:
    """Shift latencies, or take a shift back if there is one."""
    with suppress(ValueError):
        (simulation.unshift_latency if back else simulation.shift_latency)(**shift)


def act_on_topology(simulation: Simulation, fault: str, places: tuple) -> None:
    """Break or mend something; what is not broken, or cannot be, stays as it is."""
    with suppress(ValueError):
        if fault == "fail_links":
            links = list(simulation.world.topology.to_graph().edges)
            simulation.fail_links(links[: len(places)])
        elif fault == "heal":
            simulation.heal()
        else:
            getattr(simulation, fault)(places)


@st.composite
def steps(draw: Any, world: World, until: float, actions: tuple[str, ...] = ACTIONS) -> tuple:
    """One thing that a script does, at a time that most often is one of the ticks'."""
    users, routers = world.ratings.user_ids, world.router_ids
    off_grid = st.floats(0, until, allow_subnormal=False)
    time = draw(st.one_of(on_grid(0, int(until / GRID)), on_grid(0, int(until / GRID)), off_grid))
    action = draw(st.sampled_from(actions))
    if action == "set_loss":
        return time, action, (draw(losses()),), {}
    if action == "set_duplication":
        return time, action, (draw(st.sampled_from([0.0, 0.5, 1.0])),), {}
    if action == "set_reordering":
        return time, action, (draw(st.sampled_from([None, Reordering(0.5, 0.75)])),), {}
    if action == "shift_latency":
        back = draw(st.booleans())
        found = draw(st.sampled_from([{"seconds": 0.25}, {"factor": 0.5}, {"factor": 2.0, "seconds": 0.5}]))
        return time, act_on_latency, (found, back), {}
    if action == "fault":
        places = st.lists(st.sampled_from(world.topology.places), min_size=1, max_size=2, unique=True)
        fault = draw(st.sampled_from(["partition", "heal", "fail_places", "repair_places", "fail_links"]))
        return time, act_on_topology, (fault, tuple(draw(places))), {}
    if action == "set_delay":
        return time, action, (draw(delays()),), {}
    if action == "request":
        return time, act_on_request, (draw(st.sampled_from(users)), draw(st.sampled_from(world.ratings.item_ids))), {}
    if action in ("add_rating", "join"):
        item = draw(st.sampled_from(world.ratings.item_ids))
        if action == "add_rating":
            value = draw(st.integers(2, 10)) / 2
            return time, act_on_rating, (draw(st.sampled_from(users)), item, value), {}
        return time, action, (), draw(st.sampled_from([{"item": item}, {"user": users[0]}]))
    role = draw(st.sampled_from(["user", "router"]))
    node = {role: draw(st.sampled_from(users if role == "user" else routers))}
    if action == "set_online":
        return time, action, (draw(st.booleans()),), node
    if action in ("depart", "reset"):
        return time, action, (), node
    if action == "hold":
        return time, act_on_node, (draw(st.sampled_from(["hold_offline", "release_offline", "hold_online"])), node), {}
    return time, action, (draw(subsets(routers if role == "user" else users)),), node


def scripts(
    world: World, until: float, actions: tuple[str, ...] = ACTIONS
) -> st.SearchStrategy[list[Script | Meddler]]:
    """Up to two scripts for a world: some of up to five steps, some that act on what they see."""
    several = st.lists(steps(world, until, actions), max_size=5).map(in_order)
    return st.lists(several | several | st.sampled_from([GRID, 0.5, 0.7]).map(Meddler), max_size=2)


def in_order(found: list[tuple]) -> Script:
    return Script(tuple(sorted(found, key=lambda step: step[0])))


@dataclass(frozen=True)
class Run:
    """All that `simulate` needs: `simulate(**run.arguments)`."""

    world: World
    until: float
    seed: int
    every: float
    scripts: tuple[Script | Meddler, ...] = ()

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("world", "until", "seed", "every", "scripts")}


@st.composite
def runs(
    draw: Any,
    *,
    scripted: bool = True,
    forgets: bool = True,
    doubles: bool = True,
    moves: bool = True,
    lives: bool = True,
) -> Run:
    """A world, how long it runs, when it is measured, and what is scripted; options as of `worlds`."""
    world = draw(worlds(forgets=forgets, doubles=doubles, moves=moves, lives=lives))
    left_out = {"reset": not forgets, "set_duplication": not doubles, "depart": not moves}
    left_out |= dict.fromkeys(["add_rating", "join", "request"], not lives)
    actions = tuple(action for action in ACTIONS if not left_out.get(action))
    until = draw(on_grid(4, 24))
    seed = draw(SEEDS)
    if draw(st.booleans()):
        world = ticks_at_toggles(world, seed, draw(on_grid(1, 6)))
    acts = tuple(draw(scripts(world, until, actions))) if scripted else ()
    return Run(world, until, seed, draw(st.sampled_from([GRID, 0.3, 1.0])), acts)


def ticks_at_toggles(world: World, seed: int, period: float) -> World:
    """The same world with timers that start as the first session of a node ends, if nodes have sessions.

    Sessions have drawn lengths, so a timer meets one only where its phase is made to.
    """
    tables = build_tables(world, seed)
    changes, n_users = {}, tables.n_users
    for role, node in (("user", 0), ("router", n_users)):
        if has_sessions(tables.state, node):
            end = session_end(tables.state, node, 1, 0.0)
            changes[f"{role}_broadcast"] = Periodic(period, phase=float(end))
    return replace(world, **changes) if changes else world


def assert_same_bits(first: Result, second: Result) -> None:
    """Two runs ended in the same state and measured the same, to the bit."""
    for name in ("user_profiles", "item_profiles", "user_updates", "item_updates"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name
    pd.testing.assert_frame_equal(first.accounts, second.accounts, check_exact=True)
    pd.testing.assert_frame_equal(first.probes, second.probes, check_exact=True)
