"""Exponential mechanisms for tables of few rows and several classes: one tree, or two stages.

*One tree*: a public list contains one or two cuts (tests of a linear score of cells against a
threshold), with every assignment of different labels to the two or three leaves, and the constant
classifiers. The mechanism chooses one with few errors (``docs/proofs/small_tables.md``, section 7).

*Two stages*: the first mechanism chooses a cut that divides the labels into two halves. The
second one chooses, for both sides at once, a tree for the labels and the records of that side. A
single tree can predict three labels only (section 8).

Since every label has at most one leaf, the result is exactly a linear classifier of all classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_DOWN
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import LinearPrior
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Exponential
from dp_halfspace.privacy.exponential import CountedChoice, TalliedChoice, TalliedChoices
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.directions import (
    EXPONENTS,
    FEWEST,
    TILE_ROWS,
    WEIGHT_BITS,
    WORK,
    CellStream,
    IntArray,
    asinh_cells,
    class_factors,
    counts_below,
    located,
)
from dp_halfspace.selection.small_tables import (
    SCORE_STEP,
    ListSelection,
    SmallModel,
    all_costs,
    plan_choice,
    plan_error_count,
    share_of,
)

# Number of pairs of cuts.
_PAIRS = 10_000
# Largest number of entries of the list.
_ENTRIES = 4e6
# Fraction of the list for the constant classifiers.
_CONSTANTS = 0.1
# Weight of the second cut relative to the first: less than the score of one cell.
SECOND = 2.0**-26


@dataclass(frozen=True, slots=True)
class Shape:
    """A tree with two cuts: its `leaves` are sets of quadrants, in the order of their labels.

    Quadrants are numbered: above both cuts, above the first only, above the second only, below
    both. The cut number `root` comes first; of three leaves, two are `above` it or two are below.
    """

    leaves: tuple[tuple[int, ...], ...]
    root: int
    above: bool = True


_ONE_CUT = (Shape(((0, 1), (2, 3)), 0), Shape(((0, 2), (1, 3)), 1))
_TWO_CUTS = (
    Shape(((0,), (1,), (2, 3)), 0),
    Shape(((2,), (3,), (0, 1)), 0, above=False),
    Shape(((0,), (2,), (1, 3)), 1),
    Shape(((1,), (3,), (0, 2)), 1, above=False),
)
# Shapes for cuts with different coefficients, and for two thresholds of the same coefficients.
_SHAPES = (_ONE_CUT + _TWO_CUTS, _TWO_CUTS)


@cache
def forms(n_classes: int) -> list[tuple[bool, Shape, tuple[int, ...]]]:
    """Return the trees that a pair of cuts can be: one of `_SHAPES`, with labels for its leaves.

    The first entry is whether the two cuts have the same coefficients. No two leaves have the same
    label, so that there is no form with more leaves than labels.
    """
    return [
        (shared, shape, labels)
        for shared, shapes in zip((False, True), _SHAPES, strict=True)
        for shape in shapes
        for labels in permutations(range(n_classes), len(shape.leaves))
    ]


@dataclass(frozen=True, slots=True)
class TreeSelection(ListSelection):
    """The public numbers of one selection among listed trees.

    The list contains trees for about `n_pairs` pairs of cuts; cells have one of the `exponents`.
    Below a first cut, the weight of the second one follows from the thresholds.
    """

    n_columns: int
    n_classes: int
    n_pairs: int
    n_constants: int
    choice: TalliedChoice | CountedChoice
    seed: tuple[int, ...]
    exponents: tuple[int, ...] = EXPONENTS
    prior: LinearPrior | None = None
    is_below_a_cut: bool = False

    @property
    def lengths(self) -> list[int]:
        """Number of drawn candidates in every block of the list."""
        n_forms = len(forms(self.n_classes))
        return [width // 2 * n_forms for _, _, width in self.cells.blocks]

    @property
    def cells(self) -> CellStream:
        """The cuts; one of the first half of a block is paired with one of the second half."""
        return CellStream(self.n_columns, 4 * self.n_pairs, (*self.seed, 1), self.exponents)

    def _drawn_costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        members = [np.flatnonzero(codes == label) for label in range(self.n_classes)]
        sizes = np.array([len(index) for index in members])
        factors = class_factors(weights)
        total = int(factors @ sizes)
        for table, coefficients, thresholds in self.cells.read(X):
            counts = pair_counts(coefficients, thresholds, table, members) * factors[:, None]
            right = _right(counts, factors * sizes)
            yield np.asarray((total - right) >> WEIGHT_BITS).ravel()
        yield np.repeat((total - factors * sizes) >> WEIGHT_BITS, self.n_constants)

    def _constant(self, number: int) -> SmallModel:
        intercept = np.zeros(self.n_classes)
        intercept[number] = 1.0
        return SmallModel(np.zeros((self.n_classes, self.n_columns)), intercept, None)

    def _drawn(self, block: int, place: int) -> SmallModel:
        coefficients = np.zeros((self.n_classes, self.n_columns))
        intercept = np.zeros(self.n_classes)
        exponent, part, width = self.cells.blocks[block]
        form, first = divmod(place, width // 2)
        shared, shape, labels = forms(self.n_classes)[form]
        found, thresholds = self.cells.block(exponent, part, width)
        second = first + width // 2
        cuts = [
            np.append(found[:, column].astype(np.float64), -float(thresholds[limit]) - 0.5)
            * SCORE_STEP
            for column, limit in ((first, first), (first if shared else second, second))
        ]
        # Scores are large compared with the contribution of the second cut.
        root, other = cuts[shape.root], cuts[1 - shape.root]
        side = root if shape.above else -root
        if len(labels) == 2:
            parts = [side, -side]
        else:
            weight = weight_below(root[-1], other[-1]) if self.is_below_a_cut else SECOND
            parts = [side + weight * other, side - weight * other, -side]
        for label, cut in zip(labels, parts, strict=True):
            coefficients[label], intercept[label] = cut[:-1], cut[-1]
        return SmallModel(coefficients, intercept, exponent)


def pair_counts(
    coefficients: NDArray[np.float32],
    thresholds: NDArray[np.float32],
    table: NDArray[np.float32],
    members: list[NDArray[np.intp]],
) -> IntArray:
    """Count the records of each class above the cuts of each pair of a block, exactly.

    The result has the shape (5, K, m). It counts records above the first cut; above the second;
    above the second threshold on the score of the first; above the first and the second; and above
    the first cut and that threshold.
    """
    half = coefficients.shape[1] // 2
    second = np.s_[half : 2 * half]
    counts = np.zeros((5, len(members), half), dtype=np.int64)
    for label, index in enumerate(members):
        for start in range(0, len(index), TILE_ROWS):
            scores = table[index[start : start + TILE_ROWS]] @ coefficients
            above = scores > thresholds
            first, own = above[:, :half], above[:, second]
            shared = scores[:, :half] > thresholds[second]
            parts = first, own, shared, first & own, first & shared
            for count, part in zip(counts, parts, strict=True):
                count[label] += part.sum(axis=0, dtype=np.uint8)
    return counts


def _right(counts: IntArray, sizes: IntArray) -> IntArray:
    """Return the weighted numbers of correct predictions of every form and pair.

    `counts` are those of `pair_counts`, and `sizes` the sizes of the classes, both weighted.
    """
    first, found = counts[0], forms(len(sizes))
    quadrants = [
        np.stack([both, first - both, second - both, sizes[:, None] - first - second + both])
        for second, both in zip(counts[1:3], counts[3:], strict=True)
    ]
    inside = cache(lambda shared, leaf: quadrants[shared][list(leaf)].sum(axis=0))
    right = np.zeros((len(found), first.shape[1]), dtype=np.int64)
    for form, (shared, shape, labels) in enumerate(found):
        for leaf, label in zip(shape.leaves, labels, strict=True):
            right[form] += inside(shared, leaf)[label]
    return right


def plan_small_tree(
    n_samples: int,
    n_features: int,
    n_classes: int,
    epsilon: float,
    *,
    seed: int | None,
    counts: bool = False,
    prior: LinearPrior | None = None,
) -> TreeSelection:
    """Fix the public numbers of a selection; `seed` is that of public random objects.

    If `counts`, a part of the budget is spent on counting the errors of the chosen classifier. A
    public `prior` is listed, too.
    """
    choice = plan_choice(n_samples, epsilon, n_classes, counts=counts)
    n_pairs, n_constants = list_sizes(n_samples, n_classes)
    words = public_generator(seed, "small trees").integers(2**32, size=4).tolist()
    return TreeSelection(
        n_features, n_classes, n_pairs, n_constants, choice, tuple(words), prior=prior
    )


def list_sizes(n_samples: int, n_classes: int) -> tuple[int, int]:
    """Return the numbers of pairs of cuts and of copies of each constant classifier in a list."""
    n_forms = len(forms(n_classes))
    # A pair has two cuts.
    affordable = WORK / (2.0 * n_samples)
    n_pairs = max(int(min(_PAIRS, _ENTRIES / max(n_forms, 1), affordable)), FEWEST)
    others = n_pairs * n_forms
    return n_pairs, max(1, round(_CONSTANTS / (1.0 - _CONSTANTS) * others / n_classes))


# Fraction of epsilon for the first cut.
_FIRST_SHARE = 0.45
# Weight of a cut relative to the previous one, so that three of them fit into a float64.
_BELOW = 2.0**-14
# Up to this number of classes there is one cut on each side.
_ONE_CUT_BELOW = 4


@cache
def halves(n_classes: int) -> NDArray[np.bool_]:
    """Return every choice of half of the labels, one in each row; True is above the cut."""
    sizes = {n_classes // 2, n_classes - n_classes // 2}
    rows = [above for size in sorted(sizes) for above in combinations(range(n_classes), size)]
    found = np.zeros((len(rows), n_classes), dtype=bool)
    for row, above in zip(found, rows, strict=True):
        row[list(above)] = True
    return found


@dataclass(frozen=True, slots=True)
class _Cut:
    """A chosen first cut, and whether each label belongs above it."""

    exponent: int
    coefficients: FloatArray
    threshold: float
    labels_above: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """Costs of the trees below and above a cut, and the number of records on the wrong side."""

    costs: list[IntArray]
    n_astray: int


def _costs_of_sides(below: _Below) -> IntArray:
    return np.concatenate(below.costs)


def _n_errors(numbers: list[int], below: _Below) -> FloatArray:
    """Return the number of errors of a cut and of one tree on each side of it."""
    pairs = zip(below.costs, numbers, strict=True)
    return np.array([float(below.n_astray + sum(int(cost[k]) for cost, k in pairs))])


def weight_below(threshold: float, lower: float) -> float:
    """Return the weight of a cut relative to the previous one, by the thresholds of both.

    The weight is a power of two. For cells near zero the scores equal the thresholds, and the score
    of the lower cut must be small compared with that of the upper one there, too. If its threshold
    is much larger, it has the weight of any second cut.
    """
    ratio = abs(lower) / max(abs(threshold), 0.5 * SCORE_STEP)
    return max(_BELOW * 2.0 ** -math.ceil(math.log2(max(ratio, 1.0))), SECOND)


@dataclass(frozen=True, slots=True)
class StagedSelection:
    """The public numbers of two selections, drawn from the public `seed`.

    There are about `n_cuts` first cuts. `list_sizes` determines the sizes of the lists of either
    side from the public `n_samples`. `epsilons` are those of the two selections.
    """

    n_columns: int
    n_classes: int
    n_samples: int
    n_cuts: int
    epsilons: tuple[float, float]
    seed: tuple[int, ...]
    count: DiscreteLaplaceNoise | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of the selections: two exponential mechanisms; delta is not spent."""
        choices = [Exponential(epsilon) for epsilon in self.epsilons]
        return (*choices, *([] if self.count is None else [self.count.event]))

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        listed = sum(width for _, _, width in self.cells.blocks) * len(halves(self.n_classes))
        # Every half has the same number of labels, or the sides are exchanged.
        cut = _Cut(0, np.empty(0), 0.0, halves(self.n_classes)[0])
        for above in (False, True):
            side = self._side(cut, above=above)
            listed += int(dict(side.public)["n_candidates"])
        return {
            "solver": "exponential_mechanism",
            "n_candidates": listed,
            "candidate_seed": self.seed,
            "n_stages": 2,
            "private_preconditioner": False,
        }

    @property
    def cells(self) -> CellStream:
        """The first cuts."""
        return CellStream(self.n_columns, 2 * self.n_cuts, (*self.seed, 1))

    def _side(self, cut: _Cut, *, above: bool) -> TreeSelection:
        """Return the list of trees on one side of a chosen cut, for the labels there."""
        n_labels = int((cut.labels_above == above).sum())
        pairs, constants = list_sizes(self.n_samples, n_labels)
        choice, seed = TalliedChoice(self.epsilons[1]), (*self.seed, 2 + above)
        # For a single label there is one candidate, which is constant.
        exponents = (cut.exponent,) if n_labels > 1 else ()
        how: dict[str, Any] = {"exponents": exponents, "is_below_a_cut": True}
        return TreeSelection(self.n_columns, n_labels, pairs, constants, choice, seed, **how)

    def run(self, door: Door, n_samples: int, weights: FloatArray) -> SmallModel:
        """Choose a classifier with few errors on rows of numbers, or NaN.

        Behind the door are the training data, and its permit is charged with `events`. `weights`
        are the public weights of the classes, the largest of which is 1.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the number of a first cut, then those of one tree for either side of it, and a
          noisy count of errors if planned.
        - Sensitivity: 1 for the cost of each first cut; then 1 for the sum of the costs of two
          trees, and for the number of errors.
        - Proof: ``docs/proofs/small_tables.md``, sections 6 and 8.
        """
        # 1. Choose a first cut and the labels above it; only its number is released.
        # 2. For either side choose a tree for its labels by the records that are on it and have
        #    them; the two numbers are released together.
        # 3. Count the errors with noise if that was planned.
        # A record moves the cost of each first cut by at most one: `docs/proofs/small_tables.md`,
        # Lemma 8.
        choice = TalliedChoice(self.epsilons[0])
        ask = partial(all_costs, self._costs, weights)
        cut = self._cut(door.choose(ask, choice, is_cost=True))
        sides = [self._side(cut, above=above) for above in (False, True)]
        below = door.map(partial(self._below, cut, weights))
        chosen = TalliedChoices(tuple(side.n_listed for side in sides), self.epsilons[1])
        numbers = below.release(_costs_of_sides, chosen).astype(int).tolist()
        model = self._model(cut, sides, numbers)
        if self.count is None:
            return model
        # Replacing a record changes the number of errors by at most one: section 6.
        noisy = float(below.release(partial(_n_errors, numbers), self.count)[0])
        rates = self.count.epsilon, self.count.epsilon
        share = share_of(noisy, n_samples, rates, self.n_classes)
        return replace(model, error_share=share)

    def _below(self, cut: _Cut, weights: FloatArray, data: TrainingData) -> _Below:
        """Return the costs of the trees on both sides of a cut, each by the records there."""
        codes, costs = data.class_indices, []
        scores = asinh_cells(data.X, cut.exponent).astype(np.float64) @ cut.coefficients
        is_above = scores > cut.threshold
        with single_blas_thread():
            for above in (False, True):
                labels = cut.labels_above == above
                # Those with its labels; no record is on both sides.
                here = (is_above == above) & labels[codes]
                renamed = (np.cumsum(labels) - 1)[codes[here]]
                side = self._side(cut, above=above)
                found = side.costs(data.X[here], renamed, weights[labels])
                costs.append(np.concatenate(list(found)))
        return _Below(costs, int(np.count_nonzero(cut.labels_above[codes] != is_above)))

    def _costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        """Yield the costs of first cuts: weights of records on a side without their label."""
        members = [np.flatnonzero(codes == label) for label in range(self.n_classes)]
        sizes = np.array([len(index) for index in members])
        factors = class_factors(weights)
        belongs = halves(self.n_classes)
        for table, coefficients, thresholds in self.cells.read(X):
            limits = thresholds[None, :] + np.float32(1.0)
            found = [counts_below(coefficients, table, index, limits)[0] for index in members]
            below = np.stack(found)
            above = sizes[:, None] - below
            wrong = (belongs * factors) @ below + (~belongs * factors) @ above
            yield np.asarray(wrong >> WEIGHT_BITS).ravel()

    def _cut(self, number: int) -> _Cut:
        """Return a first cut of the list by its number."""
        n_halves = len(halves(self.n_classes))
        block, place = located(number, [n_halves * width for _, _, width in self.cells.blocks])
        exponent, part, width = self.cells.blocks[block]
        half, column = divmod(place, width)
        coefficients, thresholds = self.cells.block(exponent, part, width)
        found = coefficients[:, column].astype(np.float64)
        above = halves(self.n_classes)[half]
        return _Cut(exponent, found, float(thresholds[column]) + 0.5, above)

    def _model(self, cut: _Cut, sides: list[TreeSelection], numbers: list[int]) -> SmallModel:
        """Write a cut and the trees of its two sides as one linear classifier of all classes."""
        coefficients = np.zeros((self.n_classes, self.n_columns))
        intercept = np.zeros(self.n_classes)
        for above, side, number in zip((False, True), sides, numbers, strict=True):
            sign, labels = 1.0 if above else -1.0, cut.labels_above == above
            tree = side.candidate(number)
            # The score of a constant classifier is 1, and that of a cut is at least half a step.
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
) -> StagedSelection:
    """Fix the public numbers of two selections for three classes or more.

    If `counts`, a part of the budget is spent on counting the errors of the chosen classifier.
    `seed` is that of public random objects.
    """
    count = None
    if counts:
        count, epsilon = plan_error_count(n_samples, epsilon, n_classes)
    # As many as all pairs of one selection have; half of the work is for the trees below the cut.
    n_cuts = max(int(min(2 * _PAIRS, WORK / (2.0 * n_samples))), FEWEST)
    words = public_generator(seed, "staged trees").integers(2**32, size=4).tolist()
    first = epsilon * _FIRST_SHARE * DOWN
    epsilons = first, (epsilon - first) * FAR_DOWN
    return StagedSelection(n_features, n_classes, n_samples, n_cuts, epsilons, tuple(words), count)
