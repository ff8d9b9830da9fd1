"""Models in files: those of skops run nothing, those of joblib say that they do."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import skops.io
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from dp_halfspace import PrivacyLedger, PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace._cli.files import TRUSTED
from dp_halfspace.preprocessing import PublicScaler

FIT = ["fit", "t.csv", "--target", "y", "--epsilon", "4"]
PREDICT = ["t.csv", "--out", "p.csv"]
SCORE = ["t.csv", "--target", "y", "--epsilon", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 900
    frame = pandas.DataFrame(
        {
            "a": rng.uniform(0, 9, n).round(3),
            "kind": rng.choice(["u", "v"], n),
            "city": rng.choice(["Rome", "Oslo", ""], n),
            "seen": pandas.Timestamp("2026-01-01")
            + pandas.to_timedelta(rng.integers(0, 99, n), "D"),
            "ok": rng.random(n) < 0.5,
            "who": np.arange(n) // 3,
        }
    )
    frame.assign(y=np.digitize(frame["a"], [3, 6])).to_csv("t.csv", index=False)
    schema = {"columns": {"a": [0, 9], "kind": ["u", "v"], "seen": "date", "ok": "drop"}}
    Path("s.json").write_text(json.dumps(schema))
    return tmp_path


def refusal(capsys, *arguments):
    assert main(list(arguments)) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert len(errors.splitlines()) == 1
    return errors


@pytest.mark.sampled(4)
@pytest.mark.parametrize("more", [[], ["--schema", "s.json", "--groups", "who"]])
@pytest.mark.parametrize("features", ["auto", "additive", "linear"])
def test_a_model_goes_through_skops(folder, capsys, features, more):
    assert main([*FIT, "--features", features, *more, "--save", "m.skops"]) == 0
    assert zipfile.is_zipfile("m.skops")
    capsys.readouterr()
    assert main(["predict", "m.skops", *PREDICT]) == 0
    assert capsys.readouterr().err == ""
    model = skops.io.load("m.skops", trusted=list(TRUSTED))
    assert isinstance(model, PrivateTableClassifier)
    joblib.dump(model, "m.joblib")
    assert main(["predict", "m.joblib", "t.csv", "--out", "q.csv"]) == 0
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    assert main(["evaluate", "m.skops", "t.csv", "--target", "y", "--epsilon", "1"]) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", ["0.4", "0.8", "2"])
@pytest.mark.parametrize("end", [8.9, 4.5])
def test_a_model_after_a_count_of_the_classes_goes_through_skops(folder, epsilon, end):
    """One column for a rare class, a selected classifier, and gradient steps."""
    frame = pandas.read_csv("t.csv")
    frame.assign(y=(frame["a"] > end).astype(int)).to_csv("t.csv", index=False)
    fit = [epsilon if word == FIT[FIT.index("--epsilon") + 1] else word for word in FIT]
    assert main([*fit, "--classes", "0,1", "--save", "m.skops"]) == 0
    assert main(["predict", "m.skops", *PREDICT]) == 0


DAYS = ["2020-01-01", "2030-01-01"]
COLUMNS = {
    "index": pandas.Index,
    "series": pandas.Series,
    "categorical": pandas.Categorical,
    "array of pandas": pandas.array,
    "polars": polars.Series,
    "Arrow": pyarrow.array,
    "chunks of Arrow": lambda values: pyarrow.chunked_array([values]),
    "numpy": np.array,
    "tuple": tuple,
    "ranges": lambda values: range(len(values)) if values == [0, 1] else values,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("made", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_library_are_stored_as_lists_of_public_facts(made, tmp_path):
    """Without types of that library in the file; the model itself keeps what it was given."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"a": rng.uniform(0, 9, 500), "b": rng.choice(["x", "y", "z"], 500), "c": DAYS[0]}
    )
    labels = (table["a"] > 5).astype(int).to_numpy()
    schema = {"a": made([0, 9]), "b": made(["x", "y", "z"])}
    if made is not COLUMNS["ranges"]:
        schema |= {"b": {"kind": "categories", "categories": schema["b"]}}
    schema["c"] = {"kind": "date", "range": made(DAYS)}
    classes = made([0, 1])
    model = PrivateTableClassifier(classes=classes, schema=schema, epsilon=9.0).fit(table, labels)
    assert model.classes is classes
    skops.io.dump(model, tmp_path / "m.skops")
    loaded = skops.io.load(tmp_path / "m.skops", trusted=list(TRUSTED))
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    again = clone(loaded).fit(table, labels)
    assert again.encoding_ == model.encoding_
    assert again.classes_.tolist() == [0, 1]


