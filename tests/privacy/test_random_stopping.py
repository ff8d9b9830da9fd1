"""The law of the number of runs against fractions; its cost against brute force."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from dp_halfspace.privacy import _rank_ratio, tuning
from dp_halfspace.privacy.accounting import calibrate, delta
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.profiles import gdp_delta, gdp_mu
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.privacy.tuning import (
    RunLaw,
    calibrate_selection,
    geometric_law,
    run_law,
    selection_event,
)
from tests.privacy.oracles import divergence, of_gaussian, slope

FALSE_ALARM = 1e-6
CAUGHT = 1e-12
LAWS = [
    RunLaw(1.0, 1 / 15, 301),
    RunLaw(0.0, 0.01, 600),
    RunLaw(-0.5, 0.05, 80),
    RunLaw(2.0, 0.1, 200),
    RunLaw(3.5, 0.5, 7),
    RunLaw(1.0, 1e-6, 12),
]


def log_ratio(law, mu):
    return selection_event(law, mu).log_ratio


def miss_probability(law, n_candidates):
    """Probability that a given candidate is tried in none of the runs."""
    return law.probabilities @ (1.0 - 1.0 / n_candidates) ** np.arange(1, law.k_max + 1)


def seeded(seed=0):
    return SeededBytes(seed, "test")


class Bytes:
    """Given 64-bit words first, then one repeated byte."""

    kind = "seeded"

    def __init__(self, words, byte):
        self.words = list(words)
        self.byte = byte

    def read(self, n):
        assert n == 8
        return self.words.pop(0).to_bytes(8, "little") if self.words else bytes([self.byte]) * n


# --- the law ----------------------------------------------------------------------------------


def exact_probabilities(law):
    """Probabilities as fractions, from the gamma function of the definition."""
    eta, r = Fraction(law.eta), Fraction(law.r)
    weights = [
        math.prod([(eta + i) / i for i in range(1, k)], start=Fraction(1, k)) * (1 - r) ** (k - 1)
        for k in range(1, law.k_max + 1)
    ]
    return [weight / sum(weights) for weight in weights]


SMALL = [RunLaw(0.3, 0.2, 1), RunLaw(1.0, 0.5, 3), RunLaw(-0.9, 0.01, 9), RunLaw(7.0, 0.3, 20)]


@pytest.mark.parametrize("law", SMALL)
def test_numbers_of_the_law_are_those_of_fractions(law):
    exact = exact_probabilities(law)
    assert law.probabilities.tolist() == [float(p) for p in exact]
    mean = sum(k * p for k, p in enumerate(exact, 1))
    assert mean <= Fraction(law.mean) <= mean * (1 + Fraction(1, 2**51))
    for bits in (96, 160, 544):
        reached = itertools.accumulate(exact)
        for k, value in enumerate(reached, 1):
            assert abs(tuning._distribution(law, bits)[k - 1] - value * 2**bits) <= 1


@pytest.mark.parametrize(
    ("law", "oracle"),
    [
        (RunLaw(1.0, 0.1, 300), stats.geom(0.1)),
        (RunLaw(2.5, 0.2, 90), stats.nbinom(2.5, 0.2)),
        (RunLaw(0.4, 0.02, 1000), stats.nbinom(0.4, 0.02)),
        (RunLaw(0.0, 0.3, 50), stats.logser(0.7)),
    ],
)
def test_law_against_scipy(law, oracle):
    k = np.arange(1, law.k_max + 1)
    masses = oracle.pmf(k)
    np.testing.assert_allclose(law.probabilities, masses / masses.sum(), rtol=1e-10)
    assert law.mean == pytest.approx(law.probabilities @ k, rel=1e-12)


def test_probabilities_are_read_only_and_laws_are_values():
    law = RunLaw(1, 0.5, np.int64(4))
    assert law == RunLaw(1.0, 0.5, 4)
    assert hash(law) == hash(RunLaw(1.0, 0.5, 4))
    assert type(law.k_max) is int
    with pytest.raises(ValueError, match="read-only"):
        law.probabilities[0] = 0.0
    assert RunLaw(5.0, 1.0, 10).probabilities.tolist() == [1.0] + [0.0] * 9
    # The largest cap and shape keep P(K = 1), a divisor, far from the subnormal numbers.
    assert 1e-232 < RunLaw(64.0, 1e-300, 100_000).probabilities[0] < 1e-200


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1.0, 0.5, 3), "eta"),
        ((64.5, 0.5, 3), "eta"),
        ((math.nan, 0.5, 3), "eta"),
        ((1.0, 0.0, 3), "r"),
        ((1.0, 1.1, 3), "r"),
        ((1.0, math.nan, 3), "r"),
        ((1.0, 0.5, 0), "k_max"),
        ((1.0, 0.5, 100_001), "k_max"),
        ((1.0, 0.5, 3.0), "k_max"),
        ((1.0, 0.5, True), "k_max"),
    ],
)
def test_bad_parameters_are_named(arguments, name):
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        RunLaw(*arguments)


# --- sampling ---------------------------------------------------------------------------------


def draw_pvalue(draws, law):
    """Chi-square test of the frequencies, the thin tail in one class."""
    expected = law.probabilities * len(draws)
    last = int(np.flatnonzero(expected >= 8)[-1])
    counts = np.bincount(np.minimum(draws, last + 2), minlength=last + 3)[1:]
    rest = expected[last + 1 :].sum()
    merged = np.append(expected[: last + 1], rest)
    if rest < 8:
        counts = np.append(counts[:last], counts[last:].sum())
        merged = np.append(expected[:last], expected[last:].sum())
    return stats.chisquare(counts, merged * len(draws) / merged.sum()).pvalue


@pytest.mark.parametrize("law", LAWS)
def test_frequencies_of_draws(law):
    source = seeded(1)
    draws = [law.draw(source) for _ in range(4000)]
    assert min(draws) >= 1
    assert max(draws) <= law.k_max
    assert draw_pvalue(draws, law) > FALSE_ALARM


def test_planted_sampling_bugs_are_caught():
    law, source = RunLaw(1.0, 0.2, 12), seeded(2)
    draws = np.array([law.draw(source) for _ in range(8000)])
    assert draw_pvalue(draws, law) > FALSE_ALARM
    assert draw_pvalue(np.minimum(draws + 1, 12), law) < CAUGHT  # off by one
    uncapped = np.random.default_rng(0).geometric(0.2, 8000)
    assert draw_pvalue(np.minimum(uncapped, 12), law) < CAUGHT  # the tail put on the cap
    assert draw_pvalue([RunLaw(1.0, 0.25, 12).draw(source) for _ in range(8000)], law) < CAUGHT


@pytest.mark.parametrize("law", [RunLaw(1.0, 0.5, 3), RunLaw(0.25, 1 / 16, 90)])
def test_bits_beyond_the_first_word_decide_close_calls(law):
    """A first word that agrees with P(K <= k) to 64 bits leaves the order open."""
    exact = list(itertools.accumulate(exact_probabilities(law)))
    for k in (1, law.k_max // 2 + 1):
        cell = math.floor(exact[k - 1] * 2**64)
        assert law.draw(Bytes([cell], 0)) == k
        assert law.draw(Bytes([cell], 255)) == k + 1
        assert law.draw(Bytes([cell - 1], 255)) == k
        assert law.draw(Bytes([cell + 1], 0)) == k + 1
    assert law.draw(Bytes([], 0)) == 1
    assert law.draw(Bytes([], 255)) == law.k_max


# --- choosing a law ---------------------------------------------------------------------------


def test_geometric_laws():
    for mean in (1.5, 5, 15, 100, 2000.0):
        law = geometric_law(mean)
        assert law.eta == 1.0
        assert mean * (1 - 1e-6) < law.mean <= mean
        assert (1 - law.r) ** law.k_max <= 1e-9 < (1 - law.r) ** (law.k_max - 2)
    assert geometric_law(1) == RunLaw(1.0, 1.0, 1)
    assert geometric_law(1).mean == 1.0
    for mean in (0.9, math.inf, math.nan):
        with pytest.raises(ValueError, match="mean must be"):
            geometric_law(mean)
    with pytest.raises(ValueError, match="needs more than 100000 runs"):
        geometric_law(1e5)


@given(st.integers(1, 40), st.floats(0.05, 0.98), st.floats(0.6, 20.0))
def test_run_law_meets_its_miss_with_no_run_to_spare(n_candidates, miss, eta):
    law = run_law(n_candidates, miss, eta=eta)
    found = miss_probability(law, n_candidates)
    assert found <= miss
    assert law.k_max == 1 or found >= miss * (1 - 1e-6)


@pytest.mark.parametrize("eta", [0.5, 0.7, 1.0, 2.0, 9.0])
@pytest.mark.parametrize("miss", [0.3, 0.1])
def test_default_caps_cut_less_than_they_say(eta, miss):
    law = run_law(8, miss, eta=eta)
    oracle = stats.nbinom(eta, law.r)
    assert oracle.sf(law.k_max) / oracle.sf(0) <= 1e-9 * (1 + 1e-6)
    assert oracle.sf(0.98 * law.k_max) / oracle.sf(0) > 1e-9


def test_run_law_edges():
    assert run_law(1, 0.5) == run_law(10, 0.95) == RunLaw(1.0, 1.0, 1)
    assert run_law(3, 0.3, eta=0.0).eta == 0.0
    assert miss_probability(run_law(3, 0.4, eta=-0.3), 3) == pytest.approx(0.4, rel=1e-6)
    for n_candidates, miss, eta, message in (
        (0, 0.1, 1.0, "n_candidates must be"),
        (3, 0.0, 1.0, "miss must be"),
        (3, 1.0, 1.0, "miss must be"),
        (3, 0.5, -1.0, "eta must be"),
        (15, 1e-5, 1.0, "needs more than"),
        (15, 1e-3, -0.9, "needs too many runs"),
    ):
        with pytest.raises(ValueError, match=message):
            run_law(n_candidates, miss, eta=eta)


# --- certified suprema ------------------------------------------------------------------------


def test_normal_distribution_function_is_as_accurate_as_the_proof_assumes():
    for t in np.linspace(-9, 9, 361):
        with mpmath.workdps(50):
            exact = mpmath.ncdf(mpmath.mpf(float(t)))
            error = abs(mpmath.mpf(float(ndtr(t))) / exact - 1)
        assert error < (2.0**-50 if t >= -2 else 2.0**-46)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0, 1))
def test_polynomials_are_sums_of_powers(coefficients, point):
    values = _rank_ratio.polynomials(
        np.array([coefficients, coefficients[::-1]]), np.array([point])
    )
    for row, chosen in zip(values, (coefficients, coefficients[::-1]), strict=True):
        exact = sum(Fraction(c) * Fraction(point) ** i for i, c in enumerate(chosen))
        assert row[0] == pytest.approx(float(exact), rel=1e-13, abs=1e-290)


def log_derivative(law):
    """Logarithm of f'(Phi(t)) in high precision."""
    weights = [mpmath.mpf(float(p)) * k for k, p in enumerate(law.probabilities, 1)]

    def value(t):
        q, total = mpmath.ncdf(t), mpmath.mpf(0)
        for weight in reversed(weights):
            total = total * q + weight
        return mpmath.log(total)

    return value


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mu", [1e-5, 2.0**-12, 0.02, 0.15, 1.0, 6.0])
def test_log_ratio_is_just_above_the_supremum(law, mu):
    found = log_ratio(law, mu)
    # A fine grid locates the supremum, high precision evaluates it.
    s = np.linspace(-8, 9 + mu, 20_001)
    values = np.log(slope(law, ndtr(s)) / slope(law, ndtr(s - max(mu, 1e-3))))
    with mpmath.workdps(50):
        value = log_derivative(law)
        top = mpmath.mpf(float(s[values.argmax()]))
        grid = [top + mpmath.mpf(j) / 5000 for j in range(-10, 11)]
        best = float(max(value(t) - value(t - mu) for t in grid))
    assert best <= found <= best + 2.0**-15 * mu


