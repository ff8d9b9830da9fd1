"""PrivateTableClassifier: any table, one budget, and nothing that the entries can be seen by."""

import json
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import check_estimators_empty_data_messages

from dp_halfspace import (
    BudgetError,
    PrivacyLedger,
    PrivacyWarning,
    PrivateTableClassifier,
)
from dp_halfspace.estimators import table as module
from dp_halfspace.inspection import model_card
from dp_halfspace.privacy import PrivacyRecord, accounting
from dp_halfspace.privacy.events import Either, Exponential, Gaussian, Pure, single_runs, total_mu
from tests.releases import record_releases
from tests.support import Book, checks, fitted, largest_ratio

pytestmark = pytest.mark.filterwarnings("ignore:random_state")
SCHEMA = {"age": [0, 120], "smoker": [False, True], "stage": ["I", "II", "III"], "note": "drop"}
TABLE = PrivateTableClassifier(epsilon=3.0, classes=["no", "yes"], schema=SCHEMA)


def patients(n, seed=0):
    """Every kind of column, in original units and with missing values."""
    rng = np.random.default_rng(seed)
    age, platelets = rng.uniform(20, 95, size=n), rng.normal(260_000, 90_000, size=n)
    smoker, stage = rng.random(n) < 0.4, rng.choice(["I", "II", "III"], size=n)
    city, visit = rng.choice(["Rome", "Oslo", "Bonn"], size=n), rng.integers(0, 9000, size=n)
    score = np.abs(age - 55) / 12 - 1.5 + (platelets < 2e5) + smoker + 1.5 * (stage == "III")
    score += (city == "Rome") - visit / 9000 - 0.5
    days = pd.Timestamp("2000-01-01") + pd.to_timedelta(visit, "D")
    columns = {"age": age, "platelets": platelets, "smoker": smoker, "stage": stage}
    frame = pd.DataFrame({**columns, "city": city, "visit": days, "note": "x"})
    frame.loc[rng.random(n) < 0.03, ["platelets", "stage"]] = None
    return frame, np.where(score + rng.logistic(0, 0.5, size=n) > 0, "yes", "no")


FRAME, LABELS = patients(2000)
TEST, TRUTH = patients(1000, seed=1)


def odd(frame, values):
    """The frame with other entries in its first row; columns may hold anything, as objects."""
    other = frame.astype(object)
    for name, value in values.items():
        other.loc[0, name] = value
    return other.astype({"age": object, "platelets": object})


# What a neighbour may hold in the row that differs.
NAMES = ("age", "platelets", "smoker", "stage", "city", "visit")
NEIGHBOURS = [
    dict(zip(NAMES, values, strict=True))
    for values in (
        [None, np.nan, None, None, None, pd.NaT],
        ["old", "many", "perhaps", "IV", "Paris", "soon"],
        [1e300, -np.inf, 7, 3, "", 10**400],
    )
]
STATED = {**SCHEMA, "platelets": "number", "city": "text", "visit": "date"}


@pytest.mark.parametrize("features", ["auto", "additive", "linear"])
def test_a_table_is_learnt_as_it_comes(features):
    model = clone(TABLE).set_params(features=features, random_state=0).fit(FRAME, LABELS)
    assert model.score(TEST, TRUTH) > (0.75 if features != "linear" else 0.7)
    probabilities = model.predict_proba(TEST)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    truth = (TRUTH == "yes").astype(float)
    assert np.mean((probabilities[:, 1] - truth) ** 2) < 0.19
    assert abs(probabilities[:, 1].mean() - truth.mean()) < 0.06
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(TEST))
    assert model.model_.feature_map_.is_linear == (features == "linear")


