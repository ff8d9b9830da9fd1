"""Bounds are the formulas of their notes, written again, where every term counts."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from dp_halfspace.privacy import Exponential, Gaussian, calibrate, gdp_mu
from dp_halfspace.privacy.random_stopping import calibrate_random_stopping, run_count_distribution
from dp_halfspace.projection import jl_dimension
from dp_halfspace.projection.linear import jl_distortion, jl_margin
from dp_halfspace.theory import (
    convex_excess_risk,
    fourier_distortion,
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
    pure_bounds,
    pure_error_lower_bound,
    pure_lower_bound,
    pure_risk_bound,
    random_stopping_risk_bound,
    ranking_risk_bound,
    selected_margin_risk_bound,
    strongly_convex_excess_risk,
    tilted_risk_bound,
)
from dp_halfspace.theory.bounds import noise_moments

BUDGET = (4.0, 1e-5)
MU = gdp_mu(*BUDGET)
log, root = math.log, math.sqrt


def solved(b, a):
    """Solve r - b = 2 sqrt(a r) for the error on fresh records."""
    return b + 2 * a + 2 * root(a * (a + b))


def fresh(b, n, d, beta, classes=1):
    """The relative inequality for classes of a Vapnik-Chervonenkis dimension, by Sauer's lemma."""
    patterns = min(d * (1 + log(2 * n / d)) if d < 2 * n else math.inf, 2 * n * log(2))
    return solved(b, (patterns + log(4 * classes / beta)) / n)


def mean_error(n, d, mu, R, steps, outliers):
    return outliers / n * (1 + R) + R * root(1 / steps + 4 * min(n, d) / (n * mu) ** 2)


def check(found, expected):
    """What is cut off at one says nothing about a formula."""
    assert 0.0 < expected < 1.0
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("n", "d"), [(3000, 7), (400, 500)])
def test_mean_iterate(n, d):
    options = {"n_outliers": 9, "data_norm": 2.0, "n_steps": 300, "half_width": 0.25}
    R = 1.25 * 2.0 / 0.9
    check(margin_risk_bound(n, d, *BUDGET, 0.9, **options), mean_error(n, d, MU, R, 300, 9))
    mu = calibrate(lambda m: (Exponential(0.5), Gaussian(m)), *BUDGET, lower=0.0, upper=MU)
    chosen = mean_error(n, d, mu / root(3), R, 300, 9) + 2 * log(3) / (n * 0.5)
    found = margin_risk_bound(n, d, *BUDGET, 0.9, n_candidates=3, selection_epsilon=0.5, **options)
    check(found, chosen)


@pytest.mark.parametrize("population", [False, True])
def test_mean_iterate_after_a_projection_and_on_fresh_records(population):
    n, d, beta = 100_000, 5000, 0.1
    own = beta / 2 if population else beta
    size = jl_dimension(0.8, n, own)
    R = 1 / jl_margin(0.8, distortion=jl_distortion(size, n, own))
    b = mean_error(n, size, MU, R, 5000, 10)
    options = {"n_outliers": 10, "n_steps": 5000, "n_components": size, "beta": beta}
    found = margin_risk_bound(n, d, *BUDGET, 0.8, population=population, **options)
    check(found, fresh(b, n, size, own) if population else b)


def test_fresh_records_of_a_chosen_candidate():
    """A union over the candidates: of the largest dimension, or with penalties of the first's."""
    n, d, beta = 50_000, 7, 0.1
    mu = calibrate(lambda m: (Exponential(0.5), Gaussian(m)), *BUDGET, lower=0.0, upper=MU)
    b = mean_error(n, d, mu / root(3), 1 / 0.9, 3000, 9) + 2 * log(3) / (n * 0.5)
    options = {"n_outliers": 9, "n_steps": 3000, "n_candidates": 3, "selection_epsilon": 0.5}
    options |= {"population": True, "beta": beta}
    for given, largest in ((4, 7), (7, 7), (20, 20)):
        found = margin_risk_bound(n, d, *BUDGET, 0.9, candidate_dimension=given, **options)
        check(found, fresh(b, n, largest, beta, 3))
    penalty = 2.5 * (d * log(2 * n) + log(4 * 3 / beta)) / n
    check(margin_risk_bound(n, d, *BUDGET, 0.9, **options), 5 / 3 * (b + penalty))


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
        lemma = 2 * b + 5 * (d * log(2 * n) + log(4 / 0.1)) / n
        assert margin_risk_bound(n, d, *BUDGET, 0.9, population=True, **own) <= lemma
    # Theorem 4.1 of Bassily, Mohri and Suresh, Lemma F.1 and Lemma F.3.
    found = fourier_distortion(400, 3000, beta=0.05)
    assert found.published == pytest.approx(2 * root(log(3000 / 0.05) / 400))
    assert margin_selection_cost(8, 0.01, 0.5).published == pytest.approx(0.02 * log(8 / 0.05))
    assert margin_score_sensitivity(1000, 0.25) <= 2 / (1000 * 0.25)
    # Theorem 12 of Nguyen, Ullman and Zakynthinou: 2^(d / 20) halfspaces in 1 / (1000 margin^2)
    # dimensions, and 9 / 10 (K - 1) exp(-n epsilon) <= 1 / 10.
    for margin in (1e-3, 3e-4):
        count = 2 ** (1 / (1000 * margin**2) / 20)
        printed = log(9 * (count - 1)) / 0.1
        assert 25 * printed < pure_lower_bound(10**7, 0.1, margin) < 60 * printed


