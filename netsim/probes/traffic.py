"""Messages and bytes by kind and fate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from netsim.messages import DELIVERED, FATES, MESSAGE_KINDS
from netsim.probes.view import Probe, View

__all__ = ["traffic"]

CHOICES = (*FATES, "delivered", "in_flight")


@dataclass(frozen=True)
class _TrafficProbe:
    kinds: tuple[str, ...]
    fates: tuple[str, ...]
    bytes: bool

    @property
    def columns(self) -> tuple[str, ...]:
        prefixes = ("", "bytes_") if self.bytes else ("",)
        return tuple(f"{prefix}{kind}_{fate}" for prefix in prefixes for kind in self.kinds for fate in self.fates)

    def __call__(self, view: View) -> Mapping[str, float]:
        delivered = view.accounts[:, [FATES.index(fate) for fate in DELIVERED]].sum(axis=1)
        # int64, shape (kinds, choices, 2), in the order of MESSAGE_KINDS and CHOICES
        counts = np.concatenate([view.accounts, delivered[:, None], view.in_flight[:, None]], axis=1)
        chosen = counts[[MESSAGE_KINDS.index(kind) for kind in self.kinds]]
        chosen = chosen[:, [CHOICES.index(fate) for fate in self.fates]]
        numbers = chosen[:, :, 0].ravel().tolist() + chosen[:, :, 1].ravel().tolist()
        return dict(zip(self.columns, numbers, strict=False))  # without their names, bytes fall off the end


def traffic(kinds: Sequence[str] | None = None, fates: Sequence[str] | None = None, bytes: bool = False) -> Probe:
    """Probe of messages by kind and fate; columns `profile_updated`, `request_lost_link` and so on.

    All count from time 0, but for `in_flight`, which is of the moment: `profile_sent` is `profile_delivered` and the
    losses of profiles and `profile_in_flight`. What the fates are, docs/semantics.md says.

    Parameters
    ----------
    kinds : sequence of str, optional
        Of "request", "reply", "profile", "handover". Default: all.
    fates : sequence of str, optional
        Of "sent", "lost_link", "lost_offline", "lost_queue", "unreachable", "updated", "unknown", "stale", "unrated",
        "control", and "delivered" (the last five of them) and "in_flight". Default: all.
    bytes : bool
        Whether to measure their bytes too, in columns `bytes_profile_updated` and so on.

    Raises
    ------
    ValueError
        If an argument is none of these.
    """
    if not isinstance(bytes, bool):
        raise ValueError(f"traffic: bytes must be True or False, got {bytes!r}")
    return _TrafficProbe(_choice("kinds", kinds, MESSAGE_KINDS), _choice("fates", fates, CHOICES), bytes)


def _choice(argument: str, given: Any, choices: tuple[str, ...]) -> tuple[str, ...]:
    """What was chosen, checked; all where nothing was."""
    if given is None:
        return choices
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) == 0:
        raise ValueError(f"traffic: {argument} must be a sequence of some of {', '.join(choices)}, got {given!r}")
    for name in given:
        if name not in choices:
            raise ValueError(f"traffic: {argument} must hold some of {', '.join(choices)}, got {name!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"traffic: {argument} must name each only once, got {given!r}")
    return tuple(given)
