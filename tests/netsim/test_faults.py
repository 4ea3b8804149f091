"""Faults of the underlay: what fails, what paths are left, and that overlapping faults are undone one by one."""

import math

import networkx as nx
import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import GivenPlacement, Learning, MessageTrace, Periodic, Simulation, Underlay, World
from netsim.faults import Faults

SEED = 2
EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1e6, phase=1e6)


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def triangle(**attributes):
    """From home to away 0.5 s directly, 0.75 s over the place between."""
    graph = nx.Graph()
    graph.add_edge("home", "away", latency=0.5)
    graph.add_edge("home", "between", latency=0.25)
    graph.add_edge("between", "away", latency=0.5, **attributes)
    return graph


def one_pair(**changes):
    """User "a" at home rated the one item of router "x", away; he broadcasts at 0, 1, ...; the router is silent."""
    ratings = Ratings.from_arrays(["a"], ["p"], [3.0], scale=(1, 5))
    plain = World(
        ratings,
        topology=triangle(),
        placement=GivenPlacement({"a": "home"}, {"x": "away"}),
        routers=("x",),
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        rating_exchange="attach",
        minimum_delay=0.0,
        learning=Learning(rank=2),
    )
    return plain.replace(**changes)


def started(engine, **changes):
    return Simulation(one_pair(**changes), seed=SEED, engine=engine)


def arrives(simulation, time):
    """Whether exactly one update is made at this time: not before it, and not after."""
    before = simulation.run(time).final["item_updates"]
    return simulation.run(float(np.nextafter(time, math.inf))).final["item_updates"] == before + 1


def counted(result):
    found = result.accounts.set_index(["kind", "fate"])["messages"]
    return found[found > 0].to_dict()


# -- links and places --------------------------------------------------------------------------------------------------


def test_messages_take_the_path_that_is_left(engine):
    simulation = started(engine)
    assert arrives(simulation, 0.5)
    simulation.fail_links([("away", "home")])
    assert arrives(simulation, 1.75)
    simulation.repair_links([("home", "away")])
    assert arrives(simulation, 2.5)
    assert counted(simulation.run(3.0)) == {("profile", "sent"): 3, ("profile", "updated"): 3}


def test_what_is_in_flight_arrives(engine):
    simulation = started(engine)
    simulation.run(0.25)
    simulation.fail_links([("home", "away")])
    assert arrives(simulation, 0.5)


def test_a_place_that_fails_carries_nothing(engine):
    simulation = started(engine)
    simulation.fail_links([("home", "away")])
    simulation.fail_places(["between"])
    simulation.run(1.5)
    simulation.repair_places(["between"])
    result = simulation.run(2.8)
    assert counted(result) == {("profile", "sent"): 3, ("profile", "unreachable"): 2, ("profile", "updated"): 1}


def test_nodes_at_a_place_that_failed_reach_each_other(engine):
    simulation = started(engine, placement=GivenPlacement({"a": "home"}, {"x": "home"}), delay=0.25)
    simulation.fail_places(["home"])
    assert arrives(simulation, 0.25)


def test_the_way_left_brings_its_own_loss_and_bandwidth(engine):
    """A detour over a slow link: 64 + 16 bytes at 320 bytes/s take 0.25 s more."""
    simulation = started(engine, topology=triangle(bandwidth=320.0))
    assert arrives(simulation, 0.5)
    simulation.fail_links([("home", "away")])
    assert arrives(simulation, 2.0)
    simulation = started(engine, topology=triangle(loss=1.0))
    simulation.fail_links([("home", "away")])
    assert counted(simulation.run(1.5)) == {("profile", "sent"): 2, ("profile", "lost_link"): 2}


# -- partitions --------------------------------------------------------------------------------------------------------


def test_a_partition_cuts_off_and_heals(engine):
    simulation = started(engine)
    simulation.run(0.75)
    simulation.partition(["away"])
    simulation.run(2.5)
    simulation.heal(["away"])
    assert arrives(simulation, 3.5)
    assert counted(simulation.run(3.9)) == {
        ("profile", "sent"): 4,
        ("profile", "updated"): 2,
        ("profile", "unreachable"): 2,
    }


