"""Score a saved model from the command line."""

import errno
import json
import os
import re
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import commands, files, main
from dp_halfspace.metrics import METRICS, private_score
from tests.cli.test_models import read_page


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


COMMAND = ["evaluate", "model.joblib", "new.csv", "--target", "outcome", "--epsilon", "3"]
PEOPLE = [*COMMAND[:2], "people.csv", *COMMAND[3:], "--groups", "owner"]


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
    assert len(lines) == 1 + 4 + 8 + 1 + 2
    for line in lines[1:-2]:
        value, low, _, high = line.split()[-4:]
        assert float(low) <= float(value) <= float(high)
    assert lines[-2].startswith("Guarantee: (3, 1.5625e-06)-differential privacy; unit: one row")
    assert lines[-1].startswith("Ledger:    1 entry, epsilon 3 of 4 asked for at delta")
    assert "By exact composition, epsilon 2." in lines[-1]
    (entry,) = PrivacyLedger("l.db").entries()
    assert dict(entry.record.public)["metric"] == tuple(METRICS)
    assert "exceeds the remaining budget" in error(capsys, *COMMAND, "--ledger", "l.db")


def test_an_interval_that_says_nothing_is_said_to_say_nothing(held_out, capsys):
    held_out[800:820].drop(columns="who").to_csv("new.csv", index=False)
    for epsilon, is_said in (("0.01", True), ("900", False)):
        assert main([*COMMAND[:-1], epsilon]) == 0
        assert ("every possible value is uninformative" in capsys.readouterr().err) == is_said


def test_people_are_the_unit(held_out, capsys):
    """Wherever their rows stand."""
    pandas.read_csv("people.csv").sample(frac=1.0).to_csv("people.csv", index=False)
    asked = ["--ledger", "l.db", "--cap", "900", ".3", "--epsilon", "900", "--delta", ".2"]
    assert main([*PEOPLE, *asked, "--metric", "confusion_matrix"]) == 0
    printed = capsys.readouterr().out
    assert "unit: all rows of one 'owner'" in printed
    assert PrivacyLedger("l.db").adjacency == "replace-one-person"
    counts = [float(line.split()[3]) for line in printed.splitlines()[1:5]]
    assert sum(counts) == pytest.approx(200, abs=2)


