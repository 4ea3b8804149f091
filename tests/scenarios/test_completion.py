import argparse

import numpy as np
import pytest

from algorithms.solvers import RDMC, Baseline, LambdaSelection, SoftImpute
from scenarios import completion
from scenarios.completion import METHODS, complete, held_out_also, held_out_cells, methods

GRID = (0.05, 0.2, 0.6)
SCALE = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def matrix():
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 20))
    ratings = np.clip(np.round(3 + latent), 1, 5)
    return np.where(rng.random(ratings.shape) < 0.4, np.nan, ratings)


@pytest.fixture(scope="module")
def held_out(matrix):
    return held_out_cells(matrix, n_splits=2, seed=7)


@pytest.fixture(scope="module")
def done(matrix, held_out):
    return complete(matrix, list(METHODS), categories=SCALE, held_out=held_out, lambdas=GRID, seed=5)


def test_all_methods_complete_the_matrix_and_keep_what_was_observed(matrix, done):
    assert list(done) == list(METHODS)
    known = ~np.isnan(matrix)
    for name, each in done.items():
        assert each.method == name
        assert each.matrix.shape == matrix.shape
        assert np.isfinite(each.matrix).all()
        np.testing.assert_array_equal(each.matrix[known], matrix[known])
        assert each.cpu_seconds > 0


def test_all_but_two_kinds_predict_categories(done):
    real = {name for name, each in done.items() if not np.isin(each.matrix, SCALE).all()}
    assert {"soft_impute", "soft_impute_liberal"} <= real <= {"soft_impute", "soft_impute_liberal", "median"}


@pytest.mark.parametrize("loss", ["pseudo_huber", "absolute", "truncated"])
@pytest.mark.parametrize("stopping", ["strict", "liberal"])
def test_rdmc_is_the_solver_with_its_lambda_chosen_on_the_cells(matrix, held_out, done, loss, stopping):
    each = done[f"rdmc_{loss}" + ("_liberal" if stopping == "liberal" else "")]
    solver = RDMC(GRID, categories=SCALE, loss=loss, stopping=stopping)
    chosen = LambdaSelection(solver, splits=held_out, progress=False).fit(matrix)
    assert each.lam == chosen.lambda_
    assert each.n_iter == chosen.solver_.n_iter_[0]
    assert each.converged == chosen.solver_.converged_[0]
    np.testing.assert_array_equal(each.matrix, chosen.complete())
    if stopping == "liberal":
        assert each.n_iter <= 10


@pytest.mark.parametrize(("suffix", "tol"), [("", 1e-4), ("_liberal", 1e-3)])
def test_soft_impute_is_the_solver_and_its_discretized_form(matrix, held_out, done, suffix, tol):
    solver = SoftImpute(GRID, categories=SCALE, tol=tol, max_iter=200)
    chosen = LambdaSelection(solver, splits=held_out, progress=False).fit(matrix)
    plain, rounded = done[f"soft_impute{suffix}"], done[f"soft_impute_discretized{suffix}"]
    assert plain.lam == rounded.lam == chosen.lambda_
    np.testing.assert_array_equal(plain.matrix, chosen.complete())
    np.testing.assert_array_equal(rounded.matrix, chosen.complete(discretized=True))


def test_soft_impute_and_its_discretized_form_share_one_fit(matrix, held_out, monkeypatch):
    fitted = []
    timed = completion._timed
    monkeypatch.setattr(completion, "_timed", lambda solver, data: fitted.append(solver) or timed(solver, data))
    both = complete(
        matrix, ["soft_impute", "soft_impute_discretized"], categories=SCALE, held_out=held_out, lambdas=GRID
    )
    assert len(fitted) == 1
    assert len({each.cpu_seconds for each in both.values()}) == 1


@pytest.mark.parametrize("rule", ["median", "discretized_median", "mode"])
def test_baselines_have_no_lambda(matrix, done, rule):
    np.testing.assert_array_equal(done[rule].matrix, Baseline(rule, categories=SCALE, seed=5).fit(matrix).complete())
    assert np.isnan(done[rule].lam)
    assert done[rule].n_iter == 0


def test_one_lambda_is_taken_as_it_is(matrix):
    done = complete(matrix, ["soft_impute"], categories=SCALE, held_out=[], lambdas=[0.2])["soft_impute"]
    assert done.lam == 0.2
    np.testing.assert_array_equal(done.matrix, SoftImpute(0.2, tol=1e-4, max_iter=200).fit(matrix).complete())


def test_lambdas_are_the_papers():
    np.testing.assert_allclose(completion.LAMBDAS, np.exp(np.linspace(np.log(0.01), 0, 10)), rtol=1e-12)


def test_an_unknown_method_is_told(matrix):
    with pytest.raises(ValueError, match=r"must be names of rdmc_pseudo_huber, .*, got 'svd'"):
        complete(matrix, ["mode", "svd"], categories=SCALE, held_out=[])


def test_methods_are_read_in_their_order():
    assert methods("mode,soft_impute") == ["soft_impute", "mode"]
    for wrong in ("mode,mode", "mode,none", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="distinct names"):
            methods(wrong)


# -- held-out cells ------------------------------------------------------------------------------------------------


def test_a_share_of_the_observed_cells_is_held_out_anew_for_each_split(matrix):
    drawn = held_out_cells(matrix, n_splits=3, share=0.2, seed=1)
    n = int((~np.isnan(matrix)).sum())
    cells = [set(zip(*each, strict=True)) for each in drawn]
    for (rows, columns), different in zip(drawn, cells, strict=True):
        assert len(rows) == len(different) == round(0.2 * n)
        assert not np.isnan(matrix[rows, columns]).any()
    assert len(set.intersection(*cells)) < len(cells[0]) / 2
    again = held_out_cells(matrix, n_splits=3, share=0.2, seed=1)
    np.testing.assert_array_equal(drawn, again)


def test_appended_rows_add_a_share_of_their_own_cells(matrix, held_out):
    added = np.full((6, matrix.shape[1]), np.nan)
    added[:, :5] = 1.0
    extended = held_out_also(held_out, np.vstack([matrix, added]), n_before=len(matrix), seed=2)
    for (rows, columns), (old_rows, old_columns) in zip(extended, held_out, strict=True):
        n = len(old_rows)
        np.testing.assert_array_equal(rows[:n], old_rows)
        np.testing.assert_array_equal(columns[:n], old_columns)
        assert len(rows) == n + 3
        assert (rows[n:] >= len(matrix)).all()
        assert (columns[n:] < 5).all()
        assert len(set(zip(rows[n:], columns[n:], strict=True))) == 3


def test_appended_rows_with_few_ratings_add_none(matrix, held_out):
    added = np.full((1, matrix.shape[1]), np.nan)
    added[0, :4] = 1.0
    extended = held_out_also(held_out, np.vstack([matrix, added]), n_before=len(matrix), seed=2)
    for now, before in zip(extended, held_out, strict=True):
        np.testing.assert_array_equal(now, before)
