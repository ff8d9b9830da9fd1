"""Entries say who released what, and what for; the chain covers all of it."""

import json
import math
import pickle

import numpy as np
import pytest

from dp_halfspace import AdaptiveMarginClassifier, PrivacyLedger, PrivateSearchCV
from dp_halfspace.ledger import open_ledger
from dp_halfspace.ledger.entries import Balance, text_of
from dp_halfspace.ledger.store import Row, digest_of
from dp_halfspace.metrics import private_score
from dp_halfspace.model_selection import PrivateThresholdClassifier
from dp_halfspace.preprocessing import PrivateScaler
from tests.ledger.files import execute, insert
from tests.privacy.oracles import pure

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 2)), np.arange(200) % 2


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = tmp_path / "l.db" if request.param == "file" else None
    return PrivacyLedger(path, epsilon=50.0, delta=1e-3)


def stated(entry):
    return entry.estimator, entry.purpose


@pytest.mark.filterwarnings("ignore:a .* takes more than")
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


def test_a_handle_states_its_purpose(ledger):
    study = ledger.annotated(purpose="triage")
    named = study.for_estimator("Model")
    silent = named.annotated(purpose=None)
    for handle in (ledger, study, named, pickle.loads(pickle.dumps(named)), silent):
        handle.charge(pure(0.1))
    texts = [stated(entry) for entry in open_ledger(ledger.handle).entries()]
    assert texts == [(None, None), (None, "triage"), *2 * [("Model", "triage")], ("Model", None)]
    # One account: what a handle reads, all have read.
    assert study._reading is ledger._reading
    for wrong in ("", " ", 3):
        with pytest.raises(ValueError, match="purpose must be a text"):
            ledger.annotated(purpose=wrong)


# -- files ------------------------------------------------------------------------------------


def test_the_chain_covers_what_is_stated(tmp_path):
    path = tmp_path / "l.db"
    handle = PrivacyLedger(path, epsilon=1.0, delta=0.0).annotated(purpose="triage")
    handle.for_estimator("Model").charge(pure(0.1))
    kept = path.read_bytes()
    for old, new in (("triage", "theatre"), ("Model", "Other")):
        path.write_bytes(kept)
        execute(path, f"UPDATE entries SET record = replace(record, '{old}', '{new}')")
        with pytest.raises(ValueError, match="damaged"):
            PrivacyLedger(path).entries()


def test_an_entry_need_not_state_anything(tmp_path):
    path = tmp_path / "l.db"
    ledger = PrivacyLedger(path, epsilon=1.0, delta=0.0)
    insert(ledger, pure(0.25).to_json())
    again = PrivacyLedger(path)
    assert again.spent() == 0.25
    again.annotated(purpose="triage").charge(pure(0.25))
    assert [stated(entry)[1] for entry in again.entries()] == [None, "triage"]


def test_an_entry_with_seeded_noise_has_no_guarantee(tmp_path):
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=1.0, delta=0.0)
    insert(ledger, pure(0.25, noise="seeded").to_json())
    assert ledger.spent() == math.inf
    assert ledger.remaining() == 0.0


def test_what_a_newer_version_states_stops_every_charge(tmp_path):
    """It may be a rule of how releases add up."""
    ledger = PrivacyLedger(tmp_path / "l.db", epsilon=1.0, delta=0.0)
    insert(ledger, json.dumps({**pure(0.1).to_dict(), "about": {"discount": 0.5}}))
    other = PrivacyLedger(epsilon=1.0, delta=0.0)
    other._about = {"discount": "half"}
    for action in (
        *(ledger.spent, lambda: ledger.charge(pure(0.1)), ledger.entries),
        # A handle of another version is refused before it writes an entry that nobody can read.
        lambda: pickle.loads(pickle.dumps(other)),
    ):
        with pytest.raises(ValueError, match="which this version does not know"):
            action()


def test_an_entry_of_another_number_is_damage():
    """Whatever its digest is: one of those before it may have been taken out."""
    row = Row(2, "now", text_of(pure(0.1), {}), "")
    row = row._replace(digest=digest_of("first", row))
    with pytest.raises(ValueError, match="book is damaged at entry 1"):
        Balance("first").after([row], "book")
