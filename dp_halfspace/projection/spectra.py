"""Shift-invariant kernels and the distributions of their frequencies.

By Bochner's theorem a continuous kernel ``k(x - z)`` with ``k(0) = 1`` is the mean of
``cos(<w, x - z>)`` over a probability distribution of ``w``. Those of `KERNELS` are simple enough
to be drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, kve

from dp_halfspace.projection.base import FloatArray

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
    >>> from dp_halfspace.projection.spectra import Spectrum
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
