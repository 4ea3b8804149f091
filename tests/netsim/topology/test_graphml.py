import math
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from netsim.topology import Underlay, barabasi_albert, great_circle, read_graphml
from netsim.topology.geography import FIBRE_SPEED

DATA = Path(__file__).parents[4] / "shared" / "data" / "topology-zoo"
ZOO = sorted(DATA.glob("*.graphml"))

zoo = pytest.mark.skipif(not ZOO, reason="../shared/data/topology-zoo is absent")


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


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_graphml(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_graphml(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "scale must be a finite number > 0, got 0"),
        ({"scale": math.nan}, "scale must be a finite number > 0, got nan"),
        ({"default_latency": -1}, "default_latency must be .*got -1"),
        ({"stretch": 0.9}, r"stretch must be a finite number >= 1, got 0\.9"),
        ({"stretch": math.inf}, "stretch must be a finite number >= 1, got inf"),
        ({"coordinates": "Latitude"}, "coordinates must be the names of two node attributes or None, got 'Latitude'"),
        ({"coordinates": ("x", "y", "z")}, "coordinates must be the names of two node attributes"),
        ({"locate": "neighbours"}, "locate must be True or False, got 'neighbours'"),
        ({"component": "first"}, "component must be 'all' or 'largest', got 'first'"),
    ],
)
def test_a_bad_argument_is_named(write, options, message):
    with pytest.raises(ValueError, match=message):
        read_graphml(write(graphml(default="<default>1</default>")), latency="delay", **options)


@pytest.fixture
def save(tmp_path):
    """Write a graph as GraphML; returns its path."""

    def save(graph):
        file = tmp_path / "net.graphml"
        nx.write_graphml(graph, file)
        return file

    return save


LONDON, PARIS, ROME = (51.5074, -0.1278), (48.8566, 2.3522), (41.9028, 12.4964)


def placed(kind=nx.Graph, names=("Latitude", "Longitude"), **places):
    graph = kind()
    for place, point in places.items():
        graph.add_node(place, **({} if point is None else dict(zip(names, point, strict=True))))
    return graph


def seconds(one, other, stretch=1.0):
    return float(great_circle(*one, *other)) * stretch / FIBRE_SPEED


@pytest.mark.parametrize("names", [("Latitude", "Longitude"), ("latitude", "longitude")])
def test_a_latency_comes_from_coordinates(save, names):
    graph = placed(names=names, a=LONDON, b=PARIS)
    graph.add_edge("a", "b")
    assert edges(read_graphml(save(graph))) == [("a", "b", pytest.approx(seconds(LONDON, PARIS), abs=1e-9))]
    longer = read_graphml(save(graph), stretch=1.5)
    assert edges(longer) == [("a", "b", pytest.approx(seconds(LONDON, PARIS, 1.5), abs=1e-9))]


def test_the_order_of_the_sources_of_a_latency(save):
    graph = placed(a=LONDON, b=PARIS, c=None)
    graph.add_edge("a", "b", delay=20.0)
    graph.add_edge("b", "c")
    graph.add_edge("a", "c", delay=30.0)
    file = save(graph)
    read = read_graphml(file, latency="delay", scale=1e-3, default_latency=7)
    assert dict(nx.get_edge_attributes(read, "latency")) == {("a", "b"): 0.02, ("a", "c"): 0.03, ("b", "c"): 7.0}
    assert edges(read_graphml(file, default_latency=7))[0][2] == pytest.approx(seconds(LONDON, PARIS), abs=1e-9)
    bare = read_graphml(file, coordinates=None, default_latency=7)
    assert {latency for *_, latency in edges(bare)} == {7.0}


def test_other_names_of_coordinates(save):
    graph = placed(names=("y", "x"), a=LONDON, b=PARIS)
    graph.add_edge("a", "b")
    read = read_graphml(save(graph), coordinates=("y", "x"))
    assert edges(read) == [("a", "b", pytest.approx(seconds(LONDON, PARIS), abs=1e-9))]


def test_a_place_without_coordinates_is_named_with_the_mends(save):
    graph = placed(a=LONDON, b=None)
    graph.add_edge("a", "b", id="7")
    with pytest.raises(
        ValueError,
        match=r"net\.graphml: edge \('a', 'b'\) has no attribute 'latency' \(its attributes: 'id'\) and no coordinates "
        r"\('Latitude', 'Longitude'\) of 'b'; .*default_latency=.*locate=True",
    ):
        read_graphml(save(graph))


