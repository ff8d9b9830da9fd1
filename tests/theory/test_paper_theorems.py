"""Theorems of the papers with explicit constants: in many runs, at sizes where they say anything.

A fast representative of every simulation runs by default, a thousand runs behind the slow marker.
"""

import math

import numpy as np
import pytest
from scipy import optimize, special

from dp_halfspace import AdaptiveMarginClassifier
from dp_halfspace.datasets import make_halfspace
from dp_halfspace.privacy import gdp_delta, gdp_mu
from dp_halfspace.privacy.accounting import mu_beside
from dp_halfspace.privacy.random_stopping import calibrate_random_stopping, run_count_distribution
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
    margin_bound,
    margin_risk_bound,
    margin_score_sensitivity,
    margin_selection_cost,
    network_risk_bound,
    objective_risk_bound,
    phased_risk_bound,
    population_risk_bound,
    pure_error_lower_bound,
    pure_risk_bound,
    random_stopping_risk_bound,
    ranking_risk_bound,
    selected_margin_risk_bound,
    strongly_convex_excess_risk,
    tilted_risk_bound,
)

MANY = [pytest.param(40, id="few"), pytest.param(1000, id="many", marks=pytest.mark.slow)]


def rows_of_margin(n, d, margin, n_outliers, rng):
    """Signed normalised rows, some of them at the opposite of the separator."""
    U = rng.standard_normal((n, d))
    U[:, 0] = 0
    U *= math.sqrt(1 - margin**2) / np.linalg.norm(U, axis=1, keepdims=True)
    U[:, 0] = margin
    U[:n_outliers] = -np.eye(d)[0]
    return U


def descend(U, mu, step, rng, *, n_steps, runs):
    """Noisy gradient steps on the hinge with slopes of at most one; last iterate and mean."""
    n = len(U)
    deviation = 0.0 if math.isinf(mu) else 2 * math.sqrt(n_steps) / (n * mu)
    W = np.zeros((runs, U.shape[1]))
    total = np.zeros_like(W)
    for _ in range(n_steps):
        ascent = (W @ U.T < 1) @ U / n
        W = W + step * (ascent + deviation * rng.standard_normal(W.shape))
        total += W
    return W, total / n_steps


def errors(W, U):
    return (W @ U.T <= 0).mean(axis=1)


def hinges(W, U):
    return np.maximum(0, 1 - W @ U.T).mean(axis=1)


def mean_step(n, d, mu, length, n_steps):
    """The step size of Theorem 1 of docs/proofs/margin_risk.md."""
    noise = 4 * n_steps / (n * mu) ** 2
    return length / math.sqrt(n_steps * (1 + min(n, d) * noise))


# Wang, Zhu and Wang (2025)


@pytest.mark.parametrize("runs", MANY)
@pytest.mark.parametrize("n_outliers", [0, 20])
def test_last_iterate_stays_below_in_all_but_a_share_of_runs(runs, n_outliers):
    n, d, margin, epsilon, n_steps, beta = 2000, 5, 0.7, 2.0, 400, 0.05
    rng = np.random.default_rng(n_outliers)
    U, mu = rows_of_margin(n, d, margin, n_outliers, rng), gdp_mu(epsilon, 1e-6)
    step = mean_step(n, d, mu, 1 / margin, n_steps) / 2
    options = {"n_outliers": n_outliers, "n_steps": n_steps, "beta": beta}
    bound = last_iterate_risk_bound(n, d, epsilon, 1e-6, margin, step_size=step, **options)
    best = last_iterate_risk_bound(n, d, epsilon, 1e-6, margin, **options)
    W, _ = descend(U, mu, step, rng, n_steps=n_steps, runs=runs)
    assert np.mean(hinges(W, U) > bound) <= beta
    assert best <= bound * 1.05
    assert best < 1.0
    assert errors(W, U).max() <= bound


