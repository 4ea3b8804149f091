from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from algorithms.learning import Learning
from algorithms.metrics import factorization_rmse
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential
from algorithms.solvers import AlternatingLeastSquares, ConvergenceWarning
from algorithms.synthetic import low_rank, noise_weight, oracle_rate

RULES = ["uniform", "per_message"]


def fitted(ratings, **arguments):
    return AlternatingLeastSquares(**({"rank": 3, "lam": 0.5, "tol": 1e-12, "max_sweeps": 20_000} | arguments)).fit(
        ratings
    )


def dense(ratings):
    matrix, known = np.zeros((ratings.n_users, ratings.n_items)), np.zeros((ratings.n_users, ratings.n_items))
    matrix[ratings.user, ratings.item], known[ratings.user, ratings.item] = ratings.value, 1
    return matrix, known


def weights(ratings, lam, rule):
    _, known = dense(ratings)
    ones = np.ones(ratings.n_users), np.ones(ratings.n_items)
    users, items = (known.sum(axis=1), known.sum(axis=0)) if rule == "per_message" else ones
    return lam * users, lam * items


def gradients(solver, ratings):
    """Half the gradient of the objective, written with whole matrices."""
    matrix, known = dense(ratings)
    users, items = solver.user_profiles_, solver.item_profiles_
    residual = known * (users @ items.T - matrix)
    user_weight, item_weight = weights(ratings, solver.lam, solver.regularization)
    return residual @ items + user_weight[:, None] * users, residual.T @ users + item_weight[:, None] * items


@pytest.mark.parametrize("rule", RULES)
def test_normal_equations_hold_on_both_sides_at_the_end(data, sparse, rule):
    for ratings, lam in ((data.train, 0.5), (sparse, 0.1)):
        for gradient in gradients(fitted(ratings, lam=lam, regularization=rule), ratings):
            assert np.abs(gradient).max() < 1e-4


@pytest.mark.parametrize("rule", RULES)
def test_the_side_solved_last_fulfils_its_equations_after_one_sweep(data, rule):
    with pytest.warns(ConvergenceWarning):
        solver = fitted(data.train, regularization=rule, max_sweeps=1)
    of_users, of_items = gradients(solver, data.train)
    assert np.abs(of_items).max() < 1e-10
    assert np.abs(of_users).max() > 1e-3


def test_objective_is_that_of_the_paper_with_uniform_weights(data):
    solver = fitted(data.train, lam=0.7)
    whole = objective(solver.user_profiles_, solver.item_profiles_, data.train, 0.7)
    assert solver.objective_[-1] == pytest.approx(whole, rel=1e-12)


