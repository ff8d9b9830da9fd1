"""Features of columns: a public map between the scales of columns and the rows of a fit.

The features of a row are a function of this row, of released scales and of public numbers. They
are written once if they fit into a public amount of memory, and otherwise computed again at every
pass, chunk by chunk. Whatever they are, first rows are clipped to norm one, so that the proofs for
columns hold for them: ``docs/proofs/engine.md``, section 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._memory import AT_ONCE, rows_of_block
from dp_halfspace.data.chunks import Chunks, LocalChunks, apply_to_chunks
from dp_halfspace.data.encoding import numbers_of, written_out
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.moment import DIRECTIONS
from dp_halfspace.engine.scales import CLIP, ColumnScales, in_column_scales
from dp_halfspace.projection.features import AdditiveMap, FeatureMap, draw_additive
from dp_halfspace.rows.blocks import FloatArray, canonical_csr, clip_scales, scale_rows

# Value of n mu for each column of numbers from which on scales are also estimated where a scale is
# stated: a range, whose ends rare values may determine, or the norm of a row.
_SCALES_PAY = 7.0
# Value of n mu over the root of the number of encoded columns from which on features of all numbers
# together gain more than their noise costs; and the same for each of these features.
_JOINT_PAY = 1850.0
_FOR_A_JOINT = 12.0
# Number of these features for each direction that whitening distinguishes, if there are many.
_JOINT_PER_DIRECTION = 5.0


def scales_pay(n_samples: int, n_columns: int, mu: float) -> bool:
    """Return whether scales are estimated although some are stated, by public numbers."""
    return n_samples * mu >= _SCALES_PAY * max(n_columns, 1)


def joint_features(
    columns: AdditiveMap, sizes: tuple[int, int], mu: float, limits: tuple[int, int], seed: int
) -> AdditiveMap:
    """Return the map with Fourier features of all numbers, if they pay.

    The `sizes` are those of the table: records, and encoded columns without indicators of missing
    numbers. The `limits` are the largest number of all features, and the number of bytes for them:
    to compute so many again at every pass would take too long.
    """
    n_samples, n_encoded = sizes
    n_curved = columns.n_features_in - columns.n_plain
    strength = n_samples * mu / math.sqrt(n_encoded)
    most = min(limits[0], limits[1] // (4 * n_samples)) - columns.n_components
    size = int(min(strength / _FOR_A_JOINT, most)) // 2
    if strength < _JOINT_PAY or n_curved < 2 or size < 1:
        return columns
    drawn = draw_additive(n_curved, 1, 2 * size, np.random.default_rng(seed))
    return replace(columns, fourier=drawn.fourier)


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What is public about the features of rows.

    Attributes
    ----------
    feature_map : FeatureMap
        The map of rows, which are divided by `unit` first.
    scales : ColumnScales or None
        Public centre and width of the columns of numbers, which come first; None if rows are
        mapped as they are.
    estimated : ndarray of int
        The columns of numbers whose centre and width are released instead.
    indicated : ndarray of int
        The columns of numbers after which a column of ones and zeros shows what is missing.
    longest : float
        Norm to which divided rows are scaled down before they are mapped; infinity if the map
        takes any row.
    memory : int
        Number of bytes of features that are kept.
    clips_rows : bool
        Whether rows far from the mean are shortened when they are scored.
    """

    feature_map: FeatureMap
    unit: float
    scales: ColumnScales | None = None
    estimated: NDArray[np.intp] = field(default_factory=lambda: np.arange(0))
    indicated: NDArray[np.intp] = field(default_factory=lambda: np.arange(0))
    longest: float = math.inf
    memory: int = 0
    clips_rows: bool = True

    @property
    def n_columns(self) -> int:
        """Number of features."""
        return int(self.feature_map.n_components)

    @property
    def n_joint(self) -> int:
        """Number of features of all columns together, which come last."""
        fourier = getattr(self.feature_map, "fourier", None)
        return 0 if fourier is None else int(fourier.n_components)

    @property
    def n_directions(self) -> float:
        """Number of directions that whitening distinguishes, more with many joint features."""
        return max(self.n_joint / _JOINT_PER_DIRECTION, DIRECTIONS)

    def with_released(self, found: ColumnScales | None) -> Features:
        """Return the features with the released scales of the columns that are estimated."""
        if found is None or self.scales is None:
            return self
        center, scale = self.scales.center.copy(), self.scales.scale.copy()
        center[self.estimated], scale[self.estimated] = found.center, found.scale
        return replace(self, scales=ColumnScales(center, scale))

    def of(self, data: TrainingData) -> TrainingData:
        """Return the features of all records as an array of float32, or in chunks.

        Records with weights, and rows of people, are written whatever their number.
        """
        X = canonical_csr(data.X) if sparse.issparse(data.X) else data.X
        if data.people is not None:
            rows = data.people.row_by_row(lambda index: self.write(X[index]))
            return replace(data, X=rows)
        codes, is_small = data.class_indices, 4 * int(X.shape[0]) * self.n_columns <= self.memory
        if not isinstance(X, Chunks):
            if is_small or data.weights is not None:
                return replace(data, X=self.write(X))
            step = max(rows_of_block(4 * self.n_columns), AT_ONCE)
            X, codes = _in_chunks(X, step), _in_chunks(codes, step)
        nothing = np.empty((0, self.n_columns), dtype=np.float32)
        made = replace(X.each(self.write), n_columns=self.n_columns, sample=nothing)
        return replace(data, X=made.kept() if is_small else made, class_indices=codes)

    def write(self, rows: Any) -> NDArray[np.float32]:
        """Return the features of rows, which may be coded; each is mapped by itself."""
        out = np.empty((rows.shape[0], self.n_columns), dtype=np.float32)
        for lo in range(0, len(out), AT_ONCE):
            part = self.columns(rows[lo : lo + AT_ONCE]) / self.unit
            if math.isfinite(self.longest):
                entries: Any = part.data if sparse.issparse(part) else part
                # The division may overflow, and a row that is not finite would make sums undefined.
                largest = np.finfo(entries.dtype).max
                np.clip(entries, -largest, largest, out=entries)
                part = scale_rows(part, clip_scales(part, self.longest))
            out[lo : lo + AT_ONCE] = self.feature_map.apply(part)
        return out

    def columns(self, rows: Any, clip: float = CLIP) -> FloatArray:
        """Return the columns that are mapped; see `columns_in_scales`."""
        if self.scales is None:
            return rows if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        return columns_in_scales(rows, self.scales, self.indicated, clip)


