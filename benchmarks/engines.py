"""Speed of the compiled engine on the README's world at MovieLens 100K size.

`python benchmarks/engines.py` measures, in turns, all sides of each ratio in one run, and prints the medians:

- `compiled_vs_events`: messages delivered per second, compiled engine on one thread over the events engine;
- `compiled_vs_bare_loop_1thread`: messages delivered per second over updates per second of a bare loop that applies
  equations (3) and (4) in a random order drawn beforehand, on the same ratings and rank;
- `threads_2_vs_1`: two threads over one, on a world ten times as large.

Compilation is excluded. Data: MovieLens 100K where the environment variable MOVIELENS_100K names it, else synthetic
ratings of its size. With `--scale` it prints the table of the docs: worlds up to 100,000 users x 20,000 items with 10
million ratings, each beside a bare loop of its size.
"""

import argparse
import os
import resource
from statistics import median
from time import perf_counter

import numpy as np

from algorithms.datasets import movielens_100k
from algorithms.learning import Learning
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential, random_order
from netsim import LogNormal, Simulation, World, barabasi_albert

RANK = 10
PERIOD = 10.0
FLOORS = {"compiled_vs_events": 40.0, "compiled_vs_bare_loop_1thread": 0.1, "threads_2_vs_1": 1.4}


def main() -> None:
    """Print the ratios, or the table of sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="interleaved measurements of each side")
    parser.add_argument("--scale", action="store_true", help="print the table of world sizes instead")
    args = parser.parse_args()
    if args.scale:
        print_scale()
        return

    ratings = movielens_sized()
    compiled, events = started(ratings, "compiled", 1), started(ratings, "events", 1)
    bare = BareLoop(ratings)
    large = random_ratings(9_430, 16_820, 800_000)
    alone, team = started(large, "compiled", 1), started(large, "compiled", 2)
    sides: dict[str, list[float]] = {name: [] for name in ("compiled", "events", "bare", "alone", "team")}
    for _ in range(args.pairs):
        sides["compiled"].append(deliveries_per_second(compiled, 20 * PERIOD))
        sides["bare"].append(bare.updates_per_second())
        sides["events"].append(deliveries_per_second(events, PERIOD))
        sides["alone"].append(deliveries_per_second(alone, 2 * PERIOD))
        sides["team"].append(deliveries_per_second(team, 2 * PERIOD))
    print(
        f"{len(ratings):,} ratings: compiled, one thread {rate(sides['compiled'])} deliveries/s; "
        f"events {rate(sides['events'])} deliveries/s; bare loop {rate(sides['bare'])} updates/s"
    )
    print(f"{len(large):,} ratings: one thread {rate(sides['alone'])}, two threads {rate(sides['team'])} deliveries/s")
    for name, (over, under) in {
        "compiled_vs_events": ("compiled", "events"),
        "compiled_vs_bare_loop_1thread": ("compiled", "bare"),
        "threads_2_vs_1": ("team", "alone"),
    }.items():
        value = median(a / b for a, b in zip(sides[over], sides[under], strict=True))
        print(f"ratio {name} {value:.3f} (floor {FLOORS[name]:g})")


def print_scale() -> None:
    """Print, for worlds of growing size, the speed beside a bare loop of the same size, and the memory."""
    print("| users | items | ratings | deliveries/s | bare loop updates/s | ratio | peak memory |")
    print("|---|---|---|---|---|---|---|")
    for n_users, n_items, n_ratings in (
        (943, 1_682, 80_000),
        (9_430, 16_820, 800_000),
        (30_000, 20_000, 3_000_000),
        (100_000, 20_000, 10_000_000),
    ):
        ratings = random_ratings(n_users, n_items, n_ratings)
        bare = BareLoop(ratings)
        simulation = started(ratings, "compiled", 1, rounds=1)
        seconds = PERIOD if n_ratings > 1_000_000 else 10 * PERIOD
        ratios, deliveries, updates = [], [], []
        for _ in range(3):
            deliveries.append(deliveries_per_second(simulation, seconds))
            updates.append(bare.updates_per_second())
            ratios.append(deliveries[-1] / updates[-1])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"| {n_users:,} | {n_items:,} | {n_ratings:,} | {rate(deliveries)} | {rate(updates)} | "
            f"{median(ratios):.3f} | {peak:.1f} GiB |",
            flush=True,
        )


def rate(measured: list[float]) -> str:
    """Median of rates, in millions."""
    return f"{median(measured) / 1e6:.2f} M"


def movielens_sized() -> Ratings:
    """MovieLens 100K, training part of fold 1, or as many random ratings."""
    if "MOVIELENS_100K" in os.environ:
        return movielens_100k().split(fold=1)[0]
    return random_ratings(943, 1_682, 80_000)


def random_ratings(n_users: int, n_items: int, n_ratings: int) -> Ratings:
    """Ratings 1 to 5 at random; items as uneven in popularity as MovieLens."""
    rng = np.random.default_rng(1)
    user = rng.integers(n_users, size=2 * n_ratings)
    item = np.minimum(rng.exponential(n_items / 5, size=2 * n_ratings).astype(np.int64), n_items - 1)
    pairs = rng.permutation(np.unique(user * n_items + item))[:n_ratings]
    user, item = np.divmod(pairs, n_items)
    value = rng.integers(1, 6, size=len(pairs)).astype(float)
    return Ratings.from_arrays(user, item, value, scale=(1, 5), user_ids=range(n_users), item_ids=range(n_items))


def started(ratings: Ratings, engine: str, threads: int, rounds: int = 2) -> Simulation:
    """The README's world, after its first rounds, in which the routers ask for their ratings."""
    world = World(
        ratings,
        barabasi_albert(400, 3, seed=1),
        user_broadcast=PERIOD,
        router_broadcast=PERIOD,
        delay=LogNormal(median=0.07, sigma=0.8),
        loss=0.01,
        learning=Learning(rank=RANK),
    )
    simulation = Simulation(world, seed=1, engine=engine, threads=threads)
    simulation.run(until=rounds * PERIOD, every=rounds * PERIOD)
    return simulation


def deliveries_per_second(simulation: Simulation, seconds: float) -> float:
    """Messages delivered per second of wall time while a simulation goes on for some simulated seconds."""
    now = simulation.env.now
    before = simulation.last["delivered"]
    began = perf_counter()
    after = simulation.run(until=now + seconds, every=seconds).final["delivered"]
    return (after - before) / (perf_counter() - began)


class BareLoop:
    """Equations (3) and (4) in a random order drawn beforehand, one update after another."""

    def __init__(self, ratings: Ratings) -> None:
        self._sequential = Sequential(ratings, Learning(rank=RANK), 1)
        self._order = random_order(len(ratings), min(20_000_000, 20 * len(ratings)), seed=1)
        self._sequential.replay(self._order[0][:10], self._order[1][:10])

    def updates_per_second(self) -> float:
        """Updates per second of wall time."""
        began = perf_counter()
        self._sequential.replay(*self._order)
        return len(self._order[0]) / (perf_counter() - began)


if __name__ == "__main__":
    main()
