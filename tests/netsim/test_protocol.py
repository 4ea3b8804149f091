"""The protocol of ratings and profiles, and what a `World` accepts: small cases, written out."""

import json

import networkx as nx
import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import (
    Constant,
    GivenContacts,
    GivenPlacement,
    Learning,
    LogNormal,
    MessageTrace,
    Normal,
    OnOff,
    Periodic,
    Poisson,
    RandomRouters,
    Raters,
    Schedule,
    Simulation,
    Uniform,
    World,
    simulate,
)
from netsim.engines.events import Message

EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1.0, phase=1e6)
RANK = 2


def one_user(**changes):
    """User "a" rated items 0 and 1 of three that one router hosts; he broadcasts at 0, 1, ...; 0.25 s a message."""
    ratings = Ratings.from_arrays(["a", "a"], [0, 1], [2.0, 4.0], item_ids=[0, 1, 2], scale=(1, 5))
    plain = World(
        ratings,
        routers=1,
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        delay=0.25,
        minimum_delay=0.0,
        learning=Learning(rank=RANK, lam=0.1, rate=0.05),
    )
    return plain.replace(**changes)


def crowd(**changes):
    """Six users, five routers of one item each; all rated all."""
    pairs = [(user, item) for user in range(6) for item in "pqrst"]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + n % 5 for n in range(len(pairs))])
    every = {"user_broadcast": EACH_SECOND, "router_broadcast": EACH_SECOND, "minimum_delay": 0.25}
    return World(ratings, **every).replace(**changes)


def run(world, until, *scripts):
    """Messages as (kind, sent, arrives, fate), the sizes by kind, and the result."""
    trace = MessageTrace()
    result = simulate(world, until=until, seed=1, scripts=scripts, trace=trace)
    rows = trace.frame()[["kind", "sent", "arrives", "fate"]]
    return list(rows.itertuples(index=False, name=None)), trace.frame(), result


def booked(result, kind, fate):
    return result.accounts.set_index(["kind", "fate"]).loc[(kind, fate)].tolist()


# -- requests and replies ----------------------------------------------------------------------------------------------


def test_an_unknown_rating_is_asked_for_once():
    messages, _, result = run(one_user(), 2.5)
    assert messages == [
        ("profile", 0.0, 0.25, "unknown"),
        ("request", 0.25, 0.5, "control"),
        ("reply", 0.5, 0.75, "updated"),
        ("profile", 1.0, 1.25, "updated"),  # "not rated" is remembered, and not asked again
        ("profile", 2.0, 2.25, "updated"),
    ]
    assert result.item_updates.tolist() == [3, 3, 0]
    assert booked(result, "profile", "sent") == [3, 3 * (48 + 8 * RANK)]
    assert booked(result, "request", "control") == [1, 48 + 8 * 3]  # all three items in one request
    assert booked(result, "reply", "updated") == [1, 48 + 8 * RANK + 16 * 3 + 8]  # and the attempt


@pytest.mark.parametrize(
    ("timeout", "asked"),
    [(60.0, [2.0]), (3.5, [2.0]), (1.0, [2.0, 3.0, 4.0, 5.0]), (1.5, [2.0, 4.0]), (2.0, [2.0, 4.0])],
)
def test_no_second_request_while_one_is_outstanding(timeout, asked):
    messages, _, result = run(one_user(delay=2.0, request_timeout=timeout), 7.5)
    assert [sent for kind, sent, *_ in messages if kind == "request"] == asked
    assert [fate for kind, sent, _, fate in messages if kind == "profile"][:4] == ["unknown"] * 4
    assert result.item_updates[0] > 0


def test_a_lost_request_is_asked_again_after_the_timeout():
    def heal(simulation):
        yield simulation.env.timeout(0.2)
        simulation.set_loss(1.0)
        yield simulation.env.timeout(0.2)
        simulation.set_loss(0.0)

    messages, _, _ = run(one_user(request_timeout=2.0), 3.0, heal)
    assert [(sent, fate) for kind, sent, _, fate in messages if kind == "request"] == [
        (0.25, "lost_link"),
        (2.25, "control"),
    ]


