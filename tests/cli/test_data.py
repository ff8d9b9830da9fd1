"""Own data: what is read, and refusals that never show a value."""

import bz2
import gzip
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.sparse import issparse
from sklearn.datasets import dump_svmlight_file

from dp_halfspace._cli.arguments import UserError, parse_options
from dp_halfspace._cli.data import read_problem

SECRET = "98765.4321"
ROWS = [f"{i / 40},{1 - i / 40},{i % 2}" for i in range(40)]


def csv_file(folder, lines, name="own.csv"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path, target="y", test_size=0.3, more=()):
    named = [] if target is None else ["--target", target]
    return read_problem(
        parse_options(["--data", str(path), *named, "--test-size", str(test_size), *more])
    )


@pytest.fixture
def lines():
    return ["a,b,y", *ROWS]


def test_target_may_stand_anywhere_and_be_text(tmp_path):
    lines = ["kind; a ;b", *(f"{'yes' if i % 2 else 'no'};{i};{-i}" for i in range(40))]
    problem = read(csv_file(tmp_path, lines), target="kind")
    assert problem.classes == ["no", "yes"]
    assert problem.X[5].tolist() == [5.0, -5.0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_finds_the_delimiter_and_skips_blank_lines_and_a_byte_order_mark(tmp_path, delimiter):
    text = "\n".join(["a,b,y", *ROWS[:20], "", *ROWS[20:], ""]).replace(",", delimiter)
    path = tmp_path / "own.CSV"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    problem = read(path)
    np.testing.assert_allclose(problem.X[[3, 25]], [[3 / 40, 37 / 40], [25 / 40, 15 / 40]])
    assert (problem.name, problem.classes) == ("own.CSV", [0, 1])


def test_quoted_cells(tmp_path):
    lines = ['"a, of b","y"', *(f'"{i}","c{i % 2}"' for i in range(40))]
    problem = read(csv_file(tmp_path, lines))
    assert problem.X[:3, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed_files(tmp_path, lines, suffix, pack):
    path = tmp_path / f"own.csv{suffix}"
    path.write_bytes(pack("\n".join(lines).encode()))
    assert read(path).X.shape == (40, 2)
    svm = tmp_path / f"own.svm{suffix}"
    svm.write_bytes(pack(b"1 1:0.5 3:1\n-1 2:1\n" * 15))
    problem = read(svm, target=None)
    assert issparse(problem.X)
    assert problem.X.shape == (30, 3)
    assert problem.classes == [-1, 1]


@pytest.mark.parametrize("suffix", [".svm", ".svmlight", ".libsvm", ".txt"])
def test_svmlight_files(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 3
    path = tmp_path / f"own{suffix}"
    dump_svmlight_file(X, y, str(path), zero_based=False, comment="a comment")
    problem = read(path, target=None)
    np.testing.assert_allclose(problem.X.toarray(), X)
    assert problem.classes == [0, 1, 2]


def test_labels_that_are_not_whole_numbers_stay_apart(tmp_path):
    lines = ["a,y", *(f"{i},{0.5 if i % 2 else 1.5}" for i in range(40))]
    assert read(csv_file(tmp_path, lines)).classes == [0.5, 1.5]
    lines = ["a,y", *(f"{i},{'inf' if i % 2 else 1}" for i in range(40))]
    assert read(csv_file(tmp_path, lines)).classes == ["1", "inf"]


def test_columns_are_mapped_by_public_ranges(tmp_path):
    lines = ["age,y,weight", *(f"{i},{i % 2},{50 + i}" for i in range(40))]
    table = csv_file(tmp_path, lines)
    plain = read(table)
    assert (plain.data_norm, plain.own_units, plain.scaling.split(";")[0]) == (
        1.0,
        True,
        "columns as in the file",
    )
    ranges = csv_file(tmp_path, ["column,low,high", "weight,50,70", "age,0,120"], "ranges.csv")
    problem = read(table, more=["--ranges", str(ranges)])
    np.testing.assert_allclose(problem.X[[0, 30]], [[-1, -1], [-0.5, 1]])
    assert problem.data_norm == pytest.approx(np.sqrt(2) / 2)
    assert not problem.own_units
    assert "ranges.csv" in problem.scaling
    assert read(table, more=["--ranges", str(ranges), "--data-norm", "3"]).data_norm == 3


def refusal(path, target="y", test_size=0.3, more=()):
    with pytest.raises(UserError) as caught:
        read(path, target, test_size, more)
    text = str(caught.value)
    assert "\n" not in text
    assert Path(path).name in text
    assert "98765" not in text.replace(str(path), "")  # pytest names folders after parameters
    return text


GOOD = ["a,b,y", *ROWS]


def row_8(line):
    return [*GOOD[:7], line, *GOOD[8:]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (row_8(f"x{SECRET},1,0"), ["column 'a'", "not a finite number", "line 8"]),
        (row_8(f"{SECRET},,0"), ["column 'b'", "empty", "line 8"]),
        (row_8(f"nan,{SECRET},0"), ["column 'a'", "finite", "line 8"]),
        (row_8(f"1,1e999,{SECRET}"), ["column 'b'", "finite", "line 8"]),
        (row_8(f"{SECRET},1"), ["column 'y'", "empty", "line 8"]),
        (row_8(f"{SECRET},1,0,5"), ["line 8", "Expected 3 fields", "saw 4"]),
        (row_8(f"{SECRET},1,"), ["column 'y'", "empty", "line 8"]),
        (row_8(f'{SECRET},"1,0'), ["not a table", "string"]),
        (row_8(f'{SECRET},"1"x,0'), ["column 'b'", "not a finite number", "line 8"]),
        ([GOOD[0], "1,2,3,4", *ROWS], ["line 2", "saw 4"]),
        ([*GOOD[:3], "", f"x{SECRET},1,0", *ROWS], ["line 5"]),
        (["a,b,z", *ROWS], ["no column 'y'", "line 1"]),
        ([f"{SECRET},2,3", *ROWS], ["no column 'y'", "header"]),
        (["a,a,y", *ROWS], ["two columns", "'a'"]),
        ([",b,y", *ROWS], ["column 1", "no name"]),
        ([""], ["empty"]),
        (["y", *(str(i % 2) for i in range(40))], ["no column besides 'y'"]),
        (["a,b,y"], ["0 rows", "20"]),
        (GOOD[:20], ["19 rows", "20"]),
        (["a,b,y", *(f"{i},1,7" for i in range(30))], ["same label"]),
        (["a,y", *(f"{i},{i}.5" for i in range(300))], ["more than 100"]),
        (["a,y", *(f"{i},{i == 3}" for i in range(30))], ["only one row"]),
        (["a,y", *(f"{i},c{i // 2}" for i in range(40))], ["--test-size 0.3", "classes"]),
    ],
)
def test_unusable_tables(tmp_path, lines, words):
    text = refusal(csv_file(tmp_path, lines))
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    "line",
    [
        f"1 1:{SECRET} 1:2",
        f"1 2:1 1:{SECRET}",
        f"1 a:{SECRET}",
        f"x{SECRET} 1:1",
        f"1 1:{SECRET} 2:inf",
        f"nan 1:{SECRET}",
        f"1,{SECRET},2",
    ],
)
def test_bad_svmlight_lines(tmp_path, line):
    good = ["1 qid:1 1:1 3:0.5", "-1 qid:1 2:1  # no fault", *["1 1:1", "-1 2:1"] * 15]
    path = csv_file(tmp_path, [*good[:4], line, *good[4:]], "own.svm")
    assert "line 5 of" in refusal(path, target=None)


def test_svmlight_without_features(tmp_path):
    path = csv_file(tmp_path, ["1", "-1"] * 15, "own.svm")
    assert "no features" in refusal(path, target=None)


def test_target_and_format_must_agree(tmp_path, lines):
    assert "--target must name" in refusal(csv_file(tmp_path, lines), target=None)
    svm = csv_file(tmp_path, ["1 1:1", "-1 1:2"] * 15, "own.svm")
    assert "--target is not used" in refusal(svm)
    assert "--ranges is not used" in refusal(svm, target=None, more=["--ranges", "r.csv"])
    assert "must end in .csv" in refusal(csv_file(tmp_path, lines, "own.xlsx"))
    assert "must end in .csv" in refusal(csv_file(tmp_path, lines, "own.gz"))


def test_unreadable_files(tmp_path, lines):
    assert "No such file" in refusal(tmp_path / "absent.csv")
    assert "No such file" in refusal(tmp_path / "absent.svm.bz2", target=None)
    (tmp_path / "folder.csv").mkdir()
    assert "cannot read" in refusal(tmp_path / "folder.csv")
    latin = tmp_path / "latin.csv"
    latin.write_bytes("\n".join(lines).replace("a", "\xe9").encode("latin-1"))
    assert "UTF-8" in refusal(latin)
    plain = csv_file(tmp_path, lines, "plain.csv.gz")
    assert "damaged" in refusal(plain)
    assert "damaged" in refusal(csv_file(tmp_path, lines, "plain.csv.bz2"))
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress("\n".join([lines[0], *ROWS * 50]).encode())[:-20])
    assert "damaged" in refusal(cut)


def test_parquet_and_what_is_missing(tmp_path, monkeypatch):
    frame = pandas.DataFrame({"a": np.arange(40) / 2, "y": ["u", "v"] * 20, "c": [1, 2] * 20})
    path = csv_file(tmp_path, [], "own.parquet")
    monkeypatch.setattr(pandas, "read_parquet", lambda _: frame)
    problem = read(path)
    np.testing.assert_array_equal(problem.X, frame[["a", "c"]])
    assert problem.classes == ["u", "v"]
    frame.loc[6, "a"] = np.nan
    assert "column 'a' is empty in row 7" in refusal(path)
    monkeypatch.setattr(pandas, "read_parquet", lambda _: int(SECRET))
    assert "damaged" in refusal(path)
    monkeypatch.setattr(pandas, "read_parquet", lambda _: __import__("absent_package"))
    with pytest.raises(UserError, match="needs pyarrow"):
        read(path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"needs pandas: pip install 'dp-halfspace\[table\]'"):
        read(path)
