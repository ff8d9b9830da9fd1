"""Types that are no numbers, labels that are missing, and a label set that nobody stated."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dp_halfspace
from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyWarning,
    PrivateSearchCV,
    PrivateTableClassifier,
)
from dp_halfspace.data import validation
from dp_halfspace.data.chunked_data import checked_chunks
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.validation import check_features
from dp_halfspace.preprocessing import PrivateScaler, PublicScaler
from tests.conftest import separated
from tests.instances import ESTIMATORS, made

pytestmark = pytest.mark.usefixtures("short_lists")
X, Y = separated(40, 2)
one_of_each = pytest.mark.parametrize("name", ESTIMATORS)


def estimator(name, **params):
    return made(name, **{"classes": [0, 1], "epsilon": 5.0, "data_norm": 1.0, **params})


def frame(column):
    return pd.DataFrame({"a": X[:, 0], "when": column})


DATES = "^X holds dates or durations in column 'when': .* PrivateTableClassifier"
HOLE = "^Input X contains NaN or infinity in column 'when': "
TEXT = "^X is not numeric in column 'when': encode texts .* PrivateTableClassifier"
days = pd.date_range("2020-01-01", periods=40)
COLUMNS = {
    "dates": (days, DATES),
    "dates with zone": (days.tz_localize("UTC"), DATES),
    "durations": (pd.to_timedelta(np.arange(40), unit="D"), DATES),
    "dates with a gap": (pd.Series(days).where(Y == 1), DATES),
    "Int64": (pd.array([1, None] * 20, dtype="Int64"), HOLE),
    "Float64": (pd.array([1.5, None] * 20, dtype="Float64"), HOLE),
    "boolean": (pd.array([True, None] * 20, dtype="boolean"), HOLE),
    "None": (pd.Series([1.0, None] * 20, dtype=object), HOLE),
    "NA": (pd.Series([1.0, pd.NA] * 20, dtype=object), HOLE),
    "NaT": (pd.Series([1.0, pd.NaT] * 20, dtype=object), HOLE),
    "category": (pd.Categorical([1, None] * 20), HOLE),
    "text": (pd.array(["a", None] * 20, dtype="string"), TEXT),
    "categories of text": (pd.Categorical(["a", "b"] * 20), TEXT),
    "periods": (
        pd.period_range("2020-01", periods=40, freq="M"),
        "^X is not numeric in column 'when': every arg",
    ),
}


@pytest.mark.sampled(28)
@one_of_each
@pytest.mark.parametrize(("column", "said"), COLUMNS.values(), ids=COLUMNS)
def test_what_is_no_number_is_refused_by_the_name_of_its_column(name, column, said):
    table, kind = frame(column), TypeError if "every arg" in said else ValueError
    for rows in (table, table[["when"]]):
        with pytest.raises(kind, match=said) as error:
            estimator(name).fit(rows, Y)
        assert "2020" not in f"{error.value}{error.value.__context__}"
        assert said != DATES or len(str(error.value)) < 200


def test_dates_are_refused_in_arrays_and_at_prediction():
    dates = days.to_numpy()[:, None]
    with pytest.raises(ValueError, match="dates or durations in column 0"):
        estimator("OutputPerturbationClassifier").fit(dates, Y)
    with pytest.raises(ValueError, match="dates or durations in column 0"):
        estimator("OutputPerturbationClassifier").fit(list(dates), Y)
    model = estimator("OutputPerturbationClassifier").fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="dates or durations in column 0"):
        model.predict(dates)


def test_missing_values_at_prediction_are_not_said_to_be_in_the_way_of_a_fit():
    model = estimator("OutputPerturbationClassifier").fit(X, Y)
    with pytest.raises(ValueError, match=r"in column 0: replace .* first, with a rule"):
        model.predict(np.where(np.arange(X.shape[1]) == 0, np.nan, X))


@one_of_each
def test_structured_arrays_are_to_be_made_data_frames(name):
    """Not X.reshape(-1, 1)."""
    for rows in (pd.DataFrame(X).to_records(), pd.DataFrame(X).to_records(index=False)[:1]):
        with pytest.raises(ValueError, match=r"structured array .*from_records\(X\)$"):
            estimator(name).fit(rows, Y[: len(rows)])


def test_a_matrix_is_an_array():
    rows = sparse.csr_matrix(X).todense()
    model = estimator("OutputPerturbationClassifier").fit(rows, Y)
    assert (model.predict(rows) == model.predict(X)).all()


@pytest.mark.parametrize("kind", [str, object, "U", "S"])
def test_numbers_that_are_stored_as_texts_are_numbers(kind):
    model = estimator("OutputPerturbationClassifier").fit(X, Y)
    texts = X.astype(str).astype(kind)
    for rows in (texts, texts.tolist()):
        assert model.decision_function(rows).tobytes() == model.decision_function(X).tobytes()


@one_of_each
def test_masked_arrays_are_refused_by_their_type(name):
    """Whether an entry is masked is private, so an empty mask is refused, too."""
    some, none = np.arange(80).reshape(40, 2) == 7, np.ma.nomask
    messages = set()
    for mask in (some, none):
        for rows in (np.ma.array(X, mask=mask), list(np.ma.array(X, mask=mask))):
            with pytest.raises(ValueError, match=r"^X is a masked array") as caught:
                estimator(name).fit(rows, Y)
            messages.add(str(caught.value))
    assert len(messages) == 1
    with pytest.raises(ValueError, match=r"^y is a masked array"):
        estimator(name).fit(X, np.ma.array(Y))
    model = estimator(name).fit(X, Y)
    with pytest.raises(ValueError, match=r"^X is a masked array"):
        model.predict(np.ma.array(X))


@pytest.mark.sampled(3)
@one_of_each
def test_nullable_and_categorical_numbers_are_numbers(name):
    for column in (
        pd.array([1, 2] * 20, dtype="Int64"),
        pd.array([True, False] * 20, dtype="boolean"),
        pd.Categorical([1, 2] * 20),
    ):
        assert estimator(name).fit(frame(column), Y).n_features_in_ == 2


MISSING = {"None": None, "NaN": np.nan, "NaT": pd.NaT, "NA": pd.NA}


ABSENT = {**MISSING, "Arrow": pa.scalar(None, pa.float64())}
LONG, LABELS = separated(400, 2)


def objects(absent):
    """Rows as objects, of which some entries are missing."""
    table = LONG.astype(object)
    table[5, 1] = table[7, 0] = table[9, 1] = absent
    return table


FORMS = {
    "array": np.asarray,
    "array by columns": np.asfortranarray,
    "lists": lambda table: table.tolist(),
    "frame": lambda table: pd.DataFrame(table, columns=["a", "b"]),
}


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore:random_state:dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize("form", FORMS)
@one_of_each
def test_every_missing_value_among_objects_is_one_missing_value(name, form):
    """Which object stands for it changes no bit and raises nothing, in a fit or afterwards."""
    model = estimator(name, data_norm=None, random_state=0)
    takes_missing = model.__sklearn_tags__().input_tags.allow_nan
    found = set()
    for absent in ABSENT.values():
        rows = FORMS[form](objects(absent))
        if takes_missing:
            scores = clone(model).fit(rows, LABELS).decision_function(rows)
            assert np.isfinite(scores).all()
            found.add(scores.tobytes())
        else:
            columns = "'a', 'b'" if form == "frame" else "0, 1"
            match = f"^Input X contains NaN or infinity in columns {columns}: "
            with pytest.raises(ValueError, match=match) as caught:
                clone(model).fit(rows, LABELS)
            found.add(str(caught.value))
    assert len(found) == 1


@pytest.mark.filterwarnings("ignore:random_state:dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize("scaler", [PrivateScaler(random_state=0), PublicScaler([[0, 1], [0, 1]])])
def test_scalers_and_chunks_read_them_alike(scaler):
    found = [clone(scaler).fit_transform(objects(absent)) for absent in ABSENT.values()]
    chunks = []
    for absent in ABSENT.values():
        table = objects(absent)
        read = LocalChunks.read_by([lambda table=table: table], table[:2])
        chunks.append(checked_chunks(clone(scaler), read, reset=True, allow_missing=True))
    for rows, read in zip(found[1:], chunks[1:], strict=True):
        np.testing.assert_array_equal(rows, found[0])
        for chunk, first in zip(read.values(), chunks[0].values(), strict=True):
            np.testing.assert_array_equal(chunk, first)


WHOLE = [1, 0] * 20
SINGLE = {
    "truth values": lambda last: pd.Series([*WHOLE[:-1], last], dtype=object).astype(
        bool if last == 0 else object
    ),
    "whole numbers": lambda last: pd.Series([*WHOLE[:-1], last]).astype(
        np.int16 if last == 0 else float
    ),
}


@pytest.mark.filterwarnings("ignore:random_state:dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize("kind", SINGLE)
def test_a_missing_cell_does_not_change_the_precision_of_all_rows(kind):
    """Beside float32 a column of whole numbers is float32, with a missing value float64."""
    found = []
    for last in (0, None):
        table = pd.DataFrame({"a": X[:, 0].astype(np.float32), "b": SINGLE[kind](last)})
        checked = check_features(BaseEstimator(), table, reset=True, allow_missing=True)
        found.append((checked.dtype, checked[:-1].tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize("odd", [1, 1.5, "1.5", np.float64(1.5), np.longdouble(1.5)])
def test_one_row_of_a_list_does_not_change_the_precision_of_all_rows(odd):
    """A list of float32 rows has no type, and one other row or cell would give it another one."""
    singles = list(X.astype(np.float32))
    other = [*singles[:-1], [odd, *singles[-1][1:]]]
    wide = [*singles[:-1], singles[-1].astype(np.float64)]
    found = [check_features(BaseEstimator(), rows, reset=True) for rows in (singles, other, wide)]
    assert {rows.dtype.type for rows in found} == {np.float64}
    assert found[0][:-1].tobytes() == found[1][:-1].tobytes() == found[2][:-1].tobytes()
    # The precision is stated in the record of a fit with few rows for its columns.
    model = AdaptiveMarginClassifier(data_norm=30.0, classes=[0, 1])
    wide_rows, labels = np.zeros((3000, 300), np.float32), np.arange(3000) % 2
    rows = list(wide_rows)
    records = [model.plan(given, labels) for given in (rows, [*rows[:-1], rows[-1].tolist()])]
    assert records[0] == records[1]


def test_arrays_of_floats_keep_their_precision_and_frames_are_read_in_double():
    rows = X.astype(np.float32)
    assert check_features(BaseEstimator(), rows, reset=True).dtype == np.float32
    assert check_features(BaseEstimator(), pd.DataFrame(rows), reset=True).dtype == np.float64


def test_whole_labels_that_floats_cannot_tell_apart_are_not_read_from_floats():
    """One float in a list makes floats of all labels, and would move those of other records."""
    first = 2**53
    labels = [first + 1, first, first + 1]
    codes, _ = validation.class_indices(labels, [first, first + 1])
    assert codes.tolist() == [1, 0, 1]
    with pytest.raises(
        ValueError, match=r"^classes contains whole numbers from 2\^53 on, and y contains floats"
    ):
        validation.class_indices([first + 1, float(first), first + 1], [first, first + 1])
    mixed = np.array([first, first + 1, 0.5], dtype=object)
    assert validation.class_indices(mixed, None)[1].tolist() == [0.5, first, first + 1]
    for given, classes in (([1.0, 2.0], [1, 2]), ([0.5, 1e300], [0.5, 1e300])):
        codes, _ = validation.class_indices(given, classes)
        assert codes.tolist() == [0, 1]


@pytest.mark.parametrize("classes", [[0], [0, 1, 1], [[0], [1]], [0.0, np.nan]])
def test_a_public_label_set_has_two_distinct_labels_at_least(classes):
    with pytest.raises(ValueError, match="a one-dimensional list of at least two distinct labels"):
        validation.class_indices([0, 0], classes)


def test_infinity_and_text_beside_what_is_missing_stay_what_they_are():
    model = estimator("AdaptiveMarginClassifier", data_norm=None)
    for other, match in ((np.inf, "NaN or infinity in column 0: "), ("x", "not numeric in col")):
        rows = objects(pd.NA)
        rows[0, 0] = other
        with pytest.raises(ValueError, match=match):
            model.fit(rows, LABELS)


def targets():
    """Labels of each kind, one of them missing, with their public set."""
    for labels in ([0, 1], ["a", "b"], [False, True], [0.0, 1.0]):
        for name, missing in MISSING.items():
            plain = [labels[i] for i in Y]
            plain[3] = missing
            yield f"{labels[1]!r}-{name}", np.array(plain, dtype=object), labels
            yield f"{labels[1]!r}-{name}-list", plain, labels
    for dtype, labels in {
        "Int64": [0, 1],
        "boolean": [False, True],
        "string": ["a", "b"],
        "category": ["a", "b"],
    }.items():
        series = pd.Series([labels[i] for i in Y], dtype=dtype)
        series[3] = None
        yield dtype, series, labels
    days = pd.Series(pd.to_datetime(np.where(Y, "2020-01-01", "2021-01-01")))
    days[3] = pd.NaT
    yield "datetime64", days, list(pd.to_datetime(["2020-01-01", "2021-01-01"]))


TARGETS = list(targets())


@pytest.mark.sampled(3)
@one_of_each
def test_every_missing_label_has_one_message(name):
    for case, y, labels in TARGETS:
        for classes in (labels, None):
            with pytest.raises(ValueError, match="a") as caught:
                estimator(name, classes=classes).fit(X, y)
            assert str(caught.value) == (
                "Input y contains NaN, infinity, None, NaT or pd.NA: label every record"
            ), case


@pytest.mark.sampled(3)
@one_of_each
def test_nullable_and_categorical_labels_are_labels(name):
    for dtype, labels in {"Int64": [0, 1], "boolean": [False, True], "string": ["a", "b"]}.items():
        y = pd.Series([labels[i] for i in Y], dtype=dtype)
        assert list(estimator(name, classes=labels).fit(X, y).classes_) == labels
        assert list(estimator(name, classes=labels).fit(X, y.astype("category")).classes_) == labels


ASKS = r"^classes=None takes the label set .* classes=\[\.\.\.\]$"


def heard(fit):
    """The privacy warnings of a fit but of its outlook, which has tests of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit()
    warned = [w for w in caught if issubclass(w.category, PrivacyWarning)]
    return model, [w for w in warned if "expect about" not in str(w.message)]


