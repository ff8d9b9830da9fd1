"""Sparse random signs: a projection that reads each non-zero of the data a few times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dp_halfspace.projection.base import (
    FloatArray,
    checked_coefficients,
    checked_features,
    checked_size,
    row_blocks,
    saturated,
)

__all__ = ["SparseMap", "draw_sparse"]

_BLOCK_ENTRIES = 2**17  # a transposed copy that stays in cache


@dataclass(frozen=True, slots=True, eq=False)
class SparseMap:
    """A sparse matrix of random signs. Made by `draw_sparse`.

    Parameters
    ----------
    transposed : csr_array of shape (n_features_in, n_components)
        The components that each feature enters.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from dp_halfspace.projection import SparseMap
    >>> SparseMap(sparse.csr_array([[0.0, 1.0], [-1.0, 0.0], [0.0, 1.0]])).to_array()
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  1.]])
    """

    transposed: Any

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return int(self.transposed.shape[0])

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return int(self.transposed.shape[1])

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `LinearMap.apply`."""
        X = checked_features(X, self.n_features_in)
        out = np.empty((X.shape[0], self.n_components))
        with np.errstate(over="ignore", invalid="ignore"):
            for lo, hi, block in row_blocks(X, _BLOCK_ENTRIES, min_rows=16):
                image = block @ self.transposed
                out[lo:hi] = image.toarray() if sparse.issparse(image) else image
        return saturated(out)

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Apply the transposed map; see `LinearMap.pull_back`."""
        w = checked_coefficients(w, self.n_components)
        return np.asarray((self.transposed @ w.T).T)

    def to_array(self) -> FloatArray:
        """Return the matrix, of shape (n_components, n_features_in), for small maps."""
        return np.asarray(self.transposed.toarray().T)


def draw_sparse(
    n_features: int, n_components: int, rng: np.random.Generator, *, n_nonzeros: int = 8
) -> SparseMap:
    r"""Draw a sparse Johnson-Lindenstrauss matrix: a few signs for each feature.

    Each feature enters `n_nonzeros` distinct components, chosen uniformly, with
    independent signs divided by the square root of their number.

    Parameters
    ----------
    n_features, n_components : int
    rng : numpy.random.Generator
        Public randomness, see `dp_halfspace.privacy.public_generator`. Never a source
        of noise.
    n_nonzeros : int, default=8
        Non-zeros of each column; more than `n_components` means all. With all of them the
        map has the law of `draw_rademacher`. Drawing takes time proportional to its square.

    Returns
    -------
    SparseMap

    Raises
    ------
    ValueError
        If a size is not a positive integer.

    Notes
    -----
    Privacy: the map does not depend on data. Rows are clipped after it, so the guarantee
    holds for every draw and every number of components.

    Accuracy: the norm of a row with one entry is kept exactly, and the squared norm of
    every row has the mean and the variance that dense random signs give, for every
    `n_nonzeros` (``docs/proofs/projection.md``, section 3). Independent sparse entries
    (Achlioptas 2003; Li, Hastie, Church 2006) have no such bound: their variance on rows
    with one entry, such as one-hot data, grows with the sparsity. The exponential bound
    behind `jl_dimension` is not claimed for few non-zeros: for it the theory asks for a
    number of order (distortion x components); 8 is the usual practical choice [2]_.

    Cost: `n_nonzeros` multiplications for each non-zero of `X`.

    References
    ----------
    .. [1] D. M. Kane, J. Nelson. Sparser Johnson-Lindenstrauss transforms. Journal of the
       ACM, 2014.
    .. [2] J. A. Tropp, A. Yurtsever, M. Udell, V. Cevher. Streaming low-rank matrix
       approximation with an application to scientific simulation. SIAM Journal on
       Scientific Computing, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_sparse
    >>> projection = draw_sparse(1000, 200, np.random.default_rng(0))
    >>> np.linalg.norm(projection.to_array(), axis=0)[:3].round(12)
    array([1., 1., 1.])
    """
    n_features = checked_size("n_features", n_features)
    n_components = checked_size("n_components", n_components)
    count = min(checked_size("n_nonzeros", n_nonzeros), n_components)
    places = np.empty((n_features, count), dtype=np.int32)
    for chosen in range(count):
        # Floyd's sampling without replacement, for all features at once: the largest
        # number allowed in this round stands in for one that was drawn before.
        largest = n_components - count + chosen
        new = rng.integers(0, largest + 1, size=n_features, dtype=np.int32)
        taken = (places[:, :chosen] == new[:, None]).any(axis=1)
        places[:, chosen] = np.where(taken, largest, new)
    places.sort(axis=1)
    signs = 1.0 - 2.0 * rng.integers(0, 2, size=n_features * count, dtype=np.int8)
    return SparseMap(
        sparse.csr_array(
            (signs / math.sqrt(count), places.ravel(), np.arange(n_features + 1) * count),
            shape=(n_features, n_components),
        )
    )
