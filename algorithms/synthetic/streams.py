"""Streams of random numbers that do not touch each other: one for each purpose, all from one seed."""

from typing import Any

import numpy as np

__all__ = ["streams"]


def streams(seed: Any, n: int) -> list[np.random.Generator]:
    """Make streams of random numbers. What one purpose draws, and how much, changes nothing for the others.

    Parameters
    ----------
    seed : int or anything `numpy.random.default_rng` takes
        A seed sequence stays as it is, so that it gives the same streams again; a generator goes on.
    n : int
        Number of streams. More of them leave the first ones as they are.

    Returns
    -------
    list of numpy.random.Generator
    """
    words = np.random.default_rng(seed).integers(2**63, size=n)
    return [np.random.default_rng(int(word)) for word in words]