@pytest.mark.sampled(3)
@one_of_each
def test_a_label_set_from_the_data_is_said_once_and_in_the_guarantee(name):
    for make in (lambda model: model, lambda model: make_pipeline(FunctionTransformer(), model)):
        open_, stated = make(estimator(name, classes=None)), make(estimator(name))
        fitted, warned = heard(lambda model=open_: model.fit(X, Y))
        assert len(warned) == 1
        with pytest.warns(PrivacyWarning, match=ASKS):
            clone(open_).fit(X, Y)
        record = (fitted[-1] if hasattr(fitted, "steps") else fitted).privacy_
        assert "it was taken from the data and is declared public" in said(record)
        fitted, warned = heard(lambda model=stated: model.fit(X, Y))
        assert not warned
        record = (fitted[-1] if hasattr(fitted, "steps") else fitted).privacy_
        assert "taken from the data" not in record.summary()


def said(record):
    """The line of the guarantee."""
    (line,) = [line for line in record.summary().splitlines() if line.startswith("Guarantee: ")]
    return line


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("selection", "classes"), [("exponential", [0, 1]), ("random_stopping", None)]
)
def test_a_search_says_it_once(selection, classes):
    model = OutputPerturbationClassifier(classes=classes)
    search = PrivateSearchCV(model, {"alpha": [0.01, 0.1, 1.0]}, selection=selection, miss=0.5)
    fitted, warned = heard(lambda: search.fit(X, Y))
    said_of_units = ["scales of 2 columns" in str(w.message) for w in warned]
    assert (sum(said_of_units), len(warned)) == (1, 1 + (classes is None))
    assert ("taken from the data" in said(fitted.privacy_)) == (classes is None)


