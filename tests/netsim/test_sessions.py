"""When nodes come and go: sessions that are drawn, by the time of day or read from a trace, and what scripts hold."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from algorithms import purposes
from algorithms.chance import USER, draw, entity_keys, uniform
from algorithms.ratings import Ratings
from netsim import (
    AvailabilityTrace,
    Diurnal,
    Exponential,
    Learning,
    OnOff,
    Periodic,
    Segment,
    Sessions,
    Simulation,
    Uniform,
    World,
    simulate,
)
from netsim.sessions import session_end, toggle
from netsim.tables import build_tables

SILENT = Periodic(1e6, phase=1e6)
EACH_SECOND = Periodic(1.0, phase=0.0)
STEP = 0.125  # between probes; what happens at a multiple of it shows in the next probe
KEY = entity_keys(USER, ["a"])[0]


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def lonely(**changes):
    """User "a", who rated the one item of the one router; nobody sends anything."""
    ratings = Ratings.from_arrays(["a"], [0], [3.0], scale=(1, 5))
    plain = World(ratings, user_broadcast=SILENT, router_broadcast=SILENT, learning=Learning(rank=2))
    return plain.replace(**changes)


def uniform_of(seed, purpose, counter):
    """Uniform number of a draw of user "a"; back in Python a word is an int, which numba takes for a signed one."""
    return uniform(np.uint64(draw(np.uint64(seed), purpose, KEY, counter)))


def script(*steps):
    """A script of (time, method of the simulation, arguments, keywords)."""

    def process(simulation):
        for time, method, arguments, keywords in steps:
            yield simulation.env.timeout(time - simulation.env.now)
            getattr(simulation, method)(*arguments, **keywords)

    return process


def switches(world, engine, until, *scripts, role="users", seed=1):
    """Whether the one node of a role begins online, and when that changes; times must be multiples of STEP."""
    result = simulate(world, until=until, seed=seed, every=STEP, engine=engine, scripts=scripts)
    online = result.probes[f"{role}_online"].to_numpy()
    return bool(online[0]), ((np.flatnonzero(np.diff(online))) * STEP).tolist()


def online_at(world, engine, times, *, seed=1):
    """Whether the user is online just before, and just after, what happens at each time."""
    later = [float(np.nextafter(time, math.inf)) for time in times]
    watched = sorted([*times, *later])
    result = simulate(world, until=watched[-1] + 1.0, seed=seed, at=watched, engine=engine)
    seen = dict(zip(result.probes["time"], result.probes["users_online"] == 1, strict=True))
    return [(seen[time], seen[after]) for time, after in zip(times, later, strict=True)]


# -- drawn lengths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "times"), [("online", [2.0, 2.5, 4.5, 5.0, 7.0]), ("offline", [0.5, 2.5, 3.0, 5.0, 5.5])]
)
def test_fixed_lengths_toggle_at_exact_times(engine, start, times):
    churn = Sessions(2.0, 0.5, start=start)
    assert switches(lonely(user_churn=churn), engine, 7.25) == (
        start == "online",
        times[: None if start == "online" else 5],
    )
    assert switches(lonely(router_churn=churn), engine, 7.25, role="routers")[1][:5] == times
    assert switches(lonely(router_churn=churn), engine, 7.25) == (True, [])


def test_times_of_sessions_add_up_lengths_in_turn(engine):
    """0.1 + 0.3 + 0.1 ... is not on any grid; each end is the end before plus the length, one addition."""
    ends, time = [], 0.0
    for length in [0.1, 0.3] * 10:
        time += length
        ends.append(time)
    seen = online_at(lonely(user_churn=Sessions(0.1, 0.3, start="online")), engine, ends)
    assert seen == [(True, False), (False, True)] * 10


def test_a_node_goes_before_its_tick_and_comes_before_it(engine):
    world = lonely(user_churn=Sessions(2.0, 1.0, start="online"), user_broadcast=EACH_SECOND, rating_exchange="attach")
    result = simulate(world, until=5.5, seed=1, engine=engine)
    assert result.users["profiles_sent"].tolist() == [4]  # at 0, 1, 3 and 4; at 2 it goes, at 3 it comes, at 5 it goes


def test_exponential_sessions_are_those_of_on_off(engine):
    tables = [
        simulate(lonely(user_churn=churn), until=50.0, seed=4, every=0.1, engine=engine).probes
        for churn in (OnOff(3.0, 2.0), Sessions(Exponential(3.0), Exponential(2.0)))
    ]
    assert tables[0].equals(tables[1])
    assert 0 < tables[0]["users_online"].mean() < 1


def test_a_stationary_start_falls_into_the_middle_of_a_session(engine):
    """Of a fixed length, the rest of the session is a uniform share."""
    world, began = lonely(user_churn=Sessions(4.0, 2.0)), set()
    for seed in range(8):
        first = simulate(world, until=1e-6, seed=seed, engine=engine).probes["users_online"][0] == 1
        began.add(bool(first))
        rest = uniform_of(seed, purposes.RESIDUAL, 0) * (4.0 if first else 2.0)
        following = rest + (2.0 if first else 4.0)
        assert online_at(world, engine, [rest, following], seed=seed) == [(first, not first), (not first, first)]
    assert began == {True, False}


def test_only_sessions_of_the_same_kind_are_correlated():
    """The normal scores follow x' = rho x + sqrt(1 - rho^2) e, apart for each kind."""
    rho = 0.9
    churn = Sessions(Uniform(1.0, 2.0), Uniform(10.0, 20.0), correlation=rho, start="online")
    tables = build_tables(lonely(user_churn=churn), 7)
    scores, end = {True: None, False: None}, 0.0
    for session in range(1, 41):
        up = session % 2 == 1
        fresh = stats.norm.ppf(uniform_of(7, purposes.SESSION, session))
        last = scores[up]
        scores[up] = fresh if last is None else rho * last + math.sqrt(1 - rho**2) * fresh
        low, high = (1.0, 2.0) if up else (10.0, 20.0)
        length = low + (high - low) * stats.norm.cdf(scores[up])
        found = session_end(tables.state, 0, session, end)
        assert found - end == pytest.approx(length, rel=1e-9)
        end = found


