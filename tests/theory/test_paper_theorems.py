"""Theorems of the papers with explicit constants, at sizes where they say anything.

A fast representative of every simulation runs by default, a thousand runs behind the slow marker.
``test_quarters.py`` has simulations from which no bound is far.
"""

import math

import numpy as np
import pytest
from scipy import special

from dp_halfspace.privacy import gdp_delta, gdp_mu
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.projection import draw_fourier
from dp_halfspace.theory import (
    ErrorBound,
    adversarial_risk_bound,
    convex_excess_risk,
    fourier_distortion,
    fourier_frequencies,
    hinge_risk_bound,
    kernel_risk_bound,
    label_risk_bound,
    last_iterate_risk_bound,
    margin_risk_bound,
    margin_score_sensitivity,
    margin_selection_cost,
    network_risk_bound,
    objective_risk_bound,
    phased_risk_bound,
    population_risk_bound,
    pure_risk_bound,
    random_stopping_risk_bound,
    ranking_risk_bound,
    selected_margin_risk_bound,
    strongly_convex_excess_risk,
    tilted_risk_bound,
)
from dp_halfspace.theory.bounds import noise_moments
from tests.theory.test_printed_numbers import c_of

MANY = [pytest.param(40, id="few"), pytest.param(1000, id="many", marks=pytest.mark.slow)]


# Wang, Zhu and Wang (2025)


def test_no_noise_leaves_the_price_of_the_last_iterate():
    bound = last_iterate_risk_bound(100, 3, math.inf, 0.0, 1.0, n_steps=400, beta=0.5)
    harmonic = sum(1 / i for i in range(1, 401)) + 1
    assert bound == pytest.approx(math.sqrt(harmonic / 401), rel=0.02)
    assert margin_risk_bound(100, 3, math.inf, 0.0, 1.0, n_steps=400) < bound


# Bassily, Mohri and Suresh (2022)


def test_where_the_phased_bound_says_nothing():
    full = phased_risk_bound(10_000, 400, 1.0, 1e-6, 1.0)
    assert phased_risk_bound(10_000, 400, 2.0, 1e-6, 1.0) < full < 1.0
    assert phased_risk_bound(1000, 400, 1.0, 1e-6, 1.0) == 1.0


def test_the_phased_bound_adds_up_its_phases():
    n, d, margin, mu = 16, 2, 0.9, gdp_mu(200.0, 1e-6)
    total, offset, eta = 0.01, 1.0, margin / math.sqrt(n * (0.5 + 2 * math.sqrt(d) / mu))
    for k, size in enumerate((8, 4, 2, 1, 1)):
        total += offset**2 / (2 * eta * size) + eta / (2 * margin**2) * (1 + 1 / size)
        total += (k > 0) * offset / (margin * size)
        noise = 2 * eta / (margin * mu)
        offset, eta = math.sqrt(d) * noise, eta / 4
    total += noise / margin * math.sqrt(2 / math.pi)
    found = phased_risk_bound(n, d, 200.0, 1e-6, margin, hinge_loss=0.01)
    assert found == pytest.approx(total, rel=1e-12)
    assert found < 1.0


@pytest.mark.parametrize("draws", MANY)
def test_inner_products_of_fourier_features(draws):
    rng = np.random.default_rng(2)
    X = rng.uniform(-0.5, 0.5, size=(20, 2))
    exact = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / 2 / 0.3**2)
    size = 200
    bound = fourier_distortion(size, 20, beta=0.1)
    found = []
    for _ in range(draws):
        psi = draw_fourier(2, np.full(size, 0.3), rng).apply(X)
        found.append(np.abs(psi @ psi.T - exact).max())
    assert np.mean(np.array(found) > bound.value) <= 0.1
    assert max(found) > bound.value / 2.5
    assert bound.value <= bound.published
    assert fourier_distortion(fourier_frequencies(0.2, 20), 20).value <= 0.2


