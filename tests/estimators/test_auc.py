"""PrivateAUCClassifier: ranking, threshold, public numbers, budgets."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateAUCClassifier, privacy
from dp_halfspace.algorithms.engine.preconditioner import release_preconditioner
from dp_halfspace.algorithms.ranking import auc_training
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.rows.rows import Rows
from tests.algorithms.support import permit_for
from tests.releases import record_releases

MECHANISMS = ["noisy_gd", "mean_difference", "objective", "output"]

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


@every_mechanism
@pytest.mark.parametrize("label", [0, 1])
def test_an_empty_class_is_silent(mechanism, label, data):
    fitted = model(mechanism=mechanism).fit(data[0], np.full(len(data[1]), label))
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.intercept_).all()


def test_public_counts_buy_no_count(data):
    private = model().fit(*data).privacy_
    stated = model(class_counts=(300, 2700)).fit(*data).privacy_
    assert len(stated.events) == len(private.events) - 1
    assert dict(stated.public)["class_counts"] is not None


@every_delta
def test_threshold_given_or_bought(delta, data):
    X, y = data
    bought = model(delta=delta, epsilon=20.0).fit(X, y)
    given = model(delta=delta, epsilon=20.0, threshold=0.25).fit(X, y)
    assert any(isinstance(e, privacy.Exponential) for e in bought.privacy_.events)
    assert not any(isinstance(e, privacy.Exponential) for e in given.privacy_.events)
    assert given.intercept_[0] == pytest.approx(-0.25)
    assert bought.score(X, y) > max(y.mean(), 1 - y.mean()) - 0.005
    np.testing.assert_array_equal(given.predict(X), (X @ given.coef_[0] > 0.25).astype(int))


def test_class_weight_moves_the_threshold(data):
    X, y = data
    heavy = model(epsilon=50.0, class_weight={0: 1, 1: 1000}).fit(X, y)
    light = model(epsilon=50.0, class_weight={0: 1000, 1: 1}).fit(X, y)
    # An epsilon of one for the threshold: 60 errors too many have weight exp(-30).
    assert heavy.predict(X)[y == 1].mean() > 0.8
    assert light.predict(X)[y == 0].mean() < 0.03


@pytest.mark.parametrize("d", [5, 50])
def test_auto_runs_the_mean_difference_for_a_rare_class_among_many_columns(d):
    X, y = table(n=4000, d=d, share=0.01)
    for share, counts in ((0.01, (1, 99)), (0.3, (3, 7))):
        with record_releases() as releases:
            fitted = model(class_counts=counts, threshold=0.0).fit(X, y)
        values = [release.value for release in releases[1:]]
        same = all(np.array_equal(values[0], value) for value in values)
        assert same == (share < 0.03 and d > 40)
        steps = fitted.privacy_.events[-1]
        assert steps.count == len(values)


@pytest.mark.parametrize("d", [5, 50])
def test_auto_charges_the_same_events_whatever_the_count(d):
    X, y = table(n=4000, d=d, share=0.01)
    for params in ({}, {"delta": 0.0}):
        events = [
            model(**params).fit(X, labels).privacy_.events
            for labels in (y, 1 - y, np.arange(4000) % 2)
        ]
        assert events[0] == events[1] == events[2]


@pytest.mark.parametrize(
    ("n", "epsilon", "pays"),
    [(1000, 0.6, False), (1000, 0.9, True), (100, 0.9, False), (10**5, 0.2, True)],
)
def test_pure_epsilon_buys_a_preconditioner_if_large_or_if_the_noise_is_small(n, epsilon, pays):
    plan = plan_of("auto", n, epsilon, 0.0)
    assert plan.public["private_preconditioner"] == pays
    assert privacy.epsilon(plan.events, 0.0) == pytest.approx(epsilon)


def test_what_follows_the_count_moves_no_noise():
    """The rarer the class, the shorter the steps and the weaker the map; weights stay below one."""
    plan = plan_of("auto", 10**4, 0.05, 1e-9)
    ranker = plan.ranker
    paces, powers = [], []
    for count in (-1e9, 0.0, 20.0, 100.0, 1000.0, 5000.0, 9980.0, 1e9):
        adapted, weights = ranker.adapt_to_count(count, 10.0, plan.problem)
        assert adapted.plan.events == ranker.plan.events
        before, after = ranker.plan.descent, adapted.plan.descent
        assert replace(after, step_size=before.step_size) == before
        assert 0 < weights.min() <= weights.max() == 1.0
        paces.append(after.step_size / before.step_size)
        powers.append(adapted.plan.preconditioner.power)
    for values in (paces, powers):
        assert 0 < values[1] < values[2] < values[3] < values[4] < values[5] < 1.0
        assert values[:2] == pytest.approx([values[-1]] * 2)
        assert values[-2] == pytest.approx(values[2])


@pytest.mark.parametrize("epsilon", [1.0, 30.0, 1e6])
def test_steps_are_longer_with_many_records_for_each_column(epsilon):
    """The longer the path, the more iterates are averaged, and the longer is the constant column.

    However much the records weigh, steps are not so long that they would oscillate.
    """
    plan = plan_of("auto", 10**4, epsilon, 1e-9)
    ranker, n_columns = plan.ranker, 6
    before = ranker.plan.descent
    factors = []
    for count in (10.0, 100.0, 200.0, 600.0, 5000.0):
        adapted, weights = ranker.adapt_to_count(count, 0.0, plan.problem)
        assert adapted.plan.events == ranker.plan.events
        after = adapted.plan.descent
        assert replace(after, step_size=before.step_size, steps=before.steps) == before
        steps = replace(before.steps, tail_fraction=after.steps.tail_fraction)
        assert after.steps == steps
        # The steps without this rule, and their product with the weights of all records.
        plain = before.step_size / (1.0 + (20.0 / (count * ranker.mu)) ** 2)
        total = count * weights[1] + (10**4 - count) * weights[0]
        steady = 6.0 * n_columns / (total * plain)
        signal = count * min(ranker.mu, 4.0) / (3.6 * n_columns**1.5)
        longer = min(max(signal, 1.0), 4.0)
        factor = min(max(min(longer, steady), 1.0), 2.0 * steady)
        assert after.step_size == pytest.approx(factor * plain, rel=1e-12)
        assert after.steps.tail_fraction == pytest.approx(0.25 * min(longer, 2.0), rel=1e-12)
        assert adapted.constant_column == pytest.approx(0.2 * longer, rel=1e-12)
        factors.append(factor)
    assert factors[0] == 1.0
    assert (max(factors) == 4.0) == (epsilon > 1.0)
    assert (min(factors) < 0.5) == (epsilon > 1.0)


def test_without_a_preconditioner_steps_are_not_longer():
    problem = replace(problem_of(10**6, 30.0, 1e-9), n_features=600)
    ranker = auc_training.plan_ranking(problem, "noisy_gd").ranker
    assert ranker.plan.preconditioner is None
    adapted, _ = ranker.adapt_to_count(5e5, 0.0, problem)
    assert adapted.constant_column == ranker.constant_column
    assert adapted.plan.descent.step_size == pytest.approx(ranker.plan.descent.step_size)


@pytest.mark.filterwarnings("ignore:random_state")
def test_the_averaged_iterates_are_those_of_the_longer_path():
    """Repeat the steps from what was released, with the length, tail and constant they should have.

    Planted: the length and the number of averaged iterates of the plan.
    """
    X, y = table(share=0.03)
    fitted = model(epsilon=30.0, random_state=0, threshold=0.0)
    with record_releases() as releases:
        fitted.fit(X, y)
    count, moment, *gradients = releases
    problem = problem_of(len(X), 30.0, fitted.privacy_.delta)
    problem = replace(problem, threshold_share=0.0)
    ranker = auc_training.plan_ranking(problem, "auto").ranker
    deviation = count.mechanism.sigma
    adapted, _ = ranker.adapt_to_count(float(count.released[0]), deviation, problem)
    assert adapted.constant_column == pytest.approx(0.8)
    n_columns = X.shape[1] + 1
    preconditioner = released_preconditioner(moment, adapted.plan.preconditioner, n_columns)
    step = adapted.plan.descent.step_size
    assert step > 3.9 * ranker.plan.descent.step_size

    def averaged(step_size, n_averaged):
        point, velocity = np.zeros((2, n_columns))
        points = []
        for gradient in gradients:
            velocity = 0.8 * velocity + step_size * gradient.released
            point = point + velocity
            points.append(point)
        return (preconditioner.T @ np.mean(points[-n_averaged:], axis=0))[:-1]

    assert fitted.coef_[0] == pytest.approx(averaged(step, 30), rel=1e-9)
    assert fitted.coef_[0] != pytest.approx(averaged(step, 15), rel=1e-3)
    plain = averaged(ranker.plan.descent.step_size, 30)
    assert fitted.coef_[0] != pytest.approx(plain, rel=1e-3)


def released_preconditioner(moment, plan, n_columns):
    """Return the map that follows from a released moment, whatever the rows are."""
    rows = Rows(np.zeros((plan.n_samples, n_columns)))
    with intercept_releases(lambda *_: moment.released):
        return release_preconditioner(rows, plan, permit_for(plan.mechanism.event)).root()


@pytest.mark.filterwarnings("ignore:random_state")
def test_a_class_of_few_records_is_ranked_better_by_small_steps(monkeypatch):
    """Planted: the steps and the preconditioner of classes of equal size."""
    rng = np.random.default_rng(0)
    y = (rng.random(8000) < 0.025).astype(int)
    X = np.exp(0.7 * (rng.standard_normal((8000, 6)) + y[:, None])) / 10.0 - 1.0

    def area():
        fits = [model(epsilon=0.1, random_state=seed).fit(X / 2.5, y) for seed in range(8)]
        return np.mean([roc_auc_score(y, fitted.decision_function(X)) for fitted in fits])

    adapted = area()
    monkeypatch.setattr(auc_training.GradientPlan, "with_step_scale", lambda plan, *_: plan)
    assert adapted > area() + 0.05


def test_parts_never_exceed_the_budget():
    for n, epsilon in ((10, 0.01), (1000, 0.5), (10**5, 40.0)):
        for delta in (0.0, 1e-9):
            for mechanism in MECHANISMS:
                plan = plan_of(mechanism, n, epsilon, delta)
                spent = privacy.epsilon(plan.events, delta)
                assert epsilon * (1 - 1e-5) <= spent <= epsilon * (1 + 1e-12)


def problem_of(n, epsilon, delta):
    return auc_training.RankingProblem(
        n_samples=n,
        n_features=5,
        is_sparse=False,
        data_norm=1.0,
        intercept=1.0,
        loss="logistic",
        alpha=None,
        positive_share=None,
        threshold_share=0.02,
        budget=Budget.of(epsilon, delta),
    )


def plan_of(mechanism, n, epsilon, delta):
    return auc_training.plan_ranking(problem_of(n, epsilon, delta), mechanism)


COUNTS = [(1e17, 1), (1, 1e300), (5e-324, 1e308)]
BUDGETS = [(2000.0, "auto"), (1e6, 0.0), (0.01, 0.25)]


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
