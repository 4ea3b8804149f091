import numpy as np
import pytest

from algorithms.losses import Loss, default_constant

ERRORS = np.array([-3.0, -0.5, 0.0, 1.0, 2.5])


def test_values():
    np.testing.assert_array_equal(Loss("absolute")(ERRORS), [3, 0.5, 0, 1, 2.5])
    np.testing.assert_array_equal(Loss("truncated", 2.0)(ERRORS), [2, 0.5, 0, 1, 2])
    np.testing.assert_allclose(Loss("pseudo_huber", 2.0)(ERRORS), 4 * (np.sqrt(1 + ERRORS**2 / 4) - 1))
    np.testing.assert_allclose(Loss("truncated", np.array([1.0, 2.0]))([5.0, 5.0]), [1, 2])


def test_pseudo_huber_is_quadratic_near_zero_and_linear_far_out():
    rho = Loss("pseudo_huber", 1.5)
    np.testing.assert_allclose(rho(1e-4), 0.5e-8, rtol=1e-6)
    np.testing.assert_allclose(rho(1e6 + 1) - rho(1e6), 1.5, rtol=1e-6)


def test_default_constants():
    half_stars = np.arange(0.5, 5.5, 0.5)
    assert default_constant("pseudo_huber", half_stars) == 0.5
    assert default_constant("truncated", half_stars) == 2.25
    assert default_constant("pseudo_huber", np.array([1.0, 2.0, 5.0])) == 2.0
    assert default_constant("truncated", np.array([3.0])) == 1.0


@pytest.mark.parametrize("constant", [0.0, -1.0, np.nan, np.inf])
def test_constant_out_of_range(constant):
    with pytest.raises(ValueError, match="loss_constant must be finite and > 0"):
        Loss("truncated", constant)


def test_unknown_name():
    with pytest.raises(ValueError, match="loss must be 'pseudo_huber', 'absolute' or 'truncated', got 'huber'"):
        Loss("huber")
