"""Composition against closed forms, quadrature and brute force."""

import functools
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from dp_halfspace.exceptions import BudgetError
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.accounting import calibrate, delta, epsilon
from dp_halfspace.privacy.events import (
    Either,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    RandomStopping,
    Repeated,
    SampledGaussian,
)
from dp_halfspace.privacy.pld import PLD
from dp_halfspace.privacy.profiles import gdp_delta, gdp_epsilon, gdp_mu
from tests.privacy.oracles import exact_gdp, fresh_losses, glm, of_gaussian

BUDGETS = ((0.1, 1e-5), (1.0, 1e-3), (1.0, 1e-6), (3.0, 1e-9), (10.0, 1e-12), (50.0, 1e-15))


def auc(mu, log_ratio=0.0):
    """Objective perturbation of a ranking objective."""
    return ObjectivePerturbation(
        log_ratio, ((1, 0.0), (1, math.sqrt(0.75) * mu), (2, mu)), pairwise=True
    )


# --- closed forms -----------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "small_delta"), BUDGETS)
def test_gaussians_add_in_quadrature(budget, small_delta):
    """Planted: the mean of mu, and the largest one."""
    mu = gdp_mu(budget, small_delta)
    events = [Gaussian(0.6 * mu), Gaussian(0.8 * mu)]
    assert delta(events, budget) <= small_delta
    assert epsilon(events, small_delta) == pytest.approx(gdp_epsilon(mu, small_delta), rel=1e-8)
    assert epsilon(events, small_delta) <= budget * (1 + 1e-9)
    for planted in (0.7 * mu, 0.8 * mu):
        assert delta([Gaussian(planted)], budget) < 0.8 * small_delta


@pytest.mark.parametrize(("first", "shift"), [(-3, 0.0), (-1, 0.0), (0, 4.0)])
def test_errors_of_places_are_relative_to_the_farthest_loss(first, shift):
    """Wherever it is: at the lower end, at the upper one, or in a shift of a term."""
    error, mass, terms = 2.0**-10, np.array([0.5, 0.0, 0.0, 0.0, 0.5]), ((0.5, 0.0, 0.0),)
    loss = PLD(1.0, first, mass, error=error)
    bound = accounting.ProfileBound(loss, (*terms, (0.5, shift, 0.0)), pairwise=False)
    farthest = max(-first, first + 4) + shift
    threshold = 0.9 - error * farthest
    gaps = threshold - np.add.outer([0.0, shift], loss.losses)
    exact = 0.5 * (mass * np.maximum(-np.expm1(np.minimum(gaps, 0.0)), 0.0)).sum()
    assert bound.log_delta(0.9) == pytest.approx(math.log(exact) + error, rel=1e-9)


def test_every_run_counts_before_a_choice_is_beyond_its_range():
    events = [Either(0.3, 0.2), Repeated(Pure(0.1), 5)]
    least, _ = accounting._compose(events).beyond
    assert least == Fraction(0.3) + 5 * Fraction(0.1)


def exact_beside_pure(mu, epsilon0, value):
    epsilon0 = mpmath.mpf(epsilon0)
    truth = 1 / (1 + mpmath.exp(-epsilon0))
    high, low = (exact_gdp(mu, value + s * epsilon0) for s in (-1, 1))
    return truth * high + (1 - truth) * low


def exact_beside_exponential(mu, epsilon0, value):
    """Integral over the tilted uniform distribution of the loss of the exponential mechanism."""
    epsilon0 = mpmath.mpf(epsilon0)
    scale = 1 / (4 * mpmath.sinh(epsilon0 / 2))
    return mpmath.quad(
        lambda t: scale * mpmath.exp(t / 2) * exact_gdp(mu, value - t),
        mpmath.linspace(-epsilon0, epsilon0, 5),
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("event", "exact", "tightness"),
    [(Pure, exact_beside_pure, 1e-8), (Exponential, exact_beside_exponential, 1e-6)],
)
@pytest.mark.parametrize(("budget", "small_delta"), BUDGETS)
def test_one_bounded_piece_beside_a_gaussian(event, exact, tightness, budget, small_delta):
    """Above the exact root, which is bracketed in high precision, and close to it."""
    mu = gdp_mu(budget, small_delta) * 0.9
    events = [event(0.2 * budget), Gaussian(mu)]
    found = epsilon(events, small_delta)
    with mpmath.workdps(40):
        assert exact(mu, 0.2 * budget, found) <= small_delta
        assert exact(mu, 0.2 * budget, found * (1 - tightness)) > small_delta
    assert delta(events, found) <= small_delta


