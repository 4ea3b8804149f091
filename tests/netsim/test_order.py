"""What happens at equal times, in which order: small worlds on a grid of times, whose log is written out."""

from heapq import heappush

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simpy.events import NORMAL

from algorithms.ratings import Ratings
from netsim import MessageTrace, OnOff, Periodic, Sessions, Simulation, World, simulate
from netsim.clock import END, PROBE, SCRIPTED, Clock
from netsim.messages import KIND_NAMES
from tests.worlds import assert_same_bits, runs

some = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = {PROBE: "probe", END: "end", SCRIPTED: "script"} | dict(enumerate(KIND_NAMES))
EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1.0, phase=1e6)


@pytest.fixture
def world():
    """Users 0 and 1 rated the one item, whose router is node 2; all tick at 0, 1, 2, ...; a message takes 1 s."""
    ratings = Ratings.from_arrays(["a", "b"], ["x", "x"], [2.0, 4.0])
    each = {"user_broadcast": EACH_SECOND, "router_broadcast": EACH_SECOND}
    return World(ratings, delay=1.0, minimum_delay=0.0, request_timeout=0.5, **each)


@pytest.fixture
def log(monkeypatch):
    """What the clock does: (time, kind, the rest of the key)."""
    entries, step = [], Clock.step

    def logged(clock):
        time, (kind, *rest) = clock._queue[0][:2]
        entries.append((time, NAMES[kind], *rest))
        step(clock)

    monkeypatch.setattr(Clock, "step", logged)
    return entries


def each_second(simulation):
    while True:
        yield simulation.env.timeout(1.0)


def arrivals(trace):
    """Messages in the order of their arrival: (time, kind, sender, receiver, profile, stamp)."""
    frame = trace.frame().query("order >= 0").sort_values("order")
    return list(frame[["arrives", "kind", "sender", "receiver", "profile", "stamp"]].itertuples(index=False, name=None))


def test_order_at_equal_times(world, log):
    once = Sessions(3.0, 100.0, start="online")  # all toggle at 3
    churning = world.replace(user_churn=once, router_churn=once)
    simulate(churning, until=4.0, every=1.0, seed=1, scripts=[each_second], engine="events")
    assert [entry[1:] for entry in log if entry[0] == 3.0] == [
        ("probe",),
        ("script", NORMAL),
        *[("toggle", node) for node in (0, 1, 2)],
        *[("tick", node) for node in (0, 1, 2)],
        *[("request", 2, user, 2, -1, 0) for user in (0, 1)],
        *[("reply", user, 2, 4, user, 0) for user in (0, 1)],
        *[("profile", user, 2, 3, user, 0) for user in (0, 1)],
        *[("profile", 2, user, 3, 2, 0) for user in (0, 1)],
    ]


def test_the_end_comes_before_scripts_and_after_nothing_else(world, log):
    simulation = Simulation(world, seed=1, engine="events")
    simulation.env.process(each_second(simulation))
    simulation.run(2.0, every=1.0)
    assert log[-1] == (2.0, "end")
    simulation.run(3.0, every=1.0)
    assert list(dict.fromkeys(entry[1] for entry in log if entry[0] == 2.0))[:3] == ["end", "script", "tick"]
    assert PROBE < END < SCRIPTED < 0


def test_then_by_stamp_then_by_profile(world):
    def faster(simulation):
        yield simulation.env.timeout(1.0)
        simulation.set_delay(1.0)

    ratings = Ratings.from_arrays(["a", "a"], ["x", "y"], [2.0, 4.0])
    changes = {"delay": 2.0, "routers": 1, "user_broadcast": NEVER}
    trace = MessageTrace()
    simulate(world.replace(ratings=ratings, **changes), until=2.5, seed=1, scripts=[faster], trace=trace)
    assert [message[4:] for message in arrivals(trace)] == [(1, 1), (2, 1), (1, 2), (2, 2)]  # (profile, stamp)


def test_a_probe_sees_what_happened_before_its_time(world):
    rows = simulate(world, until=4.0, every=0.5, seed=1).probes.set_index("time")
    assert rows.loc[[0.0, 0.5, 1.0, 1.5], "sent"].tolist() == [0, 4, 4, 10]  # at 1 also two requests
    assert rows.loc[[1.0, 1.5, 2.0, 2.5], "user_updates"].tolist() == [0, 2, 2, 4]


def test_a_script_acts_before_the_model(world):
    def script(simulation):
        yield simulation.env.timeout(1.0)
        simulation.set_online(False, user="a")
        yield simulation.env.timeout(1.0)
        simulation.set_loss(1.0)

    trace = MessageTrace()
    simulate(world, until=2.5, seed=1, scripts=[script], trace=trace)
    frame = trace.frame()
    assert frame.query("sender == 0")["sent"].tolist() == [0.0]
    assert set(frame.query("receiver == 0 and arrives == 1")["fate"]) == {"lost_offline"}
    assert set(frame.query("sent == 2")["fate"]) == {"lost_link"}
    assert "lost_link" not in set(frame.query("sent < 2")["fate"])


def test_what_a_script_causes_comes_before_the_model_too(world):
    def script(simulation):
        yield simulation.env.timeout(1.0)
        for _ in range(3):
            yield simulation.env.timeout(0.0)
        yield simulation.env.process(another(simulation))

    def another(simulation):
        yield simulation.env.event().succeed()
        simulation.set_loss(1.0)

    trace = MessageTrace()
    simulate(world, until=1.5, seed=1, scripts=[script], trace=trace)
    assert set(trace.frame().query("sent == 1")["fate"]) == {"lost_link"}