def test_more_classes_arrays_and_a_public_label_set():
    labels = np.where(FRAME["stage"].isna(), "none", np.where(LABELS == "yes", "a", "b"))
    entry = {"target": ["a", "b", "none"], "columns": {"stage": ["I", "II", "III"]}, "rows": 9}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        warnings.filterwarnings("ignore", "schema does not state")
        model = PrivateTableClassifier(schema=entry, epsilon=5.0).fit(FRAME, labels)
    assert model.decision_function(TEST).shape == model.predict_proba(TEST).shape == (1000, 3)
    assert "the label set" not in model.privacy_.summary()
    numbers = FRAME[["age", "platelets"]].to_numpy()
    model = PrivateTableClassifier(classes=["no", "yes"], schema={"0": [0, 120]}).fit(
        numbers, LABELS
    )
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(numbers).shape == (2000,)
    with pytest.warns(PrivacyWarning, match="classes=None"):
        PrivateTableClassifier().fit(numbers, LABELS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("delta", ["auto", 0.0])
@pytest.mark.parametrize("probability", [True, False])
def test_one_record_says_all_that_was_spent(epsilon, delta, probability):
    model = clone(TABLE).set_params(epsilon=epsilon, delta=delta, probability=probability)
    planned = model.set_params(random_state=1).plan(FRAME, LABELS)
    with record_releases() as releases:
        record = model.fit(FRAME, LABELS).privacy_
    assert record == planned == PrivacyRecord.from_dict(json.loads(record.to_json()))
    assert record.epsilon == epsilon
    assert accounting.delta(record.events, epsilon) <= record.delta
    is_small = dict(record.public)["solver"].endswith("exponential_mechanism")
    # A selection spends no delta, so that less than its epsilon is spent at one.
    assert accounting.epsilon(record.events, 0.0 if is_small else record.delta) > 0.999 * epsilon
    spent = Counter(release.mechanism.event for release in releases)
    public, behind = dict(record.public), spent - single_runs(record.events)
    if "ranked_by_a_column_up_to" in public:
        # A count determines which of two kinds of releases follows.
        follows = record.events[1]
        if isinstance(follows, Either):
            assert {type(event) for event in behind} == {Gaussian}
            assert total_mu(tuple(behind.items())) <= follows.mu
        else:
            ((only, times),) = behind.items()
            assert (type(only), times) == (Pure if probability else Exponential, 1)
            assert only.epsilon <= follows.epsilon
        behind.clear()
    assert not behind
    assert public["calibrated"] == (is_small and probability)
    has_odds = is_small or delta != 0.0
    assert hasattr(model, "predict_proba") == (probability and has_odds)
    assert dict(public["columns"])["age"] == "number in [0, 120]"
    assert dict(public["columns"])["city"] == "text, by the dtype of the column"
    assert len(dict(public["columns"])) == 7


def test_a_key_is_hinted_at_by_its_name_alone():
    frame = FRAME.assign(patient_id=1, visitId=2)
    with pytest.warns(PrivacyWarning, match="schema does not state") as caught:
        clone(TABLE).plan(frame, LABELS)
    (text,) = [str(w.message) for w in caught if "does not state" in str(w.message)]
    assert "by the name, 'patient_id', 'visitId' may identify rows or persons, and will be" in text
    assert "what 5 of 9 columns hold" in text
    assert " more)" not in text
    with pytest.warns(PrivacyWarning, match=r"what 6 of 10 .* and 1 more\)"):
        clone(TABLE).plan(frame.assign(height=1.7), LABELS)
    with pytest.warns(PrivacyWarning, match="'patient_id' may identify .* used as features unless"):
        clone(TABLE).plan(FRAME.assign(patient_id=1), LABELS)
    stated = {**SCHEMA, "patient_id": "drop", "visitId": "drop"}
    with pytest.warns(PrivacyWarning) as caught:
        clone(TABLE).set_params(schema=stated).plan(frame, LABELS)
    assert not any("may identify rows" in str(w.message) for w in caught)


def test_a_word_that_is_no_kind_is_shown():
    with pytest.raises(ValueError, match=r"'visit' must be .*; got 'datum'"):
        clone(TABLE).set_params(schema={**SCHEMA, "visit": "datum"}).plan(FRAME, LABELS)


def test_kinds_that_dtypes_say_are_declared_once():
    model = clone(TABLE).set_params(schema={**SCHEMA, "visit": "date"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(FRAME, LABELS)
    (text,) = [str(w.message) for w in caught if issubclass(w.category, PrivacyWarning)]
    assert text.startswith(
        "schema does not state what 2 of 7 columns hold ('platelets': number, 'city': text): this "
        "is taken from the dtypes of the table and declared public."
    )
    assert caught[0].filename == __file__
    assert (
        "The cells of 'city' are stored as objects, texts or categories, so they are read as"
        in text
    )
    assert "state schema={'city': 'number'}, or 'date', 'boolean' or a list of categories" in text
    assert "may identify rows or persons" not in text
    described = dict(dict(model.privacy_.public)["columns"])
    assert described["city"] == "text, by the dtype of the column"
    assert described["visit"] == "date"
    rows = [[1.0, 2.0], [3.0, None]] * 20
    with pytest.warns(PrivacyWarning, match="a list of rows has no dtypes, so it is read as num"):
        model = PrivateTableClassifier(classes=[0, 1]).fit(rows, [0, 1] * 20)
    assert dict(dict(model.privacy_.public)["columns"])["0"] == "number, as in all lists of rows"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(TABLE).set_params(schema=STATED).fit(FRAME, LABELS)


@pytest.mark.parametrize("odd", ["unknown", None, -1.0])
def test_numbers_that_are_stored_as_objects_are_named_and_no_cell_is(odd):
    """The message depends on the types of the columns, which are declared public, and names."""
    cells = np.arange(80.0).reshape(40, 2).astype(object)
    cells[3, 1] = odd
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateTableClassifier(classes=[0, 1]).fit(cells, [0, 1] * 20)
    (text,) = [str(w.message) for w in caught if "schema" in str(w.message)]
    assert (
        "The cells of '0', '1' are stored as objects, texts or categories, so they are read" in text
    )
    assert "even if they are numbers: state schema={'0': 'number'}" in text
    assert "{'0': 'text'}" not in text
    assert "unknown" not in text


def test_ranges_are_public_units_until_learning_pays():
    few = clone(TABLE).set_params(epsilon=0.01, features="additive").fit(FRAME, LABELS)
    assert (few.column_scales_.center[0], few.column_scales_.scale[0]) == (60.0, 40.0)
    assert dict(few.privacy_.public)["private_column_scales"] == ("platelets", "visit")
    many = clone(TABLE).set_params(epsilon=3.0).fit(FRAME, LABELS)
    assert dict(many.privacy_.public)["private_column_scales"] == ("age", "platelets", "visit")
    ranges = {**SCHEMA, "platelets": [0, 1e6], "visit": "drop"}
    none = clone(few).set_params(schema=ranges).fit(FRAME, LABELS)
    assert dict(none.privacy_.public)["private_column_scales"] == ()


def test_a_missing_number_has_an_indicator_unless_the_schema_says_that_it_is_ignored():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=4000), "b": rng.normal(size=4000)})
    missing = rng.random(4000) < 0.3
    frame.loc[missing, "a"] = None
    labels = missing ^ (rng.random(4000) < 0.1)
    found = {}
    for word in ("indicator", "ignore"):
        schema = {"a": {"kind": "number", "missing": word}, "b": "number"}
        model = PrivateTableClassifier(schema=schema, classes=[False, True], epsilon=3.0)
        model.fit(frame, labels)
        found[word] = (model.score(frame, labels), model.model_.n_features_in_)
        ignored = ", missing ignored" if word == "ignore" else ""
        assert dict(dict(model.privacy_.public)["columns"])["a"] == f"number{ignored}"
    assert found["indicator"] == (pytest.approx(0.9, abs=0.02), 4)
    # Without one, a missing number is one at the centre of its column.
    assert found["ignore"][0] < 0.86
    assert found["ignore"][1] == 3
    for facts in ({"kind": "text", "missing": "ignore"}, {"kind": "date", "missing": "drop"}):
        with pytest.raises(ValueError, match="missing is for numbers and dates"):
            PrivateTableClassifier(schema={"a": facts}, classes=[0, 1]).fit(frame, labels)


