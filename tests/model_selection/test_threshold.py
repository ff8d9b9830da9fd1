"""Thresholds for a target: one record moves utilities by one, targets are met, no leaks."""

from __future__ import annotations

import copy
import math
import pickle
import re
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import count, product
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from dp_halfspace import (
    AdaptiveMarginClassifier,
    BudgetError,
    PrivacyLedger,
    PrivacyWarning,
    PrivateAUCClassifier,
    PrivateTableClassifier,
    PrivateThresholdClassifier,
    _budget,
)
from dp_halfspace.audit import replay
from dp_halfspace.datasets import in_chunks
from dp_halfspace.metrics import _tallies as tallies
from dp_halfspace.model_selection import _crossing as crossing
from dp_halfspace.model_selection import prefit
from dp_halfspace.model_selection._crossing import crossing_utilities, excess_of
from dp_halfspace.model_selection.prefit import slack_for_failure
from dp_halfspace.privacy.interception import intercept_releases
from dp_halfspace.privacy.mechanisms import ExponentialChoice
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from dp_halfspace.privacy.randomness import SeededBytes
from tests.conftest import separated
from tests.model_selection.prefit_models import Given, Rare, RareChances
from tests.releases import record_releases
from tests.support import Book

TARGETS = ("recall", "precision", "fpr")
every_target = pytest.mark.parametrize("target", TARGETS)
X, Y = Rare().records(np.random.default_rng(0), 3000)
GRID = [0.1, 0.4, 0.6, 0.9]


def candidates(grid):
    """Fewer of them, so that all utilities can be listed."""
    return mock.patch.multiple(prefit, _LOG_ODDS=np.array(grid), _PLACES=np.array(grid))


def choices(rows, labels, target, **given):
    """Every release of a fit, where each is answered by three, as slacks follow the count."""
    model = PrivateThresholdClassifier(Given(), target=target, value=0.7)
    answers = intercept_releases(lambda *_: np.array([3.0]))
    with candidates(GRID), answers, record_releases() as releases:
        model.fit(rows, labels, **given)
    return releases


def largest_moves(target, *, people=False):
    """Largest change of every release over replaced records, given the answers of the first."""
    rng, moves = np.random.default_rng(0), {}
    for _ in range(4):
        rows, labels = rng.choice([0.0, 0.3, 0.5, 0.7, 1.0], (7, 1)), rng.integers(2, size=7)
        found = []
        sizes = (1, 2, 30) if people else (1,)
        for x, label, size in product((0.0, 0.5, 1.0), (0, 1), sizes):
            Z, y = np.vstack([rows, np.full((size, 1), x)]), [*labels, *[label] * size]
            own = {"groups": [*range(7), *[7] * size]} if people else {}
            found.append(choices(Z, y, target, **own))
        for place in range(len(found[0])):
            values = [releases[place].value for releases in found]
            apart = [np.abs(a - b).max() for a, b in product(values, values)]
            noise = found[0][place].mechanism
            moves[place] = max(moves.get(place, 0.0), max(apart) / noise.sensitivity)
    return moves


def test_a_score_at_a_border_counts_as_above_it_as_in_predictions():
    cells = tallies.Cells(2, np.array([0.25, 0.5]))
    table = tallies.count_scores(np.array([0.25, 0.3, 0.5]), np.array([0, 1, 1]), cells)
    np.testing.assert_array_equal(table, [[0, 1, 0], [0, 1, 1]])


@every_target
def test_no_record_moves_a_release_by_more_than_is_charged_for(target):
    seen = largest_moves(target)
    assert max(seen.values()) == 1.0
    assert len(seen) == (1 if target == "fpr" else 2)


def utilities_of(labels, scores, target, slack):
    """What the code makes of counts, with a given slack."""
    plan = prefit._Threshold(
        len(labels),
        target,
        0.75,
        np.array(GRID),
        None,
        ExponentialChoice(1.0, 1.0),
        slack,
        0.0,
        0.0,
        1,
    )
    cells = np.searchsorted(GRID, scores, side="right")
    table = np.array([np.bincount(cells[labels == k], minlength=5) for k in (0, 1)], dtype=float)
    above = np.column_stack([np.zeros(2), np.cumsum(table[:, ::-1], axis=1)])
    excess = excess_of(plan.target, plan.value, above[1], above[0]) - slack
    excess[-1] = len(labels)
    return crossing_utilities(excess)


