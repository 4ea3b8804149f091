"""The record of messages: complete, or a sample that does not depend on what else happens."""

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from algorithms.ratings import Ratings
from netsim import (
    Exponential,
    LearnedRouters,
    LogNormal,
    MessageTrace,
    OnOff,
    Periodic,
    Recommendations,
    World,
    simulate,
)
from netsim.messages import FATES, MESSAGE_KINDS

KEY = ["kind", "sender", "receiver", "profile", "stamp"]
USERS, ITEMS = ("ann", "bob, jr", "eve", 'joe "j"'), ("p", "q", "r", "s")
CROWD = tuple(range(40))
STRANGER = "aaa"  # rated nothing


def world(users=USERS, **changes):
    """Everyone rated everything; all kinds and most fates occur."""
    pairs = [(user, item) for user in users if user != STRANGER for item in ITEMS]
    values = np.arange(len(pairs)) % 5 + 1.0
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), values, user_ids=users, item_ids=ITEMS)
    settings = {
        "routers": (7, 8, 9),
        "user_broadcast": 0.5,
        "router_broadcast": 0.5,
        "delay": LogNormal(0.3, 0.8),
        "loss": 0.2,
        "request_timeout": 1.0,
        "user_churn": OnOff(5.0, 1.0),
    }
    return World(ratings, **settings | changes)


def traced(made, share=1.0, until=50.0, seed=1):
    trace = MessageTrace(share)
    result = simulate(made, until=until, seed=seed, trace=trace)
    return trace, result


def keys(trace):
    frame = trace.frame()
    assert not frame.duplicated(KEY).any()
    return set(frame[KEY].itertuples(index=False, name=None))


# -- complete ----------------------------------------------------------------------------------------------------------


def test_every_message_is_in_the_whole_trace():
    quitting = {"router_lifetime": Exponential(30.0), "rehosting": "handover", "duplication": 0.1}
    made = world(**quitting)
    asking = {"recommendations": Recommendations(made.ratings, mean_gap=5.0), "user_contacts": LearnedRouters()}
    trace, result = traced(made.replace(**asking))
    frame = trace.frame()
    booked = result.accounts.set_index(["kind", "fate"])
    found = frame.groupby(["kind", "fate"])["bytes"].agg(["size", "sum"])
    for kind in MESSAGE_KINDS:
        of_kind = frame[frame["kind"] == kind]
        assert booked.loc[(kind, "sent")].tolist() == [len(of_kind), of_kind["bytes"].sum()]
        for fate in (*FATES[1:], "in_flight"):
            wanted = booked.loc[(kind, fate)].tolist()
            assert (found.loc[(kind, fate)].tolist() if (kind, fate) in found.index else [0, 0]) == wanted
    assert len(trace) == len(frame) == result.final["sent"]
    assert set(frame["kind"]) == set(MESSAGE_KINDS)
    assert set(frame["fate"]) >= {"updated", "stale", "lost_link", "lost_offline", "control", "in_flight"}


def test_rows_are_in_the_order_of_sending_and_say_the_order_of_arrival():
    frame = traced(world())[0].frame()
    assert frame["sent"].is_monotonic_increasing
    arrived = frame[frame["order"] >= 0].sort_values("order")
    assert arrived["order"].tolist() == list(range(len(arrived)))
    assert arrived["arrives"].is_monotonic_increasing
    assert frame.index[frame["order"] < 0].equals(frame.index[frame["fate"].isin(["lost_link", "in_flight"])])
    assert np.isinf(frame["arrives"]).equals(frame["fate"] == "lost_link")


def test_the_trace_changes_no_bit_and_takes_the_events_engine():
    plain = simulate(world(), until=50.0, seed=1, engine="compiled")
    for share in (1.0, 0.2):
        _, watched = traced(world(), share)
        assert watched.engine == "events"
        assert watched.user_profiles.tobytes() == plain.user_profiles.tobytes()
        pd.testing.assert_frame_equal(watched.accounts, plain.accounts)


def test_the_compiled_engine_records_nothing_and_says_so():
    with pytest.raises(ValueError, match="engine='compiled' cannot run trace"):
        simulate(world(), until=1.0, seed=1, engine="compiled", trace=MessageTrace())


def test_frame_is_a_copy():
    trace, _ = traced(world(), until=2.0)
    before = trace.frame()
    changed = trace.frame()
    changed["fate"] = "changed"
    pd.testing.assert_frame_equal(trace.frame(), before)


# -- a sample ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_a_sample_has_its_share_of_every_kind_with_the_rows_of_the_whole(share):
    whole, sample = (traced(world(CROWD), part, until=10.0)[0].frame() for part in (1.0, share))
    merged = whole.merge(sample[KEY], on=KEY)  # rows of the whole that are in the sample, in their order
    pd.testing.assert_frame_equal(merged, sample)
    for kind in ("request", "reply", "profile", "all"):
        n, taken = (len(frame if kind == "all" else frame[frame["kind"] == kind]) for frame in (whole, sample))
        assert n > 100
        assert abs(taken - n * share) <= 4 * math.sqrt(n * share * (1 - share)) + 1


def test_a_smaller_sample_is_a_part_of_a_larger_one():
    small, large = (keys(traced(world(), share)[0]) for share in (0.1, 0.5))
    assert 0 < len(small) < len(large)
    assert small < large


