import gzip
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.topology import Underlay, read_latency_matrix

PLANETLAB = Path(__file__).parents[4] / "shared" / "data" / "latency" / "planetlab-rtt-ms-490.tsv.gz"

planetlab = pytest.mark.skipif(not PLANETLAB.is_file(), reason="../shared/data/latency is absent")


def edges(graph):
    return list(graph.edges(data="latency"))


def test_half_a_round_trip_is_the_latency(write):
    graph = read_latency_matrix(write("0\t20\t60\n20\t0\t4\n60\t4\t0\n"), scale=1e-3)
    assert type(graph) is nx.Graph
    assert edges(graph) == [(0, 1, 0.01), (0, 2, 0.03), (1, 2, 0.002)]
    assert graph.graph == {"description": "net.txt", "routed": False}
    one_way = read_latency_matrix(write("0 20\n20 0\n"), scale=1e-3, round_trip=False)
    assert edges(one_way) == [(0, 1, 0.02)]


def test_no_detour_is_taken_unless_asked_for(write):
    file = write("0 20 60\n20 0 4\n60 4 0\n")
    direct = Underlay.from_graph(read_latency_matrix(file, scale=1e-3))
    assert not direct.routed
    assert direct.path_latency([0], [2])[0, 0] == 0.03
    routed = Underlay.from_graph(read_latency_matrix(file, scale=1e-3, routed=True))
    assert routed.path_latency([0], [2])[0, 0] == pytest.approx(0.012)


def test_an_asymmetric_matrix_is_directed(write):
    graph = read_latency_matrix(write("0 2\n4 0\n"), scale=1, names=["a", "b"])
    assert type(graph) is nx.DiGraph
    assert edges(graph) == [("a", "b", 1.0), ("b", "a", 2.0)]


def test_the_diagonal_is_not_read(write):
    assert edges(read_latency_matrix(write("-1 2\n2 nan\n"), scale=1)) == [(0, 1, 1.0)]


@pytest.mark.parametrize("entry", ["", "nan", "NaN", "NA", "n/a", "-", "-1", "0", "0.0", "inf"])
def test_missing_entries_follow_the_rule(write, entry):
    file = write(f"0\t{entry}\t6\n2\t0\t{entry}\n6\t{entry}\t0\n")
    with pytest.raises(
        ValueError, match=r"net\.txt, line 1, column 2: expected a number > 0, got none \(3 entries .*missing='reverse'"
    ):
        read_latency_matrix(file, scale=1)
    assert edges(read_latency_matrix(file, scale=1, missing="unlinked")) == [(0, 2, 3.0), (1, 0, 1.0), (2, 0, 3.0)]
    assert edges(read_latency_matrix(file, scale=1, missing="reverse")) == [(0, 1, 1.0), (0, 2, 3.0)]


def test_a_place_without_any_link_stays(write):
    graph = read_latency_matrix(write("0 -1\n-1 0\n"), scale=1, missing="unlinked")
    assert (list(graph), edges(graph)) == ([0, 1], [])
    assert Underlay.from_graph(graph).path_latency().tolist() == [[0, math.inf], [math.inf, 0]]


def test_options_of_the_text(write):
    file = write(gzip.compress(b"a;b\r\n% remark\r\n0; 2\r\n2;0 % end\r\n"), "m.csv")
    graph = read_latency_matrix(file, scale=0.5, delimiter=";", comments="%", skip_lines=1, names="ab")
    assert edges(graph) == [("a", "b", 0.5)]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a b\n0 1\n1 0\n", {}, r"line 1, column 1: expected a number, got 'a'; .*skip_lines"),
        ("0 1\n1 x\n", {}, r"line 2, column 2: expected a number, got 'x'"),
        ("0 1\n1\n", {}, r"line 2: expected 2 entries as in the first row, got 1"),
        ("0 1 2\n1 0 2\n", {}, r"expected a square matrix, got 2 rows of 3 entries"),
        ("", {}, r"expected a square matrix, got 0 rows of 0 entries"),
        ("0 1\n1 0\n", {"scale": 0}, r"scale must be a finite number > 0, got 0"),
        ("0 1\n1 0\n", {"missing": "zero"}, r"missing must be one of 'error', 'reverse', 'unlinked', got 'zero'"),
        ("0 1\n1 0\n", {"round_trip": 2}, r"round_trip must be True or False, got 2"),
        ("0 1\n1 0\n", {"routed": "no"}, r"routed must be True or False, got 'no'"),
        ("0 1\n1 0\n", {"names": ["a"]}, r"names must be 2 different names, one a row of .*, got 1"),
        ("0 1\n1 0\n", {"names": "aa"}, r"names must be 2 different names, .*, got 2, 1 of them different"),
        ("0 1e308\n1 0\n", {"scale": 1e3}, r"scale=1000.0 turns into seconds, got 0 or infinity"),
        (b"0 \xe9\n1 0\n", {}, r"line 1: expected UTF-8 text"),
    ],
)
def test_what_is_wrong_is_named(write, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_latency_matrix(write(content), **{"scale": 1, **options})


def test_a_missing_file_is_named_and_a_unit_must_be_given(tmp_path, write):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_latency_matrix(tmp_path / "nowhere", scale=1)
    with pytest.raises(TypeError, match="scale"):
        read_latency_matrix(write("0 1\n1 0\n"))


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.floats(1e-3, 1e3), min_size=n * n, max_size=n * n)))
def test_a_matrix_comes_back_to_the_bit(tmp_path_factory, values):
    matrix = np.array(values).reshape(math.isqrt(len(values)), -1)
    file = tmp_path_factory.mktemp("matrix") / "m.txt"
    file.write_text("\n".join(" ".join(map(repr, row)) for row in matrix.tolist()), encoding="utf-8")
    expected = matrix / 2
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(Underlay.from_graph(read_latency_matrix(file, scale=1)).path_latency(), expected)


@planetlab
def test_planetlab():
    made = Underlay.from_graph(read_latency_matrix(PLANETLAB, scale=1e-3))
    assert (made.n_places, made.n_links, made.is_symmetric, made.routed) == (490, 490 * 489 // 2, True, False)
    latency = made.path_latency()
    rows = gzip.decompress(PLANETLAB.read_bytes()).decode().splitlines()
    published = np.array([row.split("\t") for row in rows], dtype=float)
    np.testing.assert_allclose(2000 * latency, published, rtol=1e-12)
    assert np.median(2000 * latency[np.triu_indices(490, 1)]) == pytest.approx(135, abs=0.5)