@one_of_each
@pytest.mark.parametrize("data_norm", [None, 1.0])
def test_sparse_rows_without_a_number_are_refused_by_their_column(name, data_norm):
    """One such record would turn every sum over records into noise."""
    for wrong in (np.nan, np.inf):
        rows = sparse.lil_array(X)
        rows[3, 1] = wrong
        for kind in ("csr", "csc", "coo"):
            with pytest.raises(ValueError, match="NaN or infinity in column 1"):
                estimator(name, data_norm=data_norm).fit(rows.asformat(kind), Y)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_finite_entries_whose_sum_overflows_are_accepted_silently(layout):
    model = estimator("OutputPerturbationClassifier").fit(X, Y)
    rows = np.full((4, 2), 1e308)
    with np.errstate(all="raise"):
        dp_halfspace.data.validation.check_features(model, layout(rows), reset=False)
    rows[1, 1] = -np.inf
    with pytest.raises(ValueError, match="NaN or infinity in column 1"):
        model.predict(layout(rows))


def stored_sparsely(rows):
    """A data frame whose columns are all sparse, which scikit-learn reads as a sparse matrix."""
    return pd.DataFrame(rows).astype(pd.SparseDtype(float, 0.0))


@pytest.mark.parametrize("store", [sparse.csr_array, stored_sparsely])
@pytest.mark.parametrize(
    "use",
    [
        lambda rows, labels: small_model(rows, labels, of_cells=True).predict,
        lambda rows, labels: PrivateScaler(epsilon=5.0).fit,
        lambda rows, labels: PrivateScaler(epsilon=5.0).fit(rows).transform,
        lambda rows, labels: PublicScaler([(-1, 1)] * 2).fit,
    ],
)
def test_what_needs_dense_rows_refuses_sparse_ones_clearly(store, use):
    rows, labels = separated(100, 2)
    with pytest.raises(ValueError, match="X is a sparse matrix, or a data frame of sparse col"):
        use(rows, labels)(store(rows))


