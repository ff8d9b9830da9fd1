"""Tilt and adversary of OutputPerturbationClassifier: optimum, neighbours, warning, accuracy."""

import itertools
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from dp_halfspace import OutputPerturbationClassifier, PrivacyWarning
from dp_halfspace.optim import empirical_risk, get_loss
from dp_halfspace.optim.losses import LOGISTIC
from dp_halfspace.optim.objectives import Adversary
from tests.adversarial import neighbouring_pairs
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import exact as fit_exactly
from tests.support import public, together

TILTED = {"tilt": 1.5}
ATTACKED = {"adversary_radius": 0.2}
COLUMNS = {"adversary_radius": 0.1, "adversary_norm": "inf"}
OPTIONS = [TILTED, ATTACKED, COLUMNS, {**TILTED, **COLUMNS}]


def named(options):
    if not isinstance(options, dict):
        return ""
    return "-".join(f"{k.removeprefix('adversary_')}={v}" for k, v in options.items())


every_option = pytest.mark.parametrize("options", OPTIONS, ids=named)


exact = partial(fit_exactly, OutputPerturbationClassifier)


def dual_norm(w, norm, smoothing=0.0):
    """Norm of the coefficients that the worst change of a row acts through, per model."""
    sizes = np.linalg.norm(w, axis=-1, keepdims=True) if norm == 2 else np.abs(w)
    return np.sum(np.sqrt(sizes**2 + smoothing**2) - smoothing, axis=-1)


def stated(X, y, alpha, loss, weights, *, tilt=0.0, adversary_radius=0.0, adversary_norm=2):
    """Return the objective of the documentation."""
    signs, n = np.where(y == 1, 1.0, -1.0), len(y)
    value = loss if callable(loss) else get_loss(loss).value

    def objective(w):
        margins = signs * (X @ w[:-1] + w[-1])
        margins -= adversary_radius * dual_norm(w[:-1], adversary_norm, 1e-3)
        losses = weights[y] * value(margins)
        mean = (logsumexp(tilt * losses) - np.log(n)) / tilt if tilt else losses.mean()
        return mean + alpha / 2 * w @ w

    return objective


@pytest.mark.sampled(4)
@every_option
@pytest.mark.parametrize("loss", ["logistic", "huber_hinge", "squared_hinge"])
def test_infinite_epsilon_is_the_minimiser_of_the_stated_objective(table, options, loss):
    X, y = table
    weights = np.array([1.0, 1.5])
    model = exact(X, y, alpha=0.1, loss=loss, class_weight={1: 1.5}, **options)
    objective, ours = stated(X, y, 0.1, loss, weights, **options), together(model)[0]
    found = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    # What is certified is a ten millionth of the influence of a record, which a tilt makes large.
    sensitivity = public(model)["sensitivity"]
    assert np.linalg.norm(ours - found.x) <= 2e-5 + 2e-7 * sensitivity


@every_option
def test_robust_classes_are_fitted_one_against_the_rest(options):
    X, y = separated(200, 3, 3, seed=5)
    known = {"tilt": 0.0, "adversary_radius": 0.0, "adversary_norm": 2, **options}
    options = {"alpha": 0.1, **options}
    model = exact(X, y, **options)
    assert known.items() <= public(model).items()
    for k in range(3):
        one = exact(X, (y == k).astype(int), **options)
        np.testing.assert_allclose(together(model)[k], together(one)[0], atol=1e-6)
    odds = expit(model.decision_function(X))
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba, odds / odds.sum(axis=1, keepdims=True), rtol=1e-10)
    model.intercept_ -= 2000.0  # every sigmoid underflows; the division has to survive it
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_smoothing_of_an_attack_is_in_units_of_the_scale():
    facts = SimpleNamespace(data_norm=4.0, is_scale_stated=True, n_features=3)
    found = OutputPerturbationClassifier(adversary_radius=0.2)._adversary(facts, LOGISTIC)
    assert found == Adversary(0.2, 2, 3, 2.5e-4)


def extremes():
    """Small tables of long rows on which one record turns everything round."""
    for n, d, flip, turn in itertools.product((1, 2, 4, 40), (1, 3), (0, 1), (1.0, -1.0)):
        X = np.tile(np.eye(d)[0], (n, 1)) * np.where(np.arange(n) % 2, -1.0, 1.0)[:, None]
        y = np.arange(n) % 2
        other_X, other_y = X.copy(), y.copy()
        other_X[0] *= turn
        other_y[0] = y[0] ^ flip
        yield X, y, other_X, other_y


