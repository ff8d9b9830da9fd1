"""What the objectives share: the ridge, the linear term and the choice of a subsample."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_DENSE", "check_terms", "depth", "finish", "spread"]

FloatArray: TypeAlias = NDArray[np.float64]

# Largest number of coefficients for which a dense Hessian is formed.
MAX_DENSE = 512
_RUN = 64


def check_terms(ridge: float, linear: FloatArray | None, size: int) -> None:
    """Refuse terms that do not make a strongly convex function of the right size."""
    if not 0.0 < ridge < math.inf:
        raise ValueError("ridge must be positive and finite")
    if linear is not None and linear.shape != (size,):
        raise ValueError("linear must have one entry per coefficient")


def finish(
    total: float, gradient: FloatArray, w: FloatArray, ridge: float, linear: FloatArray | None
) -> tuple[float, FloatArray]:
    """Add the ridge and the linear term to value and gradient."""
    gradient = gradient + ridge * w
    value = total + 0.5 * ridge * float(w @ w)
    if linear is not None:
        gradient += linear
        value += float(linear @ w)
    return value, gradient


def depth(linear: FloatArray | None, ridge: float) -> float:
    """Bound minus the minimum of the terms that may be negative."""
    return 0.0 if linear is None else float(linear @ linear) / (2.0 * ridge)


def spread(n: int, n_rows: int) -> NDArray[np.intp] | None:
    """Return the numbers of about `n_rows` rows in evenly spaced runs.

    At most a quarter of all; None when that is less than half of what was asked for.
    """
    runs = min(-(-n_rows // _RUN), n // (4 * _RUN))
    if 2 * runs * _RUN < n_rows:
        return None
    starts = np.linspace(0, n - _RUN, runs).astype(np.intp)
    return (starts[:, None] + np.arange(_RUN)).ravel()
