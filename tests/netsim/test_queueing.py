"""Queues of uplinks and of processing, first in first out: every wait by hand."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    Constant,
    Empirical,
    Exponential,
    GivenContacts,
    GivenPlacement,
    Learning,
    MessageTrace,
    OnOff,
    Periodic,
    Poisson,
    Recommendations,
    Simulation,
    Uniform,
    World,
    simulate,
)

ONCE = Periodic(1e6, phase=0.0)
EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1e6, phase=1e6)
RANK = 2
PROFILE, ATTACHED = 48 + 8 * RANK, 48 + 8 * RANK + 16
some = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def crowd(n, items="p", **changes):
    """n users who rated all items of router "x" and attach their ratings; nobody sends; a message takes 0.25 s."""
    pairs = [(f"u{k}", item) for k in range(n) for item in items]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + k % 5 for k in range(len(pairs))], scale=(1, 5))
    plain = World(
        ratings,
        routers=("x",),
        user_broadcast=NEVER,
        router_broadcast=NEVER,
        delay=0.25,
        minimum_delay=0.0,
        rating_exchange="attach",
        learning=Learning(rank=RANK, lam=0.1, rate=0.05),
    )
    return plain.replace(**changes)


def times(world, until, column, engine, *scripts, every=0.125):
    """When updates are made: the probes, of every eighth of a second, before which they were; once for each."""
    result = simulate(world, until=until, seed=1, every=every, engine=engine, scripts=scripts)
    grown = result.probes[column].diff().fillna(0).astype(int)
    return [time - every for time, n in zip(result.probes["time"], grown, strict=True) for _ in range(n)], result


def arrivals(world, until, *scripts, kind="profile"):
    """Times of arrival of messages, in the order of sending."""
    trace = MessageTrace()
    simulate(world, until=until, seed=1, trace=trace, scripts=scripts)
    frame = trace.frame()
    return frame[frame["kind"] == kind]["arrives"].tolist()


def fates(result):
    found = result.accounts.set_index(["kind", "fate"])
    return {key: (row["messages"], row["bytes"]) for key, row in found.iterrows() if row["messages"] > 0}


def queue(simulation, name, *, user=None, router=None):
    return float(simulation._tables.queues[name][simulation._node(user, router)])


# -- uplinks -----------------------------------------------------------------------------------------------------------


def test_copies_of_a_broadcast_leave_one_after_another(engine):
    """A profile takes the router's uplink 1 s."""
    world = crowd(3, router_broadcast=ONCE, router_uplink=float(PROFILE))
    assert arrivals(world, 9.0) == [1.25, 2.25, 3.25]
    found, _ = times(world, 9.0, "user_updates", engine)
    assert found == [1.25, 2.25, 3.25]


def test_copies_leave_in_the_order_of_contacts_then_items(engine):
    world = crowd(2, "pq", router_broadcast=ONCE, router_uplink=float(PROFILE))
    trace = MessageTrace()
    simulate(world, until=9.0, seed=1, trace=trace)
    assert trace.frame()[["profile", "receiver", "arrives"]].to_numpy().tolist() == [
        [2, 0, 1.25],
        [2, 1, 2.25],
        [3, 0, 3.25],
        [3, 1, 4.25],
    ]
    assert times(world, 9.0, "user_updates", engine)[0] == [1.25, 2.25, 3.25, 4.25]


def test_the_next_broadcast_waits_for_the_one_before(engine):
    """Three copies of 0.5 s each second: the backlog grows by half a second each time."""
    world = crowd(3, router_broadcast=EACH_SECOND, router_uplink=2.0 * PROFILE)
    found, _ = times(world, 4.5, "user_updates", engine)
    assert found == [0.75 + 0.5 * n for n in range(8)]


def test_an_uplink_that_is_idle_starts_at_once(engine):
    world = crowd(2, router_broadcast=Periodic(3.0, phase=0.0), router_uplink=float(PROFILE))
    assert times(world, 6.0, "user_updates", engine)[0] == [1.25, 2.25, 4.25, 5.25]


