"""Names and labels do nothing on a terminal, in a spreadsheet or in a page."""

import csv
import io
import json
import re
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest

from dp_halfspace._cli import main
from dp_halfspace._cli.files import write_out

LABELS = ["=cmd|' /C calc'!A0\x1b[31m", "@no\nline$\\f$", "-1"]
COLUMNS = ["a\x1b[2Jge$\\frac$", "st\nage<b>$x_{", "=who\x07"]
TARGET = "+out\x1b]0;title\x07"
# All but the end of a line, and what moves the bar of a terminal, which there is none of here.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 900
    frame = pandas.DataFrame(
        {
            COLUMNS[0]: rng.uniform(0, 99, n),
            COLUMNS[1]: rng.choice(["=I", "\x1b[0mII$"], n),
            COLUMNS[2]: np.arange(n) // 2,
        }
    )
    frame[TARGET] = np.array(LABELS, dtype=object)[np.digitize(frame[COLUMNS[0]], [33, 66])]
    # A cell of a CSV may hold no line break.
    frame.to_parquet("t$x$.parquet", index=False)
    frame[frame[TARGET] != LABELS[1]].to_parquet("two.parquet", index=False)
    schema = {COLUMNS[0]: [0, 99], COLUMNS[1]: ["=I", "\x1b[0mII$"]}
    Path("s.json").write_text(json.dumps(schema))
    return tmp_path


def harmless(capsys):
    text = "".join(capsys.readouterr())
    assert not CONTROL.search(text)
    return text


def test_nothing_in_a_table_reaches_the_terminal_a_cell_or_a_page_as_it_is(folder, capsys):
    fit = ["fit", "t$x$.parquet", "--target", TARGET, "--epsilon", "5", "--schema", "s.json"]
    people = ["--groups", COLUMNS[2]]
    assert main([*fit, *people, "--save", "m.joblib", "--card", "c.html"]) == 0
    assert "all rows of one '=who\\x07'" in harmless(capsys)
    page = Path("c.html").read_text(encoding="utf-8")
    assert not CONTROL.search(page)
    assert "<b>" not in page
    assert "a\\x1b[2Jge$\\frac$" in page
    assert main(["predict", "m.joblib", "t$x$.parquet", "--out", "p.csv"]) == 0
    text = Path("p.csv").read_text(encoding="utf-8")
    assert not CONTROL.search(text)
    header, *lines = csv.reader(io.StringIO(text))
    assert header == [
        "prediction",
        "probability_-1",
        "probability_=cmd|' /C calc'!A0\\x1b[31m",
        "probability_@no\\nline$\\f$",
    ]
    said = {line[0] for line in lines}
    assert said == {"'=cmd|' /C calc'!A0\\x1b[31m", "'@no\\nline$\\f$", "-1"}
    assert len(lines) == 900
    for metric in ("confusion_matrix", "accuracy"):
        scores = ["evaluate", "m.joblib", "t$x$.parquet", "--epsilon", "1", "--metric", metric]
        assert main([*scores, "--target", TARGET, *people]) == 0
        text = harmless(capsys)
    assert joblib.load("m.joblib").classes_.tolist() == sorted(LABELS)


def test_the_card_of_two_such_classes(folder, capsys):
    fit = ["fit", "two.parquet", "--target", TARGET, "--epsilon", "5", "--schema", "s.json"]
    assert main([*fit, "--save", "m.joblib", "--card", "c.html"]) == 0
    harmless(capsys)
    page = Path("c.html").read_text(encoding="utf-8")
    assert not CONTROL.search(page)
    assert "log odds of =cmd|&#x27; /C calc&#x27;!A0\\x1b[31m of a row" in page


def test_what_is_said_prints_line_by_line():
    stream = io.StringIO()
    write_out("a \x1b[31mred\x1b[0m name\r\nwith 2 lines\u2028\n", stream)
    assert stream.getvalue() == "a \\x1b[31mred\\x1b[0m name\\r\nwith 2 lines\\u2028\n"


def test_a_letter_that_the_encoding_of_a_stream_lacks_is_replaced():
    """A score would be lost after its budget was charged."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write_out("caf\xe9 1.0\n", stream)
    assert stream.buffer.getvalue() == b"caf\\xe9 1.0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "t$x$.parquet", "--target", "\x1b[2J", "--epsilon", "1", "--save", "m"],
        ["predict", "\x1b[2Jm", "t.csv", "--out", "p.csv"],
        ["\x1b[2J"],
        ["fit", "a", "--\x1b[2J"],
        ["schema", "t$x$.parquet", "--out", "a\nb/c\x1b"],
    ],
)
def test_errors_are_one_line_that_prints(folder, capsys, arguments):
    assert main(arguments) == 2
    assert harmless(capsys).splitlines()[-1].startswith("dp_halfspace: error: ")
