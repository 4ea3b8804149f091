import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from algorithms.certificate import certificate
from algorithms.solvers.alternation import Alternation, Factors, filled_in
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.low_rank import SparsePlusLowRank, entries, leading_triplets, spectral_norm
from algorithms.solvers.observed import as_observed
from algorithms.solvers.ridge import improve_side
from algorithms.solvers.soft_impute import SoftImpute

GRID = [0.5, 0.2, 0.1]
TIGHT = {"tol": 1e-14, "max_iter": 20_000}


def incomplete(n, p, *, rank=3, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = 3 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + 0.3 * rng.standard_normal((n, p))
    X[rng.random((n, p)) > share] = np.nan
    return X


def quietly(solver, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.fit(X)


@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (130, 110)])
def test_svd_and_als_agree_at_full_rank(shape):
    X = incomplete(*shape)
    by_svd = SoftImpute([0.5, 0.2, 0.1], **TIGHT).fit(X)
    by_als = SoftImpute([0.5, 0.2, 0.1], algorithm="als", max_rank=min(shape), **TIGHT).fit(X)
    np.testing.assert_allclose(by_als.objective_, by_svd.objective_, rtol=1e-6)
    for at in range(3):
        np.testing.assert_allclose(by_als.complete(at), by_svd.complete(at), atol=1e-2)
        assert by_als.path_[at].rank >= by_svd.path_[at].rank > 0


@pytest.mark.parametrize("algorithm", ["svd", "als"])
def test_certificate_is_tight_at_convergence(algorithm):
    X = incomplete(40, 25)
    solver = SoftImpute([0.5, 0.2], algorithm=algorithm, max_rank=25, tol=1e-15, max_iter=20_000)
    solver = quietly(solver, X)
    for solution in solver.path_:
        proof = certificate(*solution.profiles, solver.centred_, lam=solution.penalty)
        assert proof.objective == pytest.approx(solution.objective, rel=1e-12)
        assert 0 <= proof.relative_gap <= 1e-6


def test_the_conditions_of_the_optimum_hold():
    """U'G = lambda V' where M = U D V', and ||G||_2 <= lambda: the subgradient of the nuclear norm."""
    solver = SoftImpute(0.2, tol=1e-18, max_iter=20_000).fit(incomplete(30, 20))
    solution = solver.path_[0]
    residual = solver.centred_.dense(solver.centred_.value - entries(*solution.profiles, solver.centred_), fill=0.0)
    np.testing.assert_allclose(solution.left.T @ residual, solution.penalty * solution.right.T, atol=1e-6)
    assert np.linalg.norm(residual, 2) <= solution.penalty * (1 + 1e-7)


def test_objective_is_what_it_says_and_never_rises():
    X = incomplete(40, 25)
    for algorithm in ("svd", "als"):
        solver = quietly(SoftImpute(0.1, algorithm=algorithm, max_rank=10, tol=0.0, max_iter=60), X)
        solution = solver.path_[0]
        M = solution.matrix()
        centred = X - np.nanmean(X, axis=0)
        whole = np.nansum((centred - M) ** 2) / 2 + solution.penalty * np.linalg.norm(M, "nuc")
        assert solution.objective == pytest.approx(whole, rel=1e-12)
        assert len(solution.history) == 60
        assert np.all(np.diff(solution.history) <= 1e-12 * solution.history[:-1])
        assert solution.objective <= solution.history[-1] * (1 + 1e-12)


def test_als_keeps_its_rank_and_is_no_worse_than_the_svd_of_that_rank():
    X = incomplete(60, 50, rank=8)
    by_svd = quietly(SoftImpute([0.5, 0.05], max_rank=4, **TIGHT), X)
    by_als = quietly(SoftImpute([0.5, 0.05], algorithm="als", max_rank=4, **TIGHT), X)
    assert [solution.rank for solution in by_als.path_][-1] == 4
    assert np.all(by_als.objective_ <= by_svd.objective_ * (1 + 1e-3))


