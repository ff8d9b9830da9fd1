"""Estimators on tables of few rows: one pure selection, by a public rule."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dp_halfspace import (
    AdaptiveMarginClassifier,
    PrivateTableClassifier,
    PureHalfspaceClassifier,
)
from dp_halfspace.datasets import in_chunks
from dp_halfspace.inspection.card import outlook_for
from dp_halfspace.privacy import Exponential, Gaussian, Pure, accounting
from dp_halfspace.rows.directions import asinh_cells
from dp_halfspace.selection.rule import COUNTS_PAY
from dp_halfspace.selection.small_tables import USUAL_SHARE, counted_share
from tests.releases import record_releases
from tests.support import largest_ratio, public

KINDS = [
    AdaptiveMarginClassifier(),
    AdaptiveMarginClassifier(delta=0.0),
    AdaptiveMarginClassifier(data_norm=1.0),
    PureHalfspaceClassifier(),
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def ward(n=300, seed=0, missing=0.0):
    """Columns of sizes from a millionth to a million, the second one telling the classes."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(n, 4)) * 10.0 ** np.array([-6.0, 2.0, 6.0, 0.0])
    y = (X[:, 1] > 100.0).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def fitted(kind, X, y, **params):
    given = {"classes": [0, 1], **params}
    model = type(kind)(**{**kind.get_params(), **given})
    return model.fit(X, y)


