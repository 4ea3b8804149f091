"""On small stand-ins, written as Coat and Yahoo! R3 are."""

import numpy as np
import pandas as pd
import pytest

from algorithms.datasets import yahoo_r3
from algorithms.datasets.filters import missingness_study
from algorithms.synthetic import missing_completely_at_random, recommender
from scenarios import missingness
from scenarios.case_studies import split
from scenarios.completion import complete, held_out_cells
from scenarios.missingness import Settings, Task, measure, parts
from tests.scenarios.experiments import check_report, experiment, mistake

METHODS = ("rdmc_pseudo_huber", "rdmc_pseudo_huber_liberal", "soft_impute", "soft_impute_discretized", "mode")
SMALL = ["--methods", ",".join(METHODS), "--splits", "1", "--lambdas", "0.1,0.3", "--replications", "2", "--seed", "7"]


@pytest.fixture(autouse=True)
def _no_data(monkeypatch):
    for variable in ("COAT", "YAHOO_R3"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="module")
def coat_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coat")
    complete = recommender(290, 300, seed=1).complete
    for name, share, seed in (("train", 0.9, 1), ("test", 0.95, 2)):
        missing = missing_completely_at_random(complete.shape, seed=seed, share=share)
        np.savetxt(folder / f"{name}.ascii", np.where(missing, 0, complete), fmt="%d")
    return folder


@pytest.fixture(scope="module")
def yahoo_folder(tmp_path_factory):
    """50 users, 25 songs; user 50 has no rating of random songs."""
    folder = tmp_path_factory.mktemp("yahoo")
    complete = recommender(50, 25, seed=2).complete
    for name, share, seed in (("train", 0.5, 1), ("test", 0.7, 2)):
        missing = missing_completely_at_random(complete.shape, seed=seed, share=share)
        missing[49] = name == "test"
        user, item = np.nonzero(~missing)
        lines = [f"{i + 1}\t{j + 1}\t{complete[i, j]:.0f}\n" for i, j in zip(user, item, strict=True)]
        file = folder / f"ydata-ymusic-rating-study-v1_0-{name}.txt"
        file.write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ran(coat_folder, yahoo_folder, tmp_path_factory):
    """Folder, printed text and exit status of a small run of both."""
    out = tmp_path_factory.mktemp("missingness") / "out"
    folders = ["--coat", str(coat_folder), "--yahoo-r3", str(yahoo_folder), "--fewest", "8"]
    return experiment(missingness.main, [*folders, *SMALL, "--jobs", "2"], out)


@pytest.fixture(scope="module")
def rows(ran):
    return pd.read_csv(ran[0] / "replications.csv")


def test_writes_tables_figures_and_findings_of_both(ran):
    figures = {f"figure{number}_{name}" for number in (7, 8, 9) for name in ("coat", "yahoo_r3")}
    findings, printed = check_report(ran, figures=figures, tasks=8), ran[1]
    assert {name: len(found) for name, found in findings.items()} == {
        name: {"7": 2, "8": 5, "9": 2}[name[6]] for name in figures
    }
    # Coat is not what the paper used, and Yahoo! R3 is.
    assert printed.count("Coat is not the paper's Yahoo! R3") == 2
    assert "Yahoo! R3 is not" not in printed
    # One of 50 has no random songs, and one chose fewer than 8.
    assert "Chosen items (MNAR): 48 users, 25 items" in printed
    assert "Random items (MCAR): 48 users, 25 items" in printed


def test_rows_are_of_all_conditions_and_methods(rows):
    errors = rows[rows["metric"] == "mae"]
    by = ["replication", "data", "mechanism", "method"]
    assert len(errors) == len(errors.drop_duplicates(by)) == 2 * 2 * 2 * len(METHODS)
    assert rows["value"].notna().all()


def test_a_task_measures_what_is_held_out_of_its_own_mechanism(rows, yahoo_folder):
    pair = missingness_study(*yahoo_r3(yahoo_folder), user=8, item=8)
    assert pair[0].user_ids == pair[1].user_ids
    settings = Settings(seed=7, data=(), n_splits=1, rdmc_lambdas=(0.1, 0.3), soft_impute_lambdas=(0.1, 0.3))
    for ratings, mechanism in zip(pair, ("mnar", "mcar"), strict=True):
        this = split(ratings, seed=[7, 1, missingness.SPLIT])
        assert len(this.truth) == round(0.2 * len(ratings))
        cells = held_out_cells(this.train, n_splits=1, seed=[7, 1, missingness.HELD_OUT])
        names = METHODS[:4]
        done = complete(this.train, names, categories=[1, 2, 3, 4, 5], held_out=cells, lambdas=(0.1, 0.3))
        task = Task(1, "yahoo_r3", mechanism, names)
        got = pd.DataFrame(measure(task, settings, data={"yahoo_r3": pair})).set_index(["method", "metric"])["value"]
        for name in names:
            error = np.abs(done[name].matrix[this.row, this.column] - this.truth).mean()
            assert got[name, "mae"] == pytest.approx(error, rel=1e-12)
            assert got[name, "lam"] == done[name].lam
            where = "replication == 1 and data == 'yahoo_r3' and mechanism == @mechanism and method == @name"
            (there,) = rows.query(f"{where} and metric == 'mae'")["value"]
            assert there == pytest.approx(error, rel=1e-9)


