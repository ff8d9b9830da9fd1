"""Scores whose unit is a person: brute force over people of 1 to 50 rows, and equality with rows.

Proof: ``docs/proofs/metrics.md``, section 3.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dp_halfspace import AdaptiveMarginClassifier, BudgetError, PrivacyLedger
from dp_halfspace.data.people import People
from dp_halfspace.metrics import METRICS, _tallies, private_score
from tests.conftest import separated
from tests.metrics.problem import Known, records
from tests.metrics.test_score import LOSSES, Scores, Table, every_metric
from tests.releases import record_releases
from tests.support import Book

X, Y = records(np.random.default_rng(0), 500)


@every_metric
@pytest.mark.parametrize("kind", [Known, Scores])
@pytest.mark.filterwarnings("ignore:random_state")
def test_people_of_one_row_are_records_bit_for_bit(metric, kind):
    if kind is Scores and metric in LOSSES:
        pytest.skip("needs probabilities")
    arguments = {"metric": metric, "epsilon": 3.0, "delta": 1e-6, "random_state": 1}
    rows = private_score(kind(), X, Y, **arguments)
    people = private_score(kind(), X, Y, groups=[f"p{i}" for i in range(500)], **arguments)
    np.testing.assert_array_equal(rows.value, people.value)
    np.testing.assert_array_equal(rows.interval, people.interval)
    assert rows.privacy_.events == people.privacy_.events
    assert people.privacy_.adjacency == "replace-one-person"


@every_metric
def test_people_of_equally_many_rows_have_the_score_of_the_rows(metric):
    """A row counts by its share of the person, and a loss by the mean."""
    values = [
        private_score(Known(), X, Y, metric=metric, epsilon=math.inf, groups=groups).value
        for groups in (None, np.arange(500) // 2)
    ]
    per_person = 2.0 if metric == "confusion_matrix" else 1.0
    np.testing.assert_allclose(values[0], per_person * np.asarray(values[1]), rtol=1e-4)


@every_metric
def test_rows_of_a_person_may_be_anywhere(metric):
    """A row keeps its label, its person and its group wherever it stands."""
    owner = np.arange(500) // 3
    by = {"by": X[:, 0] > 0.4, "by_values": [False, True]} if METRICS[metric].in_group else {}
    found = []
    for order in (np.arange(500), np.random.default_rng(1).permutation(500)):
        options = {"groups": owner[order], "metric": metric, "epsilon": math.inf}
        given = Known(), X[order], Y[order]
        found.append([private_score(*given, **options).value])
        if by:
            groups = {**by, "by": by["by"][order]}
            found[-1].append(private_score(*given, **options, **groups).value)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)


def largest_move(metric, trials=8):
    """Largest Euclidean change over neighbours, over what it is charged for."""
    rng, largest = np.random.default_rng(0), 0.0
    pool = np.array([0.0, 0.0999, 0.1, 0.3, 0.5, 0.999, 1.0])
    for trial in range(trials):
        people = [(rng.choice(pool, k), rng.integers(2, size=k)) for k in rng.integers(1, 51, 4)]
        sizes = rng.choice([1, 2, 7, 50], 2)
        ends = [(0.0, 0), (1.0, 1)] if trial % 3 else [(0.0, 0), (0.0999, 1)]
        ends = ends if trial % 2 else [(0.0, 1), (1.0, 1)]
        found = []
        for size, (x, label) in zip(sizes, ends, strict=True):
            persons = [*people, (np.full(size, x), np.full(size, label))]
            rows, labels = (np.concatenate(part) for part in zip(*persons, strict=True))
            owner = np.repeat(np.arange(5), [len(y) for _, y in persons])
            with record_releases() as releases:
                private_score(
                    Table(), rows[:, None], labels, metric=metric, groups=owner, delta=1e-6
                )
            found.append(releases[-1])
        gap = np.linalg.norm((found[0].value - found[1].value).ravel())
        largest = max(largest, gap / found[0].mechanism.sensitivity)
    return largest


@every_metric
def test_a_person_moves_counts_like_a_record(metric):
    assert 1.0 - 1e-6 <= largest_move(metric) <= 1.0


def test_a_person_moves_the_ranks_of_scores_like_a_record():
    owner, found = np.minimum(np.arange(500), 400), []
    for rows in (X, np.where(owner[:, None] == 400, 9.0, X)):
        with record_releases() as releases:
            private_score(Scores(), rows, Y, metric="roc_auc", groups=owner, epsilon=20.0)
        found.append(np.array([release.value for release in releases[:2]]))
    assert 0.5 < np.abs(found[1] - found[0]).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_planted_bug_rows_that_weigh_one_are_seen(metric, monkeypatch):
    monkeypatch.setattr(People, "weights_for", lambda self, _: np.ones(self.counts.sum()))
    assert largest_move(metric, 6) > 5.0


def test_planted_bug_sums_of_losses_are_seen(monkeypatch):
    def of_rows(values, codes, cells):
        return _tallies.sum_losses(values, codes, replace(cells, people=None))

    monkeypatch.setitem(METRICS, "log_loss", replace(METRICS["log_loss"], tally=of_rows))
    assert largest_move("log_loss", 6) > 5.0


def largest_place_move(scale=1.0):
    """Over neighbours, the change of the distance of a place from a quartile."""
    rng, largest = np.random.default_rng(0), 0.0
    for trial in range(40):
        people = [scale * rng.normal(size=k) for k in rng.integers(1, 51, 5)]
        found = []
        for size, x in zip(rng.choice([1, 3, 50], 2), rng.choice([-9.0, 9.0], 2), strict=True):
            persons = [*people, np.full(size, x)]
            owner = None if trial % 2 else People(np.array([len(p) for p in persons]))
            if trial % 2:
                persons = [p[:1] for p in persons]
            counts = _tallies.between_places(np.concatenate(persons), owner)
            found.append(_tallies.places(counts, len(persons)))
        largest = max(largest, np.abs(found[0] - found[1]).max())
    return largest


def test_a_person_moves_no_quartile_by_more_than_one():
    assert 1.0 - 1e-6 <= largest_place_move() <= 1.0


def test_planted_bug_places_that_count_rows_are_seen(monkeypatch):
    monkeypatch.setattr(People, "weights", property(lambda self: np.ones(self.counts.sum())))
    assert largest_place_move() > 5.0


def moved_bits(model, rows, labels):
    """How many outcomes of others change when the first person has other rows, and more."""
    rng, outcomes, moved = np.random.default_rng(1), [], 0
    others = rng.integers(1, 5, 90)
    kept = int(others.sum())
    for size in (1, 3, 50):
        mine = rng.choice(len(rows), size)
        table = np.vstack([rows[mine] * 1e3, rows[:kept]])
        people = People(np.append(size, others))
        found = people.row_by_row(lambda index, t=table: model.decision_function(t[index]))
        outcomes.append(found[size:])
        np.testing.assert_allclose(found, model.decision_function(table), rtol=1e-9)
    for other in outcomes[1:]:
        moved += int((other != outcomes[0]).sum())
    return moved


def test_outcomes_of_a_row_do_not_depend_on_the_rows_of_others(monkeypatch):
    rows, labels = separated(500, 7)
    model = AdaptiveMarginClassifier(epsilon=9.0, classes=[0, 1]).fit(rows, labels)
    for rows_of_a_block in (128, 16, 2):
        monkeypatch.setattr("dp_halfspace.data.people.AT_ONCE", rows_of_a_block)
        assert moved_bits(model, rows, labels) == 0


def test_what_is_said_is_about_people():
    owner = np.arange(500) // 5
    frame = pd.DataFrame(X).assign(one=1)
    ledger = PrivacyLedger(epsilon=2.0, delta=1e-3, adjacency="replace-one-person")

    class OfFrames(Known):
        def predict(self, X):
            return super().predict(X.to_numpy())

    got = private_score(
        OfFrames(), frame, Y, groups=owner, epsilon=math.inf, metric="confusion_matrix"
    )
    assert got.value.sum() == pytest.approx(100, rel=1e-6)
    got = private_score(Known(), X, Y, groups=owner, ledger=ledger)
    assert dict(got.privacy_.public)["n_samples"] == 100
    assert got.privacy_.delta == 100.0**-2
    with pytest.raises(BudgetError, match=r"replace-one-person.*: give groups"):
        private_score(Known(), X, Y, ledger=ledger)


def test_people_have_no_pure_scores_and_errors_count_no_rows():
    book = Book()
    for arguments, message in (
        ({"delta": 0}, "groups needs delta > 0"),
        ({"y": Y[:-1]}, "same number of rows"),
        ({"groups": [1, 2]}, "X and groups must have the same number of rows"),
    ):
        given = {"y": Y, "groups": np.arange(500) // 2, "ledger": book, **arguments}
        with pytest.raises(ValueError, match=message) as caught:
            private_score(Known(), X, given.pop("y"), **given)
        assert not any(number in str(caught.value) for number in ("499", "500", "250"))
    assert not book.records
    # Without noise there is none of whole records.
    assert private_score(Known(), X, Y, groups=np.arange(500) // 2, epsilon=math.inf, delta=0)
