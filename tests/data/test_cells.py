"""No cell, and no way of a reader to store a column, changes what any other row becomes."""

import contextlib
import functools
import io
import warnings
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas._libs.parsers import STR_NA_VALUES

from dp_halfspace import PrivateTableClassifier
from dp_halfspace.audit import replay
from dp_halfspace.data import cells, frame
from dp_halfspace.data.cells import (
    canonical,
    date_in_format,
    date_of,
    days_of_array,
    number_of,
    text_of,
    truth_of,
)
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.frame import read_column, read_frame
from dp_halfspace.data.schema import read_schema, resolved_columns
from dp_halfspace.datasets import read_parquet
from dp_halfspace.metrics import private_score

RULES = {
    "number": "number",
    "range": [-5, 50],
    "date": "date",
    "boolean": "boolean",
    "text": "text",
    "categories": {"categories": ["1", "2", True, "2020-01-02", "1.25", "12345678901234567"]},
    "pair": [False, True],
    "codes": ["0", "1", "2"],
    "format": {"kind": "date", "format": "%H:%M"},
}
# Cells of one kind, as they stand in a file.
KINDS = {
    "truth values": ["true", "FALSE"],
    "words": ["yes", "no"],
    "leading zeros": ["01", "02"],
    "postcodes": ["01234", "98765"],
    "whole": ["1", "2", "-3"],
    "long": ["12345678901234567", "12345678901234568"],
    "limits": ["<0.3", "> 20"],
    "signs": ["+5", "5"],
    "exponents": ["1e5", "2E-3"],
    "fractions": ["0.10", "1.25", "-0.0", "0.30000000000000004"],
    "thousands": ["1,000", "2,345,678.5"],
    "dates": ["2020-01-02", "9999-12-31"],
    "days": ["2020-01-02", "2021-12-31"],
    "time stamps": ["2020-01-02 03:04:05", "2020-01-02T00:00:00"],
    "compact dates": ["20200102", "19991231"],
    "times": ["03:04:05.5", "23:59:00"],
    "clocks": ["03:04", "23:59"],
    "hours": ["2020-01-02 03", "2021-12-31T23"],
    "zero and one": ["0", "1"],
    "texts": ["Oslo", " Rome"],
    "notations": ["45%", "$1,200", "(12.3)", "12.3-", "\u221212.3", "12 345", "12'345"],
}
ODD = ["unknown", "", "true", "yes", "-7", "7.5", "2020-05-06 10:00:00.123456789", "NA", "1e999"]


def text_file(column):
    return "i;c\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(column))


def by_pandas(**options):
    return lambda text: pd.read_csv(io.StringIO(text), sep=";", **options)


def by_polars(text):
    options = {"infer_schema_length": None, "try_parse_dates": True}
    return pl.read_csv(io.BytesIO(text.encode()), separator=";", **options)


def by_arrow(text):
    parse = pa.csv.ParseOptions(delimiter=";")
    return pa.csv.read_csv(io.BytesIO(text.encode()), parse_options=parse)


def by_rows(text):
    found = pd.read_csv(io.StringIO(text), sep=";")
    return [list(row) for row in found.itertuples(index=False)]


READERS = {
    "pandas": by_pandas(),
    "texts": by_pandas(dtype=str, keep_default_na=False),
    "thousands": by_pandas(thousands=","),
    "words": by_pandas(true_values=["yes"], false_values=["no"]),
    "parsed dates": by_pandas(parse_dates=["c"]),
    "nullable": by_pandas(dtype_backend="numpy_nullable"),
    "arrow in pandas": by_pandas(dtype_backend="pyarrow"),
    "categorical": lambda text: by_pandas()(text).astype({"c": "category"}),
    "polars": by_polars,
    "arrow": by_arrow,
    "lists": by_rows,
}
# What these readers lose cannot be had back: docs/guide/schema.md names each.
LOSSY = {
    ("parsed dates", "leading zeros"): "a number is read as a month",
    ("parsed dates", "whole"): "a number is read as a year",
    ("parsed dates", "postcodes"): "a number is read as a year and a month",
    ("parsed dates", "times"): "a time of day gets the day on which it is read",
    ("parsed dates", "clocks"): "a time of day gets the day on which it is read",
    ("parsed dates", "zero and one"): "a number is read as a month",
    ("parsed dates", "compact dates"): "under rules other than that of dates",
}
# A missing or fractional cell turns whole numbers beyond 2^53 into floats.
ROUNDED = {"", "7.5", "-7", "NA", "1e999"}


def encoded(X, rule):
    names = ("i", "c") if not isinstance(X, list) else ("0", "1")
    table = read_frame(X)
    columns = resolved_columns(table, dict(zip(names, ("number", rule), strict=True)))
    return Encoding(columns, table.is_named).to_coded_rows(table).dense(np.float64)


