"""Train, save, describe and predict from the command line."""

import html
import json
import re
import sys
from collections import Counter
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace.inspection.card import model_card
from dp_halfspace.privacy.record import rounded_text
from tests.releases import choosing_the_last

SECRET = "98765"
SCHEMA = {
    "target": ["no", "yes"],
    "columns": {"age": [0, 120], "stage": ["I", "II <b>"], "seen": "date", "city": "text"},
}


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Write a table and its schema; returns its frame."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 1500
    age, stage = rng.uniform(20, 90, n), rng.choice(["I", "II <b>"], n)
    frame = pandas.DataFrame(
        {
            "age": age.round(3),
            "stage": stage,
            "seen": pandas.Timestamp("2026-01-01")
            + pandas.to_timedelta(rng.integers(0, 99, n), "D"),
            "city": rng.choice(["Rome", "Oslo", ""], n),
            "outcome": np.where(age + 20 * (stage == "II <b>") > 65, "yes", "no"),
        }
    )
    frame.to_csv("patients.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return frame


FIT = ["fit", "patients.csv", "--target", "outcome", "--epsilon", "4"]
SAVE = ["--save", "model.joblib"]
STATED = ["--schema", "schema.json"]


def error(capsys, *arguments, is_planned=False):
    """The message of a refusal; nothing was printed, or only what was planned before a charge."""
    assert main(list(arguments)) == 2
    printed, errors = capsys.readouterr()
    assert bool(printed) == is_planned
    assert "Guarantee:" not in printed
    line = errors.splitlines()[-1]
    assert line.startswith("dp_halfspace: error: ")
    assert SECRET not in errors
    assert "Traceback" not in errors
    return line


def test_a_model_is_made_and_predicts_without_the_table(patients, tmp_path, capsys):
    assert main([*FIT, *SAVE, *STATED]) == 0
    printed, errors = capsys.readouterr()
    assert "Guarantee: (4, 4.44445e-07)-differential privacy; unit: one row" in printed
    assert errors == ""
    (tmp_path / "patients.csv").rename(tmp_path / "new.csv")
    model = joblib.load("model.joblib")
    assert isinstance(model, PrivateTableClassifier)
    assert model.ledger is None
    assert (tmp_path / "model.joblib").stat().st_size < 30_000
    assert main(["predict", "model.joblib", "new.csv", "--out", "out.csv"]) == 0
    found = pandas.read_csv("out.csv")
    assert list(found.columns) == ["prediction", "probability_no", "probability_yes"]
    rows = patients.drop(columns="outcome").replace("", None)
    np.testing.assert_allclose(found.iloc[:, 1:], model.predict_proba(rows), atol=1e-6)
    # Further digits would be those of one machine.
    pandas.testing.assert_frame_equal(found, found.round(6), check_exact=True)
    assert (found["prediction"] == patients["outcome"]).mean() > 0.8


def test_a_model_without_probabilities_predicts_and_is_evaluated(patients, capsys):
    """With delta=0 and many rows the scores are no log odds."""
    assert main([*FIT, *SAVE, *STATED, "--delta", "0"]) == 0
    model = joblib.load("model.joblib")
    assert not hasattr(model, "predict_proba")
    assert main(["predict", "model.joblib", "patients.csv", "--out", "out.csv"]) == 0
    assert "has no probabilities" in capsys.readouterr()[0]
    found = pandas.read_csv("out.csv")
    assert list(found.columns) == ["prediction"]
    rows = patients.drop(columns="outcome").replace("", None)
    assert found["prediction"].tolist() == model.predict(rows).tolist()
    asked = ["evaluate", "model.joblib", "patients.csv", "--target", "outcome", "--epsilon", "1"]
    assert main([*asked, "--metric", "accuracy", "auc"]) == 0
    assert "roc_auc" in capsys.readouterr()[0]
    assert "predict_proba" in error(capsys, *asked, "--metric", "log_loss")


def test_columns_of_new_tables_are_read_as_in_the_fit(patients):
    assert main([*FIT, *SAVE]) == 0
    assert main(["predict", "model.joblib", "patients.csv", "--out", "a.csv"]) == 0
    odd = patients.drop(columns="outcome")[["city", "age", "seen", "stage"]]
    odd["seen"] = odd["seen"].dt.strftime("%Y/%m/%d")
    odd.assign(extra=1).to_csv("odd.csv", sep=";", decimal=",")
    with open("odd.csv", "a") as file:
        file.write(";nowhere;old;never;9;1\n")
    assert main(["predict", "model.joblib", "odd.csv", "--out", "b.csv"]) == 0
    a, b = pandas.read_csv("a.csv"), pandas.read_csv("b.csv")
    pandas.testing.assert_frame_equal(a, b[:-1])
    assert len(b) == len(a) + 1


def read_page(place):
    """The source of a page of which every tag is closed, and its text."""
    with open(place, encoding="utf-8") as file:
        source = file.read()
    opened = Counter(re.findall(r"<([a-z]\w*)\b[^>]*(?<!/)>", source))
    closed = Counter(re.findall(r"</(\w+)>", source))
    assert not (opened - closed).keys() - {"meta", "br"}
    return source, " ".join(html.unescape(re.sub(r"<[^>]*>", " ", source)).split())


def test_the_cards_of_a_fit_and_of_its_saved_model_say_what_was_promised(patients, capsys):
    ledger = ["--ledger", "l.db", "--cap", "5", "1e-5"]
    assert main([*FIT, *SAVE, *STATED, *ledger, "--card", "card.html"]) == 0
    said = capsys.readouterr().out
    assert "Ledger:    1 entry, epsilon 4 of 5 asked for at delta" in said
    assert "Expect:    epsilon=4 for 1500 records" in said
    source, text = read_page("card.html")
    assert not re.search(r"<(script|link|img|iframe|object|b)\b", source)
    assert not re.search(r"\b(src|href|srcset|data)=\"(?!#)", source)
    assert not re.search(r"url\((?!#)|@import", source)
    for words in (
        "ε = 4 and δ = 4.5e-07",
        "The unit of privacy is one row of the table",
        "55 times as likely",
        "Number of rows 1500",
        "Labels, stated no, yes",
        "age number in [0, 120]",
        "stage 2 categories",
        "are together (5, 1e-05)-differentially private",
        "0.1 %",
        "of the area under the ROC curve above one half",
        "No score was given, so this card",
        "log odds of yes",
        "II <b>",
        "scikit-learn",
        "Adjacency: replace-one",
    ):
        assert words in text, words
    for words in ("prefers-color-scheme: dark", "@media print", "<svg"):
        assert words in source, words
    assert "Rome" not in source
    spent = PrivacyLedger("l.db").spent()
    assert "epsilon 4 of 5 asked for at delta" in text
    assert f"epsilon {rounded_text(spent)} of 5 at delta 1e-05 is spent" in text
    texts = ["--purpose", "Triage <b>", "--contact", "a@example.org"]
    command = ["card", "model.joblib", "--out", "again.html"]
    assert main([*command, *ledger[:2], *texts]) == 0
    assert capsys.readouterr().out == "Card:      again.html\n"
    source, text = read_page("again.html")
    assert "<b>" not in source
    for words in (
        "model of model.joblib",
        "Purpose Triage <b>",
        "together (5, 1e-05)-differentially private",
    ):
        assert words in text, words
    assert "none.db does not exist" in error(capsys, *command, "--ledger", "none.db")
    assert "not a privacy ledger" in error(capsys, *command, "--ledger", "schema.json")
    same = ["card", "model.joblib", "--out", "model.joblib"]
    assert "are the same file" in error(capsys, *same)


def test_the_card_of_an_unstated_table_and_without_matplotlib(patients, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    given = [*FIT, *SAVE, "--delta", "0", "--card", "card.html"]
    assert main(given) == 0
    _, text = read_page("card.html")
    for words in (
        "found in the table and declared public",
        "city text, as found in the file",
        "δ = 0.",
    ):
        assert words in text, words
    assert "matplotlib was not installed" in text
    assert "No ledger was given: other releases" in text


def test_a_ledger_refuses_before_anything_is_made(patients, tmp_path, capsys):
    ledger = ["--ledger", "l.db"]
    # Before the table is read.
    absent = [FIT[0], "nowhere.csv", *FIT[2:], *SAVE]
    assert "--cap EPSILON DELTA creates one" in error(capsys, *absent, *ledger)
    assert "--cap is used only" in error(capsys, *absent, "--cap", "1", "0")
    assert "exceeds the remaining budget" in error(
        capsys, *FIT, *SAVE, *ledger, "--cap", "1", "1e-6", is_planned=True
    )
    assert "other terms" in error(capsys, *FIT, *SAVE, *ledger, "--cap", "9", "1e-6")
    assert "not a privacy ledger" in error(capsys, *FIT, *SAVE, "--ledger", "schema.json")
    assert not (tmp_path / "model.joblib").exists()
    assert PrivacyLedger("l.db").spent() == 0


def test_places_that_cannot_be_written_are_seen_first(patients, tmp_path, capsys):
    assert "--save: the folder" in error(capsys, *FIT, "--save", "no/m.joblib")
    assert "--card:" in error(capsys, *FIT, *SAVE, "--card", str(tmp_path))
    assert "--out: the folder" in error(capsys, "predict", "m", "t.csv", "--out", "no/o")


def test_persons_are_protected_with_all_their_rows(patients, capsys):
    assert "column 'city' is empty in row" in error(capsys, *FIT, *SAVE, "--groups", "city")
    patients.assign(who=np.arange(1500) // 3).to_csv("patients.csv", index=False)
    groups = ["--groups", "who"]
    given = [*FIT, *SAVE, *STATED, *groups, "--card", "card.html"]
    assert main([*given, "--ledger", "l.db", "--cap", "5", "1e-4"]) == 0
    printed, errors = capsys.readouterr()
    assert "unit: all rows of one 'who'" in printed
    assert "for 500 persons: if no class is rare, expect about" in printed
    assert errors == ""
    model = joblib.load("model.joblib")
    assert "who" not in model.feature_names_in_
    record = model.privacy_
    assert (record.adjacency, dict(record.public)["n_samples"]) == ("replace-one-person", 500)
    assert PrivacyLedger("l.db").adjacency == "replace-one-person"
    _, text = read_page("card.html")
    assert "all rows with the same value of the column 'who'" in text
    assert "Number of persons 500" in text
    assert "for 500 persons: if no class is rare, expect about" in text
    assert "Computed from the number of persons and of encoded columns" in text
    assert "1500" not in text
    score = ["evaluate", "model.joblib", *FIT[1:4], "--epsilon", "1"]
    assert main(score) == 0
    assert "name persons by --groups" in capsys.readouterr().err
    assert main([*score, *groups]) == 0
    assert "--groups" not in capsys.readouterr().err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (["1,x,yes", "2,y,no"], 0),
        (["1e300,x,yes", "-1e300,y,no", f"{SECRET}e9999,z,no"] * 99, 0),
        (["7,x,yes", "7,x,no"] * 99, 0),
        ([f",,yes\n{SECRET},True,no"] * 99, 0),
        (["1,x,yes"] * 99, 0),
        ([f"1,x,{SECRET}"] * 99, "column 'outcome' of patients.csv has labels other than no, yes"),
        ([], "no rows below its header"),
    ],
)
def test_hostile_tables_end_in_a_model_or_a_sentence(tmp_path, capsys, monkeypatch, lines, outcome):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "patients.csv").write_text("\n".join(["a,b,outcome", *lines]) + "\n")
    command = [*FIT, *SAVE, "--classes", "no,yes", "--card", "card.html"]
    if outcome == 0:
        assert main(command) == 0
        assert main(["predict", "model.joblib", "patients.csv", "--out", "o.csv"]) == 0
        assert SECRET not in "".join(capsys.readouterr()) + (tmp_path / "card.html").read_text()
    else:
        assert outcome in error(capsys, *command)