def test_pure_sums_are_exact_rationals():
    exact = sum(Fraction(e) for e in (0.1, 0.2, 0.3))
    total = epsilon([Pure(0.1), Exponential(0.2), Pure(0.3)], 0.0)
    assert Fraction(total) >= exact > Fraction(math.nextafter(total, 0.0))
    four = [Repeated(Pure(0.25), 4)]
    assert epsilon(four, 0.0) == 1.0
    assert delta(four, 1.0) == 0.0 < delta(four, math.nextafter(1.0, 0.0))
    assert epsilon([Pure(0.5), ObjectivePerturbation(0.25, ((1, 0.0),))], 0.0) == 0.75
    second = calibrate(lambda e: [Pure(0.3), Pure(e)], 1.0, 0.0, lower=0.0, upper=1.0, rtol=0.0)
    assert Fraction(0.3) + Fraction(second) <= 1
    assert Fraction(0.3) + Fraction(math.nextafter(second, 1.0)) > 1


def test_nothing_and_no_guarantee():
    assert epsilon([], 0.0) == epsilon([], 1e-6) == delta([], 0.0) == 0.0
    assert delta([], -1.0) == pytest.approx(1 - math.exp(-1), rel=1e-10)
    assert epsilon([Gaussian(0.0), Pure(0.0), Exponential(0.0)], 0.0) == 0.0
    for event in (
        Gaussian(math.inf),
        Pure(math.inf),
        Exponential(math.inf),
        ObjectivePerturbation(math.inf, ((1, 0.0),)),
        ObjectivePerturbation(0.0, ((1, 0.0), (1, math.inf))),
        of_gaussian(math.inf, 0.0, 0.0),
        of_gaussian(2.0, math.inf, 0.0),
        of_gaussian(2.0, 0.0, math.inf),
        of_gaussian(2.0, 0.0, 0.0, (1.0, math.inf)),
        Repeated(Repeated(Gaussian(1.0), 2**170), 2**170),
    ):
        assert epsilon([Gaussian(0.1), event], 0.5) == math.inf
        assert delta([Gaussian(0.1), event], 100.0) == 1.0
        assert delta([event], math.inf) == 0.0
    for event in (Gaussian(0.1), glm(0.1)):
        assert epsilon([event], 0.0) == math.inf
        assert epsilon([event, Pure(1.0)], 0.0) == math.inf
        assert 0.0 < delta([event], 500.0) < 1e-300


@pytest.mark.parametrize(
    ("count", "pures"),
    [
        (2**63, [Exponential(1e-3)]),
        pytest.param(2**63, [Pure(1e-3)], marks=pytest.mark.slow),
        pytest.param(2**40 + 1, [Pure(1e-3), Exponential(1e-3)], marks=pytest.mark.slow),
    ],
)
def test_huge_counts_are_charged_safely(count, pures):
    """Rounding errors of so many terms are no guarantee; the sum of all losses still is one."""
    for event in pures:
        many = Repeated(event, count)
        total = epsilon([many], 0.0)
        assert total == pytest.approx(1e-3 * count)
        # The mean loss of one run: of randomised response, and of a bounded range.
        mean = 1e-3 * math.tanh(5e-4) if isinstance(event, Pure) else 1e-6 / 12
        assert 0.99 * mean * count <= epsilon([many], 1e-6) <= total
        assert delta([many], total) == 0.0
        assert delta([many], 1.0) == 1.0
        assert epsilon([many, Gaussian(0.1)], 1e-6) >= epsilon([many], 1e-6) * (1 - 1e-9)
        assert epsilon([many, Pure(1.0), Exponential(0.5)], 1e-6) <= total * (1 + 1e-9) + 1.5
    assert epsilon([Repeated(Pure(1e-30), count)], 1e-6) < 1e-9
    for event in (of_gaussian(2.0, 0.1, 0.1), glm(1e-4)):
        assert epsilon([Repeated(event, count)], 1e-6) == math.inf
    assert epsilon([Repeated(Pure(1e-3), 2**20)], 1e-6) == pytest.approx(5.0203, abs=1e-3)


def test_extreme_parameters_stay_safe():
    assert epsilon([Repeated(Gaussian(1e-200), 10**400)], 1e-6) == math.inf
    assert epsilon([Gaussian(1e-200), Pure(1e-200), Exponential(1e-250)], 1e-6) == 0.0
    assert epsilon([Pure(1e-200), Exponential(1.0)], 1e-6) == pytest.approx(
        epsilon([Exponential(1.0)], 1e-6), rel=1e-5
    )
    assert epsilon([Pure(2000.0), Exponential(2000.0), Gaussian(1.0)], 1e-6) > 3900
    # The lower atoms of both are negligible, which leaves two lattices of one atom.
    assert epsilon([Pure(300.0), Pure(400.0)], 1e-6) == pytest.approx(700.0, rel=1e-6)
    assert epsilon([Pure(300.0), Exponential(1e-20)], 1e-6) == pytest.approx(300.0, rel=1e-6)
    assert 0.999 < epsilon([Pure(1.0)], 1e-300) <= 1.0
    assert epsilon([Gaussian(1.0)], 5e-324) == pytest.approx(gdp_epsilon(1.0, 5e-324), rel=1e-9)


