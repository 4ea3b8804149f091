"""Topologies: where the places are, how they are linked, and how long a message takes between them.

A topology is a networkx graph whose edges carry a one-way `latency` in seconds. It comes from a generator
(`barabasi_albert`, `ring`, ... or `generate` by name), from a file (`read_graphml`, `read_edge_list`) or from
the caller. `Underlay.from_graph` turns it into the immutable description that a simulation runs on.
"""

from netsim.topology.files import read_edge_list, read_graphml
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
from netsim.topology.underlay import Underlay

__all__ = [
    "GENERATORS",
    "Underlay",
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "generate",
    "grid",
    "path",
    "random_geometric",
    "random_regular",
    "read_edge_list",
    "read_graphml",
    "ring",
    "star",
    "watts_strogatz",
    "waxman",
]
