"""One exponential mechanism for tables of few rows, which spends the whole budget on one choice.

A public list contains directions for rows of norm one, linear classifiers of columns on a
logarithmic scale, and the two constant classifiers. The mechanism chooses one with few errors. No
column scales are estimated and no gradient steps are taken, and the guarantee is pure DP. If
probabilities are requested, a noisy count estimates the error rate of the chosen classifier. Proof:
``docs/proofs/small_tables.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_DOWN
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import LinearPrior
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import CountedChoice, TalliedChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.directions import (
    FEWEST,
    WEIGHT_BITS,
    WORK,
    CellStream,
    DirectionStream,
    IntArray,
    class_factors,
    counts_below,
    integer_rows,
    located,
    margin_costs,
    scores,
    unit_length,
)
from dp_halfspace.rows.rows import normalised_rows

# Value of n epsilon at which a count is precise enough.
_ENOUGH = 20.0
# Smallest and largest fraction of a budget for a count, for two classes.
_LEAST = 0.05
_MOST = 0.25
# The largest fraction for more classes.
_MOST_OF_SEVERAL = 0.15
# Error rates that are considered possible, relative to the error rate of a random guess.
_PARTS = (np.arange(100) + 0.5) / 100.0
# Additional error rate on new records, as a multiple of e (1 - e) and the epsilon of the choice: a
# choice with a larger epsilon fits the training records more by chance.
_OPTIMISM = 0.125
# Assumed error rate without a count.
USUAL_SHARE = 0.2


def counted_share(
    noisy: float, n_samples: int, choice: CountedChoice, n_classes: int, *, is_constant: bool
) -> float:
    """Return the error rate of a chosen classifier by its noisy count, as post-processing.

    A constant classifier does not overfit.
    """
    below, above = map(float, choice.rates)
    share = share_of(noisy, n_samples, (below, above), n_classes)
    if is_constant:
        return share
    more = _OPTIMISM * choice.choice_epsilon * share * (1.0 - share)
    return float(min(share + more, _PARTS[-1] * (1.0 - 1.0 / n_classes)))


def share_of(noisy: float, n_samples: int, rates: tuple[float, float], n_classes: int = 2) -> float:
    """Return the posterior mean of the error rate given a noisy count, as post-processing.

    `rates` are the decay rates of the noise below and above the count. A random guess among
    `n_classes` is wrong in ``1 - 1 / n_classes`` of the cases, and error rates are below that. The
    prior is uniform for two classes; for more classes it is proportional to the error rate.
    """
    shares = _PARTS * (1.0 - 1.0 / n_classes)
    noise = noisy - shares * n_samples
    distance: FloatArray = np.where(noise < 0.0, -rates[0] * noise, rates[1] * noise)
    likely = np.exp(distance.min() - distance)
    if n_classes > 2:
        likely *= shares
    return float(likely @ shares / likely.sum())


def _part_of(n_samples: int, epsilon: float, n_classes: int) -> float:
    """Return the fraction of a pure DP budget that is spent on a count."""
    most = _MOST if n_classes == 2 else _MOST_OF_SEVERAL
    return min(max(_ENOUGH / (n_samples * epsilon), _LEAST), most)


def plan_choice(
    n_samples: int, epsilon: float, n_classes: int, *, counts: bool
) -> TalliedChoice | CountedChoice:
    """Plan a choice for a pure DP budget and, if `counts`, the count of its errors."""
    # A record moves the cost of each candidate by at most one: `docs/proofs/small_tables.md`,
    # Lemmas 4 and 6.
    whole = epsilon * DOWN
    if not counts:
        return TalliedChoice(whole)
    return CountedChoice(whole, whole * (1.0 - _part_of(n_samples, epsilon, n_classes)))


def plan_error_count(
    n_samples: int, epsilon: float, n_classes: int
) -> tuple[DiscreteLaplaceNoise, float]:
    """Plan a count with a part of a pure DP budget; return the remaining epsilon, too."""
    part = epsilon * _part_of(n_samples, epsilon, n_classes)
    # A record moves the number of errors by at most one: `docs/proofs/small_tables.md`, Lemma 4.
    return DiscreteLaplaceNoise(1, part), (epsilon - part) * FAR_DOWN


# Number of candidates in the list.
_WANTED = 200_000
# Fraction of the list for the two constant classifiers.
_CONSTANTS = 0.05
# Fraction of directions among the other candidates.
_DIRECTIONS = 0.28
# Constant column for rows of norm one.
BIAS = 0.5
# Factor of scores of cells. It is a power of two, so that scores stay exact, and makes them about
# as large as a mean asinh.
SCORE_STEP = 2.0**-18


@dataclass(frozen=True, slots=True)
class SmallModel:
    """A chosen classifier: `coefficients` of columns and an `intercept`.

    For two classes these are a vector and a number; for more classes there is one row and one entry
    for each class. They apply to unchanged rows if `exponent` is None, and otherwise to
    ``asinh_cells(rows, exponent)``, whose scores are exact. `error_share` was released, or is a
    public guess. `is_prior` marks the public model.
    """

    coefficients: FloatArray
    intercept: float | FloatArray
    exponent: int | None
    error_share: float = USUAL_SHARE
    is_prior: bool = False


class ListSelection(ABC):
    """One selection from a public list, drawn from the public `seed`.

    The list ends with `n_constants` copies of each constant classifier, and with a public `prior`,
    if there is one, which is listed as many times as all others together.
    """

    __slots__ = ()
    n_classes: int
    n_constants: int
    choice: TalliedChoice | CountedChoice
    seed: tuple[int, ...]
    prior: LinearPrior | None

    @property
    @abstractmethod
    def lengths(self) -> list[int]:
        """Number of drawn candidates in every block of the list."""

    @property
    def n_listed(self) -> int:
        """Number of candidates without the prior."""
        return sum(self.lengths) + self.n_classes * self.n_constants

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of the selection, with or without a count of its errors; no delta is spent."""
        return (self.choice.event,)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        return {
            "solver": "exponential_mechanism",
            "n_candidates": self.n_listed * (1 if self.prior is None else 2),
            "candidate_seed": self.seed,
            "private_preconditioner": False,
        }

    def run(self, door: Door, n_samples: int, weights: FloatArray) -> SmallModel:
        """Choose a classifier with few errors on rows of numbers, or NaN.

        Behind the door are the training data, and its permit is charged with `events`. `weights`
        are the public weights of the classes, the largest of which is 1.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the number of one classifier of a public list, and a noisy count of its errors
          if planned.
        - Sensitivity: 1 for the cost of each classifier, which is an integer.
        - Proof: ``docs/proofs/small_tables.md``, sections 1, 4, 6 and 7.
        """
        # 1. Count the errors of every candidate, in integers.
        # 2. Choose one; only its number is released, and a noisy count of its errors if that was
        #    planned.
        # 3. Draw its block of the public list again.
        released = door.release(partial(all_costs, self.costs, weights), self.choice)
        model = self.candidate(int(released[0]))
        if not isinstance(self.choice, CountedChoice):
            return model
        noisy, is_constant = float(released[1]), not model.coefficients.any()
        seen = (noisy, n_samples, self.choice, self.n_classes)
        return replace(model, error_share=counted_share(*seen, is_constant=is_constant))

    def costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        """Yield the costs of the candidates of every block of the list."""
        yield from self._drawn_costs(X, codes, weights)
        if self.prior is not None:
            said = classes_of(self.prior, X)
            errors = class_factors(weights)[codes[said != codes]].sum()
            yield np.repeat(errors >> WEIGHT_BITS, self.n_listed)

    @abstractmethod
    def _drawn_costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        """Yield the costs of the drawn candidates, and those of the constant classifiers last."""

    def candidate(self, number: int) -> SmallModel:
        """Return a candidate of the list by its number."""
        if self.prior is not None and number >= self.n_listed:
            return SmallModel(self.prior.coefficients, self.prior.intercepts, None, is_prior=True)
        drawn = self.n_listed - self.n_classes * self.n_constants
        if number >= drawn:
            return self._constant((number - drawn) // self.n_constants)
        return self._drawn(*located(number, self.lengths))

    @abstractmethod
    def _constant(self, number: int) -> SmallModel:
        """Return a constant classifier by its number among them."""

    @abstractmethod
    def _drawn(self, block: int, place: int) -> SmallModel:
        """Return a drawn candidate by its block and its place there."""


@dataclass(frozen=True, slots=True)
class TableSelection(ListSelection):
    """The public numbers of one selection among classifiers of two classes.

    The list contains `n_candidates` classifiers that depend on the row, a fraction of them
    directions.
    """

    n_columns: int
    n_candidates: int
    n_constants: int
    choice: TalliedChoice | CountedChoice
    seed: tuple[int, ...]
    prior: LinearPrior | None = None
    n_classes: int = 2

    @property
    def lengths(self) -> list[int]:
        """Number of drawn candidates in every block of the list."""
        return [*self.directions.lengths, *(2 * width for _, _, width in self.cells.blocks)]

    @property
    def directions(self) -> DirectionStream:
        """Directions for rows of norm one, constant column included."""
        return DirectionStream(
            self.n_columns + 1,
            round(_DIRECTIONS * self.n_candidates),
            (*self.seed, 0),
            constant=BIAS,
        )

    @property
    def cells(self) -> CellStream:
        """Classifiers of columns on a logarithmic scale."""
        rest = round((1.0 - _DIRECTIONS) * self.n_candidates)
        return CellStream(self.n_columns, rest, (*self.seed, 1))

    def _drawn_costs(
        self, X: NDArray[Any], codes: NDArray[np.intp], weights: FloatArray
    ) -> Iterator[IntArray]:
        members = np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)
        sizes = len(members[0]), len(members[1])
        rows = integer_rows(normalised_rows(np.nan_to_num(X), 1.0, BIAS, None, clips=False))
        directions = self.directions
        for number in range(directions.n_blocks):
            block = directions.block(number)
            yield margin_costs(block, rows, members, weights, 0.0, paired=True)
        for table, coefficients, thresholds in self.cells.read(X):
            limits = thresholds[None, :] + np.float32(1.0)
            below = [counts_below(coefficients, table, index, limits)[0] for index in members]
            yield scores((sizes[0] - below[0], below[1]), sizes, weights, paired=True)
        ones = np.array([[1, 0], [0, 1]]) * np.array(sizes)
        constant = scores((ones[0], ones[1]), sizes, weights, paired=False)
        yield np.repeat(constant, self.n_constants)

    def _constant(self, number: int) -> SmallModel:
        # The first one predicts the second class, so it errs on all records of the first.
        return SmallModel(np.zeros(self.n_columns), -1.0 if number else 1.0, None)

    def _drawn(self, block: int, place: int) -> SmallModel:
        directions = self.directions
        if block < directions.n_blocks:
            listed = directions.block(block)
            opposite, column = divmod(place, listed.shape[1])
            found = unit_length(listed[:, column, None])[:, 0] * (-1.0 if opposite else 1.0)
            return SmallModel(found[:-1], float(found[-1]) * BIAS, None)
        exponent, part, width = self.cells.blocks[block - directions.n_blocks]
        coefficients, thresholds = self.cells.block(exponent, part, width)
        opposite, column = divmod(place, width)
        sign = -1.0 if opposite else 1.0
        found = coefficients[:, column].astype(np.float64)
        limit = float(thresholds[column]) + 0.5
        return SmallModel(sign * SCORE_STEP * found, -sign * SCORE_STEP * limit, exponent)


