"""What no estimator takes, and what each cannot do: refused by name, and nothing is charged."""

import importlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier

import dp_halfspace
from dp_halfspace import CertificateError, PrivacyWarning
from dp_halfspace.datasets import in_chunks
from tests.conftest import separated
from tests.instances import ESTIMATORS, made, with_enough_records
from tests.support import Book, one_of_each

NAN, INF = float("nan"), float("inf")
WEIGHTS = r"class_weight\[1\] must be .* between 1e-50 and 1e\+50"
COMMON = [
    *(({"epsilon": v}, "epsilon") for v in (0, -1.0, NAN, "1", 1e-290, 1e300)),
    *(({"delta": v}, "delta") for v in (0.5, -1e-9, NAN, 5e-324)),
    *(({"data_norm": v}, "data_norm") for v in (0, INF, NAN)),
    ({"fit_intercept": "yes"}, "fit_intercept"),
    ({"intercept_scaling": 0.0}, "intercept_scaling"),
    *(({"classes": v}, "classes") for v in ([0], [0, 0], [[0, 1]], [0.0, NAN])),
    *(({"class_weight": v}, "class_weight") for v in ("heavy", {7: 1.0}, {0: -1.0}, {0: NAN})),
    *(({"class_weight": {1: v}}, WEIGHTS) for v in (1e-51, 1e51, 1e155, 1e300)),
    *(({"random_state": v}, "random_state") for v in (-1, np.random.RandomState(0))),
    ({"ledger": 3}, "ledger"),
]
RADIUS = "adversary_radius .* less than data_norm"
ADVERSARY = [
    *(({"adversary_radius": v}, "'adversary_radius' parameter") for v in (-0.1, NAN, INF)),
    ({"adversary_radius": 1.0}, RADIUS),
    ({"adversary_radius": 3.0, "adversary_norm": "inf"}, RADIUS),
    ({"adversary_radius": 0.3, "data_norm": 0.2}, RADIUS),
    ({"adversary_radius": 0.3, "data_norm": None}, "adversary_radius .* give data_norm"),
    *(({"adversary_norm": v}, "adversary_norm") for v in (1, "2", "l2", None)),
]
ATTACKED = {"adversary_radius": 0.1}
THREE = {"classes": [0, 1, 2]}
PAIR = [0.1, 0.2]
OWN = {
    "AdaptiveMarginClassifier": [
        ({"solver": "phased_prox", **THREE}, "phased_prox"),
        ({"solver": "phased_prox", "delta": 0}, "phased_prox"),
        ({"selection": "gaussian", "delta": 0}, "selection"),
        ({"selection": "exponential", "solver": "objective_perturbation"}, "selection"),
        ({"selection": "random_stopping", "margin": 0.1}, "margin"),
        ({"selection": "gaussian", "margin": [0.1] * 1001}, "margin is a list of at most 1000"),
        *(
            ({"selection": "exponential", "margin": v}, "margin")
            for v in ([], [PAIR], [[0.1], [0.2, 0.3]], ["a", "b"], [True], [0.1, NAN])
        ),
        *(
            ({"selection": "exponential", "margin": [0.1, v]}, "margin")
            for v in (0.0, 1.01, 1e-300)
        ),
        *(({"margin": v}, "margin") for v in (PAIR, np.array(5.0), np.array(-1.0), {"a": 0.1})),
        *(({"margin": v}, "margin") for v in (0.0, 1e-300, NAN)),
    ],
    "ObjectivePerturbationClassifier": [
        ({"rows": "clipped", "preconditioner": True}, "preconditioner"),
        ({"epsilon": 1e-3, "preconditioner": True}, "preconditioner"),
        ({"loss": "hinge"}, "loss"),
    ],
    "OutputPerturbationClassifier": [
        *ADVERSARY,
        *(({"tilt": v}, "'tilt' parameter") for v in (-1.0, NAN, INF)),
        ({**ATTACKED, "loss": "squared"}, "adversary_radius needs a loss .*'squared'"),
        *(
            ({"preconditioner": True, **v}, "preconditioner=True needs delta > 0, tilt=0")
            for v in (ATTACKED, {"tilt": 1.0}, {"delta": 0.0})
        ),
        ({"preconditioner": True, "epsilon": 1e-3}, "preconditioner=True needs at most 512"),
    ],
    "PrivateAUCClassifier": [
        *(
            ({"class_counts": v}, "class_counts")
            for v in ((0, 5), (-1, 2), (1,), (1, 2, 3), ("a", 1), (NAN, 1), (INF, 1), "public")
        ),
        ({"mechanism": "objective", "loss": "squared"}, "bounded slope"),
        ({"threshold": 0.3, "fit_intercept": False}, "fit_intercept"),
        (THREE, "Only binary"),
    ],
    "PrivateKernelClassifier": [
        ({"length_scale": 1e-9}, "length_scale"),
        ({"margin": "select", "delta": 0.0}, "margin='select'"),
        ({"margin": "select", **THREE}, "Only binary"),
        ({"solver": "phased_prox", **THREE}, "Only binary"),
        ({"solver": "phased_prox", "delta": 0.0}, "phased_prox"),
    ],
    "PureHalfspaceClassifier": [
        (THREE, "Only binary"),
        *(({"delta": v}, "delta") for v in (1e-6, "auto")),
        *(({"n_directions": v}, "n_directions") for v in (10**6 + 1, 1)),
    ],
    "PureNetworkClassifier": [
        *(
            ({"n_hidden": v}, "n_hidden")
            for v in (0, [], [3, 0], [3, -1], [2.5], [[3]], "6", 6.0, None)
        ),
        ({"n_hidden": 84}, r"over 10\^\d+ networks.*PrivateKernelClassifier"),
        ({"n_hidden": [3] * 6}, "6 hidden layers"),
        ({"n_hidden": [100, 2]}, "n_hidden=100, 2 units"),
        ({"n_candidates": 10**6 + 1}, "n_candidates"),
        *(({"epsilon": v}, r"n_samples.*at least 18\.4.*about 1000 to learn") for v in (0.18, 0.1)),
        (THREE, "Only binary"),
    ],
}
CASES = [
    pytest.param(name, params, said, id=re.sub(r" at 0x\w+", "", f"{name}-{params}"))
    for place, name in enumerate(ESTIMATORS)
    for params, said in [*([] if place else COMMON), *OWN.get(name, [])]
]


