"""Strict reader of delimited text files that hold whole numbers only.

pandas reads a sound file. Any doubt goes to a slow pass, which alone decides: it names the first
line that breaks the format, or reads the file itself.
"""

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.datasets.errors import DataError

__all__ = ["Column", "read_integers"]

BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST_QUOTE = 60
MOST_NAMES = 8


@dataclass(frozen=True)
class Column:
    """One column of whole numbers.

    Parameters
    ----------
    name : str
        What it holds, as an error message says it.
    low, high : int
        The least and the greatest number that can stand in it; below 2**63.
    """

    name: str
    low: int
    high: int

    def __str__(self) -> str:
        return f"an integer from {self.low} to {self.high}"


def read_integers(path: Path, columns: Sequence[Column], *, separator: str = "\t") -> NDArray[np.int64]:
    r"""Read a file of whole numbers, one row a line, and refuse whatever else it holds.

    Parameters
    ----------
    path : pathlib.Path
        The file. Lines end in ``\n`` or ``\r\n``; the last may lack its end.
    columns : sequence of Column
        What each line holds.
    separator : str, optional
        One ASCII character.

    Returns
    -------
    ndarray of int64, shape (n_lines, n_columns)
        Row k is line k + 1 of the file.

    Raises
    ------
    DataError
        When the file is empty or a line breaks the format; names the first such line.
    FileNotFoundError
        When there is no such file.
    """
    data = path.read_bytes()
    table = _read_fast(data, columns, separator)
    return table if table is not None else _read_strictly(path, data, columns, separator)


def _read_fast(data: bytes, columns: Sequence[Column], separator: str) -> NDArray[np.int64] | None:
    """Read a file that is sound beyond doubt; None says that a closer look is needed."""
    odd_bytes = data.translate(None, b"0123456789\r\n" + separator.encode("ascii"))
    if odd_bytes or data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=separator,
            header=None,
            dtype=np.int64,
            na_filter=False,
            skip_blank_lines=False,
        )
    except (ValueError, OverflowError):  # pandas' own parser errors are ValueErrors
        return None
    table = frame.to_numpy(dtype=np.int64)
    if table.shape[1] != len(columns):
        return None
    low = np.array([column.low for column in columns], dtype=np.int64)
    high = np.array([column.high for column in columns], dtype=np.int64)
    return table if ((low <= table) & (table <= high)).all() else None


def _read_strictly(path: Path, data: bytes, columns: Sequence[Column], separator: str) -> NDArray[np.int64]:
    if not data:
        raise DataError.at(
            path, 1, found="an empty file", expected=_layout(columns), mend="get a fresh copy of the file"
        )
    if data.startswith(BYTE_ORDER_MARKS):
        raise DataError.at(
            path,
            1,
            found="a byte order mark",
            expected=_layout(columns),
            mend="save the file as plain ASCII text, without a mark",
        )
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    rows = [_row(path, number, line, columns, separator) for number, line in enumerate(lines, start=1)]
    return np.array(rows, dtype=np.int64)


def _row(path: Path, number: int, line: bytes, columns: Sequence[Column], separator: str) -> list[int]:
    line = line.removesuffix(b"\r")
    if b"\r" in line:
        raise DataError.at(
            path,
            number,
            found="a carriage return inside the line",
            expected="lines that end in a newline",
            mend="convert the line ends to those of Unix",
        )
    fields = line.split(separator.encode("ascii"))
    if number == 1 and not any(map(_is_integer, fields)):
        raise DataError.at(
            path,
            number,
            found=f"the text {_quoted(line)}",
            expected=_layout(columns),
            mend="delete a header line",
        )
    if len(fields) != len(columns):
        raise DataError.at(
            path,
            number,
            found=f"{len(fields)} columns in {_quoted(line)}",
            expected=_layout(columns),
            mend=_mend(len(fields), len(columns)),
        )
    for field, column in zip(fields, columns, strict=True):
        if not (_is_integer(field) and column.low <= int(field) <= column.high):
            raise DataError.at(
                path,
                number,
                found=f"{column.name} {_quoted(field)}",
                expected=str(column),
                mend="correct the line or get a fresh copy of the file",
            )
    return [int(field) for field in fields]


def _mend(n_found: int, n_expected: int) -> str:
    if n_found < n_expected:
        return "complete the line or delete it"
    if n_found == 2 * n_expected - 1:
        return "break the line in two where a newline is missing, or get a fresh copy of the file"
    return "delete the columns in excess"


def _is_integer(field: bytes) -> bool:
    return field.removeprefix(b"-").isdigit()  # of bytes, isdigit knows only 0 to 9


def _layout(columns: Sequence[Column]) -> str:
    names = [column.name for column in columns]
    if len(names) > MOST_NAMES:
        names[2:-1] = ["..."]
    return f"{len(columns)} columns ({', '.join(names)})"


def _quoted(content: bytes) -> str:
    text = content.decode("utf-8", errors="backslashreplace")
    return repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...")
