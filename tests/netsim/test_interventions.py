"""Interventions: what each does from `at` until `until`, on both engines, and beside a process of one's own."""

import math

import networkx as nx
import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import (
    GivenPlacement,
    Learning,
    Periodic,
    Sessions,
    Simulation,
    World,
    flash_crowd,
    latency_shift,
    link_failure,
    partition,
    region_outage,
    router_outage,
    simulate,
)

SEED = 2
EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1e6, phase=1e6)
USERS, ROUTERS = ("a", "b"), ("x", "y")


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def regional():
    """West and east, joined by a link of 0.5 s and a detour of 0.75 s over a place of no region."""
    graph = nx.Graph()
    graph.add_node("w", region="west")
    graph.add_node("e", region="east")
    graph.add_edge("w", "e", latency=0.5)
    graph.add_edge("w", "m", latency=0.25)
    graph.add_edge("m", "e", latency=0.5)
    return graph


def world(**changes):
    """User "a" in the west rated the item of router "x" in the east, "b" in the east that of "y" in the west."""
    ratings = Ratings.from_arrays(["a", "b"], ["p", "q"], [3.0, 4.0], scale=(1, 5))
    plain = World(
        ratings,
        topology=regional(),
        placement=GivenPlacement({"a": "w", "b": "e"}, {"x": "e", "y": "w"}),
        routers=ROUTERS,
        hosting={"p": "x", "q": "y"},
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        rating_exchange="attach",
        minimum_delay=0.0,
        learning=Learning(rank=2),
    )
    return plain.replace(**changes)


def run(engine, until, *scripts, every=0.125, **changes):
    return simulate(world(**changes), until=until, seed=SEED, every=every, engine=engine, scripts=scripts)


def steps(result, column):
    """Times, in steps of 0.125 s, at which a column of the probe table changes."""
    values = result.probes[column].to_numpy()
    return result.probes["time"].to_numpy()[np.flatnonzero(np.diff(values))].tolist()


def counted(result):
    found = result.accounts.set_index(["kind", "fate"])["messages"]
    return found[found > 0].to_dict()


# -- each of them ------------------------------------------------------------------------------------------------------


def test_partition(engine):
    result = run(engine, 4.75, partition(["e"], at=1.0, until=3.0))
    assert steps(result, "item_updates") == [0.5, 3.5, 4.5]
    assert counted(result) == {("profile", "sent"): 10, ("profile", "updated"): 6, ("profile", "unreachable"): 4}
    assert steps(run(engine, 4.75, partition(["e"], at=1.0)), "item_updates") == [0.5]


def test_link_failure(engine):
    result = run(engine, 3.75, link_failure([("e", "w")], at=0.75, until=2.0))
    assert steps(result, "item_updates") == [0.5, 1.75, 2.5, 3.5]


def test_router_outage(engine):
    result = run(engine, 3.75, router_outage(["x"], at=1.25, until=2.5))
    # "x" is offline for what arrives at 1.5; at 2.5 it is back before the arrival.
    assert steps(result, "routers_online") == [1.25, 2.5]
    assert result.item_updates.tolist() == [3, 4]
    assert counted(result)[("profile", "lost_offline")] == 1


def test_router_outage_overrules_sessions(engine):
    churn = Sessions(1.0, 1.0, start="online")
    result = run(engine, 5.9, router_outage(1.0, at=1.5, until=4.5), router_churn=churn)
    assert steps(result, "routers_online") == [1.0, 4.5, 5.0]


def test_region_outage(engine):
    result = run(engine, 4.75, region_outage("east", at=1.25, until=3.25))
    assert steps(result, "users_online") == steps(result, "routers_online") == [1.25, 3.25]
    # What "a" and "b" sent at 1: his comes while "x" is down; hers comes to "y", which is not. Then "a" reaches nobody.
    assert counted(result) == {
        ("profile", "sent"): 8,
        ("profile", "updated"): 5,
        ("profile", "lost_offline"): 1,
        ("profile", "unreachable"): 2,
    }
    assert result.item_updates.tolist() == [2, 3]


