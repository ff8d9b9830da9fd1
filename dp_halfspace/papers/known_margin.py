"""The published algorithms for a known margin, corrected: descent, proximal pass, single records.

Descent: the gradient sum of a clipped loss changes by at most twice the clip when one record is
replaced, at every point. So a fixed number of noisy steps composes exactly, and step size and
averaging are post-processing. The whole run is exactly Gaussian private, with no minimiser, no
certificate and no branch that depends on the data: ``docs/proofs/noisy_gradient.md``. With
normalised rows and the loss ``h(margin / c)``, the choice of ``c`` is a choice of step size and
path length for the loss ``h(margin)``; nothing else depends on it: section "Known margin" there.

Proximal pass: one pass of exact proximal steps on the hinge loss, in phases of halving length.
Proximal maps do not expand distances, so a replaced record moves every later iterate by no more
than its own step. So one release of each phase is enough, and phases use disjoint records.
Derivation: ``docs/proofs/phased_prox.md``.

Single records: each of ``n^2 - 1`` steps follows the hinge of one record, which is drawn in secret
with replacement, with Gaussian noise; the draw and the noise both hide the record. Derivation:
``docs/proofs/noisy_gradient.md``, "Steps on single records"; the cost of all steps:
``docs/proofs/accounting.md``, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN, FAR_UP
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.engine.steps import SlopedRows, Slopes, clipped_slopes_of_many
from dp_halfspace.optim.certificate import error_of_sums
from dp_halfspace.papers.training import Algorithm, LinearTraining, Problem
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Repeated, SampledGaussian
from dp_halfspace.privacy.mechanisms import AnyNoise, NoNoise, SampledGaussianNoise
from dp_halfspace.privacy.pld import LARGEST_SAMPLED_MU
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection.linear import PROJECTIONS, jl_dimension, jl_distortion, jl_margin
from dp_halfspace.rows.blocks import FloatArray, block_size, into_ball


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Settings of noisy gradient steps.

    `margin_offset` is the margin at which the loss has half of its largest slope. The slope of a
    record has a norm of at most one, and its Lipschitz constant is one. `path_length` is the sum of
    the lengths of all steps if every record had the largest slope in one direction, in units that
    follow from the noise; the norm of the result is of this order
    (``docs/proofs/noisy_gradient.md``). The iterates of the last `tail_fraction` of the steps are
    averaged. `max_stride` is the upper limit on the step size times the number of records.
    """

    margin_offset: float
    n_steps: int
    path_length: float
    tail_fraction: float
    max_stride: float


@dataclass(frozen=True, slots=True)
class Descent:
    """The public numbers of one run; there is one output for two classes, and K for K classes.

    Iterates are projected to a ball of `radius`, because rounding errors are bounded inside it;
    they hardly ever reach its border. `mechanism` is that of one step, `event` the cost of the
    whole run.
    """

    n_columns: int
    n_outputs: int
    steps: Steps
    step_size: float
    radius: float
    mechanism: AnyNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (Repeated(self.mechanism.event, self.steps.n_steps),)

    def run(self, door: Door) -> FloatArray:
        """Take the steps on normalised rows; see `Algorithm`.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: at every step the noisy sum of clipped slopes times rows; everything else is a
          function of these sums.
        - Sensitivity: 2, and an allowance for rounding.
        - Proof: ``docs/proofs/noisy_gradient.md``, Lemma 1; ``certificate.md``, section 7.
        """
        # 1. Project the iterate to a public ball where rounding errors are bounded.
        # 2. Release the clipped gradient sum with the noise of one step.
        # 3. Take the step, and average the last iterates: post-processing.
        door, steps = door.map(self._with_slopes), self.steps
        shape = (self.n_columns,) if self.n_outputs == 1 else (self.n_columns, self.n_outputs)
        point, total = np.zeros(shape), np.zeros(shape)
        n_averaged = max(1, round(steps.tail_fraction * steps.n_steps))
        with single_blas_thread():
            for step in range(steps.n_steps):
                query = into_ball(point, self.radius)
                noisy = door.release(partial(_summed_slopes, query), self.mechanism)
                if self.n_outputs > 1:
                    # The slopes of a record sum to zero over the classes, so the release holds
                    # nothing but noise along (1, ..., 1).
                    noisy = noisy - noisy.mean(axis=1, keepdims=True)
                point = point + self.step_size * noisy
                if step >= steps.n_steps - n_averaged:
                    total += point
        return np.atleast_2d((total / n_averaged).T)

    def _with_slopes(self, data: WeighedRows) -> SlopedRows:
        make = partial(margin_slopes, self)
        slopes = data.rows.apply_to_classes(make, data.classes, data.weights)
        return SlopedRows(data.rows, slopes)


