"""The margin bound: against the method that it is about, and against its parts.

The method is written here again, in numpy, for records given with multiplicities.
"""

import math

import numpy as np
import pytest
from scipy import special

from dp_halfspace.privacy import Exponential, Gaussian, delta, gdp_mu
from dp_halfspace.theory import (
    hinge_risk_bound,
    last_iterate_risk_bound,
    margin_bound,
    margin_risk_bound,
)


def train(U, counts, c, mu, rng, *, n_steps, runs, norm=1.0):
    """Averaged noisy gradient descent on the hinge of signed rows, all runs at once."""
    n, rank = counts.sum(), min(U.shape[1], counts.sum())
    lipschitz = norm / c
    sigma = 0.0 if math.isinf(mu) else 2 * lipschitz / n * math.sqrt(n_steps) / mu
    eta = 1 / math.sqrt(n_steps * (lipschitz**2 + rank * sigma**2))
    W = np.zeros((runs, U.shape[1]))
    total = np.zeros_like(W)
    for _ in range(n_steps):
        total += W
        pulling = c - W @ U.T > 0
        slope = -(pulling * counts) @ U / (n * c)
        W = W - eta * (slope + sigma * rng.standard_normal(W.shape))
    return total / n_steps


def mean_error(W, U, counts):
    return float(((W @ U.T <= 0) * counts).sum(axis=1).mean() / counts.sum())


def mean_hinge(W, U, counts, c):
    return float((np.maximum(0, 1 - W @ U.T / c) * counts).sum(axis=1).mean() / counts.sum())


def many_runs(few):
    """A fast representative by default, a thousand runs behind the slow marker."""
    many = pytest.param(1000, id="many", marks=pytest.mark.slow)
    return pytest.mark.parametrize("runs", [pytest.param(few, id="few"), many])


def margin_rows(n, d, margin, n_outliers, rng):
    """Signed normalised rows of which some are at the opposite of the separator."""
    w = np.eye(d)[0]
    U = rng.standard_normal((n, d))
    U[:, 0] = 0
    U *= math.sqrt(1 - margin**2) / np.linalg.norm(U, axis=1, keepdims=True)
    U[:, 0] = margin
    U[:n_outliers] = -w
    return U


