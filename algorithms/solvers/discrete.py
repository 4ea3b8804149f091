"""The discrete step of RDMC: the best category in each cell, and the multiplier that follows from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.compilation import kernel
from algorithms.solvers.observed import Observed
from algorithms.solvers.scales import Scales

__all__ = ["TIE", "DiscreteProblem", "DiscreteState", "Sums"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
TIE = 1e-9  # in smallest steps of the column: how far beyond a tie z - theta/mu must lie for the higher category


@dataclass(frozen=True)
class Sums:
    """What a discrete step adds up over all cells.

    Attributes
    ----------
    loss : float
        Sum of rho over the observed cells.
    product : float
        Inner product of the new Theta and L - Z.
    squares : float
        Sum of squares of L - Z.
    margin : float
        How far z - theta/mu would have to move, in the cell where that is least, for another category to be chosen.
    """

    loss: float
    product: float
    squares: float
    margin: float


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteProblem:
    """What stays the same from step to step. Empty columns are left out of all arrays but those of `scales`.

    Attributes
    ----------
    scales : Scales
    columns : ndarray of int64, shape (n_columns,)
        Columns with an observed cell.
    start, column, code : ndarray of int64, shape (n_rows + 1,), (n_observed,), (n_observed,)
        Observed cells of row i at ``start[i]:start[i + 1]``: the column, and which of its categories was observed.
    centred : ndarray of float64, shape (n_columns, n_most)
        Categories less the centre of their column.
    boundaries : ndarray of float64, shape (n_most - 1, n_columns)
        Where the next category becomes the nearest one, ties included; infinite past the last.
    ties : ndarray of float64, shape (n_columns,)
        Width of a tie, in the unit of the ratings.
    counts : ndarray of int64, shape (n_columns,)
        Categories of each column.
    penalty : ndarray of float64, shape (n_columns, n_most, n_most)
        [j, a, b]: what category b costs where a was observed.
    """

    scales: Scales
    columns: IntArray
    start: IntArray
    column: IntArray
    code: IntArray
    centred: FloatArray
    boundaries: FloatArray
    ties: FloatArray
    counts: IntArray
    penalty: FloatArray

    @classmethod
    def of(cls, observed: Observed, scales: Scales) -> "DiscreteProblem":
        """Lay out the problem of these cells."""
        columns = np.flatnonzero(~scales.empty)
        centred, counts, ties = scales.centred[columns], scales.counts[columns], TIE * scales.steps[columns]
        middles = (centred[:, 1:] + centred[:, :-1]) / 2 + ties[:, None]
        past = np.arange(1, centred.shape[1]) >= counts[:, None]
        return cls(
            scales=scales,
            columns=columns,
            start=np.concatenate([[0], np.cumsum(np.bincount(observed.row, minlength=observed.n_rows))]),
            column=np.searchsorted(columns, observed.column),
            code=scales.code.astype(np.int64),
            centred=np.ascontiguousarray(centred),
            boundaries=np.ascontiguousarray(np.where(past, np.inf, middles).T),
            ties=ties,
            counts=counts,
            penalty=np.ascontiguousarray(scales.penalty[columns]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, without empty columns."""
        return len(self.start) - 1, len(self.columns)

    def projected(self) -> FloatArray:
        """The centred ratings with 0 in missing cells, float64, shape (n_rows, n_columns)."""
        matrix = np.zeros(self.shape)
        row = np.repeat(np.arange(self.shape[0]), np.diff(self.start))
        matrix[row, self.column] = self.centred[self.column, self.code]
        return matrix

    def choice(self, L: FloatArray) -> NDArray[np.int16]:
        """Which category each cell of L has, for all columns; empty ones have that nearest to their centre."""
        whole = np.repeat(self.scales.nearest_to_centre[None], len(L), axis=0)
        for place, j in enumerate(self.columns):
            whole[:, j] = np.searchsorted(self.centred[place, : self.counts[place]], L[:, place])
        return whole

    def whole(self, matrix: FloatArray) -> FloatArray:
        """A matrix with 0 in empty columns; always a copy."""
        whole = np.zeros((len(matrix), len(self.scales.empty)))
        whole[:, self.columns] = matrix
        return whole


