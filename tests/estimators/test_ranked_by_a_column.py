"""Tables whose rarer class a column ranks: the public rule, what decides, replays, planted bugs."""

import math
import re
import warnings
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from dp_halfspace import PrivateTableClassifier
from dp_halfspace._cli.commands import describe_columns
from dp_halfspace.algorithms.engine.defaults import rare_class_limit
from dp_halfspace.algorithms.engine.outlook import BY_COUNTS, Table, outlook_of
from dp_halfspace.algorithms.search import column_rankings
from dp_halfspace.algorithms.search.small_tables import SmallModel, share_of
from dp_halfspace.audit import replay
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.datasets import in_chunks
from dp_halfspace.estimators import table
from dp_halfspace.estimators._small_tables import ColumnRankingFit
from dp_halfspace.inspection import check_units, model_card
from dp_halfspace.privacy import Either, Exponential, Gaussian, Pure, accounting, gdp_mu
from dp_halfspace.privacy.interception import intercept_releases
from tests.releases import record_releases
from tests.support import public

pytestmark = pytest.mark.filterwarnings("ignore")
N = 4000
SCHEMA = dict.fromkeys("abcd", "number") | {"e": ["a", "b"]}
MODEL = PrivateTableClassifier(epsilon=0.2, classes=[0, 1], schema=SCHEMA, random_state=0)
SMALL = clone(MODEL).set_params(epsilon=0.1)


def ward(share, n=N, seed=0):
    """Columns of several sizes, and texts; the third column tells the class of this share."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.lognormal(size=(n, 4)) * 10.0 ** np.array([-3.0, 2.0, 6.0, 0.0])
    X[:, 2] *= np.exp(-3.0 * y)
    frame = pd.DataFrame(X, columns=list("abcd")).astype(object)
    return frame.assign(e=pd.Series(rng.choice(["a", "b"], size=n), dtype=object)), y


def ranks_by_a_column(model):
    return model.model_.coef_.shape[1] == np.count_nonzero(model.model_.coef_ == 0.0) + 1


@pytest.mark.parametrize(
    ("n", "epsilon", "limit"),
    [
        (4000, 0.06, None),
        (4000, 0.0625, 0.04),
        (4000, 0.14, 0.04),
        (4000, 0.15, 0.08),
        (4000, 0.24, 0.08),
        (4000, 0.25, 0.03),
        (20000, 0.1, 0.03),
        (40000, 0.08, 65.0 / 3200.0),
        (40000, 0.1, None),
        (4000, math.inf, None),
    ],
)
def test_the_rule_is_about_public_numbers(n, epsilon, limit):
    assert rare_class_limit(n, epsilon) == limit


@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_record_is_the_same_whichever_follows(share):
    X, y = ward(share)
    record = MODEL.plan(X, y)
    count, either = record.events
    assert (type(count), type(either)) == (Pure, Either)
    assert count.epsilon + either.epsilon == pytest.approx(0.2, rel=1e-8)
    assert count.epsilon + either.epsilon <= 0.2
    assert accounting.delta(record.events, 0.2) <= record.delta
    assert 0.96 < either.mu / gdp_mu(0.2, record.delta) < 0.98
    assert record.events == MODEL.plan(*ward(0.5, seed=1)).events
    with record_releases() as releases:
        model = clone(MODEL).fit(X, y)
    assert model.privacy_.events == record.events
    first, *others = [release.mechanism.event for release in releases]
    assert first == count
    if share == 0.05:
        assert others == [Exponential(either.epsilon)]
    else:
        assert {type(event) for event in others} == {Gaussian}
        assert 0.99 * either.mu < math.hypot(*(event.mu for event in others)) <= either.mu
    assert public(model)["ranked_by_a_column_up_to"] == 0.08


@pytest.mark.parametrize("share", [0.02, 0.4])
@pytest.mark.parametrize("delta", ["auto", 0.0])
def test_a_small_table_spends_the_rest_on_one_selection(share, delta):
    """The same pure DP whichever follows: a column, or a classifier and a count of its errors."""
    X, y = ward(share)
    model = clone(SMALL).set_params(delta=delta)
    record = model.plan(X, y)
    count, follows = record.events
    assert (type(count), type(follows)) == (Pure, Pure)
    assert count.epsilon + follows.epsilon == pytest.approx(0.1, rel=1e-8)
    assert count.epsilon + follows.epsilon <= 0.1
    assert count.epsilon == pytest.approx(0.006)
    with record_releases() as releases:
        model.fit(X, y)
    assert model.privacy_.events == record.events == clone(model).plan(*ward(0.5, seed=1)).events
    first, *others = [release.mechanism.event for release in releases]
    assert first == count
    if share == 0.02:
        assert others == [Exponential(follows.epsilon)]
        assert model._column_that_ranks == "c"
    else:
        assert [type(event) for event in others] == [Pure]
        assert 1.0 - 1e-8 < others[0].epsilon / follows.epsilon <= 1.0
        assert model._column_that_ranks is None
    assert public(model)["ranked_by_a_column_up_to"] == 0.04
    assert public(model)["calibrated"]


def test_a_selection_of_many_columns_is_not_preceded_by_a_count():
    """There is no list of classifiers for wide rows, and steps have counts of their own."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 520)), rng.integers(2, size=400)
    for n_columns in (500, 520):
        model = clone(SMALL).set_params(schema=None, epsilon=1.0)
        facts = dict(model.plan(X[:, :n_columns], y).public)
        assert ("ranked_by_a_column_up_to" in facts) == (n_columns == 500)


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
    model, _ = fitted_by(200.0 + 3600.0 * common, X, labels, epsilon=0.24)
    assert ranks_by_a_column(model)
    probabilities = model.predict_proba(X)[:, 1]
    assert np.all(model.predict(X) == common)
    assert roc_auc_score(labels, probabilities) > 0.95
    assert abs(np.mean(probabilities) - 0.05 - 0.9 * common) < 0.005
    assert len(np.unique(probabilities)) > 100