def test_directions_come_back_at_a_smaller_lambda():
    X = incomplete(40, 25, rank=6)
    path = quietly(SoftImpute([0.9, 0.02], algorithm="als", max_rank=20, tol=1e-10, max_iter=2000), X)
    alone = quietly(SoftImpute(0.02, algorithm="als", max_rank=20, tol=1e-10, max_iter=2000), X)
    assert path.path_[0].rank < 6 < path.path_[1].rank
    assert path.objective_[1] == pytest.approx(alone.objective_[0], rel=1e-5)


def test_als_never_makes_a_dense_matrix(monkeypatch):
    X = as_observed(scipy.sparse.random_array((3000, 2000), density=0.002, rng=np.random.default_rng(0)))
    sizes = []
    original = np.empty

    def recorded(shape, *args, **kwargs):
        sizes.append(int(np.prod(shape)))
        return original(shape, *args, **kwargs)

    monkeypatch.setattr(np, "empty", recorded)
    monkeypatch.setattr(type(X), "dense", lambda *_, **__: pytest.fail("a dense matrix was made"))
    solver = quietly(SoftImpute(0.3, algorithm="als", max_rank=5, max_iter=20), X)
    assert max(sizes) < X.n_rows * X.n_columns / 100
    assert solver.predict([0, 1], [0, 1]).shape == (2,)


def test_the_ratings_have_no_part_in_which_input_they_come_in():
    X = incomplete(20, 12)
    rows, columns = np.nonzero(~np.isnan(X))
    sparse = scipy.sparse.coo_array((X[rows, columns], (rows, columns)), shape=X.shape)
    expected = quietly(SoftImpute(0.1), X).complete()
    for given in (pd.DataFrame(X), sparse, as_observed(X)):
        np.testing.assert_array_equal(quietly(SoftImpute(0.1), given).complete(), expected)
    masked = quietly(SoftImpute(0.1), X)
    np.testing.assert_array_equal(masked.fit(np.nan_to_num(X), mask=~np.isnan(X)).complete(), expected)


@pytest.mark.parametrize("algorithm", ["svd", "als"])
def test_predict_gives_cells_of_complete(algorithm):
    X = incomplete(20, 12)
    solver = quietly(SoftImpute([0.5, 0.1], algorithm=algorithm, categories=None), np.rint(X))
    rows, columns = np.indices(X.shape).reshape(2, -1)
    for at in (0, 1, -1):
        for discretized in (False, True):
            completed = solver.complete(at, discretized=discretized)
            predicted = solver.predict(rows, columns, at=at, discretized=discretized)
            np.testing.assert_allclose(predicted, completed.ravel(), atol=1e-12)
    known = ~np.isnan(X)
    np.testing.assert_array_equal(completed[known], np.rint(X)[known])


def test_ties_go_to_the_lower_category_whatever_the_rounding():
    X = np.array([[1.0, 3.0], [2.0, 4.0], [np.nan, np.nan]])
    completed = SoftImpute(1.0).fit(X)
    np.testing.assert_array_equal(completed.complete()[2], [1.5, 3.5])
    np.testing.assert_array_equal(completed.complete(discretized=True)[2], [1.0, 3.0])


def test_discretized_predictions_go_by_each_column():
    X = np.array([[1.0, 0.5], [5.0, 4.0], [np.nan, np.nan]])
    solver = SoftImpute(1.0, categories=[[1, 2, 5], [0.5, 2.5, 4.0]]).fit(X)
    np.testing.assert_array_equal(solver.complete(discretized=True)[2], [2.0, 2.5])  # of means 3 and 2.25
    with pytest.raises(ValueError, match="got 4 in row 1, column 1"):
        SoftImpute(1.0, categories=[[1, 5], [0.5, 5]]).fit(X).complete(discretized=True)


@pytest.mark.parametrize("algorithm", ["svd", "als"])
def test_special_cases(algorithm):
    X = incomplete(12, 9, share=0.7)
    X[3, :], X[:, 4] = np.nan, np.nan
    solver = quietly(SoftImpute(0.1, algorithm=algorithm, tol=1e-12, max_iter=5000), X)
    completed = solver.complete()
    kept = np.delete(np.arange(9), 4)
    np.testing.assert_allclose(completed[3, kept], np.nanmean(X[:, kept], axis=0), atol=1e-10)
    np.testing.assert_allclose(completed[:, 4], np.nanmean(X), atol=1e-12)
    without = quietly(SoftImpute(0.1, algorithm=algorithm, tol=1e-12, max_iter=5000), X[:, kept])
    np.testing.assert_allclose(completed[:, kept], without.complete(), atol=1e-3)
    with pytest.raises(ValueError, match="none in column 4 "):
        SoftImpute(0.1, algorithm=algorithm, empty_columns="error").fit(X)


