"""What every linear estimator of the suite shares: parameters, prediction, tags. No ``fit``."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._sklearn import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    fit_context,
    public_number,
)
from dp_halfspace._validation import TrainingData, check_features
from dp_halfspace.estimators._shared_ledger import SharedLedger
from dp_halfspace.optim.design.rows import Rows, clipped_rows
from dp_halfspace.privacy.events import Event
from dp_halfspace.privacy.randomness import noise_kind
from dp_halfspace.privacy.record import LABELS_SEEN, PrivacyRecord
from dp_halfspace.projection import LinearMap

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Prepared", "PrivateLinearClassifier", "resolved_delta"]

# Outside nothing useful can be computed, and accounting would meet the ends of the floats.
_EPSILON_RANGE = (1e-9, 1e6)
_SMALLEST_DELTA = 1e-300


def resolved_delta(delta: float | str, n_samples: int) -> float:
    """Turn ``delta="auto"`` into min(1/n^2, 1/4), n being public."""
    return min(1.0 / n_samples**2, 0.25) if isinstance(delta, str) else float(delta)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is fixed before a fit pays: validated data, and a plan of public numbers.

    Of `data` shape, storage and label set are public, and so are the class `weights`. The `plan`
    is of the estimator's own; the `record` says what it costs.
    """

    data: TrainingData
    weights: NDArray[np.float64]
    plan: Any
    record: PrivacyRecord


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(ClassifierMixin, SharedLedger, ABC):
    """Planning, and prediction from released coefficients: neither costs anything.

    A parameter is a field of a dataclass: stated once with its type and its default, it becomes
    an argument of ``__init__``, which does nothing but keep it.
    """

    epsilon: float = 1.0
    delta: float | str = "auto"
    data_norm: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    classes: ArrayLike | None = None
    class_weight: dict[Any, float] | None = None
    random_state: int | None = None
    ledger: Any = None
    verbose: int = 0

    _adjacency: ClassVar[str] = "replace-one"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, *_EPSILON_RANGE, closed="both"), Options(Real, {math.inf})],
        "delta": [
            Interval(Real, _SMALLEST_DELTA, 0.5, closed="left"),
            Options(Real, {0}),
            StrOptions({"auto"}),
        ],
        "data_norm": public_number(),
        "fit_intercept": ["boolean"],
        "intercept_scaling": public_number(),
        "classes": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": [Interval(Integral, 0, None, closed="left"), None],
        "ledger": [HasMethods("charge"), str, os.PathLike, None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def plan(self, X: Any, y: ArrayLike) -> PrivacyRecord:
        """Say what ``fit`` would spend; nothing is trained, drawn or charged.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            What would be fitted. Of `X` only shape and storage matter, and that it is valid.
        y : array-like of shape (n_samples,)
            Labels; only the label set matters, where `classes` does not state it.

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
        return self._prepared(X, y).record

    @abstractmethod
    def _prepared(self, X: Any, y: ArrayLike) -> Prepared:
        """Validate the data and fix every public number of a fit."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score rows; the sign, or the largest score, is the predicted label.

        Rows beyond the norm of the fit are scaled down to it, as they were there.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores; with two classes, positive means ``classes_[1]``.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False)
        scores = self._rows(X).margins(self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _rows(self, X: Any) -> Rows:
        """Return the rows that the coefficients belong to; no parameter of today has a say."""
        return clipped_rows(X, self.data_norm_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to label.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

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
        data_norm: float | None = None,
    ) -> NDArray[np.float64]:
        """Undo the projection and the public scales of unit rows: post-processing.

        `bias` is the value that the constant column had beside rows divided by `data_norm`.
        """
        n_kept = released.shape[1] - (bias is not None)
        features, constant = released[:, :n_kept], released[:, n_kept:]
        if linear_map is not None:
            features = linear_map.pull_back(features)
        scale = 1.0 if bias is None else bias / float(self.intercept_scaling)
        return np.hstack([features / (data_norm or float(self.data_norm)), constant * scale])

    def _classes_source(self) -> str:
        """Say where the label set is from."""
        return LABELS_SEEN if self.classes is None else "stated by the user"

    def _public_facts(self, n_samples: int, classes: NDArray[Any]) -> dict[str, Any]:
        """List what the guarantee treats as public in every estimator."""
        return {
            "n_samples": n_samples,
            "classes": classes.tolist(),
            "classes_source": self._classes_source(),
            "class_weight": None if self.class_weight is None else dict(self.class_weight),
            "data_norm": float(self.data_norm),
            "constant_column": self._constant_column(),
        }

    def _record(
        self, data: TrainingData, events: tuple[Event, ...], **public: Any
    ) -> PrivacyRecord:
        """Say what is about to be spent, and what is assumed public."""
        n_samples = data.X.shape[0]
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=resolved_delta(self.delta, n_samples),
            adjacency=self._adjacency,
            events=events,
            noise="none" if math.isinf(self.epsilon) else noise_kind(self.random_state),
            public={**self._public_facts(n_samples, data.classes), **public},
        )

    def _remember(
        self, data: TrainingData, record: PrivacyRecord, released: NDArray[np.float64]
    ) -> Self:
        """Set the fitted attributes from released coefficients, all at once."""
        constant = self._constant_column()
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = data.feature_names
        self.n_features_in_ = data.X.shape[1]
        self.classes_ = data.classes
        self.data_norm_ = math.inf if self.data_norm is None else float(self.data_norm)
        n_kept = released.shape[1] - (constant is not None)
        self.coef_ = np.ascontiguousarray(released[:, :n_kept])
        self.intercept_ = (
            np.zeros(len(released)) if constant is None else released[:, -1] * constant
        )
        self.privacy_ = record
        return self

    @property
    def _is_binary(self) -> bool:
        """Whether there can be no more than two classes."""
        return False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = not self._is_binary
        return tags
