"""Bounds beside the numbers that the papers print, and what they say at their limits."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dp_halfspace.privacy import Gaussian, gdp_mu
from dp_halfspace.privacy import delta as delta_of
from dp_halfspace.theory import (
    convex_excess_risk,
    fourier_distortion,
    fourier_frequencies,
    katyusha_iterations,
    label_risk_bound,
    last_iterate_risk_bound,
    margin_bound,
    margin_risk_bound,
    margin_score_sensitivity,
    margin_selection_cost,
    network_risk_bound,
    objective_risk_bound,
    pure_bounds,
    pure_error_lower_bound,
    pure_lower_bound,
    pure_risk_bound,
    random_stopping_risk_bound,
    ranking_risk_bound,
    selected_margin_risk_bound,
    sgd_iterations,
    strongly_convex_excess_risk,
    tilted_risk_bound,
)
from dp_halfspace.theory.bounds import published_rate
from tests.theory.risk_problems import draw_noise

BUDGET = (4.0, 1e-5)
MU = gdp_mu(*BUDGET)
log, root = math.log, math.sqrt


def solved(b, a):
    """Solve r - b = 2 sqrt(a r) for the error on fresh records."""
    return b + 2 * a + 2 * root(a * (a + b))


def check(found, expected):
    """What is cut off at one says nothing about a formula."""
    assert 0.0 < expected < 1.0
    assert found == pytest.approx(expected, rel=1e-9)


def test_numbers_that_the_papers_print():
    n, d, R, mu = 5000, 7, 1 / 0.9, MU
    # Lemma D.1 of Wang, Zhu and Wang: (n mu)^2 steps, 4 Delta sqrt(d) / mu for a sum, Delta = 2 R.
    steps = math.ceil((n * mu) ** 2)
    printed = 4 * (2 * R) * root(d) / mu / n
    found = margin_risk_bound(n, d, *BUDGET, 0.9, n_steps=steps)
    check(found, printed * root(4 * d + 1) / (8 * root(d)))
    # Lemma 6.6 there, with the sign of its proof.
    for outliers in (0, 5, 500):
        own = {"n_outliers": outliers, "n_steps": 10**5, "beta": 0.1}
        b = margin_risk_bound(n, d, *BUDGET, 0.9, **own)
        # The hinge loss of an outlier is at most one more than its norm over the margin.
        free = margin_risk_bound(n, d, *BUDGET, 0.9, **{**own, "n_outliers": 0})
        assert b - free == pytest.approx(outliers / n * (1 + R))
        lemma = 2 * b + 5 * (d * log(2 * n) + log(4 / 0.1)) / n
        assert margin_risk_bound(n, d, *BUDGET, 0.9, population=True, **own) <= lemma
    # Theorem 4.1 of Bassily, Mohri and Suresh, Lemma F.1 and Lemma F.3.
    found = fourier_distortion(400, 3000, beta=0.05)
    assert found.published == pytest.approx(2 * root(log(3000 / 0.05) / 400))
    assert fourier_distortion(9, 2).value == pytest.approx(root(2 * log(2 / 0.05) / 9))
    assert fourier_frequencies(1.0, 2) == math.ceil(2 * log(2 / 0.05))
    assert margin_selection_cost(8, 0.01, 0.5).published == pytest.approx(0.02 * log(8 / 0.05))
    assert margin_score_sensitivity(1000, 0.25) <= 2 / (1000 * 0.25)
    # Theorem 6.1 there, with the constants of its last display.
    n, fat, beta, epsilon = 10**8, 30.0, 0.1, 0.5
    M = 1 + fat * math.log2(2 * 17**2 * n) * math.log2(2 * 17 * math.e * n / fat) + log(2 / beta)
    printed = 1e-3 + 2 * root(1e-3 * M / n) + 2 * M / n + 64 * M * log(2 / beta) / (epsilon * n)
    bound = label_risk_bound(n, 5, epsilon, 0.5, n_outliers=10**5, fat_dimension=fat, beta=beta)
    assert bound.published == pytest.approx(printed)
    # Theorem 12 of Nguyen, Ullman and Zakynthinou: 2^(d / 20) halfspaces in 1 / (1000 margin^2)
    # dimensions, and 9 / 10 (K - 1) exp(-n epsilon) <= 1 / 10.
    for margin in (1e-3, 3e-4):
        count = 2 ** (1 / (1000 * margin**2) / 20)
        printed = log(9 * (count - 1)) / 0.1
        assert 25 * printed < pure_lower_bound(10**7, 0.1, margin) < 60 * printed


def test_fresh_records_cost_what_all_patterns_cost():
    """At least the inequality with the exact number of ways to classify 2n records, or 4^n."""
    beta = 0.1
    for n, d, count in ((200, 50, 1), (200, 50, 1000), (30, 60, 1)):
        case = margin_bound._Separated(n, d, 0, 1.0)
        found = margin_bound._population_bound(case, 0.0, beta, count, d)
        patterns = sum(math.comb(2 * n, i) for i in range(min(d, 2 * n) + 1))
        assert min(1.0, solved(0.0, (log(patterns) + log(4 * count / beta)) / n)) <= found
    for n, d, count in ((10**5, 50, 1), (10**5, 50, 1000)):
        case = margin_bound._Separated(n, d, 0, 1.0)
        exact = solved(0.0, (log_patterns(2 * n, d) + log(4 * count / beta)) / n)
        found = margin_bound._population_bound(case, 0.0, beta, count, d)
        assert exact <= found < 1.02 * exact


def log_patterns(m, d):
    """Logarithm of the number of subsets of at most d of m, by its largest terms."""
    terms = [math.lgamma(m + 1) - math.lgamma(i + 1) - math.lgamma(m - i + 1) for i in range(d + 1)]
    return float(logsumexp(terms))


def test_columns_beyond_the_number_of_records_cost_nothing():
    few, many = (margin_risk_bound(300, d, 20.0, 1e-6, 0.5, n_steps=900) for d in (300, 10**6))
    assert few == many < 1.0


def test_candidates_and_their_scores_share_the_budget(monkeypatch):
    seen = []

    def capture(case, n_steps, mu, *_):
        seen.append(mu)
        return 0.0

    monkeypatch.setattr(margin_bound, "_last_excess", capture)
    last_iterate_risk_bound(1000, 3, *BUDGET, 0.5, n_candidates=3, score_share=0.3)
    scores = MU * root(0.3 / 3)  # what the deviation of a count is the inverse of
    for factor, fits in ((1.0, True), (1.001, False)):
        events = [Gaussian(factor * seen[0])] * 3 + [Gaussian(scores)] * 3
        assert (delta_of(events, BUDGET[0]) <= BUDGET[1] * (1 + 1e-6)) is fits


def test_bounds_that_have_to_say_nothing():
    """With n epsilon below one all samples are alike."""
    n, epsilon = 10**8, 1e-9
    assert label_risk_bound(n, 5, epsilon, 0.5, fat_dimension=30.0).value == 1.0
    assert pure_risk_bound(n, 5, epsilon, 0.5) == network_risk_bound(n, 5, epsilon, 0.5) == 1.0


def test_where_margin_bounds_say_nothing_and_what_they_refuse():
    for bound in (margin_risk_bound, last_iterate_risk_bound):
        assert bound(100, 50, *BUDGET, 0.1, n_components=2) == 1.0
        assert bound(5, 2, *BUDGET, 1.0, n_outliers=5) == 1.0
        for margin in (0.0, -0.1, 1.1):
            with pytest.raises(ValueError, match="margin must be positive and at most data_norm"):
                bound(5, 2, *BUDGET, margin)
    free = random_stopping_risk_bound(100, 3, math.inf, 0.0, 0.5, n_candidates=1, n_steps=400)
    assert free == pytest.approx(0.1)
    assert random_stopping_risk_bound(9, 3, 1.0, 0.0, 0.5, n_candidates=2) == 1.0


def test_most_records_may_be_outliers():
    assert 0.8 < pure_risk_bound(10**6, 3, 1.0, 0.5, n_outliers=800_000) < 0.85


@pytest.mark.parametrize(("d", "margin"), [(50, 0.01), (15, 0.001)])
def test_lower_bounds_are_those_of_their_packings(d, margin):
    """The informative records are too few to tell the halfspaces apart, but for half of beta."""
    n, epsilon, beta = 1000, 0.1, 0.1
    case = pure_error_lower_bound(n, d, epsilon, margin, beta=beta)
    assert case.dimension == d - 1  # one dimension is that of the repeated record
    inner = margin / root(1 - margin**2)
    packing = pure_bounds._log_packing(case.dimension, inner, case.error / case.share)
    count = math.ceil((packing + log((1 - 1.5 * beta) / beta)) / epsilon) - 1
    assert stats.binom.sf(count, n, case.share) == pytest.approx(beta / 2, rel=1e-6)
    # With few records all may be informative; on one column, or for a large beta, it says nothing.
    assert pure_error_lower_bound(2, d, epsilon, margin).share == 1.0
    for columns, risk in ((1, beta), (2, 0.45)):
        assert pure_error_lower_bound(n, columns, epsilon, 0.3, beta=risk).error == 0.0


def test_least_regulariser_of_algorithms_2_and_3():
    """Half of epsilon covers the curvature of a record from the printed factor on."""
    epsilon, n = BUDGET[0], 2000
    own = {"radius": 1.5, "lipschitz": 0.8, "smoothness": 0.2}
    pairs = 400 * 1600
    printed = {  # line 14 of Algorithm 2 with a power of e, and the same line of Algorithm 3
        ranking_risk_bound: 0.2 * 0.25 / (pairs * math.expm1(epsilon / (2 * n))),
        objective_risk_bound: 0.2 * 0.25 / (n * math.expm1(epsilon / 2)),
    }
    for bound, least in printed.items():
        sizes = (400, 1600) if bound is ranking_risk_bound else (n,)
        kind = {"diameter": 0.5, "mechanism": "objective"} if len(sizes) > 1 else {"data_norm": 0.5}
        call = partial(bound, *sizes, 5, *BUDGET, **own, **kind)
        assert call(regularization=1.001 * least).noise > 0.0
        with pytest.raises(ValueError, match="regularization must be at least"):
            call(regularization=0.999 * least)


def test_a_gap_moves_the_solution_of_a_tilted_risk():
    at = {"tilt": 0.5, "regularization": 0.2}
    exact, loose = (
        tilted_risk_bound(1000, 4, *BUDGET, gap=gap, **at).sensitivity for gap in (0.0, 1e-3)
    )
    assert loose - exact == pytest.approx(2 * root(2 * 1e-3 / 0.2))
    # A loss with a kink has the rough bound of the paper.
    found = tilted_risk_bound(10**4, 4, 1.0, 0.0, tilt=0.0, regularization=0.1, loss="hinge")
    assert found.published == pytest.approx(2.0**2 / 0.1 * 2 * 4 / 10**4)


def test_an_optimiser_with_a_gap_costs_what_is_charged():
    """A parabola and a point above its minimum by the gap, with noise for what it may move."""
    n, d, mu, gap = 500, 4, 0.2, 1e-3
    own = {"lipschitz": 1.3, "smoothness": mu, "strong_convexity": mu, "regularization": 0.0}
    bound = strongly_convex_excess_risk(n, d, *BUDGET, gap=gap, **own)
    change = 2 * 1.3 / (mu * n) + 2 * math.sqrt(2 * gap / mu)
    W = draw_noise(np.random.default_rng(0), 100_000, d, *BUDGET, change)
    W[:, 0] += math.sqrt(2 * gap / mu)
    assert mu / 2 * np.sum(W**2, axis=1).mean() == pytest.approx(bound, rel=0.02)
    # The same without a regulariser in the risk, which is hardly a part of the objective.
    n, factor, gap = 10**6, 1e-3, 1e-7
    own = {"lipschitz": 1.3, "smoothness": mu, "radius": 1e-9, "regularization": factor}
    bound = convex_excess_risk(n, d, *BUDGET, gap=gap, **own)
    change = 2 * 1.3 / (factor * n) + 2 * math.sqrt(2 * gap / factor)
    W = draw_noise(np.random.default_rng(0), 100_000, d, *BUDGET, change)
    W[:, 0] += math.sqrt(2 * gap / (mu + factor))
    assert mu / 2 * np.sum(W**2, axis=1).mean() == pytest.approx(bound, rel=0.02)
    own = {"lipschitz": 1.3, "smoothness": mu, "strong_convexity": mu}
    with pytest.raises(ValueError, match="n_samples"):
        strongly_convex_excess_risk(0, d, *BUDGET, **own)
    with pytest.raises(ValueError, match="smoothness"):
        strongly_convex_excess_risk(n, d, *BUDGET, **{**own, "smoothness": -1.0})
    for name, bad in (("margin", 0.0), ("hinge_loss", -0.1)):
        with pytest.raises(ValueError, match=name):
            selected_margin_risk_bound(n, d, *BUDGET, **{"margin": 0.3, name: bad})


def c_of(delta):
    """Return the constant c of Lowy and Razaviyayn (2021)."""
    return root(log(2 / (root(16 * delta + 1) - 1)))


def test_steps_of_corollary_3_1_b_do_not_reach_its_accuracy():
    """Those of `sgd_iterations` do. Excesses are in units of L^2 / mu, at most 2 / (T + 1)."""
    n, d, epsilon, delta = 20, 1, 1000.0, 0.1
    noise = published_rate(n, d, epsilon, delta) * n
    c = c_of(delta)
    assert noise == pytest.approx(root(d) * (c + root(c**2 + epsilon)) / epsilon)
    accuracy = min(1 / n, noise) / n
    printed = 2 * n * max(n, epsilon / (root(d) * (2 * c + root(epsilon))))
    assert 2 / (printed + 1) > accuracy >= 2 / (sgd_iterations(n, d, epsilon, delta) + 1)
    # Corollary 4.1 b has the same accuracy and 2 max(n^2, n epsilon / (sqrt(d) (2 c + ...))).
    assert printed == 2 * max(n**2, n * epsilon / (root(d) * (2 * c + root(epsilon))))
    # Without a delta the number that follows is the printed one.
    assert sgd_iterations(n, d, epsilon, 0.0) == 2 * n * max(n, epsilon / d)


def test_printed_numbers_of_steps():
    """Corollaries 3.1 a and 3.2 for numbers that are easy to compute."""
    assert sgd_iterations(1000, 20, 1.0, 0.0) == 2 * 1000**2
    assert sgd_iterations(10, 1, 50.0, 0.0) == 2 * 10 * 50
    # kappa = 100, alpha = L^2 / (mu n^2) min(kappa (d / epsilon)^2, 1) = 1 / (.01 10^4) = .01.
    own = {"lipschitz": 1.0, "strong_convexity": 0.01, "smoothness": 1.0, "radius": 1.0}
    steps = katyusha_iterations(100, 10, 1.0, 0.0, **own)
    assert steps == math.ceil((100 + 100) * log(1 / 0.01))
    # With hardly any noise alpha is smaller by kappa (d / epsilon)^2 = .01.
    steps = katyusha_iterations(100, 1, 100.0, 0.0, **own)
    assert steps == math.ceil(200 * log(1 / 1e-4))
    # With a delta, sqrt(d) (c + sqrt(c^2 + epsilon)) / epsilon stands for d / epsilon.
    delta, epsilon = 1e-6, 1000.0
    noise = (c_of(delta) + root(c_of(delta) ** 2 + epsilon)) / epsilon
    assert 0.03 < noise < 0.04  # so 100 noise^2 is less than one
    steps = katyusha_iterations(100, 1, epsilon, delta, **own)
    assert steps == math.ceil(200 * log(1 / (0.01 * 100 * noise**2)))
