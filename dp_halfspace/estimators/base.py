"""What the estimators of the suite share: the order of a fit, parameters, prediction, tags."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import (
    BUDGET,
    SharedLedger,
    opened_ledger,
    warn_of_sparse_columns,
    warn_of_units,
)
from dp_halfspace._params import fit_context, public_number, resolved_delta
from dp_halfspace._sklearn_compat import StrOptions
from dp_halfspace.data.chunked_methods import by_chunks
from dp_halfspace.data.validation import (
    TrainingData,
    are_chunks,
    check_features,
    check_training_data,
    is_chunked,
)
from dp_halfspace.exceptions import BudgetError

if TYPE_CHECKING:
    from typing_extensions import Self

    from dp_halfspace.algorithms.engine.column_scales import UnitsPlan
    from dp_halfspace.preprocessing.released_scaler import ReleasedScaler
    from dp_halfspace.privacy.events import Event
    from dp_halfspace.privacy.mechanisms import Permit
    from dp_halfspace.privacy.record import PrivacyRecord
    from dp_halfspace.projection import LinearMap

# Methods load what planning, paying and running need: who only predicts needs none of it.

# Which part of a budget a fit beside the units of the columns uses at least, how often it is
# aimed at and at which part, and how much less is tried afterwards, how often.
_USED, _AIMS, _AIM = 1.0 - 1e-4, 12, 1.0 - 3e-5
_TRIES, _LESS = 300, 0.99


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is fixed before a fit pays: validated data, and a plan of public numbers.

    Of `data` shape, storage and label set are public, and so are the class `weights`. The `plan`
    is of the estimator's own, for rows of the public scale `data_norm`, to which longer rows
    are scaled down if it `clips`; the `record` says what plan
    and `units` cost. Of a small table the plan is one selection: `small_table_rule`.
    """

    data: TrainingData
    weights: NDArray[np.float64]
    plan: Any
    record: PrivacyRecord
    data_norm: float
    clips: bool
    units: UnitsPlan | None = None
    is_small_table: bool = False

    def in_units(self, permit: Permit) -> tuple[TrainingData, ReleasedScaler | None]:
        """Learn the units of the columns, where that was planned, and bring the rows to them.

        A copy in the precision that the plan has counted.
        """
        data = self.data
        if self.units is None:
            return data, None
        from dp_halfspace.algorithms.engine.column_scales import in_units  # noqa: PLC0415
        from dp_halfspace.preprocessing.released_scaler import ReleasedScaler  # noqa: PLC0415

        units = self.units.run(data.X, permit, data.people)
        scaler = ReleasedScaler(units.center, units.scale).fit(np.zeros((1, data.X.shape[1])))
        if data.feature_names is not None:
            scaler.feature_names_in_ = data.feature_names
        kind = np.float32 if getattr(self.plan, "is_single", False) else np.float64
        return replace(data, X=in_units(data.X, units, kind=kind)), scaler


