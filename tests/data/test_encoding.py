"""Tables become numbers by public rules; no entry raises, warns or changes a shape."""

from __future__ import annotations

import json
import sys
import warnings
from datetime import date, datetime, timezone
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from dp_halfspace.data import encoding as encoding_module
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.frame import read_column, read_frame
from dp_halfspace.data.schema import Column, label_set, read_schema, resolved_columns


class Hostile:
    """An entry that refuses everything."""

    def __float__(self):
        raise RuntimeError("secret")

    __str__ = __eq__ = __hash__ = __float__


ODD = [
    *(None, np.nan, pd.NA, pd.NaT, "", "x", "7", 3, 2.5, True, 10**400, 1e300, -np.inf),
    *(Hostile(), {"a": 1}, [1, 2], np.array([3.0]), b"b", Decimal("1.5"), 1j, "\ud800"),
    *(datetime(2020, 1, 2, tzinfo=timezone.utc), date(2020, 1, 2), pd.Timestamp("2020-01-02")),
]


def as_numbers(column):
    return read_column(column if hasattr(column, "iloc") else np.asarray(column)).numbers()


def encoding_of(frame, schema=None):
    frame = read_frame(frame)
    return Encoding(resolved_columns(frame, read_schema(schema)[0]), frame.is_named)


def encoded(encoding, frame):
    """Numbers, and the columns behind them."""
    coded = encoding.to_coded_rows(frame)
    return coded.numbers, coded.dense(np.float64)[:, coded.numbers.shape[1] :]


def test_any_object_has_a_number_and_a_text_silently():
    series = pd.Series(ODD, dtype=object)
    schema = {"a": "number", "b": [0, 5], "c": "date", "d": "boolean", "e": "text", "f": ["x", "7"]}
    frame = pd.DataFrame(dict.fromkeys("abcdef", series))
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        numbers, others = encoded(encoding_of(frame, schema), read_frame(frame))
    assert numbers.shape == (len(ODD), 3)
    assert others.shape == (len(ODD), 1 + 30 + 1)
    assert not np.isinf(numbers).any()
    assert np.nanmax(numbers[:, 1]) == 5.0
    assert np.isfinite(others).all()


def test_numbers_are_read_from_every_kind_of_column():
    days = as_numbers(pd.Series(ODD[-3:], dtype=object))
    np.testing.assert_array_equal(days, [18263.0] * 3)
    dates = pd.Series(pd.to_datetime(["1970-01-03", None]))
    for column in (
        dates,
        dates.dt.tz_localize("UTC"),
        dates.to_numpy().astype("M8[M]") + np.timedelta64(0, "M"),
    ):
        got = as_numbers(column)
        assert np.isnan(got[1])
        assert got[0] in (2.0, 0.0)
    far = np.array(["9999-12-31", "NaT", "-290000-01-01"], dtype="M8[s]")
    assert (as_numbers(pd.Series(far)) > 2e6).tolist() == [True, False, False]
    assert not np.isinf(as_numbers(np.array([2**62, -(2**62)]).astype("M8[Y]"))).any()
    np.testing.assert_array_equal(as_numbers(pd.Series([1, None], dtype="Int64")), [1, np.nan])
    np.testing.assert_array_equal(as_numbers(pd.Series([True, None], dtype="boolean")), [1, np.nan])
    assert as_numbers(np.array([np.inf, -np.inf])).tolist() == [1e300, -1e300]
    assert np.copysign(1.0, as_numbers(np.array([-0.0])))[0] == 1.0
    # Floats among objects are read at once if all are floats, and one by one beside a text.
    floats = np.array([0.1, -0.0, 3.0, 1e308, np.float64(2.0**60), -np.inf, np.nan, ""], dtype="O")
    assert as_numbers(floats[:-1]).tobytes() == as_numbers(floats)[:-1].tobytes()


