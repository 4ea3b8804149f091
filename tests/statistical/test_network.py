"""Timers, loss, delays, fan-out, contacts, placement and hosting in runs, against their laws."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from algorithms import purposes
from algorithms.chance import ITEM, PLACE, ROUTER, USER, entity_keys
from algorithms.distributions import Exponential, Gamma, LogNormal, Uniform
from algorithms.learning import Learning
from algorithms.ratings import Ratings
from netsim.contacts import RandomRouters, Raters
from netsim.placement import GivenPlacement, RandomPlacement, highest_weight
from netsim.simulation import simulate
from netsim.timers import Periodic, Poisson
from netsim.topology import Underlay
from netsim.trace import MessageTrace
from netsim.world import World

pytestmark = pytest.mark.statistical

ALPHA = 1e-4


def dense(n_users, n_items):
    """Everyone rated everything."""
    user, item = np.divmod(np.arange(n_users * n_items), n_items)
    return Ratings.from_arrays(user, item, 1.0 + (user + item) % 5, scale=(1, 5))


def traced(world, until, seed=1):
    """Every message of a run, one a row."""
    trace = MessageTrace()
    simulate(world, until=until, seed=seed, every=until, trace=trace)
    return trace.frame()


def binomial(count, n, p):
    return stats.binomtest(int(count), int(n), p).pvalue


SMALL = Learning(rank=1)


def ticks(world, until):
    """Times of each node's broadcasts, by node."""
    rows = traced(world, until)
    return {node: np.unique(rows["sent"]) for node, rows in rows[rows["kind"] == "profile"].groupby("sender")}


def test_poisson_timers_have_exponential_independent_gaps():
    world = World(dense(100, 1), user_broadcast=Poisson(2.0), router_broadcast=Periodic(1e6), learning=SMALL)
    of = ticks(world, 400.0)
    gaps = [np.diff(times, prepend=0.0)[:100] for node, times in of.items() if node < 100]
    assert len(gaps) == 100
    assert min(map(len, gaps)) == 100
    assert stats.kstest(np.concatenate(gaps), stats.expon(scale=2).cdf).pvalue > ALPHA
    pairs = np.concatenate([np.stack([g[:-1], g[1:]]) for g in gaps], axis=1)
    assert stats.spearmanr(*pairs).pvalue > ALPHA
    count = sum(len(times) for node, times in of.items() if node < 100)
    assert 2 * min(stats.poisson(20_000).cdf(count), stats.poisson(20_000).sf(count - 1)) > ALPHA


def test_periodic_timers_have_uniform_phases_and_exact_periods():
    world = World(dense(3000, 1), user_broadcast=8.0, router_broadcast=Periodic(1e6), learning=SMALL)
    of = {node: times for node, times in ticks(world, 24.0).items() if node < 3000}
    assert all(len(times) == 3 for times in of.values())
    phases = np.array([times[0] for times in of.values()])
    assert stats.kstest(phases, stats.uniform(0, 8).cdf).pvalue > ALPHA
    assert all(np.array_equal(times, times[0] + 8.0 * np.arange(3)) for times in of.values())


def test_drawn_periods_follow_their_law_and_leave_phases_uniform():
    timer = Periodic(Uniform(5, 10))
    world = World(dense(2000, 1), user_broadcast=timer, router_broadcast=Periodic(1e6), learning=SMALL)
    first = np.array([times[:2] for node, times in ticks(world, 20.0).items() if node < 2000])
    periods = first[:, 1] - first[:, 0]
    assert stats.kstest(periods, stats.uniform(5, 5).cdf).pvalue > ALPHA
    assert stats.kstest(first[:, 0] / periods, "uniform").pvalue > ALPHA
    assert stats.spearmanr(first[:, 0] / periods, periods).pvalue > ALPHA


