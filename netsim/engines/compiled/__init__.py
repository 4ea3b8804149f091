"""The compiled engine: the same meaning as `netsim.engines.events`, to the bit, many times faster.

- `calendar`: the queue of pending events, in order of the key.
- `loop`: takes one event after another and calls `netsim.behaviour`.
- `team`, `barrier`: several such loops side by side, in windows of time.
- `lane`: the memory of one loop.
- `engine`: ties them to the SimPy clock.
"""

from netsim.engines.compiled.engine import CompiledEngine

__all__ = ["CompiledEngine"]