def test_a_script_does_not_touch_what_is_in_flight(world):
    def script(simulation):
        yield simulation.env.timeout(0.5)
        simulation.set_loss(1.0)
        simulation.set_delay(9.0)
        simulation.set_contacts([], user="a")

    trace = MessageTrace()
    simulate(world, until=1.5, seed=1, scripts=[script], trace=trace)
    assert [(time, sender) for time, _, sender, *_ in arrivals(trace)] == [(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 2)]
    assert trace.frame().query("sent == 1 and kind == 'profile'")["sender"].tolist() == [1, 2, 2]


def test_the_end_leaves_out_the_model_at_that_time_but_takes_the_probe(world):
    trace = MessageTrace()
    result = simulate(world, until=2.0, every=0.5, seed=1, trace=trace)
    assert result.probes["time"].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert trace.frame()["sent"].max() == 1.0
    assert max(time for time, *_ in arrivals(trace)) == 1.0
    assert result.time == 2.0


@pytest.mark.parametrize("until", [0.7, 13.7, 14.1, 600.0])
def test_fifty_gaps_between_probes_by_default(world, until):
    quiet = world.replace(user_broadcast=NEVER, router_broadcast=NEVER)
    assert len(simulate(quiet, until=until, seed=1).probes) == 51


@some
@given(runs(), st.floats(0.1, 0.9))
def test_a_run_in_two_parts_is_the_same_run(run, share):
    middle = min(round(run.until * share * 4) / 4 or 0.25, run.until - 0.25)
    traces, ends = (MessageTrace(), MessageTrace()), []
    for trace, stops in zip(traces, ([run.until], [middle, run.until]), strict=True):
        simulation = Simulation(run.world, seed=run.seed, trace=trace)
        for script in run.scripts:
            simulation.env.process(script(simulation))
        for until in stops:
            result = simulation.run(until, every=0.25)
        ends.append(result)
    assert_same_bits(*ends)
    assert traces[0].frame().equals(traces[1].frame())


def test_without_delay_the_least_key_now_pending_is_next(world):
    trace = MessageTrace()
    simulate(world.replace(delay=0.0), until=0.5, seed=1, trace=trace)
    assert [message[:4] for message in arrivals(trace)] == [
        (0.0, "profile", 0, 2),
        (0.0, "request", 2, 0),
        (0.0, "reply", 0, 2),
        (0.0, "profile", 1, 2),
        (0.0, "request", 2, 1),
        (0.0, "reply", 1, 2),
        (0.0, "profile", 2, 0),
        (0.0, "profile", 2, 1),
    ]


@some
@given(runs(scripted=False))
def test_insertion_order_never_decides(run):
    """A heap that breaks ties by the latest insertion, processes of nodes included, gives the same run."""

    def put(clock, event, time, key):
        heappush(clock._queue, (time, key, -next(clock._eid), event))

    def schedule(clock, event, priority=NORMAL, delay=0):
        heappush(clock._queue, (clock._now + delay, (SCRIPTED, priority), -next(clock._eid), event))

    first, second = MessageTrace(), MessageTrace()
    plain = simulate(**run.arguments, trace=first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clock, "put", put)
        patch.setattr(Clock, "schedule", schedule)
        assert_same_bits(plain, simulate(**run.arguments, trace=second))
    if run.world.duplication == 0:  # which of two equal copies came first is nobody's business but the trace's
        assert first.frame().equals(second.frame())


def test_ticks_are_computed_and_not_accumulated(world):
    trace = MessageTrace()
    tenths = world.replace(user_broadcast=Periodic(0.1, phase=0.3), router_broadcast=NEVER)
    simulate(tenths, until=5.0, seed=1, trace=trace)
    sent = trace.frame().query("kind == 'profile' and sender == 0")["sent"].tolist()
    assert sent == [0.3 + tick * 0.1 for tick in range(47)]


def test_an_interrupted_run_goes_on(world):
    presses = iter([KeyboardInterrupt])

    def interrupt(time, row):
        if time >= 1.0:
            for press in presses:
                raise press

    simulation = Simulation(world, seed=1)
    assert simulation.run(2.0, every=1.0, progress=interrupt).interrupted
    result = simulation.run(4.0, every=1.0)
    assert (result.time, result.until, result.interrupted) == (4.0, 4.0, False)
    assert result.probes["time"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_what_is_done_before_the_run_holds_until_the_next_session(world):
    """`set_online` before `run` takes a node down until its next session begins, and moves no later session."""
    churning = world.replace(user_churn=OnOff(1.0, 1.0))
    online = []
    for flip in (False, True):
        simulation = Simulation(churning, seed=3)
        if flip:
            simulation.set_online(not simulation.view().users_online[0], user="a")
        online.append([])
        for quarter in range(1, 40):
            simulation.run(quarter / 4, every=0.25)
            online[-1].append(bool(simulation.view().users_online[0]))
    first = online[0].index(not online[0][0])  # the first session is over
    assert 0 < first < 30
    assert online[1][:first] == [not online[0][0]] * first
    assert online[0][first:] == online[1][first:]
