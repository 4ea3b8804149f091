"""Both engines, and every number of threads, give the same bits: profiles, counters, probes and all state.

The random worlds are those of `tests.worlds`; `make test` draws some, the same each time, and `make verify` draws
thousands of new ones. `docs/rules.md` lists which broken rule makes which test fail.
"""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st

from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
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
    OnOff,
    Pareto,
    Periodic,
    Poisson,
    RandomRouters,
    Recommendations,
    Reordering,
    Sessions,
    Simulation,
    Underlay,
    Uniform,
    Weibull,
    World,
    flash_crowd,
    latency_shift,
    link_failure,
    mae,
    objective,
    partition,
    region_outage,
    rmse,
    router_outage,
)
from tests.worlds import Meddler, Run, Script, runs

FEW, MANY = 200, 2500
TABLES = (
    "profiles",
    "nodes",
    "life",
    "slots",
    "edges",
    "disclosures",
    "paths",
    "channels",
    "saved_profiles",
    "queues",
    "wishes",
    "finds",
)
TABLES += ("saved_slots",)
ENGINES = {"one thread": ("compiled", 1), "two threads": ("compiled", 2), "three threads": ("compiled", 3)}
PLAIN = ("two threads", "updates", "drawn sessions", "scripts", "pieces", "several items")
RARE = ("correlated sessions", "sessions by the time of day", "bursts", "queues that are full", "messages that wait")
plain = settings(max_examples=FEW, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
thorough = settings(
    max_examples=MANY,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink],
    print_blob=True,
)
cuts = st.lists(st.floats(0.01, 0.99) | st.sampled_from([0.25, 0.5]), max_size=2, unique=True).map(sorted)


def start(run, engine, threads=None):
    """A simulation of a run, ready to go."""
    known = run.world.ratings
    probes = [rmse(known), mae(known), objective()]
    simulation = Simulation(run.world, seed=run.seed, probes=probes, engine=engine, threads=threads)
    for script in run.scripts:
        simulation.env.process(script(simulation))
    return simulation


def go(simulation, run, pieces=()):
    """Run to the end, stopping at the given fractions of the time; returns all that can be compared, as bytes."""
    for piece in pieces:
        simulation.run(run.until * piece, every=run.every)
    result = simulation.run(run.until, every=run.every)
    return result, simulation_state(simulation) | probe_table(result)


def simulation_state(simulation):
    """Everything that a run has come to, by name: the whole state and what is in flight, as bytes."""
    tables = simulation._tables
    state = {name: getattr(tables, name).tobytes() for name in ("values", "accounts", "updates", "contacts")}
    for name in (
        "owned",
        "trace",
        "incoming",
        "next_incoming",
        "emitted",
        "saved_values",
        "leaving",
        "finishing",
        "own_count",
        "heard",
    ):
        state[name] = getattr(tables, name).tobytes()
    state["prequential"] = simulation._prequential.frame().to_csv()
    state["recommendations"] = np.sort(simulation._engine.wishes, order=["user", "number"]).tobytes()
    for name in TABLES:
        table = getattr(tables, name)
        state |= {f"{name}: {column}": table[column].tobytes() for column in table.dtype.names}
    state["in flight"] = np.asarray(simulation._engine.in_flight).tobytes()
    state["time"] = np.float64(simulation.env.now).tobytes()
    return state


def probe_table(result):
    """What a run has measured, by name, as bytes."""
    state = {f"probes: {column}": values.to_numpy().tobytes() for column, values in result.probes.items()}
    state["accounts table"] = result.accounts.to_csv()
    for name in ("user_profiles", "item_profiles", "user_updates", "item_updates"):
        state[name] = getattr(result, name).tobytes()
    return state