def test_a_penalty_covers_what_fresh_records_cost():
    """Five thirds is the least factor for every share of the penalty in a score of one."""
    worst = max(solved(1 - 2.5 * a, a) for a in np.linspace(0, 0.4, 4001))
    assert worst == pytest.approx(5 / 3, rel=1e-7)
    assert worst <= 5 / 3
    for size in (1, 2, 3, 10, 60):
        for n in (2, 3, 10, 100):
            patterns = sum(math.comb(2 * n, i) for i in range(size + 1)) if size > 1 else 3
            assert patterns <= (2 * n) ** size


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


def theorem_1(n, k, mu, R, steps, step, beta):
    """The bound of a step for the best of some lambda, term by term."""
    s, N, x, best = 2 * root(steps) / (n * mu), steps + 1, log(3 / beta), math.inf
    for factor in np.geomspace(1e-3, 1e2, 11):
        rate = 2 * x * N / R**2 * factor
        omega, harmonic = [], 0.0
        for t in range(1, N + 1):
            harmonic += 1 / (N - t + 1) if t > 1 else 0.0
            omega.append(1 / (1 + rate * (step * s) ** 2 * harmonic))
        tails = [math.fsum(omega[t:]) for t in range(N)]
        v = [omega[-1] / tails[t + 1] for t in range(N - 1)] + [1.0]
        v0 = omega[-1] / tails[0]
        a = [w * each for w, each in zip(omega, v, strict=True)]
        A = math.fsum(each**2 for each in a[:-1])
        inner = k * math.fsum(a[:-1]) + 2 * root(k * x * A) + 2 * x * max(a[:-1])
        inner = math.fsum(a) + 2 * s * root(2 * x * A) + s**2 * inner
        whole = v0 * R**2 / 2 + x / rate + rate * (step * s * v0 * R) ** 2 / 2
        best = min(best, (whole + step**2 / 2 * inner) / (step * omega[-1]))
    return best


@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("candidates", [1, 3])
def test_last_iterate(population, candidates):
    n, d, R, beta = 20_000, 5, 1.1 / 0.9, 0.09
    share = beta / (1 + population + (candidates > 1))
    options = {"n_outliers": 20, "n_steps": 60, "half_width": 0.1, "beta": beta}
    options |= {"population": population, "n_candidates": candidates, "score_share": 0.3}
    options |= {"candidate_dimension": d}
    mu = MU if candidates == 1 else MU * root(0.7 / 3)
    more = 20 / n * (1 + R)
    if candidates > 1:
        sigma = root(3 / 0.3) / MU
        more += sigma * (root(2 * log(2 / share)) + root(2 * log(2 * 3 / share))) / n

    def expected(step):
        b = theorem_1(n, d, mu, R, 60, step, share) + more
        return fresh(b, n, d, share, candidates) if population else b

    found = last_iterate_risk_bound(n, d, *BUDGET, 0.9, step_size=0.05, **options)
    check(found, expected(0.05))
    scale = R / root(61 * (1 + d * 4 * 60 / (n * mu) ** 2))
    steps = scale * np.geomspace(0.05, 2.0, 16)
    check(last_iterate_risk_bound(n, d, *BUDGET, 0.9, **options), min(map(expected, steps)))


