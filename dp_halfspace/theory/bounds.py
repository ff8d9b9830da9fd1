"""Bounds on the excess risk of private models, computable before any fit.

For output perturbation on its sample and on fresh records (``docs/proofs/excess_risk.md``), and for
a private ranking or objective perturbation on fresh records: the bounds of Wang, Yang, Lei, Ying
and Zhang (2021) with explicit constants (``docs/proofs/theorems.md``, sections 8 and 9). All are
functions of public quantities and use no budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from dp_halfspace._params import checked_size, require
from dp_halfspace.privacy.profiles import gdp_mu


@dataclass(frozen=True, slots=True)
class NoiseMoments:
    """Moments of the noise ``b`` for sensitivity 1: ``E ||b||^2``, and those that affect a record.

    The loss of a record depends on ``||b||`` in general, and on ``|<u, b>|`` for a unit vector
    ``u`` if the model is linear; ``felt`` and ``felt_square`` are the first two absolute moments of
    that number.
    """

    square: float
    felt: float
    felt_square: float


def noise_moments(
    n_features: int, epsilon: float, delta: float, *, linear_model: bool
) -> NoiseMoments:
    """Return moments of the Gaussian noise (``delta > 0``) or of gamma noise (``delta = 0``)."""
    if math.isinf(epsilon):
        return NoiseMoments(0.0, 0.0, 0.0)
    d = n_features
    # 1 / (sqrt(pi) ratio) is the mean |coordinate| of a uniform unit vector.
    ratio = gamma_ratio(d)
    if delta == 0:
        norm, square = d / epsilon, d * (d + 1) / epsilon**2
        coordinate = norm / (math.sqrt(math.pi) * ratio)
    else:
        sigma = 1.0 / gdp_mu(epsilon, delta)
        norm, square = math.sqrt(2.0) * ratio * sigma, d * sigma**2
        coordinate = math.sqrt(2.0 / math.pi) * sigma
    if linear_model:
        return NoiseMoments(square, coordinate, square / d)
    return NoiseMoments(square, norm, square)


def gamma_ratio(d: int) -> float:
    """Return ``Gamma((d+1)/2) / Gamma(d/2)``: ``E||g|| / sqrt(2)`` for a standard Gaussian g."""
    return math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))


def product(constant: float, moment: float) -> float:
    """Multiply, with zero noise giving zero even for an infinite constant."""
    return constant * moment if moment > 0 else 0.0


def cost_of_noise(
    noise: NoiseMoments, sensitivity: float, lipschitz: float, smoothness: float
) -> float:
    """Bound ``E f(w + b) - f(w)``: the smaller of the Lipschitz and the smooth bound."""
    return min(
        product(lipschitz, noise.felt * sensitivity),
        product(smoothness / 2.0, noise.felt_square * sensitivity**2),
    )


def leave_one_out(
    n_samples: int, lipschitz: float, strong_convexity: float, regularization: float
) -> float:
    """Bound the generalisation gap of a minimiser, by leaving a record out (Lemma 5)."""
    unit = lipschitz**2 / (strong_convexity * n_samples)
    if regularization == 0.0:
        return unit
    # The largest value of (1 + a) sqrt(1 - a^2) is that for a = 1/2.
    share = regularization / (strong_convexity * n_samples)
    return unit * (0.75 * math.sqrt(3.0) + share / 2.0)


def published_rate(n_samples: int, n_features: int, epsilon: float, delta: float) -> float:
    """Return ``d / (epsilon n)`` of Lowy and Razaviyayn (2021), or its Gaussian counterpart."""
    if math.isinf(epsilon):
        return 0.0
    if delta == 0:
        return n_features / (epsilon * n_samples)
    # This is 2 / (sqrt(16 delta + 1) - 1) without cancellation.
    c = math.sqrt(math.log((math.sqrt(16.0 * delta + 1.0) + 1.0) / (8.0 * delta)))
    return math.sqrt(n_features) * (c + math.hypot(c, math.sqrt(epsilon))) / (epsilon * n_samples)


def require_ridge(strong_convexity: float, regularization: float | None) -> float:
    """Return the regularisation factor, which is a part of the strong convexity."""
    require("positive and finite", strong_convexity=strong_convexity)
    ridge = strong_convexity if regularization is None else regularization
    require("at least 0 and finite", regularization=ridge)
    if ridge > strong_convexity:
        raise ValueError("regularization cannot exceed strong_convexity, of which it is a part.")
    return ridge


def check_problem(
    n_samples: int, n_features: int, epsilon: float, delta: float,
    *, smoothness: float = math.inf, gap: float = 0.0,
) -> None:  # fmt: skip
    """Validate the arguments of every bound."""
    require("positive and finite", n_samples=n_samples, n_features=n_features)
    require("positive", epsilon=epsilon, smoothness=smoothness)
    require("at least 0 and finite", gap=gap)
    require("in [0, 1/2)", delta=delta)


def strongly_convex_excess_risk(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float,
    strong_convexity: float,
    smoothness: float = math.inf,
    regularization: float | None = None,
    linear_model: bool = False,
    gap: float = 0.0,
    sensitivity: float | None = None,
) -> float:
    r"""Bound the expected excess risk of output perturbation, strongly convex objective.

    The objective is
    :math:`F(w) = \frac1n \sum_i f(w, x_i) + \frac{\lambda}{2} \lVert w \rVert^2`,
    the release is a minimiser (to within `gap`) plus noise, and the bound is on
    the mean of ``F(release) - min F`` over the noise, for every data set.

    Parameters
    ----------
    n_samples, n_features : int
        Number of records, and of coefficients, the constant column included.
    epsilon : float
        Privacy budget, positive; ``inf`` means no noise.
    delta : float
        0 for gamma noise (pure DP), otherwise in (0, 1/2) for Gaussian noise.
    lipschitz : float
        Lipschitz constant of ``f(., x)``. For a margin loss with slope at most ``L`` on rows of
        norm at most ``r`` it is ``L * r``. May be ``inf`` when `sensitivity` and `smoothness` are
        given.
    strong_convexity : float
        Strong convexity of the whole objective.
    smoothness : float, default=inf
        Lipschitz constant of the gradient of ``f(., x)``; ``inf`` for a non-smooth loss,
        ``r**2 / 4`` for the logistic loss.
    regularization : float or None, default=None
        The factor :math:`\lambda`. None means that the regulariser provides all of
        `strong_convexity`; 0 means that the losses do.
    linear_model : bool, default=False
        Whether ``f(w, x)`` depends on ``w`` through one inner product, as for a binary halfspace.
        The cost of the noise is then smaller by a power of `n_features`.
    gap : float, default=0.0
        Public bound on ``F(solution) - min F`` that the optimiser always satisfies. A certificate
        ``||gradient|| <= strong_convexity * tau`` gives ``gap = strong_convexity * tau**2 / 2``.
    sensitivity : float or None, default=None
        Bound on the distance between the minimisers of neighbouring data sets; None takes
        ``2 * lipschitz / (strong_convexity * n_samples)``.

    Returns
    -------
    float
        The bound, in units of the loss.

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release does not depend on it.

    References
    ----------
    .. [1] A. Lowy, M. Razaviyayn, "Output Perturbation for Differentially Private
       Convex Optimization: Faster and More General", 2021. Corollaries 2.1 and 2.2,
       Theorems 3.1 and 3.2.

    Examples
    --------
    >>> from dp_halfspace.theory import strongly_convex_excess_risk
    >>> round(strongly_convex_excess_risk(
    ...     10_000, 20, 1.0, 0.0, lipschitz=1.0, strong_convexity=0.1,
    ...     smoothness=0.25, linear_model=True), 6)
    9.4e-05
    """
    check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness, gap=gap)
    require("positive" if sensitivity is not None else "positive and finite", lipschitz=lipschitz)
    ridge = require_ridge(strong_convexity, regularization)
    if sensitivity is None:
        sensitivity = 2.0 * lipschitz / (strong_convexity * n_samples)
    require("at least 0 and finite", sensitivity=sensitivity)
    noise = noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    total = sensitivity + 2.0 * math.sqrt(2.0 * gap / strong_convexity)
    cost = cost_of_noise(noise, total, lipschitz, smoothness)
    return cost + ridge / 2.0 * noise.square * total**2 + gap


def optimal_regularization(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float,
    radius: float,
    smoothness: float = math.inf,
    linear_model: bool = False,
) -> float:
    """Regularisation that minimises `convex_excess_risk` for an exact optimiser.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta : float
    lipschitz : float
        Lipschitz constant of the loss of one record.
    radius : float
        Public guess of the norm of a good model.
    smoothness : float, default=inf
        Lipschitz constant of the gradient of the loss of one record.
    linear_model : bool, default=False
        Whether the loss depends on the model through one inner product.

    Returns
    -------
    float
        The regularisation factor; 0 for ``epsilon=inf``.

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget.

    References
    ----------
    Lowy and Razaviyayn (2021), Propositions 2.7 and 2.8.

    Examples
    --------
    >>> from dp_halfspace.theory import optimal_regularization
    >>> round(optimal_regularization(
    ...     10_000, 20, 1.0, 0.0, lipschitz=1.0, radius=1.0, smoothness=0.25,
    ...     linear_model=True), 5)
    0.00749
    """
    check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness)
    require("positive and finite", lipschitz=lipschitz, radius=radius)
    noise = noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    # Minimisers and minima of 2 L^2 m / (n t) + t R^2 / 2 and of
    # 2 beta L^2 m / (n t)^2 + t R^2 / 2 over t; the bound is their pointwise minimum.
    rough = 2.0 * lipschitz / radius * math.sqrt(noise.felt / n_samples)
    if math.isinf(smoothness):
        return rough
    root = smoothness * lipschitz**2 * noise.felt_square / n_samples**2
    smooth = 2.0 * (root / radius**2) ** (1.0 / 3.0)
    return rough if rough <= 0.75 * smooth else smooth


def convex_excess_risk(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float,
    radius: float,
    smoothness: float = math.inf,
    regularization: float | None = None,
    linear_model: bool = False,
    gap: float = 0.0,
) -> float:
    r"""Bound the expected excess risk of regularised output perturbation, convex loss.

    With :math:`f(w) = \frac1n \sum_i f(w, x_i)`, the release is a minimiser (to
    within `gap`) of :math:`f(w) + \frac{\lambda}{2} \lVert w \rVert^2` plus noise,
    and the bound is on the mean of ``f(release) - f(w)`` over the noise, for every
    data set and every ``w`` of norm at most `radius`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta, lipschitz : float
        As for `strongly_convex_excess_risk`; `lipschitz` is finite.
    radius : float
        Norm of the models that the release is compared with.
    smoothness : float, default=inf
        As there.
    regularization : float or None, default=None
        The factor :math:`\lambda`; None takes `optimal_regularization`.
    linear_model : bool, default=False
        As there.
    gap : float, default=0.0
        Public bound, always met, on how far the optimiser stays above the minimum
        of the regularised objective. Its effect on the noise is included.

    Returns
    -------
    float
        The bound, in units of the loss.

    See Also
    --------
    strongly_convex_excess_risk : The bound for the regularised objective itself.

    Notes
    -----
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release does not depend on it.

    References
    ----------
    Lowy and Razaviyayn (2021), Propositions 2.7 and 2.8, Theorems C.1 and C.2.

    Examples
    --------
    >>> from dp_halfspace.theory import convex_excess_risk
    >>> round(convex_excess_risk(10_000, 20, 1.0, 0.0, lipschitz=1.0, radius=1.0), 3)
    0.089
    """
    check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness, gap=gap)
    require("positive and finite", lipschitz=lipschitz, radius=radius)
    if regularization is None:
        regularization = optimal_regularization(
            n_samples, n_features, epsilon, delta,
            lipschitz=lipschitz, radius=radius, smoothness=smoothness, linear_model=linear_model,
        )  # fmt: skip
        if regularization == 0:
            return gap  # no noise: the limit of the bound as the factor goes to 0
    require("positive and finite", regularization=regularization)
    noise = noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    total = 2.0 * lipschitz / (regularization * n_samples)
    total += 2.0 * math.sqrt(2.0 * gap / regularization)
    cost = cost_of_noise(noise, total, lipschitz, smoothness)
    return cost + regularization * radius**2 / 2.0 + gap


def sgd_iterations(n_samples: int, n_features: int, epsilon: float, delta: float) -> int:
    r"""Return the number of stochastic subgradients after which the noise dominates the error.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon : float
        Positive and finite.
    delta : float
        0, or in (0, 1/2).

    Returns
    -------
    int
        The number that follows from the published accuracy, :math:`2n\max(n,\varepsilon/d)` for
        ``delta=0``: the mean excess after T steps is at most :math:`2L^2/(\mu(T+1))`. For
        ``delta > 0`` the paper prints a smaller number, which does not reach that accuracy.

    Notes
    -----
    Privacy: a function of public quantities. ``optimizer="sgd"`` of `OutputPerturbationClassifier`
    takes at most 4,000: its result is improved to the certificate in any case.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Corollary 3.1. ``docs/proofs/theorems.md``, section 10.

    Examples
    --------
    >>> from dp_halfspace.theory import sgd_iterations
    >>> sgd_iterations(1000, 20, 1.0, 0.0)
    2000000
    """
    noise = _printed_noise(n_samples, n_features, epsilon, delta)
    return math.ceil(2.0 * n_samples * max(n_samples, 1.0 / noise))


def katyusha_iterations(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    lipschitz: float,
    strong_convexity: float,
    smoothness: float,
    radius: float,
) -> int:
    r"""Return the number of gradients of Katyusha after which the noise dominates the error.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta
        As for `sgd_iterations`.
    lipschitz, strong_convexity, smoothness, radius : float
        Constants of the loss of one record, including its regulariser, and radius of a ball that
        contains the minimisers.

    Returns
    -------
    int
        :math:`(n+\sqrt{n\kappa})\ln(LR/\alpha)`, with the printed accuracy
        :math:`\alpha=\frac{L^2}{\mu n^2}\min(\kappa\,\nu^2,1)`, where :math:`\nu` is
        :math:`d/\varepsilon` for ``delta=0``. The corollary has an unspecified constant factor; it
        is one here.

    Notes
    -----
    Privacy: a function of public quantities.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Corollary 3.2. ``docs/proofs/theorems.md``, section 10.

    Examples
    --------
    >>> from dp_halfspace.theory import katyusha_iterations
    >>> katyusha_iterations(1000, 20, 1.0, 0.0, lipschitz=1.0, strong_convexity=0.01,
    ...                     smoothness=0.26, radius=10.0)
    13370
    """
    noise = _printed_noise(n_samples, n_features, epsilon, delta)
    require("positive and finite", lipschitz=lipschitz, radius=radius)
    require("positive and finite", strong_convexity=strong_convexity, smoothness=smoothness)
    kappa = max(smoothness / strong_convexity, 1.0)
    gap = lipschitz**2 / (strong_convexity * n_samples**2) * min(kappa * noise**2, 1.0)
    rounds = max(math.log(lipschitz * radius / gap), 1.0)
    return math.ceil((n_samples + math.sqrt(n_samples * kappa)) * rounds)


def _printed_noise(n_samples: int, n_features: int, epsilon: float, delta: float) -> float:
    """Return the printed size of the noise for a sensitivity of one."""
    check_problem(n_samples, n_features, epsilon, delta)
    require("positive and finite", epsilon=epsilon)
    return published_rate(n_samples, n_features, epsilon, delta) * n_samples


@dataclass(frozen=True, slots=True)
class RiskBound:
    """A bound on an expected excess risk, and its parts.

    Attributes
    ----------
    value : float
        The bound, in units of the loss: the sum of `noise`, `sampling`, `bias` and `gap`.
    noise : float
        Cost of the noise.
    sampling : float
        Cost of minimising over a sample instead of its distribution; 0 if the risk is that of the
        sample itself.
    bias : float
        Cost of the regulariser, if the risk is measured without it.
    gap : float
        Cost of an optimiser that stops above the minimum, apart from its effect on the other parts.
    regularization : float
        Factor of the regulariser, per mean loss.
    sensitivity : float
        Distance of the minimisers of neighbouring data sets that the noise is calibrated for,
        including the inexactness of the optimiser.
    published : float or None
        The bound of the theorem in the paper for an exact minimiser; None if one of its conditions
        fails, or if it is smaller than what can be proved.
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
    """Add the regulariser to the other parts, as a cost of the noise or, with a radius, a bias.

    `square` is the mean square of the noise for sensitivity 1.
    """
    bias = 0.0
    if radius is None:
        noise += ridge / 2.0 * square * sensitivity**2
    else:
        bias = ridge * radius**2 / 2.0
    value = noise + sampling + bias + gap
    return RiskBound(value, noise, sampling, bias, gap, ridge, sensitivity, None)


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

    The records are independent with one distribution, :math:`f(w)` is the mean of ``f(w, x)`` over
    a fresh one, and the release is a minimiser (to within `gap`) of
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
    Privacy: a function of public quantities, so calling it uses no budget. It describes the
    release; the privacy of the release does not depend on it. With ``epsilon=inf`` it is the bound
    for learning without privacy.

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
    rate = published_rate(n_samples, n_features, epsilon, delta)

    def evaluate(
        strong_convexity: float, ridge: float, gap: float, sensitivity: float | None = None
    ) -> RiskBound:
        if sensitivity is None:
            sensitivity = 2.0 * lipschitz / (strong_convexity * n_samples)
        distance = math.sqrt(2.0 * gap / strong_convexity)
        total = sensitivity + 2.0 * distance
        cost = cost_of_noise(noise, total, lipschitz, smoothness)
        # Replacing a record; leaving one out; the distance to the minimiser of the distribution.
        left = leave_one_out(n_samples, lipschitz, strong_convexity, ridge)
        ways = [(lipschitz * total, gap)]
        if ridge == 0.0:
            ways.append((left + lipschitz * distance, 0.0))
        else:
            ways.append((left + 2.0 * lipschitz * distance, ridge / 2.0 * distance**2))
        if math.isfinite(smoothness):
            farthest = lipschitz / (strong_convexity * math.sqrt(n_samples)) + distance
            ways.append(((smoothness + ridge) / 2.0 * farthest**2, 0.0))
        sampling, rest = min(ways, key=sum)
        return risk_bound(cost, noise.square, ridge, total, radius, sampling=sampling, gap=rest)

    if radius is None:
        assert strong_convexity is not None
        ridge = require_ridge(strong_convexity, regularization)
        found = evaluate(strong_convexity, ridge, gap, sensitivity)
        # The paper's loss includes the regulariser; its slope at the minimisers is at most that of
        # the loss without it.
        slope = lipschitz * (1.0 if ridge == 0.0 else 2.0)
        kappa = (smoothness + ridge) / strong_convexity
        least = min(rate, 2.0 * kappa * rate**2 if rate else 0.0)
        number = slope**2 / strong_convexity * 2.0 * (1.0 / n_samples + least)
        exact = evaluate(strong_convexity, ridge, 0.0, sensitivity)
        printed = [(number, exact)] if rate <= 1.0 else []
    else:
        require("positive and finite", radius=radius)
        if regularization is None:
            if sensitivity is not None:
                raise ValueError("sensitivity depends on the regularization: give that, too.")
            regularization = best_bound(lambda t: evaluate(t, t, 0.0), None).regularization
        require("positive and finite", regularization=regularization)
        found = evaluate(regularization, regularization, gap, sensitivity)
        numbers = _printed_convex(n_samples, rate, lipschitz, radius, smoothness, pure=delta == 0)
        printed = [(number, evaluate(ridge, ridge, 0.0)) for ridge, number in numbers]
    proved = (number for number, exact in printed if number >= exact.value)
    return replace(found, published=min(proved, default=None))


