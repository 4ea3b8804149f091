"""The console command: what it lists, runs, plots and compares, and how it tells a person's mistakes."""

import csv
import dataclasses
import os
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.image import imread

import algorithms.datasets
from netsim import Constant, Result, World, complete, simulate
from scenarios import cli, quickstart

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--users", "10", "--items", "8", "--places", "5", "--until", "30"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Folder of two studies of one run each, `clean` and `lossy`."""
    place = tmp_path_factory.mktemp("studies")
    with redirect_stdout(StringIO()):
        for name, loss in {"clean": "0", "lossy": "0.3"}.items():
            assert cli.main(["run", "quickstart", *SMALL, "--loss", loss, "--out", str(place / name)]) == 0
    return place


@pytest.fixture
def tables(studies):
    """Results of the two studies by name."""
    return {name: Result.load(studies / name / "runs" / "quickstart") for name in ("clean", "lossy")}


def measured(**columns):
    """Result of a run whose probe table is as given, beside the columns that every run has."""
    data = quickstart.low_rank(6, 5, rank=2, missing=0.3, seed=1)
    world = World(data.train, complete(3), delay=Constant(0.1), learning=quickstart.DEFAULTS)
    result = simulate(world, until=3.0, every=1.0, seed=1)
    table = result.probes
    for place, (name, values) in enumerate(columns.items(), start=1):
        table.insert(place, name, values)
    return dataclasses.replace(result, probes=table)


def ended(argv, capsys):
    """Exit status, however it comes, with standard output and the lines of standard error."""
    capsys.readouterr()
    try:
        status = cli.main(argv)
    except SystemExit as end:
        status = end.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err.splitlines()


def table_of(text):
    """Cells of a printed table by the name of the row."""
    lines = text.split("\n\n")[0].splitlines()
    return {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line.rstrip()) for line in lines)}


# -- help, version, list -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_the_commands(argv, capsys):
    status, out, err = ended(argv, capsys)
    assert (status, err) == (0, [])
    for command in ("list", "run", "plot", "compare"):
        assert re.search(rf"^ +{command} +\w", out, re.MULTILINE), command


def test_version_is_that_of_the_package(capsys):
    assert ended(["--version"], capsys) == (0, f"netsim {version('netsim-recommender')}\n", [])


def test_pyproject_installs_the_command():
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["netsim"]
    module, _, function = entry.partition(":")
    assert getattr(import_module(module), function) is cli.main


