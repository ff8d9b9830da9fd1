"""How far a model with output perturbation can be from the best one, before any fit.

Every function here takes public quantities alone (sizes, budget, constants of the
loss) and so costs no privacy: use them to choose a budget or a regularisation.
Proofs: ``docs/proofs/excess_risk.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

from dp_halfspace.privacy.profiles import gdp_mu

__all__ = ["convex_excess_risk", "optimal_regularization", "strongly_convex_excess_risk"]


@dataclass(frozen=True, slots=True)
class _NoiseMoments:
    """Moments of the noise ``b`` for sensitivity 1.

    ``square`` is ``E ||b||^2``. ``felt`` and ``felt_square`` are the first two
    absolute moments of what one record feels: ``||b||`` in general, and
    ``|<u, b>|`` for a unit vector ``u`` when the model is linear.
    """

    square: float
    felt: float
    felt_square: float


def _noise_moments(
    n_features: int, epsilon: float, delta: float, *, linear_model: bool
) -> _NoiseMoments:
    """Moments of the Gaussian noise (``delta > 0``) or of the gamma noise (``delta = 0``)."""
    if math.isinf(epsilon):
        return _NoiseMoments(0.0, 0.0, 0.0)
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
        return _NoiseMoments(square, coordinate, square / d)
    return _NoiseMoments(square, norm, square)


def _product(constant: float, moment: float) -> float:
    """Multiply, where no noise costs nothing even under an infinite constant."""
    return constant * moment if moment > 0 else 0.0


def _cost_of_noise(
    noise: _NoiseMoments, sensitivity: float, lipschitz: float, smoothness: float
) -> float:
    """Bound ``E f(w + b) - f(w)``: the smaller of the Lipschitz and the smooth bound."""
    return min(
        _product(lipschitz, noise.felt * sensitivity),
        _product(smoothness / 2.0, noise.felt_square * sensitivity**2),
    )


def _require(name: str, value: float, *, zero: bool = False, infinite: bool = False) -> None:
    """Refuse NaN, the wrong sign, and infinity where it means nothing."""
    good = (value >= 0 if zero else value > 0) and (infinite or math.isfinite(value))
    if not good:
        sign = "at least 0" if zero else "positive"
        raise ValueError(
            f"{name} must be {sign}{'' if infinite else ' and finite'}; got {value!r}."
        )


def _check_problem(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    smoothness: float,
    gap: float = 0.0,
) -> None:
    """Validate what every bound takes."""
    _require("n_samples", n_samples)
    _require("n_features", n_features)
    _require("epsilon", epsilon, infinite=True)
    _require("smoothness", smoothness, infinite=True)
    _require("gap", gap, zero=True)
    if not 0 <= delta < 0.5:
        raise ValueError(f"delta must be in [0, 1/2); got {delta!r}.")


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
    n_samples : int
        Number of records.
    n_features : int
        Number of coefficients, the constant column included.
    epsilon : float
        Privacy budget, positive; ``inf`` means no noise.
    delta : float
        0 for gamma noise (pure epsilon), otherwise in (0, 1/2) for Gaussian noise.
    lipschitz : float
        Lipschitz constant of ``f(., x)``. For a margin loss with slope at most
        ``L`` on rows of norm at most ``r`` it is ``L * r``. May be ``inf`` when
        `sensitivity` and `smoothness` are given.
    strong_convexity : float
        Strong convexity of the whole objective.
    smoothness : float, default=inf
        Lipschitz constant of the gradient of ``f(., x)``; ``inf`` for a
        non-smooth loss. ``r**2 / 4`` for the logistic loss.
    regularization : float or None, default=None
        The factor :math:`\lambda` of the explicit regulariser. None means that it
        provides all of `strong_convexity`; 0 means that the losses do.
    linear_model : bool, default=False
        Whether ``f(w, x)`` depends on ``w`` through one inner product, as for a
        binary halfspace. The price of the noise then falls by a power of
        `n_features`.
    gap : float, default=0.0
        Public bound on ``F(solution) - min F`` that the optimiser always meets. A
        certificate ``||gradient|| <= strong_convexity * tau`` gives
        ``gap = strong_convexity * tau**2 / 2``. Its effect on the noise is included.
    sensitivity : float or None, default=None
        Bound on the distance between the minimisers of neighbouring data sets;
        None takes ``2 * lipschitz / (strong_convexity * n_samples)``.

    Returns
    -------
    float
        The bound, in units of the loss.

    Raises
    ------
    ValueError
        If a quantity is out of its range.

    See Also
    --------
    convex_excess_risk : The bound for the risk without the regulariser.

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It
    describes the release, it is not what makes the release private.

    References
    ----------
    .. [1] A. Lowy, M. Razaviyayn, "Output Perturbation for Differentially Private
       Convex Optimization: Faster and More General", 2021. Corollaries 2.1 and 2.2,
       Theorems 3.1 and 3.2.

    Examples
    --------
    >>> from dp_halfspace.inspection import strongly_convex_excess_risk
    >>> round(strongly_convex_excess_risk(
    ...     10_000, 20, 1.0, 0.0, lipschitz=1.0, strong_convexity=0.1,
    ...     smoothness=0.25, linear_model=True), 6)
    9.4e-05
    """
    _check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness, gap=gap)
    _require("lipschitz", lipschitz, infinite=sensitivity is not None)
    _require("strong_convexity", strong_convexity)
    explicit = strong_convexity if regularization is None else regularization
    _require("regularization", explicit, zero=True)
    if explicit > strong_convexity:
        raise ValueError("regularization cannot exceed strong_convexity, of which it is a part.")
    if sensitivity is None:
        sensitivity = 2.0 * lipschitz / (strong_convexity * n_samples)
    _require("sensitivity", sensitivity, zero=True)

    noise = _noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    total = sensitivity + 2.0 * math.sqrt(2.0 * gap / strong_convexity)
    return (
        _cost_of_noise(noise, total, lipschitz, smoothness)
        + explicit / 2.0 * noise.square * total**2
        + gap
    )


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
    n_samples : int
        Number of records.
    n_features : int
        Number of coefficients, the constant column included.
    epsilon : float
        Privacy budget, positive; ``inf`` means no noise.
    delta : float
        0 for gamma noise (pure epsilon), otherwise in (0, 1/2) for Gaussian noise.
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

    Raises
    ------
    ValueError
        If a quantity is out of its range.

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing.

    References
    ----------
    .. [1] A. Lowy, M. Razaviyayn, "Output Perturbation for Differentially Private
       Convex Optimization: Faster and More General", 2021. Propositions 2.7 and 2.8.

    Examples
    --------
    >>> from dp_halfspace.inspection import optimal_regularization
    >>> round(optimal_regularization(
    ...     10_000, 20, 1.0, 0.0, lipschitz=1.0, radius=1.0, smoothness=0.25,
    ...     linear_model=True), 5)
    0.00749
    """
    _check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness)
    _require("lipschitz", lipschitz)
    _require("radius", radius)
    noise = _noise_moments(n_features, epsilon, delta, linear_model=linear_model)
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
    n_samples : int
        Number of records.
    n_features : int
        Number of coefficients, the constant column included.
    epsilon : float
        Privacy budget, positive; ``inf`` means no noise.
    delta : float
        0 for gamma noise (pure epsilon), otherwise in (0, 1/2) for Gaussian noise.
    lipschitz : float
        Lipschitz constant of ``f(., x)``. For a margin loss with slope at most
        ``L`` on rows of norm at most ``r`` it is ``L * r``.
    radius : float
        Norm of the models that the release is compared with.
    smoothness : float, default=inf
        Lipschitz constant of the gradient of ``f(., x)``; ``inf`` for a
        non-smooth loss. ``r**2 / 4`` for the logistic loss.
    regularization : float or None, default=None
        The factor :math:`\lambda`; None takes `optimal_regularization`.
    linear_model : bool, default=False
        Whether ``f(w, x)`` depends on ``w`` through one inner product, as for a
        binary halfspace. The price of the noise then falls by a power of
        `n_features`.
    gap : float, default=0.0
        Public bound, always met, on how far the optimiser stays above the minimum
        of the regularised objective. Its effect on the noise is included.

    Returns
    -------
    float
        The bound, in units of the loss.

    Raises
    ------
    ValueError
        If a quantity is out of its range.

    See Also
    --------
    strongly_convex_excess_risk : The bound for the regularised objective itself.

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It
    describes the release, it is not what makes the release private.

    References
    ----------
    .. [1] A. Lowy, M. Razaviyayn, "Output Perturbation for Differentially Private
       Convex Optimization: Faster and More General", 2021. Propositions 2.7 and 2.8,
       Theorems C.1 and C.2.

    Examples
    --------
    >>> from dp_halfspace.inspection import convex_excess_risk
    >>> round(convex_excess_risk(10_000, 20, 1.0, 0.0, lipschitz=1.0, radius=1.0), 3)
    0.089
    >>> round(convex_excess_risk(
    ...     10_000, 20, 1.0, 0.0, lipschitz=1.0, radius=1.0, smoothness=0.25,
    ...     linear_model=True), 4)
    0.0056
    """
    _check_problem(n_samples, n_features, epsilon, delta, smoothness=smoothness, gap=gap)
    _require("lipschitz", lipschitz)
    _require("radius", radius)
    if regularization is None:
        regularization = optimal_regularization(
            n_samples,
            n_features,
            epsilon,
            delta,
            lipschitz=lipschitz,
            radius=radius,
            smoothness=smoothness,
            linear_model=linear_model,
        )
        if regularization == 0:
            return gap  # no noise: the limit of the bound as the factor goes to 0
    _require("regularization", regularization)
    noise = _noise_moments(n_features, epsilon, delta, linear_model=linear_model)
    total = 2.0 * lipschitz / (regularization * n_samples)
    total += 2.0 * math.sqrt(2.0 * gap / regularization)
    return (
        _cost_of_noise(noise, total, lipschitz, smoothness) + regularization * radius**2 / 2.0 + gap
    )
