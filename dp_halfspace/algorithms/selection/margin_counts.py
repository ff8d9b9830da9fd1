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

from dp_halfspace.algorithms.selection.direction_counts import (
    TILE_COLUMNS,
    TILE_ROWS,
    IntegerRows,
    scores,
)
from dp_halfspace.algorithms.selection.directions import ROW_NORM, integer_norm

__all__ = ["margin_costs", "margin_limits"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# What is left of a margin behind a projection and a net, in the published algorithm.
_SHARE = 0.1


def margin_limits(directions: NDArray[np.float32], margin: float) -> NDArray[np.float32]:
    """Return the integer score from which on a record does not count.

    Parameters
    ----------
    directions : ndarray of shape (D, m), float32
        Integers, from `DirectionStream.block`.
    margin : float
        Public margin of unit rows, in (0, 1].

    Returns
    -------
    ndarray of shape (m,), float32
        Integers of at least 1: a tenth of `margin` times the norms of direction and integer row.
        Functions of public numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.algorithms.selection.margin_counts import margin_limits
    >>> margin_limits(np.array([[2000.0, 0.0], [0.0, 3.0]], dtype=np.float32), 0.5)
    array([409329.,    614.], dtype=float32)
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

    Parameters
    ----------
    directions : ndarray of shape (D, m), float32
        Integers, from `DirectionStream.block`.
    rows : IntegerRows
        With D columns.
    members : tuple of two ndarray of int
        Numbers of the records of either class; a positive score predicts the second.
    weights : ndarray of shape (2,)
        Public class weights in [0, 1].
    paired : bool
        Whether the opposite directions follow.

    Returns
    -------
    ndarray of shape (m,) or (2 m,), int64
        From 0 to the number of records; replacing a record changes an entry by one at most.
    """
    width = directions.shape[1]
    limits = margin_limits(directions, margin)
    counts = np.zeros((2 if paired else 1, len(members), width), dtype=np.int64)
    for code, (sign, index) in enumerate(zip((-1.0, 1.0), members, strict=True)):
        for start in range(0, len(index), TILE_ROWS):
            signed = np.float32(sign) * rows[index[start : start + TILE_ROWS]]
            for lo in range(0, width, TILE_COLUMNS):
                part = np.s_[lo : lo + TILE_COLUMNS]
                found = signed @ directions[:, part]
                below = [found < limits[part], found > -limits[part]]
                for count, near in zip(counts, below, strict=False):
                    count[code, part] += near.sum(axis=0, dtype=np.uint8)
    sizes = tuple(map(len, members))
    return np.concatenate([scores(tuple(c), sizes, weights, paired=False) for c in counts])
