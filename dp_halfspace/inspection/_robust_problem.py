"""What the bounds for tilted and for adversarial risks have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize_scalar

from dp_halfspace.inspection._noise_cost import (
    NoiseMoments,
    check_problem,
    noise_moments,
    product,
    published_rate,
    require,
)
from dp_halfspace.inspection.population_bound import RiskBound, risk_bound
from dp_halfspace.optim.objectives.losses import Loss, get_loss

# Logarithms of the factors that are tried where none is given, in units of norm of a row over
# norm of the models.
_LOGS = np.linspace(-16.0, 5.0, 43)


@dataclass(frozen=True)
class RobustProblem:
    """What both bounds take, checked, with moments of the noise for sensitivity 1."""

    n_samples: int
    n_features: int
    epsilon: float
    delta: float
    named_loss: str | Loss
    data_norm: float
    radius: float | None
    gap: float

    def __post_init__(self) -> None:
        budget = (self.n_features, self.epsilon, self.delta)
        check_problem(self.n_samples, *budget, gap=self.gap)
        require("data_norm", self.data_norm)
        if self.radius is not None:
            require("radius", self.radius)

    @cached_property
    def loss(self) -> Loss:
        """The loss itself."""
        return get_loss(self.named_loss) if isinstance(self.named_loss, str) else self.named_loss

    @cached_property
    def linear(self) -> NoiseMoments:
        """Moments of the noise as a record of a linear model feels it."""
        return noise_moments(self.n_features, self.epsilon, self.delta, linear_model=True)

    @cached_property
    def norm(self) -> float:
        """Mean norm of the noise."""
        return noise_moments(self.n_features, self.epsilon, self.delta, linear_model=False).felt

    @property
    def rate(self) -> float:
        """The rate of the paper."""
        return published_rate(self.n_samples, self.n_features, self.epsilon, self.delta)

    def distance(self, ridge: float) -> float:
        """Bound the distance between the solution and the minimiser."""
        return math.sqrt(2.0 * self.gap / ridge)

    def total(
        self, noise: float, ridge: float, sensitivity: float, *, sampling: float, gap: float
    ) -> RiskBound:
        """Add the regulariser to what noise and sample cost."""
        own = (self.linear.square, ridge, sensitivity, self.radius)
        return risk_bound(noise, *own, sampling=sampling, gap=gap)


def chosen_factor(
    problem: RobustProblem, regularization: float | None, bound: Callable[[float], RiskBound]
) -> float:
    """Return the factor that is given, or else the best one found."""
    if regularization is not None:
        require("regularization", regularization)
        return regularization
    if problem.radius is None:
        raise ValueError("give regularization, or radius for the bound to choose it.")
    unit = problem.data_norm / problem.radius

    def value(log: float) -> float:
        return bound(unit * math.exp(log)).value

    start = min((float(log) for log in _LOGS), key=value)
    step = float(_LOGS[1] - _LOGS[0])
    found = minimize_scalar(
        value, bounds=(start - step, start + step), method="bounded", options={"xatol": 1e-6}
    )
    return unit * math.exp(min(start, float(found.x), key=value))


def tilted_noise(problem: RobustProblem, tilt: float, sensitivity: float) -> float:
    """Bound what the noise adds to a tilted risk."""
    slope = problem.loss.lipschitz * problem.data_norm
    bend = problem.loss.smoothness * problem.data_norm**2 + tilt * slope**2
    smooth = product(bend / 2.0, problem.linear.felt_square * sensitivity**2)
    felt = problem.linear.felt * sensitivity
    if felt == 0.0:
        return 0.0
    # A margin falls and rises alike; only one of the two raises a monotone loss.
    share = 0.5 if problem.loss.monotone else 1.0
    if tilt == 0.0:
        return min(share * slope * felt, smooth)
    scale = tilt * slope * sensitivity
    log = _log_generating(problem, scale)
    rest = -math.expm1(-tilt * slope * felt)
    if problem.loss.monotone:
        grown = log + math.log1p(rest / 2.0 * math.exp(-log))
    else:
        grown = log + math.log1p(1.0 - (1.0 - rest) * math.exp(-log))
    return min(grown / tilt, slope * problem.norm * sensitivity, smooth)


def _log_generating(problem: RobustProblem, scale: float) -> float:
    """Logarithm of the moment generating function of one coordinate of the noise."""
    if problem.delta > 0 or math.isinf(problem.epsilon):
        return scale**2 * problem.linear.felt_square / 2.0
    ratio = scale / problem.epsilon
    if ratio >= 1.0:
        return math.inf
    return -(problem.n_features + 1) / 2.0 * math.log1p(-(ratio**2))
