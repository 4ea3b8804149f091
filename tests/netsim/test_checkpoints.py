"""What a node has when it comes back: everything, nothing that it had learned, or what its last checkpoint holds."""

import math

import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, draw, entity_keys, uniform
from algorithms.ratings import Ratings
from netsim import Checkpoint, Learning, Periodic, Sessions, Simulation, Uniform, World, simulate
from netsim.state import UNASKED

RANK = 3
SEED = 5
EACH_SECOND = Periodic(1.0, phase=0.0)
HALF_PAST = Periodic(1.0, phase=0.5)
USER_KEY, ROUTER_KEY = entity_keys(USER, ["a"])[0], entity_keys(ROUTER, [0])[0]


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def pair(**changes):
    """User "a" rated both items of the one router; he broadcasts at 0, 1, ..., it at 0.5, 1.5, ...; 0.125 s each."""
    ratings = Ratings.from_arrays(["a", "a"], ["p", "q"], [2.0, 4.0], scale=(1, 5))
    plain = World(
        ratings,
        routers=1,
        user_broadcast=EACH_SECOND,
        router_broadcast=HALF_PAST,
        delay=0.125,
        learning=Learning(rank=RANK, lam=0.1, rate=0.05, initial=Uniform(0.0, 1.0)),
    )
    return plain.replace(**changes)


def started(engine, **changes):
    return Simulation(pair(**changes), seed=SEED, engine=engine)


def after(time):
    """Just after what happens at a time."""
    return float(np.nextafter(time, math.inf))


def comes_back(simulation, **node):
    simulation.set_online(False, **node)
    simulation.set_online(True, **node)


def drawn(key, incarnation):
    """A fresh profile, entry by entry."""
    seed = np.uint64(SEED)
    words = [draw(seed, purposes.INITIAL_PROFILE, key, np.uint64(incarnation * 2**32 + k)) for k in range(RANK)]
    return [uniform(np.uint64(word)) for word in words]


def first_checkpoint(key, interval):
    return uniform(np.uint64(draw(np.uint64(SEED), purposes.CHECKPOINT_PHASE, key, 0))) * interval


def learned(simulation, node):
    """All that a reset clears of a node, 0 the user and 1 the router: profiles, updates, known, taken, state, value."""
    tables = simulation._tables
    row = tables.nodes[node]
    own = tables.owned[row["owned_start"] : row["owned_start"] + row["owned_count"]]
    edge = tables.edge_between(1 - node, node)
    first = int(tables.edges["slot"][edge])
    slots = tables.slots[first : first + 2]
    return {
        "values": tables.values[own].tolist(),
        "updates": tables.profiles["updates"][own].tolist(),
        "known": tables.profiles["known"][own].tolist(),
        "taken": slots["taken"].tolist(),
        "state": slots["state"].tolist(),
        "value": slots["value"].tolist(),
        "count": slots["count"].tolist(),
    }


# -- keep --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [{"user": "a"}, {"router": 0}])
def test_by_default_a_node_keeps_everything(engine, node):
    simulation = started(engine)
    simulation.run(3.4)
    before = [learned(simulation, each) for each in (0, 1)]
    comes_back(simulation, **node)
    assert [learned(simulation, each) for each in (0, 1)] == before
    assert min(before[0]["updates"] + before[1]["updates"]) > 0


# -- reset -------------------------------------------------------------------------------------------------------------


