"""The network: topology, delays, loss, churn, users and routers, and the engine that runs them."""

from algorithms.distributions import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Uniform,
)
from algorithms.learning import Learning, Schedule
from netsim import plots
from netsim.accounts import AccountsError
from netsim.churn import OnOff
from netsim.contacts import GivenContacts, RandomRouters, RatedRouters, Raters
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
    grid,
    path,
    random_geometric,
    random_regular,
    read_edge_list,
    read_graphml,
    ring,
    star,
    watts_strogatz,
    waxman,
)
from netsim.trace import MessageTrace
from netsim.world import World

__all__ = [
    "AccountsError",
    "Constant",
    "Distribution",
    "Empirical",
    "Exponential",
    "Gamma",
    "GivenContacts",
    "GivenPlacement",
    "Learning",
    "LogNormal",
    "MessageTrace",
    "Milestone",
    "Normal",
    "OnOff",
    "Periodic",
    "Plateau",
    "Poisson",
    "Probe",
    "RandomPlacement",
    "RandomRouters",
    "RatedRouters",
    "Raters",
    "Result",
    "Schedule",
    "Simulation",
    "StopRule",
    "Target",
    "Underlay",
    "Uniform",
    "View",
    "World",
    "barabasi_albert",
    "complete",
    "disclosure",
    "erdos_renyi",
    "generate",
    "grid",
    "mae",
    "objective",
    "path",
    "plots",
    "random_geometric",
    "random_regular",
    "ranking",
    "read_edge_list",
    "read_graphml",
    "ring",
    "rmse",
    "simulate",
    "star",
    "truth_rmse",
    "watts_strogatz",
    "waxman",
]
