"""Sessions online and offline: their lengths, and the share of time online in a run and as drawn."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from algorithms.distributions import Constant, Empirical, Exponential, Gamma, LogNormal, Pareto, Uniform, Weibull
from algorithms.ratings import Ratings
from netsim.churn import Diurnal, OnOff, Sessions
from netsim.sessions import session_end
from netsim.simulation import simulate
from netsim.tables import build_tables
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


# -- any distribution of lengths ---------------------------------------------------------------------------------------

N = 8000
OTHER = LogNormal(6.0, 0.7)
LAWS = {
    "exponential": (Exponential(10.0), stats.expon(scale=10.0)),
    "weibull": (Weibull(8.0, 0.6), stats.weibull_min(0.6, scale=8.0)),
    "lognormal": (LogNormal(7.0, 1.0), stats.lognorm(1.0, scale=7.0)),
    "pareto": (Pareto(4.0, 2.5), stats.pareto(2.5, scale=4.0)),
    "uniform": (Uniform(2.0, 20.0), stats.uniform(2.0, 18.0)),
    "gamma": (Gamma(0.6, 15.0), stats.gamma(0.6, scale=15.0)),
}
INVERTED = [name for name in LAWS if name != "gamma"]
DISCRETE = {"constant": Constant(10.0), "empirical": Empirical([1.0, 2.0, 2.0, 35.0])}


def drawn_sessions(churn, n_sessions, *, seed=1, n=N):
    """Whether each of n users begins online, and ends of the sessions; bool, shape (n,), and (n, n_sessions)."""
    ratings = Ratings.from_arrays([0], [0], [3.0], scale=(1, 5), user_ids=range(n))
    state = build_tables(World(ratings, user_churn=churn), seed).state
    ends = np.zeros((n, n_sessions + 1))
    for user in range(n):
        for session in range(1, n_sessions + 1):
            ends[user, session] = session_end(state, user, session, ends[user, session - 1])
    return state.life["first_online"][:n].copy(), ends[:, 1:]


def lengths_of(ends, session):
    """Lengths of session number `session` > 1 of all users."""
    return ends[:, session - 1] - ends[:, session - 2]


def share_online(first, ends, time):
    """How many are online at a time."""
    assert ends[:, -1].min() > time
    return int((first ^ ((ends <= time).sum(axis=1) % 2 == 1)).sum())


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("name", LAWS)
def test_lengths_keep_their_distribution(name, correlation):
    """Session 3, 9 and 21 of many users, who are independent; both kinds, and correlated ones too."""
    if name == "gamma" and correlation > 0:
        with pytest.raises(ValueError, match="sampled by inversion"):
            Sessions(LAWS[name][0], OTHER, correlation=correlation)
        return
    law, expected = LAWS[name]
    first, ends = drawn_sessions(Sessions(law, law, correlation=correlation, start="online"), 21, n=4000)
    assert first.all()
    for session in (2, 3, 9, 20, 21):
        assert stats.kstest(lengths_of(ends, session), expected.cdf).pvalue > ALPHA


@pytest.mark.parametrize("rho", [0.3, 0.9])
@pytest.mark.parametrize("name", INVERTED)
def test_sessions_of_a_kind_are_correlated_as_the_copula_says(name, rho):
    """Rank correlation at lag k is (6 / pi) asin(rho^k / 2); none between the kinds."""
    law, _ = LAWS[name]
    _, ends = drawn_sessions(Sessions(law, OTHER, correlation=rho, start="online"), 12, n=4000)
    for lag in (1, 2):
        expected = 6 / math.pi * math.asin(rho**lag / 2)
        for session in (5, 6):
            found = stats.spearmanr(lengths_of(ends, session), lengths_of(ends, session + 2 * lag)).statistic
            # At independence the deviation is 1 / sqrt(n); correlation makes it smaller.
            assert abs(found - expected) < stats.norm.isf(ALPHA / 2) / math.sqrt(4000)
    assert stats.spearmanr(lengths_of(ends, 5), lengths_of(ends, 6)).pvalue > ALPHA


@pytest.mark.parametrize("name", LAWS)
def test_the_first_session_of_a_stationary_start_is_the_rest_of_one(name):
    """Density (1 - F(x)) / mean of the forward recurrence time; the same for both kinds."""
    law, expected = LAWS[name]
    first, ends = drawn_sessions(Sessions(law, law), 1)
    grid = np.concatenate([[0.0], np.geomspace(1e-4, ends.max() * 1.01, 4000)])
    rest = np.concatenate([[0.0], integrate.cumulative_simpson(expected.sf(grid), x=grid)]) / expected.mean()

    def distribution(x):
        return np.interp(x, grid, rest)

    for kind in (True, False):
        assert stats.kstest(ends[first == kind, 0], distribution).pvalue > ALPHA


@pytest.mark.parametrize("name", [*LAWS, *DISCRETE])
def test_availability_is_stationary_from_time_0_on(name):
    law = DISCRETE[name] if name in DISCRETE else LAWS[name][0]
    churn = Sessions(law, OTHER)
    first, ends = drawn_sessions(churn, 40)
    for time in (0.0, 0.5, 2.0, 5.0, 12.0, 40.0, 90.0):
        assert stats.binomtest(share_online(first, ends, time), N, churn.availability).pvalue > ALPHA


@pytest.mark.parametrize("start", ["online", "offline"])
def test_availability_comes_to_its_share_from_any_start(start):
    churn = Sessions(Weibull(8.0, 0.6), OTHER, start=start)
    first, ends = drawn_sessions(churn, 120, n=4000)
    assert first.all() == first.any() == (start == "online")
    assert stats.binomtest(share_online(first, ends, 300.0), 4000, churn.availability).pvalue > ALPHA


@pytest.mark.parametrize("law", [LogNormal(7.0, 1.2), Weibull(8.0, 0.6), Exponential(10.0), Uniform(2.0, 20.0)])
def test_correlated_sessions_begin_with_the_right_share(law):
    churn = Sessions(law, OTHER, correlation=0.9)
    first, ends = drawn_sessions(churn, 20)
    for time in (0.0, 1.0):
        assert stats.binomtest(share_online(first, ends, time), N, churn.availability).pvalue > ALPHA


@pytest.mark.parametrize("law", [LogNormal(7.0, 1.2), Weibull(8.0, 0.6), Exponential(10.0)])
def test_correlated_sessions_are_stationary_from_time_0_on(law):
    """Who is in a long session at time 0 has long ones after it; else availability dips for a while."""
    churn = Sessions(law, OTHER, correlation=0.9)
    first, ends = drawn_sessions(churn, 160, n=4000)
    for time in (20.0, 40.0, 80.0):
        assert stats.binomtest(share_online(first, ends, time), 4000, churn.availability).pvalue > ALPHA


# -- the rhythm of the day ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amplitude", [0.3, 0.9])
def test_availability_over_the_day_follows_the_rates(amplitude):
    """Of exponential sessions, dp/dt = (1 - p)(1 + a c)/offline - p (1 - a c)/online, c = cos(2 pi (t - peak)/day)."""
    churn = Sessions(Exponential(3.0), Exponential(5.0), diurnal=Diurnal(amplitude, 6.0, day=24.0))
    first, ends = drawn_sessions(churn, 60)

    def rate(t, p):
        c = amplitude * math.cos(2 * math.pi * (t - 6.0) / 24.0)
        return (1 - p) * (1 + c) / 5.0 - p * (1 - c) / 3.0

    times = np.arange(0.0, 48.0, 3.0)
    shares = integrate.solve_ivp(rate, (0.0, 48.0), [churn.availability], t_eval=times, rtol=1e-9, atol=1e-12).y[0]
    assert np.ptp(shares) > 0.1
    for time, share in zip(times, shares, strict=True):
        assert stats.binomtest(share_online(first, ends, time), N, share).pvalue > ALPHA


@pytest.mark.parametrize("name", LAWS)
def test_more_are_online_around_the_peak(name):
    law, expected = LAWS[name]
    day = 12 * expected.mean()
    churn = Sessions(law, law, diurnal=Diurnal(0.8, day / 4, day=day))
    first, ends = drawn_sessions(churn, 60, n=4000)
    at_peak, in_trough = (share_online(first, ends, day * (1 + part)) for part in (0.3, 0.8))
    assert at_peak - in_trough > stats.norm.isf(ALPHA) * math.sqrt(2 * 4000 * 0.25)
