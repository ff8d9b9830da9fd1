"""Files as they come: one frame for all ways to write a table, and refusals without a value."""

import bz2
import gzip
import json
import sys
import zipfile
from datetime import date

import numpy as np
import pandas
import pytest

from dp_halfspace._cli.arguments import UserError, parse_options
from dp_halfspace._cli.training_table import read_training_table
from dp_halfspace.data.cells import canonical, date_of, text_of, truth_of

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


@pytest.mark.parametrize("schema", [SCHEMA, None])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separators_with_and_without_a_schema(tmp_path, separator, schema):
    table = read(write(tmp_path, written(ROWS, separator)), schema=schema)
    if schema is None:  # codes look like numbers then
        assert table.frame["code"].tolist()[:2] == [1.0, 2.0]
        kinds = ["number", "date", "boolean", "number", "text"]
        assert [rule["kind"] for rule in table.rules.values()] == kinds
    check(table.frame)
    assert table.y.tolist() == ["no", "yes", "no"]


@pytest.mark.parametrize(
    ("cell", "separator", "more"),
    [
        ("1,5", ";", []),
        ("1.5", ";", []),
        ("1.000,5", ";", ["--decimal", ","]),
        ("1,000.5", ",", []),
        ("1,5", ",", ["--decimal", ","]),
    ],
)
def test_decimal_signs(tmp_path, cell, separator, more):
    lines = written([[cell, "a"], ["2", "b"]], separator, ["x", "y"])
    table = read(write(tmp_path, lines), *more)
    assert table.frame["x"].tolist() == [1000.5 if "0" in cell else 1.5, 2.0]


@pytest.mark.parametrize("cell", ["2026-01-31", "31.01.2026", "01/31/2026", "2026-01-31T00:00:00Z"])
def test_dates_are_read_row_by_row(tmp_path, cell):
    lines = written([[cell, "a"], ["2026-05-06", "b"], ["never", "b"]], ",", ["d", "y"])
    path = write(tmp_path, lines)
    table = read(path, schema={"d": "date"})
    days = cells_of(table.frame, "d", date_of)
    assert days[0] == (date(2026, 1, 31) - date(1970, 1, 1)).days
    assert np.isnan(days[2])
    assert read(path).rules["d"] == {"kind": "text", "stated": False}
    assert table.rules == {"d": "date"}


@pytest.mark.parametrize(
    ("name", "pack"), [("own.csv.gz", gzip.compress), ("own.csv.bz2", bz2.compress)]
)
def test_compressed_and_odd_files(tmp_path, name, pack):
    text = "\ufeff" + "\r\n".join([*written(ROWS[:1]), "", *written(ROWS)[2:], ""])
    path = tmp_path / name
    path.write_bytes(pack(text.encode()))
    check(read(path, schema=SCHEMA).frame)
    with zipfile.ZipFile(tmp_path / "own.csv.zip", "w") as file:
        file.writestr("own.csv", text)
    check(read(tmp_path / "own.csv.zip", schema=SCHEMA).frame)


def test_what_the_file_declares_is_said(tmp_path):
    lines = ["a,b,y", "1,2,u", "1,2,v"]
    unstated, labels = read(write(tmp_path, lines)).notes
    assert unstated.startswith("2 of 2 columns are not in a --schema")
    assert labels == "No --classes: the 2 labels found in column 'y' are declared public."
    schema = {"target": ["u", "v", "w"], "columns": {"a": [0, 1], "b": "drop"}}
    table = read(write(tmp_path, lines), schema=schema)
    assert (table.notes, table.classes) == ((), ["u", "v", "w"])


def test_schema_of_several_tables(tmp_path):
    path = write(tmp_path, ["a,y", "1,u", "2,v"])
    entry = {"target": ["u", "v"], "columns": {"a": [0, 9]}, "rows": 2}
    assert read(path, schema={"other": entry, "own": entry}).rules == {"a": [0, 9]}
    with pytest.raises(UserError, match="none is named 'own', as TABLE is"):
        read(path, schema={"other": entry})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"a": [5, 1]}, "a lower and a higher end"),
        ({"a": "numbers"}, "column 'a' must be"),
        ({"q": "text"}, "names the column 'q'"),
        ([1], "must be a mapping"),
    ],
)
def test_bad_schemas(tmp_path, schema, words):
    with pytest.raises(UserError, match=words) as caught:
        read(write(tmp_path, ["a,y", "1,u", "2,v"]), schema=schema)
    assert str(caught.value).startswith("--schema")


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
        ([*GOOD, f'{SECRET},"x,0'], "line 32 has a quote that is not closed"),
        ([*GOOD[:5], f'{SECRET},"x,0', f'{SECRET},y",0', *GOOD[5:]], "line 6 has a quote"),
        ([*GOOD, f'{SECRET},"x"x,0'], "closed in the middle of a field"),
        ([*GOOD, f"{SECRET},x,"], "column 'y' is empty in row 31"),
        ([*GOOD, SECRET], "line 32 has 1 fields"),
        (["a,y", *(f"{i},{SECRET}" for i in range(30))], "same label; state the label set"),
        (["a,y", *(f"1,{i}.5" for i in range(300))], "more than 100 different labels"),
    ],
)
def test_unusable_tables(tmp_path, lines, words):
    assert words in refusal(write(tmp_path, lines))


def test_unreadable_files(tmp_path, monkeypatch):
    assert "No such file" in refusal(tmp_path / "absent.csv")
    latin = write(tmp_path, ["a,\xe9,y", *GOOD[1:]], "latin.csv", "latin-1")
    assert "say --encoding cp1252" in refusal(latin)
    assert "no such encoding" in refusal(latin, "--encoding", "klingon")
    assert "\xe9" in read(latin, "--encoding", "cp1252").frame
    assert "damaged" in refusal(write(tmp_path, GOOD, "plain.csv.gz"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress("\n".join(GOOD * 50).encode())[:-20])
    assert "damaged" in refusal(tmp_path / "cut.csv.gz")
    label = refusal(write(tmp_path, GOOD), "--classes", "0,2")
    assert "holds a label that is not in the label set" in label
    assert "the same column" in refusal(write(tmp_path, GOOD), "--groups", "y")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install 'dp-halfspace[table]'" in refusal(write(tmp_path, GOOD))


def test_parquet(tmp_path, monkeypatch):
    path = write(tmp_path, [], "own.parquet")
    frame = pandas.DataFrame({"a": [0.5, 1.0, np.nan], "y": ["u", "v", "u"], "c": [1, 2, 3]})
    monkeypatch.setattr(pandas, "read_parquet", lambda _, **__: frame)
    table = read(path)
    np.testing.assert_array_equal(table.frame.to_numpy(float), [[0.5, 1], [1, 2], [np.nan, 3]])
    frame.loc[1, "y"] = None
    assert "empty in row 2" in refusal(path)

    def fail(_, **__):
        raise ImportError("no engine", name="pyarrow")

    monkeypatch.setattr(pandas, "read_parquet", fail)
    assert "needs pyarrow: pip install pyarrow" in refusal(path)
