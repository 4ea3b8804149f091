"""Matrices of low rank at observed cells, and sparse plus low-rank matrices, which stand for filled-in ones."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from algorithms.compilation import kernel
from algorithms.solvers.observed import Observed

__all__ = ["SparsePlusLowRank", "dot", "entries", "leading_triplets", "spectral_norm"]

FloatArray = NDArray[np.float64]
SMALL = 500  # shorter side up to which all eigenvalues of the Gram matrix are computed
SPARE = 10  # vectors beside those that are asked for
POWER_STEPS = 2
TOLERANCE = 1e-10  # of Lanczos iteration, relative


class SparsePlusLowRank(LinearOperator):
    """A matrix S + A B' that is never formed: a product with it costs what its parts cost.

    With S = P(X - A B') it is the matrix X with its missing cells filled in by A B', of which Soft-Impute takes the
    thresholded SVD (Hastie, Mazumder, Lee and Zadeh, "Matrix completion and low-rank SVD via fast alternating least
    squares", JMLR 16, 2015).

    Parameters
    ----------
    sparse : csr_array, shape (n_rows, n_columns)
        S.
    left, right : float64, shape (n_rows, rank) and (n_columns, rank)
        A and B.
    """

    def __init__(self, sparse: scipy.sparse.csr_array, left: FloatArray, right: FloatArray) -> None:
        super().__init__(np.dtype(np.float64), sparse.shape)  # type: ignore[call-arg]  # not in its stubs
        self.sparse, self.left, self.right = sparse, left, right

    def _matmat(self, Y: Any) -> Any:
        return self.sparse @ Y + self.left @ (self.right.T @ Y)

    def _rmatmat(self, Y: Any) -> Any:
        return self.sparse.T @ Y + self.right @ (self.left.T @ Y)

    def _matvec(self, y: Any) -> Any:
        return self._matmat(y.reshape(-1))

    def _rmatvec(self, y: Any) -> Any:
        return self._rmatmat(y.reshape(-1))


def entries(left: FloatArray, right: FloatArray, observed: Observed) -> FloatArray:
    """The matrix ``left @ right.T`` at the observed cells, float64, shape (n_observed,).

    Parameters
    ----------
    left, right : float64, shape (n_rows, rank) and (n_columns, rank)
    observed : Observed
    """
    content = np.empty(len(observed))
    _entries(np.ascontiguousarray(left), np.ascontiguousarray(right), observed.row, observed.column, content)
    return content


def leading_triplets(matrix: LinearOperator, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """About the largest singular values of a matrix and their vectors, from a random start that is always the same.

    Randomized subspace iteration: Halko, Martinsson and Tropp, "Finding structure with randomness" (SIAM Review 53,
    2011), algorithms 4.4 and 5.1.

    Parameters
    ----------
    matrix : LinearOperator, shape (n_rows, n_columns)
    count : int
        How many, at most the shorter side.

    Returns
    -------
    left, values, right : float64, shape (n_rows, count), (count,), (n_columns, count)
        Orthonormal vectors in columns; values descending.
    """
    n_rows, n_columns = matrix.shape
    width = min(count + SPARE, n_rows, n_columns)
    basis = np.linalg.qr(matrix.matmat(np.random.default_rng(0).standard_normal((n_columns, width))))[0]
    for _ in range(POWER_STEPS):
        basis = np.linalg.qr(matrix.rmatmat(basis))[0]
        basis = np.linalg.qr(matrix.matmat(basis))[0]
    right, values, turn = np.linalg.svd(matrix.rmatmat(basis), full_matrices=False)
    return (basis @ turn.T)[:, :count], values[:count], right[:, :count]


def spectral_norm(sparse: scipy.sparse.csr_array) -> tuple[float, float]:
    """Largest singular value of a sparse matrix, and a bound on the error of what is given.

    Where a side is short, it is the largest of all eigenvalues of the Gram matrix, and the error that of rounding.
    Otherwise it is found by Lanczos iteration from a start that is always the same, and the error is the norm of the
    residual: a singular value lies so near to what was found.

    Parameters
    ----------
    sparse : csr_array, shape (n_rows, n_columns)

    Returns
    -------
    norm, error : float
    """
    if not np.any(sparse.data):
        return 0.0, 0.0
    if min(sparse.shape) <= SMALL:
        wide = sparse.shape[0] <= sparse.shape[1]
        gram = (sparse @ sparse.T if wide else sparse.T @ sparse).toarray()
        norm = float(np.sqrt(np.linalg.eigvalsh(gram)[-1]))
        return norm, len(gram) * float(np.finfo(np.float64).eps) * norm
    start = np.random.default_rng(0).standard_normal(min(sparse.shape))
    u, s, vt = svds(sparse, k=1, v0=start, ncv=40, tol=TOLERANCE)
    norm, left, right = float(s[0]), u[:, 0], vt[0]
    residual = np.hypot(np.linalg.norm(sparse @ right - norm * left), np.linalg.norm(sparse.T @ left - norm * right))
    return norm, float(residual)


@kernel
def dot(a, b):
    """Inner product in eight partial sums, which the compiler makes vector instructions of; always the same bits."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    whole = a.shape[0] - a.shape[0] % 8
    for k in range(0, whole, 8):
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        s4 += a[k + 4] * b[k + 4]
        s5 += a[k + 5] * b[k + 5]
        s6 += a[k + 6] * b[k + 6]
        s7 += a[k + 7] * b[k + 7]
    total = ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))
    for k in range(whole, a.shape[0]):
        total += a[k] * b[k]
    return total


@kernel
def _entries(left, right, row, column, content):
    for n in range(content.shape[0]):
        content[n] = dot(left[row[n]], right[column[n]])
