"""A private halfspace in the space of random features: kernel classification."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dp_halfspace._params import label_weights, public_number, resolved_delta
from dp_halfspace._sklearn_compat import Interval, StrOptions
from dp_halfspace.algorithms import SMALLEST_MARGIN, SOLVERS
from dp_halfspace.algorithms.engine.kernel_features import (
    ADDITIVE,
    Kernel,
    draw_additive_features,
    draw_features,
    n_features_wanted,
    projected,
    relative_scale,
)
from dp_halfspace.algorithms.engine.plan import rows_over
from dp_halfspace.algorithms.engine.training import Problem, Training, asked_margin
from dp_halfspace.algorithms.kernel_training import plan_kernel_training
from dp_halfspace.algorithms.published.kernel_margin import (
    SEARCH_MEMORY,
    MarginPlan,
    plan_margin_choice,
)
from dp_halfspace.data.chunks import Chunks
from dp_halfspace.data.people import People
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.estimators.base import Prepared, PrivateLinearClassifier
from dp_halfspace.privacy.mechanisms import Permit
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection import KERNELS, PROJECTIONS, AdditiveMap, FeatureMap
from dp_halfspace.rows.blocks import LONGEST
from dp_halfspace.rows.chunked_rows import chunked_features
from dp_halfspace.rows.feature_rows import FeatureRows, clipped_features, unit_feature_rows
from dp_halfspace.rows.rows import unit_rows

_MEGABYTE = 2**20


@dataclass(eq=False, repr=False)
class PrivateKernelClassifier(PrivateLinearClassifier):
    """Private classifier of tables: features of columns, then the engine of the linear default.

    By default the columns lead, and what a halfspace cannot see follows as far as the sizes and
    the budget pay for it: decaying cosines of each column, Fourier features of all of them. Each
    row is mapped by itself by a map from public randomness, and brought to norm one. A fifth of
    the budget buys a private preconditioner, the rest accelerated noisy gradient steps.

    Parameters
    ----------
    kernel : str, default="auto"
        For tables, ``"auto"`` or ``"additive"``. ``"additive"`` is the columns and cosines of
        each: the score is a sum of curves (:class:`~dp_halfspace.inspection.AdditiveDisplay`).
        ``"auto"`` adds Fourier features of all columns where they pay, and takes the columns
        alone where nothing else does. Random features alone are those of ``"rbf"``,
        ``"laplacian"``, ``"matern"`` (see :class:`~dp_halfspace.projection.Spectrum`) or
        ``"polynomial"``, ``(<x, z> / length_scale^2 + coef0)^degree``.
    length_scale : float or "auto", default="auto"
        PUBLIC length scale in the units of the data, of random features alone. ``"auto"`` is a
        mixture: ``.7 data_norm`` and, with a share that falls with the numbers of records and of
        classes, .04 to .35 `data_norm` (`data_norm` alone for ``"polynomial"``).
    n_components : int or "auto", default="auto"
        Largest number of features of ``"auto"`` and ``"additive"``, not below the number of
        columns; ``"auto"`` are 511. With ``"additive"`` the number per column is what fits. Of
        random features alone the number itself; an odd one is raised to the next even one, since
        Fourier features come in pairs; ``"auto"`` is about the number of records times mu, within
        [64, 600]. Beyond 2048 there is no preconditioner.
    degree : int, default=3
        Of ``"polynomial"``.
    coef0 : float, default=1.0
        Of ``"polynomial"``, not negative.
    nu : float, default=1.5
        Smoothness of ``"matern"``.
    margin : "auto", "select" or float, default="auto"
        ``"auto"`` needs no margin. A float in [1e-9, 1] is a PUBLIC guess of the margin among
        features of norm one. ``"select"`` chooses one privately by the loss that it costs,
        then trains once (two classes, ``delta > 0``).
    solver : str, default="noisy_gd"
        ``"noisy_gd"``, ``"objective_perturbation"`` (one noisy objective, exactly minimised;
        the only one for ``delta=0``) or ``"phased_prox"`` (one pass of proximal steps for one
        margin, two classes), as in `AdaptiveMarginClassifier`.
    projection : str or None, default=None
        Random projection behind the features: ``"rademacher"`` or ``"hadamard"``.
        For comparison with the literature; it costs accuracy.
    cache_size : float, default=256.0
        Features that are kept between passes, in MB. Those that do not fit are made again at
        every pass. ``margin="select"`` passes hundreds of times and keeps 34 MB at least.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity means no noise and no guarantee.
    delta : float or "auto", default="auto"
        ``"auto"`` is ``min(1/n^2, 1/4)``; 0 asks for pure epsilon, by a perturbed objective
        on at most 150 features, also where `solver` is the default.
    data_norm : float or None, default=None
        PUBLIC scale of a row; longer rows are scaled down to it. None is for columns in their
        natural units, with missing values (NaN) or not: the budget then buys a centre and a width
        for each column, see `scaler_`; where that does not pay (CSR, few records) the scale
        is 1.
    fit_intercept : bool, default=True
        Whether to append a constant column to the features.
    intercept_scaling : float, default=1.0
        Size of the constant column, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set. None declares the labels seen to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; ``"balanced"`` is refused.
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
    coef_ : ndarray of shape (1, n_columns) or (n_classes, n_columns)
        Released coefficients of the ``n_components_`` features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts; zero when ``fit_intercept=False``.
    feature_map_ : FeatureMap
        The public map; ``feature_map_.apply(X / data_norm_)`` are the features.
    n_components_ : int
        Number of features.
    margin_ : float
        Known or selected margin; otherwise the margin of unit rows below which a record
        still pulls at the model, a function of the released coefficients.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite where they were normalised.
    scaler_ : ReleasedScaler or None
        Released units of the columns, None where none were learnt.
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
    AdaptiveMarginClassifier : The linear default.
    dp_halfspace.projection.Spectrum : The kernels that Fourier features approximate.

    Notes
    -----
    **Privacy.** ``fit`` is (epsilon, delta)-differentially private under replace-one
    adjacency; with the default margin exactly mu-Gaussian private. Public: the number of
    rows, the columns, the label set, every parameter and the feature map, which is drawn
    without the data. Private: everything else. No branch depends on the data, but for the
    time that ``margin="select"`` takes. With `groups` the unit is a person with all rows, and
    the number of people is public instead of that of rows (``docs/proofs/persons.md``).

    References
    ----------
    R. Bassily, M. Mohri and A. Suresh, "Differentially Private Learning with Margin
    Guarantees", 2022, Algorithms 3, 5 and 6, section 4; with fewer features, exact noise and a
    computable selection. Proofs: ``docs/proofs/kernel.md``, ``preconditioner.md``,
    ``noisy_gradient.md``, ``phased_prox.md``. Constants: ``docs/defaults.md``.

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

    def _trained(self, ready: Prepared, permit: Permit) -> None:
        """Make the features, and run the plan on their rows."""
        data, scaler = ready.in_units(permit)
        plan, feature_map = ready.plan

        least = SEARCH_MEMORY if self.margin == "select" else 0
        memory = max(int(self.cache_size * _MEGABYTE), least)
        features = None
        if not _is_linear(feature_map):
            features = _features(data.X, ready.data_norm, feature_map, memory, data.people)

        def rows_of(training: Training) -> Any:
            people, bias = data.people, training.constant_column
            if features is None:
                return rows_over(unit_rows, data.X, ready.data_norm, bias, people=people)
            return rows_over(unit_feature_rows, features, bias, people=people)

        used, released = plan.run(rows_of, data.codes, ready.weights, permit)

        self.margin_ = asked_margin(used, released)
        self.feature_map_ = feature_map
        self.n_components_ = feature_map.n_components
        released = self._in_units_of_data(released, used.constant_column, data_norm=1.0)
        self._remember(ready, released, scaler)

    def _planned(self, data: TrainingData) -> Prepared:
        """Draw the public features and fix every public number of a fit."""
        weights = label_weights(self.class_weight, data.classes)
        seed = int(public_generator(self.random_state, "features").integers(2**63))
        n_samples, n_features, is_sparse = (
            data.n_privacy_units,
            data.X.shape[1],
            sparse.issparse(data.X),
        )
        problem = Problem(
            n_samples, n_features, len(data.classes), is_sparse, self._constant_column()
        )
        problem = replace(problem, seed=self.random_state)
        feature_map = self._drawn_map(problem, seed)
        plan = self._plan(problem, feature_map)
        public = {
            **plan.public,
            "kernel": self.kernel,
            "length_scale": self.length_scale,
            "n_components": feature_map.n_components,
            "feature_seed": seed,
        }
        record = self._record(data, plan.events, **public)
        norm = float(self.data_norm)
        return Prepared(
            data, weights / weights.max(), (plan, feature_map), record, norm, clips=True
        )

    def _protects_people(self, plan: Any) -> bool:
        return plan is None or (isinstance(plan[0], Training) and plan[0].protects_people)

    _reads_chunks = _protects_people

    def _margins(self, X: Any) -> NDArray[np.float64]:
        if _is_linear(self.feature_map_):
            return np.asarray(X @ (self.coef_.T / self.data_norm_))
        features = _features(X, self.data_norm_, self.feature_map_, 0)
        return FeatureRows(features).margins(self.coef_.T)

    @property
    def _is_binary(self) -> bool:
        return self.margin == "select" or self.solver == "phased_prox"

    def _drawn_map(self, problem: Problem, seed: int) -> FeatureMap:
        """Draw the public features."""
        budget = float(self.epsilon), resolved_delta(self.delta, problem.n_samples)
        size = None if isinstance(self.n_components, str) else int(self.n_components)
        scale = relative_scale(self.length_scale, float(self.data_norm))
        drawn: FeatureMap
        if self.kernel in ADDITIVE:
            drawn = draw_additive_features(
                self.kernel, problem, size, budget, seed, is_stated=self._is_scale_stated
            )
        else:
            size = size or n_features_wanted(problem.n_samples, *budget)
            size += size % 2 if self.kernel != "polynomial" else 0
            kernel = Kernel(self.kernel, scale, float(self.nu), int(self.degree), float(self.coef0))
            drawn = draw_features(kernel, problem, size, seed)
        return projected(drawn, self.projection, self._margin(), problem.n_samples, seed + 1)

    def _margin(self) -> float | None:
        """Return the margin that is known, if one is."""
        return None if isinstance(self.margin, str) else float(self.margin)

    def _plan(self, problem: Problem, feature_map: FeatureMap) -> Training | MarginPlan:
        """Fix the public numbers of a fit on features."""
        if not _is_linear(feature_map):
            problem = replace(problem, n_features=feature_map.n_components, is_sparse=False)
        epsilon, delta = float(self.epsilon), resolved_delta(self.delta, problem.n_samples)
        if self.margin != "select":
            asked = (self.solver, self._margin(), epsilon, delta)
            return plan_kernel_training(problem, *asked, feature_map=feature_map)
        is_pure = delta == 0 and math.isfinite(epsilon)
        if problem.n_classes > 2 or is_pure or self.solver != "noisy_gd":
            raise ValueError(
                "Only binary classification is supported by margin='select', and only "
                "delta > 0 and solver='noisy_gd': use margin='auto'"
            )
        return plan_margin_choice(problem, epsilon, delta)


def _is_linear(feature_map: FeatureMap) -> bool:
    """Tell whether features are the columns themselves, which need no copy and may be sparse."""
    return isinstance(feature_map, AdditiveMap) and feature_map.is_linear


def _features(
    X: Any, data_norm: float, feature_map: FeatureMap, memory: int, people: People | None = None
) -> Any:
    """Return features of rows; length scales of a kernel are relative to rows that were clipped."""
    longest = LONGEST if isinstance(feature_map, AdditiveMap) else 1.0
    how: dict[str, Any] = {"longest": longest, "people": people}
    if isinstance(X, Chunks):
        return chunked_features(X, data_norm, feature_map, memory=memory, **how)
    return clipped_features(X, data_norm, feature_map, memory=memory, **how)
