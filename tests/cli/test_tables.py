"""Files as they come: one frame for all ways to write a table, and refusals without a value."""

import csv
import gzip
import json
import re
import sys
import warnings
import zipfile
from datetime import date, datetime

import numpy as np
import pandas
import pytest

from dp_halfspace import PrivateTableClassifier
from dp_halfspace._cli import tables
from dp_halfspace._cli.arguments import UserError, parse_options
from dp_halfspace._cli.tables import plain_numbers, read_training_table
from dp_halfspace.data.cells import canonical, date_of, text_of, truth_of
from dp_halfspace.data.schema import looks_like_key

SECRET = "98765.4321"
SCHEMA = {"size": "number", "day": "date", "ok": "boolean", "code": ["1", "2"], "name": "text"}
HEADER = ["size", "day", "ok", "code", "name", "y"]
ROWS = [
    ["1.5", "2026-01-31", "True", "1", "Ann, B.", "no"],
    ["-2.25", "2026-02-01", "no", "2.0", "", "yes"],
    ["", "", "", "", "NA", "no"],
]


def write(folder, lines, name="own.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return path


def read(path, *more, schema=None):
    options = ["fit", str(path), "--target", "y", "--epsilon", "1", "--save", "m", *more]
    if schema is not None:
        place = write(path.parent, [json.dumps(schema)], "schema.json")
        options += ["--schema", str(place)]
    return read_training_table(parse_options(options))


def written(rows, separator=",", header=HEADER):
    return [separator.join(f'"{cell}"' for cell in row) for row in [header, *rows]]


def cells_of(frame, name, reading=lambda cell: cell):
    """Return the canonical cells of a column, or what a rule makes of them."""
    return [reading(canonical(cell)) for cell in frame[name]]


def check(frame):
    np.testing.assert_array_equal(frame["size"], [1.5, -2.25, np.nan])
    assert cells_of(frame, "day", text_of) == ["2026-01-31", "2026-02-01", None]
    assert cells_of(frame, "ok", truth_of) == [True, False, None]
    assert cells_of(frame, "code", text_of) == ["1", "2", None]
    assert frame["name"].tolist() == ["Ann, B.", "", "NA"]


def test_a_row_without_any_cell_is_a_row_whatever_the_separator(tmp_path):
    """Where one is left out, predictions of all later rows stand in the wrong places."""
    for separator in ",;|\t":
        lines = [separator.join(row) for row in (["a", "b"], ["1", "2"], ["", ""], ["3", "4"])]
        path = write(tmp_path, [*lines[:2], "", *lines[2:]])
        options = parse_options(["predict", "m", str(path), "--out", "o.csv"])
        found = tables.read_table(options, ["a", "b"]).frame
        np.testing.assert_array_equal(found["a"], [1.0, np.nan, 3.0])


@pytest.mark.parametrize("schema", [SCHEMA, None])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_with_and_without_a_schema(tmp_path, separator, schema):
    table = read(write(tmp_path, written(ROWS, separator)), schema=schema)
    if schema is None:  # codes look like numbers then
        assert table.rows["code"].tolist()[:2] == [1.0, 2.0]
        kinds = ["number", "date", "boolean", "number", "text"]
        assert [rule["kind"] for rule in table.rules.values()] == kinds
    check(table.rows)
    assert table.y.tolist() == ["no", "yes", "no"]


@pytest.mark.parametrize(
    ("cell", "separator", "more"),
    [
        ("1,5", ";", []),
        ("1.5", ";", []),
        ("1.000,5", ";", ["--decimal", ","]),
        ("1.000", ";", ["--decimal", ","]),
        ("1,000.5", ",", []),
        ("1,5", ",", ["--decimal", ","]),
        ("1,5", ",", []),
        ("1.000,5", ",", []),
    ],
)
def test_decimal_signs(tmp_path, cell, separator, more):
    lines = written([[cell, "a"], ["2", "b"]], separator, ["x", "y"])
    table = read(write(tmp_path, lines), *more)
    assert table.rows["x"].tolist() == [(1000.0 if "0" in cell else 1.0) + ("5" in cell) / 2.0, 2.0]


@pytest.mark.parametrize(("encoding", "named"), [("utf-16", "utf-16"), ("latin-1", "cp1252")])
def test_a_file_of_another_encoding_is_refused_with_the_one_to_state(tmp_path, encoding, named):
    path = tmp_path / "t.csv"
    path.write_bytes("ort,y\nKöln,a\nBonn,b\n".encode(encoding))
    with pytest.raises(UserError, match=f"use --encoding .*{named}"):
        read(path)
    assert read(path, "--encoding", named).y.tolist() == ["a", "b"]


@pytest.mark.parametrize("cell", ["2026-01-31", "2026/01/31", "2026-01-31T00:00:00Z"])
def test_dates_are_read_row_by_row(tmp_path, cell):
    lines = written([[cell, "a"], ["2026-05-06", "b"], ["never", "b"]], ",", ["d", "y"])
    path = write(tmp_path, lines)
    table = read(path, schema={"d": "date"})
    days = cells_of(table.rows, "d", date_of)
    assert days[0] == (date(2026, 1, 31) - date(1970, 1, 1)).days
    assert np.isnan(days[2])
    assert read(path).rules["d"] == {"kind": "text", "stated": False}
    assert table.rules == {"d": "date"}


def test_odd_files(tmp_path):
    text = "\ufeff" + "\r\n".join([*written(ROWS[:1]), "", *written(ROWS)[2:], ""])
    path = tmp_path / "own.csv"
    path.write_bytes(text.encode())
    check(read(path, schema=SCHEMA).rows)


def test_what_the_file_declares_is_said(tmp_path, capsys):
    lines = ["a,b,y", "1,2,u", "1,2,v"]
    read(write(tmp_path, lines))
    said = "No --classes: the 2 labels found in column 'y' are declared public."
    assert capsys.readouterr().err == f"dp_halfspace: note: {said}\n"
    schema = {"target": ["u", "v", "w"], "columns": {"a": [0, 1], "b": "drop"}}
    table = read(write(tmp_path, lines), schema=schema)
    assert table.classes == ["u", "v", "w"]
    assert not capsys.readouterr().err


def test_facts_that_a_schema_leaves_out_or_writes_as_numbers(tmp_path):
    """A column without a rule is read as if it were not named, and labels are texts."""
    path = write(tmp_path, ["a,b,y", "yes,2026-01-31,0", "no,2026-02-01,1"])
    table = read(path, schema={"target": [0, 1], "columns": {"a": None, "b": None}})
    assert table.classes == table.y.tolist() == ["0", "1"]
    assert [rule["kind"] for rule in table.rules.values()] == ["boolean", "date"]


def test_blanks_in_front_and_behind_belong_to_no_cell_or_name(tmp_path):
    table = read(write(tmp_path, [" a ,y", " 1, no", "2 ,yes "]))
    assert table.rows["a"].tolist() == [1.0, 2.0]
    assert table.y.tolist() == ["no", "yes"]


def test_a_separator_is_the_one_that_finds_the_label(tmp_path):
    path = write(tmp_path, ["a, b, c;y", "1, 2, 3;no", "4, 5, 6;yes"])
    assert list(read(path).rows.columns) == ["a, b, c"]


def test_an_index_is_left_out_and_blanks_of_names_are_not_read(tmp_path):
    frame = pandas.DataFrame({" a ": [1, 2], "y": ["u", "v"]}, index=[7, 9])
    frame.to_parquet(tmp_path / "own.parquet", index=True)
    frame.to_csv(tmp_path / "own.csv")
    for name in ("own.parquet", "own.csv"):
        rows = read(tmp_path / name).rows
        assert {column: rows[column].tolist() for column in rows} == {"a": [1, 2]}


def test_a_file_of_another_program_is_refused_with_what_to_save(tmp_path):
    pandas.DataFrame(ROWS, columns=HEADER).to_stata(tmp_path / "own.dta")
    with pytest.raises(UserError, match="save a table of another program as CSV, Parquet or Excel"):
        read(tmp_path / "own.dta")


def test_labels_of_a_type_are_the_texts_of_a_csv(tmp_path):
    for values in ([True, False, True], [1, 2, 1], [1.0, 2.0, 1.0], ["01", "2", "3.50"]):
        frame = pandas.DataFrame({"a": [1, 2, 3], "y": values})
        frame.to_parquet(tmp_path / "own.parquet")
        frame.to_csv(tmp_path / "own.csv", index=False)
        found = [read(tmp_path / f"own.{kind}").y.tolist() for kind in ("parquet", "csv")]
        assert found[0] == found[1] == [str(v).removesuffix(".0") for v in values]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"a": [5, 1]}, "a lower and a higher end"),
        ({"a": "numbers"}, "column 'a' must be"),
        ({"q": "text"}, "names columns that X does not have: 'q'"),
        ([1], "must be a mapping"),
    ],
)
def test_bad_schemas(tmp_path, schema, words):
    with pytest.raises(UserError, match=words) as caught:
        read(write(tmp_path, ["a,y", "1,u", "2,v"]), schema=schema)
    assert str(caught.value).startswith("--schema")


