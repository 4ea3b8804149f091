import math
import pickle

import networkx as nx
import numpy as np
import pytest

from netsim import Underlay, random_geometric, ring
from netsim.topology.positions import read_positions


def graph(*attributes):
    made = nx.Graph()
    for number, each in enumerate(attributes):
        made.add_node(number, **each)
    return made


def test_pos_is_taken_as_it_stands():
    assert read_positions(graph({"pos": (1, 2.5)}, {"pos": np.array([0.0, -1.0])})).tolist() == [[1, 2.5], [0, -1]]


@pytest.mark.parametrize("names", [("latitude", "longitude"), ("Latitude", "Longitude")])
def test_degrees_are_projected_at_the_mean_latitude(names):
    latitude, longitude = names
    positions = read_positions(graph({latitude: 50.0, longitude: 10.0}, {latitude: 70.0, longitude: 20.0}))
    half = math.cos(math.radians(60))
    assert positions == pytest.approx(np.array([[10 * half, 50.0], [20 * half, 70.0]]))


def test_pos_comes_before_degrees():
    assert read_positions(graph({"pos": (1.0, 2.0), "latitude": 5.0, "longitude": 5.0})).tolist() == [[1.0, 2.0]]


def test_what_is_unknown_is_nan():
    given = [{"pos": (0.0, 1.0)}, {}, {"pos": None}, {"pos": "xy"}, {"pos": (1.0, math.inf)}, {"pos": (1, 2, 3)}]
    positions = read_positions(graph(*given))
    assert positions[0].tolist() == [0.0, 1.0]
    assert np.isnan(positions[1:]).all()


@pytest.mark.parametrize("attributes", [{}, {"pos": "nowhere"}, {"latitude": 1.0}])
def test_without_any_position_there_are_none(attributes):
    assert read_positions(graph(attributes, attributes)) is None


def test_an_underlay_keeps_positions_and_is_not_told_apart_by_them():
    made = random_geometric(12, 0.5, seed=1)
    there = Underlay.from_graph(made)
    assert there.positions.tolist() == [list(made.nodes[n]["pos"]) for n in made]
    for node in made:
        del made.nodes[node]["pos"]
    bare = Underlay.from_graph(made)
    assert bare.positions is None
    assert bare == there
    assert hash(bare) == hash(there)
    assert bare.digest == there.digest


def test_positions_survive_a_copy_and_the_way_to_a_graph_and_back():
    made = ring(3)
    made.nodes[1]["pos"] = (0.5, 2.0)
    there = Underlay.from_graph(made)
    for back in (pickle.loads(pickle.dumps(there)), Underlay.from_graph(there.to_graph())):
        np.testing.assert_array_equal(back.positions, [[np.nan, np.nan], [0.5, 2.0], [np.nan, np.nan]])
    assert "pos" not in there.to_graph().nodes[0]
    with pytest.raises(ValueError, match="read-only"):
        there.positions[0] = 1.0


@pytest.mark.parametrize("positions", [np.zeros((2, 2)), np.zeros(3), np.full((3, 2), np.inf)])
def test_positions_of_another_shape_are_refused(positions):
    there = Underlay.from_graph(ring(3))
    with pytest.raises(ValueError, match=r"positions must be finite or NaN, of shape \(3, 2\)"):
        Underlay(there.places, there.tail, there.head, there.latency, positions=positions)
