"""How far a model with output perturbation can be from the best one, before any fit.

Functions of public quantities alone; they cost no privacy: use them to choose a budget or a
regularisation. Proofs: ``docs/proofs/excess_risk.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

from dp_halfspace._params import require
from dp_halfspace.privacy.profiles import gdp_mu


@dataclass(frozen=True, slots=True)
class NoiseMoments:
    """Moments of the noise ``b`` for sensitivity 1: ``E ||b||^2``, and those a record feels.

    A record feels ``||b||`` in general, and ``|<u, b>|`` for a unit vector ``u`` when the model is
    linear; ``felt`` and ``felt_square`` are the first two absolute moments of that.
    """

    square: float
    felt: float
    felt_square: float


def noise_moments(
    n_features: int, epsilon: float, delta: float, *, linear_model: bool
) -> NoiseMoments:
    """Moments of the Gaussian noise (``delta > 0``) or of the gamma noise (``delta = 0``)."""
    if math.isinf(epsilon):
        return NoiseMoments(0.0, 0.0, 0.0)
    d = n_features
    # Gamma((d+1)/2) / Gamma(d/2): E||g|| / sqrt(2) for a standard Gaussian g, and
    # 1 / (sqrt(pi) ratio) is the mean |coordinate| of a uniform unit vector.
    ratio = math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
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


def product(constant: float, moment: float) -> float:
    """Multiply, where no noise costs nothing even under an infinite constant."""
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
    """Bound what it costs to minimise over a sample, by leaving a record out (Lemma 5)."""
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
    # 2 / (sqrt(16 delta + 1) - 1), without the cancellation.
    c = math.sqrt(math.log((math.sqrt(16.0 * delta + 1.0) + 1.0) / (8.0 * delta)))
    return math.sqrt(n_features) * (c + math.hypot(c, math.sqrt(epsilon))) / (epsilon * n_samples)


def require_ridge(strong_convexity: float, regularization: float | None) -> float:
    """Return the factor of the regulariser, which is a part of the strong convexity."""
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
    """Validate what every bound takes."""
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
        0 for gamma noise (pure epsilon), otherwise in (0, 1/2) for Gaussian noise.
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
        The factor :math:`\lambda`. None means that it provides all of `strong_convexity`; 0 means
        that the losses do.
    linear_model : bool, default=False
        Whether ``f(w, x)`` depends on ``w`` through one inner product, as for a binary halfspace.
        The price of the noise then falls by a power of `n_features`.
    gap : float, default=0.0
        Public bound on ``F(solution) - min F`` that the optimiser always meets. A certificate
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
    Privacy: a function of public quantities, so calling it costs nothing. It describes the
    release, it is not what makes the release private.

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
    Privacy: a function of public quantities, so calling it costs nothing.

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
    Privacy: a function of public quantities, so calling it costs nothing. It
    describes the release, it is not what makes the release private.

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
    r"""Stochastic subgradients after which the noise costs more than what is left to minimise.

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
        The published number, :math:`2n\max(n,\varepsilon/d)` for ``delta=0``: the mean excess
        after T steps is at most :math:`2L^2/(\mu(T+1))`.

    Notes
    -----
    Privacy: a function of public quantities. ``optimizer="sgd"`` of `OutputPerturbationClassifier`
    takes 4,000 at most: its answer is improved to the certificate anyhow.

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
    r"""Stochastic gradients of Katyusha after which noise costs more than what is left.

    Parameters
    ----------
    n_samples, n_features, epsilon, delta
        As for `sgd_iterations`.
    lipschitz, strong_convexity, smoothness, radius : float
        Of the loss of one record, its regulariser included, and of the ball of the minimisers.

    Returns
    -------
    int
        :math:`(n+\sqrt{n\kappa})\ln(LR/\alpha)`, with the printed accuracy
        :math:`\alpha=\frac{L^2}{\mu n^2}\min(\kappa\,\nu^2,1)`, where :math:`\nu` is
        :math:`d/\varepsilon` for ``delta=0``. The corollary has a constant in front that it does
        not name; it is one here.

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