def test_what_each_kind_becomes():
    frame = pd.DataFrame({"pair": ["u", "v", "w", None], "many": ["a", "b", "c", "z"],
                          "truth": [True, False, True, None], "out": [1, 2, 3, 4]})  # fmt: skip
    schema = {"pair": ["u", "v"], "many": ["a", "b", "c"], "truth": [False, True], "out": "drop"}
    encoding = encoding_of(frame, schema)
    numbers, others = encoded(encoding, read_frame(frame))
    assert numbers.shape == (4, 0)
    np.testing.assert_allclose(others[:, 0] * 2**0.5, [-1, 1, 0, 0])
    np.testing.assert_array_equal(others[:, 1:4], np.vstack([np.eye(3), np.zeros(3)]))
    np.testing.assert_allclose(others[:, 4] * 2**0.5, [1, -1, 1, 0])
    assert encoding.length == 3**0.5
    for zero_one in ([1, 0, 1, np.nan], ["1", "0", "True", "?"], [1.0, 0.0, True, None]):
        again = encoded(encoding, read_frame(frame.assign(truth=zero_one)))[1]
        np.testing.assert_array_equal(again, others)


def test_the_hash_is_public_and_fixed():
    frame = read_frame(pd.DataFrame({"city": ["Oslo", "Rome", "Oslo", None]}))
    encoding = Encoding(resolved_columns(frame, {}), True)
    _, once = encoded(encoding, frame)
    assert once.shape == (4, 30)
    np.testing.assert_array_equal(np.flatnonzero(once[0]), [0, 11, 27])
    np.testing.assert_array_equal(once[0], once[2])
    assert np.abs(once[0] - once[1]).max() > 0.5
    assert not once[3].any()
    # However many texts there are, a string selects three of at least six columns.
    many = Encoding(tuple(Column(str(k), "text") for k in range(500)), True)
    assert many.n_hashes == 6
    np.testing.assert_allclose(np.linalg.norm(once, axis=1), [1, 1, 1, 0])


def test_kinds_by_dtype_are_those_that_a_schema_may_say():
    frame = pd.DataFrame({"i": [1], "f": [0.5], "b": [True], "d": [pd.Timestamp(0)], "s": ["a"],
                          "o": [object()], "c": pd.Categorical(["a"]),
                          "t": [pd.Timedelta(1)], "n": pd.array([1], dtype="Int8"),
                          "p": pd.array([1], pd.ArrowDtype(pa.decimal128(5, 2)))})  # fmt: skip
    kinds = [column.describe() for column in encoding_of(frame).columns]
    words = ["number"] * 2 + ["boolean", "date"] + ["text"] * 4 + ["number"] * 2
    assert kinds == [f"{word}, by the dtype of the column" for word in words]
    stated = encoding_of(frame[["i", "b", "s"]], {"i": "text", "b": [0, 1], "s": "number"})
    assert [column.describe() for column in stated.columns] == [
        "text",
        "number in [0, 1]",
        "number",
    ]


def test_schemas_are_read_from_mappings_entries_and_files(tmp_path):
    entry = {"target": ["0", "1"], "columns": {"age": [0, 120], "sex": ["f", "m"]}, "rows": 7}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(entry))
    for schema in (entry, str(path), path):
        assert read_schema(schema) == (entry["columns"], ["0", "1"])
    assert read_schema(entry["columns"]) == (entry["columns"], None)
    assert read_schema({**entry, "target": "outcome"})[1] is None
    assert read_schema(None) == ({}, None)
    with pytest.raises(ValueError, match="schema must be a mapping"):
        read_schema(["age"])
    for held in (b"{'age': [0, 120]}", b"", b"\xff\xfe"):
        path.write_bytes(held)
        with pytest.raises(ValueError, match="schema names a file that is not JSON"):
            read_schema(path)
    assert label_set(["0", "1"], [1, 0]).tolist() == [0, 1]
    assert label_set(["0", "1"], ["1", "0"]).tolist() == ["0", "1"]
    assert label_set(None, [1]) is None
    # The type of the labels of a table may hold no other label of the schema.
    assert label_set(["0", "1.5"], np.array([0, 1])).tolist() == [0, 1.5]
    assert label_set(["-1", "1"], np.array([1, 1], np.uint8)).tolist() == [-1, 1]
    assert label_set(["0", "1"], np.array([0.0, 1.0])).dtype == np.int64
    with pytest.raises(ValueError, match="y contains numbers"):
        label_set(["a", "b"], [1, 0])


