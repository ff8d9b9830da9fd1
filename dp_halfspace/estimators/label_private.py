"""Privacy for labels alone: a logistic model of public features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from dp_halfspace._params import NUMBER_RANGE, public_number
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.algorithms import SMALLEST_MARGIN
from dp_halfspace.algorithms.fit_plan import Fitted, PublicFacts, WrappedPlan
from dp_halfspace.algorithms.label_training import (
    CoverPlan,
    StatisticPlan,
    log_odds_shift,
    plan_labels,
)
from dp_halfspace.data.chunked_data import by_chunks
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators._foreign_parameters import explains_foreign_parameters
from dp_halfspace.estimators._label_features import (
    FeatureOptions,
    LabelFeatures,
    fit_label_features,
)
from dp_halfspace.estimators.base import PrivateClassifier, PrivateLinearClassifier
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.rows.rows import Rows

# Constant column, relative to the root mean square of the public rows.
_CONSTANT, _NET_CONSTANT = 0.3, 1.0
# Components per root of n epsilon, and their range. Random candidates cover few dimensions.
_PER_ROOT, _FEWEST, _MOST, _NET_MOST = 0.85, 8, 150, 12


def _is_logistic(estimator: LabelPrivateClassifier) -> bool:
    """Tell whether scores are log odds."""
    return estimator.mechanism != "net"


@dataclass(frozen=True, slots=True)
class _LabelFit(WrappedPlan):
    """A fit of labels, which are private, to rows made of features, which are public."""

    plan: StatisticPlan | CoverPlan
    mechanism: str
    features: LabelFeatures
    rows: Rows

    @property
    def public(self) -> Mapping[str, Any]:
        """What the record says about it."""
        return {"mechanism": self.mechanism, **self.plan.public}

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Run the plan on the public rows."""
        weights = np.array(self.facts.class_weights)
        released = self.plan.run(self.rows, data.class_indices, weights, permit)
        alpha = self.plan.public["alpha"]
        return Fitted(
            np.ascontiguousarray(released),
            log_odds_shift(weights),
            data_norm=self.facts.data_norm,
            attributes={
                "feature_map_": self.features,
                "n_components_": self.features.n_components,
                **({} if alpha is None else {"alpha_": alpha}),
            },
        )