def differences(expected, found):
    """Names of what differs between two states."""
    return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def assert_engines_agree(run, pieces=(), engines=("one thread", "two threads")):
    """Run on the readable engine and on the compiled one, and compare to the bit."""
    result, expected = go(start(run, "events"), run, pieces)
    for name in engines:
        compiled, found = go(start(run, *ENGINES[name]), run, pieces)
        differing = differences(expected, found)
        assert not differing, f"{name}: {differing} differ; {run!r} with pieces {pieces!r}"
        assert result.probes.equals(compiled.probes), name
        assert compiled.engine == "compiled"
    return result


@plain
@given(runs(), cuts)
def test_engines_agree(run, pieces):
    assert_engines_agree(run, pieces)


@pytest.mark.statistical
@thorough
@given(runs(), cuts)
def test_engines_agree_in_thousands_of_worlds(run, pieces):
    note(f"seed {run.seed}")
    event("two threads" if run.world.minimum_delay > 0 else "one thread, since delays may be 0")
    assert_engines_agree(run, pieces)


def test_the_worlds_drawn_can_tell_engines_apart():
    """Enough of them run on two threads, move profiles, ask for ratings, and meet all that a network does."""
    seen = []

    @settings(plain, max_examples=2 * FEW, phases=[Phase.generate])
    @given(runs(), cuts)
    def look(run, pieces):
        simulation = start(run, "compiled", 2)
        lanes = len(simulation._engine.lanes)
        if "no message can arrive" not in simulation._engine.reason:
            assert (lanes == 2) == (run.world.minimum_delay > 0)
        result, _ = go(simulation, run, pieces)
        accounts = result.accounts.set_index(["kind", "fate"])["messages"]
        tables = simulation._tables
        n_users, life = tables.n_users, tables.life
        made_anew = tables.profiles["incarnation"] > 0
        seen.append(
            {
                "two threads": lanes == 2,
                "zero delays": run.world.minimum_delay == 0,
                "updates": result.user_updates.sum() + result.item_updates.sum() > 0,
                "requests": accounts["request", "sent"] > 0,
                "drawn sessions": (life["law"] >= 0).any(),
                "sessions of a trace": (life["trace_count"] > 0).any(),
                "correlated sessions": (life["correlation"] > 0).any(),
                "sessions by the time of day": (life["amplitude"] > 0).any(),
                "users start anew": made_anew[:n_users].any(),
                "items start anew": made_anew[n_users:].any(),
                "checkpoints": life["saved"].any(),
                "departures": life["departed"].any(),
                "items handed over": accounts["handover", "updated"] > 0,
                "bursts": (tables.channels["sojourn"] > 0).any(),
                "links that lose or are slow": len(tables.paths) > 0,
                "duplicates": tables.settings["duplication"][0] > 0,
                "held back": tables.settings["reordering"][0] > 0,
                "ratings come": run.world.arrivals is not None,
                "queues": len(tables.queues) > 0,
                "queues that are full": accounts.xs("lost_queue", level="fate").sum() > 0,
                "messages that wait": len(tables.queues) > 0 and tables.queues["waited"].sum() > 0,
                "routers found": accounts["found", "control"] > 0,
                "recommendations served": (result.recommendations["outcome"] == "served").any(),
                "scripts": len(run.scripts) > 0,
                "user-written": any(isinstance(script, Meddler) for script in run.scripts),
                "pieces": len(pieces) > 0,
                "several items": len(run.world.router_ids) < run.world.ratings.n_items,
            }
        )

    look()
    share = {name: sum(row[name] for row in seen) / len(seen) for name in seen[0]}
    # What is rare here happens in the larger worlds `leaving`, `restless` and `living`.
    least = dict.fromkeys(share, 0.1) | dict.fromkeys(PLAIN, 0.25)
    least |= {"user-written": 0.1, "zero delays": 0.15, "requests": 0.2}
    least |= dict.fromkeys(["items handed over", "routers found", "recommendations served", *RARE], 0.02)
    assert not {name: value for name, value in share.items() if value < least[name]}, share


# -- larger worlds, each made to strain one part -----------------------------------------------------------------------


