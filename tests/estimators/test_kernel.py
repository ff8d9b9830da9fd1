"""PrivateKernelClassifier: accuracy by rule, public features, sensitivity, budget, memory."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import get_tags

from dp_halfspace import AdaptiveMarginClassifier, PrivateKernelClassifier, privacy
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.estimators import kernel as module
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.projection import draw_additive, draw_fourier
from dp_halfspace.projection.features import (
    AdditiveMap,
    FourierMap,
    ProjectedFeatures,
    TensorSketchMap,
)
from dp_halfspace.rows.mapped_rows import clipped_features, normalised_feature_rows
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import fitted, public

ROOT_TWO = math.sqrt(2.0)


def crossed(n=8000, n_classes=2, seed=0):
    """Points of a square, by the sign of a product or by the distance from the middle."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    if n_classes == 2:
        return X, (X[:, 0] * X[:, 1] > 0).astype(int)
    return X, np.minimum(n_classes * (X**2).sum(axis=1) / 1.4, n_classes - 1).astype(int)


def seeded(X, y, **params):
    model = PrivateKernelClassifier(
        kernel="rbf", random_state=0, classes=[0, 1], data_norm=ROOT_TWO
    )
    return fitted(model, X, y, **params)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "params",
    [
        {"epsilon": 5.0},
        {"kernel": "rbf"},
        {"kernel": "polynomial", "degree": 2, "length_scale": 0.5},
        # For pure DP the automatic kernel has features of single columns alone.
        {"kernel": "rbf", "delta": 0.0, "epsilon": 10.0},
        {"margin": 0.1},
        {"kernel": "rbf", "margin": "select", "solver": "phased_prox", "n_components": 64},
        {"kernel": "rbf", "solver": "objective_perturbation", "n_components": 64},
        {"solver": "phased_prox", "margin": 0.03},
        {"margin": 0.3, "projection": "hadamard", "n_components": 9000},
        {"fit_intercept": False},
    ],
    ids=str,
)
def test_finds_what_no_halfspace_finds(params):
    X, y = crossed()
    if "projection" in params:
        X, y = X[:1000], y[:1000]
        params = {**params, "epsilon": 20.0}
    model = PrivateKernelClassifier(epsilon=3.0, data_norm=ROOT_TWO, classes=[0, 1])
    model.set_params(**params)
    # The best of three: a public draw of features may be an unlucky one.
    assert any(model.fit(X, y).score(X, y) > 0.82 for _ in range(3))
    linear = AdaptiveMarginClassifier(data_norm=ROOT_TWO, classes=[0, 1]).fit(X, y)
    assert linear.score(X, y) < 0.75


def test_map_does_not_depend_on_the_data_and_is_in_the_record():
    X, y = crossed(500)
    a, b = seeded(X, y), seeded(-3.0 * X, 1 - y)
    np.testing.assert_array_equal(a.feature_map_.frequencies, b.feature_map_.frequencies)
    facts, budget = PublicFacts(500, X.shape[1], 2, (1.0, 1.0)), Budget.of(a.epsilon, 1 / 500**2)
    again = a._drawn_map(facts, budget, public(a)["feature_seed"])
    np.testing.assert_array_equal(again.frequencies, a.feature_map_.frequencies)
    free = [
        PrivateKernelClassifier(kernel="rbf", data_norm=1.0).fit(X, y).feature_map_.frequencies
        for _ in range(2)
    ]
    assert not np.array_equal(*free)


@pytest.mark.parametrize(
    ("params", "delta", "size"),
    [
        ({}, 1e-9, 299),
        ({}, 0.0, 9),
        ({"kernel": "additive"}, 1e-9, 9),
        ({"n_components": 56}, 1e-9, 55),
        ({"cache_size": 4e-6 * 9000 * 31}, 1e-9, 31),
    ],
    ids=str,
)
def test_joint_features_are_of_the_default_alone_and_as_many_as_are_kept(params, delta, size):
    facts, model = PublicFacts(9000, 3, 2, (1.0, 1.0)), PrivateKernelClassifier(**params)
    a, b = (model._drawn_map(facts, Budget.of(4.0, delta), seed) for seed in (1, 2))
    assert a.n_components == b.n_components == size
    assert a.fourier is None or (a.fourier.frequencies != b.fourier.frequencies).all()