def calibrated(budget=1.0, small_delta=1e-6, lower=0.0, upper=1.0, **rest):
    return calibrate(
        lambda mu: [Gaussian(mu)], budget, small_delta, lower=lower, upper=upper, **rest
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: delta([Pure(1.0)], math.nan), ValueError, "^epsilon "),
        *(
            (lambda bad=bad: epsilon([Pure(1.0)], bad), ValueError, "^delta ")
            for bad in (-0.1, 1.0, math.nan)
        ),
        (lambda: epsilon([Pure(1.0), 0.5], 1e-6), TypeError, "not a privacy event"),
        *(
            (lambda ends=ends: calibrated(1.0, 1e-6, *ends), ValueError, "lower <= upper")
            for ends in ((1.0, 0.0), (0.0, math.inf), (math.nan, 1.0))
        ),
        (lambda: calibrated(-1.0), ValueError, "^epsilon "),
        (lambda: calibrated(1.0, 1.0), ValueError, "^delta "),
        (lambda: calibrated(1.0, 1e-6, 0.2415, 1.0), BudgetError, "no value between"),
    ],
)
def test_invalid_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- objective perturbation -----------------------------------------------------------------


def check_contract(got, contract, small=1e-6, rel=1e-2):
    """Never above the sum of terms that an event promises, and close to it for a small delta."""
    assert got <= min(1.0, contract) * (1 + 1e-8)
    if contract < small:
        assert got >= contract * (1 - rel)


class Density:
    """Density on the line of the minimiser of a perturbed one-dimensional objective."""

    def __init__(self, gaps, normaliser, ridge, sigma):
        reach = (12 * sigma + 6) / ridge
        self.grid, self.step = np.linspace(-reach, reach, 20_001, retstep=True)
        s = expit(-np.multiply.outer(self.grid, gaps))
        slope = -(s * gaps).sum(axis=1) / normaliser + ridge * self.grid
        curvature = (s * (1 - s) * gaps**2).sum(axis=1) / normaliser + ridge
        self.values = norm.pdf(slope, scale=sigma) * curvature
        assert self.values.sum() * self.step == pytest.approx(1.0, abs=1e-8)

    def hockey_stick(self, other, value):
        gap = self.values - math.exp(value) * other.values
        return float(np.maximum(gap, 0.0).sum() * self.step)

    def binned_loss(self, other, width=0.005):
        """Losses rounded down to a grid, with their masses; the far tails are left out."""
        used = (self.values > 1e-12) & (other.values > 1e-12)
        cells = np.floor(np.log(self.values[used] / other.values[used]) / width).astype(int)
        positions, cells = np.unique(cells, return_inverse=True)
        return positions * width, np.bincount(cells, self.values[used] * self.step)


def over_bound(p, q, event, values):
    """Largest divergence over its bound; the integrals err by 1e-9."""
    return max((p.hockey_stick(q, v) - 1e-9) / delta([event], v) for v in values)


def glm_neighbours(rng, n=3):
    """Rows with their last one replaced; half of the pairs are the extreme one."""
    rest = rng.uniform(-1, 1, n - 1)
    pair = (1.0, -1.0) if rng.random() < 0.5 else rng.uniform(-1, 1, 2)
    return [np.append(rest, z) for z in pair]


def test_objective_perturbation_dominates_its_density():
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(12):
        ridge, sigma = 10 ** rng.uniform(-0.7, 1), 10 ** rng.uniform(-0.2, 0.8)
        p, q = (Density(z, 1, ridge, sigma) for z in glm_neighbours(rng))
        event = glm(2 / sigma, math.log1p(0.25 / ridge))
        worst = max(worst, over_bound(p, q, event, (-0.3, 0.1, 0.5, 1.0, 2.0)))
    assert 0.3 < worst <= 1.0


def test_composed_objectives_dominate_their_densities():
    """Randomised response on top of one objective, and two objectives in a row."""
    rng = np.random.default_rng(4)
    ridge, sigma = 2.0, 2.5
    event = glm(2 / sigma, math.log1p(0.25 / ridge))
    for _ in range(2):
        p, q = (Density(z, 1, ridge, sigma) for z in glm_neighbours(rng))
        for value in (0.2, 0.8, 1.6):
            truth = 1 / (1 + math.exp(-0.3))
            exact = truth * p.hockey_stick(q, value - 0.3)
            exact += (1 - truth) * p.hockey_stick(q, value + 0.3)
            assert exact <= delta([event, Pure(0.3)], value)
            losses, mass = p.binned_loss(q)
            exact = sum(m * p.hockey_stick(q, value - t) for t, m in zip(losses, mass, strict=True))
            assert exact <= delta([event, event], value)


def test_pairwise_objective_dominates_its_density():
    rng = np.random.default_rng(5)
    n, normaliser = 5, 25 / 4
    worst = 0.0
    for _ in range(12):
        ridge, sigma = 10 ** rng.uniform(-0.5, 0.7), 10 ** rng.uniform(-0.3, 0.5)
        x, y = rng.choice([-1.0, 1.0], n), rng.choice([-1, 1], n)
        x2, y2 = x.copy(), y.copy()
        x2[0], y2[0] = -x[0], rng.choice([-1, 1])
        p, q = (
            Density(np.subtract.outer(u[v > 0], u[v < 0]).ravel(), normaliser, ridge, sigma)
            for u, v in ((x, y), (x2, y2))
        )
        mu = (n - 1) * 2 / (normaliser * sigma)
        event = auc(mu, math.log1p(4 * (n - 1) * 0.25 / (normaliser * ridge)))
        worst = max(worst, over_bound(p, q, event, (0.1, 1.0, 2.0)))
    assert 0.03 < worst <= 1.0