def test_last_iterate_where_the_noise_decides():
    """A step is shortened by noise in all directions that the rows span."""
    n, d, R, steps = 300, 400, 1.0, 50
    scale = R / root((steps + 1) * (1 + n * 4 * steps / (n * 40.0) ** 2))
    expected = min(
        theorem_1(n, n, 40.0, R, steps, step, 0.05) for step in scale * np.geomspace(0.05, 2.0, 16)
    )
    case = margin_bound._Separated(n, d, 0, R)
    found = margin_bound._last_excess(case, steps, 40.0, None, 0.05)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("candidates", [1, 4])
def test_random_stopping(candidates):
    n, d, miss = 5000, 6, 0.1 if candidates > 1 else 0.0
    runs = run_count_distribution(candidates, 0.1, eta=1.0)
    mu = calibrate_random_stopping(runs, *BUDGET)
    b = mean_error(n, d, mu * root(0.75), 1 / 0.5, 400, 3)
    b += root(2 * log(runs.mean)) / (mu * root(0.25)) / n + miss
    options = {"n_outliers": 3, "n_steps": 400, "shape": 1.0, "score_share": 0.25}
    found = random_stopping_risk_bound(n, d, *BUDGET, 0.5, n_candidates=candidates, **options)
    check(found, b)


@pytest.mark.parametrize(("n", "d"), [(3000, 7), (400, 500)])
@pytest.mark.parametrize("population", [False, True])
def test_hinge_and_kernel(n, d, population):
    options = {"hinge_loss": 0.05, "n_steps": 900, "half_width": 0.2}
    budget = (0.5, 1e-5)
    mu = gdp_mu(*budget)

    def expected(loss, columns):
        noise = 4 * min(n, columns) / (n * mu) ** 2
        b = 1.2 * (loss + root(1 / 900 + noise) / 0.9)
        return ndtr(ndtri(b) + mu) if population else b

    if d < n:
        found = hinge_risk_bound(n, d, *budget, 0.9, population=population, **options)
        check(found, expected(0.05, d))
    options = {**options, "population": population}
    found = kernel_risk_bound(20_000, d, 2.0, 1e-5, 0.9, **options)
    mu = gdp_mu(2.0, 1e-5)
    b = 1.2 * (0.05 + 1 / (0.9 * root(d)) + root(1 / 900 + 8 * d / (20_000 * mu) ** 2) / 0.9)
    check(found, ndtr(ndtri(b) + mu) if population else b)


