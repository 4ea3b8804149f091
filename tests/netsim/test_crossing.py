"""What the network does to a message: it delays it by path, size and pair, loses it, doubles it, holds it back."""

import math

import networkx as nx
import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ROUTER, USER, combine, draw, entity_keys, further, uniform
from algorithms.ratings import Ratings
from netsim import (
    Empirical,
    Exponential,
    GilbertElliott,
    GivenContacts,
    GivenPlacement,
    Learning,
    LogNormal,
    MessageTrace,
    Periodic,
    Reordering,
    Simulation,
    Uniform,
    World,
    simulate,
)

RANK = 2
SEED = 9
PROFILE_BYTES, REQUEST_BYTES, REPLY_BYTES = 48 + 8 * RANK, 48 + 8, 48 + 8 * RANK + 16 + 8
EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1e6, phase=1e6)
KEYS = {"user": entity_keys(USER, ["a"])[0], "router": entity_keys(ROUTER, ["x"])[0]}


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def one_pair(**changes):
    """User "a" rated the one item of router "x"; he broadcasts at 0, 1, ...; the router is silent."""
    ratings = Ratings.from_arrays(["a"], ["p"], [3.0], scale=(1, 5))
    plain = World(
        ratings,
        routers=("x",),
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        rating_exchange="attach",
        minimum_delay=0.0,
        learning=Learning(rank=RANK),
    )
    return plain.replace(**changes)


ATTACHED = PROFILE_BYTES + 16  # a profile with the rating that is attached to it


def three_places(**attributes):
    """User at "home", router "away", one place between; attributes of the two links, which take 0.5 and 0.25 s."""
    graph = nx.DiGraph()
    for u, v in (("home", "between"), ("between", "home")):
        graph.add_edge(u, v, latency=0.5, **{name: values[0] for name, values in attributes.items()})
    for u, v in (("between", "away"), ("away", "between")):
        graph.add_edge(u, v, latency=0.25, **{name: values[1] for name, values in attributes.items()})
    return {"topology": graph, "placement": GivenPlacement({"a": "home"}, {"x": "away"})}


def crowd(n_users=40, **changes):
    """Everyone rated both items of two routers; both roles broadcast."""
    pairs = [(user, item) for user in range(n_users) for item in "pq"]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + n % 5 for n in range(len(pairs))])
    return World(ratings, user_broadcast=1.0, router_broadcast=1.0, delay=0.25).replace(**changes)


def traced(world, until, seed=SEED, scripts=()):
    trace = MessageTrace()
    result = simulate(world, until=until, seed=seed, trace=trace, scripts=scripts)
    return trace.frame(), result


def counted(result, unit="messages"):
    found = result.accounts.set_index(["kind", "fate"])[unit]
    return found[found > 0].to_dict()


def item_updates_at(world, engine, times, seed=SEED):
    """Updates of items made before each time, and up to it."""
    watched = sorted({each for time in times for each in (time, float(np.nextafter(time, math.inf)))})
    result = simulate(world, until=watched[-1] + 1e-3, seed=seed, at=watched, engine=engine)
    seen = dict(zip(result.probes["time"], result.probes["item_updates"], strict=True))
    return [(int(seen[time]), int(seen[float(np.nextafter(time, math.inf))])) for time in times]


# -- paths -------------------------------------------------------------------------------------------------------------


def test_bandwidth_adds_the_time_to_send_each_byte(engine):
    """Store and forward: 80 bytes over 400 bytes/s, then over 1600."""
    world = one_pair(**three_places(bandwidth=(400.0, 1600.0)), delay=0.125)
    arrival = (0.75 + 0.0) * 1.0 + 0.0 + (0.125 + ATTACHED * (1 / 400 + 1 / 1600))
    assert arrival == pytest.approx(0.875 + 0.2 + 0.05)
    assert item_updates_at(world, engine, [arrival, 1.0 + arrival]) == [(0, 1), (1, 2)]


