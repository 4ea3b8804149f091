"""The base that all scenarios share: common arguments, the run with its progress bar, and what is written."""

import argparse
import itertools
import json
import logging
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from tqdm import tqdm

from algorithms.learning import Learning, Schedule
from algorithms.ratings import Ratings
from netsim import LogNormal, Probe, Result, World, barabasi_albert, plots, simulate
from netsim.files import write_bytes, write_text
from netsim.result import ARRAYS, HEAD, TABLES

__all__ = [
    "CALLED",
    "RUNS",
    "Mistakes",
    "Parser",
    "Study",
    "add_learning",
    "add_network",
    "add_out",
    "aligned",
    "at_least",
    "cell",
    "figures",
    "finite",
    "holds_run",
    "integer",
    "invocation",
    "json_text",
    "jsonable",
    "learning",
    "listed",
    "main",
    "make_folder",
    "names",
    "parser",
    "positive",
    "rendered",
    "share",
    "world",
    "write",
]


#: Folder of the saved runs, within that of the study.
RUNS = "runs"
#: What a person typed before a scenario's name; the console command puts its own words here.
CALLED: ContextVar[str] = ContextVar("CALLED", default="python -m scenarios.")

_FILES_OF_A_RUN = {HEAD, ARRAYS, *(f"{name}.csv" for name in TABLES)}


class Mistakes(argparse.ArgumentParser):
    """Parser that tells a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        """End with the status of a mistake."""
        self.exit(2, f"{self.prog}: error: {message}\n")


class Parser(Mistakes):
    """Parser of a scenario.

    Parameters
    ----------
    name : str
        The scenario's module name.
    description : str or None
        What the scenario shows.
    """

    def __init__(self, name: str, description: str | None) -> None:
        super().__init__(
            prog=f"{CALLED.get()}{name}",
            description=description,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )


def parser(name: str, description: str, *, until: float, out: str) -> argparse.ArgumentParser:
    """Parser with the arguments that every scenario takes.

    Parameters
    ----------
    name : str
        The scenario's module name.
    description : str
        What the scenario shows.
    until : float
        Default length in simulated seconds.
    out : str
        Default folder for what is written.
    """
    made = Parser(name, description)
    made.add_argument("--seed", type=integer, default=1, metavar="N", help="seed of all chance; same seed, same bits")
    made.add_argument("--until", type=positive, default=until, metavar="SECONDS", help="simulated time")
    made.add_argument(
        "--every",
        type=positive,
        default=argparse.SUPPRESS,
        metavar="SECONDS",
        help="simulated time between two measurements (default: a fiftieth of --until)",
    )
    add_out(made, out)
    return made


def add_out(to: argparse.ArgumentParser, out: str) -> None:
    """Add the argument that names the folder for what is written."""
    to.add_argument(
        "--out",
        type=Path,
        default=Path(out),
        metavar="DIR",
        help="folder for results; earlier ones there are replaced",
    )


def add_network(to: argparse._ActionsContainer, *, places: int) -> None:
    """Add the arguments that `world` reads: number of places, and time between two broadcasts."""
    to.add_argument("--places", type=at_least(4), default=places, metavar="P", help="places of the underlay")
    to.add_argument("--period", type=positive, default=10.0, metavar="SECONDS", help="between two broadcasts of a node")


def add_learning(to: argparse.ArgumentParser, defaults: Learning) -> None:
    """Add the arguments of `Learning`; `learning(args)` reads them back."""
    group = to.add_argument_group("learning")
    group.add_argument("--rank", type=integer, default=defaults.rank, metavar="R", help="length of a profile")
    group.add_argument(
        "--lam", type=float, default=defaults.lam, metavar="L", help="weight lambda of the regularization"
    )
    group.add_argument(
        "--regularization",
        choices=["per_message", "uniform"],
        default=defaults.regularization,
        help="lambda at each message (equations 3 and 4), or divided by a node's known ratings (objective 1)",
    )
    group.add_argument("--rate", type=positive, default=defaults.rate.parameters()[0], help="initial learning rate")  # type: ignore[union-attr]
    group.add_argument(
        "--schedule",
        choices=["constant", "inverse", "exponential"],
        default=defaults.schedule.form,
        help="how the learning rate falls: not, as 1 / (1 + age / half-life), or as 2 ** (-age / half-life)",
    )
    group.add_argument(
        "--half-life",
        type=positive,
        default=defaults.schedule.half_life,
        metavar="PASSES",
        help="passes over a node's own ratings after which its learning rate is halved",
    )


def learning(args: argparse.Namespace) -> Learning:
    """Learning as the arguments say."""
    schedule = Schedule() if args.schedule == "constant" else Schedule(args.schedule, args.half_life)
    return Learning(rank=args.rank, lam=args.lam, regularization=args.regularization, rate=args.rate, schedule=schedule)


def integer(text: str) -> int:
    """Argument type: an integer >= 0."""
    return at_least(0)(text)


def at_least(lowest: int) -> Callable[[str], int]:
    """Argument type: an integer >= `lowest`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = lowest - 1
        if value < lowest:
            raise argparse.ArgumentTypeError(f"expected an integer >= {lowest}, got {text!r}")
        return value

    return read


