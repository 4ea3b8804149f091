"""The queues of a node, first in, first out: its uplink, and the processing of what arrives.

Waits are exact, by Lindley's recursion: a message starts when it is there and the one before is done. A message that
finds `limit` others in a queue, the one that is served included, is dropped.
"""

import math

import numpy as np

from algorithms import purposes
from algorithms.chance import combine, draw
from algorithms.compilation import inner_kernel, kernel
from algorithms.distributions import is_constant, sample
from netsim.messages import goes_back
from netsim.state import NO_LAW

__all__ = ["leave", "processes", "serve"]


@kernel
def leave(state, node, size, now):
    """Put a message into the uplink of a node at `now`; returns when it has left, inf where the queue is full."""
    queue, limit = state.queues[node], state.leaving.shape[1]
    if queue.seconds_per_byte == 0.0:
        return now
    if queue.uplink_free <= now:  # nothing is before it
        queue.uplink_busy = 0
    elif limit > 0 and queue.uplink_busy >= limit and state.leaving[node, queue.uplink_busy % limit] > now:
        return math.inf
    start = max(now, queue.uplink_free)
    end = start + size * queue.seconds_per_byte
    queue.uplink_free = end
    queue.uplink_waited += start - now
    if limit > 0:
        state.leaving[node, queue.uplink_busy % limit] = end
    queue.uplink_busy += 1
    queue.left += 1
    return end


@kernel
def processes(state, node):
    """Whether a node takes time to process what arrives."""
    return state.queues.shape[0] > 0 and state.queues[node].service != NO_LAW


@kernel
def serve(state, node, edge, kind, profile, stamp, now):
    """Put a message that arrives over an edge, or back over it, at `now` into the queue of a node.

    Returns
    -------
    float64
        When it is processed, in seconds; inf where the queue is full.
    """
    queue, limit = state.queues[node], state.finishing.shape[1]
    if queue.free <= now:  # nothing is before it
        queue.busy = 0
    elif limit > 0 and queue.busy >= limit and state.finishing[node, queue.busy % limit] > now:
        return math.inf
    start = max(now, queue.free)
    end = start + _service(state, node, edge, kind, profile, stamp)
    queue.free = end
    queue.waited += start - now
    if limit > 0:
        state.finishing[node, queue.busy % limit] = end
    queue.busy += 1
    queue.taken += 1
    return end


@inner_kernel
def _service(state, node, edge, kind, profile, stamp):
    """Seconds that a message is processed, drawn by what names it: sender, receiver, kind, profile and stamp."""
    law = state.queues[node].service
    if is_constant(state.laws, law):
        return sample(state.laws, state.pool, law, np.uint64(0))  # no chance, so no keys have to be fetched
    link = state.edges[edge]
    sender = link.receiver if goes_back(kind) else link.sender
    what = combine(state.profiles[profile].key if profile >= 0 else np.uint64(0), kind)
    pair = combine(combine(state.nodes[sender].key, state.nodes[node].key), what)
    return sample(state.laws, state.pool, law, draw(state.settings[0].seed, purposes.SERVICE, pair, stamp))
