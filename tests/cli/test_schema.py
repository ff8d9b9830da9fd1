"""A template of a schema: names and kinds of columns, and never a value."""

import json

import pandas
import pytest

from dp_halfspace._cli import main
from dp_halfspace._cli.guesses import Guess

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


KINDS = {"id": "number", "age": "number", "smoker": "boolean", "city": "text"}
KINDS["seen"] = {"kind": "date", "format": "%d.%m.%Y"}


def test_a_template_has_names_and_kinds_and_no_value(folder, capsys):
    assert main(["schema", "own.csv", "--target", "outcome"]) == 0
    printed, errors = capsys.readouterr()
    # The line of the target has no label, and is no label set if it stays as it is.
    assert json.loads(printed) == {"target": "state the PUBLIC labels here", "columns": KINDS}
    assert "inferred from the private cells" in errors
    for value in ("Rome", "dead", "0012", "61"):
        assert value not in printed + errors


def test_a_template_is_a_schema(folder, capsys):
    assert main(["schema", "own.csv", "--target", "outcome", "--out", "s.json"]) == 0
    assert capsys.readouterr().out == "Written: s.json, 5 columns\n"
    fit = ["fit", "own.csv", "--target", "outcome", "--schema", "s.json", "--epsilon", "1"]
    assert main([*fit, "--classes", "alive,dead", "--save", "m.joblib"]) == 0
    assert "are not in a --schema" not in capsys.readouterr().err


def test_a_template_that_is_printed_is_json_whatever_the_names(folder, capsys):
    """Spreadsheets write blanks that do not break, and outputs have other encodings."""
    (folder / "own.csv").write_text("a\xa0b,\xe9,outcome\n1,2,0\n3,4,1\n", encoding="utf-8")
    assert main(["schema", "own.csv", "--target", "outcome"]) == 0
    printed = capsys.readouterr().out
    assert list(json.loads(printed)["columns"]) == ["a\xa0b", "\xe9"]
    assert printed.isascii()


def test_a_key_is_noted_by_its_name(folder, capsys):
    rows = ["patient_id,age,outcome", *(f"{k},{20 + k},{k % 2}" for k in range(9))]
    (folder / "own.csv").write_text("\n".join(rows) + "\n")
    assert main(["schema", "own.csv", "--target", "outcome"]) == 0
    printed, errors = capsys.readouterr()
    assert json.loads(printed)["columns"]["patient_id"] == "number"
    assert "these features may identify rows or persons: 'patient_id'." in errors
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
    assert template(folder, capsys, *days, "unknown")[0] == KINDS["seen"]
    assert template(folder, capsys, *["yes"] * 19, "unknown")[0] == "text"
    assert template(folder, capsys, "", "")[0] == "number"


