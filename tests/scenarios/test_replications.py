import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from scenarios.replications import FINISHED, MANIFEST, Finding, Replications, grid, parser, spread, summarize
from tests.scenarios import replicating

ROOT = Path(__file__).resolve().parents[2]
FILES = {"replications.csv", "times.csv", "table.csv", "summary.json", "configuration.json", "eyes.png"}


class Dice:
    """Runs the experiment in a folder, and counts the tasks that were measured."""

    def __init__(self, folder):
        self.calls, self.out = folder / "calls", folder / "out"
        self.calls.mkdir(exist_ok=True)

    def arguments(self, *argv):
        return ["--calls", "calls", "--out", str(self.out), "--jobs", "2", *argv]

    def __call__(self, *argv):
        before = len(list(self.calls.iterdir()))
        with chdir(self.calls.parent):
            status = replicating.main(self.arguments(*argv))
        return status, len(list(self.calls.iterdir())) - before

    def table(self, name):
        return pd.read_csv(self.out / name)

    def json(self, name):
        return json.loads((self.out / name).read_text(encoding="utf-8"))

    @property
    def finished(self):
        return sorted((self.out / FINISHED).iterdir())


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The experiment after two replications, and what it printed. Workers take seconds to start: it is made once."""
    dice = Dice(tmp_path_factory.mktemp("dice"))
    with redirect_stdout(StringIO()) as printed:
        assert dice() == (0, 4)
    return dice, printed.getvalue()


@pytest.fixture
def dice(ran, tmp_path):
    """A copy of it."""
    shutil.copytree(ran[0].calls.parent, tmp_path / "copy")
    return Dice(tmp_path / "copy")


@pytest.fixture
def fresh(tmp_path):
    """The experiment in an empty folder."""
    return Dice(tmp_path)


def test_writes_tidy_tables_a_figure_and_each_task(ran, monkeypatch):
    dice, printed = ran
    assert {each.name for each in dice.out.iterdir()} == FILES | {FINISHED, MANIFEST}
    rows = dice.table("replications.csv")
    assert list(rows.columns) == ["replication", "dice", "method", "metric", "value"]
    assert list(rows["replication"]) == [0] * 8 + [1] * 8  # in the order of the tasks
    assert list(rows["dice"]) == ([1] * 4 + [3] * 4) * 2
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    with chdir(dice.calls.parent):
        expected = replicating.throw(replicating.Task(1, 3), replicating.Settings(1, "calls"))
    got = rows[(rows["replication"] == 1) & (rows["dice"] == 3) & (rows["metric"] == "eyes")]
    assert list(got["value"]) == [row["value"] for row in expected[:2]]
    table = dice.table("table.csv")
    assert list(table.columns) == ["dice", "method", "metric", "mean", "se", "n"]
    eyes = rows[(rows["dice"] == 1) & (rows["method"] == "sum") & (rows["metric"] == "eyes")]["value"]
    assert table.loc[0, "mean"] == eyes.mean()
    assert table.loc[0, "se"] == pytest.approx(eyes.std() / np.sqrt(2))
    assert table.loc[0, "n"] == 2
    assert imread(dice.out / "eyes.png").std() > 0
    assert len(dice.finished) == 4
    assert "The paper: dice have eyes. Here: yes, " in printed
    assert set(printed.splitlines()[-1].partition(": ")[2].split(", ")) == FILES | {f"{FINISHED}/"}
    assert dice.json("summary.json")["findings"]["eyes"][0]["holds"] is True
    assert dice.json("configuration.json")["settings"]["sides"] == 6


def test_times_stand_apart_and_workers_have_one_thread(ran):
    dice, _ = ran
    rows, times = dice.table("replications.csv"), dice.table("times.csv")
    assert "cpu_seconds" not in set(rows["metric"]) | set(dice.table("table.csv")["metric"])
    assert set(times["metric"]) == {"cpu_seconds"}
    assert len(times) == 4
    assert os.getpid() not in set(times["value"])
    assert set(rows.loc[rows["metric"] == "threads", "value"]) == {1.0}


def test_what_is_not_a_number_is_kept_as_such(dice):
    first = dice.table("replications.csv").query("metric == 'nothing'")
    assert len(first) == 4
    assert first["value"].isna().all()
    assert dice() == (0, 0)
    pd.testing.assert_frame_equal(dice.table("replications.csv").query("metric == 'nothing'"), first)


def test_the_number_of_processes_changes_nothing(ran, fresh):
    assert fresh("--jobs", "1") == (0, 4)
    for name in ("replications.csv", "table.csv"):
        assert (ran[0].out / name).read_bytes() == (fresh.out / name).read_bytes()


def test_another_seed_throws_otherwise(ran, fresh):
    fresh("--seed", "2")
    assert (ran[0].out / "replications.csv").read_bytes() != (fresh.out / "replications.csv").read_bytes()


def test_more_replications_go_on_from_those_that_are_there(dice):
    first = dice.table("replications.csv")
    assert dice("--paper") == (0, 6)  # five
    rows = dice.table("replications.csv")
    assert set(rows["replication"]) == set(range(5))
    pd.testing.assert_frame_equal(rows[: len(first)], first)
    assert dice("--replications", "1") == (0, 0)  # fewer are shown, and the others kept
    pd.testing.assert_frame_equal(dice.table("replications.csv"), first[first["replication"] == 0])
    assert len(dice.finished) == 10


def test_other_settings_are_refused_and_told(dice, capsys):
    kept = [file.read_bytes() for file in dice.finished]
    capsys.readouterr()
    assert dice("--sides", "8") == (2, 0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"--out {dice.out}: has finished tasks of other settings: sides 6, not 8. Name another folder, or give --anew "
        "to remove them"
    )
    assert [file.read_bytes() for file in dice.finished] == kept


def test_anew_removes_what_is_there(dice):
    assert dice("--sides", "8", "--anew", "--replications", "1") == (0, 2)
    assert len(dice.finished) == 2
    assert dice.json(MANIFEST)["settings"]["sides"] == 8


def test_tasks_of_another_version_are_refused(dice, capsys):
    manifest = dice.json(MANIFEST)
    manifest["versions"]["numpy"] = "0.1"
    (dice.out / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    assert dice()[0] == 2
    assert "numpy '0.1', not " in capsys.readouterr().err


def test_a_task_that_fails_is_named_and_the_others_are_kept(fresh, capsys):
    status, _ = fresh("--fails", "1-3", "--jobs", "1")
    assert status == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].endswith("replication 1, dice 3: the dice fell off the table")
    assert len(fresh.finished) == 3
    assert len(fresh.table("replications.csv")) == 12
    assert fresh.json("summary.json")["finished"] == 3


def test_files_of_others_are_left_alone(fresh, capsys):
    (fresh.out / FINISHED).mkdir(parents=True)
    (fresh.out / FINISHED / "mine.json").write_text("{}", encoding="utf-8")
    assert fresh("--anew") == (2, 0)
    assert "there is no" in capsys.readouterr().err
    assert (fresh.out / FINISHED / "mine.json").read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(("content", "said"), [("half a", "is not JSON"), ("{}", "is not the result of replication 0")])
def test_a_damaged_task_is_told(dice, capsys, content, said):
    dice.finished[0].write_text(content, encoding="utf-8")
    assert dice() == (2, 0)
    error = capsys.readouterr().err
    assert str(dice.finished[0]) in error
    assert said in error
    assert "remove it" in error


def test_a_place_that_is_no_folder_is_told(fresh, capsys):
    fresh.out.mkdir()
    (fresh.out / FINISHED).touch()
    assert fresh() == (2, 0)
    assert "must be a folder" in capsys.readouterr().err


def test_a_figure_of_an_earlier_report_is_removed(dice, monkeypatch):
    monkeypatch.setattr(replicating, "report", lambda rows: [])
    assert dice() == (0, 0)
    assert not (dice.out / "eyes.png").exists()


def test_tasks_must_differ(tmp_path):
    args = replicating.parser("dice", "", replications=1, paper=1).parse_args(["--out", str(tmp_path)])
    this = Replications("dice", args, replicating.Settings(1, str(tmp_path)), replicating.throw, replicating.report)
    with pytest.raises(ValueError, match="2 with 1 different"):
        this.run([replicating.Task(0, 1), replicating.Task(0, 1)])


def test_interrupted_it_keeps_what_is_done_and_goes_on_later(fresh):
    command = [sys.executable, "-m", "tests.scenarios.replicating", *fresh.arguments("--slow", "1.5")]
    running = subprocess.Popen(
        command,
        cwd=fresh.calls.parent,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    began = monotonic()
    while not ((fresh.out / FINISHED).is_dir() and fresh.finished) and monotonic() - began < 120:
        sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)  # the whole group, as a terminal does
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert err.strip() == ""
    n = len(fresh.finished)
    assert 0 < n < 4
    assert f"Interrupted: {n} of 4 tasks are done and kept" in out
    assert len(fresh.table("replications.csv")) == 4 * n
    assert fresh.json("summary.json")["interrupted"] is True
    assert fresh("--slow", "1.5") == (0, 4 - n)
    assert fresh.json("summary.json")["interrupted"] is False


# -- tables --------------------------------------------------------------------------------------------------------


def test_means_leave_out_what_is_missing():
    rows = pd.DataFrame(
        {
            "replication": [0, 1, 2, 0],
            "method": ["a", "a", "a", "b"],
            "metric": "m",
            "value": [1.0, 3.0, np.nan, 5.0],
        }
    )
    table = summarize(rows).set_index("method")
    assert tuple(table.loc["a", ["mean", "se", "n"]]) == (2.0, 1.0, 2)
    assert table.loc["b", "n"] == 1
    assert np.isnan(table.loc["b", "se"])
    assert list(summarize(rows[:0]).columns) == ["method", "metric", "mean", "se", "n"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((0.5, 0.012), "0.500 (0.012)"),
        ((0.5, np.nan), "0.500"),
        ((np.nan, np.nan), "-"),
        ((-0.0001, 0.01), "0.000 (0.010)"),
    ],
)
def test_spread(given, shown):
    assert spread(*given) == shown


def test_signs_are_shown_where_they_are_asked_for():
    assert spread(0.25, 0.5, 1, signed=True) == "+0.2 (0.5)"


def test_grid_shows_means_beside_a_reference():
    table = pd.DataFrame(
        {"method": ["a", "b", "a"], "k": [3, 3, 5], "mean": [1.0, 2.0, 3.0], "se": [0.1, np.nan, 0.3], "n": 2}
    )
    reference = pd.DataFrame({"method": ["a"], "k": [3], "value": [1.5]})
    shown = grid(
        table, down="method", across="k", titles={"a": "A", 3: "three"}, places=1, reference=reference, referenced="ref"
    )
    heading, first, second = shown.splitlines()
    assert heading.split() == ["three", "|", "ref", "5"]
    assert first.split() == ["A", "1.0", "(0.1)", "|", "1.5", "3.0", "(0.3)"]
    assert second.split() == ["b", "2.0", "|", "-", "-"]


def test_a_finding_that_does_not_hold_says_no():
    assert str(Finding("it is so", False, "1 and 2")) == "The paper: it is so. Here: no, 1 and 2."


def test_a_finding_holds_as_json_has_it():
    mean = np.array([0.5])
    finding = Finding("it is so", mean[0] < 1, "0.5")
    assert finding.holds is True
    assert Finding("it is so", mean[0] > 1, "0.5").holds is False
    assert json.loads(json.dumps(asdict(finding)))["holds"] is True


# -- arguments -----------------------------------------------------------------------------------------------------


def test_the_papers_number_is_one_flag_away_where_there_is_one():
    made = parser("dice", "Throws dice.", replications=2, paper=5)
    assert [made.parse_args(argv).replications for argv in ([], ["--paper"])] == [2, 5]
    assert "as many as in the paper, 5" in made.format_help()
    assert "--paper" not in parser("dice", "Throws dice.", replications=2).format_help()
