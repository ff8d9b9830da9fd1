"""Data that users hand in as chunks: checked where they are, as arrays are checked.

A worker says what is wrong, and the error comes from here. All checks together read the features
once and the labels once.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b, shake_256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from dp_halfspace.data.chunks import Chunks, DaskChunks, is_own
from dp_halfspace.data.validation import (
    TrainingData,
    check_features,
    check_two_dimensional,
    is_chunked,
    label_codes,
    not_finite,
    refuse_mask,
    unfitted_names,
    with_nan,
)


def checked_chunks(
    estimator: BaseEstimator, X: Any, *, reset: bool, allow_missing: bool = False
) -> Chunks:
    """Return `X` as chunks of floats; errors and attributes are those of `check_features`."""
    given = as_chunks(X)
    sample = check_features(estimator, given.sample, reset=reset, allow_missing=True)
    found = list(given.each(_inspected, sample.dtype, sample.shape[1], allow_missing).values())
    if None in found:
        raise ValueError(
            "X holds a chunk that is no table of real numbers with the columns of the others: "
            "encode text and categories as numbers, and sparse chunks as dense ones, first"
        )
    counts = tuple(size for size, _, _ in found)
    if not sum(counts):
        check_features(estimator, given.sample[:0], reset=False)
    bad = sorted({column for _, _, columns in found for column in columns})
    if bad:
        raise not_finite(getattr(estimator, "feature_names_in_", None), bad)
    marks = type(given).of([mark for _, mark, _ in found])
    floats = given.each(_floats, sample.dtype).each(_same, marks)
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
    if y is None or classes is None:
        raise ValueError("X is in chunks: give y, and state the public label set: classes=[...]")
    probe = unfitted_names(estimator)
    rows = checked_chunks(probe, X, reset=True, allow_missing=allow_missing)
    codes, label_set = _coded(rows, y, classes)
    return TrainingData(rows, codes, label_set, getattr(probe, "feature_names_in_", None))


def labelled_chunks(X: Any, y: Any, classes: ArrayLike) -> tuple[Chunks, Chunks]:
    """Return rows as they were handed in, in chunks, and the codes of their labels."""
    given = as_chunks(X)
    found = list(given.each(_size_and_mark).values())
    marks = type(given).of([mark for _, mark in found])
    rows = replace(given.each(_same, marks), counts=tuple(count for count, _ in found))
    return rows, _coded(rows, y, classes)[0]


def _coded(rows: Chunks, y: Any, classes: ArrayLike) -> tuple[Chunks, NDArray[Any]]:
    """Return the codes of labels, kept beside their rows, and the sorted label set."""
    label_set = label_codes(np.empty(0), classes)[1]
    codes = _labels_beside(rows, y).each(_codes, np.asarray(classes)).kept()
    found = list(codes.each(_said).values())
    for said in found:
        if isinstance(said, str):
            raise ValueError(said)
    if tuple(count for count, _ in found) != rows.counts:
        raise ValueError(_SAME)
    marks = type(rows).of([mark for _, mark in found])
    return replace(codes.each(_same, marks), counts=rows.counts), label_set


# Keys of the words of a block of a checksum: as if drawn at random, and the same on all workers.
_KEYS = np.frombuffer(shake_256(b"chunks that stay the same").digest(4096), dtype="<u8")

_SAME = "X and y must have the same chunks: as many of them, with as many rows"


def as_chunks(X: Any) -> Chunks:
    """Return a table of dask as chunks, with a sample of what they hold."""
    if isinstance(X, Chunks):
        return X
    check_two_dimensional(X)
    if hasattr(X, "_meta_nonempty"):
        return DaskChunks(tuple(X.to_delayed()), X._meta_nonempty)
    if np.isnan(X.shape[1]):
        raise ValueError("X must have a known number of columns")
    parts = X.rechunk({1: -1}).to_delayed().ravel()
    return DaskChunks(tuple(parts), np.ones((2, X.shape[1]), X.dtype))


def _labels_beside(rows: Chunks, y: Any) -> Chunks:
    """Return labels in the chunks of their rows."""
    if isinstance(y, Chunks):
        labels = y
    elif is_chunked(y):
        if hasattr(y, "rechunk") and not np.isnan(y.shape[0]) and y.shape[0] == rows.shape[0]:
            y = y.rechunk({0: rows.counts})
        labels = DaskChunks(tuple(np.ravel(y.to_delayed())))
    else:
        refuse_mask("y", y)
        column, ends = np.asarray(y), np.cumsum(rows.counts)
        if column.ndim == 0 or len(column) != ends[-1]:
            raise ValueError(_SAME)
        values = tuple(np.split(column, ends[:-1]))
        labels = type(rows).of(values)
    if len(labels.parts) != len(rows.parts) or type(labels) is not type(rows):
        raise ValueError(_SAME)
    return labels


def _floats(chunk: Any, dtype: Any) -> NDArray[Any]:
    """Return a chunk as an array of floats."""
    if hasattr(chunk, "to_numpy"):
        return np.asarray(chunk.to_numpy(dtype=dtype, na_value=np.nan))
    if getattr(getattr(chunk, "dtype", None), "kind", "") == "O":
        chunk = with_nan(chunk)
    return np.asarray(chunk, dtype=dtype)


def _inspected(
    chunk: Any, dtype: Any, n_columns: int, allow_missing: bool
) -> tuple[int, bytes, list[int]] | None:
    """Return the number of rows, their mark, and which columns are refused; None if all are."""
    try:
        refuse_mask("X", chunk)
        rows = _floats(chunk, dtype)
        if rows.ndim != 2 or rows.shape[1] != n_columns:
            return None
        bad = np.isinf(rows) if allow_missing else ~np.isfinite(rows)
        return len(rows), _mark(rows), np.flatnonzero(bad.any(axis=0)).tolist()
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None


def _mark(rows: Any) -> bytes:
    """Return a checksum of all rows, or labels, in their order: of every byte, and of types."""
    is_frame = hasattr(rows, "iloc") and rows.ndim == 2
    columns = [rows.iloc[:, j] for j in range(rows.shape[1])] if is_frame else [rows]
    whole = blake2b(digest_size=16)
    for column in map(np.asarray, columns):
        whole.update(f"{column.dtype.str} {column.shape}".encode())
        whole.update(_shortened(column))
    return whole.digest()


def _shortened(column: NDArray[Any]) -> bytes:
    """Return what tells two columns of one type apart, in few bytes; see ``certificate.md``.

    Of each block of bytes it holds two sums of words times public keys. In the product of a word
    and its key the upper half of the word meets fewer bits of the key: so words of the second sum
    begin in the middle of those of the first. Objects and padded numbers are written out.
    """
    if column.dtype.char in "OVgG":
        return repr(column.tolist()).encode()
    data = np.ascontiguousarray(column).reshape(-1).view(np.uint8)
    n_blocks = max(0, len(data) - 4) // _KEYS.nbytes
    end = n_blocks * _KEYS.nbytes
    words = (data[i : i + end].view("<u8").reshape(n_blocks, len(_KEYS)) for i in (0, 4))
    sums = [np.einsum("ij,j->i", each, _KEYS).tobytes() for each in words]
    return b"".join([*sums, data[end:].tobytes()])


def _size_and_mark(chunk: Any) -> tuple[int, bytes]:
    return len(chunk), _mark(chunk)


def _same(chunk: Any, mark: bytes) -> Any:
    """Return a chunk, and make sure that every row is the one that was checked.

    The factor of a row, and its label, stay with its place: another row would not be bounded.
    """
    if _mark(chunk) != mark:
        raise RuntimeError(
            "this chunk has changed between two passes: rows and labels must come with the same "
            "values in the same order whenever they are read. Persist, or write to a file, what a "
            "shuffle or a random imputation has made"
        )
    return chunk


def _codes(labels: Any, classes: NDArray[Any]) -> NDArray[Any] | str:
    """Return the positions of labels among the classes, or what is wrong with them."""
    try:
        return label_codes(labels, classes)[0]
    except ValueError as error:
        if not is_own(error):
            raise
        return str(error)


def _said(codes: NDArray[Any] | str) -> tuple[int, bytes] | str:
    """Return the number of labels and their mark, or what is wrong with them."""
    return codes if isinstance(codes, str) else _size_and_mark(codes)