def test_a_stale_reply_teaches_the_rating_only():
    def overtake(simulation):
        yield simulation.env.timeout(0.4)
        simulation.set_delay(5.0)
        yield simulation.env.timeout(0.2)
        simulation.set_delay(0.25)

    world = one_user()
    messages, _, before = run(world, 6.0, overtake)
    assert ("reply", 0.5, 5.5, "stale") in messages
    assert [fate for kind, *_, fate in messages if kind == "profile"] == ["unknown"] * 6
    assert before.item_updates.tolist() == [0, 0, 0]
    messages, _, after = run(world, 7.0, overtake)
    assert messages[-1] == ("profile", 6.0, 6.25, "updated")
    assert after.item_updates.tolist() == [1, 1, 0]
    _, _, loose = run(world.replace(discard_stale=False), 6.0, overtake)
    assert loose.item_updates.tolist() == [1, 1, 0]


@pytest.mark.parametrize(("discard_stale", "fate"), [(True, "stale"), (False, "updated")])
@pytest.mark.parametrize("role", ["user", "router"])
def test_what_arrives_twice_is_stale(role, discard_stale, fate):
    """Each message is handed over once by hand before it arrives."""
    timers = {"user_broadcast": EACH_SECOND if role == "router" else NEVER, "router_broadcast": EACH_SECOND}
    world = one_user(rating_exchange="attach", discard_stale=discard_stale, **timers)
    trace = MessageTrace()
    simulation = Simulation(world, seed=1, trace=trace)
    simulation.env.run(until=0.1)
    for message in simulation.env.pending(Message):
        simulation._engine.nodes[1 if message.profile == 0 else 0].take_profile(message)
    simulation.env.run(until=0.5)
    frame = trace.frame().query("profile == 0" if role == "router" else "profile in (1, 2)")
    assert set(frame["fate"]) == {fate}


def test_an_answer_that_names_no_rating_ends_the_asking():
    world = one_user(user_contacts=GivenContacts({"a": ["z"]}), routers=("y", "z"), hosting={0: "y", 1: "y", 2: "z"})
    messages, _, result = run(world, 2.5)
    assert [(kind, fate) for kind, _, _, fate in messages] == [
        ("profile", "unknown"),
        ("request", "control"),
        ("reply", "unrated"),
        ("profile", "unrated"),
        ("profile", "unrated"),
    ]
    assert result.item_updates.sum() == 0


def test_attached_ratings_are_not_asked_for():
    messages, _, result = run(one_user(rating_exchange="attach"), 2.5)
    assert messages == [("profile", time, time + 0.25, "updated") for time in (0.0, 1.0, 2.0)]
    assert result.item_updates.tolist() == [3, 3, 0]
    assert booked(result, "profile", "sent") == [3, 3 * (48 + 8 * RANK + 16 * 2)]  # the two ratings he has


def test_a_router_offline_loses_the_reply_and_asks_again():
    def away(simulation):
        yield simulation.env.timeout(0.6)
        simulation.set_online(False, router=0)
        yield simulation.env.timeout(0.2)
        simulation.set_online(True, router=0)

    messages, _, _ = run(one_user(request_timeout=1.0), 2.5, away)
    assert ("reply", 0.5, 0.75, "lost_offline") in messages
    assert [sent for kind, sent, *_ in messages if kind == "request"] == [0.25, 1.25]


