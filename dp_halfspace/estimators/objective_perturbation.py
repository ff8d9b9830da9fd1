"""Regularised risk minimisation with a random linear term, solved to a certificate."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.utils.metaestimators import available_if

from dp_halfspace._sklearn import Interval, Options, StrOptions, fit_context, public_number
from dp_halfspace._validation import check_training_data, label_weights
from dp_halfspace.estimators._objective_setup import Setup, attack_facts, plan_setup
from dp_halfspace.estimators.base import (
    PrivateLinearClassifier,
    in_units_of_data,
    resolved_delta,
)
from dp_halfspace.optim.minimum import OPTIMIZERS
from dp_halfspace.optim.objective_engine import (
    run_objective_engine,
)
from dp_halfspace.optim.rows import clipped_rows
from dp_halfspace.optim.unit_rows import unit_rows
from dp_halfspace.privacy.mechanisms import authorise
from dp_halfspace.privacy.randomness import ByteSource, noise_source
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection import PROJECTIONS

__all__ = ["ObjectivePerturbationClassifier"]

_LOSSES = ("logistic", "shifted_logistic", "huber_hinge", "smoothed_hinge")


def _has_probabilities(estimator: ObjectivePerturbationClassifier) -> bool:
    """Tell whether scores are log odds: rows must be those of the logistic model."""
    return estimator.loss == "logistic" and estimator.rows == "clipped"


class ObjectivePerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact minimiser of a randomly tilted regularised risk.

    Minimises

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, z_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2 + \frac1n \langle b, w \rangle

    where the random ``b`` is Gaussian (``delta > 0``) or has the density
    ``exp(-||b|| / scale)`` (``delta = 0``). The ``z_i`` are the rows brought to norm one, by
    default in a private metric that a fifth of the budget buys. The minimum is found to a
    tolerance that is fixed in advance and certified on every data set; a second, far smaller
    noise hides what is left of the error.

    Parameters
    ----------
    loss : str, default="shifted_logistic"
        ``"shifted_logistic"``, ``"logistic"``, ``"huber_hinge"`` or ``"smoothed_hinge"``.
        Smooth convex loss of the signed margin with slope in [-1, 0]. With three classes or
        more, the logistic ones are multinomial; any other loss is used one class against the
        rest, as so many releases that share the budget.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` is a rule in n, d, the number of classes and
        the budget. Raised to a public floor: with two classes and no metric ``max(c) beta r^2
        / (n (exp(epsilon / 2) - 1))``, where r bounds the rows and beta the second derivative
        of the loss (1/4 for the logistic ones, else 1), and never below ``1e-8 r^2``.
    shift : float or "auto", default="auto"
        Margin at which ``log(1 + exp(shift - t))``, the ``"shifted_logistic"`` loss, has half
        its slope; from 0 to 100. Ignored by the other losses. A positive shift keeps records
        near the separator pulling.
    epsilon : float, default=1.0
        Budget of one call of ``fit``, in [1e-9, 1e6], or infinite. Infinity gives the
        minimiser without noise and without any guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    data_norm : float, default=1.0
        PUBLIC scale of a row. Longer rows are scaled down to it. Choose it from what the
        columns mean, never from the data.
    rows : {"unit", "clipped"}, default="unit"
        ``"unit"`` brings every clipped row, together with the constant column, to norm one;
        no halfspace changes by that. ``"clipped"`` leaves shorter rows as they are: then
        ``loss="logistic"`` is the usual logistic model and has probabilities.
    metric : bool or "auto", default="auto"
        Whether to release a private metric of the unit rows first. ``"auto"`` does so for at
        most 512 columns where the noise leaves something of it; True insists.
    projection : {"auto", "rademacher", "sparse", "hadamard"} or None, default="auto"
        Public random map of the columns to fewer, for unit rows. ``"auto"``: random signs
        for pure epsilon with more than 512 columns, else none.
    n_components : int or "auto", default="auto"
        Columns after the projection; ``"auto"`` is 150. With as many as there are
        columns, or more, nothing is projected.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is inside the norm and inside the regulariser.
    intercept_scaling : float, default=1.0
        Size of the constant column: its value with ``rows="clipped"``; otherwise relative to
        a quarter of `data_norm` (another fraction for more than 512 columns).
    classes : array-like of labels or None, default=None
        PUBLIC label set. None takes the labels seen, which are then treated as public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label in [1e-50, 1e50]; the largest is charged. ``"balanced"`` is
        refused.
    optimizer : str or callable, default="auto"
        As in `OutputPerturbationClassifier`: trusted only as far as the certificate goes.
    adversary_radius : float, default=0.0
        Largest change of a row, in the units of the columns, against which the model is
        trained; less than `data_norm`. It needs ``rows="clipped"``: what it means for rows
        brought to norm one, or in a metric, depends on the row. With three classes or more,
        each is then fitted against the rest.
    adversary_norm : {2, "inf"}, default=2
        Norm of that change: Euclidean, or the largest change of one column.
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
    alpha_ : float
        The regulariser that was used, a function of public numbers.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public. ``privacy_.epsilon_at(delta)``
        is the whole privacy profile.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    AdaptiveMarginClassifier : Noisy gradient steps; usually ahead for ``delta > 0``.
    OutputPerturbationClassifier : Adds the noise to the minimiser instead.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency: one record, features and label, is replaced. Public: the number of rows, the
    columns, the label set, every parameter and the projection. Private: everything else,
    class counts and norms included. The guarantee covers the attributes above; running time
    is not hidden.

    With an adversary each loss is that of the worst row within `adversary_radius`. Privacy then
    needs a smooth dual norm of the coefficients: its smoothing, in the record, is in proportion
    to the noise over `alpha`, and ``alpha="auto"`` keeps it to ``4 / data_norm``, for
    ``adversary_norm="inf"`` over the root of the number of columns. For moderate radii the noise
    is that without an adversary.

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang, "Differentially private empirical risk
    minimization for AUC maximization", 2021, Algorithm 3; K. Chaudhuri, C. Monteleoni and
    A. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 2011; D. Kifer,
    A. Smith and A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
    Regression", COLT 2012; R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang,
    "Towards Practical Differentially Private Convex Optimization", 2019. Proofs for the code
    as it is: ``docs/proofs/objective_perturbation.md``, ``metric.md``, ``certificate.md``,
    ``noise.md``, ``accounting.md``.

    Examples
    --------
    >>> from dp_halfspace import ObjectivePerturbationClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = ObjectivePerturbationClassifier(epsilon=0.3, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    >>> model.privacy_.epsilon
    0.3

    Against an adversary who moves every row by .1:

    >>> robust = ObjectivePerturbationClassifier(
    ...     rows="clipped", adversary_radius=0.1, classes=[-1, 1]
    ... ).fit(X, y)
    >>> worst = y * robust.decision_function(X) - 0.1 * (robust.coef_**2).sum() ** 0.5
    >>> bool((worst > 0).mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "loss": [StrOptions(set(_LOSSES))],
        "alpha": [*public_number(), StrOptions({"auto"})],
        "shift": [Interval(Real, 0, 100, closed="both"), StrOptions({"auto"})],
        "rows": [StrOptions({"unit", "clipped"})],
        "metric": ["boolean", StrOptions({"auto"})],
        "projection": [StrOptions({"auto", *PROJECTIONS}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "optimizer": [StrOptions(set(OPTIMIZERS)), callable],
        "adversary_radius": [Real],
        "adversary_norm": [Options(Real, {2}), StrOptions({"inf"})],
    }

    def __init__(
        self,
        loss: str = "shifted_logistic",
        alpha: float | str = "auto",
        *,
        shift: float | str = "auto",
        epsilon: float = 1.0,
        delta: float | str = "auto",
        data_norm: float = 1.0,
        rows: str = "unit",
        metric: bool | str = "auto",
        projection: str | None = "auto",
        n_components: int | str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: ArrayLike | None = None,
        class_weight: dict[Any, float] | None = None,
        optimizer: Any = "auto",
        adversary_radius: float = 0.0,
        adversary_norm: Literal[2, "inf"] = 2,
        random_state: int | None = None,
        ledger: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.shift = shift
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.rows = rows
        self.metric = metric
        self.projection = projection
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.class_weight = class_weight
        self.optimizer = optimizer
        self.adversary_radius = adversary_radius
        self.adversary_norm = adversary_norm
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike) -> ObjectivePerturbationClassifier:
        """Fit the model within the budget.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite features. CSR stays sparse, unless a projection is used, which makes a dense
            copy of `n_components` columns.
        y : array-like of shape (n_samples,)
            Labels from `classes`.

        Returns
        -------
        ObjectivePerturbationClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If a parameter or the schema of the data is refused; the estimator is unchanged.
        BudgetError
            By the ledger, before any noise is drawn.
        CertificateError
            If rounding errors could be as large as the influence of a record.
        """
        data = check_training_data(self, X, y, classes=self.classes)
        weights = label_weights(self.class_weight, data.classes)
        source = noise_source(self.random_state)

        delta = resolved_delta(self.delta, data.X.shape[0])
        setup = plan_setup(self, data.X, weights, delta, self._constant_column())
        record = self._record(setup, delta, data.classes, source)
        permit = authorise(record, source, self.ledger)

        norm = float(self.data_norm)
        if self.rows == "clipped":
            rows = clipped_rows(data.X, norm, setup.bias)
        else:
            rows = unit_rows(data.X, norm, setup.bias, setup.linear_map)
        w = run_objective_engine(
            setup.plan, rows, data.codes, weights, permit, optimizer=self.optimizer
        )
        self.alpha_ = setup.plan.objective.ridge
        if self.rows == "unit":
            w = in_units_of_data(
                w,
                data_norm=norm,
                bias=setup.bias,
                intercept_scaling=float(self.intercept_scaling),
                linear_map=setup.linear_map,
            )
        return self._remember(data, record, w)

    def _record(
        self, setup: Setup, delta: float, classes: NDArray[Any], source: ByteSource
    ) -> PrivacyRecord:
        """Say what is about to be spent, and what is assumed public."""
        plan, linear_map = setup.plan.objective, setup.linear_map
        return PrivacyRecord(
            epsilon=float(self.epsilon),
            delta=delta,
            events=setup.plan.events,
            noise="none" if math.isinf(self.epsilon) else source.kind,
            public={
                **self._public_facts(plan.problem.n_samples, classes),
                "loss": self.loss,
                "shift": plan.problem.loss.shift,
                "rows": self.rows,
                "relative_constant_column": setup.bias,
                "private_metric": setup.plan.metric is not None,
                "projection": None if linear_map is None else type(linear_map).__name__,
                "alpha": plan.ridge,
                "certified_gradient": plan.tolerance.certified,
                **attack_facts(plan.problem.attack, self.adversary_norm),
            },
        )

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes under the released logistic model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Only with ``loss="logistic"`` and ``rows="clipped"``. The noise makes them less
            calibrated than those of an exact model. With an adversary and three classes or
            more, the probabilities of each class against the rest, divided by their sum.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(log_expit(scores) if self.adversary_radius else scores, axis=1))
