import math

import networkx as nx
import numpy as np
import pytest

from netsim.topology import (
    GENERATORS,
    Underlay,
    barabasi_albert,
    complete,
    erdos_renyi,
    generate,
    generators,
    grid,
    path,
    random_geometric,
    random_regular,
    ring,
    star,
    watts_strogatz,
    waxman,
)

RANDOM = {
    "barabasi_albert": {"n": 30, "m": 2},
    "erdos_renyi": {"n": 30, "p": 0.2},
    "random_geometric": {"n": 30, "radius": 0.4},
    "random_regular": {"n": 30, "d": 3},
    "watts_strogatz": {"n": 30, "k": 4, "p": 0.3},
    "waxman": {"n": 30, "beta": 0.9, "alpha": 0.5},
}
PLAIN = {
    "complete": {"n": 6},
    "grid": {"rows": 3, "columns": 4},
    "path": {"n": 6},
    "ring": {"n": 6},
    "star": {"n": 6},
}
OF_DISTANCE = {"random_geometric", "waxman"}


def content(graph):
    return list(graph.nodes), list(graph.edges(data="latency"))


def test_every_generator_is_tested_here():
    assert set(GENERATORS) == set(RANDOM) | set(PLAIN)


@pytest.mark.parametrize("name", RANDOM)
def test_the_seed_decides(name):
    one, same = (generate(name, **RANDOM[name], seed=1) for _ in range(2))
    other = generate(name, **RANDOM[name], seed=2)
    assert content(one) == content(same)
    assert content(one) != content(other)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("form", [int, np.int64, np.random.SeedSequence, np.random.PCG64, np.random.default_rng])
def test_a_seed_in_any_form_that_numpy_takes(name, form):
    assert content(generate(name, **RANDOM[name], seed=form(1))) == content(generate(name, **RANDOM[name], seed=1))


@pytest.mark.parametrize("name", RANDOM)
def test_one_generator_object_gives_one_graph_after_another(name):
    rng = np.random.default_rng(1)
    assert content(generate(name, **RANDOM[name], seed=rng)) != content(generate(name, **RANDOM[name], seed=rng))


@pytest.mark.parametrize("name", [*RANDOM, *PLAIN])
def test_every_graph_is_plain_sorted_and_runs(name):
    graph = generate(name, **(RANDOM | PLAIN)[name], seed=3)
    assert type(graph) is nx.Graph
    assert list(graph) == sorted(graph)
    assert list(graph.edges) == sorted(graph.edges)
    assert len(graph) == (RANDOM | PLAIN)[name].get("n", 12)
    assert nx.number_of_selfloops(graph) == 0
    assert all(type(latency) is float for *_, latency in graph.edges(data="latency"))
    made = Underlay.from_graph(graph)
    assert made.n_links == graph.number_of_edges() > 0
    assert made.description == graph.graph["description"]


@pytest.mark.parametrize("name", sorted((set(RANDOM) | set(PLAIN)) - OF_DISTANCE))
def test_latency_is_one_number_or_drawn_from_a_range(name):
    parameters = (RANDOM | PLAIN)[name]
    fixed = generate(name, **parameters, seed=3, latency=2)
    drawn = generate(name, **parameters, seed=3, latency=(1, 1.5))
    other = generate(name, **parameters, seed=4, latency=(1, 1.5))
    assert {latency for *_, latency in fixed.edges(data="latency")} == {2.0}
    values = [latency for *_, latency in drawn.edges(data="latency")]
    assert all(1 <= value < 1.5 for value in values)
    assert len(set(values)) == len(values)
    assert min(values) < 1.25 < max(values)
    assert list(drawn.edges) == list(fixed.edges)  # the links do not depend on the latencies
    assert content(drawn) != content(other)
    assert {latency for *_, latency in generate(name, **parameters, seed=3).edges(data="latency")} == {0.01}


