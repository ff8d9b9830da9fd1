"""Private weights of records: sensitivities by brute force and by replays, bugs, refusals, routing.

Proofs: ``docs/proofs/weights.md``.
"""

import math
import re
import traceback
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import has_fit_parameter

from dp_halfspace import (
    AdaptiveMarginClassifier,
    LabelPrivateClassifier,
    ObjectivePerturbationClassifier,
    OutputPerturbationClassifier,
    PrivateAUCClassifier,
    PrivateKernelClassifier,
    PrivateTableClassifier,
    PureHalfspaceClassifier,
    PureNetworkClassifier,
)
from dp_halfspace.data import record_weights
from dp_halfspace.data.record_weights import with_sample_weight
from dp_halfspace.datasets import in_chunks
from dp_halfspace.estimators import base
from tests.adversarial import unit
from tests.conftest import separated
from tests.releases import record_releases
from tests.support import Book, largest_ratio

pytestmark = pytest.mark.filterwarnings("ignore::dp_halfspace.PrivacyWarning")


@pytest.fixture(autouse=True)
def few_records(request, monkeypatch):
    """Brute force takes tables of a few records, for which weights are refused otherwise."""
    if "least_number" not in request.node.name:
        monkeypatch.setattr("dp_halfspace.data.record_weights._FEWEST_WEIGHTED", 1)


LABELS = [0, 1]
CASES = {
    "units": AdaptiveMarginClassifier(epsilon=50.0),
    "stated": AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0),
    "balanced": AdaptiveMarginClassifier(epsilon=50.0, data_norm=1.0, class_weight="balanced"),
    "margin": AdaptiveMarginClassifier(margin=0.3, epsilon=50.0, data_norm=1.0),
    "projected": AdaptiveMarginClassifier(
        epsilon=50.0, data_norm=1.0, projection="rademacher", n_components=1
    ),
    "fourier": PrivateKernelClassifier(epsilon=50.0, kernel="rbf", data_norm=1.0, n_components=16),
    "features": PrivateKernelClassifier(
        epsilon=50.0, kernel="rbf", margin=0.3, data_norm=1.0, n_components=16
    ),
    "table": PrivateTableClassifier(
        epsilon=50.0, schema={"0": [-1, 1], "1": [-1, 1]}, features="linear"
    ),
    "output": OutputPerturbationClassifier(epsilon=50.0, data_norm=1.0),
    "clipped output": OutputPerturbationClassifier(
        epsilon=50.0, data_norm=1.0, preconditioner=False, fit_intercept=False
    ),
    "hinge": OutputPerturbationClassifier(
        loss="huber_hinge", alpha=0.1, epsilon=50.0, data_norm=1.0
    ),
    "tilted": OutputPerturbationClassifier(
        loss="logistic", alpha=0.1, epsilon=50.0, data_norm=1.0, tilt=1.0
    ),
    "robust output": OutputPerturbationClassifier(
        loss="logistic", alpha=0.1, epsilon=50.0, data_norm=1.0, adversary_radius=0.3
    ),
    "objective": ObjectivePerturbationClassifier(epsilon=50.0, data_norm=1.0),
    "pure objective": ObjectivePerturbationClassifier(epsilon=50.0, delta=0.0, data_norm=1.0),
}


# Records in the place of a record `x` of label and weight one.
OTHERS = (
    lambda x: (x, 0, 1.0),
    lambda x: (-x, 1, 1.0),
    lambda x: (-x, 0, 0.0),
    lambda x: (-x, 1, 0.37),
    lambda x: (x, 1, 0.0),
)


def neighbours(trials, seed=0, d=2, n=12, n_classes=2):
    """Tables of features, labels and weights that differ in one record, weight included."""
    rng = np.random.default_rng(seed)
    for trial in range(trials):
        X = np.array([unit(rng, d) for _ in range(n)]) * rng.choice([0.2, 1.0, 30.0], (n, 1))
        y, w = rng.integers(n_classes, size=n), rng.choice([0.0, 0.01, 0.3, 1.0], n)
        number, x = int(rng.integers(n)), unit(rng, d)
        if trial % 3 == 0:
            X, y, w = np.tile(x, (n, 1)), np.ones(n, int), np.ones(n)
        pair = []
        for own_x, label, weight in ((x, 1, 1.0), OTHERS[trial % len(OTHERS)](x)):
            own = X.copy(), y.copy(), w.copy()
            own[0][number], own[1][number], own[2][number] = own_x, label, weight
            pair.append(own)
        yield pair