def _printed_convex(
    n: int, rate: float, L: float, radius: float, beta: float, *, pure: bool
) -> list[tuple[float, float]]:
    """Return factors and numbers of Propositions D.1 and D.2 whose conditions hold."""
    numbers, root = [], 1.0 / math.sqrt(n)
    if rate <= 1.0:
        number = L * radius * ((127.0 if pure else 19.0) * math.sqrt(rate) + root / 2.0)
        numbers.append((L / radius * (math.sqrt(rate) + root), number))
    if math.isfinite(beta) and rate**2 * radius * beta <= L:
        scale = float(np.cbrt(beta * L**2 * radius**4))
        power = float(np.cbrt(rate**2))
        number = scale * (11.0 * root + (83.0 if pure else 43.0) * power)
        numbers.append((scale / radius**2 * (power + root), number))
    return numbers


def best_bound(
    bound: Callable[[float], RiskBound],
    regularization: float | None,
    *,
    least: float = 0.0,
    unit: float = 1.0,
) -> RiskBound:
    """Return the bound for a factor, or for the best one that a search finds.

    It is at least `least`, and searched around a `unit`.
    """
    if regularization is not None:
        require("positive and finite", regularization=regularization)
        if regularization < least:
            raise ValueError(f"regularization must be at least {least:g} for half of epsilon.")
        return bound(regularization)

    def at(log: float) -> RiskBound:
        return bound(max(unit * math.exp(log), least))

    def value(log: float) -> float:
        return at(log).value

    # Next to the best power of e from -40 to 40.
    start = float(min(range(-40, 41), key=value))
    ends = start - 1.0, start + 1.0
    found = minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return at(min(start, float(found.x), key=value))


