"""When ratings come: how the times of arrivals and changes are made, and what is refused."""

import json
import math

import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import Arrivals, Simulation, World, simulate

RATINGS = Ratings.from_arrays(
    ["a", "a", "b", "b", "c"],
    ["p", "q", "p", "q", "p"],
    [1.0, 2.0, 3.0, 4.0, 5.0],
    timestamps=[40.0, 10.0, 20.0, 20.0, 30.0],
    scale=(1, 5),
)
SOON = 30.0 * 1e-9
ONE = Ratings.from_arrays(["a"], ["p"], [3.0], timestamps=[7.0], scale=(1, 5))


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_replay_keeps_the_proportions_of_the_timestamps():
    found = Arrivals.replay(RATINGS, span=30.0)
    assert found.times.tolist() == [30.0, SOON, 10.0, 10.0, 20.0]
    assert (found.changes, found.join) == ((), "first_rating")


def test_the_earliest_share_of_a_replay_is_there_from_the_start():
    found = Arrivals.replay(RATINGS, span=30.0, known=0.2)
    assert found.times.tolist() == [30.0, 0.0, SOON, SOON, 15.0]
    # Of equal timestamps the first in the order of the ratings counts as earlier.
    assert Arrivals.replay(RATINGS, span=30.0, known=0.4).times.tolist() == [30.0, 0.0, 0.0, SOON, 15.0]


def test_a_replay_of_equal_timestamps_comes_at_once():
    same = Ratings.from_arrays(["a", "b"], ["p", "p"], [1.0, 2.0], timestamps=[5.0, 5.0])
    assert Arrivals.replay(same, span=4.0).times.tolist() == [4.0, 4.0]


def test_a_replay_happens_in_the_order_of_the_timestamps():
    world = World(RATINGS, arrivals=Arrivals.replay(RATINGS, span=3.0))
    table = simulate(world, until=4.0, seed=1, engine="events").prequential
    pairs = list(table[["user", "item"]].itertuples(index=False, name=None))
    assert pairs == [("a", "q"), ("b", "p"), ("b", "q"), ("c", "p"), ("a", "p")]


def test_a_replay_whose_share_rounds_to_all_says_so_or_brings_none():
    assert Arrivals.replay(ONE, span=1.0, known=0.9).times.tolist() == [0.0]


# -- drawn, of users ---------------------------------------------------------------------------------------------------


def test_drawn_times_lie_in_the_span_and_a_share_is_known():
    many = Ratings.from_arrays(range(200), ["p"] * 200, [3.0] * 200)
    found = Arrivals.drawn(many, span=5.0, seed=1, known=0.25)
    late = found.times[found.times > 0]
    assert len(late) == 150
    assert late.max() <= 5.0
    assert found == Arrivals.drawn(many, span=5.0, seed=1, known=0.25)
    assert found != Arrivals.drawn(many, span=5.0, seed=2, known=0.25)
    other = Arrivals.drawn(many, span=5.0, seed=2, known=0.25)
    assert (found.times == 0.0).tolist() != (other.times == 0.0).tolist()
    assert (Arrivals.drawn(many, span=5.0, seed=1).times > 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Arrivals.drawn(RATINGS, span=1.0, seed=None),
        lambda: Arrivals(np.zeros(5)).with_changes(RATINGS, share=0.5, span=1.0, seed=None),
    ],
)
def test_a_seed_must_be_given(make):
    with pytest.raises(ValueError, match="seed must be given"):
        make()


def test_some_users_come_with_all_their_ratings():
    found = Arrivals.of_users(RATINGS, ["b"], at=2.5)
    assert found.times.tolist() == [0.0, 0.0, 2.5, 2.5, 0.0]
    assert Arrivals.of_users(RATINGS, [], at=2.5).times.tolist() == [0.0] * 5


# -- changes -----------------------------------------------------------------------------------------------------------


