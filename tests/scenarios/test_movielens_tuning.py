import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from algorithms.datasets import movielens_100k
from algorithms.learning import Schedule
from scenarios import movielens_tuning

PLACES = [
    Path(os.environ.get("MOVIELENS_100K") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[3] / "shared" / "data" / "ml-100k",
]


@pytest.fixture(scope="module")
def data():
    for place in PLACES:
        if (place / "u.data").is_file():
            return place
    pytest.skip(f"needs MovieLens 100K in {PLACES[1]} or MOVIELENS_100K, which may not be passed on with the project")


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(movielens_tuning, "PASSES", (1, 2, 3))
    monkeypatch.setattr(movielens_tuning, "RANKS", (2,))
    monkeypatch.setattr(movielens_tuning, "WEIGHTS", (0.1,))
    monkeypatch.setattr(movielens_tuning, "RATES", (0.001, 0.05))
    monkeypatch.setattr(movielens_tuning, "SCHEDULES", (Schedule("inverse", 8), Schedule("exponential", 5)))


@pytest.mark.usefixtures("tiny")
def test_writes_the_grid_from_the_best_point_down(data, tmp_path, capsys):
    assert movielens_tuning.main(["--data", str(data), "--fold", "2", "--out", str(tmp_path)]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["best.json", "grid.csv"]
    grid = pd.read_csv(tmp_path / "grid.csv")
    named = ["rank", "lam", "rate", "schedule", "half_life"]
    assert list(grid.columns) == [*named, "pass_1", "pass_2", "pass_3"]
    points = set(grid[named].itertuples(index=False, name=None))
    schedules = (("inverse", 8), ("exponential", 5))
    assert points == {(2, 0.1, rate, *schedule) for rate in (0.001, 0.05) for schedule in schedules}
    assert grid["pass_2"].is_monotonic_increasing
    assert grid[["pass_1", "pass_2", "pass_3"]].to_numpy().min() > 0.8  # a smaller error would have seen the answers
    assert grid["rate"].tolist()[:2] == [0.05, 0.05]  # a rate of 0.001 learns nothing in two passes
    best = json.loads((tmp_path / "best.json").read_text())
    first = grid.iloc[0].to_dict()
    assert best.pop("schedule") == first.pop("schedule")
    assert best == pytest.approx(first, rel=1e-12)
    printed = capsys.readouterr().out
    assert f"{grid['pass_2'][0]:.4f}" in printed
    assert str(tmp_path) in printed


def test_no_test_rating_is_looked_at(data, tmp_path, monkeypatch):
    seen = []

    def validate(learning, inner, validation, seed):
        seen.append((inner, validation))
        return {f"pass_{passes}": 1.0 for passes in movielens_tuning.PASSES}

    monkeypatch.setattr(movielens_tuning, "validate", validate)
    argv = ["--data", str(data), "--fold", "3", "--out", str(tmp_path)]
    assert movielens_tuning.main([*argv, "--seed", "1"]) == 0
    assert movielens_tuning.main([*argv, "--seed", "2"]) == 0
    assert len(seen) == 2 * len(movielens_tuning.RANKS) * len(movielens_tuning.WEIGHTS) * len(
        movielens_tuning.RATES
    ) * len(movielens_tuning.SCHEDULES)
    train, _ = movielens_100k(data).split(fold=3)
    inner, validation = seen[0]
    keys = [part.user * 1682 + part.item for part in (inner, validation, train)]
    assert np.array_equal(np.sort(np.concatenate(keys[:2])), np.sort(keys[2]))
    assert 7_500 < len(validation) < 8_500
    assert not np.array_equal(seen[-1][1].user, validation.user)  # another seed, another split


@pytest.mark.usefixtures("tiny")
def test_the_same_seed_gives_the_same_grid(data, tmp_path, monkeypatch):
    monkeypatch.setattr(movielens_tuning, "RATES", (0.05,))
    monkeypatch.setenv("MOVIELENS_100K", str(data))
    for name in ("one", "two"):
        assert movielens_tuning.main(["--seed", "5", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "one" / "grid.csv").read_bytes() == (tmp_path / "two" / "grid.csv").read_bytes()


@pytest.mark.usefixtures("tiny")
def test_an_interruption_says_truly_what_was_written(data, tmp_path, monkeypatch, capsys):
    calls = []
    validate = movielens_tuning.validate

    def stopped(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return validate(*arguments)

    monkeypatch.setattr(movielens_tuning, "validate", stopped)
    assert movielens_tuning.main(["--data", str(data), "--out", str(tmp_path)]) == 130
    # One point was measured: it is kept, and the message does not say that nothing was.
    assert len(pd.read_csv(tmp_path / "grid.csv")) == 1
    assert "before anything was measured" not in capsys.readouterr().err
