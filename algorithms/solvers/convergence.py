"""The warning of a solver that stopped before it had converged."""

__all__ = ["ConvergenceWarning"]


class ConvergenceWarning(UserWarning):
    """A solver used up its iterations; the message says how far it was and which argument to raise."""
