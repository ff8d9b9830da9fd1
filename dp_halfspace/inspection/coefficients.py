"""Linear models in the units of the columns: coefficients and importances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._arrays import FloatArray
from dp_halfspace._sklearn_compat import column_names
from dp_halfspace.preprocessing.scalers import CellScaler, ColumnScaler


@dataclass(frozen=True, slots=True, eq=False)
class NaturalCoefficients:
    """A linear model in the units of its columns: ``X @ coefficients.T + intercepts``.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    coefficients : ndarray of shape (1, n_features) or (n_classes, n_features)
        Change of the score for one unit of the column.
    intercepts : ndarray of shape (1,) or (n_classes,)
        Scores of a row of zeros.
    widths : ndarray of shape (n_features,) or None
        Width of each column: its standard deviation by the released second moment, as the fit
        clipped it; without a moment its public or released width, None if the model has none.
    classes : tuple
        Labels of the scores: the second label only, for two classes.
    errors : ndarray of the shape of `coefficients`, or None
        Standard errors of the coefficients due to the noise of the fit, None if not known.
        Sampling variation comes on top.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    intercepts: FloatArray
    widths: FloatArray | None
    classes: tuple[Any, ...]
    errors: FloatArray | None = None

    @property
    def has_sign(self) -> NDArray[np.bool_]:
        """Whether each coefficient is more than two standard errors of the noise from zero.

        False for all where `errors` is None, because nothing is known of their signs.
        """
        if self.errors is None:
            return np.zeros(self.coefficients.shape, dtype=bool)
        return np.asarray(np.abs(self.coefficients) > 2.0 * self.errors)

    @property
    def importances(self) -> dict[str, float]:
        """Width times coefficient by the name of the column, largest first.

        With more than two classes, the largest difference of two coefficients. A model without
        widths, whose columns are declared to have one scale, uses the coefficients themselves.
        """
        sizes = np.abs(self.coefficients[0])
        if len(self.coefficients) > 1:
            sizes = np.ptp(self.coefficients, axis=0)
        if self.widths is not None:
            sizes = sizes * self.widths
        return {self.names[j]: float(sizes[j]) for j in np.argsort(-sizes, kind="stable")}


def natural_coefficients(model: Any) -> NaturalCoefficients:
    """Return the coefficients of a fitted linear model in the units of its columns.

    ``coef_`` of a model with estimated column scales is for ``scaler_.transform(X)``; an
    explanation tool that multiplies it by the unscaled columns is wrong by the factor of the
    scales.

    Parameters
    ----------
    model : fitted linear classifier or search, or a pipeline of scalers that ends in one
        Scalers are those of :mod:`dp_halfspace.preprocessing`.

    Returns
    -------
    NaturalCoefficients
        Names, coefficients and intercepts. ``X @ coefficients.T + intercepts`` is
        ``decision_function(X)`` for rows without missing entries that the scalers neither clip
        (``scaler_.clip`` widths from the centre) nor shorten, and whose norm is at most
        ``data_norm_``.

    Raises
    ------
    ValueError
        If the scores are no linear function of the columns.

    See Also
    --------
    EffectsDisplay : Effects of columns in models that are not linear.

    Notes
    -----
    **Privacy.** A function of what was released and of public parameters: it uses no budget.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import AdaptiveMarginClassifier
    >>> from dp_halfspace.inspection import natural_coefficients
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(55, 12, 5000), rng.normal(260_000, 90_000, 5000)])
    >>> model = AdaptiveMarginClassifier(classes=[False, True]).fit(X, X[:, 0] > 60)
    >>> natural = natural_coefficients(model)
    >>> next(iter(natural.importances))
    'x0'
    >>> rows = model.scaler_.transform(X) * model.scaler_.scale + model.scaler_.center
    >>> inside = X[np.isclose(rows, X).all(axis=1)]
    >>> bool(np.allclose(inside @ natural.coefficients[0] + natural.intercepts[0],
    ...                  model.decision_function(inside)))
    True
    """
    parts = linear_parts(model, "natural_coefficients")
    coefficients, intercepts = parts.coefficients, parts.intercepts
    widths, errors = None, getattr(parts.model, "coef_std_error_", None)
    for scaler in reversed(parts.scalers):
        scales = scaler._scales()[0]
        coefficients = coefficients / scales.scale
        errors = None if errors is None else errors / scales.scale
        intercepts = intercepts - coefficients @ scales.center
        widths = scaler._typical().scale if widths is None else widths * scales.scale
    labels = parts.model.classes_.tolist()
    classes = tuple(labels[1:] if len(coefficients) == 1 else labels)
    return NaturalCoefficients(parts.names, coefficients, intercepts, widths, classes, errors)


class LinearParts(NamedTuple):
    """A linear model as it predicts: a sequence of scalers, then a linear score."""

    names: tuple[str, ...]
    scalers: tuple[ColumnScaler, ...]
    model: Any
    coefficients: FloatArray
    intercepts: FloatArray


def linear_parts(model: Any, asked: str) -> LinearParts:
    """Decompose a fitted linear model, or a pipeline of scalers and such a model.

    Error messages name the function `asked`.
    """
    check_is_fitted(model)
    if hasattr(model, "learnt_part"):
        raise ValueError(
            f"{asked} needs a linear model, and {type(model).__name__} wraps one: give that one"
        )
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    last = getattr(steps[-1], "best_estimator_", steps[-1])
    scalers = [step for step in steps[:-1] if step != "passthrough"]
    is_scaled = all(isinstance(scaler, ColumnScaler) for scaler in scalers)
    if not is_scaled or not hasattr(last, "privacy_"):
        raise ValueError(
            f"{asked} needs a model of this package, or a pipeline of its scalers and such a model"
        )
    # A model of a small table may read public cells of the columns.
    other = isinstance(getattr(last, "scaler_", None), CellScaler) or hasattr(last, "hidden_coef_")
    feature_map = getattr(last, "feature_map_", None)
    other |= feature_map is not None and not getattr(feature_map, "is_linear", False)
    if other or hasattr(last, "encoding_") or not hasattr(last, "coef_"):
        raise ValueError(
            f"{asked} needs a linear score of the columns, which this {type(last).__name__} has "
            "not: EffectsDisplay shows effects of single columns"
        )
    coefficients = np.atleast_2d(last.coef_) / (1.0 if feature_map is None else last.data_norm_)
    if last.scaler_ is not None:
        scalers = [*scalers, last.scaler_]
    names = tuple(map(str, column_names([*scalers, last][0])))
    return LinearParts(names, tuple(scalers), last, coefficients, np.atleast_1d(last.intercept_))
