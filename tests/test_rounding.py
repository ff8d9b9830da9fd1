"""The factors of `_rounding` bring computed numbers to the safe side of the exact ones."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
from scipy.optimize import brentq

from dp_halfspace._rounding import DOWN, FAR_DOWN, FAR_UP, UP

RNG = np.random.default_rng(0)


def chain(n_steps):
    """Return a number after steps of float64, and the same number in 60 digits."""
    value = float(RNG.uniform(1.0, 2.0))
    with mpmath.workdps(60):
        exact = mpmath.mpf(value)
        for _ in range(n_steps):
            factor = float(RNG.uniform(0.5, 2.0))
            value, exact = value * factor, exact * factor
            value, exact = value / 1.7 + factor, exact / mpmath.mpf(1.7) + factor
            value, exact = float(np.sqrt(value)), mpmath.sqrt(exact)
        return value, exact


def test_a_bound_after_thousands_of_operations_is_not_too_low():
    """Planted: without the factor some are."""
    chains = [chain(n_steps) for n_steps in (1, 10, 1000) for _ in range(30)]
    assert all(mpmath.mpf(value * UP) >= exact for value, exact in chains)
    assert all(mpmath.mpf(value * DOWN) <= exact for value, exact in chains)
    assert any(mpmath.mpf(value) < exact for value, exact in chains)
    assert any(mpmath.mpf(value) > exact for value, exact in chains)


def test_parts_of_a_budget_fit_into_it_exactly():
    """Planted: without the factor some do not."""
    whole = []
    for epsilon in RNG.uniform(0.01, 10.0, size=300).tolist():
        for n_parts in (3, 7, 11):
            part = epsilon / n_parts
            assert n_parts * Fraction(part * DOWN) <= Fraction(epsilon)
            whole.append(n_parts * Fraction(part) <= Fraction(epsilon))
    assert not all(whole)


def test_roots_found_by_iteration_are_on_the_safe_side():
    """Planted: without the factors some are not."""
    roots = []
    for target in RNG.uniform(0.1, 5.0, size=100).tolist():
        root = float(brentq(lambda x, y=target: x**3 - y, 0.0, 5.0, xtol=1e-300, rtol=1e-12))
        with mpmath.workdps(60):
            exact = mpmath.cbrt(mpmath.mpf(target))
        assert mpmath.mpf(root * FAR_DOWN) <= exact <= mpmath.mpf(root * FAR_UP)
        roots.append((root, exact))
    assert any(mpmath.mpf(root) < exact for root, exact in roots)
    assert any(mpmath.mpf(root) > exact for root, exact in roots)
