"""Accounts of messages and bytes, and the proof that they balance."""

from typing import Any

import numpy as np
import pandas as pd

from netsim.messages import DELIVERED, FATES, MESSAGE_KINDS

__all__ = ["AccountsError", "accounts_frame", "balance", "totals"]


class AccountsError(RuntimeError):
    """The accounts of a run do not balance: a defect of this package."""


def balance(accounts: np.ndarray, in_flight: np.ndarray) -> None:
    """Check that every message sent has one fate or is in flight, by kind, in messages and in bytes.

    Parameters
    ----------
    accounts : int64, shape (kinds of message, fates, 2)
    in_flight : int64, shape (kinds of message, 2)
        As the engine counts them.

    Raises
    ------
    AccountsError
        If not; the message says where.
    """
    sent = accounts[:, 0, :]
    settled = accounts[:, 1:, :].sum(axis=1) + in_flight
    for kind, unit in np.argwhere(sent != settled):
        raise AccountsError(
            f"accounts do not balance: {sent[kind, unit]} {('messages', 'bytes')[unit]} of kind {MESSAGE_KINDS[kind]} "
            f"were sent, but {settled[kind, unit]} are accounted for; please report this with the world and seed"
        )


def totals(accounts: np.ndarray, in_flight: np.ndarray) -> dict[str, Any]:
    """Messages by fate over all kinds, and bytes by fate with the prefix `bytes_`."""
    columns: dict[str, Any] = {}
    for unit, prefix in enumerate(("", "bytes_")):
        by_fate = accounts[:, :, unit].sum(axis=0).tolist()
        columns |= {prefix + fate: number for fate, number in zip(FATES, by_fate, strict=True)}
        columns[prefix + "delivered"] = sum(columns[prefix + fate] for fate in DELIVERED)
        columns[prefix + "in_flight"] = int(in_flight[:, unit].sum())
    return columns


def accounts_frame(accounts: np.ndarray, in_flight: np.ndarray) -> pd.DataFrame:
    """Tidy table of the accounts: a row for each kind of message and fate, with messages and bytes."""
    rows = [
        (kind, fate, int(accounts[k, f, 0]), int(accounts[k, f, 1]))
        for k, kind in enumerate(MESSAGE_KINDS)
        for f, fate in enumerate(FATES)
    ]
    rows += [(kind, "in_flight", int(in_flight[k, 0]), int(in_flight[k, 1])) for k, kind in enumerate(MESSAGE_KINDS)]
    return pd.DataFrame(rows, columns=["kind", "fate", "messages", "bytes"])
