"""Replications of an experiment side by side: each kept when it is done, so that a stopped experiment goes on later.

An experiment is a list of tasks, such as (replication 3, five categories, missing at random). A function measures one
task and returns rows; the tasks run in several processes, and a report is made of all rows.
"""

import argparse
import hashlib
import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import Any

import pandas as pd
from joblib.externals.loky import ProcessPoolExecutor  # type: ignore[import-untyped]
from matplotlib.figure import Figure
from tqdm import tqdm

from netsim.files import write_text
from netsim.result import package_versions
from scenarios import study

__all__ = [
    "FINISHED",
    "MANIFEST",
    "SECONDS",
    "Finding",
    "Part",
    "Replications",
    "Row",
    "counted",
    "grid",
    "parser",
    "spread",
    "summarize",
]

Row = Mapping[str, Any]
#: Folder of the finished tasks, within that of the results; and what says which settings they are for.
FINISHED, MANIFEST = "finished", "manifest.json"
#: Metric of CPU times: not the same at each run, so they have a table of their own.
SECONDS = "cpu_seconds"
# Tasks are the unit that runs side by side. More threads in each would only be in each other's way, and the number of
# threads of BLAS can decide the last bits of a result.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


# -- arguments -----------------------------------------------------------------------------------------------------


def parser(name: str, description: str, *, replications: int, paper: int | None = None) -> argparse.ArgumentParser:
    """Parser with the arguments that every experiment takes.

    Parameters
    ----------
    name : str
        The scenario's module name.
    description : str
        What the scenario shows.
    replications : int
        Default number.
    paper : int, optional
        The second seed paper's own number, which `--paper` asks for; without it there is no such argument.
    """
    made = study.Parser(name, description)
    made.add_argument(
        "--replications",
        type=study.at_least(1),
        default=replications,
        metavar="N",
        help="how many; those that the folder has from an earlier run are not made again",
    )
    if paper is not None:
        made.add_argument(
            "--paper",
            action="store_const",
            const=paper,
            default=argparse.SUPPRESS,
            dest="replications",
            help=f"as many as in the paper, {paper} (default: as many as --replications says)",
        )
    made.add_argument(
        "--seed", type=study.integer, default=1, metavar="N", help="seed of all chance; same seed, same bits"
    )
    made.add_argument(
        "--jobs",
        type=study.at_least(1),
        default=_cores(),
        metavar="N",
        help="processes, with one thread each; results do not depend on it",
    )
    made.add_argument(
        "--out",
        type=Path,
        default=Path("out", name),
        metavar="DIR",
        help="folder for results; where it has finished tasks of the same settings, it goes on with the others",
    )
    made.add_argument(
        "--anew", action="store_true", help="remove the finished tasks that the folder has, and begin anew"
    )
    return made


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- reports -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What the paper found, and whether this run found it too.

    Parameters
    ----------
    claim : str
        A sentence, without its stop.
    holds : bool
        Worked out from this run's numbers.
    evidence : str
        These numbers.
    """

    claim: str
    holds: bool
    evidence: str

    def __post_init__(self) -> None:
        # numpy's own bool, which comparisons of means are, is no value of JSON
        object.__setattr__(self, "holds", bool(self.holds))

    def __str__(self) -> str:
        return f"The paper: {self.claim}. Here: {'yes' if self.holds else 'no'}, {self.evidence}."


@dataclass(frozen=True)
class Part:
    """A part of a report, such as one figure of the paper.

    Parameters
    ----------
    name : str
        File name of the figure, without its ending: letters, digits, - and _.
    title : str
        What it shows.
    text : str
        The table that is printed.
    findings : sequence of Finding
    figure : matplotlib.figure.Figure, optional
    """

    name: str
    title: str
    text: str
    findings: Sequence[Finding] = ()
    figure: Figure | None = None

    def __str__(self) -> str:
        return "\n\n".join([self.title, self.text, *(["\n".join(map(str, self.findings))] if self.findings else [])])


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard error and number of the values of each condition, method and metric.

    Parameters
    ----------
    rows : pandas.DataFrame
        Tidy, with columns `replication` and `value`; all others say what was measured.

    Returns
    -------
    pandas.DataFrame
        Those other columns, and `mean`, `se` (NaN of a single value) and `n`, in the order of first appearance. Values
        that are NaN are left out.
    """
    by = [name for name in rows.columns if name not in ("replication", "value")]
    if rows.empty:
        return pd.DataFrame(columns=[*by, "mean", "se", "n"])
    grouped = rows.groupby(by, sort=False, dropna=False)["value"]
    return grouped.agg(mean="mean", se="sem", n="count").reset_index()


