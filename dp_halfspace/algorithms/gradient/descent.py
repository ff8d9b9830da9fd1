"""Full-batch DP gradient descent, behind a private preconditioner: the default algorithm.

A share of the budget releases the second moment of the rows, which flattens them; the rest
pays for a fixed number of noisy gradient steps. The whole is exactly Gaussian private, with no
minimiser, no certificate and no branch that depends on the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.algorithms.defaults import EngineDefaults
from dp_halfspace.algorithms.gradient.adversarial_rows import AdversarialRows
from dp_halfspace.algorithms.gradient.noisy_gd import (
    DescentPlan,
    Slopes,
    clipped_slopes,
    descend,
    plan_descent,
)
from dp_halfspace.algorithms.gradient.preconditioner import MetricPlan, plan_metric, release_metric
from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.optim.design.rows import Rows, flattened
from dp_halfspace.optim.design.single_rows import SingleRows
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import Permit

__all__ = ["GradientPlan", "plan_gradient"]


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """The public numbers of a fit by noisy gradient steps.

    There is no `metric` where it would cost more than it brings, and none beside an `adversary`,
    who is in the units of the rows and attacks two classes. `slopes` turns the plan of the
    steps, classes and weights of the records into their slopes.
    """

    descent: DescentPlan
    metric: MetricPlan | None = None
    adversary: Adversary | None = None
    slopes: Callable[[DescentPlan, NDArray[np.intp], FloatArray], Slopes] = clipped_slopes

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        if self.metric is None or isinstance(self.descent.event, Pure):
            return (self.descent.event,)
        return (self.metric.mechanism.event, self.descent.event)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"private_metric": self.metric is not None}

    def gentler(self, pace: float, power: float) -> GradientPlan:
        """Take steps `pace` as long behind this power of the map, for the same events.

        Both are public or released numbers in [0, 1], and no scale of noise depends on them.
        """
        descent = replace(self.descent, step_size=pace * self.descent.step_size)
        metric = None if self.metric is None else replace(self.metric, power=power)
        return replace(self, descent=descent, metric=metric)

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Take the steps on unit rows; see `Plan`."""
        # 1. Without a metric, the noisy steps are all there is.
        # 2. Else release the second moment, and map the rows to where it is flat.
        # 3. Take the steps there and map the coefficients back.
        with single_blas_thread():
            slopes = rows.along(partial(self.slopes, self.descent), classes, weights)
            if self.adversary is not None:
                signs = np.where(classes == 1, 1.0, -1.0)
                moved = AdversarialRows(rows, signs, self.adversary)
                return descend(moved, slopes, self.descent, permit)
            if self.metric is None:
                return descend(rows, slopes, self.descent, permit)
            metric = release_metric(rows, self.metric, permit)
            # Any square root of the released moment gives the same distribution of results.
            transform = metric.root()
            bound = self.metric.compression
            if isinstance(rows, SingleRows):
                flat = rows.unit(transform, row_bound=bound, condition=metric.condition)
            else:
                flat = flattened(rows, transform, row_bound=bound)
            return descend(flat, slopes, self.descent, permit, transform)


def plan_gradient(
    defaults: EngineDefaults,
    *,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    block_rows: int,
    mu: float,
    is_single: bool = False,
) -> GradientPlan:
    """Divide a Gaussian budget between preconditioner and steps; infinity means no noise.

    `is_single` lets the steps read dense rows of float32 in float32.
    """
    share = defaults.metric_share
    metric = None
    if share > 0:
        metric = plan_metric(
            n_samples,
            n_columns,
            block_rows,
            mu=math.sqrt(share) * mu,
            max_columns=defaults.metric_columns,
            effective_dimension=defaults.effective_dimension,
            lead=defaults.lead,
            stretch=defaults.stretch,
            is_single=is_single,
        )
    left = mu if metric is None else math.sqrt(1.0 - share) * mu
    descent = plan_descent(
        defaults,
        n_samples=n_samples,
        n_columns=n_columns,
        n_outputs=1 if n_classes == 2 else n_classes,
        block_rows=block_rows,
        mu=left * (1.0 - 2.0**-40),
        amplification=1.0 if metric is None else metric.amplification,
        compression=1.0 if metric is None else metric.compression,
        is_single=is_single,
    )
    return GradientPlan(descent, metric)
