"""How the learning defaults of `scenarios.movielens` were chosen, without a look at any test rating.

The training part of one official fold is split once more: 90% to learn from, 10% to validate on. The sequential form
of section 4 of the first seed paper learns each point of a grid; the table shows the validation RMSE after some passes
over the ratings (a pass is one update of each side of each rating on average).
"""

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from algorithms.learning import Learning, Schedule
from algorithms.metrics import rmse
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential
from netsim.files import write_text
from scenarios import study
from scenarios.movielens import add_data, load

__all__ = ["main"]

PASSES = (10, 20, 30, 40, 60)
RANKS = (10, 20)
WEIGHTS = (0.08, 0.10, 0.12, 0.14)
RATES = (0.02, 0.03, 0.05)
SCHEDULES = (
    Schedule("inverse", 8),
    Schedule("inverse", 20),
    Schedule("exponential", 5),
    Schedule("exponential", 10),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = study.Parser("movielens_tuning", __doc__)
    add_data(parser)
    parser.add_argument(
        "--fold", type=int, default=1, choices=range(1, 6), help="official fold whose training part is used"
    )
    parser.add_argument(
        "--seed", type=study.integer, default=1, metavar="N", help="seed of the split and of the learning"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/movielens_tuning"), metavar="DIR", help="folder for results"
    )
    return study.main(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Run the grid with parsed arguments; returns the exit status."""
    study.make_folder(args.out)
    train, _ = load(args).split(fold=args.fold)
    held_out = np.random.default_rng(args.seed).random(len(train)) < 0.1
    inner, validation = train.select(~held_out), train.select(held_out)
    grid = list(itertools.product(RANKS, WEIGHTS, RATES, SCHEDULES))
    rows: list[dict[str, float | str]] = []
    stopped = False
    try:
        for rank, lam, rate, schedule in tqdm(grid, disable=None, unit="point"):
            learning = Learning(rank=rank, lam=lam, rate=rate, schedule=schedule)
            rows.append(validate(learning, inner, validation, args.seed))
    except KeyboardInterrupt:
        if not rows:
            raise
        stopped = True
    table = pd.DataFrame(rows).sort_values(f"pass_{PASSES[-1]}", ignore_index=True)
    write_text(args.out / "grid.csv", table.to_csv(index=False))
    write_text(args.out / "best.json", json.dumps(table.iloc[0].to_dict(), indent=2, default=float) + "\n")
    print(table.head(12).to_string(index=False, float_format="{:.4f}".format))  # noqa: T201
    print(f"\nBest 12 of {len(table)} by validation RMSE after {PASSES[-1]} passes. Written to {args.out}.")  # noqa: T201
    if stopped:
        print(f"Interrupted: {len(table)} of {len(grid)} points were measured, and are kept.")  # noqa: T201
    return 130 if stopped else 0


def validate(learning: Learning, inner: Ratings, validation: Ratings, seed: int) -> dict[str, float | str]:
    """Validation RMSE of one point of the grid after each number of passes."""
    predictor = Predictor(inner)
    sequential = Sequential(inner, learning, seed)
    row: dict[str, float | str] = {
        "rank": learning.rank,
        "lam": learning.lam,
        "rate": learning.rate.parameters()[0],  # type: ignore[union-attr]
        "schedule": learning.schedule.form,
        "half_life": learning.schedule.half_life,
    }
    done = 0
    for passes in PASSES:
        sequential.run((passes - done) * 2 * len(inner))
        done = passes
        predicted = predictor(sequential.user_profiles, sequential.item_profiles, validation.user, validation.item)
        row[f"pass_{passes}"] = rmse(predicted, validation.value)
    return row


if __name__ == "__main__":
    sys.exit(main())
