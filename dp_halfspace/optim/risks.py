"""Bounds on the effect of one record on a regularised minimiser, for several risks.

A risk contains public numbers only, and every bound is rounded up. `Risk` is the interface that the
planners of output and objective perturbation use; `MarginRisk` and `SoftmaxRisk` implement it, and
so does `PairRisk` of the paper on pairs. Proofs: ``docs/proofs/stability.md``, ``robust.md``,
``certificate.md`` and ``objective_perturbation.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, lambertw

from dp_halfspace._memory import AT_ONCE
from dp_halfspace._params import require
from dp_halfspace._rounding import EPS, FAR_UP, UP
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.record_weights import Weights
from dp_halfspace.exceptions import BudgetError, CertificateError
from dp_halfspace.optim.certificate import Tolerance, gradient_error, solver_tolerance
from dp_halfspace.optim.losses import Loss, softmax_diameter
from dp_halfspace.optim.objectives import (
    NO_RIDGE,
    Adversary,
    ChunkedObjective,
    MarginObjective,
    Objective,
    SoftmaxObjective,
)
from dp_halfspace.optim.solvers import Optimizer, certified_minimum
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design

Vertices: TypeAlias = tuple[tuple[int, float], ...]

# Smallest regulariser as a share of the squared row norm; a smaller one is too weak for a
# certificate.
RIDGE_FLOOR = 1e-8


class SlopeBounds(NamedTuple):
    """Bounds on the weighted slopes of a record, from which the error of a gradient follows.

    `slope` bounds their norm, `smoothness` their Lipschitz constant in the margins, and
    `evaluation` their error at exact margins, in units of 2^-53.
    """

    slope: float
    smoothness: float
    evaluation: float


class Task(NamedTuple):
    """One of the separate minimisations of a risk.

    `weights` are those of the classes. `positive` is the class that is compared with the rest,
    `linear` the linear term of this minimisation, and `radius` bounds the norm of points at which a
    gradient is computed.
    """

    weights: Weights
    positive: int
    ridge: float
    linear: FloatArray | None = None
    radius: float = math.inf


class Risk(ABC):
    """A regularised risk, described by public numbers; every bound is rounded up.

    It is a mean over records, unless a subclass defines another sum. `n_columns` is the number of
    coefficients of one vector, `row_norm` bounds the norm of a row; both include the constant
    column.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: nothing here; output perturbation releases a minimiser with noise, objective
      perturbation the minimiser of the risk with a random linear term.
    - Sensitivity: `sensitivity` bounds the distance of the exact minimisers of neighbouring data
      sets, `gradient_change` that of their gradients at any point, and `log_ratio` the logarithm
      of the ratio of their Jacobians.
    - Proof: ``docs/proofs/stability.md`` and ``objective_perturbation.md``; for a sum over pairs
      ``pairwise.md``, for a tilt or an adversary ``robust.md``.
    """

    __slots__ = ()

    # The softmax, which has no margin loss, has the constants of its own instead.
    loss: Loss
    n_samples: int
    n_columns: int
    row_norm: float
    block_rows: int
    max_weight: float = 1.0
    pairwise: ClassVar[bool] = False

    @property
    def n_stacked(self) -> int:
        """Number of separate minimisers that are released together."""
        return 1

    @property
    def n_blocks(self) -> int:
        """Number of vectors of coefficients of each minimiser."""
        return 1

    @property
    def n_released(self) -> int:
        """Number of coefficients that are released."""
        return self.n_columns * self.n_stacked * self.n_blocks

    @property
    def row_length(self) -> float:
        """Bound on the norm of the gradient of a record's margin."""
        return self.row_norm

    @property
    def robust(self) -> bool:
        """Whether the mean is tilted or the features are moved."""
        return False

    @property
    def perturbable(self) -> bool:
        """Whether objective perturbation applies: smooth, monotone, with a bounded slope."""
        return self.loss.monotone and math.isfinite(self.loss.lipschitz) and not self.robust

    @property
    @abstractmethod
    def gradient_change(self) -> float:
        """Bound on the Euclidean change of the gradient at any point when a record is replaced."""

    @property
    def block_change(self) -> float:
        """Bound on the sum of the Euclidean changes of the blocks of the gradient."""
        return self.gradient_change

    @property
    @abstractmethod
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes: number, length over `gradient_change`."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Largest mean curvature of one record over the directions where it has any."""

    @property
    def rank(self) -> int:
        """Number of directions in which a record has curvature."""
        return 1

    @property
    def least_ridge(self) -> float:
        """Smallest regulariser for which a certificate is attempted: ``1e-8 c r^2``."""
        return RIDGE_FLOOR * self.max_weight * self.row_norm**2

    def total(self, ridge: float) -> float:
        """Coefficient of ``||w||^2 / 2`` in the objective."""
        return ridge * self.n_samples

    @abstractmethod
    def radius(self, ridge: float) -> float:
        """Bound the norm of the minimiser without a linear term, on every data set."""

    @abstractmethod
    def sensitivity(self, ridge: float) -> float:
        """Bound the distance between the exact minimisers of neighbouring data sets."""

    def log_ratio(self, ridge: float) -> float:
        """Bound the logarithm of the ratio of the Jacobians of neighbouring data sets.

        The bound is for one separate minimisation: ``objective_perturbation.md``, Lemma 6.
        """
        return self.rank * math.log1p(self.curvature / self.total(ridge)) * UP

    def ridge_floor(self, epsilon: float) -> float:
        """Return the smallest regulariser whose Jacobians take at most half of `epsilon`."""
        floor = jacobian_floor(self.curvature, epsilon / (2.0 * self.n_stacked * self.rank))
        return max(floor / self.n_samples * UP, RIDGE_FLOOR * self.row_norm**2)

    @abstractmethod
    def slope_bounds(self, radius: float) -> SlopeBounds:
        """Bound the slopes of a record at points of norm up to `radius`, and their errors."""

    def gradient_error(self, ridge: float, radius: float, linear: float) -> float:
        """Bound the rounding error of a computed gradient at points of norm up to `radius`.

        ``certificate.md``, Theorem 2.
        """
        return gradient_error(
            n_samples=self.n_samples,
            n_columns=self.n_columns,
            block_rows=self.block_rows,
            row_norm=self.row_length,
            ridge=self.total(ridge),
            radius=radius,
            linear=linear,
            **self.slope_bounds(radius)._asdict(),
        )

    @abstractmethod
    def noise_cost(self, variance: float) -> float:
        """Return the mean loss that spherical noise on the coefficients adds."""

    @abstractmethod
    def objective(self, rows: Design, classes: NDArray[np.intp], task: Task) -> Objective:
        """Return one of the separate objectives, of all rows or of those of a chunk.

        `classes` are the class indices of the rows.
        """


