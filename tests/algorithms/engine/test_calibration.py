"""Noisy counts of scores: sensitivity by brute force, and lines that are nearly the best."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax
from scipy.stats import binom, norm

from dp_halfspace.algorithms.engine import calibration
from dp_halfspace.algorithms.engine.calibration import (
    DEFAULT_SLOPE,
    affordable_calibration,
    prior_slope,
    uncounted_curve,
)
from dp_halfspace.algorithms.engine.class_counts import Rarity, rarity_of
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Gaussian
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import OS_RANDOMNESS
from dp_halfspace.privacy.record import PrivacyRecord

HOSTILE = [0.0, -0.0, 1e-310, 1.0, -1.0, 2**0.5, 45.3, -1e308, 1e308]


def calibrated(scores, classes, epsilon, weights=(1.0, 1.0), delta=1e-9, rarity=None):
    plan, left = affordable_calibration(len(classes), Budget.of(epsilon, delta))
    noise = "none" if math.isinf(epsilon) else "os"
    record = PrivacyRecord(epsilon=epsilon, delta=delta, events=plan.events, noise=noise)
    assert left.epsilon <= epsilon
    permit = authorise(record, OS_RANDOMNESS)
    return plan.run(scores, classes, np.array(weights), permit, rarity=rarity)


def worst_change(n_classes):
    """Largest move of the counts over replacements of one record by another."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(300):
        shape = (5,) if n_classes == 2 else (5, n_classes)
        scores, classes = rng.choice(HOSTILE, size=shape), rng.integers(n_classes, size=5)
        other, labels = scores.copy(), classes.copy()
        other[2], labels[2] = rng.choice(HOSTILE, size=shape[1:]), rng.integers(n_classes)
        change = calibration.score_counts(scores, classes) - calibration.score_counts(other, labels)
        largest = max(largest, float(np.linalg.norm(change)))
        assert np.abs(change).sum() <= 2
    return largest


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_record_moves_the_counts_by_the_root_of_two(n_classes):
    plan, _ = affordable_calibration(10_000, Budget.of(1.0, 1e-8))
    assert worst_change(n_classes) == math.sqrt(2.0) <= plan.noise.sensitivity < 1.4143
    assert affordable_calibration(10_000, Budget.of(1.0, 0.0))[0].noise.sensitivity == 2


def test_brute_force_sees_a_record_that_is_counted_twice(monkeypatch):
    honest = calibration.score_counts
    monkeypatch.setattr(calibration, "score_counts", lambda *a: 2 * honest(*a))
    with pytest.raises(AssertionError):
        worst_change(2)


def line_of(curve):
    """Slope and offset of a curve between typical scores."""
    low, middle, high = curve(np.array([-12.0, 0.0, 12.0]))
    return (high - low) / 24.0, middle


@pytest.mark.parametrize(("epsilon", "near"), [(math.inf, 0.1), (2.0, 0.3)])
@pytest.mark.parametrize(("slope", "moved"), [(0.05, 0.0), (0.2, 0.5)])
def test_the_line_of_two_classes_is_found(epsilon, near, slope, moved):
    """In the population that the weights stand for."""
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 15, size=100_000)
    classes = (rng.random(100_000) < expit(slope * scores + 0.2 - moved)).astype(np.intp)
    found, offset = line_of(calibrated(scores, classes, epsilon, (math.exp(-moved), 1.0)))
    assert abs(math.log(found / slope)) < near
    assert abs(offset - 0.2) < near / 2