def test_within_a_part_messages_go_on(engine):
    simulation = started(engine)
    simulation.partition(["home", "away"])
    assert arrives(simulation, 0.5)
    simulation.fail_links([("home", "away")])
    result = simulation.run(1.9)
    assert counted(result)[("profile", "unreachable")] == 1


def test_a_request_cannot_cross_back(engine):
    """The profile was on its way when the cut came; what it asks for is not."""
    simulation = started(engine, rating_exchange="request")
    simulation.run(0.25)
    simulation.partition(["home"])
    assert counted(simulation.run(0.9)) == {
        ("profile", "sent"): 1,
        ("profile", "unknown"): 1,
        ("request", "sent"): 1,
        ("request", "unreachable"): 1,
    }


def test_partitions_overlap_and_each_is_healed_by_name(engine):
    simulation = started(engine)
    simulation.partition(["away"])
    simulation.partition(["home"])
    simulation.partition(["home"])
    for healed in (["home"], ["away"]):
        simulation.heal(healed)
        assert counted(simulation.run(simulation.env.now + 1.0)).get(("profile", "updated"), 0) == 0
    simulation.heal(["home"])
    assert counted(simulation.run(simulation.env.now + 1.0))[("profile", "updated")] == 1


def test_heal_undoes_all(engine):
    simulation = started(engine)
    simulation.partition(["away"])
    simulation.partition(["home", "between"])
    simulation.heal()
    assert arrives(simulation, 0.5)
    with pytest.raises(ValueError, match=r"places names \['away'\], which no partition holds now"):
        simulation.heal(["away"])


# -- what overlaps -----------------------------------------------------------------------------------------------------


def test_a_link_that_failed_twice_works_after_two_repairs(engine):
    simulation = started(engine)
    simulation.fail_links([("home", "away")])
    simulation.fail_links([("away", "home")])
    simulation.repair_links([("home", "away")])
    assert arrives(simulation, 0.75)
    simulation.repair_links([("home", "away")])
    assert arrives(simulation, 1.5)


def test_faults_of_different_kinds_overlap(engine):
    simulation = started(engine)
    simulation.fail_links([("home", "away")])
    simulation.fail_places(["away"])
    simulation.partition(["home"])
    simulation.repair_places(["away"])
    simulation.heal()
    assert arrives(simulation, 0.75)
    simulation.repair_links([("home", "away")])
    assert arrives(simulation, 1.5)


def test_what_is_left_is_the_whole_again_after_all_repairs():
    whole = Underlay.from_graph(triangle())
    faults = Faults(whole)
    faults.fail_links([("home", "away"), ("home", "between")])
    faults.fail_places(["between"])
    faults.partition(["between", "home"])
    faults.add_shift(1.0, 2.0)
    assert faults.underlay.n_links == 0
    assert faults.underlay.places == whole.places
    faults.repair_places(["between"])
    faults.heal(["home", "between"])
    assert faults.underlay.n_links == 1
    faults.repair_links([("away", "home"), ("between", "home")])
    assert faults.underlay == whole
    assert faults.shift == (1.0, 2.0)
    faults.remove_shift(1.0, 2.0)
    assert faults.shift == (0.0, 1.0)


def test_the_world_stays_as_it_was(engine):
    simulation = started(engine)
    before = simulation.world.topology.digest
    simulation.fail_links([("home", "away")])
    simulation.run(1.0)
    assert simulation.world.topology.digest == before
    assert simulation.world.topology.n_links == 3


# -- latency -----------------------------------------------------------------------------------------------------------


def test_latency_is_stretched_and_shifted_and_back(engine):
    simulation = started(engine, delay=0.125)
    simulation.shift_latency(factor=1.5, seconds=0.0625)
    assert arrives(simulation, 0.75 + 0.0625 + 0.125)
    simulation.unshift_latency(factor=1.5, seconds=0.0625)
    assert arrives(simulation, 1.625)


