"""Scores by group: one record moves one table, and what is not listed is seen."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score

from dp_halfspace.datasets import in_chunks
from dp_halfspace.metrics import METRICS, PrivateScore, private_score, score
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


def test_planted_bug_a_record_in_every_group_is_seen(monkeypatch):
    honest = METRICS["confusion_matrix"]

    def everywhere(values, codes, cells):
        return honest.tally(values, codes, cells) + honest.tally(values, codes % 2, cells)

    monkeypatch.setitem(METRICS, "confusion_matrix", replace(honest, tally=everywhere))
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
    assert isinstance(found, PrivateScore)
    assert found.groups == (*WARDS, "other")
    for place, ward in enumerate(WARDS):
        of_ward = ward == WARD
        assert found.value[place] == pytest.approx(expected(Y[of_ward], guess[of_ward]))
    assert found.confusion.sum() == 600


def test_columns_of_any_library_and_people_in_any_order():
    kind = {"epsilon": math.inf, "metric": "recall"}
    plain = private_score(Known(), X, Y, by=WARD, by_values=WARDS, **kind)
    owner = np.random.default_rng(1).permutation(600)
    people = {"groups": owner, "delta": 1e-6}
    polars = pytest.importorskip("polars")
    for column, options in ((pd.Series(WARD), {}), (pa.array(WARD), {}), (list(WARD), people),
                            (polars.Series(WARD), {})):  # fmt: skip
        found = private_score(Known(), X, Y, by=column, by_values=WARDS, **options, **kind)
        np.testing.assert_array_equal(plain.confusion, found.confusion)
    for values in (np.array(WARDS), pd.Series(WARDS), iter(WARDS)):
        found = private_score(Known(), X, Y, by=WARD, by_values=values, **kind)
        np.testing.assert_array_equal(plain.confusion, found.confusion)
        assert (found.groups, *map(type, found.groups)) == (
            plain.groups,
            *[str] * len(plain.groups),
        )


def test_a_text_says_which_scores_are_known():
    found = private_score(Known(), X, Y, by=WARD, by_values=WARDS, epsilon=8.0)
    assert list(dict(found.privacy_.public)["by_values"]) == [*map(str, WARDS)]
    text = str(found)
    assert re.search(r"accuracy, north: \d\.\d{3}, 95 % interval \d\.\d{3} to \d\.\d{3}\n", text)
    assert "accuracy, other: " in text
    few = private_score(Known(), X[:9], Y[:9], by=WARD[:9], by_values=WARDS, epsilon=0.01)
    assert "uninformative" in str(few)


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
    # The text true stands for 1, unless it was made missing.
    groups = {"1": [0], "true": [0, 2]}.get(odd, [2])
    assert (second - [20, 20, 0]).tolist() in [np.eye(3)[group].tolist() for group in groups]


def test_planted_bug_values_as_a_reader_stores_them_are_seen(monkeypatch):
    as_stored = lambda cell: cell if isinstance(cell, str) else f"number {cell}"  # noqa: E731
    monkeypatch.setattr(score, "category_of", as_stored)
    with pytest.raises(AssertionError):
        test_a_cell_of_another_type_moves_no_other_record(READERS["csv"], "x")


@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize("metric", BY_GROUP)
def test_no_interval_is_given_for_a_last_group_that_may_be_empty(metric):
    """Without the rule one of forty has one, as with one of these seeds each of three metrics."""
    by = {"by": WARD, "by_values": WARDS, "epsilon": 3.0, "delta": 1e-6, "metric": metric}
    for seed in (11, 19, 25):
        scores = private_score(Table(), X, Y, random_state=seed, **by)
        assert (scores.interval[0][-1], scores.interval[1][-1]) == (0.0, 1.0)
        assert re.search(r"other: .* interval 0.000 to 1.000\n.*uninformative", str(scores))
    scores = private_score(Table(), X, Y, **{**by, "by_values": ["north", "west"]})
    assert scores.interval[1][-1] - scores.interval[0][-1] < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by_values": None}, "by and by_values go together"),
        ({"by": None}, "by and by_values go together"),
        ({"by": "ward"}, "the group of each record, and not the name of a column"),
        ({"by": WARD[:-1]}, "X and by must have the same number of rows, got 600 and 599"),
        ({"by": WARD[:-1], "groups": np.arange(600)}, "X and by must have the same number of rows"),
        ({"by": WARD[:, None]}, "by must be one-dimensional"),
        ({"by_values": "north"}, "by_values must be a list"),
        ({"by_values": []}, "at least one value, and of none missing"),
        ({"by_values": ["north", None]}, "at least one value, and of none missing"),
        ({"by_values": ["north", math.nan]}, "at least one value, and of none missing"),
        ({"by_values": ["north", math.inf]}, "at least one value, and of none missing"),
        ({"by_values": ["north", "north"]}, "must not list a value twice"),
        ({"by_values": [1, "1.0"]}, "must not list a value twice"),
        (
            {"metric": "roc_auc"},
            "'roc_auc' cannot be released by group: choose among accuracy, balanced",
        ),
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


@pytest.mark.parametrize("n_more", [-1, 1])
def test_groups_are_as_many_as_rows(n_more):
    with pytest.raises(ValueError, match="X and by must have the same number of rows"):
        private_score(Known(), X, Y, by=np.zeros(len(X) + n_more), by_values=[0])


def test_a_table_that_does_not_fit_into_memory_is_refused(monkeypatch):
    """Ten numbers for each of the pairs of classes, in each group and the rest."""
    size = 8 * 10 * (len(WARDS) + 1) * 2**2
    monkeypatch.setattr("dp_halfspace._memory._MOST_BYTES", size)
    private_score(Known(), X, Y, by=WARD, by_values=WARDS)
    monkeypatch.setattr("dp_halfspace._memory._MOST_BYTES", size - 1)
    with pytest.raises(ValueError, match=r"table of 16 noisy counts.* or fewer groups"):
        private_score(Known(), X, Y, by=WARD, by_values=WARDS)


def test_scores_of_groups_are_rebuilt_from_their_json():
    found = private_score(Known(), X, Y, by=WARD, by_values=WARDS, epsilon=8.0)
    again = PrivateScore.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert str(again) == str(found)
    assert again.groups == found.groups
    np.testing.assert_array_equal(again.confusion, found.confusion)
