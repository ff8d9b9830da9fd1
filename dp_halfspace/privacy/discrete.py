"""Exact integer samplers: no floating point between the random bits and the output.

The algorithms are those of Canonne, Kamath and Steinke (2020). See
``docs/proofs/noise.md``, section 6.
"""

from fractions import Fraction

from dp_halfspace.privacy._exact import positive_rational
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource

__all__ = ["bernoulli_exp", "discrete_laplace", "uniform_below"]


def uniform_below(n: int, source: ByteSource = OS_RANDOMNESS) -> int:
    """Return an exactly uniform integer from 0 to ``n - 1``.

    Parameters
    ----------
    n : int
        At least 1; any size.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If ``n`` is below 1.

    Examples
    --------
    >>> from dp_halfspace.privacy.discrete import uniform_below
    >>> 0 <= uniform_below(6) < 6
    True
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        draw = int.from_bytes(source.read(size), "little") >> (8 * size - bits)
        if draw < n:
            return draw


def bernoulli_exp(gamma: Fraction | int, source: ByteSource = OS_RANDOMNESS) -> bool:
    """Return True with probability exactly ``exp(-gamma)``.

    Parameters
    ----------
    gamma : Fraction or int
        Nonnegative exponent.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If ``gamma`` is negative.

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke (2020), The Discrete Gaussian for Differential Privacy,
    NeurIPS (Algorithm 1).

    Examples
    --------
    >>> from dp_halfspace.privacy.discrete import bernoulli_exp
    >>> bernoulli_exp(0)
    True
    """
    if gamma < 0:
        raise ValueError(f"gamma must be nonnegative, got {gamma}")
    numerator, denominator = gamma.numerator, gamma.denominator
    # exp(-gamma) = exp(-1)^floor(gamma) exp(-fraction); most large exponents stop early.
    for _ in range(numerator // denominator):
        if not _bernoulli_exp_fraction(1, 1, source):
            return False
    return _bernoulli_exp_fraction(numerator % denominator, denominator, source)


def _bernoulli_exp_fraction(numerator: int, denominator: int, source: ByteSource) -> bool:
    """Return True with probability ``exp(-numerator / denominator)``, a ratio in [0, 1]."""
    # The run of successes at rates gamma/1, gamma/2, ... has even length with this probability.
    length = 0
    while uniform_below(denominator * (length + 1), source) < numerator:
        length += 1
    return length % 2 == 0


def discrete_laplace(
    value: int, scale: float | Fraction | int, *, source: ByteSource = OS_RANDOMNESS
) -> int:
    r"""Release an integer with exact discrete Laplace noise.

    The output :math:`k` has probability exactly proportional to
    :math:`\exp(-|k - \text{value}| / \text{scale})` over all integers.

    Parameters
    ----------
    value : int
        The private integer; any size.
    scale : float, Fraction or int
        Positive, finite and taken as an exact number.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If ``scale``, which is public, is not a positive finite number.

    Notes
    -----
    Privacy: :math:`\varepsilon`-DP with :math:`\varepsilon = \Delta / \text{scale}` for an
    integer of sensitivity :math:`\Delta`, exactly, given uniform bytes.

    References
    ----------
    C. Canonne, G. Kamath, T. Steinke (2020), The Discrete Gaussian for Differential Privacy,
    NeurIPS (Algorithm 2).

    Examples
    --------
    >>> from dp_halfspace.privacy.discrete import discrete_laplace
    >>> isinstance(discrete_laplace(10, 2.5), int)
    True
    """
    exact = positive_rational(scale, "scale")
    numerator, denominator = exact.numerator, exact.denominator
    while True:
        part = uniform_below(numerator, source)
        if not _bernoulli_exp_fraction(part, numerator, source):
            continue
        whole = 0
        while _bernoulli_exp_fraction(1, 1, source):
            whole += 1
        magnitude = (part + numerator * whole) // denominator
        negative = uniform_below(2, source) == 1
        # Zero has one sign only, or it would be twice as likely as it should be.
        if magnitude > 0 or not negative:
            return int(value) + (-magnitude if negative else magnitude)
