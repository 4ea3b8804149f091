"""Ridge regressions of all rows of a matrix on the profiles of its columns, by a few steps of conjugate gradients."""

import numpy as np
from numpy.typing import NDArray

from algorithms.compilation import kernel
from algorithms.ratings import Rows
from algorithms.solvers.low_rank import dot

__all__ = ["improve_side"]

FloatArray = NDArray[np.float64]


def improve_side(
    rows: Rows, value: FloatArray, others: FloatArray, own: FloatArray, *, penalty: float, steps: int
) -> float:
    """Bring the profiles `own` of one side nearer to the best ones for the profiles `others` of the other.

    For each row i on its own,

        min over u_i of 1/2 sum over observed j (x_ij - u_i'v_j)^2 + penalty/2 ||u_i||^2

    is improved by conjugate gradients from the u_i that stands there; no step can raise it. A step costs what
    computing the residuals costs, and the normal equations are not formed: Hu, Koren and Volinsky (ICDM 2008) in the
    form of Takacs, Pilaszy and Tikk (RecSys 2011).

    Parameters
    ----------
    rows : Rows
        The cells, grouped by this side.
    value : float64, shape (n_observed,)
        What stands in them, in the order of `rows`.
    others, own : float64, shape (n_others, rank) and (n_rows, rank), C order
        `own` is changed in place.
    penalty : float
        > 0.
    steps : int
        Of conjugate gradients; as many as `own` has columns would solve it.

    Returns
    -------
    float
        The sum of all rows' minima reached: half the squared error plus the penalty of `own`.
    """
    return float(_improve(rows.start, rows.index, value, others, own, penalty, steps, np.empty((3, own.shape[1]))))


@kernel
def _improve(start, index, value, others, own, penalty, steps, room):
    """Improve each row; a step lowers its objective by half of (step length) x (squared residual)."""
    residual, direction, image = room[0], room[1], room[2]
    rank = own.shape[1]
    total = 0.0
    for i in range(own.shape[0]):
        u = own[i]
        for k in range(rank):
            residual[k] = -penalty * u[k]
        squares = penalty * dot(u, u)
        for n in range(start[i], start[i + 1]):
            v = others[index[n]]
            error = value[n] - dot(u, v)
            squares += error * error
            for k in range(rank):
                residual[k] += error * v[k]
        total += squares / 2
        length = dot(residual, residual)
        for k in range(rank):
            direction[k] = residual[k]
        for _ in range(steps):
            if length <= 1e-300:
                break
            for k in range(rank):
                image[k] = penalty * direction[k]
            for n in range(start[i], start[i + 1]):
                v = others[index[n]]
                along = dot(direction, v)
                for k in range(rank):
                    image[k] += along * v[k]
            step = length / dot(direction, image)
            total -= step * length / 2
            for k in range(rank):
                u[k] += step * direction[k]
                residual[k] -= step * image[k]
            before, length = length, dot(residual, residual)
            for k in range(rank):
                direction[k] = residual[k] + length / before * direction[k]
    return total