def test_each_user_has_an_uplink_of_his_own(engine):
    """A profile with a rating attached takes 1 s."""
    world = crowd(3, user_broadcast=ONCE, user_uplink=float(ATTACHED))
    assert times(world, 4.0, "item_updates", engine)[0] == [1.25] * 3


def test_bytes_take_time():
    """A profile of rank 10 takes twice as many bytes as one of rank 2, as their sizes say."""
    for rank in (2, 10):
        world = crowd(2, router_broadcast=ONCE, router_uplink=64.0, learning=Learning(rank=rank))
        size = 48 + 8 * rank
        assert arrivals(world, 9.0) == [0.25 + size / 64, 0.25 + 2 * size / 64]


def test_uplinks_are_drawn_for_each_node():
    world = crowd(40, user_broadcast=ONCE, user_uplink=Empirical([float(ATTACHED), 2.0 * ATTACHED]))
    found = arrivals(world, 9.0)
    assert set(found) == {0.75, 1.25}
    assert found == arrivals(world, 9.0)


def test_lost_messages_take_the_uplink_and_unreachable_ones_do_not():
    """Two users sit elsewhere; the first of them cannot be reached."""
    graph = nx.Graph()
    graph.add_edge("here", "there", latency=0.5)
    graph.add_node("nowhere")
    sites = GivenPlacement({"u0": "nowhere", "u1": "there", "u2": "here"}, {"x": "here"})
    world = crowd(3, router_broadcast=ONCE, router_uplink=float(PROFILE), topology=graph, placement=sites)
    assert arrivals(world, 9.0) == [math.inf, 1.75, 2.25]
    simulation = Simulation(world.replace(loss=1.0), seed=1)
    simulation.run(9.0)
    assert queue(simulation, "uplink_free", router="x") == 2.0


def test_copies_that_the_network_makes_do_not_take_the_uplink(engine):
    world = crowd(3, router_broadcast=ONCE, router_uplink=float(PROFILE), duplication=1.0, discard_stale=False)
    assert arrivals(world, 9.0) == [1.25, 1.25, 2.25, 2.25, 3.25, 3.25]
    found, result = times(world, 9.0, "user_updates", engine)
    assert found == [1.25, 1.25, 2.25, 2.25, 3.25, 3.25]
    assert result.routers[["profiles_sent", "bytes_sent"]].to_numpy().tolist() == [[3, 3 * PROFILE]]


def test_what_has_been_sent_leaves_though_its_sender_goes_offline(engine):
    def away(simulation):
        yield simulation.env.timeout(0.5)
        simulation.set_online(False, router="x")

    world = crowd(3, router_broadcast=ONCE, router_uplink=float(PROFILE))
    assert times(world, 9.0, "user_updates", engine, away)[0] == [1.25, 2.25, 3.25]


def test_a_full_uplink_drops(engine):
    """Of three copies there is room for two; the second leaves as the next tick comes, and so two go again."""
    world = crowd(3, router_broadcast=Periodic(2.0, phase=0.0), router_uplink=float(PROFILE), queue_limit=2)
    found, result = times(world, 4.0, "user_updates", engine)
    assert found == [1.25, 2.25, 3.25]
    assert result.user_updates.tolist() == [2, 1, 0]
    assert fates(result) == {
        ("profile", "sent"): (6, 6 * PROFILE),
        ("profile", "lost_queue"): (2, 2 * PROFILE),
        ("profile", "updated"): (3, 3 * PROFILE),
        ("profile", "in_flight"): (1, PROFILE),
    }
    assert result.final["lost_queue"] == 2


