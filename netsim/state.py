"""The state of a running network as flat arrays, which the node behaviour reads and changes.

Rows are records, so that what one event touches lies together in memory. Indices: nodes are the users, then the
routers; profiles are the users' (profile i is user i's), then the items' (profile n_users + j is item j's). An *edge*
is a directed pair of nodes of which the first has the second in its contact list. Its *slots* are one for each item
that the router of the pair hosts, in item order (at least one); they hold the state of the receiver.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["State"]

SETTINGS = np.dtype(
    [
        ("seed", "u8"),
        ("rank", "i8"),
        ("lam", "f8"),
        ("regularization", "i8"),
        ("schedule", "i8"),
        ("half_life", "f8"),
        ("per_pass", "?"),
        ("discard_stale", "?"),
        ("attach_ratings", "?"),
        ("request_timeout", "f8"),
        ("minimum_delay", "f8"),
        ("loss", "f8"),
        ("profile_size", "i8"),  # bytes of a profile message without attached ratings
        # Bursts of loss, where `bursts`: mean seconds in the good and in the bad state, and the loss in each.
        ("bursts", "?"),
        ("mean_good", "f8"),
        ("mean_bad", "f8"),
        ("loss_good", "f8"),
        ("loss_bad", "f8"),
        ("duplication", "f8"),  # probability
        ("reordering", "f8"),  # probability that a message is held back
        ("stretch", "f8"),  # factor of path latencies, and
        ("shift", "f8"),  # seconds added to every delay: what scripts change
        ("wish_gap", "f8"),  # mean seconds between two wishes of a user
        ("wish_timeout", "f8"),  # seconds
        ("retries", "i8"),
        ("lookup_timeout", "f8"),  # seconds
        ("lookups", "i8"),  # that a user sends at one tick at most
        ("user_patience", "f8"),  # seconds; inf: contacts are not dropped
        ("router_patience", "f8"),
        ("heard_users", "?"),  # whether routers list the users that they hear of
        ("users_follow", "?"),  # whether contact lists follow the ratings: those of users,
        ("routers_follow", "?"),  # and of routers,
        ("router_cap", "i8"),  # with at most so many users; -1: all
        ("user_return", "i8"),  # KEEP, RESET or RESTORE
        ("router_return", "i8"),
        # Addresses of a researcher's own rules (`netsim.rules`); 0 where there is none.
        ("user_rule", "i8"),
        ("item_rule", "i8"),
        ("delay_rule", "i8"),
        ("loss_rule", "i8"),
    ],
    align=True,
)
NODE = np.dtype(
    [
        ("online", "?"),  # read at each message, so it stands where the row begins
        ("poisson", "?"),
        ("key", "u8"),
        ("period", "f8"),  # seconds; the mean gap of a Poisson timer
        ("phase", "f8"),  # seconds
        ("contact_start", "i8"),  # its edges are contacts[contact_start : contact_start + contact_count]
        ("contact_count", "i8"),
        ("owned_start", "i8"),  # its profiles are owned[owned_start : owned_start + owned_count]
        ("owned_count", "i8"),
        ("profiles_sent", "i8"),  # copies of its profiles that it sent, in broadcasts and replies
        ("bytes_sent", "i8"),  # of all its messages
        ("fan_out", "i8"),  # 0: all contacts
    ],
    align=True,
)
# How a node comes and goes. Apart from its row in `nodes`, since most events do not read it.
LIFE = np.dtype(
    [
        ("law", "i8"),  # row in `laws` of its sessions online; the next row is of those offline; NO_LAW: none
        ("correlation", "f8"),
        ("score_online", "f8"),  # normal score of the last session online, NaN before the first
        ("score_offline", "f8"),
        ("amplitude", "f8"),  # of the change over a day
        ("peak", "f8"),  # seconds
        ("day", "f8"),  # seconds
        # Sessions read from a trace: their ends are trace[trace_start : trace_start + trace_count] - trace_origin.
        ("trace_start", "i8"),
        ("trace_count", "i8"),
        ("trace_at", "i8"),  # number within the segment of session 1
        ("trace_origin", "f8"),  # seconds of the segment that are over at time 0
        ("trace_repeat", "?"),
        ("trace_after", "?"),  # online once the segment is over
        ("trace_online", "?"),  # whether the segment begins online
        ("first_online", "?"),  # whether session 1 is online
        ("residual", "?"),  # whether session 1 had begun before time 0
        ("up", "?"),  # what its sessions say; it is online if so and nothing holds it
        ("departed", "?"),
        ("present", "?"),  # whether it has joined
        ("was_online", "?"),  # at some time so far
        ("saved", "?"),  # whether it has written a checkpoint
        ("held_offline", "i4"),  # how many hold it
        ("held_online", "i4"),
        ("checkpoint_phase", "f8"),  # seconds
        ("checkpoint_period", "f8"),  # seconds; inf where it writes none
        ("ticked", "i8"),  # the last tick at which it was online; kept where contacts are dropped
        # Edges that lead to it: incoming[incoming_start : incoming_start + incoming_count], and those made later, of
        # which this is the first; the others follow in `next_incoming`.
        ("incoming_start", "i8"),
        ("incoming_count", "i8"),
        ("incoming_later", "i8"),
    ],
    align=True,
)
NO_LAW = -1
KEEP, RESET, RESTORE = 0, 1, 2  # what a node has when it comes back
PROFILE_ROW = np.dtype(
    [
        ("key", "u8"),
        ("node", "i8"),  # the owner
        ("offset", "i8"),  # place among the owner's profiles, and so among the slots of the owner's edges
        ("stamp", "i8"),  # emissions so far
        ("updates", "i8"),
        ("known", "i8"),  # ratings known to the owner for this profile
        ("rate", "f8"),  # initial learning rate
        ("incarnation", "i8"),  # how often it was made anew; UNBORN before its item comes
    ],
    align=True,
)
# Read at both ends. Only `disclosed` ever changes; the sender writes it.
EDGE = np.dtype(
    [
        ("base", "f8"),  # seconds: path latency and access delays, inf where no path joins the places
        ("back", "f8"),  # the same from receiver to sender
        ("receiver_key", "u8"),
        ("slot", "i8"),  # first slot
        ("sender", "i4"),
        ("receiver", "i4"),
        ("attached", "i4"),  # ratings that the user can attach: those of items hosted there
        ("disclosed", "i4"),  # how many of them he has attached so far
    ],
    align=True,
)
# Written by the receiver, all it touches at a message side by side. What a router knows of the user as a whole stands
# in the first slot of the edge.
SLOT = np.dtype(
    [
        ("value", "f8"),  # the rating, where the state is RATED
        ("deadline", "f8"),  # first slot at a router: until when a request is outstanding
        ("state", "i4"),
        ("taken", "i4"),  # stamp last taken: of the item's profile, or in the first slot at a router of the user's
        ("attempt", "i4"),  # first slot at a router: requests sent
        # First slot at a router: the user's rating count last seen. Slot of a user: where what he knows of the item has
        # moved to with the item, plus 1; 0 where it has not.
        ("count", "i4"),
    ],
    align=True,
)
# States of a slot: what the receiver knows of the rating. One that may have been changed is used and asked for again.
UNASKED, RATED, NOT_RATED, CONFIRM = 0, 1, 2, 3
# A user's count, as his profiles carry it: his ratings, and as many times this as he has changed one.
CHANGE = 1 << 16
UNBORN = -1  # incarnation of a profile whose item has not come yet

# What has left the user's machine, for each of his own ratings: how many routers he sent it to, and the last two. A
# router that has lost an item never hosts it again, but a late request of its may still be answered.
DISCLOSURE = np.dtype([("routers", "i4"), ("last", "i4"), ("before_last", "i4")], align=True)

# An item named in a request, and the user's answer to it in the reply.
ANSWER_ROW = np.dtype([("offset", "i8"), ("state", "i8"), ("value", "f8")], align=True)

# What the path of an edge does beside delaying, there and back: probability of loss, transmission in seconds per byte.
PATH = np.dtype([("loss", "f8"), ("loss_back", "f8"), ("per_byte", "f8"), ("per_byte_back", "f8")], align=True)

# The chain of good and bad states of an ordered pair of nodes, as far as it has been followed.
CHANNEL = np.dtype([("until", "f8"), ("sojourn", "i4"), ("bad", "?")], align=True)
UNSEEN = -1  # sojourn of a channel that nothing was sent over yet

# The two queues of a node, first in, first out: messages that leave over its uplink, and messages that it processes.
QUEUE = np.dtype(
    [
        ("service", "i8"),  # row in `laws` of the seconds that it processes a message; NO_LAW: none
        ("free", "f8"),  # when all that has arrived so far is processed
        ("busy", "i8"),  # messages that went in since it was empty last
        ("taken", "i8"),  # messages that went into the queue, in all
        ("waited", "f8"),
        ("seconds_per_byte", "f8"),  # of its uplink; 0 where that takes no time
        ("uplink_free", "f8"),  # when all that is to leave so far has left
        ("uplink_busy", "i8"),  # messages that went in since it was empty last
        ("left", "i8"),  # messages that went into the uplink's queue, in all
        ("uplink_waited", "f8"),  # seconds that they waited, in all
    ],
    align=True,
)

# How a user finds the router of an item that he rated: the edge to it, the one to the directory, the edge in his list.
FIND = np.dtype([("asked", "f8"), ("edge", "i4"), ("directory", "i4"), ("listed", "i8")], align=True)

# What users may wish for: pairs whose rating is known to the experimenter, grouped by user.
TARGET = np.dtype([("rating", "f8"), ("item", "i4"), ("edge", "i4")], align=True)
# A wish that is open. A user has room for WISHES of them; one more is refused.
WISH_STATE = np.dtype(
    [("number", "i8"), ("target", "i8"), ("asked", "f8"), ("attempt", "i4"), ("is_open", "?")], align=True
)
WISHES = 4
ATTEMPTS = 16  # the stamp of a query is the number of the wish times this, plus the attempt
# How a wish ended.
WISH_ROW = np.dtype(
    [
        ("asked", "f8"),
        ("finished", "f8"),
        ("predicted", "f8"),
        ("rating", "f8"),
        ("user", "i4"),
        ("number", "i4"),
        ("item", "i4"),
        ("attempts", "i4"),
        ("outcome", "i8"),
    ],
    align=True,
)
NOTHING, OPEN, SERVED, TIMED_OUT, REFUSED = -1, 0, 1, 2, 3

# What a checkpoint holds of a profile beside its numbers.
SAVED = np.dtype([("updates", "i8"), ("known", "i8")], align=True)

# The world's distributions, by their row in `laws`.
JITTER, HELD_BACK, INITIAL, USER_ONLINE, USER_OFFLINE, ROUTER_ONLINE, ROUTER_OFFLINE = range(7)
USER_SERVICE, ROUTER_SERVICE = 7, 8


class State(NamedTuple):
    """The arrays of a running network, as `netsim.behaviour` takes them.

    Attributes
    ----------
    settings : SETTINGS, shape (1,)
    laws, pool : arrays
        Distributions, as `compile_distributions` gives them.
    values : float64, shape (n_profiles, rank)
        The profiles.
    profiles : PROFILE_ROW, shape (n_profiles,)
    nodes : NODE, shape (n_nodes,)
    owned : int64, shape (n_profiles,)
        Profiles grouped by owner.
    contacts : int64
        Edges grouped by sender, ascending by receiver.
    edges : EDGE, shape (n_edges,)
    slots : SLOT, shape (n_slots,)
    own_start, own_item, own_value : arrays
        Each user's own ratings, in the form of `Ratings.by_user`, with those that are still to come.
    own_known : bool, shape (n_ratings,)
        Which of them have come.
    own_revision : int64, shape (n_ratings,)
        The user's count when each was given or changed last; 0 from the start.
    own_count : int64, shape (n_users,)
        The count that each user's profiles carry.
    disclosures : DISCLOSURE, shape (n_ratings,)
        How far each own rating has spread.
    accounts : int64, shape (kinds of message, fates, 2)
        Messages and bytes by kind and fate.
    updates : int64, shape (2,)
        Updates of user profiles and of item profiles so far.
    life : LIFE, shape (n_nodes,)
    trace : float64
        Ends of sessions of traces, in seconds.
    incoming : int64
        Edges there from the start, grouped by receiver.
    next_incoming : int64, shape (n_edges,)
        Of the edges made later, the next one that leads to the same receiver, or -1.
    paths : PATH, shape (n_edges,); or empty, where no path loses anything or takes time for each byte
    channels : CHANNEL, shape (2 n_edges,); or empty, where loss has no bursts
        Two for each edge: there, and back.
    queues : QUEUE, shape (n_nodes,); or empty, where nothing queues
    leaving, finishing : float64, shape (n_nodes, limit)
        Times at which the last messages leave a node's uplink, and are processed by it, in the place of their number
        since the queue was empty, modulo its limit; limit 0: none.
    target_start : int64, shape (n_users + 1,)
    targets : TARGET
        What each user may wish for; empty, where nobody asks for recommendations.
    wishes : WISH_STATE, shape (WISHES n_users,); or empty
    finds : FIND, shape (n_ratings,); or empty, where users do not look for routers
    heard : float64, shape (n_edges,); or empty, where contacts are not dropped
        When the sender of an edge has last heard of its receiver, in seconds.
    reverse : int64, shape (n_edges,); or empty
        The edge between the same nodes in the other direction; -1 where there is none.
    emitted : float64, shape (n_slots,); or empty, where nothing measures ages
        Time in seconds at which the profile that was taken last was sent; NaN before the first.
    saved_values : float64, shape (n_profiles, rank); or empty, where nobody writes checkpoints
    saved_profiles : SAVED, shape (n_profiles,)
    saved_slots : SLOT, shape (n_slots,)
        What each node's last checkpoint holds.
    """

    settings: np.ndarray
    laws: np.ndarray
    pool: np.ndarray
    values: np.ndarray
    profiles: np.ndarray
    nodes: np.ndarray
    owned: np.ndarray
    contacts: np.ndarray
    edges: np.ndarray
    slots: np.ndarray
    own_start: np.ndarray
    own_item: np.ndarray
    own_value: np.ndarray
    own_known: np.ndarray
    own_revision: np.ndarray
    own_count: np.ndarray
    disclosures: np.ndarray
    accounts: np.ndarray
    updates: np.ndarray
    life: np.ndarray
    trace: np.ndarray
    incoming: np.ndarray
    next_incoming: np.ndarray
    paths: np.ndarray
    channels: np.ndarray
    queues: np.ndarray
    leaving: np.ndarray
    finishing: np.ndarray
    target_start: np.ndarray
    targets: np.ndarray
    wishes: np.ndarray
    finds: np.ndarray
    heard: np.ndarray
    reverse: np.ndarray
    emitted: np.ndarray
    saved_values: np.ndarray
    saved_profiles: np.ndarray
    saved_slots: np.ndarray
