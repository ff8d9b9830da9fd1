"""Regularised risk minimisation, solved to a certificate and released with noise."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if

from dp_halfspace._params import label_weights, public_number, resolved_delta
from dp_halfspace._rounding import UP
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.algorithms.engine.plan import rows_over
from dp_halfspace.algorithms.perturbation.output import OutputPlan, plan_output
from dp_halfspace.algorithms.perturbation.regulariser import output_ridge
from dp_halfspace.data.chunked_methods import by_chunks
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators._robust_options import checked_tilt, planned_attack, warn_of_tilt
from dp_halfspace.estimators.base import Prepared, PrivateLinearClassifier
from dp_halfspace.optim.objectives.losses import get_loss
from dp_halfspace.optim.risks.empirical import empirical_risk
from dp_halfspace.optim.risks.margin import MarginRisk
from dp_halfspace.optim.solvers.minimum import OPTIMIZERS
from dp_halfspace.privacy.mechanisms import Permit, additive_noise
from dp_halfspace.rows.rows import block_size, clipped_rows

_LOSSES = ("logistic", "huber_hinge", "smoothed_hinge", "hinge", "squared_hinge", "squared")
# Guessed norm of a good vector of coefficients, in units of 1 / data_norm; see
# docs/estimators/output_perturbation.md for the measurement behind it.
_NORM_GUESS = 4.0


def _is_logistic(estimator: OutputPerturbationClassifier) -> bool:
    """Tell whether scores are log odds."""
    return estimator.loss == "logistic"


@dataclass(eq=False, repr=False)
class OutputPerturbationClassifier(PrivateLinearClassifier):
    r"""Linear classifier: the exact regularised minimiser plus calibrated noise.

    Minimises, over rows clipped to `data_norm`,

    .. math:: \frac1n \sum_i c_{y_i} \ell(y_i \langle w, x_i \rangle)
              + \frac{\alpha}{2} \lVert w \rVert^2

    to a tolerance that is fixed in advance and certified on every data set, and releases the
    minimiser with Gaussian noise (``delta > 0``) or noise of density
    ``exp(-||z|| / scale)`` (``delta = 0``). With `tilt` the mean of the losses becomes
    ``log(mean(exp(tilt * loss))) / tilt``, between the mean and the largest loss; with
    `adversary_radius` each loss is that of the worst row within this distance.

    Parameters
    ----------
    loss : str, default="logistic"
        Convex loss of the signed margin: ``"logistic"``, ``"huber_hinge"``,
        ``"smoothed_hinge"``, ``"hinge"``, ``"squared_hinge"`` or ``"squared"``. With three
        classes or more, ``"logistic"`` is multinomial, any other is one class against the rest.
        ``"hinge"`` is the Huber hinge of half-width .001: at most .00025 above the hinge, with
        the noise of the hinge.
    alpha : float or "auto", default="auto"
        Strength of the regulariser. ``"auto"`` balances bias and noise from n, d, the budget and
        `data_norm` alone. A float is raised to ``1e-8 (data_norm^2 + intercept_scaling^2)``
        times the largest class weight.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    data_norm : float or None, default=None
        PUBLIC scale of a row; longer rows are scaled down to it. None is for columns in their
        natural units, with holes (NaN) or not: the budget then buys a centre and a width for each
        column, see `scaler_`; where that does not pay (CSR, few records) the scale
        is 1.
    fit_intercept : bool, default=True
        Whether to append a constant column. It is inside the norm and inside the regulariser.
    intercept_scaling : float, default=1.0
        Value of the constant column.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels seen to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; ``"balanced"`` is refused.
    optimizer : str or callable, default="auto"
        ``"auto"``, ``"newton"``, ``"newton_cg"``, ``"lbfgs"``, ``"accelerated_gradient"`` or
        a callable ``(F, start) -> w``, with `F` a :class:`~dp_halfspace.optim.FiniteSum`. What
        it returns is trusted only as far as the certificate goes, and improved where it falls
        short; what it warns, prints in Python or raises is dropped. It must not print from
        compiled code, write files, end the process or keep what it was given.
    tilt : float, default=0.0
        Not negative. Larger values weigh large losses more: for groups that are served badly.
        The noise grows with ``exp(tilt * range of the loss)``, so keep it near 1: a
        `PrivacyWarning` says when one record can outweigh a tenth of the others. Each of three
        classes or more is then fitted against the rest for every loss.
    adversary_radius : float, default=0.0
        Largest change of a row, in the units of the columns, against which the model is
        trained; less than `data_norm`. The constant column is out of reach. Not for
        ``loss="squared"``. Three classes or more as with `tilt`.
    adversary_norm : {2, "inf"}, default=2
        Norm of that change: Euclidean, which hardly raises the noise, or the largest change of
        one column.
    adversary_smoothing : float, default=1e-3
        Width by which the kink of the dual norm of the coefficients is rounded, in units of
        ``1 / data_norm``, in [1e-9, 1].
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
    one_vs_rest_ : bool
        Whether each of three classes or more was set apart from the rest by a model of its own.
    privacy_ : PrivacyRecord
        What was spent, on what, and what was assumed public.
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
    adjacency. Public: the number of rows, the columns, the label set and every parameter.
    Private: everything else, class counts and norms included. The guarantee covers the
    attributes above; running time is not hidden.

    With a tilt or an adversary, the released coefficients are brought back to the ball that
    holds the minimisers of all data sets.

    References
    ----------
    A. Lowy and M. Razaviyayn, "Output Perturbation for Differentially Private Convex
    Optimization: Faster and More General", 2021 (section 5: tilt and adversary); K. Chaudhuri,
    C. Monteleoni and A. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR
    2011. Proofs for the code as it is: ``docs/proofs/stability.md``, ``robust.md``,
    ``certificate.md``, ``noise.md``, ``accounting.md``.

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

    Against an adversary who moves every row, of norm one, by .1:

    >>> robust = OutputPerturbationClassifier(adversary_radius=0.1, data_norm=1, classes=[-1, 1])
    >>> robust = robust.fit(X, y)
    >>> signs = y * robust.decision_function(X)
    >>> worst = signs - 0.1 * (robust.coef_**2).sum() ** 0.5
    >>> bool((worst > 0).mean() > 0.8)
    True
    """

    loss: str = "logistic"
    alpha: float | str = "auto"
    _: KW_ONLY
    optimizer: Any = "auto"
    tilt: float = 0.0
    adversary_radius: float = 0.0
    adversary_norm: Literal[2, "inf"] = 2
    adversary_smoothing: float = 1e-3

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "loss": [StrOptions(set(_LOSSES))],
        "alpha": [*public_number(), StrOptions({"auto"})],
        "optimizer": [StrOptions(set(OPTIMIZERS)), callable],
        "tilt": [Real],
        "adversary_radius": [Real],
        "adversary_norm": [Options(Real, {2}), StrOptions({"inf"})],
        "adversary_smoothing": [Interval(Real, 1e-9, 1, closed="both")],
    }

    def _trained(self, ready: Prepared, permit: Permit) -> None:
        """Minimise the risk of the rows, and release the minimiser."""
        data, scaler = ready.in_units(permit)

        rows = rows_over(clipped_rows, data.X, ready.data_norm, self._constant_column())
        released = ready.plan.run(rows, data.codes, ready.weights, permit)

        self.alpha_ = ready.plan.ridge
        self.one_vs_rest_ = ready.plan.risk.n_stacked > 1
        self._remember(ready, released, scaler)

    def _planned(self, data: TrainingData) -> Prepared:
        weights = label_weights(self.class_weight, data.classes)
        plan = self._plan(data.X, weights, resolved_delta(self.delta, data.X.shape[0]))
        record = self._record(
            data,
            plan.events,
            loss=self.loss,
            **plan.public,
            tilt=float(self.tilt),
            adversary_radius=float(self.adversary_radius),
            adversary_norm="inf" if self.adversary_norm == "inf" else 2,
            adversary_smoothing=float(self.adversary_smoothing),
        )
        return Prepared(data, weights, plan, record, float(self.data_norm), clips=True)

    def _reads_chunks(self, plan: Any) -> bool:
        del plan
        return not self.tilt

    def _plan(self, X: Any, weights: NDArray[np.float64], delta: float) -> OutputPlan:
        """Fix the public numbers of a fit; of `X`, only shape and layout matter."""
        n_samples, n_features = X.shape
        epsilon, norm = float(self.epsilon), float(self.data_norm)
        constant = self._constant_column()
        loss = get_loss(self.loss)
        risk = empirical_risk(
            loss=loss,
            n_samples=n_samples,
            n_columns=n_features + (constant is not None),
            n_classes=len(weights),
            row_norm=math.hypot(norm, constant or 0.0) * UP,
            block_rows=block_size(n_samples, n_features, is_sparse=sparse.issparse(X)),
            max_weight=float(weights.max()),
            min_weight=float(weights.min()),
            tilt=checked_tilt(self.tilt),
            adversary=planned_attack(
                self.adversary_radius,
                self.adversary_norm,
                self.adversary_smoothing,
                loss=loss,
                data_norm=norm,
                n_features=n_features,
            ),
        )
        if isinstance(self.alpha, str):
            ridge = output_ridge(risk, epsilon, delta, norm_guess=_NORM_GUESS / norm)
        else:
            ridge = float(self.alpha)
        plan = plan_output(
            risk,
            ridge,
            lambda sensitivity: additive_noise(sensitivity, epsilon, delta),
            optimizer=self.optimizer,
            projected=risk.robust,
        )
        if isinstance(risk, MarginRisk):
            warn_of_tilt(risk, plan.ridge)
        return plan

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
            Only with ``loss="logistic"``. Those of each class against the rest, divided by their
            sum, if `one_vs_rest_`.
        """
        scores = self.decision_function(X)
        # The softmax of logarithms divides by the sum, and never divides by zero.
        is_stacked = scores.ndim > 1 and self.one_vs_rest_
        return self._probabilities(log_expit(scores) if is_stacked else scores)
