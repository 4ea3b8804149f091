"""On a small stand-in: 60 users and 30 movies, written as MovieLens 100K is. Another two movies have few ratings."""

import logging

import numpy as np
import pandas as pd
import pytest

from algorithms.attacks import Attack, hit_rate, inject, mean_prediction_shift, number_of_profiles, popular_targets
from algorithms.datasets import movielens_100k
from algorithms.datasets.filters import with_at_least
from algorithms.synthetic import missing_completely_at_random, recommender
from scenarios import movielens_attack as study
from scenarios.case_studies import split
from scenarios.completion import complete, held_out_also, held_out_cells
from scenarios.movielens_attack import ATTACKS, REFERENCE, SHARES, Settings, Task, measure, parts
from tests.scenarios.experiments import check_report, experiment, mistake, value

N_USERS, N_ITEMS = 60, 30
METHODS = ("rdmc_pseudo_huber", "rdmc_pseudo_huber_liberal", "soft_impute", "soft_impute_discretized")
BASELINES = ("median", "discretized_median", "mode")
LIBERAL = ("soft_impute_liberal", "soft_impute_discretized_liberal")
OPTIONS = {"n_selected": 3, "min_ratings": 5}
SMALL = ["--splits", "2", "--lambdas", "0.05,0.2", "--selected", "3", "--min-ratings", "5", "--seed", "4"]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """The reader warns that these are not the official ratings."""
    monkeypatch.setattr(logging.getLogger("algorithms.datasets.movielens"), "disabled", True)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand-in")
    complete = recommender(N_USERS, N_ITEMS, seed=3).complete
    missing = missing_completely_at_random(complete.shape, seed=3, share=0.4)
    user, item = np.nonzero(~missing)
    lines = [f"{i + 1}\t{j + 1}\t{complete[i, j]:.0f}\t{881250949 + i}\n" for i, j in zip(user, item, strict=True)]
    lines += [f"{i + 1}\t{j}\t3\t881250949\n" for j in (40, 41) for i in range(19)]
    (folder / "u.data").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ratings(data):
    return with_at_least(movielens_100k(data), item=20)


@pytest.fixture(scope="module")
def ran(data, tmp_path_factory):
    """Folder, printed text and exit status of a small run of everything."""
    out = tmp_path_factory.mktemp("attack") / "out"
    return experiment(study.main, ["--data", str(data), *SMALL, "--jobs", "2", "--targets", "2"], out)


@pytest.fixture(scope="module")
def rows(ran):
    return pd.read_csv(ran[0] / "replications.csv", keep_default_na=False)


# -- what is written -----------------------------------------------------------------------------------------------


def test_writes_tables_figures_and_findings(ran):
    printed, numbers = ran[1], {"figure4": 1, "figure5": 5, "figure6": 5, "hit_rate": 0}
    findings = check_report(ran, figures=set(numbers), tasks=19)
    assert {name: len(found) for name, found in findings.items()} == numbers
    assert printed.count("The paper: ") == 11 + 1  # the note on lambda begins so too
    assert f"{N_USERS} users, {N_ITEMS} movies with 20 ratings or more" in printed
    assert "mean over 2 attacked movies in 1 split (standard error)" in printed


def test_rows_are_of_all_conditions_and_methods(rows):
    names = {*METHODS, *LIBERAL, *BASELINES}
    errors = rows[rows["metric"] == "mae"]
    assert sorted(errors["method"]) == sorted(names)
    assert set(errors["attack"]) == {"none"}
    for metric in ("prediction_shift", "hit_rate", "hit_rate_change"):
        found = rows[rows["metric"] == metric]
        assert len(found) == len(found.drop_duplicates(["method", "attack", "share", "target"])) == 9 * 9 * 2
        assert set(found["share"]) == set(SHARES)
    assert set(rows.loc[rows["metric"] == "lam", "method"]) == {*METHODS, *LIBERAL}


# -- a task --------------------------------------------------------------------------------------------------------


def settings(ratings, **changed):
    return Settings(
        **{
            "seed": 4,
            "data": ratings.digest[:16],
            "rdmc_lambdas": (0.05, 0.2),
            "soft_impute_lambdas": (0.05, 0.2),
            **OPTIONS,
            **changed,
        }
    )


