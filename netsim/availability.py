"""Measured comings and goings: traces of who was online when, read from a text file and replayed by nodes.

The format of the file is described in `docs/availability-traces.md`.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from algorithms.datasets.errors import DataError
from algorithms.datasets.sources import read_text
from netsim.topology._checks import as_number

__all__ = ["AvailabilityTrace", "Segment", "end_times", "read_availability_trace"]

AFTER = ("repeat", "offline", "online")
OFFSET = ("random", "none")

# Up to here float64 tells whole milliseconds apart: 285 thousand years.
LONGEST = 2**53

_WHOLE = re.compile(r"[0-9]+", re.ASCII)
_LAYOUT = "'id firstState startMs tz d1 d2 ...'"


@dataclass(frozen=True, repr=False)
class Segment:
    """One node watched without a gap: sessions online and offline in turn.

    Parameters
    ----------
    name : str
        Whose sessions they are. Several segments may bear one name.
    online : bool
        Whether the first session is online.
    milliseconds : iterable of int
        Lengths of the sessions, > 0; at least one, together less than 2**53.

    Raises
    ------
    ValueError
        If an argument is not as described.
    """

    name: str
    online: bool
    milliseconds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(
                f"Segment: name must be a text that is not empty, got {self.name!r}; pass for instance 'a'"
            )
        if not isinstance(self.online, bool | np.bool_):
            raise ValueError(f"Segment {self.name!r}: online must be True or False, got {self.online!r}")
        object.__setattr__(self, "online", bool(self.online))
        object.__setattr__(self, "milliseconds", _as_milliseconds(self.milliseconds, f"Segment {self.name!r}"))

    @property
    def lengths(self) -> tuple[float, ...]:
        """Lengths of the sessions in seconds."""
        return tuple(length / 1000 for length in self.milliseconds)

    @cached_property
    def total(self) -> int:
        """Length of the segment in milliseconds."""
        return sum(self.milliseconds)

    @cached_property
    def total_online(self) -> int:
        """Time online in milliseconds."""
        return sum(self.milliseconds[0 if self.online else 1 :: 2])

    def __repr__(self) -> str:
        return (
            f"Segment({self.name!r}, {'online' if self.online else 'offline'} first, "
            f"{len(self.milliseconds)} sessions, {self.total / 1000:g} s)"
        )


def _as_milliseconds(given: Iterable[int], where: str) -> tuple[int, ...]:
    """Take the lengths of sessions as a tuple of Python integers."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(
            f"{where}: milliseconds must be a list of integers, got {given!r}; pass for instance [500, 1500]"
        )
    lengths = tuple(given)
    for number, length in enumerate(lengths, start=1):
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length <= 0:
            raise ValueError(
                f"{where}: milliseconds must be integers > 0, got {length!r} for session {number}; round it, or leave "
                "it out and join the sessions around it"
            )
    if not lengths:
        raise ValueError(f"{where}: milliseconds must hold one session or more, got none; leave the segment out")
    whole = tuple(map(int, lengths))
    if sum(whole) >= LONGEST:
        raise ValueError(
            f"{where}: milliseconds must sum to less than 2**53, got {sum(whole)}; check that they are milliseconds"
        )
    return whole


@dataclass(frozen=True, repr=False)
class AvailabilityTrace:
    """Nodes come and go as measured: each follows a segment that is assigned to it by chance.

    Parameters
    ----------
    segments : iterable of Segment
        At least one.
    after : {"repeat", "offline", "online"}
        What a node does at the end of its segment: begin it again, or stay offline or online for good. Where a
        segment that is repeated ends in the state that it begins with, the last session and the first are one.
    offset : {"random", "none"}
        Whether a node starts at a time of its segment that is drawn uniformly, or at its beginning.

    Raises
    ------
    ValueError
        If an argument is not as described.
    """

    segments: tuple[Segment, ...]
    _: KW_ONLY
    after: Literal["repeat", "offline", "online"] = "repeat"
    offset: Literal["random", "none"] = "random"

    def __post_init__(self) -> None:
        given: object = self.segments
        segments = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else ()
        if not segments:
            raise ValueError(
                f"AvailabilityTrace: segments must be a list of one Segment or more, got {given!r}; "
                "read them with read_availability_trace"
            )
        for each in segments:
            if not isinstance(each, Segment):
                raise ValueError(
                    f"AvailabilityTrace: segments must hold Segment only, got {each!r}; pass for instance "
                    "Segment('a', True, [500, 1500])"
                )
        object.__setattr__(self, "segments", segments)
        for name, choices in (("after", AFTER), ("offset", OFFSET)):
            value = getattr(self, name)
            if value not in choices:
                expected = " or ".join(map(repr, choices))
                raise ValueError(f"AvailabilityTrace: {name} must be {expected}, got {value!r}; pass one of these")

    @property
    def availability(self) -> float:
        """Share of the time of all segments that is online: a long segment counts for more."""
        return sum(each.total_online for each in self.segments) / sum(each.total for each in self.segments)

    @property
    def n_sessions(self) -> int:
        """Number of sessions in all segments."""
        return sum(len(each.milliseconds) for each in self.segments)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the segments, in hexadecimal: what a description of a world can show instead of them."""
        digest = hashlib.sha256()
        for each in self.segments:
            digest.update(repr((each.name, each.online, each.milliseconds)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def __hash__(self) -> int:
        return hash((self.digest, self.after, self.offset))

    def __repr__(self) -> str:
        return (
            f"AvailabilityTrace({len(self.segments)} segments, {self.n_sessions} sessions, availability "
            f"{self.availability:.3g}, after={self.after!r}, offset={self.offset!r})"
        )


def end_times(segment: Segment) -> np.ndarray:
    """Ends of the sessions in seconds from the start of the segment, float64, shape (number of sessions,).

    Each is a whole number of milliseconds divided by 1000, so rounding does not add up.

    Parameters
    ----------
    segment : Segment
    """
    ends: np.ndarray = np.cumsum(np.array(segment.milliseconds, dtype=np.int64)) / 1000.0
    return ends


def read_availability_trace(
    path: str | PathLike[str],
    *,
    after: Literal["repeat", "offline", "online"] = "repeat",
    offset: Literal["random", "none"] = "random",
    least_seconds: float = 0.0,
) -> AvailabilityTrace:
    """Read an availability trace: one segment `id firstState startMs tz d1 d2 ...` a line.

    firstState is 1 for online and 0 for offline; d1, d2, ... are the lengths of the sessions in whole milliseconds, of
    that state and the other in turn. Blank lines and lines that start with "#" are skipped. startMs and tz are checked
    and not used. The format is that of the STUNner data set, and described in `docs/availability-traces.md`.

    Parameters
    ----------
    path : path
        The file, UTF-8, plain or packed by gzip.
    after, offset : str
        As for `AvailabilityTrace`.
    least_seconds : float
        In sessions shorter than this a node stays as it was: they are joined to the session before, and those that
        a segment begins with to the first that is long enough. Where none is, the segment becomes one session, of the
        state that takes up more of it. A session of 0 ms is always joined so. The time of a segment does not change.

    Returns
    -------
    AvailabilityTrace
        Segments in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If an argument is out of range, the file is not text, a line is malformed (DataError, which names file, line
        and field), or there is no segment.

    References
    ----------
    A. Berta, V. Bilicki and M. Jelasity, "Defining and understanding smartphone churn over the Internet: a measurement
    study", IEEE P2P 2014.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        found = "a folder" if file.is_dir() else "nothing there"
        raise FileNotFoundError(
            f"path must name a file of sessions, got {str(file)!r}: found {found}; correct the path"
        )
    least = as_number(least_seconds)
    if not 0 <= least < math.inf:
        raise ValueError(
            f"least_seconds must be a finite number of seconds >= 0, got {least_seconds!r}; pass for instance 10"
        )
    segments = tuple(_read_segments(file, 1000 * least))
    if not segments:
        raise DataError.about(
            file, found="no segment", expected=f"lines {_LAYOUT}", mend="check that it is the file you mean"
        )
    return AvailabilityTrace(segments, after=after, offset=offset)


