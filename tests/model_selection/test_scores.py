"""Scores of candidates: one record moves them by one at most; adversaries, and refusals.

Proof: ``docs/proofs/selection.md``, section 9.
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures

from dp_halfspace import (
    AdaptiveMarginClassifier,
    OutputPerturbationClassifier,
    PrivacyLedger,
    PrivateSearchCV,
)
from dp_halfspace.model_selection import RobustAccuracy
from dp_halfspace.model_selection import _search_runs as candidates
from tests.conftest import separated
from tests.support import Book

pytestmark = pytest.mark.usefixtures("plans_are_made_once")
X, Y = separated(300, 3, 2)
PUBLIC = {"classes": [0, 1], "data_norm": 1.0}
MODEL = AdaptiveMarginClassifier(**PUBLIC)


class Says:
    """Scores are what the record holds, and so is the predicted label."""

    def __init__(self, n_classes):
        self.classes_ = np.arange(n_classes)

    def decision_function(self, X):
        return X

    def predict(self, X):
        return X.astype(int)


def largest_change(scoring, n_classes, n):
    """Over all tables of n records that sort alike, and all that replace the last of them."""
    model, cells = Says(n_classes), list(product(range(n_classes), repeat=2))
    largest = 0.0
    # Only how many records are of each kind matters.
    for counts in product(range(n), repeat=len(cells) - 1):
        if sum(counts) > n - 1:
            continue
        rest = np.repeat(np.arange(len(cells)), [*counts, n - 1 - sum(counts)])
        totals = [
            candidates.score_of(
                scoring, model, *np.array([cells[k] for k in [*rest, last]]).T * 1.0
            )
            for last in range(len(cells))
        ]
        largest = max(largest, np.ptp(totals))
    return largest


def extreme_change(scoring):
    """With 400 records, at the tables that the proof names."""
    if scoring == "roc_auc":  # one positive, above or below all others
        x, y, ends = np.full(400, 0.5), np.eye(1, 400)[0], [(0.0, 1.0), (1.0, 1.0)]
    else:  # all right, classes of one size; a record changes its class and is wrong
        y = np.repeat([0.0, 1.0], 200)
        x, ends = y.copy(), [(0.0, 0.0), (0.0, 1.0)]
    found = []
    for x[0], y[0] in ends:
        found.append(candidates.score_of(scoring, Says(2), x, y))
    return np.ptp(found)


@pytest.mark.parametrize("scoring", candidates.SCORINGS)
def test_no_record_moves_a_score_by_more_than_one(scoring):
    assert max(largest_change(scoring, 2, n) for n in (1, 2, 5)) <= 1.0
    if scoring != "roc_auc":
        assert largest_change(scoring, 3, 3) <= 1.0


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy"])
def test_the_bound_is_nearly_attained(scoring):
    assert 0.99 < extreme_change(scoring) <= 1.0


def test_scores_rank_as_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.3).astype(int)
    tables = [np.where(rng.random(200) < share, y, 1 - y) for share in (0.6, 0.8, 0.95)]
    ranks = [rng.normal(size=200) + shift * y for shift in (0.5, 1.0, 2.0)]
    for x in tables:
        found = candidates.score_of("balanced_accuracy", Says(2), x, y)
        expected = balanced_accuracy_score(y, x) * 2 * min(y.sum(), 200 - y.sum()) / 3
        assert found == pytest.approx(expected)
    # Ties count one half, and rounded scores have many.
    for x in [*ranks, *map(np.rint, ranks)]:
        found = candidates.score_of("roc_auc", Says(2), x, y)
        assert found == pytest.approx(roc_auc_score(y, x) * y.sum() * (200 - y.sum()) / 200)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", RobustAccuracy(0.1)])
def test_a_search_pays_the_same_for_every_score_and_says_which(scoring):
    grid = {"adversary_radius": [0.1]}
    model = OutputPerturbationClassifier(preconditioner=False, **PUBLIC)
    search = PrivateSearchCV(model, grid, epsilon=20.0, scoring=scoring).fit(X, Y)
    plain = PrivateSearchCV(model, grid, epsilon=20.0).plan(X, Y)
    assert search.privacy_.events == plain.events
    assert dict(search.privacy_.public)["scoring"] in (scoring, repr(scoring))


def test_robust_accuracy_is_that_of_the_worst_move():
    """Moves in the worst direction change no label that counts as robust, and longer ones do."""
    for K in (2, 3):
        rows, labels = separated(300, 3, K)
        model = OutputPerturbationClassifier(
            epsilon=np.inf, data_norm=9.0, preconditioner=False, classes=range(K)
        )
        model.fit(rows, labels)
        weights = model.coef_ if K > 2 else np.vstack([-model.coef_, model.coef_]) / 2
        for norm in (2, "inf"):
            right = RobustAccuracy(0.2, norm)(model, rows, labels) > 0
            assert 0 < right.sum() < (model.predict(rows) == labels).sum()
            broken = np.zeros(len(rows), bool)
            for factor in (0.999, 1.001):
                for k in range(K):
                    way = weights[k] - weights[labels]
                    size = np.linalg.norm(way, axis=1, keepdims=True)
                    step = np.sign(way) if norm == "inf" else way / np.maximum(size, 1e-300)
                    broken |= model.predict(rows + 0.2 * factor * step) != labels
                if factor < 1:
                    assert not (broken & right).any()
            assert (broken | right).all()
    line = SimpleNamespace(
        classes_=np.arange(2), coef_=np.ones((1, 1)), decision_function=lambda rows: rows[:, 0]
    )
    ends = np.array([[0.5], [0.5001], [-0.5]])
    assert RobustAccuracy(0.5)(line, ends, [1, 1, 0]).tolist() == [0.0, 1.0, 0.0]
    for radius in (-1.0, "1", np.inf):
        with pytest.raises(ValueError, match="radius must be at least 0 and finite"):
            RobustAccuracy(radius)
    with pytest.raises(ValueError, match="norm must be 2 or 'inf'"):
        RobustAccuracy(1.0, norm="2")


def test_a_refit_is_charged():
    inner = OutputPerturbationClassifier(classes=[0, 1], data_norm=1.0)
    book, grid = Book(), {"alpha": [0.3, 0.5]}
    search = PrivateSearchCV(
        inner, grid, epsilon=8.0, scoring="balanced_accuracy", ledger=book
    ).fit(X, Y)
    search.best_estimator_.fit(X, Y)
    assert len(book.records) == 2


def test_scores_that_a_model_has_not_are_refused_before_anything_is_paid():
    three = AdaptiveMarginClassifier(classes=[0, 1, 2], data_norm=1.0)
    book = Book()
    with pytest.raises(ValueError, match="two classes"):
        PrivateSearchCV(three, {}, scoring="roc_auc", ledger=book).fit(X, Y)
    assert not book.records


def test_a_search_is_the_last_step_of_a_pipeline():
    ledger, grid = PrivacyLedger(epsilon=9.0, delta=1e-4), {"margin": ["auto", 0.3]}
    search = PrivateSearchCV(MODEL, grid, epsilon=8.0, ledger=ledger)
    model = make_pipeline(Normalizer(), PolynomialFeatures(2), search).fit(X, Y)
    (entry,) = ledger.entries()
    assert entry.record == model[-1].privacy_
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy"])
def test_planted_bugs_of_scores_are_seen(scoring, monkeypatch):
    """Twice the pairs; or recalls that are not divided by the number of classes plus one."""
    honest = candidates.SCORINGS[scoring]
    factor = 1.1 if scoring == "roc_auc" else 1.5
    monkeypatch.setitem(candidates.SCORINGS, scoring, lambda *a: factor * honest(*a))
    assert extreme_change(scoring) > 1.0