def test_log_ratio_at_the_ends():
    law = RunLaw(1.0, 0.1, 30)
    whole = math.log(law.mean / law.probabilities[0])
    for mu in (20.0, 64.0, 1e9, math.inf):
        assert log_ratio(law, mu) == pytest.approx(whole, rel=1e-6)
        assert log_ratio(law, mu) >= whole * (1 - 1e-15)
    assert log_ratio(law, 0.0) == 0.0
    assert log_ratio(RunLaw(2.0, 0.3, 1), 3.0) == 0.0
    assert selection_event(RunLaw(2.0, 0.3, 1), 0.7) == of_gaussian(1.0, 0.0, 0.7)
    assert selection_event(law, 0.0) == of_gaussian(law.mean, 0.0, 0.0)
    assert delta([selection_event(law, math.inf)], 50.0) == 1.0
    with pytest.raises(ValueError, match="mu must be"):
        log_ratio(law, -0.1)
    with pytest.raises(ValueError, match="mu must be"):
        selection_event(law, math.nan)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mu", [2.0**-11, 0.05, 0.3, 2.0])
def test_chords_are_above_the_envelope_and_below_one_chord(law, mu):
    event = selection_event(law, mu)
    shares = np.array(event.shares)
    knots = np.exp(event.log_ratio * np.arange(1, len(shares) + 1) / len(shares))
    s = np.concatenate([np.linspace(-8, 8 + mu, 20_001), [40.0 + mu]])
    at, behind = slope(law, ndtr(s)), slope(law, ndtr(s - mu))
    for c in np.concatenate([[0.0], np.exp(event.log_ratio * np.linspace(-1, 1.1, 43))]):
        envelope = max(0.0, (at - c * behind).max())
        chords = event.mean_runs * (shares * np.maximum(0, 1 - c / knots)).sum()
        single = event.mean_runs * max(0.0, 1 - c * math.exp(-event.log_ratio))
        assert envelope * (1 - 1e-12) <= chords <= single * (1 + 1e-9) + 1e-9 * event.mean_runs
    # Close to it, too, where the largest ratios are.
    c = math.exp(event.log_ratio * 0.8)
    chords = event.mean_runs * (shares * np.maximum(0, 1 - c / knots)).sum()
    assert chords <= (at - c * behind).max() * 1.06


