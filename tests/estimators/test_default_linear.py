"""The default linear fit: scores are linear, signs right, rows read by questions only."""

import math
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.datasets import in_chunks
from dp_halfspace.engine import linear
from dp_halfspace.engine.linear import COLUMN_CLIP
from dp_halfspace.inspection import natural_coefficients
from dp_halfspace.preprocessing import ReleasedScaler
from dp_halfspace.privacy.door import Door
from tests.permits import door_of
from tests.support import fitted

# Parameters whose size decides whether rows are in the range of float32.
SIZES = ("data_norm", "intercept_scaling")

pytestmark = pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")


def skewed(n=6000, share=0.15, seed=3):
    """Two normal columns, a rare flag and a lognormal column, all with effects; few positives."""
    rng = np.random.default_rng(seed)
    flag, tail = (rng.random(n) < 0.03) * 1.0, np.exp(1.5 * rng.standard_normal(n))
    X = np.column_stack([rng.standard_normal((n, 2)), flag, tail])
    score = 0.7 * X[:, 0] + 0.3 * X[:, 1] + 1.2 * flag + 0.3 * np.log(tail)
    odds = score - np.quantile(score, 1.0 - share) - 0.4
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(int)


FORMS = {
    "column scales": {},
    "stated": {"data_norm": 9.0},
    "balanced": {"class_weight": "balanced"},
    "no intercept": {"fit_intercept": False},
    "larger constant": {"intercept_scaling": 3.0},
    "projected": {"projection": "rademacher", "n_components": 3, "data_norm": 9.0},
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", FORMS)
def test_scores_are_linear_in_the_clipped_columns(name, n_classes):
    X, y = skewed()
    y = np.where((y == 1) & (X[:, 0] > 0), n_classes - 1, y)
    model = AdaptiveMarginClassifier(classes=range(n_classes), **FORMS[name]).fit(X, y)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    rows = X * np.minimum(1.0, model.data_norm_ / lengths)
    if model.scaler_ is not None:
        rows = model.scaler_.transform(X)
    scores = rows @ model.coef_.T + model.intercept_
    found = model.decision_function(X)
    np.testing.assert_allclose(found, scores[:, 0] if n_classes == 2 else scores, rtol=1e-9)
    assert (model.data_norm_ == math.inf) == (model.scaler_ is not None)
    # With so many records, scales pay although a norm is stated.
    assert (model.scaler_ is None) == (name == "projected")
    if model.scaler_ is not None:
        scaler = model.scaler_
        clipped = ReleasedScaler(scaler.center, scaler.scale, scaler.clip).fit_transform(X)
        assert np.abs(clipped).max() == scaler.clip == COLUMN_CLIP
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.decision_function(X), found)
        inside = np.isclose(rows * scaler.scale + scaler.center, X).all(axis=1)
        assert 0.2 < inside.mean() < (np.abs(clipped) < COLUMN_CLIP).all(axis=1).mean()
        natural = natural_coefficients(model)
        expected = X[inside] @ natural.coefficients.T + natural.intercepts
        np.testing.assert_allclose(scores[inside], expected, rtol=1e-9, atol=1e-9)
    if name == "no intercept":
        assert not model.intercept_.any()


def test_rows_of_a_rare_flag_are_predicted_as_surely_as_they_were_fitted():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(60.0, 12.0, 20_000), rng.random(20_000) < 0.04])
    odds = 0.05 * (X[:, 0] - 60.0) + 1.5 * X[:, 1] - 2.0
    y = (odds + rng.logistic(size=len(X)) > 0.0).astype(int)
    model = fitted(AdaptiveMarginClassifier(epsilon=1.0), X[:10_000], y[:10_000], random_state=0)
    rows, truth = X[10_000:], y[10_000:]
    flagged = rows[:, 1] == 1.0
    observed = truth[flagged].mean()
    assert abs(model.predict_proba(rows)[flagged, 1].mean() - observed) < 0.12
    model.scaler_.row_clip = None
    assert model.predict_proba(rows)[flagged, 1].mean() > observed + 0.4


