"""The default linear engine: private metric, then accelerated noisy gradient steps.

One plan for two and for K classes; the whole is exactly Gaussian private, with no minimiser,
no certificate and no branch that depends on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.optim.defaults import EngineDefaults
from dp_halfspace.optim.metric import MetricPlan, plan_metric, release_metric
from dp_halfspace.optim.noisy_gd import DescentPlan, clipped_slopes, descend, plan_descent
from dp_halfspace.optim.rows import Rows
from dp_halfspace.optim.unit_rows import flattened
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import Permit

__all__ = ["EnginePlan", "plan_engine", "run_engine"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The public numbers of a fit.

    Attributes
    ----------
    metric : MetricPlan or None
        None where the metric would cost more than it brings.
    descent : DescentPlan
    """

    metric: MetricPlan | None
    descent: DescentPlan

    @property
    def events(self) -> tuple[Event, ...]:
        """What the fit costs."""
        if isinstance(self.descent.event, Pure):
            return (self.descent.event,)
        if self.metric is None:
            return (self.descent.event,)
        return (self.metric.mechanism.event, self.descent.event)


def plan_engine(
    defaults: EngineDefaults,
    *,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    block_rows: int,
    mu: float,
) -> EnginePlan:
    """Divide a Gaussian budget between metric and steps.

    Parameters
    ----------
    defaults : EngineDefaults
    n_samples, n_columns, n_classes, block_rows : int
        Public sizes; the constant column counts.
    mu : float
        Total budget; infinity means no noise.

    Returns
    -------
    EnginePlan

    Examples
    --------
    >>> from dp_halfspace.optim.defaults import engine_defaults
    >>> from dp_halfspace.optim.engine import plan_engine
    >>> plan = plan_engine(engine_defaults(10000, 20, 2, 0.2), n_samples=10000, n_columns=20,
    ...                    n_classes=2, block_rows=4096, mu=0.2)
    >>> len(plan.events)
    2
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
        )
    left = mu if metric is None else math.sqrt(1.0 - share) * mu
    descent = plan_descent(
        n_samples=n_samples,
        n_columns=n_columns,
        n_outputs=1 if n_classes == 2 else n_classes,
        block_rows=block_rows,
        mu=left * (1.0 - 2.0**-40),
        shift=defaults.shift,
        clip=defaults.clip,
        n_steps=defaults.n_steps,
        momentum=defaults.momentum,
        scale=defaults.scale,
        window=defaults.window,
        amplification=1.0 if metric is None else metric.amplification,
        compression=1.0 if metric is None else metric.compression,
    )
    return EnginePlan(metric, descent)


def run_engine(
    plan: EnginePlan,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: FloatArray,
    permit: Permit,
) -> FloatArray:
    """Fit the coefficients within the budget of a plan.

    Parameters
    ----------
    plan : EnginePlan
    rows : Rows
        Unit rows.
    codes : ndarray of shape (n_samples,)
        Class of each record.
    weights : ndarray of shape (n_classes,)
        Public class weights in [0, 1].
    permit : Permit
        Charged with the events of the plan.

    Returns
    -------
    ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Private; free to be used.
    """
    with single_blas_thread():
        transform = None
        if plan.metric is not None:
            # Any root of the metric gives the same law.
            transform = release_metric(rows, plan.metric, permit).root()
            rows = flattened(rows, transform, row_bound=plan.metric.compression)
        slopes = clipped_slopes(plan.descent, codes, weights[codes])
        return descend(rows, slopes, plan.descent, permit, transform)
