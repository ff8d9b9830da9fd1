"""Objective perturbation: the minimiser of a regularised risk plus a random linear term.

The linear term hides the influence of one record on the gradient; the regulariser bounds its
influence on the Jacobian. The term is drawn by adding noise to zero, and is never released itself.
No program finds the minimiser exactly, so a little noise on the output hides the error of the
solver (Iyengar, Near, Song, Thakkar, Thakurta and Wang, 2019). Proofs:
``docs/proofs/objective_perturbation.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from dp_halfspace._rounding import FAR_UP, UP
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.exceptions import BudgetError
from dp_halfspace.optim.certificate import Tolerance
from dp_halfspace.optim.risks import Risk, Vertices, minimisers, tolerance
from dp_halfspace.optim.solvers import Optimizer
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Gaussian, ObjectivePerturbation, Repeated
from dp_halfspace.privacy.interception import PureMechanism
from dp_halfspace.privacy.mechanisms import AnyNoise, NoNoise, Permit, noise_deviation
from dp_halfspace.privacy.noise import MOST_LAPLACE_GRID_BITS, l2_laplace, rounded_gaussian
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import ByteSource
from dp_halfspace.rows.blocks import FloatArray, into_ball

# Number of bits of the grid that the linear term is rounded to. The rounding must be small compared
# with the tolerance of the solver; on a finer grid, many draws would need exact arithmetic.
_GAUSSIAN_GRID_BITS = 32
# The bounds on the norm of the linear term fail with probability exp(-128) < 2^-184.
_TAIL_EXPONENT = 128.0
# Share of mu for the noise that hides the error of the solver. Squares add, so this is 1/400 of
# mu^2.
_OUTPUT_MU = 0.05
# Share of a pure epsilon for that noise.
_OUTPUT_EPSILON = 0.01
# Largest share of delta for earlier releases and the Jacobians.
_MOST_OF_DELTA = 0.9


@dataclass(frozen=True, slots=True)
class GaussianLinearTerm:
    """A linear term with spherical Gaussian coefficients.

    `change` bounds the Euclidean change of the gradient when a record is replaced, on the scale of
    the sum. `mu` is the ratio of `change` to the standard deviation that is charged; the actual
    ratio is not larger. `log_ratio` bounds the logarithm of the ratio of the Jacobians. `vertices`
    are the numbers of vertices of the set of gradient changes, and their lengths over `change`.
    """

    change: float
    mu: float
    log_ratio: float
    vertices: Vertices
    pairwise: bool = False

    @property
    def sigma(self) -> float:
        """Standard deviation of every coefficient."""
        return self.change / self.mu * FAR_UP

    @property
    def event(self) -> ObjectivePerturbation:
        """The event of releasing the exact minimiser."""
        vertices = tuple((count, length * self.mu) for count, length in self.vertices)
        return ObjectivePerturbation(self.log_ratio, vertices, pairwise=self.pairwise)

    def variance(self, n_columns: int) -> float:
        """Return the variance of a coefficient, in a block of any size."""
        return self.sigma * self.sigma

    def norm_bound(self, n_blocks: int, n_columns: int) -> float:
        """Bound the norm of the term, except with a probability below 2^-184."""
        spread = math.sqrt(n_blocks * n_columns) + math.sqrt(2.0 * _TAIL_EXPONENT)
        return self.sigma * spread + self.rounding(n_blocks, n_columns)

    def rounding(self, n_blocks: int, n_columns: int) -> float:
        """Bound the distance between the rounded term and the real-valued one."""
        return _half_cell(self.sigma, _GAUSSIAN_GRID_BITS) * math.sqrt(n_blocks * n_columns)

    def perturb(self, value: FloatArray, source: ByteSource) -> FloatArray:
        """Add the term to `value`, rounded exactly to a public grid."""
        return rounded_gaussian(value, self.sigma, source=source, grid_bits=_GAUSSIAN_GRID_BITS)


@dataclass(frozen=True, slots=True)
class LaplaceLinearTerm(PureMechanism):
    """A linear term of independent blocks with density proportional to ``exp(-||z|| / scale)``.

    `change` bounds the sum of the Euclidean changes of the blocks of the gradient when a record is
    replaced, on the scale of the sum. `log_ratio` bounds the logarithm of the ratio of the
    Jacobians. `epsilon` is the pure privacy loss that is charged, including `log_ratio`.
    """

    change: float
    epsilon: float
    log_ratio: float

    @property
    def scale(self) -> float:
        """Scale of the density; the norm of a block of d numbers is Gamma(d, scale)."""
        return self.change / (self.epsilon - self.log_ratio) * FAR_UP

    def variance(self, n_columns: int) -> float:
        """Return the variance of a coefficient in a block of `n_columns`."""
        return (n_columns + 1) * self.scale * self.scale

    def norm_bound(self, n_blocks: int, n_columns: int) -> float:
        """Bound the norm of the term, except with a probability below 2^-184."""
        exponent = _TAIL_EXPONENT + math.log(n_blocks)
        block = n_columns + math.sqrt(2.0 * n_columns * exponent) + exponent
        return self.scale * math.sqrt(n_blocks) * block + self.rounding(n_blocks, n_columns)

    def rounding(self, n_blocks: int, n_columns: int) -> float:
        """Bound the distance between the rounded term and the real-valued one."""
        cell = _half_cell(self.scale * math.sqrt(n_columns), MOST_LAPLACE_GRID_BITS)
        return cell * math.sqrt(n_blocks * n_columns)

    def perturb(self, value: FloatArray, source: ByteSource) -> FloatArray:
        """Add one block of the term to each row of `value`, rounded exactly to a public grid."""
        bits = MOST_LAPLACE_GRID_BITS
        draw = [l2_laplace(block, self.scale, source=source, grid_bits=bits) for block in value]
        return np.stack(draw)


def _half_cell(size: float, bits: int) -> float:
    """Return half a cell of the grid that noise of this scale is rounded to."""
    return math.ldexp(0.5, math.frexp(size)[1] - 1 - bits)


LinearTerm: TypeAlias = GaussianLinearTerm | LaplaceLinearTerm | NoNoise


@dataclass(frozen=True, slots=True)
class PerturbedMinimiser:
    """The public numbers of one noisy minimiser, of a risk as it is or with a random linear term.

    `radius` bounds the norm of each separate exact minimiser, and `tolerance` is what the solver
    must certify for it. `sensitivity` is that of the noise `output`, all problems together. Without
    a linear term it bounds the distance between the *computed* minimisers of neighbouring data
    sets: the sensitivity of the exact minimisers plus twice the certified distance, rounded up.
    The random term `linear` is drawn once for each problem; then the output hides the error of the
    solver only. With `projects` the release is projected to the ball that contains all minimisers.
    """

    risk: Risk
    ridge: float
    radius: float
    tolerance: Tolerance
    sensitivity: float
    output: AnyNoise
    linear: LinearTerm | None = None
    optimizer: Optimizer = "auto"
    projects: bool = False

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        if self.linear is None:
            return (self.output.event,)
        copies, event = self.risk.n_stacked, self.linear.event
        return (event if copies == 1 else Repeated(event, copies), self.output.event)

    @property
    def public(self) -> dict[str, Any]:
        """Public facts for the record."""
        if self.linear is not None:
            return {"alpha": self.ridge, "certified_gradient": self.tolerance.certified}
        kind = type(self.output).__name__
        return {"alpha": self.ridge, "sensitivity": self.sensitivity, "mechanism": kind}

    def gradient_noise(self, curvatures: FloatArray) -> FloatArray:
        """Return how far noise moves the gradient of the risk at the release from minus the ridge.

        That is a standard deviation for each direction, on the scale of the sum, in which the
        regularised risk has the second derivatives `curvatures`.
        """
        if self.linear is None:
            return curvatures * noise_deviation(self.output, self.risk.n_released)
        if isinstance(self.linear, NoNoise):
            return np.zeros_like(curvatures)
        return np.full_like(curvatures, math.sqrt(self.linear.variance(self.risk.n_columns)))

    def run(self, door: Door) -> FloatArray:
        """Release the certified minimiser; see `Algorithm`.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one, of a record or of a person with all rows.
        - Released: the certified minimiser with noise, of the risk or of the risk plus a random
          linear term.
        - Sensitivity: the attribute `sensitivity`, that of the exact minimiser plus twice the
          certified distance, rounded up. With a linear term, the risk bounds the change of the
          gradient and the ratio of the Jacobians, and twice the certified distance is that of the
          output.
        - Proof: ``docs/proofs/stability.md``, Theorems 3 to 5 and section 5;
          ``docs/proofs/objective_perturbation.md``, sections 3 to 6.
        """
        # 1. If wanted, draw a random linear term for each separate problem.
        # 2. Minimise the regularised risk to a certified distance, on every data set.
        # 3. Release the point with noise for its sensitivity and twice that distance.
        # 4. If wanted, project it to the ball that contains all minimisers: post-processing.
        released = door.release(partial(self._minimise, door.permit), self.output)
        if self.risk.n_blocks > 1:
            # The vectors of the classes in a minimiser sum to zero, so that their mean is noise.
            released = released - released.mean(axis=0)
        largest = self.radius * math.sqrt(self.risk.n_stacked)
        return into_ball(released, largest) if self.projects else released

    def _minimise(self, permit: Permit, data: WeighedRows) -> FloatArray:
        """Return the certified minimiser, with linear terms, which would reveal the gradient.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: nothing here; the terms stay behind the door, as a part of the minimiser's
          noise.
        - Sensitivity: that of the gradient, which the event of a term states.
        - Proof: ``docs/proofs/objective_perturbation.md``, sections 3 and 4.
        """
        linear = None
        if self.linear is not None:
            zero = np.zeros((self.risk.n_blocks, self.risk.n_columns))
            linear = [permit.release(zero, self.linear) for _ in range(self.risk.n_stacked)]
        return minimisers(
            self.risk,
            data.rows,
            data.classes,
            data.weights,
            ridge=self.ridge,
            target=self.tolerance.target,
            radius=self.radius,
            linear=linear,
            optimizer=self.optimizer,
            surrogate=data.surrogate,
        )


def plan_objective(
    risk: Risk,
    ridge: float,
    epsilon: float,
    delta: float,
    *,
    earlier: tuple[Event, ...] = (),
    optimizer: Optimizer = "auto",
) -> PerturbedMinimiser:
    """Fix every public number of a perturbed minimisation.

    The loss must be monotone and have a bounded slope, without tilt or adversary. `ridge` is raised
    until the Jacobians take at most half of the budget (:meth:`Risk.ridge_floor`). `earlier` are
    the other releases within the same budget, with ``delta > 0``. Raise a `BudgetError` if they
    leave nothing at this regulariser (:func:`feasible_ridge`), and a `CertificateError` if rounding
    errors could be as large as the influence of a record; both depend on public numbers alone.

    References: ``docs/proofs/objective_perturbation.md``, sections 2 to 6; for pairs
    ``docs/proofs/pairwise.md``, sections 6 and 7.
    """
    _check_perturbable(risk)
    ridge = max(ridge, risk.ridge_floor(epsilon))
    linear: LinearTerm
    if math.isinf(epsilon):
        linear, left = NoNoise(), Budget.of(epsilon, delta)
    elif delta == 0:
        linear, left = _laplace_term(risk, ridge, epsilon)
    else:
        term = _gaussian_term(risk, risk.log_ratio(ridge))
        mu, output = _calibrate_term(term, risk.n_stacked, earlier, epsilon, delta)
        linear, left = replace(term, mu=mu), Budget.gaussian(output)
    return _with_output(risk, ridge, linear, left, optimizer=optimizer)


def sketch_objective(risk: Risk, ridge: float, epsilon: float, delta: float) -> PerturbedMinimiser:
    """Return an approximate plan, computed fifty times as fast; its noise is off by some per cent.

    It serves to compare regularisers, each at least `Risk.ridge_floor`, with a finite `epsilon`.
    Its events need not stay within the budget; no `PrivacyRecord` for this budget accepts them.
    """
    if delta == 0:
        return _with_output(risk, ridge, *_laplace_term(risk, ridge, epsilon))
    log_ratio, copies = risk.log_ratio(ridge), risk.n_stacked
    mu = gdp_mu(epsilon - copies * log_ratio, delta) / math.sqrt(copies)
    left = Budget.gaussian(_OUTPUT_MU * mu)
    return _with_output(risk, ridge, _gaussian_term(risk, log_ratio, mu), left)


def feasible_ridge(
    risk: Risk, ridge: float, epsilon: float, delta: float, earlier: tuple[Event, ...] = ()
) -> float | None:
    """Raise a regulariser until earlier releases and the Jacobian leave half of `delta`.

    `delta` is positive unless `earlier` is empty. Return None if no regulariser is large enough.
    """
    _check_perturbable(risk)
    ridge = max(ridge, risk.ridge_floor(epsilon))
    if not earlier or math.isinf(epsilon):
        return ridge

    def fits(log_ratio: float) -> bool:
        events = (*earlier, Repeated(_gaussian_term(risk, log_ratio).event, risk.n_stacked))
        return accounting.delta(events, epsilon) <= 0.5 * delta

    if not fits(0.0):
        return None
    while not fits(risk.log_ratio(ridge)):
        ridge *= 1.3
    return ridge


def _check_perturbable(risk: Risk) -> None:
    """Refuse a risk to which objective perturbation does not apply."""
    if not risk.perturbable:
        raise ValueError(
            "objective perturbation needs a monotone loss of bounded slope, without tilt and "
            "without adversary"
        )


def _gaussian_term(risk: Risk, log_ratio: float, mu: float = 0.0) -> GaussianLinearTerm:
    """Return the Gaussian linear term with the signal to noise ratio `mu`."""
    return GaussianLinearTerm(risk.gradient_change, mu, log_ratio, risk.vertices, risk.pairwise)


def _laplace_term(risk: Risk, ridge: float, epsilon: float) -> tuple[LaplaceLinearTerm, Budget]:
    """Return the Laplace linear term, and the budget for the noise of the output."""
    part, rest = Budget.of(epsilon, 0.0).split(_OUTPUT_EPSILON)
    share = rest.equal_parts(risk.n_stacked).epsilon
    return LaplaceLinearTerm(risk.block_change, share, risk.log_ratio(ridge)), part


@lru_cache(maxsize=256)
def _calibrate_term(
    term: GaussianLinearTerm, copies: int, earlier: tuple[Event, ...], epsilon: float, delta: float
) -> tuple[float, float]:
    """Divide the remaining budget between the linear term and the output; return the mu of both.

    The result is cached, because fits of a cross validation or a grid have the same arguments.
    """
    ceiling = gdp_mu(epsilon, delta)

    def events(mu: float, output: float) -> tuple[Event, ...]:
        event = replace(term, mu=mu).event
        return (*earlier, Repeated(event, copies), Gaussian(output))

    if accounting.delta(events(0.0, 0.0), epsilon) > _MOST_OF_DELTA * delta:
        raise BudgetError(
            f"the budget epsilon={epsilon!r}, delta={delta!r} is too small for this regulariser: "
            "the other releases use all of it. Use a larger epsilon or a larger regulariser"
        )
    output = _OUTPUT_MU * ceiling
    # With many vertices and a tiny epsilon, the noise of the output has to be larger.
    while accounting.delta(events(0.0, output), epsilon) > _MOST_OF_DELTA * delta:
        output /= 2.0

    mu = accounting.calibrate(
        lambda value: events(value, output), epsilon, delta, lower=0.0, upper=ceiling, rtol=1e-8
    )
    return mu, output


def _with_output(
    risk: Risk, ridge: float, linear: LinearTerm, left: Budget, *, optimizer: Optimizer = "auto"
) -> PerturbedMinimiser:
    """Plan a minimisation with a linear term; the budget `left` is for the noise of the output.

    Sensitivity of the output: ``docs/proofs/objective_perturbation.md``, section 6.
    """
    size = rounding = 0.0
    if not isinstance(linear, NoNoise):
        # A bound on the norm of the linear term is used, and not its norm: given the released
        # minimiser, the norm depends on the data.
        size = linear.norm_bound(risk.n_blocks, risk.n_columns)
        rounding = linear.rounding(risk.n_blocks, risk.n_columns)
    total = risk.total(ridge)
    radius = risk.radius(ridge) + size / total * UP
    goal = tolerance(risk, ridge, radius, risk.gradient_change, linear=size, linear_error=rounding)
    sensitivity = 2.0 * math.sqrt(risk.n_stacked) * goal.certified / total * UP
    output = left.noise(sensitivity)
    return PerturbedMinimiser(risk, ridge, radius, goal, sensitivity, output, linear, optimizer)
