"""How far apart the gradients of two records of the multinomial model can be.

All gradients of one class at coefficients ``W`` lie in a ball round ``T W``, for every matrix
``T``; with two free numbers in ``T``, the radius is a maximum over two numbers, bounded from above
on cells that are refined where it matters. Two records of one class cannot both be far out. Pairs
of two classes have a bound of their own, or a ball for all classes. ``docs/proofs/stability.md``,
Theorem 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, wrightomega

from dp_halfspace.optim.risks.softmax_labels import REACHES, distance_of_classes

__all__ = ["softmax_diameter"]

FloatArray: TypeAlias = NDArray[np.float64]

# Covers the rounding of every expression below.
_UP = 1.0 + 1e-9
# The maximum is bounded up to this much; the squares of the radii are between 1/2 and 2.
_SLACK = 2e-4
# The radius is computed at the next larger norm of a grid, with this ratio.
_STEP = 1e-3
_ROUNDS = 40
# Distances of the points of the grid for two rivals, and of the one where its centre is chosen.
_FINE, _COARSE = 0.06, 0.2


class _Cells(NamedTuple):
    """Ranges of the logit of ``pi``, and of the logarithm of the ratio of the shares."""

    low: FloatArray
    high: FloatArray
    near: FloatArray
    far: FloatArray

    def middle(self) -> tuple[FloatArray, FloatArray]:
        """Return a point inside of each cell."""
        with np.errstate(invalid="ignore"):
            logit = np.where(np.isinf(self.low), self.high - 4.0, (self.low + self.high) / 2.0)
            logit = np.where(np.isinf(self.high), self.low + 4.0, logit)
            ratio = np.where(np.isinf(self.far), self.near + 4.0, (self.near + self.far) / 2.0)
        return logit, ratio

    def split(self, along: NDArray[np.bool_]) -> _Cells:
        """Cut each cell in two, where `along` across the ratios, else across the logits."""
        logit, ratio = self.middle()
        return _Cells(
            np.concatenate([self.low, np.where(along, self.low, logit)]),
            np.concatenate([np.where(along, self.high, logit), self.high]),
            np.concatenate([self.near, np.where(along, ratio, self.near)]),
            np.concatenate([np.where(along, ratio, self.far), self.far]),
        )


def softmax_diameter(n_classes: int, reach: float, *, shift: float = 0.0) -> float:
    """Half the diameter of the gradients of the multinomial logistic loss.

    Parameters
    ----------
    n_classes : int
        At least 2.
    reach : float
        Frobenius norm of the coefficients times the norm of a row.
    shift : float, default=0.0
        Subtracted from the score of a record's own class, at most 100.

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
    (0.8165, 1.2)
    """
    if reach <= 0.0:
        return _largest_gradient(n_classes, 0.0, shift) * _UP
    # Fits with the same public numbers, and candidates close to each other, share the work.
    return _diameter(n_classes, math.ceil(math.log(reach) / _STEP), shift)


@lru_cache(maxsize=4096)
def _diameter(n_classes: int, step: int, shift: float) -> float:
    """Bound half the diameter at the reach of a step of the grid."""
    reach = math.exp(step * _STEP) * _UP
    squares, pulls, spreads = _candidates(n_classes, shift)

    def square(beta: float, less: float = 0.0) -> float:
        values = squares + 2.0 * beta * (pulls - less * spreads)
        return float(np.max(values)) + (beta * reach) ** 2

    def radius(beta: float, less: float) -> float:
        return math.sqrt(_ceiling((beta, less), n_classes, shift) + (beta * reach) ** 2)

    # Every choice gives a bound; these are nearly the best.
    bounds = 1e-2 / (1.0 + reach), 2.0 / (1.0 + reach)
    ball = float(minimize_scalar(square, bounds=bounds, method="bounded").x)
    found = min(_largest_gradient(n_classes, reach, shift), radius(ball, 0.0))
    if n_classes > 2 and REACHES[0] <= reach <= REACHES[1]:
        start = np.array([math.log(ball), 0.0])
        centre = _centre(_search(lambda at: square(*_centre(at)), start))
        rivals = _one_rival(n_classes, reach, shift), _two_rivals(n_classes, reach, shift)
        same = min(radius(*centre), max(rivals))
        if same < found:
            found = min(found, distance_of_classes(n_classes, reach, shift, same))
    return found * _UP


def _search(square: Callable[[FloatArray], float], start: FloatArray) -> FloatArray:
    """Find the numbers of a centre that are nearly the best; the second try starts at the first."""
    for size in (0.7, 0.35):
        simplex = np.vstack([start, start + size * np.eye(start.size)])
        options = {"maxiter": 80, "xatol": 2e-2, "fatol": 1e-4, "initial_simplex": simplex}
        start = np.asarray(minimize(square, start, method="Nelder-Mead", options=options).x)
    return start


def _centre(at: FloatArray) -> tuple[float, float]:
    """Map any two numbers to a centre that is allowed."""
    return math.exp(min(float(at[0]), 1.0)), 0.99 * float(expit(at[1]))


def _largest_gradient(n_classes: int, reach: float, shift: float) -> float:
    """Bound the norm of the gradient of a row of norm one: the ball round zero."""
    others = n_classes - 1
    rise = math.sqrt(n_classes / others) * reach if reach <= 2.0 else math.sqrt(2.0) * reach
    slope = 1.0 / (1.0 + math.exp(-rise - shift) / others)
    # Sum of squares of the shares of the other classes: ratios are at most exp(sqrt(2) reach).
    alone = 1.0 / (1.0 + (others - 1) * math.exp(-math.sqrt(2.0) * reach))
    even = math.cosh(min(reach / math.sqrt(2.0), 300.0)) ** 2 / others
    return slope * math.sqrt(1.0 + min(alone, even))


def _shares(n_classes: int, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sum of squares and entropy of one share and equal others, by log of their ratio."""
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    squares = share**2 * (1.0 + others * np.exp(-2.0 * ratio))
    finite = np.where(np.isinf(ratio), 0.0, ratio)
    return squares, (1.0 - share) * finite - np.log(share)


