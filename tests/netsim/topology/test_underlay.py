import copy
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.topology import Underlay, barabasi_albert, paths


@st.composite
def graphs(draw):
    kind = draw(st.sampled_from([nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]))
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    seconds = st.one_of(st.just(0.0), st.just(0), st.just(0.1), st.floats(0, 10))
    graph = kind()
    graph.add_nodes_from(draw(st.permutations(range(n))))
    for u, v, latency in draw(st.lists(st.tuples(node, node, seconds), max_size=20)):
        graph.add_edge(u, v, latency=latency)
    return graph


def distances(graph):
    answer = np.full((len(graph), len(graph)), np.inf)
    for i, source in enumerate(graph):
        found = nx.single_source_dijkstra_path_length(graph, source, weight="latency")
        for j, target in enumerate(graph):
            answer[i, j] = found.get(target, np.inf)
    return answer


@given(graphs())
def test_path_latency_is_that_of_networkx_to_the_bit(graph):
    np.testing.assert_array_equal(Underlay.from_graph(graph).path_latency(), distances(graph))


@given(graphs(), st.data())
def test_path_latency_of_chosen_places_is_the_same_in_chunks_of_one(graph, data):
    place = st.integers(0, len(graph) - 1)
    sources, targets = data.draw(st.lists(place)), data.draw(st.lists(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_CHUNK_CELLS", 1)
        answer = Underlay.from_graph(graph).path_latency(sources, targets)
    assert answer.shape == (len(sources), len(targets))
    assert answer.dtype == np.float64
    expected = distances(graph)
    for i, source in enumerate(sources):
        for j, target in enumerate(targets):
            assert answer[i, j] == expected[source, target]


@given(graphs())
def test_to_graph_comes_back_equal(graph):
    there = Underlay.from_graph(graph)
    back = Underlay.from_graph(there.to_graph())
    assert back == there
    assert hash(back) == hash(there)
    assert back.digest == there.digest
    assert there.to_graph().is_directed() == (not there.is_symmetric)


@given(graphs())
def test_edges_are_sorted_without_repeats_and_self_loops(graph):
    made = Underlay.from_graph(graph)
    pairs = list(zip(made.tail.tolist(), made.head.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(u != v for u, v in pairs)
    names = {(made.places[u], made.places[v]) for u, v in pairs}
    expected = {(u, v) for u, v in graph.edges() if u != v}
    if not graph.is_directed():
        expected |= {(v, u) for u, v in expected}
    assert names == expected


def test_a_zero_latency_edge_is_an_edge():
    graph = nx.Graph()
    graph.add_edge("a", "b", latency=0)
    graph.add_edge("b", "c", latency=0.0)
    graph.add_edge("c", "d", latency=2)
    graph.add_node("alone")
    latency = Underlay.from_graph(graph).path_latency([0])
    np.testing.assert_array_equal(latency, [[0, 0, 0, 2, np.inf]])


def test_path_latency_keeps_only_the_wanted_columns_of_a_large_graph():
    made = Underlay.from_graph(barabasi_albert(3000, 3, seed=1, latency=(0.001, 0.2)))
    sources = np.arange(2000) % 1500
    latency = made.path_latency(sources, [0, 7, 2999])
    assert latency.shape == (2000, 3)
    np.testing.assert_array_equal(latency[:500], latency[1500:])
    np.testing.assert_array_equal(latency[-3:], made.path_latency(sources[-3:])[:, [0, 7, 2999]])


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([0, 3], r"sources must be in \[0, 3\), got 3 at position 1"),
        ([-1], r"got -1 at position 0"),
        ([0.0], "1-d array of integer place indices, got dtype float64"),
        ([True], "got dtype bool"),
        (["a"], r"underlay.places.index"),
        (1, r"shape \(\)"),
    ],
)
def test_path_latency_rejects_what_is_no_place_index(sources, message):
    made = Underlay.from_graph(nx.path_graph(3), default_latency=1)
    with pytest.raises(ValueError, match=message):
        made.path_latency(sources)
    with pytest.raises(ValueError, match=message.replace("sources", "targets")):
        made.path_latency(None, sources)


def test_path_latency_takes_no_sources_and_unsigned_ones():
    made = Underlay.from_graph(nx.path_graph(3), default_latency=1)
    assert made.path_latency([]).shape == (0, 3)
    np.testing.assert_array_equal(made.path_latency(np.array([2], dtype=np.uint8), [0]), [[2]])


def test_fields_follow_the_graph():
    graph = nx.DiGraph()
    graph.add_nodes_from(["z", ("a", 1), 7])
    graph.add_edge("z", 7, latency=np.float32(0.5))
    graph.add_edge(("a", 1), "z", latency=2)
    made = Underlay.from_graph(graph)
    assert made.places == ("z", ("a", 1), 7)
    assert made.tail.tolist() == [0, 1]
    assert made.head.tolist() == [2, 0]
    assert made.latency.tolist() == [0.5, 2.0]
    assert (made.tail.dtype, made.head.dtype, made.latency.dtype) == (np.int64, np.int64, np.float64)
    assert (made.n_places, made.n_links) == (3, 2)
    assert made.description == "DiGraph with 3 places, 2 links"
    assert repr(made) == "<Underlay: 3 places, 2 links, 'DiGraph with 3 places, 2 links'>"


def test_an_undirected_edge_serves_both_directions_and_is_one_link():
    made = Underlay.from_graph(nx.path_graph(3), default_latency=0.5)
    assert made.tail.tolist() == [0, 1, 1, 2]
    assert made.head.tolist() == [1, 0, 2, 1]
    assert made.n_links == 2
    assert made.description == "Graph with 3 places, 2 links"


def test_of_parallel_edges_the_fastest_counts():
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, latency=3.0)
    graph.add_edge(1, 0, latency=1.0)
    graph.add_edge(0, 1, latency=2.0)
    made = Underlay.from_graph(graph)
    assert made.latency.tolist() == [1.0, 1.0]
    assert made.n_links == 1


def test_self_loops_are_ignored_whatever_their_latency():
    graph = nx.Graph()
    graph.add_edge(0, 0, latency="nonsense")
    graph.add_edge(1, 1)
    made = Underlay.from_graph(graph)
    assert made.n_links == 0
    np.testing.assert_array_equal(made.path_latency(), [[0, np.inf], [np.inf, 0]])


def test_the_description_of_the_graph_is_taken_and_does_not_count_as_content():
    graph = nx.path_graph(3)
    plain = Underlay.from_graph(graph, default_latency=1)
    graph.graph["description"] = "three in a row"
    named = Underlay.from_graph(graph, default_latency=1)
    assert named.description == "three in a row"
    assert named == plain
    assert named.digest == plain.digest


def test_another_attribute_name():
    graph = nx.Graph()
    graph.add_edge(0, 1, delay=0.25, latency="unused")
    made = Underlay.from_graph(graph, latency="delay")
    assert made.latency.tolist() == [0.25, 0.25]
    assert made.to_graph(latency="delay").edges[0, 1] == {"delay": 0.25}


def test_the_graph_is_not_mutated_and_may_change_later():
    graph = nx.path_graph(3)
    graph.edges[0, 1]["latency"] = 2.0
    before = copy.deepcopy(graph)
    made = Underlay.from_graph(graph, default_latency=1)
    assert nx.utils.graphs_equal(graph, before)
    digest = made.digest
    graph.edges[0, 1]["latency"] = 9.0
    graph.add_edge(0, 99)
    assert made.latency.tolist() == [2, 2, 1, 1]
    assert made == Underlay.from_graph(before, default_latency=1)
    assert digest == Underlay.from_graph(before, default_latency=1).digest


@pytest.mark.parametrize("value", ["fast", "0.5", None, True, float("nan"), -0.1, float("inf"), 10**400, 1j])
def test_a_latency_that_is_no_number_of_seconds_names_the_edge(value):
    graph = nx.Graph()
    graph.add_edge(4, 7, latency=value)
    with pytest.raises(ValueError, match=r"latency must be a finite number of seconds >= 0, got .* on edge \(4, 7\); "):
        Underlay.from_graph(graph, default_latency=1)


def test_an_error_of_a_multigraph_names_the_key_and_the_attribute():
    graph = nx.MultiDiGraph()
    graph.add_edge("a", "b", key="fibre", delay="fast")
    with pytest.raises(ValueError, match=r"delay must be .*, got 'fast' on edge \('a', 'b', 'fibre'\); store a number"):
        Underlay.from_graph(graph, latency="delay")


def test_a_missing_latency_names_the_edge_and_the_mend():
    graph = nx.Graph()
    graph.add_edge(4, 7, weight=1)
    with pytest.raises(ValueError, match=r"edge \(4, 7\) has no attribute 'latency' .*'weight'.*default_latency"):
        Underlay.from_graph(graph)


def test_other_bad_arguments():
    with pytest.raises(ValueError, match="at least one place"):
        Underlay.from_graph(nx.Graph())
    with pytest.raises(TypeError, match="networkx graph, got ndarray"):
        Underlay.from_graph(np.eye(3))
    with pytest.raises(ValueError, match="default_latency must be a finite number of seconds >= 0, got -1"):
        Underlay.from_graph(nx.path_graph(2), default_latency=-1)


@pytest.mark.parametrize(
    ("tail", "head", "latency"),
    [
        ([0], [0], [1.0]),
        ([0, 0], [1, 1], [1.0, 2.0]),
        ([1, 0], [0, 1], [1.0, 1.0]),
        ([0, 0], [2, 1], [1.0, 1.0]),
        ([0], [3], [1.0]),
        ([-1], [0], [1.0]),
        ([0], [1], [np.nan]),
        ([0], [1], [np.inf]),
        ([0], [1], [-1.0]),
        ([0, 1], [1], [1.0]),
    ],
)
def test_the_constructor_checks_its_edges(tail, head, latency):
    with pytest.raises(ValueError, match="got"):
        Underlay(("a", "b", "c"), tail, head, latency)


def test_the_constructor_checks_its_places():
    with pytest.raises(ValueError, match="a name twice"):
        Underlay(("a", "a"), [0], [1], [1.0])


def test_nothing_can_be_changed():
    tail = np.array([0])
    made = Underlay(("a", "b"), tail, [1], [1.0])
    tail[0] = 1
    assert made.tail.tolist() == [0]
    for array in (made.tail, made.head, made.latency):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        made.places = ()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_is_equal_and_read_only(copied):
    made = Underlay.from_graph(barabasi_albert(20, 2, seed=1))
    again = copied(made)
    assert again == made
    assert hash(again) == hash(made)
    assert again.digest == made.digest
    assert again.description == made.description
    assert not any(array.flags.writeable for array in (again.tail, again.head, again.latency))


def test_equality_is_by_places_edges_and_latencies():
    made = Underlay(("a", "b", "c"), [0], [1], [1.0])
    others = [
        Underlay(("a", "x", "c"), [0], [1], [1.0]),
        Underlay(("a", "b"), [0], [1], [1.0]),
        Underlay(("a", "b", "c"), [0], [2], [1.0]),
        Underlay(("a", "b", "c"), [2], [1], [1.0]),
        Underlay(("a", "b", "c"), [0], [1], [2.0]),
    ]
    assert made == Underlay(("a", "b", "c"), [0], [1], [1.0])
    assert made != "a"
    assert all(other != made for other in others)
    assert len({made.digest, *(other.digest for other in others)}) == 6


def test_the_digest_never_changes():
    made = Underlay((0, "b", np.int64(3)), [0, 1], [1, 2], [0.5, -0.0])
    assert made.digest == Underlay((0, "b", 3), [0, 1], [1, 2], [0.5, 0.0]).digest
    assert made.digest == "f15aa6ab6c9a5ed5cb9531fc3d1be99540a0e6cdb9d462f90a6cf1e4fc976a17"


# Loss, bandwidth, direct links, regions


FULL = Underlay(
    ("a", "b", "c"),
    [0, 1],
    [1, 0],
    [1.0, 1.0],
    loss=[0.25, -0.0],
    bandwidth=[np.inf, 8.0],
    routed=False,
    regions=("east", None, ("x", 1)),
)


def test_without_loss_and_bandwidth_there_is_none():
    made = Underlay(("a", "b"), [0], [1], [1.0])
    assert (made.loss.tolist(), made.bandwidth.tolist()) == ([0.0], [np.inf])
    assert (made.routed, made.regions, made.has_loss, made.has_bandwidth) == (True, None, False, False)
    empty = Underlay(("a",), [], [], [])
    assert (empty.loss.size, empty.has_loss, empty.has_bandwidth) == (0, False, False)


def test_what_edges_carry_is_read_from_a_graph():
    graph = nx.DiGraph()
    graph.add_edge(0, 1, latency=1, loss=np.float32(0.5), bandwidth=10)
    graph.add_edge(1, 2, latency=1, drop=0.125, rate=np.inf)
    made = Underlay.from_graph(graph)
    assert (made.loss.tolist(), made.bandwidth.tolist()) == ([0.5, 0.0], [10.0, np.inf])
    assert (made.has_loss, made.has_bandwidth) == (True, True)
    other = Underlay.from_graph(graph, loss="drop", bandwidth="rate")
    assert (other.loss.tolist(), other.has_bandwidth) == ([0.0, 0.125], False)
    named = made.to_graph(loss="drop", bandwidth="rate")
    assert named.edges[0, 1] == {"latency": 1.0, "drop": 0.5, "rate": 10.0}
    assert named.edges[1, 2] == {"latency": 1.0}


def test_of_parallel_edges_the_fastest_counts_with_its_own_loss_and_bandwidth():
    graph = nx.MultiGraph()
    for latency, loss, bandwidth in [(2.0, 0.0, 99.0), (1.0, 0.5, 99.0), (1.0, 0.25, 5.0), (1.0, 0.25, 7.0)]:
        graph.add_edge(0, 1, latency=latency, loss=loss, bandwidth=bandwidth)
    made = Underlay.from_graph(graph)
    assert (made.latency.tolist(), made.loss.tolist(), made.bandwidth.tolist()) == ([1, 1], [0.25, 0.25], [7, 7])


def test_the_graph_says_whether_it_is_routed_unless_the_caller_does():
    graph = nx.path_graph(3)
    assert Underlay.from_graph(graph, default_latency=1).routed
    graph.graph["routed"] = False
    assert not Underlay.from_graph(graph, default_latency=1).routed
    assert Underlay.from_graph(graph, default_latency=1, routed=True).routed
    with pytest.raises(ValueError, match="routed must be True or False, got 'no'"):
        Underlay.from_graph(graph, default_latency=1, routed="no")


@pytest.mark.parametrize("value", [30, -0.1, float("nan"), "0.1", None, True])
def test_a_loss_that_is_no_probability_names_the_edge(value):
    graph = nx.Graph()
    graph.add_edge(4, 7, latency=1, loss=value)
    with pytest.raises(ValueError, match=r"loss must be in \[0, 1\], got .* on edge \(4, 7\); .*percentage"):
        Underlay.from_graph(graph)


@pytest.mark.parametrize("value", [0, -1, float("nan"), "10", None, 1e-310])
def test_a_bandwidth_that_is_no_speed_names_the_edge(value):
    graph = nx.Graph()
    graph.add_edge(4, 7, latency=1, bandwidth=value)
    with pytest.raises(ValueError, match=r"bandwidth must be a number of bytes/s > 0, got .* on edge \(4, 7\); "):
        Underlay.from_graph(graph)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss": [0.0, 1.5]}, r"loss must be in \[0, 1\], got 1.5 at position 1, edge 1 -> 2"),
        ({"loss": [np.nan, 0.0]}, r"loss must be in \[0, 1\], got nan at position 0, edge 0 -> 1"),
        ({"bandwidth": [1.0, 0.0]}, "bandwidth must be a number of bytes/s > 0, got 0.0 at position 1, edge 1 -> 2"),
        ({"loss": [0.0]}, r"must be 1-d and of one length, got shapes tail \(2,\), .*loss \(1,\)"),
        ({"bandwidth": 5.0}, r"must be 1-d and of one length, got shapes .*bandwidth \(\)"),
        ({"routed": 1}, "routed must be True or False, got 1"),
    ],
)
def test_the_constructor_checks_what_edges_carry(fields, message):
    with pytest.raises(ValueError, match=message):
        Underlay(("a", "b", "c"), [0, 1], [1, 2], [1.0, 1.0], **fields)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_keeps_everything(copied):
    again = copied(FULL)
    assert again == FULL
    assert (hash(again), again.digest) == (hash(FULL), FULL.digest)
    assert (again.routed, again.regions) == (False, FULL.regions)
    assert not any(array.flags.writeable for array in (again.loss, again.bandwidth))


