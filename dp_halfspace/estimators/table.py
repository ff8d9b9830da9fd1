"""A private classifier of tables as they come: texts, categories, dates, holes, any units."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import BUDGET, SharedLedger
from dp_halfspace._sklearn import StrOptions, fit_context, resolved_delta
from dp_halfspace._validation import TrainingData, check_training_data
from dp_halfspace.algorithms.fits.calibration import (
    DEFAULT_SLOPE,
    CalibrationPlan,
    affordable_calibration,
)
from dp_halfspace.algorithms.fits.margin_training import Problem
from dp_halfspace.algorithms.units.plan import Units, UnitsPlan, affordable_units, in_units
from dp_halfspace.estimators.base import Prepared
from dp_halfspace.estimators.kernel import PrivateKernelClassifier
from dp_halfspace.privacy.mechanisms import Permit, authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import noise_kind, noise_source
from dp_halfspace.privacy.record import LABELS_SEEN, PrivacyRecord
from dp_halfspace.projection import AdditiveMap, FeatureMap
from dp_halfspace.tables.encoding import Encoding
from dp_halfspace.tables.frame import read_frame
from dp_halfspace.tables.schema import read_schema, resolved_columns

__all__ = ["PrivateTableClassifier"]

# A range in the units that cosines of a column are made for.
_HALF_RANGE = 1.5
# From this n mu / sqrt(columns) on units within a range are worth their part of the budget.
_RANGES_LEARN = 100.0


@dataclass(eq=False, repr=False)
class _Engine(PrivateKernelClassifier):
    """The engine of columns, of which the first `n_curved` have more than two values."""

    n_curved: int = 0
    features: str = "auto"

    def _drawn_map(self, problem: Problem, seed: int) -> FeatureMap:
        drawn = super()._drawn_map(problem, seed)
        assert isinstance(drawn, AdditiveMap)
        if self.features == "linear":
            drawn = replace(drawn, n_terms=1, fourier=None)
        return replace(drawn, n_curved=self.n_curved, length=float(self.data_norm))


@dataclass(frozen=True)
class _Ready:
    """What is fixed before a fit pays: encoded data, which are private, and public plans."""

    encoding: Encoding
    numbers: NDArray[np.float64]
    others: NDArray[np.float64]
    public_units: Units
    learnt: NDArray[np.bool_]
    units: UnitsPlan | None
    engine: _Engine
    prepared: Prepared
    calibration: CalibrationPlan | None

    def released_units(self, permit: Permit) -> Units:
        """Learn the units that are not public."""
        center, scale = self.public_units.center.copy(), self.public_units.scale.copy()
        if self.units is not None:
            found = self.units.run(self.numbers[:, self.learnt], permit)
            center[self.learnt], scale[self.learnt] = found.center, found.scale
        return Units(center, scale)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTableClassifier(ClassifierMixin, SharedLedger):
    """TODO."""

    epsilon: float = 1.0
    delta: float | str = "auto"
    classes: ArrayLike | None = None
    schema: Any = None
    features: str = "auto"
    probability: bool = True
    class_weight: dict[Any, float] | None = None
    random_state: int | None = None
    ledger: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        "classes": ["array-like", None],
        "schema": [dict, str, os.PathLike, None],
        "features": [StrOptions({"auto", "linear", "additive"})],
        "probability": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> PrivateTableClassifier:
        """Fit."""
        ready = self._prepared(X, y)
        data, record = ready.prepared.data, ready.prepared.record
        permit = authorise(record, noise_source(self.random_state), self.ledger)
        units = ready.released_units(permit)
        rows = np.hstack([in_units(ready.numbers, units), ready.others])
        data = replace(data, X=rows)
        model = ready.engine._trained(replace(ready.prepared, data=data), permit)
        line = (DEFAULT_SLOPE, 0.0)
        if ready.calibration is not None:
            scores = model.decision_function(rows)
            line = ready.calibration.run(scores, data.codes, ready.prepared.weights, permit)
        self.encoding_, self.units_, self.model_, self.calibration_ = ready.encoding, units, model, line
        self.classes_, self.privacy_ = data.classes, record
        self.n_features_in_ = len(ready.encoding.columns)
        self.__dict__.pop("feature_names_in_", None)
        if ready.encoding.is_named:
            names = [column.name for column in ready.encoding.columns]
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def plan(self, X: Any, y: ArrayLike) -> PrivacyRecord:
        """Plan."""
        return self._prepared(X, y).prepared.record

    def _prepared(self, X: Any, y: ArrayLike) -> _Ready:
        """Encode the table, check the labels and divide the budget."""
        frame = read_frame(X)
        rules, target = read_schema(self.schema)
        encoding = Encoding(resolved_columns(frame, rules), frame.is_named)
        numbers, others = encoding.encoded(frame)
        classes = self.classes if self.classes is not None else target
        rows = np.hstack([numbers, others])
        data = check_training_data(self, rows, y, classes=classes, allow_missing=True)

        n_samples, epsilon = len(rows), float(self.epsilon)
        delta = resolved_delta(self.delta, n_samples)
        calibration, left = None, epsilon
        if self.probability:
            calibration, left = affordable_calibration(n_samples, epsilon, delta)
        public_units, learnt = _public_units(encoding, n_samples, left, delta)
        units = None
        if learnt.any():
            paid = affordable_units(n_samples, int(learnt.sum()), left, delta)
            if paid is not None:
                units, left = paid
        engine = _Engine(
            "additive" if self.features == "additive" else "auto",
            epsilon=left, delta=delta, data_norm=encoding.length, classes=classes,
            class_weight=self.class_weight, random_state=self.random_state,
            n_curved=numbers.shape[1], features=self.features,
        )  # fmt: skip
        prepared = engine._planned(data)
        events = prepared.record.events
        events = (*(units.events if units else ()), *events)
        events = (*events, *(calibration.events if calibration else ()))
        public = {
            **dict(prepared.record.public),
            "private_units": [c.name for c, own in zip(encoding.numbers, learnt) if own and units],
            "calibration": calibration is not None,
            "columns": {column.name: column.describe() for column in encoding.columns},
        }
        record = replace(prepared.record, epsilon=epsilon, events=events, public=public)
        prepared = replace(prepared, record=record)
        return _Ready(
            encoding, numbers, others, public_units, learnt, units, engine, prepared, calibration
        )

    def decision_function(self, X):
        check_is_fitted(self)
        numbers, others = self.encoding_.encoded(read_frame(X))
        rows = np.hstack([in_units(numbers, self.units_), others])
        slope, offset = self.calibration_
        return slope * self.model_.decision_function(rows) + offset

    def predict(self, X):
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X):
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)


def _public_units(encoding, n_samples, epsilon, delta):
    columns = encoding.numbers
    ranged = np.array([column.has_range for column in columns], dtype=bool)
    low, high = (np.array([getattr(c, end) for c in columns]) for end in ("low", "high"))
    center = np.where(ranged, low / 2.0 + high / 2.0, 0.0)
    scale = np.where(ranged, (high / 2.0 - low / 2.0) / _HALF_RANGE, 1.0)
    learnt = ~ranged
    if delta > 0 and n_samples * gdp_mu(epsilon, delta) >= _RANGES_LEARN * math.sqrt(len(columns)):
        learnt[:] = True
    return Units(center, scale), learnt