@functools.lru_cache(maxsize=16)
def table_of(reader, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return READERS[reader](text)


def moved(reader, kind, odd, rule):
    """Tell whether any other row changes, to the last bit, when the last one becomes odd."""
    return odd in moving(reader, kind, [odd], rule)


def moving(reader, kind, odds, rule):
    """The odd cells in the last row that change any other row, to the last bit."""
    column = KINDS[kind] * 2

    def rows(last):
        return encoded(table_of(reader, text_file([*column, last])), RULES[rule])[:-1]

    known = rows(column[0])
    found = {odd: rows(odd) for odd in odds}
    assert {other.shape for other in found.values()} == {known.shape}
    return [odd for odd in odds if found[odd].tobytes() != known.tobytes()]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_one_cell_changes_no_other_row(reader, kind):
    if (reader, kind) in LOSSY:
        pytest.skip(LOSSY[reader, kind])
    for rule in RULES:
        is_rounded = kind == "long" and rule in ("text", "categories")
        odds = [odd for odd in ODD if not (is_rounded and odd in ROUNDED)]
        if (reader, kind) == ("arrow", "zero and one") and rule in ("date", "categories"):
            odds.remove("true")  # which are the rules that tell numbers from booleans
        assert (rule, moving(reader, kind, odds, rule)) == (rule, [])


@pytest.mark.parametrize(
    ("reader", "kind", "odd", "rule", "module", "name", "planted"),
    [
        ("pandas", "truth values", "unknown", "text", cells, "TRUE", "True"),
        ("pandas", "leading zeros", "unknown", "number", cells, "_parse_number", lambda *_: None),
        ("pandas", "leading zeros", "unknown", "text", cells, "_parse_number", lambda *_: None),
        ("parsed dates", "days", "unknown", "date", cells, "_parse_moment", lambda *_: None),
        ("nullable", "long", "", "text", frame.Stored, "distinct", None),
    ],
)
def test_the_comparison_sees_a_reading_that_follows_the_storage(
    reader, kind, odd, rule, module, name, planted, monkeypatch
):
    assert not moved(reader, kind, odd, rule)
    if planted is None:

        def planted(column):
            """Return floats, as a conversion of the whole column would."""
            if column.missing is None or not column.missing.any():
                return honest(column)
            return honest(frame.Stored(np.where(column.missing, np.nan, column.array)))

        honest = module.distinct
    monkeypatch.setattr(module, name, planted)
    assert moved(reader, kind, odd, rule)


ONES = [1, 1.0, "1", "01", "1.0", "+1", "1e0", " 1 ", b"1", Decimal("1.00"), Fraction(1),
        np.int8(1), np.float32(1), np.str_("1"), pa.scalar(1)]  # fmt: skip
DAYS = [
    *("2020-01-02", "2020-1-2", "2020/01/02", "2020/1/2", "2020-01-02 00:00:00"),
    *("2020-01-02T00:00:00Z", "2020-01-02T01:00+01:00", "2020-01-02T01:00+01"),
    "2020-01-01T19:30:00.000-0430",
    *(date(2020, 1, 2), datetime(2020, 1, 2), pd.Timestamp("2020-01-02", tz="UTC")),
    *(np.datetime64("2020-01-02"), np.datetime64("2020-01-02", "ns"), pa.scalar(date(2020, 1, 2))),
    datetime(2020, 1, 2, 3, tzinfo=timezone(timedelta(hours=3))),
]


def test_every_way_to_write_a_value_has_one_reading_under_each_rule():
    for one in ONES:
        cell = canonical(one)
        assert (number_of(cell), truth_of(cell), text_of(cell), date_of(cell)) == (1, True, "1", 1)
    assert truth_of(2) is None
    for truth in (True, np.True_, "true", "TRUE", " True"):
        cell = canonical(truth)
        assert (number_of(cell), truth_of(cell), text_of(cell)) == (1.0, True, "true")
        assert np.isnan(date_of(cell))
    for day in DAYS:
        assert text_of(canonical(day)) == "2020-01-02"
        assert date_of(canonical(day)) == number_of(canonical(day)) == 18263.0
    for missing in (None, np.nan, pd.NA, pd.NaT, "", " ", "NaN", "n/a", "?", Decimal("NaN"),
                    np.datetime64("NaT", "D"), pa.scalar(None)):  # fmt: skip
        assert canonical(missing) is None
    assert date_of(canonical(20200102)) == date_of(canonical("20200102")) == 18263.0
    assert np.isnan(date_of(canonical(20201302)))


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1,5", dict.fromkeys((None, ".", ",", "either"), 1.5)),
        # As a reader of numbers has it, where no text in another row made a text of it.
        ("1.5", dict.fromkeys((None, ".", ",", "either"), 1.5)),
        ("1.5e3", dict.fromkeys((None, ".", ",", "either"), 1500.0)),
        ("0.125", dict.fromkeys((None, ".", ",", "either"), 0.125)),
        ("1,00,000", {".": 100_000.0}),
        ("1.234,5", {".": np.nan, ",": 1234.5}),
        ("1,000", {None: 1000.0, ".": 1000.0, ",": 1.0, "either": 1.0}),
        ("0,125", {None: 0.125, ",": 0.125, "either": 0.125}),
        ("1.000", {None: 1.0, ".": 1.0, ",": 1000.0, "either": 1.0}),
        ("1.234.567,5", {None: 1234567.5, ",": 1234567.5}),
        ("1,234,567.5", {None: 1234567.5, ".": 1234567.5}),
        ("1_000", dict.fromkeys((None, ".", ",", "either"), np.nan)),
        ("\u0661", {None: np.nan}),
        ("-inf", {None: -np.inf}),
        ("1" * 500, {None: np.inf}),
        ("yes", {None: 1.0}),
        ("y", {None: np.nan}),
        ("<0.3", dict.fromkeys((None, ".", "either"), 0.3)),
        ("<0,3", dict.fromkeys((None, ",", "either"), 0.3)),
        (" >= 1,000 ", {None: 1000.0, ".": 1000.0, ",": 1.0}),
        ("\u2264-5", {None: -5.0}),
        ("> LOD", {None: np.nan}),
        ("<", {None: np.nan}),
        ("<0.3 mg", {None: np.nan}),
        ("<<3", {None: np.nan}),
    ],
)
def test_signs_of_decimals(text, readings):
    for decimal, number in readings.items():
        np.testing.assert_equal(number_of(canonical(text, decimal), decimal), number)


