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
        ("key", "u8"),
        ("period", "f8"),  # seconds; the mean gap of a Poisson timer
        ("phase", "f8"),  # seconds
        ("mean_online", "f8"),  # seconds; inf where the node has no churn
        ("mean_offline", "f8"),
        ("contact_start", "i8"),  # its edges are contacts[contact_start : contact_start + contact_count]
        ("contact_count", "i8"),
        ("owned_start", "i8"),  # its profiles are owned[owned_start : owned_start + owned_count]
        ("owned_count", "i8"),
        ("profiles_sent", "i8"),  # copies of its profiles that it sent, in broadcasts and replies
        ("bytes_sent", "i8"),  # of all its messages
        ("fan_out", "i8"),  # 0: all contacts
        ("poisson", "?"),
        ("online", "?"),
    ],
    align=True,
)
PROFILE_ROW = np.dtype(
    [
        ("key", "u8"),
        ("node", "i8"),  # the owner
        ("offset", "i8"),  # place among the owner's profiles, and so among the slots of the owner's edges
        ("stamp", "i8"),  # emissions so far
        ("updates", "i8"),
        ("known", "i8"),  # ratings known to the owner for this profile
        ("rate", "f8"),  # initial learning rate
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
        ("count", "i4"),  # first slot at a router: the user's rating count last seen
    ],
    align=True,
)
UNASKED, RATED, NOT_RATED = 0, 1, 2  # states of a slot: what the receiver knows of the rating

# What has left the user's machine, for each of his own ratings: how many routers he sent it to, and which one last.
# A router that has lost an item never hosts it again, so that counting changes of the last one counts routers.
DISCLOSURE = np.dtype([("routers", "i4"), ("last", "i4")], align=True)

# An item named in a request, and the user's answer to it in the reply.
ANSWER_ROW = np.dtype([("offset", "i8"), ("state", "i8"), ("value", "f8")], align=True)

# The world's distributions, by their row in `laws`.
JITTER = 0


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
        Each user's own ratings, in the form of `Ratings.by_user`.
    disclosures : DISCLOSURE, shape (n_ratings,)
        How far each own rating has spread.
    accounts : int64, shape (kinds of message, fates, 2)
        Messages and bytes by kind and fate.
    updates : int64, shape (2,)
        Updates of user profiles and of item profiles so far.
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
    disclosures: np.ndarray
    accounts: np.ndarray
    updates: np.ndarray
