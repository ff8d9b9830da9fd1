"""Tables whose rarer class a column ranks: the public rule, what decides, replays, planted bugs."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.datasets import in_chunks
from dp_halfspace.estimators import _table_plans
from dp_halfspace.estimators._table_plans import (
    ColumnRankingFit,
    owners_of,
    repeats_of,
)
from dp_halfspace.privacy import Either, Exponential, Gaussian, Pure, accounting, gdp_mu
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.selection.rule import rare_class_limit
from dp_halfspace.selection.small_tables import SmallModel, share_of
from tests.permits import table_door
from tests.releases import record_releases
from tests.support import largest_ratio, public

pytestmark = pytest.mark.filterwarnings("ignore")
N = 4000
SCHEMA = dict.fromkeys("abcd", "number") | {"e": list("abcdef")}
MODEL = PrivateTableClassifier(epsilon=0.2, classes=[0, 1], schema=SCHEMA, random_state=0)
SMALL = clone(MODEL).set_params(epsilon=0.077)


def ward(share, n=N, seed=0):
    """Columns of several sizes, and texts; the third column tells the class of this share."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.lognormal(size=(n, 4)) * 10.0 ** np.array([-3.0, 2.0, 6.0, 0.0])
    X[:, 2] *= np.exp(-3.0 * y)
    frame = pd.DataFrame(X, columns=list("abcd")).astype(object)
    return frame.assign(e=pd.Series(rng.choice(["a", "b"], size=n), dtype=object)), y


def limit_of(model):
    return rare_class_limit(N, model.epsilon)


def test_a_class_is_counted_from_300_to_3500_records_times_epsilon():
    counted = [rare_class_limit(n, 0.5) is not None for n in (599, 600, 6999, 7000)]
    assert counted == [False, True, True, False]


def spent(model, share):
    """Fit; return the model, the event behind the count, and what was released behind it."""
    X, y = ward(share)
    record = model.plan(X, y)
    count, follows = record.events
    assert type(count) is Pure
    assert count.epsilon + follows.epsilon == pytest.approx(model.epsilon, rel=1e-8)
    assert count.epsilon + follows.epsilon <= model.epsilon
    assert accounting.delta(record.events, model.epsilon) <= record.delta
    with record_releases() as releases:
        fitted = clone(model).fit(X, y)
    assert fitted.privacy_.events == record.events == clone(model).plan(*ward(0.5, seed=1)).events
    first, *others = [release.mechanism.event for release in releases]
    assert first == count
    assert public(fitted)["ranked_by_a_column_up_to"] == limit_of(model)
    assert (fitted.column_that_ranks_ == "c") == (share == 0.02)
    return fitted, follows, others


@pytest.mark.parametrize("share", [0.02, 0.4])
def test_the_record_is_the_same_whichever_follows(share):
    model, either, others = spent(MODEL, share)
    assert type(either) is Either
    assert 0.96 < either.mu / gdp_mu(0.2, model.privacy_.delta) < 0.98
    if share == 0.02:
        assert others == [Exponential(either.epsilon)]
    else:
        assert {type(event) for event in others} == {Gaussian}
        assert 0.99 * either.mu < math.hypot(*(event.mu for event in others)) <= either.mu
    assert public(model)["solver"] == "one_column or noisy_gd"


@pytest.mark.parametrize("share", [0.02, 0.4])
@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_a_small_table_spends_the_rest_on_one_selection(share, delta):
    """The same pure DP whichever follows: a column, or a classifier and a count of its errors."""
    model, follows, others = spent(clone(SMALL).set_params(delta=delta), share)
    assert type(follows) is Pure
    if share == 0.02:
        assert others == [Exponential(follows.epsilon)]
    else:
        assert [type(event) for event in others] == [Pure]
        assert 1.0 - 1e-8 < others[0].epsilon / follows.epsilon <= 1.0
        assert model.column_that_ranks_ is None
    assert public(model)["solver"] == "one_column or exponential_mechanism"


def fitted_by(released, X, y, **params):
    """A fit that releases this number of records of the second class, and its other events."""
    events = []

    def answer(value, mechanism, source):
        events.append(mechanism.event)
        return mechanism.perturb(value, source) if events[1:] else np.array([released])

    with intercept_releases(answer):
        model = clone(MODEL).set_params(**params).fit(X, y)
    return model, events[1:]


@pytest.mark.parametrize("common", [0, 1])
def test_a_column_ranks_a_rare_class(common):
    X, y = ward(0.05)
    labels = y if common == 0 else 1 - y
    model, _ = fitted_by(160.0 + 3680.0 * common, X, labels)
    assert model.column_that_ranks_ == "c"
    probabilities = model.predict_proba(X)[:, 1]
    assert np.all(model.predict(X) == common)
    assert roc_auc_score(labels, probabilities) > 0.95
    assert abs(np.mean(probabilities) - 0.04 - 0.92 * common) < 0.005
    assert len(np.unique(probabilities)) > 100


def test_what_is_said_of_a_model_that_is_one_column():
    X, y = ward(0.05)
    model, _ = fitted_by(160.0, X, y)
    assert "the model is one column, 'c', selected to rank that class" in model._finding
    assert model._columns_in_estimated_scales == frozenset()
    steps, _ = fitted_by(2000.0, X, y)
    assert steps._finding == ""
    assert steps._columns_in_estimated_scales


