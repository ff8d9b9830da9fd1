"""The ways in which PrivateKernelClassifier can fit, as plans of public numbers.

One of them chooses a margin by what it costs on the data, and trains once: Algorithm 6 of Bassily,
Mohri and Suresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_UP
from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.algorithms.defaults import (
    WIDE,
    additive_defaults,
    additive_sizes,
    kernel_engine_defaults,
    length_scales,
    n_kernel_components,
)
from dp_halfspace.algorithms.fits.margin_selection import mu_beside
from dp_halfspace.algorithms.fits.margin_training import (
    Problem,
    RowsOf,
    Training,
    check_phased_prox,
    gradient_training,
    plan_training,
    public_facts,
)
from dp_halfspace.algorithms.gradient.margin_gd import margin_slopes, plan_margin_descent
from dp_halfspace.algorithms.gradient.noisy_gd import DescentPlan, GradientPlan
from dp_halfspace.algorithms.plan import FloatArray
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.optim.objectives.losses import huber_hinge
from dp_halfspace.optim.objectives.margin import MarginObjective
from dp_halfspace.optim.solvers.minimum import ball_minimum
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import NoNoise, Permit
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.selection import GeneralizedChoice
from dp_halfspace.projection import (
    AdditiveMap,
    FeatureMap,
    ProjectedFeatures,
    Spectrum,
    draw_additive,
    draw_fourier,
    draw_projection,
    draw_tensor_sketch,
    jl_dimension,
)

# Pure noise grows with the dimension.
_PURE_FEWEST, _PURE_MOST, _PURE_RECORDS = 32, 150, 20.0
# Kernels whose features lead with the columns themselves.
ADDITIVE = ("auto", "additive")
# Where columns end: in a scale that was stated, and in units that were learnt.
_STATED, _LEARNT = 1.0, 1.5
# The constant beside columns with features, relative to that beside columns alone.
_CONSTANT = 2.5
# Length scales relative to data_norm: beyond, float32 has no features that differ.
_RELATIVE_SCALES = (1e-6, 1e6)
# Dimension of a projection that no margin asks for.
_PROJECTED = 500


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, as public parameters.

    `length_scale` is relative to the public scale of a row, None for the automatic mixture; `nu`
    is of the Matern kernel, `degree` and `coef0` are of the polynomial one.
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


def n_features_wanted(n_samples: int, epsilon: float, delta: float) -> int:
    """Return the automatic number of features, a function of public numbers."""
    if delta > 0 or math.isinf(epsilon):
        return n_kernel_components(n_samples, gdp_mu(epsilon, delta))
    wanted = min(max(n_samples * epsilon / _PURE_RECORDS, _PURE_FEWEST), _PURE_MOST)
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
    budget: tuple[float, float],
    seed: int,
    *,
    is_stated: bool,
) -> AdditiveMap:
    """Draw columns, cosines and Fourier features, as many as public sizes and a budget allow.

    At most `n_components`, if there is a number, or as many as there are columns. A scale of
    rows that was stated bounds the columns; in units that were learnt they go further.
    """
    (epsilon, delta), n_features = budget, problem.n_features
    is_pure = delta == 0 and math.isfinite(epsilon)
    # Pure noise is longer by the root of the number of columns.
    mu = epsilon / math.sqrt(n_features + 1.0) if is_pure else gdp_mu(epsilon, delta)
    limit = n_components or (_PURE_MOST if is_pure else WIDE - 1)
    n_terms, joint = additive_sizes(problem.n_samples, n_features, problem.n_classes, mu, limit)
    if name == "additive":
        n_terms, joint = max(1, n_components // n_features) if n_components else n_terms, 0
    reach = _STATED if is_stated else _LEARNT
    return draw_additive(n_features, n_terms, joint, np.random.default_rng(seed), reach=reach)


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
    problem: Problem,
    solver: str,
    margin: float | None,
    epsilon: float,
    delta: float,
    *,
    feature_map: FeatureMap,
) -> Training:
    """Plan one fit on features of `problem`, dense and without a projection, within a budget.

    Pure epsilon is that of a perturbed objective.
    """
    is_pure = delta == 0 and math.isfinite(epsilon)
    columns = feature_map if isinstance(feature_map, AdditiveMap) else None
    if columns is not None and not columns.is_linear and problem.intercept is not None:
        problem = replace(problem, intercept=_CONSTANT * problem.intercept)
    check_phased_prox(solver, problem.n_classes, is_pure=is_pure)
    if solver == "noisy_gd" and margin is None and not is_pure:
        mu = gdp_mu(epsilon, delta)
        defaults = kernel_engine_defaults(problem.n_classes)
        if columns is not None:
            sizes = (problem.n_samples, problem.n_columns(), problem.n_classes)
            lead, behind = columns.n_features_in, columns.relative_length
            defaults = additive_defaults(*sizes, mu, lead=lead, behind=behind)
        return gradient_training(problem, defaults, mu)
    # Directions that favour few columns are made for columns that mean something.
    if is_pure:
        solver = "objective_perturbation"
    return plan_training(problem, solver, margin, epsilon, delta)


# A choice reads the features hundreds of times: so many bytes of them are always kept.
SEARCH_MEMORY = 2**25
# Part of epsilon that the choice takes: it costs three percent of mu.
_CHOICE_SHARE = 0.1
# All candidates take as many steps, so that all cost the same.
_STEPS = 100
# The loss that the steps descend on: the hinge with its corner rounded off.
_LOSS = huber_hinge(0.5)


@dataclass(frozen=True, slots=True)
class MarginPlan:
    """The public numbers of a choice among margins, and of the training after it.

    All candidates cost the same. A computed minimum may be above the exact one by the entry of
    `gaps`; `penalties` are what margins cost whatever the data are.
    """

    candidates: tuple[Training, ...]
    gaps: tuple[float, ...]
    penalties: tuple[float, ...]
    choice: GeneralizedChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What a run releases."""
        if isinstance(self.choice, NoNoise):
            return (Pure(math.inf),)
        return (self.choice.event, *self.candidates[0].events)

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return public_facts(self.candidates)

    def run(
        self, rows_of: RowsOf, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> tuple[Training, FloatArray]:
        """Choose a margin, then train for it; what the others cost must not leave.

        All candidates read the same rows; `weights` are in [0, 1].
        """
        rows = rows_of(self.candidates[0])
        costs = self._costs(rows, np.where(classes == 1, 1.0, -1.0), weights[classes])
        released = permit.release(costs, self.choice)
        is_exact = isinstance(self.choice, NoNoise)
        chosen = self.candidates[int(released.argmin()) if is_exact else int(released[0])]
        return chosen.run(lambda _: rows, classes, weights, permit)

    def _costs(self, rows: Rows, signs: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the least loss of every margin, with its penalty."""
        objective = MarginObjective(rows, signs, weights, _LOSS, ridge=1.0)
        costs = []
        with single_blas_thread():
            for candidate, gap in zip(self.candidates, self.gaps, strict=True):
                radius = 1.0 / float(candidate.margin or 1.0)
                costs.append(ball_minimum(objective, radius, gap))
        return np.add(costs, self.penalties)


def plan_margin_choice(problem: Problem, epsilon: float, delta: float) -> MarginPlan:
    """Divide a budget between the choice of a margin and one training, for two classes.

    `delta` is positive, or `epsilon` infinite. Bassily, Mohri and Suresh (2022), Algorithm 6 and
    Corollary F.2, with the sensitivity of a computed minimum: ``docs/proofs/kernel.md``,
    section 4.
    """
    n_samples, n_columns = problem.n_samples, problem.n_columns()
    halvings = max(1, round(0.5 * math.log2(n_samples)))
    margins = [0.5**j for j in range(1, halvings + 1)]
    gaps = tuple((1.0 + 1.0 / margin) / 2.0 for margin in margins)
    mu, choice = math.inf, NoNoise()  # type: float, GeneralizedChoice | NoNoise
    if math.isfinite(epsilon):
        # A loss is between zero and one plus the radius; a computed minimum is off by the gap.
        pairs = zip(margins, gaps, strict=True)
        reach = tuple((1.0 + 1.0 / margin + gap) * FAR_UP for margin, gap in pairs)
        choice = GeneralizedChoice(reach, _CHOICE_SHARE * epsilon)
        mu = mu_beside(choice.epsilon, epsilon, delta) * DOWN
    # What a margin costs on fresh records, and in noise.
    noise = 2.0 * math.sqrt(min(n_samples, n_columns)) / mu
    penalties = tuple((math.sqrt(n_samples) + noise) / margin for margin in margins)
    sizes = problem.sizes()
    plans = [
        plan_margin_descent(n_outputs=1, mu=mu, margin=margin, n_steps=_STEPS, **sizes)
        for margin in margins
    ]
    # Allowances for rounding differ a little: the largest serves all.
    noisiest = max(plans, key=lambda plan: getattr(plan.mechanism, "sensitivity", 0.0))
    candidates = tuple(
        _training(problem, margin, replace(plan, mechanism=noisiest.mechanism))
        for margin, plan in zip(margins, plans, strict=True)
    )
    return MarginPlan(candidates, gaps, penalties, choice)


def _training(problem: Problem, margin: float, plan: DescentPlan) -> Training:
    """Wrap the steps for one margin."""
    bias = problem.constant(kernel_engine_defaults(problem.n_classes).bias)
    steps = GradientPlan(plan, slopes=margin_slopes)
    return Training("noisy_gd", margin, plan.steps.shift, bias, None, steps)
