"""Memory of the compiled engine: it grows with what is in flight, never with what was ever sent, and drops nothing."""

import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import Empirical, Learning, Periodic, Simulation, World


def world(n_users, n_items, **changes):
    user, item = np.nonzero(np.ones((n_users, n_items)))
    values = 1.0 + (user * 7 + item) % 5
    known = Ratings.from_arrays(user, item, values, scale=(1, 5), user_ids=range(n_users), item_ids=range(n_items))
    tick = Periodic(1.0, phase=0.0)
    options = {"user_broadcast": tick, "router_broadcast": tick, "delay": 0.5, "learning": Learning(rank=2)}
    return World(known, **(options | changes))


POOLS = ("chunks", "stored", "current", "order", "spare", "batches", "payloads", "answers")


def pools(simulation):
    return [{name: len(getattr(lane, name)) for name in POOLS} for lane in simulation._engine.lanes]


def boxes(simulation):
    return [box.shape for box in simulation._engine._boxes]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_steady_world_needs_no_more_memory(threads):
    """Each round sends as much as before, so the pools stay as they are; loss keeps requests and replies coming."""
    steady = world(40, 40, loss=0.8, request_timeout=0.1)
    simulation = Simulation(steady, seed=1, engine="compiled", threads=threads)
    simulation.run(5.25)
    early, early_boxes = pools(simulation), boxes(simulation)
    result = simulation.run(50.25)
    assert pools(simulation) == early
    assert boxes(simulation) == early_boxes
    last = result.probes.iloc[-1]
    assert last["sent"] > 20 * sum(lane["current"] for lane in early)
    asked = simulation._tables.accounts[:2, 0, 0].sum()
    assert asked > 4 * max(lane["answers"] for lane in early)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_burst_makes_the_pools_grow_and_nothing_is_dropped(threads):
    """All messages of six rounds are in flight at once."""
    crowded = world(60, 200, delay=Empirical([6.2, 6.3]), routers=5)
    simulation = Simulation(crowded, seed=1, engine="compiled", threads=threads)
    before = pools(simulation)
    assert simulation._engine.in_flight.sum() == 0
    simulation.run(5.5)
    after = pools(simulation)
    assert sum(lane["stored"] for lane in after) > 2 * sum(lane["stored"] for lane in before)
    assert sum(lane["batches"] for lane in after) > sum(lane["batches"] for lane in before)
    in_flight = simulation._engine.in_flight
    accounts = simulation._tables.accounts
    np.testing.assert_array_equal(accounts[:, 0], accounts[:, 1:].sum(axis=1) + in_flight)
    assert in_flight[:, 0].sum() == accounts[:, 0, 0].sum() == 6 * (60 * 5 + 60 * 200)

    result = simulation.run(8.0)
    readable = Simulation(crowded, seed=1, engine="events")
    readable.run(5.5)
    expected = readable.run(8.0)
    assert result.user_profiles.tobytes() == expected.user_profiles.tobytes()
    assert result.item_profiles.tobytes() == expected.item_profiles.tobytes()
    assert result.probes.equals(expected.probes)


def test_after_a_burst_the_room_is_used_again():
    """A second burst of the same size finds the room of the first."""
    crowded = world(60, 50, delay=0.7, routers=5)
    simulation = Simulation(crowded, seed=1, engine="compiled", threads=1)
    simulation.run(2.9)
    grown = pools(simulation)
    simulation.run(20.0)
    assert pools(simulation) == grown
