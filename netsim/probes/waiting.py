"""How long messages wait in the queues of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from netsim.probes.view import Probe, View

__all__ = ["waiting"]


@dataclass(frozen=True)
class _WaitingProbe:
    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{role}_{queue}_wait" for role in ("user", "router") for queue in ("uplink", "processing"))

    def __call__(self, view: View) -> Mapping[str, float]:
        return view.waits


def waiting() -> Probe:
    """Probe of the mean wait in each kind of queue, in seconds, over all messages that entered one so far.

    Columns `user_uplink_wait`, `user_processing_wait`, `router_uplink_wait`, `router_processing_wait`: without the
    service itself; NaN where nothing has entered such a queue.
    """
    return _WaitingProbe()