def test_parquet_says_its_kinds(folder, capsys):
    frame = pandas.DataFrame({"n": [1, None], "t": ["a", None], "b": [True, None]})
    frame["d"] = pandas.to_datetime(["2026-01-01", None])
    frame.to_parquet(folder / "own.parquet")
    assert main(["schema", "own.parquet"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert found == {"n": "number", "t": "text", "b": "boolean", "d": "date"}


PROPOSED = {
    "percent": (["45%", "12 %"], "number", 1),
    "currency": (["5", "$1,200"], "number", 2),
    "blanks": (["1", "12 345"], "number", 2),
    "minus": (["1", "2", "(12.3)"], "number", 3),
    "unit": (["120 mmHg", "80 mmHg"], {"kind": "number", "unit": "mmHg"}, 1),
    "unit behind a remark": (["lost", *["80 kg"] * 20], {"kind": "number", "unit": "kg"}, 2),
    "units behind limits": (["<0.3 mg/l", "2 mg/l"], {"kind": "number", "unit": "mg/l"}, 1),
    "day first": (["01/02/2003", "31/12/2003"], {"kind": "date", "format": "%d/%m/%Y"}, 2),
    "month first": (["01/02/2003", "12/31/2003"], {"kind": "date", "format": "%m/%d/%Y"}, 2),
    "dashes": (["31-12-2003", "05-01-2003"], {"kind": "date", "format": "%d-%m-%Y"}, 1),
    "names": (["05-Jan-2003", "31-Dec-2003"], {"kind": "date", "format": "%d-%b-%Y"}, 1),
    "clock": (["05.01.2003 10:30"], {"kind": "date", "format": "%d.%m.%Y %H:%M"}, 1),
    "either": (["01/02/2003"], {"kind": "date", "format": "%d/%m/%Y or %m/%d/%Y"}, 1),
    "remarks": (["1", "2", "not done"], "text", 3),
    "remarks among dates": (["2003-02-03", "01.02.2003", "31.12.2003", "lost"], "text", 4),
    "remarks among units": (["80 mmHg", "90 mmHg", "not done"], "text", 3),
    "remarks among decimal commas": (["1.044,61", "1.729,53", "not done"], "text", 3),
    "ratios": (["120/80", "130/70"], "text", 0),
}


def test_a_remark_is_named_with_the_rule_that_takes_it_for_missing(folder, capsys):
    said = template(folder, capsys, "01.02.2003", "31.12.2003", "unknown")[1]
    assert 'most cells are dates and row 3 below the header is none, which {"kind": "date"' in said
    said = template(folder, capsys, "1.044,61", "1.729,53", "not done")[1]
    assert "most cells are numbers with --decimal , and row 3" in said


@pytest.mark.parametrize(
    ("cells", "is_flag"),
    [(["0", "1", ""], True), (["+0", "1"], True), (["0", "1", "2"], False), (["0", "<1"], False)],
)
def test_flags_among_numbers_are_named(folder, capsys, cells, is_flag):
    """Their scales are hard to release, and what is stated needs none."""
    found, errors = template(folder, capsys, *cells)
    assert ("column 'crp': all numbers are 0 or 1" in errors) == is_flag
    assert found == "number"


@pytest.mark.parametrize("name", PROPOSED)
def test_a_template_proposes_notations_with_the_row_to_look_at(folder, capsys, name):
    cells, rule, row = PROPOSED[name]
    found, errors = template(folder, capsys, *cells)
    assert found == rule
    assert ("Look at the file" in errors) == bool(row)
    assert ("choose one of them" in errors) == (name == "either")
    if row:
        assert f"column 'crp': row {row} below" in errors or f"and row {row} bel" in errors
    assert not any(cell in errors for cell in cells if len(cell) > 4)


def test_a_choice_of_two_formats_is_asked_for_and_a_fit_alone_makes_none(folder, capsys):
    rows = [f"0{k % 9 + 1}/02/2003;{k};{'ab'[k % 2]}" for k in range(40)]
    (folder / "own.csv").write_text("\n".join(["seen;age;outcome", *rows]) + "\n")
    assert main(["schema", "own.csv", "--target", "outcome", "--out", "s.json"]) == 0
    fit = ["fit", "own.csv", "--target", "outcome", "--epsilon", "1", "--save", "m.joblib"]
    assert main([*fit, "--schema", "s.json"]) == 2
    refusal = "of two formats, choose one"
    assert refusal in capsys.readouterr().err
    assert main([*fit, "--classes", "a,b"]) == 0
    assert "seen    text    private: as found" in capsys.readouterr().out


def read_by_a_fit(folder, capsys, usual, odd):
    """What a fit says about a column of one kind of cells, without and with an odd one."""
    said = []
    for first in (usual, odd):
        rows = [f"{usual if k else first};{'ab'[k % 2]}" for k in range(40)]
        (folder / "own.csv").write_text("\n".join(["seen;outcome", *rows]) + "\n")
        fit = ["fit", "own.csv", "--target", "outcome", "--classes", "a,b", "--epsilon", "1"]
        assert main([*fit, "--dry-run"]) == 0
        said.append(capsys.readouterr().out)
    return said


@pytest.mark.parametrize(
    ("usual", "odd"), [("01/02/2003", "31/12/2003"), ("80 mmHg", "81 kPa"), ("80", "$1,200")]
)
def test_one_cell_does_not_say_how_a_fit_reads_the_others(folder, capsys, usual, odd):
    """A unit and a format are stated, or not used."""
    first, second = read_by_a_fit(folder, capsys, usual, odd)
    assert first == second


def test_a_format_that_one_cell_decides_is_seen(folder, capsys, monkeypatch):
    """Planted: the format of a column is that which fits all of its cells."""
    decided = property(lambda g: "text" if " or " in g.rule.get("format", "") else g.rule["kind"])
    monkeypatch.setattr(Guess, "kind_alone", decided)
    first, second = read_by_a_fit(folder, capsys, "01/02/2003", "31/12/2003")
    assert first != second


def test_a_model_reads_the_notations_that_it_was_fitted_to(folder, capsys):
    rows = [f"{80 + k} mmHg;{k % 28 + 1}.01.2003;{'ab'[k > 20]}" for k in range(41)]
    (folder / "own.csv").write_text("\n".join(["bp;seen;outcome", *rows]) + "\n")
    rules = {"kind": "number", "unit": "mmHg"}, {"kind": "date", "format": "%d.%m.%Y"}
    (folder / "s.json").write_text(json.dumps(dict(zip(("bp", "seen"), rules, strict=True))))
    fit = ["fit", "own.csv", "--target", "outcome", "--classes", "a,b", "--epsilon", "1000"]
    assert main([*fit, "--schema", "s.json", "--save", "m.joblib"]) == 0
    assert main(["predict", "m.joblib", "own.csv", "--out", "p.csv"]) == 0
    found = pandas.read_csv("p.csv")["prediction"]
    assert (found == ["ab"[k > 20] for k in range(41)]).mean() > 0.9


def test_mistakes_are_one_sentence(folder, capsys):
    assert main(["schema", "own.csv", "--out", "nowhere/s.json"]) == 2
    assert main(["schema", "own.csv", "--target", "death"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_a_decimal_comma_is_hinted_at_with_the_option_that_reads_it(folder, capsys):
    lines = ["id;income", "1;44.361,62 €", "2;729,53 €", "3;12.106,13 €"]
    (folder / "german.csv").write_text("\n".join(lines) + "\n")
    assert main(["schema", "german.csv"]) == 0
    assert (
        "column 'income': nearly all cells are numbers with --decimal ," in capsys.readouterr().err
    )
    assert main(["schema", "german.csv", "--decimal", ","]) == 0
    assert json.loads(capsys.readouterr().out)["columns"]["income"] == "number"


def test_a_decimal_comma_beside_points_that_may_separate_thousands_is_named(folder, capsys):
    rows = "platelets;crp;dose;note\n825;12;1;a\n1.288;0,9;0,1234;a 1,5\n1;2;3;1,5\n"
    (folder / "german.csv").write_text(rows)
    assert main(["schema", "german.csv"]) == 0
    said = capsys.readouterr().err
    for name in ("crp", "dose"):
        assert f"column '{name}': row 2 below the header has a decimal comma: only with" in said
    assert said.count("decimal comma") == 2
    for sign in (".", ","):
        assert main(["schema", "german.csv", "--decimal", sign]) == 0
        assert "decimal comma" not in capsys.readouterr().err
