import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba

from algorithms.synthetic import low_rank
from netsim import GivenPlacement, Learning, World, complete, path, plots, ring, simulate, star
from netsim.tables import build_tables

mpl.use("Agg")

DATA = low_rank(6, 5, rank=2, missing=0.4, seed=1)
WORLD = World(DATA.train, ring(8), learning=Learning(rank=2), access=0.001)
GREY = to_rgba("0.8")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result():
    return simulate(WORLD.replace(routers=3), until=50.0, seed=4, engine="events")


def points(ax):
    """What is drawn as points, in the order of drawing: places, then users, then routers."""
    return [each for each in ax.collections if isinstance(each, PathCollection)]


def values(ax):
    """Values that colour nodes: users, then routers."""
    return [
        each.get_array().tolist() for each in points(ax) if each.get_array() is not None and len(each.get_offsets())
    ]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def bar(ax):
    (drawn,) = (each for each in ax.figure.axes if each is not ax)
    return drawn


def test_draws_every_place_link_user_and_router_once():
    ax = plots.topology(WORLD, seed=1)
    places, users, routers = (each.get_offsets() for each in points(ax))
    (links,) = (each for each in ax.collections if isinstance(each, LineCollection))
    assert [len(each) for each in (places, users, routers)] == [8, 6, 5]
    ends = {tuple(sorted(map(tuple, np.round(segment, 9)))) for segment in links.get_segments()}
    at = [tuple(each) for each in np.round(places, 9)]
    assert ends == {tuple(sorted((at[n], at[(n + 1) % 8]))) for n in range(8)}
    assert legend(ax) == ["6 users", "5 routers", "8 places, 8 links"]


def test_users_and_routers_differ_in_shape_and_colour():
    _, users, routers = points(plots.topology(WORLD, seed=1))
    assert len(users.get_paths()[0].vertices) != len(routers.get_paths()[0].vertices)
    assert users.get_facecolor().tolist() != routers.get_facecolor().tolist()


def test_nodes_stand_at_the_places_of_the_run():
    given = GivenPlacement({n: n for n in range(6)}, {n: n for n in range(5)})
    ax = plots.topology(WORLD.replace(placement=given, topology=path(8)), seed=1)
    places, users, routers = (np.asarray(each.get_offsets()) for each in points(ax))
    np.testing.assert_array_equal(users, places[:6])  # the first at a place stands on it
    apart = np.linalg.norm(routers - places[:5], axis=1)
    gap = np.linalg.norm(places[1] - places[0])
    assert (apart > 0).all()
    assert (apart < gap / 2).all()


def test_nodes_that_share_a_place_do_not_cover_each_other():
    ax = plots.topology(World(DATA.train, complete(1)), seed=1)
    at = np.concatenate([each.get_offsets() for each in points(ax)[1:]])
    apart = np.linalg.norm(at[:, None] - at, axis=2)[np.triu_indices(11, 1)]
    assert apart.min() > 0.1 * apart.max()


@pytest.mark.parametrize("seed", [5, [1, 2]])
def test_the_seed_places_the_nodes_and_the_same_seed_gives_the_same_picture(seed):
    drawn = [points(plots.topology(WORLD, seed=each)) for each in (seed, seed, 6)]
    first, again, other = (np.concatenate([each.get_offsets() for each in parts[1:]]) for parts in drawn)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_generator_as_seed_is_drawn_from_once():
    one = plots.topology(WORLD, seed=np.random.default_rng(3))
    run = simulate(WORLD, until=1.0, seed=np.random.default_rng(3), engine="events")
    for mine, its in zip(points(one), points(plots.topology(run)), strict=True):
        np.testing.assert_array_equal(mine.get_offsets(), its.get_offsets())


def test_a_result_knows_its_seed(result):
    drawn = zip(points(plots.topology(result)), points(plots.topology(result.world, seed=4)), strict=True)
    for its, told in drawn:
        np.testing.assert_array_equal(its.get_offsets(), told.get_offsets())


def test_latency_is_the_mean_over_contacts():
    ax = plots.topology(WORLD, seed=1, color="latency")
    tables = build_tables(WORLD, 1)
    expected = [tables.edges["base"][tables.edges["sender"] == node].mean() for node in range(11)]
    assert np.concatenate(values(ax)).tolist() == pytest.approx(expected)
    assert bar(ax).get_ylabel() == "Mean path latency to contacts (s)"