def listed(text: str) -> list[int]:
    """Integers written as a list of numbers and ranges, such as 1,3-5; empty where it is none, or names one twice."""
    chosen: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            chosen.extend(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        return []
    return chosen if len(set(chosen)) == len(chosen) else []


def names(text: str, valid: Collection[str]) -> list[str]:
    """Distinct names of those that are valid, separated by commas; an error of an argument type where they are not."""
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in valid]
    if unknown or len(set(chosen)) < len(chosen):
        wrong = f"{unknown[0]!r}" if unknown else f"{text!r}, which names one twice"
        raise argparse.ArgumentTypeError(f"expected distinct names of {', '.join(valid)}, got {wrong}")
    return chosen


def positive(text: str) -> float:
    """Argument type: a number > 0."""
    return _number(text, lambda value: value > 0, "a number > 0")


def share(text: str) -> float:
    """Argument type: a number in [0, 1]."""
    return _number(text, lambda value: 0 <= value <= 1, "a number in [0, 1]")


def _number(text: str, fits: Callable[[float], bool], expected: str) -> float:
    with suppress(ValueError):
        if fits(value := float(text)):
            return value
    raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")


def world(
    ratings: Ratings, args: argparse.Namespace, *, seed: int, delay: LogNormal, loss: float, learning: Learning
) -> World:
    """Ratings on a Barabasi-Albert underlay of `--places`, where each node broadcasts once in a `--period`."""
    return World(
        ratings,
        barabasi_albert(args.places, 3, seed=seed),
        user_broadcast=args.period,
        router_broadcast=args.period,
        delay=delay,
        loss=loss,
        learning=learning,
    )