def test_each_kind_of_message_takes_time_by_its_size():
    world = one_pair(**three_places(bandwidth=(1024.0, 2048.0)), rating_exchange="request")
    frame, _ = traced(world, 4.0)
    per_byte = 1 / 1024 + 1 / 2048
    took = frame["arrives"] - frame["sent"]
    assert dict(zip(frame["kind"], took, strict=True)) == pytest.approx(
        {
            "profile": 0.75 + PROFILE_BYTES * per_byte,
            "request": 0.75 + REQUEST_BYTES * per_byte,
            "reply": 0.75 + REPLY_BYTES * per_byte,
        },
        rel=1e-12,
    )


def test_the_way_back_has_its_own_bandwidth_and_loss():
    places = three_places()
    places["topology"].edges["away", "between"]["bandwidth"] = 100.0
    places["topology"].edges["between", "home"]["loss"] = 1.0
    frame, _ = traced(one_pair(**places, rating_exchange="request"), 1.5)
    rows = frame[["kind", "sent", "arrives", "fate"]].to_numpy().tolist()
    assert rows == [
        ["profile", 0.0, 0.75, "unknown"],
        ["request", 0.75, math.inf, "lost_link"],
        ["profile", 1.0, 1.75, "in_flight"],
    ]
    places["topology"].edges["between", "home"]["loss"] = 0.0
    frame, _ = traced(one_pair(**places, rating_exchange="request"), 3.0)
    back = frame.query("kind == 'request'")
    assert (back["arrives"] - back["sent"]).tolist() == [0.75 + REQUEST_BYTES / 100.0]


def test_a_path_loses_what_one_of_its_links_loses():
    """1 - (1 - 0.1)(1 - 0.2) = 0.28, by the further word of each message's loss word."""
    world = one_pair(**three_places(loss=(0.1, 0.2)))
    frame, _ = traced(world, 400.0)
    pair = np.uint64(combine(KEYS["user"], KEYS["router"]))
    words = [np.uint64(draw(np.uint64(SEED), purposes.BROADCAST_LOSS, pair, tick)) for tick in range(400)]
    lost = [uniform(np.uint64(further(word, 1001))) < 1 - 0.9 * 0.8 for word in words]
    assert (frame["fate"] == "lost_link").tolist() == lost
    assert 70 < sum(lost) < 160


def test_paths_and_the_network_lose_independently():
    places = three_places(loss=(0.5, 0.0))
    path, both, network = (
        set(traced(world, 300.0)[0].query("fate == 'lost_link'")["sent"])
        for world in (one_pair(**places), one_pair(**places, loss=0.5), one_pair(loss=0.5))
    )
    assert both == path | network
    assert 20 < len(path & network) < 130  # about a quarter of 300


@pytest.mark.parametrize("loss", [(1.0, 0.0), (0.0, 1.0)])
def test_a_link_that_loses_everything(engine, loss):
    result = simulate(one_pair(**three_places(loss=loss)), until=3.0, seed=SEED, engine=engine)
    assert counted(result) == {("profile", "sent"): 3, ("profile", "lost_link"): 3}


# -- delays of pairs ---------------------------------------------------------------------------------------------------


def test_a_pair_keeps_its_delay_in_both_directions():
    world = crowd(5, pair_delay=Uniform(1.0, 2.0), delay=0.0)
    frame, _ = traced(world, 8.0)
    frame = frame[np.isfinite(frame["arrives"])]
    n_users = 5
    took = (frame["arrives"] - frame["sent"]).round(9)
    user, router = (frame[["sender", "receiver"]].min(axis=1), frame[["sender", "receiver"]].max(axis=1))
    delays = took.groupby([user, router]).agg(lambda each: set(each))
    assert {len(each) for each in delays} == {1}
    assert len({next(iter(each)) for each in delays}) == 2 * n_users
    assert frame["kind"].nunique() == 3
    assert took.between(1.0, 2.0).all()


def test_the_delay_of_a_pair_is_a_draw_of_the_pair(engine):
    pair = np.uint64(combine(KEYS["user"], KEYS["router"]))
    delay = 1.0 + uniform(np.uint64(draw(np.uint64(SEED), purposes.PAIR_DELAY, pair, 0)))
    world = one_pair(pair_delay=Uniform(1.0, 2.0), access=0.25, delay=0.5)
    arrival = ((0.0 + (0.5 + delay)) * 1.0 + 0.0) + 0.5
    assert item_updates_at(world, engine, [arrival]) == [(0, 1)]