# -- updates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regularization", ["per_message", "uniform"])
def test_each_update_is_equation_3_or_4(regularization):
    """The user's second update has age 1 of his own; his two known ratings divide lambda where it is uniform."""
    learning = Learning(
        rank=RANK, lam=0.3, rate=0.05, regularization=regularization, schedule=Schedule("inverse", 2.0, age="updates")
    )
    world = one_user(learning=learning, user_broadcast=NEVER, router_broadcast=Periodic(9.0, phase=0.0))
    simulation = Simulation(world, seed=1)
    start = simulation.view()
    u, items = start.user_profiles[0].copy(), start.item_profiles
    result = simulation.run(1.0)
    for age, (v, x) in enumerate(zip(items[:2], (2.0, 4.0), strict=True)):
        eta, lam = 0.05 / (1 + age / 2.0), 0.3 / (2 if regularization == "uniform" else 1)
        u = u - eta * v * (u @ v - x) - eta * lam * u
    np.testing.assert_allclose(result.user_profiles[0], u, rtol=1e-13)
    assert result.user_updates.tolist() == [2]


def test_a_router_counts_the_ratings_it_knows_for_uniform():
    learning = Learning(rank=1, lam=0.5, rate=0.1, regularization="uniform")
    ratings = Ratings.from_arrays(["a", "b"], ["x", "x"], [2.0, 4.0], scale=(1, 5))
    world = World(ratings, user_broadcast=EACH_SECOND, router_broadcast=NEVER, delay=0.25, learning=learning)
    simulation = Simulation(world, seed=1)
    start = simulation.view()
    v, users = float(start.item_profiles[0, 0]), start.user_profiles[:, 0]
    for known, (u, x) in enumerate(zip(users, (2.0, 4.0), strict=True), start=1):  # the replies come in turn
        v = v - 0.1 * u * (u * v - x) - 0.1 * 0.5 / known * v
    assert simulation.run(1.0).item_profiles[0, 0] == pytest.approx(v, rel=1e-13)


def test_each_node_draws_its_own_learning_rate():
    rates = Simulation(crowd(learning=Learning(rate=Uniform(0.01, 0.1))), seed=1)._tables.profiles["rate"]
    assert len(set(rates.tolist())) == 11
    assert ((rates > 0.01) & (rates < 0.1)).all()
    shared = Simulation(crowd(routers=1, learning=Learning(rate=Uniform(0.01, 0.1))), seed=1)._tables.profiles["rate"]
    assert len(set(shared[6:].tolist())) == 1  # the items of one router


# -- the network -------------------------------------------------------------------------------------------------------


def test_places_that_no_path_joins():
    here = GivenPlacement({"a": "home"}, {0: "away"})
    graph = nx.DiGraph()
    graph.add_nodes_from(["home", "away"])
    messages, _, result = run(one_user(topology=graph, placement=here), 2.5)
    assert messages == [("profile", time, np.inf, "unreachable") for time in (0.0, 1.0, 2.0)]
    assert booked(result, "profile", "unreachable") == [3, 3 * 64]
    graph.add_edge("home", "away", latency=0.5)
    messages, _, _ = run(one_user(topology=graph, placement=here), 2.5)
    assert messages[:3] == [
        ("profile", 0.0, 0.75, "unknown"),
        ("request", 0.75, np.inf, "unreachable"),
        ("profile", 1.0, 1.75, "unknown"),
    ]


def test_path_access_and_drawn_delay_add_up():
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 1.0, "latency")
    world = one_user(topology=graph, placement=GivenPlacement({"a": 0}, {0: 2}), access=0.125, delay=0.5)
    messages, _, _ = run(world, 3.0)
    assert messages[0] == ("profile", 0.0, 2.75, "unknown")
    messages, _, _ = run(world.replace(minimum_delay=2.875), 3.0)
    assert messages[0] == ("profile", 0.0, 2.875, "unknown")


def test_certain_loss_loses_everything():
    _, frame, result = run(crowd(loss=1.0), 5.0)
    assert set(frame["fate"]) == {"lost_link"}
    assert len(frame) == 5 * 60
    assert result.user_updates.sum() == result.item_updates.sum() == 0


