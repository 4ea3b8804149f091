"""The network's limit: minimal constant delay, no loss, one update at a time.

Then its profiles are those of the sequential form on the same order, bit for bit.
"""

import numpy as np
import pytest

from algorithms.distributions import LogNormal, Uniform
from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential
from netsim.simulation import Simulation
from netsim.timers import Poisson
from netsim.trace import MessageTrace
from netsim.world import World

N_USERS, N_ITEMS = 10, 7
MINIMAL = 1e-7  # seconds; ticks of 17 nodes with a period of 10 s are some 0.6 s apart


def ratings():
    rng = np.random.default_rng(4)
    user, item = np.nonzero(rng.uniform(size=(N_USERS, N_ITEMS)) < 0.6)
    X = rng.integers(1, 6, len(user)).astype(float)
    return Ratings.from_arrays(user, item, X, scale=(1, 5), user_ids=range(N_USERS), item_ids=range(N_ITEMS))


def applied(rows, known):
    """Ratings and sides of the updates that trace rows made, in their order."""
    rows = rows[rows["fate"] == "updated"].sort_values("order")
    user_side = (rows["receiver"] < N_USERS).to_numpy()
    user = np.where(user_side, rows["receiver"], rows["profile"])
    item = np.where(user_side, rows["profile"], rows["receiver"]) - N_USERS
    position = {pair: n for n, pair in enumerate(zip(known.user.tolist(), known.item.tolist(), strict=True))}
    rating = [position[pair] for pair in zip(user.tolist(), item.tolist(), strict=True)]
    return np.array(rating, dtype=np.int64), user_side


def one_at_a_time(rows):
    """Whether nothing was emitted while a message was on its way; a request or reply leaves as one arrives."""
    rows = rows[np.isfinite(rows["arrives"])]
    gaps = np.diff(np.unique(rows["sent"]))
    return rows["arrives"].sub(rows["sent"]).max() < 1.001 * MINIMAL and not ((gaps > 0) & (gaps < 0.9 * MINIMAL)).any()


def compare(world, seed, *, until, start=0.0):
    """Run a world; profiles of the network and of the sequential form after the same updates since `start`."""
    trace = MessageTrace()
    simulation = Simulation(world, seed=seed, trace=trace)
    sequential = Sequential(world.ratings, world.learning, seed)
    landed = 0
    if start:
        begun = simulation.run(start)
        before = trace.frame()
        landed = before["order"].max() + 1
        rows = before[(before["fate"] == "updated") & (before["receiver"] >= N_USERS)]
        pairs = rows[["profile", "receiver"]].drop_duplicates()
        assert len(pairs) == len(world.ratings), "not all ratings were known at `start`"
        for name in ("user_profiles", "item_profiles", "user_updates", "item_updates"):
            setattr(sequential, name, getattr(begun, name).copy())
    result = simulation.run(until)
    rows = trace.frame()
    rating, user_side = applied(rows[rows["order"] >= landed], world.ratings)
    assert len(rating) > 300
    assert 0.2 < user_side.mean() < 0.8
    sequential.replay(rating, user_side)
    return result, sequential, rows


def assert_same_bits(result, sequential):
    assert result.user_profiles.tobytes() == sequential.user_profiles.tobytes()
    assert result.item_profiles.tobytes() == sequential.item_profiles.tobytes()
    assert np.array_equal(result.user_updates, sequential.user_updates)
    assert np.array_equal(result.item_updates, sequential.item_updates)


def limit_world(learning, **changes):
    return World(ratings(), minimum_delay=MINIMAL, loss=0.0, learning=learning, **changes)


LOCAL = {
    "constant": Learning(rank=4),
    "inverse": Learning(rank=4, rate=0.05, schedule=Schedule("inverse", 30, "updates")),
    "exponential": Learning(rank=4, rate=0.05, schedule=Schedule("exponential", 30, "updates")),
    "drawn rates": Learning(rank=4, rate=LogNormal(0.02, 0.5)),
}
COUNTED = {
    "uniform": Learning(rank=4, lam=0.5, regularization="uniform"),
    "inverse": Learning(rank=4, rate=0.05, schedule=Schedule("inverse", 10)),
    "exponential": Learning(rank=4, rate=0.05, schedule=Schedule("exponential", 10)),
    "uniform, inverse, drawn rates": Learning(
        rank=4, lam=0.5, regularization="uniform", rate=Uniform(0.01, 0.05), schedule=Schedule("inverse", 10)
    ),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("fan_out", [None, 1])
@pytest.mark.parametrize("exchange", ["request", "attach"])
@pytest.mark.parametrize("name", LOCAL)
def test_the_network_equals_the_sequential_form(name, exchange, fan_out, seed):
    """Nothing here depends on how many ratings a router knows, so the whole run is compared, from its start."""
    world = limit_world(LOCAL[name], rating_exchange=exchange, user_fan_out=fan_out, router_fan_out=fan_out)
    result, sequential, rows = compare(world, seed, until=500.0)
    assert one_at_a_time(rows)
    assert_same_bits(result, sequential)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("fan_out", [None, 1])
@pytest.mark.parametrize("exchange", ["request", "attach"])
@pytest.mark.parametrize("name", COUNTED)
def test_the_network_equals_the_sequential_form_once_all_ratings_are_known(name, exchange, fan_out, seed):
    """Uniform regularization and ages in passes count the ratings known to a router.

    A router learns them as messages come, with `attach` as with `request`, while the sequential form knows all from
    the start. So only the part of the run after every router knows all its ratings is compared: the sequential form
    starts there from the network's profiles and update counts.
    """
    world = limit_world(COUNTED[name], rating_exchange=exchange, user_fan_out=fan_out, router_fan_out=fan_out)
    result, sequential, rows = compare(world, seed, start=600.0, until=1100.0)
    assert one_at_a_time(rows)
    assert_same_bits(result, sequential)


def test_the_network_equals_the_sequential_form_with_poisson_timers():
    world = limit_world(LOCAL["constant"], user_broadcast=Poisson(10.0), router_broadcast=Poisson(10.0))
    result, sequential, rows = compare(world, 3, until=500.0)
    assert one_at_a_time(rows)
    assert_same_bits(result, sequential)


@pytest.mark.parametrize("learning", [LOCAL["constant"], COUNTED["uniform"]])
def test_with_a_delay_longer_than_the_gap_between_ticks_they_differ(learning):
    world = limit_world(learning, delay=3.0)
    result, sequential, rows = compare(world, 1, start=600.0, until=1100.0)
    assert not one_at_a_time(rows)
    assert np.array_equal(result.user_updates, sequential.user_updates)
    assert np.abs(result.user_profiles - sequential.user_profiles).max() > 1e-4
    assert np.abs(result.item_profiles - sequential.item_profiles).max() > 1e-4


def test_in_another_order_they_differ():
    world = limit_world(LOCAL["constant"])
    result, _, rows = compare(world, 1, until=500.0)
    rating, user_side = applied(rows, world.ratings)
    backwards = Sequential(world.ratings, world.learning, 1).replay(rating[::-1].copy(), user_side[::-1].copy())
    assert np.abs(result.user_profiles - backwards.user_profiles).max() > 1e-4


def test_before_all_ratings_are_known_a_router_divides_lambda_by_those_it_knows():
    """Why `start` is needed: from time 0 the two forms differ under uniform regularization."""
    result, sequential, _ = compare(limit_world(COUNTED["uniform"]), 1, until=500.0)
    assert np.abs(result.item_profiles - sequential.item_profiles).max() > 1e-6