def small_model(rows, labels, *, of_cells):
    """A model that was selected for a small table, which reads cells or not."""
    model = estimator("AdaptiveMarginClassifier", data_norm=None, epsilon=1.0)
    for _ in range(100):
        model.fit(rows, labels)
        assert dict(model.privacy_.public)["solver"] == "exponential_mechanism"
        if (model.scaler_ is not None) == of_cells:
            return model
    raise AssertionError("no such model was chosen")


def test_a_selected_direction_scores_sparse_rows():
    rows, labels = separated(100, 2)
    model = small_model(rows, labels, of_cells=False)
    np.testing.assert_allclose(
        model.decision_function(sparse.csr_array(rows)), model.decision_function(rows)
    )


def test_a_model_with_learnt_units_takes_dense_rows_only():
    rows, labels = separated(400, 2)
    model = estimator("AdaptiveMarginClassifier", data_norm=None).fit(rows, labels)
    assert model.scaler_ is not None
    with pytest.raises(ValueError, match="X is a sparse matrix"):
        model.predict(sparse.csr_array(rows))
    with pytest.raises(ValueError, match="X and y must have the same number of rows, got 400"):
        model.fit(rows, labels[1:])


@pytest.mark.parametrize("place", [0, 4096, 8192])
def test_every_block_of_rows_is_searched_for_infinity(place):
    X = np.zeros((8193, 1))
    X[place] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity in column 0"):
        validation._check_finite(X, None, allow_missing=False)


