"""Validation of input data: an error names the column or the rule, never a data value.

An exception is an output. The schema of a table (column names, types, shape, label set) is public.
Its values are private, and so is the assignment of rows to persons.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dp_halfspace._silence import (
    IGNORED_WARNINGS,
    Other,
    Result,
    drop_output,
    may_print_or_warn,
    result_or,
)
from dp_halfspace.data.chunks import Chunks, is_own, is_raised_by
from dp_halfspace.data.people import People
from dp_halfspace.data.sparse_rows import checked_csr
from dp_halfspace.exceptions import warn_caller

# Parts of messages of scikit-learn and numpy that quote the array or the entry they refuse.
_QUOTES_DATA = re.compile(r"array=|could not convert|Complex data not supported|invalid literal")
# From this number on, two whole numbers can be the same float.
FIRST_ROUNDED = float(sys.float_info.radix**sys.float_info.mant_dig)
# Placeholder for an object that must not be converted.
_NO_NUMBER = object()
_MIXED = "y mixes types: use labels of one type"
_OTHER_LABEL = "y contains a label that is not among the public labels in classes"
_SHAPE_MESSAGES = re.compile(
    r"Found array|Expected|X has \d+ features|Sparse|The feature names|Feature names are only"
)
# A warning about names of columns, which the filters of a user may turn into an error.
_NAMES_WARNING = re.compile(
    r"X (?:does not have valid|has) feature names, but \w+ was fitted with(?:out)? feature names"
)
UNREADABLE = (
    "{} could not be read, and the message of its library may quote a value. Convert it first to "
    "an array, or to a table of pandas, polars or Arrow"
)
_RULE = "with a rule that does not depend on the private data"
LABEL_SET = (
    "classes=None takes the label set from y and declares it public: a single record with a rare "
    "label then changes the shape of the model or makes the fit fail, which the guarantee does not "
    "cover. State the label set, which may contain labels that do not occur: classes=[...]"
)


@dataclass(frozen=True)
class TrainingData:
    """A validated training set; `class_indices` are positions in the sorted public `classes`.

    Rows that `people` own are sorted by person. `X` and `class_indices` may be in chunks.
    `weights` in [0, 1] are private and belong to the records. `are_labels_seen` says that nobody
    stated the classes, which are the labels that occur.
    """

    X: Any
    class_indices: Any
    classes: NDArray[Any]
    feature_names: NDArray[Any] | None
    people: People | None = None
    weights: NDArray[np.float64] | None = None
    are_labels_seen: bool = False

    @property
    def n_privacy_units(self) -> int:
        """Public number of people or of records."""
        return int(self.X.shape[0]) if self.people is None else len(self.people)


def check_training_data(
    estimator: BaseEstimator,
    X: Any,
    y: ArrayLike,
    *,
    classes: ArrayLike | None,
    allow_missing: bool = False,
    hides_rows: bool = False,
) -> TrainingData:
    """Validate features and labels without changing the estimator."""
    if y is None:
        owner = type(estimator).__name__
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")
    probe = stand_in(estimator)
    X = check_features(probe, X, reset=True, allow_missing=allow_missing, hides_rows=hides_rows)
    indices, label_set = class_indices(y, classes)
    check_length("y", indices, n_rows(X), hides_rows=hides_rows)
    if classes is None:
        # The check whether labels look like classes is needed only without a public label set. It
        # warns if half of the labels differ, which would reveal a private number of rows.
        check_classification_targets(np.repeat(label_set, 3) if hides_rows else label_set[indices])
        warn_caller(LABEL_SET)
    names = getattr(probe, "feature_names_in_", None)
    return TrainingData(X, indices, label_set, names, are_labels_seen=classes is None)


def n_rows(X: Any) -> int:
    """Return the number of rows of a table of any library, or of a sparse matrix."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def check_length(name: str, values: Any, n_rows: int, *, hides_rows: bool) -> None:
    """Refuse a column of another length than X; the error states no number if it is hidden."""
    if len(values) != n_rows:
        found = f", got {n_rows} and {len(values)}"
        if hides_rows:
            found = f": compare len({name}) with len(X)"
        raise ValueError(f"X and {name} must have the same number of rows{found}")