@pytest.mark.parametrize("content", [b"", b"no model", joblib.__file__.encode()])
def test_what_is_no_model(patients, tmp_path, capsys, content):
    (tmp_path / "m").write_bytes(content)
    assert "cannot read m" in error(capsys, "predict", "m", "patients.csv", "--out", "o.csv")
    assert "No such file" in error(capsys, "predict", "no", "patients.csv", "--out", "o.csv")
    joblib.dump({"no": "model"}, "m")
    assert "m is not a model" in error(capsys, "predict", "m", "patients.csv", "--out", "o.csv")


def test_a_card_says_that_a_selection_spends_no_delta(tmp_path):
    """Of a small table; engine and steps spend theirs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2))
    y = (X[:, 0] > 0).astype(int)
    schema = {"0": "number", "1": "number"}
    for features, is_said in (("auto", True), ("linear", False)):
        model = PrivateTableClassifier(classes=[0, 1], schema=schema, features=features)
        card = model_card(model.fit(X, y), title="ward")
        assert ("nothing is spent: the guarantee of this fit is pure" in card) == is_said


def test_little_is_expected_is_noted_before_anything_is_spent(patients, capsys):
    patients.iloc[:100].to_csv("patients.csv", index=False)
    poor = ["--epsilon", "0.2", *STATED, *SAVE, "--ledger", "l.db", "--cap"]
    for cap, code in (("0.1", 2), ("5", 0)):
        Path("l.db").unlink(missing_ok=True)
        assert main([*FIT, *poor, cap, "1e-3"]) == code
        assert PrivacyLedger("l.db").spent() == pytest.approx(0.0 if code else 0.2, abs=0.01)
        said = capsys.readouterr()
        expected = "Expect:    epsilon=0.2 for 100 records: if no class is rare, expect about"
        assert said.out.count(expected) == 1
        assert "expect about" not in said.err


RARE = ["fit", "ward.csv", "--target", "died", "--classes", "no,yes"]


@pytest.fixture
def ward(tmp_path, monkeypatch):
    """Write a table of persons with several rows, 8 % of which are positive."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n = 4000
    lactate = rng.lognormal(0.4, 0.5, n)
    died = 1.2 * lactate + rng.logistic(size=n)
    frame = pandas.DataFrame(
        {
            "patient_id": np.arange(n) // 2,
            "lactate": lactate.round(2),
            "age": rng.uniform(20, 90, n).round(),
            "died": np.where(died > np.quantile(died, 0.92), "yes", "no"),
        }
    )
    frame.to_csv("ward.csv", index=False)
    return frame


