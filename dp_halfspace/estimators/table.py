"""A private classifier of tables as they come: texts, categories, dates, numbers in any units."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import warn_of_units
from dp_halfspace._params import resolved_delta
from dp_halfspace._sklearn_compat import StrOptions
from dp_halfspace.algorithms.engine.calibration import (
    DEFAULT_SLOPE,
    CalibrationPlan,
    affordable_calibration,
)
from dp_halfspace.algorithms.engine.column_scales import (
    Units,
    UnitsPlan,
    affordable_units,
    in_units,
)
from dp_halfspace.algorithms.engine.training import Problem
from dp_halfspace.data.chunked_checks import as_chunks, check_chunks
from dp_halfspace.data.chunked_methods import by_chunks, travelling
from dp_halfspace.data.chunks import applied
from dp_halfspace.data.encoding import Encoding
from dp_halfspace.data.frame import Frame, read_frame
from dp_halfspace.data.groups import owned_by
from dp_halfspace.data.people import placed
from dp_halfspace.data.schema import (
    Column,
    label_set,
    read_schema,
    resolved_columns,
    unstated_kinds,
)
from dp_halfspace.data.validation import TrainingData, check_training_data, is_chunked
from dp_halfspace.estimators._small_tables import fit_small_table, planned_small_table
from dp_halfspace.estimators.adaptive_margin import AdaptiveMarginClassifier
from dp_halfspace.estimators.base import PaidFits, Prepared
from dp_halfspace.estimators.kernel import PrivateKernelClassifier
from dp_halfspace.exceptions import PrivacyWarning
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection import AdditiveMap, FeatureMap

# Bytes of encoded rows in chunks that are kept between passes: to encode takes longer than a step.
_KEPT = 2**28
# A range in the units that cosines of a column are made for.
_HALF_RANGE = 1.5
# From this n mu / sqrt(columns) on units within a range are worth their part of the budget.
_RANGES_LEARN = 150.0


@dataclass(eq=False, repr=False)
class _Engine(PrivateKernelClassifier):
    """The engine of encoded rows: their first `n_curved` columns have more than two values."""

    n_curved: int = 0
    is_linear: bool = False

    # Ranges are brought to the units that others learn.
    _is_scale_stated: ClassVar[bool] = False

    def _drawn_map(self, problem: Problem, seed: int) -> FeatureMap:
        drawn: FeatureMap = AdditiveMap(problem.n_features, 1)
        if self.n_curved and not self.is_linear:
            drawn = super()._drawn_map(replace(problem, n_features=self.n_curved), seed)
        assert isinstance(drawn, AdditiveMap)
        n_features, length = problem.n_features, float(self.data_norm)
        n_plain = n_features - self.n_curved
        return replace(drawn, n_features_in=n_features, n_plain=n_plain, length=length)


@dataclass(frozen=True)
class _Ready:
    """What is fixed before a fit pays: encoded rows, which are private, and public plans."""

    encoding: Encoding
    learnt: NDArray[np.bool_]
    units: UnitsPlan | None
    prepared: Prepared
    engine: _Engine | AdaptiveMarginClassifier
    calibration: CalibrationPlan | None = None

    @property
    def data(self) -> TrainingData:
        """Encoded rows, numbers first, and labels."""
        return self.prepared.data

    @property
    def is_small(self) -> bool:
        """Whether the table is one of few rows, for which one classifier is chosen."""
        return self.prepared.is_small_table

    @property
    def record(self) -> PrivacyRecord:
        """What everything costs."""
        return self.prepared.record

    def completed(self, epsilon: float, calibration: CalibrationPlan | None) -> _Ready:
        """Write all that is spent into the one record."""
        parts = (self.units, self.record, calibration)
        events = tuple(event for part in parts if part is not None for event in part.events)
        names = [column.name for column in self.encoding.numbers]
        public = {
            **dict(self.record.public),
            "columns": {column.name: column.describe() for column in self.encoding.columns},
            "private_units": [] if self.units is None else np.array(names)[self.learnt],
            "calibrated": calibration is not None or (self.is_small and len(events) > 1),
        }
        record = replace(self.record, epsilon=epsilon, events=events, public=public)
        prepared = replace(self.prepared, record=record)
        return replace(self, prepared=prepared, calibration=calibration)

    def released_units(self, permit: Permit) -> Units:
        """Learn the units that are to be learnt; ranges are those of the other columns."""
        columns = self.encoding.numbers
        ends = np.array(
            [(c.low, c.high) if c.has_range else (-_HALF_RANGE, _HALF_RANGE) for c in columns]
        )
        ends = ends.reshape(-1, 2) / 2.0
        units = Units(ends.sum(axis=1), np.diff(ends)[:, 0] / _HALF_RANGE)
        if self.units is not None:
            learnt = applied(_columns, self.data.X, np.flatnonzero(self.learnt))
            found = self.units.run(learnt, permit, self.data.people)
            units.center[self.learnt], units.scale[self.learnt] = found.center, found.scale
        return units

    def rows(self, units: Units) -> Any:
        """Return the rows that the engine reads."""
        return applied(_rows_in_units, self.data.X, units, _as_they_are(self.encoding, self.engine))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTableClassifier(PaidFits):
    """Private classifier of tables as they come, with probabilities, within one budget.

    Texts, categories, booleans and dates are encoded by public rules; the units of columns of
    numbers are stated, or learnt within the budget. Then follow the features and the engine of
    ``PrivateKernelClassifier(kernel="auto")``, and noisy counts of scores that calibrate them.
    With few rows (two classes, at most 512 encoded columns, ``n epsilon < 600``) the model is one
    purely private selection among listed classifiers, where `features` is ``"auto"``.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None takes the list ``"target"`` of `schema`, else it declares the labels
        seen to be public.
    schema : dict, str, path or None, default=None
        PUBLIC facts about columns, or the path of a JSON file with them. For each column that is
        named ``[low, high]`` (values beyond are brought to the nearer end), a list of categories,
        a word (``"number"``, ``"date"``, ``"boolean"``, ``"text"`` or ``"drop"``), or a mapping
        with some of ``kind``, ``range``, ``categories``, ``decimal`` and ``format``. What a
        column that is not named holds is taken from its dtype and declared public, with a
        `PrivacyWarning`. The mapping may stand under ``"columns"``, beside ``"target"``, a list
        of labels.
    features : {"auto", "additive", "linear"}, default="auto"
        What is made of columns: themselves (``"linear"``), also decaying cosines of each column of
        numbers (``"additive"``), also features of all columns where they pay (``"auto"``).
    probability : bool, default=True
        Whether 4 % of the budget (a tenth, purely) calibrate the scores, where that pays. For few
        rows ``15 / (n epsilon)`` of it, within .05 and .25, counts errors.
    class_weight : dict or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; ``"balanced"`` is refused. Probabilities of
        two classes are those of a population with these weights.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes the fit reproducible and
        raises `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Charged before any noise is drawn.
    verbose : int, default=0
        Accepted for uniformity; there is nothing to report that would be free.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    encoding_ : Encoding
        The public rules by which rows become numbers.
    units_ : Units
        ``center`` and ``scale`` of every column of numbers, stated or released. Columns without a
        range are used as they are in a table of few rows.
    model_ : PrivateKernelClassifier or AdaptiveMarginClassifier
        The released model of encoded rows; the latter for a table of few rows.
    calibration_ : tuple of float
        Released slope and offset that turn scores into log odds. For a table of few rows the slope
        is the log odds of a right answer, by a noisy count of errors.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateKernelClassifier : The same engine for numbers.
    AdaptiveMarginClassifier : The linear default for numbers.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one adjacency.
    Public: the number of rows, names and kinds of columns, the label set, every parameter.
    Private: everything else. A missing entry, an unseen category, a number beyond its range or a
    text among numbers raises nothing and changes no shape; a wrong schema costs accuracy only.
    What becomes of a row is a function of its own cells and of `schema`: the dtype that a reader
    has inferred for a column that `schema` names plays no part. With `groups` a person with all
    rows is protected, and the number of people is public instead of that of rows
    (``docs/proofs/persons.md``).

    References
    ----------
    Proofs: ``docs/proofs/units.md``, ``kernel.md``, ``calibration.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> rng = np.random.default_rng(0)
    >>> age, city = rng.uniform(20, 90, size=8000), rng.choice(["Rome", "Oslo"], size=8000)
    >>> X, y = np.column_stack([age, city]), (age > 50) ^ (city == "Oslo")
    >>> schema = {"0": [0, 120], "1": ["Oslo", "Paris", "Rome"]}
    >>> model = PrivateTableClassifier(schema=schema, classes=[False, True]).fit(X, y)
    >>> model.predict_proba([[88, "Rome"], [None, "Bonn"]]).shape
    (2, 2)
    """

    schema: Any = None
    features: str = "auto"
    probability: bool = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PaidFits._parameter_constraints,
        "schema": [dict, str, os.PathLike, None],
        "features": [StrOptions({"auto", "linear", "additive"})],
        "probability": ["boolean"],
    }

    def _trained(self, ready: _Ready, permit: Permit) -> None:
        """Learn units, train the engine, and calibrate its scores."""
        units = ready.released_units(permit)
        prepared = replace(ready.prepared, data=replace(ready.data, X=ready.rows(units)))
        model = ready.engine
        line = DEFAULT_SLOPE, 0.0
        if isinstance(model, AdaptiveMarginClassifier):
            share = fit_small_table(model, prepared, permit)
            line = math.log((1.0 - share) / share), 0.0
        else:
            model._trained(prepared, permit)
        if ready.calibration is not None:
            scores = _scores_of_all(model, prepared.data)
            line = ready.calibration.run(
                scores, ready.data.codes, prepared.weights, permit, ready.data.people
            )

        self.encoding_, self.units_, self.model_ = ready.encoding, units, model
        self.calibration_, self.classes_, self.privacy_ = line, ready.data.classes, ready.record
        self.n_features_in_ = len(ready.encoding.columns)
        self.__dict__.pop("feature_names_in_", None)
        if ready.encoding.is_named:
            names = [column.name for column in ready.encoding.columns]
            self.feature_names_in_ = np.array(names, dtype=object)

    def _prepared(self, X: Any, y: ArrayLike, groups: Any) -> _Ready:
        """Encode the table, check the labels and divide the budget."""
        table = as_chunks(X) if is_chunked(X) else None
        frame = read_frame(X if table is None else table.sample)
        rules, target = read_schema(self.schema)
        encoding = Encoding(resolved_columns(frame, rules), frame.is_named)
        unstated = unstated_kinds(encoding.columns)
        if unstated:
            # The levels are the preparation, `fit`, its wrapper and the caller.
            warnings.warn(unstated, PrivacyWarning, stacklevel=4)
        rows = _encoded(frame, encoding)
        classes = label_set(target, y) if self.classes is None else self.classes
        if table is not None:
            chunks = replace(table.each(_encoded, encoding), sample=rows)
            data = check_chunks(self, chunks, y, classes=classes, allow_missing=True)
            if 8 * math.prod(data.X.shape) <= _KEPT:
                data = replace(data, X=data.X.kept())
        else:
            hidden = groups is not None
            data = check_training_data(
                self, rows, y, classes=classes, allow_missing=True, hides_rows=hidden
            )
        if groups is not None:
            data = owned_by(groups, data)

        small = self._small_table(encoding, data, classes)
        if small is not None:
            return small
        n_samples, epsilon = data.n_privacy_units, float(self.epsilon)
        delta = resolved_delta(self.delta, n_samples)
        calibration, units, left = None, None, epsilon
        if self.probability:
            calibration, left = affordable_calibration(n_samples, epsilon, delta)
        learnt = _learnt(encoding.numbers, n_samples, left, delta)
        if learnt.any():
            paid = affordable_units(n_samples, int(learnt.sum()), left, delta)
            units, left = paid or (None, left)
            if paid is None:
                warn_of_units(n_samples, int(learnt.sum()), epsilon, level=5)
        engine = _Engine(
            "additive" if self.features == "additive" else "auto",
            epsilon=left,
            delta=delta,
            data_norm=encoding.length,
            classes=classes,
            class_weight=self.class_weight,
            random_state=self.random_state,
            n_curved=len(encoding.numbers),
            is_linear=self.features == "linear",
        )
        planned = engine._planned(data)
        engine._check_for_plan(planned.plan, data)
        ready = _Ready(encoding, learnt, units, planned, engine)
        return ready.completed(epsilon, calibration)

    def _small_table(self, encoding: Encoding, data: TrainingData, classes: Any) -> _Ready | None:
        """Plan one selection for a table of few rows; by what is public alone."""
        model = AdaptiveMarginClassifier(
            epsilon=float(self.epsilon),
            delta=self.delta,
            classes=classes,
            class_weight=self.class_weight,
            random_state=self.random_state,
        )
        if self.features != "auto" or not model._is_small(data):
            return None
        # Of a population with other weights nothing is counted.
        counts = self.probability and self.class_weight is None
        planned = planned_small_table(model, data, counts=counts)
        nothing = np.zeros(len(encoding.numbers), dtype=bool)
        ready = _Ready(encoding, nothing, None, planned, model)
        return ready.completed(float(self.epsilon), None)

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows: calibrated log odds, up to a constant of each row for more classes.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Rows to score. Columns are found by name and may have other dtypes than in the fit,
            further columns are ignored; without names, they are found by position.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, positive means ``classes_[1]``.

        Raises
        ------
        ValueError
            If a column of the fit is missing.
        """
        check_is_fitted(self)
        as_is = _as_they_are(self.encoding_, self.model_)
        rows = _rows_in_units(_encoded(read_frame(X), self.encoding_), self.units_, as_is)
        slope, offset = self.calibration_
        scores = self.model_.decision_function(rows)
        if isinstance(self.model_, AdaptiveMarginClassifier):
            scores = _surety(scores)
        return np.asarray(slope * scores + offset)

    @available_if(lambda self: self.probability)
    @by_chunks
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of every label; there with ``probability=True``.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            As for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        return PrivateKernelClassifier._probabilities(self.decision_function(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _encoded(table: Any, encoding: Encoding) -> NDArray[np.float64]:
    """Return rows of numbers, those that have units first."""
    return np.hstack(encoding.encoded(table if isinstance(table, Frame) else read_frame(table)))


def _columns(rows: NDArray[np.float64], columns: NDArray[np.intp]) -> NDArray[np.float64]:
    return rows[:, columns]


def _as_they_are(encoding: Encoding, model: Any) -> NDArray[np.bool_]:
    """Tell which columns of numbers are not brought to units: of small tables, without a range."""
    is_small = isinstance(model, AdaptiveMarginClassifier)
    return np.array([is_small and not c.has_range for c in encoding.numbers], dtype=bool)


def _rows_in_units(
    rows: NDArray[np.float64], units: Units, as_is: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Bring the numbers of encoded rows to their units, those that are not left as they are."""
    numbers, others = np.hsplit(rows, [len(units.center)])
    scaled = in_units(numbers, units)
    scaled[:, as_is] = np.nan_to_num(numbers[:, as_is])
    return np.hstack([scaled, others])


def _surety(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers of size about one, in the order of scores of any size and of their signs."""
    size = np.abs(scores)
    return np.asarray(np.sign(scores) * (1.0 + 0.1 * size / (1.0 + size)))


def _scores(rows: NDArray[np.float64], model: PrivateKernelClassifier) -> NDArray[np.float64]:
    if not len(rows):
        return np.empty((0, len(model.coef_)) if len(model.coef_) > 1 else 0)
    return model.decision_function(rows)


def _scores_of_all(model: PrivateKernelClassifier, data: TrainingData) -> Any:
    """Score the rows that were fitted, each at its place."""
    if data.people is None:
        return applied(_scores, data.X, travelling(model))
    return data.people.gather_blocks(
        len(data.people), lambda *where: model.decision_function(placed(data.X, *where))
    )


def _learnt(
    columns: tuple[Column, ...], n_samples: int, epsilon: float, delta: float
) -> NDArray[np.bool_]:
    """Tell which columns have units that are learnt: those without a range, or all of them."""
    without = np.array([not column.has_range for column in columns], dtype=bool)
    is_pure = delta == 0 and math.isfinite(epsilon)
    strength = 0.0 if is_pure else n_samples * gdp_mu(epsilon, delta)
    return without | (strength >= _RANGES_LEARN * math.sqrt(max(len(columns), 1)))
