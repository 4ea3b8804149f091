from pathlib import Path

import networkx as nx
import pytest

from netsim.topology import Underlay, barabasi_albert, read_edge_list, read_graphml

DATA = Path(__file__).parents[4] / "shared" / "data"
ZOO = sorted((DATA / "topology-zoo").glob("*.graphml"))
GNUTELLA = DATA / "overlay" / "p2p-Gnutella08.txt"

zoo = pytest.mark.skipif(not ZOO, reason="../shared/data/topology-zoo is absent")
gnutella = pytest.mark.skipif(not GNUTELLA.is_file(), reason="../shared/data/overlay is absent")


@pytest.fixture
def write(tmp_path):
    def write(content, name="net.txt"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write


def edges(graph):
    return list(graph.edges(data="latency"))


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="delay" attr.type="{kind}">{default}</key>
<graph edgedefault="undirected">
<node id="a"/><node id="b"/><node id="c"/>
<edge source="a" target="b"><data key="d0">{value}</data></edge>
<edge source="b" target="c"/>
</graph></graphml>"""


def graphml(kind="double", value="20", default=""):
    return GRAPHML.format(kind=kind, value=value, default=default)


# GraphML


@pytest.mark.parametrize("kind", ["double", "int", "string"])
def test_graphml_latencies_are_scaled_and_the_default_is_not(write, kind):
    file = write(graphml(kind), "net.graphml")
    graph = read_graphml(file, latency="delay", scale=1e-3, default_latency=7)
    assert edges(graph) == [("a", "b", pytest.approx(0.02)), ("b", "c", 7.0)]
    assert graph.graph["description"] == "net.graphml"
    assert Underlay.from_graph(graph).description == "net.graphml"


def test_graphml_follows_the_default_that_the_file_declares(write):
    file = write(graphml(default="<default>5</default>"))
    assert edges(read_graphml(file, latency="delay")) == [("a", "b", 20.0), ("b", "c", 5.0)]


def test_graphml_written_by_networkx_comes_back(tmp_path):
    graph = barabasi_albert(20, 2, seed=1, latency=(0.01, 0.02))
    file = tmp_path / "ba.graphml"
    nx.write_graphml(graph, file)
    back = Underlay.from_graph(read_graphml(str(file)))
    assert back.latency.tolist() == Underlay.from_graph(graph).latency.tolist()
    assert back.head.tolist() == Underlay.from_graph(graph).head.tolist()


def test_graphml_without_a_latency_names_file_and_edge(write):
    file = write(graphml())
    with pytest.raises(ValueError, match=r"net\.txt: edge \('b', 'c'\) has no attribute 'delay' .*default_latency"):
        read_graphml(file, latency="delay")


@pytest.mark.parametrize(
    ("kind", "value"), [("string", "fast"), ("double", "-1"), ("double", "nan"), ("string", "inf")]
)
def test_graphml_with_a_bad_latency_names_file_and_edge(write, kind, value):
    file = write(graphml(kind, value))
    with pytest.raises(ValueError, match=r"delay must be .* on edge \('a', 'b'\) of .*net\.txt") as caught:
        read_graphml(file, latency="delay", default_latency=1)
    assert value in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "u v 3",
        "<html/>",
        "<graphml>",
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"/></graphml>',
        graphml("double", "fast"),
        graphml("unknown"),
        b"\xff\xfe\x00",
    ],
)
def test_what_is_not_graphml_is_named(write, content):
    with pytest.raises(ValueError, match=r"net\.txt: expected a .*, got .*; check that"):
        read_graphml(write(content), default_latency=1)


@pytest.mark.parametrize("read", [read_graphml, read_edge_list])
def test_a_missing_file_is_named(read, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere", default_latency=1)
    with pytest.raises(FileNotFoundError, match="no file"):
        read(tmp_path, default_latency=1)


@pytest.mark.parametrize("read", [read_graphml, read_edge_list])
def test_bad_arguments_of_both_readers(read, write):
    file = write("a b")
    for scale in (0, -1, float("nan"), "ms"):
        with pytest.raises(ValueError, match="scale must be a finite number > 0"):
            read(file, default_latency=1, scale=scale)
    with pytest.raises(ValueError, match="default_latency must be"):
        read(file, default_latency=-1)


@zoo
@pytest.mark.parametrize("file", ZOO, ids=lambda file: file.stem)
def test_topology_zoo(file):
    made = Underlay.from_graph(read_graphml(file, default_latency=0.005))
    assert made.description == file.name
    assert set(made.latency.tolist()) == {0.005}
    assert made.path_latency([0])[0, 0] == 0
    with pytest.raises(ValueError, match=f"{file.name}: edge .* has no attribute 'latency'"):
        read_graphml(file)


@zoo
def test_topology_zoo_counts():
    sizes = {file.stem: Underlay.from_graph(read_graphml(file, default_latency=0.005)) for file in ZOO}
    assert (sizes["Abilene"].n_places, sizes["Abilene"].n_links) == (11, 14)
    graph = read_graphml(DATA / "topology-zoo" / "Kdl.graphml", default_latency=0.005)
    assert (len(graph), graph.number_of_edges(), graph.is_multigraph()) == (754, 899, True)
    assert sizes["Kdl"].n_places == 754
    assert sizes["Kdl"].n_links < 899  # parallel links are one


# Edge lists


def test_edge_list(write):
    file = write("# from  to  ms\r\n\r\na b 20\r\nc\ta 30 # slow\r\nd d 1\r\n")
    graph = read_edge_list(file, scale=1e-3)
    assert type(graph) is nx.Graph
    assert list(graph) == ["a", "b", "c", "d"]
    assert edges(graph) == [
        ("a", "b", pytest.approx(0.02)),
        ("a", "c", pytest.approx(0.03)),
        ("d", "d", pytest.approx(0.001)),
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
    directed = Underlay.from_graph(read_edge_list(GNUTELLA, default_latency=0.1, skip_lines=1, directed=True))
    assert (directed.n_places, directed.n_links, directed.is_symmetric) == (6301, 20777, False)
