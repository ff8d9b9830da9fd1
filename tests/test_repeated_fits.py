"""Fits that multiply are said once, by public facts alone, with their number and their total."""

import math
import re
import threading
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy.stats import uniform
from sklearn import ensemble, multioutput
from sklearn import feature_selection as selection
from sklearn import model_selection as model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
    PrivateTableClassifier,
    RepeatedFitWarning,
    _budget,
    _repeated_fits,
    audit,
)
from dp_halfspace.inspection import plan_accuracy
from dp_halfspace.model_selection import PrivateThresholdClassifier, _search_runs
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import accounting
from tests.conftest import separated
from tests.pages import counted_fits

X, Y = separated(200, 5)
KNOWN_SIZES = {"classes": [0, 1], "data_norm": 1.0, "preconditioner": False}
# With a stated delta, fits to folds and to the whole table have one total.
OURS = OutputPerturbationClassifier(epsilon=3.0, delta=1e-6, **KNOWN_SIZES)
FOLDS = model.KFold(3, shuffle=True)
GRID = {"fit_intercept": [True, False]}
# So many records that fits to a quarter of them are planned as those to all.
A, B = separated(1200, 5)
HALF = np.where(np.arange(len(B)) % 2, B, -1)
OUTPUTS = np.column_stack([B, 1 - B, B])
LINE = 'warnings.filterwarnings("ignore", category=RepeatedFitWarning)'


@pytest.fixture(autouse=True)
def counted():
    """Count fits in these tests only."""
    with counted_fits():
        yield


