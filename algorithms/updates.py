"""The update rules of the decentralized algorithm, equations (3) and (4) of the first seed paper.

Each moves one profile only, by the profile that arrived and the one rating that joins the two. Profiles are float64
vectors of shape (rank,), changed in place. The loops are plain, in index order, without `fastmath`: every caller gets
the same bits.
"""

import numpy as np

from algorithms.compilation import kernel

__all__ = ["inner", "learning_rate_at", "regularization_at", "update_item", "update_user"]

# Codes of `Learning.regularization` and `Learning.schedule`, for the kernels.
PER_MESSAGE, UNIFORM = 0, 1
CONSTANT, INVERSE, EXPONENTIAL = 0, 1, 2


@kernel
def inner(a, b):
    """Inner product of two profiles, summed in index order."""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel
def update_user(u, v, x, eta, lam):
    """User i takes an item profile: u <- u - eta v (u'v - x) - eta lambda u, equation (3).

    Parameters
    ----------
    u : float64, shape (rank,)
        The user's profile, changed in place.
    v : float64, shape (rank,)
        The item's profile as it was sent.
    x : float64
        The user's rating of the item.
    eta, lam : float64
        Learning rate and regularization weight of this update.
    """
    error = inner(u, v) - x
    for k in range(u.shape[0]):
        u[k] = u[k] - eta * v[k] * error - eta * lam * u[k]


@kernel
def update_item(v, u, x, eta, lam):
    """Router takes a user profile: v <- v - eta u (u'v - x) - eta lambda v, equation (4).

    Parameters as in `update_user`, with the roles exchanged: `v` is changed in place.
    """
    error = inner(u, v) - x
    for k in range(v.shape[0]):
        v[k] = v[k] - eta * u[k] * error - eta * lam * v[k]


@kernel
def regularization_at(rule, lam, n_known):
    """Weight of the regularization in one update.

    `PER_MESSAGE` is the paper's literal form: `lam` acts at each message, so a profile with many ratings is shrunk
    more. `UNIFORM` divides it by the number of ratings known to the profile's owner for it, so that the stationary
    point is that of objective (1).
    """
    if rule == UNIFORM and n_known > 0:
        return lam / np.float64(n_known)
    return lam


@kernel
def learning_rate_at(schedule, rate, half_life, per_pass, n_updates, n_known):
    """Learning rate of the next update of a profile, by its own clock.

    Parameters
    ----------
    schedule : int
        `CONSTANT`, `INVERSE` (rate / (1 + age / half_life)) or `EXPONENTIAL` (rate * 2**(-age / half_life)).
    rate : float64
        The profile's initial learning rate.
    half_life : float64
        Age at which the rate is half the initial one.
    per_pass : bool
        Age is counted in updates, or, when set, in passes: updates over known ratings.
    n_updates, n_known : int
        Updates made to the profile so far; ratings known for it.
    """
    if schedule == CONSTANT:
        return rate
    age = np.float64(n_updates)
    if per_pass and n_known > 0:
        age = age / np.float64(n_known)
    if schedule == INVERSE:
        return rate / (1.0 + age / half_life)
    return rate * 2.0 ** (-age / half_life)