@pytest.mark.parametrize(
    "rule",
    ["rang", 7, [], [1, 1], [2, 1], [0, np.inf], ["a", "a"], ["a", None], [None, None], {"a", "b"}],
)
def test_a_bad_schema_names_the_column_and_the_rule(rule):
    frame = read_frame(pd.DataFrame({"age": [1]}))
    with pytest.raises(ValueError, match=r"column 'age' must be \[low, high\]"):
        resolved_columns(frame, {"age": rule})
    with pytest.raises(ValueError, match="schema names columns that X does not have: 'agee'"):
        resolved_columns(frame, {"agee": [0, 1]})


@pytest.mark.parametrize(
    ("rule", "known"),
    [
        ([Decimal(0), Decimal(120)], "number in [0, 120]"),
        ([Fraction(1, 2), 1], "number in [0.5, 1]"),
        (["1970-01-02", "1970-01-11"], "date in [1, 10]"),
        ([date(1970, 1, 2), pd.Timestamp("1970-01-11")], "date in [1, 10]"),
        ({"categories": ["1970-01-02", "1970-01-11"]}, "2 categories"),
        (["1", "2"], "2 categories"),
    ],
)
def test_a_list_of_two_numbers_or_dates_is_a_range(rule, known):
    (column,) = encoding_of(pd.DataFrame({"a": [1]}), {"a": rule}).columns
    assert column.describe() == known


def test_a_schema_of_names_for_an_array_says_how_to_keep_names():
    with pytest.raises(ValueError, match="Give a data frame; transformers have set_output"):
        resolved_columns(read_frame(np.zeros((2, 1))), {"age": [0, 1]})


@pytest.mark.parametrize(
    ("rule", "column"),
    [
        ({"categories": [1, 2]}, Column("a", "categories", categories=("1", "2"))),
        ([1, 2], Column("a", "number", 1.0, 2.0)),
        ({"range": [1, 2]}, Column("a", "number", 1.0, 2.0)),
        ([True, False], Column("a", "categories", categories=("true", "false"))),
        ({"kind": "boolean"}, Column("a", "categories", categories=("false", "true"))),
        ({"kind": "number", "decimal": ","}, Column("a", "number", decimal=",")),
        ({"kind": "number", "unit": " mg/l "}, Column("a", "number", unit="mg/l")),
        ({"kind": "date", "format": "%d/%m/%Y"}, Column("a", "date", date_format="%d/%m/%Y")),
        (
            {"kind": "date", "range": ["1970-01-02", "1970-01-11"]},
            Column("a", "date", 1.0, 10.0),
        ),
        *(
            (
                {"kind": "date", "format": form, "range": [low, "1970-01-11"]},
                Column("a", "date", 1.0, 10.0, date_format=form),
            )
            for form, low in (
                *(("%d.%m.%Y", low) for low in ("02.01.1970", "1970-01-02", 1)),
                ("%d%m%Y", "02011970"),
            )
        ),
        (
            {"kind": "text", "stated": False},
            Column("a", "text", source="as found in the file"),
        ),
    ],
)
def test_rules_in_full(rule, column):
    frame = read_frame(pd.DataFrame({"a": [1]}))
    assert resolved_columns(frame, {"a": rule}) == (column,)


