"""Stochastic minimisers of Lowy and Razaviyayn (2021), which the certificate checks.

Privacy does not depend on them: their results are improved until the gradient is small. The records
that they read are drawn from a public seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dp_halfspace.optim.solvers import FiniteSum
from dp_halfspace.rows.blocks import FloatArray, into_ball

# Most steps by default, even if the corollaries of the paper ask for more.
_MOST_STOCHASTIC_STEPS = 4_000
# Most steps of a pass over the data; larger tables are read in batches.
_STEPS_PER_PASS = 1_000


def stochastic_subgradients(
    F: FiniteSum, start: FloatArray, *, n_steps: int | None = None, seed: int = 0
) -> FloatArray:
    r"""Take projected subgradient steps on records drawn with replacement.

    Step t has the size :math:`2/(\mu(t+1))`; the points at which gradients are taken are averaged
    with weights in proportion to t. The mean excess is at most :math:`2L^2/(\mu(T+1))` for T
    gradients. The listing begins with a step of twice this size and averages the points after the
    steps, for which the theorem that it cites does not state this bound.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Algorithm 2 and Corollary 3.1, which asks for
    ``dp_halfspace.theory.sgd_iterations`` steps; by default they are at most 4,000, of batches
    where there are more than 1,000 records.
    """
    n, mu = F.n_samples, F.strong_convexity
    steps = min(2 * n * n, _MOST_STOCHASTIC_STEPS) if n_steps is None else n_steps
    batch = math.ceil(n / _STEPS_PER_PASS) if n_steps is None else 1
    rng = np.random.default_rng(seed)
    w, total = into_ball(start, F.radius), np.zeros(F.size)
    for t in range(1, steps + 1):
        total += t * w
        gradient = F.gradient_of(rng.integers(n, size=batch), w)
        w = into_ball(w - 2.0 / (mu * (t + 1)) * gradient, F.radius)
    return total * (2.0 / (steps * (steps + 1)))


def katyusha(
    F: FiniteSum, start: FloatArray, *, n_epochs: int | None = None, seed: int = 0
) -> FloatArray:
    r"""Take accelerated steps with reduced variance: a full gradient for each pass over the data.

    The listing prints :math:`\sqrt{3L}` in :math:`\tau_1`, where L is the smoothness of the cited
    paper, :math:`\beta` elsewhere in the listing.

    References
    ----------
    A. Lowy and M. Razaviyayn (2021), Algorithm 3 and Corollary 3.2; Z. Allen-Zhu, "Katyusha: the
    first direct acceleration of stochastic gradient methods", 2018. Batches where there are more
    than 1,000 records.
    """
    n, mu = F.n_samples, F.strong_convexity
    batch = math.ceil(n / _STEPS_PER_PASS)
    length = 2 * math.ceil(n / batch)
    if n_epochs is None:
        n_epochs = max(_MOST_STOCHASTIC_STEPS // length, 1)
    beta = max(F.smoothness - mu, mu)
    tau = min(math.sqrt(length * mu / (3.0 * beta)), 0.5)
    gamma = 1.0 / (3.0 * tau * beta)
    rng = np.random.default_rng(seed)
    y = z = anchor = into_ball(start, F.radius)
    for _ in range(n_epochs):
        full = F.gradient(anchor) - mu * anchor
        total, weight, mass = np.zeros(F.size), 1.0, 0.0
        for _ in range(length):
            w = tau * z + 0.5 * anchor + (0.5 - tau) * y
            index = rng.integers(n, size=batch)
            change = F.gradient_of(index, w) - F.gradient_of(index, anchor) - mu * (w - anchor)
            gradient = full + change
            z = (z - gamma * gradient) / (1.0 + gamma * mu)
            y = (3.0 * beta * w - gradient) / (3.0 * beta + mu)
            total, mass = total + weight * y, mass + weight
            weight *= 1.0 + gamma * mu
            if weight > 1e100:  # Only ratios of the weights matter, so this avoids an overflow.
                total, mass, weight = total / weight, mass / weight, 1.0
        anchor = total / mass
    return anchor


STOCHASTIC: dict[str, Callable[[FiniteSum, FloatArray], FloatArray]] = {
    "sgd": stochastic_subgradients,
    "katyusha": katyusha,
}


def minimiser_of(optimizer: Any) -> Any:
    """Return the callable of a name in `STOCHASTIC`, and anything else as it is."""
    return optimizer if callable(optimizer) else STOCHASTIC.get(optimizer, optimizer)