@dataclass
class Study:
    """Runs worlds, shows how far they are, and writes what they measured.

    Parameters
    ----------
    name : str
        The scenario's module name.
    args : argparse.Namespace
        Arguments as `parser` gives them.
    references : dict
        Lines of reference in the figure: label and error.
    """

    name: str
    args: argparse.Namespace
    references: dict[str, float] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)

    def __post_init__(self) -> None:
        make_folder(self.args.out)
        runs = Path(self.args.out, RUNS)
        if runs.exists() and not (runs.is_dir() and os.access(runs, os.W_OK)):
            raise ValueError(f"--out {self.args.out}: {runs} must be a folder that can be written; name another folder")
        self.args.study = self  # where `main` finds it when a run is stopped
        self._folders: dict[str, Path] = {}  # of saved runs, by label
        self._stopped = False
        self.writing = False  # whether `finish` has begun

    def run(self, label: str, world: World, probes: Sequence[Probe]) -> Result:
        """Run a world with the study's seed and length, and keep its result under a label.

        Raises
        ------
        KeyboardInterrupt
            If a person stopped it; what was measured until then is kept.
        ValueError
            If there is a run of this label, or its folder holds files of another kind.
        """
        if label in self.results:
            raise ValueError(f"label must be new, got {label!r} again; name what is different in this run")
        self._check_free(self._run_folder(label))
        with closing(_ProgressBar(label, self.args.until)) as progress:
            result = simulate(
                world,
                until=self.args.until,
                every=getattr(self.args, "every", None),
                seed=self.args.seed,
                probes=probes,
                progress=progress,
            )
        if not result.probes.empty:
            self.results[label] = result
            self._save(label)  # at once, so that a study that is killed keeps the runs it has finished
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def stop(self) -> int:
        """Keep what was measured before a person stopped the study; returns the exit status."""
        self._stopped = True
        for label in self.results.keys() - self._folders.keys():  # stopped while it was saved
            self._save(label)
        return self.finish()

    def finish(self) -> int:
        """Print the table of figures and write everything to the folder; returns the exit status."""
        self.writing = True
        runs = {label: figures(result) for label, result in self.results.items()}
        names = list(dict.fromkeys(name for run in runs.values() for name in run))
        summary: dict[str, Any] = {}
        for name in names:
            values = [run[name] for run in runs.values() if name in run]
            summary[name] = values[0] if len(values) == 1 else _together(name, values)
        if self._stopped:
            summary["interrupted"] = True
        if len(runs) > 1:
            summary["runs"] = runs
        out: Path = self.args.out
        written = ["summary.json", "probes.csv", "configuration.json", *([f"{RUNS}/"] if self._folders else [])]
        write_text(out / "summary.json", json_text(summary))
        write_text(out / "probes.csv", self._probe_table().to_csv(index=False))
        write_text(out / "configuration.json", json_text(self._configuration()))
        figure = self._draw()
        if figure is None:
            (out / "convergence.png").unlink(missing_ok=True)  # that of an earlier run
        else:
            write_bytes(out / "convergence.png", figure)
            written.append("convergence.png")
        self._remove_earlier_runs()

        print(_table(runs, summary))  # noqa: T201
        print(f"\nWritten to {out}: {', '.join(written)}")  # noqa: T201
        for label, run in runs.items():
            bad = [name for name, value in run.items() if isinstance(value, float) and not math.isfinite(value)]
            if bad:
                print(f"{label} diverged: {', '.join(bad)} is not a number any more; try a smaller --rate.")  # noqa: T201
        if self._stopped:
            last = list(self.results.values())[-1]
            print(  # noqa: T201
                f"Interrupted at {last.time:.1f} of {last.until:g} simulated seconds; "
                "what was measured until then is kept."
            )
        return 130 if self._stopped else 0

    def _save(self, label: str) -> None:
        self._folders[label] = self.results[label].save(self._run_folder(label))

    def _run_folder(self, label: str) -> Path:
        """Folder of a run, named after its label; with a number where another run of this study has that name."""
        slug = re.sub(r"[^\w.=+-]+", "-", label)[:80].strip("-.") or "run"
        taken = {folder.name.casefold() for folder in self._folders.values()}
        names = itertools.chain([slug], (f"{slug}-{number}" for number in itertools.count(2)))
        return Path(self.args.out, RUNS, next(name for name in names if name.casefold() not in taken))

    def _check_free(self, folder: Path) -> None:
        """Refuse, before anything is run, a folder that the run could not be saved to afterwards."""
        if folder.exists() and not holds_run(folder) and not (folder.is_dir() and not any(folder.iterdir())):
            raise ValueError(
                f"--out {self.args.out}: {folder} holds other files than a saved run; move them or name another folder"
            )

    def _remove_earlier_runs(self) -> None:
        """Remove the saved runs of an earlier study in the same folder, and what a killed one left half written."""
        runs = Path(self.args.out, RUNS)
        if not runs.is_dir():
            return
        kept = {folder.name for folder in self._folders.values()}
        for folder in sorted(runs.iterdir(), key=lambda folder: not folder.name.startswith(".")):  # left ones first
            if folder.name in kept or folder.is_symlink() or not folder.is_dir():
                continue
            if folder.name.startswith("."):
                if {each.name for each in folder.iterdir()} <= _FILES_OF_A_RUN:
                    shutil.rmtree(folder)
            elif holds_run(folder):
                # Renamed first: whatever stops the removal, no half a run stands under a run's name.
                shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.removed")))

    def _probe_table(self) -> pd.DataFrame:
        tables = [result.probes.assign(run=label) for label, result in self.results.items()]
        table = pd.concat(tables, ignore_index=True)
        return table[["run", *table.columns.drop("run")]]

    def _configuration(self) -> dict[str, Any]:
        first = next(iter(self.results.values()))
        return {
            "scenario": self.name,
            **invocation(self.name, self.args),
            "seed": first.seed,
            "versions": first.versions,
            "runs": {label: folder.relative_to(self.args.out).as_posix() for label, folder in self._folders.items()},
            "worlds": {label: result.configuration for label, result in self.results.items()},
        }

    def _first_probe(self) -> str:
        """Column of the first probe, which a figure of several runs shows."""
        return str(next(iter(self.results.values())).probes.columns[1])

    def _draw(self) -> bytes | None:
        """The figure as a PNG file's content; None where there is nothing to draw a line through."""
        drawable = {label: result for label, result in self.results.items() if len(result.probes) > 1}
        if not drawable:
            return None
        figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        several = len(drawable) > 1
        plots.convergence(
            drawable if several else next(iter(drawable.values())),
            metrics=[self._first_probe()] if several else None,
            references=self.references,
            log=True,
            ax=ax,
        )
        ax.set_title(f"{self.name}, seed {self.args.seed}", loc="left", fontsize="medium")
        return rendered(figure)


