"""Each rating that comes is predicted just before the network may learn from it."""

import numpy as np
import pandas as pd

from algorithms.ratings import Ratings
from algorithms.updates import inner
from netsim.nodes import id_column
from netsim.own import OwnRatings

__all__ = ["Prequential"]

COLUMNS = ("time", "user", "item", "rating", "predicted", "item_mean", "user_ratings", "item_ratings")

TYPES = dict.fromkeys(("time", "rating", "predicted", "item_mean"), "float64")
TYPES |= dict.fromkeys(("user_ratings", "item_ratings"), "int64")


class Prequential:
    """Predictions of ratings at the moment they come, and those of a running mean of the item beside them.

    The rule is that of `algorithms.prediction.Predictor`, by what has been given up to that moment: an item without a
    rating is predicted by the user's mean, a user without one is predicted the item's mean, and where both have none
    the middle of the scale is predicted. Clipped to the scale.

    Parameters
    ----------
    ratings : Ratings
        The world's.
    own : OwnRatings
        Those there from the start are known.
    """

    def __init__(self, ratings: Ratings, own: OwnRatings) -> None:
        self._ratings = ratings
        self._low, self._high = ratings.scale.low, ratings.scale.high
        user = np.repeat(np.arange(len(own.start) - 1), np.diff(own.start))[own.known]
        item, value = own.item[own.known], own.value[own.known]
        self._sums = [
            np.bincount(user, weights=value, minlength=ratings.n_users),
            np.bincount(item, weights=value, minlength=ratings.n_items),
        ]
        self._counts = [np.bincount(user, minlength=ratings.n_users), np.bincount(item, minlength=ratings.n_items)]
        self._total, self._number = float(value.sum()), len(value)
        self._given: dict[tuple[int, int], float] = {}
        self._rows: list[tuple[float, int, int, float, float, float, int, int]] = []
        self._own = own

    def note(
        self, time: float, user: int, item: int, place: int | None, value: float, of_user: np.ndarray, of_item: np.ndarray
    ) -> None:
        """Predict a rating that comes now, or is changed, and take it into the means.

        `place` is the number of the pair among the own ratings, where it is there.
        """
        before = float(self._own.value[place]) if place is not None and self._own.known[place] else None
        n_user, n_item = int(self._counts[0][user]), int(self._counts[1][item])
        middle = (self._low + self._high) / 2
        of_all = self._total / self._number if self._number else middle
        item_mean = float(self._sums[1][item]) / n_item if n_item else of_all
        if n_user and n_item:
            predicted = float(inner(of_user, of_item))
        elif n_user:
            predicted = float(self._sums[0][user]) / n_user
        else:
            predicted = item_mean if n_item else middle
        predicted = min(max(predicted, self._low), self._high)
        self._rows.append((time, user, item, value, predicted, item_mean, n_user, n_item))
        change = value - (0.0 if before is None else before)
        self._sums[0][user] += change
        self._sums[1][item] += change
        self._total += change
        if before is None:
            self._counts[0][user] += 1
            self._counts[1][item] += 1
            self._number += 1

    def frame(self) -> pd.DataFrame:
        """Tidy table, one rating a row, in the order of arrival.

        Columns: `time` in seconds; `user` and `item` (ids); `rating`; `predicted` by the network just before;
        `item_mean`, what a running mean of the item predicted (of all ratings, where the item had none);
        `user_ratings` and `item_ratings`, how many the two had then.
        """
        table = pd.DataFrame(self._rows, columns=list(COLUMNS)).astype(TYPES)
        for name, ids in (("user", self._ratings.user_ids), ("item", self._ratings.item_ids)):
            table[name] = id_column([ids[number] for number in table[name].tolist()])
        return table
