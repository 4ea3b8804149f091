import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys, seed_word
from algorithms.distributions import Uniform, sample_each
from algorithms.learning import Learning, Schedule, initial_profiles
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.sequential import Sequential
from algorithms.solvers.als import AlternatingLeastSquares
from algorithms.solvers.convergence import ConvergenceWarning
from algorithms.solvers.factorization import StochasticGradientDescent
from algorithms.solvers.profiles import as_ratings


def reference(ratings, *, n_epochs, rank, lam, rule, rate, schedule, seed):
    """The updates of the docstring, in plain Python."""
    learning = Learning(rank=rank, lam=lam, regularization=rule, rate=rate, schedule=schedule)
    word = seed_word(seed)
    keys = entity_keys(USER, ratings.user_ids), entity_keys(ITEM, ratings.item_ids)
    U, V = (initial_profiles(side, learning, (ratings.scale.low, ratings.scale.high), seed=word) for side in keys)
    rates = [
        sample_each(learning.rate, word, purposes.LEARNING_RATE, side)
        for side in (keys[0], entity_keys(ROUTER, ratings.item_ids))
    ]
    counts = np.bincount(ratings.user, minlength=len(U)), np.bincount(ratings.item, minlength=len(V))
    done = np.zeros(len(U)), np.zeros(len(V))
    for epoch in range(n_epochs):
        for n in np.random.default_rng([int(word), epoch]).permutation(len(ratings)):
            i, j = ratings.user[n], ratings.item[n]
            u, v = U[i].copy(), V[j].copy()
            error = u @ v - ratings.value[n]
            eta, weight = [], []
            for side, which in ((0, i), (1, j)):
                age = done[side][which] / counts[side][which]
                eta.append(rates[side][which] / (1 + age / schedule.half_life))
                weight.append(lam / counts[side][which] if rule == "uniform" else lam)
                done[side][which] += 1
            U[i] = u - eta[0] * (error * v + weight[0] * u)
            V[j] = v - eta[1] * (error * u + weight[1] * v)
    return U, V


@pytest.mark.parametrize("rule", ["uniform", "per_message"])
def test_updates_are_those_of_the_papers_equations(sparse, rule):
    arguments = {"rank": 3, "lam": 0.3, "rate": Uniform(0.01, 0.05), "schedule": Schedule("inverse", 3.0), "seed": 5}
    solver = StochasticGradientDescent(regularization=rule, max_epochs=4, tol=0.0, **arguments)
    with pytest.warns(ConvergenceWarning):
        solver.fit(sparse)
    U, V = reference(sparse, n_epochs=4, rule=rule, **arguments)
    np.testing.assert_allclose(solver.user_profiles_, U, rtol=1e-12)
    np.testing.assert_allclose(solver.item_profiles_, V, rtol=1e-12)


def test_it_starts_where_the_sequential_form_starts(sparse):
    start = Sequential(sparse, Learning(rank=4), 7)
    with pytest.warns(ConvergenceWarning):
        solver = StochasticGradientDescent(4, rate=0.0, max_epochs=1, seed=7).fit(sparse)
    np.testing.assert_array_equal(solver.user_profiles_, start.user_profiles)
    np.testing.assert_array_equal(solver.item_profiles_, start.item_profiles)


@pytest.mark.parametrize(("rule", "lam"), [("uniform", 1.0), ("per_message", 0.05)])
def test_a_falling_rate_leads_to_the_minimum_of_als(data, rule, lam):
    solver = StochasticGradientDescent(
        3, lam=lam, regularization=rule, schedule=Schedule("inverse", 50.0), tol=1e-7, max_epochs=5000
    ).fit(data.train)
    least = AlternatingLeastSquares(3, lam=lam, regularization=rule, tol=1e-10, max_sweeps=20_000).fit(data.train)
    assert least.objective_[-1] <= solver.objective_[-1] <= 1.01 * least.objective_[-1]
    assert solver.converged_


