"""The reader of rating files against a plain one, made of the csv module, on thousands of odd files."""

import csv
import gzip
import io
import re
from collections import Counter
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from algorithms.datasets import DataError, rating_files, read_ratings

MARKS = {b"\xff\xfe\0\0": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
SEPARATORS = ["\t", "::", ";", ",", "|", "whitespace"]
STRAY = [b"", b"\r", b"\n", b"\0", b'"', b",", b"\x1f", b"\x0b", b"\xe9", b"\xc2\xa0", b" "]
SPACE = " \t\xa0"
HEADER = ["userId", "movieId", "rating", "timestamp"]

sound_ids = st.sampled_from(["1", "2", "3", "12", "-3", "0"])
odd_ids = st.sampled_from(
    ["007", "7", "+7", "7.0", "u1", "É", "a b", " 1 ", "1_0", "0x1", "9223372036854775807", "9223372036854775808"]
)
bad_ids = st.sampled_from(["", " ", '"', '"a', 'a"b', '"a"b', "a,b", '""""'])
sound_numbers = st.sampled_from(["3", "3.5", "0", "-0", "-1.25", "+2", "5.", ".5", "1e2", "2.22507e-308", "0.1"])
bad_numbers = st.sampled_from(["", "nan", "-inf", "0x10", "1_000", "٣", "3,5", "1e999", "true", "3 4"])
any_numbers = st.text("0123456789.+-eE", max_size=6) | st.text("09.+-eE_xXnaif ", max_size=4)
sound_times = st.sampled_from(["1", "881250949", "+5", "-7", "1.5", "1e9", "99999999999999999999"])


# Files of digits and points only are read in a way of their own.
digit_ids = st.sampled_from(["1", "2", "3", "12", "0", "7", "007", "7.0", "7.", "00", "9223372036854775808"])
digit_numbers = st.sampled_from(["3", "3.5", "0", "5.", ".5", "003", "00.5", "1.25"])
digit_times = st.sampled_from(["1", "881250949", "1.5", "007", "2.0"])


@dataclass(frozen=True)
class Case:
    data: bytes
    separator: str
    has_header: bool
    has_timestamp: bool
    options: dict


@st.composite
def cases(draw, sound=False):
    """A file made field by field, then packed, and mostly damaged in a place or two unless it is sound."""
    separator = draw(st.sampled_from(SEPARATORS))
    n_columns = draw(st.sampled_from([3, 4]))
    ids, numbers, times = sound_ids, sound_numbers, sound_times
    if not sound:
        kind = draw(st.sampled_from(["sound", "digits", "odd", "bad"]))
        ids = {
            "sound": ids,
            "digits": sound_ids.filter(str.isdigit) | digit_ids,
            "odd": ids | odd_ids,
            "bad": ids | odd_ids | ids | bad_ids,
        }[kind]
        if kind == "digits":
            numbers, times = digit_numbers, digit_times
        if kind == "bad":
            numbers, times = numbers | numbers | bad_numbers | any_numbers, times | times | any_numbers
    row = st.tuples(ids, ids, numbers, times).map(lambda fields: fields[:n_columns])
    rows = draw(st.lists(row, min_size=1, max_size=7, unique_by=(lambda each: each[:2],) if sound else None))
    has_header = draw(st.booleans())
    quote = draw(st.sampled_from(["", "", '"'])) if len(separator) == 1 else ""
    between = {"whitespace": draw(st.sampled_from([" ", "\t", "  "]))}.get(separator, separator)
    lines = [HEADER[:n_columns]] * has_header + rows
    texts = [between.join(quote + field + quote for field in fields) for fields in lines]
    if not sound:
        texts = _with_oddities(draw, texts)
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    text = end.join(texts) + draw(st.sampled_from(["", end]))
    data = text.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"])))
    if not sound:
        data = _damaged(draw, data)
    if draw(st.sampled_from([False, False, True])):
        data = gzip.compress(data, compresslevel=1)
    options = {
        "keep": draw(st.sampled_from(["error", "first", "last", "mean"])),
        "zero": draw(st.sampled_from(["rating", "missing"])) if not sound else "rating",
        "scale": draw(st.sampled_from([None, None, (-2, 100), (1, 5)])) if not sound else None,
        "text_ids": draw(st.booleans()),
    }
    return Case(data, separator, has_header, n_columns == 4, options)


def _with_oddities(draw, texts):
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(texts) - 1))
        oddity = draw(st.sampled_from(["blank", "spaces", "again", "glued", "longer", "shorter", "junk"]))
        if oddity in ("blank", "spaces", "junk", "again"):
            line = {"blank": "", "spaces": "  ", "junk": "46 43 4 xxxxxx", "again": texts[at]}[oddity]
            texts = [*texts[:at], line, *texts[at:]]
        elif oddity == "glued":
            texts = [*texts[:at], "".join(texts[at : at + 2]), *texts[at + 2 :]]
        else:
            changed = texts[at] + texts[at][-3:] if oddity == "longer" else texts[at][:-2]
            texts = [*texts[:at], changed, *texts[at + 1 :]]
    return texts


def _damaged(draw, data):
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        at = draw(st.integers(0, len(data)))
        put = draw(st.sampled_from(STRAY))
        data = data[:at] + put + data[at + draw(st.integers(0, 2)) :]
    return data


def plain_text(data):
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        encoding = next((each for mark, each in MARKS.items() if data.startswith(mark)), "utf-8")
        text = data.decode(encoding).removeprefix("\ufeff")
    except (UnicodeDecodeError, OSError, EOFError):
        return None
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    text = text.removesuffix("\r")
    return None if "\r" in text or "\0" in text else text