NOTATIONS = {
    "45%": 45.0, "12,5 %": 12.5, "$1,200": 1200.0, "-$5": -5.0, "$-5": -5.0,
    "1.200,50 \u20ac": 1200.5, "\u00a35.50": 5.5, "12 345": 12345.0, "12\u00a0345,5": 12345.5,
    "1\u2009234\u2009567": 1234567.0,
    "12\u202f345": 12345.0, "12'345.50": 12345.5, "12\u2019345": 12345.0, "\u221212.3": -12.3,
    "(12.3)": -12.3, "($1,200)": -1200.0, "12.3-": -12.3, "12.3 -": -12.3,
    "<45%": 45.0, "> 1 200": 1200.0,
    "120 mmHg": np.nan, "120/80": np.nan, "130+": np.nan, "(-5)": np.nan, "18-25": np.nan,
    "1 2": np.nan, "12 34": np.nan, "12 345'678": np.nan, "030 123 456": np.nan, "$$5": np.nan,
    "<0.3": 0.3, "<20260131": 20260131.0,
    "()": np.nan, "$": np.nan, "%": np.nan, "-": np.nan, "5 -+": np.nan, "not done": np.nan,
}  # fmt: skip


@pytest.mark.parametrize("text", NOTATIONS)
def test_notations_of_numbers_are_read_in_a_column_of_numbers_alone(text):
    cell = canonical(text)
    np.testing.assert_equal(number_of(cell), NOTATIONS[text])
    assert (text_of(cell), truth_of(cell)) == (text, None)
    assert np.isnan(date_of(cell))


def test_a_long_text_is_no_number_and_takes_no_time():
    """Blanks before a sign would otherwise be tried from every position."""
    for text in ("5" + " " * 10**6 + "x", "$" * 10**6, "(" * 10**6, "1 " * 10**6):
        assert np.isnan(number_of(canonical(text)))


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("120 mmHg", "mmHg", 120.0),
        ("120mmHg", "mmHg", 120.0),
        ("120", "mmHg", 120.0),
        ("USD 1,200", "USD", 1200.0),
        ("<0.3 mg/l", "mg/l", 0.3),
        ("130+", "+", 130.0),
        ("120/80", "/80", 120.0),
        ("120 mmhg", "mmHg", np.nan),
        ("120 cm", "mmHg", np.nan),
        ("mmHg", "mmHg", np.nan),
    ],
)
def test_a_unit_is_read_where_it_is_stated(text, unit, number):
    rules = read_schema({"c": {"kind": "number", "unit": unit}})[0]
    for X in (pd.DataFrame({"c": [text]}), pl.DataFrame({"c": [text]})):
        table = read_frame(X)
        encoding = Encoding(resolved_columns(table, rules), True)
        np.testing.assert_equal(encoding.to_coded_rows(table).numbers, [[number]])


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("31/12/2026", "%d/%m/%Y"),
        ("31-12-2026", "%d-%m-%Y"),
        ("31-Dec-2026", "%d-%b-%Y"),
        ("31.12.2026", "%d.%m.%Y"),
        ("12/31/2026 00:00", "%m/%d/%Y %H:%M"),
    ],
)
def test_a_date_is_read_year_first_or_in_a_stated_format(text, form):
    assert np.isnan(date_of(canonical(text)))
    assert text_of(canonical(text)) == text
    for cell in (text, text.encode(), bytearray(text.encode())):
        assert date_in_format(cell, form) == date_of(canonical("2026-12-31")) == 20818.0


