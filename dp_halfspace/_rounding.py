"""Roundings to the safe side: how far bounds are raised and budgets lowered.

Bounds, noise scales and shares of a budget are computed in floating point. What is computed is
multiplied by one of these factors, so that the number that is used is never on the wrong side of
the exact one. A factor costs as much noise as it is far from one: nothing that can be measured.
"""

# Each elementary operation, square roots included, errs by at most 2^-53 of its result: these
# factors cover thousands of them, and the logarithms and exponentials of the accounting.
UP = 1.0 + 2.0**-40
DOWN = 1.0 - 2.0**-40

# For numbers that come out of an iteration (roots and maxima to a relative 1e-12), for roundings
# that are bounded to first order only, and for noise scales, which are divided once more later on.
FAR_UP = 1.0 + 2.0**-30
FAR_DOWN = 1.0 - 2.0**-30

# For bounds that need not be tight, and between what a search leaves to a candidate and what the
# plan of the candidate, divided by iterations of its own, may ask for: the search checks it.
WIDE_UP = 1.0 + 2.0**-20
WIDE_DOWN = 1.0 - 2.0**-20