@pytest.mark.parametrize(("model", "grid"), [(RareChances(), "_LOG_ODDS"), (Rare(), "_PLACES")])
def test_candidates_are_log_odds_if_there_are_probabilities(model, grid):
    fitted = PrivateThresholdClassifier(model, epsilon=math.inf).fit(X, Y)
    assert list(dict(fitted.privacy_.public)["thresholds"]) == getattr(prefit, grid).tolist()


def test_a_recall_counts_positives_below_every_border():
    excess = excess_of("recall", 0.5, np.array([0.0, 1.0, 3.0, 8.0]), np.zeros(4))
    np.testing.assert_array_equal(excess, [-4.0, -3.0, -1.0, 4.0])


@every_target
@pytest.mark.parametrize("slack", [0.0, 2.0])
def test_utilities_of_all_small_tables_move_by_one_at_most(target, slack):
    """All tables of three records, all replacements; one is attained."""
    records = list(product((0.0, 0.5, 1.0), (0, 1)))
    largest = 0.0
    for kept in product(records, repeat=2):
        found = []
        for last in records:
            scores, labels = np.array([*kept, last]).T
            found.append(utilities_of(labels.astype(int), scores, target, slack))
        largest = max(largest, *(np.abs(a - b).max() for a, b in product(found, found)))
    assert largest <= 1.0
    assert largest == 1.0


@every_target
def test_a_person_moves_no_release_by_more(target):
    assert max(largest_moves(target, people=True).values()) <= 1.0


@every_target
def test_a_replay_of_neighbours_finds_nothing(target):
    other, label = X[:300].copy(), Y[:300].copy()
    other[0], label[0] = 9.0, 1 - label[0]
    model = PrivateThresholdClassifier(FrozenEstimator(Rare()), target=target, epsilon=2.0)
    result = replay(model, X[:300], Y[:300], other, label, n_histories=5, random_state=0)
    assert result.findings == ()
    assert max(release.ratio for release in result.releases) <= 1.0


@pytest.mark.sampled(2)
@every_target
@pytest.mark.parametrize("kind", [Rare, RareChances])
def test_targets_are_met_with_the_confidence_that_is_stated(target, kind):
    assert share_met(kind(), target, 25) >= 0.92


def share_met(model, target, runs, n=10_000):
    """Share of runs in which fresh records meet the target."""
    value = {"recall": 0.9, "precision": 0.5, "fpr": 0.1}[target]
    rng, met, costs = np.random.default_rng(1), [], []
    for _ in range(runs):
        rows, labels = model.records(rng, n)
        plain, private = (
            PrivateThresholdClassifier(model, target=target, value=value, epsilon=e)
            .fit(rows, labels)
            .threshold_
            for e in (math.inf, 1.0)
        )
        rates = model.rates(private)
        met.append(rates[target] <= value if target == "fpr" else rates[target] >= value)
        costs.append(rates["fpr"] - model.rates(plain)["fpr"])
    assert abs(np.mean(costs)) < 0.05
    return np.mean(met)


@pytest.mark.slow
@every_target
@pytest.mark.parametrize("kind", [Rare, RareChances])
def test_targets_are_met_in_many_runs(target, kind):
    assert share_met(kind(), target, 1000) >= 0.95


def test_shares_and_slacks_are_exact_multiples():
    """Sums of counts times shares have no rounding that two neighbours could show."""
    for number in (0.9, 0.05, 1.0 / 3.0):
        up, down = crossing.rounded_up(number), crossing.safe_target("fpr", number)
        assert down <= number <= up
        assert (up * crossing.COUNT_GRID).is_integer()
        assert up - down == 1.0 / crossing.COUNT_GRID
    for rate in (0.013, 0.37, 1.0, 5.1):
        slacks = [*prefit.mean_slacks(rate, 1e-3), slack_for_failure(7, rate, 0.03)]
        assert all((slack * crossing.COUNT_GRID).is_integer() for slack in slacks)