def test_a_schema_that_is_no_file_is_named(tmp_path):
    table = write(tmp_path, ["a,y", "1,u", "2,v"])
    for place in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(UserError, match=rf"^cannot read {re.escape(str(place))}: "):
            read(table, "--schema", str(place))


def refusal(path, *more):
    with pytest.raises(UserError) as caught:
        read(path, *more)
    text = str(caught.value)
    assert "\n" not in text
    assert "98765" not in text.replace(str(path), "")
    return text


GOOD = ["a,b,y", *(f"{i},x,{i % 2}" for i in range(30))]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "empty"),
        (["a,b,y"], "no rows"),
        ([f"{SECRET},x,1", *GOOD], "no column 'y' in line 1"),
        (["a,a,y", *GOOD[1:]], "two columns"),
        (["y", "1", "0"], "no columns besides 'y'"),
        ([*GOOD, f"{SECRET},x,0,5"], "line 32 has 4 fields, and the header 3"),
        ([*GOOD, f'{SECRET},"x,0'], "line 32 has an unclosed quote"),
        (
            [*GOOD[:5], f'{SECRET},"x,0', f'{SECRET},y",0', *GOOD[5:]],
            "line 6 has an unclosed quote",
        ),
        ([*GOOD, f'{SECRET},"x"x,0'], "closes in the middle of a field"),
        ([*GOOD, f"{SECRET},x,"], "column 'y' is empty in row 31"),
        ([*GOOD, SECRET], "line 32 has 1 fields"),
        (["a,y", *(f"{i},{SECRET}" for i in range(30))], "has fewer than 2 or more than 100"),
        (["a,y", *(f"1,{i}.5" for i in range(300))], "more than 100 labels"),
    ],
)
def test_unusable_tables(tmp_path, lines, words):
    assert words in refusal(write(tmp_path, lines))


