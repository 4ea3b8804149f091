import numpy as np
import pytest
from scipy.linalg import eigh_tridiagonal

from algorithms.solvers import tridiagonal
from algorithms.solvers.tridiagonal import eigenvalues_above, reach


def random(size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(size) ** 2, rng.standard_normal(size - 1)


CASES = {
    "random": random(200),
    "positive": (random(200)[0] + 4, random(200)[1]),
    "pairs": (
        np.abs(np.arange(-60.0, 61.0)),
        np.ones(120),
    ),  # Wilkinson's: those of a pair differ by rounding
    "equal": (np.repeat([9.0, 4.0, 1.0, 0.0], 40), np.zeros(159)),
    "zero on the diagonal": (np.zeros(120), np.ones(119)),
    "large and small": (np.geomspace(1e12, 1e-4, 150), np.geomspace(1e11, 1e-5, 149)),
    "two": (np.array([2.0, 3.0]), np.array([1.0])),
}


def above(name, floor):
    ascending = eigh_tridiagonal(*CASES[name], eigvals_only=True)
    return ascending[ascending > floor][::-1]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.9, 1.0])
def test_all_eigenvalues_above_a_number(name, share):
    ascending = eigh_tridiagonal(*CASES[name], eigvals_only=True)
    place = max(int((1 - share) * len(ascending)), 1)
    floor = (ascending[place - 1] + ascending[place]) / 2 + 1e-3 if share < 1 else ascending[0] - 1
    found = eigenvalues_above(*CASES[name], floor)
    np.testing.assert_allclose(found, above(name, floor), atol=4e-15 * reach(*CASES[name]), rtol=0)


@pytest.mark.parametrize("name", CASES)
def test_none_above(name):
    assert len(eigenvalues_above(*CASES[name], eigh_tridiagonal(*CASES[name], eigvals_only=True)[-1] * 1.001)) == 0
    assert len(eigenvalues_above(*CASES[name], reach(*CASES[name]))) == 0


def test_counts_find_out_where_newtons_method_went_astray(monkeypatch):
    """All brackets end at one eigenvalue; halving them finds the others."""
    expected = above("positive", 7.0)
    monkeypatch.setattr(tridiagonal, "_newton", lambda *args: np.full(len(args[2]), expected[3]))
    np.testing.assert_allclose(eigenvalues_above(*CASES["positive"], 7.0), expected, rtol=1e-14)


def test_few_do_without_lapack(monkeypatch):
    monkeypatch.setattr(tridiagonal, "eigenvalues", None)
    assert len(eigenvalues_above(*CASES["positive"], 6.0)) > 20


def test_reach_bounds_all():
    for name, matrix in CASES.items():
        assert np.abs(eigh_tridiagonal(*matrix, eigvals_only=True)).max() <= reach(*matrix) * (1 + 1e-15), name
