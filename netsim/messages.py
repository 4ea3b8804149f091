"""Kinds of events and messages, what can become of a message, and how large it is."""

import numpy as np

from algorithms.compilation import kernel

__all__ = ["FATES", "MESSAGE_KINDS", "goes_back", "message_size"]

# Kinds of model events, in the order in which they happen at equal times. From REQUEST on they are messages.
TOGGLE, TICK, CHECKPOINT, WISH, EXPIRY, REQUEST, REPLY, PROFILE, HANDOVER, QUERY, ANSWER, LOOKUP, FOUND = range(13)
MESSAGE_KINDS = ("request", "reply", "profile", "handover", "query", "answer", "lookup", "found")
KIND_NAMES = ("toggle", "tick", "checkpoint", "wish", "expiry", *MESSAGE_KINDS)

# What becomes of a message. SENT counts every message; each then has exactly one of the other fates, or is in flight.
SENT = 0
LOST_LINK = 1  # dropped by the network on the way
LOST_OFFLINE = 2  # arrived while the receiver was offline
LOST_QUEUE = 3  # arrived at a full queue
UNREACHABLE = 4  # no path joins the two places
UPDATED = 5  # delivered, and moved at least one profile
UNKNOWN = 6  # delivered to a router that does not know the rating yet
STALE = 7  # delivered, and discarded for its stamp; a stale reply still teaches its ratings
UNRATED = 8  # delivered, but the user has not rated the item
CONTROL = 9  # delivered request
IN_FLIGHT = 10  # what an engine says of a message that is on its way; never a column of the accounts
FATES = (
    "sent",
    "lost_link",
    "lost_offline",
    "lost_queue",
    "unreachable",
    "updated",
    "unknown",
    "stale",
    "unrated",
    "control",
)
DELIVERED = ("updated", "unknown", "stale", "unrated", "control")

# Sizes in bytes. The header is IPv4 (20) and UDP (8), then kind (1), flags (1), rating count (2), profile id (8) and
# stamp (8). A profile is `rank` float64; a request names items by id; an answer is an item's id and a float64.
# A request has its attempt in the place of the stamp, a reply has both. A handover has the count of updates beside, an
# answer the number of the query. A query and a look-up name one item, what is found names an item and a router.
HEADER = 48
ATTEMPT = 8
NUMBER = 8
ITEM_NAME = 8
RATING_ANSWER = 16


@kernel
def goes_back(kind):
    """Whether messages of a kind travel over an edge from its receiver to its sender."""
    return kind in (REQUEST, ANSWER, FOUND)


@kernel
def message_size(kind, rank, n_items):
    """Size of a message in bytes.

    Parameters
    ----------
    kind : int
        REQUEST and the others.
    rank : int
        Length of the profile carried, where it carries one.
    n_items : int
        Items named (REQUEST), answers (REPLY) or attached ratings (PROFILE).
    """
    if kind in (REQUEST, QUERY, LOOKUP, FOUND):
        return np.int64(HEADER + ITEM_NAME * n_items)
    size = HEADER + NUMBER * rank + RATING_ANSWER * n_items
    return np.int64(size + ATTEMPT if kind in (REPLY, HANDOVER, ANSWER) else size)
