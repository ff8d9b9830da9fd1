r"""Random Fourier features: rows of norm one whose inner products approximate a kernel.

A feature map is drawn from public randomness and treats every row by itself. It takes rows that the
caller has divided by their public scale, and returns float32.

By Bochner's theorem a continuous kernel ``k(x - z)`` with ``k(0) = 1`` is the mean of
``cos(<w, x - z>)`` over a probability distribution of ``w``. Those of `KERNELS` are simple enough
to be drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, kve

from dp_halfspace.projection.base import (
    FloatArray,
    RowMap,
    SingleArray,
    checked_features,
    checked_size,
)

KERNELS = ("rbf", "laplacian", "matern")


@dataclass(frozen=True, slots=True)
class Spectrum:
    r"""A kernel of length scale one.

    Parameters
    ----------
    kernel : str
        One of `KERNELS`. With :math:`\Delta` the difference of two points:
        ``"rbf"`` is :math:`\exp(-\|\Delta\|^2/2)`, ``"laplacian"``
        :math:`\exp(-\|\Delta\|_1)` and ``"matern"`` scikit-learn's Matern kernel.
    nu : float, default=1.5
        Smoothness of ``"matern"``.

    References
    ----------
    .. [1] A. Rahimi, B. Recht. Random features for large-scale kernel machines. NIPS 2007.
    .. [2] C. E. Rasmussen, C. K. I. Williams. Gaussian processes for machine learning,
       chapter 4. MIT Press, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection.fourier import Spectrum
    >>> Spectrum("rbf").values(np.array([[1.0, 1.0], [0.0, 0.0]])).round(4)
    array([0.3679, 1.    ])
    """

    kernel: str
    nu: float = 1.5

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {KERNELS}; got {self.kernel!r}.")

    def frequencies(self, n_features: int, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent frequencies, as an array of shape (n_features, size)."""
        shape = (n_features, size)
        if self.kernel == "laplacian":
            return np.asarray(rng.standard_cauchy(shape))
        if self.kernel == "rbf":
            return rng.standard_normal(shape)
        # A scale mixture of Gaussian frequencies: a multivariate t distribution.
        factors = np.sqrt(2.0 * self.nu / rng.chisquare(2.0 * self.nu, size))
        return np.asarray(rng.standard_normal(shape) * factors)

    def values(self, differences: FloatArray) -> FloatArray:
        """Evaluate the kernel at differences of points, of shape (..., n_features)."""
        if self.kernel == "laplacian":
            return np.asarray(np.exp(-np.abs(differences).sum(axis=-1)))
        squares = np.asarray((differences**2).sum(axis=-1))
        if self.kernel == "matern":
            return _matern(np.sqrt(squares), self.nu)
        return np.asarray(np.exp(-0.5 * squares))


def _matern(distances: FloatArray, nu: float) -> FloatArray:
    """Evaluate the Matern kernel, by logarithms: its factors over- and underflow."""
    scaled = np.maximum(math.sqrt(2.0 * nu) * distances, 1e-10)
    log_value = (1.0 - nu) * math.log(2.0) - gammaln(nu) + nu * np.log(scaled)
    return np.asarray(np.minimum(np.exp(log_value + np.log(kve(nu, scaled)) - scaled), 1.0))


# Rows that are mapped at a time, a function of nothing.
_ROWS = 1024
# Turns beyond this have no fraction: every such frequency is as good as another.
_LARGEST = 2.0**40


@runtime_checkable
class FeatureMap(RowMap, Protocol):
    """A map to rows of norm at most one up to rounding; 2.3 where columns lead."""

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""


def cosines_and_sines(turns: FloatArray, out: SingleArray) -> None:
    """Write cosines, then sines, of angles in turns, as rows of norm one.

    `turns`, of shape (n, k), is overwritten; what is not finite counts as 0. `out` has shape
    (n, 2 k).
    """
    size = turns.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(turns.sum()):
            np.nan_to_num(turns, copy=False, posinf=0.0, neginf=0.0)
        # Without whole turns every angle takes the same path through the library.
        turns -= np.rint(turns)
    angles = turns.astype(np.float32)
    angles *= np.float32(2.0 * math.pi)
    np.cos(angles, out=out[:, :size])
    np.sin(angles, out=out[:, size:])
    out *= np.float32(1.0 / math.sqrt(size))


@dataclass(frozen=True, slots=True, eq=False)
class FourierMap:
    """Cosines and sines of random linear forms. Made by `draw_fourier`.

    Parameters
    ----------
    frequencies : ndarray of shape (n_features_in, n_components / 2), float32
        In turns: divided by ``2 pi``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import FourierMap
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
        for lo in range(0, X.shape[0], _ROWS):
            rows = X[lo : lo + _ROWS]
            with np.errstate(over="ignore", invalid="ignore"):
                # In float64, so that the last bits of a product hardly ever reach a feature.
                if sparse.issparse(rows):
                    turns = sparse.csr_array(rows, dtype=np.float64) @ frequencies
                else:
                    turns = np.ascontiguousarray(rows, dtype=np.float64) @ frequencies
            cosines_and_sines(turns, out[lo : lo + _ROWS])
        return out


def checked_scales(length_scales: FloatArray) -> FloatArray:
    """Return length scales of frequencies, or raise ValueError if one is not positive."""
    scales = np.asarray(length_scales, dtype=np.float64)
    if scales.ndim != 1 or scales.size == 0 or not (scales > 0.0).all():
        raise ValueError("length_scales must be a non-empty list of positive numbers")
    return scales


def draw_fourier(
    spectrum: Spectrum,
    n_features: int,
    length_scales: NDArray[np.float64],
    rng: np.random.Generator,
) -> FourierMap:
    r"""Draw random Fourier features.

    Parameters
    ----------
    spectrum : Spectrum
        The kernel.
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
    Privacy: the map does not depend on data. Rows have norm one up to the rounding of float32;
    whoever rests a sensitivity on it brings them to norm one in float64
    (``docs/proofs/kernel.md``, section 2).

    References
    ----------
    R. Bassily, M. Mohri, A. Suresh. Differentially private learning with margin guarantees.
    NeurIPS 2022, equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import Spectrum, draw_fourier
    >>> scales = np.full(2000, 0.5)
    >>> psi = draw_fourier(Spectrum("rbf"), 3, scales, np.random.default_rng(0))
    >>> u, v = psi.apply(np.array([[0.1, 0.2, 0.3], [0.1, 0.7, 0.3]]))
    >>> bool(abs(u @ v - np.exp(-0.5)) < 0.05)
    True
    """
    n_features = checked_size("n_features", n_features)
    scales = checked_scales(length_scales)
    turns = spectrum.frequencies(n_features, scales.size, rng) / (2.0 * math.pi * scales)
    return FourierMap(np.clip(turns, -_LARGEST, _LARGEST).astype(np.float32))
