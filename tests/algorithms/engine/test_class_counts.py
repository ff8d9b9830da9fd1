"""Counts of the classes: sensitivity by brute force, exact cost, and what follows them."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dp_halfspace.algorithms.engine import class_counts
from dp_halfspace.algorithms.engine.class_counts import (
    Rarity,
    balanced_weights,
    plan_class_counts,
    rarity_of,
)
from dp_halfspace.algorithms.engine.defaults import Steps, engine_defaults, rarity_settings
from dp_halfspace.algorithms.engine.noisy_gd import (
    LARGEST_SCORE_OFFSET,
    clipped_slopes,
    plan_descent,
    plan_gradient,
)
from dp_halfspace.algorithms.engine.training import Problem, gradient_training
from dp_halfspace.privacy.mechanisms import noise_deviation
from dp_halfspace.rows.rows import Rows
from tests.adversarial import neighbouring_pairs
from tests.algorithms.support import assert_costs, permit_for

STEPS = Steps(margin_offset=2.0, clip=0.7, n_steps=10, path_length=3.0, tail_fraction=0.5)


def worst_change(n_classes):
    """Largest move of what is released over replacements of one label."""
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(200):
        first = rng.integers(n_classes, size=6)
        second = first.copy()
        second[2] = rng.integers(n_classes)
        counts = [class_counts.class_counts(codes, n_classes) for codes in (first, second)]
        change = counts[0] - counts[1]
        largest = max(largest, float(np.linalg.norm(change[1:] if n_classes == 2 else change)))
    return largest


@pytest.mark.parametrize(("n_classes", "bound"), [(2, 1.0), (3, math.sqrt(2.0))])
def test_a_record_moves_the_counts_by_the_sensitivity(n_classes, bound):
    plan, _ = plan_class_counts(1000, n_classes, 0.5)
    assert worst_change(n_classes) == bound
    assert bound <= plan.noise.sensitivity <= bound * (1 + 1e-9)


def test_brute_force_sees_a_record_that_is_counted_twice(monkeypatch):
    honest = class_counts.class_counts
    monkeypatch.setattr(class_counts, "class_counts", lambda *a: 2 * honest(*a))
    assert worst_change(2) == 2.0


@pytest.mark.parametrize("n_samples", [100, 1000, 10**6])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_counts_and_the_rest_make_the_whole(n_samples, n_classes):
    plan, left = plan_class_counts(n_samples, n_classes, 0.3)
    rest = replace(plan.noise, sensitivity=1.0, mu=left)
    assert_costs([plan.noise.event, rest.event], 0.3)
    share = (plan.noise.mu / 0.3) ** 2
    assert 0.02 - 1e-12 <= share <= 0.03 + 1e-12


@pytest.mark.parametrize("n_classes", [2, 4])
def test_released_counts_are_those_of_the_classes(n_classes):
    codes = np.repeat(np.arange(n_classes), 100 * np.arange(1, n_classes + 1))
    plan, left = plan_class_counts(len(codes), n_classes, math.inf)
    assert math.isinf(left)
    found, total = plan.run(codes, permit_for(plan.noise.event))
    assert total == len(codes)
    np.testing.assert_array_equal(found, np.bincount(codes))
    # A record of nobody moves no count: any real numbers come back, and all of them are used.
    noisy, _ = plan_class_counts(len(codes), n_classes, 1e-4)
    hostile, _ = noisy.run(codes, permit_for(noisy.noise.event))
    rarity = rarity_of(hostile, np.ones(n_classes), noise_deviation(noisy.noise), len(codes), 1e-4)
    assert 0.001 <= rarity.share <= 0.5
    assert 0.0 <= rarity.degree <= 1.0


def test_few_records_of_many_classes_are_not_counted():
    cases = (100, 2, 0.1, True), (1000, 5, 0.12, False), (1000, 5, 0.13, True)
    for n_samples, n_classes, mu, are_counted in cases:
        problem = Problem(n_samples, 3, n_classes, False, 1.0)
        counts = gradient_training(problem, mu, counts_classes=True).counts
        assert (counts is not None) == are_counted


def test_the_more_records_of_a_rare_class_the_closer_to_the_fit_of_classes_of_like_size():
    share, weights = 0.02, np.ones(2)
    degrees = []
    for n_samples in (1000, 10_000, 100_000):
        counts = np.array([1.0 - share, share]) * n_samples
        degrees.append([rarity_of(counts, weights, 0.0, n_samples, mu).degree for mu in (0.6, 9.0)])
    # Beyond a public mu it is the number of records that counts.
    assert all(low == high for low, high in degrees)
    few, some, many = np.array(degrees)[:, 0]
    assert few > 0.95 > some > 0.5 > 0.02 > many > 0.0


def test_few_columns_keep_the_fit_of_a_rare_class_however_many_records_there_are():
    counts, weights = np.array([98_000.0, 2000.0]), np.ones(2)
    found = [
        rarity_of(counts, weights, 0.0, 100_000, 0.6, n_columns=n_columns).degree
        for n_columns in (5, 40, 80, 1000)
    ]
    assert found[0] > 0.99 * (1.0 - 0.2**3) > found[1] > 0.9 > 0.51 > found[2] > 0.4
    assert found[3] == rarity_of(counts, weights, 0.0, 100_000, 0.6).degree
    # An encoded table keeps it longer, and then gives it up at once.
    for records, is_kept in ((150, True), (220, False)):
        counts = np.array([100_000.0 - records / 0.6, records / 0.6])
        plain, table = (
            rarity_of(counts, weights, 0.0, 100_000, 0.6, is_table=is_table).degree
            for is_table in (False, True)
        )
        assert (table > 0.8 > plain) if is_kept else (table < 0.2 < plain)
    # The plan of a fit says how many columns its rows have.
    problem = Problem(100_000, 4, 2, False, 1.0)
    plan = gradient_training(problem, math.inf, counts_classes=True)
    classes = (np.arange(100_000) < 2000).astype(np.intp)
    data = SimpleNamespace(class_indices=classes, people=None, weights=None)
    assert plan.adapt_to_counts(data, permit_for(*plan.events)).rarity.degree == found[0]


def hostile_settings(n_classes, clip):
    """Every kind of setting that released counts can lead to."""
    weights = np.ones(n_classes)
    for counts in (
        [1.0] + [0.0] * (n_classes - 1),
        [1e9] * n_classes,
        [-1e9] * n_classes,
        list(np.geomspace(1.0, 900.0, n_classes)),
        [990.0] + [10.0 / n_classes] * (n_classes - 1),
    ):
        for mu in (1e-3, 0.3, 1e3):
            for pull in (0.0, 0.3):
                rarity = rarity_of(np.array(counts), weights, 1.0 / mu, 1000, mu)
                yield rarity, rarity_settings(rarity, weights, replace(STEPS, clip=clip), pull)


def test_a_longer_path_is_for_classes_of_like_size():
    """Beside a rare class, and where few records are known of one, steps are as without it."""
    weights, steps = np.ones(2), replace(STEPS, rare_step_factor=0.5)
    step_factors = []
    for rare, n, mu in ((20, 4000, 0.2), (390, 4000, 0.2), (390, 4000, 0.02), (39_999, 400_000, 1)):
        rarity = rarity_of(np.array([n - rare, rare]), weights, 0.0, n, mu)
        assert rarity.degree > 0.0
        kept, slower = (
            rarity_settings(rarity, weights, each).step_factor for each in (STEPS, steps)
        )
        step_factors.append(slower / kept)
    assert 0.5 <= step_factors[0] < 0.51
    assert step_factors[1] > 0.9
    assert 0.5 <= step_factors[2] < 0.51
    assert step_factors[3] > 0.99


def test_the_intercept_is_moved_less_the_more_records_a_rare_class_has():
    ratios = []
    for n, mu in ((4000, 0.001), (4000, 0.4), (4000, 0.6)):
        rarity = rarity_of(np.array([n - 150, 150]), np.ones(2), 0.0, n, mu)
        settings = rarity_settings(rarity, np.ones(2), STEPS)
        ratios.append(settings.intercept_offset / settings.score_offset)
    assert ratios[0] > 1.9
    assert ratios == sorted(ratios, reverse=True)
    assert 0.7 < ratios[-1] < 1.2


def test_the_intercept_is_moved_less_the_less_rare_a_class_is():
    """The scores may separate such a class, although there are few records of it."""
    ratios = []
    for degree in (1.0, 0.5, 0.01):
        rarity = replace(Rarity.unknown(), share=0.05, degree=degree, records=1.0, mu=0.2)
        settings = rarity_settings(rarity, np.ones(2), STEPS)
        ratios.append(settings.intercept_offset / settings.score_offset)
    np.testing.assert_allclose(ratios, (2.0, 1.35, 0.713), atol=1e-3)
    settings = rarity_settings(replace(rarity, is_of_many=True), np.ones(3), STEPS)
    assert settings.intercept_offset > 1.99 * settings.score_offset


@pytest.mark.parametrize("usual", [0.0, 0.1])
def test_a_rare_class_of_many_records_has_no_step_after_the_average(usual):
    """With little noise this step overfits its records; with few of them it removes noise."""
    steps, lengths = replace(STEPS, last_step=usual), []
    rarity = replace(Rarity.unknown(), share=0.01, degree=1.0, mu=0.2)
    for records in (1.0, 20.0, 50.0, 200.0):
        few = replace(rarity, records=records)
        lengths.append(rarity_settings(few, np.ones(2), steps).last_step)
    assert lengths[0] > 0.99 * 0.25
    assert lengths[2] == 0.125
    assert lengths[-1] < 0.01 * 0.25
    assert lengths == sorted(lengths, reverse=True)
    half = replace(rarity, records=1.0, degree=0.5)
    assert rarity_settings(half, np.ones(2), steps).last_step == pytest.approx((0.25 + usual) / 2)
    # With more classes the step is as long as planned, or shorter.
    several = replace(rarity, records=50.0, is_of_many=True)
    assert rarity_settings(several, np.ones(3), steps).last_step == usual / 2


def test_a_class_is_rare_up_to_a_share_that_is_raised_by_the_noise():
    """The share is raised by a standard deviation of its noise, and so is the limit."""
    degrees = [
        rarity_of(np.array([930.0, 70.0]), np.ones(2), deviation, 1000, 1e-3, **kind).degree
        for deviation, kind in ((0.0, {}), (20.0, {}), (20.0, {"has_features": True}))
    ]
    wanted = (1.0 - 0.7**3, 1.0 - 0.75**3, 1.0 - 0.6**3)
    np.testing.assert_allclose(degrees, wanted, atol=1e-6)
    # However large the noise is, classes of similar size are not rare.
    for counts, deviation in (([840.0, 160.0], 60.0), ([900.0, 100.0], 1e9)):
        assert rarity_of(np.array(counts), np.ones(2), deviation, 1000, 1e-3).degree == 0.0


@pytest.mark.parametrize(("n_classes", "clip"), [(2, 0.7), (2, 0.5), (3, 1.0)])
def test_whatever_is_counted_the_settings_are_within_their_bounds(n_classes, clip):
    for rarity, wanted in hostile_settings(n_classes, clip):
        for weights in (wanted.weights, wanted.last_weights):
            assert weights.max() == 1.0
            assert weights.min() > 0.0
        assert 0.0 < wanted.step_factor <= 1.0
        assert 0.0 < wanted.map_power <= 1.0
        assert 1.0 <= wanted.constant <= 4.0
        assert 0.0 <= wanted.score_offset <= LARGEST_SCORE_OFFSET
        assert 2.0 <= wanted.margin_offset <= 4.0
        assert (0.5 if n_classes == 2 else 0.3) <= wanted.weighted_part <= 1.0
        assert 0.0 <= wanted.last_step <= 0.25
        if rarity.degree == 0.0:
            assert wanted.last_step == STEPS.last_step
            assert (wanted.score_offset, wanted.constant, wanted.step_factor) == (0.0, 1.0, 1.0)
            assert wanted.margin_offset == STEPS.margin_offset


def ratio(outputs, weights, score_offset):
    """Largest change of the gradient sum over the sensitivity that is charged."""
    rng, worst = np.random.default_rng(0), 0.0
    n_classes = 2 if outputs == 1 else outputs
    for X, y, other_X, other_y in neighbouring_pairs(rng, 60, n_classes=n_classes):
        plan = plan_descent(
            STEPS,
            n_samples=len(X),
            n_columns=X.shape[1],
            n_outputs=outputs,
            block_rows=1000,
            mu=1.0,
            largest_score_offset=LARGEST_SCORE_OFFSET,
        )
        moved = replace(
            plan,
            score_offset=score_offset,
            offset_class=n_classes - 1,
            steps=replace(STEPS, margin_offset=4.0),
        )
        shape = (X.shape[1],) if outputs == 1 else (X.shape[1], outputs)
        for scale in (0.0, 1.0, 30.0):
            point = scale * rng.standard_normal(shape)
            sums = [
                Rows(rows).fused_adjoint(
                    point, clipped_slopes(moved, codes, np.asarray(weights)[codes])
                )
                for rows, codes in ((X, y), (other_X, other_y))
            ]
            change = float(np.linalg.norm(sums[0] - sums[1]))
            worst = max(worst, change / plan.mechanism.sensitivity)
    return worst


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("score_offset", [0.0, LARGEST_SCORE_OFFSET])
def test_weights_and_offsets_leave_the_sensitivity_of_a_step(outputs, score_offset):
    assert ratio(outputs, (1.0, 0.01, 0.3), score_offset) <= 1.0
    if not score_offset:
        assert ratio(outputs, (1.0, 1.0, 1.0), score_offset) > 0.99


def test_brute_force_sees_a_weight_above_one():
    """Planted: the rare class weighs more than one instead of the common one less."""
    assert ratio(1, (2.0, 2.0), 0.0) > 1.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_noise_follows_the_counts(n_classes):
    defaults = engine_defaults(1000, 6, n_classes, 0.3)
    sizes = {"n_samples": 1000, "n_columns": 6, "n_classes": n_classes, "block_rows": 1000}
    plan = plan_gradient(defaults, **sizes, mu=0.3, largest_score_offset=LARGEST_SCORE_OFFSET)
    for rarity, wanted in hostile_settings(n_classes, defaults.clip):
        followed = plan.for_rarity(rarity.common, wanted, 1.0)
        assert followed.events == plan.events
        assert followed.descent.mechanism == plan.descent.mechanism
        assert followed.preconditioner.mechanism == plan.preconditioner.mechanism
        assert followed.descent.steps.clip == plan.descent.steps.clip
        assert abs(followed.descent.score_offset) <= LARGEST_SCORE_OFFSET
        assert followed.descent.step_size <= plan.descent.step_size


@pytest.mark.parametrize("counts", [[900.0, 100.0], [1e9, -5.0], [0.0, 0.0], [700.0, 200.0, 100.0]])
def test_balanced_weights_are_inverse_sizes_of_at_most_one(counts):
    weights = balanced_weights(np.array(counts), 3.0, 1000)
    assert weights.max() == 1.0
    assert weights.min() > 0.0
    if counts == [900.0, 100.0]:
        np.testing.assert_allclose(weights, [103 / 897, 1.0])
    # Little is told apart where the noise is as large as the classes.
    assert balanced_weights(np.array(counts), 2000.0, 1000).min() > 0.9


def test_an_offset_moves_the_scores_of_one_class():
    plan = plan_descent(STEPS, n_samples=9, n_columns=2, n_outputs=1, block_rows=9, mu=1.0)
    codes = np.array([0, 1, 1, 0])
    margins = np.array([-1.0, 0.5, 3.0, 2.0])
    for offset_class, sign in ((0, -1.0), (1, 1.0)):
        moved = replace(plan, score_offset=1.5, offset_class=offset_class)
        found = clipped_slopes(moved, codes, np.ones(4))(margins.copy(), 0, 4)
        by_hand = clipped_slopes(plan, codes, np.ones(4))(margins + sign * 1.5, 0, 4)
        np.testing.assert_allclose(found, by_hand)
    several = replace(plan, n_outputs=3, score_offset=1.5, offset_class=2)
    scores = np.random.default_rng(0).normal(size=(4, 3))
    found = clipped_slopes(several, codes, np.ones(4))(scores.copy(), 0, 4)
    plain = replace(several, score_offset=0.0)
    by_hand = clipped_slopes(plain, codes, np.ones(4))(scores + np.array([0.0, 0.0, 1.5]), 0, 4)
    np.testing.assert_allclose(found, by_hand)


def test_features_ask_for_more_of_what_is_done_for_a_rare_class():
    """From a tenth of the records on without them, where two classes are then treated alike."""
    weights = np.ones(2)
    for share, alike in ((0.05, False), (0.12, True)):
        counts = 1000.0 * np.array([1.0 - share, share])
        plain, wide = (
            rarity_of(counts, weights, 0.0, 1000, 0.1, has_features=has).degree
            for has in (False, True)
        )
        assert wide > plain
        assert (plain == 0.0) == alike
    assert (
        rarity_of(np.array([850.0, 150.0]), weights, 0.0, 1000, 0.1, has_features=True).degree == 0
    )
