"""What stands around a private model: what learns from the records is found."""

import copy
import io
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import model_selection
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_selector
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import all_estimators

from dp_halfspace import (
    AdaptiveMarginClassifier,
    PrivacyWarning,
    PrivateSearchCV,
    PrivateThresholdClassifier,
)
from dp_halfspace import _pipelines as table
from dp_halfspace.inspection import PipelineFinding, check_pipeline
from dp_halfspace.preprocessing import PrivateScaler, PublicScaler

sk = types.SimpleNamespace(**dict(all_estimators()), make_column_selector=make_column_selector)
OURS = AdaptiveMarginClassifier(classes=[0, 1])
KNOTS = np.linspace(-1.0, 1.0, 4)[:, None] * np.ones(3)


def found(*steps, cv=None):
    """Names of the classes that a pipeline of these steps is told about."""
    return [f.step.split("(")[-1][:-1] for f in check_pipeline(make_pipeline(*steps), cv=cv)]


def test_the_table_is_short_and_names_classes_of_scikit_learn():
    assert len(table._STATELESS) <= 20
    assert table._STATELESS.keys() <= {name for name, _ in all_estimators()} | {"Pipeline"}


CLASSES = dict(all_estimators("transformer"))
LETTERS = ["a", "b", "c"]
STATELESS = [
    *(
        CLASSES[n]()
        for n in ("Binarizer", "FunctionTransformer", "GaussianRandomProjection", "Normalizer")
    ),
    sk.PolynomialFeatures(),
    sk.SparseRandomProjection(),
    sk.OneHotEncoder(categories=[LETTERS] * 3, handle_unknown="ignore"),
    sk.OrdinalEncoder(
        categories=[LETTERS] * 3, handle_unknown="use_encoded_value", unknown_value=-1
    ),
    sk.SimpleImputer(strategy="constant", keep_empty_features=True),
    sk.SplineTransformer(knots=KNOTS),
    sk.RBFSampler(),
    PublicScaler([(0, 1)] * 3),
]


@pytest.mark.parametrize("step", STATELESS, ids=lambda s: type(s).__name__)
def test_what_passes_learns_nothing(step):
    """Fits on two data sets transform a third one alike."""
    rng = np.random.default_rng(0)
    A, B, C = (rng.integers(0, 3, (40, 3)).astype(float) for _ in range(3))
    if "Projection" in type(step).__name__:
        step.set_params(n_components=2)
    if "Imputer" in type(step).__name__:
        A[3, 1] = B[:, 2] = C[5] = np.nan
    if "Encoder" in type(step).__name__:
        A, B, C = (np.array(LETTERS)[each.astype(int)] for each in (A, B, C))
    if "random_state" in step.get_params():
        step = clone(step).set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = [clone(step).fit(fit_to).transform(C) for fit_to in (A, B)]
    images = [image.toarray() if hasattr(image, "toarray") else image for image in images]
    np.testing.assert_array_equal(*images)
    assert found(clone(step).set_params(), OURS) == []


@pytest.mark.parametrize(
    "step",
    [
        sk.StandardScaler(),
        sk.SimpleImputer(),
        sk.SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
        sk.IterativeImputer(),
        sk.MissingIndicator(),
        sk.SelectKBest(),
        sk.PCA(),
        sk.CountVectorizer(),
        sk.TfidfVectorizer(vocabulary=["a"]),
        sk.OneHotEncoder(),
        sk.OneHotEncoder(categories=[[0, 1]], min_frequency=3),
        sk.MultiLabelBinarizer(),
        sk.MultiLabelBinarizer(classes=[1, 2]),
        sk.KBinsDiscretizer(),
        sk.SplineTransformer(),
        sk.TargetEncoder(categories=[[0, 1]]),
        sk.RBFSampler(gamma="scale"),
    ],
    ids=lambda s: type(s).__name__,
)
def test_what_learns_is_found(step):
    assert found(step, OURS) == [type(step).__name__]
    assert found(FrozenEstimator(step), OURS) == []


def test_a_category_in_place_of_a_list_is_found():
    """Scikit-learn says later what is wrong with it."""
    (finding,) = check_pipeline(
        make_pipeline(sk.OneHotEncoder(categories=[1, 2], handle_unknown="ignore"), OURS)
    )
    assert "dtypes" in finding.reads


def test_codes_are_advised_with_the_number_that_they_need():
    """Scikit-learn refuses ``handle_unknown="use_encoded_value"`` without it."""
    (finding,) = check_pipeline(make_pipeline(sk.OrdinalEncoder(), OURS))
    assert "handle_unknown='use_encoded_value', unknown_value=..." in finding.instead


