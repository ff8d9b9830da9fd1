"""Moments of the noise of output perturbation, and what it can cost a risk.

Shared by the bounds of this package. Proofs: ``docs/proofs/excess_risk.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

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


def require(name: str, value: float, *, zero: bool = False, infinite: bool = False) -> None:
    """Refuse NaN, the wrong sign, and infinity where it means nothing."""
    good = (value >= 0 if zero else value > 0) and (infinite or math.isfinite(value))
    if not good:
        sign = "at least 0" if zero else "positive"
        raise ValueError(
            f"{name} must be {sign}{'' if infinite else ' and finite'}; got {value!r}."
        )


def require_ridge(strong_convexity: float, regularization: float | None) -> float:
    """Return the factor of the regulariser, which is a part of the strong convexity."""
    require("strong_convexity", strong_convexity)
    ridge = strong_convexity if regularization is None else regularization
    require("regularization", ridge, zero=True)
    if ridge > strong_convexity:
        raise ValueError("regularization cannot exceed strong_convexity, of which it is a part.")
    return ridge


def check_problem(
    n_samples: int, n_features: int, epsilon: float, delta: float,
    *, smoothness: float = math.inf, gap: float = 0.0,
) -> None:  # fmt: skip
    """Validate what every bound takes."""
    require("n_samples", n_samples)
    require("n_features", n_features)
    require("epsilon", epsilon, infinite=True)
    require("smoothness", smoothness, infinite=True)
    require("gap", gap, zero=True)
    if not 0 <= delta < 0.5:
        raise ValueError(f"delta must be in [0, 1/2); got {delta!r}.")