def test_a_task_measures_what_the_paper_defines(ratings):
    """All of it once more, from the functions that a task is made of."""
    this = settings(ratings)
    got = pd.DataFrame(measure(Task(1, 2, "love_hate", 0.2, METHODS), this, ratings=ratings))
    data = split(ratings, seed=[4, 1, study.SPLIT])
    cells = held_out_cells(data.train, n_splits=2, seed=[4, 1, study.HELD_OUT])
    options = {"categories": [1, 2, 3, 4, 5], "lambdas": (0.05, 0.2)}
    before = complete(data.train, METHODS, held_out=cells, **options)
    target = popular_targets(data.train, 2)[1]
    n = number_of_profiles(data.train, target, 0.2)
    assert n == round(0.2 * (~np.isnan(data.train[:, target])).sum())
    fake = Attack("love_hate", **OPTIONS).profiles(
        data.train, target, n_profiles=n, seed=[4, 1, study.PROFILES, 2], categories=[1, 2, 3, 4, 5]
    )
    attacked = inject(data.train, fake)
    cells = held_out_also(cells, attacked, n_before=N_USERS, seed=[4, 1, study.HELD_OUT_OF_PROFILES, 2])
    after = complete(attacked, METHODS, held_out=cells, **options)
    without = pd.DataFrame(measure(Task(1, 0, "none", 0.0, METHODS), this, ratings=ratings))
    rated = ~np.isnan(data.train)
    for name in METHODS:
        first, second = before[name].matrix, after[name].matrix[:N_USERS]
        error = np.abs(first[data.row, data.column] - data.truth).mean()
        assert value(without, method=name, metric="mae") == pytest.approx(error, rel=1e-12)
        assert value(without, method=name, metric="lam") == before[name].lam
        shift = mean_prediction_shift(first[:, target], second[:, target], ~rated[:, target])
        assert value(got, method=name, metric="prediction_shift") == pytest.approx(shift, abs=1e-12)
        rates = [hit_rate(each, rated, target, n=10) for each in (first, second)]
        assert value(got, method=name, metric="hit_rate") == pytest.approx(rates[1])
        assert value(got, method=name, metric="hit_rate_change") == pytest.approx(rates[1] - rates[0])
        assert value(got, method=name, metric="lam") == after[name].lam


def test_workers_measure_what_this_process_does(rows, ratings):
    names = study.DEFAULT.methods
    task = Task(0, 2, "reverse_bandwagon", 0.15, names)
    here = pd.DataFrame(measure(task, settings(ratings), ratings=ratings)).query("metric != 'cpu_seconds'")
    there = rows.query("attack == 'reverse_bandwagon' and share == 0.15 and target == 2")
    assert here["method"].tolist() == there["method"].tolist()
    np.testing.assert_allclose(here["value"], there["value"].astype(float), rtol=1e-9, atol=1e-12)


def test_attacks_share_the_split_and_its_held_out_ratings(ratings, monkeypatch):
    seen = []
    original = study.case_studies.completed

    def record(matrix, names, **options):
        seen.append((matrix, options["held_out"]))
        return original(matrix, names, **options)

    monkeypatch.setattr(study.case_studies, "completed", record)
    this = settings(ratings, seed=5)  # nothing of it was measured before
    for kind, share in (("average", 0.1), ("average", 0.2), ("love_hate", 0.2)):
        measure(Task(0, 1, kind, share, ("median",)), this, ratings=ratings)
    before, *after = seen
    assert len(after) == 3  # what comes before an attack is made once
    for matrix, held_out in after:
        np.testing.assert_array_equal(matrix[:N_USERS], before[0])
        for (one, columns), (genuine, genuine_columns) in zip(held_out, before[1], strict=True):
            np.testing.assert_array_equal(one[one < N_USERS], genuine)
            np.testing.assert_array_equal(columns[one < N_USERS], genuine_columns)
    sizes = [len(matrix) - N_USERS for matrix, _ in after]
    assert 0 < sizes[0] < sizes[1] == sizes[2]


# -- arguments -----------------------------------------------------------------------------------------------------


def test_tasks_come_replication_by_replication():
    args = study._parser().parse_args(["--replications", "2", "--attacks", "average", "--shares", "0.1,0.3"])
    assert study.tasks(args, ("mode",)) == [
        task
        for r in (0, 1)
        for task in (
            Task(r, 0, "none", 0.0, ("mode",)),
            Task(r, 1, "average", 0.1, ("mode",)),
            Task(r, 1, "average", 0.3, ("mode",)),
        )
    ]


def test_defaults_are_the_papers_attacks_on_one_movie():
    found = study.tasks(study._parser().parse_args([]), ("mode",))
    assert len(found) == 1 + len(ATTACKS) * len(SHARES)
    assert {task.target for task in found[1:]} == {1}
    assert {task.share for task in found[1:]} == {0.1, 0.15, 0.2}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--attacks", "average,segment"], "expected distinct names of average, "),
        (["--shares", "0.1,2"], "expected"),
        (["--methods", "svd"], "expected distinct names of rdmc_pseudo_huber"),
        (["--targets", "0"], "expected an integer >= 1"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, said, tmp_path, capsys):
    assert said in mistake(study.main, argv, tmp_path, capsys)


def test_without_data_it_says_where_they_should_be(tmp_path, capsys):
    line = mistake(study.main, ["--data", str(tmp_path)], tmp_path, capsys)
    assert "u.data" in line
    assert "have MovieLens 100K downloaded" in line


def test_more_targets_than_popular_movies_are_told(data, tmp_path, capsys):
    line = mistake(study.main, ["--data", str(data), "--targets", "4"], tmp_path, capsys)
    assert "--targets 4: expected at most 3, 10% of the 30 movies" in line


