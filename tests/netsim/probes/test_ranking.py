import numpy as np
import pytest

from algorithms.ranking import Ranking
from algorithms.synthetic import low_rank
from netsim import Learning, World, complete, ranking, simulate

DATA = low_rank(12, 20, rank=2, missing=0.5, seed=1)
WORLD = World(DATA.train, complete(3), learning=Learning(rank=2))


def test_measures_what_the_last_profiles_rank():
    result = simulate(WORLD, until=60.0, seed=1, probes=[ranking(DATA.test, n=5, relevant=3)])
    expected = Ranking(DATA.train, DATA.test, n=5, relevant=3)(result.user_profiles, result.item_profiles)
    assert [result.final[f"{metric}_at_5"] for metric in ("recall", "ndcg", "coverage")] == list(expected)
    assert result.final["ndcg_at_5"] > result.probes["ndcg_at_5"][0]  # the network learns to rank


def test_columns_are_in_the_table_in_order():
    probes = [ranking(DATA.test, relevant=3), ranking(DATA.train, n=3, relevant=3, name="train")]
    assert [probe.columns for probe in probes] == [
        ("recall_at_10", "ndcg_at_10", "coverage_at_10"),
        ("train_recall_at_3", "train_ndcg_at_3", "train_coverage_at_3"),
    ]
    result = simulate(WORLD, until=10.0, every=5.0, seed=1, probes=probes[:1])
    assert tuple(result.probes.columns[1:4]) == probes[0].columns
    assert (result.probes[list(probes[0].columns)] <= 1).all(axis=None)


def test_both_engines_measure_the_same_bits():
    tables = [
        simulate(WORLD, until=30.0, seed=2, probes=[ranking(DATA.test, relevant=3)], engine=engine).probes
        for engine in ("events", "compiled")
    ]
    np.testing.assert_array_equal(*(table.iloc[:, 1:4].to_numpy() for table in tables))


def test_one_probe_measures_several_worlds():
    probe = ranking(DATA.test, relevant=3)
    other = low_rank(12, 20, rank=2, missing=0.4, seed=1)
    first = simulate(WORLD, until=20.0, seed=1, probes=[probe]).final
    simulate(WORLD.replace(ratings=other.train), until=20.0, seed=1, probes=[probe])
    assert simulate(WORLD, until=20.0, seed=1, probes=[probe]).final == first


def test_what_is_wrong_is_said_before_a_run():
    with pytest.raises(ValueError, match="n must be an integer >= 1"):
        ranking(DATA.test, n=0)
    with pytest.raises(ValueError, match="relevant must be a finite rating"):
        ranking(DATA.test, relevant="4")


def test_ratings_of_another_world_are_refused_at_its_start():
    other = low_rank(12, 21, rank=2, missing=0.5, seed=1)
    with pytest.raises(ValueError, match=r"users and items of train \(12 and 20\), got 12 and 21"):
        simulate(WORLD, until=10.0, seed=1, probes=[ranking(other.test, relevant=3)])
