"""Every constant of the default linear engine, in one place.

All are functions of public numbers. ``docs/defaults.md`` shows the measurements behind each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["EngineDefaults", "engine_defaults"]

# More columns than this have no metric: its release costs more than it brings.
WIDE = 512
_FEWEST_STEPS, _MOST_STEPS = 20, 60


@dataclass(frozen=True, slots=True)
class EngineDefaults:
    """What the engine uses for one shape of problem and one budget.

    Attributes
    ----------
    bias : float
        Constant column, relative to rows divided by their public scale.
    metric_share : float
        Share of mu^2 that the metric is worth, where it is released.
    shift, clip, n_steps, momentum, scale, window
        As in :func:`~dp_halfspace.optim.noisy_gd.plan_descent`.
    metric_columns, effective_dimension
        As in :func:`~dp_halfspace.optim.metric.plan_metric`.
    """

    bias: float
    metric_share: float
    shift: float
    clip: float
    n_steps: int
    momentum: float
    scale: float
    window: float
    metric_columns: int = WIDE
    effective_dimension: float = 20.0


def engine_defaults(n_samples: int, n_columns: int, n_classes: int, mu: float) -> EngineDefaults:
    """Return the defaults for public sizes and a budget.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape, constant column included.
    n_classes : int
    mu : float
        Total budget as a Gaussian signal to noise ratio.

    Returns
    -------
    EngineDefaults

    Examples
    --------
    >>> from dp_halfspace.optim.defaults import engine_defaults
    >>> engine_defaults(10000, 20, 2, 0.2).n_steps
    20
    """
    wide = n_columns > WIDE
    if n_classes > 2 and wide:
        return EngineDefaults(0.1, 0.0, 3.0, 1.0, 20, 0.8, 1.0, 0.1)
    if n_classes > 2:
        return EngineDefaults(0.2, 0.2, 3.0, 1.0, 30, 0.8, 4.25 / n_classes**0.25, 0.35)
    # Curvature over noise, per direction that the rows can tell apart.
    strength = max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)
    # The less noise, the finer the optimum that is worth approaching.
    n_steps = round(min(max(80.0 * mu, _FEWEST_STEPS), _MOST_STEPS))
    if not wide:
        scale = min(max(1.6 * strength**0.25, 1.8), 3.0)
        return EngineDefaults(0.2, 0.2, 2.0, 0.7, n_steps, 0.8, scale, 0.5)
    bias = min(max(0.06 / math.sqrt(strength), 0.1), 0.5)
    scale = min(4.0 * strength**0.6, 3.8)
    return EngineDefaults(bias, 0.0, 4.0, 0.5, n_steps + 4, 0.8, scale, 0.3)