def test_a_region_that_is_down_carries_no_traffic_of_others(engine):
    graph = regional()
    graph.nodes["m"]["region"] = "middle"
    graph.remove_edge("w", "e")
    result = run(engine, 3.9, region_outage("middle", at=1.0, until=3.0), topology=graph)
    assert steps(result, "item_updates") == [0.75, 3.75]
    assert steps(result, "users_online") == []


def test_latency_shift(engine):
    result = run(engine, 4.75, latency_shift(at=1.0, until=2.0, factor=1.5, seconds=0.125))
    assert steps(result, "item_updates") == [0.5, 1.875, 2.5, 3.5, 4.5]


def test_a_latency_shift_leaves_what_is_in_flight(engine):
    result = run(engine, 1.75, latency_shift(at=0.25, until=0.75, seconds=10.0))
    assert steps(result, "item_updates") == [0.5, 1.5]


def test_flash_crowd(engine):
    result = run(engine, 3.75, flash_crowd(["a"], at=2.0))
    assert steps(result, "users_online") == [0.0, 2.0]
    assert result.users["profiles_sent"].tolist() == [2, 4]


def test_a_flash_crowd_stays_until_it_goes_by_its_sessions(engine):
    churn = Sessions(1.0, 3.0, start="online")  # online until 1, and from 4 to 5
    result = run(engine, 7.0, flash_crowd(1.0, at=2.0, until=3.0), user_churn=churn)
    assert steps(result, "users_online") == [0.0, 2.0, 3.0, 4.0, 5.0]
    result = run(engine, 7.0, flash_crowd(1.0, at=2.0), user_churn=churn)
    assert steps(result, "users_online") == [0.0, 2.0]


# -- times -------------------------------------------------------------------------------------------------------------

ALL = [
    pytest.param(lambda **times: partition(["e"], **times), id="partition"),
    pytest.param(lambda **times: link_failure([("w", "e")], **times), id="link_failure"),
    pytest.param(lambda **times: router_outage(["x"], **times), id="router_outage"),
    pytest.param(lambda **times: region_outage("east", **times), id="region_outage"),
    pytest.param(lambda **times: latency_shift(seconds=0.125, **times), id="latency_shift"),
    pytest.param(lambda **times: flash_crowd(["a"], **times), id="flash_crowd"),
]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"at": -1.0}, "at must be a finite number of seconds >= 0, got -1"),
        ({"at": math.inf}, "at must be a finite number of seconds >= 0, got inf"),
        ({"at": math.nan}, "at must be a finite number of seconds >= 0, got nan"),
        ({"at": "1"}, "at must be a finite number of seconds >= 0, got '1'"),
        ({"at": True}, "at must be a finite number of seconds >= 0, got True"),
        ({"at": 2.0, "until": 2.0}, "until must be a finite number of seconds > at=2, or None, got 2"),
        ({"at": 2.0, "until": math.inf}, "until must be a finite number of seconds > at=2, or None, got inf"),
        ({"at": 2.0, "until": "3"}, "until must be a finite number .*got '3'"),
    ],
)
def test_times_are_checked_when_it_is_made(request, make, times, message):
    name = request.node.callspec.id.split("-")[-1]
    with pytest.raises(ValueError, match=message) as error:
        make(**times)
    assert str(error.value).startswith(f"{name}: ")


@pytest.mark.parametrize("make", ALL)
def test_an_intervention_is_data(make):
    assert make(at=1, until=np.int64(2)) == make(at=1.0, until=2.0) != make(at=1.0)
    assert hash(make(at=1.0)) == hash(make(at=1.0))