def test_a_user_who_is_reset_starts_with_a_profile_of_new_draws(engine):
    simulation = started(engine, user_return="reset")
    np.testing.assert_allclose(simulation.view().user_profiles[0], drawn(USER_KEY, 0), rtol=1e-14)
    simulation.run(3.4)
    before, router = learned(simulation, 0), learned(simulation, 1)
    assert before["updates"] == [6]
    assert before["taken"] == [3, 3]
    comes_back(simulation, user="a")
    found = learned(simulation, 0)
    np.testing.assert_allclose(found["values"][0], drawn(USER_KEY, 1), rtol=1e-14)
    assert (found["updates"], found["taken"]) == ([0], [0, 0])
    # What is his own stays: his ratings, and the number of those.
    assert (found["known"], found["value"], found["state"]) == (before["known"], [2.0, 4.0], before["state"])
    assert learned(simulation, 1) == router
    comes_back(simulation, user="a")
    np.testing.assert_allclose(simulation.view().user_profiles[0], drawn(USER_KEY, 2), rtol=1e-14)


def test_stamps_of_a_user_go_on_after_a_reset(engine):
    """Else the router would discard what he sends next."""
    simulation = started(engine, user_return="reset")
    simulation.run(3.4)
    stamp = int(simulation._tables.profiles["stamp"][0])
    comes_back(simulation, user="a")
    assert simulation._tables.profiles["stamp"][0] == stamp == 5  # four broadcasts, one reply
    before = simulation.view()
    result = simulation.run(4.4)
    assert result.accounts.set_index(["kind", "fate"]).loc[("profile", "stale"), "messages"] == 0
    assert (result.item_profiles != before.item_profiles).all()
    assert result.user_updates.tolist() == [2]  # his own ratings serve again


def test_a_router_that_is_reset_asks_for_the_ratings_again(engine):
    simulation = started(engine, router_return="reset")
    result = simulation.run(3.4)
    assert result.items["ratings"].tolist() == [1, 1]
    kinds = result.accounts.set_index(["kind", "fate"])["messages"]
    assert kinds[("request", "control")] == 1
    user = learned(simulation, 0)
    comes_back(simulation, router=0)
    found = learned(simulation, 1)
    for profile, key in zip(found["values"], entity_keys(ITEM, ["p", "q"]), strict=True):
        np.testing.assert_allclose(profile, drawn(key, 1), rtol=1e-14)
    assert found["updates"] == found["known"] == found["taken"] == found["count"] == [0, 0]
    assert found["state"] == [UNASKED, UNASKED]
    assert learned(simulation, 0) == user
    result = simulation.run(4.4)  # broadcast at 4, request at 4.125, reply at 4.25, learned at 4.375
    kinds = result.accounts.set_index(["kind", "fate"])["messages"]
    assert (kinds[("request", "control")], kinds[("reply", "updated")]) == (2, 2)
    assert result.items["ratings"].tolist() == result.items["updates"].tolist() == [1, 1]


def test_attempts_are_numbered_on_after_a_reset(engine):
    """Their numbers name draws, which must not come again."""
    simulation = started(engine, router_return="reset")
    simulation.run(1.0)
    comes_back(simulation, router=0)
    simulation.run(2.0)
    tables = simulation._tables
    assert tables.slots["attempt"][tables.edges["slot"][tables.edge_between(0, 1)]] == 2


def test_a_router_that_is_reset_while_it_waits_asks_at_once(engine):
    simulation = started(engine, router_return="reset", request_timeout=60.0)
    simulation.run(0.2)  # asked at 0.125; the reply would come at 0.375
    comes_back(simulation, router=0)
    simulation.set_loss(1.0)
    result = simulation.run(0.3)  # the user's reply is lost
    simulation.set_loss(0.0)
    result = simulation.run(1.4)
    assert result.accounts.set_index(["kind", "fate"])["messages"][("request", "control")] == 2


def test_a_script_can_reset_a_node_that_is_online(engine):
    simulation = started(engine)
    simulation.run(2.4)
    simulation.reset(user="a")
    simulation.reset(router=0)
    np.testing.assert_allclose(simulation.view().user_profiles[0], drawn(USER_KEY, 1), rtol=1e-14)
    assert learned(simulation, 1)["known"] == [0, 0]
    assert simulation.view().users_online.all()


