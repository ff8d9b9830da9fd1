"""A halfspace by the exponential mechanism over directions that do not depend on the data.

The mechanism of Nguyen, Ullman and Zakynthinou (2020), Algorithm 2, over a stream of directions
of which only the costs are kept, in stages: each looks round the direction that the one before
released. Pure epsilon for every set of directions. Proofs: ``docs/proofs/pure_halfspace.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace._sklearn import single_blas_thread
from dp_halfspace.algorithms.defaults import WIDE
from dp_halfspace.algorithms.selection.direction_counts import (
    IntegerRows,
    integer_rows,
    negative_counts,
    open_records,
    scores,
)
from dp_halfspace.algorithms.selection.directions import (
    MOST_COLUMNS,
    MOST_DIRECTIONS,
    DirectionStream,
    lattice_reach,
    unit_length,
)
from dp_halfspace.algorithms.selection.margin_counts import margin_costs
from dp_halfspace.optim.design.rows import Rows
from dp_halfspace.privacy.events import Event, Pure
from dp_halfspace.privacy.mechanisms import NoNoise, Permit
from dp_halfspace.privacy.selection import TalliedChoice

__all__ = [
    "DIRECTIONS_PAY",
    "DirectionDefaults",
    "DirectionPlan",
    "direction_defaults",
    "plan_directions",
]

FloatArray: TypeAlias = NDArray[np.float64]

# Below this n epsilon a search is more accurate than a perturbed objective. ``docs/defaults.md``.
DIRECTIONS_PAY = 1500.0
_DOWN = 1.0 - 2.0**-40
# Directions of a stage, fewer with many rows so that a stage takes seconds.
_WANTED, _FEWEST, _WORK = 50_000, 2_000, 1e9
# A stage is worth its share of the budget from this n epsilon on. ``docs/defaults.md``.
_PER_STAGE, _MOST_STAGES, _RADIUS = 350.0, 8, 1.0
# More features than this are projected.
_NARROW = 64


@dataclass(frozen=True, slots=True)
class DirectionPlan:
    """The public numbers of a search.

    Attributes
    ----------
    n_directions : int
        Of each stage.
    reach : int
        Largest entry of the lattice of the first stage; 0 for random directions.
    radii : tuple of float
        Of the cones of the later stages.
    choice : TalliedChoice or NoNoise
        Of each stage.
    seed : tuple of int
        Public randomness of the directions, drawn without the data.
    margin : float or None
        Margin of which a tenth is asked of a record; None counts errors.
    """

    n_columns: int
    n_directions: int
    constant: float | None
    spherical: bool
    reach: int
    radii: tuple[float, ...]
    choice: TalliedChoice | NoNoise
    seed: tuple[int, ...] = ()
    margin: float | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """What the search costs."""
        if isinstance(self.choice, NoNoise):
            return (Pure(math.inf),)
        return (self.choice.event,) * (1 + len(self.radii))

    @property
    def public(self) -> dict[str, Any]:
        """What a record says about it."""
        return {"private_metric": False}

    def run(
        self, rows: Rows, classes: NDArray[np.intp], weights: FloatArray, permit: Permit
    ) -> FloatArray:
        """Release a direction of norm one with few errors on unit rows; see `Plan`."""
        members = np.flatnonzero(classes == 0), np.flatnonzero(classes == 1)
        problem = _Problem(integer_rows(rows), members, weights, self.margin)
        stream = DirectionStream(
            self.n_columns,
            self.n_directions,
            (*self.seed, 0),
            constant=self.constant,
            spherical=self.spherical,
            reach=self.reach,
        )
        with single_blas_thread():
            found = _chosen(problem, stream, self.choice, permit)
            for stage, radius in enumerate(self.radii, start=1):
                around = DirectionStream(
                    self.n_columns,
                    self.n_directions,
                    (*self.seed, stage),
                    centre=found,
                    radius=radius,
                )
                found = _chosen(problem, around, self.choice, permit)
        return unit_length(found[:, None]).T


@dataclass(frozen=True, slots=True)
class DirectionDefaults:
    """What a search uses for one shape of problem and one budget.

    Attributes
    ----------
    bias : float
        Constant column, relative to rows divided by their public scale.
    n_directions : int
        Of each stage.
    n_components : int or None
        Dimension to project to by random signs; None for no projection.
    """

    bias: float
    n_directions: int
    n_stages: int
    n_components: int | None


def direction_defaults(n_samples: int, n_features: int, epsilon: float) -> DirectionDefaults:
    """Return the defaults for public sizes and a budget.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the features.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.halfspace_search import direction_defaults
    >>> direction_defaults(1000, 20, 1.0)
    DirectionDefaults(bias=0.5, n_directions=50000, n_stages=3, n_components=None)
    >>> direction_defaults(1000, 500, 1.0).n_components
    32
    """
    strength = min(n_samples * epsilon, 1e9)
    n_directions = min(max(round(_WORK / n_samples), _FEWEST), _WANTED)
    n_stages = min(max(round(strength / _PER_STAGE), 1), _MOST_STAGES)
    n_components, bias = None, 0.5
    if n_features > _NARROW:
        # The shorter what is left of the rows, the more the constant has to carry.
        bias = 2.0 if n_features > WIDE else 1.0
        power = 2 ** round(math.log2(max(math.sqrt(strength), 1.0)))
        n_components = min(max(power, _NARROW // 2), n_features)
    return DirectionDefaults(bias, n_directions, n_stages, n_components)


def plan_directions(
    n_columns: int,
    *,
    epsilon: float,
    n_directions: int,
    n_stages: int,
    constant: float | None = None,
    spherical: bool = False,
    lattice: bool = False,
    seed: tuple[int, ...] = (),
    margin: float | None = None,
) -> DirectionPlan:
    """Divide a budget between stages.

    Parameters
    ----------
    n_columns : int
        Of the unit rows, constant column included.
    epsilon : float
        Pure budget of the search; infinity takes the best direction of each stage.
    n_directions : int
        Candidates of each stage, at most a million.
    constant : float or None, default=None
        Value of the constant column before rows were normalised; None for no such column.
    spherical : bool, default=False
        Whether columns have no meaning of their own, as behind a random projection.
    lattice : bool, default=False
        Whether the first stage takes the directions of an integer lattice.
    seed : tuple of int, default=()
        Public randomness of the directions, drawn without the data.
    margin : float or None, default=None
        Public margin of unit rows. A record then counts when it has less than a tenth of it;
        with None, when it is wrong.

    Raises
    ------
    ValueError
        If the lattice has more points than `n_directions`, or there are more than 65536 columns.
        Nothing is ever left out silently.

    Examples
    --------
    >>> from dp_halfspace.algorithms.selection.halfspace_search import plan_directions
    >>> plan_directions(5, epsilon=0.5, n_directions=1000, n_stages=1).events
    (Exponential(epsilon=0.4999...),)
    """
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"directions have at most {MOST_COLUMNS} columns: project the rows first")
    reach = lattice_reach(n_columns, n_directions) if lattice else 0
    if lattice and reach == 0:
        raise ValueError(
            f"directions='lattice' has at least 3**{n_columns} points in {n_columns} dimensions, "
            f"more than n_directions={n_directions}: allow more, up to {MOST_DIRECTIONS}, project "
            "to fewer dimensions, or take random directions"
        )
    each = epsilon / n_stages * _DOWN
    choice = NoNoise() if math.isinf(epsilon) else TalliedChoice(each)
    radii = tuple(_RADIUS * 0.5**stage for stage in range(n_stages - 1))
    return DirectionPlan(
        n_columns, n_directions, constant, spherical, reach, radii, choice, seed, margin
    )


@dataclass(frozen=True, slots=True)
class _Problem:
    """The private data of a search."""

    rows: IntegerRows
    members: tuple[NDArray[np.intp], ...]
    weights: FloatArray
    margin: float | None = None


class _Costs:
    """The costs of the candidates of one stream, block by block."""

    def __init__(self, problem: _Problem, stream: DirectionStream) -> None:
        self._problem, self._stream = problem, stream
        self._open: list[tuple[NDArray[np.intp], int]] = []
        if problem.margin is None:
            # Far from the hyperplane of the centre all directions agree: those are counted once.
            self._open = [open_records(stream, problem.rows, index) for index in problem.members]

    def __call__(self, block: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the cost of every candidate of a block."""
        problem, paired = self._problem, self._stream.paired
        if problem.margin is not None:
            return margin_costs(
                block, problem.rows, problem.members, problem.weights, problem.margin, paired=paired
            )
        sizes = len(problem.members[0]), len(problem.members[1])
        first, second = (
            negative_counts(block, problem.rows, index) + known for index, known in self._open
        )
        errors = sizes[0] - first, second
        return scores(errors, sizes, problem.weights, paired=paired)