@pytest.mark.parametrize(
    "categories", [[1, 2, 3], ["1", "2"], [True, False], ["a", "2026-01-31"], [b"a"]]
)
def test_categories_that_a_reader_takes_for_numbers_are_found(categories):
    """One text in a column of numbers turns all of them into texts, which are other categories."""
    ordinal = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    steps = (
        sk.OneHotEncoder(categories=[["a"], categories], handle_unknown="ignore"),
        sk.OrdinalEncoder(categories=[categories], **ordinal),
    )
    for step in steps:
        (finding,) = check_pipeline(make_pipeline(step, OURS))
        assert "dtypes" in finding.reads
    # What it found is real: other rows change with the cell of one record.
    one = sk.OneHotEncoder(categories=[[1, 2]], handle_unknown="ignore", sparse_output=False)
    numbers, texts = (pd.read_csv(io.StringIO(f"code\n1\n2\n{cell}")) for cell in ("2", "x"))
    rows = [one.fit_transform(each)[:2].tolist() for each in (numbers, texts)]
    assert rows == [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]


def test_steps_inside_steps_are_named():
    inner = FeatureUnion([("pca", sk.PCA()), ("square", sk.PolynomialFeatures())])
    columns = sk.ColumnTransformer(
        [("codes", sk.OneHotEncoder(), [0]), ("rest", inner, [1, 2])], remainder=sk.StandardScaler()
    )
    findings = check_pipeline(Pipeline([("columns", columns), ("model", OURS)]))
    assert [f.step for f in findings] == [
        "columns (ColumnTransformer)",
        "columns__codes (OneHotEncoder)",
        "columns__rest__pca (PCA)",
        "columns__remainder (StandardScaler)",
    ]
    assert all(isinstance(f, PipelineFinding) and f.reads and f.instead for f in findings)


@pytest.mark.parametrize(
    "holder",
    [
        sk.BaggingClassifier(OURS),
        sk.AdaBoostClassifier(OURS),
        sk.VotingClassifier([("a", OURS)]),
        sk.StackingClassifier([("a", OURS)], final_estimator=OURS),
        sk.CalibratedClassifierCV(OURS),
        GridSearchCV(OURS, {}, cv=KFold(3)),
    ],
    ids=lambda h: type(h).__name__,
)
def test_models_round_models(holder):
    assert found(holder) == [type(holder).__name__]
    changed = clone(holder)
    name = "estimator" if hasattr(holder, "estimator") else "estimators"
    scaled = make_pipeline(sk.StandardScaler(), OURS)
    changed.set_params(**{name: scaled if name == "estimator" else [("a", scaled)]})
    assert found(changed) == [type(holder).__name__, "StandardScaler"]


def test_folds_must_not_read_labels():
    for cv in (None, 3, model_selection.StratifiedShuffleSplit(2)):
        assert len(found(GridSearchCV(OURS, {}, cv=cv))) == 2
        assert len(found(OURS, cv=cv)) == (cv is not None)
    for cv in (KFold(2), model_selection.ShuffleSplit(), GroupKFold(2, shuffle=True)):
        assert found(OURS, cv=cv) == []


def test_folds_that_nobody_knows_of_are_found():
    """Lists and look-alikes may follow the labels; folds of one size follow the group sizes."""
    splits = [(np.arange(3), np.arange(3, 6))]
    alike = type("KFold", (KFold,), {})()
    named = type("KFold", (KFold,), {"__module__": KFold.__module__})()
    listed = (splits, iter(splits), model_selection.PredefinedSplit([0, 1]), alike, named)
    listed += (type("GroupKFold", (GroupKFold,), {})(2, shuffle=True),)
    for cv in (*listed, types.SimpleNamespace(split=None), GroupKFold(2)):
        (finding,) = check_pipeline(OURS, cv=cv)
        assert finding.reads.startswith("labels, groups or records")


def test_no_identifier_decides_the_folds_of_others():
    """One person with another identifier moves others, unless the folds are drawn in secret."""
    people, other = np.arange(100, 120), np.arange(100, 120)
    other[10] = 7
    kept = people == other
    for cv in (
        GroupKFold(4, shuffle=True, random_state=0),
        model_selection.GroupShuffleSplit(4, random_state=np.random.RandomState(0)),
        model_selection.LeaveOneGroupOut(),
        model_selection.LeavePGroupsOut(2),
    ):
        folds = [
            [test[kept[test]].tolist() for _, test in copy.deepcopy(cv).split(people, groups=ids)]
            for ids in (people, other)
        ]
        assert folds[0] != folds[1]
        assert len(check_pipeline(OURS, cv=cv)) == 1
    for cv in (GroupKFold(4, shuffle=True), model_selection.GroupShuffleSplit(4)):
        assert check_pipeline(OURS, cv=cv) == ()


