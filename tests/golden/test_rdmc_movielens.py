"""RDMC on MovieLens 100K, items with 20 ratings or more, against the errors of the second seed's implementation."""

import os
from pathlib import Path

import numpy as np
import pytest

from algorithms.datasets import movielens_100k
from algorithms.solvers import RDMC

PLACES = [
    Path(os.environ.get("MOVIELENS_100K") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[3] / "shared" / "data" / "ml-100k",
]
OPTIONS = {"categories": range(1, 6), "stopping": "liberal"}


class Split:
    """Training ratings with NaN elsewhere, and the ratings held out."""

    def __init__(self, ratings, held_out):
        often = np.flatnonzero(np.bincount(ratings.item) >= 20)
        matrix = np.full((ratings.n_users, ratings.n_items), np.nan)
        matrix[ratings.user, ratings.item] = ratings.value
        self.train = matrix[:, often]
        self.column, self.row = np.divmod(held_out, len(matrix))
        self.truth = self.train[self.row, self.column].copy()
        self.train[self.row, self.column] = np.nan

    def mean_absolute_errors(self, solver):
        """One for each lambda."""
        predicted = [solver.predict(self.row, self.column, at=at) for at in range(len(solver.path_))]
        return np.abs(np.array(predicted) - self.truth).mean(axis=1)


@pytest.fixture(scope="module")
def split(golden):
    for place in PLACES:
        if (place / "u.data").is_file():
            held_out = np.loadtxt(golden.place / "movielens" / "test_idx_1based_colmajor.csv", dtype=np.int64) - 1
            return Split(movielens_100k(place), held_out)
    pytest.skip(f"needs MovieLens 100K in {PLACES[1]} or MOVIELENS_100K, which may not be passed on with the project")


@pytest.fixture
def expected(golden):
    def read(name):
        return np.genfromtxt(golden.place / "movielens" / name, delimiter=",", names=True, deletechars='"')

    return read


def assert_same(split, solver, expected):
    assert split.train.shape == (943, 939)
    np.testing.assert_allclose(solver.d_max_, expected["d_max"], rtol=1e-10)
    np.testing.assert_array_equal(solver.n_iter_, expected["nb_iter"])
    np.testing.assert_allclose(split.mean_absolute_errors(solver), expected["mae"], atol=1e-3)


def test_smallest_lambda(split, expected):
    table = expected("rdmc_phuber_maxiter10_test_mae.csv")[:1]
    assert_same(split, RDMC(table["lambda"], **OPTIONS).fit(split.train), table)


@pytest.mark.statistical
def test_ten_iterations_at_each_lambda(golden, split, expected):
    table = expected("rdmc_phuber_maxiter10_test_mae.csv")
    solver = RDMC(table["lambda"], **OPTIONS).fit(split.train)
    assert_same(split, solver, table)
    theirs = np.loadtxt(
        golden.place / "movielens" / "rdmc_phuber_maxiter10_test_pred.csv.gz", delimiter=",", skiprows=1
    )
    for at, predicted in enumerate(theirs.T):
        assert (solver.predict(split.row, split.column, at=at) == predicted).mean() > 0.999


@pytest.mark.statistical
def test_until_convergence(split, expected):
    table = expected("rdmc_phuber_strict_grid4to7_test_mae.csv")
    solver = RDMC(table["lambda"], **OPTIONS, max_iter=100).fit(split.train)
    assert_same(split, solver, table)
    np.testing.assert_allclose(solver.objective_, table["objective"], rtol=1e-6)
