"""How far a private ranking, or a perturbed objective, is from the best one on fresh records.

The bounds of Wang, Yang, Lei, Ying and Zhang (2021) with explicit constants. Functions of public
quantities alone; they cost no privacy. Proofs: ``docs/proofs/theorems.md``, sections 8 and 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dp_halfspace._params import checked_size, require
from dp_halfspace.theory.bounds import (
    RiskBound,
    check_problem,
    cost_of_noise,
    noise_moments,
    risk_bound,
)

# Where the best regulariser is looked for, in powers of e round the scale of the losses.
_LOG_RANGE, _GRID = 40.0, 801


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
        Records of each class, independent with one law in each.
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
        epsilon for the linear term. Pass what a fit really draws to bound it.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities. Class sizes are private in this library: pass
    guesses. Sampling costs :math:`\frac{2(LD)^2}\lambda(\frac1{n_+}+\frac1{n_-})`: after the best
    :math:`\lambda` it decays with :math:`\sqrt{\rho(1-\rho)n}`, for which the paper has
    :math:`\rho(1-\rho)\sqrt n`. The paper has orders of magnitude, with high probability over the
    sample.

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
        # What a pair adds to a sum is divided by the number of pairs.
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

    return _best(bound, regularization, 0.0)


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
        Mean square of the norm of b. None takes the printed noise with half of epsilon. Pass what a
        fit really draws to bound it.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities. The bound is
    :math:`\frac{E\lVert b\rVert^2}{2\lambda n^2}+\frac{2(LR)^2}{\lambda n}
    +\frac\lambda2\lVert w\rVert^2`. The paper has orders of magnitude.

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
    """Mean square of the printed linear term of a sum, for records of slope one."""
    if math.isinf(epsilon):
        return 0.0
    if delta == 0.0:
        return d * (d + 1) * (4.0 / epsilon) ** 2
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
        noise, bias = linear_square / (2.0 * ridge), ridge * radius**2 / 2.0
        part = sampling(ridge)
        return RiskBound(noise + part + bias, noise, part, bias, 0.0, ridge, 0.0, None)

    return _best(bound, regularization, least)


def _best(
    bound: Callable[[float], RiskBound], regularization: float | None, least: float
) -> RiskBound:
    """Return the bound for a factor, or for the best one that is large enough."""
    if regularization is not None:
        require("positive and finite", regularization=regularization)
        if regularization < least:
            raise ValueError(f"regularization must be at least {least:g} for half of epsilon.")
        return bound(regularization)
    grid = np.maximum(np.exp(np.linspace(-_LOG_RANGE, _LOG_RANGE, _GRID)), least)
    return min((bound(float(ridge)) for ridge in grid), key=lambda found: found.value)
