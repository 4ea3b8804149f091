"""Speed of the compiled engine on the README's world at MovieLens 100K size.

`python benchmarks/engines.py` measures, in turns, all sides of each ratio in one run, and prints the medians:

- `compiled_vs_events`: messages delivered per second, compiled engine on one thread over the events engine;
- `compiled_vs_bare_loop_1thread`: messages delivered per second over updates per second of a bare loop that applies
  equations (3) and (4) in a random order drawn beforehand, on the same ratings and rank;
- `threads_2_vs_1`: two threads over one, on a world ten times as large;
- `churn_loss_vs_plain`: messages sent per second with churn, checkpoints, bursts of loss, duplicates and messages held
  back, over those without;
- `everything_on_vs_plain`: the same with all that a living network does as well: half of the ratings arrive while it
  runs, recommendation requests, uplinks, processing, learned contact lists;
- `features_off_vs_plain_before`: messages delivered per second, over those of the last commit that had none of these
  features. It needs the history of the repository; where that is missing, it says so and prints no ratio.

`--only-features` measures the last three alone. Compilation is excluded. Data: MovieLens 100K where the environment
variable MOVIELENS_100K names it, else synthetic ratings of its size. With `--scale` it prints the table of the docs:
worlds up to 100,000 users x 20,000 items with 10 million ratings, each beside a bare loop of its size.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
import tarfile
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

import netsim
from algorithms.datasets import movielens_100k
from algorithms.learning import Learning
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential, random_order
from netsim import LogNormal, Simulation, World, barabasi_albert

RANK = 10
PERIOD = 10.0
FLOORS = {
    "compiled_vs_events": 40.0,
    "compiled_vs_bare_loop_1thread": 0.1,
    "threads_2_vs_1": 1.4,
    "churn_loss_vs_plain": 0.5,
    "everything_on_vs_plain": 0.3,
    "features_off_vs_plain_before": 0.97,
}
BEFORE = "ba1a7b2ab5e855d956dc2b74187be7989f5e0c26"  # the last commit without churn models, bursts and faults
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Print the ratios, or the table of sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, help="interleaved measurements of each side (default: 5; features: 9)")
    parser.add_argument("--only-features", action="store_true", help="print the ratios of the features alone")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--scale", action="store_true", help="print the table of world sizes instead")
    args = parser.parse_args()
    if args.scale:
        print_scale()
        return
    if args.serve:
        serve()
        return
    if not args.only_features:
        print_engines(args.pairs or 5)
    print_features(args.pairs or 9)


def print_engines(pairs: int) -> None:
    """Print the ratios between engines, threads and the bare loop."""
    ratings = movielens_sized()
    compiled, events = started(ratings, "compiled", 1), started(ratings, "events", 1)
    bare = BareLoop(ratings)
    large = random_ratings(9_430, 16_820, 800_000)
    alone, team = started(large, "compiled", 1), started(large, "compiled", 2)
    sides: dict[str, list[float]] = {name: [] for name in ("compiled", "events", "bare", "alone", "team")}
    for _ in range(pairs):
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
        print_ratio(name, sides[over], sides[under])


def print_features(pairs: int) -> None:
    """Print what the features of the network cost where they are on, and where they are off."""
    ratings = movielens_sized()
    plain, busy = started(ratings, "compiled", 1), started(ratings, "compiled", 1, **features())
    full = started(ratings, "compiled", 1, **features(), **living(ratings))
    sides: dict[str, list[float]] = {name: [] for name in ("plain", "busy", "full", "now", "before")}
    for _ in range(pairs):
        sides["plain"].append(messages_per_second(plain, 20 * PERIOD, "sent"))
        sides["busy"].append(messages_per_second(busy, 20 * PERIOD, "sent"))
        sides["full"].append(messages_per_second(full, 20 * PERIOD, "sent"))
    print(
        f"plain {rate(sides['plain'])} messages/s; churn and loss {rate(sides['busy'])} messages/s; everything "
        f"{rate(sides['full'])} messages/s"
    )
    print_ratio("churn_loss_vs_plain", sides["busy"], sides["plain"])
    print_ratio("everything_on_vs_plain", sides["full"], sides["plain"])
    with TemporaryDirectory() as folder:
        if not check_out(Path(folder)):
            print(f"features_off_vs_plain_before: commit {BEFORE[:7]} is not in this copy of the repository")
            return
        with Served(ROOT) as now, Served(Path(folder)) as before:
            for _ in range(pairs):
                sides["now"].append(now.deliveries_per_second())
                sides["before"].append(before.deliveries_per_second())
    print(f"now {rate(sides['now'])} deliveries/s; before {rate(sides['before'])} deliveries/s")
    print_ratio("features_off_vs_plain_before", sides["now"], sides["before"])


def print_ratio(name: str, over: list[float], under: list[float]) -> None:
    """Print the median of the ratios of interleaved pairs."""
    value = median(a / b for a, b in zip(over, under, strict=True))
    print(f"ratio {name} {value:.3f} (floor {FLOORS[name]:g})")


def features() -> dict[str, Any]:
    """Options of a world in which nodes come and go and the network does all that it can to a message."""
    online, offline = (netsim.Weibull(length * PERIOD, 0.67) for length in (20, 10))
    sessions = netsim.Sessions(online, offline, correlation=0.3)
    return {
        "user_churn": sessions,
        "router_churn": sessions,
        "user_return": netsim.Checkpoint(5 * PERIOD),
        "router_return": netsim.Checkpoint(5 * PERIOD),
        "loss": netsim.GilbertElliott(0.05, 3 * PERIOD),
        "duplication": 0.01,
        "reordering": netsim.Reordering(0.01, PERIOD),
    }


def living(ratings: Ratings) -> dict[str, Any]:
    """Options of a network in which ratings come, users ask for recommendations, messages queue, lists are learned."""
    return {
        "arrivals": netsim.Arrivals.drawn(ratings, span=400 * PERIOD, known=0.5, seed=1),
        "recommendations": netsim.Recommendations(ratings, mean_gap=2 * PERIOD),
        "user_contacts": netsim.LearnedRouters(),
        "user_patience": 20 * PERIOD,
        "user_uplink": 1e6,
        "router_uplink": 1e6,
        "user_processing": 1e-4,
        "router_processing": 1e-4,
        "queue_limit": 1000,
    }


def check_out(folder: Path) -> bool:
    """Put the files of the commit before the features into a folder; False where the history lacks it."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", BEFORE], capture_output=True, check=False)
    if packed.returncode != 0:
        return False
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return True