def _check_labels(y: ArrayLike) -> NDArray[Any]:
    y = computed("y", y)
    array = array_or_none(y)
    if array is None or array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] != 1):
        # The message of a library would show the shape, in which the number of rows may be private.
        raise ValueError("y must be one-dimensional: one label for each record")
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels must be real numbers or text")
    # scikit-learn itself would make floats of nullable numbers, of which large ones can be equal.
    labels: NDArray[Any] = column_or_1d(array, warn=True)
    # numpy turns a missing label among strings in a list into a string.
    entries = list(y) if isinstance(y, list | tuple) else []
    has_text_in_list = len({isinstance(entry, str | bytes) for entry in entries}) > 1
    if labels.dtype.kind in "OT":
        entries += labels.tolist()
    is_number = labels.dtype.kind in "fmM"
    with _silence_for(entries):
        has_missing = any(map(is_missing, entries))
    if has_missing or (is_number and not np.isfinite(labels).all()):
        raise ValueError("Input y contains NaN, infinity, None, NaT or pd.NA: label every record")
    if has_text_in_list:
        # One string in a list turns all numbers into strings.
        raise ValueError(_MIXED)
    return labels


def array_or_none(values: Any) -> NDArray[Any] | None:
    """Return an array, or None if it would be ragged, without messages of a library."""
    with drop_output():
        return result_or(None, lambda: np.asarray(values))


def floats_or_nan(values: Any) -> NDArray[np.float64]:
    """Return an array of floats, or NaN for what is none."""
    return result_or(np.array(np.nan), lambda: np.asarray(values, dtype=np.float64))


def is_missing(value: Any) -> bool:
    """Return whether an object means a missing value.

    Such objects are None, NaN, infinity, NaT, pd.NA, an entry of a masked array and a null of
    Arrow.
    """
    if isinstance(value, float):
        return not math.isfinite(value)
    if value is None or isinstance(value, np.ma.MaskedArray):
        return True
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "as_py"):
        return is_missing(value.as_py())
    # NaT and every other NaN.
    return result_or(type(value).__name__ == "NAType", lambda: bool(value != value))  # noqa: PLR0124


