"""A simulated survey: answers to rating-scale items, people who abandon it and people who answer carelessly.

Appendix 7.2 of the second seed paper.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.synthetic.checks import check_integer, check_share
from algorithms.synthetic.recommender import categorized, largest_mean_shift
from algorithms.synthetic.streams import streams

__all__ = ["Survey", "abandoned", "careless", "survey"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """Complete answers to a survey, and what they were made from. Items stand in the order of the survey.

    Attributes
    ----------
    complete : float64, shape (n_respondents, n_items)
        The answers R, whole numbers from 1 to `n_categories`; none is missing.
    latent : float64, shape (n_respondents, n_items)
        The latent sentiments Z before the mean shifts, each standard normal. They do not depend on the number of
        categories.
    construct : int64, shape (n_items,)
        Which construct an item measures, from 0.
    reversed : bool, shape (n_items,)
        Whether an item is reverse-keyed.
    shifts : float64, shape (n_constructs,)
        Mean shift of each construct, in [0, `largest_shift`].
    largest_shift : float
        s_max.
    breakpoints : tuple of float, length n_categories - 1
        Where latent values become the next category.
    n_categories : int
    """

    complete: FloatArray
    latent: FloatArray
    construct: IntArray
    reversed: BoolArray
    shifts: FloatArray
    largest_shift: float
    breakpoints: tuple[float, ...]
    n_categories: int

    @property
    def categories(self) -> FloatArray:
        """The answers that can be given, ascending, float64, shape (n_categories,)."""
        return np.arange(1.0, self.n_categories + 1.0)

    def __repr__(self) -> str:
        n_respondents, n_items = self.complete.shape
        return (
            f"Survey({n_respondents} respondents, {n_items} items of {len(self.shifts)} constructs, "
            f"{self.n_categories} categories)"
        )


def survey(
    n_respondents: int = 300,
    *,
    seed: Any,
    n_constructs: int = 10,
    items_per_construct: int = 4,
    n_categories: int = 5,
    correlation: float = 0.6,
) -> Survey:
    """Draw complete answers to a survey in which several items measure each latent construct.

    - **Sentiments** are normal with mean 0, variance 1 and a block-Toeplitz covariance: correlation^(|k - l| + 1)
      between two items of the constructs k and l, so `correlation` within a construct. They are made as
      sqrt(c) F_k + sqrt(1 - c) E with independent E and a first-order autoregression F_k = c F_(k-1) + sqrt(1 - c^2) e,
      which has this covariance exactly and needs no factorization of a matrix.
    - **Mean shifts** are uniform on [0, s_max], one for each construct. s_max is such that 40% of the answers to an
      item with this shift are expected in the top category.
    - **Breakpoints** are -K/2 + 1, -K/2 + 2, ..., K/2 - 1. A value at a breakpoint is in the upper category.
    - **Reverse-keyed** is half of each construct's items: their answer a becomes K + 1 - a.
    - **Order**: the items stand in a random order, the same for all respondents.

    Where the paper leaves something open: shifts are drawn uniformly. The second half of a construct's items is
    reversed, before items are shuffled; items of a construct are alike, so another half would make no difference. Of
    an odd number, the half is rounded down.

    Sentiments, shifts and order are each a stream of their own. So with one seed they are the same for every number of
    categories: those worlds are pairs.

    Parameters
    ----------
    n_respondents : int
        Number n of rows.
    seed : int or anything `numpy.random.default_rng` takes
    n_constructs, items_per_construct : int
        q constructs with r items each: q r columns.
    n_categories : int
        Number K of answers, >= 2; the paper has 5, 7 and 9.
    correlation : float
        Of two items of a construct, in [0, 1).

    Returns
    -------
    Survey

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    check_integer("n_respondents", n_respondents, low=1, mend="the seed has 300")
    check_integer("n_constructs", n_constructs, low=1, mend="the seed has 10")
    check_integer("items_per_construct", items_per_construct, low=1, mend="the seed has 4 and 8")
    check_integer("n_categories", n_categories, low=2, mend="the seed has 5, 7 and 9")
    check_share("correlation", correlation, open_ends="high")
    factors, noise, skew, shuffle = streams(seed, 4)
    construct = np.repeat(np.arange(n_constructs), items_per_construct)
    common = _autoregression(factors, (n_respondents, n_constructs), correlation)
    unique = noise.standard_normal((n_respondents, len(construct)))
    latent = math.sqrt(correlation) * common[:, construct] + math.sqrt(1 - correlation) * unique
    breakpoints = tuple(k - n_categories / 2 for k in range(1, n_categories))
    largest = largest_mean_shift(breakpoints)
    shifts = largest * skew.random(n_constructs)
    answers = categorized(latent + shifts[construct], breakpoints)
    keyed = np.arange(len(construct)) % items_per_construct >= items_per_construct - items_per_construct // 2
    answers[:, keyed] = n_categories + 1 - answers[:, keyed]
    order = shuffle.permutation(len(construct))
    return Survey(
        complete=answers[:, order],
        latent=latent[:, order],
        construct=construct[order],
        reversed=keyed[order],
        shifts=shifts,
        largest_shift=largest,
        breakpoints=breakpoints,
        n_categories=int(n_categories),
    )