class Served:
    """A process of its own that runs this file on one version of the packages, and measures when asked."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def deliveries_per_second(self) -> float:
        """Let it go on for some simulated time; messages delivered per second of wall time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def serve() -> None:
    """Measure the plain world once for each line that comes in."""
    simulation = started(movielens_sized(), "compiled", 1)
    for _ in sys.stdin:
        print(deliveries_per_second(simulation, 20 * PERIOD), flush=True)


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


def started(ratings: Ratings, engine: str, threads: int, rounds: int = 2, **changes: Any) -> Simulation:
    """The README's world, after its first rounds, in which the routers ask for their ratings."""
    world = World(
        ratings,
        barabasi_albert(400, 3, seed=1),
        user_broadcast=PERIOD,
        router_broadcast=PERIOD,
        delay=LogNormal(median=0.07, sigma=0.8),
        loss=0.01,
        learning=Learning(rank=RANK),
    ).replace(**changes)
    simulation = Simulation(world, seed=1, engine=engine, threads=threads)
    simulation.run(until=rounds * PERIOD, every=rounds * PERIOD)
    return simulation


def deliveries_per_second(simulation: Simulation, seconds: float) -> float:
    """Messages delivered per second of wall time while a simulation goes on for some simulated seconds."""
    return messages_per_second(simulation, seconds, "delivered")


def messages_per_second(simulation: Simulation, seconds: float, fate: str) -> float:
    """Messages of one fate per second of wall time while a simulation goes on for some simulated seconds."""
    now = simulation.env.now
    before = simulation.last[fate]
    began = perf_counter()
    after = simulation.run(until=now + seconds, every=seconds).final[fate]
    return float(after - before) / (perf_counter() - began)


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
