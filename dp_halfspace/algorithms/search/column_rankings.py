"""Select one column and a sign to rank the records of a rare class, or a listed classifier.

If a class has few records, the noise of sums hides it at budgets at which an exponential mechanism
can still distinguish columns. The cost of a column is the number of misordered pairs, each of one
record from either class. A chosen column ranks the records, and the common class is predicted for
all of them. The list may also contain the classifiers of a small table, whose cost is their number
of errors. Proofs: ``docs/proofs/rare.md``, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from dp_halfspace.algorithms.search.small_tables import (
    SCORE_STEP,
    SmallModel,
    SmallTablePlan,
    plan_small_table,
)
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.mechanisms import Permit

# Exponent of the cells (see `asinh_cells`); they are logarithmic for all but the smallest numbers.
_EXPONENT = EXPONENTS[0]
# Number of times that the list contains a column of the table with each sign. The encoded columns
# of one table column share this number, so that a column with many categories is not chosen more
# often by chance.
_REPEATS = 60
# The same, relative to the number of listed classifiers: all columns together are four fifths of
# the list.
_PER_LISTED = 4.0
# Added to the cost of a column, as a multiple of the released number of records of the rarer class:
# a classifier is preferred if the share of these records that it errs on is smaller than this
# number and the share of misordered pairs together.
_COST_OF_ONE_LABEL = 0.5


@dataclass(frozen=True, slots=True)
class ColumnRankingPlan:
    """The public numbers of a choice: how often the list contains each column with either sign.

    The list also contains the classifiers of `listed`, if it is given.
    """

    repeats: tuple[int, ...]
    choice: TalliedChoice
    listed: SmallTablePlan | None = None

    @property
    def n_listed(self) -> int:
        """Number of candidates, with repetitions."""
        return 2 * sum(self.repeats) + (0 if self.listed is None else self.listed.n_listed)

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (self.choice.event,)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        found = {} if self.listed is None else {"candidate_seed": self.listed.seed}
        return {**found, "n_candidates": self.n_listed}

    def run(
        self, X: NDArray[Any], class_indices: NDArray[np.intp], second: float, permit: Permit
    ) -> SmallModel:
        """Choose a column of numbers, or NaN, that ranks the second class above the first.

        The model then predicts the class for every row that is the common one by the released
        number `second` of records of the second class. A listed classifier predicts by itself.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the number of one column, and a sign, or of one classifier of a public list.
        - Sensitivity: 1 for the cost of each candidate, which is an integer.
        - Proof: ``docs/proofs/rare.md``, section 6.
        """
        rarer, repeats = min(second, len(X) - second), np.repeat(self.repeats, 2)
        offset = 0 if self.listed is None else round(_COST_OF_ONE_LABEL * max(rarer, 0.0))
        with single_blas_thread():
            pairs = np.array([pair_costs(X[:, [j]], class_indices) for j in range(X.shape[1])])
            costs = [np.repeat(pairs.ravel() + offset, repeats)]
            if self.listed is not None:
                costs += self.listed.costs(X, class_indices, np.ones(2))
        number = int(permit.release(np.concatenate(costs, dtype=np.int32), self.choice)[0])
        if number >= len(costs[0]):
            assert self.listed is not None
            lengths = [len(part) for part in costs[1:]]
            return self.listed.candidate(number - len(costs[0]), lengths)
        column, opposite = divmod(int(np.searchsorted(np.cumsum(repeats), number, "right")), 2)
        coefficients = np.zeros(X.shape[1])
        coefficients[column] = (-1.0 if opposite else 1.0) * SCORE_STEP * LARGEST_SUM
        # This intercept is larger than any sum of cells, so all rows are on one side.
        beyond = SCORE_STEP * (LARGEST_SUM * LARGEST_CELL + 0.5)
        intercept = beyond if second > 0.5 * len(X) else -beyond
        return SmallModel(coefficients, intercept, _EXPONENT, is_ranking=True)


def pair_costs(column: NDArray[Any], class_indices: NDArray[np.intp]) -> IntArray:
    """Return the costs of a column and of the negated column as scores of the second class.

    A cost is the number of misordered pairs of one record from either class, with ties counted as
    one half, divided by the number of records and rounded down. Replacing a record changes each
    cost by at most one.
    """
    cells = asinh_cells(column[:, 0], _EXPONENT)
    first = np.sort(cells[class_indices == 0])
    second = cells[class_indices == 1]
    n_pairs = len(first) * len(second)
    # Twice the number of pairs in the right order.
    right = int(
        np.searchsorted(first, second, side="left").sum()
        + np.searchsorted(first, second, side="right").sum()
    )
    wrong = np.array([2 * n_pairs - right, right], dtype=np.int64)
    return np.asarray(wrong // (2 * len(cells)))


def plan_column_ranking(
    widths: Sequence[int], epsilon: float, listed: SmallTablePlan | None = None
) -> ColumnRankingPlan:
    """Plan a pure DP choice among columns, each encoded in the given number of columns.

    The list also contains the classifiers of `listed`, if it is given.
    """
    each: float = _REPEATS
    if listed is not None:
        each = _PER_LISTED * listed.n_listed / (2 * len(widths))
    repeats = [max(1, round(each / width)) for width in widths for _ in range(width)]
    return ColumnRankingPlan(tuple(repeats), TalliedChoice(epsilon), listed)


def plan_listed(
    n_samples: int, n_features: int, epsilon: float, seed: int | None
) -> SmallTablePlan:
    """List the classifiers of a small table, without the constant ones."""
    plan = plan_small_table(n_samples, n_features, epsilon, seed=seed)
    return replace(plan, n_constants=0)