def test_a_stated_format_decides_where_the_year_comes_first_too():
    for cell in ("2026-02-01", b"2026-02-01", bytearray(b"2026-02-01")):
        assert date_in_format(cell, "%Y-%d-%m") == date_of(canonical("2026-01-02"))
    for form, text in (("%H:%M", "03:04"), ("%H:%M:%S", "03:04:00")):
        assert date_in_format(time(3, 4), form) == date_in_format(text, form)


def test_equal_cells_of_other_types_are_read_by_themselves():
    """1, 1.0 and True are equal in Python: which one comes first must not decide for all."""
    column = [True, 1, 1.0, "1", False, 0, -0.0]
    for order in (column, column[::-1]):
        found = frame.read_column(np.array(order, dtype=object))
        texts = found.read(lambda cell: text_of(canonical(cell)), object).tolist()
        assert dict(zip(map(repr, order), texts, strict=True)) == {
            **{"True": "true", "1": "1", "1.0": "1", "'1'": "1"},
            **{"False": "false", "0": "0", "-0.0": "0"},
        }


def test_numbers_are_exact():
    big = 2**60 + 1
    stores = [
        pd.Series([big, None], dtype="Int64"),
        pd.Series([big, None], dtype="int64[pyarrow]"),
        pd.Series([big, None], dtype=object),
        pd.Series(pd.Categorical.from_codes([0, -1], [big])),
        pa.chunked_array([[big, None]]),
        pa.chunked_array([pa.array([Decimal(big), None])]),
        pa.chunked_array([pa.array([big, None]).dictionary_encode()]),
    ]
    for column in stores:
        texts = frame.read_column(column).read(lambda cell: text_of(canonical(cell)), object)
        assert texts.tolist() == [str(big), None]
    assert text_of(canonical(Decimal("0.1000"))) == text_of(canonical(0.1)) == "0.1"
    assert text_of(canonical(Decimal("1.0e-7"))) == text_of(canonical(1e-7)) == "1e-07"
    long = Decimal("0.12345678901234567890123456789")
    assert text_of(canonical(long)) == str(long)
    for huge in (10**5000, Decimal("1e999999"), "9" * 5000):
        assert canonical(huge) == np.inf
    assert canonical(Decimal("1e-999999")) == 0


@pytest.mark.parametrize("day", ["1677-09-22", "2116-02-20", "2117-01-01", "2262-04-11"])
def test_all_dates_that_have_nanoseconds_are_exact(day):
    for unit in ("D", "s", "ms", "us", "ns"):
        for array in (
            np.array([day], f"M8[{unit}]"),
            np.array([day], f"M8[{unit}]").astype("M8[ns]"),
        ):
            assert days_of_array(array)[0] == number_of(canonical(day))
            assert canonical(array[0]) == canonical(day)


@given(st.datetimes(), st.integers(0, 999))
def test_dates_are_the_same_bits_in_every_unit_and_type(moment, nanoseconds):
    text = f"{moment.isoformat(timespec='microseconds')}{nanoseconds:03}"
    exact = number_of(canonical(text))
    if 1700 < moment.year < 2200:
        assert days_of_array(np.array([text], "M8[ns]"))[0] == exact
        assert number_of(canonical(np.datetime64(text, "ns"))) == exact
    stored_in = {"s": moment.replace(microsecond=0), "us": moment}
    for unit, value in stored_in.items():
        array = np.array([value], f"M8[{unit}]")
        assert days_of_array(array)[0] == number_of(canonical(value))
        assert number_of(canonical(value.isoformat(sep=" "))) == number_of(canonical(value))


@given(st.floats(allow_nan=False))
def test_floats_and_their_texts_are_the_same_bits(number):
    for text in (repr(number), f"{number:.17g}"):
        assert (
            np.float64(number + 0.0).tobytes() == np.float64(number_of(canonical(text))).tobytes()
        )
        assert text_of(canonical(text)) == text_of(canonical(number))


def test_stated_formats_of_dates():
    for value in ("31/12/2026", datetime(2026, 12, 31), np.datetime64("2026-12-31")):
        assert date_in_format(value, "%d/%m/%Y") == date_of(canonical("2026-12-31"))
    assert date_in_format(311226, "%d%m%y") == date_in_format("311226", "%d%m%y") == 20818.0
    for value in ("12/31/2026", "31.12.2026", "2026", None, 1.5, True, object()):
        assert np.isnan(date_in_format(value, "%d/%m/%Y"))