def test_one_slope_serves_many_classes():
    rng = np.random.default_rng(4)
    scores = 20 * rng.standard_normal((50_000, 4))
    probabilities = np.exp(0.1 * scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    classes = (probabilities.cumsum(axis=1) < rng.random((50_000, 1))).sum(axis=1)
    found, offset = line_of(calibrated(scores, classes, math.inf, weights=np.ones(4)))
    assert abs(math.log(found / 0.1)) < 0.1
    assert offset == pytest.approx(0.0, abs=1e-12)


GRID = np.linspace(-6.0, 6.0, 7)


@lru_cache
def brute_force(counts, deviation, most=150):
    """Log likelihood of a probability: a sum over all numbers of records and higher labels."""
    sizes = np.arange(most + 1)
    found = []
    for probability in expit(GRID):
        total = -np.inf
        for size in sizes:
            higher = np.arange(size + 1)
            seen = norm.logpdf(counts[1], higher, deviation)
            seen += norm.logpdf(counts[0], size - higher, deviation)
            total = np.logaddexp(total, logsumexp(binom.logpmf(higher, size, probability) + seen))
        found.append(total)
    return np.array(found)


COUNTED = [(40.0, 3.0, 6.0), (0.0, 0.0, 10.0), (-9.0, 8.0, 12.0), (40.0, 30.0, 5.0)]


def misjudged(lower, higher, deviation):
    """Largest difference of the belief in a probability from that of the sum over all numbers."""
    exact = softmax(brute_force((lower, higher), deviation))
    table = calibration._cell_likelihoods(np.array([[lower], [higher]]), deviation)[0]
    return np.abs(softmax(np.interp(GRID, calibration._LOG_ODDS, table)) - exact).max()


@pytest.mark.parametrize("counted", COUNTED)
def test_the_likelihood_of_a_cell_is_that_of_a_sum_over_all_numbers(counted):
    assert misjudged(*counted) < 0.02


def test_the_comparison_sees_the_noise_of_one_count_for_that_of_two(monkeypatch):
    honest = calibration._cell_likelihoods
    monkeypatch.setattr(calibration, "_cell_likelihoods", lambda c, d: honest(c, d / 2**0.5))
    assert max(misjudged(*counted) for counted in COUNTED) > 0.02


def test_curves_rise_and_say_what_was_counted():
    rng = np.random.default_rng(5)
    scores = rng.normal(-20, 20, size=20_000)
    classes = (rng.random(20_000) < expit(0.15 * scores - 1.5)).astype(np.intp)
    counts = np.bincount(classes).astype(float)
    rarity = rarity_of(counts, np.ones(2), 5.0, 20_000, 0.3)
    curve = calibrated(scores, classes, 1.0, rarity=rarity)
    assert (np.diff(curve(np.linspace(-1e4, 1e4, 999))) > 0).all()
    assert abs(expit(curve(scores)).mean() - classes.mean()) < 0.01
    # Of a class with hardly any records the count is all that is known.
    few = replace(rarity, records=0.01, share=0.01, degree=1.0)
    flat = calibrated(scores, classes, 1.0, rarity=few)
    np.testing.assert_allclose(flat(scores), few.log_odds_of_second, atol=0.01)


def test_the_largest_class_is_calibrated_against_the_rest():
    rng = np.random.default_rng(6)
    scores = 15 * rng.standard_normal((40_000, 3))
    scores[:, 1] += 40.0
    odds = 0.1 * (np.delete(scores, 1, axis=1).max(axis=1) - scores[:, 1])
    is_rest = rng.random(40_000) < expit(odds)
    classes = np.where(is_rest, np.where(scores[:, 0] > scores[:, 2], 0, 2), 1)
    rarity = rarity_of(np.bincount(classes).astype(float), np.ones(3), 5.0, 40_000, 1.0)
    assert (rarity.common, rarity.degree > 0.1) == (1, True)
    curve = calibrated(scores, classes, math.inf, weights=np.ones(3), rarity=rarity)
    probabilities = softmax(curve(scores), axis=1)
    np.testing.assert_allclose(1.0 - probabilities[:, 1], expit(odds), atol=0.06)


def test_counts_against_the_rest_have_the_same_sensitivity():
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(200):
        scores, classes = rng.choice(HOSTILE, size=(5, 3)), rng.integers(3, size=5)
        other, labels = scores.copy(), classes.copy()
        other[2], labels[2] = rng.choice(HOSTILE, size=3), rng.integers(3)
        with np.errstate(over="ignore"):
            change = calibration.score_counts(scores, classes, None, 1)
            change = change - calibration.score_counts(other, labels, None, 1)
        largest = max(largest, float(np.linalg.norm(change)))
    assert largest == math.sqrt(2.0)


@pytest.mark.parametrize("delta", [1e-8, 0.0])
def test_the_parts_of_a_budget_make_the_whole(delta):
    plan, left = affordable_calibration(10_000, Budget.of(1.0, delta))
    rest = Gaussian(gdp_mu(left.epsilon, delta)) if delta else None
    if delta:
        assert accounting.delta((*plan.events, rest), 1.0) <= delta
        assert accounting.epsilon((*plan.events, rest), delta) > 0.999
    else:
        assert 0.999 < plan.events[0].epsilon + left.epsilon <= 1.0
    whole = Budget.of(1.0, delta)
    assert affordable_calibration(50, whole) == (None, whole)


def test_lines_lie_between_the_scores_of_a_curve_and_go_on_beyond():
    curve = calibration.CalibrationCurve(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0]))
    np.testing.assert_allclose(
        curve(np.array([-1.0, 0.5, 1.0, 2.0, 5.0])), [-2.0, 1.0, 2.0, 2.5, 4.0]
    )


