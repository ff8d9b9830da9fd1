"""The published algorithms, as options of the estimators: ``docs/papers.md``.

Names that estimators ask for are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from dp_halfspace._lazy import lazy_names

if TYPE_CHECKING:
    from dp_halfspace.papers.margin_selection import margin_grid as margin_grid
    from dp_halfspace.papers.margin_selection import plan_selection as plan_selection
    from dp_halfspace.papers.training import Problem as Problem

SOLVERS = ("noisy_gd", "objective_perturbation", "phased_prox")
MARGIN_SELECTIONS = ("exponential", "gaussian", "random_stopping")
# Public numbers are divided by the square of a margin; no data set has such a small one.
SMALLEST_MARGIN = 1e-9

_HOMES = {
    "dp_halfspace.papers.training": ("Problem",),
    "dp_halfspace.papers.margin_selection": ("margin_grid", "plan_selection"),
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
