"""The exponential mechanism over hyperplanes that do not depend on the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from dp_halfspace._params import AUTO, stated
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.estimators._small_tables import plan_small_fit
from dp_halfspace.estimators._wrapped_plans import plan_rows
from dp_halfspace.estimators.base import PrivateLinearClassifier, has_defaults
from dp_halfspace.papers import KNOWN_MARGIN
from dp_halfspace.papers.halfspace_search import plan_direction_training
from dp_halfspace.papers.staged_search import MOST_CANDIDATES
from dp_halfspace.papers.training import LinearTraining, Problem
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection.linear import PROJECTIONS

# The parameters that shape a model.
_SEARCH_SHAPE = (
    *("n_directions", "n_stages", "margin", "projection", "n_components"),
    *("fit_intercept", "intercept_scaling"),
)


@dataclass(kw_only=True, eq=False, repr=False)
class PureHalfspaceClassifier(PrivateLinearClassifier):
    """Linear classifier by a private choice among hyperplanes fixed without the data: pure DP.

    Rows are scaled to norm one. Every hyperplane of a public random stream is scored by the number
    of records that it misclassifies, and the exponential mechanism chooses one; with a larger
    budget it chooses again among hyperplanes near the first one. Made for few records: the noise
    does not grow with the number of columns.

    Parameters
    ----------
    n_directions : int or "auto", default="auto"
        Number of candidates in each stage, at most 1000000. ``"auto"`` is 50000, and fewer with
        more than 20000 rows. The normal vectors of most have few non-zero coefficients, or
        coefficients of one sign; after a projection they are uniform on the sphere.
    n_stages : int or "auto", default="auto"
        Number of stages; each spends an equal part of epsilon and halves the width of the cone
        around the last choice. ``"auto"`` is ``n epsilon / 350``, within 1 and 8.
    margin : float or None, default=None
        None counts errors. A float in [1e-9, 1] is a PUBLIC guess of the margin of normalised rows;
        records with a margin below a tenth of it then count as errors.
    projection : str or None, default="auto"
        Public random projection of the columns before the fit: ``"rademacher"``, ``"hadamard"`` or
        None. ``"auto"`` projects more than 64 columns. `coef_` is mapped back.
    n_components : int or "auto", default="auto"
        Number of columns after the projection. ``"auto"`` is the power of two next to ``sqrt(n
        epsilon)``, at least 32; it is 500 where a projection is named for 64 columns or fewer.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity takes the best candidate, without any guarantee.
    delta : float, default=0.0
        Only 0: the guarantee is pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`), and rows are
        normalised without being scaled down first. Where estimated scales do not help (sparse rows,
        few records) the bound is 1.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default, which is half of `data_norm`
        (`data_norm` with more than 64 columns, twice `data_norm` with more than 512).
    classes : array-like of labels or None, default=None
        PUBLIC label set, of two labels. None declares the labels in `y` to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label in [1e-50, 1e50]; only their ratio matters, to a part in
        65536. ``"balanced"`` is refused.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int repeats the noise on any machine, and
        raises `PrivacyWarning`: anyone who knows it can repeat the choice.
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
        Released intercept; zero when ``fit_intercept=False``.
    projection_ : LinearMap or None
        The public projection that was used; None if there was none.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite if rows were normalised.
    scaler_ : ReleasedScaler, CellScaler or None
        Released column scales; None if none were estimated. For a model that was selected for a
        small table it may be the public `CellScaler` whose cells the model reads.
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
    AdaptiveMarginClassifier : Uses this mechanism for pure DP where it is more accurate.
    ObjectivePerturbationClassifier : Pure DP with many records, or many classes.
    dp_halfspace.theory.pure_lower_bound : How many records any pure DP method needs.

    Notes
    -----
    **Privacy.** ``fit`` is epsilon-differentially private under replace-one adjacency. Errors, or
    margins that are too small, are counted in exact integers and the mechanism is sampled exactly.
    Public: the number of rows, the columns, the label set, every parameter, and the list of
    candidate hyperplanes. Released: the index of the chosen one.

    Memory in addition to the data is a few bytes for each candidate. The running time is at most
    proportional to rows, columns and candidates.

    References
    ----------
    H. L. Nguyen, J. Ullman and L. Zakynthinou, "Efficient Private Algorithms for Learning
    Large-Margin Halfspaces", 2020, Algorithm 2; R. Bassily, M. Mohri and A. T. Suresh,
    "Differentially Private Learning with Margin Guarantees", 2022, Algorithm 1; F. McSherry and
    K. Talwar, "Mechanism Design via Differential Privacy", 2007. Proofs:
    ``docs/proofs/pure_halfspace.md``.

    Examples
    --------
    >>> from dp_halfspace import PureHalfspaceClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(2000, 5, margin=0.2, random_state=0)
    >>> model = PureHalfspaceClassifier(epsilon=0.5, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_directions: int | str = "auto"
    n_stages: int | str = "auto"
    margin: float | None = None
    projection: str | None = "auto"
    n_components: int | str = "auto"
    delta: float = 0.0

    _is_binary = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "delta": [Options(Real, {0})],
        "n_directions": [Interval(Integral, 2, MOST_CANDIDATES, closed="both"), AUTO],
        "n_stages": [Interval(Integral, 1, 64, closed="both"), AUTO],
        "margin": [KNOWN_MARGIN, None],
        "projection": [StrOptions({"auto", *PROJECTIONS}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), AUTO],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        if facts.n_classes != 2:
            raise ValueError(
                "Only binary classification is supported: a halfspace has two sides. For more "
                "classes with pure DP use ObjectivePerturbationClassifier(delta=0)"
            )
        # With these parameters public sizes decide how a small table is fitted.
        plan = None
        if has_defaults(self, PureHalfspaceClassifier, _SEARCH_SHAPE):
            plan = plan_small_fit(facts, budget, self.random_state, counts=False)
        return plan or plan_rows(self._plan_search, facts, budget)

    def _n_columns(self, data: TrainingData | None) -> None:
        """Return None: the search counts errors, and the rule of an outlook does not hold."""

    def _plan_search(self, facts: PublicFacts, budget: Budget) -> LinearTraining:
        """Plan a search of directions for rows in the scales that were chosen for them."""
        problem = Problem(
            facts,
            self._constant_column(),
            projection=self.projection,
            n_components=stated(self.n_components, int),
            tail_fraction=0.0,
            seed=self.random_state,
        )
        margin = None if self.margin is None else float(self.margin)
        plan = plan_direction_training(
            problem,
            budget,
            n_directions=stated(self.n_directions, int),
            n_stages=stated(self.n_stages, int),
            margin=margin,
        )
        drawn = None if plan.linear_map is None else plan.linear_map.n_components
        parameters = {"margin": margin, "n_stages": len(plan.events), "n_components": drawn}
        return replace(plan, public={**plan.public, **parameters})

    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        super()._set_fitted(fitted, data, record)
        # Misclassified records are counted, and no margin is required.
        self.__dict__.pop("margin_", None)
