r"""The privacy profile of the Gaussian mechanism and its safe inverses.

The privacy profile of a mechanism is the smallest :math:`\delta` for every
:math:`\varepsilon`: the hockey-stick divergence between its output distributions on two
neighbouring data sets. Derivations: ``docs/proofs/accounting.md``, sections 1-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from dp_halfspace._rounding import TINY

FloatArray = NDArray[np.float64]

Term: TypeAlias = tuple[float, float, float]
"""Weight, shift and mu of a Gaussian loss N(shift + mu^2 / 2, mu^2)."""

LOG_SLACK = 2.0**-36
"""Added to every natural logarithm of a delta that must be an upper bound."""

EPSILON_SLACK = 2.0**-45
"""Relative amount by which epsilon is lowered before such a delta is computed.

It covers the rounding of ``epsilon / mu - mu / 2`` and its square at every scale.
"""

# Smaller positive parameters and losses are raised to this number, which dominates, so that neither
# squares nor the steps of a lattice underflow.
LEAST_PARAMETER = math.sqrt(TINY)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
# 1 - z M(z) = z^-2 - 3 z^-4 + 15 z^-6 - ..., alternating double factorials.
_TAIL_SERIES = (135135.0, -10395.0, 945.0, -105.0, 15.0, -3.0, 1.0)


def check_nonnegative(name: str, value: float) -> float:
    """Return `value` as a float >= 0 (infinity allowed) or raise naming `name`."""
    number = _number_or_nan(value)
    if not number >= 0.0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}")
    return number + 0.0


def check_delta(delta: float) -> float:
    """Return `delta` as a float in [0, 1) or raise."""
    number = _number_or_nan(delta)
    if not 0.0 <= number < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}")
    return number + 0.0


def _number_or_nan(value: Any) -> float:
    """Return a float, or NaN for a boolean and for what is no number."""
    with suppress(TypeError, ValueError, OverflowError):
        return math.nan if isinstance(value, bool | np.bool_) else float(value)
    return math.nan


def _log_density(z: FloatArray) -> FloatArray:
    """Return the logarithm of the density of the normal distribution."""
    return np.asarray(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi))


def _mills(z: FloatArray) -> FloatArray:
    """Return the Mills ratio M(z) of the normal distribution, (1 - Phi(z)) / phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)))


def _mills_slope(z: FloatArray) -> FloatArray:
    """Return minus the derivative of the Mills ratio, 1 - z M(z), for z > -1."""
    far = z > 30.0
    near = 1.0 - z * _mills(np.where(far, 0.0, z))
    if not far.any():
        return np.asarray(near)
    w = np.where(far, z, np.inf) ** -2.0
    return np.where(far, w * np.polyval(_TAIL_SERIES, w), near)


def _mills_drop(x: FloatArray, mu: float) -> FloatArray:
    """Return M(x) - M(x + mu) for x > -mu / 2 without cancellation."""
    if mu < 0.5:
        # Six Gauss-Legendre nodes integrate 1 - z M(z) over [x, x + mu] to 1e-15.
        z = x + mu * 0.5 * (1.0 + _NODES.reshape(-1, *([1] * x.ndim)))
        return np.asarray(0.5 * mu * np.tensordot(_WEIGHTS, _mills_slope(z), axes=1))
    # Beyond 1e6 the difference cancels; mu / (x (x + mu)) bounds it to 1e-12 relative.
    far = x > 1e6
    remote = np.where(far, x, 1.0)
    drop = _mills(x) - _mills(x + mu)
    return np.where(far, mu / (remote * (remote + mu)), drop)