# -- copies ------------------------------------------------------------------------------------------------------------


def test_both_copies_are_sent_and_the_second_is_stale(engine):
    world = one_pair(duplication=1.0, delay=0.25)
    result = simulate(world, until=2.5, seed=SEED, engine=engine)
    assert counted(result) == {("profile", "sent"): 6, ("profile", "updated"): 3, ("profile", "stale"): 3}
    assert counted(result, "bytes")[("profile", "sent")] == 6 * ATTACHED
    assert result.item_updates.tolist() == [3]
    loose = simulate(world.replace(discard_stale=False), until=2.5, seed=SEED, engine=engine)
    assert counted(loose) == {("profile", "sent"): 6, ("profile", "updated"): 6}
    assert loose.item_updates.tolist() == [6]


def test_the_node_itself_sends_one_copy(engine):
    """The second is made by the network; what a node discloses and pays for does not grow."""
    one, two = (
        simulate(one_pair(duplication=share, delay=0.25), until=2.5, seed=SEED, engine=engine) for share in (0.0, 1.0)
    )
    assert one.users.equals(two.users.assign(updates=one.users["updates"]))


def test_each_copy_has_a_delay_of_its_own():
    world = one_pair(duplication=1.0, delay=Uniform(0.1, 0.9))
    frame, _ = traced(world, 50.0)
    pairs = frame.query("sent < 49").groupby("sent")["arrives"].agg(list)
    assert {len(each) for each in pairs} == {2}
    assert (pairs.str[0] != pairs.str[1]).all()
    assert (frame.groupby("sent")["stamp"].nunique() == 1).all()
    # The first copy is what there is without duplication.
    plain, _ = traced(world.replace(duplication=0.0), 50.0)
    assert plain["arrives"].tolist() == frame.groupby("sent")["arrives"].first().tolist()
    earliest = pairs.apply(min)
    taken = frame.query("fate == 'updated' and sent < 49").set_index("sent")["arrives"]
    assert taken.equals(earliest.rename("arrives"))


def test_what_is_lost_is_not_doubled():
    frame, result = traced(one_pair(duplication=1.0, loss=0.5), 200.0)
    per_tick = frame.groupby("sent")["fate"].agg(list)
    assert {tuple(each) for each in per_tick} == {("lost_link",), ("updated", "stale")}
    assert counted(result)[("profile", "sent")] == len(frame)


def test_requests_and_replies_are_doubled_too(engine):
    world = one_pair(duplication=1.0, delay=0.25, rating_exchange="request")
    result = simulate(world, until=0.9, seed=SEED, engine=engine)
    assert counted(result) == {
        ("profile", "sent"): 2,
        ("profile", "unknown"): 1,
        ("profile", "stale"): 1,
        ("request", "sent"): 2,  # one asked, one copy: the second profile is stale and asks nothing
        ("request", "control"): 2,
        ("reply", "sent"): 4,  # he answers both, and each answer is doubled
        ("reply", "updated"): 2,
        ("reply", "stale"): 2,
    }
    assert result.items["ratings"].tolist() == [1]
    assert result.users[["profiles_sent", "ratings_disclosed"]].to_numpy().tolist() == [[3, 1]]


def test_answers_to_two_copies_of_a_request_have_chances_of_their_own():
    world = crowd(60, duplication=1.0, user_broadcast=Periodic(100.0, phase=0.0), router_broadcast=NEVER)

    def lossy(simulation):
        yield simulation.env.timeout(0.3)
        simulation.set_loss(0.5)

    frame, _ = traced(world, 10.0, scripts=[lossy])
    replies = frame.query("kind == 'reply'").drop_duplicates(["sender", "receiver", "stamp"])
    asked_twice = replies.groupby(["sender", "receiver"])["fate"].agg(list)
    asked_twice = asked_twice[asked_twice.str.len() == 2]
    assert len(asked_twice) > 20
    lost = asked_twice.apply(lambda fates: sum(fate == "lost_link" for fate in fates))
    assert (lost == 1).any()


def test_set_duplication_holds_for_what_is_sent_later(engine):
    simulation = Simulation(one_pair(delay=0.25), seed=SEED, engine=engine)
    simulation.run(1.5)
    simulation.set_duplication(1.0)
    result = simulation.run(3.5)
    assert counted(result) == {("profile", "sent"): 6, ("profile", "updated"): 4, ("profile", "stale"): 2}


