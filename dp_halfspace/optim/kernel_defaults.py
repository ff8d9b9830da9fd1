"""Every constant of the default kernel classifier, in one place.

All are functions of public numbers. ``docs/defaults.md`` shows the measurements behind each.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.defaults import EngineDefaults

__all__ = ["kernel_engine_defaults", "length_scales", "n_kernel_components"]

FloatArray: TypeAlias = NDArray[np.float64]

_FEWEST, _MOST = 64, 600
_MAX_COLUMNS = 2049
# Length scales relative to the public scale of a row: one coarse, and a range of fine ones.
_COARSE = 0.7
_FINE = (0.04, 0.35)
_FINE_RECORDS, _LARGEST_FINE_SHARE = 2000.0, 0.5
# A kernel that adds coordinates sees longer differences than one that squares them, and the
# product kernel of Cauchy decays like a Gaussian one of a shorter scale.
_CAUCHY = math.sqrt(2.0)


def n_kernel_components(n_samples: int, mu: float) -> int:
    """Return the number of features that the noise leaves room for, an even number.

    Parameters
    ----------
    n_samples : int
    mu : float
        Total budget as a Gaussian signal to noise ratio; infinity is allowed.

    Returns
    -------
    int
        ``n_samples mu``, within [64, 600].

    Examples
    --------
    >>> from dp_halfspace.optim.kernel_defaults import n_kernel_components
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
    n_samples, n_features, n_classes : int
    size : int
        How many.

    Returns
    -------
    ndarray of shape (size,)
        Coarse ones first. The fewer records, the larger the share of fine ones: nothing
        public says how far apart the rows are. Many classes leave less room for them.

    Examples
    --------
    >>> from dp_halfspace.optim.kernel_defaults import length_scales
    >>> length_scales("rbf", 100, 4, 2, 4).round(3).tolist()
    [0.7, 0.7, 0.069, 0.204]
    """
    share = min(_FINE_RECORDS / n_samples, _LARGEST_FINE_SHARE) * 2.0 / n_classes
    n_fine = round(size * share)
    # The middles of equal parts of the logarithmic range, instead of random ones.
    low, high = (math.log(scale) for scale in _FINE)
    middles = (np.arange(n_fine) + 0.5) / max(n_fine, 1)
    scales = np.concatenate([np.full(size - n_fine, _COARSE), np.exp(low + (high - low) * middles)])
    factor = {"laplacian": math.sqrt(n_features), "cauchy": _CAUCHY}.get(kernel, 1.0)
    return np.asarray(scales * factor)


def kernel_engine_defaults(n_classes: int) -> EngineDefaults:
    """Return what the engine uses on features.

    Parameters
    ----------
    n_classes : int

    Returns
    -------
    EngineDefaults

    Examples
    --------
    >>> from dp_halfspace.optim.kernel_defaults import kernel_engine_defaults
    >>> kernel_engine_defaults(2).n_steps
    40
    """
    clip, shift = (0.5, 2.0) if n_classes == 2 else (1.0, 3.0)
    scale = 3.5 if n_classes == 2 else 4.25 / n_classes**0.25
    return EngineDefaults(
        bias=0.5,
        metric_share=0.2,
        shift=shift,
        clip=clip,
        n_steps=40,
        momentum=0.8,
        scale=scale,
        window=0.5,
        metric_columns=_MAX_COLUMNS,
        effective_dimension=100.0,
    )
