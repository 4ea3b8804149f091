"""Reader of rating files: delimited text, one rating a line, in the forms that people keep them in.

pandas reads a sound file. Any doubt goes to a slow pass, which alone decides: it names the first
line that cannot be read, or reads the file itself.
"""

import codecs
import csv
import io
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.datasets.errors import DataError
from algorithms.datasets.fields import SPACE, WHITESPACE, integer_ids, joined, number, quoted, records, separator_name
from algorithms.datasets.layouts import Columns, Form, Layout, find_layout
from algorithms.datasets.sources import Source, Text, read_text
from algorithms.datasets.tables import Ids, Keep, Policy, Table, Zero
from algorithms.ratings import Ratings, Scale

__all__ = ["read_ratings", "read_table"]

logger = logging.getLogger(__name__)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

CONTROLS = bytes(each for each in range(32) if each not in b"\t\n")
# What pandas finds between fields where the separator is of more than one byte.
STAND_IN = b"\x1f"
FEW = 0.01


def read_ratings(
    source: Source,
    *,
    separator: str | None = None,
    header: bool | None = None,
    columns: Columns | None = None,
    keep: Keep = "error",
    zero: Zero = "rating",
    scale: Scale | tuple[float, float] | None = None,
    text_ids: bool = False,
    encoding: str = "utf-8",
) -> Ratings:
    r"""Read a file of ratings: one a line, as user, item, rating and perhaps timestamp.

    Nothing is guessed from a line that does not fit: it is an error that names file and line. Blank
    lines are passed over. Lines end in ``\n``, ``\r\n`` or, all of them, ``\r``; the last may lack
    its end. With a separator of one character, fields may stand in double quotes.

    Parameters
    ----------
    source : str, path-like, or file open for reading
        The file, plain or packed by gzip; in text or binary mode where it is open.
    separator : str, optional
        What stands between fields; ``"whitespace"`` for any run of spaces and tabs. By default the
        one of tab, ``::``, ``;``, ``,``, ``|`` and whitespace with which most of the first lines read
        as ratings.
    header : bool, optional
        Whether the first line names the columns. By default it does where it holds usual names for
        user, item and rating (``userId``, ``movieId``, ``rating``, ...).
    columns : mapping of str to int or str, optional
        Where to find ``"user"``, ``"item"``, ``"rating"`` and perhaps ``"timestamp"``: position from
        0, or name in the header. All others are then left out. By default the columns follow from
        the header, or are these in this order, and any other column is an error.
    keep : {"error", "first", "last", "mean"}, optional
        What to do where a pair of user and item stands more than once: refuse, keep one rating in
        the order of the file, or keep their mean with the last timestamp.
    zero : {"rating", "missing"}, optional
        Whether 0 is a rating like others, or says that there is none.
    scale : Scale or (low, high), optional
        The lowest and the highest rating that can be given; any other is an error. The least and
        the greatest one in the file by default.
    text_ids : bool, optional
        Leave all ids text. By default a column of ids becomes int where each is written as an
        integer; ``007`` is not, as it would become the same as ``7``.
    encoding : str, optional
        Encoding of the file; a byte order mark in it goes before.

    Returns
    -------
    Ratings
        With timestamps where the file has them.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DataError
        When the file does not hold what is said above. Names file, line, what was found and what was
        expected.
    ValueError
        When an argument is not one of those listed.
    TypeError
        When `source` is neither a path nor an open file.
    """
    form = Form(separator=separator, header=header, columns=columns)
    policy = Policy(keep=keep, zero=zero, scale=scale)
    return read_table(read_text(source, encoding=encoding), form, text_ids=text_ids).ratings(policy)


@dataclass(frozen=True, eq=False)
class _Columns:
    """What a pass has read: ids as codes and text, the line of each row, and decimal points in ratings."""

    user: tuple[IntArray, list[str]]
    item: tuple[IntArray, list[str]]
    value: FloatArray
    timestamp: FloatArray | None
    line: IntArray
    n_points: int = 0


def read_table(text: Text, form: Form, *, text_ids: bool = False) -> Table:
    """Read the rows of a rating file, without judging their values.

    Parameters
    ----------
    text : Text
        The file.
    form : Form
        What is known of its layout.
    text_ids : bool, optional
        Leave all ids text.

    Returns
    -------
    Table
        One row a rating, placed by line.

    Raises
    ------
    DataError
        As `read_ratings`.
    """
    layout = find_layout(text, form)
    logger.debug("%s: %s, header: %s", text.name, layout, layout.has_header)
    columns = _read_fast(text, layout)
    if columns is None:
        columns = _read_strictly(text, layout)
    return Table(
        name=text.name,
        user=_ids(text.name, "users", *columns.user, text_ids=text_ids),
        item=_ids(text.name, "items", *columns.item, text_ids=text_ids),
        value=columns.value,
        timestamp=columns.timestamp,
        place=columns.line,
        at=lambda line: f"{text.name}, line {line}",
    )


