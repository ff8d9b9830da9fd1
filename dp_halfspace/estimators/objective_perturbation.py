"""Regularised risk minimisation with a random linear term, solved to a certificate."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from dp_halfspace._params import label_weights, public_number, resolved_delta
from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.algorithms.engine.defaults import COMPONENTS, objective_defaults
from dp_halfspace.algorithms.perturbation.preconditioned_objective import (
    PreconditionedObjectivePlan,
    plan_preconditioned_objective,
)
from dp_halfspace.algorithms.perturbation.regulariser import objective_ridge
from dp_halfspace.data.chunked_methods import by_chunks
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators.base import Prepared, PrivateLinearClassifier
from dp_halfspace.optim.objectives.losses import get_loss
from dp_halfspace.optim.risks.empirical import empirical_risk
from dp_halfspace.optim.risks.margin import MarginRisk
from dp_halfspace.optim.risks.softmax import SoftmaxRisk
from dp_halfspace.optim.solvers.minimum import OPTIMIZERS
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import PROJECTIONS, LinearMap, draw_projection
from dp_halfspace.rows.rows import block_size, clipped_rows, unit_rows

_LOSSES = ("logistic", "shifted_logistic", "huber_hinge", "smoothed_hinge")
# With clipped rows: a good separator is guessed to need coefficients of this norm in units of
# 1 / data_norm, and an intercept of this size.
_SCORE_GUESS = 1.5


@dataclass(frozen=True, slots=True)
class _Setup:
    """The public numbers of a fit."""

    plan: PreconditionedObjectivePlan
    linear_map: LinearMap | None
    bias: float | None
    shift: float


def _has_probabilities(estimator: ObjectivePerturbationClassifier) -> bool:
    """Tell whether scores are log odds: rows must be those of the logistic model."""
    return estimator.loss == "logistic" and estimator.rows == "clipped"


@dataclass(eq=False, repr=False)
class ObjectivePerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact minimiser of a regularised risk with a random linear term.

    Minimises

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, z_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2 + \frac1n \langle b, w \rangle

    where the random ``b`` is Gaussian (``delta > 0``) or has the density
    ``exp(-||b|| / scale)`` (``delta = 0``). The ``z_i`` are the rows brought to norm one, by
    default behind a private preconditioner that a fifth of the budget buys. The minimum is found to
    a tolerance that is fixed in advance and certified on every data set; a second, far smaller
    noise hides what is left of the error.

    Parameters
    ----------
    loss : str, default="shifted_logistic"
        ``"shifted_logistic"``, ``"logistic"``, ``"huber_hinge"`` or ``"smoothed_hinge"``.
        Smooth convex loss of the signed margin with slope in [-1, 0]. With three classes or
        more, the logistic ones are multinomial; any other is one class against the rest.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` is a rule in n, d, the number of classes and
        the budget. Raised to a public floor: with two classes and no preconditioner ``max(c) beta
        r^2 / (n (exp(epsilon / 2) - 1))``, where r bounds the rows and beta the second derivative
        of the loss (1/4 for the logistic ones, else 1), and never below ``1e-8 r^2``.
    shift : float or "auto", default="auto"
        Margin at which ``log(1 + exp(shift - t))``, the ``"shifted_logistic"`` loss, has half
        its slope; from 0 to 100. Ignored by the other losses. A positive shift keeps records
        near the separator pulling.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    data_norm : float or None, default=None
        PUBLIC scale of a row; longer rows are scaled down to it. None is for columns in their
        natural units, with missing values (NaN) or not: the budget then buys a centre and a width
        for each column, see `scaler_`; where that does not pay (CSR, few records) the scale
        is 1. Rows of norm one are not scaled down then.
    rows : {"unit", "clipped"}, default="unit"
        ``"unit"`` brings every clipped row, together with the constant column, to norm one;
        no halfspace changes by that. ``"clipped"`` leaves shorter rows as they are: then
        ``loss="logistic"`` is the usual logistic model and has probabilities.
    metric : bool or "auto", default="auto"
        Whether to release a private preconditioner of the unit rows first. ``"auto"`` does so for
        at most 512 columns where the noise leaves something of it; True insists.
    projection : {"auto", "rademacher", "hadamard"} or None, default="auto"
        Public random map of the columns to fewer, for unit rows. ``"auto"``: random signs
        for pure epsilon with more than 512 columns, else none.
    n_components : int or "auto", default="auto"
        Columns after the projection; ``"auto"`` is 150. Never to as many as there are.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is inside the norm and inside the regulariser.
    intercept_scaling : float, default=1.0
        Size of the constant column: its value with ``rows="clipped"``; otherwise relative to
        a quarter of `data_norm` (another fraction for more than 512 columns).
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels seen to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label in [1e-50, 1e50]; the largest is charged. ``"balanced"`` is
        refused.
    optimizer : str or callable, default="auto"
        As in `OutputPerturbationClassifier`: trusted only as far as the certificate goes.
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
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite where they were normalised.
    scaler_ : ReleasedScaler or None
        Released units of the columns, None where none were learnt.
    fill_value_ : float or None
        What stands for a missing entry, None where `X` must not have any.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public.
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
    adjacency. Public: the number of rows, the columns, the label set, every parameter and the
    projection. Private: everything else, class counts and norms included. The guarantee covers
    the attributes above; running time is not hidden.

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang, "Differentially private empirical risk
    minimization for AUC maximization", 2021, Algorithm 3; K. Chaudhuri, C. Monteleoni and
    A. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 2011; D. Kifer,
    A. Smith and A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
    Regression", COLT 2012; R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang,
    "Towards Practical Differentially Private Convex Optimization", 2019. Proofs for the code
    as it is: ``docs/proofs/objective_perturbation.md``, ``preconditioner.md``, ``certificate.md``,
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
    """

    loss: str = "shifted_logistic"
    alpha: float | str = "auto"
    _: KW_ONLY
    shift: float | str = "auto"
    rows: str = "unit"
    metric: bool | str = "auto"
    projection: str | None = "auto"
    n_components: int | str = "auto"
    optimizer: Any = "auto"

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
    }

    def _trained(self, ready: Prepared, permit: Permit) -> None:
        """Minimise the perturbed risk of the rows."""
        data, scaler = ready.in_units(permit)

        setup, norm = ready.plan, ready.data_norm
        if self.rows == "clipped":
            rows = clipped_rows(data.X, norm, setup.bias)
        else:
            rows = unit_rows(data.X, norm, setup.bias, setup.linear_map, clips=ready.clips)
        released = setup.plan.run(rows, data.codes, ready.weights, permit)

        self.alpha_ = setup.plan.objective.ridge
        if self.rows == "unit":
            projected = setup.linear_map
            released = self._in_units_of_data(released, setup.bias, projected, data_norm=norm)
        self._remember(ready, released, scaler)

    def _planned(self, data: TrainingData) -> Prepared:
        weights = label_weights(self.class_weight, data.classes)
        setup = self._setup(data.X, weights)
        projection = None if setup.linear_map is None else type(setup.linear_map).__name__
        record = self._record(
            data,
            setup.plan.events,
            loss=self.loss,
            shift=setup.shift,
            rows=self.rows,
            relative_constant_column=setup.bias,
            projection=projection,
            **setup.plan.public,
        )
        clips = self._is_scale_stated or self.rows == "clipped"
        return Prepared(data, weights, setup, record, float(self.data_norm), clips)

    def _setup(self, X: Any, weights: NDArray[np.float64]) -> _Setup:
        """Fix the public numbers of a fit; of `X`, only shape and layout matter."""
        n_samples, n_features = X.shape
        constant, delta = self._constant_column(), resolved_delta(self.delta, n_samples)
        # By the columns of the data: how much a projection drowns is what the rules weigh.
        columns = n_features + (constant is not None)
        defaults = objective_defaults(n_samples, columns, len(weights), float(self.epsilon), delta)
        linear_map = self._drawn_map(n_features, defaults.n_components)
        n_kept = n_features if linear_map is None else linear_map.n_components
        bias, row_norm = constant, math.hypot(self.data_norm, constant or 0.0) * UP
        if self.rows == "unit":
            bias, row_norm = None if constant is None else defaults.constant_column * constant, 1.0
        shift = defaults.margin_offset if isinstance(self.shift, str) else float(self.shift)
        loss = get_loss(self.loss, **({"shift": shift} if self.loss == "shifted_logistic" else {}))
        is_sparse = sparse.issparse(X) and linear_map is None
        risk = empirical_risk(
            loss,
            n_samples,
            n_kept + (constant is not None),
            len(weights),
            row_norm=row_norm,
            block_rows=block_size(n_samples, n_kept, is_sparse=is_sparse),
            max_weight=float(weights.max()),
        )
        plan = plan_preconditioned_objective(
            risk,
            float(self.epsilon),
            delta,
            ridge=self._ridge(risk, delta),
            preconditioner=self.metric is not False and self.rows == "unit",
            optimizer=self.optimizer,
        )
        if self.metric is True and plan.preconditioner is None:
            raise ValueError(
                'metric=True needs rows="unit", at most 512 columns and enough budget and rows'
            )
        return _Setup(plan, linear_map, bias, loss.shift)

    def _ridge(self, risk: MarginRisk | SoftmaxRisk, delta: float) -> float | None:
        """Return the wanted regulariser; None leaves it to the rule for unit rows."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        if self.rows == "unit":
            return None
        constant = self._constant_column()
        inverse = 1.0 / constant if constant else 0.0
        guess = _SCORE_GUESS * math.hypot(1.0 / float(self.data_norm), inverse)
        return objective_ridge(risk, float(self.epsilon), delta, norm_guess=guess)

    def _drawn_map(self, n_features: int, wanted: int | None) -> LinearMap | None:
        """Draw the public projection, if there is one."""
        kind, components = self.projection, self.n_components
        if kind in PROJECTIONS and self.rows == "clipped":
            raise ValueError('a projection needs rows="unit"')
        if kind == "auto":
            is_wanted = wanted is not None and math.isfinite(self.epsilon) and self.rows == "unit"
            kind = "rademacher" if is_wanted else None
        if kind is None:
            return None
        size = COMPONENTS if isinstance(components, str) else int(components)
        rng = public_generator(self.random_state, "projection")
        return draw_projection(kind, n_features, size, rng)

    @available_if(_has_probabilities)
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
            Only with ``loss="logistic"`` and ``rows="clipped"``.
        """
        return self._probabilities(self.decision_function(X))