def _summed_slopes(query: FloatArray, data: SlopedRows) -> FloatArray:
    """Return the sum of slopes times rows."""
    return np.asarray(data.X.fused_adjoint(query, data.slopes))


def plan_descent(
    steps: Steps,
    *,
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    block_rows: int,
    mu: float,
) -> Descent:
    """Fix the public numbers of a run on normalised rows that is mu-Gaussian private as a whole.

    `block_rows` rows are summed at a time.

    The sensitivity of the sum of slopes times rows is 2 for every number of classes, attained by
    ``x' = -x``. An allowance for rounding errors is added.
    """
    # Eight times the norm that the noise of all steps gives the iterate.
    radius = 8.0 * steps.path_length * (1.0 + math.sqrt(n_columns * n_outputs))
    # Rounding errors of the sums over rows.
    sums = error_of_sums(n_samples, n_columns, block_rows, slope=1.0, n_outputs=n_outputs)
    # Rounded margins give inexact slopes, which multiply rows of norm one. All rows but the
    # replaced one are the same to the last bit: docs/proofs/certificate.md, section 7.
    per_record = 1.01 * 2.0**-53 * ((n_columns + 3) * radius)
    rounding = sums + n_samples * per_record
    # Computed rows are at most a little longer than one: docs/proofs/noisy_gradient.md, Lemma 1.
    sensitivity = 2.0 * (FAR_UP + rounding)
    mechanism = Budget.gaussian(mu / math.sqrt(steps.n_steps) * DOWN).noise(sensitivity)
    # The noise determines the step size; with little noise the curvature of the loss limits it.
    stride = steps.path_length * mu / (2.0 * steps.n_steps)
    step_size = min(stride, steps.max_stride / n_samples)
    return Descent(n_columns, n_outputs, steps, step_size, radius, mechanism)


# Value of the constant column of the published algorithms, for rows of norm one.
_CONSTANT = 0.2
# Share of the margin below which a record has a nonzero gradient, as published.
_ASKED = 0.96
# Most records: the number of steps is their square.
MOST_RECORDS = 3000


