import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from algorithms.attacks import Attack, hit_rate, inject, mean_prediction_shift, number_of_profiles, simulated_target
from scenarios import rating_simulation as simulation
from scenarios.completion import METHODS, complete, held_out_also, held_out_cells
from scenarios.rating_simulation import (
    ATTACKS,
    GOLDEN_FILE,
    LOSSES,
    MAIN,
    REFERENCE,
    Settings,
    Task,
    golden,
    measure,
    parts,
    simulated,
)
from tests.scenarios.experiments import check_report, experiment, mistake, value

GOLDEN = Path(os.environ.get("GOLDEN_DATA") or Path(__file__).resolve().parents[3] / "shared" / "golden", GOLDEN_FILE)
SETTINGS = Settings(seed=4, n_users=40, n_items=30, n_splits=2, lambdas=(0.05, 0.2), n_selected=3, min_ratings=5)
SMALL = [
    "--users",
    "40",
    "--items",
    "30",
    "--splits",
    "2",
    "--lambdas",
    "0.05,0.2",
    "--selected",
    "3",
    "--min-ratings",
    "5",
    "--seed",
    "4",
    "--jobs",
    "2",
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Folder, printed text and exit status of a small run of everything."""
    out = tmp_path_factory.mktemp("simulation") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GOLDEN_DATA", raising=False)
        return experiment(simulation.main, [*SMALL, "--replications", "2"], out)


@pytest.fixture(scope="module")
def rows(ran):
    return pd.read_csv(ran[0] / "replications.csv")


# -- what is written -----------------------------------------------------------------------------------------------


def test_writes_tables_and_the_papers_figures(ran):
    figures = {"figure2", "figure3", "figure12", "hit_rate_mnar", "hit_rate_mcar", "figure10", "figure11"}
    findings = check_report(ran, figures=figures, tasks=14)
    assert all(findings.values())
    assert ran[1].count("The paper: ") == sum(map(len, findings.values()))


def test_rows_are_of_all_conditions_and_methods(rows):
    main = rows[~rows["method"].isin(LOSSES)]
    errors = main[main["metric"] == "mae"]
    assert len(errors) == 2 * 3 * 2 * len(MAIN)
    for metric in ("prediction_shift", "hit_rate", "hit_rate_change"):
        assert len(main[main["metric"] == metric]) == 2 * 3 * 2 * 3 * len(MAIN)
    further = rows[rows["method"].isin(LOSSES)]
    assert set(further["n_categories"]) == {5}
    assert set(further["mechanism"]) == {"mnar"}
    tuned = {name for name in MAIN if METHODS[name].tuned}
    assert set(main.loc[main["metric"] == "lam", "method"]) == tuned
    assert rows["value"].notna().all()


def test_the_table_shows_means_beside_the_authors(ran, rows):
    errors = rows[(rows["metric"] == "mae") & (rows["n_categories"] == 10) & (rows["mechanism"] == "mcar")]
    mean = errors.loc[errors["method"] == "mode", "value"].mean()
    lines = ran[1].splitlines()
    begin = lines.index("MCAR")
    (line,) = [line for line in lines[begin : begin + 9] if line.startswith("mode")]
    assert f"{mean:.3f} (" in line
    assert line.endswith("|  1.681")


# -- what is measured ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["mnar", "mcar"])
def test_a_task_measures_what_the_paper_defines(mechanism):
    """All of it once more, from the functions that a task is made of."""
    task = Task(1, 5, mechanism, ("rdmc_pseudo_huber", "soft_impute"), ("love_hate",))
    got = pd.DataFrame(measure(task, SETTINGS))
    data = simulated(task, SETTINGS)
    cells = held_out_cells(data.observed, n_splits=2, seed=[4, 1, simulation.HELD_OUT])
    options = {"categories": [1, 2, 3, 4, 5], "lambdas": SETTINGS.lambdas}
    before = complete(data.observed, task.methods, held_out=cells, **options)
    target = simulated_target(data.observed, data.world.shifts, data.world.largest_shift)
    n = number_of_profiles(data.observed, target, 0.2)
    fake = Attack("love_hate").profiles(
        data.observed, target, n_profiles=n, seed=[4, 1, simulation.PROFILES], categories=[1, 2, 3, 4, 5]
    )
    attacked = inject(data.observed, fake)
    cells = held_out_also(cells, attacked, n_before=40, seed=[4, 1, simulation.HELD_OUT_OF_PROFILES])
    after = complete(attacked, task.methods, held_out=cells, **options)
    for name in task.methods:
        first, second = before[name].matrix, after[name].matrix[:40]
        error = np.abs(first - data.world.complete)[np.isnan(data.observed)].mean()
        assert value(got, attack="none", method=name, metric="mae") == pytest.approx(error, rel=1e-12)
        shift = mean_prediction_shift(first[:, target], second[:, target], np.isnan(data.observed[:, target]))
        assert value(got, attack="love_hate", method=name, metric="prediction_shift") == pytest.approx(shift, abs=1e-12)
        known = ~np.isnan(data.observed)
        rates = [hit_rate(each, known, target, n=10) for each in (first, second)]
        assert value(got, attack="love_hate", method=name, metric="hit_rate") == pytest.approx(rates[1])
        change = value(got, attack="love_hate", method=name, metric="hit_rate_change")
        assert change == pytest.approx(rates[1] - rates[0])
        assert value(got, attack="none", method=name, metric="lam") == before[name].lam
        assert value(got, attack="love_hate", method=name, metric="lam") == after[name].lam
        assert value(got, attack="love_hate", method=name, metric="n_iter") == after[name].n_iter


def test_workers_measure_what_this_process_does(rows):
    task = Task(1, 3, "mnar", MAIN, ATTACKS)
    here = pd.DataFrame(measure(task, SETTINGS)).query("metric != 'cpu_seconds'")
    there = rows[(rows["replication"] == 1) & (rows["n_categories"] == 3) & (rows["mechanism"] == "mnar")]
    np.testing.assert_allclose(here["value"], there["value"], rtol=1e-9, atol=1e-12)


def test_methods_and_attacks_share_data_and_held_out_ratings(monkeypatch):
    seen = []

    def record(matrix, methods, **options):
        seen.append((matrix, options["held_out"]))
        return complete(matrix, methods, **options)

    monkeypatch.setattr(simulation, "complete", record)
    measure(Task(0, 3, "mcar", ("median",), ("average", "love_hate")), SETTINGS)
    measure(Task(0, 3, "mcar", ("mode",), ("reverse_bandwagon",)), SETTINGS)
    first, average, love_hate, again, reverse = seen
    np.testing.assert_array_equal(first[0], again[0])
    for (rows, columns), (same_rows, same_columns) in zip(first[1], again[1], strict=True):
        np.testing.assert_array_equal(rows, same_rows)
        np.testing.assert_array_equal(columns, same_columns)
    for matrix, held_out in (average, love_hate, reverse):
        np.testing.assert_array_equal(matrix[:40], first[0])
        assert len(matrix) == len(average[0]) > 40
        for (rows, columns), (genuine_rows, genuine_columns) in zip(held_out, first[1], strict=True):
            np.testing.assert_array_equal(rows[rows < 40], genuine_rows)
            np.testing.assert_array_equal(columns[rows < 40], genuine_columns)
            assert (rows >= 40).any()
    np.testing.assert_array_equal(np.isnan(average[0]), np.isnan(love_hate[0]))  # the same fillers


def test_numbers_of_categories_are_pairs_and_replications_are_not():
    three, ten = (simulated(Task(0, k, "mnar", (), ()), SETTINGS) for k in (3, 10))
    np.testing.assert_array_equal(three.missing, ten.missing)
    np.testing.assert_array_equal(three.world.latent, ten.world.latent)
    other = simulated(Task(1, 3, "mnar", (), ()), SETTINGS)
    assert (other.missing != three.missing).any()
    assert (other.world.complete != three.world.complete).any()


def test_as_many_ratings_are_missing_as_in_the_paper():
    mcar = simulated(Task(0, 5, "mcar", (), ()), Settings(seed=1))
    assert mcar.missing.shape == (300, 200)
    assert mcar.missing.sum() == 42_000
    mnar = simulated(Task(0, 5, "mnar", (), ()), Settings(seed=1)).missing.sum(axis=0)
    assert (mnar.min(), mnar.max()) == (120, 297)
    assert mnar.sum() / 60_000 == pytest.approx(0.7, abs=0.02)


# -- tasks ---------------------------------------------------------------------------------------------------------


def arguments(*argv):
    return simulation._parser().parse_args(argv)


def test_tasks_come_replication_by_replication():
    found = simulation.tasks(
        arguments("--replications", "2", "--categories", "3,10", "--attacks", "none", "--no-losses")
    )
    assert [(each.replication, each.mechanism, each.n_categories) for each in found] == [
        (r, where, k) for r in (0, 1) for where in ("mnar", "mcar") for k in (3, 10)
    ]
    assert {each.methods for each in found} == {MAIN}
    assert {each.attacks for each in found} == {()}


def test_losses_are_the_two_that_are_not_there_yet():
    *_, last = simulation.tasks(arguments("--replications", "1"))
    assert last == Task(0, 5, "mnar", LOSSES, ATTACKS)
    *_, last = simulation.tasks(arguments("--replications", "1", "--methods", "mode"))
    assert set(last.methods) == {"rdmc_pseudo_huber", *LOSSES}
    *_, last = simulation.tasks(arguments("--replications", "1", "--mechanisms", "mcar"))
    assert set(last.methods) == {"rdmc_pseudo_huber", *LOSSES}


def test_the_papers_counts():
    found = simulation.tasks(arguments("--paper"))
    assert len([each for each in found if each.methods == MAIN]) == 100 * 6
    assert len([each for each in found if each.methods == LOSSES]) == 50


# -- golden values -------------------------------------------------------------------------------------------------


def test_without_a_file_the_means_of_the_authors_stand_beside(monkeypatch):
    monkeypatch.delenv("GOLDEN_DATA", raising=False)
    table = golden()
    assert len(table) == 36
    assert value(table, n_categories=10, mechanism="mcar", method="soft_impute") == 1.365
    assert set(table["metric"]) == {"mae"}


def test_a_file_is_read(tmp_path):
    file = tmp_path / "some.csv"
    file.write_text(
        "rep,K,mech,attack,filler,method,value,lambda\n"
        "1,5,MNAR,none,NA,RDMC,0.5,0.1\n"
        "1,5,MNAR,average,0.1,SI_disc,-0.25,0.1\n"
        "1,5,MNAR,average,1,SI_disc,-0.75,0.1\n"
        "1,5,MNAR,none,NA,unknown,0.5,0.1\n",
        encoding="utf-8",
    )
    table = golden(file)
    assert table.to_dict("records") == [
        {
            "n_categories": 5,
            "mechanism": "mnar",
            "attack": "none",
            "method": "rdmc_pseudo_huber",
            "metric": "mae",
            "value": 0.5,
        },
        {
            "n_categories": 5,
            "mechanism": "mnar",
            "attack": "average",
            "method": "soft_impute_discretized",
            "metric": "prediction_shift",
            "value": -0.25,
        },
    ]


@pytest.mark.skipif(not GOLDEN.is_file(), reason=f"needs {GOLDEN}")
def test_the_means_in_this_module_are_those_of_the_golden_values():
    table = golden(GOLDEN)
    means = table[table["metric"] == "mae"].groupby(["n_categories", "mechanism", "method"])["value"].mean()
    for (k, mechanism), expected in REFERENCE.items():
        for name, mean in zip((*MAIN[:5], "mode"), expected, strict=True):
            assert means[k, mechanism, name] == pytest.approx(mean, abs=5e-4 + 1e-9)


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), ("", "cannot be read"), ("K,mech\n", "has no column attack")]
)
def test_a_file_that_is_no_golden_table_is_told(tmp_path, capsys, content, said):
    file = tmp_path / "some.csv"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    assert f"--golden {file}: {said}" in mistake(simulation.main, ["--golden", str(file)], tmp_path, capsys)


# -- findings ------------------------------------------------------------------------------------------------------


def of_means(means):
    """Rows of two replications that have these means: SI under MCAR varies, all else hardly."""
    made = []
    for (k, mechanism), values in means.items():
        for name, mean in zip((*MAIN[:5], "mode"), values, strict=True):
            spread = 0.1 if "soft" in name and mechanism == "mcar" and k == 10 else 0.001
            made += [
                {
                    "replication": replication,
                    "n_categories": k,
                    "mechanism": mechanism,
                    "attack": "none",
                    "method": name,
                    "metric": "mae",
                    "value": mean + sign * spread,
                }
                for replication, sign in enumerate((-1, 1))
            ]
    return pd.DataFrame(made)


def findings(rows):
    return [finding for part in parts(rows, golden()) for finding in part.findings]


def test_the_authors_own_errors_have_all_that_the_paper_found_without_attack():
    found = findings(of_means(REFERENCE))
    assert len(found) == 12
    assert [each.claim for each in found if not each.holds] == []


def test_errors_that_are_all_the_same_have_none_of_it():
    same = findings(of_means(dict.fromkeys(REFERENCE, (0.5,) * 6)))
    held = [each.claim for each in same if each.holds]
    assert [claim.partition(" (")[0] for claim in held] == [
        "with 3 categories SI is not better than median and mode",
        "with 3 categories SI is not better than median and mode",
        "with 5 categories RDMC is as good as SI-discretized",
        "with 10 categories SI varies much under MCAR",
    ]


def shifts(**of_method):
    """Rows of two replications with these shifts: all attacks, or for each number of categories."""
    made = [
        {
            "replication": replication,
            "n_categories": k,
            "mechanism": "mnar",
            "attack": attack,
            "method": name,
            "metric": metric,
            "value": of_method.get(name, 0.0) * (1.5 if attack == "average" else 1.0),
        }
        for metric in ("prediction_shift", "hit_rate_change")
        for replication in range(2)
        for k in (3, 5, 10)
        for attack in ATTACKS
        for name in MAIN
    ]
    return pd.DataFrame(made)


def test_findings_on_shifts_follow_the_numbers():
    si = {"soft_impute": -1.0, "soft_impute_discretized": -1.2}
    as_in_paper = findings(shifts(**si, rdmc_pseudo_huber=-0.05, rdmc_pseudo_huber_liberal=-0.1))
    # The median does not move here.
    assert [each.claim for each in as_in_paper if not each.holds] == [
        "the median is stable with 3 and 5 categories and shifts by -1 in most instances with 10"
    ]
    assert "9 of 9 settings" in str(as_in_paper[2])
    otherwise = findings(shifts(**si, rdmc_pseudo_huber=-1.1))
    assert not otherwise[2].holds
    assert "0 of 9 settings" in otherwise[2].evidence


@pytest.mark.parametrize("missing", ["mode", "soft_impute", "rdmc_pseudo_huber"])
def test_a_part_of_the_rows_gives_a_part_of_the_report(rows, missing):
    assert [part.name for part in parts(rows[rows["method"] != missing], golden())][:2] == ["figure2", "figure3"]
    one = rows[(rows["mechanism"] == "mcar") & (rows["attack"] == "none") & (rows["n_categories"] == 3)]
    assert [part.name for part in parts(one, golden())] == ["figure2"]


def test_no_rows_give_no_report():
    empty = pd.DataFrame(columns=["replication", "n_categories", "mechanism", "attack", "method", "metric", "value"])
    assert parts(empty, golden()) == []


# -- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--categories", "4"], "expected distinct numbers of 3, 5 and 10, got '4'"),
        (["--categories", "3,3"], "expected distinct numbers of 3, 5 and 10, got '3,3'"),
        (["--mechanisms", "mar"], "expected distinct names of mnar, mcar, got 'mar'"),
        (["--attacks", "average,segment"], "expected distinct names of average, "),
        (["--methods", "svd"], "expected distinct names of rdmc_pseudo_huber"),
        (["--replications", "0"], "expected an integer >= 1"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, said, tmp_path, capsys):
    assert said in mistake(simulation.main, argv, tmp_path, capsys)


def test_no_attacks_can_be_asked_for():
    assert arguments("--attacks", "none").attacks == []
    assert isinstance(arguments(), argparse.Namespace)
