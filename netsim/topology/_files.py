"""What the readers of topology files share: the file, its lines, and numbers in the file's unit."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from netsim.topology._checks import as_number, as_seconds

__all__ = ["checked_default", "checked_scale", "existing", "lines", "parse_number", "scaled"]


def existing(path: str | PathLike[str]) -> Path:
    """Return the path of a file that is there; a `FileNotFoundError` where it is not."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"path must name a topology file, got {str(file)!r}, which is no file (looked in {Path.cwd()}); correct it"
        )
    return file


def lines(file: Path, comments: str | None, skip_lines: int) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of each line that is left without comments and blanks.

    Gzip is known by its first bytes, whatever the file's name. The text is UTF-8, with any line ends.
    """
    content = _decompressed(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file}, line {number}: expected UTF-8 text, got {error}; convert the file") from error
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        kept = line.split(comments, 1)[0] if comments else line
        if number > skip_lines and kept.strip():
            yield number, kept.rstrip("\n")


def _decompressed(file: Path) -> bytes:
    content = file.read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{file}: expected a whole gzip file, got {error}; fetch it again") from error


def parse_number(value: object) -> float:
    """Return a number or the text of one as a float, NaN where it is neither."""
    if not isinstance(value, str):
        return as_number(value)
    try:
        return float(value)
    except ValueError:
        return math.nan


def scaled(value: object, scale: float, name: str, where: str) -> float:
    """Return a value of the file in seconds."""
    seconds = parse_number(value) * scale
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(
            f"{name} must be a finite number >= 0, got {value!r}{where}; correct it in the file "
            f"(scale={scale} turns the file's unit into seconds)"
        )
    return seconds + 0.0


def checked_default(default_latency: float | None) -> float | None:
    """Return the default as seconds, or None."""
    return None if default_latency is None else as_seconds(default_latency, name="default_latency")


def checked_scale(scale: float) -> float:
    """Return the scale, a finite number > 0."""
    number = as_number(scale)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(
            f"scale must be a finite number > 0, got {scale!r}; pass the seconds in the file's unit, e.g. 1e-3 for ms"
        )
    return number
