"""The distribution of the number of runs against fractions; its cost against brute force."""

import functools
import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

from dp_halfspace.privacy import random_stopping
from dp_halfspace.privacy.accounting import delta
from dp_halfspace.privacy.events import Gaussian, Pure
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.random_stopping import (
    RunCountDistribution,
    calibrate_random_stopping,
    geometric_run_count,
    random_stopping_event,
    run_count_distribution,
)
from tests.privacy.oracles import (
    CAUGHT,
    FALSE_ALARM,
    Constant,
    Script,
    divergence,
    of_gaussian,
    seeded,
    slope,
)

DISTRIBUTIONS = [
    RunCountDistribution(1.0, 1 / 15, 301),
    RunCountDistribution(0.0, 0.01, 600),
    RunCountDistribution(-0.5, 0.05, 80),
    RunCountDistribution(2.0, 0.1, 200),
    RunCountDistribution(3.5, 0.5, 7),
    RunCountDistribution(1.0, 1e-6, 12),
]


def log_ratio(distribution, mu):
    return random_stopping_event(distribution, mu).log_ratio


def miss_probability(distribution, n_candidates):
    """Probability that a given candidate is tried in none of the runs."""
    return distribution.probabilities @ (1.0 - 1.0 / n_candidates) ** np.arange(
        1, distribution.k_max + 1
    )


# --- the distribution -----------------------------------------------------------------------------


def exact_probabilities(distribution):
    """Probabilities as fractions, from the gamma function of the definition."""
    eta, r = Fraction(distribution.eta), Fraction(distribution.r)
    weights = [
        math.prod([(eta + i) / i for i in range(1, k)], start=Fraction(1, k)) * (1 - r) ** (k - 1)
        for k in range(1, distribution.k_max + 1)
    ]
    return [weight / sum(weights) for weight in weights]


SMALL = [
    RunCountDistribution(0.3, 0.2, 1),
    RunCountDistribution(1.0, 0.5, 3),
    RunCountDistribution(-0.9, 0.01, 9),
    RunCountDistribution(7.0, 0.3, 20),
    RunCountDistribution(0.0, 0.3, 60),
]


@pytest.mark.parametrize("distribution", SMALL)
def test_numbers_of_the_distribution_are_those_of_fractions(distribution):
    exact = exact_probabilities(distribution)
    assert distribution.probabilities.tolist() == [float(p) for p in exact]
    assert not distribution.probabilities.flags.writeable
    mean = sum(k * p for k, p in enumerate(exact, 1))
    assert mean <= Fraction(distribution.mean) <= mean * (1 + Fraction(1, 2**51))
    for bits in (96, 160, 544):
        reached = itertools.accumulate(exact)
        for k, value in enumerate(reached, 1):
            assert (
                abs(random_stopping._cumulative(distribution, bits)[k - 1] - value * 2**bits) <= 1
            )


def test_the_largest_cap_and_shape_keep_a_divisor_from_the_subnormal_numbers():
    assert RunCountDistribution(5.0, 1.0, 10).probabilities.tolist() == [1.0] + [0.0] * 9
    assert 1e-232 < RunCountDistribution(64.0, 1e-300, 100_000).probabilities[0] < 1e-200