def ranking_risk_bound(
    n_positive: int,
    n_negative: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    radius: float,
    diameter: float = 2.0,
    lipschitz: float = 1.0,
    smoothness: float = math.inf,
    regularization: float | None = None,
    mechanism: str = "output",
    noise_square: float | None = None,
) -> RiskBound:
    r"""Bound the expected excess risk of a private ranking on fresh pairs.

    The risk :math:`R(w)` is the mean of a loss of :math:`\langle w,x-x'\rangle` over a fresh
    record of the positive and one of the negative class. The release is the minimiser of the mean
    over all pairs of a sample plus :math:`\frac\lambda2\lVert w\rVert^2`, with noise, or of that
    and a random linear term. The bound is on the mean, over sample and noise, of
    ``R(release) - R(w)`` for every ``w`` of norm at most `radius`.

    Parameters
    ----------
    n_positive, n_negative : int
        Records of each class, independent with one distribution in each.
    n_features : int
    epsilon : float
        Positive; ``inf`` means no noise.
    delta : float
        0 for gamma noise, otherwise in (0, 1/2).
    radius : float
        Norm of the rankings that the release is compared with.
    diameter : float, default=2.0
        Largest distance of two rows.
    lipschitz : float, default=1.0
        Lipschitz constant of the loss. ``inf`` is for a smooth loss that is at least 0 and is 1 at
        0, such as the squared one, with ``mechanism="output"``.
    smoothness : float, default=inf
        Lipschitz constant of its slope. Finite for ``mechanism="objective"``.
    regularization : float or None, default=None
        The factor :math:`\lambda`, extra ridge of ``"objective"`` included. None takes the one for
        which the bound is least.
    mechanism : {"output", "objective"}, default="output"
        Noise on the minimiser, of the sensitivity that the paper prints, or on the objective.
    noise_square : float or None, default=None
        Mean square of the norm of the noise on coefficients, or of the linear term. None takes that
        of Algorithm 1 with exact calibration, or the printed one of Algorithm 2 with half of
        epsilon for the linear term. Pass the actual value of a fit to bound it.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities. Class sizes are private in this package, so pass
    guesses. Sampling costs :math:`\frac{2(LD)^2}\lambda(\frac1{n_+}+\frac1{n_-})`: after the best
    :math:`\lambda` it decays with :math:`\sqrt{\rho(1-\rho)n}`, where the paper has
    :math:`\rho(1-\rho)\sqrt n`. The paper states orders of magnitude, with high probability over
    the sample.

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang (2021), Theorems 3 (``"output"``), 4
    (``lipschitz=inf``) and 5 (``"objective"``), with constants and in the mean:
    ``docs/proofs/theorems.md``, section 8.

    Examples
    --------
    >>> from dp_halfspace.theory import ranking_risk_bound
    >>> sizes = (20_000, 80_000, 20, 1.0, 1e-6)
    >>> logistic = {"radius": 2.0, "smoothness": 0.25}
    >>> round(ranking_risk_bound(*sizes, **logistic).value, 3)
    0.065
    >>> round(ranking_risk_bound(*sizes, mechanism="objective", **logistic).value, 3)
    0.068
    """
    positive = checked_size("n_positive", n_positive)
    negative = checked_size("n_negative", n_negative)
    n = positive + negative
    check_problem(n, n_features, epsilon, delta, smoothness=smoothness)
    is_smooth = math.isfinite(smoothness)
    require("positive" if is_smooth else "positive and finite", lipschitz=lipschitz)
    require("positive and finite", radius=radius, diameter=diameter)
    steepness = smoothness * diameter**2
    rarity = 1.0 / positive + 1.0 / negative
    if noise_square is not None:
        require("at least 0 and finite", noise_square=noise_square)

    def slope(ridge: float) -> float:
        if math.isfinite(lipschitz):
            return lipschitz * diameter
        # A smooth loss above 0 that is 1 at 0 has this slope there; minimisers are in a ball.
        ends = math.sqrt(2.0 * smoothness) + smoothness * diameter * math.sqrt(2.0 / ridge)
        return ends * diameter

    def sampling(ridge: float) -> float:
        return 2.0 * slope(ridge) ** 2 / ridge * rarity

    if mechanism == "objective":
        require("positive and finite", lipschitz=lipschitz)
        # The contribution of a pair to a sum is divided by the number of pairs.
        unit = n / positive / negative
        linear = noise_square
        if linear is None:
            linear = _linear_square(n_features, epsilon / 2.0, delta) * (slope(1.0) * unit) ** 2
        least = _least_ridge(steepness * unit / n, epsilon / n)
        return _objective_bound(linear, least, sampling, radius, regularization)
    if mechanism != "output":
        raise ValueError(f"mechanism must be 'output' or 'objective'; got {mechanism!r}.")
    moments = noise_moments(n_features, epsilon, delta, linear_model=True)

    def bound(ridge: float) -> RiskBound:
        sensitivity = 2.0 * slope(ridge) / ridge * rarity
        if noise_square is not None:
            sensitivity = math.sqrt(noise_square / moments.square) if noise_square else 0.0
        lip = slope(ridge) if math.isfinite(lipschitz) else math.inf
        noise = cost_of_noise(moments, sensitivity, lip, steepness)
        return risk_bound(
            noise, moments.square, ridge, sensitivity, radius, sampling=sampling(ridge), gap=0.0
        )

    return best_bound(bound, regularization)


