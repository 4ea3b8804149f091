import pytest

from netsim import GivenContacts, disclosure, simulate
from netsim.probes import updates_per_node
from tests.netsim.probes.small import at, one_user

ENDS = (0.0, 0.5, 1.0)


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def measured(world, engine, *scripts, until, times):
    result = simulate(
        world, until=until, at=times, seed=1, engine=engine, scripts=scripts, probes=[updates_per_node(ENDS)]
    )
    users = result.probes[[f"user_updates_q{q}" for q in (0, 50, 100)]].to_numpy().tolist()
    return users, result.probes[[f"item_updates_q{q}" for q in (0, 50, 100)]].to_numpy().tolist(), result


def test_updates_of_each_profile(engine):
    users, items, result = measured(one_user(), engine, until=1.5, times=[0.5, 1.0])
    # The user is moved by items 0 and 1 at 0.375 and 1.375; they by his reply at 0.75 and his broadcast at 1.25.
    assert users == [[0, 0, 0], [2, 2, 2], [2, 2, 2], [4, 4, 4]]
    assert items == [[0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 2, 2]]
    assert result.final["user_updates"] == 4  # the column that every run has
    assert result.final["item_updates"] == 4


def test_counts_start_again_where_what_was_learned_is_lost(engine):
    forget = [at(1.0, "reset", user="a"), at(1.3, "reset", router=0)]
    users, items, result = measured(one_user(), engine, *forget, until=1.5, times=[1.1, 1.4])
    assert [row[1] for row in users] == [0, 0, 2, 2]
    assert [row[2] for row in items] == [0, 1, 0, 0]
    assert result.final["user_updates"] == 4


def test_quantiles_are_over_all_users_and_items_of_the_end(engine):
    world = one_user(user_contacts=GivenContacts({"a": []}), router_contacts=GivenContacts({0: ["a"]}))
    users, items, result = measured(world, engine, until=9.0, times=[3.0])
    assert items == [[0, 0, 0]] * 3
    assert users[-1] == [18, 18, 18]
    assert result.users["updates"].tolist() == [18]


def test_default_columns_and_clashes():
    assert updates_per_node().columns == tuple(
        f"{role}_updates_q{q}" for role in ("user", "item") for q in (0, 50, 100)
    )
    simulate(one_user(), until=1.0, seed=1, probes=[updates_per_node(), disclosure()])
    with pytest.raises(ValueError, match="two probes measure a column 'user_updates_q50'"):
        simulate(one_user(), until=1.0, seed=1, probes=[updates_per_node(), updates_per_node((0.5,))])