REFUSED = [
    *((RunCountDistribution, (eta, 0.5, 3), "^eta must be") for eta in (-1.0, 64.5, math.nan)),
    *((RunCountDistribution, (1.0, r, 3), "^r must be") for r in (0.0, 1.1, math.nan)),
    *((RunCountDistribution, (1.0, 0.5, k), "^k_max must be") for k in (0, 100_001, 3.0, True)),
    *((geometric_run_count, (mean,), "mean must be") for mean in (0.9, math.inf, math.nan)),
    (geometric_run_count, (1e5,), "needs more than 100000 runs"),
    (run_count_distribution, (0, 0.1), "n_candidates must be"),
    *((run_count_distribution, (3, miss), "miss must be") for miss in (0.0, 1.0)),
    (functools.partial(run_count_distribution, eta=-1.0), (3, 0.5), "eta must be"),
    (run_count_distribution, (15, 1e-5), "needs more than"),
    (functools.partial(run_count_distribution, eta=-0.9), (15, 1e-3), "needs too many runs"),
    *(
        (random_stopping_event, (RunCountDistribution(1.0, 0.1, 30), mu), "mu must be")
        for mu in (-0.1, math.nan)
    ),
    (
        calibrate_random_stopping,
        (RunCountDistribution(1.0, 0.1, 30), -1.0, 1e-6),
        "epsilon must be",
    ),
    (calibrate_random_stopping, (RunCountDistribution(1.0, 0.1, 30), 1.0, 1.0), "delta must be"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_bad_parameters_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


# --- sampling ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "distribution", [RunCountDistribution(1.0, 0.5, 3), RunCountDistribution(0.25, 1 / 16, 90)]
)
def test_bits_beyond_the_first_word_decide_close_calls(distribution):
    """A first word that agrees with P(K <= k) to 64 bits leaves the order open."""

    def drawn(words, byte):
        return distribution.draw(Script(words, Constant(byte)))

    exact = list(itertools.accumulate(exact_probabilities(distribution)))
    # In 64 bits the rarest of the longer distribution cannot be told apart.
    for k in range(1, min(distribution.k_max, 40)):
        cell = math.floor(exact[k - 1] * 2**64)
        assert drawn([cell], 0) == drawn([cell - 1], 255) == k
        assert drawn([cell], 255) == drawn([cell + 1], 0) == k + 1
    assert (drawn([], 0), drawn([], 255)) == (1, distribution.k_max)


# --- choosing a distribution ----------------------------------------------------------------------


def test_geometric_distributions():
    for mean in (1.5, 5, 15, 100, 500.0):
        distribution = geometric_run_count(mean)
        assert distribution.eta == 1.0
        assert mean * (1 - 1e-6) < distribution.mean <= mean
        assert (
            (1 - distribution.r) ** distribution.k_max
            <= 1e-9
            < (1 - distribution.r) ** (distribution.k_max - 2)
        )
    assert geometric_run_count(1) == RunCountDistribution(1.0, 1.0, 1)
    assert geometric_run_count(1).mean == 1.0


@settings(max_examples=settings.default.max_examples * 3 // 5)
@given(st.integers(1, 40), st.floats(0.05, 0.98), st.floats(0.6, 20.0))
def test_run_distribution_meets_its_miss_with_no_run_to_spare(n_candidates, miss, eta):
    distribution = run_count_distribution(n_candidates, miss, eta=eta)
    found = miss_probability(distribution, n_candidates)
    assert found <= miss
    assert distribution.k_max == 1 or found >= miss * (1 - 1e-6)


@pytest.mark.parametrize("eta", [0.5, 0.7, 1.0, 2.0, 9.0])
@pytest.mark.parametrize("miss", [0.3, 0.1])
def test_default_caps_cut_less_than_they_say(eta, miss):
    distribution = run_count_distribution(8, miss, eta=eta)
    oracle = stats.nbinom(eta, distribution.r)
    assert oracle.sf(distribution.k_max) / oracle.sf(0) <= 1e-9 * (1 + 1e-6)
    assert oracle.sf(0.98 * distribution.k_max) / oracle.sf(0) > 1e-9


def test_run_distribution_edges():
    assert (
        run_count_distribution(1, 0.5)
        == run_count_distribution(10, 0.95)
        == run_count_distribution(2, 0.5)
        == RunCountDistribution(1.0, 1.0, 1)
    )
    assert run_count_distribution(3, 0.3, eta=0.0).eta == 0.0
    assert miss_probability(run_count_distribution(3, 0.4, eta=-0.3), 3) == pytest.approx(
        0.4, rel=1e-6
    )


# --- certified suprema ------------------------------------------------------------------------


def test_normal_distribution_function_is_as_accurate_as_the_proof_assumes():
    for t in np.linspace(-9, 9, 361):
        with mpmath.workdps(50):
            exact = mpmath.ncdf(mpmath.mpf(float(t)))
            error = abs(mpmath.mpf(float(ndtr(t))) / exact - 1)
        assert error < (2.0**-50 if t >= -2 else 2.0**-46)


def log_derivative(distribution):
    """Logarithm of f'(Phi(t)) in high precision."""
    weights = [mpmath.mpf(float(p)) * k for k, p in enumerate(distribution.probabilities, 1)]

    def value(t):
        q, total = mpmath.ncdf(t), mpmath.mpf(0)
        for weight in reversed(weights):
            total = total * q + weight
        return mpmath.log(total)

    return value


@pytest.mark.sampled(6)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [1e-5, 2.0**-12, 0.02, 0.15, 1.0, 6.0])
def test_log_ratio_is_just_above_the_supremum(distribution, mu):
    found = log_ratio(distribution, mu)
    # A fine grid locates the supremum, high precision evaluates it.
    s = np.linspace(-8, 9 + mu, 20_001)
    values = np.log(slope(distribution, ndtr(s)) / slope(distribution, ndtr(s - max(mu, 1e-3))))
    with mpmath.workdps(50):
        value = log_derivative(distribution)
        top = mpmath.mpf(float(s[values.argmax()]))
        grid = [top + mpmath.mpf(j) / 5000 for j in range(-10, 11)]
        best = float(max(value(t) - value(t - mu) for t in grid))
    assert best <= found <= best + 2.0**-15 * mu


@pytest.mark.parametrize("peak", [-37.0, -20.0, -8.95, 0.0, 9.0])
def test_suprema_are_found_wherever_they_are(peak):
    def cells(low, high, index):
        away = np.maximum(np.maximum(low - peak, peak - high), 0.0)
        return -np.abs(low - peak), -away

    (found,) = random_stopping._supremum(cells, 9.0, np.array([1e-3]))
    assert 0.0 <= found <= 1e-3


def test_log_ratio_at_the_ends():
    distribution, one = RunCountDistribution(1.0, 0.1, 30), RunCountDistribution(2.0, 0.3, 1)
    whole = math.log(distribution.mean / distribution.probabilities[0])
    for mu in (20.0, 64.0, 1e9, math.inf):
        assert log_ratio(distribution, mu) == pytest.approx(whole, rel=1e-6)
        assert log_ratio(distribution, mu) >= whole * (1 - 1e-15)
    assert log_ratio(distribution, 0.0) == log_ratio(one, 3.0) == 0.0
    assert random_stopping_event(one, 0.7) == of_gaussian(1.0, 0.0, 0.7)
    assert random_stopping_event(distribution, 0.0) == of_gaussian(distribution.mean, 0.0, 0.0)
    assert delta([random_stopping_event(distribution, math.inf)], 50.0) == 1.0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [2.0**-11, 0.05, 0.3, 2.0])
