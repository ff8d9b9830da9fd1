"""Regularised risk minimisation, solved to a certificate and released with noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from dp_halfspace._params import AUTO, PUBLIC_NUMBER, stated
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.engine.linear import Shape
from dp_halfspace.engine.plan import FitPlan, PublicFacts
from dp_halfspace.estimators._centred import (
    NO_MOMENT,
    CentredFit,
    ClippedFit,
    clipped_risk,
    plan_centred_output,
)
from dp_halfspace.estimators._wrapped_plans import plan_rows
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.exceptions import warn_caller
from dp_halfspace.optim.losses import Loss, get_loss
from dp_halfspace.optim.objectives import Adversary
from dp_halfspace.optim.risks import MarginRisk
from dp_halfspace.optim.solvers import OPTIMIZERS
from dp_halfspace.papers.output import output_ridge, plan_output
from dp_halfspace.papers.stochastic import STOCHASTIC, minimiser_of
from dp_halfspace.privacy.budget import Budget

_LOSSES = ("logistic", "huber_hinge", "hinge", "squared_hinge", "squared")
# Assumed norm of a good coefficient vector, in units of 1 / data_norm; see
# docs/evidence/output_perturbation.md for the measurement behind it.
_NORM_GUESS = 4.0
# Largest share of all the weight that a single record may have without a warning.
_RECORD_SHARE = 0.1
# Fitted attributes beside those of every linear classifier.
_OUTPUT_ATTRIBUTES = ("alpha_", "one_vs_rest_", "preconditioner_")


@dataclass(kw_only=True, eq=False, repr=False)
class OutputPerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact regularised minimiser plus calibrated noise.

    Minimises

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, x_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2

    to a tolerance that is fixed in advance and certified on every data set, and releases the
    minimiser with Gaussian noise (``delta > 0``) or noise of density ``exp(-||z|| / scale)``
    (``delta = 0``). By default the rows are centred, whitened and clipped to norm one by a private
    second moment, which takes .18 of the budget; see `preconditioner`. Without one they are
    clipped to `data_norm`, as published. With `tilt` the mean of the losses becomes
    ``log(mean(exp(tilt * loss))) / tilt``, which lies between the mean and the largest loss. With
    `adversary_radius` each loss is the worst-case loss over rows within this distance.

    Parameters
    ----------
    loss : str, default="logistic"
        Convex loss of the signed margin: ``"logistic"``, ``"huber_hinge"``, ``"hinge"``,
        ``"squared_hinge"`` or ``"squared"``. With three classes or more, ``"logistic"`` is
        multinomial, any other is one class against the rest. ``"hinge"`` is the Huber hinge of
        half-width .001: at most .00025 above the hinge loss, with the noise of the hinge loss.
        Probabilities need ``"logistic"``.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` balances bias and noise as a function of n, d, the
        number of classes, the budget and `data_norm` alone. A float below ``1e-8 (data_norm^2 +
        intercept_scaling^2)`` times the largest class weight is raised to that value; with a
        preconditioner the sum of squares is replaced by 1. With a preconditioner and an intercept,
        ``"auto"`` also corrects length and intercept of the released coefficients by what the
        regulariser takes, with several classes by one factor.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`). Where estimated
        scales do not help (sparse rows, few records) the bound is 1.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is part of the norm of a row, and its coefficient is
        regularised.
    intercept_scaling : float, default=1.0
        Size of the constant column: its value without a preconditioner, otherwise relative to that
        of whitened rows.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. ``"balanced"`` weights classes inversely to
        their sizes, which noisy counts within the budget (about 2 % of mu^2) estimate; it needs
        ``delta > 0``. The largest weight is then one, and the decision threshold is not corrected
        for the weights.
    preconditioner : bool or "auto", default="auto"
        Whether to release the second moment of the rows first, with which they are centred,
        whitened and clipped. False is the published method, on clipped rows. ``"auto"`` is True
        for ``delta > 0``, ``alpha="auto"``, no tilt, no adversary, at most 512 columns and rows
        that are not in chunks, unless noise would dominate the moment; a number for `alpha`, or an
        adversary, refers to the units of the columns and therefore excludes it. True requires a
        preconditioner, for every `alpha`, but not with a tilt, an adversary, ``delta=0`` or rows in
        chunks.
    optimizer : str or callable, default="auto"
        ``"auto"``, ``"accelerated_gradient"``, without a tilt ``"sgd"`` or ``"katyusha"``, or a
        callable ``(F, start) -> w``, with `F` a
        :class:`~dp_halfspace.optim.FiniteSum`. Its result is used only if it satisfies the
        certificate, and is improved otherwise. Warnings, output printed from Python and exceptions
        of a callable are suppressed. It must not print from compiled code, write files, end the
        process or keep its arguments.
    project : bool or "auto", default="auto"
        Whether noisy coefficients are projected to the ball that contains the minimisers of all
        data sets, as published. ``"auto"`` does so only with a tilt or an adversary. Without
        projection the distribution of the noise is easier to audit, and predictions are the same.
    tilt : float, default=0.0
        Tilt of the risk, not negative. Larger values give more weight to large losses, for example
        for groups that are predicted badly. The noise grows with ``exp(tilt * range of the loss)``,
        so keep the tilt near 1: a `PrivacyWarning` says when one record can have more weight than a
        tenth of the others. Three classes or more are then fitted one against the rest for every
        loss. Probabilities are then those of a population in which badly predicted records weigh
        more: a rare class is far too likely.
    adversary_radius : float, default=0.0
        Largest adversarial change of a row, in the units of the columns, against which the model is
        trained; less than `data_norm`. The adversary cannot change the constant column. Not
        available with ``loss="squared"``. Three classes or more are fitted as with `tilt`.
    adversary_norm : {2, "inf"}, default=2
        Norm of that change: Euclidean, which hardly raises the noise, or the largest change of
        one column.
    adversary_smoothing : float, default=1e-3
        Width over which the kink of the dual norm of the coefficients is smoothed, in units of ``1
        / data_norm``, in [1e-9, 1].
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
        Norm to which longer rows are scaled down at prediction; with a preconditioner infinite if
        column scales were estimated.
    preconditioner_ : ndarray of shape (n_features, n_features + 1) or None
        Released matrix that maps rows (on the scales of `scaler_`, followed by a one if there is an
        intercept) to centred and whitened rows, before they are clipped; None without it.
    scaler_ : ReleasedScaler or None
        Released column scales, which also shorten long rows where rows were centred; None if none
        were estimated.
    fill_value_ : float or None
        Value that replaces a missing entry; None if `X` must not have missing entries.
    one_vs_rest_ : bool
        Whether three classes or more were fitted one against the rest. Probabilities are then those
        of each class against the rest, divided by their sum.
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
    dp_halfspace.theory : Excess-risk bounds.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency. Public: the number of rows, the columns, the label set and every parameter. Private:
    everything else, class counts and norms included. The guarantee covers the attributes above; the
    running time is not protected.

    Projecting the noisy coefficients to the ball that contains the minimisers of all data sets is
    post-processing: it changes no prediction, but it changes the scale of the scores.

    References
    ----------
    A. Lowy and M. Razaviyayn, "Output Perturbation for Differentially Private Convex Optimization:
    Faster and More General", 2021 (section 5: tilt and adversary); K. Chaudhuri, C. Monteleoni and
    A. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 2011. Proofs for the
    code: ``docs/proofs/stability.md``, ``engine.md``, ``robust.md``, ``certificate.md``,
    ``noise.md``, ``accounting.md``.

    Examples
    --------
    >>> from dp_halfspace import OutputPerturbationClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = OutputPerturbationClassifier(epsilon=1.0, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model.privacy_.epsilon
    1.0

    Robust to an adversary who moves every row, of norm one, by .1:

    >>> robust = OutputPerturbationClassifier(adversary_radius=0.1, data_norm=1, classes=[-1, 1])
    >>> robust = robust.fit(X, y)
    >>> signs = y * robust.decision_function(X)
    >>> worst = signs - 0.1 * (robust.coef_**2).sum() ** 0.5
    >>> bool((worst > 0).mean() > 0.8)
    True
    """

    loss: str = "logistic"
    alpha: float | str = "auto"
    preconditioner: bool | str = "auto"
    optimizer: Any = "auto"
    project: bool | str = "auto"
    tilt: float = 0.0
    adversary_radius: float = 0.0
    adversary_norm: Literal[2, "inf"] = 2
    adversary_smoothing: float = 1e-3

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "loss": [StrOptions(set(_LOSSES))],
        "alpha": [PUBLIC_NUMBER, AUTO],
        "preconditioner": ["boolean", AUTO],
        "optimizer": [StrOptions({*OPTIMIZERS, *STOCHASTIC}), callable],
        "project": ["boolean", AUTO],
        "tilt": [Options(Real, {0}), PUBLIC_NUMBER],
        "adversary_radius": [Options(Real, {0}), PUBLIC_NUMBER],
        "adversary_norm": [Options(Real, {2}), StrOptions({"inf"})],
        "adversary_smoothing": [Interval(Real, 1e-9, 1, closed="both")],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        centres = isinstance(self.preconditioner, str) and self._is_centred(facts, budget)
        return plan_rows(self._plan_minimiser, facts, budget, centres=centres)

    def _plan_minimiser(self, facts: PublicFacts, budget: Budget) -> CentredFit | ClippedFit:
        """Plan a fit of rows in their scales, with a preconditioner if it is worth its cost."""
        facts.refuse_scores_of_all()
        is_centred = self._is_centred(facts, budget)
        centred = self._plan_centred(facts, budget) if is_centred else None
        parameters = {
            "loss": self.loss,
            "tilt": float(self.tilt),
            "adversary_radius": float(self.adversary_radius),
            "adversary_norm": "inf" if self.adversary_norm == "inf" else 2,
            "adversary_smoothing": float(self.adversary_smoothing),
        }
        if centred is not None:
            return replace(centred, public={**centred.public, **parameters})
        return replace(self._plan_clipped(facts, budget), parameters=parameters)

    def _is_centred(self, facts: PublicFacts, budget: Budget) -> bool:
        """Return whether to use a preconditioner; refuse one without a proof."""
        is_robust = self.tilt != 0.0 or self.adversary_radius != 0.0
        if self.tilt and isinstance(self.optimizer, str) and self.optimizer in STOCHASTIC:
            raise ValueError(
                f"optimizer={self.optimizer!r} needs tilt=0, a mean over records: use 'auto'"
            )
        if isinstance(self.preconditioner, str):
            # A number for alpha and an adversary are in the units of the columns.
            is_default = isinstance(self.alpha, str) and not (is_robust or facts.is_chunked)
            return is_default and budget.delta > 0
        if self.preconditioner and (is_robust or budget.delta == 0):
            raise ValueError(
                "preconditioner=True needs delta > 0, tilt=0 and adversary_radius=0: use "
                "preconditioner='auto' or False"
            )
        return bool(self.preconditioner)

    def _plan_centred(self, facts: PublicFacts, budget: Budget) -> CentredFit | None:
        """Plan a fit of centred rows, or return None if the moment is not worth its cost."""
        plan = plan_centred_output(
            Shape(facts, self._constant_column() or 0.0),
            get_loss(self.loss),
            budget,
            ridge=stated(self.alpha, float),
            optimizer=minimiser_of(self.optimizer),
            projects=self.project is True,
        )
        if plan is None:
            if self.preconditioner is True:
                raise ValueError(NO_MOMENT)
            return None
        if facts.is_chunked:
            raise ValueError(
                "rows in chunks are not supported with preconditioner=True: use 'auto' or False "
                "for rows clipped to data_norm, or give the rows as an array, from dask by "
                "X.compute()"
            )
        return replace(plan, attributes=_OUTPUT_ATTRIBUTES)

    def _plan_clipped(self, facts: PublicFacts, budget: Budget) -> ClippedFit:
        """Plan a fit of clipped rows, as published."""
        norm, constant = facts.data_norm, self._constant_column()
        loss = get_loss(self.loss)
        attack = self._adversary(facts, loss)
        risk = clipped_risk(facts, loss, constant, tilt=float(self.tilt), adversary=attack)
        ridge = stated(self.alpha, float)
        if ridge is None:
            guess = _NORM_GUESS / norm
            ridge = output_ridge(risk, budget.epsilon, budget.delta, norm_guess=guess)
        projects = risk.robust if isinstance(self.project, str) else self.project
        optimizer = minimiser_of(self.optimizer)
        plan = plan_output(risk, ridge, budget.noise, optimizer=optimizer, projects=projects)
        if isinstance(risk, MarginRisk):
            warn_of_tilt(risk, plan.ridge)
        # A tilted risk is no sum over rows.
        takes = {"sample_weight"} if self.tilt else {"sample_weight", "chunks"}
        return ClippedFit(facts, plan, constant, _OUTPUT_ATTRIBUTES, {}, frozenset(takes))

    def _adversary(self, facts: PublicFacts, loss: Loss) -> Adversary | None:
        """Return the adversary of a fit, or None without one.

        The smoothing is in units of ``1 / data_norm``; the constant column is not attacked.
        """
        radius, data_norm = self.adversary_radius, facts.data_norm
        if radius != 0.0 and not facts.is_scale_stated:
            raise ValueError(
                "adversary_radius is in the units of the columns: give data_norm, the PUBLIC "
                "scale of a row in these units, too"
            )
        if radius >= data_norm:
            # The whole norm of a row can be in one column, so the limit is the same for both norms.
            raise ValueError(
                "adversary_radius must be less than data_norm: "
                "an adversary who moves rows by their largest norm can move every row to "
                "zero, so that all coefficients are zero. Use a smaller adversary_radius, "
                "in the units of the columns, or 0 for no adversary"
            )
        if radius == 0.0:
            return None
        if not loss.monotone:
            raise ValueError(
                f"adversary_radius needs a loss that falls with the margin, and loss={loss.name!r} "
                "rises beyond 1. Use 'squared_hinge', 'logistic' or another hinge, or "
                "adversary_radius=0"
            )
        width = float(self.adversary_smoothing) / data_norm
        return Adversary(float(radius), self.adversary_norm, facts.n_features, width)

    def _why_no_probabilities(self) -> str:
        return "" if self.loss == "logistic" else "probabilities need loss='logistic'"

    def _log_probabilities(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        if scores.ndim > 1 and self.one_vs_rest_:
            # The softmax of logarithms divides by the sum without dividing by zero.
            scores = log_expit(scores)
        return super()._log_probabilities(scores)


def warn_of_tilt(risk: MarginRisk, ridge: float) -> None:
    """Warn if single records can have so much weight that the noise exceeds the sum of all.

    Regulariser and risk are public, so the warning reveals nothing about the data.
    """
    factor = risk.influence(ridge)
    share = factor / risk.n_samples
    # Without a tilt the factor is one, whatever the share of one of few records is.
    if share > _RECORD_SHARE and factor > 1.0 / _RECORD_SHARE:
        warn_caller(
            f"with tilt={risk.tilt:g} and alpha={ridge:.3g} one record can have "
            f"{100 * share:.0f} % of all the weight, and the noise is {factor:.0f} times that of "
            "tilt=0 at the same alpha. Use alpha='auto', a larger alpha or a smaller tilt"
        )