def _read_segments(file: Path, least: float) -> Iterator[Segment]:
    """Segments of a file, without sessions shorter than `least` milliseconds."""
    for number, line in enumerate(read_text(file).data.decode().split("\n"), start=1):
        fields = line.split()
        if fields and not fields[0].startswith("#"):
            yield _read_segment(_Line(file, number), fields, least)


@dataclass(frozen=True)
class _Line:
    """A line of a file, to be named in errors."""

    file: Path
    number: int

    def error(self, found: str, expected: str, mend: str) -> DataError:
        return DataError.at(self.file, self.number, found=found, expected=expected, mend=mend)


def _read_segment(line: _Line, fields: list[str], least: float) -> Segment:
    if len(fields) < 5:
        raise line.error(
            f"{len(fields)} fields",
            f"five or more, {_LAYOUT}",
            "delete the line where nothing is known of the node, else add its sessions",
        )
    name, state, start, zone = fields[:4]
    if state not in ("0", "1"):
        raise line.error(f"firstState {state!r} (field 2)", "1 for online or 0 for offline", "correct the field")
    if not _WHOLE.fullmatch(start.removeprefix("-")):
        raise line.error(
            f"startMs {start!r} (field 3)", "a whole number of milliseconds since 1970", "write 0 where it is unknown"
        )
    try:
        known_zone = math.isfinite(float(zone))
    except ValueError:
        known_zone = False
    if not known_zone:
        raise line.error(f"tz {zone!r} (field 4)", "a number of hours such as 2 or -5", "write 0 where it is unknown")
    online, milliseconds = _joined(state == "1", _read_lengths(line, fields), least)
    return Segment(name, online, milliseconds)


def _read_lengths(line: _Line, fields: list[str]) -> list[int]:
    """Lengths of the sessions of a line in milliseconds, zeros included."""
    for position, text in enumerate(fields[4:], start=1):
        if not _WHOLE.fullmatch(text) or len(text) > 16:
            raise line.error(
                f"d{position} {text!r} (field {position + 4})",
                "a whole number of milliseconds >= 0, below 2**53",
                "round it; convert it where it is in another unit",
            )
    lengths = [int(text) for text in fields[4:]]
    if not 0 < sum(lengths) < LONGEST:
        raise line.error(
            f"sessions that sum to {sum(lengths)} ms",
            "more than 0 and less than 2**53",
            "delete the line where it is 0, else check that the lengths are milliseconds",
        )
    return lengths


def _joined(online: bool, lengths: list[int], least: float) -> tuple[bool, tuple[int, ...]]:
    """Join sessions of 0 ms or less than `least` ms to those before; returns the first state and the lengths."""
    first: bool | None = None
    kept: list[int] = []
    waiting = 0  # ms before the first session that is long enough
    for position, length in enumerate(lengths):
        state = online == (position % 2 == 0)
        if first is None and (length == 0 or length < least):
            waiting += length
        elif first is None:
            first = state
            kept.append(waiting + length)
        elif length == 0 or length < least or state == (first == (len(kept) % 2 == 1)):
            kept[-1] += length
        else:
            kept.append(length)
    if first is not None:
        return first, tuple(kept)
    time_online = sum(lengths[0 if online else 1 :: 2])
    return 2 * time_online >= waiting, (waiting,)