def plain_rows(text, separator):
    if separator == "whitespace":
        return [[field for field in line.replace("\t", " ").split(" ") if field] for line in text.split("\n")]
    if separator == "::":
        return [line.split("::") for line in text.split("\n")]
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True))


def plain_number(field):
    if not set(field.strip(SPACE)) <= set("0123456789+-.eE"):
        raise ValueError
    value = float(field.strip(SPACE))
    if abs(value) == float("inf"):
        raise ValueError
    return value


def is_integer(text):
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def plain_ids(column, text_ids):
    column = [each.strip(SPACE) for each in column]
    return [int(each) for each in column] if not text_ids and all(map(is_integer, column)) else column


def plain_reading(case, separator, has_header, chosen=None):
    """{(user, item): (rating, timestamp)} as the file must be read; None where it must be refused."""
    text = plain_text(case.data)
    try:
        rows = plain_rows(text, separator) if text is not None else []
        rows = [row for row in rows if len(row) > 1 or "".join(row).strip(SPACE)]
        width = len(rows[0]) if rows else 0
        rows = rows[has_header:]
        if not rows or {len(row) for row in rows} != {width} or not (chosen or 3) <= width <= (width if chosen else 4):
            return None
        numbers = [tuple(map(plain_number, row[2:chosen])) for row in rows]
    except (csv.Error, ValueError):
        return None
    fields = [field.strip(SPACE) for row in rows for field in row[:2]]
    if "" in fields or (len(separator) > 1 and any(field.startswith('"') for field in fields)):
        return None
    ids = (plain_ids([row[side] for row in rows], case.options["text_ids"]) for side in (0, 1))
    return plain_choice([*zip(zip(*ids, strict=True), numbers, strict=True)], **case.options)


def plain_choice(entries, keep, zero, scale, text_ids):
    if zero == "missing":
        entries = [(pair, numbers) for pair, numbers in entries if numbers[0] != 0]
    if scale is not None and not all(scale[0] <= numbers[0] <= scale[1] for _, numbers in entries):
        return None
    found = {}
    for pair, numbers in entries:
        found.setdefault(pair, []).append(numbers)
    if not found or (keep == "error" and len(found) < len(entries)):
        return None
    chosen = {pair: given[0] if keep == "first" else given[-1] for pair, given in found.items()}
    if keep == "mean":
        means = {pair: sum(numbers[0] for numbers in given) / len(given) for pair, given in found.items()}
        chosen = {pair: (means[pair], *numbers[1:]) for pair, numbers in chosen.items()}
    return chosen


def content(ratings):
    columns = [ratings.value] if ratings.timestamp is None else [ratings.value, ratings.timestamp]
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    pairs = ((ratings.user_ids[u], ratings.item_ids[i]) for u, i in zip(ratings.user, ratings.item, strict=True))
    return dict(zip(pairs, numbers, strict=True))


def same(found, expected):
    """Equal, the type of each id included."""
    return found == {pair: pytest.approx(numbers, rel=1e-15, abs=0) for pair, numbers in expected.items()} and Counter(
        type(each) for pair in found for each in pair
    ) == Counter(type(each) for pair in expected for each in pair)


def outcome(case, **form):
    """What the reader makes of a case: content, or the text of its error."""
    try:
        return content(read_ratings(io.BytesIO(case.data), **form, **case.options))
    except DataError as error:
        return str(error)


def check_told(case):
    """With the layout told, the reader loads what the plain one loads, and refuses what that refuses."""
    columns = {"user": 0, "item": 1, "rating": 2} | ({"timestamp": 3} if case.has_timestamp else {})
    form = {"separator": case.separator, "header": case.has_header, "columns": columns}
    found = outcome(case, **form)
    assert not isinstance(found, str) or re.fullmatch(r"<BytesIO>.*: found .+, expected .+; .+", found, re.DOTALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rating_files, "_read_fast", lambda *_: None)
        assert outcome(case, **form) == found, "the slow pass differs"
    expected = plain_reading(case, case.separator, case.has_header, chosen=len(columns))
    assert isinstance(found, str) if expected is None else same(found, expected)


def check_found_out(case):
    """With the layout found out, what is loaded is right under some layout."""
    found = outcome(case)
    if not isinstance(found, str):
        readings = [plain_reading(case, *layout) for layout in product(SEPARATORS, [False, True])]
        assert any(same(found, reading) for reading in readings if reading is not None)


def check_sound(case):
    """A sound file is loaded as it was written, without being told its layout."""
    found = outcome(case)
    assert not isinstance(found, str), found
    assert same(found, plain_reading(case, case.separator, case.has_header))


def check(case):
    check_told(case)
    check_found_out(case)


normal = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@normal
@given(cases())
def test_reads_what_a_plain_reader_reads(case):
    check(case)


@pytest.mark.statistical
@settings(normal, max_examples=10_000)
@given(cases())
def test_reads_what_a_plain_reader_reads_10000_times(case):
    check(case)


@settings(normal, max_examples=100)
@given(cases(sound=True))
def test_layout_of_a_sound_file_is_found_out(case):
    check_sound(case)


@pytest.mark.statistical
@settings(normal, max_examples=3_000)
@given(cases(sound=True))
def test_layout_of_a_sound_file_is_found_out_3000_times(case):
    check_sound(case)


@normal
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    check_found_out(Case(data, ",", False, False, {"keep": "mean", "zero": "rating", "scale": None, "text_ids": False}))


def test_the_files_drawn_are_both_read_and_refused():
    kinds = Counter()

    @settings(normal, derandomize=True)
    @given(cases())
    def count(case):
        kinds["refused" if plain_reading(case, case.separator, case.has_header) is None else "read"] += 1

    count()
    assert kinds["read"] > 60
    assert kinds["refused"] > 60