@pytest.mark.parametrize("text", ["2026-12-31", "2026-12-31 10:30:00", "2026-12-31T10:30:00+02:00"])
@pytest.mark.parametrize("odd", ["2026-01-01", "", "unknown"])
def test_a_date_in_another_format_reads_the_same_from_dates_and_from_texts(text, odd):
    """Readers store a column as dates unless one text is none."""
    table = f"seen\n{text}\n{odd}\n".encode()
    rules = read_schema({"seen": {"kind": "date", "format": "%d/%m/%Y"}})[0]
    wanted = number_of(canonical(text))
    for read in (pa.csv.read_csv, lambda f: pl.read_csv(f, try_parse_dates=True)):
        frame = read_frame(read(io.BytesIO(table)))
        encoding = Encoding(resolved_columns(frame, rules), frame.is_named)
        assert encoding.to_coded_rows(frame).numbers[0, 0] == wanted


@pytest.mark.parametrize(
    ("form", "seen"),
    [
        ("%d%m%Y", ["01022024", "31122024"]),
        ("%d%m%y", ["010224", "100324"]),
        ("%m.%Y", ["01.2024", "10.2020"]),
        ("%Y.%m", ["2020.10", "2021.01"]),
        ("%Y%m%d", ["20240102", "20201010"]),
        ("%d.%m.%Y", ["01.02.2024", "10.10.2020"]),
    ],
)
def test_a_format_of_digits_reads_the_same_from_numbers_and_from_texts(form, seen):
    """One text among them turns a column of numbers, without their zeros, into one of texts."""
    wanted = [number_of(canonical(datetime.strptime(text, form))) for text in seen]
    for others in ([], ["unknown"], [""]):
        column = pd.read_csv(io.StringIO("\n".join(["seen", *seen, *others]) + "\n"))["seen"]
        assert [date_in_format(cell, form) for cell in column[: len(seen)]] == wanted


# ------------------------------------------------------------------ whole fits


N = 240
SCHEMA = {"age": "number", "flag": "boolean", "code": ["01", "02"], "seen": "date", "city": "text"}
MODEL = PrivateTableClassifier(epsilon=20.0, classes=["no", "yes"], schema=SCHEMA, random_state=0)


