"""What an attack can gain, from the exact profile of a record: known profiles, and brute force."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dp_halfspace.privacy import Exponential, Gaussian, PrivacyRecord, Pure, exponential_mechanism

RATES = [0.0, 1e-4, 0.01, 0.1, 0.5, 0.9, 1.0]


def record(*events, epsilon=50.0, delta=0.0):
    return PrivacyRecord(epsilon=epsilon, delta=delta, events=events, noise="os")


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("fpr", RATES)
def test_gaussian_noise_has_the_power_of_neyman_and_pearson(mu, fpr):
    found = record(Gaussian(mu), epsilon=1.0, delta=0.9).attack_tpr(fpr)
    exact = norm.cdf(norm.ppf(fpr) + mu)
    assert exact <= found <= exact * (1.0 + 1e-4) + 1e-9


@pytest.mark.parametrize("fpr", RATES)
def test_pure_epsilon_has_two_lines(fpr):
    exact = min(1.0, math.exp(0.7) * fpr, 1.0 - math.exp(-0.7) * (1.0 - fpr))
    found = record(Pure(0.7), epsilon=0.7).attack_tpr(fpr)
    assert min(1.0, exact * (1.0 + 2.0**-42)) <= found <= exact * (1.0 + 1e-9)


def test_the_advantage_is_the_total_variation():
    found = record(Gaussian(0.5), epsilon=1.0, delta=0.5)
    assert found.attack_advantage() == pytest.approx(2.0 * norm.cdf(0.25) - 1.0, rel=1e-9)
    best = max(found.attack_tpr(fpr) - fpr for fpr in np.linspace(0.3, 0.5, 21))
    assert best == pytest.approx(found.attack_advantage(), rel=1e-3)
    assert record(Pure(math.inf), epsilon=math.inf).attack_advantage() == 1.0
    assert record(Pure(math.inf), epsilon=math.inf).attack_tpr(0.01) == 1.0
    assert record(epsilon=0.0).attack_tpr(0.3) == pytest.approx(0.3)


def test_no_test_on_an_exponential_mechanism_does_better():
    """All tests on three outcomes, of neighbours whose scores move by one."""
    claimed = record(Exponential(2.0), epsilon=2.0)
    for move in ((1.0, -1.0, 0.0), (1.0, 0.0, 0.0), (1.0, -1.0, -1.0)):
        weights = [np.exp(np.array(z)) for z in ((0.0, 0.0, 0.0), move)]
        p, q = (w / w.sum() for w in weights)
        for said in range(8):
            mask = np.array([said >> k & 1 for k in range(3)], dtype=bool)
            for first, second in ((p, q), (q, p)):
                assert second[mask].sum() <= claimed.attack_tpr(first[mask].sum()) + 1e-12
    assert exponential_mechanism([0.0, 500.0], epsilon=1.0) == 1


def test_rates_that_are_none_are_refused():
    for fpr in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"fpr must be in \[0, 1\]"):
            record(Pure(1.0)).attack_tpr(fpr)


def test_the_summary_says_what_an_attack_can_gain():
    text = record(Gaussian(0.5), epsilon=1.5, delta=0.01).summary()
    assert "Largest gain of an attack that knows everything except one record (rounded up):" in text
    assert "  - true minus false positive rate 0.197413" in text
    rates = "0.00479556 at 0.001, 0.033899 at 0.01, 0.21724 at 0.1"
    assert f"  - true positive rate {rates} (false positive rate)" in text


def test_planted_bug_half_the_noise_breaks_the_bound(monkeypatch):
    """The bound is not idle: of twice the mu the best test is above it."""
    claimed = record(Gaussian(0.5), epsilon=1.0, delta=0.9)
    assert norm.cdf(norm.ppf(0.01) + 1.0) > 1.5 * claimed.attack_tpr(0.01)
