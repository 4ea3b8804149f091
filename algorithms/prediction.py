"""Predicted ratings from profiles, with a stated rule for users and items that have no rating."""

import numpy as np

from algorithms.compilation import kernel
from algorithms.ratings import Ratings
from algorithms.updates import inner

__all__ = ["Predictor"]


class Predictor:
    """Predicts ratings as the inner product of profiles, as in section 3 of the first seed paper.

    A profile that no rating has ever moved is random and says nothing. So, by what the user and the item's router
    know themselves:

    - an item without a training rating is predicted by the mean of the user's own ratings;
    - a user without a training rating is predicted the mean of the item's ratings;
    - where both have none, the middle of the rating scale is predicted.

    Parameters
    ----------
    ratings : Ratings
        The training ratings, which decide who has none.
    clip : bool
        Whether predictions are clipped to the rating scale, which every node knows.
    """

    def __init__(self, ratings: Ratings, *, clip: bool = True) -> None:
        self.clip = clip
        self._low, self._high = ratings.scale.low, ratings.scale.high
        self._middle = (self._low + self._high) / 2
        self._user_mean = _means(ratings.by_user.start, ratings.by_user.value)
        self._item_mean = _means(ratings.by_item.start, ratings.by_item.value)

    def __call__(
        self, user_profiles: np.ndarray, item_profiles: np.ndarray, user: np.ndarray, item: np.ndarray
    ) -> np.ndarray:
        """Predicted ratings of pairs.

        Parameters
        ----------
        user_profiles : float64, shape (n_users, rank)
        item_profiles : float64, shape (n_items, rank)
        user, item : int64, shape (n,)
            Indices of the pairs.

        Returns
        -------
        float64, shape (n,)
        """
        low, high = (self._low, self._high) if self.clip else (-np.inf, np.inf)
        predicted = np.empty(len(user))
        _predict(
            user_profiles,
            item_profiles,
            user,
            item,
            self._user_mean,
            self._item_mean,
            self._middle,
            low,
            high,
            predicted,
        )
        return predicted


@kernel
def _fill_means(start, value, means):
    """Mean of each row of a view, summed in index order; NaN where the row is empty."""
    for row in range(means.shape[0]):
        total = 0.0
        for n in range(start[row], start[row + 1]):
            total += value[n]
        means[row] = total / (start[row + 1] - start[row]) if start[row + 1] > start[row] else np.nan


def _means(start: np.ndarray, value: np.ndarray) -> np.ndarray:
    means = np.empty(len(start) - 1)
    _fill_means(start, value, means)
    return means


@kernel
def _predict(user_profiles, item_profiles, user, item, user_mean, item_mean, middle, low, high, predicted):
    for n in range(predicted.shape[0]):
        i, j = user[n], item[n]
        known_user, known_item = not np.isnan(user_mean[i]), not np.isnan(item_mean[j])
        if known_user and known_item:
            value = inner(user_profiles[i], item_profiles[j])
        elif known_user:
            value = user_mean[i]
        elif known_item:
            value = item_mean[j]
        else:
            value = middle
        predicted[n] = min(max(value, low), high)
