"""What Gaussian and Laplace noise have in common: low bits, arguments, where bytes come from."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dp_halfspace.privacy.noise import l2_laplace, rounded_gaussian
from tests.privacy.oracles import FALSE_ALARM, grid_of, seeded

both = pytest.mark.parametrize("mechanism", [rounded_gaussian, l2_laplace])


def grid(mechanism, scale, size):
    return grid_of(scale * (math.sqrt(size) if mechanism is l2_laplace else 1.0))


@pytest.mark.sampled(6)
@both
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 0.1 + 2.0**-30, 1 / 3, 1e5 + 0.7])
def test_low_bits_do_not_depend_on_the_value(mechanism, value):
    """Every output is on one public grid. Planted: the textbook mechanism in floating point."""
    draw = [mechanism(np.full(1000, value), 2.0, source=seeded(i)) for i in range(100)]
    index = np.concatenate(draw) / grid(mechanism, 2.0, 1000)
    assert (index == np.rint(index)).all()
    low = index.astype(np.int64) & 255
    assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > FALSE_ALARM
    naive = value + np.random.default_rng(0).normal(0.0, 2.0, 10_000)
    assert np.mean(naive % grid(mechanism, 2.0, 1000) != 0) > 0.99


@both
@pytest.mark.parametrize(
    "value",
    [0.5, np.float32(0.5), 3, np.array(0.5), [1, 2, 3], np.zeros((2, 3, 4)), np.zeros((0, 5))],
    ids=repr,
)
def test_shape_and_type(mechanism, value):
    released = mechanism(value, 1.0)
    assert isinstance(released, np.ndarray)
    assert (released.shape, released.dtype) == (np.shape(value), np.float64)


@both
def test_input_is_not_modified_and_order_is_kept(mechanism):
    value = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    before = value.copy()
    released = mechanism(value, 2.0**-20, source=seeded())
    np.testing.assert_array_equal(value, before)
    np.testing.assert_array_equal(np.rint(released), before)
    assert not np.shares_memory(released, value)


@both
def test_values_and_releases_are_clipped_to_where_all_multiples_of_the_grid_are_floats(mechanism):
    largest = 2.0**52 * grid_of(1.0)
    for factor in (0.75, 1.0, 1.25, 1.75, 3.0):
        released = mechanism(np.array([factor, -factor]) * largest, 1.0)
        expected = min(factor, 1.0) * largest
        assert (np.abs(released) <= largest).all()
        np.testing.assert_allclose(released, [expected, -expected], rtol=1e-6)


@both
@given(
    value=hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=0, max_dims=2), elements=st.floats(width=64)
    ),
    scale=st.floats(2.0**-900, 2.0**900) | st.sampled_from([2.0**-900, 2.0**900, 5e-200, 1e200]),
    grid_bits=st.sampled_from([0, 3, 20, 30]),
)
def test_no_value_raises_or_warns(mechanism, value, scale, grid_bits):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        released = mechanism(value, scale, source=seeded(), grid_bits=grid_bits)
    assert np.all(np.isfinite(released))
    if mechanism is rounded_gaussian:
        steps = released / math.ldexp(1.0, math.frexp(scale)[1] - 1 - grid_bits)
        assert np.all(steps == np.rint(steps))
        assert np.all(np.abs(steps) <= 2.0**52)


BAD_SCALES = [0, -1.0, math.nan, math.inf, 2.0**-901, 2.0**901, True, "1", None, 1j]
BAD = [*(("scale|sigma", bad) for bad in (*BAD_SCALES, Fraction(10) ** 400, np.ones(2)))]
BAD += [("grid_bits", bad) for bad in (-1, 37, 20.0, True, None, "20")]


@both
@pytest.mark.parametrize(("name", "bad"), BAD, ids=repr)
def test_bad_arguments_are_refused(mechanism, name, bad):
    scale, rest = (1.0, {"grid_bits": bad}) if name == "grid_bits" else (bad, {})
    with pytest.raises(ValueError, match=rf"({name}) must be"):
        mechanism(np.zeros(2), scale, **rest)


@both
def test_same_bytes_same_output_and_fresh_bytes_fresh_output(mechanism):
    value = np.linspace(-1, 1, 1000)
    first = mechanism(value, 0.7, source=seeded(8))
    np.testing.assert_array_equal(first, mechanism(value, 0.7, source=seeded(8)))
    for other in (mechanism(value, 0.7, source=seeded(9)), mechanism(value, 0.7)):
        assert np.mean(first == other) < 0.05
    assert np.mean(mechanism(value, 0.7) == mechanism(value, 0.7)) < 0.05