def file_of(odd):
    """A table as a file; its first row may hold a cell of another kind in every column."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 90, N).astype(str)
    columns = {
        "age": age,
        "flag": rng.choice(["true", "false"], N),
        "code": rng.choice(["01", "02"], N),
        "seen": [f"20{year:02}-03-04" for year in rng.integers(0, 24, N)],
        "city": rng.choice(["00100", "20095"], N),
    }
    table = pd.DataFrame(columns)
    if odd is not None:
        table.loc[0] = odd
    return table.to_csv(index=False), np.where(age.astype(int) > 55, "yes", "no")


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore:random_state")
@pytest.mark.parametrize("odd", ["unknown", "", "12.5", "9999-12-31T00:00:00.000000001"])
@pytest.mark.parametrize(
    "read",
    [
        lambda text: pd.read_csv(io.StringIO(text)),
        lambda text: pd.read_csv(io.StringIO(text), parse_dates=["seen"]),
        lambda text: pl.read_csv(io.BytesIO(text.encode()), try_parse_dates=True),
    ],
    ids=["pandas", "parsed dates", "polars"],
)
def test_a_fit_moves_by_its_sensitivity_whatever_a_reader_infers(read, odd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pandas, about formats of dates
        (text, y), (other, _) = file_of(None), file_of(odd)
        tables = read(text), read(other)
    result = replay(MODEL, tables[0], y, tables[1], y, n_histories=1, random_state=1)
    assert result.findings == ()
    model = MODEL.fit(tables[0], y)
    scores = [model.decision_function(table)[1:] for table in tables]
    assert scores[0].tobytes() == scores[1].tobytes()
    counts = [
        private_score(model, table, y, metric="confusion_matrix", epsilon=np.inf).value
        for table in tables
    ]
    assert np.abs(counts[0] - counts[1]).sum() <= 2.0 + 1e-9


def test_row_groups_keep_the_types_of_their_file(tmp_path):
    """One row group has a missing code, and only there pandas would make floats of them."""
    codes = [2**53 + 1, 2**53 + 2] * 20
    table = pa.table({"code": pa.array([*codes, None, *codes[:-1]]), "y": [0, 1] * 40})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=40)
    rows, _ = read_parquet(tmp_path / "t.parquet", "y")
    rule = {"code": [2**53 + 1, 2**53 + 2, "other"]}
    whole = read_frame(table.drop_columns("y"))
    encoding = Encoding(resolved_columns(whole, rule), True)
    parts = [encoding.to_coded_rows(read_frame(part)).dense(np.float64) for part in rows.values()]
    assert np.vstack(parts).tobytes() == encoding.to_coded_rows(whole).dense(np.float64).tobytes()
    assert np.vstack(parts).sum() == 79
    # An index with a name is a column.
    frame = pd.DataFrame({"a": [1.0], "y": [0]}, index=pd.Index([7], name="id"))
    frame.to_parquet(tmp_path / "i.parquet")
    rows, _ = read_parquet(tmp_path / "i.parquet", "y")
    assert [list(part) for part in (rows.sample, *rows.values())] == [["a", "id"]] * 2


def test_lists_have_no_dtypes():
    rows = [[1.0, 2.0, "a"], [3.0, 4.0, "b"], [5.0, 6.0, "a"]]
    for odd in ([None, 2.0, "a"], ["text", 2.0, "a"], [1, 2, 3], [[], {}, object()]):
        both = [encoded_list([other, *rows[1:]])[1:] for other in (rows[0], odd)]
        assert both[0].tobytes() == both[1].tobytes()


def encoded_list(rows):
    table = read_frame(rows)
    encoding = Encoding(resolved_columns(table, {"2": "text"}), False)
    return encoding.to_coded_rows(table).dense(np.float64)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_numbers_of_arrow_are_those_of_numpy(kind):
    """Half precision, too, which Arrow fills and casts in ways of its own."""
    values, missing = np.array([0.5, -1.75, 64.0], dtype=kind), np.array([False, True, False])
    ones = np.arange(3.0)
    stored = encoded(pa.table({"i": ones, "c": pa.array(values, mask=missing)}), "number")
    expected = encoded(pd.DataFrame({"i": ones, "c": np.where(missing, np.nan, values)}), "number")
    np.testing.assert_array_equal(stored, expected)


# ------------------------------------------------------------- cells of Python's own types


# Cells as a program hands them over, in the place of a file.
OBJECTS = {
    "dates": [date(2020, 1, 2), date(1999, 12, 31)],
    "moments": [datetime(2020, 1, 2, 3, 4, 5, 678901), datetime(1960, 5, 5)],
    "moments with zone": [datetime(2020, 7, 2, 3, tzinfo=timezone(timedelta(hours=3)))],
    "last moments": [datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))],
    "first moments": [datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=3)))],
    "decimals": [Decimal("0.10"), Decimal(3), Decimal("12345678901234567890.5")],
    "floats of 32 bits": [np.float32(0.1), np.float32(2.5)],
    "fractions": [Fraction(1, 3), Fraction(5)],
    "texts of dates": ["02/01/2020", "03/02/2020"],
    "bytes": [b"007", b"02/01/2020", b"Oslo"],
}
OF_FORMAT = {"kind": "date", "format": "%d/%m/%Y"}
MAKERS = {
    "frame": lambda cells: pd.DataFrame({"i": 1.0, "c": cells}),
    "nullable": lambda cells: pd.DataFrame({"i": 1.0, "c": cells}).convert_dtypes(),
    "categories": lambda cells: pd.DataFrame({"i": 1.0, "c": pd.Series(cells, dtype="category")}),
    "arrow": lambda cells: pa.table({"i": np.ones(len(cells)), "c": pa.array(cells)}),
    "lists": lambda cells: [[1.0, cell] for cell in cells],
}


def made(maker, cells):
    """A table, or none if it cannot be made."""
    with contextlib.suppress(ValueError, TypeError, pa.ArrowNotImplementedError):
        return MAKERS[maker](cells)


def moved_in_memory(kind, maker, odds, *rules):
    """The odd values for which any other row changes when the last one becomes odd."""
    usual, *others = (made(maker, [*OBJECTS[kind] * 2, last]) for last in (OBJECTS[kind][0], *odds))
    if usual is None:
        return []
    rows = {rule_of: encoded(usual, rule)[:-1].tobytes() for rule_of, rule in enumerate(rules)}
    return [
        (odd, rule)
        for odd, table in zip(odds, others, strict=True)
        for rule_of, rule in enumerate(rules)
        if table is not None and encoded(table, rule)[:-1].tobytes() != rows[rule_of]
    ]


@pytest.mark.sampled(14)
@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("maker", MAKERS)
def test_one_object_changes_no_other_row(maker, kind):
    odd = [None, "unknown", "", True, -7, 7.5, date(2020, 5, 6), Decimal("7.25"), np.nan, b"z"]
    assert moved_in_memory(kind, maker, odd, *RULES.values(), OF_FORMAT, "words") == []


class LoudText:
    """An object of another library, which warns and prints when it is made a text."""

    def __repr__(self):
        warnings.warn("a private cell is here", stacklevel=1)
        print("a private cell is here")
        return "cell"


def test_objects_of_other_types_are_read_by_the_text_that_they_print(capsys):
    printed = ([1, "x"], {"a": 1}, (1,), np.arange(3), np.ones(1), timedelta(1))
    for value in (
        *(*printed, np.timedelta64(3, "D"), pd.Timedelta(1, "D")),
        *(pd.Interval(0, 1), pd.Period("2020-01"), {1}),
    ):
        assert canonical(value) == str(value)
    assert [canonical(value) for value in (pd.NaT, np.timedelta64("NaT", "D"))] == [None, None]
    assert [canonical(np.array(cell)) for cell in (5.0, "NA", None)] == [5, None, None]
    endless = []
    endless.append(endless)
    assert canonical(endless) == "[[...]]"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        texts = [canonical(cell) for cell in (LoudText(), [LoudText()], {"a": LoudText()})]
    assert (texts, seen) == (["cell", "[cell]", "{'a': cell}"], [])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("maker", MAKERS)
def test_a_column_of_durations_is_one_of_texts_and_refuses_no_cell(maker):
    for odd in (timedelta(hours=6), None):
        table = made(maker, [timedelta(1), odd])
        for rule in ("number", "date", "text"):
            rows = encoded(table, rule)
            assert rows.shape[0] == 2
            assert rule == "text" or np.isnan(rows[:, 1]).all()


@pytest.mark.parametrize("kind", ["period[M]", "string", object])
def test_months_are_dates_in_their_format_alone(kind):
    months = pd.DataFrame({"c": pd.period_range("2019-12", periods=2, freq="M").astype(kind)})
    assert np.isnan(read_column(months["c"]).read(lambda cell: date_of(canonical(cell)))).all()
    days = read_column(months["c"]).read(lambda cell: date_in_format(cell, "%Y-%m"))
    assert np.diff(days).tolist() == [31.0]


class Code(str, Enum):
    """Its members have other strings than the cells that a typed column stores."""

    FIRST = "01"
    OTHER = "02/01/2020"


def test_a_subclass_of_strings_is_read_as_typed_columns_store_it():
    columns = [pd.Series([Code.FIRST, other]).astype(kind) for other, kind in
               ((Code.OTHER, "str"), (Code.OTHER, "string"), (1.5, object))]  # fmt: skip
    texts = [frame.read_column(column).distinct()[0][0] for column in columns]
    assert [canonical(text) for text in texts] == [1, 1, 1]
    assert date_in_format(Code.OTHER, "%d/%m/%Y") == date_in_format("02/01/2020", "%d/%m/%Y")


def test_a_place_in_memory_is_no_value():
    """It depends on the objects of other rows."""
    cells = (object(), memoryview(b"7"), canonical, [object()], {1: object()})
    assert [canonical(cell) for cell in cells] == [None] * 5
    assert canonical("met at 0xA1") == "met at 0xA1"


HONEST = cells.canonical


def read_single(value, decimal=None):
    """Read a number of 32 bits by its own digits, which are not those that a column stores."""
    return float(str(value)) if isinstance(value, np.float32) else HONEST(value, decimal)


def test_planted_readings_of_objects_are_seen(monkeypatch):
    assert not moved_in_memory("floats of 32 bits", "frame", ["unknown"], "text")
    for module in (cells, frame):
        monkeypatch.setattr(module, "canonical", read_single)
    assert moved_in_memory("floats of 32 bits", "frame", ["unknown"], "text")


def test_times_of_day_to_the_nanosecond_and_beyond_the_day():
    """Python's type has no nanoseconds, and raises for what is no time of day."""
    steps = [3723_000_000_001, 0, 86_400 * 10**9, -1, 2**62, None]
    column = pa.chunked_array([pa.array(steps, pa.time64("ns"))])
    texts = frame.read_column(column).read(lambda cell: text_of(canonical(cell)), object)
    assert texts.tolist()[:2] == ["01:02:03.000000001", "00:00:00"]
    assert texts[-1] is None
    assert text_of(canonical("1:02:03.000000001000")) == texts[0]
    assert [text_of(canonical(text)) for text in ("12:30", "1:20")] == ["12:30:00", "1:20"]
    seconds = frame.read_column(pa.chunked_array([pa.array([61], pa.time32("s"))]))
    assert text_of(canonical(seconds.array[0])) == text_of(canonical(time(0, 1, 1)))


