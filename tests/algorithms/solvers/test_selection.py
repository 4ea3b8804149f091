import warnings

import numpy as np
import pytest

from algorithms.losses import Loss
from algorithms.ratings import Ratings
from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.baselines import Baseline
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.factorization import StochasticGradientDescent
from algorithms.solvers.grids import fraction_grid, multiplicative_grid
from algorithms.solvers.observed import as_observed
from algorithms.solvers.rdmc import RDMC
from algorithms.solvers.selection import CASE_STUDIES, SIMULATIONS, KFold, LambdaSelection, RepeatedHoldout
from algorithms.solvers.soft_impute import SoftImpute
from algorithms.splits import k_fold

GRID = [0.5, 0.2, 0.05]


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    liking = 3 + rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20)) / 1.5
    user, item = np.nonzero(rng.random(liking.shape) < 0.6)
    return Ratings.from_arrays(user, item, np.clip(np.rint(liking[user, item]), 1, 5), scale=(1, 5))


def test_losses_are_those_of_the_held_out_cells(ratings):
    selection = LambdaSelection(SoftImpute(GRID), splits=RepeatedHoldout(3, 0.2), seed=4).fit(ratings)
    total, count = np.zeros(3), 0
    for cells in RepeatedHoldout(3, 0.2).held_out(len(ratings), seed=4):
        kept = np.ones(len(ratings), dtype=bool)
        kept[cells] = False
        solver = SoftImpute(GRID).fit(ratings.select(kept))
        for at in range(3):
            predicted = solver.predict(ratings.user[cells], ratings.item[cells], at=at)
            total[at] += ((predicted - ratings.value[cells]) ** 2).sum()
        count += len(cells)
    np.testing.assert_allclose(selection.losses_, total / count, rtol=1e-12)
    np.testing.assert_array_equal(selection.lambdas_, GRID)
    assert selection.lambda_ == GRID[int(np.argmin(total))]
    final = SoftImpute(selection.lambda_).fit(ratings)
    np.testing.assert_array_equal(selection.complete(), final.complete())
    np.testing.assert_array_equal(selection.predict([0, 1], [2, 3]), final.predict([0, 1], [2, 3]))
    np.testing.assert_allclose(selection.split_losses_.mean(axis=0), selection.losses_)


def test_holdouts_are_of_the_share_and_differ(ratings):
    assert (SIMULATIONS.n_replications, CASE_STUDIES.n_replications) == (5, 10)
    held_out = RepeatedHoldout(5, 0.1).held_out(105, seed=0)
    assert [len(np.unique(cells)) for cells in held_out] == [11] * 5  # 10.5, halves up
    assert len({cells.tobytes() for cells in held_out}) == 5
    again = RepeatedHoldout(5, 0.1).held_out(105, seed=0)
    assert all(np.array_equal(one, other) for one, other in zip(held_out, again, strict=True))
    assert not np.array_equal(held_out[0], RepeatedHoldout(5, 0.1).held_out(105, seed=1)[0])


def test_folds_hold_out_each_cell_once():
    folds = KFold(4).held_out(10, seed=0)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(10))
    assert sorted(map(len, folds)) == [2, 2, 3, 3]


def test_given_splits_in_any_form_are_the_same(ratings):
    tests = [test for _, test in k_fold(ratings, seed=1, k=3)]
    forms = [
        tests,
        [as_observed(test) for test in tests],
        [(test.user, test.item) for test in tests],
        [(test.user[::-1], test.item[::-1]) for test in tests],
    ]
    losses = [LambdaSelection(SoftImpute(GRID), splits=form).fit(ratings).losses_ for form in forms]
    for each in losses[1:]:
        np.testing.assert_array_equal(each, losses[0])
    assert LambdaSelection(SoftImpute(GRID), splits=tests).fit(ratings).n_held_out_.sum() == len(ratings)


def test_matrices_and_ratings_give_the_same(ratings):
    by_matrix = LambdaSelection(SoftImpute(GRID), seed=2).fit(as_observed(ratings).dense())
    np.testing.assert_array_equal(by_matrix.losses_, LambdaSelection(SoftImpute(GRID), seed=2).fit(ratings).losses_)


@pytest.mark.parametrize("solver", [SoftImpute(GRID), RDMC(GRID, categories=range(1, 6), stopping="liberal")])
def test_processes_have_no_part_in_the_result(ratings, solver):
    one = LambdaSelection(solver, splits=RepeatedHoldout(3), n_jobs=1).fit(ratings)
    two = LambdaSelection(solver, splits=RepeatedHoldout(3), n_jobs=2).fit(ratings)
    np.testing.assert_array_equal(one.split_losses_, two.split_losses_)
    np.testing.assert_array_equal(one.complete(), two.complete())


def test_the_final_fit_of_rdmc_starts_from_median_and_mean_of_the_splits(ratings):
    solver = RDMC(GRID, categories=range(1, 6), stopping="liberal")
    splits = RepeatedHoldout(4, 0.2)
    selection = LambdaSelection(solver, splits=splits, seed=3).fit(ratings)
    fits = []
    for cells in splits.held_out(len(ratings), seed=3):
        kept = np.ones(len(ratings), dtype=bool)
        kept[cells] = False
        fits.append(RDMC(GRID, categories=range(1, 6), stopping="liberal").fit(ratings.select(kept)))
    at = fits[0].lambdas_.tolist().index(selection.lambda_)
    start = np.median([fit.path_[at].L for fit in fits], axis=0), np.mean([fit.path_[at].Theta for fit in fits], axis=0)
    final = RDMC(selection.lambda_, categories=range(1, 6), stopping="liberal").fit(ratings, start=start)
    np.testing.assert_array_equal(selection.solver_.path_[0].Theta, final.path_[0].Theta)
    np.testing.assert_array_equal(selection.complete(), final.complete())


