"""The price of selecting among runs that are not Gaussian, against selections by brute force."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from dp_halfspace.privacy import random_stopping
from dp_halfspace.privacy.accounting import delta
from dp_halfspace.privacy.events import Exponential, Gaussian, ObjectivePerturbation, Pure, Repeated
from dp_halfspace.privacy.profiles import LOG_SLACK, gdp_delta
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    TradeOff,
    chord_shares,
    geometric_run_count,
    is_mixable,
    log_ratio_of,
    mixed_random_stopping_event,
    random_stopping_event,
    trade_off,
)
from tests.privacy.oracles import divergence, exact_gdp, glm, slope

UNIFORM = RunCountDistribution(1.0, 1e-6, 12)
DISTRIBUTIONS = [
    RunCountDistribution(1.0, 1 / 15, 301),
    RunCountDistribution(0.0, 0.01, 600),
    RunCountDistribution(2.0, 0.1, 200),
    UNIFORM,
]
EPSILONS = (-0.5, 0.0, 0.2, 0.5, 1.0, 2.0)


def selected(distribution, masses, ranks):
    """Distribution of the best run when outcomes of a higher rank are better; no ties.

    `ranks` of shape (n_rankings, n_outcomes).
    """
    order = np.argsort(ranks, axis=-1)
    reached = np.minimum(np.cumsum(masses[order], axis=-1), 1.0)
    f = np.polynomial.polynomial.polyval(reached, np.append(0.0, distribution.probabilities))
    found = np.empty_like(reached)
    np.put_along_axis(found, order, np.diff(f, prepend=0.0, axis=-1), axis=-1)
    return found


def adversaries(pair, rng, count=3):
    """Rankings: by the loss and against it, best outcomes first and the rest reversed, random."""
    loss = np.log(pair[0]) - np.log(pair[1])
    place, size = np.argsort(np.argsort(loss)), len(loss)
    rankings = [place, -place]
    for masses, score in ((pair[1], place), (pair[0], -place)):
        beyond = 1.0 - np.cumsum(masses[np.argsort(score)])[np.argsort(np.argsort(score))]
        for top in np.geomspace(1e-3, 0.5, 16):
            rankings += [np.where(beyond < top, size, 0) - score]
            rankings += [np.where(beyond < top, 3 * size + score, -score)]
    rankings += [rng.permutation(size) for _ in range(count)]
    return np.array(rankings)


def worst(distribution, pair, at, seed=0):
    """Largest divergence over rankings and both directions."""
    rankings = adversaries(pair, np.random.default_rng(seed))
    p, q = (selected(distribution, masses, rankings) for masses in pair)
    return max(divergence(p, q, at).max(), divergence(q, p, at).max())


def line(mu, cells=4000):
    """The Gaussian pair on many small cells."""
    ends = np.linspace(-8.5, 8.5 + mu, cells - 1)
    pair = (np.diff(np.concatenate([[0.0], ndtr(ends - m), [1.0]])) for m in (0.0, mu))
    return [np.maximum(masses, 1e-300) for masses in pair]


def product(first, second):
    return [np.outer(a, b).ravel() for a, b in zip(first, second, strict=True)]


def response(loss):
    p = expit(loss)
    return [np.array([p, 1 - p]), np.array([1 - p, p])]


# --- the trade-off function ---------------------------------------------------------------------


def gaussian_profile(mu):
    return lambda t: np.log(np.maximum(gdp_delta(mu, t), 1e-300))


@pytest.mark.parametrize("mu", [1e-4, 0.02, 0.3, 1.0, 5.0])
def test_lines_are_just_above_the_trade_off_function_of_a_gaussian(mu):
    bound = trade_off(gaussian_profile(mu))

    def above(s):
        slope, height = bound.line(ndtr(s))
        return slope * ndtr(s) + height

    # As far as the slope is at least one: beyond, the last line is a little above.
    s, later = np.linspace(-7.0, -mu / 2, 3001), np.linspace(-mu / 2, 6.0, 301)
    found, exact = above(s), ndtr(s + mu)
    assert (above(later) >= ndtr(later + mu)).all()
    assert (found >= exact * (1 - 1e-13)).all()
    assert (found - exact <= 1e-3 * min(mu, 1.0) * exact + 1e-13).all()
    assert (np.diff(bound.slopes) > 0).all()
    assert (np.diff(bound.heights) <= 0).all()
    assert (bound.slopes[0], bound.heights[0]) == (0.0, 1.0)
    # A profile that does not fall has no lines.
    assert trade_off(lambda t: np.full(t.shape, math.log(1e-3))) is None


@given(
    st.lists(st.floats(0.01, 1.0), min_size=3, max_size=9),
    st.lists(st.floats(0.01, 1.0), min_size=9, max_size=9),
)
def test_no_event_is_above_the_lines(first, second):
    """All events of small mechanisms, one by one."""
    p, q = (np.array(x[: len(first)]) / sum(x[: len(first)]) for x in (first, second))
    bound = trade_off(exact_profile([p, q]))
    for members in itertools.product([False, True], repeat=len(p)):
        inside = np.array(members)
        for one, other in ((p, q), (q, p)):
            slope, height = bound.line(np.array([one[inside].sum()]))
            assert other[inside].sum() <= slope[0] * one[inside].sum() + height[0] + 1e-15


def exact_profile(pair):
    """Logarithm of the profile of a discrete pair, the larger of both directions."""

    def log_delta(t):
        p, q = pair
        c = np.exp(np.asarray(t))[:, None]
        both = [np.maximum(a - c * b, 0.0).sum(axis=1) for a, b in ((p, q), (q, p))]
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(*both))

    return log_delta


# --- the theorem --------------------------------------------------------------------------------


def general_bound(distribution, log_delta, at):
    """The right side of the theorem for any profile."""
    lines = trade_off(log_delta)
    ratio = log_ratio_of(distribution.probabilities, lines, 2.0**-18)
    shares = chord_shares(distribution.probabilities, distribution.mean, lines, ratio)
    places = at - ratio * np.arange(1, len(shares) + 1) / len(shares)
    return distribution.mean * float(np.array(shares) @ np.exp(log_delta(places)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_selections_from_small_mechanisms_stay_below(distribution):
    """Every ranking of six outcomes, random masses of many sizes."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        p = rng.dirichlet(np.full(6, 0.7)) + 1e-9
        q = p * np.exp(rng.normal(0.0, 0.4, 6))
        pair = [p / p.sum(), q / q.sum()]
        rankings = np.array(list(itertools.permutations(range(6))))
        best = [selected(distribution, masses, rankings) for masses in pair]
        for at in EPSILONS:
            bound = general_bound(distribution, exact_profile(pair), at)
            assert divergence(*best, at).max() <= bound + 1e-14
            assert divergence(*best[::-1], at).max() <= bound + 1e-14