def test_more_budget_ranks_better_and_as_well_as_logistic_regression():
    X, y = skewed(9000)
    X, T, y, t = X[:6000], X[6000:], y[:6000], y[6000:]
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    areas = []
    for epsilon in (0.3, 1.0, 10.0):
        fits = (
            fitted(AdaptiveMarginClassifier(epsilon=epsilon), X, y, random_state=s)
            for s in range(4)
        )
        areas.append(np.mean([roc_auc_score(t, fit.decision_function(T)) for fit in fits]))
    assert areas == sorted(areas)
    assert areas[-1] > roc_auc_score(t, logistic.decision_function(T)) - 0.015


def test_probabilities_are_those_of_the_classes_at_no_budget():
    X, y = skewed(9000)
    X, T, y, t = X[:6000], X[6000:], y[:6000], y[6000:]
    model = AdaptiveMarginClassifier(epsilon=3.0, classes=[0, 1]).fit(X, y)
    found = model.predict_proba(T)
    np.testing.assert_allclose(found, np.exp(model.predict_log_proba(T)))
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(T))
    shares = np.tile([1.0 - t.mean(), t.mean()], (len(t), 1))
    best = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).predict_proba(T)
    gain = log_loss(t, shares) - log_loss(t, found)
    assert gain > 0.7 * (log_loss(t, shares) - log_loss(t, best)) > 0.0
    again = CalibratedClassifierCV(AdaptiveMarginClassifier(classes=[0, 1]), cv=2).fit(X, y)
    assert again.predict_proba(T).shape == (len(t), 2)


@pytest.mark.parametrize(
    "params",
    [{"margin": 0.1}, {"solver": "phased_prox"}, {"selection": "exponential"}, {"delta": 0.0}],
)
def test_fits_of_published_algorithms_have_no_probabilities(params):
    X, y = skewed(2000)
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=9.0, epsilon=2.0, **params)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        model.fit(X, y).predict_proba(X)
    assert "only a fit with default parameters" in str(refused.value.__cause__)
    assert not hasattr(model, "coef_std_error_")
    default = AdaptiveMarginClassifier().get_params()
    assert not hasattr(
        model.set_params(**{name: default[name] for name in params}), "predict_proba"
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateKernelClassifier])
def test_a_selection_for_a_small_table_is_about_equally_sure_everywhere(kind, n_classes):
    X, y = skewed(300)
    y = np.where((y == 1) & (X[:, 0] > 0), n_classes - 1, y)
    model = kind(epsilon=0.5, classes=range(n_classes)).fit(X, y)
    found = model.predict_proba(X)
    if n_classes == 2 and kind is PrivateKernelClassifier:
        assert not hasattr(model, "certainty_")
        return
    assert model.certainty_ == pytest.approx(np.log(4.0 * (n_classes - 1)))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(np.log(found), model.predict_log_proba(X))
    assert (np.abs(found.max(axis=1) - 0.81) < 0.03).all()


