"""Requests for recommendations that a script makes."""

import math

import pytest

from algorithms.ratings import Ratings
from netsim import Periodic, Recommendations, World, simulate

KNOWN = Ratings.from_arrays(["a", "b"], ["p", "q"], [2.0, 4.0], scale=(1, 5), user_ids=["a", "b"], item_ids=["p", "q"])
NEVER = Periodic(1.0, phase=1e6)


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def world(**changes):
    """Nobody broadcasts; a message takes 0.25 s."""
    asks = Recommendations(KNOWN, mean_gap=math.inf, timeout=1.0, retries=1)
    return World(KNOWN, user_broadcast=NEVER, router_broadcast=NEVER, delay=0.25, recommendations=asks, **changes)


def script(*steps):
    def run(simulation):
        for time, act in steps:
            yield simulation.env.timeout(time - simulation.env.now)
            act(simulation)

    return run


def test_a_request_is_served_after_the_way_there_and_back(engine):
    asks = script((1.0, lambda s: s.request("a", "q", rating=5.0)))
    result = simulate(world(), until=3.0, seed=1, engine=engine, scripts=[asks])
    (row,) = result.recommendations.to_dict("records")
    assert (row["user"], row["item"], row["asked"], row["finished"]) == ("a", "q", 1.0, 1.5)
    assert (row["attempts"], row["outcome"], row["rating"]) == (1, "served", 5.0)
    expected = float(result.user_profiles[0] @ result.item_profiles[1])
    assert row["predicted"] == pytest.approx(min(max(expected, 1.0), 5.0))


def test_one_that_is_not_answered_is_made_again_and_then_given_up(engine):
    asks = script((0.5, lambda s: s.set_online(False, router="q")), (1.0, lambda s: s.request("a", "q")))
    result = simulate(world(), until=5.0, seed=1, engine=engine, scripts=[asks])
    (row,) = result.recommendations.to_dict("records")
    assert (row["outcome"], row["attempts"], row["finished"]) == ("timed_out", 2, 3.0)
    assert math.isnan(row["rating"])


def test_a_fifth_that_is_open_is_an_error(engine):
    def run(simulation):
        for _ in range(4):
            simulation.request("a", "q")
        with pytest.raises(ValueError, match="user='a' has 4 requests open"):
            simulation.request("a", "q")
        yield simulation.env.timeout(0)

    assert len(simulate(world(), until=2.0, seed=1, engine=engine, scripts=[run]).recommendations) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [({"recommendations": None}, "request needs World\\(recommendations="), ({}, "user='a' is offline")],
)
def test_what_cannot_be_asked_is_an_error(change, message):
    def run(simulation):
        simulation.set_online(False, user="a")
        with pytest.raises(ValueError, match=message):
            simulation.request("a", "q")
        yield simulation.env.timeout(0)

    simulate(world().replace(**change), until=1.0, seed=1, scripts=[run])
