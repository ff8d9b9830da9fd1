"""ObjectivePerturbationClassifier: its public numbers, its noise, its projections."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from dp_halfspace import ObjectivePerturbationClassifier, privacy
from dp_halfspace.algorithms.perturbation import preconditioned_objective
from dp_halfspace.algorithms.perturbation.objective import GaussianLinearTerm, plan_objective
from dp_halfspace.privacy.mechanisms import recording
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.support import exact, plant_noise, public, releases_of
from tests.test_audit import black_box

MODEL = ObjectivePerturbationClassifier(data_norm=1.0)


# -- public numbers --------------------------------------------------------------------


def test_class_weights_are_charged(table):
    X, y = table
    for rows in ("unit", "clipped"):
        plain, heavy = (
            releases_of(MODEL, X, y, rows=rows, alpha=10.0, class_weight=weight)
            for weight in (None, {1: 3.0})
        )
        for term in range(len(plain)):
            if isinstance(plain[term].mechanism, GaussianLinearTerm):
                ratio = heavy[term].mechanism.change / plain[term].mechanism.change
                assert ratio == pytest.approx(3.0)
        equal = releases_of(MODEL, X, y, rows=rows, alpha=10.0, class_weight={0: 3.0, 1: 1e-3})
        assert [r.mechanism for r in equal] == [r.mechanism for r in heavy]


def test_alpha_has_its_documented_floor(table):
    X, y = table
    for rows, square in (("unit", 1.0), ("clipped", 2.0)):
        model = ObjectivePerturbationClassifier(
            alpha=1e-30, rows=rows, metric=False, data_norm=1.0
        ).fit(X, y)
        floor = 0.25 * square / (300 * math.expm1(0.5))
        assert model.alpha_ == pytest.approx(floor, rel=1e-9)
        exact_model = exact(ObjectivePerturbationClassifier, X, y, alpha=1e-30, rows=rows)
        assert exact_model.alpha_ == pytest.approx(1e-8 * square)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_profile_is_available_from_the_record(table, delta):
    record = ObjectivePerturbationClassifier(delta=delta, data_norm=1.0).fit(*table).privacy_
    if delta == 0:
        assert record.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-6)
        assert record.epsilon_at(1e-3) <= 1.0
        return
    epsilons = [record.epsilon_at(d) for d in (1e-9, 1e-6, 1e-4)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[1] == pytest.approx(1.0, rel=1e-6)
    assert privacy.delta(record.events, epsilons[2]) <= 1e-4


# -- white box -------------------------------------------------------------------------


def assert_queries_hide_the_solver(**params):
    """For one linear term, both neighbours: the query is as near the exact minimiser as said."""
    rng = np.random.default_rng(5)
    for X, y, other_X, other_y in neighbouring_pairs(rng, 20):
        for features, labels in ((X, y), (other_X, other_y)):
            with recording() as releases:
                model = ObjectivePerturbationClassifier(
                    "logistic",
                    rows="clipped",
                    fit_intercept=False,
                    classes=[0, 1],
                    **params,
                    data_norm=1.0,
                ).fit(features, labels)
            linear, output = releases
            w = np.ravel(output.value)
            signed = features * np.where(labels == 1, 1.0, -1.0)[:, None]
            ridge = model.alpha_ * len(labels)
            gradient = ridge * w + linear.released[0] - signed.T @ expit(-signed @ w)
            assert np.linalg.norm(gradient) <= output.mechanism.sensitivity * ridge / 2


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_queries_are_within_what_the_output_noise_hides(delta):
    assert_queries_hide_the_solver(delta=delta)


def test_query_test_sees_a_solver_that_stops_early(monkeypatch):
    """Planted: two steps of gradient descent."""
    module = __import__("dp_halfspace.optim.risks.risk", fromlist=["m"])

    def early(objective, gamma, *, radius, **rest):
        w = -objective.gradient(np.zeros(objective.size)) / objective.gradient_lipschitz
        return w - objective.gradient(w) / objective.gradient_lipschitz

    monkeypatch.setattr(module, "certified_minimum", early)
    with pytest.raises(AssertionError):
        assert_queries_hide_the_solver(delta=1e-3)


def audited(loss="huber_hinge"):
    return ObjectivePerturbationClassifier(
        loss, alpha=3.0, rows="clipped", epsilon=4.0, delta=1e-4, classes=[-1, 1], data_norm=1.0
    )


@pytest.fixture
def planned_once(monkeypatch):
    """The plan is public and the same in every fit of an audit."""
    monkeypatch.setattr(preconditioned_objective, "plan_objective", cache(plan_objective))


@pytest.mark.slow
@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("loss", ["logistic", "huber_hinge"])
def test_black_box_audit(loss):
    """The claim is read as a mu: the profile is above that of the Gaussian nowhere by much."""
    assert black_box(800, lambda: audited(loss)) <= privacy.gdp_mu(4.0, 1e-4) * 1.02


@pytest.mark.slow
@pytest.mark.usefixtures("planned_once")
def test_black_box_audit_sees_half_the_noise(monkeypatch):
    plant_noise(monkeypatch, GaussianLinearTerm, 0.5)
    assert black_box(800, audited) > privacy.gdp_mu(4.0, 1e-4) * 1.02


# -- options ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rademacher", "hadamard"])
def test_projection_keeps_scores_linear(kind):
    X, y = separated(2000, 40, seed=8)
    model = ObjectivePerturbationClassifier(
        epsilon=20.0, projection=kind, n_components=30, classes=[0, 1], data_norm=1.0
    ).fit(X, y)
    assert model.coef_.shape == (1, 40)
    assert model.score(X, y) > 0.9
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    assert public(model)["projection"].lower().startswith(kind)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pure_noise_on_many_columns_is_projected(form):
    X, y = separated(3000, 600, seed=9)
    X = np.where(np.abs(X) > 0.02, X, 0.0)
    with recording() as releases:
        model = ObjectivePerturbationClassifier(epsilon=8.0, delta=0.0, data_norm=1.0).fit(
            form(X), y
        )
    assert releases[-1].value.shape == (1, 151)
    # The rule for wide data holds: without its large constant column an imbalanced table
    # would end below its majority class.
    assert public(model)["relative_constant_column"] == 2.5
    assert model.score(form(X), y) > 0.9
    releases = releases_of(MODEL, form(X), y, epsilon=8.0, delta=0.0, projection=None)
    assert releases[-1].value.shape == (1, 601)