@pytest.mark.parametrize("target", ["recall", "precision", "fpr"])
@pytest.mark.parametrize("counted", [-3.0, 40.0, 700.0])
def test_a_target_is_raised_by_the_deviations_of_the_proof(target, counted):
    """``operating_points.md``: binomial deviations of fresh records and those of the choice."""
    wrapper = PrivateThresholdClassifier(Rare(), target=target, value=0.8, epsilon=5.0)
    n, plan = 900, wrapper._plan_release(SimpleNamespace(n=900))
    tau, positives = plan.value, 0.0
    # Rounded so that the target is harder to meet.
    assert (tau < 0.8) is (target == "fpr")
    if target != "fpr":
        positives = min(max(counted + plan.count.deviation, 1.0), n)
    spread = {
        "fpr": tau * (1.0 - tau) * n,
        "recall": tau * (1.0 - tau) * positives,
        "precision": (1.0 - tau) * positives,
    }[target]
    usual = 1.6448536 * math.sqrt(spread + 2.0 / (plan.choice.epsilon / 2.0) ** 2)
    raised = plan.slack_for(None if target == "fpr" else counted)
    assert raised == pytest.approx(max(plan.slack, usual), abs=2.0 / crossing.COUNT_GRID)


def state_after_interrupt(at):
    """Whether a fit whose line of this number is interrupted sets a threshold, and a record."""
    model, lines = PrivateThresholdClassifier(Given(), epsilon=2.0), count()

    def interrupt(frame, event, arg):
        inside = frame.f_code.co_filename == prefit.__file__
        if inside and event == "line" and next(lines) == at:
            raise KeyboardInterrupt
        return interrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        model.fit(X, Y)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return hasattr(model, "threshold_"), hasattr(model, "privacy_")


def test_an_interrupt_leaves_a_threshold_with_its_own_record():
    seen = set(map(state_after_interrupt, range(100)))
    assert seen == {(False, False), (True, True)}


def test_first_crossing_is_the_best():
    excess = np.array([-3.0, -1.0, 2.0, 5.0, -4.0, 9.0])
    utilities = crossing_utilities(excess)
    assert utilities.argmax() == 2
    assert utilities.tolist() == [-3.0, -1.0, 1.0, -2.0, -5.0, -5.0]


def test_the_sign_and_the_label_of_the_positive_class():
    named = np.array(["no", "yes"])[Y]

    class Named(RareChances):
        classes_ = np.array(["no", "yes"])

    class Backwards(Named):
        classes_ = np.array(["yes", "no"])

        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    class Scores(Rare):
        classes_ = np.array(["yes", "no"])

        def decision_function(self, X):
            return -X[:, 0]

    for kind in (Named, Backwards, Scores):
        model = PrivateThresholdClassifier(kind(), value=0.8, epsilon=math.inf).fit(X, named)
        guess = model.predict(X)
        assert model.classes_.tolist() == ["no", "yes"]
        assert dict(model.privacy_.public)["positive_class"] == "yes"
        assert 0.8 <= np.mean(guess[named == "yes"] == "yes") < 0.92
        assert np.mean(guess == named) > 0.7


def test_a_false_positive_rate_is_a_recall_of_the_other_class():
    """As the page says to those whose first label is the one to be found."""
    model = PrivateThresholdClassifier(RareChances(), target="fpr", value=0.2, epsilon=math.inf)
    assert 0.8 <= np.mean(model.fit(X, Y).predict(X)[Y == 0] == 0) < 0.92


@every_target
def test_without_noise_the_first_threshold_that_does_is_taken(target, monkeypatch):
    monkeypatch.setattr(prefit._Threshold, "slack_for", lambda self, count: 0.0)
    value = {"recall": 0.75, "precision": 0.5, "fpr": 0.125}[target]
    model = PrivateThresholdClassifier(Rare(), target=target, value=value, epsilon=math.inf)
    with candidates(np.linspace(-3, 3, 601)):
        model.fit(X, Y)
    step = 0.01 if target == "recall" else -0.01

    def rate(border):
        said = X[:, 0] >= border
        return {
            "recall": np.mean(said[Y == 1]),
            "precision": np.mean(Y[said]),
            "fpr": np.mean(said[Y == 0]),
        }[target]

    here, next_one = rate(model.threshold_), rate(model.threshold_ + step)
    assert (here <= value < next_one) if target == "fpr" else (next_one < value <= here)