def test_phased_steps():
    n, d, margin = 1000, 3, 0.8
    sizes, left = [], n
    while left:
        sizes.append(max(1, left // 2))
        left -= sizes[-1]
    assert sizes[-2:] == [1, 1]
    etas = [margin / root(n * (0.5 + 2 * root(d) / MU)) / 4**j for j in range(len(sizes))]
    spreads = [2 * eta / (margin * MU) for eta in etas]
    offsets = [1.0, *(root(d) * s for s in spreads[:-1])]
    bound = 0.1 + spreads[-1] / margin * root(2 / math.pi)
    for j, (eta, size, offset) in enumerate(zip(etas, sizes, offsets, strict=True)):
        bound += offset**2 / (2 * eta * size) + eta / (2 * margin**2) * (1 + 1 / size)
        bound += offset / (margin * size) if j else 0.0
    check(phased_risk_bound(n, d, *BUDGET, margin, hinge_loss=0.1), bound)


def chernoff(n, size, epsilon, share, beta):
    b = share + 2 * (size + log(1 / beta)) / (n * epsilon)
    a = (size + log(1 / beta)) / n
    return b + a + root(a**2 + 2 * a * b)


def test_networks():
    n, d, epsilon, margin, beta = 200_000, 6, 0.7, 0.3, 0.1
    options = {
        "n_hidden": (4, 3),
        "weight_norm": 1.2,
        "slope": 0.9,
        "n_outliers": 300,
        "beta": beta,
    }
    stretch = (0.9 * 1.2) ** 2
    tau = margin / (3 * stretch)
    size = sum(a * b for a, b in pairwise([d, 4, 3, 1])) * log(1 + 2 * 1.2 / tau)
    expected = chernoff(n, size, epsilon, 300 / n, beta / 2)
    check(network_risk_bound(n, d, epsilon, margin, **options), expected)
    # With many columns they are projected first.
    n, share = 10**7, 300 / 10**7
    e = margin / (2 * stretch * 1.2)
    images = 2 * n * 4 + n + 4
    columns = math.ceil(4 * log(2 * images / (beta / 3)) / (e**2 - 2 * e**3 / 3))
    tau = margin / 2 / (3 * stretch * (1 + e))
    parameters = sum(a * b for a, b in pairwise([columns, 4, 3, 1]))
    size = parameters * log(1 + 2 * 1.2 * root(1 + e) / tau)
    check(
        network_risk_bound(n, 10**6, epsilon, margin, **options),
        chernoff(n, size, epsilon, share, beta / 3),
    )


def test_nets_of_directions():
    n, epsilon, margin, beta = 50_000, 0.5, 0.6, 0.1
    options = {"n_outliers": 70, "beta": beta}
    expected = chernoff(n, 8 * log(1 + 2 / margin), epsilon, 70 / n, beta / 2)
    check(pure_risk_bound(n, 8, epsilon, margin, **options), expected)
    columns = jl_dimension(margin, n, beta / 3)
    size = columns * log(1 + 2 / jl_margin(margin))
    expected = chernoff(n, size, epsilon, 70 / n, beta / 3)
    check(pure_risk_bound(n, 10**6, epsilon, margin, **options), expected)


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


def test_labels():
    n, epsilon, margin, fat, beta = 10**8, 0.5, 0.5, 30.0, 0.1
    bound = label_risk_bound(n, 5, epsilon, margin, n_outliers=10**5, fat_dimension=fat, beta=beta)

    def cover(m):
        return 1 + fat * math.log2(2 * 17**2 * m) * math.log2(2 * 17 * math.e * m / fat)

    capacity = cover(n) + log(2 / beta)
    b = 1e-3 + 2 * capacity / (n * epsilon)
    a = (cover(2 * n) + log(8 / beta)) / n
    check(bound.value, b + 2 * a + 2 * root(a * (a + b)))
    published = 1e-3 + 2 * root(1e-3 * capacity / n) + 2 * capacity / n
    check(bound.published, published + 64 * capacity * log(2 / beta) / (epsilon * n))
    own = pure_risk_bound(n, 5, epsilon, margin, n_outliers=10**5, beta=beta)
    assert label_risk_bound(n, 5, epsilon, margin, n_outliers=10**5, beta=beta).value == own


def test_a_margin_that_is_selected():
    n, d, beta = 100_000, 6, 0.07
    options = {"hinge_loss": 0.02, "n_steps": 4000, "beta": beta}
    mu = calibrate(lambda m: (Exponential(0.4), Gaussian(m)), *BUDGET, lower=0.0, upper=MU)
    bound = 0.02 + root(1 / 4000 + 4 * d / (n * mu) ** 2) / 0.25 + beta
    bound += 4 * (1 + 1 / 0.25) / n * log(8 / beta) / 0.4
    check(selected_margin_risk_bound(n, d, *BUDGET, 0.3, **options), bound)
    for name, bad in (("margin", 0.0), ("hinge_loss", -0.1)):
        with pytest.raises(ValueError, match=name):
            selected_margin_risk_bound(n, d, *BUDGET, **{"margin": 0.3, name: bad})


def test_ranking():
    sizes, d, ridge = (400, 1600), 5, 0.3
    rarity = 1 / 400 + 1 / 1600
    own = {"radius": 1.5, "diameter": 0.5, "regularization": ridge}
    for lipschitz, smoothness in ((0.8, math.inf), (0.8, 1e-3), (math.inf, 0.2)):
        slope = 0.5 * lipschitz
        if lipschitz == math.inf:
            slope = 0.5 * (root(2 * 0.2) + 0.2 * 0.5 * root(2 / ridge))
        moments = noise_moments(d, *BUDGET, linear_model=True)
        change = 2 * slope / ridge * rarity
        costs = [smoothness * 0.25 / 2 * moments.felt_square * change**2]
        costs += [slope * moments.felt * change] if math.isfinite(lipschitz) else []
        found = ranking_risk_bound(
            *sizes, d, *BUDGET, lipschitz=lipschitz, smoothness=smoothness, **own
        )
        assert found.noise == pytest.approx(min(costs), rel=1e-9)
        assert found.sampling == pytest.approx(2 * slope**2 / ridge * rarity, rel=1e-9)
        assert found.bias == pytest.approx(ridge * 1.5**2 / 2, rel=1e-9)


def test_ranking_and_means_by_objective_perturbation():
    epsilon, delta = BUDGET
    half, d, ridge, n = epsilon / 2, 5, 0.3, 2000
    printed = d * ((2 * root(2 * log(1 / delta)) + root(2 * half)) / half) ** 2
    unit = n / 400 / 1600
    own = {"radius": 1.5, "lipschitz": 0.8, "smoothness": 0.2, "regularization": ridge}
    for given in (None, 0.07):
        linear = printed * (0.8 * 0.5 * unit) ** 2 if given is None else given
        found = ranking_risk_bound(
            400, 1600, d, *BUDGET, mechanism="objective", diameter=0.5, noise_square=given, **own
        )
        assert found.noise == pytest.approx(linear / (2 * ridge), rel=1e-9)
        linear = printed * (0.8 * 0.5) ** 2 if given is None else given
        found = objective_risk_bound(n, d, *BUDGET, data_norm=0.5, noise_square=given, **own)
        assert found.noise == pytest.approx(linear / (2 * ridge * n**2), rel=1e-9)
        assert found.sampling == pytest.approx(2 * 0.4**2 / (ridge * n), rel=1e-9)
        assert found.bias == pytest.approx(ridge * 1.5**2 / 2, rel=1e-9)
        # Half of epsilon covers the curvature of a record from this factor on.
        least = 0.2 * 0.25 / (n * math.expm1(epsilon / 2))
        least_of_pairs = 0.2 * 0.25 * unit / n / math.expm1(epsilon / n / 2)
        for low in (0.999, 1.001):
            for call in (
                lambda t=low * least: objective_risk_bound(
                    n, d, *BUDGET, data_norm=0.5, **{**own, "regularization": t}
                ),
                lambda t=low * least_of_pairs: ranking_risk_bound(
                    400, 1600, d, *BUDGET, diameter=0.5, mechanism="objective",
                    **{**own, "regularization": t},
                ),
            ):  # fmt: skip
                if low < 1:
                    with pytest.raises(ValueError, match="regularization must be at least"):
                        call()
                else:
                    assert call().noise > 0.0


@pytest.mark.parametrize("radius", [0.1, 7.0])
def test_the_best_factor_of_any_scale_is_found(radius):
    """Where noise and sampling are of different orders, in a small ball and in a large one."""
    own = {"lipschitz": 0.3, "radius": radius, "smoothness": 50.0}
    best = population_risk_bound(60, 40, 0.3, 1e-5, **own)
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = population_risk_bound(
            60, 40, 0.3, 1e-5, **own, regularization=factor * best.regularization
        )
        assert other.value > best.value


def test_a_gap_moves_the_solution_of_a_tilted_risk():
    at = {"tilt": 0.5, "regularization": 0.2}
    exact, loose = (
        tilted_risk_bound(1000, 4, *BUDGET, gap=gap, **at).sensitivity for gap in (0.0, 1e-3)
    )
    assert loose - exact == pytest.approx(2 * root(2 * 1e-3 / 0.2))
    # A loss with a kink has the rough bound of the paper.
    found = tilted_risk_bound(10**4, 4, 1.0, 0.0, tilt=0.0, regularization=0.1, loss="hinge")
    assert found.published == pytest.approx(2.0**2 / 0.1 * 2 * 4 / 10**4)


@pytest.mark.parametrize("smoothness", [math.inf, 1e-3])
def test_excess_of_an_optimiser_with_a_gap(smoothness):
    n, d, L, gap, factor = 500, 4, 1.3, 1e-3, 0.2
    moments = noise_moments(d, *BUDGET, linear_model=False)
    change = 2 * L / (factor * n) + 2 * root(2 * gap / factor)
    cost = min(L * moments.felt * change, smoothness / 2 * moments.felt_square * change**2)
    own = {"lipschitz": L, "smoothness": smoothness, "gap": gap}
    found = strongly_convex_excess_risk(n, d, *BUDGET, strong_convexity=factor, **own)
    assert found == pytest.approx(cost + factor / 2 * moments.square * change**2 + gap, rel=1e-9)
    found = convex_excess_risk(n, d, *BUDGET, radius=2.0, regularization=factor, **own)
    assert found == pytest.approx(cost + factor * 2.0**2 / 2 + gap, rel=1e-9)
    with pytest.raises(ValueError, match="n_samples"):
        strongly_convex_excess_risk(0, d, *BUDGET, strong_convexity=factor, **own)
    with pytest.raises(ValueError, match="smoothness"):
        strongly_convex_excess_risk(
            n, d, *BUDGET, lipschitz=L, strong_convexity=factor, smoothness=-1.0
        )