def test_a_missing_number_is_shown_in_stated_ranges_too(monkeypatch):
    """The fit estimates no scale then, and reads the same features as a prediction."""
    monkeypatch.setattr("dp_halfspace.estimators.table.scales_pay", lambda *_: False)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.uniform(10.0, 90.0, size=4000) for name in "ab"})
    missing = rng.random(4000) < 0.3
    frame.loc[missing, "a"] = None
    schema = {"a": [0, 100], "b": [0, 100]}
    model = PrivateTableClassifier(schema=schema, classes=[False, True], epsilon=np.inf)
    model.fit(frame, missing ^ (rng.random(4000) < 0.1))
    assert np.mean(model.predict(frame) == missing) > 0.98


def test_the_ledger_is_charged_before_any_noise():
    book = Book()
    model = clone(TABLE).set_params(ledger=book).fit(FRAME, LABELS)
    assert book.records == [model.privacy_]
    refusing = clone(TABLE).set_params(ledger=Book(refuse=True))
    with record_releases() as releases, pytest.raises(BudgetError):
        refusing.fit(FRAME, LABELS)
    assert releases == []
    assert set(vars(refusing)) == set(refusing.get_params())
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-2)
    cross_val_score(clone(TABLE).set_params(ledger=ledger), FRAME, LABELS, cv=3)
    assert len(ledger.entries()) == 3