def test_larger_classes_cost_more():
    """Networks beside halfspaces, frequencies beside columns; behind a projection, too."""
    assert network_risk_bound(4000, 2, 1.0, 0.5, n_hidden=(1,)) < 1.0
    assert network_risk_bound(10**6, 10**6, 1.0, 0.8, n_hidden=(2,)) < 1.0
    assert network_risk_bound(100, 10, 1.0, 0.2) == 1.0
    assert network_risk_bound(100, 10, 1.0, 2.0) == 1.0
    assert network_risk_bound(10**4, 3, 1.0, 1.0) < 1.0
    halfspaces = network_risk_bound(4000, 3, 1.0, 0.2, n_hidden=())
    assert halfspaces < network_risk_bound(4000, 3, 1.0, 0.2)
    own = {"hinge_loss": 0.1, "n_steps": 400}
    linear = hinge_risk_bound(800, 600, 8.0, 1e-6, 0.5, **own)
    assert linear < kernel_risk_bound(800, 300, 8.0, 1e-6, 0.5, **own) < 1.0
    fresh = hinge_risk_bound(800, 600, 8.0, 1e-6, 0.5, **own, population=True)
    assert fresh == pytest.approx(special.ndtr(special.ndtri(linear) + gdp_mu(8.0, 1e-6)))
    bound = label_risk_bound(2000, 2, 0.5, 0.5, n_outliers=200)
    assert bound.value == pure_risk_bound(2000, 2, 0.5, 0.5, n_outliers=200) < 1.0
    assert bound == ErrorBound(bound.value, 1.0)  # the printed number says nothing at this size


def test_label_bound_of_the_paper_multiplies_where_a_sum_is_enough():
    for n in (10**7, 10**9):
        for outliers in (0, n // 10):
            bound = label_risk_bound(n, 50, 1.0, 0.5, fat_dimension=51, n_outliers=outliers)
            assert outliers / n < bound.value < bound.published
    assert label_risk_bound(10**5, 50, 1.0, 0.5, fat_dimension=51).value == 1.0  # vacuous


def least_hinge(x, y, margin):
    """Least mean hinge loss of |w| <= 1 in one dimension: at a kink or an end."""
    kinks = margin * y / np.where(x == 0, 1, x)
    points = np.concatenate([[-1.0, 0.0, 1.0], kinks[np.abs(kinks) <= 1]])
    return np.maximum(0, 1 - points[:, None] * (x * y) / margin).mean(axis=1).min()


@pytest.mark.parametrize("margin", [0.1, 0.5, 1.0])
def test_margin_scores_on_neighbours(margin):
    n, rng = 40, np.random.default_rng(0)
    bound, largest = margin_score_sensitivity(n, margin), 0.0
    for trial in range(400):
        x, y = rng.choice([margin, 1.0, -1.0, 0.3], n), rng.choice([-1.0, 1.0], n)
        if trial == 0:
            x, y = np.full(n, margin), np.ones(n)
        x2, y2 = x.copy(), y.copy()
        x2[0], y2[0] = 1.0, -1.0
        change = abs(least_hinge(x, y, margin) - least_hinge(x2, y2, margin))
        largest = max(largest, change)
    capacity, k = 9.0, np.arange(n + 1)
    scores = k / n + 2 * np.sqrt(k / n * capacity / n)
    one = margin_score_sensitivity(n, margin, loss="errors", capacity=capacity)
    assert np.diff(scores).max() == pytest.approx(one)
    assert largest == pytest.approx(bound)  # attained, so half of it fails
    assert bound <= 2 / (margin * n)  # what the paper prints


def test_cost_of_a_selected_margin_and_the_printed_one_fails():
    count, delta, epsilon, beta = 10, 1.0, 1.0, 0.05
    cost = margin_selection_cost(count, delta, epsilon, beta=beta)

    def wrong(scores):
        t = 2 / epsilon * math.log(count / beta)
        s = np.max((scores[:, None] - scores[None] + 0 * t) / (2 * delta), axis=1)
        return 1 - special.softmax(-epsilon * s / 2)[0]

    assert wrong(np.array([0.0] + [cost.value * 1.001] * (count - 1))) <= beta
    assert wrong(np.array([0.0] + [cost.published * 1.001] * (count - 1))) > 4 * beta


def test_bound_of_a_selected_margin_is_made_of_its_parts():
    n, d, margin, epsilon = 10**6, 20, 0.3, 2.0
    bound = selected_margin_risk_bound(n, d, epsilon, 1e-6, margin, n_steps=10_000)
    mu = mu_beside(0.1 * epsilon, epsilon, 1e-6)
    known = math.hypot(0.01, 2 * math.sqrt(d) / (n * mu)) / 0.25
    count = round(0.5 * math.log2(n))
    cost = margin_selection_cost(count, (1 + 4) / n, 0.1 * epsilon).value
    assert bound == pytest.approx(known + cost + 0.05)
    assert bound > hinge_risk_bound(n, d, epsilon, 1e-6, margin, n_steps=10_000)
    assert selected_margin_risk_bound(n, d, epsilon, 1e-6, 1e-4) == 1.0  # below the grid
    assert selected_margin_risk_bound(n, d, epsilon, 1e-6, 0.25, n_steps=10_000) == bound


# Wang, Yang, Lei, Ying and Zhang (2021)


def printed_linear_terms(draws, d, epsilon, delta, rng):
    """Algorithms 2 and 3 with half of epsilon, for a sum of records of slope one.

    Line 5 of Algorithm 2 is for delta = 0: a record changes the gradient by at most 2, so a density
    in proportion to exp(-epsilon |b| / 2) by a factor of at most e^epsilon.
    """
    half = epsilon / 2
    b = rng.standard_normal((draws, d))
    if delta > 0:
        return b * (2 * math.sqrt(2 * math.log(1 / delta)) + math.sqrt(2 * half)) / half
    return b / np.linalg.norm(b, axis=1, keepdims=True) * rng.gamma(d, 2 / half, size=(draws, 1))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 4])
