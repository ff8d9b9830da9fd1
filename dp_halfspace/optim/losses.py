"""Convex losses of the signed margin, with the constants that privacy needs.

A loss is a function of ``t = y <w, x>`` with ``y`` in {-1, +1}. The constants are public numbers
derived in ``docs/proofs/losses.md``; logarithms are natural: the logistic loss at zero is log 2.

For the multinomial logistic loss, `softmax_diameter` bounds the distance of the gradients of two
records: all gradients at coefficients ``W`` lie in a ball around ``beta W``, for every number
``beta``. Its radius is a maximum over two numbers, bounded from above on cells that are refined
where necessary (``docs/proofs/stability.md``, Theorem 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, wrightomega

from dp_halfspace._rounding import FAR_UP, UP
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

    References
    ----------
    ``docs/proofs/losses.md``.

    Examples
    --------
    >>> from dp_halfspace.optim.losses import LOGISTIC
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


# Elementwise functions of the margin: for arguments up to 1e300 in absolute value they neither
# cancel nor warn.


def _minus(t: Any, knot: float) -> FloatArray:
    """Return the distance of a margin below a knot; negative above it."""
    return np.asarray(knot - np.asarray(t, dtype=np.float64))


def softplus(t: Any) -> FloatArray:
    """Return log(1 + exp(-t))."""
    x = _minus(t, 0.0)
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def softplus_slope(t: Any) -> FloatArray:
    """Return minus the logistic function of `-t`."""
    # exp may overflow to inf, and -1 / inf = 0 is then the right answer.
    with np.errstate(over="ignore"):
        return np.asarray(-1.0 / (1.0 + np.exp(-_minus(t, 0.0))))


def softplus_curvature(t: Any) -> FloatArray:
    """Return the derivative of the logistic function, without cancellation."""
    e = np.exp(-np.abs(_minus(t, 0.0)))
    return np.asarray(e / (1.0 + e) ** 2)


def _ramp(t: Any, knot: float, width: float) -> FloatArray:
    """Return 0 from the knot on, a parabola on the given width below it, and then a line."""
    x = _minus(t, knot)
    inner = np.clip(x, 0.0, width)
    return np.asarray(inner * inner / (2.0 * width) + np.maximum(x - width, 0.0))


def _ramp_slope(t: Any, knot: float, width: float) -> FloatArray:
    return np.asarray(-np.clip(_minus(t, knot) / width, 0.0, 1.0))


def _ramp_curvature(t: Any, knot: float, width: float) -> FloatArray:
    """Return the second derivative of the ramp, 0 at its two ends."""
    x = _minus(t, knot)
    return np.asarray(((x > 0.0) & (x < width)) / width)


def _square(t: Any, least: float) -> FloatArray:
    """Return max(1 - t, least)^2."""
    with np.errstate(over="ignore"):
        return np.asarray(np.square(np.maximum(_minus(t, 1.0), least)))


def _square_slope(t: Any, least: float) -> FloatArray:
    return np.asarray(-2.0 * np.maximum(_minus(t, 1.0), least))


def _squared_hinge_curvature(t: Any) -> FloatArray:
    """Return a generalised second derivative, 0 at the kink of the slope."""
    return np.asarray(2.0 * (_minus(t, 1.0) > 0.0))


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
    >>> from dp_halfspace.optim.losses import huber_hinge
    >>> float(huber_hinge(0.5).value(1.0))
    0.125
    """
    if not 0.0 < h <= 1.0:
        raise ValueError("h must be in (0, 1]")
    knot, width = 1.0 + h, 2.0 * h
    inside = 2.0 * width >= knot
    return Loss(
        name="huber_hinge",
        value=partial(_ramp, knot=knot, width=width),
        derivative=partial(_ramp_slope, knot=knot, width=width),
        second_derivative=partial(_ramp_curvature, knot=knot, width=width),
        lipschitz=1.0,
        smoothness=1.0 / width * UP,
        self_bound=(knot * knot / (4.0 * width) if inside else knot - width) * UP,
        self_argmax=knot / 2.0 if inside else knot - width,
        at_zero=1.0,
    )


