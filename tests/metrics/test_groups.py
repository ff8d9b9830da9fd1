"""Scores by group: one record moves one table, gaps hold at once, what is not listed is seen."""

from __future__ import annotations

import io
import math
import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score

from dp_halfspace import BudgetError, PrivacyWarning
from dp_halfspace.data.people import People
from dp_halfspace.datasets import in_chunks
from dp_halfspace.metrics import METRICS, PrivateGroupScore, _held_out, private_score, score
from dp_halfspace.metrics._held_out import _gap_interval, group_codes
from dp_halfspace.metrics._intervals import Released, recall
from dp_halfspace.privacy.mechanisms import GaussianNoise
from tests.metrics.problem import Known, records
from tests.metrics.test_score import Table
from tests.releases import record_releases
from tests.support import Book

X, Y = records(np.random.default_rng(0), 600)
WARD = np.where(np.arange(600) % 3 == 0, "north", np.where(X[:, 0] > 0.4, "south", "west"))
WARDS = ["north", "south", "west"]
BY_GROUP = [name for name, metric in METRICS.items() if metric.in_group is not None]


def largest_move(delta, *, groups=False):
    """Largest change of the released tables over replaced records, over what is charged."""
    first, codes = np.array([[0.3], [0.9], [0.5], [0.7]]), np.array([0, 1, 1, 0])
    places = ["a", "b", "c", "a"]
    found = []
    for x, label, place, size in product(
        (0.0, 1.0), (0, 1), ("a", "b", "q"), (1, 3) if groups else (1,)
    ):
        rows = np.vstack([first, np.full((size, 1), x)])
        who = [*range(4), *[4] * size] if groups else None
        with record_releases() as releases:
            private_score(
                Table(), rows, [*codes, *[label] * size], metric=["recall", "accuracy"],
                by=[*places, *[place] * size], by_values=["a", "b", "c"], delta=delta, groups=who,
            )  # fmt: skip
        (release,) = releases
        found.append(release)
    noise = found[0].mechanism
    order = 2 if isinstance(noise, GaussianNoise) else 1
    gaps = [np.linalg.norm((a.value - b.value).ravel(), order) for a, b in product(found, found)]
    return max(gaps) / noise.sensitivity


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_a_record_moves_the_tables_of_all_groups_by_one_charge(delta):
    assert largest_move(delta) == pytest.approx(1.0, abs=1e-12)


def test_a_person_moves_them_no_more():
    assert 1.0 - 1e-6 <= largest_move(1e-6, groups=True) <= 1.0


@pytest.mark.slow
def test_planted_bug_rows_of_a_person_that_weigh_one_are_seen(monkeypatch):
    monkeypatch.setattr(People, "weights_for", lambda self, _: np.ones(self.counts.sum()))
    assert largest_move(1e-6, groups=True) > 2.0


def test_planted_bug_a_record_in_every_group_is_seen(monkeypatch):
    honest = score.count_confusions_of_groups

    def everywhere(values, codes, group, cells):
        return honest(values, codes, group, cells) + honest(values, codes, 0 * group, cells)

    monkeypatch.setattr(score, "count_confusions_of_groups", everywhere)
    assert largest_move(1e-6) > 1.4


@pytest.mark.parametrize("metric", BY_GROUP)
def test_without_noise_scores_of_groups_are_those_of_scikit_learn(metric):
    guess = Known().predict(X)
    expected = {
        "accuracy": lambda y, z: np.mean(y == z),
        "balanced_accuracy": balanced_accuracy_score,
        "recall": recall_score,
        "precision": precision_score,
        "f1": f1_score,
    }[metric]
    found = private_score(Known(), X, Y, metric=metric, by=WARD, by_values=WARDS, epsilon=math.inf)
    assert isinstance(found, PrivateGroupScore)
    assert found.groups == (*WARDS, "other")
    for place, ward in enumerate(WARDS):
        of_ward = ward == WARD
        assert found.value[place] == pytest.approx(expected(Y[of_ward], guess[of_ward]))
    assert found.confusion.sum() == 600
    np.testing.assert_allclose(found.gap, found.value[:, None] - found.value[None])
    np.testing.assert_allclose(found.gap_interval[0], -found.gap_interval[1].T)


