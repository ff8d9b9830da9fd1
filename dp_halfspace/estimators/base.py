"""The base classes of all estimators: the order of a fit, parameters, prediction, tags."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import (
    BUDGET,
    SharedLedger,
    warn_of_calls_around,
    warn_of_label_among_columns,
    warn_of_weak_budget,
)
from dp_halfspace._memory import NUMBER_BYTES, by_blocks, refuse_beyond_memory
from dp_halfspace._params import (
    PUBLIC_NUMBER,
    fit_context,
    label_weights,
    plain,
    resolved_delta,
)
from dp_halfspace._sklearn_compat import (
    HAS_CALLBACKS,
    FitTasks,
    StrOptions,
    set_callbacks,
    with_callbacks,
)
from dp_halfspace.data.chunked_data import by_chunks, check_chunks
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.owners import sort_by_person
from dp_halfspace.data.record_weights import with_sample_weight
from dp_halfspace.data.validation import (
    TrainingData,
    check_features,
    check_training_data,
    is_chunked,
    share_of_right,
)
from dp_halfspace.engine import probabilities
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.estimators._outlook import ENOUGH, Outlook
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.preprocessing.scalers import ReleasedScaler
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.events import Either, RandomStopping, single_runs
from dp_halfspace.privacy.record import LABELS_SEEN, PrivacyRecord, unit_of
from dp_halfspace.rows.rows import clipped_rows

if TYPE_CHECKING:
    from typing_extensions import Self


def _has_probabilities(model: Any) -> bool:
    """Whether a model has probabilities; the error of one without says what to use."""
    why_not = model._why_no_probabilities()
    if why_not:
        raise AttributeError(why_not)
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, SharedLedger, ABC):
    """A classifier whose fit is planned from public numbers, then charged, and only then run.

    A parameter is a field of a dataclass, stated once with its type and its default. It becomes an
    argument of ``__init__``, which only stores it.
    """

    epsilon: float = 1.0
    delta: float | str = "auto"
    classes: ArrayLike | None = None
    class_weight: dict[Any, float] | str | None = None
    random_state: int | None = None
    ledger: Any = None
    verbose: int = 0

    # Metadata routing reads signatures, and the signature of `fit` does not show the private
    # weights.
    __metadata_request__fit: ClassVar[dict[str, None]] = {"sample_weight": None}

    # Whether class_weight="balanced" is supported, by noisy counts of the classes.
    _can_balance_classes: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BUDGET,
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "verbose": ["verbose"],
    }

    @available_if(lambda self: HAS_CALLBACKS)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks of scikit-learn 1.9, such as ``sklearn.callback.ProgressBar()``.

        Parameters
        ----------
        *callbacks : callback instances
            They replace those that were set; without any, none is left.

        Returns
        -------
        estimator object
            The estimator itself.

        Notes
        -----
        **Privacy.** A task is one release, and the number of tasks is public. Callbacks get no rows
        and no labels; the fitted model is passed to them at the end of the fit, when all of it was
        released. They cannot stop a fit. Where the number of releases is secret, as with
        ``selection="random_stopping"``, there is one task, the fit.
        """
        set_callbacks(self, callbacks)
        return self

    @with_callbacks
    @fit_context
    def fit(self, X: Any, y: ArrayLike, *, groups: Any = None, sample_weight: Any = None) -> Self:
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
            The person to whom each row belongs: texts, numbers or dates. The unit of privacy is
            then a person with all rows, each of which weighs one over their number; the number of
            people is public, the number of rows of each person is not. ``docs/guide/persons.md``
            lists the estimators and parameters that protect people.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            PRIVATE weight of each record in [0, 1], a part of the record. Whatever the weights, the
            noise is the same, so small ones cost accuracy: the largest should be near 1. From 20
            records on. ``docs/guide/weights.md`` lists the estimators and parameters that weigh
            records, and why the signature does not show this parameter.

        Returns
        -------
        estimator object
            The fitted estimator itself.

        Raises
        ------
        ValueError, BudgetError, CertificateError
            If parameters, data or budget are refused. Nothing was spent or changed.

        Notes
        -----
        **Privacy.** The record of `plan` is charged to the ledger before any noise is drawn.
        """
        # Plan: every number that privacy rests on follows from public facts.
        data = self._training_data(X, y, groups, sample_weight)
        plan, record = self._planned(data)
        warn_of_calls_around(record)
        warn_of_weak_budget(record)
        self._warn_of_data(data, y)
        if self.verbose:
            print(f"{type(self).__name__} is about to release: {record}")
        # Pay: the ledger is charged before any noise is drawn.
        permit = self._permit_for(record, data, self.ledger, X)
        tasks = FitTasks(self, _n_releases(record))
        permit.on_release = tasks.release
        # Run: make the releases, and map the coefficients back to the units of X.
        fitted = plan.run(Door(data, permit))
        # Record: set all fitted attributes at once.
        self._set_fitted(fitted, data, record)
        if self.verbose:
            print(f"{type(self).__name__} has charged and released it")
        tasks.end()
        if self._finding:
            warn_caller(self._finding)
        return self

    @fit_context
    def plan(
        self, X: Any, y: ArrayLike, *, groups: Any = None, sample_weight: Any = None
    ) -> PrivacyRecord:
        """Say what ``fit`` would spend; nothing is trained, drawn or charged.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            What would be fitted. Of `X` only shape and storage matter, and that it is valid.
        y : array-like of shape (n_samples,)
            Labels; only the label set matters, where `classes` does not state it.
        groups : array-like of shape (n_samples,) or None, default=None
            The person to whom each row belongs, if ``fit`` accepts `groups`; only the number of
            people matters.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights, where ``fit`` takes them; only that they are given and valid matters.

        Returns
        -------
        PrivacyRecord
            The record that a fit would carry: its ``events``, ``epsilon_at(delta)`` for any
            delta, and what it would treat as public.

        Raises
        ------
        ValueError, BudgetError, CertificateError
            As ``fit`` would before it charges.

        Notes
        -----
        **Privacy.** A function of public quantities, so calling it uses no budget.
        """
        data = self._training_data(X, y, groups, sample_weight)
        record = self._planned(data)[1]
        self._warn_of_data(data, y)
        return record

    def _warn_of_data(self, data: TrainingData, y: Any) -> None:
        """Warn by public facts alone of labels among the columns, and of too few records."""
        warn_of_label_among_columns(y, self._names_read(data))
        outlook = self._outlook(data)
        if outlook is not None and outlook.is_poor:
            warn_caller(str(outlook))

    def _training_data(
        self, X: Any, y: ArrayLike, groups: Any = None, sample_weight: Any = None
    ) -> TrainingData:
        """Validate the data, with the weights of the records if there are any."""
        data = self._validate(X, y, groups)
        return data if sample_weight is None else with_sample_weight(data, sample_weight)

    @abstractmethod
    def _validate(self, X: Any, y: ArrayLike, groups: Any) -> TrainingData:
        """Validate the data, and sort the rows by person."""

    def _checked(self, X: Any, y: ArrayLike, groups: Any, **how: Any) -> TrainingData:
        """Validate rows of numbers and labels, and sort the rows by person."""
        if is_chunked(X):
            data = check_chunks(self, X, y, **how)
        else:
            data = check_training_data(self, X, y, hides_rows=groups is not None, **how)
        if groups is None:
            return data
        X, people, codes = sort_by_person(groups, data.X, data.class_indices)
        return replace(data, X=X, class_indices=codes, people=people)

    @abstractmethod
    def _fit_plan(self, data: TrainingData) -> FitPlan:
        """Fix every public number of a fit, by the shape and the type of the rows only."""

    def _facts_of(self, data: TrainingData, **shape: Any) -> PublicFacts:
        """Collect the public facts that planning may use; `shape` are those of the columns."""
        balances_classes = self._can_balance_classes and isinstance(self.class_weight, str)
        weights = None if balances_classes else self.class_weight
        return PublicFacts(
            n_privacy_units=data.n_privacy_units,
            n_classes=len(data.classes),
            class_weights=tuple(label_weights(weights, data.classes).tolist()),
            is_chunked=isinstance(data.X, Chunks),
            has_people=data.people is not None,
            balances_classes=balances_classes,
            has_weights=data.weights is not None,
            **shape,
        )

    @abstractmethod
    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        """Set the fitted attributes, all at once."""

    def _planned(self, data: TrainingData) -> tuple[FitPlan, PrivacyRecord]:
        """Plan a fit, with the record of its releases and of the facts assumed to be public."""
        plan, delta = self._fit_plan(data), resolved_delta(self.delta, data.n_privacy_units)
        return plan, self._record_of(plan, delta, data.people, self._public_parameters(data))

    def _public_parameters(self, data: TrainingData) -> dict[str, Any]:
        """List the facts that the guarantee treats as public in every fit."""
        return {
            "n_samples": data.n_privacy_units,
            "classes": data.classes.tolist(),
            "classes_source": LABELS_SEEN if data.are_labels_seen else "stated by the user",
            "class_weight": self.class_weight,
            **({} if data.weights is None else {"sample_weight": "private, in [0, 1]"}),
        }

    def _outlook(self, data: TrainingData) -> Outlook | None:
        """Return what to expect by public numbers, None if no rule was measured for this fit."""
        n_columns = self._n_columns(data)
        if n_columns is None:
            return None
        unit = "records" if data.people is None else "persons"
        return Outlook(data.n_privacy_units, n_columns, float(self.epsilon), unit)

    def _n_columns(self, data: TrainingData | None) -> int | None:
        """Return the number of encoded columns of `data`, or of the fitted model.

        The result is None if the rule of an outlook is not for this fit.
        """
        return None

    @property
    def _finding(self) -> str:
        """What the released model shows about its own ranking; empty if it shows nothing."""
        return ""

    def _names_read(self, data: TrainingData) -> list[str]:
        """Return the names of the columns that the model reads, if they have names."""
        return [] if data.feature_names is None else list(data.feature_names)

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit."""
        for name in list(vars(self)):
            if name.endswith("_") and name[0] != "_":
                delattr(self, name)

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows."""

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the records whose label is predicted; not private.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows to label.
        y : array-like of shape (n_samples,)
            Their labels, of every type that `fit` takes.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records in the share.

        Returns
        -------
        float

        Notes
        -----
        **Privacy.** The share is a function of the records, and is not covered by any guarantee:
        :func:`~dp_halfspace.metrics.private_score` releases it within a budget.
        """
        return share_of_right(y, self.predict(X), self.classes_, sample_weight)

    @abstractmethod
    def _checked_rows(self, X: Any) -> Any:
        """Validate rows to be scored, of which parts can be taken."""

    @abstractmethod
    def _scores(self, rows: Any) -> NDArray[np.float64]:
        """Score validated rows."""

    def _predicted(
        self,
        X: Any,
        of_scores: Callable[[NDArray[np.float64]], NDArray[Any]],
        *,
        n_numbers: int | None = None,
    ) -> NDArray[Any]:
        """Return a function of the scores of each row: `n_numbers`, by default one for each class.

        Many classes are scored some rows at a time, so that all of their scores are in memory at
        once only if they are the result.
        """
        rows, n_classes = self._checked_rows(X), len(self.classes_)
        refuse_beyond_memory(
            NUMBER_BYTES * rows.shape[0] * (n_numbers or n_classes),
            f"a prediction of {n_classes} classes for all of these rows",
            "give fewer rows at a time",
        )
        # Scores, exponentials and their order.
        row_bytes = 4 * NUMBER_BYTES * n_classes + self._bytes_to_score_a_row()
        return by_blocks(lambda part: of_scores(self._scores(part)), rows, row_bytes)

    def _bytes_to_score_a_row(self) -> int:
        """Return the memory that one row needs before it has scores."""
        return 0

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
        return self._predicted(X, self._labels, n_numbers=1)

    @available_if(_has_probabilities)
    @by_chunks
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Estimate the probabilities of the classes, at no budget.

        They are functions of the scores. Default steps stop where the expected clipped slope of a
        record vanishes; the probabilities at which it does are ``p max(1, |e - p| / sqrt(1/2))``,
        divided by their sum over the classes. Here p is the softmax of the scores, or the logistic
        function of the score of two classes, and e the indicator of a class. Minimisers of the
        logistic loss have p itself. After a selection for a small table every prediction is about
        equally sure, by what the fit has counted (see `certainty_`). With class weights
        or a tilt probabilities are those of a weighted population.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            Rows, as for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.

        Raises
        ------
        AttributeError
            If the scores of the model are no log odds; the message says what to use.
        """
        return self._predicted(X, lambda scores: np.exp(self._log_probabilities(scores)))

    @available_if(_has_probabilities)
    @by_chunks
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Estimate the logarithms of the probabilities of the classes; see `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), or in chunks
            Rows, as for `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of probabilities, in the order of ``classes_``.
        """
        return self._predicted(X, self._log_probabilities)

    def _why_no_probabilities(self) -> str:
        """Say why the model has no probabilities, and what has; empty if it has them."""
        return (
            f"{type(self).__name__} has no probabilities: its scores are no log odds. Use "
            "AdaptiveMarginClassifier or PrivateTableClassifier, whose probabilities follow from "
            "the scores, or decision_function for the scores"
        )

    def _log_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert log odds of the second class, or scores of all classes, to logarithms."""
        return probabilities.of_log_odds(scores)

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """Return the label with the largest score."""
        class_indices = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[class_indices])


def has_defaults(estimator: Any, kind: type, names: Sequence[str]) -> bool:
    """Whether parameters have the defaults of a class; an array never equals one."""
    pairs = [(plain(getattr(estimator, name)), getattr(kind, name)) for name in names]
    return all(
        value is default or (isinstance(value, str | Real) and value == default)
        for value, default in pairs
    )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(PrivateClassifier):
    """Base of linear classifiers: planning, and prediction from released coefficients."""

    data_norm: Any = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0

    # Whether column scales are estimated if `data_norm` is not stated.
    _estimates_scales: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateClassifier._parameter_constraints,
        "data_norm": [PUBLIC_NUMBER, None],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [PUBLIC_NUMBER],
    }

    def _validate(self, X: Any, y: ArrayLike, groups: Any) -> TrainingData:
        allow_missing = self.data_norm is None and self._estimates_scales
        return self._checked(X, y, groups, classes=self.classes, allow_missing=allow_missing)

    def _facts(self, data: TrainingData) -> PublicFacts:
        """Collect the public facts about a table that planning may use."""
        X, norm = data.X, self.data_norm
        data_norm, scaling = 1.0 if norm is None else float(norm), float(self.intercept_scaling)
        # Rows can be read in float32 if each is a record, and if scales are in its range:
        # docs/proofs/certificate.md, section 9.
        in_range = all(2.0**-20 <= each <= 2.0**20 for each in (data_norm, scaling))
        can_be_single = in_range and data.people is None
        is_float32 = isinstance(X, np.ndarray) and X.dtype == np.float32
        return self._facts_of(
            data,
            n_features=X.shape[1],
            data_norm=data_norm,
            is_scale_stated=norm is not None,
            is_sparse=sparse.issparse(X),
            is_single=is_float32 and norm is not None and can_be_single,
            copies_are_single=can_be_single,
        )

    def _n_columns(self, data: TrainingData | None) -> int | None:
        return int(self.n_features_in_ if data is None else data.X.shape[1])

    @property
    def _finding(self) -> str:
        if not np.any(self.coef_):
            return (
                "every row has the same score: no candidate was clearly better than predicting one "
                "label. Use more records or a larger epsilon"
            )
        if not hasattr(self, "class_weight_"):
            return ""
        record = self.privacy_
        n_samples, unit = dict(record.public)["n_samples"], f"{unit_of(record)}s"
        whole = Outlook(n_samples, self.n_features_in_, record.epsilon, unit)
        weight = round(n_samples / np.mean(1.0 / self.class_weight_))
        left = replace(whole, n_samples=weight)
        if whole.improvement < ENOUGH or left.improvement >= ENOUGH:
            return ""
        return (
            "by noisy counts one class is so rare that class_weight='balanced' leaves all "
            f"{unit} together the weight of about {weight}. For these {left.expectation}. Without "
            "class weights a fit usually ranks better; choose a threshold for its scores"
        )

    def _fit_plan(self, data: TrainingData) -> FitPlan:
        facts = self._facts(data)
        if facts.features is None:
            # Public features may be reduced before anything is fitted to them.
            facts.refuse_beyond_memory(facts.n_features)
        delta = resolved_delta(self.delta, facts.n_privacy_units)
        plan = self._plan(facts, Budget.of(float(self.epsilon), delta))
        facts.refuse_unsupported(plan.takes)
        return plan

    @abstractmethod
    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        """Fix every public number of a fit, a function of public facts and of a budget."""

    @by_chunks
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows; the sign, or the largest score, is the predicted label.

        ``X @ coef_.T + intercept_``, with ``scaler_.transform(X)``, which clips columns and
        shortens long rows, instead of `X` if there is a `scaler_`. Rows beyond a finite
        `data_norm_` are scaled down to it first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, positive means ``classes_[1]``.
        """
        return self._predicted(X, np.asarray)

    def _scores(self, rows: Any) -> NDArray[np.float64]:
        scores = self._margins(self._scaled_rows(rows))
        scores += self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _checked_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_features(self, X, reset=False, allow_missing=self.fill_value_ is not None)

    def _scaled_rows(self, X: Any) -> Any:
        """Convert validated rows to the column scales of the coefficients."""
        if self.scaler_ is not None:
            return self.scaler_.in_column_scales(X)
        if self.fill_value_ is None or sparse.issparse(X):
            return X
        return np.nan_to_num(X, nan=self.fill_value_)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        """Multiply rows by the coefficients, independently of the current parameters."""
        if math.isinf(self._row_norm):
            return np.asarray(X @ self.coef_.T)
        return clipped_rows(X, self._row_norm).scores(self.coef_.T)

    @property
    def _row_norm(self) -> float:
        """Norm to which longer rows are scaled down before they are scored."""
        return self.data_norm_

    def _constant_column(self) -> float | None:
        """Value of the constant column, or None without an intercept."""
        return float(self.intercept_scaling) if self.fit_intercept else None

    def _public_parameters(self, data: TrainingData) -> dict[str, Any]:
        return {
            **super()._public_parameters(data),
            "data_norm": None if self.data_norm is None else float(self.data_norm),
            "constant_column": self._constant_column(),
        }

    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        self._forget()
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.n_features_in_ = data.X.shape[1]
        self.classes_, self.privacy_ = data.classes, record
        self.coef_, self.intercept_ = fitted.coefficients, fitted.intercepts
        self.data_norm_ = fitted.data_norm
        is_filled = self.data_norm is None and self._estimates_scales
        self.fill_value_ = 0.0 if is_filled and not sparse.issparse(data.X) else None
        self.scaler_ = None
        if fitted.scales is not None:
            scales, how = fitted.scales, (fitted.clip, fitted.row_clip)
            self.scaler_ = ReleasedScaler(scales.center, scales.scale, *how)
        for name, value in fitted.attributes.items():
            setattr(self, name, value)
        if self.scaler_ is not None:
            self.scaler_.n_features_in_ = self.n_features_in_
            if data.feature_names is not None:
                self.scaler_.feature_names_in_ = data.feature_names

    @property
    def _is_binary(self) -> bool:
        """Return whether there can be no more than two classes."""
        return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.data_norm is None and self._estimates_scales
        tags.classifier_tags.multi_class = not self._is_binary
        return tags


