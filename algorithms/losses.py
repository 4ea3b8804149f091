"""Robust losses of the second seed paper, section 2.4: what an error of a rating costs."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Loss", "LossName", "default_constant"]

FloatArray = NDArray[np.float64]
LossName = Literal["pseudo_huber", "absolute", "truncated"]


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss rho of an error y on the rating scale.

    - ``pseudo_huber``: tau^2 (sqrt(1 + (y / tau)^2) - 1), quadratic near 0 and linear far out;
    - ``absolute``: abs(y);
    - ``truncated``: min(abs(y), tau), in which no error costs more than tau.

    Parameters
    ----------
    name : {"pseudo_huber", "absolute", "truncated"}
    constant : float or array_like
        tau > 0; an array is matched to the errors by the rules of numpy. Not used by ``absolute``.

    Raises
    ------
    ValueError
        If the name is another, or a constant is not a finite number > 0.
    """

    name: LossName
    constant: Any = 1.0

    def __post_init__(self) -> None:
        if self.name not in ("pseudo_huber", "absolute", "truncated"):
            raise ValueError(f"loss must be 'pseudo_huber', 'absolute' or 'truncated', got {self.name!r}")
        constant = np.asarray(self.constant, dtype=np.float64)
        if not (np.isfinite(constant).all() and (constant > 0).all()):
            raise ValueError(f"loss_constant must be finite and > 0, got {self.constant!r}")

    def __call__(self, error: ArrayLike) -> FloatArray:
        """The loss of each error, float64, of their shape."""
        y = np.asarray(error, dtype=np.float64)
        tau = np.asarray(self.constant, dtype=np.float64)
        if self.name == "absolute":
            return np.abs(y)
        if self.name == "truncated":
            return np.minimum(np.abs(y), tau)
        return np.asarray(tau**2 * (np.sqrt(1.0 + (y / tau) ** 2) - 1.0))


def default_constant(name: LossName, categories: FloatArray) -> float:
    """The constant tau that the paper suggests for a rating scale.

    Parameters
    ----------
    name : {"pseudo_huber", "absolute", "truncated"}
    categories : float64, shape (n_categories,)
        The scale. The pseudo-Huber loss gets its mean step, the truncated one half its range; 1 for one category.
    """
    spread = float(categories.max() - categories.min())
    if spread == 0 or name == "absolute":
        return 1.0
    return spread / (len(categories) - 1) if name == "pseudo_huber" else spread / 2
