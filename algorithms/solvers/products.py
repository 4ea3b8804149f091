"""Products by the one BLAS whose LAPACK the thresholded SVD calls.

NumPy and SciPy each bring their own, whose threads go on waiting busily for a while: one call of NumPy's, of any size
that it shares out, takes a core from SciPy's for a tenth of a second. So what runs between the calls of SciPy's uses it
too.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

__all__ = ["inner", "norm", "times"]

FloatArray = NDArray[np.float64]


def times(X: FloatArray, Y: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """X @ Y.

    Parameters
    ----------
    X, Y : float64, shape (m, n) and (n, k)
    out : float64, shape (m, k), Fortran order, optional
        Gets the product.
    """
    (x, trans_x), (y, trans_y) = ((each, 0) if each.flags.f_contiguous else (each.T, 1) for each in (X, Y))
    return np.asarray(blas.dgemm(1.0, x, y, trans_a=trans_x, trans_b=trans_y, c=out, overwrite_c=out is not None))


def inner(X: FloatArray, Y: FloatArray) -> float:
    """Sum of the products of the entries of two arrays.

    Parameters
    ----------
    X, Y : float64, of one shape, contiguous and in the same order
    """
    return float(blas.ddot(X.ravel(order="K"), Y.ravel(order="K"))) if X.size else 0.0


def norm(X: FloatArray) -> float:
    """Frobenius norm.

    Parameters
    ----------
    X : float64, contiguous
    """
    return float(blas.dnrm2(X.ravel(order="K"))) if X.size else 0.0
