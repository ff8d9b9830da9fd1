"""Noise from numpy's own samplers, and small problems, for tests of risk bounds."""

import math

import numpy as np
from scipy import optimize
from scipy.special import ndtr

from dp_halfspace.inspection._robust_problem import checked_problem


def exact_multiplier(epsilon, delta):
    """Sigma of the exact Gaussian mechanism for sensitivity 1, by bisection on its profile."""

    def excess(log_mu):
        mu = math.exp(log_mu)
        return (
            ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu) - delta
        )

    return math.exp(-optimize.brentq(excess, -8, 5, xtol=1e-13))


def draw_noise(rng, n_draws, d, epsilon, delta, sensitivity):
    """Noise of output perturbation, from numpy's own samplers."""
    if delta:
        return rng.standard_normal((n_draws, d)) * exact_multiplier(epsilon, delta) * sensitivity
    direction = rng.standard_normal((n_draws, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.gamma(d, sensitivity / epsilon, size=(n_draws, 1))


def data_sets(n, d, rng):
    """Signed rows in the unit ball, among them the worst ones: opposite and repeated."""
    Z = rng.standard_normal((n, d))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1, keepdims=True))
    yield Z
    line = np.zeros((n, d))
    line[:, 0] = np.where(np.arange(n) % 3 == 0, -1.0, 1.0)
    yield line
    yield np.abs(line)


def problem_of(loss, n, d, epsilon, delta):
    return checked_problem(n, d, epsilon, delta, loss=loss, data_norm=1.0, radius=None, gap=0.0)
