"""Public benchmark data, from a local folder or from their public originals."""

from __future__ import annotations

import os
import shutil
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.datasets import fetch_kddcup99, get_data_home, load_svmlight_files
from sklearn.model_selection import train_test_split

_FOLDER_VARIABLE = "DP_HALFSPACE_DATA"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
# The copy at leon.bottou.org repeats features within a row; this one is cleaned.
_TICK = "https://github.com/X-DataInitiative/tick-datasets/raw/master/binary/reuters/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/satimage/"
_SATIMAGE_TRAIN = 4435

_Arrays = tuple[NDArray[np.float64] | csr_matrix, NDArray[np.int64]]
_Raw = tuple[_Arrays, _Arrays]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One public data set, split as it is in the literature.

    Attributes
    ----------
    name : str
        Name of the data set.
    X_train, X_test : ndarray or csr_matrix of shape (n_rows, n_features)
        Features, mapped by public rules only.
    y_train, y_test : ndarray of shape (n_rows,)
        Integer labels.
    data_norm : float
        Public bound on the norm of a row, for the ``data_norm`` of an estimator.
    classes : tuple of int
        The label set, for the ``classes`` of an estimator.
    """

    name: str
    X_train: NDArray[np.float64] | csr_matrix
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float64] | csr_matrix
    y_test: NDArray[np.int64]
    data_norm: float
    classes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a data set is found, and what it must look like.

    ``local`` are file names in the folder of the environment variable, ``read`` makes training and
    test arrays of these or of the files at the addresses ``remote``.
    """

    local: tuple[str, ...]
    remote: tuple[str, ...]
    read: Callable[[list[Path]], _Raw]
    shape: tuple[int, int, int]  # training rows, test rows, columns
    data_norm: float
    classes: tuple[int, ...]


def _read_svmlight(paths: list[Path]) -> _Raw:
    """Read a training and a test file that share their columns."""
    X, y, Z, t = load_svmlight_files([str(path) for path in paths])
    return (X, y.astype(np.int64)), (Z, t.astype(np.int64))