@dataclass(frozen=True, slots=True)
class SingleRecordSteps:
    """The public numbers of a run on normalised rows of two classes.

    A record has a nonzero gradient if its signed score is below `threshold`. The iterates of the
    last `tail_fraction` of the steps are averaged; 0 returns the last iterate. `mechanism` is that
    of one step.
    """

    threshold: float
    n_columns: int
    n_steps: int
    tail_fraction: float
    mechanism: SampledGaussianNoise | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return (Repeated(self.mechanism.event, self.n_steps),)

    def run(self, door: Door) -> FloatArray:
        """Take the steps; see `Algorithm`.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: at every step, the noisy row of one secret record.
        - Sensitivity: 2, the largest distance between the gradients of two records.
        - Proof: ``docs/proofs/noisy_gradient.md``, "Steps on single records";
          ``docs/proofs/accounting.md``, section 11.
        """
        # 1. Compute the negative gradient of each record at the released iterate.
        # 2. Release that of one secret record with noise; without noise, the mean of all.
        # 3. Step, project to the unit ball, average: post-processing.
        door = door.map(_signed_rows)
        sigma = self.mechanism.sigma if isinstance(self.mechanism, SampledGaussianNoise) else 0.0
        scale = 2.0 / math.sqrt(1.0 + self.n_columns * sigma * sigma)
        first = self.n_steps - max(math.ceil(self.tail_fraction * self.n_steps), 1)
        point, total = np.zeros(self.n_columns), np.zeros(self.n_columns)
        with single_blas_thread():
            for step in range(self.n_steps):
                noisy = door.release(partial(self._gradients, point), self.mechanism)
                point = point + scale / math.sqrt(step + 1.0) * noisy
                point /= max(1.0, math.sqrt(float(point @ point)))
                if step >= first:
                    total += point
        return (total / (self.n_steps - first))[None, :]

    def _gradients(self, point: FloatArray, data: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Return the negative gradients of all records, or without noise their mean."""
        signed, weights = data
        factors = np.where(signed @ point < self.threshold, weights, 0.0)
        gradients = factors[:, None] * signed
        if isinstance(self.mechanism, SampledGaussianNoise):
            return gradients
        return np.asarray(gradients.mean(axis=0))


def _signed_rows(data: WeighedRows) -> tuple[FloatArray, FloatArray]:
    """Return the rows times the signs of their classes, and their weights."""
    signs = np.where(data.classes == 1, 1.0, -1.0)
    signed = data.rows.dense(np.arange(len(signs))) * signs[:, None]
    return signed, data.weights[data.classes]


def plan_single_records(
    n_samples: int, n_columns: int, *, margin: float, budget: Budget, tail_fraction: float
) -> SingleRecordSteps:
    """Fix the public numbers of a run for a known margin in (0, 1].

    The gradient of a record is zero or a row of norm at most one, so two of them are at most two
    apart, attained by ``x' = -x``.

    References
    ----------
    H. L. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 3, lines 11 to 16, with the least
    noise for which all steps stay within the budget. ``docs/proofs/noisy_gradient.md``, "Steps on
    single records".
    """
    if n_samples > MOST_RECORDS:
        raise ValueError(
            f"solver='noisy_sgd' takes n^2 - 1 steps, which is too many for more than "
            f"{MOST_RECORDS} records: use solver='noisy_gd'"
        )
    n_steps = max(n_samples * n_samples - 1, 1)
    mechanism: SampledGaussianNoise | NoNoise = NoNoise()
    if not budget.is_infinite:
        mu = _step_mu(n_samples, n_steps, budget.epsilon, budget.delta)
        # Computed rows are at most a little longer than one.
        mechanism = SampledGaussianNoise(n_samples, 2.0 * FAR_UP, mu)
    return SingleRecordSteps(_ASKED * margin, n_columns, n_steps, tail_fraction, mechanism)


@lru_cache(maxsize=64)
def _step_mu(n_records: int, n_steps: int, epsilon: float, delta: float) -> float:
    """Return the signal to noise ratio of a step with which all steps stay within a budget."""

    def events(mu: float) -> list[Event]:
        return [Repeated(SampledGaussian(n_records, mu), n_steps)]

    # Many steps together are nearly Gaussian, which gives a guess to search below.
    whole = Budget.of(epsilon, delta).mu
    guess = min(math.sqrt(math.log1p(whole * whole * n_records**2 / n_steps)), LARGEST_SAMPLED_MU)
    high = min(1.1 * guess, LARGEST_SAMPLED_MU)
    return calibrate(events, epsilon, delta, lower=0.0, upper=high, rtol=1e-3)


# Half width of the parabola that replaces the corner of the hinge.
HALF_WIDTH = 0.5
FEWEST_STEPS = 100
_MOST_STEPS = 400
# Most steps whose iterates are all averaged. They are more, because the influence of the start on
# this mean falls only like one over the square root of the number of steps.
_MOST_MEAN_STEPS = 2000
# Upper limit on the step size times the number of records: beyond it the iteration would oscillate
# even without noise.
_MAX_STRIDE = 8.0
# Margin offset of the softmax, whose slope, unlike that of the hinge, is nowhere zero.
_SHIFT = 3.0


def default_margin(n_samples: int, n_columns: int, mu: float) -> float:
    """Return the margin below which noise alone accounts for half of the training error.

    It is ``4 sqrt(min(n_samples, n_columns)) / (n_samples mu)``, within [.01, 1]. In
    ``docs/proofs/margin_risk.md`` the bound with twice this margin is a quarter.
    """
    noise = 4.0 * math.sqrt(min(n_samples, n_columns)) / (n_samples * mu)
    return min(max(noise, 0.01), 1.0)


def margin_steps(
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    *,
    mu: float,
    margin: float,
    tail_fraction: float = 0.5,
    n_steps: int | None = None,
) -> Steps:
    """Return the settings of a run for a known margin in (0, 1].

    The iterates of the last `tail_fraction` of the steps are averaged; 0 returns the last iterate.
    `n_steps` follows from the margin by default.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithm 5, with the noise of the number of steps
    that is run; H. L. Nguyen, J. Ullman and L. Zakynthinou (2020), Algorithm 1.
    ``docs/proofs/noisy_gradient.md``, section "Known margin".
    """
    spread = math.sqrt(2.0 * n_columns * n_outputs)
    target = 1.0 if n_outputs == 1 else _SHIFT
    path_length = target / (margin * spread)
    wanted = min(n_samples * mu * path_length / 30.0, _MOST_STEPS)
    return Steps(
        margin_offset=target,
        n_steps=n_steps or max(math.ceil(wanted), FEWEST_STEPS),
        path_length=path_length,
        tail_fraction=tail_fraction,
        max_stride=_MAX_STRIDE,
    )


def mean_steps(n_samples: int, n_columns: int, *, mu: float, margin: float) -> Steps:
    """Return the settings of a run of two classes whose mean iterate a theorem bounds.

    The step size is the one of the proof: `dp_halfspace.theory.margin_risk_bound` with
    ``half_width=0.5`` and this number of steps covers the mean of all iterates.

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang (2025), Algorithm 5 and Lemma D.1. Proof:
    ``docs/proofs/margin_risk.md``, Theorem 1 and section 7.
    """
    rank = min(n_columns, n_samples)
    # Norm of the coefficients that have no loss if rows are separable with this margin.
    length = (1.0 + HALF_WIDTH) / margin
    # With more steps the noise dominates, and the bound does not improve.
    wanted = min((n_samples * mu) ** 2 / (4.0 * rank), _MOST_MEAN_STEPS)
    n_steps = max(math.ceil(wanted), FEWEST_STEPS)
    step = length / math.sqrt(n_steps * (1.0 + rank * 4.0 * n_steps / (n_samples * mu) ** 2))
    return Steps(
        margin_offset=1.0,
        n_steps=n_steps,
        # Large enough that `max_stride` alone determines the step size.
        path_length=length / math.sqrt(rank),
        tail_fraction=1.0,
        max_stride=step,
    )


def margin_slopes(plan: Descent, class_indices: NDArray[np.intp], weights: FloatArray) -> Slopes:
    """Return the negative slopes of the rounded hinge, of norm at most one.

    `class_indices` and `weights` are the classes of the records and their weights in [0, 1]. With
    several classes the slopes are those of the shifted softmax, which is a rounded hinge, too.
    """
    if plan.n_outputs > 1:
        shift = plan.steps.margin_offset
        return clipped_slopes_of_many(class_indices, weights, clip=1.0, shift=shift)
    signs = np.where(class_indices == 1, 1.0, -1.0)

    def hinge(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        missing = 1.0 + HALF_WIDTH - signs[lo:hi] * margins
        return np.asarray(signs[lo:hi] * weights[lo:hi] * np.clip(missing, 0.0, 1.0))

    return hinge


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: the records ``lo`` to ``hi - 1`` of the public order, and its step size.

    `mechanism` adds noise to the mean of the iterates of the phase.
    """

    lo: int
    hi: int
    step_size: float
    mechanism: AnyNoise


@dataclass(frozen=True, slots=True)
class PhasedPass:
    """The public numbers of a proximal pass on the hinge ``max(0, 1 - m / margin)``."""

    margin: float
    n_columns: int
    phases: tuple[Phase, ...]
    order: NDArray[np.intp]

    @property
    def events(self) -> tuple[Event, ...]:
        """The event of one phase, which covers all phases, because they share no record."""
        return (self.phases[0].mechanism.event,)

    def run(self, door: Door) -> FloatArray:
        """Take the pass over normalised rows of two classes; see `Algorithm`.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the noisy mean of the iterates of each phase; phases share no record.
        - Sensitivity: ``2 step_size / margin`` for one phase, and an allowance for rounding.
        - Proof: ``docs/proofs/phased_prox.md``, Theorems 3 and 4.
        """
        # 1. For each phase, start from the release of the one before.
        # 2. Take the proximal steps on its records, block by block.
        # 3. Release the mean of its iterates; no other phase sees these records.
        releases = door.permit.parallel(self.events[0])
        point = np.zeros(self.n_columns)
        for phase in self.phases:
            # Iterates stay in the unit ball, in which a separator of the known margin lies. Noise
            # may have moved the earlier release out of it; projecting it back is post-processing.
            start = point / max(1.0, float(np.linalg.norm(point)))
            block = range(phase.lo, phase.hi)
            ask = partial(self._mean_iterate, phase, start)
            point = door.release_of_block(ask, phase.mechanism, releases, block)
        return point[None, :]

    def _mean_iterate(self, phase: Phase, start: FloatArray, data: WeighedRows) -> FloatArray:
        """Return the mean of the iterates of a phase, which reads its own records."""
        current, total = start, np.zeros(self.n_columns)
        step = block_size(phase.hi - phase.lo, self.n_columns, is_sparse=False)
        for lo in range(phase.lo, phase.hi, step):
            index = self.order[lo : min(lo + step, phase.hi)]
            signs = np.where(data.classes[index] == 1, 1.0, -1.0)
            caps = phase.step_size / self.margin * data.weights[data.classes[index]]
            signed = data.rows.dense(index) * signs[:, None]
            current, part = proximal_pass(current, signed, caps, self.margin)
            total += part
        return np.asarray(total / (phase.hi - phase.lo))


def plan_phased_prox(
    n_samples: int, n_columns: int, *, mu: float, margin: float, order: NDArray[np.intp]
) -> PhasedPass:
    """Fix the public numbers of a pass that is mu-Gaussian private.

    `order` is a public permutation of the records, drawn without reading them. Each phase has half
    of the remaining records and a quarter of the step size of the phase before; the first step size
    balances the three terms of the excess risk of the first phase.

    References
    ----------
    R. Bassily, M. Mohri and A. T. Suresh (2022), Algorithm 5 (without boosting, sampling without
    replacement); V. Feldman, T. Koren and K. Talwar (2020), Algorithm 1.
    """
    spread = 0.5 + 2.0 * math.sqrt(n_columns) / mu
    step_size = margin / math.sqrt(n_samples * spread)
    phases = []
    lo = 0
    while lo < n_samples:
        hi = lo + max(1, (n_samples - lo) // 2)
        noise = _noise(hi - lo, n_columns, step_size, margin, mu)
        phases.append(Phase(lo, hi, step_size, noise))
        lo, step_size = hi, step_size / 4.0
    return PhasedPass(margin, n_columns, tuple(phases), order)


def _noise(n_records: int, n_columns: int, step_size: float, margin: float, mu: float) -> AnyNoise:
    """Return the noise of the mean of the iterates of one phase.

    Its sensitivity is ``2 step_size / margin`` (``docs/proofs/phased_prox.md``, Theorem 3), and an
    allowance for rounding errors is added (section 3 there).
    """
    longest_step = step_size / margin
    # Bound on the rounding error of one step; later steps do not amplify it.
    per_step = 2.0**-52 * (n_columns + 16) * 2.0 * (2.0 + margin + longest_step)
    rounding = (n_records + 1) * per_step
    return Budget.gaussian(mu).noise(2.0 * (longest_step * FAR_UP + rounding))


def proximal_pass(
    start: FloatArray, rows: FloatArray, caps: FloatArray, margin: float
) -> tuple[FloatArray, FloatArray]:
    """Take one proximal step on the hinge of each row, in order.

    `rows` have norm one or zero and are multiplied by their labels. `caps` limit the length of the
    step of each row; a row whose score is at least `margin` causes no step. Return the last iterate
    and the sum of all iterates.
    """
    point, total = start.copy(), np.zeros_like(start)
    squares = np.einsum("ij,ij->i", rows, rows)
    inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
    for row, factor, cap in zip(rows, inverse.tolist(), caps.tolist(), strict=True):
        step = min(max((margin - float(row @ point)) * factor, 0.0), cap)
        if step > 0.0:
            point += step * row
            norm = math.sqrt(float(point @ point))
            if norm > 1.0:
                point *= 1.0 / norm
        total += point
    return point, total


def plan_known_margin(
    problem: Problem, solver: str, margin: float | None, budget: Budget
) -> LinearTraining:
    """Plan one fit for a margin of rows of norm one; without one it is `default_margin`.

    `solver` is ``"noisy_gd"``, ``"phased_prox"`` or ``"noisy_sgd"``, of which the last is not
    Gaussian private, so that it needs the epsilon and the delta of the budget.
    """
    n_samples, n_classes = problem.facts.n_privacy_units, problem.facts.n_classes
    if n_classes > 2 and solver != "noisy_gd":
        raise ValueError(
            f"Only binary classification is supported by solver={solver!r}: use "
            "'objective_perturbation' or 'noisy_gd'"
        )
    mu = budget.mu
    if margin is None:
        margin = default_margin(n_samples, problem.n_columns(), mu)
    is_named = problem.projection in PROJECTIONS
    linear_map = problem.draw_map(jl_dimension(margin, n_samples) if is_named else None)
    kept = margin
    if linear_map is not None:
        distortion = jl_distortion(linear_map.n_components, n_samples)
        # The published algorithms assume a third of the margin; with many components more is
        # proved: docs/proofs/projection.md, section 4.
        kept = max(jl_margin(margin, distortion=distortion), margin / 3.0)
    shape, tail = (n_samples, problem.n_columns(linear_map)), problem.tail_fraction
    algorithm: Algorithm
    if solver == "noisy_sgd":
        algorithm = plan_single_records(*shape, margin=kept, budget=budget, tail_fraction=tail)
        margin_offset = algorithm.threshold
    elif solver == "phased_prox":
        order = public_generator(problem.seed, "permutation").permutation(n_samples)
        algorithm = plan_phased_prox(*shape, mu=mu, margin=kept, order=order)
        margin_offset = margin
    else:
        n_outputs = 1 if n_classes == 2 else n_classes
        if tail == 1.0 and n_outputs == 1:
            steps = mean_steps(*shape, mu=mu, margin=kept)
        else:
            steps = margin_steps(*shape, n_outputs, mu=mu, margin=kept, tail_fraction=tail)
        algorithm = plan_descent(steps, **problem.sizes(linear_map), n_outputs=n_outputs, mu=mu)
        margin_offset = steps.margin_offset
    constant = problem.constant(_CONSTANT)
    return LinearTraining(problem, solver, algorithm, margin, margin_offset, constant, linear_map)