def test_the_column_is_named_wherever_it_is_encoded():
    """Numbers come first, and one text becomes several columns."""
    X, y = ward(0.05)
    X = X[["e", "c", "a"]].assign(f=np.where(y == 1, "s", np.where(X["a"] > 0.01, "t", "u")))
    schema = {"e": ["a", "b"], "f": ["s", "t", "u"], "a": "number", "c": "drop"}
    model, _ = fitted_by(160.0, X, y, schema=schema)
    assert model.column_that_ranks_ == "f"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", [MODEL, SMALL], ids=["steps", "selection"])
@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("share", [0.01, 0.4])
def test_the_branch_follows_the_released_count(model, side, share):
    """Whatever the exact one is."""
    edge = round(limit_of(model) * N)
    for released in (edge + side, N - edge - side):
        _, events = fitted_by(released, *ward(share), epsilon=model.epsilon)
        default = {Gaussian} if model is MODEL else {Pure}
        assert {type(event) for event in events} == (default if side > 0.0 else {Exponential})


@pytest.mark.parametrize(
    "params",
    [
        {"features": "linear"},
        {"class_weight": {0: 0.5, 1: 1.0}},
        {"class_weight": "balanced"},
        {"delta": 0.0, "epsilon": 0.4},
        {"classes": [0, 1, 2]},
        {"epsilon": math.inf},
        {"epsilon": 0.01},
    ],
    ids=str,
)
def test_the_default_alone_follows_where_more_is_asked_for(params):
    X, y = ward(0.05)
    assert not counts_first(clone(MODEL).set_params(**params), X, y)


def counts_first(model, *data, **given):
    return "ranked_by_a_column_up_to" in dict(model.plan(*data, **given).public)


@pytest.mark.parametrize("given", ["groups", "sample_weight"])
def test_steps_alone_follow_people_and_weights(given):
    X, y = ward(0.05)
    rows = np.arange(N) if given == "groups" else np.ones(N)
    assert not counts_first(MODEL, X, y, **{given: rows})


def test_steps_alone_follow_rows_in_chunks():
    X, y = ward(0.05)
    rows, model = X[list("abcd")].to_numpy(dtype=np.float64), clone(MODEL).set_params(schema=None)
    assert counts_first(model, rows, y)
    assert not counts_first(model, in_chunks(rows, 1000), in_chunks(y, 1000))


REPLAYED = clone(MODEL).set_params(random_state=1)


def worst(share, flips, epsilon=0.2):
    """Largest move over the sensitivity; the record moves, and changes its label if it `flips`."""
    X, y = ward(share)
    y[0] = 1
    other, labels = X.copy(), y.copy()
    other.iloc[0] = [1e300, -1e300, 1e-300, None, 7]
    labels[0] = 0 if flips else 1
    model = clone(REPLAYED).set_params(epsilon=epsilon)
    return largest_ratio(model, X, y, other, labels, random_state=0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("share", [0.01, 0.05, 0.4])
@pytest.mark.parametrize("flips", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_a_fit_is_a_function_of_its_releases(share, flips, epsilon):
    assert worst(share, flips, epsilon) <= 1.0


@pytest.mark.parametrize(("noisy", "common"), [(3.0, 0), (7.0, 1)])
@pytest.mark.parametrize("positive", [2, 8])
def test_the_noisy_count_says_which_class_is_the_common_one(noisy, common, positive, monkeypatch):
    """The exact count is private, also where it contradicts the noisy one."""
    asked = []

    def choose(door, common, *how):
        asked.append(common)
        return SmallModel(np.zeros(1), np.zeros(1), exponent=0)

    monkeypatch.setattr(_table_plans, "choose_column", choose)
    door = table_door(np.zeros((10, 1)), np.arange(10) < positive)
    count = DiscreteLaplaceNoise(1, 1.0)
    fitted = ColumnRankingFit(10, None, TalliedChoice(1.0), count, noisy=noisy).run(door)
    assert asked == [common]
    assert fitted.error_share == share_of(3.0, 10, (1.0, 1.0))


def test_columns_share_a_place_in_the_list_where_they_encode_one():
    """A column that shows what is missing is not listed."""
    schema = {"a": "number", "b": "text", "c": list("uvw"), "d": [0, 1]}
    frame = pd.DataFrame({"a": [1.0], "b": ["x"], "c": ["u"], "d": [0.5]})
    data = PrivateTableClassifier(schema=schema, classes=[0, 1])._validate(frame, [0], None)
    owners = owners_of(data.encoding)
    assert len(owners) == data.X.shape[1] + len(data.encoding.indicated)
    repeats = repeats_of(owners)
    assert np.count_nonzero(repeats) == data.X.shape[1]
    assert np.bincount(np.array(owners) + 1, repeats).tolist() == [0, 60, 60, 60, 60]
    assert repeats_of([0, *[1] * 200]).tolist() == [60, *[1] * 200]
    schema["a"] = {"kind": "number", "missing": "ignore"}
    data = PrivateTableClassifier(schema=schema, classes=[0, 1])._validate(frame, [0], None)
    assert owners_of(data.encoding).count(-1) == 1


def test_nothing_is_released_that_was_not_entered(monkeypatch):
    """Planted: a fit that forgets to use up the choice of two kinds."""
    monkeypatch.setattr("dp_halfspace.privacy.mechanisms.Permit.enter", lambda *_: None)
    for model, share in product((MODEL, SMALL), (0.01, 0.4)):
        with pytest.raises(RuntimeError, match="not charged"):
            clone(model).fit(*ward(share))