@pytest.mark.parametrize(
    ("script", "arrivals", "fates"),
    [
        (partition(["e"], at=0), [], {"sent": 2, "unreachable": 2}),
        (link_failure([("w", "e")], at=0), [0.75], {"sent": 2, "updated": 2}),
        (router_outage(["x"], at=0), [0.5], {"sent": 2, "updated": 1, "lost_offline": 1}),
        (region_outage("east", at=0), [], {"sent": 1, "unreachable": 1}),
        (latency_shift(seconds=0.125, at=0), [0.625], {"sent": 2, "updated": 2}),
        (flash_crowd(["a"], at=0), [0.5], {"sent": 2, "updated": 2}),
    ],
)
def test_at_time_0_it_acts_before_the_model(engine, script, arrivals, fates):
    result = run(engine, 0.9, script)
    assert counted(result) == {("profile", fate): number for fate, number in fates.items()}
    assert steps(result, "item_updates") == arrivals


@pytest.mark.parametrize("make", ALL)
def test_it_is_over_where_it_ends_after_the_run(engine, make):
    """What happens after the end changes nothing, and a longer run goes on as if there had been no end."""
    pieces = Simulation(world(), seed=SEED, engine=engine)
    pieces.env.process(make(at=0.5, until=2.5)(pieces))
    for until in (0.5, 1.75, 2.5):
        pieces.run(until, every=0.125)
    assert pieces.run(4.0, every=0.125).probes.equals(run(engine, 4.0, make(at=0.5, until=2.5)).probes)


@pytest.mark.parametrize("make", ALL[:-1])  # a crowd is away before it comes
def test_an_intervention_that_never_acts_changes_nothing(engine, make):
    assert run(engine, 3.0, make(at=9.0)).probes.equals(run(engine, 3.0).probes)


def begun_late(make):
    simulation = Simulation(world(), seed=SEED)
    simulation.run(3.0)
    simulation.env.process(make(at=1.0)(simulation))
    return simulation


@pytest.mark.parametrize("make", ALL[:-1])
def test_an_intervention_whose_time_is_over_is_an_error(make):
    with pytest.raises(ValueError, match=r"at=1 is over: the run is at 3 s already"):
        begun_late(make).run(4.0)


def test_a_flash_crowd_whose_time_is_over_is_an_error():
    with pytest.raises(ValueError, match=r"at=1 is over: the run is at 3 s already"):
        begun_late(lambda at: flash_crowd(["a"], at=at)).run(4.0)


# -- what they name ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: router_outage(0, at=1.0), r"router_outage: routers must be ids or a share in \(0, 1\], got 0"),
        (lambda: router_outage(1.5, at=1.0), r"router_outage: routers must be ids or a share in \(0, 1\], got 1.5"),
        (lambda: router_outage("x", at=1.0), r"router_outage: routers must be a list .*got 'x'; pass \['x'\]"),
        (lambda: router_outage([], at=1.0), "router_outage: routers must name at least one, got none"),
        (lambda: flash_crowd(-0.1, at=1.0), r"flash_crowd: users must be ids or a share in \(0, 1\], got -0.1"),
        (lambda: flash_crowd("a", at=1.0), "flash_crowd: users must be a list of .* or a share .*got 'a'"),
        (lambda: flash_crowd([], at=1.0), "flash_crowd: users must name at least one, got none"),
        (lambda: latency_shift(at=1.0, seconds=-1), "latency_shift: seconds must be a finite number >= 0, got -1"),
        (lambda: latency_shift(at=1.0, factor=0), "latency_shift: factor must be a finite number > 0, got 0"),
        (lambda: latency_shift(at=1.0, factor=math.inf), "latency_shift: factor must be a finite number > 0, got inf"),
    ],
)
def test_arguments_are_checked_when_it_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (partition(["moon"], at=1.0), "places must name places of the underlay, got 'moon'"),
        (partition(["w", "e", "m"], at=1.0), "places must leave places on both sides"),
        (link_failure([("w", "moon")], at=1.0), "links names 'moon', which is not a place"),
        (router_outage(["a"], at=1.0), "router='a' is not a router of this world"),
        (flash_crowd(["x"], at=1.0), "user='x' is not a user of this world"),
        (region_outage("north", at=1.0), "region must be one of the underlay's 2 regions, got 'north'"),
    ],
)
def test_who_is_not_there_is_named_by_the_run(engine, script, message):
    with pytest.raises(ValueError, match=message):
        run(engine, 3.0, script)


