r"""Exact privacy profiles of single mechanisms and their safe inverses.

The privacy profile of a mechanism is the smallest :math:`\delta` for every
:math:`\varepsilon`: the hockey-stick divergence between its output laws on two
neighbouring data sets. Three profiles are enough for the package: the Gaussian
mechanism, a purely private mechanism (randomised response is its worst case) and the
exponential mechanism, whose log-ratios have bounded range. Derivations:
``docs/proofs/accounting.md``, sections 1-3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from dp_halfspace.privacy._log_profiles import (
    LOG_SLACK,
    FloatArray,
    check_delta,
    check_nonnegative,
    check_not_nan,
    log_gdp_delta,
    log_gdp_upper,
    root,
    step_up,
    zero_loss,
)

__all__ = [
    "exponential_delta",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "pure_delta",
]


def _as_given(values: FloatArray) -> Any:
    """Return a float for a scalar argument and the array otherwise, without -0.0."""
    values = values + 0.0
    return float(values) if values.ndim == 0 else values


@overload
def gdp_delta(mu: float, epsilon: float) -> float: ...
@overload
def gdp_delta(mu: float, epsilon: ArrayLike) -> Any: ...
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

    Raises
    ------
    ValueError
        If `mu` is negative or NaN or `epsilon` is NaN.

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
    values = check_not_nan("epsilon", epsilon)
    if math.isinf(mu):
        return _as_given(np.where(values == np.inf, 0.0, 1.0))
    return _as_given(np.exp(log_gdp_delta(mu, values)))


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

    Raises
    ------
    ValueError
        If `mu` is negative or NaN or `delta` is outside [0, 1).

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
    epsilon = root(lambda e: log_gdp_upper(mu, e) - log_delta, 0.0, high)
    return step_up(epsilon, lambda e: log_gdp_upper(mu, e) <= log_delta)


def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian mechanism is (epsilon, delta)-private, rounded down.

    Parameters
    ----------
    epsilon : float
        Privacy budget >= 0; infinity gives infinity.
    delta : float
        In [0, 1); 0 gives 0 because no Gaussian noise is purely private.

    Returns
    -------
    float
        Sensitivity over standard deviation. It is lowered by a relative 2^-36, so that
        splitting it in quadrature and adding up again stays within the budget.

    Raises
    ------
    ValueError
        If `epsilon` is negative or NaN or `delta` is outside [0, 1).

    Notes
    -----
    Privacy: noise of standard deviation ``sensitivity / gdp_mu(epsilon, delta)`` makes a
    release (epsilon, delta)-private; at (1, 1e-6) this is 2.5 times less noise than
    ``sensitivity * 2 sqrt(2 ln(1/delta)) / epsilon``.

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
    """See `gdp_mu`; a plan asks for the same number several times."""
    log_delta = math.log(delta)
    x = math.sqrt(-2.0 * log_delta)
    # Two lower bounds of the root: Phi(-x) <= exp(-x^2/2)/2, and delta_mu(0) < 0.4 mu.
    low = max(delta, 2.0 * epsilon / (math.sqrt(x * x + 2.0 * epsilon) + x))
    high = 2.0 * math.sqrt(epsilon) + 100.0
    log_mu = root(
        lambda t: log_gdp_upper(math.exp(t), epsilon) - log_delta, math.log(low), math.log(high)
    )
    mu = math.exp(log_mu) * (1.0 - LOG_SLACK)
    while log_gdp_upper(mu, epsilon) > log_delta:
        mu *= 1.0 - LOG_SLACK
    return mu


def pure_delta(epsilon0: float, epsilon: ArrayLike) -> Any:
    r"""Worst privacy profile of a purely `epsilon0`-private mechanism.

    It is the profile of randomised response: with :math:`p = 1/(1+e^{-\varepsilon_0})`,
    :math:`p (1 - e^{\varepsilon - \varepsilon_0})` for
    :math:`|\varepsilon| < \varepsilon_0`.

    Parameters
    ----------
    epsilon0 : float
        Bound of the absolute log-ratio, >= 0; infinity means no guarantee.
    epsilon : float or array-like of any shape
        Any real numbers, infinities allowed.

    Returns
    -------
    float or ndarray of the shape of `epsilon`

    Raises
    ------
    ValueError
        If `epsilon0` is negative or NaN or `epsilon` is NaN.

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath. The composition theorem for differential
       privacy. ICML 2015.

    Examples
    --------
    >>> from dp_halfspace.privacy.profiles import pure_delta
    >>> pure_delta(0.5, 0.5), round(pure_delta(0.5, 0.0), 6)
    (0.0, 0.244919)
    """
    epsilon0 = check_nonnegative("epsilon0", epsilon0)
    values = check_not_nan("epsilon", epsilon)
    if math.isinf(epsilon0):
        return _as_given(np.where(values == np.inf, 0.0, 1.0))
    inner = -np.expm1(np.minimum(values - epsilon0, 0.0)) / (1.0 + math.exp(-epsilon0))
    return _as_given(np.where(values <= -epsilon0, zero_loss(values), inner))


def exponential_delta(epsilon0: float, epsilon: ArrayLike) -> Any:
    r"""Worst privacy profile of a mechanism whose log-ratio has range at most `epsilon0`.

    For :math:`|\varepsilon| < \varepsilon_0` it is
    :math:`(1 - e^{(\varepsilon - \varepsilon_0)/2})^2 / (1 - e^{-\varepsilon_0})`.

    Parameters
    ----------
    epsilon0 : float
        Bound of the range (largest minus smallest log-ratio), >= 0. The exponential
        mechanism with weights ``exp(-epsilon0 * score / (2 * sensitivity))`` has it.
    epsilon : float or array-like of any shape
        Any real numbers, infinities allowed.

    Returns
    -------
    float or ndarray of the shape of `epsilon`

    Raises
    ------
    ValueError
        If `epsilon0` is negative or NaN or `epsilon` is NaN.

    References
    ----------
    .. [1] D. Durfee, R. Rogers. Practical differentially private top-k selection with
       pay-what-you-get composition. NeurIPS 2019.
    .. [2] J. Dong, D. Durfee, R. Rogers. Optimal differential privacy composition for
       exponential mechanisms. ICML 2020.

    Examples
    --------
    >>> from dp_halfspace.privacy.profiles import exponential_delta
    >>> exponential_delta(0.5, 0.5), round(exponential_delta(0.5, 0.0), 6)
    (0.0, 0.124353)
    """
    epsilon0 = check_nonnegative("epsilon0", epsilon0)
    values = check_not_nan("epsilon", epsilon)
    if math.isinf(epsilon0):
        return _as_given(np.where(values == np.inf, 0.0, 1.0))
    if epsilon0 == 0.0:
        return _as_given(zero_loss(values))
    inner = np.expm1(0.5 * np.minimum(values - epsilon0, 0.0)) ** 2 / -math.expm1(-epsilon0)
    return _as_given(np.where(values <= -epsilon0, zero_loss(values), inner))
