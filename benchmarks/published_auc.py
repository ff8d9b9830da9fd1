"""The algorithms of Wang, Yang, Lei, Ying and Zhang (2021) as published.

"Differentially private empirical risk minimization for AUC maximization": Algorithm 1 (noise on the
minimiser over all pairs), Algorithm 2 (a random linear term in the objective) and Algorithm 3
(the same for single records). Noise scales are those of the paper, class counts and all, so
the epsilon that they state is taken at face value.

Where the paper leaves a choice, the one that suits it better is made:

- Rows are divided by their public norm, so ``D = 2`` and ``R_2 = 1``. A norm that is measured, as
  in the paper, is not private.
- Natural logarithms: slope 1 and curvature 1/4 where its text has base 2.
- The exact minimiser, which the paper defines, in place of its mini-batch steps.
- The regulariser is one of the paper's five: by cross-validation at epsilon = .1, as printed, or
  the best one on the test set in each cell. Neither is charged for.

Algorithm 3 gets a constant column inside its norm, because without one its loss cannot rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods import RANKINGS, Method
from benchmarks.predictors import Linear, area_under_curve, unit_ball, with_constant
from dp_halfspace.optim import Loss, certified_minimum
from dp_halfspace.optim.losses import LOGISTIC, SQUARED
from dp_halfspace.optim.objectives import MarginObjective, Objective
from dp_halfspace.papers.pair_objective import PairwiseObjective
from dp_halfspace.rows.rows import clipped_rows

FloatArray: TypeAlias = NDArray[np.float64]

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
DIAMETER = 2.0
_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Noise:
    """A random vector: of gamma length when ``delta`` is zero, else Gaussian."""

    scale: float
    gaussian: bool

    def draw(self, size: int) -> FloatArray:
        """Draw one vector."""
        rng = np.random.default_rng()
        direction = rng.standard_normal(size)
        if self.gaussian:
            return self.scale * direction
        return rng.gamma(size, self.scale) * direction / np.linalg.norm(direction)


def output_noise(
    loss: Loss, ridge: float, counts: tuple[int, int], epsilon: float, delta: float
) -> Noise:
    """Algorithm 1, lines 2 to 6."""
    slope = loss.slope_bound(math.sqrt(2.0 / ridge) * DIAMETER)
    change = 2.0 * DIAMETER * slope / ridge * (1.0 / counts[0] + 1.0 / counts[1])
    if delta == 0:
        return Noise(change / epsilon, False)
    return Noise(math.sqrt(2.0 * math.log(1.25 / delta)) * change / epsilon, True)


def _gaussian_scale(change: float, epsilon: float, delta: float) -> float:
    """Scale of the linear term that Algorithms 2 and 3 share; `change` is half of their bound."""
    size = 2.0 * math.sqrt(2.0 * math.log(1.0 / delta)) + math.sqrt(2.0 * epsilon)
    return size * change / epsilon


def objective_noise(
    ridge: float, counts: tuple[int, int], epsilon: float, delta: float
) -> tuple[Noise, float]:
    """Algorithm 2, lines 3 to 17, for the logistic loss: the noise and the total regulariser.

    Line 14 prints ``e ** (1 / 2 n)`` without its epsilon; the proof has it.
    """
    n, pairs = sum(counts), counts[0] * counts[1]
    curvature = LOGISTIC.smoothness * DIAMETER**2 / pairs
    jacobian = n * math.log1p(curvature / ridge)
    left = epsilon - jacobian
    if left <= 0:
        left, ridge = epsilon / 2.0, curvature / math.expm1(epsilon / (2.0 * n))
    change = n * LOGISTIC.lipschitz * DIAMETER / pairs
    if delta == 0:
        return Noise(2.0 * change / left, False), ridge
    return Noise(_gaussian_scale(change, left, delta), True), ridge


def pointwise_noise(ridge: float, n: int, epsilon: float, delta: float) -> tuple[Noise, float]:
    """Algorithm 3: the noise on the sum over records, and the total regulariser of their mean."""
    curvature = LOGISTIC.smoothness / n
    left = epsilon - math.log1p(curvature / ridge)
    if left <= 0:
        left, ridge = epsilon / 2.0, curvature / math.expm1(epsilon / 2.0)
    return Noise(_gaussian_scale(LOGISTIC.lipschitz, left, delta), True), ridge


@dataclass(frozen=True, slots=True)
class Records:
    """A training set with rows of norm at most one."""

    X: Any
    positive: NDArray[np.bool_]

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of positive and of negative records."""
        positive = int(self.positive.sum())
        return positive, len(self.positive) - positive

    def over_pairs(
        self, loss: Loss, ridge: float, linear: FloatArray | None = None
    ) -> PairwiseObjective:
        """Mean loss over all pairs, with a regulariser and a linear term."""
        pairs = float(self.counts[0] * self.counts[1])
        rows = clipped_rows(self.X, 1.0)
        return PairwiseObjective(rows, self.positive, loss, ridge, pairs, linear)

    def over_records(self, ridge: float, linear: FloatArray) -> MarginObjective:
        """Sum of the logistic loss over the records, with a regulariser and a linear term."""
        n = len(self.positive)
        signs = np.where(self.positive, 1.0, -1.0)
        rows = clipped_rows(self.X, 1.0)
        return MarginObjective(rows, signs, np.ones(n), LOGISTIC, ridge, linear)