@pytest.mark.parametrize("loss", [0.01, 0.3])
def test_the_share_of_messages_lost(loss):
    rows = traced(World(dense(20, 15), loss=loss, learning=SMALL), 300.0)
    lost = rows["fate"] == "lost_link"
    assert len(rows) > 15_000
    assert binomial(lost.sum(), len(rows), loss) > ALPHA
    for _, of_kind in lost.groupby(rows["kind"]):
        assert binomial(of_kind.sum(), len(of_kind), loss) > ALPHA
    by_sender = lost.groupby(rows["sender"]).agg(["sum", "count"])
    z = (by_sender["sum"] - loss * by_sender["count"]) / np.sqrt(loss * (1 - loss) * by_sender["count"])
    assert stats.chi2.sf(np.sum(z**2), len(z)) > ALPHA


def test_losses_of_successive_messages_are_independent():
    rows = traced(World(dense(20, 15), loss=0.3, learning=SMALL), 300.0)
    rows = rows[rows["kind"] == "profile"]
    lost = (rows["fate"] == "lost_link").astype(int)
    table = np.zeros((2, 2))
    for _, of_pair in lost.groupby([rows["sender"], rows["receiver"]]):
        np.add.at(table, (of_pair.to_numpy()[:-1], of_pair.to_numpy()[1:]), 1)
    assert stats.chi2_contingency(table).pvalue > ALPHA


JITTERS = [
    (LogNormal(0.07, 0.8), stats.lognorm(0.8, scale=0.07)),
    (Exponential(0.2), stats.expon(scale=0.2)),
    (Gamma(2.5, 0.03), stats.gamma(2.5, scale=0.03)),
]


@pytest.mark.parametrize(("jitter", "law"), JITTERS, ids=["lognormal", "exponential", "gamma"])
def test_delays_are_path_latency_plus_jitter(jitter, law):
    # Users at both ends of a path a - b - c, routers at a.
    graph = nx.Graph()
    graph.add_edge("a", "b", latency=0.25)
    graph.add_edge("b", "c", latency=0.5)
    users, routers = range(12), range(8)
    placed = GivenPlacement({user: "ac"[user % 2] for user in users}, dict.fromkeys(routers, "a"))
    world = World(dense(12, 8), graph, placement=placed, delay=jitter, minimum_delay=0.0, learning=SMALL)
    rows = traced(world, 500.0)
    user = np.where(rows["sender"] < 12, rows["sender"], rows["receiver"])
    drawn = rows["arrives"] - rows["sent"] - np.where(user % 2, 0.75, 0.0)
    assert len(rows) > 9000
    assert stats.kstest(drawn, law.cdf).pvalue > ALPHA
    for _, of_kind in drawn.groupby(rows["kind"]):
        assert stats.kstest(of_kind, law.cdf).pvalue > ALPHA
    broadcasts = drawn[rows["kind"] == "profile"].to_numpy()
    assert stats.spearmanr(broadcasts[:-1], broadcasts[1:]).pvalue > ALPHA


def test_access_delays_are_drawn_once_for_each_node():
    world = World(dense(60, 50), access=Exponential(0.2), minimum_delay=0.0, learning=SMALL)
    rows = traced(world, 20.0)
    delay = (rows["arrives"] - rows["sent"]).groupby([rows["sender"], rows["receiver"]])
    assert (delay.max() - delay.min()).max() < 1e-12
    # delay[i, j] = a[i] + b[j]: differences against one router show the users' access delays, up to a shift.
    up = delay.mean().unstack()
    users, routers = up.loc[:59, 60:].to_numpy(), up.loc[60:, :59].to_numpy()
    assert np.allclose(users, routers.T)
    assert np.allclose(users - users[:, :1] - users[:1] + users[0, 0], 0)
    assert stats.kstest((users[::2, ::2]).diagonal(), stats.gamma(2, scale=0.2).cdf).pvalue > ALPHA


