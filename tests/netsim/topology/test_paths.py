"""Loss and transmission time along paths."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.topology import Underlay, barabasi_albert, paths, ring


@st.composite
def graphs(draw):
    """Graphs with many equally fast paths, zero latencies, one-way links and parts."""
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    seconds = st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.5, 1e-30])
    graph = kind()
    graph.add_nodes_from(draw(st.permutations(range(n))))
    links = st.tuples(node, node, seconds, st.floats(0, 1), st.sampled_from([math.inf, 0.5, 3.0, 1e6]))
    for u, v, latency, loss, bandwidth in draw(st.lists(links, max_size=24)):
        graph.add_edge(u, v, latency=latency, loss=loss, bandwidth=bandwidth)
    return graph


def least_path(made, source, target):
    """Among the shortest paths of shortest beginnings, that with the fewest links, then the least place before, ..."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(made.n_places))
    graph.add_weighted_edges_from(zip(made.tail.tolist(), made.head.tolist(), made.latency.tolist(), strict=True))

    def latency(path):
        total = 0.0
        for u, v in itertools.pairwise(path):
            total += graph.edges[u, v]["weight"]
        return total

    shortest = made.path_latency([source])[0]

    def is_shortest(path):
        return all(latency(path[:length]) == shortest[path[length - 1]] for length in range(1, len(path) + 1))

    found = filter(is_shortest, nx.all_simple_paths(graph, source, target))
    return min(found, key=lambda path: (len(path), path[::-1]), default=None)


def along(made, path):
    """Loss and seconds a byte of a path."""
    edges = {edge: i for i, edge in enumerate(zip(made.tail.tolist(), made.head.tolist(), strict=True))}
    taken = [edges[edge] for edge in itertools.pairwise(path)]
    return 1 - math.prod(1 - made.loss[i] for i in taken), sum(1 / made.bandwidth[i] for i in taken)


@given(graphs())
def test_properties_are_those_of_the_one_path_that_the_rule_names(graph):
    made = Underlay.from_graph(graph)
    found = made.path_properties()
    np.testing.assert_array_equal(found.latency, made.path_latency())
    for source in range(made.n_places):
        for target in range(made.n_places):
            path = [source] if source == target else least_path(made, source, target)
            loss, seconds = (0, 0) if path is None else along(made, path)
            assert found.loss[source, target] == pytest.approx(loss, abs=1e-12)
            assert found.seconds_per_byte[source, target] == pytest.approx(seconds, rel=1e-12)
            assert 0 <= found.loss[source, target] <= 1
            assert math.isinf(found.latency[source, target]) == (path is None)


@given(graphs(), st.data())
def test_chosen_places_in_chunks_of_one_are_those_of_all(graph, data):
    place = st.integers(0, len(graph) - 1)
    sources, targets = data.draw(st.lists(place)), data.draw(st.lists(place))
    for routed in (True, False):
        made = Underlay.from_graph(graph, routed=routed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paths, "_CHUNK_CELLS", 1)
            answer = made.path_properties(sources, targets)
        for chosen, every in zip(answer, made.path_properties(), strict=True):
            assert chosen.shape == (len(sources), len(targets))
            assert chosen.dtype == np.float64
            for i, source in enumerate(sources):
                for j, target in enumerate(targets):
                    assert chosen[i, j] == every[source, target]


