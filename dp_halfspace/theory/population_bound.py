"""How far a model with output perturbation is from the best one on fresh records.

Functions of public quantities alone; they cost no privacy. Proofs:
``docs/proofs/excess_risk.md``, sections 7 to 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product as pairs

import numpy as np
from scipy.optimize import brentq

from dp_halfspace._params import require
from dp_halfspace.theory.bounds import (
    NoiseMoments,
    check_problem,
    cost_of_noise,
    leave_one_out,
    noise_moments,
    published_rate,
    require_ridge,
)


@dataclass(frozen=True, slots=True)
class RiskBound:
    """A bound on an expected excess risk, and what it is made of.

    Attributes
    ----------
    value : float
        The bound, in units of the loss: the sum of `noise`, `sampling`, `bias` and `gap`.
    noise : float
        What the noise costs.
    sampling : float
        What it costs to minimise over a sample instead of its law; 0 where the risk is that of
        the sample itself.
    bias : float
        What the regulariser costs where the risk is counted without it.
    gap : float
        What an optimiser costs that stops above the minimum, apart from its effect on the others.
    regularization : float
        Factor of the regulariser, per mean loss.
    sensitivity : float
        Distance of the minimisers of neighbouring data sets that the noise is made for, the
        inexactness of the optimiser included.
    published : float or None
        What the theorem of the paper says for an exact minimiser; None where a condition of it
        fails, or where it is below what can be proved.
    """

    value: float
    noise: float
    sampling: float
    bias: float
    gap: float
    regularization: float
    sensitivity: float
    published: float | None


def risk_bound(
    noise: float, square: float, ridge: float, sensitivity: float, radius: float | None,
    *, sampling: float, gap: float,
) -> RiskBound:  # fmt: skip
    """Add the regulariser to the other parts: a cost of the noise or, with a radius, a bias.

    `square` is the mean square of the noise for sensitivity 1.
    """
    bias = 0.0
    if radius is None:
        noise += ridge / 2.0 * square * sensitivity**2
    else:
        bias = ridge * radius**2 / 2.0
    value = noise + sampling + bias + gap
    return RiskBound(value, noise, sampling, bias, gap, ridge, sensitivity, None)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Size, noise for sensitivity 1, constants of the loss of one record, and what is bounded."""

    n_samples: int
    noise: NoiseMoments
    lipschitz: float
    smoothness: float
    sensitivity: float | None
    radius: float | None


def population_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float,
    strong_convexity: float | None = None,
    radius: float | None = None,
    smoothness: float = math.inf,
    regularization: float | None = None,
    linear_model: bool = False,
    gap: float = 0.0,
    sensitivity: float | None = None,
) -> RiskBound:
    r"""Bound the expected excess risk of output perturbation on fresh records.

    The records are independent with one law, :math:`f(w)` is the mean of ``f(w, x)`` over a fresh
    one, and the release is a minimiser (to within `gap`) of
    :math:`\frac1n \sum_i f(w, x_i) + \frac{\lambda}{2} \lVert w \rVert^2` plus noise. The bound is
    on a mean over the sample and the noise: with `strong_convexity`, of ``F(release) - min F`` for
    :math:`F(w) = f(w) + \frac{\lambda}{2} \lVert w \rVert^2`; with `radius`, of
    ``f(release) - f(w)`` for every ``w`` of norm at most `radius`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta, lipschitz : float
        As for `strongly_convex_excess_risk`; `lipschitz` is finite.
    strong_convexity : float or None, default=None
        Strong convexity of the whole objective. Give this or `radius`.
    radius : float or None, default=None
        Norm of the models that the release is compared with.
    smoothness : float, default=inf
        As there.
    regularization : float or None, default=None
        The factor :math:`\lambda`. None means all of `strong_convexity`, or with `radius` the
        factor for which the bound for an exact optimiser is least. With `strong_convexity` 0
        means that the losses are strongly convex themselves.
    linear_model : bool, default=False
        As there.
    gap : float, default=0.0
        Public bound on ``objective(solution) - min`` that the optimiser always meets.
    sensitivity : float or None, default=None
        Bound on the distance between the minimisers of neighbouring data sets; None takes
        ``2 * lipschitz / (strong_convexity * n_samples)``. With `radius` it needs `regularization`.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It describes the
    release, it is not what makes the release private. With ``epsilon=inf`` it is the bound for
    learning without privacy.

    References
    ----------
    Lowy and Razaviyayn (2021), Propositions 4.1, 4.2, D.1 and D.2, with smaller constants and one
    missing term added.

    Examples
    --------
    >>> from dp_halfspace.theory import population_risk_bound
    >>> logistic = {"lipschitz": 1.0, "smoothness": 0.25, "linear_model": True}
    >>> bound = population_risk_bound(10_000, 20, 1.0, 1e-6, strong_convexity=0.1, **logistic)
    >>> round(bound.value, 5), round(bound.noise, 6), round(bound.sampling, 5)
    (0.00138, 8e-05, 0.0013)
    """
    check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness, gap=gap)
    require("positive and finite", lipschitz=lipschitz)
    if (strong_convexity is None) == (radius is None):
        raise ValueError("give either strong_convexity or radius, and not both.")
    if sensitivity is not None:
        require("at least 0 and finite", sensitivity=sensitivity)
    noise = noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    problem = _Problem(n_samples, noise, lipschitz, smoothness, sensitivity, radius)
    rate = published_rate(n_samples, n_features, epsilon, delta)
    if radius is None:
        assert strong_convexity is not None
        ridge = require_ridge(strong_convexity, regularization)
        return _strongly_convex(problem, rate, strong_convexity, ridge, gap)
    require("positive and finite", radius=radius)
    if regularization is None:
        if sensitivity is not None:
            raise ValueError("sensitivity depends on the regularization: give that, too.")
        regularization = _best_ridge(problem, radius)
    require("positive and finite", regularization=regularization)
    found = _evaluate(problem, regularization, regularization, gap)
    return replace(found, published=_published_convex(problem, rate, radius, pure=delta == 0))


