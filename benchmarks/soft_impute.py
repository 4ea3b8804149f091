"""Speed of Soft-Impute by ALS against fancyimpute, a public implementation, at rank 50 and equal objective.

`python benchmarks/soft_impute.py` measures, in turns, both sides in one run with two threads, on MovieLens 100K, items
with 20 ratings or more (943 x 939), or synthetic ratings of that size, and prints

- `softimpute_als_vs_fancyimpute`: fancyimpute's time, at its own tolerance 1e-2 and at most 50 values, over ours. Ours
  runs until its objective is no higher than that of what fancyimpute returned; the run stops where it is not.

fancyimpute, with the scikit-learn it needs, is for this benchmark only: `pip install fancyimpute "scikit-learn<1.6"`.
Without it the ratio is skipped. `--large` prints instead the time and the peak memory of one fit of 6,000 x 3,700 with
1 million ratings.
"""

import argparse
import resource
import sys
import warnings
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from solvers import movielens_sized, threads_are, with_threads

from algorithms.ratings import Ratings
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.soft_impute import SoftImpute

FLOOR = 8
RANK = 50
LAMBDA = 0.1
THREADS = 2


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3, help="interleaved measurements of each side (default: 3)")
    parser.add_argument("--large", action="store_true", help="time and peak memory of 1 million ratings instead")
    args = parser.parse_args()
    if not threads_are(THREADS):
        sys.exit(with_threads(THREADS))
    SoftImpute(0.5, algorithm="als", max_rank=2, stopping="liberal").fit(np.eye(3))  # compiles
    if args.large:
        print_large()
    else:
        print_ratio(args.pairs)


def print_ratio(pairs: int) -> None:
    """Print how much faster than fancyimpute a fit of the same objective is."""
    try:
        from fancyimpute import SoftImpute as Theirs
    except ImportError as missing:
        print(f"softimpute_als_vs_fancyimpute skipped: {missing}; pip install fancyimpute 'scikit-learn<1.6'")
        return
    X = movielens_sized()
    centred = X - np.nanmean(X, axis=0)
    penalty = LAMBDA * float(np.linalg.norm(np.nan_to_num(centred), 2))
    ratios, times = [], []
    for _ in range(pairs):
        theirs, completed = timed(Theirs(penalty, convergence_threshold=1e-2, max_rank=RANK, verbose=False), centred)
        target = objective(centred, completed, penalty)
        ours, solver = until(X, target)
        ratios.append(theirs / ours)
        times.append((theirs, ours))
    print(
        f"objective {solver.objective_[0]:.1f} in {solver.n_iter_[0]} sweeps, {median(t[1] for t in times):.2f} s; "
        f"fancyimpute {target:.1f} in {median(t[0] for t in times):.2f} s"
    )
    print(f"ratio softimpute_als_vs_fancyimpute {median(ratios):.3f} (floor {FLOOR})")


def timed(theirs: Any, centred: np.ndarray) -> tuple[float, np.ndarray]:
    """Seconds of a fit by fancyimpute, and its completed matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = perf_counter()
        completed = theirs.fit_transform(centred.copy())
        return perf_counter() - begin, completed


def objective(centred: np.ndarray, completed: np.ndarray, penalty: float) -> float:
    """Soft-Impute's objective of the low-rank matrix that a completed one gives in one more thresholded SVD."""
    U, d, Vt = np.linalg.svd(completed, full_matrices=False)
    weights = np.maximum(d[:RANK] - penalty, 0)
    errors = (centred - (U[:, :RANK] * weights) @ Vt[:RANK])[~np.isnan(centred)]
    return float(errors @ errors / 2 + penalty * weights.sum())


def until(X: np.ndarray, target: float) -> tuple[float, SoftImpute]:
    """Seconds of a fit with as few sweeps as reach an objective, and the solver."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for sweeps in range(5, 200, 5):
            solver = SoftImpute(LAMBDA, algorithm="als", max_rank=RANK, tol=0.0, max_iter=sweeps)
            begin = perf_counter()
            solver.fit(X)
            seconds = perf_counter() - begin
            if solver.objective_[0] <= target:
                return seconds, solver
    sys.exit(f"Soft-Impute did not reach the objective {target:.1f} of fancyimpute")


def print_large() -> None:
    """Print time and peak memory of one fit of a large sparse matrix."""
    ratings = large(6_000, 3_700, 1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = perf_counter()
    solver = SoftImpute(LAMBDA, algorithm="als", max_rank=RANK).fit(ratings)
    seconds = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{ratings.n_users} x {ratings.n_items}, {len(ratings)} ratings, rank {RANK}: {solver.n_iter_[0]} sweeps, "
        f"{seconds:.1f} s; peak memory of the process {peak / 2**20:.2f} GiB ({before / 2**20:.2f} before the fit)"
    )


def large(n_users: int, n_items: int, n_ratings: int) -> Ratings:
    """Ratings from 1 to 5 of rank 10 with noise, some users and items seen far more often than others."""
    rng = np.random.default_rng(1)
    weights = [np.exp(rng.standard_normal(n)) for n in (n_users, n_items)]
    draws = [rng.choice(len(w), int(1.5 * n_ratings), p=w / w.sum()) for w in weights]
    cells = rng.permutation(np.unique(draws[0] * n_items + draws[1]))[:n_ratings]
    user, item = np.divmod(cells, n_items)
    taste, quality = rng.standard_normal((n_users, 10)), rng.standard_normal((n_items, 10)) / np.sqrt(10)
    liking = 3.5 + 0.6 * np.einsum("ij,ij->i", taste[user], quality[item]) + 0.7 * rng.standard_normal(len(user))
    value = np.clip(np.rint(liking), 1, 5)
    return Ratings.from_arrays(user, item, value, scale=(1, 5), user_ids=range(n_users), item_ids=range(n_items))


if __name__ == "__main__":
    main()
