"""ObjectivePerturbationClassifier: its optimum, its public numbers, its noise, its options."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dp_halfspace import CertificateError, ObjectivePerturbationClassifier, privacy
from dp_halfspace.algorithms.perturbation import preconditioned_objective
from dp_halfspace.algorithms.perturbation.linear_term import GaussianLinearTerm
from dp_halfspace.algorithms.perturbation.objective import plan_objective
from dp_halfspace.optim import get_loss
from dp_halfspace.privacy.mechanisms import recording
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.test_audit import black_box

LOSSES = ["logistic", "shifted_logistic", "huber_hinge", "smoothed_hinge"]
BIAS = 0.25  # the constant column beside rows of norm at most one


def exact(X, y, **params):
    return ObjectivePerturbationClassifier(epsilon=np.inf, classes=np.unique(y), **params).fit(X, y)


def augmented(X, constant):
    return np.column_stack([X, np.full(len(X), constant)])


def together(model, constant):
    return np.column_stack([model.coef_, model.intercept_ / constant])


@pytest.fixture(scope="module")
def table():
    """Overlapping classes, some rows shorter than the bound, columns of different size."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4)) / 4 * [1.0, 0.5, 0.3, 1.0]
    y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.1 + 0.3 * rng.standard_normal(300) > 0).astype(int)
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y


# -- an independent solver -------------------------------------------------------------


def minimiser(Z, y, loss, alpha, shift=2.0):
    """Minimum of the stated objective by scipy."""
    signs = np.where(y == 1, 1.0, -1.0)
    record = get_loss(loss, **({"shift": shift} if loss == "shifted_logistic" else {}))

    def objective(w):
        margins = signs * (Z @ w)
        gradient = Z.T @ (signs * record.derivative(margins)) / len(y) + alpha * w
        return record.value(margins).mean() + alpha / 2 * w @ w, gradient

    options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10000, "maxcor": 50}
    start = np.zeros(Z.shape[1])
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x


def exact_metric(Z):
    """The metric of an unlimited budget: inverse root of the moment, floored and capped."""
    n, size = Z.shape
    values, vectors = np.linalg.eigh(Z.T @ Z)
    values = np.maximum(values - (values.sum() - n) / size, 0)
    values += max((n - values.sum()) / size, 0)
    floor = 1e-3 * n / size
    while (values / (values + floor)).sum() > 20:
        floor *= 1.1
    return (vectors / np.sqrt((values + floor) / n)) @ vectors.T


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_infinite_epsilon_is_the_minimiser_on_clipped_rows(table, loss, alpha):
    X, y = table
    model = exact(X, y, loss=loss, alpha=alpha, shift=2.0, rows="clipped", intercept_scaling=0.7)
    expected = minimiser(augmented(X, 0.7), y, loss, alpha)
    np.testing.assert_allclose(together(model, 0.7)[0], expected, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("metric", [False, True])
def test_infinite_epsilon_is_the_minimiser_on_unit_rows(table, loss, metric):
    X, y = table
    Z = unit(augmented(X, BIAS))
    A = exact_metric(Z) if metric else np.eye(5)
    expected = A @ minimiser(unit(Z @ A), y, loss, 0.01, 3.0)
    model = exact(X, y, loss=loss, alpha=0.01, shift=3.0, metric=metric)
    np.testing.assert_allclose(together(model, BIAS)[0], expected, atol=1e-6)


def test_infinite_epsilon_equals_scikit_learn(table):
    X, y = table
    for labels, k in ((y, 2), (np.arange(300) % 3, 3)):
        twin = LogisticRegression(C=1 / 3, fit_intercept=False, tol=1e-10, max_iter=10000)
        twin.fit(augmented(X, 2.0), labels)
        model = exact(X, labels, loss="logistic", alpha=0.01, rows="clipped", intercept_scaling=2.0)
        np.testing.assert_allclose(together(model, 2.0), twin.coef_, atol=1e-6)
        assert len(model.coef_) == (1 if k == 2 else k)


def test_infinite_epsilon_with_several_classes_and_a_shift():
    X, y = separated(300, 4, 3, seed=4)
    Z = unit(augmented(X, BIAS))
    A = exact_metric(Z)
    rows = unit(Z @ A)
    own = np.eye(3)[y]

    def objective(w):
        scores = rows @ w.reshape(3, 5).T - 2.5 * own
        gradient = (softmax(scores, axis=1) - own).T @ rows / 300
        value = -log_softmax(scores, axis=1)[np.arange(300), y].mean()
        return value + 0.005 * w @ w, gradient.ravel() + 0.01 * w

    options = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10000, "maxcor": 50}
    found = minimize(objective, np.zeros(15), jac=True, method="L-BFGS-B", options=options).x
    model = exact(X, y, alpha=0.01, shift=2.5)
    np.testing.assert_allclose(together(model, BIAS), found.reshape(3, 5) @ A, atol=1e-6)


