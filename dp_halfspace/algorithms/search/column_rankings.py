"""One selection of a column, with a sign, that ranks the records of a rare class.

Where a class has few records, noise on sums hides it at budgets that still tell one column from
another: the exponential mechanism over the columns, by pairs of one record of either class. The
chosen column ranks; every record is said to be of the common class. Proofs:
``docs/proofs/rare.md``, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.search.directions import (
    EXPONENTS,
    LARGEST_CELL,
    LARGEST_SUM,
    IntArray,
    asinh_cells,
)
from dp_halfspace.algorithms.search.small_tables import SCORE_STEP, SmallModel
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.mechanisms import Permit

# Cells are logarithmic for all but the smallest numbers.
_EXPONENT = EXPONENTS[0]
# How often the list holds a column of the table with each sign. The encoded columns of one column
# share this number, so that a column of many categories is not chosen more often by chance.
_REPEATS = 60


@dataclass(frozen=True, slots=True)
class ColumnRankingPlan:
    """The public numbers of one choice: how often the list holds each column with either sign."""

    repeats: tuple[int, ...]
    choice: TalliedChoice

    @property
    def n_listed(self) -> int:
        """Candidates, repetitions included."""
        return 2 * sum(self.repeats)

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        return (self.choice.event,)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"n_candidates": self.n_listed}

    def run(
        self, X: NDArray[Any], class_indices: NDArray[np.intp], common: int, permit: Permit
    ) -> SmallModel:
        """Choose a column of numbers, or NaN, that ranks the second class above the first.

        The model says the released class `common` of every row.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the number of one column, and a sign.
        - Sensitivity: 1 of the cost of each, an integer.
        - Proof: ``docs/proofs/rare.md``, section 6.
        """
        with single_blas_thread():
            costs = np.array([pair_costs(X[:, [j]], class_indices) for j in range(X.shape[1])])
        repeats = np.repeat(self.repeats, 2)
        number = int(permit.release(np.repeat(costs.ravel(), repeats), self.choice)[0])
        column, opposite = divmod(int(np.searchsorted(np.cumsum(repeats), number, "right")), 2)
        coefficients = np.zeros(X.shape[1])
        coefficients[column] = (-1.0 if opposite else 1.0) * SCORE_STEP * LARGEST_SUM
        # No sum of cells is as large, so that all rows are on one side.
        beyond = SCORE_STEP * (LARGEST_SUM * LARGEST_CELL + 0.5)
        return SmallModel(coefficients, beyond if common else -beyond, _EXPONENT)


def pair_costs(column: NDArray[Any], class_indices: NDArray[np.intp]) -> IntArray:
    """Return the costs of a column, and of its opposite, for ranking the second class higher.

    Pairs of one record of either class in the wrong order, where ties count one half, over the
    number of records, rounded down: replacing a record changes either by at most one.
    """
    cells = asinh_cells(column[:, 0], _EXPONENT)
    first = np.sort(cells[class_indices == 0])
    second = cells[class_indices == 1]
    n_pairs = len(first) * len(second)
    # Twice the pairs in the right order.
    right = int(
        np.searchsorted(first, second, side="left").sum()
        + np.searchsorted(first, second, side="right").sum()
    )
    wrong = np.array([2 * n_pairs - right, right], dtype=np.int64)
    return np.asarray(wrong // (2 * len(cells)))


def plan_column_ranking(widths: Sequence[int], epsilon: float) -> ColumnRankingPlan:
    """Plan a choice among columns that are encoded in so many each, at a pure budget."""
    repeats = [max(1, round(_REPEATS / width)) for width in widths for _ in range(width)]
    return ColumnRankingPlan(tuple(repeats), TalliedChoice(epsilon))