# -- held back ---------------------------------------------------------------------------------------------------------


def test_what_is_held_back_takes_the_extra_delay():
    world = one_pair(delay=0.25, reordering=Reordering(0.5, 2.0))
    frame, _ = traced(world, 100.0)
    took = (frame["arrives"] - frame["sent"]).round(9)
    assert set(took) == {0.25, 2.25}
    assert 25 < (took == 2.25).sum() < 75
    plain, _ = traced(world.replace(reordering=None), 100.0)
    same = took == 0.25
    assert (frame["arrives"][same] == plain["arrives"][same]).all()


def test_later_messages_overtake_those_held_back(engine):
    world = one_pair(delay=0.25, reordering=Reordering(1.0, Empirical([0.0, 3.5])))
    result = simulate(world, until=60.0, seed=SEED, engine=engine)
    assert counted(result)[("profile", "stale")] > 10
    loose = simulate(world.replace(discard_stale=False), until=60.0, seed=SEED, engine=engine)
    assert ("profile", "stale") not in counted(loose)
    assert counted(loose)[("profile", "sent")] == counted(result)[("profile", "sent")]


def test_everything_held_back_alike_is_only_later(engine):
    world = one_pair(delay=0.25, reordering=Reordering(1.0, 0.5))
    assert item_updates_at(world, engine, [0.75, 1.75]) == [(0, 1), (1, 2)]


def test_set_reordering_can_be_taken_back(engine):
    simulation = Simulation(one_pair(delay=0.25), seed=SEED, engine=engine)
    simulation.run(0.5)
    simulation.set_reordering(Reordering(1.0, 5.0))
    simulation.run(1.5)
    simulation.set_reordering(None)
    result = simulation.run(2.5)
    assert result.item_updates.tolist() == [2]  # that of 1 is on its way until 6.25, and then stale
    assert counted(simulation.run(6.5))[("profile", "stale")] == 1


# -- bursts ------------------------------------------------------------------------------------------------------------


def chain(sender, receiver, means, until, seed=SEED):
    """When a channel is bad, as intervals, from the draws that the design names."""
    pair = np.uint64(combine(sender, receiver))
    word = np.uint64(draw(np.uint64(seed), purposes.BURST, pair, 0))
    bad = uniform(np.uint64(further(word, 1))) * sum(means) < means[1]
    begin, number, found = 0.0, 0, []
    while begin < until:
        word = np.uint64(draw(np.uint64(seed), purposes.BURST, pair, number))
        end = begin - means[bad] * math.log(uniform(word))
        if bad:
            found.append((begin, end))
        begin, bad, number = end, not bad, number + 1
    return found


def is_bad(intervals, time):
    return any(begin <= time < end for begin, end in intervals)


def test_all_that_one_node_sends_to_another_meets_one_chain():
    """Requests and broadcasts of the router alike; what the user sends meets another."""
    loss = GilbertElliott(0.5, 2.0)
    world = one_pair(
        loss=loss,
        rating_exchange="request",
        request_timeout=0.1,
        user_broadcast=Periodic(0.25, phase=0.0),
        router_broadcast=Periodic(0.3, phase=0.1),
    )

    def forget(simulation):
        while True:  # so that the router asks again and again
            simulation.reset(router="x")
            yield simulation.env.timeout(1.0)

    frame, _ = traced(world, 200.0, scripts=[forget])
    for sender, receiver, who in ((0, "router", "user"), (1, "user", "router")):
        found = frame[frame["sender"] == sender]
        intervals = chain(KEYS[who], KEYS[receiver], (loss.mean_gap, loss.burst_length), 200.0)
        assert (found["fate"] == "lost_link").tolist() == [is_bad(intervals, time) for time in found["sent"]]
        assert 0.3 < (found["fate"] == "lost_link").mean() < 0.7
    kinds = frame.groupby(["sender", "kind"]).size()
    assert (kinds[[(0, "profile"), (0, "reply"), (1, "profile"), (1, "request")]] > 20).all()


