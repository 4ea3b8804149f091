"""The network: topology, delays, loss, churn, users and routers, and the engine that runs them."""

from algorithms.distributions import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
)
from algorithms.learning import Learning, Schedule
from netsim import plots
from netsim.accounts import AccountsError
from netsim.availability import AvailabilityTrace, Segment, read_availability_trace
from netsim.churn import Checkpoint, Diurnal, OnOff, Sessions
from netsim.contacts import GivenContacts, RandomRouters, RatedRouters, Raters
from netsim.interventions import (
    flash_crowd,
    latency_shift,
    link_failure,
    partition,
    region_outage,
    router_outage,
)
from netsim.loss import GilbertElliott, Reordering
from netsim.milestones import Milestone, Plateau, StopRule, Target
from netsim.placement import GivenPlacement, RandomPlacement
from netsim.probes import Probe, View, disclosure, mae, objective, ranking, rmse, truth_rmse
from netsim.result import Result
from netsim.simulation import Simulation, simulate
from netsim.timers import Periodic, Poisson
from netsim.topology import (
    Underlay,
    barabasi_albert,
    complete,
    erdos_renyi,
    generate,
    great_circle,
    grid,
    path,
    random_geometric,
    random_regular,
    read_edge_list,
    read_graphml,
    read_latency_matrix,
    region_topology,
    regions,
    ring,
    star,
    watts_strogatz,
    waxman,
)
from netsim.trace import MessageTrace
from netsim.world import World

__all__ = [
    "AccountsError",
    "AvailabilityTrace",
    "Checkpoint",
    "Constant",
    "Distribution",
    "Diurnal",
    "Empirical",
    "Exponential",
    "Gamma",
    "GilbertElliott",
    "GivenContacts",
    "GivenPlacement",
    "Learning",
    "LogNormal",
    "MessageTrace",
    "Milestone",
    "Normal",
    "OnOff",
    "Pareto",
    "Periodic",
    "Plateau",
    "Poisson",
    "Probe",
    "RandomPlacement",
    "RandomRouters",
    "RatedRouters",
    "Raters",
    "Reordering",
    "Result",
    "Schedule",
    "Segment",
    "Sessions",
    "Simulation",
    "StopRule",
    "Target",
    "Underlay",
    "Uniform",
    "View",
    "Weibull",
    "World",
    "barabasi_albert",
    "complete",
    "disclosure",
    "erdos_renyi",
    "flash_crowd",
    "generate",
    "great_circle",
    "grid",
    "latency_shift",
    "link_failure",
    "mae",
    "objective",
    "partition",
    "path",
    "plots",
    "random_geometric",
    "random_regular",
    "ranking",
    "read_availability_trace",
    "read_edge_list",
    "read_graphml",
    "read_latency_matrix",
    "region_outage",
    "region_topology",
    "regions",
    "ring",
    "rmse",
    "router_outage",
    "simulate",
    "star",
    "truth_rmse",
    "watts_strogatz",
    "waxman",
]
