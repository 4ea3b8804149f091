import gzip
import math
import os
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.datasets import DataError
from netsim.availability import AvailabilityTrace, Segment, end_times, read_availability_trace

NAME = "stunner-anon-100.txt.gz"
PLACES = [
    Path(os.environ.get("STUNNER_TRACE") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[3] / "shared" / "data" / "churn" / NAME,
]
GOOD = "# two phones\n\nann 1 1402358400000 2 1500 2000 500\nbob 0 0 -5.5 250 750\n"
SEGMENTS = (Segment("ann", True, (1500, 2000, 500)), Segment("bob", False, (250, 750)))


@pytest.fixture
def write(tmp_path):
    def write(text, name="trace.txt"):
        file = tmp_path / name
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return write


@pytest.fixture(scope="module")
def phones():
    for place in PLACES:
        if place.is_file():
            return read_availability_trace(place)
    pytest.skip(
        f"needs the STUNner segments {NAME} in {PLACES[1]} or STUNNER_TRACE, which do not come with the project"
    )


def test_a_file_is_read_in_its_order(write):
    trace = read_availability_trace(write(GOOD))
    assert trace == AvailabilityTrace(SEGMENTS)
    assert trace.segments[0].lengths == (1.5, 2.0, 0.5)
    assert trace.n_sessions == 5
    assert trace.availability == (2000 + 750) / 5000


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.removesuffix("\n"),
        "\ufeff" + GOOD,
        GOOD.replace(" ", "\t"),
        gzip.compress(GOOD.encode(), mtime=0),
    ],
    ids=["crlf", "no last newline", "byte order mark", "tabs", "gzip"],
)
def test_ways_to_write_the_same_file(write, text):
    assert read_availability_trace(write(text)).segments == SEGMENTS
    assert read_availability_trace(str(write(text, "trace")), after="offline", offset="none") == AvailabilityTrace(
        SEGMENTS, after="offline", offset="none"
    )