def spread(mean: float, error: float, places: int = 3, *, signed: bool = False) -> str:
    """Mean and, in brackets, its standard error; the mean alone where there is one value, - where there is none."""
    if math.isnan(mean):
        return "-"
    shown = f"{round(mean, places) + 0.0:{'+' if signed else ''}.{places}f}"  # + 0.0: no -0.000
    return shown if math.isnan(error) else f"{shown} ({error:.{places}f})"


def grid(
    table: pd.DataFrame,
    *,
    down: str,
    across: str,
    titles: Mapping[Any, str] | None = None,
    places: int = 3,
    signed: bool = False,
    reference: pd.DataFrame | None = None,
    referenced: str = "reference",
) -> str:
    """Means as a printed table: "0.598 (0.006)", and behind a line the value to compare with.

    Parameters
    ----------
    table : pandas.DataFrame
        As `summarize` gives it, of one metric.
    down, across : str
        Columns whose values are the lines and the columns of the printed table, in the order of first appearance.
    titles : mapping, optional
        What these values are called; a value that is not in it stands for itself.
    places : int
        Digits behind the point.
    signed : bool
        Whether a plus stands before what is not negative: a difference.
    reference : pandas.DataFrame, optional
        Columns `down`, `across` and `value`.
    referenced : str
        What its values are, for the heading.
    """
    called = titles or {}
    there: dict[tuple[Any, Any], float] = {}
    if reference is not None:
        there = dict(
            zip(zip(reference[down], reference[across], strict=True), map(float, reference["value"]), strict=True)
        )
    cells = {
        (row[down], row[across]): spread(row["mean"], row["se"], places, signed=signed) for _, row in table.iterrows()
    }
    columns = list(dict.fromkeys(table[across]))
    beside = {column for _, column in there} & set(columns)
    lines = [["", *(called.get(each, str(each)) + (f" | {referenced}" if each in beside else "") for each in columns)]]
    for name in dict.fromkeys(table[down]):
        line = [called.get(name, str(name))]
        for column in columns:
            known = there.get((name, column), math.nan)
            shown = spread(known, math.nan, places, signed=signed).rjust(len(referenced))
            line.append(cells.get((name, column), "-") + (f" | {shown}" if column in beside else ""))
        lines.append(line)
    return study.aligned(lines)


def counted(n: int, what: str) -> str:
    """How many there are: 1 split, 2 splits."""
    return f"{n} {what}{'s' if n != 1 else ''}"


# -- the experiment ------------------------------------------------------------------------------------------------


