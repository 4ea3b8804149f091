"""Nodes that quit for good: when, what is heard of them afterwards, and what becomes of a router's items."""

import math

import networkx as nx
import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, combine, draw, entity_keys, uniform
from algorithms.ratings import Ratings
from netsim import (
    Checkpoint,
    Constant,
    Empirical,
    GivenContacts,
    GivenPlacement,
    Learning,
    MessageTrace,
    Periodic,
    Raters,
    Sessions,
    Simulation,
    Uniform,
    World,
    simulate,
)

RANK = 2
SEED = 3
PROFILE_BYTES, HANDOVER_BYTES = 48 + 8 * RANK, 48 + 8 * RANK + 8
EACH_SECOND = Periodic(1.0, phase=0.0)
HALF_PAST = Periodic(1.0, phase=0.5)
NEVER = Periodic(1e6, phase=1e6)


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def one_pair(**changes):
    """User "a" rated the one item of router "x"; he broadcasts at 0, 1, ..., it at 0.5, 1.5, ...; 0.25 s each."""
    ratings = Ratings.from_arrays(["a"], ["p"], [3.0], scale=(1, 5))
    plain = World(
        ratings,
        routers=("x",),
        user_broadcast=EACH_SECOND,
        router_broadcast=HALF_PAST,
        delay=0.25,
        rating_exchange="attach",
        learning=Learning(rank=RANK, initial=Uniform(0.0, 1.0)),
    )
    return plain.replace(**changes)


RATED = {"a": "pq", "b": "qs", "c": "sp", "d": "t"}
HOSTING = {"p": "w", "q": "w", "s": "x", "t": "y"}
ROUTERS = ("w", "x", "y", "z")


def network(**changes):
    """Four users; router w hosts p and q, x hosts s, y hosts t, z nothing; ticks and delays as in `one_pair`."""
    pairs = [(user, item) for user, items in RATED.items() for item in items]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + n % 5 for n in range(len(pairs))])
    return one_pair(ratings=ratings, routers=ROUTERS, hosting=HOSTING).replace(**changes)


def heir(item, candidates):
    """Rendezvous hashing: the candidate with the highest draw of the pair."""
    key, keys = entity_keys(ITEM, [item])[0], entity_keys(ROUTER, candidates)
    pairs = [np.uint64(combine(key, each)) for each in keys]
    weights = [draw(np.uint64(SEED), purposes.HOSTING, pair, 0) for pair in pairs]
    return candidates[int(np.argmax(np.array(weights, dtype=np.uint64)))]


def drawn(item, incarnation):
    key = entity_keys(ITEM, [item])[0]
    counters = [np.uint64(incarnation * 2**32 + k) for k in range(RANK)]
    words = [draw(np.uint64(SEED), purposes.INITIAL_PROFILE, key, counter) for counter in counters]
    return [uniform(np.uint64(word)) for word in words]


def started(world, engine="events", *, seed=SEED, trace=None):
    return Simulation(world, seed=seed, engine=engine, trace=trace)


def counted(result, unit="messages"):
    """Messages by kind and fate, where there are any."""
    found = result.accounts.set_index(["kind", "fate"])[unit]
    return found[found > 0].to_dict()


def hosts(result):
    return dict(zip(result.items["item"], result.items["router"], strict=True))


def contacts(simulation, **node):
    """Ids in the contact list of a node."""
    tables, world = simulation._tables, simulation.world
    names = [*world.ratings.user_ids, *world.router_ids]
    return [names[each] for each in tables.contacts_of(simulation._node(node.get("user"), node.get("router")))]


# -- users -------------------------------------------------------------------------------------------------------------


def test_a_user_quits_at_his_time(engine):
    result = simulate(one_pair(user_lifetime=2.0), until=4.0, seed=SEED, engine=engine)
    assert counted(result) == {
        ("profile", "sent"): 6,  # his at 0 and 1; the item's at 0.5, 1.5, 2.5, 3.5
        ("profile", "updated"): 4,
        ("profile", "lost_offline"): 2,
    }
    assert result.users["online"].tolist() == [False]
    assert (result.user_updates.tolist(), result.item_updates.tolist()) == ([2], [2])


