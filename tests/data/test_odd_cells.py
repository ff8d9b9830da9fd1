"""One odd cell, label, row or id: it changes nothing of the others, warns of nothing, and no error
carries the message of a library."""

from __future__ import annotations

import warnings
from copy import copy
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dp_halfspace import AdaptiveMarginClassifier, PrivacyWarning, PrivateTableClassifier
from dp_halfspace._cli.tables import _read_parquet
from dp_halfspace.data import frame as frames
from dp_halfspace.data import validation
from dp_halfspace.data.cells import canonical, category_of
from dp_halfspace.data.chunked_data import checked_chunks
from dp_halfspace.data.chunks import LocalChunks
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.frame import read_frame
from dp_halfspace.data.owners import owners_of_rows, sort_by_person
from dp_halfspace.data.record_weights import with_sample_weight
from dp_halfspace.data.schema import Column, label_set
from dp_halfspace.data.validation import (
    TrainingData,
    check_features,
    check_training_data,
    class_indices,
    is_missing,
    stand_in,
    with_nan,
)
from dp_halfspace.datasets import read_parquet
from dp_halfspace.preprocessing import PrivateScaler

pl = pytest.importorskip("polars")

PLACE = 3
NUMBERS = np.random.default_rng(0).standard_normal((50, 5))


class Loud:
    """Warns when it is read as a number."""

    def __float__(self):
        warnings.warn("a private cell is here", UserWarning, stacklevel=2)
        return 1.0


class LoudNumber(float):
    """A number of another library that warns when it is read."""

    __float__ = Loud.__float__


class Hostile:
    """Fails in ways that no library expects, with its content in the message."""

    def __float__(self):
        raise RuntimeError("a private cell")

    __eq__ = __ne__ = __hash__ = __str__ = __float__


READ = {
    "None": None, "NaN": np.nan, "NA": pd.NA, "NaT": pd.NaT, "masked": np.ma.masked,
    "entry of a masked array": np.ma.array(1.0, mask=True),
    "decimal": Decimal("1.5"), "text": "1.5", "bytes": b"1.5", "float32": np.float32(1.5),
    "array": np.array(1.5), "true": True, "loud number": LoudNumber(1.0),
}  # fmt: skip
REFUSED = {
    "hostile": Hostile(), "complex": 1j, "complex of numpy": np.complex64(1j), "word": "word",
    "signalling": Decimal("sNaN"), "long": 10**400, "list": [1.0], "array": np.array([1.0, 2.0]),
    "loud": Loud(),
}  # fmt: skip


def listed(cell, column=1):
    """Rows as objects, of which one cell is odd."""
    table = NUMBERS.astype(object)
    table[PLACE, column] = cell
    return table


def some_objects(cell):
    table = pd.DataFrame(NUMBERS, columns=list("abcde"))
    table["b"] = pd.Series(list(listed(cell)[:, 1]), dtype=object)
    return table


def of_polars(cell):
    columns = dict(zip("acde", NUMBERS[:, [0, 2, 3, 4]].T, strict=True))
    own = pl.Series("b", list(listed(cell)[:, 1]), dtype=pl.Object)
    return pl.DataFrame(columns).with_columns(own)


FORMS = {
    "rows": listed,
    "columns": lambda cell: np.asfortranarray(listed(cell)),
    "strided": lambda cell: np.repeat(listed(cell), 2, axis=0)[::2],
    "lists": lambda cell: listed(cell).tolist(),
    "frame": lambda cell: pd.DataFrame(listed(cell), columns=list("abcde")),
    "frame with objects": some_objects,
    "polars": of_polars,
}


