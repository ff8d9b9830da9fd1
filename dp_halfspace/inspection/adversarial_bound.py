"""How far an adversarially robust model with output perturbation is from the best one.

A function of public quantities alone, so it costs no privacy. Proof:
``docs/proofs/excess_risk.md``, section 11.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from scipy.special import gammaln

from dp_halfspace.inspection._noise_cost import NoiseMoments, leave_one_out, product, require
from dp_halfspace.inspection._robust_problem import RobustProblem, chosen_factor, tilted_noise
from dp_halfspace.inspection.population_bound import RiskBound
from dp_halfspace.optim.objectives.adversary import Adversary
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.optim.risks.margin import MarginRisk

# The norm itself has no gradient at 0; this smoothing changes no digit.
_SMALLEST = 1e-100


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
        with one law, and the mean is taken over the sample, too. Not with a tilt.
    smoothing : float, default=0.0
        Of the dual norm in the objective that is minimised. The risk is that with the norm itself.
    gap : float, default=0.0
        As for `tilted_risk_bound`.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It describes the
    release, it is not what makes the release private. Near ``w = 0`` every noise lowers the
    margins by the radius times its whole norm, so that the bound grows with the dimension.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), section 5.2. Its Proposition 5.1 and Theorem 5.3 are for
    risks that are smooth after the attack, which no halfspace has; `published` is Corollary 2.1 and
    Proposition 4.1 for the attacked loss.

    Examples
    --------
    >>> from dp_halfspace.inspection import adversarial_risk_bound
    >>> sizes = {"n_samples": 10_000, "n_features": 20, "epsilon": 1.0, "delta": 1e-6}
    >>> bounds = [adversarial_risk_bound(**sizes, attack_radius=radius, regularization=0.1)
    ...           for radius in (0.001, 0.01, 0.1)]
    >>> [float(f"{bound.value:.2g}") for bound in bounds]
    [4.9e-05, 0.00022, 0.0022]
    """
    problem = RobustProblem(n_samples, n_features, epsilon, delta, loss, data_norm, radius, gap)
    if not problem.loss.monotone:
        raise ValueError(f"the loss {problem.loss.name!r} increases somewhere.")
    require("attack_radius", attack_radius)
    attacked = n_features if n_attacked is None else n_attacked
    if not 1 <= attacked <= n_features:
        raise ValueError(f"n_attacked must be from 1 to n_features; got {n_attacked!r}.")
    require("smoothing", smoothing, zero=True)
    attack = Adversary(attack_radius, attack_norm, attacked, max(smoothing, _SMALLEST))
    require("tilt", tilt, zero=True)
    if tilt and (population or math.isinf(problem.loss.lipschitz)):
        raise ValueError("a tilt needs a loss of bounded slope, and the risk on the sample.")

    def bound(ridge: float) -> RiskBound:
        return _evaluate(problem, attack, ridge, tilt=tilt, population=population)

    found = bound(chosen_factor(problem, regularization, bound))
    if radius is None and gap == 0.0 and tilt == 0.0:
        number = _published_attacked(problem, attack, found, population=population)
        return replace(found, published=number if number >= found.value else None)
    return found


def _evaluate(
    problem: RobustProblem, attack: Adversary, ridge: float, *, tilt: float, population: bool
) -> RiskBound:
    """Add up the parts of a bound."""
    loss, n = problem.loss, problem.n_samples
    risk = MarginRisk(
        loss, n, problem.n_features, 2, row_norm=problem.data_norm, block_rows=n,
        tilt=tilt, adversary=attack, min_weight=1.0,
    )  # fmt: skip
    distance, sensitivity = problem.distance(ridge), risk.sensitivity(ridge)
    total = sensitivity + 2.0 * distance
    width = problem.data_norm + attack.reach
    slope = loss.slope_bound(width * (risk.radius(ridge) + distance))
    noise = _attacked_noise(problem, attack, tilt, total, slope)
    sampling = 0.0
    if population:
        steep = width * slope
        sampling = min(steep * sensitivity, leave_one_out(n, steep, ridge, ridge))
        sampling += 2.0 * steep * distance
    slack = attack.slack if attack.smoothing > _SMALLEST else 0.0
    gap = problem.gap + slope * slack
    return problem.total(noise, ridge, total, sampling=sampling, gap=gap)


def _attacked_noise(
    problem: RobustProblem, attack: Adversary, tilt: float, sensitivity: float, slope: float
) -> float:
    """Bound what the noise adds to an adversarial risk; `slope` is that at the minimisers."""
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
        ratio = math.exp(gammaln((a + 1) / 2) - gammaln(a / 2))
        return math.sqrt(math.pi) * ratio * linear.felt, a * linear.felt_square
    return a * linear.felt, a * (1.0 + (a - 1) * 2.0 / math.pi) * linear.felt_square


def _published_attacked(
    problem: RobustProblem, attack: Adversary, found: RiskBound, *, population: bool
) -> float:
    """Return Corollary 2.1 or Proposition 4.1 of the paper for the attacked loss."""
    slope = 2.0 * problem.loss.lipschitz * (problem.data_norm + attack.reach)
    factor = 2.0 if problem.delta == 0 or population else math.sqrt(2.0)
    rate = problem.rate + (1.0 / problem.n_samples if population else 0.0)
    return factor * slope**2 / found.regularization * rate
