"""Lattices of losses: masses, domination, second-order accuracy, cut tails."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dp_halfspace.privacy import _loss_lattice
from dp_halfspace.privacy._loss_lattice import (
    LossLattice,
    bounded_range,
    coarsen,
    randomised_response,
    repeat,
    total,
)
from dp_halfspace.privacy.profiles import exponential_delta, pure_delta

sizes = st.floats(1e-3, 8.0)


def profile(lattice, epsilons):
    """Hockey stick of the atoms, the cut mass at the largest loss."""
    losses = np.append(lattice.losses, lattice.reach)
    mass = np.append(lattice.mass, lattice.cut)
    gain = -np.expm1(np.minimum(np.subtract.outer(epsilons, losses), 0.0))
    return gain @ mass


def masses(lattice):
    """Mass under the first and under the second data set."""
    return lattice.mass.sum() + lattice.cut, (lattice.mass * np.exp(-lattice.losses)).sum()


@given(sizes)
def test_lattices_are_laws_under_both_data_sets(epsilon0):
    for lattice in (randomised_response(epsilon0), bounded_range(epsilon0)):
        assert masses(lattice) == pytest.approx((1.0, 1.0), rel=1e-11)
        assert lattice.losses[-1] == pytest.approx(epsilon0, rel=1e-12)


@given(sizes, st.floats(0.01, 3.0))
def test_rebinning_preserves_both_masses_and_dominates(epsilon0, step):
    epsilons = np.linspace(-1.2 * epsilon0, 1.2 * epsilon0, 41)
    for lattice in (randomised_response(epsilon0), bounded_range(epsilon0)):
        coarse = _loss_lattice._rebin(lattice, step)
        assert masses(coarse) == pytest.approx((1.0, 1.0), rel=1e-11)
        assert np.all(profile(coarse, epsilons) >= profile(lattice, epsilons) - 1e-13)


@given(st.floats(0.05, 6.0))
def test_chords_dominate_and_touch_the_profile(epsilon0):
    """Connect the dots: equal at the grid points, above between them."""
    lattice = bounded_range(epsilon0)
    dots = lattice.losses[1:-1:371]
    assert profile(lattice, dots) == pytest.approx(exponential_delta(epsilon0, dots), abs=1e-13)
    between = dots + 0.4 * lattice.step
    exact = exponential_delta(epsilon0, between)
    assert np.all(profile(lattice, between) >= exact - 1e-14)
    assert profile(lattice, between) == pytest.approx(exact, abs=epsilon0 * 1e-7)


def test_chords_are_second_order(monkeypatch):
    def excess(cells):
        monkeypatch.setattr(_loss_lattice, "_CELLS", cells)
        lattice = total([bounded_range(2.0)])
        between = lattice.losses[: -1 : cells // 16] + 0.5 * lattice.step
        return np.max(profile(lattice, between) - exponential_delta(2.0, between))

    assert excess(64) / excess(128) == pytest.approx(4.0, rel=0.1)


def test_randomised_response_is_exact():
    grid = np.linspace(-2, 2, 33)
    assert profile(randomised_response(1.3), grid) == pytest.approx(
        pure_delta(1.3, grid), abs=1e-15
    )


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_repeat_is_binomial(count):
    lattice = repeat(randomised_response(0.4), count)
    truth = 1 / (1 + math.exp(-0.4))
    assert lattice.mass == pytest.approx(binom.pmf(np.arange(count + 1), count, truth), rel=1e-12)
    assert lattice.losses[-1] == pytest.approx(0.4 * count)
    assert lattice.reach == pytest.approx(0.4 * count)


@given(st.lists(st.tuples(sizes, st.booleans()), min_size=2, max_size=5))
def test_sums_dominate_the_exact_law_of_randomised_responses(parts):
    """Atoms of all pure parts are enumerated; bounded-range parts are enlarged to pure ones."""
    epsilons = [e for e, _ in parts]
    lattice = total([randomised_response(e) for e in epsilons])
    exact_losses, exact_mass = [], []
    for signs in itertools.product((-1, 1), repeat=len(epsilons)):
        exact_losses.append(np.dot(signs, epsilons))
        exact_mass.append(
            math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, epsilons, strict=True))
        )
    grid = np.linspace(-sum(epsilons), sum(epsilons), 57)
    gain = -np.expm1(np.minimum(np.subtract.outer(grid, exact_losses), 0.0))
    exact = gain @ np.array(exact_mass)
    assert np.all(profile(lattice, grid) >= exact - 1e-12)
    assert profile(lattice, grid) == pytest.approx(exact, abs=2e-3 * sum(epsilons))
    mixed = total([bounded_range(e) if r else randomised_response(e) for e, r in parts])
    assert np.all(profile(mixed, grid) <= profile(lattice, grid) * (1 + 1e-3) + 1e-6)
    assert masses(mixed) == pytest.approx((1.0, 1.0), rel=1e-9)


def test_long_sums_stay_short_and_lose_nothing_that_matters():
    lattice = repeat(randomised_response(0.01), 10**6)
    assert len(lattice.mass) <= _loss_lattice._MAX_ATOMS
    assert 0 < lattice.cut < 1e-100
    assert masses(lattice)[0] == pytest.approx(1.0, abs=1e-9)
    losses, mass = lattice.losses, lattice.mass
    mean = 1e6 * 0.01 * math.tanh(0.005)
    assert (losses * mass).sum() == pytest.approx(mean, rel=1e-4)
    variance = 1e6 * 1e-4 / math.cosh(0.005) ** 2
    assert ((losses - mean) ** 2 * mass).sum() == pytest.approx(variance, rel=1e-3)
    assert lattice.error < 1e-5


def test_cut_mass_is_charged_at_the_largest_loss():
    lattice = _loss_lattice._trim(
        LossLattice(-1.0, 1.0, np.array([1e-130, 1.0, 1e-125]), reach=1.0)
    )
    assert lattice.mass.tolist() == [1.0]
    assert lattice.start == 0.0
    assert lattice.cut == 1e-125
    assert total([]).mass.tolist() == [1.0]


def test_coarsen_doubles_the_step():
    lattice = bounded_range(1.0)
    coarse = coarsen(lattice)
    assert coarse.step == 2 * lattice.step
    grid = np.linspace(-1, 1, 99)
    assert np.all(profile(coarse, grid) >= profile(lattice, grid) - 1e-15)


def test_rounding_losses_down_would_be_caught():
    """Planted bug: moving atoms to their lower neighbour loses privacy loss."""
    lattice = bounded_range(1.0)
    step = 0.3
    below = np.floor(lattice.losses / step).astype(int)
    lower = LossLattice(step * below[0], step, np.bincount(below - below[0], lattice.mass), 1.0)
    grid = np.linspace(-0.9, 0.9, 33)
    assert np.any(profile(lower, grid) < exponential_delta(1.0, grid) * 0.99)
