"""Public linear maps of rows, and of coefficients back: random signs and Hadamard transforms.

A map is drawn from shapes and public randomness, so it may be released. Replacing one record
replaces one row of ``apply(X)``; the caller clips rows to a public norm, and that alone bounds the
sensitivity, for every number of components and every draw. How well norms and margins are preserved
affects the accuracy only; constants and proofs are in ``docs/proofs/projection.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import hadamard

from dp_halfspace._arrays import FloatArray
from dp_halfspace._memory import (
    CACHED_NUMBERS,
    LONG_BLOCK,
    NUMBER_BYTES,
    refuse_beyond_memory,
    rows_of_block,
)
from dp_halfspace._params import checked_size, require
from dp_halfspace.data.sparse_rows import checked_csr


class RowMap(Protocol):
    """A public map of rows, one by one."""

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""

    def apply(self, X: Any) -> Any:
        """Map every row of a dense or CSR matrix of finite real numbers of at most 64 bits.

        The images are finite. Row ``i`` depends on row ``i``, its position, the shape and the map
        only. `X` is never copied or densified whole.
        """


@runtime_checkable
class LinearMap(RowMap, Protocol):
    """A linear map. Its images are not clipped."""

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `RowMap.apply`."""

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Return coefficients of shape (n_features_in,) or (K, n_features_in).

        They act on a row as `w` acts on its image: ``X @ pull_back(w).T`` is ``apply(X) @ w.T``.
        """


def checked_features(X: Any, n_features: int) -> Any:
    """Return `X`, or raise ValueError if it is not a real matrix with `n_features` columns."""
    X = checked_csr(X) if sparse.issparse(X) else np.asarray(X)
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8:
        raise ValueError("X must be a matrix of real numbers of at most 64 bits")
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n, {n_features}); got {X.shape}")
    return X


def row_blocks(X: Any, n_rows: int) -> Iterator[tuple[slice, Any]]:
    """Yield the places of `n_rows` rows at a time, and these rows in float64.

    The bounds of the blocks are functions of the shape alone.
    """
    in_float64 = sparse.csr_array if sparse.issparse(X) else np.ascontiguousarray
    for lo in range(0, X.shape[0], n_rows):
        rows = slice(lo, lo + n_rows)
        yield rows, in_float64(X[rows], dtype=np.float64)


def replace_nonfinite(Z: FloatArray) -> FloatArray:
    """Make every entry finite, in place: 0 for NaN, the largest double for infinity.

    A finite row near the largest double can map to infinity or, by a difference of infinities, to
    NaN. One such record would make a whole model NaN, which reveals the record; it must remain an
    ordinary row, which is clipped afterwards.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(Z.sum())
    if suspicious:
        np.nan_to_num(Z, copy=False)
    return Z


def within_unit_ball(rows: FloatArray) -> FloatArray:
    """Divide every row that is longer than one by its length."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows / np.maximum(lengths, 1.0)[:, None])


def next_power_of_two(n_features: int) -> int:
    """Return the smallest power of two that is not below the number of features."""
    return 1 << (n_features - 1).bit_length()


def to_dense(rows: Any) -> Any:
    """Return rows as a dense array."""
    return rows.toarray() if sparse.issparse(rows) else rows


@dataclass(frozen=True, slots=True, eq=False)
class RademacherMap:
    r"""Independent random signs divided by :math:`\sqrt k`. Made by `draw_rademacher`.

    `bits`, of shape (n_features_in, ceil(n_components / 8)), has a bit for each sign, 1 for -1, the
    first component in the highest bit.
    """

    bits: NDArray[np.uint8]
    n_components: int

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return len(self.bits)

    def _signs(self) -> Iterator[tuple[int, int, FloatArray]]:
        """Unpack some components at a time, as matrices of shape (n_features_in, hi - lo)."""
        d, k = self.n_features_in, self.n_components
        step = max(2, rows_of_block(8 * d * NUMBER_BYTES))
        for first in range(0, self.bits.shape[1], step):
            bits = np.unpackbits(self.bits[:, first : first + step], axis=1)
            signs = 1.0 - 2.0 * bits.astype(np.float64)
            lo, hi = 8 * first, min(8 * (first + step), k)
            yield lo, hi, signs[:, : hi - lo]

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        out = np.empty((X.shape[0], self.n_components))
        is_sparse = sparse.issparse(X)
        n_rows = LONG_BLOCK if is_sparse else max(64, rows_of_block(X.shape[1] * NUMBER_BYTES))
        with np.errstate(over="ignore", invalid="ignore"):
            for first, last, signs in self._signs():
                for rows, block in row_blocks(X, n_rows):
                    out[rows, first:last] = block @ signs
            out /= math.sqrt(self.n_components)
        return replace_nonfinite(out)

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Apply the transposed map; see `LinearMap.pull_back`."""
        w = np.asarray(w, dtype=np.float64)
        out = np.zeros((*w.shape[:-1], self.n_features_in))
        for first, last, signs in self._signs():
            out += w[..., first:last] @ signs.T
        return np.asarray(out / math.sqrt(self.n_components))


