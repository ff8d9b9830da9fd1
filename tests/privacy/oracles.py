"""Profiles of the worst mechanisms in closed form, and what several tests of selections need."""

from __future__ import annotations

import math

import numpy as np

from dp_halfspace.privacy.events import Selection


def zero_loss(epsilon):
    """Profile of a constant output."""
    return -np.expm1(np.minimum(epsilon, 0.0))


def pure_delta(epsilon0, epsilon):
    """Profile of randomised response, the worst purely private mechanism."""
    inner = -np.expm1(np.minimum(epsilon - epsilon0, 0.0)) / (1.0 + math.exp(-epsilon0))
    return np.where(epsilon <= -epsilon0, zero_loss(epsilon), inner)


def exponential_delta(epsilon0, epsilon):
    """Profile of the worst mechanism whose log-ratio has this range (Dong, Durfee, Rogers 2020)."""
    inner = np.expm1(0.5 * np.minimum(epsilon - epsilon0, 0.0)) ** 2 / -math.expm1(-epsilon0)
    return np.where(epsilon <= -epsilon0, zero_loss(epsilon), inner)


def of_gaussian(mean_runs, log_ratio, mu, shares=(1.0,)):
    """Selection among Gaussian runs."""
    return Selection(mean_runs, log_ratio, ((1.0, 0.0, mu),), shares)


def slope(law, q):
    """Derivative of the probability generating function of a law of the number of runs."""
    return np.polynomial.polynomial.polyval(q, law.probabilities * np.arange(1, law.k_max + 1))


def divergence(p, q, epsilon):
    """Hockey-stick divergence of discrete laws along the last axis."""
    return np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=-1)
