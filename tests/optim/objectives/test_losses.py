"""Every constant of every loss against a grid, numerical derivatives and mpmath."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_halfspace.optim import get_loss
from dp_halfspace.optim.certificate import EPS
from dp_halfspace.optim.losses import (
    HINGE,
    LOGISTIC,
    SQUARED_HINGE,
    huber_hinge,
)
from tests.optim.cases import LOSSES, exact_slope, loss_id

GRID = np.union1d(np.linspace(-12, 12, 48001), np.linspace(-0.2, 2.5, 27001))
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=loss_id)


def constants_hold(loss):
    """Compare all constants with suprema over a grid: never below, and not much above."""
    slopes = loss.derivative(GRID)
    checks = [
        (loss.self_bound, loss.h(GRID).max(), 1e-6),
        (loss.at_zero, float(loss.value(0.0)), 1e-12),
    ]
    if math.isfinite(loss.lipschitz):
        checks.append((loss.lipschitz, np.abs(slopes).max(), 1e-2))
    even = np.linspace(-12, 12, 24001)
    quotients = np.diff(loss.derivative(even)) / np.diff(even)
    checks.append((loss.smoothness * (1 + 1e-9), quotients.max(), 1e-3))
    for a in (0.0, 0.3, 1.0, 2.0, 7.0):
        inside = np.append(GRID[np.abs(GRID) <= a], [-a, a])
        checks.append((loss.slope_bound(a), np.abs(loss.derivative(inside)).max(), 1e-9))
    return all(
        0 <= bound - seen * (1 - 1e-13) <= slack * (1 + seen) for bound, seen, slack in checks
    )


@pytest.mark.parametrize("width", [0.9, 0.7, 0.3, 0.1, 0.05])
def test_constants_are_rounded_up(width):
    """As real numbers they are at least what they bound."""
    assert Fraction(huber_hinge(width).smoothness) * Fraction(2.0 * width) >= 1
    with mpmath.workdps(40):
        assert LOGISTIC.self_bound >= mpmath.lambertw(mpmath.exp(-1))
        assert LOGISTIC.at_zero >= mpmath.log(2)


@each_loss
def test_constants_are_suprema(loss):
    """The self bound where it is said to be attained, too."""
    assert constants_hold(loss)
    assert float(loss.h(np.array(loss.self_argmax))) == pytest.approx(loss.self_bound, rel=1e-9)
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    np.testing.assert_array_equal(again.value(GRID), loss.value(GRID))


@each_loss
@pytest.mark.parametrize("name", ["self_bound", "at_zero", "lipschitz", "smoothness"])
@pytest.mark.parametrize("factor", [0.9, 1.2])
def test_wrong_constants_are_seen(loss, name, factor):
    value = getattr(loss, name)
    if math.isfinite(value):
        assert not constants_hold(replace(loss, **{name: factor * value}))


@each_loss
def test_derivatives_against_differences(loss):
    knots = np.array([0.0])
    if "knot" in getattr(loss.value, "keywords", {}):
        keywords = loss.value.keywords
        knots = np.array([keywords["knot"], keywords["knot"] - keywords["width"]])
    if loss is SQUARED_HINGE:
        knots = np.array([1.0])
    t = np.linspace(-9, 9, 601)
    t = t[np.abs(t[:, None] - knots).min(axis=1) > 1e-3]
    step = 1e-4
    first = (loss.value(t + step) - loss.value(t - step)) / (2 * step)
    second = (loss.derivative(t + step) - loss.derivative(t - step)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(t), first, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(loss.second_derivative(t), second, rtol=1e-6, atol=1e-7)


@each_loss
def test_shape(loss):
    slopes = loss.derivative(GRID)
    assert (np.diff(slopes) >= -1e-15).all()
    assert loss.monotone == bool((slopes <= 0).all())
    assert (loss.value(GRID) >= 0).all()
    assert (loss.second_derivative(GRID) >= 0).all()
    assert loss.derivative(np.array(0.5)).shape == ()


@each_loss
def test_slopes_are_evaluated_as_accurately_as_the_certificate_assumes(loss):
    rng = np.random.default_rng(1)
    t = np.concatenate([rng.normal(0, s, 150) for s in (0.1, 1, 5, 40)])
    computed = loss.derivative(t)
    with mpmath.workdps(40):
        for point, slope in zip(t, computed, strict=True):
            error = abs(mpmath.mpf(float(slope)) - exact_slope(loss, mpmath.mpf(float(point))))
            bound = EPS * (8 * loss.slope_bound(abs(point)) + 16 * loss.smoothness)
            assert error <= bound


def test_exponential_is_as_accurate_as_assumed():
    """The one assumption about the mathematical library: 8 units of rounding."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-700, 700, 2000), rng.normal(0, 1, 2000)])
    computed = np.exp(x)
    with mpmath.workdps(40):
        worst = max(
            abs(mpmath.mpf(float(c)) / mpmath.exp(mpmath.mpf(float(v))) - 1)
            for c, v in zip(computed, x, strict=True)
        )
    assert worst <= 8 * EPS


@each_loss
def test_extremes_are_finite_or_truly_beyond(loss):
    t = np.array([-1e300, -1e160, -800.0, 800.0, 1e160, 1e300])
    for values in (loss.derivative(t), loss.second_derivative(t)):
        assert np.isfinite(values).all()
    values = loss.value(t)
    assert not np.isnan(values).any()
    if math.isfinite(loss.lipschitz):
        assert np.isfinite(values).all()
    assert not np.isnan(loss.h(t)).any()


@given(st.floats(-700, 700))
def test_softplus_against_mpmath(t):
    loss = LOGISTIC
    with mpmath.workdps(40):
        x = -mpmath.mpf(t)
        value = mpmath.log1p(mpmath.exp(x))
        weight = 1 / (1 + mpmath.exp(-x))
        assert abs(loss.value(t) - value) <= 1e-13 * (1 + abs(value))
        curvature = weight / (1 + mpmath.exp(x))
        assert abs(loss.second_derivative(t) - curvature) <= 1e-13 * curvature + 1e-300
    s = loss.self_bound
    assert s * math.exp(s) == pytest.approx(math.exp(-1), rel=1e-10)


def test_the_rounded_corner_stays_near_the_hinge():
    hinge = np.maximum(1.0 - GRID, 0.0)
    np.testing.assert_array_equal(HINGE.value(GRID), huber_hinge(1e-3).value(GRID))
    for h in (1.0, 0.3, 1e-3):
        above = huber_hinge(h).value(GRID) - hinge
        assert above.min() >= -1e-12
        assert h / 4 * 0.99 <= above.max() <= h / 4 * (1 + 1e-9)


def test_lookup():
    assert get_loss("logistic") is LOGISTIC
    assert get_loss("huber_hinge", h=0.25) == huber_hinge(0.25)
    for name in ("hinge", "squared", "squared_hinge"):
        assert get_loss(name).name == name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_loss("ramp"), "unknown loss"),
        (lambda: get_loss("hinge", h=1.0), "no parameters"),
        *((lambda bad=bad: huber_hinge(bad), "h must be") for bad in (0.0, -1.0, 1.1, math.nan)),
        *((lambda bad=bad: LOGISTIC.slope_bound(bad), "at least 0") for bad in (-1.0, math.nan)),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