NO_FORMATS = ("", "dd/mm/yyyy", "DD.MM.YYYY", "%Q", "%", "%d/%m/%Y or %m/%d/%Y")
NO_SIZES = (0, True, 2.5, 2**20)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "kind is one of"),
        ({"kind": "categories"}, "kind is one of"),
        ({"kind": "number", "categories": [1, 2]}, "kind is one of"),
        ({"kind": "text", "range": [1, 2]}, "only numbers and dates have a range"),
        ({"kind": "boolean", "range": [0, 1]}, "only numbers and dates have a range"),
        ({"kind": "number", "decimal": ";"}, "decimal is one of '.', ',', 'either'"),
        ({"kind": "number", "format": "%d"}, "format is that of dates"),
        *(({"kind": "number", "unit": unit}, "unit is a text beside") for unit in (0, 5, "5")),
        *(({"kind": "date", "format": form}, "format is that of dates") for form in NO_FORMATS),
        ({"kind": "number", "range": [1]}, "a range has two ends"),
        ({"kind": "number", "range": [False, 1]}, "a range has a lower and a higher end"),
        *(
            ({"kind": "date", "range": [low, "2021-01-01"]}, "written as 2026-01-31 or in their")
            for low in ("01.01.2020", "2021-01-02")
        ),
        ({"kind": "number", "range": "12"}, "must be"),
        ({"kind": "number", "low": 3}, "it has 'low'"),
        ({"categories": ["1", "01"]}, "1 and '01' are the same"),
        *(({"kind": "words", "columns": n}, "columns is for the kind words") for n in NO_SIZES),
        ({"kind": "text", "columns": 9}, "columns is for the kind words, a whole number up to"),
    ],
)
def test_rules_that_do_not_hold_together(rule, words):
    frame = read_frame(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="schema of the column 'a'.*" + words):
        resolved_columns(frame, {"a": rule})


def test_categories_stand_for_truth_values_and_the_other_way_round():
    cells = pd.DataFrame({"a": np.array([True, "true", 1, "yes", False, 0, "N", "?"], object)})
    for rule, signs in (
        ([True, False], [-1, -1, -1, -1, 1, 1, 1, 0]),
        ([False, True], [1, 1, 1, 1, -1, -1, -1, 0]),
        (["no", "yes"], [1, 1, 1, 1, -1, -1, 0, 0]),
        ({"categories": [0, 1]}, [1, 1, 1, 0, -1, -1, 0, 0]),
    ):
        _, others = encoded(encoding_of(cells, {"a": rule}), read_frame(cells))
        np.testing.assert_array_equal(np.sign(others[:, 0]), signs)


def test_columns_are_found_by_name_else_by_position():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [True, False]})
    encoding = encoding_of(frame)
    wanted = encoded(encoding, read_frame(frame))
    more = frame[["b", "a"]].assign(c=9, a=["1", "2"], b=[1, 0])
    for other in (more, np.array([[1, True], [2, False]], dtype=object), [[1, 1], [2, 0]]):
        for got, want in zip(encoded(encoding, read_frame(other)), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(ValueError, match="X lacks columns of the table of the fit: 'b'"):
        encoded(encoding, read_frame(frame[["a"]]))
    without_b = encoding_of(frame, {"b": "drop"})
    for other in (frame[["a"]], frame.assign(b="any")):
        np.testing.assert_array_equal(encoded(without_b, read_frame(other))[0], wanted[0])
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2"):
        encoded(encoding, read_frame(np.zeros((1, 3))))


@pytest.mark.parametrize(
    ("X", "rule"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "several columns '1'"),
        (sparse.csr_array(np.eye(2)), "sparse"),
        (np.zeros(3), "Reshape your data"),
        (pd.Series(np.zeros(3)), r"X.to_frame\(\) .* frame.iloc\[\[k\]\]"),
        ([[1], [1, 2]], "rows differ in length"),
        (np.ma.masked_array(np.eye(2)), "masked array"),
        (type("Rows", (), {"__module__": "dask.frame", "iloc": None})(), "X is in chunks"),
        (np.array([[1j]]), "Complex data not supported: column '0'"),
    ],
)
def test_what_is_no_table_is_refused(X, rule):
    with pytest.raises(ValueError, match=rule):
        read_frame(X)


def _words_of(cells, size=16):
    table = pd.DataFrame({"note": pd.Series(cells, dtype=object)})
    frame = read_frame(table)
    rule = {"note": {"kind": "words", "columns": size}}
    return encoded(Encoding(resolved_columns(frame, rule), True), frame)[1]


