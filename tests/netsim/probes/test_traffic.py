import numpy as np
import pytest

from algorithms.synthetic import low_rank
from netsim import GilbertElliott, LearnedRouters, Learning, OnOff, Recommendations, World, complete, simulate
from netsim.messages import DELIVERED, FATES, MESSAGE_KINDS
from netsim.probes import traffic
from tests.netsim.probes.small import RANK, one_user

DATA = low_rank(8, 12, rank=2, missing=0.5, seed=1)
BUSY = World(
    DATA.train,
    complete(3),
    routers=4,
    delay=0.5,
    loss=GilbertElliott(0.2, burst_length=2.0),
    duplication=0.2,
    user_churn=OnOff(20.0, 5.0),
    router_lifetime=25.0,
    rehosting="handover",
    user_contacts=LearnedRouters(),
    recommendations=Recommendations(DATA.test, mean_gap=10.0),
    learning=Learning(rank=2),
)


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def test_messages_and_bytes_of_a_world_followed_by_hand(engine):
    probe = traffic(("profile", "request", "reply"), ("sent", "delivered", "updated", "in_flight"), bytes=True)
    result = simulate(one_user(), until=1.0, at=[0.2, 0.45, 0.6], seed=1, engine=engine, probes=[probe])
    plain, ask, reply = 48 + 8 * RANK, 48 + 3 * 8, 48 + 8 * RANK + 8 + 3 * 16
    # The user's profile arrives at 0.25 and is answered by a request, the items' at 0.375: two of three update him.
    expected = {
        "profile_sent": [0, 4, 4, 4, 4],
        "profile_delivered": [0, 0, 4, 4, 4],
        "profile_updated": [0, 0, 2, 2, 2],
        "profile_in_flight": [0, 4, 0, 0, 0],
        "request_sent": [0, 0, 1, 1, 1],
        "request_delivered": [0, 0, 0, 1, 1],
        "request_updated": [0, 0, 0, 0, 0],
        "request_in_flight": [0, 0, 1, 0, 0],
        "reply_sent": [0, 0, 0, 1, 1],
        "reply_delivered": [0, 0, 0, 0, 1],
        "reply_updated": [0, 0, 0, 0, 1],
        "reply_in_flight": [0, 0, 0, 1, 0],
    }
    size = {"profile": plain, "request": ask, "reply": reply}
    expected |= {f"bytes_{name}": [n * size[name.split("_")[0]] for n in row] for name, row in expected.items()}
    assert result.measured == list(expected)
    assert {name: result.probes[name].tolist() for name in expected} == expected
    assert (result.probes[result.measured].dtypes == np.int64).all()


def test_balances_and_adds_up_to_what_every_run_has(engine):
    result = simulate(BUSY, until=60.0, every=5.0, seed=2, engine=engine, probes=[traffic(bytes=True)])
    table = result.probes
    for prefix in ("", "bytes_"):
        for fate in (*FATES, "delivered", "in_flight"):
            of_kinds = sum(table[f"{prefix}{kind}_{fate}"] for kind in MESSAGE_KINDS)
            assert (of_kinds == table[prefix + fate]).all()
        for kind in MESSAGE_KINDS:
            settled = sum(table[f"{prefix}{kind}_{fate}"] for fate in (*FATES[1:], "in_flight"))
            assert (settled == table[f"{prefix}{kind}_sent"]).all()
            delivered = sum(table[f"{prefix}{kind}_{fate}"] for fate in DELIVERED)
            assert (delivered == table[f"{prefix}{kind}_delivered"]).all()
    assert (table.iloc[-1][[f"{kind}_sent" for kind in MESSAGE_KINDS]] > 0).all()
    assert (table.iloc[-1][["profile_lost_link", "profile_lost_offline"]] > 0).all()
    booked = result.accounts.set_index(["kind", "fate"])
    for (kind, fate), row in booked.iterrows():
        assert [result.final[f"{kind}_{fate}"], result.final[f"bytes_{kind}_{fate}"]] == row.tolist()


def test_default_is_all_messages_without_bytes():
    columns = traffic().columns
    assert len(columns) == len(set(columns)) == len(MESSAGE_KINDS) * (len(FATES) + 2)
    assert not any(column.startswith("bytes") for column in columns)
    assert traffic(["reply"], ["stale", "sent"]).columns == ("reply_stale", "reply_sent")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kinds": "profile"}, "traffic: kinds must be a sequence of some of request, reply, profile, handover"),
        ({"kinds": ()}, r"traffic: kinds must be a sequence .*, got \(\)"),
        ({"kinds": ["profile", "tick"]}, "traffic: kinds must hold some of request, .*, got 'tick'"),
        ({"kinds": ["reply", "reply"]}, "traffic: kinds must name each only once"),
        ({"fates": ["lost"]}, "traffic: fates must hold some of sent, .*in_flight, got 'lost'"),
        ({"fates": 3}, "traffic: fates must be a sequence"),
        ({"bytes": 1}, "traffic: bytes must be True or False, got 1"),
    ],
)
def test_what_is_wrong_is_said(arguments, message):
    with pytest.raises(ValueError, match=message):
        traffic(**arguments)


def test_two_of_disjoint_columns_go_together():
    probes = [traffic(["reply"]), traffic(["request"])]
    assert len(simulate(one_user(), until=1.0, seed=1, probes=probes).measured) == 24
    with pytest.raises(ValueError, match="two probes measure a column 'reply_sent'"):
        simulate(one_user(), until=1.0, seed=1, probes=[traffic(["reply"]), traffic(fates=["sent"])])
