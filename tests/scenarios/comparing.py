"""What the tests of scenarios that compare conditions share."""

import importlib
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from scenarios import study as base

TINY = ["--users", "16", "--items", "12", "--places", "10", "--until", "60", "--seeds", "3,5"]


@dataclass(frozen=True)
class Study:
    """A scenario that was run: its folder, what it printed and its exit status."""

    name: str
    out: Path
    printed: str
    status: int

    def table(self, name):
        return pd.read_csv(self.out / name)

    def json(self, name):
        return json.loads((self.out / name).read_text(encoding="utf-8"), parse_constant=_refuse)

    def probes(self, condition, seed):
        probes = self.table("probes.csv")
        return probes[(probes["condition"] == condition) & (probes["seed"] == seed)].reset_index(drop=True)

    def seeds(self, condition, column):
        measured = self.table("seeds.csv")
        return measured.loc[measured["condition"] == condition, column].to_numpy()


def _refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def study(name, out, argv=TINY):
    with redirect_stdout(StringIO()) as printed:
        status = importlib.import_module(f"scenarios.{name}").main([*argv, "--out", str(out)])
    return Study(name, out, printed.getvalue(), status)


def arguments(name, argv=()):
    """Arguments of a scenario, as it parses them."""
    parsed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "main", lambda parser, run, given=None: parsed.append(parser.parse_args(given)) or 0)
        importlib.import_module(f"scenarios.{name}").main(list(argv))
    return parsed[0]


def mistake(name, argv, tmp_path, capsys):
    """Text of the one line in which a mistake is told; nothing was run."""
    main = importlib.import_module(f"scenarios.{name}").main
    try:
        status = main([*TINY, "--out", str(tmp_path / "out"), *argv])
    except SystemExit as end:
        status = end.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    start = f"python -m scenarios.{name}: error: "
    assert line.startswith(start)
    assert not (tmp_path / "out" / "runs").exists()
    return line.removeprefix(start)


def check_written(done, *, conditions):
    """Check what each comparison writes and prints."""
    assert done.status == 0
    written = {"table.csv", "seeds.csv", "summary.json", f"{done.name}.png", "probes.csv", "configuration.json", "runs"}
    assert {each.name for each in done.out.iterdir()} == written
    assert len(list((done.out / "runs").iterdir())) == 2 * conditions
    for name in written:
        assert name in done.printed.splitlines()[-1]
    summary, configuration = done.json("summary.json"), done.json("configuration.json")
    assert summary["seeds"] == configuration["seeds"] == [3, 5]
    assert summary["answer"] in done.printed.splitlines()
    assert len(configuration["worlds"]) == 2 * conditions
    check_table(done)
    check_figure(done.out / f"{done.name}.png")


def check_table(done):
    """Check that means and deviations are those of the seeds, and printed."""
    measured, table = done.table("seeds.csv"), done.table("table.csv")
    assert list(table["condition"]) == list(dict.fromkeys(measured["condition"]))
    printed = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line) for line in done.printed.splitlines())}
    for _, row in table.iterrows():
        assert row["n_seeds"] == 2
        assert len(printed[row["condition"]]) == len(printed["condition"])
        for name in (column.removesuffix("_mean") for column in table.columns if column.endswith("_mean")):
            values = measured.loc[measured["condition"] == row["condition"], name].dropna()
            assert row[f"{name}_n"] == len(values)
            np.testing.assert_allclose(row[f"{name}_mean"], values.mean(), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(row[f"{name}_sd"], values.std(), rtol=1e-6, atol=1e-9)


def check_figure(file):
    pixels = imread(file)
    assert 900 <= pixels.shape[1] <= 3000
    colours = np.unique(np.round(pixels[..., :3].reshape(-1, 3), 1), axis=0)
    assert np.sum(np.ptp(colours, axis=1) > 0.3) >= 3  # three coloured lines


def check_repeats(done, tmp_path, argv=TINY):
    """Check that the same arguments give the same numbers."""
    again = study(done.name, tmp_path / "again", argv)
    for name in ("table.csv", "seeds.csv", "probes.csv"):
        assert (again.out / name).read_bytes() == (done.out / name).read_bytes(), name
    assert again.json("summary.json")["answer"] == done.json("summary.json")["answer"]
