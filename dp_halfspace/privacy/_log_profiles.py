"""Numerics under the privacy profiles: logarithms, argument checks, safe roots.

Every function of a loss is computed as a logarithm, because profiles are multiplied by
huge multiplicities and divided by tiny probabilities before they are compared with a
delta. Numbers that feed a guarantee are rounded to the safe side by `LOG_SLACK` and
`EPSILON_SLACK`, which exceed the floating-point error of the formulas by more than
tenfold (``docs/proofs/accounting.md``, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

FloatArray = NDArray[np.float64]

LOG_SLACK = 2.0**-36
"""Added to every natural logarithm of a delta that must be an upper bound."""

EPSILON_SLACK = 2.0**-45
"""Relative amount by which epsilon is lowered before such a delta is computed.

Rounding ``epsilon / mu - mu / 2`` and the square of it acts like a relative change of
epsilon by a few units in the last place; this covers it at every scale.
"""

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
# 1 - z M(z) = z^-2 - 3 z^-4 + 15 z^-6 - ..., alternating double factorials.
_TAIL_SERIES = (135135.0, -10395.0, 945.0, -105.0, 15.0, -3.0, 1.0)


def check_nonnegative(name: str, value: float) -> float:
    """Return `value` as a float >= 0 (infinity allowed) or raise naming `name`."""
    number = float(value)
    if not number >= 0.0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}")
    return number + 0.0


def check_delta(delta: float) -> float:
    """Return `delta` as a float in [0, 1) or raise."""
    number = float(delta)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}")
    return number + 0.0


def check_not_nan(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as a float array without NaN or raise naming `name`."""
    array = np.asarray(values, dtype=np.float64)
    if np.isnan(array).any():
        raise ValueError(f"{name} must not be NaN")
    return array


def _mills(z: FloatArray) -> FloatArray:
    """Mills ratio of the normal law, (1 - Phi(z)) / phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)))


def _mills_slope(z: FloatArray) -> FloatArray:
    """Minus the derivative of the Mills ratio, 1 - z M(z), for z > -1."""
    far = z > 30.0
    near = 1.0 - z * _mills(np.where(far, 0.0, z))
    w = np.where(far, z, np.inf) ** -2.0
    return np.where(far, w * np.polyval(_TAIL_SERIES, w), near)


def _mills_drop(x: FloatArray, mu: float) -> FloatArray:
    """M(x) - M(x + mu) for x > -mu / 2 without cancellation."""
    if mu < 0.5:
        # Six Gauss-Legendre nodes integrate 1 - z M(z) over [x, x + mu] to 1e-15.
        z = x + mu * 0.5 * (1.0 + _NODES.reshape(-1, *([1] * x.ndim)))
        return np.asarray(0.5 * mu * np.tensordot(_WEIGHTS, _mills_slope(z), axes=1))
    # Beyond 1e6 the difference cancels; mu / (x (x + mu)) bounds it to 1e-12 relative.
    far = x > 1e6
    remote = np.where(far, x, 1.0)
    return np.where(far, mu / (remote * (remote + mu)), _mills(x) - _mills(x + mu))


def _log_gdp_positive(mu: float, epsilon: FloatArray) -> FloatArray:
    """Logarithm of the Gaussian profile for epsilon >= 0 and mu > 0."""
    x = epsilon / mu - 0.5 * mu
    tail = (x >= 0.0) | (mu < 0.5)
    safe = np.where(tail, x, 1.0)
    upper = -0.5 * safe * safe - _LOG_SQRT_2PI + np.log(_mills_drop(safe, mu))
    if tail.all():
        return upper
    # x < 0 and mu >= 1/2: delta = Phi(-x) - phi(x) M(x + mu) has no cancellation, and
    # its complement keeps full precision when delta is close to 1.
    safe = np.where(tail, -1.0, x)
    density = np.exp(-0.5 * safe * safe - _LOG_SQRT_2PI)
    lower = np.log1p(-(ndtr(safe) + density * _mills(safe + mu)))
    return np.where(tail, upper, lower)


def zero_loss(epsilon: FloatArray) -> FloatArray:
    """Profile (1 - exp(epsilon))_+ of a constant output."""
    return np.asarray(-np.expm1(np.minimum(epsilon, 0.0)))


def log_gdp_delta(mu: float, epsilon: FloatArray) -> FloatArray:
    """Logarithm of the Gaussian privacy profile.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, finite and >= 0.
    epsilon : ndarray of any shape
        Any real numbers, infinities allowed.

    Returns
    -------
    ndarray
        Same shape; minus infinity where the profile is 0.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        zero = np.log(zero_loss(epsilon))
        if mu == 0.0:
            return zero
        size = np.abs(epsilon)
        finite = np.isfinite(size)
        log_delta = _log_gdp_positive(mu, np.where(finite, size, 0.0))
        log_delta = np.where(finite & np.isfinite(log_delta), log_delta, -np.inf)
        # delta(-e) = 1 - exp(-e) + exp(-e) delta(e): a sum of positive terms.
        return np.where(epsilon < 0.0, np.logaddexp(zero, log_delta - size), log_delta)


def log_gdp_excess(mu: float, epsilon: FloatArray) -> FloatArray:
    r"""Logarithm of :math:`E (V - \varepsilon)_+` for the loss V of a Gaussian mechanism.

    This kernel takes the place of the hockey stick for objectives that are sums over
    pairs of records (Jensen's inequality needs a convex function of the loss).

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, finite and >= 0; V ~ N(mu^2/2, mu^2).
    epsilon : ndarray of any shape
        Any real numbers.

    Returns
    -------
    ndarray
        Same shape; minus infinity where the value is 0.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if mu == 0.0:
            return np.log(np.maximum(-epsilon, 0.0))
        x = epsilon / mu - 0.5 * mu
        high = np.maximum(x, 0.0)
        log_density = -0.5 * high * high - _LOG_SQRT_2PI
        upper = log_density + np.log(_mills_slope(high))
        low = np.minimum(x, 0.0)
        lower = np.log(np.exp(-0.5 * low * low - _LOG_SQRT_2PI) - low * ndtr(-low))
        value = math.log(mu) + np.where(x >= 0.0, upper, lower)
        return np.where(np.isnan(value), -np.inf, value)


def log_gdp_upper(mu: float, epsilon: float) -> float:
    """Upper bound of the logarithm of the Gaussian profile at one epsilon."""
    lowered = np.asarray(epsilon - abs(epsilon) * EPSILON_SLACK)
    return min(0.0, float(log_gdp_delta(mu, lowered)) + LOG_SLACK)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of an increasing or decreasing function with values cut to [-1e4, 1e4]."""
    if low == high:
        return low
    value: float = brentq(
        lambda t: max(-1e4, min(1e4, function(t))), low, high, xtol=1e-300, rtol=1e-15, maxiter=2000
    )
    return value


def step_up(epsilon: float, holds: Callable[[float], bool]) -> float:
    """Raise a root in relative steps from 2^-40 on until `holds` is true of it."""
    step = 2.0**-40
    raised = epsilon * (1.0 + step)
    while not holds(raised):
        step *= 2.0
        raised = max(epsilon, 1e-300) * (1.0 + step)
    return raised