class Closed:
    """A ledger that nobody may get to."""

    def charge(self, record):
        raise AssertionError("charged")


@pytest.mark.parametrize(("name", "params", "said"), CASES)
def test_what_cannot_be_done_is_refused_by_name(monkeypatch, name, params, said):
    """Before the data are read or anything is charged, and without a trace in the estimator."""
    module = importlib.import_module("dp_halfspace.estimators._centred")
    monkeypatch.setattr(module, "clipped_rows", lambda *a: pytest.fail("the data were read"))
    X, y = separated(100, 15)
    model = getattr(dp_halfspace, name)(ledger=Closed()).set_params(**{"data_norm": 1.0, **params})
    before = dict(vars(model))
    with pytest.raises(ValueError, match=said):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("given", ["no such word", -1.5, NAN])
def test_a_value_outside_of_its_range_is_refused_by_the_name_of_its_parameter(name, given):
    """Of every parameter but free forms: a negative threshold of scores, labels, lists, ledgers."""
    X, y = separated(20, 3)
    kind = getattr(dp_halfspace, name)
    free = {"classes", "class_weight", "class_counts", "n_hidden", "threshold", "ledger", "verbose"}
    for parameter in {*kind._parameter_constraints} - free - {"prior", "margin"}:
        model = kind(ledger=Closed()).set_params(**{parameter: given})
        with pytest.raises(ValueError, match=parameter):
            model.fit(X, y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_refused_refit_keeps_the_fitted_model(name):
    X, y = separated(100, 4)
    model = made(name, classes=[0, 1]).fit(X, y)
    before = dict(vars(model.set_params(epsilon=-1.0)))
    with pytest.raises(ValueError, match="epsilon"):
        model.fit(X, y)
    assert vars(model) == before


@one_of_each
def test_missing_probabilities_say_what_to_use(estimator):
    """And `hasattr` is false, as scikit-learn expects."""
    model = clone(estimator)
    if hasattr(model, "predict_proba"):
        assert hasattr(type(model), "predict_proba")
        return
    assert getattr(model, "predict_proba", None) is None
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(np.zeros((1, 2)))
    said = str(caught.value.__cause__ or caught.value)
    assert re.search("Use AdaptiveMarginClassifier|need|not available with mechanism='net'", said)


@pytest.mark.sampled(12)
@one_of_each
@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier])
def test_pairs_of_labels_of_more_stated_ones_are_refused_before_the_charge(estimator, wrapper):
    """They are replaced by two others, so that scores of three classes would be of no use."""
    X, y = separated(90, 4, 3)
    book = Book()
    two, how = ([-1, 1], {"random_state": 0}) if wrapper is OutputCodeClassifier else ([0, 1], {})
    stated = clone(estimator).set_params(classes=[*two, 2], ledger=book)
    said = "Only binary|classes states 3 labels, and OneVsRestClassifier, .*: state classes=.0, 1."
    with pytest.raises(ValueError, match=said):
        wrapper(stated, **how).fit(X, y)
    assert not book.records
    if type(estimator) is dp_halfspace.AdaptiveMarginClassifier:
        # In a worker, too, which does not see the call.
        if wrapper is OneVsRestClassifier:
            with parallel_config("threading"), pytest.raises(ValueError, match=said):
                wrapper(stated, n_jobs=2).fit(X, y)
        pairs = wrapper(clone(estimator).set_params(classes=two, epsilon=50.0))
        assert pairs.fit(X, y).predict(X).shape == (90,)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("labels", "stated"),
    [
        *(([0, 1], stated) for stated in (True, False)),
        *(([False, True], stated) for stated in (True, False)),
        *(([1.0, 2.0], stated) for stated in (True, False)),
        ([0.5, 2.5], True),
    ],
)
@one_of_each
def test_numbers_stored_as_objects_are_labels_everywhere(estimator, labels, stated):
    """What a fit takes is scored: the dtype of a column says nothing of its cells."""
    X, y = with_enough_records(estimator, *separated(60, 2))
    plain = np.array(labels)[y]
    model = clone(estimator).set_params(epsilon=9.0)
    model.set_params(classes=labels if stated else None)
    for objects in (plain.astype(object), pd.Series(plain, dtype=object)):
        fitted = clone(model).fit(X, objects)
        assert fitted.classes_.dtype == plain.dtype
        assert fitted.score(X, objects) == fitted.score(X, plain) == fitted.score(X, [*plain])
        search = dp_halfspace.PrivateThresholdClassifier
        if hasattr(fitted, "decision_function") and hasattr(fitted, "predict_proba"):
            outer = search(fitted, epsilon=9.0).fit(X, objects)
            assert outer.score(X, objects) == outer.score(X, plain)