def test_both_engines_lose_in_the_same_bursts(engine):
    loss = GilbertElliott(0.3, 3.0)
    result = simulate(one_pair(loss=loss, delay=0.25), until=200.5, seed=SEED, engine=engine)
    intervals = chain(KEYS["user"], KEYS["router"], (loss.mean_gap, loss.burst_length), 201.0)
    lost = sum(is_bad(intervals, float(tick)) for tick in range(201))
    assert counted(result)[("profile", "lost_link")] == lost
    assert 10 < lost < 150


def test_losses_in_the_good_and_in_the_bad_state():
    loss = GilbertElliott(0.4, 5.0, loss_good=0.2, loss_bad=0.6)
    frame, _ = traced(one_pair(loss=loss), 2000.0)
    intervals = chain(KEYS["user"], KEYS["router"], (loss.mean_gap, loss.burst_length), 2000.0)
    pair = np.uint64(combine(KEYS["user"], KEYS["router"]))
    for tick, fate in enumerate(frame["fate"]):
        share = uniform(np.uint64(draw(np.uint64(SEED), purposes.BROADCAST_LOSS, pair, tick)))
        assert (fate == "lost_link") == (share < (0.6 if is_bad(intervals, float(tick)) else 0.2))


def test_bursts_do_not_depend_on_how_often_something_is_sent():
    loss = GilbertElliott(0.3, 3.0)
    often, seldom = (
        traced(one_pair(loss=loss, user_broadcast=Periodic(period, phase=0.0)), 100.0)[0].set_index("sent")["fate"]
        for period in (0.125, 1.0)
    )
    assert (often[seldom.index] == "lost_link").tolist() == (seldom == "lost_link").tolist()


def test_a_chain_that_a_script_begins_is_that_of_the_whole_run(engine):
    """From the middle of a run on it is what it would have been from time 0."""
    loss = GilbertElliott(0.5, 4.0)
    simulation = Simulation(one_pair(), seed=SEED, engine=engine)
    simulation.run(99.5)
    simulation.set_loss(loss)
    found = counted(simulation.run(199.5))[("profile", "lost_link")]
    intervals = chain(KEYS["user"], KEYS["router"], (loss.mean_gap, loss.burst_length), 200.0)
    assert found == sum(is_bad(intervals, float(tick)) for tick in range(100, 200))


# -- common random numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [{"loss": 0.3}, {"loss": GilbertElliott(0.3, 2.0)}, {"duplication": 0.5}, {"reordering": Reordering(0.3, 0.0)}],
)
def test_worlds_that_differ_in_what_the_network_spoils_draw_the_same_delays(changes):
    world = crowd(10, delay=LogNormal(0.3, 0.8), rating_exchange="attach")
    key = ["sender", "receiver", "profile", "sent"]
    plain = traced(world, 20.0)[0].set_index(key)["arrives"]
    spoilt = traced(world.replace(**changes), 20.0)[0].drop_duplicates(key).set_index(key)
    common = spoilt[spoilt["fate"] != "lost_link"]["arrives"]
    assert len(common) > 500
    assert (common == plain[common.index]).all()


def test_a_higher_loss_loses_the_same_messages_and_more():
    lost = [
        set(traced(one_pair(loss=share, delay=Exponential(0.1)), 300.0)[0].query("fate == 'lost_link'")["sent"])
        for share in (0.1, 0.3)
    ]
    assert lost[0] < lost[1]


def test_what_is_out_of_reach_is_neither_lost_nor_doubled():
    graph = nx.DiGraph()
    graph.add_nodes_from(["home", "away"])
    world = one_pair(topology=graph, placement=GivenPlacement({"a": "home"}, {"x": "away"}), loss=0.5, duplication=1.0)
    frame, _ = traced(world, 20.0)
    assert frame["fate"].tolist() == ["unreachable"] * 20


def test_a_router_reaches_each_user_over_a_channel_of_its_own():
    world = crowd(30, loss=GilbertElliott(0.5, 1e4), router_contacts=GivenContacts({"p": range(30)}))
    frame, _ = traced(world, 30.0)
    fates = frame.query("sender == 30 and kind == 'profile'").groupby("receiver")["fate"].agg(set)
    lost = fates.apply(lambda each: each == {"lost_link"})
    assert 3 <= lost.sum() <= 27