def abandoned(shape: tuple[int, int], *, seed: Any, share: float) -> BoolArray:
    """Let some respondents stop at an item: their answers from this item on are missing.

    Respondents are drawn at random, and for each the item at which he stops, each as likely as any other. As the paper
    says no more, the first item is one of them; then the whole row is missing. A larger share keeps those who abandon
    the survey with a smaller one, and where they stop.

    Parameters
    ----------
    shape : (int, int)
        n_respondents and n_items.
    seed : int or anything `numpy.random.default_rng` takes
    share : float
        Of respondents who stop, in [0, 1]; rounded to a whole number of them.

    Returns
    -------
    bool, shape (n_respondents, n_items)
        True where an answer is missing.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    check_share("share", share)
    if len(shape) != 2:
        raise ValueError(f"shape must be (n_respondents, n_items), got {shape!r}; pass the shape of the answers")
    for side in shape:
        check_integer("shape", side, low=1, mend="pass (n_respondents, n_items), the shape of the answers")
    n_respondents, n_items = shape
    who, where = streams(seed, 2)
    stop = np.full(n_respondents, n_items)
    leaving = _chosen(who, n_respondents, share)
    stop[leaving] = where.integers(n_items, size=n_respondents)[leaving]
    return np.arange(n_items) >= stop[:, None]


def careless(complete: ArrayLike, *, seed: Any, share: float, n_categories: int) -> tuple[FloatArray, BoolArray]:
    """Replace some rows by careless ones, whose answers are lowest or highest at random.

    Each answer of a careless row is 1 or `n_categories`, with equal chance and whatever the item. A larger share keeps
    the careless rows of a smaller one.

    Parameters
    ----------
    complete : array_like of float, shape (n_respondents, n_items)
        Answers from 1 to `n_categories`; not changed.
    seed : int or anything `numpy.random.default_rng` takes
    share : float
        Of careless respondents, in [0, 1]; rounded to a whole number of them.
    n_categories : int
        >= 2.

    Returns
    -------
    answers : float64, shape (n_respondents, n_items)
    rows : bool, shape (n_respondents,)
        Who is careless.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    check_share("share", share)
    check_integer("n_categories", n_categories, low=2, mend="pass that of the survey")
    answers = np.asarray(complete, dtype=np.float64)
    if answers.ndim != 2 or 0 in answers.shape:
        raise ValueError(
            f"complete must have shape (n_respondents, n_items), got {answers.shape}; pass the matrix of answers"
        )
    if not np.isin(answers, np.arange(1, n_categories + 1)).all():
        raise ValueError(
            f"complete must hold answers from 1 to n_categories={n_categories}, got others; pass the complete matrix, "
            "and hide missing answers afterwards"
        )
    who, what = streams(seed, 2)
    rows = np.zeros(len(answers), dtype=bool)
    rows[_chosen(who, len(answers), share)] = True
    extremes = np.where(what.random(answers.shape) < 0.5, 1.0, float(n_categories))
    return np.where(rows[:, None], extremes, answers), rows


def _autoregression(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> FloatArray:
    """Standard normal columns, correlation^|k - l| between the columns k and l."""
    values = rng.standard_normal(shape)
    for k in range(1, shape[1]):
        values[:, k] = correlation * values[:, k - 1] + math.sqrt(1 - correlation**2) * values[:, k]
    return values


def _chosen(rng: np.random.Generator, n: int, share: float) -> IntArray:
    """The first part of a random order of n rows, so that a larger share holds a smaller one."""
    return rng.permutation(n)[: round(share * n)]
