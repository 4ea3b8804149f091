"""What is measured while a run goes on."""

from netsim.probes.disclosure import disclosure
from netsim.probes.errors import mae, objective, rmse, truth_rmse
from netsim.probes.ranking import ranking
from netsim.probes.view import Probe, View

__all__ = ["Probe", "View", "disclosure", "mae", "objective", "ranking", "rmse", "truth_rmse"]
