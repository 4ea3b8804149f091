"""MovieLens 100K learned by the plain algorithm of the first seed paper, over a network with delays and loss.

Users and routers (one for each movie) sit on a Barabasi-Albert underlay; messages take the path's latency and a
lognormal delay, and some are lost; stale ones are discarded by their stamps. The errors are those of the last
profiles, on the official test folds. The learning defaults were chosen inside the training part of fold 1: see
`python -m scenarios.movielens_tuning --help`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from algorithms.datasets import movielens_100k
from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings
from netsim import LogNormal, mae, rmse
from scenarios import study

__all__ = ["DEFAULTS", "main"]

DEFAULTS = Learning(rank=20, lam=0.12, rate=0.05, schedule=Schedule("exponential", 10))


# Root mean square errors that section 4 of the first seed paper gives: its own, and the best registered then.
REFERENCES = {"Seed paper": 0.963, "Best it quotes": 0.894}


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = study.parser("movielens", __doc__, until=600.0, out="out/movielens")
    add_data(parser)
    parser.add_argument(
        "--folds", type=folds, default="1", metavar="K,...", help="official folds, such as 1 or 1,2,5 or 1-5"
    )
    network = parser.add_argument_group("network")
    study.add_network(network, places=400)
    network.add_argument(
        "--delay-median",
        type=study.positive,
        default=0.07,
        metavar="SECONDS",
        help="median of the drawn delay",
    )
    network.add_argument(
        "--delay-sigma", type=float, default=0.8, metavar="S", help="its spread: deviation of the logarithm"
    )
    network.add_argument(
        "--loss", type=study.share, default=0.01, metavar="SHARE", help="messages dropped by the network"
    )
    study.add_learning(parser, DEFAULTS)
    return study.main(parser, run, argv)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the argument that says where MovieLens 100K is."""
    parser.add_argument(
        "--data",
        type=Path,
        default=argparse.SUPPRESS,
        metavar="PATH",
        help="folder of MovieLens 100K, with u.data in it (default: environment variable MOVIELENS_100K, else the "
        "copy in the cache, which is downloaded from grouplens.org once)",
    )


def load(args: argparse.Namespace) -> Ratings:
    """Load MovieLens 100K from where `--data` or the environment says, else from the cache or the network."""
    return movielens_100k(getattr(args, "data", None))


def folds(text: str) -> list[int]:
    """Argument type: official folds, as a list of numbers and ranges within 1 to 5."""
    chosen = study.listed(text)
    if not chosen or not set(chosen) <= set(range(1, 6)):
        raise argparse.ArgumentTypeError(
            f"expected distinct folds within 1 to 5, such as 1 or 1,2,5 or 1-5, got {text!r}"
        )
    return chosen


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    ratings = load(args)
    this = study.Study("movielens", args, references=REFERENCES)
    for fold in args.folds:
        train, test = ratings.split(fold=fold)
        delay = LogNormal(median=args.delay_median, sigma=args.delay_sigma)
        learning = study.learning(args)
        world = study.world(train, args, seed=args.seed, delay=delay, loss=args.loss, learning=learning)
        this.run(f"fold {fold}", world, [rmse(test), mae(test), rmse(train, name="train_rmse")])
    return this.finish()


if __name__ == "__main__":
    sys.exit(main())