@explains_foreign_parameters
@dataclass(eq=False, repr=False)
class LabelPrivateClassifier(PrivateLinearClassifier):
    r"""Classifier that protects the LABELS only; the features are treated as public.

    Two data sets are neighbours when they have the same features and differ in the label of
    one record (adjacency "replace-one-label"). NEVER use it when features are sensitive: the
    fitted model shows features of single records. Every other class of this package protects
    whole records; this one does not.

    Features are turned into kernel features, reduced to principal directions, partly whitened and
    brought to norm one, all of which is free. Then one sum, :math:`s=\frac12\sum_iy_ix_i`, is
    released with noise; the logistic loss depends on labels through it alone.

    Parameters
    ----------
    mechanism : {"statistic", "randomized_response", "net"}, default="statistic"
        ``"statistic"`` adds noise to the sum. ``"randomized_response"`` flips labels by chance
        and corrects the sum for it; pure epsilon for every `delta`, and nobody but the owners
        of the labels needs to see them. ``"net"`` chooses among random linear classifiers by
        their errors, with the exponential mechanism.
    kernel : {"rbf", "linear"}, default="rbf"
        Random Fourier features of the Gaussian kernel, or the columns as they are.
    length_scale : float or "median", default="median"
        Of the Gaussian kernel; ``"median"`` is half the median distance of the features.
    n_fourier : int, default=1500
        Number of random Fourier features; an odd one is raised by one.
    n_components : int, "auto" or None, default="auto"
        Principal directions that are kept. ``"auto"`` is ``.85 sqrt(n epsilon)`` within
        [8, 150], for ``"net"`` within [8, 12]; None keeps all.
    whitening : float, default=0.75
        In [0, 1]: 0 leaves the principal components as they are, 1 divides them by their
        standard deviation.
    alpha : float or "auto", default="auto"
        Ridge, on the scale of the sum of losses of unit rows. ``"auto"`` balances it against
        the noise. Ignored by ``"net"``.
    n_candidates : int, default=2000
        Of ``"net"``, per stage; at most 10^6.
    margin : float or None, default=None
        Of ``"net"`` with two classes, in (0, 1]: the PUBLIC margin of unit rows of which half is
        asked, so that records with less count as errors, as published. None counts errors.
    epsilon : float, default=1.0
        Budget of one label, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    data_norm : float or None, default=None
        Longer rows are scaled down to it. None leaves the rows as they are: no privacy
        depends on their norms.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels seen to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label in [1e-50, 1e50]. Scores are shifted by its logarithm, which
        costs nothing; ``"net"`` weights errors, too. ``"balanced"`` is refused.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes the fit reproducible and
        raises `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Charged before any noise is drawn. A ledger of whole records refuses this class.
    verbose : int, default=0
        Accepted for uniformity; there is nothing to report that would be free.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Released coefficients of the unit rows, of which the last column is constant.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Shift by class weights, otherwise zero.
    feature_map_ : LabelFeatures
        The map from rows to unit rows. It is made from the features, and shows them.
    n_components_ : int
        Number of columns of the unit rows.
    alpha_ : float
        The ridge that was used; not with ``"net"``.
    data_norm_ : float
        The `data_norm` of the fit, infinite for None.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public; its adjacency is
        "replace-one-label".
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    PrivateKernelClassifier : Protects whole records, features included.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one-label
    adjacency ONLY. Public: all features, the number of rows, the label set and every
    parameter. Private: the label of each record. Labels that follow from the features are
    not hidden by anything.

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh, "Differentially Private Learning with Margin
    Guarantees", 2022, section 6, of which ``"net"`` is a computable version. Proofs:
    ``docs/proofs/label_privacy.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import LabelPrivateClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = LabelPrivateClassifier(classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.adjacency
    (True, 'replace-one-label')
    """

    mechanism: str = "statistic"
    _: KW_ONLY
    kernel: str = "rbf"
    length_scale: float | str = "median"
    n_fourier: int = 1500
    n_components: int | str | None = "auto"
    whitening: float = 0.75
    alpha: float | str = "auto"
    n_candidates: int = 2000
    margin: float | None = None
    data_norm: Any = None

    _adjacency: ClassVar[str] = "replace-one-label"
    _has_outlook: ClassVar[bool] = False
    _learns_scales: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "mechanism": [StrOptions({"statistic", "randomized_response", "net"})],
        "kernel": [StrOptions({"rbf", "linear"})],
        "length_scale": [StrOptions({"median"}), *public_number()],
        "n_fourier": [Interval(Integral, 2, 10_000, closed="both")],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "whitening": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 1e-9, NUMBER_RANGE[1], closed="both"), StrOptions({"auto"})],
        "n_candidates": [Interval(Integral, 1, 10**6, closed="both")],
        "margin": [Interval(Real, SMALLEST_MARGIN, 1, closed="both"), None],
        "data_norm": [*PrivateLinearClassifier._parameter_constraints["data_norm"], None],
    }

    def _facts(self, data: TrainingData) -> PublicFacts:
        norm = math.inf if self.data_norm is None else float(self.data_norm)
        return replace(super()._facts(data), data_norm=norm, features=data.X)

    def _plan(self, facts: PublicFacts, budget: Budget) -> _LabelFit:
        """Make the public features and fix every number of a fit."""
        facts.refuse_unsupported(())
        rng = public_generator(self.random_state, "features")
        seed = int(rng.integers(2**63))
        options = self._feature_options(facts.n_privacy_units, budget)
        features = fit_label_features(facts.features, options, rng)
        rows = features.rows(facts.features)
        plan = plan_labels(
            self.mechanism,
            rows,
            facts.n_classes,
            budget,
            ridge=None if isinstance(self.alpha, str) else float(self.alpha),
            n_candidates=int(self.n_candidates),
            seed=seed,
            margin=self._net_margin(facts.n_classes),
        )
        return _LabelFit(facts, plan, self.mechanism, features, rows)

    @property
    def _is_binary(self) -> bool:
        return self.margin is not None

    def _net_margin(self, n_classes: int) -> float | None:
        """Return the margin that is asked of records; refuse it where it has no meaning."""
        if self.margin is None:
            return None
        if self.mechanism != "net":
            raise ValueError("margin is for mechanism='net': leave it None")
        if n_classes > 2:
            raise ValueError(
                "Only binary classification is supported with a margin: leave margin=None"
            )
        return float(self.margin)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.feature_map_.rows(X).scores(self.coef_.T))

    @available_if(_is_logistic)
    @by_chunks
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes under the released logistic model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Not with ``mechanism="net"``.
        """
        return self._probabilities(self.decision_function(X))

    def _feature_options(self, n_samples: int, budget: Budget) -> FeatureOptions:
        """Collect what is asked of the features."""
        size = self.n_components
        if size == "auto":
            root = math.sqrt(n_samples * min(budget.epsilon, 1e6))
            most = _MOST if _is_logistic(self) else _NET_MOST
            size = round(min(max(_PER_ROOT * root, _FEWEST), most))
        scale = None if isinstance(self.length_scale, str) else float(self.length_scale)
        relative = _CONSTANT if _is_logistic(self) else _NET_CONSTANT
        constant = relative * float(self.intercept_scaling) if self.fit_intercept else None
        return FeatureOptions(
            kernel=self.kernel,
            length_scale=scale,
            n_fourier=int(self.n_fourier) + int(self.n_fourier) % 2,
            n_components=None if size is None else int(size),
            whitening=float(self.whitening),
            data_norm=None if self.data_norm is None else float(self.data_norm),
            constant=constant,
        )

    def _public_parameters(self, data: TrainingData) -> dict[str, Any]:
        """List what the guarantee treats as public: all features."""
        features = "all of them: only labels are protected"
        return {"features": features, **PrivateClassifier._public_parameters(self, data)}

    def _constant_column(self) -> float | None:
        """None: the constant column is one of the components."""
        return None
