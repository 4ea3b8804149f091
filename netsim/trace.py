"""A record of the messages of a run: all of a small one, or a sample of a large one."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, combine, draw, entity_keys, uniform
from netsim.files import write_text
from netsim.messages import FATES, IN_FLIGHT, KIND_NAMES
from netsim.world import World

__all__ = ["MessageTrace"]

LEFT_OUT = -1  # row of a message that is not in the sample


class MessageTrace:
    """Records messages: when each was sent, when it arrives, what became of it.

    Pass one to `simulate(..., trace=MessageTrace())` and read `frame()` or `save()` it afterwards. It keeps a row for
    each message, so a large run is sampled. Whether a message is in the sample is drawn from what names it (emitter,
    receiver, profile, stamp) and the run's seed: a smaller share is a part of a larger one, and the same messages are
    taken in worlds that differ in something else.

    Parameters
    ----------
    share : float
        Share of the messages that is recorded, in (0, 1].

    Raises
    ------
    ValueError
        If `share` is out of range.
    """

    def __init__(self, share: float = 1.0) -> None:
        if not isinstance(share, int | float | np.number) or isinstance(share, bool) or not 0 < share <= 1:
            raise ValueError(f"share must be in (0, 1], got {share!r}; pass a fraction, not a percentage")
        self.share = float(share)
        self._rows: list[list[Any]] = []
        self._landed = 0
        self._seed = np.uint64(0)
        self._names: tuple[list[Any], list[Any]] | None = None

    def begin(self, world: World, seed: np.uint64) -> None:
        """Take the names of the nodes and the seed of the run that is recorded; a simulation calls this."""
        users, routers, items = world.ratings.user_ids, world.router_ids, world.ratings.item_ids
        self._names = [("user", name) for name in users] + [("router", name) for name in routers], list(items)
        self._n_users = len(users)
        self._seed = seed
        of_users, of_routers, of_items = (
            entity_keys(USER, users),
            entity_keys(ROUTER, routers),
            entity_keys(ITEM, items),
        )
        self._node_keys = np.concatenate([of_users, of_routers])
        self._profile_keys = np.concatenate([of_users, of_items, np.zeros(1, dtype=np.uint64)])  # -1: a request's
        self._rows, self._landed = [], 0

    def __len__(self) -> int:
        return len(self._rows)

    def sent(self, message: Any, sender: int, receiver: int, now: float, fate: int, arrival: float) -> int:
        """Note a message that is sent; returns its row, to be told when it lands."""
        if self.share < 1.0 and not self._is_sampled(message, sender, receiver):
            return LEFT_OUT
        self._rows.append(
            [
                KIND_NAMES[message.kind],
                sender,
                receiver,
                message.profile,
                message.stamp,
                message.size,
                now,
                arrival,
                fate,
                -1,
            ]
        )
        return len(self._rows) - 1

    def landed(self, row: int, fate: int) -> None:
        """Note what became of a message that arrived."""
        if row != LEFT_OUT:
            self._rows[row][-2] = fate
            self._rows[row][-1] = self._landed
        self._landed += 1

    def frame(self) -> pd.DataFrame:
        """Table of the messages, one a row, in the order of sending.

        Columns: `kind`; `sender` and `receiver` (node numbers: users, then routers); `profile` carried (users' first,
        then items'; -1 for a request); `stamp` (of a request, the attempt); `bytes`; `sent` and `arrives` in seconds
        (inf where it never does); `fate`; `order` of arrival (-1 where it has not arrived).
        """
        columns = ["kind", "sender", "receiver", "profile", "stamp", "bytes", "sent", "arrives", "fate", "order"]
        table = pd.DataFrame(self._rows, columns=columns)
        names = dict(enumerate(FATES)) | {IN_FLIGHT: "in_flight"}
        table["fate"] = [names[fate] for fate in table["fate"]]
        return table

    def save(self, path: str | Path) -> None:
        """Write the messages to a CSV file, whole or not at all.

        Columns: `kind`; `emitter_role`, `emitter`, `receiver_role`, `receiver` (user or router, and its id); `profile`
        (the id of the user or item whose profile it carries; empty for a request); `stamp` (of a request, the attempt);
        `bytes`; `sent` and `arrived` in seconds (empty where it has not arrived); `fate`.

        Raises
        ------
        ValueError
            If no run has been recorded.
        OSError
            If the file cannot be written.
        """
        if self._names is None:
            raise ValueError("trace must have recorded a run before it is saved; pass it to simulate(..., trace=trace)")
        nodes, items = self._names
        table = self.frame()
        n_users = self._n_users
        profiles = [
            "" if number < 0 else nodes[number][1] if number < n_users else items[number - n_users]
            for number in table["profile"]
        ]
        written = pd.DataFrame({"kind": table["kind"]})
        for column, numbers in (("emitter", table["sender"]), ("receiver", table["receiver"])):
            written[f"{column}_role"] = [nodes[number][0] for number in numbers]
            written[column] = [nodes[number][1] for number in numbers]
        written["profile"] = profiles
        written[["stamp", "bytes", "sent"]] = table[["stamp", "bytes", "sent"]]
        written["arrived"] = table["arrives"].where(table["order"] >= 0)
        written["fate"] = table["fate"]
        write_text(Path(path), written.to_csv(index=False, lineterminator="\n"))

    def _is_sampled(self, message: Any, sender: int, receiver: int) -> bool:
        # Back in Python a kernel's uint64 is an int, which the next would take for a signed one.
        pair = np.uint64(combine(self._node_keys[sender], self._node_keys[receiver]))
        key = np.uint64(combine(pair, self._profile_keys[message.profile]))
        word = np.uint64(draw(self._seed, purposes.TRACE, key, message.stamp))
        return bool(uniform(word) < self.share)
