"""Input data in chunks, which are validated where they are stored and mapped chunk by chunk.

A worker returns a description of an error, and the error is raised here. All checks together read
the features once and the labels once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._memory import OutOfMemory, shortages_dropped
from dp_halfspace.data.chunks import Chunks, DaskChunks, dask, is_own, unwrap_result
from dp_halfspace.data.encoding import CodedRows, numbers_of
from dp_halfspace.data.validation import (
    LABEL_SET,
    UNREADABLE,
    TrainingData,
    array_or_none,
    call_silently,
    check_features,
    check_two_dimensional,
    class_indices,
    holds_objects,
    is_chunked,
    n_rows,
    not_finite,
    refuse_foreign_arrays,
    stand_in,
    with_nan,
)
from dp_halfspace.exceptions import warn_caller


def checked_chunks(
    estimator: BaseEstimator, X: Any, *, reset: bool, allow_missing: bool = False
) -> Chunks:
    """Return `X` as chunks of floats, with the errors and attributes of `check_features`."""
    given = as_chunks(X)
    sample = check_features(estimator, given.sample, reset=reset, allow_missing=True)
    found = list(given.each(_inspect_chunk, sample.dtype, sample.shape[1], allow_missing).values())
    if None in found:
        raise ValueError(
            "X contains a chunk that is not a table of real numbers with the columns of the "
            "others: encode text and categories as numbers, and convert sparse chunks to dense ones"
        )
    counts = tuple(size for size, _, _ in found)
    if not sum(counts):
        check_features(estimator, given.sample[:0], reset=False)
    bad = sorted({column for _, _, columns in found for column in columns})
    if bad:
        raise not_finite(getattr(estimator, "feature_names_in_", None), bad)
    marks = type(given).of([mark for _, mark, _ in found])
    floats = given.each(_to_floats, sample.dtype).each(_check_unchanged, marks)
    return type(given)(floats.parts, None, counts, sample.shape[1])


def check_chunks(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    classes: ArrayLike | None,
    allow_missing: bool = False,
) -> TrainingData:
    """Validate features and labels in chunks without touching the estimator."""
    is_seen = classes is None and isinstance(y, np.ndarray) and y.dtype.kind in "biuU"
    if is_seen:
        # Labels in a single array are in this process, so their set can be read from them, as for
        # rows in memory; it is then treated as public.
        warn_caller(LABEL_SET)
        classes = np.unique(y)
    if y is None or classes is None:
        raise ValueError("X is in chunks: give y, and state the public label set: classes=[...]")
    probe = stand_in(estimator)
    rows = checked_chunks(probe, X, reset=True, allow_missing=allow_missing)
    codes, label_set = _encode_labels(rows, y, classes)
    names = getattr(probe, "feature_names_in_", None)
    return TrainingData(rows, codes, label_set, names, are_labels_seen=is_seen)


def labelled_chunks(X: Any, y: Any, classes: ArrayLike) -> tuple[Chunks, Chunks]:
    """Return rows in chunks, unchanged, and the class indices of their labels."""
    given = as_chunks(X)
    found = list(given.each(_size_and_checksum).values())
    marks = type(given).of([mark for _, mark in found])
    rows = replace(given.each(_check_unchanged, marks), counts=tuple(count for count, _ in found))
    return rows, _encode_labels(rows, y, classes)[0]


def _encode_labels(rows: Chunks, y: Any, classes: ArrayLike) -> tuple[Chunks, NDArray[Any]]:
    """Return the class indices in chunks, next to their rows, and the sorted label set."""
    label_set = class_indices(np.empty(0), classes)[1]
    codes = _labels_beside(rows, y).each(_label_indices, np.asarray(classes)).kept()
    found = list(codes.each(_report_labels).values())
    for message in found:
        if isinstance(message, str):
            raise ValueError(message)
    if tuple(count for count, _ in found) != rows.counts:
        raise ValueError(_SAME_CHUNKS)
    marks = type(rows).of([mark for _, mark in found])
    return replace(codes.each(_check_unchanged, marks), counts=rows.counts), label_set


# For every column its type, its shape and the checksum of its bytes.
Checksum: TypeAlias = tuple[tuple[str, tuple[int, ...], int], ...]

_SAME_CHUNKS = "X and y must have the same number of chunks, with the same numbers of rows"


def as_chunks(X: Any) -> Chunks:
    """Return a table of dask as chunks, with a sample of their type and columns."""
    if isinstance(X, Chunks):
        return X
    check_two_dimensional(X)
    if hasattr(X, "_meta_nonempty"):
        return DaskChunks(_delayed("X", X), X._meta_nonempty)
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns")
    return DaskChunks(_delayed("X", X.rechunk({1: -1})), np.ones((2, X.shape[1]), X.dtype))


def _delayed(name: str, values: Any) -> tuple[Any, ...]:
    """Return the chunks of dask; of a frame in this process, dask converts its texts now."""
    found = call_silently(lambda: np.ravel(values.to_delayed()), UNREADABLE.format(name))
    return tuple(found)


def _labels_beside(rows: Chunks, y: Any) -> Chunks:
    if isinstance(y, Chunks):
        labels = y
    elif is_chunked(y):
        if hasattr(y, "rechunk") and y.shape[0] == rows.shape[0]:
            y = y.rechunk({0: rows.counts})
        labels = DaskChunks(_delayed("y", y))
    else:
        refuse_foreign_arrays("y", y)
        column, ends = array_or_none(y), np.cumsum(rows.counts)
        if column is None or column.ndim == 0 or len(column) != ends[-1]:
            raise ValueError(_SAME_CHUNKS)
        labels = type(rows).of(np.split(column, ends[:-1]))
    if len(labels.parts) != len(rows.parts) or type(labels) is not type(rows):
        raise ValueError(_SAME_CHUNKS)
    return labels


def _to_floats(chunk: Any, dtype: Any) -> Any:
    """Return a chunk as an array of floats; coded rows consist of floats already."""
    if isinstance(chunk, CodedRows):
        return chunk
    has_no_order = hasattr(chunk, "to_numpy")
    if holds_objects(chunk):
        chunk = with_nan(chunk)
    elif has_no_order:
        chunk = chunk.to_numpy(dtype=dtype, na_value=np.nan)
    floats = np.asarray(chunk, dtype=dtype)
    # One odd cell changes the memory order in which a frame is written down.
    return np.asfortranarray(floats) if has_no_order else floats


def _inspect_chunk(
    chunk: Any, dtype: Any, n_columns: int, allow_missing: bool
) -> tuple[int, Checksum, list[int]] | None:
    """Return the number of rows, their checksum, and the refused columns, None for all."""
    try:
        refuse_foreign_arrays("X", chunk)
        rows = _to_floats(chunk, dtype)
        if len(rows.shape) != 2 or rows.shape[1] != n_columns:
            return None
        numbers = numbers_of(rows)
        bad = np.isinf(numbers) if allow_missing else ~np.isfinite(numbers)
        return len(rows), _checksum(rows), np.flatnonzero(bad.any(axis=0)).tolist()
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def _checksum(rows: Any) -> Checksum:
    """Return types, shapes and CRC-32 of all bytes of rows or labels: ``certificate.md``.

    Objects and padded numbers are written as strings.
    """
    is_frame = hasattr(rows, "iloc") and rows.ndim == 2
    columns = [rows.iloc[:, j] for j in range(rows.shape[1])] if is_frame else [rows]
    if isinstance(rows, CodedRows):
        columns = list(rows.arrays)
    return tuple(
        (column.dtype.str, column.shape, crc32(_bytes_of(column)))
        for column in map(np.asarray, columns)
    )


def _bytes_of(column: NDArray[Any]) -> Any:
    if column.dtype.char in "OVgG":
        return repr(column.tolist()).encode()
    return np.ascontiguousarray(column).reshape(-1).view(np.uint8)


def _size_and_checksum(chunk: Any) -> tuple[int, Checksum]:
    if sparse.issparse(chunk):
        raise ValueError("this chunk is a sparse matrix: convert sparse chunks to dense ones")
    return len(chunk), _checksum(chunk)


def _check_unchanged(chunk: Any, mark: Checksum) -> Any:
    """Return a chunk after a check that its rows are those that were validated.

    The factor and the label of a row belong to its position, so the norm of another row there would
    not be bounded.
    """
    if _checksum(chunk) != mark:
        raise RuntimeError(
            "this chunk changed between two passes: every pass must read the same rows and labels "
            "in the same order. Persist a shuffle or a random imputation, or write it to a file"
        )
    return chunk


def _label_indices(labels: Any, classes: NDArray[Any]) -> NDArray[Any] | str:
    """Return the positions of labels among the classes, or an error message."""
    try:
        return class_indices(labels, classes)[0]
    except ValueError as error:
        if not is_own(error):
            raise
        return str(error)


def _report_labels(codes: NDArray[Any] | str) -> tuple[int, Checksum] | str:
    """Return the number of labels and their checksum, or an error message."""
    return codes if isinstance(codes, str) else _size_and_checksum(codes)


Method = TypeVar("Method", bound=Callable[..., Any])


def by_chunks(method: Method) -> Method:
    """Extend a method that maps rows to chunks: lazily for dask, otherwise one by one.

    Workers get a copy of the fitted estimator without its ledger and its seed. Floating-point
    warnings are disabled, because a warning would reveal a row that overflows, also in a step
    before a fit.
    """

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        if not is_chunked(X):
            with shortages_dropped(), np.errstate(all="ignore"):
                return method(self, X)
            raise OutOfMemory(
                "there is not enough memory for a prediction: give fewer rows at a time"
            )
        return mapped_by_chunks(method, self, X)

    return cast("Method", mapped)


def without_ledger_and_seed(model: Any) -> Any:
    """Return a copy of a fitted model and its parts without ledger and seed."""
    if type(model) in {list, tuple}:
        return type(model)(map(without_ledger_and_seed, model))
    if not isinstance(model, BaseEstimator):
        return model
    twin = copy.copy(model)
    for name, value in vars(twin).items():
        is_left_out = name in {"ledger", "random_state"}
        vars(twin)[name] = None if is_left_out else without_ledger_and_seed(value)
    return twin


def mapped_by_chunks(method: Callable[..., Any], estimator: Any, X: Any) -> Any:
    """Call a method of a fitted estimator on every chunk; see `by_chunks`."""
    check_is_fitted(estimator)
    twin, given = without_ledger_and_seed(estimator), as_chunks(X)
    # The result for the sample has the columns of all results, and wrong names raise here.
    like = np.asarray(method(twin, given.sample))
    images = given.each(of_rows, method, twin, like[:0])
    if not isinstance(given, DaskChunks):
        return np.concatenate(list(images.values()))
    # A frame has none, but may have a column of this name.
    counts = X.chunks[0] if hasattr(type(X), "chunks") else (np.nan,) * len(images.parts)
    blocks = [
        dask().array.from_delayed(
            dask().delayed(unwrap_result)(part, i), (count, *like.shape[1:]), like.dtype
        )
        for i, (part, count) in enumerate(zip(images.parts, counts, strict=True))
    ]
    return dask().array.concatenate(blocks)


def of_rows(rows: Any, method: Callable[..., Any], model: Any, nothing: Any, *labels: Any) -> Any:
    """Return what a method of a model says of rows; models refuse a chunk without rows."""
    return np.asarray(method(model, rows, *labels)) if n_rows(rows) else nothing
