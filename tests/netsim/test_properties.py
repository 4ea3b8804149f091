"""What holds in every world: causality, stamps, accounts, snapshots, silence of who is offline."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from netsim import MessageTrace, Simulation
from netsim.engines.events import Message
from netsim.messages import DELIVERED, FATES, MESSAGE_KINDS, REQUEST
from tests.worlds import Meddler, runs

many = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
TAKEN = ("updated", "unknown", "unrated")


class Watch(MessageTrace):
    """A trace that keeps every message, with a copy of its payload and the state of sender and receiver."""

    def __init__(self):
        super().__init__()
        self.simulation = None
        self.messages, self.payloads, self.at_sending, self.at_landing = [], [], [], {}

    def online(self, node):
        return bool(self.simulation._tables.nodes["online"][node])

    def sent(self, message, sender, receiver, now, fate, arrival):
        tables = self.simulation._tables
        payload = None if message.kind == MESSAGES["request"] else message.payload.copy()
        if payload is not None:
            np.testing.assert_array_equal(payload, tables.values[message.profile])
        self.messages.append(message)
        self.payloads.append(payload)
        self.at_sending.append((now, self.online(sender), tables.edge_between(sender, receiver)))
        return super().sent(message, sender, receiver, now, fate, arrival)

    def landed(self, row, fate):
        message, payload = self.messages[row], self.payloads[row]
        if payload is not None:
            np.testing.assert_array_equal(message.payload, payload)
        self.at_landing[row] = (self.simulation.env.now, self.online(self.frame_row(row)[2]))
        super().landed(row, fate)

    def frame_row(self, row):
        return self._rows[row]


MESSAGES = {name: code for code, name in enumerate(MESSAGE_KINDS, start=REQUEST)}


class Balance:
    """A probe that checks the engine's accounts against the heap; it stands outside of what it measures."""

    columns = ()

    def __init__(self):
        self.simulation = None
        self.times = []

    def __call__(self, view):
        engine, env = self.simulation._engine, self.simulation.env
        pending = np.zeros((len(MESSAGE_KINDS), 2), dtype=np.int64)
        for message in env.pending(Message):
            pending[message.kind - MESSAGES["request"]] += (1, message.size)
        np.testing.assert_array_equal(engine.in_flight, pending)
        accounts = self.simulation._tables.accounts
        np.testing.assert_array_equal(accounts[:, 0], accounts[:, 1:].sum(axis=1) + pending)
        self.times.append(env.now)
        return {}


def watch(run):
    """Run a world under watch; returns the simulation, the trace and the result."""
    trace, balance = Watch(), Balance()
    simulation = Simulation(run.world, seed=run.seed, probes=[balance], trace=trace)
    trace.simulation = balance.simulation = simulation
    for script in run.scripts:
        simulation.env.process(script(simulation))
    result = simulation.run(run.until, every=run.every)
    assert balance.times == result.probes["time"].tolist()
    return simulation, trace, result


@many
@given(runs(lives=False))
def test_nothing_is_delivered_before_it_is_sent(run):
    _, trace, _ = watch(run)
    frame = trace.frame().astype({"sent": float, "arrives": float})
    travels = frame[np.isfinite(frame["arrives"])]
    assert (travels["arrives"] >= travels["sent"] + run.world.minimum_delay).all()
    assert (frame["sent"].diff().fillna(0) >= 0).all()
    assert (frame.loc[~np.isfinite(frame["arrives"]), "fate"].isin(["lost_link", "unreachable"])).all()
    waiting = travels["fate"] == "in_flight"
    assert (travels.loc[waiting, "arrives"] >= run.until).all()
    assert (travels.loc[~waiting, "arrives"] < run.until).all()
    landed = {row: time for row, (time, _) in trace.at_landing.items()}
    assert landed == travels.loc[~waiting, "arrives"].to_dict()


@many
@given(runs(forgets=False, moves=False, lives=False))
def test_what_is_taken_from_a_profile_only_grows_newer(run):
    _, trace, _ = watch(run)
    frame = trace.frame().query("kind != 'request' and order >= 0").sort_values("order")
    for _, heard in frame.groupby(["receiver", "profile"]):
        newest = 0
        for stamp, fate in zip(heard["stamp"], heard["fate"], strict=True):
            if fate == "stale":
                assert run.world.discard_stale
                assert stamp <= newest
            elif fate in TAKEN:
                assert stamp > newest or not run.world.discard_stale
                newest = max(newest, stamp)
            else:
                assert fate == "lost_offline"