def test_the_loss_is_the_solvers_own_unless_another_is_asked_for(ratings):
    solver = RDMC(GRID, categories=range(1, 6), loss="truncated", loss_constant=1.5, stopping="liberal")
    truncated = Loss("truncated", 1.5)
    own = LambdaSelection(solver).fit(ratings).losses_
    np.testing.assert_array_equal(LambdaSelection(solver, loss=lambda e, _: truncated(e)).fit(ratings).losses_, own)
    absolute = LambdaSelection(solver, loss="absolute").fit(ratings).losses_
    assert np.all(absolute > own)
    squared = LambdaSelection(SoftImpute(GRID), loss="squared").fit(ratings).losses_
    np.testing.assert_array_equal(squared, LambdaSelection(SoftImpute(GRID)).fit(ratings).losses_)


def test_ties_go_to_the_largest_lambda():
    """Constant columns are predicted alike at all lambdas."""
    X = np.tile([1.0, 3.0, 5.0], (12, 1))
    for grid in (GRID, GRID[::-1]):
        assert LambdaSelection(SoftImpute(grid)).fit(X).lambda_ == 0.5
        assert LambdaSelection(RDMC(grid, categories=range(1, 6), stopping="liberal")).fit(X).lambda_ == 0.5


@pytest.mark.parametrize("solver", [AlternatingLeastSquares(3), StochasticGradientDescent(3)])
def test_solvers_of_one_lambda_are_fitted_for_each(ratings, solver):
    grid = multiplicative_grid(3, low=0.5, factor=4.0)
    selection = LambdaSelection(solver, lambdas=grid, splits=RepeatedHoldout(2)).fit(ratings)
    np.testing.assert_array_equal(selection.lambdas_, grid)
    assert selection.solver_.lam == selection.lambda_
    assert len(set(selection.losses_.tolist())) == 3
    with pytest.raises(ValueError, match="lambdas must be given for"):
        LambdaSelection(solver).fit(ratings)


def test_the_grid_may_be_given_here(ratings):
    selection = LambdaSelection(SoftImpute(max_rank=3), lambdas=fraction_grid(4)).fit(ratings)
    np.testing.assert_array_equal(selection.lambdas_, fraction_grid(4)[::-1])
    assert selection.solver_.max_rank == 3


def test_fits_that_do_not_converge_are_told_once(ratings):
    solver = SoftImpute([0.05], max_iter=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LambdaSelection(solver, splits=RepeatedHoldout(3)).fit(ratings)
    messages = [str(each.message) for each in caught if each.category is ConvergenceWarning]
    assert len(messages) == 2  # the splits together, and the final fit
    assert messages[0].startswith("in 3 of 3 splits a fit stopped before it had converged")


def test_progress_is_shown_where_it_is_asked_for(ratings, capsys):
    LambdaSelection(SoftImpute(0.5), splits=RepeatedHoldout(2), progress=False).fit(ratings)
    assert capsys.readouterr().err == ""
    LambdaSelection(SoftImpute(0.5), splits=RepeatedHoldout(2), progress=True).fit(ratings)
    assert "splits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "huber"}, "loss must be"),
        ({"splits": []}, "splits must hold one split at least"),
        ({"splits": [3]}, r"splits\[0\] must be Ratings, Observed or a pair"),
        ({"splits": [([0], [0]), ([0, 0], [0, 0])]}, r"splits\[1\] must hold out each cell once"),
        ({"solver": Baseline()}, "solver must have a parameter lambdas or lam, got Baseline without"),
        ({"solver": 3}, "solver must have get_params"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    X = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match=message):
        LambdaSelection(**({"solver": SoftImpute(0.5)} | arguments)).fit(X)


def test_held_out_cells_must_be_observed():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"splits\[0\] must hold out observed cells, got \(0, 1\), which is missing"):
        LambdaSelection(SoftImpute(0.5), splits=[([0], [1])]).fit(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RepeatedHoldout(0), "n_replications must be an integer >= 1"),
        (lambda: RepeatedHoldout(5, 10), "share must be in"),
        (lambda: RepeatedHoldout(5, 0.1).held_out(3, seed=0), "share=0.1 of 3 cells is 0"),
        (lambda: KFold(1), "n_folds must be an integer >= 2"),
        (lambda: KFold(5).held_out(3, seed=0), "n_folds must be at most the number of observed cells, 3, got 5"),
        (lambda: fraction_grid(0), "n must be an integer >= 1"),
        (lambda: fraction_grid(low=0.0), "low and high must be finite with 0 < low <= high"),
        (lambda: multiplicative_grid(low=-1), "low must be finite and > 0"),
        (lambda: multiplicative_grid(factor=1.0), "factor must be finite and > 1"),
    ],
)
def test_bad_splits_and_grids_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_grids_of_one():
    np.testing.assert_array_equal(fraction_grid(1, high=0.3), [0.3])
    np.testing.assert_array_equal(multiplicative_grid(1, low=0.3), [0.3])


def test_fit_is_asked_for_and_parameters_reach_into_the_solver():
    selection = LambdaSelection(SoftImpute(0.5))
    with pytest.raises(ValueError, match=r"call fit\(X\) first"):
        selection.complete()
    assert selection.get_params()["solver__max_rank"] is None
    assert selection.set_params(solver__max_rank=2).solver.max_rank == 2
