"""Distributions as data: frozen parameters that can be compared, written down and sampled inside a kernel.

A distribution turns one word of chance into one number. All but `Gamma` sample by inversion, so that two worlds which
differ in a parameter draw numbers that move together. The number grows with the uniform number of the word, except that
of `Exponential`, which falls.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from algorithms.chance import draw, further, standard_normal, uniform
from algorithms.compilation import inner_kernel, kernel

__all__ = [
    "Constant",
    "Distribution",
    "Empirical",
    "Exponential",
    "Gamma",
    "LogNormal",
    "Normal",
    "Pareto",
    "Uniform",
    "Weibull",
    "as_distribution",
    "compile_distributions",
    "describe_distribution",
    "is_constant",
    "sample",
    "sample_covering",
    "sample_each",
    "score_of",
]

_CONSTANT, _UNIFORM, _NORMAL, _LOGNORMAL, _EXPONENTIAL, _GAMMA, _EMPIRICAL, _WEIBULL, _PARETO = range(9)

# The largest exponential number of mean 1 that `uniform` leads to, at its end 2**-53 from 1.
_LARGEST = 53.0 * math.log(2.0)

# One row describes one distribution to the kernels; `start` and `count` point into a pool of values.
DISTRIBUTION = np.dtype([("kind", "i8"), ("a", "f8"), ("b", "f8"), ("start", "i8"), ("count", "i8")])


@dataclass(frozen=True)
class Distribution:
    """Base of all distributions. `kind` and `parameters` say to the kernels what the fields say to a reader.

    Attributes
    ----------
    is_inversion : bool
        Whether the uniform number of the word alone decides the number drawn, which never falls, or never rises, as
        that grows. So numbers drawn from correlated words are correlated.
    """

    kind: ClassVar[int]
    is_inversion: ClassVar[bool] = True

    def parameters(self) -> tuple[float, float]:
        """The two numbers that `sample` reads."""
        raise TypeError(
            "Distribution is abstract; use Constant, Uniform, Normal, LogNormal, Exponential, Gamma, Weibull, Pareto "
            "or Empirical"
        )

    def values(self) -> tuple[float, ...]:
        """The pool of values that `sample` reads: those of `Empirical`, else none."""
        return ()

    def lowest(self) -> float:
        """Lower end of the support."""
        return 0.0

    def expectation(self) -> float:
        """Mean of the distribution, in the unit of its numbers; infinite where that exceeds float64."""
        raise TypeError(f"{type(self).__name__} must define expectation()")

    def _check(self, name: str, *, above: float | None = None, least: float | None = None) -> None:
        value = getattr(self, name)
        wanted = "a finite number"
        if above is not None:
            wanted += f" > {above:g}"
        if least is not None:
            wanted += f" >= {least:g}"
        number = (
            float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else math.nan
        )
        if (
            not math.isfinite(number)
            or (above is not None and number <= above)
            or (least is not None and number < least)
        ):
            raise ValueError(f"{type(self).__name__}: {name} must be {wanted}, got {value!r}")
        object.__setattr__(self, name, number)


@dataclass(frozen=True)
class Constant(Distribution):
    """Always the same value.

    Parameters
    ----------
    value : float
    """

    value: float
    kind: ClassVar[int] = _CONSTANT

    def __post_init__(self) -> None:
        self._check("value")

    def parameters(self) -> tuple[float, float]:
        """The value, twice."""
        return self.value, self.value

    def lowest(self) -> float:
        """The value."""
        return self.value

    def expectation(self) -> float:
        """The value."""
        return self.value


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform between `low` and `high`.

    Parameters
    ----------
    low, high : float
    """

    low: float
    high: float
    kind: ClassVar[int] = _UNIFORM

    def __post_init__(self) -> None:
        self._check("low")
        self._check("high", least=self.low)
        if not math.isfinite(self.high - self.low):
            raise ValueError(f"Uniform: high - low must be finite, got low={self.low!r} and high={self.high!r}")

    def parameters(self) -> tuple[float, float]:
        """Lower end and width."""
        return self.low, self.high - self.low

    def lowest(self) -> float:
        """The lower end."""
        return self.low

    def expectation(self) -> float:
        """The middle."""
        return self.low + (self.high - self.low) / 2


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal with the given mean and standard deviation.

    Parameters
    ----------
    mean, standard_deviation : float
    """

    mean: float
    standard_deviation: float
    kind: ClassVar[int] = _NORMAL

    def __post_init__(self) -> None:
        self._check("mean")
        self._check("standard_deviation", least=0)

    def parameters(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        return self.mean, self.standard_deviation

    def lowest(self) -> float:
        """Minus infinity, unless the standard deviation is 0."""
        return -math.inf if self.standard_deviation > 0 else self.mean

    def expectation(self) -> float:
        """The mean."""
        return self.mean


@dataclass(frozen=True)
class LogNormal(Distribution):
    """Lognormal by its median.

    Parameters
    ----------
    median : float
        > 0.
    sigma : float
        Standard deviation of the logarithm, >= 0.
    """

    median: float
    sigma: float
    kind: ClassVar[int] = _LOGNORMAL

    def __post_init__(self) -> None:
        self._check("median", above=0)
        self._check("sigma", least=0)

    def parameters(self) -> tuple[float, float]:
        """Median and sigma."""
        return self.median, self.sigma

    def expectation(self) -> float:
        """The median times exp(sigma**2 / 2)."""
        return self.median * _or_infinite(math.exp, self.sigma**2 / 2)


@dataclass(frozen=True)
class Exponential(Distribution):
    """Exponential with the given mean.

    Parameters
    ----------
    mean : float
        > 0.
    """

    mean: float
    kind: ClassVar[int] = _EXPONENTIAL

    def __post_init__(self) -> None:
        self._check("mean", above=0)

    def parameters(self) -> tuple[float, float]:
        """The mean, twice."""
        return self.mean, self.mean

    def expectation(self) -> float:
        """The mean."""
        return self.mean


@dataclass(frozen=True)
class Gamma(Distribution):
    """Gamma with the given shape and scale; its mean is their product.

    Parameters
    ----------
    shape, scale : float
        > 0.
    """

    shape: float
    scale: float
    kind: ClassVar[int] = _GAMMA
    is_inversion: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check("shape", above=0)
        self._check("scale", above=0)

    def parameters(self) -> tuple[float, float]:
        """Shape and scale."""
        return self.shape, self.scale

    def expectation(self) -> float:
        """Shape times scale."""
        return self.shape * self.scale


@dataclass(frozen=True)
class Weibull(Distribution):
    """Weibull: P(X > x) = exp(-(x / scale)**shape). With shape < 1, what has lasted long will last longer.

    Parameters
    ----------
    scale, shape : float
        > 0. About 63% of the numbers lie below the scale.
    """

    scale: float
    shape: float
    kind: ClassVar[int] = _WEIBULL

    def __post_init__(self) -> None:
        self._check("scale", above=0)
        self._check("shape", above=0)
        if math.isinf(self.scale * _or_infinite(math.pow, _LARGEST, 1 / self.shape)):
            raise ValueError(
                f"Weibull: shape must be large enough for finite numbers, got {self.shape!r}; pass for instance 0.5"
            )

    def parameters(self) -> tuple[float, float]:
        """Scale and shape."""
        return self.scale, self.shape

    def expectation(self) -> float:
        """Scale times the gamma function of 1 + 1 / shape."""
        return self.scale * _or_infinite(math.gamma, 1 + 1 / self.shape)


@dataclass(frozen=True)
class Pareto(Distribution):
    """Pareto of type I: P(X > x) = (minimum / x)**shape for all x above the minimum.

    Parameters
    ----------
    minimum, shape : float
        > 0. The mean is infinite where the shape is <= 1, the variance where it is <= 2.
    """

    minimum: float
    shape: float
    kind: ClassVar[int] = _PARETO

    def __post_init__(self) -> None:
        self._check("minimum", above=0)
        self._check("shape", above=0)
        if math.isinf(self.minimum * _or_infinite(math.exp, _LARGEST / self.shape)):
            raise ValueError(
                f"Pareto: shape must be large enough for finite numbers, got {self.shape!r}; pass for instance 1.5"
            )

    def parameters(self) -> tuple[float, float]:
        """Minimum and shape."""
        return self.minimum, self.shape

    def lowest(self) -> float:
        """The minimum."""
        return self.minimum

    def expectation(self) -> float:
        """Minimum times shape / (shape - 1); infinite where the shape is <= 1."""
        return self.minimum * (self.shape / (self.shape - 1)) if self.shape > 1 else math.inf


@dataclass(frozen=True, init=False)
class Empirical(Distribution):
    """Draws one of the given values, each equally likely: a measured sample, replayed without a model.

    Parameters
    ----------
    sample : iterable of float
    """

    sample: tuple[float, ...]
    kind: ClassVar[int] = _EMPIRICAL

    def __init__(self, sample: Iterable[float]) -> None:
        try:
            values = np.sort(np.asarray(list(sample), dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"Empirical: sample must be a flat list of numbers, got {sample!r}") from error
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"Empirical: sample must be a flat, non-empty list of numbers, got shape {values.shape}")
        if not np.isfinite(values).all():
            found = values[~np.isfinite(values)][0]
            raise ValueError(f"Empirical: sample must hold finite numbers, got {found}; drop such values first")
        object.__setattr__(self, "sample", tuple(values.tolist()))

    def parameters(self) -> tuple[float, float]:
        """Nothing but the pool is read."""
        return 0.0, 0.0

    def values(self) -> tuple[float, ...]:
        """The sample in ascending order."""
        return self.sample

    def lowest(self) -> float:
        """The smallest value of the sample."""
        return self.sample[0]

    def expectation(self) -> float:
        """Mean of the sample."""
        return math.fsum(value / len(self.sample) for value in self.sample)

    def __repr__(self) -> str:
        return f"Empirical({len(self.sample)} values, {self.sample[0]:g} to {self.sample[-1]:g})"


def _or_infinite(function: Callable[..., float], *arguments: float) -> float:
    """Value of a function, infinite where Python refuses to give one that large."""
    try:
        return function(*arguments)
    except OverflowError:
        return math.inf


def as_distribution(value: Any, *, name: str, least: float | None = None) -> Distribution:
    """Take a distribution, or a number as `Constant`.

    Parameters
    ----------
    value : Distribution or float
    name : str
        Name of the argument, for errors.
    least : float, optional
        Smallest value that the distribution may give.

    Raises
    ------
    ValueError
        If it is neither, or can give values below `least`.
    """
    if isinstance(value, Distribution):
        found = value
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value):
        found = Constant(float(value))
    else:
        raise ValueError(
            f"{name} must be a finite number or a distribution such as LogNormal(0.07, 0.8), got {value!r}"
        )
    if least is not None and found.lowest() < least:
        raise ValueError(
            f"{name} must not give values below {least:g}, got {value!r}, which reaches {found.lowest():g}"
        )
    return found


def compile_distributions(distributions: Iterable[Distribution]) -> tuple[np.ndarray, np.ndarray]:
    """Turn distributions into the two arrays that `sample` reads.

    Parameters
    ----------
    distributions : iterable of Distribution

    Returns
    -------
    rows : DISTRIBUTION, shape (n,)
    pool : float64, shape (twice the total number of values,)
        The values of each distribution, then their cumulative sums.
    """
    given = list(distributions)
    rows = np.zeros(len(given), dtype=DISTRIBUTION)
    pool: list[float] = []
    for row, distribution in zip(rows, given, strict=True):
        values = distribution.values()
        row["kind"] = distribution.kind
        row["a"], row["b"] = distribution.parameters()
        row["start"], row["count"] = len(pool), len(values)
        pool.extend(values)
        pool.extend(accumulate(values))
    return rows, np.array(pool, dtype=np.float64)


def describe_distribution(distribution: Distribution) -> dict[str, Any]:
    """Plain description of a distribution: its name and parameters.

    Parameters
    ----------
    distribution : Distribution
    """
    plain: dict[str, Any] = {"distribution": type(distribution).__name__}
    for field in fields(distribution):
        value = getattr(distribution, field.name)
        plain[field.name] = list(value) if isinstance(value, tuple) else value
    return plain


@kernel
def sample(rows, pool, which, word):
    """One number from distribution `which`, made from one word of chance.

    Parameters
    ----------
    rows : DISTRIBUTION, shape (n,)
    pool : float64
        As `compile_distributions` gives them.
    which : int
    word : uint64

    Returns
    -------
    float64
    """
    row = rows[which]
    kind = row.kind
    if kind == _CONSTANT:
        return row.a
    if kind == _UNIFORM:
        return row.a + row.b * uniform(word)
    if kind == _NORMAL:
        return row.a + row.b * standard_normal(word)
    if kind == _LOGNORMAL:
        return row.a * math.exp(row.b * standard_normal(word))
    if kind == _EXPONENTIAL:
        return -row.a * math.log(uniform(word))
    if kind == _GAMMA:
        return row.b * _standard_gamma(row.a, word)
    if kind == _WEIBULL:
        return row.a * (-math.log1p(-uniform(word))) ** (1.0 / row.b)
    if kind == _PARETO:
        return row.a * math.exp(-math.log1p(-uniform(word)) / row.b)
    position = np.int64(uniform(word) * row.count)
    return pool[row.start + position]


@kernel
def is_constant(rows, which):
    """Whether distribution `which` needs no chance."""
    return rows[which].kind == _CONSTANT


@partial(kernel, inline=False)
def sample_covering(rows, pool, which, word):
    """Length of the interval that covers a fixed time, where intervals of distribution `which` follow one another.

    A long interval is more likely to cover that time: the density is x f(x) / mean, where f is the density of `sample`
    ("length-biased"; Cox, Renewal Theory, 1962, chapter 5). Where in the interval the time lies is uniform, and drawn
    by the caller from an unrelated word: the gamma numbers use the further words of this one.

    Parameters
    ----------
    rows : DISTRIBUTION, shape (n,)
    pool : float64
        As `compile_distributions` gives them.
    which : int
        A distribution without negative values, not always 0, with a finite mean.
    word : uint64

    Returns
    -------
    float64
        > 0. Infinite where it exceeds float64, as can be under a Pareto distribution of shape close to 1; always so
        where the shape is <= 1.
    """
    row = rows[which]
    kind = row.kind
    if kind == _UNIFORM:
        return math.sqrt(row.a * row.a + uniform(word) * row.b * (row.b + 2.0 * row.a))
    if kind == _LOGNORMAL:
        return row.a * math.exp(row.b * (row.b + standard_normal(word)))
    if kind == _EXPONENTIAL:
        return -row.a * (math.log(uniform(word)) + math.log(uniform(further(word, 1))))
    if kind == _GAMMA:
        return row.b * _standard_gamma(row.a + 1.0, word)
    if kind == _WEIBULL:
        return row.a * _standard_gamma(1.0 + 1.0 / row.b, word) ** (1.0 / row.b)
    if kind == _PARETO:
        return row.a * math.exp(-math.log1p(-uniform(word)) / (row.b - 1.0)) if row.b > 1.0 else math.inf
    if kind == _EMPIRICAL:
        return _covering_value(pool, row.start, row.count, uniform(word))
    return row.a  # a constant, or a normal without spread


@inner_kernel
def _covering_value(pool, start, count, share):
    """One of the values, each with a probability proportional to it, by bisection of their cumulative sums."""
    sums = start + count
    target = share * pool[sums + count - 1]
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if pool[sums + middle] > target:
            high = middle
        else:
            low = middle + 1
    return pool[start + low]


@partial(kernel, inline=False)
def score_of(rows, pool, which, value):
    """Standard normal number that `sample` turns into a value: the score of a draw, for what is sampled by inversion.

    Parameters
    ----------
    rows : DISTRIBUTION, shape (n,)
    pool : float64
        As `compile_distributions` gives them.
    which : int
        One of a kind with `is_inversion`.
    value : float64
        Within the support.

    Returns
    -------
    float64
    """
    row = rows[which]
    kind = row.kind
    u = 0.5
    if kind == _LOGNORMAL:
        return math.log(value / row.a) / row.b if row.b > 0.0 else 0.0
    if kind == _UNIFORM:
        u = (value - row.a) / row.b if row.b > 0.0 else 0.5
    elif kind == _EXPONENTIAL:
        u = math.exp(-value / row.a)
    elif kind == _WEIBULL:
        u = 1.0 - math.exp(-((value / row.a) ** row.b))
    elif kind == _PARETO:
        u = 1.0 - (row.a / value) ** row.b
    elif kind == _EMPIRICAL:
        n = 0
        while n < row.count - 1 and pool[row.start + n] < value:
            n += 1
        u = (n + 0.5) / row.count
    return standard_normal(np.uint64(min(max(u, 0.0), 1.0 - 2.0**-52) * 2.0**52) << np.uint64(12))


def sample_each(distribution: Distribution, seed: np.uint64, purpose: np.uint64, keys: np.ndarray) -> np.ndarray:
    """One number for each entity, float64, shape (n,): its draw number 0 for a purpose.

    Parameters
    ----------
    distribution : Distribution
    seed, purpose : uint64
    keys : uint64, shape (n,)
    """
    rows, pool = compile_distributions([distribution])
    drawn = np.empty(len(keys))
    _sample_each(rows, pool, seed, purpose, keys, drawn)
    return drawn


@kernel
def _sample_each(rows, pool, seed, purpose, keys, drawn):
    for n in range(keys.shape[0]):
        drawn[n] = sample(rows, pool, 0, draw(seed, purpose, keys[n], 0))


@partial(inner_kernel, inline=False)
def _standard_gamma(shape, word):
    """Gamma number of scale 1: Marsaglia and Tsang, ACM TOMS 26 (2000); their boost where shape < 1."""
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    number = 1
    while True:
        x = standard_normal(further(word, number))
        u = uniform(further(word, number + 1))
        number += 2
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            break
    if shape >= 1.0:
        return d * v
    return d * v * uniform(word) ** (1.0 / shape)
