"""The default linear classifier; needs no margin."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace import algorithms
from dp_halfspace._params import label_weights, resolved_delta
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.estimators.base import Prepared, PrivateLinearClassifier

if TYPE_CHECKING:
    from dp_halfspace.data.validation import TrainingData
    from dp_halfspace.optim.objectives.adversary import Adversary
    from dp_halfspace.privacy.mechanisms import Permit

# Of the dual norm, in units of the coefficients for rows of norm one: no privacy rests on it.
_SMOOTHING = 1e-3


@dataclass(eq=False, repr=False)
class AdaptiveMarginClassifier(PrivateLinearClassifier):
    """Private linear classifier for any margin: the default of the suite.

    Rows are brought to norm one. A fifth of the budget buys a private preconditioner (the second
    moment of the rows), the rest a few dozen accelerated full-batch gradient steps on clipped
    slopes of a shifted logistic loss. Nothing has to be tuned, no margin be known. The published
    algorithms for a known margin and for a grid of margins can be chosen instead.

    Parameters
    ----------
    margin : "auto", float or array-like of float, default="auto"
        ``"auto"`` needs no margin. A float in [1e-9, 1] is a PUBLIC guess of the distance of the
        rows from the hyperplane, after they have been brought to norm one; then there is no
        metric. An array-like is the grid of `selection`.
    solver : str, default="auto"
        ``"auto"`` is ``"noisy_gd"``, but for a table of few rows: with two classes, dense rows of
        at most 512 columns, every other parameter that shapes the model at its default and
        ``n epsilon < 600`` (1500 for pure epsilon in natural units) it is one exponential mechanism
        among listed classifiers, which spends no delta. ``"objective_perturbation"`` is
        one noisy objective, exactly minimised, ``"phased_prox"`` one pass of proximal steps for two
        classes. There is no purely private ``"noisy_gd"``: for ``delta=0`` it stands for the
        exponential mechanism of `PureHalfspaceClassifier` with two classes, no known margin and
        ``n epsilon < 1500``, and else for ``"objective_perturbation"``.
    selection : str, default="none"
        How to choose from a grid of margins: ``"exponential"`` mechanism on error counts,
        ``"gaussian"`` noise on all error counts, ``"random_stopping"`` (best of a random
        number of runs). With ``margin="auto"`` the grid has four margins that follow from
        public sizes. Rarely worth its price.
    selection_score : str, default="training"
        What `selection` counts: ``"training"`` errors, or ``"population"``, which adds a
        public penalty for the dimension.
    iterate : str, default="averaged"
        Iterate of ``"noisy_gd"`` that is returned: the mean of the last ones, or ``"last"``.
    projection : str or None, default="auto"
        Public random map in front: ``"rademacher"``, ``"hadamard"`` or None.
        ``"auto"`` projects for pure epsilon only, with more than 512 columns (64 before the
        exponential mechanism). `coef_` is mapped back.
    n_components : int or "auto", default="auto"
        Dimension after a projection. ``"auto"`` follows from the margin, or is 500; for pure
        epsilon 150, or as in `PureHalfspaceClassifier`.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon.
    data_norm : float or None, default=None
        PUBLIC scale of a row; longer rows are scaled down to it, but by the default steps, which
        bring rows to norm one from any length. None is for columns in their natural units, with
        missing values (NaN) or not: the budget then buys a centre and a width for each column, see
        `scaler_`; where that does not pay (CSR, few records) the scale is 1. No row
        is scaled down then.
    fit_intercept : bool, default=True
        Whether to append a constant column.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default of about a fifth of `data_norm`.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels seen to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; ``"balanced"`` is refused.
    adversary_radius : float, default=0.0
        Largest change of a row, in the units of the columns, against which the model is
        trained; less than `data_norm`. For two classes, ``solver="noisy_gd"``, no margin and
        ``delta > 0``. Rows then keep their lengths, and there is neither preconditioner nor
        projection.
    adversary_norm : {2, "inf"}, default=2
        Norm of that change: Euclidean, which does not raise the noise, or the largest change
        of one column.
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
    margin_ : float
        Known or selected margin; otherwise the margin of unit rows below which a record still
        pulls at the model, a function of the released coefficients.
    projection_ : LinearMap or None
        The public map that was used.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite where they were normalised.
    scaler_ : ReleasedScaler, CellScaler or None
        Released units of the columns, None where none were learnt; of a model that was chosen for
        a small table perhaps the public cells that it reads, whose scores are exact.
    row_lengths_ : RowLengths
        What scores are divided by, which changes no prediction; only of a model that was chosen
        for a small table.
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
    ObjectivePerturbationClassifier : The minimiser of one noisy objective.
    PureHalfspaceClassifier : Pure epsilon with few records.
    OutputPerturbationClassifier : One noisy minimiser.
    dp_halfspace.theory.margin_risk_bound : What a margin buys, before any fit.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency; with the default solver exactly mu-Gaussian private. Public: the number of
    rows, the columns, the label set and every parameter. Private: everything else. No branch
    depends on the data. With ``selection="random_stopping"`` the running time reveals the
    number of runs: keep it to yourself. With `groups` the unit is a person with all rows, and
    the number of people is public instead of that of rows (``docs/proofs/persons.md``).

    References
    ----------
    E. Wang, Y. Zhu and Y.-X. Wang, "Adapting to Linear Separable Subsets with Large-Margin in
    Differentially Private Learning", 2025, Algorithms 1 to 6; R. Bassily, M. Mohri and
    A. Suresh, "Differentially Private Learning with Margin Guarantees", 2022, Algorithms 2
    and 5; H. Nguyen, J. Ullman and L. Zakynthinou, "Efficient Private Algorithms for Learning
    Large-Margin Halfspaces", 2020, Algorithms 1 and 3; all with corrected noise. Proofs:
    ``docs/proofs/preconditioner.md``, ``noisy_gradient.md``, ``phased_prox.md``, ``selection.md``,
    ``objective_perturbation.md``, ``pure_halfspace.md``. Constants: ``docs/defaults.md``.

    Examples
    --------
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.datasets import make_halfspace
    >>> X, y = make_halfspace(20000, 10, margin=0.2, random_state=0)
    >>> model = AdaptiveMarginClassifier(epsilon=0.3, classes=[-1, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True

    Against an adversary who moves every row, of norm one, by .1:

    >>> robust = AdaptiveMarginClassifier(adversary_radius=0.1, data_norm=1, classes=[-1, 1])
    >>> robust = robust.fit(X, y)
    >>> worst = y * robust.decision_function(X) - 0.1 * (robust.coef_**2).sum() ** 0.5
    >>> bool((worst > 0).mean() > 0.9)
    True
    """

    margin: Any = "auto"
    _: KW_ONLY
    solver: str = "auto"
    selection: str = "none"
    selection_score: str = "training"
    iterate: str = "averaged"
    projection: str | None = "auto"
    n_components: int | str = "auto"
    adversary_radius: float = 0.0
    adversary_norm: Literal[2, "inf"] = 2

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "margin": [
            StrOptions({"auto"}),
            Interval(Real, algorithms.SMALLEST_MARGIN, 1, closed="both"),
            "array-like",
        ],
        "solver": [StrOptions({"auto", *algorithms.SOLVERS})],
        "selection": [StrOptions({"none", *algorithms.SELECTIONS})],
        "selection_score": [StrOptions({"training", "population"})],
        "iterate": [StrOptions({"averaged", "last"})],
        "projection": [StrOptions({"auto", "rademacher", "hadamard"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "adversary_radius": [Real],
        "adversary_norm": [Options(Real, {2}), StrOptions({"inf"})],
    }

    def _trained(self, ready: Prepared, permit: Permit) -> None:
        """Make the rows of each way to fit, and run the plan."""
        if ready.is_small_table:
            from dp_halfspace.estimators._small_tables import fit_small_table  # noqa: PLC0415

            self.margin_ = 0.0
            fit_small_table(self, ready, permit)
            return
        data, scaler = ready.in_units(permit)
        norm = ready.data_norm

        def rows_of(training: algorithms.Training) -> Any:
            return training.rows(data.X, norm, data.people, clips=ready.clips)

        used, released = ready.plan.run(rows_of, data.codes, ready.weights, permit)

        self.margin_ = algorithms.asked_margin(used, released)
        self.projection_ = used.linear_map
        released = self._in_units_of_data(
            released, used.constant_column, used.linear_map, data_norm=norm
        )
        self._remember(ready, released, scaler)

    def _planned(self, data: TrainingData) -> Prepared:
        weights = label_weights(self.class_weight, data.classes)
        plan = self._plan(data)
        record = self._record(
            data,
            plan.events,
            **plan.public,
            selection=self.selection,
            adversary_radius=float(self.adversary_radius),
            adversary_norm="inf" if self.adversary_norm == "inf" else 2,
        )
        # The default steps find the scale of the rows; published ones count on a bound.
        is_soft = isinstance(plan, algorithms.Training) and plan.is_automatic
        clips = self._is_scale_stated and not is_soft
        norm = float(self.data_norm)
        return Prepared(data, weights / weights.max(), plan, record, norm, clips)

    @property
    def _is_binary(self) -> bool:
        return self.solver == "phased_prox" or bool(self.adversary_radius)

    def _small_table(self, data: TrainingData) -> Prepared | None:
        if not (self._may_select and self._is_small(data)):
            return None
        from dp_halfspace.estimators._small_tables import planned_small_table  # noqa: PLC0415

        return planned_small_table(self, data)

    @property
    def _may_select(self) -> bool:
        """Whether the parameters leave it to public sizes how a small table is fitted."""
        asked = {
            "margin": "auto",
            "solver": "auto",
            "selection": "none",
            "iterate": "averaged",
            "projection": "auto",
            "n_components": "auto",
            "adversary_radius": 0.0,
            "fit_intercept": True,
            "intercept_scaling": 1.0,
        }
        return all(_is_same(getattr(self, name), value) for name, value in asked.items())

    @property
    def _solver(self) -> str:
        """The solver of tables that are not small."""
        return "noisy_gd" if self.solver == "auto" else self.solver

    def _protects_people(self, plan: Any) -> bool:
        return plan is None or (isinstance(plan, algorithms.Training) and plan.protects_people)

    _reads_chunks = _protects_people

    def _plan(self, data: TrainingData) -> algorithms.Training | algorithms.SelectionPlan:
        """Fix the public numbers of a fit; of the rows, only shape and layout matter."""
        n_samples, n_features, n_classes = data.n_privacy_units, data.X.shape[1], len(data.classes)
        epsilon, delta = float(self.epsilon), resolved_delta(self.delta, n_samples)
        is_pure = delta == 0 and math.isfinite(epsilon)
        margins = self._checked_margins(n_classes, is_pure=is_pure)
        problem = algorithms.Problem(
            n_samples=n_samples,
            n_features=n_features,
            n_classes=n_classes,
            is_sparse=sparse.issparse(data.X),
            intercept=self._constant_column(),
            projection=self.projection,
            n_components=None if isinstance(self.n_components, str) else self.n_components,
            averaged=self.iterate == "averaged",
            seed=self.random_state,
            attack=self._adversary(n_features, n_classes, is_pure=is_pure),
            is_single=algorithms.reads_single(
                data,
                (float(self.data_norm), float(self.intercept_scaling)),
                stated=self._is_scale_stated,
                in_units=self._is_in_units,
            ),
        )
        if self.selection == "none":
            margin = margins[0] if margins else None
            return algorithms.plan_training(problem, self._solver, margin, epsilon, delta)
        return algorithms.plan_selection(
            problem,
            self._solver,
            self.selection,
            margins or algorithms.margin_grid(problem, epsilon, delta),
            epsilon=epsilon,
            delta=delta,
            population=self.selection_score == "population",
        )

    def _checked_margins(self, n_classes: int, *, is_pure: bool) -> list[float]:
        """Return the margins given, none for the automatic ones; refuse what cannot be done."""
        algorithms.check_phased_prox(self.solver, n_classes, is_pure=is_pure)
        if self.selection == "none":
            if isinstance(self.margin, str):
                return []
            margins = _checked_numbers(self.margin)
            if margins.ndim != 0:
                raise ValueError(
                    "margin is a grid, but selection='none': choose a selection, or one margin"
                )
            return [float(margins)]
        if is_pure or self.solver == "objective_perturbation":
            raise ValueError(
                f"selection={self.selection!r} needs a Gaussian solver: delta > 0 and "
                "solver='noisy_gd' or 'phased_prox'"
            )
        if isinstance(self.margin, str):
            return []
        grid = _checked_numbers(self.margin)
        if grid.ndim != 1 or grid.size == 0:
            raise ValueError("margin must be 'auto' or a list of numbers when there is a selection")
        return [float(margin) for margin in grid]

    def _adversary(self, n_features: int, n_classes: int, *, is_pure: bool) -> Adversary | None:
        """Return the adversary in units of the public scale of a row, or None without one."""
        if self.adversary_radius == 0.0:
            return None
        from dp_halfspace.estimators._robust_options import planned_attack  # noqa: PLC0415
        from dp_halfspace.optim.objectives.losses import LOGISTIC  # noqa: PLC0415

        norm = float(self.data_norm)
        attack = planned_attack(
            self.adversary_radius,
            self.adversary_norm,
            _SMOOTHING,
            loss=LOGISTIC,
            data_norm=norm,
            n_features=n_features,
        )
        if attack is None:
            return None
        if n_classes > 2:
            raise ValueError(
                "Only binary classification is supported with adversary_radius: for more classes "
                "use OutputPerturbationClassifier"
            )
        is_default = self._solver == "noisy_gd" and isinstance(self.margin, str)
        if is_pure or not is_default or self.selection != "none":
            raise ValueError(
                "adversary_radius needs solver='noisy_gd', margin='auto', selection='none' and "
                "delta > 0. OutputPerturbationClassifier takes it with delta=0 too"
            )
        if self.projection not in {"auto", None}:
            raise ValueError(
                "adversary_radius needs projection='auto' or None: a projection changes the size "
                "of a change of a row"
            )
        return replace(attack, radius=attack.radius / norm, smoothing=_SMOOTHING)


def _is_same(given: Any, value: Any) -> bool:
    """Tell whether a parameter is at a value; arrays are at none."""
    return isinstance(given, type(value) | int) and bool(given == value)


def _checked_numbers(margin: Any) -> NDArray[np.float64]:
    """Return one margin or a grid of them as an array, if all are margins."""
    try:
        numbers = np.asarray(float(margin) if isinstance(margin, Real) else margin)
    except ValueError:
        numbers = np.empty(0, dtype=object)
    is_number = numbers.dtype.kind in "iuf"
    if not is_number or not ((numbers >= algorithms.SMALLEST_MARGIN) & (numbers <= 1)).all():
        raise ValueError("margin must be 'auto', a number in [1e-9, 1] or a list of such numbers")
    return numbers.astype(np.float64)