@pytest.mark.filterwarnings("ignore:a .* takes more than")
def test_few_positives_are_all_found():
    for labels in (np.zeros(50, int), np.ones(50, int)):
        model = PrivateThresholdClassifier(Rare(), epsilon=0.05).fit(X[:50], labels)
        assert set(model.predict(X[:50])) <= {0, 1}
        assert math.isfinite(model.n_positive_)
    assert (
        PrivateThresholdClassifier(Rare(), target="fpr", value=1e-5).fit(X, Y).threshold_
        == math.inf
    )


def warned(model, X, Y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("target", "value", "who"),
    [("recall", 0.9, "every"), ("precision", 0.9, "no"), ("fpr", 0.1, "no")],
)
def test_a_threshold_that_has_no_room_is_announced_before_it_is_paid(target, value, who):
    ledger = Book(refuse=True)
    model = PrivateThresholdClassifier(
        Rare(), target=target, value=value, epsilon=0.3, ledger=ledger
    )
    X, Y = Rare().records(np.random.default_rng(0), 300)
    texts = set()
    for labels in (Y, 1 - Y, np.zeros(300, int)):
        with pytest.warns(PrivacyWarning) as caught, pytest.raises(BudgetError):
            model.fit(X, labels)
        texts |= {str(w.message) for w in caught}
    (text,) = texts
    assert "at epsilon=0.3 takes more than" in text
    assert f"there are 300 records: {who} record would be predicted positive" in text