def test_with_a_limit_of_one_only_what_is_being_sent_is_there(engine):
    world = crowd(3, router_broadcast=Periodic(0.75, phase=0.0), router_uplink=float(PROFILE), queue_limit=1)
    found, result = times(world, 3.7, "user_updates", engine)
    assert found == [1.25, 2.75]  # sent at 0 and 1.5; that of 3 is on its way
    assert result.user_updates.tolist() == [2, 0, 0]
    assert fates(result)["profile", "lost_queue"] == (12, 12 * PROFILE)


# -- processing --------------------------------------------------------------------------------------------------------


def test_messages_are_processed_one_after_another(engine):
    """Three arrive at 0.25, three at 1.25 while the third is processed: Lindley's recursion."""
    world = crowd(3, user_broadcast=EACH_SECOND, router_processing=0.5)
    found, _ = times(world, 2.0 + 1.5, "item_updates", engine)
    done, free = [], 0.0
    for arrival in np.repeat([0.25, 1.25, 2.25], 3):
        free = max(arrival, free) + 0.5
        done.append(free)
    assert found == [time for time in done if time < 3.5]
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.run(2.0)
    assert queue(simulation, "taken", router="x") == 6
    assert queue(simulation, "waited", router="x") == (0.0 + 0.5 + 1.0) + (0.5 + 1.0 + 1.5)


def test_users_process_too(engine):
    """Two items reach each of two users at once."""
    world = crowd(2, "pq", router_broadcast=ONCE, user_processing=0.5)
    assert times(world, 3.0, "user_updates", engine)[0] == [0.75, 0.75, 1.25, 1.25]


def test_they_are_processed_in_the_order_of_arrival(engine):
    """u1 is nearer than u0 and u2."""
    graph = nx.Graph()
    graph.add_edge("near", "far", latency=0.125)
    sites = GivenPlacement({"u0": "far", "u1": "near", "u2": "far"}, {"x": "near"})
    world = crowd(3, user_broadcast=ONCE, router_processing=0.5, topology=graph, placement=sites)
    simulation = Simulation(world, seed=1, engine=engine)
    view = simulation.view()
    u, v = view.user_profiles, view.item_profiles[0]
    for done, user in ((0.75, 1), (1.25, 0), (1.75, 2)):
        assert simulation.run(done).item_profiles[0] == pytest.approx(v, rel=1e-13)
        v = v - 0.05 * u[user] * (u[user] @ v - (1.0 + user)) - 0.05 * 0.1 * v
        assert simulation.run(done + 0.0625).item_profiles[0] == pytest.approx(v, rel=1e-13)


def test_who_has_arrived_waits_for_none_that_comes_later(engine):
    """The message in service is not interrupted, and a profile is a snapshot of its sending."""
    world = crowd(1, user_broadcast=ONCE, router_processing=2.0, router_broadcast=Periodic(1e6, phase=0.5))
    simulation = Simulation(world, seed=1, engine=engine)
    view = simulation.view()
    u, v = view.user_profiles[0], view.item_profiles[0]
    result = simulation.run(3.0)  # u moved at 0.75, v by the u of 0 at 2.25
    np.testing.assert_allclose(result.item_profiles[0], v - 0.05 * u * (u @ v - 1.0) - 0.05 * 0.1 * v, rtol=1e-13)
    assert result.user_updates.tolist() == [1]


def test_a_service_of_no_time_is_no_queue(engine):
    world = crowd(3, user_broadcast=EACH_SECOND, router_broadcast=EACH_SECOND)
    plain = simulate(world, until=5.0, seed=1, engine=engine)
    served = simulate(world.replace(router_processing=0.0, user_processing=0.0), until=5.0, seed=1, engine=engine)
    assert plain.user_profiles.tobytes() == served.user_profiles.tobytes()
    assert plain.item_profiles.tobytes() == served.item_profiles.tobytes()
    assert fates(plain) == fates(served)


def test_messages_that_wait_are_in_flight(engine):
    world = crowd(3, user_broadcast=ONCE, router_processing=0.5)
    result = simulate(world, until=1.0, seed=1, every=0.5, engine=engine)
    assert result.probes["in_flight"].tolist() == [0, 3, 2]
    assert result.probes["bytes_in_flight"].tolist() == [0, 3 * ATTACHED, 2 * ATTACHED]


