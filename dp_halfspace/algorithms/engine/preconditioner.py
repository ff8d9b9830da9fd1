"""A private preconditioner: the second moment of normalised rows, released with noise and shrunk.

Spherical noise costs accuracy on data whose directions differ in strength. The second moment of
normalised rows is cheap to release, and what was released may be used freely: each row is mapped by
the inverse root of the moment and normalised again, independently of other rows. Derivations:
``docs/proofs/preconditioner.md``; evidence for the constants: ``docs/defaults/steps.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from dp_halfspace._rounding import UP
from dp_halfspace.algorithms.engine.defaults import WIDE
from dp_halfspace.algorithms.engine.plan import FloatArray, Noise
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.rows.blocks import PLAIN_BLOCKS, block_size
from dp_halfspace.rows.rows import Rows
from dp_halfspace.rows.single_rows import GRAM_GROUP, SINGLE_EPS, SingleArray

# Number of directions that the preconditioner may distinguish.
EFFECTIVE_DIMENSION = 20.0
# Least amount that is added to the eigenvalues of the moment: relative to the edge of the noise,
# and relative to the mean eigenvalue.
_EDGE_FLOOR = 0.02
_TRACE_FLOOR = 1e-3
# Largest eigenvalue after shrinkage, relative to the number of rows.
_CEILING = 16.0
# A product with a triangular matrix costs as much as one with a quarter as many directions.
_MANY = 4
# With at most this many columns a dense product is faster than several calls of smaller products.
_FEW = 64
# Moments of features that are computed at every pass read every k-th group of rows, where at least
# this many rows remain
_FEWEST_ROWS = 2**16
# and the edge of the noise remains below this part of their number.
_LEAST_NOISE = 2.0**-7


@dataclass(frozen=True, slots=True)
class PreconditionerPlan:
    """The public numbers of one release of a second moment.

    `mechanism` adds noise to the packed moment, whose Euclidean norm is the Frobenius norm. `edge`
    is the edge of the spectrum of the noise matrix: eigenvalues below it are dominated by noise.
    `amplification` and `compression` bound the factors by which the map and its inverse stretch a
    vector. `effective_dimension` is the number of directions that may be distinguished.

    With `lead`, only the leading block has a moment, that is the first `lead` columns and the
    constant: the moment of the rows of this block, brought to norm one. All other columns have the
    public `stretch`, and `behind` is their public length relative to that of the block.

    `power`, a public or released number in [0, 1], is that of the map: 0 leaves rows as they are.

    One of every `stride` groups of rows is read. At most `most_directions` directions have a
    stretch of their own.
    """

    n_samples: int
    n_columns: int
    mechanism: Noise
    edge: float
    amplification: float
    compression: float
    effective_dimension: float = EFFECTIVE_DIMENSION
    lead: int | None = None
    stretch: float = 1.0
    power: float = 1.0
    behind: float = 0.0
    stride: int = 1
    most_directions: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Preconditioner:
    """A released symmetric map: a common stretch, and a smaller one along a few directions.

    All but a few eigenvalues of the moment are below the noise. Nothing is known about their
    eigenvectors, so these directions share one factor, and products need no square matrix.

    The r orthonormal columns of `directions` have positive `factors` of their own; `stretch` is the
    factor of all other directions. Coordinates on which all directions are zero may have a stretch
    of their own: `coordinate_stretches`, one elsewhere, multiplies that of each coordinate.

    `mean_square` is an estimate, from what was released, of the mean squared length of mapped rows
    that had norm one.
    """

    stretch: float
    directions: FloatArray
    factors: FloatArray
    coordinate_stretches: FloatArray | float = 1.0
    mean_square: float = 1.0

    @property
    def condition(self) -> float:
        """Bound on the ratio of the largest and the smallest stretch, up to rounding errors."""
        common = np.atleast_1d(self.stretch * self.coordinate_stretches)
        stretches = np.concatenate([common, self.factors])
        return float(stretches.max() / stretches.min())

    @property
    def T(self) -> Preconditioner:
        """The transposed map, which is the map."""
        return self

    def __matmul__(self, coefficients: FloatArray) -> FloatArray:
        """Return the image of a vector of shape (n_columns,), or of every column of a matrix."""
        missing = (self.directions.T @ coefficients).T * (self.stretch - self.factors)
        stretched = self.stretch * (coefficients.T * self.coordinate_stretches).T
        return np.asarray(stretched - self.directions @ missing.T)

    def image_squares(self, rows: FloatArray) -> FloatArray:
        """Return the squared norms of the images of rows of shape (n, n_columns)."""
        parts = rows @ self.directions
        # The residual of a row is squared, since a difference of squares would lose all digits:
        # docs/proofs/preconditioner.md, section 3.
        rest = parts @ self.directions.T
        np.subtract(rows, rest, out=rest)
        rest *= self.coordinate_stretches
        parts *= self.factors
        squares = np.einsum("ij,ij->i", rest, rest) * self.stretch**2
        return np.asarray(squares + np.einsum("ij,ij->i", parts, parts))

    def single_squares(self) -> Callable[[SingleArray, SingleArray], SingleArray]:
        """Return a function that bounds the squared norms of images of rows of float32.

        It takes rows and upper bounds on their own squared norms, for a map whose
        `coordinate_stretches` are one: ``docs/proofs/preconditioner.md``, section 5.
        """
        size, rank = self.directions.shape
        common = self.stretch**2
        removed = (common - self.factors**2).astype(np.float32)
        directions = self.directions.astype(np.float32)
        roundings = 2.1 * (size + 2) * math.sqrt(rank) + 1.1 * rank + 8.0
        largest = np.float32(common * (1.0 + SINGLE_EPS * roundings))

        def bound_squares(rows: SingleArray, squares: SingleArray) -> SingleArray:
            parts = rows @ directions
            np.square(parts, out=parts)
            return np.maximum(largest * squares - parts @ removed, 0.0)

        return bound_squares

    def root(self) -> Preconditioner | FloatArray:
        """Return a map ``R`` such that ``R^T R`` is the square of this map, as fast as possible.

        With many directions, or few columns, a triangular matrix of shape (n_columns, n_columns) is
        faster than the map itself.
        """
        size, rank = self.directions.shape
        if size > _FEW and _MANY * rank <= size:
            return self
        return np.asarray(np.linalg.qr(self @ np.eye(size), mode="r"))


def plan_preconditioner(
    n_samples: int,
    n_columns: int,
    block_rows: int,
    *,
    mu: float,
    max_columns: int = WIDE,
    effective_dimension: float = EFFECTIVE_DIMENSION,
    lead: int | None = None,
    stretch: float = 1.0,
    behind: float = 0.0,
    is_single: bool = False,
    of_features: bool = False,
) -> PreconditionerPlan | None:
    """Fix the public numbers of a release that is mu-Gaussian private.

    Return None if the moment would have more than `max_columns` columns, or if the noise would
    exceed every eigenvalue: the preconditioner is not worth its cost then. Infinite `mu` releases
    the exact moment.

    The Frobenius sensitivity is sqrt(2): ``||xx' - zz'||^2 = |x|^4 + |z|^4 - 2 <x, z>^2`` for
    rows of norm at most one. An allowance for the rounding errors of both sums is added.
    """
    size = n_columns if lead is None else lead + 1
    if size > max_columns:
        return None
    edge = 2.0 * math.sqrt(size) / mu
    if edge > n_samples:
        return None
    if lead is not None:
        # The leading columns are copied, and summed in blocks of rows of a size of their own.
        block_rows = block_size(n_samples, lead, is_sparse=False)
    n_blocks = min(-(-n_samples // block_rows), PLAIN_BLOCKS)
    # Rounding errors of the sums for two neighbours; the rows that they share are the same to the
    # last bit: docs/proofs/certificate.md, section 7.
    rounding = 1.01 * n_samples * 2 * (block_rows + n_blocks + 8) * 2.0**-53
    if is_single:
        # Rounding errors in float32 of the group that holds the replaced record:
        # docs/proofs/certificate.md, section 9.
        rounding += 2.04 * SINGLE_EPS * (GRAM_GROUP + 8) * GRAM_GROUP
    # docs/proofs/preconditioner.md, section 1.
    sensitivity = math.sqrt(2.0) * UP + rounding
    mechanism = NoNoise() if math.isinf(mu) else GaussianNoise(sensitivity, mu)
    stride = max(1, int(n_samples / max(_FEWEST_ROWS, edge / _LEAST_NOISE)))
    return PreconditionerPlan(
        n_samples,
        n_columns,
        mechanism,
        edge,
        amplification=max(math.sqrt(n_columns / _TRACE_FLOOR), stretch),
        compression=max(math.sqrt(_CEILING), 1.0 / stretch),
        effective_dimension=effective_dimension,
        lead=lead,
        stretch=stretch,
        behind=behind,
        stride=stride if of_features else 1,
        most_directions=n_columns // _MANY if of_features else None,
    )


def release_preconditioner(rows: Any, plan: PreconditionerPlan, permit: Permit) -> Preconditioner:
    """Release the second moment of normalised rows, and return its symmetric inverse root.

    That is ``(H / n)^(-1/2)`` with ``H`` the shrunk moment: a function of what was released.
    `permit` is charged with the event of the plan's mechanism. References:
    ``docs/proofs/preconditioner.md``; Gavish and Donoho (2017), "Optimal shrinkage of singular
    values", for spikes in a noise matrix.
    """
    # 1. Release the packed moment, whose Euclidean norm is the Frobenius norm.
    # 2. Find the directions whose eigenvalues exceed the edge of the noise.
    # 3. Shrink the spectrum, and stretch every direction by the inverse root: post-processing.
    if plan.lead is not None:
        return _leading_preconditioner(rows, plan, plan.lead, permit)
    if plan.stride > 1:
        rows = rows.take_groups(plan.stride)
        plan = replace(plan, n_samples=rows.shape[0], stride=1)
    n, size = plan.n_samples, plan.n_columns
    noisy = released_moment(rows, plan.mechanism, permit)
    # The trace of the moment of normalised rows is n: any difference from n is noise.
    surplus = (float(np.trace(noisy)) - n) / size
    # Eigenvectors below the edge are those of the noise. Leaving them out saves half of the time.
    values, directions = eigh(
        noisy.T,
        lower=True,
        subset_by_value=(surplus + plan.edge, np.inf),
        check_finite=False,
        overwrite_a=True,
    )
    if plan.most_directions is not None:
        # The largest eigenvalues come last; the other directions get the common stretch.
        first = max(0, len(values) - plan.most_directions)
        values, directions = values[first:], directions[:, first:]
    spikes, bulk = shrunk_spectrum(values - surplus, plan)
    half = plan.power / 2.0
    stretch, factors = (n / bulk) ** half, (n / spikes) ** half
    # Estimates of the leading eigenvalues without a floor; their sum is at most the trace n.
    leading = np.sqrt(np.maximum((values - surplus) ** 2 - plan.edge**2, 0.0))
    leading *= min(1.0, n / max(float(leading.sum()), 1e-300))
    mean_square = stretch**2 + float((factors**2 - stretch**2) @ leading) / n
    return Preconditioner(stretch, directions, factors, mean_square=mean_square)


def released_moment(rows: Any, mechanism: Noise, permit: Permit) -> FloatArray:
    """Release the second moment of normalised rows; entries below the diagonal stay zero.

    `permit` is charged with the event of the mechanism, that of a `PreconditionerPlan`.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: the noisy upper triangle of the second moment.
    - Sensitivity: ``sqrt(2)`` in the Frobenius norm, and an allowance for rounding.
    - Proof: ``docs/proofs/preconditioner.md``, section 1; ``persons.md``.
    """
    moment = rows.gram()
    upper = np.flatnonzero(np.tri(len(moment), dtype=np.bool_).T)
    # An entry off the diagonal stands for two entries of the matrix. The factor sqrt(2) makes the
    # norm of the packed vector the Frobenius norm.
    weight = np.full(len(upper), math.sqrt(2.0))
    weight[upper % (len(moment) + 1) == 0] = 1.0
    noisy = np.zeros(moment.shape)
    noisy.flat[upper] = permit.release(moment.flat[upper] * weight, mechanism) / weight
    return noisy


def _leading_preconditioner(
    rows: Rows, plan: PreconditionerPlan, lead: int, permit: Permit
) -> Preconditioner:
    """Release the moment of the leading block only.

    Derivation: ``docs/proofs/preconditioner.md``, section 4.
    """
    block = rows.first_columns(lead)
    size = block.shape[1]
    preconditioner = release_preconditioner(block, replace(plan, n_columns=size, lead=None), permit)
    directions = np.zeros((plan.n_columns, len(preconditioner.factors)))
    stretches = np.full(plan.n_columns, plan.stretch / preconditioner.stretch)
    # The constant column, if there is one, is the last column.
    is_leading = [*range(lead), *range(plan.n_columns - size + lead, plan.n_columns)]
    directions[is_leading], stretches[is_leading] = preconditioner.directions, 1.0
    squares = plan.behind**2
    mean_square = (preconditioner.mean_square + squares * plan.stretch**2) / (1.0 + squares)
    return Preconditioner(
        preconditioner.stretch, directions, preconditioner.factors, stretches, mean_square
    )


def shrunk_spectrum(values: FloatArray, plan: PreconditionerPlan) -> tuple[FloatArray, float]:
    """Estimate the spectrum of the moment from that of the noisy moment: the spikes, and the bulk.

    `values` are the eigenvalues above the edge, after the trace was corrected. The spikes replace
    them: they are shrunk as eigenvalues of a Wigner matrix with spikes, their sum with the bulk is
    the public trace n, and a floor is added so that no more directions than planned are effectively
    distinguished. The bulk replaces all other eigenvalues; it is not above any spike.
    """
    n, size = plan.n_samples, plan.n_columns
    spikes = np.sqrt(np.maximum(values**2 - plan.edge**2, 0.0))
    bulk = max((n - float(spikes.sum())) / size, 0.0)
    spikes += bulk
    n_bulk = size - len(spikes)
    floor = max(_EDGE_FLOOR * plan.edge, _TRACE_FLOOR * n / size)
    while (
        float((spikes / (spikes + floor)).sum()) + n_bulk * bulk / (bulk + floor)
        > plan.effective_dimension
    ):
        floor *= 1.1
    return np.minimum(spikes + floor, _CEILING * n), min(bulk + floor, _CEILING * n)