@many
@given(runs(lives=False))
def test_accounts_balance_and_agree_with_the_trace(run):
    _, trace, result = watch(run)
    frame = trace.frame()
    frame["size"] = [message.size for message in trace.messages]
    booked = result.accounts.set_index(["kind", "fate"])
    for kind in MESSAGE_KINDS:
        of_kind = frame[frame["kind"] == kind]
        assert booked.loc[(kind, "sent")].tolist() == [len(of_kind), of_kind["size"].sum()]
        for fate in (*FATES[1:], "in_flight"):
            found = of_kind[of_kind["fate"] == fate]
            assert booked.loc[(kind, fate)].tolist() == [len(found), found["size"].sum()]
    for row in result.probes.to_dict("records"):
        for unit in ("", "bytes_"):
            delivered = sum(row[unit + fate] for fate in DELIVERED)
            undelivered = ("lost_link", "lost_offline", "lost_queue", "unreachable", "in_flight")
            assert row[unit + "delivered"] == delivered
            assert row[unit + "sent"] == delivered + sum(row[unit + fate] for fate in undelivered)
    assert not frame.query("kind == 'request'")["fate"].isin(["updated", "unknown", "stale", "unrated"]).any()
    updated = frame.query("fate == 'updated' and kind != 'handover'")
    assert (updated["receiver"] < run.world.ratings.n_users).sum() == result.final["user_updates"]
    assert (updated["receiver"] >= run.world.ratings.n_users).sum() <= result.final["item_updates"]


def changes_lists(run):
    """Whether a script of a run may change contact lists."""
    return any(
        isinstance(script, Meddler) or "set_contacts" in [name for _, name, *_ in script.steps]
        for script in run.scripts
    )


@many
@given(runs(doubles=False, moves=False, lives=False))
def test_stamps_grow_by_one_at_each_emission(run):
    simulation, trace, _ = watch(run)
    frame = trace.frame().query("kind != 'request'")
    for profile, emitted in frame.groupby("profile"):
        step = emitted["stamp"].diff().fillna(0)
        # Nobody sees what is emitted to a list that a script has emptied.
        assert step.isin([0, 1]).all() or (changes_lists(run) and (step >= 0).all())
        assert emitted["stamp"].iloc[0] >= 1
        assert emitted["stamp"].iloc[-1] <= simulation._tables.profiles["stamp"][profile]
        same = emitted[step == 0].iloc[1:]
        assert (same["kind"] == "profile").all()  # only the copies of one broadcast share a stamp
        assert not emitted.duplicated(["stamp", "receiver"]).any()
        assert (emitted.groupby("stamp")["sent"].nunique() == 1).all()
    for _, asked in trace.frame().query("kind == 'request'").groupby(["sender", "receiver"]):
        assert asked["stamp"].tolist() == list(range(1, len(asked) + 1))


@many
@given(runs(lives=False))
def test_payloads_are_snapshots(run):
    """`Watch` compares each payload with the profile at sending and with itself at landing."""
    _, trace, _ = watch(run)
    for message, payload in zip(trace.messages, trace.payloads, strict=True):
        if payload is not None:
            np.testing.assert_array_equal(message.payload, payload)
            with pytest.raises(ValueError, match="read-only"):
                message.payload[0] = 0.0


@many
@given(runs(lives=False))
def test_who_is_offline_sends_and_takes_nothing(run):
    _, trace, _ = watch(run)
    frame = trace.frame()
    sent = zip(frame["kind"], trace.at_sending, strict=True)
    assert all(online != (kind == "handover") for kind, (_, online, _) in sent)  # who hands over has quit
    for row, (_, online) in trace.at_landing.items():
        assert online == (frame["fate"][row] != "lost_offline")


@many
@given(runs(doubles=False, lives=False))
def test_messages_go_to_contacts_between_a_user_and_a_router(run):
    _, trace, _ = watch(run)
    n_users = run.world.ratings.n_users
    for row, (_, _, edge) in zip(trace.frame().itertuples(), trace.at_sending, strict=True):
        between_routers = row.sender >= n_users and row.receiver >= n_users
        assert between_routers == (row.kind == "handover")
        assert row.sender >= n_users or row.receiver >= n_users
        assert row.kind == "request" or edge is not None  # a request answers a profile, contact or not
    replies, requests = (trace.frame().query(f"kind == '{kind}'") for kind in ("reply", "request"))
    assert len(replies) == (requests["fate"] == "control").sum()
    assert run.world.rating_exchange == "request" or requests.empty
