"""Speed of the centralized solvers on MovieLens 100K, items with 20 ratings or more: 943 x 939.

`python benchmarks/solvers.py` measures, in turns, both sides of each ratio in one run with two threads, and prints the
medians:

- `rdmc_vs_full_svd`: RDMC until convergence at lambda 0.1, its time with `numpy.linalg.svd` for each thresholded SVD
  over that with the default. All else is shared, and so is the result: the run stops where they differ.

With `--path` it also prints the times of RDMC and Soft-Impute at the ten lambdas of their default grids. Compilation is
excluded. Data: MovieLens 100K where the environment variable MOVIELENS_100K names it, else synthetic ratings of that
size.
"""

import argparse
import os
import subprocess
import sys
import warnings
from statistics import median
from time import perf_counter

import numpy as np

from algorithms.datasets import movielens_100k
from algorithms.solvers import RDMC, ConvergenceWarning, SoftImpute

FLOORS = {"rdmc_vs_full_svd": 2.5}
LAMBDA = 0.1
OFTEN = 20  # ratings of an item that takes part


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3, help="interleaved measurements of each side (default: 3)")
    parser.add_argument("--path", action="store_true", help="also print the times of ten lambdas")
    parser.add_argument("--threads", type=int, default=2, help="of the linear algebra (default: 2)")
    args = parser.parse_args()
    if not threads_are(args.threads):
        sys.exit(with_threads(args.threads))
    X = movielens_sized()
    print_rdmc(X, args.pairs)
    if args.path:
        print_paths(X)


def threads_are(count: int) -> bool:
    """Whether the linear algebra of this process runs with so many threads; it reads that when it is loaded."""
    return all(os.environ.get(name) == str(count) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))


def with_threads(count: int) -> int:
    """Run this benchmark in a process with so many threads; gives its exit status."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(count))
    return subprocess.run([sys.executable, *sys.argv], env=os.environ | threads, check=False).returncode


def movielens_sized() -> np.ndarray:
    """Ratings with NaN where they are missing, float64, shape (943, 939)."""
    if os.environ.get("MOVIELENS_100K"):
        ratings = movielens_100k()
        X = np.full((ratings.n_users, ratings.n_items), np.nan)
        X[ratings.user, ratings.item] = ratings.value
        print("data: MovieLens 100K")
        return X[:, (~np.isnan(X)).sum(axis=0) >= OFTEN]
    print("data: synthetic, of the size of MovieLens 100K; set MOVIELENS_100K to its folder for the real ones")
    return synthetic(943, 939, 94_968)


def synthetic(n_rows: int, n_columns: int, n_observed: int) -> np.ndarray:
    """Ratings from 1 to 5 of rank 10 with noise, liked items seen more often, NaN where missing."""
    rng = np.random.default_rng(1)
    taste = rng.standard_normal((n_rows, 10)) @ rng.standard_normal((10, n_columns)) / np.sqrt(10)
    liking = 3.5 + 0.5 * rng.standard_normal(n_columns) + 0.6 * taste + 0.7 * rng.standard_normal(taste.shape)
    chance = np.exp(0.5 * liking + 1.2 * rng.standard_normal(n_columns) + 1.0 * rng.standard_normal((n_rows, 1)))
    seen = rng.choice(liking.size, n_observed, replace=False, p=(chance / chance.sum()).ravel())
    X = np.full(liking.shape, np.nan)
    X.flat[seen] = np.clip(np.rint(liking.flat[seen]), 1, 5)
    return X


def print_rdmc(X: np.ndarray, pairs: int) -> None:
    """Print what the thresholded SVD of RDMC gains over a full one."""
    RDMC(LAMBDA, categories=range(1, 6), stopping="liberal", max_iter=1).fit(X)  # compiles
    ours, full = [], []
    for _ in range(pairs):
        seconds, fast = fit_time(X, LAMBDA, "auto")
        ours.append(seconds)
        seconds, slow = fit_time(X, LAMBDA, "full")
        full.append(seconds)
        if not np.array_equal(fast.complete(), slow.complete()) or fast.n_iter_ != slow.n_iter_:
            sys.exit("rdmc_vs_full_svd: the two sides gave different completed matrices")
    shape = " x ".join(map(str, X.shape))
    print(
        f"RDMC {shape}, lambda {LAMBDA:g}, {fast.n_iter_[0]} iterations: {median(ours):.2f} s; "
        f"with full SVDs {median(full):.2f} s"
    )
    print_ratio("rdmc_vs_full_svd", full, ours)


def print_paths(X: np.ndarray) -> None:
    """Print the times of ten lambdas."""
    for name, solver in (("RDMC", RDMC(categories=range(1, 6))), ("Soft-Impute", SoftImpute())):
        seconds = timed(solver, X)
        print(f"{name}, ten lambdas, {solver.n_iter_.sum()} iterations: {seconds:.1f} s")


def fit_time(X: np.ndarray, lam: float, svd: str) -> tuple[float, RDMC]:
    """Time a fit of RDMC with the strict stopping rule, in seconds."""
    solver = RDMC(lam, categories=range(1, 6), svd=svd)
    return timed(solver, X), solver


def timed(solver: RDMC | SoftImpute, X: np.ndarray) -> float:
    """Fit, and give the seconds that it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = perf_counter()
        solver.fit(X)
        return perf_counter() - begin


def print_ratio(name: str, over: list[float], under: list[float]) -> None:
    """Print the median of the ratios of interleaved pairs."""
    value = median(a / b for a, b in zip(over, under, strict=True))
    print(f"ratio {name} {value:.3f} (floor {FLOORS[name]:g})")


if __name__ == "__main__":
    main()
