"""Two exponential mechanisms for tables of few rows and several classes, one after the other.

The first one picks a cut that divides the labels into two halves, the second one, at once for
either side, a tree of `small_trees` for the labels and the records of that side: a tree alone can
name three labels only. Since every label has one leaf at most, the result is a linear classifier of
all classes. Proof: ``docs/proofs/small_tables.md``, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_DOWN
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.search.asinh_cells import CellStream, asinh_cells
from dp_halfspace.algorithms.search.directions import (
    WEIGHT_BITS,
    IntArray,
    class_factors,
    counts_below,
)
from dp_halfspace.algorithms.search.error_count import ErrorCount, plan_error_count
from dp_halfspace.algorithms.search.small_tables import SCORE_STEP, SmallModel
from dp_halfspace.algorithms.search.small_trees import SECOND, SmallTreePlan, list_sizes
from dp_halfspace.privacy.events import Event, Exponential
from dp_halfspace.privacy.exponential import TalliedChoice, TalliedChoices
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator

# The part of epsilon that buys the first cut.
_FIRST_SHARE = 0.45
# First cuts, fewer with many rows so that a fit takes seconds.
_CUTS, _FEWEST, _WORK = 20_000, 1_000, 5e8
# What a cut weighs beside the one before it where three of them have to fit into a float64, and
# what it weighs at least where its threshold is much larger than that of the one before it.
_BELOW, _LEAST_BELOW = 2.0**-14, 2.0**-26
# Up to so many classes there is one cut on a side.
_ONE_CUT_BELOW = 4


@cache
def halves(n_classes: int) -> NDArray[np.bool_]:
    """Return every way to send half of the labels above a cut, one in a row; True is above."""
    sizes = {n_classes // 2, n_classes - n_classes // 2}
    rows = [above for size in sorted(sizes) for above in combinations(range(n_classes), size)]
    found = np.zeros((len(rows), n_classes), dtype=bool)
    for row, above in zip(found, rows, strict=True):
        row[list(above)] = True
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    """A first cut that was chosen, and whether each label belongs above it."""

    exponent: int
    coefficients: FloatArray
    threshold: float
    labels_above: NDArray[np.bool_]


def weight_below(threshold: float, lower: float) -> float:
    """Return what a cut weighs beside the one before it, by the thresholds of both.

    A power of two: scores of cells that are nearly zero are thresholds, and the lower one is to be
    small beside the first one there, too.
    """
    ratio = abs(lower) / max(abs(threshold), 0.5 * SCORE_STEP)
    return max(_BELOW * 2.0 ** -math.ceil(math.log2(max(ratio, 1.0))), _LEAST_BELOW)


def on_side(
    labels: NDArray[np.bool_], codes: NDArray[np.intp], is_there: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which records of one side of the first cut have one of its labels.

    No record is on both sides.
    """
    return is_there & labels[codes]


