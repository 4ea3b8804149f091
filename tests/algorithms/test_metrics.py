import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms.metrics import mae, rmse

unhurried = settings(deadline=None)  # the first example may compile
PAIRS = st.integers(1, 50).flatmap(lambda n: arrays(float, (2, n), elements=st.floats(-1e3, 1e3)))


@unhurried
@given(PAIRS)
def test_errors_against_numpy(pair):
    predicted, actual = pair
    assert rmse(predicted, actual) == pytest.approx(np.sqrt(np.mean((predicted - actual) ** 2)), rel=1e-12)
    assert mae(predicted, actual) == pytest.approx(np.mean(np.abs(predicted - actual)), rel=1e-12)


@pytest.mark.parametrize("n", [4095, 4096, 4097, 10000])
def test_errors_over_several_blocks(n):
    predicted, actual = np.random.default_rng(n).normal(size=(2, n))
    assert rmse(predicted, actual) == pytest.approx(np.sqrt(np.mean((predicted - actual) ** 2)), rel=1e-12)
    assert mae(predicted, actual) == pytest.approx(np.mean(np.abs(predicted - actual)), rel=1e-12)


def test_errors_by_hand():
    predicted, actual = np.array([1.0, 2.0, 7.0]), np.array([1.0, 4.0, 5.0])
    assert rmse(predicted, actual) == pytest.approx(np.sqrt(8 / 3))
    assert mae(predicted, actual) == pytest.approx(4 / 3)


@pytest.mark.parametrize("error", [rmse, mae])
@pytest.mark.parametrize("shapes", [(0, 0), (2, 3), ((2, 2), (2, 2)), (4, (2, 2))])
def test_shapes_that_do_not_fit_are_refused(error, shapes):
    with pytest.raises(ValueError, match="predicted and actual must be non-empty arrays of one shape"):
        error(np.zeros(shapes[0]), np.zeros(shapes[1]))


@pytest.mark.parametrize("error", [rmse, mae])
def test_an_error_that_is_not_a_number_shows(error):
    assert np.isnan(error(np.array([1.0, np.nan]), np.ones(2)))
