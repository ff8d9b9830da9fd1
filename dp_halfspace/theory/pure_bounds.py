"""Bounds for pure DP learning of halfspaces, and the number of records that a bound needs.

Upper bounds for the exponential mechanism over a net of directions, and lower bounds for every pure
DP method (``docs/proofs/pure_halfspace.md``, sections 6 and 7). `margin_sample_complexity` inverts
the upper bounds, for pure DP and for Gaussian noise (``docs/proofs/margin_risk.md``). All are
functions of public quantities and use no budget.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from scipy.special import bdtrc, betainc

from dp_halfspace._params import checked_size, require
from dp_halfspace.privacy.accounting import halve
from dp_halfspace.projection.linear import jl_dimension, jl_margin
from dp_halfspace.theory.margin_bound import margin_risk_bound

# Number of dimensions, and of shares of errors, that a search for a lower bound tries; every choice
# gives a valid bound.
_GRID = 36


@dataclass(frozen=True, slots=True)
class ErrorLowerBound:
    """A lower bound on the error of pure DP methods on some distribution with the margin.

    In the hard distribution only a `share` of the records is informative, and the others are all
    equal. The informative records are uniform, except for the margin, on a sphere of `dimension`
    dimensions.
    """

    error: float
    share: float
    dimension: int


def pure_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    margin: float,
    *,
    n_outliers: int = 0,
    beta: float = 0.05,
) -> float:
    r"""Bound the error on fresh records of the exponential mechanism over a net of directions.

    The net is fine enough for the margin, and is preceded by a projection by random signs if that
    makes the bound smaller. It is too large to be used in practice.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data, a constant column included.
    epsilon : float
        Pure privacy budget, at least 0.
    margin : float
        Of normalised rows, in (0, 1].
    n_outliers : int, default=0
        Number of records with less than the margin, for some halfspace.
    beta : float, default=0.05
        Probability with which the bound may fail, over sample, projection and mechanism.

    Returns
    -------
    float
        In (0, 1].

    Notes
    -----
    Privacy: a function of public quantities. With :math:`D` dimensions and the remaining margin
    :math:`\gamma`, the net has at most :math:`(1+2/\gamma)^D` directions and the chosen one makes
    at most :math:`\frac2\varepsilon(D\ln(1+2/\gamma)+\ln\frac1\beta)` training errors more than
    there are outliers. The papers state orders of magnitude.

    References
    ----------
    H. L. Nguyen, J. Ullman and L. Zakynthinou (2020), Theorem 11, and R. Bassily, M. Mohri,
    A. T. Suresh (2022), Theorem 3.1, with explicit constants. ``docs/proofs/pure_halfspace.md``,
    section 6.

    Examples
    --------
    >>> from dp_halfspace.theory import pure_risk_bound
    >>> round(pure_risk_bound(10_000, 10, 1.0, 0.2), 3)
    0.014
    """
    n = checked_size("n_samples", n_samples)
    d = checked_size("n_features", n_features)
    _check_problem(epsilon, margin, beta)
    share = min(checked_size("n_outliers", n_outliers, least=0) / n, 1.0)
    # The net has at most (1 + 2 / margin) to the power of the dimension members.
    bounds = [chernoff_bound(n, d * math.log1p(2.0 / margin), epsilon, share, beta / 2.0)]
    components = jl_dimension(margin, n, beta / 3.0)
    if components < d:
        size = components * math.log1p(2.0 / jl_margin(margin))
        bounds.append(chernoff_bound(n, size, epsilon, share, beta / 3.0))
    return min(bounds)


def chernoff_bound(n: int, size: float, epsilon: float, share: float, beta: float) -> float:
    """Bound the error on fresh records of the exponential mechanism over a finite class.

    `size` is the logarithm of the number of members, `share` that of the training errors of the
    best one; `beta` is the probability of each of the two failures.
    """
    if epsilon == 0.0:
        return 1.0
    train = min(share + 2.0 * (size - math.log(beta)) / (n * epsilon), 1.0)
    # For a finite class fixed in advance: a relative Chernoff bound for all members at once.
    a = (size - math.log(beta)) / n
    return min(train + a + math.sqrt(a * a + 2.0 * a * train), 1.0)


def margin_sample_complexity(
    n_features: int,
    epsilon: float,
    delta: float,
    margin: float,
    *,
    error: float = 0.1,
    beta: float = 0.05,
) -> int:
    """Return a number of records for which a bound guarantees an error on fresh records.

    Parameters
    ----------
    n_features : int
        Columns, a constant one included.
    epsilon, delta : float
        Budget. With 0 for `delta` the exponential mechanism over a net (`pure_risk_bound`), else
        noisy gradient steps (`margin_risk_bound`, as many as records, projected where that helps).
    margin : float
        Of normalised rows, in (0, 1].
    error : float, default=0.1
        In (0, 1).
    beta : float, default=0.05
        Probability with which the guarantee may fail.

    Returns
    -------
    int
        The smallest number that a search by doubling and halving finds.

    Notes
    -----
    Privacy: a function of public quantities.

    References
    ----------
    H. L. Nguyen, J. Ullman and L. Zakynthinou (2020), Theorems 6 and 11.

    Examples
    --------
    >>> from dp_halfspace.theory import margin_sample_complexity
    >>> margin_sample_complexity(10, 1.0, 0.0, 0.2), margin_sample_complexity(10, 1.0, 1e-6, 0.2)
    (1449, 12610)
    """
    d = checked_size("n_features", n_features)
    _check_problem(epsilon, margin, beta, error)

    def bound(n: int) -> float:
        if delta == 0.0:
            return pure_risk_bound(n, d, epsilon, margin, beta=beta)
        components = jl_dimension(margin, n, beta / 2.0)
        return min(
            margin_risk_bound(
                n, d, epsilon, delta, margin,
                n_steps=n, n_components=k, beta=beta, population=True,
            )
            for k in (None, *([components] if components < d else []))
        )  # fmt: skip

    return _smallest(lambda n: bound(n) <= error)


def _smallest(suffices: Callable[[int], bool]) -> int:
    """Find the smallest number of records for a condition that stays true."""
    high = 1
    while not suffices(high):
        high *= 2
        if high > sys.maxsize:
            raise ValueError("no number of records up to 2**62 suffices for this budget")
    return bisect_left(range(high), True, lo=high // 2 + 1, key=suffices)


def pure_lower_bound(
    n_features: int, epsilon: float, margin: float, *, error: float = 0.1, beta: float = 0.1
) -> int:
    r"""Return a number of records that every pure DP learner needs.

    With fewer, each epsilon-private method has, on some distribution of normalised rows with this
    margin, an error above `error` with a probability above `beta`. It grows like
    :math:`1/(\varepsilon\gamma^2)` as long as there are that many columns.

    Parameters
    ----------
    n_features : int
        Columns.
    epsilon : float
        Pure privacy budget, positive.
    margin : float
        Of normalised rows, in (0, 1).
    error : float, default=0.1
        In (0, 1/2).
    beta : float, default=0.1
        In (0, 1/2).

    Returns
    -------
    int

    Notes
    -----
    Privacy: a function of public quantities. The packing by caps of the sphere is about thirty
    times better than the published one, with the best of a grid of dimensions. The bound is far
    from tight.

    References
    ----------
    Nguyen, Ullman and Zakynthinou (2020), Theorem 12. ``docs/proofs/pure_halfspace.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.theory import pure_lower_bound
    >>> [pure_lower_bound(10**6, 0.1, margin) for margin in (0.1, 0.01, 0.001)]
    [30, 174, 12698]
    """
    d = checked_size("n_features", n_features)
    _check_problem(epsilon, margin, beta, error)
    if epsilon == 0.0 or error >= 0.5 or beta >= 0.5:
        raise ValueError("epsilon must be positive, and error and beta below 1/2")
    most = max(_log_packing(k, margin, error) for k in _dimensions(d))
    # The first number for which the packing argument gives no contradiction.
    return math.ceil((most + math.log((1.0 - beta) / beta)) / epsilon * (1.0 - 1e-12))


def pure_error_lower_bound(
    n_samples: int, n_features: int, epsilon: float, margin: float, *, beta: float = 0.1
) -> ErrorLowerBound:
    r"""Return an error that every pure DP learner exceeds on some distribution with the margin.

    It is exceeded with a probability above `beta`. The hard distributions repeat one record, and
    only the other records depend on the halfspace, so that the bound decreases like
    :math:`1/(n\varepsilon)`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, margin : float
    beta : float, default=0.1
        As for `pure_lower_bound`.

    Returns
    -------
    ErrorLowerBound

    Notes
    -----
    Privacy: a function of public quantities.

    References
    ----------
    ``docs/proofs/pure_halfspace.md``, section 7.

    Examples
    --------
    >>> from dp_halfspace.theory import pure_error_lower_bound
    >>> case = pure_error_lower_bound(1000, 50, 0.1, 0.01)
    >>> round(case.error, 4), round(case.share, 4), case.dimension
    (0.0143, 0.2063, 49)
    """
    n = checked_size("n_samples", n_samples)
    d = checked_size("n_features", n_features)
    _check_problem(epsilon, margin, beta)
    if epsilon == 0.0 or beta >= 0.5 or margin == 1.0:
        raise ValueError("epsilon must be positive, margin below 1 and beta below 1/2")
    best = ErrorLowerBound(0.0, 0.0, 1)
    if d == 1:
        return best
    # One dimension is used by the repeated record, at the cost of a part of the margin.
    inner = margin / math.sqrt(1.0 - margin * margin)
    for k, step in product(_dimensions(d - 1), range(1, _GRID)):
        local = 0.5 * step / _GRID
        packing = _log_packing(k, inner, local)
        # Half of the failure probability is for an unusually large number of informative records.
        changed = (packing + math.log((1.0 - 1.5 * beta) / beta)) / epsilon
        share = _largest_share(n, changed, beta / 2.0)
        if local * share > best.error:
            best = ErrorLowerBound(local * share, share, k)
    return best


def _largest_share(n: int, most: float, tail: float) -> float:
    """Return a share q for which Binomial(n, q) reaches `most` with at most this probability."""
    if n < most:
        return 1.0
    # Largest number of informative records for which the contradiction holds.
    count = math.ceil(most) - 1
    if count < 0:
        return 0.0
    return halve(lambda share: bdtrc(count, n, share) <= tail, 0.0, 1.0, 2.0**-50)


def _dimensions(most: int) -> list[int]:
    """Return dimensions to try, denser where they are small."""
    ratio = most ** (1.0 / _GRID)
    steps = (round(ratio**i) for i in range(_GRID + 1))
    return sorted({*range(1, min(most, 20) + 1), *steps})


def _log_packing(dimension: int, margin: float, error: float) -> float:
    """Return ``log(N - 1)`` for the number N of halfspaces without a common good classifier."""
    if dimension < 2:
        return 0.0
    near = float(betainc(0.5, (dimension - 1) / 2.0, min(margin * margin, 1.0)))
    angle = 2.0 * math.pi * (error * (1.0 - near) + near)
    if angle >= math.pi / 2.0:
        return 0.0
    half = (dimension - 1) / 2.0
    cap = 0.5 * float(betainc(half, 0.5, math.sin(angle) ** 2))
    if cap > 1e-280:
        log_count = math.log(max(1.0 / cap - 1.0, 1.0))
    else:
        # An upper bound on the cap, by 1 <= cos t / cos angle under the integral.
        whole = 0.5 * math.log(math.pi) + math.lgamma(half) - math.lgamma(half + 0.5)
        log_count = whole + math.log(2.0 * half * math.cos(angle))
        log_count -= 2.0 * half * math.log(math.sin(angle))
    return max(log_count - 1e-6, 0.0)


def _check_problem(epsilon: float, margin: float, beta: float, error: float = 0.1) -> None:
    """Refuse arguments out of range."""
    require("at least 0 and finite", epsilon=epsilon)
    require("in (0, 1]", margin=margin)
    require("in (0, 1)", beta=beta, error=error)
