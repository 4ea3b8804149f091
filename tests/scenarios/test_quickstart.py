import csv
import json
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from netsim.result import package_versions
from scenarios import quickstart

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--users", "20", "--items", "15", "--places", "10", "--until", "20", "--seed", "3", "--loss", "0.1"]
# Name in summary.json and the columns of probes.csv that it is the sum of.
FIGURES = {
    "test_rmse": ["test_rmse"],
    "train_rmse": ["train_rmse"],
    "truth_rmse": ["truth_rmse"],
    "simulated_seconds": ["time"],
    "messages_sent": ["sent"],
    "messages_delivered": ["delivered"],
    "messages_lost": ["lost_link"],
    "messages_stale": ["stale"],
    "messages_unreachable": ["unreachable"],
    "bytes_sent": ["bytes_sent"],
    "profile_updates": ["user_updates", "item_updates"],
}


def strict(constant):
    raise ValueError(f"{constant} is not JSON")


def read_json(file):
    return json.loads(file.read_text(encoding="utf-8"), parse_constant=strict)


def read_rows(file):
    with file.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder, standard output and exit status of one small run."""
    out = tmp_path_factory.mktemp("quickstart") / "made" / "for it"
    with redirect_stdout(StringIO()) as printed:
        status = quickstart.main([*SMALL, "--out", str(out)])
    return out, printed.getvalue(), status


def test_writes_four_files_and_the_saved_run_and_nothing_else(run):
    out, _, status = run
    assert status == 0
    assert sorted(file.name for file in out.iterdir()) == [
        "configuration.json",
        "convergence.png",
        "probes.csv",
        "runs",
        "summary.json",
    ]
    assert [folder.name for folder in (out / "runs").iterdir()] == ["quickstart"]


def test_probes_are_measured_from_the_start_to_the_end(run):
    rows = read_rows(run[0] / "probes.csv")
    assert len(rows) == 51
    assert [float(row["time"]) for row in rows] == pytest.approx(np.linspace(0, 20, 51).tolist())
    assert {row["run"] for row in rows} == {"quickstart"}
    assert float(rows[-1]["train_rmse"]) < 0.6 * float(rows[0]["train_rmse"])  # it learns
    assert int(rows[-1]["lost_link"]) > 0


def test_summary_is_the_last_row_of_the_probes(run):
    summary, last = read_json(run[0] / "summary.json"), read_rows(run[0] / "probes.csv")[-1]
    for name, columns in FIGURES.items():
        assert summary[name] == sum(float(last[column]) for column in columns), name
    assert summary["interrupted"] is False
    assert summary["wall_seconds"] >= 0
    assert summary["messages_per_second"] > 0
    assert set(summary) == {*FIGURES, "interrupted", "wall_seconds", "messages_per_second"}


def test_table_on_standard_output_shows_the_summary(run):
    out, printed, _ = run
    summary = read_json(out / "summary.json")
    table = {line.split()[0]: line.split()[-1] for line in printed.splitlines() if len(line.split()) == 2}
    assert float(table["test_rmse"]) == pytest.approx(summary["test_rmse"], abs=5e-5)
    assert float(table["train_rmse"]) == pytest.approx(summary["train_rmse"], abs=5e-5)
    assert table["messages_sent"] == f"{summary['messages_sent']:,}"
    assert table["bytes_sent"] == f"{summary['bytes_sent']:,}"
    assert str(out) in printed
    for file in out.iterdir():
        assert file.name in printed


def test_configuration_says_what_was_run(run):
    out = run[0]
    configuration = read_json(out / "configuration.json")
    assert configuration["scenario"] == "quickstart"
    assert shlex.split(configuration["command"]) == ["python", "-m", "scenarios.quickstart", *SMALL, "--out", str(out)]
    assert configuration["seed"] == 3
    assert configuration["versions"] == package_versions()
    assert configuration["arguments"]["users"] == 20
    assert configuration["arguments"]["loss"] == 0.1
    assert configuration["arguments"]["rank"] == 4  # a default
    world = configuration["worlds"]["quickstart"]
    assert (world["ratings"]["n_users"], world["ratings"]["n_items"], world["ratings"]["n_ratings"]) == (20, 15, 150)
    assert world["topology"]["n_places"] == 10
    assert world["loss"] == 0.1
    assert world["delay"] == {"distribution": "LogNormal", "median": 0.07, "sigma": 0.8}
    assert world["learning"]["rank"] == 4
    assert world["learning"]["rate"]["value"] == 0.03
    assert world["learning"]["schedule"]["form"] == "inverse"


def test_the_command_in_the_configuration_repeats_the_bits_in_another_process(run):
    out = run[0]
    before = (out / "probes.csv").read_bytes()
    (out / "probes.csv").unlink()
    _, *command = shlex.split(read_json(out / "configuration.json")["command"])
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress bar where there is no terminal
    assert (out / "probes.csv").read_bytes() == before


def test_figure_is_a_png_with_lines_in_it(run):
    file = run[0] / "convergence.png"
    assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = imread(file)
    height, width = pixels.shape[:2]
    assert 600 <= width <= 3000
    assert 400 <= height <= 2000
    colours = np.unique(np.round(pixels[..., :3].reshape(-1, 3), 1), axis=0)
    assert np.sum(np.ptp(colours, axis=1) > 0.3) >= 3  # three coloured lines


def test_files_have_the_permissions_of_new_files(run):
    mask = os.umask(0)
    os.umask(mask)
    for file in (path for path in run[0].rglob("*") if path.is_file()):
        assert file.stat().st_mode & 0o777 == 0o666 & ~mask


def test_arguments_reach_the_world(tmp_path):
    given = {
        "--rank": "3",
        "--lam": "0.07",
        "--regularization": "uniform",
        "--rate": "0.015",
        "--schedule": "exponential",
        "--half-life": "4",
        "--loss": "0.25",
        "--places": "7",
        "--every": "3",
    }
    argv = ["--users", "6", "--items", "5", "--until", "7", *(word for pair in given.items() for word in pair)]
    assert quickstart.main([*argv, "--out", str(tmp_path)]) == 0
    world = read_json(tmp_path / "configuration.json")["worlds"]["quickstart"]
    learning = world["learning"]
    assert (learning["rank"], learning["lam"], learning["regularization"]) == (3, 0.07, "uniform")
    assert learning["rate"]["value"] == 0.015
    assert (learning["schedule"]["form"], learning["schedule"]["half_life"]) == ("exponential", 4)
    assert world["loss"] == 0.25
    assert world["topology"]["n_places"] == 7
    assert [float(row["time"]) for row in read_rows(tmp_path / "probes.csv")] == [0, 3, 6, 7]


def test_a_constant_rate_has_no_half_life(tmp_path):
    argv = ["--users", "6", "--items", "5", "--until", "1", "--schedule", "constant", "--out", str(tmp_path)]
    assert quickstart.main(argv) == 0
    schedule = read_json(tmp_path / "configuration.json")["worlds"]["quickstart"]["learning"]["schedule"]
    assert schedule["form"] == "constant"


def test_the_seed_changes_the_run(run, tmp_path):
    argv = [*SMALL, "--seed", "4", "--out", str(tmp_path)]
    assert quickstart.main(argv) == 0
    assert (tmp_path / "probes.csv").read_bytes() != (run[0] / "probes.csv").read_bytes()


def test_without_arguments_it_takes_those_of_the_process(tmp_path, monkeypatch):
    argv = ["--users", "6", "--items", "5", "--until", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["quickstart.py", *argv])
    assert quickstart.main() == 0
    command = read_json(tmp_path / "configuration.json")["command"]
    assert shlex.split(command) == ["python", "-m", "scenarios.quickstart", *argv]


def test_a_run_that_diverges_still_writes_json_that_others_can_read(tmp_path):
    argv = ["--users", "8", "--items", "6", "--until", "30", "--rate", "100", "--out", str(tmp_path)]
    quickstart.main(argv)
    for file in ("summary.json", "configuration.json"):
        read_json(tmp_path / file)
