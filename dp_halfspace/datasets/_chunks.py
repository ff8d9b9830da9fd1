"""Tables that are read from a disk in chunks, again at every pass of a fit."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from dp_halfspace.data.chunks import Chunks, LocalChunks


def in_chunks(array: Any, n_rows: int = 2**17) -> Chunks:
    """Cut a memory map, or another array, into chunks that are read one at a time.

    Parameters
    ----------
    array : ndarray of shape (n_samples, n_features) or (n_samples,)
        Features, or labels. It is neither copied nor read.
    n_rows : int, default=131072
        Rows of a chunk; the last one may have fewer.

    Returns
    -------
    Chunks
        For the `X` or the `y` of an estimator whose page says that it takes chunks: a fit then
        needs the memory of one chunk, and about 24 bytes for each row.

    Raises
    ------
    ValueError
        If `n_rows` is not positive.

    Notes
    -----
    **Privacy.** Reads nothing, so it costs nothing. `n_rows` is public. The array must hold the
    same numbers at every pass: a checksum of every chunk is compared, and a fit raises where one
    differs.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.datasets import in_chunks
    >>> len(in_chunks(np.zeros((1000, 3)), n_rows=300).parts)
    4
    """
    if n_rows < 1:
        raise ValueError("n_rows must be a positive number of rows")
    readers = [partial(_part, array, slice(lo, lo + n_rows)) for lo in range(0, len(array), n_rows)]
    return LocalChunks.read_by(readers, np.ones((2, *array.shape[1:]), array.dtype))


def read_parquet(path: str | PathLike[str], label: str) -> tuple[Chunks, Chunks]:
    """Open the Parquet files at a path as features and labels, a chunk for each row group.

    Needs ``pyarrow`` and ``pandas`` (``pip install dp-halfspace[parquet]``).

    Parameters
    ----------
    path : str or path
        A file, or a directory of them.
    label : str
        Column of the labels; all others are features.

    Returns
    -------
    X, y : Chunks
        For ``fit``. A row group is read when a pass needs it, and then dropped.

    Raises
    ------
    ValueError
        If there is no column `label`.

    Notes
    -----
    **Privacy.** Reads the schema and the sizes of the row groups, which are public: how many rows
    a group has must not depend on what is in them.

    Examples
    --------
    >>> from dp_halfspace.datasets import read_parquet
    >>> X, y = read_parquet("visits/", label="returned")  # doctest: +SKIP
    """
    from pyarrow import dataset  # noqa: PLC0415

    table = dataset.dataset(path, format="parquet")
    if label not in table.schema.names:
        raise ValueError(f"there is no column {label!r} at the path: give the one of the labels")
    names = [name for name in table.schema.names if name != label]
    groups = [group for file in table.get_fragments() for group in file.split_by_row_group()]
    # Two rows of missing values have the columns and types of all others.
    like = _frame(table.schema.empty_table())
    like = type(like)({name: _two(column) for name, column in like.items()})
    X = LocalChunks.read_by([partial(_group, group, names) for group in groups], like[names])
    readers = [partial(_labels, group, label) for group in groups]
    kind = like[label].dtype
    some = np.zeros(2, kind.numpy_dtype) if kind.kind in "biuf" else np.full(2, "")
    return X, LocalChunks.read_by(readers, some)


def _part(array: Any, rows: slice) -> Any:
    return array[rows]


def _frame(table: Any) -> Any:
    """Return a frame of pandas that keeps Arrow's types: others follow from what is missing."""
    import pandas  # noqa: PLC0415 (optional dependency)

    return table.to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)


def _two(column: Any) -> Any:
    """Return two missing values of the type of a column."""
    return type(column)([None, None], dtype=column.dtype)


def _group(group: Any, names: list[str]) -> Any:
    """Read some columns of a row group."""
    return _frame(group.to_table(columns=names))


def _labels(group: Any, label: str) -> Any:
    return _labels_in(_group(group, [label]), label)


def _labels_in(frame: Any, label: str) -> Any:
    """Return labels by the type that the file states; missing ones, which are refused, too."""
    column = frame[label]
    is_plain = column.dtype.kind in "biuf" and not column.isna().any()
    return column.to_numpy(dtype=column.dtype.numpy_dtype if is_plain else object)
