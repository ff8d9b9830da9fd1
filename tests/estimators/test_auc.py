"""PrivateAUCClassifier: ranking, threshold, public numbers, budgets."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateAUCClassifier, privacy
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import PublicFacts
from dp_halfspace.estimators import _ranking
from dp_halfspace.estimators._ranking import threshold_grid, threshold_losses
from dp_halfspace.papers.pairs import RankingProblem
from dp_halfspace.privacy import Exponential
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from tests.permits import door_of
from tests.releases import record_releases

MECHANISMS = ["noisy_gd", "objective", "output"]

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
every_delta = pytest.mark.parametrize("delta", ["auto", 0.0])


def table(n=3000, d=5, share=0.1, seed=0):
    """Rare positives, shifted along one direction, far from the origin."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = 0.15 * rng.standard_normal((n, d)) + 0.2
    X[:, 0] += 0.3 * y
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), y


@pytest.fixture(scope="module")
def data():
    return table()


def model(**params):
    return PrivateAUCClassifier(**{"classes": [0, 1], **params}, data_norm=1.0)


@every_mechanism
@every_delta
def test_every_mechanism_ranks(mechanism, delta, data):
    fitted = model(mechanism=mechanism, delta=delta, epsilon=20.0).fit(*data)
    assert roc_auc_score(data[1], fitted.decision_function(data[0])) > 0.85
    assert privacy.epsilon(fitted.privacy_.events, fitted.privacy_.delta) <= 20.0 * (1 + 1e-12)


def test_a_threshold_has_no_error_of_an_intercept(data):
    """The attributes of the direction are about its own intercept, which is replaced."""
    names = vars(model(epsilon=1.0).fit(*data))
    fitted_names = {name for name in names if name.endswith("_")}
    assert not {"intercept_std_error_", "margin_"} & fitted_names


def test_public_counts_change_the_normaliser_of_pairs_alone(data):
    private = model(mechanism="output").fit(*data).privacy_
    stated = model(mechanism="output", class_counts=(300, 2700)).fit(*data).privacy_
    assert len(stated.events) == len(private.events)
    assert tuple(dict(stated.public)["class_counts"]) == (300.0, 2700.0)
    assert dict(private.public)["class_counts"] == "private"
    assert dict(stated.public)["pairs"] == pytest.approx(0.36 * dict(private.public)["pairs"])
    steps = model().fit(*data).privacy_
    assert model(class_counts=(300, 2700)).fit(*data).privacy_.events == steps.events


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_regulariser_is_for_rows_in_their_own_units(mechanism, data):
    """Of rows that are half as long, a quarter is as large."""
    kind = model(mechanism=mechanism, epsilon=20.0)
    plans = [
        kind.set_params(data_norm=norm, alpha=alpha).plan(*data) for norm, alpha in ((2, 8), (1, 2))
    ]
    long, short = (dict(plan.public)["certified_gradient"] for plan in plans)
    assert long == short
    assert plans[0].events == plans[1].events
    assert [dict(plan.public)["alpha"] for plan in plans] == pytest.approx([8.0, 2.0])


@every_delta
def test_threshold_given_or_bought(delta, data):
    X, y = data
    bought = model(delta=delta, epsilon=20.0).fit(X, y)
    given = model(delta=delta, epsilon=20.0, threshold=0.25).fit(X, y)
    assert any(isinstance(e, privacy.Exponential) for e in bought.privacy_.events)
    assert not any(isinstance(e, privacy.Exponential) for e in given.privacy_.events)
    assert given.intercept_[0] == pytest.approx(-0.25)
    assert [dict(m.privacy_.public)["threshold"] for m in (bought, given)] == [None, 0.25]
    assert bought.score(X, y) > max(y.mean(), 1 - y.mean()) - 0.005
    scores = given.decision_function(X) - given.intercept_
    np.testing.assert_array_equal(given.predict(X), (scores > 0.25).astype(int))


@pytest.mark.filterwarnings("ignore:random_state")
@every_mechanism
def test_class_weight_moves_the_threshold_and_no_direction(mechanism, data):
    """An epsilon of one for the threshold: 60 errors too many have weight exp(-30)."""
    X, y = data
    heavy, light = (
        model(mechanism=mechanism, epsilon=50.0, class_weight=weights, random_state=1).fit(X, y)
        for weights in ({0: 1, 1: 1000}, {0: 1000, 1: 1})
    )
    np.testing.assert_array_equal(heavy.coef_, light.coef_)
    assert heavy.predict(X)[y == 1].mean() > 0.8
    assert light.predict(X)[y == 0].mean() < 0.03