def test_a_full_queue_drops(engine):
    """At 1.25 the second of the first four is done, so that there is room for two again."""
    world = crowd(4, user_broadcast=EACH_SECOND, router_processing=0.5, queue_limit=2)
    found, result = times(world, 2.5, "item_updates", engine)
    assert found == [0.75, 1.25, 1.75, 2.25]
    assert fates(result) == {
        ("profile", "sent"): (12, 12 * ATTACHED),
        ("profile", "lost_queue"): (6, 6 * ATTACHED),
        ("profile", "updated"): (4, 4 * ATTACHED),
        ("profile", "in_flight"): (2, 2 * ATTACHED),
    }


def test_with_a_limit_of_one_nobody_waits(engine):
    """A service of 1.5 s: of every second batch the first is taken, as the one before is done by then."""
    world = crowd(2, user_broadcast=EACH_SECOND, router_processing=1.5, queue_limit=1)
    found, result = times(world, 6.0, "item_updates", engine)
    assert found == [1.75, 3.75, 5.75]
    assert fates(result)["profile", "lost_queue"] == (12 - 3, 9 * ATTACHED)
    exact = crowd(2, user_broadcast=EACH_SECOND, router_processing=1.0, queue_limit=1)
    assert times(exact, 4.0, "item_updates", engine)[0] == [1.25, 2.25, 3.25]  # it is done as the next arrives


def test_each_queue_has_the_limit_of_its_own(engine):
    """Both users send at once to a router that processes one; it sends to both, over an uplink for one."""
    world = crowd(
        2,
        user_broadcast=ONCE,
        router_broadcast=Periodic(1e6, phase=0.5),
        router_processing=4.0,
        router_uplink=float(PROFILE),
        queue_limit=1,
    )
    result = simulate(world, until=6.0, seed=1, engine=engine)
    assert fates(result)["profile", "lost_queue"] == (2, PROFILE + ATTACHED)
    assert (result.user_updates.tolist(), result.item_updates.tolist()) == ([1, 0], [1])


# -- coming and going --------------------------------------------------------------------------------------------------


def away(start, end, **node):
    def script(simulation):
        yield simulation.env.timeout(start)
        simulation.set_online(False, **node)
        yield simulation.env.timeout(end - start)
        simulation.set_online(True, **node)

    return script


def test_what_arrives_offline_is_lost_and_takes_no_service(engine):
    """The two of 0.25 are lost; those of 1.25 start at once."""
    world = crowd(2, user_broadcast=EACH_SECOND, router_processing=0.5)
    found, result = times(world, 2.0, "item_updates", engine, away(0.2, 0.3, router="x"))
    assert found == [1.75]
    assert fates(result)["profile", "lost_offline"] == (2, 2 * ATTACHED)


def test_it_is_judged_again_at_the_end_of_service(engine):
    """Offline as the first is done: that is lost, and still took the server's time."""
    world = crowd(3, user_broadcast=ONCE, router_processing=0.5)
    found, result = times(world, 3.0, "item_updates", engine, away(0.5, 1.0, router="x"))
    assert found == [1.25, 1.75]
    assert fates(result)["profile", "lost_offline"] == (1, ATTACHED)


def test_offline_in_between_loses_nothing(engine):
    world = crowd(3, user_broadcast=ONCE, router_processing=0.5)
    assert times(world, 3.0, "item_updates", engine, away(0.375, 0.625, router="x"))[0] == [0.75, 1.25, 1.75]


def test_what_waits_at_one_who_quits_is_lost(engine):
    def quit_(simulation):
        yield simulation.env.timeout(1.0)
        simulation.depart(router="x")

    world = crowd(3, user_broadcast=ONCE, router_processing=0.5)
    found, result = times(world, 3.0, "item_updates", engine, quit_)
    assert found == [0.75]
    assert fates(result)["profile", "lost_offline"] == (2, 2 * ATTACHED)


