"""Exact noise: Gaussian, L2-Laplace, discrete Laplace, and randomized response.

A floating-point sum leaks through its low-order bits (Mironov 2012). Here the ideal real sum is
rounded once, to a public grid: floating point proposes the grid point, and high precision settles
the few draws where a proved error bound leaves it open. Integers are drawn without any floating
point between the random bits and the output. Proofs: ``docs/proofs/noise.md``.

The first part compares a uniform random number exactly with a real number (a normal tail, an
exponential). The random number is known up to the bits drawn so far, the real number up to a
fixed-point enclosure; both are refined until their order is certain (section 2 of the proofs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from functools import lru_cache, partial
from numbers import Integral, Rational, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dp_halfspace._memory import LONG_BLOCK
from dp_halfspace._rounding import EPS
from dp_halfspace.privacy.interception import PureMechanism
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, read_words

# Largest number of bits of a uniform number. A comparison that is still open then has a probability
# below 2**-460, and is decided by the midpoint, so that a broken byte source cannot cause a hang.
_MAX_BITS = 512
# Number of bits of a word of randomness; an enclosure is finer by so many bits than the uniform
# number that it is compared with, and numbers than a probability that is computed from them.
_WORD_BITS = 64
# Bound on the error of a threshold 2**64 exp(-gap) in floating point. It allows np.exp an absolute
# error of 2**-41, where 2**-52 is usual, and all other rounding errors together 2**-41.
THRESHOLD_ERROR = 2.0**24


def positive_rational(number: object, name: str) -> Fraction:
    """Return a positive finite public number as an exact fraction or refuse it."""
    exact = Fraction(0)
    if isinstance(number, Rational):
        # Converted to int, because a numpy integer inside a Fraction would overflow silently.
        exact = Fraction(int(number.numerator), int(number.denominator))
    elif isinstance(number, Real) and math.isfinite(number):
        exact = Fraction(float(number))
    if exact <= 0 or isinstance(number, bool):
        raise ValueError(f"{name} must be a positive finite number, got {number!r}")
    return exact


def decimal_context(digits: int) -> Context:
    """Return a context of ``digits`` digits that ignores the settings of the calling thread."""
    traps = [DivisionByZero, InvalidOperation, Overflow]
    return Context(digits, ROUND_HALF_EVEN, -999_999, 999_999, 1, 0, flags=[], traps=traps)


@dataclass(slots=True)
class LazyUniform:
    """A uniform number in ``[cell, cell + 1) * 2**-bits``; more bits are drawn from ``source``.

    How many depends on what it is compared with, so the source serves nothing else.
    """

    cell: int
    bits: int
    source: ByteSource

    def refine(self) -> None:
        """Draw 64 further bits."""
        word = int.from_bytes(self.source.read(_WORD_BITS // 8), "little")
        self.cell = (self.cell << _WORD_BITS) | word
        self.bits += _WORD_BITS

    def below(self, enclosure: Callable[[int], int]) -> bool:
        """Return whether the uniform is below a real number ``p`` in [0, 1].

        ``enclosure(bits)`` must return an integer within 1 of ``p * 2**bits``.
        """
        while True:
            middle = enclosure(self.bits + _WORD_BITS)
            if (self.cell + 1) << _WORD_BITS <= middle - 1:
                return True
            if self.cell << _WORD_BITS >= middle + 1:
                return False
            if self.bits >= _MAX_BITS:
                return (2 * self.cell + 1) << _WORD_BITS < 2 * middle
            self.refine()


def random_events(
    probabilities: NDArray[np.float64],
    enclosure: Callable[[int], Callable[[int], int]],
    source: ByteSource,
) -> NDArray[np.bool_]:
    """Return independent events, decided in floating point where this is certain.

    ``enclosure(i)`` is the enclosure of the exact probability of event i for `LazyUniform.below`.
    """
    words, further = read_words(probabilities.size, source), source.branches()
    uniform, threshold = words.astype(np.float64), probabilities * 2.0**64
    happened = uniform < threshold
    for i in np.flatnonzero(np.abs(uniform - threshold) <= THRESHOLD_ERROR).tolist():
        happened[i] = LazyUniform(int(words[i]), 64, further(i)).below(enclosure(i))
    return np.asarray(happened, dtype=np.bool_)


def _digits(bits: int) -> int:
    """Return the number of decimal digits that resolve ``2**-bits``, and 15 more."""
    return bits * 30103 // 100_000 + 16


def _fixed_point(value: Decimal, bits: int) -> int:
    """Return ``value * 2**bits`` rounded to an integer."""
    return int((value * Decimal(1 << bits)).to_integral_value())


@lru_cache(maxsize=32)
def _root_two_pi(digits: int) -> Decimal:
    """Return ``sqrt(2 pi)`` to ``digits`` digits, pi by Machin's formula in integers."""
    one = 10 ** (digits + 10)

    def arccot(x: int) -> int:
        total, term, odd, sign = 0, one // x, 1, 1
        while term:
            total += sign * (term // odd)
            term //= x * x
            odd, sign = odd + 2, -sign
        return total

    pi = 4 * (4 * arccot(5) - arccot(239))
    with localcontext(decimal_context(digits + 5)):
        return (Decimal(2 * pi) / Decimal(one)).sqrt()


def normal_tail(point: Fraction, bits: int) -> int:
    """Return an integer within 1 of ``2**bits * P(Z > point)``, Z standard normal, point >= 0.

    ``P(Z > c) = 1/2 - phi(c) (c + c^3/3 + c^5/15 + ...)``: all terms are positive, and an
    absolute error is all that is needed, so the cancellation in the last step is harmless.
    """
    if point >= 64:  # P(Z > 64) < 2**-2900
        return 0
    digits = _digits(bits)
    with localcontext(decimal_context(digits)):
        c = Decimal(point.numerator) / Decimal(point.denominator)
        square = c * c
        negligible = Decimal(1).scaleb(-digits)
        term = total = c
        odd = 1
        # From odd >= 2 c^2 on, every term is at most half of the one before, so that all terms that
        # are left out are together below one term.
        while term > negligible or odd < 2 * square:
            odd += 2
            term = term * square / odd
            total += term
        central = total * (-square / 2).exp() / _root_two_pi(digits)
        return _fixed_point(Decimal("0.5") - central, bits)


def exp_minus(gamma: Fraction, bits: int) -> int:
    """Return an integer within 1 of ``2**bits * exp(-gamma)``, gamma >= 0."""
    if gamma >= 1024:  # exp(-1024) < 2**-1477
        return 0
    with localcontext(decimal_context(_digits(bits))):
        exponent = Decimal(gamma.numerator) / Decimal(gamma.denominator)
        return _fixed_point((-exponent).exp(), bits)


# Largest scale of noise, and one over the smallest one; the same for the rate of a choice.
LARGEST_SCALE = Fraction(2**900)
# Largest number of bits by which the grid of Gaussian noise is finer than its scale.
_MOST_GAUSSIAN_GRID_BITS = 36

# Values are clipped to this many grid steps; below it every multiple of the grid is a float.
_CLIP_STEPS = 2.0**52

# Assumption (c) of docs/proofs/noise.md: |error of ndtri at p <= 1/2| <= 2**-44 (1 + |z|).
_NDTRI_ERROR = 2.0**-44
# Bound on all rounding errors of float64 from there on, larger than needed by a factor above 2.
_FLOAT_ERROR = 2.0**-50


@dataclass(frozen=True, slots=True)
class GridNoise:
    """Standard deviation in grid steps, exact and as a float, and the grid itself."""

    ratio: Fraction
    spread: float
    grid: float


def check_scale(scale: float, name: str) -> float:
    """Return a public noise scale as a float or refuse it."""
    exact = positive_rational(scale, name)
    if not 1 / LARGEST_SCALE <= exact <= LARGEST_SCALE:
        raise ValueError(f"{name} must be between 2**-900 and 2**900, got {scale!r}")
    return float(exact)


def rounded_gaussian(
    value: ArrayLike, sigma: float, *, source: ByteSource = OS_RANDOMNESS, grid_bits: int = 20
) -> NDArray[np.float64]:
    r"""Release a value with exactly rounded Gaussian noise.

    Returns :math:`Q_g(\text{value} + \sigma Z)`, where the coordinates of :math:`Z` are
    independent ideal (real) standard normals and :math:`Q_g` rounds to the nearest
    multiple of the public grid
    :math:`g = 2^{\lfloor \log_2 \sigma \rfloor - \text{grid\_bits}}`.

    Parameters
    ----------
    value : array-like of float64, any shape
        The private value. A coordinate that is NaN counts as 0; coordinates beyond
        :math:`\pm 2^{52} g` (infinities too) count as that bound. Neither raises or
        warns, because an error that depends on the value would reveal it.
    sigma : float
        Standard deviation of the noise, in the units of ``value``, taken as an exact
        number; from :math:`2^{-900}` to :math:`2^{900}`.
    source : ByteSource, default=OS_RANDOMNESS
        Where the random bytes come from.
    grid_bits : int, default=20
        Fineness of the grid relative to ``sigma``, from 0 to 36. Public. The value is
        clipped at about :math:`2^{52 - \text{grid\_bits}}\sigma`.

    Returns
    -------
    ndarray of float64, shape of ``value``
        Multiples of ``g``, at most :math:`2^{52} g` in absolute value.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any for which ``value`` has L2-sensitivity :math:`\Delta`.
    - Released: the returned array. Its shape, ``sigma`` and the grid are public.
    - Sensitivity: clipping does not increase :math:`\Delta`, and rounding is post-processing of
      the ideal mechanism: the release is :math:`\mu`-Gaussian differentially private with
      :math:`\mu = \Delta / \sigma`.
    - Proof: ``docs/proofs/noise.md``, section 3. The distribution of each coordinate is the
      ideal one up to a total variation distance below :math:`2^{-180}`, given that the bytes of
      ``source`` are uniform, that basic operations follow IEEE 754, and that
      ``scipy.special.ndtri`` errs by at most :math:`2^{-44}(1 + |z|)`.

    Running time depends on the value and is not protected.

    References
    ----------
    I. Mironov (2012), On Significance of the Least Significant Bits for Differential
    Privacy, CCS.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.noise import rounded_gaussian
    >>> noisy = rounded_gaussian(np.array([0.0, 1.0, 2.0]), sigma=2.0)
    >>> bool(np.all(noisy == np.rint(noisy * 2.0**19) / 2.0**19))
    True
    """
    return add_noise(value, gaussian_grid(check_scale(sigma, "sigma"), grid_bits), source)


def log2_of_grid(scale: float, grid_bits: int, most: int) -> int:
    """Return the binary logarithm of the grid that is `grid_bits` bits finer than a scale."""
    is_integer = isinstance(grid_bits, Integral) and not isinstance(grid_bits, bool)
    if not is_integer or not 0 <= grid_bits <= most:
        raise ValueError(f"grid_bits must be an int from 0 to {most}, got {grid_bits!r}")
    return math.frexp(scale)[1] - 1 - int(grid_bits)


@lru_cache(maxsize=64, typed=True)
def gaussian_grid(sigma: float, grid_bits: int = 20) -> GridNoise:
    """Return noise of a checked scale on its public grid, computed once for many releases."""
    return noise_on_grid(Fraction(sigma), log2_of_grid(sigma, grid_bits, _MOST_GAUSSIAN_GRID_BITS))


def noise_on_grid(sigma: Fraction, log2_grid: int) -> GridNoise:
    """Return Gaussian noise of an exact rational scale on the grid of ``2**log2_grid``."""
    grid = math.ldexp(1.0, log2_grid)
    ratio = sigma / Fraction(grid)
    return GridNoise(ratio, float(ratio), grid)


def add_noise(value: ArrayLike, noise: GridNoise, source: ByteSource) -> NDArray[np.float64]:
    """Return ``Q_g(value + sigma Z)``: each entry is rounded to the grid, block after block."""
    # Warnings are off, because the caller may have turned floating-point warnings into errors.
    with np.errstate(all="ignore"):
        released = np.array(value, dtype=np.float64, order="C")
        flat = released.reshape(-1)
        for start in range(0, flat.size, LONG_BLOCK):
            block = flat[start : start + LONG_BLOCK]
            # The grid is a power of two, so the division is exact. The quotient is clipped before
            # it is rounded, because it may be infinite.
            np.multiply(block, 1.0 / noise.grid, out=block)
            # Values of half as many steps need no clipping, neither before nor after the noise. The
            # negation makes NaN count as out of range.
            is_far = not block.dot(block) < (_CLIP_STEPS / 2.0) ** 2
            if is_far:
                block[np.isnan(block)] = 0.0
                np.minimum(np.maximum(block, -_CLIP_STEPS, out=block), _CLIP_STEPS, out=block)
            whole = np.rint(block)
            offset = np.subtract(block, whole, out=block)
            words = read_words(offset.size, source)
            whole += _nearest_steps(offset, words, noise, source.branches())
            if is_far:
                np.minimum(np.maximum(whole, -_CLIP_STEPS, out=whole), _CLIP_STEPS, out=whole)
            # Adding zero turns -0.0 into 0.0: the sign of a zero would reveal the sign of the exact
            # value (docs/proofs/noise.md, section 3.6).
            np.add(whole, 0.0, out=whole)
            np.multiply(whole, noise.grid, out=block)
    return released


def _nearest_steps(
    offset: NDArray[np.float64],
    words: NDArray[np.uint64],
    noise: GridNoise,
    further: Callable[[int], ByteSource],
) -> NDArray[np.float64]:
    """Return the integers nearest to ``offset + ratio Z``, with ``|offset| <= 1/2``.

    The first bits of entry i of Z are word i; further bits are drawn from ``further(i)`` if needed.
    """
    # 63 bits of a word are the cell of the tail probability in [0, 1/2); the last bit is the sign.
    cells = words >> np.uint64(1)
    # Signed integers are converted faster.
    shift = cells.view(np.int64).astype(np.float64)
    shift += 0.5
    shift *= 2.0**-64
    ndtri(shift, out=shift)
    shift *= noise.spread
    # ndtri is negative for these probabilities; a last bit of 1 flips the sign.
    bits = shift.view(np.uint64)
    np.bitwise_xor(bits, words << np.uint64(63), out=bits)
    total = shift + offset
    steps: NDArray[np.float64] = np.rint(total)
    distance = np.abs(total - steps)
    # The negation makes an undefined bound count as uncertain.
    is_open = ~(distance < 0.5 - _error_bound(cells, shift, total, noise.spread))
    for i in np.flatnonzero(is_open).tolist():
        steps[i] = _exact_steps(int(words[i]), float(offset[i]), noise, further(i))
    return steps


def _error_bound(
    cells: ArrayLike, shift: ArrayLike, total: ArrayLike, spread: float
) -> NDArray[np.float64]:
    """Bound the error of ``offset + ratio Z`` in floating point, for all of a cell.

    It is the sum of the error of ndtri, the effect of the width of the cell, and rounding errors.
    It is infinite for the cells 0 and 1.
    """
    number = np.asarray(cells, dtype=np.float64)
    width = np.where(number > 1.0, 1.0 / np.maximum(number - 0.5, 0.5), np.inf)
    size = np.abs(shift)
    own = _NDTRI_ERROR * (spread + size) + spread * width
    return own + (np.abs(total) + size + spread + 1.0) * _FLOAT_ERROR


def _exact_steps(word: int, offset: float, noise: GridNoise, source: ByteSource) -> int:
    """Return the integer nearest to ``offset + ratio Z`` for the Z that starts with ``word``."""
    tail = LazyUniform(word >> 1, 64, source)
    positive = bool(word & 1)
    exact_offset = Fraction(offset)

    def reaches(step: int) -> bool:
        """Return whether the ideal sum is at least ``step - 1/2``."""
        point = (step - Fraction(1, 2) - exact_offset) / noise.ratio
        if positive:
            return point <= 0 or tail.below(lambda bits: normal_tail(point, bits))
        return point <= 0 and not tail.below(lambda bits: normal_tail(-point, bits))

    # The guess needs only to be close to the result, which the two loops below determine.
    while tail.cell.bit_length() < 60 and tail.bits < 512:
        tail.refine()
    size = -float(ndtri(math.ldexp(tail.cell + 0.5, -tail.bits)))
    guess = round(offset + noise.spread * (size if positive else -size))
    while reaches(guess + 1):
        guess += 1
    while not reaches(guess):
        guess -= 1
    return guess


# Largest number of bits by which the grid of L2-Laplace noise is finer than its scale.
MOST_LAPLACE_GRID_BITS = 30
# A uniform number is (2 V + 1) * 2**-257 for an integer V of 256 random bits.
_UNIFORM_LOG2 = 257
# Number of decimal digits of what is not computed in floating point; with so many, even
# -log(1 - 2**-257) has more than 100 correct ones.
DIGITS = 200
# Number of bits that are kept of a product of uniform numbers.
_MANTISSA_BITS = 1024


def l2_laplace(
    value: ArrayLike, scale: float, *, source: ByteSource = OS_RANDOMNESS, grid_bits: int = 20
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
    **Guarantee.**

    - Adjacency: any for which ``value`` has L2-sensitivity :math:`\Delta`.
    - Released: the returned array. Its shape, ``scale`` and the grid are public.
    - Sensitivity: :math:`\varepsilon`-differential privacy with
      :math:`\varepsilon = \Delta / \text{scale}` and :math:`\delta = 0`.
    - Proof: ``docs/proofs/noise.md``, section 5.

    The distribution of the whole vector is the ideal one up to a total variation distance below
    :math:`2^{-180}` for :math:`d \le 2^{32}`, under the assumptions of
    :func:`~dp_halfspace.privacy.noise.rounded_gaussian`.

    References
    ----------
    K. Chaudhuri, C. Monteleoni, A. D. Sarwate (2011), Differentially Private Empirical Risk
    Minimization, JMLR 12 (Algorithm 1).
    D. F. Andrews, C. L. Mallows (1974), Scale Mixtures of Normal Distributions, JRSS B 36.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.noise import l2_laplace
    >>> l2_laplace(np.zeros((2, 3)), scale=0.5).shape
    (2, 3)
    """
    scale = check_scale(scale, "scale")
    dimension = np.size(value)
    # The grid depends on the dimension and not on the drawn radius, which is private.
    length = scale * math.sqrt(max(1, dimension))
    log2_grid = log2_of_grid(length, grid_bits, MOST_LAPLACE_GRID_BITS)
    if dimension == 0:
        return np.zeros(np.shape(value))
    sigma = Fraction(scale) * _draw_chi(dimension + 1, source)
    return add_noise(value, noise_on_grid(sigma, log2_grid), source)


def _draw_chi(degrees: int, source: ByteSource) -> Fraction:
    """Return T with ``T**2`` chi-square of ``degrees >= 2``, to a relative error below 2**-300."""
    with localcontext(decimal_context(DIGITS)):
        square = -2 * _draw_log_product(degrees // 2, source)
        if degrees % 2:
            square += _draw_squared_normal(source)
        return Fraction(square.sqrt())


def _draw_log_product(count: int, source: ByteSource) -> Decimal:
    """Return ``ln(u_1 ... u_count)`` for independent uniform numbers."""
    mantissa, exponent = 1, -_UNIFORM_LOG2 * count
    for numerator in _draw_odd_numerators(count, source):
        mantissa *= numerator
        excess = mantissa.bit_length() - _MANTISSA_BITS
        if excess > 0:
            mantissa >>= excess
            exponent += excess
    return Decimal(mantissa).ln() + exponent * _log_of_two()


def _draw_squared_normal(source: ByteSource) -> Decimal:
    """Return the square of a standard normal number, by the polar method."""
    while True:
        first, second = (x * x for x in _draw_odd_numerators(2, source))
        radius = first + second
        if radius < 1 << 2 * _UNIFORM_LOG2:
            break
    log_radius = Decimal(radius).ln() - 2 * _UNIFORM_LOG2 * _log_of_two()
    return Decimal(first) / Decimal(radius) * (-2 * log_radius)


def _draw_odd_numerators(count: int, source: ByteSource) -> list[int]:
    """Return numbers ``2 V + 1``; over 2**257 they are midpoints of random cells of (0, 1)."""
    size = _UNIFORM_LOG2 // 8
    raw = source.read(size * count)
    ends = range(size, len(raw) + 1, size)
    return [2 * int.from_bytes(raw[end - size : end], "little") + 1 for end in ends]


@lru_cache(maxsize=1)
def _log_of_two() -> Decimal:
    """Return ``ln 2`` to `DIGITS` digits."""
    return decimal_context(DIGITS).ln(Decimal(2))


def uniform_below(n: int, source: ByteSource = OS_RANDOMNESS) -> int:
    """Return an exactly uniform integer from 0 to ``n - 1``, for n of any size."""
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    bits = (n - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        draw = int.from_bytes(source.read(size), "little") >> (8 * size - bits)
        if draw < n:
            return draw


# Smallest rate of the discrete Laplace distribution, with which the noise stays below 2^62.
SMALLEST_COUNT_RATE = Fraction(EPS)
# Binary digits that are one with a probability below exp(-512) are taken to be zero.
_NEGLIGIBLE_RATE = 512


@dataclass(frozen=True, slots=True)
class RandomizedResponse(PureMechanism):
    """Each label is kept with probability ``e^epsilon / (e^epsilon + K - 1)``.

    Otherwise it becomes one of the ``K - 1`` others, all equally likely.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace the label of one record; features are not covered at all.
    - Released: one response for each record, ``epsilon``-differentially private together.
    - Sensitivity: one label changes the probability of any list of responses by a factor of at
      most ``e^epsilon``.
    - Proof: ``docs/proofs/label_privacy.md``, section 3.

    References
    ----------
    S. L. Warner (1965), Randomized response, JASA 60.
    """

    n_classes: int
    epsilon: float

    def __post_init__(self) -> None:
        positive_rational(self.epsilon, "epsilon")
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, got {self.n_classes!r}")

    @property
    def keep_probability(self) -> float:
        """Probability that a label is kept."""
        return 1.0 / (1.0 + (self.n_classes - 1) * math.exp(-self.epsilon))

    @property
    def contrast(self) -> float:
        """Probability of the true label minus that of any other one."""
        return -math.expm1(-self.epsilon) * self.keep_probability

    @property
    def variance(self) -> float:
        """Mean variance of an unbiased estimate of one indicator of a class."""
        keep = self.keep_probability
        other = (1.0 - keep) / (self.n_classes - 1)
        spread = keep * (1.0 - keep) + (self.n_classes - 1) * other * (1.0 - other)
        return spread / self.n_classes / self.contrast**2

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Return the responses to labels from 0 to ``n_classes - 1``."""
        responses = np.array(value, dtype=np.float64)
        share = partial(_share, Fraction(self.epsilon), self.n_classes - 1)
        # With many classes, an error of exp could move a probability by more than events allow.
        change = np.full(responses.size, share(_WORD_BITS) / 2**_WORD_BITS)
        changed = random_events(change, lambda _: share, source)
        for i in np.flatnonzero(changed).tolist():
            other = uniform_below(self.n_classes - 1, source)
            responses[i] = other + (other >= responses[i])
        return responses


def _share(gamma: Fraction, weight: int, bits: int) -> int:
    """Return an integer within 1 of ``2**bits w / (w + exp(gamma))``."""
    precision = bits + _WORD_BITS
    odds = weight * exp_minus(gamma, precision)
    return (odds << bits) // ((1 << precision) + odds)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(PureMechanism):
    """Integers k of probability proportional to ``exp(-|k| epsilon / sensitivity)``, exactly.

    It is the difference of two geometric variables, whose binary digits are independent.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any that changes the integers by at most `sensitivity` in absolute sum.
    - Released: the integers with noise, ``epsilon``-differentially private.
    - Sensitivity: `sensitivity`, in the L1 norm.
    - Proof: ``docs/proofs/noise.md``, section 6.

    References
    ----------
    A. Ghosh, T. Roughgarden, M. Sundararajan (2009), Universally utility-maximizing privacy
    mechanisms, STOC.
    """

    sensitivity: int
    epsilon: float

    def __post_init__(self) -> None:
        if self._rate < SMALLEST_COUNT_RATE:
            raise ValueError(f"epsilon must be at least {self.sensitivity} x 2^-53")

    @property
    def _rate(self) -> Fraction:
        return positive_rational(self.epsilon, "epsilon") / self.sensitivity

    @property
    def deviation(self) -> float:
        """Standard deviation of every entry."""
        return math.sqrt(0.5) / math.sinh(min(float(self._rate) / 2.0, 700.0))

    def perturb(self, value: NDArray[np.float64], source: ByteSource) -> NDArray[np.float64]:
        """Add the noise to integers below 2^53."""
        pair = draw_geometric(self._rate, (2, *value.shape), source)
        noisy: NDArray[np.float64] = (value.astype(np.int64) + pair[0] - pair[1]).astype(np.float64)
        return noisy


def draw_geometric(rate: Fraction, shape: tuple[int, ...], source: ByteSource) -> NDArray[np.int64]:
    """Return independent integers k >= 0 of probability proportional to ``exp(-rate k)``.

    Their binary digits are independent, and drawn one after the other: ``docs/proofs/noise.md``,
    section 6. The `rate` is at least 2^-53.
    """
    found = np.zeros(shape, dtype=np.int64)
    digit, gamma = 1, rate
    while gamma < _NEGLIGIBLE_RATE:
        found += digit * _draw_digits(gamma, found.size, source).reshape(shape)
        digit, gamma = 2 * digit, 2 * gamma
    return found


def _draw_digits(gamma: Fraction, size: int, source: ByteSource) -> NDArray[np.bool_]:
    """Return independent events of probability ``1 / (1 + exp(gamma))``."""
    odds = float(np.exp(-float(gamma)))
    probabilities = np.full(size, odds / (1.0 + odds))
    return random_events(probabilities, lambda _: partial(_share, gamma, 1), source)
