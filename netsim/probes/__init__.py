"""What is measured while a run goes on."""

from netsim.probes.availability import availability
from netsim.probes.coverage import coverage
from netsim.probes.disclosure import disclosure
from netsim.probes.errors import mae, objective, rmse, truth_rmse
from netsim.probes.ranking import ranking
from netsim.probes.staleness import staleness
from netsim.probes.traffic import traffic
from netsim.probes.updates import updates_per_node
from netsim.probes.user_errors import rmse_online, rmse_per_user
from netsim.probes.view import Probe, View
from netsim.probes.waiting import waiting

__all__ = [
    "Probe",
    "View",
    "availability",
    "coverage",
    "disclosure",
    "mae",
    "objective",
    "ranking",
    "rmse",
    "rmse_online",
    "rmse_per_user",
    "staleness",
    "traffic",
    "truth_rmse",
    "updates_per_node",
    "waiting",
]
