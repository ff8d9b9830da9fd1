"""The exponential mechanism over networks that do not depend on the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dp_halfspace._params import AUTO, stated
from dp_halfspace._sklearn_compat import Interval, Options, StrOptions
from dp_halfspace.data.record_weights import WeighedRows, weighed
from dp_halfspace.data.validation import TrainingData
from dp_halfspace.engine.plan import FitPlan, Fitted, PublicFacts, WrappedPlan
from dp_halfspace.estimators._wrapped_plans import plan_rows
from dp_halfspace.estimators.base import PrivateLinearClassifier
from dp_halfspace.papers.network import (
    NetworkSearch,
    NetworkShape,
    network_sensitivity,
    smallest_budget,
)
from dp_halfspace.papers.staged_search import (
    MOST_CANDIDATES,
    MOST_DIMENSIONS,
    StagedSearch,
    default_stages,
    plan_search,
)
from dp_halfspace.privacy.budget import Budget
from dp_halfspace.privacy.door import Door
from dp_halfspace.privacy.randomness import public_generator
from dp_halfspace.projection.linear import PROJECTIONS, LinearMap, draw_projection, within_unit_ball
from dp_halfspace.rows.blocks import clip_scales
from dp_halfspace.rows.rows import Rows

# Largest number of parameters; a million candidates in stages cannot search more dimensions.
_MOST_PARAMETERS = 256
# Rounding errors of all records together must not exceed the influence of one record.
_MOST_SENSITIVITY = 2.0
# Number of evaluations of one network on one record in one stage.
_EVALUATIONS = 8e6
# Smallest and largest number of candidates.
_CANDIDATES = (500, 4000)
# Radius of the second stage.
_NETWORK_RADIUS = 0.6
# Radius of a stage, relative to that of the one before.
_SHRINK = 0.6


@dataclass(frozen=True, slots=True)
class _NetworkFit(WrappedPlan):
    """A search among networks of projected rows."""

    plan: NetworkSearch
    linear_map: LinearMap | None

    def run(self, door: Door) -> Fitted:
        """Search among networks, and split the chosen parameters into layers."""
        found = self.plan.run(door.map(self._rows))
        hidden, outputs, bias = self.plan.shape.layers(found)
        return Fitted(
            outputs.copy(),
            bias.copy(),
            data_norm=self.facts.data_norm,
            attributes={
                "projection_": self.linear_map,
                "n_hidden_": self.plan.shape.widths[-1],
                "hidden_coef_": [np.ascontiguousarray(weights[0].T) for weights, _ in hidden],
                "hidden_intercept_": [biases[0].copy() for _, biases in hidden],
            },
        )

    def _rows(self, data: TrainingData) -> WeighedRows:
        rows = Rows(_points(data.X, self.facts.data_norm, self.linear_map))
        return weighed(rows, self.facts.relative_weights, data)


@dataclass(kw_only=True, eq=False, repr=False)
class PureNetworkClassifier(PrivateLinearClassifier):
    """Small neural network by a private choice among networks fixed without the data: pure DP.

    The networks have tanh units after a random projection, by default in one hidden layer. Every
    network of a public random stream is scored by the number of records that it misclassifies. The
    exponential mechanism chooses one, and then chooses again among networks near it. It can learn
    nonlinear boundaries of two or three columns from hundreds of records, and of about five from
    thousands. With more records `PrivateKernelClassifier` is the better choice.

    Parameters
    ----------
    n_hidden : int or array-like of int, default=6
        Number of hidden units. A list gives the number for each hidden layer, the first layer
        first, like `hidden_layer_sizes` of scikit-learn's MLPClassifier. The network must not have
        more than 256 parameters in all.
    n_candidates : int or "auto", default="auto"
        Number of networks in each stage, at most 1000000. ``"auto"`` is ``8e6 / n`` within [500,
        4000].
    n_stages : int or "auto", default="auto"
        Number of stages; each spends an equal part of epsilon. ``"auto"`` is ``n epsilon / 200``
        within [1, 8].
    projection : str or None, default="auto"
        Public random projection of the columns before the fit: ``"rademacher"``, ``"hadamard"`` or
        None. ``"auto"`` projects more than 12 columns.
    n_components : int or "auto", default="auto"
        Number of inputs after the projection; ``"auto"`` is 12.
    epsilon : float, default=1.0
        Budget of one fit, in [1e-9, 1e6]; infinity takes the best candidate, without any guarantee.
        The number of records times epsilon must be at least ``4 ln 100 = 18.4``: below that a
        choice among a hundred networks is random guessing.
    delta : float, default=0.0
        Only 0: the guarantee is pure DP.
    data_norm : float or None, default=None
        PUBLIC bound on the Euclidean norm of a row; longer rows are scaled down to it. With None
        the columns keep their original units and may have missing values (NaN): a part of the
        budget then estimates a centre and a scale for each column (see `scaler_`). Where estimated
        scales do not help (sparse rows, few records) the bound is 1.
    fit_intercept : bool, default=True
        Whether units and output have biases. Without them the network is an odd function.
    intercept_scaling : float, default=1.0
        Size of the biases, relative to the default.
    classes : array-like of labels or None, default=None
        PUBLIC label set, of two labels. None declares the labels in `y` to be public.
    class_weight : dict or None, default=None
        PUBLIC weight of each label, in [1e-50, 1e50]; ``"balanced"`` is refused.
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
    coef_ : ndarray of shape (1, n_neurons)
        Released output weights of the ``n_hidden_`` units of the last hidden layer.
    intercept_ : ndarray of shape (1,)
        Released bias of the output.
    hidden_coef_ : list of ndarray of shape (n_neurons, n_inputs)
        Released weights of each hidden layer, the first one first. Its inputs are the clipped rows,
        divided by `data_norm` and projected.
    hidden_intercept_ : list of ndarray of shape (n_neurons,)
        Released biases of the hidden units of each layer.
    n_hidden_ : int
        Number of hidden units, of the last layer.
    projection_ : LinearMap or None
        The public projection that was used; None if there was none.
    data_norm_ : float
        Norm to which rows are scaled down at prediction; infinite if rows were normalised.
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
    PureHalfspaceClassifier : The same for linear classifiers.
    PrivateKernelClassifier : Nonlinear, for larger tables and (epsilon, delta).

    Notes
    -----
    **Privacy.** ``fit`` is epsilon-differentially private under replace-one adjacency, rounding
    included, and the mechanism is sampled exactly. Public: the number of rows, the columns, the
    label set, every parameter, and the list of candidate networks. Released: the index of the
    chosen one.

    The candidates are a small sample of the cover of all networks that the theory requires (10^11
    networks for the default on two columns). Accuracy is therefore not guaranteed; privacy does not
    depend on it.

    References
    ----------
    R. Bassily, M. Mohri and A. T. Suresh, "Differentially Private Learning with Margin
    Guarantees", 2022, section 5; F. McSherry and K. Talwar, "Mechanism Design via Differential
    Privacy", 2007. Proofs: ``docs/proofs/pure_network.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PureNetworkClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> model = PureNetworkClassifier(data_norm=2**0.5, classes=[0, 1], n_candidates=500)
    >>> model = model.fit(X, y)
    >>> bool(model.score(X, y) > 0.75)
    True
    """

    n_hidden: int | ArrayLike = 6
    n_candidates: int | str = "auto"
    n_stages: int | str = "auto"
    projection: str | None = "auto"
    n_components: int | str = "auto"
    delta: float = 0.0

    _is_binary = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PrivateLinearClassifier._parameter_constraints,
        "n_hidden": [Interval(Integral, 1, _MOST_PARAMETERS, closed="both"), "array-like"],
        "n_candidates": [Interval(Integral, 1, MOST_CANDIDATES, closed="both"), AUTO],
        "n_stages": [Interval(Integral, 1, 64, closed="both"), AUTO],
        "projection": [StrOptions({"auto", *PROJECTIONS}), None],
        "n_components": [Interval(Integral, 1, None, closed="left"), AUTO],
        "delta": [Options(Real, {0})],
    }

    def _plan(self, facts: PublicFacts, budget: Budget) -> FitPlan:
        if facts.n_classes != 2:
            raise ValueError(
                "Only binary classification is supported. For more classes use "
                "PrivateKernelClassifier"
            )
        return plan_rows(self._plan_network, facts, budget)

    def _plan_network(self, facts: PublicFacts, budget: Budget) -> _NetworkFit:
        """Plan a search of networks for rows in the scales that were chosen for them."""
        seed = int(public_generator(self.random_state, "networks").integers(2**63))
        kind = self.projection
        if kind == "auto":
            kind = "rademacher" if facts.n_features > MOST_DIMENSIONS else None
        size = stated(self.n_components, int) or MOST_DIMENSIONS
        rng = np.random.default_rng(seed)
        linear_map = None
        if kind is not None:
            linear_map = draw_projection(kind, facts.n_features, size, rng)
        shape = self._shape(facts, linear_map, budget)
        search = self._plan_search(facts.n_privacy_units, shape, budget)
        return _NetworkFit(facts, NetworkSearch(shape, search, seed), linear_map)

    def _margins(self, X: Any) -> NDArray[np.float64]:
        hidden = _points(X, self.data_norm_, self.projection_)
        for coef, intercept in zip(self.hidden_coef_, self.hidden_intercept_, strict=True):
            hidden = np.tanh(hidden @ coef.T + intercept)
        return np.asarray(hidden @ self.coef_.T)

    def _n_columns(self, data: TrainingData | None) -> None:
        """Return None: no rule of an outlook was measured for this class."""

    def _shape(
        self, facts: PublicFacts, linear_map: LinearMap | None, budget: Budget
    ) -> NetworkShape:
        """Fix the public sizes, or refuse impossible ones."""
        n_samples = facts.n_privacy_units
        strength = n_samples * budget.epsilon
        if strength < smallest_budget():
            raise ValueError(
                f"n_samples * epsilon = {strength:.3g} is too small: a choice among networks needs "
                f"at least {smallest_budget():.3g}, and about 1000 to learn more than a linear "
                "boundary. Use PureHalfspaceClassifier, more records or a larger epsilon"
            )
        shape = NetworkShape(
            facts.n_features if linear_map is None else linear_map.n_components,
            _widths(self.n_hidden),
            self._constant_column(),
        )
        shown = ", ".join(map(str, shape.widths))
        if shape.size > _MOST_PARAMETERS:
            raise ValueError(
                f"n_hidden={shown} units of {shape.n_inputs} inputs have {shape.size} parameters: "
                f"a cover has over 10^{int(shape.size * math.log10(3.0))} networks, and more than "
                f"{_MOST_PARAMETERS} parameters cannot be searched. Lower n_hidden or "
                "n_components, or use PrivateKernelClassifier"
            )
        if network_sensitivity(n_samples, shape) > _MOST_SENSITIVITY:
            raise ValueError(
                f"n_hidden has {len(shape.widths)} hidden layers: with {n_samples} records their "
                "rounding errors could exceed the influence of a record. Use fewer layers"
            )
        return shape

    def _plan_search(self, n_samples: int, shape: NetworkShape, budget: Budget) -> StagedSearch:
        """Fix the public numbers of the search."""
        n_candidates, n_stages = self.n_candidates, self.n_stages
        if isinstance(n_candidates, str):
            n_candidates = round(min(max(_EVALUATIONS / n_samples, _CANDIDATES[0]), _CANDIDATES[1]))
        if isinstance(n_stages, str):
            n_stages = default_stages(n_samples * budget.epsilon)
        return plan_search(
            budget,
            n_candidates=int(n_candidates),
            n_stages=int(n_stages),
            sensitivity=network_sensitivity(n_samples, shape),
            radius=_NETWORK_RADIUS,
            shrink=_SHRINK,
        )


def _widths(n_hidden: Any) -> tuple[int, ...]:
    """Return the numbers of units of the hidden layers."""
    widths = list(n_hidden) if np.iterable(n_hidden) else [n_hidden]
    if not widths or not all(isinstance(width, Integral) and int(width) > 0 for width in widths):
        raise ValueError(
            "n_hidden must be a positive integer, or a list of them with one for each hidden layer"
        )
    return tuple(int(width) for width in widths)


def _points(X: Any, data_norm: float, linear_map: LinearMap | None) -> NDArray[np.float64]:
    """Return the inputs of the hidden layer: rows of norm at most one, each independently."""
    scale = clip_scales(X, data_norm) / data_norm
    features = X if linear_map is None else linear_map.apply(X)
    return within_unit_ball(Rows(features, scale).dense(np.arange(X.shape[0])))