def seen(values):
    """Everything but released numbers that a fit and a prediction show."""
    frame = odd(FRAME, values)
    labels = LABELS.copy()
    labels[0] = "no"
    with warnings.catch_warnings(record=True) as caught, record_releases() as releases:
        warnings.simplefilter("always")
        model = clone(TABLE).set_params(schema=STATED, random_state=3).fit(frame, labels)
        probabilities = model.predict_proba(frame)
    state = [(name, type(value), np.shape(value)) for name, value in vars(model).items()
             if name not in ("schema", "classes")]  # fmt: skip
    shapes = [(r.mechanism, r.value.shape) for r in releases[:1]]
    said = [str(warning.message) for warning in caught]
    assert np.isfinite(probabilities).all()
    return (
        model.privacy_,
        state,
        probabilities.dtype,
        probabilities.shape,
        shapes,
        said,
        model.encoding_,
    )


def test_nothing_depends_on_what_an_entry_holds():
    usual = seen({})
    for values in NEIGHBOURS:
        assert seen(values) == usual


def worst(estimator, trials=4):
    """Largest move of any query over its sensitivity."""
    frame, labels, largest = FRAME.iloc[:200], LABELS[:200], 0.0
    usual = {"age": 120, "platelets": 9e5, "city": "Oslo", "stage": "II"}
    other = np.append(np.where(labels[:1] == "yes", "no", "yes"), labels[1:])
    for k, values in enumerate([*NEIGHBOURS, usual][:trials]):
        pairs = odd(frame, {}), labels, odd(frame, values), other
        largest = max(largest, largest_ratio(estimator, *pairs, random_state=k))
    return largest


REPLAYED = clone(TABLE).set_params(epsilon=30.0, schema=STATED, random_state=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "params", [{}, {"features": "linear"}, {"class_weight": "balanced"}, {"delta": 0.0}]
)
def test_a_fit_is_a_function_of_its_releases(params):
    assert worst(clone(REPLAYED).set_params(**params)) <= 1.0


def test_a_record_leaves_the_scores_of_the_others_alone():
    """To the last bit: otherwise a record could move others from cell to cell."""
    model = clone(TABLE).set_params(features="auto").fit(FRAME, LABELS)
    first, second = (model.decision_function(odd(FRAME, v)) for v in ({}, NEIGHBOURS[2]))
    np.testing.assert_array_equal(first[1:], second[1:])
    assert first[0] != second[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "column",
    [np.nan, 0.0, 1e300, -1e300, "", None, True, pd.Timestamp("1970-01-01"), pd.NaT, 1e-320],
    ids=str,
)
def test_a_column_of_one_value_is_a_column(column):
    frame = FRAME.assign(odd=pd.Series([column] * len(FRAME)), age=column)
    model = clone(TABLE).set_params(schema={"age": [0, 120]}, epsilon=1.0)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "schema does not state|by released scales")
        model.fit(frame, LABELS)
        assert np.isfinite(model.decision_function(frame)).all()


def test_few_rows_and_absent_classes_fit():
    for n in (1, 5):
        model = clone(TABLE).fit(FRAME[:n], np.repeat("no", n))
        assert model.predict(TEST).shape == (1000,)
    everything_dropped = dict.fromkeys(FRAME.columns, "drop")
    with pytest.raises(ValueError, match="every column of X is dropped by the schema"):
        clone(TABLE).set_params(schema=everything_dropped).fit(FRAME, LABELS)


