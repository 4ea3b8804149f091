"""Predictions of given ratings from the profiles of a moment, for the probes that measure errors."""

from dataclasses import dataclass, field

import numpy as np

from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from netsim.probes.view import View

__all__ = ["Predictions", "check_predicted"]


@dataclass(frozen=True)
class Predictions:
    """Predicts given ratings.

    Attributes
    ----------
    probe : str
        Name of the probe, for errors.
    ratings : Ratings
    clip : bool
        Whether predictions are clipped to the rating scale.
    """

    probe: str
    ratings: Ratings
    clip: bool
    _predictors: dict[str, Predictor] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, view: View) -> np.ndarray:
        """Predicted values of the ratings, float64, shape (n_ratings,).

        Raises
        ------
        ValueError
            If users or items are not the world's.
        """
        train = view.world.ratings
        if (train.user_ids, train.item_ids) != (self.ratings.user_ids, self.ratings.item_ids):
            raise ValueError(
                f"probe {self.probe}: its ratings must have the users and items of the world's ratings "
                f"({train.n_users} and {train.n_items}), got {self.ratings.n_users} and {self.ratings.n_items}; "
                "make both with one split of the same Ratings"
            )
        given = view.ratings
        if given is not train:  # it differs from probe to probe
            predict = Predictor(given, clip=self.clip)
        else:
            if train.digest not in self._predictors:
                self._predictors[train.digest] = Predictor(train, clip=self.clip)
            predict = self._predictors[train.digest]
        return predict(view.user_profiles, view.item_profiles, self.ratings.user, self.ratings.item)


def check_predicted(probe: str, ratings: Ratings, name: str, clip: bool) -> None:
    """Check what a probe of predictions was given.

    Raises
    ------
    ValueError
        If `ratings` is not a Ratings, `name` not text or `clip` not a bool; the message names probe and argument.
    """
    if not isinstance(ratings, Ratings):
        raise ValueError(f"{probe}: ratings must be a Ratings, got {type(ratings).__name__}; pass those held out")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{probe}: name must be text, as it names columns, got {name!r}")
    if not isinstance(clip, bool):
        raise ValueError(f"{probe}: clip must be True or False, got {clip!r}")