def test_list_shows_scenarios_data_sets_and_generators_with_the_first_line_about_each(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    status, out, _ = ended(["list"], capsys)
    assert status == 0
    listed = {}
    for part in out.split("\n\n"):
        title, *lines = part.splitlines()
        listed[title.split()[0]] = dict(line.strip().split(maxsplit=1) for line in lines)
    assert listed["Scenarios,"]["quickstart"] == quickstart.__doc__.splitlines()[0]
    assert listed["Data"]["movielens_100k"] == algorithms.datasets.movielens_100k.__doc__.splitlines()[0]
    assert listed["Synthetic"]["low_rank"].startswith("Draw a low-rank truth")
    assert set(listed["Synthetic"]) == {"low_rank", "recommender", "survey"}  # and no masks
    assert "DataError" not in listed["Data"]
    files = {file.stem for file in (ROOT / "scenarios").glob("*.py")} - {"__init__", "study", "cli"}
    assert set(listed["Scenarios,"]) == {
        name
        for name in files
        if re.search(r"^def main\(", (ROOT / "scenarios" / f"{name}.py").read_text("utf-8"), re.M)
    }


def test_list_fits_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = ended(["list"], capsys)
    assert max(map(len, out.splitlines())) <= 60


# -- run -----------------------------------------------------------------------------------------------------------


def test_run_does_what_the_scenario_does(studies, tmp_path, capsys):
    assert quickstart.main([*SMALL, "--loss", "0", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "probes.csv").read_bytes() == (studies / "clean" / "probes.csv").read_bytes()


def test_run_passes_help_on_and_shows_how_the_scenario_was_called(capsys):
    status, out, _ = ended(["run", "quickstart", "--help"], capsys)
    assert status == 0
    assert out.startswith("usage: netsim run quickstart ")
    assert "--places" in out


def test_a_mistake_in_the_scenarios_arguments_ends_with_the_scenarios_line(capsys):
    status, out, (line,) = ended(["run", "quickstart", "--loss", "30"], capsys)
    assert (status, out) == (2, "")
    assert line == "netsim run quickstart: error: argument --loss: expected a number in [0, 1], got '30'"
    with pytest.raises(SystemExit):
        quickstart.main(["--loss", "30"])
    assert capsys.readouterr().err.startswith("python -m scenarios.quickstart: error: ")  # as it was called then


def test_an_unknown_scenario_is_told_with_the_nearest_and_all_names(capsys):
    status, _, (line,) = ended(["run", "quikstart", "--seed", "1"], capsys)
    assert status == 2
    assert line.startswith("netsim run: error: NAME: there is no scenario 'quikstart'; did you mean quickstart?")
    for name in cli.scenario_modules():
        assert name in line


def test_a_name_like_none_gets_no_suggestion(capsys):
    _, _, (line,) = ended(["run", "zzz"], capsys)
    assert "did you mean" not in line
    assert "there are" in line


@pytest.mark.parametrize("name", ["study", "cli"])
def test_what_is_no_scenario_cannot_be_run(name, capsys):
    status, _, (line,) = ended(["run", name], capsys)
    assert status == 2
    assert f"there is no scenario {name!r}" in line


def test_a_defect_in_a_scenario_shows_its_traceback(monkeypatch):
    def broken(argv):
        raise ValueError("a defect")

    monkeypatch.setattr(quickstart, "main", broken)
    with pytest.raises(ValueError, match="a defect"):
        cli.main(["run", "quickstart"])


# -- mistakes ------------------------------------------------------------------------------------------------------

MISTAKES = [
    (["bogus"], "argument COMMAND: invalid choice: 'bogus'"),
    (["run"], "NAME is missing"),
    (["plot"], "required: FOLDER"),
    (["plot", "absent"], "FOLDER absent: is not there; name"),
    (["plot", "clean/summary.json"], "FOLDER clean/summary.json: is a file; name"),
    (["plot", "empty"], "FOLDER empty: holds no saved run"),
    (["plot", "damaged"], "damaged/result.json: not whole JSON"),
    (["plot", "clean", "--against", "hope"], "--against: invalid choice: 'hope'"),
    (["plot", "clean", "--metric", "recall"], "--metric recall: was not measured by quickstart, which has test_rmse"),
    (["plot", "clean", "--metric", "time"], "--metric time: was not measured"),
    (["plot", "clean", "--out", "a.gif"], "--out: expected a name that ends with .png, .pdf or .svg, got 'a.gif'"),
    (["plot", "clean", "--out", "clean/summary.json/a.png"], "--out clean/summary.json: cannot be made a folder"),
    (["plot", "clean", "--out", "folder.png"], "--out folder.png: is a folder; name a file"),
    (["plot", "clean", "--log", "--linear"], "not allowed with argument"),
    (["compare", "clean", "absent"], "FOLDER absent: is not there; name"),
    (["compare", "clean", "--metric", "recall"], "--metric recall: no run measured it; they have test_rmse"),
    (["compare", "clean", "--target", "low"], "--target: expected a number > 0, got 'low'"),
    (["compare", "clean", "--target", "inf"], "at_most must be a finite number, got inf"),
    (["compare", "clean", "--csv", "empty"], "--csv empty: is a folder; name a file"),
]


@pytest.mark.parametrize(("argv", "told"), MISTAKES, ids=[" ".join(argv) for argv, _ in MISTAKES])
def test_a_mistake_ends_with_status_2_and_one_line_that_names_it(argv, told, studies, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clean").symlink_to(studies / "clean", target_is_directory=True)
    for name in ("empty", "damaged", "folder.png"):
        (tmp_path / name).mkdir()
    (tmp_path / "damaged" / "result.json").write_text("{")
    before = sorted(tmp_path.rglob("*"))
    status, out, (line,) = ended(argv, capsys)
    assert status == 2
    assert line.startswith(f"netsim{'' if argv == ['bogus'] else ' ' + argv[0]}: error: ")
    assert told in line
    assert out == ""
    assert sorted(tmp_path.rglob("*")) == before
    assert plt.get_fignums() == []


def test_a_mistake_of_a_real_process_shows_no_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "scenarios.cli", "compare", str(tmp_path / "absent")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"netsim compare: error: FOLDER {tmp_path / 'absent'}: is not there")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_reader_that_has_seen_enough_is_no_mistake():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "scenarios.cli", "list"],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_ctrl_c_ends_with_a_line(studies, monkeypatch, capsys):
    def stopped(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.Result, "load", stopped)
    status, _, (line,) = ended(["compare", str(studies / "clean")], capsys)
    assert (status, line) == (130, "Interrupted; nothing was written.")


# -- which runs, and what they are called --------------------------------------------------------------------------


def folders_of_runs(place, *paths):
    for path in paths:
        (place / path).mkdir(parents=True)
        (place / path / "result.json").touch()


def found(place, *folders):
    return [run.relative_to(place).as_posix() for run in cli.find_runs(place / folder for folder in folders)]


def test_a_folder_is_a_run_or_a_study_or_holds_runs(tmp_path):
    folders_of_runs(tmp_path, "study/runs/fold-10", "study/runs/fold-2", "study/runs/.fold-3.x1", "single")
    (tmp_path / "study" / "runs" / "notes").mkdir()
    both = ["study/runs/fold-2", "study/runs/fold-10"]
    assert found(tmp_path, "single") == ["single"]
    assert found(tmp_path, "study") == both
    assert found(tmp_path, "study/runs") == both
    assert found(tmp_path, "single", "study") == ["single", *both]


def test_a_run_that_is_named_twice_is_taken_once(tmp_path):
    folders_of_runs(tmp_path, "study/runs/a", "study/runs/b")
    assert found(tmp_path, "study/runs/b", "study", "study/../study") == ["study/runs/b", "study/runs/a"]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["out/a/runs/quickstart"], ["quickstart"]),
        (["a/runs/fold-1", "a/runs/fold-2"], ["fold-1", "fold-2"]),
        (["a/runs/quickstart", "b/runs/quickstart"], ["a", "b"]),
        (["a/runs/x", "a/runs/y", "b/runs/x"], ["a/x", "a/y", "b/x"]),
        (["a/runs/x", "a/x"], ["runs/x", "x"]),
        (["a/1/x", "b/1/x", "b/2/x"], ["a/1", "b/1", "b/2"]),
        (["x/x", "x"], ["x/x", "x"]),
    ],
)
def test_names_are_the_shortest_that_tell_runs_apart(paths, expected, tmp_path):
    assert cli.names([tmp_path / path for path in paths]) == expected


