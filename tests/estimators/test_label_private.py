"""LabelPrivateClassifier: what it promises and to whom, its features, its mechanisms."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from dp_halfspace import LabelPrivateClassifier
from dp_halfspace.estimators import label_private
from dp_halfspace.estimators.label_private import fit_label_features
from tests.conftest import separated
from tests.support import releases_of

MECHANISMS = ("statistic", "randomized_response", "net")


def checkers(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_halfspaces_do_not_suffice_and_are_not_needed(mechanism):
    (X, y), (Z, t) = checkers(4000), checkers(2000, seed=1)
    model = LabelPrivateClassifier(mechanism=mechanism, n_fourier=200, classes=[0, 1]).fit(X, y)
    assert model.score(Z, t) > (0.8 if mechanism == "net" else 0.9)


def test_class_weights_shift_log_odds_and_cost_nothing():
    X, y = checkers(2000)
    weights = {0: 1.0, 1: 1e7}
    plain, tilted = (
        LabelPrivateClassifier(n_fourier=100, alpha=3.0, class_weight=w, classes=[0, 1]).fit(X, y)
        for w in (None, weights)
    )
    assert plain.intercept_[0] == 0.0
    assert plain.alpha_ == 3.0
    assert tilted.intercept_[0] - plain.intercept_[0] == pytest.approx(np.log(1e7))
    assert tilted.privacy_.events == plain.privacy_.events
    assert tilted.predict(X).mean() > 0.99


def test_probabilities_are_calibrated_and_only_of_logistic_models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 1))
    y = (rng.random(8000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    model = LabelPrivateClassifier(n_fourier=100, classes=[0, 1]).fit(X, y)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.abs(shares[:, 1] - 1 / (1 + np.exp(-2 * X[:, 0]))).mean() < 0.1
    assert not hasattr(LabelPrivateClassifier(mechanism="net"), "predict_proba")
    X, y = separated(300, 3, 3)
    assert LabelPrivateClassifier(n_fourier=50).fit(X, y).predict_proba(X).shape == (300, 3)


@pytest.mark.parametrize("mechanism", ["statistic", "randomized_response"])
def test_a_rare_class_has_small_probabilities(mechanism):
    """With the ridge on the constant they are .19 and .37 on average, for .04."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    y = (rng.random(4000) < 1 / (1 + np.exp(3.6 - X[:, 0]))).astype(int)
    model = LabelPrivateClassifier(epsilon=0.3, n_fourier=100, mechanism=mechanism, classes=[0, 1])
    assert model.fit(X, y).predict_proba(X)[:, 1].mean() < 0.17


@pytest.mark.filterwarnings("ignore:random_state")
def test_an_odd_number_of_features_is_raised_by_one():
    (X, y), model = checkers(100), LabelPrivateClassifier(classes=[0, 1], random_state=0)
    odd, even, fewer = (
        clone(model).set_params(n_fourier=n).fit(X, y).decision_function(X) for n in (3, 4, 2)
    )
    np.testing.assert_array_equal(odd, even)
    assert np.any(odd != fewer)


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_constant_is_a_multiple_of_that_of_its_mechanism():
    how = {"n_fourier": 4, "n_components": None, "n_candidates": 100, "random_state": 0}
    plain, double, net = (
        LabelPrivateClassifier(classes=[0, 1], **how, **more)
        .fit(*checkers(60))
        .feature_map_.constant
        for more in ({}, {"intercept_scaling": 2.0}, {"mechanism": "net"})
    )
    assert [double / plain, net / plain] == pytest.approx([2.0, 1.0 / label_private._CONSTANT])


OPTIONS = {
    "kernel": "auto",
    "n_fourier": 60,
    "n_components": 5,
    "whitening": 0.75,
    "data_norm": None,
    "constant": 0.3,
}


def features(X, **changed):
    return fit_label_features(X, np.random.default_rng(0), **{**OPTIONS, **changed})