@pytest.mark.sampled(4)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.5])
def test_gaussian_runs_cost_what_they_did(distribution, mu):
    general = mixed_random_stopping_event(distribution, [Gaussian(0.6 * mu), Gaussian(0.8 * mu)])
    special = random_stopping_event(distribution, mu)
    assert general.log_ratio == pytest.approx(special.log_ratio, rel=2e-4)
    for at in (0.0, mu, 4 * mu):
        ours, theirs = (delta([event], at) for event in (general, special))
        assert theirs * (1 - 1e-3) <= ours <= theirs * (1 + 3e-3)


# --- perturbed objectives -----------------------------------------------------------------------


def objective_pair(one, other, ridge, sigma, cells=1200):
    """Exact distributions of the minimiser in one dimension, which moves with the linear term."""
    ends = np.linspace(-40.0 / ridge, 40.0 / ridge, 200_001)
    # What the linear term has to be falls with the minimiser; its distribution is Gaussian.
    reached = [
        ndtr((ridge * ends - sum(z * expit(-z * ends) for z in records)) / sigma)
        for records in (one, other)
    ]
    places = [np.searchsorted(r, ndtr(np.linspace(-8.0, 8.0, cells))) for r in reached]
    kept = np.unique(np.minimum(np.concatenate(places), len(ends) - 1))
    return [np.maximum(np.diff(r[kept], prepend=0.0, append=1.0), 1e-300) for r in reached]


def objective_event(ridge, sigma):
    return glm(2.0 / sigma, math.log1p(0.25 / ridge))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("distribution", [DISTRIBUTIONS[0], UNIFORM])
@pytest.mark.parametrize(("ridge", "sigma"), [(2.0, 9.0), (8.0, 7.0)])
def test_selections_of_perturbed_objectives_stay_below(distribution, ridge, sigma):
    rows = [1.0, -1.0, 0.4]
    pair = objective_pair([*rows, 1.0], [*rows, -1.0], ridge, sigma)
    event = mixed_random_stopping_event(distribution, [objective_event(ridge, sigma)])
    for at in (0.3, 0.8, 1.4):
        assert worst(distribution, pair, at) <= delta([event], at)


