"""Path latencies of real and generated topologies, all pairs, against networkx."""

import itertools
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from netsim.topology import (
    Underlay,
    barabasi_albert,
    erdos_renyi,
    grid,
    random_geometric,
    random_regular,
    read_edge_list,
    read_graphml,
    read_latency_matrix,
    ring,
    star,
    watts_strogatz,
    waxman,
)

pytestmark = pytest.mark.statistical

DATA = Path(__file__).parents[3] / "shared" / "data"
ZOO = sorted((DATA / "topology-zoo").glob("*.graphml"))
GNUTELLA = DATA / "overlay" / "p2p-Gnutella08.txt"
PLANETLAB = DATA / "latency" / "planetlab-rtt-ms-490.tsv.gz"

SPREAD = (0.001, 0.2)
GENERATED = {
    "barabasi_albert": barabasi_albert(400, 3, seed=1, latency=SPREAD),
    "barabasi_albert, equal": barabasi_albert(400, 3, seed=1),
    "erdos_renyi, in parts": erdos_renyi(400, 0.004, seed=1, latency=SPREAD),
    "watts_strogatz": watts_strogatz(400, 4, 0.1, seed=1, latency=SPREAD),
    "random_regular": random_regular(400, 3, seed=1, latency=SPREAD),
    "random_geometric": random_geometric(400, 0.1, seed=1),
    "waxman": waxman(300, seed=1),
    "grid": grid(20, 20, seed=1, latency=SPREAD),
    "ring": ring(301, seed=1, latency=SPREAD),
    "star": star(301, seed=1, latency=SPREAD),
}


def dense(graph, source):
    """networkx's distances from one place to all, in the order of the places; inf where there is no path."""
    found = nx.single_source_dijkstra_path_length(graph, source, weight="latency")
    return [found.get(target, math.inf) for target in graph]


def assert_all_pairs_agree(graph):
    latency = Underlay.from_graph(graph).path_latency()
    for row, source in zip(latency, graph, strict=True):
        np.testing.assert_array_equal(row, dense(graph, source))


def assert_properties_agree(graph, seed):
    """Loss and transmission along networkx's paths, where chance makes every shortest path the only one."""
    rng = np.random.default_rng(seed)
    for u, v in graph.edges:
        latency, loss, bandwidth = rng.uniform([0.001, 0, 1e4], [0.1, 0.1, 1e6]).tolist()
        graph.edges[u, v].update(latency=latency, loss=loss, bandwidth=bandwidth)
    found = Underlay.from_graph(graph).path_properties()
    number = {place: i for i, place in enumerate(graph)}
    for source in graph:
        for target, path in nx.single_source_dijkstra_path(graph, source, weight="latency").items():
            edges = [graph.edges[edge] for edge in itertools.pairwise(path)]
            at = number[source], number[target]
            assert found.loss[at] == pytest.approx(1 - math.prod(1 - edge["loss"] for edge in edges), abs=1e-12)
            assert found.seconds_per_byte[at] == pytest.approx(sum(1 / edge["bandwidth"] for edge in edges), rel=1e-9)


@pytest.mark.skipif(not ZOO, reason="../shared/data/topology-zoo is absent")
@pytest.mark.parametrize("file", ZOO, ids=lambda file: file.stem)
def test_the_zoo(file):
    graph = read_graphml(file, locate=True)
    assert_all_pairs_agree(graph)
    assert_properties_agree(graph, seed=1)


@pytest.mark.parametrize("name", GENERATED)
def test_generators(name):
    graph = GENERATED[name].copy()
    assert_all_pairs_agree(graph)
    assert_properties_agree(graph, seed=2)


@pytest.mark.skipif(not GNUTELLA.is_file(), reason="../shared/data/overlay is absent")
@pytest.mark.parametrize("directed", [False, True])
def test_gnutella(directed):
    graph = read_edge_list(GNUTELLA, default_latency=0.1, skip_lines=1, directed=directed)
    sources = np.random.default_rng(1).choice(len(graph), 50, replace=False)
    places = list(graph)
    for row, source in zip(Underlay.from_graph(graph).path_latency(sources), sources, strict=True):
        np.testing.assert_array_equal(row, dense(graph, places[source]))


@pytest.mark.skipif(not PLANETLAB.is_file(), reason="../shared/data/latency is absent")
def test_planetlab_with_and_without_detours():
    graph = read_latency_matrix(PLANETLAB, scale=1e-3)
    direct = Underlay.from_graph(graph).path_latency()
    routed = Underlay.from_graph(graph, routed=True).path_latency()
    for source in range(0, 490, 35):
        np.testing.assert_array_equal(routed[source], dense(graph, source))
        links = [graph.edges[source, target]["latency"] if target != source else 0 for target in graph]
        np.testing.assert_array_equal(direct[source], links)
    assert (routed < direct).mean() > 0.5  # most pairs of this data set have a faster detour