@pytest.mark.parametrize("name", sorted(OF_DISTANCE))
def test_latency_is_proportional_to_the_distance(name):
    graph = generate(name, **RANDOM[name], seed=3, seconds_per_unit=0.5)
    for u, v, latency in graph.edges(data="latency"):
        assert latency == pytest.approx(0.5 * math.dist(graph.nodes[u]["pos"], graph.nodes[v]["pos"]))
        assert latency > 0


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_graph_needs_a_seed_to_draw_latencies(name):
    with pytest.raises(ValueError, match="seed must be given"):
        generate(name, **PLAIN[name], latency=(0.1, 0.2))


def test_links():
    assert set(ring(4).edges) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert set(path(3).edges) == {(0, 1), (1, 2)}
    assert set(star(4).edges) == {(0, 1), (0, 2), (0, 3)}
    assert set(complete(3).edges) == {(0, 1), (0, 2), (1, 2)}
    assert set(grid(2, 2).edges) == {((0, 0), (0, 1)), ((0, 0), (1, 0)), ((0, 1), (1, 1)), ((1, 0), (1, 1))}
    assert barabasi_albert(400, 3, seed=1).number_of_edges() == 397 * 3
    assert {degree for _, degree in random_regular(20, 3, seed=1).degree} == {3}
    assert erdos_renyi(9, 0, seed=1).number_of_edges() == 0
    assert erdos_renyi(9, 1, seed=1).number_of_edges() == 36
    assert erdos_renyi(300, 0.1, seed=1).number_of_edges() == pytest.approx(4485, rel=0.1)
    assert set(watts_strogatz(6, 2, 0, seed=1).edges) == set(ring(6).edges)
    assert watts_strogatz(60, 4, 0.5, seed=1).number_of_edges() == 120


def test_watts_strogatz_is_connected():
    assert all(nx.is_connected(watts_strogatz(12, 2, 0.3, seed=seed)) for seed in range(20))


def test_watts_strogatz_gives_up_where_no_draw_is_connected(monkeypatch):
    monkeypatch.setattr(generators, "_TRIES", 1)
    with pytest.raises(ValueError, match=r"^p and k must leave the graph connected, got p=1\.0, k=2, n=2000"):
        watts_strogatz(2000, 2, 1.0, seed=1)


def test_random_geometric_links_all_pairs_within_the_radius():
    graph = random_geometric(25, 0.3, seed=1)
    where = graph.nodes(data="pos")
    near = {(u, v) for u in graph for v in graph if u < v and math.dist(where[u], where[v]) <= 0.3}
    assert set(graph.edges) == near


def test_smallest_sizes():
    assert len(waxman(1, seed=1)) == len(random_geometric(1, 0.1, seed=1)) == len(star(1)) == len(path(1)) == 1
    assert len(complete(1)) == len(grid(1, 1)) == len(erdos_renyi(1, 0.5, seed=1)) == 1
    assert random_regular(3, 0, seed=1).number_of_edges() == 0