def jacobian_floor(curvature: float, share: float) -> float:
    """Return ``curvature / (exp(share) - 1)``, without overflow.

    Raise a `BudgetError` if earlier releases have left no epsilon.
    """
    if not share > 0.0:
        raise BudgetError(
            "epsilon is too small for a perturbed objective: give a larger epsilon, "
            "or data_norm, the PUBLIC scale of a row"
        )
    return curvature * (math.exp(-share) / -math.expm1(-share))


def tolerance(
    risk: Risk,
    ridge: float,
    radius: float,
    change: float,
    *,
    linear: float = 0.0,
    linear_error: float = 0.0,
) -> Tolerance:
    """Return the tolerance that a solver has to certify, on the scale of the objective.

    Parameters
    ----------
    risk : Risk
    ridge : float
        Coefficient of the regulariser.
    radius : float
        Bound on the norm of the exact minimiser.
    change : float
        How much the gradient can change when one record is replaced.
    linear : float, default=0.0
        Bound on the norm of the linear term; with objective perturbation a public one that
        holds but for a negligible probability, never the norm that was drawn.
    linear_error : float, default=0.0
        Bound on the distance of the linear term that is used to the one that is meant.

    Returns
    -------
    Tolerance

    Raises
    ------
    CertificateError
        If twice the certified gradient exceeds `change`: the allowance for inexact minimisers
        would more than double the noise.

    References
    ----------
    ``docs/proofs/certificate.md``, section 3.
    """
    largest = radius + change / risk.total(ridge)
    error = risk.gradient_error(ridge, largest, linear)
    return solver_tolerance(change, error, linear_error, largest)