def test_a_column_of_the_frame_and_people_in_any_order():
    frame = pd.DataFrame({"x": X[:, 0], "ward": WARD})

    class OfFrame(Known):
        def predict(self, rows):
            return super().predict(rows[["x"]].to_numpy())

    kind = {"by_values": WARDS, "epsilon": math.inf, "metric": "recall"}
    plain = private_score(Known(), X, Y, by=WARD, **kind)
    named = private_score(OfFrame(), frame, Y, by="ward", **kind)
    owner = np.random.default_rng(1).permutation(600)
    owned = private_score(Known(), X, Y, by=list(WARD), groups=owner, delta=1e-6, **kind)
    np.testing.assert_array_equal(plain.confusion, named.confusion)
    np.testing.assert_array_equal(plain.confusion, owned.confusion)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame,
        pa.table,
        lambda columns: pa.table(columns).to_batches()[0],
        lambda columns: pytest.importorskip("polars").DataFrame(columns),
    ],
    ids=["pandas", "Arrow", "batch of Arrow", "polars"],
)
def test_a_column_is_found_by_name_in_a_table_of_any_library(table):
    frame = table({"x": X[:, 0], "ward": WARD.astype(object), "bed": np.arange(600) % 2})

    class OfTable(Known):
        def predict(self, rows):
            return super().predict(np.asarray(rows["x"])[:, None])

    kind = {"epsilon": math.inf, "metric": "recall"}
    plain = private_score(Known(), X, Y, by=WARD, by_values=WARDS, **kind)
    for by in ("ward", frame["ward"]):
        found = private_score(OfTable(), frame, Y, by=by, by_values=WARDS, **kind)
        np.testing.assert_array_equal(plain.confusion, found.confusion)
    beds = [
        private_score(OfTable(), frame, Y, by=by, by_values=["0", 1.0], **kind)
        for by in ("bed", frame["bed"], np.arange(600) % 2)
    ]
    assert {tuple(np.ravel(bed.confusion)) for bed in beds} == {tuple(np.ravel(beds[0].confusion))}
    assert beds[0].confusion[2].sum() == 0
    with pytest.raises(ValueError, match="by='wrad' is not a column of X"):
        private_score(OfTable(), frame, Y, by="wrad", by_values=WARDS, **kind)


def test_what_is_not_listed_is_a_group_of_its_own():
    odd = WARD.astype(object)
    odd[:5] = [None, math.nan, "east", 3, [1]]
    found = private_score(Known(), X, Y, by=odd, by_values=WARDS, epsilon=math.inf)
    assert found.confusion[3].sum() == 5


def sizes_of_groups(cells, as_column):
    """Records of the groups 1, 2 and "other", of cells as a reader stores them."""
    n = len(cells)
    found = private_score(
        Known(), X[:n], Y[:n], by=as_column(cells), by_values=[1, 2], epsilon=math.inf
    )
    return found.confusion.sum(axis=(1, 2))


READERS = {
    "csv": lambda cells: pd.read_csv(io.StringIO("ward\n" + "\n".join(cells)))["ward"],
    "categories": lambda cells: pd.read_csv(
        io.StringIO("ward\n" + "\n".join(cells)), dtype="category"
    )["ward"],
    "numbers": lambda cells: pd.array(pd.to_numeric(pd.Series(cells), errors="coerce")),
    "array": lambda cells: np.array([int(c) if c.isdigit() else c for c in cells]),
    "list": list,
    "arrow": pa.array,
}


@pytest.mark.parametrize("as_column", READERS.values(), ids=READERS)
@pytest.mark.parametrize("odd", ["x", "1.5", "NA", "true", "1"])
def test_a_cell_of_another_type_moves_no_other_record(as_column, odd):
    """One text in a file makes texts of all numbers; one fraction or gap makes them floats."""
    cells = ["1", "2"] * 20
    first, second = (sizes_of_groups([last, *cells], as_column) for last in ("2", odd))
    np.testing.assert_array_equal(first, [20, 21, 0])
    np.testing.assert_array_equal(second, [21, 20, 0] if odd == "1" else [20, 20, 1])


def test_planted_bug_values_as_a_reader_stores_them_are_seen(monkeypatch):
    as_stored = lambda cell: cell if isinstance(cell, str) else f"number {cell}"  # noqa: E731
    monkeypatch.setattr(_held_out, "category_of", as_stored)
    with pytest.raises(AssertionError):
        test_a_cell_of_another_type_moves_no_other_record(READERS["csv"], "x")


def covered(metric, runs, n, budget):
    """Share of runs in which the gaps of all pairs are covered."""
    truth = {"recall": [1.0, 0.5, 0.5], "accuracy": [0.9, 0.9, 0.6]}[metric]
    rng, inside = np.random.default_rng(0), []

    class Answer(Known):
        def predict(self, rows):
            return rows[:, 0].astype(int)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for run in range(runs):
            ward = rng.choice(3, n, p=[0.5, 0.3, 0.2])
            y = rng.integers(2, size=n)
            right = rng.random(n) < np.array(truth)[ward]
            rows = np.where(right, y, 1 - y)[:, None]
            found = private_score(
                Answer(), rows, y, metric=metric, by=ward, by_values=[0, 1, 2], random_state=run,
                **budget,
            )  # fmt: skip
            gap = np.subtract.outer(truth, truth)
            low, high = (end[:3, :3] for end in found.gap_interval)
            inside.append(np.all((low <= gap) & (gap <= high)))
    return float(np.mean(inside))


