"""Topologies: where the places are, how they are linked, and what a message meets between them.

A topology is a networkx graph whose edges carry a one-way `latency` in seconds, and may carry a `loss` (probability)
and a `bandwidth` (bytes/s); a node may say its `region`. It comes from a generator (`barabasi_albert`, `ring`, ... or
`generate` by name), from a file (`read_graphml`, `read_edge_list`, `read_latency_matrix`), from a published table
(`region_topology`) or from the caller. `Underlay.from_graph` turns it into the immutable description that a simulation
runs on.
"""

from netsim.topology.edge_list import read_edge_list
from netsim.topology.generators import (
    GENERATORS,
    barabasi_albert,
    complete,
    erdos_renyi,
    generate,
    grid,
    path,
    random_geometric,
    random_regular,
    ring,
    star,
    watts_strogatz,
    waxman,
)
from netsim.topology.geography import great_circle
from netsim.topology.graphml import read_graphml
from netsim.topology.latency_matrix import read_latency_matrix
from netsim.topology.paths import PathProperties
from netsim.topology.regions import region_topology, regions, round_trips
from netsim.topology.underlay import Underlay

__all__ = [
    "GENERATORS",
    "PathProperties",
    "Underlay",
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "generate",
    "great_circle",
    "grid",
    "path",
    "random_geometric",
    "random_regular",
    "read_edge_list",
    "read_graphml",
    "read_latency_matrix",
    "region_topology",
    "regions",
    "ring",
    "round_trips",
    "star",
    "watts_strogatz",
    "waxman",
]
