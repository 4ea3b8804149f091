"""Mean waits and drops of queues against queueing theory: M/M/1, M/D/1, M/M/1/K, M/D/1 at an uplink."""

import math

import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import Exponential, Learning, Periodic, Poisson, Recommendations, Simulation, World

pytestmark = pytest.mark.statistical

NEVER = Periodic(1e9, phase=1e9)
N_USERS, SERVICE, SEEDS, N_MESSAGES = 50, 0.5, range(16), 40_000


def senders(load, **changes):
    """Users who send to one router by Poisson timers, `load` times as much as it can process in its mean 0.5 s."""
    ratings = Ratings.from_arrays(range(N_USERS), ["p"] * N_USERS, [3.0] * N_USERS, scale=(1, 5))
    plain = World(
        ratings,
        routers=("x",),
        user_broadcast=Poisson(N_USERS * SERVICE / load),
        router_broadcast=NEVER,
        rating_exchange="attach",
        learning=Learning(rank=2),
    )
    return plain.replace(**changes)


def measured(world, load, measure):
    """A mean over runs of about 40,000 messages each, and its standard error."""
    until = N_MESSAGES * SERVICE / load
    found = []
    for seed in SEEDS:
        simulation = Simulation(world, seed=seed)
        result = simulation.run(until, every=until)
        found.append(measure(simulation._tables.queues[N_USERS], result))
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(len(found))


def assert_close(found, expected):
    mean, error = found
    assert error < 0.02 * expected  # else the check could not fail
    assert abs(mean - expected) < 4.5 * error  # Student's t with 15 degrees of freedom: 4e-4


def mean_wait(queue, result):
    return queue["waited"] / queue["taken"]


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_exponential_service(load):
    """M/M/1: W = rho s / (1 - rho)."""
    found = measured(senders(load, router_processing=Exponential(SERVICE)), load, mean_wait)
    assert_close(found, load * SERVICE / (1 - load))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_constant_service(load):
    """M/D/1: W = rho s / (2 (1 - rho))."""
    found = measured(senders(load, router_processing=SERVICE), load, mean_wait)
    assert_close(found, load * SERVICE / (2 * (1 - load)))


@pytest.mark.parametrize(("load", "limit"), [(0.5, 1), (0.8, 4), (1.0, 3), (1.5, 2)])
def test_a_full_queue_drops(load, limit):
    """M/M/1/K: P = (1 - rho) rho^K / (1 - rho^(K + 1)); 1 / (K + 1) where rho is 1."""
    world = senders(load, router_processing=Exponential(SERVICE), queue_limit=limit)

    def share_dropped(queue, result):
        dropped = result.final["lost_queue"]
        return dropped / (dropped + queue["taken"])

    expected = 1 / (limit + 1) if load == 1 else (1 - load) * load**limit / (1 - load ** (limit + 1))
    assert_close(measured(world, load, share_dropped), expected)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_an_uplink(load):
    """Answers to requests that come as a Poisson process leave over one uplink, each in 0.5 s: M/D/1."""
    answer = 48 + 8 * 2 + 8
    world = senders(load, user_broadcast=NEVER, router_uplink=answer / SERVICE)
    asked = Recommendations(world.ratings, mean_gap=N_USERS * SERVICE / load, timeout=60.0, retries=0)
    found = measured(
        world.replace(recommendations=asked), load, lambda queue, result: queue["uplink_waited"] / queue["left"]
    )
    assert_close(found, load * SERVICE / (2 * (1 - load)))