def test_noise_is_not_on_the_stream_of_the_map(monkeypatch):
    """With the map held fixed two fits still differ, and seeds of maps do not move the noise."""
    X, y = crossed(500)
    monkeypatch.setattr(module, "public_generator", lambda *_: np.random.default_rng(0))
    a, b = (
        PrivateKernelClassifier(kernel="rbf", classes=[0, 1], data_norm=1.0).fit(X, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a.feature_map_.frequencies, b.feature_map_.frequencies)
    assert not np.array_equal(a.coef_, b.coef_)
    noises = []
    for seed in (1, 2):
        monkeypatch.setattr(
            module, "public_generator", lambda *_, seed=seed: np.random.default_rng(seed)
        )
        with record_releases() as releases:
            seeded(np.zeros((50, 2)), np.arange(50) % 2)
        sigma = releases[0].mechanism.sigma
        noises.append((releases[0].released - releases[0].value) / sigma)
    np.testing.assert_allclose(noises[0], noises[1], atol=1e-4)


def test_a_fit_shortens_rows_beyond_the_stated_norm_as_predictions_do():
    X, y = crossed(300)
    short = X / np.maximum(np.linalg.norm(X, axis=1), 0.5)[:, None] * 0.5
    how = {"epsilon": math.inf, "data_norm": 0.5, "n_components": 32}
    one, other = (seeded(rows, y, **how) for rows in (X, short))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(short), atol=1e-4)


def test_sparse_columns_without_features_have_the_scores_of_dense_ones():
    """Also where they were divided by a stated norm."""
    X = np.random.default_rng(0).normal(scale=0.3, size=(500, 3))
    model = PrivateKernelClassifier(n_components=3, margin=0.3, data_norm=2.0, classes=[0, 1])
    scores = model.fit(sparse.csr_array(X), X[:, 0] > 0).decision_function(X)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), scores, rtol=1e-4)
    bare = PrivateKernelClassifier(fit_intercept=False, data_norm=2.0, classes=[0, 1])
    assert not bare.fit(sparse.csr_array(X), X[:, 0] > 0).intercept_.any()


def test_scores_are_linear_in_the_released_features():
    X, y = crossed(1000)
    model = seeded(X, y)
    scores = model.feature_map_.apply(X / ROOT_TWO) @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(sparse.csr_array(X)), scores, rtol=1e-4, atol=1e-4
    )


def test_a_selected_margin_is_one_of_two_classes():
    for margin, takes_more in (("select", False), ("auto", True)):
        tags = get_tags(PrivateKernelClassifier(margin=margin)).classifier_tags
        assert tags.multi_class is takes_more


def test_kinds_of_maps():
    X, y = crossed(60)
    assert isinstance(seeded(X, y).feature_map_, FourierMap)
    assert isinstance(PrivateKernelClassifier().fit(X, y).feature_map_, AdditiveMap)
    sketch = seeded(X, y, kernel="polynomial", data_norm=2.0, length_scale=4.0).feature_map_
    assert isinstance(sketch, TensorSketchMap)
    assert sketch.gain == 0.5
    both = seeded(X, y, projection="hadamard", n_components=700)
    assert isinstance(both.feature_map_, ProjectedFeatures)
    assert both.coef_.shape == (1, 500)
    assert seeded(X, y, n_components=7).n_components_ == 8
    assert seeded(X, y, kernel="polynomial", n_components=7).n_components_ == 7


def drawn(d, seed=0):
    return draw_fourier(d, np.full(8, 0.4), np.random.default_rng(seed))


