"""Errors of predictions, and objective (1)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algorithms import metrics
from algorithms.objective import objective as objective_value
from algorithms.ratings import Ratings
from netsim.probes.predictions import Predictions
from netsim.probes.view import Probe, View

__all__ = ["mae", "objective", "rmse", "truth_rmse"]


@dataclass(frozen=True)
class _ErrorProbe:
    """An error of predictions against given ratings."""

    predictions: Predictions
    name: str
    error: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, view: View) -> Mapping[str, float]:
        return {self.name: getattr(metrics, self.error)(self.predictions(view), self.predictions.ratings.value)}


def rmse(ratings: Ratings, *, name: str = "test_rmse", clip: bool = True) -> Probe:
    """Probe of the root mean square error on ratings; column `name`.

    Parameters
    ----------
    ratings : Ratings
        With the users and items of the world's ratings, as a split gives them. How a user or item without a
        training rating is predicted, `algorithms.prediction.Predictor` says.
    name : str
    clip : bool
        Whether predictions are clipped to the rating scale.
    """
    return _ErrorProbe(Predictions(name, ratings, clip), name, "rmse")


def mae(ratings: Ratings, *, name: str = "test_mae", clip: bool = True) -> Probe:
    """Probe of the mean absolute error on ratings; column `name`. Parameters as in `rmse`."""
    return _ErrorProbe(Predictions(name, ratings, clip), name, "mae")


@dataclass(frozen=True, eq=False)
class _TruthProbe:
    truth: np.ndarray
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, view: View) -> Mapping[str, float]:
        return {self.name: metrics.factorization_rmse(view.user_profiles, view.item_profiles, self.truth)}


def truth_rmse(truth: np.ndarray, *, name: str = "truth_rmse") -> Probe:
    """Probe of the RMS error against the true matrix, ||U'V - Theta||_F / sqrt(mn), as in section 4 of the paper.

    Parameters
    ----------
    truth : float64, shape (n_users, n_items)
    name : str
    """
    return _TruthProbe(np.array(truth, dtype=np.float64), name)


@dataclass(frozen=True)
class _ObjectiveProbe:
    lam: float | None
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, view: View) -> Mapping[str, float]:
        lam = view.world.learning.lam if self.lam is None else self.lam
        return {self.name: objective_value(view.user_profiles, view.item_profiles, view.ratings, lam)}


def objective(lam: float | None = None, *, name: str = "objective") -> Probe:
    """Probe of objective (1) on the world's ratings; column `name`.

    Parameters
    ----------
    lam : float, optional
        Weight of the regularization. Default: the world's.
    name : str
    """
    return _ObjectiveProbe(lam, name)