def test_updates_of_a_router_are_those_of_the_items_it_hosts(result):
    users, routers = values(plots.topology(result, color="updates"))
    assert users == result.user_updates.tolist()
    assert len(routers) == 3
    assert sum(routers) == result.item_updates.sum()
    hosts = build_tables(result.world, 4).profiles["node"][6:] - 6
    assert routers[hosts[0]] == result.item_updates[hosts == hosts[0]].sum()


def test_an_array_colours_users_or_all():
    assert values(plots.topology(WORLD, seed=1, color=np.arange(6))) == [[0, 1, 2, 3, 4, 5]]
    assert values(plots.topology(WORLD, seed=1, color=range(11))) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def test_a_mapping_colours_by_role_and_by_id():
    ax = plots.topology(WORLD, seed=1, color={"routers": {4: 1.5, 1: 2.5}}, label="Load (messages/s)")
    assert values(ax) == [[2.5, 1.5]]
    assert bar(ax).get_ylabel() == "Load (messages/s)"
    assert values(plots.topology(WORLD, seed=1, color={"users": range(6)})) == [[0, 1, 2, 3, 4, 5]]


def test_nodes_without_a_value_are_grey():
    ax = plots.topology(WORLD, seed=1, color=[1.0, np.nan, 3.0, np.inf, 5.0, 6.0])
    grey = [each for each in points(ax)[1:] if each.get_array() is None]
    assert [len(each.get_offsets()) for each in grey] == [2, 5]
    assert all((each.get_facecolor() == GREY).all() for each in grey)


def test_users_and_routers_share_one_scale_and_limits_set_it():
    for limits, expected in ((None, (0, 10)), ((-5, 50), (-5, 50))):
        ax = plots.topology(WORLD, seed=1, color=range(11), limits=limits)
        assert {each.get_clim() for each in points(ax) if each.get_array() is not None} == {expected}
        assert bar(ax).get_ylim() == expected


def test_the_legend_can_be_left_out():
    assert plots.topology(WORLD, seed=1, legend=False).get_legend() is None


def test_draws_on_the_given_axes_and_keeps_their_shape():
    figure, (left, right) = plt.subplots(1, 2)
    assert plots.topology(WORLD, seed=1, ax=right) is right
    assert not left.collections
    assert right.get_aspect() == 1.0
    assert plt.get_fignums() == [figure.number]


def test_unreachable_contacts_leave_a_node_without_a_value():
    given = GivenPlacement(dict.fromkeys(range(6), 0), {n: 1 if n else 0 for n in range(5)})
    graph = star(2)
    graph.remove_edge(0, 1)
    ax = plots.topology(WORLD.replace(topology=graph, placement=given), seed=1, color="latency")
    assert values(ax)[-1] == [0.002]  # the one router that anyone reaches, by the access delays alone
    ax.figure.canvas.draw()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "seed must be given with a World"),
        ({"seed": 1, "color": "speed"}, "color must be 'latency', 'updates', an array or a mapping, got 'speed'"),
        ({"seed": 1, "color": "updates"}, "color='updates' needs a Result, got a World"),
        ({"seed": 1, "color": [1.0, 2.0]}, r"each of 6 users, or of 11 users and routers, got shape \(2,\)"),
        ({"seed": 1, "color": ["a"] * 6}, "color must hold numbers"),
        ({"seed": 1, "color": {"user": range(6)}}, 'must name "users" or "routers", got \'user\''),
        ({"seed": 1, "color": {}}, "got nothing"),
        ({"seed": 1, "color": {"users": {99: 1.0}}}, "color names 99, which is not one of the users"),
        ({"seed": 1, "color": {"routers": range(6)}}, r"each of 5 routers, got shape \(6,\)"),
        ({"seed": 1, "color": [np.nan] * 6}, "no finite value"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_no_figure(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.topology(WORLD, **arguments)
    assert plt.get_fignums() == []


def test_a_seed_beside_a_result_is_refused(result):
    with pytest.raises(ValueError, match=r"seed is that of the result \(4\), got 9; leave it out"):
        plots.topology(result, seed=9)


def test_only_a_world_or_a_result_can_be_drawn():
    with pytest.raises(ValueError, match="network must be a World or a Result, got Graph"):
        plots.topology(ring(4), seed=1)
