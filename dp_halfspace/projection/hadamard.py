r"""The subsampled randomised Hadamard transform: a projection in :math:`O(d \log d)` a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from dp_halfspace.projection.base import (
    FloatArray,
    checked_coefficients,
    checked_features,
    checked_size,
    dense,
    padded,
    saturated,
)

# Entries that are transformed at a time: two buffers of this size stay in cache.
_ENTRIES = 2**15
# Levels that one matrix product does: the Hadamard matrix of order 16 is the widest for
# which its wasted multiplications are hidden by the speed of a product over additions.
_LEVELS = 4


_MATRICES = tuple(hadamard(2**levels).astype(np.float64) for levels in range(_LEVELS + 1))


def _transform(values: FloatArray, work: FloatArray) -> FloatArray:
    """Transform the rows of `values`; both arrays are overwritten, one is returned.

    The matrix is a Kronecker product of matrices of order at most 16. Each factor acts on
    groups of bits of the column index, lowest bits first.
    """
    levels = values.shape[1].bit_length() - 1
    stride = 1
    for stage in range(math.ceil(levels / _LEVELS)):
        matrix = _MATRICES[(levels + stage) // math.ceil(levels / _LEVELS)]
        order = len(matrix)
        if stride == 1:
            np.matmul(values.reshape(-1, order), matrix, out=work.reshape(-1, order))
        else:
            shape = (-1, order, stride)
            np.matmul(matrix, values.reshape(shape), out=work.reshape(shape))
        values, work = work, values
        stride *= order
    return values


def walsh_hadamard(values: FloatArray) -> FloatArray:
    """Multiply every row by the Hadamard matrix (entries -1 and 1, natural order).

    The number of columns is a power of two. Four levels of the classical butterflies are done by
    one product with a matrix of order 16 (Fino and Algazi, 1976).

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import walsh_hadamard
    >>> walsh_hadamard(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[10., -2., -4.,  0.]])
    """
    values = np.array(values, dtype=np.float64, order="C")
    if values.ndim != 2 or values.shape[1] < 1 or values.shape[1] & (values.shape[1] - 1):
        raise ValueError(f"a power of two of columns is needed; got shape {values.shape}")
    out = np.empty(values.shape)
    step = max(1, _ENTRIES // values.shape[1])
    for lo in range(0, len(values), step):
        block = values[lo : lo + step]
        out[lo : lo + step] = _transform(block, np.empty(block.shape))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class HadamardMap:
    r"""Random signs, the Hadamard transform, a random choice of its outputs.

    The matrix is :math:`k^{-1/2} R H D` with :math:`D` the `signs`, :math:`H` the Hadamard matrix
    of the next power of two :math:`d'` (rows are padded with zeros) and :math:`R` the choice of
    :math:`k` of its :math:`d'` rows, the `outputs` in increasing order. Made by `draw_hadamard`.
    """

    signs: NDArray[np.int8]
    outputs: NDArray[np.intp]

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return len(self.signs)

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return len(self.outputs)

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        out = np.empty((X.shape[0], self.n_components))
        size = padded(self.n_features_in)
        step = max(1, _ENTRIES // size)
        buffer, work = np.empty((step, size)), np.empty((step, size))
        with np.errstate(over="ignore", invalid="ignore"):
            for lo in range(0, X.shape[0], step):
                rows = X[lo : lo + step]
                values = buffer[: rows.shape[0]]
                signed = values[:, : self.n_features_in]
                np.multiply(dense(rows), self.signs, out=signed, dtype=np.float64)
                values[:, self.n_features_in :] = 0.0
                image = _transform(values, work[: len(values)])
                np.take(image, self.outputs, axis=1, out=out[lo : lo + step], mode="clip")
            out /= math.sqrt(self.n_components)
        return saturated(out)

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Apply the transposed map; see `LinearMap.pull_back`."""
        w = checked_coefficients(w, self.n_components)
        values = np.zeros((*w.shape[:-1], padded(self.n_features_in)))
        values[..., self.outputs] = w
        image = walsh_hadamard(np.atleast_2d(values)).reshape(values.shape)
        scaled = image[..., : self.n_features_in] * self.signs
        return np.asarray(scaled / math.sqrt(self.n_components))

    def to_array(self) -> FloatArray:
        """Return the matrix, of shape (n_components, n_features_in), for small maps."""
        return self.pull_back(np.eye(self.n_components))


def draw_hadamard(n_features: int, n_components: int, rng: np.random.Generator) -> HadamardMap:
    r"""Draw a subsampled randomised Hadamard transform.

    Parameters
    ----------
    n_features : int
    n_components : int
        At most the power of two that follows `n_features`.
    rng : numpy.random.Generator
        Public randomness, see `dp_halfspace.privacy.public_generator`. Never a source of noise.

    Returns
    -------
    HadamardMap

    Notes
    -----
    Privacy: the map does not depend on data. Rows are clipped after it, so the guarantee holds for
    every draw and every number of components.

    Accuracy: squared norms are kept in expectation, with the variance of dense random signs times
    :math:`(d'-k)/(d'-1)`, so with all :math:`d'` components it is an isometry. The exponential
    bound needs more components than that of `draw_rademacher`, for which `jl_dimension` is stated
    (``docs/proofs/projection.md``, sections 3 and 5).

    Cost: :math:`O(d' \log d')` for each row, also a sparse one; with few non-zeros prefer
    `draw_rademacher`. On dense rows it overtakes a product with an explicit matrix between 64 and
    128 components and is about 10 times as fast at 1024 (``benchmarks/projection.py``).

    References
    ----------
    .. [1] N. Ailon, B. Chazelle. The fast Johnson-Lindenstrauss transform and approximate
       nearest neighbors. SIAM Journal on Computing, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_hadamard
    >>> full = draw_hadamard(5, 8, np.random.default_rng(0))
    >>> round(float(np.sum(full.apply(np.ones((1, 5))) ** 2)), 12)
    5.0
    """
    n_features = checked_size("n_features", n_features)
    n_components = checked_size("n_components", n_components)
    size = padded(n_features)
    if n_components > size:
        raise ValueError(
            f"a Hadamard transform of {n_features} features has {size} outputs; "
            f"got n_components={n_components!r}."
        )
    signs = (2 * rng.integers(0, 2, size=n_features, dtype=np.int8) - 1).astype(np.int8)
    # Which outputs are chosen is uniform; their order is irrelevant and sorted is faster.
    outputs = np.sort(rng.choice(size, n_components, replace=False, shuffle=False))
    return HadamardMap(signs, outputs.astype(np.intp))
