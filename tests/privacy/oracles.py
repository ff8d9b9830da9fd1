"""Sources of given bytes, records, profiles in closed form, and what tests of selections need."""

import math
from contextlib import contextmanager

import mpmath
import numpy as np
from scipy.special import ndtr

from dp_halfspace.privacy import accounting, gdp_mu
from dp_halfspace.privacy.events import Gaussian, ObjectivePerturbation, Pure, RandomStopping
from dp_halfspace.privacy.randomness import SeededBytes
from dp_halfspace.privacy.record import PrivacyRecord

# Probabilities of a false alarm, and of a planted bug that goes unnoticed.
FALSE_ALARM, CAUGHT = 1e-6, 1e-12


def seeded(seed=0):
    return SeededBytes(seed, "test")


def grid_of(size, grid_bits=20):
    """The public grid of noise of this size."""
    return 2.0 ** (math.floor(math.log2(size)) - grid_bits)


class Constant:
    """A broken source that repeats one byte."""

    kind = "seeded"

    def __init__(self, byte):
        self.byte = byte

    def read(self, n):
        return bytes([self.byte]) * n

    def branches(self):
        return lambda _: self


class Script:
    """Given 64-bit words first, another source afterwards; remembers everything read."""

    kind = "seeded"

    def __init__(self, words=(), rest=None):
        self.script = b"".join(int(word).to_bytes(8, "little") for word in words)
        self.rest = rest or seeded()
        self.record = b""

    def read(self, n):
        head, self.script = self.script[:n], self.script[n:]
        out = head + self.rest.read(n - len(head))
        self.record += out
        return out

    def branches(self):
        return lambda _: self


def gaussian(epsilon, delta=1e-6, **changes):
    """Record of a Gaussian release, rounded to the safe side as estimators do."""
    return _record(epsilon, delta, Gaussian(gdp_mu(epsilon, delta)), changes)


def pure(epsilon, **changes):
    """Record of a pure DP release."""
    return _record(epsilon, 0.0, Pure(epsilon), changes)


def _record(epsilon, delta, event, changes):
    fields = {"epsilon": epsilon, "delta": delta, "events": [event], "noise": "os"}
    return PrivacyRecord(**{**fields, **changes})


def glm(mu, log_ratio=0.0):
    """Objective perturbation of a generalised linear model."""
    return ObjectivePerturbation(log_ratio, ((1, 0.0), (2, mu / 2), (1, mu)))


@contextmanager
def fresh_losses():
    """Nothing that was composed before, and nothing of it afterwards."""
    losses = accounting._repeated_pld, accounting._group_pld, accounting.total_pld
    caches = *losses, accounting._smallest_delta, accounting._smallest_epsilon
    for cache in caches:
        cache.cache_clear()
    try:
        yield
    finally:
        for cache in caches:
            cache.cache_clear()


def exact_gdp(mu, epsilon):
    """Profile of a Gaussian by its definition, in the digits of the caller."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    lower = mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)
    return mpmath.ncdf(-epsilon / mu + mu / 2) - lower


def zero_loss(epsilon):
    """Profile of a constant output."""
    return -np.expm1(np.minimum(epsilon, 0.0))


def pure_delta(epsilon0, epsilon):
    """Profile of randomised response, the worst pure DP mechanism."""
    inner = -np.expm1(np.minimum(epsilon - epsilon0, 0.0)) / (1.0 + math.exp(-epsilon0))
    return np.where(epsilon <= -epsilon0, zero_loss(epsilon), inner)


def exponential_delta(epsilon0, epsilon):
    """Profile of the worst mechanism whose log-ratio has this range (Dong, Durfee, Rogers 2020)."""
    inner = np.expm1(0.5 * np.minimum(epsilon - epsilon0, 0.0)) ** 2 / -math.expm1(-epsilon0)
    return np.where(epsilon <= -epsilon0, zero_loss(epsilon), inner)


def of_gaussian(mean_runs, log_ratio, mu, shares=(1.0,)):
    """Random stopping among Gaussian runs."""
    return RandomStopping(mean_runs, log_ratio, mu, shares)


def slope(distribution, q):
    """Derivative of the probability generating function of a distribution of the number of runs."""
    return np.polynomial.polynomial.polyval(
        q, distribution.probabilities * np.arange(1, distribution.k_max + 1)
    )


def divergence(p, q, epsilon):
    """Hockey-stick divergence of discrete distributions along the last axis."""
    return np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=-1)


def sampled_delta(n_records, mu, count, epsilon):
    """Delta of many releases about secret records, on a lattice that is too fine to round.

    The pair of ``docs/proofs/accounting.md``, section 11: exact masses of cells, in their middles,
    and a power of their Fourier transform. Errors of 1e-14 are added to every delta.
    """
    rate = 1.0 / n_records
    top = math.log1p(rate * math.expm1(mu * (0.5 * mu + 9.0)))
    step = min(rate / 64.0, top / 1000.0)
    size = 2 ** math.ceil(math.log2(60.0 / step))  # losses up to 30, which are out of reach
    places = np.arange(1, math.ceil(top / step) + 1)
    edges = np.append(0.5, places + 0.5) * step
    outcomes = np.log1p(np.expm1(edges) / rate) / mu + 0.5 * mu
    mass = -np.diff((1.0 - rate) * ndtr(-outcomes) + rate * ndtr(mu - outcomes))
    whole = np.zeros(size)
    whole[places], whole[-places] = mass, mass * np.exp(-step * places)
    whole[0] = 1.0 - whole.sum()
    total = np.fft.irfft(np.fft.rfft(whole) ** count, size)
    losses = step * np.arange(size // 2)
    above = losses > epsilon
    return float(total[: size // 2][above] @ -np.expm1(epsilon - losses[above]))
