"""Labels that are stated for a file: written as in the file, they are those of the file."""

import json

import pytest

from dp_halfspace._cli.arguments import parse_options
from dp_halfspace._cli.tables import read_training_table


@pytest.mark.parametrize("stated", [["0.0", "1.0"], ["0", "1"], [0.0, 1.0], [0, 1]])
def test_whole_numbers_have_no_fraction_where_they_are_stated(tmp_path, stated):
    table, schema = tmp_path / "own.csv", tmp_path / "schema.json"
    table.write_text("a,y\n1,0.0\n2,1.0\n3,1.0\n")
    words = ["--classes", ",".join(map(str, stated))]
    if not isinstance(stated[0], str):
        schema.write_text(json.dumps({"columns": {"a": "number"}, "target": stated}))
        words = ["--schema", str(schema)]
    options = ["fit", str(table), "--target", "y", "--epsilon", "1", "--save", "m", *words]
    found = read_training_table(parse_options(options))
    assert found.classes == ["0", "1"]
    assert found.y.tolist() == ["0", "1", "1"]
