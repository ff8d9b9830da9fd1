"""The steps of a fit: noisy gradients of logistic regression, with the slopes of records clipped.

Replacing a record moves the sum of clipped slopes times rows of norm one by at most twice the clip,
at every point. So the number of steps is all that the budget depends on, and step size, momentum
and averaging are post-processing. Proof: ``docs/proofs/engine.md``, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dp_halfspace.engine.moment import Centring
from dp_halfspace.engine.scales import KnownScales
from dp_halfspace.optim.certificate import error_of_sums
from dp_halfspace.rows.blocks import FloatArray, into_ball
from dp_halfspace.rows.float32_rows import SINGLE_SHARE

# Number of steps, and the share of a step that goes on in the next one.
N_STEPS = 30
_MOMENTUM = 0.8
# Number of last points that are averaged.
N_AVERAGED = 15
# Largest norm of the slopes of a record over all classes. For two classes, this is one half for
# each: the slope of a record whose scores do not tell its class.
CLIP = math.sqrt(0.5)
# Norm of the coefficients of two classes after steps in one direction, each as long as the clip
# allows. Longer paths follow the noise.
PATH = 1.2
# Margins are limited to this number, so that the exponential does not overflow.
_LARGEST_EXPONENT = 40.0
# Points outside a ball of this many times the expected norm are brought back to it, so that the
# rounding errors of margins are bounded; they hardly ever are.
_BALL = 8.0
# Mapped points are brought back to a ball that is larger by this factor.
_LARGEST_MAPPED = 64.0

# Maps the margins of the rows lo to hi - 1 to the negative slopes of their losses.
Slopes: TypeAlias = Callable[[Any, int, int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class SlopedRows:
    """What stands behind the door for steps: rows, and the function of slopes from their margins.

    `weights` are those of the records, if they have any.
    """

    X: Any
    slopes: Slopes
    weights: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The points of the steps so far, all functions of released gradients.

    Coefficients have shape (n_columns,) for two classes, else (n_columns, n_classes). `size` is
    the factor of a gradient, and `deviation` that of the noise in each of its entries. The last
    `n_averaged` points are averaged, and so are the gradients there.
    """

    point: FloatArray
    velocity: FloatArray
    total: FloatArray
    last: FloatArray
    size: float
    deviation: float
    n_averaged: int = N_AVERAGED
    step: int = 0

    @property
    def ahead(self) -> FloatArray:
        """The point at which the next gradient is asked for."""
        return into_ball(self.point + _MOMENTUM * self.velocity, ball(self.point.shape))

    @property
    def average(self) -> FloatArray:
        """The mean of the last points."""
        return self.total / self.n_averaged

    def after(self, gradient: FloatArray) -> Walk:
        """Take the next step."""
        if gradient.ndim > 1:
            # Slopes sum to zero over the classes, so that the mean over classes is noise alone.
            gradient = gradient - gradient.mean(axis=1, keepdims=True)
        velocity = _MOMENTUM * self.velocity + self.size * gradient
        point = self.point + velocity
        counts = float(self.step >= N_STEPS - self.n_averaged)
        total, last = self.total + counts * point, self.last + counts * gradient
        how: dict[str, Any] = {"total": total, "last": last, "step": self.step + 1}
        return replace(self, point=point, velocity=velocity, **how)

    def common_variance(self, curvatures: FloatArray) -> FloatArray:
        """Return the covariances of average and mean of the last gradients by the noise.

        The `curvatures` are as in `errors_along`.
        """
        last = self._responses(curvatures)[N_STEPS - self.n_averaged :]
        return np.asarray(self.deviation**2 * last.mean(axis=0))

    def errors_along(self, curvatures: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return standard deviations of the average by the noise of the steps, and by the sample.

        They are those along directions in which the sum of losses has these second derivatives,
        which are also about the variances of its slope over samples. The noise of every step has a
        response of its own, the slope of the sample that of all steps.
        """
        squares = np.square(self._responses(curvatures)).sum(axis=0)
        by_sample = np.sqrt(curvatures) * np.abs(self.drift(curvatures))
        return self.deviation * np.sqrt(squares), by_sample

    def drift(self, curvatures: FloatArray) -> FloatArray:
        """Return how far the average moves if all gradients have the same error of one."""
        return np.asarray(self._responses(curvatures).sum(axis=0))

    def _responses(self, curvatures: FloatArray) -> FloatArray:
        """Return how far the average moves if the gradient of each step has a noise of one."""
        velocity, point = np.full_like(curvatures, self.size), np.full_like(curvatures, self.size)
        responses = [np.zeros_like(curvatures), point]
        for _ in range(N_STEPS - 1):
            slope = curvatures * (point + _MOMENTUM * velocity)
            velocity = _MOMENTUM * velocity - self.size * slope
            point = point + velocity
            responses.append(point)
        # Row k holds the sum of the first k responses.
        sums, step = np.cumsum(responses, axis=0), np.arange(N_STEPS)
        first = np.maximum(N_STEPS - self.n_averaged - step, 0)
        return np.asarray((sums[N_STEPS - step] - sums[first]) / self.n_averaged)


@dataclass(frozen=True, slots=True, eq=False)
class Known(KnownScales):
    """What is known during a fit: public numbers, and what was released so far.

    `class_weights` are relative to the largest. `length` is the norm that counts as one, as a share
    of the public norm of a row. `total` is the number of rows, or their weight as released.
    """

    class_weights: FloatArray = field(default_factory=lambda: np.ones(2))
    length: float = 1.0
    centring: Centring | None = None
    walk: Walk | None = None
    total: float = 0.0


def ball(shape: tuple[int, ...]) -> float:
    """Return the radius of the ball of points of a shape."""
    return _BALL * _path_of(shape) * (1.0 + math.sqrt(math.prod(shape)))


def _path_of(shape: tuple[int, ...]) -> float:
    """Return the norm of coefficients of a shape after steps in one direction without noise.

    Each of several classes has a vector of its own. Two classes have the difference of two, which
    is longer than both together by the root of two.
    """
    return PATH * math.sqrt(2.0 if len(shape) == 1 else shape[1] / 2.0)


def shape_of(n_columns: int, n_classes: int) -> tuple[int, ...]:
    """Return the shape of coefficients: one number for each column, or one for each class."""
    return (n_columns,) if n_classes == 2 else (n_columns, n_classes)


def first_walk(n_columns: int, n_classes: int, total: float, mu: float, length: float) -> Walk:
    """Return the walk before the first step.

    `total` is the number of rows, or their weight as released; `mu` is that of all steps together;
    final rows have about the second moment ``total / length^2`` in every leading direction.
    """
    clip, curvature = clip_of(n_classes), 0.25 if n_classes == 2 else 0.5
    path = _path_of(shape_of(n_columns, n_classes))
    deviation = 2.0 * clip * math.sqrt(N_STEPS) / mu
    by_noise = (1.0 - _MOMENTUM) * path * mu / (2.0 * clip * N_STEPS)
    by_curvature = length**2 / (curvature * total)
    zero = np.zeros(shape_of(n_columns, n_classes))
    return Walk(zero, zero, zero, zero, min(by_noise, by_curvature), deviation)


def clip_of(n_classes: int) -> float:
    """Return the largest norm of the slopes of a record; of two classes only the second counts."""
    return CLIP * math.sqrt(0.5) if n_classes == 2 else CLIP


def clipped_slopes(class_indices: NDArray[np.intp], weights: Any) -> Slopes:
    """Return a function that computes clipped negative slopes of two classes from margins.

    `weights` in [0, 1] multiply the slopes after they were clipped, in the precision of `weights`.
    """
    signs = np.where(class_indices == 1, 1.0, -1.0).astype(weights.dtype)
    signed = signs * weights
    least = 1.0 / clip_of(2)

    def slopes(margins: Any, lo: int, hi: int) -> Any:
        # In place: min(1 / (1 + exp(margin)), 1/2) times the weight and the sign of the class.
        margins *= signs[lo:hi]
        np.exp(np.minimum(margins, _LARGEST_EXPONENT, out=margins), out=margins)
        margins += 1.0
        np.maximum(margins, least, out=margins)
        return np.divide(signed[lo:hi], margins, out=margins)

    return slopes


def clipped_slopes_of_many(
    class_indices: NDArray[np.intp], weights: Any, clip: float = CLIP, shift: float = 0.0
) -> Slopes:
    """Return a function that computes clipped negative slopes of all classes from their scores.

    They are those of the softmax with the score of the own class lowered by the `shift`; the slopes
    of each record are clipped by themselves, to a norm of at most `clip`.
    """

    def slopes(scores: Any, lo: int, hi: int) -> Any:
        own = np.arange(hi - lo), class_indices[lo:hi]
        scores[own] -= shift
        found = -softmax(scores, axis=1)
        found[own] += 1.0
        norms = np.sqrt(np.einsum("ij,ij->i", found, found))
        found *= (weights[lo:hi] * clip / np.maximum(norms, clip))[:, None]
        return found.astype(weights.dtype, copy=False)

    return slopes


def step_sensitivity(
    n_samples: int,
    n_columns: int,
    n_classes: int,
    block_rows: int,
    stretch: float,
    *,
    is_single: bool,
) -> float:
    """Return how much replacing a record can move a gradient as computed.

    Final rows have norm at most one, and the map to them at most the norm `stretch`; it is applied
    to sums over rows of norm at most one: ``docs/proofs/engine.md``, sections 4 and 5.
    """
    clip = clip_of(n_classes)
    shape = shape_of(n_columns, n_classes)
    mapped = min(stretch, _LARGEST_MAPPED) * ball(shape)
    # Rounding errors of sums over rows, and of their product with the map.
    sizes = n_samples, n_columns + 2, block_rows
    sums = error_of_sums(*sizes, slope=clip, n_outputs=n_classes)
    product = 1.01 * 2.0**-53 * (n_columns + 4) * math.sqrt(n_columns + 2)
    # Rounded margins give other slopes, which multiply final rows of norm one.
    margins = 1.01 * 2.0**-53 * 0.5 * (n_columns + 5) * mapped
    rounding = stretch * (sums + product * n_samples * clip) + n_samples * margins
    longest = 1.0 + 2.0**-40
    if is_single:
        # In float32 the slopes of a record and the sum of its group are rounded more coarsely.
        longest += SINGLE_SHARE + 2.0**-23 * (n_classes + 16.0)
    return 2.0 * (clip * longest + rounding)


def into_mapped_ball(query: FloatArray, point: FloatArray, stretch: float) -> FloatArray:
    """Return a mapped point, brought back to the ball that rounding errors are bounded in."""
    return into_ball(query, min(stretch, _LARGEST_MAPPED) * ball(point.shape))
