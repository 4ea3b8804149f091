"""What the network does to a message: it delays it, loses it, holds it back, doubles it.

All of it is decided at sending, from words of chance that name the message.
"""

import math
from functools import partial

from algorithms import purposes
from algorithms.chance import combine, draw, further, uniform
from algorithms.compilation import inner_kernel, kernel
from algorithms.distributions import sample
from netsim.accounting import account
from netsim.messages import IN_FLIGHT, LOST_LINK, LOST_QUEUE, SENT, UNREACHABLE
from netsim.queueing import leave
from netsim.rules import call_delay, call_loss
from netsim.state import HELD_BACK, JITTER, UNSEEN

__all__ = ["cross", "of_copy", "send"]

# Further words of a message's draws; small numbers are left to distributions that need several words.
_PATH_LOSS, _COPY, _HOLD_BACK, _EXTRA, _ANSWER_TO_COPY = 1001, 1002, 1003, 1004, 2001


@kernel
def of_copy(word, copy):
    """Word of chance for the answer to a message, or to the second copy of it."""
    return further(word, _ANSWER_TO_COPY) if copy > 0 else word


@kernel
def cross(state, edge, back, size, loss_word, delay_word, now):
    """Send a message over an edge, or back over it, at `now`.

    Parameters
    ----------
    edge : int
    back : bool
        Whether it goes from the edge's receiver to its sender.
    size : int
        Bytes.
    loss_word, delay_word : uint64
    now : float64
        Seconds. Where the sender has an uplink, the message leaves later, after those before it.

    Returns
    -------
    fate : int
        IN_FLIGHT, LOST_LINK, LOST_QUEUE or UNREACHABLE.
    arrival : float64
        Time of arrival in seconds; inf where it never arrives.
    copy_arrival : float64
        Time of arrival of a second copy that the network makes; inf where it makes none.
    """
    base = state.edges[edge].back if back else state.edges[edge].base
    if base == math.inf:
        return UNREACHABLE, math.inf, math.inf
    left = now
    if state.queues.shape[0] > 0:
        left = leave(state, state.edges[edge].receiver if back else state.edges[edge].sender, size, now)
        if left == math.inf:
            return LOST_QUEUE, math.inf, math.inf
    if _is_lost(state, edge, back, base, loss_word, now):
        return LOST_LINK, math.inf, math.inf
    delay = _delay(state, edge, back, base, size, delay_word, now)
    if delay == math.inf:
        return UNREACHABLE, math.inf, math.inf
    copy_arrival = math.inf
    duplication = state.settings[0].duplication
    if duplication > 0.0 and uniform(further(loss_word, _COPY)) < duplication:
        copy_arrival = _second_arrival(state, edge, back, base, size, delay_word, left)
    return IN_FLIGHT, left + delay, copy_arrival


@kernel
def send(state, kind, edge, back, size, loss_word, delay_word, now):
    """Send a message of some kind over an edge, or back over it, and account for it.

    Parameters are those of `cross`, and so is what is returned.
    """
    fate, arrival, copy_arrival = cross(state, edge, back, size, loss_word, delay_word, now)
    account(state, kind, SENT, size)
    if fate != IN_FLIGHT:
        account(state, kind, fate, size)
    if copy_arrival != math.inf:
        account(state, kind, SENT, size)
    if fate != LOST_QUEUE:  # what the queue of the own uplink drops never leaves the machine
        link = state.edges[edge]
        state.nodes[link.receiver if back else link.sender].bytes_sent += size
    return fate, arrival, copy_arrival


@inner_kernel
def _is_lost(state, edge, back, base, word, now):
    s = state.settings[0]
    if s.loss_rule != 0:
        lost = call_loss(s.loss_rule, word, base, now) != 0
    elif s.bursts:
        lost = uniform(word) < _burst_loss(state, edge, back, now)
    else:
        lost = uniform(word) < s.loss
    if not lost and state.paths.shape[0] > 0:
        path = state.paths[edge]
        lost = uniform(further(word, _PATH_LOSS)) < (path.loss_back if back else path.loss)
    return lost


@inner_kernel
def _delay(state, edge, back, base, size, word, now):
    """Seconds that a message takes; formed first, then added to the time in one addition."""
    s = state.settings[0]
    if s.delay_rule == 0:
        drawn = sample(state.laws, state.pool, JITTER, word)
    else:
        drawn = call_delay(s.delay_rule, word, base, now)
    if state.paths.shape[0] > 0:
        path = state.paths[edge]
        drawn += size * (path.per_byte_back if back else path.per_byte)
    if s.reordering > 0.0 and uniform(further(word, _HOLD_BACK)) < s.reordering:
        drawn += _extra_delay(state, word)
    return max(s.minimum_delay, (base * s.stretch + s.shift) + drawn)


@partial(inner_kernel, inline=False)
def _extra_delay(state, word):
    """Extra seconds of a message that is held back."""
    return sample(state.laws, state.pool, HELD_BACK, further(word, _EXTRA))


@partial(inner_kernel, inline=False)
def _second_arrival(state, edge, back, base, size, delay_word, now):
    """When the second copy of a message arrives, with a delay of its own."""
    return now + _delay(state, edge, back, base, size, further(delay_word, _COPY), now)


@inner_kernel
def _burst_loss(state, edge, back, now):
    """Probability of loss at `now` on the way from one node to the other: Gilbert-Elliott in continuous time."""
    channel = state.channels[2 * edge + 1] if back else state.channels[2 * edge]
    if channel.sojourn == UNSEEN or channel.until <= now:
        _follow(state, edge, back, now)
    return state.settings[0].loss_bad if channel.bad else state.settings[0].loss_good


@partial(kernel, inline=False)
def _follow(state, edge, back, now):
    """Follow the chain of an ordered pair up to `now`.

    It is a function of the pair and the time alone, stationary at time 0. It is followed when something is sent; who
    sends keeps how far.
    """
    s, link = state.settings[0], state.edges[edge]
    sender_key = state.nodes[link.sender].key
    pair = combine(link.receiver_key, sender_key) if back else combine(sender_key, link.receiver_key)
    channel = state.channels[2 * edge + 1] if back else state.channels[2 * edge]
    if channel.sojourn == UNSEEN:
        word = draw(s.seed, purposes.BURST, pair, 0)
        channel.bad = uniform(further(word, 1)) * (s.mean_good + s.mean_bad) < s.mean_bad
        channel.sojourn = 0
        channel.until = _sojourn(s, channel.bad, word)
    while channel.until <= now:
        channel.bad = not channel.bad
        channel.sojourn += 1
        channel.until += _sojourn(s, channel.bad, draw(s.seed, purposes.BURST, pair, channel.sojourn))


@inner_kernel
def _sojourn(s, bad, word):
    return -(s.mean_bad if bad else s.mean_good) * math.log(uniform(word))