def test_chunks_are_fitted_like_the_array_up_to_rounding():
    X, y = skewed(3000)
    X[::7, 1] = np.nan
    for params in ({"epsilon": 3.0}, {"epsilon": 3.0, "class_weight": "balanced"}):
        model = AdaptiveMarginClassifier(classes=[0, 1], **params)
        whole = fitted(model, X, y, random_state=4)
        parts = fitted(model, in_chunks(X, 500), in_chunks(y, 500), random_state=4)
        np.testing.assert_allclose(whole.coef_, parts.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(whole.scaler_.scale, parts.scaler_.scale)


@pytest.mark.parametrize(
    ("how", "is_single"),
    [
        ({}, True),
        ({"groups": np.arange(100) // 2}, False),
        *(({name: 2.0**power}, False) for name in SIZES for power in (-21, 21)),
        *(({name: 2.0**power}, True) for name in SIZES for power in (-20, 20)),
    ],
    ids=str,
)
def test_rows_are_read_in_float32_if_each_is_a_record_and_in_its_range(how, is_single):
    """Rows of two columns are copied, in estimated scales."""
    groups, params = how.get("groups"), {name: how[name] for name in SIZES if name in how}
    model = AdaptiveMarginClassifier(classes=[0, 1], epsilon=50.0, data_norm=1.0)
    for width in (2, 600):
        X = np.zeros((100, width), dtype=np.float32)
        public = dict(model.set_params(**params).plan(X, np.arange(100) % 2, groups=groups).public)
        assert public["private_column_scales"] == (width == 2)
        assert ("precision" in public) == is_single


def test_sparse_rows_are_fitted_like_dense_ones():
    X, y = skewed(3000)
    # Of so many columns, dense rows get no scales beside a stated norm.
    X = np.hstack([X, np.random.default_rng(1).standard_normal((3000, 146))])
    X[np.abs(X) < 0.5] = 0.0
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=9.0)
    dense, thin = (fitted(model, rows, y, random_state=4) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-4, atol=1e-6)


class Guarded(np.ndarray):
    """Rows that raise if anything computes with them while no question is asked."""

    is_open = False

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if not Guarded.is_open:
            raise AssertionError("private rows were read outside a question")
        plain = [np.asarray(x) if isinstance(x, Guarded) else x for x in inputs]
        if "out" in options:
            options["out"] = tuple(
                np.asarray(x) if isinstance(x, Guarded) else x for x in options["out"]
            )
        return getattr(ufunc, method)(*plain, **options)

    def __array_function__(self, function, types, args, kwargs):
        if not Guarded.is_open:
            raise AssertionError("private rows were read outside a question")
        return super().__array_function__(function, types, args, kwargs)


def run_guarded(params, monkeypatch):
    """Run the releases of a fit on guarded rows; the door alone opens them."""
    X, y = skewed(1000)
    model = AdaptiveMarginClassifier(classes=[0, 1], epsilon=3.0, **params)
    plan = model._fit_plan(model._validate(X, y, None))
    for name in ("release", "map"):
        honest = getattr(Door, name)

        def opened(*given, honest=honest):
            Guarded.is_open = True
            try:
                return honest(*given)
            finally:
                Guarded.is_open = False

        monkeypatch.setattr(Door, name, opened)
    data = TrainingData(X.view(Guarded), y, np.array([0, 1]), None)
    return plan, plan.run(door_of(data, *plan.events))


@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}])
def test_only_questions_read_the_rows(monkeypatch, params):
    plan, found = run_guarded(params, monkeypatch)
    assert np.isfinite(found.coefficients).all()
    assert plan.asks[-1] == "30 steps"


def test_a_fit_forgets_the_kind_of_the_one_before():
    """A selection for a small table is about equally sure everywhere, and steps are not."""
    X, y = skewed()
    model = AdaptiveMarginClassifier(classes=[0, 1])
    few = np.arange(150)
    assert fitted(model, X[few], y[few], random_state=1).certainty_ > 0.0
    again, fresh = (
        each.set_params(random_state=1).fit(X, y)
        for each in (model.fit(X[few], y[few]), AdaptiveMarginClassifier(classes=[0, 1]))
    )
    assert not hasattr(fresh, "certainty_")
    assert vars(again).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(again.predict_proba(X), fresh.predict_proba(X))


MANY = [pytest.param(share, 40, marks=pytest.mark.slow) for share in (0.05, 0.08, 0.15, 0.3, 0.5)]


@pytest.mark.parametrize(("share", "n_fits"), [(0.15, 4), *MANY])
def test_signs_are_right_at_every_share(share, n_fits):
    X, y = skewed(8000, share)
    for seed in range(n_fits):
        model = fitted(AdaptiveMarginClassifier(epsilon=3.0), X, y, random_state=seed)
        assert (model.coef_ > 0.0).all()


def test_the_guard_sees_a_use_of_rows_outside(monkeypatch):
    """Planted: the model is moved by the mean of the rows after the releases."""
    honest = linear.run

    def leaks(releases, door, known):
        door._Door__data.X.mean()
        return honest(releases, door, known)

    monkeypatch.setattr(linear, "run", leaks)
    with pytest.raises(AssertionError, match="outside a question"):
        run_guarded({}, monkeypatch)
