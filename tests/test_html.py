"""What people wrote into names and labels does nothing where it is shown."""

import csv
import io

import pytest
from matplotlib.figure import Figure

from dp_halfspace._html import align_columns, csv_cell, page, plain_label, printable, table


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("no (0 %), größer 大", "no (0 %), größer 大"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202etxt\u2028\ud800", "\\u202etxt\\u2028\\ud800"),
    ],
)
def test_what_does_not_print_is_shown_as_an_escape(text, line):
    assert printable(text) == csv_cell(text) == line
    assert align_columns([["label", "n"], [text, "1"]])[1].startswith(f"{line}  ")


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-1+1", "@SUM(A)", " =1", "\uff1d1", "-", "=\x1b"]
)
def test_a_formula_begins_with_an_apostrophe(text):
    assert csv_cell(text) == f"'{printable(text)}"


@pytest.mark.parametrize("separator", ",;|")
@pytest.mark.parametrize("formula", ["=1+1", "+cmd", " @SUM(A)", '"=1+1"', '" =1', "\uff1d1"])
def test_a_formula_behind_the_separator_of_any_program_begins_with_an_apostrophe(
    separator, formula
):
    """A program that expects semicolons divides a cell at them, whatever the file takes."""
    said = f"a{separator}'{formula}"
    assert csv_cell(f"a{separator}{formula}") == said
    assert csv_cell(f"{formula}{separator}-1") == f"'{formula}{separator}-1"
    file = io.StringIO()
    csv.writer(file).writerow([csv_cell(f"a{separator}{formula}"), "0.5"])
    for other in ",;|":
        for cell in file.getvalue().strip().split(other):
            assert not cell.strip(' "').startswith(("=", "+", "@", "\uff1d"))


@pytest.mark.parametrize(
    "cell", ["-1", "+1.5e-3", "-.5", "1-2", "a=b", "", "a;b", "-1;+2", "a | b"]
)
def test_numbers_and_other_texts_stay(cell):
    assert csv_cell(cell) == cell


@pytest.mark.parametrize("text", ["$\\frac$", "a$b", "\\$x$", "$$", "\x1b$"])
def test_dollar_signs_are_drawn_as_they_are(text):
    figure = Figure()
    label = figure.text(0.5, 0.5, plain_label(text))
    assert label._preprocess_math(plain_label(text)) == (printable(text), False)
    figure.canvas.draw()


def test_pages_show_what_does_not_print_as_an_escape():
    text = page("a\x1b<", {"b&": table(("c\x07<", "d\x9b>"))})
    for words in ("a\\x1b&lt;", "b&amp;", "c\\x07&lt;", "d\\x9b&gt;"):
        assert words in text
    assert not {"\x1b", "\x07", "\x9b"} & set(text)
