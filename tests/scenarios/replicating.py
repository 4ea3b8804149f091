"""An experiment small enough to test what runs experiments: its functions must be importable in worker processes."""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import matplotlib.pyplot as plt
import numpy as np

from scenarios import study
from scenarios.replications import Finding, Part, Replications, grid, parser, summarize

NAME = "dice"


@dataclass(frozen=True)
class Settings:
    """A seed, and a folder where each call leaves a file; a task may wait or fail."""

    seed: int
    calls: str
    sides: int = 6
    slow: float = 0.0
    fails: str = ""


@dataclass(frozen=True)
class Task:
    """A throw."""

    replication: int
    dice: int
    kinds: tuple[str, ...] = ("sum", "largest")


def throw(task, settings):
    """Rows of a throw; leaves a file for each call."""
    Path(settings.calls, f"{task.replication}-{task.dice}-{os.getpid()}-{len(os.listdir(settings.calls))}").touch()  # noqa: PTH208
    if settings.fails == f"{task.replication}-{task.dice}":
        raise ValueError("the dice fell off the table")
    sleep(settings.slow)
    thrown = np.random.default_rng([settings.seed, task.replication, task.dice]).integers(1, settings.sides + 1, 40)
    found = {"sum": float(thrown[: task.dice].sum()), "largest": float(thrown[: task.dice].max())}
    rows = [{"method": kind, "metric": "eyes", "value": found[kind]} for kind in task.kinds]
    rows.append({"method": "sum", "metric": "nothing", "value": float("nan")})
    rows.append({"method": "sum", "metric": "threads", "value": float(os.environ["OPENBLAS_NUM_THREADS"])})
    return [*rows, {"method": "sum", "metric": "cpu_seconds", "value": float(os.getpid())}]


def report(rows):
    """A table, a finding and a figure."""
    eyes = rows[rows["metric"] == "eyes"]
    if eyes.empty:
        return []
    figure, ax = plt.subplots()
    ax.plot(eyes["value"])
    mean = eyes["value"].mean()
    return [
        Part(
            "eyes",
            "Eyes",
            grid(summarize(eyes), down="method", across="dice"),
            [Finding("dice have eyes", bool(mean > 0), f"{mean:.1f} on average")],
            figure,
        )
    ]


def main(argv=None):
    """Run from the command line."""
    made = parser(NAME, "Throws dice.", replications=2, paper=5)
    made.add_argument("--calls", required=True)
    made.add_argument("--sides", type=int, default=6)
    made.add_argument("--slow", type=float, default=0.0)
    made.add_argument("--fails", default="")
    return study.main(made, run, argv)


def run(args: argparse.Namespace) -> int:
    """Run with parsed arguments."""
    settings = Settings(args.seed, args.calls, args.sides, args.slow, args.fails)
    return Replications(NAME, args, settings, throw, report).run(tasks(args.replications))


def tasks(replications):
    """Two throws for each replication."""
    return [Task(replication, dice) for replication in range(replications) for dice in (1, 3)]


if __name__ == "__main__":
    from tests.scenarios import replicating

    sys.exit(replicating.main())