def test_objective_weighs_by_the_number_of_ratings_with_per_message(data):
    solver = fitted(data.train, lam=0.05, regularization="per_message")
    user_weight, item_weight = weights(data.train, 0.05, "per_message")
    expected = objective(solver.user_profiles_, solver.item_profiles_, data.train, 0.0)
    expected += (user_weight[:, None] * solver.user_profiles_**2).sum()
    expected += (item_weight[:, None] * solver.item_profiles_**2).sum()
    assert solver.objective_[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_no_sweep_raises_the_objective(data, rule):
    history = fitted(data.train, regularization=rule, lam=0.1).objective_
    assert len(history) > 10
    assert np.all(np.diff(history) <= 1e-12 * history[:-1])


def drift(data, learning, solver):
    """How far the sequential form leads predictions away from where the solver ended."""
    sequential = Sequential(data.train, learning, 1)
    sequential.user_profiles[:], sequential.item_profiles[:] = solver.user_profiles_, solver.item_profiles_
    # Each rating once for each side, in the same order again and again: no noise but the step itself.
    order = np.random.default_rng(1).permutation(2 * len(data.train))
    again = np.tile(order, 2_000)
    sequential.replay(again // 2, again % 2 == 0)
    expected = solver.user_profiles_ @ solver.item_profiles_.T
    return factorization_rmse(sequential.user_profiles, sequential.item_profiles, expected)


@pytest.mark.parametrize(("rule", "other", "lam"), [("uniform", "per_message", 0.5), ("per_message", "uniform", 0.02)])
def test_the_sequential_form_stays_where_the_solver_ends(data, rule, other, lam):
    solver = fitted(data.train, lam=lam, regularization=rule)
    learning = Learning(rank=3, lam=lam, regularization=rule, rate=0.0005)
    assert drift(data, learning, solver) < 0.002
    assert drift(data, replace(learning, lam=1.2 * lam), solver) > 0.005
    assert drift(data, replace(learning, regularization=other), solver) > 0.02


def test_recovers_the_truth_far_better_than_the_rounding_error(data):
    solver = fitted(data.train)
    assert factorization_rmse(solver.user_profiles_, solver.item_profiles_, data.truth) < 0.2
    assert np.sqrt(np.mean((np.rint(data.truth) - data.truth) ** 2)) > 0.25


def test_comes_close_to_the_oracle_rate_where_noise_is_independent_of_the_truth():
    data = low_rank(100, 100, seed=1, generator="gaussian")
    user, item = data.train.user, data.train.item
    value = data.truth[user, item] + np.random.default_rng(1).uniform(-0.5, 0.5, len(user))
    noisy = Ratings.from_arrays(user, item, value)
    solver = AlternatingLeastSquares(10, lam=noise_weight(100, 100, n_observed=len(user), shrinkage=0.2)).fit(noisy)
    error = factorization_rmse(solver.user_profiles_, solver.item_profiles_, data.truth)
    assert error == pytest.approx(oracle_rate(100, 100, rank=10, n_observed=len(user)), rel=0.12)


@pytest.mark.parametrize("rule", RULES)
def test_profiles_without_a_rating_are_zero_and_predicted_by_the_means(sparse, rule):
    solver = fitted(sparse, regularization=rule, lam=0.2)
    assert solver.user_profiles_.shape == (14, 3)
    assert solver.item_profiles_.shape == (10, 3)
    assert not solver.user_profiles_[12:].any()
    assert not solver.item_profiles_[9].any()
    assert solver.user_profiles_[np.unique(sparse.user)].any(axis=1).all()
    item_mean = sparse.value[sparse.item == 4].mean()
    assert solver.predict([13, 13], [4, 9]) == pytest.approx([item_mean, 3.0])


def test_predict_is_the_inner_product_clipped_to_the_scale_or_not(data):
    solver = fitted(data.train, lam=0.01)
    predicted = (solver.user_profiles_[data.test.user] * solver.item_profiles_[data.test.item]).sum(axis=1)
    assert solver.predict(data.test.user, data.test.item, clip=False) == pytest.approx(predicted, rel=1e-12)
    assert np.any((predicted < 1) | (predicted > 5))  # else clipping is not seen
    clipped = solver.predict(data.test.user, data.test.item)
    assert clipped == pytest.approx(np.clip(predicted, 1, 5), rel=1e-12)
    by_rule = Predictor(data.train)(solver.user_profiles_, solver.item_profiles_, data.test.user, data.test.item)
    assert np.array_equal(clipped, by_rule)


def test_fit_returns_the_solver_and_changes_none_of_its_arguments(data):
    solver = AlternatingLeastSquares(4, lam=0.3, seed=5)
    before = dict(vars(solver))
    assert solver.fit(data.train) is solver
    assert {name: vars(solver)[name] for name in before} == before
    assert solver.user_profiles_.shape == (30, 4)


def test_a_second_fit_forgets_the_first(data, sparse):
    solver = AlternatingLeastSquares(3, lam=0.5).fit(sparse).fit(data.train)
    assert np.array_equal(solver.user_profiles_, AlternatingLeastSquares(3, lam=0.5).fit(data.train).user_profiles_)
    assert solver.n_iter_ == len(solver.objective_)


def test_the_seed_decides_the_bits(data):
    one, same, other = (fitted(data.train, seed=seed).user_profiles_ for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes()
    assert one.tobytes() != other.tobytes()


def test_it_stops_at_the_first_sweep_that_gains_less_than_tol(data):
    solver = fitted(data.train, tol=1e-4)
    gains = -np.diff(solver.objective_) / solver.objective_[:-1]
    assert solver.converged_
    assert gains[-1] <= 1e-4
    assert np.all(gains[:-1] > 1e-4)
    assert solver.n_iter_ == len(solver.objective_) == len(gains) + 1


@pytest.mark.parametrize("sweeps", [1, 3])
def test_too_few_sweeps_are_told_and_the_profiles_kept(data, sweeps):
    with pytest.warns(ConvergenceWarning, match=rf"max_sweeps={sweeps}, .*tol=1.0e-12.*; raise max_sweeps or tol"):
        solver = fitted(data.train, max_sweeps=sweeps)
    assert not solver.converged_
    assert solver.n_iter_ == sweeps
    assert np.all(np.isfinite(solver.predict(data.test.user, data.test.item)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0),
        ("rank", 2.5),
        ("lam", 0),
        ("lam", -1.0),
        ("lam", float("inf")),
        ("regularization", "ridge"),
        ("tol", -1e-3),
        ("tol", 1.0),
        ("tol", float("nan")),
        ("max_sweeps", 0),
        ("max_sweeps", 3.0),
        ("seed", None),
    ],
)
def test_arguments_out_of_range_are_named_when_it_is_fitted(data, name, value):
    solver = AlternatingLeastSquares(**{name: value})
    with pytest.raises(ValueError, match=rf"^{name} must be .*got {value!r}"):
        solver.fit(data.train)
    assert not hasattr(solver, "user_profiles_")


def test_the_ratings_have_no_part_in_which_input_they_come_in(sparse):
    matrix = np.full((14, 10), np.nan)
    matrix[sparse.user, sparse.item] = sparse.value
    stored = scipy.sparse.csr_array((sparse.value, (sparse.user, sparse.item)), shape=matrix.shape)
    expected = fitted(sparse, tol=1e-6)
    inputs = (matrix, None), (stored, None), (pd.DataFrame(matrix), None), (np.nan_to_num(matrix), matrix > 0)
    for given, mask in inputs:
        solver = AlternatingLeastSquares(3, lam=0.5, tol=1e-6).fit(given, mask=mask)
        assert solver.item_profiles_.tobytes() == expected.item_profiles_.tobytes()
        np.testing.assert_array_equal(solver.complete(), expected.complete())
    np.testing.assert_array_equal(expected.complete()[sparse.user, sparse.item], sparse.value)
    with pytest.raises(TypeError, match=r"X must be Ratings, a matrix with NaN, .* got str"):
        AlternatingLeastSquares().fit("ratings")


def test_predict_needs_a_fit():
    with pytest.raises(ValueError, match=r"call fit\(X\) first"):
        AlternatingLeastSquares().predict([0], [0])


@pytest.mark.parametrize(
    ("users", "items", "told"),
    [
        ([30], [0], r"^users must be indices from 0 to 29, got 30"),
        ([0], [-1], r"^items must be indices from 0 to 23, got -1"),
        ([0.5], [0], r"^users must be integers of shape \(n,\), got float64"),
        ([[0]], [0], r"^users must be integers of shape \(n,\), got int64 of shape \(1, 1\)"),
        ([0, 1], [0], r"^users and items must be of one length, got 2 and 1"),
    ],
)
def test_predict_names_indices_that_do_not_fit(data, users, items, told):
    with pytest.raises(ValueError, match=told):
        fitted(data.train, tol=1e-3).predict(users, items)


def test_it_shows_its_arguments():
    assert repr(AlternatingLeastSquares(7, lam=0.25)) == (
        "AlternatingLeastSquares(rank=7, lam=0.25, regularization='uniform')"
    )