def test_descriptions_say_how_a_graph_was_made():
    assert barabasi_albert(400, 3, seed=1).graph["description"] == ("barabasi_albert(n=400, m=3, seed=1, latency=0.01)")
    assert ring(5).graph["description"] == "ring(n=5, latency=0.01)"
    assert grid(np.int64(2), 3, latency=[0, 1], seed=np.int64(4)).graph["description"] == (
        "grid(rows=2, columns=3, seed=4, latency=(0.0, 1.0))"
    )
    assert waxman(5, seed=[1, 2]).graph["description"] == (
        "waxman(n=5, beta=0.4, alpha=0.1, seed=[1, 2], seconds_per_unit=0.05)"
    )
    spawned = np.random.SeedSequence(7).spawn(1)[0]
    assert "seed=SeedSequence(7, spawn_key=(0,))" in path(3, seed=spawned).graph["description"]
    assert "seed=Generator," in path(3, seed=np.random.default_rng(1)).graph["description"]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("barabasi_albert", {"n": 5, "m": 5}, r"m must be an integer in \[1, 4\], got 5"),
        ("barabasi_albert", {"n": 5, "m": 0}, r"m must be"),
        ("barabasi_albert", {"n": 1, "m": 1}, r"n must be an integer >= 2, got 1"),
        ("barabasi_albert", {"n": 5.5, "m": 1}, r"n must be an integer >= 2, got 5.5"),
        ("barabasi_albert", {"n": True, "m": 1}, r"n must be"),
        ("erdos_renyi", {"n": 5, "p": 30}, r"p must be in \[0, 1\], got 30; pass a fraction"),
        ("erdos_renyi", {"n": 5, "p": float("nan")}, r"p must be"),
        ("erdos_renyi", {"n": 5, "p": "half"}, r"p must be"),
        ("erdos_renyi", {"n": 0, "p": 0.5}, r"n must be"),
        ("watts_strogatz", {"n": 9, "k": 3, "p": 0.5}, r"k must be even, got 3"),
        ("watts_strogatz", {"n": 9, "k": 9, "p": 0.5}, r"k must be an integer in \[2, 8\]"),
        ("watts_strogatz", {"n": 9, "k": 2, "p": -0.5}, r"p must be"),
        ("random_regular", {"n": 5, "d": 3}, r"n \* d must be even, got n=5, d=3"),
        ("random_regular", {"n": 5, "d": 5}, r"d must be"),
        ("waxman", {"n": 5, "beta": 0}, r"beta must be"),
        ("waxman", {"n": 5, "beta": 1.5}, r"beta must be in \(0, 1\]"),
        ("waxman", {"n": 5, "alpha": -1}, r"alpha must be a finite number > 0"),
        ("waxman", {"n": 5, "seconds_per_unit": -1}, r"seconds_per_unit must be"),
        ("random_geometric", {"n": 5, "radius": 0}, r"radius must be"),
        ("random_geometric", {"n": 5, "radius": 1, "seconds_per_unit": None}, r"seconds_per_unit must be"),
        ("ring", {"n": 2}, r"n must be an integer >= 3, got 2"),
        ("star", {"n": 0}, r"n must be"),
        ("path", {"n": "3"}, r"n must be"),
        ("complete", {"n": -1}, r"n must be"),
        ("grid", {"rows": 0, "columns": 2}, r"rows must be"),
        ("grid", {"rows": 2, "columns": 0}, r"columns must be"),
        ("ring", {"n": 3, "latency": -1}, r"latency must be a finite number of seconds >= 0, got -1"),
        ("ring", {"n": 3, "latency": (1, 2, 3)}, r"latency must be a number of seconds or a pair"),
        ("ring", {"n": 3, "latency": (2, 1)}, r"latency must be a pair low <= high"),
        ("ring", {"n": 3, "latency": (0, "fast")}, r"latency must be .*, got 'fast' in \(0, 'fast'\)"),
        ("ring", {"n": 3, "seed": "one"}, r"seed must be what numpy.random.default_rng takes, got 'one'"),
        ("ring", {"n": 3, "seed": -1}, r"seed must be"),
    ],
)
def test_a_bad_parameter_is_named(name, parameters, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        generate(name, **({"seed": 1} | parameters))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("small_world", {}, r"name must be one of barabasi_albert, .*, waxman, got 'small_world'"),
        ("ring", {}, r"ring: missing a required argument: 'n'; pass ring\(n, latency=0.01, seed=None\)"),
        ("ring", {"n": 3, "m": 1}, r"ring: got an unexpected keyword argument 'm'"),
        ("erdos_renyi", {"n": 3, "p": 0.5}, r"erdos_renyi: missing a required.* argument: 'seed'"),
    ],
)
def test_generate_lists_what_is_valid(name, parameters, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        generate(name, **parameters)
