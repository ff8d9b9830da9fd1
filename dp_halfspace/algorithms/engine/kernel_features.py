"""Feature maps of kernels from public randomness, sized for a budget; whitened Fourier features.

Whitened Fourier features have frequencies that follow a released second moment, which may be used
freely: directions in which rows hardly differ are stretched, and the length scales depend on the
released spectrum. Derivations: ``docs/proofs/kernel.md``, section 6; evidence for the constants:
``docs/defaults/features.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh

from dp_halfspace.algorithms.engine.defaults import (
    WIDE,
    WIDE_FEATURES,
    additive_sizes,
    length_scales,
    n_cells,
    n_kernel_components,
    n_whitened,
    whitened_length,
)
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.preconditioner import (
    PreconditionerPlan,
    plan_preconditioner,
    released_moment,
)
from dp_halfspace.algorithms.engine.training import Problem
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.projection import (
    AdditiveMap,
    FeatureMap,
    FourierMap,
    ProjectedFeatures,
    Spectrum,
    draw_additive,
    draw_fourier,
    draw_projection,
    draw_tensor_sketch,
    jl_dimension,
)

# Pure DP, whose noise grows with the dimension: fewest and most features, and n epsilon for each
# feature.
_PURE_FEWEST = 32
_PURE_MOST = 150
_PURE_RECORDS = 20.0

# Kernels whose first features are the columns themselves.
ADDITIVE = ("auto", "additive")

# Largest absolute entry of a column up to which its cosines differ, in a stated scale and in
# estimated column scales.
_STATED = 1.0
_ESTIMATED = 1.5

# Range of length scales relative to data_norm: float32 cannot distinguish features outside it.
_RELATIVE_SCALES = (1e-6, 1e6)

# Dimension of a projection if no margin is known.
_PROJECTED = 500


@dataclass(frozen=True, slots=True)
class Kernel:
    """The public parameters of a kernel.

    `length_scale` is relative to the public scale of a row, None for the automatic mixture. `nu` is
    a parameter of the Matern kernel, `degree` and `coef0` are those of the polynomial kernel.
    """

    name: str
    length_scale: float | None
    nu: float
    degree: int
    coef0: float


def relative_scale(length_scale: float | str, data_norm: float) -> float | None:
    """Return a length scale in units of `data_norm`, None for the automatic mixture."""
    if isinstance(length_scale, str):
        return None
    scale = float(length_scale) / data_norm
    if not _RELATIVE_SCALES[0] <= scale <= _RELATIVE_SCALES[1]:
        raise ValueError("length_scale must be within a factor 1e6 of data_norm")
    return scale


def choose_n_features(n_samples: int, budget: Budget) -> int:
    """Return the automatic number of features, a function of public numbers."""
    if not budget.is_pure:
        return n_kernel_components(n_samples, budget.mu)
    wanted = min(max(n_samples * budget.epsilon / _PURE_RECORDS, _PURE_FEWEST), _PURE_MOST)
    return 2 * round(wanted / 2.0)


def draw_features(kernel: Kernel, problem: Problem, n_components: int, seed: int) -> FeatureMap:
    """Draw the public map of a kernel; a shift-invariant one has an even `n_components`."""
    n_features, rng = problem.n_features, np.random.default_rng(seed)
    if kernel.name == "polynomial":
        scale = kernel.length_scale or 1.0
        return draw_tensor_sketch(
            n_features,
            n_components,
            rng,
            degree=kernel.degree,
            coef0=kernel.coef0,
            length_scale=scale,
        )
    half = n_components // 2
    if kernel.length_scale is None:
        sizes = (problem.n_samples, n_features, problem.n_classes)
        scales = length_scales(kernel.name, *sizes, half)
    else:
        scales = np.full(half, kernel.length_scale)
    return draw_fourier(Spectrum(kernel.name, nu=kernel.nu), n_features, scales, rng)


def draw_additive_features(
    name: str,
    problem: Problem,
    n_components: int | None,
    budget: Budget,
    seed: int,
    *,
    is_stated: bool,
) -> AdditiveMap:
    """Draw the map to columns, cosines and Fourier features; sizes and the budget set their number.

    There are at most `n_components` features, if this is a number, but no fewer than columns. In
    estimated column scales, entries are larger than in a stated scale of rows.
    """
    n_features = problem.n_features
    # The norm of pure noise is larger by the square root of the number of columns.
    mu = budget.epsilon / math.sqrt(n_features + 1.0) if budget.is_pure else budget.mu
    limit = n_components or (_PURE_MOST if budget.is_pure else WIDE - 1)
    sizes = problem.n_samples, n_features, problem.n_classes, mu, limit
    n_terms, joint = additive_sizes(*sizes, is_stated=is_stated)
    if name == "additive":
        n_terms, joint = max(1, n_components // n_features) if n_components else n_terms, 0
    half_range = _STATED if is_stated else _ESTIMATED
    return draw_additive(
        n_features, n_terms, joint, np.random.default_rng(seed), half_range=half_range
    )


def draw_whitened_features(
    problem: Problem, n_components: int | None, mu: float, seed: int
) -> AdditiveMap | None:
    """Draw the map whose frequencies a release will whiten, None if that does not help.

    The columns are in estimated scales. The Fourier features are drawn for the length scale one.
    """
    n_features, rng = problem.n_features, np.random.default_rng(seed)
    sizes = problem.n_samples, n_features, problem.n_classes, mu
    joint = n_whitened(*sizes, n_components or WIDE_FEATURES - 1)
    if not joint:
        return None
    n_terms, _ = additive_sizes(*sizes, min(n_components or WIDE - 1, WIDE - 1))
    fourier = draw_fourier(Spectrum("rbf"), n_features, np.ones(joint // 2), rng)
    length = whitened_length(*sizes)
    return AdditiveMap(n_features, n_terms, fourier, half_range=_ESTIMATED, joint_length=length)


def project_features(
    features: FeatureMap, kind: str | None, margin: float | None, n_samples: int, seed: int
) -> FeatureMap:
    """Apply a random projection to the features, if this lowers their number."""
    if kind is None:
        return features
    size = _PROJECTED if margin is None else jl_dimension(margin, n_samples)
    rng = np.random.default_rng(seed)
    linear_map = draw_projection(kind, features.n_components, size, rng)
    return features if linear_map is None else ProjectedFeatures(features, linear_map)


# Least eigenvalue, relative to the edge of the noise.
_EDGE_FLOOR = 0.25
# Least eigenvalue, relative to the largest one.
_LARGEST_FLOOR = 1e-3
# Number that is added to eigenvalues before their root is taken, relative to their mean.
_RIDGE = 0.1
# Length scale of the coarse features, relative to the square root of the number of columns.
_COARSE = 1.0
# Least length scale of the fine features, in the same units.
_FINEST = 0.15
# Half of the frequencies are coarse, but no more than this number, because the coarse kernel has
# few directions,
_MOST_COARSE = 96
# and no more than this number times the square of the number of parts of the rows that the coarse
# kernel distinguishes.
_COARSE_FOR_PARTS = 6.0
# With at most this number of columns, half of the fine frequencies distinguish at least so many
# parts, because labels may change more often than few records show.
_FEW_COLUMNS = 2
_LEAST_PARTS = 28.0
# Number of bisections that find the fine length scale.
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class WhiteningPlan:
    """The public numbers of a release that determines the frequencies of Fourier features.

    `moment` plans the second moment of the first `n_curved` columns and a constant, as rows of norm
    one. The kernel of the fine features distinguishes about `n_cells` parts of the whitened rows.
    """

    moment: PreconditionerPlan
    n_curved: int
    n_cells: float

    def run(self, rows: Any, drawn: AdditiveMap, permit: Permit) -> AdditiveMap:
        """Release the moment of normalised rows, and whiten the drawn frequencies by it.

        `permit` is charged with the event of the moment's mechanism. Features are a function of
        the release and of public randomness: post-processing.
        """
        if self.moment.lead is not None:
            rows = rows.first_columns(self.n_curved)
        noisy = released_moment(rows, self.moment.mechanism, permit)
        root, spectrum = whitening_map(noisy[: self.n_curved, : self.n_curved], self.moment.edge)
        assert drawn.fourier is not None
        turns = root @ drawn.fourier.frequencies.astype(np.float64)
        turns /= frequency_lengths(spectrum, turns.shape[1], self.n_cells)
        return replace(drawn, fourier=FourierMap(turns.astype(np.float32)))


def plan_whitening(
    problem: Problem, drawn: AdditiveMap, mu: float, left: float
) -> WhiteningPlan | None:
    """Fix the public numbers of a mu-Gaussian private release, None if the noise is too large.

    `left` is the mu of the fit that follows.
    """
    n_columns, n_curved = problem.n_features, drawn.n_features_in - drawn.n_plain
    block_rows = problem.sizes()["block_rows"]
    lead = n_curved if drawn.n_plain else None
    moment = plan_preconditioner(problem.n_samples, n_columns + 1, block_rows, mu=mu, lead=lead)
    if moment is None:
        return None
    return WhiteningPlan(moment, n_curved, n_cells(problem.n_samples, problem.n_classes, left))


def whitening_map(upper: FloatArray, edge: float) -> tuple[FloatArray, FloatArray]:
    """Return the symmetric map that whitens a noisy moment, and the spectrum after whitening.

    The upper triangle of `upper` is read; `edge` is the edge of the spectrum of its noise.
    """
    values, directions = eigh(upper.T, lower=True, check_finite=False)
    values = np.maximum(values, max(_EDGE_FLOOR * edge, _LARGEST_FLOOR * max(values[-1], 1e-300)))
    values *= len(values) / values.sum()
    factors = 1.0 / np.sqrt(values + _RIDGE)
    return (directions * factors) @ directions.T, values * factors**2


def frequency_lengths(spectrum: FloatArray, size: int, n_cells: float) -> FloatArray:
    """Return the length scales of `size` frequencies, by the spectrum of the whitened rows.

    Coarse ones come first: frequencies have the same distribution, so any of them may be coarse.
    The fine ones distinguish `n_cells` parts; with two columns half of them at least 28.
    """
    n_coarse = n_coarse_frequencies(spectrum, size)
    n_finer = (size - n_coarse) // 2 if len(spectrum) <= _FEW_COLUMNS else 0
    lengths = np.full(size, fine_length(spectrum, n_cells))
    lengths[:n_coarse] = _COARSE
    if n_finer:
        lengths[-n_finer:] = fine_length(spectrum, max(n_cells, _LEAST_PARTS))
    return lengths


def n_coarse_frequencies(spectrum: FloatArray, size: int) -> int:
    """Return how many of `size` frequencies are coarse, by the spectrum of the whitened rows.

    The fewer parts of the rows the coarse kernel distinguishes, the fewer features it needs.
    """
    parts = math.exp(_log_parts(spectrum, _COARSE))
    return min((size + 1) // 2, _MOST_COARSE, round(_COARSE_FOR_PARTS * parts**2))


def fine_length(spectrum: FloatArray, n_cells: float) -> float:
    """Return the length scale of fine features, relative to the root of the number of columns.

    It is the scale within public limits at which the kernel distinguishes `n_cells` parts of the
    rows.
    """
    low, high = _FINEST, _COARSE
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if _log_parts(spectrum, middle) > math.log(n_cells):
            low = middle
        else:
            high = middle
    return high


def _log_parts(spectrum: FloatArray, length: float) -> float:
    """Return the logarithm of the number of parts of the rows that a kernel distinguishes.

    At length scale l the mean squared kernel of two independent Gaussian rows with this spectrum is
    the inverse of ``prod sqrt(1 + 4 s / l^2)``, which is taken as the number of parts.
    """
    return 0.5 * float(np.log1p(4.0 * spectrum / (length**2 * len(spectrum))).sum())
