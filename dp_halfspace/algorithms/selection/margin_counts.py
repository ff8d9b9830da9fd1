"""How many records every direction gets wrong or nearly wrong, counted in integers.

The utility of Nguyen, Ullman and Zakynthinou (2020), Algorithm 2: a record counts if its margin
is below a tenth of a known one. Rows and directions are the integers of `directions`, so a score
is exact, and the limit of a direction is an integer too. Proof: ``docs/proofs/pure_halfspace.md``,
section 3.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.algorithms.selection.direction_counts import IntegerRows, counts_below, scores
from dp_halfspace.algorithms.selection.directions import ROW_NORM, integer_norm

IntArray: TypeAlias = NDArray[np.int64]

# What is left of a margin behind a projection and a net, in the published algorithm.
_SHARE = 0.1


def margin_limits(directions: NDArray[np.float32], margin: float) -> NDArray[np.float32]:
    """Return the integer score from which on a record does not count, for every direction.

    It is at least 1: a tenth of the public `margin` of unit rows times the norms of direction and
    integer row.
    """
    # Sums of squared integers up to 2047^2 are exact in any order.
    norms = np.sqrt(np.square(directions, dtype=np.float64).sum(axis=0))
    limits = np.rint(_SHARE * margin * integer_norm(ROW_NORM, len(directions)) * norms)
    return np.asarray(np.maximum(limits, 1.0), dtype=np.float32)


def margin_costs(
    directions: NDArray[np.float32],
    rows: IntegerRows,
    members: tuple[NDArray[np.intp], ...],
    weights: FloatArray,
    margin: float,
    *,
    paired: bool,
) -> IntArray:
    """Return the weighted number of records whose margin is below a tenth of `margin`.

    `members` are the numbers of the records of either class; a positive score predicts the
    second. The rest is as in `negative_counts` and `scores`.
    """
    limits = margin_limits(directions, margin)
    # Scores are integers: above minus the limit is what is not below the next one.
    edges = np.stack([limits, 1.0 - limits])
    first, second = (counts_below(directions, rows, index, edges) for index in members)
    sizes = len(members[0]), len(members[1])
    costs = [scores((sizes[0] - first[1], second[0]), sizes, weights, paired=False)]
    if paired:
        costs.append(scores((first[0], sizes[1] - second[1]), sizes, weights, paired=False))
    return np.concatenate(costs)