class DefaultStepsClassifier(PrivateLinearClassifier):
    """Base of classifiers whose default fits take the steps of the engine.

    Probabilities follow from the scores of these fits, and of a selection for a small table.
    """

    @abstractmethod
    def _takes_default_steps(self, *, is_pure: bool) -> bool:
        """Return whether a fit takes the steps of the engine and not a published algorithm."""

    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        super()._set_fitted(fitted, data, record)
        if fitted.error_share is not None:
            self.certainty_ = probabilities.certainty_of(fitted.error_share, len(self.classes_))

    def _why_no_probabilities(self) -> str:
        # Of a fit, that it took default steps or was a selection; before it, that it may.
        if hasattr(self, "classes_"):
            released = ("coef_std_error_", "row_clip_", "certainty_")
            has_any = any(hasattr(self, name) for name in released)
        else:
            has_any = self._takes_default_steps(is_pure=self.delta == 0)
        if has_any:
            return ""
        return (
            "only a fit with default parameters has probabilities: this one is of a published "
            "algorithm (margin, solver, selection or delta=0), or a public model was kept. Use "
            "decision_function"
        )

    def _log_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if hasattr(self, "certainty_"):
            return super()._log_probabilities(self.certainty_ * probabilities.surety(scores))
        return probabilities.log_probabilities_of(scores)


def _n_releases(record: PrivacyRecord) -> int | None:
    """Return how many releases a fit makes, zero if that is secret, None if it depends on them."""
    counts = single_runs(record.events)
    if any(isinstance(event, RandomStopping) for event in counts):
        return 0
    # Without noise a record lists no releases one by one.
    is_open = math.isinf(record.epsilon) or any(isinstance(event, Either) for event in counts)
    return None if is_open else sum(counts.values())