def test_other_dtypes_and_orders_at_prediction():
    model = clone(TABLE).fit(FRAME, LABELS)
    wanted = model.decision_function(TEST)
    other = TEST[TEST.columns[::-1]].assign(more=1)
    other = other.astype({"age": str, "city": "category"})
    other["smoker"] = other["smoker"].astype(int)
    other["visit"] = other["visit"].astype(object)
    np.testing.assert_allclose(model.decision_function(other), wanted)
    with pytest.raises(ValueError, match="X lacks columns of the table of the fit: 'city'"):
        model.predict(TEST.drop(columns="city"))


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
@pytest.mark.parametrize(("estimator", "check"), checks([PrivateTableClassifier(epsilon=50.0)]))
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")
def test_a_table_without_columns_is_refused_in_the_words_of_scikit_learn():
    check_estimators_empty_data_messages("table", PrivateTableClassifier())
    with pytest.raises(ValueError, match=r"X has 0 feature.s. while a minimum of 1") as caught:
        PrivateTableClassifier().fit(FRAME[[]], LABELS, groups=np.arange(len(LABELS)))
    assert str(len(LABELS)) not in str(caught.value)


def test_seeds_repeat_and_weights_move():
    with pytest.warns(PrivacyWarning, match="random_state"):
        model = clone(TABLE).set_params(random_state=7).fit(FRAME, LABELS)
    again = fitted(TABLE, FRAME, LABELS, random_state=7)
    np.testing.assert_array_equal(model.predict_proba(TEST), again.predict_proba(TEST))
    weighted = fitted(TABLE, FRAME, LABELS, random_state=7, class_weight={"no": 1.0, "yes": 0.2})
    assert weighted.predict_proba(TEST)[:, 1].mean() < model.predict_proba(TEST)[:, 1].mean() - 0.1
    with pytest.raises(ValueError, match="balanced"):
        clone(TABLE).set_params(class_weight="balanced", delta=0.0).fit(FRAME, LABELS)


RARE_ROWS = np.random.default_rng(11).normal(size=(6000, 4))
RARE = (RARE_ROWS[:, 0] + 0.5 * np.random.default_rng(12).normal(size=6000) > 2.0).astype(int)
NUMBERS = PrivateTableClassifier(
    epsilon=2.0, classes=[0, 1], schema={str(k): "number" for k in range(4)}
)


def test_a_rare_class_is_ranked_and_has_probabilities_of_the_population():
    model = clone(NUMBERS).set_params(random_state=3).fit(RARE_ROWS, RARE)
    probabilities = model.predict_proba(RARE_ROWS)[:, 1]
    assert roc_auc_score(RARE, probabilities) > 0.9
    assert abs(probabilities.mean() - RARE.mean()) < 0.015
    # Not worse than one probability for all.
    assert np.mean((probabilities - RARE) ** 2) < RARE.mean() * (1.0 - RARE.mean())


@pytest.mark.parametrize("weights", [None, "balanced", {0: 0.1, 1: 1.0}])
def test_balanced_weights_are_for_a_balanced_population(weights):
    model = clone(NUMBERS).set_params(class_weight=weights, random_state=4)
    record = model.plan(RARE_ROWS, RARE)
    model.fit(RARE_ROWS, RARE)
    assert model.privacy_ == record
    assert accounting.delta(record.events, 2.0) <= record.delta
    if not isinstance(weights, dict):
        assert dict(record.public)["class_weight"] == weights
    share = model.predict(RARE_ROWS).mean()
    assert (share > 2.0 * RARE.mean()) == (weights is not None)


def test_labels_that_scikit_learn_has_replaced_are_named():
    """For probabilities `cross_val_predict` hands over positions in the place of texts."""
    labels = np.where(RARE == 1, "yes", "no")
    model = clone(NUMBERS).set_params(classes=["no", "yes"])
    assert len(cross_val_predict(model, RARE_ROWS, labels, cv=2)) == len(labels)
    with pytest.raises(
        ValueError, match=r"classes=\[0, 1\], also in ensembles and cross_val_predict"
    ):
        cross_val_predict(model, RARE_ROWS, labels, cv=2, method="predict_proba")
    positions = clone(NUMBERS).set_params(classes=[0, 1])
    found = cross_val_predict(positions, RARE_ROWS, labels, cv=2, method="predict_proba")
    assert found.shape == (len(labels), 2)
    with pytest.raises(ValueError, match=r"public labels in classes$"):
        model.fit(RARE_ROWS, np.where(RARE == 1, "yes", "maybe"))


