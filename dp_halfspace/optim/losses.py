"""Convex losses of the signed margin, with the constants that privacy needs.

A loss is a function of ``t = y <w, x>`` with ``y`` in {-1, +1}. The constants are public numbers
derived in ``docs/proofs/losses.md``; logarithms are natural: the logistic loss at zero is log 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import wrightomega

from dp_halfspace._rounding import UP
from dp_halfspace.rows.blocks import FloatArray

Function: TypeAlias = Callable[[Any], FloatArray]


@dataclass(frozen=True, slots=True)
class Loss:
    """A convex loss of the signed margin and its public constants.

    Parameters
    ----------
    name : str
        Name under which :func:`get_loss` finds the family.
    value, derivative, second_derivative : callable
        Elementwise functions of the margin, finite for ``|t| <= 1e300`` unless the exact
        value is beyond the largest double. Where a derivative does not exist, a
        generalised one. They never warn.
    lipschitz : float
        Supremum of ``|l'|``; infinite for the quadratic losses.
    smoothness : float
        Lipschitz constant of ``l'``; finite.
    self_bound, self_argmax : float
        Supremum over ``t`` of ``-t l'(t)``, and where it is attained. It bounds the norm
        of a regularised minimiser.
    at_zero : float
        ``l(0)``.
    minimiser : float
        Where the loss starts to increase; infinite when it never does.
    shift : float
        How far a logistic loss is moved to the right.

    References
    ----------
    ``docs/proofs/losses.md``.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC
    >>> LOGISTIC.lipschitz, LOGISTIC.smoothness, LOGISTIC.monotone
    (1.0, 0.25, True)
    >>> round(LOGISTIC.slope_bound(2.0), 4)
    0.8808
    """

    name: str
    value: Function = field(compare=False, repr=False)
    derivative: Function = field(compare=False, repr=False)
    second_derivative: Function = field(compare=False, repr=False)
    lipschitz: float
    smoothness: float
    self_bound: float
    self_argmax: float
    at_zero: float
    minimiser: float = math.inf
    shift: float = 0.0

    @property
    def monotone(self) -> bool:
        """Whether the derivative is nowhere positive."""
        return math.isinf(self.minimiser)

    def slope_bound(self, a: float) -> float:
        """Return the supremum of ``|l'|`` on ``[-a, a]``, rounded up.

        It is attained at ``-a`` for every loss of this module, because ``l'`` increases and
        ``|l'(-a)| >= |l'(a)|``.
        """
        if not a >= 0.0:
            raise ValueError("the bound on the margin must be at least 0")
        return min(self.lipschitz, -float(self.derivative(-a)) * UP)

    def h(self, t: FloatArray) -> FloatArray:
        """Return ``-t l'(t)``, whose supremum is `self_bound`."""
        with np.errstate(over="ignore"):
            return np.asarray(-t * self.derivative(t))


# Elementwise functions of the margin. No argument up to 1e300 in absolute value cancels or warns.


def _minus(t: Any, knot: float) -> FloatArray:
    """Return how far a margin is below a knot."""
    return np.asarray(knot - np.asarray(t, dtype=np.float64))


def softplus(t: Any, shift: float) -> FloatArray:
    """Return log(1 + exp(shift - t))."""
    x = _minus(t, shift)
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def softplus_slope(t: Any, shift: float) -> FloatArray:
    """Return minus the logistic function of `shift - t`."""
    # exp may overflow to inf, and -1 / inf = 0 is then the right answer.
    with np.errstate(over="ignore"):
        return np.asarray(-1.0 / (1.0 + np.exp(-_minus(t, shift))))


def softplus_curvature(t: Any, shift: float) -> FloatArray:
    """Return the derivative of the logistic function, without cancellation."""
    e = np.exp(-np.abs(_minus(t, shift)))
    return np.asarray(e / (1.0 + e) ** 2)


def _ramp(t: Any, knot: float, width: float) -> FloatArray:
    """Return a parabola of the given width up to the knot, then straight."""
    x = _minus(t, knot)
    inner = np.clip(x, 0.0, width)
    return np.asarray(inner * inner / (2.0 * width) + np.maximum(x - width, 0.0))


def _ramp_slope(t: Any, knot: float, width: float) -> FloatArray:
    return np.asarray(-np.clip(_minus(t, knot) / width, 0.0, 1.0))


def _ramp_curvature(t: Any, knot: float, width: float) -> FloatArray:
    """Return the second derivative of the ramp, 0 at its two ends."""
    x = _minus(t, knot)
    return np.asarray(((x > 0.0) & (x < width)) / width)


def _squared(t: Any) -> FloatArray:
    """Return (1 - t)^2."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(_minus(t, 1.0)))


def _squared_slope(t: Any) -> FloatArray:
    return -2.0 * _minus(t, 1.0)


def _squared_hinge(t: Any) -> FloatArray:
    """Return max(1 - t, 0)^2."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(np.maximum(_minus(t, 1.0), 0.0)))


def _squared_hinge_slope(t: Any) -> FloatArray:
    return np.asarray(-2.0 * np.maximum(_minus(t, 1.0), 0.0))


def _squared_hinge_curvature(t: Any) -> FloatArray:
    """Return a generalised second derivative, 0 at the kink of the slope."""
    return np.asarray(2.0 * (_minus(t, 1.0) > 0.0))


