"""Entries say who released what, what for, and about which part; the chain covers all of it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import pickle
import sqlite3

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.ledger.store import Row, digest_of
from dp_halfspace.metrics import private_score
from dp_halfspace.model_selection import PrivateThresholdClassifier
from dp_halfspace.preprocessing import PrivateScaler
from dp_halfspace.privacy import open_ledger
from tests.privacy.oracles import gaussian, pure

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 2)), np.arange(200) % 2


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = tmp_path / "l.db" if request.param == "file" else None
    return PrivacyLedger(path, epsilon=50.0, delta=1e-3)


def stated(entry):
    return entry.estimator, entry.purpose, entry.responsible, entry.part


@pytest.mark.filterwarnings("ignore:the threshold is infinite")
def test_every_release_names_its_estimator(ledger):
    model = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1], ledger=ledger)
    model.fit(X, Y)
    PrivateSearchCV(model, {"fit_intercept": [True, False]}, epsilon=2.0, delta=1e-6).fit(X, Y)
    PrivateScaler(epsilon=1.0, delta=1e-6, ledger=ledger.handle).fit(X)
    PrivateThresholdClassifier(model, epsilon=1.0, ledger=ledger).fit(X, Y)
    private_score(model, X, Y, epsilon=1.0, delta=1e-6, ledger=ledger)
    names = [entry.estimator for entry in ledger.entries()]
    assert names == [
        *("AdaptiveMarginClassifier", "PrivateSearchCV", "PrivateScaler"),
        *("PrivateThresholdClassifier", "private_score"),
    ]


def test_a_handle_states_purpose_person_and_part(ledger):
    study = ledger.annotated(purpose="triage")
    person = study.annotated(responsible="A. Weber")
    north = person.part("north", fixed_by="site")
    for handle in (ledger, study, person, north, pickle.loads(pickle.dumps(north))):
        handle.charge(pure(0.1))
    texts = [stated(entry) for entry in open_ledger(ledger.handle).entries()]
    assert texts == [
        (None, None, None, None),
        (None, "triage", None, None),
        (None, "triage", "A. Weber", None),
        *2 * [(None, "triage", "A. Weber", "north")],
    ]
    assert [entry["part"] for entry in json.loads(ledger.to_json())["entries"]][-1] == "north"
    assert repr(north).endswith(", part 'north')")
    # One account: what a handle reads, all have read.
    assert study._balance is ledger._balance
    for wrong in ("", 3):
        with pytest.raises(ValueError, match="purpose must be a text"):
            ledger.annotated(purpose=wrong)


def test_exports_show_what_is_stated(ledger):
    handle = ledger.annotated(purpose="=triage <b>", responsible="A. Weber")
    handle.part("north", fixed_by="site").charge(gaussian(0.5, 1e-5))
    (row,) = csv.DictReader(io.StringIO(ledger.to_csv()))
    shown = (row["purpose"], row["responsible"], row["part"], row["estimator"])
    assert shown == ("'=triage <b>", "A. Weber", "north", "")
    assert float(row["spent_delta"]) == 1e-3
    assert "'site', a public fact" in ledger.summary()


def test_a_summary_has_what_was_asked_for_and_one_delta():
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-6)
    model = AdaptiveMarginClassifier(epsilon=1.0, delta=1e-7, classes=[0, 1], ledger=ledger)
    model.fit(X, Y)
    ledger.charge(pure(0.5))
    summary = ledger.summary().splitlines()
    assert "2 entries, epsilon 1.5 of 5 asked for at deltas from 0 to 1e-07. By ex" in summary[0]
    assert "of 5 is spent at delta 1e-06, which decides what is accepted." in summary[0]
    assert "remaining(delta) for a smaller delta may exceed" in summary[-1]
    assert ledger.remaining(1e-8) > 0.9 * ledger.remaining()


@pytest.mark.parametrize("rule", [{"fixed_by": "site"}, {"n_records": 9}])
@pytest.mark.parametrize("adaptive", [False, True])
def test_what_is_spent_after_each_entry_is_what_the_ledger_said_then(rule, adaptive):
    ledger, said = PrivacyLedger(epsilon=9.0, delta=1e-5, adaptive=adaptive), []
    for part, epsilon in (("A", 0.9), ("B", 0.3), (None, 0.2), ("C", 0.8), ("B", 0.7), (None, 0.1)):
        handle = ledger if part is None else ledger.part(part, **rule)
        handle.charge(gaussian(epsilon, public={"n_samples": 9}))
        said.append(ledger.spent())
    rows = csv.DictReader(io.StringIO(ledger.to_csv()))
    assert [float(row["spent_after"]) for row in rows] == pytest.approx(said, rel=1e-9)


def test_what_is_left_says_what_it_is_about_where_there_are_parts():
    ledger = PrivacyLedger(epsilon=2.0, delta=0.0)
    pure_release = "one more pure DP release"
    assert [kind for kind, _ in ledger._statement()._left()] == [pure_release]
    ledger.part("A", fixed_by="site").charge(pure(0.5))
    assert [kind for kind, _ in ledger._statement()._left()] == [
        f"{pure_release}, about the whole data set",
        f"{pure_release}, about the part 'A'",
    ]


# -- files ------------------------------------------------------------------------------------


def execute(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_the_chain_covers_what_is_stated(tmp_path):
    path = tmp_path / "l.db"
    handle = PrivacyLedger(path, epsilon=1.0, delta=0.0).annotated(purpose="triage")
    handle.part("north", fixed_by="site").charge(pure(0.1))
    kept = path.read_bytes()
    for old, new in (("triage", "theatre"), ("north", "south"), ("site", "year")):
        path.write_bytes(kept)
        execute(path, f"UPDATE entries SET record = replace(record, '{old}', '{new}')")
        with pytest.raises(ValueError, match="damaged"):
            PrivacyLedger(path).entries()


def insert(ledger, text):
    """Write an entry as another version may have written it."""
    balance = ledger._balance
    row = Row(balance.last + 1, "2026-01-01T00:00:00", text, "")
    row = row._replace(digest=digest_of(balance.digest, row))
    with ledger._store.transaction(writes=True) as transaction:
        transaction.insert(row)


def test_entries_of_earlier_versions_state_nothing(tmp_path):
    path = tmp_path / "l.db"
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    insert(ledger, pure(0.25).to_json())
    again = PrivacyLedger(path)
    assert again.spent() == 0.25
    again.annotated(purpose="triage").charge(pure(0.25))
    assert [stated(entry)[1] for entry in again.entries()] == [None, "triage"]
    assert again.to_csv().count("\n") == 3


def test_what_a_newer_version_states_stops_every_charge(tmp_path):
    """It may be a rule of how releases add up."""
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=1.0, delta=0.0)
    insert(ledger, json.dumps({**pure(0.1).to_dict(), "about": {"discount": 0.5}}))
    for action in (ledger.spent, lambda: ledger.charge(pure(0.1)), ledger.entries):
        with pytest.raises(ValueError, match="which this version does not know"):
            action()


def test_a_closed_handle_closes_no_other(ledger):
    study = ledger.annotated(purpose="triage")
    with study:
        study.charge(pure(0.1))
    with pytest.raises(BudgetError, match="closed"):
        study.charge(pure(0.1))
    ledger.charge(pure(0.1))
    assert len(ledger.entries()) == 2
