"""Base of classifiers that wrap another one."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._budget import SharedLedger
from dp_halfspace.data.validation import share_of_right


class WrappingClassifier(MetaEstimatorMixin, ClassifierMixin, SharedLedger):
    """A classifier that wraps another one and passes on its probabilities, scores and tags."""

    estimator: Any

    @property
    def _inner(self) -> Any:
        """The wrapped model, or the best run of a fitted search."""
        return getattr(self, "best_estimator_", self.estimator)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the model inside."""
        return int(self._inner.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of the model inside, if it stores them."""
        return np.asarray(self._inner.feature_names_in_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels, as the model inside does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self._inner.predict(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the records whose label is predicted; not private.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        return share_of_right(y, self.predict(X), self.classes_, sample_weight)

    @available_if(attrgetter("_inner.predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities of the model inside as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self._inner.predict_proba(X))

    @available_if(attrgetter("_inner.decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of the model inside as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self._inner.decision_function(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not hasattr(self.estimator, "__sklearn_tags__"):
            # A model of another library may not declare its features.
            return tags
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        return tags