def worst(estimator, trials=6, seed=1, n_classes=2):
    """Largest change of a query over its sensitivity, in a real history and an adversary's."""
    largest, estimator = 0.0, clone(estimator).set_params(classes=list(range(n_classes)))
    size = 12 if estimator.get_params().get("data_norm") else 400
    for number, pair in enumerate(neighbours(trials, seed, n=size, n_classes=n_classes)):
        seeded = clone(estimator).set_params(random_state=number)

        def fit(data, y, model=seeded):
            return clone(model).fit(data[0], y, sample_weight=data[1])

        (X, y, w), (other, labels, moved) = pair
        data = (X, w), y, (other, moved), labels
        largest = max(largest, largest_ratio(fit, *data, random_state=number))
    return largest


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_every_query_moves_by_its_sensitivity_at_most_whatever_the_weights(name):
    assert worst(CASES[name], 4) <= 1.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["units", "balanced", "fourier", "table", "output", "objective"])
def test_so_does_every_query_of_three_classes(name):
    assert worst(CASES[name], 4, n_classes=3) <= 1.0


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", ["units", "stated", "fourier", "output", "objective"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_without_an_intercept_have_weights_too(name, n_classes):
    """Their moment has no corner with the sum of the weights; the public number stands for it."""
    without = clone(CASES[name]).set_params(fit_intercept=False)
    assert 0.0 < worst(without, 2, n_classes=n_classes) <= 1.0


@pytest.mark.parametrize(("name", "near"), [("stated", 0.99), ("margin", 0.99)])
def test_records_of_weight_one_come_near_the_bound(name, near):
    assert near < worst(CASES[name], 7) <= 1.0


def test_counts_of_two_classes_move_by_the_root_of_two():
    """The sum of the weights is private, so both classes are counted, and a record moves both."""
    assert 0.99 < worst(CASES["balanced"], 4) <= 1.0


# -- sums, by brute force ------------------------------------------------------------


def test_a_tilt_knows_that_losses_may_weigh_nothing():
    X, y, w = table()
    estimator = clone(CASES["tilted"]).set_params(classes=LABELS)
    costs = []
    for own in (None, w):
        data = estimator._validate(X, y, None)
        data = data if own is None else with_sample_weight(data, own)
        plan = estimator._fit_plan(data).plan
        costs.append((plan.risk.min_weight, plan.sensitivity))
    assert [least for least, _ in costs] == [1.0, 0.0]
    assert costs[0][1] < costs[1][1]
    # So may those of the classes, if noisy counts decide.
    for weight, least in (("balanced", 0.0), ({LABELS[0]: 0.5}, 0.5)):
        plan = estimator.set_params(class_weight=weight)._fit_plan(estimator._validate(X, y, None))
        assert getattr(plan, "inner", plan).plan.risk.min_weight == least


# -- what weights are ----------------------------------------------------------------


def table(n=300, seed=0):
    X, y = separated(n, 3, seed=seed)
    return X, y, np.random.default_rng(seed).random(n)


def noise_scales(estimator, X, y, w):
    with record_releases() as releases:
        clone(estimator).set_params(classes=LABELS).fit(X, y, sample_weight=w)
    return [release.mechanism for release in releases]


@pytest.mark.parametrize("name", CASES)
def test_no_bit_of_a_plan_or_of_a_noise_follows_the_weights(name):
    X, y, w = table()
    estimator = clone(CASES[name]).set_params(classes=LABELS, random_state=0)
    records = [estimator.plan(X, y, sample_weight=own) for own in (w, 1e-9 * w, np.ones(300))]
    assert records[0] == records[1] == records[2]
    assert dict(records[0].public)["sample_weight"] == "private, in [0, 1]"
    assert "sample_weight" not in dict(estimator.plan(X, y).public)
    if estimator.get_params().get(
        "data_norm"
    ):  # the noise of narrow columns follows their number, which is released
        first, second = (noise_scales(estimator, X, y, own) for own in (w, 0 * w))
        assert first == second


def test_weights_of_one_are_no_weights_where_nothing_is_counted():
    """A released second moment says how large their sum is, which is private."""
    X, y, _ = table()
    for name in ("clipped output", "hinge", "robust output", "margin"):
        estimator = clone(CASES[name]).set_params(classes=LABELS, random_state=0)
        other = clone(estimator).fit(X, y, sample_weight=np.ones(300))
        assert (other.coef_ == estimator.fit(X, y).coef_).all()


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("units", "table")])
def test_a_record_of_weight_zero_says_nothing_but_its_length(name):
    """Neither label nor direction. At this budget no column scales, which read no weights, pay."""
    X, y, _ = table()
    w = np.append(np.ones(200), np.zeros(100))
    estimator = clone(CASES[name]).set_params(epsilon=0.2, classes=LABELS, random_state=0)
    first = clone(estimator).fit(X, y, sample_weight=w).coef_
    other = np.where(w == 0, 1 - y, y)
    silent = np.where(w[:, None] == 0, -X, X)
    assert np.allclose(first, clone(estimator).fit(silent, other, sample_weight=w).coef_)
    assert not np.allclose(first, clone(estimator).fit(X, other, sample_weight=1 - w).coef_)