# -- findings ------------------------------------------------------------------------------------------------------


def of_errors(**errors):
    seconds = {"rdmc_pseudo_huber": 400.0, "rdmc_pseudo_huber_liberal": 80.0, "soft_impute": 60.0}
    found = {
        "mae": {**REFERENCE, "discretized_median": 0.777, "soft_impute_liberal": 0.731, **errors},
        "cpu_seconds": seconds,
    }
    return pd.DataFrame(
        [
            {"replication": 0, "target": 0, "attack": "none", "share": 0.0, "method": m, "metric": metric, "value": v}
            for metric, values in found.items()
            for m, v in values.items()
        ]
    )


def held(rows, ratings, part):
    (found,) = [each.findings for each in parts(rows, settings(ratings), ratings) if each.name == part]
    return [each.holds for each in found]


def test_the_authors_own_errors_have_what_the_paper_found(ratings):
    assert held(of_errors(), ratings, "figure5") == [True] * 5


def test_findings_on_errors_follow_the_numbers(ratings):
    assert held(of_errors(soft_impute=0.77), ratings, "figure5") == [False, True, False, True, True]
    assert held(of_errors(soft_impute_discretized=0.73), ratings, "figure5") == [True, False, True, True, True]
    assert held(of_errors(rdmc_pseudo_huber=0.742), ratings, "figure5") == [True, True, False, True, True]


def of_shifts(**of_method):
    """Rows of two targets, with shifts that are given at a share of 20%."""
    base = {"rdmc_pseudo_huber": -0.05, "rdmc_pseudo_huber_liberal": -0.08, "soft_impute": -0.5, "mode": 0.0}
    base |= {"soft_impute_discretized": -0.6}
    return pd.DataFrame(
        [
            {
                "replication": 0,
                "target": target,
                "attack": attack,
                "share": share,
                "method": name,
                "metric": metric,
                "value": shift * (share / 0.2) ** (2.0 if "discretized" in name else 1.0) + 0.001 * (2 * target - 3),
            }
            for metric in ("prediction_shift", "hit_rate_change")
            for target in (1, 2)
            for attack in ATTACKS
            for share in SHARES
            for name, shift in {**base, **of_method}.items()
        ]
    )


def test_shifts_as_in_the_paper_have_what_it_found(ratings):
    assert held(of_shifts(), ratings, "figure6") == [True] * 5


def test_findings_on_shifts_follow_the_numbers(ratings):
    assert held(of_shifts(rdmc_pseudo_huber_liberal=-0.7), ratings, "figure6") == [False, False, True, True, True]
    assert held(of_shifts(rdmc_pseudo_huber=-0.09), ratings, "figure6") == [True, True, False, True, True]
    assert held(of_shifts(soft_impute=0.5), ratings, "figure6") == [True, True, True, False, False]
    # Both fall behind at all sizes.
    assert held(of_shifts(soft_impute_discretized=-2.0), ratings, "figure6")[-1] is False


def test_it_is_told_what_rdmc_does_where_the_median_of_the_target_moves(ratings):
    rows = of_shifts(median=0.0)
    moved = (rows["attack"] == "love_hate") & (rows["share"] == 0.2) & (rows["target"] == 2)
    rows.loc[rows["method"] == "median", "value"] = 0.0
    rows.loc[moved & (rows["method"] == "median"), "value"] = -1.0
    rows.loc[rows["method"] == "rdmc_pseudo_huber", "value"] = 0.125
    rows.loc[moved & (rows["method"] == "rdmc_pseudo_huber"), "value"] = -0.75
    (text,) = [part.text for part in parts(rows, settings(ratings), ratings) if part.name == "figure6"]
    note = text.splitlines()[-1]
    assert note.startswith("The median of the target's ratings moved in 1 of 18 attacks. Mean shift where it did")
    assert "RDMC-pHuber -0.750 and +0.125" in note
    rows.loc[rows["method"] == "median", "value"] = 0.0
    (text,) = [part.text for part in parts(rows, settings(ratings), ratings) if part.name == "figure6"]
    assert text.endswith("moved in 0 of 18 attacks.")


def test_a_part_of_the_rows_gives_a_part_of_the_report(ratings):
    empty = pd.DataFrame(columns=["replication", "method", "metric", "value"])
    assert [part.name for part in parts(empty, settings(ratings), ratings)] == ["figure4"]
    assert [part.name for part in parts(of_errors(), settings(ratings), ratings)] == ["figure4", "figure5"]
    one = of_shifts().query("attack == 'average' and share == 0.1 and target == 1 and method == 'mode'")
    assert [part.name for part in parts(one, settings(ratings), ratings)] == ["figure4", "figure6", "hit_rate"]
    alone = of_errors().query("method == 'mode'")
    assert [part.name for part in parts(alone, settings(ratings), ratings)] == ["figure4", "figure5"]
