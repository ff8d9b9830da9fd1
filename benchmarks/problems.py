"""The data sets of the benchmarks, with what is public about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from benchmarks.loaders import Benchmark, load_benchmark
from benchmarks.predictors import unit_rows
from dp_halfspace.datasets import make_halfspace

LINEAR = ("adult", "ijcnn1", "reuters", "satimage", "syn100", "syn1000")
MULTICLASS = ("satimage6", "digits", "syn10", "text50")
RANKING = ("adult", "http", "ijcnn1", "satimage")
# Sets whose columns are grey values in [0, 1].
IMAGES = ("satimage", "satimage6", "digits")
SPEED = ("adult", "ijcnn1", "satimage", "reuters", "dense", "dense32", "million")


def real(name: str) -> Benchmark:
    """One of the public sets, in the layout that a careful user would choose.

    The rows of ijcnn1 are mostly filled, so they are kept dense; those of adult (14 of 123)
    and of reuters stay sparse.
    """
    data = load_benchmark(name)
    X, Z = (_layout(name, rows) for rows in (data.X_train, data.X_test))
    return Benchmark(name, X, data.y_train, Z, data.y_test, data.data_norm, data.classes)


def _layout(name: str, rows: Any) -> Any:
    """Fill the rows of ijcnn1; give sparse rows the indices of 32 bits that LinearSVC needs."""
    if not sparse.issparse(rows):
        return rows
    if name == "ijcnn1":
        return rows.toarray()
    index = (rows.indices.astype(np.int32), rows.indptr.astype(np.int32))
    return sparse.csr_matrix((rows.data, *index), shape=rows.shape)


def halfspace(n_features: int, n_train: int = 10_000, n_test: int = 4_000) -> Benchmark:
    """Make normalised rows with a margin in [.2, .3]; flip 2 % of the training labels, no other."""
    X, y = make_halfspace(n_train + n_test, n_features, margin=0.2, random_state=0)
    y_train = flip_labels(y[:n_train], 0.02, np.random.default_rng(1))
    name = f"syn{n_features}"
    return Benchmark(name, X[:n_train], y_train, X[n_train:], y[n_train:], 1.0, (-1, 1))


def flip_labels(y: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Change the sign of each label with probability `share`."""
    return np.where(rng.random(len(y)) < share, -y, y)


def dense(name: str = "dense", n_rows: int = 100_000, kind: type = np.float64) -> Benchmark:
    """Make a table for timing: dense rows of 50 columns."""
    X, y = make_halfspace(n_rows, 50, margin=0.1, label_noise=0.02, random_state=0)
    X = X.astype(kind, copy=False)
    return Benchmark(name, X, y, X[:100], y[:100], 1.0, (-1, 1))


def digits() -> Benchmark:
    """Digits of scikit-learn: 70 % of each class train; 64 grey values in [0, 1], norm <= 8."""
    X, y = load_digits(return_X_y=True)
    X, Z, y, t = train_test_split(X / 16.0, y, test_size=0.3, random_state=0, stratify=y)
    return Benchmark("digits", X, y, Z, t, 8.0, tuple(range(10)))


def cube(name: str, n_train: int, n_columns: int = 2, n_test: int = 20_000) -> Benchmark:
    """Uniform points of a cube; positive by the sign of a product of two columns, or in a ring."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(n_train + n_test, n_columns))
    norms = np.linalg.norm(X, axis=1)
    y = (norms > 0.45) & (norms < 0.85) if name == "ring" else X[:, 0] * X[:, 1] > 0
    y, norm = y.astype(np.int64), float(np.sqrt(n_columns))
    return Benchmark(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:], norm, (0, 1))


def gaussian_classes(
    n_train: int = 10_000, n_test: int = 4_000, n_features: int = 30, n_classes: int = 10
) -> Benchmark:
    """Balanced Gaussian classes, divided by the root mean square of their norms.

    The means are `_SEPARATION` times uniform unit vectors and the covariance is the identity,
    so the best classifier is linear.
    """
    rng = np.random.default_rng(0)
    means = rng.standard_normal((n_classes, n_features))
    means *= _SEPARATION / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n_train + n_test)
    X = means[y] + rng.standard_normal((len(y), n_features))
    X /= np.sqrt(_SEPARATION**2 + n_features)
    classes = tuple(range(n_classes))
    return Benchmark("syn10", X[:n_train], y[:n_train], X[n_train:], y[n_train:], 1.0, classes)


_SEPARATION = 3.7


def topics(
    n_train: int = 6_000,
    n_test: int = 2_000,
    n_words: int = 12_000,
    n_classes: int = 50,
    length: int = 80,
) -> Benchmark:
    """Sparse documents of unit norm, like text: rank-frequency background plus a topic per class.

    A word comes from the topic with probability .4, else from the background, in which the word
    of rank j has a frequency proportional to 1 / (j + 20). A topic is 100 equally likely words.
    Entries are square roots of counts.
    """
    rng = np.random.default_rng(0)
    background = 1.0 / (np.arange(n_words) + 20.0)
    background /= background.sum()
    words = np.array([rng.choice(n_words, 100, replace=False) for _ in range(n_classes)])
    y = rng.integers(n_classes, size=n_train + n_test)
    shape = (len(y), length)
    column = np.where(
        rng.random(shape) < 0.4,
        words[y[:, None], rng.integers(100, size=shape)],
        rng.choice(n_words, shape, p=background),
    )
    index = (np.repeat(np.arange(len(y)), length), column.ravel())
    counts = sparse.coo_matrix((np.ones(column.size), index), (len(y), n_words)).tocsr()
    X = sparse.csr_matrix(normalize(counts.sqrt()))
    classes = tuple(range(n_classes))
    return Benchmark("text50", X[:n_train], y[:n_train], X[n_train:], y[n_train:], 1.0, classes)


LOADERS: dict[str, Callable[[], Benchmark]] = {
    **{name: partial(real, name) for name in ("adult", "http", "ijcnn1", "reuters")},
    **{name: partial(real, name) for name in ("satimage", "satimage6")},
    "syn100": partial(halfspace, 100),
    "syn1000": partial(halfspace, 1000),
    "dense": dense,
    "dense32": partial(dense, "dense32", kind=np.float32),
    "million": partial(dense, "million", 1_000_000, np.float32),
    "digits": digits,
    "syn10": gaussian_classes,
    "text50": topics,
    **{f"product{d}": partial(cube, f"product{d}", n, d) for d, n in ((2, 1000), (3, 1000))},
    "product5": partial(cube, "product5", 2000, 5),
    "ring": partial(cube, "ring", 1000),
}


@cache
def load(name: str) -> Benchmark:
    """Load a data set by its name, once."""
    return LOADERS[name]()


def prepared(problem: Benchmark) -> Benchmark:
    """Return a set after the best public preprocessing: centred grey values, normalised rows.

    Both look at no record but the one they change, so they cost no budget: whoever knows that
    columns are grey values in [0, 1] can map them to [-1, 1].
    """
    is_image = problem.name in IMAGES
    X, Z = (
        unit_rows(2.0 * rows - 1.0 if is_image else rows)
        for rows in (problem.X_train, problem.X_test)
    )
    return replace(problem, X_train=X, X_test=Z, data_norm=1.0)


def entries(X: object) -> int:
    """Count the stored values."""
    return int(X.nnz) if sparse.issparse(X) else int(np.asarray(X).size)


def coefficients(problem: Benchmark) -> int:
    """Count the coefficients of a linear model; one set of them serves two classes."""
    n_classes = len(problem.classes)
    return int(problem.X_train.shape[1]) * (n_classes if n_classes > 2 else 1)