def normalised(X):
    return normalised_feature_rows(clipped_features(X, 1.0, drawn(X.shape[1]), memory=0), 0.5)


def columns_with_features(X):
    feature_map = draw_additive(X.shape[1], 4, 20, np.random.default_rng(0))
    return normalised_feature_rows(
        clipped_features(X, 0.1, feature_map, memory=0, longest=1e9), 0.2
    )


def worst_ratios(rows_of):
    """Changes of moment and slope sum over one record, by what is charged for them."""
    rng = np.random.default_rng(0)
    moment, slopes = 0.0, 0.0
    for X, y, other_X, other_y in neighbouring_pairs(rng, 60):
        a, b = rows_of(X), rows_of(other_X)
        ones = np.ones(len(X))
        moment = max(moment, np.linalg.norm(a.gram(ones) - b.gram(ones)) / ROOT_TWO)
        w = rng.standard_normal(a.shape[1])
        sums = [
            rows.fused_adjoint(w, lambda m, lo, hi, labels=labels: 0.5 * (2 * labels[lo:hi] - 1.0))
            for rows, labels in ((a, y), (b, other_y))
        ]
        slopes = max(slopes, float(np.linalg.norm(sums[0] - sums[1])))
    return moment, slopes


@pytest.mark.parametrize("rows_of", [normalised, columns_with_features])
def test_sensitivity_against_brute_force(rows_of):
    moment, slopes = worst_ratios(rows_of)
    assert 0.8 < moment <= 1 + 1e-12
    assert 0.999 < slopes <= 1 + 1e-12


def test_selection_pays_for_the_choice_and_one_training():
    X, y = separated(500, 4)
    model = PrivateKernelClassifier(margin="select", classes=[0, 1], n_components=64, data_norm=1.0)
    with record_releases() as releases:
        model.fit(X, y)
    choice, training = model.privacy_.events
    assert choice == privacy.Exponential(0.1)
    assert len(releases) == 1 + training.count
    grid = public(model)["margins"]
    assert model.margin_ in grid
    assert grid == tuple(0.5**j for j in range(1, 5))
    assert len({r.mechanism for r in releases[1:]}) == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "params", [{}, {"solver": "phased_prox", "margin": 0.1, "n_components": 100}], ids=str
)
def test_cache_changes_nothing(params):
    """The features are read block by block, in a public order, whatever is kept of them."""
    X, y = crossed(1000)
    first, *others = (
        seeded(X, y, cache_size=size, **params).coef_ for size in (0.0, 0.4, np.int8(100))
    )
    for other in others:
        # Sums of chunks are added in another order than sums of blocks.
        np.testing.assert_allclose(other, first, rtol=1e-4, atol=1e-5)


def test_published_steps_read_rows_beyond_the_norm_as_rows_of_the_norm():
    X, y = separated(100, 3)
    short, long = (
        seeded(size * X, y, margin=0.3, data_norm=1.0, epsilon=9.0).coef_ for size in (1.0, 5.0)
    )
    np.testing.assert_allclose(long, short, atol=1e-6)


records = st.integers(1, 10**9)
budgets = st.floats(1e-9, 1e9) | st.just(math.inf)


@given(records, budgets, st.booleans())
def test_features_of_a_kernel_are_usable(n, strength, is_pure):
    budget = Budget.of(strength, 0.0) if is_pure else Budget.gaussian(strength)
    size = module.choose_n_features(n, budget)
    assert 2 <= size <= (150 if budget.is_pure else 600)
    assert size % 2 == 0


def test_features_of_a_kernel_grow_with_the_budget():
    """With pure DP one for twenty records, otherwise one for each unit of ``n mu``."""
    budgets = Budget.of(1.0, 0.0), Budget.gaussian(0.1)
    assert [module.choose_n_features(1000, budget) for budget in budgets] == [50, 100]


def test_a_stated_length_is_told_in_units_of_the_norm():
    assert module.relative_scale(3.0, 2.0) == 1.5
    assert module.relative_scale("auto", 2.0) is None
