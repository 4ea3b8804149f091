"""Trust propagation: the heuristic that the introduction of the first seed paper argues against, as a comparator.

"They use trust or some similarity metric to build a graph among the users, and then use some propagation algorithms to
do the recommendation. These methods are straightforward and heuristic." There are no routers and no profiles: users
ask users.
"""

from typing import Any, Literal

import numpy as np

from algorithms import purposes
from algorithms.chance import USER, combine, draw, entity_keys, seed_word
from algorithms.compilation import inner_kernel, kernel
from algorithms.ratings import Ratings
from algorithms.solvers.base import check_count
from algorithms.solvers.observed import as_observed

__all__ = ["TrustPropagation"]

# Sizes in bytes, those of `netsim.messages`. The header has room for a query's number, from which its answer is known.
HEADER = 48
ITEM_NAME = 8
ANSWER = 16  # in a meeting an item and a rating; to a query a deviation and its weight

# What queries are counted by, for the kernels.
QUERIES, DISCLOSED, ANSWERED = 0, 1, 2


class TrustPropagation:
    """Predicts a rating from what a user's neighbours, and theirs in turn, gave the item.

    **Meeting.** Each user i meets `met` others, drawn at random, and keeps the `n_neighbours` of them that are most
    similar, if the similarity is above 0. To compare, i names his items to j, and j answers with his ratings of those
    that he rated too. Over these c common items the similarity is

        s_ij = c / (c + shrinkage) * (Pearson correlation, or cosine, of the two rows of c ratings)

    It is 0 where there is none: no common item, or for Pearson one of the two rows constant.

    **Asking.** To predict x_ij, user i asks his neighbours for item j. Who has rated it answers by how much his rating
    is above the mean of all his ratings. Who has not asks his own neighbours, but not those who asked him, up to
    `depth` hops from i. Every query is answered, so that nobody waits for an answer that never comes. Who has the query
    already, by a shorter way, answers with weight 0, and so does who can tell nothing. So only shortest paths count,
    and i never answers himself: his own rating of the item is not used. The prediction is

        mean_i + sum_k w_k (x_kj - mean_k) / sum_k w_k

    over the raters k reached, where w_k is the product of the similarities along a path from i to k, summed over the
    shortest paths. Whoever passes answers on adds up deviations times weights and sends their weighted mean, with the
    sum of the weights, so nobody sees ratings of users whom he does not know. With `depth=1` this is the
    neighbourhood method of Resnick et al.

    **Where there is no answer** the mean of the user's own ratings is predicted. As with
    `algorithms.prediction.Predictor` a user without a training rating is predicted the mean of the item's ratings, and
    the middle of the scale where the item has none either. No user knows an item's mean by himself; the rule is there
    so that methods are compared on equal terms, and costs no message here.

    **Cost.** Naming n items takes 48 + 8 n bytes, answering with c ratings 48 + 16 c; a query names one item, and its
    answer has two numbers of 8 bytes. A rating is disclosed to another user when its owner sends it, or its deviation,
    to him; it is counted once for each receiver. A weighted mean that is passed on is not counted, though a mean of one
    answer gives that answer away, if not whose it is; nor is the list of items that a user names.

    Parameters
    ----------
    n_neighbours : int
        Length of a user's list at most.
    depth : int
        Hops that a query goes at most.
    met : int or None
        Users that each user meets, all others with None.
    similarity : {"pearson", "cosine"}
    shrinkage : float
        Number of common items at which a similarity is halved, >= 0.
    seed : int or anything `numpy.random.default_rng` takes
        Who meets whom.

    Attributes
    ----------
    neighbours_ : int64, shape (n_users, n_neighbours)
        Each user's list, the most similar first (of equals the one with the lower index); -1 after its end.
    similarity_ : float64, shape (n_users, n_neighbours)
        Their similarities; 0 after the end.
    meeting_messages_, meeting_bytes_, meeting_disclosed_ : int
        What finding the neighbours took: messages, bytes, and ratings disclosed.
    messages_, bytes_, disclosed_ : int
        What the queries of the last `predict` took. They disclose no rating to whom a meeting disclosed it, so the
        sum of both is the number of ratings disclosed.
    coverage_ : float
        Share of the pairs of the last `predict` that some rater answered; NaN before it.

    Notes
    -----
    Neighbourhood, and predictions from deviations: Resnick, Iacovou, Suchak, Bergstrom and Riedl, "GroupLens: an open
    architecture for collaborative filtering of netnews" (CSCW 1994). Shrinkage: Bell and Koren, "Improved
    neighborhood-based collaborative filtering" (KDD Cup 2007). Asking along shortest paths, where a rater answers and
    others ask on: TidalTrust, in Golbeck, "Computing and applying trust in web-based social networks" (University of
    Maryland, 2005). A fixed number of hops, and coverage: Massa and Avesani, "Trust-aware recommender systems" (RecSys
    2007). There users state whom they trust; here similarity takes the place of trust. And it multiplies along a path,
    where TidalTrust averages anew at each user.
    """

    neighbours_: np.ndarray
    similarity_: np.ndarray
    meeting_messages_: int
    meeting_bytes_: int
    meeting_disclosed_: int
    messages_: int
    bytes_: int
    disclosed_: int
    coverage_: float

    def __init__(
        self,
        n_neighbours: int = 30,
        *,
        depth: int = 2,
        met: int | None = 100,
        similarity: Literal["pearson", "cosine"] = "pearson",
        shrinkage: float = 50.0,
        seed: Any = 0,
    ) -> None:
        self.n_neighbours = n_neighbours
        self.depth = depth
        self.met = met
        self.similarity = similarity
        self.shrinkage = shrinkage
        self.seed = seed

    def fit(self, ratings: Ratings) -> "TrustPropagation":
        """Let users meet and choose their neighbours; returns the method.

        Parameters
        ----------
        ratings : Ratings
            The known ratings; each user knows his own.

        Raises
        ------
        ValueError
            If an argument is out of range; the message names it.
        """
        self._check(ratings)
        self._ratings, self._observed, self._depth = ratings, as_observed(ratings), int(self.depth)
        self._user_mean = _means(ratings.user, ratings.value, ratings.n_users)
        self._item_mean = _means(ratings.item, ratings.value, ratings.n_items)
        self._meet()
        self._account(np.zeros(3, dtype=np.int64), n_pairs=0)
        return self

    def predict(self, users: np.ndarray, items: np.ndarray, *, clip: bool = True) -> np.ndarray:
        """Ask for the ratings of pairs; float64, shape (n,). Sets the cost attributes.

        Parameters
        ----------
        users, items : int, shape (n,)
            Indices of the pairs, as in the ratings that were fitted.
        clip : bool
            Whether predictions are clipped to the rating scale, which every user knows.

        Raises
        ------
        ValueError
            If the method is not fitted, or indices do not fit what it was fitted to.
        """
        if not hasattr(self, "neighbours_"):
            raise ValueError("the method has no neighbours yet; call fit(ratings) first")
        ratings = self._ratings
        user, item = self._observed.pairs(users, items)
        deviation, weight = self._ask(user, item)
        predicted = self._fallback(user, item)
        answered = weight > 0
        predicted[answered] = self._user_mean[user[answered]] + deviation[answered]
        return np.clip(predicted, ratings.scale.low, ratings.scale.high) if clip else predicted

    def __repr__(self) -> str:
        return (
            f"TrustPropagation(n_neighbours={self.n_neighbours}, depth={self.depth}, met={self.met}, "
            f"similarity={self.similarity!r}, shrinkage={self.shrinkage:g})"
        )

    def _check(self, ratings: Ratings) -> None:
        if not isinstance(ratings, Ratings):
            raise ValueError(
                f"ratings must be a Ratings, got {type(ratings).__name__}; make one with Ratings.from_arrays"
            )
        for name in ("n_neighbours", "depth"):
            check_count(name, getattr(self, name))
        if self.met is not None:
            check_count("met", self.met, expected="an integer >= 1, or None for all users")
        if self.similarity not in ("pearson", "cosine"):
            raise ValueError(f'similarity must be "pearson" or "cosine", got {self.similarity!r}')
        if not 0 <= self.shrinkage < np.inf:
            raise ValueError(f"shrinkage must be a finite number >= 0, got {self.shrinkage!r}; 0 shrinks nothing")

    def _meet(self) -> None:
        """Set the neighbours, and what it took to find them."""
        ratings, rows = self._ratings, self._ratings.by_user
        shape = (ratings.n_users, int(self.n_neighbours))
        self.neighbours_, self.similarity_ = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        self.meeting_messages_ = self.meeting_bytes_ = self.meeting_disclosed_ = 0
        own, owner = np.empty(ratings.n_items), np.full(ratings.n_items, -1, dtype=np.int64)
        pearson, shrinkage = self.similarity == "pearson", float(self.shrinkage)
        for i, others in enumerate(_met(ratings, self.met, self.seed)):
            similarity, common = np.empty(len(others)), np.empty(len(others), dtype=np.int64)
            _compare(rows.start, rows.index, rows.value, i, others, pearson, shrinkage, own, owner, similarity, common)
            order = np.argsort(-similarity, kind="stable")[: shape[1]]
            order = order[similarity[order] > 0]
            self.neighbours_[i, : len(order)], self.similarity_[i, : len(order)] = others[order], similarity[order]
            self._count_meetings(int(rows.start[i + 1] - rows.start[i]), common)

    def _count_meetings(self, n_named: int, common: np.ndarray) -> None:
        n_common = int(common.sum())
        self.meeting_messages_ += 2 * len(common)
        self.meeting_bytes_ += len(common) * (2 * HEADER + ITEM_NAME * n_named) + ANSWER * n_common
        self.meeting_disclosed_ += n_common

    def _ask(self, user: np.ndarray, item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean of the deviations, and the sum of their weights, for each pair; 0 where nobody answers."""
        n_users, by_item = self._ratings.n_users, self._ratings.by_item
        counts = np.zeros(3, dtype=np.int64)
        deviation, weight = np.zeros(len(user)), np.zeros(len(user))
        _ask_all(
            np.argsort(item, kind="stable"),
            user,
            item,
            by_item.start,
            by_item.index,
            by_item.value,
            self._user_mean,
            self.neighbours_,
            self.similarity_,
            self._depth,
            np.full(n_users, -1, dtype=np.int64),
            np.empty(n_users),
            np.full(n_users, -1, dtype=np.int64),
            np.empty(n_users),
            np.empty(n_users, dtype=np.int64),
            np.full(self.neighbours_.shape, -1, dtype=np.int64),
            deviation,
            weight,
            counts,
        )
        self._account(counts, n_pairs=len(user))
        return deviation, weight

    def _account(self, counts: np.ndarray, *, n_pairs: int) -> None:
        queries, self.disclosed_, answered = counts.tolist()
        self.messages_ = 2 * queries
        self.bytes_ = queries * (2 * HEADER + ITEM_NAME + ANSWER)
        self.coverage_ = answered / n_pairs if n_pairs else float("nan")

    def _fallback(self, user: np.ndarray, item: np.ndarray) -> np.ndarray:
        scale = self._ratings.scale
        without_user = np.where(np.isnan(self._item_mean[item]), (scale.low + scale.high) / 2, self._item_mean[item])
        return np.where(np.isnan(self._user_mean[user]), without_user, self._user_mean[user])


def _means(index: np.ndarray, value: np.ndarray, n: int) -> np.ndarray:
    """Mean of the values of each index; NaN where there is none."""
    count = np.bincount(index, minlength=n)
    means = np.full(n, np.nan)
    np.divide(np.bincount(index, weights=value, minlength=n), count, out=means, where=count > 0)
    return means


def _met(ratings: Ratings, met: int | None, seed: Any) -> list[np.ndarray]:
    """Indices, ascending, of the users whom each user meets: those with the smallest draws of the pair."""
    n_users, word = ratings.n_users, seed_word(seed)
    keys = entity_keys(USER, ratings.user_ids)
    words = np.empty(n_users, dtype=np.uint64)
    lists = []
    for i in range(n_users):
        others = np.delete(np.arange(n_users), i)
        if met is not None and met < len(others):
            _pair_words(word, keys[i], keys, words)
            others = np.sort(others[np.argpartition(words[others], met - 1)[:met]])
        lists.append(others)
    return lists


@kernel
def _pair_words(seed: np.uint64, key: np.uint64, keys: np.ndarray, words: np.ndarray) -> None:
    """Draw of each pair of the user `key` with another; (i, j) is another pair than (j, i)."""
    for j in range(keys.shape[0]):
        words[j] = draw(seed, purposes.PEER_SAMPLING, combine(key, keys[j]), 0)


@kernel
def _compare(
    start: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    i: int,
    others: np.ndarray,
    pearson: bool,
    shrinkage: float,
    own: np.ndarray,
    owner: np.ndarray,
    similarity: np.ndarray,
    common: np.ndarray,
) -> None:
    """Similarity of user i with others, and the number of common items.

    `own` and `owner` are room for one number an item; no `owner` may be i before the call.
    """
    for n in range(start[i], start[i + 1]):
        own[index[n]], owner[index[n]] = value[n], i
    for m in range(others.shape[0]):
        count, x0, y0 = 0, 0.0, 0.0
        sx, sy, sxx, syy, sxy = 0.0, 0.0, 0.0, 0.0, 0.0
        for n in range(start[others[m]], start[others[m] + 1]):
            if owner[index[n]] != i:
                continue
            if pearson and count == 0:  # taken from all, so that a constant row has exactly no variance
                x0, y0 = own[index[n]], value[n]
            x, y = own[index[n]] - x0, value[n] - y0
            count += 1
            sx, sy = sx + x, sy + y
            sxx, syy, sxy = sxx + x * x, syy + y * y, sxy + x * y
        common[m] = count
        similarity[m] = 0.0
        if count > 0:
            xx, yy, xy = sxx, syy, sxy
            if pearson:
                xx, yy, xy = sxx - sx * sx / count, syy - sy * sy / count, sxy - sx * sy / count
            if xx > 0.0 and yy > 0.0:
                raw = min(max(xy / (np.sqrt(xx) * np.sqrt(yy)), -1.0), 1.0)
                similarity[m] = raw * (count / (count + shrinkage))


@kernel
def _ask_all(
    order: np.ndarray,
    user: np.ndarray,
    item: np.ndarray,
    start: np.ndarray,
    index: np.ndarray,
    value: np.ndarray,
    user_mean: np.ndarray,
    neighbours: np.ndarray,
    similarity: np.ndarray,
    depth: int,
    rated: np.ndarray,
    rating: np.ndarray,
    hops: np.ndarray,
    path_weight: np.ndarray,
    reached: np.ndarray,
    told: np.ndarray,
    deviation: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Ask for all pairs, in an order that keeps those of one item together.

    `rated`, `rating`, `hops`, `path_weight` and `reached` are room for one number a user, `told` for one a neighbour;
    `rated`, `hops` and `told` are -1 before the call.
    """
    for place in range(order.shape[0]):
        pair = order[place]
        i, j = user[pair], item[pair]
        if place == 0 or item[order[place - 1]] != j:
            for n in range(start[j], start[j + 1]):
                rated[index[n]], rating[index[n]] = j, value[n]
        n_reached = _ask(i, j, neighbours, similarity, depth, rated, hops, path_weight, reached, told, counts)
        total, total_weight = 0.0, 0.0
        for n in range(1, n_reached):
            k = reached[n]
            if rated[k] == j:
                total += path_weight[k] * (rating[k] - user_mean[k])
                total_weight += path_weight[k]
        if total_weight > 0.0:
            deviation[pair], weight[pair] = total / total_weight, total_weight
            counts[ANSWERED] += 1
        for n in range(n_reached):
            hops[reached[n]] = -1


@kernel
def _ask(
    i: int,
    j: int,
    neighbours: np.ndarray,
    similarity: np.ndarray,
    depth: int,
    rated: np.ndarray,
    hops: np.ndarray,
    path_weight: np.ndarray,
    reached: np.ndarray,
    told: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Send user i's query for item j over the graph; returns how many users it reached, i included.

    It goes from user to user in the order in which they are reached, so a user's weight is complete before he asks on.
    """
    reached[0], hops[i], path_weight[i] = i, 0, 1.0
    n_reached, n_done = 1, 0
    while n_done < n_reached and hops[reached[n_done]] < depth:
        a = reached[n_done]
        n_done += 1
        if not _asks_on(a, i, j, rated):
            continue
        for n in range(neighbours.shape[1]):
            b = neighbours[a, n]
            if b < 0:
                break
            if hops[b] == hops[a] - 1 and hops[b] >= 0 and _asks_on(b, i, j, rated) and _lists(neighbours, b, a):
                continue  # b asked a
            counts[QUERIES] += 1
            if hops[b] < 0:
                hops[b], path_weight[b], reached[n_reached] = hops[a] + 1, 0.0, b
                n_reached += 1
            if hops[b] == hops[a] + 1:
                path_weight[b] += path_weight[a] * similarity[a, n]
                if rated[b] == j and rated[a] != j and told[a, n] != j:  # who rated j himself was told when they met
                    told[a, n] = j
                    counts[DISCLOSED] += 1
    return n_reached


@inner_kernel
def _asks_on(a: int, i: int, j: int, rated: np.ndarray) -> bool:
    """Whether user a, having got i's query for item j, asks his neighbours."""
    return bool(a == i or rated[a] != j)


@kernel
def _lists(neighbours: np.ndarray, b: int, a: int) -> bool:
    """Whether a is a neighbour of b."""
    for n in range(neighbours.shape[1]):  # noqa: SIM110 - numba knows no `any` of a generator
        if neighbours[b, n] == a:
            return True
    return False
