"""The console command `netsim`: lists scenarios and data sets, runs one, plots and compares saved runs."""

import argparse
import hashlib
import importlib
import inspect
import json
import math
import os
import pkgutil
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

import algorithms.datasets
import algorithms.synthetic
import scenarios
from netsim import Milestone, Result, Target, plots
from netsim.files import write_bytes, write_text
from netsim.result import HEAD, package_versions
from scenarios import study

__all__ = ["compare", "find_runs", "main", "names", "scenario_modules"]

EXAMPLES = """\
examples:
  netsim list
  netsim run quickstart --loss 0.1 --out out/lossy
  netsim plot out/quickstart out/lossy --against messages --out lossy.png
  netsim compare out/quickstart out/lossy --target 1.1
"""
NOT_REACHED = "not reached"
#: Longest value that a table shows whole.
LONGEST = 50
FOLDERS = "a scenario's folder (--out) for all its runs, or the folder of one saved run, which has result.json in it"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the console command; returns the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 0
    try:
        status = int(args.do(args))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `netsim list | head -1`; nothing more can be shown, also not at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError) as error:
        if args.command == "run":
            raise  # a scenario tells its mistakes itself; this is a defect
        print(f"{args.parser.prog}: error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        print("Interrupted; nothing was written.", file=sys.stderr)  # noqa: T201
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = study.Mistakes(
        prog="netsim",
        description="Simulates decentralized recommender systems: runs scenarios, plots and compares what they saved.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"netsim {package_versions()['netsim-recommender']}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    listing = commands.add_parser("list", help="list scenarios and data sets", description=_list.__doc__)
    listing.set_defaults(do=_list, parser=listing)

    run = commands.add_parser("run", help="run a scenario", description=_run.__doc__)
    run.add_argument("name", nargs="?", metavar="NAME", help="scenario, as `netsim list` names it")
    run.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="the scenario's own; `netsim run NAME --help` tells them"
    )
    run.set_defaults(do=_run, parser=run)

    plot = commands.add_parser("plot", help="draw how the errors of saved runs fell", description=_plot.__doc__)
    plot.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help=FOLDERS)
    plot.add_argument(
        "--against",
        choices=["time", "messages", "bytes", "updates"],
        default="time",
        help="horizontal axis (default: %(default)s)",
    )
    plot.add_argument(
        "--metric",
        action="append",
        metavar="NAME",
        help="column of probes.csv; may be given several times (default: all errors of a single run, or the first "
        "that all the runs measured)",
    )
    scale = plot.add_mutually_exclusive_group()
    scale.add_argument("--log", action="store_true", default=True, help="logarithmic horizontal axis (the default)")
    scale.add_argument("--linear", action="store_false", dest="log", help="linear horizontal axis")
    plot.add_argument(
        "--out",
        type=_figure_file,
        default=Path("netsim-plot.png"),
        metavar="FILE",
        help="file to write, replaced if it is there; .png, .pdf or .svg (default: %(default)s)",
    )
    plot.set_defaults(do=_plot, parser=plot)

    comparing = commands.add_parser("compare", help="compare saved runs in a table", description=_compare.__doc__)
    comparing.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help=FOLDERS)
    comparing.add_argument(
        "--metric",
        metavar="NAME",
        help="column of probes.csv that the target is for (default: the first that all the runs measured)",
    )
    comparing.add_argument(
        "--target",
        type=study.positive,
        metavar="VALUE",
        help="when did the metric get there, and at what cost? (default: the best value that all the runs reached)",
    )
    comparing.add_argument(
        "--higher",
        action="store_true",
        help="more of the metric is better (this is known of lists' metrics, as recall_at_10)",
    )
    comparing.add_argument("--csv", type=Path, metavar="FILE", help="also write the table here, one run a row")
    comparing.set_defaults(do=_compare, parser=comparing)
    return parser


def _figure_file(text: str) -> Path:
    """Argument type: name of an image file."""
    if Path(text).suffix.lower() not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"expected a name that ends with .png, .pdf or .svg, got {text!r}")
    return Path(text)


# -- list and run --------------------------------------------------------------------------------------------------


def scenario_modules() -> dict[str, ModuleType]:
    """Scenarios by name: the modules of the package `scenarios` that have a `main`."""
    found = (each.name for each in pkgutil.iter_modules(scenarios.__path__) if each.name not in ("cli", "study"))
    modules = {name: importlib.import_module(f"scenarios.{name}") for name in sorted(found)}
    return {name: module for name, module in modules.items() if callable(getattr(module, "main", None))}