def hidden(call: Callable[[], Result], otherwise: Callable[[], Other]) -> Result | Other:
    """Return the result of foreign code for records, whose errors may quote a record.

    Errors of this package show no values of records; they, those of scikit-learn about shapes and
    names, a lack of memory, and Ctrl-C are passed on. After another error, such as a panic of a
    library in Rust, which is a `BaseException` alone, the result is that of `otherwise`.
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Code of a user may begin its sentences like scikit-learn.
        is_about_shapes = (
            is_raised_by(error, "sklearn")
            and _SHAPE_MESSAGES.match(str(error))
            and not _QUOTES_DATA.search(str(error))
        )
        is_about_names = isinstance(error, UserWarning) and _NAMES_WARNING.fullmatch(str(error))
        if isinstance(error, MemoryError) or is_own(error) or is_about_shapes or is_about_names:
            raise
    # An error that is raised outside the handler does not contain the original one.
    return otherwise()


def call_silently(call: Callable[[], Result], failed: str) -> Result:
    """Return the result of foreign code for records, and drop its output; see `hidden`."""

    def refuse() -> NoReturn:
        raise ValueError(failed)

    return hidden(drop_output()(call), refuse)


def computed(name: str, values: Any) -> Any:
    """Return the array of an object of another library, which may compute it only now.

    Chunks and masked arrays are refused.
    """
    refuse_foreign_arrays(name, values)
    kind = type(values)
    is_known = any(hasattr(kind, each) for each in ("iloc", "columns", "column_names"))
    if is_known or issubclass(kind, np.ndarray) or not hasattr(kind, "__array__"):
        return values
    return call_silently(lambda: np.asarray(values), UNREADABLE.format(name))


def is_arrow_table(X: Any) -> bool:
    """Return whether a table is one of Arrow; frames with a column of that name are not."""
    return hasattr(X, "column_names") and not hasattr(X, "iloc")


def is_polars(X: Any) -> bool:
    """Return whether a table is one of polars; frames with a column of that name are not."""
    return hasattr(X, "get_columns") and not hasattr(X, "iloc")


def arrow() -> Any:
    """Return the optional package that has made a column of Arrow, or is to read a stream."""
    import pyarrow  # noqa: PLC0415 (optional dependency)

    return pyarrow


def with_readable_texts(column: Any) -> Any:
    """Return a column of Arrow with strings that are valid UTF-8, each by itself.

    Arrow reads a file without decoding its strings, and later quotes a string that it cannot
    decode. Dictionaries and views of strings, which lack many functions, become plain strings.
    """
    pyarrow = arrow()
    is_dictionary = pyarrow.types.is_dictionary(column.type)
    kind = column.type.value_type if is_dictionary else column.type
    if str(kind) not in ("string", "large_string", "string_view"):
        return column
    texts = column.cast(kind) if is_dictionary else column
    texts = texts.cast(pyarrow.large_string()) if str(kind) == "string_view" else texts
    try:
        texts.validate(full=True)
    except pyarrow.ArrowInvalid:
        cells = texts.cast(pyarrow.large_binary()).to_pylist()
        readable = [c if c is None else c.decode("utf-8", "backslashreplace") for c in cells]
        return pyarrow.array(readable, pyarrow.large_string())
    return texts


def readable_table(table: Any) -> Any:
    """Return a table of Arrow with strings that are valid UTF-8."""
    texts = list(map(with_readable_texts, table.columns))
    return type(table).from_arrays(texts, names=table.column_names)


def _kind_of(X: Any) -> str:
    """Return the kind of numbers of an array, and that of objects for any other table."""
    # The attribute `dtype` of a frame would be a column with this name.
    return str(getattr(None if hasattr(X, "iloc") else getattr(X, "dtype", None), "kind", "O"))


def check_features(
    estimator: BaseEstimator,
    X: Any,
    *,
    reset: bool,
    allow_missing: bool = False,
    hides_rows: bool = False,
) -> Any:
    """Return `X` as dense or CSR floats: finite, except for NaN in dense ones if allowed.

    No error states the number of rows if it is hidden.
    """
    # A matrix, which scikit-learn refuses, is what `todense` of sparse rows returns.
    X = np.asarray(X) if isinstance(X, np.matrix) else computed("X", X)
    if is_arrow_table(X):
        X = readable_table(X)
    if is_polars(X):
        # One whole number beyond 64 bits changes the type of its column, which numpy has not.
        wide = [each for each in X.get_columns() if str(each.dtype) in ("Int128", "UInt128")]
        X = X.with_columns([each.cast(float) for each in wide])
    table = check_two_dimensional(X)
    if sparse.issparse(X):
        X = checked_csr(X)
    _refuse_dates(X, table)
    if hides_rows and not table.shape[1]:
        raise ValueError("X has no columns: at least one is required")
    # Columns of numbers are read at once; if there are other cells, or missing ones, one by one.
    cells = table if isinstance(X, list | tuple) else X
    checked = None if holds_objects(cells) else _converted(estimator, X, cells, reset=reset)
    if checked is None and _kind_of(X) not in "biufc":
        objects = result_or(None, lambda: with_nan(X))
        checked = None if objects is None else _converted(estimator, X, objects, reset=reset)
    if checked is None:
        raise _not_numeric_error(X)
    names = getattr(estimator, "feature_names_in_", None)
    # A missing entry is filled by the scale of its column, and sparse columns have no scale.
    _check_finite(checked, names, allow_missing=allow_missing and not sparse.issparse(checked))
    return checked


def holds_objects(X: Any) -> bool:
    """Return whether the cells of a table are objects, which are read one by one.

    The conversion of one of them may warn, or fail with a message that quotes it.
    """
    if hasattr(X, "iloc"):
        return "object" in map(str, getattr(X, "dtypes", ()))
    if is_polars(X):
        return "Object" in map(str, X.dtypes)
    return isinstance(X, np.ndarray) and X.dtype.kind not in "biufc"


def _converted(estimator: BaseEstimator, X: Any, cells: Any, *, reset: bool) -> Any:
    """Return the cells of `X` as floats, or None if they are not numbers."""
    # One missing cell changes the type of a column of a frame, and one odd cell that of a list.
    has_one_type = isinstance(X, np.ndarray) or sparse.issparse(X)
    kinds = [np.float64, np.float32] if has_one_type else np.float64
    how: dict[str, Any] = {"accept_sparse": "csr", "dtype": kinds, "ensure_all_finite": False}

    def convert() -> Any:
        # Cells may have no column names, so those of `X` are checked.
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return check_array(cells, input_name="X", estimator=estimator, **how)

    checked = hidden(convert, lambda: None)
    # One odd cell changes the memory order in which polars exports a table of whole numbers, and
    # pandas one that was transposed.
    has_no_order = hasattr(X, "columns") and isinstance(checked, np.ndarray)
    return np.asfortranarray(checked) if has_no_order else checked


def with_nan(X: Any) -> NDArray[Any]:
    """Return objects with NaN for missing entries, each entry independently; infinity remains.

    A value whose conversion may warn is replaced by its float, or by an object that is no number.
    The result has the memory order of `X`, which determines how norms of rows are summed.
    """
    objects = np.array(X, dtype=object, order="K" if isinstance(X, np.ndarray) else "C")
    flat = objects.reshape(-1, order="A")
    cells = flat.tolist()
    kinds_that_warn = set(filter(may_print_or_warn, set(map(type, cells))))
    for place, value in enumerate(cells):
        is_masked = isinstance(value, np.ma.MaskedArray)
        if type(value) in kinds_that_warn and not is_masked:
            flat[place] = _number_or_none(value)
        elif is_missing(value) and not isinstance(value, float):
            flat[place] = math.nan
    return objects


def _number_or_none(value: Any) -> Any:
    """Return the float of a real number of another library, whose conversion may warn or print."""
    if not isinstance(value, Real):
        return _NO_NUMBER
    with drop_output():
        return result_or(_NO_NUMBER, lambda: float(value))


def is_chunked(X: Any) -> bool:
    """Return whether rows are in chunks of this library or of dask, without importing dask."""
    is_dask = type(X).__module__.partition(".")[0] in ("dask", "dask_expr")
    return is_dask or isinstance(X, Chunks)


def gathered(labels: Any) -> Any:
    """Return labels that are in chunks as an array, and others unchanged."""
    if isinstance(labels, Chunks):
        return np.concatenate([np.asarray(part) for part in labels.values()])
    return np.asarray(labels) if is_chunked(labels) else labels


def refuse_foreign_arrays(name: str, values: Any) -> None:
    """Refuse chunks that would have to be read as a whole, and masked arrays by their type.

    The mask is private.
    """
    if is_chunked(values):
        raise ValueError(f"{name} is in chunks, which is not supported here: give an array")

    rows = values if isinstance(values, list | tuple) else ()
    if any(map(np.ma.isMaskedArray, (values, *rows))):
        raise ValueError(f"{name} is a masked array, whose mask would be lost: fill it, {_RULE}")


def _refuse_dates(X: Any, table: Any) -> None:
    """Refuse columns of dates and durations, because their numbers depend on their unit."""
    if hasattr(X, "dtypes"):
        # Types of polars have a method for this, and no `kind`.
        kinds = [
            getattr(t, "kind", "M" if getattr(t, "is_temporal", bool)() else "") for t in X.dtypes
        ]
        bad = [j for j, kind in enumerate(kinds) if kind in ("m", "M")]
    else:
        bad = list(range(table.shape[1])) if table.dtype.kind in "mM" else []
    if bad:
        raise ValueError(
            f"X holds dates or durations in {_name_columns(_names_of(X), bad)}: make them numbers "
            "first, such as days since a fixed date, or use PrivateTableClassifier for dates"
        )


def check_two_dimensional(X: Any) -> Any:
    """Return `X` if it has the shape of a table, otherwise its rows in an array.

    Anything else is refused before a library quotes it in its message.
    """
    table = X
    if not hasattr(X, "ndim") or isinstance(X, memoryview):
        # An entry of a masked array, for example, would warn.
        with IGNORED_WARNINGS:
            table = array_or_none(X)
    if table is not None and table.ndim == 2:
        return table
    if table is None:
        why = ": its rows differ in length"
    elif table.ndim == 0:
        why = f": {type(X).__name__} is no table; a LazyFrame becomes one by X.collect()"
    elif getattr(getattr(table, "dtype", None), "names", None):
        why = ": make the structured array a frame by pandas.DataFrame.from_records(X)"
    elif hasattr(table, "to_frame"):
        why = ": of a Series, give X.to_frame() for a column, and frame.iloc[[k]] for a row"
    else:
        why = (
            f", of shape (n_samples, n_features), but has {table.ndim} dimension(s). Reshape your "
            "data: X.reshape(-1, 1) for a single feature, X.reshape(1, -1) for a single sample"
        )
    raise ValueError(f"X must be two-dimensional{why}")


def _name_columns(names: Any, columns: Iterable[int]) -> str:
    labels = [repr(str(names[j])) if names is not None else str(int(j)) for j in columns]
    return ("column " if len(labels) == 1 else "columns ") + first_of(labels)


def first_of(texts: Sequence[str]) -> str:
    """List the first few of several texts, and count the others."""
    more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more


def _names_of(X: Any) -> Any:
    """Return the names of columns, if any; `columns` of an Arrow table are the cells."""
    return X.column_names if is_arrow_table(X) else getattr(X, "columns", None)


def _not_numeric_error(X: Any) -> ValueError | TypeError:
    """Return an error that names the columns that cannot be read as real numbers."""
    if _kind_of(X) == "c":
        return ValueError("Complex data not supported: X must hold real numbers")
    names, reasons = _names_of(X), [_conversion_error(column) for column in _columns_of(X)]
    bad = [j for j, reason in enumerate(reasons) if reason]
    twice = repeated_name(() if names is None else names)
    if twice is not None and not bad:
        return ValueError(twice)
    where = f"X is not numeric in {_name_columns(names, bad) if bad else 'some column'}"
    if TypeError in reasons:
        return TypeError(f"{where}: every argument must be a number, or a string of a number")
    return ValueError(f"{where}: encode texts as numbers, {_RULE}, or use PrivateTableClassifier")


def repeated_name(names: Iterable[Any]) -> str | None:
    """Return why names of columns cannot tell them apart, or None if they can."""
    twice = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    return f"X has several columns {twice[0]!r}: column names must be unique" if twice else None


def _columns_of(X: Any) -> list[NDArray[Any] | None]:
    """Return columns of objects, with None for a column that cannot be read without quoting it."""
    if hasattr(X, "iloc"):
        arrays = [array_or_none(X.iloc[:, j]) for j in range(X.shape[1])]
        return [None if array is None else with_nan(array) for array in arrays]
    objects = result_or(None, lambda: with_nan(X))
    return [] if objects is None else list(objects.T)


def _conversion_error(column: NDArray[Any] | None) -> type[Exception] | None:
    """Return why a column does not convert to float, missing values aside."""
    if column is None:
        return ValueError
    column = column[[not is_missing(value) for value in column]]

    def reason() -> type[Exception] | None:
        try:
            column.astype(np.float64)
        except TypeError:
            return TypeError
        return None

    return result_or(ValueError, reason)


def _check_finite(X: Any, names: Any, *, allow_missing: bool) -> None:
    """Refuse infinity, and NaN where it is not allowed, naming the columns."""
    is_sparse = sparse.issparse(X)
    values = X.data if is_sparse else X
    bad = np.asarray(np.isinf(values) if allow_missing else ~np.isfinite(values))
    if bad.any():
        columns = np.unique(X.indices[bad]) if is_sparse else np.flatnonzero(bad.any(axis=0))
        raise not_finite(names, columns.tolist())


def not_finite(names: Any, columns: list[int]) -> ValueError:
    """Return an error that names the columns with missing or infinite values."""
    where = _name_columns(names, columns) if columns else "some column"
    return ValueError(
        f"Input X contains NaN or infinity in {where}: replace such values first, {_RULE}"
    )


def class_indices(y: ArrayLike, classes: ArrayLike | None) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the positions of labels in the sorted public label set, and this set."""
    labels = _check_labels(y)
    if classes is None:
        seen, inverse = _distinct_labels(labels)
        if len(seen) < 2:
            raise ValueError(
                "y holds one class only, and classification needs at least 2 classes: give the "
                "PUBLIC label set as classes, of which one may be absent"
            )
        return inverse.astype(np.intp), _as_numbers(seen)
    label_set = _check_classes(classes)
    # One float among whole numbers in a list turns all of them into floats.
    is_rounded = labels.dtype.kind == "f" and label_set.dtype.kind in "iu"
    if is_rounded and (np.abs(label_set.astype(np.float64)) >= FIRST_ROUNDED).any():
        raise ValueError(
            "classes contains whole numbers from 2^53 on, and y contains floats, which cannot "
            "distinguish them: give such labels as whole numbers of one type, or as text"
        )
    if labels.dtype.kind == "O":
        # How an object compares with the labels of other records is private.
        codes = look_up(labels, label_set)
    else:
        seen, inverse = _distinct_labels(labels)
        codes = look_up(seen, label_set)[inverse]
    if (codes < 0).any():
        _distinct_labels(labels)  # which refuses mixed types by a sentence of its own
        raise ValueError(_OTHER_LABEL + _unlike_types(labels, label_set))
    return codes, label_set


