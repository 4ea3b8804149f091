"""The scenario of a network that is cut and healed."""

import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from netsim import barabasi_albert, complete
from scenarios import comparison, partition
from tests.scenarios.comparing import check_repeats, check_written, mistake, study

NONE, EARLY, MIDDLE = "no fault", "cut from the start", "cut in the middle"
LINKS, ROUTERS, CROWD = "30% of links fail", "30% of routers out", "30% of users come late"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("partition", tmp_path_factory.mktemp("partition"))


def common(topology, seed=1):
    args = comparison.parser("any", "", until=50.0).parse_args(["--users", "12", "--items", "10", "--places", "8"])
    made = comparison.ground(args, seed)
    return comparison.Ground(seed, made.data, made.world.replace(topology=topology))


def test_it_writes_tables_figure_and_answer(done):
    # The run without a fault is what the others are compared to, and no row.
    assert done.status == 0
    assert NONE not in set(done.table("table.csv")["condition"])
    check_written(done, conditions=6)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path)


@pytest.mark.parametrize("seed", [3, 5])
def test_before_a_fault_nothing_differs(done, seed):
    plain = done.probes(NONE, seed)
    for condition in (MIDDLE, LINKS, ROUTERS):
        run = done.probes(condition, seed)
        before = run["time"] < 20 - 1e-9
        pd.testing.assert_frame_equal(run[before].drop(columns="condition"), plain[before].drop(columns="condition"))
        assert (run["user_updates"].iloc[-1] != plain["user_updates"].iloc[-1]) or condition == LINKS


@pytest.mark.parametrize(("condition", "begin", "end"), [(EARLY, 0, 20), (MIDDLE, 20, 40)])
def test_a_cut_keeps_messages_from_arriving_while_it_lasts(done, condition, begin, end):
    run = done.probes(condition, 3)
    time, failed = run["time"].to_numpy(), run["unreachable"].to_numpy()
    grew = np.diff(failed) > 0
    during = (time[:-1] > begin - 1e-6) & (time[1:] < end + 1e-6)
    assert grew[during].any()
    assert not grew[(time[1:] < begin - 1e-6) | (time[:-1] > end + 1e-6)].any()
    # About half of all pairs lie across two equal halves.
    sent = np.interp([begin, end], time, run["sent"])
    assert (failed[-1] - failed[0]) / (sent[1] - sent[0]) == pytest.approx(0.5, abs=0.15)


def test_routers_are_out_and_users_come_late(done):
    run = done.probes(ROUTERS, 3)
    out = (run["time"] > 21) & (run["time"] < 40 - 1e-6)
    assert set(run.loc[out, "routers_online"]) == {12 - round(0.3 * 12)}
    assert set(run.loc[run["time"] > 41, "routers_online"]) == {12}
    crowd = done.probes(CROWD, 3)[1:]  # the first probe comes before any script
    assert set(crowd.loc[crowd["time"] < 20 - 1e-6, "users_online"]) == {16 - round(0.3 * 16)}
    assert set(crowd.loc[crowd["time"] > 21, "users_online"]) == {16}


@pytest.mark.parametrize("condition", [NONE, MIDDLE])
def test_errors_of_the_halves_make_up_that_of_all(done, condition):
    run = done.probes(condition, 3)
    all_, a, b = (run[name].to_numpy() ** 2 for name in ("rmse_all", "rmse_half_a", "rmse_half_b"))
    share = np.median((all_ - b) / (a - b))  # of the missing ratings that are of users in half A
    assert 0 < share < 1
    np.testing.assert_allclose(share * a + (1 - share) * b, all_, rtol=1e-9)


def test_a_rise_is_taken_from_the_run_of_the_same_seed(done):
    plain, run = done.probes(NONE, 5), done.probes(MIDDLE, 5)
    rise = (run["rmse_all"] - plain["rmse_all"]).to_numpy()
    time = run["time"].to_numpy()
    assert done.seeds(MIDDLE, "final")[1] == rise[-1]
    during = (time > 20 + 1e-6) & (time < 40 + 1e-6)
    assert done.seeds(MIDDLE, "worst")[1] == rise[during].max()
    assert done.seeds(MIDDLE, "at_end")[1] == rise[during][-1]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--share", "1"], "argument --share: expected distinct fractions between 0 and 1"),
        (["--share", "0.1,0.2"], "argument --share: expected one fraction"),
        (["--places", "2"], "argument --places: expected an integer >= 4"),
        (["--until", "0"], "argument --until: "),
        (["--seeds", ""], "argument --seeds: "),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("partition", argv, tmp_path, capsys)


# -- its parts -----------------------------------------------------------------------------------------------------


def test_halves_are_equal_and_cut_few_links():
    graph = barabasi_albert(60, 3, seed=4)
    one, other = partition.halves(common(graph, seed=4))
    assert len(one) == len(other) == 30
    assert set(one) | set(other) == set(graph)
    cut = nx.cut_size(graph, one)
    rng = np.random.default_rng(0)
    random = [nx.cut_size(graph, rng.permutation(60)[:30].tolist()) for _ in range(50)]
    assert cut < min(random)


def test_links_that_fail_are_a_share_of_all():
    links = partition.some_links(common(complete(8)), 0.25)
    assert len(set(links)) == round(0.25 * 28)
    assert all(u < v for u, v in links)
    assert partition.some_links(common(complete(8)), 0.25) == links
    assert partition.some_links(common(complete(8), seed=2), 0.25) != links


@pytest.mark.parametrize(
    ("rise", "expected"),
    [
        ([0.0, 0.5, 0.5, 0.005, 0.0], 5.0),
        ([0.0, 0.5, 0.5, 0.5, 0.0], 15.0),
        ([0.0, 0.5, 0.005, 0.5, 0.0], 15.0),  # it must stay
        ([0.0, 0.5, 0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.5, 0.5, 0.5, 0.5], math.nan),
        ([0.0, 0.5, 0.5, 0.5, math.nan], math.nan),
        ([0.0, 0.5, 0.5, -0.5, -0.5], 5.0),  # better is as good
    ],
)
def test_a_run_has_recovered_when_it_stays_near(rise, expected):
    time = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    np.testing.assert_allclose(partition.recovery(time, np.array(rise), 25.0, 0.01), expected)