def test_a_table_without_rows_is_refused_by_a_sentence():
    table = pd.DataFrame({"age": [50.0, 60.0] * 20, "ward": ["a", "b"] * 20})
    schema = {"age": [0, 100], "ward": ["a", "b"]}
    model = PrivateTableClassifier(classes=[0, 1], schema=schema, epsilon=100.0)
    with pytest.raises(ValueError, match=r"^X has no rows$"):
        model.fit(table[:0], [])
    with pytest.raises(ValueError, match=r"^X must be two-dimensional"):
        model.fit([], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(table, [0, 1] * 20)
    with pytest.raises(ValueError, match=r"^X has no rows$"):
        model.predict(table[:0])


def test_a_pure_budget_that_pays_for_no_scales_says_so():
    X, y = np.random.default_rng(0).normal(size=(100, 5)), np.arange(100) % 2
    table = PrivateTableClassifier(
        delta=0.0, features="linear", classes=[0, 1], schema=dict.fromkeys("01234", "number")
    )
    with pytest.warns(PrivacyWarning, match="too small to estimate the scales of 5 columns"):
        assert np.isfinite(table.fit(X, y).decision_function(X)).all()
    paid = clone(table).set_params(epsilon=50.0).fit(900.0 * np.repeat(X, 8, axis=0), y.repeat(8))
    np.testing.assert_allclose(paid.column_scales_.scale, 900.0, rtol=0.3)
    with pytest.raises(AttributeError) as refused:
        table.predict_proba(X)
    assert "with delta=0 only a small table" in str(refused.value.__cause__)
    selected = clone(TABLE).set_params(delta=0.0).fit(FRAME[:300], LABELS[:300])
    assert hasattr(selected, "predict_proba")


def test_a_fit_without_names_forgets_those_of_the_one_before():
    frame, y = patients(80)
    model = clone(TABLE).set_params(schema={"0": "number"}, classes=None)
    numbers = frame[["platelets"]].rename(columns={"platelets": "0"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert list(model.fit(numbers, y).feature_names_in_) == ["0"]
        assert not hasattr(model.fit(numbers.to_numpy(), y), "feature_names_in_")


@pytest.mark.parametrize(
    ("strength", "params", "n_joint"),
    [
        (1850.01, {}, 154),
        (1849.99, {}, 0),
        (1850.01, {"features": "additive"}, 0),
        (1850.01, {"delta": 0.0, "epsilon": 100.0}, 0),
    ],
)
def test_numbers_beside_categories_have_joint_features_with_many_records(
    strength, params, n_joint, monkeypatch
):
    """A row has two numbers and one of three categories: five encoded columns."""
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [0.5, np.nan], "c": ["x", "y"]})
    frame, labels = pd.concat([frame] * 1000), ["no", "yes"] * 1000
    delta = 1.0 / len(frame) ** 2
    epsilon = accounting.epsilon([Gaussian(strength * 5**0.5 / len(frame))], delta)
    model = PrivateTableClassifier(
        epsilon=epsilon,
        delta=delta,
        classes=["no", "yes"],
        schema={"a": "number", "b": "number", "c": ["x", "y", "z"]},
    )
    model.set_params(**params)
    # Three features and an indicator of each number, and three codes.
    n_components = dict(model.plan(frame, labels).public)["n_components"]
    assert n_components == 2 * 4 + 3 + n_joint
    # No more than are kept.
    monkeypatch.setattr(module, "KEPT_FEATURES", 4 * len(frame) * (2 * 4 + 3 + 31))
    assert dict(model.plan(frame, labels).public)["n_components"] <= 2 * 4 + 3 + 30


def test_a_range_in_another_unit_is_named_by_released_scales():
    """Ages in centuries clip to one end; a range that is too wide costs nothing, and no word."""
    rng = np.random.default_rng(0)
    ages, spread = rng.normal(60.0, 15.0, 4000), rng.normal(size=4000)
    table = pd.DataFrame({"age": ages, "old": ages, "x": spread})
    schema = {"age": [0, 1], "old": [0, 10**6], "x": [-4, 4]}
    model = PrivateTableClassifier(epsilon=3.0, schema=schema, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="nearly all cells of 'age' are at or beyond one end"):
        model.fit(table, (ages > 60).astype(int))
    assert "cells of &#x27;age&#x27; are at" in model_card(model, title="t")
    assert not model.set_params(schema={**schema, "age": "number"}).fit(table, spread > 0)._finding
