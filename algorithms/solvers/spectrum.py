"""The largest eigenvalues of a symmetric matrix and their vectors, faster than all of them."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from algorithms.compilation import kernel

__all__ = ["Spectrum"]

FloatArray = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SKEW = 1e-6  # vectors whose inner products are below this become orthonormal to rounding in one step
NOTHING = 1e-40  # entries below this are 0: far below rounding, and arithmetic with denormal numbers is slow


class Spectrum:
    """Eigenvalues of a symmetric matrix, and the vectors of as many of the largest as are asked for.

    The matrix is reduced to tridiagonal form. A vector of that form comes from its eigenvalue alone, by the twisted
    factorization of Parlett and Dhillon ("Fernando's solution to Wilkinson's problem", 1997). Vectors of eigenvalues
    that lie close together then are not quite orthogonal; a step of Newton and Schulz mends it. Where the skew is too
    large for that, as with repeated eigenvalues, or many vectors are asked for, LAPACK's divide and conquer gives them.

    Parameters
    ----------
    lower : float64, shape (n, n) with n > 1, Fortran order
        The matrix, of which the lower triangle is read. It is overwritten.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
        All eigenvalues, descending.
    """

    def __init__(self, lower: FloatArray) -> None:
        room = int(lapack.dsytrd_lwork(len(lower), lower=1)[0])
        parts = lapack.dsytrd(lower, lower=1, lwork=room, overwrite_a=1)
        self._reflectors, self._diagonal, self._beside, self._scales, info = parts
        _check(info, "dsytrd")
        ascending, info = lapack.dsterf(self._diagonal, self._beside)
        _check(info, "dsterf")
        self.values: FloatArray = ascending[::-1]

    def leading(self, count: int) -> FloatArray:
        """Orthonormal vectors of the `count` largest eigenvalues, float64, shape (n, count), Fortran order."""
        size = len(self.values)
        count = min(count, size)
        if count == 0:
            return np.empty((size, 0), order="F")
        chosen = self._twisted(count) if 2 * count <= size else None
        if chosen is None:
            chosen = self._divided(count)
        below = np.asfortranarray(self._reflectors[1:, :-1])
        turned, _, info = lapack.dormqr("L", "N", below, self._scales, chosen[1:], lwork=64 * size)
        _check(info, "dormqr")
        chosen[1:] = turned
        return chosen

    def _divided(self, count: int) -> FloatArray:
        """Vectors of the tridiagonal form, all computed."""
        _, vectors, info = lapack.dstevd(self._diagonal, self._beside, compute_v=1)
        _check(info, "dstevd")
        return np.asfortranarray(vectors[:, ::-1][:, :count])

    def _twisted(self, count: int) -> FloatArray | None:
        """Vectors of the tridiagonal form, each from its eigenvalue; None where they are not good enough."""
        size, values = len(self.values), np.ascontiguousarray(self.values[:count])
        least = np.full(count, np.inf)
        twist = np.zeros(count, dtype=np.int64)
        down, up, vectors = (np.empty((size, count)) for _ in range(3))
        tiny = EPS * EPS * max(float(np.abs(self.values).max()), np.finfo(np.float64).tiny / EPS**3)
        _factorize(self._diagonal, self._beside, values, tiny, down, up, least, twist)
        _solve(self._beside, down, up, twist, vectors)
        norms = np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
        chosen = np.asfortranarray(vectors / norms)
        overlap = blas.dsyrk(1.0, chosen, trans=1, lower=1)
        skew = np.abs(np.tril(overlap) - np.eye(count)).max()
        residual = (least / norms).max()
        if not (skew < SKEW and residual <= 64 * EPS * abs(self.values[0])):  # NaN is neither
            return None
        return np.asfortranarray(blas.dsymm(-0.5, overlap, chosen, beta=1.5, c=chosen, side=1, lower=1))


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
