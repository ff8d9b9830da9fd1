"""Private kernel classification: a linear classifier of random features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._memory import AT_ONCE, KEPT_BYTES, NUMBER_BYTES, refuse_beyond_memory
from dp_halfspace._params import AUTO, PUBLIC_NUMBER, stated
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.features import Features, joint_features
from dp_halfspace.engine.linear import LinearFit, plan_features, plan_linear
from dp_halfspace.engine.moment import WIDEST
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts
from dp_halfspace.engine.scales import ColumnScales
from dp_halfspace.estimators._choose import plan_kernel_training
from dp_halfspace.estimators._small_tables import plan_small_fit
from dp_halfspace.estimators._wrapped_plans import (
    plan_balanced,
    plan_rows,
    warn_of_unscaled_columns,
)
from dp_halfspace.estimators.base import DefaultStepsClassifier, has_defaults
from dp_halfspace.papers import KNOWN_MARGIN, SOLVERS
from dp_halfspace.papers.kernel import KernelTraining
from dp_halfspace.papers.margin_selection import MarginChoice, plan_margin_choice
from dp_halfspace.papers.training import PROJECTED, LinearTraining, Problem
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.privacy.record import PrivacyRecord
from dp_halfspace.projection.features import (
    AdditiveMap,
    FeatureMap,
    ProjectedFeatures,
    draw_fourier,
    draw_tensor_sketch,
)
from dp_halfspace.projection.linear import PROJECTIONS, draw_projection, jl_dimension

# Evidence for the constants: docs/defaults.md.
# Automatic length scale of the Gaussian kernel, relative to the public scale of a row.
LENGTH_SCALE = 0.3
# Pure DP, whose noise grows with the dimension: most features, and n epsilon for each feature.
PURE_MOST = 150
_PURE_RECORDS = 20.0
# Features of a column: more cosines follow the noise.
COLUMN_TERMS = 3
# Kernels whose first features are the columns themselves.
ADDITIVE = ("auto", "additive")
# Range of length scales relative to data_norm: float32 cannot distinguish features outside it.
_RELATIVE_SCALES = (1e-6, 1e6)


def relative_scale(length_scale: float | str, data_norm: float) -> float | None:
    """Return a length scale in units of `data_norm`, None for the automatic one."""
    if isinstance(length_scale, str):
        return None
    scale = float(length_scale) / data_norm
    if not _RELATIVE_SCALES[0] <= scale <= _RELATIVE_SCALES[1]:
        raise ValueError("length_scale must be within a factor 1e6 of data_norm")
    return scale


def choose_n_features(n_samples: int, budget: Budget) -> int:
    """Return the automatic number of features, an even function of public numbers.

    The noise leaves room for ``n_samples mu``, and more features than a second moment takes would
    be neither centred nor whitened. With pure DP the noise grows with their number, so there are
    fewer.
    """
    if budget.is_pure:
        wanted = min(n_samples * budget.epsilon / _PURE_RECORDS, PURE_MOST)
    else:
        wanted = min(n_samples * budget.mu, WIDEST)
    return 2 * max(round(wanted / 2.0), 1)


def n_terms(n_features: int, limit: int, most: int) -> int:
    """Return the number of features of each column: at most `limit` of all, `most` of one."""
    return min(max(limit // n_features, 1), most)


def _feature_bytes(n_components: int) -> int:
    """Return the memory of the features of a row in a block, in both precisions, and of steps."""
    return 5 * NUMBER_BYTES * n_components


def _refuse_features(n_components: int, facts: PublicFacts) -> None:
    """Refuse so many features that their coefficients, or those of a block, would not fit."""
    facts.refuse_beyond_memory(n_components)
    n_rows = min(facts.n_privacy_units, AT_ONCE)
    refuse_beyond_memory(
        _feature_bytes(n_components) * n_rows,
        f"a model of {n_components} features",
        "use fewer n_components",
    )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateKernelClassifier(DefaultStepsClassifier):
    """Private classifier for nonlinear boundaries: features of columns, then the linear default.

    By default the features are the columns themselves, two cosines of each column and, with many
    records, random Fourier features of all columns. Each row is mapped by itself, with public
    randomness. A noisy second moment centres and whitens the features, and noisy steps of logistic
    regression follow. Probabilities follow from the scores and cost nothing.

    Parameters
    ----------
    kernel : str, default="auto"
        For tables, ``"auto"`` or ``"additive"``. ``"additive"`` takes the columns and cosines of
        each column: the score is then a sum of one curve for each column
        (:class:`~dp_halfspace.inspection.EffectsDisplay`). ``"auto"`` adds Fourier features of all
        columns with ``n mu`` of at least 1850 times the root of their number, and shortens rows far
        from the mean when it scores them. The other kernels use random features alone: ``"rbf"``,
        the Gaussian kernel, or ``"polynomial"``, ``(<x, z> / length_scale^2 + coef0)^degree``.
    length_scale : float or "auto", default="auto"
        PUBLIC length scale of the kernel, in the units of the data; only for random features alone.
        ``"auto"`` is ``.3 data_norm``, and `data_norm` for ``"polynomial"``.
    n_components : int or "auto", default="auto"
        For ``"auto"`` and ``"additive"`` the largest number of features, at least the number of
        columns; ``"auto"`` is 512, of which each column has three at most. With a number and
        ``"additive"`` each column gets as many cosines as fit. For random features alone the number
        of features; an odd number is raised to the next even one, since Fourier features come in
        pairs, and ``"auto"`` is about the number of records times mu, at most 512, because more
        features are neither centred nor whitened.
    degree : int, default=3
        Degree of the ``"polynomial"`` kernel.
    coef0 : float, default=1.0
        Constant term of the ``"polynomial"`` kernel, not negative.
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
        budget then estimates a centre and a scale for each column (see `scaler_`). Scales are
        estimated with ``kernel="auto"`` or ``"additive"`` also if a bound is given, which then has
        no effect, unless rows are sparse, the margin is known or selected, or ``delta=0``.
    fit_intercept : bool, default=True
        Whether to append a constant column to the features.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels in `y` to be public.
    class_weight : dict, "balanced" or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]. ``"balanced"`` weights classes inversely to
        their sizes, which noisy counts within the budget (2 % of mu^2) estimate; it needs
        ``delta > 0``. The largest weight is then one, and the decision threshold is not corrected
        for the weights.
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
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Released coefficients of the ``n_components_`` features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts; zero when ``fit_intercept=False``.
    feature_map_ : FeatureMap
        The public feature map; ``feature_map_.apply(X / data_norm_)`` computes the features of rows
        in column scales.
    coef_axes_ : ndarray of shape (n_components, n_components)
        Only after the default steps: orthonormal axes of the features, in the columns.
    coef_axis_std_error_ : ndarray of shape (n_scores, n_components)
        Only after the default steps: standard errors of the coefficients along the axes, due
        to the noise of the steps, from released numbers alone.
    row_clip_ : RowClip or None
        Only after the default steps: the released limit to which long rows are shortened when they
        are scored; None with ``kernel="additive"``.
    certainty_ : float
        Only for a model that was selected for a small table: log odds of its predictions, by a
        noisy count of their errors, or, with ``n epsilon`` below 200, for one error in five.
    n_components_ : int
        Number of features.
    margin_ : float
        Known or selected margin; otherwise the margin of normalised rows below which the loss of a
        record has a large slope, a function of the released coefficients.
    data_norm_ : float
        Number by which rows are divided before `feature_map_`. With random features alone, and for
        a sparse matrix, it is the norm to which longer rows are scaled down at prediction.
    scaler_ : ReleasedScaler or None
        Released column scales; None if none were estimated.
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
    AdaptiveMarginClassifier : The linear default.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency; with the default margin it is exactly mu-GDP, or epsilon-DP where a selection fits a
    small table of three to seven classes (``docs/proofs/small_tables.md``). Public: the number of
    rows, the columns, the label set, every parameter and the feature map, which is drawn without
    the data. Private: everything else. No branch depends on the data, except
    that the running time of ``margin="select"`` does so. With `groups` the unit of privacy is a
    person with all rows, and the number of people is public instead of the number of rows
    (``docs/proofs/persons.md``).

    References
    ----------
    R. Bassily, M. Mohri and A. T. Suresh, "Differentially Private Learning with Margin Guarantees",
    2022, Algorithms 3, 5 and 6, section 4; with fewer features, exact noise and a selection that
    can be computed. Proofs: ``docs/proofs/engine.md``, ``kernel.md``, ``phased_prox.md``.
    Constants: ``docs/defaults.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateKernelClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(10000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = PrivateKernelClassifier(epsilon=3.0, classes=[0, 1]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    kernel: str = "auto"
    length_scale: float | str = "auto"
    n_components: int | str = "auto"
    degree: int = 3
    coef0: float = 1.0
    margin: float | str = "auto"
    solver: str = "noisy_gd"
    projection: str | None = None
    cache_size: float = 256.0

    _can_balance_classes: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DefaultStepsClassifier._parameter_constraints,
        "kernel": [StrOptions({*ADDITIVE, "rbf", "polynomial"})],
        "length_scale": [AUTO, PUBLIC_NUMBER],
        "n_components": [Interval(Integral, 1, None, closed="left"), AUTO],
        "degree": [Interval(Integral, 1, 16, closed="both")],
        "coef0": [Interval(Real, 0, 1e6, closed="both")],
        "margin": [StrOptions({"auto", "select"}), KNOWN_MARGIN],
        "solver": [StrOptions(set(SOLVERS))],
        "projection": [StrOptions(set(PROJECTIONS)), None],
        "cache_size": [Interval(Real, 0, 1e9, closed="both")],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        if self._takes_default_steps(is_pure=budget.is_pure):
            steps = self._small_plan(facts, budget)
            return steps or plan_balanced(self._plan_steps, facts, budget)
        return plan_rows(self._plan_published, facts, budget)

    def _plan_published(self, facts: PublicFacts, budget: Budget) -> KernelTraining:
        """Draw the public features, and plan a published algorithm for them."""
        seed = self._feature_seed()
        feature_map = self._drawn_map(facts, budget, seed)
        _refuse_features(feature_map.n_components, facts)
        of_features = replace(facts, n_features=feature_map.n_components, is_sparse=False)
        problem = Problem(of_features, self._constant_column(), seed=self.random_state)
        training: LinearTraining | MarginChoice
        memory = self._memory()
        if self.margin == "select":
            if facts.balances_classes:
                raise ValueError("class_weight='balanced' needs margin='auto' or a known margin")
            is_perturbed = self.solver == "objective_perturbation"
            if facts.n_classes > 2 or budget.is_pure or is_perturbed:
                raise ValueError(
                    "Only binary classification is supported by margin='select', and only "
                    "delta > 0 and solver='noisy_gd' or 'phased_prox': use margin='auto'"
                )
            training = plan_margin_choice(problem, self.solver, budget)
            # A choice reads the features hundreds of times, so they are kept where they fit.
            memory = max(memory, KEPT_BYTES)
        else:
            asked = (self.solver, stated(self.margin, float), budget)
            training = plan_kernel_training(problem, *asked, feature_map=feature_map)
        facts_of_features = self._feature_facts(feature_map, seed)
        return KernelTraining(training, feature_map, facts.data_norm, memory, facts_of_features)

    def _plan_steps(self, facts: PublicFacts, budget: Budget) -> LinearFit:
        """Plan the default steps on features; a sparse matrix is its own features."""
        constant = self._constant_column() or 0.0
        if self.kernel in ADDITIVE and facts.is_sparse:
            if not facts.is_scale_stated:
                warn_of_unscaled_columns(facts, budget)
            return plan_linear(facts, budget, constant=constant)
        # Cosines need a scale of every column, which a norm of rows does not state.
        needs_scales = self.kernel in ADDITIVE or not facts.is_scale_stated
        in_scales = needs_scales and not facts.is_sparse
        if in_scales:
            facts = replace(facts, data_norm=facts.n_features**0.5, is_scale_stated=False)
        seed = self._feature_seed()
        drawn = self._drawn_map(facts, budget, seed)
        _refuse_features(drawn.n_components, facts)
        none = np.zeros(facts.n_features)
        features = Features(
            drawn,
            unit=facts.data_norm,
            scales=ColumnScales(none, none + 1.0) if in_scales else None,
            estimated=np.arange(facts.n_features if in_scales else 0),
            longest=np.inf if isinstance(drawn, AdditiveMap) else 1.0,
            memory=self._memory(),
            clips_rows=self.kernel != "additive",
        )
        public = {
            **self._feature_facts(drawn, seed),
            "data_norm": None if in_scales else facts.data_norm,
            "private_column_scales": in_scales,
        }
        return plan_features(facts, budget, features, constant=constant, public=public)

    def _feature_seed(self) -> int:
        return int(public_generator(self.random_state, "features").integers(2**63))

    def _memory(self) -> int:
        return int(float(self.cache_size) * 2**20)

    def _feature_facts(self, feature_map: FeatureMap, seed: int) -> dict[str, Any]:
        """Return the public facts of the features for the record."""
        return {
            "kernel": self.kernel,
            "length_scale": self.length_scale,
            "n_components": feature_map.n_components,
            "feature_seed": seed,
        }

    def _set_fitted(self, fitted: Fitted, data: TrainingData, record: PrivacyRecord) -> None:
        super()._set_fitted(fitted, data, record)
        if "feature_map_" not in fitted.attributes:
            # The columns themselves, of a sparse matrix.
            self.feature_map_ = AdditiveMap(self.n_features_in_, 1, clip=math.inf)
            self.n_components_, self.coef_ = self.n_features_in_, self.coef_ * self.data_norm_

    def _bytes_to_score_a_row(self) -> int:
        return _feature_bytes(self.n_components_)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        """Multiply features of rows by the released coefficients."""
        row_clip = getattr(self, "row_clip_", None)
        if sparse.issparse(X) and getattr(self.feature_map_, "is_linear", False):
            # The features are the entries of rows, which are not written out.
            return super()._margins(X) / self.data_norm_
        rows = self._features(X)
        if row_clip is not None:
            row_clip.shorten(rows)
        return np.asarray(rows @ self.coef_.T)

    def _features(self, X: Any) -> NDArray[np.float64]:
        """Return the features of rows in column scales."""
        norm = self.data_norm_
        features = Features(self.feature_map_, norm, longest=self._row_norm / norm)
        return features.write(X).astype(np.float64)

    @property
    def _row_norm(self) -> float:
        # Columns of dense rows are clipped one by one, or are read by a selection as they are.
        clip = getattr(self.feature_map_, "clip", math.inf)
        keeps_length = math.isfinite(clip) or hasattr(self, "certainty_")
        return math.inf if keeps_length else self.data_norm_

    @property
    def _is_binary(self) -> bool:
        return self.margin == "select" or self.solver == "phased_prox"

    def _drawn_map(self, facts: PublicFacts, budget: Budget, seed: int) -> FeatureMap:
        """Draw the public features."""
        size, margin = stated(self.n_components, int), stated(self.margin, float)
        n_samples, d = facts.n_privacy_units, facts.n_features
        scale = relative_scale(self.length_scale, facts.data_norm)
        drawn: FeatureMap
        if self.kernel in ADDITIVE:
            most = size if size and self.kernel == "additive" else COLUMN_TERMS
            drawn = AdditiveMap(d, n_terms(d, size or WIDEST, most))
            if self.kernel == "auto" and not budget.is_pure:
                limits = size or WIDEST, self._memory()
                drawn = joint_features(drawn, (n_samples, d), budget.mu, limits, seed)
        else:
            size = size or choose_n_features(n_samples, budget)
            size += size % 2 if self.kernel != "polynomial" else 0
            _refuse_features(size, facts)
            rng = np.random.default_rng(seed)
            if self.kernel == "polynomial":
                how: dict[str, Any] = {"degree": int(self.degree), "coef0": float(self.coef0)}
                drawn = draw_tensor_sketch(d, size, rng, **how, length_scale=scale or 1.0)
            else:
                drawn = draw_fourier(d, np.full(size // 2, scale or LENGTH_SCALE), rng)
        if self.projection is None:
            return drawn
        # A random projection, if it lowers the number of features.
        kept = PROJECTED if margin is None else jl_dimension(margin, n_samples)
        rng = np.random.default_rng(seed + 1)
        linear_map = draw_projection(self.projection, drawn.n_components, kept, rng)
        return drawn if linear_map is None else ProjectedFeatures(drawn, linear_map)

    def _small_plan(self, facts: PublicFacts, budget: Budget) -> FitPlan | None:
        """Plan the selection of the linear default for a small table of three to seven classes."""
        shape = ("kernel", "n_components", "fit_intercept", "intercept_scaling")
        is_default = has_defaults(self, PrivateKernelClassifier, shape)
        if facts.n_classes == 2 or not is_default or facts.is_scale_stated:
            return None
        # The features are the columns themselves.
        columns = AdditiveMap(facts.n_features, 1, clip=np.inf)
        own = {"feature_map_": columns, "n_components_": facts.n_features, "data_norm_": 1.0}
        plan = plan_small_fit(facts, budget, self.random_state)
        return None if plan is None else replace(plan, attributes=own)

    def _takes_default_steps(self, *, is_pure: bool) -> bool:
        return self.margin == "auto" and self.solver == "noisy_gd" and not is_pure
