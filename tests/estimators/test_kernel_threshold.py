"""The threshold that features of many columns have: what it follows, what it costs, who has it."""

import math

import numpy as np
import pytest

from dp_halfspace import PrivateKernelClassifier, PrivateTableClassifier, audit
from dp_halfspace.algorithms import kernel_training
from dp_halfspace.algorithms.engine import calibration
from dp_halfspace.algorithms.engine.calibration import CalibrationCurve, CalibrationPlan
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.datasets import in_chunks
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.profiles import gdp_mu
from tests.algorithms.support import assert_costs
from tests.support import fitted, public

FEWEST = 45
KNOTS = calibration._KNOTS


def weak(n=3000, d=FEWEST, seed=0):
    """Columns that all say a little; a third of the records is positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 3.0, d)
    score = X @ rng.standard_normal(d) / d + rng.logistic(size=n)
    return X, (score > np.quantile(score, 2 / 3)).astype(int)


def model(**params):
    given = {"epsilon": 3.0, "classes": [0, 1], "data_norm": None, "random_state": 0}
    return PrivateKernelClassifier(**{**given, **params})


@pytest.mark.parametrize("kernel", ["auto", "additive"])
def test_counts_of_scores_are_within_the_budget(kernel):
    with_it, without = (
        fitted(model(kernel=kernel, delta=1e-6), *weak(d=d)) for d in (FEWEST, FEWEST - 1)
    )
    assert public(with_it)["private_threshold"]
    assert "private_threshold" not in public(without)
    assert len(with_it.privacy_.events) == len(without.privacy_.events) + 1
    mu = gdp_mu(3.0, 1e-6)
    for one in (with_it, without):
        assert_costs(one.privacy_.events, mu)
    # Column scales have their 8 % first.
    assert with_it.privacy_.events[-1].mu == pytest.approx(0.2 * math.sqrt(0.92) * mu)


@pytest.mark.parametrize(
    "params",
    [
        {"classes": [0, 1, 2]},
        {"class_weight": "balanced"},
        {"class_weight": {0: 1.0, 1: 0.5}},
        {"fit_intercept": False},
        {"margin": 0.2},
        {"solver": "objective_perturbation"},
        {"projection": "rademacher", "n_components": 200},
        {"kernel": "rbf"},
        {"delta": 0.0},
        {"epsilon": 0.3},
        {"epsilon": 0.3, "data_norm": 10.0},
    ],
    ids=str,
)
def test_other_fits_have_none(params):
    X, y = weak(1000)
    assert "private_threshold" not in public(fitted(model(**params), X, y))


def test_tables_calibrate_their_scores_once():
    X, y = weak(1000)
    found = PrivateTableClassifier(epsilon=3.0, classes=[0, 1], random_state=0)
    with pytest.warns(PrivacyWarning):
        found.fit(X, y)
    assert "private_threshold" not in public(found)


def curve_through(score):
    """Log odds that are even at this score."""
    return CalibrationCurve(KNOTS, 0.1 * (KNOTS - score))


def seen_scores(monkeypatch, fit):
    """Fit; return the scores that are counted, and the model, whose even score is made 7."""
    seen = []

    def run(_self, scores, *_args, **_kwargs):
        seen.append(np.concatenate(list(scores.values())) if isinstance(scores, Chunks) else scores)
        return curve_through(7.0)

    with monkeypatch.context() as patch:
        patch.setattr(CalibrationPlan, "run", run)
        found = fit()
    assert len(seen) == 1
    return np.asarray(seen[0]), found


@pytest.mark.parametrize(("epsilon", "has_one"), [(1.0, False), (1.3, True), (1.7, True)])
def test_columns_have_one_before_they_have_features(epsilon, has_one):
    found = fitted(model(epsilon=epsilon, delta=1e-6), *weak(1000))
    assert found.n_components_ == FEWEST
    assert ("private_threshold" in public(found)) == has_one
    assert_costs(found.privacy_.events, gdp_mu(epsilon, 1e-6))


@pytest.mark.parametrize("how", ["columns", "float32", "float64", "chunks", "groups"])
def test_scores_of_all_records_are_counted_and_that_of_even_odds_becomes_zero(how, monkeypatch):
    X, y = weak(700)
    given, labels, groups = X, y, {}
    if how == "chunks":
        given, labels = in_chunks(X, 250), in_chunks(y, 250)
    if how == "groups":
        groups = {"groups": np.arange(len(X))}
    if how == "float64":
        # Few features are not made in float32.
        monkeypatch.setattr(kernel_training, "_FEW_FEATURES", 10**6)

    epsilon = 1.7 if how == "columns" else 20.0

    def fit():
        with pytest.warns(PrivacyWarning):
            return model(epsilon=epsilon).fit(given, labels, **groups)

    scores, found = seen_scores(monkeypatch, fit)
    expected = scores - 7.0
    np.testing.assert_allclose(found.decision_function(X), expected, rtol=1e-3, atol=1e-3)


def test_even_odds_are_within_the_scores_that_a_curve_is_stated_for():
    assert curve_through(3.0).even_score == pytest.approx(3.0)
    assert curve_through(1e6).even_score == KNOTS[-1]


def test_without_noise_as_many_records_are_given_to_a_class_as_its_odds_say():
    X, y = weak(4000)
    found = fitted(model(epsilon=math.inf, delta=1e-6), X, y)
    near = np.argsort(np.abs(found.decision_function(X)))[:600]
    assert abs(float(y[near].mean()) - 0.5) < 0.1


def replayed():
    X, y = weak(200)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = -X[0], 1 - y[0]
    fresh = PrivateKernelClassifier(epsilon=60.0, delta=1e-4, classes=[0, 1])
    assert dict(fresh.plan(X, y).public)["private_threshold"]
    return audit.replay(fresh, X, y, other, labels, n_histories=2, random_state=0)


def test_replay():
    assert not replayed().findings


def test_replay_sees_half_of_the_noise(monkeypatch):
    """Planted: the sensitivity of the counts is taken for a half of what it is."""
    monkeypatch.setattr(calibration, "_SENSITIVITY", 0.5 * calibration._SENSITIVITY)
    assert replayed().findings


def exact_counts(tables, epsilon=20.0, **options):
    """The last query of fits to several tables, the answers to all queries being the same."""
    given, found = [], []
    for rows, labels in tables:
        again = iter(given[:])

        def answer(value, mechanism, source, again=again):
            found[-1] = np.array(value)
            given.append(next(again, None))
            if given[-1] is None:
                given[-1] = mechanism.perturb(value, source)
            return given[-1]

        found.append(None)
        with intercept_releases(answer), pytest.warns(PrivacyWarning):
            model(epsilon=epsilon).fit(rows, labels, **options)
    return found


@pytest.mark.parametrize("epsilon", [4.0, 20.0])
@pytest.mark.parametrize("rows_each", [1, 5])
def test_another_record_or_person_moves_the_counts_by_the_root_of_two_at_most(rows_each, epsilon):
    X, y = weak(300 * rows_each)
    other, labels = X.copy(), y.copy()
    other[:rows_each], labels[:rows_each] = -X[:rows_each], 1 - y[:rows_each]
    people = np.arange(len(X)) // rows_each
    counts, moved = exact_counts([(X, y), (other, labels)], epsilon, groups=people)
    assert 0.0 < np.linalg.norm(counts - moved) <= math.sqrt(2.0) + 1e-9
    assert counts.sum() == pytest.approx(300.0)


def test_records_are_counted_by_their_weights():
    X, y = weak(300)
    weights = np.random.default_rng(1).uniform(size=300)
    (counts,) = exact_counts([(X, y)], sample_weight=weights)
    assert counts.sum() == pytest.approx(weights.sum())


def intercepts_of_neighbours(epsilon=20.0):
    """Intercepts for several data sets, the releases of all being the same."""
    X, y = weak(300)
    given, found = [], []
    for rows, labels in ((X, y), (np.vstack([-5.0 * X[:1], X[1:]]), y), (2.0 * X[:, ::-1], 1 - y)):
        again = iter(given[:])

        def answer(value, mechanism, source, again=again):
            given.append(next(again, None))
            if given[-1] is None:
                given[-1] = mechanism.perturb(value, source)
            return given[-1]

        with intercept_releases(answer):
            found.append(float(fitted(model(epsilon=epsilon), rows, labels).intercept_[0]))
    return found


# With few records, times mu, the features are the columns alone.
@pytest.mark.parametrize("epsilon", [4.0, 20.0])
def test_the_threshold_is_a_function_of_what_was_released(epsilon):
    first, *others = intercepts_of_neighbours(epsilon)
    assert others == [first, first]


def test_a_threshold_of_the_scores_themselves_is_seen(monkeypatch):
    """Planted: the counts are released and charged, and the mean of exact scores divides."""
    honest = CalibrationPlan.run

    def exact(self, scores, *args, **kwargs):
        honest(self, scores, *args, **kwargs)
        return curve_through(float(np.mean(scores)))

    monkeypatch.setattr(CalibrationPlan, "run", exact)
    first, *others = intercepts_of_neighbours()
    assert first not in others
