from dataclasses import replace

import numpy as np
import pytest

from netsim.topology import Underlay, great_circle, region_topology, regions, round_trips
from netsim.topology.geography import FIBRE_SPEED


def test_the_published_table():
    table = round_trips()
    at = {name: number for number, name in enumerate(regions())}
    assert table.shape == (12, 12)
    assert (table.diagonal() == 0).all()
    assert (table + np.eye(12) > 0).all()
    assert np.abs(table - table.T).max() == pytest.approx(0.004)
    # As printed in the table of 30 June 2025: source, destination, milliseconds.
    for source, target, milliseconds in [
        ("West Europe", "North Europe", 19),
        ("North Europe", "West Europe", 18),
        ("South Africa North", "Australia East", 382),
        ("Australia East", "South Africa North", 385),
        ("East US", "Southeast Asia", 223),
        ("Central India", "UAE North", 45),
        ("Brazil South", "Japan East", 271),
    ]:
        assert table[at[source], at[target]] == milliseconds / 1000


def test_one_place_a_region():
    graph = region_topology()
    made = Underlay.from_graph(graph)
    assert made.places == made.regions == regions()
    assert (made.n_links, made.routed, made.is_symmetric) == (66, False, True)
    table = round_trips()
    np.testing.assert_allclose(made.path_latency(), (table + table.T) / 4, rtol=1e-12)
    assert made.positions is not None
    assert not np.isnan(made.positions).any()


def test_nothing_is_faster_than_light_in_fibre():
    graph = region_topology()
    latitude, longitude = (
        np.array([value for _, value in graph.nodes(data=name)]) for name in ("latitude", "longitude")
    )
    straight = great_circle(latitude[:, None], longitude[:, None], latitude, longitude) / FIBRE_SPEED
    latency = Underlay.from_graph(graph).path_latency()
    apart = ~np.eye(12, dtype=bool)
    assert (latency[apart] > straight[apart]).all()
    assert (latency[apart] < 5 * straight[apart]).all()


def test_the_direct_way_is_not_always_the_shortest():
    made = Underlay.from_graph(region_topology())
    assert (replace(made, routed=True).path_latency() < made.path_latency()).any()


def test_several_places_a_region():
    graph = region_topology(["East US", "West Europe"], places_per_region=3, within=0.002)
    assert list(graph) == [f"{region} {i}" for region in ("East US", "West Europe") for i in range(3)]
    made = Underlay.from_graph(graph)
    assert made.places_in("West Europe") == ("West Europe 0", "West Europe 1", "West Europe 2")
    latency = made.path_latency()
    assert latency[0].tolist() == [0, 0.002, 0.002] + [(0.086 + 0.084) / 4] * 3
    assert "2 regions, places_per_region=3, within=0.002" in made.description


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["Mars"], {}, "names must be regions out of 'West US', .*, got 'Mars'"),
        (["West US", "West US"], {}, "names must be different regions"),
        ([], {}, "names must be different regions, at least one"),
        ("West US", {}, r"names must be a collection of regions, got 'West US'; pass names=\['West US'\]"),
        (None, {"places_per_region": 0}, "places_per_region must be an integer >= 1, got 0"),
        (None, {"places_per_region": 1.5}, "places_per_region must be an integer >= 1, got 1.5"),
        (None, {"places_per_region": True}, "places_per_region must be an integer >= 1, got True"),
        (None, {"within": -1}, "within must be a finite number of seconds >= 0, got -1"),
    ],
)
def test_a_bad_argument_is_named(names, options, message):
    with pytest.raises(ValueError, match=message):
        region_topology(names, **options)
