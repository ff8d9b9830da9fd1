"""Gaussian noise whose output law is that of real arithmetic.

A floating-point sum leaks through its low-order bits (Mironov 2012). Here the ideal real sum is
rounded once, to a public grid: floating point proposes the grid point, and high precision settles
the few draws where a proved error bound leaves it open. Proof: ``docs/proofs/noise.md``.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dp_halfspace.privacy._exact import LazyUniform, normal_tail, positive_rational
from dp_halfspace.privacy.randomness import OS_RANDOMNESS, ByteSource, read_words

_SMALLEST_SCALE = Fraction(1, 2**900)
_LARGEST_SCALE = Fraction(2**900)
_MAX_GRID_BITS = 36

# Values are clipped to this many grid steps, where every multiple of the grid is a float.
_CLIP = 2.0**52
# Below it no clip, neither before nor after the noise, changes anything.
_NEAR = 2.0**51
# Draws per block: the working arrays then stay in the second-level cache.
_BLOCK = 8192

# Assumption (c) of the proof: |error of ndtri at p <= 1/2| <= 2**-44 (1 + |z|).
_NDTRI_ERROR = 2.0**-44
# Covers every rounding of float64 on the way, with a factor above 2 to spare.
_FLOAT_ERROR = 2.0**-50
# All but a 2**-17 fraction of the draws have cells from here on, hence |z| <= 4.5.
_COMMON_CELLS = 2**46
_COMMON_Z = 4.5
_ONE, _TO_THE_TOP = np.uint64(1), np.uint64(63)


@dataclass(frozen=True, slots=True)
class _Noise:
    """Standard deviation in grid steps, exact and as a float, and the grid itself.

    Draws from the common cells are certain if the sum is within ``reach`` of an integer.
    """

    ratio: Fraction
    spread: float
    grid: float
    reach: float


def checked_scale(scale: float, name: str) -> float:
    """Return a public noise scale as a float or refuse it."""
    if type(scale) is float and 2.0**-900 <= scale <= 2.0**900:
        return scale
    exact = positive_rational(scale, name)
    if not _SMALLEST_SCALE <= exact <= _LARGEST_SCALE:
        raise ValueError(f"{name} must be between 2**-900 and 2**900, got {scale!r}")
    return float(exact)


def rounded_gaussian(
    value: ArrayLike,
    sigma: float,
    *,
    source: ByteSource = OS_RANDOMNESS,
    grid_bits: int = 20,
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
    Privacy: rounding is post-processing of the ideal Gaussian mechanism, so its accounting
    holds unchanged, with :math:`\mu = \Delta / \sigma` for L2-sensitivity :math:`\Delta` of
    ``value``; clipping does not increase :math:`\Delta`. The law of each coordinate is the
    ideal one up to a total variation distance below :math:`2^{-180}`, given that the bytes
    of ``source`` are uniform, that basic operations follow IEEE 754, and that
    ``scipy.special.ndtri`` errs by at most :math:`2^{-44}(1 + |z|)`. Running time depends on
    the value and is not protected.

    References
    ----------
    I. Mironov (2012), On Significance of the Least Significant Bits for Differential
    Privacy, CCS.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.privacy.gaussian import rounded_gaussian
    >>> noisy = rounded_gaussian(np.array([0.0, 1.0, 2.0]), sigma=2.0)
    >>> bool(np.all(noisy == np.rint(noisy * 2.0**19) / 2.0**19))
    True
    """
    return _released(value, _noise(checked_scale(sigma, "sigma"), grid_bits), source)


def log2_of_grid(scale: float, grid_bits: int, most: int) -> int:
    """Return the logarithm of the public grid that is so many bits finer than a scale."""
    is_integer = isinstance(grid_bits, Integral) and not isinstance(grid_bits, bool)
    if not is_integer or not 0 <= grid_bits <= most:
        raise ValueError(f"grid_bits must be an int from 0 to {most}, got {grid_bits!r}")
    return math.frexp(scale)[1] - 1 - int(grid_bits)


def gaussian_on_grid(
    value: ArrayLike, sigma: Fraction, log2_grid: int, source: ByteSource
) -> NDArray[np.float64]:
    """Return ``Q_g(value + sigma Z)`` for ``g = 2**log2_grid`` and an exact rational sigma."""
    return _released(value, _on_grid(sigma, log2_grid), source)


@lru_cache(maxsize=64, typed=True)
def _noise(sigma: float, grid_bits: int) -> _Noise:
    """Return what follows from public numbers, once for many releases."""
    return _on_grid(Fraction(sigma), log2_of_grid(sigma, grid_bits, _MAX_GRID_BITS))