def test_places_are_located_between_their_neighbours_in_rounds(save):
    # b lies between a and c; d has b alone, in the second round; e and f have nobody.
    graph = placed(a=(0.0, 10.0), b=None, c=(0.0, 20.0), d=None, e=None, f=None)
    nx.add_path(graph, "abcb")
    nx.add_path(graph, "bd")
    nx.add_path(graph, "ef")
    read = read_graphml(save(graph), locate=True, default_latency=9)
    assert (read.nodes["b"]["Latitude"], read.nodes["b"]["Longitude"]) == pytest.approx((0, 15))
    assert (read.nodes["d"]["Latitude"], read.nodes["d"]["Longitude"]) == pytest.approx((0, 15))
    assert [place for place, how in read.nodes(data="located") if how == "neighbours"] == ["b", "d"]
    assert read.edges["a", "b"]["latency"] == pytest.approx(seconds((0, 10), (0, 15)), abs=1e-9)
    assert read.edges["b", "d"]["latency"] == 0.0
    assert read.edges["e", "f"]["latency"] == 9.0
    with pytest.raises(ValueError, match=r"edge \('e', 'f'\) has .* of 'e', 'f'; .*default_latency=\.\.\.$"):
        read_graphml(save(graph), locate=True)


def test_a_place_between_opposite_points_stays_unknown(save):
    graph = placed(a=(0.0, 0.0), b=None, c=(0.0, 180.0))
    nx.add_path(graph, "abc")
    with pytest.raises(ValueError, match=r"no coordinates .* of 'b'"):
        read_graphml(save(graph), locate=True)


@pytest.mark.parametrize("point", [(90.5, 0.0), (0.0, 361.0), (math.nan, 0.0), ("north", 0.0)])
def test_coordinates_out_of_range_name_the_place(save, point):
    graph = placed(a=LONDON, b=point)
    graph.add_edge("a", "b")
    with pytest.raises(ValueError, match=r"Latitude and Longitude of place 'b' must be degrees .*coordinates=None"):
        read_graphml(save(graph), default_latency=1)
    assert edges(read_graphml(save(graph), default_latency=1, coordinates=None)) == [("a", "b", 1.0)]


@pytest.mark.parametrize("kind", [nx.MultiGraph, nx.MultiDiGraph])
def test_of_parallel_edges_the_fastest_stays_and_self_loops_go(save, kind):
    graph = kind()
    graph.add_edge("a", "b", latency=3.0, note="slow")
    graph.add_edge("a", "b", latency=1.0, loss=0.5)
    graph.add_edge("a", "b", latency=1.0, loss=0.1, bandwidth=5.0)
    graph.add_edge("a", "b", latency=1.0, loss=0.1, bandwidth=9.0)
    graph.add_edge("a", "a", latency=-1.0)
    graph.add_edge("c", "c")
    read = read_graphml(save(graph))
    assert type(read) is (nx.DiGraph if graph.is_directed() else nx.Graph)
    assert list(read) == ["a", "b", "c"]
    assert [(u, v) for u, v in read.edges] == [("a", "b")]
    kept = read.edges["a", "b"]
    assert (kept["latency"], kept["loss"], kept["bandwidth"]) == (1.0, 0.1, 9.0)
    assert "note" not in kept
    there, straight = Underlay.from_graph(read), Underlay.from_graph(graph)
    for name in ("latency", "loss", "bandwidth"):
        np.testing.assert_array_equal(getattr(there, name), getattr(straight, name))


def test_a_speed_in_bits_becomes_a_bandwidth_in_bytes(save):
    graph = nx.Graph()
    graph.add_edge("a", "b", latency=1.0, LinkSpeedRaw="8000")
    graph.add_edge("b", "c", latency=1.0, LinkSpeedRaw="8000", bandwidth=5.0)
    graph.add_edge("c", "d", latency=1.0, Mbit="16")
    read = read_graphml(save(graph))
    assert list(read.edges(data="bandwidth")) == [("a", "b", 1000.0), ("b", "c", 5.0), ("c", "d", None)]
    assert "bandwidth" not in read_graphml(save(graph), speed=None).edges["a", "b"]
    assert read_graphml(save(graph), speed="Mbit").edges["c", "d"]["bandwidth"] == 2.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LinkSpeedRaw", 0.0, r"LinkSpeedRaw must be a finite number of bits/s > 0, got 0\.0 on edge .*speed=None"),
        ("LinkSpeedRaw", "fast", r"LinkSpeedRaw must be a finite number of bits/s > 0, got 'fast'"),
        ("loss", 30.0, r"loss must be in \[0, 1\], got 30\.0 on edge \('a', 'b'\) of .*percentage"),
        ("loss", "much", r"loss must be in \[0, 1\], got 'much'"),
        ("bandwidth", 0.0, r"bandwidth must be a number of bytes/s > 0, got 0\.0 on edge"),
    ],
)
def test_a_speed_or_loss_out_of_range_names_the_edge(save, name, value, message):
    graph = nx.Graph()
    graph.add_edge("a", "b", latency=1.0, **{name: value})
    with pytest.raises(ValueError, match=message):
        read_graphml(save(graph))


