"""Every constant of the training algorithms, in one place.

All are functions of public numbers. ``docs/defaults.md`` shows the measurements behind each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "COMPONENTS",
    "METRIC_SHARE",
    "WIDE",
    "EngineDefaults",
    "ObjectiveDefaults",
    "engine_defaults",
    "kernel_engine_defaults",
    "length_scales",
    "n_kernel_components",
    "objective_defaults",
]

FloatArray: TypeAlias = NDArray[np.float64]

# More columns than this have no metric: its release costs more than it brings.
WIDE = 512
_FEWEST_STEPS, _MOST_STEPS = 20, 60
# Share of mu^2, or of epsilon, that the preconditioner is worth where it is released.
METRIC_SHARE = 0.2
# Dimension of the random signs that pure noise on many columns is projected to.
COMPONENTS = 150
# Features of a kernel, and columns up to which they have a preconditioner.
_FEWEST, _MOST = 64, 600
_MAX_COLUMNS = 2049
# Length scales relative to the public scale of a row: one coarse, and a range of fine ones.
_COARSE = 0.7
_FINE = (0.04, 0.35)
_FINE_RECORDS, _LARGEST_FINE_SHARE = 2000.0, 0.5


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
        As in :func:`~dp_halfspace.algorithms.gradient.noisy_gd.plan_descent`.
    metric_columns, effective_dimension
        As in :func:`~dp_halfspace.algorithms.gradient.preconditioner.plan_metric`.
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
    mu : float
        Total budget as a Gaussian signal to noise ratio.

    Examples
    --------
    >>> from dp_halfspace.algorithms.defaults import engine_defaults
    >>> engine_defaults(10000, 20, 2, 0.2).n_steps
    20
    """
    wide = n_columns > WIDE
    if n_classes > 2 and wide:
        return EngineDefaults(
            bias=0.1, metric_share=0.0, shift=3.0, clip=1.0,
            n_steps=20, momentum=0.8, scale=1.0, window=0.1,
        )  # fmt: skip
    if n_classes > 2:
        return EngineDefaults(
            bias=0.2, metric_share=METRIC_SHARE, shift=3.0, clip=1.0,
            n_steps=30, momentum=0.8, scale=4.25 / n_classes**0.25, window=0.35,
        )  # fmt: skip
    # Curvature over noise, per direction that the rows can tell apart.
    strength = max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)
    # The less noise, the finer the optimum that is worth approaching.
    n_steps = round(min(max(80.0 * mu, _FEWEST_STEPS), _MOST_STEPS))
    if not wide:
        scale = min(max(1.6 * strength**0.25, 1.8), 3.0)
        return EngineDefaults(
            bias=0.2, metric_share=METRIC_SHARE, shift=2.0, clip=0.7,
            n_steps=n_steps, momentum=0.8, scale=scale, window=0.5,
        )  # fmt: skip
    return EngineDefaults(
        bias=_wide_bias(strength), metric_share=0.0, shift=4.0, clip=0.5,
        n_steps=n_steps + 4, momentum=0.8, scale=min(4.0 * strength**0.6, 3.8), window=0.3,
    )  # fmt: skip


def _wide_bias(strength: float) -> float:
    """Return the constant column beside many columns, by curvature over noise."""
    return min(max(0.06 / math.sqrt(strength), 0.1), 0.5)


def n_kernel_components(n_samples: int, mu: float) -> int:
    """Return the number of features that the noise leaves room for, an even number.

    Parameters
    ----------
    mu : float
        Total budget as a Gaussian signal to noise ratio; infinity is allowed.

    Returns
    -------
    int
        ``n_samples mu``, within [64, 600].

    Examples
    --------
    >>> from dp_halfspace.algorithms.defaults import n_kernel_components
    >>> n_kernel_components(1000, 0.2), n_kernel_components(50_000, 0.2)
    (200, 600)
    """
    return 2 * round(min(max(n_samples * mu, _FEWEST), _MOST) / 2.0)


def length_scales(
    kernel: str, n_samples: int, n_features: int, n_classes: int, size: int
) -> FloatArray:
    """Return the length scales of the automatic kernel, relative to the scale of a row.

    Parameters
    ----------
    kernel : str
        A shift-invariant kernel.
    size : int
        How many.

    Returns
    -------
    ndarray of shape (size,)
        Coarse ones first. The fewer records, the larger the share of fine ones: nothing
        public says how far apart the rows are. Many classes leave less room for them.

    Examples
    --------
    >>> from dp_halfspace.algorithms.defaults import length_scales
    >>> length_scales("rbf", 100, 4, 2, 4).round(3).tolist()
    [0.7, 0.7, 0.069, 0.204]
    """
    share = min(_FINE_RECORDS / n_samples, _LARGEST_FINE_SHARE) * 2.0 / n_classes
    n_fine = round(size * share)
    # The middles of equal parts of the logarithmic range, instead of random ones.
    low, high = (math.log(scale) for scale in _FINE)
    middles = (np.arange(n_fine) + 0.5) / max(n_fine, 1)
    scales = np.concatenate([np.full(size - n_fine, _COARSE), np.exp(low + (high - low) * middles)])
    # A kernel that adds coordinates sees longer differences than one that squares them.
    return np.asarray(scales * (math.sqrt(n_features) if kernel == "laplacian" else 1.0))


def kernel_engine_defaults(n_classes: int) -> EngineDefaults:
    """Return what the engine uses on features.

    Examples
    --------
    >>> from dp_halfspace.algorithms.defaults import kernel_engine_defaults
    >>> kernel_engine_defaults(2).n_steps
    40
    """
    clip, shift = (0.5, 2.0) if n_classes == 2 else (1.0, 3.0)
    scale = 3.5 if n_classes == 2 else 4.25 / n_classes**0.25
    return EngineDefaults(
        bias=0.5,
        metric_share=METRIC_SHARE,
        shift=shift,
        clip=clip,
        n_steps=40,
        momentum=0.8,
        scale=scale,
        window=0.5,
        metric_columns=_MAX_COLUMNS,
        effective_dimension=100.0,
    )


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
    epsilon, delta : float
        Budget; infinity gives the limit of a large one.

    Examples
    --------
    >>> from dp_halfspace.algorithms.defaults import objective_defaults
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
            return ObjectiveDefaults(
                bias=bias, shift=3.0, stretch=2.0, jacobian_share=0.25, n_components=components
            )
        return ObjectiveDefaults(
            bias=bias, shift=2.0, stretch=4.0, jacobian_share=0.5, n_components=components
        )
    mu = min(gdp_mu(epsilon, delta), 1e3) if math.isfinite(epsilon) else 1e3
    # Curvature over noise, per direction that the rows can tell apart.
    strength = max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)
    if wide:
        bias, shift, stretch = _wide_bias(strength), 4.0, 5.0 / 3.0 * strength**0.4
    elif n_classes > 2:
        bias, shift, stretch = 0.25, 2.0, 2.0
    else:
        bias, shift, stretch = 0.25, 3.0, 1.5 * (strength * math.sqrt(0.8)) ** 0.4
    return ObjectiveDefaults(
        bias=bias, shift=shift, stretch=stretch, jacobian_share=0.35, n_components=None
    )
