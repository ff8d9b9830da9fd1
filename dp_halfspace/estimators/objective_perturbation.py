"""Regularised risk minimisation with a random linear term, solved to a certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from dp_halfspace._params import explains_absence, explains_foreign_parameters, public_number
from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.algorithms.engine.defaults import COMPONENTS, objective_defaults
from dp_halfspace.algorithms.engine.training import refuse_projected_rows
from dp_halfspace.algorithms.perturbation.output import objective_ridge
from dp_halfspace.algorithms.perturbation.preconditioned import (
    PreconditionedObjectivePlan,
    plan_preconditioned_objective,
)
from dp_halfspace.data.chunked_data import by_chunks
from dp_halfspace.data.record_weights import weights_of
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import Fitted, PublicFacts, WrappedPlan, for_rows_as_given
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.optim.losses import get_loss
from dp_halfspace.optim.risks import MarginRisk, SoftmaxRisk, empirical_risk
from dp_halfspace.optim.solvers import OPTIMIZERS
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import PROJECTIONS, LinearMap, draw_projection
from dp_halfspace.rows.blocks import block_size
from dp_halfspace.rows.rows import clipped_rows, normalised_rows

_LOSSES = ("logistic", "shifted_logistic", "huber_hinge", "smoothed_hinge")
# Guess for clipped rows of the norm of good coefficients, in units of 1 / data_norm, and of the
# size of the intercept.
_SCORE_GUESS = 1.5


@dataclass(frozen=True, slots=True)
class _ObjectiveFit(WrappedPlan):
    """A perturbed objective of rows with norm one or, if `is_clipped`, with a bounded norm.

    `constant_column` is the value of the constant column for these rows.
    """

    plan: PreconditionedObjectivePlan
    intercept: float | None
    linear_map: LinearMap | None
    constant_column: float | None
    is_clipped: bool
    parameters: Mapping[str, Any]

    @property
    def public(self) -> Mapping[str, Any]:
        """Public facts for the record."""
        projection = None if self.linear_map is None else type(self.linear_map).__name__
        more = {"relative_constant_column": self.constant_column, "projection": projection}
        return {**self.plan.public, **more, **self.parameters}

    @property
    def takes(self) -> frozenset[str]:
        """Weights of records, which do not change the cost."""
        return frozenset({"sample_weight"})

    def with_class_weights(self, weights: NDArray[np.float64]) -> _ObjectiveFit:
        """Weigh the classes by released numbers in [0, 1], for the same events."""
        return replace(self, facts=self.facts.with_class_weights(weights))

    def run(self, data: TrainingData, permit: Permit) -> Fitted:
        """Minimise the perturbed risk of the rows."""
        facts, norm, constant = self.facts, self.facts.data_norm, self.constant_column
        clips = facts.is_scale_stated or self.is_clipped
        if self.is_clipped:
            rows = clipped_rows(data.X, norm, constant)
        else:
            rows = normalised_rows(data.X, norm, constant, self.linear_map, clips=clips)
        weights = weights_of(np.array(facts.class_weights), data)
        released = self.plan.run(rows, data.class_indices, weights, permit)
        scale = 1.0 if self.is_clipped else norm
        return Fitted(
            *for_rows_as_given(released, constant, self.intercept, scale, self.linear_map),
            data_norm=norm if clips else math.inf,
            attributes={"alpha_": self.plan.objective.ridge},
        )


@explains_foreign_parameters
@dataclass(eq=False, repr=False)
class ObjectivePerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact minimiser of a regularised risk with a random linear term.

    Minimises

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, z_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2 + \frac1n \langle b, w \rangle

    where the random ``b`` is Gaussian (``delta > 0``) or has the density
    ``exp(-||b|| / scale)`` (``delta = 0``). The ``z_i`` are the rows scaled to norm one, by
    default after a private preconditioner, which takes a fifth of the budget. The minimum is found
    to a tolerance that is fixed in advance and certified on every data set; a second, far smaller
    noise covers the remaining error.

    Parameters
    ----------
    loss : str, default="shifted_logistic"
        ``"shifted_logistic"``, ``"logistic"``, ``"huber_hinge"`` or ``"smoothed_hinge"``.
        Smooth convex loss of the signed margin with slope in [-1, 0]. With three classes or
        more, the logistic ones are multinomial; any other is one class against the rest.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` is a function of n, d, the number of classes and the
        budget. Smaller values are raised to a public minimum: with two classes and no
        preconditioner ``max(c) beta r^2 / (n (exp(epsilon / 2) - 1))``, where c are the class
        weights, r bounds the norms of rows and beta the second derivative of the loss (1/4 for the
        logistic losses, else 1), and at least ``1e-8 r^2``.
    margin_offset : float or "auto", default="auto"
        Margin at which ``log(1 + exp(margin_offset - t))``, the ``"shifted_logistic"`` loss, has
        half of its largest slope; from 0 to 100. Ignored by the other losses. With a positive
        margin offset, correctly classified records near the separating hyperplane still have a
        large slope.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`), and rows are
        normalised without being scaled down first. Where estimated scales do not help (sparse rows,
        few records) the bound is 1.
    rows : {"normalised", "clipped"}, default="normalised"
        ``"normalised"`` scales every clipped row, together with the constant column, to norm one,
        which changes no halfspace. ``"clipped"`` leaves shorter rows as they are: then
        ``loss="logistic"`` is the usual logistic model and has probabilities.
    preconditioner : bool or "auto", default="auto"
        Whether to release a private preconditioner of the normalised rows first. ``"auto"`` does so
        for at most 512 columns, unless noise would dominate it; True requires one.
    projection : {"auto", "rademacher", "hadamard"} or None, default="auto"
        Public random projection of normalised rows to fewer columns. ``"auto"`` uses random signs
        for pure DP with more than 512 columns, and otherwise no projection.
    n_components : int or "auto", default="auto"
        Number of columns after the projection; ``"auto"`` is 150. No projection is made to as many
        columns as there are, or more.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is part of the norm of a row, and its coefficient is
        regularised.
    intercept_scaling : float, default=1.0
        Size of the constant column: its value with ``rows="clipped"``; otherwise a multiple of a
        quarter of `data_norm` (of another fraction for more than 512 columns).
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; the noise is proportional to the largest.
        ``"balanced"`` weights classes inversely to their sizes, which noisy counts within the
        budget (2 to 3 % of mu^2) estimate; it needs ``delta > 0``. The largest weight is then one,
        and the decision threshold is not corrected for the weights.
    optimizer : str or callable, default="auto"
        As in `OutputPerturbationClassifier`; its result is used only if it satisfies the
        certificate.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Privacy ledger that is charged before any noise is drawn.
    verbose : int, default=0
        If above 0, `fit` prints its public privacy record before it releases anything, and a line
        when it has finished. Nothing that is printed depends on private data.

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
        Norm to which rows are scaled down at prediction; infinite if rows were normalised.
    scaler_ : ReleasedScaler or None
        Released column scales; None if none were estimated.
    fill_value_ : float or None
        Value that replaces a missing entry; None if `X` must not have missing entries.
    privacy_ : PrivacyRecord
        The privacy guarantee of the fit, its events, and what was assumed public.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    AdaptiveMarginClassifier : Noisy gradient steps; usually more accurate for ``delta > 0``.
    OutputPerturbationClassifier : Adds the noise to the minimiser instead.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency. Public: the number of rows, the columns, the label set, every parameter and the
    projection. Private: everything else, class counts and norms included. The guarantee covers the
    attributes above; the running time is not protected.

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang, "Differentially private empirical risk
    minimization for AUC maximization", 2021, Algorithm 3; K. Chaudhuri, C. Monteleoni and A.
    Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 2011; D. Kifer, A. Smith and
    A. Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional Regression", COLT
    2012; R. Iyengar, J. Near, D. Song, O. Thakkar, A. Thakurta and L. Wang, "Towards Practical
    Differentially Private Convex Optimization", 2019. Proofs for the code:
    ``docs/proofs/objective_perturbation.md``, ``preconditioner.md``, ``certificate.md``,
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
    margin_offset: float | str = "auto"
    rows: str = "normalised"
    preconditioner: bool | str = "auto"
    projection: str | None = "auto"
    n_components: int | str = "auto"
    optimizer: Any = "auto"

    _can_balance_classes: ClassVar[bool] = True
    _ranks_rare: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "loss": [StrOptions(set(_LOSSES))],
        "alpha": [*public_number(), StrOptions({"auto"})],
        "margin_offset": [Interval(Real, 0, 100, closed="both"), StrOptions({"auto"})],
        "rows": [StrOptions({"normalised", "clipped"})],
        "preconditioner": ["boolean", StrOptions({"auto"})],
        "projection": [StrOptions({"auto", *PROJECTIONS}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "optimizer": [StrOptions(set(OPTIMIZERS)), callable],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> _ObjectiveFit:
        """Fix the public numbers of a fit."""
        n_samples, n_features = facts.n_privacy_units, facts.n_features
        intercept = self._constant_column()
        # The rules use the number of columns of the data, because they account for the effect of a
        # projection.
        columns = n_features + (intercept is not None)
        defaults = objective_defaults(
            n_samples, columns, facts.n_classes, budget.epsilon, budget.delta
        )
        linear_map = self._drawn_map(n_features, defaults.n_components, budget)
        n_kept = n_features
        if linear_map is not None:
            n_kept = linear_map.n_components
            refuse_projected_rows(n_samples, n_kept)
        facts.refuse_scores_of_all()
        is_clipped = self.rows == "clipped"
        constant, row_norm = intercept, math.hypot(facts.data_norm, intercept or 0.0) * UP
        if not is_clipped:
            row_norm = 1.0
            constant = None if intercept is None else defaults.constant_column * intercept
        offset = self.margin_offset
        if isinstance(offset, str):
            offset = defaults.margin_offset
        options = {"margin_offset": float(offset)} if self.loss == "shifted_logistic" else {}
        loss = get_loss(self.loss, **options)
        is_sparse = facts.is_sparse and linear_map is None
        risk = empirical_risk(
            loss,
            n_samples,
            n_kept + (intercept is not None),
            facts.n_classes,
            row_norm=row_norm,
            block_rows=block_size(n_samples, n_kept, is_sparse=is_sparse),
            max_weight=max(facts.class_weights),
        )
        plan = plan_preconditioned_objective(
            risk,
            budget,
            ridge=self._ridge(risk, facts, budget),
            preconditioner=self.preconditioner is not False and not is_clipped,
            optimizer=self.optimizer,
        )
        if self.preconditioner is True and plan.preconditioner is None:
            raise ValueError(
                'preconditioner=True needs rows="normalised", at most 512 columns and enough '
                "budget and rows: use preconditioner='auto' or False"
            )
        parameters = {"loss": self.loss, "margin_offset": loss.margin_offset, "rows": self.rows}
        return _ObjectiveFit(facts, plan, intercept, linear_map, constant, is_clipped, parameters)

    def _ridge(
        self, risk: MarginRisk | SoftmaxRisk, facts: PublicFacts, budget: Budget
    ) -> float | None:
        """Return the requested regulariser; with None, the rule for normalised rows decides."""
        if not isinstance(self.alpha, str):
            return float(self.alpha)
        if self.rows == "normalised":
            return None
        constant = self._constant_column()
        inverse = 1.0 / constant if constant else 0.0
        guess = _SCORE_GUESS * math.hypot(1.0 / facts.data_norm, inverse)
        return objective_ridge(risk, budget.epsilon, budget.delta, norm_guess=guess)

    def _drawn_map(self, n_features: int, wanted: int | None, budget: Budget) -> LinearMap | None:
        """Draw the public projection, if there is one."""
        kind, components = self.projection, self.n_components
        if kind in PROJECTIONS and self.rows == "clipped":
            raise ValueError('a projection needs rows="normalised"')
        if kind == "auto":
            is_wanted = wanted is not None and not budget.is_infinite and self.rows == "normalised"
            kind = "rademacher" if is_wanted else None
        if kind is None:
            return None
        size = COMPONENTS if isinstance(components, str) else int(components)
        rng = public_generator(self.random_state, "projection")
        return draw_projection(kind, n_features, size, rng)

    @available_if(
        explains_absence(
            # Scores are log odds for the rows of the logistic model alone.
            lambda self: self.loss == "logistic" and self.rows == "clipped",
            "predict_proba needs loss='logistic' and rows='clipped'",
        )
    )
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
        return self._predicted(X, self._probabilities)