def test_counts_of_a_run_are_not_reset(engine):
    """The result counts updates of the profile that there is; the probe table counts all that were made."""
    world = pair(user_return="reset", user_churn=Sessions(2.25, 0.5, start="online"))
    result = simulate(world, until=5.0, seed=SEED, engine=engine)
    # Item profiles arrive at 0.625, 1.625, (2.625 offline,) 3.625, 4.625: two each; back since 2.75.
    assert result.user_updates.tolist() == [4]
    assert result.final["user_updates"] == 8


def test_who_only_goes_has_still_what_he_had(engine):
    simulation = started(engine, user_return="reset")
    simulation.run(2.4)
    before = learned(simulation, 0)
    simulation.set_online(False, user="a")
    assert learned(simulation, 0) == before


def test_who_comes_for_the_first_time_is_as_he_was_made(engine):
    """Worlds that differ in `user_return` alone share the first profiles: nothing came back yet."""
    simulation = started(engine, user_return="reset", user_churn=Sessions(5.0, 1.0, start="offline"))
    simulation.run(1.25)
    np.testing.assert_allclose(simulation.view().user_profiles[0], drawn(USER_KEY, 0), rtol=1e-14)


# -- checkpoints -------------------------------------------------------------------------------------------------------

INTERVAL = 4.0
ROLES = [
    pytest.param(0, {"user": "a"}, USER_KEY, "user_return", id="user"),
    pytest.param(1, {"router": 0}, ROUTER_KEY, "router_return", id="router"),
]


@pytest.mark.parametrize(("number", "node", "key", "argument"), ROLES)
def test_a_node_has_what_its_last_checkpoint_holds(engine, number, node, key, argument):
    simulation = started(engine, **{argument: Checkpoint(INTERVAL)})
    second = first_checkpoint(key, INTERVAL) + INTERVAL
    simulation.run(second)
    at_checkpoint = learned(simulation, number)
    simulation.run(second + INTERVAL - 0.01)
    before = learned(simulation, number)
    assert before["values"] != at_checkpoint["values"]
    assert before["taken"] != at_checkpoint["taken"]
    stamps = simulation._tables.profiles["stamp"].tolist()
    comes_back(simulation, **node)
    assert learned(simulation, number) == at_checkpoint
    assert simulation._tables.profiles["stamp"].tolist() == stamps


def test_a_router_has_the_ratings_that_it_knew_at_its_checkpoint(engine):
    """Written before the reply came, a checkpoint knows no rating; so the router asks again."""
    moment = first_checkpoint(ROUTER_KEY, 60.0)
    later = Periodic(100.0, phase=moment - 0.2)  # asked at -0.075, the reply comes at +0.175
    simulation = started(engine, router_return=Checkpoint(60.0), user_broadcast=later)
    result = simulation.run(moment + 1.0)
    assert result.items["ratings"].tolist() == [1, 1]
    comes_back(simulation, router=0)
    found = learned(simulation, 1)
    assert (found["known"], found["state"]) == ([0, 0], [UNASKED, UNASKED])
    assert found["taken"] == [1, 0]


def test_a_router_that_goes_back_to_its_checkpoint_waits_for_no_reply(engine):
    moment = first_checkpoint(ROUTER_KEY, 60.0)
    later = Periodic(100.0, phase=moment - 0.2)  # asked at -0.075, the reply would come at +0.175
    simulation = started(engine, router_return=Checkpoint(60.0), user_broadcast=later, request_timeout=1000.0)
    simulation.run(moment + 0.02)
    comes_back(simulation, router=0)
    simulation.set_loss(1.0)
    simulation.run(moment + 1.0)  # the user's reply is lost
    simulation.set_loss(0.0)
    result = simulation.run(moment + 101.0)
    assert result.accounts.set_index(["kind", "fate"])["messages"][("request", "control")] == 2


