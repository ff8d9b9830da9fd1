"""A sketch of the polynomial kernel: count sketches multiplied in the Fourier domain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft, sparse

from dp_halfspace.projection.base import (
    SingleArray,
    checked_features,
    checked_size,
    dense,
    row_blocks,
    within_unit_ball,
)

_ENTRIES = 2**17
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

    @property
    def largest_norm(self) -> float:
        """Norm that the exact features of a row of norm one have."""
        return math.hypot(self.gain, self.constant) ** len(self.sketches)

    def apply(self, X: Any) -> SingleArray:
        """Map every row and clip it to norm one; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        size = self.n_components
        out = np.empty((X.shape[0], size), dtype=np.float32)
        for lo, hi, block in row_blocks(X, min(_ENTRIES, 128 * X.shape[1])):
            product = None
            for sketch in self.sketches:
                image = np.asarray(dense(block @ sketch[:-1])) * self.gain
                image += self.constant * sketch[[-1]].toarray()
                np.clip(image, -_SATURATED, _SATURATED, out=image)
                transformed = fft.rfft(image, axis=1)
                product = transformed if product is None else product * transformed
            rows = fft.irfft(product, n=size, axis=1) / self.largest_norm
            out[lo:hi] = within_unit_ball(rows)
        return out


def _count_sketch(n_features: int, n_components: int, rng: np.random.Generator) -> Any:
    """Send each feature to one component, uniformly chosen, with a random sign."""
    places = rng.integers(0, n_components, size=n_features, dtype=np.int32)
    signs = 1.0 - 2.0 * rng.integers(0, 2, size=n_features, dtype=np.int8)
    return sparse.csr_array(
        (signs, places, np.arange(n_features + 1)), shape=(n_features, n_components)
    )


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
