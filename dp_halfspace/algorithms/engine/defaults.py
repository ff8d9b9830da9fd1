"""Every constant of the training algorithms, in one place.

All are functions of public numbers. ``docs/defaults.md`` lists each and names the page with the
measurements behind it. Budgets `mu` are Gaussian signal to noise ratios; columns include the
constant one.
"""

from __future__ import annotations

import math

import numpy as np

from dp_halfspace.algorithms.engine.plan import FloatArray

# Below this n epsilon a search among directions is more accurate than a perturbed objective.
DIRECTIONS_PAY = 1500.0
# Below this n epsilon a selection from listed classifiers is more accurate than linear steps in
# estimated column scales.
SMALL = 900.0
# A selection from listed classifiers has at most this many classes.
MOST_CLASSES = 7
# The same limits of n epsilon in comparison with steps in stated scales, which spend nothing on
# scales, and with steps on features: for two classes, and for more.
SMALL_OF_TWO_IN_SCALE = 600.0
SMALL_IN_SCALE = 300.0
# Below this n epsilon a fit is a selection if there are two classes and a public model is listed.
SMALL_WITH_PRIOR = 3000.0
# From this n epsilon on, over the number of classes, two selections in sequence are more accurate.
STAGES_PAY = 1000.0
# Rows of more columns are wide: no selection from a list reads them, and the published algorithms
# have another constant column.
WIDE = 512
# Fewest and most features of a kernel.
_FEWEST = 64
_MOST = 600
# Number of features of one column; with many records there are twice as many.
FEW_TERMS = 4
# Length scales relative to the public scale of a row: one coarse scale, and a range of fine ones.
_COARSE = 0.7
_FINE = (0.04, 0.35)
# For two classes the share of fine length scales is this number over the number of records.
_FINE_RECORDS = 2000.0
# Largest share of fine length scales.
_LARGEST_FINE_SHARE = 0.5
# Value of the constant column beside features of a kernel.
FEATURE_CONSTANT = 0.5


def row_constant(n_samples: int, n_columns: int, n_classes: int, mu: float) -> float:
    """Return the value of the constant column of the published algorithms, for rows of norm one."""
    if n_columns <= WIDE:
        return 0.2
    if n_classes > 2:
        return 0.1
    # The ratio of curvature to noise in each direction, for at most 1000 directions.
    strength = max(n_samples / min(n_columns, 1000) * mu / 2.0, 1e-12)
    return min(max(0.06 / math.sqrt(strength), 0.1), 0.5)


def n_kernel_components(n_samples: int, mu: float) -> int:
    """Return the number of features that the noise leaves room for, an even number.

    That is ``n_samples mu``, within [64, 600]; `mu` may be infinite.
    """
    return 2 * round(min(max(n_samples * mu, _FEWEST), _MOST) / 2.0)


def length_scales(
    kernel: str, n_samples: int, n_features: int, n_classes: int, size: int
) -> FloatArray:
    """Return `size` length scales of the automatic kernel, relative to the scale of a row.

    Coarse scales come first. The fewer records there are, the larger is the share of fine scales,
    because no public number says how far apart the rows are. The share falls with the number of
    classes.
    """
    share = min(_FINE_RECORDS / n_samples, _LARGEST_FINE_SHARE) * 2.0 / n_classes
    n_fine = round(size * share)
    # Midpoints of equal parts of the logarithmic range.
    low, high = (math.log(scale) for scale in _FINE)
    middles = (np.arange(n_fine) + 0.5) / max(n_fine, 1)
    scales = np.concatenate([np.full(size - n_fine, _COARSE), np.exp(low + (high - low) * middles)])
    # The Laplacian kernel adds the differences of all columns, which is up to sqrt(d) times as much
    # as their Euclidean norm.
    return np.asarray(scales * (math.sqrt(n_features) if kernel == "laplacian" else 1.0))


def small_table_rule(
    *,
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    delta: float,
    is_scale_stated: bool,
    has_features: bool = False,
    has_prior: bool = False,
) -> bool:
    """Return whether a fit of dense rows is a selection from a list, by public numbers alone.

    It is one for at most 512 columns and two to seven classes if ``n epsilon`` is below 900. If
    scales are stated, or if steps would use features of columns, the limit is 600 for two classes
    and 300 for more; for pure DP and estimated column scales it is 1500; with a public model in the
    list and two classes it is 3000.
    """
    if not 2 <= n_classes <= MOST_CLASSES or not n_features <= WIDE or math.isinf(epsilon):
        return False
    pays = SMALL
    if is_scale_stated or has_features:
        pays = SMALL_OF_TWO_IN_SCALE if n_classes == 2 else SMALL_IN_SCALE
    if delta == 0 and not is_scale_stated:
        pays = DIRECTIONS_PAY
    if has_prior and n_classes == 2:
        pays = SMALL_WITH_PRIOR
    return n_samples * epsilon < pays


def pays_for_stages(n_samples: int, n_classes: int, epsilon: float) -> bool:
    """Return whether a small table of several classes gets two selections, by public numbers."""
    return n_samples * epsilon >= STAGES_PAY / n_classes
