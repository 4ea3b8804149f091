"""The network with uniform regularization ends at the optimum of Soft-Impute, which no node computes."""

import pytest

from algorithms.certificate import certificate
from algorithms.learning import Learning, Schedule
from algorithms.solvers.soft_impute import SoftImpute
from algorithms.synthetic import low_rank
from netsim.simulation import simulate
from netsim.world import World

pytestmark = pytest.mark.statistical

LAM = 4.0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_network_comes_within_a_thousandth_of_the_optimum(seed):
    known = low_rank(60, 50, rank=4, missing=0.4, seed=seed).train
    learning = Learning(
        rank=8, lam=LAM, regularization="uniform", rate=0.01, schedule=Schedule("exponential", half_life=400.0)
    )
    result = simulate(World(known, learning=learning), until=30_000.0, seed=seed, every=1e6)
    optimum = SoftImpute(LAM, relative=False, centring="none", tol=1e-12, max_iter=5000).fit(known)
    found = certificate(result.user_profiles, result.item_profiles, known, lam=LAM)
    assert 1 < optimum.path_[0].rank <= 8
    assert -1e-9 < found.objective / optimum.objective_[0] - 1 < 1e-3
    assert found.objective - optimum.objective_[0] <= found.gap
    assert found.relative_gap < 1e-2
