"""Private linear ranking for imbalanced classes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dp_halfspace._params import NUMBER_RANGE, explains_foreign_parameters, public_number
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.algorithms.engine.outlook import Ranking, Table
from dp_halfspace.algorithms.fit_plan import PublicFacts
from dp_halfspace.algorithms.ranking.auc_training import (
    LOSSES,
    MECHANISMS,
    RankingPlan,
    RankingProblem,
    plan_ranking,
)
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.privacy.budget import Budget


@explains_foreign_parameters
@dataclass(eq=False, repr=False)
class PrivateAUCClassifier(PrivateLinearClassifier):
    r"""Private linear ranking: positive records should score higher than negative ones.

    For two classes of very different size, where accuracy says little and the area under the
    ROC curve matters. ``decision_function`` ranks records; ``predict`` applies a private or a
    given threshold. The number of positive records is private, and no noise scale depends on it.

    Parameters
    ----------
    mechanism : str, default="auto"
        ``"noisy_gd"``: private preconditioner and noisy gradient steps, as in
        `AdaptiveMarginClassifier`, with the majority class weighted down, and shorter steps behind
        a weaker preconditioner where a noisy count says that noise drowns the smaller class, longer
        ones where it hardly disturbs it (for pure DP one perturbed objective of the same rows).
        ``"mean_difference"``: difference of the class means of privately standardised rows.
        ``"objective"`` and ``"output"``: the exact minimiser of a loss over all pairs, with a
        random linear term or with noise. ``"auto"`` is ``"noisy_gd"``, but for a class of less than
        3 % of the records (by the count bought or given) among more than 40 columns: there, not for
        pure DP, it is the mean difference, at the same price.
    loss : {"logistic", "squared", "huber", "squared_hinge"}, default="logistic"
        Loss of a pair's difference of scores, for ``"objective"`` (``"logistic"`` or
        ``"huber"``) and ``"output"``. The squared loss is solved in closed form.
    alpha : float or "auto", default="auto"
        Regulariser of ``"objective"`` and ``"output"``, which minimise

        .. math:: \frac1Z \sum_{y_i=1,\,y_j=0} \ell(\langle w, x_i-x_j\rangle)
                  + \frac\alpha2 \lVert w \rVert^2

        with Z the product of `class_counts` when these are public, rescaled to n records, and
        n^2 / 4 otherwise. Only alpha Z matters. ``"auto"`` is a rule in n, d and the budget.
        ``"objective"`` raises `alpha` to a public floor.
    class_counts : "private" or (float, float), default="private"
        PUBLIC numbers of positive and negative records, of which only the ratio is used.
        ``"private"`` buys a noisy count where one is needed.
    threshold : "private" or float, default="private"
        ``"private"`` chooses the threshold with the fewest errors by the exponential
        mechanism. A float is a PUBLIC threshold on ``X @ coef_.T``. Without an intercept it is
        zero, and nothing is spent on it.
    threshold_share : float, default=0.02
        Share of the budget (of mu^2, or of epsilon for pure DP) for a private threshold.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure DP.
    data_norm : float or None, default=None
        PUBLIC scale of a row; longer rows are scaled down to it. None is for columns in their
        original units, with missing values (NaN) or not: the budget then buys a centre and a width
        for each column, see `scaler_`; where it does not help (CSR, few records) the scale
        is 1. Rows of norm one are not scaled down then. ``"objective"``
        and ``"output"`` need one within [2^-100, 2^100].
    fit_intercept : bool, default=True
        Whether there is an intercept: minus the threshold. It never changes the ranking.
        ``"noisy_gd"`` then appends a constant column to the rows, too.
    intercept_scaling : float, default=1.0
        Size of that column, relative to its default.
    classes : array-like of two labels or None, default=None
        PUBLIC label set; the larger label is positive. None declares those seen to be public.
    class_weight : dict or None, default=None
        PUBLIC cost of an error on each label, in [1e-50, 1e50], for the threshold alone.
        ``"balanced"`` is refused.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes the fit reproducible and
        raises `PrivacyWarning`: whoever knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Charged before any noise is drawn.
    verbose : int, default=0
        Accepted for uniformity; there is nothing to report that would be free.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The public label set.
    coef_ : ndarray of shape (1, n_features)
        Released coefficients.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite where they were normalised.
    scaler_ : ReleasedScaler or None
        Released column scales, None where none were learnt.
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
    AdaptiveMarginClassifier : For accuracy.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency. Public: the number of rows, the columns, the label set and every parameter.
    Private: everything else, class counts included, unless they are passed. An empty class
    gives noise, not an error. With `groups` the unit is a person with all rows, and the number
    of people is public instead of that of rows (``docs/proofs/persons.md``).

    References
    ----------
    P. Wang, Z. Yang, Y. Lei, Y. Ying and H. Zhang, "Differentially private empirical risk
    minimization for AUC maximization", 2021, Algorithms 1 and 2, with exact noise. Proofs:
    ``docs/proofs/auc.md``, ``pairwise.md``, ``preconditioner.md``, ``noisy_gradient.md``,
    ``objective_perturbation.md``. Measurements: ``docs/evidence/auc.md``.

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
    _: KW_ONLY
    loss: str = "logistic"
    alpha: float | str = "auto"
    class_counts: Any = "private"
    threshold: float | str = "private"
    threshold_share: float = 0.02

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "mechanism": [StrOptions({"auto", *MECHANISMS})],
        "loss": [StrOptions(set(LOSSES))],
        "alpha": [*public_number(), StrOptions({"auto"})],
        "class_counts": [StrOptions({"private"}), "array-like"],
        "threshold": [
            StrOptions({"private"}),
            Interval(Real, -NUMBER_RANGE[1], NUMBER_RANGE[1], closed="both"),
        ],
        "threshold_share": [Interval(Real, 1e-6, 0.9, closed="both")],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> RankingPlan:
        """Fix the public numbers of a fit."""
        if facts.n_classes != 2:
            raise ValueError("Only binary classification is supported: a ranking has two classes")
        is_private = isinstance(self.threshold, str)
        if not is_private and self.threshold and not self.fit_intercept:
            raise ValueError("a threshold other than 0 needs fit_intercept=True")
        threshold = 0.0 if isinstance(self.threshold, str) else float(self.threshold)
        problem = RankingProblem(
            n_samples=facts.n_privacy_units,
            n_features=facts.n_features,
            is_sparse=facts.is_sparse,
            is_single=facts.is_single,
            class_weights=facts.class_weights,
            data_norm=facts.data_norm,
            clips=facts.is_scale_stated,
            intercept=self._constant_column(),
            loss=self.loss,
            alpha=None if isinstance(self.alpha, str) else float(self.alpha),
            positive_share=self._positive_share(facts.n_privacy_units),
            threshold_share=self.threshold_share if is_private and self.fit_intercept else 0.0,
            threshold=threshold,
            budget=budget,
        )
        plan = plan_ranking(problem, self.mechanism)
        counts = self.class_counts
        parameters = {
            "class_counts": counts if isinstance(counts, str) else [float(c) for c in counts],
            "threshold": None if is_private else threshold,
        }
        return replace(plan, parameters={**plan.parameters, **parameters})

    def _judged_as(
        self, n_samples: int, data: TrainingData | None = None
    ) -> tuple[int, bool, Ranking | Table | None] | None:
        share = self._positive_share(n_samples)
        rare = {} if share is None else {"share": min(share, 1.0 - share)}
        n_features = self.n_features_in_ if data is None else data.X.shape[1]
        is_stated = self.data_norm is not None
        return n_features, is_stated, Ranking(is_stated, **rare)

    def _positive_share(self, n_samples: int) -> float | None:
        """Return the public share of the positive records, if there is one."""
        if isinstance(self.class_counts, str):
            return None
        try:
            counts = np.asarray(self.class_counts, dtype=np.float64)
        except (TypeError, ValueError):
            counts = np.empty(0)
        if counts.shape != (2,) or not (np.isfinite(counts) & (counts > 0)).all():
            raise ValueError("class_counts must be 'private' or two positive public numbers")
        # A class of less than a record means nothing, and would divide by zero.
        with np.errstate(over="ignore"):
            share = float(1.0 / (1.0 + counts[1] / counts[0]))
        least = 1.0 / (n_samples + 1)
        return min(max(share, least), 1.0 - least)

    @property
    def _is_binary(self) -> bool:
        return True
