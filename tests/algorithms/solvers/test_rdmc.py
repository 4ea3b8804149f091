from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from algorithms.losses import Loss
from algorithms.ratings import Ratings
from algorithms.solvers import RDMC, ConvergenceWarning
from algorithms.solvers.svt import Thresholder

LOSSES = ["pseudo_huber", "absolute", "truncated"]
LONG = {"stopping": "liberal", "max_iter": 100}
STARS = np.arange(1.0, 6.0)


def ratings(n, p, *, categories=STARS, share=0.5, seed=0):
    """Ratings of rank 3 with noise, NaN where missing; each column has some."""
    rng = np.random.default_rng(seed)
    taste = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) + rng.standard_normal((n, p))
    step = np.searchsorted(np.linspace(-2, 2, len(categories) - 1), taste + rng.standard_normal(p))
    X = categories[step]
    seen = rng.random((n, p)) < share
    seen[rng.integers(n, size=p), np.arange(p)] = True
    return np.where(seen, X, np.nan)


def by_the_letter(X, categories, centres, rho, lam, *, mu=0.1, delta=1.05, tol=1e-4, max_iter=100):
    """Algorithm 1 of the paper for one lambda, cell by cell; ties go to the lower category."""
    n, p = X.shape
    seen = ~np.isnan(X)
    centred = np.where(seen, X - centres, 0.0)
    L, Theta, history = centred.copy(), np.zeros((n, p)), []
    while len(history) < max_iter:
        U, d, Vt = np.linalg.svd(L + Theta / mu, full_matrices=False)
        weight = np.where(d - lam / mu > 1e-4, d - lam / mu, 0.0)
        Z = (U * weight) @ Vt
        L = np.empty((n, p))
        for i, j in np.ndindex(n, p):
            own = np.asarray(categories[j]) - centres[j]
            cost = mu / 2 * (own - Z[i, j] + Theta[i, j] / mu) ** 2
            if seen[i, j]:
                cost = cost + rho[j](own - centred[i, j])
            L[i, j] = own[np.flatnonzero(cost <= cost.min() + 1e-12)[0]]
        Theta = Theta + mu * (L - Z)
        mu *= delta
        loss = sum(rho[j](L[seen[:, j], j] - centred[seen[:, j], j]).sum() for j in range(p))
        inner, norm = (Theta * (L - Z)).sum(), np.sqrt(((L - Z) ** 2).sum())
        history.append(loss + lam * weight.sum() + inner + mu / 2 * norm)
        if len(history) > 1 and abs(history[-1] / history[-2] - 1) < tol:
            break
    return L, Z, Theta, history