@pytest.mark.parametrize("make", [lambda: link_failure([("w", "e", "m")], at=1.0), lambda: link_failure(["w"], at=1.0)])
def test_links_that_are_no_pairs_are_named(make):
    with pytest.raises(ValueError, match="links"):
        make()


def test_a_share_is_drawn_from_its_own_seed():
    """Other runs lose the same routers; a larger share loses those and more; another seed others."""
    pairs = [(user, item) for user in range(2) for item in range(40)]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [3.0] * len(pairs), scale=(1, 5))

    def down(share, run_seed=1, **settings):
        simulation = Simulation(World(ratings), seed=run_seed)
        simulation.env.process(router_outage(share, at=1.0, **settings)(simulation))
        simulation.run(1.5)
        return set(np.flatnonzero(~simulation.view().routers_online).tolist())

    assert len(down(0.25)) == 10
    assert down(0.25) == down(0.25, run_seed=7)
    assert down(0.25) < down(0.5)
    assert down(0.25) != down(0.25, seed=1)
    assert len(down(0.001)) == 1
    assert down(1.0) == set(range(40))


# -- several at once ---------------------------------------------------------------------------------------------------


def test_outages_that_overlap_nest(engine):
    scripts = [router_outage(["x"], at=0.5, until=2.0), region_outage("east", at=1.0, until=3.0)]
    result = run(engine, 4.0, *scripts)
    assert steps(result, "routers_online") == [0.5, 3.0]
    assert steps(result, "users_online") == [1.0, 3.0]


def test_an_outage_outlasts_a_crowd(engine):
    result = run(engine, 4.0, region_outage("west", at=0.5, until=2.5), flash_crowd(["a"], at=1.0, until=1.5))
    assert steps(result, "users_online") == [0.0, 2.5]


def test_the_same_intervention_twice(engine):
    twice = [latency_shift(at=0.75, until=3.0, seconds=0.125), latency_shift(at=1.75, until=3.5, seconds=0.125)]
    result = run(engine, 4.75, *twice)
    assert steps(result, "item_updates") == [0.5, 1.625, 2.75, 3.625, 4.5]


def test_beside_a_process_of_ones_own(engine):
    """A SimPy process that waits, looks and acts; at equal times, in the order in which they were given."""
    seen = []

    def mine(simulation):
        for _ in range(4):
            yield simulation.env.timeout(1.0)
            seen.append((simulation.env.now, int(simulation.view().routers_online.sum())))
            if simulation.env.now == 2.0:
                simulation.set_online(False, router="y")

    result = run(engine, 4.5, router_outage(["x"], at=1.5, until=3.5), mine)
    assert seen == [(1.0, 2), (2.0, 1), (3.0, 0), (4.0, 1)]
    assert steps(result, "routers_online") == [1.5, 2.0, 3.5]


def test_an_intervention_does_what_a_process_of_ones_own_would_do(engine):
    def mine(simulation):
        yield simulation.env.timeout(1.0)
        simulation.partition(["e"])
        yield simulation.env.timeout(2.0)
        simulation.heal(["e"])

    assert run(engine, 5.0, mine).probes.equals(run(engine, 5.0, partition(["e"], at=1.0, until=3.0)).probes)


def test_a_partition_that_is_healed_early_ends_quietly(engine):
    def mine(simulation):
        yield simulation.env.timeout(1.75)
        simulation.heal()

    result = run(engine, 3.9, partition(["e"], at=1.0, until=3.0), mine)
    assert steps(result, "item_updates") == [0.5, 2.5, 3.5]
