"""Which engine runs, on how many threads, and why."""

import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import Constant, MessageTrace, Periodic, World, simulate


def world(n=4, **changes):
    user, item = np.nonzero(np.ones((n, n)))
    known = Ratings.from_arrays(
        user, item, (1.0 + (user + item) % 5), scale=(1, 5), user_ids=range(n), item_ids=range(n)
    )
    return World(known, **changes)


def run(changed=None, **options):
    return simulate(changed or world(), until=5.0, seed=1, **options)


@pytest.mark.parametrize("choice", ["fast", "", None, "Events", 1])
def test_an_unknown_engine_is_refused_with_the_choices(choice):
    with pytest.raises(ValueError, match=r"engine must be .*auto.*events.*compiled"):
        run(engine=choice)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
@pytest.mark.parametrize("engine", ["auto", "compiled"])
def test_a_wrong_number_of_threads_is_refused(engine, threads):
    with pytest.raises(ValueError, match=r"threads must be an integer >= 1"):
        run(engine=engine, threads=threads)


def test_the_compiled_engine_is_taken_by_itself():
    result = run()
    assert result.engine == "compiled"
    assert "thread" in result.engine_reason


@pytest.mark.parametrize("engine", ["events", "compiled"])
def test_the_engine_asked_for_runs(engine):
    result = run(engine=engine)
    assert result.engine == engine
    assert result.engine_reason


def test_a_trace_takes_the_events_engine_and_the_result_says_why():
    trace = MessageTrace()
    result = run(trace=trace)
    assert result.engine == "events"
    assert "trace" in result.engine_reason
    assert len(trace) > 0


def test_the_compiled_engine_refuses_a_trace_and_names_it():
    with pytest.raises(ValueError, match=r"engine='compiled' cannot run trace"):
        run(engine="compiled", trace=MessageTrace())


def test_the_reason_names_the_threads():
    assert "one thread was asked for" in run(threads=1).engine_reason
    assert "2 threads were asked for" in run(threads=2).engine_reason


def test_without_a_least_delay_there_is_one_thread():
    result = run(world(minimum_delay=0.0), threads=2)
    assert result.engine == "compiled"
    assert "minimum_delay is 0" in result.engine_reason


def test_a_second_thread_must_pay():
    slow = run(world(minimum_delay=1e-3))
    assert slow.engine_reason.startswith("one thread")
    busy = Periodic(0.05)
    fast = run(world(30, user_broadcast=busy, router_broadcast=busy, delay=Constant(0.5)), threads=None)
    assert "threads, since" in fast.engine_reason or "one core" in fast.engine_reason


def test_more_threads_than_nodes_give_the_same_bits():
    alone, many = run(threads=1), run(threads=12)
    assert alone.user_profiles.tobytes() == many.user_profiles.tobytes()
    assert alone.probes.equals(many.probes)
