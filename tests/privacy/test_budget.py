"""Parts of a budget cost together what the whole does, not more and not much less."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from dp_halfspace import privacy
from dp_halfspace.privacy import Gaussian, GaussianNoise, Pure
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import L2LaplaceNoise, NoNoise

BUDGETS = [(1.0, 1e-6), (0.01, 0.25), (300.0, 1e-12), (1.0, 0.0), (1e-3, 0.0)]


def event(part):
    return Pure(part.epsilon) if part.is_pure else Gaussian(part.mu)


def assert_whole(parts, epsilon, delta):
    spent = privacy.epsilon([event(part) for part in parts], delta)
    assert epsilon * (1 - 1e-7) <= spent <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("share", [1e-6, 0.04, 0.5, 0.9])
def test_a_share_and_the_rest_make_the_whole(epsilon, delta, share):
    whole = Budget.of(epsilon, delta)
    part, rest = whole.split(share)
    assert part.is_pure == rest.is_pure == whole.is_pure == (delta == 0)
    assert_whole((part, rest), epsilon, delta)
    # As epsilons of their own, too, but where a large delta alone pays for a part.
    again = [Budget.of(each.epsilon, delta) for each in (part, rest)]
    if all(each.epsilon > 0 for each in again):
        assert privacy.epsilon([event(each) for each in again], delta) <= epsilon
    further = (part, *rest.split(share))
    assert_whole(further, epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("count", [1, 3, 5, 64])
def test_equal_parts_make_the_whole(epsilon, delta, count):
    part = Budget.of(epsilon, delta).equal_parts(count)
    assert_whole([part] * count, epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_parts_of_given_shares_make_the_whole(epsilon, delta):
    parts = Budget.of(epsilon, delta).parts((0.5, 0.3, 0.2))
    assert_whole(parts, epsilon, delta)
    assert event(parts[0]) != event(parts[1])


@pytest.mark.parametrize("size", [0.1, 0.7, 1.0, 1.3])
def test_parts_are_rounded_down(size):
    """To the last bit: a float nearest to a part may be above it."""
    for count in range(2, 30):
        parts = Budget.gaussian(size).equal_parts(count), Budget.of(size, 0.0).equal_parts(count)
        assert count * Fraction(parts[0].mu) ** 2 <= Fraction(size) ** 2
        assert count * Fraction(parts[1].epsilon) <= Fraction(size)
        shares = 1.0 - 2.0**-count, 2.0**-count
        parts = Budget.gaussian(size).parts(shares)
        assert sum(Fraction(part.mu) ** 2 for part in parts) <= Fraction(size) ** 2
        parts = Budget.of(size, 0.0).parts(shares)
        assert sum(Fraction(part.epsilon) for part in parts) <= Fraction(size)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_a_rest_that_is_not_lowered_is_seen(monkeypatch, epsilon, delta):
    """Planted: the rest is the whole."""
    monkeypatch.setattr(Budget, "split", lambda whole, share: (whole, whole))
    with pytest.raises(AssertionError):
        test_a_share_and_the_rest_make_the_whole(epsilon, delta, 0.5)


def test_no_budget_without_noise_is_divided():
    whole = Budget.of(math.inf, 0.0)
    assert whole.split(0.3) == (whole, whole)
    assert whole.equal_parts(9) is whole
    assert whole.is_infinite
    assert not whole.is_pure
    assert Budget.gaussian(math.inf).is_infinite


def test_noise_is_that_of_the_budget():
    assert Budget.of(0.5, 0.0).noise(2.0) == L2LaplaceNoise(2.0, 0.5)
    assert Budget.of(math.inf, 0.0).noise(2.0) == NoNoise()
    mu = privacy.gdp_mu(0.5, 1e-6)
    assert Budget.of(0.5, 1e-6).noise(2.0) == GaussianNoise(2.0, mu)
    assert Budget.gaussian(0.25).noise(2.0) == GaussianNoise(2.0, 0.25)
    assert replace(Budget.gaussian(0.25), delta=1e-6).epsilon <= privacy.gdp_epsilon(0.25, 1e-6)
