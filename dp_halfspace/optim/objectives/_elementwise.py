"""Elementwise functions of the margin and their derivatives.

Written so that no argument up to 1e300 in absolute value cancels or produces a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FloatArray",
    "Function",
    "constant",
    "hinge",
    "hinge_slope",
    "ramp",
    "ramp_curvature",
    "ramp_slope",
    "softplus",
    "softplus_curvature",
    "softplus_slope",
    "squared",
    "squared_hinge",
    "squared_hinge_curvature",
    "squared_hinge_slope",
    "squared_slope",
]

FloatArray: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Any], FloatArray]


def softplus(t: Any, shift: float) -> FloatArray:
    """Return log(1 + exp(shift - t))."""
    x = shift - np.asarray(t, dtype=np.float64)
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def softplus_slope(t: Any, shift: float) -> FloatArray:
    """Return minus the logistic function of `shift - t`."""
    # exp may overflow to inf, and -1 / inf = 0 is then the right answer.
    with np.errstate(over="ignore"):
        return np.asarray(-1.0 / (1.0 + np.exp(np.asarray(t, dtype=np.float64) - shift)))


def softplus_curvature(t: Any, shift: float) -> FloatArray:
    """Return the derivative of the logistic function, without cancellation."""
    e = np.exp(-np.abs(np.asarray(t, dtype=np.float64) - shift))
    return np.asarray(e / (1.0 + e) ** 2)


def ramp(t: Any, knot: float, width: float) -> FloatArray:
    """Return a parabola of the given width up to the knot, then straight."""
    x = knot - np.asarray(t, dtype=np.float64)
    inner = np.clip(x, 0.0, width)
    return np.asarray(inner * inner / (2.0 * width) + np.maximum(x - width, 0.0))


def ramp_slope(t: Any, knot: float, width: float) -> FloatArray:
    """Return the slope of :func:`ramp`."""
    return np.asarray(-np.clip((knot - np.asarray(t, dtype=np.float64)) / width, 0.0, 1.0))


def ramp_curvature(t: Any, knot: float, width: float) -> FloatArray:
    """Return the second derivative of :func:`ramp`, 0 at its two ends."""
    x = knot - np.asarray(t, dtype=np.float64)
    return np.asarray(((x > 0.0) & (x < width)) / width)


def hinge(t: Any) -> FloatArray:
    """Return max(0, 1 - t)."""
    return np.asarray(np.maximum(1.0 - np.asarray(t, dtype=np.float64), 0.0))


def hinge_slope(t: Any) -> FloatArray:
    """Return the subgradient of the hinge that is 0 at the kink."""
    return np.asarray(-(np.asarray(t, dtype=np.float64) < 1.0).astype(np.float64))


def constant(value: float) -> Function:
    """Return the constant function, in a form that pickles."""
    return partial(np.full_like, fill_value=value, dtype=np.float64)


def squared_hinge(t: Any) -> FloatArray:
    """Return the square of the hinge."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(hinge(t)))


def squared_hinge_slope(t: Any) -> FloatArray:
    """Return the derivative of the squared hinge."""
    return np.asarray(-2.0 * hinge(t))


def squared_hinge_curvature(t: Any) -> FloatArray:
    """Return a generalised second derivative of the squared hinge."""
    return np.asarray(-2.0 * hinge_slope(t))


def squared(t: Any) -> FloatArray:
    """Return (1 - t)^2."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(1.0 - np.asarray(t, dtype=np.float64)))


def squared_slope(t: Any) -> FloatArray:
    """Return the derivative of (1 - t)^2."""
    return np.asarray(-2.0 * (1.0 - np.asarray(t, dtype=np.float64)))