def test_unreadable_files(tmp_path, monkeypatch):
    assert "No such file" in refusal(tmp_path / "absent.csv")
    latin = write(tmp_path, ["a,\xe9,y", *GOOD[1:]], "latin.csv", "latin-1")
    assert "use --encoding cp1252" in refusal(latin)
    assert "no such encoding" in refusal(latin, "--encoding", "klingon")
    assert "\xe9" in read(latin, "--encoding", "cp1252").rows
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress("\n".join(GOOD).encode()))
    packed = refusal(tmp_path / "packed.csv.gz")
    assert "it is not text in this encoding" in packed
    assert "unpack a compressed file" in packed
    assert "the same column" in refusal(write(tmp_path, GOOD), "--groups", "y")
    monkeypatch.setitem(sys.modules, "pandas", None)
    line = refusal(write(tmp_path, GOOD))
    assert 'the extra `table` from the checkout: pip install ".[table]"' in line


def test_parquet(tmp_path, monkeypatch):
    path = tmp_path / "own.parquet"
    frame = pandas.DataFrame({"a": [0.5, 1.0, np.nan], "y": ["u", "v", "u"], "c": [1, 2, 3]})
    frame.to_parquet(path)
    table = read(path)
    np.testing.assert_array_equal(table.rows.to_numpy(float), [[0.5, 1], [1, 2], [np.nan, 3]])
    frame.loc[1, "y"] = None
    frame.to_parquet(path)
    assert "empty in row 2" in refusal(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "needs pyarrow: install the extra `parquet`" in refusal(path)


@pytest.mark.parametrize("decimal", [None, ".", "either"])
def test_floats_of_a_csv_have_the_canonical_values_of_their_texts(decimal):
    """Cells that are kept as floats lose nothing; all others stay texts."""
    parts = ["", "0", "-0", "7", "01", "1.5", "-.5", "5.", "1e5", "2E-3", "+3", "-0.0", "20200102"]
    parts += ["9007199254740991", "0.30000000000000004", "1e-400"]
    found = plain_numbers(parts)
    assert found is not None
    for text, number in zip(parts, found.tolist(), strict=True):
        both = canonical(text, decimal), canonical(number, decimal)
        assert both[0] == both[1], text
        assert type(both[0]) is type(both[1]), text
    odd = ["9007199254740993", "1e999", "1,5", "1.234.567", "1_0", "nan", "inf", " 1", "e5"]
    for text in [*odd, "\u0661"]:
        assert plain_numbers([*parts, text]) is None, text


def test_blocks_of_lines_are_one_table(tmp_path, monkeypatch):
    """Whatever block a line falls into, its cells have the same canonical values."""
    cells = ["1.50", "<0.3", "", "01", "12345678901234567", "NA", "2", "1.5", '"1.5"', "yes"]
    path = write(tmp_path, ["a;y", *(f"{cell};{k % 2}" for k, cell in enumerate(cells))])
    wanted = [canonical(cell.strip('"'), "either") for cell in cells]
    for lines in (1, 2, 3, 100):
        monkeypatch.setattr(tables, "LONG_BLOCK", lines)
        for schema in ({"a": "text"}, {"a": {"kind": "date", "format": "%d"}}):
            table = read(path, schema=schema)
            assert [canonical(cell, "either") for cell in table.rows["a"]] == wanted
            assert table.y.tolist() == ["0", "1"] * 5
    dates = read(path, schema={"a": {"kind": "date", "format": "%d"}}).rows["a"]
    assert dates.tolist()[:4] == ["1.50", "<0.3", "", "01"]


def test_excel(tmp_path, monkeypatch):
    """Cells of a sheet have types of their own, and the canonical values of a CSV."""
    path = write(tmp_path, ["x"], "own.xlsx")
    rows = [
        HEADER,
        [1.5, date(2026, 1, 31), True, 1, "Ann, B.", "no"],
        [-2.25, date(2026, 2, 1), False, 2, "", "yes"],
        ["", "", "", "", "NA", "no"],
    ]
    sheet = pandas.DataFrame(rows, dtype=object)
    given = {}
    monkeypatch.setattr(pandas, "read_excel", lambda *_, **more: given.update(more) or sheet)
    table = read(path, schema=SCHEMA)
    check(table.rows)
    # No type that pandas would choose for a column, and no text that it would take for missing.
    assert given == {"header": None, "dtype": object, "keep_default_na": False}
    assert table.y.tolist() == ["no", "yes", "no"]

    def fail(*_, **__):
        raise ImportError("no engine")

    monkeypatch.setattr(pandas, "read_excel", fail)
    assert "pip install openpyxl), or save the sheet as CSV" in refusal(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("odd", [None, "unknown", 3.5, 10**17, True, datetime(2026, 3, 1, 12, 30)])
def test_a_cell_of_an_excel_file_is_read_by_itself(tmp_path, odd):
    """The other cells of its column have the same canonical values whatever stands in one."""
    pytest.importorskip("openpyxl")
    cells = [
        1.5,
        2,
        None,
        "<0.3",
        True,
        date(2026, 1, 31),
        datetime(2026, 1, 31, 9, 15),
        "01",
        "NA",
    ]
    rows = pandas.DataFrame({"a": [*cells, odd], "y": ["no", "yes"] * 5}, dtype=object)
    path = tmp_path / "own.xlsx"
    rows.to_excel(path, index=False)
    table = read(path)
    found = [canonical(cell, "either") for cell in table.rows["a"]]
    assert found[:-1] == [canonical(cell, "either") for cell in cells]
    assert table.y.tolist() == ["no", "yes"] * 5
    if odd is not None:
        assert found[-1] == canonical(odd, "either")


def test_a_date_of_an_excel_file_that_does_not_exist_is_missing_without_a_word(tmp_path):
    """openpyxl, by itself, quotes the cell in a warning and says where it stands."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["day", "y"], [date(2026, 1, 31), "no"], [1e10, "yes"]):
        book.active.append(row)
    book.active["B3"].number_format = book.active["A3"].number_format = "yyyy-mm-dd"
    book.save(tmp_path / "own.xlsx")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = read(tmp_path / "own.xlsx", schema={"day": "date"}).rows
    assert [canonical(cell) for cell in frame["day"]] == [canonical(date(2026, 1, 31)), None]


@pytest.mark.parametrize("odd", ["<v>1e999</v>", "<v>x</v>", "<v>&x;</v>", "<v>1</w>"])
def test_a_damaged_cell_of_a_sheet_has_one_message(tmp_path, odd):
    """The reader raises errors of several types, of which one states the place in the file."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["size", "y"], [1.5, "no"], [2.5, "yes"]):
        book.active.append(row)
    book.save(tmp_path / "own.xlsx")
    with zipfile.ZipFile(tmp_path / "own.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "own.xlsx", "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part.replace(b"<v>1.5</v>", odd.encode()))
    found = refusal(tmp_path / "own.xlsx")
    assert found.endswith("own.xlsx: it is damaged, or its ending is wrong")


@pytest.mark.parametrize("place", ["D3", "H2"])
def test_a_cell_of_a_sheet_beyond_the_header_is_in_no_column(tmp_path, place):
    """The number of columns is public, and a note states how many have no name."""
    openpyxl = pytest.importorskip("openpyxl")
    tables_read = []
    for odd in (None, "note"):
        book = openpyxl.Workbook()
        for row in (["size", None, "y"], [1.5, 0, "no"], [2.5, 1, "yes"]):
            book.active.append(row)
        book.active[place] = odd
        book.save(tmp_path / "own.xlsx")
        tables_read.append(read(tmp_path / "own.xlsx", schema={"size": "number"}))
    pandas.testing.assert_frame_equal(*(table.rows for table in tables_read))
    assert list(tables_read[0].rows.columns) == ["size"]


def test_columns_are_dropped_and_keys_are_named(tmp_path, capsys):
    path = write(tmp_path, ["patient_id,age,y", *(f"{k},{k},{k % 2}" for k in range(6))])
    table = read(path, "--drop", "patient_id")
    assert table.rules["patient_id"] == "drop"
    assert "may identify rows" not in capsys.readouterr().err
    read(path)
    said = "these features may identify rows or persons: 'patient_id'."
    assert said in capsys.readouterr().err
    assert "there is no column 'other'" in refusal(path, "--drop", "other")
    assert "there is no column 'other', 'one'" in refusal(path, "--drop", "other", "one")
    for words in (["patient_id,age"], ["patient_id", "age"], ["patient_id,", "age"]):
        dropped = read(path, "--drop", *words).rules
        assert dropped == {"patient_id": "drop", "age": "drop"}
    assert refusal(path, "--drop", "patientid").endswith("; did you mean patient_id?")
    assert "--target or --groups" in refusal(path, "--drop", "y")


@pytest.mark.parametrize(
    "name",
    [
        *("id", "ID", "patientId", "visit-uuid", "mrn", "SSN", "case_id_2", "Unnamed: 0"),
        *("EmployeeNumber", "USUBJID", "SUBJID", "patient_nbr", "NHSNumber", "SEQN", "Fallnummer"),
        *("encounter_id", "Patientennummer", "PatNr", "customerID", "Employee Number", "caseno"),
        *("pidnum", "person", "Patient", "Name", "last_name", "E-Mail", "N° patient"),
        *("Numéro de dossier", "codice_paziente"),
    ],
)
def test_a_name_of_an_identifier(name):
    assert looks_like_key(name)


@pytest.mark.parametrize(
    "name",
    [
        *("age", "acid", "lipid_ratio", "idle", "hybrid", "paid", "EmployeeCount", "visit_number"),
        *("num_lab_procedures", "number_of_patients", "patient_age", "zip_code", "sex_code"),
        *("admission_type", "casein", "stay_length", "falls", "fall_risk", "user_rating"),
        *("drug_name", "nombre_de_patients", "email_sent"),
    ],
)
def test_a_name_of_a_feature(name):
    assert not looks_like_key(name)


def test_a_title_above_the_header_is_named_as_such(tmp_path):
    path = write(tmp_path, ["All patients", "size,y", "1,a", "2,b"])
    assert refusal(path).endswith("remove the title or comments above it")
    path = write(tmp_path, ["size,y", "# of 2020", "1,a", "2,b"])
    assert "line 2 has 1 fields" in refusal(path)
    assert "such as a title, comments or units" in refusal(path)
    path = write(tmp_path, ["size,y", "cm,", "1,a", "2,b"])
    assert "column 'y' is empty in row 1 below the header" in refusal(path)
    path = write(tmp_path, ["other;names", "1,5;a", "2,5;b"])
    assert refusal(path).startswith("there is no column 'y' in line 1, the header, of")


def test_a_column_that_is_missing_is_looked_for_where_a_file_has_names(tmp_path):
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    table, sheet, parquet = (
        pandas.DataFrame({"x": [1]}),
        tmp_path / "a.xlsx",
        tmp_path / "a.parquet",
    )
    table.to_excel(sheet, index=False)
    table.to_parquet(parquet)
    assert "'y' in line 1, the header, of the first sheet of" in refusal(sheet)
    assert refusal(parquet) == f"there is no column 'y' in {parquet}"


def test_a_long_cell_needs_its_own_room_alone(tmp_path):
    long = "x" * 10**6
    lines = ["person,size,y", f"{long},1,a", *(f"p{k},{k},{'ab'[k % 2]}" for k in range(300))]
    table = read(write(tmp_path, lines), "--groups", "person")
    assert table.groups.dtype == object
    assert sorted(map(len, table.groups))[-1] == len(long)
    lines = ["size,y", f"1,{long}", *(f"{k},{'ab'[k % 2]}" for k in range(300))]
    assert "or one of more than 1000 characters" in refusal(write(tmp_path, lines))
    lines = [f"{'z' * 200_000},y", *(f"{k},{'ab'[k % 2]}" for k in range(9))]
    assert len(read(write(tmp_path, lines)).rows.columns[0]) == 200_000


NUMERALS = (
    *("0", "-0", "+5", "007", "1.50", "1e3", "1E-5", "20240105", ".5", "5.", "", "0.1", "1_0"),
    *("123456789.123456789", "9007199254740993", "9007199254740991", "2.5e-324", "1e22", "00.10"),
)
ODD = ("<0.3", "NA", "abc", "1,5", '"x"', "2024-01-05", "true", "1e400", " 7 ", "1.234.567")
RULES = {
    "number": "number",
    "range": [0, 100],
    "text": "text",
    "categories": ["1", "7", "0.1", "1.5", "20240105"],
    "numbers": {"categories": [0, 1, 7]},
    "date": "date",
    "boolean": "boolean",
    "words": "words",
    "format": {"kind": "date", "format": "%Y%m%d"},
}


def encoded_beside(folder, cells, odd):
    """Encode a file whose sixth row holds one odd cell in every column; return the other rows."""
    rows = [[cells[(k + 3 * j) % len(cells)] for j in range(len(RULES))] for k in range(len(cells))]
    rows[5] = [odd] * len(RULES) if odd is not None else rows[5]
    lines = [";".join([*row, "no" if k % 2 else "yes"]) for k, row in enumerate(rows)]
    table = read(write(folder, [";".join([*RULES, "y"]), *lines]), schema=RULES)
    model = PrivateTableClassifier(schema=table.rules, classes=["no", "yes"])
    found = model._validate(table.rows, table.y, None).X
    return np.delete(found, 5, axis=0).tobytes()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("lines", [4, 100])
def test_an_odd_cell_of_a_csv_moves_no_bit_of_another_row(tmp_path, monkeypatch, odd, lines):
    """By every rule, whether or not it keeps its block, or its column, from being floats."""
    monkeypatch.setattr(tables, "LONG_BLOCK", lines)
    assert encoded_beside(tmp_path, NUMERALS, odd) == encoded_beside(tmp_path, NUMERALS, None)


def test_planted_bug_floats_that_lose_digits_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FIRST_ROUNDED", 1e30)
    cells = [cell for cell in NUMERALS if "_" not in cell]
    assert encoded_beside(tmp_path, cells, "abc") != encoded_beside(tmp_path, cells, None)


def test_a_quote_in_another_line_does_not_decide_how_long_a_cell_may_be(tmp_path):
    """Python's reader of quotes refuses more than 128 kB, unless it is told."""
    path, long = tmp_path / "notes.csv", "word " * 27_000
    found, limits = [], set()
    for last in ("a", '"a"', f'"{long}{long}"'):
        lines = ["a,b,y", f"1,{long},0", *GOOD[1:], f"2,{last},1"]
        path.write_text("\n".join(lines) + "\n")
        options = ["fit", str(path), "--target", "y", "--epsilon", "1", "--save", "m"]
        found.append(read_training_table(parse_options(options)).rows)
        limits.add(csv.field_size_limit())
    pandas.testing.assert_frame_equal(*found[:2])
    assert found[0]["b"].iloc[0] == long.strip()
    # The limit belongs to the process and outlives the file.
    assert len(limits) == 1


def test_a_rule_of_the_labels_is_left_out_and_that_of_a_column_precedes_the_file(tmp_path):
    """A file with commas between its columns has 1,234 for 1234, unless the schema says no."""
    lines = ["a,b,y", *(f'"1,234","1,234",{i % 2}' for i in range(30))]
    schema = {"a": {"kind": "number", "decimal": ","}, "b": "number", "y": [0, 1]}
    table = read(write(tmp_path, lines), schema=schema)
    assert table.rows.iloc[0].tolist() == [1.234, 1234.0]
    assert "y" not in table.rules
