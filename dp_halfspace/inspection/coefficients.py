"""Linear models in the units of the columns: coefficients, importances, and checks of units.

`check_units` compares new rows with the released scales of a model: a column that has arrived in
another unit is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dp_halfspace._sklearn_compat import column_names
from dp_halfspace.data.encoding import read_numbers
from dp_halfspace.data.frame import FloatArray, read_column, read_frame
from dp_halfspace.preprocessing.scalers import CellScaler, ColumnScaler


@dataclass(frozen=True, slots=True)
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
        Public or released width of each column, None if the model has none.
    classes : tuple
        Labels of the scores: the second label only, for two classes.
    errors : ndarray of the shape of `coefficients`, or None
        Standard errors of the coefficients by the noise of the fit, None if they are not known.
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
        """Whether each coefficient is beyond two standard errors of the noise, of known ones."""
        if self.errors is None:
            return np.ones(self.coefficients.shape, dtype=bool)
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
    model : fitted linear classifier of the package, or a pipeline of scalers that ends in one
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
    if not parts.is_linear:
        raise ValueError(_not_linear(parts.model))
    coefficients, intercepts = parts.coefficients, parts.intercepts
    widths, errors = None, getattr(parts.model, "coef_std_error_", None)
    for scaler in reversed(parts.scalers):
        scales = scaler._scales()[0]
        coefficients = coefficients / scales.scale
        errors = None if errors is None else errors / scales.scale
        intercepts = intercepts - coefficients @ scales.center
        widths = scales.scale if widths is None else widths * scales.scale
    classes = parts.model.classes_[1:] if len(coefficients) == 1 else parts.model.classes_
    return NaturalCoefficients(
        parts.names, coefficients, intercepts, widths, tuple(classes.tolist()), errors
    )


@dataclass(frozen=True, slots=True)
class LinearParts:
    """A linear model as it predicts: a sequence of scalers, then a linear score.

    The last scaler of a model that was selected for a small table may be the public `cells`, and
    its score may be divided by ``row_lengths_``. The score of a network is one of its last layer.
    """

    names: tuple[str, ...]
    scalers: tuple[ColumnScaler, ...]
    cells: CellScaler | None
    model: Any
    coefficients: FloatArray
    intercepts: FloatArray

    @property
    def is_linear(self) -> bool:
        """Whether the score is linear in the columns themselves."""
        others = ("row_lengths_", "hidden_coef_")
        return self.cells is None and not any(hasattr(self.model, name) for name in others)


def linear_parts(model: Any, asked: str) -> LinearParts:
    """Decompose a fitted linear model, or a pipeline of scalers and such a model.

    Error messages name the function `asked`.
    """
    check_is_fitted(model)
    if hasattr(model, "learnt_part"):
        raise ValueError(
            f"{asked} needs a linear model, and {type(model).__name__} wraps one: give it the "
            "estimator inside, whose scores are to be compared with what was learnt"
        )
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    scalers = [step for step in steps[:-1] if step != "passthrough"]
    if not all(isinstance(scaler, ColumnScaler) for scaler in scalers):
        raise ValueError(
            f"{asked} needs a model, or a pipeline of scalers of "
            "dp_halfspace.preprocessing and a model"
        )
    coefficients, intercepts = _linear_scores(steps[-1])
    own = steps[-1].scaler_
    cells = own if isinstance(own, CellScaler) else None
    if own is not None and cells is None:
        scalers = [*scalers, own]
    names = tuple(map(str, column_names([*scalers, steps[-1]][0])))
    return LinearParts(names, tuple(scalers), cells, steps[-1], coefficients, intercepts)


def _not_linear(model: Any) -> str:
    return (
        f"this {type(model).__name__} has no linear score of the columns: use EffectsDisplay, "
        "which shows effects of any model"
    )


def _linear_scores(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return coefficients and intercepts of a model for rows in its column scales."""
    kind = type(model).__name__
    if hasattr(model, "encoding_"):
        raise ValueError(
            f"{kind} encodes the table first, so its score is not linear in the "
            "columns: use EffectsDisplay, which shows their effects"
        )
    if hasattr(model, "monotone_") or not hasattr(model, "coef_"):
        raise ValueError(_not_linear(model))
    coefficients = np.atleast_2d(model.coef_)
    feature_map = getattr(model, "feature_map_", None)
    if feature_map is not None:
        if not getattr(feature_map, "is_linear", False):
            raise ValueError(
                f"this {kind} is linear in features and not in columns: use EffectsDisplay"
            )
        coefficients = coefficients / model.data_norm_
    return np.asarray(coefficients, dtype=np.float64), np.atleast_1d(model.intercept_)


