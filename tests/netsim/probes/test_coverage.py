"""The share of ratings whose router the user lists, and whose user the router lists; counted by hand."""

import math

import numpy as np
import pytest

from netsim import Arrivals, GivenContacts, HeardUsers, LearnedRouters, RandomRouters, RandomUsers, coverage, simulate
from tests.netsim.test_contact_lists import SEED, call, network

# Of seven ratings: a of p and q at w; b of q at w and s at x; c of s at x and p at w; d of t at y.
COLUMNS = ["users_coverage", "routers_coverage"]


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def measured(world, engine, *scripts, times=(), until=4.0):
    result = simulate(
        world, until=until, at=times, seed=SEED, engine=engine, scripts=scripts, probes=[coverage()], every=until
    )
    return [tuple(row) for row in result.probes[COLUMNS].to_numpy().tolist()]


def test_lists_made_from_the_ratings_cover_all(engine):
    assert measured(network(), engine) == [(1.0, 1.0)] * 2


def test_given_lists(engine):
    world = network(
        user_contacts=GivenContacts({"a": "w", "b": "xz", "d": "wx"}),  # both of a, s of b, nothing of d
        router_contacts=GivenContacts({"w": "acd", "y": "d", "z": "abcd"}),  # both of a, p of c, t of d
    )
    assert measured(world, engine) == [(3 / 7, 4 / 7)] * 2


def test_lists_of_all_and_of_none(engine):
    everyone = network(user_contacts=RandomRouters(4), router_contacts=RandomUsers(4))
    assert measured(everyone, engine) == [(1.0, 1.0)] * 2
    nobody = network(user_contacts=GivenContacts({}), router_contacts=GivenContacts({}))
    assert measured(nobody, engine) == [(0.0, 0.0)] * 2


def test_a_script_changes_it(engine):
    shorter = call(1.0, "set_contacts", "x", user="a")
    fewer = call(2.0, "set_contacts", "b", router="x")
    found = measured(network(), engine, shorter, fewer, times=[0.5, 1.5, 2.5])
    assert found == [(1.0, 1.0), (1.0, 1.0), (5 / 7, 1.0), (5 / 7, 6 / 7), (5 / 7, 6 / 7)]


def test_learned_lists_grow_to_all(engine):
    world = network(user_contacts=LearnedRouters(), router_contacts=HeardUsers())
    # Answers arrive at 0.5; at 1 users send to those whom they have found, which arrives at 1.25. A probe comes first.
    found = measured(world, engine, times=[0.5, 0.625, 1.25, 1.375])
    assert found == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 1.0), (1.0, 1.0)]


def test_only_ratings_given_so_far_count(engine):
    times = np.zeros(7)
    times[[2, 3]] = 1.5, math.inf  # b of q comes later, of s never
    world = network(arrivals=Arrivals(times, join="start"), user_contacts=GivenContacts({"a": "w", "d": "y", "b": "w"}))
    found = [users for users, _ in measured(world, engine, times=[1.25, 1.75])]
    assert found == [3 / 5, 3 / 5, 4 / 6, 4 / 6]


def test_it_is_not_a_number_while_there_is_no_rating(engine):
    times = np.full(7, 2.0)
    world = network(arrivals=Arrivals(times, join="start"))
    (before, late, after) = measured(world, engine, times=[1.0])
    assert all(math.isnan(value) for value in (*before, *late))
    assert after == (1.0, 1.0)


def test_a_rating_that_a_script_adds_counts(engine):
    world = network(user_contacts=GivenContacts({"d": "y"}), router_contacts=GivenContacts({"w": "d"}))
    rating = call(1.0, "add_rating", "d", "p", 3.0)
    found = measured(world, engine, rating, times=[0.5])
    assert found == [(1 / 7, 0.0), (1 / 7, 0.0), (1 / 8, 1 / 8)]


def test_items_that_move_are_not_covered_until_their_new_router_is_listed(engine):
    learned = network(user_contacts=LearnedRouters(), rehosting="handover")
    gone = call(2.25, "depart", router="y")
    found = [users for users, _ in measured(learned, engine, gone, times=[2.0, 2.5], until=9.0)]
    assert found == [0.0, 1.0, 6 / 7, 6 / 7]
    given = network(rehosting="handover")
    assert measured(given, engine, gone, times=[2.0, 2.5]) == [(1.0, 1.0)] * 4


def test_users_and_routers_that_are_away_count(engine):
    scripts = [call(1.0, "hold_offline", user="a"), call(1.0, "depart", router="x")]
    assert measured(network(), engine, *scripts) == [(1.0, 1.0)] * 2


def test_columns_are_named():
    assert coverage().columns == tuple(COLUMNS)
    assert simulate(network(), until=1.0, seed=1, probes=[coverage()]).final["users_coverage"] == 1.0