def test_steps_whose_warnings_show_a_record_are_found():
    rows, odd = np.eye(3)[[0, 1, 2] * 4], np.eye(3)[[0, 1, 2] * 4]
    odd[4] = -2.0, 0.0, 0.0
    warning = (sk.FunctionTransformer(np.abs, np.positive),)
    for step in warning:
        assert found(step, OURS) == [type(step).__name__]
    with pytest.warns(UserWarning, match="not strictly inverse"):
        warning[0].fit(odd)
    silent = (
        warning[0].fit(rows),
        sk.FunctionTransformer(np.abs, np.positive, check_inverse=False),
        sk.FunctionTransformer(np.abs),
        sk.FunctionTransformer(inverse_func=np.abs),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in silent[1:]:
            step.fit(odd).transform(odd)
            assert found(step, OURS) == []


def test_steps_that_pass_warn_of_a_record_where_numpy_does():
    """So they are used where numpy ignores its flags, as the page of the privacy model says."""
    odd = np.eye(3)
    odd[1] = -1e308
    steps = (sk.FunctionTransformer(np.log1p), sk.PolynomialFeatures(), Normalizer("l1"))
    for step in steps:
        assert found(step, OURS) == []
        with pytest.warns(RuntimeWarning):
            step.fit_transform(odd)
    others = [clone(step) for step in STATELESS if "Encoder" not in type(step).__name__]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        for step in (*steps, *others):
            if "Projection" in type(step).__name__:
                step.set_params(n_components=2)
            step.fit_transform(odd)


def codes(**params):
    return sk.OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", **params)


def columns(*transformers, **params):
    return sk.ColumnTransformer([(f"t{i}", *t) for i, t in enumerate(transformers)], **params)


@pytest.mark.parametrize(
    "step",
    [
        codes().set_params(handle_unknown="error"),
        codes().set_params(handle_unknown="warn"),
        codes(drop="first"),
        codes(min_frequency=3),
        codes(max_categories=2),
        sk.OrdinalEncoder(categories=[["a", "b"]]),
        sk.SplineTransformer(knots=KNOTS, extrapolation="error"),
        Pipeline([("unit", sk.Normalizer())], memory="cache"),
        sk.SelectFromModel(FrozenEstimator(sk.LogisticRegression()), prefit=True),
        columns((codes(), [0])),
        columns((codes(), [0]), sparse_threshold=1),
        columns((codes(sparse_output=False), ["a"])).set_output(transform="pandas"),
        columns((columns((codes(), [0]), sparse_threshold=1), ["a"]), sparse_threshold=0),
    ],
    ids=str,
)
def test_what_tells_of_records_is_found(step):
    """Errors and warnings that quote them, files that keep them, a format that they decide."""
    assert found(step, OURS).count(type(step).__name__) == 1
    assert found(FeatureUnion([("inside", step)]), OURS).count(type(step).__name__) == 1


@pytest.mark.parametrize(
    "step",
    [
        sk.Normalizer(),
        sk.HashingVectorizer(),
        sk.CountVectorizer(vocabulary=["a", "b"]),
        sk.TfidfVectorizer(vocabulary=["a"], use_idf=False),
        FrozenEstimator(sk.SelectFromModel(sk.LogisticRegression())),
        "passthrough",
        PrivateScaler(),
        sk.FixedThresholdClassifier(OURS),
        columns((codes(), [0]), (PublicScaler([(0, 1)]), [1]), sparse_threshold=0),
        columns((columns((codes(), [0]), sparse_threshold=0), [1]), sparse_threshold=0),
        columns((PublicScaler([(0, 1)]), sk.make_column_selector("^age")), sparse_threshold=0),
        FeatureUnion([("codes", codes()), ("unit", sk.Normalizer())]),
    ],
    ids=lambda s: type(s).__name__,
)
def test_what_keeps_nothing_passes(step):
    """And formats that parameters decide."""
    assert check_pipeline(make_pipeline(step, OURS)) == ()


def test_the_format_of_the_default_follows_the_records():
    """Why it is found: neighbours get CSR and dense columns, which a record of a fit shows."""
    step = columns((codes().set_params(categories=[["a", "b", "c"]]), [0]))
    data = np.array([["a"]] * 17 + [["other"]] * 3)
    neighbour = data.copy()
    neighbour[17] = "a"
    formats = [sparse.issparse(clone(step).fit_transform(X)) for X in (data, neighbour)]
    assert formats == [True, False]
    assert found(step, OURS) == ["ColumnTransformer"]


@pytest.mark.parametrize(
    ("chosen", "reads"),
    [
        (lambda X: [0], "all records"),
        (sk.make_column_selector(dtype_include=float), "dtypes"),
        (sk.make_column_selector("a", dtype_exclude=float), "dtypes"),
        (type("make_column_selector", (sk.make_column_selector,), {})("a"), "all records"),
    ],
)
def test_columns_that_a_function_chooses_are_found(chosen, reads):
    step = columns((PublicScaler([(0, 1)]), chosen), sparse_threshold=0)
    (finding,) = check_pipeline(Pipeline([("table", step), ("model", OURS)]))
    assert finding.step == "table__t0 (columns)"
    assert finding.reads.startswith(reads)


@pytest.mark.parametrize("kind", [sk.Normalizer, Pipeline, AdaptiveMarginClassifier])
def test_subclasses_are_not_what_they_are_made_of(kind):
    """They may override `fit`, whatever name and module they have."""
    params = {"steps": [("unit", sk.Normalizer())]} if kind is Pipeline else {}
    for module in (__name__, kind.__module__):
        step = type(kind.__name__, (kind,), {"__module__": module})(**params)
        assert [f.reads for f in check_pipeline(step)] == ["not known"]


def test_models_without_privacy():
    (finding,) = check_pipeline(sk.LogisticRegression())
    assert "classifier of dp_halfspace" in finding.instead


def test_parameters_of_ours_that_give_something_away():
    for seed in (0, np.int64(1)):
        search = PrivateSearchCV(AdaptiveMarginClassifier(random_state=seed), {})
        reads = [f.reads for f in check_pipeline(search)]
        assert len(reads) == 2
        assert "seed" in reads[0]
        assert "labels" in reads[1]


class Scaler(TransformerMixin, BaseEstimator):
    """Somebody's own step."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


def test_what_is_not_known_is_said_to_be(monkeypatch):
    assert [f.reads for f in check_pipeline(make_pipeline(Scaler(), OURS))] == ["not known"]
    # As imbalanced-learn has them; it is not imported.
    sampler = type("SMOTE", (Scaler,), {"__module__": "imblearn.over_sampling"})()
    pipeline = type("Pipeline", (Pipeline,), {"__module__": "imblearn.pipeline"})
    held = types.SimpleNamespace(Pipeline=pipeline)
    monkeypatch.setitem(sys.modules, "imblearn.pipeline", held)
    (finding,) = check_pipeline(pipeline([("resample", sampler), ("model", OURS)]))
    assert finding.step == "resample (SMOTE)"
    assert finding.reads == "the records, as far as is known"


ROWS = np.random.default_rng(0).normal(size=(400, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
SCALED = {"data_norm": 4.0, "classes": [0, 1]}


def said_by(run):
    """Messages of what a call warns of around a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        run()
    texts = [str(found.message) for found in caught]
    return [text for text in texts if "steps of this pipeline" in text]


def test_a_fit_says_which_steps_in_front_of_it_learn_from_the_records():
    model = AdaptiveMarginClassifier(**SCALED)
    filled = make_pipeline(SimpleImputer(), make_pipeline(StandardScaler(), model))
    (text,) = said_by(lambda: filled.fit(ROWS, LABELS))
    assert "standardscaler (StandardScaler) reads the records" in text
    assert "instead use SimpleImputer(strategy='constant', keep_empty" in text
    # Those of other libraries are left to their users.
    assert not said_by(lambda: make_pipeline(Scaler(), model).fit(ROWS, LABELS))
    # A search and a cross-validation fit the pipeline, too.
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {}, cv=KFold(2))
    assert len(said_by(lambda: search.fit(ROWS, LABELS))) == 3
    # Fits of other classes say it, too.
    fitted = LinearSVC().fit(ROWS, LABELS)
    for last in (PrivateSearchCV(model, {}), PrivateThresholdClassifier(FrozenEstimator(fitted))):
        (text,) = said_by(lambda last=last: make_pipeline(StandardScaler(), last).fit(ROWS, LABELS))
        assert "standardscaler (StandardScaler) reads the records" in text


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "steps",
    [
        (),
        (Normalizer(),),
        (PublicScaler([(-4, 4)] * 3),),
        (FrozenEstimator(StandardScaler().fit(ROWS)),),
        (SimpleImputer(strategy="constant", keep_empty_features=True),),
        (Scaler(),),
    ],
    ids=["none", "stateless", "public", "frozen", "constant", "unknown"],
)
def test_a_fit_says_nothing_of_other_steps(steps):
    whole = make_pipeline(*steps, AdaptiveMarginClassifier(**SCALED))
    assert not said_by(lambda: whole.fit(ROWS, LABELS))


def test_a_model_inside_a_step_is_told_of_the_others():
    inner = SelectFromModel(AdaptiveMarginClassifier(**SCALED))
    whole = make_pipeline(StandardScaler(), inner, Normalizer(), LinearSVC())
    (text,) = said_by(lambda: whole.fit(ROWS, LABELS))
    for name in ("StandardScaler", "SelectFromModel", "LinearSVC"):
        assert f"({name}) reads the records" in text
    assert "Normalizer" not in text