def _read_archive(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read rows and labels from a numpy archive."""
    with np.load(path) as archive:
        return archive["X"], archive["y"].astype(np.int64)


def _read_satimage(paths: list[Path]) -> _Raw:
    """Map the grey values to [0, 1]; the first 4435 rows train, as its authors say."""
    if paths[0].suffix == ".npz":
        pixels, y = _read_archive(paths[0])
    else:
        table = np.vstack([np.loadtxt(path, dtype=np.int64) for path in paths])
        pixels, y = table[:, :-1], table[:, -1]
    X, cut = pixels / 255.0, _SATIMAGE_TRAIN
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def _read_satimage_pair(paths: list[Path]) -> _Raw:
    """Join the classes 1, 2, 3 of satimage against the others."""
    (X, y), (Z, t) = _read_satimage(paths)
    return (X, np.where(y <= 3, 1, -1)), (Z, np.where(t <= 3, 1, -1))


def _http_split(logs: NDArray[np.float64], labels: NDArray[np.int64]) -> _Raw:
    """Map the logarithms from [-2.3, 16.3] to [-1, 1], which needs no look at the data."""
    X = np.clip((logs - 7.0) / 9.3, -1.0, 1.0)
    X, Z, y, t = train_test_split(X, labels, test_size=0.3, random_state=0, stratify=labels)
    return (X, y), (Z, t)


_SOURCES = {
    "adult": _Source(
        ("adult.train.svm.bz2", "adult.test.svm.bz2"),
        (_LIBSVM + "a9a", _LIBSVM + "a9a.t"),
        _read_svmlight,
        (32_561, 16_281, 123),
        sqrt(14.0),
        (-1, 1),
    ),
    "ijcnn1": _Source(
        ("ijcnn1.train.svm.bz2", "ijcnn1.test.svm.bz2"),
        (_LIBSVM + "ijcnn1.bz2", _LIBSVM + "ijcnn1.t.bz2"),
        _read_svmlight,
        (49_990, 91_701, 22),
        2.0,
        (-1, 1),
    ),
    "reuters": _Source(
        ("reuters.train.svm.bz2", "reuters.test.svm.bz2"),
        (_TICK + "reuters.trn.bz2", _TICK + "reuters.tst.bz2"),
        _read_svmlight,
        (7_770, 3_299, 8_315),
        1.0,
        (-1, 1),
    ),
    "satimage": _Source(
        ("satimage.npz",),
        (_UCI + "sat.trn", _UCI + "sat.tst"),
        _read_satimage_pair,
        (_SATIMAGE_TRAIN, 2_000, 36),
        6.0,
        (-1, 1),
    ),
}
_SOURCES["satimage6"] = replace(
    _SOURCES["satimage"], read=_read_satimage, classes=(1, 2, 3, 4, 5, 7)
)
# scikit-learn downloads and caches this one, so it has no addresses of its own.
_HTTP = _Source(
    ("http.npz",),
    (),
    lambda paths: _http_split(*_read_archive(paths[0])),
    (397_248, 170_250, 3),
    sqrt(3.0),
    (0, 1),
)


def load_benchmark(name: str, data_home: str | os.PathLike[str] | None = None) -> Benchmark:
    """Load a public data set used to measure private classifiers.

    Files are taken from the folder that the environment variable
    ``DP_HALFSPACE_DATA`` names, if they are there, and are otherwise downloaded
    once into scikit-learn's data folder.

    Parameters
    ----------
    name : {"adult", "ijcnn1", "reuters", "satimage", "satimage6", "http"}
        The data set. "adult" is UCI Adult with binary columns (LIBSVM a9a),
        "reuters" the topic money-fx, "satimage" the classes 1, 2, 3 against the rest
        of Statlog Landsat and "satimage6" all six of them, "http" the HTTP
        connections of KDD Cup 99 with the attacks as class 1.
    data_home : str, path or None, default=None
        Folder of the cache; None means ``sklearn.datasets.get_data_home()``.

    Returns
    -------
    Benchmark
        Training and test data, with their public row norm and label set. "adult",
        "ijcnn1" and "reuters" are sparse.

    Raises
    ------
    ValueError
        If the name is unknown, or a file does not have the expected shape.
    OSError
        If a file is neither in the folder nor in the cache and cannot be fetched.

    Notes
    -----
    Privacy: the scaling and ``data_norm`` follow from what the columns mean (a one-hot
    code, a grey value, a normalised row), not from the values. A few rows may exceed
    ``data_norm``; estimators clip them.

    Examples
    --------
    >>> from benchmarks.loaders import load_benchmark
    >>> load_benchmark("iris")
    Traceback (most recent call last):
        ...
    ValueError: name must be one of 'adult', 'http', 'ijcnn1', 'reuters', 'satimage', \
'satimage6'; got 'iris'.
    """
    sources = {**_SOURCES, "http": _HTTP}
    if name not in sources:
        known = ", ".join(repr(key) for key in sorted(sources))
        raise ValueError(f"name must be one of {known}; got {name!r}.")
    source = sources[name]
    local = _local_files(source)
    if local:
        train, test = source.read(local)
    elif name == "http":
        train, test = _fetch_http(data_home)
    else:
        cache = Path(get_data_home(data_home)) / "dp_halfspace"
        train, test = source.read([_cached(url, cache) for url in source.remote])
    shape = (train[0].shape[0], test[0].shape[0], train[0].shape[1])
    if shape != source.shape:
        where = local[0].parent if local else get_data_home(data_home)
        raise ValueError(
            f"The files of {name!r} in {where} hold (training rows, test rows, columns) = {shape} "
            f"instead of {source.shape}; delete them and load again, or replace them."
        )
    return Benchmark(name, *train, *test, source.data_norm, source.classes)


def _local_files(source: _Source) -> list[Path]:
    """List the files of the local folder, if it has them all."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if not folder:
        return []
    paths = [Path(folder) / name for name in source.local]
    return paths if all(path.is_file() for path in paths) else []


def _cannot_fetch(what: str) -> OSError:
    """Say what to do without a network."""
    return OSError(
        f"Cannot download {what}. Without a network, put the files of the data set into a folder "
        f"and name the folder in the environment variable {_FOLDER_VARIABLE}."
    )


def _cached(url: str, cache: Path) -> Path:
    """Download a file unless it is in the cache already."""
    path = cache / url.rsplit("/", 1)[-1]
    if path.is_file():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    # An interrupted download must not be mistaken for the file.
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        part = Path(scratch) / path.name
        try:
            with urllib.request.urlopen(url, timeout=60) as response, part.open("wb") as out:
                shutil.copyfileobj(response, out)
        except OSError as error:
            raise _cannot_fetch(url) from error
        part.replace(path)
    return path


def _fetch_http(data_home: str | os.PathLike[str] | None) -> _Raw:
    """Select the HTTP connections of KDD Cup 99 through scikit-learn."""
    try:
        logs, labels = fetch_kddcup99(
            subset="http", percent10=False, data_home=data_home, return_X_y=True
        )
    except OSError as error:
        raise _cannot_fetch("KDD Cup 99 through sklearn.datasets.fetch_kddcup99") from error
    return _http_split(logs.astype(np.float64), (labels != b"normal.").astype(np.int64))
