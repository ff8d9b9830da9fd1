"""Accuracy to expect, from tables of the stated size and difficulty; nothing private is read."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dp_halfspace import (
    AdaptiveMarginClassifier,
    BudgetError,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.inspection import AccuracyPlan, accuracy_plan, plan_accuracy
from dp_halfspace.privacy import gdp_epsilon, gdp_mu

# Measured by benchmarks/tables_raw.py, beside LinearSVC without privacy.
MEASURED = {
    (2923, 7, 2, 0.770): (0.768, 0.769, 0.772),  # abalone
    (3428, 11, 2, 0.759): (0.736, 0.754, 0.758),  # winewhite
    (5734, 21, 2, 0.900): (0.867, 0.885, 0.890),  # compactiv
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", MEASURED, ids=["abalone", "winewhite", "compactiv"])
def test_plans_meet_what_was_measured(size):
    *sizes, reference = size
    plan = plan_accuracy(*sizes, reference=reference, n_repeats=3, random_state=0)
    np.testing.assert_allclose(plan.accuracy, MEASURED[size], atol=0.025)


@pytest.mark.parametrize(("k", "reference"), [(2, 0.7), (2, 0.99), (5, 0.6)])
@pytest.mark.parametrize("majority", [None, 0.55])
def test_simulated_tables_are_as_difficult_as_stated(k, reference, majority):
    prior = accuracy_plan._checked_prior(6, k, reference, majority, None)
    table = accuracy_plan._simulate(
        4000, 6, prior, reference, np.random.default_rng(0), is_area=False
    )
    X, y, X_test, y_test = table
    free = LogisticRegression(max_iter=500).fit(X, y)
    assert free.score(X_test, y_test) == pytest.approx(reference, abs=0.03)
    largest = np.bincount(y).max() / len(y)
    assert largest == pytest.approx(majority or 1 / k, abs=0.04)
    # Nothing about the columns tells where the classes are.
    assert X.std(axis=0).max() < 6 * X.std(axis=0).min()


@pytest.mark.slow
def test_the_area_of_a_rare_class_is_planned():
    prior, rng = accuracy_plan._checked_prior(4, 2, 0.85, 0.95, 0.8), np.random.default_rng(0)
    X, y, X_test, y_test = accuracy_plan._simulate(4000, 4, prior, 0.8, rng, is_area=True)
    free = LogisticRegression(class_weight="balanced").fit(X, y)
    area = roc_auc_score(y_test, free.decision_function(X_test))
    assert area == pytest.approx(0.8, abs=0.04)
    size = {"majority": 0.95, "reference_area": 0.8, "n_repeats": 4, "random_state": 0}
    plan = plan_accuracy(6000, 4, 2, [0.01, 30.0], **size)
    assert (plan.reference, plan.reference_area) == (None, 0.8)
    assert plan.area[0] < 0.7 < 0.77 < plan.area[1] < 0.84
    np.testing.assert_allclose(plan.accuracy, 0.95, atol=0.02)


def test_the_area_of_several_classes_is_the_mean_of_each_against_the_rest():
    codes, scores = np.array([0, 1, 2, 2]), np.eye(4)[[0, 1, 2, 0]]
    found = accuracy_plan._area(scores, codes, 4)
    assert found == pytest.approx(np.mean([5 / 6, 1.0, 3 / 4]))
    # Nothing can be ranked where there is one class.
    assert np.isnan(accuracy_plan._area(np.arange(3.0), np.zeros(3, dtype=np.intp), 2))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("delta", "epsilon"), [("auto", 0.1), (0, 0.5)])
def test_many_rows_are_stood_for_by_less_noise(monkeypatch, delta, epsilon):
    """A few thousand rows with less noise say what many rows say, and take no longer."""

    def planned(n_samples):
        size = {"n_repeats": 2, "random_state": 0}
        return plan_accuracy(n_samples, 5, 2, [epsilon], delta=delta, **size).accuracy[0]

    scaled = planned(9000)
    assert planned(10**12) == pytest.approx(0.85, abs=0.03)
    monkeypatch.setattr(accuracy_plan, "SIMULATED_ROWS", 9000)
    assert planned(9000) == pytest.approx(scaled, abs=0.04)


@pytest.mark.parametrize("estimator", [OutputPerturbationClassifier(data_norm=3.0), None], ids=str)
def test_any_classifier_can_be_planned_and_no_ledger_is_charged(estimator):
    ledger = PrivacyLedger(epsilon=1e-6, delta=0.0)
    if estimator is not None:
        estimator.set_params(ledger=ledger, random_state=3)
    plan = plan_accuracy(2000, 4, 2, [3.0], estimator=estimator, n_repeats=2, random_state=0)
    again = plan_accuracy(2000, 4, 2, [3.0], estimator=estimator, n_repeats=2, random_state=0)
    assert plan == again
    assert 0.6 < plan.accuracy[0] < 0.9
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "estimator",
    [
        AdaptiveMarginClassifier(delta=0.0),
        PureHalfspaceClassifier(n_directions=500),
        PureNetworkClassifier(data_norm=4.0, n_candidates=100),
    ],
)
def test_a_classifier_of_pure_dp_is_planned_as_one(estimator):
    sizes = {"n_samples": 400, "n_features": 3, "n_classes": 2, "epsilons": [20.0], "n_repeats": 2}
    plan = plan_accuracy(**sizes, estimator=estimator, random_state=0)
    assert plan.delta == 0.0
    assert plan == plan_accuracy(**sizes, estimator=estimator, delta=0.0, random_state=0)


def test_one_budget_is_planned_without_a_list():
    plan = plan_accuracy(100, 2, 2, 1, n_repeats=2, random_state=0)
    assert plan == plan_accuracy(100, 2, 2, [1.0], n_repeats=2, random_state=0)


def test_a_table_of_more_records_has_the_noise_of_records_times_mu(monkeypatch):
    seen = []

    def fit(model, X, y):
        seen.append(model.epsilon)
        raise BudgetError

    monkeypatch.setattr(AdaptiveMarginClassifier, "fit", fit)
    table = (np.zeros((10, 2)), np.arange(10) % 2) * 2
    for delta in (0.0, 1e-6):
        with pytest.raises(BudgetError):
            accuracy_plan._score(AdaptiveMarginClassifier(), table, 30, 0.5, delta, None)
    assert seen == pytest.approx([1.5, gdp_epsilon(3.0 * gdp_mu(0.5, 1e-6), 1e-6)])


def test_a_plan_prints():
    figures = (0.84, 0.8), (0.01, 0.02)
    areas = (0.9, 0.85), (0.03, 0.04)
    plan = AccuracyPlan((1.0, 0.3), *figures, 1e-6, 0.85, 600, 12, 2, *areas)
    assert repr(plan).splitlines() == [
        "600 rows, 12 columns, 2 classes, delta 1e-06",
        "epsilon     accuracy   spread   area  spread",
        "1              0.840    0.010  0.900   0.030",
        "0.3            0.800    0.020  0.850   0.040",
        "no privacy     0.850  assumed",
    ]
    by_area = replace(plan, reference=None, reference_area=0.91)
    assert repr(by_area).splitlines()[-1].split() == ["no", "privacy", "0.910", "assumed"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_features": None}, "n_features"),
        ({"n_features": 10**4}, "10000 columns and 2 classes needs more memory"),
        ({"n_classes": 1}, "2 classes or more"),
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": [0.0]}, "epsilons"),
        ({"epsilons": -1}, "epsilons"),
        ({"epsilons": [np.inf]}, "epsilons"),
        ({"reference": 0.5}, "reference"),
        ({"reference": 1.1}, "reference"),
        ({"reference": 0.8, "majority": 0.9}, "reference"),
        ({"majority": 0.4}, "majority"),
        ({"reference_area": 0.5}, "reference_area"),
        ({"reference_area": 1.0}, "reference_area"),
        ({"reference_area": 0.8, "n_classes": 3}, "reference_area"),
        ({"delta": 0.7}, "delta"),
        ({"delta": "0"}, "'delta' parameter of plan_accuracy"),
        ({"epsilons": "1"}, "epsilons must be"),
        ({"reference": "high"}, "reference must be"),
        ({"majority": 1j}, "majority must be"),
        ({"n_repeats": 1}, "n_repeats"),
        ({"estimator": PrivateSearchCV(OutputPerturbationClassifier(), {})}, "classifier inside"),
        ({"estimator": AdaptiveMarginClassifier}, "estimator must be a classifier"),
    ],
)
def test_refusals_name_the_parameter(changes, words):
    arguments = {"n_samples": 100, "n_features": 3, "n_classes": 2, **changes}
    with pytest.raises(ValueError, match=words):
        plan_accuracy(**arguments)