def assert_letter(solution, expected):
    L, Z, Theta, history = expected
    np.testing.assert_allclose(solution.L, L, atol=1e-12)
    np.testing.assert_allclose(solution.Z, Z, atol=1e-9)
    np.testing.assert_allclose(solution.Theta, Theta, atol=1e-9)
    np.testing.assert_allclose(solution.history, history, rtol=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("centring", ["median", "midpoint"])
def test_by_the_letter_with_a_scale_for_each_column(loss, centring):
    scales = [STARS, np.arange(0.5, 5.5, 0.5), np.array([0.0, 1.0, 4.0, 10.0]), np.array([-1.0, 1.0])]
    columns = [ratings(25, 3, categories=scale, seed=k) for k, scale in enumerate(scales)]
    X, categories = np.hstack(columns), [scale for scale in scales for _ in range(3)]
    solver = RDMC(0.15, categories=categories, loss=loss, centring=centring, **LONG).fit(X)
    middle = [(own[0] + own[-1]) / 2 for own in categories]
    centres = np.nanmedian(X, axis=0) if centring == "median" else np.array(middle)
    np.testing.assert_array_equal(solver.centres_, centres)
    constants = {
        "pseudo_huber": [(own[-1] - own[0]) / (len(own) - 1) for own in categories],
        "truncated": [(own[-1] - own[0]) / 2 for own in categories],
        "absolute": [1.0] * len(categories),
    }[loss]
    np.testing.assert_allclose(solver.loss_constants_, constants)
    lam = 0.15 * np.linalg.norm(np.nan_to_num(X - centres), 2)
    rho = [Loss(loss, constant) for constant in constants]
    assert_letter(solver.path_[0], by_the_letter(X, categories, centres, rho, lam))
    completed = solver.complete()
    np.testing.assert_array_equal(completed[~np.isnan(X)], X[~np.isnan(X)])
    for j, own in enumerate(categories):
        assert set(completed[:, j]) <= set(own)
        np.testing.assert_array_equal(solver.categories_[j], own)


@pytest.mark.parametrize("shape", [(110, 100), (100, 110)])
@pytest.mark.parametrize("svd", ["auto", "gram", "subspace"])
def test_every_way_to_the_svd_gives_the_solution_of_full_ones(shape, svd):
    X = ratings(*shape, categories=np.arange(1.0, 11.0), share=0.4)
    full, fast = (RDMC([0.05, 0.15, 0.5], svd=way, **LONG).fit(X) for way in ("full", svd))
    np.testing.assert_array_equal(fast.n_iter_, full.n_iter_)
    for ours, theirs in zip(fast.path_, full.path_, strict=True):
        assert theirs.exact_svd
        assert not ours.exact_svd
        np.testing.assert_array_equal(ours.choice, theirs.choice)
        np.testing.assert_allclose(ours.Theta, theirs.Theta, atol=1e-10)
        np.testing.assert_allclose(ours.history, theirs.history, rtol=1e-11)


def test_a_path_starts_each_lambda_from_the_last():
    X = ratings(20, 12)
    path = RDMC([0.3, 0.02, 0.1, 0.1], **LONG).fit(X)
    np.testing.assert_array_equal(path.lambdas_, [0.02, 0.1, 0.3])
    start = None
    for solution in path.path_:
        single = RDMC(solution.lam, **LONG).fit(X, start=start).path_[0]
        np.testing.assert_array_equal(single.choice, solution.choice)
        np.testing.assert_allclose(single.Theta, solution.Theta, atol=1e-10)
        assert single.n_iter == solution.n_iter
        start = solution.L, solution.Theta


def test_lambda_is_relative_to_the_largest_singular_value():
    X = ratings(20, 12)
    relative = RDMC(0.1).fit(X)
    absolute = RDMC(0.1 * relative.d_max_, relative=False).fit(X)
    assert absolute.d_max_ == 1.0
    assert relative.path_[0].penalty == absolute.path_[0].penalty
    np.testing.assert_array_equal(relative.complete(), absolute.complete())


def test_default_grid():
    solver = RDMC(stopping="liberal").fit(ratings(12, 8))
    np.testing.assert_allclose(solver.lambdas_, np.exp(np.linspace(np.log(0.01), 0, 10)), rtol=1e-14)
    assert (solver.n_iter_ <= 10).all()


def test_rank_limit():
    X = ratings(30, 20)
    solver = RDMC(0.05, max_rank=2, **LONG).fit(X)
    assert solver.path_[0].rank == 2
    assert np.linalg.matrix_rank(solver.path_[0].Z) == 2
    assert RDMC(0.05, **LONG).fit(X).path_[0].rank > 2


def test_all_inputs_give_one_solution():
    X = ratings(15, 10)
    row, column = np.nonzero(~np.isnan(X))
    values = X[row, column]
    inputs = [
        pd.DataFrame(X),
        scipy.sparse.coo_array((values, (row, column)), shape=X.shape),
        Ratings.from_arrays(row, column, values, user_ids=range(15), item_ids=range(10)),
    ]
    expected = RDMC(0.1).fit(X).complete()
    for given in inputs:
        np.testing.assert_array_equal(RDMC(0.1).fit(given).complete(), expected)
    masked = RDMC(0.1).fit(np.nan_to_num(X), mask=~np.isnan(X))
    np.testing.assert_array_equal(masked.complete(), expected)


def test_predictions_are_cells_of_the_completed_matrix():
    X = ratings(15, 10)
    solver = RDMC([0.05, 0.2], **LONG).fit(X)
    row, column = (index.ravel() for index in np.indices(X.shape))
    for at in (0, 1, -1):
        np.testing.assert_array_equal(solver.predict(row, column, at=at), solver.complete(at).ravel())
    assert solver.predict([], [], at=0).shape == (0,)
    with pytest.raises(ValueError, match="at must be the position of one of 2 lambdas, from 0 to 1, got None"):
        solver.predict([0], [0])
    with pytest.raises(ValueError, match="got 2"):
        solver.complete(2)
    with pytest.raises(ValueError, match="users must be indices from 0 to 14, got 15"):
        solver.predict([15], [0], at=0)
    errors = np.array([0.5, -3.0])
    np.testing.assert_allclose(solver.loss_of(errors, [0, 9]), Loss("pseudo_huber", 1.0)(errors))


def test_a_tie_goes_to_the_lower_category_whatever_the_rounding():
    """A row that is all zero once centred meets half-integer medians: L starts at exact ties, blurred by the SVD."""
    X = ratings(24, 10, seed=4)
    X[:, ::2] = np.where(np.arange(24)[:, None] % 2 == 0, 2.0, 3.0)  # medians of 2.5
    X[7] = X[22, ::2] = np.nan
    assert (np.nanmedian(X, axis=0) % 1 == 0.5).any()
    rng = np.random.default_rng(5)
    expected = RDMC([0.03, 0.1, 0.4], categories=STARS, **LONG).fit(X)
    for svd in ("full", "gram", "subspace", "full", "gram"):
        rows, columns = rng.permutation(24), rng.permutation(10)
        solver = RDMC([0.03, 0.1, 0.4], categories=STARS, svd=svd, **LONG).fit(X[rows][:, columns])
        np.testing.assert_array_equal(solver.n_iter_, expected.n_iter_)
        for at in range(3):
            np.testing.assert_array_equal(solver.complete(at), expected.complete(at)[rows][:, columns])


def test_a_doubtful_solution_is_found_anew_with_full_svds(monkeypatch):
    X = ratings(110, 100, share=0.3)
    expected = RDMC(0.1, svd="full", **LONG).fit(X).path_[0]
    squared = Thresholder._squared
    monkeypatch.setattr(Thresholder, "_squared", lambda *args: replace(squared(*args), error=1e-11))
    solution = RDMC(0.1, **LONG).fit(X).path_[0]
    assert not solution.exact_svd  # no cell is so near to another category
    monkeypatch.setattr(Thresholder, "_squared", lambda *args: replace(squared(*args), error=1e-8))
    solution = RDMC(0.1, **LONG).fit(X).path_[0]
    assert solution.exact_svd
    np.testing.assert_array_equal(solution.choice, expected.choice)
    assert not RDMC(0.1, svd="gram", **LONG).fit(X).path_[0].exact_svd


def test_the_margin_foretells_a_change_of_category():
    """L stays as it is while Z moves by less than the margin, and changes when it moves by more."""
    from algorithms.solvers.discrete import DiscreteProblem, DiscreteState
    from algorithms.solvers.observed import as_observed
    from algorithms.solvers.scales import make_scales

    X = ratings(6, 5, seed=2)
    observed = as_observed(X)
    scales = make_scales(
        observed, categories=STARS, loss="absolute", loss_constant=None, centring="median", empty_columns="error"
    )
    problem = DiscreteProblem.of(observed, scales)
    rng = np.random.default_rng(1)
    changed = 0
    for _ in range(50):
        Z, Theta = rng.normal(size=X.shape), 0.1 * rng.normal(size=X.shape)

        def choice(shift):
            state = DiscreteState(problem, problem.projected(), Theta, 0.5)  # noqa: B023
            state.Z[:] = Z + shift  # noqa: B023
            return state.update(problem, 0.5, 0.55).margin, state.L

        margin, chosen = choice(0.0)
        for sign in (-1, 1):
            np.testing.assert_array_equal(choice(0.999 * sign * margin)[1], chosen)
        changed += any((choice(1.001 * sign * margin)[1] != chosen).any() for sign in (-1, 1))
    assert changed >= 40  # a comparison that goes otherwise need not change which category is best


def test_columns_and_rows_without_a_rating():
    X = ratings(20, 8)
    X[3] = np.nan
    wider = np.insert(X, [2, 8], np.nan, axis=1)
    solver, plain = RDMC([0.05, 0.2], **LONG).fit(wider), RDMC([0.05, 0.2], **LONG).fit(X)
    others = [0, 1, 3, 4, 5, 6, 7, 8]
    for at in range(2):
        np.testing.assert_array_equal(solver.complete(at)[:, others], plain.complete(at))
        np.testing.assert_array_equal(solver.complete(at)[:, [2, 9]], np.median(X[~np.isnan(X)]))
        np.testing.assert_array_equal(solver.path_[at].Z[:, [2, 9]], 0)
        np.testing.assert_array_equal(solver.path_[at].Theta[:, [2, 9]], 0)
        np.testing.assert_array_equal(solver.path_[at].Z[:, others], plain.path_[at].Z)
    with pytest.raises(ValueError, match=r"got none in column 2 \(of 2 such\)"):
        RDMC(empty_columns="error").fit(wider)
    midpoint = RDMC(0.1, categories=[1, 2, 4, 5], centring="midpoint", **LONG).fit(np.where(wider == 3, 4, wider))
    np.testing.assert_array_equal(midpoint.complete()[:, 2], 2)  # 3 is as far from 2 as from 4


def test_columns_that_are_constant():
    X = ratings(20, 8)
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, 4.0)
    assert set(RDMC(1.0, **LONG).fit(X).complete()[:, 3]) == {4.0}
    constant = np.where(np.isnan(X), np.nan, np.arange(1.0, 9.0) % 5 + 1)
    solver = RDMC([0.1, 1.0], categories=STARS).fit(constant)
    assert solver.d_max_ == 0
    assert solver.converged_.all()
    assert solver.n_iter_.tolist() == [2, 2]
    np.testing.assert_array_equal(solver.complete(0), np.broadcast_to(np.arange(1.0, 9.0) % 5 + 1, X.shape))


