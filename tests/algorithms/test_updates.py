import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms.updates import (
    CONSTANT,
    EXPONENTIAL,
    INVERSE,
    PER_MESSAGE,
    UNIFORM,
    inner,
    learning_rate_at,
    regularization_at,
    update_item,
    update_user,
)

unhurried = settings(deadline=None)  # the first example may compile
EPS = np.finfo(float).eps
ENTRIES = st.floats(-10, 10)
PAIRS = st.integers(1, 12).flatmap(
    lambda rank: st.tuples(arrays(float, rank, elements=ENTRIES), arrays(float, rank, elements=ENTRIES))
)
RATINGS, RATES, LAMBDAS = st.floats(-5, 5), st.floats(0, 1), st.floats(0, 2)


def rounding(own, received, x, eta, lam):
    """A few units in the last place of the terms of one update."""
    error = np.abs(own) @ np.abs(received) + abs(x)
    terms = np.abs(own) + eta * np.abs(received) * error + eta * lam * np.abs(own)
    return (4 + len(own)) * EPS * terms + 1e-300


@unhurried
@given(PAIRS, RATINGS, RATES, LAMBDAS)
def test_equation_3(pair, x, eta, lam):
    u, v = pair
    expected = u - eta * v * (u.T @ v - x) - eta * lam * u
    moved = u.copy()
    update_user(moved, v, x, eta, lam)
    assert (np.abs(moved - expected) <= rounding(u, v, x, eta, lam)).all()


@unhurried
@given(PAIRS, RATINGS, RATES, LAMBDAS)
def test_equation_4(pair, x, eta, lam):
    u, v = pair
    expected = v - eta * u * (u.T @ v - x) - eta * lam * v
    moved = v.copy()
    update_item(moved, u, x, eta, lam)
    assert (np.abs(moved - expected) <= rounding(v, u, x, eta, lam)).all()


@unhurried
@given(PAIRS, RATINGS, RATES, LAMBDAS)
def test_both_equations_give_the_same_bits_with_roles_exchanged(pair, x, eta, lam):
    own, received = pair
    as_user, as_item = own.copy(), own.copy()
    update_user(as_user, received, x, eta, lam)
    update_item(as_item, received, x, eta, lam)
    assert as_user.tobytes() == as_item.tobytes()


@pytest.mark.parametrize("update", [update_user, update_item])
@unhurried
@given(pair=PAIRS, x=RATINGS, eta=RATES, lam=LAMBDAS)
def test_the_profile_received_does_not_change(update, pair, x, eta, lam):
    own, received = pair
    before = received.copy()
    update(own.copy(), received, x, eta, lam)
    assert received.tobytes() == before.tobytes()


def test_an_update_by_hand():
    u, v = np.array([1.0, 2.0]), np.array([0.5, 1.0])
    update_user(u, v, 3.5, 0.5, 0.25)  # error -1; u + 0.5 v - 0.125 u
    assert u.tolist() == [1.125, 2.25]


@unhurried
@given(PAIRS)
def test_inner_sums_in_index_order(pair):
    a, b = pair
    total = 0.0
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        total += x * y
    assert inner(a, b) == total


@pytest.mark.parametrize(
    ("rule", "n_known", "weight"),
    [(PER_MESSAGE, 0, 0.6), (PER_MESSAGE, 4, 0.6), (UNIFORM, 0, 0.6), (UNIFORM, 1, 0.6), (UNIFORM, 4, 0.15)],
)
def test_regularization(rule, n_known, weight):
    assert regularization_at(rule, 0.6, n_known) == pytest.approx(weight)


@pytest.mark.parametrize("per_pass", [False, True])
@pytest.mark.parametrize("schedule", [CONSTANT, INVERSE, EXPONENTIAL])
def test_the_rate_at_age_0_is_the_initial_one(schedule, per_pass):
    assert learning_rate_at(schedule, 0.3, 7.0, per_pass, 0, 5) == 0.3


@pytest.mark.parametrize(
    ("schedule", "at_one", "at_two", "at_three"),
    [(CONSTANT, 0.4, 0.4, 0.4), (INVERSE, 0.2, 0.4 / 3, 0.1), (EXPONENTIAL, 0.2, 0.1, 0.05)],
)
@pytest.mark.parametrize(("per_pass", "n_known", "life"), [(False, 5, 8), (True, 5, 40), (True, 0, 8)])
def test_rate_after_half_lives(schedule, at_one, at_two, at_three, per_pass, n_known, life):
    # A half-life of 8 passes over 5 known ratings is 40 updates; without known ratings, updates are counted.
    rates = [learning_rate_at(schedule, 0.4, 8.0, per_pass, n * life, n_known) for n in (1, 2, 3)]
    assert rates == pytest.approx([at_one, at_two, at_three])
