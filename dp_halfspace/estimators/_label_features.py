"""Unit rows made from features that are public: bandwidth, kernel features, whitening.

Everything here looks at all features and at no label. That is allowed under label adjacency,
and under no other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from dp_halfspace.projection import Spectrum, draw_fourier, draw_rademacher
from dp_halfspace.rows.blocks import clip_scales
from dp_halfspace.rows.rows import Rows, inverse_lengths

FloatArray: TypeAlias = NDArray[np.float64]

# Records that bandwidth and moments are computed from, and pairs for the bandwidth.
_FITTED_ROWS, _PAIRS = 5000, 2000
# Linear features beyond so many are randomly projected first.
_MOST_COLUMNS = 1024
_BLOCK_ROWS = 2048
_SMALLEST = 1e-300
_LARGEST = 1e100
# Directions with less than this share of the largest variance are dropped.
_RANK = 1e-10


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """What is asked for; see `LabelPrivateClassifier`."""

    kernel: str
    length_scale: float | None
    n_fourier: int
    n_components: int | None
    whitening: float
    data_norm: float | None
    constant: float | None


@dataclass(frozen=True, slots=True, eq=False)
class LabelFeatures:
    """The fitted map from rows to unit rows.

    Rows are clipped to `data_norm` and divided by `unit`. The `matrix`, (d, p), holds frequencies
    in turns or a random projection, None leaves the columns; the `transform`, (p, k), scaled
    principal directions; `constant` is the value of a constant column.
    """

    data_norm: float | None
    unit: float
    matrix: FloatArray | None
    is_fourier: bool
    mean: FloatArray
    transform: FloatArray
    constant: float | None

    @property
    def n_components(self) -> int:
        """Number of columns of the unit rows."""
        return int(self.transform.shape[1]) + (self.constant is not None)

    def rows(self, X: Any) -> Rows:
        """Return the unit rows of `X`; without a constant column a row may be zero."""
        reduced = np.empty((X.shape[0], self.transform.shape[1]))
        for lo in range(0, X.shape[0], _BLOCK_ROWS):
            part = X[lo : lo + _BLOCK_ROWS]
            scaled = _scaled(part, self.data_norm, self.unit)
            features = _features(scaled, self.matrix, is_fourier=self.is_fourier)
            reduced[lo : lo + _BLOCK_ROWS] = (features - self.mean) @ self.transform
        rows = Rows(reduced, None, self.constant)
        return rows.rescaled(inverse_lengths(rows.lengths(), rows.shape[1]), row_bound=1.0)


def fit_label_features(X: Any, options: FeatureOptions, rng: np.random.Generator) -> LabelFeatures:
    """Fit the map to features, which are PUBLIC, with public randomness."""
    sample = X
    if X.shape[0] > _FITTED_ROWS:
        # At random: evenly spaced rows of a series may all be at the same phase of a period.
        sample = X[np.sort(rng.choice(X.shape[0], _FITTED_ROWS, replace=False))]
    unit = _largest_entry(_clipped(sample, options.data_norm))
    d = X.shape[1]
    is_fourier = options.kernel == "rbf"
    matrix: FloatArray | None = None
    if is_fourier:
        wanted = options.length_scale
        if wanted is None:
            wanted = _median_distance(_scaled(sample, options.data_norm, unit), rng) / 2.0 * unit
        unit = max(wanted, _SMALLEST)
        scales = np.ones(options.n_fourier // 2)
        matrix = draw_fourier(Spectrum("rbf"), d, scales, rng).frequencies.astype(np.float64)
    elif d > _MOST_COLUMNS:
        matrix = draw_rademacher(d, _MOST_COLUMNS, rng).to_array().T
    sample = _scaled(sample, options.data_norm, unit)
    mean, transform, size = _principal(sample, matrix, options)
    constant = None if options.constant is None else options.constant * size
    return LabelFeatures(options.data_norm, unit, matrix, is_fourier, mean, transform, constant)


def _clipped(X: Any, data_norm: float | None) -> Any:
    """Scale rows down to a norm, in float64."""
    if data_norm is None:
        return X.astype(np.float64)
    factor = clip_scales(X, data_norm)
    if sparse.issparse(X):
        data = X.data.astype(np.float64) * np.repeat(factor, np.diff(X.indptr))
        return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    return X.astype(np.float64) * factor[:, None]


def _scaled(X: Any, data_norm: float | None, unit: float) -> Any:
    """Scale rows down to a norm and divide them by a number; nothing overflows."""
    rows = _clipped(X, data_norm)
    values = rows.data if sparse.issparse(rows) else rows
    values /= unit
    np.clip(values, -_LARGEST, _LARGEST, out=values)
    return rows


def _largest_entry(X: Any) -> float:
    """Return the largest absolute entry, or 1 for rows of zeros."""
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    return max(largest, _SMALLEST) if largest > 0 else 1.0


def _features(X: Any, matrix: FloatArray | None, *, is_fourier: bool) -> FloatArray:
    """Return cosines and sines, projections, or the columns themselves."""
    if matrix is None:
        return np.asarray(X.toarray() if sparse.issparse(X) else X)
    images = np.asarray(X @ matrix)
    if not is_fourier:
        return images
    images -= np.rint(images)
    images *= 2.0 * math.pi
    return np.hstack([np.cos(images), np.sin(images)]) / math.sqrt(images.shape[1])


def _median_distance(X: Any, rng: np.random.Generator) -> float:
    """Return the median Euclidean distance of random pairs of rows, or 1 if it is zero."""
    pairs = rng.integers(X.shape[0], size=(2, _PAIRS))
    squares = np.empty(_PAIRS)
    for lo in range(0, _PAIRS, 200):
        gap = X[pairs[0, lo : lo + 200]] - X[pairs[1, lo : lo + 200]]
        dense = gap.toarray() if sparse.issparse(gap) else gap
        squares[lo : lo + 200] = np.einsum("ij,ij->i", dense, dense)
    distance = math.sqrt(float(np.median(squares)))
    return distance if distance > 0 else 1.0


def _principal(
    X: Any, matrix: FloatArray | None, options: FeatureOptions
) -> tuple[FloatArray, FloatArray, float]:
    """Return mean, scaled principal directions, and the root mean square of the images."""
    blocks = [slice(lo, lo + _BLOCK_ROWS) for lo in range(0, X.shape[0], _BLOCK_ROWS)]
    is_fourier = options.kernel == "rbf"
    made = [_features(X[rows], matrix, is_fourier=is_fourier) for rows in blocks]
    mean = sum(part.sum(axis=0) for part in made) / X.shape[0]
    keep = len(mean) if options.n_components is None else options.n_components
    values, vectors = _eigenvectors([part - mean for part in made], min(keep, len(mean)))
    # A sign that does not depend on the library.
    peaks = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    known = values > max(_RANK * float(values[0]), _SMALLEST)
    powers = np.where(known, np.where(known, values, 1.0) ** (-options.whitening / 2.0), 0.0)
    variances = np.where(known, values * powers**2, 0.0)
    size = math.sqrt(float(variances.sum()))
    return mean, vectors * np.where(peaks < 0, -powers, powers), size if size > 0 else 1.0


def _eigenvectors(blocks: list[FloatArray], keep: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest variances of centred rows, falling, and their directions."""
    n_rows, size = sum(map(len, blocks)), blocks[0].shape[1]
    if n_rows >= size:
        moment = np.zeros((size, size))
        for part in blocks:
            moment += part.T @ part
        values, vectors = eigh(moment / n_rows, subset_by_index=[size - keep, size - 1])
        return values[::-1], vectors[:, ::-1]
    # Fewer rows than columns: the smaller matrix has the same variances.
    rows = np.vstack(blocks)
    keep = min(keep, n_rows)
    values, images = eigh(rows @ rows.T / n_rows, subset_by_index=[n_rows - keep, n_rows - 1])
    values, vectors = values[::-1], rows.T @ images[:, ::-1]
    lengths = np.sqrt(np.einsum("ij,ij->j", vectors, vectors))
    return values, vectors / np.where(lengths > 0, lengths, 1.0)