@pytest.mark.parametrize("law", [*LAWS, RunLaw(1.0, 0.5, 2)])
def test_slopes_are_enclosed(law):
    """With two runs at most f'' is constant, and the normal density alone decides."""
    coefficients = _rank_ratio._coefficients(law.probabilities)
    low = np.linspace(-7, 7, 141)
    for width in (0.3, 1e-3):
        at_low, at_high, flattest, steepest = _rank_ratio._enclosed_slopes(
            coefficients, low, low + width
        )
        inside = low + width * np.linspace(0, 1, 51)[:, None]
        value = slope(law, ndtr(inside))
        q = ndtr(inside)
        curve = sum(k * (k - 1) * p * q ** (k - 2) for k, p in enumerate(law.probabilities, 1))
        rise = stats.norm.pdf(inside) * curve
        assert (rise >= flattest * (1 - 1e-12)).all()
        assert (rise <= steepest * (1 + 1e-12)).all()
        np.testing.assert_allclose([at_low, at_high], value[[0, -1]], rtol=1e-11)
        assert (steepest - flattest <= 5 * width * (law.k_max + 9) * steepest).all()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mu", [1e-4, 0.1, 2.0])
def test_cells_bound_their_functions(law, mu, monkeypatch):
    """On random cells, wide ones and one across 0 included, at many points of each."""
    families = []
    exact = _rank_ratio._supremum

    def record(cells, mu, tolerance):
        families.append((cells, len(tolerance)))
        return exact(cells, mu, tolerance)

    monkeypatch.setattr(_rank_ratio, "_supremum", record)
    event = selection_event(law, mu)
    rng = np.random.default_rng(0)
    low = np.append(rng.uniform(-6, 6 + mu, 400), -0.7)
    high = np.append(low[:-1] + rng.exponential(0.5, 400), 0.3)
    inside = low + (high - low) * np.linspace(0, 1, 101)[:, None]
    assert len(families) == (1 if mu < 2.0**-12 else 2)
    for cells, count in families:
        index = rng.integers(0, count, len(low))
        _, bound = cells(low, high, index)
        values = np.stack([cells(t, t, index)[0] for t in inside])
        assert (values.max(axis=0) <= bound + 1e-11 * event.mean_runs).all()
        # Quadratic in the width: nothing is lost on narrow cells.
        value, bound = cells(low, low + 1e-5, index)
        assert (bound - value <= 1e-4 * event.mean_runs).all()


