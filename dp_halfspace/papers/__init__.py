"""The published algorithms, as options of the estimators: ``docs/papers.md``."""

from numbers import Real

from dp_halfspace._sklearn_compat import Interval

SOLVERS = ("noisy_gd", "objective_perturbation", "phased_prox")
MARGIN_SELECTIONS = ("exponential", "gaussian", "random_stopping")
# Public numbers are divided by the square of a margin; no data set has such a small one.
SMALLEST_MARGIN = 1e-9
KNOWN_MARGIN = Interval(Real, SMALLEST_MARGIN, 1, closed="both")
