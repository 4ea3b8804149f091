"""Exponential sessions online and offline: their lengths, and the share of time online in a run."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from algorithms.chance import USER, entity_keys
from algorithms.ratings import Ratings
from netsim.churn import OnOff
from netsim.simulation import simulate
from netsim.timers import Periodic
from netsim.world import World

pytestmark = pytest.mark.statistical

ALPHA = 1e-4
CHURN = OnOff(mean_online=20.0, mean_offline=10.0)


class Watch:
    """Probe that keeps who is online at each probe time."""

    columns = ()

    def __init__(self):
        self.users, self.routers = [], []

    def __call__(self, view):
        self.users.append(view.users_online)
        self.routers.append(view.routers_online)
        return {}


def watched(n_users, *, until, every, **churn):
    """Who was online at each probe time, users and routers; bool, shape (times, nodes)."""
    ratings = Ratings.from_arrays([0], [0], [3.0], scale=(1, 5), user_ids=range(n_users))
    silent = Periodic(1e6, phase=1e6)
    world = World(ratings, routers=n_users, user_broadcast=silent, router_broadcast=silent, **churn)
    watch = Watch()
    simulate(world, until=until, seed=1, every=every, probes=[watch])
    return np.array(watch.users), np.array(watch.routers)


def session_lengths(online, every, first):
    """Lengths of each node's first sessions of each kind after the one it began with: online, offline."""
    lengths = {True: [], False: []}
    for column in online.T:
        changes = np.flatnonzero(np.diff(column)) + 1
        assert len(changes) > 2 * first
        for start, end in pairwise(changes[: 2 * first + 1]):
            lengths[bool(column[start])].append((end - start) * every)
    return np.array(lengths[True]), np.array(lengths[False])


@pytest.fixture(scope="module")
def long_run():
    """100 users through some 50 cycles, seen every 0.25 s."""
    return watched(100, until=1500.0, every=0.25, user_churn=CHURN)


def test_session_lengths_in_a_run_are_exponential(long_run):
    # Half the resolution over the mean is what seeing only each 0.25 s can move the distribution.
    lengths = session_lengths(long_run[0], 0.25, 20)
    for seen, mean in zip(lengths, (20.0, 10.0), strict=True):
        assert len(seen) >= 1900
        rounding = 0.25 / mean
        bound = stats.kstwo.isf(ALPHA, len(seen)) + rounding
        assert stats.kstest(seen, stats.expon(scale=mean).cdf).statistic < bound


def test_availability_over_time_is_the_stationary_one(long_run):
    # An on/off chain forgets at the rate 1/20 + 1/10 a second; its time average has variance 2 p q / (rate T n).
    p = CHURN.availability
    rate = 1 / CHURN.mean_online + 1 / CHURN.mean_offline
    deviation = np.sqrt(2 * p * (1 - p) / (rate * 1500 * 100))
    assert abs(long_run[0].mean() - p) < stats.norm.isf(ALPHA / 2) * deviation


def test_a_node_without_churn_stays_online(long_run):
    assert long_run[1].all()


@pytest.mark.parametrize("churn", [CHURN, OnOff(5, 45)])
def test_nodes_start_in_the_stationary_state_and_stay_there(churn):
    users, routers = watched(2000, until=20.0, every=5.0, user_churn=churn, router_churn=churn)
    for online in (*users, *routers):
        assert stats.binomtest(int(online.sum()), 2000, churn.availability).pvalue > ALPHA


def test_routers_and_users_of_the_same_id_come_and_go_on_their_own():
    users, routers = watched(2000, until=5.0, every=5.0, user_churn=CHURN, router_churn=CHURN)
    table = np.bincount(2 * users[0] + routers[0], minlength=4).reshape(2, 2)
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_drawn_lengths_are_exponential_and_independent():
    keys = entity_keys(USER, range(2000))
    lengths = np.array([[session_length(np.uint64(1), key, n, 7.0) for n in range(1, 11)] for key in keys])
    assert stats.kstest(lengths.ravel(), stats.expon(scale=7).cdf).pvalue > ALPHA
    assert stats.spearmanr(lengths[:, :-1].ravel(), lengths[:, 1:].ravel()).pvalue > ALPHA
    began_online = np.array([first_online(np.uint64(1), key, 1.0, 1.0) for key in keys])
    assert stats.ks_2samp(lengths[began_online, 0], lengths[~began_online, 0]).pvalue > ALPHA
