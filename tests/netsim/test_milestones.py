"""Targets and plateaus in tables written by hand, and runs that one of them ends."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.synthetic import low_rank
from netsim import Milestone, Periodic, Plateau, Simulation, Target, World, simulate, truth_rmse
from tests.worlds import Meddler, assert_same_bits, runs

DATA = low_rank(6, 5, rank=2, seed=1)
TICK = Periodic(0.5, phase=0.25)
WORLD = World(DATA.train, user_broadcast=TICK, router_broadcast=TICK, delay=0.25)
ENGINES = ("events", "compiled")
few = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


def table(values, times=None, metric="test_rmse"):
    """A probe table: at probe n, 10 n messages, 1000 n bytes, n and 2 n updates were made."""
    n = np.arange(len(values))
    times = n.astype(float) if times is None else times
    columns = {"time": times, metric: values, "user_updates": n, "item_updates": 2 * n}
    return pd.DataFrame(columns | {"sent": 10 * n, "bytes_sent": 1000 * n})


def seconds(rule, values, **other):
    """Time at which a rule is met; None where it is not."""
    found = rule.find(table(values, **other))
    assert found.reached == (not math.isnan(found.time))
    return found.time if found.reached else None


# -- targets -----------------------------------------------------------------------------------------------------------


def test_a_target_tells_when_and_what_it_had_cost():
    found = Target("test_rmse", at_most=0.95).find(table([1.2, 1.0, 0.94, 0.97, 0.9], [0.0, 2.5, 5.0, 7.5, 10.0]))
    assert found == Milestone("test_rmse <= 0.95", True, 5.0, 20.0, 2000.0, 6.0, 0.94)
    assert str(found) == "test_rmse <= 0.95: after 5 s, 20 messages, 2,000 bytes, 6 updates (0.94)"
    assert {type(each) for each in (found.time, found.messages, found.bytes, found.updates, found.value)} == {float}


@pytest.mark.parametrize(
    ("bound", "values", "when"),
    [
        ({"at_most": 1.0}, [1.5, 1.0, 0.5], 1.0),  # met where equal
        ({"at_most": 1.0}, [1.0, 2.0], 0.0),
        ({"at_most": 1.0}, [math.nan, math.nan, 0.5], 2.0),
        ({"at_most": 1.0}, [math.inf, -math.inf], 1.0),
        ({"at_most": 1.0}, [math.nan, 1.5], None),
        ({"at_most": 0.0}, [1.0, 0.0], 1.0),
        ({"at_least": 0.5}, [0.1, 0.5, 0.4], 1.0),
        ({"at_least": 0.5}, [math.nan, 0.4], None),
        ({"at_most": np.float64(2), "at_least": None}, [3, 2, 1], 1.0),
        ({"at_most": 1.0}, [], None),
    ],
)
def test_a_target_is_met_at_the_first_probe_at_or_beyond_it(bound, values, when):
    assert seconds(Target("test_rmse", **bound), values) == when


@pytest.mark.parametrize(
    ("rule", "values", "best"),
    [
        (Target("test_rmse", at_most=0.5), [1.5, 0.7, math.nan, 0.9], 0.7),
        (Target("test_rmse", at_least=5), [1.5, 4.0, math.nan, 0.9], 4.0),
        (Plateau("test_rmse", window=1, tolerance=0.1), [3.0, 2.0, 1.0], 1.0),
        (Plateau("test_rmse", window=1, tolerance=0.1, higher=True), [1.0, 2.0, 3.0], 3.0),
    ],
)
def test_what_is_not_reached_says_so_and_how_near_it_came(rule, values, best):
    found = rule.find(table(values))
    assert not found.reached
    assert found.value == best
    assert all(math.isnan(each) for each in (found.time, found.messages, found.bytes, found.updates))
    assert str(found) == f"{rule}: not reached (best {best:g})"


@pytest.mark.parametrize("rule", [Target("test_rmse", at_most=1), Plateau("test_rmse", window=1, tolerance=1)])
def test_a_metric_that_was_never_known_is_not_reached(rule):
    found = rule.find(table([math.nan, math.nan, math.nan]))
    assert not found.reached
    assert math.isnan(found.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "Target: give at_most or at_least, got at_most=None and at_least=None"),
        ({"at_most": 1, "at_least": 1}, "Target: give at_most or at_least, got at_most=1 and at_least=1"),
        ({"at_most": math.nan}, "Target: at_most must be a finite number, got nan"),
        ({"at_least": math.inf}, "Target: at_least must be a finite number, got inf"),
        ({"at_most": "0.9"}, "Target: at_most must be a finite number, got '0.9'"),
        ({"at_least": True}, "Target: at_least must be a finite number, got True"),
    ],
)
def test_a_target_out_of_range_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        Target("test_rmse", **arguments)


# -- plateaus ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "when"),
    [
        ([3.0, 2.0, 1.0, 1.0, 1.0, 1.0], 4.0),  # from 2 to 4 s nothing was gained
        ([3.0, 2.0, 1.25, 1.125, 1.0, 0.875], None),  # 0.25 in 2 s is not less than the tolerance
        ([3.0, 2.0, 1.25, 1.125, 1.0625, 0.5], 4.0),
        ([3.0, 1.0, 2.0, 4.0], 3.0),  # worse is no gain: the best at 3 s is that at 1 s
        ([1.0, 1.0], None),  # no probe is old enough
        ([1.0, 1.0, 1.0], 2.0),
        ([1.0, math.nan, math.nan], 2.0),  # the best known stands
        ([math.nan, math.nan, math.nan, 1.0, 1.0, 1.0], 5.0),  # nothing is known before 3 s
        ([], None),
    ],
)
def test_a_plateau_is_where_the_best_value_gains_less_than_the_tolerance_in_a_window(values, when):
    assert seconds(Plateau("test_rmse", window=2.0, tolerance=0.25), values) == when


def test_a_plateau_of_a_gain_looks_the_other_way():
    rising, falling = [0.1, 0.2, 0.3, 0.3, 0.3], [0.3, 0.2, 0.1, 0.0, -0.1]
    up = Plateau("test_rmse", window=1.0, tolerance=0.05, higher=True)
    assert (seconds(up, rising), seconds(up, falling)) == (3.0, 1.0)
    down = replace(up, higher=False)
    assert (seconds(down, rising), seconds(down, falling)) == (1.0, None)


def test_a_plateau_compares_with_the_last_probe_at_or_before_the_window():
    rule = Plateau("test_rmse", window=4.0, tolerance=0.5)
    # At 9 s the window begins at 5 s; the last probe by then is that at 3 s.
    assert seconds(rule, [2.0, 1.4, 1.1, 1.0], times=[0.0, 3.0, 6.0, 9.0]) == 9.0
    assert seconds(rule, [2.0, 1.6, 1.1, 1.0], times=[0.0, 3.0, 6.0, 9.0]) is None


def test_a_metric_that_stays_infinite_is_no_plateau():
    assert seconds(Plateau("test_rmse", window=1.0, tolerance=0.1), [math.inf] * 3 + [1.0, 1.0]) == 4.0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"window": 0}, "Plateau: window must be a finite number of seconds > 0, got 0"),
        ({"window": math.inf}, "Plateau: window must be"),
        ({"window": True}, "Plateau: window must be"),
        ({"tolerance": 0.0}, "Plateau: tolerance must be a finite number of the metric's unit > 0, got 0.0"),
        ({"tolerance": -1}, "Plateau: tolerance must be"),
        ({"tolerance": "small"}, "Plateau: tolerance must be .* got 'small'"),
    ],
)
def test_a_plateau_out_of_range_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        Plateau("test_rmse", **{"window": 1.0, "tolerance": 0.1} | arguments)


@pytest.mark.parametrize("metric", ["", None, 3])
def test_a_metric_is_a_name(metric):
    with pytest.raises(ValueError, match=r"Target: metric must name a column of the probe table, .* got"):
        Target(metric, at_most=1)
    with pytest.raises(ValueError, match="Plateau: metric must name a column"):
        Plateau(metric, window=1, tolerance=1)


@pytest.mark.parametrize("rule", [Target("recall", at_least=1), Plateau("recall", window=1, tolerance=1)])
def test_a_metric_that_was_not_measured_is_named_with_those_that_were(rule):
    with pytest.raises(ValueError, match="metric must be a column of the probe table, got 'recall'; it has time, test"):
        rule.find(table([1.0]))
    with pytest.raises(ValueError, match="it has no columns, as nothing was measured"):
        rule.find(pd.DataFrame())


# -- runs that a rule ends ---------------------------------------------------------------------------------------------


def state(simulation):
    """The arrays of a simulation, what is in flight and the time, as bytes by name."""
    arrays = simulation._tables.state._asdict() | {"in flight": simulation._engine.in_flight, "now": simulation.env.now}
    found = {}
    for name, array in arrays.items():
        columns = getattr(getattr(array, "dtype", None), "names", None)  # what fills a row up between columns is chance
        parts = {name: array} if columns is None else {f"{name}: {column}": array[column] for column in columns}
        found |= {part: np.asarray(values).tobytes() for part, values in parts.items()}
    return found


def ready(run, engine):
    simulation = Simulation(run.world, seed=run.seed, engine=engine)
    for script in run.scripts:
        simulation.env.process(script(simulation))
    return simulation


@few
@given(runs(), st.floats(0.05, 1.0), st.sampled_from(ENGINES))
def test_a_run_that_stops_at_t_is_the_run_until_t(run, part, engine):
    probe = max(1, int(part * run.until / run.every))  # the end is a probe of its own where `every` does not divide it
    t = run.every * probe
    stopping, ending = ready(run, engine), ready(run, engine)
    stopped = stopping.run(run.until + 1.0, every=run.every, stop=Target("time", at_least=t))
    ended = ending.run(t, every=run.every)
    assert (stopped.time, stopped.stopped, stopped.until) == (t, f"time >= {t:g}", run.until + 1.0)
    assert ended.stopped is None
    assert_same_bits(stopped, ended)
    assert state(stopping) == state(ending)
    for name in ("users", "routers", "items"):
        pd.testing.assert_frame_equal(getattr(stopped, name), getattr(ended, name), check_exact=True)
    assert stopped.disclosed.tobytes() == ended.disclosed.tobytes()


@few
@given(runs(), st.integers(1, 8), st.sampled_from(ENGINES))
def test_a_run_that_was_stopped_goes_on_as_if_it_never_had(run, probe, engine):
    # A Meddler reads the probes, whose times are others after a stop.
    run = replace(run, scripts=tuple(script for script in run.scripts if not isinstance(script, Meddler)))
    once, twice = ready(run, engine), ready(run, engine)
    once.run(run.until, every=run.every)
    first = twice.run(run.until, every=run.every, stop=Target("time", at_least=run.every * probe))
    if first.time < run.until:
        second = twice.run(run.until, every=run.every)
        assert second.stopped is None
        assert second.time == run.until
        times = second.probes["time"]
        assert times.is_monotonic_increasing
        assert times.is_unique
    assert state(once) == state(twice)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rule_met_at_once_ends_the_run_before_anything_happens(engine):
    result = simulate(WORLD, until=10.0, seed=1, engine=engine, stop=Target("sent", at_least=0))
    assert (result.time, result.stopped, len(result.probes)) == (0.0, "sent >= 0", 1)
    assert result.accounts["messages"].sum() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rule_that_is_never_met_changes_nothing(engine):
    plain = simulate(WORLD, until=4.0, seed=1, engine=engine)
    watched = simulate(WORLD, until=4.0, seed=1, engine=engine, stop=[Target("sent", at_least=1e9)])
    assert watched.stopped is None
    assert_same_bits(plain, watched)


def test_a_rule_met_at_the_end_did_not_stop_the_run():
    result = simulate(WORLD, until=4.0, seed=1, every=2.0, stop=Target("time", at_least=4.0))
    assert (result.time, result.stopped) == (4.0, None)


def test_a_run_whose_rule_is_met_at_its_end_can_go_on():
    simulation = Simulation(WORLD, seed=1)
    simulation.run(4.0, every=2.0, stop=Target("time", at_least=4.0))
    result = simulation.run(8.0, every=2.0)
    assert (result.time, result.stopped) == (8.0, None)
    assert result.probes["time"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_of_several_rules_the_first_that_is_met_ends_the_run():
    late, early = Target("time", at_least=7.0), Target("time", at_least=3.0)
    never = Plateau("user_updates", window=50.0, tolerance=1.0)
    result = simulate(WORLD, until=10.0, seed=1, every=1.0, stop=[late, never, early])
    assert (result.time, result.stopped) == (3.0, "time >= 3")
    assert result.probes["time"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_of_two_rules_met_at_one_probe_the_one_given_first_is_named():
    rules = Target("time", at_least=3.0), Target("time", at_least=2.5)
    assert simulate(WORLD, until=10.0, seed=1, every=1.0, stop=rules).stopped == "time >= 3"


def test_a_stop_falls_on_the_first_probe_that_meets_it_in_the_whole_run():
    whole = simulate(WORLD, until=20.0, seed=1, every=0.7, probes=[truth_rmse(DATA.truth)])
    rule = Target("truth_rmse", at_most=float(whole.probes["truth_rmse"].iloc[12]))
    stopped = simulate(WORLD, until=20.0, seed=1, every=0.7, probes=[truth_rmse(DATA.truth)], stop=rule)
    assert 0.0 < stopped.time < 20.0
    assert stopped.find(rule) == whole.find(rule)
    assert stopped.find(rule).time == stopped.time
    pd.testing.assert_frame_equal(stopped.probes, whole.probes.iloc[: len(stopped.probes)])


@dataclass
class Sent:
    """A rule of one's own, which keeps the tables that it was asked about."""

    messages: int

    def __post_init__(self):
        self.seen = []

    def __str__(self):
        return f"{self.messages} messages"

    def find(self, probes):
        self.seen.append(len(probes))
        return replace(Target("sent", at_least=self.messages).find(probes), rule=str(self))


