"""Engines: they keep the clock and the messages in flight, and call `netsim.behaviour` for everything else."""