# -- plot ----------------------------------------------------------------------------------------------------------


def drawn(monkeypatch):
    """Arguments that the figure was drawn with, once it is."""
    calls, draw = [], cli.plots.convergence

    def recorded(result, **arguments):
        calls.append((result, arguments))
        return draw(result, **arguments)

    monkeypatch.setattr(cli.plots, "convergence", recorded)
    return calls


def test_plot_of_several_runs_draws_a_line_of_the_first_metric_for_each(studies, tmp_path, monkeypatch, capsys):
    calls = drawn(monkeypatch)
    file = tmp_path / "made" / "both.png"
    status, out, _ = ended(["plot", str(studies / "clean"), str(studies / "lossy"), "--out", str(file)], capsys)
    assert (status, out) == (0, f"Written to {file}\n")
    ((runs, arguments),) = calls
    assert list(runs) == ["clean", "lossy"]
    assert arguments == {"metrics": ["test_rmse"], "against": "time", "log": True}
    pixels = np.round(imread(file)[..., :3].reshape(-1, 3) * 255).astype(int)
    for colour in ((31, 119, 180), (255, 127, 14)):  # the first two of matplotlib's cycle
        assert (np.abs(pixels - colour).max(axis=1) < 3).sum() > 200
    assert sorted(each.name for each in file.parent.iterdir()) == ["both.png"]
    assert plt.get_fignums() == []


def test_plot_of_one_run_draws_all_its_errors(studies, tmp_path, monkeypatch, capsys):
    calls = drawn(monkeypatch)
    assert ended(["plot", str(studies / "clean"), "--out", str(tmp_path / "one.png")], capsys)[0] == 0
    ((run, arguments),) = calls
    assert isinstance(run, Result)
    assert arguments["metrics"] == ["test_rmse", "train_rmse", "truth_rmse"]


def test_plot_takes_the_axis_the_scale_and_metrics(studies, tmp_path, monkeypatch, capsys):
    calls = drawn(monkeypatch)
    argv = ["plot", "--against", "bytes", "--linear", "--metric", "sent", "--metric", "test_rmse"]
    assert ended([*argv, str(studies / "clean"), "--out", str(tmp_path / "a.png")], capsys)[0] == 0
    assert calls[0][1] == {"metrics": ["sent", "test_rmse"], "against": "bytes", "log": False}