def test_a_rule_of_ones_own_sees_every_probe():
    rule = Sent(100)
    result = simulate(WORLD, until=20.0, seed=1, every=0.5, stop=rule)
    assert result.stopped == "100 messages"
    assert rule.seen == list(range(1, len(result.probes) + 1))
    assert (result.probes["sent"] >= 100).tolist() == [False] * (len(result.probes) - 1) + [True]
    assert result.find(rule).time == result.time


class Silent:
    """A rule that only `StopRule` asks for: no text of its own."""

    def find(self, probes):
        return replace(Target("time", at_least=2.0).find(probes), rule="two seconds")


def test_a_rule_without_a_text_of_its_own_is_named_as_its_milestone_is():
    assert simulate(WORLD, until=10.0, seed=1, every=1.0, stop=Silent()).stopped == "two seconds"


@pytest.mark.parametrize(
    "stop",
    [
        None,
        3,
        [Target("sent", at_least=1), 0.9],
        {Target("sent", at_least=1)},
        [None],
        "test_rmse",
        Target,
    ],
    ids=repr,
)
def test_what_is_no_rule_is_refused(stop):
    with pytest.raises(ValueError, match="stop must hold rules such as Target or Plateau, got"):
        simulate(WORLD, until=5.0, seed=1, stop=stop)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rule_over_what_is_not_measured_is_heard_at_the_first_probe(engine):
    simulation = Simulation(WORLD, seed=1, engine=engine)
    with pytest.raises(ValueError, match="metric must be a column of the probe table, got 'test_rmse'"):
        simulation.run(5.0, stop=Target("test_rmse", at_most=1))
    assert simulation.env.now == 0.0


def test_a_run_after_one_that_failed_goes_to_its_own_end():
    simulation = Simulation(WORLD, seed=1)
    with pytest.raises(ValueError, match="got 'test_rmse'"):
        simulation.run(5.0, stop=Target("test_rmse", at_most=1))
    assert simulation.run(10.0).time == 10.0


def test_a_run_after_ctrl_c_at_the_very_stop_goes_to_its_own_end():
    def interrupt(time, row):
        if time >= 3.0:
            raise KeyboardInterrupt

    simulation = Simulation(WORLD, seed=1)
    first = simulation.run(10.0, every=1.0, stop=Target("time", at_least=3.0), progress=interrupt)
    assert first.interrupted
    assert simulation.run(10.0, every=1.0).time == 10.0
