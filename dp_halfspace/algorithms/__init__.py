"""Private training: where a minimiser or a sum over records meets its noise.

Names that estimators ask for are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.algorithms.engine.training import (
        Problem,
        Training,
        asked_margin,
        reads_single,
    )
    from dp_halfspace.algorithms.margin_training import check_phased_prox, plan_training
    from dp_halfspace.algorithms.published.margin_selection import (
        SelectionPlan,
        margin_grid,
        plan_selection,
    )

__all__ = [
    "SELECTIONS",
    "SMALLEST_MARGIN",
    "SOLVERS",
    "Problem",
    "SelectionPlan",
    "Training",
    "asked_margin",
    "check_phased_prox",
    "margin_grid",
    "plan_selection",
    "plan_training",
    "reads_single",
]

SOLVERS = ("noisy_gd", "objective_perturbation", "phased_prox")
SELECTIONS = ("exponential", "gaussian", "random_stopping")
# Public numbers are divided by the square of a margin; no data set has such a small one.
SMALLEST_MARGIN = 1e-9

__getattr__ = lazy_names(__name__, __file__)
