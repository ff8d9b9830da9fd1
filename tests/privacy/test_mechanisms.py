"""Calibration of the mechanisms, and the rule that releases are paid for first."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dp_halfspace import BudgetError
from dp_halfspace.privacy import (
    Gaussian,
    GaussianNoise,
    L2LaplaceNoise,
    NoNoise,
    PrivacyRecord,
    Pure,
    Repeated,
    additive_noise,
    authorise,
    gdp_delta,
    noise_source,
)
from dp_halfspace.privacy.mechanisms import recording

EPSILONS = [0.01, 0.1, 1.0, 8.0, 50.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("sensitivity", [1e-7, 1.0, 3.3e5])
def test_gaussian_scale_is_on_the_safe_side(epsilon, delta, sensitivity):
    noise = additive_noise(sensitivity, epsilon, delta)
    assert isinstance(noise, GaussianNoise)
    assert sensitivity / noise.sigma <= noise.mu
    assert gdp_delta(noise.mu, epsilon) <= delta
    assert gdp_delta(noise.mu * (1 + 1e-6), epsilon) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_scale_is_on_the_safe_side(epsilon):
    noise = additive_noise(0.7, epsilon, 0.0)
    assert isinstance(noise, L2LaplaceNoise)
    assert 0.7 / noise.scale <= epsilon
    assert noise.event == Pure(epsilon)


def test_infinite_epsilon_adds_nothing():
    noise = additive_noise(1.0, math.inf, 0.0)
    assert noise == NoNoise()
    value = np.array([0.1, -2.5])
    assert noise.perturb(value, noise_source(None)) is value


def record(*events):
    return PrivacyRecord(epsilon=5.0, delta=1e-5, events=events, noise="os")


def test_each_charged_release_happens_once():
    permit = authorise(record(Repeated(Gaussian(0.1), 3), Gaussian(0.2)), noise_source(None))
    for _ in range(3):
        permit.release(np.zeros(4), GaussianNoise(1.0, 0.1))
    permit.release(np.zeros(2), GaussianNoise(5.0, 0.2))
    for mu in (0.1, 0.2, 0.3):
        with pytest.raises(RuntimeError, match="not charged"):
            permit.release(np.zeros(4), GaussianNoise(1.0, mu))


def test_ledger_that_refuses_gets_no_permit():
    class Empty:
        def charge(self, entry):
            raise BudgetError("nothing is left")

    class Reader:
        kind = "os"

        def read(self, n):
            raise AssertionError("noise was drawn before it was paid for")

    with pytest.raises(BudgetError):
        authorise(record(Gaussian(0.1)), Reader(), Empty())


def test_ledger_is_charged_before_the_permit_exists():
    charged = []

    class Book:
        def charge(self, entry):
            charged.append(entry)

    entry = record(Gaussian(0.1))
    permit = authorise(entry, noise_source(None), Book())
    assert charged == [entry]
    assert permit.record is entry


def test_recorder_sees_value_and_release_and_ends_with_its_block():
    permit = authorise(record(Repeated(Gaussian(0.1), 2)), noise_source(None))
    noise = GaussianNoise(1.0, 0.1)
    with recording() as releases:
        released = permit.release(np.ones(3), noise)
    permit.release(np.ones(3), noise)
    (seen,) = releases
    assert seen.mechanism == noise
    np.testing.assert_array_equal(seen.value, np.ones(3))
    np.testing.assert_array_equal(seen.released, released)
