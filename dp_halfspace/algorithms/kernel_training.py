"""Plans of PrivateKernelClassifier: features of each row, and a linear fit of these features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dp_halfspace.algorithms.engine.calibration import CalibrationPlan
from dp_halfspace.algorithms.engine.defaults import additive_defaults, kernel_engine_defaults
from dp_halfspace.algorithms.engine.kernel_features import WhiteningPlan
from dp_halfspace.algorithms.engine.plan import FloatArray, rows_over
from dp_halfspace.algorithms.engine.training import (
    LinearPlan,
    Problem,
    asked_margin,
    gradient_training,
)
from dp_halfspace.algorithms.margin_training import plan_training
from dp_halfspace.algorithms.published.margin_selection import MarginPlan
from dp_halfspace.data.chunks import Chunks, apply_to_chunks
from dp_halfspace.data.encoding import numbers_of
from dp_halfspace.data.people import People
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import (
    FitPlan,
    Fitted,
    PublicFacts,
    for_rows_as_given,
    relative_weights,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.projection import AdditiveMap, FeatureMap
from dp_halfspace.rows.blocks import LONGEST
from dp_halfspace.rows.chunked_rows import chunked_features
from dp_halfspace.rows.mapped_rows import clipped_features, normalised_feature_rows
from dp_halfspace.rows.rows import normalised_rows
from dp_halfspace.rows.single_rows import single_feature_rows

# Value of the constant column for columns with features, relative to that for columns alone.
_CONSTANT = 2.5
# With at most this many features the preconditioner is a square matrix, which needs float64.
_FEW_FEATURES = 64


@dataclass(frozen=True, slots=True)
class KernelPlan(FitPlan):
    """A linear fit of features of each row, of which up to `memory` bytes are kept.

    The feature map is public, unless `whitening` plans a release that its frequencies follow. With
    a plan `threshold`, released counts of scores set the threshold between two classes. The record
    shows `parameters`, too.
    """

    training: LinearPlan | MarginPlan
    feature_map: FeatureMap
    data_norm: float
    intercept: float | None
    memory: int
    parameters: Mapping[str, Any]
    whitening: WhiteningPlan | None = None
    threshold: CalibrationPlan | None = None

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that a run charges."""
        first = () if self.whitening is None else (self.whitening.moment.mechanism.event,)
        last = () if self.threshold is None else self.threshold.events
        return (*first, *self.training.events, *last)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        return {
            **self.training.public,
            **self.parameters,
            "private_whitening": self.whitening is not None,
            **({} if self.threshold is None else {"private_threshold": True}),
        }

    @property
    def is_single(self) -> bool:
        """Whether features are made, and read, in float32: see `SingleFeatureRows`."""
        return isinstance(self.training, LinearPlan) and self.training.is_single

    @property
    def balances_classes(self) -> bool:
        """Whether the linear fit itself counts the classes in order to balance them."""
        return isinstance(self.training, LinearPlan) and self.training.balances_classes

    def with_class_weights(self, weights: FloatArray) -> KernelPlan:
        """Weigh the classes by public or released numbers in [0, 1], for the same events."""
        assert isinstance(self.training, LinearPlan)
        return replace(self, training=self.training.with_class_weights(weights))

    def with_count(self, second: float) -> KernelPlan:
        """Return the plan for a number of records of the second class that was released before."""
        assert isinstance(self.training, LinearPlan)
        assert self.training.counts is not None
        counts = replace(self.training.counts, released=second)
        return replace(self, training=replace(self.training, counts=counts))

    @property
    def takes(self) -> frozenset[str]:
        """The inputs of the linear fit; features of a row are computed from this row alone."""
        return self.training.takes if isinstance(self.training, LinearPlan) else frozenset()

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Make the features, train on their rows and map the coefficients back."""
        if isinstance(self.training, LinearPlan) and self.training.counts is not None:
            training = self.training.adapt_to_counts(data, permit)
            return replace(
                replace(self, training=training).run(data, permit),
                rarity=training.rarity,
                population=training.population,
            )
        feature_map = self.feature_map
        if self.whitening is not None:
            assert isinstance(feature_map, AdditiveMap)
            feature_map = self.whitening.run(self._normalised_columns(data), feature_map, permit)
        rows, used = self._rows(data, feature_map), self.training
        if isinstance(used, MarginPlan):
            used = used.choose(rows, data, permit)
        weights: Any = weights_of(relative_weights(used.problem.class_weights), data)
        released = used.algorithm.run(rows, data.class_indices, weights, permit)
        if self.threshold is not None:
            assert isinstance(used, LinearPlan)
            released[0, -1] -= self._even_margin(used, released[0], rows, data, permit)
        return Fitted(
            *for_rows_as_given(released, used.constant_column, self.intercept, 1.0),
            data_norm=self.data_norm,
            attributes={
                "margin_": asked_margin(used, released),
                "feature_map_": feature_map,
                "n_components_": feature_map.n_components,
            },
        )

    def _even_margin(
        self,
        training: LinearPlan,
        released: FloatArray,
        rows: Any,
        data: TrainingData,
        permit: Permit,
    ) -> float:
        """Release counts of scores; return the score of even odds, over the constant column."""
        constant = training.constant_column
        assert self.threshold is not None
        assert constant is not None
        scores = rows.margins_over_constant(released[:-1] * constant)
        scores = apply_to_chunks(np.add, scores, float(released[-1]) * constant)
        seen = (data.class_indices, np.ones(2), permit, data.people)
        how: dict[str, Any] = {"rarity": training.rarity, "record_weights": data.weights}
        return self.threshold.run(scores, *seen, **how).even_score / constant

    def _normalised_columns(self, data: TrainingData) -> Any:
        """Return the columns and a constant of similar size, as rows of norm one."""
        assert isinstance(self.feature_map, AdditiveMap)
        scale = self.feature_map.entry_scale
        X = apply_to_chunks(numbers_of, data.X)
        return rows_over(normalised_rows, X, self.data_norm, 1.0 / scale, people=data.people)

    def _rows(self, data: TrainingData, feature_map: FeatureMap) -> Any:
        """Return the features as rows of norm one, constant column included."""
        people, constant_column = data.people, self.training.constant_column
        if is_linear(feature_map):
            return rows_over(
                normalised_rows, data.X, self.data_norm, constant_column, people=people
            )
        if self.is_single:
            given = (self.data_norm, feature_map, constant_column)
            kept = {} if isinstance(data.X, Chunks) else {"memory": self.memory}
            return rows_over(single_feature_rows, data.X, *given, **kept)
        features = features_of(data.X, self.data_norm, feature_map, self.memory, people)
        return rows_over(normalised_feature_rows, features, constant_column, people=people)


def is_linear(feature_map: FeatureMap) -> bool:
    """Return whether features are the columns themselves, which need no copy and may be sparse."""
    return isinstance(feature_map, AdditiveMap) and feature_map.is_linear


def features_of(
    X: Any, data_norm: float, feature_map: FeatureMap, memory: int, people: People | None = None
) -> Any:
    """Return the features of rows, which are scaled down first as the feature map requires."""
    longest = LONGEST if isinstance(feature_map, AdditiveMap) else 1.0
    how: dict[str, Any] = {"longest": longest, "people": people}
    if isinstance(X, Chunks):
        return chunked_features(X, data_norm, feature_map, memory=memory, **how)
    return clipped_features(X, data_norm, feature_map, memory=memory, **how)


def makes_single(facts: PublicFacts, feature_map: FeatureMap) -> bool:
    """Return whether features are computed in float32: many of them, in estimated column scales."""
    is_ours = isinstance(feature_map, AdditiveMap) and not feature_map.is_linear
    is_many = feature_map.n_components > _FEW_FEATURES
    return facts.in_column_scales and is_many and is_ours and facts.is_single


def plan_kernel_training(
    problem: Problem,
    solver: str,
    margin: float | None,
    budget: Budget,
    *,
    feature_map: FeatureMap,
    in_single: bool = False,
) -> LinearPlan:
    """Plan one fit on dense features, without a projection, within a budget.

    `problem` describes the features. Pure DP perturbs the objective. With `in_single` the default
    steps compute features in float32, unless the preconditioner is that of the columns alone.
    """
    columns = feature_map if isinstance(feature_map, AdditiveMap) else None
    if columns is not None and not columns.is_linear and problem.intercept is not None:
        problem = replace(problem, intercept=_CONSTANT * problem.intercept)
    if solver == "noisy_gd" and margin is None and not budget.is_pure:
        mu = budget.mu
        defaults = kernel_engine_defaults(problem.n_classes)
        if columns is not None:
            sizes = (problem.n_samples, problem.n_columns(), problem.n_classes)
            defaults = additive_defaults(
                *sizes,
                mu,
                lead=columns.n_features_in,
                behind=columns.relative_length,
                # Only the maps of encoded tables state a length of the columns.
                is_table=columns.length is not None,
            )
            defaults = replace(defaults, n_curved=columns.n_features_in - columns.n_plain)
            in_single = in_single and defaults.lead is None
            problem = replace(problem, is_single=in_single, of_features=in_single)
        return gradient_training(problem, mu, defaults=defaults, counts_classes=True)
    # The search among directions favours those of few columns, which does not suit features.
    if budget.is_pure and solver == "noisy_gd":
        solver = "objective_perturbation"
    return plan_training(problem, solver, margin, budget)