def matrix(n_users, n_items, share=1.0):
    """Ratings of a random share of all pairs."""
    rng = np.random.default_rng(8)
    user, item = np.nonzero(rng.uniform(size=(n_users, n_items)) < share)
    values = rng.integers(1, 6, len(user)).astype(float)
    return Ratings.from_arrays(user, item, values, scale=(1, 5), user_ids=range(n_users), item_ids=range(n_items))


def at_once(period, delay, **changes):
    """Options of a world in which everyone ticks at once and every message takes the same time."""
    tick = Periodic(period, phase=0.25)
    return {"user_broadcast": tick, "router_broadcast": tick, "delay": delay, "learning": Learning(rank=2)} | changes


def burst():
    """60 messages meet at each of 120 nodes at one time, again and again."""
    return Run(World(matrix(60, 60), **at_once(0.5, 0.25)), 1.8, 1, 0.5)


def one_window_delay():
    """All delays are the shortest one, and ticks lie on its multiples: arrivals at the edges of windows."""
    options = dict.fromkeys(["user_broadcast", "router_broadcast"], Periodic(0.1, phase=0.0))
    options |= {"delay": 0.0, "minimum_delay": 0.1, "learning": Learning(rank=2)}
    return Run(World(matrix(20, 20, 0.6), **options), 6.0, 2, 1.0)


def overtaking():
    """Items of one router overtake each other and meet: the older emission comes first, then the lower item."""
    options = at_once(0.5, Empirical([0.25, 0.75, 1.25]), routers=2)
    return Run(World(matrix(12, 10), **options), 8.0, 10, 1.0)


def one_router():
    """300 users and 40 items at one router: one event sends 12,000 messages, 300 meet at one time."""
    options = at_once(1.0, 0.5, routers=1)
    return Run(World(matrix(300, 40, 0.3), **options), 2.6, 3, 0.5)


def heavy_tails():
    """Delays of milliseconds to hours: far days, days that come round, messages out of order."""
    world = World(
        matrix(40, 30, 0.4),
        delay=LogNormal(0.3, 2.0),
        user_broadcast=Poisson(1.0),
        router_broadcast=Poisson(1.0),
        routers=7,
        loss=0.05,
        learning=Learning(rank=3),
    )
    return Run(world, 50.0, 4, 5.0)


def late():
    """Some messages take half an hour, most a moment; later pieces see them land."""
    world = World(
        matrix(12, 10, 0.6),
        delay=Empirical([0.05, 0.3, 300.0, 2000.0]),
        user_broadcast=Periodic(20.0),
        router_broadcast=Periodic(20.0),
        discard_stale=False,
        learning=Learning(rank=2),
    )
    return Run(world, 3000.0, 5, 300.0)


def short_and_long_periods():
    """Ticks every 10 ms and every 1,000 s in one world, with sessions."""
    world = World(
        matrix(20, 15, 0.5),
        delay=Uniform(0.0, 0.1),
        user_broadcast=Periodic(Empirical([0.05, 2.0, 1000.0])),
        router_broadcast=Periodic(Empirical([0.01, 500.0])),
        user_churn=OnOff(5.0, 1.0),
        router_churn=OnOff(0.5, 0.1),
        user_fan_out=3,
        learning=Learning(rank=2),
    )
    return Run(world, 30.0, 6, 3.0)


def no_delay():
    """Messages arrive at the time they are sent, so requests, replies and updates pile up at one time."""
    options = at_once(0.5, 0.0, minimum_delay=0.0, routers=9, user_churn=OnOff(2.0, 0.5))
    return Run(World(matrix(30, 30, 0.4), **options), 8.0, 7, 0.5)


def paths():
    """Latencies along paths of a directed ring, another one each way; some places cannot be reached."""
    graph = nx.DiGraph()
    for place in range(8):
        graph.add_edge(place, (place + 1) % 8, latency=0.01 * (place + 1))
    graph.add_node("alone")
    world = World(
        matrix(40, 30, 0.3),
        topology=Underlay.from_graph(graph),
        access=Uniform(0.0, 0.05),
        user_contacts=RandomRouters(12),
        user_broadcast=0.5,
        router_broadcast=0.5,
        learning=Learning(rank=2),
    )
    return Run(world, 10.0, 8, 1.0)