def test_rows_have_norm_one():
    X = np.random.default_rng(1).standard_normal((300, 4))
    for changed in ({}, {"kernel": "linear"}, {"constant": None}):
        rows = features(X, **changed).rows(X)
        np.testing.assert_allclose(rows.lengths(), 1.0, rtol=1e-9)
        assert rows.lengths().max() <= 1.0


def test_few_far_entries_do_not_set_the_scale_of_a_column():
    """A flag that is as rare keeps its own scale."""
    X = np.random.default_rng(1).standard_normal((2000, 3))
    X[:, 2] = np.arange(2000) < 10
    far = X.copy()
    far[:10, 0], far[10:15, 1] = 1e12, -1e12
    before, after = features(X).scales, features(far).scales
    np.testing.assert_allclose(after.scale, before.scale, rtol=0.1)
    np.testing.assert_allclose(after.center, before.center, atol=0.1)
    assert before.scale[2] == pytest.approx(X[:, 2].std())


def test_rows_beyond_a_stated_norm_are_scaled_down_to_it():
    X = np.random.default_rng(1).standard_normal((300, 4))
    short = X * np.minimum(1.0, 1.5 / np.linalg.norm(X, axis=1, keepdims=True))
    for kernel in ("auto", "linear"):
        found, same = features(X, kernel=kernel, data_norm=1.5), features(short, kernel=kernel)
        every = np.arange(300)
        rows = found.rows(X).dense(every)
        np.testing.assert_allclose(rows, same.rows(short).dense(every), atol=1e-6)
    model = LabelPrivateClassifier(classes=[0, 1], kernel="linear")
    for norm, shown in ((None, np.inf), (1.5, 1.5)):
        fitted = model.set_params(data_norm=norm).fit(X, X[:, 0] > 0)
        assert fitted.data_norm_ == shown


def test_sparse_and_wide_rows_are_read_like_others(monkeypatch):
    X = np.random.default_rng(1).standard_normal((300, 8)) * [1, 1, 1, 9, 9, 9, 0, 0]
    for changed in ({"data_norm": 3.0}, {}):
        how = {"kernel": "linear", "n_components": None, **changed}
        dense = features(X, **how)
        for most in (500, 6):
            # Rows of more columns are projected to so many.
            monkeypatch.setattr(label_private, "_MOST_LINEAR", most)
            found = features(sparse.csr_array(X), **how)
            rows = found.rows(sparse.csr_array(X))
            assert rows.shape == (300, min(most, 8) + 1)
            same = features(X, **how).rows(X).dense(np.arange(300))
            np.testing.assert_allclose(rows.dense(np.arange(300)), same, atol=1e-6)
        assert found.scales == pytest.approx(dense.scales)


@pytest.mark.parametrize("width", [8, 300])
def test_sparse_rows_of_few_columns_are_read_as_dense_ones(width):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, width)) * rng.uniform(0.1, 10.0, width)
    found = features(sparse.csr_array(X))
    rows = found.rows(sparse.csr_array(X)).dense(np.arange(300))
    same = features(X, kernel="auto" if width < 256 else "linear")
    np.testing.assert_array_equal(rows, same.rows(X).dense(np.arange(300)))


def test_full_whitening_gives_equal_variances():
    X = np.random.default_rng(1).standard_normal((500, 4)) * [1, 10, 100, 1000]
    found = features(X, kernel="linear", n_components=None, whitening=1.0)
    images = (X / found.scales - found.mean) @ found.transform
    np.testing.assert_allclose(np.cov(images.T, bias=True), np.eye(4), atol=1e-8)
    twice = features(np.hstack([X, X]), kernel="linear", n_components=None, whitening=1.0)
    assert twice.transform.any(axis=0).sum() == 4  # the other directions are rounding
    plain = features(X, kernel="linear", n_components=None, whitening=0.0)
    np.testing.assert_allclose(plain.transform.T @ plain.transform, np.eye(4), atol=1e-12)