def test_a_linear_term_costs_what_is_charged(d, delta):
    """A loss that is straight attains the square of the linear term over twice the ridge."""
    ridge, n, epsilon, rng = 0.5, 100, 3.0, np.random.default_rng(0)
    own = {"radius": 1.0, "smoothness": 1e-9, "lipschitz": 0.7, "regularization": ridge}
    means = objective_risk_bound(n, d, epsilon, delta, data_norm=1.5, **own)
    pairs = ranking_risk_bound(
        30, 70, d, epsilon, delta, diameter=1.5, mechanism="objective", **own
    )
    b = 0.7 * 1.5 * printed_linear_terms(200_000, d, epsilon, delta, rng)
    for bound, unit in ((means, 1 / n), (pairs, n / 30 / 70)):
        moved = -unit * b / ridge
        excess = np.sum(unit * b * -moved - ridge / 2 * moved**2, axis=1)
        assert excess.mean() == pytest.approx(bound.noise, rel=0.03)
        square = np.sum((unit * b) ** 2, axis=1).mean()
    assert means.sampling == pytest.approx(2 * 1.05**2 / (ridge * n))
    assert pairs.sampling == pytest.approx(2 * 1.05**2 / ridge * (1 / 30 + 1 / 70))
    # A linear term of any other origin, given by its mean square.
    own["noise_square"] = square
    pairs = ranking_risk_bound(30, 70, d, epsilon, delta, mechanism="objective", **own)
    means = objective_risk_bound(n, d, epsilon, delta, **own)
    assert [pairs.noise, n**2 * means.noise] == pytest.approx([square / (2 * ridge)] * 2)
    del own["noise_square"]
    output = ranking_risk_bound(30, 70, d, epsilon, delta, **own)
    square = noise_moments(d, epsilon, delta, linear_model=True).square * output.sensitivity**2
    for factor, noise in ((1.0, output.noise), (0.0, 0.0)):
        given = ranking_risk_bound(30, 70, d, epsilon, delta, noise_square=factor * square, **own)
        assert given.noise == pytest.approx(noise)
    with pytest.raises(ValueError, match="at least"):
        objective_risk_bound(n, d, 0.1, delta, radius=1.0, smoothness=1.0, regularization=1e-9)


def smooth_corner(z, h):
    """max(0, -z) with a parabola of half width h; slope at most one, smoothness 1 / (2 h)."""
    return np.where(np.abs(z) < h, (z - h) ** 2 / (4 * h), np.maximum(0, -z))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("mechanism", ["means", "pairs"])
