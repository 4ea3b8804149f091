"""The queues of a node, first in, first out: its uplink, and the processing of what arrives.

Waits are exact, by Lindley's recursion: a message starts when it is there and the one before is done. A message that
finds `limit` others in a queue, the one that is served included, is dropped.
"""

import math

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import kernel
from algorithms.distributions import sample
from netsim.state import NO_LAW

__all__ = ["leave", "processes", "serve"]


@kernel
def leave(state, node, size, now):
    """Put a message into the uplink of a node at `now`; returns when it has left, inf where the queue is full."""
    queue, limit = state.queues[node], state.leaving.shape[1]
    if queue.seconds_per_byte == 0.0:
        return now
    if limit > 0:
        place = queue.left % limit
        if queue.left >= limit and state.leaving[node, place] > now:
            return math.inf
    start = max(now, queue.uplink_free)
    end = start + size * queue.seconds_per_byte
    queue.uplink_free = end
    queue.uplink_waited += start - now
    if limit > 0:
        state.leaving[node, queue.left % limit] = end
    queue.left += 1
    return end


@kernel
def processes(state, node):
    """Whether a node takes time to process what arrives."""
    return state.queues.shape[0] > 0 and state.queues[node].service != NO_LAW


@kernel
def serve(state, node, sender_key, kind, profile, stamp, now):
    """Put a message that arrives at `now` into the queue of a node.

    The seconds of service are drawn by what names the message: sender, receiver, kind, profile and stamp.

    Returns
    -------
    float64
        When it is processed, in seconds; inf where the queue is full.
    """
    queue, limit = state.queues[node], state.finishing.shape[1]
    if limit > 0 and queue.taken >= limit and state.finishing[node, queue.taken % limit] > now:
        return math.inf
    what = combine(state.profiles[profile].key if profile >= 0 else np.uint64(0), kind)
    pair = combine(combine(sender_key, state.nodes[node].key), what)
    word = draw(state.settings[0].seed, purposes.SERVICE, pair, stamp)
    start = max(now, queue.free)
    end = start + sample(state.laws, state.pool, queue.service, word)
    queue.free = end
    queue.waited += start - now
    if limit > 0:
        state.finishing[node, queue.taken % limit] = end
    queue.taken += 1
    return end
