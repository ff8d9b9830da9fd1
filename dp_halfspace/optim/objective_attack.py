"""Objective perturbation of a risk under attack.

The pull of the adversary on the coefficients moves with them, so the set of gradient changes
has no fixed corners. Gaussian noise sees it as a corner of its own that is shifted, and that
fits under unshifted ones; the curvature of the dual norm is kept small by a smoothing that is
in proportion to the noise. Proofs: ``docs/proofs/objective_perturbation.md``, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.erm import RidgeProblem
from dp_halfspace.optim.linear_noise import GaussianLinearTerm, LaplaceLinearTerm
from dp_halfspace.optim.objective_bounds import (
    Corners,
    gradient_change,
    jacobian_log_ratio,
    objective_ridge_floor,
)
from dp_halfspace.optim.objective_plan import (
    OUTPUT_EPSILON,
    LinearTerm,
    ObjectivePlan,
    calibrated,
    with_output,
)
from dp_halfspace.privacy import accounting
from dp_halfspace.privacy.events import Repeated
from dp_halfspace.privacy.mechanisms import NoNoise
from dp_halfspace.privacy.profiles import gdp_mu

__all__ = [
    "attacked_corners",
    "attacked_pure_change",
    "attacked_ridge",
    "corner_copies",
    "plan_attacked_objective",
]

# Rounding of the few operations that lead to a bound.
_UP = 1.0 + 2.0**-40
_CELLS = 500
# Widths that are tried: the smallest that raises the noise by the first factor at most, else
# the last one with the smallest of the other factors, about.
_WIDTHS = (0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
_PRICES = (1.03, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
_LENGTHS, _EXPONENT = 24, 100.0
# Below, squares of a smoothing would underflow.
_SMALLEST = 1e-100


def corner_copies(shift: float, length: float, longer: float) -> int:
    """Count the corners that a shifted Gaussian loss fits under.

    Parameters
    ----------
    shift : float
        Of the loss, in units of the mu of a corner of length one; positive.
    length : float
        Of the corner that is shifted, positive.
    longer : float
        Of the corners that are not; more than `length`.

    Returns
    -------
    int
        ``N`` such that ``P(m^2 / 2 + a + m max(Z, 0) > x) <= N P(M^2 / 2 + M Z > x)`` for all
        ``x >= 0`` and every standard deviation of the noise, with ``a``, ``m``, ``M`` the
        shift and the two lengths over it, and ``Z`` standard normal.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Lemma 10.

    Examples
    --------
    >>> from dp_halfspace.optim.objective_attack import corner_copies
    >>> [corner_copies(0.3, 0.5, longer) for longer in (0.6, 0.8, 1.6)]
    [4, 3, 3]
    """
    # Beyond the last point the longer corner has the heavier tail.
    end = shift * longer / (longer - length) * _UP
    # Both tails decrease: a cell is bounded by its ends. The exponents are squares.
    points = np.sqrt(np.linspace(shift * shift, end * end, _CELLS + 1))
    ratios = log_ndtr((shift - points[:-1]) / length) - log_ndtr(-points[1:] / longer)
    largest = max(math.log(2.0), -float(log_ndtr(-shift / longer)), float(ratios.max()))
    return math.ceil(math.exp(largest * (1.0 + 1e-9) + 1e-9))


@dataclass(frozen=True, slots=True)
class _Shifted:
    """The two shifted corners, in units of the change of the gradient.

    Attributes
    ----------
    length : float
    turning : float
        Shift by the pull of the adversary, which turns with the coefficients.
    bending : float
        Shift by the curvature of the dual norm, times the width of the smoothing.
    """

    length: float
    turning: float
    bending: float

    def corners(self, width: float, longer: float) -> Corners:
        """Replace both by longer ones that are not shifted."""
        shifts = (self.turning, self.turning + self.bending / width * _UP)
        count = sum(corner_copies(shift, self.length, longer) for shift in shifts)
        return ((1, 0.0), (count, longer), (1, 1.0))


def _shifted(problem: RidgeProblem) -> _Shifted:
    """Bound the shifted corners of an attack."""
    attack = problem.attack
    if attack is None:
        raise ValueError("the problem has no attack")
    d = attack.n_attacked
    mean = math.sqrt(d) if attack.norm == 2 else d * math.sqrt(2.0 / math.pi)
    scale = problem.loss.lipschitz * problem.max_weight / gradient_change(problem) * _UP
    return _Shifted(
        scale * (problem.row_norm + attack.reach),
        scale * attack.radius * mean * _UP,
        scale * attack.reach * math.sqrt(d) * _UP,
    )


def attacked_corners(problem: RidgeProblem, width: float, longer: float) -> Corners:
    """Count the corners of the set of gradient changes under attack, by their length.

    Parameters
    ----------
    problem : RidgeProblem
        With an attack; its smoothing does not matter.
    width : float
        Smoothing over ``sqrt(d) / k`` times the standard deviation of the linear term over
        the ridge, for ``d`` columns that are attacked.
    longer : float
        Length of the corners that stand for the shifted ones, in units of
        :func:`~dp_halfspace.optim.objective_bounds.gradient_change`.

    Returns
    -------
    tuple of (int, float)
        As :func:`~dp_halfspace.optim.objective_bounds.gradient_corners`.

    Raises
    ------
    ValueError
        If there is no attack, or `longer` is not more than the length of a shifted corner.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Theorem 11.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.objective_attack import attacked_corners
    >>> attack = Attack(0.1, 2, n_attacked=20)
    >>> problem = RidgeProblem(LOGISTIC, 10000, 21, 2, 1.0, 8192, attack=attack)
    >>> attacked_corners(problem, width=1.0, longer=0.7)
    ((1, 0.0), (7, 0.7), (1, 1.0))
    """
    shifted = _shifted(problem)
    if not longer > shifted.length:
        raise ValueError("the corners must be longer than the shifted ones")
    return shifted.corners(width, longer)


def _chosen(
    problem: RidgeProblem, log_ratio: float, epsilon: float, delta: float
) -> tuple[float, Corners]:
    """Choose the width of the smoothing, and corners for it; any choice is private."""
    copies = problem.n_stacked
    # In steps, so that a grid of ridges chooses once.
    share = round(copies * log_ratio / epsilon, 2) * epsilon / copies
    return _cheapest(_shifted(problem), share, copies, epsilon, delta)


@lru_cache(maxsize=256)
def _cheapest(
    shifted: _Shifted, log_ratio: float, copies: int, epsilon: float, delta: float
) -> tuple[float, Corners]:
    """Compare widths, and then larger noises, by what is spent at the best lengths."""
    mu = gdp_mu(epsilon - copies * log_ratio, delta) / math.sqrt(copies)
    tried = [(width, _PRICES[0]) for width in _WIDTHS]
    tried += [(_WIDTHS[-1], price) for price in _PRICES[1:]]
    for width, price in tried:
        shift = shifted.turning + shifted.bending / width
        # Shorter ones are needed in numbers of more than exp(_EXPONENT), about.
        least = math.hypot(1.02 * shifted.length, shift / math.sqrt(2.0 * _EXPONENT))
        lengths = np.geomspace(least, max(1.0, 2.0 * (shifted.length + shift)), _LENGTHS)

        def cost(corners: Corners, mu: float = mu / price) -> float:
            event = GaussianLinearTerm(1.0, mu, log_ratio, corners).event
            return accounting.delta([Repeated(event, copies)], epsilon)

        found = min((shifted.corners(width, float(x)) for x in lengths), key=cost)
        if cost(found) <= delta:
            break
    return width, found


def attacked_pure_change(problem: RidgeProblem, width: float) -> float:
    """Bound the change of the gradient under attack, curvature of the dual norm included.

    Parameters
    ----------
    problem : RidgeProblem
        With an attack; its smoothing does not matter.
    width : float
        Smoothing over ``d / k`` times the scale of the linear term over the ridge.

    Returns
    -------
    float
        Times the inverse of the scale, a bound on the part of the pure loss that the Jacobian of
        the margins does not bound.

    Raises
    ------
    ValueError
        If there is no attack.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, Theorem 9.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.objective_attack import attacked_pure_change
    >>> attack = Attack(0.2, 2, n_attacked=20)
    >>> problem = RidgeProblem(LOGISTIC, 10000, 21, 2, 1.0, 8192, attack=attack)
    >>> [round(attacked_pure_change(problem, width), 9) for width in (0.25, 0.1)]
    [2.0, 3.2]
    """
    attack = problem.attack
    if attack is None:
        raise ValueError("the problem has no attack")
    pulled = problem.row_norm + attack.reach * (1.0 + _UP / width)
    slope = problem.loss.lipschitz * problem.max_weight
    return max(gradient_change(problem), slope * pulled * _UP)


def _free_width(problem: RidgeProblem, attack: Attack) -> float:
    """Return the width from which on a purely private term has no price, at most one."""
    room = problem.row_norm - attack.reach
    return attack.reach / room if room > attack.reach else 1.0


def plan_attacked_objective(
    problem: RidgeProblem, ridge: float, epsilon: float, delta: float
) -> ObjectivePlan:
    """Fix every public number of a perturbed minimisation under attack.

    Parameters
    ----------
    problem : RidgeProblem
        With an attack and no tilt; a smooth loss that never increases and has a bounded slope.
        Its smoothing is used for infinite `epsilon` only.
    ridge : float
        Coefficient of the regulariser, per mean loss; raised to
        :func:`~dp_halfspace.optim.objective_bounds.objective_ridge_floor`.
    epsilon, delta : float
        Budget of the release; ``delta=0`` asks for pure epsilon.

    Returns
    -------
    ObjectivePlan
        Its problem has the smoothing that the privacy rests on.

    Raises
    ------
    CertificateError
        If floating-point error could be as large as the influence of a record. Decided from
        public numbers, before any data are read.
    ValueError
        If the problem does not qualify.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, section 11.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.objective_attack import plan_attacked_objective
    >>> attack = Attack(0.1, 2, n_attacked=20)
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, 1.0, 8192, attack=attack)
    >>> plan = plan_attacked_objective(problem, 1e-3, epsilon=1.0, delta=1e-6)
    >>> round(plan.linear.sigma, 2), round(plan.problem.attack.smoothing, 2)
    (8.71, 0.7)
    """
    attack, loss = problem.attack, problem.loss
    if attack is None or problem.tilt:
        raise ValueError("these bounds are for an attack, and for no tilt")
    if not (loss.smooth and math.isfinite(loss.lipschitz)):
        raise ValueError("objective perturbation needs a smooth, monotone, Lipschitz loss")
    ridge = max(ridge, objective_ridge_floor(problem, epsilon))
    if math.isinf(epsilon):
        return with_output(problem, ridge, NoNoise(), 0.0)
    log_ratio, copies = jacobian_log_ratio(problem, ridge), problem.n_stacked
    linear: LinearTerm
    if delta == 0:
        width, budget = _free_width(problem, attack), OUTPUT_EPSILON * epsilon
        # Rounded down, so that the exact sum of all parts is within the budget.
        share = (epsilon - budget) / copies * (1.0 - 2.0**-50)
        linear = LaplaceLinearTerm(attacked_pure_change(problem, width), share, log_ratio)
        size = linear.scale * attack.n_attacked
    else:
        width, corners = _chosen(problem, log_ratio, epsilon, delta)
        mu, budget = calibrated(
            log_ratio, corners, copies=copies, earlier=(), epsilon=epsilon, delta=delta
        )
        linear = GaussianLinearTerm(gradient_change(problem), mu, log_ratio, corners)
        size = linear.sigma * math.sqrt(attack.n_attacked)
    smoothing = width * size / (attack.k * ridge * problem.n_samples) * _UP
    smoothed = replace(problem, attack=attack.smoothed(max(smoothing, _SMALLEST)))
    return with_output(smoothed, ridge, linear, budget)


def attacked_ridge(
    problem: RidgeProblem, ridge: float, epsilon: float, delta: float, *, smoothing: float
) -> float:
    """Raise a regulariser until the dual norm has at most a given smoothing.

    Parameters
    ----------
    problem, ridge, epsilon, delta
        As in :func:`plan_attacked_objective`.
    smoothing : float
        In the units of the coefficients. Where it is larger than they are, the adversary is
        hardly seen.

    Returns
    -------
    float
        Per mean loss; `ridge` itself for infinite `epsilon`.

    References
    ----------
    ``docs/proofs/objective_perturbation.md``, section 11: the smoothing is in proportion to the
    noise over the regulariser.

    Examples
    --------
    >>> from dp_halfspace.optim import LOGISTIC, RidgeProblem
    >>> from dp_halfspace.optim.attack import Attack
    >>> from dp_halfspace.optim.objective_attack import attacked_ridge
    >>> attack = Attack(0.1, 2, n_attacked=20)
    >>> problem = RidgeProblem(LOGISTIC, 10000, 20, 2, 1.0, 8192, attack=attack)
    >>> ridge = attacked_ridge(problem, 1e-3, epsilon=1.0, delta=1e-6, smoothing=0.5)
    >>> 1e-3 < ridge < 1e-2
    True
    """
    if math.isinf(epsilon):
        return ridge
    plan = plan_attacked_objective(problem, ridge, epsilon, delta)
    attack = plan.problem.attack
    assert attack is not None
    # A larger regulariser leaves more to the noise, so this is enough.
    return plan.ridge * max(1.0, attack.smoothing / smoothing)