def test_fan_out_chooses_each_set_of_contacts_equally():
    world = World(dense(1, 6), user_broadcast=1.0, router_broadcast=Periodic(1e6), user_fan_out=2, learning=SMALL)
    rows = traced(world, 6000.0)
    rows = rows[(rows["kind"] == "profile") & (rows["sender"] == 0)]
    chosen = rows.groupby("stamp")["receiver"].agg(lambda receivers: tuple(sorted(receivers)))
    assert len(chosen) > 5900
    counts = chosen.value_counts().reindex(list(combinations(range(1, 7), 2)), fill_value=0)
    assert counts.sum() == len(chosen)
    assert stats.chisquare(counts).pvalue > ALPHA


def test_fan_outs_of_routers_and_of_successive_ticks_are_independent():
    world = World(dense(5, 2), user_broadcast=Periodic(1e6), router_broadcast=1.0, router_fan_out=1, learning=SMALL)
    rows = traced(world, 4000.0)
    rows = rows[(rows["kind"] == "profile") & (rows["sender"] >= 5)]
    one, other = (of["receiver"].to_numpy()[:3990] for _, of in rows.groupby("sender"))
    for a, b in ((one, other), (one[:-1], one[1:])):
        assert stats.chisquare(np.bincount(5 * a + b, minlength=25)).pvalue > ALPHA


def assert_pairs_are_uniform(rows, owners, contacts):
    """Whether the sets of two contacts to which the owners broadcast are equally frequent."""
    rows = rows[(rows["kind"] == "profile") & rows["sender"].isin(owners)]
    lists = rows.groupby("sender")["receiver"].agg(lambda receivers: tuple(sorted(receivers)))
    counts = lists.value_counts().reindex(list(combinations(contacts, 2)), fill_value=0)
    assert counts.sum() == len(lists) == len(owners)
    assert stats.chisquare(counts).pvalue > ALPHA


def test_random_routers_are_drawn_uniformly():
    few = {"routers": 6, "user_contacts": RandomRouters(2)}
    world = World(dense(3000, 1), **few, user_broadcast=1.0, router_broadcast=1e6, learning=SMALL)
    assert_pairs_are_uniform(traced(world, 1.0), range(3000), range(3000, 3006))


def test_a_cap_keeps_raters_uniformly():
    few = {"router_contacts": Raters(cap=2)}
    world = World(dense(6, 1500), **few, user_broadcast=1e6, router_broadcast=1.0, learning=SMALL)
    assert_pairs_are_uniform(traced(world, 1.0), range(6, 1506), range(6))


def test_random_placement_is_uniform_and_users_sit_apart_from_routers_of_their_id():
    underlay = Underlay.from_graph(nx.empty_graph(8))
    ids = tuple(range(20_000))
    keys = np.concatenate([entity_keys(USER, ids), entity_keys(ROUTER, ids)])
    places = RandomPlacement().places(underlay, keys, ids, ids, np.uint64(1))
    users, routers = places[:20_000], places[20_000:]
    assert stats.chisquare(np.bincount(8 * users + routers, minlength=64)).pvalue > ALPHA


def test_a_place_more_attracts_its_share_and_moves_no_other():
    ids = tuple(range(20_000))
    keys = entity_keys(USER, ids)
    before, after = (
        RandomPlacement().places(Underlay.from_graph(nx.empty_graph(n)), keys, ids, (), np.uint64(1)) for n in (8, 9)
    )
    moved = before != after
    assert (after[moved] == 8).all()
    assert binomial(moved.sum(), 20_000, 1 / 9) > ALPHA


def test_items_are_hosted_uniformly():
    host = np.empty(20_000, dtype=np.int64)
    items, routers = entity_keys(ITEM, range(20_000)), entity_keys(ROUTER, range(7))
    highest_weight(items, routers, np.uint64(1), purposes.HOSTING, host)
    assert stats.chisquare(np.bincount(host, minlength=7)).pvalue > ALPHA
    places = np.empty(20_000, dtype=np.int64)
    highest_weight(items, entity_keys(PLACE, range(7)), np.uint64(1), purposes.PLACEMENT, places)
    assert stats.chisquare(np.bincount(7 * host + places, minlength=49)).pvalue > ALPHA
