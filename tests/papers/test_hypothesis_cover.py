"""Errors of many linear classifiers: against a loop, and what one label can change."""

import numpy as np
import pytest

from dp_halfspace.papers import labels as module
from dp_halfspace.papers.labels import linear_losses, plan_labels
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.rows.rows import Rows, normalised_rows
from tests.permits import door_of
from tests.releases import record_releases


def problem(n_classes, n=50, d=3, m=20):
    rng = np.random.default_rng(0)
    points, codes = rng.standard_normal((n, d)), rng.integers(n_classes, size=n)
    candidates = rng.standard_normal((m, d * (n_classes if n_classes > 2 else 1)))
    return points, codes, rng.uniform(0.1, 1, n_classes), candidates


@pytest.mark.parametrize("n_rows", [1024, 8])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_losses_are_weighted_errors(monkeypatch, n_classes, n_rows):
    monkeypatch.setattr(module, "AT_ONCE", n_rows)
    points, codes, weights, candidates = problem(n_classes)
    shift, expected = np.log(weights if n_classes > 2 else weights[1:] / weights[:1]), []
    for candidate in candidates:
        scores = points @ candidate.reshape(-1, 3).T + shift
        predicted = scores[:, 0] > 0 if n_classes == 2 else scores.argmax(axis=1)
        expected.append(weights[codes][predicted != codes].sum())
    np.testing.assert_allclose(linear_losses(points, codes, weights)(candidates), expected)


def test_losses_with_a_margin_count_unit_scores_below_half_of_it():
    points, codes, weights, candidates = problem(2)
    expected = []
    for candidate in candidates:
        unit = candidate / np.linalg.norm(candidate)
        shift = np.log(weights[1] / weights[0]) / np.linalg.norm(candidate)
        signed = np.where(codes == 1, 1, -1) * (points @ unit + shift)
        expected.append(weights[codes][signed < 0.8 / 2].sum())
    found = linear_losses(points, codes, weights, 0.8)(candidates)
    np.testing.assert_allclose(found, expected)
    assert (found > linear_losses(points, codes, weights)(candidates)).any()


def worst_change(n_classes, largest, margin=None):
    points, codes, weights, candidates = problem(n_classes)
    weights, worst = weights / weights.max() * largest, 0.0
    for i in range(len(codes)):
        other = codes.copy()
        other[i] = (other[i] + 1) % n_classes
        changes = [
            linear_losses(points, labels, weights, margin)(candidates) for labels in (codes, other)
        ]
        worst = max(worst, float(np.abs(changes[0] - changes[1]).max()))
    return worst


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_label_changes_a_loss_by_one_at_most(n_classes):
    """Planted: class weights that were not divided by the largest."""
    assert worst_change(n_classes, 1.0) <= 1 + 1e-9
    assert worst_change(n_classes, 3.0) > 1.5


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0])
def test_a_label_changes_a_loss_with_a_margin_by_one_and_attains_it(margin):
    assert worst_change(2, 1.0, margin) == pytest.approx(1.0)
    assert worst_change(2, 3.0, margin) > 1.5  # planted: weights above one


def test_class_weights_of_any_size_leave_a_label_its_sensitivity():
    """The heavier class counts one for each error."""
    rng = np.random.default_rng(0)
    rows = normalised_rows(rng.standard_normal((30, 3)), 1.0, 0.5)
    budget, seen = Budget.of(1.0, 0.0), []
    plan = module.plan_labels("net", rows, 2, budget, ridge=None, n_candidates=50, seed=0)

    class Reader:
        def choose(self, utilities, mechanism, *, is_cost):
            seen.append(utilities)
            return 0

    labels = rng.integers(2, size=30)
    for changed in (labels, np.append(1 - labels[:1], labels[1:])):
        plan.run(Door(changed, Reader()), rows, np.array([1.0, 7.0]))
    change = np.abs(seen[0] - seen[len(seen) // 2]).max()
    assert 0.5 < change <= plan.sensitivity


def test_a_search_counts_errors_with_the_margin_that_is_asked_for():
    points, codes, weights, _ = problem(2)
    values = []
    for margin in (None, 0.8):
        how = {"ridge": None, "n_candidates": 9, "seed": 0, "n_stages": 1, "margin": margin}
        plan = plan_labels("net", Rows(points), 2, Budget.of(1.0, 0.0), **how)
        with record_releases() as releases:
            plan.run(door_of(codes, *plan.events), Rows(points), weights)
        values.append(releases[0].value)
    assert (values[1] <= values[0]).all()
    assert (values[1] < values[0]).any()
