"""What the network spoils, counted: bursts of loss, losses of links, second copies, messages held back."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from algorithms.ratings import Ratings
from netsim import (
    GilbertElliott,
    GivenContacts,
    GivenPlacement,
    LogNormal,
    MessageTrace,
    Periodic,
    Reordering,
    Uniform,
    World,
    simulate,
)

pytestmark = pytest.mark.statistical

ALPHA = 1e-4
NEVER = Periodic(1e6, phase=1e6)


def senders(n_users, period, **changes):
    """Users who each send to one router, every `period` seconds from 0 on; the router is silent."""
    ratings = Ratings.from_arrays([0], ["p"], [3.0], scale=(1, 5), user_ids=range(n_users))
    plain = World(
        ratings,
        routers=("x",),
        user_contacts=GivenContacts({user: ["x"] for user in range(n_users)}),
        user_broadcast=Periodic(period, phase=0.0),
        router_broadcast=NEVER,
        rating_exchange="attach",
        minimum_delay=0.0,
    )
    return plain.replace(**changes)


def messages(world, until, seed=1):
    trace = MessageTrace()
    simulate(world, until=until, seed=seed, every=until, trace=trace)
    return trace.frame()


def lost_by_sender(world, until, seed=1):
    """Whether each message was lost; bool, shape (users, ticks)."""
    frame = messages(world, until, seed)
    lost = (frame["fate"] == "lost_link").to_numpy()
    order = np.lexsort((frame["sent"], frame["sender"]))
    return lost[order].reshape(world.ratings.n_users, -1)


# -- bursts ------------------------------------------------------------------------------------------------------------

CHAINS = [
    GilbertElliott(0.25, 2.0),
    GilbertElliott(0.02, 0.5),
    GilbertElliott(0.6, 3.0),
]


@pytest.mark.parametrize("loss", CHAINS)
@pytest.mark.parametrize("period", [0.25, 2.0])
def test_mean_loss(loss, period):
    """A chain seen every `period` is Markov with memory x = exp(-rate * period); so the variance of a mean is known."""
    n_users, n_ticks = 100, 200
    lost = lost_by_sender(senders(n_users, period, loss=loss), period * (n_ticks - 0.5))
    assert lost.shape == (n_users, n_ticks)
    p = loss.mean_loss
    x = math.exp(-(1 / loss.mean_gap + 1 / loss.burst_length) * period)
    deviation = math.sqrt(p * (1 - p) * (1 + x) / (1 - x) / lost.size)
    assert abs(lost.mean() - p) < stats.norm.isf(ALPHA / 2) * deviation


@pytest.mark.parametrize("loss", CHAINS)
def test_lengths_of_bursts(loss):
    """Losses in a row are geometric: the next is lost too with probability p + (1 - p) exp(-rate * period)."""
    period = loss.burst_length / 4
    lost = lost_by_sender(senders(200, period, loss=loss), period * 399.5)
    p, x = loss.mean_loss, math.exp(-(1 / loss.mean_gap + 1 / loss.burst_length) * period)
    after_a_loss, after_none = lost[:, 1:][lost[:, :-1]], lost[:, 1:][~lost[:, :-1]]
    assert stats.binomtest(int(after_a_loss.sum()), after_a_loss.size, p + (1 - p) * x).pvalue > ALPHA
    assert stats.binomtest(int(after_none.sum()), after_none.size, p * (1 - x)).pvalue > ALPHA
    # and a burst has no memory of how long it has lasted
    long, short = lost[:, :-2] & lost[:, 1:-1], ~lost[:, :-2] & lost[:, 1:-1]
    table = [[int((lost[:, 2:] & each).sum()), int((~lost[:, 2:] & each).sum())] for each in (long, short)]
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_mean_time_in_the_bad_state():
    """Seen much more often than it changes, a burst lasts as many seconds as was asked for."""
    loss = GilbertElliott(0.3, 2.0)
    period = 0.02
    lost = lost_by_sender(senders(20, period, loss=loss), 200.0 - period / 2)
    lengths = []
    for row in lost:
        edges = np.flatnonzero(np.diff(row.astype(int)))
        begun = edges[~row[edges]]
        lengths += [(edges[edges > start][0] - start) * period for start in begun if (edges > start).any()]
    assert len(lengths) > 400
    # A burst that falls between two messages is not seen: what is seen is longer by up to a period.
    assert abs(np.mean(lengths) - 2.0) < stats.norm.isf(ALPHA / 2) * 2.0 / math.sqrt(len(lengths)) + period
    assert (
        stats.kstest(lengths, stats.expon(scale=2.0).cdf).statistic < stats.kstwo.isf(ALPHA, len(lengths)) + period / 2
    )


@pytest.mark.parametrize("time", [0.0, 50.0])
def test_channels_are_stationary_from_time_0_on(time):
    loss = GilbertElliott(0.2, 30.0)
    lost = lost_by_sender(senders(4000, 50.0, loss=loss), time + 1.0)[:, -1]
    assert stats.binomtest(int(lost.sum()), 4000, 0.2).pvalue > ALPHA


def test_losses_of_both_states_average_to_the_mean():
    loss = GilbertElliott(0.2, 5.0, loss_good=0.1, loss_bad=0.6)
    lost = lost_by_sender(senders(4000, 1.0, loss=loss), 0.5)
    assert stats.binomtest(int(lost.sum()), 4000, 0.2).pvalue > ALPHA


def test_the_way_back_is_a_channel_of_its_own():
    """What is sent to 2000 users at the same time as they send is lost independently."""
    n_users = 2000
    ratings = Ratings.from_arrays([0], ["p"], [3.0], scale=(1, 5), user_ids=range(n_users))
    everyone = GivenContacts({user: ["x"] for user in range(n_users)})
    world = senders(
        n_users,
        1.0,
        ratings=ratings,
        loss=GilbertElliott(0.4, 100.0),
        user_contacts=everyone,
        router_contacts=GivenContacts({"x": range(n_users)}),
        router_broadcast=Periodic(1.0, phase=0.0),
    )
    frame = messages(world, 0.5)
    there = (frame[frame["sender"] < n_users].set_index("sender")["fate"] == "lost_link").sort_index()
    back = (frame[frame["sender"] == n_users].set_index("receiver")["fate"] == "lost_link").sort_index()
    assert len(there) == len(back) == n_users
    table = np.bincount(2 * there.to_numpy() + back.to_numpy(), minlength=4).reshape(2, 2)
    assert stats.chi2_contingency(table).pvalue > ALPHA


# -- losses of links ---------------------------------------------------------------------------------------------------


def test_links_and_the_network_lose_their_shares():
    """(1 - 0.1)(1 - 0.2)(1 - 0.15) arrive."""
    graph = nx.Graph()
    graph.add_edge("home", "between", latency=0.1, loss=0.1)
    graph.add_edge("between", "away", latency=0.1, loss=0.2)
    users = dict.fromkeys(range(100), "home")
    world = senders(100, 1.0, topology=graph, placement=GivenPlacement(users, {"x": "away"}), loss=0.15)
    lost = lost_by_sender(world, 199.5)
    assert stats.binomtest(int(lost.sum()), lost.size, 1 - 0.9 * 0.8 * 0.85).pvalue > ALPHA
    table = np.bincount((2 * lost[:, 1:] + lost[:, :-1]).ravel(), minlength=4).reshape(2, 2)
    assert stats.chi2_contingency(table).pvalue > ALPHA  # no memory


# -- copies and what is held back --------------------------------------------------------------------------------------


def test_the_share_that_is_doubled():
    frame = messages(senders(100, 1.0, duplication=0.2, loss=0.3, delay=Uniform(0.1, 0.9)), 199.5)
    copies = frame.groupby(["sender", "sent"]).size()
    survived = frame[frame["fate"] != "lost_link"].groupby(["sender", "sent"]).size()
    assert len(copies) == 100 * 200
    assert stats.binomtest(int((survived == 2).sum()), len(survived), 0.2).pvalue > ALPHA
    assert stats.binomtest(len(copies) - len(survived), len(copies), 0.3).pvalue > ALPHA


def test_copies_have_the_delay_of_the_law_and_independently():
    frame = messages(senders(50, 1.0, duplication=1.0, delay=LogNormal(0.3, 0.8)), 79.5)
    took = (frame["arrives"] - frame["sent"]).to_numpy().reshape(-1, 2)
    for each in took.T:
        assert stats.kstest(each, stats.lognorm(0.8, scale=0.3).cdf).pvalue > ALPHA
    assert stats.spearmanr(*took.T).pvalue > ALPHA


def test_the_share_that_is_held_back_and_for_how_long():
    world = senders(100, 1.0, delay=Uniform(0.1, 0.2), reordering=Reordering(0.1, Uniform(1.0, 3.0)))
    frame = messages(world, 199.5)
    took = frame["arrives"] - frame["sent"]
    held = took > 0.5
    assert stats.binomtest(int(held.sum()), len(held), 0.1).pvalue > ALPHA
    assert stats.kstest(took[~held], stats.uniform(0.1, 0.1).cdf).pvalue > ALPHA
    # of those held back, the drawn delay and the extra one are independent: a trapezoid
    plain = messages(world.replace(reordering=None), 199.5)
    drawn = (plain["arrives"] - plain["sent"])[held]
    extra = took[held] - drawn
    assert stats.kstest(extra, stats.uniform(1.0, 2.0).cdf).pvalue > ALPHA
    assert stats.kstest(drawn, stats.uniform(0.1, 0.1).cdf).pvalue > ALPHA
    assert stats.spearmanr(extra, drawn).pvalue > ALPHA


def test_loss_copies_and_holding_back_are_independent():
    """Three draws of one message, of which no two may share a word."""
    world = senders(
        100, 1.0, delay=0.25, duplication=0.5, reordering=Reordering(0.5, 10.0), loss=0.0, discard_stale=False
    )
    frame = messages(world, 99.5)
    groups = frame.groupby(["sender", "sent"])
    doubled = (groups.size() == 2).to_numpy()
    held = ((groups["arrives"].first() - groups["sent"].first()) > 5.0).to_numpy()
    lost = lost_by_sender(world.replace(loss=0.5, duplication=0.0), 99.5).ravel()
    for one, other in ((doubled, held), (doubled, lost), (held, lost)):
        table = np.bincount(2 * one + other, minlength=4).reshape(2, 2)
        assert stats.chi2_contingency(table).pvalue > ALPHA