def test_chords_are_above_the_envelope_and_below_one_chord(distribution, mu):
    event = random_stopping_event(distribution, mu)
    shares = np.array(event.shares)
    knots = np.exp(event.log_ratio * np.arange(1, len(shares) + 1) / len(shares))
    s = np.concatenate([np.linspace(-8, 8 + mu, 20_001), [40.0 + mu]])
    at, behind = slope(distribution, ndtr(s)), slope(distribution, ndtr(s - mu))
    for c in np.concatenate([[0.0], np.exp(event.log_ratio * np.linspace(-1, 1.1, 43))]):
        envelope = max(0.0, (at - c * behind).max())
        chords = event.mean_runs * (shares * np.maximum(0, 1 - c / knots)).sum()
        single = event.mean_runs * max(0.0, 1 - c * math.exp(-event.log_ratio))
        assert envelope * (1 - 1e-12) <= chords <= single * (1 + 1e-9) + 1e-9 * event.mean_runs
    # Close to it, too, where the largest ratios are.
    c = math.exp(event.log_ratio * 0.8)
    chords = event.mean_runs * (shares * np.maximum(0, 1 - c / knots)).sum()
    assert chords <= (at - c * behind).max() * 1.06


@pytest.mark.sampled(3)
@pytest.mark.parametrize("distribution", [RunCountDistribution(1.0, 0.5, 2), *DISTRIBUTIONS])
def test_slopes_are_enclosed(distribution):
    """With two runs at most f'' is constant, and the normal density alone decides."""
    coefficients = random_stopping._coefficients(distribution.probabilities)
    low = np.linspace(-7, 7, 141)
    for width in (0.3, 1e-3):
        at_low, at_high, flattest, steepest = random_stopping._enclose_slopes(
            coefficients, low, low + width
        )
        inside = low + width * np.linspace(0, 1, 51)[:, None]
        value = slope(distribution, ndtr(inside))
        q = ndtr(inside)
        curve = sum(
            k * (k - 1) * p * q ** (k - 2) for k, p in enumerate(distribution.probabilities, 1)
        )
        rise = stats.norm.pdf(inside) * curve
        assert (rise >= flattest * (1 - 1e-12)).all()
        assert (rise <= steepest * (1 + 1e-12)).all()
        np.testing.assert_allclose([at_low, at_high], value[[0, -1]], rtol=1e-11)
        assert (steepest - flattest <= 5 * width * (distribution.k_max + 9) * steepest).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [1e-4, 0.1, 2.0])