def rendered(figure: Figure, kind: str = "png") -> bytes:
    """Content of an image file of a figure, which is closed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    kind : str
        Format of the file: png, pdf, svg.
    """
    content = BytesIO()
    try:
        figure.savefig(content, dpi=150, format=kind)
    finally:
        plt.close(figure)
    return content.getvalue()


def figures(result: Result) -> dict[str, float | int | bool]:
    """The figures of a run that its table and `summary.json` show, by name."""
    final = result.final
    measured = list(result.probes.columns)
    own = measured[1 : measured.index("user_updates")] if measured else []
    run: dict[str, float | int | bool] = {name: float(final[name]) for name in own}
    run["simulated_seconds"] = float(final.get("time", 0.0))
    for figure, column in _COUNTED.items():
        run[figure] = int(final.get(column, 0))
    run["profile_updates"] = int(final.get("user_updates", 0) + final.get("item_updates", 0))
    run["wall_seconds"] = round(result.wall_seconds, 2)
    run["messages_per_second"] = round(run["messages_sent"] / result.wall_seconds)
    run["interrupted"] = result.interrupted
    return run


_COUNTED = {
    "messages_sent": "sent",
    "messages_delivered": "delivered",
    "messages_lost": "lost_link",
    "messages_stale": "stale",
    "messages_unreachable": "unreachable",
    "bytes_sent": "bytes_sent",
}
_SUMMED = (*_COUNTED, "profile_updates", "wall_seconds")


def _together(name: str, values: list[Any]) -> Any:
    """One figure for several runs: counts are summed, errors and times averaged."""
    if name == "interrupted":
        return any(values)
    if name in _SUMMED:
        return sum(values)
    return sum(values) / len(values)