def test_what_is_said_of_a_model_that_is_one_column(capsys):
    """Warning, display of columns, card and units: none of them speaks of steps or of scales."""
    X, y = ward(0.05)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, _ = fitted_by(200.0, X, y, schema=dict.fromkeys("abcd", "number"))
    said = next(str(w.message) for w in caught if "by a noisy count" in str(w.message))
    assert re.match(BY_COUNTS, said)
    assert "0.053 of the records are in the rarer class" in said
    assert "the model is one column, 'c', selected to rank that class" in said
    assert "expect about 74% of the area" in said
    assert "no better than chance" in said
    assert dict(model.privacy_.public)["private_column_scales"]
    assert "estimated scale" not in describe_columns(model)
    page = model_card(model, n_noise_fits=0)
    assert "scale estimated" not in page
    assert "is one column, &#x27;c&#x27;, selected" in page
    assert "If a noisy count finds at most 8% of the records in the rarer class" in page
    assert check_units(model, X.assign(a=1e6 * X["a"])) == ()
    steps, _ = fitted_by(2000.0, X, y, schema=dict.fromkeys("abcd", "number"))
    assert "estimated scale" in describe_columns(steps)
    assert "scale estimated" in model_card(steps, n_noise_fits=0)
    assert "one column, " not in steps._rarity_warning


def test_the_column_is_named_wherever_it_is_encoded():
    """Numbers come first, and one text becomes several columns."""
    X, y = ward(0.05)
    X = X[["e", "c", "a"]].assign(f=np.where(y == 1, "s", np.where(X["a"] > 0.01, "t", "u")))
    schema = {"e": ["a", "b"], "f": ["s", "t", "u"], "a": "number", "c": "drop"}
    model, _ = fitted_by(200.0, X, y, epsilon=0.24, schema=schema)
    assert model._column_that_ranks == "f"


@pytest.mark.parametrize(("share", "limit"), [(0.05, 0.08), (0.1, 0.08), (0.05, 0.03)])
def test_the_outlook_follows_what_would_be_released(share, limit):
    kind = Table(20, share=share, column_limit=limit)
    found, steps = (
        outlook_of(4000, 10, 2, 0.2, 1e-8, kind=k) for k in (kind, replace(kind, column_limit=0.0))
    )
    assert (found.rare_improvement != steps.rare_improvement) == (share <= limit)
    assert f"at most {100 * limit:.2g}% of the records" in str(found)
    assert "selected column" not in str(steps)


@pytest.mark.parametrize("released", [0.0, 319.0, 321.0, 3679.0, 3681.0])
@pytest.mark.parametrize("share", [0.02, 0.4])
def test_the_branch_follows_the_released_count(released, share):
    """Whatever the exact one is."""
    _, events = fitted_by(released, *ward(share))
    is_rare = min(released, N - released) <= 0.08 * N
    assert {type(event) for event in events} == ({Exponential} if is_rare else {Gaussian})


@pytest.mark.parametrize("released", [0.0, 159.0, 161.0, 3839.0, 3841.0])
@pytest.mark.parametrize("share", [0.02, 0.4])
def test_the_branch_of_a_small_table_follows_the_released_count(released, share):
    _, events = fitted_by(released, *ward(share), epsilon=0.1)
    is_rare = min(released, N - released) <= 0.04 * N
    assert [type(event) for event in events] == ([Exponential] if is_rare else [Pure])


@pytest.mark.parametrize(
    "params",
    [
        {"features": "linear"},
        {"probability": False},
        {"class_weight": {0: 0.5, 1: 1.0}},
        {"class_weight": "balanced"},
        {"threshold": {"recall": 0.5}},
        {"delta": 0.0},
        {"classes": [0, 1, 2]},
        {"epsilon": 1.0},
    ],
    ids=str,
)
def test_steps_alone_follow_where_more_is_asked_for(params):
    X, y = ward(0.05)
    events = clone(MODEL).set_params(**params).plan(X, y).events
    assert not any(isinstance(event, Either) for event in events)