@given(graphs())
def test_without_routing_a_message_takes_the_link_or_nothing(graph):
    made = Underlay.from_graph(graph, routed=False)
    latency = np.full((made.n_places, made.n_places), math.inf)
    latency[made.tail, made.head] = made.latency
    np.fill_diagonal(latency, 0)
    loss, seconds = np.zeros_like(latency), np.zeros_like(latency)
    loss[made.tail, made.head] = made.loss
    seconds[made.tail, made.head] = 1 / made.bandwidth
    np.testing.assert_array_equal(made.path_latency(), latency)
    for found, expected in zip(made.path_properties(), (latency, loss, seconds), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_chain():
    graph = nx.path_graph(["a", "b", "c"])
    graph.edges["a", "b"].update(latency=1.0, loss=0.1, bandwidth=100.0)
    graph.edges["b", "c"].update(latency=2.0, loss=0.2)
    graph.add_node("alone")
    found = Underlay.from_graph(graph).path_properties([0])
    assert found.latency.tolist() == [[0, 1, 3, math.inf]]
    assert found.loss[0].tolist() == [0, 0.1, pytest.approx(0.28), 0]  # a single link's loss to the bit
    assert found.seconds_per_byte[0].tolist() == [0, 0.01, 0.01, 0]


def test_latency_alone_decides():
    graph = nx.Graph()
    nx.add_path(graph, ["a", "lossy", "z"], latency=1.0, loss=1.0, bandwidth=1.0)
    graph.add_edge("a", "z", latency=2.1)
    found = Underlay.from_graph(graph).path_properties([0], [2])
    assert [float(each[0, 0]) for each in found] == [2.0, 1.0, 2.0]


def test_of_equally_fast_paths_the_fewest_links_then_the_least_index():
    graph = nx.Graph()
    graph.add_nodes_from("a31xz")
    nx.add_path(graph, ["a", "1", "z"], latency=1.0, loss=0.1)
    nx.add_path(graph, ["a", "3", "z"], latency=1.0, loss=0.3)
    nx.add_path(graph, ["a", "x"], latency=0.0, loss=0.0)
    nx.add_path(graph, ["x", "3"], latency=1.0, loss=0.0)
    made = Underlay.from_graph(graph)
    assert made.places == ("a", "3", "1", "x", "z")
    assert made.path_properties([0], [4]).loss[0, 0] == pytest.approx(1 - 0.7 * 0.7)  # through "3", index 1, directly


def test_links_without_latency_do_not_lead_in_circles():
    graph = nx.cycle_graph(5)
    nx.set_edge_attributes(graph, 0.0, "latency")
    nx.set_edge_attributes(graph, 0.5, "loss")
    loss = Underlay.from_graph(graph).path_properties([0]).loss
    assert loss.tolist() == [[0, 0.5, 0.75, 0.75, 0.5]]


def test_a_latency_that_rounding_swallows_still_has_its_loss():
    graph = nx.Graph()
    graph.add_edge(0, 1, latency=1e9)
    graph.add_edge(1, 2, latency=1e-9, loss=0.25)
    assert Underlay.from_graph(graph).path_properties([0], [2]).loss[0, 0] == 0.25


def test_without_loss_and_bandwidth_nothing_is_searched(monkeypatch):
    made = Underlay.from_graph(ring(6))
    monkeypatch.setattr(paths, "_follow", None)
    found = made.path_properties([1, 2])
    np.testing.assert_array_equal(found.latency, made.path_latency([1, 2]))
    assert found.loss.tolist() == found.seconds_per_byte.tolist() == [[0.0] * 6] * 2


def test_tiny_losses_do_not_vanish_in_rounding():
    graph = nx.path_graph(5)
    nx.set_edge_attributes(graph, {edge: {"latency": 1.0, "loss": 1e-20} for edge in graph.edges})
    assert Underlay.from_graph(graph).path_properties([0], [4]).loss[0, 0] == pytest.approx(4e-20, rel=1e-12)


def test_a_thousand_places():
    graph = barabasi_albert(1000, 3, seed=1, latency=(0.001, 0.2))
    rng = np.random.default_rng(1)
    for u, v in graph.edges:
        graph.edges[u, v].update(loss=float(rng.uniform(0, 0.1)), bandwidth=float(rng.uniform(1e5, 1e7)))
    made = Underlay.from_graph(graph)
    found = made.path_properties()
    for source in (0, 500, 999):
        for target, path in nx.single_source_dijkstra_path(graph, source, weight="latency").items():
            loss, seconds = along(made, path)
            assert found.loss[source, target] == pytest.approx(loss, rel=1e-9)
            assert found.seconds_per_byte[source, target] == pytest.approx(seconds, rel=1e-9)


def test_indices_are_checked():
    made = Underlay.from_graph(ring(3))
    with pytest.raises(ValueError, match=r"sources must be in \[0, 3\), got 3"):
        made.path_properties([3])
    with pytest.raises(ValueError, match="targets must be a 1-d array of integer place indices"):
        made.path_properties([0], [0.5])
