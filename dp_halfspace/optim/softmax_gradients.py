"""How far the gradients of the multinomial logistic loss can be apart.

All gradients of records at coefficients ``W`` lie in a ball round ``beta W``, for every number
``beta``. Its radius is a maximum over two numbers, bounded from above on cells that are refined
where it matters (``docs/proofs/stability.md``, Theorem 5).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, wrightomega

from dp_halfspace._rounding import FAR_UP
from dp_halfspace.rows.blocks import FloatArray

# Slack of the bound on the maximum, a squared radius between 1/2 and 2.
_SLACK = 2e-4
# Refinements of the cells, at most.
_ROUNDS = 40


@lru_cache(maxsize=4096)  # Fits with the same public numbers share the work.
def softmax_diameter(n_classes: int, largest_score: float, *, shift: float = 0.0) -> float:
    """Half the diameter of the gradients of the multinomial logistic loss.

    Parameters
    ----------
    n_classes : int
        At least 2.
    largest_score : float
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
    (0.8165, 1.22)
    """
    if largest_score <= 0.0:
        return _largest_gradient(n_classes, 0.0, shift) * FAR_UP
    squares, pulls = _candidates(n_classes, shift)

    def square(beta: float) -> float:
        return float(np.max(squares + 2.0 * beta * pulls)) + (beta * largest_score) ** 2

    # The smaller of two balls holds all gradients, round zero and round `beta` ``W``. Every beta
    # gives a bound; this one is nearly the best.
    bounds = 1e-2 / (1.0 + largest_score), 2.0 / (1.0 + largest_score)
    beta = float(minimize_scalar(square, bounds=bounds, method="bounded").x)
    ball = math.sqrt(_ceiling(beta, n_classes, shift) + (beta * largest_score) ** 2)
    return min(_largest_gradient(n_classes, largest_score, shift), ball) * FAR_UP


def _largest_gradient(n_classes: int, largest_score: float, shift: float) -> float:
    """Bound the norm of the gradient of a row of norm one: the ball round zero."""
    others = n_classes - 1
    rise = math.sqrt(n_classes / others if largest_score <= 2.0 else 2.0) * largest_score
    slope = 1.0 / (1.0 + math.exp(-rise - shift) / others)
    # Sum of squares of the shares of the other classes: ratios are at most exp(sqrt(2) score).
    alone = 1.0 / (1.0 + (others - 1) * math.exp(-math.sqrt(2.0) * largest_score))
    even = math.cosh(min(largest_score / math.sqrt(2.0), 300.0)) ** 2 / others
    return slope * math.sqrt(1.0 + min(alone, even))


def _shares(n_classes: int, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sum of squares and entropy of one share and equal others, by log of their ratio."""
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-ratio))
    squares = share**2 * (1.0 + others * np.exp(-2.0 * ratio))
    finite = np.where(np.isinf(ratio), 0.0, ratio)
    return squares, (1.0 - share) * finite - np.log(share)


@lru_cache(maxsize=64)
def _candidates(n_classes: int, shift: float) -> tuple[FloatArray, FloatArray]:
    """Return squared norms of gradients, and minus their products with the scores, on a grid."""
    top = 12.0 + math.log(n_classes)
    logit = shift + np.linspace(-6.0, top, 91)[:, None]
    squares, entropy = _shares(n_classes, np.linspace(0.0, top, 61)[None, :])
    pi = expit(logit)
    return pi**2 * (1.0 + squares), pi * (shift - logit + entropy)


def _ceiling(beta: float, n_classes: int, shift: float) -> float:
    """Bound ``|g|^2 - 2 beta <g, z>`` over all scores ``z``; ``g`` is softmax minus one-hot."""
    top = 12.0 + math.log(n_classes)
    logit = np.concatenate([[-np.inf], shift + np.linspace(-6.0, top, 25), [np.inf]])
    ratio = np.append(np.linspace(0.0, top, 17), np.inf)
    low, near = (grid.ravel() for grid in np.meshgrid(logit[:-1], ratio[:-1]))
    high, far = (grid.ravel() for grid in np.meshgrid(logit[1:], ratio[1:]))
    cells, best, upper = _Cells(low, high, near, far), -math.inf, math.inf
    for _ in range(_ROUNDS):
        bounds, by_ratio = _bounds(beta, n_classes, shift, cells)
        best = max(best, float(np.max(_values(beta, n_classes, shift, *cells.middle()))))
        keep = bounds > best + _SLACK
        if not keep.any():
            # Every cell that was dropped, now or before, is below this.
            return best + _SLACK
        upper = float(bounds.max())
        cells = _Cells(*(edge[keep] for edge in cells)).split(by_ratio[keep])
    return upper


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

    def split(self, by_ratio: NDArray[np.bool_]) -> _Cells:
        """Cut each cell in two: its range of ratios where `by_ratio`, else that of logits."""
        logit, ratio = self.middle()
        return _Cells(
            np.concatenate([self.low, np.where(by_ratio, self.low, logit)]),
            np.concatenate([np.where(by_ratio, self.high, logit), self.high]),
            np.concatenate([self.near, np.where(by_ratio, ratio, self.near)]),
            np.concatenate([np.where(by_ratio, ratio, self.far), self.far]),
        )


def _values(
    beta: float, n_classes: int, shift: float, logit: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Return the function that is maximised, at points."""
    squares, entropy = _shares(n_classes, ratio)
    pi = expit(logit)
    return np.asarray(pi**2 * (1.0 + squares) + 2.0 * beta * pi * (shift + entropy - logit))


def _bounds(
    beta: float, n_classes: int, shift: float, cells: _Cells
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Bound the function that is maximised in cells; return whether to split their ratios."""
    # Squares grow with the ratio and entropies fall; pi (b - logit pi) rises up to its peak.
    squares, entropy = _shares(n_classes, cells.near)
    pulled = shift + entropy
    peak = pulled - 1.0 - np.real(wrightomega(pulled - 1.0))
    at = np.clip(peak, cells.low, cells.high)
    top, most = expit(cells.high), 1.0 + _shares(n_classes, cells.far)[0]
    monotone = top**2 * most + 2.0 * beta * expit(at) * (pulled - at)
    # From the corner of both lower ends the value rises at most as fast as its slopes allow.
    others = n_classes - 2
    share = 1.0 / (1.0 + others * np.exp(-cells.near))
    gap = (1.0 - np.exp(-cells.far)) / (1.0 + others * np.exp(-cells.far))
    steep = np.where(share < 0.5, 0.25, share * (1.0 - share))
    of_ratio = 2.0 * top * steep * np.maximum(top * gap - beta * cells.near, 0.0)
    of_logit = 0.5 * (top * (1.0 + squares) + beta * (pulled - cells.low - 1.0 - np.exp(cells.low)))
    with np.errstate(invalid="ignore"):
        of_ratio = np.where(of_ratio > 0.0, of_ratio * (cells.far - cells.near), 0.0)
        of_logit = np.where(of_logit > 0.0, of_logit * (cells.high - cells.low), 0.0)
        corner = _values(beta, n_classes, shift, cells.low, cells.near)
    return np.fmin(monotone, corner + of_ratio + of_logit), of_ratio > of_logit
