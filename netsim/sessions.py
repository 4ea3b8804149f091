"""How a node comes and goes: its sessions, what it has when it comes back, and its checkpoints.

Called by every engine. Session n of a node, from 1, ends at a time that follows from the seed or a trace alone.
"""

import math
from functools import partial

import numpy as np

from algorithms import purposes
from algorithms.chance import draw, further, standard_normal, uniform
from algorithms.compilation import inner_kernel, kernel
from algorithms.distributions import sample, sample_covering, score_of
from algorithms.learning import fill_profile
from netsim.prefetch import prefetch
from netsim.state import INITIAL, KEEP, NO_LAW, RESET, UNASKED, UNBORN

__all__ = [
    "begins_online",
    "checkpoint",
    "checkpoint_time",
    "first_online",
    "has_sessions",
    "incarnate",
    "join",
    "reset",
    "session_end",
    "settle",
    "toggle",
]

# How many edges ahead the memory of a checkpoint is asked for.
AHEAD = 8


@kernel
def first_online(seed, key, mean_online, mean_offline):
    """Whether a node starts online: the stationary state, drawn with session 0."""
    word = further(draw(seed, purposes.SESSION, key, 0), 1)
    return uniform(word) * (mean_online + mean_offline) < mean_online


@kernel
def has_sessions(state, node):
    """Whether a node comes and goes by itself."""
    return state.life[node].law != NO_LAW or state.life[node].trace_count > 0


@kernel
def begins_online(state, node, session):
    """Whether session number `session` (from 1) of a node is one online."""
    life = state.life[node]
    if life.trace_count == 0:
        return life.first_online == (session % 2 == 1)
    position = life.trace_at + session - 1
    if position >= life.trace_count and not life.trace_repeat:
        return life.trace_after != 0
    return life.trace_online == (position % life.trace_count % 2 == 0)


@kernel
def toggle(state, node, session, now):
    """Begin session number `session` of a node at `now`; returns when it ends, in seconds."""
    state.life[node].up = begins_online(state, node, session)
    settle(state, node)
    return session_end(state, node, session, now)


@partial(kernel, inline=False)
def settle(state, node):
    """Take a node up or down as its sessions and what holds it say; coming back, it may have to start anew."""
    life, row = state.life[node], state.nodes[node]
    online = _is_online(life)
    if online and not row.online and life.was_online:
        is_user = node < state.own_start.shape[0] - 1
        policy = state.settings[0].user_return if is_user else state.settings[0].router_return
        if policy != KEEP:
            if policy == RESET or not life.saved:
                reset(state, node)
            else:
                _restore(state, node)
    row.online = online
    life.was_online = life.was_online or online


@inner_kernel
def _is_online(life):
    """Whether a node is online, by its sessions and what holds it."""
    return life.present and not life.departed and life.held_offline == 0 and (life.up or life.held_online > 0)


@kernel
def join(state, node):
    """Let a node join the network: from now on its sessions and what holds it decide whether it is online."""
    if not state.life[node].present:
        state.life[node].present = True
        state.nodes[node].online = _is_online(state.life[node])
        state.life[node].was_online = state.nodes[node].online


@partial(kernel, inline=False)
def session_end(state, node, session, start):
    """Time in seconds at which session number `session` (from 1) of a node, begun at `start`, ends."""
    life = state.life[node]
    if life.trace_count > 0:
        return _trace_time(state, life, session)
    seed, key = state.settings[0].seed, state.nodes[node].key
    up = begins_online(state, node, session)
    law = life.law if up else life.law + 1
    word = draw(seed, purposes.SESSION, key, session)
    if session == 1 and life.residual:
        # A fixed time falls anywhere into the session that covers it.
        covering = sample_covering(state.laws, state.pool, law, word)
        length = uniform(draw(seed, purposes.RESIDUAL, key, 0)) * covering
        if life.correlation > 0.0:
            _remember(life, up, score_of(state.laws, state.pool, law, covering))
    else:
        if life.correlation > 0.0:
            word = _correlated(life, up, word)
        length = sample(state.laws, state.pool, law, word)
    if life.amplitude > 0.0:
        return _modulated_end(life, up, start, length)
    return start + length


@inner_kernel
def _trace_time(state, life, session):
    """End of a session as the trace has it; computed from the whole, never accumulated."""
    position = life.trace_at + session - 1
    if position >= life.trace_count and not life.trace_repeat:
        return math.inf
    round_number = position // life.trace_count
    length = state.trace[life.trace_start + life.trace_count - 1]
    end = state.trace[life.trace_start + position % life.trace_count]
    return (end - life.trace_origin) + np.float64(round_number) * length


@inner_kernel
def _remember(life, up, score):
    if up:
        life.score_online = score
    else:
        life.score_offline = score


@partial(inner_kernel, inline=False)
def _correlated(life, up, word):
    """Word whose normal score follows that of the last session of the same kind: autoregression of order 1."""
    fresh = standard_normal(word)
    last = life.score_online if up else life.score_offline
    score = fresh
    if not math.isnan(last):
        rho = life.correlation
        score = rho * last + math.sqrt(1.0 - rho * rho) * fresh
    _remember(life, up, score)
    u = 0.5 * math.erfc(-score / math.sqrt(2.0))
    return np.uint64(min(max(u, 0.0), 1.0 - 2.0**-52) * 2.0**52) << np.uint64(12)


