"""The thresholded SVD: the step that RDMC and Soft-Impute spend their time in, in one place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, eigh, lapack, qr

from algorithms.solvers.products import norm, times
from algorithms.solvers.spectrum import Spectrum

__all__ = ["Method", "ThresholdedSVD", "Thresholder", "largest_singular_value"]

FloatArray = NDArray[np.float64]
Method = Literal["auto", "full", "gram", "subspace"]

SMALL = 96  # short side up to which the full SVD costs no more than the ways around it
N_PROBES = 16
# The Frobenius norm of a matrix is below `CAUTION` times its estimate from so many probes, but for one case in 5,000 at
# worst: that of rank one, where the square of the estimate is a chi-squared variable with 16 degrees of freedom.
CAUTION = 2.5
FEW = 12  # subspace iteration is for ranks up to this part of the shorter side
DEGREE = 4  # of the polynomial in one round of subspace iteration
MAX_ROUNDS = 6
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ThresholdedSVD:
    """The part of an SVD whose singular values exceed a threshold: ``left * weights @ right.T`` is the result.

    Attributes
    ----------
    left : ndarray of float64, shape (n_rows, rank)
        Left singular vectors, in columns.
    right : ndarray of float64, shape (n_columns, rank)
        Right singular vectors, in columns.
    values : ndarray of float64, shape (rank,)
        Singular values that passed, descending.
    threshold : float
    method : {"full", "gram", "subspace"}
        How it was computed.
    error : float
        Bound on the Frobenius norm of the distance between ``matrix()`` and the exact thresholded SVD.
    close : bool
        Whether a value lies so near the cut that rounding may have decided on which side it falls.
    """

    left: FloatArray
    right: FloatArray
    values: FloatArray
    threshold: float
    method: str
    error: float
    close: bool

    @property
    def rank(self) -> int:
        """Number of singular values that passed."""
        return len(self.values)

    @property
    def weights(self) -> FloatArray:
        """Values less the threshold."""
        return self.values - self.threshold

    @property
    def nuclear_norm(self) -> float:
        """Sum of the weights, which is the nuclear norm of the result."""
        return float(self.weights.sum())

    def matrix(self, out: FloatArray | None = None) -> FloatArray:
        """The thresholded matrix, float64, shape (n_rows, n_columns), C order; in `out` where it is given."""
        filled = np.empty((len(self.left), len(self.right))) if out is None else out
        if self.rank == 0:
            filled[...] = 0.0
            return filled
        if self.method == "full":
            np.matmul(self.left * self.weights, self.right.T, out=filled)
            return filled
        # BLAS thinks in Fortran order, in which the C-ordered result is its own transpose.
        product = times(self.right, (self.left * self.weights).T, out=filled.T)
        if not np.shares_memory(product, filled):
            filled[...] = product.T
        return filled


class Thresholder:
    """Computes thresholded SVDs of matrices of one shape, each by the cheapest way that is exact enough.

    Three ways, which agree within the error that each reports:

    - ``full``: LAPACK's SVD (`numpy.linalg.svd`). For small matrices, and where the others are too inexact.
    - ``gram``: eigenvectors of the Gram matrix of the shorter side. All its eigenvalues are found, and
      the vectors of those that pass (`algorithms.solvers.spectrum`). Squaring loses digits: the error
      grows as (largest value)^2 / threshold, so it is used where that times the unit roundoff is far below `accuracy`.
    - ``subspace``: where few values passed in the last call, its vectors and some more start a subspace iteration on
      the Gram matrix, with Chebyshev polynomials that damp all below. It ends when its residuals are as small as
      those of ``gram``. That no value was missed is then proved: what the Gram matrix exceeds the part found by must
      be below the cut, which a Cholesky factorization shows. Where that fails, or convergence is slow, ``gram`` does
      it.

    The error is bounded after the fact. Let U, d, V be what was computed, with A V = U d. Then A - U (A'U - V d)' has
    exactly these singular triplets, and thresholding singular values never moves two matrices apart. So
    ``||A'U - V d||_F`` bounds the distance to the exact result, up to the loss of orthogonality of U and V, which is
    added. The norms are estimated with a few random probes, times a factor that makes an estimate too low rare.

    Parameters
    ----------
    method : {"auto", "full", "gram", "subspace"}
        "subspace" uses ``gram`` where it has to; "auto" chooses between all.
    keep_above : float
        A value passes when it exceeds the threshold by more than this.
    max_rank : int, optional
        Keep at most so many values. All by default.
    accuracy : float
        Error (Frobenius norm, in the unit of the matrix) above which "auto" turns to the full SVD.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    def __init__(
        self,
        *,
        method: Method = "auto",
        keep_above: float = 0.0,
        max_rank: int | None = None,
        accuracy: float = 1e-8,
    ) -> None:
        if method not in ("auto", "full", "gram", "subspace"):
            raise ValueError(f"svd must be 'auto', 'full', 'gram' or 'subspace', got {method!r}")
        if not keep_above >= 0:
            raise ValueError(f"keep_above must be >= 0, got {keep_above!r}")
        if max_rank is not None and (
            isinstance(max_rank, bool) or not isinstance(max_rank, int | np.integer) or max_rank < 1
        ):
            raise ValueError(f"max_rank must be an integer >= 1 or None, got {max_rank!r}")
        self.method = method
        self.keep_above = keep_above
        self.max_rank = max_rank
        self.accuracy = accuracy
        self._warm: FloatArray | None = None  # vectors of the shorter side that passed last, and some more
        self._last_rank = 0

    def __call__(self, A: FloatArray, threshold: float) -> ThresholdedSVD:
        """Threshold the singular values of `A`.

        Parameters
        ----------
        A : float64, shape (n_rows, n_columns), C order
        threshold : float
            Subtracted from each singular value, >= 0.
        """
        if not threshold >= 0:
            raise ValueError(f"threshold must be >= 0, got {threshold!r}")
        if self.method == "full" or min(A.shape) <= (SMALL if self.method == "auto" else 2):
            return self._full(A, threshold)
        found = self._squared(A, threshold)
        if found is None or (self.method == "auto" and (found.close or found.error > self.accuracy)):
            return self._full(A, threshold)
        return found

    def _full(self, A: FloatArray, threshold: float) -> ThresholdedSVD:
        U, d, Vt = np.linalg.svd(A, full_matrices=False)
        rank, close = self._cut(d, threshold, 8 * EPS * d[0])
        left, right = np.asfortranarray(U[:, :rank]), Vt[:rank].T
        error = _error(A, left, d[:rank], right, threshold, multiply=np.matmul)
        return ThresholdedSVD(left, right, d[:rank], threshold, "full", error, close)

    def _squared(self, A: FloatArray, threshold: float) -> ThresholdedSVD | None:
        """By way of the Gram matrix; None where its digits do not suffice for a bound."""
        n, p = A.shape
        tall = n >= p
        gram = blas.dsyrk(1.0, A.T, trans=0 if tall else 1, lower=1)
        own, method, close = None, "subspace", False
        if self.method != "gram" and self._warm is not None and self.max_rank is None:
            own = self._iterated(gram, threshold)
        if own is None:
            method = "gram"
            if threshold <= 0:
                return None
            spectrum = Spectrum(gram)
            # Down to where a value is not even close: rounding below moves no value by more than the accuracy.
            floor = max(threshold + self.keep_above - 2 * self.accuracy, 0.0)
            descending = np.sqrt(np.maximum(spectrum.above(floor**2), 0.0))
            digits = 8 * EPS * max(descending[:1], default=0.0) ** 2  # absolute error of an eigenvalue
            if digits > self.accuracy * threshold:
                return None
            rank, close = self._cut(descending, threshold, digits / threshold)
            few = rank <= min(A.shape) // FEW
            self._warm = np.asfortranarray(spectrum.leading(rank + _spare(rank))) if few else None
            own = spectrum.leading(rank) if self._warm is None else np.asfortranarray(self._warm[:, :rank])
        self._last_rank = own.shape[1]
        other = times(A if tall else A.T, own) if own.size else np.zeros((n if tall else p, 0))
        values = np.sqrt(np.einsum("ij,ij->j", other, other))
        other /= values
        left, right = (other, own) if tall else (own, other)
        error = _error(A, left, values, right, threshold, multiply=times)
        return ThresholdedSVD(left, right, values, threshold, method, error, close)

    def _cut(self, values: FloatArray, threshold: float, uncertainty: float) -> tuple[int, bool]:
        """How many of the descending values pass, and whether rounding might have decided it."""
        excess = values - threshold - self.keep_above
        rank = int(np.count_nonzero(excess > 0))
        if self.max_rank is not None:
            rank = min(rank, self.max_rank)
        return rank, bool((np.abs(excess) < uncertainty).any())

    def _iterated(self, gram: FloatArray, threshold: float) -> FloatArray | None:
        """Eigenvectors that pass, by subspace iteration from the last ones; None where it does not converge soon."""
        assert self._warm is not None
        cut = (threshold + self.keep_above) ** 2
        if self._last_rank == 0 and _all_below(gram, cut, self._warm[:, :0], np.empty(0)):
            return self._warm[:, :0]
        vectors = _widened(self._warm, self._last_rank + _spare(self._last_rank))
        for _ in range(MAX_ROUNDS):
            ritz, vectors, image = _rayleigh_ritz(gram, vectors)
            rank = int(np.count_nonzero(ritz > cut))
            if rank + _spare(0) > len(ritz):
                return None
            kept = slice(0, rank)
            residual = image[:, kept] - vectors[:, kept] * ritz[kept]
            if norm(residual) <= 4 * EPS * ritz[0] * np.sqrt(len(gram)):
                break
            vectors = _orthonormal(_filtered(gram, vectors, float(ritz[-1])))
        else:
            return None
        found = np.asfortranarray(vectors[:, kept])
        doubtful = rank and ritz[rank - 1] <= cut + _slack(gram, ritz[0])
        if doubtful or not _all_below(gram, cut, found, ritz[kept]):
            return None
        self._warm = vectors
        return found


def _spare(rank: int) -> int:
    """Vectors to iterate beside those that pass: they keep what does not pass away, and take in what comes to."""
    return 8 + rank // 2


def _widened(vectors: FloatArray, width: int) -> FloatArray:
    """Orthonormal vectors, `width` in number, the first of which span what is given."""
    missing = width - vectors.shape[1]
    if missing <= 0:
        return vectors[:, :width]
    more = np.random.default_rng(0).standard_normal((len(vectors), missing))
    return _orthonormal(np.hstack([vectors, more]))


def _rayleigh_ritz(gram: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ritz values, descending, Ritz vectors and their images in the span of orthonormal vectors."""
    image = blas.dsymm(1.0, gram, vectors, lower=1)
    values, turn = eigh(times(vectors.T, image), driver="evd", check_finite=False)
    turn = np.asfortranarray(turn[:, ::-1])
    return values[::-1], times(vectors, turn), times(image, turn)


def _orthonormal(vectors: FloatArray) -> FloatArray:
    basis, _ = qr(vectors, mode="economic", check_finite=False)
    return np.asfortranarray(basis)


def _filtered(gram: FloatArray, vectors: FloatArray, bound: float) -> FloatArray:
    """Chebyshev polynomial of the Gram matrix, bounded by 1 on [0, bound] and growing fast beyond, times vectors."""
    if bound <= 0:
        return np.asarray(blas.dsymm(1.0, gram, vectors, lower=1))
    half = bound / 2
    before, now = vectors, blas.dsymm(1 / half, gram, vectors, lower=1) - vectors
    for _ in range(1, DEGREE):
        after = blas.dsymm(2 / half, gram, now, lower=1)
        after -= 2 * now
        after -= before
        before, now = now, after
    return np.asarray(now)


def _slack(gram: FloatArray, largest: float) -> float:
    """What rounding may add to an eigenvalue, or take from it, where the largest one is of this size."""
    return 8 * EPS * len(gram) * largest


def _all_below(gram: FloatArray, cut: float, vectors: FloatArray, values: FloatArray) -> bool:
    """Whether all eigenvalues but as many as are given are below `cut`, proved by a Cholesky factorization."""
    slack = _slack(gram, max(cut, values[0] if values.size else 0.0))
    left = -gram if not values.size else blas.dsyrk(1.0, vectors * np.sqrt(values), beta=1.0, c=-gram, lower=1)
    left[np.diag_indices_from(left)] += cut - slack
    _, info = lapack.dpotrf(left, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)


def _error(
    A: FloatArray,
    left: FloatArray,
    values: FloatArray,
    right: FloatArray,
    threshold: float,
    *,
    multiply: Callable[[FloatArray, FloatArray], FloatArray],
) -> float:
    """Bound on the distance of a thresholded SVD from the exact one, Frobenius norm; see `Thresholder`."""
    rank = len(values)
    if rank == 0:
        return 0.0
    probes = np.random.default_rng(0).standard_normal((rank, N_PROBES))
    scaled = values[:, None] * probes
    both = np.hstack([probes, scaled])
    (left_plain, left_scaled), (right_plain, right_scaled) = (
        np.hsplit(multiply(vectors, both), 2) for vectors in (left, right)
    )
    parts = (
        multiply(A, right_plain) - left_scaled,
        multiply(A.T, left_plain) - right_scaled,
        multiply(left.T, left_scaled) - scaled,
        multiply(right.T, right_scaled) - scaled,
    )
    estimate = sum(norm(part) for part in parts) / np.sqrt(N_PROBES)
    return float(CAUTION * estimate + EPS * norm(values - threshold))


def largest_singular_value(A: FloatArray) -> float:
    """The largest singular value of a matrix.

    Parameters
    ----------
    A : float64, shape (n_rows, n_columns)
    """
    if min(A.shape) <= SMALL:
        return float(np.linalg.svd(A, compute_uv=False)[0])
    n, p = A.shape
    gram = blas.dsyrk(1.0, np.ascontiguousarray(A).T, trans=0 if n >= p else 1, lower=1)
    return float(np.sqrt(max(float(Spectrum(gram).values[0]), 0.0)))