def draw_rademacher(n_features: int, n_components: int, rng: np.random.Generator) -> RademacherMap:
    """Draw a matrix of independent signs; one bit of memory for each.

    Parameters
    ----------
    n_features, n_components : int
        Positive.
    rng : numpy.random.Generator
        Public randomness, see `dp_halfspace.privacy.public_generator`. Never a source of noise.

    Returns
    -------
    RademacherMap

    Notes
    -----
    Privacy: the map does not depend on data. Rows are clipped after it, so the guarantee holds for
    every draw and every number of components.

    Accuracy: the constants of `jl_dimension` are proved for this map.

    References
    ----------
    .. [1] D. Achlioptas. Database-friendly random projections: Johnson-Lindenstrauss with
       binary coins. Journal of Computer and System Sciences, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_rademacher
    >>> projection = draw_rademacher(1000, 200, np.random.default_rng(0))
    >>> projection.apply(np.ones((3, 1000))).shape
    (3, 200)
    """
    n_features = checked_size("n_features", n_features)
    n_components = checked_size("n_components", n_components)
    shape = (n_features, -(-n_components // 8))
    refuse_beyond_memory(
        math.prod(shape),
        f"a map of {n_features} columns to {n_components} components",
        "use fewer n_components or columns",
    )
    return RademacherMap(rng.integers(0, 256, size=shape, dtype=np.uint8), n_components)


def jl_dimension(margin: float, n_samples: int, beta: float = 0.05) -> int:
    r"""Return how many random signs preserve the margin `jl_margin` of all records.

    :math:`k = \lceil 4 \ln((3n+1)/\beta) / (e^2 - 2e^3/3) \rceil` with :math:`e = \gamma/2`.

    Parameters
    ----------
    margin : float
        Margin divided by the bound on the norm of a row, in (0, 1].
    n_samples : int
        Number of records.
    beta : float, default=0.05
        Probability with which the draw may fail, in (0, 1).

    Returns
    -------
    int
        Number of components. If it exceeds the number of features, do not project.

    Notes
    -----
    Privacy: a function of public quantities; no privacy guarantee depends on the event that it
    bounds. The statement is about `draw_rademacher`. The distortion :math:`\gamma/2` minimises, to
    first order, :math:`\sqrt k` over the retained margin, which is what the noise of a private
    method costs.

    References
    ----------
    ``docs/proofs/projection.md``, Theorem 4. Achlioptas (2003).

    Examples
    --------
    >>> from dp_halfspace.projection import jl_dimension
    >>> jl_dimension(0.3, 15_000)
    2709
    """
    require("in (0, 1]", margin=margin)
    e = margin / 2.0
    return math.ceil(4.0 * _log_events(n_samples, beta) / (e * e * (1.0 - 2.0 * e / 3.0)))


def jl_distortion(n_components: int, n_samples: int, beta: float = 0.05) -> float:
    """Smallest distortion that is proved for random signs with this many components.

    Parameters
    ----------
    n_components, n_samples : int
        Numbers of random signs for each column, and of records.
    beta : float, default=0.05
        Probability with which the draw may fail, in (0, 1).

    Returns
    -------
    float
        In (0, 1], or infinity if there are too few components for any statement. `jl_dimension` is
        the number of components with half the margin as distortion.

    Notes
    -----
    Privacy: a function of public quantities; no privacy guarantee depends on the event that it
    bounds.

    References
    ----------
    ``docs/proofs/projection.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.projection import jl_dimension, jl_distortion
    >>> round(jl_distortion(jl_dimension(0.3, 15_000), 15_000), 3)
    0.15
    """
    q = 4.0 * _log_events(n_samples, beta) / checked_size("n_components", n_components)
    if q > 1.0 / 3.0:
        return math.inf
    # Root of e^2 - 2 e^3 / 3 = q in [0, 1], by Viete's formula with e = 1/2 + cos(angle).
    angle = (2.0 * math.pi - math.acos(max(-1.0, 1.0 - 6.0 * q))) / 3.0
    return min(1.0, 0.5 + math.cos(angle) + 1e-12)


def jl_margin(margin: float, *, distortion: float | None = None) -> float:
    r"""Margin after a projection that keeps squared norms within a distortion, and clipping.

    :math:`(\gamma - e)/(1 + e)`, or 0 if the distortion :math:`e` is not below the margin.

    Parameters
    ----------
    margin : float
        Margin divided by the bound on the norm of a row, in (0, 1].
    distortion : float or None, default=None
        At least 0. None is half the margin, as in `jl_dimension`.

    Returns
    -------
    float
        Relative to the same bound, to which projected rows are clipped again.

    Notes
    -----
    Privacy: a function of public quantities.

    References
    ----------
    ``docs/proofs/projection.md``, Theorem 4.

    Examples
    --------
    >>> from dp_halfspace.projection import jl_margin
    >>> round(jl_margin(0.3), 4)
    0.1304
    """
    require("in (0, 1]", margin=margin)
    e = margin / 2.0 if distortion is None else distortion
    require("at least 0", distortion=e)
    return (margin - e) / (1.0 + e) if e < margin else 0.0


def _log_events(n_samples: int, beta: float) -> float:
    """Return the logarithm of the number of one-sided events over their total probability."""
    require("in (0, 1)", beta=beta)
    return math.log((3.0 * checked_size("n_samples", n_samples) + 1.0) / beta)


# The Hadamard matrices with which one product computes several levels of the transform. A product
# with that of order 16 is faster than the additions that it replaces; larger orders are not.
_MATRICES = tuple(hadamard(2**levels).astype(np.float64) for levels in range(5))


def _transform(values: FloatArray, work: FloatArray) -> FloatArray:
    """Transform the rows of `values`; both arrays are overwritten, and one of them is returned.

    The Hadamard matrix, of a power of two of columns in natural order, is a Kronecker product of
    matrices of order at most 16. Each factor acts on groups of bits of the column index, lowest
    bits first (Fino and Algazi, 1976).
    """
    levels = values.shape[1].bit_length() - 1
    n_stages, stride = math.ceil(levels / (len(_MATRICES) - 1)), 1
    for stage in range(n_stages):
        matrix = _MATRICES[(levels + stage) // n_stages]
        order = len(matrix)
        if stride == 1:
            np.matmul(values.reshape(-1, order), matrix, out=work.reshape(-1, order))
        else:
            shape = (-1, order, stride)
            np.matmul(matrix, values.reshape(shape), out=work.reshape(shape))
        values, work = work, values
        stride *= order
    return values


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
        size = next_power_of_two(self.n_features_in)
        with np.errstate(over="ignore", invalid="ignore"):
            # Both buffers stay in the cache.
            for rows, block in row_blocks(X, max(1, CACHED_NUMBERS // size)):
                values = np.zeros((block.shape[0], size))
                values[:, : self.n_features_in] = to_dense(block) * self.signs
                out[rows] = _transform(values, np.empty_like(values))[:, self.outputs]
            out /= math.sqrt(self.n_components)
        return replace_nonfinite(out)

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Apply the transposed map; see `LinearMap.pull_back`."""
        w = np.asarray(w, dtype=np.float64)
        values = np.zeros((*w.shape[:-1], next_power_of_two(self.n_features_in)))
        values[..., self.outputs] = w
        rows = np.atleast_2d(values)
        image = _transform(rows, np.empty(rows.shape)).reshape(values.shape)
        scaled = image[..., : self.n_features_in] * self.signs
        return np.asarray(scaled / math.sqrt(self.n_components))


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
    size = next_power_of_two(n_features)
    if n_components > size:
        raise ValueError(
            f"a Hadamard transform of {n_features} features has {size} outputs; "
            f"got n_components={n_components!r}."
        )
    signs = (2 * rng.integers(0, 2, size=n_features, dtype=np.int8) - 1).astype(np.int8)
    # The set of outputs is uniform. Their order is irrelevant, and sorted outputs are read faster.
    outputs = np.sort(rng.choice(size, n_components, replace=False, shuffle=False))
    return HadamardMap(signs, outputs.astype(np.intp))


PROJECTIONS: dict[str, Callable[[int, int, np.random.Generator], LinearMap]] = {
    "rademacher": draw_rademacher,
    "hadamard": draw_hadamard,
}


def draw_projection(
    kind: str, n_features: int, n_components: int, rng: np.random.Generator
) -> LinearMap | None:
    """Draw the map of this name, or None if it would not reduce the dimension.

    Parameters
    ----------
    kind : str
        ``"rademacher"`` (random signs) or ``"hadamard"`` (the fast map).
    n_features, n_components : int
        Numbers of columns before and after the projection.
    rng : numpy.random.Generator
        Public randomness.

    Returns
    -------
    LinearMap or None
        None stands for the identity: with as many components as features a map only loses margin.

    Notes
    -----
    Privacy: the map does not depend on data.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_projection
    >>> draw_projection("hadamard", 10, 4, np.random.default_rng(0)).n_components
    4
    >>> draw_projection("hadamard", 10, 10, np.random.default_rng(0)) is None
    True
    """
    if n_components >= n_features:
        return None
    return PROJECTIONS[kind](n_features, n_components, rng)