def nearer_contacts():
    """In mid-run a script makes nodes contacts that are much nearer than any before, so windows must get shorter."""
    graph = nx.Graph()
    graph.add_edge("here", "there", latency=1.0)
    users, items = range(6), range(6)
    far = {"user_contacts": GivenContacts({user: [1, 3, 5] for user in users})}
    far |= {"router_contacts": GivenContacts({router: list(users) for router in (1, 3, 5)})}
    at = dict.fromkeys(users, "here")
    placement = GivenPlacement(at, {router: "there" if router % 2 else "here" for router in items})
    options = at_once(0.25, 0.0, minimum_delay=0.01, topology=Underlay.from_graph(graph), placement=placement)
    steps = [(2.6, "set_contacts", (list(items),), {"user": user}) for user in users]
    steps += [(2.6, "set_contacts", (list(users),), {"router": router}) for router in items]
    return Run(World(matrix(6, 6), **options, **far), 8.0, 11, 1.0, (Script(tuple(steps)),))


def scripted():
    """Contacts, delays, loss and nodes change in mid-run, at the times of ticks and arrivals."""
    steps = []
    for n in range(12):
        time = 0.25 + 0.5 * n
        steps += [
            (time, "set_contacts", (list(range(n, n + 9)),), {"user": n}),
            (time, "set_contacts", (list(range(0, 30, n + 1)),), {"router": n}),
            (time, "set_delay", (Constant(0.25 * (1 + n % 3)),), {}),
            (time + 0.25, "set_delay", (0.0 if n % 4 == 0 else Uniform(0.1, 0.9),), {}),
            (time, "set_loss", (0.3 * (n % 2),), {}),
            (time, "set_online", (n % 3 == 0,), {"user": 2 * n}),
            (time + 0.25, "set_online", (n % 2 == 0,), {"router": n}),
        ]
    steps.sort(key=lambda step: step[0])
    world = World(matrix(30, 24, 0.3), **at_once(0.25, 0.25, user_churn=OnOff(3.0, 1.0), request_timeout=0.5))
    return Run(world, 7.0, 9, 0.5, (Script(tuple(steps)), Meddler(0.5)))


def leaving():
    """Routers quit one after another; their items, several each, move on with their profiles, and again."""
    world = World(
        matrix(24, 20, 0.5),
        routers=8,
        user_broadcast=0.5,
        router_broadcast=0.5,
        delay=Uniform(0.05, 0.6),
        loss=0.1,
        duplication=0.1,
        router_lifetime=Exponential(6.0),
        user_lifetime=Exponential(30.0),
        rehosting="handover",
        user_return="reset",
        router_return=Checkpoint(1.0),
        router_churn=OnOff(5.0, 0.5),
        learning=Learning(rank=3),
    )
    return Run(world, 12.0, 12, 1.0)


def attached():
    """The same with ratings attached: sizes change while messages are on their way."""
    run = leaving()
    return replace(run, world=run.world.replace(rating_exchange="attach", rehosting="fresh"))


