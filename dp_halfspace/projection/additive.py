"""Columns, decaying cosines of each column, and Fourier features of all: one public map.

A halfspace of these features is a sum of curves, one for each column, and of a smooth function
of all columns. The columns keep full weight, so nothing that a halfspace finds is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace.projection.base import FloatArray, SingleArray, checked_features, checked_size
from dp_halfspace.projection.fourier import FourierMap, Spectrum, draw_fourier

# Of a cosine before it is divided by its frequency: its mean square is then one.
_AMPLITUDE = math.sqrt(2.0)
# Of all Fourier features of a row, relative to the root of the number of columns.
_FOURIER = math.sqrt(1.0 / 3.0)
# Length scales, in units of the reach of a column times the root of their number.
_SCALES = (2 / 3, 1 / 3, 1 / 15)
_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveMap:
    r"""Columns, cosines and Fourier features. Made by `draw_additive`.

    Parameters
    ----------
    n_features_in : int
    n_terms : int
        Features of each column: itself, and cosines ``2^.5 cos(k pi v) / k``, ``k = 2, ...,
        n_terms``, of ``v = (1 + x sqrt(n_features_in) / reach) / 2``, clipped to [0, 1].
    fourier : FourierMap or None
        Of all columns together.
    n_plain : int
        Columns at the end, of 0 and 1, that have no further features.
    length : float or None
        What the entries of a row were divided by; None for the root of the number of columns.
    reach : float, default=1.5
        Where cosines end, relative to the root mean square of a row's entries, if the row has
        norm one: beyond, they are constant.

    Notes
    -----
    Entries of a row are divided by the root of the number of columns. Entries far outside
    their scale have finite features; a row's length is bounded by that of the row it is made
    of, plus 1.3. Whoever rests a sensitivity on it brings it to norm one.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import AdditiveMap
    >>> AdditiveMap(1, 3).apply(np.array([[0.0]])).round(3)
    array([[ 0.   , -0.707, -0.   ]], dtype=float32)
    """

    n_features_in: int
    n_terms: int
    fourier: FourierMap | None = None
    n_plain: int = 0
    length: float | None = None
    reach: float = 1.5

    @property
    def _share(self) -> float:
        """Length of the columns that have features, relative to that of a row."""
        if self.length is None:
            return 1.0
        return math.sqrt(self.n_features_in - self.n_plain) / self.length

    @property
    def relative_length(self) -> float:
        """Root mean square of all features but the columns, whose own is taken for one."""
        cosines = sum(1.0 / k**2 for k in range(2, self.n_terms + 1))
        return self._share * math.sqrt(cosines + (0.0 if self.fourier is None else _FOURIER**2))

    @property
    def is_linear(self) -> bool:
        """Whether the columns are all there is."""
        return self.n_components == self.n_features_in

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        joint = 0 if self.fourier is None else self.fourier.n_components
        return self.n_plain + (self.n_features_in - self.n_plain) * self.n_terms + joint

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        d, share = self.n_features_in, self._share
        n_curved = d - self.n_plain
        end = d + n_curved * (self.n_terms - 1)
        unit = math.sqrt(d) if self.length is None else self.length
        out = np.empty((X.shape[0], self.n_components), dtype=np.float32)
        for lo in range(0, X.shape[0], _ROWS):
            rows, part = X[lo : lo + _ROWS], out[lo : lo + _ROWS]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            part[:, :d] = rows
            if end > d:
                curved = np.asarray(rows[:, :n_curved], dtype=np.float64)
                values = np.clip(0.5 + curved * (unit / (2.0 * self.reach)), 0.0, 1.0)
                write_cosines(values, part[:, d:end], 1.0 / unit)
        if self.fourier is not None:
            out[:, end:] = self.fourier.apply(X[:, :n_curved] / share)
            out[:, end:] *= np.float32(_FOURIER * share)
        return out


def write_cosines(values: FloatArray, out: NDArray[Any], scale: float = 1.0) -> None:
    """Write ``scale 2^.5 cos(k pi v) / k`` for ``k = 2, 3, ...``, one block of columns for each.

    `values`, of shape (n, d), are in [0, 1]; `out` has a multiple of d columns.
    """
    d = values.shape[1]
    # cos(k v) = 2 cos(v) cos((k - 1) v) - cos((k - 2) v): one cosine for all of them.
    last, cosine = np.ones_like(values), np.cos(math.pi * values)
    twice, this = 2.0 * cosine, cosine
    for k in range(2, out.shape[1] // d + 2):
        last, this = this, twice * this - last
        np.multiply(this, scale * _AMPLITUDE / k, out=out[:, (k - 2) * d : (k - 1) * d])


def additive_norm(n_features: int, n_terms: int) -> float:
    """Return a bound on the norm of columns in [-1, 1] with their cosines."""
    cosines = sum(1.0 / k**2 for k in range(2, n_terms + 1))
    return math.sqrt(n_features * (1.0 + _AMPLITUDE**2 * cosines))


def draw_additive(
    n_features: int,
    n_terms: int,
    n_fourier: int,
    rng: np.random.Generator,
    *,
    reach: float = 1.5,
) -> AdditiveMap:
    """Return the map with `n_terms` features of each column and `n_fourier` of all.

    Parameters
    ----------
    n_features : int
    n_terms : int
        One for the columns alone.
    n_fourier : int
        An even number; zero for none.
    rng : numpy.random.Generator
        Public randomness, for the Fourier features.
    reach : float, default=1.5
        Of a column, see `AdditiveMap`; the length scales of Fourier features go with it.

    Returns
    -------
    AdditiveMap

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
        scales = reach * np.resize(_SCALES, n_fourier // 2)
        fourier = draw_fourier(Spectrum("rbf"), n_features, scales, rng)
    return AdditiveMap(n_features, checked_size("n_terms", n_terms), fourier, reach=reach)
