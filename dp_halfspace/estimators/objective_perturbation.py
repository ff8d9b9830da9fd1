"""Regularised risk minimisation with a random linear term, solved to a certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dp_halfspace._params import AUTO, PUBLIC_NUMBER, stated
from dp_halfspace._sklearn_compat import StrOptions
from dp_halfspace.engine.linear import Shape
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, PublicFacts
from dp_halfspace.estimators._centred import (
    COMPONENTS,
    NO_MOMENT,
    CentredFit,
    ClippedFit,
    clipped_risk,
    plan_centred_objective,
)
from dp_halfspace.estimators._wrapped_plans import plan_rows
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.optim.losses import get_loss
from dp_halfspace.optim.solvers import OPTIMIZERS
from dp_halfspace.papers.objective import plan_objective
from dp_halfspace.papers.output import objective_ridge
from dp_halfspace.papers.stochastic import STOCHASTIC, minimiser_of
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection.linear import draw_projection

# Guess for clipped rows of the norm of good coefficients, in units of 1 / data_norm, and of the
# size of the intercept.
_SCORE_GUESS = 1.5
# Fitted attributes beside those of every linear classifier.
_OBJECTIVE_ATTRIBUTES = ("alpha_", "preconditioner_")


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact minimiser of a regularised risk with a random linear term.

    Minimises

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, z_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2 + \frac1n \langle b, w \rangle

    where the random ``b`` is Gaussian (``delta > 0``) or has the density
    ``exp(-||b|| / scale)`` (``delta = 0``). By default the ``z_i`` are the rows, centred, whitened
    and clipped to norm one by a private second moment, which takes .18 of the budget. Rows of mean
    zero give each column the right sign, however unequal the classes are. The minimum is found
    to a tolerance that is fixed in advance and certified on every data set; a second, far smaller
    noise covers the remaining error.

    Parameters
    ----------
    loss : str, default="logistic"
        ``"logistic"`` or ``"huber_hinge"``: smooth convex loss of the signed margin with slope in
        [-1, 0]. With three classes or more, the logistic one is multinomial, the other is one class
        against the rest. Probabilities need ``"logistic"``.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` is a function of n, d, the number of classes and the
        budget. Smaller values are raised to a public minimum: with two classes and no
        preconditioner ``max(c) beta r^2 / (n (exp(epsilon / 2) - 1))``, where c are the class
        weights, r bounds the norms of rows and beta the second derivative of the loss (1/4 for the
        logistic loss, else 1), and at least ``1e-8 r^2``. Where rows are centred, with an
        intercept and ``loss="logistic"``, ``"auto"`` also corrects length and intercept of the
        released coefficients by what the regulariser takes, with several classes by one factor.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`). Where estimated
        scales do not help (sparse rows, few records) the bound is 1.
    rows : {"centred", "clipped"}, default="centred"
        ``"centred"`` subtracts a released mean, whitens and clips the rows, and appends the same
        constant to all; for pure DP with more than 512 columns, public random signs project them
        to 150 columns first. ``"clipped"``, as published, leaves rows up to `data_norm` as they
        are.
    preconditioner : bool or "auto", default="auto"
        Whether to release the second moment that centres and whitens rows. ``"auto"`` does so for
        at most 512 columns, unless noise would dominate it; True requires one. Without it all rows
        are brought to norm one, with their constant.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is part of the norm of a row, and its coefficient is
        regularised.
    intercept_scaling : float, default=1.0
        Size of the constant column: its value with ``rows="clipped"``; otherwise relative to that
        of whitened rows.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; the noise is proportional to the largest.
        ``"balanced"`` weights classes inversely to their sizes, which noisy counts within the
        budget (about 2 % of mu^2) estimate; it needs ``delta > 0``. The largest weight is then one,
        and the decision threshold is not corrected for the weights.
    optimizer : str or callable, default="auto"
        As in `OutputPerturbationClassifier`; its result is used only if it satisfies the
        certificate.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, path or None, default=None
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
        Norm to which longer rows are scaled down at prediction; infinite if column scales were
        estimated, and for rows that are projected or, without `data_norm`, divided by their norms.
    preconditioner_ : ndarray of shape (n_columns, n_columns + 1) or None
        Released matrix that maps rows (on the scales of `scaler_`, followed by a one if there is an
        intercept) to centred and whitened rows, before they are clipped; None without it.
    scaler_ : ReleasedScaler or None
        Released column scales, which also shorten long rows where rows were centred; None if none
        were estimated.
    fill_value_ : float or None
        Value that replaces a missing entry; None if `X` must not have missing entries.
    class_weight_ : ndarray of shape (n_classes,)
        Only with ``class_weight="balanced"``: the weights that follow from the noisy counts.
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
    ``docs/proofs/objective_perturbation.md``, ``engine.md``, ``certificate.md``,
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

    loss: str = "logistic"
    alpha: float | str = "auto"
    rows: str = "centred"
    preconditioner: bool | str = "auto"
    optimizer: Any = "auto"

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "loss": [StrOptions({"logistic", "huber_hinge"})],
        "alpha": [PUBLIC_NUMBER, AUTO],
        "rows": [StrOptions({"centred", "clipped"})],
        "preconditioner": ["boolean", AUTO],
        "optimizer": [StrOptions({*OPTIMIZERS, *STOCHASTIC}), callable],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        # A number for alpha is in the units of the columns.
        is_default = isinstance(self.preconditioner, str) and isinstance(self.alpha, str)
        centres = is_default and self.rows != "clipped"
        return plan_rows(self._plan_minimiser, facts, budget, centres=centres)

    def _plan_minimiser(self, facts: PublicFacts, budget: Budget) -> CentredFit | ClippedFit:
        """Plan a fit of rows in the scales that were chosen for them."""
        facts.refuse_scores_of_all()
        loss = get_loss(self.loss)
        ridge = stated(self.alpha, float)
        parameters = {"loss": self.loss, "rows": self.rows}
        constant, optimizer = self._constant_column(), minimiser_of(self.optimizer)
        if self.rows == "clipped":
            if self.preconditioner is True:
                raise ValueError('preconditioner=True needs rows="centred"')
            risk = clipped_risk(facts, loss, constant)
            if ridge is None:
                sizes = 1.0 / facts.data_norm, 1.0 / constant if constant else 0.0
                guess = _SCORE_GUESS * math.hypot(*sizes)
                ridge = objective_ridge(risk, budget.epsilon, budget.delta, norm_guess=guess)
            found = plan_objective(risk, ridge, budget.epsilon, budget.delta, optimizer=optimizer)
            takes = frozenset({"sample_weight"})
            return ClippedFit(facts, found, constant, _OBJECTIVE_ATTRIBUTES, parameters, takes)
        linear_map = None
        if budget.is_pure and facts.n_features > WIDEST:
            rng = public_generator(self.random_state, "projection")
            linear_map = draw_projection("rademacher", facts.n_features, COMPONENTS, rng)
        shape = Shape(facts, constant or 0.0, linear_map=linear_map)
        is_wanted = self.preconditioner is not False
        how: dict[str, Any] = {"ridge": ridge, "optimizer": optimizer}
        plan = plan_centred_objective(shape, loss, budget, has_moment=is_wanted, **how)
        if self.preconditioner is True and not plan.releases:
            raise ValueError(NO_MOMENT)
        return replace(plan, attributes=_OBJECTIVE_ATTRIBUTES, public={**plan.public, **parameters})

    def _why_no_probabilities(self) -> str:
        return "" if self.loss == "logistic" else "probabilities need loss='logistic'"