@every_delta
def test_the_same_events_whatever_the_labels(delta):
    X, y = table(n=4000, share=0.01)
    fits = [model(delta=delta).fit(X, labels) for labels in (y, 1 - y, np.arange(4000) % 2)]
    assert fits[0].privacy_.events == fits[1].privacy_.events == fits[2].privacy_.events


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_direction_is_that_of_the_linear_fit():
    """With the same noise the coefficients are those of the engine; scores are for the threshold.

    Planted: the scores of rows that were shortened, as the steps read them.
    """
    X, y = table(d=3, share=0.4)
    X[:40] *= 1e6
    with record_releases() as releases:
        fitted = model(epsilon=30.0, random_state=0).fit(X, y)
    choice = releases[-1]
    clean = fitted.scaler_.transform(X) @ fitted.coef_[0]
    largest = np.linalg.norm(fitted.coef_) * 1.5 * 3**0.5
    grid = threshold_grid(largest, -_centre(releases, X, y, fitted))
    errors = threshold_losses(clean, y == 1, np.ones(2), grid, largest=largest)
    np.testing.assert_allclose(choice.value, -errors, atol=0.5)
    assert np.abs(grid + fitted.intercept_[0]).min() < 1e-6 * largest
    short = clean / np.maximum(1.0, np.linalg.norm(fitted.scaler_.transform(X), axis=1) / 3**0.5)
    shortened = threshold_losses(short, y == 1, np.ones(2), grid, largest=largest)
    assert np.abs(shortened - errors).max() > 1.0


def _centre(releases, X, y, fitted):
    """Return the intercept of the linear fit that makes the same releases."""
    facts = PublicFacts(len(X), X.shape[1], 2, (1.0, 1.0), is_scale_stated=False)
    facts = replace(facts, copies_are_single=True)
    choice = Exponential(releases[-1].mechanism.epsilon)
    problem = RankingProblem(facts, "logistic", 1.0, None, None, 0.02)
    plan = _ranking.plan_ranking(problem, "auto", Budget.of(30.0, fitted.privacy_.delta))
    assert plan.events[-1] == choice
    answers = iter([release.released for release in releases])
    data = TrainingData(X, y, np.arange(2), None)
    with intercept_releases(lambda *_: next(answers)):
        found = plan.direction.run(door_of(data, *plan.direction.events))
    np.testing.assert_allclose(found.coefficients, fitted.coef_, rtol=1e-12)
    return float(found.intercepts[0])


def test_parts_never_exceed_the_budget():
    for n, epsilon in ((10, 0.01), (1000, 0.5), (10**5, 40.0)):
        for delta in (0.0, 1e-9):
            for mechanism in MECHANISMS:
                plan = plan_of(mechanism, n, epsilon, delta)
                spent = privacy.epsilon(plan.events, delta)
                assert epsilon * (1 - 1e-5) <= spent <= epsilon * (1 + 1e-12)


def plan_of(mechanism, n, epsilon, delta):
    facts = PublicFacts(n, 5, 2, (1.0, 1.0))
    problem = RankingProblem(facts, "logistic", 1.0, None, None, 0.02)
    return _ranking.plan_ranking(problem, mechanism, Budget.of(epsilon, delta))


COUNTS = [(1e17, 1), (1, 1e300), (5e-324, 1e308)]
BUDGETS = [(2000.0, "auto"), (1e6, 0.0), (0.01, 0.25)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "params",
    [*({"class_counts": c} for c in COUNTS), *({"epsilon": e, "delta": d} for e, d in BUDGETS)],
    ids=str,
)
@every_mechanism
def test_absurd_public_numbers_are_used_as_far_as_they_make_sense(mechanism, params):
    fitted = model(mechanism=mechanism, threshold_share=0.9, **params)
    fitted.fit(np.eye(4), np.array([0, 1, 0, 1]))
    assert np.isfinite([*fitted.coef_[0], *fitted.intercept_]).all()


@every_delta
def test_a_rare_flag_has_the_right_sign_at_every_share(delta):
    """Where rows are not centred, the majority pulls against it. Exchanged labels exchange it."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(6000) < 0.05, rng.standard_normal((6000, 4))]).astype(float)
    noise = rng.logistic(size=6000)
    for share in (0.08, 0.3):
        score = X[:, 1] + 1.5 * X[:, 0] + noise
        y = (score > np.quantile(score, 1.0 - share)).astype(int)
        fits = [
            PrivateAUCClassifier(epsilon=5.0, delta=delta, classes=[0, 1]).fit(X, labels)
            for labels in (y, 1 - y)
        ]
        assert fits[0].coef_[0, 0] > 0.0 > fits[1].coef_[0, 0]


def test_without_an_intercept_the_threshold_is_zero(data):
    assert model(fit_intercept=False).fit(*data).intercept_ == 0.0
