"""Features of a kernel, projected to fewer dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dp_halfspace.projection.base import LinearMap, SingleArray, within_unit_ball
from dp_halfspace.projection.fourier import FeatureMap


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