def test_without_correlation_lengths_are_the_draws_themselves():
    churn = Sessions(Uniform(1.0, 2.0), Uniform(10.0, 20.0), start="offline")
    state = build_tables(lonely(user_churn=churn), 7).state
    for session in range(1, 11):
        u = uniform_of(7, purposes.SESSION, session)
        expected = 10.0 + 10.0 * u if session % 2 == 1 else 1.0 + u
        assert session_end(state, 0, session, 0.0) == pytest.approx(expected, rel=1e-14)


# -- the rhythm of the day ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("amplitude", "peak", "day"), [(0.8, 1.0, 4.0), (0.5, 0.0, 24.0), (0.999, 3.5, 5.0)])
def test_a_session_ends_when_its_rate_has_come_to_its_length(amplitude, peak, day):
    churn = Sessions(3.0, 1.5, diurnal=Diurnal(amplitude, peak, day=day), start="online")
    state = build_tables(lonely(user_churn=churn), 1).state
    time = 0.0
    for session in range(1, 13):
        sign, length = (-1, 3.0) if session % 2 == 1 else (1, 1.5)
        end = session_end(state, 0, session, time)
        passed, _ = integrate.quad(
            lambda t, sign=sign: 1 + sign * amplitude * math.cos(2 * math.pi * (t - peak) / day),
            time,
            end,
            epsabs=1e-12,
            limit=200,
        )
        assert passed == pytest.approx(length, abs=1e-9)
        time = end


def test_an_amplitude_of_nothing_changes_nothing():
    churn = Sessions(Uniform(1.0, 2.0), Uniform(1.0, 2.0), start="online")
    plain, flat = (
        build_tables(lonely(user_churn=each), 3).state
        for each in (churn, Sessions(churn.online, churn.offline, start="online", diurnal=Diurnal(0.0, 0.0)))
    )
    for session in range(1, 6):
        assert session_end(plain, 0, session, 2.0) == session_end(flat, 0, session, 2.0)


def test_both_engines_toggle_by_the_time_of_day(engine):
    churn = Sessions(3.0, 1.5, diurnal=Diurnal(0.8, 1.0, day=4.0), start="online")
    world = lonely(user_churn=churn)
    state, ends = build_tables(world, 1).state, [0.0]
    for session in range(1, 7):
        ends.append(session_end(state, 0, session, ends[-1]))
    assert online_at(world, engine, ends[1:]) == [(True, False), (False, True)] * 3
    assert len(set(np.round(np.diff(ends), 3))) > 2  # so the day does something