# -- requests and replies ----------------------------------------------------------------------------------------------


def test_requests_and_replies_are_processed_too():
    """0.5 s at each: the profile of 1, which arrives at 1.25, is done before the reply, which arrives at 1.75."""
    world = crowd(1, rating_exchange="request", user_broadcast=EACH_SECOND, router_processing=0.5, user_processing=0.5)
    trace = MessageTrace()
    result = simulate(world, until=2.5, seed=1, trace=trace)
    rows = trace.frame()[["kind", "sent", "arrives", "fate"]]
    assert list(rows.itertuples(index=False, name=None)) == [
        ("profile", 0.0, 0.25, "unknown"),
        ("request", 0.75, 1.0, "control"),
        ("profile", 1.0, 1.25, "unknown"),
        ("reply", 1.5, 1.75, "updated"),  # at 2.25
        ("profile", 2.0, 2.25, "in_flight"),
    ]
    assert result.item_updates.tolist() == [1]


def test_requests_and_replies_take_the_uplinks(engine):
    """56 bytes of request, 88 of reply, 64 of profile; all uplinks carry 64 bytes a second."""
    world = crowd(1, rating_exchange="request", user_broadcast=ONCE, user_uplink=64.0, router_uplink=64.0)
    trace = MessageTrace()
    simulate(world, until=9.0, seed=1, trace=trace)
    assert trace.frame()[["bytes", "sent", "arrives"]].to_numpy().tolist() == [
        [64, 0.0, 1.25],
        [56, 1.25, 2.375],
        [88, 2.375, 4.0],
    ]
    assert times(world, 9.0, "item_updates", engine)[0] == [4.0]


def test_a_request_that_the_uplink_drops_is_outstanding(engine):
    """The router's uplink is busy with a profile of 4 s as it asks."""
    world = crowd(
        1,
        rating_exchange="request",
        user_broadcast=EACH_SECOND,
        router_broadcast=ONCE,
        router_uplink=16.0,
        queue_limit=1,
        request_timeout=2.0,
    )
    result = simulate(world, until=4.1, seed=1, engine=engine)
    assert fates(result)["request", "lost_queue"] == (2, 2 * 56)  # at 0.25 and 2.25
    later = simulate(world, until=8.1, seed=1, engine=engine)
    assert fates(later)["request", "lost_queue"] == (3, 3 * 56)  # at 6.25, as that of 4.25 takes 3.5 s
    assert fates(later)["request", "control"] == (1, 56)


# -- chance ------------------------------------------------------------------------------------------------------------


def test_service_times_are_those_of_the_message(engine):
    """A message that is lost on the way changes the service of no other."""
    world = crowd(4, user_broadcast=ONCE, router_processing=Exponential(0.5), delay=Uniform(0.0, 9.0))
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.run(90.0)
    alone = world.replace(user_contacts=GivenContacts({"u3": ["x"]}))
    single = Simulation(alone, seed=1, engine=engine)
    single.run(90.0)
    assert queue(single, "waited", router="x") == 0.0
    done = queue(single, "free", router="x")
    found = simulate(alone, until=done + 1e-9, seed=1, engine=engine)
    assert (found.item_updates.tolist(), simulate(alone, until=done, seed=1).item_updates.tolist()) == ([1], [0])


def test_another_user_changes_no_service_time(engine):
    """u9 knows nobody and is known to nobody; but the numbers of the items move up by one."""

    def done(*more):
        plain = crowd(1, router_broadcast=ONCE, user_processing=Exponential(0.5))
        ratings = Ratings.from_arrays(["u0"], ["p"], [1.0], user_ids=["u0", *more], scale=(1, 5))
        simulation = Simulation(plain.replace(ratings=ratings), seed=1, engine=engine)
        simulation.run(9.0)
        return queue(simulation, "free", user="u0")

    assert done() == done("u9")


