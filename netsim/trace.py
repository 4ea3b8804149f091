"""A record of every message of a small run."""

from typing import Any

import pandas as pd

from netsim.messages import FATES, IN_FLIGHT, KIND_NAMES

__all__ = ["MessageTrace"]


class MessageTrace:
    """Records every message: when it was sent, when it arrives, what became of it.

    Pass one to `simulate(..., trace=MessageTrace())` and read `frame()` afterwards. It keeps a row for each message,
    so it is for small runs.
    """

    def __init__(self) -> None:
        self._rows: list[list[Any]] = []
        self._landed = 0

    def __len__(self) -> int:
        return len(self._rows)

    def sent(self, message: Any, sender: int, receiver: int, now: float, fate: int, arrival: float) -> int:
        """Note a message that is sent; returns its row."""
        self._rows.append(
            [
                KIND_NAMES[message.kind],
                sender,
                receiver,
                message.profile,
                message.stamp,
                now,
                arrival,
                fate,
                -1,
            ]
        )
        return len(self._rows) - 1

    def landed(self, row: int, fate: int) -> None:
        """Note what became of a message that arrived."""
        self._rows[row][-2] = fate
        self._rows[row][-1] = self._landed
        self._landed += 1

    def frame(self) -> pd.DataFrame:
        """Table of the messages, one a row, in the order of sending.

        Columns: `kind`; `sender` and `receiver` (node numbers: users, then routers); `profile` carried (users' first,
        then items'; -1 for a request); `stamp` (of a request, the attempt); `sent` and `arrives` in seconds (inf where
        it never does); `fate`; `order` of arrival (-1 where it has not arrived).
        """
        columns = ["kind", "sender", "receiver", "profile", "stamp", "sent", "arrives", "fate", "order"]
        table = pd.DataFrame(self._rows, columns=columns)
        names = dict(enumerate(FATES)) | {IN_FLIGHT: "in_flight"}
        table["fate"] = [names[fate] for fate in table["fate"]]
        return table
