"""Full-batch DP gradient descent on preconditioned rows: the default algorithm.

A share of the budget releases the second moment of the rows, from which a preconditioner follows;
the rest covers a fixed number of accelerated noisy steps. The gradient sum of a clipped loss
changes by at most twice the clip when one record is replaced, at every point. So the steps compose
exactly, and step size, momentum and averaging are post-processing. The whole run is exactly
Gaussian private, with no minimiser, no certificate and no branch that depends on the data.
Derivations: ``docs/proofs/noisy_gradient.md``; evidence for the constants:
``docs/defaults/steps.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._rounding import DOWN
from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.algorithms.engine.defaults import (
    EFFECTIVE_DIMENSION,
    PATH_OF_SIGNAL,
    SHORTEST_PATH,
    UNLIKE,
    EngineDefaults,
    RaritySettings,
    Steps,
    halved_steps,
)
from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.algorithms.engine.preconditioner import (
    Preconditioner,
    PreconditionerPlan,
    plan_preconditioner,
    release_preconditioner,
)
from dp_halfspace.data.chunks import apply_to_chunks
from dp_halfspace.data.record_weights import Weights, with_class_weights
from dp_halfspace.optim.certificate import gradient_error
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Pure, Repeated
from dp_halfspace.privacy.mechanisms import GaussianNoise, NoNoise, Permit
from dp_halfspace.rows.rows import Rows, precondition_rows
from dp_halfspace.rows.single_rows import SINGLE_SHARE

# Maps the margins of the rows lo to hi - 1 to the negative slopes of their losses.
Slopes: TypeAlias = Callable[[FloatArray, int, int], FloatArray]

# Coefficients that are mapped by the preconditioner are projected to a ball of the radius of the
# iterates times at most this factor: useful coefficients are not stretched by more.
_MAX_STRETCH = 64.0
# Largest absolute value of a number that is added to the score of a class. The allowance for
# rounding errors is computed with it.
LARGEST_SCORE_OFFSET = 12.0
# Margins are limited to this number, so that the exponential does not overflow; the slope is below
# 1e-17 there.
_LARGEST_EXPONENT = 40.0


@dataclass(frozen=True, slots=True)
class DescentPlan:
    """The public numbers of one run; there is one output for two classes, and K for K classes.

    Iterates are projected to a ball of `radius`, because rounding errors are bounded inside it;
    they hardly ever reach its border. Iterates that the preconditioner has mapped are projected to
    a ball of `mapped_radius`, for the same reason. `mechanism` is that of one step, `event` the
    cost of the whole run. With `is_single` slopes and sums of groups of rows are computed in
    float32. `score_offset`, a public or released number of absolute value at most
    `LARGEST_SCORE_OFFSET`, is added to the score of the class `offset_class`. Before the step
    `n_halved`, all steps but the first read half of the rows.
    """

    n_columns: int
    n_outputs: int
    steps: Steps
    step_size: float
    radius: float
    mapped_radius: float
    mechanism: GaussianNoise | NoNoise
    event: Repeated | Pure
    is_single: bool = False
    score_offset: float = 0.0
    offset_class: int = 0
    n_halved: int = 0


def plan_descent(
    steps: Steps,
    *,
    n_samples: int,
    n_columns: int,
    n_outputs: int,
    block_rows: int,
    mu: float,
    amplification: float = 1.0,
    compression: float = 1.0,
    is_single: bool = False,
    largest_score_offset: float = 0.0,
) -> DescentPlan:
    """Fix the public numbers of a run on normalised rows that is mu-Gaussian private as a whole.

    `block_rows` rows are summed at a time. `amplification` and `compression` bound the factors by
    which the preconditioner stretches coefficients and rows, `largest_score_offset` bounds the
    number that is added to the score of a class; they enter the allowance for rounding errors
    only.

    The sensitivity of the sum of slopes times rows is ``2 clip`` for every number of
    classes, attained by ``x' = -x``. An allowance for rounding errors is added.
    """
    # Eight times the norm that the noise of all steps gives the iterate.
    radius = 8.0 * steps.path_length * (1.0 + math.sqrt(n_columns * n_outputs))
    mapped_radius = min(amplification, _MAX_STRETCH) * radius
    # Rounding errors of the sums over rows; the preconditioner may amplify them.
    sums = gradient_error(
        n_samples=n_samples,
        n_columns=n_columns,
        block_rows=block_rows,
        row_norm=compression,
        ridge=0.0,
        radius=1.0,
        slope=steps.clip,
        smoothness=0.0,
        evaluation=2.0 * n_outputs + 32.0,
        compensated=True,
    )
    # Rounded margins give inexact slopes, which multiply mapped rows of norm one. All rows but the
    # replaced one are the same to the last bit: docs/proofs/certificate.md, section 7.
    margins = (n_columns + 3) * compression * mapped_radius + 6.0 * largest_score_offset
    per_record = 1.01 * 2.0**-53 * steps.smoothness * margins
    mapped = 0.0
    if amplification > 1.0:
        # Rounding errors of the product of the preconditioner with the sum.
        roundings = 1.01 * 2.0**-53 * (n_columns + 2) * math.sqrt(n_columns)
        mapped = roundings * amplification * compression * n_samples * steps.clip
    rounding = amplification * sums + mapped + n_samples * per_record
    # Upper bound on the norm of a mapped row as computed: docs/proofs/preconditioner.md, section 3.
    stretched = (n_columns + 8) * math.sqrt(n_columns) * amplification * compression * 2.0**-52
    longest = 1.0 + (2.0**-30 if amplification == 1.0 else max(2.0**-27, stretched))
    if is_single:
        # In float32 the slopes of a record and the sum of its group are rounded more coarsely:
        # docs/proofs/certificate.md, section 9.
        longest += SINGLE_SHARE + 2.0**-23 * (n_outputs + 16.0)
    longest *= steps.clip
    # docs/proofs/noisy_gradient.md, Lemmas 1 and 3.
    sensitivity = 2.0 * (longest + rounding)
    mechanism: GaussianNoise | NoNoise = NoNoise()
    event: Repeated | Pure = NoNoise().event
    if math.isfinite(mu):
        step_mu = mu / math.sqrt(steps.n_steps) * DOWN
        mechanism = GaussianNoise(sensitivity, step_mu)
        event = Repeated(mechanism.event, steps.n_steps)
    # The noise determines the step size; with little noise the curvature of the loss limits it.
    stride = steps.path_length * mu / (2.0 * steps.clip * steps.n_steps)
    step_size = (1.0 - steps.momentum) * min(stride, steps.max_stride / n_samples)
    return DescentPlan(
        n_columns, n_outputs, steps, step_size, radius, mapped_radius, mechanism, event, is_single
    )


def clipped_slopes(
    plan: DescentPlan, class_indices: NDArray[np.intp], weights: FloatArray
) -> Slopes:
    """Return a function that computes negative slopes of the shifted logistic loss, clipped.

    The slope of each record is clipped by itself, to a norm of at most ``plan.steps.clip``.
    `class_indices` and `weights` are the classes of the records and their weights in [0, 1].
    """
    margin_offset, clip = plan.steps.margin_offset, plan.steps.clip
    kind = np.float32 if plan.is_single else np.float64
    if plan.n_outputs == 1:
        signed_weights = np.copysign(
            weights, np.where(class_indices == 1, kind(1.0), kind(-1.0)), dtype=kind
        )
        signs = signed_weights
        if not (weights == 1.0).all():
            signs = np.copysign(kind(1.0), signed_weights)
        offset = plan.score_offset if plan.offset_class == 1 else -plan.score_offset

        def binary(margins: FloatArray, lo: int, hi: int) -> FloatArray:
            if offset:
                margins += offset
            # In place: the slope min(1 / (1 + exp(margin - margin_offset)), clip) times the weight.
            margins *= signs[lo:hi]
            margins -= margin_offset
            np.exp(np.minimum(margins, _LARGEST_EXPONENT, out=margins), out=margins)
            margins += 1.0
            np.maximum(margins, 1.0 / clip, out=margins)
            return np.divide(signed_weights[lo:hi], margins, out=margins)

        return binary

    def softmax(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        records, own = np.arange(hi - lo), class_indices[lo:hi]
        if plan.score_offset:
            margins[:, plan.offset_class] += plan.score_offset
        margins[records, own] -= margin_offset
        margins -= margins.max(axis=1, keepdims=True)
        negative_slopes = np.exp(margins)
        negative_slopes /= -negative_slopes.sum(axis=1, keepdims=True)
        negative_slopes[records, own] += 1.0
        norms = np.sqrt(np.einsum("ij,ij->i", negative_slopes, negative_slopes))
        negative_slopes *= (weights[lo:hi] * clip / np.maximum(norms, clip))[:, None]
        return negative_slopes

    return softmax


def descend(
    rows: Rows,
    slopes: Slopes,
    plan: DescentPlan,
    permit: Permit,
    transform: Preconditioner | FloatArray | None = None,
    *,
    first: tuple[FirstStep, Any] | None = None,
    last: tuple[int, Any] | None = None,
) -> FloatArray:
    """Run the noisy steps and return the averaged iterate, of shape (n_outputs, n_columns).

    From the average one more step follows the mean of the released gradients of the averaged steps.

    The rows have norm at most one after the released map `transform`, None for the identity; the
    returned coefficients are those for the rows before the map. The first step uses the slopes of
    `first` instead of `slopes`, and its release decides by which factor all steps are shortened.
    From the step that `last` names on, steps use the slopes of `last`. `permit` is charged with
    ``plan.event``. References: ``docs/proofs/noisy_gradient.md``; Nesterov (2018), section 2.2.

    Notes
    -----
    **Guarantee.**

    - Adjacency: replace-one, of a record or of a person with all rows.
    - Released: at every step the noisy sum of clipped slopes times rows; everything else is a
      function of these sums.
    - Sensitivity: twice the clip, and an allowance for rounding.
    - Proof: ``docs/proofs/noisy_gradient.md``, Lemmas 1 and 3; ``certificate.md``, sections 7 and
      9.
    """
    # 1. Look ahead along the momentum, in public balls where rounding errors are bounded.
    # 2. Release the clipped gradient sum with the noise of one step.
    # 3. Take the step, and average the last iterates and their gradients: post-processing, like the
    #    step factor.
    steps, step_factor = plan.steps, 1.0
    shape = (plan.n_columns,) if plan.n_outputs == 1 else (plan.n_columns, plan.n_outputs)
    point, velocity, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    ascents = np.zeros(shape)
    n_averaged = max(1, round(steps.tail_fraction * steps.n_steps))
    for step in range(steps.n_steps):
        if last is not None and step == last[0]:
            slopes = last[1]
        ahead = _project(point + steps.momentum * velocity, plan.radius)
        query = ahead if transform is None else _project(transform.T @ ahead, plan.mapped_radius)
        opening = first if step == 0 else None
        made = slopes if opening is None else opening[1]
        is_halved = 0 < step < plan.n_halved
        # Consecutive steps read alternate halves of the blocks: docs/proofs/noisy_gradient.md,
        # Lemma 4.
        half = {"part": (step % 2, 2)} if is_halved else {}
        ascent = rows.fused_adjoint(query, made, **half)
        if transform is not None:
            ascent = transform @ ascent
        noisy = permit.release(ascent, plan.mechanism)
        if is_halved:
            noisy = 2.0 * noisy
        if opening is not None:
            step_factor = opening[0].step_factor(noisy, plan)
            shift = opening[0].score_shift(step_factor, plan)
            if shift:
                slopes = apply_to_chunks(_shifted, slopes, shift)
                last = last and (last[0], apply_to_chunks(_shifted, last[1], shift))
        if plan.n_outputs > 1:
            # The slopes of a record sum to zero over the classes, so the release holds nothing but
            # noise along (1, ..., 1).
            noisy = noisy - noisy.mean(axis=1, keepdims=True)
        velocity = steps.momentum * velocity + step_factor * plan.step_size * noisy
        point = point + velocity
        if step >= steps.n_steps - n_averaged:
            total += point
            ascents += noisy
    # In the average the last gradients count less than the first ones, although all have the same
    # noise: docs/proofs/noisy_gradient.md.
    length = step_factor * plan.step_size / (1.0 - steps.momentum) * steps.n_steps
    mean = (total + steps.last_step * length * ascents) / n_averaged
    return np.atleast_2d((mean if transform is None else transform.T @ mean).T)


def _shifted(slopes: Slopes, shift: float) -> Slopes:
    """Return slopes that are computed after `shift` was added to the scores."""

    def at(margins: FloatArray, lo: int, hi: int) -> FloatArray:
        margins += shift
        return slopes(margins, lo, hi)

    return at


def _project(point: FloatArray, radius: float) -> FloatArray:
    """Return the point of the ball around zero that is nearest to `point`."""
    flat = point.ravel(order="K")
    norm = math.sqrt(flat.dot(flat))
    return point if norm <= radius else point * (radius / norm)


@dataclass(frozen=True, slots=True, eq=False)
class FirstStep:
    """A first step in which two classes have the same total weight.

    Its gradient sum is proportional to the difference of the mean rows of the classes, so its
    length shows how much signal there is. The `weights` of the classes, in [0, 1] and inversely
    proportional to their sizes, the number of records and the `share` of the minority class are
    released or public numbers. The step factor is raised to the power `degree`. A row is divided
    among `n_directions`: the directions that the preconditioner distinguishes or, if there are
    more, the columns that have features. `lag` in [0, 1] says how much slower the coefficients of
    columns grow than the intercept.
    """

    weights: FloatArray
    n_samples: float
    share: float
    degree: float
    n_directions: float = EFFECTIVE_DIMENSION
    lag: float = 0.0

    def step_factor(self, released: FloatArray, plan: DescentPlan) -> float:
        """Return the factor in (0, 1] that shortens all steps, a function of the first release.

        The signal is the squared length of the released sum, less that of the noise, divided by its
        expectation for labels that are independent of the rows. The longer the path and the more
        coefficients there are, the more signal is needed for full steps: with less signal, the
        coefficients would fit single records. ``docs/proofs/rare.md``, section 5.
        """
        n_columns, odds = plan.n_columns, self.share / (1.0 - self.share)
        noise = 0.0 if isinstance(plan.mechanism, NoNoise) else plan.mechanism.sigma**2
        found = max(float(released @ released) - n_columns * noise, 0.0)
        deviation = math.sqrt(2.0 * n_columns) * noise + 2.0 * math.sqrt(found * noise)
        # At zero coefficients every slope is as large as the clip, times the weight of the class.
        by_chance = plan.steps.clip**2 * self.n_samples * odds
        signal = (found + 0.5 * deviation) / by_chance
        length = plan.step_size / (1.0 - plan.steps.momentum) * plan.steps.n_steps
        curvature = self.n_samples * self.share * (1.0 - self.share)
        # The more directions a row is divided among, the smaller is its component along the
        # difference of the classes.
        few = EFFECTIVE_DIMENSION / self.n_directions
        needed = math.sqrt(few * length * curvature * n_columns / PATH_OF_SIGNAL)
        return float(min(max(signal / needed, SHORTEST_PATH), 1.0) ** self.degree)

    def score_shift(self, step_factor: float, plan: DescentPlan) -> float:
        """Return the number that is added to scores after the first step, given the step factor.

        While scores are small, all slopes are as large as the clip, and the intercept moves until
        margins of the common class exceed the margin offset, far beyond the log odds of the
        classes. On a shorter path, coefficients of columns that `lag` do not catch up, so that most
        rows would be given to the common class. A number that is added to the score of that class
        lets the intercept come to rest earlier. ``docs/proofs/rare.md``, section 5.
        """
        odds, clip = self.share / (1.0 - self.share), min(plan.steps.clip, 1.0)
        lead = plan.steps.margin_offset + math.log((1.0 - clip * odds) / clip)
        # With classes of similar sizes, hardly anything moves the intercept.
        lead *= min(-math.log(odds) / UNLIKE, 1.0)
        shift = min(self.lag * (1.0 - step_factor) * max(lead, 0.0), LARGEST_SCORE_OFFSET)
        return shift if self.weights[1] < self.weights[0] else -shift


@dataclass(frozen=True, slots=True, eq=False)
class LastSteps:
    """Class weights and score offset from the step `first` on, and the offset of the intercept.

    `weights`, in [0, 1], and both offsets are public or released numbers. `constant` is the value
    of the constant column, `behind` the length of the features that are added to the columns.
    """

    first: int
    weights: FloatArray
    score_offset: float
    intercept_offset: float
    constant: float
    behind: float


@dataclass(frozen=True, slots=True)
class GradientPlan:
    """The public numbers of a fit by noisy gradient steps; `events` are what a run releases.

    There is no `preconditioner` if it would cost more than it gains. `slopes` makes the function
    that computes slopes from the plan of the steps and from the classes and weights of the records.
    """

    descent: DescentPlan
    events: tuple[Event, ...]
    preconditioner: PreconditionerPlan | None = None
    slopes: Callable[[DescentPlan, NDArray[np.intp], FloatArray], Slopes] = clipped_slopes
    first: FirstStep | None = None
    last: LastSteps | None = None

    def with_step_scale(
        self, step_factor: float, power: float, tail_factor: float = 1.0
    ) -> GradientPlan:
        """Return a plan with other step sizes and another power of the preconditioner.

        Steps are `step_factor` times as long, and `tail_factor` times as many of the last iterates
        are averaged, at most all of them. All three numbers are public or released, `power` is in
        [0, 1], and no scale of noise depends on them, so the events are the same.
        """
        descent, tail = self.descent, tail_factor * self.descent.steps.tail_fraction
        steps = replace(descent.steps, tail_fraction=tail)
        descent = replace(descent, step_size=step_factor * descent.step_size, steps=steps)
        preconditioner = (
            None if self.preconditioner is None else replace(self.preconditioner, power=power)
        )
        return replace(self, descent=descent, preconditioner=preconditioner)

    def for_rarity(self, common: int, settings: RaritySettings, constant: float) -> GradientPlan:
        """Return a plan that is adapted to released counts of the classes, with the same events.

        All of `settings` are released numbers, and no scale of noise depends on them:
        ``docs/proofs/rare.md``, section 2.
        """
        descent = self.descent
        steps = replace(
            descent.steps, margin_offset=settings.margin_offset, last_step=settings.last_step
        )
        score_offset = min(settings.score_offset, LARGEST_SCORE_OFFSET)
        descent = replace(
            descent,
            steps=steps,
            offset_class=common,
            score_offset=settings.weighted_offset_part * score_offset,
        )
        last = LastSteps(
            round(settings.weighted_part * steps.n_steps),
            settings.last_weights,
            score_offset,
            settings.intercept_offset,
            constant,
            0.0 if self.preconditioner is None else self.preconditioner.behind,
        )
        plan = replace(self, descent=descent, last=last)
        return plan.with_step_scale(settings.step_factor, settings.map_power)

    def run(
        self, rows: Any, classes: NDArray[np.intp], weights: Weights, permit: Permit
    ) -> FloatArray:
        """Take the steps on normalised rows; see `Plan`."""
        # 1. Weigh the classes: in all steps, in the first one, and in the last ones.
        # 2. Release the second moment, if this is planned, and map the rows to where it is flat.
        # 3. Take the noisy steps there and map the coefficients back.
        with single_blas_thread():
            slopes = rows.apply_to_classes(partial(self.slopes, self.descent), classes, weights)
            first, last = None, None
            if self.first is not None:
                made = partial(self.slopes, replace(self.descent, score_offset=0.0))
                balanced = with_class_weights(weights, self.first.weights)
                first = self.first, rows.apply_to_classes(made, classes, balanced)
            if self.last is not None:
                descent = replace(self.descent, score_offset=self.last.score_offset)
                made = partial(self.slopes, descent)
                last = (
                    self.last.first,
                    rows.apply_to_classes(
                        made, classes, with_class_weights(weights, self.last.weights)
                    ),
                )
            transform, mean_square = None, 1.0
            if self.preconditioner is not None:
                released = release_preconditioner(rows, self.preconditioner, permit)
                # Any matrix R with the same R'R gives the same distribution of results:
                # docs/proofs/preconditioner.md, section 3.
                transform, mean_square = released.root(), released.mean_square
                bound = self.preconditioner.compression
                if self.descent.is_single:
                    rows = rows.normalise_images(
                        transform, row_bound=bound, condition=released.condition
                    )
                else:
                    rows = precondition_rows(rows, transform, row_bound=bound)
            found = descend(rows, slopes, self.descent, permit, transform, first=first, last=last)
        if self.last is None:
            return found
        return self._offset_common_class(found, self.last, mean_square)

    def _offset_common_class(
        self, coefficients: FloatArray, last: LastSteps, mean_square: float
    ) -> FloatArray:
        """Add the offset of the common class to the intercept: post-processing.

        The offset holds for rows of typical length. `mean_square` is the mean squared length of
        mapped rows, before they were brought to norm one.
        """
        length = math.sqrt(mean_square * (1.0 + last.behind**2 + last.constant**2))
        result, common = coefficients.copy(), self.descent.offset_class
        offset = last.intercept_offset * length / last.constant
        is_for_other_class = len(result) == 1 and common == 0
        result[min(common, len(result) - 1), -1] += -offset if is_for_other_class else offset
        return result


def plan_gradient(
    defaults: EngineDefaults,
    *,
    n_samples: int,
    n_columns: int,
    n_classes: int,
    block_rows: int,
    mu: float,
    is_single: bool = False,
    of_features: bool = False,
    largest_score_offset: float = 0.0,
) -> GradientPlan:
    """Divide a Gaussian budget between preconditioner and steps; infinity means no noise.

    With `is_single` the steps read dense rows in float32, and with `of_features` features that are
    computed again at every pass.
    """
    share, preconditioner = defaults.preconditioner_share, None
    part, rest = Budget.gaussian(mu).split(share)
    if share > 0:
        preconditioner = plan_preconditioner(
            n_samples,
            n_columns,
            block_rows,
            mu=part.mu,
            max_columns=defaults.preconditioner_columns,
            effective_dimension=defaults.effective_dimension,
            lead=defaults.lead,
            stretch=defaults.stretch,
            behind=defaults.behind,
            is_single=is_single,
            of_features=of_features,
        )
    descent = plan_descent(
        defaults,
        n_samples=n_samples,
        n_columns=n_columns,
        n_outputs=1 if n_classes == 2 else n_classes,
        block_rows=block_rows,
        mu=mu * DOWN if preconditioner is None else rest.mu,
        amplification=1.0 if preconditioner is None else preconditioner.amplification,
        compression=1.0 if preconditioner is None else preconditioner.compression,
        is_single=is_single,
        largest_score_offset=largest_score_offset,
    )
    if of_features:
        descent = replace(descent, n_halved=halved_steps(n_samples, mu, defaults.n_steps))
    events: tuple[Event, ...] = (descent.event,)
    if preconditioner is not None and math.isfinite(mu):
        events = preconditioner.mechanism.event, descent.event
    return GradientPlan(descent, events, preconditioner)
