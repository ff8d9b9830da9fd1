"""Coefficients of linear models in the units of the columns, and what each column weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._sklearn_compat import column_names
from dp_halfspace.preprocessing.scalers import ColumnScaler

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NaturalCoefficients:
    """A linear model in the units of its columns: ``X @ coefficients.T + intercepts``.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    coefficients : ndarray of shape (1, n_features) or (n_classes, n_features)
        Change of the score for one unit of the column.
    intercepts : ndarray of shape (1,) or (n_classes,)
        Scores of a row of zeros.
    widths : ndarray of shape (n_features,) or None
        Public or released width of each column, None where the model knows none.
    classes : tuple
        Of the scores: the second label only, for two classes.
    """

    names: tuple[str, ...]
    coefficients: FloatArray
    intercepts: FloatArray
    widths: FloatArray | None
    classes: tuple[Any, ...]

    @property
    def importances(self) -> dict[str, float]:
        """Width times coefficient by the name of the column, the largest first.

        Of more than two classes the largest difference of two coefficients. A model without
        widths, whose columns are of one scale as stated, has the coefficients themselves.
        """
        sizes = np.abs(self.coefficients[0])
        if len(self.coefficients) > 1:
            sizes = np.ptp(self.coefficients, axis=0)
        if self.widths is not None:
            sizes = sizes * self.widths
        return {self.names[j]: float(sizes[j]) for j in np.argsort(-sizes, kind="stable")}


def natural_coefficients(model: Any) -> NaturalCoefficients:
    """Return the coefficients of a fitted linear model in the units of its columns.

    ``coef_`` of a model that has learnt the scales of its columns is for ``scaler_.transform(X)``;
    an explainer that multiplies it by the columns is wrong by the ratio of the units.

    Parameters
    ----------
    model : fitted linear classifier of the package, or a pipeline of scalers that ends in one
        Scalers are those of :mod:`dp_halfspace.preprocessing`.

    Returns
    -------
    NaturalCoefficients
        Names, coefficients and intercepts. ``X @ coefficients.T + intercepts`` is
        ``decision_function(X)`` for rows without missing entries, whose entries the scalers do not
        clip (four widths from the centre) and whose norm is at most a stated ``data_norm``.

    Raises
    ------
    ValueError
        If the scores are no linear function of the columns.

    See Also
    --------
    AdditiveDisplay, TableEffectsDisplay : Effects of models that are not linear.

    Notes
    -----
    **Privacy.** A function of what was released and of public parameters: it costs nothing.

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
    >>> bool(np.allclose(X[:9] @ natural.coefficients[0] + natural.intercepts[0],
    ...                  model.decision_function(X[:9])))
    True
    """
    parts = linear_parts(model, "natural_coefficients")
    coefficients, intercepts = parts.coefficients, parts.intercepts
    widths = None
    for scaler in reversed(parts.scalers):
        scales = scaler._scales()[0]
        coefficients = coefficients / scales.scale
        intercepts = intercepts - coefficients @ scales.center
        widths = scales.scale if widths is None else widths * scales.scale
    classes = parts.model.classes_[1:] if len(coefficients) == 1 else parts.model.classes_
    return NaturalCoefficients(
        parts.names, coefficients, intercepts, widths, tuple(classes.tolist())
    )


@dataclass(frozen=True, slots=True)
class LinearParts:
    """A linear model as it predicts: scalers one after another, then a linear score."""

    names: tuple[str, ...]
    scalers: tuple[ColumnScaler, ...]
    model: Any
    coefficients: FloatArray
    intercepts: FloatArray


def linear_parts(model: Any, asked: str) -> LinearParts:
    """Take a fitted linear model apart, or a pipeline of scalers that ends in one.

    Refusals name the function that was `asked` for it.
    """
    check_is_fitted(model)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    scalers = [step for step in steps[:-1] if step != "passthrough"]
    if not all(isinstance(scaler, ColumnScaler) for scaler in scalers):
        raise ValueError(f"{asked} needs scalers of dp_halfspace.preprocessing in front of a model")
    coefficients, intercepts = _linear_scores(steps[-1])
    if steps[-1].scaler_ is not None:
        scalers = [*scalers, steps[-1].scaler_]
    names = tuple(map(str, column_names([*scalers, steps[-1]][0])))
    return LinearParts(names, tuple(scalers), steps[-1], coefficients, intercepts)


def _linear_scores(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercepts of a model for rows in its column scales."""
    kind = type(model).__name__
    if hasattr(model, "encoding_"):
        raise ValueError(f"{kind} makes numbers of a table first: take TableEffectsDisplay")
    others = ("row_lengths_", "hidden_coef_", "monotone_")
    if any(hasattr(model, name) for name in others) or not hasattr(model, "coef_"):
        raise ValueError(
            f"this {kind} has no linear score of the columns: take AdditiveDisplay, which shows "
            "effects of any model"
        )
    coefficients = np.atleast_2d(model.coef_)
    feature_map = getattr(model, "feature_map_", None)
    if feature_map is not None:
        if not getattr(feature_map, "is_linear", False):
            raise ValueError(
                f"this {kind} is linear in features and not in columns: take AdditiveDisplay"
            )
        coefficients = coefficients / model.data_norm_
    return np.asarray(coefficients, dtype=np.float64), np.atleast_1d(model.intercept_)
