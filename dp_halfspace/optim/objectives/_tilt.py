"""The weights of a tilted mean, and the mean, without overflow."""

from __future__ import annotations

import numpy as np

from dp_halfspace.optim.design.blocks import FloatArray

# Numbers are added in runs of this length, and then the sums: the bound on rounding errors
# counts both, and one long sum would have as many terms as records.
RUN = 1024


def total(values: FloatArray) -> float:
    """Add numbers in runs."""
    return float(np.add.reduceat(values, np.arange(0, values.size, RUN)).sum())


def tilted_weights(values: FloatArray, tilt: float) -> FloatArray:
    """Return ``exp(tilt v_i)`` divided by the sum; equal weights without a tilt."""
    if tilt == 0.0:
        return np.full(values.size, 1.0 / values.size)
    weights: FloatArray = values - values.max()
    weights *= tilt
    np.exp(weights, out=weights)
    weights /= total(weights)
    return weights


def tilted_mean(values: FloatArray, tilt: float) -> float:
    """Return ``log(mean(exp(tilt v_i))) / tilt``, the mean without a tilt."""
    if tilt == 0.0:
        return total(values) / values.size
    top = values.max()
    # A small tilt: the logarithm of a number near 1 has lost nothing in log1p and expm1.
    return float(top + np.log1p(total(np.expm1(tilt * (values - top))) / values.size) / tilt)
