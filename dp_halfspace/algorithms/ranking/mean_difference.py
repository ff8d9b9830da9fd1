"""The difference of the class means of standardised rows: the shortest private ranking.

It is the direction of the minimisers of every pairwise loss as the regulariser grows. Rows
are centred and scaled by released moments and clipped to the unit ball, each by itself, and
one noisy sum is all that remains. Derivations: ``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.defaults import WIDE
from dp_halfspace.algorithms.engine.noisy_gd import GradientPlan
from dp_halfspace.algorithms.engine.plan import FloatArray, Noise, noise_deviation
from dp_halfspace.data.chunks import apply_to_chunks
from dp_halfspace.optim.certificate import EPS
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.rows.rows import Rows

# Of the sums of rows and of their squares together: docs/proofs/auc.md, section 2.
MOMENT_SENSITIVITY = math.sqrt(4.5) * UP
# Of mu^2, or of epsilon, for the standardisation.
_SHARE = 0.1
# Noise of the means beyond which they say nothing about unit rows.
_MOST_NOISE = 0.7
# Added to every variance: a share of their mean, and of the noise.
_MEAN_SHARE, _NOISE_SHARE = 0.03, 0.3
# Standardised rows are clipped at this multiple of their typical length.
_CLIP = 0.7
# A variance of rows in the unit ball is never taken to be smaller.
_SMALLEST_VARIANCE = 1e-8


@dataclass(frozen=True, slots=True)
class StandardisationPlan:
    """The public numbers of one release of means and mean squares.

    The sizes are those of the rows without a constant column. `mechanism` is for the sums of the
    rows and of their squares, one behind the other; `deviation` is that of the noise of a mean.
    """

    n_samples: int
    n_columns: int
    mechanism: Noise
    deviation: float

    @property
    def amplification(self) -> float:
        """Bound on the factor that a column is multiplied by."""
        floor = max(_NOISE_SHARE * self.deviation, _SMALLEST_VARIANCE)
        return 1.0 / (_CLIP * math.sqrt(floor))


@dataclass(frozen=True, slots=True)
class MeanDifferencePlan:
    """The public numbers of a difference of class means.

    There is no standardisation where it would cost more than it brings. So many `copies` of the
    weighted sum of rows are released with noise of `mechanism` and averaged.
    """

    standardisation: StandardisationPlan | None
    mechanism: Noise
    copies: int = 1

    @property
    def events(self) -> tuple[Event, ...]:
        """What the fit costs."""
        event: Event = self.mechanism.event
        if self.copies > 1:
            event = Repeated(event, self.copies)
        if self.standardisation is None or isinstance(self.mechanism, NoNoise):
            return (event,)
        return (self.standardisation.mechanism.event, event)

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Release coefficients of rows in the unit ball, with a last column of ones; see `Plan`.

        Behind them is minus the score of the released mean, zero without a standardisation.
        """
        # 1. Release the moments, and with them the map that standardises.
        # 2. Clip the standardised rows to the unit ball, each by itself.
        # 3. Release the weighted sum, and map it back to the coordinates of the rows.
        signed = rows.apply_to_classes(_signed, classes, weights)
        with single_blas_thread():
            if self.standardisation is None:
                sums = rows.adjoint(signed)[:-1]
                return np.append(_averaged(sums, self, permit), 0.0)[None, :]
            transform = release_standardisation(rows, self.standardisation, permit)
            clipped = apply_to_chunks(_clipped, signed, rows.lengths(transform.T))
            sums = transform.T @ rows.adjoint(clipped)
            return np.asarray(transform @ _averaged(sums, self, permit))[None, :]


def _signed(classes: NDArray[np.intp], weights: FloatArray) -> FloatArray:
    return np.where(classes == 1, weights, -weights)


def _clipped(signed: FloatArray, lengths: FloatArray) -> FloatArray:
    """Scale what multiplies rows of these lengths, so that none counts as longer than one."""
    return signed * (1.0 / np.maximum(lengths, 1.0))


