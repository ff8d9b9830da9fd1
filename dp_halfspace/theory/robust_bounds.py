"""Excess risk bounds for tilted and adversarially robust models with output perturbation.

Functions of public quantities, so they use no budget. Proofs: ``docs/proofs/excess_risk.md``,
sections 10 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from dp_halfspace._params import require
from dp_halfspace.optim.losses import Loss, get_loss
from dp_halfspace.optim.objectives import SMALLEST_SMOOTHING, Adversary
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.theory.bounds import (
    NoiseMoments,
    RiskBound,
    best_bound,
    check_problem,
    gamma_ratio,
    leave_one_out,
    noise_moments,
    product,
    published_rate,
    risk_bound,
)


@dataclass(frozen=True)
class RobustProblem:
    """Checked arguments of both bounds, with moments of the noise for sensitivity 1."""

    n_samples: int
    n_features: int
    epsilon: float
    delta: float
    named_loss: str | Loss
    data_norm: float
    radius: float | None
    gap: float

    def __post_init__(self) -> None:
        check_problem(self.n_samples, self.n_features, self.epsilon, self.delta, gap=self.gap)
        require("positive and finite", data_norm=self.data_norm)
        if self.radius is not None:
            require("positive and finite", radius=self.radius)

    @cached_property
    def loss(self) -> Loss:
        """The loss itself."""
        return get_loss(self.named_loss) if isinstance(self.named_loss, str) else self.named_loss

    @cached_property
    def linear(self) -> NoiseMoments:
        """Moments of the effect of the noise on a record of a linear model."""
        return noise_moments(self.n_features, self.epsilon, self.delta, linear_model=True)

    @property
    def rate(self) -> float:
        """The rate of the paper."""
        return published_rate(self.n_samples, self.n_features, self.epsilon, self.delta)

    def distance(self, ridge: float) -> float:
        """Bound the distance between the solution and the minimiser."""
        return math.sqrt(2.0 * self.gap / ridge)


def least_bound(
    problem: RobustProblem, regularization: float | None, bound: Callable[[float], RiskBound]
) -> RiskBound:
    """Return the bound for the factor that is given, or else for the best one found."""
    if regularization is None and problem.radius is None:
        raise ValueError("give regularization, or radius for the bound to choose it.")
    return best_bound(bound, regularization, unit=problem.data_norm / (problem.radius or 1.0))


def tilted_noise(problem: RobustProblem, tilt: float, sensitivity: float) -> float:
    """Bound the cost of the noise in a tilted risk."""
    slope = problem.loss.lipschitz * problem.data_norm
    curvature = problem.loss.smoothness * problem.data_norm**2 + tilt * slope**2
    smooth = product(curvature / 2.0, problem.linear.felt_square * sensitivity**2)
    felt = problem.linear.felt * sensitivity
    if felt == 0.0:
        return 0.0
    # A margin decreases and increases symmetrically; only one of the two increases a monotone loss.
    share = 0.5 if problem.loss.monotone else 1.0
    if tilt == 0.0:
        return min(share * slope * felt, smooth)
    log = _log_generating(problem, tilt * slope * sensitivity)
    rest = -math.expm1(-tilt * slope * felt)
    if problem.loss.monotone:
        grown = log + math.log1p(rest / 2.0 * math.exp(-log))
    else:
        grown = log + math.log1p(1.0 - (1.0 - rest) * math.exp(-log))
    budget = problem.n_features, problem.epsilon, problem.delta
    norm = noise_moments(*budget, linear_model=False).felt
    return min(grown / tilt, slope * norm * sensitivity, smooth)


def _log_generating(problem: RobustProblem, scale: float) -> float:
    """Return the logarithm of the moment generating function of one coordinate of the noise."""
    if problem.delta > 0 or math.isinf(problem.epsilon):
        return scale**2 * problem.linear.felt_square / 2.0
    ratio = scale / problem.epsilon
    if ratio >= 1.0:
        return math.inf
    return -(problem.n_features + 1) / 2.0 * math.log1p(-(ratio**2))


def tilted_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    tilt: float,
    loss: str | Loss = "logistic",
    data_norm: float = 1.0,
    regularization: float | None = None,
    radius: float | None = None,
    gap: float = 0.0,
) -> RiskBound:
    r"""Bound the expected excess tilted risk of output perturbation.

    With :math:`f(w) = \frac1t \ln \frac1n \sum_i e^{t\,\ell(y_i \langle w, x_i\rangle)}`, the
    release is a minimiser (to within `gap`) of
    :math:`F(w) = f(w) + \frac{\lambda}{2} \lVert w \rVert^2` plus noise for the sensitivity of a
    tilted minimiser. The bound is on a mean over the noise, for every data set: of
    ``F(release) - min F``, or with `radius` of ``f(release) - f(w)`` for every ``w`` of norm at
    most `radius`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta : float
        As for `strongly_convex_excess_risk`.
    tilt : float
        The tilt ``t``, at least 0; 0 is the mean.
    loss : str or Loss, default="logistic"
        Margin loss with a bounded slope, by name or as an object.
    data_norm : float, default=1.0
        Bound on the norm of a row, the constant column included.
    regularization : float or None, default=None
        The factor :math:`\lambda`. With `radius`, None takes the best one found by a search.
    radius : float or None, default=None
        Norm of the models that the release is compared with.
    gap : float, default=0.0
        Public bound on ``F(solution) - min F`` that the optimiser always meets.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release does not depend on it.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Lemmas 5.1 to 5.3, Theorems 5.1 and 5.2, with the sensitivity
    of ``docs/proofs/robust.md``. Theorem 5.2 lacks the square of the factor for the tilt and is
    false as printed; with a tilt `published` is the number for losses that need not be smooth.

    Examples
    --------
    >>> from dp_halfspace.theory import tilted_risk_bound
    >>> bounds = [tilted_risk_bound(10_000, 20, 1.0, 1e-6, tilt=tilt, regularization=0.1)
    ...           for tilt in (0.0, 1.0, 3.0)]
    >>> [float(f"{bound.value:.2g}") for bound in bounds]
    [3e-05, 0.0012, 1.4]
    """
    problem = RobustProblem(n_samples, n_features, epsilon, delta, loss, data_norm, radius, gap)
    require("at least 0 and finite", tilt=tilt)
    if math.isinf(problem.loss.lipschitz):
        raise ValueError(f"the loss {problem.loss.name!r} has no bounded slope.")

    def bound(ridge: float) -> RiskBound:
        total = _risk(problem, tilt).sensitivity(ridge) + 2.0 * problem.distance(ridge)
        noise, square = tilted_noise(problem, tilt, total), problem.linear.square
        return risk_bound(noise, square, ridge, total, radius, sampling=0.0, gap=gap)

    found = least_bound(problem, regularization, bound)
    if radius is None and gap == 0.0:
        number = _published_tilted(problem, tilt, found)
        return replace(found, published=number if number >= found.value else None)
    return found


def _risk(problem: RobustProblem, tilt: float, attack: Adversary | None = None) -> MarginRisk:
    """Return the risk of the sample, all weights one."""
    n, norm = problem.n_samples, problem.data_norm
    return MarginRisk(
        problem.loss, n, problem.n_features, 2, row_norm=norm, block_rows=n,
        tilt=tilt, adversary=attack, min_weight=1.0,
    )  # fmt: skip


def _published_tilted(problem: RobustProblem, tilt: float, found: RiskBound) -> float:
    """Return the least number of section 5.1 of the paper, for its sensitivity of a minimiser.

    The smooth bounds there hold without a tilt only: they have lost the square of its factor.
    """
    ridge = found.regularization
    spread = _risk(problem, tilt).spread(ridge)
    influence = math.exp(min(tilt * spread, math.log(problem.n_samples)))
    # The paper's loss includes the regulariser, whose slope at the minimisers is that of the loss.
    slope = 2.0 * problem.loss.lipschitz * problem.data_norm
    number = (2.0 if problem.delta == 0 else math.sqrt(2.0)) * problem.rate
    if tilt == 0.0:
        curvature = problem.loss.smoothness * problem.data_norm**2 + ridge
        number = min(number, product(4.0 * curvature / ridge, problem.rate**2))
    return slope**2 * influence / ridge * number


def adversarial_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    attack_radius: float,
    attack_norm: Literal[2, "inf"] = 2,
    n_attacked: int | None = None,
    tilt: float = 0.0,
    loss: str | Loss = "logistic",
    data_norm: float = 1.0,
    regularization: float | None = None,
    radius: float | None = None,
    population: bool = False,
    smoothing: float = 0.0,
    gap: float = 0.0,
) -> RiskBound:
    r"""Bound the expected excess adversarial risk of output perturbation.

    An adversary may change the features of a record by a vector of norm at most `attack_radius`.
    With :math:`g(w)` the mean over the records of the worst loss that it can cause, the release is
    a minimiser (to within `gap`) of :math:`G(w) = g(w) + \frac{\lambda}{2} \lVert w \rVert^2` plus
    noise. The bound is on a mean over the noise, for every data set: of ``G(release) - min G``, or
    with `radius` of ``g(release) - g(w)`` for every ``w`` of norm at most `radius`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta : float
        As for `strongly_convex_excess_risk`.
    attack_radius : float
        Positive, in the units of `data_norm`.
    attack_norm : {2, "inf"}, default=2
    n_attacked : int or None, default=None
        Number of columns that are attacked; None means all. A constant column is not.
    tilt : float, default=0.0
        With a tilt the mean over the records is replaced by that of `tilted_risk_bound`.
    loss : str or Loss, default="logistic"
        Margin loss that never increases.
    data_norm : float, default=1.0
    regularization : float or None, default=None
    radius : float or None, default=None
        As for `tilted_risk_bound`.
    population : bool, default=False
        Whether :math:`g` is the mean over a fresh record instead, the records being independent
        with one distribution, and the mean is taken over the sample, too. Not with a tilt.
    smoothing : float, default=0.0
        Of the dual norm in the objective that is minimised. The risk is that with the norm itself.
    gap : float, default=0.0
        As for `tilted_risk_bound`.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release does not depend on it. Near ``w = 0`` any noise reduces the
    margins by the radius times its norm, so that the bound grows with the dimension.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), section 5.2. Its Proposition 5.1 and Theorem 5.3 are for
    risks that are smooth after the attack, which no halfspace has; `published` is Corollary 2.1 and
    Proposition 4.1 for the attacked loss.

    Examples
    --------
    >>> from dp_halfspace.theory import adversarial_risk_bound
    >>> sizes = {"n_samples": 10_000, "n_features": 20, "epsilon": 1.0, "delta": 1e-6}
    >>> bounds = [adversarial_risk_bound(**sizes, attack_radius=radius, regularization=0.1)
    ...           for radius in (0.001, 0.01, 0.1)]
    >>> [float(f"{bound.value:.2g}") for bound in bounds]
    [4.9e-05, 0.00022, 0.0022]
    """
    problem = RobustProblem(n_samples, n_features, epsilon, delta, loss, data_norm, radius, gap)
    if not problem.loss.monotone:
        raise ValueError(f"the loss {problem.loss.name!r} increases somewhere.")
    require("positive and finite", attack_radius=attack_radius)
    attacked = n_features if n_attacked is None else n_attacked
    if not 1 <= attacked <= n_features:
        raise ValueError(f"n_attacked must be from 1 to n_features; got {n_attacked!r}.")
    require("at least 0 and finite", smoothing=smoothing)
    attack = Adversary(attack_radius, attack_norm, attacked, max(smoothing, SMALLEST_SMOOTHING))
    require("at least 0 and finite", tilt=tilt)
    if tilt and (population or math.isinf(problem.loss.lipschitz)):
        raise ValueError("a tilt needs a loss of bounded slope, and the risk on the sample.")

    def bound(ridge: float) -> RiskBound:
        risk, distance = _risk(problem, tilt, attack), problem.distance(ridge)
        sensitivity = risk.sensitivity(ridge)
        total = sensitivity + 2.0 * distance
        width = data_norm + attack.added_row_norm
        slope = problem.loss.slope_bound(width * (risk.radius(ridge) + distance))
        noise = _attacked_noise(problem, attack, tilt, total, slope)
        sampling = 0.0
        if population:
            steep = width * slope
            sampling = min(steep * sensitivity, leave_one_out(n_samples, steep, ridge, ridge))
            sampling += 2.0 * steep * distance
        slack = attack.slack if attack.smoothing > SMALLEST_SMOOTHING else 0.0
        costs = {"sampling": sampling, "gap": gap + slope * slack}
        return risk_bound(noise, problem.linear.square, ridge, total, radius, **costs)

    found = least_bound(problem, regularization, bound)
    if radius is None and gap == 0.0 and tilt == 0.0:
        # Corollary 2.1 or Proposition 4.1 of the paper for the attacked loss.
        slope = 2.0 * problem.loss.lipschitz * (data_norm + attack.added_row_norm)
        factor = 2.0 if delta == 0 or population else math.sqrt(2.0)
        rate = problem.rate + (1.0 / n_samples if population else 0.0)
        number = factor * slope**2 / found.regularization * rate
        return replace(found, published=number if number >= found.value else None)
    return found


def _attacked_noise(
    problem: RobustProblem, attack: Adversary, tilt: float, sensitivity: float, slope: float
) -> float:
    """Bound the cost of the noise in an adversarial risk; `slope` is that at the minimisers."""
    first, second = _dual_moments(problem.linear, attack)
    shift = attack.radius * first * sensitivity
    bound = tilted_noise(problem, tilt, sensitivity) + product(problem.loss.lipschitz, shift)
    if tilt == 0.0:
        square = problem.data_norm * math.sqrt(problem.linear.felt_square)
        square = (square + attack.radius * math.sqrt(second)) ** 2 * sensitivity**2
        bound = min(bound, slope * shift + product(problem.loss.smoothness / 2.0, square))
    return bound


def _dual_moments(linear: NoiseMoments, attack: Adversary) -> tuple[float, float]:
    """Return the first two moments of the dual norm of the attacked coordinates of the noise."""
    a = attack.n_features
    if attack.norm == 2:
        return math.sqrt(math.pi) * gamma_ratio(a) * linear.felt, a * linear.felt_square
    return a * linear.felt, a * (1.0 + (a - 1) * 2.0 / math.pi) * linear.felt_square
