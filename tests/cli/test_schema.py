"""A template of a schema: names and kinds of columns, and never a value."""

import json

import pandas
import pytest

from dp_halfspace._cli import main

LINES = [
    "id;age;smoker;seen;city;outcome",
    "0012;61,5;yes;31.12.2025;Rome;dead",
    "0013;;no;01.02.2026;Oslo;alive",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("\n".join(LINES) + "\n")
    return tmp_path


KINDS = {"id": "number", "age": "number", "smoker": "boolean", "seen": "date", "city": "text"}


def test_a_template_has_names_and_kinds_and_no_value(folder, capsys):
    assert main(["schema", "own.csv", "--target", "outcome"]) == 0
    printed, errors = capsys.readouterr()
    # The line of the target has no label, and is no label set if it stays as it is.
    assert json.loads(printed) == {"target": "state the PUBLIC labels here", "columns": KINDS}
    assert 'labels under "target"' in errors
    assert "inferred from the private cells" in errors
    for value in ("Rome", "dead", "0012", "61"):
        assert value not in printed + errors


def test_a_template_is_a_schema(folder, capsys):
    assert main(["schema", "own.csv", "--target", "outcome", "--out", "s.json"]) == 0
    assert capsys.readouterr().out == "Written: s.json, 5 columns\n"
    fit = ["fit", "own.csv", "--target", "outcome", "--schema", "s.json", "--epsilon", "1"]
    assert main([*fit, "--classes", "alive,dead", "--save", "m.joblib"]) == 0
    assert "are not in a --schema" not in capsys.readouterr().err


def test_a_key_is_noted_by_its_name(folder, capsys):
    rows = ["patient_id,age,outcome", *(f"{k},{20 + k},{k % 2}" for k in range(9))]
    (folder / "own.csv").write_text("\n".join(rows) + "\n")
    assert main(["schema", "own.csv", "--target", "outcome"]) == 0
    printed, errors = capsys.readouterr()
    assert json.loads(printed)["columns"]["patient_id"] == "number"
    assert "the column 'patient_id' may identify rows or persons" in errors
    assert '"drop" in the schema' in errors


def template(folder, capsys, *cells):
    """Kind of a column of these cells in the template, and all that is said beside it."""
    (folder / "own.csv").write_text(
        "\n".join(["crp;age", *(f"{cell};40" for cell in cells)]) + "\n"
    )
    assert main(["schema", "own.csv"]) == 0
    printed, errors = capsys.readouterr()
    return json.loads(printed)["columns"]["crp"], errors


def test_limits_and_signs_of_missing_values_leave_a_column_of_numbers(folder, capsys):
    numbers = [f"{k},5" for k in range(19)]
    assert template(folder, capsys, *numbers, "<0,3")[0] == "number"
    assert template(folder, capsys, *numbers, "> 200", "n/a", "")[0] == "number"
    # A remark of one record changes neither what the column holds nor what is said.
    assert template(folder, capsys, *numbers, "pending") == template(folder, capsys, *numbers, "7")
    assert template(folder, capsys, *numbers, "pending", "lost")[0] == "text"


def test_limits_alone_are_names_of_groups(folder, capsys):
    assert template(folder, capsys, "<18", ">=18", "<18")[0] == "text"
    assert template(folder, capsys, "<18", "18", "20", "<18")[0] == "number"


def test_one_remark_leaves_a_column_of_dates_and_none_one_of_truth_values(folder, capsys):
    days = [f"{k}.01.2026" for k in range(1, 20)]
    assert template(folder, capsys, *days, "unknown")[0] == "date"
    assert template(folder, capsys, *["yes"] * 19, "unknown")[0] == "text"
    assert template(folder, capsys, "", "")[0] == "number"


def test_parquet_says_its_kinds(folder, capsys):
    frame = pandas.DataFrame({"n": [1, None], "t": ["a", None], "b": [True, None]})
    frame["d"] = pandas.to_datetime(["2026-01-01", None])
    frame.to_parquet(folder / "own.parquet")
    assert main(["schema", "own.parquet"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert found == {"n": "number", "t": "text", "b": "boolean", "d": "date"}


def test_mistakes_are_one_sentence(folder, capsys):
    assert main(["schema", "own.csv", "--out", "nowhere/s.json"]) == 2
    assert main(["schema", "own.csv", "--target", "death"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
