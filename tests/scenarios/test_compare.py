import argparse
import json
import math
import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from algorithms.metrics import mae, rmse
from algorithms.prediction import Predictor
from algorithms.ranking import Ranking
from algorithms.ratings import Ratings
from algorithms.solvers import Baseline, LambdaSelection
from algorithms.synthetic import low_rank
from netsim import Result
from scenarios import compare, movielens

SMALL = ["--users", "24", "--items", "20", "--places", "10", "--until", "60", "--seed", "3", "--rank", "3"]
ALL = ",".join(compare.METHODS)
RANKED = {"network", "als", "sgd", "soft_impute_svd", "soft_impute_als", "biased_mean", "item_mean"}
MOVIELENS = Path(
    os.environ.get("MOVIELENS_100K") or Path(__file__).resolve().parents[3] / "shared" / "data" / "ml-100k"
)


def arguments(*argv):
    return compare._parser(real=False).parse_args([*SMALL, *argv])


def small():
    return low_rank(24, 20, rank=4, missing=0.5, seed=3, generator="gaussian")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Folder, standard output and exit status of a run of all methods."""
    out = tmp_path_factory.mktemp("compare") / "out"
    with redirect_stdout(StringIO()) as printed:
        status = compare.main([*SMALL, "--methods", ALL, "--lambdas", "0.1,0.3", "--out", str(out)])
    return out, printed.getvalue(), status


@pytest.fixture(scope="module")
def table(ran):
    return pd.read_csv(ran[0] / "table.csv").set_index("method")


def test_writes_table_figure_summary_and_the_saved_run(ran):
    out, _, status = ran
    assert status == 0
    assert sorted(file.name for file in out.iterdir()) == [
        "compare.png",
        "configuration.json",
        "probes.csv",
        "runs",
        "summary.json",
        "table.csv",
    ]
    assert imread(out / "compare.png").std() > 0
    assert [folder.name for folder in (out / "runs").iterdir()] == ["network"]


def test_there_is_a_row_for_the_network_and_each_method_in_order(table):
    assert list(table.index) == ["network", *compare.METHODS]
    assert (table["test_mae"] <= table["test_rmse"]).all()
    assert set(table.index[table["recall_at_10"].notna()]) == RANKED
    assert set(table.index[table["ndcg_at_10"].notna()]) == RANKED
    assert set(table.index[table["lam"].notna()]) == RANKED - {"biased_mean", "item_mean"} | {"rdmc"}


def test_only_the_network_sends(table):
    assert table.loc["network", "messages"] > 0
    assert table.loc["network", "bytes"] > table.loc["network", "messages"]
    assert not table.drop("network")[["messages", "bytes"]].to_numpy().any()


def test_the_row_of_the_network_is_the_saved_run(ran, table):
    result, data, row = Result.load(ran[0] / "runs" / "network"), small(), table.loc["network"]
    predicted = Predictor(data.train)(result.user_profiles, result.item_profiles, data.test.user, data.test.item)
    assert row["test_rmse"] == pytest.approx(rmse(predicted, data.test.value), rel=1e-12)
    assert row["test_mae"] == pytest.approx(mae(predicted, data.test.value), rel=1e-12)
    ranked = Ranking(data.train, data.test)(result.user_profiles, result.item_profiles)
    assert (row["recall_at_10"], row["ndcg_at_10"]) == pytest.approx((ranked.recall, ranked.ndcg), rel=1e-12)
    updates = result.user_updates.sum() + result.item_updates.sum()
    assert row["iterations"] == pytest.approx(updates / (2 * len(data.train)), rel=1e-12)
    assert (row["messages"], row["bytes"]) == (result.final["sent"], result.final["bytes_sent"])


@pytest.mark.parametrize("name", ["als", "sgd", "soft_impute_svd", "soft_impute_als", "biased_mean", "item_mean"])
def test_lists_are_made_from_what_is_predicted(name):
    """The profiles that a method ranks by have its predictions as their products."""
    data, args = small(), arguments("--lambdas", "0.2")
    solver = compare.METHODS[name].make(args).fit(data.train)
    users, items = compare.METHODS[name].profiles(solver)
    products = np.einsum("ij,ij->i", users[data.test.user], items[data.test.item])
    predicted = solver.predict(data.test.user, data.test.item)
    low, high = data.train.scale.low, data.train.scale.high
    np.testing.assert_allclose(np.clip(products, low, high), np.clip(predicted, low, high), rtol=1e-12)


def test_predictions_off_the_scale_are_clipped():
    data = small()
    row = compare.measure("soft_impute_svd", data.train, data.test, arguments("--lambdas", "0.05"))
    solver = compare.METHODS["soft_impute_svd"].make(arguments("--lambdas", "0.05")).fit(data.train)
    predicted = solver.predict(data.test.user, data.test.item)
    assert predicted.max() > 5 or predicted.min() < 1
    assert row.test_rmse == rmse(np.clip(predicted, 1, 5), data.test.value) < rmse(predicted, data.test.value)


def test_a_baseline_is_measured_as_it_is():
    data = small()
    row = compare.measure("median", data.train, data.test, arguments())
    predicted = Baseline("median").fit(data.train).predict(data.test.user, data.test.item)
    assert row.test_mae == mae(predicted, data.test.value)
    assert row.iterations == 0
    assert math.isnan(row.lam)


@pytest.mark.parametrize("name", ["soft_impute_svd", "soft_impute_als", "rdmc"])
def test_one_lambda_is_taken_and_of_several_one_is_chosen(name):
    data = small()
    assert compare.measure(name, data.train, data.test, arguments("--lambdas", "0.25")).lam == 0.25
    args = arguments("--lambdas", "0.1,0.3,0.9", "--replications", "3")
    made = compare.METHODS[name].make(args)
    assert isinstance(made, LambdaSelection)
    assert made.splits.n_replications == 3
    assert compare.measure(name, data.train, data.test, args).lam == made.fit(data.train).lambda_


def test_the_factorizations_have_the_model_of_the_network():
    args = arguments("--lam", "0.3", "--regularization", "uniform", "--half-life", "7", "--sgd-rate", "0.004")
    for name in ("als", "sgd"):
        made = compare.METHODS[name].make(args)
        assert (made.rank, made.lam, made.regularization, made.seed) == (3, 0.3, "uniform", 3)
    assert (made.rate, made.schedule.half_life) == (0.004, 7)


def test_ratings_without_a_relevant_one_are_not_ranked():
    data = small()
    low = [
        Ratings.from_arrays(
            part.user, part.item, np.minimum(part.value, 3), scale=(1, 5), user_ids=range(24), item_ids=range(20)
        )
        for part in (data.train, data.test)
    ]
    row = compare.measure("item_mean", *low, arguments())
    assert math.isnan(row.recall_at_10)
    assert math.isnan(row.ndcg_at_10)


def test_a_fit_that_stopped_at_its_limit_has_a_star(monkeypatch, capsys, tmp_path):
    short = compare.Method("Short", lambda _: compare.SoftImpute(0.2, max_iter=2))
    monkeypatch.setitem(compare.METHODS, "soft_impute_svd", short)
    assert compare.main([*SMALL, "--methods", "soft_impute_svd,median", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert " 2*" in next(line for line in printed.splitlines() if line.startswith("soft_impute_svd"))
    assert "* stopped before it had converged" in printed
    converged = pd.read_csv(tmp_path / "table.csv").set_index("method")["converged"]
    assert converged.to_dict() == {"network": True, "soft_impute_svd": False, "median": True}


def test_the_answer_is_worked_out_from_the_table(ran, table):
    out, printed, _ = ran
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    answer = summary["answer"]
    assert answer in printed
    network, als = table.loc["network", "test_rmse"], table.loc["als", "test_rmse"]
    assert f"test RMSE of {network:.4f} after {table.loc['network', 'messages']:,.0f} messages" in answer
    side = "higher" if network >= als else "lower"
    assert f"has {als:.4f}; the network's error is {abs(network - als):.4f}" in answer
    assert f"({100 * abs(network - als) / als:.1f}%) {side}, which is what decentralization costs here" in answer
    best = table.loc[list(compare.BASELINES), "test_rmse"].idxmin()
    assert f"The best baseline, {best}, has {table.loc[best, 'test_rmse']:.4f}" in answer
    assert [row["method"] for row in summary["rows"]] == list(table.index)
    assert summary["rows"][-1]["recall_at_10"] is None


def test_the_printed_table_shows_the_rows(ran, table):
    lines = {line.split()[0]: line.split() for line in ran[1].splitlines() if line}
    for name, row in table.iterrows():
        assert float(lines[name][1]) == pytest.approx(row["test_rmse"], abs=5.1e-5)
        assert lines[name][-1] == f"{row['bytes']:,}"


def test_references_are_the_same_objective_the_best_other_and_the_best_baseline():
    errors = {"network": 0.1, "median": 0.9, "rdmc": 0.5, "mode": 1.1, "als": 0.6, "sgd": 0.7}
    rows = pd.DataFrame({"method": list(errors), "test_rmse": list(errors.values())})
    assert compare.references(rows) == {"ALS, same objective": 0.6, "RDMC": 0.5, "Item median": 0.9}
    assert compare.references(rows[rows["method"] != "als"]) == {"RDMC": 0.5, "Item median": 0.9}
    assert compare.references(rows[:1]) == {}


def test_same_seed_same_errors_but_for_the_time(ran, table, tmp_path):
    argv = [*SMALL, "--methods", "als,discretized_median,rdmc", "--lambdas", "0.1,0.3", "--out", str(tmp_path)]
    assert compare.main(argv) == 0
    again = pd.read_csv(tmp_path / "table.csv").set_index("method").drop(columns="wall_seconds")
    pd.testing.assert_frame_equal(again, table.loc[again.index].drop(columns="wall_seconds"), check_exact=True)


def test_stopped_by_a_person_keeps_what_was_measured(monkeypatch, capsys, tmp_path):
    measure = compare.measure

    def until_median(name, train, test, args):
        if name == "median" and train.n_users == 24:
            raise KeyboardInterrupt
        return measure(name, train, test, args)

    monkeypatch.setattr(compare, "measure", until_median)
    assert compare.main([*SMALL, "--methods", "item_mean,median", "--out", str(tmp_path)]) == 130
    assert list(pd.read_csv(tmp_path / "table.csv")["method"]) == ["network", "item_mean"]
    assert "Interrupted: 2 of 3 methods were measured." in capsys.readouterr().out


@pytest.mark.parametrize(("text", "told"), [("als,knn", "'knn'"), ("", "''"), ("als,als", "names one twice")])
def test_other_methods_are_refused(text, told):
    with pytest.raises(argparse.ArgumentTypeError, match=told):
        compare.methods(text)


@pytest.mark.parametrize("argv", [["--movielens"], ["--data", "x"], ["--data=x"]])
def test_movielens_has_the_settings_of_its_scenario(argv):
    assert compare._names_movielens(argv)
    args = compare._parser(real=True).parse_args(argv)
    assert (args.rank, args.lam, args.rate, args.sgd_rate) == (20, movielens.DEFAULTS.lam, 0.05, 0.05)
    assert args.lambdas == [0.05, 0.1, 0.2, 0.4]
    assert not compare._names_movielens(["--methods", "als"])


@pytest.mark.skipif(not (MOVIELENS / "u.data").is_file(), reason="../shared/data/ml-100k is absent")
def test_movielens_is_a_fold_of_it(tmp_path, capsys):
    argv = ["--data", str(MOVIELENS), "--fold", "2", "--methods", "global_mean", "--until", "1", "--rank", "2"]
    assert compare.main([*argv, "--out", str(tmp_path)]) == 0
    train, test = movielens.load(argparse.Namespace(data=MOVIELENS)).split(fold=2)
    rows = pd.read_csv(tmp_path / "table.csv").set_index("method")
    assert rows.loc["global_mean", "test_rmse"] == pytest.approx(
        np.sqrt(np.mean((test.value - train.value.mean()) ** 2)), rel=1e-12
    )
    assert "MovieLens 100K, fold 2" in capsys.readouterr().out