def test_persons_are_called_persons():
    model = PrivateThresholdClassifier(Rare(), epsilon=0.3)
    X, Y = Rare().records(np.random.default_rng(0), 300)
    with pytest.warns(PrivacyWarning, match=r"positive persons.* there are 100 persons: every"):
        model.fit(X, Y, groups=np.arange(300) // 3)


def test_a_finite_threshold_without_room_is_no_silent_one():
    """Candidates below all scores are as likely as "all records are positive" itself."""
    X, Y = Rare().records(np.random.default_rng(0), 5500)
    thresholds, found = [], Rare().records(np.random.default_rng(1), 2000)[0]
    for _ in range(12):
        model = PrivateThresholdClassifier(Rare(), value=0.9, epsilon=0.3)
        texts = warned(model, X, Y)
        if model.n_positive_ > 706:
            continue
        (text,) = texts
        assert model.predict(found).mean() > 0.9
        assert re.fullmatch(
            r"a recall of 0.9 at epsilon=0.3 takes more than 706 positive records, better 1059, "
            r"and by a noisy count there are \d+: every record (is|may be) predicted positive, .*",
            text,
        )
        assert ("every record is" in text) == (model.threshold_ == -math.inf)
        thresholds.append(model.threshold_)
    assert np.isfinite(thresholds).any()


def test_a_noisy_count_below_zero_is_shown_as_zero():
    X, _ = Rare().records(np.random.default_rng(0), 5500)
    model = PrivateThresholdClassifier(Rare(), value=0.9, epsilon=0.3)
    texts = [text for _ in range(9) for text in warned(model, X, np.zeros(5500, int))]
    counts = [re.search("count there are (.*): every", text)[1] for text in texts]
    assert "0" in counts
    assert all(count.isdigit() for count in counts)


def test_little_room_is_said():
    """Between one and one and a half times the least number useless thresholds are frequent."""
    X, Y = Rare().records(np.random.default_rng(0), 8500)
    seen = set()
    for _ in range(8):
        model = PrivateThresholdClassifier(Rare(), value=0.9, epsilon=0.3)
        texts = warned(model, X, Y)
        is_certain = model.threshold_ == -math.inf
        is_little = model.n_positive_ <= 1059
        assert len(texts) == (is_certain or is_little)
        if model.n_positive_ > 706 and is_little and not is_certain:
            seen.add(re.search("there are [0-9]+: (.*) predicted positive", texts[0])[1])
    assert seen == {"every record may be"}


def test_a_threshold_with_room_says_nothing():
    X, Y = Rare().records(np.random.default_rng(0), 20_000)
    for target, value in (("recall", 0.9), ("precision", 0.5), ("fpr", 0.1)):
        model = PrivateThresholdClassifier(Rare(), target=target, value=value, epsilon=1.0)
        assert warned(model, X, Y) == []


def test_a_fit_pays_before_anything_is_drawn(monkeypatch):
    with record_releases() as releases, pytest.raises(BudgetError):
        PrivateThresholdClassifier(Rare(), ledger=Book(refuse=True)).fit(X, Y)
    assert not releases
    ledger = PrivacyLedger(epsilon=2.0, delta=0.0)
    model = PrivateThresholdClassifier(Rare(), epsilon=1.5, ledger=ledger)
    plan = model.plan(X, Y)
    assert ledger.spent() == 0.0
    record = model.fit(X, Y).privacy_
    assert record.events == plan.events
    assert (record.epsilon, record.delta) == (1.5, 0.0)
    assert ledger.spent() == pytest.approx(1.5, rel=1e-9)
    assert record.epsilon_at(0.0) <= 1.5
    with pytest.raises(BudgetError):
        clone(model).fit(X, Y)
    honest = _budget.authorise

    def late(record, source, ledger):
        """Planted: the count is drawn before the charge."""
        noise = DiscreteLaplaceNoise(1, record.events[0].epsilon)
        honest(record, source).release(np.zeros(1), noise)
        return honest(record, source, ledger)

    monkeypatch.setattr(_budget, "authorise", late)
    with record_releases() as releases, pytest.raises(BudgetError):
        PrivateThresholdClassifier(Rare(), ledger=Book(refuse=True)).fit(X, Y)
    assert releases


def test_a_seed_is_announced_and_repeats():
    model = PrivateThresholdClassifier(Rare(), random_state=3)
    with pytest.warns(PrivacyWarning, match="random_state"):
        first = model.fit(X, Y).threshold_
    with pytest.warns(PrivacyWarning):
        assert model.fit(X, Y).threshold_ == first
    assert model.privacy_.noise == "seeded"
    assert SeededBytes(1, "x").kind == "seeded"


def test_models_of_scikit_learn_pipelines_frames_and_chunks():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 0] ** 2})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, Y)
    wrapped = PrivateThresholdClassifier(model, value=0.7, epsilon=3.0).fit(frame, Y)
    assert np.mean(wrapped.predict(frame)[Y == 1]) > 0.7
    assert wrapped.n_features_in_ == 2
    assert wrapped.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(wrapped.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(wrapped.decision_function(frame), model.decision_function(frame))
    exact = PrivateThresholdClassifier(RareChances(), epsilon=math.inf)
    whole = exact.fit(X, Y).threshold_
    assert exact.fit(in_chunks(X, 500), in_chunks(Y, 500)).threshold_ == whole
    assert exact.fit(X, Y, groups=np.arange(3000)).threshold_ == whole
    assert exact.privacy_.adjacency == "replace-one-person"


def test_it_is_an_estimator_of_scikit_learn():
    rows, labels = separated(600, 4)
    inner = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0).fit(rows, labels)
    model = PrivateThresholdClassifier(FrozenEstimator(inner), value=0.8)
    binary = PrivateThresholdClassifier(PrivateAUCClassifier())
    assert not get_tags(binary).classifier_tags.multi_class
    assert model.get_params(deep=False)["value"] == 0.8
    twin = clone(model).set_params(value=0.7).fit(rows, labels)
    assert model.value == 0.8
    assert not hasattr(model, "threshold_")
    for same in (pickle.loads(pickle.dumps(twin)), copy.deepcopy(twin), copy.copy(twin)):
        np.testing.assert_array_equal(same.predict(rows), twin.predict(rows))
    assert "PrivateThresholdClassifier" in repr(twin)
    assert 0.5 < twin.score(rows, labels) <= 1.0
    assert not hasattr(PrivateThresholdClassifier(Rare()), "predict_proba")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": LogisticRegression()}, "Classifier must be fitted before: LogisticReg"),
        ({"estimator": LogisticRegression}, "must be fitted before: LogisticRegression has no"),
        ({"target": "f1"}, "'target' parameter of PrivateThresholdClassifier"),
        ({"value": 1.0}, "'value' parameter of PrivateThresholdClassifier"),
        ({"value": True}, "'value' parameter of PrivateThresholdClassifier must not be a boolean"),
        ({"confidence": 1.0}, "'confidence' parameter"),
        ({"epsilon": 0.0}, "'epsilon' parameter"),
        ({"y": Y[:-1]}, "X and y must have the same number of rows"),
        ({"y": Y + 5}, "not among the public labels"),
    ],
)
def test_refusals_cost_nothing(arguments, message):
    book = Book()
    given = {"estimator": Rare(), "ledger": book, **arguments}
    labels = given.pop("y", Y)
    with pytest.raises(ValueError, match=re.escape(message)):
        PrivateThresholdClassifier(given.pop("estimator"), **given).fit(X, labels)
    assert not book.records