def rare_scores(n=4000, share=0.05):
    """Scores far on the side of the common class, as noise leaves them; the rare class is apart."""
    rng = np.random.default_rng(5)
    classes = (rng.random(n) < share).astype(np.intp)
    return rng.normal(-90.0 + 40.0 * classes, 10.0), classes


@pytest.mark.parametrize("is_second", [True, False])
def test_cells_round_a_centre_tell_a_rare_class_from_the_other(is_second):
    """Where all scores are on one side of zero, cells round zero hardly do."""
    scores, classes = rare_scores()
    counts, centre = np.bincount(classes).astype(float), -60.0
    if not is_second:
        scores, classes, counts, centre = -scores, 1 - classes, counts[::-1], 60.0
    rarity = rarity_of(counts, np.ones(2), 10.0, len(scores), 0.3, has_features=True)
    assert rarity.degree > 0.5
    losses = []
    for given in (centre, 0.0):
        plan, _ = affordable_calibration(len(classes), Budget.of(2.0, 1e-8))
        record = PrivacyRecord(epsilon=2.0, delta=1e-8, events=plan.events, noise="os")
        permit = authorise(record, OS_RANDOMNESS)
        curve = plan.run(scores, classes, np.ones(2), permit, rarity=rarity, centre=given)
        assert np.all(np.diff(curve.log_odds) > 0.0)
        assert curve.counts.edges[len(curve.counts.edges) // 2] == given
        probability = expit(curve(scores))
        if given:
            assert abs(probability.mean() - np.mean(classes)) < 0.02
        losses.append(-np.mean(np.log(np.where(classes == 1, probability, 1.0 - probability))))
    assert losses[0] < 0.06 < 0.08 < losses[1]


def test_slopes_without_evidence_are_near_those_of_the_prior():
    """Nothing was counted; equal counts in all cells speak a little for flat slopes."""
    nothing = np.zeros((2, 2 * calibration._PER_SIDE))
    for slope in (0.05, DEFAULT_SLOPE, 0.3):
        curve = calibration._likeliest(nothing, 1e6, 0.0, Rarity.unknown(), usual_slope=slope)
        assert curve.slope == pytest.approx(0.8 * slope, rel=0.05)


def test_the_prior_slope_falls_with_the_spread_of_scores():
    usual = calibration._USUAL_SPREAD
    assert prior_slope(usual) == DEFAULT_SLOPE
    assert prior_slope(4.0 * usual) == pytest.approx(DEFAULT_SLOPE / 2.0)
    assert prior_slope(0.0) == prior_slope(0.5) < 6.0 * DEFAULT_SLOPE


def test_two_slopes_are_more_alike_with_a_rare_class():
    """Steep counts on the far side of the centre change the slope on the near side more."""
    counts = np.zeros((2, 2 * calibration._PER_SIDE))
    k = np.arange(4)
    counts[1, calibration._PER_SIDE + k] = 500.0 * expit(calibration._MIDDLES[k])
    counts[0, calibration._PER_SIDE + k] = 500.0 - counts[1, calibration._PER_SIDE + k]
    lower = []
    for degree in (0.0, 1.0):
        rarity = replace(Rarity.unknown(), degree=degree)
        curve = calibration._likeliest(counts, 5.0, 0.0, rarity)
        at = curve(np.array([-2.0, 0.0, 2.0]))
        assert at[2] - at[1] > 4.0 * DEFAULT_SLOPE
        lower.append(at[1] - at[0])
    assert lower[1] > 1.3 * lower[0] > 0.0


def test_what_scores_say_and_the_share_of_a_class_are_averaged_as_probabilities():
    """With half of the trust each probability lies half way to the share."""
    counts = np.zeros((2, 2 * calibration._PER_SIDE))
    counts[0, 3:9], counts[1, 7:9] = 160.0, 25.0
    found = []
    for records in (10.0, math.inf):
        rarity = rarity_of(np.array([950.0, 50.0]), np.ones(2), math.inf, 1000, 0.3)
        rarity = replace(rarity, degree=1.0, share=0.05, records=records, deviation=math.inf)
        found.append(expit(calibration._likeliest(counts, 5.0, 0.0, rarity).log_odds))
    np.testing.assert_allclose(found[0], 0.5 * found[1] + 0.5 * 0.05, rtol=1e-9)


def test_a_typical_score_stands_for_the_share_where_scores_are_not_counted():
    scores = np.array([-60.0, -40.0])
    for share, second, part in ((0.05, 0.05, 0.81), (0.05, 0.95, 0.81), (0.5, 0.5, 0.0)):
        common = 0 if second <= 0.5 else 1
        rarity = replace(Rarity.unknown(), common=common, share=share, total=3000.0, mu=0.04)
        found = uncounted_curve(rarity, -40.0)(scores)
        odds = rarity.log_odds_of_second
        assert found[1] == pytest.approx(part * odds - (1.0 - part) * 4.0)
        assert found[1] - found[0] == pytest.approx(2.0)


def test_many_records_or_classes_have_curves_without_a_typical_score():
    for changes in ({"mu": 0.05}, {"mu": 0.04, "is_of_many": True}):
        rarity = replace(Rarity.unknown(), share=0.05, total=3000.0, records=10.0, degree=1.0)
        rarity = replace(rarity, **changes)
        found = uncounted_curve(rarity, -40.0)(np.array([0.0, 10.0]))
        assert found == pytest.approx([rarity.log_odds_of_second / 2.0] * np.ones(2) + [0.0, 0.5])


# -- whether released counts show a ranking ------------------------------------------------


def evidence(labels_of, n_draws=300, n=3000, deviation=20.0, counted=True):
    """Evidence in many draws of labels and of noise; the scores of generated rows are alike."""
    rng, found = np.random.default_rng(0), []
    generated = 12.0 * rng.standard_normal(500) - 5.0
    for _ in range(n_draws):
        scores = 12.0 * rng.standard_normal(n) - 5.0
        labels = labels_of(scores, rng).astype(np.intp)
        exact = calibration.score_counts(scores, labels)
        noisy = exact + deviation * rng.standard_normal(exact.shape)
        seen = calibration.NoisyCounts(calibration._EDGES, noisy, deviation, np.ones(2))
        second = float(labels.sum() + 5.0 * rng.standard_normal())
        rarity = rarity_of(np.array([n - second, second]), np.ones(2), 5.0, n, 0.3)
        found.append(
            calibration.evidence_of_ranking(seen, generated, n, rarity if counted else None)
        )
    return np.array(found)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_labels_without_a_relation_to_scores_are_hardly_ever_significant(share, monkeypatch):
    def unrelated(scores, rng):
        return rng.random(len(scores)) < share

    for counted in (True, False):
        found = evidence(unrelated, counted=counted)
        assert abs(found.mean()) < 0.25
        assert np.mean(found > calibration.SIGNIFICANT) < 0.09
    # The rows of a fit are left out of account here, so that the deviation is one.
    monkeypatch.setattr(calibration, "_OVERFITTED", 0.0)
    assert 0.8 < evidence(unrelated).std() < 1.2


@pytest.mark.parametrize("offset", [-2.0, 0.0])
def test_labels_that_follow_scores_are_significant(offset):
    def follow(scores, rng):
        return rng.random(len(scores)) < expit(offset + 0.1 * scores)

    assert np.mean(evidence(follow, n_draws=50) > calibration.SIGNIFICANT) > 0.9
    turned = evidence(lambda scores, rng: ~follow(scores, rng), n_draws=50)
    assert np.mean(turned > calibration.SIGNIFICANT) == 0.0


def test_extreme_counts_have_a_number_as_evidence():
    edges = calibration._EDGES
    for counts in (np.zeros((2, 16)), np.full((2, 16), -9.0), np.full((2, 16), 1e9)):
        for generated in (np.zeros(500), np.full(500, 1e300), np.linspace(-1e3, 1e3, 500)):
            for centre in (0.0, -300.0):
                seen = calibration.NoisyCounts(edges + centre, counts, 0.0, np.ones(2))
                assert math.isfinite(calibration.evidence_of_ranking(seen, generated, 1, None))
