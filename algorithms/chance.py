"""Chance as a function: every draw is `f(seed, purpose, entity, counter)`.

There is no stream to advance, so a draw does not depend on which other draws were made before it. Adding a node, a
probe or an engine changes nobody else's draws; two worlds that differ in one parameter share all other chance
(common random numbers).

A draw is a 64-bit *word*. It is made by chaining SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014): seed, purpose, entity and counter in turn say how far to jump in the sequence that the
word so far starts. Samplers that need more than one
uniform expand the word with `further`.
"""

import hashlib
import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from algorithms.compilation import kernel

__all__ = [
    "ITEM",
    "PLACE",
    "ROUTER",
    "USER",
    "combine",
    "draw",
    "entity_keys",
    "further",
    "seed_word",
    "stable_hash",
    "standard_normal",
    "uniform",
]

# Roles: the same original id names different entities in different roles.
USER, ITEM, ROUTER, PLACE = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def combine(state, value):
    """Output number `value` of the SplitMix64 sequence that starts at `state`; all three are uint64.

    The order counts: `combine(a, b)` and `combine(b, a)` are unrelated.
    """
    x = np.uint64(state) + (np.uint64(value) + np.uint64(1)) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@kernel
def draw(seed, purpose, entity, counter):
    """Word of the draw number `counter` of an entity for a purpose.

    Parameters
    ----------
    seed : uint64
        Seed of the run.
    purpose : uint64
        One of `algorithms.purposes`.
    entity : uint64
        Key of the node, profile or pair; a pair's key is `combine(first, second)`.
    counter : integer
        Number of the draw: tick, attempt, session, component.

    Returns
    -------
    uint64
    """
    return combine(combine(combine(combine(_FIRST, seed), purpose), entity), counter)


@kernel
def further(word, number):
    """Further word number `number` (from 1) of a draw that needs more than one."""
    return combine(word, number)


@kernel
def uniform(word):
    """Uniform number in the open interval (0, 1), on a grid of 2**52 points that misses both ends."""
    return (np.float64(np.uint64(word) >> np.uint64(12)) + 0.5) * 2.0**-52


@kernel
def standard_normal(word):
    """Standard normal number by inversion, so that it grows with the uniform number of the same word.

    Rational approximations of Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988); relative error about
    1e-16.
    """
    p = uniform(word)
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        num = 2.5090809287301226727e3
        num = num * r + 3.3430575583588128105e4
        num = num * r + 6.7265770927008700853e4
        num = num * r + 4.5921953931549871457e4
        num = num * r + 1.3731693765509461125e4
        num = num * r + 1.9715909503065514427e3
        num = num * r + 1.3314166789178437745e2
        num = num * r + 3.3871328727963666080e0
        den = 5.2264952788528545610e3
        den = den * r + 2.8729085735721942674e4
        den = den * r + 3.9307895800092710610e4
        den = den * r + 2.1213794301586595867e4
        den = den * r + 5.3941960214247511077e3
        den = den * r + 6.8718700749205790830e2
        den = den * r + 4.2313330701600911252e1
        den = den * r + 1.0
        return q * num / den
    r = math.sqrt(-math.log(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        num = 7.74545014278341407640e-4
        num = num * r + 2.27238449892691845833e-2
        num = num * r + 2.41780725177450611770e-1
        num = num * r + 1.27045825245236838258e0
        num = num * r + 3.64784832476320460504e0
        num = num * r + 5.76949722146069140550e0
        num = num * r + 4.63033784615654529590e0
        num = num * r + 1.42343711074968357734e0
        den = 1.05075007164441684324e-9
        den = den * r + 5.47593808499534494600e-4
        den = den * r + 1.51986665636164571966e-2
        den = den * r + 1.48103976427480074590e-1
        den = den * r + 6.89767334985100004550e-1
        den = den * r + 1.67638483018380384940e0
        den = den * r + 2.05319162663775882187e0
        den = den * r + 1.0
    else:
        r -= 5.0
        num = 2.01033439929228813265e-7
        num = num * r + 2.71155556874348757815e-5
        num = num * r + 1.24266094738807843860e-3
        num = num * r + 2.65321895265761230930e-2
        num = num * r + 2.96560571828504891230e-1
        num = num * r + 1.78482653991729133580e0
        num = num * r + 5.46378491116411436990e0
        num = num * r + 6.65790464350110377720e0
        den = 2.04426310338993978564e-15
        den = den * r + 1.42151175831644588870e-7
        den = den * r + 1.84631831751005468180e-5
        den = den * r + 7.86869131145613259100e-4
        den = den * r + 1.48753612908506148525e-2
        den = den * r + 1.36929880922735805310e-1
        den = den * r + 5.99832206555887937690e-1
        den = den * r + 1.0
    return -num / den if q < 0.0 else num / den


def seed_word(seed: Any) -> np.uint64:
    """Turn a seed into the 64-bit word that all draws of a run start from.

    Parameters
    ----------
    seed : int, numpy.random.SeedSequence, BitGenerator or Generator
        An integer in [0, 2**64) is its own word; everything else that `numpy.random.default_rng` takes is
        reduced by it. None is refused: a run without a seed could not be repeated.

    Raises
    ------
    ValueError
        If `seed` is None or a negative integer.
    """
    if seed is None:
        raise ValueError(
            "seed must be given, got None; pass an integer such as seed=1, so that the run can be repeated"
        )
    if isinstance(seed, int | np.integer):
        if int(seed) < 0:
            raise ValueError(f"seed must be an integer >= 0, got {seed}; pass for example seed=1")
        if int(seed) < 2**64:
            return np.uint64(int(seed))
    return np.uint64(np.random.default_rng(seed).integers(2**64, dtype=np.uint64))


def stable_hash(name: Hashable) -> np.uint64:
    """64-bit hash of an original id, the same in every process and on every machine.

    NumPy and Python numbers of equal value hash alike; an integer and its text do not. Integers, text, tuples and
    frozensets of them are safe; everything else is taken by its `repr`.

    Parameters
    ----------
    name : hashable

    Raises
    ------
    TypeError
        If the id has no text of its own (the default `repr` shows a memory address).
    """
    return np.uint64(
        int.from_bytes(
            hashlib.blake2b(_canonical(name).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
    )


def _canonical(name: Hashable) -> str:
    if isinstance(name, np.number | np.bool_ | np.str_ | np.bytes_):
        name = name.item()
    if isinstance(name, bool | int) or (isinstance(name, float) and name.is_integer()):
        return f"i{int(name)}"
    if isinstance(name, str):
        return f"s{len(name)}:{name}"
    if isinstance(name, tuple):
        return "t(" + ",".join(_canonical(part) for part in name) + ")"
    if isinstance(name, frozenset):
        return "f(" + ",".join(sorted(_canonical(part) for part in name)) + ")"
    text = repr(name)
    if " at 0x" in text:
        raise TypeError(f"id {text} has no stable text; use numbers, text or tuples of them as ids, or define __repr__")
    return f"o{type(name).__name__}:{text}"


def entity_keys(role: np.uint64, names: Iterable[Hashable]) -> np.ndarray:
    """Keys of entities of one role, uint64, shape (n,), in the order of `names`.

    Parameters
    ----------
    role : uint64
        USER, ITEM, ROUTER or PLACE.
    names : iterable of hashable
        Original ids.
    """
    return np.array([combine(stable_hash(name), role) for name in names], dtype=np.uint64)
