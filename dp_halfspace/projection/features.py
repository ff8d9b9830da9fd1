"""Public feature maps: Fourier features, cosines of columns, a sketch of a polynomial kernel.

A feature map is drawn from public randomness and maps every row independently. Its input is rows
that the caller has divided by their public scale, and its output has type float32.

By Bochner's theorem a continuous kernel ``k(x - z)`` with ``k(0) = 1`` is the mean of ``cos(<w, x -
z>)`` over a probability distribution of ``w``, which is normal for the Gaussian kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

from dp_halfspace._arrays import FloatArray, SingleArray
from dp_halfspace._memory import AT_ONCE, NUMBER_BYTES, refuse_beyond_memory, rows_of_block
from dp_halfspace._params import checked_size
from dp_halfspace.projection.linear import (
    LinearMap,
    RowMap,
    checked_features,
    row_blocks,
    to_dense,
    within_unit_ball,
)

# Largest frequency, in turns: angles of larger ones have no fractional part in float64.
_LARGEST_FREQUENCY = 2.0**40


@runtime_checkable
class FeatureMap(RowMap, Protocol):
    """A map to rows of norm at most one up to rounding, or 2.4 if the columns are included."""

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""


@dataclass(frozen=True, slots=True, eq=False)
class FourierMap:
    """Cosines and sines of random linear forms. Made by `draw_fourier`.

    Parameters
    ----------
    frequencies : ndarray of shape (n_features_in, n_components / 2), float32
        Frequencies in turns, which means divided by ``2 pi``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection.features import FourierMap
    >>> FourierMap(np.array([[0.25]], dtype=np.float32)).apply(np.array([[1.0]])).round(6)
    array([[-0.,  1.]], dtype=float32)
    """

    frequencies: SingleArray

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return int(self.frequencies.shape[0])

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return 2 * int(self.frequencies.shape[1])

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        out = np.empty((X.shape[0], self.n_components), dtype=np.float32)
        frequencies = self.frequencies.astype(np.float64)
        size = frequencies.shape[1]
        step = min(AT_ONCE, rows_of_block(NUMBER_BYTES * size))
        for rows, block in row_blocks(X, step):
            # Products are in float64, so that their rounding errors hardly ever change a float32
            # feature.
            with np.errstate(over="ignore", invalid="ignore"):
                turns = block @ frequencies
                # A row of infinite numbers gets the features of zero, or others that are finite.
                if not np.isfinite(turns.sum()):
                    np.nan_to_num(turns, copy=False, posinf=0.0, neginf=0.0)
                # Whole turns are removed, so that the numerical library computes every angle in the
                # same way.
                turns -= np.rint(turns)
            angles = turns.astype(np.float32)
            angles *= np.float32(2.0 * math.pi)
            np.cos(angles, out=out[rows, :size])
            np.sin(angles, out=out[rows, size:])
        out *= np.float32(1.0 / math.sqrt(size))
        return out


def draw_fourier(
    n_features: int, length_scales: FloatArray, rng: np.random.Generator
) -> FourierMap:
    r"""Draw random Fourier features of the Gaussian kernel, :math:`\exp(-\|\Delta\|^2/2\ell^2)`.

    Parameters
    ----------
    n_features : int
    length_scales : ndarray of shape (n_components / 2,)
        Public length scale of each frequency, positive. With several, the kernel is the mean
        of the kernels of these length scales.
    rng : numpy.random.Generator
        Public randomness, never a source of noise.

    Returns
    -------
    FourierMap

    Notes
    -----
    Privacy: the map does not depend on data. Rows have norm one up to the rounding of float32; code
    whose sensitivity depends on the norm normalises them in float64 (``docs/proofs/kernel.md``,
    section 2).

    References
    ----------
    A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007. R. Bassily,
    M. Mohri, A. T. Suresh. Differentially private learning with margin guarantees. NeurIPS 2022,
    equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_fourier
    >>> scales = np.full(2000, 0.5)
    >>> psi = draw_fourier(3, scales, np.random.default_rng(0))
    >>> u, v = psi.apply(np.array([[0.1, 0.2, 0.3], [0.1, 0.7, 0.3]]))
    >>> bool(abs(u @ v - np.exp(-0.5)) < 0.05)
    True
    """
    n_features = checked_size("n_features", n_features)
    scales = np.asarray(length_scales, dtype=np.float64)
    if scales.ndim != 1 or scales.size == 0 or not (scales > 0.0).all():
        raise ValueError("length_scales must be a non-empty list of positive numbers")
    refuse_beyond_memory(
        # Frequencies, twice in float64 and once in float32.
        2.5 * NUMBER_BYTES * n_features * scales.size,
        f"a map of {n_features} columns to {2 * scales.size} random Fourier features",
        "use fewer features or columns",
    )
    turns = rng.standard_normal((n_features, scales.size)) / (2.0 * math.pi * scales)
    return FourierMap(np.clip(turns, -_LARGEST_FREQUENCY, _LARGEST_FREQUENCY).astype(np.float32))


# Length scale of Fourier features, in column scales times the root of the number of columns.
_JOINT_SCALE = 0.5


# Number of scales on either side of zero outside of which cosines are constant.
_COSINE_REACH = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveMap:
    r"""Columns, cosines and Fourier features. Made by `draw_additive`.

    Parameters
    ----------
    n_features_in : int
    n_terms : int
        Features of each column: itself, clipped, and cosines ``2^.5 cos(k pi v) / k``, ``k = 2,
        ..., n_terms``, of its place ``v`` in [0, 1] between three scales on either side of zero,
        outside of which they are constant.
    fourier : FourierMap or None
        Fourier features of all columns together, without `n_plain`.
    n_plain : int
        Number of columns at the end, with values 0 and 1, that have no further features.
    length : float or None
        Number by which the entries of a row in column scales were divided; None for the root of the
        number of columns.
    clip : float, default=1.5
        Number of scales on either side of zero to which the column itself is clipped.

    Notes
    -----
    Entries far outside their scale have finite features. Code whose sensitivity depends on the norm
    of a row of features scales the rows down itself.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection.features import AdditiveMap
    >>> AdditiveMap(1, 3).apply(np.array([[0.0]])).round(3)
    array([[ 0.   , -0.707, -0.   ]], dtype=float32)
    """

    n_features_in: int
    n_terms: int
    fourier: FourierMap | None = None
    n_plain: int = 0
    length: float | None = None
    clip: float = 1.5

    @property
    def is_linear(self) -> bool:
        """Whether there are no features except the columns."""
        return self.n_components == self.n_features_in

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        joint = 0 if self.fourier is None else self.fourier.n_components
        return self.n_plain + (self.n_features_in - self.n_plain) * self.n_terms + joint

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        d = self.n_features_in
        scale = math.sqrt(d) if self.length is None else self.length
        n_curved = d - self.n_plain
        end = d + n_curved * (self.n_terms - 1)
        out = np.empty((X.shape[0], self.n_components), dtype=np.float32)
        for places, block in row_blocks(X, AT_ONCE):
            rows, part = to_dense(block), out[places]
            part[:, n_curved:d] = rows[:, n_curved:]
            numbers = rows[:, :n_curved] * scale
            np.divide(np.clip(numbers, -self.clip, self.clip), scale, out=part[:, :n_curved])
            if end > d:
                inside = np.clip(0.5 + numbers / (2.0 * _COSINE_REACH), 0.0, 1.0)
                _write_cosines(inside, part[:, d:end], 1.0 / scale)
            if self.fourier is not None:
                # They have the norm of the columns.
                share = math.sqrt(n_curved) / scale
                np.multiply(self.fourier.apply(numbers), share, out=part[:, end:])
        return out


def _write_cosines(values: NDArray[Any], out: NDArray[Any], scale: float) -> None:
    """Write ``scale 2^.5 cos(k pi v) / k`` for ``k = 2, 3, ...``, one block of columns for each.

    `values`, of shape (n, d), are in [0, 1]; `out` has a multiple of d columns.
    """
    d = values.shape[1]
    # The recursion cos(k v) = 2 cos(v) cos((k - 1) v) - cos((k - 2) v) needs one cosine only.
    last, cosine = np.ones_like(values), np.cos(math.pi * values)
    twice, this = 2.0 * cosine, cosine
    # The mean square of a cosine is one half.
    amplitude = scale * math.sqrt(2.0)
    for k in range(2, out.shape[1] // d + 2):
        last, this = this, twice * this - last
        np.multiply(this, amplitude / k, out=out[:, (k - 2) * d : (k - 1) * d])


def draw_additive(
    n_features: int, n_terms: int, n_fourier: int, rng: np.random.Generator
) -> AdditiveMap:
    """Return the map with `n_terms` features of each column and `n_fourier` of all.

    Parameters
    ----------
    n_features : int
    n_terms : int
        Features of each column; one for the columns alone.
    n_fourier : int
        Number of Fourier features, even; zero for none.
    rng : numpy.random.Generator
        Public randomness, for the Fourier features.

    Returns
    -------
    AdditiveMap

    Notes
    -----
    Privacy: the map does not depend on data; ``docs/proofs/engine.md``, section 8.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_additive
    >>> draw_additive(5, 4, 20, np.random.default_rng(0)).n_components
    40
    """
    n_features = checked_size("n_features", n_features)
    fourier = None
    if n_fourier:
        scales = np.full(n_fourier // 2, _JOINT_SCALE * math.sqrt(n_features))
        fourier = draw_fourier(n_features, scales, rng)
    return AdditiveMap(n_features, checked_size("n_terms", n_terms), fourier)


# Largest entry of a count sketch, so that products of entries are finite.
_SATURATED = 2.0**60


@dataclass(frozen=True, slots=True, eq=False)
class TensorSketchMap:
    """Rows whose inner products approximate a polynomial kernel. Made by `draw_tensor_sketch`.

    There is one count sketch for each degree, a csr_array of shape (n_features_in + 1,
    n_components), of the columns times `gain` and of a column `constant`.
    """

    sketches: tuple[Any, ...]
    gain: float
    constant: float

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return int(self.sketches[0].shape[0]) - 1

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return int(self.sketches[0].shape[1])

    def apply(self, X: Any) -> SingleArray:
        """Map every row and clip it to norm one; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        size = self.n_components
        out = np.empty((X.shape[0], size), dtype=np.float32)
        # Norm of the exact features of a row of norm one.
        largest_norm = math.hypot(self.gain, self.constant) ** len(self.sketches)
        for rows, block in row_blocks(X, min(128, rows_of_block(NUMBER_BYTES * size))):
            product: Any = 1.0
            for sketch in self.sketches:
                image = np.asarray(to_dense(block @ sketch[:-1])) * self.gain
                image += self.constant * sketch[[-1]].toarray()
                np.clip(image, -_SATURATED, _SATURATED, out=image)
                product = product * fft.rfft(image, axis=1)
            out[rows] = within_unit_ball(fft.irfft(product, n=size, axis=1) / largest_norm)
        return out


