"""Data for a comparison: the built-in table, tables of the user, svmlight files."""

import bz2
import json

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.datasets import dump_svmlight_file

from dp_halfspace._cli.arguments import UserError, parse_options
from dp_halfspace._cli.problems import own_problem

ROWS = [f"{i},{'u' if i % 3 else 'w'},{i % 2}" for i in range(40)]


def read(path, *more, target="y"):
    named = [] if target is None else ["--target", target]
    return own_problem(parse_options(["compare", str(path), *named, *more]))


def write(folder, lines, name="own.csv"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_columns_are_encoded_by_public_rules(tmp_path):
    table = write(tmp_path, ["age,kind,y", *ROWS])
    plain = read(table)
    assert (plain.data_norm, plain.classes) == (None, ["0", "1"])
    assert plain.X[:3, 0].tolist() == [0.0, 1.0, 2.0]
    schema = write(tmp_path, [json.dumps({"age": [0, 20], "kind": ["u", "w"]})], "schema.json")
    problem = read(table, "--schema", str(schema))
    half = np.sqrt(0.5)
    np.testing.assert_allclose(problem.X[[0, 5, 30]], [[-1, half], [-0.5, -half], [1, half]])
    assert problem.data_norm == pytest.approx(np.sqrt(2) / 2)
    assert problem.rules == {"age": [0, 20], "kind": ["u", "w"]}
    assert list(problem.table.columns) == ["age", "kind"]
    assert read(table, "--data-norm", "3").data_norm == 3


def test_holes_stay_holes_where_units_are_learnt(tmp_path):
    lines = ["age,kind,y", "?,u,0", *ROWS]
    assert np.isnan(read(write(tmp_path, lines)).X[0, 0])
    assert read(write(tmp_path, lines), "--data-norm", "1").X[0, 0] == 0.0


@pytest.mark.parametrize("suffix", [".svm", ".svmlight", ".libsvm", ".txt"])
def test_svmlight_files(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), np.arange(30) % 3
    path = tmp_path / f"own{suffix}"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    problem = read(path, target=None)
    assert issparse(problem.X)
    np.testing.assert_allclose(problem.X.toarray(), X)
    assert (problem.classes, problem.data_norm) == ([0, 1, 2], 1.0)
    packed = tmp_path / f"own{suffix}.bz2"
    packed.write_bytes(bz2.compress(path.read_bytes()))
    np.testing.assert_array_equal(read(packed, target=None).X.toarray(), problem.X.toarray())


@pytest.mark.parametrize(
    ("name", "lines", "words"),
    [
        ("own.svm", ["1 a:98765"] * 30, "damaged"),
        ("own.svm", ["1 1:98765", "-1 1:inf"] * 15, "not finite"),
        ("own.svm", ["98765 1:1"] * 30, "same label"),
        ("own.csv", ["a,b,y", *ROWS[:19]], "19 rows"),
        ("own.csv", ["a,b,y", *(f"{i},1,{i == 3}" for i in range(30))], "only one row"),
        ("own.csv", ["a,y", *(f"{i},c{i // 2}" for i in range(40))], "--test-size 0.3"),
    ],
)
def test_what_cannot_be_compared(tmp_path, name, lines, words):
    path = write(tmp_path, lines, name)
    with pytest.raises(UserError) as caught:
        read(path, target=None if name.endswith("svm") else "y")
    text = str(caught.value)
    assert words in text
    assert "98765" not in text
    assert "\n" not in text


def test_target_and_format_must_agree(tmp_path):
    with pytest.raises(UserError, match="--target must name"):
        read(write(tmp_path, ["a,y", *ROWS]), target=None)
    with pytest.raises(UserError, match="--target is not used"):
        read(write(tmp_path, ["1 1:1", "-1 1:2"] * 15, "own.svm"))