def plan_standardisation(
    n_samples: int, n_columns: int, block_rows: int, budget: Budget
) -> StandardisationPlan | None:
    """Fix the public numbers of a release of moments, of rows without a constant column.

    An infinite budget releases the exact moments. None with more than 512 columns, or when noise
    would drown the means.
    """
    if n_columns > WIDE:
        return None
    n_blocks = -(-n_samples // block_rows)
    # Errors of two sums of n products of numbers of size one, on two data sets.
    rounding = 2.02 * n_samples * (block_rows + n_blocks + 16) * math.sqrt(2.0) * EPS
    mechanism = budget.noise(MOMENT_SENSITIVITY + rounding)
    spread = noise_deviation(mechanism, 2 * n_columns) / n_samples
    if spread * math.sqrt(n_columns) > _MOST_NOISE:
        return None
    return StandardisationPlan(n_samples, n_columns, mechanism, spread)


def plan_mean_difference(
    n_samples: int, n_columns: int, block_rows: int, budget: Budget
) -> MeanDifferencePlan:
    """Divide a budget as in :func:`plan_standardisation` between it and the difference.

    A record adds to the sum a vector of norm at most one, its weight included, so the
    sensitivity is 2: attained by a row that is replaced by its negative.
    """
    sizes = (n_samples, n_columns, block_rows)
    part, rest = budget.split(_SHARE)
    scale = plan_standardisation(*sizes, part)
    left = budget if scale is None else rest
    return MeanDifferencePlan(scale, left.noise(_sensitivity(*sizes, scale)))


def mean_difference_for(
    engine: GradientPlan, n_samples: int, n_columns: int, block_rows: int
) -> MeanDifferencePlan:
    """Plan a mean difference that costs exactly what a fit of the engine does.

    Its events are among those of `engine`, so that one of the two can be chosen by a number
    that was released before.
    """
    step, scale = engine.descent.mechanism, None
    if engine.preconditioner is not None:
        moment = engine.preconditioner.mechanism
        mu = moment.mu if isinstance(moment, GaussianNoise) else math.inf
        scale = plan_standardisation(n_samples, n_columns, block_rows, Budget.gaussian(mu))
    if isinstance(step, NoNoise):
        return MeanDifferencePlan(scale, step)
    sensitivity = _sensitivity(n_samples, n_columns, block_rows, scale)
    copies = engine.descent.steps.n_steps
    return MeanDifferencePlan(scale, GaussianNoise(sensitivity, step.mu), copies)


def _sensitivity(
    n_samples: int, n_columns: int, block_rows: int, scale: StandardisationPlan | None
) -> float:
    """Bound the change of the computed sum: ``docs/proofs/auc.md``, section 3."""
    n_blocks = -(-n_samples // block_rows)
    spread = 1.0 if scale is None else scale.amplification * math.sqrt(2.0 * n_columns)
    # A row [u, 1] has norm sqrt 2; lengths and images are off by this much.
    row = math.sqrt(2.0) * spread * (n_columns + 16) * EPS * 1.01
    sums = math.sqrt(2.0) * spread * (block_rows + n_blocks + n_columns + 16) * EPS * 1.01
    return 2.0 * (FAR_UP + row + n_samples * (row + sums))


def release_standardisation(rows: Rows, plan: StandardisationPlan, permit: Permit) -> FloatArray:
    """Release means and mean squares, and return the map that standardises.

    `rows` lie in the unit ball, with a last column of ones; `permit` is charged with the event
    of the plan's mechanism. The map has the shape (n_columns + 1, n_columns) and is a function
    of what was released: ``[u, 1] @ map`` is the standardised row.
    """
    n, d = plan.n_samples, plan.n_columns
    moment = rows.gram(rows.shares)
    sums = np.concatenate([moment[:d, d], np.diag(moment)[:d]])
    released = permit.release(sums, plan.mechanism) / n
    centre, squares = np.clip(released[:d], -1.0, 1.0), released[d:]
    variance = np.maximum(squares - centre**2, 0.0)
    floor = _MEAN_SHARE * float(variance.mean()) + _NOISE_SHARE * plan.deviation
    flat = variance + max(floor, _SMALLEST_VARIANCE)
    length = max(float((variance / flat).sum()), 1.0)
    scale = 1.0 / (np.sqrt(flat) * _CLIP * math.sqrt(length))
    return np.vstack([np.diag(scale), -centre * scale])


def _averaged(sums: FloatArray, plan: MeanDifferencePlan, permit: Permit) -> FloatArray:
    """Release noisy copies and return their mean."""
    total = np.zeros(len(sums))
    for _ in range(plan.copies):
        total += permit.release(sums, plan.mechanism)
    return total / plan.copies
