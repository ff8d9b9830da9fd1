"""Data to try the estimators on, and tables that are larger than memory."""

from __future__ import annotations

from functools import partial
from operator import getitem
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from dp_halfspace._memory import NUMBER_BYTES, refuse_beyond_memory
from dp_halfspace._params import checked_size, require
from dp_halfspace.data.chunks import Chunks, LocalChunks
from dp_halfspace.data.validation import readable_table

__all__ = ["in_chunks", "make_halfspace", "read_parquet"]


def make_halfspace(
    n_samples: int = 20_000,
    n_features: int = 20,
    *,
    margin: float = 0.1,
    label_noise: float = 0.0,
    imbalance: float = 0.5,
    random_state: int | RandomState | None = None,
    return_separator: bool = False,
) -> tuple[NDArray[Any], ...]:
    """Generate rows on the unit sphere that a homogeneous halfspace separates with a margin.

    The separator is a uniform unit vector. A row lies at a distance from the
    hyperplane that is uniform between `margin` and ``min(margin + 0.1, 1)``, on the
    side of its label, and is uniform in all directions along the hyperplane.

    Parameters
    ----------
    n_samples : int, default=20000
    n_features : int, default=20
        At least 2.
    margin : float, default=0.1
        Smallest distance of a row from the hyperplane, in [0, 1].
    label_noise : float, default=0.0
        Probability, in [0, 1/2), with which each label is flipped afterwards.
    imbalance : float, default=0.5
        Fraction of rows, in [0, 1], on the positive side before labels are flipped.
        The number of rows is ``round(imbalance * n_samples)``.
    random_state : int, RandomState instance or None, default=None
        Determines the data. Pass an int for reproducible output.
    return_separator : bool, default=False
        Whether to return the separator too.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows of Euclidean norm 1.
    y : ndarray of shape (n_samples,)
        Labels -1 and +1.
    separator : ndarray of shape (n_features,)
        Unit normal of the hyperplane. Only if `return_separator`.

    Examples
    --------
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y, w = make_halfspace(1000, 5, margin=0.2, random_state=0, return_separator=True)
    >>> X.shape, bool((y * (X @ w)).min() > 0.2 - 1e-12)
    ((1000, 5), True)
    """
    checked_size("n_samples", n_samples)
    checked_size("n_features", n_features, least=2)
    require("in [0, 1]", margin=margin, imbalance=imbalance)
    require("in [0, 1/2)", label_noise=label_noise)
    refuse_beyond_memory(
        3 * NUMBER_BYTES * n_samples * n_features,
        f"a table of {n_samples} rows and {n_features} columns",
        "make a smaller one",
    )
    random = check_random_state(random_state)
    separator = normalize(random.standard_normal((1, n_features)))[0]
    y = np.where(np.arange(n_samples) < round(imbalance * n_samples), 1, -1).astype(np.int64)
    random.shuffle(y)
    X = random.standard_normal((n_samples, n_features))
    X -= np.outer(X @ separator, separator)
    X = normalize(X)
    distance = random.uniform(margin, min(margin + 0.1, 1.0), n_samples)
    X *= np.sqrt(1.0 - distance**2)[:, None]
    X += np.outer(y * distance, separator)
    y[random.uniform(size=n_samples) < label_noise] *= -1
    return (X, y, separator) if return_separator else (X, y)


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
        If `n_rows` is not positive, or `array` has no shape or no dtype of numpy.

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
    n_rows = checked_size("n_rows", n_rows)
    has_shape = bool(getattr(array, "shape", ())) and not sparse.issparse(array)
    if not (has_shape and isinstance(getattr(array, "dtype", None), np.dtype)):
        raise ValueError(
            "array must be an ndarray or a memory map: give to_numpy() of a frame of numbers or a "
            "column of labels, read_parquet of files, and a sparse matrix to fit without chunks"
        )
    parts = [slice(start, start + n_rows) for start in range(0, len(array), n_rows)]
    readers = [partial(getitem, array, part) for part in parts]
    return LocalChunks.read_by(readers, np.ones((2, *array.shape[1:]), array.dtype))


def read_parquet(path: str | PathLike[str], label: str) -> tuple[Chunks, Chunks]:
    """Open the Parquet files at a path as features and labels, a chunk for each row group.

    Needs ``pyarrow`` and ``pandas``: ``pip install ".[parquet]"`` from the checkout.

    Parameters
    ----------
    path : str or path
        A file, or a directory of them.
    label : str
        Column of the labels; all others are features, but for an index of pandas without a name.

    Returns
    -------
    X : Chunks
        Rows for ``fit``. A row group is read when a pass needs it, and then dropped.
    y : Chunks
        Labels for ``fit``.

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
        raise ValueError(f"the file has no column {label!r}: name the column of labels")
    stored = [name for name in table.schema.names if not name.startswith("__index_level_")]
    names = [name for name in stored if name != label]
    groups = [group for file in table.get_fragments() for group in file.split_by_row_group()]
    # All row groups have the columns and types of these two rows of missing values.
    like = _frame(table.schema.empty_table()).reindex(range(2))
    X = LocalChunks.read_by([partial(_read_group, group, names) for group in groups], like[names])
    kind = like[label].dtype
    some = np.zeros(2, kind.numpy_dtype) if kind.kind in "biuf" else np.full(2, "")
    return X, LocalChunks.read_by([partial(_read_labels, group, label) for group in groups], some)


def _frame(table: Any) -> Any:
    """Return a frame of pandas that keeps Arrow's types: others follow from what is missing."""
    import pandas  # noqa: PLC0415 (optional dependency)

    return readable_table(table).to_pandas(types_mapper=pandas.ArrowDtype, ignore_metadata=True)


def _read_group(group: Any, names: list[str]) -> Any:
    return _frame(group.to_table(columns=names))


def _read_labels(group: Any, label: str) -> Any:
    """Read labels by the type that the file states; missing ones are refused later, by the fit."""
    column = _read_group(group, [label])[label]
    is_plain = column.dtype.kind in "biuf" and not column.isna().any()
    return column.to_numpy(dtype=column.dtype.numpy_dtype if is_plain else object)