@pytest.mark.parametrize(
    "estimator",
    [
        dp_halfspace.AdaptiveMarginClassifier(solver="objective_perturbation"),
        dp_halfspace.ObjectivePerturbationClassifier(),
        dp_halfspace.PrivateAUCClassifier(),
        dp_halfspace.PrivateKernelClassifier(kernel="rbf"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_refusal_of_a_tiny_epsilon_names_what_helps(estimator):
    """Nothing but the noise of the linear term is too large; alpha is none of their parameters."""
    X, y = separated(60, 2)
    with pytest.raises(CertificateError, match=r"use a larger epsilon, or delta above 0$"):
        clone(estimator).set_params(classes=[0, 1], epsilon=1e-9, delta=0.0).plan(X, y)
    for others in ({"epsilon": 1e-5, "delta": 0.0}, {"epsilon": 1e-9}):
        clone(estimator).set_params(classes=[0, 1], **others).plan(X, y)


SCHEMA = {"age": "number", "ill": "boolean"}


@pytest.mark.parametrize(
    "model",
    [
        dp_halfspace.AdaptiveMarginClassifier(classes=[0, 1], epsilon=9.0),
        dp_halfspace.PrivateTableClassifier(classes=[0, 1], epsilon=9.0, schema=SCHEMA),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_column_with_the_name_of_the_labels_is_named(model):
    X, y = separated(60, 2)
    table = pd.DataFrame(X, columns=["age", "ill"]).assign(ill=y)
    search = dp_halfspace.PrivateSearchCV(clone(model), {"class_weight": [None]}, epsilon=9.0)
    for labels in (table["ill"], table[["ill"]]):
        for run in (clone(model).fit, clone(model).plan, search.fit):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A column-vector y")
                with pytest.warns(PrivacyWarning, match="X has a column 'ill', and y has this"):
                    run(table, labels)
    fits = [(model, table, y), (model, table, table["ill"].rename("sick"))]
    if hasattr(model, "schema"):
        without = clone(model).set_params(schema={**SCHEMA, "ill": "drop"})
        fits.append((without, table, table["ill"]))
    for one, rows, labels in fits:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clone(one).fit(rows, labels)
        assert not [w for w in caught if "this name" in str(w.message)]


@pytest.mark.parametrize("attribute", ["columns", "column_names"])
def test_the_label_of_a_record_is_not_taken_for_the_name_of_labels(attribute):
    """The index of a series may contain the name of an attribute, and a label that of a column."""
    X, y = separated(60, 2)
    table = pd.DataFrame(X, columns=["a", "b"])
    labels = pd.Series(np.where(y == 1, "a", "b"), index=[attribute, *range(59)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dp_halfspace.AdaptiveMarginClassifier(classes=["a", "b"], epsilon=9.0).plan(table, labels)
    assert not [w for w in caught if "this name" in str(w.message)]


@pytest.mark.filterwarnings("ignore::dp_halfspace.exceptions.PrivacyWarning")
@pytest.mark.parametrize("given", ["sample_weight", "chunks", "groups"])
def test_a_refusal_names_every_class_that_accepts_what_it_refuses(given):
    rows, labels = separated(3000, 3)
    how = {"sample_weight": {"sample_weight": np.ones(3000)}, "groups": {"groups": range(3000)}}
    X, y = rows, labels
    if given == "chunks":
        X, y = in_chunks(rows, 500), in_chunks(labels, 500)
    accepting, said = set(), ""
    for name in (*ESTIMATORS, "PrivateTableClassifier"):
        try:
            getattr(dp_halfspace, name)(classes=[0, 1]).plan(X, y, **how.get(given, {}))
            accepting.add(name)
        except ValueError as error:
            said = str(error)
    assert set(re.findall(r"\w+Classifier", said)) == accepting