def test_changes_come_after_their_rating_and_to_another_value():
    begun = Arrivals([0.0, 4.0, 1.0, 9.0, np.inf])
    found = begun.with_changes(RATINGS, share=1.0, span=5.0, seed=1)
    assert found.times.tolist() == begun.times.tolist()
    assert sorted(which for _, which, _ in found.changes) == [0, 1, 2]  # the others have not come by then
    for time, which, value in found.changes:
        assert begun.times[which] < time <= 5.0
        assert value != RATINGS.value[which]
        assert value in RATINGS.value
    assert [change[0] for change in found.changes] == sorted(change[0] for change in found.changes)


def test_a_share_of_the_ratings_is_changed_once_each():
    many = Ratings.from_arrays(range(200), ["p"] * 200, [1.0 + n % 5 for n in range(200)])
    found = Arrivals(np.zeros(200)).with_changes(many, share=0.3, span=5.0, seed=1)
    assert len({which for _, which, _ in found.changes}) == len(found.changes) == 60
    assert Arrivals(np.zeros(200)).with_changes(many, share=0.0, span=5.0, seed=1).changes == ()
    alike = Ratings.from_arrays(range(9), ["p"] * 9, [3.0] * 9, scale=(1, 5))
    assert Arrivals(np.zeros(9)).with_changes(alike, share=1.0, span=5.0, seed=1).changes == ()


def test_changes_keep_how_users_join():
    begun = Arrivals(np.zeros(5), join="start")
    assert begun.with_changes(RATINGS, share=0.5, span=5.0, seed=1).join == "start"


def test_changes_that_are_there_stay():
    begun = Arrivals(np.zeros(5), ((1.0, 0, 5.0),))
    assert (1.0, 0, 5.0) in begun.with_changes(RATINGS, share=0.2, span=5.0, seed=1).changes


# -- what it is as data ------------------------------------------------------------------------------------------------