def test_first_order_cells_would_be_seen(monkeypatch):
    """Planted bug: cells are dropped although they may still hold the supremum."""
    law = RunLaw(1.0, 1 / 15, 301)
    right = log_ratio(law, 0.15)
    monkeypatch.setattr(_rank_ratio, "_rise", lambda low, high, slope: 0.0 * slope)
    assert log_ratio(law, 0.15) < right * (1 - 1e-4)


@pytest.mark.parametrize("law", LAWS)
def test_rounding_is_within_its_allowance(law):
    """F, from floats and in 50 digits: the errors are there, and far below what is added."""
    coefficients = _rank_ratio._coefficients(law.probabilities)
    points = np.linspace(-8.0, 8.0, 65)
    found = _rank_ratio.polynomials(coefficients, ndtr(points))[0]
    with mpmath.workdps(50):
        value = log_derivative(law)
        errors = [
            abs(mpmath.log(mpmath.mpf(float(f))) - value(mpmath.mpf(float(t))))
            for f, t in zip(found, points, strict=True)
        ]
    assert 0.0 < max(errors) <= _rank_ratio._slack(law.probabilities)
    assert _rank_ratio._slack(law.probabilities) == 2.0**-40 * (law.k_max + 64)


@pytest.mark.parametrize("mu", [2.0**-12, 0.15, 3.0])
def test_nothing_is_lost_beyond_the_cells(mu):
    """F(inf) over F(t - mu) beyond the last cell is at most 1 + k_max 1.2e-19: few miss the best.

    The small mu that are bounded by a slope use the same cells.
    """
    with mpmath.workdps(50):
        assert mpmath.ncdf(mu - mpmath.mpf(_rank_ratio.Shifted(mu).top)) <= 1.2e-19