def _ids(name: str, side: str, code: IntArray, distinct: list[str], *, text_ids: bool) -> Ids:
    if text_ids:
        return Ids(code, distinct)
    integers = integer_ids(distinct)
    n_text = integers.count(None)
    if n_text == 0:
        return Ids(code, [each for each in integers if each is not None])
    if n_text <= FEW * len(distinct):
        odd = distinct[integers.index(None)]
        logger.warning(
            "%s: ids of %s are kept as text, as %d of %d are no integers, for instance %r; correct them if they "
            "should be",
            name,
            side,
            n_text,
            len(distinct),
            odd,
        )
    return Ids(code, distinct)


def _read_fast(text: Text, layout: Layout) -> _Columns | None:
    """Read a file that is sound beyond doubt; None says that a closer look is needed."""
    data, mark = text.data, b"\t" if layout.separator == WHITESPACE else layout.separator.encode()
    if data.endswith(b"\n\n"):
        data = data.rstrip(b"\n")
    if len(data.translate(None, CONTROLS if len(mark) > 1 else CONTROLS.replace(mark, b""))) < len(data):
        return None
    has_quotes = b'"' in data
    if has_quotes and (layout.separator == WHITESPACE or len(mark) > 1 or not _has_plain_quotes(data, mark)):
        return None
    if len(mark) > 1:
        data, mark = data.replace(mark, STAND_IN), STAND_IN
    start = _start(data, layout.first_line)
    if data.startswith(codecs.BOM_UTF8, start):  # not the file's, but pandas would drop it here
        return None
    body = _Body(data, start, mark, has_quotes)
    columns = _parsed(body, layout, ids="int64") if _has_only_integers(body) else None
    return columns if columns is not None else _parsed(body, layout, ids="object")


@dataclass(frozen=True)
class _Body:
    """Lines that pandas may read: from `start` on, with a `mark` of one byte between fields."""

    data: bytes
    start: int
    mark: bytes
    has_quotes: bool


def _parsed(body: _Body, layout: Layout, *, ids: str) -> _Columns | None:
    file = io.BytesIO(body.data)
    file.seek(body.start)
    # As object, text stays as it is written (pandas shares one object among equal fields). As category it
    # would not: pandas 3.1 makes numbers of categories, and so 007 and 7 the same.
    dtypes = dict.fromkeys(range(layout.width), "object")
    dtypes |= {layout.columns["user"]: ids, layout.columns["item"]: ids}
    if "timestamp" in layout.columns:
        dtypes[layout.columns["timestamp"]] = "float64"
    try:
        with np.errstate(invalid="ignore"):  # pandas tries whether a column of decimals is one of integers
            frame = pd.read_csv(
                file,
                sep=r"\s+" if layout.separator == WHITESPACE else body.mark.decode(),
                header=None,
                dtype=dtypes,
                na_filter=False,
                skip_blank_lines=False,
                quoting=csv.QUOTE_MINIMAL if body.has_quotes else csv.QUOTE_NONE,
            )
    except (ValueError, OverflowError):  # pandas' own parser errors are ValueErrors
        return None
    n_lines = body.data.count(b"\n", body.start) + (not body.data.endswith(b"\n"))
    if frame.shape != (n_lines, layout.width):
        return None
    columns = _from_frame(frame, layout)
    if columns is None or (ids == "int64" and columns.n_points < body.data.count(b".", body.start)):
        return None  # to pandas 7.0 is an integer, too
    return columns


def _has_only_integers(body: _Body) -> bool:
    """Whether an integer read from a field and written again is the field, but for a decimal point."""
    between = b" \t" if body.mark == b"\t" else body.mark
    if body.data[body.start :].translate(None, b"0123456789.\n" + between):
        return False
    # With the line end before the first field, if there is one.
    byte = np.frombuffer(b"\n" + body.data[body.start :], dtype=np.uint8)
    is_digit = byte - np.uint8(ord("0")) < 10
    before = ~is_digit & (byte != ord("."))
    return not (before[:-2] & (byte[1:-1] == ord("0")) & is_digit[2:]).any()


def _has_plain_quotes(data: bytes, mark: bytes) -> bool:
    """Whether quotes stand around whole fields only, with neither quotes nor line ends inside."""
    other = re.escape(mark)
    field = rb'(?:"[^"\n]*+"|[^"\n' + other + rb"]*+)"
    return re.fullmatch(rb"(?:" + field + rb"[\n" + other + rb"])*+" + field, data) is not None


def _start(data: bytes, line: int) -> int:
    """Where a line begins; at the end where there is no such line."""
    start = 0
    for _ in range(line - 1):
        start = data.find(b"\n", start) + 1
        if start == 0:
            return len(data)
    return start


