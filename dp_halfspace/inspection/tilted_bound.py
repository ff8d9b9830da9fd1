"""How far a tilted model with output perturbation is from the best one, before any fit.

A function of public quantities alone, so it costs no privacy. Proof:
``docs/proofs/excess_risk.md``, section 10.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dp_halfspace.inspection._noise_cost import product, require
from dp_halfspace.inspection._robust_problem import (
    RobustProblem,
    chosen_factor,
    tilted_noise,
)
from dp_halfspace.inspection.population_bound import RiskBound
from dp_halfspace.optim.objectives.losses import Loss
from dp_halfspace.optim.risks.margin import MarginRisk


def tilted_risk_bound(
    n_samples: int,
    n_features: int,
    epsilon: float,
    delta: float,
    *,
    tilt: float,
    loss: str | Loss = "logistic",
    data_norm: float = 1.0,
    regularization: float | None = None,
    radius: float | None = None,
    gap: float = 0.0,
) -> RiskBound:
    r"""Bound the expected excess tilted risk of output perturbation.

    With :math:`f(w) = \frac1t \ln \frac1n \sum_i e^{t\,\ell(y_i \langle w, x_i\rangle)}`, the
    release is a minimiser (to within `gap`) of
    :math:`F(w) = f(w) + \frac{\lambda}{2} \lVert w \rVert^2` plus noise for the sensitivity of a
    tilted minimiser. The bound is on a mean over the noise, for every data set: of
    ``F(release) - min F``, or with `radius` of ``f(release) - f(w)`` for every ``w`` of norm at
    most `radius`.

    Parameters
    ----------
    n_samples, n_features : int
    epsilon, delta : float
        As for `strongly_convex_excess_risk`.
    tilt : float
        The tilt ``t``, at least 0; 0 is the mean.
    loss : str or Loss, default="logistic"
        Margin loss with a bounded slope, by name or as it is.
    data_norm : float, default=1.0
        Bound on the norm of a row, the constant column included.
    regularization : float or None, default=None
        The factor :math:`\lambda`. With `radius`, None takes the best one that a search finds.
    radius : float or None, default=None
        Norm of the models that the release is compared with.
    gap : float, default=0.0
        Public bound on ``F(solution) - min F`` that the optimiser always meets.

    Returns
    -------
    RiskBound

    Notes
    -----
    Privacy: a function of public quantities, so calling it costs nothing. It describes the
    release, it is not what makes the release private.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Lemmas 5.1 to 5.3, Theorems 5.1 and 5.2, with the sensitivity
    of ``docs/proofs/robust.md``. Theorem 5.2 has lost the square of its factor for the tilt.

    Examples
    --------
    >>> from dp_halfspace.inspection import tilted_risk_bound
    >>> bounds = [tilted_risk_bound(10_000, 20, 1.0, 1e-6, tilt=tilt, regularization=0.1)
    ...           for tilt in (0.0, 1.0, 3.0)]
    >>> [float(f"{bound.value:.2g}") for bound in bounds]
    [3e-05, 0.0012, 1.4]
    """
    problem = RobustProblem(n_samples, n_features, epsilon, delta, loss, data_norm, radius, gap)
    require("tilt", tilt, zero=True)
    if math.isinf(problem.loss.lipschitz):
        raise ValueError(f"the loss {problem.loss.name!r} has no bounded slope.")

    def bound(ridge: float) -> RiskBound:
        total = _risk(problem, tilt).sensitivity(ridge) + 2.0 * problem.distance(ridge)
        noise = tilted_noise(problem, tilt, total)
        return problem.total(noise, ridge, total, sampling=0.0, gap=gap)

    found = bound(chosen_factor(problem, regularization, bound))
    if radius is None and gap == 0.0:
        number = _published_tilted(problem, tilt, found)
        return replace(found, published=number if number >= found.value else None)
    return found


def _risk(problem: RobustProblem, tilt: float) -> MarginRisk:
    """Return the risk of the sample, all weights one."""
    n, d = problem.n_samples, problem.n_features
    return MarginRisk(
        problem.loss, n, d, 2, row_norm=problem.data_norm, block_rows=n, tilt=tilt, min_weight=1.0
    )


def _published_tilted(problem: RobustProblem, tilt: float, found: RiskBound) -> float:
    """Return the least number of section 5.1 of the paper, for its sensitivity of a minimiser."""
    ridge = found.regularization
    spread = _risk(problem, tilt).spread(ridge)
    influence = math.exp(min(tilt * spread, math.log(problem.n_samples)))
    # The paper's loss includes the regulariser, whose slope at the minimisers is that of the loss.
    slope = 2.0 * problem.loss.lipschitz * problem.data_norm
    bend = problem.loss.smoothness * problem.data_norm**2 + ridge + tilt * slope**2
    rough = (2.0 if problem.delta == 0 else math.sqrt(2.0)) * problem.rate
    fine = product(4.0 * bend / ridge, problem.rate**2)
    return slope**2 * influence / ridge * min(rough, fine)