def test_without_noise_a_record_of_weight_zero_is_absent_from_features():
    """Their moment tells the sum of the weights."""
    X, y, _ = table()
    w = np.append(np.ones(200), np.zeros(100))
    estimator = clone(CASES["fourier"]).set_params(epsilon=math.inf, classes=LABELS, random_state=0)
    first = clone(estimator).fit(X, y, sample_weight=w).coef_
    assert np.allclose(first, estimator.fit(X[:200], y[:200]).coef_, atol=0.1)


@pytest.mark.parametrize("name", ["clipped output", "margin", "features"])
def test_weights_multiply_those_of_the_classes(name):
    X, y, _ = table()
    estimator = clone(CASES[name]).set_params(epsilon=math.inf, classes=LABELS, random_state=0)
    by_record = clone(estimator).fit(X, y, sample_weight=np.where(y == 1, 0.25, 1.0))
    by_class = clone(estimator).set_params(class_weight={0: 1.0, 1: 0.25}).fit(X, y)
    assert np.allclose(by_record.coef_, by_class.coef_, atol=1e-6)
    if name == "clipped output":
        both = clone(by_class).set_params(alpha=0.1).fit(X, y, sample_weight=np.full(300, 0.5))
        half = clone(both).set_params(class_weight={0: 0.5, 1: 0.125}).fit(X, y)
        assert np.allclose(both.coef_, half.coef_, atol=1e-6)


def test_probabilities_are_those_of_the_weighed_records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(6000, 1))
    y = rng.integers(2, size=6000)
    estimator = PrivateTableClassifier(epsilon=5, schema={"0": [-1, 1]}, classes=LABELS)
    w = np.where(y == 1, 0.25, 1.0)
    assert estimator.fit(X, y).predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.03)
    weighed = estimator.fit(X, y, sample_weight=w)
    assert weighed.predict_proba(X)[:, 1].mean() == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("n", [4, 1000, 2**11])
def test_weights_are_rounded_down_to_a_grid_on_which_sums_are_exact(monkeypatch, n):
    """As if a float had 40 bits, so that a thousand records are many."""
    monkeypatch.setattr(record_weights, "EXACT_BITS", 40)
    given = np.tile([1.0, 1 / 3, 5e-324, 0.7], n // 4)
    found = record_weights._checked(given, n)
    one = 1 << min(30, 40 - n.bit_length())
    assert found[0] == 1.0
    assert ((found <= given) & (given - found < 1 / one)).all()
    assert (found * one == np.rint(found * one)).all()
    if n == 1000:
        assert Fraction(float(np.sum(found))) == sum(map(Fraction, found.tolist()))


# -- refusals and inputs -------------------------------------------------------------


BAD = {
    "beyond one": lambda w: 1.0 + w,
    "negative": lambda w: w - 0.50000123,
    "missing": lambda w: np.where(w > 0.5, math.nan, w),
    "infinite": lambda w: np.where(w > 0.5, math.inf, w),
    "None": lambda w: [None, *w[1:]],
    "NA": lambda w: pd.Series(w, dtype="Float64").mask(w > 0.5),
    "text": lambda w: ["half" for _ in w],
    "text among numbers": lambda w: np.array(["half", *w[1:]], dtype=object),
    "short": lambda w: w[1:],
    "long": lambda w: [*w, 0.5],
    "column": lambda w: w[:, None],
    "a number": lambda _: 0.50000123,
    "complex": lambda w: w + 0j,
    "dates": lambda w: (1e9 * w).astype("datetime64[s]"),
    "masked": lambda w: np.ma.masked_greater(w, 0.5),
    "ragged": lambda w: [[0.50000123], *w[1:]],
    "sparse": lambda w: sparse.csr_array(w[None, :]),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("way", ["fit", "plan"])
def test_weights_that_are_none_are_refused_without_a_value(bad, way):
    X, y, w = table()
    w[0] = 0.50000123
    estimator = AdaptiveMarginClassifier(data_norm=1.0, classes=LABELS)
    with pytest.raises(ValueError, match="sample_weight") as caught:
        getattr(estimator, way)(X, y, sample_weight=BAD[bad](w))
    text = "".join(traceback.format_exception(caught.value, limit=0))
    assert not re.search(r"\d\.\d\d", text)
    assert not hasattr(estimator, "coef_")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("n", [40, 10**6])
@pytest.mark.parametrize(
    "beyond",
    [np.nextafter(1.0, 2.0), 1.0 + 2.0**-29, 1.0 + 2.0**-31, -5e-324, -(2.0**-31), -1e-9],
)
def test_the_largest_weight_is_one(beyond, n):
    """And the smallest is zero: the next floats are refused, which would raise a sensitivity."""
    ends = np.resize([0.0, 1.0, 0.5], n)
    assert record_weights._checked(ends, n).tolist() == ends.tolist()
    for place in (0, n - 1):
        other = ends.copy()
        other[place] = beyond
        with pytest.raises(ValueError, match=r"not a number in \[0, 1\]"):
            record_weights._checked(other, n)


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, np.float32, lambda w: w > 0.5])
def test_weights_of_any_kind_of_number_are_taken(kind):
    X, y, w = table()
    estimator = AdaptiveMarginClassifier(data_norm=1.0, classes=LABELS)
    assert estimator.fit(X, y, sample_weight=kind(np.float32(w))).coef_.shape == (1, 3)