def test_options_reach_the_fit(ward, capsys, monkeypatch):
    given = {}

    def fit(self, X, y, *, groups=None):
        given.update(self.get_params(), groups=groups)
        raise ValueError("seen")

    monkeypatch.setattr(PrivateTableClassifier, "fit", fit)
    Path("s.json").write_text('{"age": [0, 120]}')
    more = ["--epsilon", "2", "--delta", "1e-7", "--groups", "patient_id", "--schema", "s.json"]
    assert error(capsys, *RARE, *more, "--save", "m.joblib", is_planned=True).endswith("seen")
    assert given["groups"].tolist() == ward["patient_id"].astype(str).tolist()
    assert given["schema"]["age"] == [0, 120]
    expected = {"epsilon": 2.0, "delta": 1e-7, "classes": ["no", "yes"]}
    assert {name: given[name] for name in expected} == expected


def test_a_weak_guarantee_is_said(ward, capsys):
    given = [*RARE, "--drop", "patient_id", "--save", "m.joblib"]
    assert main([*given, "--epsilon", "100", "--delta", ".1"]) == 0
    said = capsys.readouterr().err
    assert "note: epsilon=100 is a weak guarantee" in said
    assert "note: delta=0.1 is more than 1/n" in said
    assert main([*given, "--epsilon", "3"]) == 0
    assert "is a weak guarantee" not in capsys.readouterr().err
    scored = ["evaluate", "m.joblib", *RARE[1:4]]
    assert main([*scored, "--epsilon", "12", "--delta", ".1"]) == 0
    said = capsys.readouterr().err
    assert "note: epsilon=12 is a weak guarantee" in said
    assert "note: delta=0.1 is more than 1/n" in said
    assert main([*scored, "--epsilon", "3"]) == 0
    assert "is a weak guarantee" not in capsys.readouterr().err