def test_paths_and_ranges_of_scalers_are_stored(folder):
    Path("s.json").write_text('{"0": [0, 1], "1": [0, 1]}')
    X = np.random.default_rng(0).random((500, 2))
    model = PrivateTableClassifier(classes=[0, 1], schema=Path("s.json"), epsilon=9.0)
    held = skops.io.dumps(model.fit(X, (X[:, 0] > 0.5).astype(int)))
    np.testing.assert_array_equal(
        skops.io.loads(held, trusted=list(TRUSTED)).predict(X), model.predict(X)
    )
    scaler = PublicScaler(pandas.DataFrame({"low": [0, 0], "high": [1, 2]})).fit(X)
    held = skops.io.dumps(scaler)
    loaded = skops.io.loads(held, trusted=["dp_halfspace.preprocessing.scalers.PublicScaler"])
    np.testing.assert_array_equal(loaded.transform(X), scaler.transform(X))


def test_trusted_are_types_of_this_package_one_by_one():
    for name in TRUSTED:
        assert name.startswith("dp_halfspace.")
        module, kind = name.rsplit(".", 1)
        assert isinstance(getattr(sys.modules[module], kind), type)


class Foreign:
    """A type of somebody else."""

    def __setstate__(self, state):
        Path("ran").touch()


def test_other_types_are_refused_by_name_and_never_built(folder, capsys):
    ledger = PrivacyLedger(folder / "l.db", epsilon=1, delta=0)
    foreign = Foreign()
    foreign.x = 1
    for value, name in (
        ({"ledger": ledger}, "dp_halfspace.ledger.ledger.PrivacyLedger"),
        ({"schema": foreign}, f"{Foreign.__module__}.Foreign"),
        ({"schema": subprocess.run}, "subprocess.run"),
    ):
        skops.io.dump(PrivateTableClassifier(**value), "m.skops")
        for command in (
            ["predict", "m.skops", *PREDICT],
            ["evaluate", "m.skops", *SCORE],
        ):
            line = refusal(capsys, *command)
            assert "m.skops contains types that are not part of a model of this command" in line
            assert repr(name) in line
    assert not Path("ran").exists()
    assert not Path("p.csv").exists()


def test_what_is_no_file_of_skops(folder, capsys):
    Path("m.skops").write_bytes(b"no zip")
    assert "cannot read m.skops" in refusal(capsys, "predict", "m.skops", *PREDICT)
    # A pickle under this name is not run.
    joblib.dump(PrivateTableClassifier(), "m.skops")
    assert "cannot read m.skops" in refusal(capsys, "predict", "m.skops", *PREDICT)
    skops.io.dump(LogisticRegression(), "m.skops")
    assert "is not a model" in refusal(capsys, "predict", "m.skops", *PREDICT)
    assert "No such file" in refusal(capsys, "predict", "absent.skops", *PREDICT)


def test_without_skops_nothing_is_charged(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    ledger = ["--ledger", "l.db", "--cap", "9", "1e-4"]
    line = refusal(capsys, *FIT, "--save", "m.skops", *ledger)
    assert 'pip install ".[skops]"' in line
    assert not Path("l.db").exists()


class Marker:
    """Leaves a file when it is loaded."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def test_a_pickle_is_announced_before_it_runs(folder, capsys, monkeypatch):
    """At run time, on standard error, before the code of the file."""
    joblib.dump(Marker(), "m.joblib")
    said = []
    honest = joblib.load
    monkeypatch.setattr(
        "dp_halfspace._cli.files.joblib.load",
        lambda path: said.append(capsys.readouterr().err) or honest(path),
    )
    for command in (
        ["predict", "m.joblib", *PREDICT],
        ["evaluate", "m.joblib", *SCORE],
    ):
        assert main(command) == 2
    assert Path("ran").exists()
    assert len(said) == 2
    for text in said:
        note = text.splitlines()[-1]
        assert note.startswith("dp_halfspace: note: loading m.joblib runs the code in the file")
