"""Noisy gradient steps on single records that are drawn in secret, for a margin that is known.

Each of ``n^2 - 1`` steps follows the hinge of one record, drawn with replacement, behind Gaussian
noise: what hides a record is the noise and the draw. Derivation: ``docs/proofs/noisy_gradient.md``,
"Steps on single records"; what the steps cost together: ``docs/proofs/accounting.md``, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Pure, Repeated, SampledGaussian
from dp_halfspace.privacy.mechanisms import NoNoise, Permit, SampledGaussianNoise
from dp_halfspace.rows.rows import Rows

# Of the margin, below which a record pulls at the model.
_ASKED = 0.96
# Records at most: the number of steps is their square.
MOST_RECORDS = 3000
# Signal to noise ratio of a step, at most: more of it changes nothing.
_LARGEST_MU = 4.0
# Relative width at which the search for it stops.
_TOLERANCE = 2e-3
# Computed rows are this much longer than one at most.
_LENGTH = 1.0 + 2.0**-30


@dataclass(frozen=True, slots=True)
class SingleRecordPlan:
    """The public numbers of a run on unit rows of two classes.

    A record pulls where its signed score is below `threshold`; the iterates of the last share
    `tail_fraction` of the steps are averaged, 0 for the last one. `mechanism` is that of one step.
    """

    threshold: float
    n_columns: int
    n_steps: int
    tail_fraction: float
    mechanism: SampledGaussianNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        event = self.mechanism.event
        return (event if isinstance(event, Pure) else Repeated(event, self.n_steps),)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"private_preconditioner": False}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Take the steps; see `Plan`."""
        # 1. Of each record, the row that it would pull by at the released iterate.
        # 2. Release one of these rows with noise; without noise, their mean.
        # 3. Step, project to the unit ball, average: post-processing.
        signs = np.where(classes == 1, 1.0, -1.0)
        signed = rows.dense(np.arange(len(classes))) * signs[:, None]
        pull = weights[classes]
        is_noisy = isinstance(self.mechanism, SampledGaussianNoise)
        sigma = self.mechanism.sigma if isinstance(self.mechanism, SampledGaussianNoise) else 0.0
        scale = 2.0 / math.sqrt(1.0 + self.n_columns * sigma * sigma)
        first = self.n_steps - max(math.ceil(self.tail_fraction * self.n_steps), 1)
        point, total = np.zeros(self.n_columns), np.zeros(self.n_columns)
        with single_blas_thread():
            for step in range(self.n_steps):
                pulls = np.where(signed @ point < self.threshold, pull, 0.0)[:, None] * signed
                value = pulls if is_noisy else pulls.mean(axis=0)
                point += scale / math.sqrt(step + 1.0) * permit.release(value, self.mechanism)
                point /= max(1.0, math.sqrt(float(point @ point)))
                if step >= first:
                    total += point
        return (total / (self.n_steps - first))[None, :]


def plan_single_records(
    n_samples: int, n_columns: int, *, margin: float, budget: Budget, tail_fraction: float
) -> SingleRecordPlan:
    """Fix the public numbers of a run for a known margin in (0, 1].

    The row that a record pulls by is shorter than one and zero where it does not pull: two of them
    are at most two apart, attained by ``x' = -x``.

    References
    ----------
    H. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 3, lines 11 to 16, with the least
    noise that its steps together need. ``docs/proofs/noisy_gradient.md``.
    """
    if n_samples > MOST_RECORDS:
        raise ValueError(
            f"solver='noisy_sgd' takes n^2 - 1 steps, which is too many for more than "
            f"{MOST_RECORDS} records: use solver='noisy_gd'"
        )
    n_steps = max(n_samples * n_samples - 1, 1)
    mechanism: SampledGaussianNoise | NoNoise = NoNoise()
    if not budget.is_infinite:
        mu = _step_mu(n_samples, n_steps, budget.epsilon, budget.delta)
        mechanism = SampledGaussianNoise(n_samples, 2.0 * _LENGTH, mu)
    return SingleRecordPlan(_ASKED * margin, n_columns, n_steps, tail_fraction, mechanism)


@lru_cache(maxsize=64)
def _step_mu(n_records: int, n_steps: int, epsilon: float, delta: float) -> float:
    """Return the signal to noise ratio of a step for which all of them stay within a budget."""

    def events(mu: float) -> list[Event]:
        return [Repeated(SampledGaussian(n_records, mu), n_steps)]

    # Many steps are nearly Gaussian: a guess to search around.
    whole = Budget.of(epsilon, delta).mu
    guess = min(math.sqrt(math.log1p(whole * whole * n_records**2 / n_steps)), _LARGEST_MU)
    high = min(1.1 * guess, _LARGEST_MU)
    rough = calibrate(events, epsilon, delta, lower=0.0, upper=high, rtol=0.3)
    return calibrate(events, epsilon, delta, lower=rough, upper=high, rtol=_TOLERANCE)
