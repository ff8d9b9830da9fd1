"""What `fit` prints about columns."""

import numpy as np
import pandas
import pytest

from dp_halfspace._cli import main

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
    assert "these features may identify rows or persons: 'patient_id'." in err
    assert "as found in the file" in next(s for s in out.splitlines() if "patient_id" in s)