# sup t sigmoid(-t) = W(1 / e), attained at 1 + W; wrightomega(x) = W(e^x).
LOGISTIC = Loss(
    "logistic",
    softplus,
    softplus_slope,
    softplus_curvature,
    lipschitz=1.0,
    smoothness=0.25,
    self_bound=float(wrightomega(-1.0)) * UP,
    self_argmax=1.0 + float(wrightomega(-1.0)),
    at_zero=math.log(2.0) * UP,
)
# The hinge has a kink, which would need a separate solver. This parabola changes the loss by at
# most 2.5e-4 and does not increase the noise.
HINGE = replace(huber_hinge(1e-3), name="hinge")
SQUARED_HINGE = Loss(
    "squared_hinge",
    partial(_square, least=0.0),
    partial(_square_slope, least=0.0),
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
    value=partial(_square, least=-math.inf),
    derivative=partial(_square_slope, least=-math.inf),
    second_derivative=partial(np.full_like, fill_value=2.0, dtype=np.float64),
    minimiser=1.0,
)

_FIXED = {loss.name: loss for loss in (LOGISTIC, HINGE, SQUARED_HINGE, SQUARED)}


def get_loss(name: str, **params: float) -> Loss:
    """Return a loss by name.

    Parameters
    ----------
    name : str
        One of "logistic", "hinge", "squared_hinge", "squared", "huber_hinge".
    **params : float
        Parameters of :func:`huber_hinge`, for the last one.

    Returns
    -------
    Loss

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
    if name == "huber_hinge":
        return huber_hinge(**params)
    if name not in _FIXED:
        raise ValueError(f"unknown loss {name!r}; choose from {sorted([*_FIXED, 'huber_hinge'])}")
    if params:
        raise ValueError(f"the loss {name!r} has no parameters")
    return _FIXED[name]


# Accepted excess of the bound on the maximum, which is a squared radius between 1/2 and 2.
_SLACK = 2e-4
# Largest number of refinements of the cells.
_REFINEMENTS = 40


@lru_cache(maxsize=4096)  # Fits with the same public numbers need the same values.
def softmax_diameter(n_classes: int, largest_score: float) -> float:
    """Half the diameter of the gradients of the multinomial logistic loss.

    Parameters
    ----------
    n_classes : int
        At least 2.
    largest_score : float
        Frobenius norm of the coefficients times the norm of a row.

    Returns
    -------
    float
        In units of the norm of a row, at most ``sqrt(2)``. An upper bound for coefficients of
        this or a smaller norm.

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 5.

    Examples
    --------
    >>> from dp_halfspace.optim import softmax_diameter
    >>> round(softmax_diameter(3, 0.0), 4), round(softmax_diameter(3, 5.0), 2)
    (0.8165, 1.22)
    """
    if largest_score <= 0.0:
        return _largest_gradient(n_classes, 0.0) * FAR_UP
    squares, products = _candidates(n_classes)

    def square(beta: float) -> float:
        return float(np.max(squares + 2.0 * beta * products)) + (beta * largest_score) ** 2

    # Two balls hold all gradients, one around zero and one around `beta` ``W``; the smaller radius
    # is returned. Every beta gives a bound, and this one is nearly the best.
    bounds = 1e-2 / (1.0 + largest_score), 2.0 / (1.0 + largest_score)
    beta = float(minimize_scalar(square, bounds=bounds, method="bounded").x)
    ball = math.sqrt(_ceiling(beta, n_classes) + (beta * largest_score) ** 2)
    return min(_largest_gradient(n_classes, largest_score), ball) * FAR_UP


def _largest_gradient(n_classes: int, largest_score: float) -> float:
    """Bound the norm of the gradient of a row of norm one: the radius of the ball around zero."""
    others = n_classes - 1
    rise = math.sqrt(n_classes / others if largest_score <= 2.0 else 2.0) * largest_score
    slope = 1.0 / (1.0 + math.exp(-rise) / others)
    # Two bounds on the sum of squared shares of the other classes, whose ratios are at most
    # exp(sqrt(2) score).
    alone = 1.0 / (1.0 + (others - 1) * math.exp(-math.sqrt(2.0) * largest_score))
    even = math.cosh(min(largest_score / math.sqrt(2.0), 300.0)) ** 2 / others
    return slope * math.sqrt(1.0 + min(alone, even))


def _shares(n_classes: int, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sum of squares and the entropy of one share and equal other shares.

    `ratio` is the logarithm of the ratio of the one share to each of the others.
    """
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    squares = share**2 * (1.0 + others * np.exp(-2.0 * ratio))
    finite = np.where(np.isinf(ratio), 0.0, ratio)
    return squares, (1.0 - share) * finite - np.log(share)


