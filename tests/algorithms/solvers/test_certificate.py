import numpy as np
import pytest

from algorithms.certificate import certificate
from algorithms.objective import objective
from algorithms.ratings import Ratings
from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.soft_impute import SoftImpute


def ratings(n=30, p=20, share=0.6, seed=0):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((n, p)) < share)
    truth = 3 + 0.6 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
    value = truth[user, item] + 0.3 * rng.standard_normal(len(user))
    return Ratings.from_arrays(user, item, value, user_ids=range(n), item_ids=range(p))


@pytest.fixture(scope="module")
def optimum():
    known = ratings()
    solver = SoftImpute(2.0, relative=False, centring="none", tol=1e-16, max_iter=20_000).fit(known)
    return known, solver.objective_[0]


def test_any_profiles_lie_above_the_optimum_and_their_bound_below(optimum):
    known, least = optimum
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.1, 1.0):
        for rank in (1, 4):
            U, V = scale * rng.standard_normal((30, rank)), scale * rng.standard_normal((20, rank))
            found = certificate(U, V, known, lam=2.0)
            assert found.lower_bound <= least <= found.objective
            assert found.gap == found.objective - found.lower_bound > 0


def test_the_gap_bounds_the_distance_and_closes_on_the_way(optimum):
    known, least = optimum
    gaps = []
    for tol in (1e-2, 1e-4, 1e-8, 1e-13):
        solver = AlternatingLeastSquares(10, lam=2.0, tol=tol, max_sweeps=20_000).fit(known)
        found = certificate(solver.user_profiles_, solver.item_profiles_, known, lam=2.0)
        assert found.objective - least <= found.gap
        assert found.objective == pytest.approx(solver.objective_[-1] / 2, rel=1e-10)
        gaps.append(found.relative_gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


def test_objective_is_half_of_the_first_papers():
    known = ratings()
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    assert certificate(U, V, known, lam=0.7).objective == pytest.approx(objective(U, V, known, 0.7) / 2, rel=1e-12)


def test_the_bound_is_the_formula_written_with_dense_matrices():
    known = ratings()
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    X, seen = np.zeros((30, 20)), np.zeros((30, 20))
    X[known.user, known.item], seen[known.user, known.item] = known.value, 1
    G = seen * (X - U @ V.T)
    norm = np.linalg.norm(G, 2)
    for lam in (0.5 * norm, 2 * norm):
        Y = G * min(1, lam / norm)
        found = certificate(U, V, known, lam=lam)
        assert found.lower_bound == pytest.approx((X * Y).sum() - (Y**2).sum() / 2, rel=1e-10)
        assert found.spectral_norm == pytest.approx(norm, rel=1e-12)


def test_large_sparse_ratings_take_the_iterative_norm():
    known = ratings(900, 700, share=0.05)
    solver = SoftImpute(20.0, relative=False, centring="none", algorithm="als", max_rank=30, tol=1e-13, max_iter=3000)
    solution = solver.fit(known).path_[0]
    assert 0 < solution.rank < 30
    found = certificate(*solution.profiles, known, lam=20.0)
    assert 0 <= found.relative_gap < 1e-4


def test_nothing_to_explain_has_no_gap():
    zeros = np.zeros((3, 2))
    found = certificate(zeros, np.zeros((4, 2)), np.zeros((3, 4)), lam=1.0)
    assert (found.objective, found.gap, found.relative_gap) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lam": 0.0}, "lam must be finite and > 0, got 0.0"),
        ({"lam": np.nan}, "lam must be finite"),
        ({"user_profiles": np.zeros((2, 2))}, r"shapes \(30, rank\) and \(20, rank\), got \(2, 2\)"),
        ({"item_profiles": np.zeros((20, 3))}, r"got \(30, 2\) and \(20, 3\)"),
        ({"user_profiles": np.full((30, 2), np.nan)}, "user_profiles must be finite, got nan"),
    ],
)
def test_bad_arguments_are_named(changed, message):
    arguments = {"user_profiles": np.zeros((30, 2)), "item_profiles": np.zeros((20, 2)), "X": ratings(), "lam": 1.0}
    with pytest.raises(ValueError, match=message):
        certificate(**(arguments | changed))