def test_words_become_counts_in_columns():
    """Words in any order and case, signs aside; rows no longer than one; zeros if missing."""
    cells = ["Chest pain, acute", "ACUTE pain - chest", "pain pain pain", "", None, "!"]
    rows = _words_of(cells)
    assert rows.shape == (6, 16)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(np.sort(rows[2])[-2:], [0.0, 1.0])
    assert not rows[3:].any()
    assert np.linalg.norm(rows[:3], axis=1) == pytest.approx(1.0, abs=1e-15)
    (counted,) = _words_of(["one two two"])
    assert np.sort(counted)[-2:] == pytest.approx(np.array([1.0, 2.0]) / np.sqrt(5.0))
    assert _words_of(["a b"], 1).tolist() == [[1.0]]
    (column,) = resolved_columns(read_frame(pd.DataFrame({"a": cells})), {"a": "words"})
    assert column.describe() == "words in 64 columns"
    # The public hash is the same on all machines and in all versions.
    assert np.flatnonzero(_words_of(["pain"])[0]).tolist() == [3]


class Lazy:
    """A table of another library, whose query speaks of a cell."""

    def __init__(self, fails):
        self.fails = fails

    def to_pandas(self):
        warnings.warn("secret", stacklevel=2)
        if self.fails:
            raise KeyError("secret")
        return pd.DataFrame({"a": [1.0, 2.0]})


class Streamed:
    """A table of a library that hands it out by the interface of Arrow alone."""

    def __arrow_c_stream__(self, schema=None):
        return pa.table({"a": [1.0, 2.0]}).__arrow_c_stream__(schema)


def test_what_the_library_of_a_table_says_is_not_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (Lazy(fails=False), Streamed()):
            assert (read_frame(X).names, read_frame(X).n_rows) == (("a",), 2)
        with pytest.raises(ValueError, match="X could not be read") as seen:
            read_frame(Lazy(fails=True))
    assert "secret" not in f"{seen.value!r} {seen.value.__context__!r} {seen.value.__cause__!r}"


def sizes_of_caches():
    """What every cached function of the package holds."""
    modules = [m for name, m in sys.modules.items() if name.startswith("dp_halfspace")]
    kept = [(m, name) for m in modules for name in vars(m) if hasattr(vars(m)[name], "cache_info")]
    return {(m.__name__, name): vars(m)[name].cache_info().currsize for m, name in kept}


def sizes_after(cells):
    rules = {"a": {"kind": "date", "format": "%d%m%Y"}, "b": "words", "c": "text", "d": ["x", "y"]}
    frame = pd.DataFrame(dict.fromkeys(rules, cells))
    encoding_of(frame, rules).to_coded_rows(read_frame(frame))
    return sizes_of_caches()


def test_no_cell_stays_in_a_cache(monkeypatch):
    """A cache of a module outlives the table, and its size would count private words."""
    assert sizes_after(["x"]) == sizes_after(["y", "two words", "31122020", "many other words"])
    remembered = lru_cache(encoding_module._hashes)
    monkeypatch.setattr(encoding_module, "_hashes", remembered)
    assert sizes_after(["x"]) != sizes_after(["y", "two words"])


def test_words_of_a_row_depend_on_its_own_cell():
    """Whatever another cell holds, and however many there are, no other row moves a bit."""
    cells = ["chest pain", "no pain", "12.50 mg", "2026-01-31", True]
    whole = _words_of(cells)
    for odd in ["", None, 7, 1e300, "pain " * 10_000, "\ud800", object()]:
        changed = _words_of([odd, *cells[1:]])
        assert changed[1:].tobytes() == whole[1:].tobytes()
        assert np.linalg.norm(changed[0]) <= 1.0 + 1e-15
    alone = np.vstack([_words_of([cell]) for cell in cells])
    assert alone.tobytes() == whole.tobytes()