def test_loss_and_bandwidth_come_back_from_a_file(save):
    graph = barabasi_albert(20, 2, seed=1, latency=(0.01, 0.02))
    for number, (u, v) in enumerate(graph.edges):
        graph.edges[u, v].update(loss=number / 100, bandwidth=1000.0 + number)
    there, back = Underlay.from_graph(graph), Underlay.from_graph(read_graphml(save(graph)))
    for name in ("head", "latency", "loss", "bandwidth"):
        np.testing.assert_array_equal(getattr(back, name), getattr(there, name))


def test_the_largest_part_alone(save):
    graph = nx.Graph()
    nx.add_path(graph, "ab", latency=1.0)
    nx.add_path(graph, "cde", latency=1.0)
    graph.add_node("f")
    assert list(read_graphml(save(graph))) == list("abcdef")
    assert list(read_graphml(save(graph), component="largest")) == list("cde")


@zoo
@pytest.mark.parametrize("file", ZOO, ids=lambda file: file.stem)
def test_each_file_of_the_zoo(file):
    made = Underlay.from_graph(read_graphml(file, locate=True))
    assert made.description == file.name
    assert np.isfinite(made.path_latency()).all()
    assert made.positions is not None
    assert not np.isnan(made.positions).any()
    assert not made.has_loss
    flat = Underlay.from_graph(read_graphml(file, coordinates=None, default_latency=0.005))
    assert set(flat.latency.tolist()) == {0.005}
    assert (flat.tail.tolist(), flat.head.tolist()) == (made.tail.tolist(), made.head.tolist())
    with pytest.raises(ValueError, match=f"{file.name}: edge .* has no attribute 'latency'"):
        read_graphml(file, coordinates=None)


@zoo
def test_facts_of_the_zoo():
    sizes = {file.stem: Underlay.from_graph(read_graphml(file, locate=True)) for file in ZOO}
    assert len(sizes) == 14
    assert (sizes["Abilene"].n_places, sizes["Abilene"].n_links) == (11, 14)
    assert (sizes["Kdl"].n_places, sizes["Kdl"].n_links) == (754, 895)  # of 899 edges, 4 are parallel to others
    assert {name for name, made in sizes.items() if made.has_bandwidth} == {"Geant2012", "Internetmci"}


@zoo
def test_abilene_crosses_the_country_as_light_would():
    graph = read_graphml(DATA / "Abilene.graphml")
    places = {name: place for place, name in graph.nodes(data="label")}
    made = Underlay.from_graph(graph)
    there, back = (made.places.index(places[name]) for name in ("New York", "Seattle"))
    latency = made.path_latency([there], [back])[0, 0]
    straight = seconds((40.71427, -74.00597), (47.60621, -122.33207))
    assert straight < latency < 1.3 * straight  # 3870 km, 19 ms in a straight fibre


@zoo
def test_a_file_with_speeds():
    with_speed = read_graphml(DATA / "Geant2012.graphml", locate=True)
    speeds = [bytes_a_second for *_, bytes_a_second in with_speed.edges(data="bandwidth") if bytes_a_second]
    assert len(speeds) == 39
    assert set(speeds) <= {bits / 8 for bits in (45e6, 155e6, 622e6, 1e9, 2.5e9, 10e9)}


@zoo
def test_the_table_in_the_docs_is_what_its_command_prints(monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "topologies.md").read_text(encoding="utf-8")
    (command,) = re.findall(r'^for file in sorted\(Path\("topology-zoo"\).*?(?=^```)', page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(DATA.parent)
    exec(command, {"nx": nx, "Path": Path, "Underlay": Underlay, "read_graphml": read_graphml})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 14
    table = page[page.index("| File |") :].splitlines()[2:16]
    assert table == printed
