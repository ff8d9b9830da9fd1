"""Select one column and a sign to rank the records of a rare class.

If a class has few records, the noise of sums hides it at budgets at which an exponential mechanism
can still distinguish columns. The cost of a column is the number of records of the rare class that
are not among the records with the largest scores. The chosen column ranks the records, and the
common class is predicted for all of them. Proofs: ``docs/proofs/rare.md``, section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.exponential import TalliedChoice
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
    door: Door, common: int, repeats: NDArray[np.intp], mechanism: TalliedChoice
) -> SmallModel:
    """Choose a column of numbers, or NaN, that ranks the second class above the first.

    The list of candidates contains each column with either sign as often as `repeats` says. The
    model predicts the released class `common` for every row.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one.
    - Released: the number of one column, and a sign.
    - Sensitivity: 1 for the cost of each candidate, which is an integer.
    - Proof: ``docs/proofs/rare.md``, section 4.
    """
    listed = np.repeat(np.arange(2 * len(repeats)), np.repeat(repeats, 2))

    def ask(data: TrainingData) -> IntArray:
        X, is_rare = np.asarray(data.X, dtype=np.float64), data.class_indices != common
        with single_blas_thread():
            costs = np.array([missed_records(column, is_rare) for column in X.T])
        # Records of the first class, if it is the rare one, are to have small scores.
        return np.asarray((costs[:, ::-1] if common else costs).ravel()[listed])

    number = int(door.release(ask, mechanism)[0])
    column, is_opposite = divmod(int(listed[number]), 2)
    coefficients = np.zeros(len(repeats))
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
