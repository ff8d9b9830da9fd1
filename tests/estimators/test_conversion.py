"""Estimators of scikit-learn that become private ones: nothing is dropped without a word."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    from_sklearn,
)
from tests.conftest import separated
from tests.support import Book

X, Y = separated(400, 4)
MODELS = [LinearSVC(), SVC(), LogisticRegression(), SGDClassifier(), RidgeClassifier()]


@pytest.mark.parametrize("model", MODELS)
def test_every_parameter_is_accounted_for(model):
    private, report = from_sklearn(model, classes=[0, 1], return_report=True)
    assert {kept.name for kept in report.parameters} == set(model.get_params())
    assert report.changed == ()
    for kept in report.parameters:
        assert kept.becomes or kept.reason != "it has no counterpart", kept.name
        assert f"{kept.name}=" in str(report)
    kind = PrivateKernelClassifier if isinstance(model, SVC) else AdaptiveMarginClassifier
    assert type(private) is kind
    assert report.result == kind.__name__
    assert clone(private).get_params() == private.get_params()


@pytest.mark.parametrize("model", MODELS)
def test_defaults_say_nothing_and_fit(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private = from_sklearn(
            model, epsilon=5.0, delta=1e-6, classes=[0, 1], data_norm=1.0, ledger=Book()
        )
    assert private.fit(X, Y).score(X, Y) > 0.8
    assert private.ledger.records[0].epsilon == 5.0


def test_what_was_set_and_is_dropped_is_said():
    with pytest.warns(UserWarning, match="AdaptiveMarginClassifier drops") as caught:
        from_sklearn(
            LogisticRegression(C=3.0, max_iter=7, random_state=1),
            classes=[0, 1],
        )
    (text,) = (str(w.message) for w in caught)
    for name in ("C=3.0", "max_iter=7", "random_state=1"):
        assert name in text
    assert "tol" not in text
    assert caught[0].filename == __file__


def test_what_has_a_meaning_is_kept():
    model = from_sklearn(
        LinearSVC(fit_intercept=False, class_weight={0: 1.0, 1: 3.0}), classes=[0, 1], delta=0.0
    )
    assert (model.fit_intercept, model.class_weight, model.delta) == (False, {0: 1.0, 1: 3.0}, 0.0)


@pytest.mark.parametrize(
    ("usual", "alpha"),
    [
        (LinearSVC(C=2.0, fit_intercept=False, tol=1e-10, max_iter=100_000), 1 / 800),
        (LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10), 1 / 200),
        (RidgeClassifier(alpha=10.0, fit_intercept=False), 20 / 400),
    ],
)
def test_a_kept_objective_has_the_same_minimiser(usual, alpha):
    """Without noise, so that the two can be compared."""
    same = from_sklearn(
        usual, epsilon=math.inf, classes=[0, 1], data_norm=1.0, n_samples=400, return_report=True
    )[0]
    assert isinstance(same, OutputPerturbationClassifier)
    assert same.alpha == pytest.approx(alpha)
    rows = 0.99 * X
    usual.fit(rows, Y)
    np.testing.assert_allclose(
        same.fit(rows, Y).coef_, np.atleast_2d(usual.coef_), rtol=1e-4, atol=1e-5
    )


def test_losses_and_kernels():
    model = from_sklearn(SGDClassifier(alpha=0.01), n_samples=400, classes=[0, 1])
    assert (model.loss, model.alpha) == ("hinge", 0.01)
    with pytest.warns(UserWarning, match="loss="):
        model = from_sklearn(SGDClassifier(loss="perceptron"), n_samples=400, classes=[0, 1])
    assert isinstance(model, AdaptiveMarginClassifier)
    model = from_sklearn(SVC(gamma=2.0), classes=[0, 1])
    assert (model.kernel, model.length_scale) == ("rbf", 0.5)
    model = from_sklearn(SVC(kernel="poly", degree=2, coef0=1, gamma=4.0), classes=[0, 1])
    assert (model.kernel, model.degree, model.coef0) == ("polynomial", 2, 1.0)
    assert model.length_scale == 0.5
    model = from_sklearn(SVC(kernel="poly", degree=4, coef0=2.5), classes=[0, 1])
    assert (model.degree, model.coef0) == (4, 2.5)
    assert isinstance(from_sklearn(SVC(kernel="linear"), classes=[0]), AdaptiveMarginClassifier)
    for kernel in ("linear", "rbf"):
        private, report = from_sklearn(
            SVC(kernel=kernel, probability=True), classes=[0, 1], return_report=True
        )
        assert hasattr(private.fit(X, Y), "predict_proba")
        assert "probability=True is dropped: PrivateTableClassifier has" in str(report)
    model = from_sklearn(SVC(kernel="linear", C=2.0), n_samples=100, classes=[0, 1])
    assert (model.loss, model.alpha) == ("hinge", 0.005)


def test_steps_in_front():
    usual = make_pipeline(SimpleImputer(), StandardScaler(), "passthrough", LinearSVC())
    model, report = from_sklearn(usual, classes=[0, 1], return_report=True)
    assert model.data_norm is None
    first, second, *_ = report.parameters
    assert (first.name, second.name) == ("simpleimputer", "standardscaler")
    assert "estimated within the budget" in second.reason
    _, report = from_sklearn(usual, classes=[0, 1], data_norm=2.0, return_report=True)
    assert report.parameters[0].becomes == "data_norm=2.0"
    with pytest.raises(ValueError, match=r"step 'onehotencoder' \(OneHotEncoder\) has no counter"):
        from_sklearn(make_pipeline(OneHotEncoder(), LinearSVC()), classes=[0, 1])


def test_a_class_of_another_library_is_not_taken_for_one_of_scikit_learn():
    other = type("LinearSVC", (LinearSVC,), {"__module__": "another.svm"})
    with pytest.raises(ValueError, match="no private estimator for LinearSVC"):
        from_sklearn(other(), classes=[0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": RandomForestClassifier()}, "no private estimator for RandomForest"),
        ({"estimator": AdaptiveMarginClassifier()}, "no private estimator for AdaptiveM"),
        ({"estimator": GridSearchCV(LinearSVC(), {"C": [1]})}, "search with PrivateSearchCV"),
        ({"estimator": SVC(kernel="sigmoid")}, "no private estimator for kernel='sigmoid'"),
        ({"estimator": SVC(kernel="precomputed")}, "finite feature maps"),
        ({"estimator": LinearSVC(), "n_samples": 0}, "n_samples must be a positive integer"),
        ({"estimator": LinearSVC(), "n_samples": True}, "n_samples must be a positive integer"),
    ],
)
def test_what_cannot_be_converted_is_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_sklearn(**arguments)


@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateKernelClassifier])
@pytest.mark.parametrize("name", ["C", "penalty", "dual", "tol", "max_iter", "loss", "multi_class"])
def test_a_parameter_of_scikit_learn_is_refused_with_its_reason(kind, name):
    if name in kind().get_params():
        return
    with pytest.raises(
        TypeError, match=rf"{kind.__name__} has no parameter '{name}': \w+ .*from_sk"
    ):
        kind(**{name: 1})


@pytest.mark.parametrize(
    "kind", [PrivateKernelClassifier, PrivateTableClassifier, OutputPerturbationClassifier]
)
def test_a_prior_is_refused_by_naming_the_class_that_takes_one(kind):
    text = f"{kind.__name__} has no parameter 'prior': prior is a parameter of AdaptiveMargin"
    with pytest.raises(TypeError, match=text) as refused:
        kind(prior=None)
    assert "from_sklearn" not in str(refused.value)
    assert AdaptiveMarginClassifier(prior=None).prior is None


def test_an_unknown_parameter_is_refused_as_python_does_it():
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        AdaptiveMarginClassifier(epsilom=1.0)


def test_a_parameter_that_a_class_has_is_taken():
    assert OutputPerturbationClassifier(loss="hinge").loss == "hinge"
    assert AdaptiveMarginClassifier(random_state=1).random_state == 1


def test_balanced_weights_are_kept():
    private = from_sklearn(LinearSVC(class_weight="balanced"), classes=[0, 1])
    assert private.class_weight == "balanced"
