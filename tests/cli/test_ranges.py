"""Public ranges: read strictly, applied row by row."""

import warnings

import numpy as np
import pytest

from dp_halfspace._cli.arguments import UserError
from dp_halfspace._cli.ranges import apply_ranges, read_ranges

GOOD = ["column,low,high", "age,0,120", '"blood, mmHg",-1.5,1e3']
COLUMNS = ["blood, mmHg", "age"]


def ranges_file(folder, lines):
    path = folder / "ranges.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_ranges_follow_the_columns_of_the_data(tmp_path):
    found = read_ranges(ranges_file(tmp_path, [*GOOD, ""]), COLUMNS)
    np.testing.assert_array_equal(found, [[-1.5, 1e3], [0, 120]])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "empty"),
        (["age,0,120"], "no column 'column' in line 1"),
        (["column,high,low", "age,120,0"], "column,low,high"),
        (GOOD[:2], "no line for column 'blood, mmHg'"),
        ([*GOOD, "weight,0,1"], "names 'weight', which is no column"),
        ([*GOOD, "age,0,1"], "twice"),
        ([*GOOD[:2], "x,1,1"], "line 3"),
        ([*GOOD[:2], "x,2,1"], "line 3"),
        ([*GOOD[:2], "x,0,inf"], "line 3"),
        ([*GOOD[:2], "x,nan,1"], "line 3"),
        ([*GOOD[:2], "x,0,one"], "line 3"),
        ([*GOOD[:2], "x,0"], "line 3"),
        ([*GOOD[:2], "x,0,1,2"], "line 3"),
        ([*GOOD[:2], "x,-1e308,1e308"], "line 3"),
        ([*GOOD, '"age,0,1'], "not a table"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, lines, words):
    with pytest.raises(UserError, match=r"^--ranges: ") as caught:
        read_ranges(ranges_file(tmp_path, lines), COLUMNS)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_row_is_mapped_by_itself():
    ranges = np.array([[0.0, 120.0], [-2.0, 2.0]])
    X = np.array([[60.0, 0.0], [0.0, 2.0], [130.0, -9.0], [1e308, -1e308]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mapped = apply_ranges(X, ranges)
    np.testing.assert_allclose(mapped, [[0, 0], [-1, 1], [1, -1], [1, -1]])
    np.testing.assert_array_equal(mapped[:1], apply_ranges(X[:1], ranges))
