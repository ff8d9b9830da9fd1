"""Score a saved model from the command line."""

import json
import re

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace.metrics import METRICS


@pytest.fixture
def held_out(tmp_path, monkeypatch):
    """Save a model and write a table that it was not fitted to; returns its frame."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 90, 1600).round(3)
    frame = pandas.DataFrame({"age": age, "city": "Rome", "who": np.arange(1600) // 4})
    frame["outcome"] = np.where(age > 55, "yes", "no")
    schema = {"age": [0, 120], "city": "text", "who": "drop"}
    model = PrivateTableClassifier(epsilon=5.0, schema=schema, classes=["no", "yes"])
    model.fit(frame[:800].drop(columns="outcome"), frame["outcome"][:800])
    joblib.dump(model, "model.joblib")
    frame[800:].drop(columns="who").to_csv("new.csv", index=False)
    frame[800:].rename(columns={"who": "owner"}).to_csv("people.csv", index=False)
    return frame


COMMAND = ["evaluate", "model.joblib", "new.csv", "--epsilon", "3"]


def error(capsys, *arguments):
    assert main(list(arguments)) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    notes, errors = re.subn(r"dp_halfspace: note: .*\n", "", errors), errors.splitlines()
    assert len(errors) == 1 + notes[1]
    return errors[-1]


def test_a_table_of_scores_is_printed_and_paid(held_out, capsys):
    ledger = ["--ledger", "l.db", "--cap", "4", "1e-5"]
    assert main([*COMMAND, *ledger, "--metric", *METRICS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["score", "value", "95", "%", "interval"]
    assert len(lines) == 1 + 4 + 10 + 9 + 1 + 2
    assert lines[-2].startswith("Guarantee: (3, 1.5625e-06)-differential privacy; unit: one row")
    assert lines[-1].startswith("Ledger:    epsilon 2.")
    (entry,) = PrivacyLedger("l.db").entries()
    assert dict(entry.record.public)["metric"] == tuple(METRICS)
    assert "exceeds the remaining budget" in error(capsys, *COMMAND, "--ledger", "l.db")


def test_people_are_the_unit(held_out, capsys):
    people = ["evaluate", "model.joblib", "people.csv", "--epsilon", "3", "--groups", "owner"]
    ledger = ["--ledger", "l.db", "--cap", "4", "1e-4"]
    assert main([*people, *ledger, "--metric", "confusion_matrix"]) == 0
    printed = capsys.readouterr().out
    assert "unit: all rows of one 'owner'" in printed
    assert PrivacyLedger("l.db").adjacency == "replace-one-person"
    counts = [int(line.split()[3]) for line in printed.splitlines()[1:5]]
    assert abs(sum(counts) - 200) < 60


def test_what_cannot_be_used_is_a_sentence(held_out, capsys):
    assert "--target must name" in error(
        capsys, "evaluate", "model.joblib", "people.csv", "--epsilon", "1"
    )
    assert "column of the model" in error(capsys, *COMMAND, "--target", "age")
    assert "no column 'nothing'" in error(capsys, *COMMAND, "--target", "nothing")
    assert "invalid choice" in error(capsys, *COMMAND, "--metric", "f2")
    assert "--epsilon" in error(capsys, "evaluate", "model.joblib", "new.csv")
    assert "no ledger at" in error(capsys, *COMMAND, "--ledger", "l.db")
    (held_out[800:].assign(outcome="maybe").drop(columns="who")).to_csv("odd.csv", index=False)
    line = error(capsys, "evaluate", "model.joblib", "odd.csv", "--epsilon", "1")
    assert "not among the public labels" in line
    assert "maybe" not in line
    with open("not.json", "w") as file:
        json.dump({}, file)
    assert "not a model that the command" in error(
        capsys, "evaluate", "not.json", "new.csv", "--epsilon", "1"
    )


def test_the_command_knows_every_metric():
    assert sorted(METRICS) == list(METRICS)
