"""Scores of held-out records: bounds on one record, charges, intervals, refusals."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.utils import check_array

import dp_halfspace
from benchmarks import score_coverage
from dp_halfspace import (
    AdaptiveMarginClassifier,
    BudgetError,
    PrivacyLedger,
    PrivacyWarning,
    PrivateConformalClassifier,
    PrivateThresholdClassifier,
)
from dp_halfspace.datasets import in_chunks
from dp_halfspace.metrics import (
    METRICS,
    Metric,
    PrivateScore,
    _intervals,
    _tallies,
    private_score,
    score,
)
from dp_halfspace.privacy import epsilon as composed
from dp_halfspace.privacy.mechanisms import GaussianNoise
from dp_halfspace.privacy.noise import DiscreteLaplaceNoise
from tests.conftest import separated
from tests.metrics.problem import Known, coverage, records
from tests.releases import record_releases
from tests.support import Book, fitted, one_of_each, plant_noise

every_metric = pytest.mark.parametrize("metric", sorted(METRICS))
# These need probabilities.
LOSSES = ("log_loss",)
CURVES = ("average_precision", "roc_auc")
X, Y = records(np.random.default_rng(0), 500)


class Scores(Known):
    """The same without probabilities, in units nobody knows."""

    predict_proba = property()

    def decision_function(self, X):
        return 300.0 * X[:, 0] - 5000.0

    def predict(self, X):
        return (X[:, 0] > 0.0).astype(int)


class Answers:
    """A model of somebody else with one method, which answers anything."""

    classes_ = np.array([0, 1])

    def __init__(self, method, answer):
        setattr(self, method, lambda X: answer(len(X)))


class Backwards(Known):
    """Names its classes in the order b, a, which no sorted list has."""

    classes_ = np.array(["b", "a"])

    def predict(self, X):
        return self.classes_[super().predict(X)]


class BackwardsScores(Backwards):
    predict_proba = property()

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0.0).astype(int)]


class Table(Known):
    """Says what is written in the record: a probability in thousandths."""

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


def largest_changes(metric, scale):
    """Over all pairs of records that a table of outcomes can hold."""
    grid = np.linspace(0.0, 1.0, 41)
    values = range(scale + 1) if metric in LOSSES else grid if metric in CURVES else (0, 1)
    thresholds = _tallies.HALF_LOG_ODDS if metric in CURVES else None
    kept = np.array([*values][1:2])
    sums = [
        METRICS[metric].tally(
            np.append(kept, value), np.array([0, code]), _tallies.Cells(2, thresholds)
        )
        for value, code in product(values, (0, 1))
    ]
    moves = [a - b for a, b in product(sums, sums)]
    return max(np.abs(m).sum() for m in moves), max(np.linalg.norm(m) for m in moves)


@every_metric
def test_no_record_moves_more_than_is_charged_for(metric, monkeypatch):
    scale = 60
    absolute, euclidean = METRICS[metric].sensitivity
    if metric in LOSSES:
        absolute, euclidean = scale, scale
        monkeypatch.setattr(_tallies, "SCALE", scale)
    assert largest_changes(metric, scale) == pytest.approx((absolute, euclidean), rel=1e-12)


def moved(metric, model, delta):
    """Change of the value in whole calls, in units of the noise, and what was charged."""
    first = np.array([[0.0], [0.3], [1.0], [0.5], [0.7]])
    labels = np.array([1, 0, 1, 0, 1])
    found = []
    for x, label in product((0.0, 0.0999, 1.0), (0, 1)):
        other = np.append(labels[1:], label)
        with record_releases() as releases:
            private_score(model, np.vstack([first[1:], [[x]]]), other, metric=metric, delta=delta)
        found.append(releases[-1])
    noise = found[0].mechanism
    pure = isinstance(noise, DiscreteLaplaceNoise)
    unit = noise.sensitivity / noise.epsilon if pure else noise.sigma
    order = 1 if pure else 2
    gaps = [np.linalg.norm((a.value - b.value).ravel(), order) for a in found for b in found]
    return max(gaps) / unit, noise.epsilon if pure else noise.mu


@pytest.mark.sampled(11)
@every_metric
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_whole_calls_stay_within_the_charge(metric, delta):
    seen, charged = moved(metric, Table(), delta)
    assert seen == pytest.approx(charged, rel=1e-3)
    assert seen <= charged * (1.0 + 1e-12)


class Wild(Known):
    """Answers what is written in the record, which is no probability."""

    def predict_proba(self, X):
        return np.column_stack([X[:, 0], X[:, 0]])

    def predict(self, X):
        return np.where(np.isfinite(X[:, 0]), X[:, 0], 0.0)


class WildScores(Wild):
    predict_proba = property()

    def decision_function(self, X):
        return X[:, 0]


WILD = [-50.0, -1e308, 0.3, 1.0, 70.0, 1e308, math.inf, -math.inf, math.nan]


@pytest.mark.sampled(10)
@every_metric
@pytest.mark.parametrize("kind", [Wild, WildScores])
def test_answers_that_are_no_probabilities_move_no_more(metric, kind, monkeypatch):
    """Whatever a model of somebody else returns: clipped, and nothing of it is no number."""
    # Cells that no data set moves, so that tables can be compared.
    monkeypatch.setattr(_tallies, "HALF_LOG_ODDS", np.array([0.1, 0.5]))
    monkeypatch.setattr(_tallies, "cells_between", lambda ends: np.array([0.1, 0.5]))
    if kind is WildScores and metric in LOSSES:
        return
    rows, labels, found = np.array([[0.0], [0.3], [1.0], [0.5]]), np.array([1, 0, 1, 0, 1]), []
    for x, label in product(WILD, (0, 1)):
        with record_releases() as releases:
            private_score(
                kind(), np.vstack([rows, [[x]]]), np.append(labels[:4], label), metric=metric,
                delta=1e-6,
            )  # fmt: skip
        found.append(releases[-1])
    assert all(np.isfinite(each.value).all() for each in found)
    gaps = [np.linalg.norm((a.value - b.value).ravel()) for a, b in product(found, found)]
    assert max(gaps) <= found[0].mechanism.sensitivity * (1.0 + 1e-12)


def test_a_score_that_is_no_number_is_zero():
    rows, codes, classes = np.array([[math.nan], [math.inf], [1.0]]), np.zeros(3, int), np.arange(2)
    for kind, metric in ((Wild, "roc_auc"), (WildScores, "roc_auc")):
        found = METRICS[metric].outcome(kind(), rows, codes, classes)
        assert found.tolist() == [0.0, np.finfo(float).max, 1.0]


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize(("metric", "less"), [("confusion_matrix", 1), ("accuracy", 4)])
def test_a_missing_factor_is_seen(monkeypatch, metric, less, delta):
    """Planted: noise for one cell of a table instead of two; a class beside the right ones."""
    planted = replace(METRICS[metric], sensitivity=(less, float(less)))
    monkeypatch.setitem(METRICS, metric, planted)
    seen, charged = moved(metric, Table(), delta)
    assert seen > 1.05 * charged


@pytest.mark.sampled(4)
@one_of_each
def test_a_record_is_scored_by_itself(estimator):
    """Outcomes of one record keep their bits while all others are replaced."""
    rows, labels = separated(300, 5)
    model = fitted(estimator, rows, labels, classes=[0, 1], random_state=0)
    rng = np.random.default_rng(2)
    others = rows * rng.choice([0.0, 1e-300, -1.0, 1e8], size=rows.shape)
    for metric in ("accuracy", "roc_auc", "log_loss"):
        if metric == "log_loss" and not hasattr(model, "predict_proba"):
            continue
        for i in (0, 150, 299):
            others_i = others.copy()
            others_i[i] = rows[i]
            first, second = (
                METRICS[metric].outcome(model, z, labels, model.classes_)[i]
                for z in (rows, others_i)
            )
            assert first == second


class Talkative(Known):
    """A model of somebody else, which speaks of a cell that it does not know."""

    n_features_in_ = 1

    def __init__(self, fails=False):
        self.fails = fails

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        odd = np.asarray(X).ravel()[np.asarray(X).ravel() > 1e6]
        if len(odd):
            warnings.warn(f"found {odd}", stacklevel=2)
            print("found", odd, file=sys.stderr)
            logging.getLogger("models").warning("found %s", odd)
            if self.fails:
                raise KeyError(f"found {odd}")
        return super().predict_proba(np.minimum(X, 1e6))


RELEASES = {
    "score": lambda model, X, **more: private_score(model, X, Y, **more),
    "threshold": lambda model, X, **more: PrivateThresholdClassifier(model, value=0.5, **more).fit(
        X, Y
    ),
    "sets": lambda model, X, **more: PrivateConformalClassifier(model, **more).fit(X, Y),
}


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_model_says_of_a_record_is_dropped(release, capsys, caplog):
    """A warning of an unknown category, say, would be about a single record."""
    odd = X.copy()
    odd[7] = 8.125e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (X, odd):
            RELEASES[release](Talkative(), rows)
    assert (capsys.readouterr(), caplog.records) == (("", ""), [])


@pytest.mark.parametrize("release", RELEASES)
def test_an_error_of_a_model_does_not_quote_a_record(release):
    odd, book = X.copy(), PrivacyLedger(epsilon=9, delta=1e-3)
    odd[7] = 8.125e6
    with pytest.raises(ValueError, match="the model failed for these records") as seen:
        RELEASES[release](Talkative(fails=True), odd, ledger=book)
    assert (seen.value.__context__, seen.value.__cause__, book.entries()) == (None, None, [])


def test_an_error_of_a_model_about_shapes_is_shown():
    model = LogisticRegression().fit(np.column_stack([X, X]), Y)
    with pytest.raises(ValueError, match="X has 1 features, but LogisticRegression is expecting 2"):
        private_score(model, X, Y)


def _expect_small_numbers(X):
    raise ValueError(f"Expected small numbers, got {X[7]}")


def _end(X):
    sys.exit(f"there is {X[7]}")


class PanicException(BaseException):
    """As libraries in Rust raise it, for example polars for a date beyond its range."""


def _panic(X):
    raise PanicException(f"out-of-range date {X[7]}")


ANSWERS = [lambda X: check_array(X[7]), _expect_small_numbers, _end, _panic]


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_error_about_shapes_that_quotes_a_record_is_not_shown(answer):
    """As scikit-learn does for a single row of the wrong shape, and other code for any cell."""

    class Flat(Known):
        def predict(self, X):
            return answer(X)

    with pytest.raises(ValueError, match="the model failed for these records"):
        private_score(Flat(), X, Y)


def test_who_stops_a_score_is_obeyed():
    class Stopped(Known):
        def predict(self, X):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        private_score(Stopped(), X, Y)


def exact(metric, model=None):
    return private_score(model or Known(), X, Y, metric=metric, epsilon=math.inf)


def test_without_noise_scores_are_those_of_scikit_learn():
    model = Known()
    guess, probability = model.predict(X), model.predict_proba(X)[:, 1]
    assert exact("accuracy").value == np.mean(guess == Y)
    assert exact("balanced_accuracy").value == pytest.approx(balanced_accuracy_score(Y, guess))
    np.testing.assert_allclose(exact("confusion_matrix").value, confusion_matrix(Y, guess))
    for name, score_of in (("recall", recall_score), ("precision", precision_score)):
        assert exact(name).value == pytest.approx(score_of(Y, guess))
    assert exact("f1").value == pytest.approx(f1_score(Y, guess))
    clipped = np.clip(probability, np.exp(-5.0), 1.0 - np.exp(-5.0))
    assert exact("log_loss").value == pytest.approx(log_loss(Y, clipped), abs=2e-3)
    rounded = np.searchsorted(_tallies.HALF_LOG_ODDS, probability, side="right")
    assert exact("roc_auc").value == pytest.approx(roc_auc_score(Y, rounded), abs=1e-12)
    precise = exact("average_precision")
    assert precise.value == pytest.approx(average_precision_score(Y, rounded), abs=1e-12)


def test_cells_of_scores_of_unknown_units():
    area = roc_auc_score(Y, X[:, 0])
    assert exact("roc_auc", Scores()).value == pytest.approx(area, abs=0.01)
    for delta in (0.0, 1e-6):
        noisy = private_score(Scores(), X, Y, metric="roc_auc", epsilon=50.0, delta=delta)
        assert noisy.value == pytest.approx(area, abs=0.05)
        assert 49.99 < composed(noisy.privacy_.events, delta) <= 50.0
    few = private_score(Scores(), X[:10], Y[:10], metric="roc_auc", epsilon=0.01)
    assert (len(few.privacy_.events), len(noisy.privacy_.events)) == (1, 3)
    # Scores that are all zero are told from the smallest ones.
    assert 1e-6 < np.ptp(_tallies.cells_between(np.zeros(2))) < 1e-5


def of_first_class(metric, model, rows):
    """The metric of scikit-learn for class 0."""
    guess = model.predict(X)
    if metric == "average_precision":
        scores = METRICS["roc_auc"].outcome(model, X, Y, np.arange(2))
        if isinstance(model, Scores):
            return average_precision_score(1 - Y, -scores)
        return average_precision_score(1 - Y, -np.searchsorted(_tallies.HALF_LOG_ODDS, scores))
    score_of = {"recall": recall_score, "precision": precision_score, "f1": f1_score}[metric]
    return score_of(Y, guess, pos_label=0)


@pytest.mark.parametrize("cut", [None, 100])
@pytest.mark.parametrize(("kind", "same"), [(Backwards, Known), (BackwardsScores, Scores)])
def test_classes_of_a_model_may_be_in_any_order(kind, same, cut):
    """Columns of probabilities, and the sign of a score, are those of the class they are for."""
    model, labels = kind(), kind.classes_[Y]
    rows, named = (X, labels) if cut is None else (in_chunks(X, cut), in_chunks(labels, cut))
    for metric in sorted(METRICS):
        if kind is BackwardsScores and metric in LOSSES:
            continue
        found = private_score(model, rows, named, metric=metric, epsilon=math.inf)
        want = exact(metric, same()).value
        assert found.classes.tolist() == ["a", "b"]
        if metric == "confusion_matrix":
            np.testing.assert_array_equal(found.value, want[::-1, ::-1])
        elif metric in ("recall", "precision", "f1", "average_precision"):
            # Of the second sorted class, which is the first one of the other model.
            assert found.value == pytest.approx(of_first_class(metric, same(), rows), abs=0.02)
        else:
            assert found.value == pytest.approx(want, abs=1e-12 if kind is Backwards else 0.01)


@pytest.mark.parametrize("classes", [[0, 1], [0.5, 1.5], ["a", "b"], [True, False]])
@pytest.mark.parametrize("odd", [7, "c", math.nan, None, [1]])
def test_a_prediction_that_is_no_class_is_a_wrong_one(classes, odd):
    """An exception would tell what the model makes of a record."""
    truth = np.array(classes)[Y[:6]]
    guess = np.empty(6, dtype=object)
    guess[:] = [*truth[:5].tolist(), odd]
    if not isinstance(odd, list):
        guess = np.array(guess.tolist())

    class Fixed:
        classes_ = np.array(classes)

        def predict(self, X):
            return guess[: len(X)]

    for n, right in ((6, 5), (5, 5)):
        found = private_score(Fixed(), X[:n], truth[:n], epsilon=math.inf)
        known = isinstance(odd, type(None)) or guess.dtype.kind != "U" or classes[0] == "a"
        assert found.value == (right / n if known else 0.0)
        found = private_score(
            Fixed(), X[:n], truth[:n], metric="confusion_matrix", epsilon=math.inf
        )
        assert found.value.sum() == pytest.approx(n)


@pytest.mark.parametrize("as_list", [list, tuple, lambda labels: [[label] for label in labels]])
@pytest.mark.parametrize("odd", ["c", None, 0.5, 10**30, [1]])
def test_a_list_of_predictions_has_no_common_type(as_list, odd):
    """One text among numbers in a list would make texts of all of them, and all wrong."""

    class Lists:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return as_list([odd if row == 9.0 else int(row) for row in X[:, 0].tolist()])

    rows = Y[:60, None].astype(float)
    rows[0] = 9.0
    assert private_score(Lists(), rows, Y[:60], epsilon=math.inf).value == pytest.approx(59 / 60)


@every_metric
def test_a_score_and_a_fit_share_one_ledger(metric):
    ledger = PrivacyLedger(epsilon=1.5, delta=1e-5)
    model = dp_halfspace.OutputPerturbationClassifier(
        epsilon=1.0, delta=1e-6, data_norm=1.0, classes=[0, 1], ledger=ledger
    ).fit(X, Y)
    got = private_score(model, X, Y, metric=metric, delta=1e-6, epsilon=0.7, ledger=ledger)
    assert isinstance(got, PrivateScore)
    events = [*model.privacy_.events, *got.privacy_.events]
    assert ledger.spent() == pytest.approx(composed(events, 1e-5), rel=1e-9)
    assert dict(got.privacy_.public)["n_samples"] == 500
    with pytest.raises(BudgetError), record_releases() as releases:
        private_score(model, X, Y, metric=metric, epsilon=1.2, ledger=ledger)
    assert not releases


@pytest.mark.parametrize("delta", [1e-6, 0])
@pytest.mark.parametrize("model", [Known(), Scores()])
def test_several_metrics_share_one_budget(model, delta):
    names = ["accuracy", "roc_auc", "confusion_matrix"]
    book = Book()
    scores = private_score(model, X, Y, metric=names, epsilon=3.0, delta=delta, ledger=book)
    assert [found.metric for found in scores] == names
    (record,) = book.records
    assert all(found.privacy_ is record for found in scores)
    assert 0.97 * 3.0 < composed(record.events, delta) <= 3.0 * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="metric is an empty list"):
        private_score(model, X, Y, metric=[], ledger=book)
    assert len(book.records) == 1


@pytest.mark.parametrize("delta", [1e-6, 0])
def test_scores_far_from_zero_are_told_apart(delta):
    area, far = roc_auc_score(Y, X[:, 0]), Scores()
    far.decision_function = lambda X: 1e6 * X[:, 0] + 2e7
    rows, labels = np.tile(X, (8, 1)), np.tile(Y, 8)
    found = private_score(far, rows, labels, metric="roc_auc", epsilon=5.0, delta=delta)
    assert found.value == pytest.approx(area, abs=0.04)


def charged_first(ledger):
    """Whether nothing was drawn when the ledger refused."""
    with record_releases() as releases, pytest.raises(BudgetError):
        private_score(Known(), X, Y, ledger=ledger)
    return not releases


def test_the_charge_comes_first(monkeypatch):
    assert charged_first(Book(refuse=True))
    book = Book()
    private_score(Known(), X, Y, ledger=book)
    assert len(book.records) == 1
    honest = score.authorise

    def late(record, source, ledger):
        """Planted: the noise is drawn before the charge."""
        honest(record, source).release(np.zeros(1), GaussianNoise(1.0, record.events[0].mu))
        return honest(record, source, ledger)

    monkeypatch.setattr(score, "authorise", late)
    assert not charged_first(Book(refuse=True))


def test_noise_has_the_deviation_that_intervals_count_on(monkeypatch):
    """And planted: half of the noise is seen."""

    def spread():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            scores = [
                private_score(Known(), X, Y, metric="accuracy", delta=1e-6, random_state=i).value
                for i in range(100)
            ]
        return np.std(scores) * len(Y)

    sigma = GaussianNoise(1.0, score.gdp_mu(1.0, 1e-6)).sigma
    assert abs(spread() / sigma - 1.0) < 6.0 / math.sqrt(200.0)
    plant_noise(monkeypatch, GaussianNoise, 0.5)
    assert abs(spread() / sigma - 1.0) > 6.0 / math.sqrt(200.0)


def test_intervals_of_whole_calls_cover(monkeypatch):
    """Those of all metrics are drawn many at a time, in `test_intervals.py`.

    Planted: intervals of sampling alone miss too often.
    """
    assert 0.87 < coverage(runs=80, n=800, epsilon=0.2, delta=1e-6) <= 1.0
    monkeypatch.setattr(score, "noise_deviation", lambda noise: 0.0)
    assert coverage(runs=80, n=800, epsilon=0.2, delta=1e-6) < 0.8


def test_few_records_and_absent_classes_give_numbers():
    for metric, n, epsilon in product(sorted(METRICS), (1, 30), (0.01, math.inf)):
        found = private_score(Known(), X[:n], np.zeros(n, int), metric=metric, epsilon=epsilon)
        low, high = found.interval
        assert np.isfinite(found.value).all()
        assert np.all((low >= 0) & (low <= found.value) & (found.value <= high))
        largest = METRICS[metric].largest
        assert np.all(high <= (n if math.isinf(largest) else largest))


def test_three_classes():
    rows, labels = separated(900, 4, 3)
    model = dp_halfspace.AdaptiveMarginClassifier(epsilon=50.0, classes=[0, 1, 2])
    model.fit(rows, labels)
    matrix = private_score(model, rows, labels, metric="confusion_matrix", epsilon=5.0)
    assert matrix.value.shape == (3, 3)
    assert abs(np.trace(matrix.value) - 900 * model.score(rows, labels)) < 100
    with pytest.raises(ValueError, match="needs two classes, and the model has 3"):
        private_score(model, rows, labels, metric="roc_auc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "f2"}, "'f2' is not a metric; choose from acc"),
        ({"metric": ["f1", "acuracy"]}, "did you mean accuracy?"),
        ({"metric": [None]}, "None is not a metric"),
        ({"metric": len}, "len> is not a metric; choose from acc"),
        ({"epsilon": True}, "'epsilon' parameter of private_score must not be a boolean"),
        ({"epsilon": Fraction(1, 2)}, "'epsilon' parameter of private_score must be a float"),
        ({"epsilon": 0.0}, "'epsilon' parameter of private_score"),
        ({"delta": 0.7}, "'delta' parameter of private_score"),
        ({"ledger": 3}, "'ledger' parameter of private_score"),
        ({"random_state": "1"}, "'random_state' parameter of private_score"),
        ({"model": object()}, "no attribute classes_"),
        ({"model": Scores(), "metric": "log_loss"}, "needs a model with predict_proba"),
        ({"y": np.full(500, 7)}, "not among the public labels"),
        ({"y": Y.astype(str)}, "y contains strings, and the public labels are numbers"),
        ({"y": Y[:-1]}, "X and y must have the same number of rows"),
        ({"X": X[:0], "y": Y[:0]}, "X has no rows"),
        ({"X": X[:0], "y": Y[:0], "delta": 0}, "X has no rows"),
        ({"X": np.ma.masked_array(X)}, "X is a masked array"),
        (
            {"model": Answers("predict_proba", np.zeros), "metric": "roc_auc"},
            "shape (n_samples, 2)",
        ),
        *(
            ({"model": Answers(method, answer), "metric": metric}, f"model.{method} must return")
            for method, metric, answer in (
                ("predict", "accuracy", lambda n: np.zeros(n - 1)),
                ("predict", "confusion_matrix", lambda n: np.zeros((n, 2))),
                ("predict", "balanced_accuracy", lambda n: 0),
                ("decision_function", "roc_auc", lambda n: np.zeros((n, 2))),
                ("decision_function", "roc_auc", lambda n: np.zeros(n + 1)),
                ("decision_function", "roc_auc", lambda n: ["secret"] * n),
                ("predict_proba", "roc_auc", lambda n: np.zeros((n, 3))),
                ("predict_proba", "roc_auc", np.zeros),
                ("predict_proba", "log_loss", lambda n: [np.zeros((n, 2))] * 2),
                ("predict_proba", "log_loss", lambda n: [["secret", 1.0]] * n),
            )
        ),
    ],
)
def test_refusals_cost_nothing(arguments, message):
    book = Book()
    given = {"model": Known(), "X": X, "y": Y, "ledger": book, **arguments}
    with pytest.raises(ValueError, match=re.escape(message)):
        private_score(given.pop("model"), given.pop("X"), given.pop("y"), **given)
    assert not book.records


def test_a_seed_is_announced_and_refused_by_ledgers():
    with pytest.warns(PrivacyWarning, match="random_state"):
        first = private_score(Known(), X, Y, random_state=3)
    with pytest.warns(PrivacyWarning):
        assert private_score(Known(), X, Y, random_state=3).value == first.value
    assert first.privacy_.noise == "seeded"


def test_quartiles_are_chosen_by_the_sensitivity_of_ranks():
    """A record moves the number of scores below a place by one."""
    one = np.linspace(-3.0, 3.0, 40)
    other = one.copy()
    other[0] = 4.0
    found = [_tallies.places(_tallies.between_places(z, None), 40) for z in (one, other)]
    below = (one[:, None] <= _tallies.PLACES).sum(axis=0)
    np.testing.assert_array_equal(found[0], -np.abs(below - np.array([[10], [30]])))
    moved = np.abs(found[0] - found[1]).max()
    (job,) = score._jobs(["roc_auc"], object(), n=1000, epsilon=5.0, delta=0.0)
    assert moved == job.place.sensitivity == 1.0


def test_quartiles_are_released_before_the_counts():
    """What is charged for is drawn: two places by the mechanism, and a table with noise."""
    with record_releases() as releases:
        found = private_score(Scores(), X, Y, metric="roc_auc", epsilon=4.0, delta=1e-6)
    assert len(releases) == len(found.privacy_.events) == 3
    assert [type(each.mechanism).__name__ for each in releases] == [
        "ExponentialChoice", "ExponentialChoice", "GaussianNoise"
    ]  # fmt: skip


def test_a_metric_that_says_no_more_is_of_predicted_classes(monkeypatch):
    """Beside sensitivity, tally and estimate an entry states what its counts are not."""

    def tally(values, codes, cells):
        return _tallies.RIGHT * np.array([float((values == codes).sum())])

    plain = Metric((1, 1.0), tally, _intervals.share_of_right, majority=None)
    expected = private_score(Known(), X, Y, epsilon=np.inf).value
    monkeypatch.setitem(METRICS, "accuracy", plain)
    assert private_score(Known(), X, Y, epsilon=np.inf).value == expected
    wrong = replace(plain, tally=lambda *given: 2.0 * tally(*given))
    monkeypatch.setitem(METRICS, "accuracy", wrong)
    assert private_score(Known(), X, Y, epsilon=np.inf).value != expected


def test_metrics_of_one_table_are_released_together():
    """Recall, precision, F1 and the matrix are functions of one release at the whole budget."""
    names = ["recall", "precision", "f1", "confusion_matrix"]
    with record_releases() as releases:
        found = private_score(Known(), X, Y, metric=names, delta=1e-6)
    (release,) = releases
    assert release.mechanism == GaussianNoise(math.sqrt(2.0), score.gdp_mu(1.0, 1e-6))
    (_, false), (missed, right) = release.released
    assert found[0].value == pytest.approx(right / (right + missed))
    assert found[1].value == pytest.approx(right / (right + false))
    assert found[2].value == pytest.approx(2 * right / (2 * right + false + missed))
    with record_releases() as releases:
        private_score(Known(), X, Y, metric=["roc_auc", "average_precision", "accuracy"])
    assert len(releases) == 2


def test_the_majority_class_stands_beside_a_score():
    for metric in sorted(METRICS):
        found = exact(metric).majority
        assert (found is None) == (metric in LOSSES)
        assert found is None or found[0] == pytest.approx(np.mean(Y == 0))
    assert private_score(Known(), X[:40], Y[:40] * 0 + 1, epsilon=math.inf).majority[0] == 1.0
    # Of two classes one has half of the records, whatever the noise says.
    for _ in range(5):
        noisy = private_score(Known(), X[:4], Y[:4], epsilon=1e-3).majority
        assert min(noisy) >= 0.5


def test_a_score_is_a_sentence_and_says_when_it_knows_nothing():
    known, unknown = exact("accuracy"), private_score(Known(), X[:4], Y[:4], epsilon=1e-3)
    text = str(known)
    assert re.fullmatch(
        r"accuracy: 0\.\d{3}, 95 % interval 0\.\d{3} to 0\.\d{3}; "
        r"the majority class has 0\.\d{3} of the records \(0\.\d{3} to 0\.\d{3}\)",
        text,
    )
    assert unknown.is_uninformative
    assert "uninformative" in str(unknown)
    few = private_score(Known(), X[:4], Y[:4], metric="confusion_matrix", epsilon=1e-3)
    assert few.is_uninformative
    assert str(few).count("95 % interval") == 4
    loss = private_score(Known(), X[:4], Y[:4], metric="log_loss", epsilon=1e-3)
    assert loss.is_uninformative
    assert loss.interval[1] == _tallies.LARGEST_LOG_LOSS


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"confusion_matrix"}))
def test_a_score_of_one_of_two_classes_names_it(metric):
    """The second one in sorted order, which may be "no" rather than "yes"."""
    plain = exact(metric)
    other = private_score(Backwards(), X, Backwards.classes_[Y], metric=metric, epsilon=math.inf)
    is_same = other.value == pytest.approx(plain.value)
    names = (metric, metric) if is_same else (f"{metric} of 1", f"{metric} of b")
    assert (plain.rows()[0][0], other.rows()[0][0]) == names
    assert str(other).startswith(f"{names[1]}: ")
    if metric == "recall":
        wards = private_score(Known(), X, Y, metric=metric, by=Y, by_values=["x"])
        assert [row[0] for row in wards.rows()] == ["recall of 1, x", "recall of 1, other"]


def test_log_losses_are_clipped_record_by_record():
    class Odd:
        classes_ = np.arange(2)

        def predict_proba(self, X):
            return np.array([[5.0, -4.0], [0.5, 0.5], [np.nan, 1.0], [0.0, 1.0]])

    losses = _tallies.log_losses_of(Odd(), np.zeros((4, 1)), np.array([1, 1, 0, 1]), np.arange(2))
    half = round(_tallies.SCALE * math.log(2.0) / _tallies.LARGEST_LOG_LOSS)
    assert losses.tolist() == [_tallies.SCALE, half, _tallies.SCALE, 0]


def test_equal_losses_have_a_mean_that_is_known():
    class Even:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.zeros(len(X))

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    rows, labels = np.zeros((400, 1)), np.arange(400) % 2
    found = private_score(Even(), rows, labels, metric="log_loss", epsilon=math.inf)
    assert (found.value, *found.interval) == pytest.approx(3 * (math.log(2.0),), abs=0.04)


@every_metric
@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True]])
def test_a_score_is_rebuilt_from_its_json(metric, classes):
    """Labels of each type, arrays of every shape."""
    model, (X, y) = Known(), records(np.random.default_rng(0), 600)
    model.classes_ = np.array(classes)
    if metric in ("recall", "precision", "f1", "confusion_matrix", "accuracy", "balanced_accuracy"):
        model.predict = lambda X: model.classes_[(X[:, 0] > 0).astype(int)]
    score = private_score(model, X, model.classes_[y], metric=metric, epsilon=4.0)
    again = PrivateScore.from_dict(json.loads(json.dumps(score.to_dict(), allow_nan=False)))
    assert str(again) == str(score)
    assert again.privacy_ == score.privacy_
    assert again.classes.tolist() == score.classes.tolist()
    for name in ("value", "interval", "majority"):
        np.testing.assert_equal(getattr(again, name), getattr(score, name))


def test_the_area_has_a_second_name():
    X, y = separated(400, 2)
    model = LogisticRegression().fit(X, y)
    one = private_score(model, X, y, metric="auc", epsilon=5.0, delta=1e-6)
    (other,) = private_score(model, X, y, metric=["roc_auc"], epsilon=5.0, delta=1e-6)
    assert one.metric == other.metric == dict(one.privacy_.public)["metric"] == "roc_auc"
    (listed,) = private_score(model, X, y, metric=["auc"], epsilon=5.0, delta=1e-6)
    assert listed.privacy_ == other.privacy_


def test_scores_of_one_selected_classifier_are_those_of_its_labels_and_say_so():
    """Cells tell its probabilities apart by the label alone."""
    X, y = separated(100, 2)
    model = AdaptiveMarginClassifier(epsilon=1.0, classes=[0, 1]).fit(X, y)
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-3)
    given = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the model is one selected classifier")
        with pytest.raises(PrivacyWarning, match="roc_auc will be about as if only the labels"):
            private_score(model, X, y, metric=["accuracy", "roc_auc"], **given)
        assert ledger.spent() == 0.0
        private_score(model, X, y, **given)


def test_an_interval_that_ends_at_one_end_of_the_range_says_something():
    score = private_score(Known(), *records(np.random.default_rng(0), 600), epsilon=4.0)
    for ends, is_uninformative in (((0.0, 0.5), False), ((0.5, 1.0), False), ((0.0, 1.0), True)):
        assert replace(score, interval=ends).is_uninformative == is_uninformative


def test_no_score_is_rebuilt_from_other_fields():
    plain = private_score(Known(), *records(np.random.default_rng(0), 600)).to_dict()
    less = {name: value for name, value in plain.items() if name != "groups"}
    for odd in ({**plain, "more": 1}, less):
        with pytest.raises(ValueError, match="a known metric, and the fields"):
            PrivateScore.from_dict(odd)
    for odd in (
        {**exact("recall").to_dict(), "classes": ["no"]},
        {**plain, "classes": [["no"], ["yes"]]},
        {**plain, "groups": [], "value": [], "interval": [[], []]},
    ):
        with pytest.raises(ValueError, match="a list of classes"):
            PrivateScore.from_dict(odd)


def test_quartiles_are_released_where_they_cost_a_quarter_at_most(monkeypatch):
    """Each takes an epsilon of 150 over the number of records; otherwise they are -1 and 1."""
    ends, honest = [], _tallies.cells_between
    monkeypatch.setattr(_tallies, "cells_between", lambda z: ends.append(z.tolist()) or honest(z))

    class Scored:
        classes_ = np.array([0, 1])

        def decision_function(self, X):
            return X[:, 0]

    for n, n_releases in ((590, 1), (610, 3)):
        X, y = np.linspace(-1.0, 1.0, n)[:, None], np.arange(n) % 2
        assert len(private_score(Scored(), X, y, metric="roc_auc").privacy_.events) == n_releases
    assert ends[0] == [-1.0, 1.0]

    class Rules(Scored):
        def predict(self, X):
            return (X[:, 0] > 0.0).astype(int)

    class Rated(Rules):
        predict_proba = None

    # Metrics without cells have no part in them.
    X, y = np.linspace(-1.0, 1.0, 1300)[:, None], np.arange(1300) % 2
    plain, rated = (private_score(model(), X, y).privacy_ for model in (Rules, Rated))
    assert plain.events == rated.events
    scores = private_score(Rules(), X, y, metric=["accuracy", "roc_auc"])
    assert len(scores[0].privacy_.events) == 1 + 3


def test_workers_get_a_model_without_its_ledger_and_its_seed():
    seen = []

    class Watched(Known, BaseEstimator):
        def __init__(self, ledger=None, random_state=None):
            self.ledger, self.random_state = ledger, random_state

        def predict(self, X):
            seen.append((self.ledger, self.random_state))
            return super().predict(X)

    X, y = records(np.random.default_rng(0), 600)
    private_score(Watched("a.ledger", 3), in_chunks(X, 200), y)
    assert set(seen) == {(None, None)}


@pytest.mark.slow
@pytest.mark.skipif("DP_HALFSPACE_DATA" not in os.environ, reason="needs the shared tables")
@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize("table", score_coverage.TABLES)
def test_intervals_cover_on_real_tables(table):
    people = score_coverage.population(table)
    for metric, delta, n in product(sorted(METRICS), (1e-6, 0), (500, 2000)):
        found = score_coverage.figures(people, metric, n, 2000, epsilon=1.0, delta=delta)
        assert found.coverage > 0.94, (metric, delta, n, found)


def test_a_metric_without_cells_releases_no_quartiles():
    with record_releases() as releases:
        private_score(Known(), X, Y, metric="accuracy", delta=1e-6)
    assert len(releases) == 1
