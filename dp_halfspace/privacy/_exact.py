"""Exact numbers, and exact comparisons of a uniform random number with a real number.

A uniform number is known to the bits drawn so far, a real number (a normal tail, an exponential)
to a fixed-point enclosure; both are refined until the order is certain, as in real arithmetic:
``docs/proofs/noise.md``, section 2.
"""

import functools
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
from numbers import Rational, Real

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.randomness import ByteSource, read_words

# Refinement stops here: an order still open after this many bits has probability below
# 2**-460 and is settled by the midpoint, so a broken byte source cannot cause a hang.
_MAX_BITS = 512
# Bits of a word of randomness.
_WORD_BITS = 64
# An enclosure is this much finer than the uniform it is compared with.
_GUARD_BITS = 32
# A float threshold 2**64 exp(-gap) is off by less than this many units: it allows np.exp an
# absolute error of 2**-41, where 2**-52 is usual, and all other roundings together 2**-41.
THRESHOLD_ERROR = 2.0**24


def positive_rational(number: object, name: str) -> Fraction:
    """Return a positive finite public number as an exact fraction or refuse it."""
    exact = Fraction(0)
    if isinstance(number, Rational):
        # A numpy integer inside a Fraction would overflow silently.
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
    """A uniform number in ``[cell, cell + 1) * 2**-bits``; further bits come from ``source``."""

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
            middle = enclosure(self.bits + _GUARD_BITS)
            if (self.cell + 1) << _GUARD_BITS <= middle - 1:
                return True
            if self.cell << _GUARD_BITS >= middle + 1:
                return False
            if self.bits >= _MAX_BITS:
                return (2 * self.cell + 1) << _GUARD_BITS < 2 * middle
            self.refine()


def random_events(
    probabilities: NDArray[np.float64],
    enclosure: Callable[[int], Callable[[int], int]],
    source: ByteSource,
) -> NDArray[np.bool_]:
    """Return independent events, decided in floating point where that is certain.

    ``enclosure(i)`` encloses the exact probability of event i, as `LazyUniform.below` takes it.
    """
    words = read_words(probabilities.size, source)
    uniform, threshold = words.astype(np.float64), probabilities * 2.0**64
    happened = uniform < threshold
    for i in np.flatnonzero(np.abs(uniform - threshold) <= THRESHOLD_ERROR).tolist():
        happened[i] = LazyUniform(int(words[i]), 64, source).below(enclosure(i))
    return np.asarray(happened, dtype=np.bool_)


def _digits(bits: int) -> int:
    """Return decimal digits that resolve ``2**-bits`` with 15 digits to spare."""
    return bits * 30103 // 100_000 + 16


def _fixed_point(value: Decimal, bits: int) -> int:
    """Return ``value * 2**bits`` rounded to an integer."""
    return int((value * Decimal(1 << bits)).to_integral_value())


@functools.lru_cache(maxsize=32)
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
        # Past odd >= 2 c^2 the terms at least halve, so what is left out is below one term.
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
