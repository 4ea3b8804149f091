"""How a rating file is laid out: its separator, its header line, and which column holds what."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from algorithms.datasets.errors import DataError
from algorithms.datasets.fields import SPACE, WHITESPACE, joined, number, quoted, records, separator_name
from algorithms.datasets.headers import REQUIRED, ROLES, known_columns
from algorithms.datasets.sources import Text

__all__ = ["Columns", "Form", "Layout", "find_layout"]

Columns = Mapping[str, int | str]

# In this order where several explain a file as well: a field may hold a comma more easily than a tab.
SEPARATORS = ("\t", "::", ";", ",", "|", WHITESPACE)
BLANK = SPACE + "\n"
SAMPLE_BYTES, SAMPLE_RECORDS = 2**16, 100


@dataclass(frozen=True)
class Form:
    """What a caller says of the layout of a file.

    Parameters
    ----------
    separator : str, optional
        What stands between fields; found out by default.
    header : bool, optional
        Whether the first line names the columns; found out by default.
    columns : mapping of str to int or str, optional
        Position, from 0, or name of the column of each role.

    Raises
    ------
    ValueError
        When an argument is none of these.
    """

    separator: str | None = None
    header: bool | None = None
    columns: Columns | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and not _is_separator(self.separator):
            raise ValueError(
                f"separator must be text that no number, quote or line end can hold, got {self.separator!r}; "
                f"pass for instance '\\t', '::' or {WHITESPACE!r} for any run of spaces and tabs"
            )
        if self.header not in (None, True, False):
            raise ValueError(f"header must be True, False or None, got {self.header!r}; pass one of these")
        if self.columns is not None:
            _check_columns(self.columns)
            if self.header is False and self.has_names:
                raise ValueError(
                    f"columns must be positions where header=False, got {dict(self.columns)!r}; count from 0"
                )

    @property
    def has_names(self) -> bool:
        """Whether a column is given by its name."""
        return self.columns is not None and any(isinstance(each, str) for each in self.columns.values())


def _is_separator(given: object) -> bool:
    if not isinstance(given, str) or not given:
        return False
    return given == WHITESPACE or not any(each.isalnum() or each in '".+-_\n\r\0' for each in given)


def _check_columns(columns: object) -> None:
    expected = "columns must map user, item, rating and perhaps timestamp to a position from 0 or a name"
    mend = "pass for instance columns={'user': 0, 'item': 1, 'rating': 3}"
    if not isinstance(columns, Mapping):
        raise ValueError(f"{expected}, got {columns!r}; {mend}")
    sound = ((type(each) is int and each >= 0) or isinstance(each, str) for each in columns.values())
    if not set(REQUIRED) <= set(columns) <= set(ROLES) or not all(sound):
        raise ValueError(f"{expected}, got {dict(columns)!r}; {mend}")
    if len(set(columns.values())) < len(columns):
        raise ValueError(f"columns must name each column once, got {dict(columns)!r}; {mend}")


@dataclass(frozen=True)
class Layout:
    """How a file is laid out.

    Attributes
    ----------
    separator : str
        As `records` takes it.
    width : int
        Number of fields of each line.
    columns : dict of str to int
        From role to position: user, item, rating and perhaps timestamp.
    has_header : bool
        Whether the first record names the columns.
    first_line : int
        Number, from 1, of the first line after the header; of the first record where there is none.
    width_line : int
        Number of the line that gave the width.
    """

    separator: str
    width: int
    columns: dict[str, int]
    has_header: bool
    first_line: int
    width_line: int

    def __str__(self) -> str:
        named = {position: role for role, position in self.columns.items()}
        listing = ", ".join(named.get(position, "...") for position in range(self.width))
        return f"{self.width} columns ({listing}) separated by {separator_name(self.separator)}"


def find_layout(text: Text, form: Form) -> Layout:
    """Find out how a file is laid out.

    The separator is the one with which most of the first lines read as ratings.

    Parameters
    ----------
    text : Text
        The file.
    form : Form
        What is known of it.

    Returns
    -------
    Layout
        Separator, header and columns.

    Raises
    ------
    DataError
        When the file is empty, or its first line is neither a rating nor a header that says where
        to find user, item and rating.
    """
    sample = _sample(text.data)
    if not sample.strip(BLANK):
        raise DataError.at(
            text.name,
            1,
            found="an empty file",
            expected="lines of user, item, rating and perhaps timestamp",
            mend="get a fresh copy of the file",
        )
    separator = form.separator if form.separator is not None else _best_separator(text.name, sample, form)
    parts = records(text.name, sample, separator)
    line, fields = next(parts)
    has_header, columns = _columns(text.name, line, fields, separator, form)
    after = next(parts, None)
    first_line = line if not has_header else after[0] if after is not None else line + 1
    return Layout(separator, len(fields), columns, has_header, first_line, line)


def _sample(data: bytes) -> str:
    end = data.find(b"\n", SAMPLE_BYTES)
    sample = (data[:end] if end >= 0 else data).decode()
    return sample if end < 0 or sample.strip(BLANK) else data.decode()


def _best_separator(name: str, sample: str, form: Form) -> str:
    scores = {each: _score(name, sample, each, form) for each in SEPARATORS}
    best = max(SEPARATORS, key=lambda each: scores[each])
    if scores[best] == (0, 0):
        line, content = next((k, each) for k, each in enumerate(sample.split("\n"), start=1) if each.strip(SPACE))
        raise DataError.at(
            name,
            line,
            found=quoted(content),
            expected="user, item and rating separated by tabs, '::', ';', ',', '|' or spaces",
            mend="pass separator= if it is another, or correct the line",
        )
    return best


def _score(name: str, sample: str, separator: str, form: Form) -> tuple[int, int]:
    """Count the first lines that read as ratings, and those of one width; the more, the better."""
    rows = _first_records(name, sample, separator)
    if not rows:
        return 0, 0
    try:
        has_header, columns = _columns(name, *rows[0], separator, form)
        width = len(rows[0][1])
        n_sound = sum(len(fields) == width and _is_sound(fields, columns) for _, fields in rows[has_header:])
    except DataError:
        n_sound = 0
    widths = Counter(len(fields) for _, fields in rows if len(fields) >= len(REQUIRED))
    return n_sound, max(widths.values(), default=0)


def _first_records(name: str, sample: str, separator: str) -> list[tuple[int, list[str]]]:
    rows: list[tuple[int, list[str]]] = []
    with suppress(DataError):  # what stands before it tells the separator; the reader meets it again
        rows.extend(islice(records(name, sample, separator), SAMPLE_RECORDS))
    return rows


def _is_sound(fields: Sequence[str], columns: Mapping[str, int]) -> bool:
    return all(
        fields[position].strip(SPACE) if role in ("user", "item") else number(fields[position]) is not None
        for role, position in columns.items()
    )


def _columns(name: str, line: int, fields: Sequence[str], separator: str, form: Form) -> tuple[bool, dict[str, int]]:
    """Say whether the first record is a header, and where each role stands."""
    names = [field.strip(SPACE) for field in fields]
    known = known_columns(names)
    has_header = form.header if form.header is not None else form.has_names or set(REQUIRED) <= set(known)
    if form.columns is not None:
        return has_header, {role: _position(name, line, names, form.columns, role) for role in form.columns}
    if not has_header:
        return False, _columns_in_order(name, line, fields, separator)
    if set(REQUIRED) <= set(known) and len(known) == len(names):
        return True, known
    raise DataError.at(
        name,
        line,
        found=f"a header of {quoted(', '.join(names))}",
        expected="one usual name (userId, movieId, rating, timestamp, ...) for each of user, item, rating and perhaps "
        "timestamp, and no other column",
        mend=f"choose with columns=, for instance columns={{'user': {names[0]!r}, ...}}, or check that this is a file "
        "of ratings",
    )


def _columns_in_order(name: str, line: int, fields: Sequence[str], separator: str) -> dict[str, int]:
    if len(fields) in (len(REQUIRED), len(ROLES)):
        return dict(zip(ROLES[: len(fields)], range(len(fields)), strict=True))
    raise DataError.at(
        name,
        line,
        found=f"{len(fields)} columns in {quoted(joined(fields, separator))} with {separator_name(separator)} between",
        expected="3 or 4 (user, item, rating and perhaps timestamp)",
        mend="choose with columns={'user': 0, ...}, pass another separator=, or break the line where two are joined",
    )


def _position(name: str, line: int, names: Sequence[str], columns: Columns, role: str) -> int:
    wanted = columns[role]
    if isinstance(wanted, int):
        if wanted < len(names):
            return wanted
        found = f"{len(names)} columns"
        expected = f"the {role} at position {wanted}, counted from 0"
    else:
        if names.count(wanted) == 1:
            return names.index(wanted)
        found = f"a header of {quoted(', '.join(names))}"
        expected = f"one column {wanted!r} for the {role}"
    raise DataError.at(name, line, found=found, expected=expected, mend="correct columns=")