def shifted_logistic(shift: float) -> Loss:
    """Return the loss ``log(1 + exp(shift - t))``.

    A positive shift makes records slightly beyond the separator still pull, which costs
    nothing in the global slope but something in its bound near zero.

    Parameters
    ----------
    shift : float
        Finite; 0 is the logistic loss.

    Examples
    --------
    >>> from dp_halfspace.optim import shifted_logistic
    >>> round(shifted_logistic(2.0).self_bound, 6)
    1.0
    """
    if not math.isfinite(shift):
        raise ValueError("shift must be finite")
    # sup t sigmoid(shift - t) = W(e^(shift-1)), attained at 1 + W; wrightomega(x) = W(e^x).
    peak = float(wrightomega(shift - 1.0))
    return Loss(
        name="shifted_logistic",
        value=partial(softplus, shift=shift),
        derivative=partial(softplus_slope, shift=shift),
        second_derivative=partial(softplus_curvature, shift=shift),
        lipschitz=1.0,
        smoothness=0.25,
        self_bound=peak * UP,
        self_argmax=1.0 + peak,
        at_zero=float(softplus(0.0, shift)) * UP,
        shift=float(shift),
    )


def _ramp_loss(name: str, g: float, knot: float, width: float, at_zero: float) -> Loss:
    """Return the loss whose slope rises linearly from -1 to 0 on ``[knot - width, knot]``."""
    if not 0.0 < g <= 1.0:
        raise ValueError(f"{'h' if name == 'huber_hinge' else 'g'} must be in (0, 1]")
    inside = 2.0 * width >= knot
    return Loss(
        name=name,
        value=partial(_ramp, knot=knot, width=width),
        derivative=partial(_ramp_slope, knot=knot, width=width),
        second_derivative=partial(_ramp_curvature, knot=knot, width=width),
        lipschitz=1.0,
        smoothness=1.0 / width * UP,
        self_bound=(knot * knot / (4.0 * width) if inside else knot - width) * UP,
        self_argmax=knot / 2.0 if inside else knot - width,
        at_zero=at_zero,
    )


def huber_hinge(h: float = 0.5) -> Loss:
    """Return the hinge with the kink at 1 replaced by a parabola on ``[1 - h, 1 + h]``.

    Within ``h / 4`` of the hinge, never below it. Chaudhuri, Monteleoni and Sarwate (2011), section
    3.4.2.

    Parameters
    ----------
    h : float, default=0.5
        Half the width of the parabola, in (0, 1].

    Examples
    --------
    >>> from dp_halfspace.optim import huber_hinge
    >>> float(huber_hinge(0.5).value(1.0))
    0.125
    """
    return _ramp_loss("huber_hinge", h, 1.0 + h, 2.0 * h, 1.0)


def smoothed_hinge(g: float = 1.0) -> Loss:
    """Return the hinge with a parabola on ``[1 - g, 1]``; zero from 1 on.

    Within ``g / 2`` of the hinge, never above it. Shalev-Shwartz and Zhang (2013), "Stochastic dual
    coordinate ascent methods for regularized loss minimization", section 4.

    Parameters
    ----------
    g : float, default=1.0
        Width of the parabola, in (0, 1].

    Examples
    --------
    >>> from dp_halfspace.optim import smoothed_hinge
    >>> float(smoothed_hinge(1.0).value(0.0))
    0.5
    """
    return _ramp_loss("smoothed_hinge", g, 1.0, g, 1.0 - g / 2.0)


LOGISTIC = replace(shifted_logistic(0.0), name="logistic")
# The hinge has a kink, which would need a solver of its own; this parabola costs 2.5e-4 of loss
# and no noise.
HINGE = replace(huber_hinge(1e-3), name="hinge")
SQUARED_HINGE = Loss(
    "squared_hinge",
    _squared_hinge,
    _squared_hinge_slope,
    _squared_hinge_curvature,
    lipschitz=math.inf,
    smoothness=2.0,
    self_bound=0.5,
    self_argmax=0.5,
    at_zero=1.0,
)
SQUARED = replace(
    SQUARED_HINGE,
    name="squared",
    value=_squared,
    derivative=_squared_slope,
    second_derivative=partial(np.full_like, fill_value=2.0, dtype=np.float64),
    minimiser=1.0,
)

_FIXED = {loss.name: loss for loss in (LOGISTIC, HINGE, SQUARED_HINGE, SQUARED)}
_FAMILIES: dict[str, Callable[..., Loss]] = {
    "shifted_logistic": shifted_logistic,
    "huber_hinge": huber_hinge,
    "smoothed_hinge": smoothed_hinge,
}


def get_loss(name: str, **params: float) -> Loss:
    """Return a loss by name.

    Parameters
    ----------
    name : str
        One of "logistic", "hinge", "squared_hinge", "squared", "shifted_logistic",
        "huber_hinge", "smoothed_hinge".
    **params : float
        Parameters of the family, for the last three.

    Raises
    ------
    ValueError
        If the name is unknown, or if a loss without parameters is given some.

    Examples
    --------
    >>> from dp_halfspace.optim import get_loss
    >>> get_loss("huber_hinge", h=0.25).smoothness > 2.0
    True
    """
    if name in _FAMILIES:
        return _FAMILIES[name](**params)
    if name not in _FIXED:
        raise ValueError(f"unknown loss {name!r}; choose from {sorted([*_FIXED, *_FAMILIES])}")
    if params:
        raise ValueError(f"the loss {name!r} has no parameters")
    return _FIXED[name]