def test_cells_bound_their_functions(distribution, mu, monkeypatch):
    """On random cells, wide ones and one across 0 included, at many points of each."""
    families = []
    exact = random_stopping._supremum

    def record(cells, mu, tolerance):
        families.append((cells, len(tolerance)))
        return exact(cells, mu, tolerance)

    monkeypatch.setattr(random_stopping, "_supremum", record)
    event = random_stopping_event(distribution, mu)
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
    distribution = RunCountDistribution(1.0, 1 / 15, 301)
    right = log_ratio(distribution, 0.15)
    monkeypatch.setattr(random_stopping, "_largest_rise", lambda low, high, slope: 0.0 * slope)
    assert log_ratio(distribution, 0.15) < right * (1 - 1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_rounding_is_within_its_allowance(distribution):
    """F, from floats and in 50 digits: the errors are there, and far below what is added."""
    coefficients = random_stopping._coefficients(distribution.probabilities)
    points = np.linspace(-8.0, 8.0, 65)
    found = random_stopping.polynomials(coefficients, ndtr(points))[0]
    with mpmath.workdps(50):
        value = log_derivative(distribution)
        errors = [
            abs(mpmath.log(mpmath.mpf(float(f))) - value(mpmath.mpf(float(t))))
            for f, t in zip(found, points, strict=True)
        ]
    assert 0.0 < max(errors) <= random_stopping._slack(distribution.probabilities)
    assert random_stopping._slack(distribution.probabilities) == 2.0**-40 * (
        distribution.k_max + 64
    )


@pytest.mark.parametrize("mu", [2.0**-12, 0.15, 3.0])
def test_nothing_is_lost_beyond_the_cells(mu):
    """F(inf) over F(t - mu) beyond the last cell is at most 1 + k_max 1.2e-19: few miss the best.

    The small mu that are bounded by a slope use the same cells.
    """
    with mpmath.workdps(50):
        assert mpmath.ncdf(mu - mpmath.mpf(random_stopping._top(mu))) <= 1.2e-19


def assert_allowance_arrives(monkeypatch):
    """An allowance of a percent is seen in every result that it belongs to."""
    distribution, mu, more = geometric_run_count(15), 0.15, 0.01
    small = 2.0**-14
    steepest = log_ratio(distribution, small) / small
    before = [log_ratio(distribution, size) for size in (mu, 64.0)]
    shares = np.array(random_stopping_event(distribution, mu).shares)
    monkeypatch.setattr(random_stopping, "_slack", lambda probabilities: more)
    after = [log_ratio(distribution, size) for size in (mu, 64.0)]
    np.testing.assert_allclose(np.subtract(after, before), more, rtol=1e-5)
    found = log_ratio(distribution, small) / small
    assert found == pytest.approx(steepest * (1 + more) + more, rel=1e-5)
    # With the ratio as it was: heights of the chords are larger by the allowance times E[K].
    monkeypatch.setattr(random_stopping, "_slack", lambda probabilities: 1e-6)
    knots = np.exp(before[0] * np.arange(1, 17) / 16)
    wider = random_stopping.chord_shares(
        distribution.probabilities, distribution.mean, mu, before[0]
    )
    c = knots[3]
    rise = ((np.array(wider) - shares) * np.maximum(0, 1 - c / knots)).sum()
    assert rise == pytest.approx(1e-6, rel=1e-2)
    # The first chord begins at E[K] itself, so that the weights have an allowance of their own.
    assert shares.sum() > 1 + 8 * 2.0**-40


def test_the_allowance_arrives(monkeypatch):
    """Planted: chords through values that may be rounded down."""
    with monkeypatch.context() as patch:
        assert_allowance_arrives(patch)
    honest = random_stopping._supremum

    def careless(cells, top, tolerance):
        forgotten = 1e-6 * geometric_run_count(15).mean * (random_stopping._slack([1.0]) == 1e-6)
        return honest(cells, top, tolerance) - forgotten

    monkeypatch.setattr(random_stopping, "_supremum", careless)
    with pytest.raises(AssertionError):
        assert_allowance_arrives(monkeypatch)


# --- brute force ------------------------------------------------------------------------------


def selected(generating, masses, scores):
    """Distribution of the best run, uniform among equal scores: (n_mechanisms, n_outcomes)."""
    groups = np.zeros((len(masses), scores.max() + 1))
    for row, values, levels in zip(groups, masses, scores, strict=True):
        np.add.at(row, levels, values)
    reached = np.minimum(np.cumsum(groups, axis=1), 1.0)
    gained = np.diff(generating(reached), axis=1, prepend=0.0)
    factor = np.divide(gained, groups, out=np.zeros_like(groups), where=groups > 0)
    return masses * np.take_along_axis(factor, scores, axis=1)


def generating_function(distribution):
    weights = np.append(0.0, distribution.probabilities)
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


@pytest.mark.sampled(6)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("mu", [0.1, 0.4, 1.0])
def test_selected_distributions_stay_below(distribution, mu):
    """Over 10^4 random mechanisms in all, both directions."""
    rng = np.random.default_rng(0)
    p, q, scores = random_mechanisms(rng, mu, 600)
    best = [selected(generating_function(distribution), masses, scores) for masses in (p, q)]
    np.testing.assert_allclose([b.sum() for b in best], 600, rtol=1e-10)
    for epsilon in EPSILONS:
        bound = delta([random_stopping_event(distribution, mu)], epsilon)
        for first, second in (best, best[::-1]):
            assert divergence(first, second, epsilon).max() <= bound + 1e-13


def adversary(distribution, mu, cut=1.25, cells=6000):
    """Best are the outcomes above `cut`; of the others, the smaller the better."""
    ends = np.linspace(-9.0, 9.0 + mu, cells - 1)
    p, q = (np.diff(np.concatenate([[0.0], ndtr(ends - m), [1.0]])) for m in (0.0, mu))
    above = int(np.searchsorted(ends, cut)) + 1
    scores = np.append(np.arange(above)[::-1], np.arange(above, cells))
    f = generating_function(distribution)
    return [selected(f, masses[None], scores[None])[0] for masses in (p, q)]


def test_bound_is_nearly_attained_and_planted_accounting_bugs_are_caught():
    """Each wrong event is exceeded by a mechanism that the right one covers."""
    distribution, mu = geometric_run_count(15), 0.15
    right = random_stopping_event(distribution, mu)
    runs, ratio, shares = right.mean_runs, right.log_ratio, right.shares
    worst = divergence(*adversary(distribution, mu), 1.0)
    assert 0.85 * delta([right], 1.0) <= worst <= delta([right], 1.0)
    assert worst < 0.16 * delta([of_gaussian(runs, ratio, mu)], 1.0)  # what one chord would cost
    for planted in (
        of_gaussian(runs, 0.0, mu),  # no rank factor
        of_gaussian(1.0, ratio, mu),  # the mean forgotten
        of_gaussian(1.0, ratio, mu, shares),
        of_gaussian(runs, ratio, 0.9 * mu, shares),
        Gaussian(mu),  # one run charged instead of the selection
        random_stopping_event(geometric_run_count(8), mu),  # the distribution of another r
        random_stopping_event(distribution, mu / math.sqrt(2)),  # score not charged
    ):
        assert worst > delta([planted], 1.0)


# --- algebra and calibration ------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("distribution", "epsilon", "small_delta"),
    [
        (geometric_run_count(15), 0.1, 1e-5),
        (geometric_run_count(15), 3.0, 1e-9),
        (RunCountDistribution(2.0, 0.05, 400), 0.5, 1e-6),
        (RunCountDistribution(0.0, 0.01, 30), 10.0, 1e-3),
        (RunCountDistribution(1.0, 1 - 1e-9, 30), 1.0, 1e-6),
        (geometric_run_count(15), 1e-4, 1e-6),
    ],
)
def test_calibration_is_safe_and_not_wasteful(distribution, epsilon, small_delta):
    mu = calibrate_random_stopping(distribution, epsilon, small_delta)
    assert 0.0 < mu <= gdp_mu(epsilon, small_delta)
    assert delta([random_stopping_event(distribution, mu)], epsilon) <= small_delta
    assert delta([random_stopping_event(distribution, mu * (1 + 3e-5))], epsilon) > small_delta
    if distribution.mean < 1.001:
        assert mu == pytest.approx(gdp_mu(epsilon, small_delta), rel=1e-4)


