"""Conservative rounding: factors by which bounds are raised and budgets are lowered.

Bounds, noise scales and parts of a budget are computed in floating point, and multiplied by one of
these factors, so that the used number is always on the conservative side of the exact one. The
additional noise is the difference of a factor from one, which is too small to be measured.
"""

import numpy as np

# Unit roundoff of float64, round to nearest.
EPS = float(np.finfo(np.float64).epsneg)
# Divisors are raised to this number, whose reciprocal is finite.
TINY = 1e-300

# Each elementary operation, including square roots, has a relative error of at most 2^-53. These
# factors cover thousands of them, and the logarithms and exponentials of the accounting.
UP = 1.0 + 2.0**-40
DOWN = 1.0 - 2.0**-40

# Factors for results of an iteration (roots and maxima to a relative 1e-12), for rounding errors
# that are bounded to first order only, and for noise scales, which are divided once more later.
FAR_UP = 1.0 + 2.0**-30
FAR_DOWN = 1.0 - 2.0**-30

# Factor between the budget that a search assigns to a candidate and the budget that the plan of the
# candidate may use; the search checks it.
WIDE_DOWN = 1.0 - 2.0**-20

# Width of the ramp on which the loss of a record falls from one to zero, relative to the largest
# score. With a jump, a rounding error could change a loss by one for every record.
RAMP_WIDTH = 2.0**-16