# -- everything together -----------------------------------------------------------------------------------------------


@st.composite
def busy_worlds(draw):
    """Worlds in which all kinds of messages wait, are dropped, lost and doubled; nodes come and go."""
    n = draw(st.integers(2, 4))
    ratings = crowd(n, "pqr").ratings
    return crowd(
        n,
        "pqr",
        routers=("x", "y"),
        rating_exchange=draw(st.sampled_from(["attach", "request"])),
        user_broadcast=Poisson(0.4),
        router_broadcast=Poisson(0.4),
        user_uplink=draw(st.sampled_from([None, 200.0])),
        router_uplink=draw(st.sampled_from([None, 200.0, 800.0])),
        user_processing=draw(st.sampled_from([None, Exponential(0.1)])),
        router_processing=draw(st.sampled_from([0.05, Exponential(0.2)])),
        queue_limit=draw(st.sampled_from([1, 2, 5, None])),
        loss=draw(st.sampled_from([0.0, 0.2])),
        duplication=draw(st.sampled_from([0.0, 0.3])),
        user_churn=draw(st.sampled_from([None, OnOff(1.0, 0.5)])),
        recommendations=Recommendations(ratings, mean_gap=0.5, timeout=0.5),
        arrivals=Arrivals.drawn(ratings, span=5.0, seed=1, known=0.5),
    )


@some
@given(busy_worlds(), st.integers(0, 9), st.sampled_from(["events", "compiled"]))
def test_accounts_balance(world, seed, engine):
    result = simulate(world, until=6.0, seed=seed, every=0.5, engine=engine)
    for unit in ("messages", "bytes"):
        table = result.accounts.pivot(index="kind", columns="fate", values=unit)
        ends = [name for name in table.columns if name not in ("sent", "delivered")]
        assert (table["sent"] == table[ends].sum(axis=1)).all()
    if world.queue_limit is None:
        assert result.final["lost_queue"] == 0


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"user_uplink": 0.0}, "user_uplink must be bytes a second > 0"),
        ({"router_uplink": Constant(0.0)}, "router_uplink must be bytes a second > 0"),
        ({"router_uplink": -1.0}, "router_uplink"),
        ({"user_processing": -0.1}, "user_processing"),
        ({"router_processing": "slow"}, "router_processing"),
        ({"router_processing": 0.1, "queue_limit": 0}, "queue_limit must be an integer >= 1"),
        ({"router_processing": 0.1, "queue_limit": 1.5}, "queue_limit must be an integer >= 1"),
        ({"router_processing": 0.1, "queue_limit": True}, "queue_limit must be an integer >= 1"),
        ({"queue_limit": 3}, "queue_limit=3 needs queues"),
    ],
)
def test_a_world_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        crowd(1, **changes)


def test_an_uplink_that_is_drawn_as_nothing_is_refused():
    with pytest.raises(ValueError, match="user_uplink: the drawn rate of a node is 0 bytes/s"):
        Simulation(crowd(9, user_uplink=Empirical([0.0, 1.0])), seed=1)


# -- what has left a machine -------------------------------------------------------------------------------------------


def test_what_the_own_uplink_drops_has_not_left_the_machine(engine):
    """One user, three routers, room for one message in his uplink."""
    ratings = Ratings.from_arrays(["a"] * 3, ["p", "q", "r"], [2.0, 4.0, 3.0], scale=(1, 5))
    world = crowd(1, user_broadcast=ONCE, user_uplink=10.0, queue_limit=1)
    result = simulate(world.replace(ratings=ratings, routers=None), until=50.0, seed=1, engine=engine)
    assert fates(result)["profile", "lost_queue"] == (2, 2 * ATTACHED)
    assert sorted(result.disclosed.tolist()) == [0, 0, 1]
    assert result.users[["profiles_sent", "bytes_sent"]].to_numpy().tolist() == [[1, ATTACHED]]
