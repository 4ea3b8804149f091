"""Fields of delimited text: how a line falls into them, and which of them are numbers and ids."""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from algorithms.datasets.errors import DataError

__all__ = ["SPACE", "WHITESPACE", "integer_ids", "joined", "number", "quoted", "records", "separator_name"]

WHITESPACE = "whitespace"
SPACE = " \t\xa0"  # what may stand around a field: space, tab, no-break space
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# As integers are written. An id 007 or +7 stays text: as a number it would be the same as 7.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
LONGEST_QUOTE = 60


def number(field: str) -> float | None:
    """Read a decimal number.

    Parameters
    ----------
    field : str
        ASCII digits with optional sign, point and exponent, and space around them.

    Returns
    -------
    float or None
        None where it is not a finite number: ``0x10``, ``1_000``, ``nan`` and ``1,5`` are none.
    """
    text = field.strip(SPACE)
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def integer_ids(ids: Iterable[str]) -> list[int | None]:
    """Read ids as integers where they are written as such.

    Parameters
    ----------
    ids : iterable of str
        Ids without space around them.

    Returns
    -------
    list of int or None
        None where an id is not an integer of 64 bits in its usual form.
    """
    return [_integer(each) for each in ids]


def _integer(text: str) -> int | None:
    if not INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def records(name: str, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Break text into lines and these into fields; blank lines are left out.

    With a separator of one character, fields may stand in double quotes (RFC 4180).

    Parameters
    ----------
    name : str
        The file, for errors.
    text : str
        Its content.
    separator : str
        What stands between fields; `WHITESPACE` for any run of spaces and tabs.

    Yields
    ------
    line : int
        Number of the line, from 1, on which the fields begin.
    fields : list of str
        As they stand.

    Raises
    ------
    DataError
        When quotes do not match.
    """
    if separator == WHITESPACE or len(separator) > 1:
        yield from _split(text, separator)
        return
    # csv takes no space for a separator where it skips spaces.
    reader = csv.reader(
        io.StringIO(text, newline="\n"), delimiter=separator, skipinitialspace=separator != " ", strict=True
    )
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError.at(
                name,
                line,
                found=f"a field that cannot be read ({error})",
                expected='quotes only around a whole field, and "" for a quote inside',
                mend="correct the line",
            ) from None
        if len(fields) > 1 or "".join(fields).strip(SPACE):
            yield line, fields


def _split(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip(SPACE):
            if separator == WHITESPACE:
                yield line, [field for field in content.replace("\t", " ").split(" ") if field]
            else:
                yield line, content.split(separator)


def joined(fields: Sequence[str], separator: str) -> str:
    """Put a line together again, as an error message shows it.

    Parameters
    ----------
    fields : sequence of str
        As `records` gives them.
    separator : str
        As it takes it.

    Returns
    -------
    str
        Without the quotes that stood around fields.
    """
    return (" " if separator == WHITESPACE else separator).join(fields)


def separator_name(separator: str) -> str:
    """Name a separator, as an error message says it.

    Parameters
    ----------
    separator : str
        As `records` takes it.

    Returns
    -------
    str
        For instance ``tabs``.
    """
    return {WHITESPACE: "spaces or tabs", "\t": "tabs", " ": "single spaces"}.get(separator, repr(separator))


def quoted(content: str) -> str:
    """Quote what a file holds, shortened.

    Parameters
    ----------
    content : str
        A field or a line.

    Returns
    -------
    str
        Its `repr`, of at most some 60 characters.
    """
    return repr(content if len(content) <= LONGEST_QUOTE else f"{content[:LONGEST_QUOTE]}...")