def log_gdp_delta(mu: float, epsilon: FloatArray) -> FloatArray:
    """Return the logarithm of the Gaussian privacy profile at real numbers and infinities."""
    with np.errstate(all="ignore"):
        if mu == 0.0:
            return _log_of_constant(epsilon)
        size = np.abs(epsilon)
        finite = np.isfinite(size)
        x = np.where(finite, size, 0.0) / mu - 0.5 * mu
        tail = (x >= 0.0) | (mu < 0.5)
        safe = np.where(tail, x, 1.0)
        log_delta = _log_density(safe) + np.log(_mills_drop(safe, mu))
        if not tail.all():
            # x < 0 and mu >= 1/2: delta = Phi(-x) - phi(x) M(x + mu) has no cancellation, and
            # its complement keeps full precision when delta is close to 1.
            safe = np.where(tail, -1.0, x)
            density = np.exp(_log_density(safe))
            lower = np.log1p(-(ndtr(safe) + density * _mills(safe + mu)))
            log_delta = np.where(tail, log_delta, lower)
        log_delta = np.where(finite & np.isfinite(log_delta), log_delta, -np.inf)
        negative = epsilon < 0.0
        if not negative.any():
            return np.asarray(log_delta)
        # delta(-e) = 1 - exp(-e) + exp(-e) delta(e): a sum of positive terms.
        both = np.logaddexp(_log_of_constant(epsilon), log_delta - size)
        return np.where(negative, both, log_delta)


def _log_of_constant(epsilon: FloatArray) -> FloatArray:
    """Return the logarithm of the profile of a constant output, (1 - exp(epsilon))_+."""
    return np.asarray(np.log(-np.expm1(np.minimum(epsilon, 0.0))))


def log_gdp_excess(mu: float, epsilon: FloatArray) -> FloatArray:
    r"""Return the logarithm of :math:`E (V - \varepsilon)_+`, V the loss of a Gaussian mechanism.

    This function replaces the profile for objectives that are sums over pairs of records, because
    Jensen's inequality needs a convex function of the loss.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if mu == 0.0:
            return np.log(np.maximum(-epsilon, 0.0))
        x = epsilon / mu - 0.5 * mu
        high = np.maximum(x, 0.0)
        upper = _log_density(high) + np.log(_mills_slope(high))
        low = np.minimum(x, 0.0)
        lower = np.log(np.exp(_log_density(low)) - low * ndtr(-low))
        value = math.log(mu) + np.where(x >= 0.0, upper, lower)
        return np.where(np.isnan(value), -np.inf, value)


def log_gdp_upper(mu: float, epsilon: float) -> float:
    """Return an upper bound of the logarithm of the Gaussian profile at one epsilon."""
    lowered = np.asarray(epsilon - abs(epsilon) * EPSILON_SLACK)
    return min(0.0, float(log_gdp_delta(mu, lowered)) + LOG_SLACK)


def root(
    function: Callable[[float], float],
    low: float,
    high: float,
    level: float = 0.0,
    *,
    rtol: float = 1e-15,
) -> float:
    """Solve ``function(t) = level`` for a monotone function; differences are clipped to 1e4."""

    def difference(t: float) -> float:
        return max(-1e4, min(1e4, function(t) - level))

    return float(brentq(difference, low, high, xtol=1e-300, rtol=rtol, maxiter=2000))


def step_up(epsilon: float, function: Callable[[float], float], level: float = 0.0) -> float:
    """Raise a root, by relative steps from 2^-40 on, until the function is at most `level`."""
    step = 2.0**-40
    raised = epsilon * (1.0 + step)
    while not function(raised) <= level:
        step *= 2.0
        raised = max(epsilon, TINY) * (1.0 + step)
    return raised


def gdp_delta(mu: float, epsilon: ArrayLike) -> Any:
    r"""Exact privacy profile of the Gaussian mechanism.

    .. math:: \delta_\mu(\varepsilon) = \Phi(-\varepsilon/\mu + \mu/2)
              - e^{\varepsilon} \Phi(-\varepsilon/\mu - \mu/2).

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation of the noise, >= 0; infinity means no noise.
    epsilon : float or array-like of any shape
        Any real numbers, infinities allowed.

    Returns
    -------
    float or ndarray of the shape of `epsilon`
        The smallest delta for which the mechanism is (epsilon, delta)-private, with a
        relative error below 1e-11. Compare `gdp_mu`, which is rounded to the safe side.

    Notes
    -----
    A mechanism is mu-GDP exactly when its profile is at most this one [1]_, [2]_.

    References
    ----------
    .. [1] J. Dong, A. Roth, W. Su. Gaussian differential privacy. JRSS-B 2022, Cor. 2.13.
    .. [2] B. Balle, Y.-X. Wang. Improving the Gaussian mechanism for differential
       privacy. ICML 2018, Theorem 8.

    Examples
    --------
    >>> from dp_halfspace.privacy.profiles import gdp_delta
    >>> f"{gdp_delta(0.2, 1.0):.6e}"
    '1.754633e-08'
    """
    mu = check_nonnegative("mu", mu)
    values = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("epsilon must not be NaN")
    bare = math.isinf(mu)
    deltas = np.where(values == np.inf, 0.0, 1.0) if bare else np.exp(log_gdp_delta(mu, values))
    return deltas if deltas.ndim else float(deltas)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon of a mu-GDP mechanism at `delta`, rounded up.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation of the noise, >= 0.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        Epsilon >= 0 with ``gdp_delta(mu, epsilon) <= delta``, re-checked with a margin;
        infinity if `delta` is 0 and `mu` is not.

    Notes
    -----
    Privacy: a function of public numbers, so calling it uses no budget.

    References
    ----------
    ``docs/proofs/accounting.md``, sections 1 and 8.

    Examples
    --------
    >>> from dp_halfspace.privacy.profiles import gdp_epsilon
    >>> round(gdp_epsilon(1.0, 1e-5), 5)
    4.37718
    """
    mu = check_nonnegative("mu", mu)
    delta = check_delta(delta)
    if mu == 0.0:
        return 0.0
    if delta == 0.0:
        return math.inf
    log_delta = math.log(delta)
    # Phi(-x) <= exp(-x^2/2)/2 bounds the root from above.
    high = 0.5 * mu * mu + mu * math.sqrt(-2.0 * log_delta)
    if math.isinf(high):
        return math.inf
    if log_gdp_upper(mu, 0.0) <= log_delta:
        return 0.0
    upper = partial(log_gdp_upper, mu)
    return step_up(root(upper, 0.0, high, log_delta), upper, log_delta)


