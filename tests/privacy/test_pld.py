"""Discretised privacy loss distributions: masses, domination, accuracy, cut tails, and sums."""

import itertools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr
from scipy.stats import binom

from dp_halfspace.privacy import accounting, pld
from dp_halfspace.privacy.accounting import calibrate, delta, epsilon
from dp_halfspace.privacy.events import (
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
    SampledGaussian,
)
from dp_halfspace.privacy.pld import (
    PLD,
    bounded_range_pld,
    compose,
    envelope,
    randomised_response_pld,
    sampled_gaussian_pld,
)
from dp_halfspace.privacy.profiles import gdp_delta, gdp_mu
from dp_halfspace.privacy.random_stopping import geometric_run_count, random_stopping_event
from tests.privacy.oracles import (
    exact_gdp,
    exponential_delta,
    glm,
    of_gaussian,
    pure_delta,
    sampled_delta,
)

GLM = ((1.0, 0.05, 0.0), (2.0, 0.05, 0.1), (1.0, 0.05, 0.2))
ONE = ((1.0, 0.0),)


def test_infinite_losses_of_both_parts_add_up():
    one, other = (PLD(0.1, 0, np.array([0.5, 0.5 - cut]), cut=cut) for cut in (0.125, 0.25))
    assert one.plus(other).cut == 0.375


@pytest.mark.parametrize(("tail", "runs"), [(1e-2, 1.0), (1e-4, 1.0), (1e-4, 8.0)])
def test_mass_beyond_the_lattice_of_an_envelope_counts_as_an_infinite_loss(tail, runs, monkeypatch):
    monkeypatch.setattr(pld, "TAIL", tail)
    loss = envelope([(1.0, 0.0, 1.0)], [(runs, 0.0)], pairwise=False)
    top = loss.step * (loss.first + len(loss.mass) - 1)
    beyond = runs * float(ndtr(0.5 - top))
    assert beyond - loss.mass[-1] <= loss.cut <= 2.0 * tail
    assert loss.mass.sum() + loss.cut == pytest.approx(1.0, abs=1e-12)


def test_losses_too_large_for_a_lattice_are_infinite():
    loss = envelope([(1.0, 0.0, 2000.0)], [(1.0, 0.0)], pairwise=False)
    assert loss.cut == 1.0


sizes = st.floats(1e-3, 8.0)


def profile(loss, epsilons):
    """Hockey stick of the atoms and the cut mass."""
    gain = -np.expm1(np.minimum(np.subtract.outer(epsilons, loss.losses), 0.0))
    return gain @ loss.mass + loss.cut


def masses(loss):
    """Mass under the first and under the second data set."""
    return loss.mass.sum() + loss.cut, (loss.mass * np.exp(-loss.losses)).sum()


# --- single events ----------------------------------------------------------------------------


@given(sizes)
def test_losses_are_distributions_under_both_data_sets(epsilon0):
    terms = ((1.0, 0.1, 0.0), (3.0, 0.1, 0.3 * epsilon0))
    for loss in (
        randomised_response_pld(epsilon0),
        bounded_range_pld(epsilon0),
        envelope(terms, ONE, pairwise=False),
        envelope(terms, ((2.0, 0.3), (4.0, 0.6)), pairwise=False),
    ):
        assert masses(loss) == pytest.approx((1.0, 1.0), rel=1e-9)
        assert loss.mass.min() >= 0.0


@given(sizes, st.floats(0.01, 3.0))
def test_another_step_preserves_both_masses_and_dominates(epsilon0, step):
    epsilons = np.linspace(-1.2 * epsilon0, 1.2 * epsilon0, 41)
    for loss in (randomised_response_pld(epsilon0), bounded_range_pld(epsilon0)):
        coarse = loss._on_lattice(step)
        assert masses(coarse) == pytest.approx((1.0, 1.0), rel=1e-11)
        assert np.all(profile(coarse, epsilons) >= profile(loss, epsilons) - 1e-13)


