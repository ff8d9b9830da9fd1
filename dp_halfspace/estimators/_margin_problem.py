"""What AdaptiveMarginClassifier is asked, and one way to fit it, as public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.optim.attack import Attack
from dp_halfspace.optim.rows import Rows, block_size
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import LinearMap, draw_projection

__all__ = ["Problem", "Training", "asked_margin"]

FloatArray: TypeAlias = NDArray[np.float64]
Run: TypeAlias = Callable[[Rows, NDArray[np.intp], FloatArray, Permit], FloatArray]

# Up to here the metric still applies to what was projected.
_COMPONENTS = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """What is public about a fit before a way is chosen.

    Attributes
    ----------
    n_samples, n_features, n_classes : int
    is_sparse : bool
        Storage of the features.
    intercept : float or None
        Factor of the constant column, None for no such column.
    projection : str or None
        A key of `PROJECTIONS`, ``"auto"`` or None.
    n_components : int or None
    averaged : bool
        Whether iterates are averaged.
    seed : int or None
        Of public random objects.
    attack : Attack or None, default=None
        In units of the public scale of a row.
    """

    n_samples: int
    n_features: int
    n_classes: int
    is_sparse: bool
    intercept: float | None
    projection: str | None
    n_components: int | None
    averaged: bool
    seed: int | None
    attack: Attack | None = None

    def drawn(self, wanted: int | None) -> LinearMap | None:
        """Draw the projection; `wanted` is the number of components of the automatic one."""
        kind = self.projection
        if kind == "auto" and (wanted or self.n_components):
            kind = "rademacher"
        if kind is None or kind == "auto":
            return None
        size = self.n_components or wanted or _COMPONENTS
        rng = public_generator(self.seed, "projection")
        return draw_projection(kind, self.n_features, size, rng)

    def n_columns(self, linear_map: LinearMap | None) -> int:
        """Columns of the rows that a solver sees."""
        features = self.n_features if linear_map is None else linear_map.n_components
        return features + (self.intercept is not None)

    def block_rows(self, linear_map: LinearMap | None) -> int:
        """Rows that are summed at a time."""
        if linear_map is None:
            return block_size(self.n_samples, self.n_features, is_sparse=self.is_sparse)
        return block_size(self.n_samples, linear_map.n_components, is_sparse=False)


@dataclass(frozen=True, slots=True)
class Training:
    """One way to fit, fixed by public numbers.

    Attributes
    ----------
    solver : str
        The one that is used.
    margin : float or None
        The margin that it is built for; None when it needs none.
    shift : float
        Score at which a record is content.
    bias : float or None
        Constant column, relative to rows divided by their public scale.
    linear_map : LinearMap or None
    n_columns : int
        Columns of the rows, constant column included.
    events : tuple of Event
        What a run costs.
    run : callable
        From unit rows, codes, class weights and permit to private coefficients.
    private_metric : bool
    attack : Attack or None
        In the units of the rows, which are then scaled alike and not brought to norm one.
    """

    solver: str
    margin: float | None
    shift: float
    bias: float | None
    linear_map: LinearMap | None
    n_columns: int
    events: tuple[Event, ...]
    run: Run
    private_metric: bool = False
    attack: Attack | None = None


def asked_margin(training: Training, released: FloatArray) -> float:
    """Return the margin of unit rows below which a record still pulls at the model.

    Parameters
    ----------
    training : Training
    released : ndarray of shape (1, n_columns) or (K, n_columns)
        Private coefficients for unit rows.

    Returns
    -------
    float
        The known margin, or the score that the loss asks for over the norm of the released
        coefficients (the largest difference of two classes), at most one: post-processing.
    """
    if training.margin is not None:
        return training.margin
    gram = released @ released.T
    squares = np.diag(gram)
    largest = float(squares.max())
    if len(released) > 1:
        largest = float((squares[:, None] + squares[None, :] - 2.0 * gram).max())
    norm = math.sqrt(max(largest, 0.0))
    if norm == 0.0:
        return 1.0
    attack = training.attack
    lowered = 0.0 if attack is None else attack.radius * attack.dual_norm(released[0])
    return min(1.0, (training.shift + lowered) / norm)