@pytest.mark.parametrize("given", ["groups", "sample_weight"])
def test_steps_alone_follow_people_and_weights(given):
    X, y = ward(0.05)
    rows = np.arange(N) if given == "groups" else np.ones(N)
    events = MODEL.plan(X, y, **{given: rows}).events
    assert not any(isinstance(event, Either) for event in events)


def test_steps_alone_follow_rows_in_chunks():
    X, y = ward(0.05)
    rows, model = X[list("abcd")].to_numpy(dtype=np.float64), clone(MODEL).set_params(schema=None)
    assert isinstance(model.plan(rows, y).events[1], Either)
    events = model.plan(in_chunks(rows, 1000), in_chunks(y, 1000)).events
    assert not any(isinstance(event, Either) for event in events)


def test_what_is_said_of_a_small_table_if_no_class_seems_to_be_rare():
    """Fewer errors than the limit do not mean that the model ranks by a column."""
    X, y = ward(0.1)
    model, _ = fitted_by(400.0, X, y, epsilon=0.1)
    assert model._column_that_ranks is None
    assert "each class has more than 4% of the records" in model._rarity_warning
    assert re.search(BY_COUNTS, model._rarity_warning)
    assert model._rarer_share > 0.04
    kind = Table(6, share=model._rarer_share, column_limit=0.04)
    expected = outlook_of(N, 5, 2, 0.1, model.privacy_.delta, kind=kind).rare_improvement
    assert f"expect about {expected:.0%} of the area" in model._rarity_warning


REPLAYED = clone(MODEL).set_params(random_state=1)


def worst(share, flips, epsilon=0.2):
    """Largest move over the sensitivity; the record moves, and changes its label if it `flips`."""
    X, y = ward(share)
    y[0] = 1
    other, labels = X.copy(), y.copy()
    other.iloc[0] = [1e300, -1e300, 1e-300, None, 7]
    labels[0] = 0 if flips else 1
    model = clone(REPLAYED).set_params(epsilon=epsilon)
    result = replay(model, X, y, other, labels, n_histories=1, random_state=0)
    assert [text for text in result.findings if "times the sensitivity" not in text] == []
    return max(release.ratio for release in result.releases)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.4])
@pytest.mark.parametrize("flips", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 0.2])
def test_a_fit_is_a_function_of_its_releases(share, flips, epsilon):
    assert worst(share, flips, epsilon) <= 1.0


def test_the_replay_sees_a_branch_that_follows_the_exact_count(monkeypatch):
    """Planted: what was counted decides which of two kinds of releases follows."""
    honest = table._RareTableFit.run

    def exact(self, data, permit):
        limit = (np.count_nonzero(data.class_indices) - 0.5) / len(data.class_indices)
        shifted = replace(self, limit=1.0 if limit > self.limit else -1.0)
        return honest(shifted, data, permit)

    monkeypatch.setattr(table._RareTableFit, "run", exact)
    X, y = ward(0.05)
    y[:] = np.arange(N) < 321
    other = y.copy()
    other[0] = 0
    result = replay(REPLAYED, X, y, X, other, n_histories=1, random_state=0)
    assert result.findings


def test_the_replay_sees_a_model_that_follows_the_exact_count(monkeypatch):
    """Planted: the probability of an error is that of the records of the fit."""
    honest = column_rankings.ColumnRankingPlan.run

    def exact(self, X, class_indices, common, permit):
        model = honest(self, X, class_indices, common, permit)
        return replace(model, intercept=model.intercept - float(np.sum(class_indices)))

    monkeypatch.setattr(column_rankings.ColumnRankingPlan, "run", exact)
    with pytest.raises(AssertionError):
        assert worst(0.05, flips=True) <= 1.0
    with pytest.raises(AssertionError):
        assert worst(0.01, flips=True, epsilon=0.1) <= 1.0


def test_nothing_is_released_that_was_not_entered(monkeypatch):
    """Planted: a fit that forgets to use up the choice of two kinds."""
    monkeypatch.setattr("dp_halfspace.privacy.mechanisms.Permit.enter", lambda *_: None)
    for model, share in product((MODEL, SMALL), (0.01, 0.4)):
        with pytest.raises(RuntimeError, match="not charged"):
            clone(model).fit(*ward(share))


@pytest.mark.parametrize(("noisy", "commoner"), [(3.0, 0), (7.0, 1)])
@pytest.mark.parametrize("positive", [2, 8])
def test_the_noisy_count_says_which_class_is_the_commoner(noisy, commoner, positive):
    """The exact count is private, also where it contradicts the noisy one."""
    asked = []

    def run(X, class_indices, commoner, permit):
        asked.append(commoner)
        return SmallModel(np.zeros(1), np.zeros(1), exponent=0)

    plan, count = SimpleNamespace(run=run), SimpleNamespace(epsilon=1.0)
    data = TrainingData(np.zeros((10, 1)), np.arange(10) < positive, np.arange(2), None)
    fitted = ColumnRankingFit(None, plan, count, noisy=noisy).run(data, None)
    assert asked == [commoner]
    assert fitted.error_share == share_of(3.0, 10, (1.0, 1.0))