def test_it_is_data():
    times = np.array([0.0, 1.0, 2.0, np.inf, 0.0])
    found = Arrivals(times, ((3.0, 1, 2), (2.5, 0, 4.0)))
    assert found.changes == ((2.5, 0, 4.0), (3.0, 1, 2.0))
    same = Arrivals(list(times), ((2.5, 0, 4.0), (3.0, 1, 2.0)))
    assert (found == same, hash(found) == hash(same)) == (True, True)
    for other in (Arrivals(times), Arrivals(times, found.changes, "start"), Arrivals(times + 1, found.changes)):
        assert found != other
    times[0] = 9.0
    assert found.times[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        found.times[0] = 1.0
    assert repr(found) == "Arrivals(2 of 5 ratings from 1 s to 2 s, 2 changes)"
    assert repr(Arrivals(np.zeros(5))) == "Arrivals(0 of 5 ratings, 0 changes)"


def test_a_world_tells_of_it():
    late = World(RATINGS, arrivals=Arrivals([0.0, 1.0, 2.0, np.inf, 0.0], ((3.0, 1, 5.0),)))
    told = late.describe()["arrivals"]
    assert (told["type"], told["late"], told["changes"]) == ("Arrivals", 2, 1)
    json.dumps(late.describe(), allow_nan=False)
    assert late == late.replace(arrivals=Arrivals([0.0, 1.0, 2.0, np.inf, 0.0], ((3.0, 1, 5.0),)))
    assert late.describe() != late.replace(arrivals=None).describe()


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": [[0.0]]}, "times must be a 1-d array"),
        ({"times": []}, "times must be a 1-d array"),
        ({"times": [0.0, math.nan]}, "NaN"),
        ({"times": [0.0], "join": "later"}, "join must be 'first_rating' or 'start'"),
        ({"times": [0.0], "changes": ((0.0, 0, 1.0),)}, "changes must hold"),
        ({"times": [0.0], "changes": ((math.inf, 0, 1.0),)}, "changes must hold"),
        ({"times": [0.0], "changes": ((1.0, 1, 1.0),)}, "below 1"),
        ({"times": [0.0], "changes": ((1.0, -1, 1.0),)}, "changes must hold"),
        ({"times": [0.0], "changes": ((1.0, 0, math.nan),)}, "changes must hold"),
    ],
)
def test_arrivals_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Arrivals(**arguments)


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, True, "1"])
def test_spans_are_seconds(bad):
    begun = Arrivals(np.zeros(5))
    for name, call in (
        ("replay: span", lambda: Arrivals.replay(RATINGS, span=bad)),
        ("drawn: span", lambda: Arrivals.drawn(RATINGS, span=bad, seed=1)),
        ("of_users: at", lambda: Arrivals.of_users(RATINGS, ["a"], at=bad)),
        ("with_changes: span", lambda: begun.with_changes(RATINGS, share=0.5, span=bad, seed=1)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a finite number of seconds"):
            call()


@pytest.mark.parametrize("bad", [-0.1, 1.0, 30, True, None])
def test_known_is_a_share(bad):
    for call in (Arrivals.replay, lambda *given, **named: Arrivals.drawn(*given, seed=1, **named)):
        with pytest.raises(ValueError, match=r"known must be in \[0, 1\)"):
            call(RATINGS, span=1.0, known=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_the_share_that_is_changed_is_a_share(bad):
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\]"):
        Arrivals(np.zeros(5)).with_changes(RATINGS, share=bad, span=1.0, seed=1)


def test_changes_of_other_ratings_are_refused():
    with pytest.raises(ValueError, match="ratings"):
        Arrivals(np.zeros(50)).with_changes(RATINGS, share=1.0, span=1.0, seed=1)


def test_a_replay_needs_timestamps_and_users_must_be_there():
    plain = Ratings.from_arrays(["a"], ["p"], [1.0])
    with pytest.raises(ValueError, match="replay needs ratings with timestamps"):
        Arrivals.replay(plain, span=1.0)
    with pytest.raises(ValueError, match="users names 'z', which is not a user"):
        Arrivals.of_users(plain, ["z"], at=1.0)


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ("soon", "arrivals must be Arrivals or None"),
        (Arrivals([0.0]), "a time for each of the 5 ratings, got 1"),
        (Arrivals(np.zeros(5), ((1.0, 2, 6.0),)), "change of rating 2 at 1 s is to 6.0, outside the scale 1 to 5"),
        (Arrivals([0.0, 2.0, 0, 0, 0], ((2.0, 1, 3.0),)), "rating 1 is changed at 2 s, before it comes at 2 s"),
        (Arrivals([0.0, math.inf, 0, 0, 0], ((2.0, 1, 3.0),)), "rating 1 is changed at 2 s, before it comes at inf s"),
    ],
)
def test_a_world_refuses(arrivals, message):
    with pytest.raises(ValueError, match=message):
        World(RATINGS, arrivals=arrivals)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.add_rating("z", "p", 3.0), "user='z' is not a user"),
        (lambda run: run.add_rating("a", "z", 3.0), "item='z' is not an item of this world"),
        (lambda run: run.add_rating("a", "p", 5.5), "value must be within the scale 1 to 5, got 5.5"),
        (lambda run: run.add_rating("a", "p", math.nan), "value must be within the scale"),
        (lambda run: run.add_rating("a", "p", "3"), "value must be within the scale"),
        (lambda run: run.join(), "name one, as user=... or item=..."),
        (lambda run: run.join(user="a", item="p"), "name one, as user=... or item=..."),
        (lambda run: run.join(item="z"), "item='z' is not an item"),
        (lambda run: run.join(user="z"), "user='z' is not a user"),
    ],
)
def test_a_running_simulation_refuses(call, message):
    simulation = Simulation(World(RATINGS), seed=1, engine="events")
    with pytest.raises(ValueError, match=message):
        call(simulation)
    assert simulation.run(1.0).prequential.empty
