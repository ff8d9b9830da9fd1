"""The random linear term of objective perturbation, as something that is paid for and drawn.

A term is drawn by perturbing zero. It is never released itself; what it costs is the release
of the minimiser of the objective that holds it (``docs/proofs/objective_perturbation.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.optim.risks.risk import Vertices
from dp_halfspace.privacy.events import ObjectivePerturbation, Pure
from dp_halfspace.privacy.gaussian import rounded_gaussian
from dp_halfspace.privacy.laplace import l2_laplace
from dp_halfspace.privacy.randomness import ByteSource

# One part in 2^30 covers the rounding of every division below, with room to spare.
_UP = 1.0 + 2.0**-30
# Fine: rounding to the grid must be small beside the tolerance of the solver. Finer still, many
# draws would have to be decided by exact arithmetic.
_GAUSSIAN_GRID_BITS = 32
_LAPLACE_GRID_BITS = 30
# The bounds on the norm fail with probability exp(-128) < 2^-184.
_EXPONENT = 128.0


@dataclass(frozen=True, slots=True)
class GaussianLinearTerm:
    """Spherical Gaussian coefficients.

    `change` bounds the Euclidean change of the gradient when a record is replaced, on the scale
    of the sum; `mu` is `change` over the standard deviation that is charged, and the one realised
    is not larger. `log_ratio` bounds the logarithm of the ratio of the Jacobians; `vertices` are
    the numbers of vertices of the set of gradient changes, and their lengths over `change`.
    """

    change: float
    mu: float
    log_ratio: float
    vertices: Vertices
    pairwise: bool = False

    @property
    def sigma(self) -> float:
        """Standard deviation of every coefficient."""
        return self.change / self.mu * _UP

    @property
    def event(self) -> ObjectivePerturbation:
        """What the release of the exact minimiser costs."""
        vertices = tuple((count, length * self.mu) for count, length in self.vertices)
        return ObjectivePerturbation(self.log_ratio, vertices, pairwise=self.pairwise)

    def variance(self, n_columns: int) -> float:
        """Variance of a coefficient in a block of this many."""
        del n_columns
        return self.sigma * self.sigma

    def norm_bound(self, n_blocks: int, n_columns: int) -> float:
        """Bound the norm of the term, but for a probability below 2^-184."""
        spread = math.sqrt(n_blocks * n_columns) + math.sqrt(2.0 * _EXPONENT)
        return self.sigma * spread + self.rounding(n_blocks, n_columns)

    def rounding(self, n_blocks: int, n_columns: int) -> float:
        """Bound the distance of the term that is used to the ideal real one."""
        return _half_cell(self.sigma, _GAUSSIAN_GRID_BITS) * math.sqrt(n_blocks * n_columns)

    def perturb(self, value: FloatArray, source: ByteSource) -> FloatArray:
        """Add the term to `value`, rounded exactly to a public grid."""
        return rounded_gaussian(value, self.sigma, source=source, grid_bits=_GAUSSIAN_GRID_BITS)


@dataclass(frozen=True, slots=True)
class LaplaceLinearTerm:
    """Independent blocks of density proportional to ``exp(-||z|| / scale)``.

    `change` bounds the sum of the Euclidean changes of the blocks of the gradient when a record
    is replaced, on the scale of the sum; `epsilon` is the pure loss that is charged, the
    Jacobian included, whose logarithm `log_ratio` bounds.
    """

    change: float
    epsilon: float
    log_ratio: float

    @property
    def scale(self) -> float:
        """Scale of the density; the norm of a block of d numbers is Gamma(d, scale)."""
        return self.change / (self.epsilon - self.log_ratio) * _UP

    @property
    def event(self) -> Pure:
        """What the release of the exact minimiser costs."""
        return Pure(self.epsilon)

    def variance(self, n_columns: int) -> float:
        """Variance of a coefficient in a block of this many."""
        return (n_columns + 1) * self.scale * self.scale

    def norm_bound(self, n_blocks: int, n_columns: int) -> float:
        """Bound the norm of the term, but for a probability below 2^-184."""
        exponent = _EXPONENT + math.log(n_blocks)
        block = n_columns + math.sqrt(2.0 * n_columns * exponent) + exponent
        return self.scale * math.sqrt(n_blocks) * block + self.rounding(n_blocks, n_columns)

    def rounding(self, n_blocks: int, n_columns: int) -> float:
        """Bound the distance of the term that is used to the ideal real one."""
        cell = _half_cell(self.scale * math.sqrt(n_columns), _LAPLACE_GRID_BITS)
        return cell * math.sqrt(n_blocks * n_columns)

    def perturb(self, value: FloatArray, source: ByteSource) -> FloatArray:
        """Add the term to `value`, a block for each row, rounded exactly to a public grid."""
        bits = _LAPLACE_GRID_BITS
        draw = [l2_laplace(block, self.scale, source=source, grid_bits=bits) for block in value]
        return np.stack(draw)


def _half_cell(size: float, bits: int) -> float:
    """Half the grid that noise of this size is rounded to."""
    return math.ldexp(0.5, math.frexp(size)[1] - 1 - bits)
