"""The first step balances two classes, and its release sets how long the path is."""

from dataclasses import replace

import numpy as np
import pytest

from dp_halfspace import PrivateKernelClassifier
from dp_halfspace.algorithms.engine import noisy_gd
from dp_halfspace.algorithms.engine.defaults import (
    SHORTEST_PATH,
    Steps,
    column_lag,
    engine_defaults,
    resolved_directions,
)
from dp_halfspace.algorithms.engine.noisy_gd import (
    LARGEST_SCORE_OFFSET,
    FirstStep,
    clipped_slopes,
    descend,
    plan_descent,
    plan_gradient,
)
from dp_halfspace.algorithms.engine.training import Problem, first_step
from dp_halfspace.algorithms.kernel_training import plan_kernel_training
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import NoNoise
from dp_halfspace.projection import AdditiveMap
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.algorithms.support import permit_for

N, D = 4000, 12
STEPS = Steps(margin_offset=2.0, clip=0.7, n_steps=30, path_length=3.0, tail_fraction=0.5)


def plan_for(mu, n_columns=D + 1):
    sizes = {"n_samples": N, "n_columns": n_columns, "n_outputs": 1, "block_rows": N}
    return plan_descent(STEPS, **sizes, mu=mu)


def drawn(signal, share=0.3, seed=0):
    """Rows of norm one whose classes are so far apart."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(N) < share).astype(np.intp)
    X = rng.standard_normal((N, D))
    X[:, 0] += signal * codes
    return normalised_rows(X, np.sqrt(D), 0.2), codes


def released_sum(rows, codes, first):
    plan = plan_for(1.0)
    slopes = clipped_slopes(plan, codes, first.weights[codes])
    return rows.fused_adjoint(np.zeros(D + 1), slopes)


@pytest.mark.parametrize("share", [0.08, 0.3, 0.5])
def test_the_path_is_as_long_as_the_signal_allows(share):
    """Without noise: short where labels are drawn, as planned where classes are far apart."""
    step_factors = []
    for signal in (0.0, 0.4, 1.0, 4.0):
        rows, codes = drawn(signal, share)
        first = first_step(np.bincount(codes, minlength=2).astype(float), N, 0.0)
        step_factors.append(first.step_factor(released_sum(rows, codes, first), plan_for(np.inf)))
    assert step_factors[0] == SHORTEST_PATH
    assert step_factors == sorted(step_factors)
    assert step_factors[-1] == 1.0


def test_more_directions_that_are_flat_ask_for_less_signal(monkeypatch):
    """Of the same sum the path is longer by the root of how many times as many there are."""
    monkeypatch.setattr(noisy_gd, "SHORTEST_PATH", 0.0)
    rows, codes = drawn(1.0)
    first = first_step(np.bincount(codes, minlength=2).astype(float), N, 0.0)
    released, plan = 0.3 * released_sum(rows, codes, first), plan_for(np.inf)
    few, many = (
        replace(first, n_directions=size).step_factor(released, plan) for size in (20.0, 80.0)
    )
    assert 0.0 < few < many < 1.0
    assert many == pytest.approx(2.0 * few)


@pytest.mark.parametrize("d", [12, 40])
def test_a_row_of_many_curved_columns_is_divided_among_them(d):
    """Their number is public; columns without features of their own do not count."""
    sizes = {"n_samples": N, "n_features": d, "n_classes": 2, "is_sparse": False}
    problem, columns = Problem(**sizes, intercept=1.0), AdditiveMap(d, 2)
    found = []
    for drawn in (columns, replace(columns, n_plain=d - 1)):
        wide = replace(problem, n_features=drawn.n_components)
        plan = plan_kernel_training(wide, "noisy_gd", None, Budget.gaussian(0.2), feature_map=drawn)
        codes = np.arange(N) % 2
        data = TrainingData(np.zeros((N, d)), codes, np.array([0, 1]), None)
        adapted = plan.adapt_to_counts(data, permit_for(plan.counts.noise.event))
        found.append(adapted.algorithm.first.n_directions)
    assert found == [max(d, 20.0), 20.0]


@pytest.mark.parametrize(("records", "wanted"), [(-5.0, 20.0), (0.0, 20.0), (1e9, 100.0)])
def test_resolved_directions_have_limits(records, wanted):
    assert resolved_directions(records) == wanted
    assert 20.0 < resolved_directions(85.0 * 40.0) < 100.0


def test_the_mean_of_all_rows_is_no_signal():
    """All rows have a large common mean: balanced classes cancel it."""
    rng = np.random.default_rng(1)
    codes = (rng.random(N) < 0.2).astype(np.intp)
    rows = normalised_rows(rng.standard_normal((N, D)) + 2.0, np.sqrt(5.0 * D), 0.2)
    counts = np.bincount(codes, minlength=2).astype(float)
    first = first_step(counts, N, 0.0)
    assert first.step_factor(released_sum(rows, codes, first), plan_for(np.inf)) == SHORTEST_PATH
    unbalanced = replace(first, weights=np.ones(2))
    assert first.step_factor(released_sum(rows, codes, unbalanced), plan_for(np.inf)) == 1.0


@pytest.mark.parametrize("mu", [0.01, 3.0])
def test_noise_is_not_taken_for_signal_nor_for_its_absence(mu):
    """The path is shortened only where the noise leaves no doubt."""
    rng, plan = np.random.default_rng(2), plan_for(mu)
    first = FirstStep(np.array([0.25, 1.0]), N, 0.2, 1.0)
    noise = plan.mechanism.sigma * rng.standard_normal((200, D + 1))
    step_factors = [first.step_factor(row, plan) for row in noise]
    # At the small budget the noise hides any signal.
    assert np.mean(step_factors) > 0.99 if mu < 0.1 else np.mean(step_factors) < 0.6


def test_beside_a_rare_class_the_pace_is_that_of_its_own_rule():
    first = first_step(np.array([990.0, 10.0]), 1000, 1.0)
    assert first.step_factor(np.zeros(D + 1), plan_for(np.inf)) == 1.0


@pytest.mark.parametrize("counts", [[700.0, 300.0], [1e6, -5.0], [0.0, 0.0], [-3.0, 1e5]])
def test_whatever_is_counted_weights_are_at_most_one(counts):
    first = first_step(np.array(counts), 1000.0, 0.0)
    assert first.weights.max() == 1.0
    assert first.weights.min() > 0.0
    assert 0.0 < first.share <= 0.5


@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_the_shift_is_what_the_intercept_has_beyond_the_log_odds_where_it_comes_to_rest(share):
    """With a full shift the slopes of both classes cancel where the margin is the log odds."""
    plan = plan_for(np.inf)
    counts = N * np.array([share, 1.0 - share])
    first = replace(first_step(counts, N, 0.0), lag=1.0)
    shift = first.score_shift(0.0, plan)
    log_odds = np.log((1.0 - share) / share)
    codes = np.array([0, 1])
    at_rest = noisy_gd._shifted(clipped_slopes(plan, codes, np.ones(2)), shift)
    slopes = at_rest(np.full(2, log_odds), 0, 2)
    if share < 0.4:
        assert slopes[0] == -STEPS.clip
        assert counts @ slopes == pytest.approx(0.0, abs=1e-9)
    assert first.score_shift(1.0, plan) == replace(first, lag=0.0).score_shift(0.2, plan) == 0.0
    assert first.score_shift(0.6, plan) == pytest.approx(0.4 * shift)
    mirrored = replace(first_step(counts[::-1], N, 0.0), lag=1.0)
    assert mirrored.score_shift(0.0, plan) == -shift


def test_classes_of_the_same_size_are_not_shifted():
    first = replace(first_step(np.array([2000.0, 2000.0]), N, 0.0), lag=1.0)
    assert first.score_shift(0.2, plan_for(1.0)) == 0.0


def test_columns_lag_only_where_there_are_more_than_the_preconditioner_is_made_for():
    found = [column_lag(n, 20.0) for n in (0.0, 12.0, 20.0, 40.0, 60.0, 500.0)]
    assert found == [0.0, 0.0, 0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 0.5}], ids=str)
def test_class_weights_leave_the_score_as_it_is(class_weight, monkeypatch):
    found = []
    honest = FirstStep.score_shift

    def seen(self, *arguments):
        found.append(self.lag)
        return honest(self, *arguments)

    monkeypatch.setattr(FirstStep, "score_shift", seen)
    X = np.random.default_rng(0).standard_normal((3000, 45))
    y = (X[:, 0] > 0.5).astype(int)
    PrivateKernelClassifier(
        epsilon=3.0, classes=[0, 1], data_norm=None, class_weight=class_weight
    ).fit(X, y)
    assert found == [pytest.approx(0.625 if class_weight is None else 0.0)]


class Answers:
    """Release the same values, whatever the data are; tells how long the query was."""

    def __init__(self):
        self.rng = np.random.default_rng(5)
        self.seen = []

    def release(self, value, _mechanism):
        self.seen.append(np.array(value))
        return 50.0 * self.rng.standard_normal(np.shape(value))


def followed(signal, answers):
    """The coefficients of a whole fit that is answered alike, on data of its own."""
    rows, codes = drawn(signal)
    defaults = replace(engine_defaults(N, D + 1, 2, 3.0), behind=1.0)
    sizes = {"n_samples": N, "n_columns": D + 1, "n_classes": 2, "block_rows": N}
    plan = plan_gradient(defaults, **sizes, mu=3.0, largest_score_offset=LARGEST_SCORE_OFFSET)
    first = first_step(np.array([2800.0, 1200.0]), N, 0.0)
    plan = replace(plan, first=replace(first, lag=1.0))
    return plan.run(rows, codes, np.ones(2), answers)


def test_the_pace_is_a_function_of_what_was_released():
    found = [followed(signal, Answers()) for signal in (0.0, 4.0)]
    np.testing.assert_array_equal(*found)


def test_the_replay_sees_a_pace_of_the_exact_sum(monkeypatch):
    """Planted: the sum before the noise sets the step factor."""
    honest, found = FirstStep.step_factor, []
    for signal in (0.0, 4.0):
        answers = Answers()

        def of_the_sum(self, _, plan, seen=answers.seen):
            return honest(self, seen[-1], replace(plan, mechanism=NoNoise()))

        monkeypatch.setattr(FirstStep, "step_factor", of_the_sum)
        found.append(followed(signal, answers))
    assert not np.array_equal(*found)


def shifts(signal, answers, monkeypatch):
    """What is added to scores in a whole fit that is answered alike."""
    added, honest = [], noisy_gd._shifted

    def seen(slopes, shift):
        added.append(shift)
        return honest(slopes, shift)

    with monkeypatch.context() as patch:
        patch.setattr(noisy_gd, "_shifted", seen)
        followed(signal, answers)
    return added


def test_the_shift_is_a_function_of_what_was_released(monkeypatch):
    found = [shifts(signal, Answers(), monkeypatch) for signal in (0.0, 4.0)]
    assert found[0] == found[1]
    assert len(found[0]) == 1
    assert found[0][0] < 0.0


def test_the_replay_sees_a_shift_by_the_exact_sum(monkeypatch):
    """Planted: the sum before the noise sets what is added to scores."""
    honest, found = FirstStep.score_shift, []
    for signal in (0.0, 4.0):
        answers = Answers()

        def of_the_sum(self, _, plan, seen=answers.seen):
            exact = self.step_factor(seen[-1], replace(plan, mechanism=NoNoise()))
            return honest(self, exact, plan)

        monkeypatch.setattr(FirstStep, "score_shift", of_the_sum)
        found.append(shifts(signal, answers, monkeypatch))
    assert found[0] != found[1]


def test_all_steps_follow_the_pace_and_the_first_has_weights_of_its_own():
    rows, codes = drawn(1.0)
    first = first_step(np.bincount(codes, minlength=2).astype(float), N, 0.0)
    plan = plan_for(np.inf)
    slopes = clipped_slopes(plan, codes, np.ones(N))
    opening = clipped_slopes(plan, codes, first.weights[codes])
    answers = Answers()
    found = descend(rows, slopes, plan, answers, first=(first, opening))
    np.testing.assert_array_equal(answers.seen[0], released_sum(rows, codes, first))
    assert not np.array_equal(answers.seen[0], rows.fused_adjoint(np.zeros(D + 1), slopes))
    short = replace(first, degree=0.0)
    step_factor = first.step_factor(50.0 * np.random.default_rng(5).standard_normal(D + 1), plan)
    by_hand = replace(plan, step_size=step_factor * plan.step_size)
    again = descend(rows, slopes, by_hand, Answers(), first=(short, opening))
    np.testing.assert_allclose(found, again)


def test_the_first_step_costs_what_another_one_does():
    plan = plan_for(0.5)
    _, codes = drawn(1.0)
    first = first_step(np.array([2800.0, 1200.0]), N, 0.0)
    slopes = clipped_slopes(plan, codes, np.ones(N))
    # A permit refuses what was not charged.
    descend(Rows(np.zeros((N, D + 1))), slopes, plan, permit_for(plan.event), first=(first, slopes))