def test_a_quarter_of_the_bound_of_objective_perturbation_fails(mechanism, delta):
    """Records on both sides of zero whose losses add up to nearly |w|, in one column."""
    n, draws, rng = 100_000, 100_000, np.random.default_rng(1)
    scale = 4.0 if delta == 0 else 2 * 2 * math.sqrt(2 * math.log(1e6))
    sides = rng.binomial(n // 2, 0.5, size=(2, draws)) / (n // 2)
    if mechanism == "means":  # n records at 1 and -1
        epsilon, slope, unit, h = 2 * scale / n, 0.5, 1 / n, 0.125
        up, down = sides.mean(axis=0), 1 - sides.mean(axis=0)
    else:  # positive and negative records at 1/2 and -1/2, half of each
        epsilon, slope, unit, h = 16 * scale / n, 0.25, 4 / n, 0.0625
        up, down = sides[0] * sides[1], (1 - sides[0]) * (1 - sides[1])
    own = {"radius": 1e-9, "smoothness": 1 / (2 * h), "regularization": 1.0}
    if mechanism == "means":
        bound = objective_risk_bound(n, 1, epsilon, delta, **own)
    else:
        bound = ranking_risk_bound(
            n // 2, n // 2, 1, epsilon, delta, diameter=1.0, mechanism="objective", **own
        )
    a = unit * printed_linear_terms(draws, 1, epsilon, delta, rng)[:, 0]
    # The minimiser of up * loss(w) + down * loss(-w) + w^2 / 2 + a w.
    inner = -(a + (down - up) / 2) / (1 + (up + down) / (2 * h))
    w = np.where(a < -h - down, -a - down, np.where(a > h + up, up - a, inner))
    excess = slope * (smooth_corner(w, h) + smooth_corner(-w, h) - 2 * smooth_corner(0.0, h))
    assert bound.value / 4 < excess.mean() <= bound.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hinge_risk_bound(10, 2, 1.0, 1e-6, 1.5), "margin"),
        (lambda: hinge_risk_bound(10, 2, 1.0, 1e-6, 0.5, half_width=2.0), "half_width"),
        (lambda: last_iterate_risk_bound(10, 2, 1.0, 1e-6, 0.5, score_share=1.0), "score_share"),
        (lambda: random_stopping_risk_bound(10, 2, 1.0, 1e-6, 0.5, n_candidates=2, score_share=0),
         "score_share"),
        (lambda: network_risk_bound(10, 2, math.inf, 0.5), "epsilon"),
        (lambda: fourier_distortion(10, 20, beta=1.0), "beta"),
        (lambda: margin_score_sensitivity(10, 0.5, loss="exp"), "loss"),
        (lambda: network_risk_bound(10, 2, 1.0, -0.5), "margin"),
        (lambda: network_risk_bound(10, 2, 1.0, 0.5, weight_norm=0.0), "weight_norm"),
        (lambda: kernel_risk_bound(100, 20, 1.0, 1e-6, 0.5, hinge_loss=-0.1), "hinge_loss"),
        (lambda: ranking_risk_bound(5, 5, 2, 1.0, 0.0, radius=1.0, diameter=-1.0), "diameter"),
        (lambda: ranking_risk_bound(5, 5, 2, 1.0, 0.0, radius=1.0, mechanism="both"), "mechanism"),
    ],
)  # fmt: skip
def test_refusals_name_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_gaussian_noise_means_no_bound():
    assert random_stopping_risk_bound(100, 2, 0.1, 1e-6, 0.5, n_candidates=3) == 1.0
    assert last_iterate_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert hinge_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert phased_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert selected_margin_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert kernel_risk_bound(100, 20, 1.0, 0.0, 0.5) == 1.0


def _output_mu(epsilon: float, delta: float) -> float:
    """Return mu of equation 5 of Lowy and Razaviyayn (2021)."""
    c = c_of(delta)
    return math.sqrt(2.0) * epsilon / (c + math.sqrt(c * c + epsilon))