def test_objective_is_that_of_the_paper(data):
    solver = StochasticGradientDescent(3, lam=0.7).fit(data.train)
    whole = objective(solver.user_profiles_, solver.item_profiles_, data.train, 0.7)
    assert solver.objective_[-1] == pytest.approx(whole, rel=1e-12)
    assert len(solver.objective_) == solver.n_iter_ > 5
    drops = -np.diff(solver.objective_) / solver.objective_[:-1]
    assert drops[-1] <= 1e-4 < drops[:-1].min()


def test_predictions_go_by_the_rules_of_the_predictor(sparse):
    solver = StochasticGradientDescent(3, tol=1e-3).fit(sparse)
    user, item = np.indices((14, 10)).reshape(2, -1)
    for clip in (True, False):
        expected = Predictor(sparse, clip=clip)(solver.user_profiles_, solver.item_profiles_, user, item)
        np.testing.assert_array_equal(solver.predict(user, item, clip=clip), expected)
    completed = solver.complete()
    known = np.zeros(completed.shape, dtype=bool)
    known[sparse.user, sparse.item] = True
    np.testing.assert_array_equal(completed[sparse.user, sparse.item], sparse.value)
    np.testing.assert_array_equal(completed[~known], solver.predict(user, item).reshape(14, 10)[~known])


def test_a_matrix_with_missing_cells_is_taken_too(sparse):
    matrix = np.full((14, 10), np.nan)
    matrix[sparse.user, sparse.item] = sparse.value
    assert as_ratings(matrix) == sparse
    one, other = (StochasticGradientDescent(3, seed=2, tol=1e-3).fit(given) for given in (sparse, matrix))
    assert one.user_profiles_.tobytes() == other.user_profiles_.tobytes()


def test_the_seed_decides_the_bits(data):
    one, same, other = (StochasticGradientDescent(3, seed=seed).fit(data.train).user_profiles_ for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()


def test_too_few_epochs_are_told(data):
    with pytest.warns(ConvergenceWarning, match=r"max_epochs=2, .*; raise max_epochs, rate or tol"):
        solver = StochasticGradientDescent(3, max_epochs=2).fit(data.train)
    assert not solver.converged_


def test_an_epoch_that_raises_the_objective_ends_the_fit_but_is_no_convergence(data):
    noisy = StochasticGradientDescent(3, lam=0.7, rate=0.06)
    with pytest.warns(ConvergenceWarning, match=r"stopped after \d+ epochs, .* raised the objective .*; lower rate"):
        noisy.fit(data.train)
    rises = np.diff(noisy.objective_) > 0
    assert rises[-1]
    assert not rises[:-1].any()
    assert not noisy.converged_
    assert (
        StochasticGradientDescent(3, lam=0.7, rate=0.06, schedule=Schedule("inverse", 10.0)).fit(data.train).converged_
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 0}, "rank must be an integer >= 1"),
        ({"lam": -1}, "lam must be a finite number >= 0"),
        ({"regularization": "none"}, "regularization must be"),
        ({"tol": 1.0}, r"tol must be in \[0, 1\)"),
        ({"max_epochs": 0}, "max_epochs must be an integer >= 1"),
        ({"rate": 50.0}, "rate=50.0 is too high: the profiles overflow in epoch"),
    ],
)
def test_bad_arguments_are_named(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        StochasticGradientDescent(**arguments).fit(data.train)


def test_fit_is_asked_for_and_parameters_are_kept():
    with pytest.raises(ValueError, match=r"call fit\(X\) first"):
        StochasticGradientDescent().predict([0], [0])
    for solver in (StochasticGradientDescent(4, lam=0.2), AlternatingLeastSquares(4, lam=0.2)):
        assert type(solver)(**solver.get_params()).get_params() == solver.get_params()
        assert solver.set_params(rank=5).rank == 5
