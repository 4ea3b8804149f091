"""The largest eigenvalues of a symmetric tridiagonal matrix, many at a time."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from algorithms.compilation import kernel

__all__ = ["eigenvalues", "eigenvalues_above", "reach"]

FloatArray = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
N_FIRST = 512  # shifts of the first count, which bracket all eigenvalues at once
HALVINGS = 6  # of each bracket before Newton's method: to a small part of the usual distance of neighbours
MAX_NEWTON = 6
LAST_STEP = 1e5  # units: what is wrong after a step is about its square over the distance of the next eigenvalue
MANY = 3  # where more than one in so many is wanted, LAPACK's dsterf, which finds all, is faster
UNIT = 4 * EPS  # of `reach`: to which an eigenvalue is found


def eigenvalues_above(diagonal: FloatArray, beside: FloatArray, floor: float) -> FloatArray:
    """All eigenvalues of a symmetric tridiagonal matrix above a number, descending.

    The pivots of T - x I tell how many eigenvalues are above x (Sylvester's law of inertia). Such counts bracket each
    eigenvalue; Newton's method for the remainder of the twisted factorization, which is Rayleigh's quotient of its
    vector (Parlett and Dhillon, 1997), finds it; two counts prove that it is the one meant. Where it is not, as with
    equal ones, halving the bracket finds it. Eigenvalues are lanes of each loop, so that vector instructions take
    several of them at once: for a fifth of the eigenvalues this takes half the time of LAPACK's dsterf, which has to
    find all.

    Parameters
    ----------
    diagonal, beside : float64, shape (n,), (n - 1,) with n > 1
    floor : float
        Values are complete down to this, to within 4 units of roundoff of `reach`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK finds no eigenvalues.
    """
    top = reach(diagonal, beside)
    unit, squares = UNIT * max(top, np.finfo(np.float64).tiny / EPS), beside * beside
    if not top > floor:
        return np.empty(0)
    low, high = _brackets(diagonal, squares, floor, top + unit)
    if MANY * len(low) > len(diagonal):
        values = eigenvalues(diagonal, beside)
        return values[values > floor]
    rank = np.arange(1, len(low) + 1.0)
    for _ in range(HALVINGS):
        _halve(diagonal, squares, rank, low, high)
    values = _newton(diagonal, squares, low, high, unit)
    wrong = _count(diagonal, squares, values - unit) < rank
    wrong |= _count(diagonal, squares, values + unit) >= rank
    if wrong.any():
        values[wrong] = _bisected(diagonal, squares, rank[wrong], low[wrong], high[wrong], unit)
    return np.sort(values)[::-1]


def eigenvalues(diagonal: FloatArray, beside: FloatArray) -> FloatArray:
    """All eigenvalues of a symmetric tridiagonal matrix, by LAPACK, descending.

    Parameters
    ----------
    diagonal, beside : float64, shape (n,), (n - 1,)

    Raises
    ------
    numpy.linalg.LinAlgError
        If it finds none, as where the matrix is not finite.
    """
    ascending, info = lapack.dsterf(diagonal, beside)
    if info != 0:
        raise np.linalg.LinAlgError(f"LAPACK's dsterf gave info={info}; check that the matrix is finite")
    return np.asarray(ascending[::-1])


def reach(diagonal: FloatArray, beside: FloatArray) -> float:
    """Bound on the absolute values of all eigenvalues of a symmetric tridiagonal matrix, by Gershgorin's circles.

    Parameters
    ----------
    diagonal, beside : float64, shape (n,), (n - 1,)
    """
    around = np.abs(diagonal)
    around[:-1] += np.abs(beside)
    around[1:] += np.abs(beside)
    return float(around.max())


def _brackets(diagonal: FloatArray, squares: FloatArray, floor: float, top: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of each eigenvalue above `floor`, the largest one first."""
    root = np.sqrt(max(floor, 0.0))  # eigenvalues are squares of singular values, and lie closer at the lower end
    shifts = np.linspace(root, np.sqrt(top), N_FIRST) ** 2
    shifts[0], shifts[-1] = floor, top
    counts = np.maximum.accumulate(_count(diagonal, squares, shifts)[::-1])  # descending shifts
    shifts, rank = shifts[::-1], np.arange(1, counts[-1] + 1)
    place = np.searchsorted(counts, rank)  # the first shift that so many eigenvalues are above
    return shifts[place].copy(), shifts[np.maximum(place - 1, 0)].copy()


def _halve(diagonal: FloatArray, squares: FloatArray, rank: FloatArray, low: FloatArray, high: FloatArray) -> None:
    middle = (low + high) / 2
    above = _count(diagonal, squares, middle) >= rank
    np.copyto(low, middle, where=above)
    np.copyto(high, middle, where=~above)


def _bisected(
    diagonal: FloatArray, squares: FloatArray, rank: FloatArray, low: FloatArray, high: FloatArray, unit: float
) -> FloatArray:
    while (high - low > unit).any():
        _halve(diagonal, squares, rank, low, high)
    return (low + high) / 2


def _newton(diagonal: FloatArray, squares: FloatArray, low: FloatArray, high: FloatArray, unit: float) -> FloatArray:
    """Eigenvalues in the brackets; not always the ones meant where several are in one."""
    values, moving = (low + high) / 2, np.arange(len(low))
    for _ in range(MAX_NEWTON):
        steps = np.empty(len(moving))
        pivots, slopes = (np.empty((len(diagonal), len(moving))) for _ in range(2))
        _step(diagonal, squares, values[moving], EPS * unit, pivots, slopes, np.empty((3, len(moving))), steps)
        values[moving] = np.clip(values[moving] + steps, low[moving], high[moving])
        moving = moving[np.abs(steps) > LAST_STEP * unit]
        if not moving.size:
            break
    return values


def _count(diagonal: FloatArray, squares: FloatArray, shifts: FloatArray) -> FloatArray:
    """How many eigenvalues are above each shift."""
    counts = np.empty(len(shifts))
    _count_positive(diagonal, squares, shifts, np.finfo(np.float64).tiny, np.empty(len(shifts)), counts)
    return counts


@kernel
def _count_positive(diagonal, squares, shifts, tiny, pivots, counts):
    """Positive pivots of T - shift, one lane a shift."""
    for lane in range(len(shifts)):
        pivot = diagonal[0] - shifts[lane]
        pivot = pivot if pivot != 0.0 else tiny
        pivots[lane] = pivot
        counts[lane] = 1.0 if pivot > 0.0 else 0.0
    for i in range(1, len(diagonal)):
        entry, square = diagonal[i], squares[i - 1]
        for lane in range(len(shifts)):
            pivot = entry - shifts[lane] - square / pivots[lane]
            pivot = pivot if pivot != 0.0 else tiny
            pivots[lane] = pivot
            counts[lane] += 1.0 if pivot > 0.0 else 0.0


@kernel
def _step(diagonal, squares, values, tiny, pivots, slopes, lanes, steps):
    """Newton's step for the twisted factorization's least remainder, one lane a value.

    `pivots` and `slopes` get the pivots from the top and their derivatives; those from the bottom are kept for one row
    only, in `lanes`, and meet them on the way.
    """
    size, count = pivots.shape
    up, slope, least = lanes[0], lanes[1], lanes[2]
    for lane in range(count):
        pivot = diagonal[0] - values[lane]
        pivots[0, lane] = pivot if pivot != 0.0 else tiny
        slopes[0, lane] = -1.0
    for i in range(1, size):
        entry, square = diagonal[i], squares[i - 1]
        for lane in range(count):
            inverse = 1.0 / pivots[i - 1, lane]
            share = square * inverse
            pivot = entry - values[lane] - share
            pivots[i, lane] = pivot if pivot != 0.0 else tiny
            slopes[i, lane] = share * inverse * slopes[i - 1, lane] - 1.0
    for lane in range(count):
        pivot = diagonal[size - 1] - values[lane]
        up[lane] = pivot if pivot != 0.0 else tiny
        slope[lane] = -1.0
        least[lane] = abs(pivots[size - 1, lane])
        steps[lane] = -pivots[size - 1, lane] / slopes[size - 1, lane]
    for i in range(size - 2, -1, -1):
        entry, square = diagonal[i], squares[i]
        for lane in range(count):
            inverse = 1.0 / up[lane]
            share = square * inverse
            pivot = entry - values[lane] - share
            below = share * inverse * slope[lane] - 1.0
            remainder = pivots[i, lane] - share
            step = -remainder / (slopes[i, lane] + below + 1.0)
            less = abs(remainder) < least[lane]
            least[lane] = abs(remainder) if less else least[lane]
            steps[lane] = step if less else steps[lane]
            up[lane] = pivot if pivot != 0.0 else tiny
            slope[lane] = below