@pytest.mark.parametrize("delta", [1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_printed_noise_of_output_perturbation_is_enough_by_a_known_excess(epsilon, delta):
    assert 1.06 < gdp_mu(epsilon, delta) / _output_mu(epsilon, delta) < 1.48


def test_printed_noises_spend_more_than_their_delta():
    # Algorithm 7 of Lowy and Razaviyayn: twice the exponent of equation 5.
    assert gdp_delta(math.sqrt(2.0) * _output_mu(1.0, 1e-5), 1.0) == pytest.approx(7.4e-5, rel=0.01)
    # Line 3 of their Algorithm 6, for two results at the accuracy of Theorem 5.3 on both sides of
    # minimisers that are apart; the distance is to have the root of alpha.
    change, alpha = 2.0 / 1000, 1.0 / 1000**2
    apart, printed = change + 2.0 * math.sqrt(2.0 * alpha), change + 4.0 * alpha / 2.0
    assert gdp_delta(apart / printed * _output_mu(1.0, 1e-6), 1.0) > 1000 * 1e-6
    assert gdp_delta(_output_mu(1.0, 1e-6), 1.0) <= 1e-6
    # Lemma 2 of Wang et al. (2021), without a condition on epsilon.
    for epsilon, enough in {1.0: True, 8.0: True, 9.0: False, 20.0: False}.items():
        mu = epsilon / math.sqrt(2.0 * math.log(1.25 / 1e-5))
        assert (gdp_delta(mu, epsilon) <= 1e-5) is enough


RIDGE = {"radius": 0.5, "regularization": 0.02}


@pytest.mark.parametrize(
    ("bound", "enough", "value"),
    [
        (lambda n: margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 3000, 0.085547),
        (
            lambda n: margin_risk_bound(
                n,
                9000,
                4.0,
                1e-6,
                0.9,
                n_steps=2000,
                n_outliers=9,
                n_components=8000,
                n_candidates=3,
                selection_epsilon=0.3,
                population=True,
                half_width=0.5,
            ),
            10**6,
            0.56055,
        ),
        (lambda n: last_iterate_risk_bound(n, 1, 0.2, 1e-6, 1.0, n_steps=400), 1000, 0.48325),
        (
            lambda n: last_iterate_risk_bound(
                n, 20, 4.0, 1e-6, 0.3, n_steps=2000, n_outliers=9, n_candidates=3, population=True
            ),
            30_000,
            0.41946,
        ),
        (
            lambda n: random_stopping_risk_bound(
                n, 20, 1.0, 1e-6, 0.3, n_candidates=4, n_steps=2000
            ),
            3000,
            0.21802,
        ),
        (lambda n: pure_risk_bound(n, 20, 1.0, 0.3, n_outliers=9), 1000, 0.24557),
        (lambda n: pure_risk_bound(n, 10**6, 1.0, 0.9), 10**5, 0.0498274),
        (lambda n: hinge_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 3000, 0.085547),
        (lambda n: phased_risk_bound(n, 20, 1.0, 1e-6, 0.3), 3000, 0.45902),
        (lambda n: kernel_risk_bound(n, n, 1.0, 1e-6, 0.3, half_width=0.5), 10_000, 0.600889),
        (lambda n: network_risk_bound(n, 20, 1.0, 0.3, n_outliers=9), 3000, 0.51558),
        (lambda n: network_risk_bound(n, 10**6, 1.0, 0.9, n_hidden=(2,)), 10**6, 0.016821),
        (
            lambda n: network_risk_bound(n, 10**6, 1.0, 0.9, n_hidden=(), weight_norm=1.5),
            10**5,
            0.121078,
        ),
        (lambda n: label_risk_bound(n, 20, 1.0, 0.3).value, 1000, 0.23262),
        (lambda n: label_risk_bound(n, 20, 1.0, 0.3, fat_dimension=0.01).value, 300, 0.234756),
        (
            lambda n: selected_margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000),
            30_000,
            0.17254,
        ),
        (lambda n: ranking_risk_bound(n, n, 20, 1.0, 1e-6, radius=1.0).value, 3000, 0.21592),
        (
            lambda n: (
                ranking_risk_bound(
                    n, 3 * n, 20, 1.0, 0.0, radius=1.0, smoothness=0.25, mechanism="objective"
                ).value
            ),
            3000,
            0.11145,
        ),
        (
            lambda n: objective_risk_bound(n, 20, 1.0, 1e-6, radius=1.0, smoothness=0.25).value,
            1000,
            0.12085,
        ),
        (lambda n: convex_excess_risk(n, 20, 1.0, 1e-6, lipschitz=1.0, radius=1.0), 3000, 0.15773),
        (
            lambda n: strongly_convex_excess_risk(
                n, 20, 1.0, 1e-6, lipschitz=1.0, strong_convexity=0.1
            ),
            10_000,
            0.037389,
        ),
        (
            lambda n: population_risk_bound(n, 20, 1.0, 1e-6, lipschitz=1.0, radius=1.0).value,
            3000,
            0.16045,
        ),
        (
            lambda n: (
                population_risk_bound(
                    n, 20, 1.0, 0.0, lipschitz=1.0, strong_convexity=0.1, smoothness=0.2, gap=1e-6
                ).value
            ),
            10_000,
            0.0091831,
        ),
        (lambda n: tilted_risk_bound(n, 20, 1.0, 1e-6, tilt=0.5, **RIDGE).value, 10_000, 0.018308),
        (lambda n: tilted_risk_bound(n, 1, 4.0, 0.0, tilt=1.0, **RIDGE).value, 1000, 0.71432),
        (
            lambda n: adversarial_risk_bound(n, 20, 1.0, 1e-6, attack_radius=0.1, **RIDGE).value,
            10_000,
            0.018412,
        ),
        (
            lambda n: (
                adversarial_risk_bound(
                    n, 20, 1.0, 0.0, attack_radius=0.1, attack_norm="inf", population=True, **RIDGE
                ).value
            ),
            30_000,
            0.031002,
        ),
    ],
)
def test_where_a_bound_says_something_and_what(bound, enough, value):
    """With a hundredth of the records that are enough it says nothing: zeros do as well."""
    few, many, more = (bound(n) for n in (max(enough // 100, 2), enough, 10 * enough))
    assert few >= 1.0
    assert more <= many < 1.0
    assert many == pytest.approx(value, rel=1e-4)