def _list(_: argparse.Namespace) -> int:
    """List scenarios, data sets and synthetic ratings, with a line about each."""
    datasets = _functions(algorithms.datasets)
    # Of the functions there, those that draw ratings give one of the classes there; others give masks or numbers.
    worlds = [
        each for each in map(vars(algorithms.synthetic).get, algorithms.synthetic.__all__) if inspect.isclass(each)
    ]
    synthetic = {
        name: each
        for name, each in _functions(algorithms.synthetic).items()
        if inspect.signature(each).return_annotation in worlds
    }
    print(_entries("Scenarios, for `netsim run NAME`", scenario_modules()))  # noqa: T201
    print("\n" + _entries("Data sets, read by functions of algorithms.datasets", datasets))  # noqa: T201
    print("\n" + _entries("Synthetic ratings, drawn by functions of algorithms.synthetic", synthetic))  # noqa: T201
    return 0


def _functions(package: ModuleType) -> dict[str, Any]:
    return {name: each for name in package.__all__ if inspect.isfunction(each := getattr(package, name))}


def _entries(title: str, described: Mapping[str, Any]) -> str:
    """A title and a line for each name, with the first line of its docstring."""
    margin = max(map(len, described), default=0) + 4
    lines = [textwrap.fill(title + ":", _terminal_width())]
    for name, each in described.items():
        about = (inspect.getdoc(each) or "").partition("\n")[0]
        lines.append(
            textwrap.fill(
                about,
                width=max(_terminal_width(), margin + 30),
                initial_indent=f"  {name}".ljust(margin),
                subsequent_indent=" " * margin,
            )
        )
    return "\n".join(lines)


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _run(args: argparse.Namespace) -> int:
    """Run a scenario; what follows its name is passed on to it."""
    modules = scenario_modules()
    valid = f"there are {', '.join(modules)}"
    if args.name is None:
        args.parser.error(f"NAME is missing: which scenario? {valid}")
    if args.name not in modules:
        near = get_close_matches(args.name, modules, n=1)
        meant = f"; did you mean {near[0]}?" if near else ";"
        args.parser.error(f"NAME: there is no scenario {args.name!r}{meant} {valid}")
    token = study.CALLED.set("netsim run ")
    try:
        return int(modules[args.name].main(args.arguments))
    finally:
        study.CALLED.reset(token)


# -- saved runs ----------------------------------------------------------------------------------------------------


def find_runs(folders: Iterable[Path]) -> list[Path]:
    """Folders of saved runs: those given, and all that are in a study's folder; each once.

    Raises
    ------
    ValueError
        If a folder is none, or holds no saved run.
    """
    found: dict[Path, Path] = {}
    for folder in folders:
        for run in _runs_in(folder):
            found.setdefault(run.resolve(), run)
    return list(found.values())


def _runs_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "is not there"
        raise ValueError(f"FOLDER {folder}: {what}; name {FOLDERS}")
    if (folder / HEAD).is_file():
        return [folder]
    for place in (folder / study.RUNS, folder):
        if place.is_dir():
            # A name with a dot is that of a run which was half written when its study was killed.
            runs = [each for each in place.iterdir() if (each / HEAD).is_file() and not each.name.startswith(".")]
            if runs:
                return sorted(runs, key=_numbers_in_order)
    raise ValueError(
        f"FOLDER {folder}: holds no saved run, neither {HEAD} nor {study.RUNS}/ with folders that have it; "
        f"name {FOLDERS}"
    )