def restless():
    """Sessions of every kind, bursts, losses and speeds of links, faults; two regions."""
    graph = nx.barabasi_albert_graph(12, 2, seed=3)
    for number, (u, v) in enumerate(graph.edges):
        graph.edges[u, v].update(latency=0.01 * (1 + number % 5), loss=0.02 * (number % 3), bandwidth=2e4)
    for place in graph:
        graph.nodes[place]["region"] = "east" if place % 2 else "west"
    world = World(
        matrix(30, 24, 0.4),
        Underlay.from_graph(graph),
        user_broadcast=0.5,
        router_broadcast=Poisson(0.5),
        delay=LogNormal(0.05, 1.0),
        pair_delay=Uniform(0.0, 0.1),
        loss=GilbertElliott(0.1, 2.0),
        reordering=Reordering(0.1, 1.5),
        duplication=0.05,
        user_churn=Sessions(
            Weibull(4.0, 0.6), LogNormal(1.0, 1.0), correlation=0.5, diurnal=Diurnal(0.7, 2.0, day=8.0)
        ),
        router_churn=Sessions(Pareto(2.0, 1.8), Gamma(0.8, 1.0)),
        user_return=Checkpoint(0.7),
        router_return="reset",
        learning=Learning(rank=2),
    )
    acts = (
        partition([0, 1, 2, 3], at=2.0, until=4.0),
        link_failure(list(graph.edges)[:3], at=1.0, until=6.0),
        router_outage(0.3, at=3.0, until=5.0),
        region_outage("east", at=7.0, until=8.0),
        latency_shift(at=5.0, until=9.0, seconds=0.1, factor=2.0),
        latency_shift(at=6.0, factor=0.5),
        flash_crowd(0.3, at=2.5, until=9.5),
    )
    return Run(world, 12.0, 13, 0.5, acts)


def living():
    """Ratings come and change, users ask for recommendations, messages queue, lists are learned; routers quit."""
    known = matrix(24, 20, 0.5)
    comes = Arrivals.drawn(known, span=8.0, seed=1, known=0.4).with_changes(known, share=0.1, span=9.0, seed=2)
    world = World(
        known,
        routers=8,
        user_contacts=LearnedRouters(timeout=0.6, at_once=3),
        router_contacts=HeardUsers(),
        user_patience=2.0,
        router_patience=3.0,
        user_broadcast=0.5,
        router_broadcast=0.5,
        delay=Uniform(0.02, 0.3),
        loss=0.05,
        duplication=0.1,
        arrivals=comes,
        recommendations=Recommendations(known, mean_gap=0.5, timeout=0.5),
        user_uplink=4000.0,
        router_uplink=Uniform(5000.0, 20000.0),
        router_processing=Exponential(0.01),
        queue_limit=8,
        router_lifetime=Exponential(15.0),
        rehosting="handover",
        router_churn=OnOff(5.0, 0.5),
        learning=Learning(rank=3),
    )
    return Run(world, 10.0, 14, 1.0)


LARGE = {
    make.__name__: make
    for make in (
        burst,
        one_window_delay,
        overtaking,
        one_router,
        heavy_tails,
        late,
        short_and_long_periods,
        no_delay,
        paths,
        nearer_contacts,
        scripted,
        leaving,
        attached,
        restless,
        living,
    )
}


@pytest.mark.parametrize("name", LARGE)
def test_engines_agree_in_larger_worlds(name):
    run = LARGE[name]()
    result = assert_engines_agree(run, engines=ENGINES)
    assert result.user_updates.sum() > 0
    assert result.item_updates.sum() > 0


@pytest.mark.parametrize(
    "name", ["one_window_delay", "heavy_tails", "late", "no_delay", "scripted", "leaving", "restless", "living"]
)
def test_a_run_in_pieces_ends_as_one_at_once(name):
    run = LARGE[name]()
    run = replace(run, scripts=run.scripts[:1])  # a Meddler reads the probes, whose times are others in pieces
    _, expected = go(start(run, "events"), run)
    pieces = (0.1, 0.25, 0.3333, 0.9)
    for engine in [("events", None), *ENGINES.values()]:
        simulation = start(run, *engine)
        go(simulation, run, pieces)
        state = simulation_state(simulation)
        assert not differences({key: expected[key] for key in state}, state), engine


def test_a_script_that_ends_at_a_probe_and_at_the_end_acts_before_the_model():
    """What a script does at the last moment, and at a probe's, is in both engines seen by neither."""
    acts = tuple((time, "set_online", (time == 2.0,), {"user": 0}) for time in (1.0, 2.0, 3.0))
    run = Run(World(matrix(6, 6), **at_once(0.25, 0.25)), 3.0, 1, 1.0, (Script(acts),))
    result = assert_engines_agree(run, engines=ENGINES)
    assert result.probes["users_online"].tolist() == [6, 6, 5, 6]
