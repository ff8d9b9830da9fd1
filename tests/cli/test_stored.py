"""Models in files: their parameters are plain, and those that run code say that they do."""

from pathlib import Path

import joblib
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import skops.io
from sklearn.base import clone

from dp_halfspace import PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace.preprocessing import PublicScaler

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
    return tmp_path


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


def through_skops(estimator):
    """Store an estimator and load it; only types of this package are not known to skops."""
    held = skops.io.dumps(estimator)
    others = skops.io.get_untrusted_types(data=held)
    assert all(name.startswith("dp_halfspace.") for name in others)
    return skops.io.loads(held, trusted=others)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("made", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_library_are_stored_as_lists_of_public_facts(made):
    """Without types of that library in the file; the model itself keeps what it was given."""
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "a": rng.uniform(0, 9, 500),
            "b": rng.choice(["x", "y", "z"], 500),
            "c": rng.choice(DAYS, 500),
        }
    )
    labels = (table["a"] > 5).astype(int).to_numpy()
    schema = {"a": made([0, 9]), "b": made(["x", "y", "z"])}
    if made is not COLUMNS["ranges"]:
        schema |= {"b": {"kind": "categories", "categories": schema["b"]}}
    schema["c"] = {"kind": "date", "range": made(DAYS)}
    classes = made([0, 1])
    model = PrivateTableClassifier(classes=classes, schema=schema, epsilon=9.0).fit(table, labels)
    assert model.classes is classes
    loaded = through_skops(model)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    again = clone(loaded).fit(table, labels)
    assert again.encoding_ == model.encoding_
    assert again.classes_.tolist() == [0, 1]


def test_paths_and_ranges_of_scalers_are_stored(folder):
    Path("s.json").write_text('{"0": [0, 1], "1": [0, 1]}')
    X = np.random.default_rng(0).random((500, 2))
    model = PrivateTableClassifier(classes=[0, 1], schema=Path("s.json"), epsilon=9.0)
    loaded = through_skops(model.fit(X, (X[:, 0] > 0.5).astype(int)))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    scaler = PublicScaler(pandas.DataFrame({"low": [0, 0], "high": [1, 2]})).fit(X)
    np.testing.assert_array_equal(through_skops(scaler).transform(X), scaler.transform(X))


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
        "dp_halfspace._cli.commands.joblib.load",
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
