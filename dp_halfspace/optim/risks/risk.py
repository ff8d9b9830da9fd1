"""What one record can do to a regularised minimiser: the questions that every risk answers.

A risk knows public numbers only. `Risk` is what the planners of output and objective
perturbation ask; `MarginRisk`, `SoftmaxRisk` and `PairRisk` answer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import UP
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.optim.objectives.function import Objective
from dp_halfspace.optim.solvers.certificate import Tolerance, gradient_error, solver_tolerance
from dp_halfspace.optim.solvers.minimum import Optimizer, certified_minimum
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.mapped_rows import Design

Vertices: TypeAlias = tuple[tuple[int, float], ...]

# Below this share of the squared row norm the regulariser is too weak for any certificate.
RIDGE_FLOOR = 1e-8


class Labelled(NamedTuple):
    """Rows, the index of the class of each, and the public weights of the classes."""

    rows: Design
    classes: NDArray[np.intp]
    weights: FloatArray


class SlopeBounds(NamedTuple):
    """What the rounding error of a gradient rests on, for the weighted slopes of a record.

    Their size, their Lipschitz constant in the margins, and their error at exact margins in units
    of 2^-53.
    """

    slope: float
    smoothness: float
    evaluation: float


class Risk(ABC):
    """A regularised risk, described by public numbers; every bound is rounded up.

    A mean over records, unless a subclass says otherwise. `n_columns` counts the coefficients of
    one vector; `row_norm` bounds the norm of a row; the constant column belongs to both.
    """

    __slots__ = ()

    n_samples: int
    n_columns: int
    row_norm: float
    block_rows: int
    pairwise: ClassVar[bool] = False

    @property
    def n_stacked(self) -> int:
        """How many separate minimisations are behind one release."""
        return 1

    @property
    def n_blocks(self) -> int:
        """How many vectors of coefficients each of them has."""
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
    @abstractmethod
    def perturbable(self) -> bool:
        """Whether objective perturbation applies: smooth, monotone, with a bounded slope."""

    @property
    @abstractmethod
    def gradient_change(self) -> float:
        """Euclidean change of the gradient, at any point, when a record is replaced."""

    @property
    def block_change(self) -> float:
        """Sum of the Euclidean changes of the blocks of the gradient."""
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
        """Number of these directions."""
        return 1

    @property
    def least_ridge(self) -> float:
        """Regulariser below which no certificate can be had."""
        return RIDGE_FLOOR * self.row_norm**2

    def total(self, ridge: float) -> float:
        """Coefficient of ``||w||^2 / 2`` in the objective."""
        return ridge * self.n_samples

    @abstractmethod
    def radius(self, ridge: float) -> float:
        """Norm that no minimiser without a linear term exceeds, on any data."""

    @abstractmethod
    def sensitivity(self, ridge: float) -> float:
        """Largest distance of the exact minimisers of neighbouring data sets."""

    def log_ratio(self, ridge: float) -> float:
        """Logarithm of the largest ratio of the Jacobians of neighbouring data sets.

        Of one separate minimisation; ``objective_perturbation.md``, Lemma 6.
        """
        return self.rank * math.log1p(self.curvature / self.total(ridge)) * UP

    def ridge_floor(self, epsilon: float) -> float:
        """Smallest regulariser whose Jacobians take at most half of `epsilon`."""
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
        """Mean loss that spherical noise on the coefficients adds."""

    @abstractmethod
    def objective(
        self, data: Labelled, positive: int, ridge: float, linear: FloatArray | None, radius: float
    ) -> Objective:
        """Return one of the separate objectives; `positive` is the class set apart."""


def jacobian_floor(curvature: float, share: float) -> float:
    """Return ``curvature / (exp(share) - 1)``, without overflow."""
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
    """Fix what a solver has to certify, on the scale of the objective.

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
    weights: FloatArray,
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
    weights : ndarray of shape (n_classes,)
        Public class weights.
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
    # Every point that is looked at has at most this norm.
    farthest = radius + 2.0 * target / risk.total(ridge)
    # Of two classes the second is the positive one; of more each is set apart from the rest.
    positives = [1] if risk.n_stacked == 1 else range(risk.n_stacked)
    solutions = []
    for index, k in enumerate(positives):
        term = None if linear is None else linear[index].ravel()

        make = partial(_objective, risk=risk, weights=weights, positive=k, radius=farthest)

        def objective(design: Any, make: Any = make, term: FloatArray | None = term) -> Objective:
            if not isinstance(classes, Chunks):
                return cast("Objective", make(design, classes, ridge=ridge, linear=term))
            from dp_halfspace.optim.objectives.chunked import chunked_objective  # noqa: PLC0415

            size, scaled = risk.n_blocks * risk.n_columns, risk.total(ridge)
            return chunked_objective(make, design, classes, size=size, ridge=scaled, linear=term)

        found = certified_minimum(
            objective(rows),
            target,
            radius=radius,
            optimizer=optimizer,
            surrogate=None if surrogate is None else objective(surrogate),
        )
        solutions.append(found.reshape(risk.n_blocks, risk.n_columns))
    return np.vstack(solutions)


def _objective(
    rows: Design,
    classes: NDArray[np.intp],
    *,
    risk: Risk,
    weights: FloatArray,
    positive: int,
    ridge: float,
    linear: FloatArray | None,
    radius: float,
) -> Objective:
    """Return one of the separate objectives, of all rows or of those of a chunk."""
    return risk.objective(Labelled(rows, classes, weights), positive, ridge, linear, radius)
