"""Underlays after failures and partitions, and regions."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.topology import Underlay, grid, region_topology, ring


@pytest.fixture
def made():
    graph = ring(5)
    nx.set_edge_attributes(graph, 0.1, "loss")
    nx.set_node_attributes(graph, {0: "east", 1: "east", 2: "west"}, "region")
    return Underlay.from_graph(nx.relabel_nodes(graph, dict(enumerate("abcde"))))


def pairs(underlay):
    return [underlay.places[u] + underlay.places[v] for u, v in zip(underlay.tail, underlay.head, strict=True)]


def test_a_failed_link_fails_in_both_directions_and_paths_go_round(made):
    left = made.without(links=[("b", "a")])
    assert pairs(left) == ["ae", "bc", "cb", "cd", "dc", "de", "ea", "ed"]
    assert (left.places, left.regions, left.description) == (made.places, made.regions, made.description)
    assert left.path_properties([0], [1]).loss[0, 0] == pytest.approx(1 - 0.9**4)
    assert made.n_links == 5  # the underlay itself stays


def test_a_failed_place_keeps_its_index_and_loses_its_links(made):
    left = made.without(places=["b"])
    assert left.places == made.places
    assert pairs(left) == ["ae", "cd", "dc", "de", "ea", "ed"]
    assert left.path_latency([1]).tolist() == [[math.inf, 0, math.inf, math.inf, math.inf]]


def test_links_and_places_together_and_nothing(made):
    assert pairs(made.without(links=[("c", "d")], places=["a"])) == ["bc", "cb", "de", "ed"]
    assert made.without() == made
    assert made.without(places=made.places).n_links == 0


def test_a_one_way_link_fails_by_its_ends():
    graph = nx.DiGraph()
    nx.add_path(graph, "abc", latency=1.0)
    assert pairs(Underlay.from_graph(graph).without(links=[("c", "b")])) == ["ab"]


def test_names_that_are_pairs_themselves():
    made = Underlay.from_graph(grid(2, 2))
    assert made.without(links=[((0, 0), (0, 1))]).n_links == 3
    assert made.without(places=[(0, 0)]).n_links == 2


def test_a_split_keeps_the_links_within_each_side(made):
    left = made.split(["a", "b"])
    assert pairs(left) == ["ab", "ba", "cd", "dc", "de", "ed"]
    assert np.isinf(left.path_latency([0, 1], [2, 3, 4])).all()
    assert left == made.split({"c", "d", "e"})


def test_both_keep_everything_else():
    made = Underlay.from_graph(region_topology())
    for left in (made.without(places=made.places_in("East US")), made.split(["Japan East"])):
        assert (left.routed, left.regions, left.n_links) == (False, made.regions, 55)
        assert left.positions is not None


@given(st.data())
def test_what_is_left_is_the_graph_without_its_edges(data):
    n = data.draw(st.integers(2, 7))
    graph = data.draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    graph.add_nodes_from(range(n))
    node = st.integers(0, n - 1)
    for u, v in data.draw(st.lists(st.tuples(node, node), max_size=20)):
        if u != v:
            graph.add_edge(u, v, latency=1.0)
    links = data.draw(st.lists(st.sampled_from(sorted(graph.edges)), max_size=4)) if graph.edges else []
    places = data.draw(st.lists(node, max_size=2))
    left = Underlay.from_graph(graph).without(links=links, places=places)
    graph.remove_edges_from([*links, *((v, u) for u, v in links)])
    graph.remove_edges_from([edge for edge in list(graph.edges) if set(edge) & set(places)])
    assert left == Underlay.from_graph(graph)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda made: made.without(places=["x"]),
            r"places must name places of the underlay, got 'x'; its places are 'a'",
        ),
        (lambda made: made.without(places=[["a"]]), r"places must name places of the underlay, got \['a'\]"),
        (
            lambda made: made.without(places="ab"),
            r"places must be a collection, got 'ab'; pass a list, e.g. places=\['ab'\]",
        ),
        (lambda made: made.without(places=3), "places must be a collection, got 3"),
        (lambda made: made.without(links=[("a", "x")]), "links must name places of the underlay, got 'x'"),
        (
            lambda made: made.without(links=[("a", "c")]),
            r"links must be links of .*, got \('a', 'c'\), between which there is none; 'a' has links with 'b', 'e'$",
        ),
        (lambda made: made.without(links=("a", "b")), r"links must be pairs of places, got 'a'; pass e.g. links="),
        (lambda made: made.without(links=[("a",)]), r"links must be pairs of places, got \('a',\)"),
        (lambda made: made.without(links=[7]), "links must be pairs of places, got 7"),
        (lambda made: made.split(["x"]), "places must name places of the underlay, got 'x'"),
        (lambda made: made.split([]), "places must leave places on both sides of the partition, got 0 of 5"),
        (lambda made: made.split("a"), "places must be a collection, got 'a'"),
        (lambda made: made.split(made.places), "places must leave places on both sides of the partition, got 5 of 5"),
        (
            lambda made: made.places_in("south"),
            "one of the underlay's 2 regions, got 'south'; its regions are 'east', 'west'",
        ),
        (lambda made: made.places_in(None), "one of the underlay's 2 regions, got None"),
        (lambda made: made.region_of("x"), "place must name places of the underlay, got 'x'"),
        (lambda made: replace(made, regions=("east",)), "regions must be one a place, 5, got 1"),
        (lambda made: replace(made, regions=("east", [], *"cde")), r"regions must be hashable, got \[\] at position 1"),
    ],
)
def test_what_is_wrong_is_named(made, change, message):
    with pytest.raises(ValueError, match=message):
        change(made)


def test_an_error_about_a_large_underlay_stays_short():
    made = Underlay.from_graph(ring(30))
    with pytest.raises(ValueError, match=r"got 77; its places are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more$"):
        made.without(places=[77])


def test_regions(made):
    assert made.regions == ("east", "east", "west", None, None)
    assert made.places_in("east") == ("a", "b")
    assert (made.region_of("c"), made.region_of("d")) == ("west", None)
    bare = Underlay.from_graph(ring(3))
    assert bare.regions is None
    assert bare.region_of(0) is None
    with pytest.raises(
        ValueError, match="one of the underlay's 0 regions, got 'east'; give nodes the attribute 'region'"
    ):
        bare.places_in("east")


def test_another_attribute_for_the_region():
    graph = ring(3)
    nx.set_node_attributes(graph, {0: "DE"}, "country")
    assert Underlay.from_graph(graph, region="country").regions == ("DE", None, None)
