import networkx as nx
import numpy as np
import pytest

from netsim import Underlay, barabasi_albert, complete, erdos_renyi, grid, path, random_geometric, ring
from netsim.plots.layout import layout

GRAPHS = {
    "one place": complete(1),
    "two apart": erdos_renyi(2, 0.0, seed=1),
    "no link": nx.empty_graph(150),
    "ring": ring(20),
    "scale-free": barabasi_albert(150, 2, seed=1),
    "in pieces": erdos_renyi(120, 0.01, seed=1),
    "large": grid(25, 25),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_places_get_finite_positions_of_their_own_in_a_unit_box(name):
    underlay = Underlay.from_graph(GRAPHS[name])
    at = layout(underlay)
    assert at.shape == (underlay.n_places, 2)
    assert np.isfinite(at).all()
    assert len(np.unique(at, axis=0)) == underlay.n_places
    if underlay.n_places > 1:
        assert np.ptp(at, axis=0).max() == pytest.approx(1.0)
    np.testing.assert_allclose(at.min(axis=0), -at.max(axis=0), atol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_always_gets_the_same_picture(name):
    np.random.seed(1)  # noqa: NPY002 - the global state must not matter
    first = layout(Underlay.from_graph(GRAPHS[name]))
    np.random.seed(2)  # noqa: NPY002
    np.testing.assert_array_equal(first, layout(Underlay.from_graph(GRAPHS[name])))


@pytest.mark.parametrize(
    "graph", [ring(40), grid(6, 6), grid(12, 12), path(600)], ids=["ring", "small", "mid", "large"]
)
def test_linked_places_lie_nearer_than_others(graph):
    underlay = Underlay.from_graph(graph)
    at = layout(underlay)
    distance = np.linalg.norm(at[:, None] - at, axis=2)
    linked = distance[underlay.tail, underlay.head].mean()
    assert linked < 0.4 * distance[np.triu_indices(len(at), 1)].mean()


def test_known_positions_are_kept_in_shape():
    graph = random_geometric(30, 0.4, seed=2)
    known = np.array([graph.nodes[n]["pos"] for n in graph])
    at = layout(Underlay.from_graph(graph))
    side = np.ptp(known, axis=0).max()
    np.testing.assert_allclose(at - at[0], (known - known[0]) / side, atol=1e-12)


def test_missing_positions_are_found_near_the_neighbours():
    graph = path(5)
    for node in (0, 1, 3, 4):
        graph.nodes[node]["pos"] = (10.0 * node, 0.0)
    at = layout(Underlay.from_graph(graph))
    known = at[[0, 1, 3, 4]] - at[0]
    np.testing.assert_allclose(known[:, 0] / known[-1, 0], [0, 0.25, 0.75, 1])
    assert np.linalg.norm(at[2] - at[[1, 3]].mean(axis=0)) < np.linalg.norm(at[4] - at[0]) / 2
