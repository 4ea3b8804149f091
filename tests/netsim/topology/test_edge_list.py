import gzip
from pathlib import Path

import networkx as nx
import pytest

from netsim.topology import Underlay, read_edge_list

DATA = Path(__file__).parents[4] / "shared" / "data"
GNUTELLA = DATA / "overlay" / "p2p-Gnutella08.txt"

gnutella = pytest.mark.skipif(not GNUTELLA.is_file(), reason="../shared/data/overlay is absent")


def edges(graph):
    return list(graph.edges(data="latency"))


def test_edge_list(write):
    file = write("# from  to  ms\r\n\r\na b 20\r\nc\ta 30 # slow\r\nd d 1\r\n")
    graph = read_edge_list(file, scale=1e-3)
    assert type(graph) is nx.Graph
    assert list(graph) == ["a", "b", "c", "d"]
    assert edges(graph) == [
        ("a", "b", pytest.approx(0.02)),
        ("a", "c", pytest.approx(0.03)),
    ]
    assert graph.graph["description"] == "net.txt"


def test_edge_list_options(write):
    file = write("from;to;hops;s\n1; 2; 9; 0.5\n2;1;9;0.25\n % remark\n2;3\n")
    graph = read_edge_list(
        file,
        latency_column=3,
        default_latency=7,
        delimiter=";",
        comments="%",
        directed=True,
        skip_lines=1,
        node_type=int,
    )
    assert type(graph) is nx.DiGraph
    assert edges(graph) == [(1, 2, 0.5), (2, 1, 0.25), (2, 3, 7.0)]


def test_edge_list_with_a_default_and_lines_of_both_kinds(write):
    assert edges(read_edge_list(write("a b\na c 2\na d\n"), default_latency=1, scale=10)) == [
        ("a", "b", 1.0),
        ("a", "c", 20.0),
        ("a", "d", 1.0),
    ]


def test_edge_list_without_a_latency_column_ignores_what_stands_there(write):
    graph = read_edge_list(write("a b 1082040961\n"), latency_column=None, default_latency=0.5)
    assert edges(graph) == [("a", "b", 0.5)]


def test_edge_list_keeps_the_fastest_of_repeated_pairs(write):
    file = write("a b 3\nb a 1\na b 2\n")
    assert edges(read_edge_list(file)) == [("a", "b", 1.0)]
    assert edges(read_edge_list(file, directed=True)) == [("a", "b", 2.0), ("b", "a", 1.0)]


def test_edge_list_may_have_no_comments_a_byte_order_mark_and_any_name(write):
    graph = read_edge_list(write("\ufeff#1 Zürich\u2028x 2".encode(), "n.txt"), comments=None, delimiter=" ")
    assert edges(graph) == [("#1", "Zürich\u2028x", 2.0)]


def test_edge_list_in_gzip_whatever_its_name(write):
    assert edges(read_edge_list(write(gzip.compress(b"a b 2\r\n")))) == [("a", "b", 2.0)]
    with pytest.raises(ValueError, match=r"net\.txt: expected a whole gzip file, got .*; fetch it again"):
        read_edge_list(write(gzip.compress(b"a b 2\r\n")[:-4]))


@pytest.mark.parametrize("directed", [False, True])
def test_edge_list_keeps_all_parts_or_the_first_of_the_largest(write, directed):
    file = write("a b 1\nc c 1\nx y 2\nb d 2\nz y 1\n")
    assert list(read_edge_list(file, directed=directed)) == ["a", "b", "c", "x", "y", "d", "z"]
    largest = read_edge_list(file, directed=directed, component="largest")
    assert {frozenset(ends): latency for *ends, latency in edges(largest)} == {frozenset("ab"): 1, frozenset("bd"): 2}
    assert list(largest) == ["a", "b", "d"]
    assert largest.graph["description"] == "net.txt"
    assert not nx.is_frozen(largest)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_edge_list(tmp_path / "nowhere", default_latency=1)
    with pytest.raises(FileNotFoundError, match="no file"):
        read_edge_list(tmp_path, default_latency=1)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "6350\n0 1\n",
            {"default_latency": 1},
            r"line 1: expected 'u v' .*got '6350' \(1 column\).*skip_lines=1",
        ),
        ("a b 1\n\n# x\na\n", {}, r"line 4: expected 'u v'"),
        ("a b 1\r\na\r\n", {}, r"line 2: expected 'u v' .*got 'a'"),
        ("a,,1\n", {"delimiter": ","}, r"line 1: expected 'u v'"),
        ("a b fast\n", {}, r"latency must be .*got 'fast' at .*line 1"),
        ("a b 1\na c -1\n", {}, r"latency must be .*got '-1' at .*line 2"),
        ("a b nan\n", {}, r"got 'nan'"),
        ("a b inf\n", {}, r"got 'inf'"),
        ("a b 1e308\n", {"scale": 100}, r"got '1e308'"),
        ("a b 1\na c\n", {}, r"line 2: expected a latency in column 2.*default_latency"),
        (
            "a b 1\na c 1 xxxxxx\n",
            {"default_latency": 1},
            r"line 2: expected 2 or 3 columns.*got 'a c 1 xxxxxx'",
        ),
        ("a b 1 2\na c 1\n", {}, r"line 2: expected 2 or 4 columns"),
        ("a b 1\n", {"latency_column": 3, "default_latency": 1}, r"line 1: expected a latency in column 3"),
        (
            "x 2 1\n",
            {"node_type": int},
            r"line 1: expected two places that node_type can read, got 'x' and '2'",
        ),
        ("", {}, r"net\.txt: expected one edge"),
        ("# nothing\n", {}, r"net\.txt: expected one edge"),
        (b"a b 1\na \xe9 1\n", {}, r"line 2: expected UTF-8 text"),
        ("a b 1\n", {"scale": 0}, r"scale must be a finite number > 0, got 0"),
        ("a b 1\n", {"scale": "ms"}, r"scale must be a finite number > 0, got 'ms'"),
        ("a b 1\n", {"default_latency": -1}, r"default_latency must be .*got -1"),
        ("a b 1\n", {"component": "first"}, r"component must be 'all' or 'largest', got 'first'"),
        ("a b 1\n", {"latency_column": None}, r"default_latency must be given"),
        ("a b 1\n", {"latency_column": 1}, r"latency_column must be >= 2"),
    ],
)
def test_edge_list_names_what_is_wrong(write, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_edge_list(write(content), **options)


@gnutella
def test_gnutella():
    with pytest.raises(ValueError, match=r"p2p-Gnutella08\.txt, line 1: .*'6350'.*skip_lines=1"):
        read_edge_list(GNUTELLA, default_latency=0.1)
    made = Underlay.from_graph(read_edge_list(GNUTELLA, default_latency=0.1, skip_lines=1))
    assert (made.n_places, made.n_links, made.is_symmetric) == (6301, 20777, True)
    assert len(read_edge_list(GNUTELLA, default_latency=0.1, skip_lines=1, component="largest")) == 6299
    directed = Underlay.from_graph(read_edge_list(GNUTELLA, default_latency=0.1, skip_lines=1, directed=True))
    assert (directed.n_places, directed.n_links, directed.is_symmetric) == (6301, 20777, False)