@pytest.mark.filterwarnings("ignore:random_state")
def test_rows_and_their_norm_in_another_unit_have_the_same_scores():
    """Of a direction as of columns on a logarithmic scale."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    kinds = set()
    for rows, labels in ((X, (X @ [1.0, -2.0, 0.5, 1.0] > 0.0).astype(int)), ward()):
        one, eight = (
            fitted(
                AdaptiveMarginClassifier(), unit * rows, labels,
                epsilon=0.5, data_norm=unit, random_state=3,
            )
            for unit in (1.0, 8.0)
        )  # fmt: skip
        scores = eight.decision_function(8.0 * rows)
        np.testing.assert_array_equal(one.decision_function(rows), scores)
        kinds.add(one.scaler_ is None)
    assert kinds == {False, True}


def test_indicators_of_what_is_missing_do_not_count_as_columns():
    """Four numbers, each with an indicator: n epsilon of 240 is enough for steps."""
    kinds = dict.fromkeys("0123", "number")
    table = PrivateTableClassifier(schema=kinds, classes=[0, 1])
    for n_samples, is_small in ((239, True), (250, False)):
        record = table.plan(*ward(n_samples))
        assert dict(record.public)["solver"].endswith("exponential_mechanism") == is_small
    model = table.fit(*ward(200))
    assert outlook_for(model).n_features == 4


def test_a_list_of_categories_counts_as_less_than_its_encoded_columns():
    """Three numbers and 80 categories: n epsilon of 512 is enough, not of 240 or of 1093."""
    kinds = dict.fromkeys("012", "number") | {"3": [f"kind {k}" for k in range(80)]}
    table = PrivateTableClassifier(schema=kinds, classes=[0, 1])
    for n_samples, is_small in ((510, True), (525, False)):
        X, y = ward(n_samples)
        rows = pd.DataFrame(X, columns=list("0123")).assign(**{"3": "kind 7"})
        record = table.plan(rows, y)
        assert dict(record.public)["solver"].endswith("exponential_mechanism") == is_small


@pytest.mark.parametrize("counts", [False, True])
def test_every_event_says_what_it_asks_for(counts):
    X, y = several(n_columns=16)
    table = PrivateTableClassifier(epsilon=1.3, classes=[0, 1, 2], probability=counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = table._fit_plan(table._training_data(X, y, None, None))
    assert len(plan.asks) == len(plan.events) == 2 + counts


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_are_counted_where_the_count_costs_little(n_classes):
    """From a public n epsilon on, for classes of equal weight."""
    X, y = ward() if n_classes == 2 else several()
    classes = list(range(n_classes))
    just = COUNTS_PAY / len(X)
    model = fitted(AdaptiveMarginClassifier(), X, y, epsilon=just, classes=classes)
    (event,) = model.privacy_.events
    assert isinstance(event, Pure)
    assert 1.0 - 1e-9 < event.epsilon / just <= 1.0
    share = 1.0 / (1.0 + math.exp(model.certainty_) / (n_classes - 1))
    assert abs(share - np.mean(model.predict(X) != y)) < 0.15
    assert share != pytest.approx(USUAL_SHARE)
    weights = dict.fromkeys(classes, 1.0) | {0: 0.5}
    for other in ({"epsilon": 0.999 * just}, {"epsilon": just, "class_weight": weights}):
        model = fitted(AdaptiveMarginClassifier(), X, y, **{"classes": classes, **other})
        assert [type(event) for event in model.privacy_.events] == [Exponential]
        assert math.exp(model.certainty_) == pytest.approx(4.0 * (n_classes - 1))


@pytest.mark.sampled(2)
@every_kind
def test_one_pure_choice_and_no_delta_is_spent(kind):
    X, y = ward()
    model = fitted(kind, X, y, epsilon=0.6)
    (event,) = model.privacy_.events
    assert isinstance(event, Exponential)
    assert 1.0 - 1e-9 < event.epsilon / 0.6 <= 1.0
    assert model.privacy_.delta_at(0.6) == 0.0
    assert accounting.delta(model.privacy_.events, 0.6) == 0.0
    asked = 0.0 if kind.delta == 0.0 else 1.0 / 300**2
    assert model.privacy_.delta == pytest.approx(asked)
    assert public(model)["solver"] == "exponential_mechanism"
    assert fitted(kind, X, y, epsilon=0.6).plan(X, y).events == model.privacy_.events
    assert model.score(X, y) > 0.8


def test_above_the_rule_the_engine_is_as_ever():
    X, y = ward(950)
    asked = {"epsilon": 1.0, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = fitted(KINDS[0], X, y, **asked)
        other = fitted(KINDS[0], X, y, solver="noisy_gd", **asked)
        sized = fitted(KINDS[0], X, y, solver="noisy_gd", **{**asked, "epsilon": 0.5})
    assert isinstance(one.privacy_.events[0], Gaussian)
    assert isinstance(sized.privacy_.events[0], Gaussian)
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize(
    "asked",
    [
        {"margin": 0.1}, {"solver": "objective_perturbation"}, {"fit_intercept": False},
        {"iterate": "last"}, {"intercept_scaling": 2.0}, {"margin": [0.1, 0.2],
        "selection": "exponential"}, {"projection": None},
    ],
)  # fmt: skip
def test_whoever_asks_for_a_way_gets_it(asked):
    X, y = ward()
    kind = AdaptiveMarginClassifier(data_norm=1.0, epsilon=0.5, classes=[0, 1])
    for params, is_selected in (({}, True), (asked, False)):
        planned = clone(kind).set_params(**params).plan(X / 1e7, y)
        assert (dict(planned.public).get("solver") == "exponential_mechanism") is is_selected


def test_sparse_rows_people_and_chunks_are_left_to_the_engine():
    X, y = ward()
    kind = AdaptiveMarginClassifier(data_norm=1.0, epsilon=0.5, classes=[0, 1])
    assert not isinstance(kind.plan(X / 1e7, y).events[0], Gaussian)
    for planned in (
        kind.plan(sparse.csr_array(X / 1e7), y),
        kind.plan(X / 1e7, y, groups=np.arange(300) // 2),
        kind.plan(in_chunks(X / 1e7, 50), y),
    ):
        assert isinstance(planned.events[0], Gaussian)


@pytest.mark.sampled(2)
@every_kind
def test_what_a_model_predicts_is_what_was_counted(kind):
    """With a budget that leaves no choice the model is the best of the list, on the same rows."""
    for seed in range(6):
        X, y = ward(11, seed=seed)
        model = fitted(kind, X, y, epsilon=20.0)
        assert public(model)["solver"] == "exponential_mechanism"
        assert model.score(X, y) > 0.9


def test_scores_of_cells_are_exact_and_ranked():
    X, y = ward(missing=0.1)
    fits = (fitted(KINDS[0], X, y, epsilon=0.59) for _ in range(20))
    model = next(model for model in fits if model.scaler_ is not None)
    scores = model.decision_function(X)
    units = asinh_cells(X, model.scaler_.exponent).astype(float)
    exact = units @ model.coef_[0] + model.intercept_
    np.testing.assert_array_equal(exact * 2.0**19, np.rint(exact * 2.0**19))
    np.testing.assert_allclose(scores, exact, rtol=1e-12)
    assert len(np.unique(scores)) > 20
    assert not (scores == 0.0).any()
    np.testing.assert_array_equal(model.scaler_.transform(X), units)


@pytest.mark.sampled(2)
@every_kind
def test_columns_in_other_units_are_as_good(kind):
    X, y = ward(300, seed=5)
    mean = [
        np.mean([fitted(kind, X * factor, y, epsilon=0.58).score(X * factor, y) for _ in range(3)])
        for factor in (1.0, 10.0 ** np.array([9.0, -4.0, -7.0, 2.0]))
    ]
    assert min(mean) > 0.8


def test_class_weights_move_the_choice():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    y = (X[:, 0] + 2.0 * rng.standard_normal(300) > 0).astype(int)

    def share(weight):
        weights = {0: 1.0, 1: weight}
        return np.mean(fitted(KINDS[0], X, y, epsilon=1.5, class_weight=weights).predict(X))

    assert share(20.0) > 0.6 > 0.4 > share(0.05)


@pytest.mark.sampled(1)
@every_kind
def test_a_replay_finds_nothing(kind):
    X, y = ward(200)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = [1e300, -1e300, 1e-300, 0.0], 1 - y[0]
    model = type(kind)(**{**kind.get_params(), "classes": [0, 1]})
    assert largest_ratio(model, X, y, other, labels, n_histories=2, random_state=0) <= 1.0


SCHEMA = {"0": "number", "1": [0, 1000], "2": "number", "3": "number"}


def small_table(**params):
    given = {"schema": SCHEMA, "classes": [0, 1], "epsilon": 0.7, **params}
    return PrivateTableClassifier(**given)


def test_a_table_pays_for_its_choice_and_for_the_count_of_errors():
    X, y = ward()
    with record_releases() as releases:
        model = small_table(epsilon=0.7).fit(X, y)
    (both,) = model.privacy_.events
    assert type(both) is Pure
    assert 0.7 - 1e-8 < both.epsilon <= 0.7
    (release,) = releases
    choice = release.mechanism
    assert choice.event == both
    assert choice.choice_epsilon == pytest.approx(0.7 - 20.0 / 300)
    assert public(model)["calibrated"]
    plain = small_table(probability=False, epsilon=0.7).fit(X, y)
    assert [type(event) for event in plain.privacy_.events] == [Exponential]
    assert not public(plain)["calibrated"]
    weighted = small_table(class_weight={0: 1.0, 1: 3.0}, epsilon=0.7).fit(X, y)
    assert [type(event) for event in weighted.privacy_.events] == [Exponential]


def test_a_share_of_errors_is_made_of_what_was_released():
    X, y = ward()
    with record_releases() as releases:
        model = small_table(epsilon=0.7).fit(X, y)
    (release,) = releases
    is_constant = not model.model_.coef_.any()
    share = counted_share(release.released[1], 300, release.mechanism, 2, is_constant=is_constant)
    odds = np.log((1 - share) / share)
    assert model.certainty_ == pytest.approx(odds)


def test_probabilities_of_a_small_table_are_as_sure_as_it_is_right():
    X, y = ward(600, missing=0.05)
    Z, t = ward(2000, seed=1, missing=0.05)
    for _ in range(2):
        model = small_table(epsilon=0.39).fit(X, y)
        probability = model.predict_proba(Z)[:, 1]
        assert np.mean((probability - t) ** 2) < 0.22
        np.testing.assert_array_equal(probability > 0.5, model.predict(Z) == 1)


def test_ranges_serve_as_units_and_other_columns_stay_as_they_are():
    X, y = ward()
    model = small_table().fit(X, y)
    np.testing.assert_array_equal(model.column_scales_.center, [0.0, 500.0, 0.0, 0.0])
    rows = np.array([[1e9, 5e5, -1e9, np.nan]])
    far = np.array([[2e9, 5e5, -2e9, np.nan]])
    # Four columns, and an indicator of what is missing in each.
    assert model.model_.coef_.shape == (1, 8)
    if model.model_.coef_[0, [0, 2]].any():
        assert (model.decision_function(rows) != model.decision_function(far)).all()


@pytest.mark.parametrize("features", ["linear", "additive"])
def test_a_table_with_named_features_gets_them(features):
    X, y = ward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small_table(features=features).fit(X, y)
    assert isinstance(model.privacy_.events[0], Gaussian)


def several(n=300, seed=0, n_classes=3, n_columns=4):
    """Labels by the sizes of two columns of unknown units; missing values in the others."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(n, 4)) * 10.0 ** np.array([-6.0, 2.0, 6.0, 0.0])
    y = np.where(X[:, 1] > 100.0, 1, np.where(X[:, 2] > 1e6, 2, 0))
    y[-n_classes:] = np.arange(n_classes)
    X[rng.random(n) < 0.1, 0] = np.nan
    return np.hstack([X, rng.normal(size=(n, n_columns - 4))]), y