@pytest.mark.slow
def test_gaps_are_covered_at_once():
    assert covered("accuracy", 150, 1500, {"epsilon": 1.0, "delta": 1e-6}) > 0.92


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["accuracy", "recall"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_gaps_are_covered_at_once_in_many_runs(metric, delta):
    for n, epsilon in ((1500, 1.0), (400, 1.0), (4000, 0.3)):
        assert covered(metric, 2000, n, {"epsilon": epsilon, "delta": delta}) > 0.94


@pytest.mark.slow
def test_planted_bug_gaps_without_noise_are_not_covered(monkeypatch):
    monkeypatch.setattr(score, "_variance", lambda noise: 0.0)
    assert covered("accuracy", 150, 1500, {"epsilon": 0.15, "delta": 1e-6}) < 0.9


def test_a_text_says_which_gaps_are_certain():
    ward = np.where(Known().predict(X) == Y, "a", "b")
    text = str(private_score(Known(), X, Y, by=ward, by_values=["a", "b"], epsilon=8.0))
    assert re.search(r"a minus b: \d\.\d{3}", text)
    assert "other: " in text
    few = private_score(Known(), X[:9], Y[:9], by=ward[:9], by_values=["a", "b"], epsilon=0.01)
    assert "uninformative" in str(few)
    assert "No gap between two groups" in str(few)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("metric", BY_GROUP)
def test_no_interval_is_given_for_a_last_group_that_may_be_empty(metric):
    """Without the rule one of twenty has one, such as .48 to 1."""
    by = {"by": WARD, "by_values": WARDS, "epsilon": 3.0, "delta": 1e-6, "metric": metric}
    for _ in range(40):
        scores = private_score(Table(), X, Y, **by)
        assert (scores.interval[0][-1], scores.interval[1][-1]) == (0.0, 1.0)
        assert re.search(r"other: .* \(uninformative", str(scores))
    scores = private_score(Table(), X, Y, **{**by, "by_values": ["north", "west"]})
    assert scores.interval[1][-1] - scores.interval[0][-1] < 1.0


def test_the_charge_comes_first():
    with record_releases() as releases, pytest.raises(BudgetError):
        private_score(Known(), X, Y, by=WARD, by_values=WARDS, ledger=Book(refuse=True))
    assert not releases


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by_values": None}, "by and by_values go together"),
        ({"by": None}, "by and by_values go together"),
        ({"by": "ward"}, "by='ward' is not a column of X"),
        ({"by": WARD[:-1]}, "by and X must have the same number of rows, got 599 and 600"),
        ({"by": WARD[:-1], "groups": np.arange(600)}, "by and X must have the same number of rows"),
        ({"by": WARD[:, None]}, "by must be one-dimensional"),
        ({"by_values": []}, "at least one value, and of none missing"),
        ({"by_values": ["north", None]}, "at least one value, and of none missing"),
        ({"by_values": ["north", math.nan]}, "at least one value, and of none missing"),
        ({"by_values": ["north", "north"]}, "must not list a value twice"),
        ({"by_values": [1, "1.0"]}, "must not list a value twice"),
        ({"metric": "roc_auc"}, "metric='roc_auc' cannot be released by group: choose among acc"),
        ({"X": in_chunks(X, 100)}, "by is not supported for rows in chunks"),
    ],
)
def test_refusals_cost_nothing(arguments, message):
    book = Book()
    given = {"X": X, "y": Y, "by": WARD, "by_values": WARDS, "ledger": book, **arguments}
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        private_score(Known(), given.pop("X"), given.pop("y"), **given)
    assert not book.records
    assert "groups" not in arguments or "600" not in str(raised.value)


def test_gaps_hold_for_all_pairs_at_once():
    """Each of the g (g - 1) / 2 gaps may be missed with an equal part of what an interval may."""
    found = private_score(Known(), X, Y, metric="recall", by=WARD, by_values=WARDS, epsilon=8.0)
    noise = GaussianNoise(math.sqrt(2.0), found.privacy_.events[0].mu)
    released = Released(found.confusion, len(Y), noise.sigma**2)
    want = _gap_interval(found.gap, recall(released.at_once(6)))
    np.testing.assert_allclose(found.gap_interval, want, rtol=1e-9)


@pytest.mark.parametrize("n_more", [-1, 1])
def test_groups_are_as_many_as_rows(n_more):
    with pytest.raises(ValueError, match="by and X must have the same number of rows"):
        group_codes(np.zeros(5 + n_more), [0], np.zeros((5, 1)), 5, hides_rows=False)
