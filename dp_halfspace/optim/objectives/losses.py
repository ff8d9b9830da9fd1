"""Convex losses of the signed margin, with the constants that privacy needs.

A loss is a function of ``t = y <w, x>`` with ``y`` in {-1, +1}. The constants are public
numbers derived in ``docs/proofs/losses.md``; natural logarithms throughout, so the
logistic loss at zero is ``log 2`` and not 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import wrightomega

from dp_halfspace.optim.objectives._elementwise import (
    FloatArray,
    Function,
    constant,
    ramp,
    ramp_curvature,
    ramp_slope,
    softplus,
    softplus_curvature,
    softplus_slope,
    squared,
    squared_hinge,
    squared_hinge_curvature,
    squared_hinge_slope,
    squared_slope,
)

__all__ = [
    "HINGE",
    "LOGISTIC",
    "SQUARED",
    "SQUARED_HINGE",
    "Loss",
    "get_loss",
    "huber_hinge",
    "shifted_logistic",
    "smoothed_hinge",
]


# Covers the few roundings of the closed forms below, on the side that adds noise.
_UP = 1.0 + 2.0**-50


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

        Parameters
        ----------
        a : float
            Bound on the absolute margin, at least 0.

        Returns
        -------
        float
            Attained at ``-a`` for every loss of this module, because ``l'`` increases
            and ``|l'(-a)| >= |l'(a)|``.
        """
        return min(self.lipschitz, -float(self.derivative(-_margin_bound(a))) * _UP)

    def range(self, a: float) -> float:
        """Return the largest minus the smallest value on ``[-a, a]``, rounded up.

        Parameters
        ----------
        a : float
            Bound on the absolute margin, at least 0.

        Returns
        -------
        float
            ``l(-a) - l(min(a, minimiser))``.
        """
        high = float(self.value(-_margin_bound(a)))
        return (high - float(self.value(min(a, self.minimiser)))) + high * (_UP - 1.0)

    def h(self, t: FloatArray) -> FloatArray:
        """Return ``-t l'(t)``, whose supremum is `self_bound`.

        Parameters
        ----------
        t : ndarray
            Margins.

        Returns
        -------
        ndarray
            Same shape as `t`.
        """
        with np.errstate(over="ignore"):
            return np.asarray(-t * self.derivative(t))


def _margin_bound(a: float) -> float:
    """Refuse a bound that is negative or not a number."""
    if not a >= 0.0:
        raise ValueError("the bound on the margin must be at least 0")
    return a


def shifted_logistic(shift: float) -> Loss:
    """Return the loss ``log(1 + exp(shift - t))``.

    A positive shift makes records slightly beyond the separator still pull, which costs
    nothing in the global slope but something in its bound near zero.

    Parameters
    ----------
    shift : float
        Finite; 0 is the logistic loss.

    Returns
    -------
    Loss
        With ``l' in [-1, 0]`` and smoothness 1/4.

    Raises
    ------
    ValueError
        If `shift` is not finite.

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
        self_bound=peak * _UP,
        self_argmax=1.0 + peak,
        at_zero=float(softplus(0.0, shift)) * _UP,
        shift=float(shift),
    )


def _ramp_loss(name: str, knot: float, width: float, at_zero: float) -> Loss:
    """Return the loss whose slope rises linearly from -1 to 0 on ``[knot - width, knot]``."""
    inside = 2.0 * width >= knot
    return Loss(
        name=name,
        value=partial(ramp, knot=knot, width=width),
        derivative=partial(ramp_slope, knot=knot, width=width),
        second_derivative=partial(ramp_curvature, knot=knot, width=width),
        lipschitz=1.0,
        smoothness=1.0 / width * _UP,
        self_bound=(knot * knot / (4.0 * width) if inside else knot - width) * _UP,
        self_argmax=knot / 2.0 if inside else knot - width,
        at_zero=at_zero,
    )


def _half_width(value: float, name: str) -> float:
    """Refuse a smoothing parameter outside (0, 1]."""
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{name} must be in (0, 1]")
    return value


def huber_hinge(h: float = 0.5) -> Loss:
    """Return the hinge with the kink at 1 replaced by a parabola on ``[1 - h, 1 + h]``.

    Parameters
    ----------
    h : float, default=0.5
        Half the width of the parabola, in (0, 1].

    Returns
    -------
    Loss
        Within ``h / 4`` of the hinge, never below it.

    Raises
    ------
    ValueError
        If `h` is outside (0, 1].

    References
    ----------
    Chaudhuri, Monteleoni and Sarwate (2011), section 3.4.2.

    Examples
    --------
    >>> from dp_halfspace.optim import huber_hinge
    >>> float(huber_hinge(0.5).value(1.0))
    0.125
    """
    h = _half_width(h, "h")
    return _ramp_loss("huber_hinge", 1.0 + h, 2.0 * h, 1.0)


def smoothed_hinge(g: float = 1.0) -> Loss:
    """Return the hinge with a parabola on ``[1 - g, 1]``; zero from 1 on.

    Parameters
    ----------
    g : float, default=1.0
        Width of the parabola, in (0, 1].

    Returns
    -------
    Loss
        Within ``g / 2`` of the hinge, never above it.

    Raises
    ------
    ValueError
        If `g` is outside (0, 1].

    References
    ----------
    Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for
    regularized loss minimization", section 4.

    Examples
    --------
    >>> from dp_halfspace.optim import smoothed_hinge
    >>> float(smoothed_hinge(1.0).value(0.0))
    0.5
    """
    g = _half_width(g, "g")
    return _ramp_loss("smoothed_hinge", 1.0, g, 1.0 - g / 2.0)


LOGISTIC = replace(shifted_logistic(0.0), name="logistic")
# A kink would need a solver of its own; this parabola costs 2.5e-4 of loss and no noise.
HINGE = replace(huber_hinge(1e-3), name="hinge")
SQUARED_HINGE = Loss(
    "squared_hinge",
    squared_hinge,
    squared_hinge_slope,
    squared_hinge_curvature,
    lipschitz=math.inf,
    smoothness=2.0,
    self_bound=0.5,
    self_argmax=0.5,
    at_zero=1.0,
)
SQUARED = replace(
    SQUARED_HINGE,
    name="squared",
    value=squared,
    derivative=squared_slope,
    second_derivative=constant(2.0),
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

    Returns
    -------
    Loss
        The loss.

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