def columns_in_scales(
    rows: Any, scales: ColumnScales, indicated: NDArray[np.intp], clip: float
) -> FloatArray:
    """Return numbers in their scales, indicators of missing numbers, and the other columns.

    The `indicated` numbers have indicators. Numbers in their scales are clipped at `clip`.
    """
    written = np.asarray(written_out(rows), dtype=np.float64)
    numbers, others = np.split(written, [len(scales.center)], axis=1)
    missing = np.isnan(numbers[:, indicated])
    return np.hstack([in_column_scales(numbers, scales, clip), missing, others])


def estimated_numbers(data: Any, columns: NDArray[np.intp]) -> Any:
    """Return the data with those columns of numbers whose scales are estimated."""
    return replace(data, X=apply_to_chunks(_columns, data.X, columns))


def _columns(rows: Any, columns: NDArray[np.intp]) -> Any:
    numbers = numbers_of(rows)
    # The first columns are read where they are.
    is_first = bool((columns == np.arange(len(columns))).all())
    return numbers[:, : len(columns)] if is_first else numbers[:, columns]


def _in_chunks(rows: Any, step: int) -> LocalChunks:
    """Return consecutive rows of an array in chunks, which are read where they are."""
    ends = [*range(0, int(rows.shape[0]), step), int(rows.shape[0])]
    parts = [rows[lo:hi] for lo, hi in pairwise(ends)]
    counts = tuple(int(part.shape[0]) for part in parts)
    n_columns = int(rows.shape[1]) if len(rows.shape) > 1 else 1
    return replace(LocalChunks.of(parts), counts=counts, n_columns=n_columns)