def test_a_folder_may_stand_in_the_environment(yahoo_folder, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("YAHOO_R3", str(yahoo_folder))
    argv = ["--methods", "mode,median", "--replications", "1", "--jobs", "1", "--fewest", "8"]
    assert missingness.main([*argv, "--out", str(tmp_path / "out")]) == 0
    assert {file.stem for file in (tmp_path / "out").glob("*.png")} == {"figure7_yahoo_r3", "figure8_yahoo_r3"}
    assert "Coat" not in capsys.readouterr().out


def test_without_data_it_says_where_to_get_them(tmp_path, capsys):
    line = mistake(missingness.main, [], tmp_path, capsys)
    for part in ("--coat", "--yahoo-r3", "cs.cornell.edu", "webscope", "environment variable COAT"):
        assert part in line


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--coat", "nowhere"], "path must name the folder that holds train.ascii"),
        (["--yahoo-r3", "nowhere"], "path must name the folder that holds ydata"),
    ],
)
def test_a_wrong_folder_is_told_in_one_line(argv, said, tmp_path, capsys):
    assert said in mistake(missingness.main, argv, tmp_path, capsys)


def test_other_data_in_the_same_folder_are_refused(coat_folder, yahoo_folder, tmp_path, capsys):
    argv = ["--methods", "mode", "--replications", "1", "--jobs", "1", "--fewest", "8", "--out", str(tmp_path / "out")]
    assert missingness.main(["--yahoo-r3", str(yahoo_folder), *argv]) == 0
    assert missingness.main(["--coat", str(coat_folder), *argv]) == 2
    assert "other settings" in capsys.readouterr().err


# -- findings ------------------------------------------------------------------------------------------------------

AS_IN_PAPER = {
    ("rdmc_pseudo_huber", "mnar"): 0.90,
    ("rdmc_pseudo_huber_liberal", "mnar"): 0.89,
    ("rdmc_absolute", "mnar"): 0.88,
    ("soft_impute", "mnar"): 0.93,
    ("soft_impute_liberal", "mnar"): 1.0,
    ("soft_impute_discretized", "mnar"): 0.925,
    ("rdmc_pseudo_huber", "mcar"): 0.70,
    ("rdmc_pseudo_huber_liberal", "mcar"): 0.70,
    ("rdmc_absolute", "mcar"): 0.70,
    ("soft_impute", "mcar"): 0.75,
    ("soft_impute_liberal", "mcar"): 0.755,
    ("soft_impute_discretized", "mcar"): 0.74,
}


def held(yahoo_folder, changed):
    pair = missingness_study(*yahoo_r3(yahoo_folder), user=8, item=8)
    rows = pd.DataFrame(
        [
            {"replication": 0, "data": "yahoo_r3", "mechanism": where, "method": name, "metric": "mae", "value": error}
            for (name, where), error in {**AS_IN_PAPER, **changed}.items()
        ]
    )
    made = parts(rows, Settings(seed=1, data=()), {"yahoo_r3": pair})
    assert [part.name for part in made] == ["figure7_yahoo_r3", "figure8_yahoo_r3"]
    return [finding.holds for finding in made[1].findings]


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({}, []),
        ({("soft_impute", "mcar"): 0.95}, [0, 5]),
        ({("soft_impute_discretized", "mnar"): 0.899}, [1, 5]),
        ({("soft_impute_discretized", "mcar"): 0.699}, [2, 5]),
        ({("rdmc_absolute", "mcar"): 0.72}, [3]),
        ({("rdmc_absolute", "mnar"): 0.91}, [4]),
        ({("soft_impute_liberal", "mnar"): 0.94}, [6]),
    ],
)
def test_findings_on_errors_follow_the_numbers(yahoo_folder, changed, lost):
    assert held(yahoo_folder, changed) == [at not in lost for at in range(7)]


@pytest.mark.parametrize(
    ("chosen", "random", "holds"),
    [
        ([1, 1, 1, 5, 5, 3], [1] * 9 + [2] * 6 + [3] * 4 + [4] * 2 + [5], [True, True]),
        ([1, 1, 3, 3, 3, 5], [1] * 9 + [2] * 3 + [3] * 4 + [4] * 2 + [5], [False, False]),
        ([5, 5, 5, 1, 1, 3], [1] * 9 + [2] * 8 + [3] * 7 + [4] * 6 + [5] * 5, [False, False]),
    ],
)
def test_findings_on_distributions_follow_the_numbers(chosen, random, holds):
    found = missingness._distribution_findings(np.array(chosen, float), np.array(random, float))
    assert [each.holds for each in found] == holds


def test_no_rows_leave_the_distributions(yahoo_folder):
    pair = missingness_study(*yahoo_r3(yahoo_folder), user=8, item=8)
    empty = pd.DataFrame(columns=["replication", "method", "metric", "value"])
    assert [part.name for part in parts(empty, Settings(seed=1, data=()), {"yahoo_r3": pair})] == ["figure7_yahoo_r3"]