def silently(call, *arguments):
    """Return what a call returns, or raises; it warns of public facts alone."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PrivacyWarning)
        try:
            return call(*arguments)
        finally:
            assert [str(each.message) for each in caught] == []


def checked(X):
    probe = stand_in(PrivateTableClassifier())
    found = check_features(probe, X, reset=True, allow_missing=True)
    names = list(getattr(probe, "feature_names_in_", ()))
    others = np.delete(found, PLACE, axis=0)
    return found.dtype, found.strides, names, others.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_an_odd_cell_changes_nothing_of_other_cells_and_warns_of_nothing(form):
    """Neither bits nor order nor names; a masked or hostile cell is not said to be there."""
    found = {repr(silently(checked, FORMS[form](cell))) for cell in READ.values()}
    assert len(found) == 1


def test_objects_keep_their_memory_order():
    """It determines how the norms of rows are summed."""
    X = np.asfortranarray(listed(pd.NA))
    assert with_nan(X).strides == X.strides != listed(pd.NA).strides


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_cell_shows_nothing_but_its_column(form, name):
    X = FORMS[form](REFUSED[name])
    with pytest.raises((TypeError, ValueError)) as caught:
        silently(checked, X)
    assert (caught.value.__context__, caught.value.__cause__) == (None, None)
    assert "column" in str(caught.value) or "differ in length" in str(caught.value)
    assert "private cell" not in str(caught.value)


@pytest.mark.parametrize("name", ["masked", "true", "NA"])
def test_so_it_is_in_chunks_and_where_only_the_shape_is_asked_for(name):
    X = listed(READ[name])
    chunks = LocalChunks.read_by([lambda: X], listed(0.0)[:2])
    model = AdaptiveMarginClassifier(classes=[0, 1], solver="noisy_gd")
    records = [silently(model.plan, rows, np.arange(50) % 2) for rows in (chunks, X)]
    assert records[0].events == records[1].events
    assert silently(PrivateScaler().plan, X.tolist()).events


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt8, pl.Boolean, pl.Float32, pl.Float64])
def test_a_missing_cell_of_a_typed_frame_changes_nothing_of_others(kind):
    """Polars writes down whole numbers by rows, and by columns where one of them is missing."""
    whole = (np.abs(NUMBERS) > 0.5).astype(int).T.tolist()
    found = set()
    for cell in (1, None):
        columns = [list(column) for column in whole]
        columns[1][PLACE] = cell
        if kind == pl.Boolean:
            columns = [[None if each is None else bool(each) for each in c] for c in columns]
        frame = pl.DataFrame([pl.Series(str(j), c, dtype=kind) for j, c in enumerate(columns)])
        found.add(repr(silently(checked, frame)))
    assert len(found) == 1


def test_a_text_in_a_transposed_frame_changes_nothing_of_others():
    """Pandas writes down numbers by rows there, and objects by columns."""
    records = dict(enumerate(NUMBERS))
    odd = {**records, PLACE: np.array(["1.5", *NUMBERS[PLACE, 1:]], dtype=object)}
    frames = [pd.DataFrame(columns).T for columns in (records, odd)]
    found = [checked(frame) for frame in frames]
    assert found[0] == found[1]
    frames += [pd.DataFrame(NUMBERS), some_objects("1.5").set_axis(range(5), axis=1)]
    chunks = [LocalChunks.read_by([partial(copy, each)], frames[0][:2]) for each in frames]
    read = [checked_chunks(PrivateTableClassifier(), each, reset=True) for each in chunks]
    assert len({next(iter(each.values())).strides for each in read}) == 1


class LoudFrame(pd.DataFrame):
    """A frame of another library, which warns where one is made of an array."""

    def __init__(self, *how, **more):
        warnings.warn("an array is distributed", UserWarning, stacklevel=2)
        super().__init__(*how, **more)


def test_a_frame_of_another_library_says_nothing_of_a_cell():
    """It would be made anew only where a column holds objects."""
    with pytest.warns(UserWarning, match="distributed"):
        frames = [LoudFrame(some_objects(cell)) for cell in (1.5, None, "1.5")]
    assert len({repr(silently(checked, frame)) for frame in frames}) == 1


def test_one_whole_number_beyond_64_bits_changes_nothing_of_others():
    """Polars gives its whole column another type, which numpy and Arrow do not have."""
    whole = [list(range(50)) for _ in range(5)]
    wide = [*whole[:4], [2**70 if i == PLACE else cell for i, cell in enumerate(whole[4])]]
    frames = [
        pl.DataFrame([pl.Series(str(j), column, strict=False) for j, column in enumerate(columns)])
        for columns in (whole, wide)
    ]
    assert frames[1].dtypes[4] == pl.Int128
    if hasattr(pl, "UInt128"):
        frames.append(frames[1].cast({"4": pl.UInt128}))
    assert all(checked(frame) == checked(frames[0]) for frame in frames)
    owners = [owners_of_rows(frame["4"], 50) for frame in frames]
    for other in owners[1:]:
        np.testing.assert_array_equal(other, owners[0])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
@pytest.mark.parametrize("cell", [pd.Timestamp("2020"), timedelta(1), pd.Period("2020")], ids=str)
def test_one_date_among_missing_cells_is_refused(missing, cell):
    """Pandas takes such a column for dates, and would turn every missing cell into a number."""
    columns = {name: pd.Series([missing, cell, missing], dtype=object) for name in "ab"}
    with pytest.raises(TypeError, match=r"^X is not numeric in columns 'a', 'b'"):
        features(pd.DataFrame(columns))
    chunks = LocalChunks.read_by(
        [partial(pd.DataFrame, columns)], pd.DataFrame({"a": [1.0], "b": 1.0})
    )
    with pytest.raises(ValueError, match="not a table of real numbers"):
        AdaptiveMarginClassifier(classes=[0, 1], delta=1e-6).plan(chunks, [0, 1, 1])


def test_what_is_an_array_by_its_buffer_is_read_as_one():
    assert checked(memoryview(NUMBERS)) == checked(NUMBERS)


def test_planted_order_by_what_is_missing_is_seen(monkeypatch):
    def in_rows(X):
        found = with_nan(X)
        has_gap = isinstance(X, np.ndarray) and any(cell is None for cell in X.ravel())
        return np.ascontiguousarray(found) if has_gap else found

    monkeypatch.setattr(validation, "with_nan", in_rows)
    with pytest.raises(AssertionError):
        test_an_odd_cell_changes_nothing_of_other_cells_and_warns_of_nothing("columns")


def test_reading_cells_leaves_the_filters_of_warnings_alone(monkeypatch):
    """Threads that set them at once would put back filters that are not their own."""

    class Untouched(list):
        insert = remove = append = None

    kept = Untouched(warnings.filters)
    monkeypatch.setattr(warnings, "filters", kept)
    cells = [*READ.values(), "a", uuid4(), pd.Period("2026-01")]
    table = pd.DataFrame(
        {"b": pd.Series([c for c in cells if type(c) is not LoudNumber], dtype=object)}
    )
    encoding = Encoding((Column("b", "text"),), is_named=True)
    assert len(encoding.to_coded_rows(read_frame(table))) == len(table)
    assert warnings.filters is kept


# -- labels --------------------------------------------------------------------------------

ODD_LABELS = {
    **REFUSED, "masked": np.ma.masked, "text": "1", "time": pd.Timestamp("2026-01-01"),
    "infinite": np.inf, "missing": pd.NA, "tuple": ([],),
}  # fmt: skip


def label_column(cell):
    labels = np.empty(20, dtype=object)
    labels[:] = [0, 1] * 10
    labels[PLACE] = cell
    return labels


@pytest.mark.parametrize("form", ["list", "objects", "series"])
@pytest.mark.parametrize("name", ODD_LABELS)
def test_an_odd_label_is_refused_without_a_message_of_a_library(form, name):
    labels = label_column(ODD_LABELS[name])
    y = {"list": list(labels), "objects": labels, "series": pd.Series(labels, dtype=object)}[form]
    with pytest.raises(ValueError, match=r"y |labels") as caught:
        silently(class_indices, y, [0, 1])
    assert caught.value.__context__ is None
    assert "private cell" not in str(caught.value)
    hidden = {"classes": [0, 1], "hides_rows": True}
    with pytest.raises(ValueError, match=r"y |labels") as caught:
        check_training_data(PrivateTableClassifier(), NUMBERS[:20], y, **hidden)
    assert "20" not in str(caught.value)


@pytest.mark.parametrize("form", [list, partial(np.array, dtype=object), pd.Series])
def test_a_number_that_warns_is_a_label_an_id_a_weight_and_a_cell(form):
    """Without a word: whose number it is, is private."""
    values = form([LoudNumber(1.0), 0] * 10)
    codes = silently(class_indices, values, [0, 1])[0]
    assert codes.tolist() == [1, 0] * 10
    assert silently(owners_of_rows, values, 20).tolist() == [0, 1] * 10
    data = TrainingData(NUMBERS[:20], codes, np.arange(2), None)
    assert silently(with_sample_weight, data, values).weights.tolist() == [1, 0] * 10
    assert silently(canonical, LoudNumber(1.0)) == 1


class LoudLabel(int):
    """A number of another library that warns when it is compared, and when it is looked up."""

    def __ne__(self, other):
        warnings.warn("a private label is here", UserWarning, stacklevel=2)
        return int(self) != other

    def __hash__(self):
        warnings.warn("a private label is here", UserWarning, stacklevel=2)
        return hash(int(self))


def test_a_label_that_warns_when_it_is_compared_is_read_without_a_word():
    y = label_column(LoudLabel(1))
    assert silently(class_indices, y, [0, 1])[0].tolist() == [0, 1] * 10


class Near(float):
    """A number of another library that is equal to numbers that are not equal to each other."""

    def __eq__(self, other):
        return abs(float(self) - float(other)) < 0.6

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(round(float(self)))


def test_a_label_that_is_equal_to_others_does_not_make_them_equal():
    """All records would have one label."""
    expected = [0, 1] * 10
    expected[PLACE] = 0
    assert class_indices(label_column(Near(0.5)), [0, 1])[0].tolist() == expected


@pytest.mark.parametrize("name", ["array", "list", "hostile", "complex"])
def test_so_it_is_where_a_schema_states_the_labels(name):
    labels = list(label_column(ODD_LABELS[name]))
    model = PrivateTableClassifier(schema={"columns": {}, "target": ["0", "1"]})
    with pytest.raises(ValueError, match=r"^(y |Complex)") as caught:
        model.plan(NUMBERS[:20], labels)
    assert caught.value.__context__ is None
    assert "20" not in str(caught.value)


@pytest.mark.parametrize("odd", [1, 1.0, True, np.int8(1), np.float32(1.0)])
def test_types_of_single_labels_do_not_decide_the_type_of_all(odd):
    """A list has no dtype: what numbers a schema lists, it says itself."""
    found = label_set(["0", "1"], [0, 1, odd])
    assert (found.dtype, found.tolist()) == (np.int64, [0, 1])
    assert label_set(["0.5", "1"], [0.5, 1, odd]).tolist() == [0.5, 1.0]


def test_a_text_does_not_turn_all_labels_of_a_list_into_texts():
    for y in ([0, 1, "1"], (0, 1, "1")):
        with pytest.raises(ValueError, match="y mixes types"):
            class_indices(y, ["0", "1"])
    assert class_indices(["0", "1"], ["0", "1"])[0].tolist() == [0, 1]


@pytest.mark.parametrize("kind", [str, object, "string"])
@pytest.mark.parametrize("labels", [["0", "1"], ["no", "yes"]])
def test_texts_for_public_numbers_are_named(kind, labels):
    column = pd.Series(labels).astype(kind)
    for public in ([0, 1], [0.0, 1.0], [False, True]):
        with pytest.raises(ValueError, match="strings, and the public labels are numbers or b"):
            class_indices(column, public)
    with pytest.raises(ValueError, match=r"classes$"):
        class_indices(column, ["2", "3"])
    with pytest.raises(ValueError, match=r"classes$"):
        class_indices([0, 2], [0, 1])


# -- rows and ids --------------------------------------------------------------------------


AN_ARRAY = np.array([2.0, "b"], dtype=object)


@pytest.mark.parametrize("row", [[2.0, "b"], (2.0, "b"), AN_ARRAY, pd.Series(AN_ARRAY)])
def test_how_one_row_is_stored_does_not_decide_how_others_are_read(row):
    found = read_frame([[1.0, "a"], row, [3.0, "c"]])
    assert not found.has_dtypes
    assert [list(column) for column in found.columns] == [[1.0, 2.0, 3.0], ["a", "b", "c"]]


@pytest.mark.parametrize("row", ["ab", b"ab", bytearray(b"ab"), {1: 2, 3: 4}, {1, 2}, 5, None])
def test_what_is_no_row_of_cells_is_refused(row):
    with pytest.raises(ValueError, match=r"X must be two-dimensional: .* Give .* a data frame"):
        read_frame([[1.0, "a"], row])


class LoudRow:
    """A row of another library that speaks of a cell when it is read."""

    def __init__(self, fails):
        self.fails = fails

    def __len__(self):
        return 2

    def __iter__(self):
        warnings.warn("a private cell is here", UserWarning, stacklevel=2)
        if self.fails:
            raise RuntimeError("a private cell")
        return iter([2.0, "b"])


def test_what_a_row_of_another_library_says_is_not_shown():
    found = silently(read_frame, [[1.0, "a"], LoudRow(fails=False)])
    assert [list(column) for column in found.columns] == [[1.0, 2.0], ["a", "b"]]
    with pytest.raises(ValueError, match=r"^X must be two-dimensional: one of its rows") as caught:
        silently(read_frame, [[1.0, "a"], LoudRow(fails=True)])
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "odd", [10**450, -(10**450), "1" * 500, Decimal(10) ** 450, -(Decimal(10) ** 450), "", b" "]
)
def test_ids_that_are_blank_or_cannot_be_written_out_are_refused(odd):
    """They would all have one name."""
    with pytest.raises(ValueError, match="a value that names no person"):
        owners_of_rows([odd, 3, "x"], 3)


@pytest.mark.parametrize("persons", [{0: "a", 1: "a", 2: "b"}, {"a", "b", "c"}])
def test_a_mapping_of_rows_to_persons_is_not_read_as_its_keys(persons):
    """Each row would be a person of its own, and the person with both rows unprotected."""
    with pytest.raises(ValueError, match=r"^groups must be one-dimensional: one text, number or"):
        owners_of_rows(persons, 3)


@pytest.mark.parametrize("given", ["groups", "sample_weight"])
@pytest.mark.parametrize("name", ["hostile", "list", "array"])
def test_odd_ids_and_weights_are_refused_without_a_message_of_a_library(name, given):
    model = AdaptiveMarginClassifier(classes=[0, 1], data_norm=1.0, solver="noisy_gd")
    own = {given: label_column(REFUSED[name])}
    said = "contains " + (
        "a value that names no" if given == "groups" else "a value that is not a number"
    )
    with pytest.raises(ValueError, match=f"^{given} {said}") as caught:
        silently(partial(model.plan, NUMBERS[:20], [0, 1] * 10, **own))
    assert caught.value.__context__ is None


# -- names and texts that a library would quote ------------------------------------------------


features = partial(check_features, stand_in(AdaptiveMarginClassifier()), reset=True)


def test_nor_is_a_cell_taken_for_the_kind_of_an_array():
    """Both the column and the row have the names of attributes."""
    said = []
    for cell in ("c", "d"):
        with pytest.raises(ValueError, match=r"^X is not numeric in column 'dtype'") as caught:
            features(pd.DataFrame({"dtype": [cell, "b"]}, index=["kind", "b"]))
        said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "name", ["dtype", "column_names", "columns", "kind", "iloc", "get_columns"]
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict])
def test_a_column_of_any_name_is_named_and_its_texts_are_not(make, name):
    """An attribute of a frame may be its column of that name, and `columns` of Arrow the cells."""
    texts = make({"age": [1.0, 2.0], name: ["8.125 private", "b"]})
    with pytest.raises(ValueError, match=f"^X is not numeric in column '{name}'") as caught:
        features(texts)
    assert "8.125" not in str(caught.value)
    assert caught.value.__context__ is None
    assert read_frame(texts).names == ("age", name)
    dates = make({name: [datetime(2020, 1, 1), datetime(2081, 2, 5)]})
    with pytest.raises(ValueError, match=f"^X holds dates or durations in column '{name}'"):
        features(dates)


def of_bytes(cells, is_large=False):
    """Texts of Arrow as a file may hold them: nobody looks whether they are UTF-8."""
    stored = pa.array(cells, pa.large_binary() if is_large else pa.binary())
    kind = pa.large_string() if is_large else pa.string()
    return pa.Array.from_buffers(kind, len(stored), stored.buffers())


def of_dictionary(cells):
    codes = pa.array([None if cell is None else cells.index(cell) for cell in cells])
    return pa.DictionaryArray.from_arrays(codes, of_bytes(cells))


def of_views(cells):
    """The same as views, in which polars hands over texts."""
    stored = pa.array(cells, pa.binary()).cast(pa.binary_view())
    return pa.Array.from_buffers(pa.string_view(), len(stored), stored.buffers())


TEXTS = {
    "strings": of_bytes,
    "views": of_views,
    "long strings": partial(of_bytes, is_large=True),
    "chunks": lambda cells: pa.chunked_array([of_bytes(cells[:2]), of_bytes(cells[2:])]),
    "dictionary": of_dictionary,
    "pandas": lambda cells: pd.Series(of_bytes(cells), dtype=pd.ArrowDtype(pa.string())),
    "texts of pandas": lambda cells: pa.table({"c": of_bytes(cells)}).to_pandas()["c"],
    "lists": lambda cells: pa.ListArray.from_arrays([0, 1, 2, 3, 4], of_bytes(cells)),
}
GOOD, BAD = [b"7", b"NA", b"caf\xc3\xa9", b"b"], [b"7", b"NA", b"caf\xe9", b"b"]


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_that_is_no_utf_8_is_read_by_itself(kind):
    """Arrow would quote it, in an error that comes with the conversion to Python."""

    def read(cells):
        column = frames.read_column(TEXTS[kind](cells))
        return column.read(category_of, object).tolist()

    good, bad, other = (
        silently(read, [*BAD[:2], cell, b"b"]) for cell in (GOOD[2], BAD[2], b"caf\xff")
    )
    kept = [0, 1, 3]
    assert [good[i] for i in kept] == [bad[i] for i in kept] == [other[i] for i in kept]
    assert kind == "lists" or len({good[2], bad[2], other[2]}) == 3


@pytest.mark.parametrize("rows", [pl.LazyFrame({"a": [1.0, 2.0]}), {"a": [1.0]}, 3, "text", None])
@pytest.mark.parametrize("kind", [AdaptiveMarginClassifier, PrivateTableClassifier])
def test_what_is_no_table_is_refused_by_its_type(rows, kind):
    with pytest.raises(ValueError, match=rf"{type(rows).__name__} is no table.*X\.collect\(\)"):
        kind(classes=[0, 1]).fit(rows, [0, 1])


def test_bytes_that_are_no_utf_8_are_one_category_however_they_are_stored():
    stored = [make(BAD) for kind, make in TEXTS.items() if kind != "lists"]
    stored += [pa.array(BAD, pa.binary()), frames.as_cells(BAD), pd.Series(BAD, dtype=object)]
    found = [frames.read_column(each).read(category_of, object).tolist() for each in stored]
    assert found == len(found) * [["7", "NA", "caf\\xe9", "b"]]


@pytest.mark.parametrize("kind", ["strings", "views", "dictionary", "pandas", "texts of pandas"])
def test_a_refusal_does_not_tell_whether_texts_are_utf_8(kind):
    said = []
    for cells in (GOOD, BAD):
        column = TEXTS[kind](cells)
        is_frame = isinstance(column, pd.Series)
        with pytest.raises(ValueError, match=r"^X is not numeric in column 'c'") as caught:
            features(column.to_frame("c") if is_frame else pa.table({"c": column}))
        said.append(str(caught.value))
        assert caught.value.__context__ is None
    assert said[0] == said[1]


def test_so_it_is_in_files(tmp_path):
    for name, cells in (("good", GOOD), ("bad", BAD)):
        columns = {"a": [1.0, 2.0, 3.0, 4.0], "c": of_bytes(cells), "y": of_bytes(cells)}
        table = pa.table({**columns, "v": of_views(cells)})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    frames_of = {name: _read_parquet(tmp_path / f"{name}.parquet") for name in ("good", "bad")}
    good, bad = (list(frame["c"]) for frame in frames_of.values())
    assert [good[i] for i in (0, 1, 3)] == [bad[i] for i in (0, 1, 3)] == ["7", "NA", "b"]
    for frame in frames_of.values():
        # The command makes rows of missing cells of the types of a file.
        assert list(frame["v"]) == list(frame["c"])
        assert frame.iloc[:0].reindex(range(2))["v"].isna().all()
    rows, labels = read_parquet(tmp_path / "bad.parquet", label="y")
    assert list(rows.parts[0]()["c"])[:2] == list(labels.parts[0]())[:2] == ["7", "NA"]


def test_weights_among_objects_are_read_one_by_one():
    data = TrainingData(NUMBERS[:20], None, None, None)
    given = np.array([0.5] * 19 + [Decimal("0.25")], dtype=object)
    assert with_sample_weight(data, given).weights.tolist() == [0.5] * 19 + [0.25]
    for odd in (None, pd.NA, np.nan, "word", b"1.5", Loud()):
        with pytest.raises(ValueError, match=r"^sample_weight contains a value") as caught:
            silently(with_sample_weight, data, np.array([*given[:-1], odd], dtype=object))
        assert caught.value.__context__ is None


def test_a_scalar_of_arrow_is_missing_like_its_value():
    for value in (None, float("nan"), "a", 0.0):
        assert is_missing(pa.scalar(value)) == is_missing(value)


def test_infinity_is_missing_among_labels_and_ids():
    assert all(map(is_missing, (np.inf, -np.inf, np.nan)))
    with pytest.raises(ValueError, match=r"^groups contains a value that names no person"):
        owners_of_rows([1, np.inf, 2], 3)


def test_one_foreign_whole_number_among_labels_is_refused():
    for foreign in (-1, 2, 9):
        with pytest.raises(ValueError, match=r"^y contains a label that is not among"):
            class_indices(np.array([1, 3, foreign, 1]), [1, 3])
    assert class_indices(np.array([3, 1, 3]), [3, 1])[0].tolist() == [1, 0, 1]


class Unhashable:
    """Raises an error that quotes it where a dictionary looks for it."""

    def __lt__(self, other):
        return False

    def __hash__(self):
        raise ArithmeticError("private cell")


class Panics:
    """Raises what is no Exception, as objects of libraries in Rust do."""

    def __lt__(self, other):
        return False

    def __hash__(self):
        raise BaseException("private cell")  # noqa: TRY002

    def __float__(self):
        raise BaseException("private cell")  # noqa: TRY002

    __str__ = __float__


def test_a_cell_that_panics_is_no_number():
    assert canonical(Panics()) is None
    X = np.array([[1.0], [Panics()]], dtype=object)
    with pytest.raises(TypeError, match=r"^X is not numeric in column 0") as caught:
        features(X)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("label", [Unhashable(), Panics()])
def test_a_label_that_cannot_be_looked_up_is_another_label(label):
    labels = np.array([label], dtype=object)
    with pytest.raises(ValueError, match=r"^y contains a label that is not among") as caught:
        class_indices(labels, [0, 1])
    assert caught.value.__context__ is None


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_process_is_no_odd_cell(stop):
    class Stopped:
        def __str__(self):
            raise stop

        def __lt__(self, other):
            return False

        __hash__ = __str__

    with pytest.raises(stop):
        canonical(Stopped())
    with pytest.raises(stop):
        class_indices(np.array([Stopped()], dtype=object), [0, 1])


@pytest.mark.parametrize("length", [2, 4])
def test_owners_of_more_or_fewer_rows_are_refused_without_a_number(length):
    with pytest.raises(
        ValueError, match=r"^X and groups must have the same number of rows: compare"
    ) as caught:
        sort_by_person(list(range(length)), NUMBERS[:3])
    assert caught.value.__context__ is None


@pytest.mark.parametrize("layout", ["C", "F"])
def test_rows_sorted_by_person_keep_the_memory_order_in_which_norms_are_summed(layout):
    X = np.array(NUMBERS[:4], order=layout)
    rows, _, _ = sort_by_person([1, 2, 1, 2], X)
    assert rows.flags[f"{layout}_CONTIGUOUS"]
    assert np.array_equal(rows, X[[0, 2, 1, 3]])


def test_a_missing_cell_does_not_change_why_a_text_is_refused():
    for odd in (None, pd.NA, np.nan, pd.NaT):
        column = np.array([1.0, "x", odd], dtype=object)
        assert validation._conversion_error(column) is ValueError
        assert validation._conversion_error(column[[0, 2]]) is None
