"""OutputPerturbationClassifier: its optimum, its public numbers, its accuracy."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize, newton_krylov
from scipy.special import expit, softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dp_halfspace import CertificateError, OutputPerturbationClassifier
from dp_halfspace.optim import get_loss
from dp_halfspace.privacy.mechanisms import recording
from tests.conftest import separated

LOSSES = ["logistic", "huber_hinge", "smoothed_hinge", "hinge", "squared_hinge", "squared"]


def exact(X, y, **params):
    return OutputPerturbationClassifier(epsilon=np.inf, classes=np.unique(y), **params).fit(X, y)


def augmented(X, constant=1.0):
    return np.column_stack([X, np.full(len(X), constant)])


def together(model, constant=1.0):
    return np.column_stack([model.coef_, model.intercept_ / constant])


@pytest.fixture(scope="module")
def table():
    """Overlapping classes, some rows shorter than the bound."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4)) / 4
    y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.1 + 0.3 * rng.standard_normal(300) > 0).astype(int)
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "hinge"])
@pytest.mark.parametrize("alpha", [1e-3, 0.1])
def test_infinite_epsilon_is_the_minimiser_of_the_stated_objective(table, loss, alpha):
    X, y = table
    Z, signs, record = augmented(X), np.where(y == 1, 1.0, -1.0), get_loss(loss)

    def objective(w):
        margins = signs * (Z @ w)
        gradient = Z.T @ (signs * record.derivative(margins)) / len(y) + alpha * w
        return record.value(margins).mean() + alpha / 2 * w @ w, gradient

    options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10000, "maxcor": 50}
    found = minimize(objective, np.zeros(5), jac=True, method="L-BFGS-B", options=options)
    np.testing.assert_allclose(together(exact(X, y, loss=loss, alpha=alpha))[0], found.x, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-2, 0.3])
def test_infinite_epsilon_equals_scikit_learn(table, alpha):
    X, y = table
    Z, c = augmented(X, 2.0), 1 / (alpha * len(y))
    twins = {
        "logistic": LogisticRegression(C=c, fit_intercept=False, tol=1e-10, max_iter=10000),
        "squared_hinge": LinearSVC(C=c / 2, fit_intercept=False, tol=1e-10, max_iter=10**6),
    }
    # scikit-learn's squared hinge counts twice what ours does against 1/2 ||w||^2.
    twins["squared_hinge"].set_params(C=c)
    for loss, twin in twins.items():
        ours = together(exact(X, y, loss=loss, alpha=alpha, intercept_scaling=2.0), 2.0)
        np.testing.assert_allclose(ours, twin.fit(Z, y).coef_, atol=1e-6)