def _lead(n_classes: int, ratio: FloatArray) -> FloatArray:
    """Return the mean of minus the logarithm of the shares."""
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    return np.asarray(others / (n_classes - 1) * ratio - np.log(share))


@lru_cache(maxsize=64)
def _candidates(n_classes: int, shift: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return squared norms of gradients, minus their products with the scores, and leads."""
    top = 12.0 + math.log(n_classes)
    logit = shift + np.linspace(-6.0, top, 91)[:, None]
    ratio = np.linspace(0.0, top, 61)[None, :]
    squares, entropy = _shares(n_classes, ratio)
    pi, lead = expit(logit), _lead(n_classes, ratio)
    return pi**2 * (1.0 + squares), pi * (shift - logit + entropy), pi * (shift - logit + lead)


def _ceiling(centre: tuple[float, float], n_classes: int, shift: float) -> float:
    """Bound ``|g|^2 - 2 <g, T z>`` over all scores ``z``; ``g`` is softmax minus one-hot.

    The centre is ``(beta, less)``: `T` multiplies by `beta`, and by ``beta (1 - less)`` along the
    direction of the own class.
    """
    top = 12.0 + math.log(n_classes)
    logit = np.concatenate([[-np.inf], shift + np.linspace(-6.0, top, 25), [np.inf]])
    ratio = np.append(np.linspace(0.0, top, 17), np.inf)
    low, near = (grid.ravel() for grid in np.meshgrid(logit[:-1], ratio[:-1]))
    high, far = (grid.ravel() for grid in np.meshgrid(logit[1:], ratio[1:]))
    cells, best, upper = _Cells(low, high, near, far), -math.inf, math.inf
    for _ in range(_ROUNDS):
        bounds, along = _bounds(centre, n_classes, shift, cells)
        best = max(best, float(np.max(_values(centre, n_classes, shift, *cells.middle()))))
        keep = bounds > best + _SLACK
        if not keep.any():
            # Every cell that was dropped, now or before, is below this.
            return best + _SLACK
        upper = float(bounds.max())
        cells = _Cells(*(edge[keep] for edge in cells)).split(along[keep])
    return upper


def _one_rival(n_classes: int, reach: float, shift: float) -> float:
    """Bound half the distance of records of one class, the largest share at the same class.

    Both then lead in the same direction, so that the rows are not opposite.
    """
    others, top = n_classes - 2, 12.0 + math.log(n_classes)
    logit = np.concatenate([[-np.inf], np.linspace(-3.0, max(shift, 0.0) + top, 160), [np.inf]])
    ratio = np.append(np.linspace(0.0, top, 160), np.inf)
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    squares = np.where(share < 0.5, share, share**2 + (1.0 - share) ** 2)
    norms = expit(logit[1:, None]) ** 2 * (1.0 + squares[1:])
    leads = logit[:-1, None] + (np.log(share) + ratio)[:-1] - shift
    # Largest norm by lead; a sum of two leads that is not positive says nothing.
    edges = np.linspace(-float(leads.max()), float(leads.max()), 400)
    largest = np.zeros(edges.size)
    np.maximum.at(largest, np.maximum(np.searchsorted(edges, leads, side="right") - 1, 0), norms)
    sums = np.maximum(np.add.outer(edges, edges), 0.0) / reach
    factor = np.maximum(1.0, 2.0 - sums**2 / (10.0 + 2.0 / others))
    return math.sqrt(float(np.max(factor * np.add.outer(largest, largest)))) / 2.0


def _two_rivals(n_classes: int, reach: float, shift: float) -> float:
    """Bound half the distance of records of one class, the largest shares at different ones."""
    coarse = _rivals(n_classes, reach, shift, _COARSE, 14.0)
    start = np.array([-math.log(2.0 + 2.0 * reach), 0.0, -1.5])
    beta, less, push = _pulls(_search(lambda at: coarse.square(*_pulls(at), reach), start))
    longest = min(1.0 / beta, 18.0 + math.log(n_classes))
    fine = _rivals(n_classes, reach, shift, max(_FINE, longest / 150.0), longest)
    return math.sqrt(fine.square(beta, less, push, reach) + fine.rise(beta, push))


def _pulls(at: FloatArray) -> tuple[float, float, float]:
    """Map any three numbers to a centre for two rivals that is allowed."""
    return *_centre(np.minimum(at, [0.0, np.inf, 0.0])), math.exp(min(float(at[2]), 0.0))


class _Rivals(NamedTuple):
    """Functions of the probability of the other classes, and of two large shares of it."""

    step: float
    size: float
    longest: float
    by_logit: FloatArray
    by_shares: FloatArray

    def square(self, beta: float, less: float, push: float, reach: float) -> float:
        """Bound a quarter of the squared distance on the grid."""
        weights = [1.0, 2.0 * beta, -2.0 * beta * less, -push, 2.0 * beta * (1.0 - less)]
        values = (self.by_logit * weights) @ self.by_shares
        return max(float(values.max()), 0.6) + (beta * reach + push / math.sqrt(2.0)) ** 2

    def rise(self, beta: float, push: float) -> float:
        """Bound what the maximum can rise by between points of the grid, and beyond it."""
        logit = 0.25 + 0.2 * beta * (self.size + self.longest) + 0.1 * push + beta
        ratio = 0.2 + beta * (1.0 + 0.2 * self.longest) + 0.2 * push
        return (logit + 2.0 * ratio) * self.step**2 / 8.0 + _SLACK


def _rivals(n_classes: int, reach: float, shift: float, step: float, longest: float) -> _Rivals:
    """Cover all scores of norm at most `reach`, and log-ratios of the shares up to `longest`."""
    wide, even = math.sqrt(2.0) * reach, math.log(n_classes - 1)
    low = max(-6.0, shift + even - wide)
    high = min(shift + even + wide, max(0.0, shift + math.log(n_classes)) + 10.0)
    logit = np.arange(low, max(low, high) + step, step)
    ratio = np.arange(0.0, longest + step, step)
    first, second = (ratio[at] for at in np.nonzero(np.tri(ratio.size, k=1)))
    if n_classes == 3:
        first, second = ratio, np.zeros(ratio.size)
    total = np.log(np.exp(first) + np.exp(second) + (n_classes - 3))
    large, small, rest = np.exp(first - total), np.exp(second - total), np.exp(-total)
    squares = 1.0 + large**2 + small**2 + (n_classes - 3) * rest**2
    entropy = total - large * first - small * second
    lead = total - (first + second) / (n_classes - 1)
    pi = expit(logit)
    return _Rivals(
        step,
        abs(shift) + math.log(n_classes),
        float(ratio[-1]),
        np.stack([pi**2, pi, pi, pi, pi * (shift - logit)], axis=1),
        np.stack([squares, entropy, lead, large - small, np.ones(large.size)]),
    )


def _pulled(
    less: float, n_classes: int, shift: float, ratio: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the squares of the shares, and the logit at which the centre does not pull."""
    squares, entropy = _shares(n_classes, ratio)
    return squares, shift + (entropy - less * _lead(n_classes, ratio)) / (1.0 - less)


def _values(
    centre: tuple[float, float], n_classes: int, shift: float, logit: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Return what is maximised, at points."""
    beta, less = centre
    squares, pulled = _pulled(less, n_classes, shift, ratio)
    pi = expit(logit)
    return np.asarray(pi**2 * (1.0 + squares) + 2.0 * beta * (1.0 - less) * pi * (pulled - logit))


def _bounds(
    centre: tuple[float, float], n_classes: int, shift: float, cells: _Cells
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Bound what is maximised, in cells; and say where the range of the ratio is what costs."""
    beta, less = centre
    # Squares grow with the ratio and the pull falls; pi (b - logit pi) rises up to its peak.
    squares, pulled = _pulled(less, n_classes, shift, cells.near)
    own = beta * (1.0 - less)
    peak = pulled - 1.0 - np.real(wrightomega(pulled - 1.0))
    at = np.clip(peak, cells.low, cells.high)
    top, most = expit(cells.high), 1.0 + _shares(n_classes, cells.far)[0]
    monotone = top**2 * most + 2.0 * own * expit(at) * (pulled - at)
    # From the corner of both lower ends the value rises at most as fast as its slopes allow.
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-cells.near))
    gap = (1.0 - np.exp(-cells.far)) / (1.0 + others * np.exp(-cells.far))
    steep = np.where(share < 0.5, 0.25, share * (1.0 - share))
    along = 2.0 * top * steep * np.maximum(top * gap - beta * cells.near, 0.0)
    along -= 2.0 * beta * less * expit(cells.low) * (share - 1.0 / (n_classes - 1))
    across = 0.5 * (top * (1.0 + squares) + own * (pulled - cells.low - 1.0 - np.exp(cells.low)))
    with np.errstate(invalid="ignore"):
        along = np.where(along > 0.0, along * (cells.far - cells.near), 0.0)
        across = np.where(across > 0.0, across * (cells.high - cells.low), 0.0)
        corner = _values(centre, n_classes, shift, cells.low, cells.near)
    return np.fmin(monotone, corner + along + across), along > across