def test_a_model_of_three_classes_or_without_scores_is_refused():
    class Three(Rare):
        classes_ = np.arange(3)

    class Silent(Rare):
        decision_function = property()

    with pytest.raises(ValueError, match="needs two classes, got 3"):
        PrivateThresholdClassifier(Three()).fit(X, Y)
    with pytest.raises(ValueError, match="needs predict_proba or decision_function"):
        PrivateThresholdClassifier(Silent()).fit(X, Y)


def test_a_false_positive_rate_has_two_names():
    short, long = (
        PrivateThresholdClassifier(Given(), target=name, value=0.1, random_state=0)
        for name in ("fpr", "false_positive_rate")
    )
    with pytest.warns(PrivacyWarning, match="random_state"):
        assert short.fit(X, Y).threshold_ == long.fit(X, Y).threshold_
    assert short.privacy_ == long.privacy_


@pytest.mark.parametrize(("target", "who"), [("recall", "every"), ("precision", "no")])
def test_a_threshold_that_says_nothing_is_said(target, who):
    """By the released threshold alone: whatever the records are."""
    given = {"target": target, "value": 0.99, "epsilon": 1e6}
    with (
        candidates(GRID),
        intercept_releases(lambda *_: np.array([5.0])),
        pytest.warns(PrivacyWarning, match=f"and the threshold is infinite: {who} record is pred"),
    ):
        (model := PrivateThresholdClassifier(Given(), **given)).fit(X[:20], Y[:20])
    # All is set before it is said, so that an error made of the warning loses nothing.
    assert math.isinf(model.threshold_)
    assert model.privacy_.epsilon == 1e6


def test_a_precision_that_all_records_have_is_called_too_easy():
    """Not one that takes more records, because none is predicted positive."""
    model = PrivateThresholdClassifier(Rare(), target="precision", value=0.03, epsilon=3.0)
    (text,) = warned(model, X, Y)
    assert text.startswith("the threshold is infinite: every record is predicted positive")
    assert (model.predict(X) == 1).all()


def test_weights_of_people_leave_room_for_the_factors_of_utilities(factors_of_people):
    """Sums of weights times these factors are exact, so that no rounding moves a utility."""
    PrivateThresholdClassifier(Rare()).fit(X, Y, groups=np.arange(3000))
    assert factors_of_people == [crossing.COUNT_GRID]


def test_a_slack_beyond_the_number_of_people_leaves_utilities_exact():
    """Excesses lie on both sides of a power of two, beyond which floats are coarser."""
    rng, people = np.random.default_rng(3), np.repeat(np.arange(50), [*[7] * 49, 1])
    rows, labels = rng.random(len(people)), rng.integers(2, size=len(people))
    model, found, labels[-1] = PrivateThresholdClassifier(Given()), [], 1
    for rows[-1] in (0.0, 1.0):
        data = model._training_data(rows[:, None], labels, people)
        plan = replace(model._plan_release(data), slack=2.0**30 + 2.0)
        above = plan.counts_above(replace(data, values=rows))
        found.append(plan.utilities(25.0, above).tolist())
    assert max(abs(Fraction(a) - Fraction(b)) for a, b in zip(*found, strict=True)) == 1