def assert_allowance_arrives(monkeypatch):
    """An allowance of a percent is seen in every result that it belongs to."""
    law, mu, more = geometric_law(15), 0.15, 0.01
    small = 2.0**-14
    steepest = log_ratio(law, small) / small
    before = [log_ratio(law, size) for size in (mu, 64.0)]
    shares = np.array(selection_event(law, mu).shares)
    monkeypatch.setattr(_rank_ratio, "_slack", lambda probabilities: more)
    after = [log_ratio(law, size) for size in (mu, 64.0)]
    np.testing.assert_allclose(np.subtract(after, before), more, rtol=1e-5)
    found = log_ratio(law, small) / small
    assert found == pytest.approx(steepest * (1 + more) + more, rel=1e-5)
    # With the ratio as it was: heights of the chords are larger by the allowance times E[K].
    monkeypatch.setattr(_rank_ratio, "_slack", lambda probabilities: 1e-6)
    knots = np.exp(before[0] * np.arange(1, 17) / 16)
    wider = _rank_ratio.chord_shares(
        law.probabilities, law.mean, _rank_ratio.Shifted(mu), before[0]
    )
    c = knots[3]
    rise = ((np.array(wider) - shares) * np.maximum(0, 1 - c / knots)).sum()
    assert rise == pytest.approx(1e-6, rel=1e-2)


def test_the_allowance_arrives(monkeypatch):
    assert_allowance_arrives(monkeypatch)


def test_that_test_sees_chords_without_it(monkeypatch):
    """Planted: chords through values that may be rounded down."""
    honest = _rank_ratio._supremum

    def careless(cells, top, tolerance):
        forgotten = 1e-6 * geometric_law(15).mean * (_rank_ratio._slack([1.0]) == 1e-6)
        return honest(cells, top, tolerance) - forgotten

    monkeypatch.setattr(_rank_ratio, "_supremum", careless)
    with pytest.raises(AssertionError):
        assert_allowance_arrives(monkeypatch)