def test_a_graph_keeps_everything():
    again = Underlay.from_graph(FULL.to_graph())
    assert again == FULL
    assert again.digest == FULL.digest
    assert FULL.to_graph().is_directed()  # the two directions differ in loss and bandwidth
    assert not FULL.is_symmetric
    assert FULL.n_links == 2


def test_loss_bandwidth_routing_and_regions_count_as_content():
    fields = {"loss": [0.0, 0.5], "bandwidth": [9.0, 9.0], "routed": False, "regions": ("x", None, None)}
    made = [Underlay(("a", "b", "c"), [0, 1], [1, 0], [1.0, 1.0])]
    made += [Underlay(("a", "b", "c"), [0, 1], [1, 0], [1.0, 1.0], **{name: fields[name]}) for name in fields]
    made += [Underlay(("a", "b", "c"), [0, 1], [1, 0], [1.0, 1.0], loss=[0.5, 0.0]), FULL]
    assert len({each.digest for each in made}) == 7
    assert len(set(made)) == 7
    same = Underlay(("a", "b", "c"), [0, 1], [1, 0], [1.0, 1.0], loss=[0, 0], bandwidth=[np.inf, np.inf])
    assert (same, same.digest, hash(same)) == (made[0], made[0].digest, hash(made[0]))


def test_the_digest_of_what_edges_carry_never_changes():
    assert FULL.digest == "2b8e67cb2ac694b46501edb195b0652c85d7e6a42a128c22058bba9acf0329e4"