def test_shifts_add_up_and_factors_multiply(engine):
    simulation = started(engine)
    simulation.shift_latency(seconds=0.125)
    simulation.shift_latency(seconds=0.0625, factor=0.5)
    simulation.shift_latency(factor=3.0)
    assert arrives(simulation, 0.5 * 1.5 + 0.1875)
    simulation.unshift_latency(factor=3.0)
    simulation.unshift_latency(seconds=0.125)
    assert arrives(simulation, 1.0 + 0.25 + 0.0625)


def test_a_shift_leaves_what_is_in_flight(engine):
    simulation = started(engine)
    simulation.run(0.25)
    simulation.shift_latency(seconds=10.0)
    assert arrives(simulation, 0.5)
    simulation.run(1.5)
    simulation.unshift_latency(seconds=10.0)
    assert arrives(simulation, 2.5)
    assert ("profile", "stale") not in counted(simulation.run(11.5))
    assert counted(simulation.run(11.6))[("profile", "stale")] == 1  # what was sent at 1


def test_a_shift_reaches_requests_and_replies():
    trace = MessageTrace()
    simulation = Simulation(one_pair(rating_exchange="request"), seed=SEED, trace=trace)
    simulation.shift_latency(seconds=0.125)
    simulation.run(3.0)
    frame = trace.frame()
    assert {(kind, took) for kind, took in zip(frame["kind"], frame["arrives"] - frame["sent"], strict=True)} == {
        (kind, 0.625) for kind in ("profile", "request", "reply")
    }


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda s: s.fail_links([("home", "moon")]), "links names 'moon', which is not a place of"),
        (lambda s: s.fail_links(["home"]), "links must hold pairs of places, got 'home'"),
        (
            lambda s: s.repair_links([("home", "away")]),
            r"links names \('home', 'away'\), which no fail_links holds now",
        ),
        (lambda s: s.repair_links([("moon", "away")]), "links names 'moon', which is not a place of"),
        (lambda s: s.fail_places(["moon"]), "places must name places of the underlay, got 'moon'"),
        (lambda s: s.repair_places(["home"]), "places names 'home', which no fail_places holds now"),
        (lambda s: s.partition(["moon"]), "places must name places of the underlay, got 'moon'"),
        (lambda s: s.partition([]), "places must leave places on both sides of the partition, got 0 of 3"),
        (lambda s: s.partition(["home", "away", "between"]), "places must leave places on both sides .*3 of 3"),
        (lambda s: s.heal(["home"]), r"places names \['home'\], which no partition holds now"),
        (lambda s: s.shift_latency(seconds=-1.0), "seconds must be a finite number >= 0, got -1"),
        (lambda s: s.shift_latency(factor=0), "factor must be a finite number > 0, got 0"),
        (lambda s: s.unshift_latency(seconds=1.0), r"\(seconds, factor\) names \(1.0, 1.0\), which no shift_latency"),
        (lambda s: s.nodes_at(["moon"]), "places names 'moon', which is not a place of"),
    ],
)
def test_errors_name_the_argument_and_change_nothing(act, message):
    simulation = started("events")
    before = simulation._tables.edges.copy()
    with pytest.raises(ValueError, match=message):
        act(simulation)
    simulation.run(0.1)
    np.testing.assert_array_equal(simulation._tables.edges["base"], before["base"])
    assert simulation._faults.underlay == simulation.world.topology
    assert simulation._faults.shift == (0.0, 1.0)


def test_links_that_do_not_exist_are_named():
    graph = triangle()
    graph.remove_edge("home", "away")
    simulation = started("events", topology=graph)
    with pytest.raises(ValueError, match=r"links must be links of the underlay, got \('home', 'away'\)"):
        simulation.fail_links([("home", "away")])
    assert simulation._faults.underlay == simulation.world.topology


def test_where_everyone_is_at_one_place_nothing_can_be_cut_apart():
    ratings = Ratings.from_arrays(["a"], ["p"], [3.0], scale=(1, 5))
    simulation = Simulation(World(ratings), seed=SEED)
    with pytest.raises(ValueError, match="places cannot be cut apart: the topology of this world has one place"):
        simulation.partition([0])


def test_who_sits_at_a_place():
    simulation = started("events")
    assert simulation.nodes_at(["home", "between"]) == (["a"], [])
    assert simulation.nodes_at(["away"]) == ([], ["x"])
