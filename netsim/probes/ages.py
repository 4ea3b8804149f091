"""How old the profiles are that nodes took last."""

import math

import numpy as np

from algorithms.compilation import inner_kernel, kernel
from netsim.state import CONFIRM, RATED, State

__all__ = ["profile_ages"]


def profile_ages(state: State, now: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Ages in seconds of the profiles that users and routers took last, for each receiver and profile.

    A pair counts once the receiver has taken the profile and knows a rating for it. Receivers that have departed are
    left out: they use nothing any more.

    Parameters
    ----------
    state : State
    now : float
        Simulated seconds.

    Returns
    -------
    at_users : float64, shape (n,)
        Ages of item profiles, in the order of edges and slots. Where an item has moved, the profile sent last counts,
        whichever router it came from; the order is then by user and item.
    at_routers : float64, shape (m,)
        Ages of user profiles, in the order of edges. None instead of both where the run does not measure ages.
    """
    if len(state.emitted) != len(state.slots):
        return None
    n_users = len(state.own_start) - 1
    at_users, at_routers = np.empty(len(state.slots)), np.empty(len(state.edges))
    may_have_moved = bool(state.life["departed"][n_users:].any())
    pair = np.empty(len(state.slots) if may_have_moved else 0, dtype=np.int64)
    n_at_users, n_at_routers = _collect(state, at_users, pair, at_routers)
    sent = at_users[:n_at_users]
    if may_have_moved:
        sent = _last_of_each(pair[:n_at_users], sent)
    return now - sent, now - at_routers[:n_at_routers]


@kernel
def _collect(state: State, at_users: np.ndarray, pair: np.ndarray, at_routers: np.ndarray) -> tuple[int, int]:
    """Times of sending of what was taken last, in seconds; returns how many at users and how many at routers.

    `pair` takes a number for each user and item; where its length is 0, nobody asks for it.
    """
    n_users = state.own_start.shape[0] - 1
    n_at_users, n_at_routers = 0, 0
    for edge in range(state.edges.shape[0]):
        link = state.edges[edge]
        if state.life[link.receiver].departed or (link.sender >= n_users and link.receiver >= n_users):
            continue
        if link.receiver >= n_users:
            # What a router took of the user as a whole stands in the first slot.
            sent = state.emitted[link.slot]
            if not math.isnan(sent) and _knows_a_rating(state, link.slot, state.nodes[link.receiver].owned_count):
                at_routers[n_at_routers] = sent
                n_at_routers += 1
            continue
        host = state.nodes[link.sender]
        for offset in range(host.owned_count):
            sent = state.emitted[link.slot + offset]
            if math.isnan(sent) or state.slots[link.slot + offset].state not in (RATED, CONFIRM):
                continue
            at_users[n_at_users] = sent
            if pair.shape[0] > 0:
                profile = state.owned[host.owned_start + offset]
                pair[n_at_users] = np.int64(link.receiver) * state.profiles.shape[0] + profile
            n_at_users += 1
    return n_at_users, n_at_routers


@inner_kernel
def _knows_a_rating(state: State, slot: int, n_items: int) -> bool:
    offset = 0
    while offset < n_items and state.slots[slot + offset].state not in (RATED, CONFIRM):
        offset += 1
    return offset < n_items


def _last_of_each(pair: np.ndarray, sent: np.ndarray) -> np.ndarray:
    """Latest time of each pair; float64, in the order of the pairs' numbers."""
    order = np.lexsort((sent, pair))
    pair = pair[order]
    is_last = np.append(pair[1:] != pair[:-1], True)[: len(pair)]
    last: np.ndarray = sent[order][is_last]
    return last
