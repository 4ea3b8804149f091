"""The tables of users, routers and items at the end of a run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from algorithms.ratings import Ratings
from netsim import GivenContacts, Learning, Periodic, Simulation, World, simulate
from tests.worlds import runs

EACH_SECOND = Periodic(1.0, phase=0.0)
RANK = 3
PLAIN = 48 + 8 * RANK
many = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def small(**changes):
    """Users "b" (items 5 and 7), "a" (item 7) and "c" (none); items 5, 7 at router "x", 9 at "z", none at "y"."""
    ratings = Ratings.from_arrays(
        ["b", "b", "a"], [5, 7, 7], [1.0, 2.0, 3.0], scale=(1, 5), user_ids=["b", "a", "c"], item_ids=[7, 9, 5]
    )
    plain = World(
        ratings,
        routers=("z", "x", "y"),
        hosting={5: "x", 7: "x", 9: "z"},
        user_contacts=GivenContacts({"b": ["x"], "a": ["x", "z"], "c": []}),
        router_contacts=GivenContacts({"x": ["a", "b"], "z": ["c"], "y": ["a"]}),
        user_broadcast=EACH_SECOND,
        router_broadcast=Periodic(1.0, phase=0.5),
        delay=0.25,
        learning=Learning(rank=RANK),
    )
    return plain.replace(**changes)


def rows(table):
    return list(table.itertuples(index=False, name=None))


def test_tables_of_a_small_world(engine):
    """At 0 users broadcast, at 0.25 routers ask, at 0.5 users reply and routers broadcast; then it ends."""

    def leave(simulation):
        yield simulation.env.timeout(0.7)
        simulation.set_online(False, user="c")
        simulation.set_online(False, router="y")

    result = simulate(small(), until=0.9, seed=1, engine=engine, scripts=[leave])
    both, one = 48 + 8 * RANK + 8 + 2 * 16, 48 + 8 * RANK + 8 + 16  # replies about two items and one
    assert rows(result.users) == [
        ("b", True, 2, 2, 2, 2 * 8 * RANK, PLAIN + both, 2),
        ("a", True, 1, 1, 4, 4 * 8 * RANK, 2 * PLAIN + both + one, 1),
        ("c", False, 0, 0, 0, 0, 0, 0),
    ]
    ask_two, ask_one = 48 + 2 * 8, 48 + 8
    assert rows(result.routers) == [
        ("z", True, 1, 1, 8 * RANK, PLAIN + ask_one),
        ("x", True, 2, 4, 4 * 8 * RANK, 4 * PLAIN + 2 * ask_two),
        ("y", False, 0, 0, 0, 0),
    ]
    assert rows(result.items) == [(7, "x", 2, 2), (9, "z", 0, 0), (5, "x", 1, 1)]
    assert result.user_updates.tolist() == [2, 1, 0]
    assert result.item_updates.tolist() == [2, 0, 1]


def test_columns_and_types(engine):
    result = simulate(small(), until=2.0, seed=1, engine=engine)
    assert list(result.users) == [
        "user",
        "online",
        "ratings",
        "updates",
        "profiles_sent",
        "profile_bytes",
        "bytes_sent",
        "ratings_disclosed",
    ]
    assert list(result.routers) == ["router", "online", "items", "profiles_sent", "profile_bytes", "bytes_sent"]
    assert list(result.items) == ["item", "router", "ratings", "updates"]
    for table in (result.users, result.routers, result.items):
        for name, column in table.items():
            wanted = "str" if name in ("user", "router") else "bool" if name == "online" else "int64"
            assert column.dtype == (pd.Series(["text"]).dtype if wanted == "str" else wanted), name


@pytest.mark.parametrize("ids", [[3, 1, 2], ["b", "a", "c"], [2**70, 2, 3], [1, "1", 2.5], [(1, 2), True, "x"]])
def test_ids_are_the_original_ones(ids):
    ratings = Ratings.from_arrays(ids, ids[::-1], [1.0, 2.0, 3.0], scale=(1, 5), user_ids=ids, item_ids=ids)
    result = simulate(World(ratings), until=1.0, seed=1)
    for column in (result.users["user"], result.routers["router"], result.items["item"], result.items["router"]):
        assert column.tolist() == ids
        assert [type(each) for each in column.tolist()] == [type(each) for each in ids]


@many
@given(runs(doubles=False, forgets=False, moves=False, lives=False))
def test_nodes_sent_what_was_sent(run):
    results = [simulate(**run.arguments, engine=engine) for engine in ("events", "compiled")]
    result = results[0]
    for name in ("users", "routers", "items"):
        pd.testing.assert_frame_equal(getattr(result, name), getattr(results[1], name), check_exact=True)
    users, routers, items = result.users, result.routers, result.items
    sent = result.accounts.query("fate == 'sent'").set_index("kind")
    size = 8 * run.world.learning.rank
    assert users["bytes_sent"].sum() + routers["bytes_sent"].sum() == sent["bytes"].sum()
    assert users["profiles_sent"].sum() + routers["profiles_sent"].sum() == sent["messages"][["profile", "reply"]].sum()
    assert (users["profile_bytes"] == size * users["profiles_sent"]).all()
    assert (routers["profile_bytes"] == size * routers["profiles_sent"]).all()
    # Users alone reply, routers alone ask, and to a router's profile nothing is attached.
    of_routers = routers["profiles_sent"].sum() * (48 + size)
    assert routers["bytes_sent"].sum() == sent["bytes"]["request"] + of_routers
    assert users["bytes_sent"].sum() == sent["bytes"]["reply"] + sent["bytes"]["profile"] - of_routers
    final, known = result.final, run.world.ratings
    assert (users["updates"].sum(), items["updates"].sum()) == (final["user_updates"], final["item_updates"])
    assert (users["online"].sum(), routers["online"].sum()) == (final["users_online"], final["routers_online"])
    assert users["ratings"].tolist() == np.bincount(known.user, minlength=known.n_users).tolist()
    assert (items["ratings"] <= np.bincount(known.item, minlength=known.n_items)).all()
    assert items["ratings"].sum() <= users["ratings_disclosed"].sum()  # what routers know was told to them
    assert items["router"].value_counts().to_dict() == routers.query("items > 0").set_index("router")["items"].to_dict()


def test_an_earlier_result_stays_as_it_was(engine):
    simulation = Simulation(small(), seed=1, engine=engine)
    first = simulation.run(2.0)
    names = ("users", "routers", "items", "probes", "accounts")
    tables = {name: getattr(first, name).copy(deep=True) for name in names}
    arrays = {name: getattr(first, name).copy() for name in ("user_profiles", "item_profiles", "disclosed")}

    def leave(simulation):
        yield simulation.env.timeout(0.1)
        simulation.set_online(False, user="a")

    simulation.env.process(leave(simulation))
    later = simulation.run(9.0)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(getattr(first, name), table, check_exact=True)
        assert not getattr(later, name).equals(table)
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(first, name), array)


@pytest.mark.parametrize("ids", [[3, 1], list(np.array([3, 1]))], ids=["int", "numpy"])
def test_routers_with_integers_for_ids_have_a_column_of_integers(ids):
    world = replace(small(), routers=ids, hosting=None, user_contacts=GivenContacts({}))
    world = replace(world, router_contacts=GivenContacts({}))
    table = simulate(world, until=1.0, seed=1).routers
    assert table["router"].tolist() == [3, 1]
    assert table["router"].dtype == np.int64
