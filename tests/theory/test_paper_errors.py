"""Where a paper is wrong as printed: the computations to which docs/papers.md refers."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from dp_halfspace.theory import katyusha_iterations, sgd_iterations
from dp_halfspace.theory.bounds import published_rate

# Nguyen, Ullman and Zakynthinou (2020)


def error_of_bisector(cosine, dimension, margin):
    """Error of the bisector of w and w' on rows of margin above `margin` with w, and share below.

    The plane of w and w' holds a part of the sphere with the radius r: r^2 is a beta variable, and
    the angle is uniform. The bisector errs on angles within half of that of w and w'.
    """
    half = math.acos(cosine) / 2
    radius = stats.beta(1.0, dimension / 2 - 1)

    def share(angle):  # of a direction: rows far enough from the boundary
        return radius.sf(min(1.0, (margin / math.cos(angle)) ** 2))

    wrong, whole = (
        integrate.quad(share, low, math.pi / 2)[0] / math.pi for low in (math.pi / 2 - half, 0.0)
    )
    return wrong / (2 * whole), 1 - 2 * whole


@pytest.mark.parametrize("dimension", [100, 10_000])
def test_sets_of_claim_12_1_overlap(dimension):
    """At Hamming distance d / 10 the bisector errs on less than a tenth for both halfspaces."""
    margin = 1 / math.sqrt(1000 * dimension)
    error, near = error_of_bisector(0.8, dimension, margin)
    assert error == pytest.approx(0.0927, abs=2e-4)  # the claim asks for more than .1 on one
    assert math.acos(0.8) / math.pi == pytest.approx(0.205, abs=1e-3)  # disagreement, not agreement
    # At distance .15 d they do not: two errors of a tenth are less than the halfspaces disagree on.
    assert 2 * (0.1 * (1 - near) + near) < math.acos(0.7) / math.pi
    assert error_of_bisector(0.7, dimension, margin)[0] > 0.1


def test_error_of_the_bisector_by_sampling():
    rng, d, margin = np.random.default_rng(0), 20, 0.05
    x = rng.standard_normal((400_000, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[np.abs(x[:, 0]) >= margin]
    half = math.acos(0.8) / 2
    wrong = (x[:, 0] * math.cos(half) + x[:, 1] * math.sin(half)) * x[:, 0] <= 0
    assert wrong.mean() == pytest.approx(error_of_bisector(0.8, d, margin)[0], rel=0.02)


# Bassily, Mohri and Suresh (2022)


@pytest.mark.parametrize("rho", [0.5, 0.1])
def test_step_8_of_algorithm_5_spends_more_than_half_of_epsilon(rho):
    """Two candidates, and one record that changes its label among others that cancel out."""
    radius, length, others, epsilon = 1.0, 1.0, 4, 1.0
    m = others + 1

    def scores(label):
        labels = np.array([1, -1] * (others // 2) + [label])
        margins = np.outer([length, -length], radius * labels)
        return -np.maximum(0, 1 - margins / rho).mean(axis=1)

    def loss(sensitivity):
        weights = [np.exp(epsilon / 2 * scores(y) / (2 * sensitivity)) for y in (1, -1)]
        one, other = (w[0] / w.sum() for w in weights)
        return math.log(one / other)

    assert loss(length * radius / m) > 1.4 * epsilon / 2  # as printed
    assert loss((1 + length * radius / rho) / m) <= epsilon / 2
    assert max(scores(1) - scores(-1)) == pytest.approx((1 + length * radius / rho) / m)


# Lowy and Razaviyayn (2021)


def test_steps_of_corollary_3_1_b_do_not_reach_its_accuracy():
    """Those of `sgd_iterations` do. Excesses are in units of L^2 / mu, at most 2 / (T + 1)."""
    n, d, epsilon, delta = 20, 1, 1000.0, 0.1
    noise = published_rate(n, d, epsilon, delta) * n
    c = math.sqrt(math.log(2 / (math.sqrt(16 * delta + 1) - 1)))
    assert noise == pytest.approx(math.sqrt(d) * (c + math.sqrt(c**2 + epsilon)) / epsilon)
    accuracy = min(1 / n, noise) / n
    printed = 2 * n * max(n, epsilon / (math.sqrt(d) * (2 * c + math.sqrt(epsilon))))
    assert 2 / (printed + 1) > accuracy >= 2 / (sgd_iterations(n, d, epsilon, delta) + 1)
    # Without a delta the number that follows is the printed one.
    assert sgd_iterations(n, d, epsilon, 0.0) == 2 * n * max(n, epsilon / d)


def test_printed_numbers_of_steps():
    """Corollaries 3.1 a and 3.2 for numbers that are easy to compute."""
    assert sgd_iterations(1000, 20, 1.0, 0.0) == 2 * 1000**2
    assert sgd_iterations(10, 1, 50.0, 0.0) == 2 * 10 * 50
    # kappa = 100, alpha = L^2 / (mu n^2) min(kappa (d / epsilon)^2, 1) = 1 / (.01 10^4) = .01.
    own = {"lipschitz": 1.0, "strong_convexity": 0.01, "smoothness": 1.0, "radius": 1.0}
    steps = katyusha_iterations(100, 10, 1.0, 0.0, **own)
    assert steps == math.ceil((100 + 100) * math.log(1 / 0.01))
    # With hardly any noise alpha is smaller by kappa (d / epsilon)^2 = .01.
    steps = katyusha_iterations(100, 1, 100.0, 0.0, **own)
    assert steps == math.ceil(200 * math.log(1 / 1e-4))


def noisy_quadratic(mu, d, sensitivity, epsilon):
    """Excess of a quadratic of curvature mu with gamma noise: mu / 2 times its mean square."""
    return mu / 2 * d * (d + 1) * (sensitivity / epsilon) ** 2


@pytest.mark.parametrize("d", [1, 100])
def test_theorem_5_3_needs_the_root_of_two_alpha(d):
    """The noise is that of line 3 of Algorithm 6, without an adversary and for an exact minimum."""
    L, mu, n, epsilon, alpha = 1.0, 1.0, 1000, 0.1, 0.01
    excess = noisy_quadratic(mu, d, 2 * L / (mu * n) + 2 * math.sqrt(2 * alpha / mu), epsilon)

    def theorem(root):
        return 4 * mu * (L / (mu * n) + root) ** 2 * (d / epsilon) ** 2 + alpha

    assert excess > theorem(math.sqrt(alpha / mu))  # as printed
    assert excess <= theorem(math.sqrt(2 * alpha / mu))  # as in Theorem 3.2
    # The constants 26 and 13.5 that are printed after it are those of the right root.
    assert 13.5 > 2 * (1 + math.sqrt(2)) ** 2 + 1 > 2 * 4 + 1
    assert 4 * (1 + math.sqrt(2)) ** 2 + 1 < 26


def test_corollary_5_2_b_has_a_factor_twice():
    """It has not the units of a loss: in small units it falls below the cost of noise."""
    n, t = 1000, 0.5  # t = sqrt(d) (c + sqrt(c^2 + epsilon)) / (epsilon n)
    for unit in (1.0, 0.01):  # L^2 / mu
        excess = unit * t**2  # of a quadratic of curvature mu = beta with the printed noise
        assert excess <= unit * (5 / n + 13.5 * t**2)
        assert (excess > unit * (5 / n + 13.5 * unit * t**2)) is (unit == 0.01)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_theorem_5_2_has_lost_a_square(delta):
    """f = w^2 / 2 + x in one column, x from 0 to 4: all constants one, and the minimiser is 0.

    The sensitivity of the paper has the factor C of the tilt, and the cost of noise its square.
    """
    n, epsilon, L, mu, beta, tilt = 10_000, 1.0, 1.0, 1.0, 1.0, 1.0
    X = np.linspace(0.0, 4.0, n)
    C, kappa = math.exp(tilt * (4.0 + 0.5)), (tilt * L**2 + beta) / mu
    change = 2 * L / mu * min(1.0, C / n)  # Lemma 5.2
    rng = np.random.default_rng(0)
    if delta == 0.0:
        t, constant = 1 / (epsilon * n), 26
        noise = rng.laplace(scale=change / epsilon, size=100_000)
    else:
        c = math.sqrt(math.log(2 / (math.sqrt(16 * delta + 1) - 1)))
        t, constant = (c + math.sqrt(c**2 + epsilon)) / (epsilon * n), 13.5
        noise = change * t * n / math.sqrt(2) * rng.standard_normal(100_000)

    def tilted(w):
        losses = w[:, None] ** 2 / 2 + X[:: n // 10]
        return special.logsumexp(tilt * losses, axis=1) / tilt

    excess = np.mean(tilted(noise) - tilted(np.zeros(1)))
    printed = constant * kappa * L**2 * C / mu * t**2  # lines 748 and 752
    assert excess > 2 * printed
    assert excess > 2 * 4 * kappa * L**2 * C / mu * t**2  # lines 727 and 731
    assert excess <= printed * C


# Wang, Yang, Lei, Ying and Zhang (2021)


def test_line_18_of_algorithm_2_must_add_delta():
    """Logistic loss, all differences zero but those of one record; the minimiser 0 in one column.

    The privacy loss there is that of the Jacobians less that of the densities of b.
    """
    positive = negative = 50
    n, D, L, beta, lam, epsilon = 100, 2.0, 1.0, 0.25, 1e-3, 1.0
    curvature = negative * beta * D**2 / (positive * negative)
    slope = negative * 0.5 * D / (positive * negative)
    extra = beta * D**2 / (positive * negative * math.expm1(epsilon / (2 * n))) - lam
    gamma = 4 * n * L * D / (positive * negative * epsilon)

    def loss(added):
        return math.log(1 + curvature / (lam + added)) - slope / gamma

    assert extra > lam
    assert loss(lam) > 2 * epsilon  # as printed: lambda / 2 |w|^2 once more
    assert 0 < loss(extra) <= epsilon
