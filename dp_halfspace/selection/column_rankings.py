"""Select one column and a sign to rank the records of a rare class.

If a class has few records, the noise of sums hides it at budgets at which an exponential mechanism
can still distinguish columns. The cost of a column is the number of records of the rare class that
are not among the records with the largest scores. The chosen column ranks the records, and the
common class is predicted for all of them. Proofs: ``docs/proofs/rare.md``, section 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.rows.directions import (
    EXPONENTS,
    LARGEST_CELL,
    LARGEST_SUM,
    IntArray,
    asinh_cells,
)
from dp_halfspace.selection.small_tables import SCORE_STEP, SmallModel

# Exponent of the cells (see `asinh_cells`); they are logarithmic for all but the smallest numbers.
_EXPONENT = min(EXPONENTS)
# The records with the largest scores, which are the top of a ranking, are this many tenths of all.
_TENTHS_AT_TOP = 3


def choose_column(
    X: NDArray[Any],
    class_indices: NDArray[np.intp],
    common: int,
    choice: tuple[NDArray[np.intp], TalliedChoice],
    permit: Permit,
) -> SmallModel:
    """Choose a column of numbers, or NaN, that ranks the second class above the first.

    The `choice` is that of numbers of repetitions, as often as which the list of candidates
    contains each column with either sign, and of a mechanism. The model predicts the released class
    `common` for every row.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: the number of one column, and a sign.
    - Sensitivity: 1 for the cost of each candidate, which is an integer.
    - Proof: ``docs/proofs/rare.md``, section 6.
    """
    with single_blas_thread():
        costs = np.array([missed_records(column, class_indices != common) for column in X.T])
    if common:
        # Records of the first class, if it is the rare one, are to have small scores.
        costs = costs[:, ::-1]
    repeats, mechanism = choice
    listed = np.repeat(np.arange(costs.size), np.repeat(repeats, 2))
    number = int(permit.release(costs.ravel()[listed], mechanism)[0])
    column, is_opposite = divmod(int(listed[number]), 2)
    coefficients = np.zeros(X.shape[1])
    coefficients[column] = (-1.0 if is_opposite else 1.0) * SCORE_STEP * LARGEST_SUM
    # This intercept is larger than any sum of cells, so all rows are on one side.
    beyond = SCORE_STEP * (LARGEST_SUM * LARGEST_CELL + 0.5)
    return SmallModel(coefficients, beyond if common else -beyond, _EXPONENT)


def missed_records(column: NDArray[Any], is_rare: NDArray[np.bool_]) -> IntArray:
    """Return how many rare records a column, and its negative, do not rank at the top.

    The top of a ranking is the three tenths of all records with the largest scores. If records with
    equal scores compete for its last places, the places are divided evenly among them, and the
    number of rare records without a place is rounded down. Replacing a record changes each number
    by at most one: ``docs/proofs/rare.md``, Lemma 4.
    """
    cells = asinh_cells(column, _EXPONENT)
    size = max(1, _TENTHS_AT_TOP * len(cells) // 10)
    missed = []
    for score in (cells, -cells):
        end = np.partition(score, -size)[-size]
        is_above, is_equal = score > end, score == end
        n_equal, n_below = np.count_nonzero(is_equal), np.count_nonzero(is_rare & ~is_above)
        left = size - np.count_nonzero(is_above)
        missed.append(n_below - -(-np.count_nonzero(is_rare & is_equal) * left // n_equal))
    return np.array(missed, dtype=np.int64)