def said_of(function, *, ignore=False):
    """Everything that is said of repeated fits, as warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if ignore:
            exec(LINE, {"warnings": warnings, "RepeatedFitWarning": RepeatedFitWarning})
        function()
    return [one for one in caught if one.category is RepeatedFitWarning]


def texts_of(function, **options):
    return [str(one.message) for one in said_of(function, **options)]


def records_of(monkeypatch, function):
    """The records of all fits, and what was said."""
    records, real = [], _budget.warn_of_repeated_fits

    def recorded(kind, record, *others):
        records.append(record)
        real(kind, record, *others)

    monkeypatch.setattr(_budget, "warn_of_repeated_fits", recorded)
    return records, said_of(function)


def search(kind, grid, **options):
    return lambda: kind(OURS, grid, cv=FOLDS, **options).fit(A, B)


def scored(function, **options):
    return lambda: function(OURS, A, B, **options)


def fitted(kind, *given, labels=B, **options):
    return lambda: kind(*(given or [OURS]), **options).fit(A, labels)


NESTED = make_pipeline(OURS)
THIRDS, FEW = np.arange(len(B)) % 3, {"intercept_scaling": [1, 2, 3]}
# By the name of the outermost call, and what is special of it.
CALLS = {
    "GridSearchCV": search(model.GridSearchCV, GRID),
    "GridSearchCV of grids": search(model.GridSearchCV, [GRID, FEW], refit=False),
    "GridSearchCV of budgets": search(model.GridSearchCV, {"epsilon": [1, 2]}),
    "GridSearchCV of ensembles": fitted(
        model.GridSearchCV, ensemble.BaggingClassifier(NESTED, n_estimators=2), {}, cv=2
    ),
    "RandomizedSearchCV": search(
        model.RandomizedSearchCV, {"intercept_scaling": uniform(1, 2)}, n_iter=4
    ),
    "cross_val_score": scored(model.cross_val_score),
    "cross_val_score repeated": scored(
        model.cross_val_score, cv=model.RepeatedKFold(n_splits=2, n_repeats=2)
    ),
    "cross_val_score of an iterator": lambda: model.cross_val_score(OURS, A, B, cv=FOLDS.split(A)),
    "cross_val_score of a search": lambda: model.cross_val_score(
        model.GridSearchCV(OURS, GRID, cv=2), A, B, cv=2
    ),
    "cross_validate": scored(model.cross_validate, cv=[(range(100), range(100, 200))] * 2),
    "cross_val_predict": scored(model.cross_val_predict, cv=3),
    "learning_curve": scored(model.learning_curve, train_sizes=[0.5, 1.0], cv=2),
    "validation_curve": scored(
        model.validation_curve, param_name="intercept_scaling", param_range=[1, 2], cv=2
    ),
    "permutation_test_score": scored(model.permutation_test_score, n_permutations=2, cv=2),
    "BaggingClassifier": fitted(ensemble.BaggingClassifier, OURS, n_estimators=3),
    "VotingClassifier": fitted(
        ensemble.VotingClassifier,
        [("a", OURS), ("b", NESTED), ("c", LogisticRegression()), ("d", "drop")],
    ),
    "StackingClassifier": fitted(ensemble.StackingClassifier, [("a", OURS), ("b", OURS)], cv=2),
    "OneVsRestClassifier": fitted(OneVsRestClassifier, labels=THIRDS),
    "OneVsOneClassifier": fitted(OneVsOneClassifier, labels=THIRDS),
    "MultiOutputClassifier": fitted(multioutput.MultiOutputClassifier, labels=OUTPUTS),
    "ClassifierChain": fitted(multioutput.ClassifierChain, labels=OUTPUTS),
    "RFE": fitted(selection.RFE),
    "RFECV": fitted(selection.RFECV, cv=2),
    "SelfTrainingClassifier": fitted(SelfTrainingClassifier, labels=HALF),
    "CalibratedClassifierCV": fitted(CalibratedClassifierCV, cv=3),
    "TunedThresholdClassifierCV": fitted(model.TunedThresholdClassifierCV, cv=2),
}
# Those whose number of fits follows from their parameters.
KNOWN = ("GridSearchCV", "cross_val_score", "cross_validate", "cross_val_predict", "Bagging")
# Those that only fit several times, within what their fits spend.
WITHIN = ("Bagging", "Voting", "OneVsRest", "MultiOutput", "ClassifierChain", "RFE ")


def uncovered_by(call):
    """A word of what no budget covers."""
    if f"{call} ".startswith(WITHIN):
        return ""
    if "SearchCV" in call.split()[0]:
        return "PrivateSearchCV"
    return "exact" if call[0].islower() else "not private"


@pytest.mark.sampled(15)
@pytest.mark.parametrize("call", CALLS)
def test_the_outermost_call_is_named_once_with_the_number_of_its_fits(call, monkeypatch):
    name, uncovered = call.split()[0], uncovered_by(call)
    is_known = call.startswith(KNOWN) and not call.endswith((" of budgets", " of an iterator"))
    records, said = records_of(monkeypatch, CALLS[call])
    (one,) = said
    text = str(one.message)
    # The line of the user, and not one of scikit-learn or of this package.
    assert one.filename == __file__
    assert "PrivacyLedger(" in text
    assert "dp_halfspace.RepeatedFitWarning" in text
    assert bool(re.search("so that its result is not private", text)) == bool(uncovered)
    assert uncovered in text
    if not is_known:
        assert text.startswith(f"{name} makes several fits of OutputPerturbationClassifier")
        return
    assert text.startswith(f"{name} makes {len(records)} fits of OutputPerturbationClassifier")
    stated = float(re.search(r"together they have about epsilon=(\S+)", text)[1])
    events = [event for record in records for event in record.events]
    total = accounting.epsilon(events, records[0].delta)
    assert 0.999 * total <= stated <= 1.01 * total
    # That test sees the budget of a single fit.
    assert stated > 1.2 * records[0].epsilon


def test_a_second_call_is_said_again():
    assert len(said_of(lambda: [model.cross_val_score(OURS, X, Y) for _ in range(2)])) == 2


def test_what_a_ledger_covers_is_not_said():
    def with_ledger(make):
        ledger = PrivacyLedger(epsilon=1e3, delta=1e-2)
        return texts_of(lambda: make(OURS.__sklearn_clone__().set_params(ledger=ledger)).fit(X, Y))

    assert with_ledger(selection.RFE) == []
    for make in (
        lambda ours: model.GridSearchCV(ours, GRID, cv=FOLDS),
        lambda ours: CalibratedClassifierCV(ours, cv=FOLDS),
        lambda ours: ensemble.StackingClassifier([("a", ours)], cv=FOLDS),
    ):
        (text,) = with_ledger(make)
        assert "not private" in text
        assert "makes" not in text
    ledger = PrivacyLedger(epsilon=1e3, delta=1e-2)
    model_with_ledger = OutputPerturbationClassifier(**KNOWN_SIZES, ledger=ledger)
    assert texts_of(lambda: model.cross_val_score(model_with_ledger, X, Y, cv=FOLDS)) == []
    assert texts_of(lambda: [model_with_ledger.fit(X, Y) for _ in range(3)]) == []


def test_steps_that_spend_are_said_beside_the_model():
    steps = make_pipeline(PrivateScaler(), OURS)
    first, second = texts_of(lambda: model.cross_val_score(steps, X, Y))
    assert "5 fits of PrivateScaler, each with epsilon=1 " in first
    assert "5 fits of OutputPerturbationClassifier, each with epsilon=3 " in second
    assert texts_of(lambda: make_pipeline(PrivateScaler(), OURS).fit(X[:99], Y[:99])) == []


@pytest.mark.parametrize(
    ("wrapper", "classes"),
    [
        (lambda ours: ensemble.VotingClassifier([("a", ours)]), [0, 1, 2]),
        (lambda ours: ensemble.BaggingClassifier(ours, random_state=0), [0, 1, 2]),
        (OneVsRestClassifier, [0, 1]),
        (lambda ours: OutputCodeClassifier(ours, code_size=9, random_state=0), [-1, 1]),
    ],
)
def test_the_label_set_that_a_call_around_takes_from_the_records_is_said(wrapper, classes):
    """A label of one record moves those of all others that are behind it, or adds a fit."""
    given, found, labels = [], [], 2 * Y

    class Watched(OutputPerturbationClassifier):
        def fit(self, rows, labels):
            given.append(labels[1:].tolist())
            return super().fit(rows, labels)

    ours = Watched(**{**OURS.get_params(), "classes": classes})
    for odd in (0, 1):
        labels[0] = odd
        (text,) = texts_of(lambda: wrapper(ours).fit(X, labels))
        assert "takes the label set from y, whatever classes states" in text
        found.append(given.copy())
        given.clear()
    assert found[0] != found[1]


def test_folds_that_labels_decide_are_said_also_with_a_ledger():
    """Another label of one record moves others to other folds, and no ledger counts that."""
    ledger, other = PrivacyLedger(epsilon=1e3, delta=1e-2), Y.copy()
    other[0] = 1 - Y[0]
    folds = [[test for _, test in model.StratifiedKFold().split(X, each)] for each in (Y, other)]
    assert any(len(np.setxor1d(*pair)) > 2 for pair in zip(*folds, strict=True))
    ours = OURS.__sklearn_clone__().set_params(ledger=ledger)
    said = "reads labels, groups or records, as far as is known, to make the folds"
    for call in (
        lambda **cv: model.cross_validate(ours, X, Y, return_estimator=True, **cv),
        lambda **cv: model.GridSearchCV(ours, {}, **cv).fit(X, Y),
        lambda cv=2: multioutput.ClassifierChain(ours, cv=cv).fit(A, OUTPUTS),
        lambda **cv: model.permutation_test_score(ours, X, Y, n_permutations=1, **cv),
    ):
        (text,) = texts_of(call)
        assert said in text
        assert "use cv=KFold(5, shuffle=True)" in text
        assert said not in "".join(texts_of(lambda call=call: call(cv=FOLDS)))
    assert "a record is in two rows of a fit" in text
    assert not texts_of(lambda: multioutput.ClassifierChain(ours).fit(A, OUTPUTS))


def test_pairs_of_labels_count_the_records_of_each():
    """Whose number is private, and is that of every fit."""
    labels = np.r_[np.zeros(7, int), np.ones(91, int), np.full(102, 2)]
    pairs = OneVsOneClassifier(OURS)
    (text,) = texts_of(lambda: pairs.fit(X, labels))
    assert "so that its result is not private" in text
    sizes = [dict(each.privacy_.public)["n_samples"] for each in pairs.estimators_]
    assert sizes == [7 + 91, 7 + 102, 91 + 102]


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_seeds_and_copies_of_records_in_bagging_are_said(n_estimators):
    """Each member has a seed that the estimator does not state, and that a pickle shows."""
    bagging = ensemble.BaggingClassifier(OURS, n_estimators=n_estimators)
    (text,) = texts_of(lambda: bagging.fit(X[:120], Y[:120]))
    assert "gives each fit a seed, which its model keeps" in text
    assert "unless bootstrap=False some records are in a fit several times" in text
    assert ("2 fits" in text) is (n_estimators == 2)
    first, seed = bagging.estimators_[0], bagging.estimators_[0].random_state
    assert first.privacy_.noise == "seeded"
    rows, again = bagging.estimators_samples_[0], OURS.__sklearn_clone__()
    said_of(lambda: again.set_params(random_state=seed).fit(X[rows], Y[rows]))
    assert (again.coef_ == first.coef_).all()
    inside = model.GridSearchCV(ensemble.BaggingClassifier(OURS, n_estimators=1), {}, cv=2)
    (text,) = texts_of(lambda: inside.fit(X[:120], Y[:120]))
    assert "gives each fit a seed" in text


def test_calls_that_fit_once_are_not_said():
    calls = (
        lambda: make_pipeline(OURS).fit(X, Y),
        lambda: model.FixedThresholdClassifier(OURS).fit(X[:150], Y[:150]),
        lambda: selection.SelectFromModel(OURS).fit(X[:130], Y[:130]),
    )
    for call in calls:
        assert texts_of(call) == []


def test_grids_that_are_refused_are_refused_by_scikit_learn():
    """What is said never replaces an error of another library, nor adds one."""
    odd = model.GridSearchCV(OURS, {"fit_intercept": np.array([True, False])}, cv=FOLDS)
    assert "7 fits" in texts_of(lambda: odd.fit(X, Y))[0]
    # A search that this package cannot read leaves the number open.
    search = model.GridSearchCV(OURS, GRID)
    search.param_grid = 7
    (caller,) = _repeated_fits.callers([("sklearn.a.fit", {"self": search})])
    assert (caller.name, caller.n_fits) == ("GridSearchCV", None)
    # Neither are fits of several budgets counted together, wherever the classifier is.
    search = model.GridSearchCV(NESTED, {"outputperturbationclassifier__epsilon": [1, 2]})
    (caller,) = _repeated_fits.callers([("sklearn.a.fit", {"self": search})])
    assert caller.n_fits is None


def test_workers_count_their_own():
    def by_threads():
        with parallel_config("threading", n_jobs=2):
            model.cross_val_score(OURS, X, Y)

    (text,) = texts_of(by_threads)
    assert text.startswith("this is fit 2 of this process to 160 records")
    assert "a worker process counts its own fits only" in text


def test_workers_of_transformers_fit_once():
    columns = ColumnTransformer([("a", PrivateScaler(), [0, 1]), ("b", PrivateScaler(), [2])])
    assert texts_of(lambda: columns.fit(X)) == []
    with parallel_config("threading", n_jobs=2):
        assert texts_of(lambda: columns.set_params(n_jobs=2).fit(X[1:])) == []


def test_the_second_fit_to_a_table_is_said_and_later_ones_are_not():
    (one,) = said_of(lambda: [OURS.fit(X, Y) for _ in range(4)])
    text = str(one.message)
    assert one.filename == __file__
    assert text.startswith("this is fit 2 of this process to 200 records with the same columns and")
    assert "a worker process counts its own fits only" in text
    total = accounting.epsilon([*OURS.privacy_.events] * 2, OURS.privacy_.delta)
    stated = float(re.search(r"together have epsilon=(\S+)", text)[1])
    assert total <= stated <= 1.01 * total
    assert 'PrivacyLedger("fits.db"' in text


def test_fits_of_any_kind_and_budget_add_up():
    other = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-9, classes=[0, 1], data_norm=1.0)
    (text,) = texts_of(lambda: (OURS.fit(X, Y), other.fit(X, Y)))
    events = [*OURS.privacy_.events, *other.privacy_.events]
    total = accounting.epsilon(events, OURS.privacy_.delta)
    assert total <= float(re.search(r"together have epsilon=(\S+)", text)[1]) <= 1.01 * total
    assert "this one alone 1 at delta=1e-09." in text
    # Fits inside a call are counted, although another warning is about them.
    _repeated_fits._TABLES_SEEN.clear()
    texts = texts_of(lambda: (selection.RFE(OURS, step=3).fit(X, Y), OURS.fit(X, Y)))
    assert texts[1].startswith("this is fit 2 of")


def test_tables_with_other_public_facts_are_others():
    frame = pd.DataFrame(X, columns=list("abcde"))
    fits = [
        (OURS, X, Y),
        (OURS, X[:199], Y[:199]),
        (OURS, X[:, :4], Y),
        (OURS, frame, Y),
        (OURS, frame.rename(columns={"a": "z"}), Y),
        (OutputPerturbationClassifier(**{**KNOWN_SIZES, "classes": [0, 1, 2]}), X, Y),
        (PrivateScaler(), X, None),
    ]
    assert texts_of(lambda: [ours.fit(A, b) for ours, A, b in fits]) == []
    for ours, A, b in fits:
        (text,) = texts_of(lambda ours=ours, A=A, b=b: ours.fit(A, b))
        assert ("columns and classes" in text) == (b is not None)


def test_no_cell_label_or_number_of_rows_of_a_person_decides():
    """The same is said for any two tables of the same public size."""
    rng = np.random.default_rng(0)
    other = rng.standard_normal(X.shape), 1 - Y
    texts = []
    for second in ((X, Y), other, (np.zeros_like(X), Y)):
        _repeated_fits._TABLES_SEEN.clear()
        texts.append(texts_of(lambda second=second: (OURS.fit(X, Y), OURS.fit(*second))))
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0]) == 1
    # Two tables of 40 persons, with other numbers of rows.
    persons = np.arange(200) % 40
    ours = AdaptiveMarginClassifier(epsilon=50.0, classes=[0, 1], data_norm=1.0)
    (text,) = texts_of(
        lambda: (
            ours.fit(X, Y, groups=persons),
            ours.fit(X[:150], Y[:150], groups=persons[:150]),
        )
    )
    assert "40 persons" in text
    assert not re.search(r"\b(200|150)\b", text)
    # The same number of records, not persons, is another table.
    assert texts_of(lambda: ours.fit(X[:40], Y[:40])) == []


def test_one_line_says_that_data_are_public():
    def fit():
        model.cross_val_score(OURS, X, Y)
        OURS.fit(X, Y).fit(X, Y)

    assert texts_of(fit, ignore=True) == []
    assert LINE in RepeatedFitWarning.__doc__
    _repeated_fits._TABLES_SEEN.clear()
    assert len(texts_of(fit)) == 2


def test_an_error_in_place_of_the_warning_refuses_the_fit_each_time():
    ours = OutputPerturbationClassifier(**KNOWN_SIZES).fit(X, Y)
    first = ours.coef_
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        for _ in range(2):
            with pytest.raises(RepeatedFitWarning, match="this is fit 2 of"):
                ours.fit(X, Y)
    assert ours.coef_ is first


def test_an_error_in_place_of_the_warning_charges_no_ledger():
    ledger = PrivacyLedger(epsilon=9.0, delta=1e-5)
    ours = OutputPerturbationClassifier(ledger=ledger, **KNOWN_SIZES)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        with pytest.raises(RepeatedFitWarning):
            model.GridSearchCV(ours, GRID, cv=FOLDS, error_score="raise").fit(X, Y)
    assert ledger.entries() == []


def test_nothing_is_counted_without_a_guarantee():
    ours = OutputPerturbationClassifier(epsilon=math.inf, **KNOWN_SIZES)
    assert texts_of(lambda: [ours.fit(X, Y) for _ in range(3)]) == []
    assert texts_of(lambda: model.cross_val_score(ours, X, Y)) == []
    assert _repeated_fits._TABLES_SEEN == {}
    assert texts_of(lambda: [OURS.plan(X, Y) for _ in range(3)]) == []
    assert _repeated_fits._TABLES_SEEN == {}


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("selection", ["exponential", "random_stopping"])
def test_a_search_is_one_fit_whose_secret_number_of_runs_is_not_counted(
    selection, planted, monkeypatch
):
    if planted:
        monkeypatch.setattr(_search_runs, "fits_not_counted", nullcontext)
    ours = OutputPerturbationClassifier(**KNOWN_SIZES)
    grid = {"alpha": [0.1, 1.0, 10.0, 20.0]}
    params = {"selection": selection, "random_state": 0}
    private = PrivateSearchCV(ours, grid, epsilon=2.0, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private.fit(X, Y)
    (fits,) = _repeated_fits._TABLES_SEEN.values()
    assert (fits is None) == planted
    if not planted:
        assert fits.total() == 1
        (text,) = texts_of(lambda: private.fit(X, Y))
        total = accounting.epsilon([*private.privacy_.events] * 2, private.privacy_.delta)
        assert float(re.search(r"together have epsilon=(\S+)", text)[1]) >= total


def test_fits_of_audits_plans_and_displays_are_not_counted():
    ours = OutputPerturbationClassifier(**KNOWN_SIZES)

    def look():
        other = X.copy()
        other[0] = -X[0]
        audit.audit(ours, X, Y, other, Y, n_fits=8)
        plan_accuracy(300, 3, 2, epsilons=[1.0], n_repeats=2, random_state=0)

    assert texts_of(look) == []
    assert _repeated_fits._TABLES_SEEN == {}


def test_releases_beside_a_fitted_model_are_counted():
    frozen = FrozenEstimator(LogisticRegression().fit(X, Y))
    choice = PrivateThresholdClassifier(frozen, target="recall", value=0.5, epsilon=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choice.fit(X, Y)
    (text,) = texts_of(lambda: choice.fit(X, Y))
    assert "together have epsilon=4 at delta=0" in text


def test_tables_and_lists_have_columns_too():
    table = PrivateTableClassifier(epsilon=1.0, classes=[0, 1])
    frame = pd.DataFrame(X, columns=list("abcde"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table.fit(frame, Y)
    (text,) = texts_of(lambda: table.fit(frame, Y))
    assert "fit 2 of" in text
    lists = X.tolist()
    # An iterator has no length, and is read like other rows.
    odd = [iter(lists[0]), *lists[1:]]
    names = [_repeated_fits._columns_of(rows) for rows in (X, lists, odd, [], {}, frame)]
    assert names == [5, 5, 5, 0, 0, tuple("abcde")]


def test_threads_count_for_one_process():
    def fit():
        OURS.__sklearn_clone__().fit(X, Y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=fit) for _ in range(4)]
        for thread in threads:
            thread.start()
            thread.join()
    (fits,) = _repeated_fits._TABLES_SEEN.values()
    assert fits is None  # there were several, which was said


def test_a_method_is_not_taken_for_names():
    """The array of another library may have one of this name."""

    class Columns(np.ndarray):
        def columns(self):
            raise AssertionError

    assert _repeated_fits._columns_of(np.ones((4, 2)).view(Columns)) == 2
