"""Speed of the events engine on the MovieLens-sized world, beside SimPy alone in the same run.

`python benchmarks/events.py` prints the ratio of delivered messages per second, updates included, to the rate of an
empty SimPy loop: as many processes as the world has nodes, each waiting for one time-out after another. Both sides
run in turns, and the median of the pairs is printed. Compilation is excluded. Data: MovieLens 100K where the
environment variable MOVIELENS_100K names it, else synthetic ratings of its size.
"""

import argparse
import os
from statistics import median
from time import perf_counter

import simpy

from algorithms.datasets import movielens_100k
from algorithms.synthetic import low_rank
from netsim import LogNormal, Simulation, World, barabasi_albert

FLOOR = 0.1
N_USERS, N_ITEMS, N_RATINGS = 943, 1682, 80_000


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="interleaved measurements of both sides")
    pairs = parser.parse_args().pairs

    if "MOVIELENS_100K" in os.environ:
        ratings, _ = movielens_100k().split(fold=1)
    else:
        ratings = low_rank(N_USERS, N_ITEMS, missing=1 - N_RATINGS / (N_USERS * N_ITEMS), seed=1).train
    world = World(
        ratings,
        barabasi_albert(400, 3, seed=1),
        delay=LogNormal(median=0.07, sigma=0.8),
        loss=0.01,
    )
    simulation = Simulation(world, seed=1, engine="events")
    simulation.run(until=20.0)  # compiles, and lets the first round of rating requests pass
    n_nodes = world.ratings.n_users + len(world.router_ids)

    ratios, deliveries, timeouts = [], [], []
    for _ in range(pairs):
        deliveries.append(deliveries_per_second(simulation, seconds=10.0))
        timeouts.append(timeouts_per_second(n_nodes, ticks=100))
        ratios.append(deliveries[-1] / timeouts[-1])
    print(f"deliveries per second, events engine: {median(deliveries):,.0f} ({len(ratings):,} ratings)")
    print(f"empty SimPy time-outs per second: {median(timeouts):,.0f} ({n_nodes:,} processes)")
    print(f"ratio events_vs_empty_timeouts {median(ratios):.3f} (floor {FLOOR})")


def deliveries_per_second(simulation: Simulation, seconds: float) -> float:
    """Messages delivered per second of wall time while a simulation goes on for some simulated seconds."""
    now = simulation.env.now
    before = simulation.run(until=now + 1e-6, every=1.0).final["delivered"]
    began = perf_counter()
    after = simulation.run(until=now + seconds, every=seconds).final["delivered"]
    return (after - before) / (perf_counter() - began)


def timeouts_per_second(n_processes: int, ticks: int) -> float:
    """Time-outs per second of wall time of SimPy processes that do nothing else."""
    environment = simpy.Environment()

    def wait():
        while True:
            yield environment.timeout(1.0)

    for _ in range(n_processes):
        environment.process(wait())
    environment.run(until=0.5)
    began = perf_counter()
    environment.run(until=ticks + 0.5)
    return n_processes * ticks / (perf_counter() - began)


if __name__ == "__main__":
    main()
