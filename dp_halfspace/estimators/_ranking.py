"""Plans of PrivateAUCClassifier: a direction, and a threshold for its scores.

By default the direction is that of the engine's linear fit, or for pure DP that of a perturbed
objective on centred rows. Published directions are minimisers of a sum over all pairs of records of
the two classes. The threshold is chosen by the exponential mechanism from a grid that is a function
of released coefficients; its loss is the weighted number of errors. Proofs: ``docs/proofs/auc.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._memory import LONG_BLOCK
from dp_halfspace._rounding import FAR_UP, RAMP_WIDTH, TINY, UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.chunks import apply_to_chunks, sum_over_chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.linear import LinearFit, Shape, plan_linear, without_missing
from dp_halfspace.engine.plan import FitPlan, Fitted
from dp_halfspace.engine.scales import in_column_scales
from dp_halfspace.estimators._centred import plan_centred_objective
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.papers.pairs import Choice, RankingProblem, plan_pairs
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Exponential
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.rows import clipped_rows

MECHANISMS = ("noisy_gd", "objective", "output")


@dataclass(frozen=True, slots=True)
class RankingFit(FitPlan):
    """The releases of a fit: those of a direction, and a threshold.

    `choice` is None if the threshold is public.
    """

    problem: RankingProblem
    direction: FitPlan
    choice: Choice
    public: Mapping[str, Any]

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        choice = self.choice
        last = (choice.event,) if isinstance(choice, ExponentialChoice) else ()
        return (*self.direction.events, *last)

    @property
    def column_clip(self) -> float:
        """That of the direction."""
        return self.direction.column_clip

    @property
    def takes(self) -> frozenset[str]:
        """What the direction takes, but weights, which the threshold does not read."""
        return self.direction.takes - {"sample_weight"}

    def run(self, door: Door) -> Fitted:
        """Release coefficients for rows as they were handed in, and the threshold."""
        fitted = self.direction.run(door)
        threshold = self.problem.threshold
        if self.choice is not None:
            threshold = self._release_threshold(fitted, door)
        # A ranking is linear in clipped columns, and so are the scores of its threshold.
        return replace(fitted, intercepts=np.array([-threshold]), attributes={}, row_clip=None)

    def _release_threshold(self, fitted: Fitted, door: Door) -> float:
        """Release a threshold for the scores of the rows, as they are at a prediction.

        It has few errors among those of a grid. Scores may be in chunks.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: one threshold of a public grid.
        - Sensitivity: 1 for the weighted number of errors of each threshold, and an allowance for
          rounding.
        - Proof: ``docs/proofs/auc.md``, section 1.
        """
        assert self.choice is not None
        facts, scales = self.problem.facts, fitted.scales
        longest, size = facts.data_norm, math.sqrt(facts.n_features) * UP
        # No row in column scales is longer than the clip of all columns.
        if scales is not None or facts.in_column_scales:
            longest = (self.column_clip if scales is None else fitted.clip) * size
        largest = float(np.linalg.norm(fitted.coefficients)) * longest
        grid = threshold_grid(largest, -float(fitted.intercepts[0]))
        weights = np.array(self.problem.error_weights)

        def ask(data: TrainingData) -> FloatArray:
            # Rows as in the direction, which is the only one that estimates scales on its own.
            X = data.X
            if scales is not None:
                assert isinstance(self.direction, LinearFit)
                X = in_column_scales(X, scales, fitted.clip, self.direction.shape.kind)
            elif not facts.in_column_scales:
                X = without_missing(data).X
            # A column of ones, which is not scaled down.
            rows = rows_over(clipped_rows, X, longest, 1.0, data.people)
            with single_blas_thread():
                scores = rows.margins_over_constant(fitted.coefficients[0])
            positive = apply_to_chunks(np.equal, data.class_indices, 1)
            losses = partial(threshold_losses, largest=largest, people=data.people)
            return np.asarray(-sum_over_chunks(losses, scores, positive, weights, grid))

        return float(grid[door.choose(ask, self.choice)])


def plan_ranking(problem: RankingProblem, mechanism: str, budget: Budget) -> RankingFit:
    """Plan one fit within a budget, by ``"auto"`` or one of `MECHANISMS`."""
    choice, left = pay_for_threshold(problem, budget)
    public: dict[str, Any] = {"mechanism": mechanism}
    direction: FitPlan
    if mechanism in {"objective", "output"}:
        direction, facts = plan_pairs(problem, budget, left, choice, mechanism)
        return RankingFit(problem, direction, choice, {**public, **facts})
    if budget.is_pure:
        shape = Shape(problem.facts, problem.constant)
        direction = plan_centred_objective(shape, LOGISTIC, left)
    else:
        direction = plan_linear(problem.facts, left, constant=problem.constant)
    return RankingFit(problem, direction, choice, {**direction.public, **public})


def pay_for_threshold(problem: RankingProblem, budget: Budget) -> tuple[Choice, Budget]:
    """Plan the choice of a threshold that is not public; return the remaining budget, too."""
    share, facts = problem.threshold_share, problem.facts
    if not share:
        return None, budget
    part, left = budget.split(share)
    if budget.is_pure:
        price = part.epsilon
    else:
        # An exponential mechanism costs about as much as a Gaussian one with half its epsilon as
        # mu.
        price = 2.0 * math.sqrt(share) * budget.mu
        if not budget.is_infinite:
            epsilon, delta = budget.epsilon, budget.delta
            if accounting.delta((Exponential(price),), epsilon) > 0.5 * delta:
                # With a large delta this may exceed the whole budget; a share of epsilon cannot.
                price = min(price, share * epsilon)
            left = Budget.gaussian(mu_beside(price, epsilon, delta))
    return plan_threshold(facts.n_privacy_units, facts.n_features, price), left


# Number of candidate thresholds on each side of the centre.
_PER_SIDE = 31
# Ratio of the distances of neighbouring candidates from the centre.
_RATIO = 2.0 ** (-1.0 / 3.0)


def plan_threshold(n_samples: int, n_columns: int, epsilon: float) -> ExponentialChoice | NoNoise:
    """Return the mechanism that chooses the threshold; infinite `epsilon` takes the best one.

    Replacing a record changes a loss by at most one: ``docs/proofs/auc.md``, Lemma 1.
    """
    if math.isinf(epsilon):
        return NoNoise()
    rounding = n_samples * (n_columns + 16) * 2.0**-36 + 2.0**-50 * n_samples * n_samples
    return ExponentialChoice(FAR_UP + rounding, epsilon)


def threshold_grid(largest: float, centre: float) -> FloatArray:
    """Return 63 candidate thresholds within ``[-largest, largest]``, denser towards a centre.

    `largest` bounds the absolute scores; both arguments are functions of what was released.
    """
    steps = 2.0 * largest * _RATIO ** np.arange(_PER_SIDE)
    grid = np.concatenate([centre - steps, [centre], centre + steps])
    return np.asarray(np.clip(grid, -largest, largest))


def threshold_losses(
    scores: NDArray[Any],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    grid: FloatArray,
    *,
    largest: float,
    people: People | None = None,
) -> FloatArray:
    """Return the weighted number of errors of every threshold.

    `weights` in [0, 1] are those of the negative and the positive class. A record within
    ``2^-17 largest`` of a threshold counts in part. With `people`, the weight of a row is one over
    the number of rows of its person.
    """
    # The loss of a positive record is one minus the loss of a negative record at the same score.
    each = None if people is None else people.weights
    # The exact number of positive rows, or the sum of their weights for people.
    n_positive = np.count_nonzero(positive) if each is None else each[positive].sum()
    base, step = float(weights[1]) * float(n_positive), max(largest, TINY) * RAMP_WIDTH
    # One sum has no more terms than there are people: docs/proofs/persons.md, section 3.
    n_scores = len(scores)
    size = max(min(LONG_BLOCK, n_scores if people is None else len(people)), 1)
    # A chunk without rows has one part, which counts nothing.
    parts = [slice(lo, lo + size) for lo in range(0, max(n_scores, 1), size)]
    losses = []
    for part in parts:
        signed = np.where(positive[part], -weights[1], weights[0])
        if each is not None:
            signed *= each[part]
        within = np.clip(scores[part], -largest, largest, dtype=np.float64)
        ramps = np.subtract.outer(grid, within)
        ramps /= -step
        ramps += 0.5
        losses.append(np.clip(ramps, 0.0, 1.0, out=ramps) @ signed)
    return base + np.array([math.fsum(column) for column in zip(*losses, strict=True)])