@pytest.mark.parametrize("algorithm", ["svd", "als"])
@pytest.mark.parametrize("shape", [(6, 4), (120, 110)])
def test_constant_columns_are_predicted_by_their_constant(algorithm, shape):
    X = np.tile(np.linspace(0.1, 5.0, shape[1]), (shape[0], 1))
    truth = X.copy()
    X[np.random.default_rng(0).random(shape) < 0.3] = np.nan
    solver = SoftImpute(algorithm=algorithm).fit(X)
    assert solver.d_max_ == 0
    assert np.all(solver.objective_ == 0)
    np.testing.assert_array_equal(solver.complete(9), truth)


def test_no_centring_and_absolute_lambdas():
    X = incomplete(20, 12)
    solver = quietly(SoftImpute([3.0, 1.0], relative=False, centring="none", tol=1e-12, max_iter=5000), X)
    assert solver.d_max_ == 1.0
    assert not solver.centres_.any()
    assert [solution.penalty for solution in solver.path_] == [3.0, 1.0]
    huge = SoftImpute(1e9, relative=False, centring="none", algorithm="als").fit(X)
    assert huge.path_[0].rank == 0
    assert huge.objective_[0] == pytest.approx(np.nansum(X**2) / 2)


def test_liberal_stopping_takes_fewer_iterations():
    X = incomplete(40, 25)
    strict, liberal = (SoftImpute(0.1, stopping=rule).fit(X).n_iter_[0] for rule in ("strict", "liberal"))
    assert liberal < strict


def test_too_few_iterations_are_told():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 iterations at lambda 0.1, .*; raise max_iter or tol"):
        solver = SoftImpute(0.1, max_iter=2).fit(incomplete(20, 12))
    assert not solver.converged_[0]
    assert solver.n_iter_[0] == 2


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lambdas", 0.0, "lambdas must be finite and > 0"),
        ("lambdas", [], "lambdas must be finite and > 0"),
        ("lambdas", "x", "lambdas must hold numbers"),
        ("algorithm", "qr", "algorithm must be 'svd' or 'als', got 'qr'"),
        ("centring", "median", "centring must be"),
        ("empty_columns", "drop", "empty_columns must be"),
        ("stopping", "lax", "stopping must be"),
        ("tol", -1, "tol must be a number >= 0"),
        ("max_iter", 0, "max_iter must be an integer >= 1"),
        ("max_rank", 0, "max_rank must be an integer >= 1"),
        ("svd", "power", "svd must be"),
    ],
)
def test_bad_arguments_are_named(name, value, message):
    with pytest.raises(ValueError, match=message):
        SoftImpute(**{name: value}).fit(incomplete(5, 4))


def test_positions_and_fits_are_asked_for():
    with pytest.raises(ValueError, match=r"call fit\(X\) first"):
        SoftImpute().predict([0], [0])
    solver = quietly(SoftImpute([1.0, 0.5]), incomplete(8, 6))
    with pytest.raises(ValueError, match="at must be the position of one of 2 lambdas"):
        solver.complete()
    with pytest.raises(ValueError, match="users must be indices from 0 to 7, got 8"):
        solver.predict([8], [0], at=0)


def test_it_keeps_to_the_protocol_of_estimators():
    solver = SoftImpute(0.2, algorithm="als", max_rank=3)
    before = solver.get_params()
    assert type(solver)(**before).get_params() == before
    assert solver.set_params(max_rank=4).max_rank == 4
    assert solver.fit(incomplete(10, 8)) is solver
    assert solver.get_params() == before | {"max_rank": 4}


