import pytest

from algorithms.ratings import Ratings
from netsim import OnOff, World, simulate
from netsim.probes import availability
from tests.netsim.probes.small import at


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def four_users_and_two_routers(**changes):
    ratings = Ratings.from_arrays(["a", "b", "c", "d"], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], scale=(1, 5))
    return World(ratings, routers=("y", "z"), **changes)


def test_shares_of_nodes_online_now(engine):
    scripts = [
        at(1.0, "set_online", False, user="a"),
        at(2.0, "depart", user="b"),
        at(3.0, "set_online", True, user="a"),
        at(4.0, "hold_offline", router="y"),
        at(5.0, "depart", router="z"),
        at(6.0, "release_offline", router="y"),
    ]
    result = simulate(
        four_users_and_two_routers(),
        until=6.5,
        every=1.0,
        seed=1,
        engine=engine,
        scripts=scripts,
        probes=[availability()],
    )
    # A probe at t sees nothing of what a script does at t. Who has departed stays offline.
    assert result.probes["users_availability"].tolist() == [1.0, 1.0, 0.75, 0.5, 0.75, 0.75, 0.75, 0.75]
    assert result.probes["routers_availability"].tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.5]
    assert result.measured == ["users_availability", "routers_availability"]


def test_is_the_count_that_every_run_has_over_the_number_of_nodes(engine):
    world = four_users_and_two_routers(user_churn=OnOff(2.0, 2.0), router_churn=OnOff(1.0, 1.0), user_lifetime=15.0)
    table = simulate(world, until=20.0, every=0.5, seed=3, engine=engine, probes=[availability()]).probes
    assert (table["users_availability"] * 4 == table["users_online"]).all()
    assert (table["routers_availability"] * 2 == table["routers_online"]).all()
    assert table["users_availability"].nunique() > 2
    assert (table["users_availability"][table["time"] > 15.0] == 0.0).all()


def test_twice_is_refused():
    with pytest.raises(ValueError, match="two probes measure a column 'users_availability'"):
        simulate(four_users_and_two_routers(), until=1.0, seed=1, probes=[availability(), availability()])