# A median further than this many widths from the centre of its column is not plausible: more than
# half of the rows of the fit lie within about one width.
_FAR_WIDTHS = 5.0
# Factor by which new rows may be smaller. A column in mg/dl instead of umol/l is close to zero,
# which may be within five widths. Its size is a quantile, and is used from this many rows on.
_SMALLER_BY = 8.0
_SIZE = 0.9
_LEAST_ROWS = 20


@dataclass(frozen=True)
class UnitFinding:
    """A column of new rows whose median or size is far from what the model has released.

    Attributes
    ----------
    column : str
        Name or position of the column.
    median : float
        Median of the new rows, in their own unit. It is private if these rows are.
    expected : tuple of float
        Range in which a median would be plausible, in the units of the fit.
    size : float or None, default=None
        The 90 % quantile of the absolute values of new entries, if it is far below `expected_size`.
    expected_size : float or None, default=None
        Root mean square of the column according to the release, if `size` is given.
    is_date : bool, default=False
        Whether the numbers are days since 1970-01-01.
    """

    column: str
    median: float
    expected: tuple[float, float]
    size: float | None = None
    expected_size: float | None = None
    is_date: bool = False

    def __str__(self) -> str:
        low, high = self.expected
        if self.size is not None:
            return (
                f"column {self.column!r}: nine of ten new entries are below {self.size:.3g} in "
                f"size, and those of the fit were of the size {self.expected_size:.2g}; is it in "
                "the unit of the training data?"
            )
        median, first, last = (
            _date(number) if self.is_date else f"{number:.4g}"
            for number in (self.median, low, high)
        )
        kind = "read in the format" if self.is_date else "in the unit"
        return (
            f"column {self.column!r}: the median {median} of the new rows lies outside of {first} "
            f"to {last}; is it {kind} of the training data?"
        )


# Days within which numbers are written as dates: the years 1 to 9999.
_CALENDAR = (-719_162, 2_932_896)


def _date(days: float) -> str:
    """Write a number of days since 1970 as a date, or as it is if no calendar has it."""
    if not _CALENDAR[0] <= days <= _CALENDAR[1]:
        return f"{days:.4g} days after 1970"
    return str(np.datetime64(round(days), "D"))


