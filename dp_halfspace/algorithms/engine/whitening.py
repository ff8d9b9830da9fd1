"""Fourier features in whitened columns: their frequencies follow a released second moment.

What has been released may be used freely, so directions in which rows hardly differ are stretched
before frequencies are drawn there, and length scales are set by how many directions there are.
Derivations: ``docs/proofs/kernel.md``, section 6; evidence for the constants: ``docs/defaults.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from dp_halfspace.algorithms.engine.defaults import n_cells
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.preconditioner import (
    PreconditionerPlan,
    plan_preconditioner,
    released_moment,
)
from dp_halfspace.algorithms.engine.training import Problem
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.projection import AdditiveMap, FourierMap

# Least eigenvalue, relative to the edge of the noise and to the largest one.
_EDGE_FLOOR, _LARGEST_FLOOR = 0.25, 1e-3
# What is added to eigenvalues before their root is taken, relative to their mean.
_RIDGE = 0.1
# Length scales relative to the root of the number of columns: of the coarse features, and the
# least of the fine ones.
_COARSE, _FINEST = 1.0, 0.15
# Halvings of the interval that the fine length scale is searched in.
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class WhiteningPlan:
    """The public numbers of one release, from which Fourier features get their frequencies.

    `moment` is that of the rows of the first `n_curved` columns and a constant, brought to norm
    one. The kernel of the fine features tells about `n_cells` parts of the whitened rows apart.
    """

    moment: PreconditionerPlan
    n_curved: int
    n_cells: float

    def run(self, rows: Any, drawn: AdditiveMap, permit: Permit) -> AdditiveMap:
        """Release the moment of unit rows, and bring the drawn frequencies to where it is flat.

        `permit` is charged with the event of the moment's mechanism. Features are a function of
        the release and of public randomness: post-processing.
        """
        if self.moment.lead is not None:
            rows = rows.leading(self.n_curved)
        noisy = released_moment(rows, self.moment.mechanism, permit)
        root, spectrum = whitening_map(noisy[: self.n_curved, : self.n_curved], self.moment.edge)
        coarse, fine = _COARSE, fine_length(spectrum, self.n_cells)
        assert drawn.fourier is not None
        turns = root @ drawn.fourier.frequencies.astype(np.float64)
        turns[:, 0::2] /= coarse
        turns[:, 1::2] /= fine
        return replace(drawn, fourier=FourierMap(turns.astype(np.float32)))


def plan_whitening(
    problem: Problem, drawn: AdditiveMap, mu: float, left: float
) -> WhiteningPlan | None:
    """Fix the public numbers of a release that is mu-Gaussian private, None if noise drowns it.

    `left` is the mu of what follows.
    """
    n_columns, n_curved = problem.n_features, drawn.n_features_in - drawn.n_plain
    block_rows = problem.sizes()["block_rows"]
    lead = n_curved if drawn.n_plain else None
    moment = plan_preconditioner(problem.n_samples, n_columns + 1, block_rows, mu=mu, lead=lead)
    if moment is None:
        return None
    return WhiteningPlan(moment, n_curved, n_cells(problem.n_samples, problem.n_classes, left))


def whitening_map(upper: FloatArray, edge: float) -> tuple[FloatArray, FloatArray]:
    """Return the symmetric map that flattens a noisy moment, and the spectrum that is left.

    The upper triangle of `upper` is read; `edge` is that of the spectrum of its noise.
    """
    values, directions = eigh(upper.T, lower=True, check_finite=False)
    values = np.maximum(values, max(_EDGE_FLOOR * edge, _LARGEST_FLOOR * max(values[-1], 1e-300)))
    values *= len(values) / values.sum()
    factors = 1.0 / np.sqrt(values + _RIDGE)
    return (directions * factors) @ directions.T, values * factors**2


def fine_length(spectrum: FloatArray, n_cells: float) -> float:
    """Return the length scale, relative to the root of the number of columns, of fine features.

    At length scale l the mean squared kernel of two Gaussian rows with this spectrum is the
    inverse of ``prod sqrt(1 + 4 s / l^2)``: that many parts of the rows are told apart, and the
    scale within the public limits is taken at which they are `n_cells`.
    """
    low, high = _FINEST, _COARSE
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        logarithm = 0.5 * float(np.log1p(4.0 * spectrum / (middle**2 * len(spectrum))).sum())
        if logarithm > math.log(n_cells):
            low = middle
        else:
            high = middle
    return high
