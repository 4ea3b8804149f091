"""Top-N lists from profiles, and how well they rank what users like: recall, NDCG and coverage."""

from typing import NamedTuple

import numpy as np

from algorithms.compilation import kernel
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings, Scale

__all__ = ["Ranking", "RankingMetrics", "check_list", "relevant_from"]

EMPTY = -1  # stands in a list after its last item


class RankingMetrics(NamedTuple):
    """How well lists of N items rank; each in [0, 1], or NaN where profiles have diverged.

    Attributes
    ----------
    recall : float
        Share of a user's relevant items that his list holds; mean over users.
    ndcg : float
        Normalized discounted cumulative gain of a user's list; mean over users.
    coverage : float
        Share of all items that stand in the list of at least one user.
    """

    recall: float
    ndcg: float
    coverage: float


class Ranking:
    """Ranks, for each user, the items that he has not rated in training, and compares with his test ratings.

    - **List.** The N candidates with the highest predicted ratings, best first. Candidates are all items but those of
      the user's training ratings; no items are sampled, as sampling changes which method is better [1]_. A user with
      fewer candidates has a shorter list. Of equal predictions, the item with the lower index comes first. Ratings are
      predicted by the rule of `Predictor`, also for users and items without a training rating, but not clipped to
      the scale: clipped predictions would tie at its top.
    - **Relevant** is a test item that the user rated `relevant` or higher and is a candidate. What he rated
      lower, or not at all, is not.
    - **Recall** of a user: relevant items in the list over his relevant items [2]_. It stays below 1 where he has more
      than N of them.
    - **NDCG** of a user, with binary gains [3]_: the sum of 1 / log2(1 + p) over the positions p = 1, 2, ... of
      relevant items in the list, over the same sum for a list that has as many relevant items as it can hold first.
    - Recall and NDCG are averaged over the users who have a relevant item. The others say nothing and are left out.
    - **Coverage** (of the catalogue [4]_) counts the lists of all users.

    Sums run in index order, without BLAS, so the bits are the same in every run.

    Parameters
    ----------
    train, test : Ratings
        With the same users and items, as a split gives them.
    n : int
        Length of a list.
    relevant : float, optional
        Lowest rating of a relevant item. Default: three quarters up the scale (`relevant_from`): 4 on 1 to 5.

    Raises
    ------
    ValueError
        If users or items differ, `n` is not an integer >= 1, or no user has a relevant item.

    References
    ----------
    .. [1] W. Krichene and S. Rendle, "On sampled metrics for item recommendation", KDD 2020.
    .. [2] P. Cremonesi, Y. Koren and R. Turrin, "Performance of recommender algorithms on top-N recommendation
       tasks", RecSys 2010.
    .. [3] K. Jarvelin and J. Kekalainen, "Cumulated gain-based evaluation of IR techniques", ACM Transactions on
       Information Systems 20, 2002; with the discount 1 / log2(1 + p) for every position.
    .. [4] M. Ge, C. Delgado-Battenfeld and D. Jannach, "Beyond accuracy: evaluating recommender systems by coverage
       and serendipity", RecSys 2010.
    """

    def __init__(self, train: Ratings, test: Ratings, *, n: int = 10, relevant: float | None = None) -> None:
        check_list(n, relevant)
        if (train.user_ids, train.item_ids) != (test.user_ids, test.item_ids):
            raise ValueError(
                f"test must have the users and items of train ({train.n_users} and {train.n_items}), got "
                f"{test.n_users} and {test.n_items}; make both with one split of the same Ratings"
            )
        self.n = int(n)
        self.relevant = relevant_from(train.scale) if relevant is None else float(relevant)
        self._train = train.by_user
        self._relevant = _liked(train, test, self.relevant).by_user
        self._predict = Predictor(train, clip=False)
        self._n_items = train.n_items

    def lists(self, user_profiles: np.ndarray, item_profiles: np.ndarray) -> np.ndarray:
        """Top-N list of each user.

        Parameters
        ----------
        user_profiles : float64, shape (n_users, rank)
        item_profiles : float64, shape (n_items, rank)

        Returns
        -------
        int64, shape (n_users, n)
            Indices of items, best first; -1 after the last one of a shorter list. A prediction that is not a number
            is in no list.
        """
        return self._lists(user_profiles, item_profiles)[0]

    def __call__(self, user_profiles: np.ndarray, item_profiles: np.ndarray) -> RankingMetrics:
        """Measure the lists that profiles give; parameters as in `lists`."""
        lists, whole = self._lists(user_profiles, item_profiles)
        if not whole:
            return RankingMetrics(np.nan, np.nan, np.nan)
        discounts = 1.0 / np.log2(np.arange(2, self.n + 2))
        recall, ndcg, users = _quality(lists, self._relevant.start, self._relevant.index, discounts)
        return RankingMetrics(recall / users, ndcg / users, len(np.unique(lists[lists != EMPTY])) / self._n_items)

    def _lists(self, user_profiles: np.ndarray, item_profiles: np.ndarray) -> tuple[np.ndarray, bool]:
        """The lists, and whether all predictions of candidates are numbers."""
        lists = np.full((len(self._train), self.n), EMPTY, dtype=np.int64)
        best = np.empty(self.n)
        items = np.arange(self._n_items)
        whole = True
        for user, chosen in enumerate(lists):
            predicted = self._predict(user_profiles, item_profiles, np.full(self._n_items, user), items)
            rated = self._train.index[self._train.start[user] : self._train.start[user + 1]]
            whole &= _take_best(predicted, rated, chosen, best)
        return lists, whole


