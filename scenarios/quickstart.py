"""A first run: 200 users and 200 routers learn synthetic low-rank ratings over a simulated network.

Half of the ratings are missing; the table shows the error on them, on the observed ones, and against the truth.
"""

import argparse
import sys
from collections.abc import Sequence

from algorithms.learning import Learning, Schedule
from algorithms.synthetic import low_rank
from netsim import LogNormal, World, barabasi_albert, rmse, truth_rmse
from scenarios import study

__all__ = ["main"]

DEFAULTS = Learning(rank=4, lam=0.02, rate=0.03, schedule=Schedule("inverse", 10))


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = study.parser("quickstart", __doc__, until=300.0, out="out/quickstart")
    parser.add_argument("--users", type=study.at_least(1), default=200, metavar="M", help="users")
    parser.add_argument(
        "--items", type=study.at_least(1), default=200, metavar="N", help="items, each on a router of its own"
    )
    parser.add_argument("--places", type=study.at_least(4), default=100, metavar="P", help="places of the underlay")
    parser.add_argument(
        "--loss", type=study.share, default=0.01, metavar="SHARE", help="messages dropped by the network"
    )
    study.add_learning(parser, DEFAULTS)
    return study.main(parser, run, argv)


def run(args: argparse.Namespace) -> int:
    """Run the scenario with parsed arguments; returns the exit status."""
    data = low_rank(args.users, args.items, rank=4, missing=0.5, seed=args.seed)
    world = World(
        data.train,
        barabasi_albert(args.places, 3, seed=args.seed),
        delay=LogNormal(median=0.07, sigma=0.8),
        loss=args.loss,
        learning=study.learning(args),
    )
    this = study.Study("quickstart", args)
    this.run("quickstart", world, [rmse(data.test), rmse(data.train, name="train_rmse"), truth_rmse(data.truth)])
    return this.finish()


if __name__ == "__main__":
    sys.exit(main())