def test_one_versus_rest_stacks_binary_problems():
    X, y = separated(200, 3, 3, seed=5)
    model = exact(X, y, loss="huber_hinge", alpha=0.1)
    for k in range(3):
        one = exact(X, (y == k).astype(int), loss="huber_hinge", alpha=0.1)
        np.testing.assert_allclose(together(model, BIAS)[k], together(one, BIAS)[0], atol=1e-6)


def test_optimizers_agree_and_are_trusted_only_through_the_certificate(table):
    X, y = table
    reference = together(exact(X, y, alpha=0.01), BIAS)
    for optimizer in ("newton", "newton_cg", "lbfgs", "accelerated_gradient", lambda f, x: x + 1):
        found = together(exact(X, y, alpha=0.01, optimizer=optimizer), BIAS)
        np.testing.assert_allclose(found, reference, atol=1e-6)


# -- public numbers --------------------------------------------------------------------


def test_class_weights_are_charged(table):
    X, y = table
    for rows in ("unit", "clipped"):
        plain, heavy = (
            recorded(X, y, rows=rows, alpha=10.0, class_weight=weight)
            for weight in (None, {1: 3.0})
        )
        for term in range(len(plain)):
            if isinstance(plain[term].mechanism, GaussianLinearTerm):
                ratio = heavy[term].mechanism.change / plain[term].mechanism.change
                assert ratio == pytest.approx(3.0)
        equal = recorded(X, y, rows=rows, alpha=10.0, class_weight={0: 3.0, 1: 1e-3})
        assert [r.mechanism for r in equal] == [r.mechanism for r in heavy]


def recorded(X, y, **params):
    with recording() as releases:
        ObjectivePerturbationClassifier(classes=np.unique(y), **params).fit(X, y)
    return releases


def test_automatic_alpha_is_a_function_of_public_numbers(table):
    X, y = table
    for rows in ("unit", "clipped"):

        def alpha(features=X, labels=y, rows=rows, **params):
            model = ObjectivePerturbationClassifier(rows=rows, classes=[0, 1], **params)
            return model.fit(features, labels).alpha_

        base = alpha()
        assert alpha(-3 * X[::-1], 1 - y) == base
        assert alpha(epsilon=0.1) > base > alpha(epsilon=10)
        assert alpha(delta=1e-12) > base


def test_alpha_has_its_documented_floor(table):
    X, y = table
    for rows, square in (("unit", 1.0), ("clipped", 2.0)):
        model = ObjectivePerturbationClassifier(alpha=1e-30, rows=rows, metric=False).fit(X, y)
        floor = 0.25 * square / (300 * math.expm1(0.5))
        assert model.alpha_ == pytest.approx(floor, rel=1e-9)
        assert exact(X, y, alpha=1e-30, rows=rows).alpha_ == pytest.approx(1e-8 * square)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_profile_is_available_from_the_record(table, delta):
    record = ObjectivePerturbationClassifier(delta=delta).fit(*table).privacy_
    if delta == 0:
        assert record.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-6)
        assert record.epsilon_at(1e-3) <= 1.0
        return
    epsilons = [record.epsilon_at(d) for d in (1e-9, 1e-6, 1e-4)]
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[1] == pytest.approx(1.0, rel=1e-6)
    assert privacy.delta(record.events, epsilons[2]) <= 1e-4


def test_a_tolerance_out_of_reach_is_refused_before_data_are_read(monkeypatch, table):
    module = __import__("dp_halfspace.estimators.objective_perturbation", fromlist=["m"])
    monkeypatch.setattr(module, "unit_rows", lambda *a: pytest.fail("the data were read"))
    monkeypatch.setattr("dp_halfspace.optim.solvers.certificate.UNIT", 1e-5)
    model = ObjectivePerturbationClassifier(alpha=1e-4, metric=False)
    with pytest.raises(CertificateError):
        model.fit(*table)
    assert set(vars(model)) == set(model.get_params())


# -- white box -------------------------------------------------------------------------