def check_units(model: Any, X: Any) -> tuple[UnitFinding, ...]:
    """Report columns of new rows that may be in other units than in the fit.

    Parameters
    ----------
    model : estimator object
        A fitted classifier with estimated or stated column scales: a `PrivateTableClassifier`, or a
        classifier of numbers with a ``scaler_``.
    X : data frame or array-like of shape (n_samples, n_features)
        New rows, as for ``predict``. Missing values are ignored.

    Returns
    -------
    tuple of UnitFinding
        A column with a stated range is reported if the median of its new rows is outside the range,
        and any other column if the median is more than five widths from the released centre. From
        20 rows on, a column with estimated scales is also reported if nine of ten new entries are
        smaller in absolute value than an eighth of the released size of the column, and most are
        not zero. Empty if all columns are plausible.

    Raises
    ------
    ValueError
        If the model has no column scales to compare with.

    Notes
    -----
    **Privacy.** Only released or stated numbers are used of the training rows, so nothing is spent.
    The result is computed without noise from the new rows: it is **not private for them**, and only
    for people who may see these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dp_halfspace import PrivateTableClassifier
    >>> from dp_halfspace.inspection import check_units
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.5, 1.5, size=(4000, 1))  # creatinine in mg/dl
    >>> model = PrivateTableClassifier(schema={"0": [0, 15]}, classes=[False, True])
    >>> model = model.fit(X, X[:, 0] > 1)
    >>> for finding in check_units(model, 88.4 * X[:100]):  # the same in umol/l
    ...     print(finding.column, finding.expected)
    0 (0.0, 15.0)
    """
    check_is_fitted(model)
    if hasattr(model, "encoding_"):
        names, values, *facts = _of_table(model, X)
        dates = {c.name for c in model.encoding_.columns if c.kind == "date"}
    else:
        names, values, *facts = _of_numbers(model, X)
        dates = set()
    findings = []
    for name, column, *rest in zip(names, values, *(f.tolist() for f in facts), strict=True):
        low, high, usual = rest
        known = column[~np.isnan(column)]
        median = float(np.median(known)) if len(known) else math.nan
        size = _size(known)
        if median < low or median > high:
            findings.append(UnitFinding(name, median, (low, high), is_date=name in dates))
        elif size < usual / _SMALLER_BY and name not in dates:
            findings.append(UnitFinding(name, median, (low, high), size, usual))
    return tuple(findings)


def _size(known: FloatArray) -> float:
    """Return a high quantile of the absolute values; NaN if there are few or most are zero."""
    if len(known) < _LEAST_ROWS or np.median(np.abs(known)) == 0.0:
        return math.nan
    return float(np.quantile(np.abs(known), _SIZE))


# Names, values, limits of a plausible median, and sizes (NaN if no size was estimated).
_Columns = tuple[list[str], list[FloatArray], FloatArray, FloatArray, FloatArray]


def _of_table(model: Any, X: Any) -> _Columns:
    """Return names, values and limits of the medians of the numeric columns of a table."""
    encoding, scales, frame = model.encoding_, model.column_scales_, read_frame(X)
    columns = encoding.numbers
    estimated = model._columns_in_estimated_scales
    positions = encoding.positions(frame)
    place = dict(zip((column.name for column in encoding.columns), positions, strict=True))
    values = [
        read_numbers(read_column(frame.columns[place[column.name]]), column) for column in columns
    ]
    # The limits of a column without a range are infinite, unless its scale was estimated.
    low, high = (np.array([getattr(c, end) for c in columns]) for end in ("low", "high"))
    is_estimated = np.array([c.name in estimated for c in columns], dtype=bool)
    is_far = is_estimated & np.array([not c.has_range for c in columns], dtype=bool)
    near = _far(scales.center, scales.scale)
    low, high = np.where(is_far, near[0], low), np.where(is_far, near[1], high)
    sizes = np.where(is_estimated, np.hypot(scales.center, scales.scale), np.nan)
    return [column.name for column in columns], values, low, high, sizes


def _of_numbers(model: Any, X: Any) -> _Columns:
    """Return names, values and limits of the medians of the columns of a matrix."""
    scaler: Any = getattr(model, "scaler_", None)
    if not hasattr(scaler, "center"):
        raise ValueError(
            "model has no column scales to compare new rows with: it was fitted with "
            "a stated data_norm, or is not a model of this package"
        )
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(scaler.center):
        raise ValueError(f"X must have the {len(scaler.center)} columns of the fit")
    names = getattr(model, "feature_names_in_", range(rows.shape[1]))
    sizes = np.hypot(scaler.center, scaler.scale)
    return [str(name) for name in names], list(rows.T), *_far(scaler.center, scaler.scale), sizes


def _far(center: NDArray[Any], scale: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the limits beyond which a median is not plausible."""
    center, width = np.asarray(center, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    return center - _FAR_WIDTHS * width, center + _FAR_WIDTHS * width
