"""What a run returns, and how it is kept on disk."""

import csv
import json
import math
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
import pandas as pd

from algorithms.ratings import Ratings
from netsim.milestones import Milestone, Plateau, StopRule, Target
from netsim.world import World

__all__ = ["Result", "package_versions"]

#: Number of the layout on disk; raised when a file of it changes its meaning.
LAYOUT = 1
HEAD = "result.json"
ARRAYS = "arrays.npz"
TABLES = ("probes", "accounts", "users", "routers", "items", "prequential", "recommendations")
LATER = ("prequential", "recommendations")  # tables that the results of the first versions lack
MAPPINGS = ("versions", "configuration", "columns", "rows")
PLAIN = ("seed", "until", "time", "wall_seconds", "interrupted", "stopped", "engine", "engine_reason")


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a run measured, what it ended with, and what it was made from.

    Attributes
    ----------
    configuration : dict
        The world as `World.describe` gives it: every argument, with ratings and topology by size and digest.
    seed : int
        The 64-bit word that all chance of the run was drawn from; passing it as `seed` repeats the run.
    until : float
        Simulated seconds asked for.
    time : float
        Simulated seconds reached; less than `until` only where the run was interrupted or stopped.
    probes : pandas.DataFrame
        One row for each probe time: `time` in seconds, the columns of the probes given, updates made, nodes
        online, and the accounts: messages by fate, and bytes by fate.
    accounts : pandas.DataFrame
        Messages and bytes at the end, by kind and fate.
    users : pandas.DataFrame
        One row for each user at the end: `user` (id), `online`, `ratings` he holds, `updates` of his profile,
        `profiles_sent` (copies of his profile that left his machine), `profile_bytes` of these, `bytes_sent` in all,
        `ratings_disclosed` (how many of his ratings he has sent to at least one router).
    routers : pandas.DataFrame
        One row for each router: `router` (id), `online`, `items` it hosts, `profiles_sent`, `profile_bytes`,
        `bytes_sent`.
    items : pandas.DataFrame
        One row for each item: `item` (id), `router` that hosts it, `ratings` that this router knows, `updates`.
    user_profiles : float64, shape (n_users, rank)
    item_profiles : float64, shape (n_items, rank)
        The last profiles.
    disclosed : int64, shape (n_ratings,)
        To how many routers each rating was sent, in the order of the world's ratings; see `disclosures`.
    prequential : pandas.DataFrame
        One row for each rating that came or was changed while the network ran: `time` in seconds, `user` and `item`
        (ids), `rating`, `predicted` by the network just before, `item_mean` (what a running mean of the item
        predicted), `user_ratings` and `item_ratings` (how many both had).
    recommendations : pandas.DataFrame
        One row for each request for a recommendation that has ended: `user` and `item` (ids), `asked` and `finished`
        in seconds, `attempts`, `outcome` (`served`, `timed_out`, `refused`), `predicted` and true `rating`.
    wall_seconds : float
        How long the run took on the machine, probes included.
    interrupted : bool
        Whether a person stopped it.
    stopped : str or None
        The rule that ended the run before `until`, in words.
    engine : {"events", "compiled"}
    engine_reason : str
        Why that engine ran, and on how many threads.
    versions : dict
        Versions of Python and of the packages that decide the bits.
    world : World or None
        What was run; None in a result read back from disk, which holds no ratings.
    """

    configuration: dict[str, Any]
    seed: int
    until: float
    time: float
    probes: pd.DataFrame
    accounts: pd.DataFrame
    users: pd.DataFrame
    routers: pd.DataFrame
    items: pd.DataFrame
    user_profiles: np.ndarray
    item_profiles: np.ndarray
    disclosed: np.ndarray
    wall_seconds: float
    interrupted: bool
    stopped: str | None
    engine: str
    engine_reason: str
    versions: dict[str, str]
    world: World | None = None
    prequential: pd.DataFrame = field(default_factory=pd.DataFrame)
    recommendations: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def user_updates(self) -> np.ndarray:
        """Updates made to each user's profile, int64, shape (n_users,)."""
        return self.users["updates"].to_numpy()

    @property
    def item_updates(self) -> np.ndarray:
        """Updates made to each item's profile, int64, shape (n_items,)."""
        return self.items["updates"].to_numpy()

    @property
    def final(self) -> dict[str, float]:
        """The last row of the probe table by column name; empty where nothing was measured."""
        if self.probes.empty:
            return {}
        return {str(name): value for name, value in self.probes.iloc[-1].items()}

    @property
    def measured(self) -> list[str]:
        """Columns of the probes given, without those that every run has."""
        names = [str(name) for name in self.probes.columns[1:]]
        return names[: names.index("user_updates")] if "user_updates" in names else names

    def prequential_rmse(self, column: str = "predicted", *, after: float = 0.0) -> float:
        """Root mean square error over the ratings that came, each predicted just before; NaN where none came.

        Parameters
        ----------
        column : {"predicted", "item_mean"}
            Whose predictions.
        after : float
            Leave out ratings up to this time, in seconds.
        """
        if column not in ("predicted", "item_mean"):
            raise ValueError(f"column must be 'predicted' or 'item_mean', got {column!r}")
        if self.prequential.empty:
            return math.nan
        table = self.prequential[self.prequential["time"] > after]
        return float(np.sqrt(((table[column] - table["rating"]) ** 2).mean())) if len(table) else math.nan

    def to_target(self, at_most: float, *, metric: str = "test_rmse") -> Milestone:
        """When an error first was at or below a target, and what that had cost in messages and bytes.

        Parameters
        ----------
        at_most : float
            The target.
        metric : str
            Column of the probe table.

        Returns
        -------
        Milestone
            It also says "not reached". The time is that of the first probe at which the target was met, so it is
            as exact as the probes are dense.

        Raises
        ------
        ValueError
            If the run did not measure `metric`.
        """
        return Target(metric, at_most=at_most).find(self.probes)

    def plateau(self, *, window: float, tolerance: float, metric: str = "test_rmse") -> Milestone:
        """When an error first stopped falling; parameters as in `Plateau`.

        Raises
        ------
        ValueError
            If the run did not measure `metric`, or a number is out of range.
        """
        return Plateau(metric, window=window, tolerance=tolerance).find(self.probes)

    def find(self, rule: StopRule) -> Milestone:
        """When a rule was first met."""
        return rule.find(self.probes)

    def disclosures(self, ratings: Ratings | None = None) -> pd.DataFrame:
        """Which ratings left their user's machine.

        Parameters
        ----------
        ratings : Ratings, optional
            The ratings of the world that was run; needed for a result read back from disk.

        Returns
        -------
        pandas.DataFrame
            A row for each rating: `user` and `item` (ids), `routers` that it was sent to (0: it never left).

        Raises
        ------
        ValueError
            If `ratings` are missing or are not those of the run.
        """
        if ratings is None:
            if self.world is None:
                raise ValueError(
                    "ratings must be given, since a result read from disk holds none; pass those of its world"
                )
            ratings = self.world.ratings
        wanted = self.configuration["ratings"]["sha256"]
        if ratings.digest != wanted:
            raise ValueError(
                f"ratings must be those that the run learned from (SHA-256 {wanted[:12]}...), got others "
                f"({ratings.digest[:12]}...); pass the training ratings of the world"
            )
        table = ratings.to_frame()[["user", "item"]]
        table["routers"] = self.disclosed
        return table

    # -- on disk ---------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the result to a folder: all of it or, where that fails, nothing.

        The files are plain: ``result.json`` (configuration, seed, versions, engine), the tables as CSV
        (``probes``, ``accounts``, ``users``, ``routers``, ``items``), and ``arrays.npz`` (last profiles and
        disclosures; no pickles). Neither ratings nor the topology are written; their digests are.

        Parameters
        ----------
        folder : str or path-like
            Is made. Where it holds an earlier result, that is replaced.

        Returns
        -------
        pathlib.Path
            The folder.

        Raises
        ------
        FileExistsError
            If there is something else under this name.
        OSError
            If it cannot be written.
        """
        place = Path(folder)
        if place.exists() and not _replaceable(place):
            raise FileExistsError(
                f"folder must be new, empty or hold an earlier result, got {place} with other files; "
                "name another folder"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        try:
            self._write(made)
            mask = os.umask(0)
            os.umask(mask)
            made.chmod(0o777 & ~mask)
            _put_in_place(made, place)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return place

    def _write(self, folder: Path) -> None:
        head = {"layout": LAYOUT} | {name: getattr(self, name) for name in PLAIN}
        head |= {"versions": self.versions, "configuration": self.configuration}
        head["columns"] = {name: _column_types(getattr(self, name)) for name in TABLES}
        head["rows"] = {name: len(getattr(self, name)) for name in TABLES}
        for name in TABLES:
            # All text is quoted, since a carriage return would end a row otherwise.
            getattr(self, name).to_csv(
                folder / f"{name}.csv", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            )
        np.savez_compressed(
            folder / ARRAYS,
            user_profiles=self.user_profiles,
            item_profiles=self.item_profiles,
            disclosed=self.disclosed,
        )
        (folder / HEAD).write_text(json.dumps(head, indent=2, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Result":
        """Read a result that `save` wrote; the same in every number, without the world.

        Ids that are neither integers nor strings come back as the text that Python shows for them.

        Raises
        ------
        FileNotFoundError
            If the folder holds no result.
        ValueError
            If a file of it is damaged or of a later layout; the message names the file.
        """
        place = Path(folder)
        if not (place / HEAD).is_file():
            raise FileNotFoundError(
                f"folder must hold a saved result, got {place} without {HEAD}; name a folder that Result.save wrote"
            )
        head = _read_head(place / HEAD)
        fields: dict[str, Any] = {name: head[name] for name in (*PLAIN, "versions", "configuration")}
        fields |= {
            name: _read_table(place / f"{name}.csv", head["columns"].get(name, {}), head["rows"].get(name))
            for name in TABLES
            if name in head["columns"] or name not in LATER
        }
        fields |= _read_arrays(place / ARRAYS)
        return cls(**fields)

    # --------------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        state = " (interrupted)" if self.interrupted else f" (stopped: {self.stopped})" if self.stopped else ""
        sent = f", {self.final['sent']:.0f} messages" if not self.probes.empty else ""
        told = f"seed {self.seed}, {self.engine} engine, {len(self.probes)} probes{sent}"
        return f"Result({self.time:g} s simulated{state}, {told})"

    def _repr_html_(self) -> str:
        """Short table for a notebook: the measured columns at the first, the middle and the last probe."""
        shown = ["time", *self.measured, "sent", "bytes_sent"]
        rows = sorted({0, len(self.probes) // 2, len(self.probes) - 1} & set(range(len(self.probes))))
        table = self.probes[[name for name in shown if name in self.probes]].iloc[rows]
        units = {"time": "time (s)", "sent": "messages sent", "bytes_sent": "bytes sent"}
        return f"<p>{escape(repr(self))}</p>" + table.rename(columns=units).to_html(
            index=False, float_format=lambda value: f"{value:.4g}"
        )


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that a run depends on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    versions = {"python": python_version()}
    for name in ("netsim-recommender", "simpy", "numpy", "scipy", "networkx", "numba"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _replaceable(place: Path) -> bool:
    """Whether a folder holds a saved result and nothing else, or nothing at all."""
    if not place.is_dir():
        return False
    found = {path.name for path in place.iterdir()}
    ours = {HEAD, ARRAYS, *(f"{name}.csv" for name in TABLES)}
    return not found or (HEAD in found and found <= ours)


def _put_in_place(made: Path, place: Path) -> None:
    """Rename a finished folder to its name, taking the place of an earlier one."""
    if not place.exists():
        made.rename(place)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    earlier = aside / "earlier"
    try:
        place.rename(earlier)
        made.rename(place)
    except BaseException:
        if earlier.exists():
            earlier.rename(place)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _column_types(table: pd.DataFrame) -> dict[str, str]:
    """Type of each column by name; of ids that are objects, "int" or "str"."""
    return {str(name): _column_type(column) for name, column in table.items()}


def _column_type(column: pd.Series) -> str:
    if column.dtype.kind in "biuf":
        return str(column.dtype)
    return "int" if all(type(each) is int for each in column) else "str"


def _read_head(path: Path) -> dict[str, Any]:
    try:
        head = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not whole JSON ({error}); run again, or restore the file") from error
    head = head if isinstance(head, dict) else {}
    versions = head.get("versions")
    if head.get("layout", LAYOUT) != LAYOUT:
        written_by = versions.get("netsim-recommender", "unknown") if isinstance(versions, dict) else "unknown"
        raise ValueError(
            f"{path}: found layout {head['layout']!r}, expected {LAYOUT}; read it with the version that wrote it "
            f"({written_by})"
        )
    missing = [name for name in ("layout", *PLAIN, *MAPPINGS) if name not in head]
    if missing:
        raise ValueError(f"{path}: lacks {', '.join(missing)}; run again, or restore the file")
    for name in MAPPINGS:
        if not isinstance(head[name], dict):
            raise ValueError(f"{path}: {name} is {head[name]!r}, expected a mapping; run again, or restore the file")
    return head


def _read_table(path: Path, types: dict[str, str], n_rows: int | None) -> pd.DataFrame:
    try:
        text = path.read_bytes().decode("utf-8")
        if not text.endswith("\n"):
            raise ValueError("the last line is not whole")
        table = pd.read_csv(StringIO(text, newline=""), dtype=str, keep_default_na=False) if types else pd.DataFrame()
        if len(table) != n_rows:
            raise ValueError(f"found {len(table)} rows, expected {n_rows}")
        if list(table.columns) != list(types):
            raise ValueError(f"found columns {', '.join(table.columns)}, expected {', '.join(types)}")
        return pd.DataFrame({name: _column(table[name].tolist(), kind) for name, kind in types.items()})
    except FileNotFoundError as error:
        raise ValueError(f"{path}: missing; run again, or restore the file") from error
    except ValueError as error:  # pandas' own are ValueErrors too
        raise ValueError(f"{path}: {error}; run again, or restore the file") from error


def _column(texts: list[str], kind: str) -> pd.Series:
    """Column of the given type from what stands in the file; Python's own reading of floats is exact."""
    if kind == "str":
        return pd.Series(texts) if texts else pd.Series(texts, dtype=object)
    if kind == "int":
        return pd.Series([int(text) for text in texts], dtype=object)
    if kind == "bool":
        wrong = next((text for text in texts if text not in ("True", "False")), None)
        if wrong is not None:
            raise ValueError(f"found {wrong!r}, expected True or False")
        return pd.Series([text == "True" for text in texts], dtype=bool)
    if kind.startswith("float"):
        return pd.Series([float(text or "nan") for text in texts], dtype=kind)
    return pd.Series([int(text) for text in texts], dtype=kind)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:  # np.load leaves a damaged file open
            return {name: arrays[name] for name in ("user_profiles", "item_profiles", "disclosed")}
    except Exception as error:  # numpy and zipfile raise many kinds for a damaged file
        raise ValueError(f"{path}: cannot be read ({error}); run again, or restore the file") from error