def in_a_row(event, count, value, step):
    """Mean excess over a value of a sum of losses, each the upper part of mass one of the event.

    Written anew: on a line of steps, by convolutions.
    """
    places = step * np.arange(-400, 2000)
    mass = np.zeros(len(places))
    for number, mu in event.vertices:
        if mu == 0.0:
            mass[np.argmax(places >= event.log_ratio)] += number
        else:
            ends = np.append(places, places[-1] + step) - step / 2
            mass += number * np.diff(norm.cdf(ends, event.log_ratio + mu * mu / 2, mu))
    above = np.cumsum(mass[::-1])[::-1]
    part = np.where(above <= 1.0, mass, 0.0)
    part[np.count_nonzero(above > 1.0) - 1] += 1.0 - part.sum()
    total = part
    for _ in range(count - 1):
        total = np.convolve(total, part)
    losses = count * places[0] + step * np.arange(len(total))
    return float(total @ np.maximum(losses - value, 0.0))


def test_a_tail_that_was_cut_beside_a_ranking_counts_by_its_losses():
    """A mean excess is not bounded by one."""
    cut, losses = 1e-6, np.arange(-40.0, 41.0)
    mass = np.where(losses == 0.0, 1.0 - cut, 0.0)
    loss, terms = PLD(1.0, -40, mass, cut=cut), ((1.0, 0.0, 0.0),)
    bound = accounting.ProfileBound(loss, terms, pairwise=True)
    assert math.exp(bound.log_delta(1.0)) >= cut * (40.0 - 1.0)
    bound = accounting.ProfileBound(loss, terms, pairwise=False)
    assert math.exp(bound.log_delta(1.0)) == pytest.approx(cut)


@pytest.mark.parametrize("count", [2, 8])
def test_rankings_in_a_row_have_the_sum_of_the_upper_parts_of_their_losses(count):
    """A profile in place of the mean excess would be smaller by half, and more."""
    event = auc(0.05, 0.02)
    for value in (0.1, 0.3):
        exact = in_a_row(event, count, value, 5e-4)
        assert delta([Repeated(event, count)], value) == pytest.approx(exact, rel=1e-3)


# --- selections -------------------------------------------------------------------------------


SPREAD = of_gaussian(12.5, 0.4, 0.2, (0.3, 0.25, 0.0, 0.45))


def losses(event):
    """Masses, shifts and mu of a selection."""
    n = len(event.shares)
    return [
        (event.mean_runs * share, event.log_ratio * (j + 1) / n, event.mu)
        for j, share in enumerate(event.shares)
    ]


def twice(event, value):
    """What the contract of two of them promises."""
    masses, shifts, (mu, *_) = map(np.array, zip(*losses(event), strict=True))
    profiles = gdp_delta(math.sqrt(2.0) * mu, value - np.add.outer(shifts, shifts))
    return float(masses @ profiles @ masses)


@pytest.mark.parametrize("event", [of_gaussian(1.0, 0.0, 0.4), SPREAD])
def test_selection_is_its_contract_alone_and_beside_others(event):
    objective = glm(0.3, 0.1)
    for value in (-1.0, 0.2, 0.8, 1.5, 3.0):
        expected = sum(mass * gdp_delta(mu, value - j) for mass, j, mu in losses(event))
        check_contract(delta([event], value), expected, small=1e-3, rel=1e-9)
        expected = sum(
            mass * count * gdp_delta(math.hypot(mu, v, 0.4), value - 0.1 - j)
            for mass, j, mu in losses(event)
            for count, v in objective.vertices
        )
        check_contract(delta([Gaussian(0.4), event, objective], value), expected)
        check_contract(delta([Repeated(event, 2)], value), twice(event, value))
    found = epsilon([event], 1e-6)
    assert delta([event], found) <= 1e-6 < delta([event], found * (1 - 1e-6))


@pytest.mark.parametrize("event", [Pure(2.0), Exponential(2.0), Either(2.0, 0.5)])
def test_a_bounded_loss_counts_beside_several_sums_of_terms(event):
    sums = [Repeated(glm(0.5, 0.1), 2), RandomStopping(3.0, 0.5, 0.4)]
    assert delta([*sums, event], 2.0) > 1.5 * delta(sums, 2.0)


def test_many_shifted_terms_are_discretised():
    """The product of their lists, were it evaluated, is above and not far away."""
    rng = np.random.default_rng(0)
    event = of_gaussian(2.0, 0.4, 0.2, tuple(rng.uniform(0.005, 0.015, 150)))
    for value in (1.0, 2.0):
        expected = twice(event, value)
        assert 0.5 * expected < delta([Repeated(event, 2)], value) <= expected * (1 + 1e-4)


