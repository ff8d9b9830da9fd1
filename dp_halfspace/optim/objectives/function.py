"""What a solver asks of an objective, and the terms that all objectives share.

Objectives are on the scale of the sum over records: a sum of losses, a ridge
``ridge / 2 ||w||^2`` and a linear term ``<linear, w>``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design

# Largest number of coefficients for which a dense Hessian is formed.
MAX_DENSE = 512
_RUN = 64


class Objective(Protocol):
    """A smooth, strongly convex function, as the minimisers see it.

    No member may warn or raise because of the data; a value beyond the largest double is
    infinite or not a number.
    """

    @property
    def size(self) -> int:
        """Number of coefficients."""

    @property
    def n_records(self) -> int:
        """Number of records in the sum."""

    @property
    def ridge(self) -> float:
        """Modulus of strong convexity, positive."""

    @property
    def initial_gap(self) -> float:
        """Bound on ``J(0)`` minus the minimum."""

    @property
    def gradient_lipschitz(self) -> float:
        """Bound on the largest eigenvalue of every Hessian."""

    def value_and_gradient(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return ``J(w)`` and its gradient."""

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return the gradient."""

    def hessian(self, w: FloatArray) -> FloatArray:
        """Return a (generalised) Hessian; called only if `size` is at most `MAX_DENSE`."""

    def hessian_product(self, w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the product of a (generalised) Hessian at `w` with a vector, as a function."""

    def subsample(self, n_rows: int) -> Objective | None:
        """Return an objective that resembles this one, of about `n_rows` records.

        Their weights are scaled up. None when it would not be much cheaper.
        """


class OverRows:
    """The sizes of an objective that is made of rows."""

    __slots__ = ()
    rows: Design

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self.rows.shape[0]

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.rows.shape[1]


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
