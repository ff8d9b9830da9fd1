"""OutputPerturbationClassifier: its regulariser, its scores, optimisers of one's own."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize, newton_krylov
from scipy.special import log_softmax, softmax

from dp_halfspace import OutputPerturbationClassifier
from dp_halfspace.engine.moment import CONSTANT, LENGTHENED, centring_of, packed
from dp_halfspace.privacy.mechanisms import NoNoise
from tests.conftest import separated
from tests.support import augmented, together
from tests.support import exact as fit_exactly

exact = partial(fit_exactly, OutputPerturbationClassifier)


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


def final_rows(X, intercept=True):
    """Centred, whitened and clipped rows behind the exact length and moment, by other means."""
    squares = np.floor(np.minimum(np.square(X).sum(axis=1), 1.0) * 2**16) / 2**16
    X = X / min(1.2 * np.sqrt(squares.mean()), 1.0)
    first = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    if intercept:
        first = augmented(first, CONSTANT) / LENGTHENED
    moment = packed(first.T @ first)
    centring = centring_of(moment, len(X), NoNoise(), constant=float(intercept))[0]
    images = first @ centring.to_final.T
    lengths = np.linalg.norm(images, axis=1, keepdims=True)
    images *= centring.longest / np.maximum(lengths, centring.longest)
    return np.column_stack([images, *(np.full(len(X), c) for c in centring.constants)])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_infinite_epsilon_is_the_minimiser_on_centred_rows(table, n_classes, intercept):
    X, y = table if n_classes == 2 else separated(300, 4, 3, seed=4)
    # No row is so long that it is clipped at a prediction and not here.
    X = X / np.linalg.norm(X, axis=1).max()
    Z, own = final_rows(X, intercept), np.eye(n_classes)[y]
    model = exact(X, y, preconditioner=True, alpha=0.01, fit_intercept=intercept)
    size = Z.shape[1]

    def objective(w):
        scores = Z @ w.reshape(n_classes, size).T
        value = -(own * log_softmax(scores, axis=1)).sum(axis=1).mean()
        slope = (softmax(scores, axis=1) - own).T @ Z / len(y)
        # One vector for two classes has half the penalty of two opposite ones of half its size.
        ridge = 0.01 * (2.0 if n_classes == 2 else 1.0)
        return value + ridge / 2.0 * w @ w, slope.ravel() + ridge * w

    start = np.zeros(n_classes * size)
    found = minimize(objective, start, jac=True, options={"gtol": 1e-10}).x.reshape(-1, size)
    scores = Z @ (found if n_classes > 2 else found[1:] - found[:1]).T
    # The scores of rows that neither clip shortens.
    lengths = np.linalg.norm(X, axis=1)
    images = np.linalg.norm(Z[:, : X.shape[1]], axis=1)
    inner = (images < 0.999 * images.max()) & (lengths < 1.1 * np.sqrt(np.mean(lengths**2)))
    assert inner.mean() > 0.1
    predicted = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(predicted[inner], scores[inner], atol=1e-5)
    # The attribute maps rows to images, up to the clip.
    pictures = (augmented(X) if intercept else X) @ model.preconditioner_.T
    np.testing.assert_allclose(pictures[inner], Z[inner][:, : X.shape[1]], atol=1e-8)


def test_probabilities_in_learnt_units_take_missing_entries():
    X, y = separated(3000, 4, norm=1.5)
    X[:50, 0] = np.nan
    model = OutputPerturbationClassifier(epsilon=8.0, classes=[0, 1]).fit(X, y)
    assert model.preconditioner_.shape == (4, 5)
    assert np.isinf(model.data_norm_)
    assert model.scaler_.clip == 1.5
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean((p[:, 1] > 0.5) == (y == 1)) > 0.9


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("params", "n_releases"),
    [
        ({}, 6),
        ({"epsilon": np.inf}, 6),
        ({"preconditioner": False}, 1),
        ({"delta": 0.0}, 1),
        ({"alpha": 0.1}, 1),
        ({"alpha": 0.1, "preconditioner": True}, 3),
        ({"loss": "hinge"}, 6),
        ({"loss": "squared", "alpha": 0.1}, 1),
        ({"tilt": 0.1}, 1),
        ({"adversary_radius": 0.1}, 1),
        ({"epsilon": 1e-3}, 1),
    ],
    ids=str,
)
def test_automatic_preconditioner_follows_public_rules(params, n_releases):
    """Three releases of scales, length and moment of the rows, and the minimiser."""
    X, y = separated(300, 4)
    model = OutputPerturbationClassifier(data_norm=1.0, classes=[0, 1]).set_params(**params)
    record, is_centred = model.plan(X, y), n_releases > 1
    assert len(record.events) == n_releases
    assert dict(record.public).get("private_second_moment", False) == is_centred
    assert (model.fit(X, y).preconditioner_ is not None) == is_centred
    # Rows in released column scales have no norm that anybody stated.
    assert model.data_norm_ == (1.0 if model.scaler_ is None else np.inf)


def test_pure_fits_have_no_preconditioner():
    X, y = separated(300, 4)
    model = OutputPerturbationClassifier(data_norm=1.0, delta=0.0, classes=[0, 1])
    assert not dict(model.plan(X, y).public).get("private_second_moment")
    with pytest.raises(ValueError, match="needs delta > 0"):
        model.set_params(preconditioner=True).plan(X, y)