def _numbers_in_order(path: Path) -> list[tuple[int, str]]:
    """Sort key that puts fold-2 before fold-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def names(folders: Sequence[Path]) -> list[str]:
    """Shortest names, from the ends or the middles of their paths, that tell folders apart.

    Parameters
    ----------
    folders : sequence of pathlib.Path
        No two the same.
    """
    last = [folder.resolve().name for folder in folders]
    if len(set(last)) == len(last):
        return last
    parts = [folder.resolve().parts for folder in folders]
    parts = [part[_alike(parts) :] for part in parts]
    end = _alike([part[::-1] for part in parts])
    parts = [part[: len(part) - end] for part in parts]
    short = [tuple(name for name in part if name != study.RUNS) for part in parts]
    if all(short) and len(set(short)) == len(short):
        parts = short
    return ["/".join(part) for part in parts]


def _alike(parts: Sequence[tuple[str, ...]]) -> int:
    """How many of the first parts are the same in all paths, so that at least one other is left of each."""
    most = min(map(len, parts)) - 1
    return next((k for k in range(most) if len({part[k] for part in parts}) > 1), most)


def _load(folders: Iterable[Path]) -> tuple[list[Path], dict[str, Result]]:
    """Folders of the runs, and their results by label."""
    paths = find_runs(folders)
    return paths, {name: Result.load(path) for name, path in zip(names(paths), paths, strict=True)}


def _first_metric(runs: Mapping[str, Result]) -> str | None:
    """First column that all runs measured, or else the first of any."""
    measured = [run.measured for run in runs.values()]
    columns = [column for each in measured for column in each]
    common = [column for column in columns if all(column in each for each in measured)]
    return next(iter(common + columns), None)


# -- plot ----------------------------------------------------------------------------------------------------------


def _plot(args: argparse.Namespace) -> int:
    """Draw how the errors of saved runs fell, against time, messages, bytes or updates."""
    mpl.use("Agg")
    _, runs = _load(args.folders)
    least = 3 if args.log else 2  # a logarithmic axis leaves out the measurement at 0
    short = [label for label, run in runs.items() if len(run.probes) < least]
    drawn = {label: run for label, run in runs.items() if label not in short}
    if not drawn:
        raise ValueError(
            f"FOLDER: too few measurements to draw a line in {', '.join(short)}; run with a smaller --every"
        )
    metrics = args.metric or _default_metrics(drawn)
    for label, run in drawn.items():
        for metric in metrics:
            if metric not in run.probes.columns[1:]:
                raise ValueError(
                    f"--metric {metric}: was not measured by {label}, which has {', '.join(run.probes.columns[1:])}"
                )
    ((label, single), *more) = drawn.items()
    ax = plots.convergence(drawn if more else single, metrics=metrics, against=args.against, log=args.log)
    if not more:
        ax.set_title(f"{label}, seed {single.seed}", loc="left", fontsize="medium")
    assert isinstance(ax.figure, Figure)
    content = study.rendered(ax.figure, args.out.suffix[1:].lower())
    _write(args.out, content, "--out")
    if short:
        print(f"Left out, with too few measurements to draw a line: {', '.join(short)}")  # noqa: T201
    return 0


def _default_metrics(runs: Mapping[str, Result]) -> list[str]:
    if len(runs) == 1:
        (run,) = runs.values()
        errors = [name for name in run.measured if name.endswith(("rmse", "mae"))]
        if errors:
            return errors
    first = _first_metric(runs)
    if first is None:
        raise ValueError("--metric must be given, since the runs measured no error; try user_updates or in_flight")
    return [first]


def _write(file: Path, content: bytes | str, argument: str) -> None:
    """Write a file, whole or not at all, and say so."""
    if file.is_dir():
        raise ValueError(f"{argument} {file}: is a folder; name a file")
    study.make_folder(file.parent, argument)
    if isinstance(content, str):
        write_text(file, content)
    else:
        write_bytes(file, content)
    print(f"Written to {file}")  # noqa: T201


# -- compare -------------------------------------------------------------------------------------------------------


def _compare(args: argparse.Namespace) -> int:
    """Compare saved runs: final figures, the cost to reach a target, and the settings in which they differ."""
    paths, runs = _load(args.folders)
    table = compare(runs, metric=args.metric, target=args.target, higher=args.higher)
    if args.csv is not None:
        rows = table.map(lambda value: None if value == NOT_REACHED else value).T
        rows.insert(0, "folder", [str(path) for path in paths])
        _write(args.csv, rows.to_csv(index_label="run"), "--csv")
        print()  # noqa: T201
    shown = table.apply(lambda row: [_short(str(row.name), value) for value in row], axis=1, result_type="broadcast")
    lines = shown.to_string(line_width=_terminal_width()).splitlines()
    print("\n".join(line.rstrip() for line in lines))  # noqa: T201
    versions = [run.versions for run in runs.values()]
    same = [f"{name} {versions[0][name]}" for name in versions[0] if len({each.get(name) for each in versions}) == 1]
    print(f"\nVersions{', the same in all' if len(runs) > 1 else ''}: {', '.join(same)}")  # noqa: T201
    return 0


def compare(
    runs: Mapping[str, Result], *, metric: str | None = None, target: float | None = None, higher: bool = False
) -> pd.DataFrame:
    """Table of runs: final figures, cost to reach a target, settings that differ, seed, engine, versions that differ.

    Parameters
    ----------
    runs : mapping of label to Result
    metric : str, optional
        Column of the probe tables that the target is for. Default: the first that all the runs measured.
    target : float, optional
        Default: the best value that all the runs reached, to four digits.
    higher : bool
        Whether more of the metric is better; of lists' metrics, as `recall_at_10`, this is known.

    Returns
    -------
    pandas.DataFrame
        A column for each run; None where a run has no such figure, and "not reached" where it missed the target.

    Raises
    ------
    ValueError
        If no run measured the metric.
    """
    rows: dict[str, dict[str, Any]] = {}
    for label, run in runs.items():
        for name, value in study.figures(run).items():
            if name not in ("interrupted", "messages_per_second"):
                rows.setdefault(name, {})[label] = value
    rows |= _costs(runs, metric, target, higher)
    rows |= _differing({label: {"until": run.until} | run.configuration for label, run in runs.items()})
    ends = {label: _end(run) for label, run in runs.items()}
    if set(ends.values()) != {"as asked"}:
        rows["ended"] = ends
    rows["seed"] = {label: str(run.seed) for label, run in runs.items()}
    rows["engine"] = {label: run.engine for label, run in runs.items()}
    rows |= _differing({label: run.versions for label, run in runs.items()}, "versions")
    table = {label: [row.get(label) for row in rows.values()] for label in runs}
    return pd.DataFrame(table, index=list(rows), dtype=object)


def _costs(
    runs: Mapping[str, Result], metric: str | None, target: float | None, higher: bool
) -> dict[str, dict[str, Any]]:
    """When each run met the target, and what it had spent until then."""
    metric = metric or _first_metric(runs)
    if metric is None:
        return {}
    columns = {label: run.probes[metric] for label, run in runs.items() if metric in run.probes.columns[1:]}
    if not columns:
        there = dict.fromkeys(str(name) for run in runs.values() for name in run.probes.columns[1:])
        raise ValueError(f"--metric {metric}: no run measured it; they have {', '.join(there)}")
    higher = higher or "_at_" in metric
    if target is None:
        best = [float(column.max() if higher else column.min()) for column in columns.values()]
        finite = [value for value in best if math.isfinite(value)]
        if not finite:
            return {}
        target = _rounded(min(finite) if higher else max(finite), up=not higher)
    rule = Target(metric, at_least=target) if higher else Target(metric, at_most=target)
    milestones = {label: rule.find(runs[label].probes) for label in columns}
    units = {"seconds": "time", "messages": "messages", "bytes": "bytes", "updates": "updates"}
    return {
        f"{unit} to {rule}": {label: _spent(milestone, spent) for label, milestone in milestones.items()}
        for unit, spent in units.items()
    }


def _spent(milestone: Milestone, what: str) -> float | int | str:
    if not milestone.reached:
        return NOT_REACHED
    value = float(getattr(milestone, what))
    return value if what == "time" else int(value)


def _rounded(value: float, *, up: bool) -> float:
    """The next number of four digits."""
    if value == 0:
        return value
    digits = 3 - math.floor(math.log10(abs(value)))
    scaled = value * 10.0**digits
    return round((math.ceil(scaled) if up else math.floor(scaled)) * 10.0**-digits, max(digits, 0))


def _end(run: Result) -> str:
    if run.interrupted:
        return "interrupted"
    return f"stopped: {run.stopped}" if run.stopped else "as asked"


def _differing(values: Mapping[str, Any], name: str = "") -> dict[str, dict[str, Any]]:
    """Settings that are not the same in all runs, by dotted name, as text by label."""
    texts = {label: _text(value) for label, value in values.items()}
    if len(set(texts.values())) == 1:
        return {}
    if not _same_kind(list(values.values())):
        return {name: texts}
    found: dict[str, dict[str, Any]] = {}
    for key in next(iter(values.values())):
        found |= _differing({label: value[key] for label, value in values.items()}, f"{name}.{key}" if name else key)
    if len(found) > 1:  # a digest tells nothing where something readable differs too
        found.pop(f"{name}.sha256", None)
    return found


def _same_kind(values: list[Any]) -> bool:
    """Whether these are mappings with the same keys, and say the same where they say what they are."""
    if not all(isinstance(value, dict) for value in values):
        return False
    kinds = {(*value, value.get("type"), value.get("distribution")) for value in values}
    return len(kinds) == 1


def _text(value: Any) -> str:
    """A setting in short: LogNormal(median=0.07, sigma=0.8)."""
    if value is None:
        return "none"
    if not isinstance(value, dict):
        return value if isinstance(value, str) else json.dumps(value)
    kind = value.get("type") or value.get("distribution") or ""
    inside = [f"{key}={_text(each)}" for key, each in value.items() if key not in ("type", "distribution")]
    return f"{kind}({', '.join(inside)})"


def _short(row: str, value: Any) -> str:
    """A value as the table shows it; long ones are cut, and told apart by a digest."""
    if not isinstance(value, str):
        return study.cell(value)
    if row.endswith("sha256"):
        return value[:12]
    if len(value) <= LONGEST:
        return value
    return f"{value[: LONGEST - 12]}... #{hashlib.sha256(value.encode()).hexdigest()[:6]}"


if __name__ == "__main__":
    sys.exit(main())
