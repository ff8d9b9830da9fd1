"""Plans of PrivateKernelClassifier: features of each row, and a linear fit of these features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dp_halfspace.data.record_weights import WeighedRows, weighed
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, for_rows_as_given
from dp_halfspace.papers.margin_selection import MarginChoice
from dp_halfspace.papers.training import LinearTraining, asked_margin
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Event
from dp_halfspace.projection.features import AdditiveMap, FeatureMap
from dp_halfspace.rows.blocks import LONGEST, FloatArray
from dp_halfspace.rows.mapped_rows import clipped_features, normalised_feature_rows


@dataclass(frozen=True, slots=True)
class KernelTraining(FitPlan):
    """A linear fit of public features of each row, of which up to `memory` bytes are kept.

    The record shows `parameters`, too.
    """

    training: LinearTraining | MarginChoice
    feature_map: FeatureMap
    data_norm: float
    memory: int
    parameters: Mapping[str, Any]

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        return self.training.events

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return {**self.training.public, **self.parameters}

    def with_class_weights(self, weights: FloatArray) -> KernelTraining:
        """Weigh the classes by public or released numbers in [0, 1], for the same events."""
        assert isinstance(self.training, LinearTraining)
        return replace(self, training=self.training.with_class_weights(weights))

    @property
    def takes(self) -> frozenset[str]:
        """The inputs of the linear fit, of which features are computed for arrays of records."""
        known = self.training.takes if isinstance(self.training, LinearTraining) else frozenset()
        return known & {"sample_weight"}

    def run(self, door: Door) -> Fitted:
        """Make the features, train on their rows and map the coefficients back."""
        door, used = door.map(self._rows), self.training
        if isinstance(used, MarginChoice):
            used = used.choose_margin(door)
        released = used.algorithm.run(door)
        return Fitted(
            *for_rows_as_given(released, used.constant_column, 1.0),
            data_norm=self.data_norm,
            attributes={
                "margin_": asked_margin(used, released),
                "feature_map_": self.feature_map,
                "n_components_": self.feature_map.n_components,
            },
        )

    def _rows(self, data: TrainingData) -> WeighedRows:
        """Return the features as rows of norm one, constant column included."""
        longest = LONGEST if isinstance(self.feature_map, AdditiveMap) else 1.0
        given = data.X, self.data_norm, self.feature_map
        features = clipped_features(*given, memory=self.memory, longest=longest)
        # All candidates for a margin read the same rows.
        used = self.training
        any_one = used.candidates[0] if isinstance(used, MarginChoice) else used
        rows = normalised_feature_rows(features, any_one.constant_column)
        return weighed(rows, any_one.problem.facts.relative_weights, data)