def test_what_he_has_sent_arrives(engine):
    result = simulate(one_pair(user_lifetime=1.125, router_broadcast=NEVER), until=4.0, seed=SEED, engine=engine)
    assert counted(result) == {("profile", "sent"): 2, ("profile", "updated"): 2}


def test_who_quits_at_a_tick_or_an_arrival_has_quit_before_it(engine):
    result = simulate(one_pair(user_lifetime=0.75), until=0.8, seed=SEED, engine=engine)
    assert counted(result)[("profile", "lost_offline")] == 1  # the item's, sent at 0.5
    result = simulate(one_pair(user_lifetime=1.0), until=1.1, seed=SEED, engine=engine)
    assert result.users["profiles_sent"].tolist() == [1]
    later = float(np.nextafter(0.75, 1))
    result = simulate(one_pair(user_lifetime=later), until=0.8, seed=SEED, engine=engine)
    assert ("profile", "lost_offline") not in counted(result)


def test_a_lifetime_of_nothing(engine):
    result = simulate(one_pair(user_lifetime=0.0), until=2.0, seed=SEED, engine=engine)
    assert counted(result) == {("profile", "sent"): 2, ("profile", "lost_offline"): 2}
    assert result.probes["users_online"].tolist()[1:] == [0] * 50


def test_lifetimes_are_drawn_for_each_node(engine):
    world = network(
        user_lifetime=Empirical([1.25, 3.25, 1e9]), router_broadcast=NEVER, router_contacts=GivenContacts({})
    )
    result = simulate(world, until=8.0, seed=SEED, engine=engine)
    per_tick = {"a": 1, "b": 2, "c": 2, "d": 1}  # routers in their lists
    ticks = [sent // per_tick[user] for user, sent in zip("abcd", result.users["profiles_sent"], strict=True)]
    assert set(ticks) <= {2, 4, 8}
    assert len(set(ticks)) > 1
    assert (result.users["online"] == (np.array(ticks) == 8)).all()


def test_a_request_to_a_user_who_quit_is_lost(engine):
    world = one_pair(rating_exchange="request", user_lifetime=0.3, router_broadcast=NEVER)
    result = simulate(world, until=4.0, seed=SEED, engine=engine)
    assert counted(result) == {
        ("profile", "sent"): 1,
        ("profile", "unknown"): 1,
        ("request", "sent"): 1,
        ("request", "lost_offline"): 1,
    }


def test_nothing_brings_back_who_quit(engine):
    world = one_pair(user_lifetime=1.25, user_churn=Sessions(1.0, 1.0, start="online"), user_return="reset")
    simulation = started(world, engine)
    simulation.run(1.5)
    simulation.hold_online(user="a")
    simulation.set_online(True, user="a")
    simulation.depart(user="a")
    profile = simulation.view().user_profiles
    result = simulation.run(8.0)
    assert result.probes["users_online"].tolist()[-1] == 0
    assert result.users["profiles_sent"].tolist() == [1]
    np.testing.assert_array_equal(result.user_profiles, profile)


# -- routers whose items are lost --------------------------------------------------------------------------------------


def test_without_rehosting_items_are_lost(engine):
    world = network(router_lifetime=Constant(1e9))
    simulation = started(world, engine)
    simulation.run(2.0)
    simulation.depart(router="w")
    before = simulation.view().item_profiles
    result = simulation.run(4.0)
    assert hosts(result) == HOSTING
    assert contacts(simulation, user="a") == ["w"]
    # a, b and c go on sending to w, at 2 and 3.
    assert counted(result)[("profile", "lost_offline")] == 6
    assert result.routers["online"].tolist() == [False, True, True, True]
    np.testing.assert_array_equal(result.item_profiles[:2], before[:2])
    assert "handover" not in {kind for kind, _ in counted(result)}


def test_all_routers_quit(engine):
    result = simulate(network(router_lifetime=1.0), until=4.0, seed=SEED, engine=engine)
    assert result.probes["routers_online"].tolist()[-1] == 0
    assert counted(result)[("profile", "lost_offline")] == 18  # six at each of 1, 2, 3
    assert result.routers["profiles_sent"].tolist() == [6, 2, 1, 0]  # to the raters of p and q, of s, of t


# -- fresh profiles ----------------------------------------------------------------------------------------------------


def test_items_go_to_the_router_with_the_highest_weight_among_those_online(engine):
    simulation = started(network(rehosting="fresh"), engine)
    simulation.run(2.0)
    first = [heir(item, ("x", "y", "z")) for item in "pq"]
    simulation.set_online(False, router=first[0])
    left = tuple(router for router in ("x", "y", "z") if router != first[0])
    simulation.depart(router="w")
    result = simulation.run(2.1)
    assert hosts(result) == HOSTING | {item: heir(item, left) for item in "pq"}


def test_where_nobody_is_online_items_go_to_one_that_stays(engine):
    simulation = started(network(rehosting="fresh"), engine)
    simulation.run(2.0)
    for router in "xyz":
        simulation.set_online(False, router=router)
    simulation.depart(router="w")
    result = simulation.run(2.1)
    assert hosts(result) == HOSTING | {item: heir(item, ("x", "y", "z")) for item in "pq"}


def test_a_heir_starts_with_profiles_made_anew(engine):
    simulation = started(network(rehosting="fresh"), engine)
    result = simulation.run(2.4)
    assert result.items["updates"].tolist()[:2] == [6, 6]  # two raters, three broadcasts
    simulation.depart(router="w")
    for row, item in enumerate("pq"):
        np.testing.assert_allclose(simulation.view().item_profiles[row], drawn(item, 1), rtol=1e-14)
    result = simulation.run(2.5)
    assert result.items["updates"].tolist()[:2] == [0, 0]
    assert result.items["ratings"].tolist()[:2] == [0, 0]
    others = result.items["updates"].tolist()[2:]
    result = simulation.run(3.4)
    assert result.items["updates"].tolist() == [2, 2, others[0] + 2, others[1] + 1]
    assert result.items["ratings"].tolist()[:2] == [2, 2]


def test_contacts_follow_the_items(engine):
    """Users get the heirs of what they rated; heirs get the users that the quitter had, as far as they rated."""
    simulation = started(network(rehosting="fresh"), engine)
    to = {item: heir(item, ("x", "y", "z")) for item in "pq"}
    to |= {"s": "x", "t": "y"}
    simulation.run(2.0)
    simulation.depart(router="w")
    for user, items in RATED.items():
        assert contacts(simulation, user=user) == sorted({to[item] for item in items})
    for router in "xyz":
        assert contacts(simulation, router=router) == sorted(
            user for user, items in RATED.items() if router in {to[item] for item in items}
        )


def test_who_rated_nothing_there_gets_all_heirs(engine):
    simulation = started(network(rehosting="fresh", user_contacts=GivenContacts({"d": ["w", "y"]})), engine)
    simulation.run(1.0)
    simulation.depart(router="w")
    heirs = {heir(item, ("x", "y", "z")) for item in "pq"}
    assert contacts(simulation, user="d") == sorted(heirs | {"y"})
    assert contacts(simulation, user="a") == []  # he had no list


def test_both_sides_go_on_over_the_new_contacts(engine):
    simulation = started(network(rehosting="fresh"), engine)
    before = simulation.run(2.4)
    simulation.depart(router="w")
    after = simulation.run(4.4)
    sent = counted(after)[("profile", "sent")] - counted(before)[("profile", "sent")]
    to = {item: heir(item, ("x", "y", "z")) for item in "pq"} | {"s": "x", "t": "y"}
    upward = sum(len({to[item] for item in items}) for items in RATED.values())
    hosted = {router: [item for item in to if to[item] == router] for router in "xyz"}
    downward = sum(
        len(hosted[router]) * sum(bool({*hosted[router]} & {*items}) for items in RATED.values()) for router in "xyz"
    )
    assert sent == 2 * (upward + downward)
    assert ("profile", "lost_offline") not in counted(after)


def test_with_requests_the_heir_asks(engine):
    world = one_pair(routers=("x", "y"), hosting={"p": "x"}, rehosting="fresh", rating_exchange="request")
    simulation = started(world, engine)
    before = simulation.run(2.4)
    assert counted(before)[("request", "control")] == 1
    simulation.depart(router="x")
    after = simulation.run(4.0)
    assert hosts(after) == {"p": "y"}
    # broadcast at 3 comes at 3.25, the request at 3.5, the reply at 3.75
    assert counted(after)[("request", "control")] == 2
    assert counted(after)[("reply", "updated")] == 2
    assert after.items[["ratings", "updates"]].to_numpy().tolist() == [[1, 1]]
    assert after.disclosed.tolist() == [2]


def test_what_was_sent_to_the_quitter_is_lost_and_what_it_sent_arrives(engine):
    simulation = started(network(rehosting="fresh"), engine)
    simulation.run(2.1)
    simulation.depart(router="w")
    result = simulation.run(2.45)
    assert counted(result)[("profile", "lost_offline")] == 3
    simulation = started(network(rehosting="fresh", user_broadcast=NEVER), engine)
    simulation.run(0.6)
    simulation.depart(router="w")
    result = simulation.run(0.8)
    assert result.user_updates.tolist() == [2, 2, 2, 1]


# -- handover ----------------------------------------------------------------------------------------------------------


def handover(engine="events", *, seed=SEED, **changes):
    """Router x with the one item hands over to y; the item has had three updates by 2.4."""
    world = one_pair(routers=("x", "y"), hosting={"p": "x"}, rehosting="handover").replace(**changes)
    simulation = started(world, engine, seed=seed)
    simulation.run(2.4)
    return simulation


def test_a_profile_is_handed_over_with_its_numbers_and_its_updates(engine):
    simulation = handover(engine, router_broadcast=NEVER)
    last = simulation.view().item_profiles.copy()
    simulation.depart(router="x")
    np.testing.assert_allclose(simulation.view().item_profiles[0], drawn("p", 1), rtol=1e-14)
    between = simulation.run(2.4 + 0.25)
    assert between.items["updates"].tolist() == [0]
    after = simulation.run(float(np.nextafter(2.4 + 0.25, math.inf)))
    np.testing.assert_array_equal(after.item_profiles, last)
    assert after.items[["router", "ratings", "updates"]].to_numpy().tolist() == [["y", 0, 3]]
    assert counted(after)[("handover", "updated")] == 1
    assert counted(after, "bytes")[("handover", "sent")] == HANDOVER_BYTES
    assert after.routers[["profiles_sent", "bytes_sent"]].to_numpy().tolist() == [[1, HANDOVER_BYTES], [0, 0]]
    result = simulation.run(3.4)
    assert result.items[["ratings", "updates"]].to_numpy().tolist() == [[1, 4]]


def test_a_handover_that_the_uplink_drops_has_not_left(engine):
    """The second of two finds the first one in the queue, which has room for one."""
    silent = network(rehosting="handover", user_broadcast=NEVER, router_broadcast=NEVER)
    simulation = started(silent.replace(router_uplink=1.0, queue_limit=1), engine)
    simulation.run(0.6)
    simulation.depart(router="w")
    result = simulation.run(0.8)
    assert counted(result)[("handover", "sent")] == 2
    assert counted(result)[("handover", "lost_queue")] == 1
    assert result.routers[["profiles_sent", "bytes_sent"]].to_numpy().tolist()[0] == [1, HANDOVER_BYTES]


def test_a_handover_in_flight_is_in_the_accounts(engine):
    simulation = handover(engine)
    simulation.depart(router="x")
    result = simulation.run(2.5)
    assert counted(result)[("handover", "in_flight")] == 1
    assert counted(result, "bytes")[("handover", "in_flight")] == HANDOVER_BYTES


def test_each_item_is_handed_over_by_a_message_of_its_own(engine):
    simulation = started(network(rehosting="handover"), engine)
    simulation.run(2.4)
    last = simulation.view().item_profiles
    simulation.depart(router="w")
    result = simulation.run(2.7)
    assert counted(result)[("handover", "updated")] == 2
    np.testing.assert_array_equal(result.item_profiles[:2], last[:2])
    assert result.items["updates"].tolist()[:2] == [6, 6]


def test_a_handover_that_is_lost_leaves_the_fresh_profile(engine):
    simulation = handover(engine)
    simulation.set_loss(1.0)
    simulation.depart(router="x")
    simulation.set_loss(0.0)
    result = simulation.run(2.9)
    np.testing.assert_allclose(result.item_profiles[0], drawn("p", 1), rtol=1e-14)
    assert counted(result)[("handover", "lost_link")] == 1
    assert result.items["updates"].tolist() == [0]


def test_a_handover_to_a_router_that_is_offline_is_lost(engine):
    simulation = handover(engine)
    simulation.depart(router="x")
    simulation.set_online(False, router="y")
    result = simulation.run(2.9)
    assert counted(result)[("handover", "lost_offline")] == 1
    np.testing.assert_allclose(result.item_profiles[0], drawn("p", 1), rtol=1e-14)


def two_places(**link):
    graph = nx.DiGraph()
    graph.add_nodes_from(["home", "away"])
    if link:
        graph.add_edge("home", "away", **link)
        graph.add_edge("away", "home", latency=7.0)
    return {"topology": graph, "placement": GivenPlacement({"a": "home"}, {"x": "home", "y": "away"})}


def test_a_handover_travels_like_any_message(engine):
    """Latency, access delays of both routers, the drawn part, and the time to send its bytes."""
    simulation = handover(engine, **two_places(latency=0.5, bandwidth=1024.0), access=0.125, user_broadcast=NEVER)
    last = simulation.view().item_profiles.copy()
    simulation.depart(router="x")
    arrival = 2.4 + ((0.5 + 0.25) + (0.25 + HANDOVER_BYTES / 1024))
    assert (simulation.run(arrival).item_profiles != last).all()
    np.testing.assert_array_equal(simulation.run(float(np.nextafter(arrival, math.inf))).item_profiles, last)


def test_a_handover_that_no_path_carries(engine):
    simulation = handover(engine, **two_places())
    simulation.depart(router="x")
    assert counted(simulation.run(2.9))[("handover", "unreachable")] == 1
    np.testing.assert_allclose(simulation.view().item_profiles[0], drawn("p", 1), rtol=1e-14)


def test_who_is_offline_hands_nothing_over(engine):
    simulation = handover(engine)
    simulation.set_online(False, router="x")
    simulation.depart(router="x")
    result = simulation.run(2.9)
    assert ("handover", "sent") not in counted(result)


def test_a_heir_that_quits_before_the_handover_comes(engine):
    """It hands over what it has, the fresh profile; what comes to it later is lost with it."""
    world = one_pair(routers=("x", "y", "z"), hosting={"p": "x"}, rehosting="handover", delay=1.0)
    simulation = started(world, engine)
    simulation.run(2.4)
    simulation.depart(router="x")
    first = heir("p", ("y", "z"))
    second = "z" if first == "y" else "y"
    assert hosts(simulation.run(2.5)) == {"p": first}
    fresh = simulation.view().item_profiles.copy()
    simulation.depart(router=first)
    result = simulation.run(2.6)
    assert hosts(result) == {"p": second}
    np.testing.assert_allclose(result.item_profiles[0], drawn("p", 2), rtol=1e-14)
    result = simulation.run(3.9)
    found = counted(result)
    assert (found[("handover", "sent")], found[("handover", "updated")], found[("handover", "lost_offline")]) == (
        2,
        1,
        1,
    )
    np.testing.assert_array_equal(result.item_profiles, fresh)
    assert result.items["updates"].tolist() == [0]


def test_a_handover_takes_the_place_of_what_the_heir_learned_meanwhile(engine):
    simulation = handover(engine, delay=0.25)
    last = simulation.view().item_profiles.copy()
    simulation.set_delay(1.5)
    simulation.depart(router="x")  # arrives at 3.9
    simulation.set_delay(0.25)
    assert simulation.run(3.8).items["updates"].tolist() == [1]
    result = simulation.run(3.95)
    np.testing.assert_array_equal(result.item_profiles, last)
    assert result.items["updates"].tolist() == [3]


def test_a_second_copy_of_a_handover_is_stale(engine):
    """With a delay of 0.1 or 2.1 s, in some of these runs the copies come far apart, with broadcasts between."""
    for seed in range(8):
        simulation = handover(engine, seed=seed, router_broadcast=NEVER)
        simulation.set_duplication(1.0)
        simulation.set_delay(Empirical([0.1, 2.1]))
        simulation.depart(router="x")
        simulation.set_duplication(0.0)
        simulation.set_delay(0.01)
        updates = [simulation.run(2.45 + n / 4).items["updates"].tolist()[0] for n in range(1, 12)]
        assert counted(simulation.run(6.0))[("handover", "sent")] == 2
        since = updates[next(n for n, each in enumerate(updates) if each >= 3) :]  # the first has come
        assert since == sorted(since)


def test_a_checkpoint_of_an_heir_holds_the_items_that_came(engine):
    simulation = handover(engine, router_return=Checkpoint(0.5), router_broadcast=NEVER)
    last = simulation.view().item_profiles.copy()
    simulation.depart(router="x")
    simulation.run(3.2)
    simulation.set_online(False, router="y")
    simulation.set_online(True, router="y")
    result = simulation.run(3.22)
    np.testing.assert_array_equal(result.item_profiles, last)
    assert result.items["updates"].tolist() == [3]


def test_an_older_checkpoint_of_an_heir_holds_the_fresh_profile(engine):
    """What it wrote before the item came to it knows nothing of the item but how it was made."""
    simulation = handover(engine, router_return=Checkpoint(2.4), router_broadcast=NEVER)
    assert simulation._tables.life["saved"][2]
    assert simulation._tables.life["checkpoint_phase"][2] > 0.27  # so that it writes none from 2.4 to 2.66
    simulation.depart(router="x")
    fresh = simulation.view().item_profiles.copy()
    simulation.run(2.66)
    simulation.set_online(False, router="y")
    simulation.set_online(True, router="y")
    np.testing.assert_array_equal(simulation.view().item_profiles, fresh)


# -- one after another -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rehosting", ["fresh", "handover"])
def test_several_quit_one_after_another(engine, rehosting):
    simulation = started(network(rehosting=rehosting), engine)
    left, where = list(ROUTERS), dict(HOSTING)
    for number, quitter in enumerate("wxy"):
        simulation.run(2.4 + 2 * number)
        simulation.depart(router=quitter)
        left.remove(quitter)
        where = {item: heir(item, tuple(left)) if at == quitter else at for item, at in where.items()}
        assert hosts(simulation.run(2.8 + 2 * number)) == where
    assert set(where.values()) == {"z"}
    result = simulation.run(9.4)
    assert contacts(simulation, router="z") == ["a", "b", "c", "d"]
    assert [contacts(simulation, user=user) for user in "abcd"] == [["z"]] * 4
    assert result.items["ratings"].tolist() == [2, 2, 2, 1]
    assert (result.items["updates"] > 0).all()
    assert ("profile", "lost_offline") not in counted(result)


@pytest.mark.parametrize("rehosting", ["fresh", "handover"])
def test_the_last_router_takes_its_items_with_it(engine, rehosting):
    simulation = started(one_pair(routers=("x", "y"), hosting={"p": "x"}, rehosting=rehosting), engine)
    simulation.run(2.4)
    simulation.depart(router="x")
    simulation.run(4.4)
    simulation.depart(router="y")
    profile = simulation.view().item_profiles
    result = simulation.run(6.4)
    assert hosts(result) == {"p": "y"}
    assert result.routers["online"].tolist() == [False, False]
    assert counted(result)[("profile", "lost_offline")] == 2
    np.testing.assert_array_equal(result.item_profiles, profile)


def test_a_router_without_items_leaves_nothing_behind(engine):
    simulation = started(network(rehosting="handover"), engine)
    simulation.run(2.4)
    simulation.depart(router="z")
    result = simulation.run(4.4)
    assert hosts(result) == HOSTING
    assert ("handover", "sent") not in counted(result)


def test_lifetimes_of_routers_rehost_too(engine):
    """All routers of one lifetime quit at once, in order: each hands to those that have not, the last to nobody."""
    world = network(rehosting="handover", router_lifetime=Empirical([1.9, 3.9]))
    result = simulate(world, until=6.0, seed=SEED, engine=engine)
    online = dict(zip(result.routers["router"], result.routers["online"], strict=True))
    assert not any(online.values())
    assert len(set(hosts(result).values())) == 1


# -- tables ------------------------------------------------------------------------------------------------------------


def test_each_item_is_counted_at_one_router(engine):
    simulation = started(network(rehosting="handover"), engine)
    simulation.run(2.4)
    simulation.depart(router="w")
    result = simulation.run(4.4)
    where = list(hosts(result).values())
    assert result.routers["items"].tolist() == [where.count(router) for router in ROUTERS]


def test_a_router_that_quit_has_no_say_over_its_items(engine):
    simulation = handover(engine)
    simulation.depart(router="x")
    simulation.run(3.4)
    before = simulation.view().item_profiles
    simulation.reset(router="x")
    np.testing.assert_array_equal(simulation.view().item_profiles, before)


def test_disclosures_count_routers(engine):
    simulation = handover(engine)
    assert simulation.run(2.45).disclosed.tolist() == [1]
    simulation.depart(router="x")
    assert simulation.run(2.9).disclosed.tolist() == [1]
    assert simulation.run(4.9).disclosed.tolist() == [2]


def test_a_late_question_of_the_quitter_is_no_third_router(engine):
    """Only the last router that a rating went to is kept; a quitter's request may come after the heir's."""
    world = one_pair(
        routers=("x", "y"), hosting={"p": "x"}, rehosting="fresh", rating_exchange="request", request_timeout=0.5
    )
    simulation = started(world, engine)
    simulation.run(0.4)
    simulation.set_loss(1.0)  # the first reply, at 0.5
    simulation.run(0.6)
    simulation.set_loss(0.0)
    simulation.run(1.2)
    simulation.set_delay(5.0)  # the second request, at 1.25
    simulation.run(1.3)
    simulation.set_delay(0.25)
    simulation.depart(router="x")
    assert simulation.run(3.0).disclosed.tolist() == [2]
    assert simulation.run(7.0).disclosed.tolist() == [2]


def test_an_old_profile_from_the_quitter_is_stale_after_a_newer_from_the_heir(engine):
    """A receiver discards by (receiver, profile): the stamps of an item go on when it moves."""
    simulation = handover(engine, user_broadcast=NEVER, rehosting="fresh")
    simulation.set_delay(3.0)
    simulation.run(2.6)  # x sends at 2.5, which arrives at 5.5
    simulation.set_delay(0.25)
    simulation.depart(router="x")
    before = simulation.run(5.4)  # y has sent at 3.5 and 4.5
    assert before.user_updates.tolist() == [4]
    after = simulation.run(5.49 + 0.02)
    assert counted(after).get(("profile", "stale")) == 1


def test_trace_of_a_handover():
    trace = MessageTrace()
    world = one_pair(routers=("x", "y"), hosting={"p": "x"}, rehosting="handover", router_lifetime=Constant(1e9))
    simulation = started(world, trace=trace)
    simulation.run(2.5)
    simulation.depart(router="x")
    simulation.run(3.0)
    rows = trace.frame().query("kind == 'handover'")[["sender", "receiver", "profile", "sent", "arrives", "fate"]]
    assert rows.to_numpy().tolist() == [[1, 2, 1, 2.5, 2.75, "updated"]]


def test_capped_lists_of_heirs_take_over_what_the_quitter_had(engine):
    simulation = started(network(rehosting="fresh", router_contacts=Raters(cap=1)), engine)
    had = contacts(simulation, router="w")
    assert len(had) == 1
    simulation.run(1.0)
    simulation.depart(router="w")
    for item in "pq":
        if item in RATED[had[0]]:
            assert had[0] in contacts(simulation, router=heir(item, ("x", "y", "z")))
