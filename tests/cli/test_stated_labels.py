"""Labels that are stated for a file: written as in the file, they are those of the file."""

import json
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace import PrivateTableClassifier
from dp_halfspace._cli import main
from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.tables import read_training_table


def read(folder, cells, stated):
    """Read a file with these labels; texts are stated as an option, other labels in a schema."""
    table, schema = folder / "own.csv", folder / "schema.json"
    table.write_text("\n".join(["a,y", *(f"{i},{cell}" for i, cell in enumerate(cells))]))
    words = ["--classes", ",".join(map(str, stated))]
    if not isinstance(stated[0], str):
        schema.write_text(json.dumps({"columns": {"a": "number"}, "target": stated}))
        words = ["--schema", str(schema)]
    options = ["fit", str(table), "--target", "y", "--epsilon", "1", "--save", "m", *words]
    return read_training_table(parse_options(options))


@pytest.mark.parametrize("stated", [["0.0", "1.0"], ["0", "1"], [0.0, 1.0], [0, 1]])
def test_whole_numbers_have_no_fraction_where_they_are_stated(tmp_path, stated):
    found = read(tmp_path, ["0.0", "1.0", "1.0"], stated)
    assert found.classes == ["0", "1"]
    assert found.y.tolist() == ["0", "1", "1"]


@pytest.mark.parametrize("stated", [[False, True], ["FALSE", "TRUE"], ["true", "false"]])
@pytest.mark.parametrize("cells", [["false", "true"], ["False", "True"], ["FALSE", "true"]])
def test_booleans_have_the_spelling_in_which_they_are_stated(tmp_path, stated, cells):
    found = read(tmp_path, cells, stated)
    no, yes = sorted(map(str, stated), key=str.lower)
    assert found.classes == list(map(str, stated))
    assert found.y.tolist() == [no, yes]


def test_labels_as_they_are_written_come_before_other_spellings(tmp_path):
    found = read(tmp_path, ["1", "01", "2.50"], ["1", "01", "2.5"])
    assert found.y.tolist() == ["1", "01", "2.5"]


@pytest.mark.parametrize(("labels", "cells"), [([0, 1], "01"), ([False, True], ["FALSE", "true"])])
def test_a_model_of_numbers_or_booleans_is_scored_with_the_texts_of_a_file(
    tmp_path, monkeypatch, capsys, labels, cells
):
    monkeypatch.chdir(tmp_path)
    table = pandas.DataFrame({"a": np.arange(600.0)})
    high = (table["a"] > 300).to_numpy().astype(int)
    model = PrivateTableClassifier(epsilon=9, classes=labels, schema={"a": [0, 600]})
    joblib.dump(model.fit(table, np.array(labels)[high]), "m.joblib")
    table.assign(y=np.array(list(cells))[high]).to_csv("t.csv", index=False)
    assert main(["evaluate", "m.joblib", "t.csv", "--target", "y", "--epsilon", "9"]) == 0
    assert float(capsys.readouterr().out.split()[6]) > 0.8


@pytest.mark.parametrize("other", ["maybe", "2.5"])
def test_other_labels_than_those_of_a_model_of_numbers_are_not_called_a_mixture(
    tmp_path, monkeypatch, capsys, other
):
    monkeypatch.chdir(tmp_path)
    table = pandas.DataFrame({"a": np.arange(60.0)})
    model = PrivateTableClassifier(epsilon=9, classes=[0, 1], schema={"a": [0, 60]})
    joblib.dump(model.fit(table, np.arange(60) % 2), "m.joblib")
    table.assign(y=["0", "1", other] * 20).to_csv("t.csv", index=False)
    assert main(["evaluate", "m.joblib", "t.csv", "--target", "y", "--epsilon", "9"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("column 'y' of t.csv has labels other than 0, 1")


@pytest.mark.parametrize("target", [5, True, 0.5, [None, 1]])
def test_a_target_that_is_no_list_is_refused(tmp_path, monkeypatch, capsys, target):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,y\n1,0\n2,1\n")
    Path("s.json").write_text(json.dumps({"columns": {"a": "number"}, "target": target}))
    fit = ["fit", "t.csv", "--target", "y", "--epsilon", "1", "--schema", "s.json", "--dry-run"]
    assert main(fit) == 2
    assert "target of schema must be a list of labels" in capsys.readouterr().err