TREES = [AdaptiveMarginClassifier(), AdaptiveMarginClassifier(delta=0.0)]
every_tree = pytest.mark.parametrize("kind", TREES, ids=str)


@pytest.mark.sampled(2)
@every_tree
@pytest.mark.parametrize(("n_classes", "n_epsilon"), [(3, 150.0), (5, 150.0), (7, 120.0)])
def test_several_classes_are_told_apart_by_one_pure_choice(kind, n_classes, n_epsilon):
    X, y = several(n_classes=n_classes)
    model = type(kind)(**{**kind.get_params(), "epsilon": n_epsilon / 300})
    model = model.set_params(classes=np.arange(n_classes)).fit(X, y)
    (event,) = model.privacy_.events
    assert isinstance(event, Exponential)
    assert 1.0 - 1e-9 < event.epsilon / model.epsilon <= 1.0
    assert accounting.delta(model.privacy_.events, model.epsilon) == 0.0
    assert public(model)["solver"] == "exponential_mechanism"
    assert model.plan(X, y).events == model.privacy_.events
    assert model.coef_.shape == (n_classes, 4)
    assert model.score(X, y) > (0.6 if n_classes < 6 else 0.4)
    again = model.decision_function(X)
    np.testing.assert_array_equal(again[17:18], model.decision_function(X[17:18]))
    np.testing.assert_array_equal(model.classes_[again.argmax(axis=1)], model.predict(X))