def _count_sketch(n_features: int, n_components: int, rng: np.random.Generator) -> Any:
    """Map each feature to one uniformly chosen component, with a random sign."""
    places = rng.integers(0, n_components, size=n_features, dtype=np.int32)
    signs = 1.0 - 2.0 * rng.integers(0, 2, size=n_features, dtype=np.int8)
    arrays = signs, places, np.arange(n_features + 1)
    return sparse.csr_array(arrays, shape=(n_features, n_components))


def draw_tensor_sketch(
    n_features: int,
    n_components: int,
    rng: np.random.Generator,
    *,
    degree: int = 3,
    coef0: float = 1.0,
    length_scale: float = 1.0,
) -> TensorSketchMap:
    r"""Draw a sketch of :math:`(\langle x,z\rangle/\ell^2+c)^p/(1/\ell^2+c)^p`.

    Parameters
    ----------
    n_features, n_components : int
    rng : numpy.random.Generator
        Public randomness. Never a source of noise.
    degree : int, default=3
        :math:`p`, at least 1.
    coef0 : float, default=1.0
        :math:`c`, not negative.
    length_scale : float, default=1.0
        :math:`\ell`, positive.

    Returns
    -------
    TensorSketchMap

    Notes
    -----
    Privacy: the map does not depend on data.

    Exact features of a row of norm one have norm :math:`(1/\ell^2+c)^{p/2}`, by which they are
    divided; the sketch keeps norms only on average, so each row is clipped to norm one after
    it. Bassily, Mohri and Suresh (2022), section 4, leave :math:`c` out of the norm.

    References
    ----------
    .. [1] N. Pham, R. Pagh. Fast and scalable polynomial kernels via explicit feature maps.
       KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_tensor_sketch
    >>> psi = draw_tensor_sketch(3, 4000, np.random.default_rng(0), degree=2)
    >>> u, v = psi.apply(np.array([[0.6, 0.0, 0.8], [0.6, 0.8, 0.0]]))
    >>> bool(abs(u @ v - (0.36 + 1) ** 2 / 4) < 0.1)
    True
    """
    n_features = checked_size("n_features", n_features)
    n_components = checked_size("n_components", n_components)
    degree = checked_size("degree", degree)
    if not coef0 >= 0.0 or not length_scale > 0.0:
        raise ValueError("coef0 must not be negative, and length_scale must be positive")
    sketches = tuple(_count_sketch(n_features + 1, n_components, rng) for _ in range(degree))
    return TensorSketchMap(sketches, 1.0 / length_scale, math.sqrt(coef0))


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedFeatures:
    """A feature map, a linear map after it, and clipping to norm one."""

    feature_map: FeatureMap
    linear_map: LinearMap

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return self.feature_map.n_features_in

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return self.linear_map.n_components

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        image = self.linear_map.apply(self.feature_map.apply(X))
        return within_unit_ball(image).astype(np.float32)
