"""How far apart the gradients of two records of different classes can be, multinomial model.

The squared distance is at most a constant plus one number for each record, a function of three of
its coordinates that is bounded from above on a grid. Opposite rows, and kinds of pairs by how much
of the probability goes to the rest, have their own multipliers: ``stability.md``, Theorem 5.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["REACHES", "distance_of_classes"]

FloatArray: TypeAlias = NDArray[np.float64]

# Distances of the points of the grid, and of the one on which multipliers are chosen.
_FINE, _COARSE = 0.06, 0.4
# Probabilities and shares below exp(-18) change no number by more than the tail.
_FAR, _TAIL = 18.0, 1e-5
# At other reaches the ball of all gradients is as good.
REACHES = 5e-4, 30.0
_CASES = "opposite", "few few", "few some", "few most", "few all", "more more"
# Logits of the rest that part the kinds few, some, most and all, about; more is all but few.
_SPLITS = -0.2, 0.6, 1.4


class _Multipliers(NamedTuple):
    """Price of the squared norm, slopes of the centre, parts of the coupling, its skew."""

    price: float
    across: float
    both: float = 0.0
    rest: float = 0.0
    kept_both: float = 0.0
    kept_rest: float = 0.0
    skew: float = 1.0

    def left(self) -> tuple[float, float, float]:
        """Prices that are left over for each part of the scores."""
        spent = (2.0 + self.skew + 1.0 / self.skew) * self.across**2
        both = 4.0 * self.both**2 / self.kept_both if self.both else 0.0
        rest = 0.0 if self.rest else self.price
        return max(0.0, self.price - spent), max(0.0, self.price - both), rest


class _Grid(NamedTuple):
    """Logit of the rest, half log-odds of the two classes, log-ratio of shares; functions.

    The step is that of the first two, `apart` that of the last.
    """

    n_classes: int
    shift: float
    step: float
    apart: float
    kinds: dict[str, slice]
    logit: FloatArray
    odds: FloatArray
    ratio: FloatArray
    probability: FloatArray
    lead: FloatArray
    cosh: FloatArray
    squares: FloatArray
    entropy: FloatArray
    mean: FloatArray


def distance_of_classes(n_classes: int, reach: float, shift: float, enough: float) -> float:
    """Bound half the distance of gradients of two classes, of three or more.

    The result is at least `enough`, and not lowered further; the reach is within `REACHES`.
    """
    coarse, fine = (_grid(n_classes, reach, shift, unit) for unit in (_COARSE, _FINE))
    found = 4.0 * enough**2
    for case in _CASES:
        start = _start(n_classes, reach, shift, case)
        square = _exact(fine, reach, case, start)
        if square > found:
            simplex = np.vstack([start, start - 0.6 * np.eye(len(start))])
            at = minimize(
                _square_at,
                start,
                args=(coarse, reach, case, found - 0.1),
                method="Nelder-Mead",
                options={
                    "maxiter": 40 * len(start),
                    "xatol": np.inf,
                    "fatol": 3e-4,
                    "initial_simplex": simplex,
                },
            ).x
            found = max(found, min(square, _exact(fine, reach, case, at)))
    return math.sqrt(found) / 2.0


def _exact(grid: _Grid, reach: float, case: str, at: FloatArray) -> float:
    """Bound the squared distance."""
    by = _multipliers(grid, reach, at, case)
    return _square(grid, reach, case, by) + _error(grid, reach, by)


def _square_at(at: FloatArray, grid: _Grid, reach: float, case: str, enough: float) -> float:
    """Estimate the squared distance; less than what is enough is as good."""
    return max(_square(grid, reach, case, _multipliers(grid, reach, at, case)), enough)


def _start(n_classes: int, reach: float, shift: float, case: str) -> FloatArray:
    """Where the search for multipliers starts: nearly the best for up to 30 classes."""
    price = min(0.1, 0.7 - 0.12 * reach)
    share = 3.0 - 2.0 * math.log(n_classes - 2) - 2.0 * max(shift, 0.0)
    return np.array(
        {
            "opposite": [-0.2, 1.0],
            "few few": [price, 1.0],
            "few some": [price, 0.2, 0.5, share, -0.3],
            "few most": [price, 0.2, 0.5, share, -0.3],
            "few all": [price, 0.2, 0.5, share, -0.3],
            "more more": [-0.3, -0.3, 0.0, share],
        }[case]
    )


def _multipliers(grid: _Grid, reach: float, at: FloatArray, case: str) -> _Multipliers:
    """Map any numbers to multipliers that are allowed."""
    price = math.exp(2.0 * min(max(float(at[0]), -6.0), 1.0)) / reach**2
    part = float(expit(at[1]))
    slope = 0.5 * math.sqrt(price)
    if case == "opposite":
        return _Multipliers(price, 0.0, slope * part, slope, 1.0, 1.0)
    skew = math.exp(min(max(float(at[4]), -2.0), 2.0)) if len(at) > 4 else 1.0
    across = part * math.sqrt(price / (2.0 + skew + 1.0 / skew))
    if case == "few few":
        return _Multipliers(price, across)
    rest, share = float(expit(at[2])), float(expit(at[3]))
    both = min(share * rest, 1.0 - 2.0 / grid.n_classes * (1.0 - rest))
    slopes = slope * math.sqrt(both * share), slope * math.sqrt(rest)
    return _Multipliers(price, across, *slopes, both, rest, skew)


def _grid(n_classes: int, reach: float, shift: float, unit: float) -> _Grid:
    """Cover all scores of norm at most `reach`; two of them differ by sqrt(2) times it."""
    scale = min(1.0, reach / 2.0)
    step, apart = unit * scale * max(1.0, reach / 10.0), unit * math.sqrt(scale)
    wide, others = math.sqrt(2.0) * reach, math.log(n_classes - 2)
    even = others - float(np.logaddexp(0.0, -shift))
    low = max(even - wide, -_FAR)
    high = max(low, min(even + wide, others + _FAR + max(shift, 0.0) / 2.0))
    # The logits that part the kinds are points of the grid.
    first, last = math.floor((low - _SPLITS[0]) / step), math.ceil((high - _SPLITS[0]) / step)
    logit: FloatArray = _SPLITS[0] + step * np.arange(first, last + 1.0)
    few, some, most = (max(0, round((at - _SPLITS[0]) / step) - first) for at in _SPLITS)
    kinds = {"few": slice(few + 1 if first <= 0 else 0), "more": slice(few, None)}
    kinds |= {"some": slice(few, some + 1), "most": slice(some, most + 1), "all": slice(most, None)}
    odds = np.arange(0.0, wide + step, step)[None, :] + (shift - wide) / 2.0
    logit = logit[:, None]
    ratio = np.arange(0.0, _FAR + others + apart, apart)[None, :]
    if n_classes == 3:
        ratio = np.zeros((1, 1))
    count = n_classes - 3
    share = 1.0 / (1.0 + count * np.exp(-ratio))
    squares = share**2 * (1.0 + count * np.exp(-2.0 * ratio)) - 1.0 / (n_classes - 2)
    entropy = (1.0 - share) * ratio - np.log(share)
    mean = count / (n_classes - 2) * ratio - np.log(share)
    cosh = np.logaddexp(odds, -odds)
    public = n_classes, shift, step, apart, kinds
    lead: FloatArray = np.tanh(odds)
    functions = np.asarray(expit(logit)), lead, cosh, squares, entropy, mean
    return _Grid(*public, logit, odds, ratio, *functions)


def _square(grid: _Grid, reach: float, case: str, by: _Multipliers) -> float:
    """Largest value on the grid of the sum that bounds the squared distance."""
    if case == "opposite":
        return 2.0 * float(np.max(_record(grid, by, 1.0))) + by.price * reach**2
    total = by.price * reach**2
    for kind, weight in zip(case.split(), (1.0 + by.skew, 1.0 + 1.0 / by.skew), strict=True):
        values = _record(grid, by, weight)[grid.kinds[kind]]
        if not values.size:
            return 0.0
        total += float(np.max(values))
    return total


def _record(grid: _Grid, by: _Multipliers, weight: float) -> FloatArray:
    """One record's part of the sum; the weight is that of the difference of the two classes."""
    classes, p = grid.n_classes, grid.probability
    across, both, rest = by.left()
    gap = grid.shift - 2.0 * grid.odds
    pull = 1.0 + (1.0 - p) * grid.lead
    size = classes / (2.0 * (classes - 2))
    shares = (1.0 + by.kept_rest) * p**2 * grid.squares + 4.0 * by.rest * p * grid.entropy
    shares -= 4.0 * (by.rest - by.both) * p * grid.mean
    shares -= 0.5 * rest * (classes - 3) / (classes - 2) * grid.ratio**2
    alone = (1.0 + by.kept_both) * size * p**2 + 4.0 * by.both * p * (grid.shift / 2 - grid.logit)
    alone += shares.max(axis=1, keepdims=True)
    value = weight * pull * (0.5 * pull + by.across * gap) - 0.25 * across * gap**2 + alone
    if by.both:
        value -= 4.0 * by.both * p * grid.cosh
    if both > 0.0:
        behind = grid.shift / 2 + math.log(classes - 2) - grid.logit - grid.cosh
        value -= 0.5 * both / size * np.maximum(behind, 0.0) ** 2
    return np.asarray(value)


def _error(grid: _Grid, reach: float, by: _Multipliers) -> float:
    """Bound what the sum can rise by between points of the grid, and beyond it."""
    across, both, rest = by.left()
    shift, wide = abs(grid.shift), math.sqrt(2.0) * reach
    weights = 2.0 + by.skew + 1.0 / by.skew
    size = grid.n_classes / (2.0 * (grid.n_classes - 2))
    last = float(grid.ratio[0, -1])
    odds = weights * (1.25 + by.across * (5.3 + 0.8 * shift)) + 4.0 * across + 8.0 * by.both
    odds += 2.0 * both / size
    logit = weights * (0.2 + 0.12 * by.across * wide) + 0.25 * (1.0 + by.kept_both) * size
    logit += 8.0 * by.both * (0.5 + 0.1 * (shift + wide / 2 + 1.0)) + 2.0 * both / size
    logit += 0.25 * (1.0 + by.kept_rest) + 0.8 * by.rest * (last + math.log(grid.n_classes))
    ratio = 0.4 * (1.0 + by.kept_rest) + by.rest * (4.0 + 0.8 * last) + 2.0 * rest
    curved = (odds + logit) * grid.step**2 + ratio * grid.apart**2
    return curved / 8.0 + 2.0 * _TAIL
