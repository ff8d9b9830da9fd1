"""What `fit` prints about columns, and large tables in chunks."""

import numpy as np
import pandas
import pytest

from dp_halfspace._cli import commands, main, tables

SCHEMA = """{"age": [0, 120], "stage": ["I", "II", "III"], "dose": "number", "ok": "boolean",
"city": "text", "report": {"kind": "words", "columns": 8}}"""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    frame = pandas.DataFrame(
        {
            "patient_id": np.arange(n),
            "age": rng.integers(20, 95, n),
            "stage": rng.choice(["I", "II", "III"], n),
            "dose": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(3)),
            "ok": rng.random(n) < 0.3,
            "city": rng.choice(["Oslo", "Rome", "Bonn"], n),
            "report": rng.choice(["chest pain", "no pain", ""], n),
        }
    )
    frame["y"] = np.where(frame["age"] > 55, "yes", "no")
    frame.to_csv(tmp_path / "own.csv", index=False)
    frame.to_parquet(tmp_path / "own.parquet", index=False)
    (tmp_path / "schema.json").write_text(SCHEMA)
    return tmp_path


def fit(folder, name, *more):
    words = ["fit", str(folder / name), "--target", "y", "--epsilon", "3"]
    words += ["--schema", str(folder / "schema.json"), "--save", str(folder / "m.joblib")]
    return main([*words, *more])


def test_every_column_is_listed(table, capsys):
    assert fit(table, "own.csv", "--drop", "patient_id", "--classes", "no,yes") == 0
    out, err = capsys.readouterr()
    lines = [line.split(maxsplit=1) for line in out.splitlines() if line]
    found = {name: " ".join(rest.split()) for name, rest in lines}
    assert found["patient_id"] == "drop stated"
    assert found["age"] == "number in [0, 120] stated"
    assert found["stage"] == "3 categories stated"
    assert found["dose"] == "number stated"
    assert found["ok"] == "boolean stated"
    assert found["city"] == "text stated"
    assert found["report"] == "words in 8 columns stated"
    assert "may identify rows" not in err


def test_a_key_is_noted_by_its_name(table, capsys):
    assert fit(table, "own.csv", "--classes", "no,yes") == 0
    out, err = capsys.readouterr()
    assert "the column 'patient_id' may identify rows or persons" in err
    assert "as found in the file" in next(s for s in out.splitlines() if "patient_id" in s)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["own.csv", "own.parquet"])
@pytest.mark.parametrize("classes", [["--classes", "no,yes"], []])
def test_large_tables_are_encoded_in_chunks(table, name, classes, monkeypatch, capsys):
    """In chunks every row is encoded as in the whole table, and the model predicts alike."""
    monkeypatch.setattr(tables, "FIRST_STREAMED", 100)
    monkeypatch.setattr(tables, "ROWS_AT_ONCE", 700)
    seen = []
    made = tables.rows_of

    def kept(*given, **how):
        seen.append(made(*given, **how))
        return seen[-1]

    monkeypatch.setattr(tables, "rows_of", kept)
    assert fit(table, name, "--drop", "patient_id", *classes) == 0
    assert len(seen[0].parts) == 5
    model = commands.load_model(table / "m.joblib")
    whole = seen[0].values()
    frame = pandas.concat(list(whole))
    assert len(frame) == 3000
    own = pandas.read_csv(table / "own.csv", dtype=str, keep_default_na=False)
    both = [model.decision_function(rows) for rows in (frame, own)]
    assert both[0].tobytes() == both[1].tobytes()
    assert np.mean(model.predict(own) == own["y"]) > 0.8
    for more in (["--delta", "0", "--epsilon", "0.4"], ["--groups", "patient_id"]):
        drop = [] if "--groups" in more else ["--drop", "patient_id"]
        assert fit(table, name, *drop, *more) == 0
        assert not hasattr(seen.pop(), "parts")