class LazyArray:
    """An array of another library, which is computed where it is read and speaks of an entry."""

    def __init__(self, array, fails):
        self.array, self.fails = array, fails
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, array.dtype

    def __len__(self):
        return len(self.array)

    def __array__(self, dtype=None, copy=None):
        warnings.warn("secret", stacklevel=2)
        if self.fails:
            raise ValueError("secret")
        return np.asarray(self.array, dtype=dtype)

    def __iter__(self):
        return iter(np.asarray(self))


@pytest.mark.parametrize("name", ["groups", "sample_weight"])
def test_a_lazy_column_beside_the_rows_warns_of_nothing(name):
    rows, labels = separated(400, 2)
    values = np.arange(400) if name == "groups" else np.linspace(0.5, 1.0, 400)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lazy = LazyArray(values, fails=False)
        AdaptiveMarginClassifier(classes=[0, 1]).fit(rows, labels, **{name: lazy})
    assert "secret" not in [str(each.message) for each in seen]


@pytest.mark.parametrize("lazy", ["X", "y"])
@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateTableClassifier])
def test_what_a_lazy_array_says_is_not_shown(kind, lazy):
    rows, labels = separated(400, 2)

    def fit(wrap):
        X, y = (wrap(rows), labels) if lazy == "X" else (rows, wrap(labels))
        return kind(classes=[0, 1], random_state=0).fit(X, y)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model, expected = fit(lambda array: LazyArray(array, fails=False)), fit(np.asarray)
        with pytest.raises(ValueError, match=f"{lazy} could not be read") as error:
            fit(lambda array: LazyArray(array, fails=True))
    assert "secret" not in [str(each.message) for each in seen]
    assert "secret" not in f"{error.value!r} {error.value.__context__!r}"
    assert (model.decision_function(rows) == expected.decision_function(rows)).all()


def test_an_error_names_five_columns_and_counts_the_others():
    rows = pd.DataFrame(np.full((40, 8), np.nan), columns=list("abcdefgh"))
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0)
    with pytest.raises(ValueError, match="in columns 'a', 'b', 'c', 'd', 'e' and 3 more: replace"):
        model.fit(rows, np.arange(40) % 2)