def test_another_seed_samples_other_messages():
    quiet = world(delay=0.1, loss=0.0, user_churn=None, user_broadcast=Periodic(0.5, phase=0.0))
    whole = [keys(traced(quiet, seed=seed)[0]) for seed in (1, 2)]
    sample = [keys(traced(quiet, 0.5, seed=seed)[0]) for seed in (1, 2)]
    both = whole[0] & whole[1]
    assert len(both) > 500
    differ = sum((key in sample[0]) != (key in sample[1]) for key in both)
    assert abs(differ - len(both) / 2) < 4 * math.sqrt(len(both)) / 2


def test_worlds_that_differ_in_loss_and_delay_sample_the_same_messages():
    """Each sends messages that the other does not; those that both send are in both samples or in none."""
    worlds = [world(), world(loss=0.5, delay=0.1)]
    whole = [keys(traced(each)[0]) for each in worlds]
    sample = [keys(traced(each, 0.4)[0]) for each in worlds]
    both = whole[0] & whole[1]
    assert len(both) > 1000
    assert whole[0] != whole[1]
    assert sample[0] & both == sample[1] & both
    assert 0 < len(sample[0] & both) < len(both)


def test_a_user_more_samples_the_same_messages_of_the_others(tmp_path):
    found = []
    for users in (USERS, (STRANGER, *USERS)):
        trace, _ = traced(world(users), 0.5)
        trace.save(tmp_path / "trace.csv")
        table = pd.read_csv(tmp_path / "trace.csv")
        found.append(table[table["emitter"] != STRANGER].reset_index(drop=True))
    pd.testing.assert_frame_equal(*found)


@pytest.mark.parametrize("share", [0, -0.1, 1.01, 30, float("nan"), True, "0.5", None])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match=r"share must be in \(0, 1\], got .*; pass a fraction, not a percentage"):
        MessageTrace(share)


def test_a_share_may_be_any_number():
    assert [MessageTrace(share).share for share in (1, np.float32(0.5))] == [1.0, 0.5]


def test_a_trace_used_again_holds_the_later_run_alone():
    trace, _ = traced(world(), until=5.0)
    simulate(world(), until=2.0, seed=2, trace=trace)
    pd.testing.assert_frame_equal(trace.frame(), traced(world(), until=2.0, seed=2)[0].frame())


# -- saved -------------------------------------------------------------------------------------------------------------


def saved(trace, path):
    trace.save(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_saved_trace_names_nodes_and_profiles_by_their_ids(tmp_path):
    trace, _ = traced(world(), until=10.0)
    rows = saved(trace, tmp_path / "trace.csv")
    frame = trace.frame()
    assert list(rows[0]) == [
        "kind",
        "emitter_role",
        "emitter",
        "receiver_role",
        "receiver",
        "profile",
        "stamp",
        "bytes",
        "sent",
        "arrived",
        "fate",
    ]
    nodes = [("user", name) for name in USERS] + [("router", name) for name in ("7", "8", "9")]
    profiles = dict(enumerate((*USERS, *ITEMS))) | {-1: ""}
    for row, whole in zip(rows, frame.to_dict("records"), strict=True):
        assert (row["emitter_role"], row["emitter"]) == nodes[whole["sender"]]
        assert (row["receiver_role"], row["receiver"]) == nodes[whole["receiver"]]
        assert row["profile"] == profiles[whole["profile"]]
        assert (row["kind"], row["fate"]) == (whole["kind"], whole["fate"])
        assert (int(row["stamp"]), int(row["bytes"])) == (whole["stamp"], whole["bytes"])
        assert float(row["sent"]) == whole["sent"]
        if whole["fate"] in ("lost_link", "in_flight"):
            assert row["arrived"] == ""
        else:
            assert float(row["arrived"]) == whole["arrives"]
    assert {row["kind"]: row["profile"] == "" for row in rows} == {"request": True, "reply": False, "profile": False}
    assert {row["fate"] for row in rows} >= {"lost_link", "in_flight", "updated"}


def test_a_sample_is_saved_as_it_is(tmp_path):
    whole, sample = traced(world(), until=20.0)[0], traced(world(), 0.2, until=20.0)[0]
    every, some = saved(whole, tmp_path / "whole.csv"), saved(sample, tmp_path / "sample.csv")
    assert len(some) == len(sample) < len(every)
    assert [row for row in every if row in some] == some


def test_a_run_without_a_message_saves_the_head_alone(tmp_path):
    never = Periodic(1.0, phase=1e6)
    trace, _ = traced(world(user_broadcast=never, router_broadcast=never), until=5.0)
    assert len(trace) == 0
    assert list(trace.frame()) == [*KEY, "bytes", "sent", "arrives", "fate", "order"]
    trace.save(str(tmp_path / "trace.csv"))
    text = (tmp_path / "trace.csv").read_text(encoding="utf-8")
    assert text == "kind,emitter_role,emitter,receiver_role,receiver,profile,stamp,bytes,sent,arrived,fate\n"


def test_a_failure_leaves_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "trace.csv"
    path.write_text("earlier", encoding="utf-8")
    trace, _ = traced(world(), until=2.0)

    def fail(self, target):
        raise PermissionError("not yours")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(PermissionError, match="not yours"):
            trace.save(path)
    assert path.read_text(encoding="utf-8") == "earlier"
    assert [each.name for each in tmp_path.iterdir()] == ["trace.csv"]
    trace.save(path)
    assert path.read_text(encoding="utf-8").count("\n") == len(trace) + 1


def test_a_trace_without_a_run_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="trace must have recorded a run before it is saved"):
        MessageTrace().save(tmp_path / "trace.csv")
    assert list(tmp_path.iterdir()) == []