def minimum(objective: Objective, tolerance: float) -> FloatArray:
    """Minimise until the gradient is as short as `tolerance`."""
    radius = math.sqrt(2.0 * objective.initial_gap / objective.ridge)
    return certified_minimum(objective, tolerance, radius=radius)


@dataclass(frozen=True, slots=True)
class Release:
    """Budget of one release; `divisor` makes the noise smaller than the paper says."""

    epsilon: float
    delta: float
    draws: int
    divisor: float

    def of(self, noise: Noise) -> Noise:
        """Divide the noise."""
        return replace(noise, scale=noise.scale / self.divisor)


def _without_noise(records: Records, loss: Loss, ridge: float, _: Release) -> list[FloatArray]:
    return [minimum(records.over_pairs(loss, ridge), _TOLERANCE)]


def _output(records: Records, loss: Loss, ridge: float, release: Release) -> list[FloatArray]:
    exact = minimum(records.over_pairs(loss, ridge), _TOLERANCE)
    noise = output_noise(loss, ridge, records.counts, release.epsilon, release.delta)
    return [exact + release.of(noise).draw(len(exact)) for _ in range(release.draws)]


def _objective(records: Records, loss: Loss, ridge: float, release: Release) -> list[FloatArray]:
    noise, total = objective_noise(ridge, records.counts, release.epsilon, release.delta)
    size = records.X.shape[1]
    return [
        minimum(records.over_pairs(loss, total, release.of(noise).draw(size)), _TOLERANCE)
        for _ in range(release.draws)
    ]


def _pointwise(records: Records, loss: Loss, ridge: float, release: Release) -> list[FloatArray]:
    n = len(records.positive)
    noise, total = pointwise_noise(ridge, n, release.epsilon, release.delta)
    longer = replace(records, X=with_constant(records.X) / math.sqrt(2.0))
    size = longer.X.shape[1]
    return [
        minimum(longer.over_records(n * total, release.of(noise).draw(size)), n * _TOLERANCE)[:-1]
        for _ in range(release.draws)
    ]


Algorithm: TypeAlias = Callable[[Records, Loss, float, Release], list[FloatArray]]


def published_models(
    X: Any,
    y: NDArray[Any],
    *,
    algorithm: Algorithm,
    loss: Loss,
    pure: bool,
    divisor: float,
    epsilon: float,
    delta: float,
    data_norm: float,
    classes: Sequence[Any],
    draws: int,
    ridges: Sequence[float] = RIDGES,
) -> dict[str, list[Linear]]:
    """Run one algorithm with each regulariser."""
    records = Records(unit_ball(X, data_norm), y == max(classes))
    release = Release(epsilon, 0.0 if pure else delta, draws, divisor)
    labels, none = np.sort(classes), np.zeros(1)
    return {
        f"ridge={ridge:g}": [
            Linear(w[None, :] / data_norm, none, labels)
            for w in algorithm(records, loss, ridge, release)
        ]
        for ridge in ridges
    }


def published(
    title: str,
    algorithm: Algorithm,
    *,
    loss: Loss = LOGISTIC,
    pure: bool = False,
    divisor: float = 1.0,
) -> Method:
    """Describe one algorithm as a row of a table."""
    models = partial(published_models, algorithm=algorithm, loss=loss, pure=pure, divisor=divisor)
    private = algorithm is not _without_noise
    return Method(
        title,
        f"{title} of Wang, Yang, Lei, Ying and Zhang (2021)",
        "others" if private else "baselines",
        models,
        {f"ridge={ridge:g}": {"ridge": ridge} for ridge in RIDGES},
        score=area_under_curve,
    )


OBJECTIVE_PURE = partial(published, "Algorithm 2, pure", _objective, pure=True)
OBJECTIVE = partial(published, "Algorithm 2", _objective)

PUBLISHED: dict[str, Method] = {
    "exact": published("no noise", _without_noise),
    "output_pure": published("Algorithm 1, pure", _output, pure=True),
    "objective_pure": OBJECTIVE_PURE(),
    "auc_pure": RANKINGS["auc_pure"],
    "output": published("Algorithm 1", _output),
    "objective": OBJECTIVE(),
    "pointwise": published("Algorithm 3", _pointwise),
    "auc": RANKINGS["auc"],
    "exact_squares": published("no noise, squares", _without_noise, loss=SQUARED),
    "output_squares_pure": published(
        "Algorithm 1, squares, pure", _output, loss=SQUARED, pure=True
    ),
    "output_squares": published("Algorithm 1, squares", _output, loss=SQUARED),
}
