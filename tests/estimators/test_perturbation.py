"""What the classifiers that perturb a minimiser share: the optimum, public numbers, options."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dp_halfspace import (
    CertificateError,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
)
from dp_halfspace.estimators import _centred
from dp_halfspace.optim import get_loss
from dp_halfspace.papers import objective
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.rows import blocks
from dp_halfspace.rows.rows import clipped_rows
from tests.conftest import overlapping, separated
from tests.support import augmented, exact, public, together

Output, Objective = OutputPerturbationClassifier, ObjectivePerturbationClassifier
CLIPPED = {Output: {}, Objective: {"rows": "clipped"}}
LOSSES = {
    Output: ["logistic", "huber_hinge", "squared_hinge", "squared"],
    Objective: ["logistic", "huber_hinge"],
}
OPTIONS = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 10000, "maxcor": 50}

both = pytest.mark.parametrize("kind", [Output, Objective], ids=lambda kind: kind.__name__)


@pytest.mark.parametrize(
    "model",
    [
        Output(data_norm=1.0, classes=[0, 1]),
        Output(classes=[0, 1]),
        Objective(data_norm=1.0, classes=[0, 1]),
        PrivateAUCClassifier(mechanism="objective", data_norm=1.0, classes=[0, 1]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_allowances_are_for_the_blocks_that_are_summed(model, monkeypatch):
    monkeypatch.setattr(blocks, "_SUMMED_ENTRIES", 60)
    honest, seen = objective.minimisers, []

    def watched(risk, rows, *data, **how):
        seen.append((risk.block_rows, rows.block_rows))
        return honest(risk, rows, *data, **how)

    monkeypatch.setattr(objective, "minimisers", watched)
    X, y = separated(300, 3, seed=0)
    model.fit(X, y)
    ((planned, read),) = seen
    assert 1 < planned == read < 300


@both
@pytest.mark.parametrize("how", [{}, {"data_norm": 1.0, "rows": "clipped"}], ids=str)
def test_no_noise_is_common_to_the_vectors_of_the_classes(kind, how):
    """A minimiser of the softmax has none; scores would rank rows of a class by it."""
    X, y = separated(2000, 4, 3, seed=0)
    how = how if kind is Objective or not how else {"data_norm": 1.0, "preconditioner": False}
    for loss in ("logistic", "huber_hinge"):
        model = kind(loss=loss, classes=[0, 1, 2], **how).fit(X, y)
        common = np.append(model.coef_.mean(axis=0), model.intercept_.mean())
        assert (np.abs(common).max() < 1e-9) == (loss == "logistic")


def test_the_noise_of_a_moment_is_for_the_blocks_that_are_summed(monkeypatch):
    monkeypatch.setattr(blocks, "_SUMMED_ENTRIES", 60)
    honest, seen = _centred.moment_noise, set()

    def watched(n_samples, block_rows, *budget, **how):
        seen.add(block_rows)
        return honest(n_samples, block_rows, *budget, **how)

    monkeypatch.setattr(_centred, "moment_noise", watched)
    X, y = separated(300, 3, seed=0)
    Output(classes=[0, 1]).fit(X, y)
    assert seen == {20}


@both
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_plan_counts_the_rows_that_are_summed_at_a_time(kind, form):
    """In sparse rows more, and so more roundings."""
    X, y = form(np.eye(100)[np.zeros(9000, int)]), np.arange(9000) % 2
    options = {**CLIPPED[kind], "preconditioner": False, "data_norm": 1.0, "classes": [0, 1]}
    model = kind(**options)
    plan = model._plan(model._facts(model._validate(X, y, None)), Budget.of(1.0, 1e-6)).plan
    assert plan.risk.block_rows == clipped_rows(X, 1.0).block_rows


@pytest.fixture(scope="module")
def table():
    """Columns of different size."""
    return overlapping([1.0, 0.5, 0.3, 1.0])


def minimiser(Z, y, loss, alpha):
    """Minimum of the stated objective by scipy."""
    signs = np.where(y == 1, 1.0, -1.0)
    record = get_loss(loss)

    def objective(w):
        margins = signs * (Z @ w)
        gradient = Z.T @ (signs * record.derivative(margins)) / len(y) + alpha * w
        return record.value(margins).mean() + alpha / 2 * w @ w, gradient

    start = np.zeros(Z.shape[1])
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=OPTIONS).x


@pytest.mark.parametrize(
    ("kind", "loss"), [(kind, loss) for kind in LOSSES for loss in LOSSES[kind]]
)
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_infinite_epsilon_is_the_minimiser_on_clipped_rows(table, kind, loss, alpha):
    X, y = table
    params = {"loss": loss, "alpha": alpha, "intercept_scaling": 0.7, **CLIPPED[kind]}
    expected = minimiser(augmented(X, 0.7), y, loss, alpha)
    np.testing.assert_allclose(together(exact(kind, X, y, **params), 0.7)[0], expected, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES[Objective])
def test_infinite_epsilon_is_the_minimiser_on_rows_that_are_not_centred(table, loss):
    """Without a moment rows have norm one, with a constant of half the public norm."""
    X, y = table
    Z = augmented(X, 0.5)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    expected = minimiser(Z, y, loss, 0.01)
    model = exact(Objective, X, y, loss=loss, alpha=0.01, preconditioner=False)
    found = np.append(model.coef_[0], model.intercept_ / 0.5)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@both
@pytest.mark.parametrize("alpha", [1e-2, 0.3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_infinite_epsilon_equals_scikit_learn(table, kind, alpha, n_classes):
    X, y = table if n_classes == 2 else separated(400, 4, 3, seed=4)
    Z, settings = augmented(X, 2.0), {"fit_intercept": False, "tol": 1e-10, "max_iter": 10**6}
    twin = LogisticRegression(C=1 / (alpha * len(y)), **settings).fit(Z, y)
    model = exact(kind, X, y, loss="logistic", alpha=alpha, intercept_scaling=2.0, **CLIPPED[kind])
    np.testing.assert_allclose(together(model, 2.0), twin.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(Z), atol=1e-6)


def test_infinite_epsilon_hinge_is_near_the_support_vector_machine():
    """The certificate of a non-smooth loss is a duality gap; its distance is public."""
    X, y = overlapping()
    twin = LinearSVC(
        C=1 / (0.05 * len(y)), loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(augmented(X), y)
    model = exact(Output, X, y, loss="hinge", alpha=0.05)
    assert not hasattr(model, "predict_proba")
    assert np.linalg.norm(together(model) - twin.coef_) <= 0.01 * public(model)["sensitivity"]


@both
def test_one_versus_rest_stacks_binary_problems(kind):
    X, y = separated(200, 3, 3, seed=5)
    model = exact(kind, X, y, loss="huber_hinge", alpha=0.1)
    for k in range(3):
        one = exact(kind, X, (y == k).astype(int), loss="huber_hinge", alpha=0.1)
        np.testing.assert_allclose(together(model)[k], together(one)[0], atol=1e-6)


def garbage(fun_and_grad, x0):
    value, gradient = fun_and_grad(x0)
    assert np.isfinite(value)
    assert gradient.shape == x0.shape
    return np.full_like(x0, np.nan)


@both
def test_optimizers_agree_and_are_trusted_only_through_the_certificate(table, kind):
    (X, y), asked = table, []
    reference = together(exact(kind, X, y, alpha=0.01))
    for optimizer in [
        "accelerated_gradient",
        garbage,
        lambda f, x: x + 1.0,
        lambda f, x: asked.append(len(x)) or "no vector",
    ]:
        found = together(exact(kind, X, y, alpha=0.01, optimizer=optimizer))
        np.testing.assert_allclose(found, reference, atol=1e-6)
    assert asked
    for loss in ("logistic", "huber_hinge"):
        labels = np.arange(len(y)) % 3
        a = together(exact(kind, X, labels, loss=loss, alpha=0.01, optimizer=garbage))
        b = together(exact(kind, X, labels, loss=loss, alpha=0.01))
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        Output(loss="logistic", alpha=1e-4),
        Output(loss="hinge", alpha=1e-4),
        Objective(alpha=1e-4, rows="clipped"),
    ],
    ids=["logistic", "hinge", "objective"],
)
def test_a_tolerance_out_of_reach_is_refused_before_data_are_read(monkeypatch, table, model):
    monkeypatch.setattr(_centred, "clipped_rows", lambda *a: pytest.fail("the data were read"))
    monkeypatch.setattr("dp_halfspace.optim.certificate.EPS", 1e-5)
    with pytest.raises(CertificateError):
        model.fit(*table)
    assert set(vars(model)) == set(model.get_params())


ROBUST = [{"tilt": 1.5}, {"adversary_radius": 0.2}]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (Output, {}),
        *((Output, options) for options in ROBUST),
        (Output, {"tilt": 1.5, "adversary_radius": 0.1, "adversary_norm": "inf"}),
        (Objective, {}),
        (Objective, {"rows": "clipped"}),
    ],
    ids=str,
)
def test_automatic_alpha_is_a_function_of_public_numbers(table, kind, params):
    X, y = table

    def alpha(epsilon=20.0, X=X, y=y, **more):
        model = kind(epsilon=epsilon, classes=[0, 1], **params, data_norm=1.0).set_params(**more)
        return model.fit(X, y).alpha_

    base = alpha()
    assert alpha(X=-3 * X[::-1], y=1 - y) == base
    assert alpha(0.1) > alpha(5.0) > base > alpha(100.0)
    assert alpha(delta=1e-12) > base
    if kind is Output:
        assert alpha(tilt=3.0) > base
        assert params or alpha(data_norm=0.1, preconditioner=False) < alpha(preconditioner=False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [Output(), Objective(), Objective(rows="clipped")], ids=str)
@pytest.mark.parametrize("shape", [(300, 50000), (20000, 300)], ids=["wide", "tall"])
def test_sparse_data_are_not_made_dense(model, shape):
    X = sparse.random_array(shape, density=2e-3, rng=np.random.default_rng(0), format="csr")
    X.toarray = X.todense = lambda *a, **k: pytest.fail("the data were made dense")
    model.set_params(classes=[0, 1], data_norm=1.0).fit(X, np.arange(shape[0]) % 2)
    assert model.coef_.shape == (1, shape[1])
    assert model.predict(X).shape == shape[:1]
