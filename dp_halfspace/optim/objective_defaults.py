"""Every constant of objective perturbation on unit rows, in one place.

All are functions of public numbers. ``docs/estimators/objective_perturbation.md`` shows the
measurements behind each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dp_halfspace.optim.defaults import WIDE
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["COMPONENTS", "METRIC_SHARE", "ObjectiveDefaults", "objective_defaults"]

# Share of mu^2, or of epsilon, that the metric is worth where it is released.
METRIC_SHARE = 0.2
# Dimension of the random signs that pure noise on many columns is projected to.
COMPONENTS = 150


@dataclass(frozen=True, slots=True)
class ObjectiveDefaults:
    """What is used for one shape of problem and one budget.

    Attributes
    ----------
    bias : float
        Constant column, relative to rows divided by their public scale.
    shift : float
        Of the logistic loss.
    stretch : float
        Standard deviation of the linear term over the regulariser, both on the scale of the
        sum: how far the noise may push a coefficient that the data do not hold.
    jacobian_share : float
        Largest share of epsilon that the ratio of the Jacobians may take.
    n_components : int or None
        Dimension to project to by random signs; None for no projection.
    """

    bias: float
    shift: float
    stretch: float
    jacobian_share: float
    n_components: int | None


def objective_defaults(
    n_samples: int, n_columns: int, n_classes: int, epsilon: float, delta: float
) -> ObjectiveDefaults:
    """Return the defaults for public sizes and a budget.

    Parameters
    ----------
    n_samples, n_columns : int
        Shape of the unit rows, constant column included.
    n_classes : int
    epsilon, delta : float
        Budget; infinity gives the limit of a large one.

    Returns
    -------
    ObjectiveDefaults

    Examples
    --------
    >>> from dp_halfspace.optim.objective_defaults import objective_defaults
    >>> objective_defaults(10000, 20, 2, 1.0, 1e-8).shift
    3.0
    >>> objective_defaults(10000, 2000, 2, 1.0, 0.0).n_components
    150
    """
    wide = n_columns > WIDE
    if delta == 0:
        components = COMPONENTS if wide else None
        # What is left of wide rows drowns first: then the intercept has to carry the model.
        bias = 2.5 if wide else 0.25
        if n_classes > 2:
            return ObjectiveDefaults(bias, 3.0, 2.0, 0.25, components)
        return ObjectiveDefaults(bias, 2.0, 4.0, 0.5, components)
    mu = min(gdp_mu(epsilon, delta), 1e3) if math.isfinite(epsilon) else 1e3
    # Curvature over noise, per direction that the rows can tell apart.
    strength = max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)
    if wide:
        bias = min(max(0.06 / math.sqrt(strength), 0.1), 0.5)
        return ObjectiveDefaults(bias, 4.0, 5.0 / 3.0 * strength**0.4, 0.35, None)
    if n_classes > 2:
        return ObjectiveDefaults(0.25, 2.0, 2.0, 0.35, None)
    return ObjectiveDefaults(0.25, 3.0, 1.5 * (strength * math.sqrt(0.8)) ** 0.4, 0.35, None)
