"""Dense random signs, and how many components keep a margin.

Constants and proofs: ``docs/proofs/projection.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.projection.base import (
    FloatArray,
    checked_coefficients,
    checked_features,
    checked_size,
    row_blocks,
    saturated,
)

_BLOCK_ENTRIES = 2**22  # 32 MB of float64: signs, or rows that are cast
# The eight signs that each byte stands for.
_BYTE_SIGNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)


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
        step = max(2, _BLOCK_ENTRIES // (8 * d))
        for first in range(0, self.bits.shape[1], step):
            signs = np.take(_BYTE_SIGNS, self.bits[:, first : first + step], axis=0)
            lo, hi = 8 * first, min(8 * (first + step), k)
            yield lo, hi, signs.reshape(d, -1)[:, : hi - lo]

    def apply(self, X: Any) -> FloatArray:
        """Map every row; see `RowMap.apply`."""
        X = checked_features(X, self.n_features_in)
        out = np.empty((X.shape[0], self.n_components))
        with np.errstate(over="ignore", invalid="ignore"):
            for first, last, signs in self._signs():
                for lo, hi, block in row_blocks(X, _BLOCK_ENTRIES, min_rows=64):
                    out[lo:hi, first:last] = block @ signs
            out /= math.sqrt(self.n_components)
        return saturated(out)

    def pull_back(self, w: FloatArray) -> FloatArray:
        """Apply the transposed map; see `LinearMap.pull_back`."""
        w = checked_coefficients(w, self.n_components)
        out = np.zeros((*w.shape[:-1], self.n_features_in))
        for first, last, signs in self._signs():
            out += w[..., first:last] @ signs.T
        return np.asarray(out / math.sqrt(self.n_components))

    def to_array(self) -> FloatArray:
        """Return the matrix, of shape (n_components, n_features_in), for small maps."""
        return self.pull_back(np.eye(self.n_components))


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
    return RademacherMap(rng.integers(0, 256, size=shape, dtype=np.uint8), n_components)


def jl_dimension(margin: float, n_samples: int, beta: float = 0.05) -> int:
    r"""Components with which random signs keep the margin `jl_margin` of all records.

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
        May exceed the number of features: do not project then.

    Notes
    -----
    Privacy: a function of public quantities, and no guarantee depends on the event that it bounds.
    It is a statement on `draw_rademacher`. The distortion :math:`\gamma/2` minimises, to first
    order, :math:`\sqrt k` over the retained margin, which is what the noise of a private method
    costs.

    References
    ----------
    ``docs/proofs/projection.md``, Theorem 4. Achlioptas (2003).

    Examples
    --------
    >>> from dp_halfspace.projection import jl_dimension
    >>> jl_dimension(0.3, 15_000)
    2709
    """
    e = _checked_margin(margin) / 2.0
    return math.ceil(4.0 * _log_events(n_samples, beta) / (e * e * (1.0 - 2.0 * e / 3.0)))


def jl_distortion(n_components: int, n_samples: int, beta: float = 0.05) -> float:
    """Smallest distortion that is proved for random signs with this many components.

    The inverse of `jl_dimension`: in (0, 1], or infinity if the number of components is too small
    for any statement. A margin is kept if it exceeds the distortion, see `jl_margin`.

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

    :math:`(\gamma - e)/(1 + e)`, or 0 if the distortion :math:`e` exceeds the margin, by
    ``docs/proofs/projection.md``, Theorem 4. The margin is relative to the bound on the norm of a
    row, to which rows are clipped again; None stands for half of it, as in `jl_dimension`.

    Examples
    --------
    >>> from dp_halfspace.projection import jl_margin
    >>> round(jl_margin(0.3), 4)
    0.1304
    """
    margin = _checked_margin(margin)
    e = margin / 2.0 if distortion is None else distortion
    if not e >= 0.0:
        raise ValueError(f"distortion must be at least 0; got {distortion!r}.")
    return (margin - e) / (1.0 + e) if e < margin else 0.0


def _checked_margin(margin: float) -> float:
    """Return a margin relative to the norm of the rows."""
    if not 0.0 < margin <= 1.0:
        raise ValueError(f"margin must be in (0, 1]; got {margin!r}.")
    return float(margin)


def _log_events(n_samples: int, beta: float) -> float:
    """Return the logarithm of the number of one-sided events over their total probability."""
    if not 0.0 < beta < 1.0:
        raise ValueError(f"beta must be in (0, 1); got {beta!r}.")
    return math.log((3.0 * checked_size("n_samples", n_samples) + 1.0) / beta)
