"""When a fit is a selection from a list, by public numbers alone.

``docs/defaults.md`` lists each number with its unit and the figure that supports it.
"""

from __future__ import annotations

import math

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
# A selection from listed classifiers reads rows of at most this many columns.
MOST_COLUMNS = 512


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
    if not 2 <= n_classes <= MOST_CLASSES or not n_features <= MOST_COLUMNS or math.isinf(epsilon):
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