def test_fan_out_sends_to_so_many_and_varies():
    _, frame, _ = run(crowd(user_fan_out=2, router_fan_out=4), 10.0)
    profiles = frame[frame["kind"] == "profile"]
    chosen = profiles.groupby(["profile", "sent"])["receiver"].agg(frozenset)
    assert {len(receivers) for receivers in chosen.loc[:5]} == {2}
    assert {len(receivers) for receivers in chosen.loc[6:]} == {4}
    assert (chosen.groupby("profile").nunique() > 2).all()
    _, frame, _ = run(crowd(user_fan_out=9), 1.0)
    assert len(frame.query("sender < 6 and kind == 'profile'")) == 6 * 5


def test_drawn_contact_lists_have_the_length_asked_for():
    _, frame, _ = run(crowd(user_contacts=RandomRouters(3), router_contacts=Raters(cap=2)), 1.0)
    profiles = frame[frame["kind"] == "profile"]
    reached = profiles.groupby("sender")["receiver"].nunique()
    assert reached.tolist() == [3] * 6 + [2] * 5
    assert len(set(profiles.query("sender < 6").groupby("sender")["receiver"].agg(frozenset))) > 1


def test_given_contact_lists():
    lists = {"user_contacts": GivenContacts({0: "pq", 3: ["t"]}), "router_contacts": GivenContacts({"q": [5]})}
    _, frame, _ = run(crowd(**lists), 1.0)
    pairs = frame[(frame["kind"] == "profile") & (frame["sent"] == 0)][["sender", "receiver"]]
    assert sorted(map(tuple, pairs.to_numpy().tolist())) == [(0, 6), (0, 7), (3, 10), (7, 5)]


def test_a_node_that_is_away_keeps_its_profile_and_its_stamps():
    def away(simulation):
        yield simulation.env.timeout(1.5)
        simulation.set_online(False, user="a")
        kept = simulation.view().user_profiles
        yield simulation.env.timeout(2.0)
        np.testing.assert_array_equal(simulation.view().user_profiles, kept)
        simulation.set_online(True, user="a")

    world = one_user(router_broadcast=Periodic(1.0, phase=0.5))
    _, frame, _ = run(world, 5.0, away)
    own = frame.query("sender == 0 and kind == 'profile'")
    assert own["sent"].tolist() == [0.0, 1.0, 4.0]
    assert own["stamp"].tolist() == [1, 3, 4]  # 2 went with the reply; ticks offline use none
    assert set(frame.query("receiver == 0 and 1.5 <= arrives < 3.5")["fate"]) == {"lost_offline"}


def test_set_contacts_holds_for_later_broadcasts_and_keeps_what_is_known():
    def change(simulation):
        yield simulation.env.timeout(1.5)
        simulation.set_contacts([], user="a")
        yield simulation.env.timeout(2.0)
        simulation.set_contacts([0], user="a")

    messages, _, _ = run(one_user(), 4.5, change)
    assert [(sent, fate) for kind, sent, _, fate in messages if kind == "profile"] == [
        (0.0, "unknown"),
        (1.0, "updated"),
        (4.0, "updated"),
    ]