def worst_ratio(**params):
    """Largest distance of the minimisers of neighbours, in units of the claimed sensitivity."""
    rng, largest = np.random.default_rng(3), 0.0
    for X, y, other_X, other_y in [*neighbouring_pairs(rng, 8), *extremes()]:
        a, b = (exact(*data, classes=[0, 1], **params) for data in ((X, y), (other_X, other_y)))
        sensitivity = public(a)["sensitivity"]
        assert sensitivity == public(b)["sensitivity"]
        largest = max(largest, np.linalg.norm(together(a) - together(b)) / sensitivity)
    return largest


CASES = [
    ({"loss": "huber_hinge", "alpha": 2.0, "tilt": 0.5}, 0.5),
    ({"loss": "logistic", "alpha": 0.3, "tilt": 3.0, "class_weight": {0: 3.0, 1: 0.5}}, 0.1),
    ({"loss": "squared", "alpha": 4.0, "tilt": 0.5}, 0.1),
    ({"loss": "huber_hinge", "alpha": 2.0, "adversary_radius": 0.3, "fit_intercept": False}, 0.95),
    ({"loss": "logistic", "alpha": 0.3, "adversary_radius": 0.7}, 0.3),
    ({"loss": "hinge", "alpha": 2.0, "adversary_radius": 0.7, "adversary_norm": "inf"}, 0.3),
    ({"loss": "huber_hinge", "alpha": 1.0, "tilt": 1.0, "adversary_radius": 0.5}, 0.2),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("params", "near"), CASES, ids=named)
def test_minimisers_of_neighbours_are_within_the_sensitivity(params, near):
    assert near < worst_ratio(**params) <= 1.0


@every_option
def test_released_coefficients_stay_in_the_ball_of_the_minimisers(table, options):
    X, y = table
    # Noise of standard deviation far above the radius of the ball.
    with record_releases() as releases:
        model = OutputPerturbationClassifier(
            alpha=1.0, epsilon=1e-4, delta=1e-9, **options, data_norm=1.0
        )
        model.fit(X, y)
    assert np.linalg.norm(releases[0].released) > 2
    assert np.linalg.norm(together(model)) <= np.sqrt(0.2785 / 1.0) * (1 + 1e-3)


def test_a_tilt_that_gives_one_record_too_much_weight_warns(table):
    X, y = table
    texts = []
    for rows, labels in ((X, y), (0 * X, 1 - y)):
        with pytest.warns(PrivacyWarning, match="tilt=20") as caught:
            OutputPerturbationClassifier(alpha=0.01, tilt=20.0, classes=[0, 1], data_norm=1.0).fit(
                rows, labels
            )
        texts.append(str(caught[0].message))
        assert caught[0].filename == __file__
    assert texts[0] == texts[1]
    # No record can have more than all the weight, and the noise is at most n times as large.
    assert "100 % of all the weight, and the noise is 300 times" in texts[0]


def test_the_warning_comes_at_a_tenth_of_the_records():
    """The weight of a record is C / (C + n - 1): C = (n - 1) / 9 is the limit."""
    X, y = separated(2000, 3)
    sizes = (2000, 4, 2, 2**0.5, 2000)
    spread = empirical_risk(LOGISTIC, *sizes, tilt=1.0, min_weight=1.0).spread(0.05)
    for factor, warns in ((0.99, False), (1.01, True)):
        tilt = factor * np.log(1999 / 9) / spread
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            OutputPerturbationClassifier(alpha=0.05, tilt=tilt, classes=[0, 1], data_norm=1.0).fit(
                X, y
            )
        assert bool(caught) == warns


@pytest.mark.filterwarnings("ignore:with tilt=1:dp_halfspace.PrivacyWarning")
def test_a_tilt_makes_a_rare_class_too_likely():
    """Without noise, too: most losses of the rare class are large, and weigh more."""
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.05).astype(int)
    X = rng.normal(size=(4000, 3)) + y[:, None]
    shares = {}
    for tilt in (0.0, 1.0):
        how = {"epsilon": np.inf, "preconditioner": False, "classes": [0, 1]}
        model = OutputPerturbationClassifier(tilt=tilt, **how)
        shares[tilt] = model.fit(X, y).predict_proba(X)[:, 1].mean()
    assert shares[0.0] < 1.5 * y.mean() < 2.0 * y.mean() < shares[1.0]