def test_a_card_says_what_the_released_model_shows(ward, capsys):
    """A model whose scores are all equal."""
    ward.head(300).to_csv("few.csv", index=False)
    few = ["fit", "few.csv", "--target", "died", "--classes", "no,yes", "--drop", "patient_id"]
    with choosing_the_last():
        assert main([*few, "--epsilon", "0.1", "--save", "m.joblib", "--card", "card.html"]) == 0
    err = capsys.readouterr().err
    said = joblib.load("m.joblib")._finding
    assert said.startswith("every row has the same score")
    assert said in err
    assert said in read_page("card.html")[1]
    assert main(["card", "m.joblib", "--out", "again.html"]) == 0
    assert said in read_page("again.html")[1]


def test_written_probabilities_rank_a_rare_class_as_the_model_does(tmp_path, monkeypatch, capsys):
    """Also those of a column that ranks it, which hardly differ."""
    monkeypatch.chdir(tmp_path)
    lab = pandas.DataFrame({"lab": np.arange(1200.0)})
    died = np.where(lab["lab"] >= 1170, "yes", "no")
    model = PrivateTableClassifier(epsilon=1, classes=["no", "yes"], schema={"lab": "number"})
    assert model.fit(lab, died).column_that_ranks_ == "lab"
    joblib.dump(model, "m.joblib")
    lab.assign(died=died).to_csv("new.csv", index=False)
    assert main(["predict", "m.joblib", "new.csv", "--out", "out.csv"]) == 0
    found = pandas.read_csv("out.csv")["probability_yes"]
    assert found.nunique() == np.unique(model.decision_function(lab)).size > 100
    scored = ["evaluate", "m.joblib", "new.csv", "--target", "died", "--epsilon", "1"]
    assert main([*scored, "--metric", "auc"]) == 0
    assert "note: the model is one selected classifier" in capsys.readouterr().err


def test_a_range_in_another_unit_is_noted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    grams, lab = rng.normal(70_000, 9_000, 3000).round(), rng.normal(size=3000).round(3)
    frame = pandas.DataFrame({"weight": grams, "lab": lab, "ill": np.where(lab > 0, "yes", "no")})
    frame.to_csv("t.csv", index=False)
    Path("s.json").write_text('{"weight": [0, 300], "lab": "number"}')
    fit = ["fit", "t.csv", "--target", "ill", "--classes", "no,yes", "--schema", "s.json"]
    assert main([*fit, "--epsilon", "5", "--save", "m.joblib"]) == 0
    assert "note: by released scales nearly all cells of 'weight'" in capsys.readouterr().err
