"""Fixed-point enclosures against mpmath, and decisions against exact fractions."""

import decimal
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.privacy.noise import LazyUniform, exp_minus, normal_tail, positive_rational
from tests.privacy.oracles import Constant, seeded

BITS = [96, 160, 224, 544]
POINTS = [0, Fraction(1, 2**1074), Fraction(1, 3), 1, Fraction(499999, 100000), 9]
POINTS = [*map(Fraction, POINTS), *(Fraction(x, 100) for x in (1330, 2621, 6390, 6400)), 2**200]


def mp_tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def off_by_more_than_one(candidate, reference, argument, bits):
    with mpmath.workdps(1000):
        x = mpmath.mpf(argument.numerator) / mpmath.mpf(argument.denominator)
        return abs(candidate(argument, bits) - reference(x) * mpmath.mpf(2) ** bits) > 1


def mp_exp(x):
    return mpmath.exp(-x)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("point", POINTS)
def test_fixed_point_values_are_within_one_unit(point, bits):
    if point > 1000:
        assert normal_tail(Fraction(point), bits) == exp_minus(Fraction(point), bits) == 0
        return
    with decimal.localcontext() as context:  # settings of the caller do not matter
        context.prec, context.rounding = 3, decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        assert not off_by_more_than_one(normal_tail, mp_tail, point, bits)
        assert not off_by_more_than_one(exp_minus, mp_exp, point * 3, bits)


@given(
    st.fractions(min_value=0, max_value=30, max_denominator=10**12), st.sampled_from([96, 160, 544])
)
def test_fixed_point_values_at_random_points(argument, bits):
    assert not off_by_more_than_one(normal_tail, mp_tail, argument, bits)
    assert not off_by_more_than_one(exp_minus, mp_exp, argument, bits)


def fixed(probability):
    """Return the enclosure function of an exact fraction."""
    return lambda bits: round(probability * 2**bits)


def test_decision_agrees_with_the_refined_cell():
    """Every cell and many probabilities: certain cells draw nothing, and open ones draw."""
    for cell, k in itertools.product(range(16), range(64)):
        probability = Fraction(k, 63)
        uniform = LazyUniform(cell, 4, seeded(cell))
        below = uniform.below(fixed(probability))
        low, high = (Fraction(uniform.cell + i, 2**uniform.bits) for i in (0, 1))
        assert uniform.cell >> (uniform.bits - 4) == cell
        assert high <= probability if below else low >= probability
        gap = min(abs(Fraction(cell + i, 16) - probability) for i in (0, 1))
        is_open = Fraction(cell, 16) < probability < Fraction(cell + 1, 16)
        assert uniform.bits == (68 if is_open else 4) or gap == 0


@pytest.mark.parametrize("byte", [0, 255])
def test_a_broken_source_ends(byte):
    edge = Fraction(0 if byte == 0 else 1)
    uniform = LazyUniform(0 if byte == 0 else 2**64 - 1, 64, Constant(byte))
    # U >= 0 and U < 1 are sure events, and are answered as such.
    assert uniform.below(fixed(edge)) is (byte == 255)
    assert uniform.bits == 512


def test_a_comparison_without_end_is_decided_by_the_midpoint():
    assert not LazyUniform(0, 64, Constant(0)).below(fixed(Fraction(1, 2**514)))


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (3, Fraction(3)),
        (10**400, Fraction(10**400)),
        (0.1, Fraction(3602879701896397, 2**55)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int8(100), Fraction(100)),
        (Fraction(1, 3), Fraction(1, 3)),
        (5e-324, Fraction(1, 2**1074)),
    ],
)
def test_public_numbers_are_taken_exactly(number, exact):
    taken = positive_rational(number, "scale")
    assert taken == exact
    assert (taken * 10**30).numerator == (exact * 10**30).numerator


@pytest.mark.parametrize(
    "number", [0, -1, 0.0, -0.5, Fraction(0), math.nan, math.inf, True, np.True_, "1", None, 1j]
)
def test_other_public_numbers_are_refused(number):
    with pytest.raises(ValueError, match="scale must be a positive finite number"):
        positive_rational(number, "scale")


def test_planted_double_precision_value_is_caught():
    def in_doubles(point, bits):
        return int(mpmath.mpf(float(mp_tail(mpmath.mpf(float(point))))) * 2**bits)

    assert off_by_more_than_one(in_doubles, mp_tail, Fraction(1, 3), 96)
