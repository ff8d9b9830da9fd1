"""When a fit is a selection from a list, by public numbers alone.

``docs/defaults.md`` lists each number with its unit and the figure that supports it.
"""

from __future__ import annotations

import math

from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.engine.scales import LEAST_PURE_STRENGTH
from dp_halfspace.privacy.budget import Budget

# Below this n epsilon a search among directions is more accurate than a perturbed objective.
DIRECTIONS_PAY = 1500.0
# Steps are taken from this n epsilon on, over the root of the number of columns: the geometric mean
# of those of a table and those after its encoding, since a row has one of the columns of a list of
# categories. With less, their noise costs more than a selection from listed classifiers, which does
# not grow with the columns.
STEPS_PAY = 120.0
# From this n epsilon on the errors of a selected classifier are counted for its probabilities, also
# where nobody asks for them. With less, the count takes more accuracy than it adds to them.
COUNTS_PAY = 200.0
# A selection from listed classifiers has at most this many classes.
MOST_CLASSES = 7
# Below this n epsilon a fit is a selection if there are two classes and a public model is listed.
SMALL_WITH_PRIOR = 3000.0
# Between these n epsilon two classes are counted. Below the first one a count is too noisy, above
# the second one steps rank a rare class as well as a column does.
_LEAST_COUNTED = 300.0
_MOST_COUNTED = 3500.0
# Largest number of records of the rarer class, times epsilon, that one column ranks: with more of
# them, the default fit ranks as well, and its probabilities are better.
_MOST_RARE = 60.0
# From this n epsilon on, over the number of classes, two selections in sequence are more accurate.
STAGES_PAY = 1000.0


def small_table_rule(
    facts: PublicFacts,
    budget: Budget,
    widths: tuple[int, ...] | None = None,
    n_unscaled: int | None = None,
) -> bool:
    """Return whether a fit of dense rows is a selection from a list, by public numbers alone.

    It is one for at most 512 features and two to seven classes where ``n epsilon`` is below 120
    times the root of the number of columns. For pure DP the limit is 1500, and at least 120 for
    each of `n_unscaled` columns whose scales are not stated: below, they could not be estimated
    either. With a public model in the list and two classes the limit is 3000. Columns of a table
    have `widths` after encoding; the geometric mean of the numbers before and after it counts.
    """
    n_columns = facts.n_features if widths is None else len(widths)
    n_features = facts.n_features if widths is None else sum(widths)
    is_listed = 2 <= facts.n_classes <= MOST_CLASSES and n_features <= WIDEST
    if not is_listed or budget.is_infinite:
        return False
    limit = STEPS_PAY * math.sqrt(math.sqrt(n_columns * n_features))
    if budget.delta == 0:
        if n_unscaled is None:
            n_unscaled = 0 if facts.is_scale_stated else facts.n_features
        limit = max(DIRECTIONS_PAY, LEAST_PURE_STRENGTH * n_unscaled)
    if facts.prior is not None and facts.n_classes == 2:
        limit = SMALL_WITH_PRIOR
    return facts.n_privacy_units * budget.epsilon < limit


def pays_for_stages(n_samples: int, n_classes: int, epsilon: float) -> bool:
    """Return whether a small table of several classes gets two selections, by public numbers."""
    return n_samples * epsilon >= STAGES_PAY / n_classes


def rare_class_limit(n_samples: int, epsilon: float) -> float | None:
    """Return the share of the rarer class up to which one column ranks it, None for never.

    The answer depends on public numbers alone.
    """
    strength = n_samples * epsilon
    return _MOST_RARE / strength if _LEAST_COUNTED <= strength < _MOST_COUNTED else None