def test_sparse_plus_low_rank_is_the_dense_sum():
    rng = np.random.default_rng(3)
    sparse = scipy.sparse.random_array((9, 7), density=0.4, rng=rng).tocsr()
    A, B = rng.standard_normal((9, 2)), rng.standard_normal((7, 2))
    operator, dense = SparsePlusLowRank(sparse, A, B), sparse.toarray() + A @ B.T
    np.testing.assert_allclose(operator @ np.eye(7), dense)
    np.testing.assert_allclose(operator.T @ np.eye(9), dense.T)
    np.testing.assert_allclose(operator @ np.ones(7), dense @ np.ones(7))
    np.testing.assert_allclose(operator.rmatvec(np.ones(9)), dense.T @ np.ones(9))


def test_filled_in_has_the_ratings_where_they_are_and_the_product_elsewhere():
    X = incomplete(9, 7)
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((9, 2)), rng.standard_normal((7, 2))
    np.testing.assert_allclose(filled_in(A, B, as_observed(X)) @ np.eye(7), np.where(np.isnan(X), A @ B.T, X))


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (700, 520), (520, 700)])
def test_spectral_norm_and_leading_triplets_against_the_full_svd(shape):
    sparse = scipy.sparse.random_array(shape, density=0.2, rng=np.random.default_rng(1)).tocsr()
    values = np.linalg.svd(sparse.toarray(), compute_uv=False)
    norm, error = spectral_norm(sparse)
    assert abs(norm - values[0]) <= 1e-9 * values[0]
    assert 0 <= error < 1e-5 * values[0]
    nothing = SparsePlusLowRank(sparse, np.empty((shape[0], 0)), np.empty((shape[1], 0)))
    left, found, right = leading_triplets(nothing, 3)
    assert np.all(found <= values[:3] * (1 + 1e-12))
    assert np.all(found >= values[:3] * 0.9)
    np.testing.assert_allclose(left.T @ left, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(right.T @ right, np.eye(3), atol=1e-10)
    assert spectral_norm(0 * sparse) == (0.0, 0.0)


def test_many_conjugate_gradient_steps_solve_the_ridge_regressions():
    observed = as_observed(incomplete(9, 7))
    others = np.random.default_rng(1).standard_normal((7, 4))
    own = np.zeros((9, 4))
    value = improve_side(observed.by_row, observed.by_row.value, others, own, penalty=0.7, steps=20)
    expected = 0.0
    for i in range(9):
        items, ratings = observed.by_row.row(i)
        V = others[items]
        u = np.linalg.solve(V.T @ V + 0.7 * np.eye(4), V.T @ ratings)
        np.testing.assert_allclose(own[i], u, atol=1e-10)
        expected += ((ratings - V @ u) ** 2).sum() / 2 + 0.35 * u @ u
    assert value == pytest.approx(expected, rel=1e-12)


def test_a_start_takes_what_is_there_and_fresh_directions_beside_it():
    observed = as_observed(incomplete(20, 12))
    factors = Factors(np.eye(20)[:, :1], np.array([2.0]), np.eye(12)[:, :1])
    left, right = Alternation(observed, 5).started(factors, 0.1)
    assert left.shape == (20, 5)
    np.testing.assert_allclose(left[:, :1] @ right[:, :1].T, 2.0 * np.eye(20)[:, :1] @ np.eye(12)[:, :1].T)
    np.testing.assert_allclose(left[:, :1].T @ left[:, 1:], 0.0, atol=1e-10)
    assert np.all((left[:, 1:] ** 2).sum(axis=0) > 0)


def test_momentum_that_overshoots_is_dropped():
    """On the way to the minimum momentum does overshoot; without the repeated sweep the objective would rise."""
    X = incomplete(40, 25)
    solution = quietly(SoftImpute(0.3, algorithm="als", max_rank=25, tol=0.0, max_iter=400), X).path_[0]
    assert np.all(np.diff(solution.history) <= 1e-12 * solution.history[0])


@pytest.mark.parametrize("algorithm", ["svd", "als"])
def test_stopping_does_not_depend_on_the_unit(algorithm):
    X = incomplete(40, 25)
    one, hundred = (SoftImpute(GRID, algorithm=algorithm).fit(unit * X) for unit in (1.0, 128.0))
    np.testing.assert_array_equal(one.n_iter_, hundred.n_iter_)
    np.testing.assert_allclose(hundred.complete(2), 128.0 * one.complete(2), rtol=1e-9)
    assert one.n_iter_.min() > 1