@dataclass
class Replications:
    """Runs tasks in processes, keeps each that is done, and writes tables, figures and findings.

    Parameters
    ----------
    name : str
        The scenario's module name.
    args : argparse.Namespace
        Arguments as `parser` gives them: `jobs`, `out`, `anew`.
    settings : dataclass
        Frozen, of plain values: all that a task's rows depend on beside the task. A folder has the tasks of one.
    measure : function of a task and the settings
        At the top level of a module, for other processes to find. Returns rows: mappings of column to value, with
        `method`, `metric` and `value`, and whatever else tells them apart. CPU times have the metric `SECONDS`.
    report : function of the rows of all finished tasks
        A table with the plain fields of the tasks and the rows' columns. It may hold some tasks only, and then leaves
        out parts that it has not enough for.
    """

    name: str
    args: argparse.Namespace
    settings: Any
    measure: Callable[[Any, Any], Sequence[Row]]
    report: Callable[[pd.DataFrame], Sequence[Part]]
    results: dict[Any, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writing = False  # whether `finish` has begun
        self._stopped = False
        self._tasks: list[Any] = []
        self._folder = Path(self.args.out, FINISHED)
        study.make_folder(self.args.out)
        self._manifest = {
            "scenario": self.name,
            "settings": _plain(asdict(self.settings)),
            "versions": package_versions(),
        }
        self._open()
        self.args.study = self  # where `study.main` finds it when it is stopped

    def run(self, tasks: Iterable[Any], *, weight: Callable[[Any], float] = lambda _: 1.0) -> int:
        """Run those tasks that the folder does not have yet, and finish; returns the exit status.

        Parameters
        ----------
        tasks : iterable of dataclasses
            Frozen and hashable, of plain values and tuples of them; `replication` is one of their fields.
        weight : function of a task
            About how long it takes beside others; for the time left that is shown.

        Raises
        ------
        KeyboardInterrupt
            If a person stopped it; tasks that were done are kept.
        ValueError
            If a task is given twice, a task's own function raises one, or a file in the folder cannot be read.
        """
        self._tasks = list(tasks)
        if len(set(self._tasks)) < len(self._tasks):
            raise ValueError(
                f"tasks must be distinct, got {len(self._tasks)} with {len(set(self._tasks))} different ones"
            )
        self.results = {task: rows for task in self._tasks if (rows := self._kept(task)) is not None}
        waiting = [task for task in self._tasks if task not in self.results]
        with tqdm(
            total=sum(map(weight, self._tasks)),
            initial=sum(map(weight, self.results)),
            disable=None,
            leave=False,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]",
        ) as bar:
            self._tell(bar)
            if waiting:
                self._run(waiting, weight, bar)
        return self.finish()

    def stop(self) -> int:
        """Report what was done before a person stopped the experiment; returns the exit status."""
        self._stopped = True
        return self.finish()

    def finish(self) -> int:
        """Print tables and findings, and write everything to the folder; returns the exit status."""
        self.writing = True
        rows = self.rows
        measured = rows[rows["metric"] != SECONDS].reset_index(drop=True)
        parts = self.report(rows)
        table = summarize(measured)
        files: dict[str, str | bytes] = {
            "replications.csv": measured.to_csv(index=False),
            "times.csv": rows[rows["metric"] == SECONDS].to_csv(index=False),
            "table.csv": table.to_csv(index=False),
            "summary.json": study.json_text(self._summary(parts)),
            "configuration.json": study.json_text({**self._manifest, **study.invocation(self.name, self.args)}),
        }
        for part in parts:
            if part.figure is not None:
                files[f"{part.name}.png"] = study.rendered(part.figure)
        out: Path = self.args.out
        self._remove_earlier_figures(files)
        study.write(out, files)
        for part in parts:
            print(f"{part}\n")  # noqa: T201
        if not parts:
            print("Too little was measured for a table.\n")  # noqa: T201
        print(f"Written to {out}: {', '.join(files)}, {FINISHED}/")  # noqa: T201
        if self._stopped:
            print(  # noqa: T201
                f"Interrupted: {len(self.results)} of {len(self._tasks)} tasks are done and kept; "
                "the same command goes on with the others."
            )
        return 130 if self._stopped else 0

    @property
    def rows(self) -> pd.DataFrame:
        """Rows of all finished tasks, in the order of the tasks, with the tasks' plain fields."""
        found = [
            {**_scalars(task), **row} for task in self._tasks if task in self.results for row in self.results[task]
        ]
        return pd.DataFrame(found) if found else pd.DataFrame(columns=["replication", "method", "metric", "value"])

    # -- running

    def _run(self, tasks: Sequence[Any], weight: Callable[[Any], float], bar: Any) -> None:
        pool = ProcessPoolExecutor(min(self.args.jobs, len(tasks)), env=ONE_THREAD, initializer=_prepare)
        finished = False
        try:
            with _interrupts_ignored():  # workers that start now ignore them from their first moment
                futures = {pool.submit(_measured, self.measure, task, self.settings): task for task in tasks}
            for future in as_completed(futures):
                self._keep(futures[future], future.result())
                bar.update(weight(futures[future]))
                self._tell(bar)
            finished = True
        finally:
            pool.shutdown(wait=True, kill_workers=not finished)
            for task in tasks:  # one may have been stopped on its way from the disk into the results
                kept = None if task in self.results else self._kept(task)
                if kept is not None:
                    self.results[task] = kept

    def _tell(self, bar: Any) -> None:
        bar.set_description_str(f"{len(self.results)} of {len(self._tasks)} tasks")

    # -- the folder

    def _open(self) -> None:
        """Check that the folder's tasks are of these settings, or remove them where that is asked for."""
        manifest, out = Path(self.args.out, MANIFEST), self.args.out
        if self._folder.exists() and not (self._folder.is_dir() and os.access(self._folder, os.W_OK)):
            raise ValueError(f"--out {out}: {self._folder} must be a folder that can be written; name another folder")
        finished = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        if finished and not manifest.is_file():
            raise ValueError(
                f"--out {out}: {self._folder} holds files, but there is no {manifest} to say what they are; "
                "move them or name another folder"
            )
        if not manifest.is_file():
            return
        if self.args.anew:
            for file in finished:
                file.unlink()
            manifest.unlink()
            return
        different = _differences(_read(manifest), self._manifest) if finished else []
        if different:
            raise ValueError(
                f"--out {out}: has finished tasks of other settings: {'; '.join(different)}. Name another folder, "
                "or give --anew to remove them"
            )

    def _kept(self, task: Any) -> list[Row] | None:
        """Rows of a task that the folder has; None where it has not."""
        file = self._file(task)
        if not file.is_file():
            return None
        found = _read(file)
        if not isinstance(found, dict) or found.get("task") != _plain(asdict(task)):
            raise ValueError(f"{file}: is not the result of {_described(task)}; remove it")
        return [{**row, "value": math.nan if row["value"] is None else row["value"]} for row in found["rows"]]

    def _keep(self, task: Any, rows: Sequence[Row]) -> None:
        self._folder.mkdir(exist_ok=True)
        if not Path(self.args.out, MANIFEST).is_file():
            write_text(Path(self.args.out, MANIFEST), study.json_text(self._manifest))
        content = {"task": _plain(asdict(task)), "rows": [dict(row) for row in rows]}
        write_text(self._file(task), study.json_text(content))
        self.results[task] = list(rows)

    def _file(self, task: Any) -> Path:
        """Where a task's result is kept: its plain fields, and a digest of all of them."""
        slug = "_".join(f"{name}-{value}" for name, value in _scalars(task).items())
        digest = hashlib.sha256(json.dumps(_plain(asdict(task)), sort_keys=True).encode()).hexdigest()[:10]
        return self._folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', slug)[:120]}_{digest}.json"

    def _remove_earlier_figures(self, files: Mapping[str, Any]) -> None:
        """Remove the figures of an earlier report that this one does not have."""
        summary = Path(self.args.out, "summary.json")
        earlier = _read(summary).get("figures", []) if summary.is_file() else []
        for name in earlier:
            if name not in files and re.fullmatch(r"[\w-]+\.png", name):
                Path(self.args.out, name).unlink(missing_ok=True)

    def _summary(self, parts: Sequence[Part]) -> dict[str, Any]:
        return {
            "tasks": len(self._tasks),
            "finished": len(self.results),
            "interrupted": self._stopped,
            "figures": [f"{part.name}.png" for part in parts if part.figure is not None],
            "findings": {part.name: [asdict(finding) for finding in part.findings] for part in parts},
        }


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C for a moment, where that can be done."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _prepare() -> None:
    """In a worker: Ctrl-C is for the process that started it, and bars need no lock between processes.

    Such a lock would be left behind by a worker that is ended in the middle of a task.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tqdm.set_lock(RLock())


def _measured(measure: Callable[[Any, Any], Sequence[Row]], task: Any, settings: Any) -> list[Row]:
    """In a worker: the rows of a task."""
    try:
        return list(measure(task, settings))
    except ValueError as error:
        raise ValueError(f"{_described(task)}: {error}") from error


def _described(task: Any) -> str:
    return ", ".join(f"{name} {value}" for name, value in _scalars(task).items())


def _scalars(task: Any) -> dict[str, Any]:
    """The fields of a task that a table can hold."""
    return {name: value for name, value in asdict(task).items() if not isinstance(value, tuple | list | dict)}


def _plain(value: Any) -> Any:
    """The same as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file}: is not JSON ({error}); remove it") from error


def _differences(found: Any, wanted: Mapping[str, Any]) -> list[str]:
    """What is not the same in two manifests, in words."""
    if not isinstance(found, dict):
        return [f"{MANIFEST} is no manifest"]
    told = []
    for name, value in wanted.items():
        there = found.get(name)
        if isinstance(value, dict) and isinstance(there, dict):
            keys = dict.fromkeys([*there, *value])
            told += [
                f"{key} {there.get(key)!r}, not {value.get(key)!r}" for key in keys if there.get(key) != value.get(key)
            ]
        elif there != value:
            told.append(f"{name} {there!r}, not {value!r}")
    return told