# -- traces ------------------------------------------------------------------------------------------------------------


def replayed(online, milliseconds, **settings):
    return AvailabilityTrace([Segment("phone", online, milliseconds)], **{"offset": "none"} | settings)


@pytest.mark.parametrize(
    ("online", "milliseconds", "after", "times"),
    [
        (True, [500, 250], "repeat", [0.5, 0.75, 1.25, 1.5, 2.0, 2.25, 2.75, 3.0, 3.5, 3.75]),
        (False, [500, 250], "repeat", [0.5, 0.75, 1.25, 1.5, 2.0, 2.25, 2.75, 3.0, 3.5, 3.75]),
        # the last session and the first are one
        (True, [500, 250, 1000], "repeat", [0.5, 0.75, 2.25, 2.5]),
        (False, [500, 250, 1000], "repeat", [0.5, 0.75, 2.25, 2.5]),
        (True, [500], "repeat", []),
        (False, [500], "repeat", []),
        (True, [500, 250], "offline", [0.5]),
        (True, [500, 250], "online", [0.5, 0.75]),
        (True, [500, 250, 1000], "offline", [0.5, 0.75, 1.75]),
        (True, [500, 250, 1000], "online", [0.5, 0.75]),
        (False, [500, 250, 1000], "online", [0.5, 0.75, 1.75]),
        (False, [500], "offline", []),
        (False, [500], "online", [0.5]),
    ],
)
def test_a_trace_is_replayed_to_its_end_and_beyond(engine, online, milliseconds, after, times):
    world = lonely(user_churn=replayed(online, milliseconds, after=after))
    assert switches(world, engine, 3.875) == (online, times)


def test_ends_of_a_trace_are_not_accumulated(engine):
    """100 sessions of 1 ms, a segment that is repeated: each end is whole milliseconds divided by 1000."""
    world = lonely(user_churn=replayed(True, [1] * 100))
    ends = [n / 1000 for n in range(1, 100)] + [(n / 1000 - 0.0) + 3 * (100 / 1000) for n in range(1, 100)]
    seen = online_at(world, engine, ends)
    odd = [(True, False) if n % 2 == 1 else (False, True) for n in range(1, 100)]
    assert seen == odd + odd


@pytest.mark.parametrize("seed", range(5))
def test_a_random_offset_starts_within_the_segment(engine, seed):
    segment = Segment("phone", True, [700, 1100, 300, 2000])
    world = lonely(user_churn=AvailabilityTrace([segment], after="offline"))
    share = uniform_of(seed, purposes.TRACE_SEGMENT, 1)
    origin = math.floor(share * 4.1 * 1000) / 1000
    ends = [0.7, 1.8, 2.1, 4.1]
    at = sum(end <= origin for end in ends)
    up = [(at + n) % 2 == 0 for n in range(len(ends) - at)] + [False]
    expected = list(pairwise(up))
    assert online_at(world, engine, [end - origin for end in ends[at:]], seed=seed) == expected


def test_each_node_takes_a_segment_by_chance():
    ratings = Ratings.from_arrays([0], [0], [3.0], scale=(1, 5), user_ids=range(200))
    segments = [Segment("on", True, [5000]), Segment("off", False, [5000])]
    world = World(ratings, user_churn=AvailabilityTrace(segments))
    online = Simulation(world, seed=1).view().users_online
    assert 60 < online.sum() < 140
    assert (Simulation(world, seed=1).view().users_online == online).all()
    assert (Simulation(world, seed=2).view().users_online != online).any()


def test_where_a_segment_begins_again_nobody_comes_back(engine):
    """The last session and the first are one, so that nothing is reset between them."""
    world = lonely(
        user_churn=replayed(True, [500, 250, 1000]), user_return="reset", router_broadcast=Periodic(0.25, phase=0.125)
    )
    result = simulate(world, until=2.25, seed=1, engine=engine)
    # Back at 0.75; item profiles come at 0.875 (+ 1 ms), 1.125, ... 2.125: six, of which two after 1.75.
    assert result.user_updates.tolist() == [6]


# -- what scripts hold -------------------------------------------------------------------------------------------------

USER_A = {"user": "a"}