@partial(inner_kernel, inline=False)
def _modulated_end(life, up, start, length):
    """Time at which the rate, integrated from `start`, has come to `length`; by bisection.

    The rate is 1 + c cos(2 pi (t - peak) / day), with c the amplitude for a session offline, minus it for one online.
    """
    c = -life.amplitude if up else life.amplitude
    turn = 2.0 * math.pi / life.day
    begun = math.sin(turn * (start - life.peak))
    low, high = start + length / (1.0 + life.amplitude), start + length / (1.0 - life.amplitude)
    for _ in range(80):
        middle = low + 0.5 * (high - low)
        if middle <= low or middle >= high:
            break
        passed = (middle - start) + c / turn * (math.sin(turn * (middle - life.peak)) - begun)
        if passed < length:
            low = middle
        else:
            high = middle
    return high


@partial(kernel, inline=False)
def reset(state, node):
    """Clear what a node has learned: profiles, stamps taken, update counts, and a router's known ratings.

    A user's own ratings, the counters of stamps and of requests stay: what they number must not come again.
    """
    is_user = node < state.own_start.shape[0] - 1
    row = state.nodes[node]
    for n in range(row.owned_count):
        profile = state.owned[row.owned_start + n]
        incarnate(state, profile)
        if not is_user:
            state.profiles[profile].known = 0
    life = state.life[node]
    for n in range(life.incoming_count):
        _clear_slots(state, state.incoming[life.incoming_start + n], is_user)
    edge = life.incoming_later
    while edge >= 0:
        _clear_slots(state, edge, is_user)
        edge = state.next_incoming[edge]


@inner_kernel
def _clear_slots(state, edge, is_user):
    """Let the receiver of an edge know nothing of what has come over it."""
    first = state.edges[edge].slot
    for n in range(_slots_of(state, edge)):
        slot = state.slots[first + n]
        slot.taken = 0
        if not is_user:
            slot.state = UNASKED
            slot.value = 0.0
            slot.count = 0
            slot.deadline = -math.inf
        if state.emitted.shape[0] > 0:
            state.emitted[first + n] = math.nan


@kernel
def incarnate(state, profile):
    """Make a profile anew, with draws of its own."""
    own = state.profiles[profile]
    if own.incarnation == UNBORN:
        return
    own.incarnation += 1
    own.updates = 0
    fill_profile(
        state.values[profile], state.laws, state.pool, INITIAL, state.settings[0].seed, own.key, own.incarnation
    )


@kernel
def checkpoint_time(state, node, number):
    """Time in seconds of checkpoint number `number` (from 0) of a node."""
    life = state.life[node]
    return life.checkpoint_phase + np.float64(number) * life.checkpoint_period


@partial(kernel, inline=False)
def checkpoint(state, node):
    """Let an online node write down all that a reset would clear."""
    if not state.nodes[node].online:
        return
    row = state.nodes[node]
    state.life[node].saved = True
    for n in range(row.owned_count):
        profile = state.owned[row.owned_start + n]
        state.saved_profiles[profile].updates = state.profiles[profile].updates
        state.saved_profiles[profile].known = state.profiles[profile].known
        for k in range(state.values.shape[1]):
            state.saved_values[profile, k] = state.values[profile, k]
    life = state.life[node]
    for n in range(life.incoming_count):
        if n + 2 * AHEAD < life.incoming_count:  # edges to a node lie apart from each other, and so do their slots
            prefetch(state.edges, state.incoming[life.incoming_start + n + 2 * AHEAD])
        if n + AHEAD < life.incoming_count:
            first = state.edges[state.incoming[life.incoming_start + n + AHEAD]].slot
            prefetch(state.slots, first)
            prefetch(state.saved_slots, first)
        _save_slots(state, state.incoming[life.incoming_start + n])
    edge = life.incoming_later
    while edge >= 0:
        _save_slots(state, edge)
        edge = state.next_incoming[edge]


@inner_kernel
def _save_slots(state, edge):
    """Let the receiver of an edge write down what has come over it."""
    first = state.edges[edge].slot
    for n in range(_slots_of(state, edge)):
        state.saved_slots[first + n] = state.slots[first + n]


@partial(inner_kernel, inline=False)
def _restore(state, node):
    """Give a node what its last checkpoint holds; requests that it waited for are forgotten."""
    is_user = node < state.own_start.shape[0] - 1
    row = state.nodes[node]
    for n in range(row.owned_count):
        profile = state.owned[row.owned_start + n]
        state.profiles[profile].updates = state.saved_profiles[profile].updates
        if not is_user:
            state.profiles[profile].known = state.saved_profiles[profile].known
        for k in range(state.values.shape[1]):
            state.values[profile, k] = state.saved_values[profile, k]
    life = state.life[node]
    for n in range(life.incoming_count):
        _restore_slots(state, state.incoming[life.incoming_start + n], is_user)
    edge = life.incoming_later
    while edge >= 0:
        _restore_slots(state, edge, is_user)
        edge = state.next_incoming[edge]


@inner_kernel
def _restore_slots(state, edge, is_user):
    """Let the receiver of an edge know what it wrote down last."""
    first = state.edges[edge].slot
    for n in range(_slots_of(state, edge)):
        slot, saved = state.slots[first + n], state.saved_slots[first + n]
        if saved.taken != slot.taken and state.emitted.shape[0] > 0:
            state.emitted[first + n] = math.nan
        slot.taken = saved.taken
        if not is_user:
            slot.state = saved.state
            slot.value = saved.value
            slot.count = saved.count
            slot.deadline = -math.inf


@inner_kernel
def _slots_of(state, edge):
    """Number of slots of an edge: one for each item that its router hosts, at least one."""
    n_users = state.own_start.shape[0] - 1
    link = state.edges[edge]
    if link.sender >= n_users and link.receiver >= n_users:
        return np.int64(1)
    router = link.receiver if link.receiver >= n_users else link.sender
    return max(np.int64(1), state.nodes[router].owned_count)