def main(
    made: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int], argv: Sequence[str] | None = None
) -> int:
    """Run a scenario from the command line; returns the exit status.

    A person's mistake (bad value, missing file) ends with one line on standard error and status 2; a defect of ours
    shows its traceback.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    given = list(sys.argv[1:] if argv is None else argv)
    args = made.parse_args(given)
    args.given = given
    mpl.use("Agg")
    try:
        try:
            return run(args)
        except KeyboardInterrupt:
            return _stopped(args)
    except (ValueError, OSError) as error:
        _keep(args)
        print(f"{made.prog}: error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except BaseException:
        _keep(args)
        raise


def _keep(args: argparse.Namespace) -> None:
    """Write the runs that were finished before something went wrong, unless writing is what went wrong."""
    this = getattr(args, "study", None)
    if this is not None and this.results and not this.writing:
        with suppress(ValueError, OSError):  # what went wrong first is what a person is told
            this.finish()


def _stopped(args: argparse.Namespace) -> int:
    this = getattr(args, "study", None)
    try:
        if this is not None and this.results and not this.writing:
            return int(this.stop())
    except KeyboardInterrupt:
        pass
    if this is not None and this.writing:
        print(f"Interrupted while results were written to {args.out}; the files there are whole.", file=sys.stderr)  # noqa: T201
    else:
        print("Interrupted before anything was measured; nothing was written.", file=sys.stderr)  # noqa: T201
    return 130


class _ProgressBar:
    """Progress of one run: simulated time, messages per second of wall time, the first error measured."""

    def __init__(self, label: str, until: float) -> None:
        self._bar = tqdm(
            total=until,
            desc=label,
            unit="s",
            disable=None,
            leave=False,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} simulated s "
            "[{elapsed}<{remaining}{postfix}]",
        )
        self._began = perf_counter()

    def __call__(self, time: float, row: dict[str, Any]) -> None:
        self._bar.update(time - self._bar.n)
        if row:
            error = next(((name, value) for name, value in row.items() if name.endswith(("rmse", "mae"))), None)
            rate = row["sent"] / max(perf_counter() - self._began, 1e-9)
            shown = f"{rate:,.0f} messages/s"
            self._bar.set_postfix_str(shown + (f", {error[0]} {error[1]:.4f}" if error else ""), refresh=False)

    def close(self) -> None:
        self._bar.close()


def _table(runs: dict[str, dict[str, Any]], summary: dict[str, Any]) -> str:
    """The short table at the end of a study."""
    columns = dict(runs)
    if len(runs) > 1:
        columns["together"] = {name: value for name, value in summary.items() if name != "runs"}
    names = [name for name in summary if name not in ("runs", "interrupted")]
    return aligned(
        [["", *columns], *([name, *(cell(column.get(name)) for column in columns.values())] for name in names)]
    )


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells as a table: the first column to the left, the others to the right."""
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    shown = (
        "  ".join([line[0].ljust(widths[0]), *(each.rjust(w) for each, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )
    return "\n".join(line.rstrip() for line in shown)


def cell(value: Any) -> str:
    """A figure as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.1f}"


def invocation(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """The command of a scenario, and its arguments, for `configuration.json`."""
    given = {key: jsonable(value) for key, value in vars(args).items() if key not in ("given", "study")}
    command = shlex.join(["python", "-m", f"scenarios.{name}", *getattr(args, "given", [])])
    return {"command": command, "arguments": given}


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files of texts and images to a folder, each whole or not at all."""
    for name, content in files.items():
        if isinstance(content, str):
            write_text(folder / name, content)
        else:
            write_bytes(folder / name, content)


def json_text(content: Mapping[str, Any]) -> str:
    """Content of a JSON file, with null for what JSON has no number for."""
    return json.dumps(finite(dict(content)), indent=2) + "\n"


def jsonable(value: Any) -> Any:
    """The same as JSON has it: infinity and what is no plain value as text."""
    if isinstance(value, float) and value == float("inf"):
        return "inf"
    return value if isinstance(value, int | float | str | bool | list | type(None)) else str(value)


def make_folder(out: Path, argument: str = "--out") -> None:
    """Make the folder for results before anything is run.

    Parameters
    ----------
    out : pathlib.Path
    argument : str
        The argument that names it, for the message.

    Raises
    ------
    ValueError
        If it cannot be made or written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"{argument} {out}: cannot be made a folder ({error.strerror}); name one that can be written"
        ) from error
    if not os.access(out, os.W_OK):
        raise ValueError(f"{argument} {out}: cannot be written; name a folder of yours")


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a saved run and nothing else."""
    if not (folder / HEAD).is_file():
        return False
    return {file.name for file in folder.iterdir()} <= _FILES_OF_A_RUN


def finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
