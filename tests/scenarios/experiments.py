"""What the tests of the second seed paper's experiments share."""

import json
from contextlib import redirect_stdout
from io import StringIO

from matplotlib.image import imread


def experiment(main, argv, out):
    """Folder, printed text and exit status of a run."""
    with redirect_stdout(StringIO()) as printed:
        status = main([*argv, "--out", str(out)])
    return out, printed.getvalue(), status


def check_report(ran, *, figures, tasks):
    """Check figures and number of tasks of a run to its end; returns the findings by figure."""
    out, _, status = ran
    assert status == 0
    assert {file.stem for file in out.glob("*.png")} == figures
    assert all(imread(file).std() > 0 for file in out.glob("*.png"))
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert (summary["tasks"], summary["finished"]) == (tasks, tasks)
    assert set(summary["findings"]) == figures
    return summary["findings"]


def where(rows, **wanted):
    """Values of the rows that have these values in other columns."""
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows["value"]


def value(rows, **wanted):
    """The only one of these values."""
    return where(rows, **wanted).item()


def mistake(main, argv, tmp_path, capsys):
    """The one line in which a mistake is told; nothing was run."""
    try:
        status = main([*argv, "--out", str(tmp_path / "out")])
    except SystemExit as end:
        status = end.code
    assert status == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert not (tmp_path / "out").exists()
    return line