# -- what a world accepts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": 30}, r"loss must be in \[0, 1\], .*got 30; pass a fraction"),
        ({"loss": -0.1}, r"loss must be .*got -0.1"),
        ({"loss": float("nan")}, "loss must be .*got nan"),
        ({"loss": "0.1"}, "loss must be .*got '0.1'"),
        ({"delay": -1.0}, "delay must not give values below 0, got -1"),
        ({"delay": Normal(1.0, 1.0)}, "delay must not .*Normal"),
        ({"delay": "slow"}, "delay must be .*got 'slow'"),
        ({"access": -1.0}, "access must not .*-1"),
        ({"minimum_delay": -1.0}, "minimum_delay must be .*got -1"),
        ({"minimum_delay": float("inf")}, "minimum_delay must be .*got inf"),
        ({"request_timeout": 0}, "request_timeout must be .*got 0"),
        ({"user_fan_out": 0}, "user_fan_out must be .*got 0"),
        ({"router_fan_out": 1.5}, "router_fan_out must be .*got 1.5"),
        ({"router_fan_out": True}, "router_fan_out must be .*got True"),
        ({"rating_exchange": "ask"}, "rating_exchange must be 'request' or 'attach', got 'ask'"),
        ({"user_broadcast": 0}, "user_broadcast must be .*got 0"),
        ({"router_broadcast": -1}, "router_broadcast must be .*got -1"),
        ({"router_broadcast": float("nan")}, "router_broadcast must be .*got nan"),
        ({"discard_stale": 1}, "discard_stale must be bool, got 1"),
        ({"user_churn": 0.5}, "user_churn must be OnOff or Sessions or AvailabilityTrace or None, got 0.5"),
        ({"router_churn": "trace.txt"}, "router_churn must be .*got 'trace.txt'"),
        ({"duplication": 2}, "duplication must be in \\[0, 1\\], got 2; pass a fraction"),
        ({"reordering": 0.1}, "reordering must be Reordering or None, got 0.1"),
        ({"pair_delay": -0.1}, "pair_delay must not give values below 0, got -0.1"),
        ({"user_return": "restore"}, "user_return must be 'keep', 'reset' or a Checkpoint, got 'restore'"),
        ({"router_return": 60.0}, "router_return must be .*Checkpoint, got 60.0"),
        ({"user_lifetime": -1.0}, "user_lifetime must not give values below 0, got -1"),
        ({"router_lifetime": "long"}, "router_lifetime must be .*got 'long'"),
        ({"rehosting": "move"}, "rehosting must be 'fresh', 'handover' or None, got 'move'"),
        ({"rehosting": "fresh", "routers": 1}, "rehosting='fresh' needs another router .*got 1 router"),
        ({"routers": 0}, "routers must be .*got 0"),
        ({"routers": True}, "routers must be .*got True"),
        ({"routers": "ab"}, "routers must be .*got 'ab'"),
        ({"routers": ["x", "x"]}, "routers must be .*twice"),
        ({"hosting": {"p": "p"}}, "hosting must name a router for each item, got none for item 'q'"),
        ({"hosting": dict.fromkeys("pqrst", "nobody")}, "hosting gives item 'p' to 'nobody'"),
        ({"topology": 3}, "topology must be .*got 3"),
        ({"placement": "home"}, "placement must be .*got 'home'"),
        ({"learning": None}, "learning must be .*got None"),
        ({"ratings": [1]}, "ratings must be a Ratings, got list"),
    ],
)
def test_a_wrong_argument_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        crowd(**change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Learning(rank=0), "rank must be .*got 0"),
        (lambda: Learning(rank=2.0), "rank must be .*got 2.0"),
        (lambda: Learning(lam=-1), "lam must be .*got -1"),
        (lambda: Learning(rate=-1), "rate must .*-1"),
        (lambda: Learning(regularization="l2"), "regularization must be .*'l2'"),
        (lambda: Schedule("cosine"), "form must be .*'cosine'"),
        (lambda: Schedule("inverse"), "half_life must be finite"),
        (lambda: Periodic(0), "period must be > 0"),
        (lambda: Periodic(1.0, phase=-1.0), "phase must .*-1"),
        (lambda: Poisson(0), "mean_gap must be .*got 0"),
        (lambda: OnOff(0, 1), "mean_online must be .*got 0"),
        (lambda: OnOff(1, float("inf")), "mean_offline must be .*got inf"),
        (lambda: RandomRouters(0), "count must be .*got 0"),
        (lambda: Raters(0), "cap must be .*got 0"),
        (lambda: LogNormal(0, 1), "median must be .*got 0"),
    ],
)
def test_a_wrong_part_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user_contacts": GivenContacts({9: ["p"]})}, "9 is not a user"),
        ({"user_contacts": GivenContacts({0: ["z"]})}, "'z' in the list of user 0 is not a router"),
        ({"router_contacts": GivenContacts({"p": [17]})}, "17 in the list of router 'p' is not a user"),
        ({"user_contacts": RandomRouters(6)}, "count is 6, but there are only 5 routers"),
        ({"placement": GivenPlacement({}, {})}, "user 0 has no place"),
        ({"placement": GivenPlacement(dict.fromkeys(range(6), 0), {})}, "router 'p' has no place"),
        ({"placement": GivenPlacement(dict.fromkeys(range(6), "moon"), {})}, "user 0 is placed at 'moon'"),
    ],
)
def test_who_is_not_there_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        simulate(crowd(**change), until=1.0, seed=1)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.set_online(True), "name one node"),
        (lambda s: s.set_online(True, user=0, router="p"), "name one node"),
        (lambda s: s.set_online(True, user="p"), "user='p' is not a user"),
        (lambda s: s.set_loss(2), "loss must be .*got 2"),
        (lambda s: s.set_delay(-1), "delay must .*-1"),
        (lambda s: s.set_contacts(["nobody"], user=0), "'nobody', which is not a router"),
        (lambda s: s.set_contacts(["q"], router="p"), "'q', which is not a user"),
        (lambda s: s.run(0), "until must be .*got 0"),
        (lambda s: s.run(1.0, every=0), "every must be .*got 0"),
    ],
)
def test_what_a_script_may_not_say_is_named(act, message):
    with pytest.raises(ValueError, match=message):
        act(Simulation(crowd(), seed=1))