def objective_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    radius: float,
    smoothness: float,
    lipschitz: float = 1.0,
    data_norm: float = 1.0,
    regularization: float | None = None,
    noise_square: float | None = None,
) -> RiskBound:
    r"""Bound the expected excess risk of objective perturbation on fresh records.

    The release minimises :math:`\frac1n\sum_i\ell(y_i\langle w,x_i\rangle)
    +\frac\lambda2\lVert w\rVert^2+\frac1n\langle b,w\rangle` for random b; the bound is on the
    mean, over sample and noise, of ``f(release) - f(w)`` for every ``w`` of norm at most `radius`,
    with f the mean loss of a fresh record.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta, radius
        As for `ranking_risk_bound`.
    smoothness : float
        Lipschitz constant of the slope of the loss, finite.
    lipschitz : float, default=1.0
        Lipschitz constant of the loss.
    data_norm : float, default=1.0
        Bound on the norms of the rows.
    regularization : float or None, default=None
        The factor :math:`\lambda`, extra ridge included. None takes the one for which the bound is
        least among those that half of epsilon allows.
    noise_square : float or None, default=None
        Mean square of the norm of b. None takes the printed noise with half of epsilon. Pass the
        actual value of a fit to bound it.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities. The bound is :math:`\frac{E\lVert b\rVert^2}{2\lambda
    n^2}+\frac{2(LR)^2}{\lambda n} +\frac\lambda2\lVert w\rVert^2`. The paper states orders of
    magnitude.

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang (2021), Theorem 7, with constants and in the
    mean: ``docs/proofs/theorems.md``, section 9.

    Examples
    --------
    >>> from dp_halfspace.theory import objective_risk_bound
    >>> round(objective_risk_bound(100_000, 20, 1.0, 1e-6, radius=2.0, smoothness=0.25).value, 3)
    0.013
    """
    n = checked_size("n_samples", n_samples)
    check_problem(n, n_features, epsilon, delta, smoothness=smoothness)
    require("positive and finite", smoothness=smoothness, lipschitz=lipschitz)
    require("positive and finite", radius=radius, data_norm=data_norm)
    slope = lipschitz * data_norm
    if noise_square is None:
        noise_square = _linear_square(n_features, epsilon / 2.0, delta) * slope**2
    require("at least 0 and finite", noise_square=noise_square)
    least = _least_ridge(smoothness * data_norm**2 / n, epsilon)
    return _objective_bound(
        noise_square / n**2, least, lambda t: 2.0 * slope**2 / (t * n), radius, regularization
    )