def test_days_of_arrow_are_dates():
    assert frame.kind_of(pa.array([0], pa.date32())) == "date"


def test_half_floats_of_arrow():
    """Arrow cannot fill their missing values."""
    column = frame.read_column(pa.chunked_array([pa.array([1.5, None], pa.float16())]))
    np.testing.assert_array_equal(column.numbers(), [1.5, np.nan])


@pytest.mark.parametrize("kind", ["Int128", "UInt128"])
def test_columns_of_polars_that_arrow_does_not_have(kind):
    """One whole number beyond 64 bits changes the type of its column, which Arrow refuses."""
    if not hasattr(pl, kind):
        pytest.skip("this version of polars has no such type")
    whole, wide = pl.Series([1, 2, 3]), pl.Series([1, 2, 2**100], dtype=getattr(pl, kind))
    for rule in ("number", "text", {"categories": ["1", "2"]}):
        both = [encoded(pl.DataFrame({"i": [0.0] * 3, "c": c}), rule)[:2] for c in (whole, wide)]
        assert both[0].tobytes() == both[1].tobytes()
    objects = pl.DataFrame({"i": [0.0] * 2, "c": pl.Series(["a", Decimal(1)], dtype=pl.Object)})
    expected = encoded([[0.0, "a"], [0.0, "1"]], "text")
    np.testing.assert_array_equal(encoded(objects, "text"), expected)
    alone = read_frame(objects.select("c"))
    assert (alone.names, alone.n_rows) == (("c",), 2)