UNPROVED = {
    "ranking": PrivateAUCClassifier(),
    "directions": PureHalfspaceClassifier(),
    "network": PureNetworkClassifier(data_norm=1.0),
    "labels": LabelPrivateClassifier(),
    "pure": AdaptiveMarginClassifier(delta=0.0, epsilon=0.1),
    "selection": AdaptiveMarginClassifier(selection="exponential"),
    "proximal": AdaptiveMarginClassifier(margin=0.3, solver="phased_prox"),
    "kernel selection": PrivateKernelClassifier(margin="select", data_norm=1.0),
}


@pytest.mark.parametrize("name", UNPROVED)
def test_what_is_not_proved_is_refused_before_it_pays(name):
    X, y, w = table(600)
    ledger = Book()
    estimator = clone(UNPROVED[name]).set_params(classes=LABELS, ledger=ledger)
    with pytest.raises(ValueError, match="sample_weight is not supported with these parameters"):
        estimator.fit(X, y, sample_weight=w)
    assert not ledger.records


def test_chunks_and_people_have_no_weights():
    X, y, w = table()
    estimator = AdaptiveMarginClassifier(data_norm=1.0, classes=LABELS)
    with pytest.raises(ValueError, match="sample_weight is not supported for rows in chunks"):
        estimator.fit(in_chunks(X, 100), y, sample_weight=w)
    with pytest.raises(ValueError, match="sample_weight is not supported together with groups"):
        estimator.fit(X, y, groups=np.arange(300), sample_weight=w)


def test_small_tables_with_weights_are_left_to_the_engine():
    X, y, w = table(100)
    for estimator in (AdaptiveMarginClassifier(), PrivateTableClassifier(schema={})):
        estimator = clone(estimator).set_params(classes=LABELS)
        names = {event.__class__.__name__ for event in estimator.plan(X, y).events}
        weighed = {e.__class__.__name__ for e in estimator.plan(X, y, sample_weight=w).events}
        assert "Gaussian" not in names
        assert "Gaussian" in weighed


# -- scikit-learn --------------------------------------------------------------------


def test_weights_are_routed_by_scikit_learn(monkeypatch):
    X, y, w = table()
    seen = []

    def watched(data, sample_weight):
        seen.append(sample_weight)
        return with_sample_weight(data, sample_weight)

    monkeypatch.setattr(base, "with_sample_weight", watched)
    with sklearn.config_context(enable_metadata_routing=True):
        model = AdaptiveMarginClassifier(data_norm=1.0, classes=LABELS)
        model = model.set_fit_request(sample_weight=True)
        piped = make_pipeline(FunctionTransformer(), model)
        piped.fit(X, y, sample_weight=w)
        assert (seen.pop() == w).all()
        score = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        cross_validate(piped, X, y, cv=3, scoring=score, params={"sample_weight": w})
    assert [len(part) for part in seen] == [200, 200, 200]


def test_there_is_a_least_number_of_records():
    """Decided by the public number of records alone."""
    X, y = separated(19, 3)
    for weights in (np.ones(19), np.zeros(19), y):
        with pytest.raises(ValueError, match="sample_weight needs at least 20 records, got 19"):
            AdaptiveMarginClassifier(classes=[0, 1]).fit(X, y, sample_weight=weights)


def test_scikit_learn_does_not_take_these_weights_for_its_own():
    """Its checks, and what repeats rows by weights, ask for weights above one."""
    model = AdaptiveMarginClassifier()
    assert not has_fit_parameter(model, "sample_weight")
    assert "sample_weight" in model.get_metadata_routing().fit.requests