class DiscreteState:
    """What a step changes: L, Theta, and the next matrix to threshold.

    Parameters
    ----------
    problem : DiscreteProblem
    L, Theta : float64, shape (n_rows, n_columns)
        Start values. L need not hold categories.
    mu : float
        mu of the first iteration.

    Attributes
    ----------
    L, Theta : ndarray of float64, shape (n_rows, n_columns)
    target : ndarray of float64, shape (n_rows, n_columns)
        L + Theta / mu, whose singular values are thresholded next.
    Z : ndarray of float64, shape (n_rows, n_columns)
        Room for the result of that; `update` reads it.
    """

    def __init__(self, problem: DiscreteProblem, L: FloatArray, Theta: FloatArray, mu: float) -> None:
        self.L = np.array(L, dtype=np.float64, order="C")
        self.Theta = np.array(Theta, dtype=np.float64, order="C")
        self.target = self.L + self.Theta / mu
        self.Z = np.zeros(problem.shape)
        self._row = np.empty((3, problem.shape[1]))
        self._sums = np.empty((problem.shape[0], 4))

    def update(self, problem: DiscreteProblem, mu: float, next_mu: float) -> Sums:
        """Choose categories for Z and Theta, equation (4), then update Theta and the target for the next mu."""
        _update(
            self.Z,
            self.Theta,
            self.L,
            self.target,
            problem.start,
            problem.column,
            problem.code,
            problem.centred,
            problem.centred.T.copy(),
            problem.boundaries,
            problem.counts,
            problem.ties,
            problem.penalty,
            mu,
            next_mu,
            self._row,
            self._sums,
        )
        loss, product, squares = self._sums[:, :3].sum(axis=0).tolist()
        return Sums(loss, product, squares, float(self._sums[:, 3].min()))


@kernel
def _update(
    Z,
    Theta,
    L,
    target,
    start,
    column,
    code,
    centred,
    categories,
    boundaries,
    counts,
    ties,
    penalty,
    mu,
    next_mu,
    row,
    sums,
):
    """Update row by row; `sums` gets loss, product, squares and margin of each row.

    `row` is room for one row of z - theta/mu, of what is chosen, and of the distance to another choice. Nearest
    categories come first for all cells, in loops that the compiler turns into vector instructions; then the observed
    cells get theirs.
    """
    share, next_share = 1.0 / mu, 1.0 / next_mu
    wanted, chosen, room = row[0], row[1], row[2]
    for i in range(Z.shape[0]):
        z, theta = Z[i], Theta[i]
        for j in range(z.shape[0]):
            wanted[j] = z[j] - theta[j] * share
            chosen[j] = categories[0, j]
            room[j] = np.inf
        for k in range(boundaries.shape[0]):
            _pass_boundary(wanted, boundaries[k], categories[k + 1], chosen, room)
        loss = 0.0
        for n in range(start[i], start[i + 1]):
            j, seen = column[n], code[n]
            best, distance = _cheapest(centred[j], counts[j], ties[j], penalty[j, seen], mu, wanted[j])
            loss += penalty[j, seen, best]
            chosen[j] = centred[j, best]
            room[j] = distance
        product, squares, margin = 0.0, 0.0, np.inf
        for j in range(z.shape[0]):
            gap = chosen[j] - z[j]
            multiplier = theta[j] + mu * gap
            theta[j] = multiplier
            L[i, j] = chosen[j]
            target[i, j] = chosen[j] + multiplier * next_share
            product += multiplier * gap
            squares += gap * gap
            margin = min(margin, room[j])
        sums[i, 0], sums[i, 1], sums[i, 2], sums[i, 3] = loss, product, squares, margin


@kernel
def _pass_boundary(wanted, boundary, category, chosen, room):
    """Choose the category past a boundary where it is passed. All is read before a choice: so it becomes a vector's."""
    for j in range(len(wanted)):
        beyond = wanted[j] - boundary[j]
        past, before, distance = category[j], chosen[j], room[j]
        chosen[j] = past if beyond > 0.0 else before
        room[j] = min(distance, abs(beyond))


@kernel
def _cheapest(categories, count, tie, penalty, mu, wanted):
    """Category of least cost, a lower one in a tie, and the distance to where a comparison would go otherwise."""
    best, distance = 0, np.inf
    least = penalty[0] + mu / 2 * (categories[0] - wanted) ** 2
    for candidate in range(1, count):
        cost = penalty[candidate] + mu / 2 * (categories[candidate] - wanted) ** 2
        gain = (least - cost) / (mu * (categories[candidate] - categories[best])) - tie
        distance = min(distance, abs(gain))
        if gain > 0:
            best, least = candidate, cost
    return best, distance
