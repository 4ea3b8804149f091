"""The quantiles that several probes take: the same check and the same names of columns."""

import numpy as np
import pytest

from netsim.probes import rmse_per_user, staleness, updates_per_node
from netsim.probes.quantiles import check_quantiles, quantile_columns, quantile_values
from tests.netsim.probes.small import one_user

PROBES = {
    "staleness": staleness,
    "updates_per_node": updates_per_node,
    "rmse_per_user": lambda quantiles: rmse_per_user(one_user().ratings, quantiles=quantiles),
}


@pytest.fixture(params=PROBES)
def named(request):
    return request.param, PROBES[request.param]


@pytest.mark.parametrize("quantile", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_a_quantile_out_of_range_is_refused(named, quantile):
    name, probe = named
    with pytest.raises(ValueError, match=rf"^{name}: quantiles must be numbers in \[0, 1\], got"):
        probe((0.5, quantile))


@pytest.mark.parametrize("quantiles", [0.5, "0.5", [[0.5]]])
def test_what_is_no_sequence_of_numbers_is_refused_with_the_mend(named, quantiles):
    name, probe = named
    with pytest.raises(ValueError, match=rf"^{name}: quantiles must be a sequence.*pass \(0\.5,\) for one"):
        probe(quantiles)


def test_no_quantile_is_refused(named):
    name, probe = named
    with pytest.raises(ValueError, match=rf"^{name}: quantiles must hold a number"):
        probe(())


@pytest.mark.parametrize("twice", [(0.5, 0.5), (0.1234567, 0.12345671)])
def test_quantiles_of_one_name_are_refused(named, twice):
    name, probe = named
    with pytest.raises(ValueError, match=rf"^{name}: quantiles must differ in their first six digits"):
        probe(twice)


def test_names_of_columns():
    names = quantile_columns("age", (0.0, 0.025, 0.29, 1.0))
    assert names == ("age_q0", "age_q2_5", "age_q29", "age_q100")
    assert check_quantiles("probe", [np.float32(0.5), 1]) == (0.5, 1.0)


def test_values_are_linear_between_two_and_nan_where_there_are_none():
    assert quantile_values("x", (0.0, 0.5, 1.0), np.array([3.0, 1.0])) == {"x_q0": 1.0, "x_q50": 2.0, "x_q100": 3.0}
    assert np.isnan(list(quantile_values("x", (0.0, 0.5), np.zeros(0)).values())).all()
