"""What all scenarios share: their help, mistakes on the command line, interruption, and how files are written."""

import argparse
import csv
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from netsim import Constant, Result, World, complete, rmse
from scenarios import cli, movielens, movielens_tuning, quickstart, study

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = list(cli.scenario_modules())
SMALL = ["--users", "10", "--items", "8", "--places", "5", "--until", "30"]
WRITTEN = {"summary.json", "probes.csv", "configuration.json", "convergence.png"}
TABLES = tuple(
    f"{name}.csv" for name in ("probes", "accounts", "users", "routers", "items", "prequential", "recommendations")
)
# Of the run that quickstart saves.
SAVED = {f"runs/quickstart/{name}" for name in ("result.json", "arrays.npz", *TABLES)}


def status_of(main, argv):
    """Exit status, however it comes."""
    try:
        return main(argv)
    except SystemExit as end:
        return end.code


def rows(out):
    with (out / "probes.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    """Bytes of all files in a folder and below, hidden ones too, by path."""
    files = (each for each in folder.rglob("*") if not each.is_dir())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


# -- help ----------------------------------------------------------------------------------------------------------


def parser_of(name, monkeypatch):
    made = []
    with monkeypatch.context() as patch:
        patch.setattr(study, "main", lambda parser, run, argv=None: made.append(parser) or 0)
        importlib.import_module(f"scenarios.{name}").main([])
    return made[0]


@pytest.mark.parametrize("name", SCENARIOS)
def test_help_says_what_the_scenario_is_and_the_default_of_each_option(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10000")
    parser = parser_of(name, monkeypatch)
    text = parser.format_help()
    assert parser.prog == f"python -m scenarios.{name}"
    assert " ".join(importlib.import_module(f"scenarios.{name}").__doc__.split())[:60] in " ".join(text.split())
    entries = {entry.split()[0].rstrip(","): " ".join(entry.split()) for entry in re.split(r"\n  (?=-)", text)}
    options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    assert options
    for action in options:
        entry = entries[action.option_strings[0]]
        expected = "(default: " if action.default is argparse.SUPPRESS else f"(default: {action.default})"
        assert expected in entry, entry


@pytest.mark.parametrize("name", SCENARIOS)
def test_help_ends_well(name, capsys):
    main = importlib.import_module(f"scenarios.{name}").main
    assert status_of(main, ["--help"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("usage: ")
    assert captured.err == ""


@pytest.mark.parametrize("name", SCENARIOS)
def test_defaults_that_are_typed_change_nothing(name, monkeypatch):
    parser = parser_of(name, monkeypatch)
    argv = []
    for action in parser._actions:
        valued = action.option_strings and action.dest != "help" and action.nargs != 0
        if valued and action.default is not argparse.SUPPRESS:
            default = action.default
            argv += [
                action.option_strings[0],
                ",".join(map(str, default)) if isinstance(default, list) else str(default),
            ]
    assert vars(parser.parse_args(argv)) == vars(parser.parse_args([]))


# -- mistakes ------------------------------------------------------------------------------------------------------

MISTAKES = [
    (quickstart.main, ["--rank", "0"], "rank"),
    (quickstart.main, ["--rank", "-1"], "rank"),
    (quickstart.main, ["--rank", "2.5"], "rank"),
    (quickstart.main, ["--lam", "-1"], "lam"),
    (quickstart.main, ["--lam", "nan"], "lam"),
    (quickstart.main, ["--lam", "much"], "lam"),
    (quickstart.main, ["--rate", "0"], "rate"),
    (quickstart.main, ["--rate", "inf"], "rate"),
    (quickstart.main, ["--half-life", "0"], "half.life"),
    (quickstart.main, ["--half-life", "inf"], "half.life"),
    (quickstart.main, ["--schedule", "cosine"], "schedule"),
    (quickstart.main, ["--regularization", "none"], "regularization"),
    (quickstart.main, ["--loss", "2"], "loss"),
    (quickstart.main, ["--loss", "-0.1"], "loss"),
    (quickstart.main, ["--loss", "nan"], "loss"),
    (quickstart.main, ["--until", "-5"], "until"),
    (quickstart.main, ["--until", "0"], "until"),
    (quickstart.main, ["--until", "inf"], "until"),
    (quickstart.main, ["--every", "0"], "every"),
    (quickstart.main, ["--every", "nan"], "every"),
    (quickstart.main, ["--every", "inf"], "every"),
    (quickstart.main, ["--seed", "-1"], "seed"),
    (quickstart.main, ["--seed", "one"], "seed"),
    (quickstart.main, ["--users", "0"], "users"),
    (quickstart.main, ["--items", "x"], "items"),
    (quickstart.main, ["--places", "0"], "places"),
    (quickstart.main, ["--places", "2"], "places"),
    (quickstart.main, ["--user"], "user"),
    (quickstart.main, ["--bogus", "1"], "--bogus"),
    (movielens.main, ["--folds", "6"], "folds"),
    (movielens.main, ["--folds", "1,1"], "folds"),
    (movielens.main, ["--data", "no/such/place"], "no/such/place"),
    (movielens_tuning.main, ["--fold", "6"], "fold"),
    (movielens_tuning.main, ["--seed", "-1"], "seed"),
    (movielens_tuning.main, ["--data", "no/such/place"], "no/such/place"),
]


@pytest.mark.parametrize(
    ("main", "argv", "named"), MISTAKES, ids=[f"{main.__module__[10:]} {' '.join(argv)}" for main, argv, _ in MISTAKES]
)
def test_a_mistake_ends_with_status_2_and_a_line_that_names_it(main, argv, named, tmp_path, capsys):
    small = SMALL if main is quickstart.main else []
    status = status_of(main, [*small, "--out", str(tmp_path / "out"), *argv])
    captured = capsys.readouterr()
    assert status == 2
    last = captured.err.splitlines()[-1]
    assert last.startswith(f"python -m {main.__module__}: error: ")
    assert re.search(named, last.split("error: ")[1]), last
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert contents(tmp_path / "out") == {}


@pytest.mark.parametrize("argv", [["--rank", "0"], ["--loss", "2"], ["--schedule", "cosine"], ["--bogus", "1"]])
def test_a_mistake_takes_one_line(argv, tmp_path, capsys):
    assert status_of(quickstart.main, [*SMALL, "--out", str(tmp_path / "out"), *argv]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_mistake_of_a_real_process_shows_no_traceback(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "MOVIELENS_100K"}
    environment |= {
        "MOVIELENS_100K_URL": (tmp_path / "absent.zip").as_uri(),
        "NETSIM_DATA": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "scenarios.movielens", "--out", str(tmp_path / "out")],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("python -m scenarios.movielens: error: ")
    assert "MOVIELENS_100K" in line
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.parametrize("main", [quickstart.main, movielens_tuning.main])
def test_out_that_is_a_file_is_refused_and_left_alone(main, tmp_path, capsys):
    file = tmp_path / "taken"
    file.write_text("mine")
    for out in (file, file / "below"):
        assert main(["--out", str(out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"--out {out}: cannot be made a folder" in line
    assert file.read_text() == "mine"


def test_out_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the tests may run as root, who can write anywhere
    with pytest.raises(ValueError, match=r"--out .*: cannot be written"):
        study.make_folder(tmp_path)


def test_a_defect_of_ours_shows_its_traceback(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(quickstart, "low_rank", broken)
    with pytest.raises(ZeroDivisionError):
        quickstart.main(["--out", str(tmp_path)])


# -- Ctrl-C --------------------------------------------------------------------------------------------------------


def interrupt_after(calls, monkeypatch):
    """Raise KeyboardInterrupt at a call of the progress, as Ctrl-C would."""
    report, count = study._ProgressBar.__call__, []

    def stopped(self, time, row):
        report(self, time, row)
        count.append(time)
        if len(count) > calls:
            raise KeyboardInterrupt

    monkeypatch.setattr(study._ProgressBar, "__call__", stopped)


@pytest.mark.parametrize("calls", [1, 30, 100, 249])
def test_ctrl_c_keeps_what_was_measured(calls, tmp_path, monkeypatch, capsys):
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert quickstart.main([*SMALL, "--out", str(whole)]) == 0
    interrupt_after(calls, monkeypatch)
    capsys.readouterr()
    assert quickstart.main([*SMALL, "--out", str(part)]) == 130
    kept = rows(part)
    assert kept == rows(whole)[: len(kept)]
    assert 1 <= len(kept) <= 51
    summary = json.loads((part / "summary.json").read_text())
    assert summary["interrupted"] is True
    assert summary["test_rmse"] == float(kept[-1]["test_rmse"])
    assert summary["messages_sent"] == int(kept[-1]["sent"])
    assert summary["simulated_seconds"] == float(kept[-1]["time"])
    assert "of 30 simulated seconds" in capsys.readouterr().out


@pytest.mark.parametrize("calls", [0, 60])
def test_after_ctrl_c_the_folder_holds_what_the_message_says_and_nothing_old(calls, tmp_path, monkeypatch, capsys):
    assert quickstart.main([*SMALL, "--seed", "8", "--out", str(tmp_path)]) == 0
    old = contents(tmp_path)
    interrupt_after(calls, monkeypatch)
    capsys.readouterr()
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 130
    new = contents(tmp_path)
    for name, content in new.items():
        no_rows = name.endswith(".csv") and len(content.splitlines()) == 1  # of what a run does not have
        assert no_rows or content != old[name], f"{name} is that of the earlier run"
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Written to")]
    told = {name.strip() for name in line.partition(": ")[2].split(",")}
    assert told == {name if "/" not in name else "runs/" for name in new}
    assert Result.load(tmp_path / "runs" / "quickstart").interrupted


def test_ctrl_c_while_the_world_is_made_writes_nothing_and_says_so(tmp_path, monkeypatch, capsys):
    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(quickstart, "low_rank", stopped)
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 130
    captured = capsys.readouterr()
    assert captured.err == "Interrupted before anything was measured; nothing was written.\n"
    assert captured.out == ""
    assert contents(tmp_path) == {}


def test_ctrl_c_during_the_first_measurement_writes_nothing_and_says_so(tmp_path, monkeypatch, capsys):
    class Stopped:
        columns = ("truth_rmse",)

        def __call__(self, view):
            raise KeyboardInterrupt

    monkeypatch.setattr(quickstart, "truth_rmse", lambda truth: Stopped())
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert contents(tmp_path) == {}


def test_ctrl_c_between_two_runs_keeps_the_first(tmp_path):
    def stopped(this, label, *rest):
        if label == "second":
            raise KeyboardInterrupt
        study.Study.run(this, label, *rest)

    assert small_study(tmp_path, ["first", "second"], run=stopped) == 130
    assert {row["run"] for row in rows(tmp_path)} == {"first"}
    assert len(rows(tmp_path)) == 51
    assert saved(tmp_path) == ["first"]


def test_ctrl_c_while_files_are_written_does_not_say_that_nothing_was(tmp_path, monkeypatch, capsys):
    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", stopped)
    assert status_of(quickstart.main, [*SMALL, "--out", str(tmp_path)]) == 130
    captured = capsys.readouterr()
    assert contents(tmp_path)
    assert "nothing was written" not in captured.err
    assert set(contents(tmp_path)) <= WRITTEN | SAVED  # no temporary file is left behind


REAL = """
import signal, sys
from scenarios import quickstart, study

# A parent may have started this process with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
report = study._ProgressBar.__call__

def reported(self, time, row):
    report(self, time, row)
    print("at", time, flush=True)

study._ProgressBar.__call__ = reported
sys.exit(quickstart.main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_a_real_sigint_keeps_what_was_measured(tmp_path):
    argv = [*SMALL[:-1], "1e6", "--every", "5", "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-c", REAL, *argv], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert all(process.stdout.readline().startswith("at ") for _ in range(20)), process.stderr.read()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "of 1e+06 simulated seconds; what was measured until then is kept." in out
    kept = rows(tmp_path)
    assert [float(row["time"]) for row in kept] == [5.0 * number for number in range(len(kept))]
    assert len(kept) >= 19
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["interrupted"] is True
    assert summary["messages_sent"] == int(kept[-1]["sent"])
    assert set(contents(tmp_path)) == WRITTEN | SAVED
    assert len(Result.load(tmp_path / "runs" / "quickstart").probes) == len(kept)


# -- saved runs ----------------------------------------------------------------------------------------------------


def small_study(out, labels, *, seed=1, run=study.Study.run):
    """Study of a run for each label, as its scenario's function `run` makes it; returns the exit status."""
    ratings = quickstart.low_rank(8, 6, rank=2, missing=0.3, seed=1)
    world = World(ratings.train, complete(3), delay=Constant(0.1), learning=quickstart.DEFAULTS)

    def scenario(args):
        this = study.Study("quickstart", args)
        for label in labels:
            run(this, label, world, [rmse(ratings.test)])
        return this.finish()

    parser = study.parser("quickstart", "runs", until=20.0, out=str(out))
    return study.main(parser, scenario, ["--seed", str(seed)])


def saved(out):
    return sorted(folder.name for folder in (out / "runs").iterdir())


def test_every_run_of_a_study_is_saved_and_can_be_loaded(tmp_path):
    results = {}

    def run(this, label, *rest):
        results[label] = study.Study.run(this, label, *rest)

    assert small_study(tmp_path, ["loss 1%", "loss 10%"], run=run) == 0
    told = json.loads((tmp_path / "configuration.json").read_text())["runs"]
    assert told == {"loss 1%": "runs/loss-1", "loss 10%": "runs/loss-10"}
    for label, folder in told.items():
        loaded = Result.load(tmp_path / folder)
        assert loaded.probes.equals(results[label].probes)
        assert (loaded.user_profiles == results[label].user_profiles).all()


def test_a_run_is_saved_before_the_next_begins(tmp_path):
    seen = []

    def run(this, *rest):
        seen.append(saved(tmp_path) if (tmp_path / "runs").is_dir() else [])
        study.Study.run(this, *rest)

    assert small_study(tmp_path, ["first", "second"], run=run) == 0
    assert seen == [[], ["first"]]


def test_labels_that_would_have_the_same_folder_get_one_each(tmp_path, monkeypatch):
    monkeypatch.setattr(study.Study, "_draw", lambda self: None)  # no legend has room for such labels
    labels = ["loss 10%", "loss 10", "Loss/10", "...", "!", "x" * 300, "x" * 301]
    assert small_study(tmp_path, labels) == 0
    assert saved(tmp_path) == sorted(["loss-10", "loss-10-2", "Loss-10-3", "run", "run-2", "x" * 80, "x" * 80 + "-2"])
    told = json.loads((tmp_path / "configuration.json").read_text())["runs"]
    assert [told[label] for label in labels[:3]] == ["runs/loss-10", "runs/loss-10-2", "runs/Loss-10-3"]


def test_a_label_given_twice_is_refused_and_its_run_kept(tmp_path, capsys):
    assert small_study(tmp_path, ["same", "same"]) == 2
    assert "label must be new, got 'same' again" in capsys.readouterr().err
    assert saved(tmp_path) == ["same"]
    assert {row["run"] for row in rows(tmp_path)} == {"same"}


def test_saved_runs_of_an_earlier_study_go_when_the_next_one_is_done(tmp_path):
    assert small_study(tmp_path, ["old", "both"], seed=1) == 0
    seen = []

    def run(this, *rest):
        seen.append(saved(tmp_path))
        study.Study.run(this, *rest)

    assert small_study(tmp_path, ["both", "new"], seed=2, run=run) == 0
    assert seen == [["both", "old"], ["both", "old"]]
    assert saved(tmp_path) == ["both", "new"]
    assert [Result.load(tmp_path / "runs" / name).seed for name in ("both", "new")] == [2, 2]


def test_what_is_no_saved_run_is_left_alone_beside_the_runs(tmp_path):
    assert small_study(tmp_path, ["old"]) == 0
    notes = {"runs/notes/idea.txt": b"mine", "runs/old/remarks.txt": b"mine", "runs/.git/HEAD": b"mine"}
    for name, content in notes.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert small_study(tmp_path, ["new"]) == 0
    assert notes.items() <= contents(tmp_path).items()
    assert Result.load(tmp_path / "runs" / "old")  # whole still


def test_what_a_killed_study_left_half_written_goes(tmp_path):
    left = tmp_path / "runs" / ".first.abcd"
    left.mkdir(parents=True)
    (left / "probes.csv").write_text("time")
    assert small_study(tmp_path, ["first"]) == 0
    assert saved(tmp_path) == ["first"]


def test_a_removal_that_fails_leaves_no_half_a_run_under_its_name(tmp_path, monkeypatch):
    assert small_study(tmp_path, ["old"]) == 0

    def refused(folder):
        (folder / "result.json").unlink()
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(study.shutil, "rmtree", refused)
        assert small_study(tmp_path, ["new"]) == 2
    assert saved(tmp_path) == [".old.removed", "new"]
    assert small_study(tmp_path, ["new"]) == 0
    assert saved(tmp_path) == ["new"]


@pytest.mark.parametrize("taken", ["runs", "runs/first", "runs/first/notes.txt"])
def test_a_folder_that_a_run_could_not_be_saved_to_is_refused_before_it_is_run(taken, tmp_path, capsys):
    file = tmp_path / taken
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")

    def run(this, *rest):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(study, "simulate", lambda *args, **kwargs: pytest.fail("was run"))
            study.Study.run(this, *rest)

    assert small_study(tmp_path, ["first"], run=run) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--out {tmp_path}: {tmp_path / 'runs'}" in line
    assert contents(tmp_path) == {taken: b"mine"}


def test_a_run_that_cannot_be_saved_is_kept_in_the_tables(tmp_path, monkeypatch, capsys):
    def full(self, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Result, "save", full)
    assert small_study(tmp_path, ["first", "second"]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert "No space left on device" in line
    assert set(contents(tmp_path)) == WRITTEN
    assert "runs/" not in captured.out
    assert {row["run"] for row in rows(tmp_path)} == {"first"}


def test_where_nothing_can_be_written_any_more_a_person_sees_the_first_reason_and_no_traceback(
    tmp_path, monkeypatch, capsys
):
    def full(path, content):
        raise OSError(28, "No space left on device")

    def broken(this, label, *rest):
        if label == "second":
            raise ValueError("the second world is wrong")
        study.Study.run(this, label, *rest)

    monkeypatch.setattr(study, "write_text", full)
    assert small_study(tmp_path, ["first", "second"], run=broken) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("error: the second world is wrong")
    assert saved(tmp_path) == ["first"]


def test_ctrl_c_on_a_full_disk_ends_with_a_line(tmp_path, monkeypatch, capsys):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(study, "write_text", full)
    interrupt_after(30, monkeypatch)
    assert small_study(tmp_path, ["first"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line
    assert Result.load(tmp_path / "runs" / "first").interrupted


def test_ctrl_c_while_a_run_is_saved_saves_it_all_the_same(tmp_path, monkeypatch):
    write, calls = Result._write, []

    def stopped(self, folder):
        write(self, folder)
        calls.append(folder)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Result, "_write", stopped)
    assert small_study(tmp_path, ["first", "second"]) == 130
    assert saved(tmp_path) == ["first"]
    assert len(Result.load(tmp_path / "runs" / "first").probes) == 51


KILLED = """
import os, signal, sys
from scenarios import quickstart, study

run = study.Study.run

def killed(self, label, *rest):
    if self.results:
        os.kill(os.getpid(), signal.SIGKILL)
    run(self, label, *rest)
    self.run("second", *rest)

study.Study.run = killed
sys.exit(quickstart.main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_study_that_is_killed_keeps_the_run_it_has_finished(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *SMALL, "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert set(contents(tmp_path)) == SAVED
    kept = Result.load(tmp_path / "runs" / "quickstart")
    assert not kept.interrupted
    assert kept.time == kept.until == 30


# -- files ---------------------------------------------------------------------------------------------------------


def test_a_text_is_written_over_an_old_one(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    study.write_text(file, "new \u00e9")
    assert contents(tmp_path) == {"file.txt": "new \u00e9".encode()}


def test_a_failure_in_the_middle_of_a_text_leaves_the_old_file_alone(tmp_path):
    file = tmp_path / "file.txt"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        study.write_text(file, "new" * 100_000 + "\ud800")
    assert file.read_text() == "old"


def test_a_failure_in_the_middle_of_a_text_leaves_no_litter(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        study.write_text(tmp_path / "file.txt", "new" * 100_000 + "\ud800")
    assert contents(tmp_path) == {}


def broken_savefig(self, file, **kwargs):
    file.write(b"\x89PNG half of it")
    raise OSError(28, "No space left on device")


def test_a_failure_while_drawing_leaves_the_old_figure_alone(tmp_path, monkeypatch, capsys):
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 0
    old = (tmp_path / "convergence.png").read_bytes()
    monkeypatch.setattr(Figure, "savefig", broken_savefig)
    capsys.readouterr()
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 2
    assert (tmp_path / "convergence.png").read_bytes() == old
    (line,) = capsys.readouterr().err.splitlines()
    assert "No space left on device" in line


def test_a_failure_while_drawing_leaves_no_litter(tmp_path, monkeypatch):
    monkeypatch.setattr(Figure, "savefig", broken_savefig)
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 2
    assert set(contents(tmp_path)) == (WRITTEN | SAVED) - {"convergence.png"}


@pytest.mark.parametrize("name", ["summary.json", "probes.csv", "configuration.json"])
def test_a_file_that_cannot_be_replaced_stays_whole(name, tmp_path, monkeypatch):
    assert quickstart.main([*SMALL, "--out", str(tmp_path)]) == 0
    old = (tmp_path / name).read_bytes()
    replace = Path.replace

    def refused(self, target):
        if Path(target).name == name:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    assert quickstart.main([*SMALL, "--seed", "9", "--out", str(tmp_path)]) == 2
    assert (tmp_path / name).read_bytes() == old


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (study.integer, "0", 0),
        (study.integer, "12", 12),
        (study.positive, "1e-3", 0.001),
        (study.share, "0", 0.0),
        (study.share, "1", 1.0),
    ],
)
def test_argument_types_take_good_values(kind, text, value):
    assert kind(text) == value
    assert type(kind(text)) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (study.integer, "-1"),
        (study.integer, "1.5"),
        (study.integer, ""),
        (study.positive, "0"),
        (study.positive, "nan"),
        (study.positive, "-inf"),
        (study.share, "1.01"),
        (study.share, "nan"),
        (study.share, "5%"),
    ],
)
def test_argument_types_refuse_the_rest_and_show_it(kind, text):
    with pytest.raises(argparse.ArgumentTypeError, match=rf"^expected .*, got {re.escape(repr(text))}$"):
        kind(text)


def test_aligned_puts_numbers_to_the_right():
    assert study.aligned([["", "x"], ["long", "10"]]) == "       x\nlong  10"
