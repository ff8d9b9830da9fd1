"""Profiles against mpmath, quadrature and brute force; inverses on the safe side."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dp_halfspace.privacy import profiles
from dp_halfspace.privacy.profiles import (
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    log_gdp_delta,
    log_gdp_excess,
    log_gdp_upper,
)
from tests.privacy.oracles import exact_gdp

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0)
DELTAS = (1e-3, 1e-5, 1e-6, 1e-9, 1e-12, 1e-15)


# --- the Gaussian profile ---------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 1e-2, 0.1, 0.4999, 0.5, 0.5001, 1, 3, 10, 50, 1000])
def test_gdp_delta_equals_its_definition(mu):
    for z in (-25, -5, -1, -0.1, 0.0, 1e-3, 0.1, 0.5, 1, 2, 5, 10, 20, 29.9, 30.1, 36):
        epsilon = mu * (z + mu / 2)
        if abs(epsilon) < 1e5:
            assert gdp_delta(mu, epsilon) == pytest.approx(
                float(exact_delta(mu, epsilon)), rel=2e-12, abs=1e-305
            )


def exact_delta(mu, epsilon):
    """Evaluate the definition with enough digits for its cancellation."""
    with mpmath.workdps(50):
        return exact_gdp(mu, epsilon)


def test_far_tail_is_kept_as_a_logarithm():
    for mu, epsilon in ((0.1, 50.0), (0.3, 200.0), (2.0, 900.0), (60.0, 1e4)):
        expected = float(mpmath.log(exact_delta(mu, epsilon)))
        (got,) = log_gdp_delta(mu, np.array([epsilon]))
        assert got == pytest.approx(expected, rel=1e-12)
    assert log_gdp_delta(1.0, np.array([1e9]))[0] == pytest.approx(-0.5e18, rel=1e-8)


def test_edges_of_gdp_delta():
    assert gdp_delta(0.0, 0.5) == 0.0
    assert gdp_delta(0.0, -1.0) == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert gdp_delta(math.inf, 5.0) == 1.0
    assert gdp_delta(math.inf, math.inf) == gdp_delta(2.0, math.inf) == 0.0
    assert gdp_delta(2.0, -math.inf) == 1.0
    assert gdp_delta(1e3, 0.0) == 1.0
    assert gdp_delta(1e-300, 1.0) == 0.0
    assert isinstance(gdp_delta(1, 1), float)


@given(st.floats(1e-6, 100), st.floats(-40, 300), st.floats(0, 10), st.floats(1, 10))
def test_symmetry_bounds_and_monotony(mu, epsilon, step, factor):
    """delta(-e) = 1 - exp(-e) + exp(-e) delta(e); every profile lies in [(1 - e^t)_+, 1]."""
    delta = gdp_delta(mu, epsilon)
    assert -math.expm1(min(epsilon, 0.0)) * (1 - 1e-12) <= delta <= 1.0
    mirrored = math.exp(epsilon) * (gdp_delta(mu, -epsilon) - 1.0) + 1.0
    assert delta == pytest.approx(mirrored, rel=1e-9, abs=4e-16 * (1 + math.exp(epsilon)))
    assert delta <= gdp_delta(mu * factor, epsilon) * (1 + 1e-11)
    assert gdp_delta(mu, np.array([[epsilon + step]])).item() <= delta * (1 + 1e-11)


@pytest.mark.parametrize("mu", [1e-3, 0.2, 0.9, 4.0, 30.0])
def test_excess_kernel_equals_its_integral(mu):
    for z in (-8.0, -1.0, 0.0, 0.7, 3.0, 12.0):
        epsilon = mu * (z + mu / 2)
        with mpmath.workdps(40):
            q = (mpmath.mpf(epsilon) - mpmath.mpf(mu) ** 2 / 2) / mu
            expected = mpmath.log(mu * (mpmath.npdf(q) - q * mpmath.ncdf(-q)))
        (got,) = log_gdp_excess(mu, np.array([epsilon]))
        assert got == pytest.approx(float(expected), abs=1e-11, rel=1e-12)
    expected, _ = quad(lambda t: (t - 0.3) * norm.pdf(t, 0.18, 0.6), 0.3, 8)
    assert np.exp(log_gdp_excess(0.6, np.array([0.3])))[0] == pytest.approx(expected, rel=1e-7)
    assert np.exp(log_gdp_excess(0.0, np.array([-0.4, 0.4]))).tolist() == pytest.approx([0.4, 0.0])


# --- inverses ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_gdp_epsilon_is_safe_and_tight(epsilon, delta):
    """And so is gdp_mu."""
    mu = gdp_mu(epsilon, delta)
    found = gdp_epsilon(mu, delta)
    assert found <= epsilon
    for at in (epsilon, found):
        assert gdp_delta(mu, at) <= delta
        assert exact_delta(mu, at) <= mpmath.mpf(delta)
    assert exact_delta(mu, found * (1 - 1e-8)) > mpmath.mpf(delta)
    assert exact_delta(mu * (1 + 1e-8), epsilon) > mpmath.mpf(delta)


def test_edges_of_the_inverses():
    assert gdp_mu(1.0, 0.0) == 0.0
    assert gdp_mu(math.inf, 0.0) == gdp_mu(math.inf, 1e-6) == math.inf
    assert gdp_epsilon(1.0, 0.0) == gdp_epsilon(math.inf, 0.5) == math.inf
    assert gdp_epsilon(0.0, 0.0) == gdp_epsilon(0.0, 0.5) == 0.0
    assert gdp_epsilon(0.1, 0.5) == 0.0
    assert gdp_epsilon(1e200, 1e-6) == math.inf
    assert 0 < gdp_mu(0.0, 1e-6) <= 1e-6 * math.sqrt(2 * math.pi)
    assert gdp_mu(0.0, 1e-6) == pytest.approx(1e-6 * math.sqrt(2 * math.pi), rel=1e-9)
    assert 0 < gdp_mu(1e-8, 1e-300) < 1e-8
    # A subnormal root is too large, or a relative step down does not change it.
    assert gdp_mu(0.0, 3e-322) == gdp_mu(1e-320, 1e-315) == gdp_mu(0.0, 5e-324) == 0.0
    assert 0 < gdp_mu(0.0, 1e-300) <= 1e-300 * math.sqrt(2 * math.pi)
    assert 5 < gdp_mu(1.0, 0.9999) < 10
    assert gdp_delta(gdp_mu(3.0, 1 - 1e-12), 3.0) <= 1 - 1e-12
    assert gdp_delta(10.0, gdp_epsilon(10.0, 0.999999)) <= 0.999999
    # At the computed delta of 0 an epsilon of 0 has no margin for rounding.
    assert gdp_epsilon(1.0, gdp_delta(1.0, 0.0)) > 0.0


BAD = {
    "mu": [*((gdp_delta, bad, 1.0) for bad in (-1.0, math.nan)), (gdp_epsilon, -0.1, 1e-6)],
    "epsilon": [
        *((gdp_delta, 1.0, bad) for bad in (math.nan, [0.0, math.nan])),
        *((gdp_mu, bad, 1e-6) for bad in (-1.0, math.nan)),
    ],
    "delta": [*((gdp_epsilon, 1.0, bad) for bad in (1.0, -1e-9, math.nan)), (gdp_mu, 1.0, 1.5)],
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_arguments_are_named(name):
    for function, *arguments in BAD[name]:
        with pytest.raises(ValueError, match=rf"^{name} "):
            function(*arguments)


def test_drops_of_the_mills_ratio_far_out_count_the_whole_interval():
    x, mu = np.array([3e6]), 2e6
    assert profiles._mills_drop(x, mu) == pytest.approx(1 / 3e6 - 1 / 5e6, rel=1e-11)


def test_profiles_are_computed_in_float64_and_in_silence():
    assert gdp_delta(0.2, np.float32(1.0)) == gdp_delta(0.2, 1.0)
    with np.errstate(all="raise"):
        assert profiles.log_gdp_excess(1e-150, np.array([1e300])) == -np.inf


def test_a_root_of_zero_is_raised():
    calls = []

    def beyond(t):
        calls.append(t)
        assert len(calls) < 99
        return 1e-290 - t

    assert 1e-290 <= profiles.step_up(0.0, beyond) <= 1e-289


def test_the_slope_of_the_mills_ratio_keeps_its_digits_far_out():
    """There 1 - z M(z) would cancel to nothing, or below zero."""
    z = np.array([0.0, 5.0, 29.9, 30.1, 1e3, 1e8, 1e20])
    with mpmath.workdps(60):
        ratio = [
            mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2))
            for x in map(mpmath.mpf, z[:5])
        ]
        exact = [
            float(1 - x * r * mpmath.exp(mpmath.mpf(x) ** 2 / 2))
            for x, r in zip(z, ratio, strict=False)
        ]
    far = list(1 / z[5:] ** 2)
    np.testing.assert_allclose(profiles._mills_slope(z), exact + far, rtol=1e-12)
    np.testing.assert_allclose(profiles._mills_slope(z[3:]), [*exact[3:], *far], rtol=1e-12)


@pytest.mark.parametrize("epsilon_of", [lambda mu: 0.0, lambda mu: 1e5 * mu + 0.5 * mu * mu])
def test_both_slacks_are_needed(epsilon_of):
    """One covers what rounding of the epsilon does not, and the other one far tails."""
    for mu in (1e-3, 0.1, 1.0, 2.0):
        epsilon = epsilon_of(mu)
        with mpmath.workdps(60):
            x = mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2
            ends = (mpmath.ncdf(-x), mpmath.exp(epsilon) * mpmath.ncdf(-x - mu))
            exact = mpmath.log(ends[0] - ends[1])
            assert log_gdp_upper(mu, epsilon) - exact > max(1e-12, 1e-17 * x * x)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_roots_are_checked_before_they_are_used(monkeypatch, sign):
    right = profiles.root
    monkeypatch.setattr(profiles, "root", lambda *ends: right(*ends) + sign * 2e-10)
    assert log_gdp_upper(profiles._largest_mu.__wrapped__(1.0, 1e-6), 1.0) <= math.log(1e-6)
    assert log_gdp_upper(1.0, gdp_epsilon(1.0, 1e-6)) <= math.log(1e-6)


def test_a_raw_root_is_caught():
    """Planted bug: a calibration that returns the root itself is sometimes unsafe."""

    def raw_root(epsilon, delta):
        def excess(log_mu):
            return float(log_gdp_delta(math.exp(log_mu), np.asarray(epsilon))) - math.log(delta)

        return math.exp(profiles.root(excess, math.log(1e-6), math.log(1e2)))

    def violations(calibration):
        grid = itertools.product(EPSILONS, DELTAS)
        return sum(exact_delta(calibration(e, d), e) > mpmath.mpf(d) for e, d in grid)

    assert violations(raw_root) > 0
    assert violations(gdp_mu) == 0


def test_margins_exceed_the_rounding_errors():
    """The upper bound lies above the exact profile by more than ten times the error."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        mu = 10 ** rng.uniform(-3, 1.7)
        z = rng.uniform(-0.5 * mu, 35)
        epsilon = mu * (z + mu / 2)
        exact = float(mpmath.log(exact_delta(mu, epsilon)))
        error = abs(float(log_gdp_delta(mu, np.asarray(epsilon))) - exact)
        assert log_gdp_upper(mu, epsilon) - exact > 10 * error or exact > -1e-11