@pytest.mark.parametrize(("number", "node", "key", "argument"), ROLES)
def test_a_node_without_a_checkpoint_is_reset(engine, number, node, key, argument):
    simulation = started(engine, **{argument: Checkpoint(1000.0)})
    assert first_checkpoint(key, 1000.0) > 3.4
    simulation.run(3.4)
    comes_back(simulation, **node)
    found = learned(simulation, number)
    assert set(found["updates"] + found["taken"]) == {0}
    keys = [USER_KEY] if number == 0 else entity_keys(ITEM, ["p", "q"])
    for profile, each in zip(found["values"], keys, strict=True):
        np.testing.assert_allclose(profile, drawn(each, 1), rtol=1e-14)


@pytest.mark.parametrize(("number", "node", "key", "argument"), ROLES)
def test_no_checkpoint_is_written_while_a_node_is_offline(engine, number, node, key, argument):
    simulation = started(engine, **{argument: Checkpoint(INTERVAL)})
    second = first_checkpoint(key, INTERVAL) + INTERVAL
    simulation.run(after(second))
    at_checkpoint = learned(simulation, number)
    simulation.run(second + INTERVAL - 0.01)
    simulation.set_online(False, **node)
    simulation.run(second + 2 * INTERVAL - 0.01)  # over the third
    simulation.set_online(True, **node)
    assert learned(simulation, number) == at_checkpoint


@pytest.mark.parametrize(("number", "node", "key", "argument"), ROLES)
def test_a_checkpoint_can_serve_twice(engine, number, node, key, argument):
    simulation = started(engine, **{argument: Checkpoint(INTERVAL)})
    second = first_checkpoint(key, INTERVAL) + INTERVAL
    simulation.run(after(second))
    at_checkpoint = learned(simulation, number)
    for later in (1.5, 3.0):
        simulation.run(second + later)
        assert learned(simulation, number) != at_checkpoint
        comes_back(simulation, **node)
        assert learned(simulation, number) == at_checkpoint


def test_a_checkpoint_is_written_after_the_ticks_and_before_the_arrivals_of_its_time(engine):
    """The user's checkpoint falls on an item profile's arrival to the bit."""
    moment = first_checkpoint(USER_KEY, 64.0)
    phase = moment - 0.125
    assert phase + 0.125 == moment
    world = {"user_return": Checkpoint(64.0), "router_broadcast": Periodic(1e6, phase=phase), "user_broadcast": 1e6}
    simulation = started(engine, **world)
    simulation.run(after(moment))
    assert learned(simulation, 0)["updates"] == [2]
    comes_back(simulation, user="a")
    assert learned(simulation, 0)["updates"] == [0]
    np.testing.assert_allclose(simulation.view().user_profiles[0], drawn(USER_KEY, 0), rtol=1e-14)


def test_a_restored_user_takes_again_what_came_after_his_checkpoint(engine):
    """Stamps taken are restored: a message sent before he went, and still on its way, is new to him again."""
    moment = first_checkpoint(USER_KEY, INTERVAL) + INTERVAL
    simulation = started(engine, user_return=Checkpoint(INTERVAL), user_broadcast=Periodic(1e6, phase=1e6))
    simulation.run(after(moment))
    taken = learned(simulation, 0)["taken"]
    simulation.run(math.floor(moment) + 2.4)
    assert learned(simulation, 0)["taken"] != taken
    comes_back(simulation, user="a")
    assert learned(simulation, 0)["taken"] == taken


def test_a_reset_by_a_script_leaves_the_checkpoint(engine):
    simulation = started(engine, user_return=Checkpoint(INTERVAL))
    second = first_checkpoint(USER_KEY, INTERVAL) + INTERVAL
    simulation.run(after(second))
    at_checkpoint = learned(simulation, 0)
    simulation.reset(user="a")
    assert learned(simulation, 0)["updates"] == [0]
    comes_back(simulation, user="a")
    assert learned(simulation, 0) == at_checkpoint