# --- oracles ----------------------------------------------------------------------------------


def classical(law, mu):
    """The bound of one chord."""
    return of_gaussian(law.mean, log_ratio(law, mu), mu)


@pytest.mark.parametrize(
    ("mean", "one_term", "chords", "closed_form"),
    [
        (5, 0.1740, 0.1811, 0.0597),
        (15, 0.1479, 0.1559, 0.0577),
        (100, 0.1189, 0.1264, 0.0547),
    ],
)
def test_mu_of_a_run(mean, one_term, chords, closed_form):
    law = geometric_law(mean)
    mu = calibrate(lambda mu: [classical(law, mu)], 1.0, 1e-6, lower=0.0, upper=1.0, rtol=1e-5)
    assert mu == pytest.approx(one_term, abs=6e-5)
    mu = calibrate_selection(law, 1.0, 1e-6)
    assert mu == pytest.approx(chords, abs=6e-5)
    assert delta([selection_event(law, mu)], 1.0) <= 1e-6
    assert delta([selection_event(law, mu * (1 + 2e-5))], 1.0) > 1e-6
    # Koskela, Redberg and Wang (2024), Corollary 5.5, solved for mu.
    a, b, c = 1.5, 3 * math.sqrt(2 * math.log(mean / 1e-6)), 1e-6 - 1.0
    assert (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a) == pytest.approx(closed_form, abs=1e-4)


@pytest.mark.parametrize(("mean", "shape", "mu"), [(15, 1, 0.15), (5, 1, 0.5), (30, 2, 0.1)])
def test_tighter_than_the_renyi_accountant(mean, shape, mu):
    accountant = rdp_privacy_accountant.RdpAccountant()
    run = dp_event.GaussianDpEvent(1 / mu)
    accountant.compose(dp_event.RepeatAndSelectDpEvent(run, mean, shape))
    other = accountant.get_epsilon(1e-6)
    law = geometric_law(mean)
    if shape != 1:
        # The untruncated law of that mean: E K = eta (1 - r) / (r (1 - r^eta)).
        law = min(
            (RunLaw(shape, r, 600) for r in np.linspace(0.03, 0.12, 400)),
            key=lambda law: abs(law.mean - mean),
        )
    assert law.mean == pytest.approx(mean, rel=5e-3)
    assert delta([selection_event(law, mu)], 0.75 * other) < 1e-6


# --- brute force ------------------------------------------------------------------------------


def selected(generating, masses, scores):
    """Law of the best run: uniform among equal scores. Arrays of (n_mechanisms, n_outcomes)."""
    groups = np.zeros((len(masses), scores.max() + 1))
    for row, values, levels in zip(groups, masses, scores, strict=True):
        np.add.at(row, levels, values)
    reached = np.minimum(np.cumsum(groups, axis=1), 1.0)
    gained = np.diff(generating(reached), axis=1, prepend=0.0)
    factor = np.divide(gained, groups, out=np.zeros_like(groups), where=groups > 0)
    return masses * np.take_along_axis(factor, scores, axis=1)


def generating_function(law):
    weights = np.append(0.0, law.probabilities)
    return lambda q: np.polynomial.polynomial.polyval(q, weights)