def check_list(n: int, relevant: float | None) -> None:
    """Refuse what is no length of a list, or no rating.

    Parameters
    ----------
    n : int
        Must be >= 1.
    relevant : float or None
        Must be finite.

    Raises
    ------
    ValueError
        If one is out of range; the message names it.
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n must be an integer >= 1, got {n!r}; it is the length of a list")
    number = isinstance(relevant, int | float | np.number) and not isinstance(relevant, bool)
    if relevant is not None and not (number and np.isfinite(relevant)):
        raise ValueError(f"relevant must be a finite rating, got {relevant!r}; pass for instance 4 on a scale to 5")


def relevant_from(scale: Scale) -> float:
    """Lowest rating that counts as liking an item where nothing else is said: three quarters up the scale.

    Parameters
    ----------
    scale : Scale

    Returns
    -------
    float
        4 on the scale from 1 to 5, 3.875 (so 4 and above) on that from 0.5 to 5.
    """
    return scale.low + 0.75 * (scale.high - scale.low)


def _liked(train: Ratings, test: Ratings, relevant: float) -> Ratings:
    """Test ratings of candidates that are high enough."""
    rated = np.isin(test.user * test.n_items + test.item, train.user * train.n_items + train.item)
    liked = (test.value >= relevant) & ~rated
    if not liked.any():
        raise ValueError(
            f"relevant is {relevant:g}, but no test rating of an item unrated in training is as high; the highest test "
            f"rating is {test.value.max():g}; pass a lower relevant= or another test set"
        )
    return test.select(liked)


@kernel
def _take_best(predicted, rated, chosen, best):
    """Put the unrated items with the highest predictions into `chosen`; whether all their predictions are numbers.

    `rated` ascends. Equal predictions keep the order of the items. `best` holds the predictions of those chosen.
    """
    whole = True
    n_chosen, passed = 0, 0
    for item in range(predicted.shape[0]):
        if passed < rated.shape[0] and rated[passed] == item:
            passed += 1
            continue
        value = predicted[item]
        if np.isnan(value):
            whole = False
            continue
        if n_chosen < chosen.shape[0]:
            n_chosen += 1
        elif not value > best[n_chosen - 1]:
            continue
        position = n_chosen - 1
        while position > 0 and value > best[position - 1]:
            best[position], chosen[position] = best[position - 1], chosen[position - 1]
            position -= 1
        best[position], chosen[position] = value, item
    return whole


@kernel
def _quality(lists, start, relevant, discounts):
    """Sums of recall and NDCG over the users with a relevant item, and how many they are; users in index order."""
    recall, ndcg, users = 0.0, 0.0, 0
    for user in range(lists.shape[0]):
        first, end = start[user], start[user + 1]
        if first == end:
            continue
        hits, gain, ideal = 0, 0.0, 0.0
        for position in range(lists.shape[1]):
            if position < end - first:
                ideal += discounts[position]
            for n in range(first, end):
                if relevant[n] == lists[user, position]:
                    hits += 1
                    gain += discounts[position]
        recall += hits / (end - first)
        ndcg += gain / ideal
        users += 1
    return recall, ndcg, users