LINE = "ann 1 0 2 1500 2000\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            LINE + "bob 0 0 1\n",
            "trace.txt, line 2: found 4 fields, expected five or more, 'id firstState startMs tz d1",
        ),
        (LINE + "\nbob\n", "trace.txt, line 3: found 1 fields, expected five or more"),
        ("ann 2 0 0 5\n", "trace.txt, line 1: found firstState '2' (field 2), expected 1 for online or 0 for offline"),
        ("ann on 0 0 5\n", "trace.txt, line 1: found firstState 'on' (field 2)"),
        (
            "ann 1 noon 0 5\n",
            "trace.txt, line 1: found startMs 'noon' (field 3), expected a whole number of milliseconds",
        ),
        ("ann 1 0 CET 5\n", "trace.txt, line 1: found tz 'CET' (field 4), expected a number of hours such as 2 or -5"),
        ("ann 1 0 nan 5\n", "trace.txt, line 1: found tz 'nan' (field 4)"),
        (
            "ann 1 0 0 5 -7 3\n",
            "trace.txt, line 1: found d2 '-7' (field 6), expected a whole number of milliseconds >= 0",
        ),
        (
            "ann 1 0 0 5 7 1.5\n",
            "line 1: found d3 '1.5' (field 7), expected a whole number of milliseconds >= 0, below",
        ),
        ("ann 1 0 0 5,7\n", "trace.txt, line 1: found d1 '5,7' (field 5)"),
        ("ann 1 0 0 1_000\n", "trace.txt, line 1: found d1 '1_000' (field 5)"),
        ("ann 1 0 0 ٣\n", "trace.txt, line 1: found d1 '٣' (field 5)"),
        (f"ann 1 0 0 {'9' * 5000}\n", "trace.txt, line 1: found d1 '9999"),
        ("ann 1 0 0 0 0\n", "trace.txt, line 1: found sessions that sum to 0 ms, expected more than 0 and less than"),
        (f"ann 1 0 0 {2**53}\n", "trace.txt, line 1: found sessions that sum to 9007199254740992 ms"),
        ("", "trace.txt: found no segment, expected lines 'id firstState startMs tz d1 d2 ...'; check that"),
        ("# nothing\n\n", "trace.txt: found no segment"),
        (b"PK\x03\x04abc", "trace.txt: found a zip archive, expected text, or text packed by gzip; unpack it first"),
        (b"ann 1 0 0 5\nb\xff 1 0 0 5\n", "trace.txt, line 2: found byte b'\\xff', which is not utf-8"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], "trace.txt: found a damaged gzip file"),
    ],
)
def test_errors_of_a_file_name_place_found_expected_and_mend(write, text, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read_availability_trace(write(text))
    assert re.search(r": found .*, expected .*; \w+", str(caught.value))


def test_a_path_without_a_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must name a file of sessions, got .*: found nothing there"):
        read_availability_trace(tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match="found a folder; correct the path"):
        read_availability_trace(tmp_path)


@pytest.mark.parametrize("least", [-1, math.inf, math.nan, "10", None, True])
def test_least_seconds_is_checked(write, least):
    with pytest.raises(
        ValueError, match=re.escape(f"least_seconds must be a finite number of seconds >= 0, got {least!r}")
    ):
        read_availability_trace(write(GOOD), least_seconds=least)


def joined(write, durations, *, first=1, least=0.0):
    (segment,) = read_availability_trace(write(f"a {first} 0 0 {durations}\n"), least_seconds=least).segments
    return segment.online, segment.milliseconds


@pytest.mark.parametrize(
    ("durations", "online", "expected"),
    [
        ("5 0 7", True, (12,)),
        ("5 0 7 3", True, (12, 3)),
        ("5 3 0", True, (5, 3)),
        ("5 3 0 4", True, (5, 7)),
        ("5 3 0 0 4", True, (5, 3, 4)),
        ("0 5 3", False, (5, 3)),
        ("0 0 5 3", True, (5, 3)),
        ("0 5", False, (5,)),
        ("5 0", True, (5,)),
        ("5", True, (5,)),
    ],
)
def test_sessions_of_no_time_join_those_around_them(write, durations, online, expected):
    assert joined(write, durations) == (online, expected)
    assert joined(write, durations, first=0) == (not online, expected)


@pytest.mark.parametrize(
    ("durations", "online", "expected"),
    [
        ("20000 9999 10000 10000", True, (39999, 10000)),
        ("20000 10000 9999 5 30000", True, (20000, 20004, 30000)),
        ("20000 500 500 30000 10000", True, (21000, 30000, 10000)),
        ("500 600 20000 30000", True, (21100, 30000)),
        ("500 20000 30000", False, (20500, 30000)),
        ("20000 500", True, (20500,)),
        ("500 400", True, (900,)),
        ("500 400 300 700", False, (1900,)),
        ("500 500", True, (1000,)),
    ],
)
def test_short_sessions_leave_the_node_as_it_was(write, durations, online, expected):
    assert joined(write, durations, least=10) == (online, expected)


LENGTHS = st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(any)


@given(st.booleans(), LENGTHS, st.integers(0, 25))
def test_joining_keeps_the_time_and_long_sessions(tmp_path_factory, online, lengths, least):
    file = tmp_path_factory.getbasetemp() / "joined.txt"
    file.write_text(f"a {int(online)} 0 0 {' '.join(map(str, lengths))}\n")
    (segment,) = read_availability_trace(file, least_seconds=least / 1000).segments
    assert segment.total == sum(lengths)
    assert len(segment.milliseconds) == 1 or min(segment.milliseconds) >= max(least, 1)
    states = np.repeat(np.arange(len(lengths)) % 2 == (0 if online else 1), lengths)
    seen = np.repeat(np.arange(len(segment.milliseconds)) % 2 == (0 if segment.online else 1), segment.milliseconds)
    if least <= 1:
        assert (states == seen).all()  # nothing but sessions of no time was joined
    starts = np.cumsum([0, *lengths[:-1]])
    for position, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        if length >= max(least, 1):
            assert (seen[start : start + length] == (online == (position % 2 == 0))).all()


def test_end_times_are_whole_milliseconds():
    segment = Segment("a", True, [1] * 1_000_000)
    ends = end_times(segment)
    assert ends.dtype == np.float64
    assert (ends == np.arange(1, 1_000_001) / 1000).all()
    assert end_times(SEGMENTS[0]).tolist() == [1.5, 3.5, 4.0]
    assert end_times(Segment("a", False, [2**53 - 1])).tolist() == [(2**53 - 1) / 1000]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Segment("", True, [1]), "Segment: name must be a text that is not empty, got ''"),
        (lambda: Segment(7, True, [1]), "Segment: name must be a text that is not empty, got 7"),
        (lambda: Segment("a", 1, [1]), "Segment 'a': online must be True or False, got 1"),
        (lambda: Segment("a", True, []), "Segment 'a': milliseconds must hold one session or more, got none"),
        (lambda: Segment("a", True, 5), "Segment 'a': milliseconds must be a list of integers, got 5"),
        (lambda: Segment("a", True, "12"), "Segment 'a': milliseconds must be a list of integers, got '12'"),
        (lambda: Segment("a", True, [5, 0]), "Segment 'a': milliseconds must be integers > 0, got 0 for session 2"),
        (lambda: Segment("a", True, [1.5]), "Segment 'a': milliseconds must be integers > 0, got 1.5 for session 1"),
        (lambda: Segment("a", True, [True]), "Segment 'a': milliseconds must be integers > 0, got True"),
        (lambda: Segment("a", True, [2**52] * 2), "Segment 'a': milliseconds must sum to less than 2**53"),
        (lambda: AvailabilityTrace([]), "AvailabilityTrace: segments must be a list of one Segment or more, got []"),
        (lambda: AvailabilityTrace("trace.txt"), "AvailabilityTrace: segments must be a list of one Segment or more"),
        (
            lambda: AvailabilityTrace(None),
            "AvailabilityTrace: segments must be a list of one Segment or more, got None",
        ),
        (lambda: AvailabilityTrace([SEGMENTS[0], 5]), "AvailabilityTrace: segments must hold Segment only, got 5"),
        (
            lambda: AvailabilityTrace(SEGMENTS, after="stop"),
            "AvailabilityTrace: after must be 'repeat' or 'offline' or 'online', got 'stop'",
        ),
        (
            lambda: AvailabilityTrace(SEGMENTS, offset=5),
            "AvailabilityTrace: offset must be 'random' or 'none', got 5; pass one of these",
        ),
    ],
)
def test_errors_name_class_argument_and_value(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_traces_are_data():
    trace = AvailabilityTrace(iter(SEGMENTS))
    same = AvailabilityTrace([Segment("ann", np.True_, np.array([1500, 2000, 500])), SEGMENTS[1]])
    assert trace == same == pickle.loads(pickle.dumps(trace))
    assert hash(trace) == hash(same)
    assert trace.digest == same.digest
    others = [
        replace(trace, after="online"),
        replace(trace, offset="none"),
        AvailabilityTrace(SEGMENTS[::-1]),
        AvailabilityTrace([SEGMENTS[0], Segment("bob", True, (250, 750))]),
        AvailabilityTrace([SEGMENTS[0], Segment("bo", False, (250, 750))]),
        AvailabilityTrace([SEGMENTS[0], Segment("bob", False, (250, 751))]),
    ]
    assert len({trace, *others}) == 7
    assert len({each.digest for each in [trace, *others]}) == 5  # the first two hold the same segments
    with pytest.raises(FrozenInstanceError):
        trace.after = "online"
    with pytest.raises(FrozenInstanceError):
        SEGMENTS[0].online = False


def test_texts_are_short():
    assert repr(SEGMENTS[0]) == "Segment('ann', online first, 3 sessions, 4 s)"
    assert repr(AvailabilityTrace(SEGMENTS)) == (
        "AvailabilityTrace(2 segments, 5 sessions, availability 0.55, after='repeat', offset='random')"
    )


def test_the_phones_have_the_facts_of_the_data_set(phones):
    assert len(phones.segments) == 4334
    assert phones.n_sessions == 318_988
    assert round(phones.availability, 2) == 0.23
    online = [length for each in phones.segments for length in each.lengths[0 if each.online else 1 :: 2]]
    assert len(online) == 158_546
    assert np.median(online) / 60 == pytest.approx(7.04, abs=0.01)
    assert len({each.name for each in phones.segments}) == 776
    assert sum(len(each.milliseconds) == 1 for each in phones.segments) == 249
    days = [each.total / 86_400_000 for each in phones.segments]
    assert set(days) <= set(range(1, 8))
    assert repr(phones) == (
        "AvailabilityTrace(4334 segments, 318988 sessions, availability 0.232, after='repeat', offset='random')"
    )