@pytest.mark.parametrize(("name", "begins"), [("a.pdf", b"%PDF"), ("a.svg", b"<?xml"), ("A.PNG", b"\x89PNG")])
def test_the_ending_of_the_name_says_the_format(name, begins, studies, tmp_path, capsys):
    assert ended(["plot", str(studies / "clean"), "--out", str(tmp_path / name)], capsys)[0] == 0
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_run_stopped_too_early_for_a_line_is_left_out_and_told(studies, tables, tmp_path, capsys):
    early = dataclasses.replace(tables["lossy"], probes=tables["lossy"].probes.head(2), interrupted=True)
    early.save(tmp_path / "early")
    out = ["--out", str(tmp_path / "a.png")]
    status, told, _ = ended(["plot", str(studies / "clean"), str(tmp_path / "early"), *out], capsys)
    assert status == 0
    assert told.splitlines()[-1] == "Left out, with too few measurements to draw a line: early"
    status, _, (line,) = ended(["plot", str(tmp_path / "early"), *out], capsys)
    assert status == 2
    assert "too few measurements to draw a line in early; run with a smaller --every" in line
    assert ended(["plot", str(tmp_path / "early"), "--linear", *out], capsys)[0] == 0


def test_plot_of_runs_without_any_metric_asks_for_one(tmp_path, capsys):
    measured().save(tmp_path / "bare")
    argv = ["plot", str(tmp_path / "bare"), "--out", str(tmp_path / "a.png")]
    status, _, (line,) = ended(argv, capsys)
    assert status == 2
    assert "--metric must be given, since the runs measured no error; try user_updates" in line
    assert ended([*argv, "--metric", "user_updates"], capsys)[0] == 0


# -- compare -------------------------------------------------------------------------------------------------------


