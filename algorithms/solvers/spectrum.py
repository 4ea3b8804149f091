"""The largest eigenvalues of a symmetric matrix and their vectors, faster than all of them."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from algorithms.compilation import kernel
from algorithms.solvers.tridiagonal import eigenvalues, eigenvalues_above, reach

__all__ = ["Spectrum"]

FloatArray = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SKEW = 1e-6  # vectors whose inner products are below this become orthonormal to rounding in one step
NOTHING = 1e-40  # entries below this are 0: far below rounding, and arithmetic with denormal numbers is slow
# Columns that dsytrd reduces before it updates the rest. Most of its time goes into reading the matrix once a column,
# whatever the panel. In a narrow one the other products, four a column, are too small for OpenBLAS to share out (9,216
# entries): so threads meet once a column, not five times, which costs most where other processes use the cores too.
PANEL = 8
REFLECTORS = 48  # applied to the vectors at once


class Spectrum:
    """Eigenvalues of a symmetric matrix, and the vectors of as many of the largest as are asked for.

    The matrix is reduced to tridiagonal form, whose largest eigenvalues are found (`algorithms.solvers.tridiagonal`). A
    vector of that form comes from its eigenvalue alone, by the twisted factorization of Parlett and Dhillon
    ("Fernando's solution to Wilkinson's problem", 1997). Vectors of eigenvalues that lie close together then are not
    quite orthogonal; a step of Newton and Schulz mends it. Where the skew is too large for that, as with repeated
    eigenvalues, or many vectors are asked for, LAPACK's divide and conquer gives them.

    Parameters
    ----------
    lower : float64, shape (n, n) with n > 1, Fortran order
        The matrix, of which the lower triangle is read. It is overwritten.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not finite, or so large that its tridiagonal form is not.
    """

    def __init__(self, lower: FloatArray) -> None:
        parts = lapack.dsytrd(lower, lower=1, lwork=PANEL * len(lower), overwrite_a=1)
        self._reflectors, self._diagonal, self._beside, self._scales, info = parts
        _check(info, "dsytrd")
        self._reach = reach(self._diagonal, self._beside)
        if not np.isfinite(self._reach):
            raise np.linalg.LinAlgError("the matrix has entries that are not finite or too large, expected finite ones")
        self._found = np.empty(0)

    @cached_property
    def values(self) -> FloatArray:
        """All eigenvalues, descending, float64, shape (n,)."""
        return eigenvalues(self._diagonal, self._beside)

    def above(self, floor: float) -> FloatArray:
        """The eigenvalues above a number, descending; faster than all of them."""
        self._found = eigenvalues_above(self._diagonal, self._beside, floor)
        return self._found

    def leading(self, count: int) -> FloatArray:
        """Orthonormal vectors of the `count` largest eigenvalues, float64, shape (n, count), C order."""
        size = len(self._diagonal)
        count = min(count, size)
        if count == 0:
            return np.empty((size, 0))
        chosen = self._twisted(count) if 2 * count <= size else None
        if chosen is None:
            chosen = self._divided(count)
        _reflect(chosen, self._reflectors, self._scales)
        return chosen

    def _divided(self, count: int) -> FloatArray:
        """Vectors of the tridiagonal form, all computed."""
        _, vectors, info = lapack.dstevd(self._diagonal, self._beside, compute_v=1)
        _check(info, "dstevd")
        return np.ascontiguousarray(vectors[:, ::-1][:, :count])

    def _twisted(self, count: int) -> FloatArray | None:
        """Vectors of the tridiagonal form, each from its eigenvalue; None where they are not good enough."""
        values = np.ascontiguousarray((self._found if count <= len(self._found) else self.values)[:count])
        size = len(self._diagonal)
        least = np.full(count, np.inf)
        twist = np.zeros(count, dtype=np.int64)
        down, up, vectors = (np.empty((size, count)) for _ in range(3))
        tiny = EPS * EPS * max(self._reach, np.finfo(np.float64).tiny / EPS**3)
        _factorize(self._diagonal, self._beside, values, tiny, down, up, least, twist)
        _solve(self._beside, down, up, twist, vectors)
        norms = np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
        vectors /= norms
        overlap = blas.dsyrk(1.0, vectors.T, lower=1)
        skew = np.abs(np.tril(overlap) - np.eye(count)).max()
        residual = (least / norms).max()
        if not (skew < SKEW and residual <= 64 * EPS * abs(values[0])):  # NaN is neither
            return None
        # BLAS takes the vectors as rows in Fortran order.
        straight = blas.dsymm(-0.5, overlap, vectors.T, beta=1.5, c=vectors.T, lower=1)
        return np.asarray(straight.T)


def _reflect(vectors: FloatArray, reflectors: FloatArray, scales: FloatArray) -> None:
    """Turn vectors of the tridiagonal form into those of the matrix, in place: apply the reflectors of dsytrd.

    A product of reflectors is I - V T V', and the inverse of T is the upper triangle of V'V with 1/scale on the
    diagonal (Puglisi, "Modification of the Householder method based on the compact WY representation", 1992). So no
    more than products of matrices are needed, where LAPACK's dormqr builds T column by column.

    Parameters
    ----------
    vectors : float64, shape (n, count), C order
    reflectors : float64, shape (n, n)
        Reflector j stands below row j + 1 of column j, where it is 1.
    scales : float64, shape (n - 1,)
        0 for a reflector that changes nothing.
    """
    rows = vectors.T
    for first in reversed(range(0, len(scales), REFLECTORS)):
        part, scale = rows[:, first + 1 :], scales[first : first + REFLECTORS]
        block = np.asfortranarray(reflectors[first + 1 :, first : first + len(scale)])
        top = block[: len(scale)]
        top[...] = np.tril(top, -1)
        np.fill_diagonal(top, 1.0)
        if not scale.all():
            block, scale = np.asfortranarray(block[:, scale != 0]), scale[scale != 0]
        inverse = blas.dsyrk(1.0, block, trans=1)
        np.fill_diagonal(inverse, 1 / scale)
        inner = blas.dtrsm(1.0, inverse, blas.dgemm(1.0, part, block), side=1, trans_a=1, overwrite_b=1)
        blas.dgemm(-1.0, inner, block, trans_b=1, beta=1.0, c=part, overwrite_c=1)


def _check(info: int, routine: str) -> None:
    if info != 0:
        raise np.linalg.LinAlgError(f"LAPACK's {routine} gave info={info}; check that the matrix is finite")


@kernel
def _factorize(diagonal, beside, values, tiny, down, up, least, twist):
    """Pivots of T - value from the top and from the bottom, and the row where both meet with the least remainder.

    Pivots are kept by row, one lane an eigenvalue, so that the inner loops take several at once.
    """
    size, count = down.shape
    for lane in range(count):
        pivot = diagonal[0] - values[lane]
        down[0, lane] = pivot if pivot != 0.0 else tiny
        pivot = diagonal[size - 1] - values[lane]
        up[size - 1, lane] = pivot if pivot != 0.0 else tiny
    for i in range(1, size):
        square = beside[i - 1] * beside[i - 1]
        for lane in range(count):
            pivot = diagonal[i] - values[lane] - square / down[i - 1, lane]
            down[i, lane] = pivot if pivot != 0.0 else tiny
    for i in range(size - 2, -1, -1):
        square = beside[i] * beside[i]
        for lane in range(count):
            pivot = diagonal[i] - values[lane] - square / up[i + 1, lane]
            up[i, lane] = pivot if pivot != 0.0 else tiny
    for i in range(size):
        for lane in range(count):
            remainder = abs(down[i, lane] + up[i, lane] - (diagonal[i] - values[lane]))
            if remainder < least[lane]:
                least[lane] = remainder
                twist[lane] = i


@kernel
def _solve(beside, down, up, twist, vectors):
    """Vectors with 1 in the row of the twist, from there to the top by one set of pivots, to the end by the other."""
    size, count = vectors.shape
    for i in range(size - 1, -1, -1):
        for lane in range(count):
            above = -beside[i] / down[i, lane] * vectors[i + 1, lane] if i + 1 < size else 0.0
            above = above if abs(above) > NOTHING else 0.0
            vectors[i, lane] = 1.0 if i == twist[lane] else (above if i < twist[lane] else 0.0)
    for i in range(1, size):
        for lane in range(count):
            below = -beside[i - 1] / up[i, lane] * vectors[i - 1, lane]
            below = below if abs(below) > NOTHING else 0.0
            vectors[i, lane] = below if i > twist[lane] else vectors[i, lane]
