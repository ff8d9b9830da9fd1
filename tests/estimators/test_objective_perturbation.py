"""ObjectivePerturbationClassifier: its public numbers, its noise, its projections."""

import math

import numpy as np
import pytest
from scipy import sparse

from dp_halfspace import BudgetError, ObjectivePerturbationClassifier
from dp_halfspace.papers.objective import GaussianLinearTerm
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import exact, public, releases_of

MODEL = ObjectivePerturbationClassifier(data_norm=1.0)


def test_class_weights_are_charged(table):
    X, y = table
    for rows in ("centred", "clipped"):
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
    for rows, square in (("centred", 1.0), ("clipped", 2.0)):
        model = ObjectivePerturbationClassifier(
            alpha=1e-30, rows=rows, preconditioner=False, data_norm=1.0
        ).fit(X, y)
        floor = 0.25 * square / (300 * math.expm1(0.5))
        assert model.alpha_ == pytest.approx(floor, rel=1e-9)
        exact_model = exact(ObjectivePerturbationClassifier, X, y, alpha=1e-30, rows=rows)
        assert exact_model.alpha_ == pytest.approx(1e-8 * square)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pure_noise_on_many_columns_is_projected(form):
    X, y = separated(3000, 600, seed=9)
    X = np.where(np.abs(X) > 0.02, X, 0.0)
    with record_releases() as releases:
        model = ObjectivePerturbationClassifier(epsilon=8.0, delta=0.0, data_norm=1.0).fit(
            form(X), y
        )
    assert releases[-1].value.shape == (1, 151)
    assert public(model)["projection"] == "RademacherMap"
    assert model.score(form(X), y) > 0.9


def test_what_column_scales_leave_without_an_epsilon_is_refused():
    """A delta so large that a Gaussian mechanism needs no epsilon: an objective does."""
    model = ObjectivePerturbationClassifier(epsilon=0.001, delta=0.4, classes=[0, 1])
    with pytest.raises(BudgetError, match=r"^epsilon is too small for a perturbed objective"):
        model.plan(np.ones((20, 2)), np.arange(20) % 2)


@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_probabilities_are_the_logistic_function_of_the_score(delta):
    """The default loss is the logistic one, and no slope is clipped: nothing is to be undone."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 4))
    y = (X[:, 0] - 1.5 + rng.logistic(size=8000) > 0).astype(int)
    model = ObjectivePerturbationClassifier(epsilon=30.0, delta=delta, classes=[0, 1]).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(np.log(p / (1 - p)), model.decision_function(X), rtol=1e-9)
    for part in (p < np.median(p), p >= np.median(p)):
        assert p[part].mean() == pytest.approx(y[part].mean(), abs=0.03)
    hinge = ObjectivePerturbationClassifier(loss="huber_hinge")
    assert not hasattr(hinge, "predict_proba")
