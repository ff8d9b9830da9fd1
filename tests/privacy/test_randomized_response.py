"""Randomized response: probabilities against the definition, and the exact branch."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dp_halfspace.privacy import Pure, noise
from dp_halfspace.privacy.noise import RandomizedResponse, _share
from dp_halfspace.privacy.randomness import SeededBytes
from tests.privacy.oracles import FALSE_ALARM, Script


def definition(n_classes, epsilon):
    """Probabilities of the responses to label 0."""
    keep = np.exp(epsilon) / (np.exp(epsilon) + n_classes - 1)
    return np.r_[keep, np.full(n_classes - 1, (1 - keep) / (n_classes - 1))]


@pytest.mark.parametrize(("n_classes", "epsilon"), [(2, 0.1), (2, 3.0), (3, 1.0), (7, 2.0)])
def test_responses_follow_the_definition(n_classes, epsilon):
    """Planted: labels are kept as if epsilon were twice as large."""
    response = RandomizedResponse(n_classes, epsilon)
    got = response.perturb(np.zeros(20_000), SeededBytes(0, "test"))
    counts = np.bincount(got.astype(int), minlength=n_classes)
    expected = definition(n_classes, epsilon) * got.size
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM
    planted = definition(n_classes, 2.0 * epsilon) * got.size
    assert stats.chisquare(counts, planted).pvalue < FALSE_ALARM
    assert response.keep_probability == pytest.approx(definition(n_classes, epsilon)[0])
    assert response.event == Pure(epsilon)


@pytest.mark.parametrize(("n_classes", "epsilon"), [(2, 1e-9), (2, 0.3), (5, 4.0), (3, 900.0)])
def test_enclosure_holds_the_exact_probability(n_classes, epsilon):
    with mpmath.workdps(400):
        odds = (n_classes - 1) * mpmath.exp(-mpmath.mpf(epsilon))
        for bits in (64, 96, 512):
            exact = odds / (1 + odds) * mpmath.mpf(2) ** bits
            found = _share(Fraction(epsilon), n_classes - 1, bits)
            assert abs(found - exact) <= 1


@pytest.mark.parametrize("weight", [1, 2, 1000])
def test_enclosures_of_shares_are_as_narrow_as_promised(weight):
    """Also without the bits of a word, as for the digits of discrete noise."""
    with mpmath.workdps(60):
        odds = weight * mpmath.exp(-mpmath.mpf(7))
        for bits in (1, 8, 64):
            exact = odds / (1 + odds) * mpmath.mpf(2) ** bits
            assert abs(_share(Fraction(7), weight, bits) - exact) <= 1


def test_all_randomness_is_that_of_the_source():
    first, again = (
        RandomizedResponse(50, 0.1).perturb(np.zeros(100), SeededBytes(0, "test")) for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)


def test_a_word_at_the_threshold_is_decided_exactly():
    response = RandomizedResponse(2, 1.0)
    cell = _share(Fraction(1), 1, 64)
    for word, answer in ((cell - 2, 1.0), (cell + 2, 0.0)):
        assert response.perturb(np.zeros(1), Script([word])).tolist() == [answer]


def test_no_error_of_a_rounded_probability_reaches_the_responses(monkeypatch):
    """With many classes an error of the exponential would count many times."""
    response = RandomizedResponse(1000, 7.0)
    expected = response.perturb(np.zeros(50), SeededBytes(0, "test"))
    exp = noise.math.exp
    monkeypatch.setattr(noise.math, "exp", lambda x: exp(x) + 0.5)
    assert np.array_equal(response.perturb(np.zeros(50), SeededBytes(0, "test")), expected)


@pytest.mark.parametrize(("n_classes", "epsilon"), [(2, 0.5), (4, 1.5)])
def test_corrected_indicators_are_unbiased_with_the_stated_variance(n_classes, epsilon):
    response = RandomizedResponse(n_classes, epsilon)
    distribution = definition(n_classes, epsilon)
    estimate = (np.eye(n_classes) - 1 / n_classes) / response.contrast
    np.testing.assert_allclose(
        distribution @ estimate, np.eye(n_classes)[0] - 1 / n_classes, atol=1e-12
    )
    variances = distribution @ (estimate - distribution @ estimate) ** 2
    assert variances.mean() == pytest.approx(response.variance)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"epsilon": np.inf}, {"n_classes": 1}])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        RandomizedResponse(**{"n_classes": 2, "epsilon": 1.0, **bad})