def _as_numbers(label_set: NDArray[Any]) -> NDArray[Any]:
    """Return distinct numbers that are stored as objects as an array of numbers, if all remain."""
    numbers = array_or_none(label_set.tolist()) if label_set.dtype.kind == "O" else None
    if numbers is None or numbers.dtype.kind not in "biuf":
        return label_set
    return numbers if len(np.unique(numbers)) == len(label_set) else label_set


def share_of_right(y: Any, predicted: Any, classes: NDArray[Any], sample_weight: Any) -> float:
    """Return the share of the records whose label is the predicted one.

    Labels may be of every type that a fit takes: a reader may store numbers as objects.
    """
    codes, found = (_label_codes(labels, classes) for labels in (y, predicted))
    check_consistent_length(codes, found, sample_weight)
    return float(np.average(codes == found, weights=sample_weight))


def _label_codes(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each label among public ones, -1 for others of their type."""
    labels = _check_labels(gathered(y))
    seen, inverse = _distinct_labels(labels)
    codes = look_up(seen, classes)
    unlike = _unlike_types(labels, classes) if len(labels) and (codes < 0).all() else ""
    if unlike:
        raise ValueError(_OTHER_LABEL + unlike)
    return codes[inverse]


def _unlike_types(labels: NDArray[Any], label_set: NDArray[Any]) -> str:
    """Say that labels are numbers and the public ones are strings, or the other way round.

    This depends on types only: on that of y as a whole and those of the public labels.
    """
    if label_set.dtype.kind == "U" and labels.dtype.kind in "biuf":
        return (
            ": y contains numbers, and classes contains strings. Give both as one type, such as "
            "classes=[0, 1], also in ensembles and cross_val_predict of scikit-learn, which "
            "replace labels by their positions"
        )
    # Types are not mixed: numbers and strings among objects have been refused.
    is_text = labels.dtype.kind in "UT" or isinstance(labels.ravel()[0], str)
    if label_set.dtype.kind in "biuf" and is_text:
        return (
            ": y contains strings, and the public labels are numbers or booleans. Give both as one "
            "type, for example classes=['no', 'yes'], or y.astype(int) if the strings are numbers"
        )
    return ""


def look_up(labels: NDArray[Any], label_set: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each label, or -1 for another object, which may not be hashable."""
    position = {label: code for code, label in enumerate(label_set.tolist())}
    wanted = labels.tolist()
    with _silence_for(wanted):
        places = [result_or(-1, partial(position.get, label, -1)) for label in wanted]
    return np.array(places, dtype=np.intp)


def _silence_for(values: Sequence[Any]) -> AbstractContextManager[None]:
    """Drop what objects of other libraries say when they are compared; others say nothing."""
    is_loud = any(map(may_print_or_warn, set(map(type, values))))
    return drop_output() if is_loud else nullcontext()


def _distinct_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return distinct labels and the position of each label, or refuse mixed types."""
    found = result_or(None, lambda: np.unique(labels, return_inverse=True))
    if found is None:  # raised outside the handler, so that no other message is its context
        raise ValueError(_MIXED)
    return found


def _check_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return the sorted public label set, or refuse an invalid one."""
    given = np.asarray(classes)
    label_set = result_or(np.empty(0), lambda: np.unique(given))
    has_nan = given.dtype.kind == "f" and np.isnan(given).any()
    if given.ndim != 1 or has_nan or not 2 <= len(label_set) == len(given):
        raise ValueError(
            "classes must be None or a one-dimensional list of at least two distinct labels of "
            "one type"
        )
    return label_set


def stand_in(estimator: Any) -> BaseEstimator:
    """Return an empty estimator of the same name, which gets the attributes that validation sets.

    The estimator itself is then unchanged if the data are refused.
    """
    bare: BaseEstimator = type(type(estimator).__name__, (BaseEstimator,), {})()
    return bare