def random_mechanisms(rng, mu, count, n_outcomes=16):
    """Gaussian pairs seen through random cells; scores that follow the cells or do not."""
    cuts = np.sort(rng.normal(mu / 2, 1.0 + 1.5 * rng.random((count, 1)), (count, n_outcomes - 1)))
    edges = np.pad(cuts, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    p, q = (np.diff(ndtr(edges - shift), axis=1) for shift in (0.0, mu))
    cells = np.arange(n_outcomes)
    orders = [
        np.tile(cells, (count, 1)),
        np.tile(cells[::-1], (count, 1)),
        rng.permuted(np.tile(cells, (count, 1)), axis=1),
        rng.integers(0, 5, (count, n_outcomes)),
    ]
    kinds = rng.integers(0, len(orders), count)
    return p, q, np.stack(orders)[kinds, np.arange(count)]


EPSILONS = (-0.5, 0.0, 0.2, 0.5, 1.0, 2.0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mu", [0.1, 0.4, 1.0])
def test_selected_laws_stay_below(law, mu):
    """Over 10^4 random mechanisms in all, both directions."""
    rng = np.random.default_rng(0)
    p, q, scores = random_mechanisms(rng, mu, 600)
    best = [selected(generating_function(law), masses, scores) for masses in (p, q)]
    np.testing.assert_allclose([b.sum() for b in best], 600, rtol=1e-10)
    event = selection_event(law, mu)
    for epsilon in EPSILONS:
        bound = delta([event], epsilon)
        assert bound <= delta([classical(law, mu)], epsilon) * (1 + 1e-9)
        for first, second in (best, best[::-1]):
            assert divergence(first, second, epsilon).max() <= bound + 1e-13


def adversary(law, mu, cut=1.25, cells=6000):
    """Best are the outcomes above `cut`; of the others, the smaller the better."""
    ends = np.linspace(-9.0, 9.0 + mu, cells - 1)
    p, q = (np.diff(np.concatenate([[0.0], ndtr(ends - m), [1.0]])) for m in (0.0, mu))
    above = int(np.searchsorted(ends, cut)) + 1
    scores = np.append(np.arange(above)[::-1], np.arange(above, cells))
    f = generating_function(law)
    return [selected(f, masses[None], scores[None])[0] for masses in (p, q)]


def test_bound_is_nearly_attained():
    law, mu = geometric_law(15), 0.15
    worst = divergence(*adversary(law, mu), 1.0)
    assert worst <= delta([selection_event(law, mu)], 1.0)
    assert worst >= 0.85 * delta([selection_event(law, mu)], 1.0)
    assert worst < 0.16 * delta([classical(law, mu)], 1.0)


def test_planted_accounting_bugs_are_caught():
    """Each wrong event is exceeded by a mechanism that the right one covers."""
    law, mu = geometric_law(15), 0.15
    right = selection_event(law, mu)
    worst = divergence(*adversary(law, mu), 1.0)
    ratio, shares = right.log_ratio, right.shares
    assert worst <= delta([right], 1.0)
    assert worst > delta([of_gaussian(right.mean_runs, 0.0, mu)], 1.0)  # no rank factor
    assert worst > delta([of_gaussian(1.0, ratio, mu)], 1.0)  # the mean forgotten
    assert worst > delta([of_gaussian(1.0, ratio, mu, shares)], 1.0)
    assert worst > delta([of_gaussian(right.mean_runs, ratio, 0.9 * mu, shares)], 1.0)
    assert worst > delta([Gaussian(mu)], 1.0)  # one run charged instead of the selection
    assert worst > delta([selection_event(geometric_law(8), mu)], 1.0)  # the law of another r
    assert worst > delta([selection_event(law, mu / math.sqrt(2))], 1.0)  # score not charged


def test_selections_compose_adaptively():
    """For each output of a selection another one, or randomised response, of its own."""
    rng = np.random.default_rng(2)
    law, mu = RunLaw(1.0, 0.2, 60), 0.3
    f, flip = generating_function(law), 1 / (1 + math.exp(0.2))
    events = {
        "selection": [selection_event(law, mu)] * 2,
        "response": [selection_event(law, mu), Pure(0.2)],
    }
    bounds = {kind: [delta(listed, e) for e in EPSILONS] for kind, listed in events.items()}
    for _ in range(30):
        p, q, scores = random_mechanisms(rng, mu, 17, n_outcomes=16)
        best = np.stack([selected(f, masses, scores) for masses in (p, q)])
        first, second = best[:, 0], best[:, 1:]
        answers = rng.permuted(np.tile([flip, 1 - flip], (16, 1)), axis=1)
        response = np.stack([answers, answers[:, ::-1]])
        for kind, stage in (("selection", second), ("response", response)):
            joint = (first[:, :, None] * stage).reshape(2, -1)
            for epsilon, bound in zip(EPSILONS, bounds[kind], strict=True):
                assert divergence(*joint, epsilon) <= bound + 1e-13
                assert divergence(*joint[::-1], epsilon) <= bound + 1e-13


def ranked_line(mu, generating):
    """Selected laws when the score is the outcome itself, larger on the second data set."""
    p, q, _ = random_mechanisms(np.random.default_rng(1), mu, 1, n_outcomes=40)
    scores = np.arange(40)[None]
    return [selected(generating, masses, scores)[0] for masses in (p, q)]


def test_publishing_the_number_of_runs_would_be_caught():
    """Joint law of K and the output: given K = k the generating function is q^k."""
    law, mu, epsilon = geometric_law(15), 0.4, 3.5
    bound = delta([selection_event(law, mu)], epsilon)
    assert divergence(*ranked_line(mu, generating_function(law)), epsilon) <= bound
    exposed = sum(
        probability * divergence(*ranked_line(mu, lambda q, k=k: q**k), epsilon)
        for k, probability in enumerate(law.probabilities, 1)
    )
    assert exposed > 3 * bound


def test_fixed_number_of_runs_would_be_caught():
    """Planted bug: always as many runs, with no secret that could protect them."""
    law, mu = geometric_law(15), 0.4
    fixed = ranked_line(mu, lambda q: q**40)
    values = np.linspace(1.5, 5.0, 15)
    bounds = [delta([selection_event(law, mu)], e) for e in values]
    assert any(divergence(*fixed, e) > b for e, b in zip(values, bounds, strict=True))


# --- algebra and calibration ------------------------------------------------------------------

laws = st.builds(RunLaw, st.floats(-0.9, 6.0), st.floats(0.02, 1.0), st.integers(1, 60))


@given(laws, st.floats(0.01, 2.0), st.floats(-1.0, 4.0))
def test_selection_costs_more_than_a_run_and_less_than_one_chord(law, mu, epsilon):
    event = selection_event(law, mu)
    found = delta([event], epsilon)
    assert found >= gdp_delta(mu, epsilon) * (1 - 1e-9)
    assert found <= delta([of_gaussian(law.mean, event.log_ratio, mu)], epsilon) * (1 + 1e-9)
    assert event.mean_runs * math.fsum(event.shares) >= event.mean_runs


@pytest.mark.parametrize(
    ("law", "epsilon", "small_delta"),
    [
        (geometric_law(15), 0.1, 1e-5),
        (geometric_law(15), 3.0, 1e-9),
        (RunLaw(2.0, 0.05, 400), 0.5, 1e-6),
        (RunLaw(0.0, 0.01, 30), 10.0, 1e-3),
        (RunLaw(1.0, 1 - 1e-9, 30), 1.0, 1e-6),
        (geometric_law(15), 1e-4, 1e-6),
    ],
)
def test_calibration_is_safe_and_not_wasteful(law, epsilon, small_delta):
    mu = calibrate_selection(law, epsilon, small_delta)
    assert 0.0 < mu <= gdp_mu(epsilon, small_delta)
    assert delta([selection_event(law, mu)], epsilon) <= small_delta
    assert delta([selection_event(law, mu * (1 + 3e-5))], epsilon) > small_delta
    if law.mean < 1.001:
        assert mu == pytest.approx(gdp_mu(epsilon, small_delta), rel=1e-4)


def test_calibration_edges():
    law = geometric_law(5)
    assert calibrate_selection(law, math.inf, 1e-6) == math.inf
    assert calibrate_selection(law, 1.0, 0.0) == 0.0
    assert 0.0 < calibrate_selection(law, 0.0, 1e-6) < 1e-6
    assert calibrate_selection(geometric_law(1), 1.0, 1e-6) == gdp_mu(1.0, 1e-6)
    with pytest.raises(ValueError, match="epsilon must be"):
        calibrate_selection(law, -1.0, 1e-6)
    with pytest.raises(ValueError, match="delta must be"):
        calibrate_selection(law, 1.0, 1.0)