@lru_cache(maxsize=64)
def _candidates(n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Return squared norms of gradients and their negative inner products with the scores."""
    top = 12.0 + math.log(n_classes)
    logit = np.linspace(-6.0, top, 91)[:, None]
    squares, entropy = _shares(n_classes, np.linspace(0.0, top, 61)[None, :])
    pi = expit(logit)
    return pi**2 * (1.0 + squares), pi * (entropy - logit)


def _ceiling(beta: float, n_classes: int) -> float:
    """Bound ``|g|^2 - 2 beta <g, z>`` over all scores ``z``; ``g`` is softmax minus one-hot."""
    top = 12.0 + math.log(n_classes)
    logit = np.concatenate([[-np.inf], np.linspace(-6.0, top, 25), [np.inf]])
    ratio = np.append(np.linspace(0.0, top, 17), np.inf)
    low, near = (grid.ravel() for grid in np.meshgrid(logit[:-1], ratio[:-1]))
    high, far = (grid.ravel() for grid in np.meshgrid(logit[1:], ratio[1:]))
    cells, best, upper = _Cells(low, high, near, far), -math.inf, math.inf
    for _ in range(_REFINEMENTS):
        bounds, by_ratio = _bounds(beta, n_classes, cells)
        best = max(best, float(np.max(_values(beta, n_classes, *cells.middle()))))
        keep = bounds > best + _SLACK
        if not keep.any():
            # All cells that were dropped, now or before, have bounds below this number.
            return best + _SLACK
        upper = float(bounds.max())
        cells = _Cells(*(edge[keep] for edge in cells)).split(by_ratio[keep])
    return upper


class _Cells(NamedTuple):
    """Ranges of the logit of ``pi``, and of the logarithm of the ratio of the shares: cells."""

    low: FloatArray
    high: FloatArray
    near: FloatArray
    far: FloatArray

    def middle(self) -> tuple[FloatArray, FloatArray]:
        """Return a point inside each cell."""
        with np.errstate(invalid="ignore"):
            logit = np.where(np.isinf(self.low), self.high - 4.0, (self.low + self.high) / 2.0)
            logit = np.where(np.isinf(self.high), self.low + 4.0, logit)
            ratio = np.where(np.isinf(self.far), self.near + 4.0, (self.near + self.far) / 2.0)
        return logit, ratio

    def split(self, by_ratio: NDArray[np.bool_]) -> _Cells:
        """Halve each cell, along its range of ratios where `by_ratio`, else along its logits."""
        logit, ratio = self.middle()
        return _Cells(
            np.concatenate([self.low, np.where(by_ratio, self.low, logit)]),
            np.concatenate([np.where(by_ratio, self.high, logit), self.high]),
            np.concatenate([self.near, np.where(by_ratio, ratio, self.near)]),
            np.concatenate([np.where(by_ratio, ratio, self.far), self.far]),
        )


def _values(beta: float, n_classes: int, logit: FloatArray, ratio: FloatArray) -> FloatArray:
    """Return the values of the function that `_ceiling` maximises."""
    squares, entropy = _shares(n_classes, ratio)
    pi = expit(logit)
    return np.asarray(pi**2 * (1.0 + squares) + 2.0 * beta * pi * (entropy - logit))


def _bounds(beta: float, n_classes: int, cells: _Cells) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Bound the function that `_ceiling` maximises, in cells; return whether to halve their ratios.

    Two bounds hold, one by monotonicity and one by slopes; the smaller one is returned.
    """
    # The sum of squares increases with the ratio and the entropy decreases; pi (b - logit pi)
    # increases up to its peak.
    squares, entropy = _shares(n_classes, cells.near)
    peak = entropy - 1.0 - np.real(wrightomega(entropy - 1.0))
    at = np.clip(peak, cells.low, cells.high)
    top, most = expit(cells.high), 1.0 + _shares(n_classes, cells.far)[0]
    monotone = top**2 * most + 2.0 * beta * expit(at) * (entropy - at)
    # From the corner of both lower ends, the value increases at most as fast as its partial
    # derivatives allow.
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-cells.near))
    gap = (1.0 - np.exp(-cells.far)) / (1.0 + others * np.exp(-cells.far))
    steep = np.where(share < 0.5, 0.25, share * (1.0 - share))
    of_ratio = 2.0 * top * steep * np.maximum(top * gap - beta * cells.near, 0.0)
    at_low = entropy - cells.low - 1.0 - np.exp(cells.low)
    of_logit = 0.5 * (top * (1.0 + squares) + beta * at_low)
    with np.errstate(invalid="ignore"):
        of_ratio = np.where(of_ratio > 0.0, of_ratio * (cells.far - cells.near), 0.0)
        of_logit = np.where(of_logit > 0.0, of_logit * (cells.high - cells.low), 0.0)
        corner = _values(beta, n_classes, cells.low, cells.near)
    return np.fmin(monotone, corner + of_ratio + of_logit), of_ratio > of_logit