@dataclass(kw_only=True, eq=False, repr=False)
class PaidFits(ClassifierMixin, SharedLedger, ABC):
    """A classifier whose fit is planned from public numbers, then charged, and only then run.

    A parameter is a field of a dataclass: stated once with its type and its default, it becomes
    an argument of ``__init__``, which does nothing but keep it.
    """

    epsilon: float = 1.0
    delta: float | str = "auto"
    classes: ArrayLike | None = None
    class_weight: dict[Any, float] | None = None
    random_state: int | None = None
    ledger: Any = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, *, groups: Any = None) -> Self:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            Finite features, but for missing entries where the estimator takes them; CSR stays
            sparse. Chunks (``docs/scaling.md``) of dask or of `dp_halfspace.datasets` are read
            where they are, if sums over rows are all that the parameters ask for.
        y : array-like of shape (n_samples,), or in chunks
            Labels from `classes`.
        groups : array-like of shape (n_samples,) or None, default=None
            Who each row belongs to: any hashable values. The unit of privacy is then a person
            with all rows, each of which weighs one over their number; the number of people is
            public, who has how many rows is not. ``docs/privacy_model.md`` lists the estimators
            and parameters that protect people.

        Returns
        -------
        estimator object
            The fitted estimator itself.

        Raises
        ------
        ValueError, BudgetError, CertificateError
            By what is refused of parameters, data and budget: nothing was spent or changed.

        Notes
        -----
        **Privacy.** The record of `plan` is charged to the ledger before any noise is drawn.
        """
        from dp_halfspace.privacy.mechanisms import authorise  # noqa: PLC0415
        from dp_halfspace.privacy.randomness import noise_source  # noqa: PLC0415

        ready = self._prepared(X, y, groups)
        source = noise_source(self.random_state)
        permit = authorise(ready.record, source, opened_ledger(self.ledger))
        self._trained(ready, permit)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def plan(self, X: Any, y: ArrayLike, *, groups: Any = None) -> PrivacyRecord:
        """Say what ``fit`` would spend; nothing is trained, drawn or charged.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            What would be fitted. Of `X` only shape and storage matter, and that it is valid.
        y : array-like of shape (n_samples,)
            Labels; only the label set matters, where `classes` does not state it.
        groups : array-like of shape (n_samples,) or None, default=None
            Who each row belongs to, where ``fit`` takes that; only the number of people matters.

        Returns
        -------
        PrivacyRecord
            The record that a fit would carry: its ``events``, ``epsilon_at(delta)`` for any
            delta, and what it would treat as public.

        Raises
        ------
        ValueError, BudgetError, CertificateError
            As ``fit`` would before it pays.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it costs nothing.
        """
        record: PrivacyRecord = self._prepared(X, y, groups).record
        return record

    @abstractmethod
    def _prepared(self, X: Any, y: ArrayLike, groups: Any) -> Any:
        """Validate the data and fix every public number of a fit, with the record of its cost."""

    @abstractmethod
    def _trained(self, ready: Any, permit: Permit) -> None:
        """Run what was prepared and paid, and set the fitted attributes."""

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows."""

    @by_chunks
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            Rows to label.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(PaidFits):
    """Planning, and prediction from released coefficients: neither costs anything."""

    data_norm: Any = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0

    _adjacency: ClassVar[str] = "replace-one"
    _takes_units: ClassVar[bool] = True
    # Whether the scale of a row was stated: then longer rows may be scaled down to it.
    _is_scale_stated: ClassVar[bool] = True
    # Whether the rows of a plan will be in learnt units.
    _is_in_units: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PaidFits._parameter_constraints,
        "data_norm": [*public_number(), None],
        "fit_intercept": ["boolean"],
        "intercept_scaling": public_number(),
    }

    def _prepared(self, X: Any, y: ArrayLike, groups: Any) -> Prepared:
        """Validate the data and fix every public number of a fit."""
        learns = self.data_norm is None and self._takes_units
        if learns and getattr(self, "adversary_radius", 0.0) != 0.0:
            raise ValueError(
                "adversary_radius is in the units of the columns: give data_norm, the PUBLIC "
                "scale of a row in these units, too"
            )
        hidden = groups is not None
        self._check_for_people(None, hidden=hidden)
        if is_chunked(X):
            from dp_halfspace.data.chunked_checks import check_chunks  # noqa: PLC0415

            self._check_for_chunks(None)
            data = check_chunks(self, X, y, classes=self.classes, allow_missing=learns)
        else:
            data = check_training_data(
                self, X, y, classes=self.classes, allow_missing=learns, hides_rows=hidden
            )
        if hidden:
            from dp_halfspace.data.groups import owned_by  # noqa: PLC0415

            data = owned_by(groups, data)
        small = self._small_table(data)
        if small is not None:
            return small
        ready = self._planned_in_units(data) if learns else self._planned(data)
        self._check_for_plan(ready.plan, data)
        return ready

    def _small_table(self, data: TrainingData) -> Prepared | None:
        """Plan one selection for a table of few rows, where an estimator has that."""
        del data
        return None

    def _is_small(self, data: TrainingData) -> bool:
        """Tell, by what is public, whether a table is one of few rows: see `small_table_rule`.

        Rows in chunks, sparse rows and rows that people own are left to the engine.
        """
        if sparse.issparse(data.X) or are_chunks(data.X) or data.people is not None:
            return False
        from dp_halfspace.algorithms.engine.defaults import small_table_rule  # noqa: PLC0415

        n_samples, n_features = data.X.shape
        return small_table_rule(
            n_samples=n_samples,
            n_features=n_features,
            n_classes=len(data.classes),
            epsilon=float(self.epsilon),
            delta=resolved_delta(self.delta, n_samples),
            is_scale_stated=self.data_norm is not None,
        )

    def _check_for_chunks(self, plan: Any) -> None:
        """Refuse an estimator, or its plan, that needs more than sums over rows."""
        if not self._reads_chunks(plan):
            raise ValueError(
                "rows in chunks are not supported with these parameters: docs/scaling.md lists "
                "what takes them. Give the rows as an array, for example X.compute()"
            )

    def _reads_chunks(self, plan: Any) -> bool:
        """Tell whether sums over rows are all that a plan needs, or some plan if it is None."""
        del plan
        return False

    def _check_for_plan(self, plan: Any, data: TrainingData) -> None:
        """Refuse a plan of which it is not proved that it reads chunks, or protects people."""
        if are_chunks(data.X):
            self._check_for_chunks(plan)
        self._check_for_people(plan, hidden=data.people is not None)

    def _check_for_people(self, plan: Any, *, hidden: bool) -> None:
        """Refuse an estimator, or its plan, of which it is not proved that it protects people."""
        if not hidden or self._protects_people(plan):
            return
        raise ValueError(
            "groups is not supported with these parameters: people are protected by "
            "AdaptiveMarginClassifier and PrivateKernelClassifier with solver='noisy_gd' and "
            "neither selection, adversary nor projection, by PrivateAUCClassifier with noisy_gd "
            "or mean_difference and by PrivateTableClassifier, all with delta > 0"
        )

    def _protects_people(self, plan: Any) -> bool:
        """Tell whether a person with any rows counts like a record, in some plan if it is None."""
        del plan
        return False

    def _planned_in_units(self, data: TrainingData) -> Prepared:
        """Divide the budget between the units of the columns and a fit in these units."""
        from dp_halfspace.algorithms.engine.column_scales import affordable_units  # noqa: PLC0415
        from dp_halfspace.privacy.record import proved_delta, proved_epsilon  # noqa: PLC0415

        X, epsilon = data.X, float(self.epsilon)
        n_samples, n_features = data.n_privacy_units, X.shape[1]
        delta = resolved_delta(self.delta, n_samples)
        paid = None
        if not sparse.issparse(X):
            paid = affordable_units(n_samples, n_features, epsilon, delta)
        if paid is None:
            # From here over the preparation, `fit` and its wrapper to the caller.
            if sparse.issparse(X):
                warn_of_sparse_columns(level=6)
            else:
                X = X.each(np.nan_to_num) if are_chunks(X) else np.nan_to_num(X)
                warn_of_units(n_samples, n_features, epsilon, level=6)
            data = replace(data, X=X)
            ready = self._with(epsilon, 1.0)._planned(data)
            public = {**dict(ready.record.public), "private_units": False}
            return replace(ready, record=replace(ready.record, public=public))
        units, left = paid
        for trial in range(_TRIES):
            ready = self._with(left, math.sqrt(n_features), _is_in_units=True)._planned(data)
            events = (*units.events, *ready.record.events)
            aims = delta > 0 and trial < _AIMS and math.isfinite(epsilon)
            used = proved_epsilon(events, delta) if aims else epsilon
            fits = math.isinf(epsilon) or proved_delta(events, epsilon) <= delta
            if fits and used >= _USED * epsilon:
                public = {**dict(ready.record.public), "data_norm": None, **units.public}
                record = replace(ready.record, epsilon=epsilon, events=events, public=public)
                return replace(ready, record=record, units=units)
            # Only Gaussian parts divide exactly: others leave more or less than their mu says.
            left *= _AIM * epsilon / max(used, 0.5 * epsilon) if aims else _LESS
        raise BudgetError(
            f"epsilon={epsilon:g} leaves nothing for the model beside the units of the columns: "
            "give data_norm, the PUBLIC scale of a row, or a larger epsilon"
        )

    def _with(self, epsilon: float, data_norm: float, **more: Any) -> Self:
        """Return a twin that plans with another budget and scale; it never sees a ledger."""
        twin = object.__new__(type(self))
        given = {"epsilon": epsilon, "data_norm": data_norm, "ledger": None}
        twin.__dict__.update(self.__dict__, **given, **more, _is_scale_stated=False)
        return twin

    @abstractmethod
    def _planned(self, data: TrainingData) -> Prepared:
        """Fix every public number of a fit; of the rows, only shape and layout matter."""

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows; the sign, or the largest score, is the predicted label.

        ``X @ coef_.T + intercept_``, with ``scaler_.transform(X)`` in the place of `X` where
        there is a `scaler_`. Rows beyond a finite `data_norm_` are scaled down to it first. With
        `row_lengths_`, for a table of few rows, scores are divided by these.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, positive means ``classes_[1]``.
        """
        X = self._checked_rows(X)
        # Of a model that was chosen for a small table.
        lengths = self.row_lengths_.of(X)[:, None] if hasattr(self, "row_lengths_") else 1.0
        scores = np.asarray((self._margins(self._scaled_rows(X)) + self.intercept_) / lengths)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _rows_in_units(self, X: Any) -> Any:
        """Check rows to be scored, and bring them to the scales that the coefficients are for."""
        return self._scaled_rows(self._checked_rows(X))

    def _checked_rows(self, X: Any) -> Any:
        """Check rows to be scored."""
        check_is_fitted(self)
        return check_features(self, X, reset=False, allow_missing=self.fill_value_ is not None)

    def _scaled_rows(self, X: Any) -> Any:
        """Bring checked rows to the scales that the coefficients are for."""
        if self.scaler_ is not None:
            return self.scaler_.in_units(X)
        return X if self.fill_value_ is None else np.nan_to_num(X, nan=self.fill_value_)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        """Multiply rows by the coefficients; no parameter of today has a say."""
        if math.isinf(self.data_norm_):
            return np.asarray(X @ self.coef_.T)
        from dp_halfspace.rows.rows import clipped_rows  # noqa: PLC0415

        return clipped_rows(X, self.data_norm_).scores(self.coef_.T)

    @staticmethod
    def _probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn log odds of the second class, or scores of all classes, into probabilities."""
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def _constant_column(self) -> float | None:
        """Value of the constant column, or None without an intercept."""
        return float(self.intercept_scaling) if self.fit_intercept else None

    def _in_units_of_data(
        self,
        released: NDArray[np.float64],
        bias: float | None,
        linear_map: LinearMap | None = None,
        *,
        data_norm: float,
    ) -> NDArray[np.float64]:
        """Undo the projection and the public scales of unit rows: post-processing.

        `bias` is the value that the constant column had beside rows divided by `data_norm`.
        """
        n_kept = released.shape[1] - (bias is not None)
        features, constant = released[:, :n_kept], released[:, n_kept:]
        if linear_map is not None:
            features = linear_map.pull_back(features)
        scale = 1.0 if bias is None else bias / float(self.intercept_scaling)
        return np.hstack([features / data_norm, constant * scale])

    def _classes_source(self) -> str:
        """Say where the label set is from."""
        from dp_halfspace.privacy.record import LABELS_SEEN  # noqa: PLC0415

        return LABELS_SEEN if self.classes is None else "stated by the user"

    def _public_facts(self, n_samples: int, classes: NDArray[Any]) -> dict[str, Any]:
        """List what the guarantee treats as public in every estimator."""
        return {
            "n_samples": n_samples,
            "classes": classes.tolist(),
            "classes_source": self._classes_source(),
            "class_weight": None if self.class_weight is None else dict(self.class_weight),
            "data_norm": None if self.data_norm is None else float(self.data_norm),
            "constant_column": self._constant_column(),
        }

    def _record(
        self, data: TrainingData, events: tuple[Event, ...], **public: Any
    ) -> PrivacyRecord:
        """Say what is about to be spent, and what is assumed public."""
        from dp_halfspace.privacy.randomness import noise_kind  # noqa: PLC0415
        from dp_halfspace.privacy.record import PrivacyRecord  # noqa: PLC0415

        n_samples = data.n_privacy_units
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=resolved_delta(self.delta, n_samples),
            adjacency=self._adjacency if data.people is None else "replace-one-person",
            events=events,
            noise="none" if math.isinf(self.epsilon) else noise_kind(self.random_state),
            public={**self._public_facts(n_samples, data.classes), **public},
        )

    def _remember(
        self,
        ready: Prepared,
        released: NDArray[np.float64],
        scaler: ReleasedScaler | None,
    ) -> None:
        """Set the fitted attributes from released coefficients, all at once."""
        data, constant = ready.data, self._constant_column()
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.pop("row_lengths_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.n_features_in_ = data.X.shape[1]
        self.classes_ = data.classes
        self.data_norm_ = ready.data_norm if ready.clips else math.inf
        self.scaler_ = scaler
        learns = self.data_norm is None and self._takes_units and not sparse.issparse(data.X)
        self.fill_value_ = 0.0 if learns else None
        n_kept = released.shape[1] - (constant is not None)
        self.coef_ = np.ascontiguousarray(released[:, :n_kept])
        self.intercept_ = (
            np.zeros(len(released)) if constant is None else released[:, -1] * constant
        )
        self.privacy_ = ready.record

    @property
    def _is_binary(self) -> bool:
        """Whether there can be no more than two classes."""
        return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.data_norm is None and self._takes_units
        tags.classifier_tags.multi_class = not self._is_binary
        return tags