def test_a_number_beyond_float64_is_read_silently():
    """A warning would show that a column holds one."""
    column = np.array([1, np.longdouble(10) ** 400, 2], dtype=np.longdouble)
    frame = read_frame(pd.DataFrame({"a": column}))
    encoding = Encoding(resolved_columns(frame, {"a": [0.0, 3.0]}), True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoding.to_coded_rows(frame).numbers[:, 0].tolist() == [1.0, 3.0, 2.0]


def encoded_column(values, rule):
    frame = read_frame(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
    coded = Encoding(resolved_columns(frame, {"a": rule}), True).to_coded_rows(frame)
    return coded, coded.dense(float)


@pytest.mark.parametrize(("size", "width"), [(2, 1), (3, 3), (65, 65), (4096, 4096)])
def test_lists_of_any_length_have_distinct_rows_of_norm_one(size, width):
    """Of at most 4096 columns; an encoded row is a function of its own cell."""
    names = [f"c{k}" for k in range(size)]
    cells = [*names[:50], *names[-50:], "other", None][:: 1 if size > 100 else 101] + names[:3]
    encoding = encoding_of(pd.DataFrame({"a": ["c0"]}), {"a": names})

    def coded_rows(cells):
        column = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
        return encoding.to_coded_rows(read_frame(column))

    coded = coded_rows(cells)
    rows = coded.dense(float)
    assert rows.shape == (len(cells), width)
    stated = set(names)
    known = np.array([cell in stated for cell in cells])
    places = {cell: rows[cells.index(cell)].tobytes() for cell in cells if cell in stated}
    assert len(set(places.values())) == len(places)
    lengths = {2: 0.5, 3: 1.0}.get(size, 1.0)
    np.testing.assert_allclose((rows[known] ** 2).sum(axis=1), lengths, rtol=1e-15)
    assert not rows[~known].any()
    for k in (0, len(cells) - 1):
        np.testing.assert_array_equal(coded_rows(cells[k : k + 1]).dense(float)[0], rows[k])
    stored = sum(array.nbytes for array in coded.arrays)
    assert stored < 1000 * len(cells) + 2**16
    np.testing.assert_array_equal(coded[1:3].dense(float), rows[1:3])


def test_a_list_that_is_too_long_is_refused_with_what_to_state():
    with pytest.raises(ValueError, match=r"'a' lists 4097 categories, .* state 'text'"):
        encoded_column(["c0"], [f"c{k}" for k in range(4097)])


@pytest.mark.parametrize("kind", ["text", "words"])
def test_texts_of_numbers_are_equal_where_the_decimal_sign_makes_them_equal(kind):
    for decimal, equal in ((".", False), (",", True)):
        _, (first, second) = encoded_column(["1.234", "1234"], {"kind": kind, "decimal": decimal})
        assert (first == second).all() == equal


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ({"kind": "date", "format": "%d/%m/%Y"}, [12417.0, 12084.0, np.nan, np.nan]),
        ("date", [np.nan, 12084.0, 12084.0, np.nan]),
        ({"kind": "date", "range": [12000, 12090]}, [np.nan, 12084.0, 12084.0, np.nan]),
    ],
)
def test_dates_are_days_since_1970_by_the_rule_of_their_column(rule, days):
    """Also a number YYYYMMDD, unless a format says how dates are written; a boolean is none."""
    cells = ["31/12/2003", "2003-02-01", 20030201, True]
    np.testing.assert_array_equal(encoded_column(cells, rule)[1].ravel(), days)


def test_a_category_is_spelled_as_it_is_stated():
    """Only booleans are found in other spellings: a reader may have written them."""
    _, rows = encoded_column(["oslo", "OSLO", "YES", "no", 1, 2], ["oslo", "yes", "no"])
    assert rows.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_some_of_the_rows_are_those_of_the_table():
    coded, rows = encoded_column(["u", "v", "w", "u"], ["u", "v", "w"])
    for index in (slice(1, 3), np.array([3, 0]), np.array([True, False, True, True])):
        np.testing.assert_array_equal(coded[index].dense(float), rows[index])


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "text", "b": "date", "a": "number"}',
        '{"columns": {"a": 1, "b": 2, "a": 1}}',
        '{"b": "date", "a": "text", "a": "number"}',
    ],
)
def test_a_file_that_states_a_column_twice_is_refused(tmp_path, text):
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"^schema states 'a' twice$"):
        read_schema(path)


def test_a_schema_may_begin_with_a_mark_and_leave_facts_empty(tmp_path):
    """As some editors save a file, and as a template of all facts is filled in."""
    path, day = tmp_path / "schema.json", {"kind": "date", "format": None, "range": None}
    path.write_text(json.dumps({"day": day}), encoding="utf-8-sig")
    rules, target = read_schema(path)
    (column,) = resolved_columns(read_frame(pd.DataFrame({"day": ["2020-01-01"]})), rules)
    assert (column.kind, column.date_format, column.has_range, target) == (
        "date",
        None,
        False,
        None,
    )