def test_calibration_edges():
    distribution = geometric_run_count(5)
    assert calibrate_random_stopping(distribution, math.inf, 1e-6) == math.inf
    assert calibrate_random_stopping(distribution, 1.0, 0.0) == 0.0
    assert 0.0 < calibrate_random_stopping(distribution, 0.0, 1e-6) < 1e-6
    assert calibrate_random_stopping(geometric_run_count(1), 1.0, 1e-6) == gdp_mu(1.0, 1e-6)


def test_selections_compose_adaptively():
    """For each output of a selection another one, or randomised response, of its own."""
    rng = np.random.default_rng(2)
    distribution, mu = RunCountDistribution(1.0, 0.2, 60), 0.3
    f, flip = generating_function(distribution), 1 / (1 + math.exp(0.2))
    events = {
        "selection": [random_stopping_event(distribution, mu)] * 2,
        "response": [random_stopping_event(distribution, mu), Pure(0.2)],
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


def draw_pvalue(draws, distribution):
    """Chi-square test of the frequencies, the thin tail in one class."""
    expected = distribution.probabilities * len(draws)
    last = int(np.flatnonzero(expected >= 8)[-1])
    counts = np.bincount(np.minimum(draws, last + 2), minlength=last + 3)[1:]
    rest = expected[last + 1 :].sum()
    merged = np.append(expected[: last + 1], rest)
    if rest < 8:
        counts = np.append(counts[:last], counts[last:].sum())
        merged = np.append(expected[:last], expected[last:].sum())
    return stats.chisquare(counts, merged * len(draws) / merged.sum()).pvalue


@pytest.mark.slow
def test_planted_sampling_bugs_are_caught():
    distribution, source = RunCountDistribution(1.0, 0.2, 12), seeded(2)
    draws = np.array([distribution.draw(source) for _ in range(8000)])
    assert draw_pvalue(draws, distribution) > FALSE_ALARM
    assert draw_pvalue(np.minimum(draws + 1, 12), distribution) < CAUGHT  # off by one
    uncapped = np.random.default_rng(0).geometric(0.2, 8000)
    assert draw_pvalue(np.minimum(uncapped, 12), distribution) < CAUGHT  # the tail put on the cap
    assert (
        draw_pvalue(
            [RunCountDistribution(1.0, 0.25, 12).draw(source) for _ in range(8000)], distribution
        )
        < CAUGHT
    )


def ranked_line(mu, generating):
    """Selected distributions of a score that is the outcome, larger on the second data set."""
    p, q, _ = random_mechanisms(np.random.default_rng(1), mu, 1, n_outcomes=40)
    scores = np.arange(40)[None]
    return [selected(generating, masses, scores)[0] for masses in (p, q)]


@pytest.mark.slow
def test_a_number_of_runs_that_is_no_secret_would_be_caught():
    """Planted: K is published, so that its generating function is q^k; always as many runs."""
    distribution, mu, epsilon = geometric_run_count(15), 0.4, 3.5
    bounds = {
        e: delta([random_stopping_event(distribution, mu)], e)
        for e in (epsilon, *np.linspace(1.5, 5, 15))
    }
    honest = ranked_line(mu, generating_function(distribution))
    assert divergence(*honest, epsilon) <= bounds[epsilon]
    exposed = sum(
        probability * divergence(*ranked_line(mu, lambda q, k=k: q**k), epsilon)
        for k, probability in enumerate(distribution.probabilities, 1)
    )
    assert exposed > 3 * bounds[epsilon]
    fixed = ranked_line(mu, lambda q: q**40)
    assert any(divergence(*fixed, e) > bound for e, bound in bounds.items())


def test_the_best_of_no_runs_is_refused():
    with pytest.raises(ValueError, match="at least one run"):
        random_stopping.best_run([], seeded(0))
