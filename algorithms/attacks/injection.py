"""Fake users among the ratings that a network or a solver learns from."""

from collections.abc import Hashable
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from algorithms.attacks.profiles import Attack, number_of_profiles
from algorithms.ratings import Ratings

__all__ = ["attacked"]


def attacked(
    ratings: Ratings,
    attack: Attack,
    *,
    target: Hashable,
    share: float,
    seed: Any,
    categories: ArrayLike | None = None,
) -> Ratings:
    """Add the ratings of fake users.

    The genuine users keep their indices, and fake ones come after them with the ids "fake-1", "fake-2", ...; a number
    that is taken is left out. Where ratings have timestamps, those of fake users are the latest of all; where they have
    official folds, those of fake users are in a further one, so that every split of the others trains on them.

    Parameters
    ----------
    ratings : Ratings
        Of genuine users: what the attacker knows.
    attack : Attack
    target : hashable
        Id of the item attacked.
    share : float
        Fake users, as a share of the target's ratings, > 0 (`number_of_profiles`).
    seed : int or anything `numpy.random.default_rng` takes
    categories : array_like of float, optional
        The ratings that can be given. Default: those that occur, and the ends of the scale.

    Returns
    -------
    Ratings
        With the same items and the same scale.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    try:
        column = ratings.item_ids.index(target)
    except ValueError:
        raise ValueError(f"target must be the id of an item, got {target!r}; see ratings.item_ids") from None
    scale = ratings.scale
    possible = np.union1d(ratings.value, [scale.low, scale.high]) if categories is None else categories
    matrix = np.full((ratings.n_users, ratings.n_items), np.nan)
    matrix[ratings.user, ratings.item] = ratings.value
    n_profiles = number_of_profiles(matrix, column, share)
    fake = attack.profiles(matrix, column, n_profiles=n_profiles, seed=seed, categories=possible)
    row, item = np.nonzero(~np.isnan(fake))
    users = ratings.user_ids + _new_ids(ratings, n_profiles)
    user = np.concatenate([ratings.user, ratings.n_users + row])
    return Ratings.from_arrays(
        [users[index] for index in user.tolist()],
        [ratings.item_ids[index] for index in np.concatenate([ratings.item, item]).tolist()],
        np.concatenate([ratings.value, fake[row, item]]),
        timestamps=_continued(ratings.timestamp, len(row), step=0),
        scale=scale,
        user_ids=users,
        item_ids=ratings.item_ids,
        folds=_continued(ratings.folds, len(row), step=1),
    )


def _new_ids(ratings: Ratings, n: int) -> tuple[Hashable, ...]:
    taken = set(ratings.user_ids)
    return tuple(islice((name for number in count(1) if (name := f"fake-{number}") not in taken), n))


def _continued(column: np.ndarray | None, n: int, *, step: int) -> np.ndarray | None:
    """A column with n more entries, all `step` above its greatest."""
    return None if column is None else np.append(column, np.full(n, column.max() + step))
