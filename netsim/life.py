"""The rows of `State.life`: how each node of a world comes and goes, as the kernels read it."""

import math
from typing import Any

import numpy as np

from algorithms import purposes
from algorithms.chance import draw, uniform
from algorithms.distributions import Constant, Distribution, Exponential
from netsim.availability import AvailabilityTrace, end_times
from netsim.churn import Checkpoint, OnOff, Sessions
from netsim.sessions import first_online
from netsim.state import KEEP, LIFE, NO_LAW, RESET, RESTORE, ROUTER_ONLINE, USER_ONLINE
from netsim.world import World

__all__ = ["build_life", "return_policy", "session_lengths"]


def return_policy(what: Any) -> int:
    """What a node has when it comes back, as the kernels read it: KEEP, RESET or RESTORE."""
    return RESTORE if isinstance(what, Checkpoint) else {"keep": KEEP, "reset": RESET}[what]


def session_lengths(churn: Any) -> tuple[Distribution, Distribution]:
    """Distributions of sessions online and offline, in seconds; of nothing that is drawn, 1 second."""
    if isinstance(churn, OnOff):
        return Exponential(churn.mean_online), Exponential(churn.mean_offline)
    if isinstance(churn, Sessions):
        return churn.online, churn.offline  # type: ignore[return-value]
    return Constant(1.0), Constant(1.0)


def build_life(world: World, nodes: np.ndarray, n_users: int, seed: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """How each node comes and goes; sets who is online at time 0.

    Parameters
    ----------
    world : World
    nodes : NODE, shape (n_nodes,)
        Keys are read, `online` is set.
    n_users : int
    seed : uint64

    Returns
    -------
    life : LIFE, shape (n_nodes,)
    trace : float64
        Ends of sessions of all segments of traces, in seconds.
    """
    life = np.zeros(len(nodes), dtype=LIFE)
    life["law"], life["incoming_later"], life["checkpoint_period"] = NO_LAW, -1, np.inf
    life["ticked"] = -1
    life["score_online"] = life["score_offline"] = np.nan
    life["up"] = life["first_online"] = life["present"] = True
    ends: list[np.ndarray] = []
    for part, churn, what, law in (
        (slice(0, n_users), world.user_churn, world.user_return, USER_ONLINE),
        (slice(n_users, None), world.router_churn, world.router_return, ROUTER_ONLINE),
    ):
        rows, keys = life[part], nodes["key"][part]
        if isinstance(churn, AvailabilityTrace):
            _follow(rows, keys, churn, seed, ends)
        elif churn is not None:
            _alternate(rows, keys, churn, seed, law)
        if isinstance(what, Checkpoint):
            rows["checkpoint_period"] = what.interval
            words = [np.uint64(draw(seed, purposes.CHECKPOINT_PHASE, key, 0)) for key in keys]
            rows["checkpoint_phase"] = [uniform(word) * what.interval for word in words]
    life["up"] = life["first_online"]
    nodes["online"] = life["was_online"] = life["up"]
    return life, np.concatenate(ends) if ends else np.zeros(0)


def _alternate(rows: np.ndarray, keys: np.ndarray, churn: OnOff | Sessions, seed: np.uint64, law: int) -> None:
    """Sessions that are drawn."""
    online, offline = session_lengths(churn)
    rows["law"] = law
    start = churn.start if isinstance(churn, Sessions) else "stationary"
    if start == "stationary":
        rows["first_online"] = [first_online(seed, key, online.expectation(), offline.expectation()) for key in keys]
        # What is left of an exponential session is distributed as the whole.
        first = np.where(rows["first_online"], isinstance(online, Exponential), isinstance(offline, Exponential))
        rows["residual"] = ~first
    else:
        rows["first_online"] = start == "online"
    if isinstance(churn, Sessions):
        rows["correlation"] = churn.correlation
        if churn.correlation > 0:
            rows["residual"] = start == "stationary"  # the next session depends on the whole of the first
        if churn.diurnal is not None:
            rows["amplitude"], rows["peak"] = churn.diurnal.amplitude, churn.diurnal.peak
            rows["day"] = churn.diurnal.day


def _follow(
    rows: np.ndarray, keys: np.ndarray, churn: AvailabilityTrace, seed: np.uint64, ends: list[np.ndarray]
) -> None:
    """Sessions that are read: each node takes a segment by chance and starts somewhere in it."""
    place = sum(len(each) for each in ends)
    times = [end_times(segment) for segment in churn.segments]
    starts = place + np.cumsum([0] + [len(each) for each in times])
    ends += times
    totals = np.cumsum([each[-1] for each in times])
    for row, key in zip(rows, keys, strict=True):
        word = np.uint64(draw(seed, purposes.TRACE_SEGMENT, key, 0))
        if churn.offset == "random":  # a moment of all that was recorded
            which = int(np.searchsorted(totals, uniform(word) * totals[-1], side="right"))
        else:
            which = int(uniform(word) * len(times))
        row["trace_start"], row["trace_count"] = starts[which], len(times[which])
        if churn.offset == "random":
            length = times[which][-1]
            within = uniform(np.uint64(draw(seed, purposes.TRACE_SEGMENT, key, 1))) * length
            row["trace_origin"] = math.floor(within * 1000.0) / 1000.0
        row["trace_at"] = np.searchsorted(times[which], row["trace_origin"], side="right")
        row["trace_repeat"], row["trace_after"] = churn.after == "repeat", churn.after == "online"
        row["trace_online"] = churn.segments[which].online
        row["first_online"] = row["trace_online"] == (row["trace_at"] % 2 == 0)