def test_compare_shows_a_column_for_each_run(studies, tables, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = ended(["compare", str(studies / "clean"), str(studies / "lossy")], capsys)
    assert status == 0
    shown = table_of(out)
    assert shown[""] == ["clean", "lossy"]
    runs = tables.values()
    assert shown["test_rmse"] == [f"{run.final['test_rmse']:.4f}" for run in runs]
    assert shown["simulated_seconds"] == ["30.0", "30.0"]
    assert shown["messages_sent"] == [f"{run.final['sent']:,.0f}" for run in runs]
    assert shown["bytes_sent"] == [f"{run.final['bytes_sent']:,.0f}" for run in runs]
    updates = [run.final["user_updates"] + run.final["item_updates"] for run in runs]
    assert shown["profile_updates"] == [f"{each:,.0f}" for each in updates]
    assert shown["loss"] == ["0.0", "0.3"]
    assert shown["seed"] == ["1", "1"]
    assert shown["engine"] == ["compiled", "compiled"]
    assert not {"delay", "until", "ratings.sha256", "learning.rank", "ended"} & set(shown)  # they do not differ
    versions = tables["clean"].versions
    assert out.endswith("same in all: " + ", ".join(f"{name} {versions[name]}" for name in versions) + "\n")


def test_compare_says_what_a_target_cost(tables):
    target = float(tables["clean"].probes["test_rmse"].iloc[10])
    reached = tables["clean"].to_target(target)
    table = cli.compare(tables, metric="test_rmse", target=target)
    rows = {name.split(" to ")[0]: row for name, row in table["clean"].items() if " to test_rmse" in name}
    assert rows == {
        "seconds": reached.time,
        "messages": reached.messages,
        "bytes": reached.bytes,
        "updates": reached.updates,
    }
    assert reached.time > 0


def test_a_target_that_was_missed_is_not_reached(tables):
    table = cli.compare(tables, target=1e-6)
    assert set(table.loc["seconds to test_rmse <= 1e-06"]) == {"not reached"}


def test_the_default_target_is_the_best_value_that_all_runs_reached():
    runs = {"good": measured(test_rmse=[2.0, 1.2, 0.9, 0.91]), "bad": measured(test_rmse=[2.0, 1.5, 1.23451, 1.4])}
    table = cli.compare(runs)
    assert list(table.loc["seconds to test_rmse <= 1.235"]) == [1.0, 2.0]


def test_the_default_target_passes_over_a_run_that_diverged():
    nan = float("nan")
    runs = {"good": measured(test_rmse=[2.0, 1.2, 0.9, 0.9]), "bad": measured(test_rmse=[nan, nan, nan, nan])}
    assert list(cli.compare(runs).loc["seconds to test_rmse <= 0.9"]) == [2.0, "not reached"]
    assert not any(" to " in name for name in cli.compare({"bad": runs["bad"]}).index)


@pytest.mark.parametrize(("metric", "higher"), [("recall_at_10", False), ("accuracy", True)])
def test_more_of_some_metrics_is_better(metric, higher):
    runs = {"a": measured(**{metric: [0.0, 0.2, 0.4, 0.3]}), "b": measured(**{metric: [0.0, 0.1, 0.1, 0.25]})}
    assert list(cli.compare(runs, higher=higher).loc[f"seconds to {metric} >= 0.25"]) == [2.0, 3.0]


@pytest.mark.parametrize(
    ("value", "up", "expected"),
    [
        (0.91234, True, 0.9124),
        (0.91234, False, 0.9123),
        (12345.6, True, 12350.0),
        (1.23e-7, True, 1.23e-7),
        (0, True, 0),
    ],
)
def test_a_default_target_has_four_digits_and_is_no_harder_than_the_value(value, up, expected):
    assert cli._rounded(value, up=up) == pytest.approx(expected, rel=1e-12)
    assert cli._rounded(value, up=True) >= value >= cli._rounded(value, up=False)


def test_the_default_metric_is_the_first_that_all_runs_measured():
    falling = [2.0, 1.5, 1.2, 1.0]
    runs = {"a": measured(own=falling, test_mae=falling), "b": measured(test_mae=falling, other=falling)}
    table = cli.compare(runs)
    assert list(table.loc["seconds to test_mae <= 1"]) == [3.0, 3.0]
    assert list(table.loc["own"]) == [1.0, None]
    assert list(cli.compare(runs, metric="other", target=1.3).loc["seconds to other <= 1.3"]) == [None, 2.0]


def test_runs_that_measured_nothing_can_be_compared(tmp_path, capsys):
    bare = measured()
    dataclasses.replace(bare, probes=bare.probes.iloc[:0], interrupted=True).save(tmp_path / "bare")
    status, out, _ = ended(["compare", str(tmp_path / "bare")], capsys)
    assert status == 0
    assert table_of(out)["ended"] == ["interrupted"]


def test_settings_that_differ_are_shown_to_the_part_that_differs(tables):
    clean = tables["clean"]
    changed = {
        "delay": {"distribution": "Constant", "value": 0.5},
        "learning": clean.configuration["learning"] | {"rank": 7},
        "ratings": clean.configuration["ratings"] | {"sha256": "f" * 64},
        "topology": clean.configuration["topology"] | {"description": "ring(n=5)", "sha256": "e" * 64},
    }
    other = dataclasses.replace(clean, configuration=clean.configuration | changed, until=99.0)
    versions = clean.versions | {"numpy": "1.26.0"}
    other = dataclasses.replace(other, seed=2**60, stopped="enough", versions=versions)
    table = cli.compare({"a": clean, "b": other})
    after = list(table.index).index("until")
    assert dict(table["b"].iloc[after:]) == {
        "until": "99.0",
        "ratings.sha256": "f" * 64,
        "topology.description": "ring(n=5)",  # which says more than its digest
        "delay": "Constant(value=0.5)",
        "learning.rank": "7",
        "ended": "stopped: enough",
        "seed": str(2**60),
        "engine": "compiled",
        "versions.numpy": "1.26.0",
    }
    assert table["a"]["delay"] == "LogNormal(median=0.07, sigma=0.8)"


def test_long_settings_are_cut_in_the_table_and_still_differ():
    alike = "network(" + "x" * 100
    shown = [cli._short("topology.description", alike + end) for end in "ab"]
    assert shown[0] != shown[1]
    assert all(len(each) <= cli.LONGEST for each in shown)
    assert cli._short("ratings.sha256", "0123456789abcdef" * 4) == "0123456789ab"


def test_compare_fits_the_terminal_however_many_runs(studies, tables, tmp_path, capsys, monkeypatch):
    for number in range(6):
        tables["clean"].save(tmp_path / f"run-{number}")
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = ended(["compare", *map(str, tmp_path.iterdir())], capsys)
    assert status == 0
    table = out.rpartition("\n\nVersions")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert all(f"run-{number}" in table for number in range(6))


def test_csv_has_one_run_a_row_in_full_precision(studies, tables, tmp_path, capsys):
    file = tmp_path / "made" / "table.csv"
    argv = ["compare", str(studies / "clean"), str(studies / "lossy"), "--target", "1e-6", "--csv", str(file)]
    status, out, _ = ended(argv, capsys)
    assert status == 0
    assert f"Written to {file}\n" in out
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["run"] for row in rows] == ["clean", "lossy"]
    for row, run in zip(rows, tables.values(), strict=True):
        assert float(row["test_rmse"]) == run.final["test_rmse"]
        assert int(row["messages_sent"]) == run.final["sent"]
        assert row["seconds to test_rmse <= 1e-06"] == ""
        assert Result.load(row["folder"]).configuration["loss"] == float(row["loss"])
    assert pd.read_csv(file).shape == (2, len(rows[0]))