def test_selection_beside_a_ranking_objective():
    """Under the convex kernel the masses stay in front of the expected excess."""
    event, objective, value = of_gaussian(2.5, 0.2, 0.3), auc(0.2, 0.1), 1.1

    def excess(mu):
        return quad(
            lambda v: max(v - value + 0.3, 0.0) * norm.pdf(v, mu * mu / 2, mu), -6, 6, points=[0.8]
        )[0]

    expected = sum(2.5 * count * excess(math.hypot(v, 0.3)) for count, v in objective.vertices)
    check_contract(delta([event, objective], value), expected)


def test_selection_without_noise_has_a_bounded_loss():
    event = of_gaussian(4.0, 0.3, 0.0)
    assert epsilon([event, Pure(0.25)], 0.0) == pytest.approx(0.55, rel=1e-15)
    assert delta([event], 0.3) == 0.0
    # Mass 4 at .3: the envelope is randomised response.
    assert delta([event], 0.2) == pytest.approx(-math.expm1(-0.1) / (1 + math.exp(-0.3)), rel=1e-9)
    assert epsilon([of_gaussian(1.0, 0.0, 0.0)], 0.0) == 0.0
    contract = 4 * delta([Gaussian(0.5), Exponential(0.1)], 2.5)
    check_contract(delta([of_gaussian(4.0, 0.0, 0.5), Exponential(0.1)], 2.5), contract)


def test_two_exponentials_against_the_convolution_of_boxes():
    """Trapezoidal density of the sum, exact up to quadrature; bound above and close."""
    a, b, mu = 0.7, 0.2, 0.3
    scale = 1 / (16 * math.sinh(a / 2) * math.sinh(b / 2))
    for value in (0.5, 0.95, 2.0):

        def integrand(t, value=value):
            overlap = min(2 * b, a + b - abs(t))
            return scale * overlap * math.exp(t / 2) * gdp_delta(mu, value - t)

        corners = (-a - b, b - a, a - b, a + b)
        exact = sum(quad(integrand, *ends, epsrel=1e-11)[0] for ends in itertools.pairwise(corners))
        got = delta([Exponential(a), Exponential(b), Gaussian(mu)], value)
        assert exact <= got <= exact * (1 + 1e-5)


# --- brute force ------------------------------------------------------------------------------


def random_exponential(rng, epsilon0):
    """Output distributions of an exponential mechanism on neighbouring scores."""
    k = rng.integers(2, 5)
    scores = rng.uniform(0, 4 / epsilon0, k)
    change = rng.choice([-1.0, 1.0], k)
    p, q = (np.exp(-epsilon0 * s / 2) for s in (scores, scores + change))
    return p / p.sum(), q / q.sum()


def random_pure(rng, epsilon0):
    """Randomised response behind a random channel, often the identity."""
    truth = 1 / (1 + math.exp(-epsilon0))
    channel = np.eye(2) if rng.random() < 0.6 else rng.dirichlet(np.ones(3), 2)
    if rng.random() < 0.5:
        truth = 1 - truth
    p = np.array([truth, 1 - truth])
    return p @ channel, p[::-1] @ channel


def adaptive_tree(rng, makers):
    """Distributions of all outputs when every stage is drawn anew for each earlier output."""
    p, q = np.ones(1), np.ones(1)
    for maker, epsilon0 in makers:
        stages = [maker(rng, epsilon0) for _ in p]
        p = np.concatenate([m * stage[0] for m, stage in zip(p, stages, strict=True)])
        q = np.concatenate([m * stage[1] for m, stage in zip(q, stages, strict=True)])
    return p, q