def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian mechanism is (epsilon, delta)-private, rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy budget >= 0; infinity gives infinity.
    delta : float
        In [0, 1); 0 gives 0 because no Gaussian noise is pure DP.

    Returns
    -------
    float
        Sensitivity over standard deviation. It is lowered by a relative 2^-36, so that
        splitting it in quadrature and adding up again stays within the budget.

    Notes
    -----
    Privacy: noise of standard deviation ``sensitivity / gdp_mu(epsilon, delta)`` makes a
    release (epsilon, delta)-private; at (1, 1e-6) this is 2.5 times less noise than
    ``sensitivity * 2 sqrt(2 ln(1/delta)) / epsilon``.

    References
    ----------
    ``docs/proofs/accounting.md``, sections 1 and 8.

    Examples
    --------
    >>> from dp_halfspace.privacy.profiles import gdp_mu
    >>> round(gdp_mu(1.0, 1e-6), 6)
    0.236704
    """
    epsilon = check_nonnegative("epsilon", epsilon)
    delta = check_delta(delta)
    if math.isinf(epsilon):
        return math.inf
    if delta == 0.0:
        return 0.0
    return _largest_mu(epsilon, delta)


@lru_cache(maxsize=256)
def _largest_mu(epsilon: float, delta: float) -> float:
    """Compute `gdp_mu`; the result is cached, because a plan needs it several times."""
    log_delta = math.log(delta)
    x = math.sqrt(-2.0 * log_delta)
    # Two lower bounds of the root: Phi(-x) <= exp(-x^2/2)/2, and delta_mu(0) < 0.4 mu.
    low = max(delta, 2.0 * epsilon / (math.sqrt(x * x + 2.0 * epsilon) + x))
    high = 2.0 * math.sqrt(epsilon) + 100.0
    ends = math.log(low), math.log(high)
    log_mu = root(lambda t: log_gdp_upper(math.exp(t), epsilon), *ends, log_delta)
    mu = math.exp(log_mu) * (1.0 - LOG_SLACK)
    if mu < TINY:
        # Subnormal numbers lack the digits for a safe rounding.
        return 0.0
    while log_gdp_upper(mu, epsilon) > log_delta:
        mu *= 1.0 - LOG_SLACK
    return mu
