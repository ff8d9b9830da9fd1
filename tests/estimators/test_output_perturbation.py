"""OutputPerturbationClassifier: its regulariser, its scores, optimisers of one's own."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, newton_krylov
from scipy.special import log_softmax, softmax

from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.optim import shifted_logistic
from tests.conftest import separated
from tests.estimators.test_perturbation import exact_preconditioner, minimiser, unit
from tests.support import augmented, together
from tests.support import exact as fit_exactly


def exact(X, y, **params):
    return fit_exactly(OutputPerturbationClassifier, X, y, **params)


def test_alpha_has_a_documented_floor(table):
    model = exact(*table, alpha=1e-50)
    assert model.alpha_ == pytest.approx(2e-8)
    model = exact(*table, alpha=1e-50, class_weight={0: 1e50})
    assert model.alpha_ == pytest.approx(2e42)


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


def mapped(X, y, **params):
    """Fit without noise behind a preconditioner."""
    return exact(X, y, **{"preconditioner": True, **params})


@pytest.mark.parametrize("n_classes", [2, 3])
def test_infinite_epsilon_is_the_minimiser_on_mapped_rows(table, n_classes):
    X, y = table if n_classes == 2 else separated(300, 4, 3, seed=4)
    Z = unit(augmented(X, 0.15))
    A = exact_preconditioner(Z)
    rows, own = unit(Z @ A), np.eye(n_classes)[y]
    model = mapped(X, y, alpha=0.01)
    if n_classes == 2:
        found = minimiser(rows, y, "shifted_logistic", 0.01, 2.0)[None]
    else:

        def objective(w):
            scores = rows @ w.reshape(3, 5).T
            value = -(own * log_softmax(scores, axis=1)).sum(axis=1).mean()
            slope = (softmax(scores, axis=1) - own).T @ rows / len(y)
            return value + 0.005 * w @ w, slope.ravel() + 0.01 * w

        found = minimize(objective, np.zeros(15), jac=True, options={"gtol": 1e-10}).x.reshape(3, 5)
    np.testing.assert_allclose(together(model, 0.15), found @ A, atol=1e-5)
    # The map is that of the rows up to a rotation: images have the same inner products.
    pictures = augmented(X) @ model.preconditioner_.T
    np.testing.assert_allclose(unit(pictures) @ unit(pictures).T, rows @ rows.T, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_probabilities_behind_a_preconditioner_undo_the_loss(table, fit_intercept):
    X, y = table
    model = mapped(X, y, fit_intercept=fit_intercept)
    ones = augmented(X, 0.15) if fit_intercept else X
    images = unit(ones) @ exact_preconditioner(unit(ones))
    length = (images**2).sum(axis=1).mean() ** 0.5
    if fit_intercept:
        length *= (np.linalg.norm(ones, axis=1) ** -2).mean() ** -0.5
    assert model.probability_scale_ == pytest.approx(1 / length, rel=1e-3)
    length = 1 / model.probability_scale_
    scores, (q, p) = model.decision_function(X) / length, model.predict_proba(X).T
    # Where the expected loss of two classes is least.
    loss = shifted_logistic(2.0)
    np.testing.assert_allclose(p * loss.derivative(scores), q * loss.derivative(-scores), rtol=1e-9)
    np.testing.assert_array_equal(p > 0.5, model.predict(X) == 1)
    many = mapped(X, np.arange(len(y)) % 4)
    expected = softmax(many.decision_function(X) * many.probability_scale_, axis=1)
    np.testing.assert_allclose(many.predict_proba(X), expected)


def test_probabilities_in_learnt_units_take_missing_entries():
    X, y = separated(3000, 4, norm=1.5)
    X[:50, 0] = np.nan
    model = OutputPerturbationClassifier(epsilon=8.0, classes=[0, 1]).fit(X, y)
    assert model.preconditioner_.shape == (5, 5)
    assert np.isinf(model.data_norm_)
    assert dict(model.privacy_.public)["relative_constant_column"] == 2.0
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean((p[:, 1] > 0.5) == (y == 1)) > 0.9


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, True),
        ({"epsilon": np.inf}, True),
        ({"preconditioner": False}, False),
        ({"delta": 0.0}, False),
        ({"alpha": 0.1}, False),
        ({"alpha": 0.1, "preconditioner": True}, True),
        ({"loss": "hinge"}, False),
        ({"loss": "hinge", "preconditioner": True}, True),
        ({"tilt": 0.1}, False),
        ({"adversary_radius": 0.1}, False),
        ({"epsilon": 1e-3}, False),
    ],
    ids=str,
)
def test_automatic_preconditioner_follows_public_rules(params, wanted):
    X, y = separated(300, 4)
    model = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1]).set_params(**params)
    record = model.plan(X, y)
    assert dict(record.public)["private_preconditioner"] == wanted
    assert len(record.events) == 1 + wanted
    assert (model.fit(X, y).preconditioner_ is not None) == wanted
    assert model.data_norm_ == 1.0


def test_wide_rows_have_no_preconditioner():
    X, y = np.ones((600, 512)) / 40, np.arange(600) % 2
    model = OutputPerturbationClassifier(epsilon=1e3, data_norm=1.0, classes=[0, 1])
    assert not dict(model.plan(X, y).public)["private_preconditioner"]
    assert dict(model.plan(X[:, 1:], y).public)["private_preconditioner"]
    with pytest.raises(ValueError, match="at most 512 columns"):
        model.set_params(preconditioner=True).fit(X, y)


def test_people_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="groups is not supported"):
        OutputPerturbationClassifier(classes=[0, 1]).fit(X, y, groups=np.arange(len(y)))