def exceeds(events, p, q, values):
    """Whether a mechanism violates the guarantee of the events, in either direction."""
    return any(
        np.maximum(a - math.exp(value) * b, 0.0).sum() > delta(events, value) + 1e-14
        for value in values
        for a, b in ((p, q), (q, p))
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_adaptive_trees_stay_below(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        kinds = [(random_exponential, Exponential), (random_pure, Pure)]
        chosen = [(*kinds[rng.integers(2)], rng.uniform(0.1, 1.5)) for _ in range(3)]
        p, q = adaptive_tree(rng, [(maker, e) for maker, _, e in chosen])
        events = [event(e) for _, event, e in chosen]
        top = sum(e for _, _, e in chosen)
        assert not exceeds(events, p, q, rng.uniform(-0.2 * top, top, 6))


# --- one of two kinds -------------------------------------------------------------------------


def range_profile(e, value):
    """Largest profile of a choice of bounded range: for every value some choice attains it."""
    inside = np.clip(value, -e, e)
    curve = np.exp(0.5 * inside) * 2.0 * np.sinh(0.25 * (e - inside)) ** 2 / np.sinh(0.5 * e)
    return np.where(value < -e, -np.expm1(np.minimum(value, 0.0)), curve)


def counted(epsilon, most=400):
    """Probabilities of a noisy count for an exact one of 0 and of 1, in both orders."""
    k, ratio = np.arange(-most, most + 1), np.exp(-epsilon)
    mass = [(1 - ratio) / (1 + ratio) * ratio ** np.abs(k - mean) for mean in (0, 1)]
    return k, (mass, mass[::-1])


def choice_or_gaussian(e, mu):
    """What an analyst reaches who knows the loss so far and takes the worse of the two kinds."""
    return lambda value: np.maximum(range_profile(e, value), gdp_delta(mu, value))


def branched(count_epsilon, kind, value):
    """Exact delta of a noisy count of 0 or 1 and of what it decides: ``kind(k, value left)``."""
    k, orders = counted(count_epsilon)
    return max(float(p @ kind(k, value - np.log(p / q))) for p, q in orders)


ONE = [(0.1, 0.3, 0.1), (0.1, 0.2, 0.5), (0.3, 0.3, 0.2), (0.2, 1.0, 0.3)]


@pytest.mark.parametrize(("count_epsilon", "e", "mu"), ONE)
def test_one_of_two_kinds_costs_what_its_contract_says(count_epsilon, e, mu):
    """By enumeration of a noisy count; the contract is attained by who decides by the loss."""
    events, worst = [Pure(count_epsilon), Either(e, mu)], choice_or_gaussian(e, mu)
    for value in (0.0, 0.3 * e, 0.6 * e, e, e + count_epsilon, 1.5 * e):
        bound = delta(events, value)
        for border in (-500, -30, -1, 0, 1, 30, 500):

            def kind(k, left, border=border):
                return np.where(k <= border, range_profile(e, left), gdp_delta(mu, left))

            assert branched(count_epsilon, kind, value) <= bound
        found = branched(count_epsilon, lambda k, left: worst(left), value)
        assert found <= bound <= 1.03 * found


@pytest.mark.parametrize("mu", [0.01, 0.05, 0.2])
def test_the_profile_of_one_of_two_kinds_is_the_larger_one(mu):
    for value in (-0.2, 0.0, 0.1, 0.25, 0.3, 0.31, 0.5):
        larger = max(float(range_profile(0.3, value)), gdp_delta(mu, value))
        found = delta([Either(0.3, mu)], value)
        assert larger <= found * (1 + 1e-12)
        assert found <= larger * 1.02 + 1e-13
    # Without the other kind it is that of one alone.
    assert delta([Either(0.3, 0.0)], 0.1) == delta([Exponential(0.3)], 0.1)
    assert delta([Either(1e-9, mu)], 0.1) == pytest.approx(gdp_delta(mu, 0.1), rel=1e-4)
    assert epsilon([Either(0.3, 0.0)], 0.0) == 0.3


def test_ten_fits_cost_as_much_as_ten_choices():
    """Where noise of a small mu would follow the choice costs more, and no Gaussian is added."""
    count, choice = Repeated(Pure(0.006), 10), Repeated(Exponential(0.094), 10)
    both = epsilon([count, Repeated(Either(0.094, 0.02), 10)], 1e-8)
    assert epsilon([count, choice], 1e-8) == pytest.approx(both, rel=1e-3)
    assert both < 0.8


def test_mu_beside_a_choice_spends_the_budget():
    first, budget, small_delta = Pure(0.006), 0.1, 1e-8
    mu = accounting.mu_of_either(first, 0.0939, budget, small_delta)
    assert delta([first, Either(0.0939, mu)], budget) <= small_delta
    assert delta([first, Either(0.0939, mu * 1.0001)], budget) > small_delta
    assert gdp_mu(0.094, small_delta) < mu < gdp_mu(0.1, small_delta)
    beside = accounting.mu_beside(0.02, budget, small_delta)
    assert delta([Exponential(0.02), Gaussian(beside)], budget) <= small_delta
    assert delta([Exponential(0.02), Gaussian(beside * 1.0001)], budget) > small_delta


# --- algebra ----------------------------------------------------------------------------------

small = st.floats(0.0, 0.8)
selected = {"more": st.floats(0.0, 30.0), "j": small, "a": small, "b": small}
singles = st.one_of(
    *(st.builds(kind, small) for kind in (Gaussian, Pure, Exponential)),
    st.builds(glm, small, small),
    st.builds(Either, small, small),
    st.builds(lambda more, j, a, b: of_gaussian(1.0 + more, j, a, (b, 1.0)), **selected),
)
lists = st.lists(singles, max_size=4)
deltas = st.floats(1e-12, 0.3)


@given(singles, st.integers(1, 9), deltas, lists)
@settings(max_examples=6)
def test_repeated_is_repetition(event, count, small_delta, others):
    folded = epsilon([Repeated(event, count), *others], small_delta)
    assert folded == epsilon([event] * count + others, small_delta)
    assert folded == epsilon([*others, Repeated(Repeated(event, 1), count)], small_delta)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "make",
    [
        lambda t: Gaussian(0.3 * t),
        lambda t: Pure(0.3 * t),
        lambda t: Exponential(0.3 * t),
        lambda t: glm(0.3 * t, 0.2 * t),
        lambda t: auc(0.3 * t, 0.2 * t),
        lambda t: of_gaussian(2.0 * t, 0.2 * t, 0.3 * t),
        lambda t: of_gaussian(2.0 * t, 0.2 * t, 0.3 * t, (0.2, 0.5, 0.3)),
        lambda t: ObjectivePerturbation(0.2 * t, ((1, 0.0),)),
        lambda t: Either(0.3 * t, 0.2 * t),
    ],
)
def test_repetition_equals_nearly_equal_events(make):
    """Events that differ in the ninth digit are not grouped, so nothing is multiplied."""
    apart = [make(1 + i * 1e-9) for i in range(5)]
    folded = [Repeated(make(1.0), 5)]
    assert epsilon(folded, 1e-4) == pytest.approx(epsilon(apart, 1e-4), rel=1e-4)
    ceiling = epsilon(apart, 0.0)
    assert epsilon(folded, 0.0) == ceiling or epsilon(folded, 0.0) == pytest.approx(ceiling)


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(lists, singles, deltas, st.floats(1.0, 10.0), st.floats(-1, 5), st.floats(0, 3))
def test_epsilon_and_delta_are_inverse_and_monotone(events, extra, small_delta, more, value, step):
    found = epsilon(events, small_delta)
    assert delta(events, found) <= small_delta
    if found > 1e-6:
        assert delta(events, found * (1 - 1e-6)) > small_delta
    assert epsilon(events, min(0.9, more * small_delta)) <= found * (1 + 1e-10)
    assert delta(events, value + step) <= delta(events, value) * (1 + 1e-10)
    assert found <= epsilon(events, 0.0)
    # Up to the discretisation, which may become finer when an event is added.
    assert epsilon([*events, extra], small_delta) >= found * (1 - 1e-4) - 1e-9


SMALLEST = [glm(0.0, 5e-324), Either(5e-324, 0.0), Either(0.1, 5e-324)]
SMALLEST += [Pure(5e-324), Exponential(5e-324), SampledGaussian(10, 5e-324)]


@pytest.mark.parametrize("event", SMALLEST)
def test_the_smallest_losses_have_a_lattice(event):
    assert epsilon([event, Gaussian(0.1), Gaussian(0.0)], 1e-6) >= gdp_epsilon(0.1, 1e-6)
    assert delta([event, Pure(0.5)], 0.1) >= delta([Pure(0.5)], 0.1) * (1 - 1e-10)


# --- calibration ------------------------------------------------------------------------------


def test_calibrate_finds_what_halving_finds():
    """And with fewer evaluations."""
    evaluated = []

    def events(size):
        evaluated.append(size)
        return [Pure(0.2), Exponential(0.1), Gaussian(size)]

    found = calibrate(events, 1.0, 1e-6, lower=1e-3, upper=1e3)
    few = len(evaluated)
    halved = accounting.halve(lambda mu: delta(events(mu), 1.0) <= 1e-6, 1e-3, 1e3, 1e-10)
    assert found == pytest.approx(halved, rel=1e-9)
    assert few < 0.8 * (len(evaluated) - few)


def test_what_calibrate_returns_fits(monkeypatch):
    """Also if the root is found on the side that costs more."""
    most = calibrated(1.0, upper=1.0)
    monkeypatch.setattr(accounting, "root", lambda *_, **__: 1.05 * most)
    assert 0.98 * most < calibrated(1.0, upper=1.0, rtol=1e-2) <= most


def test_calibrate_ends_where_the_search_does():
    assert calibrated(5.0, upper=0.1) == 0.1
    assert calibrated(math.inf, 0.0, upper=7.0) == 7.0


def other_accountant(gaussians, pures, pessimistic):
    kind = privacy_loss_distribution
    rest = {"pessimistic_estimate": pessimistic, "value_discretization_interval": 1e-3}
    parts = [kind.from_gaussian_mechanism(1 / mu, **rest) for mu in gaussians]
    flips = (2 / (1 + math.exp(e)) for e in pures)
    parts += [kind.from_randomized_response(flip, 2, **rest) for flip in flips]
    return functools.reduce(lambda a, b: a.compose(b), parts)


@pytest.mark.parametrize(
    ("gaussians", "pures"),
    [
        ([0.5], []),
        ([0.2, 0.3], [0.4]),
        ([1.0], [0.3, 0.55, 1.0]),
        ([], [0.1] * 20),
        ([0.1], [0.05] * 30 + [0.7]),
    ],
)
def test_agrees_with_dp_accounting(gaussians, pures):
    events = [*map(Gaussian, gaussians), *map(Pure, pures)]
    above, below = (other_accountant(gaussians, pures, flag) for flag in (True, False))
    for small_delta in (1e-3, 1e-6):
        found = epsilon(events, small_delta)
        assert found >= below.get_epsilon_for_delta(small_delta) - 1e-9
        assert found <= above.get_epsilon_for_delta(small_delta) * (1 + 1e-5)


def worst_selection(rng, epsilon0):
    """Two-point distribution of bounded range that attains the worst profile at 0."""
    top = math.exp(epsilon0 / 2)
    q = (1 - 1 / top) / (top - 1 / top)
    return np.array([q * top, (1 - q) / top]), np.array([q, 1 - q])


def test_planted_accounting_bugs_are_caught():
    """Each wrong list of events is exceeded by a mechanism that the right list covers."""
    rng = np.random.default_rng(7)

    def response(rng, epsilon0):
        p = expit(np.array([epsilon0, -epsilon0]))
        return p, p[::-1]

    values = np.linspace(-0.5, 2.5, 61)
    p, q = adaptive_tree(rng, [(response, 1.0), (response, 0.5)])
    assert not exceeds([Pure(1.0), Pure(0.5)], p, q, values)
    assert exceeds([Exponential(1.0), Exponential(0.5)], p, q, values)  # pure as bounded range
    assert exceeds([Pure(1.0)], p, q, values)  # a piece forgotten
    p, q = adaptive_tree(rng, [(response, 0.5)] * 3)
    assert not exceeds([Repeated(Pure(0.5), 3)], p, q, values)
    assert exceeds([Pure(0.5)], p, q, values)  # a multiplicity forgotten
    assert exceeds([Repeated(Pure(0.5), 2)], p, q, values)  # off by one
    p, q = adaptive_tree(rng, [(worst_selection, 1.0)] * 2)
    assert not exceeds([Repeated(Exponential(1.0), 2)], p, q, values)
    assert exceeds([Repeated(Exponential(0.7), 2)], p, q, values)  # sensitivity 0.7 of the true one


def test_ignored_counts_would_be_caught(monkeypatch):
    """Planted bug: a branch that forgets to multiply by the count."""
    event = Repeated(Exponential(0.5), 10)
    right = epsilon([event], 1e-6)
    assert right == epsilon([Exponential(0.5)] * 10, 1e-6)
    monkeypatch.setattr(PLD, "repeat", lambda loss, count: loss)
    with fresh_losses():
        assert epsilon([event], 1e-6) < 0.5 * right
        assert delta([event], 1.0) < delta([Gaussian(0.3)], 1.0)


@pytest.mark.parametrize("rule", ["count", "choice", "gaussian"])
def test_fits_of_two_kinds_one_after_the_other(rule):
    """Two fits, the second planned for the loss of the first, cost no more than both events."""
    count_epsilon, e, mu = 0.2, 0.5, 0.25
    worst = choice_or_gaussian(e, mu)
    k, orders = counted(count_epsilon, 60)
    nodes = np.linspace(-8.0, 8.0, 65)
    weights = np.exp(-0.5 * nodes**2) / np.exp(-0.5 * nodes**2).sum()

    places = np.linspace(-6.0, 6.0, 2401)
    seconds = [worst(places[:, None] - np.log(p / q)) @ p for p, q in orders]

    def second(value):
        """Everything that a second fit adds, for an array of values left."""
        return np.interp(value, places, np.max(seconds, axis=0))

    # A choice between two candidates of losses e / 2 and -e / 2.
    t = 0.5 * e
    likely = (np.exp(e - t) - 1.0) / (np.exp(e - t) - np.exp(-t))
    for value in (0.2, 0.7, 1.1):
        found = 0.0
        for p, q in orders:
            left = value - np.log(p / q)
            choice = likely * second(left - t) + (1.0 - likely) * second(left - t + e)
            losses = mu * (0.5 * mu + nodes)
            gaussian = np.sum(
                [w * second(left - x) for x, w in zip(losses, weights, strict=True)], axis=0
            )
            is_choice = {"count": k <= 0, "choice": k < 99, "gaussian": k > 99}[rule]
            found = max(found, float(p @ np.where(is_choice, choice, gaussian)))
        bound = delta([Repeated(Pure(count_epsilon), 2), Repeated(Either(e, mu), 2)], value)
        assert found <= bound


@pytest.mark.parametrize("alone", [Gaussian(0.25), Exponential(0.5)])
def test_a_contract_of_one_kind_alone_would_be_caught(alone):
    """Planted: one of the two kinds is forgotten."""
    worst = choice_or_gaussian(0.5, 0.25)
    assert any(
        branched(0.2, lambda k, left: worst(left), value) > delta([Pure(0.2), alone], value)
        for value in (0.1, 0.6, 0.9)
    )


FEWER = {
    "mu": 0.0,
    "log_ratio": 0.0,
    "shares": SPREAD.shares[::-1],
}


@pytest.mark.parametrize(
    "planted",
    [
        *(replace(SPREAD, **{name: value}) for name, value in FEWER.items()),
        replace(SPREAD, mean_runs=1.0, shares=(0.3, 0.25, 0.25, 0.45)),
    ],
)
def test_planted_selection_bugs_are_caught(planted):
    """Each part of the contract matters beside another event."""
    found, exact = (delta([event, Gaussian(0.3), Pure(0.1)], 1.5) for event in (planted, SPREAD))
    assert found < 0.95 * exact
