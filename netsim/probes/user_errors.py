"""Errors of predictions by user: how unequal they are, and what those who are online now get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from algorithms import metrics
from algorithms.ratings import Ratings
from netsim.probes.predictions import Predictions, check_predicted
from netsim.probes.quantiles import check_quantiles, quantile_columns, quantile_values
from netsim.probes.view import Probe, View

__all__ = ["rmse_online", "rmse_per_user"]


@dataclass(frozen=True)
class _PerUserProbe:
    predictions: Predictions
    quantiles: tuple[float, ...]
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return quantile_columns(self.name, self.quantiles)

    def __call__(self, view: View) -> Mapping[str, float]:
        ratings = self.predictions.ratings
        squared = (self.predictions(view) - ratings.value) ** 2
        count = np.bincount(ratings.user, minlength=ratings.n_users)
        total = np.bincount(ratings.user, weights=squared, minlength=ratings.n_users)  # summed in index order
        of_user = np.sqrt(total[count > 0] / count[count > 0])
        return quantile_values(self.name, self.quantiles, of_user)


def rmse_per_user(
    ratings: Ratings,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    name: str = "test_rmse_per_user",
    clip: bool = True,
) -> Probe:
    """Probe of the root mean square error of each user, at quantiles over the users with ratings in `ratings`.

    Columns: `test_rmse_per_user_q50` and so on. Users count whether online, offline or departed.

    Parameters
    ----------
    ratings : Ratings
        With the users and items of the world's ratings, as a split gives them. How a user or item without a
        training rating is predicted, `algorithms.prediction.Predictor` says.
    quantiles : sequence of float
        In [0, 1]; 1 is the user who is served worst.
    name : str
        Begins the names of the columns.
    clip : bool
        Whether predictions are clipped to the rating scale.

    Raises
    ------
    ValueError
        If an argument is out of range. At the first measurement: if users or items are not the world's.
    """
    checked = check_quantiles("rmse_per_user", quantiles)
    check_predicted("rmse_per_user", ratings, name, clip)
    return _PerUserProbe(Predictions(name, ratings, clip), checked, name)


@dataclass(frozen=True)
class _OnlineProbe:
    predictions: Predictions
    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    def __call__(self, view: View) -> Mapping[str, float]:
        ratings = self.predictions.ratings
        # Predicted for all, so that ratings of another world are refused though nobody is online.
        predicted, online = self.predictions(view), view.users_online[ratings.user]
        if not online.any():
            return {self.name: float("nan")}
        return {self.name: metrics.rmse(predicted[online], ratings.value[online])}


def rmse_online(ratings: Ratings, *, name: str = "test_rmse_online", clip: bool = True) -> Probe:
    """Probe of the root mean square error on the ratings of users who are online now; column `name`.

    NaN where no user with a rating in `ratings` is online. `rmse` beside it measures all users.

    Parameters
    ----------
    ratings : Ratings
        As for `rmse_per_user`.
    name : str
    clip : bool
        Whether predictions are clipped to the rating scale.

    Raises
    ------
    ValueError
        As for `rmse_per_user`.
    """
    check_predicted("rmse_online", ratings, name, clip)
    return _OnlineProbe(Predictions(name, ratings, clip), name)
