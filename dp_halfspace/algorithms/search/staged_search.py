"""A model by the exponential mechanism over seeded candidates, refined in stages.

Candidates are Gaussian vectors from public randomness: the first stage draws them from
everywhere, each later one round the candidate that the stage before released. They never depend
on the data but through what was released, so every stage is one exponential mechanism, for
every number of candidates. Proof: ``docs/proofs/pure_network.md``, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dp_halfspace.algorithms.engine.plan import FloatArray
from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event, Exponential, Pure
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise, Permit

MOST_CANDIDATES = 10**6
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The public numbers of a search.

    Each stage has `n_candidates` and is charged `mechanism`. The radius of a stage is infinite for
    candidates from everywhere; else a candidate is ``(centre + radius * g) / sqrt(1 + radius^2)``
    with Gaussian ``g``.
    """

    n_candidates: int
    radii: tuple[float, ...]
    mechanism: ExponentialChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """What the search costs."""
        if isinstance(self.mechanism, NoNoise):
            return (Pure(math.inf),)
        return (self.mechanism.event,) * len(self.radii)


def plan_search(
    budget: Budget,
    *,
    n_candidates: int,
    n_stages: int,
    sensitivity: float,
    radius: float = 1.0,
    shrink: float = 0.7,
) -> SearchPlan:
    """Split a budget into equal stages, for losses of a bounded sensitivity of each.

    `radius` is that of the second stage, `shrink` the ratio of one to the next.
    """
    if not 1 <= n_candidates <= MOST_CANDIDATES:
        raise ValueError(f"n_candidates must be from 1 to {MOST_CANDIDATES}, got {n_candidates}")
    radii = (math.inf, *(radius * shrink**stage for stage in range(n_stages - 1)))
    if budget.is_infinite:
        return SearchPlan(n_candidates, radii, NoNoise())
    epsilon, delta = budget.epsilon, budget.delta
    share = Budget.of(epsilon, 0.0).equal_parts(n_stages).epsilon
    if delta > 0:

        def events(each: float) -> tuple[Event, ...]:
            return (Exponential(each),) * n_stages

        share = calibrate(events, epsilon, delta, lower=share, upper=8.0 * share)
    return SearchPlan(n_candidates, radii, ExponentialChoice(sensitivity, share))


def run_search(
    plan: SearchPlan,
    size: int,
    losses: Callable[[FloatArray], FloatArray],
    permit: Permit,
    *,
    seed: int,
) -> FloatArray:
    """Choose a candidate of `size` parameters of small loss: private, free to be used.

    `losses` turns candidates, the rows of a matrix, into their private losses, which one record
    changes by at most the sensitivity of the plan; `permit` is charged with the events of the
    plan; `seed` is public.
    """
    # 1. Draw the candidates of a stage round what the stage before released.
    # 2. Choose one by the exponential mechanism: only the utilities are kept.
    # 3. Draw its block again to know it, and look round it in the next stage.
    centre = np.zeros(size)
    n = plan.n_candidates
    widths = [min(_BLOCK, n - lo) for lo in range(0, n, _BLOCK)]
    for stage, radius in enumerate(plan.radii):
        blocks = [((seed, stage, k), width, centre, radius) for k, width in enumerate(widths)]
        utilities = np.concatenate([-losses(candidate_block(*block)) for block in blocks])
        number, place = divmod(permit.choose(utilities, plan.mechanism), _BLOCK)
        centre = candidate_block(*blocks[number])[place]
    return centre


def candidate_block(
    seed: tuple[int, ...], width: int, centre: FloatArray, radius: float
) -> FloatArray:
    """Return candidates, the same whenever they are asked for.

    The last entry of the public `seed` is the number of the block. The first candidate of block
    0 is the centre itself, so that no stage needs to lose what was found; with an infinite
    `radius` candidates do not depend on the centre.
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    drawn = rng.standard_normal((width, len(centre)))
    if math.isinf(radius):
        return drawn
    drawn *= radius
    drawn += centre
    drawn /= math.hypot(1.0, radius)
    if seed[-1] == 0:
        drawn[0] = centre
    return drawn
