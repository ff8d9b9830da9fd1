"""The default linear classifier: a halfspace of large margin that nobody had to know."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dp_halfspace._sklearn import fit_context
from dp_halfspace._validation import check_training_data, label_weights
from dp_halfspace.estimators.base import PrivateLinearClassifier, resolved_delta
from dp_halfspace.optim.defaults import EngineDefaults, engine_defaults
from dp_halfspace.optim.engine import EnginePlan, plan_engine, run_engine
from dp_halfspace.optim.rows import block_size
from dp_halfspace.optim.unit_rows import unit_rows
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.profiles import gdp_mu
from dp_halfspace.privacy.randomness import ByteSource, noise_source
from dp_halfspace.privacy.record import PrivacyRecord

__all__ = ["AdaptiveMarginClassifier"]


class AdaptiveMarginClassifier(PrivateLinearClassifier):
    """Private linear classifier for any margin: the default of the suite.

    Rows are brought to norm one. A fifth of the budget buys a private metric (the second
    moment of the rows), the rest 40 accelerated full-batch gradient steps on clipped slopes
    of a shifted logistic loss. Nothing has to be tuned, and the margin need not be known.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one call of ``fit``, in (0, inf]. Infinity runs the same steps without noise
        and without any guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``. Must be positive: the steps are Gaussian.
    data_norm : float, default=1.0
        PUBLIC scale of a row. Longer rows are scaled down to it; then every row is normalised
        together with the constant column. Choose it from what the columns mean, never from
        the data.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default of one half of `data_norm`
        (less for more than 512 columns).
    classes : array-like of labels or None, default=None
        PUBLIC label set. None takes the labels seen, which are then treated as public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label; only their ratios matter. ``"balanced"`` is refused.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts; zero when ``fit_intercept=False``.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    OutputPerturbationClassifier : One noisy minimiser; also for pure epsilon.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency, and exactly mu-Gaussian private. Public: the number of rows, the columns, the
    label set and every parameter. Private: everything else. No branch depends on the data.

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh, "Differentially Private Learning with Margin
    Guarantees", 2022; E. Wang, Y. Zhu and Y.-X. Wang, "Adapting to Linear Separable Subsets with
    Large-Margin in Differentially Private Learning", 2025, Algorithm 5 with corrected noise.
    Proofs: ``docs/proofs/metric.md``, ``docs/proofs/noisy_gradient.md``. Constants:
    ``docs/defaults.md``.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = AdaptiveMarginClassifier(epsilon=0.3, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | str = "auto",
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | None = None,
        random_state: int | None = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> AdaptiveMarginClassifier:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite features; CSR stays sparse.
        y : array-like of shape (n_samples,)
            Labels from `classes`.

        Returns
        -------
        AdaptiveMarginClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If a parameter or the schema of the data is refused; the estimator is unchanged.
        BudgetError
            By the ledger, before any noise is drawn.
        """
        data = check_training_data(self, X, y, classes=self.classes)
        weights = label_weights(self.class_weight, data.classes)
        source = noise_source(self.random_state)

        defaults, plan = self._plan(data.X, len(data.classes))
        record = self._record(defaults, plan, data.X.shape[0], data.classes, source)
        permit = authorise(record, source, self.ledger)

        bias = defaults.bias * float(self.intercept_scaling) if self.fit_intercept else None
        rows = unit_rows(data.X, float(self.data_norm), bias)
        released = run_engine(plan, rows, data.codes, weights / weights.max(), permit)

        return self._remember(data, record, self._in_units_of_data(released, bias))

    def _plan(self, X: Any, n_classes: int) -> tuple[EngineDefaults, EnginePlan]:
        """Fix the public numbers of a fit; of `X`, only shape and layout matter."""
        n_samples, n_features = X.shape
        delta = resolved_delta(self.delta, n_samples)
        if delta == 0 and math.isfinite(self.epsilon):
            raise ValueError(
                "delta must be positive: the steps are Gaussian. For pure epsilon use "
                "OutputPerturbationClassifier(delta=0)"
            )
        mu = math.inf if math.isinf(self.epsilon) else gdp_mu(float(self.epsilon), delta)
        n_columns = n_features + bool(self.fit_intercept)
        defaults = engine_defaults(n_samples, n_columns, n_classes, mu)
        plan = plan_engine(
            defaults,
            n_samples=n_samples,
            n_columns=n_columns,
            n_classes=n_classes,
            block_rows=block_size(n_samples, n_features, is_sparse=sparse.issparse(X)),
            mu=mu,
        )
        return defaults, plan

    def _record(
        self,
        defaults: EngineDefaults,
        plan: EnginePlan,
        n_samples: int,
        classes: NDArray[Any],
        source: ByteSource,
    ) -> PrivacyRecord:
        """Say what is about to be spent, and what is assumed public."""
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=resolved_delta(self.delta, n_samples),
            events=plan.events,
            noise="none" if math.isinf(self.epsilon) else source.kind,
            public={
                **self._public_facts(n_samples, classes),
                "relative_constant_column": defaults.bias,
                "private_metric": plan.metric is not None,
                "n_steps": plan.descent.n_steps,
            },
        )

    def _in_units_of_data(
        self, released: NDArray[np.float64], bias: float | None
    ) -> NDArray[np.float64]:
        """Undo the public scale of the rows: post-processing."""
        n_features = released.shape[1] - (bias is not None)
        scale = np.full(released.shape[1], 1.0 / float(self.data_norm))
        if bias is not None:
            scale[n_features:] = bias / float(self.intercept_scaling)
        return np.asarray(released * scale)