@pytest.mark.sampled(3)
@every_tree
@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_several_classes_are_told_apart_by_two_pure_choices(kind, n_classes):
    X, y = several(n_classes=n_classes, n_columns=40)
    model = clone(kind).set_params(epsilon=2.5, classes=np.arange(n_classes)).fit(X, y)
    events = model.privacy_.events
    # Two choices, and a count of the errors.
    assert [type(event) for event in events] == [Exponential] * 2 + [Pure]
    assert 1.0 - 1e-8 < sum(event.epsilon for event in events) / model.epsilon <= 1.0
    assert accounting.delta(events, model.epsilon) == 0.0
    assert (public(model)["solver"], public(model)["n_stages"]) == ("exponential_mechanism", 2)
    assert model.plan(X, y).events == events
    assert model.score(X, y) > (0.75 if n_classes < 7 else 0.6)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores[17:18], model.decision_function(X[17:18]), rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))


@pytest.mark.sampled(1)
@every_tree
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_replay_of_a_tree_finds_nothing(kind, epsilon):
    X, y = several(120)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = [1e300, -1e300, 1e-300, 0.0], (y[0] + 1) % 3
    model = clone(kind).set_params(classes=[0, 1, 2], epsilon=epsilon)
    assert largest_ratio(model, X, y, other, labels, n_histories=2, random_state=0) <= 1.0


def test_a_table_of_several_classes_counts_the_errors_of_its_choice():
    X, y = several()
    with record_releases() as releases:
        model = small_table(classes=[0, 1, 2], epsilon=0.7).fit(X, y)
    (release,) = releases
    assert [type(event) for event in model.privacy_.events] == [Pure]
    is_constant = not model.model_.coef_.any()
    share = counted_share(release.released[1], 300, release.mechanism, 3, is_constant=is_constant)
    slope = np.log(2.0 * (1.0 - share) / share)
    assert model.certainty_ == pytest.approx(slope)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    # The farther a row is from the cuts, the surer is its label, by a tenth of the log odds.
    most = 1.0 / (1.0 + 2.0 * np.exp(-1.1 * slope))
    assert (
        (probability.max(axis=1) >= 1.0 - share - 1e-9) & (probability.max(axis=1) <= most)
    ).all()
    np.testing.assert_array_equal(probability.argmax(axis=1), model.predict(X))


@pytest.mark.slow
def test_scores_of_extreme_rows_are_finite():
    """Scores are finite at the ends of the floats, too."""
    X, y = ward(200)
    rows = np.vstack([X * 10.0**k for k in (-300, -100, 0, 100, 290)])
    for kind in KINDS:
        for _ in range(6):
            model = fitted(kind, X, y, epsilon=0.5)
            assert np.isfinite(model.decision_function(rows)).all()


def test_missing_values_change_nothing_but_their_rows():
    X, y = ward(missing=0.2)
    model = fitted(KINDS[0], X, y)
    whole = model.decision_function(X)
    for place in (0, 17, 299):
        alone = model.decision_function(X[place : place + 1])[0]
        assert alone == pytest.approx(whole[place], rel=1e-12)


RANGES = {f"x{j}": [0, 1] for j in range(20)}


@pytest.mark.parametrize(
    ("model", "is_selected"),
    [
        (AdaptiveMarginClassifier(), True),
        (AdaptiveMarginClassifier(data_norm=1.0), False),
        (PrivateTableClassifier(), True),
        (PrivateTableClassifier(schema=RANGES), False),
    ],
)
def test_pure_fits_are_selections_where_scales_cannot_be_estimated(model, is_selected):
    """With 20 columns scales are estimated from ``n epsilon = 2400`` on."""
    X = pd.DataFrame(np.random.default_rng(0).random((1000, 20)), columns=list(RANGES))
    y = np.arange(1000) % 2
    for epsilon, selected in ((1.49, True), (2.39, is_selected), (2.41, False)):
        plan = clone(model).set_params(epsilon=epsilon, delta=0.0, classes=[0, 1]).plan(X, y)
        assert ("n_candidates" in dict(plan.public)) == selected