def test_a_world_is_data():
    first, second = crowd(delay=0.1), crowd(delay=Constant(0.1))
    assert first == second
    assert first != first.replace(loss=0.1)
    assert first.replace(loss=0.1).replace(loss=0.0) == first
    assert first.replace(routers=["x", "y"]).router_ids == ("x", "y")
    with pytest.raises(ValueError, match="loss"):
        first.replace(loss=7)
    with pytest.raises(AttributeError):
        first.loss = 0.5


def test_a_run_leaves_its_world_as_it_was():
    def script(simulation):
        yield simulation.env.timeout(0.5)
        simulation.set_loss(1.0)
        simulation.set_delay(3.0)
        simulation.set_contacts([], user=0)

    world, graph = crowd(), nx.path_graph(2)
    nx.set_edge_attributes(graph, 1.0, "latency")
    before = world.replace(topology=graph).describe()
    result = simulate(world.replace(topology=graph), until=1.0, seed=1, scripts=[script])
    assert result.world.describe() == before
    assert world == crowd()
    assert dict(graph.edges) == {(0, 1): {"latency": 1.0}}


def test_a_description_can_be_written_as_json():
    world = crowd(
        user_fan_out=np.int64(2),
        user_contacts=RandomRouters(np.int64(2)),
        delay=LogNormal(0.07, 0.8),
        user_churn=OnOff(1, 2),
        request_timeout=np.inf,
        hosting=dict.fromkeys("pqrst", "p"),
    )
    plain = json.loads(json.dumps(world.describe(), allow_nan=False))
    assert plain["user_fan_out"] == 2
    assert plain["user_contacts"] == {"type": "RandomRouters", "count": 2, "every": None}
    assert plain["delay"] == {"distribution": "LogNormal", "median": 0.07, "sigma": 0.8}
    assert plain["ratings"]["sha256"] == world.ratings.digest
    assert plain["hosting"][0] == ["p", "p"]


def test_a_view_is_of_its_moment():
    simulation = Simulation(one_user(), seed=1)
    view, before = simulation.view(), simulation.view().item_profiles
    simulation.run(1.0)
    assert (view.time, simulation.view().time) == (0.0, 1.0)
    np.testing.assert_array_equal(view.item_profiles, before)