def test_options_reach_the_score(held_out, capsys, monkeypatch):
    given = {}

    def private_score(model, X, y, **options):
        given.update(options)
        raise ValueError("seen")

    monkeypatch.setattr(commands, "private_score", private_score)
    more = ["--metric", "f1", "log_loss", "--delta", "1e-7"]
    assert error(capsys, *PEOPLE, *more).endswith("seen")
    assert given.pop("ledger") is None
    assert given.pop("groups").tolist() == [str(i // 4) for i in range(800, 1600)]
    assert given == {"epsilon": 3.0, "delta": 1e-7, "metric": ["f1", "log_loss"]}


def test_cells_are_read_as_in_the_fit(tmp_path, monkeypatch, capsys):
    """Labels and persons may have zeros in front, and a point may group digits."""
    monkeypatch.chdir(tmp_path)
    size = np.random.default_rng(0).integers(900, 2100, 600)
    label = np.where(size > 1500, "02", "01")
    texts = [f"{value:,}".replace(",", ".") for value in size]
    persons = [f"{k // 2:0{3 + k % 2}}" for k in range(600)]
    rows = pandas.DataFrame({"size": texts, "label": label, "who": persons})
    rows.to_csv("a.csv", index=False)
    (tmp_path / "s.json").write_text('{"size": {"kind": "number", "decimal": ","}, "who": "drop"}')
    table, much = ["a.csv", "--target", "label"], ["--epsilon", "90"]
    assert main(["fit", *table, *much, "--schema", "s.json", "--save", "m.joblib"]) == 0
    seen = []

    def watched(*data, groups, **how):
        seen.extend(groups)
        return private_score(*data, groups=groups, **how)

    monkeypatch.setattr(commands, "private_score", watched)
    capsys.readouterr()
    assert main(["evaluate", "m.joblib", *table, "--groups", "who", *much]) == 0
    assert seen == persons
    line = next(line for line in capsys.readouterr().out.splitlines() if "accuracy" in line)
    assert float(line.split()[1]) > 0.9
    assert main(["predict", "m.joblib", "a.csv", "--out", "out.csv"]) == 0
    assert (pandas.read_csv("out.csv", dtype=str)["prediction"] == label).mean() > 0.9


def test_what_cannot_be_used_is_a_sentence(held_out, capsys):
    assert "required: --target" in error(capsys, *COMMAND[:3], "--epsilon", "1")
    other = "has labels other than no, yes"
    assert f"column 'age' of new.csv {other}" in error(capsys, *COMMAND, "--target", "age")
    twice = ["--target", "outcome", "--groups", "outcome"]
    assert "the same column" in error(capsys, *COMMAND, *twice)
    assert "no column 'nothing'" in error(capsys, *COMMAND, "--target", "nothing")
    assert "is not a metric" in error(capsys, *COMMAND, "--metric", "f2")
    assert "--epsilon" in error(capsys, *COMMAND[:3])
    assert "no ledger at" in error(capsys, *COMMAND, "--ledger", "l.db")
    (held_out[800:].assign(outcome="maybe").drop(columns="who")).to_csv("odd.csv", index=False)
    line = error(capsys, *COMMAND[:2], "odd.csv", *COMMAND[3:])
    assert f"column 'outcome' of odd.csv {other}" in line
    assert "maybe" not in line
    with open("not.json", "w") as file:
        json.dump({}, file)
    assert "not a model that the command" in error(capsys, "evaluate", "not.json", *COMMAND[2:])


def test_saved_scores_stand_on_the_card(held_out, capsys):
    """Also next to an entry of a ledger; before, the card said that there was no score."""
    ledger = ["--ledger", "l.db", "--cap", "9", "1e-5"]
    metrics = ["--metric", "accuracy", "roc_auc", "confusion_matrix"]
    assert main([*COMMAND, *ledger, *metrics, "--save", "s.json"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "Scores:    s.json"
    card = ["card", "model.joblib", "--out", "c.html", "--ledger", "l.db"]
    assert main([*card, "--scores", "s.json"]) == 0
    _, text = read_page("c.html")
    for line in printed[:8]:
        assert " ".join(line.split()) in text
    assert main(card) == 0
    _, text = read_page("c.html")
    assert "No score was given, so this card" in text


def test_files_of_scores_are_checked(held_out, capsys):
    assert main([*COMMAND, "--save", "s.json"]) == 0
    card = ["card", "model.joblib", "--out", "c.html", "--scores", "s.json"]
    assert main(card) == 0
    saved = json.loads(Path("s.json").read_text())
    capsys.readouterr()
    claims_more = {**saved[0]["privacy_"], "epsilon": 0.01}
    for other in (
        [{**saved[0], "privacy_": claims_more}],
        [{**saved[0], "metric": "magic"}],
        [{**saved[0], "value": "high"}],
        [{k: v for k, v in saved[0].items() if k != "majority"}],
        saved[0],
        7,
    ):
        Path("s.json").write_text(json.dumps(other))
        assert "s.json is not a file that `evaluate --save` has written" in error(capsys, *card)
    Path("s.json").write_text(json.dumps([{**saved[0], "classes": [0, 1]}]))
    assert "a score is of the classes [0, 1], and the model of" in error(capsys, *card)
    assert "are the same file" in error(capsys, *card[:2], "--out", "s.json", *card[4:])
    assert "names persons" in error(capsys, *card[:4], "--groups", "who")
    assert "the same file" in error(capsys, *COMMAND, "--save", "new.csv")
    assert "cannot" in error(capsys, *card[:4], "--scores", "missing.json")


def test_scores_that_cannot_be_saved_are_shown(held_out, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files._files, "write_whole", full)
    assert main([*COMMAND, "--save", "s.json"]) == 2
    printed, errors = capsys.readouterr()
    assert printed.splitlines()[1].startswith("accuracy")
    assert errors.splitlines()[-1].endswith(
        "No space left on device; the scores above were released, and are not saved"
    )