def test_selection_of_a_loss_that_uses_the_whole_contract():
    """Randomised response of the Jacobian beside a Gaussian: the contract nearly attained."""
    distribution, jump, mu = geometric_run_count(15), 0.06, 0.12
    wide = product(response(jump), line(mu, 1500))
    event = mixed_random_stopping_event(
        distribution, [ObjectivePerturbation(jump, ((1, 0.0), (1, mu)))]
    )
    for at in (0.6, 1.0):
        bound = delta([event], at)
        assert 0.02 * bound <= worst(distribution, wide, at) <= bound


# --- planted bugs -------------------------------------------------------------------------------


def without_factor(log_delta):
    """Lines a + delta(t), the factor exp(t) forgotten."""
    right = trade_off(log_delta)
    return TradeOff(np.minimum(right.slopes, 1.0 + 1e-9 * right.slopes), right.heights)


def with_half_the_profile(log_delta):
    right = trade_off(log_delta)
    return TradeOff(right.slopes, np.append(1.0, 0.5 * right.heights[1:]))


DISTRIBUTION, MU = geometric_run_count(15), 0.15


@pytest.mark.slow
@pytest.mark.parametrize("planted", [without_factor, with_half_the_profile])
def test_wrong_trade_off_functions_are_caught(planted, monkeypatch):
    monkeypatch.setattr(random_stopping, "trade_off", planted)
    assert worst(DISTRIBUTION, line(MU), 1.0) > delta(
        [mixed_random_stopping_event(DISTRIBUTION, [Gaussian(MU)])], 1.0
    )


def test_bound_is_nearly_attained_and_planted_accounts_of_the_runs_are_caught():
    found, right = (
        worst(DISTRIBUTION, line(MU), 1.0),
        mixed_random_stopping_event(DISTRIBUTION, [Gaussian(MU)]),
    )
    assert 0.8 * delta([right], 1.0) <= found <= delta([right], 1.0)
    for planted in (
        mixed_random_stopping_event(
            DISTRIBUTION, [Gaussian(MU / math.sqrt(2))]
        ),  # the score is not charged
        replace(right, mean_runs=1.0),
        replace(right, log_ratio=0.0, shares=(1.0,)),
    ):
        assert found > delta([planted], 1.0)


@pytest.mark.slow
def test_forgotten_jacobian_is_caught():
    """A pure piece is charged several times over by a selection."""
    jump, mu = 0.3, 0.02
    wide = product(response(jump), line(mu, 1500))
    honest, careless = (
        mixed_random_stopping_event(
            DISTRIBUTION, [ObjectivePerturbation(ratio, ((1, 0.0), (1, mu)))]
        )
        for ratio in (jump, 0.0)
    )
    found = {at: worst(DISTRIBUTION, wide, at) for at in (0.4, 0.6)}
    assert all(value <= delta([honest], at) for at, value in found.items())
    assert any(value > delta([careless], at) for at, value in found.items())


# --- numerics and the event ---------------------------------------------------------------------


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [0.02, 0.4, 2.0])
def test_cells_bound_their_functions(distribution, mu):
    """B is above its value at the lower end plus what its slope promises, on random cells."""
    lines = trade_off(gaussian_profile(mu))
    k = np.arange(1, distribution.k_max + 1)
    first = k * distribution.probabilities
    coefficients = np.stack([first, np.append((first * (k - 1))[1:], 0.0)])
    rng = np.random.default_rng(0)
    low = rng.uniform(-6.0, 6.0 + mu, 300)
    high = low + rng.exponential(0.3, 300)
    at_low, at_high, flattest = lines.enclose(coefficients, low, high)
    assert (at_low <= slope(distribution, ndtr(low - mu)) * (1 + 1e-10)).all()
    assert (at_high <= slope(distribution, ndtr(high - mu)) * (1 + 1e-10)).all()
    inside = low + (high - low) * np.linspace(0, 1, 21)[:, None]
    true = slope(distribution, ndtr(inside - mu))
    promised = at_low + (inside - low) * flattest
    assert (true >= promised * (1 - 1e-10)).all()


def profile_used(monkeypatch, run):
    """Return the logarithm of the profile of a run as the trade-off function is given it."""
    seen = []

    def keep(log_delta):
        seen.append(log_delta)
        return SimpleNamespace(top=math.inf)

    monkeypatch.setattr(random_stopping, "trade_off", keep)
    event = mixed_random_stopping_event(geometric_run_count(5), run)
    return seen[0], event.terms


RUN = [objective_event(2.0, 9.0), Gaussian(0.1)]


