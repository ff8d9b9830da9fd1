"""Random Fourier features by fast Hadamard transforms, for rows with many columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.projection.base import SingleArray, checked_features, checked_size, dense, padded
from dp_halfspace.projection.fourier import checked_scales, cosines_and_sines
from dp_halfspace.projection.hadamard import walsh_hadamard
from dp_halfspace.projection.spectra import Spectrum

_ROWS = 256
_LARGEST = 2.0**40
# Beyond the unit ball by this much nothing but overflow can happen.
_SATURATED = 2.0**60
# Columns from which three transforms beat a product with a dense matrix: measured.
_FEWEST_FEATURES = 2048


@dataclass(frozen=True, slots=True, eq=False)
class StructuredFourierMap:
    r"""Cosines and sines of the rows of :math:`R\,HD_1HD_2HD_3`, stacked as often as needed.

    :math:`H` is the Hadamard matrix of the next power of two, divided by its norm; :math:`D_i`
    are `signs`, of shape (n_blocks, 3, padded n_features_in), and :math:`R` has the `lengths` of
    the n_components / 2 frequencies, in turns. (F. X. Yu et al. Orthogonal random features. 2016.)
    """

    signs: NDArray[np.int8]
    lengths: SingleArray
    n_features_in: int

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return 2 * len(self.lengths)

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        size, half = self.signs.shape[2], len(self.lengths)
        out = np.empty((X.shape[0], 2 * half), dtype=np.float32)
        for lo in range(0, X.shape[0], _ROWS):
            rows = dense(X[lo : lo + _ROWS])
            longer = np.zeros((len(rows), size))
            np.clip(rows, -_SATURATED, _SATURATED, out=longer[:, : self.n_features_in])
            turns = np.empty((len(rows), half))
            for block, three in enumerate(self.signs):
                values = longer
                for signs in three:
                    values = walsh_hadamard(values * signs)
                first, last = block * size, min((block + 1) * size, half)
                turns[:, first:last] = values[:, : last - first]
            # Three transforms have the norm size**1.5, unit rows are wanted.
            turns *= self.lengths * size**-1.5
            cosines_and_sines(turns, out[lo : lo + _ROWS])
        return out


def structured_pays(n_features: int, n_components: int) -> bool:
    """Tell by public sizes whether fast transforms beat a dense matrix (``benchmarks/kernel.py``).

    Examples
    --------
    >>> from dp_halfspace.projection import structured_pays
    >>> structured_pays(100, 1000), structured_pays(10_000, 10_000)
    (False, True)
    """
    # A transform gives as many frequencies as there are padded columns: fewer are wasted.
    return n_features >= _FEWEST_FEATURES and n_components >= n_features


def draw_structured_fourier(
    spectrum: Spectrum,
    n_features: int,
    length_scales: NDArray[np.float64],
    rng: np.random.Generator,
) -> StructuredFourierMap:
    """Draw structured random Fourier features of a radial kernel.

    Parameters
    ----------
    spectrum : Spectrum
        A kernel of `RADIAL`.
    n_features : int
    length_scales : ndarray of shape (n_components / 2,)
        As for `draw_fourier`.
    rng : numpy.random.Generator
        Public randomness.

    Returns
    -------
    StructuredFourierMap

    Notes
    -----
    Privacy: as for `draw_fourier`. Accuracy: the frequencies of a block are orthogonal, which
    lowers the error; Theorem 1 of ``docs/proofs/kernel.md`` is not proved for them.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import Spectrum, draw_structured_fourier
    >>> scales = np.full(2048, 0.5)
    >>> psi = draw_structured_fourier(Spectrum("rbf"), 64, scales, np.random.default_rng(0))
    >>> u, v = psi.apply(np.eye(64)[:2] / 4)
    >>> bool(abs(u @ v - np.exp(-0.25)) < 0.05)
    True
    """
    n_features = checked_size("n_features", n_features)
    scales = checked_scales(length_scales)
    size = padded(n_features)
    shape = (-(-scales.size // size), 3, size)
    signs = (1 - 2 * rng.integers(0, 2, size=shape, dtype=np.int8)).astype(np.int8)
    radii = np.sqrt(rng.chisquare(size, scales.size)) * spectrum.radial_factors(scales.size, rng)
    lengths = np.minimum(radii / (2.0 * math.pi * scales), _LARGEST)
    return StructuredFourierMap(signs, lengths.astype(np.float32), n_features)
