"""Choose the parameters of a model among Gaussian vectors by the exponential mechanism, in stages.

Each stage is centred at the candidate that the previous stage released, so candidates depend on the
data only through released values: ``docs/proofs/pure_network.md``, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dp_halfspace.privacy.accounting import calibrate
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event, Exponential
from dp_halfspace.privacy.mechanisms import ExponentialChoice, NoNoise
from dp_halfspace.rows.blocks import FloatArray

# More candidates would take minutes, and hardly improve on a million.
MOST_CANDIDATES = 10**6
_CANDIDATES_PER_BLOCK = 256
# Product of records and epsilon for which one more stage is worth its share of the budget, and the
# most stages.
STRENGTH_PER_STAGE = 200.0
MOST_STAGES = 8
# Largest number of columns that are searched by default; random candidates cover few dimensions.
MOST_DIMENSIONS = 12

# Maps candidates, the rows of a matrix, to their losses.
Losses: TypeAlias = Callable[[FloatArray], FloatArray]


def default_stages(strength: float, per_stage: float = STRENGTH_PER_STAGE) -> int:
    """Return the number of stages for a product of records and epsilon."""
    return round(min(max(strength / per_stage, 1), MOST_STAGES))


@dataclass(frozen=True, slots=True)
class StagedSearch:
    """The public numbers of a search.

    Each stage has `n_candidates` and is charged `mechanism`. With an infinite radius, candidates
    are drawn around zero; otherwise a candidate is ``(centre + radius * g) / sqrt(1 + radius^2)``
    with Gaussian ``g``.
    """

    n_candidates: int
    radii: tuple[float, ...]
    mechanism: ExponentialChoice | NoNoise

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of the search."""
        return (self.mechanism.event,) * len(self.radii)


def plan_search(
    budget: Budget,
    *,
    n_candidates: int,
    n_stages: int,
    sensitivity: float,
    radius: float = 1.0,
    shrink: float = 0.7,
) -> StagedSearch:
    """Split a budget into equal stages, for losses of bounded sensitivity.

    `radius` is that of the second stage, and `shrink` the ratio of the radii of consecutive stages.
    """
    radii = (math.inf, *(radius * shrink**stage for stage in range(n_stages - 1)))
    if budget.is_infinite:
        return StagedSearch(n_candidates, radii, NoNoise())
    epsilon, delta = budget.epsilon, budget.delta
    share = Budget.of(epsilon, 0.0).equal_parts(n_stages).epsilon
    if delta > 0:

        def events(each: float) -> tuple[Event, ...]:
            return (Exponential(each),) * n_stages

        share = calibrate(events, epsilon, delta, lower=share, upper=8.0 * share)
    return StagedSearch(n_candidates, radii, ExponentialChoice(sensitivity, share))


def run_search(plan: StagedSearch, size: int, losses: Door, *, seed: int) -> FloatArray:
    """Choose a candidate with `size` parameters and a small loss, privately.

    Behind the door of `losses` is a function that maps candidates, the rows of a matrix, to their
    losses, which one record changes by at most the sensitivity of the plan. Its permit is charged
    with the events of the plan, and `seed` is public.

    Notes
    -----
    **Guarantee.**

    - Adjacency: any relation under which no loss changes by more than the sensitivity of the plan.
    - Released: one candidate of each stage.
    - Sensitivity: that of the plan.
    - Proof: ``docs/proofs/pure_network.md``, section 2.
    """
    # 1. Draw the candidates of a stage around the released candidate of the previous stage.
    # 2. Choose one by the exponential mechanism; only the utilities are kept.
    # 3. Draw its block again, and search around the chosen candidate in the next stage.
    centre = np.zeros(size)
    n = plan.n_candidates
    widths = [min(_CANDIDATES_PER_BLOCK, n - lo) for lo in range(0, n, _CANDIDATES_PER_BLOCK)]
    for stage, radius in enumerate(plan.radii):
        blocks = [((seed, stage, k), width, centre, radius) for k, width in enumerate(widths)]
        found = losses.choose(partial(_utilities, blocks), plan.mechanism)
        number, place = divmod(found, _CANDIDATES_PER_BLOCK)
        centre = candidate_block(*blocks[number])[place]
    return centre


def _utilities(blocks: Sequence[tuple[Any, ...]], losses: Losses) -> FloatArray:
    """Return minus the losses of the candidates of some blocks."""
    return np.concatenate([-losses(candidate_block(*block)) for block in blocks])


def candidate_block(
    seed: tuple[int, ...], width: int, centre: FloatArray, radius: float
) -> FloatArray:
    """Return candidates; repeated calls return the same ones.

    The last entry of the public `seed` is the number of the block. The first candidate of block 0
    is the centre itself, so that a stage can keep the result of the previous one. With an infinite
    `radius`, candidates do not depend on the centre.
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