def assert_profile_is_rounded_up(monkeypatch):
    log_delta, terms = profile_used(monkeypatch, RUN)
    points = np.array([0.0, 0.03, 0.11, 0.4, 0.9])
    with mpmath.workdps(40):
        for t, found in zip(points, log_delta(points), strict=True):
            exact = mpmath.log(sum(w * exact_gdp(mu, t - s) for w, s, mu in terms))
            assert 0.5 * LOG_SLACK <= mpmath.mpf(float(found)) - exact <= 1e-8
        # Weights are those of the vertices, the largest shift is the ratio of Jacobians: up, too.
        weights = mpmath.fsum(mpmath.mpf(w) for w, _, _ in terms)
        assert 2.0**-46 <= weights - 4 <= 1e-9
        jump = mpmath.mpf(objective_event(2.0, 9.0).log_ratio)
        assert 2.0**-46 * jump <= max(s for _, s, _ in terms) - jump <= 1e-9


def test_the_profile_of_a_run_is_rounded_up(monkeypatch):
    """Planted: no allowance for the rounding of one of the two."""
    with monkeypatch.context() as patch:
        assert_profile_is_rounded_up(patch)
    for name, nothing in (("LOG_SLACK", 0.0), ("UP", 1.0)):
        with monkeypatch.context() as patch:
            patch.setattr(random_stopping, name, nothing)
            with pytest.raises(AssertionError):
                assert_profile_is_rounded_up(patch)


def test_budgets_are_lowered_and_shifts_are_raised(monkeypatch):
    """The allowance for the rounding of both, made large enough to be seen."""
    monkeypatch.setattr(random_stopping, "EPSILON_SLACK", 0.1)
    log_delta, terms = profile_used(monkeypatch, RUN)
    for t in (0.03, 0.4):
        exact = sum(w * gdp_delta(mu, 0.9 * t - 1.1 * s) for w, s, mu in terms)
        assert log_delta(np.array([t]))[0] == pytest.approx(math.log(exact), abs=1e-7)


def test_weights_of_a_composition_are_taken_over(monkeypatch):
    honest = random_stopping.gaussian_terms

    def heavier(counts):
        return [(1.1 * weight, shift, mu) for weight, shift, mu in honest(counts)]

    monkeypatch.setattr(random_stopping, "gaussian_terms", heavier)
    event = mixed_random_stopping_event(geometric_run_count(5), [Gaussian(0.15)])
    assert sum(w for w, _, _ in event.terms) == pytest.approx(1.1, rel=1e-9)


def test_the_whole_range_is_rounded_up(monkeypatch):
    monkeypatch.setattr(random_stopping, "trade_off", lambda _: SimpleNamespace(top=math.inf))
    for mean in np.linspace(1.5, 30, 40):
        distribution = geometric_run_count(float(mean))
        found = mixed_random_stopping_event(distribution, [Gaussian(0.1)]).log_ratio
        with mpmath.workdps(40):
            first = mpmath.mpf(float(distribution.probabilities[0])) * (1 - mpmath.mpf(2) ** -52)
            assert found >= mpmath.log(mpmath.mpf(distribution.mean) / first)


def test_ends_of_the_range():
    distribution, one = geometric_run_count(5), RunCountDistribution(2.0, 0.3, 1)
    whole = math.log(distribution.mean / distribution.probabilities[0])
    far, still = (mixed_random_stopping_event(distribution, [Gaussian(mu)]) for mu in (60.0, 0.0))
    assert whole * (1 - 1e-15) <= far.log_ratio <= whole * (1 + 1e-6)
    assert delta([mixed_random_stopping_event(distribution, [Gaussian(math.inf)])], 50.0) == 1.0
    assert abs(mixed_random_stopping_event(one, [Gaussian(0.7)]).log_ratio) < 1e-12
    assert still.log_ratio < 1e-5
    assert delta([still], 0.01) < 1e-9


def test_what_can_be_mixed():
    objective = objective_event(1.0, 5.0)
    ranking = ObjectivePerturbation(0.1, ((1, 0.0), (2, 0.2)), pairwise=True)
    assert is_mixable([Gaussian(0.1), Repeated(Repeated(objective, 2), 2)])
    for other in (Pure(0.1), Exponential(0.1), ranking, Repeated(Pure(0.1), 2)):
        assert not is_mixable([Gaussian(0.1), other])
        with pytest.raises(ValueError, match="a run must release"):
            mixed_random_stopping_event(geometric_run_count(3), [Gaussian(0.1), other])
