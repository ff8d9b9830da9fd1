"""L2-Laplace noise (the K-norm mechanism of the Euclidean ball) without floating-point leaks.

The density ``exp(-||z|| / scale)`` is a Gaussian whose variance is random: only that one number
needs many digits, the rest is the exactly rounded Gaussian (``docs/proofs/noise.md``, section 5).
"""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace.privacy._exact import decimal_context
from dp_halfspace.privacy.gaussian import checked_scale, gaussian_on_grid, log2_of_grid
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource

_MAX_GRID_BITS = 30
# A uniform number is (2 V + 1) * 2**-257 for an integer V of 256 random bits.
_UNIFORM_BYTES = 32
_UNIFORM_LOG2 = 257
# -log(1 - 2**-257) still has more than 100 correct digits.
_DIGITS = 200
_MANTISSA_BITS = 1024


def l2_laplace(
    value: ArrayLike,
    scale: float,
    *,
    source: ByteSource = OS_RANDOMNESS,
    grid_bits: int = 20,
) -> NDArray[np.float64]:
    r"""Release a vector with noise of density proportional to ``exp(-||z||_2 / scale)``.

    The norm is over the whole flattened array. Returns :math:`Q_g(\text{value} + z)`, with
    :math:`z` the ideal real vector and :math:`Q_g` rounding to the public grid
    :math:`g = 2^{\lfloor \log_2 (\text{scale} \sqrt d) \rfloor - \text{grid\_bits}}`.

    Parameters
    ----------
    value : array-like of float64, any shape
        The private value, of :math:`d` coordinates in all.
    scale : float
        Scale of the noise in the units of ``value``, from :math:`2^{-900}` to
        :math:`2^{900}`: :math:`\|z\|` follows Gamma(``d``) times ``scale``.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.
    grid_bits : int, default=20
        Fineness of the grid relative to the noise, from 0 to 30. Public.

    Returns
    -------
    ndarray of float64, shape of ``value``
        As from `rounded_gaussian`, which clips ``value`` in the same way.

    Notes
    -----
    Privacy: :math:`\varepsilon`-DP with :math:`\varepsilon = \Delta / \text{scale}` for
    L2-sensitivity :math:`\Delta` of ``value``, :math:`\delta = 0`; the law of the
    whole vector is the ideal one up to a total variation distance below :math:`2^{-180}`
    for :math:`d \le 10^{6}`, under the assumptions of
    :func:`~dp_halfspace.privacy.gaussian.rounded_gaussian`.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, A. D. Sarwate (2011), Differentially Private Empirical Risk
    Minimization, JMLR 12 (Algorithm 1).
    D. F. Andrews, C. L. Mallows (1974), Scale Mixtures of Normal Distributions, JRSS B 36.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.laplace import l2_laplace
    >>> l2_laplace(np.zeros((2, 3)), scale=0.5).shape
    (2, 3)
    """
    scale = checked_scale(scale, "scale")
    dimension = np.size(value)
    # The grid depends on the dimension and not on the drawn radius, which is private.
    log2_grid = log2_of_grid(scale * math.sqrt(max(1, dimension)), grid_bits, _MAX_GRID_BITS)
    if dimension == 0:
        return np.zeros(np.shape(value))
    sigma = Fraction(scale) * _chi_variate(dimension + 1, source)
    return gaussian_on_grid(value, sigma, log2_grid, source)


def _chi_variate(degrees: int, source: ByteSource) -> Fraction:
    """Return T with ``T**2`` chi-square of ``degrees >= 2``, to a relative error below 2**-300."""
    with localcontext(decimal_context(_DIGITS)):
        square = -2 * _log_of_product(degrees // 2, source)
        if degrees % 2:
            square += _squared_normal(source)
        return Fraction(square.sqrt())


def _log_of_product(count: int, source: ByteSource) -> Decimal:
    """Return ``ln(u_1 ... u_count)`` for independent uniform numbers."""
    mantissa, exponent = 1, -_UNIFORM_LOG2 * count
    for numerator in _odd_numerators(count, source):
        mantissa *= numerator
        excess = mantissa.bit_length() - _MANTISSA_BITS
        if excess > 0:
            mantissa >>= excess
            exponent += excess
    return Decimal(mantissa).ln() + exponent * _log_of_two()


def _squared_normal(source: ByteSource) -> Decimal:
    """Return the square of a standard normal number, by the polar method."""
    while True:
        first, second = (x * x for x in _odd_numerators(2, source))
        radius = first + second
        if radius < 1 << 2 * _UNIFORM_LOG2:
            break
    log_radius = Decimal(radius).ln() - 2 * _UNIFORM_LOG2 * _log_of_two()
    return Decimal(first) / Decimal(radius) * (-2 * log_radius)


def _odd_numerators(count: int, source: ByteSource) -> list[int]:
    """Return numbers ``2 V + 1``, over 2**257 the middles of random cells of (0, 1)."""
    raw = source.read(_UNIFORM_BYTES * count)
    ends = range(_UNIFORM_BYTES, len(raw) + 1, _UNIFORM_BYTES)
    return [2 * int.from_bytes(raw[end - _UNIFORM_BYTES : end], "little") + 1 for end in ends]


@functools.lru_cache(maxsize=1)
def _log_of_two() -> Decimal:
    """Return ``ln 2`` to the digits of the random variance."""
    return decimal_context(_DIGITS).ln(Decimal(2))
