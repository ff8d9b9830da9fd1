"""Noise from numpy's own samplers, and small problems, for tests of risk bounds."""

import math

import numpy as np
from scipy import optimize
from scipy.special import logsumexp, ndtr

from dp_halfspace.theory.robust_bounds import RobustProblem


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
    return RobustProblem(n, d, epsilon, delta, loss, data_norm=1.0, radius=None, gap=0.0)


def robust_risk(loss, Z, W, *, tilt=0.0, radius=0.0, dual=None, weights=None):
    """Tilted mean of the losses of many models on signed rows that an adversary moves."""
    margins = np.atleast_2d(W) @ Z.T
    if radius:
        margins = margins - radius * dual(W)[:, None]
    values = loss.value(margins)
    if tilt:
        return (logsumexp(tilt * values, axis=1) - math.log(len(Z))) / tilt
    return np.average(values, axis=1, weights=weights)


def robust_minimiser(loss, Z, ridge, *, tilt=0.0, adversary=None, weights=None):
    """Minimise a smooth regularised tilted risk, under a smoothed adversary if there is one."""
    weights = np.full(len(Z), 1 / len(Z)) if weights is None else weights

    def both(w):
        attack = 0.0 if adversary is None else adversary.radius * adversary.dual_norm(w)
        values = loss.value(Z @ w - attack)
        value, shares = weights @ values, weights
        if tilt:
            value = logsumexp(tilt * values, b=weights) / tilt
            shares = weights * np.exp(tilt * (values - value))
        slopes = shares * loss.derivative(Z @ w - attack)
        gradient = slopes @ Z + ridge * w
        if adversary is not None:
            gradient -= slopes.sum() * adversary.radius * adversary.gradient(w)
        return value + ridge / 2 * w @ w, gradient

    found = optimize.minimize(both, np.full(Z.shape[1], 1e-3), jac=True, tol=1e-12)
    return found.x, found.fun


def models_in_ball(rng, n_models, d, radius):
    """Models of norm at most the radius, for a release to be compared with."""
    V = radius * rng.standard_normal((n_models, d))
    return V / np.maximum(1.0, np.linalg.norm(V, axis=1, keepdims=True) / radius)


def errors(W, U):
    """Shares of signed rows on the wrong side of each model."""
    return (W @ U.T <= 0).mean(axis=1)


def hinges(W, U):
    """Mean hinge losses of each model on signed rows."""
    return np.maximum(0, 1 - W @ U.T).mean(axis=1)


def mean_step(n, d, mu, length, n_steps):
    """The step size of Theorem 1 of docs/proofs/margin_risk.md."""
    noise = 4 * n_steps / (n * mu) ** 2
    return length / math.sqrt(n_steps * (1 + min(n, d) * noise))