def poisoned(margin, n):
    """Half of the records barely on the right side, and outliers that pull them over."""
    lift = math.sqrt(1 - margin**2)
    U = np.array([[margin / lift, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    weak = n // 2
    outliers = math.floor(weak * margin / lift * 1.02)
    return U, np.array([weak, outliers, n - weak - outliers])


@many_runs(2)
def test_outliers_do_what_the_bound_allows_and_half_of_it_fails(runs):
    margin, n, n_steps = 0.25, 10**6, 10_000
    U, counts = poisoned(margin, n)
    rng = np.random.default_rng(2)
    error = mean_error(
        train(U, counts, margin, gdp_mu(1.0, 1e-6), rng, n_steps=n_steps, runs=runs), U, counts
    )
    bound = margin_risk_bound(n, 2, 1.0, 1e-6, margin, n_outliers=int(counts[1]), n_steps=n_steps)
    assert bound / 2 < error <= bound
    optimisation = margin_risk_bound(n, 2, 1.0, 1e-6, margin, n_steps=n_steps)
    assert error > 1.5 * (optimisation + counts[1] / n)  # planted: outliers cost 1, not 1 + v/c


def noisy_case(mu):
    """Hinge loss when the noise decides: one direction, a dozen equal records."""
    U, counts = np.ones((1, 1)), np.array([12])
    rng = np.random.default_rng(4)
    return mean_hinge(train(U, counts, 1.0, mu, rng, n_steps=400, runs=4000), U, counts, 1.0)


def test_noise_costs_what_the_bound_allows_and_half_of_it_fails(monkeypatch):
    measured = noisy_case(gdp_mu(1.0, 1e-6))
    assert measured <= margin_risk_bound(12, 1, 1.0, 1e-6, 1.0, n_steps=400)
    hinge = hinge_risk_bound(12, 1, 1.0, 1e-6, 1.0, n_steps=400)
    assert hinge / 2 < measured <= hinge < 1
    with monkeypatch.context() as patch:
        patch.setattr(margin_bound, "gdp_mu", lambda *budget: 2 * gdp_mu(*budget))
        assert measured > margin_risk_bound(12, 1, 1.0, 1e-6, 1.0, n_steps=400)


def test_dimension_costs_its_root_and_one_dimension_fails():
    d, n, mu = 6, 90, gdp_mu(1.0, 1e-6)
    U, counts = np.eye(d), np.full(d, n // d)
    margin = 1 / math.sqrt(d)
    rng = np.random.default_rng(6)
    W = train(U, counts, margin, mu, rng, n_steps=900, runs=1000)
    measured = mean_hinge(W, U, counts, margin)
    assert measured <= margin_risk_bound(n, d, 1.0, 1e-6, margin, n_steps=900) < 1
    assert measured > margin_risk_bound(n, 1, 1.0, 1e-6, margin, n_steps=900)  # planted


def selected(counts, epsilon):
    """Mean error count that the exponential mechanism selects."""
    return float(counts @ special.softmax(-epsilon * counts / 2))


def test_selection_term_is_used_and_half_of_it_fails():
    many, epsilon = 1000, 0.1
    counts = np.full(many, 100)
    counts[0] = 0
    options = {"n_steps": 10**6, "n_outliers": 0}
    alone = margin_risk_bound(10**6, 1, 5.0, 1e-6, 1.0, **options)
    chosen = margin_risk_bound(
        10**6, 1, 5.0, 1e-6, 1.0, n_candidates=many, selection_epsilon=epsilon, **options
    )
    mu = margin_bound._training_mu(5.0, 1e-6, many, epsilon)
    term = chosen - math.hypot(1e-3, 2e-6 / mu)
    assert alone < chosen
    assert term / 2 < selected(counts, epsilon) / 10**6 <= term * (1 + 1e-9)


def test_budget_beside_a_selection_is_the_largest_that_fits():
    for epsilon, selection in [(1.0, 0.1), (1.0, 0.5), (0.3, 0.05)]:
        mu = margin_bound._training_mu(epsilon, 1e-6, 1, selection)
        assert delta([Exponential(selection), Gaussian(mu)], epsilon) <= 1e-6
        assert delta([Exponential(selection), Gaussian(1.001 * mu)], epsilon) > 1e-6
    assert margin_bound._training_mu(1.0, 1e-6, 9, 0.1) == pytest.approx(0.2302 / 3, rel=1e-3)


@many_runs(2)
def test_population_bound_holds_on_fresh_records(runs):
    """Each run has a sample of its own; the bound is for all but a share of them."""
    n, margin, beta = 20_000, 0.6, 0.05
    rng, mu = np.random.default_rng(11), gdp_mu(1.0, 1e-6)
    draw = lambda m: margin_rows(m, 4, margin, rng.binomial(m, 0.02), rng)  # noqa: E731
    fresh, ones = draw(50_000), np.ones(50_000, dtype=int)
    options = {"n_outliers": round(0.02 * n), "n_steps": 200}
    wrong = []
    for _ in range(runs):
        U = draw(n)
        options["n_outliers"] = int((U[:, 0] < 0).sum())
        bound = margin_risk_bound(n, 4, 1.0, 1e-6, margin, population=True, beta=beta, **options)
        W = train(U, ones[:n], margin, mu, rng, n_steps=200, runs=1)
        wrong.append(mean_error(W, fresh, ones) > bound)
        assert margin_risk_bound(n, 4, 1.0, 1e-6, margin, **options) < bound < 1
    assert np.mean(wrong) <= beta


class Memory:
    """Rows that differ in their last digits: a halfspace cannot tell them apart, a table can.

    The first candidate is a halfspace in one column, wrong on the outliers alone. The second is a
    table of noisy sums of labels, one for each of 5,000 rows, and has as much privacy as the first.
    It is wrong wherever no record was seen.
    """

    def __init__(self, mu, *, one_negative_in=20):
        self.n, self.cells, self.rare = 100_000, 5000, 0.05
        rng = np.random.default_rng(3)
        each = np.full(self.cells, self.rare / self.cells)
        seen = rng.multinomial(self.n, [1 - self.rare, *each])[1:]
        negative = np.arange(self.cells) % one_negative_in == 0
        self.outliers = int(seen @ negative)
        sums = np.where(negative, -seen, seen) + 2 / mu * rng.standard_normal(self.cells)
        wrong = np.array([negative, negative == (sums > 0.5)])
        self.counts, self.fresh = wrong @ seen, wrong.mean(axis=1) * self.rare
        self.noise = rng.standard_normal

    def score(self, n_steps, mu, *, step, margin=0.999):
        """Mean and last of noisy steps of the first candidate, divided by the margin."""
        sigma = 2 * math.sqrt(n_steps) / (self.n * mu)
        w, total = 0.0, 0.0
        for noise in (sigma * self.noise(n_steps)).tolist():
            total += w
            pull = (self.n - self.outliers) * (w < 1 / margin) - self.outliers * (w > -1 / margin)
            w += step * (pull / self.n + noise)
        return total / n_steps, w


def test_a_candidate_that_memorises_is_chosen_and_its_class_counts():
    epsilon, selection, n_steps, margin = 70.0, 1.0, 50_000, 0.999
    mu = margin_bound._training_mu(epsilon, 1e-6, 2, selection)
    data = Memory(mu)
    mean, _ = data.score(n_steps, mu, step=1 / math.sqrt(n_steps))
    assert mean > 0  # so it is wrong on the outliers alone

    def risk(scores):
        return float(data.fresh @ special.softmax(-selection * scores / 2))

    def bound(**options):
        return margin_risk_bound(
            data.n, 1, epsilon, 1e-6, margin, n_outliers=data.outliers, n_steps=n_steps,
            n_candidates=2, selection_epsilon=selection, population=True, **options,
        )  # fmt: skip

    counts = data.counts
    assert risk(counts) > 0.99 * data.fresh[1] > 1.2 * bound(candidate_dimension=1)  # planted
    assert risk(counts) <= bound(candidate_dimension=data.cells) < 1.0
    # A penalty for the dimension prevents the choice.
    penalty = 2.5 * math.log(2 * data.n) * np.array([1, data.cells])
    assert risk(counts + penalty) == pytest.approx(data.fresh[0])
    assert risk(counts + penalty) <= bound()


def test_a_candidate_that_memorises_is_chosen_by_gaussian_scores():
    """The same for the last iterate, where counts have Gaussian noise of half of the budget."""
    epsilon, n_steps, margin, step = 300.0, 200_000, 0.999, 0.0005
    mu = gdp_mu(epsilon, 1e-6)
    each = mu * math.sqrt(0.5 / 2)
    data = Memory(each, one_negative_in=100)
    _, last = data.score(n_steps, each, step=step)
    assert last > 0

    def chosen(scores):
        noise = math.sqrt(2 / 0.5) / mu * data.noise((1000, 2))
        return data.fresh[(scores + noise).argmin(axis=1)]

    def bound(**options):
        return last_iterate_risk_bound(
            data.n, 1, epsilon, 1e-6, margin, n_outliers=data.outliers, n_steps=n_steps,
            step_size=step, n_candidates=2, population=True, **options,
        )  # fmt: skip

    # In all but a share beta of runs: planted, that only the class of the first candidate counts.
    assert np.mean(chosen(data.counts) > 1.2 * bound(candidate_dimension=1)) > 0.9
    assert np.mean(chosen(data.counts) > bound(candidate_dimension=data.cells)) <= 0.05
    assert bound(candidate_dimension=data.cells) < 1.0
    penalty = 2.5 * math.log(2 * data.n) * np.array([1, data.cells])
    assert np.mean(chosen(data.counts + penalty) > bound()) <= 0.05


def test_edges():
    some = {"n_candidates": 2, "selection_epsilon": 0.1, "population": True}
    with pytest.raises(ValueError, match="candidate_dimension must be a positive integer"):
        margin_risk_bound(100, 3, 1.0, 1e-6, 0.5, candidate_dimension=0, **some)
    assert margin_risk_bound(100, 3, 1.0, 0.0, 0.5) == 1.0
    assert margin_risk_bound(1, 1, 1.0, 1e-6, 1.0) == 1.0
    assert margin_risk_bound(100, 3, math.inf, 0.0, 0.5, n_steps=400) == pytest.approx(0.1)
    assert margin_risk_bound(100, 3, 0.0, 0.1, 1.0) <= 1.0
    free = {"n_candidates": 5, "selection_epsilon": math.inf, "n_steps": 400}
    assert margin_risk_bound(100, 3, math.inf, 0.0, 0.5, **free) == pytest.approx(0.1)


@pytest.mark.slow
@many_runs(20)
def test_candidates_share_the_budget_and_an_unshared_bound_fails(runs):
    n, d, n_steps = 1800, 90, 10_000
    U, counts = np.eye(d), np.full(d, n // d)
    margin = 1 / math.sqrt(d)
    mu = margin_bound._training_mu(1.0, 1e-6, 4, 0.1)
    rng = np.random.default_rng(7)
    measured = mean_hinge(
        train(U, counts, margin, mu, rng, n_steps=n_steps, runs=runs), U, counts, margin
    )
    shared = {"n_candidates": 4, "selection_epsilon": 0.1}
    assert measured <= margin_risk_bound(n, d, 1.0, 1e-6, margin, n_steps=n_steps, **shared) < 1
    assert measured > margin_risk_bound(n, d, 1.0, 1e-6, margin, n_steps=n_steps)