@given(st.floats(0.05, 6.0))
def test_chords_dominate_and_touch_the_profile(epsilon0):
    """Connect the dots: equal at the grid points, above between them."""
    loss = bounded_range_pld(epsilon0)
    dots = loss.losses[1:-1:371]
    assert profile(loss, dots) == pytest.approx(exponential_delta(epsilon0, dots), abs=1e-13)
    between = dots + 0.4 * loss.step
    exact = exponential_delta(epsilon0, between)
    assert np.all(profile(loss, between) >= exact - 1e-14)
    assert profile(loss, between) == pytest.approx(exact, abs=epsilon0 * 1e-7)


STEPS = [(1, 0.3), (2, 3.9), (20, 0.6), (100, 0.28), (400, 1e-3), (3000, 1.0), (3000, 2.0)]


def sampled_profile(n_records, mu, epsilons):
    """Advanced joint convexity, for both orders of the neighbours."""
    size = np.abs(epsilons)
    above = gdp_delta(mu, np.log1p(np.expm1(size) * n_records)) / n_records
    return np.where(epsilons >= 0, above, -np.expm1(-size) + np.exp(-size) * above)


@pytest.mark.parametrize(("n_records", "mu"), STEPS)
def test_steps_on_sampled_records_dominate_and_touch_their_profile(n_records, mu):
    loss = sampled_gaussian_pld(n_records, mu)
    top = math.log1p(math.expm1(mu * (0.5 * mu + 6.0)) / n_records)
    epsilons = np.linspace(-top, top, 201)
    exact = sampled_profile(n_records, mu, epsilons)
    found = profile(loss, epsilons)
    assert (found >= exact * (1 - 1e-9)).all()
    near = exact > 1e-9 * exact.max()
    if loss.step * n_records < 0.5:  # chords of longer cells are rough, on the safe side
        assert (found[near] <= exact[near] * 1.003).all()
    np.testing.assert_allclose(masses(loss), 1.0, atol=1e-10)
    # Planted: a step that moves half as far.
    assert found[101] < sampled_profile(n_records, 2 * mu, epsilons)[101]


@pytest.mark.parametrize(("n_records", "mu"), STEPS)
def test_masses_of_steps_are_as_accurate_as_they_say(n_records, mu):
    loss = sampled_gaussian_pld(n_records, mu)
    with mpmath.workdps(40):
        q, m, h = mpmath.mpf(1) / n_records, mpmath.mpf(mu), mpmath.mpf(loss.step)

        def below(j):
            """Masses of all outcomes beyond a loss, under both data sets."""
            outcome = mpmath.log1p(mpmath.expm1(j * h) / q) / m + m / 2
            other = mpmath.ncdf(-outcome)
            return (1 - q) * other + q * mpmath.ncdf(m - outcome), other

        def split(j):
            """The parts of a cell that go to its ends."""
            one, other = (a - b for a, b in zip(below(j), below(j + 1), strict=True))
            up = (one - other * mpmath.exp(j * h)) / (1 - mpmath.exp(-h))
            return one - up, up

        for j in (1, 2, 5, 40, 300, 1500, 2500):
            exact = split(j)[0] + split(j - 1)[1]
            if exact > 1e-280 and j - loss.first < len(loss.mass):
                found = mpmath.mpf(loss.mass[j - loss.first])
                assert abs(found / exact - 1) < loss.error