def all_costs(
    costs: Callable[..., Iterator[IntArray]], weights: FloatArray, data: TrainingData
) -> NDArray[np.int32]:
    """Return the `costs` of the candidates of all blocks of a list, four bytes for each."""
    with single_blas_thread():
        parts = costs(data.X, data.class_indices, weights)
        return np.concatenate([part.astype(np.int32) for part in parts])


def classes_of(prior: LinearPrior, X: NDArray[Any]) -> NDArray[np.intp]:
    """Return the class of every row, a function of this row alone to the last bit.

    Products are added column by column, because the rounding errors of a matrix product may depend
    on the place of a row.
    """
    scores = np.tile(prior.intercepts, (X.shape[0], 1))
    for column, weights in enumerate(prior.coefficients.T):
        cells = X[:, column, None]
        scores += np.where(np.isnan(cells), prior.fill[column], cells) * weights
    found = scores[:, 0] > 0.0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(found, dtype=np.intp)


def plan_small_table(
    n_samples: int,
    n_features: int,
    epsilon: float,
    *,
    seed: int | None,
    counts: bool = False,
    prior: LinearPrior | None = None,
) -> TableSelection:
    """Fix the public numbers of a selection; `seed` is that of public random objects.

    If `counts`, a part of the budget is spent on counting the errors of the chosen classifier. A
    public `prior` is listed, too.
    """
    choice = plan_choice(n_samples, epsilon, 2, counts=counts)
    wanted = min(max(round(WORK / n_samples), FEWEST), _WANTED)
    n_constants = max(1, round(_CONSTANTS * wanted / 2.0))
    words = public_generator(seed, "small tables").integers(2**32, size=4).tolist()
    sizes = n_features, wanted - 2 * n_constants, n_constants
    return TableSelection(*sizes, choice, tuple(words), prior)