def assert_queries_hide_the_solver(**params):
    """For one linear term, both neighbours: the query is as near the exact minimiser as said."""
    rng = np.random.default_rng(5)
    for X, y, other_X, other_y in neighbouring_pairs(rng, 20):
        for features, labels in ((X, y), (other_X, other_y)):
            with recording() as releases:
                model = ObjectivePerturbationClassifier(
                    "logistic", rows="clipped", fit_intercept=False, classes=[0, 1], **params
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
        loss, alpha=3.0, rows="clipped", epsilon=4.0, delta=1e-4, classes=[-1, 1]
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
    honest = GaussianLinearTerm.perturb

    def cheat(self, value, source):
        return value + (honest(self, value, source) - value) / 2

    monkeypatch.setattr(GaussianLinearTerm, "perturb", cheat)
    assert black_box(800, audited) > privacy.gdp_mu(4.0, 1e-4) * 1.02


# -- options ---------------------------------------------------------------------------


def test_what_does_not_go_together_is_refused(table):
    X, y = table
    for params, named in (
        ({"rows": "clipped", "metric": True}, "metric"),
        ({"rows": "clipped", "projection": "hadamard"}, "projection"),
        ({"epsilon": 1e-3, "metric": True}, "metric"),
        ({"metric": "yes"}, "metric"),
        ({"n_components": 0}, "n_components"),
        ({"shift": -1.0}, "shift"),
        ({"loss": "hinge"}, "loss"),
    ):
        with pytest.raises(ValueError, match=named):
            ObjectivePerturbationClassifier(**params).fit(X, y)


@pytest.mark.parametrize("kind", ["rademacher", "hadamard"])
def test_projection_keeps_scores_linear(kind):
    X, y = separated(2000, 40, seed=8)
    model = ObjectivePerturbationClassifier(
        epsilon=20.0, projection=kind, n_components=30, classes=[0, 1]
    ).fit(X, y)
    assert model.coef_.shape == (1, 40)
    assert model.score(X, y) > 0.9
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    assert model.privacy_.to_dict()["public"]["projection"].lower().startswith(kind)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pure_noise_on_many_columns_is_projected(form):
    X, y = separated(3000, 600, seed=9)
    X = np.where(np.abs(X) > 0.02, X, 0.0)
    with recording() as releases:
        model = ObjectivePerturbationClassifier(epsilon=8.0, delta=0.0).fit(form(X), y)
    assert releases[-1].value.shape == (1, 151)
    # The rule for wide data holds: without its large constant column an imbalanced table
    # would end below its majority class.
    assert dict(model.privacy_.public)["relative_constant_column"] == 2.5
    assert model.score(form(X), y) > 0.9
    with recording() as releases:
        ObjectivePerturbationClassifier(epsilon=8.0, delta=0.0, projection=None).fit(form(X), y)
    assert releases[-1].value.shape == (1, 601)


def test_probabilities_are_those_of_the_logistic_model(table):
    X, y = table
    binary = exact(X, y, loss="logistic", alpha=0.01, rows="clipped")
    scores = binary.decision_function(X)
    np.testing.assert_allclose(binary.predict_proba(X)[:, 1], expit(scores))
    many = exact(X, np.arange(len(y)) % 4, loss="logistic", alpha=0.01, rows="clipped")
    np.testing.assert_allclose(many.predict_proba(X), softmax(many.decision_function(X), axis=1))
    for params in ({}, {"loss": "logistic"}, {"rows": "clipped"}):
        assert not hasattr(ObjectivePerturbationClassifier(**params), "predict_proba")


def test_scale_of_the_data_is_a_choice_of_units(table):
    X, y = table
    scores = []
    for scale in (1.0, 1e3, 1e-3):
        with pytest.warns(UserWarning, match="random_state"):
            model = ObjectivePerturbationClassifier(data_norm=scale, random_state=5).fit(
                scale * X, y
            )
        scores.append(model.decision_function(scale * X))
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("rows", ["unit", "clipped"])
def test_wide_sparse_data_are_not_made_dense(rows):
    n, d = 300, 50000
    X = sparse.random_array((n, d), density=2e-3, rng=np.random.default_rng(0), format="csr")
    X.toarray = X.todense = lambda *a, **k: pytest.fail("the data were made dense")
    model = ObjectivePerturbationClassifier(rows=rows).fit(X, np.arange(n) % 2)
    assert model.coef_.shape == (1, d)


@pytest.mark.parametrize(("delta", "least"), [("auto", 0.72), (0.0, 0.7)])
def test_accuracy_on_digits_within_one_budget(delta, least):
    X, y = load_digits(return_X_y=True)
    model = ObjectivePerturbationClassifier(
        epsilon=8.0, delta=delta, data_norm=4.0, classes=range(10)
    ).fit(X[:1257] / 16, y[:1257])
    assert model.score(X[1257:] / 16, y[1257:]) > least
    assert model.privacy_.epsilon == 8.0