@pytest.mark.parametrize("runs", MANY)
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
def test_last_iterate_with_steps_too_short_and_too_long(factor, runs):
    """Orthogonal rows, where noise acts in every direction."""
    d, n_steps, mu = 100, 400, 0.5
    n, length, rng = 20 * d, 10.0, np.random.default_rng(1)
    step = factor * mean_step(n, d, mu, length, n_steps)
    deviation = 2 * math.sqrt(n_steps) / (n * mu)
    W = np.zeros((runs, d))
    for _ in range(n_steps):
        W = W + step * ((W < 1) / d + deviation * rng.standard_normal(W.shape))
    last = hinges(W, np.eye(d))
    case = margin_bound._Separated(n, d, 0, length)
    bound = margin_bound._excess_for(case, n_steps, deviation, step, beta=0.05)
    assert np.mean(last > bound) <= 0.05
    quiet = margin_bound._excess_for(case, n_steps, deviation / 2, step, beta=0.05)
    assert quiet < bound
    if factor == 0.1:
        assert last.min() > case.mean_error(n_steps, mu)  # planted: any step is the best one


def test_no_noise_leaves_the_price_of_the_last_iterate():
    bound = last_iterate_risk_bound(100, 3, math.inf, 0.0, 1.0, n_steps=400, beta=0.5)
    harmonic = sum(1 / i for i in range(1, 401)) + 1
    assert bound == pytest.approx(math.sqrt(harmonic / 401), rel=0.02)
    assert margin_risk_bound(100, 3, math.inf, 0.0, 1.0, n_steps=400) < bound


@pytest.mark.parametrize("runs", MANY)
def test_noisy_scores_choose_nearly_the_best(runs):
    """Theorem 6.5 (2): the choice adds what two Gaussian maxima can be apart."""
    n, count, beta, rng = 500, 6, 0.2, np.random.default_rng(3)
    options = {"n_steps": 10**4, "beta": beta}
    alone = last_iterate_risk_bound(n, 1, 5.0, 1e-6, 1.0, **options)
    chosen = last_iterate_risk_bound(n, 1, 5.0, 1e-6, 1.0, n_candidates=count, **options)
    assert alone < chosen < 1.0
    deviation = math.sqrt(count / 0.5) / gdp_mu(5.0, 1e-6)
    share = beta / 2
    cost = deviation * (
        math.sqrt(2 * math.log(2 / share)) + math.sqrt(2 * math.log(2 * count / share))
    )
    # The worst counts for the choice: all others as bad as the bound allows, and a little worse.
    counts = np.full(count, cost * 1.001)
    counts[0] = 0.0
    noisy = counts + deviation * rng.standard_normal((50 * runs, count))
    worst = counts[noisy.argmin(axis=1)]
    assert np.mean(worst > cost) <= share
    counts[1:] = cost / 3  # planted: a third of the price
    noisy = counts + deviation * rng.standard_normal((50 * runs, count))
    assert np.mean(counts[noisy.argmin(axis=1)] > cost / 3.01) > share


@pytest.mark.parametrize("runs", MANY)
def test_random_stopping(runs):
    """Theorem 7.1: the worst candidates beside one that is known to be good."""
    count, epsilon, delta, n = 4, 5.0, 1e-6, 400
    distribution = run_count_distribution(count, 0.1, eta=2.0)
    mu = calibrate_random_stopping(distribution, epsilon, delta)
    deviation = 1 / (mu * math.sqrt(0.2))
    margin, n_steps = 1.0, 4000
    bound = random_stopping_risk_bound(
        n, 1, epsilon, delta, margin, n_candidates=count, n_steps=n_steps
    )
    assert bound < 1.0
    rng = np.random.default_rng(5)
    good = margin_bound._Separated(n, 1, 0, 1.0).mean_error(n_steps, mu * math.sqrt(0.8))
    sizes = rng.choice(
        np.arange(1, distribution.k_max + 1), size=20 * runs, p=distribution.probabilities
    )
    found = []
    for size in sizes:
        bad = np.full(count, n)  # every record is wrong
        bad[0] = good * n
        drawn = bad[rng.integers(count, size=size)]
        found.append(drawn[np.argmin(drawn + deviation * rng.standard_normal(size))] / n)
    assert np.mean(found) <= bound
    assert np.mean(found) > good + 0.05  # planted: the good candidate is always drawn


