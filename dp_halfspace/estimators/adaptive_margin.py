"""The default linear classifier; needs no margin."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from dp_halfspace._params import AUTO, stated
from dp_halfspace._sklearn_compat import HasMethods, Interval, StrOptions
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.linear import LinearFit, plan_linear
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, PublicFacts
from dp_halfspace.engine.steps import N_AVERAGED, N_STEPS
from dp_halfspace.estimators._wrapped_plans import (
    plan_balanced,
    plan_rows,
    warn_of_unscaled_columns,
)
from dp_halfspace.estimators.base import DefaultStepsClassifier, has_defaults
from dp_halfspace.papers import KNOWN_MARGIN, MARGIN_SELECTIONS, SMALLEST_MARGIN, SOLVERS
from dp_halfspace.papers.margin_selection import margin_grid, plan_selection
from dp_halfspace.papers.training import Problem
from dp_halfspace.privacy.budget import Budget

# The parameters that shape a model: with their defaults a small table is fitted by a selection.
_LINEAR_SHAPE = (
    *("margin", "solver", "selection", "iterate", "projection", "n_components"),
    *("fit_intercept", "intercept_scaling"),
)


@dataclass(kw_only=True, eq=False, repr=False)
class AdaptiveMarginClassifier(DefaultStepsClassifier):
    """Private linear classifier, the default of the package.

    A noisy second moment of the rows gives their mean and covariance, by which rows are centred,
    whitened and clipped; the rest of the budget buys 30 accelerated full-batch steps of logistic
    regression with clipped slopes. There is nothing to tune, no margin has to be known, and the
    sizes of the classes need not be similar. Scores are linear in the columns, which are clipped if
    their scales are estimated; probabilities follow from them at no budget. The published
    algorithms for a known margin and for a grid of margins are options.

    Parameters
    ----------
    margin : "auto", float or array-like of float, default="auto"
        ``"auto"`` needs no margin. A float in [1e-9, 1] is a PUBLIC guess of the margin, the
        distance of normalised rows from the separating hyperplane; rows are not centred then.
        An array-like is the grid from which `selection` chooses.
    solver : str, default="auto"
        ``"auto"`` is ``"noisy_gd"``, except for small tables: with dense rows of at most 512
        columns in memory, two to seven classes, neither groups, weights of records nor
        ``class_weight="balanced"``, every other parameter that shapes the model at its default and
        ``n epsilon`` below 120 times the root of the number of columns (for pure DP 1500, or
        120 for each column without a stated scale if that is more), it is an exponential mechanism
        over a public list of classifiers, or two of them in sequence, which spend no delta; with
        ``n epsilon`` of 200 or more, equal class weights and no `prior`, 5 to 10 % of the budget
        count the errors of the selected one, for its probabilities.
        ``"objective_perturbation"`` minimises one objective with a random linear term,
        ``"phased_prox"`` makes one pass of proximal steps (two classes), and ``"noisy_sgd"`` takes
        the published ``n^2 - 1`` steps on single records that are drawn in secret (two classes, at
        most 3,000 records: 300 take about ten seconds, and 3,000 take a hundred times as long).
        ``"noisy_gd"`` is not available with pure DP: for ``delta=0`` the exponential mechanism of
        `PureHalfspaceClassifier` replaces it with two classes, no known margin and
        ``n epsilon < 1500``, and ``"objective_perturbation"`` otherwise.
    selection : str, default="none"
        How to choose from a grid of margins: by the ``"exponential"`` mechanism on error counts, by
        ``"gaussian"`` noise on all error counts, or by ``"random_stopping"`` (best of a random
        number of runs). With ``margin="auto"`` the grid has four margins that follow from public
        sizes. ``docs/evidence/adaptive_margin.md`` compares all of them with the default.
    selection_score : str, default="training"
        What `selection` counts: ``"training"`` errors, or training errors plus a public penalty for
        the dimension (``"population"``).
    iterate : str, default="averaged"
        Which iterate of ``"noisy_gd"`` and ``"noisy_sgd"`` is returned: the mean of the last ones
        (``"averaged"``), the ``"mean"`` of all, or the ``"last"`` one. With a known margin and two
        classes, ``"noisy_gd"`` with ``"mean"`` takes the step size of
        `dp_halfspace.theory.margin_risk_bound`, so that this bound holds for the returned model.
    projection : str or None, default="auto"
        Public random projection of the columns before the fit: ``"rademacher"``, ``"hadamard"`` or
        None. ``"auto"`` projects for pure DP only, with more than 512 columns (with the exponential
        mechanism more than 64). `coef_` is mapped back to the columns. No
        projection is made to as many columns as there are, or more; see `projection_`.
    n_components : int or "auto", default="auto"
        Number of columns after the projection, for which the default steps need `data_norm`.
        ``"auto"`` follows from the margin, or is 500; for pure DP it is 150, or as in
        `PureHalfspaceClassifier`.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row. Longer rows are scaled down to it, in the fit
        and at prediction, but not by a selection for a small table. With None the columns keep
        their original units and may have missing values (NaN): a part of the budget then estimates
        a centre and a scale for each column (see `scaler_`). Where estimated scales do not help
        (sparse rows, few records), and with more than 512 columns in the default steps, the bound
        is 1. With dense rows and many records the default steps estimate scales also if a bound is
        given, since this is more accurate.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. ``"balanced"`` weights classes inversely to
        their sizes, which noisy counts within the budget (2 % of mu^2) estimate; it needs
        ``delta > 0``. The largest weight is then one, and the decision threshold is not corrected
        for the weights.
    prior : fitted linear model, pair (coefficients, intercepts) or None, default=None
        A PUBLIC model for the columns as they are passed to ``fit`` and the labels `classes`: of
        scikit-learn (also in a pipeline after a `StandardScaler`) or of this package. It is one
        more candidate of the selection for a small table (with two classes, for ``n epsilon`` below
        3000); other fits refuse it. It must not have been fitted to these records, except privately
        and with a budget of its own. See ``docs/guide/small_tables.md``.
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
    coef_std_error_, intercept_std_error_ : ndarrays of the shapes of `coef_` and `intercept_`
        Standard errors due to the noise of the fit, from released numbers alone; only for the
        default steps. The sign of a coefficient within two of them of zero is not resolved.
        Sampling variation comes on top.
    margin_ : float
        Known or selected margin; otherwise one over the norm of the released coefficients of
        rows of norm one, at most 1.
    certainty_ : float
        Only for a model that was selected for a small table: log odds of its predictions, by a
        noisy count of their errors, or, with ``n epsilon`` below 200, for one error in five.
    projection_ : LinearMap or None
        The public projection that was used; None if there was none.
    data_norm_ : float
        Norm to which longer rows are scaled down at prediction; infinite if column scales were
        estimated, after a selection for a small table, and if a perturbed objective divided rows by
        their norms.
    scaler_ : ReleasedScaler, CellScaler or None
        Released column scales, which after the default steps clip columns at 1.5 of them and
        shorten long rows; None if none were estimated. For a model that was selected for a small
        table it may be the public `CellScaler` whose cells the model reads.
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
    ObjectivePerturbationClassifier : The minimiser of one randomly perturbed objective.
    PureHalfspaceClassifier : Pure DP with few records.
    OutputPerturbationClassifier : The minimiser with noise added to it, also robust.
    dp_halfspace.theory.margin_risk_bound : A bound on the error for a given margin.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency; with the default solver it is exactly mu-GDP. Public: the number of rows, the
    columns, the label set and every parameter. Private: everything else. No branch depends on the
    data. With ``selection="random_stopping"`` the running time reveals the number of runs: do not
    publish it. With `groups` the unit of privacy is a person with all rows, and the number of
    people is public instead of the number of rows (``docs/proofs/persons.md``).

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang, "Adapting to Linear Separable Subsets with Large-Margin in
    Differentially Private Learning", 2025, Algorithms 1 to 6; R. Bassily, M. Mohri and
    A. T. Suresh, "Differentially Private Learning with Margin Guarantees", 2022, Algorithms 2
    and 5; H. L. Nguyen, J. Ullman and L. Zakynthinou, "Efficient Private Algorithms for Learning
    Large-Margin Halfspaces", 2020, Algorithms 1 and 3; all with exact noise. Proofs:
    ``docs/proofs/engine.md``, ``noisy_gradient.md``, ``phased_prox.md``, ``selection.md``,
    ``objective_perturbation.md``, ``pure_halfspace.md``. Constants: ``docs/defaults.md``.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = AdaptiveMarginClassifier(epsilon=0.3, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    margin: Any = "auto"
    solver: str = "auto"
    selection: str = "none"
    selection_score: str = "training"
    iterate: str = "averaged"
    projection: str | None = "auto"
    n_components: int | str = "auto"
    prior: Any = None

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DefaultStepsClassifier._parameter_constraints,
        "margin": [AUTO, KNOWN_MARGIN, "array-like"],
        "solver": [StrOptions({"auto", "noisy_sgd", *SOLVERS})],
        "selection": [StrOptions({"none", *MARGIN_SELECTIONS})],
        "selection_score": [StrOptions({"training", "population"})],
        "iterate": [StrOptions({"averaged", "mean", "last"})],
        "projection": [StrOptions({"auto", "rademacher", "hadamard"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), AUTO],
        "prior": [HasMethods("fit"), tuple, list, None],
    }

    @property
    def _is_binary(self) -> bool:
        return self.solver in {"phased_prox", "noisy_sgd"}

    def __sklearn_clone__(self) -> Any:
        # A clone of the prior would lose its fitted attributes, so the prior, a public fact, is
        # shared.
        bare = copy(self)
        bare.prior = None
        twin = super(AdaptiveMarginClassifier, bare).__sklearn_clone__()
        twin.prior = self.prior
        return twin

    def _facts(self, data: TrainingData) -> PublicFacts:
        facts = super()._facts(data)
        if self.prior is None:
            return facts
        from dp_halfspace.estimators._priors import read_prior  # noqa: PLC0415

        return replace(facts, prior=read_prior(self.prior, data))

    def _n_columns(self, data: TrainingData | None) -> int | None:
        # A fit that may keep a public model can be better than any rule expects.
        return None if self.prior is not None else super()._n_columns(data)

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        if has_defaults(self, AdaptiveMarginClassifier, _LINEAR_SHAPE):
            from dp_halfspace.estimators._small_tables import plan_small_fit  # noqa: PLC0415

            small = plan_small_fit(facts, budget, self.random_state)
            if small is not None:
                return small
        if facts.prior is not None:
            raise ValueError(
                "prior needs few records and the default parameters, so that a fit is a selection "
                "from a list: dense rows of at most 512 columns in memory, PUBLIC class weights, "
                "neither groups nor weights of records, and n epsilon below 3000 with two classes "
                "(with up to seven, as below for solver='auto')"
            )
        if not self._takes_default_steps(is_pure=budget.is_pure):
            return plan_rows(self._plan_published, facts, budget)
        steps = plan_balanced(self._plan_steps, facts, budget)
        if not (facts.is_scale_stated or steps.public["private_column_scales"]):
            warn_of_unscaled_columns(facts, budget, most=WIDEST)
        return steps

    def _takes_default_steps(self, *, is_pure: bool) -> bool:
        return (
            self.solver in {"auto", "noisy_gd"}
            and isinstance(self.margin, str)
            and self.selection == "none"
            and not is_pure
        )

    def _plan_steps(self, facts: PublicFacts, budget: Budget) -> LinearFit:
        """Plan a fit on the engine."""
        in_scales = not (facts.is_scale_stated or facts.is_sparse)
        linear_map = None
        # An automatic projection mixes columns of one unit only, and a number of them has to be
        # stated.
        is_automatic = in_scales or isinstance(self.n_components, str)
        if self.projection is not None and not (self.projection == "auto" and is_automatic):
            linear_map = self._problem(facts).draw_map(None)
        if linear_map is not None and in_scales:
            raise ValueError(
                "projection mixes columns, so they need one unit: give data_norm, the PUBLIC scale "
                "of a row, or use projection=None"
            )
        plan = plan_linear(
            facts,
            budget,
            constant=self._constant_column() or 0.0,
            n_averaged=self._n_averaged,
            linear_map=linear_map,
        )
        n_drawn = None if linear_map is None else linear_map.n_components
        public = {**plan.public, "selection": "none", "margins": [None], "n_components": [n_drawn]}
        return replace(plan, public=public)

    @property
    def _n_averaged(self) -> int:
        """Number of the last of the default steps whose iterates are averaged."""
        return {"averaged": N_AVERAGED, "mean": N_STEPS, "last": 1}[self.iterate]

    def _problem(self, facts: PublicFacts) -> Problem:
        """Return the parameters that this class shares with the published algorithms."""
        return Problem(
            facts,
            self._constant_column(),
            projection=self.projection,
            n_components=stated(self.n_components, int),
            tail_fraction=self._n_averaged / N_STEPS if self.iterate != "last" else 0.0,
            seed=self.random_state,
        )

    def _plan_published(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        """Plan a published algorithm, or a selection among several of its fits."""
        from dp_halfspace.estimators._choose import plan_training  # noqa: PLC0415

        is_pure, is_single = budget.is_pure, self.selection == "none"
        if not is_single and (is_pure or self.solver in {"objective_perturbation", "noisy_sgd"}):
            raise ValueError(
                f"selection={self.selection!r} needs a Gaussian solver: delta > 0 and "
                "solver='noisy_gd' or 'phased_prox'"
            )
        solver = "noisy_gd" if self.solver == "auto" else self.solver
        is_known = not isinstance(self.margin, str)
        margins = _checked_margins(self.margin, is_grid=not is_single) if is_known else []
        problem = self._problem(facts)
        plan: Any
        if is_single:
            plan = plan_training(problem, solver, margins[0] if margins else None, budget)
        else:
            plan = plan_selection(
                problem,
                solver,
                self.selection,
                margins or margin_grid(problem, budget),
                budget,
                population=self.selection_score == "population",
            )
        found: FitPlan = replace(plan, public={**plan.public, "selection": self.selection})
        return found


def _checked_margins(margin: Any, *, is_grid: bool) -> list[float]:
    """Return one known margin, or a grid of them."""
    try:
        numbers = np.asarray(float(margin) if isinstance(margin, Real) else margin)
    except ValueError:
        numbers = np.empty(0, dtype=object)
    is_number = numbers.dtype.kind in "iuf"
    if not is_number or not ((numbers >= SMALLEST_MARGIN) & (numbers <= 1)).all():
        raise ValueError("margin must be 'auto', a number in [1e-9, 1] or a list of such numbers")
    if not is_grid and numbers.ndim != 0:
        raise ValueError(
            "margin is a grid, but selection='none': choose a selection, or one margin"
        )
    if is_grid and (numbers.ndim != 1 or numbers.size == 0):
        raise ValueError("margin must be 'auto' or a list of numbers when there is a selection")
    return [float(number) for number in np.atleast_1d(numbers)]