@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.99])
def test_slacks_are_those_of_the_confidence_and_of_all_candidates(confidence):
    wrapper = PrivateThresholdClassifier(Rare(), target="fpr", confidence=confidence, epsilon=3.0)
    with candidates([-1.0, 0.0, 1.0]):
        plan = wrapper._plan_release(SimpleNamespace(n=900))
    # Of five candidates four may be chosen wrongly, each by exp(-epsilon slack / 2).
    assert 4 * math.exp(-1.5 * plan.slack) == pytest.approx(1.0 - confidence, rel=1e-3)
    assert plan.deviations == pytest.approx(norm.ppf(confidence))
    slack, exact = (
        slack_for_failure(101, 0.25, 1.0 - confidence),
        math.log(100 / (1.0 - confidence)) / 0.25,
    )
    assert exact <= slack <= exact + 1e-3
    assert slack_for_failure(5, math.inf, 1.0 - confidence) == 0.0


def test_a_score_at_the_threshold_is_positive():
    model = PrivateThresholdClassifier(Rare(), target="recall").fit(X, Y)
    model.threshold_ = 0.25
    assert model.predict(np.array([[0.25], [0.2499]])).tolist() == [1, 0]


@every_target
def test_the_candidate_that_meets_every_target_is_the_best_where_no_other_does(target):
    """Scores that are all equal: no threshold but an infinite one meets the target."""
    rows, labels = np.zeros((60, 1)), np.arange(60) % 2
    with record_releases() as releases:
        value = 0.05 if target == "fpr" else 0.9
        PrivateThresholdClassifier(Rare(), target=target, value=value).fit(rows, labels)
    utilities = releases[-1].value
    assert utilities.argmax() == len(utilities) - 1
    assert utilities[-1] > 1.0


def test_planted_bug_a_utility_that_counts_twice_is_seen(monkeypatch):
    honest = prefit.crossing.crossing_utilities
    monkeypatch.setattr(prefit.crossing, "crossing_utilities", lambda excess: 2.0 * honest(excess))
    assert max(largest_moves("recall").values()) > 1.5


@pytest.mark.slow
def test_planted_bugs_are_found_by_a_replay(monkeypatch):
    """A count that costs nothing, and a choice at twice its budget."""
    other, label = X[:300].copy(), Y[:300].copy()
    other[0], label[0] = 9.0, 1
    model = PrivateThresholdClassifier(FrozenEstimator(Rare()), epsilon=2.0)
    pair = X[:300], Y[:300], other, label
    with monkeypatch.context() as patch:
        patch.setattr(prefit.crossing, "crossing_utilities", lambda e: 3.0 * crossing_utilities(e))
        found = replay(model, *pair, n_histories=3, random_state=0).findings
        assert any("times the sensitivity" in text for text in found)
    with monkeypatch.context() as patch:
        patch.setattr(
            DiscreteLaplaceNoise, "perturb", lambda self, value, source: np.asarray(value) + 0.0
        )
        found = replay(model, *pair, n_histories=30, random_state=0).findings
        assert any("noise is too small" in text for text in found)


def test_one_selected_classifier_has_no_threshold_between_its_scores():
    """A column that ranks a rare class: every record is positive, or none is."""
    X = np.arange(1200.0)[:, None]
    y = (X[:, 0] >= 1170).astype(int)
    model = PrivateTableClassifier(epsilon=1, classes=[0, 1], schema={"0": "number"}).fit(X, y)
    screening = PrivateThresholdClassifier(model, target="fpr", value=0.1)
    with pytest.warns(PrivacyWarning, match="there may be no threshold between them"):
        screening.fit(X, y)
    assert len(set(screening.predict(X))) == 1


@pytest.mark.slow
def test_held_out_records_meet_a_target_whatever_they_are():
    """The proved bound, on tables of few scores: as many misses as it allows at most."""
    rng = np.random.default_rng(0)
    for trial in range(4):
        scores = rng.choice(np.linspace(-1.0, 1.0, 3 + 5 * trial), 400)[:, None]
        labels = rng.integers(2, size=400)
        missed = 0
        for _ in range(100):
            found = PrivateThresholdClassifier(Rare(), value=0.8, confidence=0.9).fit(
                scores, labels
            )
            missed += found.predict(scores)[labels == 1].mean() < 0.8
        assert missed <= 20


@pytest.mark.slow
def test_planted_bug_no_slack_misses(monkeypatch):
    monkeypatch.setattr(prefit._Threshold, "slack_for", lambda self, count: 0.0)
    assert share_met(Rare(), "recall", 40) < 0.8