def _from_frame(frame: pd.DataFrame, layout: Layout) -> _Columns | None:
    last = frame[layout.width - 1]
    if last.dtype == object and (last == "").any():
        return None  # perhaps a line that is too short: pandas fills it up
    user, item, (code, texts) = (_coded(frame[layout.columns[role]]) for role in ("user", "item", "rating"))
    values = [number(each) for each in texts]
    if "" in user[1] or "" in item[1] or None in values:
        return None
    timestamp = None
    if "timestamp" in layout.columns:
        timestamp = frame[layout.columns["timestamp"]].to_numpy(dtype=np.float64)
        # pandas reads whole numbers exactly; of others it may miss the nearest float.
        if not ((np.abs(timestamp) < 2**53) & (timestamp == np.floor(timestamp))).all():
            return None
    return _Columns(
        user=user,
        item=item,
        value=np.array(values, dtype=np.float64)[code],
        timestamp=timestamp,
        line=np.arange(len(frame)) + layout.first_line,
        n_points=int(np.bincount(code) @ np.array([each.count(".") for each in texts])),
    )


def _coded(column: "pd.Series[str]") -> tuple[IntArray, list[str]]:
    code, texts = pd.factorize(column.to_numpy())
    number_of, distinct = _factorized([str(each).strip(SPACE) for each in texts.tolist()])
    return number_of[code], distinct


def _factorized(ids: Sequence[str]) -> tuple[IntArray, list[str]]:
    """Number ids by first appearance."""
    numbers: dict[str, int] = {}
    code = np.array([numbers.setdefault(each, len(numbers)) for each in ids], dtype=np.int64)
    return code, list(numbers)


def _read_strictly(text: Text, layout: Layout) -> _Columns:
    rows = [(line, *_row(text.name, line, fields, layout)) for line, fields in _records_after_header(text, layout)]
    if not rows:
        raise DataError.about(
            text.name, found="a header and nothing else", expected=f"lines of {layout}", mend="get a fresh copy"
        )
    line, user, item, value, timestamp = zip(*rows, strict=True)
    return _Columns(
        user=_factorized(user),
        item=_factorized(item),
        value=np.array(value, dtype=np.float64),
        timestamp=np.array(timestamp, dtype=np.float64) if "timestamp" in layout.columns else None,
        line=np.array(line, dtype=np.int64),
    )


def _records_after_header(text: Text, layout: Layout) -> "islice[tuple[int, list[str]]]":
    return islice(records(text.name, text.data.decode(), layout.separator), int(layout.has_header), None)


def _row(name: str, line: int, fields: Sequence[str], layout: Layout) -> tuple[str, str, float, float]:
    if len(fields) != layout.width:
        raise DataError.at(
            name,
            line,
            found=f"{len(fields)} columns in {quoted(joined(fields, layout.separator))}",
            expected=f"{layout} as in line {layout.width_line}",
            mend=_mend(len(fields), layout.width),
        )
    columns = layout.columns
    user, item = fields[columns["user"]].strip(SPACE), fields[columns["item"]].strip(SPACE)
    value = number(fields[columns["rating"]])
    timestamp = number(fields[columns["timestamp"]]) if "timestamp" in columns else 0.0
    _check_id(name, line, "user", user, layout)
    _check_id(name, line, "item", item, layout)
    if value is None:
        raise _no_number(name, line, "rating", fields, layout)
    if timestamp is None:
        raise _no_number(name, line, "timestamp", fields, layout)
    return user, item, value, timestamp


def _mend(n_found: int, n_expected: int) -> str:
    if n_found < n_expected:
        return "complete the line or delete it"
    if n_found in (2 * n_expected - 1, 2 * n_expected):
        return "break the line in two where a newline is missing, or get a fresh copy of the file"
    return "delete the columns in excess, or quote the field that holds a separator"


def _check_id(name: str, line: int, role: str, given: str, layout: Layout) -> None:
    if not given:
        raise DataError.at(
            name, line, found=f"an empty {role} id", expected=str(layout), mend="complete the line or delete it"
        )
    if given[0] == '"' and (layout.separator == WHITESPACE or len(layout.separator) > 1):
        raise DataError.at(
            name,
            line,
            found=f"{role} id {quoted(given)}",
            expected=f"no quotes in a file separated by {separator_name(layout.separator)}",
            mend="take the quotes out, or pass a separator= of one character, such as ' '",
        )


def _no_number(name: str, line: int, role: str, fields: Sequence[str], layout: Layout) -> DataError:
    field = fields[layout.columns[role]]
    expected, mend = "a finite decimal number", "correct the line or delete it"
    if line == layout.width_line:
        expected += ", or a header line with the usual names of user, item and rating"
        mend = "pass header=True and columns= if this line names the columns, or correct it"
    elif number(field.replace(",", ".", 1)) is not None:
        mend = "write the decimal comma as a point"
    elif role == "timestamp":
        mend = "correct the line, or leave the timestamp out of columns="
    return DataError.at(name, line, found=f"{role} {quoted(field)}", expected=expected, mend=mend)