def test_one_category():
    X = np.where(np.isnan(ratings(6, 4)), np.nan, 3.0)
    for loss in LOSSES:
        np.testing.assert_array_equal(RDMC(0.1, loss=loss).fit(X).complete(), np.full(X.shape, 3.0))
    np.testing.assert_array_equal(RDMC(0.1, categories=[3]).fit(np.array([[3.0]])).complete(), [[3.0]])
    wide = np.array([[1.0, np.nan, 2.0, 5.0]])
    np.testing.assert_array_equal(
        RDMC(0.1, categories=STARS, svd="gram", **LONG).fit(wide).complete()[0, [0, 2]], [1, 2]
    )


def test_ratings_outside_the_categories_are_named():
    frame = pd.DataFrame(ratings(5, 3, share=1.0), index=list("abcde"), columns=list("xyz"))
    frame.loc["d", "y"] = 2.5
    with pytest.raises(ValueError, match=r"got 2\.5 in row 'd', column 'y', where they are 1, 2, 3, 4, 5"):
        RDMC(categories=STARS).fit(frame)
    frame.loc["d", "y"] = 9
    with pytest.raises(ValueError, match="got 9 in row 'd', column 'y'"):
        RDMC(categories=STARS).fit(frame)
    tenths = np.array([[0.1 + 0.2, 0.1], [0.1, 0.3]])
    np.testing.assert_array_equal(RDMC(0.1, categories=[0.1, 0.2, 0.3], **LONG).fit(tenths).complete(), tenths)