@dataclass(frozen=True, slots=True)
class StagedTreePlan:
    """The public numbers of two selections, drawn from the public `seed`.

    There are about `n_cuts` first cuts; `list_sizes` tells what the lists of either side hold, by
    the public `n_samples`. `epsilons` are those of the two selections.
    """

    n_columns: int
    n_classes: int
    n_samples: int
    n_cuts: int
    epsilons: tuple[float, float]
    seed: tuple[int, ...]
    count: ErrorCount | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """What the selections cost: two exponential mechanisms, pure DP; delta is not spent."""
        choices = [Exponential(epsilon) for epsilon in self.epsilons]
        return (*choices, *([] if self.count is None else [self.count.noise.event]))

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        listed = sum(width for _, _, width in self.cells.blocks) * len(halves(self.n_classes))
        for above in (False, True):
            # Every half has as many labels, or the sides change places.
            side = self._side(halves(self.n_classes)[0] == above, 0, above=above)
            listed += int(dict(side.public)["n_candidates"])
        return {
            "solver": "small_table_selection",
            "n_candidates": listed,
            "candidate_seed": self.seed,
            "n_stages": 2,
            "private_preconditioner": False,
        }

    @property
    def cells(self) -> CellStream:
        """The first cuts."""
        return CellStream(self.n_columns, 2 * self.n_cuts, (*self.seed, 1))

    def _side(self, labels: NDArray[np.bool_], exponent: int, *, above: bool) -> SmallTreePlan:
        """Return the list of trees for some labels on one side of a cut of cells."""
        n_labels = int(labels.sum())
        pairs, constants = list_sizes(self.n_samples, n_labels)
        choice, seed = TalliedChoice(self.epsilons[1]), (*self.seed, 2 + above)
        # A single label has nothing to be told from: there is one constant.
        exponents = (exponent,) if n_labels > 1 else ()
        return SmallTreePlan(
            self.n_columns, n_labels, pairs, constants, choice, seed, exponents=exponents
        )

    def run(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> SmallModel:
        """Choose a classifier with few errors on rows of numbers, or NaN.

        `codes` are class indices, `weights` the public weights of the classes, the largest one
        being 1; `permit` is charged with `events`.
        """
        # 1. Choose a first cut and what labels belong above it; only its number is released.
        # 2. For either side choose a tree for its labels by the records that are there and have
        #    them; the two numbers are released together.
        # 3. Count the errors with noise, where that was planned.
        with single_blas_thread():
            costs = [part.astype(np.int32) for part in self._costs(X, codes, weights)]
        choice = TalliedChoice(self.epsilons[0])
        number = permit.choose(np.concatenate(costs), choice, is_cost=True)
        cut = self._cut(number, [len(part) for part in costs])
        scores = asinh_cells(X, cut.exponent).astype(np.float64) @ cut.coefficients
        is_above = scores > cut.threshold
        sides, values, lengths = [], [], []
        with single_blas_thread():
            for above in (False, True):
                labels = cut.labels_above == above
                side = self._side(labels, cut.exponent, above=above)
                here = on_side(labels, codes, is_above == above)
                renamed = (np.cumsum(labels) - 1)[codes[here]]
                parts = list(side.costs(X[here], renamed, weights[labels]))
                sides.append((side, labels))
                values.append(np.concatenate(parts))
                lengths.append([len(part) for part in parts])
        chosen = TalliedChoices((len(values[0]), len(values[1])), self.epsilons[1])
        numbers = permit.release(np.concatenate(values), chosen).astype(int).tolist()
        model = self._model(cut, sides, numbers, lengths)
        if self.count is None:
            return model
        n_astray = int(np.count_nonzero(cut.labels_above[codes] != is_above))
        n_errors = n_astray + sum(int(v[k]) for v, k in zip(values, numbers, strict=True))
        return replace(model, error_share=self.count.run(n_errors, permit))

    def _costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        """Yield the costs of first cuts: weights of records on the side that lacks their label."""
        members = [np.flatnonzero(codes == label) for label in range(self.n_classes)]
        sizes = np.array([len(index) for index in members])
        factors = class_factors(weights)
        belongs = halves(self.n_classes)
        cells = self.cells
        for exponent in cells.exponents:
            table = asinh_cells(X, exponent)
            for place in cells.blocks:
                if place[0] != exponent:
                    continue
                coefficients, thresholds = cells.block(*place)
                limits = thresholds[None, :] + np.float32(1.0)
                below = np.stack(
                    [counts_below(coefficients, table, index, limits)[0] for index in members]
                )
                above = sizes[:, None] - below
                wrong = (belongs * factors) @ below + (~belongs * factors) @ above
                yield np.asarray(wrong >> WEIGHT_BITS).ravel()

    def _cut(self, number: int, lengths: list[int]) -> _Cut:
        """Return a first cut of the list by its number."""
        ends = np.cumsum(lengths)
        block = int(np.searchsorted(ends, number, side="right"))
        place = number - int(ends[block]) + lengths[block]
        exponent, part, width = self.cells.blocks[block]
        half, column = divmod(place, width)
        coefficients, thresholds = self.cells.block(exponent, part, width)
        found = coefficients[:, column].astype(np.float64)
        above = halves(self.n_classes)[half]
        return _Cut(exponent, found, float(thresholds[column]) + 0.5, above)

    def _model(
        self,
        cut: _Cut,
        sides: list[tuple[SmallTreePlan, NDArray[np.bool_]]],
        numbers: list[int],
        lengths: list[list[int]],
    ) -> SmallModel:
        """Write a cut and the trees of its two sides as one linear classifier of all classes."""
        coefficients = np.zeros((self.n_classes, self.n_columns))
        intercept = np.zeros(self.n_classes)
        for sign, (side, labels), number, ends in zip(
            (-1.0, 1.0), sides, numbers, lengths, strict=True
        ):
            tree = side.candidate(number, ends, weight_below)
            # A constant says 1, and a cut at least half a step.
            own = tree.intercept * (SCORE_STEP if tree.exponent is None else 1.0)
            threshold, below = SCORE_STEP * cut.threshold, SECOND
            if self.n_classes > _ONE_CUT_BELOW:
                below = weight_below(threshold, float(np.abs(own).max()))
            coefficients[labels] = sign * SCORE_STEP * cut.coefficients + below * tree.coefficients
            intercept[labels] = -sign * threshold + below * own
        return SmallModel(coefficients, intercept, cut.exponent)


def plan_staged_tree(
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    *,
    seed: int | None,
    counts: bool = False,
) -> StagedTreePlan:
    """Fix the public numbers of two selections for three classes or more.

    A part of the budget counts the errors of what was chosen if `counts`. The `seed` is that of
    public random objects.
    """
    count = None
    if counts:
        count, epsilon = plan_error_count(n_samples, epsilon, n_classes)
    n_cuts = max(int(min(_CUTS, _WORK / n_samples)), _FEWEST)
    words = public_generator(seed, "staged trees").integers(2**32, size=4).tolist()
    first = epsilon * _FIRST_SHARE * DOWN
    epsilons = first, (epsilon - first) * FAR_DOWN
    return StagedTreePlan(n_features, n_classes, n_samples, n_cuts, epsilons, tuple(words), count)
