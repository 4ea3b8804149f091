"""Traces of availability, replayed: who is online when, to the millisecond, and what chance decides."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from algorithms.ratings import Ratings
from netsim import AvailabilityTrace, Periodic, Segment, World, read_availability_trace, simulate
from netsim.sessions import session_end
from netsim.tables import build_tables

pytestmark = pytest.mark.statistical

ALPHA = 1e-4
NAME = "stunner-anon-100.txt.gz"
PLACES = [
    Path(os.environ.get("STUNNER_TRACE") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[3] / "shared" / "data" / "churn" / NAME,
]
SILENT = Periodic(1e9, phase=1e9)


def synthetic():
    """60 segments of 1 to 400 sessions, odd and even many, from 1 ms to hours."""
    rng = np.random.default_rng(5)
    return [
        Segment(
            f"phone {n}", bool(rng.integers(2)), np.ceil(np.exp(rng.uniform(0, 16, rng.integers(1, 401)))).astype(int)
        )
        for n in range(60)
    ]


@pytest.fixture(scope="module", params=["synthetic", "STUNner"])
def segments(request):
    """Segments to replay; of the STUNner file, the first and the last hundred."""
    if request.param == "synthetic":
        return synthetic()
    for place in PLACES:
        if place.is_file():
            found = read_availability_trace(place).segments
            return [*found[:100], *found[-100:]]
    pytest.skip(
        f"needs the STUNner segments {NAME} in {PLACES[1]} or STUNNER_TRACE, which do not come with the project"
    )


def replay(segments, n_users, **settings):
    ratings = Ratings.from_arrays([0], [0], [3.0], scale=(1, 5), user_ids=range(n_users))
    churn = AvailabilityTrace(segments, **settings)
    return World(ratings, user_churn=churn, user_broadcast=SILENT, router_broadcast=SILENT)


def was_online(segment, milliseconds):
    """Whether a node of a segment is online at half a millisecond after a time; by whole numbers alone."""
    ends = np.cumsum(np.array(segment.milliseconds, dtype=object))
    return segment.online ^ (int((ends <= milliseconds).sum()) % 2 == 1)


def followed(world, seed):
    """The segment that each user follows, and where in it he starts, in milliseconds."""
    tables = build_tables(world, seed)
    life = tables.life[: world.ratings.n_users]
    counts = [len(each.milliseconds) for each in world.user_churn.segments]
    starts = np.cumsum(counts) - counts
    origins = np.rint(life["trace_origin"] * 1000)
    assert (origins / 1000 == life["trace_origin"]).all()
    return np.searchsorted(starts, life["trace_start"]), origins.astype(int)


class Watch:
    """Probe that keeps who is online at each probe time."""

    columns = ()

    def __init__(self):
        self.times, self.online = [], []

    def __call__(self, view):
        self.times.append(view.time)
        self.online.append(view.users_online)
        return {}


@pytest.mark.parametrize("engine", ["events", "compiled"])
@pytest.mark.parametrize(("after", "offset"), [("repeat", "random"), ("repeat", "none"), ("offline", "none")])
def test_who_is_online_is_what_the_trace_says(segments, engine, after, offset):
    """At 300 times, half a millisecond after a whole one, a third of them just before or after a session ends."""
    world = replay(segments, 80, after=after, offset=offset)
    which, origins = followed(world, 3)
    rng = np.random.default_rng(1)
    horizon = 2 * max(each.total for each in segments[:40]) + 10
    close = [
        int(end) - int(origin) - shift
        for segment, origin in zip(which, origins, strict=True)
        for end in rng.choice(np.cumsum(segments[segment].milliseconds), 2)
        for shift in (0, 1)
    ]
    chosen = sorted({int(t) for t in [*rng.integers(0, horizon, 200), *close] if 0 <= t < horizon})
    watch = Watch()
    times = [(t + 0.5) / 1000 for t in chosen]
    simulate(world, until=horizon / 1000 + 1, seed=3, at=times, probes=[watch], engine=engine)
    seen = dict(zip(watch.times, watch.online, strict=True))
    for t, time in zip(chosen, times, strict=True):
        expected = []
        for segment, origin in zip(which, origins, strict=True):
            followed_segment, at = segments[segment], t + int(origin)
            if after == "repeat":
                expected.append(was_online(followed_segment, at % followed_segment.total))
            else:
                expected.append(at < followed_segment.total and was_online(followed_segment, at))
        np.testing.assert_array_equal(seen[time], expected)


def test_every_end_is_that_of_the_trace_to_the_millisecond(segments):
    """All sessions of all segments that somebody follows, and those of the second round."""
    world = replay(segments, 100, offset="none")
    state = build_tables(world, 3).state
    which, _ = followed(world, 3)
    for user, segment in enumerate(which):
        ends = np.cumsum(np.array(segments[segment].milliseconds, dtype=object))
        for session, end in enumerate([*ends, *(ends + segments[segment].total)], start=1):
            assert round(session_end(state, user, session, math.nan) * 1000, 4) == end


def test_every_moment_of_the_trace_is_as_likely(segments):
    """A segment is drawn in proportion to its length, and the offset in it uniformly."""
    world = replay(segments, 4000)
    which, origins = followed(world, 7)
    lengths = np.array([each.total for each in segments], dtype=float)
    expected = lengths / lengths.sum() * len(which)
    counts = np.bincount(which, minlength=len(segments))
    often = expected >= 5
    found = [*counts[often], *([counts[~often].sum()] if expected[~often].sum() >= 5 else [])]
    wanted = np.array([*expected[often], *([expected[~often].sum()] if expected[~often].sum() >= 5 else [])])
    assert stats.chisquare(found, wanted * np.sum(found) / wanted.sum()).pvalue > ALPHA
    totals = np.array([each.total for each in segments])[which]
    assert ((origins >= 0) & (origins < totals)).all()
    long = totals > 10**6  # where whole milliseconds do not show
    assert stats.kstest((origins / totals)[long], "uniform").pvalue > ALPHA


def test_a_random_offset_is_stationary(segments):
    """Each moment is as likely; so the share online is that of the whole trace at any time."""
    world = replay(segments, 3000)
    share = sum(each.total_online for each in segments) / sum(each.total for each in segments)
    watch = Watch()
    times = [0.5, 1000.0, 50_000.0]
    simulate(world, until=60_000.0, seed=5, at=times, probes=[watch], engine="compiled")
    for online in watch.online:
        assert stats.binomtest(int(online.sum()), 3000, share).pvalue > ALPHA


def test_nobody_comes_or_goes_beyond_the_end():
    segments = [Segment("a", True, [1000, 500]), Segment("b", False, [200])]
    for after, online in (("offline", False), ("online", True)):
        watch = Watch()
        world = replay(segments, 50, after=after)
        simulate(world, until=100.0, seed=1, at=[1.6, 3.0, 50.0], probes=[watch])
        assert {bool(each) for row in watch.online[1:] for each in row} == {online}