def _strongly_convex(
    problem: _Problem, rate: float, strong_convexity: float, ridge: float, gap: float
) -> RiskBound:
    """Bound the excess of the regularised risk."""
    found = _evaluate(problem, strong_convexity, ridge, gap)
    if rate > 1.0:
        return found
    # The paper's loss includes the regulariser; its slope at the minimisers is at most that of f.
    slope = problem.lipschitz * (1.0 if ridge == 0.0 else 2.0)
    kappa = (problem.smoothness + ridge) / strong_convexity
    rough = 2.0 / problem.n_samples + 2.0 * rate
    fine = 2.0 / problem.n_samples + (4.0 * kappa * rate**2 if rate else 0.0)
    exact = _evaluate(problem, strong_convexity, ridge, 0.0).value
    number = slope**2 / strong_convexity * min(rough, fine)
    return replace(found, published=number if number >= exact else None)


def _published_convex(problem: _Problem, rate: float, radius: float, *, pure: bool) -> float | None:
    """Return the least number of Propositions D.1 and D.2 that can be proved."""
    n, L, beta = problem.n_samples, problem.lipschitz, problem.smoothness
    problem = replace(problem, sensitivity=None)  # that was for another factor
    numbers = []
    root = 1.0 / math.sqrt(n)
    if rate <= 1.0:
        number = L * radius * ((127.0 if pure else 19.0) * math.sqrt(rate) + root / 2.0)
        numbers.append((L / radius * (math.sqrt(rate) + root), number))
    if math.isfinite(beta) and rate**2 * radius * beta <= L:
        scale = float(np.cbrt(beta * L**2 * radius**4))
        power = float(np.cbrt(rate**2))
        number = scale * (11.0 * root + (83.0 if pure else 43.0) * power)
        numbers.append((scale / radius**2 * (power + root), number))
    proved = [
        number for ridge, number in numbers if number >= _evaluate(problem, ridge, ridge, 0.0).value
    ]
    return min(proved, default=None)


def _evaluate(problem: _Problem, strong_convexity: float, ridge: float, gap: float) -> RiskBound:
    """Add up the parts of a bound."""
    n, L, radius = problem.n_samples, problem.lipschitz, problem.radius
    sensitivity = problem.sensitivity
    if sensitivity is None:
        sensitivity = 2.0 * L / (strong_convexity * n)
    distance = math.sqrt(2.0 * gap / strong_convexity)
    total = sensitivity + 2.0 * distance
    noise = cost_of_noise(problem.noise, total, L, problem.smoothness)
    # Replacing a record; leaving one out; the distance to the minimiser of the law.
    left = leave_one_out(n, L, strong_convexity, ridge)
    if ridge == 0.0:
        ways = [(L * total, gap), (left + L * distance, 0.0)]
    else:
        ways = [(L * total, gap), (left + 2.0 * L * distance, ridge / 2.0 * distance**2)]
    if math.isfinite(problem.smoothness):
        reach = L / (strong_convexity * math.sqrt(n)) + distance
        ways.append(((problem.smoothness + ridge) / 2.0 * reach**2, 0.0))
    sampling, rest = min(ways, key=sum)
    return risk_bound(
        noise, problem.noise.square, ridge, total, radius, sampling=sampling, gap=rest
    )


def _best_ridge(problem: _Problem, radius: float) -> float:
    """Return the factor for which the bound with an exact optimiser is least.

    Each way to bound noise and sampling makes it ``a / t + b / t^2 + t R^2 / 2``, which is convex.
    """
    n, L, beta, noise = problem.n_samples, problem.lipschitz, problem.smoothness, problem.noise
    noises = [(2.0 * L**2 * noise.felt / n, 0.0)]
    samplings = [(leave_one_out(n, L, 1.0, 1.0), 0.0)]
    if math.isfinite(beta):
        noises.append((0.0, 2.0 * beta * L**2 * noise.felt_square / n**2))
        samplings.append((L**2 / (2.0 * n), beta * L**2 / (2.0 * n)))
    ridges = [
        _stationary(one[0] + two[0], one[1] + two[1], radius)
        for one, two in pairs(noises, samplings)
    ]
    return min(ridges, key=lambda t: _evaluate(problem, t, t, 0.0).value)


def _stationary(a: float, b: float, radius: float) -> float:
    """Return where ``a / t + b / t^2 + t R^2 / 2`` is least, for a positive `a`."""
    low = math.sqrt(2.0 * a) / radius  # the root for b = 0
    high = low + float(np.cbrt(4.0 * b / radius**2))
    if high == low:
        return low
    # Divided by low^3: a cubic in t / low whose values at the ends are -c and positive.
    c = 4.0 * b / (radius**2 * low**3)
    found = brentq(lambda u: u * (u * u - 1.0) - c, 1.0, high / low * (1.0 + 1e-12), rtol=1e-12)
    return low * float(found)
