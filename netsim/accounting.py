"""One message enters the accounts."""

from algorithms.compilation import inner_kernel
from netsim.messages import REQUEST

__all__ = ["account"]


@inner_kernel
def account(state, kind, fate, size):
    """Count one message and its bytes."""
    state.accounts[kind - REQUEST, fate, 0] += 1
    state.accounts[kind - REQUEST, fate, 1] += size