def test_infinite_epsilon_hinge_is_near_the_support_vector_machine(table):
    """The certificate of a non-smooth loss is a duality gap; its distance is public."""
    X, y = table
    alpha = 0.05
    twin = LinearSVC(
        C=1 / (alpha * len(y)), loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(augmented(X), y)
    model = exact(X, y, loss="hinge", alpha=alpha)
    sensitivity = model.privacy_.to_dict()["public"]["sensitivity"]
    assert np.linalg.norm(together(model) - twin.coef_) <= 0.01 * sensitivity


def test_infinite_epsilon_squared_has_its_closed_form(table):
    X, y = table
    Z, signs, n = augmented(X), np.where(y == 1, 1.0, -1.0), len(y)
    w = np.linalg.solve(2 * Z.T @ Z + 0.2 * n * np.eye(5), 2 * Z.T @ signs)
    np.testing.assert_allclose(together(exact(X, y, loss="squared", alpha=0.2))[0], w, atol=1e-6)


def test_infinite_epsilon_multinomial_equals_scikit_learn():
    X, y = separated(400, 4, 3, seed=4)
    alpha = 0.01
    twin = LogisticRegression(
        C=1 / (alpha * len(y)), fit_intercept=False, tol=1e-10, max_iter=10000
    ).fit(augmented(X), y)
    model = exact(X, y, alpha=alpha)
    np.testing.assert_allclose(together(model), twin.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(augmented(X)), atol=1e-6)


def test_one_versus_rest_stacks_binary_problems():
    X, y = separated(200, 3, 3, seed=5)
    model = exact(X, y, loss="huber_hinge", alpha=0.1)
    for k in range(3):
        one = exact(X, (y == k).astype(int), loss="huber_hinge", alpha=0.1)
        np.testing.assert_allclose(together(model)[k], together(one)[0], atol=1e-6)


def test_class_weight_equals_repeated_rows(table):
    X, y = table
    weighted = exact(X, y, alpha=0.1, class_weight={1: 3.0})
    copies = np.where(y == 1, 3, 1)
    n, total = len(y), copies.sum()
    repeated = exact(np.repeat(X, copies, axis=0), np.repeat(y, copies), alpha=0.1 * n / total)
    np.testing.assert_allclose(together(weighted), together(repeated), atol=1e-6)


def test_optimizers_agree_and_are_trusted_only_through_the_certificate(table):
    X, y = table
    reference = together(exact(X, y, alpha=0.01))

    def garbage(fun_and_grad, x0):
        value, gradient = fun_and_grad(x0)
        assert np.isfinite(value)
        assert gradient.shape == x0.shape
        return np.full_like(x0, np.nan)

    def early(fun_and_grad, x0):
        return x0 + 1.0

    def rubbish(fun_and_grad, x0):
        return "no vector"

    names = ["newton", "newton_cg", "lbfgs", "accelerated_gradient"]
    for optimizer in [*names, garbage, early, rubbish]:
        found = together(exact(X, y, alpha=0.01, optimizer=optimizer))
        np.testing.assert_allclose(found, reference, atol=1e-6)
    for k_class in ("logistic", "huber_hinge"):
        labels = np.arange(len(y)) % 3
        a = together(exact(X, labels, loss=k_class, alpha=0.01, optimizer=garbage))
        b = together(exact(X, labels, loss=k_class, alpha=0.01))
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_automatic_alpha_is_a_function_of_public_numbers(table):
    X, y = table
    base = OutputPerturbationClassifier(classes=[0, 1]).fit(X, y).alpha_
    assert OutputPerturbationClassifier(classes=[0, 1]).fit(-3 * X[::-1], 1 - y).alpha_ == base
    assert OutputPerturbationClassifier(epsilon=0.1).fit(X, y).alpha_ > base
    assert OutputPerturbationClassifier(epsilon=10).fit(X, y).alpha_ < base
    assert OutputPerturbationClassifier(delta=1e-12).fit(X, y).alpha_ > base
    assert OutputPerturbationClassifier(data_norm=0.1).fit(X, y).alpha_ < base


def test_scale_of_the_data_is_a_choice_of_units(table):
    """Rows, norm and constant in other units: the same predictions from the same noise."""
    X, y = table
    predictions = []
    for unit in (1.0, 1e3, 1e-3):
        with pytest.warns(UserWarning, match="random_state"):
            model = OutputPerturbationClassifier(
                data_norm=unit, intercept_scaling=unit, random_state=5
            ).fit(unit * X, y)
        predictions.append(model.decision_function(unit * X))
    np.testing.assert_allclose(predictions[1], predictions[0], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(predictions[2], predictions[0], rtol=1e-3, atol=1e-3)


def test_alpha_has_a_documented_floor(table):
    model = exact(*table, alpha=1e-50)
    assert model.alpha_ == pytest.approx(2e-8)
    model = exact(*table, alpha=1e-50, class_weight={0: 1e50})
    assert model.alpha_ == pytest.approx(2e42)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_tolerance_out_of_reach_is_refused_before_data_are_read(monkeypatch, table, loss):
    module = __import__("dp_halfspace.estimators.output_perturbation", fromlist=["m"])
    monkeypatch.setattr(module, "clipped_rows", lambda *a: pytest.fail("the data were read"))
    coarse = __import__("dp_halfspace.optim.solvers.certificate", fromlist=["m"])
    monkeypatch.setattr(coarse, "UNIT", 1e-5)
    model = OutputPerturbationClassifier(loss, alpha=1e-4)
    with pytest.raises(CertificateError):
        model.fit(*table)
    assert set(vars(model)) == set(model.get_params())


def test_probabilities(table):
    X, y = table
    binary = exact(X, y, alpha=0.01)
    scores = binary.decision_function(X)
    np.testing.assert_allclose(binary.predict_proba(X)[:, 1], expit(scores))
    np.testing.assert_allclose(binary.predict_proba(X).sum(axis=1), 1)
    many = exact(X, np.arange(len(y)) % 4, alpha=0.01)
    np.testing.assert_allclose(many.predict_proba(X), softmax(many.decision_function(X), axis=1))
    assert not hasattr(OutputPerturbationClassifier("hinge"), "predict_proba")


def test_scores_are_linear_within_the_norm_and_clipped_beyond(table):
    X, y = table
    model = exact(X, y, alpha=0.01)
    np.testing.assert_allclose(
        model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-12
    )
    far = 1e6 * X[:5]
    unit = X[:5] / np.linalg.norm(X[:5], axis=1, keepdims=True)
    np.testing.assert_allclose(model.decision_function(far), model.decision_function(unit))


@pytest.mark.parametrize("layout", ["wide", "tall"])
def test_sparse_data_are_not_made_dense(layout):
    n, d = (300, 50000) if layout == "wide" else (50000, 300)
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=2e-3, rng=rng, format="csr")
    X.toarray = X.todense = lambda *a, **k: pytest.fail("the data were made dense")
    y = np.arange(n) % 2
    model = OutputPerturbationClassifier(classes=[0, 1]).fit(X, y)
    assert model.coef_.shape == (1, d)
    assert model.predict(X).shape == (n,)


def test_accuracy_on_digits_within_one_budget():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    model = OutputPerturbationClassifier(epsilon=8.0, data_norm=4.0, classes=range(10))
    # One fit reaches .81, with standard deviation .035: four of seven stay above .65.
    scores = [model.fit(X[:1257], y[:1257]).score(X[1257:], y[1257:]) for _ in range(7)]
    assert np.median(scores) > 0.65
    assert model.privacy_.epsilon == 8.0


# -- optimisers of one's own -----------------------------------------------------------


@pytest.fixture(scope="module")
def published():
    """What the code in the documentation defines; running it is part of the test."""
    page = Path(__file__).parents[2] / "docs/estimators/output_perturbation.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    names = {}
    exec(code, names)
    return names["stochastic_gradient"], names["katyusha"]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_published_methods_release_what_the_default_does(published, n_classes):
    X, y = separated(120, 3, n_classes)
    shares = []

    def watched(method):
        def run(F, start):
            point = method(F, start)
            shares.append(np.linalg.norm(F.gradient(point)) / np.linalg.norm(F.gradient(start)))
            return point

        return run

    for loss in ("logistic", "squared_hinge"):
        reference = together(exact(X, y, alpha=0.3, loss=loss))
        for method, near in zip(published, (0.3, 0.1), strict=True):
            model = exact(X, y, alpha=0.3, loss=loss, optimizer=watched(method))
            np.testing.assert_allclose(together(model), reference, atol=1e-7)
            # One multinomial problem, or one of each class against the rest.
            together_ = loss == "logistic" or n_classes == 2
            assert len(shares) == (1 if together_ else n_classes)
            assert max(shares) < near
            shares.clear()


def test_katyusha_reaches_the_certificate_by_itself(published):
    X, y = separated(60, 2)
    answers = []

    def run(F, start):
        answers.append(published[1](F, start, epochs=60))
        return answers[-1]

    with recording() as releases:
        exact(X, y, alpha=0.5, optimizer=run)
    np.testing.assert_array_equal(releases[0].value[0], answers[0])


def test_neighbours_look_alike_whatever_a_callable_does(table, capfd):
    """It raises on one of them, warns on the other and prints on both."""
    X, y = table
    moved = X.copy()
    moved[0] = -1e6 * X[0]

    def leaky(F, start):
        print(F.gradient(start))
        if F.gradient(start)[0] < threshold:
            raise ZeroDivisionError
        warnings.warn(str(F.value(start)), UserWarning, stacklevel=1)
        return newton_krylov(F.gradient, start, maxiter=1)

    slopes = []
    for rows in (X, moved):
        exact(rows, y, optimizer=lambda F, w: slopes.append(F.gradient(w)[0]) or w)
    threshold = np.mean(slopes)
    assert slopes[0] != slopes[1]
    for rows in (X, moved):
        model = exact(rows, y, optimizer=leaky)
        np.testing.assert_allclose(together(model), together(exact(rows, y)), atol=1e-6)
    assert capfd.readouterr() == ("", "")