def test_columns_are_standardised_whatever_their_units():
    """Powers of two, so that every bit is the same; a constant column and huge units, too."""
    X = np.random.default_rng(1).uniform(size=(300, 4)) * [1, 1, 1, 0] + [0, 5, 0, 7]
    units = 2.0 ** np.array([-300, 0, 900, 40])
    plain, scaled = features(X), features(X * units)
    np.testing.assert_allclose(plain.scales.center, X.mean(axis=0))
    np.testing.assert_allclose(plain.scales.scale, [*X.std(axis=0)[:3], 7.0])
    every = np.arange(300)
    np.testing.assert_array_equal(plain.rows(X).dense(every), scaled.rows(X * units).dense(every))


def test_columns_have_curves_as_far_as_there_is_room_and_wide_rows_have_none(monkeypatch):
    X = np.random.default_rng(1).standard_normal((100, 200))
    assert features(X[:, :4]).feature_map.n_terms == 3
    assert features(X).feature_map.n_terms == 2
    assert features(X).feature_map.fourier.n_components == 60
    monkeypatch.setattr(label_private, "_MOST_LINEAR", 199)
    assert features(X).feature_map.n_components == 199


def test_a_signal_is_found_among_columns_of_other_units():
    """Without standardised columns the one of large unit hides the others: .50."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4)) * [1, 1, 1, 1000]
    y = (X[:, 0] + 0.5 * rng.standard_normal(3000) > 0).astype(int)
    model = LabelPrivateClassifier(n_fourier=100, classes=[0, 1]).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.8


def test_noise_favours_none_of_many_classes_of_equal_size():
    """With the shares as released, noise included, three in five predictions are right."""
    y = np.repeat(np.arange(10), 100)
    X = np.eye(10)[y] + 0.15 * np.random.default_rng(0).standard_normal((1000, 10))
    model = LabelPrivateClassifier(epsilon=0.3, kernel="linear", classes=range(10))
    assert np.mean([model.fit(X, y).score(X, y) for _ in range(3)]) > 0.9


def test_losses_of_a_search_are_within_the_sensitivity_and_attain_it():
    """Whatever the class weights are."""
    rng, largest = np.random.default_rng(0), 0.0
    for weights in (None, {0: 1.0, 1: 5.0}):
        model = LabelPrivateClassifier(
            mechanism="net", n_fourier=10, n_candidates=200, classes=[0, 1], class_weight=weights
        )
        for _ in range(6):
            X, y = rng.standard_normal((6, 2)), rng.integers(2, size=6)
            other = y.copy()
            other[0] = 1 - y[0]
            model.set_params(random_state=0)
            a, b = (releases_of(model, X, labels)[0] for labels in (y, other))
            largest = max(largest, np.abs(a.value - b.value).max() / a.mechanism.sensitivity)
            assert a.mechanism == b.mechanism
    assert 0.99 <= largest <= 1.0


@pytest.mark.parametrize(("n_stages", "events"), [(1, 1), (3, 3), ("auto", 8)])
def test_stages_of_the_net_share_the_budget(n_stages, events):
    X, y = checkers(1500)
    options = {"n_fourier": 20, "n_candidates": 100, "classes": [0, 1], "delta": 0}
    model = LabelPrivateClassifier(mechanism="net", n_stages=n_stages, **options).fit(X, y)
    assert len(model.privacy_.events) == events
    for event in model.privacy_.events:
        assert event.epsilon == pytest.approx(1.0 / events, rel=1e-6)


def test_a_margin_is_asked_of_the_net_and_is_a_public_fact():
    X, y = checkers(400)
    options = {"classes": [-1, 1], "n_candidates": 200, "delta": 0, "epsilon": 5.0}
    model = LabelPrivateClassifier(mechanism="net", margin=0.2, **options).fit(
        X, np.where(y > 0, 1, -1)
    )
    assert dict(model.privacy_.public)["margin"] == 0.2
    assert model.score(X, np.where(y > 0, 1, -1)) > 0.6
    with pytest.raises(ValueError, match="mechanism='net'"):
        LabelPrivateClassifier(margin=0.2, classes=[-1, 1]).fit(X, np.where(y > 0, 1, -1))
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="Only binary classification"):
        LabelPrivateClassifier(mechanism="net", margin=0.2, classes=[0, 1, 2]).fit(X, three)