def minimisers(
    risk: Risk,
    rows: Any,
    classes: Any,
    weights: Weights,
    *,
    ridge: float,
    target: float,
    radius: float,
    linear: Sequence[FloatArray] | None = None,
    optimizer: Optimizer = "auto",
    surrogate: Design | None = None,
) -> FloatArray:
    """Return certified minimisers, one row for each released halfspace.

    Parameters
    ----------
    risk : Risk
    rows : Design or ChunkedRows
        Of the public norm of the risk, constant column included.
    classes : ndarray of shape (n_samples,) or Chunks
        Index of the class of each record.
    weights : ndarray of shape (n_classes,) or RecordWeights
        Public class weights, or these times private weights of the records in [0, 1]: bounds for
        the class weights hold (``docs/proofs/weights.md``).
    ridge : float
        Coefficient of the regulariser.
    target : float
        Norm of the gradient that is certified for each minimisation.
    radius : float
        Public bound on the norm of each separate minimiser.
    linear : sequence of ndarray or None, default=None
        Linear term of each separate minimisation.
    optimizer : str or callable, default="auto"
        As in :func:`~dp_halfspace.optim.certified_minimum`.
    surrogate : Design or None, default=None
        The same rows with cheaper passes, for the path to a minimiser; certificates use
        `rows`.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Within the certified distance of the exact minimisers on every data set. Private: they
        must be perturbed before anybody sees them.
    """
    # Largest norm of a point at which a gradient is computed.
    farthest = radius + 2.0 * target / risk.total(ridge)
    # With two classes, the second one is positive; with more, each class is compared with the rest.
    positives = [1] if risk.n_stacked == 1 else range(risk.n_stacked)
    solutions = []
    for index, k in enumerate(positives):
        term = None if linear is None else linear[index].ravel()

        task = Task(weights, k, ridge, term, farthest)

        def objective(design: Any, task: Task = task) -> Objective:
            if not isinstance(classes, Chunks):
                return risk.objective(design, classes, task)
            size, scaled = risk.n_blocks * risk.n_columns, risk.total(ridge)
            make = partial(risk.objective, task=task._replace(ridge=NO_RIDGE, linear=None))
            return ChunkedObjective(make, design, classes, size, scaled, task.linear)

        near = None if surrogate is None else objective(surrogate)
        found = certified_minimum(
            objective(rows), target, radius=radius, optimizer=optimizer, surrogate=near
        )
        solutions.append(found.reshape(risk.n_blocks, risk.n_columns))
    return np.vstack(solutions)


# Number of rounds that improve the bound on the radius with an adversary.
_RADIUS_ROUNDS = 100
# Largest error of an exponent of a tilted mean whose effect is of first order.
_LARGEST_EXPONENT_ERROR = 1e-3