def _chosen(
    problem: _Problem, stream: DirectionStream, choice: TalliedChoice | NoNoise, permit: Permit
) -> FloatArray:
    """Run one exponential mechanism over a stream of directions."""
    n_costs = problem.rows.rows.shape[0] + 1
    costs_of = _Costs(problem, stream)
    # Four bytes for each candidate; the directions themselves are forgotten and made again.
    costs = [
        costs_of(stream.block(number)).astype(np.int32, casting="same_kind")
        for number in range(stream.n_blocks)
    ]
    tally = sum(np.bincount(part, minlength=n_costs) for part in costs)
    released = permit.release(np.asarray(tally, dtype=np.float64), choice)
    if isinstance(choice, NoNoise):
        released = np.array([np.flatnonzero(released)[0], 0.0])
    found = int(np.flatnonzero(np.concatenate(costs) == int(released[0]))[int(released[1])])
    ends = np.cumsum([len(part) for part in costs])
    number = int(np.searchsorted(ends, found, side="right"))
    return _candidate(stream.block(number), found - int(ends[number]) + len(costs[number]))


def _candidate(block: NDArray[np.float32], number: int) -> FloatArray:
    """Return a direction of a block, or the opposite of one."""
    width = block.shape[1]
    sign = 1.0 if number < width else -1.0
    return sign * block[:, number % width].astype(np.float64)
