"""Feature maps of kernels from public randomness, sized for a budget.

Evidence for the constants: ``docs/defaults.md``.
"""

from __future__ import annotations

import numpy as np

from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.papers.training import PROJECTED
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.projection.features import FeatureMap, ProjectedFeatures
from dp_halfspace.projection.linear import draw_projection, jl_dimension

# Automatic length scale of the Gaussian kernel, relative to the public scale of a row.
LENGTH_SCALE = 0.3
# Pure DP, whose noise grows with the dimension: most features, and n epsilon for each feature.
PURE_MOST = 150
_PURE_RECORDS = 20.0

# Kernels whose first features are the columns themselves.
ADDITIVE = ("auto", "additive")

# Range of length scales relative to data_norm: float32 cannot distinguish features outside it.
_RELATIVE_SCALES = (1e-6, 1e6)


def relative_scale(length_scale: float | str, data_norm: float) -> float | None:
    """Return a length scale in units of `data_norm`, None for the automatic one."""
    if isinstance(length_scale, str):
        return None
    scale = float(length_scale) / data_norm
    if not _RELATIVE_SCALES[0] <= scale <= _RELATIVE_SCALES[1]:
        raise ValueError("length_scale must be within a factor 1e6 of data_norm")
    return scale


def choose_n_features(n_samples: int, budget: Budget) -> int:
    """Return the automatic number of features, an even function of public numbers.

    The noise leaves room for ``n_samples mu``, and more features than a second moment takes would
    be neither centred nor whitened. With pure DP the noise grows with their number, so there are
    fewer.
    """
    if budget.is_pure:
        wanted = min(n_samples * budget.epsilon / _PURE_RECORDS, PURE_MOST)
    else:
        wanted = min(n_samples * budget.mu, WIDEST)
    return 2 * max(round(wanted / 2.0), 1)


def n_terms(n_features: int, limit: int, most: int) -> int:
    """Return the number of features of each column: at most `limit` of all, `most` of one."""
    return min(max(limit // n_features, 1), most)


def project_features(
    features: FeatureMap, kind: str | None, margin: float | None, n_samples: int, seed: int
) -> FeatureMap:
    """Apply a random projection to the features, if this lowers their number."""
    if kind is None:
        return features
    size = PROJECTED if margin is None else jl_dimension(margin, n_samples)
    rng = np.random.default_rng(seed)
    linear_map = draw_projection(kind, features.n_components, size, rng)
    return features if linear_map is None else ProjectedFeatures(features, linear_map)
