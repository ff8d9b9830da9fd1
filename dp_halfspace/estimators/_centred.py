"""Output and objective perturbation of rows that are centred and whitened by a released moment.

1. The length of the rows and their second moment with a constant, from which the map of the rows
   follows, as in the default steps of the engine.
2. One regularised minimiser for the centred, whitened and clipped rows, with noise or with a random
   linear term.

Where the moment is not worth its cost, all rows are brought to norm one instead. Derivations:
``docs/proofs/engine.md``, sections 2 and 3; ``stability.md``, section 8;
``objective_perturbation.md``, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows, weighed
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.linear import (
    COLUMN_CLIP,
    MOMENT_SHARE,
    NUMBER_SHARE,
    Shape,
    first_rows_of,
    in_columns,
    length_release,
    mapped,
    moment_release,
)
from dp_halfspace.engine.moment import CONSTANT, Centring, moment_noise
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts, WrappedPlan, for_rows_as_given
from dp_halfspace.engine.probabilities import MASSES, NODES, ScoresOfMany, corrected_line
from dp_halfspace.engine.release import Release, run
from dp_halfspace.engine.steps import Known
from dp_halfspace.optim.losses import LOGISTIC, Loss
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk, empirical_risk
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.papers.objective import (
    PerturbedMinimiser,
    feasible_ridge,
    plan_objective,
)
from dp_halfspace.papers.output import (
    mapped_row_ridge,
    perturbed_row_ridge,
    plan_output,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Gaussian
from dp_halfspace.privacy.mechanisms import noise_deviation
from dp_halfspace.rows.blocks import FloatArray, block_size
from dp_halfspace.rows.chunked_rows import rows_over
from dp_halfspace.rows.mapped_rows import FormedRows, MappedRows, formed_block_rows
from dp_halfspace.rows.rows import Rows, clipped_rows, normalised_rows

NO_MOMENT = (
    "preconditioner=True needs at most 512 columns and enough budget and rows: use "
    "preconditioner='auto' or False"
)
# Dimension to which more than 512 columns are projected by random signs for pure DP.
COMPONENTS = 150


@dataclass(frozen=True, slots=True)
class CentredFit(FitPlan):
    """A released moment, and one released minimiser for the rows that it maps.

    `releases` are those of the length and the moment of the rows, none where the moment is not
    worth its cost. The minimiser has rows of norm at most ``1 + 2^-40``. With `recalibrates` the
    intercept and the length that a chosen regulariser takes are given back. `attributes` are the
    names of the further fitted attributes that are wanted.
    """

    shape: Shape
    releases: tuple[Release[Known], ...]
    minimiser: PerturbedMinimiser
    recalibrates: bool
    public: Mapping[str, Any]
    attributes: tuple[str, ...] = ()
    # Weights of records do not change the cost.
    takes: ClassVar[frozenset[str]] = frozenset({"sample_weight"})
    column_clip: ClassVar[float] = COLUMN_CLIP

    @property
    def has_norm(self) -> bool:
        """Whether the norm of rows as they were handed in is stated."""
        return self.shape.facts.is_scale_stated and self.shape.linear_map is None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (*(release.event for release in self.releases), *self.minimiser.events)

    def with_class_weights(self, weights: FloatArray) -> CentredFit:
        """Weigh the classes by released numbers in [0, 1], for the same events."""
        facts = self.shape.facts.with_class_weights(weights)
        return replace(self, shape=replace(self.shape, facts=facts))

    def run(self, door: Door) -> Fitted:
        """Release the map and the minimiser, and map its coefficients back."""
        shape, facts, linear_map = self.shape, self.shape.facts, self.shape.linear_map
        known = Known(total=facts.n_privacy_units)
        with single_blas_thread():
            if linear_map is not None:
                door = door.map(partial(mapped, linear_map))
            known, door = run(self.releases, door, known)
            found = self.minimiser.run(door.map(partial(self._minimised_rows, known)))
            unit, centring = shape.unit * known.length, known.centring
            kept, row_clip = None, None
            if centring is None:
                constant = CONSTANT * shape.constant or None
                coefficients, intercepts = for_rows_as_given(found, constant, unit)
            else:
                if self.recalibrates:
                    tell = recalibrated_minimiser if len(found) == 1 else rescaled_minimiser
                    weights = np.array(facts.class_weights)
                    found = tell(self.minimiser, found, centring, known.total, weights)
                coefficients, intercepts = in_columns(shape, known, found)
                each = np.eye(shape.n_columns, shape.n_final)
                kept = np.column_stack(in_columns(shape, known, each))
                row_clip = centring.row_clip(unit) if linear_map is None else None
        if linear_map is not None:
            coefficients = linear_map.pull_back(coefficients)
        more = {
            "alpha_": self.minimiser.ridge,
            "preconditioner_": kept if shape.constant or kept is None else kept[:, :-1],
            "one_vs_rest_": self.minimiser.risk.n_stacked > 1,
            "projection_": linear_map,
            "margin_": 1.0 / max(float(np.linalg.norm(found)), 1.0),
        }
        wanted = {name: more[name] for name in self.attributes}
        # Longer rows are scaled down, as in the fit, unless they are divided by their own norms.
        clips = centring is not None and linear_map is None and not facts.in_column_scales
        norm = shape.unit if self.has_norm or clips else math.inf
        return Fitted(coefficients, intercepts, norm, attributes=wanted, row_clip=row_clip)

    def _minimised_rows(self, known: Known, data: TrainingData) -> WeighedRows:
        """Return the rows of the minimiser: centred ones, formed at every pass, or never formed.

        Without a moment each row is divided by its own norm, which changes no sign of a score.
        """
        facts, weights = self.shape.facts, np.array(self.shape.facts.class_weights)
        if known.centring is None:
            constant = CONSTANT * self.shape.constant or None
            rows = normalised_rows(data.X, facts.data_norm, constant, clips=self.has_norm)
            return weighed(rows, weights, data)
        formed, surrogate = centred_rows(data.X, known.centring)
        return replace(weighed(formed, weights, data), surrogate=surrogate)


@dataclass(frozen=True, slots=True)
class ClippedFit(WrappedPlan):
    """A perturbed minimiser for rows that are scaled down to a public norm, as published.

    `constant` is the value of the constant column. `attributes` are the names of the further fitted
    attributes that are wanted, and `parameters` further public facts.
    """

    plan: PerturbedMinimiser
    constant: float | None
    attributes: tuple[str, ...]
    parameters: Mapping[str, Any]
    takes: frozenset[str]

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return {**self.plan.public, **self.parameters}

    def with_class_weights(self, weights: FloatArray) -> ClippedFit:
        """Weigh the classes by released numbers in [0, 1], for the same events."""
        return replace(self, facts=self.facts.with_class_weights(weights))

    def run(self, door: Door) -> Fitted:
        """Release the certified minimiser for rows as they were handed in."""
        norm, constant = self.facts.data_norm, self.constant
        released = self.plan.run(door.map(self._clipped_rows))
        more = {
            "alpha_": self.plan.ridge,
            "one_vs_rest_": self.plan.risk.n_stacked > 1,
            "preconditioner_": None,
        }
        wanted = {name: more[name] for name in self.attributes}
        return Fitted(*for_rows_as_given(released, constant, 1.0), norm, wanted)

    def _clipped_rows(self, data: TrainingData) -> WeighedRows:
        rows = rows_over(clipped_rows, data.X, self.facts.data_norm, self.constant)
        return weighed(rows, np.array(self.facts.class_weights), data)


def centred_rows(rows: Rows, centring: Centring) -> tuple[FormedRows, MappedRows]:
    """Return the final rows, formed at every pass, or never formed.

    The certificate needs rows that are formed, because the map would amplify the rounding errors
    of products with rows that it was not applied to. The solver may use the faster rows that are
    never formed.
    """
    how = centring.to_final, centring.longest, centring.constants
    whole = block_diag(centring.to_final, np.eye(len(centring.constants)))
    return FormedRows(rows, *how), MappedRows(rows.clip_images(*how), whole)


def _fit_of(
    shape: Shape,
    releases: tuple[Release[Known], ...],
    minimiser: PerturbedMinimiser,
    *,
    is_chosen: bool,
) -> CentredFit:
    """Return the fit with its public facts; the regulariser of the minimiser may be chosen."""
    linear_map, risk = shape.linear_map, minimiser.risk
    # Sums over the records tell intercept and length of the coefficients.
    tells = shape.constant > 0.0 and (isinstance(risk, SoftmaxRisk) or risk.loss is LOGISTIC)
    public = {
        "private_second_moment": bool(releases),
        "projection": None if linear_map is None else type(linear_map).__name__,
        **minimiser.public,
    }
    return CentredFit(shape, releases, minimiser, is_chosen and tells, public)


def recalibrated_minimiser(
    minimiser: PerturbedMinimiser,
    found: FloatArray,
    centring: Centring,
    total: float,
    class_weights: FloatArray,
) -> FloatArray:
    """Return a noisy minimiser of the logistic risk with the intercept and the length it tells.

    The regulariser shortens the coefficients and draws the intercept to zero. At the minimiser, the
    sums of slopes and of slopes times scores are those of the regulariser, so the released point
    tells both, with its noise. `total` is the number of rows, or their weight. This is
    post-processing: ``docs/proofs/engine.md``, section 6.
    """
    point, size, constant = found[0], len(centring.mean), centring.constant / centring.length
    moment = centring.with_shared_trace().resolved / centring.length**2
    along = point[:size] @ centring.directions
    # A signal lies in directions of more variance than others that the noise hides, and the noise
    # of the moment along one vector is small.
    released = max(np.square(along) @ np.column_stack([centring.noisy, centring.resolved]))
    variance, intercept = float(released) / centring.length**2, float(point[size]) * constant
    scores = math.sqrt(variance) * NODES
    slopes = MASSES @ (expit(intercept + scores) * expit(-intercept - scores))
    weighted, ridge = total / np.mean(1.0 / class_weights), minimiser.risk.total(minimiser.ridge)
    curvatures = ridge + weighted * slopes * np.append(moment, constant**2)
    noise = minimiser.gradient_noise(curvatures)
    if not (noise.any() and variance):
        return found
    # The point follows its noise, so that it is in the product of point and gradient twice.
    common = (np.square(noise) / curvatures)[:size].sum()
    product = ridge * float(point[:size] @ point[:size]) - common
    corrected, factor = corrected_line(
        intercept,
        scores,
        np.array([ridge * point[size] / constant, product]) / total,
        np.array([noise[size] / constant, np.linalg.norm(noise[:size] * along)]) / total,
        class_weights=class_weights,
        total=total,
        clip=1.0,
        odds_of=lambda right: right,
    )
    return np.append(factor * point[:size], corrected / constant)[None, :]


def rescaled_minimiser(
    minimiser: PerturbedMinimiser,
    found: FloatArray,
    centring: Centring,
    total: float,
    class_weights: FloatArray,
) -> FloatArray:
    """Return a noisy minimiser of the softmax risk with the length that it tells.

    This is `recalibrated_minimiser` for several classes. The intercepts, which the regulariser
    shortens, too, have the same factor, so that no prediction changes: post-processing,
    ``docs/proofs/engine.md``, section 6.
    """
    size, constant = len(centring.mean), centring.constant / centring.length
    moment = centring.with_shared_trace().resolved / centring.length**2
    along = found[:, :size] @ centring.directions
    # A signal lies in directions of more variance than others that the noise hides.
    each = np.stack([centring.noisy, centring.resolved]) / centring.length**2
    released = each[np.argmax(each @ np.square(along).sum(axis=0))]
    covariance = (along * released) @ along.T
    scores = ScoresOfMany.of(found[:, size] * constant, covariance, class_weights, math.inf)
    ridge = minimiser.risk.total(minimiser.ridge)
    curvatures = ridge + total * np.multiply.outer(scores.curvatures, moment)
    noise = minimiser.gradient_noise(curvatures)
    if not (noise.any() and covariance.any()):
        return found
    variances = total * np.multiply.outer(scores.slope_variances, moment)
    # The mean of the noise over the classes was subtracted.
    rest = 1.0 - 1.0 / len(found)
    by_noise, by_sample = rest * np.square(noise), (variances / curvatures).sum() / total
    product = ridge * np.square(along).sum() - (by_noise / curvatures).sum()
    deviation = math.sqrt((by_noise * np.square(along)).sum()) / total
    return scores.factor(product / total - by_sample, deviation, by_sample) * found


def plan_moment(shape: Shape, budget: Budget) -> tuple[tuple[Release[Known], ...], Budget]:
    """Plan length and moment, if these are worth their cost; return the remaining budget, too.

    They are not for more than 512 columns, or if the edge of the spectrum of its noise would exceed
    the number of records.
    """
    if not shape.has_moment:
        return (), budget
    first, rest = budget.split(NUMBER_SHARE)
    part, rest = rest.split(MOMENT_SHARE)
    n_samples, size = shape.facts.n_privacy_units, shape.n_final
    noise = moment_noise(n_samples, shape.block_rows, part, is_single=False)
    edge = noise_deviation(noise, size * (size + 1) // 2) * math.sqrt(2.0 * size)
    if edge > n_samples:
        return (), budget

    def clipped(known: Known, data: TrainingData) -> TrainingData:
        return replace(data, X=first_rows_of(shape, known.length, data))

    length = replace(length_release(shape, first), row_map=clipped)
    return (length, moment_release(shape, part)), rest


def risk_of(shape: Shape, loss: Loss, *, is_formed: bool) -> MarginRisk | SoftmaxRisk:
    """Return the risk of rows of norm at most one."""
    facts, columns = shape.facts, shape.n_final
    formed = formed_block_rows(facts.n_privacy_units, columns)
    return empirical_risk(
        loss,
        facts.n_privacy_units,
        columns,
        facts.n_classes,
        row_norm=UP,
        block_rows=formed if is_formed else shape.block_rows,
        max_weight=max(facts.class_weights),
    )


def clipped_risk(
    facts: PublicFacts, loss: Loss, constant: float | None, **robust: Any
) -> MarginRisk | SoftmaxRisk:
    """Return the risk of rows that are scaled down to a public norm, with their constant."""
    sizes, weights = (facts.n_privacy_units, facts.n_features), facts.class_weights
    # Weights from noisy counts, and weights of records, can be any number in [0, 1].
    has_any = facts.balances_classes or facts.has_weights
    return empirical_risk(
        loss,
        facts.n_privacy_units,
        facts.n_features + (constant is not None),
        facts.n_classes,
        row_norm=math.hypot(facts.data_norm, constant or 0.0) * UP,
        block_rows=block_size(*sizes, is_sparse=facts.is_sparse),
        max_weight=max(weights),
        min_weight=0.0 if has_any else min(weights),
        **robust,
    )


def plan_centred_output(
    shape: Shape,
    loss: Loss,
    budget: Budget,
    *,
    ridge: float | None = None,
    optimizer: Optimizer = "auto",
    projects: bool = False,
) -> CentredFit | None:
    """Divide a budget between the moment and one noisy minimiser, for ``delta > 0``.

    `ridge` is per mean loss and raised to a public floor; None chooses it from public sizes. Return
    None if the moment is not worth its cost. Raise errors as :func:`plan_output` does.
    """
    releases, rest = plan_moment(shape, budget)
    if not releases:
        return None
    risk, is_chosen = risk_of(shape, loss, is_formed=True), ridge is None
    ridge = mapped_row_ridge(risk, rest.mu) if ridge is None else ridge
    plan = plan_output(risk, ridge, rest.noise, optimizer=optimizer, projects=projects)
    return _fit_of(shape, releases, plan, is_chosen=is_chosen)


def plan_centred_objective(
    shape: Shape,
    loss: Loss,
    budget: Budget,
    *,
    ridge: float | None = None,
    has_moment: bool = True,
    optimizer: Optimizer = "auto",
) -> CentredFit:
    """Divide a budget between the moment, if it is worth its cost, and a perturbed minimisation.

    `ridge` is per mean loss and raised to a public floor; None chooses it from public sizes. Raise
    errors as :func:`plan_objective` does.
    """
    epsilon, delta = budget.epsilon, budget.delta
    releases, rest = plan_moment(shape, budget) if has_moment else ((), budget)
    risk = risk_of(shape, loss, is_formed=bool(releases))
    # A Gaussian release and a perturbed objective are accounted for together.
    events = (release.event for release in releases)
    earlier = tuple(event for event in events if isinstance(event, Gaussian))
    left = rest.epsilon if budget.is_pure else epsilon
    wanted = ridge
    if wanted is None:
        share = 1.0 if not releases else (1.0 - NUMBER_SHARE) * (1.0 - MOMENT_SHARE)
        wanted = perturbed_row_ridge(risk, left, delta, mu_share=share)
    room = feasible_ridge(risk, wanted, left, delta, earlier)
    if room is None:
        how: dict[str, Any] = {"ridge": ridge, "has_moment": False, "optimizer": optimizer}
        return plan_centred_objective(shape, loss, budget, **how)
    plan = plan_objective(risk, room, left, delta, earlier=earlier, optimizer=optimizer)
    return _fit_of(shape, releases, plan, is_chosen=ridge is None)
