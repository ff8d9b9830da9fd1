"""Private linear ranking for imbalanced classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dp_halfspace._params import AUTO, NUMBER_RANGE, PUBLIC_NUMBER, stated
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.data.validation import floats_or_nan
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, PublicFacts
from dp_halfspace.estimators._ranking import MECHANISMS, RankingFit, plan_ranking
from dp_halfspace.estimators._wrapped_plans import plan_rows, warn_of_unscaled_columns
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.papers.pair_objective import PAIRWISE_LOSSES
from dp_halfspace.papers.pairs import RankingProblem
from dp_halfspace.privacy.budget import Budget


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateAUCClassifier(PrivateLinearClassifier):
    r"""Private linear ranking: positive records should score higher than negative ones.

    For two classes of very different size, where accuracy says little and the area under the ROC
    curve matters. ``decision_function`` ranks records; ``predict`` applies a private or a given
    threshold. The number of positive records is private, and no scale of noise depends on it.

    Parameters
    ----------
    mechanism : str, default="auto"
        ``"auto"`` and ``"noisy_gd"``: the default steps of `AdaptiveMarginClassifier`, on rows that
        are centred and whitened by a released second moment; for pure DP objective perturbation on
        such rows. ``"objective"`` and ``"output"``: the exact minimiser of a loss over all pairs,
        with a random linear term or with noise, as published.
    loss : {"logistic", "squared"}, default="logistic"
        Loss of the difference of scores of a pair, for ``"output"``, and ``"logistic"`` for
        ``"objective"``. The squared loss is solved in closed form.
    alpha : float or "auto", default="auto"
        Strength of the regulariser of ``"objective"`` and ``"output"``, which minimise

        .. math:: \frac1Z \sum_{y_i=1,\,y_j=0} \ell(\langle w, x_i-x_j\rangle)
                  + \frac\alpha2 \lVert w \rVert^2

        where Z is the product of `class_counts` when these are public, rescaled to n records, and
        n^2 / 4 otherwise. The minimiser depends on alpha times Z only. ``"auto"`` is a function of
        n, d and the budget. ``"objective"`` raises `alpha` to a public minimum.
    class_counts : "private" or (float, float), default="private"
        PUBLIC numbers of positive and negative records, of which only the ratio is used, by
        ``"objective"`` and ``"output"``. No other mechanism needs them: centred rows are ranked
        alike whatever the sizes of the classes.
    threshold : "private" or float, default="private"
        ``"private"`` chooses the threshold with the fewest errors by the exponential mechanism. A
        float is a PUBLIC threshold on the score without intercept; where column scales are
        estimated, an average row has a score of about zero, however rare a class is. With
        ``fit_intercept=False`` the threshold is zero, and no budget is spent on it.
    threshold_share : float, default=0.02
        Share of the budget (of mu^2, or of epsilon for pure DP) for a private threshold.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row, for sparse rows, pure DP, ``"objective"`` and
        ``"output"``: longer rows are scaled down to it. The default estimates a centre and a scale
        for each dense column within the budget (see `scaler_`) even where a bound is stated; with
        None columns may have missing values (NaN). Where estimated scales do not help (sparse rows,
        few records) the bound is 1. ``"objective"`` and ``"output"`` need one within [2^-100,
        2^100].
    fit_intercept : bool, default=True
        Whether there is an intercept, which is minus the threshold. It never changes the ranking.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to its default.
    classes : array-like of two labels or None, default=None
        PUBLIC label set; the larger label is positive. None declares the labels in `y` to be
        public.
    class_weight : dict or None, default=None
        PUBLIC cost of an error on each label, in [1e-50, 1e50], for the threshold alone.
        ``"balanced"`` is refused.
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
    classes_ : ndarray of shape (2,)
        The public label set.
    coef_ : ndarray of shape (1, n_features)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    data_norm_ : float
        Norm to which longer rows are scaled down at prediction; infinite if column scales were
        estimated, and for pure DP if rows were divided by their norms.
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
    AdaptiveMarginClassifier : For accuracy.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency. Public: the number of rows, the columns, the label set and every parameter. Private:
    everything else, class counts included unless they are passed. An empty class causes no error;
    the coefficients are then noise. With `groups` the unit of privacy is a person with all rows,
    and the number of people is public instead of the number of rows (``docs/proofs/persons.md``).

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang, "Differentially private empirical risk
    minimization for AUC maximization", 2021, Algorithms 1 and 2, with exact noise. Proofs:
    ``docs/proofs/auc.md``, ``pairwise.md``, ``engine.md``, ``objective_perturbation.md``.
    Measurements: ``docs/evidence/auc.md``.

    Examples
    --------
    >>> from sklearn.metrics import roc_auc_score
    >>> from dp_halfspace import PrivateAUCClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = PrivateAUCClassifier(epsilon=0.3, classes=[-1, 1]).fit(X, y)
    >>> bool(roc_auc_score(y, model.decision_function(X)) > 0.97)
    True
    """

    mechanism: str = "auto"
    loss: str = "logistic"
    alpha: float | str = "auto"
    class_counts: Any = "private"
    threshold: float | str = "private"
    threshold_share: float = 0.02

    _is_binary = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "mechanism": [StrOptions({"auto", *MECHANISMS})],
        "loss": [StrOptions({*PAIRWISE_LOSSES})],
        "alpha": [PUBLIC_NUMBER, AUTO],
        "class_counts": [StrOptions({"private"}), "array-like"],
        "threshold": [
            StrOptions({"private"}),
            Interval(Real, -NUMBER_RANGE[1], NUMBER_RANGE[1], closed="both"),
        ],
        "threshold_share": [Interval(Real, 1e-6, 0.9, closed="both")],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        if self.mechanism not in {"auto", "noisy_gd"} or budget.is_pure:
            return plan_rows(self._plan_ranking, facts, budget)
        # The engine estimates the scales of dense columns itself. A bound on the norm of rows is no
        # substitute: rows can be far shorter, and far from zero.
        plan = self._plan_ranking(replace(facts, is_scale_stated=facts.is_sparse), budget)
        if not (facts.is_scale_stated or plan.public["private_column_scales"]):
            warn_of_unscaled_columns(facts, budget, most=WIDEST)
        return plan

    def _plan_ranking(self, facts: PublicFacts, budget: Budget) -> RankingFit:
        """Plan a ranking of rows."""
        if facts.n_classes != 2:
            raise ValueError("Only binary classification is supported: a ranking has two classes")
        threshold = stated(self.threshold, float)
        if threshold and not self.fit_intercept:
            raise ValueError("a threshold other than 0 needs fit_intercept=True")
        is_private = threshold is None and self.fit_intercept
        problem = RankingProblem(
            facts=replace(facts, class_weights=(1.0, 1.0)),
            loss=self.loss,
            constant=float(self.intercept_scaling),
            alpha=stated(self.alpha, float),
            positive_share=self._positive_share(facts.n_privacy_units),
            threshold_share=self.threshold_share if is_private else 0.0,
            threshold=threshold or 0.0,
            error_weights=tuple(facts.relative_weights.tolist()),
        )
        plan = plan_ranking(problem, self.mechanism, budget)
        counts = self.class_counts
        listed = counts if isinstance(counts, str) else [float(count) for count in counts]
        parameters = {"class_counts": listed, "threshold": threshold}
        return replace(plan, public={**plan.public, **parameters})

    def _positive_share(self, n_samples: int) -> float | None:
        """Return the public share of the positive records, if there is one."""
        if isinstance(self.class_counts, str):
            return None
        counts = floats_or_nan(self.class_counts)
        if counts.shape != (2,) or not (np.isfinite(counts) & (counts > 0)).all():
            raise ValueError("class_counts must be 'private' or two positive public numbers")
        # A class of less than one record has no meaning, and would cause a division by zero.
        with np.errstate(over="ignore"):
            share = float(1.0 / (1.0 + counts[1] / counts[0]))
        least = 1.0 / (n_samples + 1)
        return min(max(share, least), 1.0 - least)
