"""The ways in which PrivateKernelClassifier can fit, as plans of public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.algorithms.defaults import (
    kernel_engine_defaults,
    length_scales,
    n_kernel_components,
)
from dp_halfspace.algorithms.fits.margin_training import Problem, Training, plan_training
from dp_halfspace.algorithms.gradient.descent import plan_gradient
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.projection import (
    RADIAL,
    FeatureMap,
    ProjectedFeatures,
    Spectrum,
    draw_fourier,
    draw_projection,
    draw_structured_fourier,
    draw_tensor_sketch,
    jl_dimension,
    structured_pays,
)

__all__ = [
    "SOLVERS",
    "Kernel",
    "constant_column",
    "draw_features",
    "n_features_wanted",
    "plan_kernel_training",
    "projected",
    "relative_scale",
]

FloatArray: TypeAlias = NDArray[np.float64]

# Pure noise grows with the dimension.
_PURE_FEWEST, _PURE_MOST, _PURE_RECORDS = 32, 150, 20.0
SOLVERS = ("noisy_gd", "objective_perturbation", "phased_prox")
# Length scales relative to data_norm: beyond, float32 has no features that differ.
_RELATIVE_SCALES = (1e-6, 1e6)
# Dimension of a projection that no margin asks for.
_PROJECTED = 500


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, as public parameters.

    Attributes
    ----------
    length_scale : float or None
        Relative to the public scale of a row; None for the automatic mixture.
    nu : float
        Smoothness of the Matern kernel.
    coef0 : float
        Of the polynomial kernel.
    """

    name: str
    length_scale: float | None
    nu: float
    degree: int
    coef0: float


def relative_scale(length_scale: float | str, data_norm: float) -> float | None:
    """Return a length scale in units of `data_norm`, None for the automatic mixture.

    Raises
    ------
    ValueError
        If they are more than a factor of a million apart.
    """
    if isinstance(length_scale, str):
        return None
    scale = float(length_scale) / data_norm
    if not _RELATIVE_SCALES[0] <= scale <= _RELATIVE_SCALES[1]:
        raise ValueError("length_scale must be within a factor 1e6 of data_norm")
    return scale


def n_features_wanted(n_samples: int, epsilon: float, delta: float) -> int:
    """Return the automatic number of features, a function of public numbers."""
    if math.isinf(epsilon):
        return n_kernel_components(n_samples, math.inf)
    if delta > 0:
        return n_kernel_components(n_samples, gdp_mu(epsilon, delta))
    wanted = min(max(n_samples * epsilon / _PURE_RECORDS, _PURE_FEWEST), _PURE_MOST)
    return 2 * round(wanted / 2.0)


def draw_features(
    kernel: Kernel,
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    n_classes: int,
    is_sparse: bool,
    rng: np.random.Generator,
) -> FeatureMap:
    """Draw the public map of a kernel.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the data.
    n_components : int
        Even for a shift-invariant kernel.
    rng : numpy.random.Generator
        Public.
    """
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
        scales = length_scales(kernel.name, n_samples, n_features, n_classes, half)
    else:
        scales = np.full(half, kernel.length_scale)
    spectrum = Spectrum(kernel.name, nu=kernel.nu)
    structured = kernel.name in RADIAL and structured_pays(n_features, n_components)
    draw = draw_structured_fourier if structured and not is_sparse else draw_fourier
    return draw(spectrum, n_features, scales, rng)


def projected(
    features: FeatureMap, kind: str | None, margin: float | None, n_samples: int, seed: int
) -> FeatureMap:
    """Put a random projection behind a feature map, if it makes its rows shorter."""
    if kind is None:
        return features
    size = _PROJECTED if margin is None else jl_dimension(margin, n_samples)
    rng = np.random.default_rng(seed)
    linear_map = draw_projection(kind, features.n_components, size, rng)
    return features if linear_map is None else ProjectedFeatures(features, linear_map)


def plan_kernel_training(
    problem: Problem, solver: str, margin: float | None, epsilon: float, delta: float
) -> Training:
    """Plan one fit on features within a budget.

    Parameters
    ----------
    problem : Problem
        Of the features: dense, without a projection.
    solver : str
        One of `SOLVERS`.
    margin : float or None
        None for a solver that needs none, or for the default of one that does.
    epsilon, delta : float
        Zero `delta` asks for pure epsilon, which a perturbed objective gives.

    Raises
    ------
    ValueError
        If the solver knows no more than two classes, or no pure epsilon.
    """
    is_pure = delta == 0 and math.isfinite(epsilon)
    if solver == "phased_prox" and (problem.n_classes > 2 or is_pure):
        raise ValueError(
            "Only binary classification is supported by solver='phased_prox', and only "
            "delta > 0: use 'objective_perturbation' or 'noisy_gd'"
        )
    if solver == "noisy_gd" and margin is None and not is_pure:
        return _automatic(problem, math.inf if math.isinf(epsilon) else gdp_mu(epsilon, delta))
    # Directions that favour few columns are made for columns that mean something.
    if is_pure:
        solver = "objective_perturbation"
    return plan_training(problem, solver, margin, epsilon, delta)


def constant_column(problem: Problem) -> float | None:
    """Return the constant column beside features of norm one."""
    if problem.intercept is None:
        return None
    return kernel_engine_defaults(problem.n_classes).bias * problem.intercept


def _automatic(problem: Problem, mu: float) -> Training:
    """Metric and accelerated steps: no margin is needed."""
    defaults = kernel_engine_defaults(problem.n_classes)
    n_columns = problem.n_columns(None)
    plan = plan_gradient(
        defaults,
        n_samples=problem.n_samples,
        n_columns=n_columns,
        n_classes=problem.n_classes,
        block_rows=problem.block_rows(None),
        mu=mu,
    )

    bias = constant_column(problem)
    return Training("noisy_gd", None, defaults.shift, bias, None, n_columns, plan)
