"""Each rating that comes is predicted just before the network may learn from it."""

import numpy as np
import pandas as pd

from algorithms.ratings import Ratings
from netsim.book import NOTED, empty_book, note
from netsim.nodes import id_column
from netsim.own import OwnRatings

__all__ = ["Prequential"]


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
        known = own.known
        user = np.repeat(np.arange(len(own.start) - 1), np.diff(own.start))[known]
        side = np.concatenate([user, ratings.n_users + own.item[known]])
        value = own.value[known]
        n_profiles = ratings.n_users + ratings.n_items
        self.book = empty_book()._replace(
            scale=np.array([ratings.scale.low, ratings.scale.high], dtype=np.float64),
            sums=np.bincount(side, weights=np.concatenate([value, value]), minlength=n_profiles),
            counts=np.bincount(side, minlength=n_profiles),
            total=np.array([value.sum()]),
            number=np.array([len(value)]),
        )

    def make_room(self, n: int) -> None:
        """Make room for `n` further rows."""
        needed = int(self.book.n_rows[0]) + n
        if needed > len(self.book.rows):
            rows = np.zeros(max(needed, 2 * len(self.book.rows)), dtype=NOTED)
            rows[: len(self.book.rows)] = self.book.rows
            self.book = self.book._replace(rows=rows)

    def note(self, values: np.ndarray, time: float, user: int, item: int, value: float, before: float) -> None:
        """Predict a rating that comes now, or is changed, and take it into the means.

        Parameters
        ----------
        values : float64, shape (n_profiles, rank)
            The profiles.
        time : float
            Seconds.
        user, item : int
        value, before : float
            The rating, and what it was before; NaN where there was none.
        """
        self.make_room(1)
        note(self.book, values, time, user, self._ratings.n_users + item, value, before)

    def frame(self) -> pd.DataFrame:
        """Tidy table, one rating a row, in the order of arrival.

        Columns: `time` in seconds; `user` and `item` (ids); `rating`; `predicted` by the network just before;
        `item_mean`, what a running mean of the item predicted (of all ratings, where the item had none);
        `user_ratings` and `item_ratings`, how many the two had then.
        """
        rows = self.book.rows[: int(self.book.n_rows[0])]
        table = pd.DataFrame({name: rows[name] for name in rows.dtype.names or ()})
        table = table.rename(columns={"profile": "item"})
        table["item"] -= self._ratings.n_users
        for name, ids in (("user", self._ratings.user_ids), ("item", self._ratings.item_ids)):
            table[name] = id_column([ids[number] for number in table[name].tolist()])
        return table
