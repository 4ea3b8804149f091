"""Ratings without the users and items that have few of them."""

import numpy as np
from numpy.typing import NDArray

from algorithms.ratings import Ratings
from algorithms.synthetic.checks import check_integer

__all__ = ["missingness_study", "with_at_least"]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def with_at_least(ratings: Ratings, *, user: int = 0, item: int = 0) -> Ratings:
    """Leave out users and items with few ratings.

    Ratings are counted once, in what is given: an id stays or goes by its count there, whatever the other side loses.
    So ``with_at_least(movielens_100k(), item=20)`` has the 943 users and 939 movies of section 4.1 of the second seed
    paper.

    Parameters
    ----------
    ratings : Ratings
    user, item : int
        Fewest ratings of a user, and of an item, that stays, >= 0. With 0, those without a rating stay too.

    Returns
    -------
    Ratings
        The ids that stay, in their order; so indices are new. Timestamps, folds and scale are kept.

    Raises
    ------
    ValueError
        If a bound is no integer >= 0, or no rating is left.
    """
    for name, bound in (("user", user), ("item", item)):
        check_integer(name, bound, low=0, mend="pass the fewest ratings of one that stays")
    users = _counts(ratings.user, ratings.n_users) >= user
    items = _counts(ratings.item, ratings.n_items) >= item
    return _restricted(ratings, users, items, f"user={user} and item={item}")


def missingness_study(chosen: Ratings, random: Ratings, *, user: int = 20, item: int = 20) -> tuple[Ratings, Ratings]:
    """Restrict ratings of chosen and of random items to the same users, section 4.2 of the second seed paper.

    Users stay who have a rating in both parts, and at least `user` of them in the first. Then those items leave the
    first part that have fewer than `item` ratings there by the users who stay. The second part keeps all its items. The
    paper does not say by whose ratings songs are counted; it limits songs after users.

    Parameters
    ----------
    chosen, random : Ratings
        As `yahoo_r3` and `coat` give them: with the same users.
    user, item : int
        Fewest ratings, in the first part, >= 0.

    Returns
    -------
    chosen, random : Ratings
        With the same users, so that their indices line up; those of items do not.

    Raises
    ------
    ValueError
        If the users differ, a bound is no integer >= 0, or no rating is left.
    """
    for name, bound in (("user", user), ("item", item)):
        check_integer(name, bound, low=0, mend="pass the fewest ratings of one that stays")
    if chosen.user_ids != random.user_ids:
        raise ValueError(
            f"random must have the users of chosen ({chosen.n_users}), got {random.n_users}, or others; "
            "pass both parts as one loader gives them"
        )
    counts = [_counts(part.user, part.n_users) for part in (chosen, random)]
    users = (counts[0] >= max(user, 1)) & (counts[1] >= 1)
    bounds = f"user={user} and item={item}"
    own = _counts(chosen.item[users[chosen.user]], chosen.n_items) >= item
    every = np.ones(random.n_items, dtype=bool)
    return _restricted(chosen, users, own, bounds), _restricted(random, users, every, bounds)


def _counts(index: IntArray, n: int) -> IntArray:
    return np.bincount(index, minlength=n)


def _restricted(ratings: Ratings, users: BoolArray, items: BoolArray, bounds: str) -> Ratings:
    """Ratings of some users for some items, which alone are left."""
    kept = users[ratings.user] & items[ratings.item]
    if not kept.any():
        raise ValueError(f"{bounds} must leave a rating, got none of {ratings.n_ratings}; lower them")
    part = ratings.select(kept)
    return Ratings.from_arrays(
        [part.user_ids[index] for index in part.user.tolist()],
        [part.item_ids[index] for index in part.item.tolist()],
        part.value,
        timestamps=part.timestamp,
        scale=part.scale,
        user_ids=[each for each, stays in zip(part.user_ids, users.tolist(), strict=True) if stays],
        item_ids=[each for each, stays in zip(part.item_ids, items.tolist(), strict=True) if stays],
        folds=part.folds,
    )
