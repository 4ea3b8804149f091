import math

import numpy as np
import pytest

from algorithms.synthetic import noise_weight, oracle_rate
from algorithms.synthetic.noise import ROUNDING

# 0.288675 sqrt(10 (2n - 10) / 0.8 n^2), by hand.
KNOWN = {100: 0.14068, 200: 0.10078, 500: 0.06423}


@pytest.mark.parametrize("size", KNOWN)
def test_oracle_rate_has_the_known_figures(size):
    assert oracle_rate(size, size, rank=10, n_observed=round(0.8 * size**2)) == pytest.approx(KNOWN[size], abs=1e-5)


def test_rounding_has_the_deviation_of_a_uniform_number():
    entries = np.random.default_rng(1).uniform(0, 100, 100_000)
    assert np.std(np.rint(entries) - entries) == pytest.approx(ROUNDING, rel=0.01)


def test_oracle_rate_is_the_error_of_least_squares_in_the_space_of_the_truth():
    # All entries observed, noise independent of the truth: projecting the data onto the tangent space at the truth.
    rng = np.random.default_rng(2)
    left, right = (np.linalg.qr(rng.standard_normal((n, 3)))[0] for n in (60, 40))
    squared = []
    for _ in range(200):
        noise = rng.normal(0, 0.5, (60, 40))
        rest = noise - left @ (left.T @ noise)
        projected = noise - (rest - rest @ right @ right.T)
        squared.append(np.mean(projected**2))
    expected = oracle_rate(60, 40, rank=3, n_observed=2400, sigma=0.5)
    assert math.sqrt(np.mean(squared)) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("shape", "share"), [((200, 200), 1.0), ((300, 150), 0.5)])
def test_noise_weight_is_the_largest_singular_value_of_the_noise(shape, share):
    rng = np.random.default_rng(3)
    noise = rng.uniform(-0.5, 0.5, shape) * (rng.random(shape) < share)
    largest = np.linalg.svd(noise, compute_uv=False)[0]
    weight = noise_weight(*shape, n_observed=round(share * shape[0] * shape[1]))
    assert weight == pytest.approx(largest, rel=0.05)


def test_noise_weight_is_in_proportion_to_shrinkage_and_sigma():
    whole = noise_weight(20, 30, n_observed=100)
    assert noise_weight(20, 30, n_observed=100, shrinkage=0.25) == pytest.approx(whole / 4)
    assert noise_weight(20, 30, n_observed=100, sigma=3 * ROUNDING) == pytest.approx(3 * whole)


SHARED = [
    ("n_users", 0),
    ("n_items", 2.0),
    ("n_observed", 0),
    ("n_observed", 31),
    ("n_observed", True),
    ("sigma", 0.0),
    ("sigma", math.nan),
]


@pytest.mark.parametrize(("name", "value"), [*SHARED, ("rank", 6), ("rank", 0)])
def test_arguments_of_the_oracle_rate_out_of_range_are_named(name, value):
    arguments = {"n_users": 6, "n_items": 5, "n_observed": 20, "sigma": 0.3, "rank": 2} | {name: value}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {value!r}$"):
        oracle_rate(**arguments)


@pytest.mark.parametrize(("name", "value"), [*SHARED, ("shrinkage", 0), ("shrinkage", math.inf)])
def test_arguments_of_the_noise_weight_out_of_range_are_named(name, value):
    arguments = {"n_users": 6, "n_items": 5, "n_observed": 20, "sigma": 0.3, "shrinkage": 1.0} | {name: value}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {value!r}$"):
        noise_weight(**arguments)
