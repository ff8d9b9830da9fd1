"""Choose the direction of a halfspace by the exponential mechanism, in stages.

The directions of a stage depend on the data only through released values, so every stage is one
exponential mechanism, for any number of directions. It is that of Nguyen, Ullman and Zakynthinou
(2020), Algorithm 2, and stores only the costs: ``docs/proofs/pure_halfspace.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn_compat import single_blas_thread
from dp_halfspace.data.record_weights import WeighedRows
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.papers.staged_search import default_stages
from dp_halfspace.papers.training import LinearTraining, Problem
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.exponential import TalliedChoice
from dp_halfspace.privacy.mechanisms import NoNoise
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.blocks import FloatArray
from dp_halfspace.rows.directions import (
    FEWEST,
    MOST_COLUMNS,
    WORK,
    DirectionStream,
    integer_rows,
    located,
    margin_costs,
    open_records,
    unit_length,
)

# Number of directions of a stage.
_WANTED_DIRECTIONS = 50_000
# Value of n epsilon from which one more stage is worth its fraction of the budget:
# ``docs/defaults.md``.
_STRENGTH_PER_STAGE = 350.0
# Radius of the cone of the second stage.
_CONE_RADIUS = 1.0
# Largest number of features that are not projected.
_WIDEST_UNPROJECTED = 64


@dataclass(frozen=True, slots=True)
class DirectionSearch:
    """The public numbers of a search.

    Each stage has `n_directions` and is charged `choice`; `radii` are those of the cones of later
    stages. `constant` is the value of the constant column before rows were normalised; directions
    are `spherical` if columns have no meaning of their own, as after a random projection. `seed` is
    public randomness. A record counts as an error if its margin is less than a tenth of `margin`
    or, with None, if it is misclassified.
    """

    n_columns: int
    n_directions: int
    radii: tuple[float, ...]
    choice: TalliedChoice | NoNoise
    constant: float | None = None
    spherical: bool = False
    seed: tuple[int, ...] = ()
    margin: float | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events of the search."""
        return (self.choice.event,) * (1 + len(self.radii))

    def run(self, door: Door) -> FloatArray:
        """Release a direction of norm one with few errors on normalised rows; see `Algorithm`."""
        # 1. Round the rows to integers, so that every score is exact.
        # 2. Choose among directions of the whole sphere by their weighted errors.
        # 3. In every later stage, choose among directions of a cone around the released one.
        door = door.map(lambda data: replace(data, rows=integer_rows(data.rows)))
        cone = DirectionStream(self.n_columns, self.n_directions, self.seed)
        whole = replace(
            cone, seed=(*self.seed, 0), constant=self.constant, spherical=self.spherical
        )
        with single_blas_thread():
            found = self._choose(door, whole)
            for stage, radius in enumerate(self.radii, start=1):
                seed = (*self.seed, stage)
                found = self._choose(door, replace(cone, seed=seed, centre=found, radius=radius))
        return unit_length(found[:, None]).T

    def _choose(self, door: Door, stream: DirectionStream) -> FloatArray:
        """Run one exponential mechanism over a stream of directions.

        Notes
        -----
        **Guarantee.**

        - Adjacency: replace-one.
        - Released: the number of one direction of a public list.
        - Sensitivity: 1 for the cost of each direction, which is an integer.
        - Proof: ``docs/proofs/pure_halfspace.md``, sections 1 to 3.
        """
        found = door.choose(partial(self._costs, stream), self.choice, is_cost=True)
        number, place = located(found, stream.lengths)
        # The chosen direction is generated again. The directions of a block are followed by their
        # negatives.
        block = stream.block(number)
        opposite, column = divmod(place, block.shape[1])
        return (-1.0 if opposite else 1.0) * block[:, column].astype(np.float64)

    def _costs(self, stream: DirectionStream, data: WeighedRows) -> NDArray[np.int32]:
        """Return the costs of the candidates of a stream, four bytes for each."""
        members: Sequence[NDArray[np.intp]] = [np.flatnonzero(data.classes == k) for k in (0, 1)]
        how: dict[str, Any] = {"paired": stream.paired}
        if self.margin is None:
            # All directions agree on records far from the hyperplane of the centre, so these are
            # counted once.
            left = [open_records(stream, data.rows, index) for index in members]
            members, how["settled"] = zip(*left, strict=True)
        given = data.rows, members, np.asarray(data.weights), self.margin or 0.0
        costs = (margin_costs(stream.block(k), *given, **how) for k in range(stream.n_blocks))
        return np.concatenate([part.astype(np.int32, casting="same_kind") for part in costs])


def _default_rows(n_features: int, strength: float) -> tuple[float, int | None]:
    """Return the constant column and the number of random signs to which rows are projected.

    The constant column stands next to rows divided by their public scale; None is no projection.
    """
    if n_features <= _WIDEST_UNPROJECTED:
        return 0.5, None
    power = 2 ** round(math.log2(max(math.sqrt(strength), 1.0)))
    n_components = min(max(power, _WIDEST_UNPROJECTED // 2), n_features)
    # The shorter the projected rows are, the more the constant column contributes to a score.
    return (2.0 if n_features > WIDEST else 1.0), n_components


def plan_directions(
    n_columns: int, *, epsilon: float, n_directions: int, n_stages: int, **others: Any
) -> DirectionSearch:
    """Divide a pure DP budget among stages; an infinite one takes the best direction of each.

    The `others` are further public numbers of `DirectionSearch`.
    """
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"directions have at most {MOST_COLUMNS} columns: project the rows first")
    each = Budget.of(epsilon, 0.0).equal_parts(n_stages).epsilon
    # A record moves the number of errors of each direction by at most one:
    # `docs/proofs/pure_halfspace.md`, Lemma 3.
    choice = NoNoise() if math.isinf(epsilon) else TalliedChoice(each)
    radii = tuple(_CONE_RADIUS * 0.5**stage for stage in range(n_stages - 1))
    return DirectionSearch(n_columns, n_directions, radii, choice, **others)


def plan_direction_training(
    problem: Problem,
    budget: Budget,
    *,
    n_directions: int | None = None,
    n_stages: int | None = None,
    margin: float | None = None,
) -> LinearTraining:
    """Plan a search among data-independent directions, pure DP, for two classes.

    A record counts if its margin is below a tenth of `margin`; with None only errors count.
    """
    epsilon, facts = budget.epsilon, problem.facts
    strength = min(facts.n_privacy_units * epsilon, 1e9)
    constant, n_components = _default_rows(facts.n_features, strength)
    linear_map, constant_column = problem.draw_map(n_components), problem.constant(constant)
    affordable = max(round(WORK / facts.n_privacy_units), FEWEST)
    # Without noise the result is a function of the data, so the directions are fixed.
    seed = 0 if problem.seed is None and math.isinf(epsilon) else problem.seed
    words = public_generator(seed, "directions").integers(2**32, size=4).tolist()
    plan = plan_directions(
        problem.n_columns(linear_map),
        epsilon=epsilon,
        n_directions=n_directions or min(affordable, _WANTED_DIRECTIONS),
        n_stages=n_stages or default_stages(strength, _STRENGTH_PER_STAGE),
        constant=constant_column,
        spherical=linear_map is not None,
        seed=tuple(words),
        margin=margin,
    )
    return LinearTraining(
        problem, "exponential_mechanism", plan, None, 0.0, constant_column, linear_map
    )
