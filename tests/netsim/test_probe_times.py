"""When a run is measured."""

import pytest

from algorithms.synthetic import low_rank
from netsim import Simulation, World, simulate

WORLD = World(low_rank(4, 4, rank=1, seed=1).train)


def times(**arguments):
    return simulate(WORLD, until=10.0, seed=1, **arguments).probes["time"].tolist()


def test_by_default_the_run_is_cut_into_fifty():
    assert times() == [number * (10.0 / 50) for number in range(50)] + [10.0]


def test_every_counts_from_the_start_and_the_end_is_always_measured():
    assert times(every=3.0) == [0.0, 3.0, 6.0, 9.0, 10.0]


def test_at_gives_times_of_their_own():
    assert times(at=[2.5, 7.0]) == [0.0, 2.5, 7.0, 10.0]


def test_at_adds_to_every_and_no_time_is_measured_twice():
    assert times(at=[5.0, 1.0, 5.0], every=5.0) == [0.0, 1.0, 5.0, 10.0]


def test_a_further_run_does_not_measure_its_start_again():
    simulation = Simulation(WORLD, seed=1)
    simulation.run(4.0, every=2.0)
    assert simulation.run(8.0, at=[7.0]).probes["time"].tolist() == [0.0, 2.0, 4.0, 7.0, 8.0]


@pytest.mark.parametrize("at", [[0.0], [10.0], [-1.0], ["soon"], [float("nan")]])
def test_times_outside_the_run_are_refused(at):
    with pytest.raises(ValueError, match="at must be a finite number of seconds between 0 and 10, got"):
        times(at=at)