def _linear_square(d: int, epsilon: float, delta: float) -> float:
    """Return the mean square of the printed linear term of a sum, for records of slope one.

    Replacing a record changes the gradient of the sum by at most 2.
    """
    if math.isinf(epsilon):
        return 0.0
    if delta == 0.0:
        return d * (d + 1) * (2.0 / epsilon) ** 2
    root = 2.0 * math.sqrt(2.0 * math.log(1.0 / delta)) + math.sqrt(2.0 * epsilon)
    return d * (root / epsilon) ** 2


def _least_ridge(steepness: float, epsilon: float) -> float:
    """Return the ridge for which half of epsilon covers the curvature of a record."""
    if math.isinf(epsilon) or epsilon / 2.0 > 700.0:
        return 0.0
    return steepness / math.expm1(epsilon / 2.0)


def _objective_bound(
    linear_square: float,
    least: float,
    sampling: Callable[[float], float],
    radius: float,
    regularization: float | None,
) -> RiskBound:
    """Bound the excess with a linear term of this mean square."""

    def bound(ridge: float) -> RiskBound:
        noise, part = linear_square / (2.0 * ridge), sampling(ridge)
        return risk_bound(noise, 0.0, ridge, 0.0, radius, sampling=part, gap=0.0)

    return best_bound(bound, regularization, least=least)
