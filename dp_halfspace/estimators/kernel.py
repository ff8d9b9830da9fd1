"""Private kernel classification: a linear classifier of random features."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._params import explains_foreign_parameters, public_number
from dp_halfspace._sklearn_compat import Interval, StrOptions, column_names
from dp_halfspace.algorithms import SMALLEST_MARGIN, SOLVERS
from dp_halfspace.algorithms.engine.calibration import CalibrationPlan, affordable_calibration
from dp_halfspace.algorithms.engine.defaults import WHITENING_SHARE, scales_pay, threshold_pays
from dp_halfspace.algorithms.engine.kernel_features import (
    ADDITIVE,
    Kernel,
    WhiteningPlan,
    choose_n_features,
    draw_additive_features,
    draw_features,
    draw_whitened_features,
    plan_whitening,
    project_features,
    relative_scale,
)
from dp_halfspace.algorithms.engine.training import LinearPlan, Problem
from dp_halfspace.algorithms.fit_plan import FitPlan, PublicFacts
from dp_halfspace.algorithms.kernel_training import (
    KernelPlan,
    features_of,
    is_linear,
    makes_single,
    plan_kernel_training,
)
from dp_halfspace.algorithms.published.margin_selection import (
    SEARCH_MEMORY,
    MarginPlan,
    plan_margin_choice,
)
from dp_halfspace.estimators._options import (
    monotone_curves,
    read_directions,
    split_rows,
    sums_of_terms,
    warn_of_projection,
)
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import KERNELS, PROJECTIONS, AdditiveMap, FeatureMap
from dp_halfspace.rows.mapped_rows import FeatureRows

if TYPE_CHECKING:
    from typing_extensions import Self

    from dp_halfspace.privacy.record import PrivacyRecord

_MEGABYTE = 2**20


@explains_foreign_parameters
@dataclass(eq=False, repr=False)
class PrivateKernelClassifier(PrivateLinearClassifier):
    """Private classifier for nonlinear boundaries: features of columns, then the linear default.

    By default the features are the columns themselves and, as far as the table size and the budget
    allow, cosines of each column with decaying weights and random Fourier features of all columns.
    Each row is mapped by itself, with public randomness, and scaled to norm one. If column scales
    are estimated, a small noisy release whitens the columns for the Fourier features. A fifth of
    the budget is spent on a private preconditioner, and the rest on accelerated noisy gradient
    steps.

    Parameters
    ----------
    kernel : str, default="auto"
        For tables, ``"auto"`` or ``"additive"``. ``"additive"`` takes the columns and cosines of
        each column: the score is then a sum of one curve for each column
        (:class:`~dp_halfspace.inspection.AdditiveDisplay`). ``"auto"`` adds Fourier features of all
        columns if they help, and uses the columns alone if no features help. The other kernels use
        random features alone: ``"rbf"``, ``"laplacian"``, ``"matern"`` (see
        :class:`~dp_halfspace.projection.Spectrum`) or ``"polynomial"``, ``(<x, z> / length_scale^2
        + coef0)^degree``.
    length_scale : float or "auto", default="auto"
        PUBLIC length scale of the kernel, in the units of the data; only for random features alone.
        ``"auto"`` is a mixture of ``.7 data_norm`` and of .04 to .35 `data_norm`, the latter with a
        share that decreases with the numbers of records and of classes (for ``"polynomial"`` it is
        `data_norm`).
    n_components : int or "auto", default="auto"
        For ``"auto"`` and ``"additive"`` the largest number of features, at least the number of
        columns; ``"auto"`` is 511. With ``"additive"`` each column gets as many cosines as fit. For
        random features alone the number of features; an odd number is raised to the next even one,
        since Fourier features come in pairs, and ``"auto"`` is about the number of records times
        mu, within [64, 600]. With more than 2048 features no preconditioner is used.
    degree : int, default=3
        Degree of the ``"polynomial"`` kernel.
    coef0 : float, default=1.0
        Constant term of the ``"polynomial"`` kernel, not negative.
    nu : float, default=1.5
        Smoothness of the ``"matern"`` kernel.
    margin : "auto", "select" or float, default="auto"
        ``"auto"`` needs no margin. A float in [1e-9, 1] is a PUBLIC guess of the margin of
        normalised feature rows. ``"select"`` chooses a margin privately by its hinge loss and then
        trains once (two classes, ``delta > 0``, noisy or proximal steps).
    solver : str, default="noisy_gd"
        ``"noisy_gd"``, ``"objective_perturbation"`` (the minimiser of an objective with a random
        linear term; the only solver for ``delta=0``) or ``"phased_prox"`` (one pass of proximal
        steps for one margin, two classes), as in `AdaptiveMarginClassifier`.
    projection : str or None, default=None
        Random projection of the features: ``"rademacher"`` or ``"hadamard"``. It is part of the
        published algorithms.
    cache_size : float, default=256.0
        Memory for features that are kept between passes over the data, in MB. Features that do not
        fit are computed again at every pass. ``margin="select"`` makes hundreds of passes and keeps
        at least 34 MB.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 requests pure DP, by objective perturbation on at most
        150 features, also if `solver` is the default.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`). Where estimated
        scales do not help (sparse rows, few records) the bound is 1. With many records (``n mu`` at
        least 900) and ``kernel="auto"``, scales are estimated also if a bound is given, because
        they then cost little; the bound has no effect in this case.
    fit_intercept : bool, default=True
        Whether to append a constant column to the features.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. ``"balanced"`` weights classes inversely to
        their sizes, which noisy counts within the budget (2 to 3 % of mu^2) estimate; it needs
        ``delta > 0``. The largest weight is then one, and the decision threshold is not corrected
        for the weights.
    random_state : int or None, default=None
        None draws the noise from the operating system. An int makes the fit reproducible and raises
        `PrivacyWarning`: anyone who knows it can subtract the noise.
    ledger : object with a method ``charge(record)``, or None
        Privacy ledger that is charged before any noise is drawn.
    verbose : int, default=0
        If above 0, `fit` prints its public privacy record before it releases anything, and a line
        when it has finished. Nothing that is printed depends on private data.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public label set.
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Released coefficients of the ``n_components_`` features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts; zero when ``fit_intercept=False``.
    feature_map_ : FeatureMap
        The feature map, public or released; ``feature_map_.apply(X / data_norm_)`` computes the
        features.
    n_components_ : int
        Number of features.
    margin_ : float
        Known or selected margin; otherwise the margin of normalised rows below which the loss of a
        record has a large slope, a function of the released coefficients.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite if rows were normalised.
    scaler_ : ReleasedScaler or None
        Released column scales; None if none were estimated.
    fill_value_ : float or None
        Value that replaces a missing entry; None if `X` must not have missing entries.
    monotone_ : tuple
        Only for a copy made by `with_monotone`: position, values (on the column scales) and effects
        of each monotone column.
    privacy_ : PrivacyRecord
        The privacy guarantee of the fit, its events, and what was assumed public.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, when `X` had them.

    See Also
    --------
    AdaptiveMarginClassifier : The linear default.
    dp_halfspace.projection.Spectrum : The kernels that Fourier features approximate.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency; with the default margin it is exactly mu-GDP, or epsilon-DP where a selection fits a
    small table of three to seven classes (``docs/proofs/small_tables.md``). Public: the number of
    rows, the columns, the label set, every parameter and the feature map, which is drawn without
    the data, or, if the record says ``private_whitening``, depends on a noisy second moment within
    the budget. If it says ``private_threshold``, noisy counts of scores within the budget set the
    threshold between two classes. Private: everything else. No branch depends on the data, except
    that the running time of ``margin="select"`` does so. With `groups` the unit of privacy is a
    person with all rows, and the number of people is public instead of the number of rows
    (``docs/proofs/persons.md``).

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh, "Differentially Private Learning with Margin Guarantees",
    2022, Algorithms 3, 5 and 6, section 4; with fewer features, exact noise and a selection that
    can be computed. Proofs: ``docs/proofs/kernel.md``, ``preconditioner.md``,
    ``noisy_gradient.md``, ``phased_prox.md``. Constants: ``docs/defaults/features.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateKernelClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(10000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = PrivateKernelClassifier(data_norm=2**0.5, classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    kernel: str = "auto"
    _: KW_ONLY
    length_scale: float | str = "auto"
    n_components: int | str = "auto"
    degree: int = 3
    coef0: float = 1.0
    nu: float = 1.5
    margin: float | str = "auto"
    solver: str = "noisy_gd"
    projection: str | None = None
    cache_size: float = 256.0

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "kernel": [StrOptions({*ADDITIVE, *KERNELS, "polynomial"})],
        "length_scale": [StrOptions({"auto"}), *public_number()],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "degree": [Interval(Integral, 1, 16, closed="both")],
        "coef0": [Interval(Real, 0, 1e6, closed="both")],
        "nu": [Interval(Real, 0.1, 1e3, closed="both")],
        "margin": [
            StrOptions({"auto", "select"}),
            Interval(Real, SMALLEST_MARGIN, 1, closed="both"),
        ],
        "solver": [StrOptions(set(SOLVERS))],
        "projection": [StrOptions(set(PROJECTIONS)), None],
        "cache_size": [Interval(Real, 0, 1e9, closed="both")],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> KernelPlan:
        """Draw the public features and fix the public numbers of a fit."""
        seed = int(public_generator(self.random_state, "features").integers(2**63))
        problem = Problem(
            facts.n_privacy_units,
            facts.n_features,
            facts.n_classes,
            facts.is_sparse,
            self._constant_column(),
            seed=self.random_state,
            class_weights=facts.class_weights,
            is_scale_stated=facts.is_scale_stated,
            balances_classes=facts.balances_classes,
            has_weights=facts.has_weights,
            count=facts.count,
            is_table=facts.is_table,
        )
        threshold, budget = self._plan_threshold(problem, facts, budget)
        whitened = self._plan_whitened(problem, facts, budget, seed)
        if whitened is None:
            whitening, left = None, budget
            feature_map = self._drawn_map(problem, facts, budget, seed)
        else:
            feature_map, whitening, left = whitened
        if not is_linear(feature_map):
            problem = replace(problem, n_features=feature_map.n_components, is_sparse=False)
        parameters = {
            "kernel": self.kernel,
            "length_scale": self.length_scale,
            "n_components": feature_map.n_components,
            "feature_seed": seed,
        }
        least = SEARCH_MEMORY if self.margin == "select" else 0
        memory = max(int(self.cache_size * _MEGABYTE), least)
        in_single = makes_single(facts, feature_map)
        return KernelPlan(
            self._plan_training(problem, feature_map, left, in_single),
            feature_map,
            facts.data_norm,
            problem.intercept,
            memory=memory,
            parameters=parameters,
            whitening=whitening,
            threshold=threshold,
        )

    def with_monotone(self, monotone: Mapping[str, str]) -> Self:
        """Return a copy whose score rises, or falls, with single columns; it costs nothing.

        Parameters
        ----------
        monotone : dict
            PUBLIC knowledge: name of a column to ``"increasing"`` or ``"decreasing"``. Columns
            without names are ``"x0"``, ``"x1"``, ...

        Returns
        -------
        PrivateKernelClassifier
            A fitted copy in which the curves of these columns are the nearest monotone ones, by
            isotonic regression of the released curves. If two rows agree in all other columns,
            their scores are in order, exactly. Of a copy, the columns that are named again have the
            new direction, and the others keep theirs.

        Raises
        ------
        ValueError
            If the model is no sum of curves (``kernel="additive"``, or the columns alone), has more
            than two classes, or a column or a direction is unknown.

        Notes
        -----
        **Privacy.** Post-processing of released coefficients; ``privacy_`` is that of the model.
        """
        check_is_fitted(self)
        return self._with_curves(read_directions(monotone, list(map(str, column_names(self)))))

    def _with_curves(self, directions: Mapping[int, bool]) -> Self:
        """Return a copy with monotone effects of the columns at these positions."""
        curves = monotone_curves(
            self._released_margins,
            self.feature_map_,
            self.data_norm_,
            len(self.coef_),
            directions,
        )
        kept = [one for one in getattr(self, "monotone_", ()) if one[0] not in directions]
        changed = copy(self)
        changed.monotone_ = (*kept, *curves)
        return changed

    def _margins(self, X: Any) -> NDArray[np.float64]:
        if not hasattr(self, "monotone_"):
            return self._released_margins(X)
        rows, effects = split_rows(X, self.monotone_)
        features, (coefficients,) = self._features_and_coefficients(rows)
        return (sums_of_terms(features, coefficients) + effects)[:, None]

    def _released_margins(self, X: Any) -> NDArray[np.float64]:
        """Multiply features of rows by the released coefficients."""
        features, coefficients = self._features_and_coefficients(X)
        if is_linear(self.feature_map_):
            return np.asarray(features @ coefficients.T)
        return FeatureRows(features).margins(coefficients.T)

    def _features_and_coefficients(self, X: Any) -> tuple[Any, NDArray[np.float64]]:
        """Return the features of rows, and the released coefficients for them."""
        if is_linear(self.feature_map_):
            return X, self.coef_ / self.data_norm_
        return features_of(X, self.data_norm_, self.feature_map_, 0), self.coef_

    @property
    def _is_binary(self) -> bool:
        return self.margin == "select" or self.solver == "phased_prox"

    def _drawn_map(
        self, problem: Problem, facts: PublicFacts, budget: Budget, seed: int
    ) -> FeatureMap:
        """Draw the public features."""
        size = None if isinstance(self.n_components, str) else int(self.n_components)
        scale = relative_scale(self.length_scale, facts.data_norm)
        drawn: FeatureMap
        if self.kernel in ADDITIVE:
            drawn = draw_additive_features(
                self.kernel, problem, size, budget, seed, is_stated=facts.is_scale_stated
            )
        else:
            size = size or choose_n_features(problem.n_samples, budget)
            size += size % 2 if self.kernel != "polynomial" else 0
            kernel = Kernel(self.kernel, scale, float(self.nu), int(self.degree), float(self.coef0))
            drawn = draw_features(kernel, problem, size, seed)
        behind = project_features(
            drawn, self.projection, self._margin(), problem.n_samples, seed + 1
        )
        warn_of_projection(
            self.projection,
            None if behind is drawn else behind.n_components,
            n_columns=drawn.n_components,
            n_samples=problem.n_samples,
            margin=self._margin(),
        )
        return behind

    def _plan_whitened(
        self, problem: Problem, facts: PublicFacts, budget: Budget, seed: int
    ) -> tuple[AdditiveMap, WhiteningPlan, Budget] | None:
        """Plan Fourier features in whitened columns, and return the remaining budget.

        The result is None if they do not help, or the fit does not use the default steps.
        """
        if not self._is_default(budget):
            return None
        drawn = self._draw_whitened(problem, facts, budget.mu, seed)
        if drawn is None:
            return None
        part, rest = budget.split(WHITENING_SHARE)
        whitening = plan_whitening(problem, drawn, part.mu, rest.mu)
        return None if whitening is None else (drawn, whitening, rest)

    def _releases_rarity(self, record: PrivacyRecord) -> bool:
        return bool(dict(record.public).get("private_class_counts"))

    def _special_plan(self, facts: PublicFacts, budget: Budget) -> FitPlan | None:
        """Plan the selection of the linear default for a small table of three to seven classes."""
        is_default = self._is_default(budget) and self.n_components == "auto"
        is_default &= bool(self.fit_intercept) and self.intercept_scaling == 1.0
        is_plain = not (facts.is_scale_stated or facts.balances_classes)
        if facts.n_classes == 2 or not is_default or not is_plain:
            return None
        from dp_halfspace.estimators._small_tables import plan_small_fit  # noqa: PLC0415

        # The features are the columns themselves.
        columns = AdditiveMap(facts.n_features, 1)
        own = {"margin_": 0.0, "feature_map_": columns, "n_components_": facts.n_features}
        plan = plan_small_fit(facts, budget, self.random_state, own)
        return None if plan is None else replace(plan, norm_of_rows=1.0)

    def _plan_threshold(
        self, problem: Problem, facts: PublicFacts, budget: Budget
    ) -> tuple[CalibrationPlan | None, Budget]:
        """Plan counts of scores for the threshold between two classes, and return the other budget.

        The plan is None if they do not help. Tables calibrate their scores themselves, and weighted
        classes are to be divided elsewhere.
        """
        found, left = affordable_calibration(problem.n_samples, budget)
        sizes = problem.n_samples, problem.n_features, problem.n_classes, left.mu
        is_weighted = problem.balances_classes or len(set(problem.class_weights)) > 1
        pays = self.kernel in ADDITIVE and self._takes_default_steps(budget)
        pays = pays and facts.in_column_scales and threshold_pays(*sizes)
        if not pays or facts.is_table or is_weighted or problem.intercept is None:
            return None, budget
        return found, left

    def _is_default(self, budget: Budget) -> bool:
        """Return whether a fit is that of the default kernel, by the default steps."""
        return self.kernel == "auto" and self._takes_default_steps(budget)

    def _takes_default_steps(self, budget: Budget) -> bool:
        """Return whether a fit takes the default steps on the features themselves."""
        is_plain = self.margin == "auto" and self.projection is None
        return is_plain and self.solver == "noisy_gd" and not budget.is_pure

    def _estimates_scales_of(self, facts: PublicFacts, budget: Budget) -> bool:
        """Return whether column scales are estimated: of many records, also with `data_norm`."""
        pays = self._is_default(budget) and not facts.is_sparse
        pays = pays and scales_pay(facts.n_privacy_units, budget.mu)
        return pays or super()._estimates_scales_of(facts, budget)

    def _draw_whitened(
        self, problem: Problem, facts: PublicFacts, mu: float, seed: int
    ) -> AdditiveMap | None:
        """Draw features with frequencies that depend on a release, None if they do not help."""
        if not facts.in_column_scales:
            return None
        size = None if isinstance(self.n_components, str) else int(self.n_components)
        return draw_whitened_features(problem, size, mu, seed)

    def _margin(self) -> float | None:
        """Return the known margin, if there is one."""
        return None if isinstance(self.margin, str) else float(self.margin)

    def _plan_training(
        self, problem: Problem, feature_map: FeatureMap, budget: Budget, in_single: bool
    ) -> LinearPlan | MarginPlan:
        """Fix the public numbers of a fit on features."""
        if self.margin != "select":
            asked = (self.solver, self._margin(), budget)
            return plan_kernel_training(
                problem, *asked, feature_map=feature_map, in_single=in_single
            )
        if problem.balances_classes:
            raise ValueError("class_weight='balanced' needs margin='auto' or a known margin")
        is_perturbed = self.solver == "objective_perturbation"
        if problem.n_classes > 2 or budget.is_pure or is_perturbed:
            raise ValueError(
                "Only binary classification is supported by margin='select', and only "
                "delta > 0 and solver='noisy_gd' or 'phased_prox': use margin='auto'"
            )
        return plan_margin_choice(problem, self.solver, budget)