@pytest.mark.parametrize("tail", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize(("n_records", "mu"), [(1, 0.3), (100, 0.3), (50, 2.0)])
def test_what_is_left_out_of_a_step_is_counted_as_lost(n_records, mu, tail, monkeypatch):
    """Outcomes beyond the last cell have probabilities, which go to delta in full."""
    monkeypatch.setattr(pld, "TAIL", tail)
    loss = sampled_gaussian_pld(n_records, mu)
    top = loss.step * (loss.first + len(loss.mass) - 1)
    outcome = math.log1p(math.expm1(top) * n_records) / mu + mu / 2.0
    beyond = (1.0 - 1.0 / n_records) * ndtr(-outcome) + ndtr(mu - outcome) / n_records
    # A part of the last cell is at its lower end.
    assert beyond >= loss.cut >= beyond - loss.mass[-1]
    assert loss.mass.sum() + loss.cut == pytest.approx(1.0, abs=1e-13)


def test_steps_on_all_records_are_gaussian():
    for count in (1, 30, 1000):
        event = Repeated(SampledGaussian(1, 0.1), count)
        for epsilon_ in (0.0, 0.5, 1.0):
            exact = gdp_delta(0.1 * math.sqrt(count), epsilon_)
            assert exact * (1 - 1e-12) <= delta([event], epsilon_) <= 1.001 * exact + 1e-14


def test_steps_without_effect_and_without_guarantee():
    assert delta([Repeated(SampledGaussian(9, 0.0), 50)], 0.0) == 0.0
    assert epsilon([SampledGaussian(9, 0.0)], 0.0) == 0.0
    assert epsilon([SampledGaussian(9, 0.1)], 0.0) == math.inf
    assert delta([Repeated(SampledGaussian(9, 0.1), 10**13)], 1.0) == 1.0
    beside = [SampledGaussian(30, 0.5), Gaussian(0.2), Pure(0.1), auc_like()]
    assert delta(beside, 1.0) >= delta(beside[1:], 1.0)


@pytest.mark.parametrize(("n_records", "mu", "count"), [(1, 6.0, 3), (9, 4.1, 1), (3000, 5.0, 2)])
def test_a_secret_record_costs_no_more_than_a_public_one(n_records, mu, count):
    """Beyond mu = 4, where the lattice ends, the cost is that of Gaussian releases; before, 1."""
    event = Repeated(SampledGaussian(n_records, mu), count)
    whole = mu * math.sqrt(count)
    for epsilon_ in (0.5, 9.0, 40.0):
        assert delta([event], epsilon_) == pytest.approx(gdp_delta(whole, epsilon_), rel=1e-9)
        beside = [event, Gaussian(0.3), Pure(0.1)]
        public = [Repeated(Gaussian(mu), count), *beside[1:]]
        assert delta(beside, epsilon_) == delta(public, epsilon_)
    assert epsilon([event], 1e-6) == pytest.approx(epsilon([Gaussian(whole)], 1e-6), rel=1e-9)
    # Below, a secret record costs less.
    for n, small in ((2, 3.9), (100, 0.3), (3000, 2.0)):
        for e in (0.0, 0.1, 1.0, 4.0):
            assert delta([SampledGaussian(n, small)], e) < gdp_delta(small, e)
        assert epsilon([SampledGaussian(n, small)], 1e-6) < epsilon([Gaussian(small)], 1e-6)


@pytest.mark.parametrize(
    ("case", "most"),
    [
        ((400, 1.0, 999, 0.5), 1.03),
        pytest.param((400, 0.216, 159999, 1.0), 1.01, marks=pytest.mark.slow),
        pytest.param((400, 0.5, 159999, 2.0), 3.2, marks=pytest.mark.slow),
        pytest.param((400, 1.0, 10000, 1.0), 6.5, marks=pytest.mark.slow),
        pytest.param((400, 1.5, 10000, 2.0), 2.8, marks=pytest.mark.slow),
    ],
)
def test_many_steps_cost_what_brute_force_says(case, most):
    """With a lattice of 4096 cells 1.16, 1.0, 134, 122 and 32 times as much."""
    n_records, mu, count, epsilon_ = case
    exact = sampled_delta(*case)
    found = delta([Repeated(SampledGaussian(n_records, mu), count)], epsilon_)
    # The error of the brute force is below a thousandth.
    assert 0.999 * exact <= found <= most * exact


def auc_like():
    """A ranking objective."""
    return ObjectivePerturbation(0.05, ((1, 0.0), (1, 0.1), (2, 0.1)), pairwise=True)


def test_randomised_response_is_exact():
    grid = np.linspace(-2, 2, 33)
    exact = pure_delta(1.3, grid)
    assert profile(randomised_response_pld(1.3), grid) == pytest.approx(exact, abs=1e-15)
    # A contract of mass 4 at one loss is randomised response, too.
    loss = envelope([(1.0, 0.0, 0.0)], [(4.0, 1.3)], pairwise=False)
    assert profile(loss, grid) == pytest.approx(exact, abs=1e-9)


def exact_envelope(terms, grid):
    """Convex envelope of min(B(c), 1 - c + c B(1 / c)) from points alone."""
    c = np.exp(np.linspace(-2.5, 2.5, 20_001))

    def bound(c):
        return sum(w * gdp_delta(mu, np.log(c) - s) for w, s, mu in terms)

    values = np.minimum(bound(c), 1 - c + c * bound(1 / c))
    hull = []
    for x, y in zip(c, values, strict=True):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-1][0]) >= (
            y - hull[-1][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((x, y))
    return np.interp(np.exp(grid), *zip(*hull, strict=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "terms",
    [GLM, ((15.0, 0.2, 0.15),), ((1.0, 0.4, 0.0), (1.0, 0.4, 0.02)), ((0.7, 0.3, 0.1), (2, 0, 1))],
)
def test_envelope_is_the_largest_convex_function_below_its_bounds(terms):
    """Atoms multiply the terms: weights by masses, shifts by places."""
    grid = np.linspace(-1.0, 1.5, 101)
    for atoms in (ONE, ((1.0, 0.0), (0.5, 0.1))):
        product = [(w * a, s + t, mu) for w, s, mu in terms for a, t in atoms]
        exact = exact_envelope(product, grid)
        found = profile(envelope(terms, atoms, pairwise=False), grid)
        assert np.all(found >= exact - 1e-7)
        assert found == pytest.approx(exact, abs=2e-6 if atoms is ONE else 1e-4)


def test_pairwise_losses_keep_the_upper_mass():
    """P(L > t) is what the terms give, as far as it is below 1; no less below."""
    loss = envelope(GLM, ONE, pairwise=True)
    assert loss.mass.sum() == pytest.approx(1.0, rel=1e-9)
    assert loss.losses[0] > 0.0
    for t in (0.3, 0.6, 1.0):
        exact = sum(w * float(mpmath.ncdf((s + mu * mu / 2 - t) / mu)) for w, s, mu in GLM if mu)
        assert loss.mass[loss.losses > t].sum() == pytest.approx(exact, rel=2e-2)
    # What is beyond the lattice is neglected.
    assert float(ndtr(0.1 - loss.losses[-1] / 0.2 + 0.05 / 0.2)) <= pld._NEGLECTED


# --- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 7, 12])
def test_repeat_is_binomial(count):
    loss = randomised_response_pld(0.4).repeat(count)
    truth = 1 / (1 + math.exp(-0.4))
    assert loss.mass[::2] == pytest.approx(binom.pmf(np.arange(count + 1), count, truth), rel=1e-12)
    assert loss.losses[-1] == pytest.approx(0.4 * count)


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(st.lists(st.tuples(sizes, st.booleans()), min_size=2, max_size=5))
def test_sums_dominate_the_exact_distribution_of_randomised_responses(parts):
    """Atoms of all pure parts are enumerated; bounded-range parts are enlarged to pure ones."""
    epsilons = np.array([e for e, _ in parts])
    loss = compose([randomised_response_pld(e) for e in epsilons])
    signs = np.array(list(itertools.product((-1, 1), repeat=len(epsilons))))
    grid = np.linspace(-sum(epsilons), sum(epsilons), 57)
    gain = -np.expm1(np.minimum(np.subtract.outer(grid, signs @ epsilons), 0.0))
    exact = gain @ expit(signs * epsilons).prod(axis=1)
    assert np.all(profile(loss, grid) >= exact - 1e-12)
    assert profile(loss, grid) == pytest.approx(exact, abs=2e-3 * sum(epsilons))
    mixed = compose([(bounded_range_pld if r else randomised_response_pld)(e) for e, r in parts])
    assert np.all(profile(mixed, grid) <= profile(loss, grid) * (1 + 1e-3) + 1e-6)
    first, second = masses(mixed)
    assert first == pytest.approx(1.0, rel=1e-6)
    assert second == pytest.approx(1.0, rel=1e-9)


def test_long_sums_stay_short_and_lose_nothing_that_matters():
    loss = randomised_response_pld(0.01).repeat(10**6)
    assert len(loss.mass) <= 4 * pld.CELLS + 1
    assert 0 < loss.cut < 1e-35
    assert masses(loss)[0] == pytest.approx(1.0, abs=1e-5)
    mean, variance = 1e6 * 0.01 * math.tanh(0.005), 1e6 * 1e-4 / math.cosh(0.005) ** 2
    assert loss.losses @ loss.mass == pytest.approx(mean, rel=1e-4)
    assert (loss.losses - mean) ** 2 @ loss.mass == pytest.approx(variance, rel=1e-3)
    assert loss.error < 1e-4


def test_every_event_of_a_group_counts(monkeypatch):
    monkeypatch.setattr(accounting, "_GROUPS", 2)
    events = [Pure(0.1 + 0.01 * i) for i in range(7)]
    grouped = accounting.total_pld.__wrapped__(tuple((event, 1) for event in events))
    exact = compose([accounting._pld(event, pld.CELLS) for event in events])
    grid = np.array([0.0, 0.3, 0.6])
    assert profile(grouped, grid) == pytest.approx(profile(exact, grid), rel=1e-2)


@pytest.mark.slow
def test_many_different_events_cost_little_more_on_a_coarser_lattice():
    events = [glm(0.02 + 1e-4 * i, 0.001) for i in range(accounting._GROUPS + 8)]
    same = [Repeated(glm(0.02 + 1e-4 * (len(events) - 1), 0.001), len(events))]
    apart = epsilon(events, 1e-6)
    assert epsilon(events[:-8], 1e-6) < apart < epsilon(same, 1e-6)
    fine = compose([accounting._pld(event, pld.CELLS) for event in events])
    exact = profile(fine, np.array([apart]))[0]
    assert exact * (1 - 1e-9) <= delta(events, apart) <= exact * (1 + 2e-3)


def test_errors_of_sums_add_up():
    first, other = (PLD(1.0, 0, np.full(3, 1 / 3), error=error) for error in (2.0**-10, 2.0**-9))
    assert first.plus(other).error >= 3 * 2.0**-10
    assert first.repeat(5).error >= 5 * 2.0**-10
    # Masses of such an error say nothing.
    vague = replace(first, error=0.3)
    assert vague.plus(vague).cut == 1.0


def test_the_tail_of_a_sum_is_kept_if_that_of_a_part_is():
    whole = envelope([(1.0, 0.0, 1.0)], ONE, pairwise=True)
    for total in (whole.plus(bounded_range_pld(0.1)), bounded_range_pld(0.1).plus(whole)):
        assert total.tail == whole.tail == 0.0


def test_cut_mass_counts_as_an_infinite_loss(monkeypatch):
    loss = PLD(1.0, -1, np.array([2.0**-72, 2.0**-60, 1.0]), tail=0.0)._trim_tails()
    assert (loss.first, loss.mass.tolist()) == (0, [2.0**-60 + 2.0**-72, 1.0])
    loss = PLD(1.0, -1, np.array([1e-30, 1.0, 1e-50]))._trim_tails()
    assert loss.mass.tolist() == [1.0]
    assert loss.losses.tolist() == [0.0]
    assert loss.cut == 1e-50
    assert compose([]).mass.tolist() == [1.0]
    monkeypatch.setattr(pld, "TAIL", 1e-6)
    sums = envelope(GLM, ONE, pairwise=False).repeat(3)
    exact = 3 * (2 * float(mpmath.ncdf(-20)) + 1e-6)
    assert 1e-8 < sums.cut < exact * 10


@pytest.mark.parametrize(
    ("count", "fits", "searches"), [(10, 0.262, 0.530), (20, 0.3894, 0.877), (50, 0.648, 1.508)]
)
def test_many_fits_and_searches(count, fits, searches):
    """The table of the proof: fits and searches of (.1, 1e-9) each, together at 1e-6.

    A search is the best of a geometric number of runs, 15 on average.
    """
    mu = calibrate(lambda mu: [glm(mu)], 0.1, 1e-9, lower=0.0, upper=1.0)
    assert epsilon([Repeated(glm(mu), count)], 1e-6) == pytest.approx(fits, abs=6e-4)
    event = random_stopping_event(geometric_run_count(15.0), 0.01387722952260507)
    assert epsilon([event], 1e-9) == pytest.approx(0.1, abs=1e-4)
    assert epsilon([Repeated(event, count)], 1e-6) == pytest.approx(searches, abs=1e-3)


def test_single_events_stay_exact():
    """The closed forms of one event beside Gaussians, whatever the lattices cost."""
    for small in (1e-6, 1e-30, 1e-200):
        found = epsilon([glm(0.2, 0.02), Gaussian(0.05)], small)
        square = [(n, math.hypot(mu, 0.05)) for n, mu in glm(0.2).vertices]
        exact = sum(n * gdp_delta(mu, found - 0.02) for n, mu in square)
        assert exact <= small <= exact * (1 + 1e-7)
    assert gdp_mu(1.0, 1e-6) * (1 - 1e-9) <= calibrate(
        lambda mu: [glm(mu)], 1.0, 1e-6, lower=0.0, upper=1.0
    )


def test_every_rounding_has_its_share_of_the_stated_error():
    unit, chords = 2.0**-52, bounded_range_pld(1.0)
    assert randomised_response_pld(1.0).error >= 4.0 * unit
    assert chords.error >= 8.0 * unit
    assert chords._on_lattice(1.7 * chords.step).error >= chords.error + 8.0 * unit
    some, more = (PLD(1.0, 0, np.full(n, 1.0 / n)) for n in (3, 60))
    assert some.plus(more).error >= 3.0 * unit
    assert some.plus(more).cut > 0.0
    terms = [(1.0, 0.1, 0.0), (0.7, 0.2, 0.5)]
    loss = envelope(terms, ONE, pairwise=True)
    assert loss.error >= 2.0**-37
    assert loss.cut > 0.0


@pytest.mark.parametrize("mu", [0.01, 0.005, 1e-4])
def test_the_loss_of_narrow_terms_far_from_zero_is_replaced_by_one_that_dominates(mu):
    terms = [(1.0, 5.0, 0.0), (2.0, 5.0, mu / 2.0), (1.0, 5.0, mu)]
    loss, nothing = envelope(terms, ONE, pairwise=False), PLD(1.0, 0, np.ones(1))
    replaced = accounting.ProfileBound(loss, ((1.0, 0.0, 0.0),), pairwise=False)
    exact = accounting.ProfileBound(nothing, tuple(terms), pairwise=False)
    for value in (5.0, 5.0 + mu / 2.0, 5.0 + mu, 5.0 + 3.0 * mu):
        assert replaced.log_delta(value) > exact.log_delta(value)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n_records", "mu", "count"), [(50, 0.3, 2499), (20, 0.6, 300)])
def test_many_steps_cost_no_less_than_another_accountant_says(n_records, mu, count):
    """The other one composes one order of the neighbours; both are within the contract."""
    kind = privacy_loss_distribution.from_gaussian_mechanism
    for epsilon_ in (0.3, 1.0, 2.0):
        found = delta([Repeated(SampledGaussian(n_records, mu), count)], epsilon_)
        other = kind(1 / mu, sampling_prob=1 / n_records).self_compose(count)
        assert other.get_delta_for_epsilon(epsilon_) <= found
        half = kind(0.5 / mu, sampling_prob=1 / n_records).self_compose(count)
        assert half.get_delta_for_epsilon(epsilon_) > found  # planted: half the distance


def random_pair(seed):
    """One event with a sum of terms, another of any kind, and a threshold."""
    rng = np.random.default_rng(seed)
    scale = math.exp(rng.uniform(math.log(0.02), math.log(0.8)))

    def summed():
        mu, ratio = scale * rng.uniform(0.3, 1.5), scale * rng.choice([0.0, 0.3])
        kind = rng.integers(3)
        if kind == 0:
            return glm(mu, ratio)
        if kind == 1:
            vertices = ((1, 0.0), (int(rng.integers(1, 9)), mu), (1, 0.4 * mu))
            return ObjectivePerturbation(ratio, vertices)
        shares = tuple(rng.dirichlet(np.ones(2)) * 1.001)
        return of_gaussian(rng.uniform(1, 20), ratio, mu, shares)

    first = summed()
    second = [
        lambda: Gaussian(scale * rng.uniform(0.2, 1.5)),
        lambda: Pure(scale * rng.uniform(0.2, 1.5)),
        lambda: Exponential(scale * rng.uniform(0.2, 1.5)),
        summed,
        lambda: first,
    ][rng.integers(5)]()
    return first, second, float(10.0 ** -rng.uniform(1, 12))


class Exact:
    """A loss in 40 digits: atoms (mass, place), a density, and its profile."""

    def __init__(self, terms):
        """Symmetrised upper part of a sum of terms (weight, shift, mu)."""
        self.terms = [tuple(mpmath.mpf(x) for x in term) for term in terms]
        low, high = mpmath.mpf(0), max(s + mu * mu / 2 + 20 * mu for _, s, mu in self.terms)
        for _ in range(140):
            middle = (low + high) / 2
            low, high = (middle, high) if self.load(middle) > 1 else (low, middle)
        self.place, self.rest = high, 1 - self.load(high)

    def load(self, t):
        """Mass above t under both data sets."""
        total = mpmath.mpf(0)
        for w, s, mu in self.terms:
            if mu:
                x = (t - s) / mu
                total += w * (mpmath.ncdf(mu / 2 - x) + mpmath.exp(-s) * mpmath.ncdf(-mu / 2 - x))
            elif s > t:
                total += w * (1 + mpmath.exp(-s))
        return total

    def atoms(self):
        """What is left at the place where the mass is full, and the zero vertices above it."""
        upper = [(w, s) for w, s, mu in self.terms if not mu and s > self.place]
        upper.append((self.rest / (1 + mpmath.exp(-self.place)), self.place))
        return upper + [(w * mpmath.exp(-s), -s) for w, s in upper]

    def density(self, t):
        if t < 0:
            return mpmath.exp(t) * self.density(-t)
        if t < self.place:
            return mpmath.mpf(0)
        return sum(w * mpmath.npdf(t, s + mu * mu / 2, mu) for w, s, mu in self.terms if mu)

    def profile(self, value):
        """Hockey stick; its arguments in c = exp(value)."""
        if value < 0:
            return 1 - mpmath.exp(value) + mpmath.exp(value) * self.profile(-value)
        at = max(value, self.place)
        total = mpmath.mpf(0)
        for w, s, mu in self.terms:
            if mu:
                x = (at - s) / mu
                total += w * mpmath.ncdf(mu / 2 - x)
                total -= w * mpmath.exp(value - s) * mpmath.ncdf(-mu / 2 - x)
        return total + sum(
            p * (1 - mpmath.exp(value - place)) for p, place in self.atoms() if place > value
        )

    def kinks(self):
        """Where the profile is not smooth."""
        return [place for _, place in self.atoms()] + [self.place, -self.place]

    def expectation(self, function, kinks=()):
        """Sum over the atoms and integral over the density."""
        total = sum(p * function(place) for p, place in self.atoms())
        top = max(s + mu * mu / 2 + 13 * mu for _, s, mu in self.terms)
        if top > self.place:
            for a, b in ((self.place, top), (-top, -self.place)):
                ends = sorted([*mpmath.linspace(a, b, 7), *(k for k in kinks if a < k < b)])
                total += mpmath.quad(lambda t: self.density(t) * function(t), ends)
        return total


def terms_of(event):
    """Contract of an event as a list of terms, written out again."""
    if isinstance(event, ObjectivePerturbation):
        return [(n, event.log_ratio, mu) for n, mu in event.vertices]
    return [
        (event.mean_runs * share, event.log_ratio * j / len(event.shares), event.mu)
        for j, share in enumerate(event.shares, 1)
    ]


def other_profile(event):
    """Exact profile of the second event of a mixture, and where it is not smooth."""
    if isinstance(event, Gaussian):
        return lambda v: exact_gdp(event.mu, v), []
    if not isinstance(event, Pure | Exponential):
        distribution = Exact(terms_of(event))
        return distribution.profile, distribution.kinks()
    top = mpmath.mpf(event.epsilon)

    def bounded(v):
        if abs(v) >= top:
            return max(mpmath.mpf(0), 1 - mpmath.exp(v))
        if isinstance(event, Pure):
            return (1 - mpmath.exp(v - top)) / (1 + mpmath.exp(-top))
        return (1 - mpmath.exp((v - top) / 2)) ** 2 / (1 - mpmath.exp(-top))

    return bounded, [top, -top]


def exact_delta(first, second, value):
    """Profile of the sum of two losses in 40 digits."""
    with mpmath.workdps(40):
        inner, kinks = other_profile(second)
        threshold = mpmath.mpf(value)
        return Exact(terms_of(first)).expectation(
            lambda t: inner(threshold - t), [threshold - k for k in kinks]
        )


MORE = (pytest.param(seed, marks=pytest.mark.slow) for seed in (2, *range(4, 60)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1, 3, *MORE])
def test_never_below_an_exact_composition(seed):
    first, second, small = random_pair(seed)
    found = epsilon([first, second], small)
    exact = float(exact_delta(first, second, found))
    # Quadrature of 40 digits still has kinks to integrate over.
    assert exact <= small * (1 + 1e-8)
    assert small < 10.0 * exact


def chord_below(terms, step, first, last, real=pld._gaussian_masses):
    """Tangents in the middle of the cells instead of chords: all mass at the lower end."""
    mass = real(terms, step, first, last)
    mass[:-1] = 0.5 * (mass[1:] + mass[:-1])
    return np.append(mass[2:], [0.0, 0.0])


def rounded_down(losses, mass, step):
    first = math.floor(losses[0] / step)
    return first, np.bincount(np.floor(losses / step).astype(int) - first, mass)


def kept(change, real=pld._upper_part):
    """Plant a change of the masses of the upper part."""

    def planted(measure, load):
        loss = real(measure, load)
        return PLD(loss.step, loss.first, change(loss.mass), loss.cut)

    return planted


PLANTED = {
    "mass not renormalised": ("_upper_part", kept(lambda mass: 0.97 * mass)),
    "shifted cell": ("_upper_part", kept(lambda mass: np.append(mass[1:], 0.0))),
    "chord below": ("_gaussian_masses", chord_below),
    "rounded down": ("_split_atoms", rounded_down),
}


@pytest.mark.slow
def test_planted_bugs_fall_below_the_exact_composition(monkeypatch):
    first, second, value = glm(0.4, 0.05), glm(0.45, 0.05), 2.5
    exact = float(exact_delta(first, second, value))

    def composed():
        return compose([envelope(terms_of(e), ONE, pairwise=False) for e in (first, second)])

    right = composed()
    assert exact <= profile(right, np.array([value]))[0] <= exact * (1 + 1e-4)
    for name, planted in PLANTED.values():
        with monkeypatch.context() as patch:
            patch.setattr(pld, name, planted)
            copy = PLD(right.step, right.first, right.mass)
            wrong = copy._on_lattice(0.01) if name == "_split_atoms" else composed()
        assert profile(wrong, np.array([value]))[0] < exact * (1 - 1e-5), planted


def lost_infinity(measure, load, real=pld._upper_part):
    return PLD(measure.step, measure.first, real(measure, load).mass)


def test_missing_infinite_loss_would_be_caught(monkeypatch):
    """Planted bug: the mass beyond the lattice is forgotten."""
    grid = np.array([1.5, 2.0])
    exact = np.array([float(Exact(GLM).profile(mpmath.mpf(v))) for v in grid])
    monkeypatch.setattr(pld, "TAIL", 1e-6)
    assert np.all(profile(envelope(GLM, ONE, pairwise=False), grid) >= exact)
    monkeypatch.setattr(pld, "_upper_part", lost_infinity)
    assert np.all(profile(envelope(GLM, ONE, pairwise=False), grid) < exact)