@pytest.mark.parametrize("rule", ["number", "text", {"categories": [1.5, 2.5]}])
def test_one_complex_cell_changes_no_other(rule):
    """A reader gives its whole column another type; the cell itself is no number."""
    column = pd.Series([1.5, 2.5, 3j, None])
    assert column.dtype.kind == "c"
    objects = pd.Series([1.5, 2.5, "3j", None], dtype=object)
    expected, *found = (
        encoded(pd.DataFrame({"i": np.zeros(4), "c": cells}), rule)
        for cells in (objects, column, column.astype("category"))
    )
    for table in found:
        np.testing.assert_array_equal(table, expected)


def test_ends_of_what_is_read():
    """Each by the definition of its kind, at a place where a wrong rule differs."""
    assert canonical(bytearray(b"07")) == canonical(b"7.0") == 7
    assert [canonical(Decimal(f"{sign}1e500")) for sign in ("", "-")] == [np.inf, -np.inf]
    assert text_of(canonical("2020-01-02 03:04:05,50")) == "2020-01-02T03:04:05.5"
    assert text_of(canonical("2020-01-02 03:04")) == "2020-01-02T03:04:00"
    assert text_of(canonical("2020-01-02 00:00")) == "2020-01-02"
    # Hours end at 23, minutes and seconds at 59.
    for text in ("2020-01-02 24:00", "2020-01-02 12:60", "2020-01-02 12:30:60"):
        assert canonical(text) == text
    assert days_of_array(np.array([2], dtype="M8[36h]")).tolist() == [3.0]
    assert [date_of(10000101), date_of(99991231)] == [-354285.0, 2932896.0]
    # Further numbers are days; in between, digits that spell no date are none.
    assert [date_of(10000100), date_of(99991232)] == [10000100.0, 99991232.0]
    assert np.isnan([date_of(20200230), date_of(20201301)]).all()
    # A whole number has no part that a format of digits could leave out.
    assert date_in_format(20200102, "%Y%m%d") == 18263.0
    assert np.isnan(date_in_format(20200102.5, "%Y%m%d"))


def test_every_text_that_a_reader_takes_for_missing_is_missing():
    for text in (*STR_NA_VALUES, "?", "none", "NaT"):
        assert canonical(text) is canonical(text.encode()) is canonical(f" {text.upper()} ") is None


def test_ends_of_numbers_keep_their_sign_and_digits_their_text():
    for sign in (1, -1):
        for huge in (10**500, Decimal("inf"), Decimal("1e999"), float("inf")):
            assert canonical(sign * huge) == sign * np.inf
        # It has as many bits as the largest float.
        assert number_of(canonical(sign * (2**1024 - 1))) == sign * np.inf
    exact = Decimal("0.10000000000000000000000001")
    assert text_of(canonical(exact)) == text_of(canonical(Decimal(f"{exact}000"))) == str(exact)
    assert (
        text_of(canonical(Decimal("1.2345678901234567890e-9"))) == "0.000000001234567890123456789"
    )


def test_utc_may_be_named_as_such():
    for zone in ("UTC", " UTC", "Z", "+00:00"):
        assert canonical(f"2026-01-31 12:00{zone}") == canonical("2026-01-31T12:00")
    assert canonical(np.datetime64("1970-01-05T01", "ps")) == canonical("1970-01-05 01:00")


def test_a_word_for_a_boolean_is_the_category_that_is_spelled_like_it():
    truths = {"t": True, "Y": True, "yes": True, "f": False, "n": False, "No": False}
    assert {word: truth_of(canonical(word)) for word in truths} == truths
    both = cells.spellings(("yes", "true", "no"))
    assert [both[name] for name in ("yes", "true", "no", "false")] == [0, 1, 2, 2]
    hashed = [cells.hashed_text_of(cell, None) for cell in ("yes", True, 1, "No", False, 0)]
    assert hashed == 3 * ["true"] + 3 * ["false"]


@pytest.mark.parametrize(
    ("categories", "places"),
    [
        (("Y", "N"), {"true": 0, "1": 0, "false": 1, "0": 1}),
        (("f", "t"), {"true": 1, "1": 1, "false": 0, "0": 0}),
        (("0", "1"), {"true": 1, "1": 1, "false": 0, "0": 0}),
        (("true", "false"), {"true": 0, "1": 0, "false": 1, "0": 1}),
        (("NO", "yes", "x"), {"true": 1, "1": 1, "false": 0, "0": 0}),
        (("n", "y", "x"), {}),
        (("N", "n"), {}),
        (("N", "n", "y"), {}),
        (("1", "2"), {"1": 0, "true": 0}),
    ],
)
def test_booleans_and_digits_are_the_categories_that_a_reader_makes_of_them(categories, places):
    found = cells.spellings(categories)
    assert {name: found[name] for name in ("true", "1", "false", "0") if name in found} == places