def test_random_stopping_misses_as_often_as_it_says():
    distribution = run_count_distribution(5, 0.1, eta=2.0)
    never = sum(p * (1 - 1 / 5) ** k for k, p in enumerate(distribution.probabilities, start=1))
    assert never == pytest.approx(0.1, rel=1e-6)
    one = random_stopping_risk_bound(1000, 2, math.inf, 0.0, 1.0, n_candidates=1, n_steps=100)
    assert one == pytest.approx(0.1)
    assert random_stopping_risk_bound(1000, 2, 1.0, 0.0, 1.0, n_candidates=3) == 1.0


@pytest.mark.parametrize(
    "fits", [pytest.param(6, id="few"), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_what_iterate_mean_returns_is_covered(fits):
    n, d, margin = 300, 2, 0.8
    X, y = make_halfspace(n, d, margin=margin, random_state=0)
    found = []
    for seed in range(fits):
        model = AdaptiveMarginClassifier(
            margin=margin, iterate="mean", classes=[-1, 1], data_norm=1.0, fit_intercept=False,
            delta=1e-6, random_state=seed,
        )  # fmt: skip
        with pytest.warns(UserWarning, match="random_state"):
            model.fit(X, y)
        found.append(1 - model.score(X, y))
    (event,) = model.privacy_.events
    bound = margin_risk_bound(n, d, 1.0, 1e-6, margin, n_steps=event.count, half_width=0.5)
    assert np.mean(found) <= bound < 0.2


# Bassily, Mohri and Suresh (2022)


def disagreeing(n, share, rng):
    """Rows in a plane, some of them labelled at random: no halfspace fits them."""
    U = rows_of_margin(n, 2, 0.9, 0, rng)
    U[rng.random(n) < share] *= -1
    return U


@pytest.mark.parametrize("runs", MANY)
def test_hinge_loss_bounds_the_error(runs):
    n, margin, epsilon, n_steps = 2000, 0.5, 2.0, 900
    rng = np.random.default_rng(7)
    U, mu = disagreeing(n, 0.1, rng), gdp_mu(epsilon, 1e-6)
    angles = np.linspace(-1, 1, 401)
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    least = float(hinges(unit / margin, U).min())
    step = mean_step(n, 2, mu, 1 / margin, n_steps)
    _, mean = descend(U, mu, step, rng, n_steps=n_steps, runs=runs)
    bound = hinge_risk_bound(n, 2, epsilon, 1e-6, margin, hinge_loss=least, n_steps=n_steps)
    assert errors(mean, U).mean() <= hinges(mean, U).mean() <= bound < 1
    fresh = hinge_risk_bound(
        n, 2, epsilon, 1e-6, margin, hinge_loss=least, n_steps=n_steps, population=True
    )
    assert errors(mean, disagreeing(20_000, 0.1, rng)).mean() <= fresh < 1
    assert hinges(mean, U).mean() > hinge_risk_bound(
        n, 2, epsilon, 1e-6, margin, n_steps=n_steps
    )  # planted: data that a halfspace separates


def test_privacy_bounds_what_a_sample_hides():
    """A memory of labels, randomized response, has exactly the largest gap for its budget."""
    mu = 0.5
    flip = special.ndtr(-mu / 2)  # the error of a mu-Gaussian guess of one's own bit
    fresh = special.ndtr(special.ndtri(flip) + mu)
    assert fresh == pytest.approx(1 - flip)
    assert fresh > 0.5  # half of mu would say less than a coin


@pytest.mark.parametrize(
    "fits", [pytest.param(3, id="few"), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_phased_steps_on_fresh_records(fits):
    n, margin = 4000, 0.9
    rng = np.random.default_rng(11)
    found = []
    for seed in range(fits):
        U = disagreeing(n, 0.05, rng)
        model = AdaptiveMarginClassifier(
            margin=margin, solver="phased_prox", classes=[-1, 1], data_norm=1.0,
            fit_intercept=False, delta=1e-6, epsilon=2.0, random_state=seed,
        )  # fmt: skip
        signs = np.where(rng.random(n) < 0.5, 1, -1)
        with pytest.warns(UserWarning, match="random_state"):
            model.fit(U * signs[:, None], signs)
        kinds = np.array([[0.9, math.sqrt(0.19)], [0.9, -math.sqrt(0.19)]])
        risks = np.maximum(0, 1 - np.vstack([kinds, -kinds]) @ model.coef_[0] / margin)
        found.append(risks @ [0.475, 0.475, 0.025, 0.025])
    least = 0.05 * 2.0
    bound = phased_risk_bound(n, 2, 2.0, 1e-6, margin, hinge_loss=least)
    assert np.mean(found) <= bound < 1
    assert np.mean(found) > least


def test_where_the_phased_bound_says_nothing():
    full = phased_risk_bound(10_000, 400, 1.0, 1e-6, 1.0)
    assert phased_risk_bound(10_000, 400, 2.0, 1e-6, 1.0) < full < 1.0
    assert phased_risk_bound(1000, 400, 1.0, 1e-6, 1.0) == 1.0


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


@pytest.mark.parametrize(
    "runs", [pytest.param(6, id="few"), pytest.param(1000, marks=pytest.mark.slow)]
)
def test_kernel_bound(runs):
    """A function of norm one in the space of the kernel labels the records."""
    n, size, margin, scale, n_steps, epsilon = 800, 300, 0.5, 0.3, 400, 8.0
    rng = np.random.default_rng(4)
    centres = np.array([[0.4, 0.4], [-0.4, -0.4], [0.4, -0.4], [-0.4, 0.4]])
    X = centres[rng.integers(4, size=n)] + 0.03 * rng.standard_normal((n, 2))
    gram = lambda A, B: np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2 / scale**2)  # noqa: E731
    alpha = np.array([1.0, 1.0, -1.0, -1.0])
    alpha /= math.sqrt(alpha @ gram(centres, centres) @ alpha)
    y = np.sign(gram(X, centres) @ alpha)
    least = float(np.maximum(0, 1 - y * (gram(X, centres) @ alpha) / margin).mean())
    mu, found = gdp_mu(epsilon, 1e-6), []
    step = mean_step(n, 2 * size, mu, 1 / margin, n_steps)
    for _ in range(runs):
        psi = draw_fourier(2, np.full(size, scale), rng).apply(X)
        _, mean = descend(y[:, None] * psi, mu, step, rng, n_steps=n_steps, runs=1)
        found.append(hinges(mean, y[:, None] * psi)[0])
    bound = kernel_risk_bound(n, size, epsilon, 1e-6, margin, hinge_loss=least, n_steps=n_steps)
    assert np.mean(found) <= bound < 1
    assert bound > hinge_risk_bound(n, 2 * size, epsilon, 1e-6, margin, hinge_loss=least,
                                    n_steps=n_steps)  # fmt: skip


def exponential_choice(counts, epsilon, rng):
    """Index of an exponential mechanism on error counts."""
    return rng.choice(len(counts), p=special.softmax(-epsilon * counts / 2))


@pytest.mark.parametrize("runs", MANY)
def test_agnostic_pure_bound_over_a_net(runs):
    """Theorem 3.1 in the plane: a grid of angles is a cover, smaller than the one of the proof."""
    n, margin, epsilon, share = 2000, 0.5, 0.5, 0.1
    rng = np.random.default_rng(6)
    angles = np.arange(0, 2 * np.pi, margin)
    net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fresh = disagreeing(20_000, share, rng)
    found, bounds = [], []
    for _ in range(runs):
        U = disagreeing(n, share, rng)
        counts = (net @ U.T <= 0).sum(axis=1)
        chosen = net[exponential_choice(counts, epsilon, rng)]
        outliers = int((U[:, 0] < margin).sum())
        found.append(errors(chosen[None], fresh)[0])
        bounds.append(pure_risk_bound(n, 2, epsilon, margin, n_outliers=outliers))
    assert np.mean(np.array(found) > bounds) <= 0.05
    assert max(bounds) < 1
    assert min(found) > pure_risk_bound(10**7, 2, epsilon, margin)  # planted: no outliers
    bound = label_risk_bound(n, 2, epsilon, margin, n_outliers=200)
    assert bound.value == pure_risk_bound(n, 2, epsilon, margin, n_outliers=200)
    assert bound == ErrorBound(bound.value, 1.0)  # the printed number says nothing at this size


def test_label_bound_of_the_paper_multiplies_where_a_sum_is_enough():
    for n in (10**7, 10**9):
        for outliers in (0, n // 10):
            bound = label_risk_bound(n, 50, 1.0, 0.5, fat_dimension=51, n_outliers=outliers)
            assert outliers / n < bound.value < bound.published
    assert label_risk_bound(10**5, 50, 1.0, 0.5, fat_dimension=51).value == 1.0  # vacuous


def test_network_bound_over_a_net():
    """One hidden neuron in the plane: the lattice is a cover of the class."""
    n, margin, epsilon = 4000, 0.5, 1.0
    rng = np.random.default_rng(8)
    U = rows_of_margin(n, 2, 0.9, 0, rng)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = U * y[:, None]
    side = np.arange(-1, 1.01, 0.25)
    grid = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    grid = grid[(np.hypot(grid[:, 0], grid[:, 1]) <= 1)]
    outputs = np.tanh(X @ grid[:, :2].T) * grid[:, 2]
    counts = (outputs * y[:, None] <= 0).sum(axis=0)
    assert (np.tanh(X @ [1.0, 0.0]) * y).min() >= margin  # the margin of a member of the class
    chosen = [counts[exponential_choice(counts, epsilon, rng)] / n for _ in range(1000)]
    bound = network_risk_bound(n, 2, epsilon, margin, n_hidden=(1,))
    assert np.mean(np.array(chosen) > bound) <= 0.05
    assert bound < 1
    # Moved weights move the output by less than the proof allows.
    moved = grid + rng.uniform(-1, 1, grid.shape) * 0.25 / math.sqrt(2)
    moved[:, :2] /= np.maximum(1, np.linalg.norm(moved[:, :2], axis=1, keepdims=True))
    moved[:, 2] = np.clip(moved[:, 2], -1, 1)
    change = np.abs(np.tanh(X @ moved[:, :2].T) * moved[:, 2] - outputs).max()
    assert change < 2 * 0.25
    wide = network_risk_bound(10**6, 10**6, 1.0, 0.8, n_hidden=(2,))
    assert wide < 1.0  # behind a projection
    assert network_risk_bound(100, 10, 1.0, 0.2) == 1.0
    assert network_risk_bound(100, 10, 1.0, 2.0) == 1.0
    assert network_risk_bound(4000, 3, 1.0, 0.2, n_hidden=()) < network_risk_bound(
        4000, 3, 1.0, 0.2
    )


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


@pytest.mark.parametrize("runs", MANY)
def test_error_of_a_selected_margin(runs):
    """Corollary F.2: the generalised exponential mechanism on exact least hinge losses."""
    n, epsilon, margin, n_steps, beta = 100_000, 8.0, 0.6, 400, 0.05
    rng = np.random.default_rng(12)
    # Records of two kinds; the rest of a sample would change no score.
    kinds = np.array([[margin, math.sqrt(1 - margin**2)], [margin, -math.sqrt(1 - margin**2)]])
    grid = 0.5 ** np.arange(1, round(0.5 * math.log2(n)) + 1)
    mu = mu_beside(0.1 * epsilon, epsilon, 1e-6)
    deviation = 2 * math.sqrt(n_steps) / (n * mu)
    noise = math.hypot(1 / math.sqrt(n_steps), 2 * math.sqrt(2) / (n * mu))
    least = np.maximum(0, 1 - margin / grid)
    scores = least + noise / grid
    sensitivity = np.array([margin_score_sensitivity(n, each) for each in grid])
    lifted = scores + 4 / (0.1 * epsilon) * sensitivity * math.log(len(grid) / beta)
    gaps = (lifted[:, None] - lifted[None]) / (sensitivity[:, None] + sensitivity[None])
    probability = special.softmax(-0.1 * epsilon * gaps.max(axis=1) / 2)
    found = []
    for j, count in enumerate(rng.multinomial(runs, probability)):
        step = mean_step(n, 2, mu, 1 / grid[j], n_steps)
        W, total = np.zeros((count, 2)), np.zeros((count, 2))
        for _ in range(n_steps):
            ascent = (W @ kinds.T < 1) @ kinds / 2
            W = W + step * (ascent + deviation * rng.standard_normal(W.shape))
            total += W
        found += errors(total, kinds).tolist()
    bound = selected_margin_risk_bound(n, 2, epsilon, 1e-6, margin, n_steps=n_steps)
    assert len(found) == runs
    assert np.mean(found) <= bound < 1
    assert scores @ probability <= bound
    # Planted: the choice costs nothing.
    assert scores @ probability > hinge_risk_bound(n, 2, epsilon, 1e-6, margin, n_steps=n_steps)


# Wang, Yang, Lei, Ying and Zhang (2021)

POSITIVE = np.array([[0.6, 0.3], [0.2, 0.8], [-0.3, 0.1]])
NEGATIVE = np.array([[-0.5, -0.2], [0.4, -0.1]])
PAIRS = (POSITIVE[:, None] - NEGATIVE[None]).reshape(-1, 2)
LOSSES = {
    "logistic": (lambda z: np.logaddexp(0, -z), {"lipschitz": 1.0, "smoothness": 0.25}),
    "squared": (lambda z: (1 - z) ** 2, {"lipschitz": math.inf, "smoothness": 2.0}),
}


def minimiser(loss, weights, ridge, linear=(0.0, 0.0)):
    """Minimise a weighted mean of losses of the pairs, with ridge and linear term."""
    value = lambda w: weights @ loss(PAIRS @ w) + ridge / 2 * w @ w + w @ np.asarray(linear)  # noqa: E731
    return optimize.minimize(value, np.zeros(2), method="BFGS", tol=1e-9).x


def fresh_weights(sizes, rng):
    parts = [
        rng.multinomial(size, np.full(len(kinds), 1 / len(kinds))) / size
        for size, kinds in zip(sizes, (POSITIVE, NEGATIVE), strict=True)
    ]
    return np.outer(*parts).ravel()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("runs", MANY)
@pytest.mark.parametrize("name", ["logistic", "squared"])
def test_ranking_by_output_perturbation(name, runs):
    loss, constants = LOSSES[name]
    sizes, epsilon, radius, rng = (300, 900), 4.0, 1.0, np.random.default_rng(9)
    diameter = float(np.linalg.norm(PAIRS, axis=1).max())
    bound = ranking_risk_bound(
        *sizes, 2, epsilon, 1e-6, radius=radius, diameter=diameter, **constants
    )
    distribution = np.full(len(PAIRS), 1 / len(PAIRS))
    best = minimiser(loss, distribution, 1e-3)
    best *= min(1.0, radius / np.linalg.norm(best))
    risk = lambda w: float(distribution @ loss(PAIRS @ w))  # noqa: E731
    deviation = bound.sensitivity / gdp_mu(epsilon, 1e-6)
    found = []
    for _ in range(runs):
        w = minimiser(loss, fresh_weights(sizes, rng), bound.regularization)
        noise = deviation * rng.standard_normal((20, 2))
        found.append(np.mean([risk(w + b) for b in noise]) - risk(best))
    assert np.mean(found) <= bound.value
    # Noise alone, at the minimiser of the distribution: within four of what is charged for it.
    centre = minimiser(loss, distribution, bound.regularization)
    draws = deviation * rng.standard_normal((4000, 2))
    cost = np.mean([risk(centre + b) for b in draws]) - risk(centre)
    assert bound.noise / 6 < cost <= bound.noise
    assert bound.value < 1.0
    few = ranking_risk_bound(
        20, 60, 2, epsilon, 1e-6, radius=radius, diameter=diameter, **constants
    )
    assert (few.value < 1.0) == (name == "logistic")  # says nothing for squares at this size
    big = ranking_risk_bound(10**7, 10**7, 2, epsilon, 1e-6, radius=radius, **constants)
    assert big.value < 0.3


@pytest.mark.parametrize("runs", MANY)
def test_ranking_and_a_mean_of_losses_by_objective_perturbation(runs):
    loss, constants = LOSSES["logistic"]
    sizes, epsilon, radius, rng = (300, 900), 4.0, 1.0, np.random.default_rng(10)
    diameter = float(np.linalg.norm(PAIRS, axis=1).max())
    drawn = 2 * 0.02**2  # two coordinates
    bound = ranking_risk_bound(
        *sizes, 2, epsilon, 1e-6, radius=radius, diameter=diameter, mechanism="objective",
        noise_square=drawn, **constants,
    )  # fmt: skip
    distribution = np.full(len(PAIRS), 1 / len(PAIRS))
    best = minimiser(loss, distribution, 1e-3)
    best *= min(1.0, radius / np.linalg.norm(best))
    risk = lambda w: float(distribution @ loss(PAIRS @ w))  # noqa: E731
    found = [
        risk(minimiser(loss, fresh_weights(sizes, rng), bound.regularization,
                       0.02 * rng.standard_normal(2))) - risk(best)
        for _ in range(runs)
    ]  # fmt: skip
    assert np.mean(found) <= bound.value < 1.0

    # Records in place of pairs: the same kinds, each a record of its own.
    n = 1200
    longest = float(np.linalg.norm(PAIRS, axis=1).max())
    plain = objective_risk_bound(
        n, 2, epsilon, 1e-6, radius=radius, smoothness=0.25, data_norm=longest,
        noise_square=drawn * n**2,
    )  # fmt: skip
    found = [
        risk(minimiser(loss, rng.multinomial(n, distribution) / n, plain.regularization,
                       0.02 * rng.standard_normal(2))) - risk(best)
        for _ in range(runs)
    ]  # fmt: skip
    assert np.mean(found) <= plain.value < 1.0


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
        (lambda: ranking_risk_bound(5, 5, 2, 1.0, 0.0, radius=1.0, diameter=-1.0), "diameter"),
        (lambda: pure_error_lower_bound(10, 5, 0.0, 0.5), "epsilon"),
        (lambda: pure_error_lower_bound(10, 5, 1.0, 1.0), "margin"),
        (lambda: tilted_risk_bound(9, 2, 1.0, 0.0, tilt=1.0, regularization=-1.0), "regulariz"),
        (lambda: adversarial_risk_bound(9, 2, 1.0, 0.0, attack_radius=-0.1, radius=1.0), "attack"),
        (lambda: ranking_risk_bound(5, 5, 2, 1.0, 0.0, radius=1.0, mechanism="both"), "mechanism"),
    ],
)  # fmt: skip
def test_refusals_name_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_no_gaussian_noise_means_no_bound():
    assert last_iterate_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert hinge_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert phased_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert selected_margin_risk_bound(100, 2, 1.0, 0.0, 0.5) == 1.0
    assert kernel_risk_bound(100, 20, 1.0, 0.0, 0.5) == 1.0


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("bound", "enough"),
    [
        (lambda n: margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 3000),
        (lambda n: last_iterate_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 30_000),
        (
            lambda n: random_stopping_risk_bound(
                n, 20, 1.0, 1e-6, 0.3, n_candidates=4, n_steps=2000
            ),
            3000,
        ),
        (lambda n: pure_risk_bound(n, 20, 1.0, 0.3), 1000),
        (lambda n: hinge_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 3000),
        (lambda n: phased_risk_bound(n, 20, 1.0, 1e-6, 0.3), 3000),
        (lambda n: kernel_risk_bound(n, n, 1.0, 1e-6, 0.3, n_steps=2000), 10_000),
        (lambda n: network_risk_bound(n, 20, 1.0, 0.3), 3000),
        (lambda n: label_risk_bound(n, 20, 1.0, 0.3).value, 1000),
        (lambda n: selected_margin_risk_bound(n, 20, 1.0, 1e-6, 0.3, n_steps=2000), 30_000),
        (lambda n: ranking_risk_bound(n, n, 20, 1.0, 1e-6, radius=1.0).value, 3000),
        (
            lambda n: objective_risk_bound(n, 20, 1.0, 1e-6, radius=1.0, smoothness=0.25).value,
            1000,
        ),
        (lambda n: convex_excess_risk(n, 20, 1.0, 1e-6, lipschitz=1.0, radius=1.0), 3000),
        (
            lambda n: strongly_convex_excess_risk(
                n, 20, 1.0, 1e-6, lipschitz=1.0, strong_convexity=0.1
            ),
            10_000,
        ),
        (
            lambda n: population_risk_bound(n, 20, 1.0, 1e-6, lipschitz=1.0, radius=1.0).value,
            3000,
        ),
        (lambda n: tilted_risk_bound(n, 20, 1.0, 1e-6, tilt=0.5, radius=5.0).value, 3000),
        (
            lambda n: adversarial_risk_bound(n, 20, 1.0, 1e-6, attack_radius=0.1, radius=5.0).value,
            3000,
        ),
    ],
)
def test_where_a_bound_says_something(bound, enough):
    """With a hundredth of the records that are enough it says nothing: zeros do as well."""
    few, many, more = (bound(n) for n in (max(enough // 100, 2), enough, 10 * enough))
    assert few >= 1.0
    assert more <= many < 1.0


def _output_mu(epsilon: float, delta: float) -> float:
    """Return mu of equation 5 of Lowy and Razaviyayn (2021)."""
    c = math.sqrt(math.log(2.0 / (math.sqrt(16.0 * delta + 1.0) - 1.0)))
    return math.sqrt(2.0) * epsilon / (c + math.sqrt(c * c + epsilon))


@pytest.mark.parametrize("delta", [1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0, 10.0])
def test_printed_noise_of_output_perturbation_is_enough_by_a_known_excess(epsilon, delta):
    assert 1.06 < gdp_mu(epsilon, delta) / _output_mu(epsilon, delta) < 1.48


def test_two_printed_noises_spend_more_than_their_delta():
    # Algorithm 7 of Lowy and Razaviyayn: twice the exponent of equation 5.
    assert gdp_delta(math.sqrt(2.0) * _output_mu(1.0, 1e-5), 1.0) == pytest.approx(7.4e-5, rel=0.01)
    # Lemma 2 of Wang et al. (2021), without a condition on epsilon.
    for epsilon, enough in {1.0: True, 8.0: True, 9.0: False, 20.0: False}.items():
        mu = epsilon / math.sqrt(2.0 * math.log(1.25 / 1e-5))
        assert (gdp_delta(mu, epsilon) <= 1e-5) is enough
