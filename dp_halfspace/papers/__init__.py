"""The published algorithms, as options of the estimators: ``docs/papers.md``."""

SOLVERS = ("noisy_gd", "objective_perturbation", "phased_prox")
MARGIN_SELECTIONS = ("exponential", "gaussian", "random_stopping")
# Public numbers are divided by the square of a margin; no data set has such a small one.
SMALLEST_MARGIN = 1e-9
