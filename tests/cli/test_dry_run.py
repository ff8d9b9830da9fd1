"""What a fit prints before it charges, and a run that prints it and does nothing else."""

import math
from pathlib import Path

import numpy as np
import pytest

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace.ledger.ledger import PrivacyLedger as Ledger

SCHEMA = '{"age": [0, 120], "city": "text"}'
DRY = ["fit", "t.csv", "--target", "y", "--epsilon", "1", "--classes", "no,yes", "--dry-run"]
FIT = [*DRY[:-1], "--save", "m.joblib"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines, cities = ["age,city,crp,y"], rng.choice(["Rome", "Oslo"], 900)
    lines += [
        f"{age},{city},{crp:.1f},{'yes' if age > 50 else 'no'}"
        for age, city, crp in zip(
            rng.integers(20, 90, 900),
            cities,
            rng.random(900),
            strict=True,
        )
    ]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    Path("s.json").write_text(SCHEMA)
    return tmp_path


def planned(text):
    """The part of an output that is printed before a charge."""
    return text.split("Guarantee:")[0].split("Ledger:")[0].split("Nothing was")[0]


def test_a_dry_run_prints_the_columns_the_plan_the_outlook_and_the_cost(folder, capsys):
    assert main([*DRY, "--schema", "s.json"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["column", "type", "source"]
    kinds = {line.split()[0]: line for line in lines[1:4]}
    assert kinds["age"].split()[1:5] == ["number", "in", "[0,", "120]"]
    assert kinds["age"].endswith("stated")
    assert kinds["city"].endswith("stated")
    # A kind that the cells decided is marked, and only that one.
    assert [name for name, line in kinds.items() if "private: " in line] == ["crp"]
    assert "1 of these types are private, and not to be published" in out
    assert "Plan:      asked of the private rows\n  - " in out
    assert "sensitivity" not in out
    assert "Cost:      epsilon 1 at delta 1.23457e-06; unit: one row" in out
    assert "Expect:    epsilon=1 for 900 records" in out
    assert out.endswith("Nothing was released, charged or written.\n")
    stated = Path("s.json").read_text().replace("}", ', "crp": "number"}')
    Path("s.json").write_text(stated)
    assert main([*DRY, "--schema", "s.json"]) == 0
    assert "private: " not in capsys.readouterr().out
    assert main([*DRY, "--schema", "s.json", "--drop", "crp"]) == 0
    assert ["crp", "drop", "stated"] in map(str.split, capsys.readouterr().out.splitlines())


def test_a_dry_run_says_that_a_guarantee_is_weak(folder, capsys):
    del folder
    assert main([*DRY, "--schema", "s.json", "--epsilon", "20"]) == 0
    assert "note: epsilon=20 is a weak guarantee" in capsys.readouterr().err


@pytest.mark.parametrize("labels", ["no", "no,no"])
def test_labels_that_are_too_few_or_equal_are_refused(folder, capsys, labels):
    del folder
    assert main([*DRY[:-2], labels, DRY[-1]]) == 2
    assert "at least two distinct labels" in capsys.readouterr().err


def test_a_dry_run_charges_and_writes_nothing(folder, capsys, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a dry run must not come here")

    before = {path.name for path in folder.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", refused)
        patch.setattr(PrivateTableClassifier, "fit", refused)
        assert main([*DRY, "--ledger", "l.db", "--cap", "3", "1e-6"]) == 0
        assert {path.name for path in folder.iterdir()} == before
        out = capsys.readouterr().out
        assert "Ledger:    accepts this fit up to epsilon 2." in out
        PrivacyLedger("l.db", epsilon=3.0, delta=1e-6)
        assert main([*DRY, "--ledger", "l.db", "--save", "m.joblib", "--card", "c.html"]) == 0
    assert PrivacyLedger("l.db").entries() == []
    assert not {"m.joblib", "c.html"} & {path.name for path in folder.iterdir()}


def test_the_same_is_printed_before_a_charge(folder, capsys, monkeypatch):
    assert main(DRY) == 0
    told = planned(capsys.readouterr().out)
    assert main(FIT) == 0
    assert planned(capsys.readouterr().out) == told
    shown = []
    honest = Ledger.charge

    def charge(self, record):
        shown.append(capsys.readouterr().out)
        honest(self, record)

    monkeypatch.setattr(Ledger, "charge", charge)
    assert main([*FIT, "--ledger", "l.db", "--cap", "3", "1e-5"]) == 0
    assert planned(shown[0]) == told
    assert capsys.readouterr().out.startswith("Guarantee:")
    # What is printed depends on public numbers and on the kinds of columns only.
    rows = Path("t.csv").read_text().splitlines()
    turned = [",".join([*row.split(",")[:3], "no"]) for row in rows[1:]]
    Path("t.csv").write_text("\n".join([rows[0], *turned]) + "\n")
    assert main(DRY) == 0
    assert planned(capsys.readouterr().out) == told


def test_the_plan_is_the_record_of_the_fit(folder, capsys):
    assert main([*DRY, "--groups", "city"]) == 0
    out = capsys.readouterr()
    assert "unit: all rows of one 'city'" in out.out
    assert main([*DRY, "--delta", "0"]) == 0
    assert "at delta 0; unit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--target", "city_"], "did you mean city?"),
        (["--drop", "age,crp", "city"], "every column of X is dropped"),
        (["--ledger", "l.db"], "--cap EPSILON DELTA creates one"),
    ],
)
def test_a_dry_run_refuses_what_a_fit_refuses(folder, capsys, more, words):
    for command in (DRY, FIT):
        assert main([*command, *more]) == 2
        printed, errors = capsys.readouterr()
        assert printed == ""
        assert words in errors


@pytest.mark.parametrize(
    ("params", "asked"),
    [
        ({"epsilon": 0.1}, ["one of "]),
        ({"epsilon": 0.1, "probability": False}, ["one of "]),
        (
            {"epsilon": 1.0},
            ["sizes of the classes", "one column if a class is rare; else column scales, second"],
        ),
        ({"epsilon": 6.0}, ["column scales", "second moment of the columns", "30 steps"]),
        (
            {"epsilon": 6.0, "class_weight": "balanced"},
            ["sizes of the classes", "column scales", "second", "30 steps"],
        ),
        ({"epsilon": 6.0, "delta": 0.0}, ["column scales", "coefficients"]),
        ({"epsilon": math.inf}, ["everything, without noise"]),
    ],
)
def test_a_plan_names_what_it_asks_for(params, asked):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 3)), rng.integers(0, 2, 800)
    kinds = {str(j): "number" for j in range(3)}
    model = PrivateTableClassifier(**params, classes=[0, 1], schema=kinds)
    data = model._training_data(X, y, None, None)
    plan = model._fit_plan(data)
    assert len(plan.asks) == len(plan.events)
    for words, said in zip(asked, dict.fromkeys(plan.asks), strict=True):
        assert said.startswith(words)