def test_set_online_holds_until_the_next_session(engine):
    world = lonely(user_churn=Sessions(2.0, 2.0, start="online"))
    down = script((0.5, "set_online", (False,), USER_A))
    assert switches(world, engine, 7.0, down) == (True, [0.5, 4.0, 6.0])
    up = script((2.5, "set_online", (True,), USER_A))
    assert switches(world, engine, 7.0, up) == (True, [2.0, 2.5, 6.0])
    assert switches(lonely(), engine, 7.0, down) == (True, [0.5])


def test_a_hold_outlasts_sessions_and_is_undone(engine):
    world = lonely(user_churn=Sessions(2.0, 2.0, start="online"))
    down = script((0.5, "hold_offline", (), USER_A), (4.5, "release_offline", (), USER_A))
    assert switches(world, engine, 7.0, down) == (True, [0.5, 4.5, 6.0])
    up = script((0.5, "hold_online", (), USER_A), (6.5, "release_online", (), USER_A))
    assert switches(world, engine, 7.0, up) == (True, [6.5])
    # Released while the session that has gone on beneath says offline, it stays offline.
    early = script((0.5, "hold_offline", (), USER_A), (2.5, "release_offline", (), USER_A))
    assert switches(world, engine, 7.0, early) == (True, [0.5, 4.0, 6.0])


def test_holds_nest(engine):
    steps = script(
        (0.5, "hold_offline", (), USER_A),
        (1.0, "hold_offline", (), USER_A),
        (1.5, "release_offline", (), USER_A),
        (2.0, "release_offline", (), USER_A),
    )
    assert switches(lonely(), engine, 3.0, steps) == (True, [0.5, 2.0])


def test_hold_offline_is_stronger(engine):
    world = lonely(user_churn=Sessions(0.5, 10.0, start="online"))
    steps = script(
        (1.0, "hold_online", (), USER_A),
        (1.5, "hold_offline", (), USER_A),
        (2.0, "release_offline", (), USER_A),
        (2.5, "hold_offline", (), USER_A),
        (2.75, "release_online", (), USER_A),
        (3.0, "release_offline", (), USER_A),
    )
    assert switches(world, engine, 4.0, steps) == (True, [0.5, 1.0, 1.5, 2.0, 2.5])


def test_set_online_of_a_held_node_shows_after_its_release(engine):
    steps = script(
        (0.5, "hold_offline", (), {"router": 0}),
        (1.0, "set_online", (True,), {"router": 0}),
        (1.5, "release_offline", (), {"router": 0}),
        (2.0, "hold_offline", (), {"router": 0}),
        (2.5, "set_online", (False,), {"router": 0}),
        (3.0, "release_offline", (), {"router": 0}),
    )
    assert switches(lonely(), engine, 4.0, steps, role="routers") == (True, [0.5, 1.5, 2.0])


@pytest.mark.parametrize("how", ["offline", "online"])
@pytest.mark.parametrize("node", [{"user": "a"}, {"router": 0}])
def test_a_release_without_a_hold_is_an_error(how, node):
    simulation = Simulation(lonely(), seed=1)
    name = repr(next(iter(node.values())))
    with pytest.raises(ValueError, match=f"node {name} is not held {how} now; call hold_{how} before release_{how}"):
        getattr(simulation, f"release_{how}")(**node)
    getattr(simulation, f"hold_{how}")(**node)
    getattr(simulation, f"release_{how}")(**node)
    with pytest.raises(ValueError, match="is not held"):
        getattr(simulation, f"release_{how}")(**node)


def test_a_node_that_is_released_has_what_it_has_when_it_comes_back():
    simulation = Simulation(lonely(user_return="reset"), seed=1)
    before = simulation.view().user_profiles
    simulation.hold_online(user="a")  # already online: nothing comes back
    simulation.release_online(user="a")
    np.testing.assert_array_equal(simulation.view().user_profiles, before)
    simulation.hold_offline(user="a")
    simulation.release_offline(user="a")
    assert (simulation.view().user_profiles != before).all()


def test_sessions_go_on_by_number_not_by_state():
    """`toggle` says what session it begins; a script in between changes nothing of the next."""
    state = build_tables(lonely(user_churn=Sessions(2.0, 1.0, start="online")), 1).state
    assert toggle(state, 0, 2, 2.0) == 3.0
    assert not state.nodes["online"][0]
    assert toggle(state, 0, 3, 3.0) == 5.0
    assert state.nodes["online"][0]