@dataclass(frozen=True, slots=True)
class MarginRisk(Risk):
    """Regularised mean of a margin loss, per mean loss.

    Attributes
    ----------
    loss : Loss
        Smooth margin loss.
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts. With three classes or more, each class against the
        rest is a problem of its own.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.rows.blocks.block_size`.
    max_weight : float
        Largest public class weight.
    tilt : float
        Tilt ``T`` of the mean loss; 0 for the mean itself.
    adversary : Adversary or None
        Who moves the features; the loss must then be monotone.
    min_weight : float
        Smallest public class weight. It matters with a tilt only, and 0 is always safe: a light
        and a heavy record differ even where their margins agree.
    """

    loss: Loss
    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    max_weight: float = 1.0
    tilt: float = 0.0
    adversary: Adversary | None = None
    min_weight: float = 0.0

    # Those of the square of two slopes: ``objective_perturbation.md``, Lemma 4.
    vertices: ClassVar[Vertices] = ((1, 0.0), (2, 0.5), (1, 1.0))

    def __post_init__(self) -> None:
        require("at least 0 and finite", tilt=self.tilt)
        if not 0.0 <= self.min_weight <= self.max_weight:
            raise ValueError("min_weight must be between 0 and max_weight")
        if self.adversary is None:
            return
        if not self.loss.monotone:
            raise ValueError("an adversary needs a monotone loss")
        if self.adversary.n_features > self.n_columns:
            raise ValueError("the adversary moves more columns than there are")

    @property
    def robust(self) -> bool:
        """Whether the mean is tilted or the features are moved."""
        return self.tilt > 0.0 or self.adversary is not None

    @property
    def n_stacked(self) -> int:
        """How many separate binary problems are solved."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def row_length(self) -> float:
        """Bound on the norm of the gradient of a record's margin."""
        return self.row_norm + (self.adversary.added_row_norm if self.adversary else 0.0)

    @property
    def gradient_change(self) -> float:
        """``2 c L r``; ``objective_perturbation.md``, Lemma 2."""
        return self.loss.lipschitz * self.max_weight * 2.0 * self.row_norm * UP

    @property
    def curvature(self) -> float:
        """Bound on the curvature of one record."""
        return self.max_weight * self.row_norm**2 * self.loss.smoothness

    def radius(self, ridge: float) -> float:
        """Bound the norm of the minimiser: ``stability.md``, Lemma 1; ``robust.md``, Lemma 2."""
        sizes = {"row_norm": self.row_norm, "ridge": ridge, "max_weight": self.max_weight}
        radius = minimiser_radius(self.loss, **sizes)
        if self.adversary is None:
            return radius
        # Lemma 2 turns any bound on the norm into another one, so every round yields a bound.
        for _ in range(_RADIUS_ROUNDS):
            margin = self._highest_margin(radius) * FAR_UP
            self_bound = self.loss.self_bound
            if margin < self.loss.self_argmax:
                self_bound = min(self_bound, float(self.loss.h(np.asarray(margin))))
            radius = min(radius, math.sqrt(self.max_weight * self_bound / ridge) * FAR_UP)
        return radius

    def sensitivity(self, ridge: float) -> float:
        """Bound the distance between minimisers of neighbouring data sets.

        ``stability.md``, Theorems 3 and 4, and ``robust.md``, Theorem 4.
        """
        largest_margin = self.row_length * self.radius(ridge)
        if self.adversary is None:
            is_logistic = self.loss.name == "logistic"
            bound = logistic_diameter if is_logistic else self.loss.slope_bound
            slope = bound(largest_margin)
            width = 2.0 * self.max_weight * self.row_norm * slope
        else:
            largest_margin *= FAR_UP
            longest = max(2.0 * self.row_norm, self.row_length)
            width = self.loss.slope_bound(largest_margin) * longest
            if self.loss.name == "logistic":
                width = min(width, 2.0 * self.row_length * logistic_diameter(largest_margin))
            width *= self.max_weight
        of_mean = width / (ridge * self.n_samples) * FAR_UP
        return of_mean * self.influence(ridge)

    def influence(self, ridge: float) -> float:
        """Bound the weight of one record in a tilted mean, in units of its weight in the mean.

        ``n C / (C + n - 1)`` for ``C = exp(tilt spread)``; ``robust.md``, Lemma 3.
        """
        if self.tilt == 0.0:
            return 1.0
        n, spread = self.n_samples, self.spread(ridge)
        share = 1.0 / (1.0 + (n - 1) * math.exp(-self.tilt * spread * FAR_UP))
        return min(float(n), n * share * FAR_UP)

    def spread(self, ridge: float) -> float:
        """Bound the difference between the weighted losses of two records at a minimiser.

        Records of different weights differ even if their margins agree: ``robust.md``, Lemma 3.
        """
        radius = self.radius(ridge)
        lowest = self.row_length * radius
        highest = self._highest_margin(radius) * FAR_UP
        most = self.max_weight * float(self.loss.value(-lowest * FAR_UP))
        least = self.min_weight * float(self.loss.value(min(highest, self.loss.minimiser)))
        return most - least + most * (FAR_UP - 1.0)

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """Bound the slopes of a record and their rounding errors.

        ``certificate.md``, section 2; with a tilt or an adversary ``robust.md``, Theorem 5. The
        weights of a tilted mean are exponentials of losses, so an error of a loss becomes a
        relative error of a weight, ``tilt`` times as large.
        """
        loss, weight, lowest = self.loss, self.max_weight, self.row_length * radius
        slope = loss.slope_bound(lowest)
        # Errors of slopes, and relative errors of weights, in units of EPS.
        of_slope, in_weights = 8.0 * slope + 16.0 * loss.smoothness, 0.0
        if self.robust:
            exponent = self._exponent_error(lowest, slope)
            sums = 2.0 * (AT_ONCE + self.n_samples / AT_ONCE)
            in_weights = 2.0 * exponent + 40.0 + sums + self.n_columns
            of_slope += loss.smoothness * 18.0 * lowest
        evaluation = weight * (of_slope + slope * in_weights)
        return SlopeBounds(weight * slope, weight * loss.smoothness, evaluation)

    def _exponent_error(self, lowest: float, slope: float) -> float:
        """Bound the error of the exponents of a tilted mean, in units of EPS."""
        most = float(self.loss.value(-lowest))
        of_margin, of_value = (self.n_columns + 20) * lowest, 24.0 * most + 4.0 * (1.0 + slope)
        error = self.tilt * self.max_weight * (slope * of_margin + of_value + 6.0 * most)
        if error * EPS > _LARGEST_EXPONENT_ERROR:
            raise CertificateError(
                "the tilt is so large that rounding errors of the losses can change the weights"
            )
        return error

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that spherical noise on the coefficients adds.

        Without an adversary it has no factor of the dimension, because noise changes a margin only
        along the row (``excess_risk.md``). With a tilt the noise is taken to be Gaussian. With a
        tilt or an adversary, quadratic losses are assumed to have margins of at least -1, where
        their slope is bounded (``robust.md``, section 5).
        """
        loss, weight = self.loss, self.max_weight
        smooth = loss.smoothness * self.row_norm**2 * variance / 2
        lipschitz = loss.lipschitz * self.row_norm * math.sqrt(2 * variance / math.pi)
        steepest = loss.lipschitz if math.isfinite(loss.lipschitz) else loss.slope_bound(1.0)
        cost, slope = min(smooth, lipschitz) * weight, weight * steepest
        cost += self.tilt * (slope * self.row_norm) ** 2 * variance / 2 if self.tilt else 0.0
        cost += slope * self.adversary.of_noise(variance) if self.adversary else 0.0
        return cost * self.n_stacked

    def objective(self, rows: Design, classes: NDArray[np.intp], task: Task) -> MarginObjective:
        """Return the objective of one class against the rest."""
        return MarginObjective(
            rows,
            np.where(classes == task.positive, 1.0, -1.0),
            task.weights[classes],
            self.loss,
            self.total(task.ridge),
            task.linear,
            self.tilt,
            self.adversary,
            task.radius if self.robust else math.inf,
        )

    def _highest_margin(self, norm: float) -> float:
        """Bound the margins under attack, at coefficients of norm at most `norm`."""
        plain, adversary = self.row_norm * norm, self.adversary
        if adversary is None or adversary.n_features < self.n_columns:
            return plain
        return min(plain, max(self.row_norm - adversary.radius, 0.0) * norm + adversary.slack)


def minimiser_radius(
    loss: Loss, *, row_norm: float, ridge: float, max_weight: float = 1.0
) -> float:
    """Bound the norm of the minimiser of the mean loss plus ``ridge / 2 ||w||^2``.

    Parameters
    ----------
    loss : Loss
        Convex margin loss.
    row_norm : float
        Bound on the Euclidean norm of a row, constant feature included.
    ridge : float
        Coefficient of the regulariser, per mean loss.
    max_weight : float, default=1.0
        Largest public class weight.

    Returns
    -------
    float
        Radius of a ball round zero that holds the minimiser of every data set.

    References
    ----------
    ``docs/proofs/stability.md``, Lemma 1.

    Examples
    --------
    >>> from dp_halfspace.optim import minimiser_radius
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> round(minimiser_radius(LOGISTIC, row_norm=1.0, ridge=0.01), 4)
    5.277
    """
    outer = math.sqrt(max_weight * loss.self_bound / ridge)
    if row_norm * outer >= loss.self_argmax:
        return outer * FAR_UP

    def excess(radius: float) -> float:
        slope = abs(float(loss.derivative(np.asarray(row_norm * radius))))
        return ridge * radius - max_weight * row_norm * slope

    return float(brentq(excess, 0.0, outer * FAR_UP, xtol=1e-300, rtol=1e-12)) * FAR_UP


def logistic_diameter(a: float) -> float:
    """Half the diameter of the gradients of the logistic loss at a vector of norm `a`.

    Parameters
    ----------
    a : float
        Norm of the vector times the norm of a row.

    Returns
    -------
    float
        ``max sin(t) sigmoid(a cos(t))``, in units of the norm of a row; between 1/2 and 1.

    References
    ----------
    ``docs/proofs/stability.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.optim.risks import logistic_diameter
    >>> round(logistic_diameter(1.0), 6)
    0.549548
    """
    found = minimize_scalar(
        lambda t: -math.sin(t) * float(expit(a * math.cos(t))),
        bounds=(0.0, math.pi / 2),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return min(1.0, -float(found.fun) * FAR_UP)


@dataclass(frozen=True, slots=True)
class SoftmaxRisk(Risk):
    """Regularised mean cross-entropy of the softmax of the scores, per mean loss.

    Attributes
    ----------
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm : float
        Bound on the Euclidean norm of a row, constant column included.
    block_rows : int
        Rows that are summed at a time, see :func:`~dp_halfspace.rows.blocks.block_size`.
    max_weight : float
        Largest public class weight.
    """

    n_samples: int
    n_columns: int
    n_classes: int
    row_norm: float
    block_rows: int
    max_weight: float = 1.0

    perturbable: ClassVar[bool] = True
    # Bound on the norm of a record's vector of slopes p - e_y, and their Lipschitz constant in the
    # scores.
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    smoothness: ClassVar[float] = 0.5

    @property
    def n_blocks(self) -> int:
        """Number of vectors of coefficients, one for each class."""
        return self.n_classes

    @property
    def gradient_change(self) -> float:
        """``sqrt(2) c 2 r``; ``objective_perturbation.md``, Lemma 2."""
        return self.lipschitz * self.max_weight * 2.0 * self.row_norm * UP

    @property
    def block_change(self) -> float:
        """Bound on the sum of the changes of K blocks; ``objective_perturbation.md``, Lemma 2."""
        return self.gradient_change * (math.sqrt(2.0) * UP)

    @property
    def vertices(self) -> Vertices:
        """Vertices of the set of gradient changes; ``objective_perturbation.md``, Lemma 4."""
        others = self.n_classes - 1
        return (
            (1, 0.0),
            (2 * others, 0.5),
            (others * (others - 1), math.sqrt(0.75) * UP),
            (others, 1.0),
        )

    @property
    def curvature(self) -> float:
        """Bound on the mean curvature of one record over the directions where it has any."""
        return self.max_weight * self.row_norm**2 / self.n_classes

    @property
    def rank(self) -> int:
        """Number of directions in which a record has curvature."""
        return self.n_classes - 1

    def radius(self, ridge: float) -> float:
        """Bound the Frobenius norm of the minimiser: ``stability.md``, section 4."""
        peak = float(lambertw((self.n_classes - 1) * math.exp(-1.0)).real)
        return math.sqrt(self.max_weight * peak / ridge) * FAR_UP

    def sensitivity(self, ridge: float) -> float:
        """Bound the Frobenius distance of neighbouring minimisers: ``stability.md``, Theorem 5."""
        largest_margin = self.row_norm * self.radius(ridge)
        slope = softmax_diameter(self.n_classes, largest_margin)
        width = 2.0 * self.max_weight * self.row_norm * slope
        return width / (ridge * self.n_samples) * FAR_UP

    def slope_bounds(self, radius: float) -> SlopeBounds:
        """Bound the slopes of a record and their rounding errors: ``certificate.md``, section 2."""
        return SlopeBounds(
            self.max_weight * self.lipschitz,
            self.max_weight * self.smoothness,
            self.max_weight * (2.0 * self.n_classes + 24.0),
        )

    def noise_cost(self, variance: float) -> float:
        """Bound the mean loss that noise of this variance adds; ``excess_risk.md``."""
        return (1 - 1 / self.n_classes) * self.max_weight * self.row_norm**2 * variance / 2

    def objective(self, rows: Design, classes: NDArray[np.intp], task: Task) -> SoftmaxObjective:
        """Return the objective of all classes together; it needs no radius."""
        total = self.total(task.ridge)
        weights = task.weights[classes]
        return SoftmaxObjective(rows, classes, self.n_classes, weights, total, task.linear)


def empirical_risk(  # noqa: PLR0917 - the sizes of a problem, in the order of every risk
    loss: Loss,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    row_norm: float,
    block_rows: int,
    *,
    max_weight: float = 1.0,
    min_weight: float = 0.0,
    tilt: float = 0.0,
    adversary: Adversary | None = None,
) -> MarginRisk | SoftmaxRisk:
    """Return the regularised risk of a loss.

    Parameters
    ----------
    loss : Loss
        Smooth margin loss. The logistic loss, with three classes or more and neither tilt nor
        adversary, means the multinomial model; everything else sets each class apart from the rest.
    n_samples, n_columns, n_classes : int
        Sizes; the constant column counts.
    row_norm, block_rows, max_weight, min_weight, tilt, adversary
        As in :class:`~dp_halfspace.optim.risks.MarginRisk`.

    Returns
    -------
    MarginRisk or SoftmaxRisk

    Raises
    ------
    ValueError
        If the adversary is so strong that there is nothing to learn, or a number does not fit.

    Examples
    --------
    >>> from dp_halfspace.optim import empirical_risk
    >>> from dp_halfspace.optim.losses import LOGISTIC
    >>> type(empirical_risk(LOGISTIC, 1000, 10, 3, row_norm=1.0, block_rows=1000)).__name__
    'SoftmaxRisk'
    """
    if adversary is not None and adversary.radius >= row_norm:
        raise ValueError(
            "the radius of the adversary must be smaller than the bound on the norm of a row: "
            "otherwise every coefficient that is moved is 0, whatever the data"
        )
    if n_classes > 2 and loss.name == "logistic" and not tilt and adversary is None:
        return SoftmaxRisk(n_samples, n_columns, n_classes, row_norm, block_rows, max_weight)
    return MarginRisk(
        loss, n_samples, n_columns, n_classes, row_norm, block_rows,
        max_weight, tilt, adversary, min_weight,
    )  # fmt: skip
