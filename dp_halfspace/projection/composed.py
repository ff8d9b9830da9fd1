"""The random maps by the names that estimators take, and features with one of them behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace.projection.base import LinearMap, SingleArray, within_unit_ball
from dp_halfspace.projection.fourier import FeatureMap
from dp_halfspace.projection.hadamard import draw_hadamard
from dp_halfspace.projection.jl import draw_rademacher

PROJECTIONS: dict[str, Callable[[int, int, np.random.Generator], LinearMap]] = {
    "rademacher": draw_rademacher,
    "hadamard": draw_hadamard,
}


def draw_projection(
    kind: str, n_features: int, n_components: int, rng: np.random.Generator
) -> LinearMap | None:
    """Draw the map of this name, or None where it would not make the rows shorter.

    Parameters
    ----------
    kind : str
        A key of `PROJECTIONS`.
    n_features, n_components : int
    rng : numpy.random.Generator
        Public randomness.

    Returns
    -------
    LinearMap or None
        None stands for the identity: with as many components as features a map only loses margin.

    Notes
    -----
    Privacy: the map does not depend on data.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace.projection import draw_projection
    >>> draw_projection("hadamard", 10, 4, np.random.default_rng(0)).n_components
    4
    >>> draw_projection("hadamard", 10, 10, np.random.default_rng(0)) is None
    True
    """
    if n_components >= n_features:
        return None
    return PROJECTIONS[kind](n_features, n_components, rng)


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedFeatures:
    """A feature map, a linear map after it, and clipping to norm one."""

    feature_map: FeatureMap
    linear_map: LinearMap

    @property
    def n_features_in(self) -> int:
        """Number of columns that `apply` takes."""
        return self.feature_map.n_features_in

    @property
    def n_components(self) -> int:
        """Number of columns that `apply` returns."""
        return self.linear_map.n_components

    def apply(self, X: Any) -> SingleArray:
        """Map every row; see `RowMap.apply`."""
        image = self.linear_map.apply(self.feature_map.apply(X))
        return within_unit_ball(image).astype(np.float32)
