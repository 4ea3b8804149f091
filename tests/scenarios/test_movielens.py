import argparse
import csv
import json
import os
import zipfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from scenarios import movielens

PLACES = [
    Path(os.environ.get("MOVIELENS_100K") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[3] / "shared" / "data" / "ml-100k",
]
SMALL = ["--until", "2", "--places", "20", "--rank", "2", "--every", "0.5", "--seed", "2"]
ERRORS = ("test_rmse", "test_mae", "train_rmse")
COUNTS = {"messages_sent": "sent", "messages_delivered": "delivered", "messages_lost": "lost_link"}


@pytest.fixture(scope="module")
def data():
    for place in PLACES:
        if (place / "u.data").is_file():
            return place
    pytest.skip(f"needs MovieLens 100K in {PLACES[1]} or MOVIELENS_100K, which may not be passed on with the project")


@pytest.fixture(scope="module")
def folds(data, tmp_path_factory):
    """Folder, standard output and status of a run of folds 1 and 3."""
    out = tmp_path_factory.mktemp("movielens")
    with redirect_stdout(StringIO()) as printed:
        status = movielens.main([*SMALL, "--data", str(data), "--folds", "1,3", "--out", str(out)])
    return out, printed.getvalue(), status


def read(out, name):
    return json.loads((out / name).read_text(encoding="utf-8"))


def rows(out):
    with (out / "probes.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_one_fold_writes_the_last_row_as_its_summary(data, tmp_path, monkeypatch):
    monkeypatch.setenv("MOVIELENS_100K", str(data))
    assert movielens.main([*SMALL, "--out", str(tmp_path)]) == 0
    summary, table = read(tmp_path, "summary.json"), rows(tmp_path)
    assert {row["run"] for row in table} == {"fold 1"}
    assert [float(row["time"]) for row in table] == [0, 0.5, 1, 1.5, 2]
    for name, column in {error: error for error in ERRORS}.items() | COUNTS.items():
        assert summary[name] == float(table[-1][column]), name
    assert "runs" not in summary
    assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_data_that_cannot_be_fetched_end_with_a_line_that_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MOVIELENS_100K", raising=False)
    monkeypatch.setenv("MOVIELENS_100K_URL", (tmp_path / "absent.zip").as_uri())
    monkeypatch.setenv("NETSIM_DATA", str(tmp_path / "cache"))
    assert movielens.main([*SMALL, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("python -m scenarios.movielens: error: MovieLens 100K could not be fetched from file:///")
    assert "set MOVIELENS_100K to its folder or give that folder as the path" in line
    assert captured.out == ""
    assert not (tmp_path / "out").exists()


def test_without_data_given_they_are_fetched_once_and_the_terms_told(data, tmp_path, monkeypatch, caplog):
    files = [data / name for name in ("u.data", *(f"u{fold}.test" for fold in range(1, 6)))]
    if not all(file.is_file() for file in files):
        pytest.skip(f"needs u1.test to u5.test of MovieLens 100K in {data} too")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        for file in files:
            archive.write(file, f"ml-100k/{file.name}")
    monkeypatch.delenv("MOVIELENS_100K", raising=False)
    monkeypatch.setenv("MOVIELENS_100K_URL", (tmp_path / "archive.zip").as_uri())
    monkeypatch.setenv("NETSIM_DATA", str(tmp_path / "cache"))
    nothing_given = argparse.Namespace()
    ratings = movielens.load(nothing_given)
    (record,) = caplog.records
    assert "no redistribution" in record.getMessage()
    (tmp_path / "archive.zip").unlink()
    assert movielens.load(nothing_given) == ratings == movielens.load(argparse.Namespace(data=data))
    assert len(caplog.records) == 1


def test_every_fold_is_a_run(folds):
    out, _, status = folds
    assert status == 0
    table, runs = rows(out), read(out, "summary.json")["runs"]
    assert list(runs) == ["fold 1", "fold 3"]
    for label, figures in runs.items():
        last = [row for row in table if row["run"] == label][-1]
        for name, column in {error: error for error in ERRORS}.items() | COUNTS.items():
            assert figures[name] == float(last[column]), (label, name)
        assert figures["profile_updates"] == int(last["user_updates"]) + int(last["item_updates"])
    assert runs["fold 1"]["test_rmse"] != runs["fold 3"]["test_rmse"]


def test_errors_of_folds_are_averaged_and_counts_summed(folds):
    summary = read(folds[0], "summary.json")
    one, three = summary["runs"].values()
    for name in ERRORS:
        assert summary[name] == pytest.approx((one[name] + three[name]) / 2, rel=1e-15)
    for name in (*COUNTS, "bytes_sent", "profile_updates"):
        assert summary[name] == one[name] + three[name]
    assert summary["simulated_seconds"] == 2
    assert summary["interrupted"] is False


def test_table_has_a_column_for_each_fold_and_for_all(folds):
    out, printed, _ = folds
    lines = printed.splitlines()
    assert lines[0].split() == ["fold", "1", "fold", "3", "together"]
    summary = read(out, "summary.json")
    shown = next(line.split() for line in lines if line.startswith("test_rmse"))
    expected = [run["test_rmse"] for run in summary["runs"].values()] + [summary["test_rmse"]]
    assert [float(cell) for cell in shown[1:]] == pytest.approx(expected, abs=5e-5)


def test_configuration_describes_the_world_of_each_fold(folds, data):
    configuration = read(folds[0], "configuration.json")
    assert configuration["arguments"]["folds"] == [1, 3]
    assert configuration["arguments"]["data"] == str(data)
    worlds = configuration["worlds"]
    assert list(worlds) == ["fold 1", "fold 3"]
    assert {world["ratings"]["n_ratings"] for world in worlds.values()} == {80_000}
    assert {(world["ratings"]["n_users"], world["ratings"]["n_items"]) for world in worlds.values()} == {(943, 1682)}
    assert len({world["ratings"]["sha256"] for world in worlds.values()}) == 2
    assert {world["learning"]["rank"] for world in worlds.values()} == {2}


def test_network_arguments_reach_the_world(data, tmp_path):
    given = ["--period", "3", "--delay-median", "0.2", "--delay-sigma", "0.1", "--loss", "0.3"]
    argv = ["--until", "0.5", "--places", "9", "--rank", "1", "--data", str(data / "u.data"), "--out", str(tmp_path)]
    assert movielens.main([*argv, *given]) == 0
    world = read(tmp_path, "configuration.json")["worlds"]["fold 1"]
    assert world["user_broadcast"]["period"]["value"] == 3
    assert world["router_broadcast"]["period"]["value"] == 3
    assert world["delay"] == {"distribution": "LogNormal", "median": 0.2, "sigma": 0.1}
    assert world["loss"] == 0.3
    assert world["topology"]["n_places"] == 9


def test_defaults_are_those_of_the_module():
    assert movielens.DEFAULTS.rank == 20
    assert movielens.DEFAULTS.regularization == "per_message"  # the literal equations of the paper


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", [1]), ("1,2,5", [1, 2, 5]), ("1-5", [1, 2, 3, 4, 5]), ("5,1", [5, 1]), ("1-2,4", [1, 2, 4])],
)
def test_folds_are_numbers_and_ranges(text, expected):
    assert movielens.folds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "6", "1,1", "1-3,2", "5-1", "1-6", "a", "1,", "1-", "-1", "1.0", "1-2-3"])
def test_other_folds_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected distinct folds within 1 to 5"):
        movielens.folds(text)