def test_warning_names_the_remedy():
    X = ratings(20, 12)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 iterations at lambda 0.05, 0.2, .* raise max_iter or tol"):
        solver = RDMC([0.05, 0.2], max_iter=3).fit(X)
    assert not solver.converged_.any()
    assert solver.n_iter_.tolist() == [3, 3]
    RDMC(0.2, max_iter=3, stopping="liberal").fit(X)


def test_parameters_follow_the_protocol():
    solver = RDMC(0.1, loss="absolute", tol=1e-3)
    params = solver.get_params()
    assert params["lambdas"] == 0.1
    assert params["loss"] == "absolute"
    copy = type(solver)(**params)
    assert copy.get_params() == params
    assert all(copy.get_params(deep=False)[name] is given for name, given in params.items())
    assert copy.set_params(loss="truncated", mu=0.2) is copy
    assert (copy.loss, copy.mu, solver.loss) == ("truncated", 0.2, "absolute")
    assert repr(solver) == "RDMC(lambdas=0.1, loss='absolute', tol=0.001)"
    with pytest.raises(ValueError, match="'lamda' is no parameter of RDMC; it has lambdas, relative"):
        solver.set_params(lamda=1)
    assert not [name for name in vars(solver) if name.endswith("_")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lambdas": [0.1, -1]}, "lambdas must be finite and > 0"),
        ({"lambdas": []}, "at least one"),
        ({"lambdas": "x"}, "lambdas must hold numbers, got 'x'"),
        ({"loss": "huber"}, "loss must be"),
        ({"loss_constant": 0}, "loss_constant must be finite and > 0"),
        ({"loss_constant": [1, 2]}, "loss_constant must be one number"),
        ({"centring": "mean"}, "centring must be 'median' or 'midpoint', got 'mean'"),
        ({"empty_columns": "drop"}, "empty_columns must be 'predict' or 'error'"),
        ({"max_rank": 0}, "max_rank must be an integer >= 1"),
        ({"stopping": "early"}, "stopping must be 'strict' or 'liberal'"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1 or None"),
        ({"tol": -1.0}, "tol must be a number >= 0"),
        ({"mu": 0.0}, "mu must be a number > 0"),
        ({"delta": 0.9}, "delta must be a number >= 1"),
        ({"svd": "quick"}, "svd must be"),
        ({"categories": []}, "at least one"),
        ({"categories": [1, 2, 2]}, "each category once"),
        ({"categories": [1, np.nan]}, "finite numbers"),
        ({"categories": ["a"]}, "must hold numbers"),
        ({"categories": [[1, 2], [1]]}, "one list for each of 4 columns, got 2 entries"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        RDMC(**arguments).fit(ratings(6, 4))


def test_start_out_of_range():
    X = ratings(6, 4)
    with pytest.raises(ValueError, match=r"L of start must be finite of shape \(6, 4\), got shape \(4, 6\)"):
        RDMC(0.1).fit(X, start=(np.zeros((4, 6)), np.zeros((6, 4))))
    with pytest.raises(ValueError, match="Theta of start"):
        RDMC(0.1).fit(X, start=(np.zeros((6, 4)), np.full((6, 4), np.nan)))
    with pytest.raises(ValueError, match=r"start must be \(L, Theta\)"):
        RDMC(0.1).fit(X, start=(np.zeros((6, 4)),))


def test_an_unfitted_solver_says_so():
    for ask in (lambda: RDMC().complete(), lambda: RDMC().predict([0], [0]), lambda: RDMC().loss_of([1.0], [0])):
        with pytest.raises(ValueError, match=r"call fit\(X\) first"):
            ask()