def _on_grid(sigma: Fraction, log2_grid: int) -> _Noise:
    grid = math.ldexp(1.0, log2_grid)
    ratio = sigma / Fraction(grid)
    spread = float(ratio)
    farthest = _COMMON_Z * spread
    common_error = _error_bound(_COMMON_CELLS, farthest, farthest + 1.0, spread)
    return _Noise(ratio, spread, grid, 0.5 - float(common_error))


def _released(value: ArrayLike, noise: _Noise, source: ByteSource) -> NDArray[np.float64]:
    """Return the noisy multiples of the grid, block after block."""
    # The caller may have turned floating-point warnings into errors.
    with np.errstate(all="ignore"):
        released = np.array(value, dtype=np.float64, order="C")
        flat = released.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            _release_block(flat[start : start + _BLOCK], noise, source)
    return released


def _release_block(block: NDArray[np.float64], noise: _Noise, source: ByteSource) -> None:
    """Replace the values of ``block`` by their noisy multiples of the grid."""
    # x = value / grid: a power of two, hence exact. Clip before rounding, as x may be inf.
    np.multiply(block, 1.0 / noise.grid, out=block)
    # Written so that NaN counts as far.
    is_far = not block.dot(block) < _NEAR**2
    if is_far:
        block[np.isnan(block)] = 0.0
        np.minimum(np.maximum(block, -_CLIP, out=block), _CLIP, out=block)
    whole = np.rint(block)
    offset = np.subtract(block, whole, out=block)
    whole += _nearest_steps(offset, noise, source)
    if is_far:
        np.minimum(np.maximum(whole, -_CLIP, out=whole), _CLIP, out=whole)
    # Only an exact value on one side of zero could be rounded to -0.0: zero has one sign.
    np.add(whole, 0.0, out=whole)
    np.multiply(whole, noise.grid, out=block)


def _nearest_steps(
    offset: NDArray[np.float64], noise: _Noise, source: ByteSource
) -> NDArray[np.float64]:
    """Return the integers nearest to ``offset + ratio Z``, with ``|offset| <= 1/2``."""
    words = read_words(offset.size, source)
    # 63 bits place the tail probability in a cell of [0, 1/2); the last bit is the sign.
    cells = words >> _ONE
    # As signed integers, which are faster to convert.
    shift = cells.view(np.int64).astype(np.float64)
    shift += 0.5
    shift *= 2.0**-64
    ndtri(shift, out=shift)
    shift *= noise.spread
    # ndtri is negative here; a last bit of 1 turns the sign over.
    bits = shift.view(np.uint64)
    np.bitwise_xor(bits, words << _TO_THE_TOP, out=bits)
    total = shift + offset
    steps: NDArray[np.float64] = np.rint(total)
    distance = np.subtract(total, steps)
    np.abs(distance, out=distance)
    # A cheap bound on all common draws first; the draw's own bound for those it flags.
    is_common = distance[distance.argmax()] < noise.reach
    if not (is_common and cells[cells.argmin()] >= _COMMON_CELLS):
        flagged = np.flatnonzero((distance >= noise.reach) | (cells < _COMMON_CELLS))
        bound = _error_bound(cells[flagged], shift[flagged], total[flagged], noise.spread)
        # Written so that an undefined bound counts as uncertain.
        uncertain = flagged[~(distance[flagged] < 0.5 - bound)]
        for i in uncertain.tolist():
            steps[i] = _exact_steps(int(words[i]), float(offset[i]), noise, source)
    return steps


def _error_bound(
    cells: ArrayLike, shift: ArrayLike, total: ArrayLike, spread: float
) -> NDArray[np.float64]:
    """Bound ``|float - ideal|`` of ``offset + ratio Z`` over the whole cell of the uniform.

    The parts: ndtri, the width of the cell, the float operations. Infinite for cells 0 and 1.
    """
    number = np.asarray(cells, dtype=np.float64)
    width = np.where(number > 1.0, 1.0 / np.maximum(number - 0.5, 0.5), np.inf)
    size = np.abs(shift)
    own = _NDTRI_ERROR * (spread + size) + spread * width
    return own + (np.abs(total) + size + spread + 1.0) * _FLOAT_ERROR


def _exact_steps(word: int, offset: float, noise: _Noise, source: ByteSource) -> int:
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

    # The guess only has to be near: the two loops below decide.
    while tail.cell.bit_length() < 60 and tail.bits < 512:
        tail.refine()
    size = -float(ndtri(math.ldexp(tail.cell + 0.5, -tail.bits)))
    guess = round(offset + noise.spread * (size if positive else -size))
    while reaches(guess + 1):
        guess += 1
    while not reaches(guess):
        guess -= 1
    return guess
